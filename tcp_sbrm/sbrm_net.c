// SPDX-License-Identifier: GPL-2.0
/*
 * What tcp_sbrm keeps for each network namespace: settings, in
 * net.ipv4.tcp_sbrm.*, and counters, in /proc/net/tcp_sbrm, see tollway_net.h.
 */

#include <linux/math64.h>

#include "sbrm_net.h"
#include "tollway_fixp.h"
#include "tollway_net.h"
#include "tollway_sysctl.h"

/**
 * struct sbrm_net_priv - what hangs off a network namespace
 * @values: the settings; first, see sbrm_net()
 * @common: their table
 * @counters: see &enum sbrm_counter; each event is rare
 */
struct sbrm_net_priv {
	struct sbrm_net		values;
	struct tollway_net	common;
	atomic_long_t		counters[SBRM_COUNTERS];
};

unsigned int sbrm_net_id __read_mostly;

/**
 * sbrm_count() - count an event
 * @net: namespace
 * @counter: which
 */
void sbrm_count(const struct net *net, enum sbrm_counter counter)
{
	struct sbrm_net_priv *priv = net_generic(net, sbrm_net_id);

	atomic_long_inc(&priv->counters[counter]);
}

static int sbrm_counters_show(struct seq_file *seq, void *v)
{
	static const char *const names[] = {
		[SBRM_COUNT_NO_ECN]	= "no_ecn",
		[SBRM_COUNT_LATCHED]	= "latched",
		[SBRM_COUNT_NO_IPV4]	= "no_ipv4",
		[SBRM_COUNT_ABSENT]	= "price_absent",
		[SBRM_COUNT_REWRITTEN]	= "price_rewritten",
		[SBRM_COUNT_OUTSIDE]	= "price_outside",
		[SBRM_COUNT_NO_DF]	= "price_no_df",
		[SBRM_COUNT_INVALID]	= "price_invalid",
		[SBRM_COUNT_SIGNED]	= "price_signed",
	};
	struct sbrm_net_priv *priv = net_generic(seq_file_single_net(seq),
						 sbrm_net_id);

	return tollway_net_show(seq, names, priv->counters, SBRM_COUNTERS);
}

static struct mutex *sbrm_net_lock(struct sbrm_net *values)
{
	return &container_of(values, struct sbrm_net_priv, values)->common.lock;
}

/* phi, and its logarithm beside it. */
static int sbrm_proc_phi(COMPAT_CTL_CONST struct ctl_table *ctl, int write,
			 void *buffer, size_t *lenp, loff_t *ppos)
{
	struct sbrm_net *values = container_of(ctl->data, struct sbrm_net, phi);
	u64 phi;
	int err;

	mutex_lock(sbrm_net_lock(values));
	err = tollway_proc_fraction(ctl, write, buffer, lenp, ppos);
	/* From millionths to Q32, its logarithm rounded from Q32 to Q24. */
	if (!err && write) {
		phi = div_u64((u64)values->phi << FIXP_SHIFT, 1000000);
		WRITE_ONCE(values->ln_phi, (fixp_ln(phi) +
			   (1 << (FIXP_SHIFT - SBRM_LN_PHI_SHIFT - 1))) >>
			   (FIXP_SHIFT - SBRM_LN_PHI_SHIFT));
	}
	mutex_unlock(sbrm_net_lock(values));
	return err;
}

/* The table is taken whole or not at all; a shorter list sets the first ones. */
static int sbrm_proc_wtp(COMPAT_CTL_CONST struct ctl_table *ctl, int write,
			 void *buffer, size_t *lenp, loff_t *ppos)
{
	struct sbrm_net *values = container_of(ctl->data, struct sbrm_net, wtp);
	static const int min = 1, max = SBRM_WTP_MAX;
	u32 wtp[SBRM_WTP_CLASSES];
	struct ctl_table fake = {
		.procname = ctl->procname,
		.data = wtp,
		.maxlen = sizeof(wtp),
		.mode = ctl->mode,
		.extra1 = (void *)&min,
		.extra2 = (void *)&max,
	};
	size_t given = *lenp;
	int err, i;

	mutex_lock(sbrm_net_lock(values));
	memcpy(wtp, values->wtp, sizeof(wtp));
	err = proc_dointvec_minmax(&fake, write, buffer, lenp, ppos);
	/* More values than classes stay unread. */
	if (!err && write && *lenp < given)
		err = -EINVAL;
	if (!err && write) {
		for (i = 0; i < SBRM_WTP_CLASSES; i++)
			WRITE_ONCE(values->wtp[i], wtp[i]);
	}
	mutex_unlock(sbrm_net_lock(values));
	return err;
}

static const char *const sbrm_sources[] = {
	[SBRM_SOURCE_DIRECT]	= "direct",
	[SBRM_SOURCE_AIMD]	= "aimd",
	[SBRM_SOURCE_VEGAS]	= "vegas",
	[SBRM_SOURCE_RELATIVE]	= "relative",
	NULL
};

static const char *const sbrm_estimators[] = {
	[SBRM_ESTIMATOR_LOG]	= "log",
	[SBRM_ESTIMATOR_RAW]	= "raw",
	[SBRM_ESTIMATOR_HISTORY] = "history",
	[SBRM_ESTIMATOR_FOUR_BIT] = "four-bit",
	[SBRM_ESTIMATOR_EXPLICIT] = "explicit",
	NULL
};

static const char *const sbrm_rtts[] = {
	[SBRM_RTT_LAST]		= "last",
	[SBRM_RTT_MIN]		= "min",
	NULL
};

/* The logarithm of 1.0001 still has three digits in Q24. */
static const struct tollway_fraction sbrm_phi_range = {
	.min_ppm = 1000100,
	.max_ppm = 16 * 1000000,
	.one = 1000000,
};

static const struct sbrm_net sbrm_defaults = {
	/* The price is 1 where a flow has 0.3 Mb/s, 3e-5 at 10 Gb/s. */
	.wtp		= { [0 ... SBRM_WTP_CLASSES - 1] = 25 },
	.source		= SBRM_SOURCE_RELATIVE,
	.kappa		= 26843546,	/* 0.1 */
	/*
	 * With this and a kappa_young of 0.9 a prototype had all paths of CP05's
	 * parking lot within 3 % of their shares from 2 to 6 s; without it long paths
	 * missed theirs by 4 to 9 % after 20 s. At this age a fifth of the difference
	 * is left.
	 */
	.young_ms	= 4000,
	.history_gain	= BIT(26),	/* 1/64 of 2^32 */
	.history	= 50,		/* CP05 5.2.2 */
	.phi		= 2718282,	/* e */
	.ln_phi		= 1U << SBRM_LN_PHI_SHIFT,
	.slow_start	= 1,
	.loss_cut	= SBRM_LOSS_CUT_UNPROVEN,
};

#define SBRM_OFFSET(member)	offsetof(struct sbrm_net, member)

static const struct ctl_table sbrm_table[] = {
	{
		.procname	= "wtp",
		.data		= (void *)SBRM_OFFSET(wtp),
		.maxlen		= sizeof(u32) * SBRM_WTP_CLASSES,
		.mode		= 0644,
		.proc_handler	= sbrm_proc_wtp,
	},
	TOLLWAY_SETTING_FRACTION("kappa", SBRM_OFFSET(kappa),
				 1, 10 * 1000000, SBRM_KAPPA_ONE),
	TOLLWAY_SETTING_FRACTION("kappa_young", SBRM_OFFSET(kappa_young),
				 0, 10 * 1000000, SBRM_KAPPA_ONE),
	TOLLWAY_SETTING_NUMBER("young_ms", SBRM_OFFSET(young_ms),
			       1, 3600 * 1000),
	TOLLWAY_SETTING_FRACTION("history_gain", SBRM_OFFSET(history_gain),
				 1, 1000000, 1ULL << 32),
	TOLLWAY_SETTING_CHOICE("source", SBRM_OFFSET(source), sbrm_sources),
	TOLLWAY_SETTING_CHOICE("estimator", SBRM_OFFSET(estimator),
			       sbrm_estimators),
	TOLLWAY_SETTING_NUMBER("kappa_window", SBRM_OFFSET(kappa_window),
			       0, 1 << 24),
	TOLLWAY_SETTING_NUMBER("history", SBRM_OFFSET(history), 1, 64),
	TOLLWAY_SETTING("phi", SBRM_OFFSET(phi), sbrm_proc_phi,
			&sbrm_phi_range, NULL),
	TOLLWAY_SETTING_CHOICE("rtt", SBRM_OFFSET(rtt), sbrm_rtts),
	TOLLWAY_SETTING_NUMBER("slow_start", SBRM_OFFSET(slow_start), 0, 1),
	TOLLWAY_SETTING_NUMBER("loss_cut", SBRM_OFFSET(loss_cut),
			       0, SBRM_LOSS_CUT_UNPROVEN),
};

static const struct tollway_net_type sbrm_net_type = {
	.name		= "tcp_sbrm",
	.path		= "net/ipv4/tcp_sbrm",
	.settings	= sbrm_table,
	.settings_count	= ARRAY_SIZE(sbrm_table),
	.defaults	= &sbrm_defaults,
	.size		= sizeof(sbrm_defaults),
	.counters_show	= sbrm_counters_show,
};

static int __net_init sbrm_net_init(struct net *net)
{
	struct sbrm_net_priv *priv = net_generic(net, sbrm_net_id);

	BUILD_BUG_ON(offsetof(struct sbrm_net_priv, values));

	return tollway_net_init(net, &priv->common, &priv->values,
				&sbrm_net_type);
}

static void __net_exit sbrm_net_exit(struct net *net)
{
	struct sbrm_net_priv *priv = net_generic(net, sbrm_net_id);

	tollway_net_exit(net, &priv->common, &sbrm_net_type);
}

static struct pernet_operations sbrm_net_ops = {
	.init	= sbrm_net_init,
	.exit	= sbrm_net_exit,
	.id	= &sbrm_net_id,
	.size	= sizeof(struct sbrm_net_priv),
};

/**
 * sbrm_net_register() - give every namespace, present and to come, its settings
 *
 * Return: 0 or a negative error.
 */
int __init sbrm_net_register(void)
{
	return register_pernet_subsys(&sbrm_net_ops);
}

/* Also called when module_init fails, so not __exit. */
void sbrm_net_unregister(void)
{
	unregister_pernet_subsys(&sbrm_net_ops);
}
