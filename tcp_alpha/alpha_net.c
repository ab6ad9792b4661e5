// SPDX-License-Identifier: GPL-2.0
/*
 * What tcp_alpha keeps for each network namespace: settings, in
 * net.ipv4.tcp_alpha.*, counters, in /proc/net/tcp_alpha, and the hooks of the
 * field. Never module parameters: all hosts of an emulated network share one
 * module.
 */

#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/sysctl.h>

#include "alpha.h"
#include "tollway_carrier.h"
#include "tollway_sysctl.h"

/**
 * struct alpha_net_priv - what hangs off a network namespace
 * @values: the settings; first, see alpha_net()
 * @carrier: hooks for the field
 * @counters: see &enum alpha_counter
 * @header: of the registered table
 * @table: copy of the table that points into @values
 */
struct alpha_net_priv {
	struct alpha_net	values;
	struct tollway_carrier_net carrier;
	atomic_long_t		counters[ALPHA_COUNTERS];
	struct ctl_table_header	*header;
	struct ctl_table	*table;
};

unsigned int alpha_net_id __read_mostly;

/**
 * alpha_carrier_net() - hooks of a namespace for the field
 * @net: namespace
 *
 * Return: their state; it lives as long as the namespace.
 */
struct tollway_carrier_net *alpha_carrier_net(const struct net *net)
{
	struct alpha_net_priv *priv = net_generic(net, alpha_net_id);

	return &priv->carrier;
}

/**
 * alpha_count() - count an event
 * @net: namespace
 * @counter: which
 */
void alpha_count(const struct net *net, enum alpha_counter counter)
{
	struct alpha_net_priv *priv = net_generic(net, alpha_net_id);

	atomic_long_inc(&priv->counters[counter]);
}

static int alpha_counters_show(struct seq_file *seq, void *v)
{
	static const char *const names[] = {
		[ALPHA_COUNT_CYCLES]	= "cycles",
		[ALPHA_COUNT_BEYOND]	= "beyond_goal",
		[ALPHA_COUNT_LOSSES]	= "loss_as_mark",
		[ALPHA_COUNT_RESTARTS]	= "restarts",
		[ALPHA_COUNT_ABSENT]	= "field_absent",
		[ALPHA_COUNT_REWRITTEN]	= "field_rewritten",
		[ALPHA_COUNT_OUTSIDE]	= "field_outside",
		[ALPHA_COUNT_NO_DF]	= "field_no_df",
		[ALPHA_COUNT_INVALID]	= "field_invalid",
	};
	struct alpha_net_priv *priv = net_generic(seq_file_single_net(seq),
						  alpha_net_id);
	int i;

	for (i = 0; i < ALPHA_COUNTERS; i++)
		seq_printf(seq, "%s %lu\n", names[i],
			   (unsigned long)atomic_long_read(&priv->counters[i]));
	return 0;
}

/*
 * The paper has steps of 0.2 and 0.5 round trips. With more than a round trip a step would
 * end after its answer has come, and 0.02 are ten times as many steps as by default.
 */
static const struct tollway_fraction alpha_interval_range = {
	.min_ppm = 20000,
	.max_ppm = 1000000,
	.one = 1000000,
};

static const struct tollway_fraction alpha_gdp_range = {
	.min_ppm = 10000,
	.max_ppm = 1000000,
	.one = ALPHA_GDP_ONE,
};

/*
 * Below 16 of 2048 segments, 0.8 %, ALPHA_LOSSES_MIN decides when losses begin to count,
 * and the setting only when they end. 0.1 % are two of them. 1: never.
 */
static const struct tollway_fraction alpha_losses_range = {
	.min_ppm = 1000,
	.max_ppm = 1000000,
	.one = ALPHA_SHARE_ONE,
};

static const unsigned int alpha_zero;
static const unsigned int alpha_one = 1;
static const unsigned int alpha_gain_max = ALPHA_GAIN_LIMIT;
static const unsigned int alpha_rate_max = ALPHA_RATE_MAX >> ALPHA_RATE_SHIFT;
/* Round-trip times are in us, up to 16 s: ten of their units, and most of that. */
static const unsigned int alpha_goal_min = 10;
static const unsigned int alpha_goal_max = 10000000;

static const struct alpha_net alpha_defaults = {
	/* q of section V of ALPHA. */
	.gdp		= 800000,
	/*
	 * Delta: the control packets of section VI come each 0.4 ms, a fifth of its
	 * round trip of 2 ms.
	 */
	.interval	= 200000,
	/* 1/32: three times what errors of 1 % lose, see ALPHA_LOSSES_MIN. */
	.losses		= 31250,
	/* Without it n flows fall n times slower than they rise, tcp_alpha(7). */
	.share		= 1,
	/*
	 * The goal of section VI, 300 packets at 367 per ms, is 0.41 of its round trip:
	 * 10 ms are as much of 24 ms.
	 */
	.goal_us	= 10000,
	.field		= 1,
};

/* The members of struct alpha_net stand here as offsets. */
#define ALPHA_OFFSET(member)	((void *)offsetof(struct alpha_net, member))

#define ALPHA_FRACTION(member, range)					\
	{								\
		.procname	= #member,				\
		.data		= ALPHA_OFFSET(member),			\
		.maxlen		= sizeof(u32),				\
		.mode		= 0644,					\
		.proc_handler	= tollway_proc_fraction,		\
		.extra1		= (void *)&(range),			\
	}

#define ALPHA_NUMBER(member, least, most)				\
	{								\
		.procname	= #member,				\
		.data		= ALPHA_OFFSET(member),			\
		.maxlen		= sizeof(u32),				\
		.mode		= 0644,					\
		.proc_handler	= proc_douintvec_minmax,		\
		.extra1		= (void *)&(least),			\
		.extra2		= (void *)&(most),			\
	}

static const struct ctl_table alpha_table[] = {
	ALPHA_NUMBER(gain, alpha_zero, alpha_gain_max),
	ALPHA_NUMBER(gip, alpha_zero, alpha_gain_max),
	ALPHA_FRACTION(gdp, alpha_gdp_range),
	ALPHA_FRACTION(interval, alpha_interval_range),
	ALPHA_FRACTION(losses, alpha_losses_range),
	ALPHA_NUMBER(initial, alpha_zero, alpha_rate_max),
	ALPHA_NUMBER(bandwidth, alpha_zero, alpha_rate_max),
	ALPHA_NUMBER(share, alpha_zero, alpha_one),
	ALPHA_NUMBER(goal_us, alpha_goal_min, alpha_goal_max),
	ALPHA_NUMBER(field, alpha_zero, alpha_one),
};

static int __net_init alpha_net_init(struct net *net)
{
	struct alpha_net_priv *priv = net_generic(net, alpha_net_id);
	size_t i;

	BUILD_BUG_ON(offsetof(struct alpha_net_priv, values));

	priv->values = alpha_defaults;
	tollway_carrier_net_init(alpha_carrier_net(net), net);

	/* One empty entry more: older kernels look for it. */
	priv->table = kcalloc(ARRAY_SIZE(alpha_table) + 1,
			      sizeof(*priv->table), GFP_KERNEL);
	if (!priv->table)
		return -ENOMEM;
	memcpy(priv->table, alpha_table, sizeof(alpha_table));
	for (i = 0; i < ARRAY_SIZE(alpha_table); i++)
		priv->table[i].data = (char *)&priv->values +
				      (unsigned long)alpha_table[i].data;

	priv->header = compat_register_net_sysctl(net, "net/ipv4/tcp_alpha",
						  priv->table,
						  ARRAY_SIZE(alpha_table));
	if (!priv->header)
		goto free;
	if (!proc_create_net_single("tcp_alpha", 0444, net->proc_net,
				    alpha_counters_show, NULL))
		goto unregister;
	return 0;

unregister:
	unregister_net_sysctl_table(priv->header);
free:
	kfree(priv->table);
	return -ENOMEM;
}

static void __net_exit alpha_net_exit(struct net *net)
{
	struct alpha_net_priv *priv = net_generic(net, alpha_net_id);

	remove_proc_entry("tcp_alpha", net->proc_net);
	unregister_net_sysctl_table(priv->header);
	kfree(priv->table);
	tollway_carrier_net_exit(&priv->carrier);
}

static struct pernet_operations alpha_net_ops = {
	.init	= alpha_net_init,
	.exit	= alpha_net_exit,
	.id	= &alpha_net_id,
	.size	= sizeof(struct alpha_net_priv),
};

/**
 * alpha_net_register() - give every namespace, present and to come, its settings
 *
 * Return: 0 or a negative error.
 */
int __init alpha_net_register(void)
{
	return register_pernet_subsys(&alpha_net_ops);
}

/* Also called when module_init fails, so not __exit. */
void alpha_net_unregister(void)
{
	unregister_pernet_subsys(&alpha_net_ops);
}
