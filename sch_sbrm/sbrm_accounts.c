// SPDX-License-Identifier: GPL-2.0
/*
 * Accounts of marks: 4096, which take 32 KB for each queue
 *
 * A hash leads to a set of four accounts, and 16 more bits of it tell the flows
 * of this set apart. So two flows have one account where 26 bits are equal: of
 * 1000 flows in one queue of 130. Two with one account share the marks of both at
 * random, and have 5 to 7 % less than others then, as marks at random cost more
 * than even ones.
 *
 * The accounts of a set stand in the order of their last use, so that most packets
 * find theirs at once. A flow that has none takes the last one, and begins with
 * what its former user was owed: so no mark is lost or made, however many flows
 * come and go. The first user of an account begins as one that has paid m for long:
 * see sbrm_account_first().
 *
 * Where more than four flows of one set are active they take each other's accounts
 * away. Their marks come as independent draws then. Each such change of hands is
 * counted as a collision. Of 500 flows, one set in 6000 has a fifth.
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

/* Times are in 2^n jiffies, a 16th of a second or somewhat more: 16 bits wrap. */
#define SBRM_LEFT_SHIFT		ilog2(HZ / 8)

/* A flow that was the first one up to this time ago still needs its account: 1 s. */
#define SBRM_LEFT_LATELY	16

/**
 * sbrm_accounts_alloc() - make the accounts of a queue
 * @random: seed of what the first users begin with; not the generator of the
 *	queue, whose draws shall not depend on how many accounts there are
 *
 * Return: %SBRM_SETS sets that nobody has used yet, for kvfree(); or NULL.
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
 * sbrm_account_first() - what the first user of an account begins with
 * @random: between -1 and 0, in 2^-29
 * @prob: m, Q32, not 0
 *
 * With the packet's m it is something between h - 1 and h, all values alike. Its
 * mark has the probability of what is owed, limited to 0 .. 1, and that has to be m
 * in the mean: h^2 / 2 = m up to h = 1, and 1/2 + k - k^2 / 2 = m with k = h - 1
 * beyond. So h is sqrt(2 m), or 2 - sqrt(2 (1 - m)). The first packet of a flow is
 * marked as often as any other then, and over any stretch its marks differ from the
 * sum of m by 0.04 at most in the mean (simulated, m of 0.1 to 95 %). If all began
 * with 0 the first mark would come after (1.6 / m)^0.5 packets in the mean: with m
 * of 1 % that is 13, where even marks ask for 50. If h were 0, flows would be spared
 * 0.1 marks with m of 1 %, 0.3 with 10 % and 0.5 with 60 %.
 *
 * Return: what is owed before this packet, in 2^-29: between -1 and 1.
 */
static s32 sbrm_account_first(s32 random, u32 prob)
{
	/* In 2^-29: the root of 2 * prob * 2^(58 - 32). Less than 2^60 in all. */
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
 * @collisions: counts flows that take an account which another still needs
 *
 * It becomes the first; those before it, or all, move on by one place.
 *
 * Return: what the flow is owed.
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
