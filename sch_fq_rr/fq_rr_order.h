/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Two orders of queues: by a count that changes by one (lists), and by any
 * key (a heap). Queues are numbered from 1; 0 stands for none.
 */
#ifndef _FQ_RR_ORDER_H
#define _FQ_RR_ORDER_H

#include <linux/compiler.h>
#include <linux/types.h>

struct fq_rr_link {
	u32	next;
	u32	prev;
};

/**
 * struct fq_rr_lengths - queues by their length in packets
 * @first: the queue that came to a length last; all others of it are linked
 *	behind
 * @link: neighbours of each queue
 * @longest: largest length with a queue, 0 if all are empty
 *
 * A queue gets longer or shorter by one packet: it goes from one list to the
 * next, and the largest length is found at most one below. Only when a whole
 * queue goes the next one is searched for, past as many lengths as packets
 * went. So all of it is O(1) for each packet. 4 bytes for each packet of the
 * limit and 8 for each queue.
 */
struct fq_rr_lengths {
	u32			*first;
	struct fq_rr_link	*link;
	u32			longest;
};

int fq_rr_lengths_init(struct fq_rr_lengths *lengths, u32 flows, u32 limit);
void fq_rr_lengths_free(struct fq_rr_lengths *lengths);

/**
 * fq_rr_lengths_move() - a queue has another length
 * @lengths: where
 * @flow: which queue
 * @from: its length until now
 * @to: its length from now on: one more, one less, or 0
 */
static inline void fq_rr_lengths_move(struct fq_rr_lengths *lengths, u32 flow,
				      u32 from, u32 to)
{
	struct fq_rr_link *link = lengths->link;
	u32 next = link[flow].next;
	u32 prev = link[flow].prev;

	if (from) {
		if (prev)
			link[prev].next = next;
		else
			lengths->first[from] = next;
		if (next)
			link[next].prev = prev;
	}

	if (to) {
		next = lengths->first[to];
		link[flow].next = next;
		link[flow].prev = 0;
		if (next)
			link[next].prev = flow;
		lengths->first[to] = flow;
	}

	if (to > lengths->longest) {
		WRITE_ONCE(lengths->longest, to);
	} else if (from == lengths->longest) {
		while (from > to && !lengths->first[from])
			from--;
		WRITE_ONCE(lengths->longest, from);
	}
}

static inline u32 fq_rr_lengths_top(const struct fq_rr_lengths *lengths)
{
	return lengths->first[lengths->longest];
}

/* The top, and the four that begin at a multiple of four below each node. */
#define FQ_RR_HEAP_TOP	3

struct fq_rr_node {
	u64	key;
	u32	flow;
};

/**
 * struct fq_rr_heap - queues by a key, the largest on top
 * @node: a tree of four branches at each node: those of one share a cache line
 * @where: place of each queue in @node, or 0 if it is not there
 * @end: place behind the last one in @node
 *
 * Keys may wrap: they are compared by their difference, which must fit 63
 * bits. O(log n) for each change, and less for a small one.
 */
struct fq_rr_heap {
	struct fq_rr_node	*node;
	u32			*where;
	u32			end;
};

int fq_rr_heap_init(struct fq_rr_heap *heap, u32 flows);
void fq_rr_heap_free(struct fq_rr_heap *heap);
void fq_rr_heap_set(struct fq_rr_heap *heap, u32 flow, u64 key);
void fq_rr_heap_remove(struct fq_rr_heap *heap, u32 flow);

static inline bool fq_rr_heap_has(const struct fq_rr_heap *heap, u32 flow)
{
	return heap->end > FQ_RR_HEAP_TOP && heap->where[flow];
}

static inline u32 fq_rr_heap_top(const struct fq_rr_heap *heap)
{
	return heap->end > FQ_RR_HEAP_TOP ?
	       heap->node[FQ_RR_HEAP_TOP].flow : 0;
}

#endif /* _FQ_RR_ORDER_H */
