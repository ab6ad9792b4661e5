// SPDX-License-Identifier: GPL-2.0
/*
 * Prices in the IPv4 identification field, CP05 4.2.3 and 5.2.3, and the bits of
 * the law alpha
 *
 * The field identifies the fragments of a packet. If "don't fragment" is set, it has no
 * meaning (RFC 6864). It has 16 bits, and an ECN mark has one. Senders set it to 0, each
 * queue on the path adds its price, and the receiver gets the price of the path.
 */

#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/skbuff.h>
#include <net/checksum.h>
#include <net/ip.h>

#include "pkt_sbrm.h"
#include "sbrm_classic.h"
#include "sbrm_feedback.h"
#include "tollway_fixp.h"
#include "tollway_random.h"

/* A price is Q32 here and Q12 in the field: it has so many bits below those of the field. */
#define SBRM_FRACTION_BITS	(FIXP_SHIFT - PKT_SBRM_PRICE_SHIFT)

/*
 * Can the identification of this packet carry a price? All segments of a super-packet
 * must get the same value, which is possible for TCP only, see below.
 */
static bool sbrm_has_carrier(const struct sk_buff *skb)
{
	const struct iphdr *iph;
	struct iphdr copy;
	int offset;

	/* With VLAN tags in the frame, ip_hdr() may be the first tag. */
	if (sbrm_network(skb, &offset) != htons(ETH_P_IP) ||
	    offset != skb_network_offset(skb))
		return false;

	iph = skb_header_pointer(skb, offset, sizeof(copy), &copy);
	/* AH signs the identification. */
	if (!iph || iph->version != 4 || iph->protocol == IPPROTO_AH ||
	    (iph->frag_off & htons(IP_DF | IP_MF | IP_OFFSET)) != htons(IP_DF))
		return false;

	return !skb_is_gso(skb) ||
	       (skb_shinfo(skb)->gso_type & SKB_GSO_TCPV4 &&
		!skb->encapsulation);
}

/**
 * sbrm_feedback_fix_id() - give all segments the field of the super-packet
 * @skb: super-packet that will be split
 *
 * Otherwise the field of each segment would be that of the one before plus one.
 * gso_type is shared with the sender's copy of the packet; the sender sets it again when
 * it retransmits that copy.
 */
void sbrm_feedback_fix_id(struct sk_buff *skb)
{
	if (sbrm_has_carrier(skb))
		skb_shinfo(skb)->gso_type |= SKB_GSO_TCP_FIXEDID;
}

/* The IPv4 header of a packet, made writable; NULL if there is no memory. */
static struct iphdr *sbrm_carrier(struct sk_buff *skb)
{
	if (skb_ensure_writable(skb, skb_network_offset(skb) +
				     sizeof(struct iphdr)))
		return NULL;

	return ip_hdr(skb);
}

static void sbrm_carrier_write(struct iphdr *iph, u16 value)
{
	__be16 id = htons(value);

	csum_replace2(&iph->check, iph->id, id);
	iph->id = id;
}

/* Set bits of the identification; bits of other queues are kept. */
static enum sbrm_carry sbrm_carrier_or(struct sk_buff *skb, u16 bits)
{
	struct iphdr *iph;

	if (!bits)
		return SBRM_CARRIED;

	iph = sbrm_carrier(skb);
	if (!iph)
		return SBRM_UNCARRIED;

	sbrm_carrier_write(iph, ntohs(iph->id) | bits);
	return SBRM_CARRIED;
}

/**
 * sbrm_feedback_price() - add a price to the identification
 * @skb: packet that leaves, from its link layer header on
 * @price: Q32, base e
 * @random: generator
 *
 * The part of the price below 2^-12 is rounded up at random, with the probability that
 * makes the mean exact.
 *
 * Return: whether the packet carries the price.
 */
enum sbrm_carry sbrm_feedback_price(struct sk_buff *skb, u64 price,
				    u64 *random)
{
	u32 fraction = price & (BIT(SBRM_FRACTION_BITS) - 1);
	struct iphdr *iph;
	u32 sum;

	if (!sbrm_has_carrier(skb))
		return SBRM_UNCARRIED;
	if (skb_is_gso(skb))
		skb_shinfo(skb)->gso_type |= SKB_GSO_TCP_FIXEDID;

	/* Round up if the last 20 bits of the Q32 price exceed 20 random bits. */
	sum = min_t(u64, price >> SBRM_FRACTION_BITS, PKT_SBRM_PRICE_MAX + 1);
	if (fraction &&
	    tollway_random_u32(random) >> (32 - SBRM_FRACTION_BITS) < fraction)
		sum++;
	if (!sum)
		return SBRM_CARRIED;

	iph = sbrm_carrier(skb);
	if (!iph)
		return SBRM_UNCARRIED;

	sum += ntohs(iph->id);
	sbrm_carrier_write(iph, min(sum, PKT_SBRM_PRICE_MAX));
	return sum > PKT_SBRM_PRICE_MAX ? SBRM_SATURATED : SBRM_CARRIED;
}

/**
 * sbrm_feedback_four_bit() - set bits of the identification
 * @skb: packet that leaves, from its link layer header on
 * @price: Q32, base e
 * @random: generator
 *
 * One random number is enough for all bits, because a source that knows the price from
 * one bit does not use the others, and the numbers of other queues are independent.
 *
 * Return: whether the packet carries the bits.
 */
enum sbrm_carry sbrm_feedback_four_bit(struct sk_buff *skb, u64 price,
				       u64 *random)
{
	static const u32 k[] = {
		PKT_SBRM_FOUR_BIT_K0, PKT_SBRM_FOUR_BIT_K1,
		PKT_SBRM_FOUR_BIT_K2, PKT_SBRM_FOUR_BIT_K3,
	};
	u16 bits = 0;
	u64 drawn;
	u32 i;

	if (!sbrm_has_carrier(skb))
		return SBRM_UNCARRIED;
	if (skb_is_gso(skb))
		skb_shinfo(skb)->gso_type |= SKB_GSO_TCP_FIXEDID;
	if (!price)
		return SBRM_CARRIED;

	/* Each k is at least 1/64: a price of 2^12 sets all bits, so larger ones are cut. */
	price = min_t(u64, price, BIT_ULL(FIXP_SHIFT + 12));
	/* With u in 0 .. 1, -ln(u) < k * price has the probability 1 - exp(-k * price). */
	drawn = -fixp_ln(tollway_random_u32(random));
	drawn <<= PKT_SBRM_FOUR_BIT_SHIFT;
	/* price <= 2^44 and k < 2^20 (Q16): the product fits into 64 bits. */
	for (i = 0; i < ARRAY_SIZE(k); i++)
		bits |= (price * k[i] >= drawn) << i;
	return sbrm_carrier_or(skb, bits);
}

/**
 * sbrm_feedback_two_bit() - set bits of the law alpha in the identification
 * @skb: packet that leaves, from its link layer header on
 * @bits: %PKT_SBRM_CN and %PKT_SBRM_BCN, or 0
 *
 * Return: whether the packet carries the bits.
 */
enum sbrm_carry sbrm_feedback_two_bit(struct sk_buff *skb, u16 bits)
{
	if (!sbrm_has_carrier(skb))
		return SBRM_UNCARRIED;
	if (skb_is_gso(skb))
		skb_shinfo(skb)->gso_type |= SKB_GSO_TCP_FIXEDID;

	return sbrm_carrier_or(skb, bits);
}
