// SPDX-License-Identifier: GPL-2.0
/*
 * Hash of the flow of a packet, for packets that come without one
 */

#include <linux/hash.h>
#include <linux/ip.h>
#include <net/ip.h>

#include "sbrm_flow.h"

/* The header fields that identify a flow of TCP or UDP over IPv4 without options. */
struct sbrm_flow_head {
	struct iphdr	ip;
	__be32		ports;
};

/**
 * sbrm_flow_hash() - compute the hash of the flow of a packet
 * @key: random, of the queue
 * @skb: packet, from its link layer header on
 *
 * A router forwards packets without a hash. For TCP and UDP over IPv4 it is computed from
 * addresses and ports, because the flow dissector takes longer than the rest of the queue.
 * All other packets, such as fragments and tunnels, are dissected.
 *
 * Return: 32 bits.
 */
u32 sbrm_flow_hash(u64 key, struct sk_buff *skb)
{
	const struct sbrm_flow_head *head;
	struct sbrm_flow_head copy;
	u64 hash;

	if (skb->protocol != htons(ETH_P_IP))
		return skb_get_hash(skb);

	head = skb_header_pointer(skb, skb_network_offset(skb), sizeof(copy),
				  &copy);
	if (!head || head->ip.version != 4 || head->ip.ihl != 5 ||
	    (head->ip.protocol != IPPROTO_TCP &&
	     head->ip.protocol != IPPROTO_UDP) ||
	    head->ip.frag_off & htons(IP_MF | IP_OFFSET))
		return skb_get_hash(skb);

	hash = (u64)(__force u32)head->ip.saddr << 32 |
	       (__force u32)head->ip.daddr;
	hash = (hash ^ key) * GOLDEN_RATIO_64 ^ (__force u32)head->ports;
	return hash_64(hash, 32);
}
