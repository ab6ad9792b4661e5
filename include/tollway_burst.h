/* SPDX-License-Identifier: GPL-2.0 */
/* Limit of the segments that a congestion control sends as one super-packet. */
#ifndef _TOLLWAY_BURST_H
#define _TOLLWAY_BURST_H

#include <linux/compiler.h>
#include <net/dst.h>
#include <net/sock.h>
#include <net/tcp.h>

/* This file never sets a smaller limit: a smaller one is that of the device. */
#define TOLLWAY_BURST_MIN	2U

/* The largest number of segments of a packet for the device of the route. */
static inline u32 tollway_burst_max(struct sock *sk)
{
	const struct dst_entry *dst;
	u32 most = sk->sk_gso_max_segs;

	rcu_read_lock();
	dst = __sk_dst_get(sk);
	if (dst && sk_can_gso(sk))
		most = max_t(u32, READ_ONCE(dst->dev->gso_max_segs), 1);
	rcu_read_unlock();
	return most;
}

/**
 * tollway_burst() - limit the number of segments that leave as one packet
 * @sk: socket, locked
 * @segments: %TOLLWAY_BURST_MIN and up
 *
 * All segments of a packet arrive at a queue together. A new route sets the limit to that
 * of its device.
 */
static inline void tollway_burst(struct sock *sk, u32 segments)
{
	if (likely(sk->sk_gso_max_segs == segments ||
		   sk->sk_gso_max_segs < TOLLWAY_BURST_MIN))
		return;
	if (segments > sk->sk_gso_max_segs)
		segments = min(segments, tollway_burst_max(sk));
	sk->sk_gso_max_segs = segments;
}

#endif /* _TOLLWAY_BURST_H */
