// SPDX-License-Identifier: GPL-2.0
/*
 * Settings of tcp_sbrm, per network namespace: net.ipv4.tcp_sbrm.*
 *
 * All hosts of an emulated network share one kernel and one module, so nothing
 * here may be a module parameter.
 */

#include <linux/ctype.h>
#include <linux/math64.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/sysctl.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "compat.h"
#include "sbrm_sysctl.h"

/**
 * struct sbrm_net_priv - what hangs off a network namespace
 * @values: the settings
 * @header: of the registered table
 * @table: copy of the table that points into @values
 */
struct sbrm_net_priv {
	struct sbrm_net		values;
	struct ctl_table_header	*header;
	struct ctl_table	*table;
};

/**
 * struct sbrm_fraction - a setting that is a decimal number
 * @min_ppm: least value, in 10^-6
 * @max_ppm: greatest value, in 10^-6
 * @one: what 1.0 is in the stored word
 */
struct sbrm_fraction {
	u32	min_ppm;
	u32	max_ppm;
	u64	one;
};

static unsigned int sbrm_net_id __read_mostly;

/**
 * sbrm_net() - settings that hold for a socket
 * @net: its namespace
 *
 * Return: the settings; they live as long as the namespace.
 */
const struct sbrm_net *sbrm_net(const struct net *net)
{
	const struct sbrm_net_priv *priv = net_generic(net, sbrm_net_id);

	return &priv->values;
}

/**
 * sbrm_parse_ppm() - read a decimal number such as 0.015
 * @text: the number, ended by a null or white space
 * @ppm: result in 10^-6
 *
 * Return: 0, or -EINVAL for anything but digits with at most one point, at
 * most four digits before and six after it.
 */
static int sbrm_parse_ppm(const char *text, u32 *ppm)
{
	u32 value = 0, places = 0;
	bool point = false, digit = false;

	for (; *text && !isspace(*text); text++) {
		if (*text == '.' && !point) {
			point = true;
			continue;
		}
		if (!isdigit(*text) || (point ? places == 6 : value >= 1000))
			return -EINVAL;
		value = value * 10 + (*text - '0');
		places += point;
		digit = true;
	}
	if (!digit || *skip_spaces(text))
		return -EINVAL;

	for (; places < 6; places++) {
		if (value > U32_MAX / 10)
			return -EINVAL;
		value *= 10;
	}
	*ppm = value;
	return 0;
}

/* Hand a string of at most 15 characters through proc_dostring(). */
static int sbrm_proc_text(COMPAT_CTL_CONST struct ctl_table *ctl, int write,
			  char *text, void *buffer, size_t *lenp, loff_t *ppos)
{
	struct ctl_table fake = {
		.procname = ctl->procname,
		.data = text,
		.maxlen = 16,
		.mode = ctl->mode,
	};
	int err = proc_dostring(&fake, write, buffer, lenp, ppos);

	/* What does not fit is cut off silently. */
	if (!err && write && strlen(text) == fake.maxlen - 1)
		return -EINVAL;
	return err;
}

static int sbrm_proc_fraction(COMPAT_CTL_CONST struct ctl_table *ctl, int write,
			      void *buffer, size_t *lenp, loff_t *ppos)
{
	const struct sbrm_fraction *range = ctl->extra1;
	u32 *value = ctl->data;
	char text[16] = "";
	u32 ppm;
	int err;

	if (!write) {
		ppm = div64_u64((u64)READ_ONCE(*value) * 1000000 +
				range->one / 2, range->one);
		snprintf(text, sizeof(text), "%u.%06u", ppm / 1000000,
			 ppm % 1000000);
	}
	err = sbrm_proc_text(ctl, write, text, buffer, lenp, ppos);
	if (err || !write)
		return err;

	err = sbrm_parse_ppm(text, &ppm);
	if (err)
		return err;
	if (ppm < range->min_ppm || ppm > range->max_ppm)
		return -ERANGE;
	WRITE_ONCE(*value, min_t(u64, div_u64(ppm * range->one + 500000,
					      1000000), U32_MAX));
	return 0;
}

/* The table is taken whole or not at all; a shorter list sets the first ones. */
static int sbrm_proc_wtp(COMPAT_CTL_CONST struct ctl_table *ctl, int write,
			 void *buffer, size_t *lenp, loff_t *ppos)
{
	static const int min = 1, max = SBRM_WTP_MAX;
	u32 values[SBRM_WTP_CLASSES];
	struct ctl_table fake = {
		.procname = ctl->procname,
		.data = values,
		.maxlen = sizeof(values),
		.mode = ctl->mode,
		.extra1 = (void *)&min,
		.extra2 = (void *)&max,
	};
	u32 *wtp = ctl->data;
	size_t given = *lenp;
	int err, i;

	memcpy(values, wtp, sizeof(values));
	err = proc_dointvec_minmax(&fake, write, buffer, lenp, ppos);
	if (err || !write)
		return err;
	/* More values than classes stay unread. */
	if (*lenp < given)
		return -EINVAL;

	for (i = 0; i < SBRM_WTP_CLASSES; i++)
		WRITE_ONCE(wtp[i], values[i]);
	return 0;
}

/* A word out of a list that ends with NULL, in extra1. */
static int sbrm_proc_choice(COMPAT_CTL_CONST struct ctl_table *ctl, int write,
			    void *buffer, size_t *lenp, loff_t *ppos)
{
	const char *const *names = ctl->extra1;
	u32 *value = ctl->data;
	char text[16] = "";
	u32 i;
	int err;

	if (!write)
		strscpy(text, names[READ_ONCE(*value)], sizeof(text));
	err = sbrm_proc_text(ctl, write, text, buffer, lenp, ppos);
	if (err || !write)
		return err;

	for (i = 0; names[i]; i++) {
		if (!strcmp(strim(text), names[i])) {
			WRITE_ONCE(*value, i);
			return 0;
		}
	}
	return -EINVAL;
}

static const char *const sbrm_sources[] = {
	[SBRM_SOURCE_DIRECT]	= "direct",
	[SBRM_SOURCE_AIMD]	= "aimd",
	NULL
};

static const char *const sbrm_estimators[] = {
	[SBRM_ESTIMATOR_LOG]	= "log",
	[SBRM_ESTIMATOR_RAW]	= "raw",
	NULL
};

static const struct sbrm_fraction sbrm_kappa_range = {
	.min_ppm = 1,
	.max_ppm = 10 * 1000000,
	.one = 1ULL << 28,
};

static const struct sbrm_fraction sbrm_kappa_young_range = {
	.max_ppm = 10 * 1000000,
	.one = 1ULL << 28,
};

static const struct sbrm_fraction sbrm_gain_range = {
	.min_ppm = 1,
	.max_ppm = 1000000,
	.one = 1ULL << 32,
};

static const unsigned int sbrm_young_ms_min = 1;
static const unsigned int sbrm_young_ms_max = 3600 * 1000;

static const struct sbrm_net sbrm_defaults = {
	/* CP05 Table 4.3.2 uses 100, 200 and 400 packets/s. */
	.wtp		= { [0 ... SBRM_WTP_CLASSES - 1] = 100 },
	.kappa		= 26843546,	/* 0.1 */
	.young_ms	= 4000,
	.history_gain	= 1U << 26,	/* 1/64 */
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
		.proc_handler	= sbrm_proc_fraction,
		.extra1		= (void *)&sbrm_kappa_range,
	}, {
		.procname	= "kappa_young",
		.data		= SBRM_OFFSET(kappa_young),
		.maxlen		= sizeof(u32),
		.mode		= 0644,
		.proc_handler	= sbrm_proc_fraction,
		.extra1		= (void *)&sbrm_kappa_young_range,
	}, {
		.procname	= "young_ms",
		.data		= SBRM_OFFSET(young_ms),
		.maxlen		= sizeof(u32),
		.mode		= 0644,
		.proc_handler	= proc_douintvec_minmax,
		.extra1		= (void *)&sbrm_young_ms_min,
		.extra2		= (void *)&sbrm_young_ms_max,
	}, {
		.procname	= "history_gain",
		.data		= SBRM_OFFSET(history_gain),
		.maxlen		= sizeof(u32),
		.mode		= 0644,
		.proc_handler	= sbrm_proc_fraction,
		.extra1		= (void *)&sbrm_gain_range,
	}, {
		.procname	= "source",
		.data		= SBRM_OFFSET(source),
		.maxlen		= sizeof(u32),
		.mode		= 0644,
		.proc_handler	= sbrm_proc_choice,
		.extra1		= (void *)sbrm_sources,
	}, {
		.procname	= "estimator",
		.data		= SBRM_OFFSET(estimator),
		.maxlen		= sizeof(u32),
		.mode		= 0644,
		.proc_handler	= sbrm_proc_choice,
		.extra1		= (void *)sbrm_estimators,
	},
};

static int __net_init sbrm_net_init(struct net *net)
{
	struct sbrm_net_priv *priv = net_generic(net, sbrm_net_id);
	size_t i;

	priv->values = sbrm_defaults;

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
	if (!priv->header) {
		kfree(priv->table);
		return -ENOMEM;
	}
	return 0;
}

static void __net_exit sbrm_net_exit(struct net *net)
{
	struct sbrm_net_priv *priv = net_generic(net, sbrm_net_id);

	unregister_net_sysctl_table(priv->header);
	kfree(priv->table);
}

static struct pernet_operations sbrm_net_ops = {
	.init	= sbrm_net_init,
	.exit	= sbrm_net_exit,
	.id	= &sbrm_net_id,
	.size	= sizeof(struct sbrm_net_priv),
};

/**
 * sbrm_sysctl_init() - give every namespace, present and to come, its settings
 *
 * Return: 0 or a negative error.
 */
int __init sbrm_sysctl_init(void)
{
	return register_pernet_subsys(&sbrm_net_ops);
}

/* Also called when module_init fails, so not __exit. */
void sbrm_sysctl_exit(void)
{
	unregister_pernet_subsys(&sbrm_net_ops);
}
