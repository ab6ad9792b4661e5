/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ALPHA_NET_H
#define _ALPHA_NET_H

#include <linux/types.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

/**
 * struct alpha_net - settings of a network namespace, net.ipv4.tcp_alpha.*
 * @gain: alpha of a new connection, packets/s^2; 0: computed from its round-trip time
 * @gip: p, which is added to alpha, packets/s^2; 0: computed like @gain
 * @gdp: q, by which alpha is multiplied, 10^-6, 1 .. 10^6
 * @interval: Delta, in 10^-6 of the smoothed round-trip time
 * @losses: share of lost segments above which losses count as congestion, 10^-6
 * @initial: R_0, packets/s; 0: the initial window per round trip
 * @bandwidth: BW_EST, packets/s; 0: measured
 * @share: BW_EST is between @bandwidth and the mean share of all flows
 * @goal_us: without the field, goal of the largest queueing delay, us
 * @field: new connections use the identification field
 *
 * Each setting is a single word, written and read without a lock.
 */
struct alpha_net {
	u32	gain;
	u32	gip;
	u32	gdp;
	u32	interval;
	u32	losses;
	u32	initial;
	u32	bandwidth;
	u32	share;
	u32	goal_us;
	u32	field;
};

/**
 * enum alpha_counter - lines of /proc/net/tcp_alpha
 * @ALPHA_COUNT_CYCLES: rate cycles that ended
 * @ALPHA_COUNT_BEYOND: rate cycles with BCN
 * @ALPHA_COUNT_LOSSES: ACKs whose losses counted as CN and BCN
 * @ALPHA_COUNT_RESTARTS: restarts at the initial rate, after timeouts or idle times
 * @ALPHA_COUNT_ABSENT: connections whose peer does not echo the field
 * @ALPHA_COUNT_REWRITTEN: connections on whose path a box rewrites the field
 * @ALPHA_COUNT_OUTSIDE: segments with bits, outside of the window
 * @ALPHA_COUNT_NO_DF: packets sent without DF, which carry no bits
 * @ALPHA_COUNT_INVALID: segments with bits that TCP discards
 * @ALPHA_COUNTERS: number of counters
 */
enum alpha_counter {
	ALPHA_COUNT_CYCLES,
	ALPHA_COUNT_BEYOND,
	ALPHA_COUNT_LOSSES,
	ALPHA_COUNT_RESTARTS,
	ALPHA_COUNT_ABSENT,
	ALPHA_COUNT_REWRITTEN,
	ALPHA_COUNT_OUTSIDE,
	ALPHA_COUNT_NO_DF,
	ALPHA_COUNT_INVALID,
	ALPHA_COUNTERS
};

struct tollway_carrier_net;

extern unsigned int alpha_net_id;

/**
 * alpha_net() - settings of a namespace
 * @net: its namespace
 *
 * A connection keeps this pointer, see struct alpha.
 *
 * Return: the settings; they live as long as the namespace.
 */
static inline const struct alpha_net *alpha_net(const struct net *net)
{
	return net_generic(net, alpha_net_id);
}

struct tollway_carrier_net *alpha_carrier_net(const struct net *net);
void alpha_count(const struct net *net, enum alpha_counter counter);
int alpha_net_register(void);
void alpha_net_unregister(void);

#endif /* _ALPHA_NET_H */
