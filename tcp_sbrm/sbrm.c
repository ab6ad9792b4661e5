// SPDX-License-Identifier: GPL-2.0
/*
 * Single Bit Resource Marking: congestion control by shadow prices
 *
 * A flow that is willing to pay w (packets/s times price) over a path with
 * price p should send at x = w / p. Routers mark each packet with probability
 * 1 - exp(-price of their link) (see sch_sbrm), so that the fraction m of
 * packets that arrive marked tells the price of the whole path,
 *
 *	p = -ln(1 - m),
 *
 * and for each segment that is acknowledged the window moves by
 *
 *	d cwnd = kappa (w T - p), T = RTT / cwnd		(4.2.1)
 *
 * where T is the time for which the segment stands. This is at rest at
 * cwnd / RTT = w / p: weighted proportional fairness. The round-trip time
 * cancels.
 *
 *	      no mark: + 1 per segment		first mark, or loss
 *	+----------------------------+	     +-------------------------+
 *	|	 slow start	     | ----> | window follows the price |
 *	+----------------------------+	     +-------------------------+
 *
 * Source: S. Zimmermann, Congestion Pricing as Scalable, Efficient and Stable
 * Congestion Control for Future IP Networks, 2005 (CP05): window update 4.2.1,
 * AIMD form 5.1.2 and 5.4.2, estimator 5.2.2, TCP/RM 5.6.1.
 *
 * The marks must come back one by one. RFC 3168 receivers repeat ECE until
 * they see CWR, which loses their number. Three cases (enum sbrm_echo):
 * - the peer runs this module (or dctcp): it echoes the mark of each packet,
 *   found out by watching, see sbrm_echo_watch();
 * - the kernel negotiated AccECN: any receiver counts the marks;
 * - neither: the connection behaves as TCP/RM, one cut per round trip. Stock
 *   Linux receivers without this module refuse ECN to a SYN that is ECT itself,
 *   which TCP_CONG_NEEDS_ECN makes it: losses alone are left then.
 * ss -ti shows which: dctcp:fallback_mode is TCP/RM.
 *
 * Notable differences from the paper:
 * - the window is a fixed-point number and paced at cwnd / RTT: at 6 ms and
 *   w = 100 the fair window is 2.4 segments, which no integer expresses. What
 *   the kernel and ss know as cwnd is a cap, rounded up, plus one segment;
 * - the time itself takes the place of RTT / cwnd, see sbrm_direct(), and the
 *   gaps between packets vary, see sbrm_pace();
 * - slow start ends with half of its window at the first mark;
 * - m is an exponential average with history_gain per packet, not the last
 *   50 packets, and a step is at most one segment per acknowledged segment;
 * - loss detection and repair are Linux's own (SACK, RACK, TLP); the window is
 *   halved once per recovery and transmission goes on as in_flight allows.
 *
 * Pair it with sch_sbrm, or any queue that marks early.
 */

#include <linux/inet_diag.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/skbuff.h>
#include <net/inet_ecn.h>
#include <net/tcp.h>

#include "compat.h"
#include "tollway_fixp.h"
#include "sbrm_sysctl.h"

/*
 * Windows are segments in Q32. As the window sets the rate, it may be below one
 * segment: a packet every other round trip. 2^24 segments keep every product in
 * 64 bits.
 */
#define SBRM_CWND_MIN	(FIXP_ONE / 4)
#define SBRM_CWND_MAX	((u64)1 << (24 + FIXP_SHIFT))

/* Round-trip times are taken as 1 us .. 16 s. */
#define SBRM_RTT_MAX_US	16777216U

/* The estimate of m stays below 1 - 2^-16: prices stay below 11.1. */
#define SBRM_MARK_MAX	(U32_MAX - 65535)

/* Mean gaps are in 2^-4 us: 2^26 us still fit. */
#define SBRM_GAP_SHIFT	4

/* The estimate at the end of slow start counts as so many packets. */
#define SBRM_HISTORY_START	4

/* Odds of e^12 convict a peer of repeating ECE, see sbrm_echo_watch(). */
#define SBRM_LATCHED_ODDS	12

/**
 * enum sbrm_echo - how the marks come back
 * @SBRM_ECHO_UNKNOWN: no mark seen so far; taken as @SBRM_ECHO_PACKET
 * @SBRM_ECHO_PACKET: the peer echoes the mark of each packet
 * @SBRM_ECHO_ACCECN: the peer counts the marks (AccECN)
 * @SBRM_ECHO_LATCHED: the peer repeats ECE until CWR (RFC 3168)
 * @SBRM_ECHO_NONE: ECN was not negotiated
 */
enum sbrm_echo {
	SBRM_ECHO_UNKNOWN,
	SBRM_ECHO_PACKET,
	SBRM_ECHO_ACCECN,
	SBRM_ECHO_LATCHED,
	SBRM_ECHO_NONE,
};

/**
 * struct sbrm - one connection, in inet_csk_ca()
 * @cwnd: window, segments in Q32; 0 until init() has run
 * @prior_cwnd: window before the last loss, for undo
 * @delivered: tp->delivered at the last update
 * @delivered_ce: tp->delivered_ce at the last update
 * @mark: estimate of m, Q32
 * @price: -ln(1 - m) at the last update, Q28: below 11.1
 * @rtt_us: round-trip time in force, 1 .. 2^24 us
 * @rtt_last_us: last sample of it; 0 before the first
 * @acked_us: low word of the time of the last ACK
 * @waited_us: time before it that no segment has stood for yet
 * @gap: mean time between segments, in 2^-4 us, for the AIMD forms
 * @born: tcp_jiffies32 when the connection was made
 * @cut_end: TCP/RM: no second cut until this sequence number is acknowledged
 * @acked_total: segments acknowledged, for ss; wraps
 * @marked_total: of those, marked
 * @epoch_end: snd_nxt when the open ECE epoch began, see sbrm_echo_watch()
 * @history: packets in the plain average of marks, U16_MAX when it is over
 * @epochs: ECE epochs so far; this and the next two saturate
 * @latched: ACKs with ECE inside of epochs
 * @clear: ACKs without ECE outside of epochs, after the first
 * @echo: an &enum sbrm_echo
 * @epoch: an ECE epoch is open
 * @cut: @cut_end is valid
 * @grown: the connection is no longer young
 * @slow_start: no mark seen since the start or a timeout; the window alone
 *	cannot tell, since it falls below snd_ssthresh again at any mark
 * @rcv_ce: receiver: the last packet was marked
 * @rcv_prior_nxt: receiver: rcv_nxt before the last packet
 */
struct sbrm {
	u64	cwnd;
	u64	prior_cwnd;
	u32	delivered;
	u32	delivered_ce;
	u32	mark;
	u32	price;
	u32	rtt_us;
	u32	rtt_last_us;
	u32	acked_us;
	u32	waited_us;
	u32	gap;
	u32	born;
	u32	cut_end;
	u32	acked_total;
	u32	marked_total;
	u32	epoch_end;
	u16	history;
	u16	epochs;
	u16	latched;
	u16	clear;
	u8	echo:3,
		epoch:1,
		cut:1,
		grown:1,
		slow_start:1;
	u32	rcv_ce;
	u32	rcv_prior_nxt;
};

/* Segments and marks that one ACK brings, and the settings in force. */
struct sbrm_ack {
	const struct sbrm_net	*net;
	u32			acked;
	u32			marked;
	bool			ece;
	bool			app_limited;
};

/**
 * sbrm_rtt_update() - take the round-trip time of an ACK
 * @ca: connection
 * @tp: its socket
 * @sample_us: round-trip time of the ACK, us, negative if it has none
 *
 * Not srtt: with its lag a loop of 34 ms began to swing, while cwnd over the
 * last sample answers a growing queue at once, as ACK clocking does. Of the
 * last two samples the smaller counts: a receiver that saw the mark change
 * sends the ACK it held back first, and that sample has waited.
 */
static void sbrm_rtt_update(struct sbrm *ca, const struct tcp_sock *tp,
			    long sample_us)
{
	u32 last_us = ca->rtt_last_us;

	if (sample_us < 0)
		sample_us = tp->srtt_us >> 3;
	ca->rtt_last_us = clamp_t(long, sample_us, 1, SBRM_RTT_MAX_US);
	ca->rtt_us = last_us ? min(last_us, ca->rtt_last_us) : ca->rtt_last_us;
}

/**
 * sbrm_paid() - what a flow pays in some time
 * @sk: socket
 * @net: settings
 * @time: in 2^-@shift us, below 2^30
 * @shift: fractional bits of @time
 *
 * Return: segments times price in Q32, below 2^62 for 2^26 us.
 */
static s64 sbrm_paid(const struct sock *sk, const struct sbrm_net *net,
		     u32 time, unsigned int shift)
{
	u32 priority = min_t(u32, READ_ONCE(sk->sk_priority),
			     SBRM_WTP_CLASSES - 1);
	u64 wtp = READ_ONCE(net->wtp[priority]);

	/* 2251799814 is 2^51 / 10^6, and w below 2^24 packets/s. */
	return mul_u64_u32_shr(wtp * time, 2251799814U,
			       51 - FIXP_SHIFT + shift);
}

/**
 * sbrm_kappa() - gain per acknowledged segment
 * @ca: connection
 * @net: settings
 *
 * A young connection may use a larger gain that decays to the final one with
 * its age t as 1 / (1 + (2 t / young_ms)^2) (CP05 5.6.4 asks for it, and
 * leaves the form open).
 *
 * Return: kappa in Q28, at most 16.0.
 */
static u32 sbrm_kappa(struct sbrm *ca, const struct sbrm_net *net)
{
	u32 kappa = READ_ONCE(net->kappa);
	u32 young = READ_ONCE(net->kappa_young);
	u32 young_ms = READ_ONCE(net->young_ms);
	u32 age_ms, t;

	if (ca->grown || young <= kappa)
		return kappa;

	age_ms = jiffies_to_msecs(tcp_jiffies32 - ca->born);
	/* At 16 times young_ms 0.1 % of the difference is left. */
	if (age_ms / 16 >= young_ms) {
		ca->grown = 1;
		return kappa;
	}
	/* 2 t / young_ms in 2^-8, below 2^13: its square fits. */
	t = div_u64((u64)age_ms << 9, young_ms);
	return kappa + div_u64((u64)(young - kappa) << 16, (1U << 16) + t * t);
}

/**
 * sbrm_mark_update() - take the marks of an ACK into the history
 * @ca: connection
 * @ack: segments and marks
 * @gain: weight of one packet, Q32
 *
 * With n segments of which k are marked, m = m (1 - g)^n + (1 - (1 - g)^n) k/n,
 * which for n = 1 is the exponential average. What slow start saw says little
 * of the price after it: from there on the average is a plain one, until it
 * holds as many packets as the exponential one remembers.
 */
static void sbrm_mark_update(struct sbrm *ca, const struct sbrm_ack *ack,
			     u32 gain)
{
	u64 seen = ack->marked ? FIXP_ONE : 0;
	u64 keep, mark;

	if (ca->history < U16_MAX) {
		u32 plain = U32_MAX / (ca->history + SBRM_HISTORY_START);

		if (plain > gain) {
			gain = plain;
			ca->history = min_t(u32, ca->history + ack->acked,
					    U16_MAX);
		} else {
			ca->history = U16_MAX;
		}
	}

	keep = FIXP_ONE - gain;
	if (ack->acked > 1) {
		keep = gain ? fixp_pow(U32_MAX - gain + 1, ack->acked) : 0;
		seen = div_u64((u64)ack->marked << FIXP_SHIFT, ack->acked);
	}
	/* Both factors are at most 2^32 - 1 after the clamp. */
	mark = fixp_mul(keep, ca->mark) +
	       fixp_mul(FIXP_ONE - keep, min_t(u64, seen, U32_MAX));
	ca->mark = min_t(u64, mark, SBRM_MARK_MAX);
}

/**
 * sbrm_price() - price of the path by the mark fraction, p = -ln(1 - m)
 * @ca: connection, the marks of the present ACK taken in
 *
 * An ACK of two segments comes more often when both were unmarked (a mark
 * makes the receiver answer at once), so that the price at its end, counted
 * twice, would be biased: take the mean of the prices before and after.
 *
 * Return: price in Q32, below 2^36.
 */
static s64 sbrm_price(struct sbrm *ca)
{
	u32 before = ca->price;

	ca->price = -fixp_ln(FIXP_ONE - ca->mark) >> (FIXP_SHIFT - 28);
	return ((s64)before + ca->price) << (FIXP_SHIFT - 28 - 1);
}

/**
 * sbrm_step() - kappa times a sum of prices
 * @price: sum over @segments, Q32
 * @kappa: gain, Q28, at most 10.0
 * @segments: below 2^21
 *
 * Return: change of the window, Q32, at most one segment for each.
 */
static s64 sbrm_step(s64 price, u32 kappa, u32 segments)
{
	s64 most = (s64)segments << FIXP_SHIFT;
	u64 size = abs(price);

	size = min_t(u64, mul_u64_u32_shr(size, kappa, 28), most);
	return price < 0 ? -(s64)size : size;
}

/**
 * sbrm_time_us() - time that the segments of an ACK stand for
 * @ca: connection
 * @ack: what the ACK brought
 * @now_us: time of the ACK
 *
 * The time since the last ACK, which is RTT / cwnd per segment in the mean.
 * A flow that something else holds back (a receive window, say) would turn its
 * waiting into window without end: no more than twice RTT / cwnd per segment
 * counts, and what is above waits in @ca->waited_us for a later ACK, up to four
 * round trips: two gaps of a flow of one segment, whose ACKs are delayed.
 *
 * Return: us, below 2^26.
 */
static u32 sbrm_time_us(struct sbrm *ca, const struct sbrm_ack *ack, u32 now_us)
{
	u32 waited_us = min_t(u64, (u64)ca->waited_us + (now_us - ca->acked_us),
			      ca->rtt_us * 4);
	u64 most_us = fixp_mul_div((u64)ca->rtt_us * 2 * ack->acked, FIXP_ONE,
				   ca->cwnd);
	u32 time_us = min_t(u64, waited_us, most_us);

	ca->acked_us = now_us;
	ca->waited_us = waited_us - time_us;
	return time_us;
}

/**
 * sbrm_demand() - what the flow is willing to pay for one segment
 * @sk: socket
 * @ca: its private area
 * @ack: what the ACK brought
 *
 * The RTT / cwnd of CP05 (5.1.2), as the mean time between segments: the time
 * of a single ACK is not the same for marked and unmarked ones, as a receiver
 * that sees the mark change sends the ACK it held back first.
 *
 * Return: w T in Q32, below 2^57.
 */
static s64 sbrm_demand(const struct sock *sk, struct sbrm *ca,
		       const struct sbrm_ack *ack)
{
	u32 time_us = sbrm_time_us(ca, ack, tcp_sk(sk)->tcp_mstamp);
	u64 gap = div_u64((u64)time_us << SBRM_GAP_SHIFT, ack->acked);

	if (!ca->gap)
		ca->gap = gap;
	ca->gap = (ca->gap * 15ULL + gap) >> 4;
	return sbrm_paid(sk, ack->net, ca->gap, SBRM_GAP_SHIFT);
}

/**
 * sbrm_direct() - direct window update, CP05 (4.2.1)
 * @sk: socket
 * @ca: its private area
 * @ack: what the ACK brought
 * @price: price of the path, Q32
 * @kappa: gain, Q28
 *
 * For each segment kappa (w T - p), T the time since the one before. (4.2.3)
 * puts RTT / cwnd for T; the time itself makes the rest point w / p exact,
 * whatever delayed ACKs, pacing and the noise of RTT samples do.
 *
 * Return: change of the window, segments in Q32.
 */
static s64 sbrm_direct(const struct sock *sk, struct sbrm *ca,
		       const struct sbrm_ack *ack, s64 price, u32 kappa)
{
	u32 time_us = sbrm_time_us(ca, ack, tcp_sk(sk)->tcp_mstamp);
	s64 room = sbrm_paid(sk, ack->net, time_us, 0);
	s64 cost = price * ack->acked;

	if (READ_ONCE(ack->net->estimator) == SBRM_ESTIMATOR_RAW)
		cost = (s64)ack->marked << FIXP_SHIFT;

	return sbrm_step(room - cost, kappa, ack->acked);
}

/* AIMD form (5.1.2, 5.1.3): up for each unmarked segment, else down. */
static s64 sbrm_aimd(const struct sbrm_ack *ack, s64 demand, u32 kappa)
{
	return sbrm_step(demand, kappa, 1) * (ack->acked - ack->marked) -
	       sbrm_step(FIXP_ONE, kappa, 1) * ack->marked;
}

/* TCP/RM (5.6.1): the first ECE in a round trip cuts by kappa cwnd. */
static s64 sbrm_rm(struct sock *sk, struct sbrm *ca, const struct sbrm_ack *ack,
		   s64 demand, u32 kappa)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (ca->cut && !before(tp->snd_una, ca->cut_end))
		ca->cut = 0;
	if (!ack->ece)
		return sbrm_step(demand, kappa, 1) * ack->acked;
	if (ca->cut)
		return 0;

	ca->cut = 1;
	ca->cut_end = tp->snd_nxt;
	/* kappa of one and above would leave nothing: halve at most. */
	return -(s64)mul_u64_u32_shr(ca->cwnd, min(kappa, 1U << 27), 28);
}

static void sbrm_cwnd_set(struct sock *sk, struct sbrm *ca, u64 cwnd)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 top = min_t(u64, (u64)tp->snd_cwnd_clamp << FIXP_SHIFT,
			SBRM_CWND_MAX);

	ca->cwnd = clamp_t(u64, cwnd, SBRM_CWND_MIN,
			   max_t(u64, top, SBRM_CWND_MIN));
	/*
	 * The rate is held by pacing; the whole window must not be in its way.
	 * So it is rounded up, and leaves room for the segment whose ACK a
	 * receiver holds back.
	 */
	tcp_snd_cwnd_set(tp, min_t(u64, tp->snd_cwnd_clamp,
				   ((ca->cwnd + FIXP_ONE - 1) >> FIXP_SHIFT) + 1));
}

/**
 * sbrm_pace() - pace at cwnd / RTT, twice that in slow start so it can double
 * @sk: socket
 * @ca: its private area
 *
 * The gaps between packets vary by up to a half either way, with the right
 * mean. A flow of even gaps meets its own packets at the bottleneck always at
 * the same phase: one whose gap is just longer than the queueing delay never
 * finds another one of its own behind it, sees a backlog that is short by up
 * to a packet, and gets a price too low by 2 % (cf. Floyd and Jacobson, On
 * traffic phase effects in packet-switched gateways, 1992).
 */
static void sbrm_pace(struct sock *sk, const struct sbrm *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);
	/* Length of the next gap, 0.5 .. 1.5 in 2^-16. */
	u32 gap = (1U << 15) + (get_random_u32() >> 16);
	u64 rate;

	/* segments Q32 * bytes < 2^72, hence the wide quotient. */
	rate = fixp_mul_div(ca->cwnd, (u64)tp->mss_cache * USEC_PER_SEC,
			    (u64)ca->rtt_us * gap << (FIXP_SHIFT - 16));
	if (ca->slow_start)
		rate *= 2;
	WRITE_ONCE(sk->sk_pacing_rate,
		   min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate)));
}

/* Fallback for connections whose marks cannot be counted. */
static bool sbrm_is_rm(const struct sbrm *ca)
{
	return ca->echo >= SBRM_ECHO_LATCHED;
}

/**
 * sbrm_echo_watch() - find out whether the peer echoes each mark by itself
 * @sk: socket
 * @ca: connection
 * @ack: what the ACK brought
 *
 * At the first ECE the stack queues CWR for its next packet, which begins at
 * snd_nxt of that moment. Until the peer has got that packet, an RFC 3168
 * receiver sets ECE in every ACK: one ACK without it, for data sent before, is
 * proof that the peer echoes packet by packet, and overrules all else.
 *
 * Without such an ACK, the n ACKs inside of epochs all had ECE. If the peer
 * echoed packet by packet, ACKs outside would look the same: there, one with
 * ECE opens each of E epochs and k have none, so that the chance of n in a row
 * is about (1 + k / E)^-n < exp(-n k / (E + k)). Below e^-12 the peer is
 * convicted of latching.
 */
static void sbrm_echo_watch(const struct sock *sk, struct sbrm *ca,
			    const struct sbrm_ack *ack)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (ca->echo == SBRM_ECHO_PACKET || ca->echo == SBRM_ECHO_ACCECN ||
	    ca->echo == SBRM_ECHO_NONE)
		return;

	if (ca->epoch && after(tp->snd_una, ca->epoch_end))
		ca->epoch = 0;

	if (ca->epoch) {
		if (!ack->ece) {
			ca->echo = SBRM_ECHO_PACKET;
			return;
		}
		if (ca->latched < U16_MAX)
			ca->latched++;
	} else if (ack->ece) {
		ca->epoch = 1;
		ca->epoch_end = tp->snd_nxt;
		if (ca->epochs < U16_MAX)
			ca->epochs++;
	} else if (ca->epochs && ca->clear < U16_MAX) {
		ca->clear++;
	}

	if (ca->echo == SBRM_ECHO_UNKNOWN && ca->clear &&
	    (u32)ca->latched * ca->clear >=
	    SBRM_LATCHED_ODDS * ((u32)ca->epochs + ca->clear)) {
		ca->echo = SBRM_ECHO_LATCHED;
		pr_info_once("a peer repeats ECE until CWR (RFC 3168): connections to such peers use TCP/RM\n");
	}
}

/* The window after @ack, by the source that is in force. */
static void sbrm_update(struct sock *sk, struct sbrm *ca,
			const struct sbrm_ack *ack)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 kappa = sbrm_kappa(ca, ack->net);
	s64 price = sbrm_price(ca);
	s64 change;

	if (ca->slow_start) {
		if (!ack->ece && tcp_in_slow_start(tp)) {
			if (tcp_is_cwnd_limited(sk))
				sbrm_cwnd_set(sk, ca, ca->cwnd +
					((u64)ack->acked << FIXP_SHIFT));
			return;
		}
		/* The window has doubled since the marked packet was sent. */
		if (ack->ece)
			sbrm_cwnd_set(sk, ca, ca->cwnd / 2);
		ca->slow_start = 0;
		ca->history = 0;
	}

	if (sbrm_is_rm(ca))
		change = sbrm_rm(sk, ca, ack, sbrm_demand(sk, ca, ack),
				 kappa);
	else if (READ_ONCE(ack->net->source) == SBRM_SOURCE_AIMD)
		change = sbrm_aimd(ack, sbrm_demand(sk, ca, ack), kappa);
	else
		change = sbrm_direct(sk, ca, ack, price, kappa);

	/* A window that is not used says nothing about the price. */
	if (ack->app_limited && change > 0)
		return;

	/* |change| < 2^52 and cwnd < 2^57: no overflow. */
	sbrm_cwnd_set(sk, ca, max_t(s64, (s64)ca->cwnd + change,
				    SBRM_CWND_MIN));
}

static void sbrm_cong_control(COMPAT_CONG_CONTROL_ARGS,
			      const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct sbrm *ca = inet_csk_ca(sk);
	struct sbrm_ack news;

	/* The ACK of the SYN comes before init(). */
	if (!ca->cwnd)
		return;

	news.acked = tp->delivered - ca->delivered;
	news.marked = tp->delivered_ce - ca->delivered_ce;
	ca->delivered = tp->delivered;
	ca->delivered_ce = tp->delivered_ce;
	if (!news.acked)
		return;

	/* An undo may have counted marks without segments. */
	news.acked = min_t(u32, news.acked, 1U << 20);
	news.marked = min(news.marked, news.acked);
	news.ece = news.marked;
	news.app_limited = rs->is_app_limited;
	news.net = sbrm_net(sock_net(sk));

	ca->acked_total += news.acked;
	ca->marked_total += news.marked;
	sbrm_rtt_update(ca, tp, rs->rtt_us);
	sbrm_echo_watch(sk, ca, &news);
	sbrm_mark_update(ca, &news, READ_ONCE(news.net->history_gain));

	/* While lost packets are repaired the window stays as it was cut. */
	if (inet_csk(sk)->icsk_ca_state == TCP_CA_Recovery)
		sbrm_cwnd_set(sk, ca, ca->cwnd);
	else
		sbrm_update(sk, ca, &news);
	sbrm_pace(sk, ca);
}

/*
 * Called on the way into CWR, Recovery and Loss alike; what the window becomes
 * is decided in set_state(), which knows. Any of them ends slow start.
 */
static u32 sbrm_ssthresh(struct sock *sk)
{
	return max(tcp_snd_cwnd(tcp_sk(sk)), 2U);
}

static void sbrm_set_state(struct sock *sk, u8 new_state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct sbrm *ca = inet_csk_ca(sk);
	u8 old_state = inet_csk(sk)->icsk_ca_state;

	if (new_state < TCP_CA_Recovery || !ca->cwnd)
		return;

	/* TCP's usual reaction to loss (CP05 4.3.1): half, once. */
	if (old_state < TCP_CA_Recovery) {
		ca->prior_cwnd = ca->cwnd;
		sbrm_cwnd_set(sk, ca, ca->cwnd / 2);
		tp->snd_ssthresh = max(tcp_snd_cwnd(tp), 2U);
	}
	/* After a timeout, up to there in slow start. */
	ca->slow_start = new_state == TCP_CA_Loss;
	if (new_state == TCP_CA_Loss && old_state != TCP_CA_Loss)
		sbrm_cwnd_set(sk, ca, FIXP_ONE);
}

static u32 sbrm_undo_cwnd(struct sock *sk)
{
	struct sbrm *ca = inet_csk_ca(sk);

	sbrm_cwnd_set(sk, ca, max(ca->cwnd, ca->prior_cwnd));
	return tcp_snd_cwnd(tcp_sk(sk));
}

static void sbrm_echo(struct sock *sk, bool ce)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (ce)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

/*
 * Receiver: let each ACK say whether the packets it acknowledges were marked,
 * RFC 8257 3.2. When that changes while an ACK is held back, send the old one
 * first.
 */
static void sbrm_receive(struct sock *sk, bool ce)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct sbrm *ca = inet_csk_ca(sk);

	if (compat_tcp_ecn_accurate(tcp_sk(sk)))
		return;

	if (ca->rcv_ce != ce) {
		if (icsk->icsk_ack.pending & ICSK_ACK_TIMER) {
			sbrm_echo(sk, ca->rcv_ce);
			compat_tcp_send_ack(sk, ca->rcv_prior_nxt);
		}
		icsk->icsk_ack.pending |= ICSK_ACK_NOW;
	}
	ca->rcv_prior_nxt = tcp_sk(sk)->rcv_nxt;
	ca->rcv_ce = ce;
	sbrm_echo(sk, ce);
}

static void sbrm_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_ECN_IS_CE || event == CA_EVENT_ECN_NO_CE)
		sbrm_receive(sk, event == CA_EVENT_ECN_IS_CE);
}

/* One segment at a time where the rate is low; the stack's size above. */
static u32 sbrm_tso_segs(COMPAT_TSO_SEGS_ARGS)
{
	return 1;
}

static struct tcp_congestion_ops sbrm_no_ecn_ops;

static void sbrm_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct sbrm *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	ca->delivered = tp->delivered;
	ca->delivered_ce = tp->delivered_ce;
	ca->born = tcp_jiffies32;
	ca->acked_us = tp->tcp_mstamp;
	sbrm_rtt_update(ca, tp, tp->srtt_us ? -1 : USEC_PER_MSEC);
	ca->slow_start = 1;
	ca->rcv_prior_nxt = tp->rcv_nxt;
	sbrm_cwnd_set(sk, ca, (u64)tcp_snd_cwnd(tp) << FIXP_SHIFT);
	ca->prior_cwnd = ca->cwnd;

	if (compat_tcp_ecn_accurate(tp)) {
		ca->echo = SBRM_ECHO_ACCECN;
	} else if (!compat_tcp_ecn_negotiated(tp) &&
		   sk->sk_state != TCP_LISTEN && sk->sk_state != TCP_CLOSE) {
		ca->echo = SBRM_ECHO_NONE;
		/*
		 * Marks would go unseen: let routers drop instead. Operations
		 * that need ECN would have it switched on again after this.
		 */
		inet_csk(sk)->icsk_ca_ops = &sbrm_no_ecn_ops;
		INET_ECN_dontxmit(sk);
		pr_info_once("ECN was not negotiated with a peer: such connections use TCP/RM on losses alone\n");
	}

	sbrm_pace(sk, ca);
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
}

/*
 * ss knows no structure of ours; dctcp's has the nearest fields. enabled: marks
 * are counted; ce_state: our receiver; alpha: m in 1/1024; ab_ecn and ab_tot:
 * segments marked and acknowledged. Documented in tcp_sbrm(7).
 */
static size_t sbrm_get_info(struct sock *sk, u32 ext, int *attr,
			    union tcp_cc_info *info)
{
	const struct sbrm *ca = inet_csk_ca(sk);

	if (!(ext & (1 << (INET_DIAG_DCTCPINFO - 1))) &&
	    !(ext & (1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;

	memset(&info->dctcp, 0, sizeof(info->dctcp));
	if (!sbrm_is_rm(ca)) {
		info->dctcp.dctcp_enabled = 1;
		info->dctcp.dctcp_ce_state = ca->rcv_ce;
		info->dctcp.dctcp_alpha = ca->mark >> (FIXP_SHIFT - 10);
		info->dctcp.dctcp_ab_ecn = ca->marked_total;
		info->dctcp.dctcp_ab_tot = ca->acked_total;
	}
	*attr = INET_DIAG_DCTCPINFO;
	return sizeof(info->dctcp);
}

#define SBRM_OPS						\
	.name		= "sbrm",				\
	.owner		= THIS_MODULE,				\
	.init		= sbrm_init,				\
	.cong_control	= sbrm_cong_control,			\
	.ssthresh	= sbrm_ssthresh,			\
	.undo_cwnd	= sbrm_undo_cwnd,			\
	.set_state	= sbrm_set_state,			\
	.cwnd_event	= sbrm_cwnd_event,			\
	.COMPAT_TSO_SEGS_OP = sbrm_tso_segs,			\
	.get_info	= sbrm_get_info

static struct tcp_congestion_ops sbrm_ops __read_mostly = {
	SBRM_OPS,
	.flags		= TCP_CONG_NEEDS_ECN | TCP_CONG_NON_RESTRICTED,
};

/* Never registered: sbrm_init() gives it to connections without ECN. */
static struct tcp_congestion_ops sbrm_no_ecn_ops __read_mostly = {
	SBRM_OPS,
	.flags		= TCP_CONG_NON_RESTRICTED,
};

static int __init sbrm_module_init(void)
{
	int err;

	BUILD_BUG_ON(sizeof(struct sbrm) > ICSK_CA_PRIV_SIZE);

	err = sbrm_sysctl_init();
	if (err)
		return err;

	err = tcp_register_congestion_control(&sbrm_ops);
	if (err)
		sbrm_sysctl_exit();
	return err;
}

static void __exit sbrm_module_exit(void)
{
	/* Returns only when no socket can find the operations any more. */
	tcp_unregister_congestion_control(&sbrm_ops);
	sbrm_sysctl_exit();
}

module_init(sbrm_module_init);
module_exit(sbrm_module_exit);

MODULE_DESCRIPTION("Single Bit Resource Marking congestion control");
MODULE_VERSION("0.1.0");
MODULE_LICENSE("GPL");
