/* SPDX-License-Identifier: GPL-2.0 */
/* The identification field of IPv4 as a carrier of prices. */
#ifndef _SBRM_FEEDBACK_H
#define _SBRM_FEEDBACK_H

#include <linux/types.h>

struct sk_buff;

/**
 * enum sbrm_carry - does a packet carry its price?
 * @SBRM_UNCARRIED: the packet has no field for a price
 * @SBRM_CARRIED: the field has the price
 * @SBRM_SATURATED: the field has the largest value, because the price does not fit
 */
enum sbrm_carry {
	SBRM_UNCARRIED,
	SBRM_CARRIED,
	SBRM_SATURATED,
};

void sbrm_feedback_fix_id(struct sk_buff *skb);
enum sbrm_carry sbrm_feedback_price(struct sk_buff *skb, u64 price,
				    u64 *random);
enum sbrm_carry sbrm_feedback_four_bit(struct sk_buff *skb, u64 price,
				       u64 *random);

enum sbrm_carry sbrm_feedback_two_bit(struct sk_buff *skb, u16 bits);

#endif /* _SBRM_FEEDBACK_H */
