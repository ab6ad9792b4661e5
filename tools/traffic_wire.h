/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The first bytes of a UDP payload. Big endian.
 *
 * A packet of a flow with law= has the state of the sender (PP94 10.4). Its receiver
 * answers with reports.
 */
#ifndef TOLLWAY_TRAFFIC_WIRE_H
#define TOLLWAY_TRAFFIC_WIRE_H

#include <stdint.h>

#define WIRE_MAGIC	0x544f4c4c	/* "TOLL" */
#define WIRE_MAGIC_PAIR	0x50414952	/* "PAIR" */

struct wire_header {
	uint32_t magic;
	uint32_t flow;
	uint64_t sequence;	/* from 0: how the sink finds gaps */
};

/* With law=. After magic and flow, 16 bytes of state. */
struct wire_pair {
	uint32_t magic;
	uint32_t flow;
	uint32_t sequence;	/* from 0 */
	uint32_t stamp_us;	/* when it left, by the sender's clock */
	uint16_t pair;		/* number of the pair, and the flags below */
	uint16_t wish;		/* setpoint, and interval of reports */
	uint32_t srtt_us;	/* 0: not known */
};

#define WIRE_SECOND_HALF	1
#define WIRE_IDLE		2	/* then nothing is left to send */
#define WIRE_PAIR_SHIFT		2

/* Setpoint in packets, and quarters of a round trip between reports. */
#define WIRE_SETPOINT_BITS	9
#define WIRE_SETPOINT_MAX	((1 << WIRE_SETPOINT_BITS) - 1)
/* 0: a round trip, but at most WIRE_REPORT_NS */
#define WIRE_QUARTERS_MAX	((1 << (16 - WIRE_SETPOINT_BITS)) - 1)
#define WIRE_REPORT_NS		(100 * NSEC_PER_MSEC)

struct wire_report {
	uint32_t highest;	/* sequence */
	uint32_t received;	/* packets, each once */
	uint32_t lost;
	uint32_t rate_kbps;	/* of payload */
	uint32_t echo_us;	/* the stamp of a packet and how long ago it came */
};

#endif
