// SPDX-License-Identifier: GPL-2.0
/* Accounts of marks in sch_sbrm: flows of one hash, of one set, and too many. */

#include <kunit/test.h>
#include <linux/math64.h>
#include <linux/module.h>

#include "sch_sbrm/sbrm_accounts.c"

/* A probability m. */
#define HALF	BIT(31)

/* Hash of a flow. */
static u32 hash_of(u32 set, u16 flow)
{
	return set << (32 - SBRM_SETS_LOG) |
	       (u32)flow << (32 - SBRM_SETS_LOG - SBRM_FLOW_BITS);
}

static struct sbrm_account *new_accounts(struct kunit *test)
{
	struct sbrm_account *accounts = sbrm_accounts_alloc(1);

	KUNIT_ASSERT_NOT_NULL(test, accounts);
	return accounts;
}

/* A packet of m, and whether it is marked: the rule of sbrm_draw(). */
static bool pays(struct sbrm_account *accounts, u32 hash, u32 prob, u64 *random)
{
	u32 collisions = 0;
	s32 *owed = sbrm_account(accounts, hash, prob, 0, &collisions);

	*owed += prob >> (32 - SBRM_OWED_SHIFT);
	if (*owed <= (s32)(tollway_random_u32(random) >>
			   (32 - SBRM_OWED_SHIFT)))
		return false;

	*owed -= 1 << SBRM_OWED_SHIFT;
	return true;
}

/*
 * Marks of the first packets of new flows: the sum of m, from the first packet on.
 * Of 4096 flows the mean is within 0.035 marks, four deviations, and the rule
 * itself is within 0.04.
 */
static void accounts_first_test(struct kunit *test)
{
	static const u32 per_mille[] = { 1, 10, 100, 300, 500, 501, 600, 950, 1000 };
	u64 random = 1;
	u32 i, packet, set, way;

	for (i = 0; i < ARRAY_SIZE(per_mille); i++) {
		u32 prob = min_t(u64, U32_MAX, mul_u64_u32_div(BIT_ULL(32),
							       per_mille[i],
							       1000));
		struct sbrm_account *accounts = new_accounts(test);
		u32 marks = 0;

		for (packet = 1; packet <= 50; packet++) {
			s64 late;

			for (set = 0; set < SBRM_SETS; set++)
				for (way = 1; way <= SBRM_WAYS; way++)
					marks += pays(accounts,
						      hash_of(set, way), prob,
						      &random);
			/* In thousandths of a mark, times the flows. */
			late = 1000LL * marks - (s64)packet * per_mille[i] *
			       SBRM_SETS * SBRM_WAYS;
			KUNIT_EXPECT_LT(test, abs(late),
					75LL * SBRM_SETS * SBRM_WAYS);
			if (packet == 1)
				KUNIT_EXPECT_LT(test, abs(late),
						35LL * SBRM_SETS * SBRM_WAYS);
		}
		kvfree(accounts);
	}
}

/* What flows are owed stays within what a word and sbrm_draw() take. */
static void accounts_range_test(struct kunit *test)
{
	static const u32 probs[] = { 1, BIT(31), BIT(31) + 1, U32_MAX };
	static const s32 randoms[] = { 0, 1 - (s32)BIT(SBRM_OWED_SHIFT) };
	u32 i, j;

	for (i = 0; i < ARRAY_SIZE(probs); i++) {
		for (j = 0; j < ARRAY_SIZE(randoms); j++) {
			s32 owed = sbrm_account_first(randoms[j], probs[i]);

			KUNIT_EXPECT_GE(test, owed, -(s32)BIT(SBRM_OWED_SHIFT));
			KUNIT_EXPECT_LE(test, owed, (s32)BIT(SBRM_OWED_SHIFT));
		}
	}
}

/* As many flows of one set as it has accounts do not meet, in any order. */
static void accounts_set_test(struct kunit *test)
{
	static const u16 flows[SBRM_WAYS] = { 0, 7, 8, U16_MAX };
	struct sbrm_account *accounts = new_accounts(test);
	u32 paid[SBRM_WAYS] = {}, collisions = 0, turn, i;
	u64 random = 1;

	for (i = 0; i < SBRM_WAYS; i++)
		*sbrm_account(accounts, hash_of(5, flows[i]), HALF, 0,
			      &collisions) = 0;
	for (turn = 0; turn < 1000; turn++) {
		i = tollway_random_u32(&random) % SBRM_WAYS;
		(*sbrm_account(accounts, hash_of(5, flows[i]), HALF, 0,
			       &collisions))++;
		paid[i]++;
		/* The same in another set is another flow. */
		*sbrm_account(accounts, hash_of(6, flows[i]), HALF, 0,
			      &collisions) = 0;
	}
	for (i = 0; i < SBRM_WAYS; i++)
		KUNIT_EXPECT_EQ(test, (u32)*sbrm_account(accounts,
							 hash_of(5, flows[i]),
							 HALF, 0, &collisions),
				paid[i]);
	KUNIT_EXPECT_EQ(test, collisions, 0);
	kvfree(accounts);
}

/* One more takes the account of the one that was away longest, as it is. */
static void accounts_oldest_test(struct kunit *test)
{
	struct sbrm_account *accounts = new_accounts(test);
	unsigned long now = 0;
	u32 collisions = 0, i;

	for (i = 1; i <= SBRM_WAYS; i++)
		*sbrm_account(accounts, hash_of(9, i), HALF, now, &collisions) =
			100 * i;
	/* The first one comes again: then the second is the oldest. */
	sbrm_account(accounts, hash_of(9, 1), HALF, now, &collisions);

	now += 2 * HZ;
	KUNIT_EXPECT_EQ(test, *sbrm_account(accounts, hash_of(9, 50), HALF, now,
					    &collisions), 200);
	KUNIT_EXPECT_EQ(test, *sbrm_account(accounts, hash_of(9, 1), HALF, now,
					    &collisions), 100);
	KUNIT_EXPECT_EQ(test, collisions, 0);
	/* Three more, and the one after them finds an account in use. */
	for (i = 60; i < 64; i++)
		sbrm_account(accounts, hash_of(9, i), HALF, now, &collisions);
	KUNIT_EXPECT_EQ(test, collisions, 2);
	kvfree(accounts);
}

/* Too many at once: each change of hands is counted, and nothing is lost. */
static void accounts_crowd_test(struct kunit *test)
{
	struct sbrm_account *accounts = new_accounts(test), *set;
	u32 collisions = 0, turn, way;
	s64 sum = 0;

	set = &accounts[(SBRM_SETS - 1) * SBRM_WAYS];
	/* Nobody is the first user of one of them later. */
	for (way = 0; way < SBRM_WAYS; way++)
		sbrm_account(accounts, hash_of(SBRM_SETS - 1, 10 + way), HALF, 0,
			     &collisions);
	for (way = 0; way < SBRM_WAYS; way++)
		sum -= set[way].owed;
	for (turn = 0; turn < 1000; turn++)
		(*sbrm_account(accounts, hash_of(SBRM_SETS - 1, 10 + turn % 9),
			       HALF, turn * HZ / 100, &collisions))++;
	for (way = 0; way < SBRM_WAYS; way++)
		sum += set[way].owed;
	KUNIT_EXPECT_EQ(test, sum, 1000LL);
	/* Four found theirs unused. */
	KUNIT_EXPECT_EQ(test, collisions, 1000 - SBRM_WAYS);
	kvfree(accounts);
}

static struct kunit_case accounts_cases[] = {
	KUNIT_CASE(accounts_first_test),
	KUNIT_CASE(accounts_range_test),
	KUNIT_CASE(accounts_set_test),
	KUNIT_CASE(accounts_oldest_test),
	KUNIT_CASE(accounts_crowd_test),
	{}
};

static struct kunit_suite accounts_suite = {
	.name = "tollway_accounts",
	.test_cases = accounts_cases,
};

kunit_test_suite(accounts_suite);

MODULE_DESCRIPTION("KUnit tests of the accounts of marks");
MODULE_LICENSE("GPL");
