// SPDX-License-Identifier: GPL-2.0
/*
 * The sender: flows and their timers; traffic_tcp.c, traffic_udp.c and
 * traffic_pairs.c send.
 *
 *	WAITING --start--> CONNECTING --> SENDING <--on/off--> SILENT
 *	   ^                                 | last byte written, FIN sent
 *	   | off=                            v
 *	   +----------------------------- CLOSING --> DONE
 *
 * With pages=, a transfer is a page. With connections=object, it is an object of a page,
 * and the next object begins at once.
 *
 * With connect=early a flow begins with CONNECTING, and is SILENT until start=.
 *
 * With rate= the application has a rate of its own: it writes size= bytes at a time, and
 * bytes for which the socket has no room wait here as its backlog.
 *
 * stop= and errors lead to DONE from any state. A connection that is still sending at its
 * stop is aborted with a reset, so that its send buffer does not load the link any more,
 * as if a simulator had stopped the flow.
 */
#include <linux/net_tstamp.h>
#include <unistd.h>

#include "traffic_send.h"

#define EVENTS_PER_WAIT		1024
#define UNSENT_MAX		(512 * 1024)
#define UNSENT_MIN		(16 * 1024)
/* Largest unsent data of an on/off flow, which it may send after its last on. */
#define UNSENT_ON_OFF		(16 * 1024)
/* A transfer of this size fits into the default buffer, which is not changed. */
#define SHORT_TRANSFER_BYTES	(64 * 1024)
#define TCP_BUFFER_BYTES	(32 * 1024 * 1024)
#define UDP_BUFFER_BYTES	(8 * 1024 * 1024)
#define FLOW_COMPLAINTS_MAX	10

int64_t sender_now(struct sender *sender)
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

void timer_push(struct sender *sender, int64_t at_ns, enum timer_kind kind,
		struct flow *flow)
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

/* Flows, for both protocols. */

void flow_close(struct sender *sender, struct flow *flow)
{
	if (flow->fd >= 0) {
		if (flow->polled)
			loop_close(&sender->loop, flow->fd);
		else
			close(flow->fd);
	}
	flow->fd = -1;
	flow->polled = false;
}

void flow_finish(struct sender *sender, struct flow *flow)
{
	flow_close(sender, flow);
	flow->state = FLOW_DONE;
	flow->on = false;
	flow->stopped_ns = sender_now(sender);
	sender->live--;
}

void flow_note_error(struct sender *sender, struct flow *flow, const char *what,
		     int error)
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
 * Make room for a full window in flight, in addition to the unsent bytes. If this is not
 * permitted, the kernel's own tuning of the buffer is used.
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

/*
 * The present rate of a flow with told=, bit/s. Sockets are created before the epoch is
 * known.
 */
int64_t flow_told_bps(struct sender *sender, const struct flow *flow)
{
	const struct flow_config *config = flow->config;
	size_t i = config->told_count - 1;
	int64_t now_ns = 0;

	if (sender->epoch_ns != TIME_UNSET)
		now_ns = sender_now(sender) - sender->epoch_ns;
	while (i && config->told[i].at_ns > now_ns)
		i--;
	return config->told[i].bps;
}

/* Set the pacing rate of the kernel, which counts data without headers, bytes/s. */
static void flow_tell(struct sender *sender, struct flow *flow, int fd)
{
	uint64_t rate = flow_told_bps(sender, flow) / 8;

	flow_set_option(sender, flow->config, fd, SOL_SOCKET,
			SO_MAX_PACING_RATE, &rate, sizeof(rate), "told=");
}

void flow_open_socket(struct sender *sender, struct flow *flow)
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
	if (config->told_count)
		flow_tell(sender, flow, fd);
	if (config->closed) {
		uint32_t flags = SOF_TIMESTAMPING_SOFTWARE |
				 SOF_TIMESTAMPING_OPT_TSONLY;

		flow_set_option(sender, config, fd, SOL_SOCKET, SO_TIMESTAMPING,
				&flags, sizeof(flags), "source=closed");
	}
	flow->fd = fd;
}

void flow_read_local_port(struct flow *flow)
{
	union address local;
	socklen_t length = sizeof(local);

	if (!getsockname(flow->fd, &local.any, &length))
		flow->local_port = address_port(&local);
}

bool flow_is_produced(const struct flow *flow)
{
	return !flow->config->udp && flow->config->rate_bps;
}

uint64_t chunk_bits_ns(const struct flow_config *config)
{
	return (config->size_bytes + config->overhead_bytes) * 8 *
	       NSEC_PER_SEC;
}

/* Time at which packet or chunk @number of this on is due, without added rounding. */
int64_t chunk_ns(const struct flow *flow, uint64_t number)
{
	const struct flow_config *config = flow->config;

	return flow->phase_ns + (int64_t)((__uint128_t)chunk_bits_ns(config) *
					  number / config->rate_bps);
}

int64_t span_length(struct flow *flow, const struct span *span)
{
	if (!span->exponential)
		return span->ns;
	return random_exponential_mean(&flow->random, span->ns, 1);
}

/* Functions of the timers. */

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
		 * An interrupted run is no error of the network; and of many
		 * users, one is always loading a page.
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

		if (flow->polled && !flow->config->udp &&
		    flow->state != FLOW_CONNECTING &&
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
		case TIMER_FRAME:
			pairs_on_frame(sender, flow, timer.at_ns);
			break;
		case TIMER_TOLD:
			if (flow->fd >= 0)
				flow_tell(sender, flow, flow->fd);
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

			if (flow->polled && flow->config->udp)
				pairs_on_event(sender, flow);
			else if (flow->polled)
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

/* After the sockets are created, so that an epoch of "now" is not delayed. */
static void sender_schedule(struct sender *sender)
{
	const struct send_options *options = sender->options;
	int64_t now_ns = clock_ns();
	size_t i, told;

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
		for (told = 1; told < flow->config->told_count; told++)
			timer_push(sender, sender->epoch_ns +
				   flow->config->told[told].at_ns, TIMER_TOLD,
				   flow);
	}
	if (options->sample_ns) {
		int64_t first_ns = sender->epoch_ns;

		if (now_ns > first_ns)
			first_ns = now_ns + options->sample_ns -
				   (now_ns - first_ns) % options->sample_ns;
		timer_push(sender, first_ns, TIMER_SAMPLE, NULL);
	}
}

int traffic_send(const struct send_options *options)
{
	struct sender sender = {
		.options = options,
		.epoch_ns = TIME_UNSET,
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
	if (!report_send(&json, &sender))
		return STATUS_FAILED;
	if (sender.interrupted)
		return STATUS_SIGNAL + sender.interrupted;
	return sender.failures ? STATUS_FAILED : 0;
}
