// SPDX-License-Identifier: GPL-2.0
/*
 * The sender: flows over UDP.
 *
 * Open loop; packet k of a constant rate leaves at exactly
 * start + k * bits / rate, whatever the delay of the ones before.
 */
#include <endian.h>

#include "traffic_send.h"
#include "traffic_wire.h"

static void udp_next_packet(struct sender *sender, struct flow *flow,
			    int64_t last_ns)
{
	const struct flow_config *config = flow->config;
	int64_t next_ns;

	if (config->poisson)
		next_ns = last_ns +
			  random_exponential_mean(&flow->random,
						  chunk_bits_ns(config),
						  config->rate_bps);
	else
		next_ns = chunk_ns(flow, flow->phase_packets);
	if (next_ns < flow->stop_ns)
		timer_push(sender, next_ns, TIMER_PACKET, flow);
}

static void udp_send_packet(struct sender *sender, struct flow *flow)
{
	static char packet[65536];
	struct wire_header header = {
		.magic = htobe32(WIRE_MAGIC),
		.flow = htobe32(flow->config->id),
		.sequence = htobe64(flow->packets),
	};
	ssize_t sent;

	memcpy(packet, &header, sizeof(header));
	sent = send(flow->fd, packet, flow->config->size_bytes, 0);
	if (sent < 0 && errno != EAGAIN && errno != ENOBUFS) {
		/* An ICMP error about an earlier packet; this one is unsent. */
		flow_note_error(sender, flow, "send to", errno);
		sent = send(flow->fd, packet, flow->config->size_bytes, 0);
	}
	if (sent < 0)
		flow->refused++;
	else
		flow->packets++;
}

void udp_on_packet(struct sender *sender, struct flow *flow, int64_t at_ns)
{
	udp_send_packet(sender, flow);
	flow->phase_packets++;
	udp_next_packet(sender, flow, at_ns);
}

void udp_turn_on(struct sender *sender, struct flow *flow, int64_t at_ns)
{
	flow->generation++;	/* a packet due in an earlier on is not sent */
	flow->phase_ns = at_ns;
	flow->phase_packets = 0;
	udp_next_packet(sender, flow, at_ns);
}

void udp_start(struct sender *sender, struct flow *flow)
{
	const union address *dst = &flow->config->dst;

	if (connect(flow->fd, &dst->any, address_length(dst))) {
		flow_note_error(sender, flow, "connect to", errno);
		flow_finish(sender, flow);
		return;
	}
	flow_read_local_port(flow);
	flow->connected_ns = sender_now(sender);
	flow->state = FLOW_SENDING;
}
