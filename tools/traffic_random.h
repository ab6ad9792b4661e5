/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Random variates, computed with integers. A schedule of packets must be the same on
 * every machine, and the logarithm of the C library is not (the library selects it by
 * the features of the processor).
 */
#ifndef TOLLWAY_TRAFFIC_RANDOM_H
#define TOLLWAY_TRAFFIC_RANDOM_H

#include "traffic_common.h"

#define RANDOM_FRACTION_BITS	40
/* ln 2 in units of 2^-40 */
#define RANDOM_LN2		762123384786ULL

/* splitmix64 (Steele, Lea and Flood, OOPSLA 2014): any seed is a good one. */
static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* The binary logarithm of a number from 1 in units of 2^-40. */
static inline uint64_t random_log2(uint64_t number)
{
	unsigned int zeros = __builtin_clzll(number);
	uint64_t mantissa = number << zeros;	/* in [2^63, 2^64) is [1, 2) */
	uint64_t log2 = 63 - zeros;
	int bit;

	/* The square has twice the logarithm; the carry is its next bit. */
	for (bit = 0; bit < RANDOM_FRACTION_BITS; bit++) {
		unsigned __int128 square =
			(unsigned __int128)mantissa * mantissa;

		log2 <<= 1;
		if (square >> 127) {
			log2 |= 1;
			mantissa = square >> 64;
		} else {
			mantissa = square >> 63;
		}
	}
	return log2;
}

/* Convert a binary to a natural logarithm, both in units of 2^-40. */
static inline uint64_t random_natural(uint64_t log2)
{
	return ((unsigned __int128)log2 * RANDOM_LN2) >> RANDOM_FRACTION_BITS;
}

/* -ln(uniform / 2^64) in units of 2^-40; at most 44.4, so below 2^46. */
static inline uint64_t random_exponential(uint64_t *state)
{
	return random_natural((64ULL << RANDOM_FRACTION_BITS) -
			      random_log2(random_next(state) | 1));
}

/*
 * An exponential variate of mean @numerator / @denominator. The product stays
 * below 2^46 * 2^62, so it fits.
 */
static inline int64_t random_exponential_mean(uint64_t *state,
					      uint64_t numerator,
					      uint64_t denominator)
{
	unsigned __int128 product =
		(unsigned __int128)random_exponential(state) * numerator;

	product = (product / denominator) >> RANDOM_FRACTION_BITS;
	return product < TIME_NEVER ? (int64_t)product : TIME_NEVER;
}

#endif
