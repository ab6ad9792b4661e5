/* SPDX-License-Identifier: GPL-2.0 */
/* The segments of a super-packet, each with the length that its link counts. */
#ifndef _TOLLWAY_SPLIT_H
#define _TOLLWAY_SPLIT_H

#include <linux/err.h>
#include <linux/minmax.h>
#include <linux/netdevice.h>
#include <linux/rcupdate.h>
#include <linux/sizes.h>
#include <linux/skbuff.h>
#include <net/sch_generic.h>

#include "compat.h"

/* A table of sizes may have any numbers; the kernel has this limit since 2026. */
#define TOLLWAY_PKT_LEN_MAX	SZ_1M

/**
 * tollway_stab_len() - the length of a packet by a table of sizes
 * @stab: table, as set by tc-stab(8)
 * @len: bytes of the packet
 *
 * The kernel does the same in __qdisc_calculate_pkt_len(), which modules cannot call.
 *
 * Return: bytes, 1 to %TOLLWAY_PKT_LEN_MAX.
 */
static inline u32 tollway_stab_len(const struct qdisc_size_table *stab, u32 len)
{
	const struct tc_sizespec *spec = &stab->szopts;
	int pkt_len = len + spec->overhead;
	int slot;

	if (spec->tsize) {
		slot = max(pkt_len + spec->cell_align, 0) >> spec->cell_log;
		if (slot < spec->tsize)
			pkt_len = stab->data[slot];
		else
			pkt_len = stab->data[spec->tsize - 1] *
				  (slot / spec->tsize) +
				  stab->data[slot % spec->tsize];
		pkt_len <<= spec->size_log;
	}
	return clamp_t(int, pkt_len, 1, TOLLWAY_PKT_LEN_MAX);
}

/**
 * tollway_split() - split a super-packet
 * @skb: super-packet, on its way into @sch; the caller frees it
 * @sch: qdisc
 *
 * The kernel applies the table of sizes of the root to what it hands to the root, so the
 * segments have no such length. A shaper above @sch would let pass more than the link
 * carries.
 *
 * Context: enqueue, bottom halves are off.
 *
 * Return: the segments, linked by next, with their lengths; NULL if there are none.
 */
static inline struct sk_buff *tollway_split(struct sk_buff *skb,
					    const struct Qdisc *sch)
{
	netdev_features_t features = netif_skb_features(skb);
	const struct qdisc_size_table *stab;
	struct sk_buff *segs, *seg;

	segs = skb_gso_segment(skb, features & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segs))
		return NULL;

	stab = rcu_dereference_bh(qdisc_root_bh(sch)->stab);
	for (seg = segs; seg; seg = seg->next) {
		qdisc_skb_cb(seg)->pkt_len = stab ?
			tollway_stab_len(stab, seg->len) : seg->len;
		compat_qdisc_set_pkt_segs(seg, 1);
	}
	return segs;
}

#endif /* _TOLLWAY_SPLIT_H */
