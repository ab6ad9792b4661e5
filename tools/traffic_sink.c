// SPDX-License-Identifier: GPL-2.0
/*
 * The receiver: reads all data and counts it.
 *
 * TCP: with SO_RCVLOWAT the kernel wakes the program once for many packets, and
 * MSG_TRUNC discards all data in one call, without a copy. The end of a stream wakes it
 * with any amount of data, so short transfers end in time. Unread data takes space in
 * the receive window, so the window is much larger than the low-water mark.
 *
 * With thousands of connections, waking up costs more than reading. Then all are read at
 * fixed times (--read-ms), and the mark is larger than any amount of data: beyond the
 * mark, the kernel sends no ACK until the data is read.
 *
 * UDP has no low-water mark. After the first datagram, the socket is not in epoll any
 * more, but is read every few milliseconds until no datagram arrives. Only counts are
 * kept, so a delay does no harm. But senders with law= wait for reports: a socket that
 * gets such packets is read when they arrive, and the kernel gives the time of their
 * arrival.
 */
#include <endian.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <unistd.h>

#include "json.h"
#include "traffic.h"
#include "traffic_receiver.h"
#include "traffic_wire.h"

#define EVENTS_PER_WAIT		64
#define BACKLOG			65535	/* capped by net.core.somaxconn */
#define RECEIVE_BYTES		(1 << 30)
/*
 * Raising the mark also raises the buffer, and lowering it again leaves the
 * buffer alone: a large window from the start that the kernel goes on tuning,
 * which SO_RCVBUF would forbid. Capped by half of tcp_rmem[2].
 */
#define WINDOW_BYTES		(2 * 1024 * 1024)
/*
 * But a window that the mark has set once bounds the window scale of all connections:
 * it must not, or a long fast path is never full. tcp_rmem[2] bounds it then.
 */
#define WINDOW_CLAMP_BYTES	(1 << 30)
#define LOWAT_MAX		(256 * 1024)
#define LOWAT_NEVER		(1024 * 1024)
#define LOWAT_MIN		(8 * 1024)
#define UDP_BUFFER_BYTES	(8 * 1024 * 1024)
#define UDP_BATCH		64
#define UDP_POLL_NS		(5 * NSEC_PER_MSEC)
/* Number of reads without a datagram after which epoll is used again. */
#define UDP_IDLE_POLLS		8
#define PEER_BUCKETS		1024
/* Largest number of senders whose rate one sink controls. */
#define RECEIVERS_MAX		4096

enum endpoint_kind {
	ENDPOINT_LISTENER,
	ENDPOINT_CONNECTION,
	ENDPOINT_DATAGRAM,
};

/* The data of epoll events. */
struct endpoint {
	enum endpoint_kind kind;
	int fd;			/* -1: closed */
	uint16_t port;
	unsigned int idle_polls;	/* datagram: since the last packet */
	bool polled;			/* datagram: by the timer */
	bool prompt;			/* datagram: a sender waits for reports */
	bool reset;			/* connection: ended by one */
	union address peer;		/* connection */
	int64_t accepted_ns, closed_ns;
	uint64_t bytes;
};

/* The datagrams of one sender to one port. */
struct peer {
	struct peer *bucket_next;
	union address address;
	uint16_t port;
	uint64_t packets, bytes;
	uint64_t expected;		/* the next sequence number */
	uint64_t lost, reordered;
	uint64_t *received;		/* bytes in each sampling period */
	size_t received_room, periods;
	struct receiver *receiver;	/* with law=, else NULL */
	uint64_t *sequences;		/* of these: next one, by each period's end */
	size_t sequences_room;
};

struct sink {
	const struct sink_options *options;
	struct loop loop;
	int64_t epoch_ns;
	int64_t poll_ns;	/* when UDP is next polled, or TIME_NEVER */
	int64_t read_ns;	/* when TCP is next read, or TIME_NEVER */
	int64_t lowat_budget;
	int lowat_bytes;
	size_t open_connections;
	int interrupted;
	struct endpoint **endpoints;	/* in the order they came */
	size_t endpoint_count, endpoint_room;
	struct peer **peers;		/* in the order they came */
	size_t peer_count, peer_room;
	struct peer *buckets[PEER_BUCKETS];
	uint64_t udp_drops;
	size_t receivers;
	uint64_t receivers_refused;
};

static struct endpoint *sink_add_endpoint(struct sink *sink,
					  enum endpoint_kind kind, int fd,
					  uint16_t port, uint32_t events)
{
	struct endpoint *endpoint = checked_alloc(calloc(1, sizeof(*endpoint)));

	if (sink->endpoint_count == sink->endpoint_room) {
		sink->endpoint_room = sink->endpoint_room ?
				      2 * sink->endpoint_room : 64;
		sink->endpoints =
			checked_reallocarray(sink->endpoints,
					     sink->endpoint_room,
					     sizeof(*sink->endpoints));
	}
	sink->endpoints[sink->endpoint_count++] = endpoint;
	endpoint->kind = kind;
	endpoint->fd = fd;
	endpoint->port = port;
	endpoint->closed_ns = TIME_UNSET;
	loop_add(&sink->loop, fd, events, endpoint);
	return endpoint;
}

/* TCP */

static void set_lowat(int fd, int bytes)
{
	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
}

static void set_window_clamp(int fd, int bytes)
{
	setsockopt(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, &bytes, sizeof(bytes));
}

/*
 * Unread data counts as memory of TCP, which has a limit. The limit is divided among the
 * connections again each time that their number doubles.
 */
static void sink_share_lowat(struct sink *sink)
{
	int64_t share = sink->lowat_budget;
	size_t level, i;

	for (level = 1; level < sink->open_connections; level *= 2)
		share /= 2;
	if (share > LOWAT_MAX)
		share = LOWAT_MAX;
	if (share < LOWAT_MIN)
		share = LOWAT_MIN;
	if (share >= sink->lowat_bytes)
		return;
	sink->lowat_bytes = share;
	for (i = 0; i < sink->endpoint_count; i++) {
		struct endpoint *endpoint = sink->endpoints[i];

		if (endpoint->fd >= 0 && endpoint->kind != ENDPOINT_DATAGRAM)
			set_lowat(endpoint->fd, sink->lowat_bytes);
	}
}

/* The connections inherit the listener's marks, buffer and congestion control. */
static void sink_accept(struct sink *sink, const struct endpoint *listener)
{
	struct endpoint *connection;
	union address peer;
	socklen_t length = sizeof(peer);
	int fd;

	fd = accept4(listener->fd, &peer.any, &length,
		     SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
		    errno == ENOBUFS)
			die(STATUS_FAILED, "cannot accept on port %u: %s",
			    listener->port, strerror(errno));
		return;		/* the connection has ended already */
	}
	connection = sink_add_endpoint(sink, ENDPOINT_CONNECTION, fd,
				       listener->port,
				       EPOLLIN | EPOLLRDHUP | EPOLLET);
	connection->peer = peer;
	connection->accepted_ns = clock_ns();
	sink->open_connections++;
	if (!sink->options->lowat_bytes && !sink->options->read_ns)
		sink_share_lowat(sink);
}

static void sink_receive(struct sink *sink, struct endpoint *connection,
			 bool ended)
{
	ssize_t count;

	do {
		count = recv(connection->fd, NULL, RECEIVE_BYTES, MSG_TRUNC);
		if (count > 0)
			connection->bytes += count;
	} while (count > 0 && ended);
	if (count > 0)
		return;
	if (count < 0) {
		if (errno == EAGAIN || errno == EINTR)
			return;
		connection->reset = true;
	}
	connection->closed_ns = clock_ns();
	loop_close(&sink->loop, connection->fd);
	connection->fd = -1;
	sink->open_connections--;
}

/* At fixed times, which do not depend on delays of the program. */
static void sink_read_all(struct sink *sink)
{
	size_t i;

	for (i = 0; i < sink->endpoint_count; i++) {
		struct endpoint *endpoint = sink->endpoints[i];

		if (endpoint->kind == ENDPOINT_CONNECTION && endpoint->fd >= 0)
			sink_receive(sink, endpoint, false);
	}
	sink->read_ns += sink->options->read_ns;
}

/* UDP */

static unsigned int peer_hash(const union address *address, uint16_t port)
{
	uint32_t hash = address->v4.sin_port * 0x9e3779b1U ^ port;
	int i;

	if (address->any.sa_family == AF_INET)
		hash ^= address->v4.sin_addr.s_addr * 0x85ebca6bU;
	else
		for (i = 0; i < 16; i++)
			hash = hash * 31 + address->v6.sin6_addr.s6_addr[i];
	return (hash ^ hash >> 15) % PEER_BUCKETS;
}

static bool address_equal(const union address *a, const union address *b)
{
	if (a->any.sa_family != b->any.sa_family ||
	    a->v4.sin_port != b->v4.sin_port)
		return false;
	if (a->any.sa_family == AF_INET)
		return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
	return !memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr,
		       sizeof(a->v6.sin6_addr));
}

static struct peer *sink_find_peer(struct sink *sink,
				   const union address *address, uint16_t port)
{
	struct peer **bucket = &sink->buckets[peer_hash(address, port)];
	struct peer *peer;

	for (peer = *bucket; peer; peer = peer->bucket_next)
		if (peer->port == port && address_equal(&peer->address, address))
			return peer;
	peer = checked_alloc(calloc(1, sizeof(*peer)));
	peer->address = *address;
	peer->port = port;
	peer->bucket_next = *bucket;
	*bucket = peer;
	if (sink->peer_count == sink->peer_room) {
		sink->peer_room = sink->peer_room ? 2 * sink->peer_room : 64;
		sink->peers = checked_reallocarray(sink->peers, sink->peer_room,
						   sizeof(*sink->peers));
	}
	sink->peers[sink->peer_count++] = peer;
	return peer;
}

/* Packets of a gap count as lost until they arrive, out of order. */
static void peer_count_packet(struct peer *peer,
			      const struct wire_header *header,
			      uint32_t length)
{
	uint64_t sequence = be64toh(header->sequence);

	peer->packets++;
	peer->bytes += length;
	if (length < sizeof(*header) || be32toh(header->magic) != WIRE_MAGIC)
		return;
	if (sequence >= peer->expected) {
		peer->lost += sequence - peer->expected;
		peer->expected = sequence + 1;
	} else {
		peer->reordered++;
		if (peer->lost)
			peer->lost--;
	}
}

/* Record the bytes that were received when the socket was read, at @now_ns. */
static void peer_sample(const struct sink *sink, struct peer *peer,
			int64_t now_ns, uint32_t length)
{
	size_t index = 0;

	if (now_ns > sink->epoch_ns)
		index = (now_ns - sink->epoch_ns) / sink->options->sample_ns;
	peer->received = checked_reach(peer->received, &peer->received_room,
				       index, sizeof(*peer->received));
	peer->received[index] += length;
	peer->periods = index + 1;
}

/*
 * Process a packet with law=. @length may be larger than the number of bytes @there. The
 * report is sent to the source address of the packet.
 */
static void sink_take_pair(struct sink *sink, const struct endpoint *datagram,
			   struct peer *peer, const void *bytes, size_t length,
			   int64_t arrival_ns)
{
	size_t there = length < sizeof(struct wire_pair) ?
		       length : sizeof(struct wire_pair);
	struct wire_report report;
	size_t index;

	if (!peer->receiver) {
		/* The limit protects the memory against forged addresses. */
		if (sink->receivers == RECEIVERS_MAX) {
			sink->receivers_refused++;
			return;
		}
		sink->receivers++;
		peer->receiver = checked_alloc(receiver_new());
	}
	if (!receiver_packet(peer->receiver, bytes, there, length, arrival_ns))
		return;
	peer->packets++;
	peer->bytes += length;
	if (sink->options->sample_ns) {
		peer_sample(sink, peer, arrival_ns,
			    length - sizeof(struct wire_pair));
		index = peer->periods - 1;
		peer->sequences = checked_reach(peer->sequences,
						&peer->sequences_room, index,
						sizeof(*peer->sequences));
		peer->sequences[index] =
			receiver_next_sequence(peer->receiver);
	}
	if (receiver_report(peer->receiver, clock_ns(), &report))
		sendto(datagram->fd, &report, sizeof(report), 0,
		       &peer->address.any, address_length(&peer->address));
}

/* Time of arrival in the kernel, by CLOCK_MONOTONIC; without a timestamp, now. */
static int64_t message_arrival(struct msghdr *message, int64_t realtime_less_ns)
{
	int64_t now_ns = clock_ns(), arrival_ns;
	struct cmsghdr *header;
	struct timespec stamp;

	for (header = CMSG_FIRSTHDR(message); header;
	     header = CMSG_NXTHDR(message, header)) {
		if (header->cmsg_level != SOL_SOCKET ||
		    header->cmsg_type != SCM_TIMESTAMPNS)
			continue;
		memcpy(&stamp, CMSG_DATA(header), sizeof(stamp));
		arrival_ns = stamp.tv_sec * NSEC_PER_SEC + stamp.tv_nsec -
			     realtime_less_ns;
		/* Otherwise the wall clock was set in the meantime. */
		if (arrival_ns <= now_ns &&
		    now_ns - arrival_ns < NSEC_PER_SEC)
			return arrival_ns;
	}
	return now_ns;
}

/* The magic number is enough: errors in other fields are counted. */
static bool message_is_pair(const struct wire_pair *header, size_t length)
{
	return length >= sizeof(header->magic) &&
	       be32toh(header->magic) == WIRE_MAGIC_PAIR;
}

static void datagram_be_prompt(struct endpoint *datagram)
{
	const int one = 1;

	if (datagram->prompt)
		return;
	datagram->prompt = true;
	setsockopt(datagram->fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one));
}

/* Is the first datagram from a sender with law=, which waits for a report? */
static bool sink_is_prompt(struct endpoint *datagram)
{
	struct wire_pair header;

	if (!datagram->prompt &&
	    recv(datagram->fd, &header, sizeof(header), MSG_PEEK) > 0 &&
	    message_is_pair(&header, sizeof(header)))
		datagram_be_prompt(datagram);
	return datagram->prompt;
}

/* Difference of the clock of the kernel's timestamps and CLOCK_MONOTONIC. */
static int64_t realtime_less_monotonic(const struct endpoint *datagram)
{
	struct timespec now;

	if (!datagram->prompt)
		return 0;
	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec - clock_ns();
}

/* Read all datagrams of the socket. Returns false if there was none. */
static bool sink_drain(struct sink *sink, struct endpoint *datagram)
{
	static union {
		struct wire_header plain;
		struct wire_pair pair;
	} headers[UDP_BATCH];
	static union {
		char bytes[CMSG_SPACE(sizeof(struct timespec))];
		struct cmsghdr align;
	} controls[UDP_BATCH];
	static union address addresses[UDP_BATCH];
	static struct iovec vectors[UDP_BATCH];
	static struct mmsghdr messages[UDP_BATCH];
	int64_t now_ns = sink->options->sample_ns ? clock_ns() : TIME_UNSET;
	int64_t less_ns = realtime_less_monotonic(datagram);
	bool any = false;
	int64_t arrival_ns;
	int count, i;

	do {
		for (i = 0; i < UDP_BATCH; i++) {
			vectors[i].iov_base = &headers[i];
			vectors[i].iov_len = sizeof(headers[i]);
			messages[i].msg_hdr = (struct msghdr){
				.msg_name = &addresses[i],
				.msg_namelen = sizeof(addresses[i]),
				.msg_iov = &vectors[i],
				.msg_iovlen = 1,
			};
			if (!datagram->prompt)
				continue;
			messages[i].msg_hdr.msg_control = &controls[i];
			messages[i].msg_hdr.msg_controllen =
				sizeof(controls[i]);
		}
		/* MSG_TRUNC: msg_len is the datagram's whole length. */
		count = recvmmsg(datagram->fd, messages, UDP_BATCH, MSG_TRUNC,
				 NULL);
		for (i = 0; i < count; i++) {
			struct peer *peer = sink_find_peer(sink, &addresses[i],
							   datagram->port);

			any = true;
			if (message_is_pair(&headers[i].pair,
					    messages[i].msg_len)) {
				datagram_be_prompt(datagram);
				arrival_ns = message_arrival(&messages[i].msg_hdr,
							     less_ns);
				sink_take_pair(sink, datagram, peer, &headers[i],
					       messages[i].msg_len, arrival_ns);
				continue;
			}
			peer_count_packet(peer, &headers[i].plain,
					  messages[i].msg_len);
			if (sink->options->sample_ns)
				peer_sample(sink, peer, now_ns,
					    messages[i].msg_len);
		}
	} while (count == UDP_BATCH);
	return any;
}

/* EPOLLONESHOT: there is no event until it is enabled again. */
static void sink_start_datagrams(struct sink *sink, struct endpoint *datagram)
{
	if (sink_is_prompt(datagram)) {
		sink_drain(sink, datagram);
		loop_modify(&sink->loop, datagram->fd, EPOLLIN, datagram);
		return;
	}
	datagram->polled = true;
	datagram->idle_polls = 0;
	if (sink->poll_ns == TIME_NEVER)
		sink->poll_ns = clock_ns() + UDP_POLL_NS;
}

static void sink_poll(struct sink *sink)
{
	bool any = false;
	size_t i;

	/* Datagram sockets are among the first endpoints. */
	for (i = 0; i < sink->endpoint_count; i++) {
		struct endpoint *endpoint = sink->endpoints[i];

		if (endpoint->kind == ENDPOINT_CONNECTION)
			break;
		if (!endpoint->polled)
			continue;
		if (sink_drain(sink, endpoint)) {
			endpoint->idle_polls = 0;
			/* The first with law= has come. */
			if (endpoint->prompt) {
				endpoint->polled = false;
				loop_modify(&sink->loop, endpoint->fd, EPOLLIN,
					    endpoint);
			}
		} else if (++endpoint->idle_polls >= UDP_IDLE_POLLS) {
			endpoint->polled = false;
			loop_modify(&sink->loop, endpoint->fd,
				    EPOLLIN | EPOLLONESHOT, endpoint);
		}
		any |= endpoint->polled;
	}
	sink->poll_ns = any ? sink->poll_ns + UDP_POLL_NS : TIME_NEVER;
}

/* Setting up. */

static int sink_open_socket(const union address *address, int type)
{
	char text[ADDRESS_TEXT_MAX];
	const int one = 1;
	int fd;

	fd = socket(address->any.sa_family,
		    type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		/* A kernel without IPv6 is no error. */
		if (errno == EAFNOSUPPORT)
			return -1;
		die(STATUS_FAILED, "cannot make a socket: %s",
		    strerror(errno));
	}
	if (address->any.sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (type == SOCK_STREAM)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, &address->any, address_length(address)))
		die(STATUS_FAILED, "cannot bind to %s %s: %s",
		    type == SOCK_STREAM ? "tcp" : "udp",
		    address_text(address, text), strerror(errno));
	return fd;
}

static bool sink_listen(struct sink *sink, const union address *address)
{
	const char *cc = sink->options->cc;
	uint16_t port = address_port(address);
	int fd = sink_open_socket(address, SOCK_STREAM);

	if (fd < 0)
		return false;
	if (cc && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cc, strlen(cc)))
		die(STATUS_USAGE, "--cc %s: %s", cc, errno == ENOENT ?
		    "unknown congestion control" : strerror(errno));
	set_lowat(fd, WINDOW_BYTES);
	set_window_clamp(fd, WINDOW_CLAMP_BYTES);
	set_lowat(fd, sink->lowat_bytes);
	if (listen(fd, BACKLOG))
		die(STATUS_FAILED, "cannot listen on port %u: %s", port,
		    strerror(errno));
	sink_add_endpoint(sink, ENDPOINT_LISTENER, fd, port, EPOLLIN);
	return true;
}

static void sink_open_datagram(struct sink *sink, const union address *address)
{
	const int bytes = UDP_BUFFER_BYTES;
	int fd = sink_open_socket(address, SOCK_DGRAM);

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	sink_add_endpoint(sink, ENDPOINT_DATAGRAM, fd, address_port(address),
			  EPOLLIN | EPOLLONESHOT);
}

static void sink_open_port(struct sink *sink, uint16_t port)
{
	union address addresses[2] = {
		{ .v4 = { .sin_family = AF_INET } },
		{ .v6 = { .sin6_family = AF_INET6 } },
	};
	size_t count = 2, opened = 0, i;

	if (sink->options->bind_given) {
		addresses[0] = sink->options->bind;
		count = 1;
	}
	for (i = 0; i < count; i++) {
		address_set_port(&addresses[i], port);
		if (sink_listen(sink, &addresses[i])) {
			sink_open_datagram(sink, &addresses[i]);
			opened++;
		}
	}
	if (!opened)
		die(STATUS_FAILED, "port %u: the kernel has no such protocol",
		    port);
}

static void sink_run(struct sink *sink, int64_t stop_ns)
{
	struct epoll_event events[EVENTS_PER_WAIT];

	while (!loop_stop_signal) {
		int64_t deadline_ns = stop_ns;
		int count, i;
		bool due;

		if (sink->poll_ns < deadline_ns)
			deadline_ns = sink->poll_ns;
		if (sink->read_ns < deadline_ns)
			deadline_ns = sink->read_ns;
		count = loop_wait(&sink->loop, events, EVENTS_PER_WAIT,
				  deadline_ns, &due);
		for (i = 0; i < count; i++) {
			struct endpoint *endpoint = events[i].data.ptr;

			switch (endpoint->kind) {
			case ENDPOINT_LISTENER:
				sink_accept(sink, endpoint);
				break;
			case ENDPOINT_CONNECTION:
				sink_receive(sink, endpoint,
					     events[i].events & ~EPOLLIN);
				break;
			case ENDPOINT_DATAGRAM:
				sink_start_datagrams(sink, endpoint);
				break;
			}
		}
		if (!due)
			continue;
		if (deadline_ns == stop_ns)
			return;
		if (deadline_ns == sink->read_ns)
			sink_read_all(sink);
		else
			sink_poll(sink);
	}
	sink->interrupted = loop_stop_signal;
}

/* Data in the sockets at the end counts as received. */
static void sink_finish(struct sink *sink)
{
	uint32_t meminfo[SK_MEMINFO_VARS];
	size_t i;

	for (i = 0; i < sink->endpoint_count; i++) {
		struct endpoint *endpoint = sink->endpoints[i];
		socklen_t length = sizeof(meminfo);

		if (endpoint->kind == ENDPOINT_CONNECTION &&
		    endpoint->fd >= 0) {
			sink_receive(sink, endpoint, true);
		} else if (endpoint->kind == ENDPOINT_DATAGRAM) {
			sink_drain(sink, endpoint);
			if (!getsockopt(endpoint->fd, SOL_SOCKET, SO_MEMINFO,
					meminfo, &length))
				sink->udp_drops += meminfo[SK_MEMINFO_DROPS];
		}
	}
}

/* The report. */

static int64_t since_epoch(const struct sink *sink, int64_t at_ns)
{
	return at_ns == TIME_UNSET ? TIME_UNSET : at_ns - sink->epoch_ns;
}

static void report_connection(struct json *json, const struct sink *sink,
			      const struct endpoint *connection)
{
	char text[ADDRESS_TEXT_MAX];

	json_begin(json, NULL, '{');
	json_string(json, "proto", "tcp");
	json_string(json, "peer", address_text(&connection->peer, text));
	json_integer(json, "port", connection->port);
	json_seconds(json, "accepted_s",
		     since_epoch(sink, connection->accepted_ns));
	json_seconds(json, "closed_s",
		     since_epoch(sink, connection->closed_ns));
	json_boolean(json, "reset", connection->reset);
	json_integer(json, "bytes", connection->bytes);
	json_end(json, '}');
}

static void report_receiver(struct json *json, const struct receiver *receiver)
{
	const struct receiver_counts *counts = receiver_counts(receiver);
	struct receiver_state state;

	receiver_read(receiver, &state);
	json_begin(json, "law", '{');
	json_integer(json, "pairs", counts->pairs);
	json_integer(json, "reports", counts->reports);
	json_integer(json, "lost", state.lost);
	json_integer(json, "truncated", counts->truncated);
	json_integer(json, "repeated", counts->repeated);
	json_integer(json, "late", counts->late);
	json_integer(json, "far", counts->far);
	json_integer(json, "restarts", counts->restarts);
	json_integer(json, "absurd", counts->absurd);
	json_integer(json, "unordered", counts->unordered);
	json_integer(json, "service_ns", state.service_ns);
	json_integer(json, "delay_us", state.delay_us);
	json_integer(json, "wait_us", state.wait_us);
	json_integer(json, "way_us", state.way_us);
	json_integer(json, "rate_kbps", state.rate_kbps);
	json_end(json, '}');
}

static void report_peer(struct json *json, const struct sink *sink,
			const struct peer *peer)
{
	char text[ADDRESS_TEXT_MAX];
	size_t i;

	json_begin(json, NULL, '{');
	json_string(json, "peer", address_text(&peer->address, text));
	json_integer(json, "port", peer->port);
	json_integer(json, "packets", peer->packets);
	json_integer(json, "bytes", peer->bytes);
	json_integer(json, "lost", peer->lost);
	json_integer(json, "reordered", peer->reordered);
	if (peer->receiver)
		report_receiver(json, peer->receiver);
	if (sink->options->sample_ns) {
		json_begin(json, "received_bytes", '[');
		for (i = 0; i < peer->periods; i++)
			json_integer(json, NULL, peer->received[i]);
		json_end(json, ']');
	}
	if (sink->options->sample_ns && peer->receiver) {
		json_begin(json, "next_sequence", '[');
		for (i = 0; i < peer->periods && i < peer->sequences_room; i++)
			json_integer(json, NULL, peer->sequences[i]);
		json_end(json, ']');
	}
	json_end(json, '}');
}

static bool report(struct json *json, const struct sink *sink)
{
	size_t i;

	json_begin(json, NULL, '{');
	json_integer(json, "schema", 1);
	json_string(json, "role", "sink");
	json_integer(json, "epoch_ns", sink->epoch_ns);
	if (sink->options->sample_ns)
		json_seconds(json, "sample_s", sink->options->sample_ns);
	json_boolean(json, "interrupted", sink->interrupted);
	json_begin(json, "connections", '[');
	for (i = 0; i < sink->endpoint_count; i++)
		if (sink->endpoints[i]->kind == ENDPOINT_CONNECTION)
			report_connection(json, sink, sink->endpoints[i]);
	json_end(json, ']');
	json_begin(json, "udp", '[');
	for (i = 0; i < sink->peer_count; i++)
		report_peer(json, sink, sink->peers[i]);
	json_end(json, ']');
	json_integer(json, "udp_socket_drops", sink->udp_drops);
	json_integer(json, "receivers_refused", sink->receivers_refused);
	json_end(json, '}');
	return json_commit(json);
}

int traffic_sink(const struct sink_options *options)
{
	struct sink sink = {
		.options = options,
		.poll_ns = TIME_NEVER,
		.read_ns = TIME_NEVER,
		.lowat_budget = tcp_memory_low_bytes() / 6,
		.lowat_bytes = options->lowat_bytes ? options->lowat_bytes :
						      LOWAT_MAX,
	};
	int64_t stop_ns = TIME_NEVER;
	struct json json;
	size_t i;

	loop_open(&sink.loop, 0);
	if (options->read_ns) {
		sink.lowat_bytes = LOWAT_NEVER;
		sink.read_ns = clock_ns() + options->read_ns;
	} else {
		sink_share_lowat(&sink);
	}
	for (i = 0; i < options->port_count; i++)
		sink_open_port(&sink, options->ports[i]);
	json_open(&json, options->json);
	sink.epoch_ns = options->epoch_ns == TIME_UNSET ? clock_ns() :
							  options->epoch_ns;
	if (options->stop_ns != TIME_NEVER)
		stop_ns = sink.epoch_ns + options->stop_ns;
	sink_run(&sink, stop_ns);
	sink_finish(&sink);
	return report(&json, &sink) ? 0 : STATUS_FAILED;
}
