// SPDX-License-Identifier: GPL-2.0
/*
 * The price law "delay" of sch_sbrm on links of any rate, and on input that no
 * link has
 */

#include <kunit/test.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/string.h>

#include "sch_sbrm/sbrm_delay.c"

/* Some packets of a link: what the queue tells the law. */
struct link {
	struct sbrm_coef	coef;
	struct sbrm_state	state;
	u64			now;
};

static void link_start(struct link *link, u32 target_ns)
{
	memset(link, 0, sizeof(*link));
	link->coef.delay_ns = target_ns;
	link->now = 1000;
	link->state.time = link->now;
	sbrm_delay_start(&link->state, 0);
}

/* A packet leaves a queue that has been as long as @backlog for @takes ns. */
static void link_serve(struct link *link, u64 takes, u32 bytes, u32 backlog)
{
	link->now += takes;
	sbrm_delay_advance(&link->coef, &link->state, link->now, backlog);
	sbrm_delay_departure(&link->state, bytes);
}

/* A packet comes after @rest ns and leaves at once. */
static void link_pass(struct link *link, u64 rest, u32 bytes)
{
	link->now += rest;
	sbrm_delay_advance(&link->coef, &link->state, link->now, 0);
	sbrm_delay_advance(&link->coef, &link->state, link->now, bytes);
	sbrm_delay_departure(&link->state, bytes);
}

static u64 rate_of(struct link *link)
{
	struct tc_sbrm_xstats xstats = {};

	sbrm_delay_fill_xstats(&link->coef, &link->state, &xstats);
	return xstats.service_rate;
}

/* Are they equal to one part in so many, and one? */
static bool is_near(u64 a, u64 b, u32 parts)
{
	return (a > b ? a - b : b - a) <= div_u64(b, parts) + 1;
}

/* Bytes per second: 12 kb/s, a packet per second, to 100 Gb/s. */
static const u64 rates[] = {
	1500, 12500, 125000, 1250000, 12500000, 125000000, 1250000000,
	12500000000ULL,
};

/* A standing queue shows the rate of the link, to a part in a thousand. */
static void delay_rate_test(struct kunit *test)
{
	struct link link;
	size_t i, n;

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		u64 takes = div64_u64(1500ULL * NSEC_PER_SEC, rates[i]);
		u64 rate;

		link_start(&link, 3000000);
		/* Twice the memory, and some packets. */
		for (n = 0; n < div64_u64(DELAY_MEMORY_NS * 2, takes) + 64; n++)
			link_serve(&link, takes, 1500, 15000);
		rate = rate_of(&link);
		KUNIT_EXPECT_TRUE_MSG(test, is_near(rate, rates[i], 1000),
				      "rate %llu: %llu", rates[i], rate);
	}
}

/*
 * With the queue at its target the price stays; above, it rises; without one it
 * falls by b.
 */
static void delay_price_test(struct kunit *test)
{
	struct link link;
	u64 price;
	int n;

	link_start(&link, 3000000);
	/* 120 Mb/s: 0.1 ms for a packet; thirty of them are the target. */
	for (n = 0; n < 10000; n++)
		link_serve(&link, NSEC_PER_MSEC / 10, 1500, 45000);
	price = link.state.price;
	for (n = 0; n < 40000; n++)
		link_serve(&link, NSEC_PER_MSEC / 10, 1500, 45000);
	KUNIT_EXPECT_TRUE_MSG(test, is_near(link.state.price, price, 1000),
			      "%llu became %llu", price, link.state.price);

	/* 4 s at 21 times the target: 20 / 40 per second, and 3 * 60 ms. */
	for (n = 0; n < 40000; n++)
		link_serve(&link, NSEC_PER_MSEC / 10, 1500, 945000);
	/* e^2.18 = 8.85 */
	KUNIT_EXPECT_GT(test, link.state.price, price * 87 / 10);
	KUNIT_EXPECT_LT(test, link.state.price, price * 90 / 10);

	/*
	 * Half of the time nothing, and a 32nd of the other half once the rate of the
	 * link is out of date: u falls by 1.5 in a second, and the price by 0.9 more,
	 * as 1.3 ln 0.48 is -0.94, and by 0.19, as there is no delay any more.
	 */
	price = link.state.price;
	for (n = 0; n < 5000; n++)
		link_pass(&link, NSEC_PER_MSEC / 5, 1500);
	KUNIT_EXPECT_LT(test, link.state.price, price / 11);
	KUNIT_EXPECT_GT(test, link.state.price, price / 16);
}

/* So many ms at a backlog that changes by @step bytes in each. */
static void link_queue(struct link *link, int ms, u32 backlog, int step)
{
	for (; ms; ms--, backlog += step)
		link_serve(link, NSEC_PER_MSEC, 1500, backlog);
}

/* The same, and all the time packets find no room. */
static void link_queue_full(struct link *link, int ms, u32 backlog, int step)
{
	for (; ms; ms--, backlog += step) {
		link->state.full = true;
		link_serve(link, NSEC_PER_MSEC, 1500, backlog);
	}
}

/* By how much ln p rises from @log_price in @ms at a backlog. */
static s64 link_change(struct link *link, s64 log_price, int ms, u32 backlog)
{
	link->state.log_price = log_price;
	link_queue(link, ms, backlog, 0);
	return link->state.log_price - log_price;
}

/* The same, while packets find no room. */
static s64 link_change_full(struct link *link, s64 log_price, int ms, u32 backlog)
{
	link->state.log_price = log_price;
	link_queue_full(link, ms, backlog, 0);
	return link->state.log_price - log_price;
}

/* At a price of e: a is divided by e^2 over a target of 3 ms, and b by what was seen. */
static void delay_slow_test(struct kunit *test)
{
	/* 21 targets for 0.1 s; of one of 12 ms, four times as much of a is left. */
	static const struct {
		u32 target_ns, backlog;
		u64 rise;
	} slow[] = {
		{ 2000000, 63000, FIXP_ONE * 677 / 100000 },
		{ 3000000, 94500, FIXP_ONE * 677 / 100000 },
		{ 12000000, 378000, FIXP_ONE * 2637 / 100000 },
	};
	struct link link;
	s64 u = 0, low;
	size_t i;
	int n;

	for (i = 0; i < ARRAY_SIZE(slow); i++) {
		link_start(&link, slow[i].target_ns);
		link_queue(&link, 1000, slow[i].backlog / 21, 0);
		u = link_change(&link, FIXP_ONE, 100, slow[i].backlog);
		KUNIT_EXPECT_TRUE_MSG(test, is_near(u, slow[i].rise, 50),
				      "target %u: by %lld", slow[i].target_ns, u);
	}

	link_start(&link, 3000000);
	link_queue(&link, 1000, 4500, 0);
	/* Half of the time nothing, where a price of four was seen, and of one. */
	link_pass(&link, 2 * NSEC_PER_MSEC, 1500);
	for (n = 0; n < 2; n++) {
		link.state.log_price = FIXP_ONE;
		link.state.price = n ? FIXP_ONE : 4 * FIXP_ONE;
		low = u;
		link_pass(&link, 2 * NSEC_PER_MSEC, 1500);
		u = (s64)FIXP_ONE - link.state.log_price;
	}
	KUNIT_EXPECT_TRUE_MSG(test, is_near(u, low * 4, 15),
			      "by %lld and %lld", low, u);
}

/*
 * A price that is far too low rises at once while the delay is above three targets
 * and does not fall, but no further than to an eighth of the first one. Below a 128th
 * of that it rises sixteen times as fast.
 */
static void delay_rise_test(struct kunit *test)
{
	struct link link;
	s64 first, u;
	int n;

	link_start(&link, 3000000);
	link_queue(&link, 1000, 4500, 0);
	first = delay_log_first(&link.state);

	/* Four targets: a third of 6 per second, and 3 / 40. */
	link_queue(&link, 100, 18000, 0);
	u = link_change(&link, first - 3 * (s64)FIXP_ONE, 100, 18000);
	KUNIT_EXPECT_TRUE_MSG(test, is_near(u, FIXP_ONE * 2075 / 10000, 200),
			      "by %lld", u);

	/* Sixteen times that third. */
	u = link_change(&link, first - 9 * (s64)FIXP_ONE, 100, 18000);
	KUNIT_EXPECT_TRUE_MSG(test, is_near(u, FIXP_ONE * 32075 / 10000, 200),
			      "by %lld", u);

	/* Nine: twice 6, and 8 / 40: 12.2 per second. */
	link_queue(&link, 20, 40500, 0);
	u = link_change(&link, first - 3 * (s64)FIXP_ONE, 20, 40500);
	KUNIT_EXPECT_TRUE_MSG(test, is_near(u, FIXP_ONE * 244 / 1000, 200),
			      "by %lld", u);

	/* At once to a 128th, as 192 per second are 1.9 in 10 ms, and on by 12. */
	link.state.log_price = first - 7 * (s64)FIXP_ONE;
	link_queue(&link, 40, 40500, 0);
	u = link.state.log_price - first;
	KUNIT_EXPECT_GT(test, u, -DELAY_RISE_FAST_LOG);
	KUNIT_EXPECT_LT(test, u, -DELAY_RISE_FAST_LOG + (s64)FIXP_ONE / 2);

	/* Up to there; a takes it on. */
	link_queue(&link, 1000, 40500, 0);
	u = link.state.log_price - first;
	KUNIT_EXPECT_GT(test, u, -DELAY_RISE_LOG);
	KUNIT_EXPECT_LT(test, u, -DELAY_RISE_LOG + (s64)FIXP_ONE / 5);

	/* It falls by 0.25 s in a second: from 66 to 41 ms, by a alone. */
	link.state.log_price = first - 8 * (s64)FIXP_ONE;
	link.state.slow_ns = 74000000;
	link_queue(&link, 100, 99000, -375);
	u = link.state.log_price - first + 8 * (s64)FIXP_ONE;
	KUNIT_EXPECT_LT(test, u, (s64)FIXP_ONE / 20);

	/* Three targets and less: likewise. */
	u = link_change(&link, first - 8 * (s64)FIXP_ONE, 100, 13500);
	KUNIT_EXPECT_LT(test, u, (s64)FIXP_ONE / 150);

	/* One of 1 Mb/s that falls, whose average is over 480 ms: from 252 to 234 ms. */
	link_start(&link, 3000000);
	for (n = 0; n < 200; n++)
		link_serve(&link, 12 * NSEC_PER_MSEC, 1500, 3000);
	link.state.log_price = -4 * (s64)FIXP_ONE;
	link.state.slow_ns = 260000000;
	for (n = 0; n < 5; n++)
		link_serve(&link, 12 * NSEC_PER_MSEC, 1500, 31500 - 450 * n);
	u = link.state.log_price + 4 * (s64)FIXP_ONE;
	KUNIT_EXPECT_LT(test, u, (s64)FIXP_ONE / 20);
}

/*
 * While a full queue drops packets for the second time within two seconds, the price rises
 * four times as fast, up to the first one; but not while the delay is below three targets,
 * or falls.
 */
static void delay_full_test(struct kunit *test)
{
	struct link link;
	s64 first, u;
	int n;

	link_start(&link, 3000000);
	link_queue(&link, 1000, 4500, 0);
	first = delay_log_first(&link.state);

	/* One burst, whose drops are a fifth of a second apart. */
	link_queue(&link, 100, 18000, 0);
	u = first - FIXP_ONE * 3 / 2;
	link.state.log_price = u;
	for (n = 0; n < 3; n++) {
		link_queue_full(&link, 10, 18000, 0);
		link_queue(&link, 200, 18000, 0);
	}
	u = link.state.log_price - u;
	KUNIT_EXPECT_LT(test, u, (s64)FIXP_ONE / 10);

	/* Another one, of four targets: four times a third of 6 per second, and 3 / 40. */
	link_queue(&link, 100, 18000, 0);
	u = link_change_full(&link, first - FIXP_ONE * 3 / 2, 100, 18000);
	KUNIT_EXPECT_TRUE_MSG(test, is_near(u, FIXP_ONE * 8075 / 10000, 200),
			      "by %lld", u);

	/* As long as packets are dropped, and not if the next burst comes later. */
	u = link_change(&link, first - FIXP_ONE, 100, 18000);
	KUNIT_EXPECT_LT(test, u, (s64)FIXP_ONE / 100);
	link_queue(&link, 2000, 18000, 0);
	u = link_change_full(&link, first - FIXP_ONE, 100, 18000);
	KUNIT_EXPECT_LT(test, u, (s64)FIXP_ONE / 100);

	/* Nor after a time in which nothing was sent, which counts in full. */
	link_pass(&link, 6ULL * NSEC_PER_SEC, 1500);
	link_queue(&link, 100, 18000, 0);
	u = link_change_full(&link, first - FIXP_ONE, 100, 18000);
	KUNIT_EXPECT_LT(test, u, (s64)FIXP_ONE / 100);

	/* Up to the first price; a takes it on. */
	link_queue(&link, 300, 18000, 0);
	link.state.log_price = first - FIXP_ONE;
	link_queue_full(&link, 1000, 18000, 0);
	u = link.state.log_price - first;
	KUNIT_EXPECT_GE(test, u, 0);
	KUNIT_EXPECT_LT(test, u, (s64)FIXP_ONE / 10);

	/* A limit of less than three targets. */
	link_queue(&link, 1000, 13500, 0);
	u = link_change_full(&link, first - FIXP_ONE, 100, 13500);
	KUNIT_EXPECT_LT(test, u, (s64)FIXP_ONE / 100);

	/* It falls by 0.25 s in a second, from 66 to 41 ms. */
	link.state.log_price = first - FIXP_ONE;
	link.state.slow_ns = 74000000;
	link_queue_full(&link, 100, 99000, -375);
	u = link.state.log_price - first + FIXP_ONE;
	KUNIT_EXPECT_LT(test, u, (s64)FIXP_ONE / 20);
}

/*
 * The price is higher while the delay grows, and lower while it falls: e^(2 d'). The
 * average that tells is over 32 ms at least, over forty full packets, and longer
 * above a price of 1.
 */
static void delay_lead_test(struct kunit *test)
{
	static const struct {
		u64	packet_ns;
		s64	log_price;
		u32	slow_ns;
	} slow[] = {
		{ 12000, -FIXP_ONE, 32000000 },
		{ 1000000, -FIXP_ONE, 40000000 },
		{ 1000000, 0, 40000000 },
		/* e times as long */
		{ 1000000, FIXP_ONE, 108731273 },
		{ 1000000, DELAY_LOG_MAX, 1000000000 },
		{ 12000000, -FIXP_ONE, 480000000 },
		{ 100000000, -FIXP_ONE, 1000000000 },
	};
	struct link link;
	size_t i;
	s64 lead;
	int sign;

	for (i = 0; i < ARRAY_SIZE(slow); i++) {
		memset(&link, 0, sizeof(link));
		link.state.size = 1500;
		link.state.service = (slow[i].packet_ns <<
				      DELAY_SERVICE_SHIFT) / 1500;
		link.state.log_price = slow[i].log_price;
		KUNIT_EXPECT_TRUE_MSG(test, is_near(delay_slow_ns(&link.state),
						    slow[i].slow_ns, 1),
				      "packet of %llu ns: %u",
				      slow[i].packet_ns,
				      delay_slow_ns(&link.state));
	}

	for (sign = -1; sign <= 1; sign++) {
		link_start(&link, 100000000);
		link_queue(&link, 1000, 150000, 0);
		link.state.log_price = -4 * (s64)FIXP_ONE;
		/* By 0.1 s in a second, from the target of 100 ms. */
		link_queue(&link, 300, 150000, sign * 150);
		lead = fixp_ln(link.state.price) - link.state.log_price -
		       DELAY_B * (s64)(100 + sign * 30) * (s64)FIXP_ONE / 1000;
		KUNIT_EXPECT_GT_MSG(test, lead, (sign * 15 - 2) * (s64)FIXP_ONE / 100,
				    "sign %d", sign);
		KUNIT_EXPECT_LT_MSG(test, lead, (sign * 15 + 2) * (s64)FIXP_ONE / 100,
				    "sign %d", sign);
	}

	/* At once by more than a second: no more than e^1.5. */
	link_start(&link, 3000000);
	link_queue(&link, 1000, 4500, 0);
	KUNIT_EXPECT_EQ(test, delay_grows(&link.state,
					  delay_off(&link.state, BIT_ULL(40))),
			(s64)FIXP_ONE);
	link.state.slow_ns = NSEC_PER_SEC;
	KUNIT_EXPECT_EQ(test, delay_grows(&link.state, delay_off(&link.state, 0)),
			-(s64)FIXP_ONE);
}

/* A link that rests has no price, and goes back to the first one. */
static void delay_rest_test(struct kunit *test)
{
	struct link link;
	s64 first;
	int n;

	link_start(&link, 3000000);
	KUNIT_EXPECT_EQ(test, link.state.price, 0ULL);
	for (n = 0; n < 1000; n++)
		link_serve(&link, NSEC_PER_MSEC, 1500, 3000);
	first = delay_log_first(&link.state);
	/* Far too cheap, and nobody is there. */
	link.state.log_price = first - 8 * (s64)FIXP_ONE;
	for (n = 0; n < 60; n++)
		link_pass(&link, NSEC_PER_SEC, 100);
	KUNIT_EXPECT_LE(test, link.state.log_price, first);
	KUNIT_EXPECT_GT(test, link.state.log_price, first - (s64)FIXP_ONE);
	/* 1 - idle is 10^-3 and less, so that next to nothing is marked. */
	KUNIT_EXPECT_LT(test, link.state.price, FIXP_ONE / 1000);
}

/* A link ten times as fast is found out even if no packet waits any more. */
static void delay_faster_test(struct kunit *test)
{
	struct link link;
	int n;

	link_start(&link, 3000000);
	for (n = 0; n < 1000; n++)
		link_serve(&link, NSEC_PER_MSEC, 1500, 4500);
	/* Five times as much as the link could carry. */
	for (n = 0; n < 10000; n++)
		link_pass(&link, NSEC_PER_MSEC / 5, 1500);
	KUNIT_EXPECT_GT(test, rate_of(&link), 7 * 1000 * 1000ULL);
	/* And some of the time counts as rest: a 32nd, as nothing waits. */
	KUNIT_EXPECT_GT(test, (u64)link.state.idle, FIXP_ONE / 40);
}

/* Packets that a shaper lets go at once keep the link busy for as long as all. */
static void delay_burst_test(struct kunit *test)
{
	struct link link;
	int n, burst, i;

	for (burst = 1; burst <= 3; burst++) {
		link_start(&link, 3000000);
		/* 12 Mb/s */
		for (n = 0; n < 1000; n++)
			link_serve(&link, NSEC_PER_MSEC, 1500, 4500);
		/* Nine tenths of that. */
		for (n = 0; n < 200; n++) {
			link_pass(&link, burst * NSEC_PER_MSEC * 10 / 9, 1500);
			for (i = 1; i < burst; i++)
				link_pass(&link, 0, 1500);
			/* A short one is not ahead of them. */
			link_pass(&link, 0, 20);
		}
		/* A tenth, and a 32nd of the rest: 0.13. */
		KUNIT_EXPECT_GT_MSG(test, (u64)link.state.idle, FIXP_ONE / 12,
				    "bursts of %d", burst);
		KUNIT_EXPECT_LT_MSG(test, (u64)link.state.idle, FIXP_ONE / 6,
				    "bursts of %d", burst);
		KUNIT_EXPECT_EQ(test, link.state.fast_ns, 0ULL);
	}
}

/* One that sends more than it could is faster, which takes no time to be found. */
static void delay_ahead_test(struct kunit *test)
{
	struct link link;
	int n;

	link_start(&link, 3000000);
	for (n = 0; n < 1000; n++)
		link_serve(&link, NSEC_PER_MSEC, 1500, 4500);
	/* 14.4 Mb/s: five packets ahead after 25. */
	for (n = 0; n < 30; n++)
		link_pass(&link, NSEC_PER_MSEC * 5 / 6, 1500);
	KUNIT_EXPECT_GT(test, link.state.fast_ns, 0ULL);
	/* It is measured every 64 ms. */
	for (n = 0; n < 160; n++)
		link_pass(&link, NSEC_PER_MSEC * 5 / 6, 1500);
	KUNIT_EXPECT_TRUE_MSG(test, is_near(rate_of(&link), 1800000, 30),
			      "rate %llu", rate_of(&link));
	/* Half of the time for which it is taken for busy. */
	KUNIT_EXPECT_GT(test, (u64)link.state.idle, FIXP_ONE / 3);
	KUNIT_EXPECT_LT(test, (u64)link.state.idle, FIXP_ONE * 6 / 10);

	/* It is forgotten while packets wait again. */
	for (n = 0; n < 500; n++)
		link_serve(&link, NSEC_PER_MSEC * 5 / 6, 1500, 4500);
	KUNIT_EXPECT_EQ(test, link.state.fast_ns, 0ULL);
	KUNIT_EXPECT_LT(test, link.state.doubt, DELAY_DOUBT_FAST / 256);
}

/* The price of another law is where it begins. */
static void delay_start_test(struct kunit *test)
{
	static const u64 prices[] = {
		1, 429497, FIXP_ONE / 100, FIXP_ONE, 300 * FIXP_ONE, U64_MAX,
	};
	struct sbrm_state state;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(prices); i++) {
		memset(&state, 0, sizeof(state));
		sbrm_delay_start(&state, prices[i]);
		KUNIT_EXPECT_EQ(test, state.price,
				min_t(u64, prices[i],
				      delay_exp(DELAY_LOG_MAX)));
		KUNIT_EXPECT_GE(test, state.log_price, DELAY_LOG_MIN);
		KUNIT_EXPECT_LE(test, state.log_price, DELAY_LOG_MAX);
	}
}

/* Whatever happens, all stays in range, and the law finds back. */
static void delay_range_test(struct kunit *test)
{
	struct rnd_state random;
	struct link link;
	int n, m;

	prandom_seed_state(&random, 1);
	for (n = 0; n < 200; n++) {
		link_start(&link, n & 1 ? 1000000000 : 10000);
		for (m = 0; m < 2000; m++) {
			u32 kind = prandom_u32_state(&random);
			/* Up to an hour, and steps back. */
			u64 takes = (u64)prandom_u32_state(&random) <<
				    (kind >> 8 & 15) >> (kind >> 12 & 31);
			u32 bytes = prandom_u32_state(&random) >>
				    (16 + (kind >> 17 & 15));

			if (kind & 1)
				link_pass(&link, takes, bytes);
			else
				link_serve(&link, takes, bytes,
					   prandom_u32_state(&random) >>
					   (kind >> 21 & 31));
			if ((kind & 254) == 2)
				link.now -= min(link.now, takes);
			if (link.state.log_price < DELAY_LOG_MIN ||
			    link.state.log_price > DELAY_LOG_MAX ||
			    link.state.price > 401 * FIXP_ONE ||
			    link.state.marks > BIT_ULL(44) ||
			    link.state.age_ns > DELAY_STALE_MAX_NS ||
			    link.state.tail_ns > DELAY_AHEAD * BIT_ULL(40) ||
			    link.state.fast_ns > DELAY_STALE_MAX_NS ||
			    link.state.slow_ns > DELAY_GAP_MAX_NS ||
			    link.state.doubt > DELAY_DOUBT_FAST)
				break;
		}
		KUNIT_EXPECT_EQ_MSG(test, m, 2000,
				    "run %d: u %lld price %llu marks %llu age %llu tail %llu",
				    n, link.state.log_price, link.state.price,
				    link.state.marks, link.state.age_ns,
				    link.state.tail_ns);

		/* 12 Mb/s, from whatever it has come to. */
		link.now = max(link.now, link.state.time);
		for (m = 0; m < 3000; m++)
			link_serve(&link, NSEC_PER_MSEC, 1500, 4500);
		KUNIT_EXPECT_TRUE_MSG(test,
				      is_near(rate_of(&link), 1500000, 100),
				      "run %d: rate %llu", n, rate_of(&link));
	}
}

/*
 * Before packets have waited, the first price is for four times what passes: until
 * then nothing says how fast the link is.
 */
static void delay_fresh_test(struct kunit *test)
{
	/* 1 Gb/s, 100 Mb/s, and 2.4 Mb/s. */
	static const u64 gaps[] = { 12000, 120000, 5000000 };
	struct link link;
	u64 most;
	size_t i;
	int n;

	for (i = 0; i < ARRAY_SIZE(gaps); i++) {
		link_start(&link, 3000000);
		for (n = 0; n < 6; n++)
			link_pass(&link, gaps[i], 1500);
		/* A millisecond says nothing. */
		if (gaps[i] == 12000)
			KUNIT_EXPECT_GE(test, link.state.log_price,
					DELAY_LOG_FIRST / 2);
		for (n = 0; n < div64_u64(200 * NSEC_PER_MSEC, gaps[i]); n++)
			link_pass(&link, gaps[i], 1500);
		/* 1000 marks per second, of four times as many packets. */
		most = fixp_mul_div(gaps[i] * 1000 / 4, FIXP_ONE, NSEC_PER_SEC);
		KUNIT_EXPECT_TRUE(test, link.state.is_new);
		KUNIT_EXPECT_LE(test, delay_exp(link.state.log_price),
				most + most / 16);
	}

	/* 1 Mb/s: the first price is less. */
	link_start(&link, 3000000);
	for (n = 0; n < 50; n++)
		link_pass(&link, 12000000, 1500);
	KUNIT_EXPECT_GE(test, link.state.log_price,
			DELAY_LOG_FIRST - (s64)FIXP_ONE);

	/* A standing queue says it: 120 us for a packet, 1000 of 8333 marked. */
	for (n = 0; n < 2000; n++)
		link_serve(&link, 120000, 1500, 4500);
	KUNIT_EXPECT_FALSE(test, link.state.is_new);
	KUNIT_EXPECT_LE(test, delay_exp(link.state.log_price),
			FIXP_ONE / 8);
}

static struct kunit_case delay_cases[] = {
	KUNIT_CASE(delay_rate_test),
	KUNIT_CASE(delay_price_test),
	KUNIT_CASE(delay_slow_test),
	KUNIT_CASE(delay_rise_test),
	KUNIT_CASE(delay_full_test),
	KUNIT_CASE(delay_lead_test),
	KUNIT_CASE(delay_rest_test),
	KUNIT_CASE(delay_faster_test),
	KUNIT_CASE(delay_burst_test),
	KUNIT_CASE(delay_ahead_test),
	KUNIT_CASE(delay_start_test),
	KUNIT_CASE(delay_range_test),
	KUNIT_CASE(delay_fresh_test),
	{}
};

static struct kunit_suite delay_suite = {
	.name = "tollway_delay",
	.test_cases = delay_cases,
};

kunit_test_suite(delay_suite);

MODULE_DESCRIPTION("Tests of the price law delay");
MODULE_LICENSE("GPL");
