// SPDX-License-Identifier: GPL-2.0
/*
 * Single Bit Resource Marking: a queue that charges a price for its use
 *
 * Principles:
 * - one queue, a FIFO but for what sparse flows send (sbrm_sparse.c), its backlog b
 *   counted in packets (or bytes) as a packet leaves;
 * - the link has a shadow price p, which follows from one of the laws: by default
 *   from the delay of the queue (sbrm_delay.c), in CP05 from its backlog, p =
 *   gamma [b - target]+, and others (sbrm_laws.c). Every packet that leaves is
 *   marked with
 *
 *	m = 1 - exp(-p)						(5.4.1)
 *
 *   so that the marks of several queues on a path compose to one minus the
 *   exponential of the sum of their prices;
 * - marking at dequeue shortens the feedback by the time spent in the queue
 *   and charges the head of a burst most;
 * - a source that keeps w / x = p, where p = -ln(1 - m), gets the weighted
 *   proportionally fair rate x: see tcp_sbrm;
 * - other laws give other prices: see sbrm_laws.c. This file knows the queue
 *   and the packets, a law only numbers;
 * - instead of a mark a packet can carry the price itself: see
 *   sbrm_feedback.c;
 * - what cannot carry a mark is dropped with a coupled probability, which asks
 *   of a loss-based flow what the price asks of ours: see sbrm_classic.c.
 *
 * Source: S. Zimmermann, Congestion Pricing as Scalable, Efficient and Stable
 * Congestion Control for Future IP Networks, 2005 (CP05), section 5.4.
 *
 * Notable differences from the paper:
 * - a packet that is not ECN-capable is dropped with the coupled probability, or
 *   with the one that it would have been marked with (price-drop), or left alone
 *   (nodrop); the paper has no such packets;
 * - the draws of one flow are not independent but share out its marks evenly
 *	(dither), which leaves the probability as it is and takes most of the
 *	noise out of the price that a source sees: see sbrm_draw();
 * - GSO super-packets are split on enqueue, or else counted by the segments
 *   they carry and priced as one;
 * - laws with a clock look at it once for a packet: one that joins others
 *   arrives, for the law, when the next one comes or leaves: see
 *   sbrm_arrive().
 *
 * Everything below runs under the root lock of the qdisc, but for dump, which
 * reads single words.
 */

#include <linux/errno.h>
#include <linux/indirect_call_wrapper.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/types.h>
#include <net/inet_ecn.h>
#include <net/pkt_sched.h>

#include "compat.h"
#include "pkt_sbrm.h"
#include "sbrm_accounts.h"
#include "sbrm_classic.h"
#include "sbrm_feedback.h"
#include "sbrm_flow.h"
#include "sbrm_laws.h"
#include "sbrm_options.h"
#include "sbrm_sparse.h"
#include "tollway_fixp.h"
#include "tollway_random.h"
#include "tollway_split.h"

/*
 * One dequeue drops at most this many packets for their price, as it holds the
 * root lock. With more, it holds it for longer; with fewer, more packets leave
 * that should not. At a probability of 0.9 this is one packet in 850, which is
 * 0.9^64.
 */
#define SBRM_DROP_RUN		64

/*
 * A packet is small with so many bytes: a SYN with the options of Linux has 74 over IPv4
 * and 94 over IPv6, and tunnels add to it. With more, what is above the limit takes more
 * time: so it is a twelfth of the limit in full packets, as it is in bytes. With fewer,
 * connections are made late in a full queue.
 */
#define SBRM_SMALL_BYTES	128

/*
 * The debt of a flow, see sbrm_owe(), ends after a second without a packet of it, which
 * is a pause that makes it sparse again (sbrm_sparse.c). With a shorter time, flows whose
 * share is some packets per second do not pay. With a longer one, a connection that has
 * rested loses its first packet, though nobody else is there. The debt cannot end when
 * the queue is empty: it begins so.
 */
#define SBRM_UNPAID_PERIOD	HZ

/**
 * struct sbrm_sched_data - private data of one queue
 * @law: functions of @params.law
 * @coef: @params as the law needs them
 * @state: what the law remembers
 * @params: what the user set
 * @packets: segments in the queue
 * @bytes: bytes in the queue; unlike qlen and qstats.backlog, neither counts a
 *	packet that a parent peeked at: that one has left and paid
 * @untold_len: length of the one packet that has joined the queue and that the law has
 *	not been told of yet, bytes; 0 for none, see sbrm_arrive()
 * @untold_backlog: backlog before this packet came, in the unit of the law. Until the
 *	law has been told of the packet, the law takes this for the backlog. Not valid
 *	while @untold_len is 0
 * @priced: price that @prob is for
 * @prob: probability m of a mark, Q32, of laws with a clock
 * @classic: what packets pay that cannot carry a mark
 * @unpaid: hash of the flow of a packet that should have been dropped for its price, but
 *	was the last one; 0 for none
 * @unpaid_since: when that packet left, jiffies
 * @first: the packet that left last was one of the first part
 * @random: for draws; seeded for each queue
 * @key: for the hash of flows
 * @accounts: what flows are owed, see sbrm_accounts.c
 * @sparse: which packets leave first, see sbrm_sparse.c
 * @stats: counters as dumped; prices and probabilities are filled in there
 */
struct sbrm_sched_data {
	const struct sbrm_law_ops	*law;
	struct sbrm_coef	coef;
	struct sbrm_state	state;
	struct sbrm_params	params;
	u32			packets;
	u32			bytes;
	u32			untold_len;
	u32			untold_backlog;
	u64			priced;
	u64			prob;
	struct sbrm_classic	classic;
	u32			unpaid;
	bool			first;
	unsigned long		unpaid_since;
	u64			random;
	u64			key;
	struct sbrm_account	*accounts;
	struct sbrm_sparse	sparse;
	struct tc_sbrm_xstats	stats;
};

/**
 * struct sbrm_skb_cb - what the queue remembers with a packet
 * @flow: hash of its flow, not 0; 0 while it is not worked out, see sbrm_flow()
 */
struct sbrm_skb_cb {
	u32	flow;
};

static inline struct sbrm_skb_cb *sbrm_skb_cb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct sbrm_skb_cb));
	return (struct sbrm_skb_cb *)qdisc_skb_cb(skb)->data;
}

static inline u32 sbrm_segments(const struct sk_buff *skb)
{
	if (likely(!skb_is_gso(skb)))
		return 1;

	return skb_shinfo(skb)->gso_segs ?: sbrm_count_segments(skb);
}

/* Backlog in the unit of limit and target. */
static u32 sbrm_backlog(const struct sbrm_sched_data *q)
{
	return q->params.flags & SBRM_F_BYTES ? READ_ONCE(q->bytes) :
						READ_ONCE(q->packets);
}

/* The same in the unit of the law. */
static u32 sbrm_law_backlog(const struct sbrm_sched_data *q,
			    const struct sbrm_law_ops *law)
{
	return law->bytes ? READ_ONCE(q->bytes) : sbrm_backlog(q);
}

/* Let a law with a clock see the time, and what came since it last did. */
static inline void sbrm_advance(struct sbrm_sched_data *q)
{
	u32 untold_len = q->untold_len;

	INDIRECT_CALL_1(q->law->advance, sbrm_delay_advance, &q->coef,
			&q->state, ktime_get_ns(),
			untold_len ? q->untold_backlog :
				     sbrm_law_backlog(q, q->law));
	if (untold_len) {
		q->law->arrival(&q->coef, &q->state, untold_len);
		WRITE_ONCE(q->untold_len, 0);
	}
}

/**
 * sbrm_arrive() - let a law with a clock hear of a packet
 * @q: queue, which the packet has not joined
 * @skb: packet
 *
 * To read the clock is expensive beside all else. So the law is not told of a
 * packet that finds others at once, but when the clock is read next: when another
 * one comes, or when one leaves. For the law the packet arrives then. At most one
 * waits in this way, in @q->untold_len with @q->untold_backlog.
 */
static void sbrm_arrive(struct sbrm_sched_data *q, const struct sk_buff *skb)
{
	if (!q->law->arrival) {
		if (!q->packets)
			sbrm_advance(q);
		return;
	}
	if (q->packets && !q->untold_len) {
		WRITE_ONCE(q->untold_backlog, sbrm_backlog(q));
		WRITE_ONCE(q->untold_len, qdisc_pkt_len(skb));
		return;
	}
	sbrm_advance(q);
	q->law->arrival(&q->coef, &q->state, qdisc_pkt_len(skb));
}

/* Shadow price, Q32. */
static u64 sbrm_price(const struct sbrm_law_ops *law, const struct sbrm_coef *coef,
		      const struct sbrm_state *state, u32 backlog)
{
	if (!law->price)
		return state->price;
	return INDIRECT_CALL_1(law->price, sbrm_backlog_price, coef, state,
			       backlog);
}

/*
 * Probability m = 1 - exp(-price), Q32: at most 2^32 - 1, so that it is drawn
 * in 32 bits, and 2^32 where there is nothing to draw.
 */
static u64 sbrm_probability(const struct sbrm_law_ops *law, u64 price)
{
	if (law->certain)
		return price ? FIXP_ONE : 0;

	return min_t(u64, FIXP_ONE - fixp_exp_neg(price), U32_MAX);
}

/* Hash of the flow of a packet, not 0, worked out once for each packet. */
static inline u32 sbrm_flow(const struct sbrm_sched_data *q, struct sk_buff *skb)
{
	struct sbrm_skb_cb *cb = sbrm_skb_cb(skb);

	if (!cb->flow)
		cb->flow = sbrm_flow_find(q->key, skb);
	return cb->flow;
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
static inline bool sbrm_draw(struct sbrm_sched_data *q, struct sk_buff *skb, u32 prob)
{
	u32 random = tollway_random_u32(&q->random);
	s32 *owed;

	if (!(q->params.flags & SBRM_F_DITHER))
		return random < prob;

	/*
	 * From -1 .. 1 before to 2 at most. In 2^-29 that is 2^30: the largest power
	 * that fits a signed word. 3 is 32 less 29.
	 */
	owed = sbrm_account(q->accounts, sbrm_flow(q, skb), prob, jiffies,
			    &q->stats.collisions);
	*owed += prob >> (32 - SBRM_OWED_SHIFT);
	if (*owed <= (s32)(random >> (32 - SBRM_OWED_SHIFT)))
		return false;

	*owed -= 1 << SBRM_OWED_SHIFT;
	return true;
}

/* Take the head off the queue, with all accounts but bstats. */
static inline struct sk_buff *sbrm_take(struct Qdisc *sch, u32 *segments)
{
	struct sbrm_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb = __qdisc_dequeue_head(&sch->q);

	if (skb) {
		*segments = sbrm_segments(skb);
		qdisc_qstats_backlog_dec(sch, skb);
		WRITE_ONCE(q->packets, q->packets - *segments);
		WRITE_ONCE(q->bytes, q->bytes - qdisc_pkt_len(skb));
		q->first = q->sparse.last;
		sbrm_sparse_leave(&q->sparse, skb, qdisc_pkt_len(skb));
	}
	return skb;
}

/* Enqueue the segments of a super-packet each for itself. */
static noinline int sbrm_enqueue_split(struct sk_buff *skb, struct Qdisc *sch,
				       struct sk_buff **to_free)
{
	u32 len = qdisc_pkt_len(skb), queued_len = 0, queued = 0;
	struct sbrm_sched_data *q = qdisc_priv(sch);
	struct sk_buff *segs, *next;

	if (q->params.feedback != SBRM_FEEDBACK_MARK)
		sbrm_feedback_fix_id(skb);

	segs = tollway_split(skb, sch);
	if (!segs)
		return qdisc_drop(skb, sch, to_free);

	skb_list_walk_safe(segs, segs, next) {
		u32 seg_len = qdisc_pkt_len(segs);

		skb_mark_not_on_list(segs);
		if (sch->enqueue(segs, sch, to_free) == NET_XMIT_SUCCESS) {
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

/*
 * Do packets pay the coupled probability that cannot be marked for the price?
 * They are watched for overload, too.
 */
static bool sbrm_is_coupled(const struct sbrm_sched_data *q)
{
	return !(q->params.flags & (SBRM_F_NODROP | SBRM_F_PRICE_DROP));
}

/* ECN field of a packet, as far as the queue is to look at it. */
static u8 sbrm_ecn(const struct sbrm_sched_data *q, struct sk_buff *skb)
{
	return q->params.flags & SBRM_F_ECN ? sbrm_ecn_get(skb) :
					      INET_ECN_NOT_ECT;
}

/* A full queue drops a packet: of those that cannot be marked, keep account. */
static noinline void sbrm_overflow(struct sbrm_sched_data *q, struct sk_buff *skb,
				   u32 segments)
{
	WRITE_ONCE(q->stats.full_drops, q->stats.full_drops + segments);
	q->state.full = true;
	/* Only marks count what is served, too: see sbrm_charge(). */
	if (q->params.feedback == SBRM_FEEDBACK_MARK && sbrm_is_coupled(q) &&
	    sbrm_ecn(q, skb) == INET_ECN_NOT_ECT)
		sbrm_classic_lost(&q->classic,
				  sbrm_classic_class(&q->classic, skb),
				  qdisc_pkt_len(skb));
}

/* Let a packet join the first part of the queue. */
static noinline int sbrm_join_first(struct sk_buff *skb, struct Qdisc *sch)
{
	struct sbrm_sched_data *q = qdisc_priv(sch);
	struct sk_buff *last = q->sparse.last;

	q->sparse.last = skb;
	if (last == sch->q.tail)
		return qdisc_enqueue_tail(skb, sch);

	/* Others have come before it, and leave after it. */
	WRITE_ONCE(q->stats.sparse, q->stats.sparse + sbrm_segments(skb));
	if (last) {
		skb->next = last->next;
		last->next = skb;
		WRITE_ONCE(sch->q.qlen, sch->q.qlen + 1);
	} else {
		__qdisc_enqueue_head(skb, &sch->q);
	}
	qdisc_qstats_backlog_inc(sch, skb);
	return NET_XMIT_SUCCESS;
}

/*
 * The last packet of a queue leaves whatever its price. Where sparse flows leave first,
 * the last one is of a flow that sends much, more often than not, and such a flow without
 * ECN would hardly ever lose one: so the next packet of the flow pays for it.
 */
static void sbrm_owe(struct sbrm_sched_data *q, struct sk_buff *skb)
{
	if (!(q->params.flags & SBRM_F_SPARSE))
		return;
	q->unpaid = sbrm_flow(q, skb);
	q->unpaid_since = jiffies;
}

/* Is a packet that arrives to be dropped for one of its flow that was the last? */
static noinline bool sbrm_settle(struct sbrm_sched_data *q, struct sk_buff *skb,
				 u32 segments)
{
	bool coupled = sbrm_is_coupled(q);

	if (jiffies - q->unpaid_since > SBRM_UNPAID_PERIOD) {
		q->unpaid = 0;
		return false;
	}
	if (q->params.flags & SBRM_F_NODROP ||
	    sbrm_flow(q, skb) != q->unpaid ||
	    sbrm_ecn(q, skb) != INET_ECN_NOT_ECT ||
	    (coupled &&
	     sbrm_classic_class(&q->classic, skb) != SBRM_PAYING))
		return false;

	q->unpaid = 0;
	if (coupled) {
		WRITE_ONCE(q->stats.coupled_drops,
			   q->stats.coupled_drops + segments);
		sbrm_classic_lost(&q->classic, SBRM_PAYING,
				  qdisc_pkt_len(skb));
	} else {
		WRITE_ONCE(q->stats.price_drops,
			   q->stats.price_drops + segments);
	}
	return true;
}

/*
 * Where sparse flows leave first, a full queue still takes small packets, up to twice the
 * limit, or a twelfth more if it is in bytes. Without this, when more flows begin than the
 * queue has room for, those that are connected fill it, and the SYNs of the others, which
 * come again at the same times, are lost: 403 of 1000 flows at 10 Mb/s did not connect
 * within a minute.
 */
static noinline bool sbrm_has_room_small(const struct sbrm_sched_data *q, u32 len,
					 u32 backlog)
{
	u32 room = q->params.limit;

	if (!(q->params.flags & SBRM_F_SPARSE) || len > SBRM_SMALL_BYTES)
		return false;
	if (q->params.flags & SBRM_F_BYTES)
		room /= 12;
	return backlog < q->params.limit || backlog - q->params.limit < room;
}

static int sbrm_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			struct sk_buff **to_free)
{
	struct sbrm_sched_data *q = qdisc_priv(sch);
	u32 segments, backlog, size, len;
	bool sparse, first;

	if (skb_is_gso(skb) && q->params.flags & SBRM_F_SPLIT_GSO)
		return sbrm_enqueue_split(skb, sch, to_free);

	if (q->law->advance)
		sbrm_arrive(q, skb);

	segments = sbrm_segments(skb);
	len = qdisc_pkt_len(skb);
	sparse = q->params.flags & SBRM_F_SPARSE;
	sbrm_skb_cb(skb)->flow = sparse ? sbrm_flow_find(q->key, skb) : 0;
	if (unlikely(q->unpaid) && sbrm_settle(q, skb, segments))
		return qdisc_drop(skb, sch, to_free);

	backlog = sbrm_backlog(q);
	size = q->params.flags & SBRM_F_BYTES ? len : segments;
	/* A packet larger than the limit passes through an empty queue. */
	if (unlikely(size > q->params.limit - min(q->params.limit, backlog) &&
		     sch->q.qlen && !sbrm_has_room_small(q, len, backlog))) {
		sbrm_overflow(q, skb, segments);
		return qdisc_drop(skb, sch, to_free);
	}

	first = sparse && sbrm_sparse_send(&q->sparse, sbrm_skb_cb(skb)->flow,
					   len, jiffies);
	WRITE_ONCE(q->packets, q->packets + segments);
	WRITE_ONCE(q->bytes, q->bytes + len);
	backlog += size;
	if (unlikely(backlog > q->stats.backlog_max))
		WRITE_ONCE(q->stats.backlog_max, backlog);
	if (first)
		return sbrm_join_first(skb, sch);

	q->sparse.joined++;
	return qdisc_enqueue_tail(skb, sch);
}

/* Let the packet carry the price: it always leaves. */
static noinline void sbrm_tell(struct sbrm_sched_data *q, struct sk_buff *skb,
			       u64 price)
{
	u32 segments = sbrm_segments(skb);
	enum sbrm_carry carry;

	if (q->params.feedback == SBRM_FEEDBACK_PRICE)
		carry = sbrm_feedback_price(skb, price, &q->random);
	else if (q->params.feedback == SBRM_FEEDBACK_FOUR_BIT)
		carry = sbrm_feedback_four_bit(skb, price, &q->random);
	else
		carry = sbrm_feedback_two_bit(skb, q->state.bits);

	if (carry == SBRM_UNCARRIED) {
		WRITE_ONCE(q->stats.uncarried, q->stats.uncarried + segments);
		return;
	}
	WRITE_ONCE(q->stats.carried, q->stats.carried + segments);
	if (carry == SBRM_SATURATED)
		WRITE_ONCE(q->stats.saturated, q->stats.saturated + segments);
}

/* The same, not worked out again while a law that has a clock waits for it. */
static u64 sbrm_probability_now(struct sbrm_sched_data *q, u64 price)
{
	if (!q->law->advance)
		return sbrm_probability(q->law, price);

	if (price != q->priced) {
		q->priced = price;
		q->prob = sbrm_probability(q->law, price);
	}
	return q->prob;
}

/* Draw with the probability of a mark: true if this packet is to pay. */
static inline bool sbrm_hit(struct sbrm_sched_data *q, struct sk_buff *skb, u64 price)
{
	u64 prob = sbrm_probability_now(q, price);

	return prob && (prob >= FIXP_ONE || sbrm_draw(q, skb, prob));
}

/*
 * Charge the coupled probability, to a packet that cannot carry a mark or, with
 * l4s-ect, one with ECT(0). Its draws are independent: they are rare, and what
 * the flow gets to see is a loss, not a price. The probability of a drop is at
 * most @most, Q32.
 *
 * Return: true if the packet has paid and may leave.
 */
static bool sbrm_charge_coupled(struct sbrm_sched_data *q, struct sk_buff *skb,
				bool may_drop, u64 most)
{
	u64 prob = sbrm_classic_prob(&q->classic);
	u32 random = tollway_random_u32(&q->random);
	u32 segments;

	if (random >= prob)
		return true;

	segments = sbrm_segments(skb);
	if (q->params.flags & SBRM_F_ECN && sbrm_ecn_set_ce(skb)) {
		WRITE_ONCE(q->stats.marks, q->stats.marks + segments);
		WRITE_ONCE(q->stats.coupled_marks,
			   q->stats.coupled_marks + segments);
		return true;
	}
	if (random >= most)
		return true;
	if (sbrm_classic_class(&q->classic, skb) == SBRM_EXEMPT) {
		WRITE_ONCE(q->stats.spared, q->stats.spared + segments);
		return true;
	}
	if (!may_drop) {
		sbrm_owe(q, skb);
		return true;
	}

	WRITE_ONCE(q->stats.coupled_drops, q->stats.coupled_drops + segments);
	sbrm_classic_lost(&q->classic, SBRM_PAYING, qdisc_pkt_len(skb));
	return false;
}

/*
 * The same of a packet that belongs to an overload: with that of a mark, unless
 * the coupled one is larger.
 */
static noinline bool sbrm_charge_overload(struct sbrm_sched_data *q,
					  struct sk_buff *skb, u64 price, bool may_drop)
{
	u32 segments;

	if (sbrm_classic_prob(&q->classic) > sbrm_probability_now(q, price) &&
	    sbrm_classic_class(&q->classic, skb) == SBRM_PAYING)
		return sbrm_charge_coupled(q, skb, may_drop, FIXP_ONE);
	if (!sbrm_hit(q, skb, price) || !may_drop)
		return true;

	segments = sbrm_segments(skb);
	WRITE_ONCE(q->stats.overload_drops,
		   q->stats.overload_drops + segments);
	sbrm_classic_lost(&q->classic, sbrm_classic_class(&q->classic, skb),
			  qdisc_pkt_len(skb));
	return false;
}

/* Charge the price: true if the packet has paid and may leave. */
static bool sbrm_charge(struct sbrm_sched_data *q, struct sk_buff *skb,
			u64 price, bool may_drop)
{
	u32 flags = q->params.flags;
	u32 segments;

	if (sbrm_is_coupled(q)) {
		u8 ecn;

		sbrm_classic_see(&q->classic, price, qdisc_pkt_len(skb));
		if (!price && !q->classic.mean)
			return true;

		ecn = sbrm_ecn(q, skb);
		if (ecn == INET_ECN_NOT_ECT && unlikely(q->classic.overload) &&
		    sbrm_classic_overloaded(&q->classic, skb))
			return sbrm_charge_overload(q, skb, price, may_drop);
		if (ecn == INET_ECN_NOT_ECT ||
		    (ecn == INET_ECN_ECT_0 && flags & SBRM_F_L4S_ECT))
			return sbrm_charge_coupled(q, skb, may_drop, q->first ?
						   SBRM_COUPLED_FIRST :
						   SBRM_COUPLED_MAX);
	}

	if (!sbrm_hit(q, skb, price))
		return true;

	segments = sbrm_segments(skb);
	if (flags & SBRM_F_ECN) {
		if (sbrm_ecn_set_ce(skb)) {
			WRITE_ONCE(q->stats.marks, q->stats.marks + segments);
			return true;
		}
		if (flags & SBRM_F_NODROP)
			return true;
	}
	if (!may_drop) {
		sbrm_owe(q, skb);
		return true;
	}

	WRITE_ONCE(q->stats.price_drops, q->stats.price_drops + segments);
	return false;
}

static struct sk_buff *sbrm_dequeue(struct Qdisc *sch)
{
	struct sbrm_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb;
	u32 drops = 0;

	if (q->law->advance)
		sbrm_advance(q);
	for (;;) {
		/* The packet that leaves is still part of the backlog. */
		u32 backlog = sbrm_backlog(q);
		u32 segments;
		u64 price;

		skb = sbrm_take(sch, &segments);
		if (!skb)
			break;

		price = sbrm_price(q->law, &q->coef, &q->state, backlog);
		WRITE_ONCE(q->stats.packets, q->stats.packets + segments);
		WRITE_ONCE(q->stats.backlog_sum,
			   q->stats.backlog_sum + (u64)backlog * segments);

		/*
		 * The last packet leaves whatever its price: a dequeue that
		 * empties the queue by dropping would deactivate the class of
		 * a parent that is just serving it. With a target of one
		 * packet and up it has no price anyway.
		 */
		if (q->params.feedback != SBRM_FEEDBACK_MARK) {
			sbrm_tell(q, skb, price);
			qdisc_bstats_update(sch, skb);
			break;
		}
		if (sbrm_charge(q, skb, price,
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
	if (skb && q->law->departure)
		INDIRECT_CALL_1(q->law->departure, sbrm_delay_departure,
				&q->state, qdisc_pkt_len(skb));

	return skb;
}

static struct sk_buff *sbrm_peek(struct Qdisc *sch)
{
	/* The price is charged as the packet leaves the queue for good. */
	return qdisc_peek_dequeued(sch);
}

/* The law starts to remember, now, with a price that another one led to. */
static void sbrm_state_reset(struct sbrm_sched_data *q, u64 price)
{
	/* A dump may see a part of it: no word by itself leads astray. */
	memset(&q->state, 0, sizeof(q->state));
	WRITE_ONCE(q->untold_len, 0);
	q->priced = 0;
	q->prob = 0;
	q->unpaid = 0;
	WRITE_ONCE(q->state.time, q->law->advance ? ktime_get_ns() : 0);
	if (q->law->start)
		q->law->start(&q->state, price);
}

static void sbrm_reset(struct Qdisc *sch)
{
	struct sbrm_sched_data *q = qdisc_priv(sch);

	sbrm_state_reset(q, 0);
	sbrm_classic_reset(&q->classic);
	qdisc_reset_queue(sch);
	sbrm_sparse_reset(&q->sparse);
	WRITE_ONCE(q->packets, 0);
	WRITE_ONCE(q->bytes, 0);
}

/* Under the root lock, or before anyone else sees the queue. */
static void sbrm_params_apply(struct sbrm_sched_data *q,
			      const struct sbrm_params *params)
{
	bool first = !q->law;
	bool other_law = params->law != q->params.law ||
			 (params->flags ^ q->params.flags) & SBRM_F_BYTES;
	struct sbrm_coef from = q->coef;
	u64 price = 0;

	/* The time until now is charged by the old law. */
	if (!first && q->law->advance)
		sbrm_advance(q);
	if (!first)
		price = sbrm_price(q->law, &q->coef, &q->state,
				   sbrm_backlog(q));
	/* That of these is no price: there is one, or there is none. */
	if (!first && q->law->certain)
		price = 0;

	WRITE_ONCE(q->params.law, params->law);
	WRITE_ONCE(q->params.feedback, params->feedback);
	WRITE_ONCE(q->params.gamma, params->gamma);
	WRITE_ONCE(q->params.phi, params->phi);
	WRITE_ONCE(q->params.rate, params->rate);
	WRITE_ONCE(q->params.limit, params->limit);
	WRITE_ONCE(q->params.target, params->target);
	WRITE_ONCE(q->params.alpha, params->alpha);
	WRITE_ONCE(q->params.avpkt, params->avpkt);
	WRITE_ONCE(q->params.interval, params->interval);
	WRITE_ONCE(q->params.delta, params->delta);
	WRITE_ONCE(q->params.scale, params->scale);
	WRITE_ONCE(q->params.coupling, params->coupling);
	WRITE_ONCE(q->params.small, params->small);
	WRITE_ONCE(q->params.delay, params->delay);
	WRITE_ONCE(q->params.high, params->high);
	WRITE_ONCE(q->params.low, params->low);
	WRITE_ONCE(q->params.goal, params->goal);
	q->params.chosen = params->chosen;
	if (params->flags & ~q->params.flags & SBRM_F_SPARSE && !first)
		sbrm_sparse_start(&q->sparse);
	WRITE_ONCE(q->params.flags, params->flags);
	/* Nobody may be asked for it any more: an open one costs each packet a hash. */
	q->unpaid = 0;

	sbrm_classic_set(&q->classic, params->coupling, params->small);
	sbrm_coef_set(&q->coef, params);
	WRITE_ONCE(q->law, &sbrm_laws[params->law]);
	if (first || other_law)
		sbrm_state_reset(q, price);
	else if (q->law->rescale)
		q->law->rescale(&from, &q->coef, &q->state);
}

static int sbrm_change(struct Qdisc *sch, struct nlattr *opt,
		       struct netlink_ext_ack *extack)
{
	struct sbrm_sched_data *q = qdisc_priv(sch);
	u32 drops = 0, drop_len = 0, segments;
	struct sbrm_params params;
	struct sk_buff *skb;
	bool reset_stats, other_limit;
	int err;

	/* Only changes write the parameters, and those hold RTNL. */
	params = q->params;
	err = sbrm_params_parse(&params, opt, &reset_stats, extack);
	if (err)
		return err;

	sch_tree_lock(sch);

	/* Small packets above the limit stay, as long as it is the same. */
	other_limit = params.limit < q->params.limit ||
		      (params.flags ^ q->params.flags) & (SBRM_F_BYTES | SBRM_F_SPARSE);
	sbrm_params_apply(q, &params);
	if (reset_stats) {
		memset(&q->stats, 0, sizeof(q->stats));
		q->stats.backlog_max = sbrm_backlog(q);
		if (params.law == SBRM_LAW_ALPHA) {
			WRITE_ONCE(q->state.cycles, 0);
			WRITE_ONCE(q->state.beyond,
				   !!(q->state.bits & PKT_SBRM_BCN));
			WRITE_ONCE(q->state.cycle_max, 0);
		}
	}

	/*
	 * A lower limit costs the packets that would leave next. One that a parent peeked at
	 * is not in the queue any more: its class stays active for it.
	 */
	while (other_limit && sbrm_backlog(q) > params.limit && sch->q.qlen > 1) {
		skb = sbrm_take(sch, &segments);
		if (!skb)
			break;
		WRITE_ONCE(q->stats.full_drops,
			   q->stats.full_drops + segments);
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
	struct sbrm_params params;

	q->random = get_random_u64();
	q->key = get_random_u64();
	sbrm_params_init(&params, opt);
	sbrm_params_apply(q, &params);
	sbrm_classic_reset(&q->classic);

	/* Where this fails, the core calls sbrm_reset() and sbrm_destroy(). */
	q->accounts = sbrm_accounts_alloc(q->key);
	if (!q->accounts || sbrm_sparse_init(&q->sparse))
		return -ENOMEM;

	return opt ? sbrm_change(sch, opt, extack) : 0;
}

static void sbrm_destroy(struct Qdisc *sch)
{
	struct sbrm_sched_data *q = qdisc_priv(sch);

	kvfree(q->accounts);
	kvfree(q->sparse.buckets);
}

static int sbrm_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct sbrm_sched_data *q = qdisc_priv(sch);

	return sbrm_params_dump(skb, &q->params);
}

/*
 * Single words of a state that may change meanwhile. That of a law which does
 * not count arrivals is shown as the last dequeue left it.
 */
static void sbrm_state_read(struct sbrm_state *state,
			    const struct sbrm_state *from,
			    const struct sbrm_law_ops *law)
{
	memset(state, 0, sizeof(*state));
	state->time = READ_ONCE(from->time);
	state->price = READ_ONCE(from->price);
	if (law->arrival) {
		state->input = READ_ONCE(from->input);
		state->pending = READ_ONCE(from->pending);
	} else if (law->certain) {
		state->cycles = READ_ONCE(from->cycles);
		state->beyond = READ_ONCE(from->beyond);
		state->cycle_max = READ_ONCE(from->cycle_max);
		state->bits = READ_ONCE(from->bits);
	} else {
		state->service = READ_ONCE(from->service);
		state->idle = READ_ONCE(from->idle);
	}
}

static int sbrm_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct sbrm_sched_data *q = qdisc_priv(sch);
	const struct sbrm_law_ops *law = READ_ONCE(q->law);
	struct sbrm_state state;
	u32 backlog = sbrm_backlog(q);
	u32 untold_len = READ_ONCE(q->untold_len);
	u32 untold_backlog = READ_ONCE(q->untold_backlog);
	struct tc_sbrm_xstats st = {
		.packets	= READ_ONCE(q->stats.packets),
		.backlog_sum	= READ_ONCE(q->stats.backlog_sum),
		.marks		= READ_ONCE(q->stats.marks),
		.price_drops	= READ_ONCE(q->stats.price_drops),
		.full_drops	= READ_ONCE(q->stats.full_drops),
		.backlog_max	= READ_ONCE(q->stats.backlog_max),
		.carried	= READ_ONCE(q->stats.carried),
		.uncarried	= READ_ONCE(q->stats.uncarried),
		.saturated	= READ_ONCE(q->stats.saturated),
		.coupled_drops	= READ_ONCE(q->stats.coupled_drops),
		.coupled_marks	= READ_ONCE(q->stats.coupled_marks),
		.spared		= READ_ONCE(q->stats.spared),
		.overload_drops	= READ_ONCE(q->stats.overload_drops),
		.overload	= READ_ONCE(q->classic.overload),
		.collisions	= READ_ONCE(q->stats.collisions),
		.sparse		= READ_ONCE(q->stats.sparse),
	};

	sbrm_state_read(&state, &q->state, law);
	/* As the next packet will find it: only the copy sees the time. */
	if (law->arrival)
		law->advance(&q->coef, &state, ktime_get_ns(),
			     untold_len ? untold_backlog : backlog);
	if (law->arrival && untold_len)
		law->arrival(&q->coef, &state, untold_len);
	if (law->fill_xstats)
		law->fill_xstats(&q->coef, &state, &st);
	st.price = sbrm_price(law, &q->coef, &state, backlog);
	st.prob = min_t(u64, sbrm_probability(law, st.price), U32_MAX);
	st.coupled_prob = min_t(u64, U32_MAX,
				sbrm_coupled(READ_ONCE(q->classic.mean),
					     READ_ONCE(q->classic.coupling),
					     READ_ONCE(q->classic.inverse)));
	return gnet_stats_copy_app(d, &st, sizeof(st));
}

static struct Qdisc_ops sbrm_qdisc_ops __read_mostly = {
	.id		= "sbrm",
	.priv_size	= sizeof(struct sbrm_sched_data),
	.enqueue	= sbrm_enqueue,
	.dequeue	= sbrm_dequeue,
	.peek		= sbrm_peek,
	.init		= sbrm_init,
	.destroy	= sbrm_destroy,
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
