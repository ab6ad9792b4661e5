/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Netlink interface of the fq_rr qdisc: what tc, or any other program, sends
 * to it and reads back.
 */
#ifndef _UAPI_PKT_FQ_RR_H
#define _UAPI_PKT_FQ_RR_H

#include <linux/types.h>

/**
 * enum fq_rr_attr - options of the qdisc and its classes, nested in
 *	%TCA_OPTIONS
 * @TCA_FQ_RR_UNSPEC: unused
 * @TCA_FQ_RR_LIMIT: u32, room of the shared buffer, packets: 1 to
 *	%FQ_RR_LIMIT_MAX
 * @TCA_FQ_RR_MEMORY_LIMIT: u32, room of the shared buffer, bytes of memory
 *	(the truesize of the packets): 1 to %FQ_RR_MEMORY_MAX
 * @TCA_FQ_RR_FLOWS: u32, number of queues: 1 to %FQ_RR_FLOWS_MAX
 * @TCA_FQ_RR_SERVICE: u32, an &enum fq_rr_service
 * @TCA_FQ_RR_OVERFLOW: u32, an &enum fq_rr_overflow
 * @TCA_FQ_RR_LONGEST: u32, an &enum fq_rr_longest
 * @TCA_FQ_RR_QUANTUM: u32, bytes that a flow of weight one may send in a round
 *	of drr: 1 to %FQ_RR_QUANTUM_MAX; below 256 it counts as 256, see
 *	&tc_fq_rr_qd_stats.quantum
 * @TCA_FQ_RR_CLASSIFY: u32, an &enum fq_rr_classify
 * @TCA_FQ_RR_WEIGH: u32, an &enum fq_rr_weigh
 * @TCA_FQ_RR_WEIGHTS: up to %FQ_RR_WEIGHTS_MAX u32, each 1 to
 *	%FQ_RR_WEIGHT_MAX: the weight of a packet with priority (or mark) 0, 1,
 *	and so on; values beyond have weight one; a single 1 takes them away
 * @TCA_FQ_RR_PERTURB: u32, time between two changes of the key of the hash, s:
 *	0 for never, to %FQ_RR_PERTURB_MAX
 * @TCA_FQ_RR_FLAGS: struct nla_bitfield32 of %FQ_RR_F_ bits; bits outside the
 *	selector keep their value
 * @TCA_FQ_RR_CLASS_WEIGHT: u32, of a class, not of the qdisc: the weight of
 *	the queue, 1 to %FQ_RR_WEIGHT_MAX, or 0 for that of its packets
 * @TCA_FQ_RR_RESERVE: u32, packets of the shared buffer that a queue owns from
 *	its first packet until it is empty: 0 for none, to the limit; not with
 *	%FQ_RR_DROP_LAST
 * @__TCA_FQ_RR_MAX: number of attributes, this one left out
 *
 * Attributes that are absent keep their value on change, and take their
 * default on creation: limit 10240, memory limit 32 MiB, flows 4096, service
 * rr, overflow drop-tail-of-longest, longest packets, quantum one frame of the
 * device, classify flow, weigh priority with no weights, perturb 0, flags
 * %FQ_RR_F_SPLIT_GSO, reserve 0.
 */
enum fq_rr_attr {
	TCA_FQ_RR_UNSPEC,
	TCA_FQ_RR_LIMIT,
	TCA_FQ_RR_MEMORY_LIMIT,
	TCA_FQ_RR_FLOWS,
	TCA_FQ_RR_SERVICE,
	TCA_FQ_RR_OVERFLOW,
	TCA_FQ_RR_LONGEST,
	TCA_FQ_RR_QUANTUM,
	TCA_FQ_RR_CLASSIFY,
	TCA_FQ_RR_WEIGH,
	TCA_FQ_RR_WEIGHTS,
	TCA_FQ_RR_PERTURB,
	TCA_FQ_RR_FLAGS,
	TCA_FQ_RR_CLASS_WEIGHT,
	TCA_FQ_RR_RESERVE,
	__TCA_FQ_RR_MAX
};

#define TCA_FQ_RR_MAX	(__TCA_FQ_RR_MAX - 1)

/**
 * enum fq_rr_service - which queue is served next
 * @FQ_RR_SERVICE_RR: each in turn, as many packets as its weight says
 * @FQ_RR_SERVICE_DRR: each in turn, weight times quantum bytes in the mean
 * @FQ_RR_SERVICE_WFQ: the one whose first packet has the smallest virtual
 *	finish time
 * @__FQ_RR_SERVICE_MAX: number of services
 */
enum fq_rr_service {
	FQ_RR_SERVICE_RR,
	FQ_RR_SERVICE_DRR,
	FQ_RR_SERVICE_WFQ,
	__FQ_RR_SERVICE_MAX
};

#define FQ_RR_SERVICE_MAX	(__FQ_RR_SERVICE_MAX - 1)

/**
 * enum fq_rr_overflow - what makes room when a packet finds none
 * @FQ_RR_DROP_LAST: nothing, the packet itself is dropped
 * @FQ_RR_DROP_TAIL_OF_LONGEST: the last packet of the longest queue is dropped,
 *	and that is the arriving one if it would make its queue the longest
 * @FQ_RR_DROP_LONGEST: the whole longest queue is dropped, whosever it is
 * @__FQ_RR_OVERFLOW_MAX: number of rules
 */
enum fq_rr_overflow {
	FQ_RR_DROP_LAST,
	FQ_RR_DROP_TAIL_OF_LONGEST,
	FQ_RR_DROP_LONGEST,
	__FQ_RR_OVERFLOW_MAX
};

#define FQ_RR_OVERFLOW_MAX	(__FQ_RR_OVERFLOW_MAX - 1)

/**
 * enum fq_rr_longest - what makes a queue the longest
 * @FQ_RR_LONGEST_PACKETS: its packets; of equals, the last to get there
 * @FQ_RR_LONGEST_BYTES: its bytes; of equals, any
 * @__FQ_RR_LONGEST_MAX: number of measures
 */
enum fq_rr_longest {
	FQ_RR_LONGEST_PACKETS,
	FQ_RR_LONGEST_BYTES,
	__FQ_RR_LONGEST_MAX
};

#define FQ_RR_LONGEST_MAX	(__FQ_RR_LONGEST_MAX - 1)

/**
 * enum fq_rr_classify - which queue a packet belongs to
 * @FQ_RR_CLASSIFY_FLOW: by a keyed hash of the flow's addresses and ports, and
 *	where that queue is taken an empty one of its seven neighbours
 * @FQ_RR_CLASSIFY_PRIORITY: by its priority, modulo the number of queues
 * @FQ_RR_CLASSIFY_MARK: by its firewall mark, modulo the number of queues
 * @__FQ_RR_CLASSIFY_MAX: number of ways
 *
 * A priority that is a class of this qdisc comes first, and a filter that
 * matches second.
 */
enum fq_rr_classify {
	FQ_RR_CLASSIFY_FLOW,
	FQ_RR_CLASSIFY_PRIORITY,
	FQ_RR_CLASSIFY_MARK,
	__FQ_RR_CLASSIFY_MAX
};

#define FQ_RR_CLASSIFY_MAX	(__FQ_RR_CLASSIFY_MAX - 1)

/**
 * enum fq_rr_weigh - what %TCA_FQ_RR_WEIGHTS are the weights of
 * @FQ_RR_WEIGH_PRIORITY: priorities
 * @FQ_RR_WEIGH_MARK: firewall marks
 * @__FQ_RR_WEIGH_MAX: number of ways
 *
 * A class that has a weight of its own keeps it.
 */
enum fq_rr_weigh {
	FQ_RR_WEIGH_PRIORITY,
	FQ_RR_WEIGH_MARK,
	__FQ_RR_WEIGH_MAX
};

#define FQ_RR_WEIGH_MAX		(__FQ_RR_WEIGH_MAX - 1)

/* Split GSO super-packets on enqueue; without it one counts as one packet. */
#define FQ_RR_F_SPLIT_GSO	(1U << 0)

#define FQ_RR_F_SETTABLE	FQ_RR_F_SPLIT_GSO

#define FQ_RR_LIMIT_MAX		(1U << 20)
#define FQ_RR_MEMORY_MAX	(1U << 31)
#define FQ_RR_FLOWS_MAX		65536U
#define FQ_RR_QUANTUM_MAX	(1U << 20)
#define FQ_RR_WEIGHT_MAX	1024U
#define FQ_RR_WEIGHTS_MAX	16
#define FQ_RR_PERTURB_MAX	86400U

/* Whose statistics these are: &tc_fq_rr_xstats.type. */
#define TC_FQ_RR_XSTATS_QDISC	0
#define TC_FQ_RR_XSTATS_CLASS	1

/**
 * struct tc_fq_rr_qd_stats - statistics of the qdisc
 * @flows: queues with packets
 * @flows_max: the most there were
 * @longest: length of the longest queue in the unit of the option longest, 0
 *	with drop-last, which does not look for it; with a reservation, of those
 *	queues only that hold more than they own, and packets beyond it
 * @packets_max: the most packets in the buffer
 * @memory: bytes of memory of the packets in the buffer
 * @memory_max: the most there were
 * @quantum: bytes of a round of drr: the option, or 256 if that is less
 * @owners: queues with packets that own a reservation
 * @new_flows: times that a packet found its queue empty
 * @collisions: packets that were queued behind those of another flow
 * @last_drops: packets dropped as they arrived
 * @longest_drops: packets dropped out of the longest queue
 * @longest_events: times that packets of the longest queue were dropped
 * @memory_drops: packets in @last_drops and @longest_drops dropped while there
 *	was room for their number, but not for their memory
 * @own_drops: packets in @longest_drops whose flow was the arriving one's
 * @trim_drops: packets dropped because a change made the buffer smaller
 * @rehashes: times that the key of the hash, or the number of queues, changed
 * @moved_flows: times that a packet found the queue of its hash taken by another
 *	flow, and another one of its set empty
 * @refused: times that a queue got its first packet, and no reservation, as
 *	those of the others left no room for one more
 */
struct tc_fq_rr_qd_stats {
	__u32	flows;
	__u32	flows_max;
	__u32	longest;
	__u32	packets_max;
	__u32	memory;
	__u32	memory_max;
	__u32	quantum;
	__u32	owners;
	__u64	new_flows;
	__u64	collisions;
	__u64	last_drops;
	__u64	longest_drops;
	__u64	longest_events;
	__u64	memory_drops;
	__u64	own_drops;
	__u64	trim_drops;
	__u64	rehashes;
	__u64	moved_flows;
	__u64	refused;
};

/**
 * struct tc_fq_rr_cl_stats - statistics of a queue
 * @weight: in force
 * @credit: what the queue may still send in this round, packets or bytes; below
 *	0 what its next rounds have to pay for packets that it has sent
 * @memory: bytes of memory of its packets
 * @packets_max: the most packets that it held; rounds of drr, changes of the key
 *	and of options keep it, a change of the number of queues does not
 * @collisions: packets that were queued behind those of another flow
 * @reserve: packets that it owns now
 * @reserved: 0
 */
struct tc_fq_rr_cl_stats {
	__u32	weight;
	__s32	credit;
	__u32	memory;
	__u32	packets_max;
	__u64	collisions;
	__u32	reserve;
	__u32	reserved;
};

/**
 * struct tc_fq_rr_xstats - statistics (%TCA_XSTATS)
 * @type: %TC_FQ_RR_XSTATS_QDISC or %TC_FQ_RR_XSTATS_CLASS
 * @reserved: 0
 * @qdisc: of the qdisc
 * @cl: of a class
 */
struct tc_fq_rr_xstats {
	__u32	type;
	__u32	reserved;
	union {
		struct tc_fq_rr_qd_stats qdisc;
		struct tc_fq_rr_cl_stats cl;
	};
};

#endif /* _UAPI_PKT_FQ_RR_H */
