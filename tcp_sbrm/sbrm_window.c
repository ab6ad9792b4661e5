// SPDX-License-Identifier: GPL-2.0
/*
 * The window of a connection, and the rate that follows from it: cwnd / RTT, by
 * pacing.
 */

#include <linux/math64.h>
#include <linux/time64.h>

#include "sbrm.h"
#include "tollway_burst.h"

/*
 * What one packet may hold, see sbrm_burst(): at 1 Gb/s 5 segments, half of the
 * default target of 10 packets. With that target and a round trip of 20 ms one
 * flow had 0.90 of 1 Gb/s, and 0.19 with packets of 1 ms. A longer time makes
 * bursts that are marked for themselves; a shorter one costs more packets to
 * send.
 */
#define SBRM_BURST_US	64

/**
 * sbrm_cwnd_set() - set the window
 * @sk: socket
 * @ca: its private area
 * @cwnd: segments in Q32; what is too small or too large becomes the bound
 */
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

/*
 * Length of the next gap between packets over the mean, 2^-16: 0.5 to 1.5, and 7/8
 * to 9/8 with the source relative, where it is the delay that has a price, not
 * the backlog that a packet finds. None in slow start, when it may hold for a
 * whole round trip until the next ACK comes.
 */
static u32 sbrm_gap(const struct sbrm *ca, u16 random)
{
	if (ca->slow_start)
		return 1U << 16;
	/* 7/8 is 7 * 2^13 of 2^16, and 14 random bits are up to a quarter. */
	if (sbrm_is_relative(ca))
		return (7U << 13) + (random >> 2);
	/* A half is 2^15 of 2^16, and 16 random bits are up to one. */
	return (1U << 15) + random;
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
	/*
	 * Segments in Q16, at most 2^41, times 2^6 us; and us in Q16, so that the
	 * quotient is segments.
	 */
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
 * @random: sets the length of the next gap
 *
 * The gaps between packets vary, see sbrm_gap(), with the right mean. A flow of
 * even gaps meets its own packets at the bottleneck always at the same phase: one
 * whose gap is just longer than the queueing delay never finds another one of its
 * own behind it, sees a backlog that is short by up to a packet, and gets a price
 * too low by 2 % (cf. Floyd and Jacobson, On traffic phase effects in
 * packet-switched gateways, 1992).
 */
void sbrm_pace(struct sock *sk, const struct sbrm *ca, u16 random)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 gap = sbrm_gap(ca, random);
	u64 bytes = (u64)tp->mss_cache * USEC_PER_SEC;	/* below 2^36 */
	u32 rtt_us = sbrm_is_relative(ca) ? sbrm_relative_rtt(ca) : ca->rtt_us;
	u64 time = (u64)max(rtt_us, 1U) * gap;		/* below 2^41 */
	u64 cwnd = sbrm_paced_window(tp, ca);
	u64 rate;

	/*
	 * The gap is in 2^-16, and so is the time, as the window has to be. Below
	 * 2^12 segments, 2^28 in Q16, the product with the bytes fits 64 bits.
	 */
	if (likely(cwnd < 1ULL << (FIXP_SHIFT + 12)))
		rate = div64_u64((cwnd >> (FIXP_SHIFT - 16)) * bytes, time);
	else
		rate = fixp_mul_div(cwnd, bytes, time << (FIXP_SHIFT - 16));
	/* 0 would be no pacing at all, and users may set a limit of 0. */
	rate = max_t(u64, min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate)), 1);
	WRITE_ONCE(sk->sk_pacing_rate, rate);
	sbrm_burst(sk, ca, cwnd);
}
