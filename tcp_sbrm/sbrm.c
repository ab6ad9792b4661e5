// SPDX-License-Identifier: GPL-2.0
/*
 * Congestion control by shadow prices (CP05 chapters 4 and 5)
 *
 * A flow that is willing to pay w (packets/s times price) over a path with
 * price p should send at x = w / p. Routers tell the price by marking each
 * packet with probability 1 - exp(-price of their link) (see sch_sbrm), so that
 * the fraction m of packets that arrive marked tells the price of the path,
 *
 *	p = -ln(1 - m),
 *
 * or by adding it up in a field of the packet. For each segment that is
 * acknowledged the window of CP05 moves by
 *
 *	d cwnd = kappa (w T - p), T = RTT / cwnd		(4.2.1)
 *
 * where T is the time for which the segment stands; the default source moves it
 * in proportion to itself (sbrm_relative.c). Both are at rest at
 * cwnd / RTT = w / p: weighted proportional fairness. The round-trip time
 * cancels.
 *
 *	      no mark: + 1 per segment		first mark, or loss
 *	+----------------------------+	     +-------------------------+
 *	|	 slow start	     | ----> | window follows the price |
 *	+----------------------------+	     +-------------------------+
 *
 * Four names, of which each is a source (sbrm_source.c: how the window follows
 * the price) and an estimator (sbrm_estimator.c: where the price comes from):
 *
 *	sbrm	source and estimator of the sysctls	relative, log
 *	rem	Vegas/CP, marks of the last 50 packets	REM, 5.2
 *		(or four bits, by the sysctl)		5.2.3
 *	cp	source of the sysctl, explicit price	CP-TCP/EPF, 4.2
 *	rm	TCP/RM, any receiver			5.6.3
 *
 * Source: S. Zimmermann, Congestion Pricing as Scalable, Efficient and Stable
 * Congestion Control for Future IP Networks, 2005 (CP05).
 *
 * sbrm and rem need the marks one by one. RFC 3168 receivers repeat ECE until
 * they see CWR, which loses their number. Three cases (enum sbrm_echo):
 * - the peer runs this module (or dctcp): it echoes the mark of each packet,
 *   found out by watching, see sbrm_echo.c;
 * - the kernel negotiated AccECN: any receiver counts the marks;
 * - neither: the connection behaves as TCP/RM, one cut per round trip. Stock
 *   Linux receivers without this module refuse ECN to a SYN that is ECT itself,
 *   which TCP_CONG_NEEDS_ECN makes it: losses alone are left then.
 * cp needs a peer that echoes the price field (sbrm_carrier.c), and is TCP/RM
 * where none does. ss -ti shows which: dctcp:fallback_mode is TCP/RM.
 *
 * Notable differences from the paper:
 * - the window is a fixed-point number and paced at cwnd / RTT (with the default
 *   source, RTT is that of sbrm_relative_rtt()): at 6 ms and
 *   w = 100 the fair window is 2.4 segments, which no integer expresses. What
 *   the kernel and ss know as cwnd is a cap, rounded up, plus one segment after
 *   slow start (and one segment where sbrm_relative_in_turn() says so);
 * - the time itself takes the place of RTT / cwnd, see sbrm_direct(), and the
 *   gaps between packets vary, see sbrm_pace();
 * - slow start ends with half of its window at the first mark, or at the first
 *   price at which the flow should pay more than it is willing to; with the
 *   default source, see sbrm_relative_start_end();
 * - a window that is not used is given up (RFC 2861), see sbrm_restart() and
 *   sbrm_unused();
 * - with the estimator log, m is an exponential average with history_gain per
 *   packet; a step is at most one segment per acknowledged segment;
 * - prices are in base e; w that is meant for base phi is multiplied by
 *   ln(phi), with the sysctl phi;
 * - loss detection and repair are Linux's own (SACK, RACK, TLP); where a loss is
 *   congestion, see sbrm_loss.c, the window is halved once per recovery, and
 *   transmission goes on as in_flight allows. It stays as it is then, but for
 *   one of less than two segments;
 * - 5.6.3 asks to discard round-trip times of retransmitted segments, and of
 *   those after a lost one that only the end of the recovery acknowledges.
 *   Linux does: the first by Karn's rule or time stamps, the second as SACK
 *   acknowledges such segments when they arrive, and times them then.
 *
 * Pair it with sch_sbrm, or any queue that marks early.
 */

#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/skbuff.h>
#include <net/inet_ecn.h>
#include <net/tcp.h>

#include "sbrm.h"
#include "tollway_release.h"

/* Round-trip times are taken as 1 us .. 2^24 us, which are 16 s. */
#define SBRM_RTT_MAX_US	BIT(24)

/*
 * What one ACK brings is taken as at most 2^20 segments. Windows are smaller than
 * 2^24, and a price is below 2^36 in Q32, so that the product has 56 bits.
 */
#define SBRM_ACKED_MAX	BIT(20)

/* The window before a loss is in Q8: 2^24 - 1 segments fit into 32 bits. */
#define SBRM_PRIOR_SHIFT	8

/* From so many segments on, Q32, two samples are about as old as one. */
#define SBRM_RTT_TWO_CWND	(8 * FIXP_ONE)

/**
 * sbrm_rtt_update() - take the round-trip time of an ACK
 * @ca: connection
 * @tp: its socket
 * @sample_us: round-trip time of the ACK, us, negative if it has none
 *
 * Not srtt: with its lag a loop of 34 ms began to swing, while cwnd over the
 * last sample answers a growing queue at once, as ACK clocking does. (For the
 * source relative half of that answer is enough, see sbrm_relative_rtt().) Of the
 * last two samples the smaller counts: a receiver that saw the mark change sends the ACK
 * it held back first, and that sample has waited.
 *
 * Not so for a small window of relative: samples come a packet apart, and by two
 * of them the queue is known too late. (1 Mb/s, 200 ms, four flows: 97 instead
 * of 73 ms at the 99th percentile.) In slow start it is, which a sample that has
 * waited would end.
 */
static void sbrm_rtt_update(struct sbrm *ca, const struct tcp_sock *tp,
			    long sample_us)
{
	u32 last_us = ca->rtt_last_us, rtt_us;

	if (unlikely(sample_us < 1 || sample_us > SBRM_RTT_MAX_US)) {
		if (sample_us < 0)
			sample_us = tp->srtt_us >> 3;	/* is in 2^-3 us */
		sample_us = clamp_t(long, sample_us, 1, SBRM_RTT_MAX_US);
	}
	rtt_us = sample_us;
	ca->rtt_last_us = rtt_us;
	if (likely(last_us) &&
	    (likely(ca->cwnd >= SBRM_RTT_TWO_CWND) || ca->slow_start ||
	     !sbrm_is_relative(ca)))
		rtt_us = min(last_us, rtt_us);
	ca->rtt_us = rtt_us;
}

/*
 * Shall slow start end, and with which window? The window has doubled since the
 * marked packet was sent. A price that is known as such has been there before
 * the flow came: it ends slow start only where the flow would pay too much.
 *
 * Return: the window, segments in Q32; 0 while slow start goes on.
 */
static u64 sbrm_start_end(const struct sock *sk, struct sbrm *ca,
			  const struct sbrm_ack *ack, s64 price)
{
	if (sbrm_is_relative(ca))
		return sbrm_relative_start_end(sk, ca, ack);
	if (!ack->ece && !(ca->carrier && sbrm_balance(sk, ca, price) < 0))
		return 0;
	sbrm_loss_priced(ca);
	return ca->cwnd / 2;
}

/**
 * sbrm_unused() - what of the window nothing has filled in the last round trip
 * @tp: socket
 *
 * The application, the window of the receiver, or a limit of the rate may hold a
 * flow back. Half of a window, and the initial one, count as filled: packets in
 * flight are counted as they leave, while the window is paced.
 *
 * Return: segments.
 */
static u32 sbrm_unused(const struct tcp_sock *tp)
{
	u32 cwnd = tcp_snd_cwnd(tp), filled = 2 * tp->max_packets_out;

	if (likely(tp->is_cwnd_limited || cwnd <= filled ||
		   cwnd <= TCP_INIT_CWND))
		return 0;
	return cwnd - max_t(u32, filled, TCP_INIT_CWND);
}

/* The window after @ack, by the source of the connection. */
static void sbrm_update(struct sock *sk, struct sbrm *ca,
			const struct sbrm_ack *ack, s64 price)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 unused = sbrm_unused(tp);
	s64 change;

	if (unlikely(ca->slow_start)) {
		u64 cwnd = sbrm_start_end(sk, ca, ack, price);

		if (!cwnd && tcp_in_slow_start(tp)) {
			if (tcp_is_cwnd_limited(sk))
				sbrm_cwnd_set(sk, ca, ca->cwnd +
					((u64)ack->acked << FIXP_SHIFT));
			return;
		}
		if (cwnd)
			sbrm_cwnd_set(sk, ca, cwnd);
		ca->slow_start = 0;
		sbrm_estimator_restart(ca);
	}

	change = sbrm_source_step(sk, ca, ack, price);

	/* A window that is not used says nothing about the price. */
	if (unlikely(unused))
		sbrm_decay(sk, ca, ack, unused);
	if ((ack->app_limited || unused) && change > 0)
		return;

	/* |change| < 2^56 and cwnd < 2^57: no overflow. */
	sbrm_cwnd_set(sk, ca, ca->cwnd + change);
}

/* TCP's usual reaction to loss (CP05 4.3.1): half, once. */
static void sbrm_cut_for_loss(struct sock *sk, struct sbrm *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);

	ca->spared = 0;
	ca->halved = 1;
	ca->slow_start = 0;
	sbrm_cwnd_set(sk, ca, ca->cwnd / 2);
	tp->snd_ssthresh = max(tcp_snd_cwnd(tp), 2U);
}

static const struct tcp_congestion_ops *sbrm_without_ecn(const struct sock *sk);
static const struct tcp_congestion_ops *sbrm_with_ecn(const struct sock *sk);

/*
 * Without ECN marks would go unseen: let routers drop instead. Operations that
 * need ECN make every packet ECT, whatever the peer has answered, so the
 * connection gets others; the stack looks at them again when init() returns.
 */
static void sbrm_forgo_ecn(struct sock *sk)
{
	if (!tcp_ca_needs_ecn(sk))
		return;
	WRITE_ONCE(inet_csk(sk)->icsk_ca_ops, sbrm_without_ecn(sk));
	INET_ECN_dontxmit(sk);
}

static void sbrm_settle(struct sock *sk, struct sbrm *ca)
{
	if (!sbrm_echo_settle(sk, ca))
		sbrm_forgo_ecn(sk);
}

static void sbrm_cong_control(COMPAT_CONG_CONTROL_ARGS,
			      const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct sbrm *ca = inet_csk_ca(sk);
	struct sbrm_ack news;
	bool by_marks;
	s64 price;

	/* The ACK of the SYN comes before init(). */
	if (!sbrm_is_ready(sk))
		return;
	if (unlikely(ca->unsettled))
		sbrm_settle(sk, ca);

	news.acked = tp->delivered - ca->delivered;
	news.marked = tp->delivered_ce - ca->delivered_ce;
	ca->delivered = tp->delivered;
	if (unlikely(news.marked))
		ca->delivered_ce = tp->delivered_ce;
	if (!news.acked)
		return;

	/*
	 * There may be more marks than segments: AccECN counts every marked packet,
	 * also one that was sent again for nothing (its loss is undone), and such a
	 * packet delivers no segment. Without AccECN both counters go up together.
	 */
	news.acked = min_t(u32, news.acked, SBRM_ACKED_MAX);
	news.marked = min(news.marked, news.acked);
	news.lost = min_t(u32, rs->losses, SBRM_ACKED_MAX);
	news.ece = news.marked;
	news.app_limited = rs->is_app_limited;
	news.last_us = ca->acked_us;
	news.now_us = tp->tcp_mstamp;
	news.time_us = min(news.now_us - news.last_us, SBRM_TIME_MAX_US);
	news.random = sbrm_random_u32();
	ca->acked_us = news.now_us;

	sbrm_rtt_update(ca, tp, rs->rtt_us);
	if (likely(ca->source == SBRM_SOURCE_RELATIVE))
		sbrm_relative_slow(ca, &news);
	sbrm_echo_watch(sk, ca, &news);
	by_marks = sbrm_by_marks(ca);
	price = sbrm_estimate(ca, &news, by_marks);
	news.wtp = sbrm_wtp(sk, ca);
	news.due = sbrm_paid(news.wtp, news.time_us, 0);
	/* Below 2^36 times 2^20. */
	if (by_marks)
		news.paid = unlikely(news.marked) ?
			    sbrm_relative_paid(ca, &news) : 0;
	else
		news.paid = (s64)ca->price * news.acked <<
			    (FIXP_SHIFT - SBRM_PRICE_SHIFT);
	ca->seen = 0;
	if (news.paid)
		ca->priced = 1;

	/* Losses that were spared, and turn out to be congestion. */
	if (unlikely(sbrm_loss_update(ca, &news)) && ca->spared &&
	    inet_csk(sk)->icsk_ca_state == TCP_CA_Recovery)
		sbrm_cut_for_loss(sk, ca);

	/*
	 * While lost packets are repaired the window stays as it was cut, or is one. One of less
	 * than two segments follows the price: it repairs hardly a packet in a round trip. A flow
	 * at 100 Mb/s that had lost 50 packets, when the link was a thousand times slower for 5 s,
	 * sent 6 of them in a second, and had its share after 13 s.
	 */
	if (unlikely(inet_csk(sk)->icsk_ca_state == TCP_CA_Recovery) &&
	    !ca->spared && ca->cwnd >= 2 * FIXP_ONE)
		sbrm_cwnd_set(sk, ca, ca->cwnd + sbrm_relative_in_turn(sk, ca, &news));
	else
		sbrm_update(sk, ca, &news, price);
	/* 16 bits: sbrm_loss_update() has taken the lower half. */
	sbrm_pace(sk, ca, ca->cwnd, news.random >> 16);
}

/*
 * Called on the way into CWR, Recovery and Loss alike; what the window becomes
 * is decided in set_state(), which knows. Any of them ends slow start, but for a
 * loss that is spared, see sbrm_spare().
 */
static u32 sbrm_ssthresh(struct sock *sk)
{
	return max(tcp_snd_cwnd(tcp_sk(sk)), 2U);
}

/*
 * On the way into Loss: by a timeout, which leaves room for one segment, or
 * because the path takes smaller packets only (tcp_simple_retransmit()), which
 * says nothing of its price?
 */
static bool sbrm_timed_out(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tcp_snd_cwnd(tp) == tcp_packets_in_flight(tp) + 1;
}

/*
 * Is it a loss of its own, and not one more in a recovery? A timeout is the first one,
 * or the first since something arrived: tcp_enter_loss() asks the same.
 */
static bool sbrm_is_new_loss(const struct sock *sk, u8 new_state)
{
	const struct inet_connection_sock *icsk = inet_csk(sk);

	return icsk->icsk_ca_state < TCP_CA_Recovery ||
	       (icsk->icsk_ca_state == TCP_CA_Loss &&
		new_state == TCP_CA_Loss && !icsk->icsk_retransmits);
}

/* What a loss is about to change, for undo. */
static void sbrm_prior_set(struct sbrm *ca)
{
	ca->prior_cwnd = min_t(u64, ca->cwnd >> (FIXP_SHIFT - SBRM_PRIOR_SHIFT),
			       U32_MAX);
	ca->prior_halved = ca->halved;
	ca->prior_slow_start = ca->slow_start;
}

/*
 * A loss that does not cut the window: what is lost is sent again, and nothing
 * else happens. ssthresh() has ended slow start, not knowing what for; what it
 * was before is kept for undo, unless a mark came with the loss.
 */
static void sbrm_spare(struct tcp_sock *tp, struct sbrm *ca)
{
	ca->spared = 1;
	sbrm_prior_set(ca);
	if (ca->slow_start)
		tp->snd_ssthresh = max(tp->snd_ssthresh, tp->prior_ssthresh);
}

static void sbrm_set_state(struct sock *sk, u8 new_state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct sbrm *ca = inet_csk_ca(sk);

	if (new_state < TCP_CA_Recovery || !sbrm_is_ready(sk))
		return;
	if (new_state == TCP_CA_Recovery && sbrm_spares_loss(ca)) {
		sbrm_spare(tp, ca);
		return;
	}
	if (new_state == TCP_CA_Loss && !sbrm_timed_out(sk))
		return;

	/* A timeout in a recovery is part of it, unless that spared its loss. */
	if (ca->spared || sbrm_is_new_loss(sk, new_state)) {
		sbrm_prior_set(ca);
		sbrm_cut_for_loss(sk, ca);
	}
	/* After a timeout, up to there in slow start. */
	ca->slow_start = new_state == TCP_CA_Loss;
	if (ca->slow_start)
		sbrm_relative_begin(ca);
	if (new_state == TCP_CA_Loss)
		sbrm_cwnd_set(sk, ca, FIXP_ONE);
}

static u32 sbrm_undo_cwnd(struct sock *sk)
{
	struct sbrm *ca = inet_csk_ca(sk);
	u64 prior;

	/* A SYN that came late, but did come. */
	if (!sbrm_is_ready(sk))
		return tcp_reno_undo_cwnd(sk);
	prior = (u64)ca->prior_cwnd << (FIXP_SHIFT - SBRM_PRIOR_SHIFT);
	/* Nothing was taken from the window where the loss was spared. */
	if (!ca->spared) {
		ca->halved = ca->prior_halved;
		if (ca->prior_slow_start && !ca->slow_start)
			sbrm_relative_begin(ca);
		ca->slow_start = ca->prior_slow_start;
	}
	sbrm_cwnd_set(sk, ca, ca->spared ? ca->cwnd : max(ca->cwnd, prior));
	return tcp_snd_cwnd(tcp_sk(sk));
}

static void sbrm_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	if (!sbrm_is_ready(sk))
		return;
	if (event == CA_EVENT_ECN_IS_CE || event == CA_EVENT_ECN_NO_CE)
		sbrm_echo_receive(sk, event == CA_EVENT_ECN_IS_CE);
}

/*
 * The stack is about to send. One segment at a time where the rate is low; above,
 * the stack's size, up to the limit of sbrm_burst().
 */
static u32 sbrm_tso_segs(COMPAT_TSO_SEGS_ARGS)
{
	struct sbrm *ca = inet_csk_ca(sk);

	if (unlikely(!tcp_sk(sk)->packets_out) && sbrm_is_ready(sk))
		sbrm_restart(sk, ca);
	return COMPAT_TSO_SEGS(sk, 1);
}

static void sbrm_init_as(struct sock *sk, u32 source, u32 estimator)
{
	const struct sbrm_net *net = sbrm_net(sock_net(sk));
	struct tcp_sock *tp = tcp_sk(sk);
	struct sbrm *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	ca->net = net;
	ca->source = source;
	ca->estimator = estimator;
	ca->delivered = tp->delivered;
	ca->delivered_ce = tp->delivered_ce;
	if (source == SBRM_SOURCE_RELATIVE)
		ca->grown = 1;
	else
		ca->born = tcp_jiffies32;
	ca->acked_us = tp->tcp_mstamp;
	ca->step_end = tp->snd_una;
	sbrm_relative_begin(ca);
	sbrm_rtt_update(ca, tp, tp->srtt_us ? -1 : USEC_PER_MSEC);
	ca->slow_start = READ_ONCE(net->slow_start);
	ca->rcv_prior_nxt = tp->rcv_nxt;

	sbrm_echo_begin(sk, ca);
	if (sk->sk_state == TCP_SYN_SENT && compat_tcp_ecn_negotiated(tp))
		ca->unsettled = 1;
	else
		sbrm_settle(sk, ca);

	/* Not by sbrm_cwnd_set(): initcwnd is what may leave at first. */
	ca->cwnd = min_t(u64, (u64)tcp_snd_cwnd(tp) << FIXP_SHIFT,
			 SBRM_CWND_MAX);
	sbrm_prior_set(ca);
	/* 16 bits of it, as in sbrm_cong_control(). */
	sbrm_pace(sk, ca, ca->cwnd, sbrm_random_u32() >> 16);
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
}

/* Before init() there is nothing to give back. */
static void sbrm_release(struct sock *sk)
{
	if (!sbrm_is_ready(sk))
		return;
	tollway_release_pacing(sk);
	tollway_release_packets(sk);
	/* The socket may connect() again, to a peer that has ECN. */
	WRITE_ONCE(inet_csk(sk)->icsk_ca_ops, sbrm_with_ecn(sk));
}

static void sbrm_init(struct sock *sk)
{
	const struct sbrm_net *net = sbrm_net(sock_net(sk));

	sbrm_init_as(sk, READ_ONCE(net->source), READ_ONCE(net->estimator));
}

/* With one bit, or the four of CP05 5.2.3. */
static void rem_init(struct sock *sk)
{
	const struct sbrm_net *net = sbrm_net(sock_net(sk));

	sbrm_init_as(sk, SBRM_SOURCE_VEGAS,
		     READ_ONCE(net->estimator) == SBRM_ESTIMATOR_FOUR_BIT ?
		     SBRM_ESTIMATOR_FOUR_BIT : SBRM_ESTIMATOR_HISTORY);
}

static void cp_init(struct sock *sk)
{
	const struct sbrm_net *net = sbrm_net(sock_net(sk));

	sbrm_init_as(sk, READ_ONCE(net->source), SBRM_ESTIMATOR_EXPLICIT);
}

static void rm_init(struct sock *sk)
{
	sbrm_init_as(sk, SBRM_SOURCE_RM, SBRM_ESTIMATOR_LOG);
}

#define SBRM_OPS						\
	.owner		= THIS_MODULE,				\
	.release	= sbrm_release,				\
	.cong_control	= sbrm_cong_control,			\
	.ssthresh	= sbrm_ssthresh,			\
	.undo_cwnd	= sbrm_undo_cwnd,			\
	.set_state	= sbrm_set_state,			\
	.COMPAT_TSO_SEGS_OP = sbrm_tso_segs,			\
	.get_info	= sbrm_get_info

/* Where AccECN is known it is asked for as well: any receiver will do then. */
#ifdef TCP_CONG_NEEDS_ACCECN
#define SBRM_NEEDS_MARKS	(TCP_CONG_NEEDS_ECN | TCP_CONG_NEEDS_ACCECN)
#else
#define SBRM_NEEDS_MARKS	TCP_CONG_NEEDS_ECN
#endif

enum sbrm_ops_index {
	SBRM_OPS_SBRM,
	SBRM_OPS_REM,
	SBRM_OPS_CP,
	SBRM_OPS_RM,
};

static struct tcp_congestion_ops sbrm_ops[] __read_mostly = {
	[SBRM_OPS_SBRM] = {
		SBRM_OPS,
		.name		= "sbrm",
		.init		= sbrm_init,
		.cwnd_event	= sbrm_cwnd_event,
		.flags		= SBRM_NEEDS_MARKS | TCP_CONG_NON_RESTRICTED,
	},
	[SBRM_OPS_REM] = {
		SBRM_OPS,
		.name		= "rem",
		.init		= rem_init,
		.cwnd_event	= sbrm_cwnd_event,
		.flags		= SBRM_NEEDS_MARKS | TCP_CONG_NON_RESTRICTED,
	},
	[SBRM_OPS_CP] = {
		SBRM_OPS,
		/* Restricted: hooks for a whole namespace, see sbrm_carrier.c. */
		.name		= "cp",
		.init		= cp_init,
	},
	[SBRM_OPS_RM] = {
		SBRM_OPS,
		.name		= "rm",
		.init		= rm_init,
		.flags		= TCP_CONG_NON_RESTRICTED,
	},
};

/* Never registered: sbrm_forgo_ecn() gives them to connections without ECN. */
static struct tcp_congestion_ops sbrm_no_ecn_ops __read_mostly = {
	SBRM_OPS,
	.name		= "sbrm",
	.init		= sbrm_init,
	.flags		= TCP_CONG_NON_RESTRICTED,
};

static struct tcp_congestion_ops rem_no_ecn_ops __read_mostly = {
	SBRM_OPS,
	.name		= "rem",
	.init		= rem_init,
	.flags		= TCP_CONG_NON_RESTRICTED,
};

static const struct tcp_congestion_ops *sbrm_without_ecn(const struct sock *sk)
{
	return inet_csk(sk)->icsk_ca_ops->init == rem_init ? &rem_no_ecn_ops :
							      &sbrm_no_ecn_ops;
}

static const struct tcp_congestion_ops *sbrm_with_ecn(const struct sock *sk)
{
	const struct tcp_congestion_ops *ops = inet_csk(sk)->icsk_ca_ops;

	if (ops == &sbrm_no_ecn_ops)
		return &sbrm_ops[SBRM_OPS_SBRM];
	return ops == &rem_no_ecn_ops ? &sbrm_ops[SBRM_OPS_REM] : ops;
}

static void sbrm_unregister(int count)
{
	/* Each returns only when no socket can find the operations any more. */
	while (count--)
		tcp_unregister_congestion_control(&sbrm_ops[count]);
	sbrm_carrier_unregister();
	sbrm_net_unregister();
}

static int __init sbrm_module_init(void)
{
	int err, i;

	BUILD_BUG_ON(sizeof(struct sbrm) > ICSK_CA_PRIV_SIZE);

	sbrm_random_init();
	err = sbrm_net_register();
	if (err)
		return err;
	err = sbrm_carrier_register();
	if (err) {
		sbrm_net_unregister();
		return err;
	}

	for (i = 0; i < ARRAY_SIZE(sbrm_ops); i++) {
		err = tcp_register_congestion_control(&sbrm_ops[i]);
		if (err) {
			sbrm_unregister(i);
			return err;
		}
	}
	return 0;
}

static void __exit sbrm_module_exit(void)
{
	sbrm_unregister(ARRAY_SIZE(sbrm_ops));
}

module_init(sbrm_module_init);
module_exit(sbrm_module_exit);

MODULE_ALIAS("tcp_rem");
MODULE_ALIAS("tcp_cp");
MODULE_ALIAS("tcp_rm");
MODULE_DESCRIPTION("Congestion control by shadow prices: sbrm, rem, cp, rm");
MODULE_VERSION("0.1.0");
MODULE_LICENSE("GPL");
