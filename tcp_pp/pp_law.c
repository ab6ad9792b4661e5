// SPDX-License-Identifier: GPL-2.0
/*
 * Control laws: from the service time s_hat, the propagation delay R and the
 * packets outstanding S, the rate at which to send
 *
 *	n_hat = S - R / s_hat				PP94 (12)
 *	rate = (B - n_hat) / J + 1 / s_hat		PP94 (14), continuous
 *	rate = a / RTT (B - n - S + (mu' + mu) RTT)	PP94 (9), discrete
 *
 * B is the setpoint. Numbers are in the units of pp_model.h.
 */

#include <linux/kernel.h>

#include "pp_model.h"
#include "tollway_fixp.h"

/* J in tenths of a round-trip time, below and above the setpoint: Table 2. */
#define PP_ATTACK_UP	15
#define PP_ATTACK_DOWN	8

/* Out of the way of pp_rate_any(). */
static noinline u64 pp_rate_large(u64 packets, u64 time_ns)
{
	return min_t(u64, fixp_mul_div(packets << (PP_RATE_SHIFT - PP_PACKET_SHIFT),
				       NSEC_PER_SEC, time_ns), PP_RATE_MAX);
}

/* packets (Q8) per time (ns) as a rate, which may be above PP_RATE_MAX; below 2^63. */
static inline u64 pp_rate_any(u64 packets, u64 time_ns)
{
	/* Nearly always they are fewer: 10^9 * 2^34 fits. */
	if (unlikely(packets >= BIT_ULL(26) || time_ns < 2))
		return pp_rate_large(packets, time_ns);

	return div64_u64((packets * NSEC_PER_SEC) <<
			 (PP_RATE_SHIFT - PP_PACKET_SHIFT), time_ns);
}

/* The same; saturates. */
static inline u64 pp_rate(u64 packets, u64 time_ns)
{
	return min_t(u64, pp_rate_any(packets, time_ns), PP_RATE_MAX);
}

/**
 * pp_law_continuous() - PP94 (14)
 * @setpoint: B, Q8
 * @queue: n_hat, Q8
 * @delay_us: propagation delay R, us
 * @service: s_hat, ns in Q10
 *
 * Return: rate, packets/s in Q16; 0 if it would be negative.
 */
u64 pp_law_continuous(u32 setpoint, u32 queue, u32 delay_us, u64 service)
{
	u64 rtt_ns = pp_law_rtt_ns(queue, delay_us, service);
	u64 rate = pp_invert(service);
	s64 room = (s64)setpoint - queue;
	/* Around the setpoint both are as likely: no branch would be foreseen. */
	u32 attack = PP_ATTACK_DOWN + (PP_ATTACK_UP - PP_ATTACK_DOWN) *
				      (room >= 0);
	/* At most 2^57 ns by 15. */
	s64 change = pp_rate_any(abs(room), div_u64(rtt_ns * attack, 10));

	rate += room < 0 ? -change : change;
	/* 1 / s_hat is no more than that, either. It is negative from 2^63 on. */
	if (unlikely(rate > PP_RATE_MAX))
		rate = clamp_t(s64, rate, 0, PP_RATE_MAX);
	return rate;
}

/**
 * pp_law_discrete() - PP94 (9), with a pole (4.2.1)
 * @setpoint: B, Q8
 * @queue: n_hat at the beginning of the epoch that ends now, Q8
 * @outstanding: S now, Q8
 * @rate_before: 1 / s_hat at the beginning of the epoch, packets/s in Q16
 * @rate: 1 / s_hat now, packets/s in Q16
 * @rtt_ns: round-trip time of the epoch, ns
 * @pole: thousandths, up to 1000
 *
 * PP94's analysis takes S for a given signal, and has a queue that swings for ever
 * with a pole of 1. But @queue and @outstanding are what was served in the epoch and
 * what waits now, so that one epoch later n_hat is pole B - (1 - pole) R / s_hat. The
 * pole scales all of the rate, not its change alone: where that is below 0 the flow
 * does not fill its share.
 *
 * Return: rate for the next epoch, packets/s in Q16; 0 if it would be negative.
 */
u64 pp_law_discrete(u32 setpoint, u32 queue, u32 outstanding, u64 rate_before,
		    u64 rate, u64 rtt_ns, u32 pole)
{
	u64 up = rate_before + rate + pp_rate(setpoint, rtt_ns);
	u64 down = pp_rate((u64)queue + outstanding, rtt_ns);

	if (up <= down)
		return 0;
	/* Up to 3 * 2^46 by 2^10. */
	return min_t(u64, div_u64((up - down) * pole, PP_MILLE), PP_RATE_MAX);
}

/**
 * pp_law_rate() - what is sent in a round trip as a rate
 * @packets: Q8
 * @delay_us: propagation delay, us
 *
 * Return: packets/s in Q16, at most PP_RATE_MAX.
 */
u64 pp_law_rate(u32 packets, u32 delay_us)
{
	return pp_rate(packets, (u64)delay_us * NSEC_PER_USEC);
}

/* The rest of pp_law_drain(), for a rate that may be too low. */
u64 pp_law_drain_slow(u64 rate, u32 setpoint, u32 queue, u32 delay_us,
		      u64 service)
{
	u64 rtt_ns = pp_law_rtt_ns(queue, delay_us, service);

	if (mul_u64_u64_shr(rate, rtt_ns, 32) <= PP_PAIR_Q32)
		rate = max(rate, pp_rate(2 * PP_PACKET, rtt_ns));
	if (mul_u64_u64_shr(rate, service, 32) <= PP_HALF_Q32 &&
	    queue > setpoint)
		rate = max(rate, pp_invert(service) / 2);
	return rate;
}

/*
 * A queue that is worth a stop: packets above the setpoint, and part of R. A
 * lower rate alone takes a shorter queue away in about a round trip, by
 * PP_ATTACK_DOWN. If they are less, a flow stops for a pair or two that others
 * send; if they are more, the queue stays long for longer when others begin.
 */
#define PP_STOP_EXCESS	(8 * PP_PACKET)
#define PP_STOP_DELAY	8

/**
 * pp_law_stop() - time to send nothing in
 * @setpoint: B, Q8
 * @queue: n_hat, Q8
 * @delay_us: propagation delay R, us
 * @rtt_us: round-trip time of the last ACK, us
 * @service: s_hat, ns in Q10
 *
 * Far above the setpoint PP94's sources wait for (n_hat - B) s_hat, by which the
 * queue is to have drained to B. That is right if s_hat lasts. A few pairs of
 * nine sources that have just begun make it more than nine round trips, and
 * the queue is empty in less than one. What waits for certain is what the last
 * packet had before it, and that was served in rtt - R, whatever s_hat is:
 * (n_hat - B) / n_hat of that is to leave before the next is sent. But that packet
 * was sent a round trip ago, and n_hat may be far less by now: what waits takes no
 * longer than n_hat s_hat.
 *
 * Return: us, at most half of R; 0 where the rate alone will do.
 */
u32 pp_law_stop(u32 setpoint, u32 queue, u32 delay_us, u32 rtt_us, u64 service)
{
	u32 wait_us = rtt_us > delay_us ? rtt_us - delay_us : 0;

	if (queue / 2 <= setpoint || queue - setpoint <= PP_STOP_EXCESS ||
	    wait_us <= delay_us / PP_STOP_DELAY)
		return 0;
	wait_us = min_t(u64, wait_us,
			div_u64(pp_law_rtt_ns(queue, 0, service), NSEC_PER_USEC));
	return min_t(u64, div_u64((u64)wait_us * (queue - setpoint), queue),
		     delay_us / 2);
}
