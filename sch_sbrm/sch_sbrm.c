// SPDX-License-Identifier: GPL-2.0
/*
 * Single Bit Resource Marking: a FIFO that charges a price for its backlog
 *
 * Principles:
 * - one FIFO, its backlog b counted in packets (or bytes) as a packet leaves;
 * - the shadow price of the link is gamma [b - target]+, and every packet
 *   that leaves is marked with
 *
 *	m = 1 - exp(-gamma [b - target]+)				(5.4.1)
 *
 *   so that the marks of several queues on a path compose to one minus the
 *   exponential of the sum of their prices;
 * - marking at dequeue shortens the feedback by the time spent in the queue
 *   and charges the head of a burst most;
 * - a source that keeps w / x = p, where p = -ln(1 - m), gets the weighted
 *   proportionally fair rate x: see tcp_sbrm.
 *
 * Source: S. Zimmermann, Congestion Pricing as Scalable, Efficient and Stable
 * Congestion Control for Future IP Networks, 2005 (CP05), section 5.4.
 *
 * Notable differences from the paper:
 * - a packet that is not ECN-capable is dropped with the probability that it
 *   would have been marked with, or left alone (nodrop);
 * - the draws of one flow are not independent but share out its marks evenly
 *	(dither), which leaves the probability as it is and takes most of the
 *	noise out of the price that a source sees: see sbrm_draw();
 * - GSO super-packets are split on enqueue, or else counted by the segments
 *   they carry and priced as one.
 *
 * Everything below runs under the root lock of the qdisc, but for dump, which
 * reads single words.
 */

#include <linux/module.h>
#include <linux/slab.h>
#include <linux/types.h>
#include <linux/kernel.h>
#include <linux/errno.h>
#include <linux/random.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/inet_ecn.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>

#include "compat.h"
#include "pkt_sbrm.h"
#include "tollway_fixp.h"

#define SBRM_DEFAULT_LIMIT	1000U	/* packets */
#define SBRM_DEFAULT_LIMIT_BYTES (1000U * 1514)
#define SBRM_DEFAULT_TARGET	10U	/* packets */
#define SBRM_DEFAULT_TARGET_BYTES (10U * 1514)

/* Backlogs fit 31 bits, so that gamma * backlog fits 64 after the shift. */
#define SBRM_LIMIT_MAX		((u32)S32_MAX)

/* -ln(0.01) in Q48: the price at which 99 % are marked (CP05 5.4.2). */
#define SBRM_PRICE_99_Q48	1296235041853473ULL

/* Flows are told apart by hash, for dithering: 4 KB for each queue. */
#define SBRM_FLOWS		1024

/* One dequeue drops at most this many packets for their price. */
#define SBRM_DROP_RUN		64

/**
 * struct sbrm_params - what the user sets
 * @gamma: price per unit of backlog, Q48, 1 .. 2^48
 * @limit: room, packets or bytes, 1 .. %SBRM_LIMIT_MAX
 * @target: backlog without a price, packets or bytes, below @limit
 * @law: an &enum sbrm_law
 * @flags: %SBRM_F_ bits
 */
struct sbrm_params {
	u64	gamma;
	u32	limit;
	u32	target;
	u32	law;
	u32	flags;
};

/**
 * struct sbrm_sched_data - private data of one queue
 * @params: what the user set
 * @packets: segments in the FIFO
 * @bytes: bytes in the FIFO; unlike qlen and qstats.backlog, neither counts a
 *	packet that a parent peeked at: that one has left and paid
 * @owed: marks that the flows of a hash are owed, in 2^-29: between -1 and 2
 * @stats: counters as dumped; @stats.price and @stats.prob are filled in there
 */
struct sbrm_sched_data {
	struct sbrm_params	params;
	u32			packets;
	u32			bytes;
	s32			owed[SBRM_FLOWS];
	struct tc_sbrm_xstats	stats;
};

/* Segments of a super-packet that came from outside: nobody counted them. */
static u32 sbrm_count_segments(const struct sk_buff *skb)
{
	const struct skb_shared_info *shinfo = skb_shinfo(skb);
	u32 header = skb_transport_offset(skb);
	const struct tcphdr *th;
	struct tcphdr copy;

	if (shinfo->gso_type & (SKB_GSO_TCPV4 | SKB_GSO_TCPV6)) {
		th = skb_header_pointer(skb, header, sizeof(copy), &copy);
		header += th ? __tcp_hdrlen(th) : 0;
	} else {
		header += sizeof(struct udphdr);
	}

	return skb->len <= header ? 1 :
	       DIV_ROUND_UP(skb->len - header, shinfo->gso_size);
}

static u32 sbrm_segments(const struct sk_buff *skb)
{
	if (!skb_is_gso(skb))
		return 1;

	return skb_shinfo(skb)->gso_segs ?: sbrm_count_segments(skb);
}

/* Backlog in the unit of limit and target. */
static u32 sbrm_backlog(const struct sbrm_sched_data *q)
{
	return q->params.flags & SBRM_F_BYTES ? READ_ONCE(q->bytes) :
						READ_ONCE(q->packets);
}

/**
 * sbrm_price() - shadow price of a backlog
 * @params: of the queue
 * @backlog: packets or bytes, below 2^31 and one packet
 *
 * Return: gamma [b - target]+ in Q32. gamma <= 2^48 and b < 2^32, so that the
 * price stays below 2^64.
 */
static u64 sbrm_price(const struct sbrm_params *params, u32 backlog)
{
	if (backlog <= params->target)
		return 0;

	return mul_u64_u32_shr(params->gamma, backlog - params->target,
			       SBRM_GAMMA_SHIFT - FIXP_SHIFT);
}

/* Probability m = 1 - exp(-price), Q32 in 32 bits: the top stands for one. */
static u32 sbrm_probability(u64 price)
{
	return min_t(u64, FIXP_ONE - fixp_exp_neg(price), U32_MAX);
}

/**
 * sbrm_draw() - shall this packet pay?
 * @q: queue
 * @skb: packet
 * @prob: probability m, Q32, not 0
 *
 * Marks are all a source knows of the price. Independent draws give the share
 * of marks among n packets a variance of m (1 - m) / n, and the rate of the
 * flow with it. So each flow has an account: every packet adds m to what it is
 * owed, a mark takes one off, and the packet is marked with the probability
 * that is owed. Over any stretch a flow gets the sum of its m, to within two,
 * while the place of each mark stays random, so that the marks of several
 * queues on a path still compose as independent ones.
 *
 * Return: true with probability @prob in the long run.
 */
static bool sbrm_draw(struct sbrm_sched_data *q, struct sk_buff *skb, u32 prob)
{
	u32 random = get_random_u32();
	s32 *owed;

	if (!(q->params.flags & SBRM_F_DITHER))
		return random < prob;

	/* From -1 .. 1 before to 2 at most: 2^30 fits. */
	owed = &q->owed[reciprocal_scale(skb_get_hash(skb), SBRM_FLOWS)];
	*owed += prob >> 3;
	if (*owed <= (s32)(random >> 3))
		return false;

	*owed -= 1 << 29;
	return true;
}

/* Take the head off the queue, with all accounts but bstats. */
static struct sk_buff *sbrm_take(struct Qdisc *sch)
{
	struct sbrm_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb = __qdisc_dequeue_head(&sch->q);

	if (skb) {
		qdisc_qstats_backlog_dec(sch, skb);
		WRITE_ONCE(q->packets, q->packets - sbrm_segments(skb));
		WRITE_ONCE(q->bytes, q->bytes - qdisc_pkt_len(skb));
	}
	return skb;
}

static int sbrm_enqueue_one(struct sk_buff *skb, struct Qdisc *sch,
			    struct sk_buff **to_free)
{
	struct sbrm_sched_data *q = qdisc_priv(sch);
	u32 segments = sbrm_segments(skb);
	u32 room = q->params.limit - min(q->params.limit, sbrm_backlog(q));
	u32 size = q->params.flags & SBRM_F_BYTES ? qdisc_pkt_len(skb) :
						    segments;

	/* A packet larger than the limit passes through an empty queue. */
	if (unlikely(size > room && sch->q.qlen)) {
		WRITE_ONCE(q->stats.full_drops,
			   q->stats.full_drops + segments);
		return qdisc_drop(skb, sch, to_free);
	}

	WRITE_ONCE(q->packets, q->packets + segments);
	WRITE_ONCE(q->bytes, q->bytes + qdisc_pkt_len(skb));
	if (sbrm_backlog(q) > q->stats.backlog_max)
		WRITE_ONCE(q->stats.backlog_max, sbrm_backlog(q));
	return qdisc_enqueue_tail(skb, sch);
}

/* Enqueue the segments of a super-packet each for itself. */
static int sbrm_enqueue_split(struct sk_buff *skb, struct Qdisc *sch,
			      struct sk_buff **to_free)
{
	netdev_features_t features = netif_skb_features(skb);
	u32 len = qdisc_pkt_len(skb), queued_len = 0, queued = 0;
	struct sk_buff *segs, *next;

	segs = skb_gso_segment(skb, features & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segs))
		return qdisc_drop(skb, sch, to_free);

	skb_list_walk_safe(segs, segs, next) {
		u32 seg_len = segs->len;

		skb_mark_not_on_list(segs);
		qdisc_skb_cb(segs)->pkt_len = seg_len;
		compat_qdisc_set_pkt_segs(segs, 1);
		if (sbrm_enqueue_one(segs, sch, to_free) == NET_XMIT_SUCCESS) {
			queued_len += seg_len;
			queued++;
		}
	}

	if (!queued) {
		kfree_skb(skb);
		return NET_XMIT_DROP;
	}

	/* The parents count the one packet that they see go in. */
	qdisc_tree_reduce_backlog(sch, 1 - queued, len - queued_len);
	consume_skb(skb);
	return NET_XMIT_SUCCESS;
}

static int sbrm_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			struct sk_buff **to_free)
{
	struct sbrm_sched_data *q = qdisc_priv(sch);

	if (skb_is_gso(skb) && q->params.flags & SBRM_F_SPLIT_GSO)
		return sbrm_enqueue_split(skb, sch, to_free);

	return sbrm_enqueue_one(skb, sch, to_free);
}

/* Charge the price: true if the packet has paid and may leave. */
static bool sbrm_charge(struct sbrm_sched_data *q, struct sk_buff *skb,
			u32 prob, bool may_drop)
{
	u32 flags = q->params.flags;
	u32 segments;

	if (!prob || !sbrm_draw(q, skb, prob))
		return true;

	segments = sbrm_segments(skb);
	if (flags & SBRM_F_ECN) {
		if (INET_ECN_set_ce(skb)) {
			WRITE_ONCE(q->stats.marks, q->stats.marks + segments);
			return true;
		}
		if (flags & SBRM_F_NODROP)
			return true;
	}
	if (!may_drop)
		return true;

	WRITE_ONCE(q->stats.price_drops, q->stats.price_drops + segments);
	return false;
}

static struct sk_buff *sbrm_dequeue(struct Qdisc *sch)
{
	struct sbrm_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb;
	u32 drops = 0;

	for (;;) {
		/* The packet that leaves is still part of the backlog. */
		u32 backlog = sbrm_backlog(q);
		u32 prob = sbrm_probability(sbrm_price(&q->params, backlog));
		u32 segments;

		skb = sbrm_take(sch);
		if (!skb)
			break;

		segments = sbrm_segments(skb);
		WRITE_ONCE(q->stats.packets, q->stats.packets + segments);
		WRITE_ONCE(q->stats.backlog_sum,
			   q->stats.backlog_sum + (u64)backlog * segments);

		/*
		 * The last packet leaves whatever its price: a dequeue that
		 * empties the queue by dropping would deactivate the class of
		 * a parent that is just serving it. With a target of one
		 * packet and up it has no price anyway.
		 */
		if (sbrm_charge(q, skb, prob,
				sch->q.qlen && drops < SBRM_DROP_RUN)) {
			qdisc_bstats_update(sch, skb);
			break;
		}
		drops++;
		/* At once, while another packet keeps the class active. */
		qdisc_tree_reduce_backlog(sch, 1, qdisc_pkt_len(skb));
		kfree_skb(skb);
		qdisc_qstats_drop(sch);
	}

	return skb;
}

static struct sk_buff *sbrm_peek(struct Qdisc *sch)
{
	/* The price is charged as the packet leaves the FIFO for good. */
	return qdisc_peek_dequeued(sch);
}

static void sbrm_reset(struct Qdisc *sch)
{
	struct sbrm_sched_data *q = qdisc_priv(sch);

	qdisc_reset_queue(sch);
	WRITE_ONCE(q->packets, 0);
	WRITE_ONCE(q->bytes, 0);
}

static struct netlink_range_validation sbrm_limit_range = {
	.min = 1,
	.max = SBRM_LIMIT_MAX,
};

static struct netlink_range_validation sbrm_target_range = {
	.max = SBRM_LIMIT_MAX - 1,
};

static struct netlink_range_validation sbrm_gamma_range = {
	.max = SBRM_GAMMA_ONE,
};

static const struct nla_policy sbrm_policy[TCA_SBRM_MAX + 1] = {
	[TCA_SBRM_LAW]		= NLA_POLICY_MAX(NLA_U32, SBRM_LAW_MAX),
	[TCA_SBRM_LIMIT]	= NLA_POLICY_FULL_RANGE(NLA_U32,
							&sbrm_limit_range),
	[TCA_SBRM_TARGET]	= NLA_POLICY_FULL_RANGE(NLA_U32,
							&sbrm_target_range),
	[TCA_SBRM_GAMMA]	= NLA_POLICY_FULL_RANGE(NLA_U64,
							&sbrm_gamma_range),
	[TCA_SBRM_FLAGS]	= NLA_POLICY_BITFIELD32(SBRM_F_SETTABLE),
	[TCA_SBRM_RESET_STATS]	= { .type = NLA_FLAG },
};

/* 99 % marking at the limit, CP05 5.4.2. */
static u64 sbrm_gamma_auto(u32 limit, u32 target)
{
	return clamp_t(u64, div_u64(SBRM_PRICE_99_Q48, limit - target),
		       1, SBRM_GAMMA_ONE);
}

/**
 * sbrm_params_parse() - apply the attributes of a message to a set of values
 * @params: values in force, changed only if all attributes are good
 * @tb: parsed attributes, each within the range of its policy
 * @extack: where the error goes
 *
 * Return: 0 or -EINVAL.
 */
static int sbrm_params_parse(struct sbrm_params *params, struct nlattr **tb,
			     struct netlink_ext_ack *extack)
{
	struct sbrm_params new = *params;

	if (tb[TCA_SBRM_LAW])
		new.law = nla_get_u32(tb[TCA_SBRM_LAW]);

	if (tb[TCA_SBRM_FLAGS]) {
		struct nla_bitfield32 flags;

		flags = nla_get_bitfield32(tb[TCA_SBRM_FLAGS]);
		new.flags = (new.flags & ~flags.selector) | flags.value;
	}
	if (!(new.flags & SBRM_F_ECN) && new.flags & SBRM_F_NODROP) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_SBRM_FLAGS],
				    "nodrop needs ecn: without it nothing would be priced");
		return -EINVAL;
	}

	/* A number of packets means nothing in bytes: start from defaults. */
	if ((new.flags ^ params->flags) & SBRM_F_BYTES) {
		bool bytes = new.flags & SBRM_F_BYTES;

		new.limit = bytes ? SBRM_DEFAULT_LIMIT_BYTES :
				    SBRM_DEFAULT_LIMIT;
		new.target = bytes ? SBRM_DEFAULT_TARGET_BYTES :
				     SBRM_DEFAULT_TARGET;
	}
	if (tb[TCA_SBRM_LIMIT])
		new.limit = nla_get_u32(tb[TCA_SBRM_LIMIT]);
	if (tb[TCA_SBRM_TARGET])
		new.target = nla_get_u32(tb[TCA_SBRM_TARGET]);
	if (new.target >= new.limit) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_SBRM_TARGET] ?:
					    tb[TCA_SBRM_LIMIT],
				    "target must be below limit");
		return -EINVAL;
	}

	if (tb[TCA_SBRM_GAMMA]) {
		new.gamma = nla_get_u64(tb[TCA_SBRM_GAMMA]);
		if (new.gamma)
			new.flags &= ~SBRM_F_GAMMA_AUTO;
		else
			new.flags |= SBRM_F_GAMMA_AUTO;
	}
	if (new.flags & SBRM_F_GAMMA_AUTO)
		new.gamma = sbrm_gamma_auto(new.limit, new.target);

	*params = new;
	return 0;
}

static int sbrm_change(struct Qdisc *sch, struct nlattr *opt,
		       struct netlink_ext_ack *extack)
{
	struct sbrm_sched_data *q = qdisc_priv(sch);
	u32 drops = 0, drop_len = 0;
	struct nlattr *tb[TCA_SBRM_MAX + 1];
	struct sbrm_params params;
	struct sk_buff *skb;
	int err;

	err = nla_parse_nested(tb, TCA_SBRM_MAX, opt, sbrm_policy, extack);
	if (err)
		return err;

	/* Only changes write the parameters, and those hold RTNL. */
	params = q->params;
	err = sbrm_params_parse(&params, tb, extack);
	if (err)
		return err;

	sch_tree_lock(sch);

	WRITE_ONCE(q->params.law, params.law);
	WRITE_ONCE(q->params.gamma, params.gamma);
	WRITE_ONCE(q->params.limit, params.limit);
	WRITE_ONCE(q->params.target, params.target);
	WRITE_ONCE(q->params.flags, params.flags);
	if (tb[TCA_SBRM_RESET_STATS]) {
		memset(&q->stats, 0, sizeof(q->stats));
		q->stats.backlog_max = sbrm_backlog(q);
	}

	/*
	 * A lower limit costs the oldest packets. One that a parent peeked at
	 * is not in the FIFO any more: its class stays active for it.
	 */
	while (sbrm_backlog(q) > params.limit && sch->q.qlen > 1) {
		skb = sbrm_take(sch);
		if (!skb)
			break;
		WRITE_ONCE(q->stats.full_drops,
			   q->stats.full_drops + sbrm_segments(skb));
		drops++;
		drop_len += qdisc_pkt_len(skb);
		rtnl_qdisc_drop(skb, sch);
	}
	if (drops)
		qdisc_tree_reduce_backlog(sch, drops, drop_len);

	sch_tree_unlock(sch);
	return 0;
}

static int sbrm_init(struct Qdisc *sch, struct nlattr *opt,
		     struct netlink_ext_ack *extack)
{
	struct sbrm_sched_data *q = qdisc_priv(sch);

	q->params.law = SBRM_LAW_SBRM;
	q->params.limit = SBRM_DEFAULT_LIMIT;
	q->params.target = SBRM_DEFAULT_TARGET;
	q->params.flags = SBRM_F_ECN | SBRM_F_SPLIT_GSO | SBRM_F_DITHER |
			  SBRM_F_GAMMA_AUTO;
	q->params.gamma = sbrm_gamma_auto(q->params.limit, q->params.target);

	return opt ? sbrm_change(sch, opt, extack) : 0;
}

static int sbrm_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct sbrm_sched_data *q = qdisc_priv(sch);
	const struct sbrm_params *params = &q->params;
	struct nlattr *opts;

	opts = nla_nest_start(skb, TCA_OPTIONS);
	if (!opts)
		return -EMSGSIZE;

	if (nla_put_u32(skb, TCA_SBRM_LAW, READ_ONCE(params->law)) ||
	    nla_put_u32(skb, TCA_SBRM_LIMIT, READ_ONCE(params->limit)) ||
	    nla_put_u32(skb, TCA_SBRM_TARGET, READ_ONCE(params->target)) ||
	    nla_put_u64_64bit(skb, TCA_SBRM_GAMMA, READ_ONCE(params->gamma),
			      TCA_SBRM_PAD) ||
	    nla_put_bitfield32(skb, TCA_SBRM_FLAGS, READ_ONCE(params->flags),
			       SBRM_F_SETTABLE | SBRM_F_GAMMA_AUTO)) {
		nla_nest_cancel(skb, opts);
		return -EMSGSIZE;
	}

	return nla_nest_end(skb, opts);
}

static int sbrm_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct sbrm_sched_data *q = qdisc_priv(sch);
	struct tc_sbrm_xstats st = {
		.packets	= READ_ONCE(q->stats.packets),
		.backlog_sum	= READ_ONCE(q->stats.backlog_sum),
		.marks		= READ_ONCE(q->stats.marks),
		.price_drops	= READ_ONCE(q->stats.price_drops),
		.full_drops	= READ_ONCE(q->stats.full_drops),
		.price		= sbrm_price(&q->params, sbrm_backlog(q)),
		.backlog_max	= READ_ONCE(q->stats.backlog_max),
	};

	st.prob = sbrm_probability(st.price);
	return gnet_stats_copy_app(d, &st, sizeof(st));
}

static struct Qdisc_ops sbrm_qdisc_ops __read_mostly = {
	.id		= "sbrm",
	.priv_size	= sizeof(struct sbrm_sched_data),
	.enqueue	= sbrm_enqueue,
	.dequeue	= sbrm_dequeue,
	.peek		= sbrm_peek,
	.init		= sbrm_init,
	.reset		= sbrm_reset,
	.change		= sbrm_change,
	.dump		= sbrm_dump,
	.dump_stats	= sbrm_dump_stats,
	.owner		= THIS_MODULE,
};

static int __init sbrm_module_init(void)
{
	return register_qdisc(&sbrm_qdisc_ops);
}

static void __exit sbrm_module_exit(void)
{
	unregister_qdisc(&sbrm_qdisc_ops);
}

module_init(sbrm_module_init)
module_exit(sbrm_module_exit)
MODULE_ALIAS("net-sch-sbrm");
MODULE_DESCRIPTION("Single Bit Resource Marking queue discipline");
MODULE_VERSION("0.1.0");
MODULE_LICENSE("GPL");
