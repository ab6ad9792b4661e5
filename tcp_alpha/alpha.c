// SPDX-License-Identifier: GPL-2.0
/*
 * Second-order rate control: alpha (ALPHA)
 *
 * A source increases its rate R linearly until the network sets the bit CN, which
 * says that the queue Q of a link is above a threshold. While CN is set, it
 * decreases the rate exponentially. So rate and queue oscillate in cycles. The
 * largest queue of a cycle depends on the gain alpha, on the number of sources and
 * on their round-trip times. Therefore the gain is controlled, too, once in each
 * cycle, by a second bit: BCN says that the largest queue was beyond the goal.
 *
 *	R' = alpha			while CN = 0			(1)
 *	R' = -(alpha / BW_EST) R	while CN = 1			(1)
 *
 *	alpha := q alpha		at the end of a cycle with BCN	(3)
 *	alpha := alpha / q		of the first one without
 *	alpha := alpha + p		of a further one without
 *
 * The largest queue then stays near its goal, with any number of sources. A lost
 * packet is retransmitted and does not change the rate: error control is separate
 * from flow control.
 *
 * Source: X. Zhang, K. G. Shin, Second-Order Rate-Based Flow Control with
 * Decoupled Error Control for High-Throughput Transport Protocols (ALPHA). The
 * page with (1) to (3) is missing in the available text; these equations follow
 * from Fig. 2 and from (4) to (11).
 *
 * Notable differences from the paper:
 * - there are no control packets: ACKs carry CN and BCN. The first ACK after the
 *   time Delta makes a step of the rate, with the OR of the bits that came since the
 *   last step. The gain is alpha and not alpha Delta, see alpha_law.c;
 * - there is no NMQ: the queue finds the end of a cycle by itself and sets BCN only
 *   together with CN, see sch_sbrm/sbrm_alpha.c. The BCN of a cycle is the OR of the
 *   bits that came in its CN phase;
 * - the identification field carries CN and BCN (alpha_carrier.c) if the queue is
 *   sch_sbrm and the peer returns them. Otherwise ECE of any receiver is CN, and the
 *   source infers BCN: the longest round-trip time of the cycle exceeds the shortest
 *   one by more than goal_us;
 * - BW_EST is the largest delivery rate of the last two cycles, which is the
 *   connection's own share of the link. If the rate of the link is set, BW_EST is
 *   between this rate and the mean share of all connections, see alpha_fair(), or this
 *   rate. tcp_alpha(7) has the consequences for several connections;
 * - error control is that of Linux: SACK, RACK and TLP. The window does not limit the
 *   rate: it is twice what the rate sends in a round trip;
 * - a rate that the application does not use does not increase, and no rate increases
 *   beyond twice the delivery rate plus the increase of one round trip;
 * - if more packets are lost than errors explain, a loss counts as CN and BCN, see
 *   alpha_losses(): the paper has no routers that do not set the bits. After a second
 *   timeout in a row, or an idle time of one timeout, the connection begins anew;
 * - a cycle is not shorter than two round trips, and a gain that doubles the rate in a
 *   round trip does not increase, see alpha_cycle(): the paper's receivers are honest.
 *
 * Restricted, because it responds to few losses and adds hooks to the network
 * namespace. Pair it with sch_sbrm, "mark alpha feedback two-bit".
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/inet_diag.h>
#include <linux/module.h>
#include <net/tcp.h>

#include "alpha.h"
#include "tollway_burst.h"
#include "tollway_carrier.h"
#include "tollway_fixp.h"
#include "tollway_release.h"

/* Round-trip times are limited to 1 us .. 2^24 us (16.8 s). */
#define ALPHA_RTT_MAX_US	((1U << 24) - 1)

/*
 * Default gain: the rate increases by so many packets per round trip, in each
 * round trip. With a larger gain, the queue of the first cycle is longer, or more
 * packets are lost: about as many as the gain has. With a smaller one, a new
 * connection needs longer to find its rate.
 *
 * The gain increases by a quarter of this after a cycle that was not beyond the
 * goal. With more than a quarter, all flows increase their gains after a cycle just
 * below the goal, and the next cycle is far beyond it. With less, a gain that has
 * become too small needs more cycles.
 */
#define ALPHA_AUTO_GAIN		32
#define ALPHA_AUTO_GIP		8

/*
 * After so many acknowledged segments without an echo of the field, the peer does
 * not return it. With fewer, a time in which the socket is owned by a process when
 * ACKs arrive, so that their echo is not read, is mistaken for this. With more, a
 * connection takes longer until it uses ECN marks instead.
 */
#define ALPHA_SILENT_MAX	32

/*
 * Losses count as congestion from MIN losses on, in the last WINDOW segments or so
 * (older segments count less). Errors of 1 % lose 20 of 2048 segments, with a
 * standard deviation of 5; the default of the setting "losses", 1/32, is 64 of them.
 * With a smaller window, random errors reach this share; with a larger one, losses
 * count for longer after they have ended. MIN is this share of 512 segments. With a
 * smaller MIN, one burst of errors counts as congestion.
 */
#define ALPHA_LOSSES_MIN	16
#define ALPHA_LOSSES_WINDOW	2048

/* Losses reduce the gain at most to so many packets per round trip, see above. */
#define ALPHA_LOSSES_GAIN	1

/*
 * One packet (super-packet) has as many segments as the rate sends in 2^-14 s, 61 us:
 * 5 segments at 1 Gb/s, which is a tenth of the threshold of section VI. With more, a
 * single burst may be marked; with less, sending needs more CPU time. A power of two
 * needs no division.
 */
#define ALPHA_BURST_SHIFT	14

static u32 alpha_srtt_us(const struct tcp_sock *tp)
{
	/* srtt_us is in units of 1/8 us. */
	return clamp(tp->srtt_us >> 3, 1U, ALPHA_RTT_MAX_US);
}

/* R_0, the initial rate, packets/s in Q16. */
static u64 alpha_initial(const struct sock *sk, const struct alpha *ca)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 set = READ_ONCE(ca->net->initial);

	return set ? set << ALPHA_RATE_SHIFT :
		     alpha_law_rate(TCP_INIT_CWND, alpha_srtt_us(tp));
}

/* Set the pacing rate, the window and the size of packets from the rate. */
static void alpha_pace(struct sock *sk, const struct alpha *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 bytes, cwnd, burst;

	/* The rate is at most 2^46 and a segment at most 2^16 bytes: at most 2^62. */
	bytes = (ca->rate * tp->mss_cache) >> ALPHA_RATE_SHIFT;
	/* 0 means no pacing, and users may set a limit of 0. */
	bytes = min_t(u64, bytes, READ_ONCE(sk->sk_max_pacing_rate));
	bytes = max_t(u64, bytes, 1);
	WRITE_ONCE(sk->sk_pacing_rate, bytes);

	burst = ca->rate >> (ALPHA_RATE_SHIFT + ALPHA_BURST_SHIFT);
	tollway_burst(sk, clamp_t(u64, burst, TOLLWAY_BURST_MIN, GSO_MAX_SEGS));

	/*
	 * The window has room for 16 segments more than are outstanding: the
	 * rate is the limit, and the window stops the sender if no ACKs
	 * arrive. With less room, it would delay the segments that one ACK
	 * for many segments releases.
	 */
	cwnd = 2ULL * alpha_law_packets(ca->rate, alpha_srtt_us(tp));
	cwnd = max_t(u64, cwnd, tcp_packets_in_flight(tp)) + 16;
	/* The stack uses the window as s32 in places. A locked metric may make the clamp 0. */
	cwnd = min3(cwnd, (u64)tp->snd_cwnd_clamp, (u64)S32_MAX);
	tcp_snd_cwnd_set(tp, max_t(u64, cwnd, 1));
}

/* Begin with a path of which nothing is known. */
static void alpha_begin(struct sock *sk, struct alpha *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 set = READ_ONCE(ca->net->gain);

	/* Before the answer to our SYN there is no round-trip time. */
	if (!tp->srtt_us)
		return;
	if (!ca->gain)
		ca->gain = set ? (u64)set << ALPHA_GAIN_SHIFT :
			   alpha_law_gain_auto(ALPHA_AUTO_GAIN,
					       alpha_srtt_us(tp));
	ca->rate = alpha_initial(sk, ca);
	ca->bandwidth = 0;
	ca->last_bandwidth = 0;
	ca->fair = 0;
	ca->risen_us = 0;
	ca->fallen_us = 0;
	ca->last_fallen_us = 0;
	ca->rtt_us = 0;
	ca->bits = 0;
	ca->cycle_bits = 0;
	ca->cn = 0;
	ca->heard = 0;
	ca->lost = 0;
	ca->step_us = tp->tcp_mstamp;
	ca->cycle_us = ca->step_us;
	alpha_pace(sk, ca);
}

static void alpha_restart(struct sock *sk, struct alpha *ca)
{
	alpha_count(sock_net(sk), ALPHA_COUNT_RESTARTS);
	alpha_begin(sk, ca);
}

/* p, packets/s^2 in Q8; unless it or the gain is set, computed from the round trip. */
static u64 alpha_gip(const struct tcp_sock *tp, const struct alpha *ca)
{
	u32 set = READ_ONCE(ca->net->gip);
	u32 rtt_us = min(tcp_min_rtt(tp), ALPHA_RTT_MAX_US);

	if (set || READ_ONCE(ca->net->gain))
		return (u64)set << ALPHA_GAIN_SHIFT;
	return alpha_law_gain_auto(ALPHA_AUTO_GIP, rtt_us);
}

/* Was the largest queue of the cycle beyond the goal? Without the field, an estimate. */
static bool alpha_is_beyond(const struct tcp_sock *tp, const struct alpha *ca)
{
	if (ca->cycle_bits)
		return ca->cycle_bits & PKT_SBRM_BCN;

	return (s64)ca->rtt_us - tcp_min_rtt(tp) >
	       (s64)READ_ONCE(ca->net->goal_us);
}

/* The gain after a cycle: rule (3), in the limits of alpha_losses() and below. */
static u64 alpha_next_gain(const struct sock *sk, const struct alpha *ca,
			   bool bcn)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 srtt_us = alpha_srtt_us(tp);
	u64 gain = alpha_law_gain(ca->gain, bcn, ca->last_bcn,
				  alpha_gip(tp, ca), READ_ONCE(ca->net->gdp));
	u64 least = alpha_law_gain_auto(ALPHA_LOSSES_GAIN, srtt_us);
	u64 most = alpha_law_gain_doubling(alpha_bandwidth(sk, ca), srtt_us);

	if (gain > ca->gain)
		return ca->lossy ? ca->gain : min(gain, max(most, ca->gain));
	return ca->lossy ? max(gain, min(least, ca->gain)) : gain;
}

/*
 * BW_EST in the next cycle, if the rate of the link is set.
 *
 * Let all flows have the same BW_EST, B. In the time t1 without CN, the sum of their rates
 * rises by t1 sum(alpha_i). In the time t2 with CN, it falls by t2 sum(alpha_i R_i) / B. Both
 * are equal in the long term, so B t1 / t2 is the mean rate X of the flows, weighted with
 * their gains. All flows with the same round-trip time, and with the same carrier of CN,
 * read the same t1 and t2, and get the same X. (A step is one with CN if any of its bits was,
 * so t2 is too long by up to a step, which is a part of the round trip.) With B = X, the sum
 * rises and falls with the same slope, with any number of flows. And because B is the same for
 * all flows, their rates become equal: a flow that is above B falls by more than it rises.
 *
 * If B differs between flows, it would do so for ever. Therefore B is X^(2/3), times the
 * rate of the link to the power of 1/3: each cycle reduces the differences of ln B by a
 * third. n flows then fall more slowly than they rise by n^(1/3), 1.4 for three of them and 2
 * for eight. With a smaller part of the rate of the link, the rates of new flows become equal
 * to those of others later; with a larger one, the fall is slower, and the queue longer.
 *
 * The time t1 of this cycle follows the fall of the last cycle and precedes that of this
 * one, whose gains differ by a factor of q or 1/q. So t2 is the mean of both, with the
 * gain of this cycle. In the first cycle, which begins with the initial rate, X is unknown.
 */
static void alpha_fair(const struct sock *sk, struct alpha *ca)
{
	u64 set = (u64)READ_ONCE(ca->net->bandwidth) << ALPHA_RATE_SHIFT;

	if (ca->last_fallen_us && set && READ_ONCE(ca->net->share))
		ca->fair = alpha_law_fair(alpha_bandwidth(sk, ca), ca->risen_us,
					  (u64)ca->fallen_us + ca->last_fallen_us,
					  set);
	else
		ca->fair = 0;
}

/* Count the time of a step with CN, or without. */
static void alpha_time(u32 *time_us, u32 step_us)
{
	*time_us = min_t(u64, (u64)*time_us + step_us, U32_MAX);
}

/*
 * A decrease phase ends, and with it a cycle.
 *
 * By (12) a cycle takes more than two round trips, because each of its two phases
 * ends a round trip after its cause. An earlier end is not the end of a cycle of this
 * connection: the queue is just at its threshold, or a receiver toggles CN in order to
 * increase the gain at each end. The cycle then continues. The gain does not increase
 * beyond the value that doubles the rate in a round trip. This limits what a receiver
 * gains that sends false bits more slowly: it gets no more than with slow start.
 */
static void alpha_cycle(const struct sock *sk, struct alpha *ca)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 last_gain = ca->gain;
	bool bcn;

	if ((u32)tp->tcp_mstamp - ca->cycle_us <
	    2 * min(tcp_min_rtt(tp), ALPHA_RTT_MAX_US))
		return;
	ca->cycle_us = tp->tcp_mstamp;

	bcn = alpha_is_beyond(tp, ca);
	alpha_count(sock_net(sk), ALPHA_COUNT_CYCLES);
	if (bcn)
		alpha_count(sock_net(sk), ALPHA_COUNT_BEYOND);
	alpha_fair(sk, ca);
	ca->gain = alpha_next_gain(sk, ca, bcn);
	/* In the unit of the next cycle. A gain falls to a hundredth at most. */
	ca->last_fallen_us = clamp_t(u64, fixp_mul_div(ca->fallen_us, last_gain,
						       ca->gain), 1, U32_MAX);
	ca->risen_us = 0;
	ca->fallen_us = 0;
	ca->last_bcn = bcn;
	ca->cycle_bits = 0;
	ca->last_bandwidth = ca->bandwidth;
	ca->bandwidth = 0;
	ca->rtt_us = 0;
}

/*
 * The largest rate: twice the delivery rate plus the increase of one round trip.
 * Otherwise the rate of a flow that the receiver's window limits, or that crosses a
 * link without marks, would increase without end.
 */
static u64 alpha_rate_most(const struct sock *sk, const struct alpha *ca)
{
	u32 rtt_us = min(alpha_srtt_us(tcp_sk(sk)), ALPHA_STEP_MAX_US);
	u64 most = max(ca->bandwidth, ca->last_bandwidth) +
		   alpha_law_increment(ca->gain, rtt_us);

	return max(2 * most, alpha_initial(sk, ca));
}

/* The smallest rate: one packet per round trip, which brings the next bits. */
static u64 alpha_rate_least(const struct sock *sk)
{
	return alpha_law_rate(1, alpha_srtt_us(tcp_sk(sk)));
}

/**
 * alpha_step() - ALPHA Fig. 2, on receipt of a control packet
 * @sk: socket
 * @ca: its private area
 * @step_us: time since the last step
 * @arrived: delivery rate of the last round trip, packets/s in Q16, 0 if unknown
 * @used: has the rate been used?
 */
static void alpha_step(struct sock *sk, struct alpha *ca, u32 step_us,
		       u64 arrived, bool used)
{
	bool cn = ca->bits || ca->lost;

	/* Packets above the rate that arrived are lost, see alpha_losses(). */
	if (ca->lost && arrived)
		ca->rate = min(ca->rate, arrived);
	ca->bits = 0;
	ca->lost = 0;
	if (ca->cn && !cn)
		alpha_cycle(sk, ca);
	ca->cn = cn;

	if (cn) {
		ca->rate = max(alpha_law_fall(ca->rate, ca->gain, step_us,
					      alpha_bandwidth(sk, ca)),
			       alpha_rate_least(sk));
		alpha_time(&ca->fallen_us, step_us);
	} else {
		if (used)
			ca->rate = alpha_law_rise(ca->rate, ca->gain, step_us,
						  alpha_rate_most(sk, ca));
		/* Also if the rate was not used: all flows must read the same t1. */
		alpha_time(&ca->risen_us, step_us);
	}
	alpha_pace(sk, ca);
}

/* The delivery rate of the last round trip at a step; 0 if unknown. */
static u64 alpha_measure(struct alpha *ca, const struct rate_sample *rs)
{
	u64 rate;

	if (rs->interval_us <= 0 || rs->delivered <= 0)
		return 0;
	rate = alpha_law_rate(rs->delivered, rs->interval_us);
	if (rate > ca->bandwidth)
		ca->bandwidth = rate;
	return rate;
}

/* ECE is CN; it may repeat until CWR, so it does not say which packets were marked. */
static void alpha_marks(const struct tcp_sock *tp, struct alpha *ca)
{
	if (tp->delivered_ce != ca->delivered_ce)
		ca->bits |= PKT_SBRM_CN;
	ca->delivered_ce = tp->delivered_ce;
	if (ca->bits)
		ca->heard = 1;
}

/* The echo of this ACK was read before, by the hook. */
static void alpha_watch_echo(const struct sock *sk, struct alpha *ca, u32 acked)
{
	if (!ca->carrier || ca->absent)
		return;
	if (ca->silent == ALPHA_ECHOED || alpha_carrier_is_early(sk) ||
	    tollway_carrier_is_first(tcp_sk(sk), acked)) {
		ca->silent = 0;
		return;
	}
	ca->silent = min_t(u32, ca->silent + acked, ALPHA_SILENT_MAX);
	if (likely(ca->silent < ALPHA_SILENT_MAX))
		return;
	ca->absent = 1;
	alpha_count(sock_net(sk), ALPHA_COUNT_ABSENT);
	pr_info_once("a peer does not echo the identification field: connections to such peers use ECN marks only\n");
}

/*
 * Losses count as congestion if they are more than errors explain.
 *
 * A queue that marks drops no packet below its goal. If it drops one, CN and BCN are
 * set anyway, and a loss that counts as both changes nothing. So this function does not
 * look at marks, and a rare mark does not hide the drops of another queue. It computes
 * s, the share of the segments sent lately that were lost. Losses count from s > S (the
 * setting "losses") until s < S / 2. During this time,
 *
 * - a step in which a segment was lost has CN, and its cycle BCN;
 * - in such a step the rate is reduced at least to the delivery rate, so that the
 *   excess is gone in a round trip, however small the gain is. From there the rate
 *   decreases further until nothing is lost;
 * - the gain does not increase, whatever the bits are, and is multiplied by q in each
 *   cycle with a loss, down to one packet per round trip, in each round trip. A cycle
 *   then loses about alpha RTT^2, one packet or two, as many as Reno.
 *
 * So s falls below S / 2 again. The long-term share of lost segments is the mean of s,
 * so it is below S, except for the losses of the round trip before a gain that is too
 * large is noticed.
 */
static void alpha_losses(const struct sock *sk, struct alpha *ca, u32 losses)
{
	u64 limit = READ_ONCE(ca->net->losses);
	u32 delivered = tcp_sk(sk)->delivered - ca->recent_delivered;
	u64 lost, sent;

	/*
	 * Halve the older counts before the new ones are added, so that a burst
	 * counts in full. The sum is below 2^33 and the window is 2^11, so
	 * there are at most 22 iterations.
	 */
	while ((u64)ca->recent_lost + delivered > ALPHA_LOSSES_WINDOW) {
		ca->recent_lost /= 2;
		delivered /= 2;
	}
	/* The limit of 2^20, far above the window, lets the sum fit into 32 bits. */
	ca->recent_lost += min(losses, 1U << 20);
	ca->recent_delivered = tcp_sk(sk)->delivered - delivered;

	lost = (u64)ca->recent_lost * ALPHA_SHARE_ONE;
	sent = (u64)ca->recent_lost + delivered;
	if (2 * lost <= limit * sent)
		ca->lossy = 0;
	else if (ca->recent_lost > ALPHA_LOSSES_MIN && lost > limit * sent)
		ca->lossy = 1;

	if (losses && ca->lossy) {
		alpha_count(sock_net(sk), ALPHA_COUNT_LOSSES);
		ca->lost = 1;
		ca->cycle_bits |= PKT_SBRM_CN | PKT_SBRM_BCN;
	}
}

static void alpha_cong_control(COMPAT_CONG_CONTROL_ARGS,
			       const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct alpha *ca = inet_csk_ca(sk);
	u32 step_us;
	u64 arrived;

	/* The ACK of the SYN comes before init(). */
	if (!alpha_is_ready(sk))
		return;
	if (unlikely(!ca->gain)) {
		alpha_begin(sk, ca);
		return;
	}

	alpha_marks(tp, ca);
	alpha_watch_echo(sk, ca, rs->acked_sacked);
	if (unlikely(rs->losses > 0 || ca->lossy))
		alpha_losses(sk, ca, max(rs->losses, 0));
	if (rs->rtt_us > (long)ca->rtt_us)
		ca->rtt_us = min_t(long, rs->rtt_us, ALPHA_RTT_MAX_US);

	step_us = (u32)tp->tcp_mstamp - ca->step_us;
	/* Most ACKs end here. interval <= 10^6 < 2^20, times 2^24 us fits into 2^44. */
	if ((u64)step_us * 1000000 <
	    (u64)alpha_srtt_us(tp) * READ_ONCE(ca->net->interval))
		return;
	ca->step_us = tp->tcp_mstamp;
	arrived = alpha_measure(ca, rs);
	/* A longer step counts as one round trip, because no bits came for the rest. */
	step_us = min3(step_us, alpha_srtt_us(tp), ALPHA_STEP_MAX_US);
	alpha_step(sk, ca, step_us, arrived, !rs->is_app_limited);
}

/* Losses do not change the rate, ALPHA II.B. */
static u32 alpha_ssthresh(struct sock *sk)
{
	return max(tcp_snd_cwnd(tcp_sk(sk)), 2U);
}

static u32 alpha_undo_cwnd(struct sock *sk)
{
	return tcp_snd_cwnd(tcp_sk(sk));
}

/*
 * After a timeout the window is one segment until an ACK arrives, and then that of the
 * same rate. A second timeout in a row (tcp_enter_loss() distinguishes them) means that
 * the path is broken or has changed.
 */
static void alpha_set_state(struct sock *sk, u8 new_state)
{
	struct alpha *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tcp_snd_cwnd(tp);

	if (!alpha_is_ready(sk) || new_state != TCP_CA_Loss ||
	    inet_csk(sk)->icsk_ca_state != TCP_CA_Loss ||
	    !inet_csk(sk)->icsk_retransmits)
		return;
	alpha_restart(sk, ca);
	tcp_snd_cwnd_set(tp, cwnd);
}

/* Called before a packet is sent: begin anew if it is the first after an idle time. */
static void alpha_before_send(struct sock *sk, struct alpha *ca)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (likely(tp->packets_out) || !ca->gain || !tp->delivered_mstamp)
		return;
	if (tp->tcp_mstamp - tp->delivered_mstamp >
	    jiffies_to_usecs(inet_csk(sk)->icsk_rto) &&
	    (u32)tp->tcp_mstamp - ca->step_us >
	    jiffies_to_usecs(inet_csk(sk)->icsk_rto))
		alpha_restart(sk, ca);
}

/* The least number of segments of a packet is 1; the largest is that of alpha_pace(). */
static u32 alpha_tso_segs(COMPAT_TSO_SEGS_ARGS)
{
	if (alpha_is_ready(sk))
		alpha_before_send(sk, inet_csk_ca(sk));
	return COMPAT_TSO_SEGS(sk, 1);
}

static void alpha_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct alpha *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	ca->net = alpha_net(sock_net(sk));
	ca->delivered_ce = tp->delivered_ce;
	ca->recent_delivered = tp->delivered;
	/* Segments with a signature cannot return the field, and IPv6 does not have it. */
	if (READ_ONCE(ca->net->field) && tollway_carrier_has_field(sk) &&
	    !compat_tcp_is_signed(tp)) {
		ca->carrier = 1;
		alpha_carrier_use(sk);
	}
	alpha_begin(sk, ca);
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
}

/* Before init() there is nothing to give back. */
static void alpha_release(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!alpha_is_ready(sk))
		return;
	tollway_release_pacing(sk);
	tollway_release_packets(sk);
	/* The window was no limit: the next congestion control begins with what is in flight. */
	tcp_snd_cwnd_set(tp, clamp_t(u32, tcp_packets_in_flight(tp),
				     min_t(u32, TCP_INIT_CWND, tcp_snd_cwnd(tp)),
				     tcp_snd_cwnd(tp)));
}

static struct tcp_congestion_ops alpha_ops __read_mostly = {
	/* Not TCP_CONG_NON_RESTRICTED, see above. */
	.name		= "alpha",
	.owner		= THIS_MODULE,
	.init		= alpha_init,
	.release	= alpha_release,
	.cong_control	= alpha_cong_control,
	.ssthresh	= alpha_ssthresh,
	.undo_cwnd	= alpha_undo_cwnd,
	.set_state	= alpha_set_state,
	.COMPAT_TSO_SEGS_OP = alpha_tso_segs,
	.get_info	= alpha_get_info,
};

static int __init alpha_module_init(void)
{
	int err;

	BUILD_BUG_ON(sizeof(struct alpha) > ICSK_CA_PRIV_SIZE);

	err = alpha_net_register();
	if (err)
		return err;
	err = tcp_register_congestion_control(&alpha_ops);
	if (err)
		alpha_net_unregister();
	return err;
}

static void __exit alpha_module_exit(void)
{
	/* This returns when no socket can find the operations any more. */
	tcp_unregister_congestion_control(&alpha_ops);
	alpha_net_unregister();
}

module_init(alpha_module_init);
module_exit(alpha_module_exit);

MODULE_DESCRIPTION("Second-order rate control: alpha");
MODULE_VERSION("0.1.0");
MODULE_LICENSE("GPL");
