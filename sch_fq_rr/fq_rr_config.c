// SPDX-License-Identifier: GPL-2.0
/*
 * Options, dumps and classes of the qdisc fq_rr, and the module. All of it runs
 * under RTNL. Data that packets use is changed under the root lock of the qdisc.
 * fq_rr.c has the path of packets, and does not depend on this file.
 */

#include <linux/errno.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/types.h>
#include <net/netlink.h>
#include <net/pkt_cls.h>
#include <net/pkt_sched.h>

#include "compat.h"
#include "fq_rr.h"
#include "fq_rr_order.h"
#include "pkt_fq_rr.h"

/*
 * The defaults of fq_codel. With smaller ones, bursts of many flows are dropped;
 * with larger ones, flows that do not respond to drops use more memory.
 */
#define FQ_RR_DEFAULT_LIMIT	10240U		/* packets */
#define FQ_RR_DEFAULT_MEMORY	(32U << 20)	/* bytes */

/*
 * The number of flows that find no queue of their own is 0.1 of 1000 in the mean,
 * and 15 of 2000. With 1024 queues it would be 4 of 500 and 130 of 1000. All
 * tables take 1.2 MB, because kmalloc() rounds up to powers of two.
 */
#define FQ_RR_DEFAULT_FLOWS	4096U

/*
 * Bytes. A smaller quantum would only mean more turns for each packet. (These turns are
 * computed: see fq_rr_skip_turns().)
 */
#define FQ_RR_QUANTUM_LEAST	256U

static void fq_rr_tables_free(struct fq_rr_tables *tables)
{
	kvfree(tables->flow);
	kvfree(tables->tags);
	fq_rr_lengths_free(&tables->lengths);
	fq_rr_heap_free(&tables->by_len);
	fq_rr_heap_free(&tables->by_finish);
}

/**
 * fq_rr_tables_init() - allocate what a set of parameters needs
 * @tables: what to fill
 * @params: the parameters
 *
 * Return: 0, or -ENOMEM with nothing allocated.
 */
static int fq_rr_tables_init(struct fq_rr_tables *tables,
			     const struct fq_rr_params *params)
{
	int err = 0;

	memset(tables, 0, sizeof(*tables));
	tables->flow = kvcalloc(params->flows + 1, sizeof(*tables->flow),
				GFP_KERNEL);
	tables->tags = kvcalloc(params->flows, sizeof(*tables->tags),
				GFP_KERNEL);
	if (!tables->flow || !tables->tags)
		err = -ENOMEM;
	else if (params->overflow == FQ_RR_DROP_LAST)
		;
	else if (params->longest == FQ_RR_LONGEST_PACKETS)
		err = fq_rr_lengths_init(&tables->lengths, params->flows,
					 params->limit);
	else
		err = fq_rr_heap_init(&tables->by_len, params->flows);
	if (!err && params->service == FQ_RR_SERVICE_WFQ)
		err = fq_rr_heap_init(&tables->by_finish, params->flows);

	if (err) {
		fq_rr_tables_free(tables);
		/* destroy() follows a failed init(), and frees the tables again. */
		memset(tables, 0, sizeof(*tables));
	}
	return err;
}

static struct netlink_range_validation fq_rr_limit_range = {
	.min = 1,
	.max = FQ_RR_LIMIT_MAX,
};

static struct netlink_range_validation fq_rr_memory_range = {
	.min = 1,
	.max = FQ_RR_MEMORY_MAX,
};

static struct netlink_range_validation fq_rr_flows_range = {
	.min = 1,
	.max = FQ_RR_FLOWS_MAX,
};

static struct netlink_range_validation fq_rr_quantum_range = {
	.min = 1,
	.max = FQ_RR_QUANTUM_MAX,
};

static struct netlink_range_validation fq_rr_perturb_range = {
	.max = FQ_RR_PERTURB_MAX,
};

static struct netlink_range_validation fq_rr_reserve_range = {
	.max = FQ_RR_LIMIT_MAX,
};

static struct netlink_range_validation fq_rr_weight_range = {
	.max = FQ_RR_WEIGHT_MAX,
};

static const struct nla_policy fq_rr_policy[TCA_FQ_RR_MAX + 1] = {
	[TCA_FQ_RR_LIMIT]	= NLA_POLICY_FULL_RANGE(NLA_U32,
							&fq_rr_limit_range),
	[TCA_FQ_RR_MEMORY_LIMIT] = NLA_POLICY_FULL_RANGE(NLA_U32,
							 &fq_rr_memory_range),
	[TCA_FQ_RR_FLOWS]	= NLA_POLICY_FULL_RANGE(NLA_U32,
							&fq_rr_flows_range),
	[TCA_FQ_RR_SERVICE]	= NLA_POLICY_MAX(NLA_U32, FQ_RR_SERVICE_MAX),
	[TCA_FQ_RR_OVERFLOW]	= NLA_POLICY_MAX(NLA_U32, FQ_RR_OVERFLOW_MAX),
	[TCA_FQ_RR_LONGEST]	= NLA_POLICY_MAX(NLA_U32, FQ_RR_LONGEST_MAX),
	[TCA_FQ_RR_QUANTUM]	= NLA_POLICY_FULL_RANGE(NLA_U32,
							&fq_rr_quantum_range),
	[TCA_FQ_RR_CLASSIFY]	= NLA_POLICY_MAX(NLA_U32, FQ_RR_CLASSIFY_MAX),
	[TCA_FQ_RR_WEIGH]	= NLA_POLICY_MAX(NLA_U32, FQ_RR_WEIGH_MAX),
	[TCA_FQ_RR_WEIGHTS]	= { .type = NLA_BINARY,
				    .len = FQ_RR_WEIGHTS_MAX * sizeof(u32) },
	[TCA_FQ_RR_PERTURB]	= NLA_POLICY_FULL_RANGE(NLA_U32,
							&fq_rr_perturb_range),
	[TCA_FQ_RR_FLAGS]	= NLA_POLICY_BITFIELD32(FQ_RR_F_SETTABLE),
	[TCA_FQ_RR_RESERVE]	= NLA_POLICY_FULL_RANGE(NLA_U32,
							&fq_rr_reserve_range),
};

static const struct nla_policy fq_rr_class_policy[TCA_FQ_RR_MAX + 1] = {
	[TCA_FQ_RR_CLASS_WEIGHT] = NLA_POLICY_FULL_RANGE(NLA_U32,
							 &fq_rr_weight_range),
};

/* Copy a list of weights to the parameters. */
static int fq_rr_weights_parse(struct fq_rr_params *params,
			       const struct nlattr *attr,
			       struct netlink_ext_ack *extack)
{
	u32 weights[FQ_RR_WEIGHTS_MAX], count, i;

	count = nla_len(attr) / sizeof(u32);
	if (!count || nla_len(attr) % sizeof(u32)) {
		NL_SET_ERR_MSG_ATTR(extack, attr,
				    "weights must be an array of 1 to 16 values of 32 bits");
		return -EINVAL;
	}

	nla_memcpy(weights, attr, sizeof(weights));
	for (i = 0; i < count; i++) {
		if (!weights[i] || weights[i] > FQ_RR_WEIGHT_MAX) {
			NL_SET_ERR_MSG_ATTR(extack, attr,
					    "each of the weights must be 1 to 1024");
			return -EINVAL;
		}
		params->weights[i] = weights[i];
	}
	/* A list with only the weight 1 changes nothing: there is nothing to look up. */
	params->weights_count = count == 1 && weights[0] == 1 ? 0 : count;
	return 0;
}

/* Refuse a reservation that limit or overflow, old or new, does not allow. */
static int fq_rr_reserve_check(const struct fq_rr_params *params,
			       struct netlink_ext_ack *extack)
{
	if (params->reserve > params->limit) {
		NL_SET_ERR_MSG(extack, "reserve must not be more than limit");
		return -EINVAL;
	}
	if (params->reserve && params->overflow == FQ_RR_DROP_LAST) {
		NL_SET_ERR_MSG(extack,
			       "reserve cannot be used with overflow drop-last");
		return -EINVAL;
	}
	return 0;
}

/**
 * fq_rr_params_parse() - apply the attributes of a message to a set of values
 * @params: present values, changed only if all attributes are valid
 * @opt: the attributes
 * @extack: where the error goes
 *
 * Return: 0 or an error.
 */
static int fq_rr_params_parse(struct fq_rr_params *params, struct nlattr *opt,
			      struct netlink_ext_ack *extack)
{
	struct fq_rr_params new = *params;
	const struct {
		int	attr;
		u32	*value;
	} words[] = {
		{ TCA_FQ_RR_LIMIT, &new.limit },
		{ TCA_FQ_RR_MEMORY_LIMIT, &new.memory_limit },
		{ TCA_FQ_RR_FLOWS, &new.flows },
		{ TCA_FQ_RR_SERVICE, &new.service },
		{ TCA_FQ_RR_OVERFLOW, &new.overflow },
		{ TCA_FQ_RR_LONGEST, &new.longest },
		{ TCA_FQ_RR_QUANTUM, &new.quantum },
		{ TCA_FQ_RR_CLASSIFY, &new.classify },
		{ TCA_FQ_RR_WEIGH, &new.weigh },
		{ TCA_FQ_RR_PERTURB, &new.perturb },
		{ TCA_FQ_RR_RESERVE, &new.reserve },
	};
	struct nlattr *tb[TCA_FQ_RR_MAX + 1];
	struct nla_bitfield32 flags;
	int err, i;

	err = nla_parse_nested(tb, TCA_FQ_RR_MAX, opt, fq_rr_policy, extack);
	if (err)
		return err;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (tb[words[i].attr])
			*words[i].value = nla_get_u32(tb[words[i].attr]);
	if (tb[TCA_FQ_RR_FLAGS]) {
		flags = nla_get_bitfield32(tb[TCA_FQ_RR_FLAGS]);
		new.flags = (new.flags & ~flags.selector) | flags.value;
	}
	if (tb[TCA_FQ_RR_WEIGHTS]) {
		err = fq_rr_weights_parse(&new, tb[TCA_FQ_RR_WEIGHTS], extack);
		if (err)
			return err;
	}
	err = fq_rr_reserve_check(&new, extack);
	if (err)
		return err;

	*params = new;
	return 0;
}

/* Under the root lock, with the queues empty. */
static void fq_rr_params_set(struct fq_rr_sched_data *q,
			     const struct fq_rr_params *params)
{
	int i;

	WRITE_ONCE(q->params.limit, params->limit);
	WRITE_ONCE(q->params.memory_limit, params->memory_limit);
	WRITE_ONCE(q->params.flows, params->flows);
	WRITE_ONCE(q->params.service, params->service);
	WRITE_ONCE(q->params.overflow, params->overflow);
	WRITE_ONCE(q->params.longest, params->longest);
	WRITE_ONCE(q->params.quantum, params->quantum);
	WRITE_ONCE(q->params.classify, params->classify);
	WRITE_ONCE(q->params.weigh, params->weigh);
	WRITE_ONCE(q->params.perturb, params->perturb);
	WRITE_ONCE(q->params.reserve, params->reserve);
	WRITE_ONCE(q->params.flags, params->flags);
	WRITE_ONCE(q->params.weights_count, params->weights_count);
	for (i = 0; i < FQ_RR_WEIGHTS_MAX; i++)
		WRITE_ONCE(q->params.weights[i], params->weights[i]);
	WRITE_ONCE(q->quantum, max(params->quantum, FQ_RR_QUANTUM_LEAST));
}

/*
 * Drop packets until the rest fits into the buffer of @params; the old parameters
 * are still in use. The packets that would leave next are dropped. A packet that
 * a parent peeked at is in no queue any more, and stays. Because at least one
 * packet is left, the class of the parent stays active.
 */
static void fq_rr_trim(struct Qdisc *sch, const struct fq_rr_params *params)
{
	struct fq_rr_sched_data *q = qdisc_priv(sch);
	u32 drops = 0, drop_len = 0;
	struct fq_rr_flow *flow;
	struct sk_buff *skb;

	while ((q->packets > params->limit ||
		q->memory > params->memory_limit) && sch->q.qlen > 1) {
		skb = fq_rr_take(q, &flow);
		if (!skb)
			break;
		drops++;
		drop_len += qdisc_pkt_len(skb);
		WRITE_ONCE(sch->q.qlen, sch->q.qlen - 1);
		qdisc_qstats_backlog_dec(sch, skb);
		fq_rr_add(&flow->drops, 1);
		fq_rr_count(&q->stats.trim_drops, 1);
		rtnl_qdisc_drop(skb, sch);
	}
	if (drops)
		qdisc_tree_reduce_backlog(sch, drops, drop_len);
}

/* If the number of queues stays the same, they keep their weights and sums. */
static void fq_rr_flows_keep(struct fq_rr_sched_data *q,
			     struct fq_rr_tables *tables, u32 flows)
{
	u32 i;

	if (flows == q->params.flows) {
		swap(tables->flow, q->t.flow);
		swap(tables->tags, q->t.tags);
		return;
	}

	for (i = 1; i <= min(flows, q->params.flows); i++)
		tables->flow[i].class_weight = q->t.flow[i].class_weight;
	fq_rr_count(&q->stats.rehashes, 1);
}

static int fq_rr_change(struct Qdisc *sch, struct nlattr *opt,
			struct netlink_ext_ack *extack)
{
	struct fq_rr_sched_data *q = qdisc_priv(sch);
	struct sk_buff *list, *tail;
	struct fq_rr_params params;
	struct fq_rr_tables tables;
	u32 perturb;
	int err;

	/* Only this function writes the parameters, under RTNL. */
	params = q->params;
	err = fq_rr_params_parse(&params, opt, extack);
	if (err)
		return err;

	err = fq_rr_tables_init(&tables, &params);
	if (err)
		return err;

	sch_tree_lock(sch);

	fq_rr_trim(sch, &params);
	spin_lock(&q->lock);
	list = fq_rr_collect(q, &tail);
	fq_rr_flows_keep(q, &tables, params.flows);
	swap(q->t, tables);
	perturb = q->params.perturb;
	fq_rr_params_set(q, &params);
	fq_rr_restore(q, list);
	spin_unlock(&q->lock);

	sch_tree_unlock(sch);

	fq_rr_tables_free(&tables);
	if (params.perturb && params.perturb != perturb)
		mod_timer(&q->perturb, jiffies + params.perturb * HZ);
	return 0;
}

static int fq_rr_init(struct Qdisc *sch, struct nlattr *opt,
		      struct netlink_ext_ack *extack)
{
	struct fq_rr_sched_data *q = qdisc_priv(sch);
	struct fq_rr_params params = {
		.limit		= FQ_RR_DEFAULT_LIMIT,
		.memory_limit	= FQ_RR_DEFAULT_MEMORY,
		.flows		= FQ_RR_DEFAULT_FLOWS,
		.service	= FQ_RR_SERVICE_RR,
		.overflow	= FQ_RR_DROP_TAIL_OF_LONGEST,
		.longest	= FQ_RR_LONGEST_PACKETS,
		.classify	= FQ_RR_CLASSIFY_FLOW,
		.weigh		= FQ_RR_WEIGH_PRIORITY,
		.flags		= FQ_RR_F_SPLIT_GSO,
	};
	int err, i;

	q->sch = sch;
	spin_lock_init(&q->lock);
	INIT_LIST_HEAD(&q->round);
	for (i = 0; i < FQ_RR_RUNS; i++)
		INIT_LIST_HEAD(&q->runs[i]);
	timer_setup(&q->perturb, fq_rr_perturb, TIMER_DEFERRABLE);
	get_random_bytes(&q->key, sizeof(q->key));

	err = tcf_block_get(&q->block, &q->filter_list, sch, extack);
	if (err)
		return err;

	params.quantum = clamp(psched_mtu(qdisc_dev(sch)), 1U,
			       FQ_RR_QUANTUM_MAX);
	if (opt) {
		err = fq_rr_params_parse(&params, opt, extack);
		if (err)
			return err;
	}

	/* If this fails, the kernel calls destroy(). */
	err = fq_rr_tables_init(&q->t, &params);
	if (err)
		return err;

	fq_rr_params_set(q, &params);
	if (params.perturb)
		mod_timer(&q->perturb, jiffies + params.perturb * HZ);
	return 0;
}

static void fq_rr_destroy(struct Qdisc *sch)
{
	struct fq_rr_sched_data *q = qdisc_priv(sch);

	WRITE_ONCE(q->params.perturb, 0);
	compat_timer_delete_sync(&q->perturb);
	tcf_block_put(q->block);
	fq_rr_tables_free(&q->t);
}

static int fq_rr_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct fq_rr_sched_data *q = qdisc_priv(sch);
	const struct fq_rr_params *params = &q->params;
	u32 weights[FQ_RR_WEIGHTS_MAX], count, i;
	struct nlattr *opts;

	opts = nla_nest_start(skb, TCA_OPTIONS);
	if (!opts)
		return -EMSGSIZE;

	count = READ_ONCE(params->weights_count);
	for (i = 0; i < count; i++)
		weights[i] = READ_ONCE(params->weights[i]);

	if (nla_put_u32(skb, TCA_FQ_RR_LIMIT, READ_ONCE(params->limit)) ||
	    nla_put_u32(skb, TCA_FQ_RR_MEMORY_LIMIT,
			READ_ONCE(params->memory_limit)) ||
	    nla_put_u32(skb, TCA_FQ_RR_FLOWS, READ_ONCE(params->flows)) ||
	    nla_put_u32(skb, TCA_FQ_RR_SERVICE, READ_ONCE(params->service)) ||
	    nla_put_u32(skb, TCA_FQ_RR_OVERFLOW, READ_ONCE(params->overflow)) ||
	    nla_put_u32(skb, TCA_FQ_RR_LONGEST, READ_ONCE(params->longest)) ||
	    nla_put_u32(skb, TCA_FQ_RR_QUANTUM, READ_ONCE(params->quantum)) ||
	    nla_put_u32(skb, TCA_FQ_RR_CLASSIFY, READ_ONCE(params->classify)) ||
	    nla_put_u32(skb, TCA_FQ_RR_WEIGH, READ_ONCE(params->weigh)) ||
	    (count && nla_put(skb, TCA_FQ_RR_WEIGHTS,
			      count * sizeof(*weights), weights)) ||
	    nla_put_u32(skb, TCA_FQ_RR_PERTURB, READ_ONCE(params->perturb)) ||
	    nla_put_u32(skb, TCA_FQ_RR_RESERVE, READ_ONCE(params->reserve)) ||
	    nla_put_bitfield32(skb, TCA_FQ_RR_FLAGS, READ_ONCE(params->flags),
			       FQ_RR_F_SETTABLE)) {
		nla_nest_cancel(skb, opts);
		return -EMSGSIZE;
	}

	return nla_nest_end(skb, opts);
}

/* Length of the longest queue, packets or bytes as the option longest says. */
static u32 fq_rr_longest_now(const struct fq_rr_sched_data *q)
{
	if (READ_ONCE(q->params.overflow) == FQ_RR_DROP_LAST)
		return 0;
	if (READ_ONCE(q->params.longest) == FQ_RR_LONGEST_PACKETS)
		return READ_ONCE(q->t.lengths.longest);

	/* The top never moves; its key is 0 while the heap is empty. */
	return READ_ONCE(q->t.by_len.node[FQ_RR_HEAP_TOP].key);
}

static int fq_rr_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct fq_rr_sched_data *q = qdisc_priv(sch);
	struct tc_fq_rr_xstats st = {
		.type	= TC_FQ_RR_XSTATS_QDISC,
		.qdisc	= {
			.flows		= READ_ONCE(q->stats.flows),
			.flows_max	= READ_ONCE(q->stats.flows_max),
			.longest	= fq_rr_longest_now(q),
			.packets_max	= READ_ONCE(q->stats.packets_max),
			.memory		= READ_ONCE(q->memory),
			.memory_max	= READ_ONCE(q->stats.memory_max),
			.quantum	= READ_ONCE(q->quantum),
			.owners		= READ_ONCE(q->stats.owners),
			.new_flows	= READ_ONCE(q->stats.new_flows),
			.collisions	= READ_ONCE(q->stats.collisions),
			.last_drops	= READ_ONCE(q->stats.last_drops),
			.longest_drops	= READ_ONCE(q->stats.longest_drops),
			.longest_events	= READ_ONCE(q->stats.longest_events),
			.memory_drops	= READ_ONCE(q->stats.memory_drops),
			.own_drops	= READ_ONCE(q->stats.own_drops),
			.trim_drops	= READ_ONCE(q->stats.trim_drops),
			.rehashes	= READ_ONCE(q->stats.rehashes),
			.moved_flows	= READ_ONCE(q->stats.moved_flows),
			.refused	= READ_ONCE(q->stats.refused),
		},
	};

	return gnet_stats_copy_app(d, &st, sizeof(st));
}

static struct Qdisc *fq_rr_leaf(struct Qdisc *sch, unsigned long arg)
{
	return NULL;
}

/* Every queue is a class, from 1 to flows. */
static unsigned long fq_rr_find(struct Qdisc *sch, u32 classid)
{
	struct fq_rr_sched_data *q = qdisc_priv(sch);
	u32 id = TC_H_MIN(classid);

	return id <= q->params.flows ? id : 0;
}

static unsigned long fq_rr_bind(struct Qdisc *sch, unsigned long parent,
				u32 classid)
{
	return 0;
}

static void fq_rr_unbind(struct Qdisc *sch, unsigned long cl)
{
}

static struct tcf_block *fq_rr_tcf_block(struct Qdisc *sch, unsigned long cl,
					 struct netlink_ext_ack *extack)
{
	struct fq_rr_sched_data *q = qdisc_priv(sch);

	return cl ? NULL : q->block;
}

static int fq_rr_class_change(struct Qdisc *sch, u32 classid, u32 parentid,
			      struct nlattr **tca, unsigned long *arg,
			      struct netlink_ext_ack *extack)
{
	struct fq_rr_sched_data *q = qdisc_priv(sch);
	struct nlattr *tb[TCA_FQ_RR_MAX + 1];
	struct fq_rr_flow *flow;
	int err;

	if (!*arg) {
		NL_SET_ERR_MSG(extack,
			       "no such class: the classes are the queues, from 1 to flows");
		return -ENOENT;
	}
	if (!tca[TCA_OPTIONS]) {
		NL_SET_ERR_MSG(extack, "weight is missing: a class needs this option");
		return -EINVAL;
	}
	err = nla_parse_nested(tb, TCA_FQ_RR_MAX, tca[TCA_OPTIONS],
			       fq_rr_class_policy, extack);
	if (err)
		return err;
	if (!tb[TCA_FQ_RR_CLASS_WEIGHT]) {
		NL_SET_ERR_MSG(extack, "weight is missing: a class needs this option");
		return -EINVAL;
	}

	/* The new weight applies to later packets; queued ones keep their place. */
	flow = &q->t.flow[*arg];
	sch_tree_lock(sch);
	WRITE_ONCE(flow->class_weight, nla_get_u32(tb[TCA_FQ_RR_CLASS_WEIGHT]));
	sch_tree_unlock(sch);
	return 0;
}

static int fq_rr_dump_class(struct Qdisc *sch, unsigned long cl,
			    struct sk_buff *skb, struct tcmsg *tcm)
{
	struct fq_rr_sched_data *q = qdisc_priv(sch);
	struct nlattr *opts;
	u32 weight;

	tcm->tcm_handle |= TC_H_MIN(cl);
	weight = READ_ONCE(q->t.flow[cl].class_weight);
	if (!weight)
		return 0;

	opts = nla_nest_start(skb, TCA_OPTIONS);
	if (!opts)
		return -EMSGSIZE;
	if (nla_put_u32(skb, TCA_FQ_RR_CLASS_WEIGHT, weight)) {
		nla_nest_cancel(skb, opts);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, opts);
}

static int fq_rr_dump_class_stats(struct Qdisc *sch, unsigned long cl,
				  struct gnet_dump *d)
{
	struct fq_rr_sched_data *q = qdisc_priv(sch);
	const struct fq_rr_flow *flow = &q->t.flow[cl];
	u32 qlen = READ_ONCE(flow->qlen);
	struct tc_fq_rr_xstats st;
	struct gnet_stats_queue qs = {
		.qlen		= qlen,
		.backlog	= READ_ONCE(flow->len),
		.drops		= READ_ONCE(flow->drops),
	};

	/* The complete union is copied to user space. */
	memset(&st, 0, sizeof(st));
	st.type = TC_FQ_RR_XSTATS_CLASS;
	st.cl.weight = READ_ONCE(flow->weight);
	st.cl.credit = READ_ONCE(flow->credit);
	st.cl.memory = READ_ONCE(flow->memory);
	st.cl.packets_max = max(READ_ONCE(flow->qlen_max), qlen);
	st.cl.collisions = READ_ONCE(flow->collisions);
	st.cl.reserve = READ_ONCE(flow->own);

	if (compat_gnet_stats_copy_basic(d, READ_ONCE(flow->sent_bytes),
					 READ_ONCE(flow->sent)) < 0 ||
	    gnet_stats_copy_queue(d, NULL, &qs, qs.qlen) < 0)
		return -1;

	return gnet_stats_copy_app(d, &st, sizeof(st));
}

/* Only classes that have or had packets, or a weight, are listed. */
static void fq_rr_walk(struct Qdisc *sch, struct qdisc_walker *arg)
{
	struct fq_rr_sched_data *q = qdisc_priv(sch);
	const struct fq_rr_flow *flow;
	u32 id;

	if (arg->stop)
		return;

	for (id = 1; id <= q->params.flows; id++) {
		flow = &q->t.flow[id];
		if (!READ_ONCE(flow->qlen) && !READ_ONCE(flow->sent) &&
		    !READ_ONCE(flow->drops) && !READ_ONCE(flow->class_weight)) {
			arg->count++;
			continue;
		}
		if (!tc_qdisc_stats_dump(sch, id, arg))
			break;
	}
}

static const struct Qdisc_class_ops fq_rr_class_ops = {
	.leaf		= fq_rr_leaf,
	.find		= fq_rr_find,
	.tcf_block	= fq_rr_tcf_block,
	.bind_tcf	= fq_rr_bind,
	.unbind_tcf	= fq_rr_unbind,
	.change		= fq_rr_class_change,
	.dump		= fq_rr_dump_class,
	.dump_stats	= fq_rr_dump_class_stats,
	.walk		= fq_rr_walk,
};

static struct Qdisc_ops fq_rr_qdisc_ops __read_mostly = {
	.cl_ops		= &fq_rr_class_ops,
	.id		= "fq_rr",
	.priv_size	= sizeof(struct fq_rr_sched_data),
	.enqueue	= fq_rr_enqueue,
	.dequeue	= fq_rr_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= fq_rr_init,
	.reset		= fq_rr_reset,
	.destroy	= fq_rr_destroy,
	.change		= fq_rr_change,
	.dump		= fq_rr_dump,
	.dump_stats	= fq_rr_dump_stats,
	.owner		= THIS_MODULE,
};

static int __init fq_rr_module_init(void)
{
	return register_qdisc(&fq_rr_qdisc_ops);
}

static void __exit fq_rr_module_exit(void)
{
	unregister_qdisc(&fq_rr_qdisc_ops);
}

module_init(fq_rr_module_init)
module_exit(fq_rr_module_exit)
MODULE_ALIAS("net-sch-fq_rr");
MODULE_DESCRIPTION("Per-flow round robin with drop-longest-queue queue discipline");
MODULE_VERSION("0.1.0");
MODULE_LICENSE("GPL");
