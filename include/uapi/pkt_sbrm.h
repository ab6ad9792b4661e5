/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Netlink interface of the sbrm qdisc: what tc, or any other program, sends
 * to it and reads back.
 */
#ifndef _UAPI_PKT_SBRM_H
#define _UAPI_PKT_SBRM_H

#include <linux/types.h>

/**
 * enum sbrm_attr - options of the qdisc, nested in %TCA_OPTIONS
 * @TCA_SBRM_UNSPEC: unused
 * @TCA_SBRM_PAD: alignment of 64-bit attributes
 * @TCA_SBRM_LAW: u32, an &enum sbrm_law
 * @TCA_SBRM_LIMIT: u32, room of the queue in the unit of the backlog, 1 and up
 * @TCA_SBRM_TARGET: u32, backlog up to which nothing is priced (CP05 b0), same
 *	unit; below the limit
 * @TCA_SBRM_GAMMA: u64, price per unit of backlog above the target, in 2^-48;
 *	at most 1.0, and 0 asks for "auto": 99 % marking at the limit
 * @TCA_SBRM_FLAGS: struct nla_bitfield32 of %SBRM_F_ bits; bits outside the
 *	selector keep their value
 * @TCA_SBRM_RESET_STATS: flag, start the statistics of &struct tc_sbrm_xstats
 *	again from zero; never dumped
 * @__TCA_SBRM_MAX: number of attributes, this one left out
 *
 * Attributes that are absent keep their value on change, and take their
 * default on creation: law sbrm, limit 1000, target 10 (packets; as many full
 * Ethernet frames in bytes), gamma auto, flags %SBRM_F_ECN |
 * %SBRM_F_SPLIT_GSO | %SBRM_F_DITHER. In a dump gamma is the value in force; it
 * was computed when %SBRM_F_GAMMA_AUTO is set in the dumped flags.
 */
enum sbrm_attr {
	TCA_SBRM_UNSPEC,
	TCA_SBRM_PAD,
	TCA_SBRM_LAW,
	TCA_SBRM_LIMIT,
	TCA_SBRM_TARGET,
	TCA_SBRM_GAMMA,
	TCA_SBRM_FLAGS,
	TCA_SBRM_RESET_STATS,
	__TCA_SBRM_MAX
};

#define TCA_SBRM_MAX	(__TCA_SBRM_MAX - 1)

/**
 * enum sbrm_law - how the backlog becomes a marking probability
 * @SBRM_LAW_SBRM: m = 1 - exp(-gamma [b - target]+), CP05 (5.4.1)
 * @__SBRM_LAW_MAX: number of laws
 */
enum sbrm_law {
	SBRM_LAW_SBRM,
	__SBRM_LAW_MAX
};

#define SBRM_LAW_MAX	(__SBRM_LAW_MAX - 1)

/* The backlog, limit and target count bytes, not packets. */
#define SBRM_F_BYTES		(1U << 0)
/* Mark packets that are ECN-capable; without it every price is a drop. */
#define SBRM_F_ECN		(1U << 1)
/* With ECN: let packets that are not ECN-capable pass without a price. */
#define SBRM_F_NODROP		(1U << 2)
/* Split GSO super-packets on enqueue; without it one is priced as a whole. */
#define SBRM_F_SPLIT_GSO	(1U << 3)
/* Spread the marks of each flow evenly; without it every draw is independent. */
#define SBRM_F_DITHER		(1U << 4)
/* Read only: gamma follows limit and target. */
#define SBRM_F_GAMMA_AUTO	(1U << 31)

#define SBRM_F_SETTABLE		(SBRM_F_BYTES | SBRM_F_ECN | SBRM_F_NODROP | \
				 SBRM_F_SPLIT_GSO | SBRM_F_DITHER)

/* Gamma travels in units of 2^-48 per packet or byte. */
#define SBRM_GAMMA_SHIFT	48
#define SBRM_GAMMA_ONE		(1ULL << SBRM_GAMMA_SHIFT)

/**
 * struct tc_sbrm_xstats - statistics of the qdisc (%TCA_XSTATS)
 * @packets: packets that left the queue, price drops included, GSO segments
 *	counted each
 * @backlog_sum: sum over @packets of the backlog that each left behind and
 *	itself, in packets or bytes; @backlog_sum / @packets is the mean backlog
 * @marks: packets marked CE
 * @price_drops: packets dropped for the price
 * @full_drops: packets dropped because the queue was full
 * @price: current price, in 2^-32
 * @backlog_max: largest backlog, in packets or bytes
 * @prob: current marking probability, in 2^-32, 2^32 - 1 stands for one
 */
struct tc_sbrm_xstats {
	__u64	packets;
	__u64	backlog_sum;
	__u64	marks;
	__u64	price_drops;
	__u64	full_drops;
	__u64	price;
	__u32	backlog_max;
	__u32	prob;
};

#endif /* _UAPI_PKT_SBRM_H */
