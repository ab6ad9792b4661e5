/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of tcp_pp share: a connection, its rate (pp.c) and what it
 * makes of its path (pp_path.c). The arithmetic is in pp_model.h.
 *
 * Where s_hat comes from, and what the rate follows. The first line whose condition
 * holds counts:
 *
 *	state	  condition			s_hat			rate
 *	window	  shared && !watched		what arrives		pp_share_control()
 *	start	  !estimate.service		none			pp_start_*()
 *	watched	  shared && watched		what arrives		the law
 *	bunched	  train.bunched			marks, pp_bunch.c	the law, pp_law_probe()
 *	delayed	  delayed			trains of four, or	the law
 *							distances of pairs
 *	gro	  train.gro			second trains of two	the law
 *	pairs	  none of these			pairs			the law
 *
 * What the law is, and what becomes of the rate that it tells:
 *
 *	continuous  law == PP_LAW_CONTINUOUS	pp_law_continuous(), with each sample
 *	discrete    law == PP_LAW_DISCRETE	pp_law_discrete(), once in a round trip
 *	rising	    rising, n_hat <= 2		pp_law_rise() makes it less
 *	draining    draining			pp_law_drain() makes it more
 *	unpaired    pp_is_unpaired()		pp_law_probe() makes it more, at the start
 *
 * Besides, a connection may be
 *
 *	stopped	  pp_pace_is_stopped()	no more than a round trip ago it began to send nothing
 *					for a time: pp_law_stop(), a look or a peek at R
 *	looking	  looking		this round trip began with a stop to see R, pp_delay.c:
 *					it tells R, and nothing else
 *	wary	  wary			a pause has filled any token bucket: pp_path_hold();
 *					bunched: a peek may show, pp_bunch_has_peeked()
 *	turning	  turn			the stack does not pace until what leaves is charged,
 *					pp_pace.c; not in window and watched
 *	cut off	  pp_pace_is_cut_off()	a window of the sysctls has no room for a train:
 *					nothing leaves until it has, pp_pace_cut_off()
 *
 * What of struct pp means something in some of these states only. What is indented
 * is a word, or a byte, of the line above it:
 *
 *	mean_rate	not window: a rate; window: the time of its plateau
 *	misfits		neither shared nor bunched
 *	   watched_rounds	watched
 *	   long_queues		bunched
 *	round_start, round_us	not bunched
 *	   mark_delivered, mark_us  bunched: there a round trip goes from mark to mark
 *	merged_acks	a count; delayed, bunched: PP_ACK_LATE, PP_ACK_MANY
 *	turn_bytes	turning
 *	   window		watched: cwnd_before; window: fits, rounds; both: waited, known
 *	history		not bunched
 *	   slot			bunched
 *	train.missed	not bunched
 *	   train.probe		bunched
 *	stop_us		continuous
 *	   epoch_queue		discrete
 *	full		not bunched: round trips; bunched: what ACKs are held back for
 *	estimate.sudden, estimate.slower
 *			bunched: see pp_bunch_held() and pp_push_is_held()
 *	train.gro_seen	train.extra: two trains leave at once
 *	short_rounds	!train.extra: one train leaves at once; without pairs: pushes
 *	rtt_fell	watched
 *	unmarked	bunched
 */
#ifndef _PP_H
#define _PP_H

#include <net/inet_connection_sock.h>
#include <net/tcp.h>

#include "compat.h"
#include "pp_model.h"
#include "pp_net.h"

/* State of a connection as ss shows it, in PP_STATE_UNIT. */
#define PP_STATE_START		1
#define PP_STATE_RISING		2
#define PP_STATE_DRAINING	4
#define PP_STATE_DELAYED	8
#define PP_STATE_SHARED		16
#define PP_STATE_BUNCHED	32
#define PP_STATE_WINDOW		64
#define PP_STATE_CUT_OFF	128
#define PP_STATE_GRO		256
#define PP_STATE_UNIT		10000

/**
 * struct pp - one connection, in inet_csk_ca()
 * @net: settings of the socket's namespace; from there they would be four lines
 *	of the cache away, which have gone when the next ACK comes. NULL until
 *	init() has run, see pp_is_ready()
 * @estimate: service time of the bottleneck
 * @mean_rate: mean of the rate at which to send, packets/s in Q16. While a window controls:
 *	the time of its plateau in ticks, or 0, see pp_share_growth()
 * @misfits: round trips that do not look like those of a queue of our own, weighted,
 *	see PP_MISFIT_STEP
 * @watched_rounds: while @watched: round trips since that began
 * @long_queues: with bursts of ACKs: round trips in a row with far too long a queue, and those
 *	that have lost far too much, see PP_BUNCH_LOSSY
 * @hold: round trips until @delay_us may be raised again
 * @epoch_rate: 1 / s_hat when the round trip began, or when something was sent after a
 *	pause in it; in PP_PUSH_WAIT, and while @watched if the law is continuous, what the
 *	rate is compared with, see pp_share_push() and pp_share_before().
 * @push: &enum pp_push
 * @losses: segments lost in this round trip; what the last two values mean see
 *	PP_LOSSES_FULL
 * @rounds: round trips since the setpoint was raised
 * @turn: a train, or two, may leave that the stack does not pace
 * @tries: setpoints that were too much, see pp_setpoint()
 * @raised: the setpoint was raised since it was too much
 * @law: &enum pp_law in force: the continuous one has @stop_us, the discrete one
 *	@epoch_queue
 * @train: ACKs of the open train
 * @epoch_queue: n_hat when the round trip began, Q8
 * @stop_us: low word of the time at which it last stopped, to let a queue drain or
 *	to look at R
 * @delay_us: propagation delay R, us; 0 before the first sample
 * @wary: round trips in which s_hat becomes smaller slowly, as a pause has filled any
 *	token bucket, see PP_WARY. With bursts of ACKs: in which a peek at R may show, see
 *	pp_bunch_has_peeked()
 * @looking: this round trip began with a stop to see R
 * @short_rounds: while one train is sent at once: round trips in a row that fell short,
 *	see PP_SHORT_ROUNDS. Without pairs: pushes in vain; saturates, see PP_PUSH_TIMES
 * @rtt_us: round-trip time of the last ACK that had one, us
 * @full: round trips that look as if the queue is full of ours, weighted, see
 *	PP_FULL_LOSSES. With bursts of ACKs: what ACKs are held back for, see pp_held_us()
 * @queue: n_hat, Q8
 * @setpoint: B, Q8
 * @marked: the setpoint is to be cut for a mark, see pp_set_state()
 * @lossy: until so much has arrived without a loss, PP_LOSSY_SHIFT, each loss counts
 * @round_start: tp->delivered when the round trip began
 * @mark_delivered: with bursts of ACKs, the same word: tp->delivered at the last mark, at
 *	which a round trip begins then
 * @round_us: low word of the time at which the round trip began
 * @mark_us: with bursts of ACKs, the same word: low word of the time of the last mark
 * @flight: most that a round trip delivered, in this one, Q8
 * @flight_last: the same of the one before
 * @low_us: least round-trip time in this round trip, us; PP_LOW_NONE before the first.
 *	While @watched: what it was when that began
 * @fastest: without pairs: code of the least s_hat of late, see pp_share_doubt()
 * @turn_bytes: while @turn: low word of tp->bytes_sent when it began
 * @window: with @shared, where there are no turns, see pp_share.c
 * @window.fits: what speaks for a queue of our own
 * @window.cwnd_before: while @watched: the window until then, or 0
 * @window.rounds: round trips since it began, or since the path was watched
 * @window.known: bits: PP_PUSHED, PP_WATCHED, PP_AS_BEFORE
 * @window.waited: in one of them, or before, packets waited
 * @rising: the adaptive rise holds the rate down
 * @draining: the rate is that of a queue which drains
 * @after_idle: the next packet is the first after an idle time, so that no other
 *	packet of ours is on the path
 * @empty: n_hat was small in this round trip
 * @was_empty: the same of the one before
 * @paired: a sample came in this round trip
 * @pairs_faster: with @shared: a pair of this round trip was served at more than 4/3
 *	of the rate at which packets arrive, so others have a part of the link
 * @shared: the bottleneck does not keep flows apart: s_hat is what arrives
 * @watched: with @shared: the round-trip time is watched
 * @rtt_fell: while @watched: it fell
 * @unmarked: with bursts of ACKs: the end of none is known
 * @delayed: the receiver delays ACKs: s_hat is from the distances of ACKs, and trains are
 *	of four segments if R is long, see pp_train_is_four()
 * @settled: packets have been waiting at the bottleneck
 * @merged_acks: ACKs in a row that stand for a pair; once they are delayed, or come
 *	in bursts, what they were like, see PP_ACK_LATE
 * @slot: with bursts of ACKs: longest silence between them of late, PP_SLOT_SHIFT
 * @history: otherwise
 * @history.relapses: times that the queue was found to be shared again too soon
 * @history.since: round trips since it was shared; saturates
 * @history.looks: looks at R for losses, since R changed by much or a timeout; saturates,
 *	see PP_LOOKS
 * @history.peeks: times for a peek at R that have passed since R changed by much, an idle
 *	time or a timeout; saturates, see PP_PEEKS
 */
struct pp {
	const struct pp_net	*net;
	struct pp_estimate	estimate;
	/* The bytes that follow are in what this leaves of its word. */
	u64			mean_rate:48;
	union {
		u8		misfits;
		u8		watched_rounds;
		u8		long_queues;
	};
	u8			hold;
	u64			epoch_rate:46,
				push:2,
				losses:8,
				rounds:2,
				turn:1,
				law:1,
				tries:3,
				raised:1;
	struct pp_train		train;
	union {
		u32		epoch_queue;
		u32		stop_us;
	};
	u32			delay_us:25,
				wary:4,
				looking:1,
				short_rounds:2;
	u32			rtt_us:25,
				full:7;
	u32			queue;
	u32			setpoint:23,
				marked:1,
				lossy:8;
	union {
		u32		round_start;
		u32		mark_delivered;
	};
	union {
		u32		round_us;
		u32		mark_us;
	};
	u32			flight;
	u32			flight_last;
	u32			low_us:25,
				fastest:7;
	union {
		u32		turn_bytes;
		struct {
			union {
				u16 fits;
				u16 cwnd_before;
			};
			u16	rounds:12,
				known:3,
				waited:1;
		} window;
	};
	u16			rising:1,
				draining:1,
				after_idle:1,
				empty:1,
				was_empty:1,
				paired:1,
				pairs_faster:1,
				shared:1,
				watched:1,
				rtt_fell:1,
				unmarked:1,
				delayed:1,
				settled:1,
				merged_acks:3;
	union {
		u16		slot;
		struct {
			u8	relapses:4,
				looks:2,
				peeks:2;
			u8	since;
		} history;
	};
};

/* What @fastest is while there is none. */
#define PP_FASTEST_NONE		127

/* What @low_us is while there is none; it is above PP_RTT_MAX_US. */
#define PP_LOW_NONE		(BIT(25) - 1)

/* Silences are in units of 2^4 us: 16 bits hold up to 2^20 us, a second. */
#define PP_SLOT_SHIFT		4

/**
 * pp_is_ready() - is the private area of a socket a connection of ours?
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
static inline bool pp_is_ready(const struct sock *sk)
{
	const struct pp *ca = inet_csk_ca(sk);

	return inet_csk(sk)->icsk_ca_initialized && ca->net;
}

/* Up to this queue the estimates are taken with caution, PP94 section 5. */
static inline bool pp_is_low(const struct pp *ca)
{
	return ca->queue <= PP_QUEUE_LOW;
}

/* Do ACKs come in bursts? */
static inline bool pp_is_bunched(const struct pp *ca)
{
	return ca->train.bunched;
}

/*
 * With bursts of ACKs: a peek at R makes the queue empty, or has just done so. That nothing waits
 * is no sign of room then, and what arrives is not what is served.
 */
static inline bool pp_bunch_has_peeked(const struct pp *ca)
{
	return pp_is_bunched(ca) && ca->wary;
}

/*
 * Where ACKs are delayed, a pair has one ACK, and tells nothing by itself. Four segments
 * that leave back to back have two, and the distance of these is the time in which two
 * of them were served, whatever waited before them.
 */
#define PP_TRAIN_DELAYED	4

/*
 * Only where R holds more than 2^6 packets of ours: in ns of Q10, a 64th of a us is
 * 16000. On shorter paths round-trip times show soon what waits, and pairs are enough. With
 * four, the queue of a flow is empty now and then: four flows at 10 Mb/s and 80 ms, where R
 * holds 17 packets of each, had shares that were 0.7 % off, and 0.04 % with pairs.
 */
#define PP_TRAIN_LONG_NS	16000U

/* Does R hold more than 64 packets, with this service time? */
static inline bool pp_is_long(const struct pp *ca, u64 service)
{
	return (u64)ca->delay_us * PP_TRAIN_LONG_NS > service;
}

static inline bool pp_train_is_four(const struct pp *ca)
{
	return unlikely(ca->delayed) && pp_is_long(ca, ca->estimate.service);
}

/**
 * pp_train_of() - segments of a train: one skb
 * @net: settings
 * @four: pp_train_is_four()
 *
 * If the sysctl window has no room for a train of four, pairs stay: of three segments,
 * one would wait for the timer of the receiver.
 */
static inline u32 pp_train_of(const struct pp_net *net, bool four)
{
	u32 train = READ_ONCE(net->train), window;

	if (likely(!four))
		return train;
	window = READ_ONCE(net->window);
	return window && window < PP_TRAIN_DELAYED ? train :
						     max_t(u32, train, PP_TRAIN_DELAYED);
}

/*
 * Bits of window.known: a push has shown that the queue is shared; the path was watched since
 * the window began; while it is watched: as much has arrived as before. In a queue that others
 * keep full, delays do not fall when the path is watched. Pairs would show soon that an R which
 * was raised for that is wrong. Without them it is raised at the second time only.
 */
#define PP_PUSHED		BIT(0)
#define PP_WATCHED		BIT(1)
#define PP_AS_BEFORE		BIT(2)

/* Were packets marked in this round trip, or in the one before? */
static inline bool pp_is_marked(const struct sock *sk)
{
	return inet_csk(sk)->icsk_ca_state == TCP_CA_CWR;
}

/* Does a window control, and not the law? */
static inline bool pp_is_window(const struct pp *ca)
{
	return ca->shared && !ca->watched;
}

/*
 * Segments of a train. A window that was found without pairs does not use them: there segments
 * leave one by one. In a FIFO that is full one packet leaves at a time, so the second one of a
 * pair finds no room, and the others of the FIFO have fewer losses: with trains of four a flow
 * had 1.19 of an equal share in the mean beside one of cubic, and up to 1.50 (50 Mb/s, 40 ms,
 * delayed ACKs).
 */
static inline u32 pp_train_segs(const struct pp *ca)
{
	if (unlikely(pp_is_window(ca) && ca->window.known & PP_PUSHED))
		return 1;
	return pp_train_of(ca->net, pp_train_is_four(ca));
}

/* Segments that are sent at once: a train, or two. */
static inline u32 pp_train_sent(const struct pp *ca)
{
	return pp_train_segs(ca) << ca->train.extra;
}

/*
 * Does no pair tell the service time? Then it is what arrives, which in a queue that others
 * share is what this connection sends, see pp_share_doubt().
 */
static inline bool pp_is_blind(const struct pp *ca)
{
	return pp_is_bunched(ca) || (ca->delayed && !pp_train_is_four(ca));
}

/**
 * enum pp_push - without pairs: does more arrive if more is sent? See pp_share_doubt()
 * @PP_PUSH_NONE: no push
 * @PP_PUSH_SEND: more is sent, for a round trip, or until the share has become less
 * @PP_PUSH_WAIT: what was sent then arrives
 */
enum pp_push {
	PP_PUSH_NONE,
	PP_PUSH_SEND,
	PP_PUSH_WAIT,
};

/* The most pushes in vain that count, in the two bits of short_rounds. */
#define PP_PUSH_TIMES		3U

/*
 * s_hat in steps of a quarter of an octave (1, 5/4, 3/2 and 7/4 times a power of two): 0 for
 * PP_SERVICE_MIN, and below PP_FASTEST_NONE.
 */
static inline u32 pp_service_code(u64 service)
{
	u32 octave = fls64(max(service, PP_SERVICE_MIN)) - 1;

	return min_t(u64, (octave - PP_SERVICE_SHIFT) * 4 + (service >> (octave - 2) & 3),
		     PP_FASTEST_NONE - 1);
}

/* What an ACK may wait for its burst, us. */
static inline u32 pp_slot_us(const struct pp *ca)
{
	return pp_is_bunched(ca) ? (u32)ca->slot << PP_SLOT_SHIFT : 0;
}

/* R, and that, us. */
static inline u32 pp_delay_slot(const struct pp *ca)
{
	return ca->delay_us + pp_slot_us(ca);
}

/*
 * What ACKs are held back for, as a code of seven bits: steps of an eighth of an octave (8/8 to
 * 15/8 times a power of two) up to a second. Rounds down; 0 below 18 us.
 */
#define PP_HELD_SHIFT	1

static inline u32 pp_held_code(u32 held_us)
{
	u32 held = held_us >> PP_HELD_SHIFT, octave;

	if (held < 8)
		return 0;
	octave = fls(held) - 4;
	return min(octave * 8 + (held >> octave) - 8, 127U);
}

/*
 * What slots hold ACKs back for at the most, us: two of them. Where GRO, thinned ACKs and slots
 * hold each one back for a time of its own, the silence between two of them is shorter than that
 * time. With one slot, two flows at 1 Gb/s and 150 ms (all of these with 1 ms) did not push for
 * seconds.
 */
static inline u32 pp_held_slots_us(const struct pp *ca)
{
	return 2 * pp_slot_us(ca);
}

/*
 * The most that ACKs may be held back for, us. It may be more than slots explain: where each ACK
 * takes a time of its own and they stay in order, as over radio links, all wait for the slowest
 * one. With 10 ms more or less they come 7 to 12 ms later than R at the least, and silences are of
 * 2 to 12 ms: with two slots, two flows used 0.24 of 200 Mb/s (40 ms), with half of R 0.90. With
 * more, a queue of ours could become longer if a push is wrong. Where packets are lost or marked,
 * they waited.
 */
static inline u32 pp_held_most_us(const struct pp *ca)
{
	u32 slots_us = pp_held_slots_us(ca);

	return ca->lossy || ca->tries ? slots_us : max_t(u32, slots_us, ca->delay_us / 2);
}

/*
 * With bursts of ACKs: what the ACK of a round trip that was held back least is held back for,
 * as long as nothing waits, us. See pp_bunch_held().
 */
static inline u32 pp_held_us(const struct pp *ca)
{
	u32 code = ca->full;

	if (!pp_is_bunched(ca) || !code)
		return 0;
	return min((8 + code % 8) << (code / 8 + PP_HELD_SHIFT),
		   pp_held_most_us(ca));
}

/* By how much the least round-trip time of this round trip is above R, us. It must be known. */
static inline u32 pp_above_us(const struct pp *ca)
{
	return ca->low_us - min_t(u32, ca->low_us, ca->delay_us);
}

/* Does this push ask whether ACKs are held back, and not whether the queue is shared? */
static inline bool pp_push_is_held(const struct pp *ca)
{
	return pp_is_bunched(ca) && ca->estimate.slower;
}

u32 pp_pace_held(const struct sock *sk);

/* Packets not known to have left or to be lost, and not held back by the host's own queue. */
static inline u32 pp_flight(const struct sock *sk)
{
	u32 flight = tcp_packets_in_flight(tcp_sk(sk));

	if (unlikely(READ_ONCE(sk->sk_pacing_status) == SK_PACING_FQ))
		flight -= min(flight, pp_pace_held(sk));
	return flight;
}

/* The same in Q8. */
static inline u32 pp_outstanding(const struct sock *sk)
{
	return min_t(u32, pp_flight(sk), PP_PACKETS_MAX) << PP_PACKET_SHIFT;
}

/* Is the law in force that of PP94 (9), once in a round trip? */
static inline bool pp_is_discrete(const struct pp *ca)
{
	return ca->law == PP_LAW_DISCRETE;
}

/*
 * Part of a time, or of what should arrive, by which it may be wrong. One pair
 * more or less is an eighth of a round trip of 16 packets. With a smaller part,
 * the pairs and the jitter of such a path look like another path. With a larger
 * one, a path that has grown longer by less is not noticed: n_hat is too large
 * by up to that part of what the path holds. It is here as R (pp_delay.c) and what
 * arrives (pp_path.c) have to be judged alike.
 */
#define PP_TOLERANCE		8

/*
 * So many losses in a round trip are no chance, if they are more than a quarter of what arrives as
 * well. With fewer, one or two losses in a round trip of some packets would do; with more, a path
 * that holds few packets does not show it.
 */
#define PP_LOSSES		8

/* The most that estimate.rounds counts, and what it begins with. */
#define PP_SUDDEN_ROUNDS_MOST	7

/* What a round trip that looks like a shared queue adds to `misfits`, see pp_path.c. */
#define PP_MISFIT_STEP		16

/* Where `full` is so much, R is looked at: 16 round trips of PP_FULL_STEP (pp_delay.c). */
#define PP_FULL_LIMIT		64

/*
 * May a packet have more than one segment? A signature (TCP_MD5SIG, TCP-AO) is that of one
 * segment, and what has two segments would leave as two packets with the signature of both.
 * The stack takes GSO from a socket with a key, so that the keys are looked for only then. (It
 * does so for IPsec as well, but divides packets itself there.)
 */
static inline bool pp_train_is_packet(const struct sock *sk)
{
	return likely(sk_can_gso(sk)) || !compat_tcp_is_signed(tcp_sk(sk));
}

/*
 * A pair, or a train, is one packet of so many segments: what is paced, it
 * leaves the host back to back. Where it cannot be one, each segment is a packet, and each
 * train is a turn, see pp_pace.c. Route changes reset sk_gso_max_segs. It is asked
 * whenever something is sent, by pp and by ppx: so it is no call.
 */
static inline void pp_train_use(struct sock *sk, u32 train)
{
	if (unlikely(!pp_train_is_packet(sk)))
		train = 1;
	if (unlikely(sk->sk_gso_max_segs != train))
		sk->sk_gso_max_segs = train;
}

/* ppx.c */
extern struct tcp_congestion_ops ppx_ops;

/* pp_setpoint.c */
void pp_setpoint_begin(struct pp *ca);
void pp_setpoint(struct pp *ca);
void pp_setpoint_cut(struct pp *ca);
void pp_setpoint_lost(struct pp *ca);
void pp_setpoint_kept(struct pp *ca);
void pp_loss(const struct tcp_sock *tp, struct pp *ca, u32 losses);
bool pp_has_lost(const struct pp *ca, u32 limit);
void pp_start_grow(struct sock *sk, const struct pp *ca);
u32 pp_start_window(struct sock *sk, const struct pp *ca);
void pp_start_wait(struct sock *sk, const struct pp *ca);

/* pp_pace.c */
bool pp_pace_is_ours(const struct sock *sk);
void pp_pace(struct sock *sk, u64 rate);
bool pp_pace_is_cut_off(const struct sock *sk, const struct pp *ca,
			const struct pp_net *net, u32 train);
void pp_pace_cut_off_at(struct sock *sk, const struct pp *ca);
bool pp_pace_is_stopped(const struct sock *sk, const struct pp *ca);
void pp_pace_be_wary(struct pp *ca, bool looking);
bool pp_pace_stop(struct sock *sk, struct pp *ca, u32 wait_us);
u32 pp_pace_settle(struct sock *sk, struct pp *ca);
void pp_pace_before_turn(struct sock *sk, struct pp *ca, u32 train);
bool pp_pace_holds_window(const struct pp *ca);
bool pp_pace_has_segment(const struct sock *sk);
bool pp_pace_has_more(const struct sock *sk, const struct pp *ca);

/* pp_delay.c */
void pp_delay_forget(struct pp *ca);
void pp_delay_set(struct pp *ca, u32 delay_us);
bool pp_delay_raise(const struct sock *sk, struct pp *ca);
bool pp_delay_look(struct sock *sk, struct pp *ca);
void pp_delay_full(const struct sock *sk, struct pp *ca);
void pp_delay_look_full(struct sock *sk, struct pp *ca);
void pp_delay_peek(struct sock *sk, struct pp *ca);
void pp_delay_peek_bunched(struct sock *sk, struct pp *ca, u32 least);

/* pp_bunch.c */
u64 pp_most_arrived(const struct pp *ca);
u32 pp_queue_least(const struct pp *ca);
void pp_bunch_begin(const struct sock *sk, struct pp *ca);
void pp_bunch_end(struct pp *ca);
void pp_bunch_watch(struct pp *ca, u64 gap);
u64 pp_bunch_ack(const struct sock *sk, struct pp *ca,
		 const struct rate_sample *rs);
void pp_bunch_has_no_room(const struct sock *sk, struct pp *ca);
void pp_bunch_has_room(struct pp *ca, u64 mean);
u32 pp_bunch_rtt(const struct sock *sk, const struct pp *ca);
void pp_bunch_sample(struct pp *ca, u64 sample);
bool pp_bunch_round(struct sock *sk, struct pp *ca, u64 mean);
u32 pp_bunch_shift(const struct pp *ca);

/* pp_share.c */
bool pp_may_be_held(const struct pp *ca);
u32 pp_push_shift(const struct pp *ca);
void pp_share_begin(struct sock *sk, struct pp *ca, bool watch, bool pushed);
void pp_share_found(struct sock *sk, struct pp *ca, bool watch);
void pp_share_doubt(struct sock *sk, struct pp *ca, u64 mean);
bool pp_share_is_flooded(const struct sock *sk, const struct pp *ca);
void pp_share_forget(struct pp *ca);
void pp_share_round(struct sock *sk, struct pp *ca, bool looked);
void pp_share_control(struct sock *sk, struct pp *ca,
		      const struct rate_sample *rs);
u32 pp_share_ssthresh(const struct tcp_sock *tp, struct pp *ca);
void pp_share_state(struct sock *sk, u8 new_state);
void pp_share_idle(struct sock *sk, struct pp *ca, u32 idle_us);

/* pp_path.c */
bool pp_path_is_unpaired(const struct pp *ca);
u64 pp_path_bound(const struct pp *ca);
void pp_path_hold(struct pp *ca);
u64 pp_path_sudden(const struct sock *sk, struct pp *ca, u64 before, u64 sample);
u64 pp_path_ack(struct sock *sk, struct pp *ca, const struct rate_sample *rs);
void pp_path_round(struct sock *sk, struct pp *ca, u64 mean);

/*
 * What each ACK and each packet needs is no call: the registers that a call saves cost
 * more than these do.
 */

/* Does no pair tell yet? See pp_path_is_unpaired(). */
static inline bool pp_is_unpaired(const struct pp *ca)
{
	return unlikely(ca->delayed) && pp_path_is_unpaired(ca);
}

/* Is a sample more than a 16th away from s_hat before it? Or was there none? */
static inline bool pp_path_is_sudden(u64 before, u64 sample)
{
	return sample - (before - before / 16) > before / 8;
}

/**
 * pp_pace_window() - a window that leaves the rate alone
 * @sk: socket
 * @ca: its private area
 * @pipe: R / s_hat, Q8
 * @flight: what is outstanding, segments
 *
 * Twice what the pipe and the setpoint hold. It ends what a flow sends when ACKs
 * stay away, and nothing else: a queue that is too long is the law's affair, so
 * the window leaves room for eight pairs above what is outstanding. With less
 * room it holds back what an ACK for several pairs lets go; with more, a flow
 * sends more packets in vain when ACKs stay away.
 */
static inline void pp_pace_window(struct sock *sk, const struct pp *ca, u32 pipe,
				  u32 flight)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 cwnd = 2 * ((u64)pipe + ca->setpoint) >> PP_PACKET_SHIFT;

	cwnd = max_t(u64, cwnd, flight) + 16;
	tcp_snd_cwnd_set(tp, min_t(u64, cwnd, tp->snd_cwnd_clamp));
}

/* Is there a limit to what may be outstanding, beside that of the law? */
static inline bool pp_pace_is_limited(const struct pp_net *net)
{
	return READ_ONCE(net->window) | READ_ONCE(net->reserved);
}

/**
 * pp_pace_cut_off() - no more outstanding than the sysctl allows
 * @sk: socket
 * @ca: its private area
 *
 * Call it wherever the window was set.
 */
static inline void pp_pace_cut_off(struct sock *sk, const struct pp *ca)
{
	if (unlikely(pp_pace_is_limited(ca->net)))
		pp_pace_cut_off_at(sk, ca);
}

/* The stack paces from this segment on. */
#define PP_PACED_FROM	10

/* Does the stack not pace by itself what comes next, or not in pairs? */
static inline bool pp_pace_is_special(const struct sock *sk, const struct pp *ca)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tp->lost_out > tp->retrans_out ||
	       tp->data_segs_out < PP_PACED_FROM || ca->train.extra ||
	       !pp_train_is_packet(sk);
}

/**
 * pp_pace_before_send() - the stack is about to send: whose pacing is it?
 * @sk: socket
 * @ca: its private area
 * @train: segments to leave at once
 */
static inline void pp_pace_before_send(struct sock *sk, struct pp *ca, u32 train)
{
	if (unlikely(ca->turn ||
		     (pp_pace_is_special(sk, ca) && !ca->shared)))
		pp_pace_before_turn(sk, ca, train);
}

#endif /* _PP_H */
