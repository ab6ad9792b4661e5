/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Drops of packets that cannot carry a mark, and marks of packets whose sender responds
 * to a mark as to a loss.
 *
 * This file does not depend on how a price is computed, see sbrm_laws.h.
 */
#ifndef _SBRM_CLASSIC_H
#define _SBRM_CLASSIC_H

#include <linux/compiler.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/skbuff.h>
#include <linux/types.h>
#include <net/inet_ecn.h>

#include "pkt_sbrm.h"
#include "tollway_fixp.h"

/**
 * enum sbrm_class - kinds of packets that cannot carry a mark
 * @SBRM_PAYING: packets that are not exempt
 * @SBRM_EXEMPT: SYNs, TCP segments without data, and small packets
 * @SBRM_CLASSES: number of classes
 */
enum sbrm_class {
	SBRM_PAYING,
	SBRM_EXEMPT,
	SBRM_CLASSES
};

/*
 * The coupled probability is the square of a mean of the price, over about the last 2^8
 * packets: 0.3 s at 10 Mbit/s, 3 ms at 1 Gbit/s. Senders of tcp_sbrm respond to the
 * mean of the price. The mean of the square of the price would be larger than the square
 * of this mean, by the variance, which is larger for a shorter queue.
 */
#define SBRM_MEAN_SHIFT		8

/*
 * Largest probability of a drop without an overload, Q32. A loss-based flow that loses
 * 3/8 of its packets has one timeout after another, and sends some packets per second.
 * Together with %SBRM_COUPLED_FIRST, it gets 0.5 to 1.5 times the rate of a flow of
 * tcp_sbrm beside it, if that has 0.25 Mbit/s (guest_share.py). Without this limit, a
 * price above k drops all packets: a connection without ECN got nothing while many others
 * were there, even if it was without ECN only because its SYN was lost (Linux
 * retransmits that without ECN). With 1/4 for all packets, as in dualpi2 (RFC 9332),
 * CUBIC got two to six times the rate of tcp_sbrm at 2 and 10 Mbit/s. With 1/2 it got a
 * tenth.
 */
#define SBRM_COUPLED_MAX	(FIXP_ONE / 8 * 3)
/*
 * The same for a sparse flow (sbrm_sparse.c). A flow that waits for its timeouts sends
 * one packet in some seconds, and so is sparse. In a FIFO this packet is often the last
 * one in the queue, which is never dropped for the price. In the first part of the queue
 * it is hardly ever the last one, and with 3/8 two of 75 flows sent nothing for 25 s. A
 * flow that recovers because of the lower limit soon sends more, and is not sparse any
 * more.
 */
#define SBRM_COUPLED_FIRST	(FIXP_ONE / 4)

/**
 * struct sbrm_classic - coupled probability, and detection of overload
 * @coupling: k, Q20, as in &struct sbrm_params
 * @small: bytes of the network layer up to which a packet is exempt
 * @inverse: 1 / k, Q32, at most 100 * 2^32
 * @mean: mean of the price, Q32; a price above k counts as k
 * @priced: value of @mean from which @prob was computed
 * @prob: coupled probability, Q32
 * @overload: bit n: class n lost so much in the last period that it does not
 *	respond to losses
 * @since: start of the period, jiffies
 * @served: bytes that were sent or dropped at the head of the queue in the period
 * @lost: bytes of each class that were dropped in the period
 */
struct sbrm_classic {
	u32		coupling;
	u32		small;
	u64		inverse;
	u64		mean;
	u64		priced;
	u64		prob;
	u32		overload;
	unsigned long	since;
	u64		served;
	u64		lost[SBRM_CLASSES];
};

/**
 * sbrm_coupled() - the probability of a drop for a loss-based flow
 * @price: Q32, base e
 * @coupling: k, Q20
 * @inverse: 1 / k, Q32
 *
 * A source of tcp_sbrm has the rate w / p. A loss-based source with the probability
 * of a loss p_c has the rate 1.22 / (RTT sqrt(p_c)). With p_c = (p / k)^2 this is
 * 1.22 k / (RTT p): the loss-based flow gets the rate of a source of tcp_sbrm with
 * w = 1.22 k / RTT, at any price. This is the coupling of dualpi2 (RFC 9332) with a
 * price instead of the marks of DCTCP.
 *
 * Return: (@price / k)^2 in Q32, at most 2^32, which it is from a price of k on.
 */
static inline u64 sbrm_coupled(u64 price, u32 coupling, u64 inverse)
{
	u64 ratio;

	if (price >= (u64)coupling << (FIXP_SHIFT - SBRM_COUPLING_SHIFT))
		return FIXP_ONE;

	/* price < k, so the ratio is below 2^32; rounding may make it 2^32. */
	ratio = min_t(u64, mul_u64_u64_shr(price, inverse, FIXP_SHIFT),
		      U32_MAX);
	return ratio * ratio >> FIXP_SHIFT;
}

/* A packet at the head of the queue has a price: update the mean. */
static inline void sbrm_classic_see(struct sbrm_classic *classic, u64 price,
				    u32 bytes)
{
	u64 top = (u64)classic->coupling << (FIXP_SHIFT - SBRM_COUPLING_SHIFT);
	s64 away = min(price, top) - classic->mean;

	WRITE_ONCE(classic->mean, classic->mean + (away >> SBRM_MEAN_SHIFT));
	classic->served += bytes;
}

/* The coupled probability; it is computed again if the mean has changed. */
static inline u64 sbrm_classic_prob(struct sbrm_classic *classic)
{
	if (classic->mean != classic->priced) {
		classic->priced = classic->mean;
		classic->prob = sbrm_coupled(classic->mean, classic->coupling,
					     classic->inverse);
	}
	return classic->prob;
}

u8 sbrm_ecn_find(struct sk_buff *skb);

/**
 * sbrm_ecn_get() - ECN field of a packet
 * @skb: packet, from its link layer header on
 *
 * Return: the field; %INET_ECN_NOT_ECT if the packet is not IP.
 */
static inline u8 sbrm_ecn_get(struct sk_buff *skb)
{
	int offset = skb_network_offset(skb);
	const struct iphdr *iph;

	/* Nearly all packets: IPv4 with a linear header. */
	if (likely(skb->protocol == htons(ETH_P_IP) && offset >= 0 &&
		   offset + sizeof(*iph) <= skb_headlen(skb))) {
		iph = (const struct iphdr *)(skb->data + offset);
		if (likely(iph->version == 4))
			return iph->tos & INET_ECN_MASK;
	}
	return sbrm_ecn_find(skb);
}

bool sbrm_ecn_set_ce(struct sk_buff *skb);
__be16 sbrm_network(const struct sk_buff *skb, int *offset);

void sbrm_classic_set(struct sbrm_classic *classic, u32 coupling, u32 small);
void sbrm_classic_reset(struct sbrm_classic *classic);
enum sbrm_class sbrm_classic_class(const struct sbrm_classic *classic,
				   const struct sk_buff *skb);
bool sbrm_classic_overloaded(struct sbrm_classic *classic,
			     const struct sk_buff *skb);
void sbrm_classic_lost(struct sbrm_classic *classic, enum sbrm_class class,
		       u32 bytes);

#endif /* _SBRM_CLASSIC_H */
