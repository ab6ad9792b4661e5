/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SBRM_NET_H
#define _SBRM_NET_H

#include <linux/bits.h>
#include <linux/types.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#define SBRM_WTP_CLASSES	16
/* Largest willingness to pay, packets/s: it fits into 24 bits, see sbrm_wtp(). */
#define SBRM_WTP_MAX		10000000

/*
 * Gains kappa are in Q28: 10.0, the greatest, is below 16, and 10^-6, the
 * least, is 268.
 */
#define SBRM_KAPPA_SHIFT	28
#define SBRM_KAPPA_ONE		BIT(SBRM_KAPPA_SHIFT)

/*
 * ln(phi) is in Q24: phi is at most 16, so it is below 2.8, and its product with a wtp of 24
 * bits is below 2^49, see sbrm_paid().
 */
#define SBRM_LN_PHI_SHIFT	24

/**
 * enum sbrm_source - how the window follows the price, see sbrm_source.c
 * @SBRM_SOURCE_DIRECT: direct window update, CP05 (4.2.1)
 * @SBRM_SOURCE_AIMD: CP05 (5.1.2), (5.1.3)
 * @SBRM_SOURCE_VEGAS: Vegas/CP, CP05 (5.2.7)
 * @SBRM_SOURCE_RELATIVE: the logarithm of the window, see sbrm_relative.c
 * @SBRM_SOURCE_RM: TCP/RM, CP05 5.6.3; by its own name only
 */
enum sbrm_source {
	SBRM_SOURCE_DIRECT,
	SBRM_SOURCE_AIMD,
	SBRM_SOURCE_VEGAS,
	SBRM_SOURCE_RELATIVE,
	SBRM_SOURCE_RM,
};

/**
 * enum sbrm_estimator - where the price comes from, see sbrm_estimator.c
 * @SBRM_ESTIMATOR_LOG: p = -ln(1 - m), m an exponential average
 * @SBRM_ESTIMATOR_RAW: p is the mark of each packet
 * @SBRM_ESTIMATOR_HISTORY: p = -ln(1 - m), m of the last packets, CP05 5.2.2
 * @SBRM_ESTIMATOR_FOUR_BIT: the same by the best of four bits, CP05 5.2.3
 * @SBRM_ESTIMATOR_EXPLICIT: the price field, CP05 4.2.3
 *
 * From @SBRM_ESTIMATOR_FOUR_BIT on the price field is used.
 */
enum sbrm_estimator {
	SBRM_ESTIMATOR_LOG,
	SBRM_ESTIMATOR_RAW,
	SBRM_ESTIMATOR_HISTORY,
	SBRM_ESTIMATOR_FOUR_BIT,
	SBRM_ESTIMATOR_EXPLICIT,
};

/* The round-trip time of the rate in Vegas/CP. */
enum sbrm_rtt {
	SBRM_RTT_LAST,
	SBRM_RTT_MIN,
};

/**
 * enum sbrm_loss_cut - does a loss halve the window?
 * @SBRM_LOSS_CUT_NEVER: not where prices come back
 * @SBRM_LOSS_CUT_ALWAYS: always
 * @SBRM_LOSS_CUT_UNPROVEN: unless prices explain the rate, see sbrm_loss.c
 */
enum sbrm_loss_cut {
	SBRM_LOSS_CUT_NEVER,
	SBRM_LOSS_CUT_ALWAYS,
	SBRM_LOSS_CUT_UNPROVEN,
};

/**
 * struct sbrm_net - settings of a network namespace
 * @kappa: gain per acknowledged segment, Q28
 * @kappa_young: gain of a new connection, Q28; no effect unless above @kappa
 * @young_ms: how long a connection is young, ms
 * @kappa_window: window from which on the gain falls with it, segments; 0: none
 * @history_gain: weight of one packet in an exponential average, Q32
 * @history: packets that the estimator history looks at, 1 .. 64
 * @phi: base of the prices that @wtp is meant for, 10^-6; only to be shown
 * @ln_phi: its logarithm, Q24, for all else
 * @source: an &enum sbrm_source, of new connections
 * @estimator: an &enum sbrm_estimator, of new connections
 * @rtt: an &enum sbrm_rtt
 * @slow_start: begin with slow start
 * @loss_cut: an &enum sbrm_loss_cut
 * @wtp: willingness to pay by socket priority, packets/s; last, so that the
 *	least one is in a cache line with all the others
 *
 * Connections read single words, without a lock. Where a setting has several
 * (@wtp, and @phi with @ln_phi), its writers and those who show it hold the mutex
 * of struct sbrm_net_priv.
 */
struct sbrm_net {
	u32	kappa;
	u32	kappa_young;
	u32	young_ms;
	u32	kappa_window;
	u32	history_gain;
	u32	history;
	u32	phi;
	u32	ln_phi;
	u32	source;
	u32	estimator;
	u32	rtt;
	u32	slow_start;
	u32	loss_cut;
	u32	wtp[SBRM_WTP_CLASSES];
};

/**
 * enum sbrm_counter - lines of /proc/net/tcp_sbrm
 * @SBRM_COUNT_NO_ECN: connections without ECN: TCP/RM on losses alone
 * @SBRM_COUNT_LATCHED: connections whose peer repeats ECE: TCP/RM
 * @SBRM_COUNT_NO_IPV4: connections that wanted a price field over IPv6: TCP/RM
 * @SBRM_COUNT_ABSENT: connections whose peer does not echo the field: TCP/RM
 * @SBRM_COUNT_REWRITTEN: connections whose field something rewrites
 * @SBRM_COUNT_OUTSIDE: segments with a price, outside of the window
 * @SBRM_COUNT_NO_DF: packets sent without DF, which carry no price
 * @SBRM_COUNT_INVALID: segments with a price that TCP discards
 * @SBRM_COUNT_SIGNED: connections that wanted a price field and sign their
 *	segments: TCP/RM
 * @SBRM_COUNTERS: number of counters
 */
enum sbrm_counter {
	SBRM_COUNT_NO_ECN,
	SBRM_COUNT_LATCHED,
	SBRM_COUNT_NO_IPV4,
	SBRM_COUNT_ABSENT,
	SBRM_COUNT_REWRITTEN,
	SBRM_COUNT_OUTSIDE,
	SBRM_COUNT_NO_DF,
	SBRM_COUNT_INVALID,
	SBRM_COUNT_SIGNED,
	SBRM_COUNTERS
};

extern unsigned int sbrm_net_id;

/**
 * sbrm_net() - settings that hold for a socket
 * @net: its namespace
 *
 * A connection keeps them, see struct sbrm.
 *
 * Return: the settings; they live as long as the namespace.
 */
static inline const struct sbrm_net *sbrm_net(const struct net *net)
{
	return net_generic(net, sbrm_net_id);
}

void sbrm_count(const struct net *net, enum sbrm_counter counter);
int sbrm_net_register(void);
void sbrm_net_unregister(void);

#endif /* _SBRM_NET_H */
