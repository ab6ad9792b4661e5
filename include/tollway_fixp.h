/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fixed-point exp, ln, powers and quotients for the price laws.
 *
 * The kernel has no floating point; prices and probabilities are unsigned
 * numbers in units of 2^-32 ("Q32"), so that 1.0 is 2^32 and a marking
 * probability can be compared with get_random_u32() as it is.
 *
 * Every bound below is checked over the whole domain by
 * selftests/kunit/fixp_kunit.c against reference values of 60 digits.
 */
#ifndef _TOLLWAY_FIXP_H
#define _TOLLWAY_FIXP_H

#include <linux/bitops.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/types.h>

#define FIXP_SHIFT	32
#define FIXP_ONE	BIT_ULL(FIXP_SHIFT)

/* ln 2 and 1 / ln 2, in 2^-48 and 2^-31. */
#define FIXP_LN2_Q48	195103586505167LL
#define FIXP_LOG2E_Q31	3098164009U

/**
 * fixp_mul() - product of two Q32 numbers
 * @a: first factor, any value
 * @b: second factor, below 2^32, that is less than 1.0
 *
 * Return: @a * @b, rounded down; cannot overflow as @b < 1.
 */
static inline u64 fixp_mul(u64 a, u32 b)
{
	return mul_u64_u32_shr(a, b, FIXP_SHIFT);
}

/**
 * fixp_exp_neg() - exp(-x)
 * @x: exponent in Q32, any value
 *
 * With y = x / ln 2, exp(-x) = 2^-int(y) * 2^-frac(y); the second factor is a
 * polynomial of degree 7 (Chebyshev, error 2^-34).
 *
 * Return: exp(-@x) in Q32, 0 .. 2^32; absolute error at most 2^-29.
 */
static inline u64 fixp_exp_neg(u64 x)
{
	/* Coefficients of 2^-f on [0, 1), Q32. */
	static const s64 c[] = {
		4294967296LL, -2977044455LL, 1031764646LL, -238385558LL,
		41298541LL, -5702831LL, 632486LL, -46477LL,
	};
	s64 f, sum = 0;
	u64 y;
	int i;

	/* exp(-23) is below half of the last place. */
	if (x >= 23 * FIXP_ONE)
		return 0;

	/* x < 2^37 here; y has 31 fractional bits and stays below 2^37. */
	y = mul_u64_u32_shr(x, FIXP_LOG2E_Q31, 32);
	f = y & ((1U << 31) - 1);

	/* |sum| <= 2^32 and f < 2^31: each product stays below 2^63. */
	for (i = ARRAY_SIZE(c) - 1; i > 0; i--)
		sum = ((sum + c[i]) * f) >> 31;

	return (u64)(sum + c[0]) >> (y >> 31);
}

/**
 * fixp_ln() - natural logarithm
 * @x: argument in Q32, 1 and up (0 is taken as 2^-32)
 *
 * x = 2^k * m with m in [1/sqrt 2, sqrt 2); ln m = 2 artanh(s) with
 * s = (m - 1) / (m + 1), |s| < 0.172, of which six terms are left.
 *
 * Return: ln(@x) in Q32, -32 ln 2 .. 32 ln 2; absolute error at most 2^-29.
 */
static inline s64 fixp_ln(u64 x)
{
	/* 1/3, 1/5, .. 1/11 in Q32. */
	static const u32 c[] = {
		1431655765U, 858993459U, 613566757U, 477218588U, 390451572U,
	};
	u64 square, sum = 0;
	s64 s, one;
	int i, k;

	if (!x)
		x = 1;

	/* m in [2^31, 2^32) stands for [1, 2). */
	k = fls64(x) - 1;
	x = k > 31 ? x >> (k - 31) : x << (31 - k);
	k -= FIXP_SHIFT;

	/* Above sqrt 2, take m / 2, by doubling what stands for one. */
	one = 1LL << 31;
	if (x > 3037000500ULL) {
		one <<= 1;
		k++;
	}
	/* |x - one| < 2^31 and the quotient is below 2^30: Q32. */
	s = div64_s64(((s64)x - one) * (1LL << 32), (s64)x + one);

	square = (u64)(s * s) >> 32;
	for (i = ARRAY_SIZE(c) - 1; i >= 0; i--)
		sum = (square * (sum + c[i])) >> 32;

	/* 2 s (1 + s^2/3 + ...): |s| < 2^30, sum < 2^27. */
	return 2 * (s + ((s * (s64)sum) >> 32)) +
	       ((k * FIXP_LN2_Q48 + (1LL << 15)) >> 16);
}

/**
 * fixp_pow() - integer power of a fraction
 * @base: Q32, less than 1.0
 * @n: exponent
 *
 * Return: @base^@n in Q32, at most 2^-16 below the true value (2^-26 for
 * @n up to 64); one (2^32) for @n of 0. At most 32 rounds.
 */
static inline u64 fixp_pow(u32 base, u32 n)
{
	u64 result = FIXP_ONE, b = base;

	for (; n && result; n >>= 1) {
		if (n & 1)
			result = fixp_mul(result, b);
		b = (b * b) >> 32;
	}
	return result;
}

/**
 * fixp_mul_div() - a * b / c for numbers whose product needs 128 bits
 * @a: factor
 * @b: factor
 * @c: divisor; 0 gives U64_MAX
 *
 * Each number is rounded down to 32 significant bits first, which costs one
 * 64-bit division and no 128-bit arithmetic.
 *
 * Return: @a * @b / @c, relative error at most 2^-29 and one unit of
 * truncation, or U64_MAX where that does not fit.
 */
static inline u64 fixp_mul_div(u64 a, u64 b, u64 c)
{
	int shift = 0, n;
	u64 q;

	if (!a || !b)
		return 0;
	if (!c)
		return U64_MAX;

	n = fls64(a) - 32;
	if (n > 0) {
		a >>= n;
		shift += n;
	}
	n = fls64(b) - 32;
	if (n > 0) {
		b >>= n;
		shift += n;
	}
	n = fls64(c) - 32;
	if (n > 0) {
		c >>= n;
		shift -= n;
	}

	/* The product has at most 64 bits: give the quotient all of them. */
	q = a * b;
	n = 64 - fls64(q);
	q = div_u64(q << n, c);
	shift -= n;

	if (shift <= 0)
		return shift > -64 ? q >> -shift : 0;
	if (shift >= 64 || fls64(q) + shift > 64)
		return U64_MAX;
	return q << shift;
}

#endif /* _TOLLWAY_FIXP_H */
