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

/* Q32: a probability below 1.0 fits into a u32, and the product of two into a u64. */
#define FIXP_SHIFT	32
#define FIXP_ONE	BIT_ULL(FIXP_SHIFT)

/*
 * ln 2 * 2^48: times an exponent of at most 32 in fixp_ln(), its error is below 2^-43. And
 * 2^31 / ln 2, which is below 2^32: 1 / ln 2 = 1.44.
 */
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
 * With y = x / ln 2, exp(-x) = 2^-int(y) * 2^-i/64 * 2^-g, where i is the 64th of
 * frac(y) and g < 1/64 is the rest. A table has one minus the second factor; one minus
 * the third one is computed by three terms of its series (error 2^-30.7). The function
 * runs for each packet: it has four multiplications that depend on each other.
 *
 * Return: exp(-@x) in Q32, 0 .. 2^32; absolute error at most 2^-29.
 */
static inline u64 fixp_exp_neg(u64 x)
{
	static const u32 part[] = {
		0U, 46265331U, 92032293U, 137306253U, 182092523U, 226396356U,
		270222948U, 313577441U, 356464920U, 398890416U, 440858905U,
		482375309U, 523444500U, 564071294U, 604260456U, 644016702U,
		683344693U, 722249044U, 760734318U, 798805029U, 836465643U,
		873720577U, 910574202U, 947030839U, 983094767U, 1018770214U,
		1054061366U, 1088972362U, 1123507297U, 1157670222U,
		1191465145U, 1224896029U, 1257966796U, 1290681325U,
		1323043454U, 1355056979U, 1386725654U, 1418053194U,
		1449043275U, 1479699531U, 1510025558U, 1540024914U,
		1569701117U, 1599057648U, 1628097951U, 1656825433U,
		1685243462U, 1713355373U, 1741164462U, 1768673993U,
		1795887191U, 1822807249U, 1849437324U, 1875780541U,
		1901839989U, 1927618725U, 1953119772U, 1978346123U,
		2003300735U, 2027986537U, 2052406424U, 2076563260U,
		2100459879U, 2124099084U,
	};
	u32 f, g, term;
	u64 y, less;

	/* exp(-23) is below half of the last place. */
	if (x >= 23 * FIXP_ONE)
		return 0;

	/* x < 2^37 here; y has 31 fractional bits and stays below 2^37. */
	y = mul_u64_u32_shr(x, FIXP_LOG2E_Q31, 32);
	f = y & (BIT(31) - 1);
	g = f & (BIT(25) - 1);

	/* ln 2, its square / 2 and its cube / 6 in Q32; g is in Q31. */
	term = 1031764991U - ((u64)g * 238388332U >> 31);
	term = 2977044472U - ((u64)g * term >> 31);
	/*
	 * g < 2^25 in Q31 times a term in Q32 is Q63: the shift by 27 makes it Q36, below
	 * 2^30. Its product with x <= 2^32 is below 2^62; the shift by 36, rounded, makes it
	 * Q32.
	 */
	less = (u64)g * term >> 27;
	y >>= 31;
	x = FIXP_ONE - part[f >> 25];
	x -= (x * less + BIT_ULL(35)) >> 36;

	return x >> y;
}

/**
 * fixp_ln() - natural logarithm
 * @x: argument in Q32, 1 and up (0 is taken as 2^-32)
 *
 * x = 2^k * m with m in [1, 2), and m = (1 + t) / r, where r is one over the
 * middle of the 32nd of [1, 2) that contains m. |t| < 2^-6, so four terms of the series
 * of ln(1 + t) are enough. There is no division, because it runs for each ACK.
 *
 * Return: ln(@x) in Q32, -32 ln 2 .. 32 ln 2, 0 for 1.0; absolute error at most
 * 2^-29.
 */
static inline s64 fixp_ln(u64 x)
{
	/* r in Q32 and -ln(r) in Q36. */
	static const struct {
		u32 r;
		s64 ln;
	} part[] = {
		{ 4228890876U, 1065439587LL }, { 4102655328U, 3148007338LL },
		{ 3983737782U, 5169314142LL }, { 3871519816U, 7132861351LL },
		{ 3765450780U, 9041858459LL }, { 3665038759U, 10899254686LL },
		{ 3569842947U, 12707766344LL }, { 3479467177U, 14469900742LL },
		{ 3393554407U, 16187977152LL }, { 3311782011U, 17864145061LL },
		{ 3233857729U, 19500400367LL }, { 3159516172U, 21098599765LL },
		{ 3088515808U, 22660473299LL }, { 3020636340U, 24187635624LL },
		{ 2955676419U, 25681596123LL }, { 2893451652U, 27143767817LL },
		{ 2833792855U, 28575475369LL }, { 2776544515U, 29977962336LL },
		{ 2721563435U, 31352397698LL }, { 2668717543U, 32699881593LL },
		{ 2617884828U, 34021450719LL }, { 2568952401U, 35318083096LL },
		{ 2521815660U, 36590702360LL }, { 2476377540U, 37840181813LL },
		{ 2432547849U, 39067347937LL }, { 2390242669U, 40272983717LL },
		{ 2349383820U, 41457831631LL }, { 2309898378U, 42622596399LL },
		{ 2271718239U, 43767947540LL }, { 2234779731U, 44894521571LL },
		{ 2199023256U, 46002924236LL }, { 2164392968U, 47093732500LL },
	};
	s64 t, square, sum;
	int i, k;

	if (x == FIXP_ONE)
		return 0;
	if (!x)
		x = 1;

	/* m in [2^31, 2^32) stands for [1, 2). */
	k = fls64(x) - 1;
	x = k > 31 ? x >> (k - 31) : x << (31 - k);
	k -= FIXP_SHIFT;
	/* The five bits below the highest one: the 32nd part of [1, 2). */
	i = (x >> 26) & 31;

	/* 1 + t in Q63, then t in Q36: below 2^30, its square below 2^60. */
	t = (s64)(x * part[i].r - BIT_ULL(63)) >> 27;
	square = (t * t) >> 36;
	/* t - t^2/2 + t^3 (1/3 - t/4) */
	sum = ((t * square) >> 36) * ((1LL << 36) / 3 - t / 4) >> 36;
	sum += part[i].ln + t - square / 2;

	/* From Q36 and from Q48 to Q32, rounded. */
	return ((sum + 8) >> 4) + ((k * FIXP_LN2_Q48 + (1LL << 15)) >> 16);
}

/**
 * fixp_ln_lost() - -ln(1 - m), the price for a share of marked packets
 * @m: share in Q32
 *
 * Up to 1/8, which are most values, by eight terms of the series. A table would not be in
 * the cache any more when the next ACK arrives.
 *
 * Return: -ln(1 - @m) in Q32, 0 and up; absolute error at most 2^-29.
 */
static inline u64 fixp_ln_lost(u32 m)
{
	u64 square, sum;

	if (unlikely(m >= FIXP_ONE >> 3))
		return -fixp_ln(FIXP_ONE - m);

	/*
	 * m + m^2/2 + m^3 (1/3 + m/4 + m^2 (1/5 + m/6 + m^2 (1/7 + m/8)))
	 * All numbers are Q32 and below 2^32. So each product of two is below 2^64, and its
	 * shift by 32 makes it Q32. The shift of m^2 by 33 also halves it.
	 */
	square = (u64)m * m >> 32;
	sum = (FIXP_ONE / 7 + m / 8) * square >> 32;
	sum = (FIXP_ONE / 5 + m / 6 + sum) * square >> 32;
	sum += FIXP_ONE / 3 + m / 4;
	sum = (m * square >> 32) * sum >> 32;

	return m + ((u64)m * m >> 33) + sum;
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
