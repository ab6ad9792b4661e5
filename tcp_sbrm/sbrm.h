/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of tcp_sbrm share: a connection, its sources (sbrm_source.c),
 * its estimators (sbrm_estimator.c) and the explicit price (sbrm_carrier.c).
 */
#ifndef _SBRM_H
#define _SBRM_H

#include <linux/math64.h>
#include <linux/percpu.h>
#include <net/inet_connection_sock.h>
#include <net/tcp.h>

#include "compat.h"
#include "tollway_fixp.h"
#include "tollway_random.h"
#include "sbrm_net.h"

/*
 * Windows are segments in Q32. As the window sets the rate, it may be below one
 * segment: a packet every other round trip. A segment in a round trip is more
 * than the fair share of a busy link. With a larger least window flows send
 * more than that; with a smaller one a flow has so few ACKs that it hears late
 * of a lower price. 2^24 segments keep every product in 64 bits.
 */
#define SBRM_CWND_MIN	(FIXP_ONE / 4)
/*
 * With the source relative, which has no other answer to 1000 flows: at
 * 100 Mb/s these have 8.3 packets/s each, a window of a 6th at 20 ms and of a
 * 24th at 5 ms.
 */
#define SBRM_CWND_MIN_RELATIVE	(FIXP_ONE / 64)
#define SBRM_CWND_MAX	((u64)1 << (24 + FIXP_SHIFT))

/*
 * With the source relative, which asks for the price that a mark stands for, the share
 * of marks is an average over 2^3 packets where most are marked: with more, sources
 * answer late there, and the queue swings. Where few are marked it is one over 2^5: with
 * fewer, what a mark stands for is less exact where several queues mark
 * (selftests/README.md, "Any rate").
 */
#define SBRM_RELATIVE_SHIFT	3
#define SBRM_RELATIVE_FEW_SHIFT	5

/*
 * The estimate at the end of slow start counts as so many packets. With fewer,
 * the first packets after it make the average jump; with more, what slow start
 * saw, with a window that was too large, counts for longer.
 */
#define SBRM_PLAIN_START	4

/* Times between ACKs count up to this, us: 67 s, see sbrm_paid(). */
#define SBRM_TIME_MAX_US	((1U << 26) - 1)

/*
 * The slow round-trip time is in 2^-6 us, so that 2^24 us fit into 32 bits, and a step of a
 * 2^8th of a difference of 4 us is not lost.
 */
#define SBRM_RTT_SLOW_SHIFT	6

/*
 * It takes steps of 2^13 us: a 2^8th, 2.1 s in all. It must be slow beside the
 * swings that r is to damp, which are of some round trips. If it is faster it
 * follows them; if it is slower, r is wrong for longer after the path has
 * changed. Between two steps an ACK has nothing to do for it.
 */
#define SBRM_RTT_SLOW_US_SHIFT	13

/* Prices are stored in Q28, so that prices below 16 fit into 32 bits (at most 11.1 occur). */
#define SBRM_PRICE_SHIFT	28

/*
 * The proof is kept in Q7: 2^15 - 1 is nearly 256 marks. Without any mark these
 * last for 512 / w seconds: 20 s with a w of 25, and 5 s with 100. With more, a
 * flow whose path has no price any more takes from others for longer. With
 * less, the proof is gone before the window has climbed back to its first mark.
 */
#define SBRM_PROOF_SHIFT	7
#define SBRM_PROOF_MAX		((1 << 15) - 1)

/*
 * So many after it was void: half of a full proof. Losses have shown that eight
 * say little on this path. With more, a flow that has a price spares no loss
 * for longer; with fewer, one without a price spares them again soon.
 */
#define SBRM_PROOF_AGAIN	(128 << SBRM_PROOF_SHIFT)

/* Bits of the four-bit feedback of sch_sbrm. */
#define SBRM_BITS	4

/**
 * enum sbrm_echo - how the price comes back
 * @SBRM_ECHO_UNKNOWN: no mark or price seen so far; taken for the best
 * @SBRM_ECHO_PACKET: the peer echoes the mark of each packet
 * @SBRM_ECHO_ACCECN: the peer counts the marks (AccECN)
 * @SBRM_ECHO_CARRIER: the peer echoes the price field of its packets
 * @SBRM_ECHO_LATCHED: the peer repeats ECE until CWR (RFC 3168)
 * @SBRM_ECHO_NONE: nothing comes back but losses, and ECE where negotiated
 *
 * From @SBRM_ECHO_LATCHED on the connection is TCP/RM.
 */
enum sbrm_echo {
	SBRM_ECHO_UNKNOWN,
	SBRM_ECHO_PACKET,
	SBRM_ECHO_ACCECN,
	SBRM_ECHO_CARRIER,
	SBRM_ECHO_LATCHED,
	SBRM_ECHO_NONE,
};

/**
 * struct sbrm_marks - estimate of a price by marks, and who echoes them
 * @bits: the last 64 packets, the latest lowest, 1 for a mark
 * @epoch_end: snd_nxt when the open ECE epoch began, see sbrm_marks_watch()
 * @plain: packets in the plain average of marks, U16_MAX when it is over
 * @epochs: ECE epochs so far; this and the next two saturate
 * @latched: ACKs with ECE inside of epochs
 * @clear: ACKs without ECE outside of epochs, after the first
 */
struct sbrm_marks {
	u64	bits;
	u32	epoch_end;
	u16	plain;
	u16	epochs;
	u16	latched;
	u16	clear;
};

/**
 * struct sbrm_field - the price field, see sbrm_carrier.c
 * @bit: four-bit: share of packets in which each bit was set, Q32
 * @echo: receiver: what the next ACK says: field + 1, 0 for nothing
 * @last: receiver: field of the last packet
 * @step: receiver: difference of the last two
 * @jump: receiver: mean size of that difference
 */
struct sbrm_field {
	u32	bit[SBRM_BITS];
	u16	echo;
	u16	last;
	u16	step;
	u16	jump;
};

/**
 * struct sbrm - one connection, in inet_csk_ca()
 * @net: settings of the socket's namespace; from there they would be four lines
 *	of the cache away, which have gone when the next ACK comes. NULL until
 *	init() has run, see sbrm_is_ready()
 * @cwnd: window, segments in Q32
 * @marks: for the estimators that count marks
 * @field: for those that read the price field (@carrier is set)
 * @delivered: tp->delivered at the last update
 * @delivered_ce: tp->delivered_ce at the last update
 * @mark: estimate of the share m of marked packets, Q32; unused with @carrier
 * @price: price of the path at the last update, Q28
 * @rtt_us: round-trip time in force, 1 .. 2^24 us; see also sbrm_relative_rtt()
 * @rtt_last_us: last sample of it; 0 before the first
 * @prior_halved: @halved before the last loss, for undo
 * @prior_slow_start: the same of @slow_start
 * @priced: a price has been seen
 * @in_turn: relative: one packet on its way, see sbrm_relative_in_turn()
 * @told: relative: packets without a mark have come since dozens in a row had one
 * @few: relative: few packets are marked, see sbrm_relative_shift()
 * @acked_us: low word of the time of the last ACK
 * @waited_us: time before it that no segment has stood for yet
 * @gap: mean time between segments, in 2^-4 us, for the AIMD forms
 * @born: tcp_jiffies32 when the connection was made
 * @rtt_slow: relative, instead: average round-trip time of two seconds, in
 *	2^-6 us, at most 2^30; 0 before the first
 * @cut_end: while @cut: when this is acknowledged, a second cut is allowed
 * @step_end: Vegas/CP, the same word: when this is acknowledged, the next step is due.
 *	A cut by ECE beside the price field puts it off
 * @round_cut_end: relative, the same word: when this is acknowledged, @round_cut begins
 *	anew. After slow start it is what @balance was, and no sequence number
 * @balance: relative, in slow start, the same word: what was due less what was charged,
 *	marks in Q16
 * @rcv_prior_nxt: receiver: rcv_nxt before the last packet
 * @prior_cwnd: window before the last loss, for undo, segments in Q8
 * @seen: what the last ACK said of the price field: field + 1, 0 for nothing
 * @quiet: time since the last mark, in 2^6 us; saturates
 * @round_cut: relative, instead: how far the window was cut in this round trip,
 *	logarithm in Q14
 * @proof: how well prices explain the rate, marks in Q7, see sbrm_loss.c
 * @wary: losses were congestion in spite of such a proof: ask for more of it
 * @lost: losses beyond what is tolerated, in 2^-6
 * @halved: a loss did, and no price has been seen since
 * @spared: the last loss did not cut the window
 * @run: receiver: packets in a row whose field went up by the same step
 * @silent: segments acknowledged without an echo of the field
 * @unsettled: init() ran before the answer to our SYN, see sbrm_echo_settle()
 * @source: an &enum sbrm_source
 * @estimator: an &enum sbrm_estimator
 * @echo: an &enum sbrm_echo
 * @carrier: the price field is used: @field, not @marks
 * @epoch: an ECE epoch is open
 * @cut: no second cut before @cut_end
 * @grown: the connection is no longer young
 * @slow_start: no price seen since the start or a timeout; the window alone
 *	cannot tell, since it falls below snd_ssthresh again at any mark
 * @rcv_ce: receiver: the last packet was marked
 * @rcv_any: receiver: @field.last is valid
 * @rcv_bad: receiver: the field is rewritten on the way, do not echo it
 */
struct sbrm {
	const struct sbrm_net *net;
	u64	cwnd;
	union {
		struct sbrm_marks marks;
		struct sbrm_field field;
	};
	u32	delivered;
	u32	delivered_ce;
	u32	mark;
	u32	price;
	u32	rtt_us;
	u32	rtt_last_us:25,
		prior_halved:1,
		prior_slow_start:1,
		priced:1,
		in_turn:1,
		told:1,
		few:1;
	u32	acked_us;
	u32	waited_us;
	u32	gap;
	union {
		u32	born;
		u32	rtt_slow;
	};
	union {
		u32	cut_end;
		u32	step_end;
		u32	round_cut_end;
		s32	balance;
	};
	u32	rcv_prior_nxt;
	u32	prior_cwnd;
	u16	seen;
	union {
		u16	quiet;
		u16	round_cut;
	};
	u16	proof:15,
		wary:1;
	u16	lost:14,
		halved:1,
		spared:1;
	u8	run;
	u8	silent:6,
		unsettled:1,
		cut:1;
	u8	source:3,
		estimator:3,
		carrier:1,
		epoch:1;
	u8	echo:3,
		grown:1,
		slow_start:1,
		rcv_ce:1,
		rcv_any:1,
		rcv_bad:1;
};

/**
 * struct sbrm_ack - what one ACK brings
 * @acked: segments newly delivered, 1 .. 2^20
 * @lost: segments found to be lost, at most 2^20
 * @marked: of @acked, marked
 * @last_us: low word of the time of the ACK before
 * @time_us: time between them, at most SBRM_TIME_MAX_US
 * @now_us: low word of the time of this one
 * @random: random bits, for whatever this ACK needs them
 * @ece: the ACK says that a mark was seen
 * @app_limited: the window was not used
 * @wtp: what the flow is willing to pay, see sbrm_wtp()
 * @due: the same for @time_us, segments times price in Q32
 * @paid: what the segments stand for, in the same unit, below 2^56
 *
 * No two that are next to each other are looked at together: compilers make one
 * load of that, which has to wait until both stores before it have left.
 */
struct sbrm_ack {
	u32	acked;
	u32	lost;
	u32	marked;
	u32	last_us;
	u32	time_us;
	u32	now_us;
	u32	random;
	bool	ece;
	bool	app_limited;
	u64	wtp;
	s64	due;
	s64	paid;
};

/**
 * sbrm_is_ready() - is the private area of a socket a connection of ours?
 * @sk: socket
 *
 * The stack calls most callbacks before init() as well: SYNs and SYN-ACKs are
 * lost, sent again, acknowledged, and their loss is undone. Then the area is
 * zero, or, where the route has just replaced another congestion control,
 * still that one's. MPTCP calls release() for sockets that are not even TCP.
 *
 * Return: false before init() and after release(); nothing in the area means
 * anything then, and nothing may be changed there.
 */
static inline bool sbrm_is_ready(const struct sock *sk)
{
	const struct sbrm *ca = inet_csk_ca(sk);

	return inet_csk(sk)->icsk_ca_initialized && ca->net;
}

/* TCP/RM, by choice or because nothing better comes back. */
static inline bool sbrm_is_rm(const struct sbrm *ca)
{
	return ca->source == SBRM_SOURCE_RM || ca->echo >= SBRM_ECHO_LATCHED;
}

/* The window moves by sbrm_relative.c. */
static inline bool sbrm_is_relative(const struct sbrm *ca)
{
	return ca->source == SBRM_SOURCE_RELATIVE && !sbrm_is_rm(ca);
}

/* The source relative, which takes marks as they come for its price. */
static inline bool sbrm_by_marks(const struct sbrm *ca)
{
	return ca->source == SBRM_SOURCE_RELATIVE && !ca->carrier &&
	       ca->estimator != SBRM_ESTIMATOR_HISTORY;
}

/*
 * The files below stand in an order: each calls those that come after it only.
 * sbrm.c comes first.
 */

/* sbrm_echo.c */
void sbrm_echo_begin(struct sock *sk, struct sbrm *ca);
bool sbrm_echo_settle(const struct sock *sk, struct sbrm *ca);
void sbrm_echo_watch_slow(const struct sock *sk, struct sbrm *ca,
			  const struct sbrm_ack *ack);
void sbrm_echo_receive(struct sock *sk, bool ce);

/* sbrm_carrier.c */
void sbrm_carrier_use(struct sock *sk);
bool sbrm_carrier_is_early(const struct sock *sk);
int sbrm_carrier_register(void);
void sbrm_carrier_unregister(void);

/* sbrm_info.c */
size_t sbrm_get_info(struct sock *sk, u32 ext, int *attr,
		     union tcp_cc_info *info);
bool sbrm_owns(const struct sock *sk);

/* sbrm_source.c */
int sbrm_balance(const struct sock *sk, const struct sbrm *ca, s64 price);
s64 sbrm_source_step_slow(struct sock *sk, struct sbrm *ca,
			  const struct sbrm_ack *ack, s64 price);

/* sbrm_idle.c */
void sbrm_restart(struct sock *sk, struct sbrm *ca);
void sbrm_decay(struct sock *sk, struct sbrm *ca, const struct sbrm_ack *ack,
		u32 unused);

/* sbrm_window.c */
u64 sbrm_cwnd_bound(const struct tcp_sock *tp, const struct sbrm *ca, u64 cwnd);
void sbrm_pace(struct sock *sk, const struct sbrm *ca, u64 cwnd, u16 random);

/* sbrm_relative.c */
void sbrm_relative_begin(struct sbrm *ca);
u64 sbrm_relative_start_end(const struct sock *sk, struct sbrm *ca,
			    const struct sbrm_ack *ack);
u64 sbrm_relative_paid(const struct sbrm *ca, const struct sbrm_ack *ack);
s64 sbrm_relative_step(const struct sock *sk, struct sbrm *ca,
		       const struct sbrm_ack *ack, s64 due);
u32 sbrm_relative_rtt_small(const struct sbrm *ca);
void sbrm_relative_slow_step(struct sbrm *ca, const struct sbrm_ack *ack);
s64 sbrm_relative_in_turn(const struct sock *sk, struct sbrm *ca,
			  const struct sbrm_ack *ack);

/* sbrm_loss.c */
bool sbrm_spares_loss(const struct sbrm *ca);
s64 sbrm_forgotten_part(s64 short_of, u64 climb, u64 cwnd);
bool sbrm_loss_count(struct sbrm *ca, const struct sbrm_ack *ack);
void sbrm_loss_priced(struct sbrm *ca);
void sbrm_loss_queued(const struct sock *sk, struct sbrm *ca);

/* sbrm_payment.c */
u32 sbrm_kappa_slow(struct sbrm *ca);

/* sbrm_estimator.c */
s64 sbrm_estimate_slow(struct sbrm *ca, const struct sbrm_ack *ack);
void sbrm_estimator_restart(struct sbrm *ca);
u32 sbrm_mark_share(const struct sbrm *ca);

/* sbrm_random.c */
DECLARE_PER_CPU(u64, sbrm_random);
void sbrm_random_init(void);

/*
 * What each ACK needs is no call: the registers that a call saves cost more than
 * most of these do.
 */

/**
 * sbrm_random_u32() - draw a random number
 *
 * Return: 32 bits.
 */
static inline u32 sbrm_random_u32(void)
{
	u32 value = tollway_random_u32(&get_cpu_var(sbrm_random));

	put_cpu_var(sbrm_random);
	return value;
}

/**
 * sbrm_wtp() - willingness to pay of a flow, w ln(phi)
 * @sk: socket
 * @ca: its private area
 *
 * Return: packets/s in Q24, below 2^49: w is at most 10^7, and ln(phi) at most
 *	ln(16) < 2.78, which is less than 2^25 together.
 */
static inline u64 sbrm_wtp(const struct sock *sk, const struct sbrm *ca)
{
	u32 priority = READ_ONCE(sk->sk_priority);
	u64 wtp = likely(priority < SBRM_WTP_CLASSES) ?
		  READ_ONCE(ca->net->wtp[priority]) :
		  READ_ONCE(ca->net->wtp[SBRM_WTP_CLASSES - 1]);

	return wtp * READ_ONCE(ca->net->ln_phi);
}

/**
 * sbrm_paid() - what a flow pays in some time
 * @wtp: sbrm_wtp() of the flow
 * @time: in 2^-@shift us, below 2^(26 + @shift)
 * @shift: fractional bits of @time, at most 4
 *
 * Return: segments times price in Q32, below 2^63.
 */
static inline s64 sbrm_paid(u64 wtp, u32 time, unsigned int shift)
{
	/* Eight of the places of @wtp stay: below 2^(49 + 30 - 16) = 2^63. */
	u64 paid = mul_u64_u32_shr(wtp, time, SBRM_LN_PHI_SHIFT - 8);

	/*
	 * By 10^6, as us were seconds: 2251799814 is 2^51 / 10^6, and 2^52 / 10^6
	 * does not fit 32 bits. From 8 + @shift places to those of Q32.
	 */
	return mul_u64_u32_shr(paid, 2251799814U, 51 - FIXP_SHIFT + 8 + shift);
}

/**
 * sbrm_kappa() - gain in force
 * @ca: connection
 *
 * Return: kappa in Q28, at most 10.0.
 */
static inline u32 sbrm_kappa(struct sbrm *ca)
{
	u32 kappa = READ_ONCE(ca->net->kappa);

	if (likely((ca->grown || READ_ONCE(ca->net->kappa_young) <= kappa) &&
		   !READ_ONCE(ca->net->kappa_window)))
		return kappa;
	return sbrm_kappa_slow(ca);
}

/**
 * sbrm_echo_watch() - find out how the price comes back, if it does
 * @sk: socket
 * @ca: its private area
 * @ack: what the ACK brought
 *
 * Nothing is left to find out of marks once each of them is echoed.
 */
static inline void sbrm_echo_watch(struct sock *sk, struct sbrm *ca,
				   const struct sbrm_ack *ack)
{
	if (unlikely(ca->carrier || ca->echo < SBRM_ECHO_PACKET ||
		     ca->echo > SBRM_ECHO_ACCECN))
		sbrm_echo_watch_slow(sk, ca, ack);
}

/* The share of marks is an average over so many packets, 2^n. */
static inline u32 sbrm_relative_shift(const struct sbrm *ca)
{
	return ca->few ? SBRM_RELATIVE_FEW_SHIFT : SBRM_RELATIVE_SHIFT;
}

/**
 * sbrm_estimate() - take what an ACK brings into the estimate
 * @ca: connection
 * @ack: what the ACK brought
 * @by_marks: sbrm_by_marks()
 *
 * With the source relative most ACKs are of one segment without a mark: the
 * average becomes less by its part then, as sbrm_average() would make it.
 *
 * Return: price of the path for the segments of the ACK, Q32, below 2^36; 0 with
 *	@by_marks, see sbrm_relative_paid().
 */
static inline s64 sbrm_estimate(struct sbrm *ca, const struct sbrm_ack *ack,
				bool by_marks)
{
	if (unlikely(!by_marks || ack->marked || ack->acked != 1 ||
		     ca->marks.plain != U16_MAX))
		return sbrm_estimate_slow(ca, ack);

	ca->mark = (FIXP_ONE - (FIXP_ONE >> sbrm_relative_shift(ca))) * ca->mark >> FIXP_SHIFT;
	return 0;
}

/**
 * sbrm_relative_slow() - keep the slow round-trip time
 * @ca: connection with %SBRM_SOURCE_RELATIVE
 * @ack: what the ACK brought
 *
 * For each ACK, also in a recovery, and while TCP/RM takes the place of the source.
 * Between two steps there is nothing to do.
 */
static inline void sbrm_relative_slow(struct sbrm *ca, const struct sbrm_ack *ack)
{
	if (unlikely(!ca->rtt_slow ||
		     (ack->now_us ^ ack->last_us) >> SBRM_RTT_SLOW_US_SHIFT))
		sbrm_relative_slow_step(ca, ack);
}

/**
 * sbrm_source_step() - how far an ACK moves the window
 * @sk: socket
 * @ca: its private area
 * @ack: what the ACK brought
 * @price: price of the path, Q32
 *
 * Return: change of the window, segments in Q32, size below 2^56.
 */
static inline s64 sbrm_source_step(struct sock *sk, struct sbrm *ca,
				   const struct sbrm_ack *ack, s64 price)
{
	/* It has no kappa, and without the price field no cut by ECE. */
	if (likely(sbrm_is_relative(ca) && !ca->carrier && !ca->cut))
		return sbrm_relative_step(sk, ca, ack, ack->due);
	return sbrm_source_step_slow(sk, ca, ack, price);
}

/*
 * From 2^1 segments on, half of the round-trip time to pace by is the last one, and half
 * the slow one. (With the price field, all of it is the last one from 2^2 segments on.)
 * Below, the last one counts less, down to nothing: the next sample comes with the next
 * packet, and what it says of the queue is late by that much more. With 2^2, four flows at
 * 1 Mb/s and 5 ms had 97 instead of 48 ms at the 99th percentile.
 */
#define SBRM_RTT_HALF_CWND_SHIFT	1

/**
 * sbrm_relative_rtt() - round-trip time to pace by
 * @ca: connection
 *
 * By the last one alone a queue that is longer by q slows the flow by q / RTT, a round trip
 * later. That is (q / RTT)' = -(q / RTT) / RTT with a delay of RTT, which swings for many
 * round trips: its phase margin is pi / 2 - 1, a third of a right angle. With half of it
 * the margin is pi / 2 - 1/2. What the queue is in the mean of two seconds still counts in
 * full, and the window still bounds what is on its way. With a quarter, windows are the
 * only bound for too long: four flows at 1 Mb/s and 200 ms had 75 instead of 33 ms in the
 * mean. With all of it, 36 flows at 100 Mb/s and 200 ms had 32 instead of 4.8 ms at the
 * 99th percentile, from 3 s after the start.
 *
 * Of the slow one no more counts than twice the last one, so that this is at most half as
 * much again as the last one: where a path has become shorter by ten times, a flow would
 * have a fifth of its rate for a second, and take it for one that its program holds back,
 * see sbrm_unused().
 *
 * In slow start it is the last one, and the window is what counts. With the price field it is
 * the last one from 2^2 segments on: over the paper's law, all of it is needed. (10 Mb/s,
 * 60 ms, one flow: with half of it, it swings, and pays 15 % too much.) Not below that: 36 flows
 * over the law delay at 10 Mb/s and 20 ms had 92 % of the link, and 104 instead of 10 ms at the
 * 99th percentile.
 *
 * Where flows have one packet each on its way, ACKs are the clock, and half of the time is
 * enough for bursts to be paced.
 *
 * Return: 2^-6 us, at most 2^31.
 */
static inline u32 sbrm_relative_rtt(const struct sbrm *ca)
{
	u32 last = ca->rtt_us << SBRM_RTT_SLOW_SHIFT;

	if (unlikely(ca->slow_start || !ca->rtt_slow))
		return last;
	if (likely(ca->cwnd >= FIXP_ONE << (SBRM_RTT_HALF_CWND_SHIFT + ca->carrier)))
		return unlikely(ca->carrier) ? last :
		       (last + min(ca->rtt_slow, 2 * last)) / 2;
	if (unlikely(ca->in_turn))
		return last / 2;
	return sbrm_relative_rtt_small(ca);
}

/**
 * sbrm_cwnd_set() - set the window
 * @sk: socket
 * @ca: its private area
 * @cwnd: segments in Q32; what is too small, or negative, or too large becomes the
 *	bound
 */
static inline void sbrm_cwnd_set(struct sock *sk, struct sbrm *ca, u64 cwnd)
{
	struct tcp_sock *tp = tcp_sk(sk);

	/* The larger of the least windows: what is above is above both. */
	if (unlikely(cwnd < SBRM_CWND_MIN || cwnd > SBRM_CWND_MAX ||
		     cwnd > (u64)tp->snd_cwnd_clamp << FIXP_SHIFT))
		cwnd = sbrm_cwnd_bound(tp, ca, cwnd);
	ca->cwnd = cwnd;
	/*
	 * The rate is held by pacing; the whole window must not be in its way.
	 * So it is rounded up, and leaves room for the segment whose ACK a
	 * receiver holds back. In slow start the window itself is the limit: no
	 * more than initcwnd may leave at first, nor more than two segments for
	 * the first ACK after a timeout (RFC 5681). And it is one segment where
	 * the queue serves flows in turn. Below 2^25.
	 */
	tcp_snd_cwnd_set(tp, min_t(u32, tp->snd_cwnd_clamp,
				   (u32)((cwnd + FIXP_ONE - 1) >> FIXP_SHIFT) +
				   !(ca->slow_start | ca->in_turn)));
}

/**
 * sbrm_forgotten() - what a price too low takes from the proof
 * @ca: connection
 * @short_of: what it is short of, marks in Q32, below 2^63
 *
 * Without any price half of w is forgotten in a second while the window climbs
 * by kappa w. By the time it has grown by its own size, that is cwnd / (2 kappa)
 * marks: no more than a full proof shall be lost on the way. Not with the source
 * relative: such a window doubles in few marks, whatever its size.
 *
 * Return: marks in Q32.
 */
static inline s64 sbrm_forgotten(struct sbrm *ca, s64 short_of)
{
	/*
	 * Twice kappa times a full proof of 256 marks, 2^9 kappa: segments in Q32.
	 * kappa is below 10.0: 2^3.4 2^9 2^32 is below 2^46.
	 */
	u64 climb = (u64)sbrm_kappa(ca) << (FIXP_SHIFT - SBRM_KAPPA_SHIFT + 9);

	if (likely(ca->cwnd <= climb))
		return short_of;
	return sbrm_forgotten_part(short_of, climb, ca->cwnd);
}

/**
 * sbrm_loss_update() - take what an ACK brings into proof and losses
 * @ca: connection
 * @ack: what the ACK brought
 *
 * Return: true if the losses are congestion, in spite of the proof.
 */
static inline bool sbrm_loss_update(struct sbrm *ca, const struct sbrm_ack *ack)
{
	/* Below 2^56; the other, which is not negative, below 2^63. */
	s64 gain = ack->paid - (s64)((u64)ack->due / 2);

	if (unlikely(ca->source != SBRM_SOURCE_RELATIVE) && gain < 0)
		gain = -sbrm_forgotten(ca, -gain);
	/*
	 * Much of it is less than one in the last place, in Q7: round at random. For
	 * that it keeps 16 places more, to which 16 random bits are added.
	 */
	gain = ((gain >> (FIXP_SHIFT - SBRM_PROOF_SHIFT - 16)) +
		(u16)ack->random) >> 16;
	ca->proof = clamp_t(s64, ca->proof + gain, 0, SBRM_PROOF_MAX);
	if (unlikely(ca->wary) && ca->proof >= SBRM_PROOF_AGAIN)
		ca->wary = 0;

	/* Nothing is lost, nor was it: there is nothing to forget. */
	if (likely(!ca->lost && !ack->lost))
		return false;
	return sbrm_loss_count(ca, ack);
}

#endif /* _SBRM_H */
