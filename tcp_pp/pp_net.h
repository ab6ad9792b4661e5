/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _PP_NET_H
#define _PP_NET_H

#include <linux/types.h>

#include "pp_model.h"

struct net;

/**
 * struct pp_net - settings of a network namespace, net.ipv4.tcp_pp.*
 * @gains: estimator and what it needs
 * @law: an &enum pp_law
 * @setpoint: B, packets; 0: probed
 * @setpoint_max: largest setpoint that probing tries, packets
 * @train: segments that leave back to back, 2 and up
 * @initial: segments sent before anything is known; 0: the initial window
 *
 * Single words, written under the lock of the sysctl table and read without
 * one.
 */
struct pp_net {
	struct pp_gains	gains;
	u32		law;
	u32		setpoint;
	u32		setpoint_max;
	u32		train;
	u32		initial;
};

const struct pp_net *pp_net(const struct net *net);
int pp_net_register(void);
void pp_net_unregister(void);

#endif /* _PP_NET_H */
