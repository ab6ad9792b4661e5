// SPDX-License-Identifier: GPL-2.0
/*
 * The arithmetic of tcp_alpha: the numbers of ALPHA section V replayed, and the
 * steps of the rate over their whole range
 */

#include <kunit/test.h>
#include <linux/module.h>

#include "tcp_alpha/alpha_law.c"

/* ALPHA section V, example 1: packets/s^2, where the paper has packets/ms^2. */
#define EXAMPLE_GIP	(2000000ULL << ALPHA_GAIN_SHIFT)
#define EXAMPLE_GDP	800000U

/**
 * struct example - two connections at one bottleneck
 * @gain: alpha of each
 * @last_bcn: LBCN of both, who see the same queue
 */
struct example {
	u64	gain[2];
	bool	last_bcn;
};

/*
 * A cycle: the largest queue is beyond its goal where the sum of the gains is
 * above the one that (8) gives for the goal, packets/s^2.
 */
static void example_cycle(struct example *example, u64 goal)
{
	u64 sum = example->gain[0] + example->gain[1];
	bool bcn = sum > goal << ALPHA_GAIN_SHIFT;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(example->gain); i++)
		example->gain[i] = alpha_law_gain(example->gain[i], bcn,
						  example->last_bcn,
						  EXAMPLE_GIP, EXAMPLE_GDP);
	example->last_bcn = bcn;
}

/* To one packet/s^2, which is a millionth of the paper's unit. */
static void expect_gains(struct kunit *test, const struct example *example,
			 u64 first, u64 second)
{
	u64 half = 1 << (ALPHA_GAIN_SHIFT - 1);

	KUNIT_EXPECT_EQ(test, (example->gain[0] + half) >> ALPHA_GAIN_SHIFT,
			first);
	KUNIT_EXPECT_EQ(test, (example->gain[1] + half) >> ALPHA_GAIN_SHIFT,
			second);
}

static void alpha_example_test(struct kunit *test)
{
	struct example example = {
		.gain = { 3035000ULL << ALPHA_GAIN_SHIFT,
			  12760000ULL << ALPHA_GAIN_SHIFT },
	};
	int cycle;

	/* The transient, then the equilibrium about a sum of 18. */
	example_cycle(&example, 18000000);
	expect_gains(test, &example, 5035000, 14760000);
	for (cycle = 0; cycle < 100; cycle++) {
		example_cycle(&example, 18000000);
		expect_gains(test, &example, 4028000, 11808000);
		example_cycle(&example, 18000000);
		expect_gains(test, &example, 5035000, 14760000);
	}
	example_cycle(&example, 18000000);

	/* More flows or longer ways: the goal is 6, reached in five cycles. */
	example_cycle(&example, 18000000);
	for (cycle = 0; cycle < 6; cycle++)
		example_cycle(&example, 6000000);
	expect_gains(test, &example, 1319895, 3869245);
	example_cycle(&example, 6000000);
	expect_gains(test, &example, 1649869, 4836557);
	example_cycle(&example, 6000000);
	expect_gains(test, &example, 1319895, 3869245);

	/* And 18 again: three cycles of p, after the 1/q that was due. */
	example_cycle(&example, 18000000);
	for (cycle = 0; cycle < 3; cycle++)
		example_cycle(&example, 18000000);
	expect_gains(test, &example, 7649869, 10836557);
	example_cycle(&example, 18000000);
	expect_gains(test, &example, 6119895, 8669245);
	example_cycle(&example, 18000000);
	expect_gains(test, &example, 7649869, 10836557);
}

/* A gain leaves its range on neither side, and q = 1, p = 0 keep it. */
static void alpha_gain_range_test(struct kunit *test)
{
	u64 gain = ALPHA_GAIN_MIN;

	KUNIT_EXPECT_EQ(test, ALPHA_GAIN_MIN,
			alpha_law_gain(gain, true, false, 0, 10000));
	gain = ALPHA_GAIN_MAX;
	KUNIT_EXPECT_EQ(test, gain, alpha_law_gain(gain, false, true, 0, 10000));
	KUNIT_EXPECT_EQ(test, gain,
			alpha_law_gain(gain, false, false, ALPHA_GAIN_MAX, 1));
	gain = 8700000ULL << ALPHA_GAIN_SHIFT;
	KUNIT_EXPECT_EQ(test, gain,
			alpha_law_gain(gain, true, true, 0, ALPHA_GDP_ONE));
	KUNIT_EXPECT_EQ(test, gain,
			alpha_law_gain(gain, false, true, 0, ALPHA_GDP_ONE));
	KUNIT_EXPECT_EQ(test, gain,
			alpha_law_gain(gain, false, false, 0, ALPHA_GDP_ONE));
	/* 32 packets in 100 ms, each 100 ms; what is out of range is held. */
	KUNIT_EXPECT_EQ(test, 3200ULL << ALPHA_GAIN_SHIFT,
			alpha_law_gain_auto(32, 100000));
	KUNIT_EXPECT_EQ(test, ALPHA_GAIN_MAX, alpha_law_gain_auto(32, 0));
	KUNIT_EXPECT_EQ(test, ALPHA_GAIN_MIN,
			alpha_law_gain_auto(8, (1U << 24) - 1));
	/* 1000 packets/s more in each 100 ms; and at the ends of the range. */
	KUNIT_EXPECT_EQ(test, 10000ULL << ALPHA_GAIN_SHIFT,
			alpha_law_gain_doubling(1000ULL << ALPHA_RATE_SHIFT,
						100000));
	KUNIT_EXPECT_EQ(test, ALPHA_GAIN_MAX,
			alpha_law_gain_doubling(ALPHA_RATE_MAX, 0));
	KUNIT_EXPECT_EQ(test, ALPHA_GAIN_MIN,
			alpha_law_gain_doubling(1, (1U << 24) - 1));
}

static void alpha_rise_test(struct kunit *test)
{
	u64 gain = 9300ULL << ALPHA_GAIN_SHIFT, rate = 1000ULL << 16;
	int step;

	/* 9300 packets/s^2 for 10 ms: 93 packets/s, in one step or in ten. */
	KUNIT_EXPECT_EQ(test, 93ULL << 16, alpha_law_increment(gain, 10000));
	KUNIT_EXPECT_EQ(test, 1093ULL << 16,
			alpha_law_rise(rate, gain, 10000, ALPHA_RATE_MAX));
	for (step = 0; step < 10; step++)
		rate = alpha_law_rise(rate, gain, 1000, ALPHA_RATE_MAX);
	KUNIT_EXPECT_LE(test, abs((s64)rate - (1093LL << 16)), 10LL);
	/* Up to the limit, and no lower where it is below. */
	KUNIT_EXPECT_EQ(test, rate + 5,
			alpha_law_rise(rate, gain, 1000, rate + 5));
	KUNIT_EXPECT_EQ(test, rate, alpha_law_rise(rate, gain, 1000, 1));
	/* The ends of the range: 10^9 packets/s^2 for 1.048575 s. */
	KUNIT_EXPECT_EQ(test, 1048575000ULL << ALPHA_RATE_SHIFT,
			alpha_law_increment(ALPHA_GAIN_MAX, ALPHA_STEP_MAX_US));
	KUNIT_EXPECT_EQ(test, ALPHA_RATE_MAX,
			alpha_law_rise(ALPHA_RATE_MAX, ALPHA_GAIN_MAX,
				       ALPHA_STEP_MAX_US, U64_MAX));
}

/* Is @rate a share of 2^46, in 2^-32, to what 2^-28 of it is? */
static void expect_share(struct kunit *test, u64 rate, u64 share)
{
	s64 away = (s64)(rate >> 14) - (s64)share;

	KUNIT_EXPECT_LE_MSG(test, abs(away), 16LL, "%llu, not %llu of 2^32",
			    rate >> 14, share);
}

static void alpha_fall_test(struct kunit *test)
{
	/* RIR is 10^6 packets/s for these. */
	const u64 gain = 1000000ULL << ALPHA_GAIN_SHIFT;
	const u32 step_us = 1000000;
	const u64 rir = 1000000ULL << ALPHA_RATE_SHIFT, one = 1ULL << 46;
	u64 rate = one;
	int step;

	KUNIT_ASSERT_EQ(test, rir, alpha_law_increment(gain, step_us));
	/* exp(-1), exp(-1/8), exp(-10), and none at 23 and beyond. */
	expect_share(test, alpha_law_fall(one, gain, step_us, rir), 1580030169);
	expect_share(test, alpha_law_fall(one, gain, step_us, 8 * rir),
		     3790295335ULL);
	expect_share(test, alpha_law_fall(one, gain, step_us, rir / 10), 194991);
	KUNIT_EXPECT_EQ(test, 0ULL,
			alpha_law_fall(one, gain, step_us, rir / 23));
	KUNIT_EXPECT_EQ(test, 0ULL, alpha_law_fall(one, gain, step_us, 0));
	KUNIT_EXPECT_EQ(test, 0ULL,
			alpha_law_fall(one, ALPHA_GAIN_MAX, ALPHA_STEP_MAX_US, 1));
	/* A quotient of 2^-33 is none. */
	KUNIT_EXPECT_EQ(test, one,
			alpha_law_fall(one, ALPHA_GAIN_MIN, 1, one));
	/* The steps do not matter: exp(-1) in a hundred. */
	for (step = 0; step < 100; step++)
		rate = alpha_law_fall(rate, gain, step_us / 100, rir);
	KUNIT_EXPECT_LE(test, abs((s64)(rate >> 14) - 1580030169LL), 1600LL);
}

/* Is @rate @due packets/s, rounded, or away from it by 2^-13 of it? */
static void expect_rate(struct kunit *test, u64 rate, u32 due)
{
	s64 away = (s64)rate - ((s64)due << ALPHA_RATE_SHIFT);

	KUNIT_EXPECT_LE_MSG(test, abs(away), ((s64)due << 3) + (1 << 15),
			    "%llu, not %u packets/s", rate >> ALPHA_RATE_SHIFT,
			    due);
}

static void alpha_fair_test(struct kunit *test)
{
	const u64 most = 12000ULL << ALPHA_RATE_SHIFT;
	const u64 alone = 1000ULL << ALPHA_RATE_SHIFT;

	/* One flow, which rises for 0.9 of the time in which it falls: the rate of the link. */
	expect_rate(test, alpha_law_fair(most, 270000, 600000, most), 12000);
	/* Three, with the BW_EST at which they stay, 12000 (9/8 / 3)^(2/3). */
	expect_rate(test, alpha_law_fair(6240ULL << 16, 200000, 624000, most), 6240);
	/* Others in the same cycle, at 1/2 and 3/2 of it. */
	expect_rate(test, alpha_law_fair(3120ULL << 16, 200000, 624000, most), 3931);
	expect_rate(test, alpha_law_fair(9360ULL << 16, 200000, 624000, most), 8177);
	/* No rise counts as one of a 16th, and a longer rise than any link allows, as it. */
	expect_rate(test, alpha_law_fair(alone, 0, 600000, most), 361);
	expect_rate(test, alpha_law_fair(alone, U32_MAX, 1, most), 12000);
	expect_rate(test, alpha_law_fair(alone, 1, 0, most), 12000);
	/* The ends of the range, and X just below the rate of the link. */
	expect_rate(test, alpha_law_fair(ALPHA_RATE_MAX, U32_MAX, 2ULL * U32_MAX,
					 ALPHA_RATE_MAX), 1000000000);
	expect_rate(test, alpha_law_fair(1ULL << 16, 0, U32_MAX, most), 4);
	expect_rate(test, alpha_law_fair(most - 1, 400000, 900000, most), 12000);
	expect_rate(test, alpha_law_fair(ALPHA_RATE_MAX - 1, 400000, 900000,
					 ALPHA_RATE_MAX), 1000000000);
}

static void alpha_units_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 100ULL << 16, alpha_law_rate(10, 100000));
	KUNIT_EXPECT_EQ(test, 1ULL, alpha_law_rate(0, 100000));
	KUNIT_EXPECT_EQ(test, ALPHA_RATE_MAX, alpha_law_rate(U32_MAX, 0));
	KUNIT_EXPECT_EQ(test, 10U, alpha_law_packets(100ULL << 16, 100000));
	KUNIT_EXPECT_EQ(test, 600ULL << 16,
			alpha_law_mean(400ULL << 16, 900ULL << 16));
	/* Roots are rounded down. */
	KUNIT_EXPECT_LE(test, ALPHA_RATE_MAX -
			alpha_law_mean(ALPHA_RATE_MAX, ALPHA_RATE_MAX),
			ALPHA_RATE_MAX >> 24);
	KUNIT_EXPECT_EQ(test, 0ULL, alpha_law_mean(0, ALPHA_RATE_MAX));
	KUNIT_EXPECT_EQ(test, 0U, alpha_law_packets(1, (1U << 24) - 1));
	KUNIT_EXPECT_EQ(test, U32_MAX,
			alpha_law_packets(ALPHA_RATE_MAX, (1U << 24) - 1));
}

static struct kunit_case alpha_cases[] = {
	KUNIT_CASE(alpha_example_test),
	KUNIT_CASE(alpha_gain_range_test),
	KUNIT_CASE(alpha_rise_test),
	KUNIT_CASE(alpha_fall_test),
	KUNIT_CASE(alpha_fair_test),
	KUNIT_CASE(alpha_units_test),
	{}
};

static struct kunit_suite alpha_suite = {
	.name = "tollway_alpha",
	.test_cases = alpha_cases,
};

kunit_test_suite(alpha_suite);

MODULE_DESCRIPTION("KUnit tests of the arithmetic of tcp_alpha");
MODULE_LICENSE("GPL");
