/* SPDX-License-Identifier: GPL-2.0 */
/* The private data of the qdisc fq_rr, and functions that its files share. */
#ifndef _FQ_RR_H
#define _FQ_RR_H

#include <linux/compiler.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/types.h>
#include <net/sch_generic.h>

#include "fq_rr_order.h"
#include "pkt_fq_rr.h"

/*
 * Number of runs: packets of up to so many different values of length / weight
 * are ordered in O(1). Each packet looks at all runs, so with more runs each
 * packet costs more. With fewer, more packets go to the heap: with 10 000 flows
 * a packet took 650 cycles there, and 260 in a run.
 */
#define FQ_RR_RUNS		8

/**
 * struct fq_rr_params - what the user set
 * @limit: packets
 * @memory_limit: bytes of truesize
 * @flows: number of queues
 * @service: an &enum fq_rr_service
 * @overflow: an &enum fq_rr_overflow
 * @longest: an &enum fq_rr_longest
 * @quantum: bytes
 * @classify: an &enum fq_rr_classify
 * @weigh: an &enum fq_rr_weigh
 * @perturb: s
 * @reserve: packets that a queue owns, or 0
 * @flags: %FQ_RR_F_ bits
 * @weights_count: how many of @weights there are
 * @weights: of priorities or marks 0, 1, and so on
 */
struct fq_rr_params {
	u32	limit;
	u32	memory_limit;
	u32	flows;
	u32	service;
	u32	overflow;
	u32	longest;
	u32	quantum;
	u32	classify;
	u32	weigh;
	u32	perturb;
	u32	reserve;
	u32	flags;
	u32	weights_count;
	u16	weights[FQ_RR_WEIGHTS_MAX];
};

/**
 * struct fq_rr_flow - one queue
 * @head: first packet, linked by next and, but for the first one, by prev
 * @tail: last packet; like @head, means nothing while @qlen is 0
 * @round: entry in the list of the round (rr, drr) or of a run (wfq)
 * @finish: virtual finish time of @head, in 2^-16 bytes (wfq)
 * @turn: number of the turn that @credit is for (rr, drr)
 * @credit: packets (rr) or bytes (drr) that it may still send before its turn
 *	ends; below 0 a debt, which its next turns pay
 * @qlen: packets
 * @len: bytes
 * @memory: bytes of truesize
 * @tag: of the flow whose packet opened the queue: its owner
 * @weight: in force, 1 to %FQ_RR_WEIGHT_MAX
 * @class_weight: as set for the class, or 0
 * @sent_bytes: bytes that left
 * @sent: packets that left
 * @collisions: packets with another tag than @tag
 * @drops: packets dropped
 * @qlen_max: the largest @qlen that fell again, see fq_rr_shrinks()
 * @guests: packets in the queue with another tag than @tag
 * @own: packets of the buffer that it owns while it has any: the reservation,
 *	or 0
 *
 * The fields that every packet needs are in the first 64 bytes, except for the
 * sums.
 */
struct fq_rr_flow {
	struct sk_buff		*head;
	struct sk_buff		*tail;
	struct list_head	round;
	union {
		u64		finish;
		u64		turn;
	};
	s32			credit;
	u32			qlen;
	u32			len;
	u32			memory;
	u32			tag;
	u16			weight;
	u16			class_weight;
	u64			sent_bytes;
	u64			sent;
	u64			collisions;
	u32			drops;
	u32			qlen_max;
	u32			guests;
	u32			own;
} ____cacheline_aligned;

/**
 * struct fq_rr_tables - everything whose size depends on flows and limit
 * @flow: the queues; the first one is 1, as the first class is
 * @tags: copy of the tag of each queue, so that those of a set are in one or two
 *	cache lines
 * @lengths: queues with packets, ordered by their number of packets (option
 *	longest packets); with a reservation, queues that hold more than they
 *	own, ordered by the number of packets beyond that
 * @by_len: queues with packets, ordered by bytes (option longest bytes)
 * @by_finish: queues whose first packet fits no run, ordered by -@finish (wfq)
 */
struct fq_rr_tables {
	struct fq_rr_flow	*flow;
	u32			*tags;
	struct fq_rr_lengths	lengths;
	struct fq_rr_heap	by_len;
	struct fq_rr_heap	by_finish;
};

/**
 * struct fq_rr_key - key of the hash
 * @factor: random
 * @offset: random
 *
 * For 1 / n of all keys, two tags have the same of n queues as their home
 * (multiply and shift, a universal family: Dietzfelbinger, 1996). So a new key
 * separates them.
 */
struct fq_rr_key {
	u64	factor;
	u64	offset;
};

/**
 * struct fq_rr_sched_data - private data of one qdisc
 * @params: what the user set
 * @t: tables for these
 * @round: queues with packets in the order of their turns (rr and drr)
 * @runs: queues with packets in the order of their finish times (wfq)
 * @vtime: virtual time, in 2^-16 bytes (wfq)
 * @turn: number of the turn that is being served, or was last (rr, drr)
 * @quantum: bytes of a turn in drr
 * @packets: packets in the queues; unlike qlen, this does not include a packet
 *	that a parent peeked at
 * @memory: bytes of truesize in the queues
 * @key: of the hash
 * @filter_list: filters of the user
 * @block: their block
 * @perturb: timer that changes @key
 * @lock: of whoever takes all packets off the queues. It is taken within the root
 *	lock, which the reset of a qdisc that is destroyed does not have
 * @sch: for @perturb
 * @stats: counters as dumped
 */
struct fq_rr_sched_data {
	struct fq_rr_params	params;
	struct fq_rr_tables	t;
	struct list_head	round;
	struct list_head	runs[FQ_RR_RUNS];
	u64			vtime;
	u64			turn;
	u32			quantum;
	u32			packets;
	u32			memory;
	struct fq_rr_key	key;
	struct tcf_proto __rcu	*filter_list;
	struct tcf_block	*block;
	struct timer_list	perturb;
	spinlock_t		lock;	/* of whoever empties the queues */
	struct Qdisc		*sch;
	struct tc_fq_rr_qd_stats stats;
};

/**
 * struct fq_rr_cb - private data of a queued packet
 * @tag: distinguishes its flow from others in the same queue
 * @class: queue that the user assigned, or 0
 * @memory: truesize as it was counted, bytes
 */
struct fq_rr_cb {
	u32	tag;
	u32	class;
	u32	memory;
};

static inline struct fq_rr_cb *fq_rr_cb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct fq_rr_cb));
	return (struct fq_rr_cb *)qdisc_skb_cb(skb)->data;
}

/* Add to a counter that a dump may read at the same time. */
static inline void fq_rr_add(u32 *counter, u32 n)
{
	WRITE_ONCE(*counter, *counter + n);
}

static inline void fq_rr_count(u64 *counter, u64 n)
{
	WRITE_ONCE(*counter, *counter + n);
}

/* fq_rr_classify.c: the queue of a packet */
u32 fq_rr_classify(struct sk_buff *skb, struct Qdisc *sch, int *err);
u32 fq_rr_classify_again(struct fq_rr_sched_data *q, struct sk_buff *skb);

/* fq_rr.c: packets */
int fq_rr_enqueue(struct sk_buff *skb, struct Qdisc *sch,
		  struct sk_buff **to_free);
struct sk_buff *fq_rr_dequeue(struct Qdisc *sch);
void fq_rr_reset(struct Qdisc *sch);
struct sk_buff *fq_rr_take(struct fq_rr_sched_data *q, struct fq_rr_flow **from);
struct sk_buff *fq_rr_collect(struct fq_rr_sched_data *q,
			      struct sk_buff **tail);
void fq_rr_restore(struct fq_rr_sched_data *q, struct sk_buff *list);
void fq_rr_perturb(struct timer_list *timer);

#endif /* _FQ_RR_H */
