// SPDX-License-Identifier: GPL-2.0
/*
 * Per-flow round robin over one shared buffer
 *
 * Principles:
 * - each flow has a queue of its own; all of them share one buffer, which is
 *   bounded in packets and in bytes of memory;
 * - a round visits every queue with packets once: a queue sends one packet for
 *   each unit of its weight (rr), or quantum bytes (drr). A queue that gets its
 *   first packet goes to the tail of the round. A queue that becomes empty loses
 *   its credit and keeps its debt. So neither a flow that comes and goes nor a
 *   stream of new flows delays another queue by more than one visit;
 * - fair queueing (wfq) serves the packet with the smallest virtual finish
 *   time
 *
 *	F = max(V, F of the packet before) + length / weight
 *
 *   where V is the F of the packet that left last (self-clocked fair
 *   queueing, which does not need the rate of the link). F is computed when a
 *   packet becomes the first one of its queue: the packet before it has just
 *   left then, so its F is V, too;
 * - when the buffer is full, the arriving packet is dropped (drop-last), or
 *   the last packet of the longest queue (drop-tail-of-longest, as in PP94
 *   9.1), or all packets of the longest queue (drop-longest, MK94). The last
 *   rule leaves no advantage to senders that do not respond to losses;
 * - the longest queue is known at any time, see fq_rr_order.h. To drop all of
 *   it costs as much as to drop one packet, because each queue has the sums of
 *   its packets;
 * - a queue may own a part of the buffer from its first packet on (reserve).
 *   Packets within this part are never dropped, see fq_rr_reservation();
 *   instead, packets of queues that hold more than they own are dropped. So a
 *   flow whose window is not larger than its part (PP94 10.3) loses nothing,
 *   whatever others send.
 *
 * Sources: S. Keshav, Packet-Pair Flow Control, 1994 (PP94), section 2.1;
 * S. P. Morgan, S. Keshav, Packet-Pair Rate Control: Buffer Requirements and
 * Overload Performance, 1994 (MK94), section 2. Deficit round robin: M.
 * Shreedhar, G. Varghese, 1995. Self-clocked fair queueing: S. J. Golestani,
 * 1994.
 *
 * Notable differences from the papers:
 * - sources are distinguished by a hash, so that two of them share a queue if more
 *   than eight are in the same part of the table (fq_rr_classify.c). Packets
 *   in a shared queue are counted, and a new key (perturb) separates the flows;
 * - virtual time is that of the packet in service, not of bit-by-bit service:
 *   F is wrong by up to one packet of each other flow, but the clock costs
 *   nothing;
 * - memory is bounded, too: a packet for which there is not enough memory is
 *   treated like one that arrives at a full buffer;
 * - a packet that finds the buffer empty is always queued, whatever its size.
 *
 * Everything below runs under the root lock of the qdisc, except for dumps,
 * which read single words, and for a reset of a qdisc that is in no tree any
 * more. Tables are replaced under RTNL and the root lock.
 */

#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/math64.h>
#include <linux/random.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/types.h>
#include <net/pkt_sched.h>

#include "compat.h"
#include "fq_rr.h"
#include "fq_rr_order.h"
#include "pkt_fq_rr.h"
#include "tollway_split.h"

/*
 * Virtual time is in 2^-16 bytes: one byte divided by the largest weight, 2^10,
 * is 2^6 of these units. No finish time is further ahead of the virtual time
 * than a packet of at most 2^20 bytes (FQ_RR_QUANTUM_MAX), 2^36 units. So the
 * sign of a difference in 64 bits tells which time is earlier, and times may
 * wrap.
 */
#define FQ_RR_VTIME_SHIFT	16

/* What an enqueue changed; fq_rr_settle() tells it to the parents. */
struct fq_rr_tally {
	u32	queued;
	u32	queued_len;
	u32	dropped;
	u32	dropped_len;
	bool	own;
};

static u16 fq_rr_weight(const struct fq_rr_sched_data *q,
			const struct fq_rr_flow *flow, const struct sk_buff *skb)
{
	u32 value;

	if (flow->class_weight)
		return flow->class_weight;
	if (!q->params.weights_count)
		return 1;

	value = q->params.weigh == FQ_RR_WEIGH_MARK ? skb->mark : skb->priority;
	return value < q->params.weights_count ? q->params.weights[value] : 1;
}

/* What a packet costs of the credit: packets (rr) or bytes (drr). */
static s32 fq_rr_cost(const struct fq_rr_sched_data *q,
		      const struct sk_buff *skb)
{
	return q->params.service == FQ_RR_SERVICE_RR ? 1 :
	       min(qdisc_pkt_len(skb), FQ_RR_QUANTUM_MAX);
}

/* Credit of one visit, packets or bytes: quantum 2^20 times weight 2^10. */
static s32 fq_rr_allotment(const struct fq_rr_sched_data *q,
			   const struct fq_rr_flow *flow)
{
	return flow->weight *
	       (q->params.service == FQ_RR_SERVICE_RR ? 1 : q->quantum);
}

/**
 * fq_rr_due_add() - set the virtual finish time of the first packet of a queue
 * @q: queues
 * @id: queue, in no run and not in the heap
 *
 * The service of the packet can start now: its queue was empty, or the packet
 * before it has just left. So the finish times of packets with the same
 * length / weight are computed in ascending order, and a list (a run) keeps
 * them in this order. A packet goes to the run whose last finish time is
 * nearest. If there are more values of length / weight than runs, a packet that
 * fits no run goes to the heap.
 */
static void fq_rr_due_add(struct fq_rr_sched_data *q, u32 id)
{
	struct fq_rr_flow *flow = &q->t.flow[id], *last;
	u64 length = (u64)fq_rr_cost(q, flow->head) << FQ_RR_VTIME_SHIFT;
	struct list_head *run, *best = NULL;
	s64 gap, least = S64_MAX;

	if (flow->weight > 1)
		length = div_u64(length, flow->weight);
	flow->finish = q->vtime + length;

	for (run = q->runs; run < q->runs + FQ_RR_RUNS; run++) {
		if (list_empty(run)) {
			best = best ?: run;
			continue;
		}
		last = list_last_entry(run, struct fq_rr_flow, round);
		gap = flow->finish - last->finish;
		if (gap >= 0 && gap < least) {
			least = gap;
			best = run;
		}
	}

	if (best)
		list_add_tail(&flow->round, best);
	else
		fq_rr_heap_set(&q->t.by_finish, id, -flow->finish);
}

static void fq_rr_due_remove(struct fq_rr_sched_data *q, u32 id)
{
	if (fq_rr_heap_has(&q->t.by_finish, id))
		fq_rr_heap_remove(&q->t.by_finish, id);
	else
		list_del(&q->t.flow[id].round);
}

/*
 * The first packet of the queue has left, and there is another one. This is not
 * inline, nor is fq_rr_due(): rr and drr, which do not need them, are faster so.
 */
static noinline void fq_rr_due_again(struct fq_rr_sched_data *q, u32 id)
{
	fq_rr_due_remove(q, id);
	fq_rr_due_add(q, id);
}

/* The queue whose first packet has the smallest finish time; not all are empty. */
static noinline struct fq_rr_flow *fq_rr_due(struct fq_rr_sched_data *q)
{
	u32 id = fq_rr_heap_top(&q->t.by_finish);
	struct fq_rr_flow *first, *due = id ? &q->t.flow[id] : NULL;
	struct list_head *run;

	for (run = q->runs; run < q->runs + FQ_RR_RUNS; run++) {
		if (list_empty(run))
			continue;
		first = list_first_entry(run, struct fq_rr_flow, round);
		if (!due || (s64)(first->finish - due->finish) < 0)
			due = first;
	}
	return due;
}

/*
 * The queue gets its first packet: its next turn is after those of all others.
 * Each turn since its last one pays a part of its debt, as if the queue had
 * never been empty. But its credit is never larger than that of one turn. If
 * all its packets were dropped while it waited, its next turn has a number
 * already.
 */
static void fq_rr_join_round(struct fq_rr_sched_data *q,
			     struct fq_rr_flow *flow)
{
	u64 turns = q->turn + 1 - flow->turn;
	u64 debt = max(-flow->credit, 0);
	s32 allotment = fq_rr_allotment(q, flow);

	if (turns) {
		debt -= turns > debt ? debt :
			min_t(u64, debt, (turns - 1) * allotment);
		WRITE_ONCE(flow->credit, allotment - (s32)debt);
		flow->turn += turns;
	}
	list_add_tail(&flow->round, &q->round);
}

/*
 * The turn of the queue ends with this credit; it gets that of its next turn. A
 * queue that is alone has nowhere to go.
 */
static void fq_rr_next_turn(struct fq_rr_sched_data *q,
			    struct fq_rr_flow *flow, s32 credit)
{
	flow->turn++;
	WRITE_ONCE(flow->credit, credit + fq_rr_allotment(q, flow));
	if (!list_is_last(&flow->round, &q->round))
		list_move_tail(&flow->round, &q->round);
}

/**
 * fq_rr_skip_turns() - the first queue of the round may not send: find one that may
 * @q: queues, not all empty
 *
 * A packet may be longer than the credit of one turn. Its queue sends it, and then
 * skips its turns until their credit has paid for it: 43 turns for 64 KB with a
 * quantum of 1514 bytes, and 4096 for the largest packet with the smallest one. If
 * all queues are in debt, this is the number of rounds to the next packet. So the
 * rounds are not walked but computed: a queue with credit c may send when it had
 * 1 + -c / a turns more, a being its allotment. The queue with the smallest number,
 * and of these the first one, is next. All have had this number of turns then, and
 * those before it one more.
 *
 * Return: the queue whose turn it is, now the first of the round.
 */
static noinline struct fq_rr_flow *fq_rr_skip_turns(struct fq_rr_sched_data *q)
{
	struct fq_rr_flow *flow, *next = NULL;
	s32 turns, least = S32_MAX;
	bool before = true;

	list_for_each_entry(flow, &q->round, round) {
		turns = flow->credit > 0 ? 0 :
			1 + -flow->credit / fq_rr_allotment(q, flow);
		if (turns < least) {
			least = turns;
			next = flow;
		}
		if (!turns)
			break;
	}

	list_for_each_entry(flow, &q->round, round) {
		before = before && flow != next;
		turns = least + before;
		if (!turns)
			break;
		/* Less than a turn above 0: it may not send before its last turn. */
		WRITE_ONCE(flow->credit, flow->credit +
					 turns * fq_rr_allotment(q, flow));
		flow->turn += turns;
	}
	list_rotate_to_front(&next->round, &q->round);
	return next;
}

/* The queue whose turn it is; not all are empty. */
static struct fq_rr_flow *fq_rr_turn(struct fq_rr_sched_data *q)
{
	struct fq_rr_flow *flow;

	flow = list_first_entry(&q->round, struct fq_rr_flow, round);
	if (unlikely(flow->credit <= 0))
		flow = fq_rr_skip_turns(q);
	q->turn = flow->turn;
	return flow;
}

/*
 * Packets of the buffer that a queue owns when it gets its first packet. The sum
 * of all these parts is at most the limit. So if a packet within its part finds
 * the buffer full, other queues hold more than they own, and a packet of theirs
 * is dropped: the buffer has limit packets, and its own queue has fewer than its
 * part.
 */
static u32 fq_rr_reservation(const struct fq_rr_sched_data *q)
{
	u64 owned = (q->stats.owners + 1ULL) * q->params.reserve;

	return owned <= q->params.limit ? q->params.reserve : 0;
}

/* The number of packets that a queue with @qlen packets has beyond its part. */
static u32 fq_rr_beyond(const struct fq_rr_sched_data *q,
			const struct fq_rr_flow *flow, u32 qlen)
{
	/* flow->own is not in the cache line that each packet needs. */
	return q->params.reserve ? qlen - min(qlen, flow->own) : qlen;
}

/* The queue got its first packet: it has to be served. */
static void fq_rr_activate(struct fq_rr_sched_data *q, u32 id)
{
	if (q->params.reserve) {
		WRITE_ONCE(q->t.flow[id].own, fq_rr_reservation(q));
		fq_rr_add(&q->stats.owners, !!q->t.flow[id].own);
	}
	fq_rr_add(&q->stats.flows, 1);
	if (q->stats.flows > q->stats.flows_max)
		WRITE_ONCE(q->stats.flows_max, q->stats.flows);

	if (q->params.service == FQ_RR_SERVICE_WFQ)
		fq_rr_due_add(q, id);
	else
		fq_rr_join_round(q, &q->t.flow[id]);
}

/*
 * The last packet of the queue has left. If all queues are empty, no flow waits
 * because of another one, and all debts are cancelled: the number of the turn
 * grows by as many turns as the largest debt needs.
 */
static void fq_rr_deactivate(struct fq_rr_sched_data *q, u32 id)
{
	if (q->t.flow[id].own) {
		WRITE_ONCE(q->t.flow[id].own, 0);
		fq_rr_add(&q->stats.owners, -1);
	}
	fq_rr_add(&q->stats.flows, -1);
	if (!q->stats.flows)
		q->turn += FQ_RR_QUANTUM_MAX;
	if (q->params.service == FQ_RR_SERVICE_WFQ)
		fq_rr_due_remove(q, id);
	else
		list_del(&q->t.flow[id].round);
}

/*
 * The functions that each packet needs are inline, though the compiler finds some
 * of them too long: to call them, and to read again what they may have changed,
 * took a fifth of the time of a packet.
 */

/* The queue has one packet more, @qlen now: update the order by length. */
static __always_inline void fq_rr_grew(struct fq_rr_sched_data *q, u32 id,
				       const struct fq_rr_flow *flow, u32 qlen)
{
	u32 beyond;

	if (q->params.overflow == FQ_RR_DROP_LAST)
		return;

	beyond = fq_rr_beyond(q, flow, qlen);
	if (!beyond)
		return;

	if (q->params.longest == FQ_RR_LONGEST_PACKETS)
		fq_rr_lengths_up(&q->t.lengths, id, beyond);
	else
		fq_rr_heap_set(&q->t.by_len, id, flow->len);
}

/* The queue has one packet less, @before until now: update the order by length. */
static __always_inline void fq_rr_shrank(struct fq_rr_sched_data *q,
					 const struct fq_rr_flow *flow,
					 u32 before)
{
	u32 beyond, id = flow - q->t.flow;

	if (q->params.overflow == FQ_RR_DROP_LAST)
		return;

	beyond = fq_rr_beyond(q, flow, before);
	if (!beyond)
		return;

	if (q->params.longest == FQ_RR_LONGEST_PACKETS)
		fq_rr_lengths_down(&q->t.lengths, id, beyond);
	else if (beyond > 1)
		fq_rr_heap_set(&q->t.by_len, id, flow->len);
	else
		fq_rr_heap_remove(&q->t.by_len, id);
}

/* The queue lost all its @before packets: update the order by length. */
static void fq_rr_emptied(struct fq_rr_sched_data *q, u32 id, u32 before)
{
	u32 beyond;

	if (q->params.overflow == FQ_RR_DROP_LAST)
		return;

	beyond = fq_rr_beyond(q, &q->t.flow[id], before);
	if (!beyond)
		return;

	if (q->params.longest == FQ_RR_LONGEST_PACKETS)
		fq_rr_lengths_remove(&q->t.lengths, id, beyond);
	else
		fq_rr_heap_remove(&q->t.by_len, id);
}

/*
 * An empty queue gets another flow as its owner, which has no debt, and the credit of
 * its next turn, whatever turn the owner before waited for.
 */
static void fq_rr_own(struct fq_rr_sched_data *q, u32 id, u32 tag)
{
	struct fq_rr_flow *flow = &q->t.flow[id];

	flow->tag = tag;
	q->t.tags[id - 1] = tag;
	WRITE_ONCE(flow->credit, 0);
	flow->turn = q->turn;
}

static __always_inline void fq_rr_append(struct fq_rr_sched_data *q, u32 id,
					 struct sk_buff *skb)
{
	struct fq_rr_flow *flow = &q->t.flow[id];
	const struct fq_rr_cb *cb = fq_rr_cb(skb);
	u32 memory = cb->memory, tag = cb->tag;
	struct sk_buff *tail = flow->tail;
	u32 qlen = flow->qlen;

	skb->next = NULL;
	skb->prev = tail;
	if (qlen)
		tail->next = skb;
	else
		flow->head = skb;
	flow->tail = skb;

	WRITE_ONCE(flow->qlen, qlen + 1);
	fq_rr_add(&flow->len, qdisc_pkt_len(skb));
	fq_rr_add(&flow->memory, memory);
	fq_rr_add(&q->packets, 1);
	fq_rr_add(&q->memory, memory);
	WRITE_ONCE(flow->weight, fq_rr_weight(q, flow, skb));
	if (!qlen) {
		if (flow->tag != tag)
			fq_rr_own(q, id, tag);
		fq_rr_activate(q, id);
	} else if (unlikely(tag != flow->tag)) {
		flow->guests++;
	}
	fq_rr_grew(q, id, flow, qlen + 1);
}

/*
 * Call this before a queue becomes shorter: it updates the largest length. An
 * arriving packet does not update it, because that would need the second cache
 * line of its queue. A packet that leaves needs this line anyway, for the sums.
 */
static void fq_rr_shrinks(struct fq_rr_flow *flow)
{
	if (flow->qlen > flow->qlen_max)
		WRITE_ONCE(flow->qlen_max, flow->qlen);
}

/* Subtract a packet that is not in the list any more from the sums. */
static __always_inline void fq_rr_unaccount(struct fq_rr_sched_data *q,
					    struct fq_rr_flow *flow,
					    const struct sk_buff *skb)
{
	const struct fq_rr_cb *cb = fq_rr_cb(skb);
	u32 memory = cb->memory;
	u32 qlen = flow->qlen;

	fq_rr_shrinks(flow);
	if (unlikely(cb->tag != flow->tag))
		flow->guests--;
	WRITE_ONCE(flow->qlen, qlen - 1);
	fq_rr_add(&flow->len, -qdisc_pkt_len(skb));
	fq_rr_add(&flow->memory, -memory);
	fq_rr_add(&q->packets, -1);
	fq_rr_add(&q->memory, -memory);
	fq_rr_shrank(q, flow, qlen);
}

/* Remove the next packet; @from is set to its queue. */
static __always_inline struct sk_buff *
__fq_rr_take(struct fq_rr_sched_data *q, struct fq_rr_flow **from)
{
	struct fq_rr_flow *flow;
	struct sk_buff *skb;
	s32 credit;

	if (!q->packets)
		return NULL;

	if (q->params.service == FQ_RR_SERVICE_WFQ)
		flow = fq_rr_due(q);
	else
		flow = fq_rr_turn(q);
	*from = flow;

	skb = flow->head;
	flow->head = skb->next;
	skb_mark_not_on_list(skb);
	skb->prev = NULL;
	fq_rr_unaccount(q, flow, skb);

	if (q->params.service == FQ_RR_SERVICE_WFQ) {
		q->vtime = flow->finish;
		if (flow->qlen)
			fq_rr_due_again(q, flow - q->t.flow);
	} else {
		credit = flow->credit - fq_rr_cost(q, skb);
		if (flow->qlen && credit <= 0)
			fq_rr_next_turn(q, flow, credit);
		else
			WRITE_ONCE(flow->credit, credit);
	}
	if (!flow->qlen)
		fq_rr_deactivate(q, flow - q->t.flow);
	return skb;
}

/* The same for other files, which do not do it for each packet. */
struct sk_buff *fq_rr_take(struct fq_rr_sched_data *q, struct fq_rr_flow **from)
{
	return __fq_rr_take(q, from);
}

static u32 fq_rr_longest(const struct fq_rr_sched_data *q)
{
	return q->params.longest == FQ_RR_LONGEST_PACKETS ?
	       fq_rr_lengths_top(&q->t.lengths) : fq_rr_heap_top(&q->t.by_len);
}

/* Is one more packet of the queue within the part that it owns? */
static bool fq_rr_is_entitled(const struct fq_rr_sched_data *q, u32 id)
{
	const struct fq_rr_flow *flow = &q->t.flow[id];

	if (likely(!q->params.reserve))
		return false;
	return flow->qlen < (flow->qlen ? flow->own : fq_rr_reservation(q));
}

/*
 * Would the queue with one more packet be longer than all others? If no queue
 * holds more than it owns, there is none to compare with, and the answer is yes.
 */
static bool fq_rr_beats_longest(const struct fq_rr_sched_data *q, u32 id,
				const struct sk_buff *skb)
{
	const struct fq_rr_flow *longest = &q->t.flow[fq_rr_longest(q)];
	const struct fq_rr_flow *flow = &q->t.flow[id];

	if (q->params.longest == FQ_RR_LONGEST_PACKETS)
		return fq_rr_beyond(q, flow, flow->qlen) + 1 >
		       fq_rr_beyond(q, longest, longest->qlen);

	return (u64)flow->len + qdisc_pkt_len(skb) > longest->len;
}

/* Drop the last packet of a queue. */
static void fq_rr_drop_tail(struct fq_rr_sched_data *q, u32 id,
			    struct fq_rr_tally *tally, struct sk_buff **to_free)
{
	struct fq_rr_flow *flow = &q->t.flow[id];
	struct sk_buff *skb = flow->tail;

	fq_rr_unaccount(q, flow, skb);
	if (flow->qlen) {
		flow->tail = skb->prev;
		flow->tail->next = NULL;
	} else {
		fq_rr_deactivate(q, id);
	}
	skb->prev = NULL;

	fq_rr_add(&flow->drops, 1);
	tally->dropped++;
	tally->dropped_len += qdisc_pkt_len(skb);
	__qdisc_drop(skb, to_free);
}

/* Drop all packets of a queue: its list is added to @to_free. */
static void fq_rr_drop_all(struct fq_rr_sched_data *q, u32 id,
			   struct fq_rr_tally *tally, struct sk_buff **to_free)
{
	struct fq_rr_flow *flow = &q->t.flow[id];
	u32 qlen = flow->qlen;

	flow->tail->next = *to_free;
	*to_free = flow->head;

	fq_rr_shrinks(flow);
	fq_rr_add(&flow->drops, qlen);
	tally->dropped += qlen;
	tally->dropped_len += flow->len;
	fq_rr_add(&q->packets, -qlen);
	fq_rr_add(&q->memory, -flow->memory);
	WRITE_ONCE(flow->qlen, 0);
	WRITE_ONCE(flow->len, 0);
	WRITE_ONCE(flow->memory, 0);
	flow->guests = 0;
	fq_rr_emptied(q, id, qlen);
	fq_rr_deactivate(q, id);
}

/* Are @packets and @memory bytes more within the limits? */
static bool fq_rr_within(const struct fq_rr_sched_data *q, u32 packets,
			 u32 memory)
{
	return q->packets + packets <= q->params.limit &&
	       (u64)q->memory + memory <= q->params.memory_limit;
}

/**
 * fq_rr_make_room() - make room for a packet by the rule of overflow
 * @q: queues, too full for it and not empty
 * @id: queue of the packet
 * @skb: the packet, not yet queued
 * @tally: where drops are counted
 * @to_free: where dropped packets go
 *
 * Each iteration drops at least one packet. Nearly always one is enough; more
 * are needed only if a large packet needs the memory of several small ones.
 *
 * The parts that queues own are counted in packets. If the memory is not enough
 * for them, and no queue holds more than it owns, the new packet is dropped.
 *
 * Return: false if the new packet has to be dropped.
 */
static bool fq_rr_make_room(struct fq_rr_sched_data *q, u32 id,
			    struct sk_buff *skb, struct fq_rr_tally *tally,
			    struct sk_buff **to_free)
{
	bool by_memory = q->packets < q->params.limit;
	u32 before, victim;
	bool room = true;

	while (q->packets && !fq_rr_within(q, 1, skb->truesize)) {
		victim = q->params.overflow == FQ_RR_DROP_LAST ? 0 :
			 fq_rr_longest(q);
		if (!victim ||
		    (q->params.overflow == FQ_RR_DROP_TAIL_OF_LONGEST &&
		     !fq_rr_is_entitled(q, id) &&
		     fq_rr_beats_longest(q, id, skb))) {
			fq_rr_count(&q->stats.last_drops, 1);
			fq_rr_count(&q->stats.memory_drops, by_memory);
			room = false;
			break;
		}

		before = tally->dropped;
		if (q->params.overflow == FQ_RR_DROP_LONGEST)
			fq_rr_drop_all(q, victim, tally, to_free);
		else
			fq_rr_drop_tail(q, victim, tally, to_free);

		before = tally->dropped - before;
		fq_rr_count(&q->stats.longest_events, 1);
		fq_rr_count(&q->stats.longest_drops, before);
		if (by_memory)
			fq_rr_count(&q->stats.memory_drops, before);
		if (victim == id) {
			fq_rr_count(&q->stats.own_drops, before);
			tally->own = true;
		}
	}
	return room;
}

/* Queue a packet for which there is room. */
static __always_inline void fq_rr_queue(struct fq_rr_sched_data *q, u32 id,
					struct sk_buff *skb)
{
	struct fq_rr_flow *flow = &q->t.flow[id];
	struct fq_rr_cb *cb = fq_rr_cb(skb);

	if (!flow->qlen) {
		fq_rr_count(&q->stats.new_flows, 1);
		if (q->params.reserve && !fq_rr_reservation(q))
			fq_rr_count(&q->stats.refused, 1);
	} else if (cb->tag != flow->tag) {
		fq_rr_count(&q->stats.collisions, 1);
		fq_rr_count(&flow->collisions, 1);
	}

	/* Should it be dropped while it is here: that is the only way. */
	compat_qdisc_set_overlimit(skb);
	cb->memory = skb->truesize;
	fq_rr_append(q, id, skb);
	if (q->packets > q->stats.packets_max)
		WRITE_ONCE(q->stats.packets_max, q->packets);
	if (q->memory > q->stats.memory_max)
		WRITE_ONCE(q->stats.memory_max, q->memory);
}

static void fq_rr_enqueue_one(struct sk_buff *skb, struct Qdisc *sch, u32 id,
			      struct fq_rr_tally *tally,
			      struct sk_buff **to_free)
{
	struct fq_rr_sched_data *q = qdisc_priv(sch);

	if (unlikely(!fq_rr_within(q, 1, skb->truesize)) &&
	    !fq_rr_make_room(q, id, skb, tally, to_free)) {
		fq_rr_add(&q->t.flow[id].drops, 1);
		compat_qdisc_set_overlimit(skb);
		qdisc_drop(skb, sch, to_free);
		return;
	}

	tally->queued++;
	tally->queued_len += qdisc_pkt_len(skb);
	fq_rr_queue(q, id, skb);
}

/* Enqueue each segment of a super-packet as a packet of its own. */
static bool fq_rr_enqueue_split(struct sk_buff *skb, struct Qdisc *sch, u32 id,
				struct fq_rr_tally *tally,
				struct sk_buff **to_free)
{
	struct sk_buff *segs = tollway_split(skb, sch), *next;

	if (!segs)
		return false;

	skb_list_walk_safe(segs, segs, next) {
		skb_mark_not_on_list(segs);
		fq_rr_enqueue_one(segs, sch, id, tally, to_free);
	}
	consume_skb(skb);
	return true;
}

/**
 * fq_rr_settle() - let the qdisc and its parents know what an enqueue did
 * @sch: qdisc, not empty any more
 * @tally: what it did
 * @len: bytes of the one packet that the parents see go in
 *
 * The parents act on the return value, which must agree with the packets that
 * the qdisc holds now:
 *
 * - On NET_XMIT_SUCCESS each parent counts the packet, and activates its class
 *   if it was idle. Nothing else activates a class. So a qdisc that was empty
 *   and has a packet now must return this, even if most segments of the
 *   super-packet were dropped for the others.
 * - On NET_XMIT_CN and NET_XMIT_DROP a parent counts a drop and no packet: the
 *   class must have been active.
 * - __NET_XMIT_STOLEN hides the packet from the parents; its sender is told
 *   that it was queued.
 *
 * The parents count after this function has corrected their sums. Until then
 * the packet is missing from these sums. If it were the only packet of a parent,
 * this parent would look empty, and qdisc_tree_reduce_backlog() would tell the
 * next parent above, which deactivates its class. HFSC activates this class
 * again only if the child was empty before the enqueue, which is not the case.
 * Therefore the correction counts such a packet, and the parents do not.
 *
 * No parent is ever told that this qdisc is empty: after a drop, other packets
 * are left, or the packet for which it was dropped.
 *
 * Return: NET_XMIT_SUCCESS, as above; NET_XMIT_CN if other packets of its flow
 * were dropped for it; NET_XMIT_DROP if it was dropped itself.
 */
static int fq_rr_settle(struct Qdisc *sch, const struct fq_rr_tally *tally,
			u32 len)
{
	int qlen = tally->queued - tally->dropped;
	int bytes = tally->queued_len - tally->dropped_len;
	bool idle = !sch->q.qlen;
	int ret = NET_XMIT_SUCCESS;

	WRITE_ONCE(sch->q.qlen, sch->q.qlen + qlen);
	WRITE_ONCE(sch->qstats.backlog, sch->qstats.backlog + bytes);
	if (tally->dropped)
		__qdisc_qstats_drop(sch, tally->dropped);

	if (!tally->queued)
		ret = NET_XMIT_DROP;
	else if (tally->own && !idle)
		ret = NET_XMIT_CN;
	else if (sch->q.qlen == 1 && !idle)
		ret = NET_XMIT_SUCCESS | __NET_XMIT_STOLEN;

	if (ret == NET_XMIT_SUCCESS) {
		qlen--;
		bytes -= len;
	}
	if (qlen || bytes)
		qdisc_tree_reduce_backlog(sch, -qlen, -bytes);
	return ret;
}

/* Enqueue a packet for which others may be dropped, or that is segmented. */
static noinline int fq_rr_enqueue_slow(struct sk_buff *skb, struct Qdisc *sch,
				       u32 id, bool split,
				       struct sk_buff **to_free)
{
	u32 len = qdisc_pkt_len(skb);
	struct fq_rr_tally tally = {};

	if (!split)
		fq_rr_enqueue_one(skb, sch, id, &tally, to_free);
	else if (!fq_rr_enqueue_split(skb, sch, id, &tally, to_free))
		return qdisc_drop(skb, sch, to_free);

	return fq_rr_settle(sch, &tally, len);
}

int fq_rr_enqueue(struct sk_buff *skb, struct Qdisc *sch,
		  struct sk_buff **to_free)
{
	struct fq_rr_sched_data *q = qdisc_priv(sch);
	bool split;
	int err;
	u32 id;

	id = fq_rr_classify(skb, sch, &err);
	if (unlikely(!id)) {
		if (err & __NET_XMIT_BYPASS)
			qdisc_qstats_drop(sch);
		__qdisc_drop(skb, to_free);
		return err;
	}

	split = skb_is_gso(skb) && q->params.flags & FQ_RR_F_SPLIT_GSO;
	if (unlikely(split || !fq_rr_within(q, 1, skb->truesize)))
		return fq_rr_enqueue_slow(skb, sch, id, split, to_free);

	fq_rr_queue(q, id, skb);
	WRITE_ONCE(sch->q.qlen, sch->q.qlen + 1);
	WRITE_ONCE(sch->qstats.backlog, sch->qstats.backlog +
					qdisc_pkt_len(skb));
	return NET_XMIT_SUCCESS;
}

struct sk_buff *fq_rr_dequeue(struct Qdisc *sch)
{
	struct fq_rr_sched_data *q = qdisc_priv(sch);
	struct fq_rr_flow *flow;
	struct sk_buff *skb;
	u32 len, segs;

	skb = __fq_rr_take(q, &flow);
	if (!skb)
		return NULL;

	WRITE_ONCE(sch->q.qlen, sch->q.qlen - 1);
	qdisc_qstats_backlog_dec(sch, skb);

	/* Read once: nothing is written between here and the sums of the qdisc. */
	len = qdisc_pkt_len(skb);
	segs = skb_is_gso(skb) ? skb_shinfo(skb)->gso_segs : 1;
	qdisc_bstats_update(sch, skb);
	fq_rr_count(&flow->sent_bytes, len);
	fq_rr_count(&flow->sent, segs);
	return skb;
}

/**
 * fq_rr_collect() - take all packets off the queues
 * @q: queues, with @q->lock held
 * @tail: where the last packet of the list goes
 *
 * Return: all packets, linked by next, those of a queue in their order; NULL
 *	if there are none.
 */
struct sk_buff *fq_rr_collect(struct fq_rr_sched_data *q,
			      struct sk_buff **tail)
{
	struct sk_buff *list = NULL, **link = &list;
	struct fq_rr_flow *flow;
	u32 id, qlen;

	lockdep_assert_held(&q->lock);
	for (id = 1; id <= q->params.flows; id++) {
		flow = &q->t.flow[id];
		WRITE_ONCE(flow->credit, 0);
		flow->turn = 0;
		qlen = flow->qlen;
		if (!qlen)
			continue;

		*link = flow->head;
		*tail = flow->tail;
		link = &flow->tail->next;
		fq_rr_shrinks(flow);
		WRITE_ONCE(flow->qlen, 0);
		WRITE_ONCE(flow->len, 0);
		WRITE_ONCE(flow->memory, 0);
		flow->guests = 0;
		fq_rr_emptied(q, id, qlen);
		fq_rr_deactivate(q, id);
	}
	WRITE_ONCE(q->packets, 0);
	WRITE_ONCE(q->memory, 0);
	return list;
}

/* Queue packets of fq_rr_collect() again: nothing is dropped or counted. */
void fq_rr_restore(struct fq_rr_sched_data *q, struct sk_buff *list)
{
	struct sk_buff *skb, *next;

	lockdep_assert_held(&q->lock);
	skb_list_walk_safe(list, skb, next)
		fq_rr_append(q, fq_rr_classify_again(q, skb), skb);
}

/* Set a new key. Queued packets move to their new queues. */
static void fq_rr_rehash(struct fq_rr_sched_data *q)
{
	struct sk_buff *list, *tail;
	struct fq_rr_key key;

	get_random_bytes(&key, sizeof(key));
	spin_lock(&q->lock);
	list = fq_rr_collect(q, &tail);
	q->key = key;
	fq_rr_count(&q->stats.rehashes, 1);
	fq_rr_restore(q, list);
	spin_unlock(&q->lock);
}

/*
 * Timer: set a new key. If queued packets kept their queues, later packets of
 * their flows would overtake them. The walk is bounded by flows and limit.
 */
void fq_rr_perturb(struct timer_list *timer)
{
	struct fq_rr_sched_data *q = container_of(timer,
						  struct fq_rr_sched_data,
						  perturb);
	u32 period = READ_ONCE(q->params.perturb);
	struct Qdisc *root;

	/* The option may have been set to 0, or the qdisc destroyed, in the meantime. */
	if (!period)
		return;

	rcu_read_lock();
	root = qdisc_root_sleeping(q->sch);
	spin_lock(qdisc_lock(root));
	/* A root is replaced under its own lock: another one waits for the next period. */
	if (likely(root == qdisc_root_sleeping(q->sch)))
		fq_rr_rehash(q);
	spin_unlock(qdisc_lock(root));
	rcu_read_unlock();

	period = READ_ONCE(q->params.perturb);
	if (period)
		mod_timer(&q->perturb, jiffies + period * HZ);
}

/*
 * The timer may run at the same time: when a qdisc is destroyed, the kernel calls
 * this without the root lock, and since 7.1 packets are still queued then. The
 * timer cannot be deleted here, because it waits for the root lock, which other
 * callers hold. So both take a lock of the qdisc, within the root lock.
 */
void fq_rr_reset(struct Qdisc *sch)
{
	struct fq_rr_sched_data *q = qdisc_priv(sch);
	struct sk_buff *list, *tail;

	/* Before init() got so far there is nothing. */
	if (!q->t.flow)
		return;

	spin_lock_bh(&q->lock);
	list = fq_rr_collect(q, &tail);
	q->vtime = 0;
	spin_unlock_bh(&q->lock);
	if (list)
		rtnl_kfree_skbs(list, tail);
}
