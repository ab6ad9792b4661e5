/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the files of the sender. traffic_send.c describes the states of a flow. */
#ifndef TOLLWAY_TRAFFIC_SEND_H
#define TOLLWAY_TRAFFIC_SEND_H

#include <linux/tcp.h>

#include "json.h"
#include "traffic.h"
#include "traffic_random.h"
#include "traffic_wire.h"

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

/* A frame of an adaptive source. */
struct frame {
	int64_t t_ns;
	int64_t bytes;
	int64_t allowed_bps;
	uint64_t packets;	/* law=: sent when all of it is */
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

#define PAIRS_NO_END	UINT64_MAX

/* State of a flow with law=, and counters of reports that were not used. */
struct pairs {
	uint32_t sequence;		/* of the next packet */
	uint16_t pair;			/* number of the next pair */
	bool unsegmented;		/* the kernel refuses super-packets */
	bool idle;			/* nothing to send, or not now */
	uint64_t left;			/* packets to send */
	int64_t last_ns;		/* when the last pair was due */
	int64_t waits_ns;		/* time from which on a report is expected */
	uint32_t rate_kbps;		/* 0: not known */
	uint32_t srtt_us, least_us;
	uint32_t highest, received, lost;	/* of the last report */
	uint64_t reports;
	uint64_t cut;			/* of them with more than rate= */
	uint64_t truncated, foreign, absurd, repeated;
	uint64_t halved;
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
	struct mmpp_place place;
	struct pairs *pairs;		/* law= */
	/* bits offered in each sampling period from the epoch, times 10^9 */
	__uint128_t *offered;
	size_t offered_room;
};

enum timer_kind {
	TIMER_CONNECT,
	TIMER_START,
	TIMER_STOP,
	TIMER_TOGGLE,
	TIMER_PACKET,
	TIMER_FRAME,
	TIMER_TOLD,
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

/* traffic_send.c */
int64_t sender_now(struct sender *sender);
void timer_push(struct sender *sender, int64_t at_ns, enum timer_kind kind,
		struct flow *flow);
void flow_close(struct sender *sender, struct flow *flow);
void flow_finish(struct sender *sender, struct flow *flow);
void flow_note_error(struct sender *sender, struct flow *flow, const char *what,
		     int error);
void flow_open_socket(struct sender *sender, struct flow *flow);
void flow_read_local_port(struct flow *flow);
int64_t flow_told_bps(struct sender *sender, const struct flow *flow);
bool flow_is_produced(const struct flow *flow);
uint64_t chunk_bits_ns(const struct flow_config *config);
int64_t chunk_ns(const struct flow *flow, uint64_t number);
int64_t span_length(struct flow *flow, const struct span *span);

/* traffic_tcp.c */
int tcp_read_info(struct flow *flow, struct tcp_info *info);
void tcp_add_sample(struct sender *sender, struct flow *flow,
		    const struct tcp_info *info);
void tcp_abort(struct sender *sender, struct flow *flow);
void tcp_fail(struct sender *sender, struct flow *flow, const char *what,
	      int error);
void tcp_connect(struct sender *sender, struct flow *flow);
void tcp_begin_transfer(struct sender *sender, struct flow *flow);
void tcp_pump(struct sender *sender, struct flow *flow);
void tcp_on_event(struct sender *sender, struct flow *flow, uint32_t events);
void produced_turn_on(struct sender *sender, struct flow *flow, int64_t at_ns);
void produced_on_chunk(struct sender *sender, struct flow *flow);
void http_choose_page(struct flow *flow);
void http_begin_page(struct sender *sender, struct flow *flow);

/* traffic_udp.c */
void udp_on_packet(struct sender *sender, struct flow *flow, int64_t at_ns);
void udp_turn_on(struct sender *sender, struct flow *flow, int64_t at_ns);
void udp_start(struct sender *sender, struct flow *flow);

/* traffic_pairs.c */
void pairs_on_timer(struct sender *sender, struct flow *flow, int64_t at_ns);
void pairs_on_frame(struct sender *sender, struct flow *flow, int64_t at_ns);
void pairs_on_event(struct sender *sender, struct flow *flow);
void pairs_turn_on(struct sender *sender, struct flow *flow, int64_t at_ns);
void pairs_start(struct sender *sender, struct flow *flow);

/* traffic_report.c */
bool report_send(struct json *json, const struct sender *sender);

#endif
