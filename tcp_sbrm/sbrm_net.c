// SPDX-License-Identifier: GPL-2.0
/*
 * What tcp_sbrm keeps for each network namespace: settings, in
 * net.ipv4.tcp_sbrm.*, and counters, in /proc/net/tcp_sbrm.
 *
 * All hosts of an emulated network share one kernel and one module, so nothing
 * here may be a module parameter.
 */

#include <linux/math64.h>
#include <linux/mutex.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/sysctl.h>

#include "sbrm.h"
#include "tollway_carrier.h"
#include "tollway_sysctl.h"

/**
 * struct sbrm_net_priv - what hangs off a network namespace
 * @values: the settings; first, see sbrm_net()
 * @lock: held to write or show a setting that has several words
 * @carrier: hooks for the price field
 * @counters: see &enum sbrm_counter; each event is rare
 * @header: of the registered table
 * @table: copy of the table that points into @values
 */
struct sbrm_net_priv {
	struct sbrm_net		values;
	struct mutex		lock;	/* of wtp, of phi */
	struct tollway_carrier_net carrier;
	atomic_long_t		counters[SBRM_COUNTERS];
	struct ctl_table_header	*header;
	struct ctl_table	*table;
};

unsigned int sbrm_net_id __read_mostly;

/**
 * sbrm_carrier_net() - hooks of a namespace for the price field
 * @net: namespace
 *
 * Return: their state; it lives as long as the namespace.
 */
struct tollway_carrier_net *sbrm_carrier_net(const struct net *net)
{
	struct sbrm_net_priv *priv = net_generic(net, sbrm_net_id);

	return &priv->carrier;
}

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
	int i;

	for (i = 0; i < SBRM_COUNTERS; i++)
		seq_printf(seq, "%s %lu\n", names[i],
			   (unsigned long)atomic_long_read(&priv->counters[i]));
	return 0;
}

/* The kernel calls handlers of sysctls without a lock, and several at once. */
static struct mutex *sbrm_net_lock(struct sbrm_net *values)
{
	return &container_of(values, struct sbrm_net_priv, values)->lock;
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

static const struct tollway_fraction sbrm_kappa_range = {
	.min_ppm = 1,
	.max_ppm = 10 * 1000000,
	.one = 1ULL << 28,
};

static const struct tollway_fraction sbrm_kappa_young_range = {
	.max_ppm = 10 * 1000000,
	.one = 1ULL << 28,
};

static const struct tollway_fraction sbrm_gain_range = {
	.min_ppm = 1,
	.max_ppm = 1000000,
	.one = 1ULL << 32,
};

/* The logarithm of 1.0001 still has three digits in Q24. */
static const struct tollway_fraction sbrm_phi_range = {
	.min_ppm = 1000100,
	.max_ppm = 16 * 1000000,
	.one = 1000000,
};

static const unsigned int sbrm_zero;
static const unsigned int sbrm_one = 1;
static const unsigned int sbrm_loss_cut_max = SBRM_LOSS_CUT_UNPROVEN;
static const unsigned int sbrm_young_ms_max = 3600 * 1000;
static const unsigned int sbrm_history_max = 64;
static const unsigned int sbrm_window_max = 1 << 24;

static const struct sbrm_net sbrm_defaults = {
	/* The price is 1 where a flow has 0.3 Mb/s, 3e-5 at 10 Gb/s. */
	.wtp		= { [0 ... SBRM_WTP_CLASSES - 1] = 25 },
	.source		= SBRM_SOURCE_RELATIVE,
	.kappa		= 26843546,	/* 0.1 */
	.young_ms	= 4000,
	.history_gain	= 1U << 26,	/* 1/64 */
	.history	= 50,		/* CP05 5.2.2 */
	.phi		= 2718282,	/* e */
	.ln_phi		= 1U << SBRM_LN_PHI_SHIFT,
	.slow_start	= 1,
	.loss_cut	= SBRM_LOSS_CUT_UNPROVEN,
};

/* The members of struct sbrm_net stand here as offsets. */
#define SBRM_OFFSET(member)	((void *)offsetof(struct sbrm_net, member))

static const struct ctl_table sbrm_table[] = {
	{
		.procname	= "wtp",
		.data		= SBRM_OFFSET(wtp),
		.maxlen		= sizeof(u32) * SBRM_WTP_CLASSES,
		.mode		= 0644,
		.proc_handler	= sbrm_proc_wtp,
	}, {
		.procname	= "kappa",
		.data		= SBRM_OFFSET(kappa),
		.maxlen		= sizeof(u32),
		.mode		= 0644,
		.proc_handler	= tollway_proc_fraction,
		.extra1		= (void *)&sbrm_kappa_range,
	}, {
		.procname	= "kappa_young",
		.data		= SBRM_OFFSET(kappa_young),
		.maxlen		= sizeof(u32),
		.mode		= 0644,
		.proc_handler	= tollway_proc_fraction,
		.extra1		= (void *)&sbrm_kappa_young_range,
	}, {
		.procname	= "young_ms",
		.data		= SBRM_OFFSET(young_ms),
		.maxlen		= sizeof(u32),
		.mode		= 0644,
		.proc_handler	= proc_douintvec_minmax,
		.extra1		= (void *)&sbrm_one,
		.extra2		= (void *)&sbrm_young_ms_max,
	}, {
		.procname	= "history_gain",
		.data		= SBRM_OFFSET(history_gain),
		.maxlen		= sizeof(u32),
		.mode		= 0644,
		.proc_handler	= tollway_proc_fraction,
		.extra1		= (void *)&sbrm_gain_range,
	}, {
		.procname	= "source",
		.data		= SBRM_OFFSET(source),
		.maxlen		= sizeof(u32),
		.mode		= 0644,
		.proc_handler	= tollway_proc_choice,
		.extra1		= (void *)sbrm_sources,
	}, {
		.procname	= "estimator",
		.data		= SBRM_OFFSET(estimator),
		.maxlen		= sizeof(u32),
		.mode		= 0644,
		.proc_handler	= tollway_proc_choice,
		.extra1		= (void *)sbrm_estimators,
	}, {
		.procname	= "kappa_window",
		.data		= SBRM_OFFSET(kappa_window),
		.maxlen		= sizeof(u32),
		.mode		= 0644,
		.proc_handler	= proc_douintvec_minmax,
		.extra1		= (void *)&sbrm_zero,
		.extra2		= (void *)&sbrm_window_max,
	}, {
		.procname	= "history",
		.data		= SBRM_OFFSET(history),
		.maxlen		= sizeof(u32),
		.mode		= 0644,
		.proc_handler	= proc_douintvec_minmax,
		.extra1		= (void *)&sbrm_one,
		.extra2		= (void *)&sbrm_history_max,
	}, {
		.procname	= "phi",
		.data		= SBRM_OFFSET(phi),
		.maxlen		= sizeof(u32),
		.mode		= 0644,
		.proc_handler	= sbrm_proc_phi,
		.extra1		= (void *)&sbrm_phi_range,
	}, {
		.procname	= "rtt",
		.data		= SBRM_OFFSET(rtt),
		.maxlen		= sizeof(u32),
		.mode		= 0644,
		.proc_handler	= tollway_proc_choice,
		.extra1		= (void *)sbrm_rtts,
	}, {
		.procname	= "slow_start",
		.data		= SBRM_OFFSET(slow_start),
		.maxlen		= sizeof(u32),
		.mode		= 0644,
		.proc_handler	= proc_douintvec_minmax,
		.extra1		= (void *)&sbrm_zero,
		.extra2		= (void *)&sbrm_one,
	}, {
		.procname	= "loss_cut",
		.data		= SBRM_OFFSET(loss_cut),
		.maxlen		= sizeof(u32),
		.mode		= 0644,
		.proc_handler	= proc_douintvec_minmax,
		.extra1		= (void *)&sbrm_zero,
		.extra2		= (void *)&sbrm_loss_cut_max,
	},
};

static int __net_init sbrm_net_init(struct net *net)
{
	struct sbrm_net_priv *priv = net_generic(net, sbrm_net_id);
	size_t i;

	BUILD_BUG_ON(offsetof(struct sbrm_net_priv, values));

	priv->values = sbrm_defaults;
	mutex_init(&priv->lock);
	sbrm_carrier_net_init(net);

	/* One empty entry more: older kernels look for it. */
	priv->table = kcalloc(ARRAY_SIZE(sbrm_table) + 1, sizeof(*priv->table),
			      GFP_KERNEL);
	if (!priv->table)
		return -ENOMEM;
	memcpy(priv->table, sbrm_table, sizeof(sbrm_table));
	for (i = 0; i < ARRAY_SIZE(sbrm_table); i++)
		priv->table[i].data = (char *)&priv->values +
				      (unsigned long)sbrm_table[i].data;

	priv->header = compat_register_net_sysctl(net, "net/ipv4/tcp_sbrm",
						  priv->table,
						  ARRAY_SIZE(sbrm_table));
	if (!priv->header)
		goto free;
	if (!proc_create_net_single("tcp_sbrm", 0444, net->proc_net,
				    sbrm_counters_show, NULL))
		goto unregister;
	return 0;

unregister:
	unregister_net_sysctl_table(priv->header);
free:
	kfree(priv->table);
	return -ENOMEM;
}

static void __net_exit sbrm_net_exit(struct net *net)
{
	struct sbrm_net_priv *priv = net_generic(net, sbrm_net_id);

	remove_proc_entry("tcp_sbrm", net->proc_net);
	unregister_net_sysctl_table(priv->header);
	kfree(priv->table);
	tollway_carrier_net_exit(sbrm_carrier_net(net));
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
