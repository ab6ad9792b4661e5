// SPDX-License-Identifier: GPL-2.0
/*
 * A window that was not used says nothing about the price of the path: it is
 * given up (RFC 2861), while the flow is silent and while it sends less than it
 * might. The stack does this only for controls without cong_control().
 *
 * net.ipv4.tcp_slow_start_after_idle=0 switches it off, as for other controls.
 */

#include <linux/jiffies.h>
#include <linux/math64.h>

#include "sbrm.h"

/* Does this system want windows that were not used to be given up? */
static bool sbrm_validates(const struct sock *sk)
{
	return READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_slow_start_after_idle);
}

/*
 * The initial window, segments; the stack's own function is not exported. The
 * socket is not const, as __sk_dst_get() of 5.10 and 6.1 does not take such.
 */
static u32 sbrm_first_window(struct sock *sk)
{
	const struct dst_entry *dst = __sk_dst_get(sk);
	u32 first = dst ? dst_metric(dst, RTAX_INITCWND) : 0;

	return min(first ?: TCP_INIT_CWND, tcp_sk(sk)->snd_cwnd_clamp);
}

/**
 * sbrm_restart() - the first segment after some time is about to be sent
 * @sk: socket
 * @ca: its private area
 *
 * What the price was when the connection fell silent says little of what it is
 * now, and all who did may come back at once. So the window is halved for each
 * retransmission timeout of silence, down to the initial one (RFC 2861), and
 * slow start leads back to where it was, or to the first mark. The stack does so
 * by itself only for controls without cong_control(). A pause that is shorter
 * than a timeout changes nothing.
 */
void sbrm_restart(struct sock *sk, struct sbrm *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 rto = inet_csk(sk)->icsk_rto;
	/* As we may be asked again before anything has been sent. */
	u32 silent = min(tcp_jiffies32 - tp->lsndtime,
			 tcp_jiffies32 - tp->snd_cwnd_stamp);
	u64 first, was = ca->cwnd;
	u32 old;

	if (silent <= rto || !sbrm_validates(sk))
		return;

	tp->snd_cwnd_stamp = tcp_jiffies32;
	first = (u64)sbrm_first_window(sk) << FIXP_SHIFT;
	if (was <= first)
		return;
	old = min_t(u64, (was + FIXP_ONE - 1) >> FIXP_SHIFT,
		    tp->snd_cwnd_clamp);
	tp->snd_ssthresh = ca->slow_start ? max(tp->snd_ssthresh, old) : old;
	ca->slow_start = 1;
	sbrm_relative_begin(ca);
	sbrm_cwnd_set(sk, ca, max(was >> min(silent / max(rto, 1U), 63U),
				  first));
	/* 16 bits of it, as in sbrm_cong_control(). */
	sbrm_pace(sk, ca, ca->cwnd, sbrm_random_u32() >> 16);
}

/**
 * sbrm_decay() - give up a part of the window that was not used
 * @sk: socket
 * @ca: its private area
 * @ack: what the ACK brought
 * @unused: so many segments, see sbrm_unused()
 *
 * It goes with a time constant of a retransmission timeout.
 */
void sbrm_decay(struct sock *sk, struct sbrm *ca, const struct sbrm_ack *ack,
		u32 unused)
{
	u32 rto_us = max(jiffies_to_usecs(inet_csk(sk)->icsk_rto), 1U);
	u32 time_us = min(ack->now_us - ack->last_us, rto_us);
	u32 first = sbrm_first_window(sk), cwnd = tcp_snd_cwnd(tcp_sk(sk));
	u64 part;

	if (!sbrm_validates(sk) || cwnd <= first)
		return;
	unused = min(unused, cwnd - first);
	/* At most 2^24 segments in Q32; the quotient times time_us is no more. */
	part = div_u64((u64)unused << FIXP_SHIFT, rto_us) * time_us;
	sbrm_cwnd_set(sk, ca, ca->cwnd - min(ca->cwnd, part));
}
