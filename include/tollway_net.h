/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a congestion control keeps for each network namespace: settings, in
 * net.ipv4.NAME.*, and counters, in /proc/net/NAME. All hosts of an emulated
 * network share one kernel and one module, so these may not be parameters of the
 * module.
 *
 * A module has one structure for each namespace, found by net_generic():
 *
 *	struct x_net_priv {
 *		struct x_net		values;		settings; x_net() returns them
 *		struct tollway_net	common;
 *		atomic_long_t		counters[X_COUNTERS];
 *	};
 *
 * It describes settings and counters in a struct tollway_net_type, and calls
 * tollway_net_init() and tollway_net_exit() from its pernet_operations.
 */
#ifndef _TOLLWAY_NET_H
#define _TOLLWAY_NET_H

#include <linux/atomic.h>
#include <linux/mutex.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysctl.h>
#include <net/net_namespace.h>

#include "compat.h"

/**
 * struct tollway_net_type - what is the same in all namespaces of a module
 * @name: of the file in /proc/net
 * @path: of the directory of the settings in /proc/sys
 * @settings: the settings; data is the offset of a member of the structure
 * @settings_count: how many @settings there are
 * @defaults: the structure of settings as a new namespace gets it
 * @size: of @defaults, bytes
 * @counters_show: writes the counters, see tollway_net_show()
 */
struct tollway_net_type {
	const char		*name;
	const char		*path;
	const struct ctl_table	*settings;
	size_t			settings_count;
	const void		*defaults;
	size_t			size;
	int			(*counters_show)(struct seq_file *seq, void *v);
};

/**
 * struct tollway_net - what a namespace has beside settings and counters
 * @lock: of settings that have several words: who writes or shows one holds it.
 *	The kernel calls handlers of sysctls without a lock, and several at once
 * @header: of the registered table
 * @table: copy of &tollway_net_type.settings that points to the values
 *
 * A setting of one word, and a counter, need no lock: see tollway_sysctl.h.
 */
struct tollway_net {
	struct mutex		lock;	/* of settings of several words */
	struct ctl_table_header	*header;
	struct ctl_table	*table;
};

/**
 * tollway_net_init() - give a namespace its settings and counters
 * @net: namespace
 * @common: what to fill
 * @values: structure of settings to fill
 * @type: what they are
 *
 * The counters are 0 already: net_generic() hands out zeroed memory.
 *
 * Return: 0, or -ENOMEM with nothing registered.
 */
static inline int __net_init
tollway_net_init(struct net *net, struct tollway_net *common, void *values,
		 const struct tollway_net_type *type)
{
	size_t count = type->settings_count, i;

	memcpy(values, type->defaults, type->size);
	mutex_init(&common->lock);

	/* One empty entry more: kernels before 6.6 look for it. */
	common->table = kcalloc(count + 1, sizeof(*common->table), GFP_KERNEL);
	if (!common->table)
		return -ENOMEM;
	memcpy(common->table, type->settings, count * sizeof(*common->table));
	for (i = 0; i < count; i++)
		common->table[i].data = (char *)values +
					(unsigned long)type->settings[i].data;

	common->header = compat_register_net_sysctl(net, type->path,
						    common->table, count);
	if (!common->header)
		goto free;
	if (!proc_create_net_single(type->name, 0444, net->proc_net,
				    type->counters_show, NULL))
		goto unregister;
	return 0;

unregister:
	unregister_net_sysctl_table(common->header);
free:
	kfree(common->table);
	return -ENOMEM;
}

/**
 * tollway_net_exit() - the namespace, or the module, goes
 * @net: namespace
 * @common: what tollway_net_init() has filled
 * @type: the same as there
 *
 * No handler runs any more when this returns. Also called where the
 * registration of pernet_operations fails, so not __net_exit.
 */
static inline void tollway_net_exit(struct net *net, struct tollway_net *common,
				    const struct tollway_net_type *type)
{
	remove_proc_entry(type->name, net->proc_net);
	unregister_net_sysctl_table(common->header);
	kfree(common->table);
}

/**
 * tollway_net_show() - write counters, a line for each: its name and its value
 * @seq: where they go
 * @names: of the counters
 * @counters: their values
 * @count: how many there are
 *
 * Return: 0.
 */
static inline int tollway_net_show(struct seq_file *seq,
				   const char *const *names,
				   const atomic_long_t *counters, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		seq_printf(seq, "%s %lu\n", names[i],
			   (unsigned long)atomic_long_read(&counters[i]));
	return 0;
}

#endif /* _TOLLWAY_NET_H */
