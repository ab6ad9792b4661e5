/* SPDX-License-Identifier: GPL-2.0 */
/* The receiver of a flow with law=pp: traffic_receiver.c. */
#ifndef TOLLWAY_TRAFFIC_RECEIVER_H
#define TOLLWAY_TRAFFIC_RECEIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "traffic_wire.h"

struct receiver;

/* Counters of packets that arrived, and of those that were not used. */
struct receiver_counts {
	uint64_t packets;	/* each once */
	uint64_t pairs;		/* that told a service time */
	uint64_t reports;
	uint64_t truncated;	/* too short, or not of such a flow */
	uint64_t repeated;
	uint64_t late;		/* so late that they may be repeated ones */
	uint64_t far;		/* sequence far from the expected one */
	uint64_t restarts;	/* the sequence began anew */
	uint64_t absurd;	/* a setpoint of 0, or an impossible stamp */
	uint64_t unordered;	/* the second half of a pair came first */
};

/* The present estimates of the receiver; 0: not known. */
struct receiver_state {
	uint64_t service_ns;
	uint32_t wait_us;	/* of the last pair in queues */
	uint32_t delay_us;	/* propagation, there and back */
	uint32_t queue_256;	/* queue when a report arrives at the sender, packets/256 */
	uint32_t rate_kbps;
	uint32_t lost;
	uint32_t way_us;	/* smallest one-way delay plus the difference of the clocks */
};

struct receiver *receiver_new(void);
void receiver_free(struct receiver *receiver);
bool receiver_packet(struct receiver *receiver, const void *bytes,
		     size_t there, size_t length, int64_t arrival_ns);
bool receiver_report(struct receiver *receiver, int64_t now_ns,
		     struct wire_report *report);
uint32_t receiver_next_sequence(const struct receiver *receiver);
const struct receiver_counts *receiver_counts(const struct receiver *receiver);
void receiver_read(const struct receiver *receiver,
		   struct receiver_state *state);

#endif
