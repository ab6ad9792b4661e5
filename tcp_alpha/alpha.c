// SPDX-License-Identifier: GPL-2.0
/*
 * Second-order rate control: alpha (ALPHA)
 *
 * A source raises its rate R linearly while the network says nothing, and lowers
 * it exponentially while it says CN: the queue Q of a link is above a threshold.
 * What this leads to is a cycle, and the largest queue of a cycle follows from the
 * gain alpha, the number of sources and their round-trip times. So the gain is
 * controlled, too, once in a cycle, by a second bit: BCN says that the largest
 * queue was beyond the goal.
 *
 *	R' = alpha			while CN = 0			(1)
 *	R' = -(alpha / BW_EST) R	while CN = 1			(1)
 *
 *	alpha := q alpha		at the end of a cycle with BCN	(3)
 *	alpha := alpha / q		of the first one without
 *	alpha := alpha + p		of a further one without
 *
 * The largest queue then swings about its goal, whatever the number of sources. A
 * loss is repaired and changes no rate: error control is apart from flow control.
 *
 * Source: X. Zhang, K. G. Shin, Second-Order Rate-Based Flow Control with
 * Decoupled Error Control for High-Throughput Transport Protocols (ALPHA). The
 * page with (1) to (3) is lost in the text at hand; they follow from Fig. 2 and
 * from (4) to (11).
 *
 * Notable differences from the paper:
 * - no control packets: ACKs bring CN and BCN, and a step of the rate is made on
 *   the first ACK after Delta, with the OR of what came since the last one. The
 *   gain is alpha and not alpha Delta, see alpha_law.c;
 * - no NMQ: the queue knows by itself when a cycle ends and shows BCN with CN
 *   only, see sch_sbrm/sbrm_alpha.c. BCN of a cycle is the OR of what came in its
 *   CN phase;
 * - CN and BCN come in the identification field (alpha_carrier.c) where sch_sbrm
 *   and the peer know them. Else CE is CN, by ECE of any receiver, and the source
 *   infers BCN: the longest round-trip time of the cycle is longer than the
 *   shortest one by more than goal_us;
 * - BW_EST is the largest delivery rate of the last two cycles, which is the
 *   connection's own share of the link, or, where the link's rate is set, the
 *   geometric mean of both, or that rate: see tcp_alpha(7) on what follows for
 *   several connections;
 * - error control is Linux's own: SACK, RACK and TLP with a window that is no
 *   limit. It is twice what the rate sends in a round trip;
 * - a rate that is not used does not rise, nor beyond twice of what was delivered
 *   and what a round trip adds;
 * - where more is lost than errors explain, a loss stands for CN and BCN, see
 *   alpha_losses(): the paper has no network without its routers. A second timeout
 *   in a row, or an idle time of one, ends what is known, and the rate begins anew;
 * - a cycle is no shorter than two round trips, and a gain that doubles the rate in
 *   a round trip rises no more, see alpha_cycle(): the paper's receivers are honest.
 *
 * Restricted: it answers few losses, and hooks a whole namespace. Pair it with
 * sch_sbrm, "mark alpha feedback two-bit".
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/inet_diag.h>
#include <linux/module.h>
#include <net/tcp.h>

#include "alpha.h"
#include "tollway_burst.h"
#include "tollway_carrier.h"
#include "tollway_release.h"

/* Round-trip times are taken as 1 us .. 16 s. */
#define ALPHA_RTT_MAX_US	((1U << 24) - 1)

/*
 * Without settings: packets a round trip, in each round trip. With a larger
 * gain a first cycle has a longer queue, or loses more: about as many packets
 * as the gain has. With a smaller one a new connection needs longer to find its
 * rate.
 *
 * The gain rises by a quarter of that in a cycle that was not beyond the goal.
 * With a larger part, all flows raise their gains after a cycle just below the
 * goal, and the next one is far beyond it. With a smaller part, a gain that has
 * become too small needs more cycles.
 */
#define ALPHA_AUTO_GAIN		32
#define ALPHA_AUTO_GIP		8

/*
 * So many segments without an echo of the field: there is none. With fewer, a
 * spell in which ACKs find the socket owned by a process is taken for that.
 * With more, a connection waits for longer until it goes by marks alone.
 */
#define ALPHA_SILENT_MAX	32

/*
 * Fewer losses than this are no share of anything. Beyond so many segments the
 * older ones count less. Errors of 1 % lose 20 of 2048 segments, give or take
 * 5, where 64 are the share that the setting "losses" has by default. With
 * fewer segments, errors come to that by chance; with more, losses count for
 * longer after they have ended. 16 are that share of 512 segments: with fewer,
 * one burst of errors would do.
 */
#define ALPHA_LOSSES_MIN	16
#define ALPHA_LOSSES_WINDOW	2048

/* Losses take the gain no lower than to so many packets a round trip, see above. */
#define ALPHA_LOSSES_GAIN	1

/*
 * What one packet may hold is what the rate sends in 2^-14 s, 61 us: at 1 Gb/s 5
 * segments, a tenth of the threshold of section VI. With more, a burst may be marked for
 * itself; with less, it costs more packets to send. A power of two is no quotient.
 */
#define ALPHA_BURST_SHIFT	14

static u32 alpha_srtt_us(const struct tcp_sock *tp)
{
	/* It is in 2^-3 us. */
	return clamp(tp->srtt_us >> 3, 1U, ALPHA_RTT_MAX_US);
}

/* R_0 */
static u64 alpha_initial(const struct sock *sk, const struct alpha *ca)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 set = READ_ONCE(ca->net->initial);

	return set ? set << ALPHA_RATE_SHIFT :
		     alpha_law_rate(TCP_INIT_CWND, alpha_srtt_us(tp));
}

/* Let the stack send at the rate, and no more than that. */
static void alpha_pace(struct sock *sk, const struct alpha *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 bytes, cwnd, burst;

	/* 2^46 times a segment of at most 2^16. */
	bytes = (ca->rate * tp->mss_cache) >> ALPHA_RATE_SHIFT;
	/* 0 would be no pacing at all, and users may set a limit of 0. */
	bytes = min_t(u64, bytes, READ_ONCE(sk->sk_max_pacing_rate));
	bytes = max_t(u64, bytes, 1);
	WRITE_ONCE(sk->sk_pacing_rate, bytes);

	burst = ca->rate >> (ALPHA_RATE_SHIFT + ALPHA_BURST_SHIFT);
	tollway_burst(sk, clamp_t(u64, burst, TOLLWAY_BURST_MIN, GSO_MAX_SEGS));

	/*
	 * Room for 16 segments above what is outstanding: the rate is the
	 * limit, and the window ends what is sent when ACKs stay away. With
	 * less room it holds back what an ACK for many segments lets go.
	 */
	cwnd = 2ULL * alpha_law_packets(ca->rate, alpha_srtt_us(tp));
	cwnd = max_t(u64, cwnd, tcp_packets_in_flight(tp)) + 16;
	/* The window is signed in places; a locked metric may make the clamp 0. */
	cwnd = min3(cwnd, (u64)tp->snd_cwnd_clamp, (u64)S32_MAX);
	tcp_snd_cwnd_set(tp, max_t(u64, cwnd, 1));
}

/* Nothing is known of the path. */
static void alpha_begin(struct sock *sk, struct alpha *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 set = READ_ONCE(ca->net->gain);

	/* Before the answer to our SYN there is no time to begin with. */
	if (!tp->srtt_us)
		return;
	if (!ca->gain)
		ca->gain = set ? (u64)set << ALPHA_GAIN_SHIFT :
			   alpha_law_gain_auto(ALPHA_AUTO_GAIN,
					       alpha_srtt_us(tp));
	ca->rate = alpha_initial(sk, ca);
	ca->bandwidth = 0;
	ca->last_bandwidth = 0;
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

/* p; where alpha follows from the round-trip time, so does p unless it is set. */
static u64 alpha_gip(const struct tcp_sock *tp, const struct alpha *ca)
{
	u32 set = READ_ONCE(ca->net->gip);
	u32 rtt_us = min(tcp_min_rtt(tp), ALPHA_RTT_MAX_US);

	if (set || READ_ONCE(ca->net->gain))
		return (u64)set << ALPHA_GAIN_SHIFT;
	return alpha_law_gain_auto(ALPHA_AUTO_GIP, rtt_us);
}

/* Was the largest queue of the cycle beyond the goal? By marks alone, a guess. */
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
 * A decrease phase ends, and with it a cycle.
 *
 * By (12) a cycle takes more than two round trips: what the new rate does comes
 * back after one, twice. So an end that comes earlier is none of a cycle of ours,
 * but the queue is at its threshold, or a receiver toggles CN, for whom each end
 * would be a rise of the gain. The cycle goes on then. That a gain does not rise
 * beyond what doubles the rate in a round trip bounds what a receiver gets that
 * lies slowly: it is no more than a slow start.
 */
static void alpha_cycle(const struct sock *sk, struct alpha *ca)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	bool bcn;

	if ((u32)tp->tcp_mstamp - ca->cycle_us <
	    2 * min(tcp_min_rtt(tp), ALPHA_RTT_MAX_US))
		return;
	ca->cycle_us = tp->tcp_mstamp;

	bcn = alpha_is_beyond(tp, ca);
	alpha_count(sock_net(sk), ALPHA_COUNT_CYCLES);
	if (bcn)
		alpha_count(sock_net(sk), ALPHA_COUNT_BEYOND);
	ca->gain = alpha_next_gain(sk, ca, bcn);
	ca->last_bcn = bcn;
	ca->cycle_bits = 0;
	ca->last_bandwidth = ca->bandwidth;
	ca->bandwidth = 0;
	ca->rtt_us = 0;
}

/*
 * How far the rate may rise: twice of what arrived, and what a round trip adds. A
 * flow that the receiver's window holds back would else rise for ever, and one over
 * a link that marks nothing.
 */
static u64 alpha_rate_most(const struct sock *sk, const struct alpha *ca)
{
	u32 rtt_us = min(alpha_srtt_us(tcp_sk(sk)), ALPHA_STEP_MAX_US);
	u64 most = max(ca->bandwidth, ca->last_bandwidth) +
		   alpha_law_increment(ca->gain, rtt_us);

	return max(2 * most, alpha_initial(sk, ca));
}

/* Never less than a packet in a round trip: it brings the next mark. */
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

	/* What is above that is lost, see alpha_losses(). */
	if (ca->lost && arrived)
		ca->rate = min(ca->rate, arrived);
	ca->bits = 0;
	ca->lost = 0;
	if (ca->cn && !cn)
		alpha_cycle(sk, ca);
	ca->cn = cn;

	if (cn)
		ca->rate = max(alpha_law_fall(ca->rate, ca->gain, step_us,
					      alpha_bandwidth(sk, ca)),
			       alpha_rate_least(sk));
	else if (used)
		ca->rate = alpha_law_rise(ca->rate, ca->gain, step_us,
					  alpha_rate_most(sk, ca));
	alpha_pace(sk, ca);
}

/* The delivery rate at a step, which is that of a round trip; 0 if unknown. */
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

/* ECE, which may repeat until CWR, is CN; what it says of each packet is not used. */
static void alpha_marks(const struct tcp_sock *tp, struct alpha *ca)
{
	if (tp->delivered_ce != ca->delivered_ce)
		ca->bits |= PKT_SBRM_CN;
	ca->delivered_ce = tp->delivered_ce;
	if (ca->bits)
		ca->heard = 1;
}

/* What the ACK itself echoed has been taken before. */
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
 * Losses, which are congestion where they are more than errors explain.
 *
 * A queue that marks drops nothing below its goal, where CN and BCN are set: there
 * a loss that stands for both changes nothing. So marks need not be looked at, and
 * neither does a rare one hide what another queue drops. What counts is the share s
 * of what is lost of all that was sent lately. It is too large from s > S, the
 * setting "losses", until s < S / 2. As long as that is so,
 *
 * - a step in which something was lost has CN, and its cycle BCN;
 * - in such a step the rate falls at least to what arrived, so that the excess is
 *   gone in a round trip, however small the gain. From there it falls on
 *   until nothing is lost;
 * - the gain does not rise, whatever the bits say, and falls by q in each cycle with
 *   a loss, to a packet in a round trip in each round trip at last: what is lost in
 *   a cycle, about alpha RTT^2, is a packet or two then, as it is with Reno.
 *
 * So s comes below S / 2 again. As the share that is lost in the long run is the
 * mean of s, it is below S, but for what a round trip with a gain that was too
 * large loses before it is seen.
 */
static void alpha_losses(const struct sock *sk, struct alpha *ca, u32 losses)
{
	u64 limit = READ_ONCE(ca->net->losses);
	u32 delivered = tcp_sk(sk)->delivered - ca->recent_delivered;
	u64 lost, sent;

	/* The older ones first, so that a burst counts in full: at most 22 turns. */
	while ((u64)ca->recent_lost + delivered > ALPHA_LOSSES_WINDOW) {
		ca->recent_lost /= 2;
		delivered /= 2;
	}
	/* So that the sum fits 32 bits; 2^20 is far above the window anyway. */
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
	/* Most ACKs end here. The fraction is below 2^20: no more than 2^44. */
	if ((u64)step_us * 1000000 <
	    (u64)alpha_srtt_us(tp) * READ_ONCE(ca->net->interval))
		return;
	ca->step_us = tp->tcp_mstamp;
	arrived = alpha_measure(ca, rs);
	/* No step stands for more than a round trip: nothing came meanwhile. */
	step_us = min3(step_us, alpha_srtt_us(tp), ALPHA_STEP_MAX_US);
	alpha_step(sk, ca, step_us, arrived, !rs->is_app_limited);
}

/* Losses are no affair of the rate, ALPHA II.B. */
static u32 alpha_ssthresh(struct sock *sk)
{
	return max(tcp_snd_cwnd(tcp_sk(sk)), 2U);
}

static u32 alpha_undo_cwnd(struct sock *sk)
{
	return tcp_snd_cwnd(tcp_sk(sk));
}

/*
 * After a timeout the window is one segment until an ACK comes, and then that of
 * the same rate. A second one in a row, as tcp_enter_loss() tells them apart: the path
 * is dead, or another one.
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

/* Before something is sent: is it the first after an idle time? */
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

/* One segment at a time where the rate is low; above, see alpha_pace(). */
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
	/* Signed segments cannot return it, and IPv6 has none. */
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
	/* The window was no limit: what follows begins with what is out. */
	tcp_snd_cwnd_set(tp, clamp_t(u32, tcp_packets_in_flight(tp),
				     min_t(u32, TCP_INIT_CWND, tcp_snd_cwnd(tp)),
				     tcp_snd_cwnd(tp)));
}

static struct tcp_congestion_ops alpha_ops __read_mostly = {
	/* Restricted, see above. */
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
	/* Returns only when no socket can find the operations any more. */
	tcp_unregister_congestion_control(&alpha_ops);
	alpha_net_unregister();
}

module_init(alpha_module_init);
module_exit(alpha_module_exit);

MODULE_DESCRIPTION("Second-order rate control: alpha");
MODULE_VERSION("0.1.0");
MODULE_LICENSE("GPL");
