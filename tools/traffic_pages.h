/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The HTTP model: the number of objects of a page has a geometric distribution, and
 * their sizes have a truncated power law (CP05 5.6.4). Computed with integers, for the
 * reason in traffic_random.h.
 *
 * A size has a bounded Pareto distribution between L and H:
 * P[size > x] = ((L/x)^A - (L/H)^A) / (1 - (L/H)^A). So ln(size / L) is an exponential
 * variate of rate A that is truncated at S = ln(H / L). An exponential distribution has
 * no memory, so a variate of rate 1 modulo A S, divided by A, has this distribution, and
 * no variate is discarded.
 *
 * With g(z) = (1 - exp(-z)) / z, the mean is L g((A - 1) S) / g(A S), and for
 * A < 1, g(-z) = exp(z) g(z).
 *
 * Fractions are in units of 2^-40 unless another unit is given.
 */
#ifndef TOLLWAY_TRAFFIC_PAGES_H
#define TOLLWAY_TRAFFIC_PAGES_H

#include "traffic_random.h"

#define PAGES_ONE		(1ULL << RANDOM_FRACTION_BITS)
/* The mean number of objects is in millionths. */
#define PAGES_MILLION		1000000LL
#define PAGES_OBJECTS_MAX	(1000 * PAGES_MILLION)
#define PAGES_BYTES_MAX		1000000000000LL
#define PAGES_SHAPE_MIN		(PAGES_ONE / 1000)
#define PAGES_SHAPE_MAX		(64 * PAGES_ONE)

struct pages {
	int64_t objects;	/* mean, in millionths */
	int64_t mean_bytes, min_bytes, max_bytes;
	/* from these by pages_solve(): */
	uint64_t decay;		/* -ln(1 - 1 / objects); 0: always one object */
	uint64_t shape;		/* A */
	uint64_t cut;		/* A S */
};

static inline uint64_t pages_multiply(uint64_t a, uint64_t b)
{
	unsigned __int128 product = a;

	return product * b >> RANDOM_FRACTION_BITS;
}

static inline uint64_t pages_divide(uint64_t a, uint64_t b)
{
	unsigned __int128 dividend = a;

	return (dividend << RANDOM_FRACTION_BITS) / b;
}

/* exp(@x) in units of 2^-60 for @x up to ln 2, by its series. */
static inline uint64_t pages_exp_small(uint64_t x)
{
	uint64_t term = 1ULL << 60, sum = 0;
	unsigned int n;

	for (n = 1; term; n++) {
		sum += term;
		term = pages_multiply(term, x) / n;
	}
	return sum;
}

/* @bytes * exp(@x), rounded; @x below 40, and the result below 2^62. */
static inline uint64_t pages_grow(uint64_t bytes, uint64_t x)
{
	unsigned __int128 product = pages_exp_small(x % RANDOM_LN2);
	unsigned int shift = 60 - x / RANDOM_LN2;

	product *= bytes;
	return ((product >> (shift - 1)) + 1) >> 1;
}

/* exp(-@x) */
static inline uint64_t pages_decline(uint64_t x)
{
	unsigned __int128 one = 1;
	uint64_t shift = x / RANDOM_LN2;

	if (shift >= RANDOM_FRACTION_BITS)
		return 0;
	return (one << (60 + RANDOM_FRACTION_BITS)) /
	       pages_exp_small(x % RANDOM_LN2) >> shift;
}

/* g(@z) of above, for @z from 0. */
static inline uint64_t pages_g(uint64_t z)
{
	uint64_t term = 1ULL << 60, sum = 0;
	unsigned int n;

	if (z >= PAGES_ONE)
		return pages_divide(PAGES_ONE - pages_decline(z), z);
	/* 1/1! - z/2! + z^2/3! - ..., in units of 2^-60. */
	for (n = 1; term; n++) {
		sum += n % 2 ? term : -term;
		term = pages_multiply(term, z) / (n + 1);
	}
	return sum >> (60 - RANDOM_FRACTION_BITS);
}

/* The mean size for a shape, in units of 2^-20 bytes. */
static inline uint64_t pages_mean(const struct pages *pages, uint64_t shape,
				  uint64_t span)
{
	uint64_t mean = (uint64_t)pages->min_bytes << 20;
	uint64_t z;

	if (shape < PAGES_ONE) {
		z = pages_multiply(PAGES_ONE - shape, span);
		mean = pages_grow(mean, z);
	} else {
		z = pages_multiply(shape - PAGES_ONE, span);
	}
	return (unsigned __int128)mean * pages_g(z) /
	       pages_g(pages_multiply(shape, span));
}

/* Find the shape by bisection: the mean decreases with it. False if there is none. */
static inline bool pages_solve(struct pages *pages)
{
	uint64_t low = PAGES_SHAPE_MIN, high = PAGES_SHAPE_MAX;
	uint64_t mean = (uint64_t)pages->mean_bytes << 20;
	uint64_t span;

	if (pages->min_bytes >= pages->max_bytes)
		return false;
	span = random_natural(random_log2(pages->max_bytes)) -
	       random_natural(random_log2(pages->min_bytes));
	if (pages_mean(pages, low, span) < mean ||
	    pages_mean(pages, high, span) > mean)
		return false;
	while (high - low > 1) {
		uint64_t middle = (low + high) / 2;

		if (pages_mean(pages, middle, span) > mean)
			low = middle;
		else
			high = middle;
	}
	pages->shape = low;
	pages->cut = pages_multiply(low, span);
	pages->decay = 0;
	if (pages->objects > PAGES_MILLION)
		pages->decay =
			random_natural(random_log2(pages->objects)) -
			random_natural(random_log2(pages->objects -
						   PAGES_MILLION));
	return true;
}

/* The number of objects of a page: at least 1, geometrically distributed. */
static inline uint32_t pages_objects(const struct pages *pages, uint64_t *state)
{
	return pages->decay ? 1 + random_exponential(state) / pages->decay : 1;
}

/* The size of an object. */
static inline int64_t pages_bytes(const struct pages *pages, uint64_t *state)
{
	uint64_t logarithm = pages_divide(random_exponential(state) %
					  pages->cut, pages->shape);
	int64_t bytes = pages_grow(pages->min_bytes, logarithm);

	return bytes < pages->max_bytes ? bytes : pages->max_bytes;
}

#endif
