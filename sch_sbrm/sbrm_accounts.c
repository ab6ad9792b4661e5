// SPDX-License-Identifier: GPL-2.0
/*
 * Accounts of marks: 4096 accounts of 8 bytes, 32 KB for each queue
 *
 * 10 bits of a hash select a set of four accounts, and 16 more bits distinguish the
 * flows of this set. So two flows share one account if these 26 bits are equal. With
 * 1000 flows (500 000 pairs), this happens in one queue of 130. The marks of two flows
 * that share an account are distributed among them at random. Their rates are 5 to 7 %
 * smaller than those of others, because random marks cost more than even ones.
 *
 * The accounts of a set are ordered by their last use, so that most packets find theirs
 * at once. A flow without an account takes the last one, with the marks that are owed to
 * its former user: so no mark is lost or added, however many flows come and go. The
 * first user of an account begins like a flow that has paid m for a long time, see
 * sbrm_account_first().
 *
 * If more than four flows of one set are active, they take each other's accounts. Their
 * marks are then like independent draws. Each time is counted as a collision. With 500
 * flows, one set in 6000 has a fifth flow.
 */

#include <linux/bits.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "sbrm_accounts.h"
#include "tollway_random.h"

/*
 * Times are in units of 2^n jiffies, between 1/16 and 1/8 s: 2^n is HZ / 8 rounded down to
 * a power of two. 16 bits of them wrap.
 */
#define SBRM_LEFT_SHIFT		ilog2(HZ / 8)

/* A flow that was the first of its set in the last 16 units, 1 to 2 s, needs its account. */
#define SBRM_LEFT_LATELY	16

/**
 * sbrm_accounts_alloc() - allocate the accounts of a queue
 * @random: seed of the first values of the accounts; it is not the generator of the
 *	queue, whose random numbers must not depend on the number of accounts
 *
 * Return: %SBRM_SETS unused sets, for kvfree(); or NULL.
 */
struct sbrm_account *sbrm_accounts_alloc(u64 random)
{
	struct sbrm_account *accounts;
	u32 i;

	accounts = kvcalloc(SBRM_SETS * SBRM_WAYS, sizeof(*accounts),
			    GFP_KERNEL);
	if (!accounts)
		return NULL;

	for (i = 0; i < SBRM_SETS * SBRM_WAYS; i++)
		accounts[i].owed = -(s32)(tollway_random_u32(&random) >>
					  (32 - SBRM_OWED_SHIFT));
	return accounts;
}

/**
 * sbrm_account_first() - first value of an account
 * @random: between -1 and 0, in 2^-29
 * @prob: m, Q32, not 0
 *
 * After m of the first packet is added, the value is uniformly distributed between h - 1
 * and h. The probability of a mark is this value, limited to 0 .. 1. Its mean must be m:
 * h^2 / 2 = m for h up to 1, and 1/2 + k - k^2 / 2 = m with k = h - 1 above. So h is
 * sqrt(2 m), or 2 - sqrt(2 (1 - m)). Then the first packet of a flow is marked as often
 * as any other, and over any sequence of packets the mean number of marks differs from
 * the sum of m by at most 0.04 (simulated, m of 0.1 to 95 %). If all flows began with 0,
 * the first mark would come after (1.6 / m)^0.5 packets in the mean: 13 with m of 1 %,
 * instead of the 50 of even marks. If h were 0, flows would get 0.1 marks less with m of
 * 1 %, 0.3 less with 10 % and 0.5 less with 60 %.
 *
 * Return: the marks that are owed before this packet, in 2^-29: between -1 and 1.
 */
static s32 sbrm_account_first(s32 random, u32 prob)
{
	/* h in 2^-29 is the root of 2 m in 2^-58: 2 * prob * 2^(58 - 32) < 2^60. */
	u32 two = 2U << SBRM_OWED_SHIFT, h;

	if (prob <= BIT(31))
		h = int_sqrt64((u64)prob << (2 * SBRM_OWED_SHIFT - 31));
	else
		h = two - int_sqrt64((BIT_ULL(32) - prob) <<
				     (2 * SBRM_OWED_SHIFT - 31));
	return random + (s32)h - (s32)(prob >> (32 - SBRM_OWED_SHIFT));
}

/**
 * sbrm_account_find() - account of a flow that is not the first of its set
 * @set: %SBRM_WAYS accounts
 * @flow: number of the flow, not 0
 * @prob: m of the packet, Q32, not 0
 * @now: jiffies
 * @collisions: counts flows that take an account which another flow still needs
 *
 * The account becomes the first of the set; those before it move back by one place.
 *
 * Return: pointer to the marks that the flow is owed.
 */
s32 *sbrm_account_find(struct sbrm_account *set, u16 flow, u32 prob,
		       unsigned long now, u32 *collisions)
{
	struct sbrm_account found = set[0];
	u16 time = now >> SBRM_LEFT_SHIFT;
	u32 way = 1;

	found.left = time;
	do {
		swap(set[way], found);
	} while (found.flow != flow && ++way < SBRM_WAYS);

	if (!found.flow)
		found.owed = sbrm_account_first(found.owed, prob);
	else if (found.flow != flow &&
		 (u16)(time - found.left) < SBRM_LEFT_LATELY)
		WRITE_ONCE(*collisions, *collisions + 1);
	found.flow = flow;
	set[0] = found;
	return &set->owed;
}
