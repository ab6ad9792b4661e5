// SPDX-License-Identifier: GPL-2.0
/* The two parts of a queue of sch_sbrm: who joins the first one, and for how long. */

#include <kunit/test.h>
#include <linux/module.h>

#include "sch_sbrm/sbrm_sparse.c"

#define FRAME	SBRM_SPARSE_FRAME
#define BURST	(SBRM_SPARSE_BURST / FRAME)
#define CREDIT	(SBRM_SPARSE_CREDIT / FRAME)

/* Hash of flow number n: each has a bucket of its own. */
static u32 hash_of(u32 n)
{
	return n << (32 - SBRM_BUCKETS_LOG);
}

static void sparse_make(struct kunit *test, struct sbrm_sparse *sparse)
{
	memset(sparse, 0, sizeof(*sparse));
	KUNIT_ASSERT_EQ(test, sbrm_sparse_init(sparse), 0);
}

/* A flow sends a packet, which joins the part that it has to. */
static bool sends(struct sbrm_sparse *sparse, u32 n, u32 len, unsigned long now)
{
	bool first = sbrm_sparse_send(sparse, hash_of(n), len, now);

	sparse->joined += !first;
	return first;
}

/* A packet of the second part leaves. */
static void leaves(struct sbrm_sparse *sparse, u32 len)
{
	sbrm_sparse_leave(sparse, NULL, len);
}

/* 30 frames are sparse; then the bucket has to leak first, to the last byte. */
static void sparse_burst_test(struct kunit *test)
{
	unsigned long unit = 1UL << SBRM_SPARSE_SHIFT, now = 5 * unit;
	struct sbrm_sparse sparse;
	u32 i;

	sparse_make(test, &sparse);
	for (i = 0; i < BURST; i++)
		KUNIT_EXPECT_TRUE(test, sends(&sparse, 1, FRAME, now));
	KUNIT_EXPECT_FALSE(test, sends(&sparse, 1, 1, now));
	/* Another flow is none of this. */
	KUNIT_EXPECT_TRUE(test, sends(&sparse, 2, FRAME, now));

	leaves(&sparse, 1);
	/* The last unit of time has not passed. */
	KUNIT_EXPECT_FALSE(test, sends(&sparse, 1, 1, now + unit - 1));
	leaves(&sparse, 1);
	KUNIT_EXPECT_TRUE(test, sends(&sparse, 1, FRAME - 2, now + unit));
	KUNIT_EXPECT_FALSE(test, sends(&sparse, 1, 1, now + unit));
	leaves(&sparse, 1);

	/*
	 * However much it sends, it is sparse again after 14 units, when 44339 bytes
	 * are left of 65535, and has all 30 frames again after 44.
	 */
	for (i = 0; i < 1000; i++)
		KUNIT_EXPECT_FALSE(test, sends(&sparse, 1, U32_MAX, now));
	sbrm_sparse_reset(&sparse);
	KUNIT_EXPECT_FALSE(test, sends(&sparse, 1, 0, now + 13 * unit));
	sbrm_sparse_reset(&sparse);
	KUNIT_EXPECT_TRUE(test, sends(&sparse, 1, 0, now + 14 * unit));
	now += 44 * unit;
	for (i = 0; i < BURST; i++)
		KUNIT_EXPECT_TRUE(test, sends(&sparse, 1, FRAME, now));
	KUNIT_EXPECT_FALSE(test, sends(&sparse, 1, 1, now));
	kvfree(sparse.buckets);
}

/* A call is sparse for ever: 50 packets of 234 bytes a second, for each HZ. */
static void sparse_call_test(struct kunit *test)
{
	struct sbrm_sparse sparse;
	u32 i;

	sparse_make(test, &sparse);
	/* Something waits all the time, and leaves at four times this rate. */
	for (i = 0; i < 100; i++)
		sends(&sparse, 3, FRAME, 0);
	for (i = 0; i < 5000; i++) {
		unsigned long now = i * HZ / 50;

		KUNIT_EXPECT_TRUE(test, sends(&sparse, 1, 234, now));
		leaves(&sparse, 4 * 234);
		sends(&sparse, 3, 4 * 234, now);
	}
	kvfree(sparse.buckets);
}

/* No packet overtakes one of its own flow, also when the numbers wrap. */
static void sparse_order_test(struct kunit *test)
{
	unsigned long now = 0, hour = 3600UL * HZ;
	struct sbrm_sparse sparse;
	u32 i;

	sparse_make(test, &sparse);
	sparse.joined = U32_MAX - 2;
	sparse.left = U32_MAX - 2;
	sbrm_sparse_start(&sparse);
	while (sends(&sparse, 1, FRAME, now))
		;
	for (i = 0; i < 9; i++)
		KUNIT_EXPECT_FALSE(test, sends(&sparse, 3, SBRM_SPARSE_BURST + 1, now));

	/* Its bucket is empty after an hour, and its packet still waits. */
	now += hour;
	KUNIT_EXPECT_FALSE(test, sends(&sparse, 1, 1, now));
	for (i = 0; i < 10; i++) {
		KUNIT_EXPECT_FALSE(test, sends(&sparse, 1, 1, now));
		leaves(&sparse, FRAME);
	}
	/* Ten more wait that are its own, and then none. */
	for (i = 0; i < 11; i++)
		leaves(&sparse, FRAME);
	KUNIT_EXPECT_EQ(test, sparse.left, sparse.joined);
	KUNIT_EXPECT_TRUE(test, sends(&sparse, 1, 1, now));

	/* After a start nobody overtakes what waits. */
	KUNIT_EXPECT_FALSE(test, sends(&sparse, 3, SBRM_SPARSE_BURST + 1, now));
	KUNIT_EXPECT_TRUE(test, sends(&sparse, 4, 1, now));
	sbrm_sparse_start(&sparse);
	KUNIT_EXPECT_FALSE(test, sends(&sparse, 4, 1, now));
	KUNIT_EXPECT_FALSE(test, sends(&sparse, 5, 1, now));
	leaves(&sparse, 1);
	leaves(&sparse, 1);
	leaves(&sparse, 1);
	KUNIT_EXPECT_TRUE(test, sends(&sparse, 4, 1, now));
	kvfree(sparse.buckets);
}

/* Flows of one packet each: 64 frames overtake, then as much as leaves behind them. */
static void sparse_credit_test(struct kunit *test)
{
	struct sbrm_sparse sparse;
	u32 i, n = 10, passed = 0, left = 0;

	sparse_make(test, &sparse);
	/* While nobody waits, nothing is counted. */
	for (i = 0; i < 2 * CREDIT; i++)
		KUNIT_EXPECT_TRUE(test, sends(&sparse, n++, FRAME, 0));
	for (i = 0; i < 2000; i++)
		sends(&sparse, 3, SBRM_SPARSE_BURST + 1, 0);
	for (i = 0; i < CREDIT; i++)
		KUNIT_EXPECT_TRUE(test, sends(&sparse, n++, FRAME, 0));
	KUNIT_EXPECT_FALSE(test, sends(&sparse, n++, FRAME, 0));
	KUNIT_EXPECT_FALSE(test, sends(&sparse, n++, 1, 0));

	for (i = 0; i < 1000; i++) {
		leaves(&sparse, FRAME);
		left++;
		passed += sends(&sparse, n++, FRAME, 0);
		passed += sends(&sparse, n++, FRAME, 0);
	}
	KUNIT_EXPECT_EQ(test, passed, left);
	/* It is saved up to where it began, also by a packet of any size. */
	for (i = 0; i < 500; i++)
		leaves(&sparse, FRAME);
	KUNIT_EXPECT_EQ(test, sparse.credit, SBRM_SPARSE_CREDIT);
	KUNIT_EXPECT_TRUE(test, sends(&sparse, n++, FRAME, 0));
	leaves(&sparse, U32_MAX);
	KUNIT_EXPECT_EQ(test, sparse.credit, SBRM_SPARSE_CREDIT);

	/* It is not given back when nobody waits any more: someone will again. */
	KUNIT_EXPECT_TRUE(test, sends(&sparse, n++, FRAME, 0));
	KUNIT_EXPECT_TRUE(test, sends(&sparse, n++, FRAME, 0));
	while (sparse.left != sparse.joined)
		sparse.left++;
	KUNIT_EXPECT_FALSE(test, sends(&sparse, 3, SBRM_SPARSE_BURST + 1, 0));
	leaves(&sparse, FRAME);
	KUNIT_EXPECT_EQ(test, sparse.credit, SBRM_SPARSE_CREDIT - FRAME);
	kvfree(sparse.buckets);
}

/* Pages leave 16 frames of the credit to flows that have sent two frames at most. */
static void sparse_spare_test(struct kunit *test)
{
	u32 spare = SBRM_SPARSE_SPARE / FRAME, n = 10, i, passed = 0;
	struct sbrm_sparse sparse;

	sparse_make(test, &sparse);
	sends(&sparse, 3, SBRM_SPARSE_BURST + 1, 0);
	for (n = 10; n < 15; n++)
		for (i = 0; i < BURST; i++)
			passed += sends(&sparse, n, FRAME, 0);
	/* The last three pages had two frames each of them. */
	KUNIT_EXPECT_EQ(test, passed, CREDIT - spare + 3 * 2);
	KUNIT_EXPECT_TRUE(test, sends(&sparse, 1, 234, 0));
	kvfree(sparse.buckets);
}

/* Where all that wait are of sparse flows, packets leave as they came. */
static void sparse_all_test(struct kunit *test)
{
	struct sbrm_sparse sparse;
	u32 n = 10;

	sparse_make(test, &sparse);
	KUNIT_EXPECT_FALSE(test, sends(&sparse, 3, SBRM_SPARSE_BURST + 1, 0));
	while (sends(&sparse, n++, FRAME, 0))
		;
	KUNIT_EXPECT_FALSE(test, sends(&sparse, n++, FRAME, 0));
	/* One that is not sparse has left, and the credit is back: two others wait. */
	leaves(&sparse, SBRM_SPARSE_CREDIT);
	KUNIT_EXPECT_EQ(test, sparse.credit, SBRM_SPARSE_CREDIT);
	KUNIT_EXPECT_FALSE(test, sends(&sparse, n++, 1, 0));
	leaves(&sparse, FRAME);
	leaves(&sparse, FRAME);
	KUNIT_EXPECT_FALSE(test, sends(&sparse, n++, 1, 0));
	KUNIT_EXPECT_EQ(test, sparse.credit, SBRM_SPARSE_CREDIT);
	/* They may overtake one that is not sparse, wherever in the queue it is. */
	KUNIT_EXPECT_FALSE(test, sends(&sparse, 3, FRAME, 0));
	KUNIT_EXPECT_TRUE(test, sends(&sparse, n++, 1, 0));
	leaves(&sparse, 1);
	leaves(&sparse, 1);
	KUNIT_EXPECT_TRUE(test, sends(&sparse, n++, 1, 0));
	leaves(&sparse, FRAME);
	KUNIT_EXPECT_EQ(test, sparse.left, sparse.joined);
	KUNIT_EXPECT_TRUE(test, sends(&sparse, n++, 1, 0));
	kvfree(sparse.buckets);
}

/* What is reset has no first part: its packets are freed. */
static void sparse_reset_test(struct kunit *test)
{
	struct sbrm_sparse sparse;
	struct sk_buff skb;

	sparse_make(test, &sparse);
	sends(&sparse, 3, SBRM_SPARSE_BURST + 1, 0);
	KUNIT_EXPECT_TRUE(test, sends(&sparse, 1, FRAME, 0));
	sparse.last = &skb;
	sbrm_sparse_reset(&sparse);
	KUNIT_EXPECT_TRUE(test, !sparse.last);
	KUNIT_EXPECT_EQ(test, sparse.left, sparse.joined);
	KUNIT_EXPECT_EQ(test, sparse.credit, SBRM_SPARSE_CREDIT);
	kvfree(sparse.buckets);
}

static struct kunit_case sparse_cases[] = {
	KUNIT_CASE(sparse_burst_test),
	KUNIT_CASE(sparse_call_test),
	KUNIT_CASE(sparse_order_test),
	KUNIT_CASE(sparse_credit_test),
	KUNIT_CASE(sparse_spare_test),
	KUNIT_CASE(sparse_all_test),
	KUNIT_CASE(sparse_reset_test),
	{}
};

static struct kunit_suite sparse_suite = {
	.name = "tollway_sparse",
	.test_cases = sparse_cases,
};

kunit_test_suite(sparse_suite);

MODULE_DESCRIPTION("KUnit tests of the order of the queue");
MODULE_LICENSE("GPL");
