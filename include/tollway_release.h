/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State of a socket that a congestion control restores when another one replaces it.
 */
#ifndef _TOLLWAY_RELEASE_H
#define _TOLLWAY_RELEASE_H

#include <linux/hrtimer.h>
#include <net/dst.h>
#include <net/sock.h>
#include <net/tcp.h>

/**
 * tollway_release_pacing() - end the pacing that init() asked for
 * @sk: socket, locked
 *
 * A gap of the old rate may last for seconds. It ends now, because the next congestion
 * control has a rate of its own. A socket with SO_MAX_PACING_RATE stays paced. SK_PACING_FQ
 * is not changed: otherwise packets would overtake those in the fq queue.
 */
static inline void tollway_release_pacing(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (READ_ONCE(sk->sk_pacing_status) != SK_PACING_NEEDED)
		return;

	tp->tcp_wstamp_ns = min(tp->tcp_wstamp_ns, tp->tcp_clock_cache);
	/* A pending timer holds a reference to the socket; drop it if the timer was cancelled. */
	if (hrtimer_try_to_cancel(&tp->pacing_timer) == 1)
		hrtimer_start(&tp->pacing_timer, ns_to_ktime(0),
			      HRTIMER_MODE_ABS_PINNED_SOFT);
	if (READ_ONCE(sk->sk_max_pacing_rate) == ~0UL)
		cmpxchg(&sk->sk_pacing_status, SK_PACING_NEEDED,
			SK_PACING_NONE);
}

/**
 * tollway_release_packets() - end a limit on the segments of a packet
 * @sk: socket, locked
 *
 * Another congestion control may send larger packets again: as large as the route
 * says now, which need not be what it said before us. A socket without a route
 * will be told by the next one.
 */
static inline void tollway_release_packets(struct sock *sk)
{
	struct dst_entry *dst = sk_dst_get(sk);

	if (dst)
		sk_setup_caps(sk, dst);
}

#endif /* _TOLLWAY_RELEASE_H */
