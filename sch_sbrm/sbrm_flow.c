// SPDX-License-Identifier: GPL-2.0
/*
 * What a packet does not come with: the hash of its flow, the number of its segments
 */

#include <linux/hash.h>
#include <linux/ip.h>
#include <linux/kernel.h>
#include <linux/tcp.h>
#include <linux/udp.h>
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

/**
 * sbrm_count_segments() - segments of a super-packet that came from outside
 * @skb: super-packet, from its link layer header on; nobody counted them
 *
 * Return: how many there are.
 */
u32 sbrm_count_segments(const struct sk_buff *skb)
{
	const struct skb_shared_info *shinfo = skb_shinfo(skb);
	u32 header = skb_transport_offset(skb);
	const struct tcphdr *th;
	struct tcphdr copy;

	if (shinfo->gso_type & (SKB_GSO_TCPV4 | SKB_GSO_TCPV6)) {
		th = skb_header_pointer(skb, header, sizeof(copy), &copy);
		header += th ? __tcp_hdrlen(th) : 0;
	} else {
		header += sizeof(struct udphdr);
	}

	return skb->len <= header ? 1 :
	       DIV_ROUND_UP(skb->len - header, shinfo->gso_size);
}
