// SPDX-License-Identifier: GPL-2.0
/*
 * The sender: flows over UDP whose rate the receiver controls (law=pp), PP94 10.4.
 *
 * Packets leave in pairs. Each pair is one super-packet, so that no other packet of this
 * host comes between its halves. This file paces the pairs; traffic_receiver.c computes
 * the rate. The sender responds to its reports:
 *
 *	before the first report		one pair per second
 *	a report			its rate, at most rate=
 *	no report for four intervals	half of the rate, and again after each four
 *
 * The socket is not connected, because the kernel would then drop packets from other
 * addresses without counting them.
 */
#include <endian.h>
#include <linux/udp.h>

#include "traffic_send.h"

/* Time between pairs before the first report, like the first timeout of RFC 6298. */
#define PAIR_LONGEST_NS		NSEC_PER_SEC
/* No round trip is longer. */
#define RTT_MAX_US		16777216U
#define MISSING_INTERVALS	4

/* Bytes of data in the payload, without the header for the receiver. */
static int64_t pairs_data_bytes(const struct flow_config *config)
{
	return config->size_bytes - (int64_t)sizeof(struct wire_pair);
}

static uint64_t pairs_packets(const struct flow_config *config, int64_t bytes)
{
	int64_t each = pairs_data_bytes(config);

	return (bytes + each - 1) / each;
}

/* Time between two pairs. */
static int64_t pairs_gap_ns(const struct flow *flow)
{
	const struct flow_config *config = flow->config;
	const struct pairs *pairs = flow->pairs;
	/* The shortest time that rate= permits. */
	int64_t least_ns = (__int128)2 * chunk_bits_ns(config) /
			   config->rate_bps;
	int64_t gap_ns;

	if (!pairs->rate_kbps)
		return PAIR_LONGEST_NS;
	gap_ns = (__int128)2 * config->size_bytes * 8 * NSEC_PER_SEC /
		 ((int64_t)pairs->rate_kbps * 1000);
	if (gap_ns > PAIR_LONGEST_NS)
		gap_ns = PAIR_LONGEST_NS;
	return gap_ns < least_ns ? least_ns : gap_ns;
}

/* Set the timer of the next pair by the rate. */
static void pairs_schedule(struct sender *sender, struct flow *flow)
{
	struct pairs *pairs = flow->pairs;
	int64_t now_ns = sender_now(sender), next_ns = now_ns;

	flow->generation++;
	pairs->idle = !pairs->left || !flow->on;
	if (pairs->idle)
		return;
	if (pairs->last_ns != TIME_UNSET) {
		next_ns = pairs->last_ns + pairs_gap_ns(flow);
		if (next_ns < now_ns)
			next_ns = now_ns;
	}
	if (next_ns < flow->stop_ns)
		timer_push(sender, next_ns, TIMER_PACKET, flow);
}

/* Expected time between two reports. */
static int64_t pairs_interval_ns(const struct flow *flow)
{
	int64_t rtt_ns = flow->pairs->srtt_us * NSEC_PER_USEC;

	if (flow->config->report_quarters)
		return rtt_ns * flow->config->report_quarters / 4;
	return rtt_ns < WIRE_REPORT_NS ? rtt_ns : WIRE_REPORT_NS;
}

/*
 * Halve the rate if packets were sent, and no report has arrived for a round trip and
 * four intervals.
 */
static void pairs_watch(struct flow *flow, int64_t now_ns)
{
	struct pairs *pairs = flow->pairs;

	if (pairs->waits_ns == TIME_UNSET) {
		pairs->waits_ns = now_ns + pairs->srtt_us * NSEC_PER_USEC;
		return;
	}
	if (!pairs->rate_kbps ||
	    now_ns - pairs->waits_ns <
	    MISSING_INTERVALS * pairs_interval_ns(flow))
		return;
	pairs->waits_ns = now_ns;
	pairs->halved++;
	if (pairs->rate_kbps > 1)
		pairs->rate_kbps /= 2;
}

static void pairs_fill(const struct flow *flow, char *packet, uint32_t sequence,
		       uint16_t pair, int64_t now_ns)
{
	const struct flow_config *config = flow->config;
	struct wire_pair header = {
		.magic = htobe32(WIRE_MAGIC_PAIR),
		.flow = htobe32(config->id),
		.sequence = htobe32(sequence),
		.stamp_us = htobe32((uint32_t)(now_ns / NSEC_PER_USEC)),
		.pair = htobe16(pair),
		.wish = htobe16(config->setpoint | config->report_quarters <<
				WIRE_SETPOINT_BITS),
		.srtt_us = htobe32(flow->pairs->srtt_us),
	};

	memcpy(packet, &header, sizeof(header));
}

/* Send @count packets; with @segments as one super-packet. */
static bool pairs_write(struct flow *flow, char *packets, int count,
			bool segments)
{
	const struct flow_config *config = flow->config;
	union {
		char bytes[CMSG_SPACE(sizeof(uint16_t))];
		struct cmsghdr align;
	} control;
	struct iovec vector = {
		.iov_base = packets,
		.iov_len = count * config->size_bytes,
	};
	struct msghdr message = {
		.msg_name = (void *)&config->dst.any,
		.msg_namelen = address_length(&config->dst),
		.msg_iov = &vector,
		.msg_iovlen = 1,
	};

	if (segments) {
		uint16_t bytes = config->size_bytes;
		struct cmsghdr *header;

		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = IPPROTO_UDP;
		header->cmsg_type = UDP_SEGMENT;
		header->cmsg_len = CMSG_LEN(sizeof(bytes));
		memcpy(CMSG_DATA(header), &bytes, sizeof(bytes));
	}
	return sendmsg(flow->fd, &message, 0) >= 0;
}

/* Send a pair; returns the number of packets that were sent. */
static int pairs_send(struct sender *sender, struct flow *flow, char *packets,
		      int count)
{
	struct pairs *pairs = flow->pairs;
	int sent = 0;

	if (count > 1 && !pairs->unsegmented) {
		if (pairs_write(flow, packets, count, true))
			return count;
		if (errno == EAGAIN || errno == ENOBUFS)
			return 0;
		/* The device or the kernel has no UDP segmentation: send single packets. */
		pairs->unsegmented = true;
	}
	while (sent < count &&
	       pairs_write(flow, packets + sent * flow->config->size_bytes, 1,
			   false))
		sent++;
	if (sent < count && errno != EAGAIN && errno != ENOBUFS)
		flow_note_error(sender, flow, "send to", errno);
	return sent;
}

/* The next pair, or the last packet. */
void pairs_on_timer(struct sender *sender, struct flow *flow, int64_t at_ns)
{
	static char packets[2 * (UINT16_MAX + 1)];
	struct pairs *pairs = flow->pairs;
	int64_t now_ns = clock_ns();
	int count = pairs->left > 1 ? 2 : 1, sent, i;
	uint16_t state = pairs->pair << WIRE_PAIR_SHIFT;

	pairs_watch(flow, now_ns);
	if ((uint64_t)count == pairs->left)
		state |= WIRE_IDLE;
	for (i = 0; i < count; i++)
		pairs_fill(flow, packets + i * flow->config->size_bytes,
			   pairs->sequence + i, state | i, now_ns);
	sent = pairs_send(sender, flow, packets, count);
	flow->refused += count - sent;
	flow->packets += sent;
	pairs->sequence += sent;
	pairs->pair++;
	if (pairs->left != PAIRS_NO_END)
		pairs->left -= sent;
	/* From the planned time, so that rounding and late wake-ups do not add up. */
	pairs->last_ns = now_ns - at_ns < pairs_gap_ns(flow) ? at_ns : now_ns;
	if (!pairs->left && !flow->config->frame_bytes) {
		flow_finish(sender, flow);
		return;
	}
	pairs_schedule(sender, flow);
}

/* The size of the next frame of an adaptive source. */
static int64_t pairs_adapt(const struct flow *flow, int64_t allowed_bps)
{
	const struct flow_config *config = flow->config;
	int64_t bytes = config->frame_bytes, least, most;

	if (!config->floor_bps)
		return bytes;
	least = (__int128)config->floor_bps * config->every_ns / 8 /
		NSEC_PER_SEC;
	most = (__int128)allowed_bps * config->every_ns / 8 / NSEC_PER_SEC;
	if (bytes > most)
		bytes = most;
	bytes -= flow->pairs->left * pairs_data_bytes(config);
	return bytes < least ? least : bytes;
}

/* The rate at which data may be sent. */
static int64_t pairs_allowed_bps(const struct flow *flow)
{
	const struct flow_config *config = flow->config;
	int64_t bps = (int64_t)flow->pairs->rate_kbps * 1000;

	if (bps > config->rate_bps)
		bps = config->rate_bps;
	return (__int128)bps * pairs_data_bytes(config) / config->size_bytes;
}

void pairs_on_frame(struct sender *sender, struct flow *flow, int64_t at_ns)
{
	const struct flow_config *config = flow->config;
	struct pairs *pairs = flow->pairs;
	int64_t allowed_bps = pairs_allowed_bps(flow);
	int64_t bytes = pairs_adapt(flow, allowed_bps);
	bool idle = pairs->idle;

	/* An even number: a frame of a single packet would measure nothing. */
	pairs->left += (pairs_packets(config, bytes) + 1) & ~1ULL;
	if (flow->frame_count == flow->frame_room) {
		flow->frame_room = flow->frame_room ? 2 * flow->frame_room : 64;
		flow->frames = checked_reallocarray(flow->frames,
						    flow->frame_room,
						    sizeof(*flow->frames));
	}
	flow->frames[flow->frame_count++] = (struct frame){
		.t_ns = sender_now(sender),
		.bytes = bytes,
		.allowed_bps = allowed_bps,
		.packets = pairs->sequence + pairs->left,
	};
	if (at_ns + config->every_ns < flow->stop_ns)
		timer_push(sender, at_ns + config->every_ns, TIMER_FRAME, flow);
	if (idle)
		pairs_schedule(sender, flow);
}

/* Reports. */

static bool pairs_is_from(const struct flow *flow, const union address *from)
{
	const union address *dst = &flow->config->dst;

	if (from->any.sa_family != dst->any.sa_family ||
	    address_port(from) != address_port(dst))
		return false;
	if (from->any.sa_family == AF_INET)
		return from->v4.sin_addr.s_addr == dst->v4.sin_addr.s_addr;
	return !memcmp(&from->v6.sin6_addr, &dst->v6.sin6_addr,
		       sizeof(from->v6.sin6_addr));
}

/* Is this from 1 to what has been sent, modulo 2^32? */
static bool pairs_is_count(const struct flow *flow, uint32_t count)
{
	uint64_t sent = flow->packets < INT32_MAX ? flow->packets : INT32_MAX;

	return flow->pairs->sequence - count < sent;
}

/* Is the report possible: only packets that were sent, and not before they were sent? */
static bool pairs_is_possible(const struct flow *flow,
			      const struct wire_report *report, uint32_t now_us)
{
	uint32_t rtt_us = now_us - be32toh(report->echo_us);

	return pairs_is_count(flow, be32toh(report->received)) &&
	       pairs_is_count(flow, be32toh(report->highest) + 1) &&
	       pairs_is_count(flow, be32toh(report->lost) + 1) &&
	       report->rate_kbps && rtt_us && rtt_us <= RTT_MAX_US;
}

static void pairs_take(struct sender *sender, struct flow *flow,
		       const struct wire_report *report, uint32_t now_us)
{
	struct pairs *pairs = flow->pairs;
	uint32_t rtt_us = now_us - be32toh(report->echo_us);
	uint32_t most_kbps = flow->config->rate_bps / 1000 < UINT32_MAX ?
			     flow->config->rate_bps / 1000 : UINT32_MAX;

	pairs->highest = be32toh(report->highest);
	pairs->received = be32toh(report->received);
	pairs->lost = be32toh(report->lost);
	pairs->rate_kbps = be32toh(report->rate_kbps);
	/* pairs_gap_ns() uses rate=, which includes overhead=. */
	if (pairs->rate_kbps > most_kbps) {
		pairs->rate_kbps = most_kbps ? most_kbps : 1;
		pairs->cut++;
	}
	/* Like srtt of TCP: the new sample has a weight of 1/8. */
	pairs->srtt_us = pairs->srtt_us ?
			 pairs->srtt_us + ((int32_t)(rtt_us - pairs->srtt_us)) / 8 :
			 rtt_us;
	if (!pairs->least_us || rtt_us < pairs->least_us)
		pairs->least_us = rtt_us;
	pairs->reports++;
	pairs->waits_ns = TIME_UNSET;
	pairs_schedule(sender, flow);
}

void pairs_on_event(struct sender *sender, struct flow *flow)
{
	struct pairs *pairs = flow->pairs;
	struct wire_report report;
	union address from;

	while (flow->fd >= 0) {
		socklen_t length = sizeof(from);
		ssize_t count = recvfrom(flow->fd, &report, sizeof(report),
					 MSG_TRUNC, &from.any, &length);
		uint32_t now_us;

		if (count < 0)
			return;
		now_us = clock_ns() / NSEC_PER_USEC;
		if (!pairs_is_from(flow, &from)) {
			pairs->foreign++;
		} else if (count != sizeof(report)) {
			pairs->truncated++;
		} else if (!pairs_is_possible(flow, &report, now_us)) {
			pairs->absurd++;
		} else if (pairs->reports &&
			   (int32_t)(be32toh(report.highest) -
				     pairs->highest) <= 0 &&
			   (int32_t)(be32toh(report.received) -
				     pairs->received) <= 0) {
			pairs->repeated++;
		} else {
			pairs_take(sender, flow, &report, now_us);
		}
	}
}

/* Beginning. */

void pairs_turn_on(struct sender *sender, struct flow *flow, int64_t at_ns)
{
	if (flow->config->frame_bytes)
		pairs_on_frame(sender, flow, at_ns);
	else
		pairs_schedule(sender, flow);
}

void pairs_start(struct sender *sender, struct flow *flow)
{
	const struct flow_config *config = flow->config;
	union address any = { .any.sa_family = config->dst.any.sa_family };

	/* The port must be known before the first packet. */
	if (bind(flow->fd, &any.any, address_length(&any))) {
		flow_note_error(sender, flow, "send to", errno);
		flow_finish(sender, flow);
		return;
	}
	flow->pairs = checked_alloc(calloc(1, sizeof(*flow->pairs)));
	flow->pairs->last_ns = TIME_UNSET;
	flow->pairs->waits_ns = TIME_UNSET;
	flow->pairs->idle = true;
	if (!config->frame_bytes)
		flow->pairs->left = config->bytes ?
				    pairs_packets(config, config->bytes) :
				    PAIRS_NO_END;
	flow_read_local_port(flow);
	flow->connected_ns = sender_now(sender);
	flow->state = FLOW_SENDING;
	flow->polled = true;
	loop_add(&sender->loop, flow->fd, EPOLLIN, flow);
}
