// SPDX-License-Identifier: GPL-2.0
/*
 * The fixed-point functions against reference values of 60 digits
 *
 * Each bound asserted is the one that tollway_fixp.h states. The worst error
 * met goes to the log.
 */

#include <kunit/test.h>
#include <linux/module.h>

#include "tollway_fixp.h"
#include "reference.h"

/* From Q32 to the unit of the reference. */
#define TO_REFERENCE	(REFERENCE_SHIFT - FIXP_SHIFT)

/* 2^-n in the unit of the reference. */
#define BOUND(n)	(1ULL << (REFERENCE_SHIFT - (n)))

static u64 distance(s64 a, s64 b)
{
	return a > b ? (u64)a - b : (u64)b - a;
}

static void report_worst(struct kunit *test, u64 worst, u64 bound)
{
	kunit_info(test, "worst error: %llu of %llu permitted (2^-%d)\n", worst,
		   bound, REFERENCE_SHIFT);
}

static void fixp_exp_neg_test(struct kunit *test)
{
	u64 worst = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(exp_reference); i++) {
		u64 x = exp_reference[i].x;
		u64 got = fixp_exp_neg(x);
		u64 error = distance(got << TO_REFERENCE,
				     exp_reference[i].exp_neg);

		KUNIT_EXPECT_LE_MSG(test, error, BOUND(29), "x = %llu", x);
		KUNIT_EXPECT_LE_MSG(test, got, FIXP_ONE, "x = %llu", x);
		worst = max(worst, error);
	}
	KUNIT_EXPECT_EQ(test, fixp_exp_neg(0), FIXP_ONE);
	KUNIT_EXPECT_EQ(test, fixp_exp_neg(U64_MAX), 0ULL);
	report_worst(test, worst, BOUND(29));
}

static void fixp_ln_test(struct kunit *test)
{
	u64 worst = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ln_reference); i++) {
		u64 x = ln_reference[i].x;
		u64 error = distance(fixp_ln(x) * (1LL << TO_REFERENCE),
				     ln_reference[i].ln);

		KUNIT_EXPECT_LE_MSG(test, error, BOUND(29), "x = %llu", x);
		worst = max(worst, error);
	}
	KUNIT_EXPECT_EQ(test, fixp_ln(FIXP_ONE), 0LL);
	KUNIT_EXPECT_EQ(test, fixp_ln(0), fixp_ln(1));
	report_worst(test, worst, BOUND(29));
}

static void fixp_ln_lost_test(struct kunit *test)
{
	u64 worst = 0;
	size_t i;
	u64 m;

	for (i = 0; i < ARRAY_SIZE(ln_reference); i++) {
		u64 x = ln_reference[i].x, error;

		if (!x || x >= FIXP_ONE)
			continue;
		error = distance(fixp_ln_lost(FIXP_ONE - x) << TO_REFERENCE,
				 -ln_reference[i].ln);
		KUNIT_EXPECT_LE_MSG(test, error, BOUND(29), "x = %llu", x);
		worst = max(worst, error);
	}
	report_worst(test, worst, BOUND(29));

	/* Both ways to work it out agree wherever there are two. */
	KUNIT_EXPECT_EQ(test, fixp_ln_lost(0), 0ULL);
	for (m = 1; m < FIXP_ONE >> 3; m += 65537) {
		u64 table = -fixp_ln(FIXP_ONE - m);

		KUNIT_EXPECT_LE_MSG(test, distance(fixp_ln_lost(m), table),
				    16ULL, "m = %llu", m);
	}
}

static void fixp_pow_test(struct kunit *test)
{
	u64 worst_short = 0, worst_long = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(pow_reference); i++) {
		u32 base = pow_reference[i].base, n = pow_reference[i].n;
		u64 error = distance(fixp_pow(base, n) << TO_REFERENCE,
				     pow_reference[i].power);

		KUNIT_EXPECT_LE_MSG(test, error, n <= 64 ? BOUND(26) : BOUND(16),
				    "base = %u, n = %u", base, n);
		if (n <= 64)
			worst_short = max(worst_short, error);
		else
			worst_long = max(worst_long, error);
	}
	report_worst(test, worst_short, BOUND(26));
	report_worst(test, worst_long, BOUND(16));
}

/* The price laws live by it: exp(ln x) must come back. */
static void fixp_roundtrip_test(struct kunit *test)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ln_reference); i++) {
		u64 x = ln_reference[i].x;

		if (!x || x > FIXP_ONE)
			continue;
		/* |d exp(-p)| <= |d p| as exp(-p) <= 1. */
		KUNIT_EXPECT_LE_MSG(test, distance(fixp_exp_neg(-fixp_ln(x)), x),
				    1ULL << (FIXP_SHIFT - 28), "x = %llu", x);
	}
}

static void fixp_mul_test(struct kunit *test)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(mul_div_reference); i++) {
		u64 a = mul_div_reference[i].a;
		u32 b = mul_div_reference[i].b;
		u64 high = (a >> 32) * b, low = (a & U32_MAX) * b;

		KUNIT_EXPECT_EQ_MSG(test, fixp_mul(a, b), high + (low >> 32),
				    "a = %llu, b = %u", a, b);
	}
}

static void fixp_mul_div_test(struct kunit *test)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(mul_div_reference); i++) {
		u64 a = mul_div_reference[i].a;
		u64 b = mul_div_reference[i].b;
		u64 c = mul_div_reference[i].c;
		u64 quotient = mul_div_reference[i].quotient;
		u64 got = fixp_mul_div(a, b, c);
		u64 bound = (quotient >> 29) + 1;

		/* Above 2^64: saturated, or below it by the error at most. */
		if (mul_div_reference[i].over)
			KUNIT_EXPECT_GE_MSG(test, got, U64_MAX - bound,
					    "%llu * %llu / %llu", a, b, c);
		else
			KUNIT_EXPECT_LE_MSG(test, max(got, quotient) -
					    min(got, quotient), bound,
					    "%llu * %llu / %llu", a, b, c);
		if (!c && a && b)
			KUNIT_EXPECT_EQ(test, got, U64_MAX);
	}
}

static struct kunit_case fixp_cases[] = {
	KUNIT_CASE(fixp_exp_neg_test),
	KUNIT_CASE(fixp_ln_test),
	KUNIT_CASE(fixp_ln_lost_test),
	KUNIT_CASE(fixp_pow_test),
	KUNIT_CASE(fixp_roundtrip_test),
	KUNIT_CASE(fixp_mul_test),
	KUNIT_CASE(fixp_mul_div_test),
	{}
};

static struct kunit_suite fixp_suite = {
	.name = "tollway_fixp",
	.test_cases = fixp_cases,
};

kunit_test_suite(fixp_suite);

MODULE_DESCRIPTION("KUnit tests of tollway_fixp.h");
MODULE_LICENSE("GPL");
