// SPDX-License-Identifier: GPL-2.0
/* Accounts of marks in sch_sbrm: flows of one hash, of one set, and too many. */

#include <kunit/test.h>
#include <linux/module.h>

#include "sch_sbrm/sbrm_accounts.c"

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

/* First users begin anywhere between -1 and 0. */
static void accounts_first_test(struct kunit *test)
{
	struct sbrm_account *accounts = new_accounts(test);
	s64 sum = 0, most = S32_MIN, least = S32_MAX;
	u32 i;

	for (i = 0; i < SBRM_SETS * SBRM_WAYS; i++) {
		s64 owed = accounts[i].owed;

		sum += owed;
		most = max(most, owed);
		least = min(least, owed);
	}
	KUNIT_EXPECT_LE(test, most, 0LL);
	KUNIT_EXPECT_GT(test, most, -(1LL << SBRM_OWED_SHIFT) / 100);
	KUNIT_EXPECT_GT(test, least, -(1LL << SBRM_OWED_SHIFT));
	KUNIT_EXPECT_LT(test, least, -(99LL << SBRM_OWED_SHIFT) / 100);
	/* A half in the mean; that of 4096 is within 0.018, four deviations. */
	sum = div_s64(sum, SBRM_SETS * SBRM_WAYS);
	KUNIT_EXPECT_LT(test, abs(sum + (1LL << (SBRM_OWED_SHIFT - 1))),
			(18LL << SBRM_OWED_SHIFT) / 1000);
	kvfree(accounts);
}

/* As many flows of one set as it has accounts do not meet, in any order. */
static void accounts_set_test(struct kunit *test)
{
	static const u16 flows[SBRM_WAYS] = { 0, 7, 8, U16_MAX };
	struct sbrm_account *accounts = new_accounts(test);
	u32 paid[SBRM_WAYS] = {}, collisions = 0, turn, i;
	u64 random = 1;

	for (i = 0; i < SBRM_WAYS; i++)
		*sbrm_account(accounts, hash_of(5, flows[i]), 0,
			      &collisions) = 0;
	for (turn = 0; turn < 1000; turn++) {
		i = tollway_random_u32(&random) % SBRM_WAYS;
		(*sbrm_account(accounts, hash_of(5, flows[i]), 0,
			       &collisions))++;
		paid[i]++;
		/* The same in another set is another flow. */
		*sbrm_account(accounts, hash_of(6, flows[i]), 0,
			      &collisions) = 0;
	}
	for (i = 0; i < SBRM_WAYS; i++)
		KUNIT_EXPECT_EQ(test, (u32)*sbrm_account(accounts,
							 hash_of(5, flows[i]),
							 0, &collisions),
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
		*sbrm_account(accounts, hash_of(9, i), now, &collisions) =
			100 * i;
	/* The first one comes again: then the second is the oldest. */
	sbrm_account(accounts, hash_of(9, 1), now, &collisions);

	now += 2 * HZ;
	KUNIT_EXPECT_EQ(test, *sbrm_account(accounts, hash_of(9, 50), now,
					    &collisions), 200);
	KUNIT_EXPECT_EQ(test, *sbrm_account(accounts, hash_of(9, 1), now,
					    &collisions), 100);
	KUNIT_EXPECT_EQ(test, collisions, 0);
	/* Three more, and the one after them finds an account in use. */
	for (i = 60; i < 64; i++)
		sbrm_account(accounts, hash_of(9, i), now, &collisions);
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
	for (way = 0; way < SBRM_WAYS; way++)
		sum -= set[way].owed;
	for (turn = 0; turn < 1000; turn++)
		(*sbrm_account(accounts, hash_of(SBRM_SETS - 1, 10 + turn % 9),
			       turn * HZ / 100, &collisions))++;
	for (way = 0; way < SBRM_WAYS; way++)
		sum += set[way].owed;
	KUNIT_EXPECT_EQ(test, sum, 1000LL);
	/* Four found theirs unused. */
	KUNIT_EXPECT_EQ(test, collisions, 1000 - SBRM_WAYS);
	kvfree(accounts);
}

static struct kunit_case accounts_cases[] = {
	KUNIT_CASE(accounts_first_test),
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
