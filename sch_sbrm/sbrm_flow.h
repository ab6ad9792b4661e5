/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which packets are of one flow, and how many segments a packet has
 */
#ifndef _SBRM_FLOW_H
#define _SBRM_FLOW_H

#include <linux/skbuff.h>
#include <linux/types.h>

u32 sbrm_flow_hash(u64 key, struct sk_buff *skb);
u32 sbrm_count_segments(const struct sk_buff *skb);

/**
 * sbrm_flow_find() - hash of the flow of a packet
 * @key: random, of the queue
 * @skb: packet, from its link layer header on
 *
 * A packet of a socket of this host comes with its hash.
 *
 * Return: the hash, with the last bit set: it is not 0.
 */
static inline u32 sbrm_flow_find(u64 key, struct sk_buff *skb)
{
	return (skb->l4_hash || skb->sw_hash ? skb->hash :
					       sbrm_flow_hash(key, skb)) | 1;
}

#endif /* _SBRM_FLOW_H */
