// SPDX-License-Identifier: GPL-2.0
/*
 * Packets that cannot carry a mark: drops for the price, and for an overload
 *
 * Principles:
 * - the price is the probability of a mark, and marks cost nothing. A loss-based
 *   sender needs far fewer losses than this: its rate depends on the square root of
 *   their probability. So a packet that is not ECN-capable is dropped with the
 *   coupled probability (price / k)^2, see sbrm_coupled(), which is at most
 *   %SBRM_COUPLED_MAX;
 * - the loss of some packets costs a timeout, and no sender slows down because of
 *   it: SYNs, TCP segments without data, and small packets, which are mostly
 *   requests, answers and voice. They are exempt: the price drops none of them;
 * - a sender that does not respond to losses could use this to increase the price
 *   for all others. A class of packets that loses a fifth of its packets for a
 *   second does not respond. While this is so (an overload), its packets are dropped
 *   with the probability with which others are marked. Each class is judged by
 *   itself: a flood of large packets does not end the exemption of SYNs, and a
 *   flood of SYNs does.
 *
 * Everything runs under the root lock of the qdisc.
 */

#include <linux/if_ether.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/ipv6.h>

#include "sbrm_classic.h"

/* A frame with more VLAN tags is not regarded as IP; the kernel has the same limit. */
#define SBRM_TAGS_MAX		8

/*
 * RFC 8200, 4.1: a packet has each of seven extension headers at most once, and one of
 * them twice.
 */
#define SBRM_EXTENSIONS_MAX	8

/*
 * Overload: in a period of one second or longer, a class has lost 1 / 5 of the bytes
 * that were about to be sent. A loss-based flow that loses 20 % has a window of
 * 1.22 / sqrt(0.2) = 2.7 segments and one timeout after another. Slow start overshoots
 * by one window, once, which is less than the link carries in a round trip. So it loses
 * a fifth of what the link carries in a second only with a round trip of 200 ms.
 */
#define SBRM_OVERLOAD_PERIOD	HZ
#define SBRM_OVERLOAD_PART	5
/*
 * A period ends only after so many bytes: 66 full packets. The standard deviation of a
 * fraction of 0.2 of them is sqrt(0.2 * 0.8 / 66) = 0.05. With fewer bytes, random
 * losses are taken for an overload; with more, the period of slow links is longer.
 * Below 0.8 Mb/s it is longer than a second.
 */
#define SBRM_OVERLOAD_LEAST	100000

/**
 * sbrm_network() - protocol and offset of the network header
 * @skb: packet
 * @offset: where the offset is written
 *
 * If VLAN tags are in the frame and not in skb->vlan_tci, the kernel's network header
 * may point at the first tag: search for the header after the last one. The data of a
 * packet in a qdisc starts with the link layer header.
 *
 * Return: the protocol, 0 for a frame that ends within its tags.
 */
__be16 sbrm_network(const struct sk_buff *skb, int *offset)
{
	__be16 protocol = skb->protocol;
	const struct vlan_hdr *tag;
	struct vlan_hdr copy;
	int i;

	*offset = skb_network_offset(skb);
	if (likely(!eth_type_vlan(protocol)))
		return protocol;

	*offset = ETH_HLEN;
	for (i = 0; i < SBRM_TAGS_MAX && eth_type_vlan(protocol); i++) {
		tag = skb_header_pointer(skb, *offset, sizeof(copy), &copy);
		if (!tag)
			return 0;
		protocol = tag->h_vlan_encapsulated_proto;
		*offset += VLAN_HLEN;
	}
	return protocol;
}

/* The IPv4 or IPv6 header, which is made linear; NULL if there is none. */
static void *sbrm_ip_header(struct sk_buff *skb, __be16 *protocol)
{
	unsigned int size;
	u8 version;
	int offset;
	u8 *header;

	*protocol = sbrm_network(skb, &offset);
	if (*protocol == htons(ETH_P_IP)) {
		size = sizeof(struct iphdr);
		version = 4;
	} else if (*protocol == htons(ETH_P_IPV6)) {
		size = sizeof(struct ipv6hdr);
		version = 6;
	} else {
		return NULL;
	}

	if (offset < 0 || !pskb_may_pull(skb, offset + size))
		return NULL;

	header = skb->data + offset;
	return *header >> 4 == version ? header : NULL;
}

/**
 * sbrm_ecn_find() - ECN field of any packet, see sbrm_ecn_get()
 * @skb: packet, from its link layer header on
 *
 * Return: the field; %INET_ECN_NOT_ECT if the packet is not IP.
 */
u8 sbrm_ecn_find(struct sk_buff *skb)
{
	__be16 protocol;
	void *header = sbrm_ip_header(skb, &protocol);

	if (!header)
		return INET_ECN_NOT_ECT;
	if (protocol == htons(ETH_P_IP))
		return ((struct iphdr *)header)->tos & INET_ECN_MASK;

	return ipv6_get_dsfield(header) & INET_ECN_MASK;
}

/**
 * sbrm_ecn_set_ce() - mark a packet
 * @skb: packet, from its link layer header on
 *
 * INET_ECN_set_ce() does the same, but uses the network header of the skb, which is not
 * always behind the VLAN tags.
 *
 * Return: false if it is not ECN-capable.
 */
bool sbrm_ecn_set_ce(struct sk_buff *skb)
{
	__be16 protocol;
	void *header = sbrm_ip_header(skb, &protocol);

	if (!header)
		return false;
	if (protocol == htons(ETH_P_IP))
		return IP_ECN_set_ce(header);

	return IP6_ECN_set_ce(skb, header);
}

/*
 * Offset of the TCP header, or 0. @end: the end of the IP packet, which may be before
 * the end of the frame. 0 for fragments, because not all of them have a TCP header.
 */
static int sbrm_tcp_v4(const struct sk_buff *skb, int offset, int *end)
{
	const struct iphdr *iph;
	struct iphdr copy;

	iph = skb_header_pointer(skb, offset, sizeof(copy), &copy);
	if (!iph || iph->version != 4 || iph->ihl < 5 ||
	    iph->protocol != IPPROTO_TCP ||
	    iph->frag_off & htons(IP_MF | IP_OFFSET))
		return 0;

	*end = offset + ntohs(iph->tot_len);
	return offset + 4 * iph->ihl;
}

static int sbrm_tcp_v6(const struct sk_buff *skb, int offset, int *end)
{
	const struct ipv6_opt_hdr *extension;
	struct ipv6_opt_hdr extension_copy;
	const struct ipv6hdr *iph;
	struct ipv6hdr copy;
	u8 next;
	int i;

	iph = skb_header_pointer(skb, offset, sizeof(copy), &copy);
	if (!iph || iph->version != 6)
		return 0;

	offset += sizeof(copy);
	*end = offset + ntohs(iph->payload_len);
	next = iph->nexthdr;
	for (i = 0; i < SBRM_EXTENSIONS_MAX && next != NEXTHDR_TCP; i++) {
		if (next != NEXTHDR_HOP && next != NEXTHDR_DEST &&
		    next != NEXTHDR_ROUTING)
			return 0;
		extension = skb_header_pointer(skb, offset,
					       sizeof(extension_copy),
					       &extension_copy);
		if (!extension)
			return 0;
		next = extension->nexthdr;
		offset += ipv6_optlen(extension);
	}
	return next == NEXTHDR_TCP ? offset : 0;
}

/* A SYN, or a TCP segment without data? */
static bool sbrm_is_control(const struct sk_buff *skb, __be16 protocol,
			    int offset)
{
	const struct tcphdr *th;
	int transport = 0, end;
	struct tcphdr copy;

	if (protocol == htons(ETH_P_IP))
		transport = sbrm_tcp_v4(skb, offset, &end);
	else if (protocol == htons(ETH_P_IPV6))
		transport = sbrm_tcp_v6(skb, offset, &end);
	if (!transport)
		return false;

	th = skb_header_pointer(skb, transport, sizeof(copy), &copy);
	if (!th)
		return false;
	if (th->syn)
		return true;

	/* The length fields in the headers of a super-packet may be wrong. */
	return !skb_is_gso(skb) && th->doff >= 5 &&
	       transport + __tcp_hdrlen(th) == end;
}

/**
 * sbrm_classic_class() - is this packet exempt?
 * @classic: its @small is used
 * @skb: packet, from its link layer header on
 *
 * Return: its class.
 */
enum sbrm_class sbrm_classic_class(const struct sbrm_classic *classic,
				   const struct sk_buff *skb)
{
	__be16 protocol;
	int offset;

	protocol = sbrm_network(skb, &offset);
	if (offset < 0)
		return SBRM_PAYING;
	if (skb->len <= offset + classic->small)
		return SBRM_EXEMPT;

	return sbrm_is_control(skb, protocol, offset) ? SBRM_EXEMPT :
							SBRM_PAYING;
}

/* Begin a new period. */
static void sbrm_classic_start(struct sbrm_classic *classic)
{
	classic->since = jiffies;
	classic->served = 0;
	classic->lost[SBRM_PAYING] = 0;
	classic->lost[SBRM_EXEMPT] = 0;
}

/* If the period has ended, set the overload of each class. */
static void sbrm_classic_look(struct sbrm_classic *classic)
{
	u32 overload = 0, i;

	/* Not time_before(): the last call may be months ago, and jiffies wrap. */
	if (jiffies - classic->since < SBRM_OVERLOAD_PERIOD ||
	    classic->served < SBRM_OVERLOAD_LEAST)
		return;

	for (i = 0; i < SBRM_CLASSES; i++)
		if (classic->lost[i] >
		    div_u64(classic->served, SBRM_OVERLOAD_PART))
			overload |= BIT(i);
	WRITE_ONCE(classic->overload, overload);
	sbrm_classic_start(classic);
}

/**
 * sbrm_classic_overloaded() - does this packet belong to an overload?
 * @classic: at least one bit of @overload is set
 * @skb: packet, from its link layer header on
 *
 * Return: true if it is dropped with the probability with which others are marked.
 */
bool sbrm_classic_overloaded(struct sbrm_classic *classic,
			     const struct sk_buff *skb)
{
	sbrm_classic_look(classic);
	return classic->overload & BIT(sbrm_classic_class(classic, skb));
}

/**
 * sbrm_classic_lost() - count the drop of a packet that cannot carry a mark
 * @classic: the counts
 * @class: of the packet
 * @bytes: its size
 *
 * Drops for the price and drops by a full queue count alike. Only a drop checks whether
 * the period has ended, so packets that pass cost nothing.
 */
void sbrm_classic_lost(struct sbrm_classic *classic, enum sbrm_class class,
		       u32 bytes)
{
	classic->lost[class] += bytes;
	sbrm_classic_look(classic);
}

/**
 * sbrm_classic_set() - set the options
 * @classic: result
 * @coupling: k, Q20, %SBRM_COUPLING_MIN ..
 * @small: bytes
 */
void sbrm_classic_set(struct sbrm_classic *classic, u32 coupling, u32 small)
{
	classic->small = small;
	WRITE_ONCE(classic->coupling, coupling);
	/* 1 / k in Q32, of a k in Q20: 2^32 * 2^20 / coupling. */
	WRITE_ONCE(classic->inverse,
		   div_u64(FIXP_ONE << SBRM_COUPLING_SHIFT, coupling));
	classic->prob = sbrm_coupled(classic->mean, coupling, classic->inverse);
}

/**
 * sbrm_classic_reset() - clear all counts
 * @classic: the counts
 */
void sbrm_classic_reset(struct sbrm_classic *classic)
{
	WRITE_ONCE(classic->mean, 0);
	classic->priced = 0;
	classic->prob = 0;
	WRITE_ONCE(classic->overload, 0);
	sbrm_classic_start(classic);
}
