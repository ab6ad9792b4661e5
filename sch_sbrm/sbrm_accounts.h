/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Accounts of marks: what each flow is owed, see sbrm_draw() and sbrm_accounts.c
 */
#ifndef _SBRM_ACCOUNTS_H
#define _SBRM_ACCOUNTS_H

#include <linux/bits.h>
#include <linux/compiler.h>
#include <linux/types.h>

/* A flow has its account in the set that its hash says, and in no other. */
#define SBRM_SETS_LOG		10
#define SBRM_SETS		BIT(SBRM_SETS_LOG)

/* Accounts of a set: 32 bytes, half a line of the cache. */
#define SBRM_WAYS		4

/* The bits of a hash after those of the set tell its flows apart. */
#define SBRM_FLOW_BITS		16

/* Marks that are owed are in 2^-29, see sbrm_draw(). */
#define SBRM_OWED_SHIFT		29

/**
 * struct sbrm_account - what one flow is owed
 * @flow: whose it is, %SBRM_FLOW_BITS of the hash, not 0; 0 while nobody had it
 * @left: when it last was the first of its set, see sbrm_account_find()
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
 * sbrm_account() - what a flow is owed
 * @accounts: %SBRM_SETS sets
 * @hash: of the flow
 * @prob: m of the packet, Q32, not 0
 * @now: jiffies
 * @collisions: counts flows that take an account which another still needs
 *
 * Return: its account.
 */
static inline s32 *sbrm_account(struct sbrm_account *accounts, u32 hash,
				u32 prob, unsigned long now, u32 *collisions)
{
	struct sbrm_account *set = accounts +
				   (hash >> (32 - SBRM_SETS_LOG)) * SBRM_WAYS;
	u16 flow = hash >> (32 - SBRM_SETS_LOG - SBRM_FLOW_BITS);

	/* 0 and 1 are one flow, as 0 is nobody's. */
	flow += !flow;
	/* The one that was used last is the first. */
	if (likely(set->flow == flow))
		return &set->owed;
	return sbrm_account_find(set, flow, prob, now, collisions);
}

#endif /* _SBRM_ACCOUNTS_H */
