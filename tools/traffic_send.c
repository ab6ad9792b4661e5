// SPDX-License-Identifier: GPL-2.0
/*
 * The sender.
 *
 * TCP: TCP_NOTSENT_LOWAT bounds the unsent bytes of a connection, and one
 * write asks for more than that, so that each write fills the socket up to
 * the bound and arms the next edge of EPOLLOUT, which comes when half of it
 * is left. Two system calls (epoll_wait, send) thus move about half the bound,
 * and the other half keeps the flow from starving in between.
 *
 *	WAITING --start--> CONNECTING --> SENDING <--on/off--> SILENT
 *	   ^                                 | last byte written, FIN sent
 *	   | off=                            v
 *	   +----------------------------- CLOSING --> DONE
 *
 * With pages=, a transfer is a page, or with connections=object an object of it,
 * of which the next begins at once.
 *
 * With connect=early a flow begins with CONNECTING, and is SILENT until start=.
 *
 * With rate= it is an application of its own pace: it hands over size= bytes at
 * a time, and what the socket does not take waits here as its backlog.
 *
 * stop= and errors lead to DONE from anywhere. A connection that is still
 * sending at its stop is aborted with a reset: what lies in its send buffer
 * does not go on loading the link, as when a simulator stops a flow.
 *
 * UDP: open loop; packet k of a constant rate leaves at exactly
 * start + k * bits / rate, whatever the delay of the ones before.
 */
#include <endian.h>
#include <linux/inet_diag.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "json.h"
#include "traffic.h"
#include "traffic_random.h"
#include "traffic_wire.h"

#define EVENTS_PER_WAIT		1024
/* More than any bound on unsent bytes, so that every write ends at it. */
#define WRITE_BYTES		(1024 * 1024)
#define WRITES_PER_TURN		4
#define UNSENT_MAX		(512 * 1024)
#define UNSENT_MIN		(16 * 1024)
/* What an on/off flow may still send after its last on. */
#define UNSENT_ON_OFF		(16 * 1024)
/* A transfer this short fits the default buffer: no need to set it. */
#define SHORT_TRANSFER_BYTES	(64 * 1024)
#define TCP_BUFFER_BYTES	(32 * 1024 * 1024)
#define UDP_BUFFER_BYTES	(8 * 1024 * 1024)
#define FLOW_COMPLAINTS_MAX	10

/* tcpi_state: <netinet/tcp.h> has the names, but an older struct tcp_info. */
enum {
	STATE_FIN_WAIT2 = 5,
	STATE_TIME_WAIT = 6,
	STATE_CLOSE = 7,
};

enum flow_state {
	FLOW_WAITING,		/* for start=, or between two transfers */
	FLOW_CONNECTING,
	FLOW_SENDING,
	FLOW_SILENT,		/* off */
	FLOW_CLOSING,		/* FIN sent, not acknowledged */
	FLOW_DONE,
};

struct sample {
	int64_t t_ns;
	uint64_t bytes_acked;
	uint64_t pacing_bps;
	uint32_t cwnd, ssthresh, srtt_us, min_rtt_us;
	uint32_t retransmits, unacked, delivered, delivered_ce;
	uint8_t ca_state;
	/* with --cc-info, of congestion controls that report as BBR does */
	uint64_t cc_rate_bps;
	uint32_t cc_min_rtt_us, cc_pacing_gain, cc_cwnd_gain;
};

/* What an adaptive source made of the rate it found it may send. */
struct frame {
	int64_t t_ns;
	int64_t bytes;
	int64_t allowed_bps;
};

struct transfer {
	int64_t start_ns;
	int64_t end_ns;		/* TIME_UNSET: not finished */
	int64_t bytes;
};

struct page {
	int64_t start_ns;
	int64_t duration_ns;	/* TIME_UNSET: not finished */
	int64_t bytes;
	uint32_t objects;
};

/* Counters that add up over the successive connections of a flow. */
struct totals {
	uint64_t bytes_acked, bytes_sent;
	uint64_t segs_out, retransmits;
	uint64_t delivered, delivered_ce;
	uint64_t busy_us, rwnd_limited_us, sndbuf_limited_us;
};

struct flow {
	const struct flow_config *config;
	int fd;
	bool polled;			/* fd is in the epoll set */
	enum flow_state state;
	bool on;
	uint32_t generation;		/* of the pending packet event */
	uint64_t random;
	int64_t start_ns, stop_ns;	/* absolute */
	int64_t connected_ns, stopped_ns;
	bool started;			/* start= has come */
	uint16_t local_port;
	char cc[CONGESTION_NAME_MAX];
	char *error;

	/* tcp */
	int64_t size;			/* of this transfer; 0: no end */
	int64_t remaining;		/* of this transfer */
	int64_t written;		/* on this connection */
	struct totals earlier;		/* connections that are closed */
	struct totals current;
	uint32_t lost;
	struct transfer *transfers;
	size_t transfer_count, transfer_room;
	uint32_t objects;		/* of this or the next page */
	uint32_t objects_left;		/* of it, for other connections */
	struct page *pages;
	size_t page_count, page_room;
	struct sample *samples;
	size_t sample_count, sample_room;
	int64_t backlog;		/* produced, not yet taken by the socket */
	uint64_t phase_left;		/* chunks to come in this on */
	bool acks_wanted;		/* source=closed: on is over */
	struct frame *frames;
	size_t frame_count, frame_room;

	/* rate= */
	int64_t phase_ns;		/* when this on began */
	uint64_t phase_packets;

	/* udp */
	uint64_t packets, refused;
};

enum timer_kind {
	TIMER_CONNECT,
	TIMER_START,
	TIMER_STOP,
	TIMER_TOGGLE,
	TIMER_PACKET,
	TIMER_SAMPLE,
};

struct timer {
	int64_t at_ns;
	uint64_t order;		/* equal times fire in the order they were set */
	struct flow *flow;
	enum timer_kind kind;
	uint32_t generation;
};

struct sender {
	const struct send_options *options;
	struct flow_file file;
	struct loop loop;
	int64_t epoch_ns;
	int64_t now_ns;		/* read at most once per turn; TIME_UNSET */
	int64_t unsent_bytes;
	bool may_force_buffer;
	bool busy;		/* a flow could have used a longer turn */
	struct flow *flows;
	size_t live;
	unsigned int failures;
	int interrupted;	/* the signal's number */
	struct timer *timers;	/* a binary heap */
	size_t timer_count, timer_room;
	uint64_t timer_order;
	struct network before;	/* the counters when the run began */
};

/* Never written to, so every page of it is the same page of zeros. */
static const char payload[WRITE_BYTES];

static int64_t sender_now(struct sender *sender)
{
	if (sender->now_ns == TIME_UNSET)
		sender->now_ns = clock_ns();
	return sender->now_ns;
}

/* Timers: a binary heap ordered by time, then by age. */

static bool timer_before(const struct timer *a, const struct timer *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns :
				      a->order < b->order;
}

static void timer_push(struct sender *sender, int64_t at_ns,
		       enum timer_kind kind, struct flow *flow)
{
	struct timer timer = {
		.at_ns = at_ns,
		.order = sender->timer_order++,
		.flow = flow,
		.kind = kind,
		.generation = flow ? flow->generation : 0,
	};
	size_t slot = sender->timer_count++;

	if (slot == sender->timer_room) {
		sender->timer_room = slot ? 2 * slot : 64;
		sender->timers = checked_reallocarray(sender->timers,
						      sender->timer_room,
						      sizeof(timer));
	}
	while (slot && timer_before(&timer, &sender->timers[(slot - 1) / 2])) {
		sender->timers[slot] = sender->timers[(slot - 1) / 2];
		slot = (slot - 1) / 2;
	}
	sender->timers[slot] = timer;
}

static struct timer timer_pop(struct sender *sender)
{
	struct timer *timers = sender->timers;
	struct timer first = timers[0];
	struct timer last = timers[--sender->timer_count];
	size_t slot = 0, child;

	while ((child = 2 * slot + 1) < sender->timer_count) {
		if (child + 1 < sender->timer_count &&
		    timer_before(&timers[child + 1], &timers[child]))
			child++;
		if (!timer_before(&timers[child], &last))
			break;
		timers[slot] = timers[child];
		slot = child;
	}
	timers[slot] = last;
	return first;
}

/* Flows: what both protocols need. */

static void flow_finish(struct sender *sender, struct flow *flow)
{
	if (flow->fd >= 0) {
		if (flow->polled)
			loop_close(&sender->loop, flow->fd);
		else
			close(flow->fd);
	}
	flow->fd = -1;
	flow->polled = false;
	flow->state = FLOW_DONE;
	flow->on = false;
	flow->stopped_ns = sender_now(sender);
	sender->live--;
}

static void flow_note_error(struct sender *sender, struct flow *flow,
			    const char *what, int error)
{
	char peer[ADDRESS_TEXT_MAX];

	if (flow->error)
		return;
	if (asprintf(&flow->error, "%s %s: %s", what,
		     address_text(&flow->config->dst, peer),
		     strerror(error)) < 0)
		die(STATUS_FAILED, "out of memory");
	sender->failures++;
	if (sender->failures <= FLOW_COMPLAINTS_MAX)
		complain("%s:%u: flow %u: %s", sender->file.name,
			 flow->config->line, flow->config->id, flow->error);
	else if (sender->failures == FLOW_COMPLAINTS_MAX + 1)
		complain("more flows failed: see the JSON");
}

static void flow_set_option(const struct sender *sender,
			    const struct flow_config *config, int fd,
			    int level, int name, const void *value,
			    socklen_t length, const char *words)
{
	if (!setsockopt(fd, level, name, value, length))
		return;
	if (level == IPPROTO_TCP && name == TCP_CONGESTION && errno == ENOENT)
		complain("%s:%u: %s: unknown congestion control",
			 sender->file.name, config->line, words);
	else
		complain("%s:%u: %s: %s", sender->file.name, config->line,
			 words, strerror(errno));
	exit(STATUS_USAGE);
}

/*
 * Room for a whole window in flight besides the unsent bytes. When that is
 * not permitted, the kernel's own tuning of the buffer is the next best.
 */
static void flow_set_buffer(struct sender *sender, int fd, int bytes)
{
	if (sender->may_force_buffer &&
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
		sender->may_force_buffer = false;
}

static int flow_unsent_bytes(const struct sender *sender,
			     const struct flow_config *config)
{
	if (config->unsent_bytes)
		return config->unsent_bytes;
	if (config->on.ns && sender->unsent_bytes > UNSENT_ON_OFF)
		return UNSENT_ON_OFF;
	return sender->unsent_bytes;
}

static void flow_open_socket(struct sender *sender, struct flow *flow)
{
	const struct flow_config *config = flow->config;
	int unsent = flow_unsent_bytes(sender, config);
	char words[64];
	int fd;

	fd = socket(config->dst.any.sa_family,
		    (config->udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_NONBLOCK |
		    SOCK_CLOEXEC, 0);
	if (fd < 0)
		die(STATUS_FAILED, "%s:%u: cannot make a socket: %s",
		    sender->file.name, config->line, strerror(errno));
	if (*config->cc) {
		snprintf(words, sizeof(words), "cc=%s", config->cc);
		flow_set_option(sender, config, fd, IPPROTO_TCP,
				TCP_CONGESTION, config->cc,
				strlen(config->cc), words);
	}
	if (config->prio >= 0) {
		snprintf(words, sizeof(words), "prio=%d", config->prio);
		flow_set_option(sender, config, fd, SOL_SOCKET, SO_PRIORITY,
				&config->prio, sizeof(config->prio), words);
	}
	if (config->mark >= 0) {
		uint32_t mark = config->mark;

		snprintf(words, sizeof(words), "mark=%u", mark);
		flow_set_option(sender, config, fd, SOL_SOCKET, SO_MARK,
				&mark, sizeof(mark), words);
	}
	if (config->tos) {
		bool ipv6 = config->dst.any.sa_family == AF_INET6;

		flow_set_option(sender, config, fd,
				ipv6 ? IPPROTO_IPV6 : IPPROTO_IP,
				ipv6 ? IPV6_TCLASS : IP_TOS, &config->tos,
				sizeof(config->tos), "ecn=");
	}
	if (config->udp) {
		flow_set_buffer(sender, fd, UDP_BUFFER_BYTES);
	} else if (!flow->size || flow->size > SHORT_TRANSFER_BYTES) {
		flow_set_buffer(sender, fd, TCP_BUFFER_BYTES);
		setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent,
			   sizeof(unsent));
	}
	if (config->closed) {
		uint32_t flags = SOF_TIMESTAMPING_SOFTWARE |
				 SOF_TIMESTAMPING_OPT_TSONLY;

		flow_set_option(sender, config, fd, SOL_SOCKET, SO_TIMESTAMPING,
				&flags, sizeof(flags), "source=closed");
	}
	flow->fd = fd;
}

static void flow_read_local_port(struct flow *flow)
{
	union address local;
	socklen_t length = sizeof(local);

	if (!getsockname(flow->fd, &local.any, &length))
		flow->local_port = address_port(&local);
}

static bool flow_is_produced(const struct flow *flow)
{
	return !flow->config->udp && flow->config->rate_bps;
}

static uint64_t chunk_bits_ns(const struct flow_config *config)
{
	return (config->size_bytes + config->overhead_bytes) * 8 *
	       NSEC_PER_SEC;
}

/* When packet or chunk @number of this on is due: rounding must not add up. */
static int64_t chunk_ns(const struct flow *flow, uint64_t number)
{
	const struct flow_config *config = flow->config;

	return flow->phase_ns + (int64_t)((__uint128_t)chunk_bits_ns(config) *
					  number / config->rate_bps);
}

static int64_t span_length(struct flow *flow, const struct span *span)
{
	if (!span->exponential)
		return span->ns;
	return random_exponential_mean(&flow->random, span->ns, 1);
}

/* UDP */

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

static void udp_on_packet(struct sender *sender, struct flow *flow,
			  int64_t at_ns)
{
	udp_send_packet(sender, flow);
	flow->phase_packets++;
	udp_next_packet(sender, flow, at_ns);
}

static void udp_turn_on(struct sender *sender, struct flow *flow,
			int64_t at_ns)
{
	flow->generation++;	/* a packet due in an earlier on is not sent */
	flow->phase_ns = at_ns;
	flow->phase_packets = 0;
	udp_next_packet(sender, flow, at_ns);
}

static void udp_start(struct sender *sender, struct flow *flow)
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

/* TCP */

/*
 * Read TCP_INFO into the flow's counters. Returns the connection's state, or
 * 0 when it cannot be read.
 */
static int tcp_read_info(struct flow *flow, struct tcp_info *info)
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

/* False when the congestion control has no such report. */
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

static void tcp_add_sample(struct sender *sender, struct flow *flow,
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
	if (flow->polled)
		loop_close(&sender->loop, flow->fd);
	else
		close(flow->fd);
	flow->fd = -1;
	flow->polled = false;
}

static void tcp_abort(struct sender *sender, struct flow *flow)
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

static void tcp_fail(struct sender *sender, struct flow *flow,
		     const char *what, int error)
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
static void tcp_pump(struct sender *sender, struct flow *flow)
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
		/* Cut short: the kernel reports when there is room again. */
		if ((size_t)sent < want)
			return;
	}
	/* A fast path swallows all of it: let others have a turn. */
	sender->busy = true;
	sender->now_ns = TIME_UNSET;
	loop_modify(&sender->loop, flow->fd,
		    EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, flow);
}

/* An application of its own pace: rate= of TCP. */

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

/* Give the socket what it takes of the backlog. */
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

/* The rate that the congestion control would let the application send at. */
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
 * How large the next chunk of an adaptive source is: what may be sent until the
 * one after it, but for what waits already.
 */
static int64_t produced_adapt(struct sender *sender, struct flow *flow)
{
	const struct flow_config *config = flow->config;
	struct tcp_info info;
	int64_t allowed_bps, rate_bps, bytes, least;

	allowed_bps = tcp_allowed_bps(flow, &info);
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

/* After an on: the off that leads to the next. */
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

static void produced_on_chunk(struct sender *sender, struct flow *flow)
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

static void produced_turn_on(struct sender *sender, struct flow *flow,
			     int64_t at_ns)
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

/* Is all of an on acknowledged, now that the error queue says something? */
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

/* Choose what the next page is, and so what its first connection carries. */
static void http_choose_page(struct flow *flow)
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

static void http_begin_page(struct sender *sender, struct flow *flow)
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

static void tcp_begin_transfer(struct sender *sender, struct flow *flow)
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

static void tcp_connect(struct sender *sender, struct flow *flow)
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

/* Note that this transfer is done. Returns how many are. */
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

static void tcp_on_event(struct sender *sender, struct flow *flow,
			 uint32_t events)
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

/* What the timers do. */

static void flow_turn_on(struct sender *sender, struct flow *flow,
			 int64_t at_ns)
{
	flow->on = true;
	if (flow->config->udp) {
		udp_turn_on(sender, flow, at_ns);
	} else if (flow_is_produced(flow)) {
		if (flow->state == FLOW_SILENT)
			flow->state = FLOW_SENDING;
		produced_turn_on(sender, flow, at_ns);
	} else if (flow->state == FLOW_SILENT) {
		flow->state = FLOW_SENDING;
		tcp_pump(sender, flow);
	}
}

static void flow_toggle(struct sender *sender, struct flow *flow,
			int64_t at_ns)
{
	const struct flow_config *config = flow->config;

	/* Chunks, not timers, end the on of these. */
	if (flow_is_produced(flow)) {
		produced_turn_on(sender, flow, at_ns);
		return;
	}
	if (flow->on) {
		flow->on = false;
		flow->generation++;
		if (flow->state == FLOW_SENDING && !config->udp)
			flow->state = FLOW_SILENT;
	} else {
		flow_turn_on(sender, flow, at_ns);
	}
	if (flow->state != FLOW_DONE)
		timer_push(sender,
			   at_ns + span_length(flow, flow->on ? &config->on :
					       &config->off),
			   TIMER_TOGGLE, flow);
}

/* start=, or the next transfer of a repeat= */
static void flow_start(struct sender *sender, struct flow *flow, int64_t at_ns)
{
	bool early = flow->config->early && !flow->started;

	if (flow->state != FLOW_WAITING && !early)
		return;
	flow->started = true;
	if (flow->config->udp) {
		udp_start(sender, flow);
	} else if (early) {
		if (flow->config->bytes)
			tcp_begin_transfer(sender, flow);
	} else {
		if (flow->config->http)
			http_begin_page(sender, flow);
		else if (flow->config->bytes)
			tcp_begin_transfer(sender, flow);
		tcp_connect(sender, flow);
	}
	if (flow->state == FLOW_DONE || flow->on)
		return;
	flow_turn_on(sender, flow, at_ns);
	if (flow->config->on.ns && !flow_is_produced(flow))
		timer_push(sender,
			   at_ns + span_length(flow, &flow->config->on),
			   TIMER_TOGGLE, flow);
}

static void flow_stop(struct sender *sender, struct flow *flow)
{
	switch (flow->state) {
	case FLOW_DONE:
		return;
	case FLOW_CONNECTING:
		/*
		 * The user's impatience is not the network's fault, and some
		 * user of many is always asking for a page.
		 */
		if (sender->interrupted || flow->config->http)
			tcp_abort(sender, flow);
		else
			tcp_fail(sender, flow, "connect to", ETIMEDOUT);
		return;
	case FLOW_SENDING:
	case FLOW_SILENT:
	case FLOW_CLOSING:
		if (!flow->config->udp) {
			tcp_abort(sender, flow);
			return;
		}
		break;
	case FLOW_WAITING:
		break;
	}
	flow_finish(sender, flow);
}

static void sample_all(struct sender *sender)
{
	int64_t period_ns = sender->options->sample_ns;
	int64_t now_ns = sender_now(sender);
	struct tcp_info info;
	size_t i;

	for (i = 0; i < sender->file.count; i++) {
		struct flow *flow = &sender->flows[i];

		if (flow->polled && flow->state != FLOW_CONNECTING &&
		    tcp_read_info(flow, &info))
			tcp_add_sample(sender, flow, &info);
	}
	/* The first one to come: a late machine skips samples. */
	timer_push(sender, now_ns + period_ns -
		   (now_ns - sender->epoch_ns) % period_ns,
		   TIMER_SAMPLE, NULL);
}

static void run_timers(struct sender *sender, int64_t deadline_ns)
{
	while (sender->timer_count && sender->timers[0].at_ns <= deadline_ns) {
		struct timer timer = timer_pop(sender);
		struct flow *flow = timer.flow;

		if (timer.kind == TIMER_SAMPLE) {
			sample_all(sender);
			continue;
		}
		if (flow->state == FLOW_DONE)
			continue;
		switch (timer.kind) {
		case TIMER_CONNECT:
			tcp_connect(sender, flow);
			break;
		case TIMER_START:
			flow_start(sender, flow, timer.at_ns);
			break;
		case TIMER_STOP:
			flow_stop(sender, flow);
			break;
		case TIMER_TOGGLE:
			flow_toggle(sender, flow, timer.at_ns);
			break;
		case TIMER_PACKET:
			if (flow_is_produced(flow))
				produced_on_chunk(sender, flow);
			else if (timer.generation == flow->generation)
				udp_on_packet(sender, flow, timer.at_ns);
			break;
		case TIMER_SAMPLE:
			break;
		}
	}
}

static void sender_run(struct sender *sender)
{
	struct epoll_event events[EVENTS_PER_WAIT];

	while (sender->live) {
		int64_t deadline_ns = sender->timer_count ?
				      sender->timers[0].at_ns : TIME_NEVER;
		int count, i;
		bool due;

		count = loop_wait(&sender->loop, events, EVENTS_PER_WAIT,
				  deadline_ns, &due);
		sender->now_ns = TIME_UNSET;
		sender->busy = false;
		if (loop_stop_signal) {
			sender->interrupted = loop_stop_signal;
			for (i = 0; i < (int)sender->file.count; i++)
				flow_stop(sender, &sender->flows[i]);
			return;
		}
		/*
		 * Sockets first: a timer may close a socket and open another
		 * for the same flow, which old events are not about.
		 */
		for (i = 0; i < count; i++) {
			struct flow *flow = events[i].data.ptr;

			if (flow->polled)
				tcp_on_event(sender, flow, events[i].events);
		}
		/*
		 * A turn that had nothing else to do need not ask what time
		 * it is. One that did may have made several deadlines pass.
		 */
		if (sender->busy || (due && count))
			deadline_ns = sender_now(sender);
		if (sender->busy || due)
			run_timers(sender, deadline_ns);
	}
}

static void sender_set_up(struct sender *sender)
{
	const struct send_options *options = sender->options;
	size_t tcp_flows = 0, i;
	int64_t share;

	flow_file_read(&sender->file, options->flows);
	for (i = 0; i < sender->file.count; i++)
		tcp_flows += !sender->file.flows[i].udp;
	/*
	 * A third of the memory TCP may use before it feels pressure, which
	 * would change the flows, divided among them.
	 */
	share = tcp_memory_low_bytes() / 3 / (int64_t)(tcp_flows + 1);
	if (share > UNSENT_MAX)
		share = UNSENT_MAX;
	if (share < UNSENT_MIN)
		share = UNSENT_MIN;
	sender->unsent_bytes = options->unsent_bytes ? options->unsent_bytes :
						       share;

	sender->flows = checked_alloc(calloc(sender->file.count,
					     sizeof(*sender->flows)));
	sender->live = sender->file.count;
	for (i = 0; i < sender->file.count; i++) {
		struct flow *flow = &sender->flows[i];

		flow->config = &sender->file.flows[i];
		flow->random = flow->config->seed;
		flow->connected_ns = TIME_UNSET;
		flow->stopped_ns = TIME_UNSET;
		flow->size = flow->config->bytes;
		if (flow->config->http)
			http_choose_page(flow);
		flow_open_socket(sender, flow);
	}
}

/* After the sockets are made, so that an epoch of "now" does not wait. */
static void sender_schedule(struct sender *sender)
{
	const struct send_options *options = sender->options;
	int64_t now_ns = clock_ns();
	size_t i;

	sender->epoch_ns = options->epoch_ns == TIME_UNSET ? now_ns :
							     options->epoch_ns;
	for (i = 0; i < sender->file.count; i++) {
		struct flow *flow = &sender->flows[i];
		int64_t stop_ns = flow->config->stop_ns;

		if (stop_ns > options->duration_ns)
			stop_ns = options->duration_ns;
		flow->start_ns = sender->epoch_ns + flow->config->start_ns;
		flow->stop_ns = stop_ns == TIME_NEVER ? TIME_NEVER :
				sender->epoch_ns + stop_ns;
		if (flow->config->early && now_ns < flow->start_ns &&
		    flow->start_ns < flow->stop_ns)
			timer_push(sender, now_ns, TIMER_CONNECT, flow);
		else
			flow->started = flow->config->early;
		if (flow->start_ns < flow->stop_ns)
			timer_push(sender, flow->start_ns, TIMER_START, flow);
		if (flow->stop_ns != TIME_NEVER)
			timer_push(sender, flow->stop_ns, TIMER_STOP, flow);
	}
	if (options->sample_ns) {
		int64_t first_ns = sender->epoch_ns;

		if (now_ns > first_ns)
			first_ns = now_ns + options->sample_ns -
				   (now_ns - first_ns) % options->sample_ns;
		timer_push(sender, first_ns, TIMER_SAMPLE, NULL);
	}
}

/* The report. */

static int64_t since_epoch(const struct sender *sender, int64_t at_ns)
{
	return at_ns == TIME_UNSET ? TIME_UNSET : at_ns - sender->epoch_ns;
}

#define REPORT_COLUMN(to, from, name) do {				\
	const struct flow *column_of = (from);				\
	struct json *column_to = (to);					\
	size_t row;							\
									\
	json_begin(column_to, #name, '[');				\
	for (row = 0; row < column_of->sample_count; row++)		\
		json_integer(column_to, NULL,				\
			     column_of->samples[row].name);		\
	json_end(column_to, ']');					\
} while (0)

static void report_samples(struct json *json, const struct sender *sender,
			   const struct flow *flow)
{
	size_t i;

	json_begin(json, "samples", '{');
	json_begin(json, "t_s", '[');
	for (i = 0; i < flow->sample_count; i++)
		json_seconds(json, NULL,
			     since_epoch(sender, flow->samples[i].t_ns));
	json_end(json, ']');
	REPORT_COLUMN(json, flow, bytes_acked);
	REPORT_COLUMN(json, flow, cwnd);
	REPORT_COLUMN(json, flow, ssthresh);
	REPORT_COLUMN(json, flow, srtt_us);
	REPORT_COLUMN(json, flow, min_rtt_us);
	REPORT_COLUMN(json, flow, retransmits);
	REPORT_COLUMN(json, flow, unacked);
	REPORT_COLUMN(json, flow, pacing_bps);
	REPORT_COLUMN(json, flow, delivered);
	REPORT_COLUMN(json, flow, delivered_ce);
	REPORT_COLUMN(json, flow, ca_state);
	if (sender->options->cc_info) {
		REPORT_COLUMN(json, flow, cc_rate_bps);
		REPORT_COLUMN(json, flow, cc_min_rtt_us);
		REPORT_COLUMN(json, flow, cc_pacing_gain);
		REPORT_COLUMN(json, flow, cc_cwnd_gain);
	}
	json_end(json, '}');
}

#define REPORT_FRAMES(to, from, name) do {				\
	const struct flow *frames_of = (from);				\
	struct json *frames_to = (to);					\
	size_t row;							\
									\
	json_begin(frames_to, #name, '[');				\
	for (row = 0; row < frames_of->frame_count; row++)		\
		json_integer(frames_to, NULL,				\
			     frames_of->frames[row].name);		\
	json_end(frames_to, ']');					\
} while (0)

static void report_frames(struct json *json, const struct sender *sender,
			  const struct flow *flow)
{
	size_t i;

	json_begin(json, "frames", '{');
	json_begin(json, "t_s", '[');
	for (i = 0; i < flow->frame_count; i++)
		json_seconds(json, NULL,
			     since_epoch(sender, flow->frames[i].t_ns));
	json_end(json, ']');
	REPORT_FRAMES(json, flow, bytes);
	REPORT_FRAMES(json, flow, allowed_bps);
	json_end(json, '}');
}

#define REPORT_PAGES(to, from, name) do {					\
	const struct flow *pages_of = (from);				\
	struct json *pages_to = (to);					\
	size_t row;							\
									\
	json_begin(pages_to, #name, '[');				\
	for (row = 0; row < pages_of->page_count; row++)		\
		json_integer(pages_to, NULL,				\
			     pages_of->pages[row].name);		\
	json_end(pages_to, ']');					\
} while (0)

static void report_pages(struct json *json, const struct sender *sender,
			 const struct flow *flow)
{
	size_t i;

	json_begin(json, "pages", '{');
	json_begin(json, "start_s", '[');
	for (i = 0; i < flow->page_count; i++)
		json_seconds(json, NULL,
			     since_epoch(sender, flow->pages[i].start_ns));
	json_end(json, ']');
	json_begin(json, "duration_s", '[');
	for (i = 0; i < flow->page_count; i++)
		json_seconds(json, NULL, flow->pages[i].duration_ns);
	json_end(json, ']');
	REPORT_PAGES(json, flow, bytes);
	REPORT_PAGES(json, flow, objects);
	json_end(json, '}');
}

static void report_transfers(struct json *json, const struct sender *sender,
			     const struct flow *flow)
{
	size_t i;

	json_begin(json, "transfers", '[');
	for (i = 0; i < flow->transfer_count; i++) {
		const struct transfer *transfer = &flow->transfers[i];

		json_begin(json, NULL, '{');
		json_seconds(json, "start_s",
			     since_epoch(sender, transfer->start_ns));
		json_seconds(json, "end_s",
			     since_epoch(sender, transfer->end_ns));
		json_integer(json, "bytes", transfer->bytes);
		json_end(json, '}');
	}
	json_end(json, ']');
}

static void report_tcp(struct json *json, const struct sender *sender,
		       const struct flow *flow)
{
	const struct totals *sum = &flow->earlier;

	json_integer(json, "bytes_acked", sum->bytes_acked);
	json_integer(json, "bytes_sent", sum->bytes_sent);
	json_integer(json, "segs_out", sum->segs_out);
	json_integer(json, "retransmits", sum->retransmits);
	json_integer(json, "lost", flow->lost);
	json_integer(json, "delivered", sum->delivered);
	json_integer(json, "delivered_ce", sum->delivered_ce);
	json_integer(json, "busy_us", sum->busy_us);
	json_integer(json, "rwnd_limited_us", sum->rwnd_limited_us);
	json_integer(json, "sndbuf_limited_us", sum->sndbuf_limited_us);
	if (flow->config->http)
		report_pages(json, sender, flow);
	else
		report_transfers(json, sender, flow);
	if (flow->config->floor_bps)
		report_frames(json, sender, flow);
	report_samples(json, sender, flow);
}

static void report_flow(struct json *json, const struct sender *sender,
			const struct flow *flow)
{
	const struct flow_config *config = flow->config;

	json_begin(json, NULL, '{');
	json_integer(json, "id", config->id);
	json_string(json, "proto", config->udp ? "udp" : "tcp");
	json_string(json, "cc", *flow->cc ? flow->cc : NULL);
	if (config->prio >= 0)
		json_integer(json, "prio", config->prio);
	else
		json_null(json, "prio");
	json_string(json, "dst", config->dst_text);
	json_integer(json, "port", address_port(&config->dst));
	if (flow->local_port)
		json_integer(json, "local_port", flow->local_port);
	else
		json_null(json, "local_port");
	json_seconds(json, "start_s", config->start_ns);
	json_seconds(json, "connected_s",
		     since_epoch(sender, flow->connected_ns));
	json_seconds(json, "stop_s", since_epoch(sender, flow->stopped_ns));
	if (config->udp) {
		json_integer(json, "packets", flow->packets);
		json_integer(json, "bytes", flow->packets *
			     config->size_bytes);
		json_integer(json, "refused", flow->refused);
	} else {
		report_tcp(json, sender, flow);
	}
	json_string(json, "error", flow->error);
	json_end(json, '}');
}

/* What was counted since the run began. */
static void report_network(struct json *json, const struct network *before)
{
	struct network now;
	int i;

	network_read(&now);
	if (!now.known || !before->known) {
		json_null(json, "network");
		return;
	}
	json_begin(json, "network", '{');
	for (i = 0; i < NETWORK_COUNTERS; i++)
		json_integer(json, network_names[i],
			     now.counters[i] - before->counters[i]);
	json_end(json, '}');
}

static bool report(struct json *json, const struct sender *sender)
{
	size_t i;

	json_begin(json, NULL, '{');
	json_integer(json, "schema", 1);
	json_string(json, "role", "send");
	json_integer(json, "epoch_ns", sender->epoch_ns);
	json_boolean(json, "interrupted", sender->interrupted);
	json_integer(json, "unsent_bytes", sender->unsent_bytes);
	report_network(json, &sender->before);
	json_begin(json, "flows", '[');
	for (i = 0; i < sender->file.count; i++)
		report_flow(json, sender, &sender->flows[i]);
	json_end(json, ']');
	json_end(json, '}');
	return json_commit(json);
}

int traffic_send(const struct send_options *options)
{
	struct sender sender = {
		.options = options,
		.now_ns = TIME_UNSET,
		.may_force_buffer = true,
	};
	struct json json;

	sender_set_up(&sender);
	json_open(&json, options->json);
	network_read(&sender.before);
	loop_open(&sender.loop, options->rest_ns);
	sender_schedule(&sender);
	sender_run(&sender);
	if (!report(&json, &sender))
		return STATUS_FAILED;
	if (sender.interrupted)
		return STATUS_SIGNAL + sender.interrupted;
	return sender.failures ? STATUS_FAILED : 0;
}
