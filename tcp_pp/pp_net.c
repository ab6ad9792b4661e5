// SPDX-License-Identifier: GPL-2.0
/*
 * What tcp_pp keeps for each network namespace: settings, in
 * net.ipv4.tcp_pp.*, and counters, in /proc/net/tcp_pp. Never module
 * parameters: all hosts of an emulated network share one module.
 */

#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/sysctl.h>

#include "compat.h"
#include "pp_net.h"
#include "tollway_sysctl.h"

/**
 * struct pp_net_priv - what hangs off a network namespace
 * @values: the settings; first, see pp_net()
 * @counters: see &enum pp_counter
 * @header: of the registered table
 * @table: copy of the table that points into @values
 */
struct pp_net_priv {
	struct pp_net		values;
	atomic_long_t		counters[PP_COUNTERS];
	struct ctl_table_header	*header;
	struct ctl_table	*table;
};

unsigned int pp_net_id __read_mostly;

/**
 * pp_count() - count an event
 * @net: namespace
 * @counter: which
 */
void pp_count(const struct net *net, enum pp_counter counter)
{
	struct pp_net_priv *priv = net_generic(net, pp_net_id);

	atomic_long_inc(&priv->counters[counter]);
}

static int pp_counters_show(struct seq_file *seq, void *v)
{
	static const char *const names[] = {
		[PP_COUNT_DELAYED]	= "delayed_acks",
		[PP_COUNT_SHARED]	= "shared_queue",
		[PP_COUNT_LONGER]	= "longer_path",
		[PP_COUNT_BACKLOG]	= "untimed_acks",
	};
	struct pp_net_priv *priv = net_generic(seq_file_single_net(seq),
					       pp_net_id);
	int i;

	for (i = 0; i < PP_COUNTERS; i++)
		seq_printf(seq, "%s %lu\n", names[i],
			   (unsigned long)atomic_long_read(&priv->counters[i]));
	return 0;
}

static const char *const pp_estimators[] = {
	[PP_ESTIMATOR_FUZZY]	= "fuzzy",
	[PP_ESTIMATOR_FIXED]	= "fixed",
	[PP_ESTIMATOR_KALMAN]	= "kalman",
	NULL
};

static const char *const pp_laws[] = {
	[PP_LAW_CONTINUOUS]	= "continuous",
	[PP_LAW_DISCRETE]	= "discrete",
	NULL
};

static const struct tollway_fraction pp_gain_range = {
	.min_ppm = 16,
	.max_ppm = 1000000,
	.one = PP_ONE,
};

/* A ratio of variances: 2^23 in Q16. */
static const struct tollway_fraction pp_kalman_range = {
	.min_ppm = 16,
	.max_ppm = 128 * 1000000,
	.one = PP_ONE,
};

static const unsigned int pp_zero;
static const unsigned int pp_two = 2;
static const unsigned int pp_setpoint_limit = 9999;
static const unsigned int pp_train_limit = 64;
static const unsigned int pp_initial_limit = 1024;

static const struct pp_net pp_defaults = {
	.gains = {
		.fixed	= PP_ONE / 8,
		.kalman	= PP_ONE / 64,
	},
	.setpoint	= 10,
	.setpoint_max	= 100,
	.train		= 2,
};

/* The members of struct pp_net stand here as offsets. */
#define PP_OFFSET(member)	((void *)offsetof(struct pp_net, member))

static const struct ctl_table pp_table[] = {
	{
		.procname	= "estimator",
		.data		= PP_OFFSET(gains.estimator),
		.maxlen		= sizeof(u32),
		.mode		= 0644,
		.proc_handler	= tollway_proc_choice,
		.extra1		= (void *)pp_estimators,
	}, {
		.procname	= "gain",
		.data		= PP_OFFSET(gains.fixed),
		.maxlen		= sizeof(u32),
		.mode		= 0644,
		.proc_handler	= tollway_proc_fraction,
		.extra1		= (void *)&pp_gain_range,
	}, {
		.procname	= "kalman_ratio",
		.data		= PP_OFFSET(gains.kalman),
		.maxlen		= sizeof(u32),
		.mode		= 0644,
		.proc_handler	= tollway_proc_fraction,
		.extra1		= (void *)&pp_kalman_range,
	}, {
		.procname	= "law",
		.data		= PP_OFFSET(law),
		.maxlen		= sizeof(u32),
		.mode		= 0644,
		.proc_handler	= tollway_proc_choice,
		.extra1		= (void *)pp_laws,
	}, {
		.procname	= "setpoint",
		.data		= PP_OFFSET(setpoint),
		.maxlen		= sizeof(u32),
		.mode		= 0644,
		.proc_handler	= proc_douintvec_minmax,
		.extra1		= (void *)&pp_zero,
		.extra2		= (void *)&pp_setpoint_limit,
	}, {
		.procname	= "setpoint_max",
		.data		= PP_OFFSET(setpoint_max),
		.maxlen		= sizeof(u32),
		.mode		= 0644,
		.proc_handler	= proc_douintvec_minmax,
		.extra1		= (void *)&pp_two,
		.extra2		= (void *)&pp_setpoint_limit,
	}, {
		.procname	= "train",
		.data		= PP_OFFSET(train),
		.maxlen		= sizeof(u32),
		.mode		= 0644,
		.proc_handler	= proc_douintvec_minmax,
		.extra1		= (void *)&pp_two,
		.extra2		= (void *)&pp_train_limit,
	}, {
		.procname	= "initial",
		.data		= PP_OFFSET(initial),
		.maxlen		= sizeof(u32),
		.mode		= 0644,
		.proc_handler	= proc_douintvec_minmax,
		.extra1		= (void *)&pp_zero,
		.extra2		= (void *)&pp_initial_limit,
	},
};

static int __net_init pp_net_init(struct net *net)
{
	struct pp_net_priv *priv = net_generic(net, pp_net_id);
	size_t i;

	BUILD_BUG_ON(offsetof(struct pp_net_priv, values));

	priv->values = pp_defaults;

	/* One empty entry more: older kernels look for it. */
	priv->table = kcalloc(ARRAY_SIZE(pp_table) + 1, sizeof(*priv->table),
			      GFP_KERNEL);
	if (!priv->table)
		return -ENOMEM;
	memcpy(priv->table, pp_table, sizeof(pp_table));
	for (i = 0; i < ARRAY_SIZE(pp_table); i++)
		priv->table[i].data = (char *)&priv->values +
				      (unsigned long)pp_table[i].data;

	priv->header = compat_register_net_sysctl(net, "net/ipv4/tcp_pp",
						  priv->table,
						  ARRAY_SIZE(pp_table));
	if (!priv->header)
		goto free;
	if (!proc_create_net_single("tcp_pp", 0444, net->proc_net,
				    pp_counters_show, NULL))
		goto unregister;
	return 0;

unregister:
	unregister_net_sysctl_table(priv->header);
free:
	kfree(priv->table);
	return -ENOMEM;
}

static void __net_exit pp_net_exit(struct net *net)
{
	struct pp_net_priv *priv = net_generic(net, pp_net_id);

	remove_proc_entry("tcp_pp", net->proc_net);
	unregister_net_sysctl_table(priv->header);
	kfree(priv->table);
}

static struct pernet_operations pp_net_ops = {
	.init	= pp_net_init,
	.exit	= pp_net_exit,
	.id	= &pp_net_id,
	.size	= sizeof(struct pp_net_priv),
};

/**
 * pp_net_register() - give every namespace, present and to come, its settings
 *
 * Return: 0 or a negative error.
 */
int __init pp_net_register(void)
{
	return register_pernet_subsys(&pp_net_ops);
}

/* Also called when module_init fails, so not __exit. */
void pp_net_unregister(void)
{
	unregister_pernet_subsys(&pp_net_ops);
}
