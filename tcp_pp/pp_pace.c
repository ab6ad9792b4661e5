// SPDX-License-Identifier: GPL-2.0
/*
 * When packets leave
 *
 * The stack paces skbs: each is followed by the gap that its length takes at the
 * rate. A pair is one skb, so that does for new data, with two exceptions. What
 * is sent again are often skbs of one segment, as the other half arrived: paced
 * one by one they are no pairs, and a connection that repairs many losses would
 * hear nothing of its bottleneck for as long. And the first ten segments are not
 * paced at all. In both cases we take the pacing on: a turn lets one train leave
 * back to back, whatever skbs it is made of, and the gap is charged after it. So it
 * is where two trains leave at once, see pp_train_gro(), and where no packet may have two
 * segments, see pp_train_is_packet().
 *
 *	tso_segs()	the stack is about to send: charge the turn before; if the
 *			gap is over, begin the next: no pacing, and a window of
 *			one train (or two) more
 *	cong_control()	charge the turn before
 *
 * The loops of the stack that send ask tso_segs() first. What leaves by a timer (a
 * probe, a retransmission) does not, and is charged to the turn as well.
 */

#include "pp.h"

/* Time that bytes take at the rate of the socket; a rate of 0 is no limit. */
static u64 pp_pace_time(const struct sock *sk, u32 bytes)
{
	unsigned long rate = READ_ONCE(sk->sk_pacing_rate);

	return rate ? div64_ul((u64)bytes * NSEC_PER_SEC, rate) : 0;
}

/**
 * pp_pace_is_ours() - does the stack pace, and not a queue of the host?
 * @sk: socket
 *
 * Return: true if it does; only then there are turns.
 */
bool pp_pace_is_ours(const struct sock *sk)
{
	return READ_ONCE(sk->sk_pacing_status) == SK_PACING_NEEDED;
}

/**
 * pp_pace_held() - packets that fq has, as it is not their time
 * @sk: socket
 *
 * fq paces what TCP has sent. Up to a millisecond of it waits there (TCP small queues), at high
 * rates far more than the setpoint, and not at the bottleneck.
 *
 * Return: segments whose time is in the future, and the last ones whose time was. They may have
 * been sent at another rate: no more than the stack lets wait there.
 */
u32 pp_pace_held(const struct sock *sk)
{
	const struct pp *ca = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 gap_ns = pp_pace_time(sk, tp->mss_cache);
	u64 ahead_ns = tp->tcp_wstamp_ns - min(tp->tcp_wstamp_ns, tp->tcp_clock_cache);
	u64 most = READ_ONCE(sk->sk_pacing_rate) >> READ_ONCE(sk->sk_pacing_shift);

	if (!gap_ns)
		return 0;
	most = max_t(u64, div_u64(most, tp->mss_cache), 2 * pp_train_sent(ca));
	return min(div64_u64(ahead_ns, gap_ns), most);
}

/*
 * A gap that was charged at a far lower rate ends when one of this rate would.
 * Small differences are left alone: only rises would count, and not falls. After
 * a stop what is charged stands, or the stop would end with it.
 */
static void pp_pace_hasten(struct sock *sk, u32 bytes)
{
	const struct pp *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u64 gap_ns = pp_pace_time(sk, bytes);
	u64 end_ns = tp->tcp_clock_cache + gap_ns;

	if (tp->tcp_wstamp_ns <= end_ns + gap_ns || !pp_pace_is_ours(sk) ||
	    pp_pace_is_stopped(sk, ca) || ca->looking)
		return;
	tp->tcp_wstamp_ns = end_ns;
	/* A timer that waits holds the socket, and still does after this. */
	if (hrtimer_try_to_cancel(&tp->pacing_timer) == 1)
		hrtimer_start(&tp->pacing_timer, ns_to_ktime(end_ns),
			      HRTIMER_MODE_ABS_PINNED_SOFT);
}

/**
 * pp_pace() - set the rate
 * @sk: socket
 * @rate: packets/s in Q16, at most PP_RATE_MAX
 */
void pp_pace(struct sock *sk, u64 rate)
{
	const struct pp *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	unsigned long before = sk->sk_pacing_rate;
	u32 bytes = pp_train_sent(ca) * tp->mss_cache;
	u64 most;
	/* What is left of the gap that was charged. */
	u32 left_ns = min_t(u64, U32_MAX, tp->tcp_wstamp_ns -
			    min(tp->tcp_wstamp_ns, tp->tcp_clock_cache));

	/* 2^46 times a segment of at most 2^16. */
	rate = (rate * tp->mss_cache) >> PP_RATE_SHIFT;
	most = READ_ONCE(sk->sk_max_pacing_rate);
	if (unlikely(!rate || rate > most))
		rate = clamp_t(u64, rate, 1, most);
	WRITE_ONCE(sk->sk_pacing_rate, rate);
	/*
	 * Nearly always it is less than a gap and a half: no quotient. A rate
	 * times ns is in 10^-9 bytes. The product may need 96 bits, so both
	 * sides are over 2^32.
	 */
	if (unlikely(left_ns == U32_MAX || mul_u64_u32_shr(rate, left_ns, 32) >=
		     (u64)bytes * (3ULL * NSEC_PER_SEC / 2) >> 32) &&
	    rate > before)
		pp_pace_hasten(sk, bytes);
}

/**
 * pp_pace_most() - segments that may be outstanding, PP94 10.3
 * @ca: its private area
 * @net: settings; get_info() has no lock, so that the area, and the pointer in it, may
 *	change their owner meanwhile
 *
 * A limit beside the rate. Where room is reserved it follows the path: before the path is
 * known it is that room alone. In a queue that others share nothing is reserved, and where no
 * pair tells yet s_hat is what the limit itself lets out.
 *
 * Return: 1 and up; U32_MAX: no limit.
 */
static u32 pp_pace_most(const struct pp *ca, const struct pp_net *net)
{
	u32 window = READ_ONCE(net->window) ?: U32_MAX;
	u32 reserved = READ_ONCE(net->reserved);
	u64 service = READ_ONCE(ca->estimate.service);
	u32 pipe = 0;

	if (!reserved || ca->shared || pp_is_unpaired(ca))
		return window;
	/* With bursts of ACKs a slot more is on the way. */
	if (service)
		pipe = pp_law_pipe(pp_is_bunched(ca) ? pp_delay_slot(ca) : ca->delay_us, service);
	return min(window, pp_law_room(pipe, ca->setpoint, READ_ONCE(net->train), reserved));
}

/**
 * pp_pace_is_cut_off() - is there no room for a train in the windows of the sysctls?
 * @sk: socket
 * @ca: its private area
 * @net: settings, see pp_pace_most()
 * @train: segments
 *
 * What is known to be lost is outstanding no more, PP94 section 6.
 *
 * Return: true if so; false without such a window.
 */
bool pp_pace_is_cut_off(const struct sock *sk, const struct pp *ca,
			const struct pp_net *net, u32 train)
{
	return unlikely(pp_pace_is_limited(net)) &&
	       tcp_packets_in_flight(tcp_sk(sk)) + train > pp_pace_most(ca, net);
}

/**
 * pp_pace_cut_off_at() - no more outstanding than the sysctls allow
 * @sk: socket
 * @ca: its private area
 *
 * While there is room for half a train nothing leaves: each ACK would let one
 * segment go, and there were no more pairs. A window of less than a train is used
 * as a whole.
 */
void pp_pace_cut_off_at(struct sock *sk, const struct pp *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 flight = tcp_packets_in_flight(tp);
	u32 window = pp_pace_most(ca, ca->net);

	if (flight && flight + pp_train_sent(ca) > window)
		window = min(window, flight);
	tcp_snd_cwnd_set(tp, min(tcp_snd_cwnd(tp), window));
}

/*
 * Round trips after a pause in which s_hat becomes smaller slowly, see pp_path_hold(). In
 * as many 1 / s_hat may become (9/8)^8 = 2.6 times as large.
 */
#define PP_WARY			8

/**
 * pp_pace_be_wary() - nothing is sent for a time, or was not
 * @ca: connection
 * @looking: so that R shows
 */
void pp_pace_be_wary(struct pp *ca, bool looking)
{
	ca->wary = PP_WARY;
	ca->looking = looking;
}

/**
 * pp_pace_stop() - send nothing for a time
 * @sk: socket
 * @ca: its private area
 * @wait_us: how long
 *
 * Not in a turn, whose gap is still to be charged.
 *
 * Return: false if a gap ends later, or a queue of the host paces: then it does not stop.
 */
bool pp_pace_stop(struct sock *sk, struct pp *ca, u32 wait_us)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 end_ns = tp->tcp_clock_cache + (u64)wait_us * NSEC_PER_USEC;

	if (end_ns <= tp->tcp_wstamp_ns || !pp_pace_is_ours(sk))
		return false;
	ca->stop_us = (u32)tp->tcp_mstamp;
	/* A timer that waits for less will find that it is too early. */
	tp->tcp_wstamp_ns = end_ns;
	return true;
}

/**
 * pp_pace_is_stopped() - did it stop a round trip ago or less?
 * @sk: socket
 * @ca: its private area
 *
 * Return: true if so: then the stop shows in nothing yet. Only the continuous law stops.
 */
bool pp_pace_is_stopped(const struct sock *sk, const struct pp *ca)
{
	return !pp_is_discrete(ca) &&
	       (u32)tcp_sk(sk)->tcp_mstamp - ca->stop_us <= ca->rtt_us;
}

/* Will something be left to send after a train? */
static bool pp_pace_is_more(const struct sock *sk, u32 train)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tp->lost_out > tp->retrans_out + train || tcp_send_head(sk);
}

/*
 * Must the head of the queue leave alone, as it is only a part of a train? Where two
 * trains leave at once it would be in the middle of them. Since Linux 6.10 the stack
 * fills the head from the next skb. That one is then a part, and is filled in turn. So
 * if the head was a part the last time as well, it will leave as a whole train.
 */
static bool pp_pace_parts(const struct sock *sk, struct pp *ca)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct sk_buff *head = tcp_send_head(sk);
	bool was = ca->train.part;

	ca->train.part = ca->train.extra && head && !tcp_skb_is_last(sk, head) &&
			 head->len < READ_ONCE(ca->net->train) * tp->mss_cache;
	return ca->train.part && !was;
}

/*
 * Have ACKs stayed away for a round trip, and for sixteen packets more? A turn sets the
 * window, so that this ends what turns send, as pp_pace_window() does for everything else.
 * (With turns that went on, no timeout would come either: each packet puts it off.)
 */
static bool pp_pace_is_silent(const struct tcp_sock *tp, const struct pp *ca)
{
	u64 silent_us = tp->tcp_mstamp - min(tp->tcp_mstamp, tp->delivered_mstamp);

	/* s_hat is ns in Q10: 16 of them in us. */
	return silent_us > ca->rtt_us + (ca->estimate.service >> 16);
}

/* Is what comes next ours to pace, and may it leave? */
static bool pp_pace_is_due(const struct sock *sk, struct pp *ca, u32 train)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (!pp_pace_is_special(sk, ca) || pp_pace_is_silent(tp, ca))
		return false;
	/* After a timeout the window lets less leave than a train. */
	return ca->estimate.service && pp_pace_is_ours(sk) &&
	       tp->tcp_wstamp_ns <= tp->tcp_clock_cache &&
	       tcp_snd_cwnd(tp) >= tcp_packets_in_flight(tp) + train &&
	       !pp_pace_parts(sk, ca);
}

static void pp_pace_turn(struct sock *sk, struct pp *ca, u32 train)
{
	struct tcp_sock *tp = tcp_sk(sk);

	ca->turn = 1;
	ca->turn_bytes = (u32)tp->bytes_sent;
	tcp_snd_cwnd_set(tp, tcp_packets_in_flight(tp) + train);
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NEEDED, SK_PACING_NONE);
	if (!pp_pace_is_more(sk, train))
		return;

	/* The window will stop the stack, which then arms no timer. */
	if (hrtimer_try_to_cancel(&tp->pacing_timer) != 1)
		sock_hold(sk);
	hrtimer_start(&tp->pacing_timer,
		      ns_to_ktime(tp->tcp_clock_cache +
				  pp_pace_time(sk, train * tp->mss_cache)),
		      HRTIMER_MODE_ABS_PINNED_SOFT);
}

/**
 * pp_pace_settle() - end a turn and charge what left in it
 * @sk: socket
 * @ca: its private area
 *
 * The window is still that of the turn.
 *
 * Return: bytes that left.
 */
u32 pp_pace_settle(struct sock *sk, struct pp *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 sent = (u32)tp->bytes_sent - ca->turn_bytes;

	if (!ca->turn)
		return 0;
	ca->turn = 0;
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
	tp->tcp_wstamp_ns += pp_pace_time(sk, sent);
	return sent;
}

/**
 * pp_pace_before_turn() - the stack is about to send, and a turn may end or begin
 * @sk: socket
 * @ca: its private area
 * @train: segments to leave at once
 */
void pp_pace_before_turn(struct sock *sk, struct pp *ca, u32 train)
{
	if (ca->turn) {
		bool idle = !pp_pace_settle(sk, ca);

		pp_pace_window(sk, ca, pp_law_pipe(ca->delay_us,
						   ca->estimate.service),
			       tcp_packets_in_flight(tcp_sk(sk)));
		pp_pace_cut_off(sk, ca);
		/* Nothing could be sent: do not ask again and again. */
		if (idle)
			return;
	}
	if (pp_pace_is_due(sk, ca, train))
		pp_pace_turn(sk, ca, train);
}

/**
 * pp_pace_holds_window() - does the path hold what the sysctl window lets out?
 * @ca: connection
 *
 * Return: true if so: then less arrives than the bottleneck would serve because
 * less is sent.
 */
bool pp_pace_holds_window(const struct pp *ca)
{
	u32 window = min(READ_ONCE(ca->net->window), PP_PACKETS_MAX);

	return unlikely(window) && window << PP_PACKET_SHIFT <=
	       pp_law_pipe(ca->delay_us, ca->estimate.service) + PP_QUEUE_LOW;
}

/**
 * pp_pace_has_segment() - is there a whole segment to send?
 * @sk: socket
 *
 * Return: true if so. A part of one may be held back (Nagle, TCP_CORK, MSG_MORE) for as
 * long as the application writes no more.
 */
bool pp_pace_has_segment(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tp->write_seq - tp->snd_nxt >= tp->mss_cache;
}

/**
 * pp_pace_has_more() - is there more to send that may be sent?
 * @sk: socket
 * @ca: its private area
 *
 * Return: true if so, or if there was until the send buffer was full.
 */
bool pp_pace_has_more(const struct sock *sk, const struct pp *ca)
{
	return (pp_pace_has_segment(sk) || !sk_stream_is_writeable(sk)) &&
	       !pp_pace_holds_window(ca);
}
