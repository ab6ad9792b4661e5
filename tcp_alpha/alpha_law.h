/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The arithmetic of second-order rate control, without sockets
 *
 * Rates are packets/s in Q16, at least 1 and at most 10^9 * 2^16 < 2^46. The smallest
 * rate that is needed, a packet in 16.8 s, is 3906 in this unit, and the largest one
 * times a segment of 2^16 bytes fits into 64 bits.
 *
 * Gains are packets/s^2 in Q8, at most 10^9 * 2^8 < 2^38. A step takes at most 2^20 us,
 * so that 4 times their product is below 2^60, see alpha_law_increment().
 */
#ifndef _ALPHA_LAW_H
#define _ALPHA_LAW_H

#include <linux/bits.h>
#include <linux/types.h>

#define ALPHA_RATE_SHIFT	16
#define ALPHA_RATE_MAX		(1000000000ULL << ALPHA_RATE_SHIFT)
#define ALPHA_GAIN_SHIFT	8
#define ALPHA_GAIN_LIMIT	1000000000U	/* packets/s^2 */
#define ALPHA_GAIN_MIN		BIT_ULL(ALPHA_GAIN_SHIFT)
#define ALPHA_GAIN_MAX		((u64)ALPHA_GAIN_LIMIT << ALPHA_GAIN_SHIFT)
#define ALPHA_STEP_MAX_US	((1U << 20) - 1)
/* GDP is in 10^-6. */
#define ALPHA_GDP_ONE		1000000U
/* The share of losses is in 10^-6, too. */
#define ALPHA_SHARE_ONE		1000000U

u64 alpha_law_increment(u64 gain, u32 step_us);
u64 alpha_law_rise(u64 rate, u64 gain, u32 step_us, u64 most);
u64 alpha_law_fall(u64 rate, u64 gain, u32 step_us, u64 bandwidth);
u64 alpha_law_gain(u64 gain, bool bcn, bool last_bcn, u64 gip, u32 gdp);
u64 alpha_law_gain_auto(u32 packets, u32 rtt_us);
u64 alpha_law_gain_doubling(u64 rate, u32 rtt_us);
u64 alpha_law_mean(u64 a, u64 b);
u64 alpha_law_fair(u64 bandwidth, u32 risen_us, u64 fallen_us, u64 most);
u64 alpha_law_rate(u32 packets, u32 time_us);
u32 alpha_law_packets(u64 rate, u32 time_us);

#endif /* _ALPHA_LAW_H */
