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
 *   found out by watching, see sbrm_echo_watch();
 * - the kernel negotiated AccECN: any receiver counts the marks;
 * - neither: the connection behaves as TCP/RM, one cut per round trip. Stock
 *   Linux receivers without this module refuse ECN to a SYN that is ECT itself,
 *   which TCP_CONG_NEEDS_ECN makes it: losses alone are left then.
 * cp needs a peer that echoes the price field (sbrm_carrier.c), and is TCP/RM
 * where none does. ss -ti shows which: dctcp:fallback_mode is TCP/RM.
 *
 * Notable differences from the paper:
 * - the window is a fixed-point number and paced at cwnd / RTT: at 6 ms and
 *   w = 100 the fair window is 2.4 segments, which no integer expresses. What
 *   the kernel and ss know as cwnd is a cap, rounded up, plus one segment after
 *   slow start;
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
 *   transmission goes on as in_flight allows;
 * - 5.6.3 asks to discard round-trip times of retransmitted segments, and of
 *   those after a lost one that only the end of the recovery acknowledges.
 *   Linux does: the first by Karn's rule or time stamps, the second as SACK
 *   acknowledges such segments when they arrive, and times them then.
 *
 * Pair it with sch_sbrm, or any queue that marks early.
 */

#include <linux/inet_diag.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/random.h>
#include <linux/skbuff.h>
#include <net/inet_ecn.h>
#include <net/tcp.h>

#include "sbrm.h"
#include "tollway_burst.h"
#include "tollway_carrier.h"
#include "tollway_random.h"
#include "tollway_release.h"

/* Round-trip times are taken as 1 us .. 16 s. */
#define SBRM_RTT_MAX_US	16777216U

/* Odds of e^12 convict a peer of repeating ECE, see sbrm_echo_watch(). */
#define SBRM_LATCHED_ODDS	12

/* The window before a loss is in Q8: 2^24 segments nearly fit. */
#define SBRM_PRIOR_SHIFT	8

/* What one packet may hold: see sbrm_burst(). */
#define SBRM_BURST_US	64

/* So many segments without an echo of the price field: there is none. */
#define SBRM_SILENT_MAX	32

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

void sbrm_cwnd_set(struct sock *sk, struct sbrm *ca, u64 cwnd)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 top = min_t(u64, (u64)tp->snd_cwnd_clamp << FIXP_SHIFT,
			SBRM_CWND_MAX);
	u64 least = sbrm_is_relative(ca) ? SBRM_CWND_MIN_RELATIVE :
					   SBRM_CWND_MIN;

	ca->cwnd = clamp_t(u64, cwnd, least, max(top, least));
	/*
	 * The rate is held by pacing; the whole window must not be in its way.
	 * So it is rounded up, and leaves room for the segment whose ACK a
	 * receiver holds back. In slow start the window itself is the limit: no
	 * more than initcwnd may leave at first, nor more than two segments for
	 * the first ACK after a timeout (RFC 5681).
	 */
	tcp_snd_cwnd_set(tp, min_t(u64, tp->snd_cwnd_clamp,
				   ((ca->cwnd + FIXP_ONE - 1) >> FIXP_SHIFT) +
				   !ca->slow_start));
}

/* For the gaps between packets, and what is rounded. */
static DEFINE_PER_CPU(u64, sbrm_random);

u16 sbrm_random_u16(void)
{
	u16 value = tollway_random_u32(&get_cpu_var(sbrm_random)) >> 16;

	put_cpu_var(sbrm_random);
	return value;
}

/*
 * Length of the next gap between packets over the mean, 2^-16: 0.5 to 1.5, and 7/8
 * to 9/8 with the source relative, where it is the delay that has a price, not
 * the backlog that a packet finds. None in slow start, when it may hold for a
 * whole round trip until the next ACK comes.
 */
static u32 sbrm_gap(const struct sbrm *ca)
{
	if (ca->slow_start)
		return 1U << 16;
	if (sbrm_is_relative(ca))
		return (7U << 13) + (sbrm_random_u16() >> 2);
	return (1U << 15) + sbrm_random_u16();
}

/*
 * The window that sets the rate: twice as much in slow start so that it can
 * double, but no more than where slow start leads to, if that is known. Beyond
 * it every packet would be one more in the queue.
 */
static u64 sbrm_paced_window(const struct tcp_sock *tp, const struct sbrm *ca)
{
	if (likely(!ca->slow_start))
		return ca->cwnd;
	return min(2 * ca->cwnd,
		   max((u64)tp->snd_ssthresh << FIXP_SHIFT, ca->cwnd));
}

/**
 * sbrm_burst() - limit what may leave as one packet
 * @sk: socket
 * @ca: its private area
 * @cwnd: window that sets the rate, Q32, at most 2^57
 *
 * Its segments arrive at the queue together and wait for each other. The stack
 * makes packets of 1 ms, which at 1 Gb/s is a backlog of 44 packets on a link that
 * has nothing else to do: they are marked, and the price is that of the burst. So
 * a packet is what the rate sends in %SBRM_BURST_US, or two segments where that is
 * less. By the mean rate: if the length of a packet followed the gaps of
 * sbrm_pace(), these would all be the same.
 */
static void sbrm_burst(struct sock *sk, const struct sbrm *ca, u64 cwnd)
{
	/* At most 2^41, times 2^6 us. */
	u64 flow = (cwnd >> (FIXP_SHIFT - 16)) * SBRM_BURST_US;
	u64 one = (u64)ca->rtt_us << 16;
	u32 segments = TOLLWAY_BURST_MIN;

	/* At most rates: no quotient. */
	if (unlikely(flow >= (TOLLWAY_BURST_MIN + 1) * one))
		segments = min_t(u64, div64_u64(flow, one), GSO_MAX_SEGS);
	tollway_burst(sk, segments);
}

/**
 * sbrm_pace() - pace at cwnd / RTT, see sbrm_paced_window()
 * @sk: socket
 * @ca: its private area
 *
 * The gaps between packets vary, see sbrm_gap(), with the right mean. A flow of
 * even gaps meets its own packets at the bottleneck always at the same phase: one
 * whose gap is just longer than the queueing delay never finds another one of its
 * own behind it, sees a backlog that is short by up to a packet, and gets a price
 * too low by 2 % (cf. Floyd and Jacobson, On traffic phase effects in
 * packet-switched gateways, 1992).
 */
void sbrm_pace(struct sock *sk, const struct sbrm *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 gap = sbrm_gap(ca);
	u64 bytes = (u64)tp->mss_cache * USEC_PER_SEC;	/* below 2^36 */
	u32 rtt_us = sbrm_is_relative(ca) ? sbrm_relative_rtt(ca) : ca->rtt_us;
	u64 time = (u64)max(rtt_us, 1U) * gap;		/* below 2^41 */
	u64 cwnd = sbrm_paced_window(tp, ca);
	u64 rate;

	if (likely(cwnd < 1ULL << (FIXP_SHIFT + 12)))
		rate = div64_u64((cwnd >> (FIXP_SHIFT - 16)) * bytes, time);
	else
		rate = fixp_mul_div(cwnd, bytes, time << (FIXP_SHIFT - 16));
	/* 0 would be no pacing at all. */
	rate = clamp_t(u64, rate, 1, READ_ONCE(sk->sk_max_pacing_rate));
	WRITE_ONCE(sk->sk_pacing_rate, rate);
	sbrm_burst(sk, ca, cwnd);
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

	if ((ca->echo != SBRM_ECHO_UNKNOWN && ca->echo != SBRM_ECHO_LATCHED) ||
	    ca->source == SBRM_SOURCE_RM)
		return;

	if (ca->epoch && after(tp->snd_una, ca->marks.epoch_end))
		ca->epoch = 0;

	if (ca->epoch) {
		if (!ack->ece) {
			ca->echo = SBRM_ECHO_PACKET;
			return;
		}
		if (ca->marks.latched < U16_MAX)
			ca->marks.latched++;
	} else if (ack->ece) {
		ca->epoch = 1;
		ca->marks.epoch_end = tp->snd_nxt;
		if (ca->marks.epochs < U16_MAX)
			ca->marks.epochs++;
	} else if (ca->marks.epochs && ca->marks.clear < U16_MAX) {
		ca->marks.clear++;
	}

	if (ca->echo == SBRM_ECHO_UNKNOWN && ca->marks.clear &&
	    (u32)ca->marks.latched * ca->marks.clear >=
	    SBRM_LATCHED_ODDS * ((u32)ca->marks.epochs + ca->marks.clear)) {
		ca->echo = SBRM_ECHO_LATCHED;
		sbrm_count(sock_net(sk), SBRM_COUNT_LATCHED);
		pr_info_once("a peer repeats ECE until CWR (RFC 3168): connections to such peers use TCP/RM\n");
	}
}

/**
 * sbrm_field_watch() - find out whether the peer echoes the price field
 * @sk: socket
 * @ca: connection
 * @acked: segments that the ACK acknowledges
 *
 * Silence makes the connection TCP/RM until the echo is back: it may have
 * been a spell in which every ACK found the socket owned by a process.
 */
static void sbrm_field_watch(const struct sock *sk, struct sbrm *ca, u32 acked)
{
	if (ca->seen) {
		ca->silent = 0;
		ca->echo = SBRM_ECHO_CARRIER;
		return;
	}
	ca->silent = min_t(u32, ca->silent + acked, SBRM_SILENT_MAX);
	if (ca->silent < SBRM_SILENT_MAX || ca->echo == SBRM_ECHO_NONE)
		return;

	ca->echo = SBRM_ECHO_NONE;
	sbrm_count(sock_net(sk), SBRM_COUNT_ABSENT);
	pr_info_once("a peer does not echo the price field: connections to such peers use TCP/RM\n");
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
		return sbrm_relative_start_end(sk, ca, ack, price);
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
	u32 cwnd = tcp_snd_cwnd(tp);
	u32 filled = max_t(u32, 2 * tp->max_packets_out, TCP_INIT_CWND);

	return tp->is_cwnd_limited || cwnd <= filled ? 0 : cwnd - filled;
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
	sbrm_cwnd_set(sk, ca, max_t(s64, (s64)ca->cwnd + change, 0));
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

/**
 * sbrm_settle() - does the connection have ECN, and who echoes the marks?
 * @sk: socket
 * @ca: its private area
 *
 * Before the answer to our SYN, init() runs only where setsockopt() selects us
 * then. ECN that the SYN asked for is not settled yet; the first ACK, which is
 * that of the SYN, settles it, before any data can leave.
 */
static void sbrm_settle(struct sock *sk, struct sbrm *ca)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	bool marks = !ca->carrier && ca->source != SBRM_SOURCE_RM;

	ca->unsettled = 0;
	if (compat_tcp_ecn_accurate(tp)) {
		if (marks)
			ca->echo = SBRM_ECHO_ACCECN;
	} else if (!compat_tcp_ecn_negotiated(tp)) {
		if (marks) {
			ca->echo = SBRM_ECHO_NONE;
			sbrm_count(sock_net(sk), SBRM_COUNT_NO_ECN);
			pr_info_once("ECN was not negotiated with a peer: such connections use TCP/RM on losses alone\n");
		}
		sbrm_forgo_ecn(sk);
	}
}

static void sbrm_cong_control(COMPAT_CONG_CONTROL_ARGS,
			      const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct sbrm *ca = inet_csk_ca(sk);
	struct sbrm_ack news;
	s64 price;

	/* The ACK of the SYN comes before init(). */
	if (!sbrm_is_ready(sk))
		return;
	if (unlikely(ca->unsettled))
		sbrm_settle(sk, ca);

	news.acked = tp->delivered - ca->delivered;
	news.marked = tp->delivered_ce - ca->delivered_ce;
	ca->delivered = tp->delivered;
	ca->delivered_ce = tp->delivered_ce;
	if (!news.acked)
		return;

	/* An undo may have counted marks without segments. */
	news.acked = min_t(u32, news.acked, 1U << 20);
	news.marked = min(news.marked, news.acked);
	news.lost = min_t(u32, rs->losses, 1U << 20);
	news.ece = news.marked;
	news.app_limited = rs->is_app_limited;
	news.last_us = ca->acked_us;
	news.now_us = tp->tcp_mstamp;
	ca->acked_us = news.now_us;

	sbrm_rtt_update(ca, tp, rs->rtt_us);
	if (ca->carrier)
		sbrm_field_watch(sk, ca, news.acked);
	else
		sbrm_echo_watch(sk, ca, &news);
	price = sbrm_estimate(ca, &news);
	ca->seen = 0;

	/* Losses that were spared, and turn out to be congestion. */
	if (unlikely(sbrm_loss_update(sk, ca, &news)) && ca->spared &&
	    inet_csk(sk)->icsk_ca_state == TCP_CA_Recovery)
		sbrm_cut_for_loss(sk, ca);

	/* While lost packets are repaired the window stays as it was cut. */
	if (unlikely(inet_csk(sk)->icsk_ca_state == TCP_CA_Recovery) &&
	    !ca->spared)
		sbrm_cwnd_set(sk, ca, ca->cwnd);
	else
		sbrm_update(sk, ca, &news, price);
	sbrm_pace(sk, ca);
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

/* The window before a loss, for undo. */
static void sbrm_prior_set(struct sbrm *ca)
{
	ca->prior_cwnd = min_t(u64, ca->cwnd >> (FIXP_SHIFT - SBRM_PRIOR_SHIFT),
			       U32_MAX);
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
	u8 old_state = inet_csk(sk)->icsk_ca_state;

	if (new_state < TCP_CA_Recovery || !sbrm_is_ready(sk))
		return;
	if (new_state == TCP_CA_Recovery && sbrm_spares_loss(ca)) {
		sbrm_spare(tp, ca);
		return;
	}
	if (new_state == TCP_CA_Loss && !sbrm_timed_out(sk))
		return;

	/* Once; a timeout that follows a loss is one more unless that was spared. */
	if (old_state < TCP_CA_Recovery || ca->spared) {
		sbrm_prior_set(ca);
		sbrm_cut_for_loss(sk, ca);
	}
	/* After a timeout, up to there in slow start. */
	ca->slow_start = new_state == TCP_CA_Loss;
	if (ca->slow_start)
		sbrm_relative_begin(ca);
	if (new_state == TCP_CA_Loss && old_state != TCP_CA_Loss)
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
	sbrm_cwnd_set(sk, ca, ca->spared ? ca->cwnd : max(ca->cwnd, prior));
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
 * first; also where the stack holds back those of packets that came after a lost
 * one (up to 44 of them), or all of these would be taken for marked.
 */
static void sbrm_receive(struct sock *sk, bool ce)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct sbrm *ca = inet_csk_ca(sk);

	if (compat_tcp_ecn_accurate(tcp_sk(sk)))
		return;

	if (ca->rcv_ce != ce) {
		if (icsk->icsk_ack.pending & ICSK_ACK_TIMER ||
		    tcp_sk(sk)->compressed_ack) {
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
	if (!sbrm_is_ready(sk))
		return;
	if (event == CA_EVENT_ECN_IS_CE || event == CA_EVENT_ECN_NO_CE)
		sbrm_receive(sk, event == CA_EVENT_ECN_IS_CE);
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
	return 1;
}

/* Without a price field: TCP/RM. */
static void sbrm_init_without_field(struct sock *sk, struct sbrm *ca,
				    enum sbrm_counter why)
{
	ca->estimator = SBRM_ESTIMATOR_LOG;
	ca->source = SBRM_SOURCE_RM;
	sbrm_count(sock_net(sk), why);
}

/* The price field: only IPv4 has one, and only where no segment is signed. */
static void sbrm_init_field(struct sock *sk, struct sbrm *ca)
{
	if (!tollway_carrier_has_field(sk)) {
		sbrm_init_without_field(sk, ca, SBRM_COUNT_NO_IPV4);
		pr_info_once("IPv6 has no field for prices: cp over IPv6 is TCP/RM\n");
	} else if (compat_tcp_is_signed(tcp_sk(sk))) {
		sbrm_init_without_field(sk, ca, SBRM_COUNT_SIGNED);
		pr_info_once("signed segments (MD5, AO) cannot return prices: such connections use TCP/RM\n");
	} else {
		ca->carrier = 1;
		sbrm_carrier_use(sk);
	}
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
	ca->round_end = tp->snd_una;
	sbrm_relative_begin(ca);
	sbrm_rtt_update(ca, tp, tp->srtt_us ? -1 : USEC_PER_MSEC);
	ca->slow_start = READ_ONCE(net->slow_start);
	ca->rcv_prior_nxt = tp->rcv_nxt;

	if (estimator >= SBRM_ESTIMATOR_FOUR_BIT)
		sbrm_init_field(sk, ca);
	if (sk->sk_state == TCP_SYN_SENT && compat_tcp_ecn_negotiated(tp))
		ca->unsettled = 1;
	else
		sbrm_settle(sk, ca);

	/* Not by sbrm_cwnd_set(): initcwnd is what may leave at first. */
	ca->cwnd = min_t(u64, (u64)tcp_snd_cwnd(tp) << FIXP_SHIFT,
			 SBRM_CWND_MAX);
	sbrm_prior_set(ca);
	sbrm_pace(sk, ca);
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

/*
 * ss knows no structure of ours; dctcp's has the nearest fields. enabled:
 * prices come back; ce_state: our receiver; alpha: m in 1/1024, of the price if
 * that came by itself; ab_ecn and ab_tot: segments marked and acknowledged,
 * since the connection began.
 * Documented in tcp_sbrm(7).
 */
static size_t sbrm_get_info(struct sock *sk, u32 ext, int *attr,
			    union tcp_cc_info *info)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct sbrm *ca = inet_csk_ca(sk);
	u32 mark = ca->carrier ? sbrm_mark_share(ca) : ca->mark;

	if (!(ext & (1 << (INET_DIAG_DCTCPINFO - 1))) &&
	    !(ext & (1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	/* A listener, say. */
	if (!sbrm_is_ready(sk))
		return 0;

	memset(&info->dctcp, 0, sizeof(info->dctcp));
	if (!sbrm_is_rm(ca)) {
		info->dctcp.dctcp_enabled = 1;
		info->dctcp.dctcp_ce_state = ca->rcv_ce;
		info->dctcp.dctcp_alpha = mark >> (FIXP_SHIFT - 10);
		info->dctcp.dctcp_ab_ecn = tp->delivered_ce;
		info->dctcp.dctcp_ab_tot = tp->delivered;
	}
	*attr = INET_DIAG_DCTCPINFO;
	return sizeof(info->dctcp);
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

/**
 * sbrm_owns() - is the private area of a socket ours?
 * @sk: TCP socket, locked, or the answer may be old
 *
 * Return: true if it is a struct sbrm, and init() has run.
 */
bool sbrm_owns(const struct sock *sk)
{
	const struct tcp_congestion_ops *ops =
		READ_ONCE(inet_csk(sk)->icsk_ca_ops);

	/* Not a callback that a wrapper would replace. */
	return ops && ops->get_info == sbrm_get_info && sbrm_is_ready(sk);
}

static void sbrm_unregister(int count)
{
	/* Each returns only when no socket can find the operations any more. */
	while (count--)
		tcp_unregister_congestion_control(&sbrm_ops[count]);
	sbrm_net_unregister();
}

static int __init sbrm_module_init(void)
{
	int err, i;

	BUILD_BUG_ON(sizeof(struct sbrm) > ICSK_CA_PRIV_SIZE);

	for_each_possible_cpu(i)
		per_cpu(sbrm_random, i) = get_random_u64();
	err = sbrm_net_register();
	if (err)
		return err;

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
