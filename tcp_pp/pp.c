// SPDX-License-Identifier: GPL-2.0
/*
 * Packet pair: rate control for networks of round-robin queues (PP94)
 *
 * Where each flow has a queue of its own and queues are served in turn, two
 * packets that arrive back to back leave the bottleneck one round of service
 * apart. So all data is sent as pairs, and the distance of the two ACKs of a
 * pair is the service time s of the bottleneck for this flow: its share of the
 * link, measured and not searched for.
 *
 *	s_hat = a s_hat + (1 - a) s		pp_estimator.c
 *	n_hat = S - R / s_hat			packets that wait there
 *	rate  = (B - n_hat) / J + 1 / s_hat	pp_law.c
 *
 * S is what is outstanding, R the propagation delay, B the setpoint: the number
 * of packets that shall wait, so that the share is used whenever it grows.
 *
 *	   first pair of ACKs		n_hat > 2
 *	 +-------+	 +--------+		 +---------+
 *	 | start | ----> | rising | <----------> | the law |
 *	 +-------+	 +--------+		 +---------+
 *
 * Source: S. Keshav, Packet-Pair Flow Control, 1994 (PP94). ppx is the
 * uncontrolled source of S. Morgan, S. Keshav, Packet-Pair Rate Control, 1994
 * (MK94): the same pairs and the same repair of losses at no rate at all, for
 * experiments.
 *
 * Pair it with a queue that serves flows in turn: sch_fq_rr, fq_codel, sfq; and
 * with a receiver that acknowledges every segment (ip route ... quickack 1).
 */

#include <linux/inet_diag.h>
#include <linux/module.h>
#include <net/tcp.h>

#include "pp.h"

/* PP94 Table 2: the setpoint when it is probed. */
#define PP_SETPOINT_INITIAL	(5 * PP_PACKET)
#define PP_SETPOINT_MIN		(2 * PP_PACKET)
#define PP_SETPOINT_STEP	(2 * PP_PACKET)
#define PP_SETPOINT_ROUNDS	2

/* Window of ppx, segments: no bound but the receiver's. */
#define PPX_CWND		(1U << 20)

/* Packets not known to have left or to be lost, Q8. */
static u32 pp_outstanding(const struct sock *sk)
{
	return min_t(u32, tcp_packets_in_flight(tcp_sk(sk)), PP_PACKETS_MAX) <<
	       PP_PACKET_SHIFT;
}

/*
 * A pair, or a train, is one packet of so many segments: what is paced, it
 * leaves the host back to back. Route changes reset sk_gso_max_segs.
 */
static u32 pp_train_use(struct sock *sk)
{
	u32 train = READ_ONCE(pp_net(sock_net(sk))->train);
	struct pp *ca = inet_csk_ca(sk);

	if (sk->sk_gso_max_segs != train) {
		ca->gso_segs = sk->sk_gso_max_segs;
		sk->sk_gso_max_segs = train;
	}
	return train;
}

static void pp_pace(struct sock *sk, u64 rate)
{
	/* 2^46 times a segment of at most 2^16. */
	rate = (rate * tcp_sk(sk)->mss_cache) >> PP_RATE_SHIFT;
	WRITE_ONCE(sk->sk_pacing_rate,
		   clamp_t(u64, rate, 1, READ_ONCE(sk->sk_max_pacing_rate)));
}

/**
 * pp_window() - a window that leaves the rate alone
 * @sk: socket
 * @ca: its private area
 *
 * Twice what the pipe and the setpoint hold. It ends what a flow sends when ACKs
 * stay away, and nothing else: a queue that is too long is the law's affair, so
 * the window leaves room for some pairs above what is outstanding.
 */
static void pp_window(struct sock *sk, const struct pp *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 pipe = U32_MAX - pp_law_queue(U32_MAX, ca->delay_us,
					  ca->estimate.service);
	u64 cwnd = 2 * ((u64)pipe + ca->setpoint) >> PP_PACKET_SHIFT;

	cwnd = max_t(u64, cwnd, tcp_packets_in_flight(tp)) + 16;
	tcp_snd_cwnd_set(tp, min_t(u64, cwnd, tp->snd_cwnd_clamp));
}

/* The rate after a sample of the service time, or at the end of an epoch. */
static void pp_control(struct sock *sk, struct pp *ca, u64 target,
		       bool app_limited)
{
	u64 service = ca->estimate.service;
	u64 rate = pp_law_rise(target, ca->mean_rate, ca->queue,
			       pp_law_rate(max(ca->flight, ca->flight_last),
					   ca->delay_us));
	u64 least;

	ca->rising = rate < target;
	/* What was not sent is no part of the mean. */
	if (!app_limited || rate < ca->mean_rate)
		ca->mean_rate = pp_law_mean(ca->mean_rate, rate);

	target = pp_law_drain(rate, ca->setpoint, ca->queue, service);
	ca->draining = target > rate;
	/* A pair in a round trip, whatever the law says. */
	least = pp_invert(pp_law_rtt_ns(ca->queue, ca->delay_us, service) <<
			  PP_SERVICE_SHIFT) * 2;
	pp_pace(sk, clamp_t(u64, target, least, PP_RATE_MAX));
}

static void pp_sample(struct sock *sk, struct pp *ca, const struct pp_net *net,
		      const struct rate_sample *rs, u64 sample)
{
	bool first = !ca->estimate.service;

	pp_estimate_sample(&ca->estimate, &net->gains, sample);
	ca->queue = pp_law_queue(pp_outstanding(sk), ca->delay_us,
				 ca->estimate.service);
	if (READ_ONCE(net->law) == PP_LAW_CONTINUOUS || first)
		pp_control(sk, ca, pp_law_continuous(ca->setpoint, ca->queue,
						     ca->delay_us,
						     ca->estimate.service),
			   rs->is_app_limited);
}

/* The end of a round trip: the setpoint, and the discrete law. */
static void pp_round(struct sock *sk, struct pp *ca, const struct pp_net *net,
		     const struct rate_sample *rs)
{
	u32 fixed = READ_ONCE(net->setpoint) << PP_PACKET_SHIFT;

	ca->flight_last = ca->flight;
	ca->flight = 0;
	ca->lost = 0;
	if (fixed) {
		ca->setpoint = fixed;
	} else if (++ca->rounds >= PP_SETPOINT_ROUNDS) {
		ca->rounds = 0;
		ca->setpoint = min(ca->setpoint + PP_SETPOINT_STEP,
				   READ_ONCE(net->setpoint_max) <<
				   PP_PACKET_SHIFT);
	}

	if (!ca->estimate.service)
		return;

	if (READ_ONCE(net->law) == PP_LAW_DISCRETE) {
		u64 rate = pp_invert(ca->estimate.service);

		pp_control(sk, ca,
			   pp_law_discrete(ca->setpoint, ca->epoch_queue,
					   pp_outstanding(sk),
					   ca->epoch_rate ?: rate, rate,
					   (u64)ca->rtt_us * NSEC_PER_USEC),
			   rs->is_app_limited);
		ca->epoch_rate = rate;
		ca->epoch_queue = pp_law_queue(pp_outstanding(sk), ca->delay_us,
					       ca->estimate.service);
	}
}

static void pp_loss(struct pp *ca, const struct pp_net *net)
{
	if (READ_ONCE(net->setpoint) || ca->lost)
		return;
	ca->lost = 1;
	ca->rounds = 0;
	ca->setpoint = max(ca->setpoint - ca->setpoint / 4,
			   PP_SETPOINT_MIN);
}

/* What a round trip delivers, for the rise: the most in an ACK's own round. */
static void pp_flight(struct pp *ca, const struct rate_sample *rs)
{
	u64 flight;

	if (rs->delivered <= 0 || rs->interval_us <= 0)
		return;
	/* Segments below 2^24 and times of 2^24 us. */
	flight = div_u64((u64)rs->delivered * ca->delay_us << PP_PACKET_SHIFT,
			 rs->interval_us);
	ca->flight = max_t(u32, ca->flight, min_t(u64, flight, U32_MAX));
}

static void pp_cong_control(COMPAT_CONG_CONTROL_ARGS,
			    const struct rate_sample *rs)
{
	const struct pp_net *net = pp_net(sock_net(sk));
	struct tcp_sock *tp = tcp_sk(sk);
	struct pp *ca = inet_csk_ca(sk);
	u32 acked = tp->delivered - ca->delivered;
	u64 sample;

	/* The ACK of the SYN comes before init(). */
	if (!ca->ready)
		return;

	ca->delivered = tp->delivered;
	if (rs->losses > 0)
		pp_loss(ca, net);
	if (!acked)
		return;

	if (rs->rtt_us >= 0) {
		ca->rtt_us = clamp_t(long, rs->rtt_us, 1, PP_RTT_MAX_US);
		if (!ca->delay_us || ca->rtt_us < ca->delay_us)
			ca->delay_us = ca->rtt_us;
	}
	ca->idle_since = tcp_jiffies32;
	pp_flight(ca, rs);

	if (rs->is_retrans || rs->rtt_us < 0) {
		pp_train_break(&ca->train);
		sample = 0;
	} else {
		sample = pp_train_ack(&ca->train, (u32)tp->first_tx_mstamp,
				      (u32)tp->tcp_clock_cache, acked,
				      READ_ONCE(net->train));
	}
	if (sample)
		pp_sample(sk, ca, net, rs, sample);

	if (!before(rs->prior_delivered, ca->round_end)) {
		ca->round_end = tp->delivered;
		pp_round(sk, ca, net, rs);
	}
	if (ca->estimate.service)
		pp_window(sk, ca);
}

/* Losses are no affair of the rate, PP94 section 6. */
static u32 pp_ssthresh(struct sock *sk)
{
	return max(tcp_snd_cwnd(tcp_sk(sk)), 2U);
}

static u32 pp_undo_cwnd(struct sock *sk)
{
	return tcp_snd_cwnd(tcp_sk(sk));
}

static u32 pp_tso_segs(COMPAT_TSO_SEGS_ARGS)
{
	return pp_train_use(sk);
}

static void pp_init(struct sock *sk)
{
	const struct pp_net *net = pp_net(sock_net(sk));
	u32 initial = READ_ONCE(net->initial);
	struct tcp_sock *tp = tcp_sk(sk);
	struct pp *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	ca->ready = 1;
	ca->delivered = tp->delivered;
	ca->round_end = tp->delivered;
	ca->idle_since = tcp_jiffies32;
	ca->setpoint = READ_ONCE(net->setpoint) << PP_PACKET_SHIFT ?:
		       PP_SETPOINT_INITIAL;
	if (initial)
		tcp_snd_cwnd_set(tp, initial);
	pp_train_use(sk);
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
}

/* What ss shows beside the setpoint, see pp_get_info(). */
static u32 pp_state(const struct pp *ca)
{
	return (ca->estimate.service ? 0 : PP_STATE_START) |
	       (ca->rising ? PP_STATE_RISING : 0) |
	       (ca->draining ? PP_STATE_DRAINING : 0);
}

/*
 * ss knows no structure of ours; bbr's has the nearest fields. bw: 1 / s_hat;
 * mrtt: R; pacing_gain: n_hat, packets; cwnd_gain: the setpoint, packets, and
 * 10000 times the state. Documented in tcp_pp(7).
 */
static size_t pp_get_info(struct sock *sk, u32 ext, int *attr,
			  union tcp_cc_info *info)
{
	const struct pp *ca = inet_csk_ca(sk);
	u64 bw;

	if (!(ext & (1 << (INET_DIAG_BBRINFO - 1))) &&
	    !(ext & (1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;

	memset(&info->bbr, 0, sizeof(info->bbr));
	bw = ca->estimate.service ? pp_invert(ca->estimate.service) : 0;
	bw = (bw * tcp_sk(sk)->mss_cache) >> PP_RATE_SHIFT;
	info->bbr.bbr_bw_lo = (u32)bw;
	info->bbr.bbr_bw_hi = (u32)(bw >> 32);
	info->bbr.bbr_min_rtt = ca->delay_us;
	/* Gains are in Q8, as our numbers of packets are. */
	info->bbr.bbr_pacing_gain = ca->queue;
	info->bbr.bbr_cwnd_gain = ca->setpoint +
				  pp_state(ca) * PP_STATE_UNIT * PP_PACKET;
	*attr = INET_DIAG_BBRINFO;
	return sizeof(info->bbr);
}

/* The source of MK94: everything at once, nothing held back. */
static void ppx_cong_control(COMPAT_CONG_CONTROL_ARGS,
			     const struct rate_sample *rs)
{
	tcp_snd_cwnd_set(tcp_sk(sk), min_t(u32, tcp_sk(sk)->snd_cwnd_clamp,
					   PPX_CWND));
}

static void ppx_init(struct sock *sk)
{
	struct pp *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	pp_train_use(sk);
	tcp_snd_cwnd_set(tcp_sk(sk), min_t(u32, tcp_sk(sk)->snd_cwnd_clamp,
					   PPX_CWND));
}

static struct tcp_congestion_ops pp_ops[] __read_mostly = {
	{
		.name		= "pp",
		.owner		= THIS_MODULE,
		.flags		= TCP_CONG_NON_RESTRICTED,
		.init		= pp_init,
		.cong_control	= pp_cong_control,
		.ssthresh	= pp_ssthresh,
		.undo_cwnd	= pp_undo_cwnd,
		.COMPAT_TSO_SEGS_OP = pp_tso_segs,
		.get_info	= pp_get_info,
	}, {
		.name		= "ppx",
		.owner		= THIS_MODULE,
		.flags		= TCP_CONG_NON_RESTRICTED,
		.init		= ppx_init,
		.cong_control	= ppx_cong_control,
		.ssthresh	= pp_ssthresh,
		.undo_cwnd	= pp_undo_cwnd,
		.COMPAT_TSO_SEGS_OP = pp_tso_segs,
	},
};

static void pp_unregister(int count)
{
	/* Each returns only when no socket can find the operations any more. */
	while (count--)
		tcp_unregister_congestion_control(&pp_ops[count]);
	pp_net_unregister();
}

static int __init pp_module_init(void)
{
	int err, i;

	BUILD_BUG_ON(sizeof(struct pp) > ICSK_CA_PRIV_SIZE);

	err = pp_net_register();
	if (err)
		return err;

	for (i = 0; i < ARRAY_SIZE(pp_ops); i++) {
		err = tcp_register_congestion_control(&pp_ops[i]);
		if (err) {
			pp_unregister(i);
			return err;
		}
	}
	return 0;
}

static void __exit pp_module_exit(void)
{
	pp_unregister(ARRAY_SIZE(pp_ops));
}

module_init(pp_module_init);
module_exit(pp_module_exit);

MODULE_ALIAS("tcp_ppx");
MODULE_DESCRIPTION("Packet-pair rate control: pp, ppx");
MODULE_VERSION("0.1.0");
MODULE_LICENSE("GPL");
