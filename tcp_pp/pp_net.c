// SPDX-License-Identifier: GPL-2.0
/*
 * What tcp_pp keeps for each network namespace: settings, in
 * net.ipv4.tcp_pp.*, and counters, in /proc/net/tcp_pp, see tollway_net.h.
 */

#include "pp_net.h"
#include "tollway_net.h"
#include "tollway_sysctl.h"

/**
 * struct pp_net_priv - what hangs off a network namespace
 * @values: the settings; first, see pp_net()
 * @common: their table
 * @counters: see &enum pp_counter
 */
struct pp_net_priv {
	struct pp_net		values;
	struct tollway_net	common;
	atomic_long_t		counters[PP_COUNTERS];
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
		[PP_COUNT_WINDOW]	= "window",
		[PP_COUNT_LONGER]	= "longer_path",
		[PP_COUNT_BUNCHED]	= "bunched_acks",
		[PP_COUNT_GRO]		= "gro_timeouts",
		[PP_COUNT_BACKLOG]	= "untimed_acks",
	};
	struct pp_net_priv *priv = net_generic(seq_file_single_net(seq),
					       pp_net_id);

	return tollway_net_show(seq, names, priv->counters, PP_COUNTERS);
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

static const struct pp_net pp_defaults = {
	/*
	 * An eighth is the weight of a sample in TCP's srtt, too. A larger one
	 * follows the share sooner, and the noise of samples as well. A ratio q
	 * of variances has a gain of about its root at rest: a 64th leads to an
	 * eighth there.
	 */
	.gains = {
		.fixed	= PP_ONE / 8,
		.kalman	= PP_ONE / 64,
	},
	/* PP94 4.2.1. */
	.pole		= PP_MILLE * 9 / 10,
	/*
	 * Five pairs. With two packets alone a flow uses as much of a link, but
	 * where ACKs come in bursts shares are then 0.92 and 1.07. With more
	 * than ten all flows wait for longer, and together they need more room
	 * in the queue.
	 */
	.setpoint	= 10,
	.setpoint_max	= 100,
	/* PP94 Table 2. */
	.setpoint_step	= 2 * PP_PACKET,
	.setpoint_every	= 2,
	.setpoint_cut	= PP_MILLE * 3 / 4,
	.train		= 2,
};

#define PP_OFFSET(member)	offsetof(struct pp_net, member)

static const struct ctl_table pp_table[] = {
	TOLLWAY_SETTING_CHOICE("estimator", PP_OFFSET(gains.estimator),
			       pp_estimators),
	TOLLWAY_SETTING_FRACTION("gain", PP_OFFSET(gains.fixed),
				 16, 1000000, PP_ONE),
	/* A ratio of variances: 2^23 in Q16. */
	TOLLWAY_SETTING_FRACTION("kalman_ratio", PP_OFFSET(gains.kalman),
				 16, 128 * 1000000, PP_ONE),
	TOLLWAY_SETTING_CHOICE("law", PP_OFFSET(law), pp_laws),
	TOLLWAY_SETTING_FRACTION("pole", PP_OFFSET(pole),
				 10000, 1000000, PP_MILLE),
	TOLLWAY_SETTING_NUMBER("setpoint", PP_OFFSET(setpoint), 0, 9999),
	TOLLWAY_SETTING_NUMBER("setpoint_max", PP_OFFSET(setpoint_max),
			       2, 9999),
	/* The least step is a 256th of a packet. */
	TOLLWAY_SETTING_FRACTION("setpoint_step", PP_OFFSET(setpoint_step),
				 3907, 64 * 1000000, PP_PACKET),
	TOLLWAY_SETTING_NUMBER("setpoint_every", PP_OFFSET(setpoint_every),
			       1, 4),
	TOLLWAY_SETTING_FRACTION("setpoint_cut", PP_OFFSET(setpoint_cut),
				 10000, 990000, PP_MILLE),
	TOLLWAY_SETTING_NUMBER("train", PP_OFFSET(train), 2, 64),
	TOLLWAY_SETTING_NUMBER("initial", PP_OFFSET(initial), 0, 1024),
	TOLLWAY_SETTING_NUMBER("initial_rate", PP_OFFSET(initial_rate),
			       0, PP_INITIAL_RATE_MAX),
	TOLLWAY_SETTING_NUMBER("window", PP_OFFSET(window), 0, 1048576),
	TOLLWAY_SETTING_NUMBER("reserved", PP_OFFSET(reserved), 0, 1048576),
};

static const struct tollway_net_type pp_net_type = {
	.name		= "tcp_pp",
	.path		= "net/ipv4/tcp_pp",
	.settings	= pp_table,
	.settings_count	= ARRAY_SIZE(pp_table),
	.defaults	= &pp_defaults,
	.size		= sizeof(pp_defaults),
	.counters_show	= pp_counters_show,
};

static int __net_init pp_net_init(struct net *net)
{
	struct pp_net_priv *priv = net_generic(net, pp_net_id);

	BUILD_BUG_ON(offsetof(struct pp_net_priv, values));

	return tollway_net_init(net, &priv->common, &priv->values,
				&pp_net_type);
}

static void __net_exit pp_net_exit(struct net *net)
{
	struct pp_net_priv *priv = net_generic(net, pp_net_id);

	tollway_net_exit(net, &priv->common, &pp_net_type);
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
