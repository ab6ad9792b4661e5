/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Two ordered sets of queues: by a number that changes by one (lists), and by
 * any key (a heap). Queues are numbered from 1; 0 means no queue.
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
 * @first: for each length, the queue that reached it last; the other queues of
 *	this length are linked behind it
 * @link: neighbours of each queue
 * @longest: largest length with a queue, 0 if all are empty
 *
 * If a queue gets one packet more or less, it moves to the list of the next
 * length, and the largest length changes by at most one. Only if all packets of
 * the longest queue are dropped, the next length with a queue is searched for;
 * the search passes at most as many lengths as packets were dropped. So the cost
 * is O(1) for each packet. The memory is 4 bytes for each packet of the limit
 * and 8 for each queue.
 */
struct fq_rr_lengths {
	u32			*first;
	struct fq_rr_link	*link;
	u32			longest;
};

int fq_rr_lengths_init(struct fq_rr_lengths *lengths, u32 flows, u32 limit);
void fq_rr_lengths_free(struct fq_rr_lengths *lengths);

/* Take a queue out of the list of its length; true if the list is empty now. */
static inline bool fq_rr_lengths_unlink(struct fq_rr_lengths *lengths,
					u32 flow, u32 length)
{
	struct fq_rr_link *link = lengths->link;
	u32 next = link[flow].next;
	u32 prev = link[flow].prev;

	if (prev)
		link[prev].next = next;
	else
		lengths->first[length] = next;
	if (next)
		link[next].prev = prev;
	return !(next | prev);
}

static inline void fq_rr_lengths_link(struct fq_rr_lengths *lengths, u32 flow,
				      u32 length)
{
	struct fq_rr_link *link = lengths->link;
	u32 next = lengths->first[length];

	link[flow].next = next;
	link[flow].prev = 0;
	if (next)
		link[next].prev = flow;
	lengths->first[length] = flow;
}

/**
 * fq_rr_lengths_up() - a queue got one packet
 * @lengths: where
 * @flow: which queue
 * @to: its new length, not 0
 */
static inline void fq_rr_lengths_up(struct fq_rr_lengths *lengths, u32 flow,
				    u32 to)
{
	if (to > 1)
		fq_rr_lengths_unlink(lengths, flow, to - 1);
	fq_rr_lengths_link(lengths, flow, to);
	if (to > lengths->longest)
		WRITE_ONCE(lengths->longest, to);
}

/**
 * fq_rr_lengths_down() - a queue has one packet less
 * @lengths: where
 * @flow: which queue
 * @from: its length before, not 0
 */
static inline void fq_rr_lengths_down(struct fq_rr_lengths *lengths, u32 flow,
				      u32 from)
{
	bool last = fq_rr_lengths_unlink(lengths, flow, from);

	if (from > 1)
		fq_rr_lengths_link(lengths, flow, from - 1);
	/* The queue itself is in the list of the next length now. */
	if (last && from == lengths->longest)
		WRITE_ONCE(lengths->longest, from - 1);
}

/**
 * fq_rr_lengths_remove() - a queue lost all its packets
 * @lengths: where
 * @flow: which queue
 * @from: its length before, not 0
 */
static inline void fq_rr_lengths_remove(struct fq_rr_lengths *lengths, u32 flow,
					u32 from)
{
	fq_rr_lengths_unlink(lengths, flow, from);
	if (from == lengths->longest) {
		while (from && !lengths->first[from])
			from--;
		WRITE_ONCE(lengths->longest, from);
	}
}

static inline u32 fq_rr_lengths_top(const struct fq_rr_lengths *lengths)
{
	return lengths->first[lengths->longest];
}

/* Place of the top; the children of each node begin at a multiple of four. */
#define FQ_RR_HEAP_TOP	3

struct fq_rr_node {
	u64	key;
	u32	flow;
};

/**
 * struct fq_rr_heap - queues by a key, the largest on top
 * @node: a tree; each node has four children, which share a cache line
 * @where: place of each queue in @node, or 0 if it is not in the heap
 * @end: the place behind the last node
 *
 * Keys may wrap: they are compared by their difference, which must fit into 63
 * bits. A change of a key costs O(log n), and less if the key changes little.
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
