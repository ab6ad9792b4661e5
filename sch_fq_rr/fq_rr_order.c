// SPDX-License-Identifier: GPL-2.0
/* Which queue is the longest, and which one is due next. */

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
 * fq_rr_lengths_move() - a queue has another length
 * @lengths: where
 * @flow: which queue
 * @from: its length until now
 * @to: its length from now on: one more, one less, or 0
 */
void fq_rr_lengths_move(struct fq_rr_lengths *lengths, u32 flow, u32 from,
			u32 to)
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

/**
 * fq_rr_heap_init() - make room, with no queue in the heap
 * @heap: what to fill
 * @flows: number of queues
 *
 * Return: 0 or -ENOMEM; in any case fq_rr_heap_free() may follow.
 */
int fq_rr_heap_init(struct fq_rr_heap *heap, u32 flows)
{
	heap->node = kvcalloc(flows, sizeof(*heap->node), GFP_KERNEL);
	heap->where = kvcalloc(flows + 1, sizeof(*heap->where), GFP_KERNEL);
	heap->count = 0;
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
	heap->where[node.flow] = at + 1;
}

/* Put @node where it belongs, starting from the hole at @at. */
static void fq_rr_heap_sift(struct fq_rr_heap *heap, u32 at,
			    struct fq_rr_node node)
{
	u32 next;

	while (at) {
		next = (at - 1) / 2;
		if (!fq_rr_key_above(node.key, heap->node[next].key))
			break;
		fq_rr_heap_put(heap, at, heap->node[next]);
		at = next;
	}

	while ((next = 2 * at + 1) < heap->count) {
		if (next + 1 < heap->count &&
		    fq_rr_key_above(heap->node[next + 1].key,
				    heap->node[next].key))
			next++;
		if (!fq_rr_key_above(heap->node[next].key, node.key))
			break;
		fq_rr_heap_put(heap, at, heap->node[next]);
		at = next;
	}

	fq_rr_heap_put(heap, at, node);
}

/**
 * fq_rr_heap_set() - a queue has another key, or its first one
 * @heap: where
 * @flow: which queue
 * @key: its key
 */
void fq_rr_heap_set(struct fq_rr_heap *heap, u32 flow, u64 key)
{
	struct fq_rr_node node = { .key = key, .flow = flow };
	u32 where = heap->where[flow];

	fq_rr_heap_sift(heap, where ? where - 1 : heap->count++, node);
}

/**
 * fq_rr_heap_remove() - a queue leaves the heap
 * @heap: where
 * @flow: which queue; must be in there
 */
void fq_rr_heap_remove(struct fq_rr_heap *heap, u32 flow)
{
	u32 at = heap->where[flow] - 1;

	heap->where[flow] = 0;
	heap->count--;
	if (at < heap->count)
		fq_rr_heap_sift(heap, at, heap->node[heap->count]);
}
