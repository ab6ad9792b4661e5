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
 * come and go. For the same reason the first users of accounts begin with something
 * between -1 and 0, as after a mark that came at any time. If all began with 0, a
 * flow would have its first mark after (1.6 / m)^0.5 packets in the mean: with m of
 * 1 % that is 13, where even marks ask for 50. But it is too far back: by
 * 0.1 marks with m of 1 %, 0.3 with 10 % and 0.5 with 60 % (simulated), which a flow
 * that is new has less than it should.
 *
 * Where more than four flows of one set are active they take each other's accounts
 * away. Their marks come as independent draws then. Each such change of hands is
 * counted as a collision. Of 500 flows, one set in 6000 has a fifth.
 */

#include <linux/jiffies.h>
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
 * sbrm_account_find() - account of a flow that is not the first of its set
 * @set: %SBRM_WAYS accounts
 * @flow: number of the flow
 * @now: jiffies
 * @collisions: counts flows that take an account which another still needs
 *
 * It becomes the first; those before it, or all, move on by one place.
 *
 * Return: what the flow is owed.
 */
s32 *sbrm_account_find(struct sbrm_account *set, u16 flow, unsigned long now,
		       u32 *collisions)
{
	struct sbrm_account found = set[0];
	u16 time = now >> SBRM_LEFT_SHIFT;
	u32 way = 1;

	found.left = time;
	do {
		swap(set[way], found);
	} while (found.flow != flow && ++way < SBRM_WAYS);

	if (found.flow != flow) {
		if (found.flow && (u16)(time - found.left) < SBRM_LEFT_LATELY)
			WRITE_ONCE(*collisions, *collisions + 1);
		found.flow = flow;
	}
	set[0] = found;
	return &set->owed;
}
