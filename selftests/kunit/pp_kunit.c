// SPDX-License-Identifier: GPL-2.0
/*
 * The arithmetic of tcp_pp against PP94's equations in floating point
 *
 * The files under test know no socket, so they are compiled in here. The worst
 * error met goes to the log.
 */

#include <kunit/test.h>
#include <linux/module.h>

#include "tcp_pp/pp_train.c"
#include "tcp_pp/pp_estimator.c"
#include "tcp_pp/pp_law.c"
#include "pp_reference.h"

/* Relative distance in 2^-20, of b at least one. */
static u64 relative(u64 a, u64 b)
{
	u64 away = a > b ? a - b : b - a;

	return fixp_mul_div(away, 1 << 20, max_t(u64, b, 1));
}

static void report_worst(struct kunit *test, u64 worst, u64 bound)
{
	kunit_info(test, "worst error: %llu of %llu permitted\n", worst, bound);
}

static void pp_fuzzy_test(struct kunit *test)
{
	u64 worst = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fuzzy_reference); i++) {
		u32 x = fuzzy_reference[i].x;
		u32 alpha = pp_fuzzy_alpha_of(x), beta = pp_fuzzy_beta_of(x);
		u64 away = abs((s64)alpha - fuzzy_reference[i].alpha);

		away = max_t(u64, away, abs((s64)beta - fuzzy_reference[i].beta));
		/* The bound of pp_estimator.c, 2^-11 in Q16. */
		KUNIT_EXPECT_LE_MSG(test, away, 32ULL, "x = %u", x);
		worst = max(worst, away);
	}
	KUNIT_EXPECT_EQ(test, pp_fuzzy_alpha_of(U32_MAX), 0U);
	KUNIT_EXPECT_EQ(test, pp_fuzzy_beta_of(U32_MAX), PP_ONE);
	report_worst(test, worst, 32);
}

static void pp_estimator_test(struct kunit *test)
{
	/*
	 * In 2^-20. fuzzy: an error of 2^-11 in alpha; kalman: the gain is in
	 * Q16, of an eighth: steps of a factor of ten fade as its powers.
	 */
	static const u64 bounds[] = { 512, 32, 512 };
	u32 estimator;

	for (estimator = 0; estimator < ARRAY_SIZE(bounds); estimator++) {
		struct pp_gains gains = {
			.estimator = estimator,
			.fixed = PP_ONE / 8,
			.kalman = PP_ONE / 64,
		};
		struct pp_estimate est = {};
		u64 worst = 0;
		size_t i;

		for (i = 0; i < ARRAY_SIZE(estimate_reference); i++) {
			const u64 due[] = {
				estimate_reference[i].fuzzy,
				estimate_reference[i].fixed,
				estimate_reference[i].kalman,
			};
			u64 away;

			pp_estimate_sample(&est, &gains,
					   estimate_reference[i].sample);
			away = relative(est.service, due[estimator]);
			KUNIT_EXPECT_LE_MSG(test, away, bounds[estimator],
					    "estimator %u, sample %zu: %llu, %llu due",
					    estimator, i, est.service,
					    due[estimator]);
			worst = max(worst, away);
		}
		report_worst(test, worst, bounds[estimator]);
	}
}

static void pp_estimator_range_test(struct kunit *test)
{
	static const u64 samples[] = { 0, 1, PP_SERVICE_MAX, U64_MAX, 1 << 20 };
	u32 estimator;
	size_t i, j;

	for (estimator = 0; estimator <= PP_ESTIMATOR_KALMAN; estimator++) {
		struct pp_gains gains = { estimator, PP_ONE, 128 * PP_ONE };
		struct pp_estimate est = {};

		for (i = 0; i < ARRAY_SIZE(samples); i++)
			for (j = 0; j < 100; j++) {
				pp_estimate_sample(&est, &gains, samples[i]);
				KUNIT_EXPECT_GE(test, est.service, PP_SERVICE_MIN);
				KUNIT_EXPECT_LE(test, est.service, PP_SERVICE_MAX);
			}
		/* The fuzzy one ends slowly: its error goes as 1 / n. */
		KUNIT_EXPECT_LE(test, relative(est.service, 1 << 20), 8192ULL);
	}
}

static void pp_law_test(struct kunit *test)
{
	u64 worst = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(law_reference); i++) {
		const typeof(law_reference[0]) *due = &law_reference[i];
		u32 n_hat = pp_law_queue(due->outstanding,
					 pp_law_pipe(due->delay_us,
						     due->service));
		u64 rtt_ns = pp_law_rtt_ns(due->queue, due->delay_us,
					   due->service);
		u64 rate = pp_law_continuous(due->setpoint, due->queue,
					     due->delay_us, due->service);
		u64 before = due->rate - due->rate / 10, whole;
		/* Sums cancel: the error is that of what is summed. */
		u64 scale = max3(due->rate, due->continuous, due->discrete);
		u64 away;

		KUNIT_EXPECT_LE_MSG(test, abs((s64)n_hat - due->n_hat), 1LL,
				    "row %zu: %u", i, n_hat);
		if (rtt_ns > NSEC_PER_USEC)
			KUNIT_EXPECT_LE_MSG(test, abs((s64)(rtt_ns - due->rtt_ns)),
					    1LL + (s64)(due->rtt_ns >> 20),
					    "row %zu: %llu", i, rtt_ns);

		away = abs((s64)(rate - min_t(u64, due->continuous, PP_RATE_MAX)));
		away = fixp_mul_div(away, 1 << 20, scale);
		KUNIT_EXPECT_LE_MSG(test, away, 16ULL, "row %zu: %llu, %llu due",
				    i, rate, due->continuous);
		worst = max(worst, away);

		rate = pp_law_discrete(due->setpoint, due->queue,
				       due->outstanding, before, due->rate,
				       due->rtt_ns, PP_MILLE * 9 / 10);
		whole = pp_law_discrete(due->setpoint, due->queue,
					due->outstanding, before, due->rate,
					due->rtt_ns, PP_MILLE);
		if (whole < PP_RATE_MAX)
			KUNIT_EXPECT_EQ_MSG(test, rate,
					    div_u64(whole * 9, 10),
					    "row %zu", i);
		scale = max(scale, pp_rate(due->queue + due->outstanding,
					   due->rtt_ns));
		away = abs((s64)(rate - min_t(u64, due->discrete, PP_RATE_MAX)));
		away = fixp_mul_div(away, 1 << 20, scale);
		KUNIT_EXPECT_LE_MSG(test, away, 64ULL, "row %zu: %llu, %llu due",
				    i, rate, due->discrete);
		worst = max(worst, away);
	}
	report_worst(test, worst, 64);
}

/* Part of a change of s_hat that is believed, in thousandths. */
static u64 believed(u64 before, u64 sample, u32 count, u32 samples)
{
	u64 all = sample > before ? sample - before : before - sample;
	struct pp_estimate est = { .service = before };
	u64 was;

	while (samples--) {
		was = est.service;
		/* As an estimator that forgets all. */
		est.service = sample;
		pp_estimate_sudden(&est, was, sample, count);
	}
	was = sample > before ? est.service - before : before - est.service;
	return div64_u64(was * 1000, all);
}

static void pp_sudden_test(struct kunit *test)
{
	/* Parts of a round trip of 300 samples, and 1 - exp(-32 / part^2) in thousandths. */
	static const struct { u32 part, permille; } changes[] = {
		{ 50, 13 }, { 10, 274 }, { 5, 722 }, { 2, 1000 },
	};
	u64 service = 240000ULL << PP_SERVICE_SHIFT, twice = 2 * service, was;
	struct pp_estimate est = { .service = service };
	int i;

	/* To 2 % of all: the sum has 6 samples or more. */
	for (i = 0; i < ARRAY_SIZE(changes); i++) {
		u32 samples = 300 / changes[i].part, expected = changes[i].permille;
		u64 slower = believed(service, twice - 1, 300, samples);
		u64 faster = believed(service, service / 2, 300, samples);

		KUNIT_EXPECT_EQ(test, slower, faster);
		KUNIT_EXPECT_LE(test, slower, expected + 20ULL);
		KUNIT_EXPECT_GE(test, slower + 20, (u64)expected);
	}

	/* By turns they move it by less than a thousandth. */
	for (i = 0; i < 1000; i++) {
		was = est.service;
		est.service = i % 2 ? service / 2 : service + service / 2;
		pp_estimate_sudden(&est, was, est.service, 300);
	}
	KUNIT_EXPECT_LE(test, relative(est.service, service), (1ULL << 20) / 1000);
	KUNIT_EXPECT_TRUE(test, est.sudden == 1);

	/* One that took ten times as long is ten in a row, and leads to twice s_hat at most. */
	KUNIT_EXPECT_EQ(test, believed(service, 10 * service, 80, 1), 1000ULL / 9);

	/* Never more than the estimator says, and all of it where a round trip has few. */
	est = (struct pp_estimate){ .service = service + 1 };
	KUNIT_EXPECT_EQ(test, pp_estimate_sudden(&est, service, twice, 1), service + 1);
	KUNIT_EXPECT_EQ(test, believed(service, service * 3 / 2, 8, 1), 1000ULL);
	KUNIT_EXPECT_EQ(test, believed(service, service * 3 / 2, 16, 1), 250ULL);

	/* The ends of all ranges. */
	KUNIT_EXPECT_EQ(test, believed(PP_SERVICE_MAX / 2, PP_SERVICE_MAX, 1, 1), 1000ULL);
	KUNIT_EXPECT_EQ(test, believed(PP_SERVICE_MAX, PP_SERVICE_MIN, 1, 1), 1000ULL);
	KUNIT_EXPECT_EQ(test, believed(PP_SERVICE_MAX, PP_SERVICE_MIN, U32_MAX, 20000), 0ULL);
	KUNIT_EXPECT_EQ(test, believed(2 * PP_SERVICE_MIN, PP_SERVICE_MIN, 1, 1), 1000ULL);
}

static void pp_rise_test(struct kunit *test)
{
	u64 service = 1200000ULL << PP_SERVICE_SHIFT;
	u64 rate = pp_invert(service);

	/* A fifth of the way while the queue is low, PP94 section 8. */
	KUNIT_EXPECT_EQ(test, pp_law_rise(1000, 500, 0, U64_MAX), 600ULL);
	KUNIT_EXPECT_EQ(test, pp_law_rise(1000, 500, 512, U64_MAX), 600ULL);
	KUNIT_EXPECT_EQ(test, pp_law_rise(1000, 500, 513, U64_MAX), 1000ULL);
	KUNIT_EXPECT_EQ(test, pp_law_rise(400, 500, 0, U64_MAX), 400ULL);
	KUNIT_EXPECT_EQ(test, pp_law_rise(1000, 500, 0, 550), 550ULL);
	KUNIT_EXPECT_EQ(test, pp_law_rise(1000, 500, 0, 10), 500ULL);
	KUNIT_EXPECT_EQ(test, pp_law_mean(1000, 2000), 1250ULL);

	/* Above the setpoint: half of what is served. */
	KUNIT_EXPECT_EQ(test, pp_law_drain(0, 2 * PP_PACKET, 10 * PP_PACKET,
					   1000000, service), rate / 2);
	KUNIT_EXPECT_EQ(test, pp_law_drain(rate, 2 * PP_PACKET, 10 * PP_PACKET,
					   1000000, service), rate);
	/* Not above it: a pair in a round trip. */
	KUNIT_EXPECT_LE(test,
			relative(pp_law_drain(0, 10 * PP_PACKET, 10 * PP_PACKET,
					      88000, service),
				 20ULL << PP_RATE_SHIFT), 1ULL);
}

/* Products that stand for quotients never change what is said. */
static void pp_drain_short_test(struct kunit *test)
{
	static const u32 delays[] = { 1, 88, 10000, 88000, PP_RTT_MAX_US };
	u64 rate, service;
	int bit, i;

	for (service = PP_SERVICE_MIN; service <= PP_SERVICE_MAX; service *= 8)
		for (i = 0; i < ARRAY_SIZE(delays); i++)
			for (bit = 0; bit < 4 * 46; bit++) {
				/* Quarters of powers of two. */
				rate = ((4ULL + bit % 4) << (bit / 4)) / 4;
				KUNIT_EXPECT_EQ(test,
						pp_law_drain(rate, 512, 2560,
							     delays[i],
							     service),
						pp_law_drain_slow(rate, 512,
								  2560,
								  delays[i],
								  service));
			}
}

static void pp_stop_test(struct kunit *test)
{
	const u32 delay = 100000, wait = 40000;
	/* Of 10 ms: what waits takes longer than the last packet waited. */
	const u64 slow = (u64)(10 * NSEC_PER_MSEC) << PP_SERVICE_SHIFT;

	/* Twice the setpoint, or no more than 8 packets above it: no stop. */
	KUNIT_EXPECT_EQ(test, pp_law_stop(20 * PP_PACKET, 40 * PP_PACKET, delay,
					  delay + wait, slow), 0);
	KUNIT_EXPECT_EQ(test, pp_law_stop(5 * PP_PACKET, 13 * PP_PACKET, delay,
					  delay + wait, slow), 0);
	/* Nor while an eighth of R, or less, waits. */
	KUNIT_EXPECT_EQ(test, pp_law_stop(10 * PP_PACKET, 100 * PP_PACKET, delay,
					  delay + delay / 8, slow), 0);
	/* R has grown since. */
	KUNIT_EXPECT_EQ(test, pp_law_stop(10 * PP_PACKET, 100 * PP_PACKET, delay,
					  delay - 1, slow), 0);
	/* All but the setpoint's part of what waited. */
	KUNIT_EXPECT_EQ(test, pp_law_stop(10 * PP_PACKET, 40 * PP_PACKET, delay,
					  delay + wait, slow), wait * 3 / 4);
	KUNIT_EXPECT_EQ(test, pp_law_stop(0, 9 * PP_PACKET, delay,
					  delay + wait, slow), wait);
	/* What waits by now takes half of that: 40 packets at 500 us. */
	KUNIT_EXPECT_EQ(test, pp_law_stop(10 * PP_PACKET, 40 * PP_PACKET, delay,
					  delay + wait, slow / 20), wait * 3 / 8);
	/* At most half of R, at the ends of the ranges too. */
	KUNIT_EXPECT_EQ(test, pp_law_stop(PP_PACKET, 40 * PP_PACKET, delay,
					  3 * delay, slow), delay / 2);
	KUNIT_EXPECT_EQ(test, pp_law_stop(0, U32_MAX, 1, PP_RTT_MAX_US,
					  PP_SERVICE_MAX), 0);
	KUNIT_EXPECT_EQ(test, pp_law_stop(0, U32_MAX, PP_RTT_MAX_US / 2,
					  PP_RTT_MAX_US, PP_SERVICE_MAX),
			PP_RTT_MAX_US / 4);
}

/* What a connection sees, ACK by ACK, with trains of @wanted segments. */
struct pp_ack_row {
	u32	stamp_us;
	u32	now_ns;
	u32	acked;
	u64	sample_ns;
};

static void pp_train_rows(struct kunit *test, const struct pp_ack_row *rows,
			  size_t count, u32 wanted)
{
	struct pp_train train = {};
	size_t i;

	for (i = 0; i < count; i++)
		KUNIT_EXPECT_EQ_MSG(test, pp_train_ack(&train, rows[i].stamp_us,
						       rows[i].now_ns,
						       rows[i].acked, wanted),
				    rows[i].sample_ns << PP_SERVICE_SHIFT,
				    "ACK %zu", i);
}

static void pp_train_test(struct kunit *test)
{
	static const struct pp_ack_row pairs[] = {
		{ 1, 1000, 1, 0 }, { 1, 2200, 1, 1200 },
		/* The low word of the time turns over. */
		{ 2, U32_MAX - 99, 1, 0 }, { 2, 1100, 1, 1200 },
		/* Delayed ACKs: one for a pair. */
		{ 3, 5000, 2, 0 }, { 4, 7400, 2, 0 }, { 5, 9800, 2, 0 },
	};
	static const struct pp_ack_row losses[] = {
		/* The first half is lost: the second alone is no sample. */
		{ 1, 1000, 1, 0 }, { 2, 3400, 1, 0 }, { 2, 4600, 1, 1200 },
		/* The second half is lost, and sent again by itself. */
		{ 3, 5800, 1, 0 }, { 9, 90000, 1, 0 }, { 4, 91000, 1, 0 },
		{ 4, 92200, 1, 1200 },
		/* An ACK is lost: the next stands for two, of two pairs. */
		{ 5, 93400, 1, 0 }, { 6, 95800, 2, 0 }, { 6, 97000, 1, 1200 },
		/* A hole is filled: many were counted before. */
		{ 7, 98200, 1, 0 }, { 6, 98300, 1, 0 }, { 7, 99400, 1, 0 },
	};
	static const struct pp_ack_row trains[] = {
		{ 1, 1000, 1, 0 }, { 1, 2000, 1, 0 }, { 1, 3000, 1, 0 },
		{ 1, 4600, 1, 1200 },
		/* An ACK of two counts for two. */
		{ 2, 9000, 1, 0 }, { 2, 11000, 2, 0 }, { 2, 12000, 1, 1000 },
		/* A short train is a sample when the next begins. */
		{ 3, 20000, 1, 0 }, { 3, 21000, 1, 0 }, { 4, 30000, 1, 1000 },
		/* One of one segment is none. */
		{ 5, 31000, 1, 0 },
	};
	static const struct pp_ack_row burst[] = {
		/* Ten that nothing paced: nine samples. */
		{ 1, 1000, 1, 0 }, { 1, 2000, 1, 1000 }, { 1, 3500, 1, 1500 },
		{ 1, 5500, 2, 1000 },
	};
	static const struct pp_ack_row pushes[] = {
		/* Two packets, 10 us apart, ACKed 1.2 ms apart: a pair. */
		{ 10, 1000000, 1, 0 }, { 20, 2200000, 1, 1200000 },
		/* The next ones are no more of it: two of the initial window. */
		{ 30, 3400000, 1, 0 }, { 40, 4600000, 1, 1200000 },
		/* As far apart as a 15th, and out of order. */
		{ 1000, 9000000, 1, 0 }, { 1080, 10200000, 1, 0 },
		{ 1070, 11400000, 1, 0 },
		/* The low word of the time of sending turns over. */
		{ U32_MAX, 20000000, 1, 0 }, { 9, 21200000, 1, 1200000 },
	};
	struct pp_train train = {};

	pp_train_rows(test, pushes, ARRAY_SIZE(pushes), 2);
	pp_train_rows(test, pairs, ARRAY_SIZE(pairs), 2);
	pp_train_rows(test, losses, ARRAY_SIZE(losses), 2);
	pp_train_rows(test, trains, ARRAY_SIZE(trains), 4);
	pp_train_rows(test, burst, ARRAY_SIZE(burst), 2);

	/* A retransmission in between: what follows is a new train. */
	pp_train_ack(&train, 1, 1000, 1, 2);
	pp_train_break(&train);
	KUNIT_EXPECT_EQ(test, pp_train_gap(&train, 2000, 1), 0ULL);
	KUNIT_EXPECT_EQ(test, pp_train_ack(&train, 1, 2000, 1, 2), 0ULL);
	KUNIT_EXPECT_EQ(test, pp_train_gap(&train, 4400, 2),
			1200ULL << PP_SERVICE_SHIFT);
	KUNIT_EXPECT_EQ(test, pp_train_ack(&train, 1, 3200, 1, 2),
			1200ULL << PP_SERVICE_SHIFT);
}

/* Trains of two every 2 ms, whose ACKs come as slots of so many us let them. */
static u32 pp_bunch_slots(struct pp_train *train, u32 slot_us, u32 trains)
{
	u32 i, stamp_us, first_ns, second_ns;

	for (i = 0; i < trains; i++) {
		stamp_us = 2000 * i;
		first_ns = roundup(stamp_us + 1, slot_us) * NSEC_PER_USEC;
		second_ns = roundup(stamp_us + 1001, slot_us) * NSEC_PER_USEC;
		/* The last link parts what leaves together. */
		first_ns += 500 * (2 * i);
		second_ns += 500 * (2 * i + 1);
		pp_train_bunch(train, stamp_us, first_ns, 1, 2);
		pp_train_ack(train, stamp_us, first_ns, 1, 2);
		pp_train_bunch(train, stamp_us, second_ns, 1, 2);
		pp_train_ack(train, stamp_us, second_ns, 1, 2);
	}
	return train->bunches;
}

static void pp_bunch_test(struct kunit *test)
{
	struct pp_train train = {};
	int i;

	/* Each ACK at its time, and slots of a segment's time. */
	KUNIT_EXPECT_EQ(test, pp_bunch_slots(&train, 1, 100), 0U);
	train = (struct pp_train){};
	KUNIT_EXPECT_EQ(test, pp_bunch_slots(&train, 1000, 100), 0U);
	/* A queue that drains 40 times faster than it was filled: once. */
	train = (struct pp_train){};
	for (i = 0; i < 100; i++) {
		pp_train_bunch(&train, 2000 * i, 50000 * i, 1, 2);
		pp_train_ack(&train, 2000 * i, 50000 * i, 1, 2);
	}
	KUNIT_EXPECT_EQ(test, (u32)train.bunches, 1U);
	KUNIT_EXPECT_FALSE(test, train.bunched);
	/* Slots of three trains. */
	train = (struct pp_train){};
	KUNIT_EXPECT_EQ(test, pp_bunch_slots(&train, 6000, 9), 3U);
	KUNIT_EXPECT_FALSE(test, train.bunched);
	train = (struct pp_train){};
	KUNIT_EXPECT_EQ(test, pp_bunch_slots(&train, 6000, 100), 7U);
	KUNIT_EXPECT_TRUE(test, train.bunched);
	/* It ends after seven round trips without any. */
	for (i = 0; i < 7; i++) {
		pp_train_bunch_round(&train);
		KUNIT_EXPECT_TRUE(test, train.bunched);
	}
	pp_train_bunch_round(&train);
	KUNIT_EXPECT_FALSE(test, train.bunched);
	/* ACKs at the same time, and one for more than two trains. */
	train = (struct pp_train){};
	pp_train_ack(&train, 1, 1000, 1, 2);
	KUNIT_EXPECT_FALSE(test, pp_train_bunch(&train, 1, 1000, 1, 2));
	KUNIT_EXPECT_EQ(test, (u32)train.bunches, 1U);
	KUNIT_EXPECT_FALSE(test, pp_train_bunch(&train, 9, 9000, 5, 2));
	KUNIT_EXPECT_EQ(test, (u32)train.bunches, 2U);
	KUNIT_EXPECT_FALSE(test, pp_train_bunch(&train, 900, 900000, 4, 2));
	KUNIT_EXPECT_EQ(test, (u32)train.bunches, 2U);
	/* Sent before the one that came before: out of order. */
	pp_train_ack(&train, 2000, 2000000, 1, 2);
	pp_train_bunch(&train, 1000, 2001000, 1, 2);
	KUNIT_EXPECT_EQ(test, (u32)train.bunches, 3U);
	KUNIT_EXPECT_TRUE(test, pp_train_bunch(&train, 2000, 2000000, 1, 2));
}

/*
 * Two trains of @wanted segments at once, again and again: what pp_train_gro() told
 * (@believed) and the last sample, ns in Q10, or 0. A queue serves a segment in
 * @service_ns, and the receiver holds each back for @held_ns but the last of a train.
 */
static u64 pp_gro_trains(struct pp_train *train, u32 count, u32 wanted,
			 u32 service_ns, u32 held_ns, u64 *believed)
{
	u32 now_ns = train->last_ns + 10 * service_ns, ack_ns, i, segment;
	u64 sample = 0;

	*believed = 0;
	for (i = 0; i < count; i++) {
		u32 stamp_us = train->stamp_us + 100;

		for (segment = 1; segment <= 2 * wanted; segment++) {
			now_ns += service_ns;
			ack_ns = now_ns + (segment % wanted ? held_ns : 0);
			*believed += pp_train_gro(train, stamp_us, ack_ns, 1, wanted);
			sample = pp_train_ack(train, stamp_us, ack_ns, 1, wanted) ?:
				 sample;
		}
	}
	return sample;
}

static void pp_gro_believed(struct kunit *test, u32 wanted)
{
	u64 service = 1200000ULL << PP_SERVICE_SHIFT, believed;
	/* The low word of the time turns over in the third train. */
	struct pp_train train = { .extra = 1, .last_ns = U32_MAX - 40000000 };

	/* Nobody holds anything back. */
	KUNIT_EXPECT_EQ(test, pp_gro_trains(&train, 99, wanted, 1200000, 0,
					    &believed), service);
	KUNIT_EXPECT_EQ(test, believed, 0ULL);
	/* Too short to matter. */
	pp_gro_trains(&train, 99, wanted, 1200000, 1200000 / 17, &believed);
	KUNIT_EXPECT_EQ(test, believed, 0ULL);
	/* A quarter: believed after 15 trains. A pair has told less until then. */
	KUNIT_EXPECT_EQ(test, pp_gro_trains(&train, 14, wanted, 1200000, 300000,
					    &believed),
			div_u64((1200000ULL * (wanted - 1) - 300000) <<
				PP_SERVICE_SHIFT, wanted - 1));
	KUNIT_EXPECT_EQ(test, believed, 0ULL);
	pp_gro_trains(&train, 1, wanted, 1200000, 300000, &believed);
	KUNIT_EXPECT_EQ(test, believed, service);
	KUNIT_EXPECT_TRUE(test, train.gro);
	KUNIT_EXPECT_EQ(test, pp_gro_trains(&train, 99, wanted, 1200000, 1100000,
					    &believed), service);
	/* It is over after four. */
	pp_gro_trains(&train, 3, wanted, 1200000, 0, &believed);
	KUNIT_EXPECT_TRUE(test, train.gro);
	pp_gro_trains(&train, 1, wanted, 1200000, 0, &believed);
	KUNIT_EXPECT_FALSE(test, train.gro);
}

/*
 * A FIFO in which so many of 256 gaps have a packet of others: how often that looks
 * like GRO in 20000 turns of two pairs.
 */
static u32 pp_gro_fifo(u32 part)
{
	struct pp_train train = { .extra = 1 };
	u32 i, segment, now_ns = 0, numbers = 1, count = 0;

	for (i = 0; i < 20000; i++) {
		for (segment = 1; segment <= 4; segment++) {
			numbers = numbers * 1664525 + 1013904223;
			now_ns += numbers >> 24 < part ? 200000 : 100000;
			count += !!pp_train_gro(&train, i, now_ns, 1, 2);
			pp_train_ack(&train, i, now_ns, 1, 2);
		}
	}
	return count;
}

static void pp_gro_test(struct kunit *test)
{
	struct pp_train train = {};
	u32 part;

	pp_gro_believed(test, 2);
	pp_gro_believed(test, 3);
	pp_gro_believed(test, 64);
	for (part = 0; part <= 256; part += 32)
		KUNIT_EXPECT_EQ_MSG(test, pp_gro_fifo(part), 0U, "%u of 256", part);

	/* One train at once: nothing is compared, and each pair is a sample. */
	KUNIT_EXPECT_EQ(test, pp_train_ack(&train, 1, 1000000, 1, 2), 0ULL);
	KUNIT_EXPECT_EQ(test, pp_train_ack(&train, 1, 2200000, 1, 2),
			1200000ULL << PP_SERVICE_SHIFT);
	KUNIT_EXPECT_EQ(test, pp_train_gro(&train, 1, 3400000, 1, 2), 0ULL);
	KUNIT_EXPECT_EQ(test, (u32)train.gro_seen, 0U);

	/* An ACK is lost: of the first train that does not matter, of the second... */
	train = (struct pp_train){ .extra = 1, .gro = 1, .gro_seen = 15 };
	pp_train_ack(&train, 1, 1000000, 1, 2);
	KUNIT_EXPECT_EQ(test, pp_train_ack(&train, 1, 2200000, 1, 2), 0ULL);
	/* ... the sample is the same, and nothing is compared. */
	KUNIT_EXPECT_EQ(test, pp_train_gro(&train, 1, 4600000, 2, 2), 0ULL);
	KUNIT_EXPECT_EQ(test, pp_train_ack(&train, 1, 4600000, 2, 2),
			1200000ULL << PP_SERVICE_SHIFT);
	KUNIT_EXPECT_EQ(test, (u32)train.gro_seen, 15U);
}

static void pp_wait_test(struct kunit *test)
{
	u64 service = 1200000ULL << PP_SERVICE_SHIFT;

	KUNIT_EXPECT_EQ(test, pp_law_wait(52000, 40000, service), 10 * PP_PACKET);
	KUNIT_EXPECT_EQ(test, pp_law_wait(39000, 40000, service), 0U);
	KUNIT_EXPECT_EQ(test, pp_law_wait(PP_RTT_MAX_US, 0, PP_SERVICE_MIN),
			U32_MAX);
	/* 2^32 us over 2^32 ns, rounded down. */
	KUNIT_EXPECT_EQ(test, pp_law_wait(U32_MAX, 0, PP_SERVICE_MAX),
			1000 * PP_PACKET - 1);
	/* 5/2 of what arrives, and 3/2 or, with caution, 17/16. */
	KUNIT_EXPECT_EQ(test, pp_law_probe(service, false, 3),
			pp_invert(service) * 5 / 2);
	KUNIT_EXPECT_EQ(test, pp_law_probe(service, true, 0),
			pp_invert(service) * 3 / 2);
	KUNIT_EXPECT_EQ(test, pp_law_probe(service, true, 3),
			pp_invert(service) * 17 / 16);
	KUNIT_EXPECT_EQ(test, pp_law_probe(PP_SERVICE_MIN, false, 0), PP_RATE_MAX);
}

/* What the path holds, and the room for the queue: at least the setpoint and two trains. */
static void pp_room_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, pp_law_room(100 * PP_PACKET, 10 * PP_PACKET, 2, 30), 130U);
	KUNIT_EXPECT_EQ(test, pp_law_room(100 * PP_PACKET + 1, 10 * PP_PACKET, 2, 30), 131U);
	KUNIT_EXPECT_EQ(test, pp_law_room(100 * PP_PACKET, 10 * PP_PACKET, 2, 1), 114U);
	KUNIT_EXPECT_EQ(test, pp_law_room(0, 10 * PP_PACKET + 1, 2, 1), 15U);
	KUNIT_EXPECT_EQ(test, pp_law_room(0, 0, 2, 1), 4U);
	KUNIT_EXPECT_EQ(test, pp_law_room(0, 10 * PP_PACKET, 64, 1), 138U);
	KUNIT_EXPECT_EQ(test, pp_law_room(U32_MAX, 9999 * PP_PACKET, 2, 1048576),
			16777216U + 1048576U);
}

static struct kunit_case pp_cases[] = {
	KUNIT_CASE(pp_fuzzy_test),
	KUNIT_CASE(pp_estimator_test),
	KUNIT_CASE(pp_estimator_range_test),
	KUNIT_CASE(pp_law_test),
	KUNIT_CASE(pp_drain_short_test),
	KUNIT_CASE(pp_sudden_test),
	KUNIT_CASE(pp_rise_test),
	KUNIT_CASE(pp_stop_test),
	KUNIT_CASE(pp_train_test),
	KUNIT_CASE(pp_bunch_test),
	KUNIT_CASE(pp_gro_test),
	KUNIT_CASE(pp_wait_test),
	KUNIT_CASE(pp_room_test),
	{}
};

static struct kunit_suite pp_suite = {
	.name = "tollway_pp",
	.test_cases = pp_cases,
};

kunit_test_suite(pp_suite);

MODULE_DESCRIPTION("KUnit tests of the arithmetic of tcp_pp");
MODULE_LICENSE("GPL");
