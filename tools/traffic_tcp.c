// SPDX-License-Identifier: GPL-2.0
/*
 * The sender: flows over TCP.
 *
 * TCP_NOTSENT_LOWAT limits the unsent bytes of a connection. Each write asks for more
 * than this limit, so it fills the socket up to the limit and enables the next edge of
 * EPOLLOUT, which comes when half of the limit is left. So two system calls (epoll_wait
 * and send) write about half of the limit, and the flow sends the other half in the
 * meantime.
 */
#include <linux/inet_diag.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "traffic_send.h"

/* More than any limit of unsent bytes, so that every write reaches the limit. */
#define WRITE_BYTES		(1024 * 1024)
#define WRITES_PER_TURN		4

/* tcpi_state: <netinet/tcp.h> has the names, but an older struct tcp_info. */
enum {
	STATE_FIN_WAIT2 = 5,
	STATE_TIME_WAIT = 6,
	STATE_CLOSE = 7,
};

/* It is never written, so all its pages are the zero page of the kernel. */
static const char payload[WRITE_BYTES];

/*
 * Read TCP_INFO into the flow's counters. Returns the connection's state, or
 * 0 when it cannot be read.
 */
int tcp_read_info(struct flow *flow, struct tcp_info *info)
{
	socklen_t length = sizeof(*info);
	int64_t acked;

	memset(info, 0, sizeof(*info));
	if (getsockopt(flow->fd, IPPROTO_TCP, TCP_INFO, info, &length))
		return 0;
	/* The kernel counts our SYN, and our FIN, as a byte each. */
	acked = info->tcpi_bytes_acked ? info->tcpi_bytes_acked - 1 : 0;
	if (acked > flow->written)
		acked = flow->written;
	flow->current = (struct totals){
		.bytes_acked = acked,
		.bytes_sent = info->tcpi_bytes_sent,
		.segs_out = info->tcpi_segs_out,
		.retransmits = info->tcpi_total_retrans,
		.delivered = info->tcpi_delivered,
		.delivered_ce = info->tcpi_delivered_ce,
		.busy_us = info->tcpi_busy_time,
		.rwnd_limited_us = info->tcpi_rwnd_limited,
		.sndbuf_limited_us = info->tcpi_sndbuf_limited,
	};
	flow->lost = info->tcpi_lost;
	return info->tcpi_state;
}

/* Returns false if the congestion control has no such report. */
static bool tcp_read_cc_info(const struct flow *flow, struct tcp_bbr_info *info)
{
	union tcp_cc_info any;
	socklen_t length = sizeof(any);

	if (getsockopt(flow->fd, IPPROTO_TCP, TCP_CC_INFO, &any, &length) ||
	    length != sizeof(*info))
		return false;
	*info = any.bbr;
	return true;
}

static uint64_t cc_rate_bps(const struct tcp_bbr_info *info)
{
	return 8 * ((uint64_t)info->bbr_bw_hi << 32 | info->bbr_bw_lo);
}

void tcp_add_sample(struct sender *sender, struct flow *flow,
		    const struct tcp_info *info)
{
	const struct totals *earlier = &flow->earlier;
	struct tcp_bbr_info cc_info;
	struct sample *sample;

	if (!sender->options->sample_ns)
		return;
	if (flow->sample_count == flow->sample_room) {
		flow->sample_room = flow->sample_room ?
				    2 * flow->sample_room : 64;
		flow->samples = checked_reallocarray(flow->samples,
						     flow->sample_room,
						     sizeof(*sample));
	}
	sample = &flow->samples[flow->sample_count++];
	*sample = (struct sample){
		.t_ns = sender_now(sender),
		.bytes_acked = earlier->bytes_acked +
			       flow->current.bytes_acked,
		/* All ones: not paced. */
		.pacing_bps = ~info->tcpi_pacing_rate ?
			      8 * info->tcpi_pacing_rate : 0,
		.cwnd = info->tcpi_snd_cwnd,
		.ssthresh = info->tcpi_snd_ssthresh,
		.srtt_us = info->tcpi_rtt,
		/* All ones: not measured yet. */
		.min_rtt_us = ~info->tcpi_min_rtt ? info->tcpi_min_rtt : 0,
		.retransmits = earlier->retransmits +
			       flow->current.retransmits,
		.unacked = info->tcpi_unacked,
		.delivered = earlier->delivered + flow->current.delivered,
		.delivered_ce = earlier->delivered_ce +
				flow->current.delivered_ce,
		.ca_state = info->tcpi_ca_state,
	};
	if (sender->options->cc_info && tcp_read_cc_info(flow, &cc_info)) {
		sample->cc_rate_bps = cc_rate_bps(&cc_info);
		sample->cc_min_rtt_us = cc_info.bbr_min_rtt;
		sample->cc_pacing_gain = cc_info.bbr_pacing_gain;
		sample->cc_cwnd_gain = cc_info.bbr_cwnd_gain;
	}
}

static void tcp_end_connection(struct sender *sender, struct flow *flow)
{
	struct totals *sum = &flow->earlier, *last = &flow->current;

	sum->bytes_acked += last->bytes_acked;
	sum->bytes_sent += last->bytes_sent;
	sum->segs_out += last->segs_out;
	sum->retransmits += last->retransmits;
	sum->delivered += last->delivered;
	sum->delivered_ce += last->delivered_ce;
	sum->busy_us += last->busy_us;
	sum->rwnd_limited_us += last->rwnd_limited_us;
	sum->sndbuf_limited_us += last->sndbuf_limited_us;
	*last = (struct totals){ 0 };
	flow->written = 0;
	flow_close(sender, flow);
}

void tcp_abort(struct sender *sender, struct flow *flow)
{
	struct linger linger = { .l_onoff = 1, .l_linger = 0 };
	struct tcp_info info;

	if (tcp_read_info(flow, &info) && flow->connected_ns != TIME_UNSET)
		tcp_add_sample(sender, flow, &info);
	if (flow->transfer_count) {
		struct transfer *transfer =
			&flow->transfers[flow->transfer_count - 1];

		if (transfer->end_ns == TIME_UNSET)
			transfer->bytes = flow->current.bytes_acked;
	}
	if (flow->page_count) {
		struct page *page = &flow->pages[flow->page_count - 1];

		if (page->duration_ns == TIME_UNSET)
			page->bytes += flow->current.bytes_acked;
	}
	setsockopt(flow->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	tcp_end_connection(sender, flow);
	flow_finish(sender, flow);
}

void tcp_fail(struct sender *sender, struct flow *flow, const char *what,
	      int error)
{
	flow_note_error(sender, flow, what, error);
	tcp_abort(sender, flow);
}

static int socket_error(int fd)
{
	int error = 0;
	socklen_t length = sizeof(error);

	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
	return error ? error : ECONNRESET;
}

/* Fill the socket. */
void tcp_pump(struct sender *sender, struct flow *flow)
{
	bool finite = flow->size;
	int writes;

	for (writes = 0; writes < WRITES_PER_TURN; writes++) {
		size_t want = WRITE_BYTES;
		ssize_t sent;

		if (finite && flow->remaining < WRITE_BYTES)
			want = flow->remaining;
		sent = send(flow->fd, payload, want, MSG_NOSIGNAL);
		if (sent < 0) {
			if (errno == EAGAIN || errno == EINTR)
				return;
			tcp_fail(sender, flow, "send to", errno);
			return;
		}
		flow->written += sent;
		if (finite) {
			flow->remaining -= sent;
			if (!flow->remaining) {
				shutdown(flow->fd, SHUT_WR);
				flow->state = FLOW_CLOSING;
				return;
			}
		}
		/* The socket is full: the kernel reports when there is room again. */
		if ((size_t)sent < want)
			return;
	}
	/* The path is fast and takes all data: other flows must be served, too. */
	sender->busy = true;
	sender->now_ns = TIME_UNSET;
	loop_modify(&sender->loop, flow->fd,
		    EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, flow);
}

/* An application with a rate of its own: rate= with TCP. */

/*
 * The last bytes of an on: the kernel tells us on the error queue when they are
 * acknowledged.
 */
static ssize_t tcp_send_with_report(const struct flow *flow, size_t want)
{
	char control[CMSG_SPACE(sizeof(uint32_t))] = { 0 };
	struct iovec vector = {
		.iov_base = (void *)payload,
		.iov_len = want,
	};
	struct msghdr message = {
		.msg_iov = &vector,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	uint32_t flags = SOF_TIMESTAMPING_TX_ACK;

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SO_TIMESTAMPING;
	header->cmsg_len = CMSG_LEN(sizeof(flags));
	memcpy(CMSG_DATA(header), &flags, sizeof(flags));
	return sendmsg(flow->fd, &message, MSG_NOSIGNAL);
}

/* Write as much of the backlog as the socket has room for. */
static void produced_push(struct sender *sender, struct flow *flow)
{
	bool is_last = flow->size && !flow->remaining;

	while (flow->backlog) {
		size_t want = flow->backlog < WRITE_BYTES ? flow->backlog :
							    WRITE_BYTES;
		ssize_t sent = flow->acks_wanted ?
			       tcp_send_with_report(flow, want) :
			       send(flow->fd, payload, want, MSG_NOSIGNAL);

		if (sent < 0) {
			if (errno != EAGAIN && errno != EINTR)
				tcp_fail(sender, flow, "send to", errno);
			return;
		}
		flow->written += sent;
		flow->backlog -= sent;
		if ((size_t)sent < want)
			return;
	}
	if (is_last) {
		shutdown(flow->fd, SHUT_WR);
		flow->state = FLOW_CLOSING;
	}
}

/* The rate at which the congestion control would let the application send. */
static int64_t tcp_allowed_bps(struct flow *flow, struct tcp_info *info)
{
	struct tcp_bbr_info cc_info;

	if (!tcp_read_info(flow, info))
		return 0;
	if (tcp_read_cc_info(flow, &cc_info) && cc_rate_bps(&cc_info))
		return cc_rate_bps(&cc_info);
	return ~info->tcpi_pacing_rate ? 8 * info->tcpi_pacing_rate : 0;
}

/*
 * Size of the next chunk of an adaptive source: the bytes that can be sent until the
 * chunk after it, minus the backlog.
 */
static int64_t produced_adapt(struct sender *sender, struct flow *flow)
{
	const struct flow_config *config = flow->config;
	struct tcp_info info;
	int64_t allowed_bps, rate_bps, bytes, least;

	allowed_bps = tcp_allowed_bps(flow, &info);
	if (config->told_count)
		allowed_bps = flow_told_bps(sender, flow);
	rate_bps = allowed_bps < config->rate_bps ? allowed_bps :
						    config->rate_bps;
	least = (__int128)config->size_bytes * config->floor_bps /
		config->rate_bps;
	bytes = (__int128)config->size_bytes * rate_bps / config->rate_bps -
		flow->backlog - info.tcpi_notsent_bytes;
	if (bytes < least)
		bytes = least;
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
	};
	return bytes;
}

/* After an on: begin the off before the next on. */
static void produced_rest(struct sender *sender, struct flow *flow,
			  int64_t from_ns)
{
	flow->on = false;
	timer_push(sender, from_ns + span_length(flow, &flow->config->off),
		   TIMER_TOGGLE, flow);
}

static void produced_next(struct sender *sender, struct flow *flow)
{
	int64_t next_ns = chunk_ns(flow, flow->phase_packets);

	if (flow->size && !flow->remaining)
		return;
	if (!flow->phase_left && flow->config->on.ns) {
		if (!flow->config->closed)
			produced_rest(sender, flow, next_ns);
		return;
	}
	if (next_ns < flow->stop_ns)
		timer_push(sender, next_ns, TIMER_PACKET, flow);
}

void produced_on_chunk(struct sender *sender, struct flow *flow)
{
	const struct flow_config *config = flow->config;
	bool connected = flow->state == FLOW_SENDING;
	int64_t bytes = config->size_bytes;

	if (config->floor_bps)
		bytes = connected ? produced_adapt(sender, flow) : 0;
	if (flow->size && bytes > flow->remaining)
		bytes = flow->remaining;
	if (flow->size)
		flow->remaining -= bytes;
	flow->backlog += bytes;
	flow->phase_packets++;
	if (flow->phase_left)
		flow->phase_left--;
	flow->acks_wanted = config->closed && !flow->phase_left;
	produced_next(sender, flow);
	if (connected)
		produced_push(sender, flow);
}

void produced_turn_on(struct sender *sender, struct flow *flow, int64_t at_ns)
{
	const struct flow_config *config = flow->config;
	uint64_t bits_ns = chunk_bits_ns(config);
	int64_t on_ns;

	flow->on = true;
	flow->phase_ns = at_ns;
	flow->phase_packets = 0;
	flow->phase_left = 0;
	if (config->on.ns) {
		on_ns = span_length(flow, &config->on);
		/* To the nearest whole number of chunks, but one at least. */
		flow->phase_left = ((__uint128_t)on_ns * config->rate_bps +
				    bits_ns / 2) / bits_ns;
		flow->phase_left += !flow->phase_left;
	}
	timer_push(sender, at_ns, TIMER_PACKET, flow);
}

/* The error queue has a message: is all data of an on acknowledged? */
static void produced_on_report(struct sender *sender, struct flow *flow)
{
	char control[256];
	struct msghdr message = {
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	int unacknowledged;

	while (recvmsg(flow->fd, &message, MSG_ERRQUEUE) >= 0)
		message.msg_controllen = sizeof(control);
	if (!flow->acks_wanted || flow->backlog ||
	    ioctl(flow->fd, SIOCOUTQ, &unacknowledged) || unacknowledged)
		return;
	flow->acks_wanted = false;
	produced_rest(sender, flow, sender_now(sender));
}

/* Choose the next page, and the size of its first transfer. */
void http_choose_page(struct flow *flow)
{
	const struct flow_config *config = flow->config;
	uint32_t i;

	flow->objects = pages_objects(&config->pages, &flow->random);
	flow->objects_left = flow->objects - 1;
	flow->size = pages_bytes(&config->pages, &flow->random);
	if (config->per_object)
		return;
	for (i = 0; i < flow->objects_left; i++)
		flow->size += pages_bytes(&config->pages, &flow->random);
	flow->objects_left = 0;
}

void http_begin_page(struct sender *sender, struct flow *flow)
{
	if (flow->page_count == flow->page_room) {
		flow->page_room = flow->page_room ? 2 * flow->page_room : 16;
		flow->pages = checked_reallocarray(flow->pages,
						   flow->page_room,
						   sizeof(*flow->pages));
	}
	flow->pages[flow->page_count++] = (struct page){
		.start_ns = sender_now(sender),
		.duration_ns = TIME_UNSET,
		.objects = flow->objects,
	};
}

void tcp_begin_transfer(struct sender *sender, struct flow *flow)
{
	if (flow->transfer_count == flow->transfer_room) {
		flow->transfer_room = flow->transfer_room ?
				      2 * flow->transfer_room : 1;
		flow->transfers =
			checked_reallocarray(flow->transfers,
					     flow->transfer_room,
					     sizeof(*flow->transfers));
	}
	flow->transfers[flow->transfer_count++] = (struct transfer){
		.start_ns = sender_now(sender),
		.end_ns = TIME_UNSET,
	};
}

void tcp_connect(struct sender *sender, struct flow *flow)
{
	const struct flow_config *config = flow->config;

	if (flow->fd < 0)
		flow_open_socket(sender, flow);
	flow->remaining = flow->size;
	flow->state = FLOW_CONNECTING;
	if (connect(flow->fd, &config->dst.any,
		    address_length(&config->dst)) && errno != EINPROGRESS) {
		tcp_fail(sender, flow, "connect to", errno);
		return;
	}
	loop_add(&sender->loop, flow->fd,
		 EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, flow);
	flow->polled = true;
}

static void tcp_on_connected(struct sender *sender, struct flow *flow)
{
	if (flow->connected_ns == TIME_UNSET) {
		socklen_t length = sizeof(flow->cc);

		flow->connected_ns = sender_now(sender);
		flow_read_local_port(flow);
		if (getsockopt(flow->fd, IPPROTO_TCP, TCP_CONGESTION, flow->cc,
			       &length))
			flow->cc[0] = '\0';
	}
	flow->state = flow->on || (flow_is_produced(flow) && flow->started) ?
		      FLOW_SENDING : FLOW_SILENT;
	if (flow_is_produced(flow))
		produced_push(sender, flow);
	else if (flow->on)
		tcp_pump(sender, flow);
}

/* Record the end of a transfer. Returns the number of ended transfers. */
static size_t tcp_end_transfer(struct sender *sender, struct flow *flow)
{
	struct transfer *transfer;
	struct page *page;

	if (flow->config->http) {
		page = &flow->pages[flow->page_count - 1];
		page->bytes += flow->size;
		if (!flow->objects_left)
			page->duration_ns = sender_now(sender) -
					    page->start_ns;
		return flow->page_count;
	}
	transfer = &flow->transfers[flow->transfer_count - 1];
	transfer->end_ns = sender_now(sender);
	transfer->bytes = flow->size;
	return flow->transfer_count;
}

/* All of a transfer is acknowledged. */
static void tcp_on_completed(struct sender *sender, struct flow *flow,
			     const struct tcp_info *info)
{
	const struct flow_config *config = flow->config;
	size_t done = tcp_end_transfer(sender, flow);
	int64_t next_ns;

	tcp_add_sample(sender, flow, info);
	tcp_end_connection(sender, flow);
	if (flow->objects_left) {
		flow->objects_left--;
		flow->size = pages_bytes(&config->pages, &flow->random);
		tcp_connect(sender, flow);
		return;
	}
	next_ns = sender_now(sender) + span_length(flow, &config->off);
	if (config->http)
		http_choose_page(flow);
	if ((config->repeat && done == (size_t)config->repeat) ||
	    next_ns >= flow->stop_ns) {
		flow_finish(sender, flow);
		return;
	}
	flow->state = FLOW_WAITING;
	timer_push(sender, next_ns, TIMER_START, flow);
}

/*
 * The kernel wakes us when our FIN is acknowledged (FIN_WAIT2), which is the
 * completion whether or not the peer closes too. Other wake-ups may precede.
 */
static void tcp_on_closing(struct sender *sender, struct flow *flow)
{
	struct tcp_info info;

	switch (tcp_read_info(flow, &info)) {
	case STATE_FIN_WAIT2:
	case STATE_TIME_WAIT:
	case STATE_CLOSE:
		if (flow->current.bytes_acked == (uint64_t)flow->size)
			tcp_on_completed(sender, flow, &info);
		else
			tcp_fail(sender, flow, "send to",
				 socket_error(flow->fd));
		break;
	}
}

void tcp_on_event(struct sender *sender, struct flow *flow, uint32_t events)
{
	if (flow->state == FLOW_CLOSING) {
		tcp_on_closing(sender, flow);
		return;
	}
	if (events & EPOLLERR && flow->config->closed &&
	    flow->state == FLOW_SENDING && !(events & EPOLLHUP)) {
		produced_on_report(sender, flow);
		events &= ~EPOLLERR;
		if (!events)
			return;
	}
	if (events & (EPOLLERR | EPOLLHUP)) {
		tcp_fail(sender, flow, flow->state == FLOW_CONNECTING ?
			 "connect to" : "send to", socket_error(flow->fd));
		return;
	}
	if (flow->state == FLOW_CONNECTING)
		tcp_on_connected(sender, flow);
	else if (events & EPOLLRDHUP)
		tcp_fail(sender, flow, "closed early by", EPIPE);
	else if (flow->state == FLOW_SENDING && flow_is_produced(flow))
		produced_push(sender, flow);
	else if (flow->state == FLOW_SENDING)
		tcp_pump(sender, flow);
}
