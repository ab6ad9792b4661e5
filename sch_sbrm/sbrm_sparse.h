/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The order of the queue: first the packets of sparse flows, see sbrm_sparse.c
 */
#ifndef _SBRM_SPARSE_H
#define _SBRM_SPARSE_H

#include <linux/bits.h>
#include <linux/compiler.h>
#include <linux/jiffies.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/skbuff.h>
#include <linux/types.h>

/* 2^12 buckets of 8 bytes are 32 KB for each queue. */
#define SBRM_BUCKETS_LOG	12
#define SBRM_BUCKETS		BIT(SBRM_BUCKETS_LOG)

/* A full Ethernet frame, bytes. */
#define SBRM_SPARSE_FRAME	1514U

/* What a flow may send at once and still be sparse, bytes; see sbrm_sparse.c. */
#define SBRM_SPARSE_BURST	(30 * SBRM_SPARSE_FRAME)

/* What a bucket holds at most, bytes: it has 16 bits. */
#define SBRM_SPARSE_FULL	65535U

/*
 * The unit of time is 2^n jiffies, HZ / 8 rounded down to a power of two: 1/16 to 1/8 s.
 * It is 80, 64, 107 and 64 ms with HZ of 100, 250, 300 and 1000.
 */
#define SBRM_SPARSE_SHIFT	ilog2(HZ / 8)

/* Bytes that may overtake a waiting packet at once: 64 frames, 8 ms at 100 Mb/s. */
#define SBRM_SPARSE_CREDIT	(64 * SBRM_SPARSE_FRAME)

/* The last 16 frames of it are for flows whose bucket holds two at most: sbrm_sparse.c. */
#define SBRM_SPARSE_FEW		(2 * SBRM_SPARSE_FRAME)
#define SBRM_SPARSE_SPARE	(16 * SBRM_SPARSE_FRAME)

/**
 * struct sbrm_bucket - what the flows of one hash have sent
 * @last: number, as in @sbrm_sparse.joined, of their last packet that joined the
 *	second part
 * @used: bytes that they sent, less one frame for each unit of time; at most
 *	%SBRM_SPARSE_FULL
 * @time: when @used was that much, in units of time; wraps
 */
struct sbrm_bucket {
	u32	last;
	u16	used;
	u16	time;
};

/**
 * struct sbrm_sparse - the two parts of a queue
 * @buckets: %SBRM_BUCKETS of them
 * @last: last packet of the first part; NULL if that part is empty
 * @joined: packets that ever joined the second part; wraps
 * @left: those of them that have left it; wraps
 * @credit: bytes that may still overtake the second part, at most
 *	%SBRM_SPARSE_CREDIT
 * @bulk: number, as in @joined, of the last packet of a flow that was not sparse
 */
struct sbrm_sparse {
	struct sbrm_bucket	*buckets;
	struct sk_buff		*last;
	u32			joined;
	u32			left;
	u32			credit;
	u32			bulk;
};

int sbrm_sparse_init(struct sbrm_sparse *sparse);
void sbrm_sparse_reset(struct sbrm_sparse *sparse);
void sbrm_sparse_start(struct sbrm_sparse *sparse);
void sbrm_sparse_refill(struct sbrm_sparse *sparse, u32 len);
bool sbrm_sparse_overtake(struct sbrm_sparse *sparse, u32 len, u32 spare);

/**
 * sbrm_sparse_leave() - the head of the queue leaves it
 * @sparse: parts of the queue
 * @skb: packet
 * @len: its length, bytes
 */
static inline void sbrm_sparse_leave(struct sbrm_sparse *sparse,
				     const struct sk_buff *skb, u32 len)
{
	if (sparse->last) {
		if (skb == sparse->last)
			sparse->last = NULL;
		return;
	}

	sparse->left++;
	if (unlikely(sparse->credit < SBRM_SPARSE_CREDIT))
		sbrm_sparse_refill(sparse, len);
}

/**
 * sbrm_sparse_send() - a flow sends a packet
 * @sparse: parts of the queue
 * @flow: hash of the flow
 * @len: length of the packet, bytes
 * @now: jiffies
 *
 * A bucket that was not used for long may seem to have packets in the second part, when
 * 2^31 packets have left that since, or to have been used a moment ago, after 2^16
 * units of time (70 minutes and more). Its flow then counts as one that is not sparse
 * for one packet, or for a second.
 *
 * Return: true if the packet is to join the first part; if false, the caller lets
 * it join the second one before it calls any of these functions again.
 */
static inline bool sbrm_sparse_send(struct sbrm_sparse *sparse, u32 flow, u32 len,
				    unsigned long now)
{
	struct sbrm_bucket *bucket = sparse->buckets +
				     (flow >> (32 - SBRM_BUCKETS_LOG));
	u16 time = now >> SBRM_SPARSE_SHIFT;
	u32 used = bucket->used;

	if (unlikely(time != bucket->time)) {
		/* At most 2^16 * 1514. */
		used -= min(used, (u16)(time - bucket->time) * SBRM_SPARSE_FRAME);
		bucket->time = time;
	}
	used += min(len, SBRM_SPARSE_FULL);
	bucket->used = min(used, SBRM_SPARSE_FULL);

	if (used <= SBRM_SPARSE_BURST &&
	    (s32)(sparse->left - bucket->last) >= 0 &&
	    sbrm_sparse_overtake(sparse, len, used <= SBRM_SPARSE_FEW ?
				 0 : SBRM_SPARSE_SPARE))
		return true;

	bucket->last = sparse->joined + 1;
	if (used > SBRM_SPARSE_BURST)
		sparse->bulk = sparse->joined + 1;
	return false;
}

#endif /* _SBRM_SPARSE_H */
