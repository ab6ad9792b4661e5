// SPDX-License-Identifier: GPL-2.0
/*
 * The queue of fq_rr to which a packet belongs.
 *
 * A flow is identified by a tag of 32 bits, the hash of its packets. The tag and
 * the key of the qdisc give it a home, which is one of the queues. Eight
 * neighbouring queues are a set. If another flow has packets in its home, a flow
 * gets any empty queue of the set, as in sch_cake. So flows begin to
 * share a queue only if more than eight flows of a set have packets. (They go on to
 * share it while it has a guest, see below.)
 *
 * Packets of a flow must not overtake each other. Therefore a flow with packets
 * stays in its queue:
 * - the flow that puts the first packet into a queue owns it. The queue has the
 *   tag of this flow, and all packets of the flow go to it, wherever in the set
 *   it is;
 * - a flow that finds no queue of its own is a guest in its home. Guests are
 *   counted, but not distinguished. While there is a guest, a flow without a
 *   queue of its own goes to its home, because a guest may be of this flow.
 */

#include <linux/kernel.h>
#include <linux/skbuff.h>
#include <linux/types.h>
#include <net/pkt_cls.h>
#include <net/pkt_sched.h>

#include "compat.h"
#include "fq_rr.h"
#include "pkt_fq_rr.h"

/* Queues of a set; their tags are in one cache line. */
#define FQ_RR_WAYS	8U

static u32 fq_rr_tag(const struct fq_rr_sched_data *q, struct sk_buff *skb)
{
	switch (q->params.classify) {
	case FQ_RR_CLASSIFY_PRIORITY:
		return skb->priority;
	case FQ_RR_CLASSIFY_MARK:
		return skb->mark;
	default:
		return skb_get_hash(skb);
	}
}

/* The queue of a flow that does not own its home. */
static noinline u32 fq_rr_search_set(struct fq_rr_sched_data *q, u32 home,
				     u32 tag)
{
	u32 first = rounddown(home - 1, FQ_RR_WAYS) + 1;
	u32 end = min(first + FQ_RR_WAYS, q->params.flows + 1);
	const struct fq_rr_flow *flow = q->t.flow;
	u32 id;

	for (id = first; id < end; id++)
		if (q->t.tags[id - 1] == tag)
			return id;

	if (!flow[home].qlen || flow[home].guests)
		return home;

	for (id = first; id < end; id++) {
		if (!flow[id].qlen) {
			fq_rr_count(&q->stats.moved_flows, 1);
			return id;
		}
	}
	return home;
}

/*
 * The queue of a tag. The tag is skb_get_hash(): a siphash of addresses and ports,
 * a random number of the socket, or a hash of the network card. The key here is
 * that of the qdisc, and may change.
 */
static u32 fq_rr_search(struct fq_rr_sched_data *q, u32 tag)
{
	u32 home;

	if (q->params.classify != FQ_RR_CLASSIFY_FLOW)
		return tag % q->params.flows + 1;

	/* The upper 32 bits of the product depend on all bits of the tag. */
	home = reciprocal_scale((tag * q->key.factor + q->key.offset) >> 32,
				q->params.flows) + 1;
	if (likely(q->t.flow[home].tag == tag))
		return home;
	return fq_rr_search_set(q, home, tag);
}

/* The class from the priority or a filter, or 0; *@err is set if a filter took it. */
static u32 fq_rr_assigned(struct sk_buff *skb, struct Qdisc *sch, int *err)
{
	struct fq_rr_sched_data *q = qdisc_priv(sch);
	struct tcf_proto *filter;
	struct tcf_result res;
	int result;
	u32 class;

	/* A qdisc of net.core.default_qdisc has no handle: priorities are no classes. */
	if (sch->handle && TC_H_MAJ(skb->priority) == sch->handle) {
		class = TC_H_MIN(skb->priority);
		if (class && class <= q->params.flows)
			return class;
	}

	filter = rcu_dereference_bh(q->filter_list);
	if (!filter)
		return 0;

	result = tcf_classify_qdisc(skb, filter, &res, false);
	if (result < 0)
		return 0;
#ifdef CONFIG_NET_CLS_ACT
	switch (result) {
	case TC_ACT_STOLEN:
	case TC_ACT_QUEUED:
	case TC_ACT_TRAP:
		*err = NET_XMIT_SUCCESS | __NET_XMIT_STOLEN;
		return 0;
	case TC_ACT_SHOT:
		*err = NET_XMIT_SUCCESS | __NET_XMIT_BYPASS;
		return 0;
	}
#endif
	class = TC_H_MIN(res.classid);
	return class <= q->params.flows ? class : 0;
}

/**
 * fq_rr_classify() - find the queue of a packet that arrives
 * @skb: packet; its struct fq_rr_cb is set
 * @sch: qdisc
 * @err: what to return for the packet if it has no queue
 *
 * Return: number of a queue, or 0 if a filter took the packet.
 */
u32 fq_rr_classify(struct sk_buff *skb, struct Qdisc *sch, int *err)
{
	struct fq_rr_sched_data *q = qdisc_priv(sch);
	struct fq_rr_cb *cb = fq_rr_cb(skb);

	*err = NET_XMIT_SUCCESS;
	cb->class = fq_rr_assigned(skb, sch, err);
	if (*err != NET_XMIT_SUCCESS)
		return 0;

	cb->tag = cb->class ? 0 : fq_rr_tag(q, skb);
	return cb->class ?: fq_rr_search(q, cb->tag);
}

/**
 * fq_rr_classify_again() - find the new queue of a packet that was queued
 * @q: queues; their number, the key or the rule of classification has changed
 * @skb: packet
 *
 * Return: number of a queue.
 */
u32 fq_rr_classify_again(struct fq_rr_sched_data *q, struct sk_buff *skb)
{
	struct fq_rr_cb *cb = fq_rr_cb(skb);

	if (cb->class > q->params.flows)
		cb->class = 0;
	cb->tag = cb->class ? 0 : fq_rr_tag(q, skb);
	return cb->class ?: fq_rr_search(q, cb->tag);
}
