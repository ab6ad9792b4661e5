/* SPDX-License-Identifier: GPL-2.0 */
/* Random numbers for draws, which are made for each packet and each ACK. */
#ifndef _TOLLWAY_RANDOM_H
#define _TOLLWAY_RANDOM_H

#include <linux/types.h>

/**
 * tollway_random_u32() - next number of a generator
 * @state: generator; any value will do as a seed
 *
 * A linear congruential generator of 64 bits (factor and increment are Knuth's
 * MMIX), of which the upper half is used: one multiplication, where
 * prandom_u32_state() takes the time of four. Nothing here is secret.
 *
 * Return: 32 bits.
 */
static inline u32 tollway_random_u32(u64 *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 32;
}

#endif /* _TOLLWAY_RANDOM_H */
