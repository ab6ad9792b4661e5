/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What packets pay that cannot carry a mark, or whose sender answers a mark as
 * it answers a loss.
 *
 * Nothing here knows where a price comes from: see sbrm_laws.h.
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
 * @SBRM_PAYING: all that are not exempt
 * @SBRM_EXEMPT: SYNs, TCP segments without data, and small packets
 * @SBRM_CLASSES: number of classes
 */
enum sbrm_class {
	SBRM_PAYING,
	SBRM_EXEMPT,
	SBRM_CLASSES
};

/*
 * The price whose square counts is a mean over the last 2^8 packets or so: 0.3 s
 * at 10 Mbit/s, 3 ms at 1 Gbit/s. Ours respond to the mean of the price. The mean
 * of its square is larger, by the variance, and the shorter the queue is the
 * more.
 */
#define SBRM_MEAN_SHIFT		8

/*
 * What is not an overload loses at most this part of its packets, Q32. A
 * loss-based flow that loses 3/8 lives from timeouts: some packets per second.
 * Together with %SBRM_COUPLED_FIRST that is a half to one and a half of what
 * flows of ours have beside it, where these have 0.25 Mbit/s (guest_share.py).
 * Above a price of k it would lose all: a connection without ECN beside many
 * others got nothing for as long as they stayed, even if it had lost no more than
 * its SYN (Linux sends that again without ECN). With a quarter for all packets, as
 * in dualpi2 (RFC 9332), CUBIC had two to six times as much as flows of ours at 2
 * and 10 Mbit/s; with a half it had a tenth of them.
 */
#define SBRM_COUPLED_MAX	(FIXP_ONE / 8 * 3)
/*
 * The same of a sparse flow (sbrm_sparse.c): one that has lost so much that it waits for
 * its timeout sends a packet in seconds. In a FIFO that packet is often the last one,
 * which leaves whatever its price. In the first part it hardly ever is, and with 3/8 two
 * of 75 flows sent nothing for 25 s. A flow that gets on because of this is soon not
 * sparse any more.
 */
#define SBRM_COUPLED_FIRST	(FIXP_ONE / 4)

/**
 * struct sbrm_classic - coupling, and the watch for overload
 * @coupling: k, Q20, as in &struct sbrm_params
 * @small: bytes of the network layer up to which a packet is exempt
 * @inverse: 1 / k, Q32, at most 100 * 2^32
 * @mean: mean of the price, Q32; a price above k counts as k
 * @priced: value of @mean that @prob is for
 * @prob: coupled probability, Q32
 * @overload: bit n: class n has lost so much in the last period that it does
 *	not respond to losses
 * @since: start of the period, jiffies
 * @served: bytes that came to their turn in the period, what was dropped then
 *	with them
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
 * sbrm_coupled() - the probability that a loss-based flow has to see
 * @price: Q32, base e
 * @coupling: k, Q20
 * @inverse: 1 / k, Q32
 *
 * A source of ours has the rate w / p, and a loss-based one, of which a part
 * p_c is lost, 1.22 / (RTT sqrt(p_c)). With p_c = (p / k)^2 that is
 * 1.22 k / (RTT p): the loss-based flow pays the same price as ours with
 * w = 1.22 k / RTT, whatever the price is. It is the coupling of dualpi2 (RFC
 * 9332) with a price in the place of DCTCP's marks.
 *
 * Return: (@price / k)^2 in Q32, at most 2^32: certain from a price of k on.
 */
static inline u64 sbrm_coupled(u64 price, u32 coupling, u64 inverse)
{
	u64 ratio;

	if (price >= (u64)coupling << (FIXP_SHIFT - SBRM_COUPLING_SHIFT))
		return FIXP_ONE;

	/* Below 1, but for what is rounded: 32 bits. */
	ratio = min_t(u64, mul_u64_u64_shr(price, inverse, FIXP_SHIFT),
		      U32_MAX);
	return ratio * ratio >> FIXP_SHIFT;
}

/* A packet comes to its turn, at some price: the mean follows. */
static inline void sbrm_classic_see(struct sbrm_classic *classic, u64 price,
				    u32 bytes)
{
	u64 top = (u64)classic->coupling << (FIXP_SHIFT - SBRM_COUPLING_SHIFT);
	s64 away = min(price, top) - classic->mean;

	WRITE_ONCE(classic->mean, classic->mean + (away >> SBRM_MEAN_SHIFT));
	classic->served += bytes;
}

/* The coupled probability, worked out again when the mean has moved. */
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
 * Return: %INET_ECN_NOT_ECT for all that is not IP.
 */
static inline u8 sbrm_ecn_get(struct sk_buff *skb)
{
	int offset = skb_network_offset(skb);
	const struct iphdr *iph;

	/* IPv4 in one piece, as nearly all is. */
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
