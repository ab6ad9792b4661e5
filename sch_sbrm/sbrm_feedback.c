// SPDX-License-Identifier: GPL-2.0
/*
 * Prices in the IPv4 identification field, CP05 4.2.3 and 5.2.3, and the bits of
 * the law alpha
 *
 * The field tells the fragments of packets apart. Where "don't fragment" is set
 * it means nothing (RFC 6864), and is as wide as an ECN mark is narrow. Senders
 * start it at 0, each queue on the path adds to it, and the receiver has the
 * price of the path.
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

/* Bits of a Q32 price below the last one of the field. */
#define SBRM_FRACTION_BITS	(FIXP_SHIFT - PKT_SBRM_PRICE_SHIFT)

/*
 * Is the identification of this packet free, and one field? The segments of a
 * super-packet must all get the same, which only TCP's can be told.
 */
static bool sbrm_has_carrier(const struct sk_buff *skb)
{
	const struct iphdr *iph;
	struct iphdr copy;
	int offset;

	/* Behind tags in the frame the kernel's header may be the first of them. */
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
 * sbrm_feedback_fix_id() - let all segments have the field of the super-packet
 * @skb: super-packet that will be split
 *
 * Otherwise each would get that of its forerunner plus one. gso_type is shared
 * with the sender's copy of the packet, which sets it anew when it sends that.
 */
void sbrm_feedback_fix_id(struct sk_buff *skb)
{
	if (sbrm_has_carrier(skb))
		skb_shinfo(skb)->gso_type |= SKB_GSO_TCP_FIXEDID;
}

/* The header of a packet with a carrier, for writing; NULL without memory. */
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

/* Set bits of the identification, those of other queues stay. */
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
 * The price is rounded up with the probability that makes the mean exact: what
 * is below 2^-12 counts too.
 *
 * Return: what became of it.
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

	/* The last 20 bits of a Q32 price are against as many random ones. */
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
 * One draw does for all bits: a source that knows the price from one of them
 * does not look at the others, and those of other queues are independent.
 *
 * Return: what became of it.
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

	/* Each is at least 1/64: prices from 2^12 up set all bits. */
	price = min_t(u64, price, BIT_ULL(FIXP_SHIFT + 12));
	/* -ln(u), u of 0 .. 1: k * price is above with 1 - exp(-k * price). */
	drawn = -fixp_ln(tollway_random_u32(random));
	drawn <<= PKT_SBRM_FOUR_BIT_SHIFT;
	/* Prices have 44 bits now, and exponents 20. */
	for (i = 0; i < ARRAY_SIZE(k); i++)
		bits |= (price * k[i] >= drawn) << i;
	return sbrm_carrier_or(skb, bits);
}

/**
 * sbrm_feedback_two_bit() - set bits of the law alpha in the identification
 * @skb: packet that leaves, from its link layer header on
 * @bits: %PKT_SBRM_CN and %PKT_SBRM_BCN, or 0
 *
 * Return: what became of it.
 */
enum sbrm_carry sbrm_feedback_two_bit(struct sk_buff *skb, u16 bits)
{
	if (!sbrm_has_carrier(skb))
		return SBRM_UNCARRIED;
	if (skb_is_gso(skb))
		skb_shinfo(skb)->gso_type |= SKB_GSO_TCP_FIXEDID;

	return sbrm_carrier_or(skb, bits);
}
