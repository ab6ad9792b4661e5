/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _PP_NET_H
#define _PP_NET_H

#include <linux/types.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "pp_model.h"

/* Packets/s; in Q16 below PP_RATE_MAX. */
#define PP_INITIAL_RATE_MAX	100000000

/**
 * struct pp_net - settings of a network namespace, net.ipv4.tcp_pp.*
 * @gains: estimator and what it needs
 * @law: an &enum pp_law
 * @pole: of the discrete law, thousandths
 * @setpoint: B, packets; 0: probed
 * @setpoint_max: largest setpoint that probing tries, packets
 * @setpoint_step: what is tried more, Q8
 * @setpoint_every: after so many round trips, up to 4
 * @setpoint_cut: what is left of a setpoint that was too much, thousandths
 * @train: segments that leave back to back, 2 and up
 * @initial: segments sent before anything is known; 0: the initial window
 * @initial_rate: rate of the first round trip, packets/s; 0: by @initial
 * @window: segments that may be outstanding; 0: as many as the law needs
 * @reserved: packets of room at the bottleneck for each connection; 0: not known
 *
 * Each setting is a single word, written and read without a lock.
 */
struct pp_net {
	struct pp_gains	gains;
	u32		law;
	u32		pole;
	u32		setpoint;
	u32		setpoint_max;
	u32		setpoint_step;
	u32		setpoint_every;
	u32		setpoint_cut;
	u32		train;
	u32		initial;
	u32		initial_rate;
	u32		window;
	u32		reserved;
};

/**
 * enum pp_counter - lines of /proc/net/tcp_pp
 * @PP_COUNT_DELAYED: times that a receiver began to delay its ACKs
 * @PP_COUNT_SHARED: times that a bottleneck seemed not to keep flows apart
 * @PP_COUNT_WINDOW: times that a window took over there
 * @PP_COUNT_LONGER: times that a propagation delay was raised
 * @PP_COUNT_BUNCHED: times that ACKs began to come in bursts
 * @PP_COUNT_GRO: times that a receiver's GRO was seen to hold segments back
 * @PP_COUNT_BACKLOG: ACKs without a time, as a process held the socket
 * @PP_COUNTERS: number of counters
 */
enum pp_counter {
	PP_COUNT_DELAYED,
	PP_COUNT_SHARED,
	PP_COUNT_WINDOW,
	PP_COUNT_LONGER,
	PP_COUNT_BUNCHED,
	PP_COUNT_GRO,
	PP_COUNT_BACKLOG,
	PP_COUNTERS
};

extern unsigned int pp_net_id;

/**
 * pp_net() - settings that hold for a socket
 * @net: its namespace
 *
 * A connection keeps them, see struct pp.
 *
 * Return: the settings; they live as long as the namespace.
 */
static inline const struct pp_net *pp_net(const struct net *net)
{
	return net_generic(net, pp_net_id);
}

void pp_count(const struct net *net, enum pp_counter counter);
int pp_net_register(void);
void pp_net_unregister(void);

#endif /* _PP_NET_H */
