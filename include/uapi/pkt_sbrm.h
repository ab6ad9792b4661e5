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
 * @TCA_SBRM_LAW: u32, an &enum sbrm_law; a change of it starts the options of
 *	the law (gamma, phi, alpha, interval, delta, scale, delay, high, low,
 *	goal) and %SBRM_F_SPARSE from their defaults, and limit and coupling where
 *	they were never given
 * @TCA_SBRM_LIMIT: u32, room of the queue in the unit of the backlog, 1 and up
 * @TCA_SBRM_TARGET: u32, backlog up to which nothing is priced (CP05 b0), same
 *	unit; below the limit
 * @TCA_SBRM_GAMMA: u64, price per unit of backlog above the target, in 2^-48;
 *	at most 1.0, and 0 asks for "auto": 99 % marking at the limit
 * @TCA_SBRM_FLAGS: struct nla_bitfield32 of %SBRM_F_ bits; bits outside the
 *	selector keep their value
 * @TCA_SBRM_RESET_STATS: flag, start the statistics of &struct tc_sbrm_xstats
 *	again from zero; never dumped
 * @TCA_SBRM_FEEDBACK: u32, an &enum sbrm_feedback
 * @TCA_SBRM_PHI: u64, base of the prices of the rem laws (CP05 phi), in 2^-32:
 *	above 1.0 and at most 16.0
 * @TCA_SBRM_ALPHA: u32, weight of the backlog in rem-pc3 (CP05 alpha), in
 *	2^-24: above 0 and at most 16.0
 * @TCA_SBRM_RATE: u64, rate of the link, bytes/s: 1 to 2^37
 * @TCA_SBRM_AVPKT: u32, bytes that count as one packet where bytes are turned
 *	into packets: 1 to 65535
 * @TCA_SBRM_INTERVAL: u32, time between two updates of the price, us: 1 to
 *	1000000
 * @TCA_SBRM_DELTA: u32, weight of the last interval in the input rate (CP05
 *	delta), in 2^-32: 0.001 to 1.0, for which 2^32 - 1 stands
 * @TCA_SBRM_SCALE: u32, size of the virtual queue and its rate by those of the
 *	real one (CP05 f_scale), in 2^-32: 0.01 to 1.0, for which 2^32 - 1 stands
 * @TCA_SBRM_COUPLING: u32, k of the coupled probability (price / k)^2 that
 *	packets which are not ECN-capable are dropped with, in 2^-20: 0.01 to
 *	1000
 * @TCA_SBRM_SMALL: u32, bytes of the network layer up to which a packet that is
 *	not ECN-capable is not dropped for the price: 0 to 65535
 * @TCA_SBRM_DELAY: u32, target of the law delay, us: 10 to 1000000
 * @TCA_SBRM_HIGH: u32, backlog above which the law alpha says CN (ALPHA Q_h), in
 *	the unit of the limit; below the goal
 * @TCA_SBRM_LOW: u32, backlog at which it no longer does (ALPHA Q_l), same unit;
 *	below high. As long as it is not given, half of high
 * @TCA_SBRM_GOAL: u32, setpoint of the largest backlog of a cycle, beyond which it
 *	says BCN (ALPHA Q_goal), same unit; below the limit
 * @__TCA_SBRM_MAX: number of attributes, this one left out
 *
 * Attributes that are absent keep their value on change, and take their
 * default on creation: law delay, or sbrm where target or gamma is given and no
 * law; limit 10240 with the law delay and 1000 with others, target 10 (packets; as
 * many full Ethernet frames in bytes), gamma auto, flags %SBRM_F_ECN |
 * %SBRM_F_SPLIT_GSO | %SBRM_F_DITHER and, with the law delay, %SBRM_F_SPARSE,
 * feedback mark, coupling 0.5 with the law delay and 2 with others, small 256, avpkt
 * 1000; phi 1.06, alpha 0.1, interval 1 ms, delta 0.9, scale 0.9, delay 3 ms, high
 * 50 and goal 300 (packets; as many full Ethernet frames in bytes), and a gamma of
 * 0.001 where it is not auto. There is no default of the rate. In a dump gamma is the
 * value in force; it was computed when %SBRM_F_GAMMA_AUTO is set in the dumped flags.
 *
 * Coupling and small are refused with %SBRM_F_NODROP and %SBRM_F_PRICE_DROP.
 *
 * Which law takes what, besides limit, flags, coupling and small; all else is
 * refused:
 *
 *	========  ==========================================================
 *	sbrm      target, gamma (auto)
 *	rem-pc1   gamma, phi, rate, avpkt, interval, delta
 *	rem-pc2   target, gamma (auto), phi
 *	rem-pc3   target, gamma, phi, alpha, rate, avpkt, interval, delta
 *	vqm       scale, rate, avpkt
 *	delay     delay
 *	alpha     high, low, goal
 *	========  ==========================================================
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
	TCA_SBRM_FEEDBACK,
	TCA_SBRM_PHI,
	TCA_SBRM_ALPHA,
	TCA_SBRM_RATE,
	TCA_SBRM_AVPKT,
	TCA_SBRM_INTERVAL,
	TCA_SBRM_DELTA,
	TCA_SBRM_SCALE,
	TCA_SBRM_COUPLING,
	TCA_SBRM_SMALL,
	TCA_SBRM_DELAY,
	TCA_SBRM_HIGH,
	TCA_SBRM_LOW,
	TCA_SBRM_GOAL,
	__TCA_SBRM_MAX
};

#define TCA_SBRM_MAX	(__TCA_SBRM_MAX - 1)

/**
 * enum sbrm_law - what the price p of the link follows from
 * @SBRM_LAW_SBRM: the backlog, p = gamma [b - target]+, CP05 (5.4.1)
 * @SBRM_LAW_REM_PC1: the input rate y, in every interval
 *	lambda = [lambda + gamma (y - rate)]+, CP05 (5.2.3)
 * @SBRM_LAW_REM_PC2: the backlog, lambda = gamma [b - target]+, CP05 (5.2.4)
 * @SBRM_LAW_REM_PC3: both, in every interval
 *	lambda = [lambda + gamma (alpha (b - target) + y - rate)]+, CP05 (5.2.5)
 * @SBRM_LAW_VQM: a virtual queue, slower and smaller by scale: p = 1 from its
 *	overflow until it is empty, CP05 5.1.1
 * @SBRM_LAW_DELAY: the delay d of the queue and its target d0, in logarithms,
 *	(ln p)' = (d / d0 - 1) / 40 s - 3 idle / s: for a link of any rate
 * @SBRM_LAW_ALPHA: no price but two bits, for the sources of second-order rate
 *	control (ALPHA II.A): CN from a backlog above high until one of low, and
 *	with it BCN once the backlog has been above goal
 * @__SBRM_LAW_MAX: number of laws
 *
 * A packet is marked with m = 1 - exp(-p), and for sure with vqm, and with alpha
 * while there is CN. REM states its
 * prices in base phi, m = 1 - phi^-lambda, so p = lambda ln(phi). y and rate
 * count packets (or bytes) per interval.
 */
enum sbrm_law {
	SBRM_LAW_SBRM,
	SBRM_LAW_REM_PC1,
	SBRM_LAW_REM_PC2,
	SBRM_LAW_REM_PC3,
	SBRM_LAW_VQM,
	SBRM_LAW_DELAY,
	SBRM_LAW_ALPHA,
	__SBRM_LAW_MAX
};

#define SBRM_LAW_MAX	(__SBRM_LAW_MAX - 1)

/**
 * enum sbrm_feedback - how a packet that leaves tells the price
 * @SBRM_FEEDBACK_MARK: by an ECN mark, or by being dropped
 * @SBRM_FEEDBACK_PRICE: the price is added to its IPv4 identification, CP05
 *	4.2.3
 * @SBRM_FEEDBACK_FOUR_BIT: bits 0 to 3 of its IPv4 identification are marks,
 *	each with another base, CP05 5.2.3
 * @SBRM_FEEDBACK_TWO_BIT: %PKT_SBRM_CN and %PKT_SBRM_BCN are set in its IPv4
 *	identification; with the law alpha, which takes no other but marks
 * @__SBRM_FEEDBACK_MAX: number of feedbacks
 *
 * The identification is free where "don't fragment" is set. Packets without
 * that, fragments and all that is not IPv4 pass and are counted.
 */
enum sbrm_feedback {
	SBRM_FEEDBACK_MARK,
	SBRM_FEEDBACK_PRICE,
	SBRM_FEEDBACK_FOUR_BIT,
	SBRM_FEEDBACK_TWO_BIT,
	__SBRM_FEEDBACK_MAX
};

#define SBRM_FEEDBACK_MAX	(__SBRM_FEEDBACK_MAX - 1)

/*
 * The identification holds the price in 2^-12. Its sum stops at the largest
 * value, one below the end: a receiver echoes it plus one, and 0 for none.
 */
#define PKT_SBRM_PRICE_SHIFT	12
#define PKT_SBRM_PRICE_MAX	65534U

/*
 * Bit i is set with probability 1 - exp(-k_i p), k_i in 2^-16: ln(phi_i) /
 * ln(1.007) for CP05's phi of 1.06, 1.007, 1.001 and 1.00015. Bit 1 is the mark
 * that the price p would give by itself.
 */
#define PKT_SBRM_FOUR_BIT_SHIFT	16
#define PKT_SBRM_FOUR_BIT_K0	547437U
#define PKT_SBRM_FOUR_BIT_K1	65536U
#define PKT_SBRM_FOUR_BIT_K2	9390U
#define PKT_SBRM_FOUR_BIT_K3	1409U

/* Bits of two-bit feedback: congestion, and of the buffer too. */
#define PKT_SBRM_CN		(1U << 0)
#define PKT_SBRM_BCN		(1U << 1)

/* The backlog, limit and target count bytes, not packets. */
#define SBRM_F_BYTES		(1U << 0)
/* Mark packets that are ECN-capable; without it they are dropped as others. */
#define SBRM_F_ECN		(1U << 1)
/* With ECN: let packets that are not ECN-capable pass without a price. */
#define SBRM_F_NODROP		(1U << 2)
/* Split GSO super-packets on enqueue; without it one is priced as a whole. */
#define SBRM_F_SPLIT_GSO	(1U << 3)
/* Spread the marks of each flow evenly; without it every draw is independent. */
#define SBRM_F_DITHER		(1U << 4)
/*
 * Drop packets that are not ECN-capable with the probability that others are
 * marked with; without it, and without NODROP, with the coupled one.
 */
#define SBRM_F_PRICE_DROP	(1U << 5)
/*
 * Mark ECT(1) for the price and ECT(0) with the coupled probability; without it
 * both for the price.
 */
#define SBRM_F_L4S_ECT		(1U << 6)
/*
 * Packets of flows that send little leave before those of others; without it all
 * leave in the order in which they came.
 */
#define SBRM_F_SPARSE		(1U << 7)
/* Read only: gamma follows limit and target. */
#define SBRM_F_GAMMA_AUTO	(1U << 31)

#define SBRM_F_SETTABLE		(SBRM_F_BYTES | SBRM_F_ECN | SBRM_F_NODROP | \
				 SBRM_F_SPLIT_GSO | SBRM_F_DITHER | \
				 SBRM_F_PRICE_DROP | SBRM_F_L4S_ECT | \
				 SBRM_F_SPARSE)

/* Gamma travels in units of 2^-48 per packet or byte. */
#define SBRM_GAMMA_SHIFT	48
#define SBRM_GAMMA_ONE		(1ULL << SBRM_GAMMA_SHIFT)

/* Phi, delta and scale travel in 2^-32, alpha in 2^-24, coupling in 2^-20. */
#define SBRM_PHI_ONE		(1ULL << 32)
#define SBRM_PHI_MAX		(16 * SBRM_PHI_ONE)
#define SBRM_ALPHA_ONE		(1U << 24)
#define SBRM_ALPHA_MAX		(16 * SBRM_ALPHA_ONE)
#define SBRM_DELTA_MIN		4294967U
#define SBRM_SCALE_MIN		42949673U
#define SBRM_COUPLING_SHIFT	20
#define SBRM_COUPLING_ONE	(1U << SBRM_COUPLING_SHIFT)
#define SBRM_COUPLING_MIN	10486U
#define SBRM_COUPLING_MAX	(1000 * SBRM_COUPLING_ONE)

#define SBRM_RATE_MAX		(1ULL << 37)
#define SBRM_AVPKT_MAX		65535U
#define SBRM_INTERVAL_MAX	1000000U
#define SBRM_SMALL_MAX		65535U
#define SBRM_DELAY_MIN		10U
#define SBRM_DELAY_MAX		SBRM_INTERVAL_MAX

/*
 * Bits of @overload in struct tc_sbrm_xstats: packets that are not ECN-capable
 * do not respond to losses, those that pay the coupled probability or those that
 * are exempt from it.
 */
#define SBRM_OVERLOAD_PAYING	(1U << 0)
#define SBRM_OVERLOAD_EXEMPT	(1U << 1)

/**
 * struct tc_sbrm_xstats - statistics of the qdisc (%TCA_XSTATS)
 * @packets: packets that left the queue, price drops included, GSO segments
 *	counted each
 * @backlog_sum: sum over @packets of the backlog that each left behind and
 *	itself, in packets or bytes; @backlog_sum / @packets is the mean backlog
 * @marks: packets marked CE
 * @price_drops: packets dropped with the probability of a mark, but for
 *	@overload_drops
 * @full_drops: packets dropped because the queue was full
 * @price: current price, in 2^-32
 * @backlog_max: largest backlog, in packets or bytes
 * @prob: current marking probability, in 2^-32, 2^32 - 1 stands for one
 * @carried: packets that left with their price in the identification field
 * @uncarried: packets that left without, as they cannot carry one
 * @saturated: packets whose price did not fit the field, in @carried too
 * @input: rem-pc1, rem-pc3: estimate of the input rate, bytes/s
 * @virtual_backlog: vqm: backlog of the virtual queue, bytes
 * @coupled_drops: packets dropped with the coupled probability
 * @coupled_marks: packets marked with it, in @marks too
 * @spared: exempt packets that the coupled probability would have dropped
 * @overload_drops: packets dropped with the probability of a mark, as those like
 *	them do not respond to losses
 * @coupled_prob: current coupled probability, as @prob
 * @overload: %SBRM_OVERLOAD_ bits
 * @service_rate: delay: rate of the link while it has something to send, bytes/s,
 *	0 while unknown
 * @idle: delay: share of time in which it has not, as @prob
 * @bits: alpha: %PKT_SBRM_CN and %PKT_SBRM_BCN, as the last packet found them
 * @cycles: alpha: cycles that have ended, each as CN went
 * @beyond: alpha: cycles with BCN, and one that is under way
 * @cycle_max: alpha: largest backlog of the last cycle that ended
 * @collisions: flows that took the account of marks of another one which had a
 *	packet less than about a second before; wraps
 * @sparse: packets of sparse flows that were queued before others that had come
 *	earlier
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
	__u64	carried;
	__u64	uncarried;
	__u64	saturated;
	__u64	input;
	__u64	virtual_backlog;
	__u64	coupled_drops;
	__u64	coupled_marks;
	__u64	spared;
	__u64	overload_drops;
	__u32	coupled_prob;
	__u32	overload;
	__u64	service_rate;
	__u32	idle;
	__u32	bits;
	__u64	cycles;
	__u64	beyond;
	__u32	cycle_max;
	__u32	collisions;
	__u64	sparse;
};

#endif /* _UAPI_PKT_SBRM_H */
