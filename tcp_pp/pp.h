/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _PP_H
#define _PP_H

#include <net/inet_connection_sock.h>
#include <net/tcp.h>

#include "compat.h"
#include "pp_model.h"
#include "pp_net.h"

/* State of a connection as ss shows it, in PP_STATE_UNIT. */
#define PP_STATE_START		1
#define PP_STATE_RISING		2
#define PP_STATE_DRAINING	4
#define PP_STATE_UNIT		10000

/**
 * struct pp - one connection, in inet_csk_ca()
 * @estimate: service time of the bottleneck
 * @mean_rate: mean of the rate at which to send, packets/s in Q16
 * @train: ACKs of the open train
 * @delay_us: propagation delay R, us; 0 before the first sample
 * @rtt_us: round-trip time of the last ACK that had one, us
 * @queue: n_hat, Q8
 * @setpoint: B, Q8
 * @delivered: tp->delivered at the last ACK
 * @round_end: tp->delivered at which the round trip is over
 * @epoch_rate: discrete law: 1 / s_hat when the epoch began
 * @epoch_queue: discrete law: n_hat when the epoch began, Q8
 * @flight: most that a round trip delivered, in this one, Q8
 * @flight_last: the same of the one before
 * @idle_since: tcp_jiffies32 when the last ACK came
 * @gso_segs: what sk_gso_max_segs was without us
 * @rounds: round trips since the setpoint was raised
 * @ready: init() has run
 * @uncontrolled: this is ppx
 * @lost: the setpoint was lowered in this round trip
 * @rising: the adaptive rise holds the rate down
 * @draining: the rate is that of a queue which drains
 */
struct pp {
	struct pp_estimate	estimate;
	u64			mean_rate;
	struct pp_train		train;
	u32			delay_us;
	u32			rtt_us;
	u32			queue;
	u32			setpoint;
	u32			delivered;
	u32			round_end;
	u64			epoch_rate;
	u32			epoch_queue;
	u32			flight;
	u32			flight_last;
	u32			idle_since;
	u16			gso_segs;
	u8			rounds;
	u8			ready:1,
				uncontrolled:1,
				lost:1,
				rising:1,
				draining:1;
};

#endif /* _PP_H */
