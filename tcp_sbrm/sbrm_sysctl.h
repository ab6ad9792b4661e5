/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SBRM_SYSCTL_H
#define _SBRM_SYSCTL_H

#include <linux/types.h>

struct net;

#define SBRM_WTP_CLASSES	16
/* Willingness to pay, packets/s: 24 bits, see sbrm_demand(). */
#define SBRM_WTP_MAX		10000000

enum sbrm_source {
	SBRM_SOURCE_DIRECT,	/* direct window update, CP05 (4.2.3) */
	SBRM_SOURCE_AIMD,	/* CP05 (5.1.2), (5.1.3) */
};

enum sbrm_estimator {
	SBRM_ESTIMATOR_LOG,	/* p = -ln(1 - m), m from the history */
	SBRM_ESTIMATOR_RAW,	/* p is the bit of each packet */
};

/**
 * struct sbrm_net - settings of a network namespace
 * @wtp: willingness to pay by socket priority, packets/s
 * @kappa: gain per acknowledged segment, Q28
 * @kappa_young: gain of a new connection, Q28; no effect unless above @kappa
 * @young_ms: how long a connection is young, ms
 * @history_gain: weight of one packet in the mark fraction, Q32
 * @source: an &enum sbrm_source
 * @estimator: an &enum sbrm_estimator
 *
 * Single words, written under the lock of the sysctl table and read without
 * one.
 */
struct sbrm_net {
	u32	wtp[SBRM_WTP_CLASSES];
	u32	kappa;
	u32	kappa_young;
	u32	young_ms;
	u32	history_gain;
	u32	source;
	u32	estimator;
};

const struct sbrm_net *sbrm_net(const struct net *net);
int sbrm_sysctl_init(void);
void sbrm_sysctl_exit(void);

#endif /* _SBRM_SYSCTL_H */
