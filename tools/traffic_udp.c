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

/* Add the bits of a time with a constant rate to its sampling periods. */
static void udp_note_rate(struct sender *sender, struct flow *flow,
			  int64_t from_ns, int64_t to_ns, int64_t rate_bps)
{
	int64_t period_ns = sender->options->sample_ns;

	if (to_ns > flow->stop_ns)
		to_ns = flow->stop_ns;
	if (from_ns < sender->epoch_ns)
		from_ns = sender->epoch_ns;
	while (period_ns && from_ns < to_ns) {
		size_t index = (from_ns - sender->epoch_ns) / period_ns;
		int64_t end_ns = sender->epoch_ns +
				 (int64_t)(index + 1) * period_ns;

		if (end_ns > to_ns)
			end_ns = to_ns;
		flow->offered = checked_reach(flow->offered,
					      &flow->offered_room, index,
					      sizeof(*flow->offered));
		flow->offered[index] += (__uint128_t)rate_bps *
					(end_ns - from_ns);
		from_ns = end_ns;
	}
}

/* Time of the next packet of a modulated process, after any number of states. */
static int64_t udp_next_modulated(struct sender *sender, struct flow *flow,
				  int64_t at_ns)
{
	const struct mmpp *mmpp = &flow->config->mmpp;
	bool arrived = false;

	while (!arrived && at_ns < flow->stop_ns) {
		int64_t rate_bps = mmpp_rate_bps(mmpp, flow->place.state);
		int64_t from_ns = at_ns;

		arrived = mmpp_step(mmpp, &flow->place, &flow->random,
				    chunk_bits_ns(flow->config), &at_ns);
		udp_note_rate(sender, flow, from_ns, at_ns, rate_bps);
		if (!arrived && at_ns < flow->stop_ns)
			mmpp_change(mmpp, &flow->place, &flow->random);
	}
	return at_ns;
}

static void udp_next_packet(struct sender *sender, struct flow *flow,
			    int64_t last_ns)
{
	const struct flow_config *config = flow->config;
	int64_t next_ns;

	if (config->modulated)
		next_ns = udp_next_modulated(sender, flow, last_ns);
	else if (config->poisson)
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
		/* An ICMP error about an earlier packet; this packet was not sent. */
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
	if (flow->config->paired) {
		pairs_on_timer(sender, flow, at_ns);
		return;
	}
	udp_send_packet(sender, flow);
	flow->phase_packets++;
	udp_next_packet(sender, flow, at_ns);
}

void udp_turn_on(struct sender *sender, struct flow *flow, int64_t at_ns)
{
	if (flow->config->paired) {
		pairs_turn_on(sender, flow, at_ns);
		return;
	}
	flow->generation++;	/* a packet due in an earlier on is not sent */
	flow->phase_ns = at_ns;
	flow->phase_packets = 0;
	if (flow->config->modulated)
		mmpp_begin(&flow->config->mmpp, &flow->place, &flow->random,
			   at_ns);
	udp_next_packet(sender, flow, at_ns);
}

void udp_start(struct sender *sender, struct flow *flow)
{
	const union address *dst = &flow->config->dst;

	if (flow->config->paired) {
		pairs_start(sender, flow);
		return;
	}
	if (connect(flow->fd, &dst->any, address_length(dst))) {
		flow_note_error(sender, flow, "connect to", errno);
		flow_finish(sender, flow);
		return;
	}
	flow_read_local_port(flow);
	flow->connected_ns = sender_now(sender);
	flow->state = FLOW_SENDING;
}
