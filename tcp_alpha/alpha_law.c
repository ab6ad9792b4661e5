// SPDX-License-Identifier: GPL-2.0
/*
 * The arithmetic of second-order rate control (ALPHA Fig. 2), see alpha.c
 *
 * The paper adds RIR = alpha Delta to the rate in each interval Delta, or
 * multiplies it by RDP = exp(-RIR / BW_EST). This code stores alpha, and computes
 * RIR for the time that a step took. ACKs arrive at irregular times, and the rate is
 * the same function of time with steps of any length.
 */

#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "alpha_law.h"
#include "tollway_fixp.h"

/**
 * alpha_law_increment() - RIR, the increase of the rate in a step
 * @gain: alpha, at most %ALPHA_GAIN_MAX
 * @step_us: at most %ALPHA_STEP_MAX_US
 *
 * 2^8 / 10^6 = 4 / 15625: from Q8 and us to Q16 and s. 4 @gain @step_us < 2^60.
 *
 * Return: packets/s in Q16, rounded down.
 */
u64 alpha_law_increment(u64 gain, u32 step_us)
{
	return div_u64(4 * gain * step_us, 15625);
}

/**
 * alpha_law_rise() - the rate after a step without congestion
 * @rate: before it
 * @gain: alpha
 * @step_us: time that the step took
 * @most: largest rate after the step; a rate above it is not reduced
 *
 * Return: @rate + RIR.
 */
u64 alpha_law_rise(u64 rate, u64 gain, u32 step_us, u64 most)
{
	u64 risen = rate + alpha_law_increment(gain, step_us);

	return max(rate, min3(risen, most, ALPHA_RATE_MAX));
}

/**
 * alpha_law_fall() - the rate after a step with congestion
 * @rate: before it
 * @gain: alpha
 * @step_us: time that the step took
 * @bandwidth: BW_EST
 *
 * RIR / BW_EST is in Q32, of which fixp_exp_neg() accepts any value: its error is at
 * most 2^-29, and from 23 on its result is 0. A @bandwidth of 0 means an infinite
 * quotient.
 *
 * Return: @rate * exp(-RIR / BW_EST), 0 and up.
 */
u64 alpha_law_fall(u64 rate, u64 gain, u32 step_us, u64 bandwidth)
{
	u64 exponent = fixp_mul_div(alpha_law_increment(gain, step_us),
				    FIXP_ONE, bandwidth);
	u64 factor = fixp_exp_neg(exponent);

	return factor >= FIXP_ONE ? rate : fixp_mul(rate, factor);
}

/**
 * alpha_law_gain() - rule (3), once in a rate cycle
 * @gain: alpha of the cycle that has ended
 * @bcn: was its largest queue beyond the goal?
 * @last_bcn: the same of the cycle before
 * @gip: p, as @gain
 * @gdp: q, 1 .. %ALPHA_GDP_ONE
 *
 * @gain * 10^6 < 2^58.
 *
 * Return: alpha of the next cycle, rounded to nearest.
 */
u64 alpha_law_gain(u64 gain, bool bcn, bool last_bcn, u64 gip, u32 gdp)
{
	if (bcn)
		gain = div_u64(gain * gdp + ALPHA_GDP_ONE / 2, ALPHA_GDP_ONE);
	else if (last_bcn)
		gain = div_u64(gain * ALPHA_GDP_ONE + gdp / 2, gdp);
	else
		gain += gip;

	return clamp(gain, ALPHA_GAIN_MIN, ALPHA_GAIN_MAX);
}

/**
 * alpha_law_gain_auto() - a gain that grows with 1 / RTT^2
 * @packets: packets per round trip by which the rate increases in each round trip, at
 *	most 10^4
 * @rtt_us: round-trip time, 0 is taken as 1
 *
 * 10^4 * 10^12 < 2^54, so it can be shifted by 8 (Q8).
 *
 * Return: packets/s^2 in Q8, within its range.
 */
u64 alpha_law_gain_auto(u32 packets, u32 rtt_us)
{
	u64 square = (u64)max(rtt_us, 1U) * max(rtt_us, 1U);
	u64 gain = div64_u64((u64)packets * 1000000000000ULL <<
			     ALPHA_GAIN_SHIFT, square);

	return clamp(gain, ALPHA_GAIN_MIN, ALPHA_GAIN_MAX);
}

/**
 * alpha_law_gain_doubling() - the gain that doubles a rate in a round trip
 * @rate: packets/s in Q16
 * @rtt_us: round-trip time, 0 is taken as 1
 *
 * 10^6 / 2^8 = 15625 / 4: from Q16 and us to Q8 and s. @rate * 15625 < 2^60.
 *
 * Return: packets/s^2 in Q8, within its range.
 */
u64 alpha_law_gain_doubling(u64 rate, u32 rtt_us)
{
	u64 gain = div_u64(rate * 15625 / 4, max(rtt_us, 1U));

	return clamp(gain, ALPHA_GAIN_MIN, ALPHA_GAIN_MAX);
}

/**
 * alpha_law_mean() - the geometric mean of two rates
 * @a: packets/s in Q16
 * @b: the same
 *
 * The square roots of numbers below 2^62 are below 2^31. From 1 packet/s (2^16) on, the
 * relative error of the result is at most 2^-15.
 *
 * Return: packets/s in Q16, rounded down.
 */
u64 alpha_law_mean(u64 a, u64 b)
{
	return ((u64)int_sqrt64(a << ALPHA_RATE_SHIFT) *
		int_sqrt64(b << ALPHA_RATE_SHIFT)) >> ALPHA_RATE_SHIFT;
}

/**
 * alpha_law_fair() - the BW_EST by which rates become equal, see alpha_fair()
 * @bandwidth: BW_EST in the last cycle, packets/s in Q16
 * @risen_us: time in which the rate has risen in this cycle
 * @fallen_us: time in which it has fallen in this cycle and in the one before, less than 2^33
 * @most: rate of the link, packets/s in Q16, not 0
 *
 * X = @bandwidth * @risen_us / (@fallen_us / 2) is the mean rate of the flows. The link is
 * used to 89 to 95 % on average. With 9/8 of X, a flow that is alone on the link has @most,
 * as in the paper. 9/8 * 2 = 9/4, and the products are below 2^36.
 *
 * X is at least @bandwidth / 16, so that one cycle in which the rate hardly rose does not
 * make the result 0. It is at most @most.
 *
 * X / @most is at most 1 in Q32, and its logarithm is above -23, so that two thirds of it
 * are a valid exponent.
 *
 * Return: @most * (X / @most)^(2/3), packets/s in Q16.
 */
u64 alpha_law_fair(u64 bandwidth, u32 risen_us, u64 fallen_us, u64 most)
{
	u64 rate = fixp_mul_div(bandwidth, 9ULL * risen_us, 4 * fallen_us);
	u64 part, factor;

	rate = max(rate, bandwidth / 16);
	if (rate >= most)
		return most;
	/* The quotient of two nearly equal numbers may be rounded to more than 1. */
	part = min(fixp_mul_div(rate, FIXP_ONE, most), FIXP_ONE);
	factor = fixp_exp_neg(div_u64(2 * -fixp_ln(part), 3));

	return factor >= FIXP_ONE ? most : fixp_mul(most, factor);
}

/**
 * alpha_law_rate() - the rate of packets in a time
 * @packets: number of packets
 * @time_us: the time, 0 is taken as 1
 *
 * More than 2^26 packets count as 2^26: 10^6 times that, shifted, is below 2^62.
 *
 * Return: packets/s in Q16, at least 1.
 */
u64 alpha_law_rate(u32 packets, u32 time_us)
{
	u64 shifted = (u64)min(packets, 1U << 26) << ALPHA_RATE_SHIFT;
	u64 rate = div_u64(shifted * 1000000, max(time_us, 1U));

	return clamp(rate, 1ULL, ALPHA_RATE_MAX);
}

/**
 * alpha_law_packets() - number of packets that a rate sends in a time
 * @rate: packets/s in Q16
 * @time_us: below 2^24
 *
 * Return: packets, rounded down; U32_MAX if they are more.
 */
u32 alpha_law_packets(u64 rate, u32 time_us)
{
	u64 packets = div_u64(mul_u64_u32_shr(rate, time_us, ALPHA_RATE_SHIFT),
			      1000000);

	return min_t(u64, packets, U32_MAX);
}
