/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of tcp_pp share: a connection, its rate (pp.c) and what it
 * makes of its path (pp_path.c). The arithmetic is in pp_model.h.
 */
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
#define PP_STATE_DELAYED	8
#define PP_STATE_SHARED		16
#define PP_STATE_UNIT		10000

/**
 * struct pp - one connection, in inet_csk_ca()
 * @estimate: service time of the bottleneck
 * @mean_rate: mean of the rate at which to send, packets/s in Q16
 * @epoch_rate: 1 / s_hat when the round trip began
 * @train: ACKs of the open train
 * @epoch_queue: discrete law: n_hat when the round trip began, Q8
 * @delay_us: propagation delay R, us; 0 before the first sample
 * @rtt_us: round-trip time of the last ACK that had one, us
 * @queue: n_hat, Q8
 * @setpoint: B, Q8
 * @stop_us: low word of the time at which it last stopped to let a queue drain
 * @round_start: tp->delivered when the round trip began
 * @round_us: low word of the time at which it began
 * @flight: most that a round trip delivered, in this one, Q8
 * @flight_last: the same of the one before
 * @low_us: least in this round trip; while @fresh, in the one before @shared
 * @turn_bytes: low word of tp->bytes_sent when the turn began
 * @gso_segs: what sk_gso_max_segs was without us
 * @odd: round trips that do not fit a queue of our own, see PP_ODD_STEP; with
 *	@shared those that do, or those since it began while @fresh
 * @hold: round trips until @delay_us may be raised again
 * @losses: segments lost in this round trip; saturates
 * @rounds: round trips since the setpoint was raised
 * @turn: a train may leave that the stack does not pace
 * @ready: init() has run
 * @rising: the adaptive rise holds the rate down
 * @draining: the rate is that of a queue which drains
 * @clean: what is sent next finds nothing of ours on the path
 * @empty: n_hat was small in this round trip
 * @was_empty: the same of the one before
 * @paired: a sample came in this round trip
 * @narrow: with @shared: one that does not fit a queue of our own
 * @shared: the bottleneck does not keep flows apart: s_hat is what arrives
 * @fresh: with @shared: the round-trip time is watched
 * @fell: with @fresh: it fell
 * @delayed: the receiver delays ACKs: s_hat is from the distances of pairs
 * @settled: packets have been waiting at the bottleneck
 * @held: ACKs in a row that stand for a pair
 */
struct pp {
	struct pp_estimate	estimate;
	u64			mean_rate;
	u64			epoch_rate;
	struct pp_train		train;
	u32			epoch_queue;
	u32			delay_us;
	u32			rtt_us;
	u32			queue;
	u32			setpoint;
	u32			stop_us;
	u32			round_start;
	u32			round_us;
	u32			flight;
	u32			flight_last;
	u32			low_us;
	u32			turn_bytes;
	u16			gso_segs;
	u8			odd;
	u8			hold;
	u8			losses;
	u8			rounds:2,
				turn:1;
	u16			ready:1,
				rising:1,
				draining:1,
				clean:1,
				empty:1,
				was_empty:1,
				paired:1,
				narrow:1,
				shared:1,
				fresh:1,
				fell:1,
				delayed:1,
				settled:1,
				held:3;
};

/**
 * struct pp_ack - what one ACK brings
 * @net: settings in force
 * @rs: rate sample of the stack
 * @acked: segments newly delivered, 1 and up
 * @now_ns: when it came, low word
 * @timed: that time is true, and so is the one of the segments
 */
struct pp_ack {
	const struct pp_net		*net;
	const struct rate_sample	*rs;
	u32				acked;
	u32				now_ns;
	bool				timed;
};

/* Up to this queue the estimates are taken with caution, PP94 section 5. */
static inline bool pp_is_low(const struct pp *ca)
{
	return ca->queue <= PP_QUEUE_LOW;
}

/* Packets not known to have left or to be lost, Q8. */
static inline u32 pp_outstanding(const struct sock *sk)
{
	return min_t(u32, tcp_packets_in_flight(tcp_sk(sk)), PP_PACKETS_MAX) <<
	       PP_PACKET_SHIFT;
}

/* Did it stop a round trip ago or less? Then that shows in nothing yet. */
static inline bool pp_is_stopped(const struct sock *sk, const struct pp *ca)
{
	return (u32)tcp_sk(sk)->tcp_mstamp - ca->stop_us <= ca->rtt_us;
}

/* pp_pace.c */
void pp_pace(struct sock *sk, u64 rate);
void pp_pace_stop(struct sock *sk, struct pp *ca, u32 wait_us);
void pp_pace_window(struct sock *sk, const struct pp *ca, u32 pipe);
u32 pp_pace_settle(struct sock *sk, struct pp *ca);
void pp_pace_before_send(struct sock *sk, struct pp *ca, u32 train);

/* pp_path.c */
u64 pp_path_bound(const struct pp *ca);
u64 pp_path_sample(struct sock *sk, struct pp *ca, const struct pp_ack *ack);
void pp_path_delay(const struct sock *sk, struct pp *ca,
		   const struct pp_ack *ack);
void pp_path_round(const struct sock *sk, struct pp *ca);

#endif /* _PP_H */
