/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Accounts of marks: the marks that each flow is owed, see sbrm_draw() and
 * sbrm_accounts.c
 */
#ifndef _SBRM_ACCOUNTS_H
#define _SBRM_ACCOUNTS_H

#include <linux/bits.h>
#include <linux/compiler.h>
#include <linux/types.h>

/* 2^10 sets; the hash of a flow selects the only set that can have its account. */
#define SBRM_SETS_LOG		10
#define SBRM_SETS		BIT(SBRM_SETS_LOG)

/* Accounts of a set: 4 times 8 bytes, half a cache line. */
#define SBRM_WAYS		4

/* The 16 bits of a hash after those of the set distinguish the flows of the set. */
#define SBRM_FLOW_BITS		16

/* Owed marks are in 2^-29: values of -1 to 2 fit into an s32, see sbrm_draw(). */
#define SBRM_OWED_SHIFT		29

/**
 * struct sbrm_account - marks that one flow is owed
 * @flow: the flow, %SBRM_FLOW_BITS of the hash, not 0; 0 while the account is unused
 * @left: time when it was the first of its set for the last time, see
 *	sbrm_account_find()
 * @owed: marks, in 2^-29: between -1 and 2
 */
struct sbrm_account {
	u16	flow;
	u16	left;
	s32	owed;
};

struct sbrm_account *sbrm_accounts_alloc(u64 random);
s32 *sbrm_account_find(struct sbrm_account *set, u16 flow, u32 prob,
		       unsigned long now, u32 *collisions);

/**
 * sbrm_account() - find the account of a flow
 * @accounts: %SBRM_SETS sets
 * @hash: of the flow
 * @prob: m of the packet, Q32, not 0
 * @now: jiffies
 * @collisions: counts flows that take an account which another flow still needs
 *
 * Return: its account.
 */
static inline s32 *sbrm_account(struct sbrm_account *accounts, u32 hash,
				u32 prob, unsigned long now, u32 *collisions)
{
	struct sbrm_account *set = accounts +
				   (hash >> (32 - SBRM_SETS_LOG)) * SBRM_WAYS;
	u16 flow = hash >> (32 - SBRM_SETS_LOG - SBRM_FLOW_BITS);

	/* 0 means unused, so a flow 0 becomes flow 1. */
	flow += !flow;
	/* The account that was used last is the first one. */
	if (likely(set->flow == flow))
		return &set->owed;
	return sbrm_account_find(set, flow, prob, now, collisions);
}

#endif /* _SBRM_ACCOUNTS_H */
