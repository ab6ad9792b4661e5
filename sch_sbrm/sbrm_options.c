// SPDX-License-Identifier: GPL-2.0
/*
 * The options of sch_sbrm: netlink attributes, their ranges and defaults
 */

#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/skbuff.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>

#include "compat.h"
#include "pkt_sbrm.h"
#include "sbrm_laws.h"
#include "sbrm_options.h"

/* Bytes of a full packet; converts defaults to bytes. */
#define SBRM_PACKET		1514U

/*
 * The default of devices (txqueuelen). With a larger limit, a gamma of "auto" is
 * smaller, and queues are longer. With a smaller limit, bursts on fast links are
 * dropped.
 */
#define SBRM_DEFAULT_LIMIT	1000U	/* packets */
/* Law delay: 3 ms, the target, at 40 Gb/s, or a round trip of 100 ms at 1.2 Gb/s. */
#define SBRM_DEFAULT_LIMIT_DELAY 10240U
/*
 * Twice the burst of a source at 1 Gb/s, which is what it sends in 64 us (5 packets).
 * With a smaller target such bursts are marked, and the queue becomes empty. A
 * larger one delays each packet.
 */
#define SBRM_DEFAULT_TARGET	10U	/* packets */

/*
 * The parameters of REM (5.2.2) and VQM (5.1.2) in CP05, whose packets have 1000
 * bytes. phi, delta and scale are times 2^32, alpha is times 2^24.
 */
#define SBRM_DEFAULT_PHI	4552665334ULL	/* 1.06 */
#define SBRM_DEFAULT_ALPHA	1677722U	/* 0.1 */
#define SBRM_DEFAULT_DELTA	3865470566U	/* 0.9 */
#define SBRM_DEFAULT_SCALE	3865470566U	/* 0.9 */
#define SBRM_DEFAULT_INTERVAL	1000U		/* us */
#define SBRM_DEFAULT_AVPKT	1000U		/* bytes */
/*
 * Target of the law delay, us. It is a part of the delay of each packet. If it is
 * longer than the pauses of the link (of a shaper or a radio), the queue does not become
 * empty in them. Below 8 Mb/s two full packets take longer, and are the target.
 */
#define SBRM_DEFAULT_DELAY	3000U
/* The thresholds of section VI of ALPHA. */
#define SBRM_DEFAULT_HIGH	50U		/* packets */
#define SBRM_DEFAULT_GOAL	300U		/* packets */

/*
 * With k = 2, a loss-based flow gets the rate of a source of tcp_sbrm with
 * w = 1.22 * 2 / RTT packets/s: 122 at 20 ms, 98 at 25 ms. This is the coupling factor of
 * dualpi2, too. The law delay has a quarter of it, because its sources pay 25 by
 * default, not 100.
 */
#define SBRM_DEFAULT_COUPLING	(2 * SBRM_COUPLING_ONE)
#define SBRM_DEFAULT_COUPLING_DELAY (SBRM_COUPLING_ONE / 2)

/*
 * Bytes. A TCP segment without data has 120 bytes with all options over IPv6, and 190
 * within VXLAN over IPv6. A voice frame has 200 to 220 (G.711, 20 ms). A DNS query with a
 * name of 200 bytes fits. A sender that avoids the price by packets of this size needs
 * six times as many packets, and a fifth of the link for headers.
 */
#define SBRM_DEFAULT_SMALL	256U

/* gamma <= 2^48 times a backlog below 2^31, shifted from Q48 to Q32, fits into 64 bits. */
#define SBRM_LIMIT_MAX		((u32)S32_MAX)

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

static struct netlink_range_validation sbrm_phi_range = {
	.min = SBRM_PHI_ONE + 1,
	.max = SBRM_PHI_MAX,
};

static struct netlink_range_validation sbrm_alpha_range = {
	.min = 1,
	.max = SBRM_ALPHA_MAX,
};

static struct netlink_range_validation sbrm_rate_range = {
	.min = 1,
	.max = SBRM_RATE_MAX,
};

static struct netlink_range_validation sbrm_avpkt_range = {
	.min = 1,
	.max = SBRM_AVPKT_MAX,
};

static struct netlink_range_validation sbrm_interval_range = {
	.min = 1,
	.max = SBRM_INTERVAL_MAX,
};

static struct netlink_range_validation sbrm_delta_range = {
	.min = SBRM_DELTA_MIN,
	.max = U32_MAX,
};

static struct netlink_range_validation sbrm_scale_range = {
	.min = SBRM_SCALE_MIN,
	.max = U32_MAX,
};

static struct netlink_range_validation sbrm_coupling_range = {
	.min = SBRM_COUPLING_MIN,
	.max = SBRM_COUPLING_MAX,
};

static struct netlink_range_validation sbrm_small_range = {
	.max = SBRM_SMALL_MAX,
};

static struct netlink_range_validation sbrm_delay_range = {
	.min = SBRM_DELAY_MIN,
	.max = SBRM_DELAY_MAX,
};

static struct netlink_range_validation sbrm_threshold_range = {
	.min = 1,
	.max = SBRM_LIMIT_MAX - 1,
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
	[TCA_SBRM_FEEDBACK]	= NLA_POLICY_MAX(NLA_U32, SBRM_FEEDBACK_MAX),
	[TCA_SBRM_PHI]		= NLA_POLICY_FULL_RANGE(NLA_U64,
							&sbrm_phi_range),
	[TCA_SBRM_ALPHA]	= NLA_POLICY_FULL_RANGE(NLA_U32,
							&sbrm_alpha_range),
	[TCA_SBRM_RATE]		= NLA_POLICY_FULL_RANGE(NLA_U64,
							&sbrm_rate_range),
	[TCA_SBRM_AVPKT]	= NLA_POLICY_FULL_RANGE(NLA_U32,
							&sbrm_avpkt_range),
	[TCA_SBRM_INTERVAL]	= NLA_POLICY_FULL_RANGE(NLA_U32,
							&sbrm_interval_range),
	[TCA_SBRM_DELTA]	= NLA_POLICY_FULL_RANGE(NLA_U32,
							&sbrm_delta_range),
	[TCA_SBRM_SCALE]	= NLA_POLICY_FULL_RANGE(NLA_U32,
							&sbrm_scale_range),
	[TCA_SBRM_COUPLING]	= NLA_POLICY_FULL_RANGE(NLA_U32,
							&sbrm_coupling_range),
	[TCA_SBRM_SMALL]	= NLA_POLICY_FULL_RANGE(NLA_U32,
							&sbrm_small_range),
	[TCA_SBRM_DELAY]	= NLA_POLICY_FULL_RANGE(NLA_U32,
							&sbrm_delay_range),
	[TCA_SBRM_HIGH]		= NLA_POLICY_FULL_RANGE(NLA_U32,
							&sbrm_threshold_range),
	[TCA_SBRM_LOW]		= NLA_POLICY_FULL_RANGE(NLA_U32,
							&sbrm_target_range),
	[TCA_SBRM_GOAL]		= NLA_POLICY_FULL_RANGE(NLA_U32,
							&sbrm_threshold_range),
};

/* Refuse an option that the law does not have; the message names the laws that have it. */
static int sbrm_options_check(u32 law, struct nlattr **tb,
			      struct netlink_ext_ack *extack)
{
	u32 others = SBRM_LAW_OPTIONS & ~sbrm_laws[law].options;
	int attr = TCA_SBRM_MAX;

	while (attr && !(tb[attr] && others & BIT(attr)))
		attr--;

	switch (attr) {
	case TCA_SBRM_TARGET:
		NL_SET_ERR_MSG_ATTR(extack, tb[attr],
				    "target in packets or bytes needs mark sbrm, rem-pc2 or rem-pc3");
		return -EINVAL;
	case TCA_SBRM_GAMMA:
		NL_SET_ERR_MSG_ATTR(extack, tb[attr],
				    "gamma cannot be used with mark vqm, delay or alpha");
		return -EINVAL;
	case TCA_SBRM_PHI:
		NL_SET_ERR_MSG_ATTR(extack, tb[attr],
				    "phi needs mark rem-pc1, rem-pc2 or rem-pc3");
		return -EINVAL;
	case TCA_SBRM_ALPHA:
		NL_SET_ERR_MSG_ATTR(extack, tb[attr],
				    "alpha needs mark rem-pc3");
		return -EINVAL;
	case TCA_SBRM_RATE:
		NL_SET_ERR_MSG_ATTR(extack, tb[attr],
				    "rate needs mark rem-pc1, rem-pc3 or vqm");
		return -EINVAL;
	case TCA_SBRM_AVPKT:
		NL_SET_ERR_MSG_ATTR(extack, tb[attr],
				    "avpkt needs mark rem-pc1, rem-pc3 or vqm");
		return -EINVAL;
	case TCA_SBRM_INTERVAL:
		NL_SET_ERR_MSG_ATTR(extack, tb[attr],
				    "interval needs mark rem-pc1 or rem-pc3");
		return -EINVAL;
	case TCA_SBRM_DELTA:
		NL_SET_ERR_MSG_ATTR(extack, tb[attr],
				    "delta needs mark rem-pc1 or rem-pc3");
		return -EINVAL;
	case TCA_SBRM_SCALE:
		NL_SET_ERR_MSG_ATTR(extack, tb[attr],
				    "scale needs mark vqm");
		return -EINVAL;
	case TCA_SBRM_DELAY:
		NL_SET_ERR_MSG_ATTR(extack, tb[attr],
				    "a target that is a time needs mark delay");
		return -EINVAL;
	case TCA_SBRM_HIGH:
	case TCA_SBRM_LOW:
	case TCA_SBRM_GOAL:
		NL_SET_ERR_MSG_ATTR(extack, tb[attr],
				    "high, low and goal need mark alpha");
		return -EINVAL;
	}
	return 0;
}

/* Defaults of the options that all laws have. */
static void sbrm_common_default(struct sbrm_params *params)
{
	bool delay = params->law == SBRM_LAW_DELAY;
	u32 limit = delay ? SBRM_DEFAULT_LIMIT_DELAY : SBRM_DEFAULT_LIMIT;

	if (!(params->chosen & BIT(TCA_SBRM_COUPLING)))
		params->coupling = delay ? SBRM_DEFAULT_COUPLING_DELAY :
					   SBRM_DEFAULT_COUPLING;
	if (!(params->chosen & BIT(TCA_SBRM_LIMIT)))
		params->limit = params->flags & SBRM_F_BYTES ?
				limit * SBRM_PACKET : limit;
}

/* Default thresholds of the law alpha. */
static void sbrm_thresholds_default(struct sbrm_params *params)
{
	u32 unit = params->flags & SBRM_F_BYTES ? SBRM_PACKET : 1;

	params->high = SBRM_DEFAULT_HIGH * unit;
	params->low = params->high / 2;
	params->goal = SBRM_DEFAULT_GOAL * unit;
	params->chosen &= ~BIT(TCA_SBRM_LOW);
}

/* Defaults of the options of a law. */
static void sbrm_law_default(struct sbrm_params *params, u32 law)
{
	params->law = law;
	params->gamma = sbrm_laws[law].gamma;
	params->phi = SBRM_DEFAULT_PHI;
	params->alpha = SBRM_DEFAULT_ALPHA;
	params->interval = SBRM_DEFAULT_INTERVAL;
	params->delta = SBRM_DEFAULT_DELTA;
	params->scale = SBRM_DEFAULT_SCALE;
	params->delay = SBRM_DEFAULT_DELAY;
	params->flags &= ~(SBRM_F_GAMMA_AUTO | SBRM_F_SPARSE);
	if (law == SBRM_LAW_DELAY)
		params->flags |= SBRM_F_SPARSE;
	if (!params->gamma && sbrm_laws[law].options & BIT(TCA_SBRM_GAMMA))
		params->flags |= SBRM_F_GAMMA_AUTO;
	sbrm_thresholds_default(params);
	sbrm_common_default(params);
}

/* Options for packets that cannot be marked. */
static int sbrm_parse_classic(struct sbrm_params *new, struct nlattr **tb,
			      struct netlink_ext_ack *extack)
{
	bool coupled = !(new->flags & (SBRM_F_NODROP | SBRM_F_PRICE_DROP));

	if (!(new->flags & SBRM_F_ECN) && new->flags & SBRM_F_NODROP) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_SBRM_FLAGS],
				    "nodrop needs ecn: without it the price would have no effect");
		return -EINVAL;
	}
	if (new->flags & SBRM_F_NODROP && new->flags & SBRM_F_PRICE_DROP) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_SBRM_FLAGS],
				    "nodrop conflicts with price-drop");
		return -EINVAL;
	}
	if (new->flags & SBRM_F_L4S_ECT &&
	    !(new->flags & SBRM_F_ECN && coupled)) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_SBRM_FLAGS],
				    "l4s-ect needs ecn, and cannot be used with nodrop or price-drop");
		return -EINVAL;
	}
	if (tb[TCA_SBRM_COUPLING] && !coupled) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_SBRM_COUPLING],
				    "coupling cannot be used with nodrop or price-drop");
		return -EINVAL;
	}
	if (tb[TCA_SBRM_SMALL] && !coupled) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_SBRM_SMALL],
				    "small cannot be used with nodrop or price-drop");
		return -EINVAL;
	}

	if (tb[TCA_SBRM_COUPLING]) {
		new->coupling = nla_get_u32(tb[TCA_SBRM_COUPLING]);
		new->chosen |= BIT(TCA_SBRM_COUPLING);
	}
	if (tb[TCA_SBRM_SMALL])
		new->small = nla_get_u32(tb[TCA_SBRM_SMALL]);
	return 0;
}

/* The thresholds of the law alpha, and how its bits are sent. */
static int sbrm_parse_alpha(struct sbrm_params *new, struct nlattr **tb,
			    struct netlink_ext_ack *extack)
{
	bool alpha = new->law == SBRM_LAW_ALPHA;

	if (!alpha && new->feedback == SBRM_FEEDBACK_TWO_BIT) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_SBRM_FEEDBACK],
				    "feedback two-bit needs mark alpha");
		return -EINVAL;
	}
	if (!alpha)
		return 0;
	if (new->feedback != SBRM_FEEDBACK_TWO_BIT &&
	    new->feedback != SBRM_FEEDBACK_MARK) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_SBRM_FEEDBACK],
				    "mark alpha has no price, use feedback two-bit or mark");
		return -EINVAL;
	}

	if (tb[TCA_SBRM_HIGH])
		new->high = nla_get_u32(tb[TCA_SBRM_HIGH]);
	if (tb[TCA_SBRM_GOAL])
		new->goal = nla_get_u32(tb[TCA_SBRM_GOAL]);
	if (tb[TCA_SBRM_LOW]) {
		new->low = nla_get_u32(tb[TCA_SBRM_LOW]);
		new->chosen |= BIT(TCA_SBRM_LOW);
	} else if (!(new->chosen & BIT(TCA_SBRM_LOW))) {
		new->low = new->high / 2;
	}
	if (new->low >= new->high || new->high >= new->goal ||
	    new->goal >= new->limit) {
		NL_SET_ERR_MSG(extack,
			       "low must be below high, high below goal, and goal below limit");
		return -EINVAL;
	}
	return 0;
}

/*
 * The law of a new queue if the user names none. A target in packets or bytes, or a
 * gamma, selects the law sbrm, which has both: it was the default before the law delay
 * existed.
 */
static u32 sbrm_law_first(const struct nlattr *opt)
{
	if (opt && (nla_find_nested(opt, TCA_SBRM_TARGET) ||
		    nla_find_nested(opt, TCA_SBRM_GAMMA)))
		return SBRM_LAW_SBRM;
	return SBRM_LAW_DELAY;
}

/**
 * sbrm_params_init() - the values of a new queue
 * @params: result
 * @opt: attributes that will be applied to them; NULL for none
 */
void sbrm_params_init(struct sbrm_params *params, const struct nlattr *opt)
{
	*params = (struct sbrm_params) {
		.target		= SBRM_DEFAULT_TARGET,
		.avpkt		= SBRM_DEFAULT_AVPKT,
		.feedback	= SBRM_FEEDBACK_MARK,
		.small		= SBRM_DEFAULT_SMALL,
		.flags		= SBRM_F_ECN | SBRM_F_SPLIT_GSO | SBRM_F_DITHER,
	};
	sbrm_law_default(params, sbrm_law_first(opt));
	if (params->flags & SBRM_F_GAMMA_AUTO)
		params->gamma = sbrm_gamma_auto(params);
}

/**
 * sbrm_params_parse() - apply the attributes of a message to a set of values
 * @params: present values, changed only if all attributes are valid
 * @opt: %TCA_OPTIONS
 * @reset_stats: are the statistics to start again?
 * @extack: where the error goes
 *
 * Return: 0 or a negative error.
 */
int sbrm_params_parse(struct sbrm_params *params, struct nlattr *opt,
		      bool *reset_stats, struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_SBRM_MAX + 1];
	struct sbrm_params new = *params;
	int err;

	err = nla_parse_nested(tb, TCA_SBRM_MAX, opt, sbrm_policy, extack);
	if (err)
		return err;

	if (tb[TCA_SBRM_LAW] && nla_get_u32(tb[TCA_SBRM_LAW]) != new.law)
		sbrm_law_default(&new, nla_get_u32(tb[TCA_SBRM_LAW]));

	err = sbrm_options_check(new.law, tb, extack);
	if (err)
		return err;

	if (tb[TCA_SBRM_FEEDBACK])
		new.feedback = nla_get_u32(tb[TCA_SBRM_FEEDBACK]);
	if (tb[TCA_SBRM_PHI])
		new.phi = nla_get_u64(tb[TCA_SBRM_PHI]);
	if (tb[TCA_SBRM_ALPHA])
		new.alpha = nla_get_u32(tb[TCA_SBRM_ALPHA]);
	if (tb[TCA_SBRM_RATE])
		new.rate = nla_get_u64(tb[TCA_SBRM_RATE]);
	if (tb[TCA_SBRM_AVPKT])
		new.avpkt = nla_get_u32(tb[TCA_SBRM_AVPKT]);
	if (tb[TCA_SBRM_INTERVAL])
		new.interval = nla_get_u32(tb[TCA_SBRM_INTERVAL]);
	if (tb[TCA_SBRM_DELTA])
		new.delta = nla_get_u32(tb[TCA_SBRM_DELTA]);
	if (tb[TCA_SBRM_SCALE])
		new.scale = nla_get_u32(tb[TCA_SBRM_SCALE]);
	if (tb[TCA_SBRM_DELAY])
		new.delay = nla_get_u32(tb[TCA_SBRM_DELAY]);
	if (sbrm_laws[new.law].required & BIT(TCA_SBRM_RATE) && !new.rate) {
		NL_SET_ERR_MSG(extack,
			       "mark rem-pc1, rem-pc3 and vqm need the option rate");
		return -EINVAL;
	}

	if (tb[TCA_SBRM_FLAGS]) {
		struct nla_bitfield32 flags;

		flags = nla_get_bitfield32(tb[TCA_SBRM_FLAGS]);
		new.flags = (new.flags & ~flags.selector) | flags.value;
	}
	err = sbrm_parse_classic(&new, tb, extack);
	if (err)
		return err;

	/* Packets cannot be converted to bytes: use defaults in the new unit. */
	if ((new.flags ^ params->flags) & SBRM_F_BYTES) {
		bool bytes = new.flags & SBRM_F_BYTES;

		new.chosen &= ~BIT(TCA_SBRM_LIMIT);
		sbrm_common_default(&new);
		new.target = bytes ? SBRM_DEFAULT_TARGET * SBRM_PACKET :
				     SBRM_DEFAULT_TARGET;
		sbrm_thresholds_default(&new);
	}
	if (tb[TCA_SBRM_LIMIT]) {
		new.limit = nla_get_u32(tb[TCA_SBRM_LIMIT]);
		new.chosen |= BIT(TCA_SBRM_LIMIT);
	}
	if (tb[TCA_SBRM_TARGET])
		new.target = nla_get_u32(tb[TCA_SBRM_TARGET]);
	if (sbrm_laws[new.law].options & BIT(TCA_SBRM_TARGET) &&
	    new.target >= new.limit) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_SBRM_TARGET] ?:
					    tb[TCA_SBRM_LIMIT],
				    "target must be below limit");
		return -EINVAL;
	}

	err = sbrm_parse_alpha(&new, tb, extack);
	if (err)
		return err;

	if (tb[TCA_SBRM_GAMMA]) {
		new.gamma = nla_get_u64(tb[TCA_SBRM_GAMMA]);
		if (new.gamma)
			new.flags &= ~SBRM_F_GAMMA_AUTO;
		else
			new.flags |= SBRM_F_GAMMA_AUTO;
		if (!new.gamma && sbrm_laws[new.law].gamma) {
			NL_SET_ERR_MSG_ATTR(extack, tb[TCA_SBRM_GAMMA],
					    "gamma auto needs mark sbrm or rem-pc2");
			return -EINVAL;
		}
	}
	if (new.flags & SBRM_F_GAMMA_AUTO)
		new.gamma = sbrm_gamma_auto(&new);

	*reset_stats = tb[TCA_SBRM_RESET_STATS];
	*params = new;
	return 0;
}

/* Dump only the options of the present law. */
static int sbrm_dump_law(struct sk_buff *skb, const struct sbrm_params *params)
{
	u32 options = sbrm_laws[READ_ONCE(params->law)].options;

	if ((options & BIT(TCA_SBRM_PHI) &&
	     nla_put_u64_64bit(skb, TCA_SBRM_PHI, READ_ONCE(params->phi),
			       TCA_SBRM_PAD)) ||
	    (options & BIT(TCA_SBRM_ALPHA) &&
	     nla_put_u32(skb, TCA_SBRM_ALPHA, READ_ONCE(params->alpha))) ||
	    (options & BIT(TCA_SBRM_RATE) &&
	     nla_put_u64_64bit(skb, TCA_SBRM_RATE, READ_ONCE(params->rate),
			       TCA_SBRM_PAD)) ||
	    (options & BIT(TCA_SBRM_AVPKT) &&
	     nla_put_u32(skb, TCA_SBRM_AVPKT, READ_ONCE(params->avpkt))) ||
	    (options & BIT(TCA_SBRM_INTERVAL) &&
	     nla_put_u32(skb, TCA_SBRM_INTERVAL,
			 READ_ONCE(params->interval))) ||
	    (options & BIT(TCA_SBRM_DELTA) &&
	     nla_put_u32(skb, TCA_SBRM_DELTA, READ_ONCE(params->delta))) ||
	    (options & BIT(TCA_SBRM_SCALE) &&
	     nla_put_u32(skb, TCA_SBRM_SCALE, READ_ONCE(params->scale))) ||
	    (options & BIT(TCA_SBRM_DELAY) &&
	     nla_put_u32(skb, TCA_SBRM_DELAY, READ_ONCE(params->delay))) ||
	    (options & BIT(TCA_SBRM_HIGH) &&
	     (nla_put_u32(skb, TCA_SBRM_HIGH, READ_ONCE(params->high)) ||
	      nla_put_u32(skb, TCA_SBRM_LOW, READ_ONCE(params->low)) ||
	      nla_put_u32(skb, TCA_SBRM_GOAL, READ_ONCE(params->goal)))))
		return -EMSGSIZE;

	return 0;
}

/**
 * sbrm_params_dump() - add %TCA_OPTIONS to a message
 * @skb: message
 * @params: present values, which may change during the call
 *
 * Return: length of the message, or -EMSGSIZE.
 */
int sbrm_params_dump(struct sk_buff *skb, const struct sbrm_params *params)
{
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
			       SBRM_F_SETTABLE | SBRM_F_GAMMA_AUTO) ||
	    nla_put_u32(skb, TCA_SBRM_FEEDBACK, READ_ONCE(params->feedback)) ||
	    nla_put_u32(skb, TCA_SBRM_COUPLING, READ_ONCE(params->coupling)) ||
	    nla_put_u32(skb, TCA_SBRM_SMALL, READ_ONCE(params->small)) ||
	    sbrm_dump_law(skb, params)) {
		nla_nest_cancel(skb, opts);
		return -EMSGSIZE;
	}

	return nla_nest_end(skb, opts);
}
