// SPDX-License-Identifier: GPL-2.0
/*
 * The window of a connection, and the rate that follows from it: cwnd / RTT, by
 * pacing. (For the source relative, RTT is that of sbrm_relative_rtt().)
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
 * sbrm_cwnd_bound() - a window that may be too small or too large
 * @tp: socket
 * @ca: its private area
 * @cwnd: segments in Q32; from 2^63 on it is a negative one
 *
 * Return: the window, or the bound that is nearest to it.
 */
u64 sbrm_cwnd_bound(const struct tcp_sock *tp, const struct sbrm *ca, u64 cwnd)
{
	u64 top = min_t(u64, (u64)tp->snd_cwnd_clamp << FIXP_SHIFT,
			SBRM_CWND_MAX);
	u64 least = sbrm_is_relative(ca) ? SBRM_CWND_MIN_RELATIVE :
					   SBRM_CWND_MIN;

	return clamp_t(s64, cwnd, least, max(top, least));
}

/*
 * Length of the next gap between packets over the mean, 2^-16: 0.5 to 1.5, and 7/8
 * to 9/8 with the source relative, where it is the delay that has a price, not
 * the backlog that a packet finds. None in slow start, when it may hold for a
 * whole round trip until the next ACK comes.
 */
static u32 sbrm_gap(const struct sbrm *ca, bool relative, u16 random)
{
	if (unlikely(ca->slow_start))
		return 1U << 16;
	/* 7/8 is 7 * 2^13 of 2^16, and 14 random bits are up to a quarter. */
	if (likely(relative))
		return (7U << 13) + (random >> 2);
	/* A half is 2^15 of 2^16, and 16 random bits are up to one. */
	return (1U << 15) + random;
}

/*
 * The window that sets the rate: twice as much in slow start so that it can
 * double, but no more than where slow start leads to, if that is known. Beyond
 * it every packet would be one more in the queue.
 */
static u64 sbrm_paced_window(const struct tcp_sock *tp, const struct sbrm *ca,
			     u64 cwnd)
{
	if (likely(!ca->slow_start))
		return cwnd;
	return min(2 * cwnd, max((u64)tp->snd_ssthresh << FIXP_SHIFT, cwnd));
}

static noinline void sbrm_burst_set(struct sock *sk, u64 flow, u64 one)
{
	u64 segments = div64_u64(flow, one);

	tollway_burst(sk, clamp_t(u64, segments, TOLLWAY_BURST_MIN, GSO_MAX_SEGS));
}

/**
 * sbrm_burst() - limit what may leave as one packet
 * @sk: socket
 * @rtt_us: round-trip time that sets the rate, at least 1
 * @cwnd: window that sets the rate, Q32, at most 2^57
 *
 * Its segments arrive at the queue together and wait for each other. The stack
 * makes packets of 1 ms, which at 1 Gb/s is a backlog of 44 packets on a link that
 * has nothing else to do: they are marked, and the price is that of the burst. So
 * a packet is what the rate sends in %SBRM_BURST_US, or two segments where that is
 * less. By the mean rate: if the length of a packet followed the gaps of
 * sbrm_pace(), these would all be the same.
 */
static void sbrm_burst(struct sock *sk, u32 rtt_us, u64 cwnd)
{
	/*
	 * Segments in Q16, at most 2^41, times 2^6 us; and us in Q16, so that the
	 * quotient is segments.
	 */
	u64 flow = (cwnd >> (FIXP_SHIFT - 16)) * SBRM_BURST_US;
	u64 one = (u64)rtt_us << 16;

	/* At most rates, and where the limit is that or less: no quotient. */
	if (unlikely(flow >= (TOLLWAY_BURST_MIN + 1) * one ||
		     sk->sk_gso_max_segs > TOLLWAY_BURST_MIN))
		sbrm_burst_set(sk, flow, one);
}

/* The rate of a window of 2^12 segments and more, out of the way of the others. */
static noinline u64 sbrm_rate_large(u64 cwnd, u64 bytes, u64 time)
{
	return fixp_mul_div(cwnd, bytes, time << (FIXP_SHIFT - 16));
}

/**
 * sbrm_pace() - pace at cwnd / RTT, see sbrm_paced_window() and sbrm_relative_rtt()
 * @sk: socket
 * @ca: its private area
 * @cwnd: its window, which those who have just set it know
 * @random: sets the length of the next gap
 *
 * The gaps between packets vary, see sbrm_gap(), with the right mean. A flow of
 * even gaps meets its own packets at the bottleneck always at the same phase: one
 * whose gap is just longer than the queueing delay never finds another one of its
 * own behind it, sees a backlog that is short by up to a packet, and gets a price
 * too low by 2 % (cf. Floyd and Jacobson, On traffic phase effects in
 * packet-switched gateways, 1992).
 */
void sbrm_pace(struct sock *sk, const struct sbrm *ca, u64 cwnd, u16 random)
{
	struct tcp_sock *tp = tcp_sk(sk);
	bool relative = sbrm_is_relative(ca);
	u32 gap = sbrm_gap(ca, relative, random);
	u64 bytes = (u64)tp->mss_cache * USEC_PER_SEC;	/* below 2^36 */
	u32 rtt_us = ca->rtt_us;
	u64 time, rate, most;

	/* To the nearest us. */
	if (likely(relative))
		rtt_us = (sbrm_relative_rtt(ca) + BIT(SBRM_RTT_SLOW_SHIFT - 1)) >>
			 SBRM_RTT_SLOW_SHIFT;
	rtt_us = max(rtt_us, 1U);
	time = (u64)rtt_us * gap;			/* below 2^42 */
	cwnd = sbrm_paced_window(tp, ca, cwnd);
	/*
	 * The gap is in 2^-16, and so is the time, as the window has to be. Below
	 * 2^12 segments, 2^28 in Q16, the product with the bytes fits 64 bits.
	 */
	if (likely(cwnd < 1ULL << (FIXP_SHIFT + 12)))
		rate = div64_u64((cwnd >> (FIXP_SHIFT - 16)) * bytes, time);
	else
		rate = sbrm_rate_large(cwnd, bytes, time);
	most = READ_ONCE(sk->sk_max_pacing_rate);
	/* 0 would be no pacing at all, and users may set a limit of 0. */
	if (unlikely(!rate || rate > most))
		rate = max_t(u64, min_t(u64, rate, most), 1);
	WRITE_ONCE(sk->sk_pacing_rate, rate);
	sbrm_burst(sk, rtt_us, cwnd);
}
