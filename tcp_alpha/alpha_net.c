// SPDX-License-Identifier: GPL-2.0
/*
 * State of tcp_alpha for each network namespace: settings in net.ipv4.tcp_alpha.*,
 * counters in /proc/net/tcp_alpha (see tollway_net.h), and the hooks of the field.
 */

#include "alpha.h"
#include "tollway_carrier.h"
#include "tollway_net.h"
#include "tollway_sysctl.h"

/**
 * struct alpha_net_priv - state of a network namespace
 * @values: the settings; first, see alpha_net()
 * @common: table and file
 * @carrier: hooks for the field
 * @counters: see &enum alpha_counter
 */
struct alpha_net_priv {
	struct alpha_net	values;
	struct tollway_net	common;
	struct tollway_carrier_net carrier;
	atomic_long_t		counters[ALPHA_COUNTERS];
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

	return tollway_net_show(seq, names, priv->counters, ALPHA_COUNTERS);
}

static const struct alpha_net alpha_defaults = {
	/* q of section V of ALPHA. */
	.gdp		= 800000,
	/*
	 * Delta: the control packets of section VI come each 0.4 ms, a fifth of its
	 * round trip of 2 ms.
	 */
	.interval	= 200000,
	/* 1/32 is three times the losses of 1 % errors, see ALPHA_LOSSES_MIN. */
	.losses		= 31250,
	/* Without it, n flows decrease n times slower than they increase, see tcp_alpha(7). */
	.share		= 1,
	/*
	 * The goal of section VI is 300 packets at 367 packets/ms, 0.41 of its round trip of
	 * 2 ms. 10 ms are the same part of a round trip of 24 ms, which was chosen as a
	 * typical one. With a longer round trip, gains are smaller, and a connection needs
	 * longer to find a new rate than with a goal in proportion to it. With a shorter
	 * one, the queue is longer.
	 */
	.goal_us	= 10000,
	.field		= 1,
};

#define ALPHA_OFFSET(member)	offsetof(struct alpha_net, member)

static const struct ctl_table alpha_table[] = {
	TOLLWAY_SETTING_NUMBER("gain", ALPHA_OFFSET(gain), 0, ALPHA_GAIN_LIMIT),
	TOLLWAY_SETTING_NUMBER("gip", ALPHA_OFFSET(gip), 0, ALPHA_GAIN_LIMIT),
	/*
	 * With 1 the gain is constant. With 0.01 five cycles reduce it from the largest
	 * value (10^9) to the smallest (1): no smaller factor is useful.
	 */
	TOLLWAY_SETTING_FRACTION("gdp", ALPHA_OFFSET(gdp),
				 10000, 1000000, ALPHA_GDP_ONE),
	/*
	 * The paper has steps of 0.2 and 0.5 round trips. A step of more than one round
	 * trip would end after its effect has come back. 0.02 means ten times as many steps
	 * as the default.
	 */
	TOLLWAY_SETTING_FRACTION("interval", ALPHA_OFFSET(interval),
				 20000, 1000000, 1000000),
	/*
	 * Below 0.8 %, which is 16 of 2048 segments, ALPHA_LOSSES_MIN decides when losses
	 * begin to count, and the setting only when they cease to count. 0.1 % are two of
	 * 2048 segments. 1: losses never count.
	 */
	TOLLWAY_SETTING_FRACTION("losses", ALPHA_OFFSET(losses),
				 1000, 1000000, ALPHA_SHARE_ONE),
	TOLLWAY_SETTING_NUMBER("initial", ALPHA_OFFSET(initial),
			       0, ALPHA_RATE_MAX >> ALPHA_RATE_SHIFT),
	TOLLWAY_SETTING_NUMBER("bandwidth", ALPHA_OFFSET(bandwidth),
			       0, ALPHA_RATE_MAX >> ALPHA_RATE_SHIFT),
	TOLLWAY_SETTING_NUMBER("share", ALPHA_OFFSET(share), 0, 1),
	/* Round-trip times are 1 us to 16.8 s: from 10 us, which can be measured, to 10 s. */
	TOLLWAY_SETTING_NUMBER("goal_us", ALPHA_OFFSET(goal_us), 10, 10000000),
	TOLLWAY_SETTING_NUMBER("field", ALPHA_OFFSET(field), 0, 1),
};

static const struct tollway_net_type alpha_net_type = {
	.name		= "tcp_alpha",
	.path		= "net/ipv4/tcp_alpha",
	.settings	= alpha_table,
	.settings_count	= ARRAY_SIZE(alpha_table),
	.defaults	= &alpha_defaults,
	.size		= sizeof(alpha_defaults),
	.counters_show	= alpha_counters_show,
};

static int __net_init alpha_net_init(struct net *net)
{
	struct alpha_net_priv *priv = net_generic(net, alpha_net_id);

	BUILD_BUG_ON(offsetof(struct alpha_net_priv, values));

	tollway_carrier_net_init(alpha_carrier_net(net), net);
	return tollway_net_init(net, &priv->common, &priv->values,
				&alpha_net_type);
}

static void __net_exit alpha_net_exit(struct net *net)
{
	struct alpha_net_priv *priv = net_generic(net, alpha_net_id);

	tollway_net_exit(net, &priv->common, &alpha_net_type);
	tollway_carrier_net_exit(&priv->carrier);
}

static struct pernet_operations alpha_net_ops = {
	.init	= alpha_net_init,
	.exit	= alpha_net_exit,
	.id	= &alpha_net_id,
	.size	= sizeof(struct alpha_net_priv),
};

/**
 * alpha_net_register() - create the settings of all present and later namespaces
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
