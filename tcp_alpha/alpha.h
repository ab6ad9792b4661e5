/* SPDX-License-Identifier: GPL-2.0 */
/* The private data of a connection, and functions that the files of tcp_alpha share. */
#ifndef _ALPHA_H
#define _ALPHA_H

#include <net/inet_connection_sock.h>
#include <net/tcp.h>

#include "alpha_law.h"
#include "alpha_net.h"
#include "compat.h"
#include "pkt_sbrm.h"

#define ALPHA_ECHOED	U8_MAX

/**
 * struct alpha - one connection, in inet_csk_ca()
 * @net: settings of the socket's namespace; NULL until init() has run, see
 *	alpha_is_ready()
 * @rate: R, packets/s in Q16
 * @gain: alpha, packets/s^2 in Q8; 0 until a round-trip time is known
 * @bandwidth: largest delivery rate in this cycle, packets/s in Q16
 * @last_bandwidth: the same in the cycle before
 * @fair: BW_EST if the rate of the link is set, packets/s in Q16, see alpha_fair(); 0 until
 *	the second cycle has ended
 * @delivered_ce: tp->delivered_ce at the last ACK
 * @step_us: low word of the time of the last step
 * @rtt_us: longest round-trip time in this cycle, us
 * @cycle_us: low word of the time when the last cycle ended
 * @risen_us: time without CN in this cycle, us; saturates
 * @fallen_us: time with CN, us; saturates
 * @last_fallen_us: the same of the cycle before, us with the gain of this cycle; 0 in the
 *	first one
 * @recent_delivered: tp->delivered when the count of @recent_lost began
 * @recent_lost: segments lost since then; at most 2^20 for each ACK; halved by
 *	alpha_losses()
 * @last_bits: receiver: field of the last packet
 * @echo_bits: receiver: OR of the fields of all packets that the next ACK
 *	acknowledges
 * @bits: OR of CN and BCN that came since the last step
 * @cycle_bits: BCN that came in the CN phase, with CN if the field carried it
 * @silent: segments acknowledged without an echo of the field; saturates. Or
 *	%ALPHA_ECHOED: the ACK that is processed now had an echo
 * @strange: receiver: packets with a field that sch_sbrm cannot have set; saturates
 * @cn: LCN, the last step had CN
 * @last_bcn: LBCN, the last cycle was beyond the goal
 * @heard: marks have arrived on this path
 * @lost: since the last step, a loss has counted as CN
 * @lossy: more segments are lost than errors explain
 * @carrier: the connection uses the field
 * @absent: the peer does not echo the field
 * @rcv_any: receiver: a field has arrived, and the last one was valid
 */
struct alpha {
	const struct alpha_net *net;
	u64	rate;
	u64	gain;
	u64	bandwidth;
	u64	last_bandwidth;
	u64	fair;
	u32	delivered_ce;
	u32	step_us;
	u32	rtt_us;
	u32	cycle_us;
	u32	risen_us;
	u32	fallen_us;
	u32	last_fallen_us;
	u32	recent_delivered;
	u32	recent_lost;
	u8	last_bits;
	u8	echo_bits;
	u8	bits;
	u8	cycle_bits;
	u8	silent;
	u8	strange;
	u8	cn:1,
		last_bcn:1,
		heard:1,
		lost:1,
		lossy:1,
		carrier:1,
		absent:1,
		rcv_any:1;
};

/**
 * alpha_is_ready() - is the private area of a socket a connection of ours?
 * @sk: socket
 *
 * The stack calls most callbacks before init() as well, see sbrm_is_ready().
 *
 * Return: false before init() and after release(). The content of the area is
 * undefined then, and must not be changed.
 */
static inline bool alpha_is_ready(const struct sock *sk)
{
	const struct alpha *ca = inet_csk_ca(sk);

	return inet_csk(sk)->icsk_ca_initialized && ca->net;
}

/* alpha.c */
u64 alpha_bandwidth(const struct sock *sk, const struct alpha *ca);
size_t alpha_get_info(struct sock *sk, u32 ext, int *attr,
		      union tcp_cc_info *info);
bool alpha_owns(const struct sock *sk);

/* alpha_carrier.c */
void alpha_carrier_use(struct sock *sk);
bool alpha_carrier_is_early(const struct sock *sk);

#endif /* _ALPHA_H */
