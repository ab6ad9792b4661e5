// SPDX-License-Identifier: GPL-2.0
/* The queue that is the longest, and the queue with the smallest finish time. */

#include <linux/errno.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "fq_rr_order.h"

/**
 * fq_rr_lengths_init() - make room, with all queues empty
 * @lengths: what to fill
 * @flows: number of queues
 * @limit: packets in the longest possible queue
 *
 * Return: 0 or -ENOMEM; in any case fq_rr_lengths_free() may follow.
 */
int fq_rr_lengths_init(struct fq_rr_lengths *lengths, u32 flows, u32 limit)
{
	lengths->first = kvcalloc(limit + 1, sizeof(*lengths->first),
				  GFP_KERNEL);
	lengths->link = kvcalloc(flows + 1, sizeof(*lengths->link), GFP_KERNEL);
	lengths->longest = 0;
	return lengths->first && lengths->link ? 0 : -ENOMEM;
}

void fq_rr_lengths_free(struct fq_rr_lengths *lengths)
{
	kvfree(lengths->first);
	kvfree(lengths->link);
}

/**
 * fq_rr_heap_init() - make room, with no queue in the heap
 * @heap: what to fill
 * @flows: number of queues
 *
 * Return: 0 or -ENOMEM; in any case fq_rr_heap_free() may follow.
 */
int fq_rr_heap_init(struct fq_rr_heap *heap, u32 flows)
{
	heap->node = kvcalloc(FQ_RR_HEAP_TOP + flows, sizeof(*heap->node),
			      GFP_KERNEL);
	heap->where = kvcalloc(flows + 1, sizeof(*heap->where), GFP_KERNEL);
	heap->end = FQ_RR_HEAP_TOP;
	return heap->node && heap->where ? 0 : -ENOMEM;
}

void fq_rr_heap_free(struct fq_rr_heap *heap)
{
	kvfree(heap->node);
	kvfree(heap->where);
}

static bool fq_rr_key_above(u64 a, u64 b)
{
	return (s64)(a - b) > 0;
}

static void fq_rr_heap_put(struct fq_rr_heap *heap, u32 at,
			   struct fq_rr_node node)
{
	heap->node[at] = node;
	heap->where[node.flow] = at;
}

/* The node with the largest key of the up to four nodes from @first on. */
static u32 fq_rr_heap_largest(const struct fq_rr_heap *heap, u32 first)
{
	u32 end = min(first + 4, heap->end), largest = first;

	while (++first < end)
		if (fq_rr_key_above(heap->node[first].key,
				    heap->node[largest].key))
			largest = first;
	return largest;
}

/*
 * Put @node into its place. The free place at @at moves up or down until the keys
 * are in order.
 *
 * The top is at place 3. The children of place p are the four places from 4 (p - 2) on:
 * 4 to 7 for place 3, 8 to 11 for place 4. So the parent of place c is c / 4 + 2. With
 * the top at 3, the four children begin at a multiple of four. A node has 16 bytes, so
 * they are one cache line.
 */
static void fq_rr_heap_sift(struct fq_rr_heap *heap, u32 at,
			    struct fq_rr_node node)
{
	u32 next;

	while (at > FQ_RR_HEAP_TOP) {
		next = at / 4 + FQ_RR_HEAP_TOP - 1;
		if (!fq_rr_key_above(node.key, heap->node[next].key))
			break;
		fq_rr_heap_put(heap, at, heap->node[next]);
		at = next;
	}

	while ((next = 4 * (at - FQ_RR_HEAP_TOP + 1)) < heap->end) {
		next = fq_rr_heap_largest(heap, next);
		if (!fq_rr_key_above(heap->node[next].key, node.key))
			break;
		fq_rr_heap_put(heap, at, heap->node[next]);
		at = next;
	}

	fq_rr_heap_put(heap, at, node);
}

/**
 * fq_rr_heap_set() - set the key of a queue, which is added if it is not in the heap
 * @heap: the heap
 * @flow: which queue
 * @key: its key
 */
void fq_rr_heap_set(struct fq_rr_heap *heap, u32 flow, u64 key)
{
	struct fq_rr_node node = { .key = key, .flow = flow };
	u32 at = heap->where[flow];

	fq_rr_heap_sift(heap, at ?: heap->end++, node);
}

/**
 * fq_rr_heap_remove() - remove a queue from the heap
 * @heap: the heap
 * @flow: the queue, which must be in the heap
 */
void fq_rr_heap_remove(struct fq_rr_heap *heap, u32 flow)
{
	u32 at = heap->where[flow];

	heap->where[flow] = 0;
	heap->end--;
	if (at < heap->end)
		fq_rr_heap_sift(heap, at, heap->node[heap->end]);
	else if (heap->end == FQ_RR_HEAP_TOP)
		/* A dump reads the key of the top, and nothing else. */
		WRITE_ONCE(heap->node[at].key, 0);
}
