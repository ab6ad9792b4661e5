/* SPDX-License-Identifier: GPL-2.0 */
/* tollway-traffic: what its files share. */
#ifndef TOLLWAY_TRAFFIC_H
#define TOLLWAY_TRAFFIC_H

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "traffic_common.h"
#include "traffic_mmpp.h"
#include "traffic_pages.h"

#define CONGESTION_NAME_MAX	16	/* TCP_CA_NAME_MAX */

/* The kernel's own sockaddr_storage is four times as large as we need. */
union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* "10.0.0.1:5001" and "[fe80::1%eth0]:5001" */
#define ADDRESS_TEXT_MAX	(INET6_ADDRSTRLEN + IF_NAMESIZE + 10)

bool address_parse(const char *text, union address *address);
void address_set_port(union address *address, uint16_t port);
uint16_t address_port(const union address *address);
socklen_t address_length(const union address *address);
const char *address_text(const union address *address, char *text);

/* traffic_loop.c: one epoll, one timer, and signals that end the run. */
struct loop {
	int epoll_fd;
	int timer_fd;
	int64_t armed_ns;	/* what the timer is set to, or TIME_NEVER */
	int64_t last_due_ns;	/* the last deadline that passed */
	unsigned int sockets;	/* how many may report something */
	int64_t rest_ns;	/* between two looks at them; 0: none */
	int64_t looked_ns;
};

extern volatile sig_atomic_t loop_stop_signal;

void loop_open(struct loop *loop, int64_t rest_ns);
void loop_add(struct loop *loop, int fd, uint32_t events, void *owner);
void loop_modify(struct loop *loop, int fd, uint32_t events, void *owner);
void loop_close(struct loop *loop, int fd);
int loop_wait(struct loop *loop, struct epoll_event *events, int room,
	      int64_t deadline_ns, bool *due);

/* traffic_flows.c: the flow file. */
struct span {			/* a time, fixed or exponentially distributed */
	int64_t ns;
	bool exponential;
};

struct told {			/* a rate that a flow is told, from a time on */
	int64_t bps;
	int64_t at_ns;
};

struct flow_config {
	unsigned int line;
	uint32_t id;
	union address dst;
	char dst_text[ADDRESS_TEXT_MAX];	/* as written in the file */
	bool udp;
	bool paired;				/* law= */
	uint16_t setpoint;			/* packets */
	uint16_t report_quarters;		/* of a round trip; 0: default */
	int64_t frame_bytes;			/* 0: always something to send */
	int64_t every_ns;			/* of frames */
	char cc[CONGESTION_NAME_MAX];		/* empty: the system's */
	int prio;				/* -1: not set */
	int64_t mark;				/* -1: not set */
	int tos;				/* of UDP; 0: not set */
	int64_t start_ns;
	int64_t stop_ns;			/* TIME_NEVER: the duration */
	int64_t bytes;				/* of each transfer; 0: no end */
	struct span on;				/* ns 0: always on */
	struct span off;
	int64_t repeat;				/* 0: until stop */
	bool http;				/* pages= */
	bool per_object;			/* connections= */
	struct pages pages;
	int64_t rate_bps;
	bool poisson;
	bool modulated;				/* arrival=mmpp */
	struct mmpp mmpp;			/* its high_bps is rate_bps */
	bool early;				/* connect= */
	bool closed;				/* source= */
	int64_t floor_bps;			/* 0: not adaptive */
	struct told *told;			/* in the order of their times */
	size_t told_count;			/* 0: nobody tells it a rate */
	int64_t size_bytes;
	int64_t overhead_bytes;
	int64_t unsent_bytes;			/* 0: chosen by the sender */
	uint64_t seed;
};

struct flow_file {
	const char *name;
	struct flow_config *flows;
	size_t count;
};

void flow_file_read(struct flow_file *file, const char *path);

/* traffic_send.c, traffic_sink.c */
struct send_options {
	const char *flows;
	const char *json;
	int64_t epoch_ns;
	int64_t sample_ns;
	int64_t duration_ns;
	int64_t unsent_bytes;
	int64_t rest_ns;
	bool cc_info;
};

struct sink_options {
	union address bind;
	bool bind_given;
	uint16_t *ports;
	size_t port_count;
	const char *json;
	const char *cc;
	int64_t epoch_ns;
	int64_t stop_ns;
	int64_t lowat_bytes;
	int64_t read_ns;		/* 0: when there is enough */
	int64_t sample_ns;		/* of UDP; 0: never */
};

int traffic_send(const struct send_options *options);
int traffic_sink(const struct sink_options *options);

int64_t tcp_memory_low_bytes(void);

/* traffic_network.c: what the kernel counts in our network namespace. */
enum network_counter {
	NETWORK_TIMEOUTS,
	NETWORK_FAST_RETRANSMITS,
	NETWORK_SLOW_START_RETRANSMITS,
	NETWORK_LOST_RETRANSMITS,
	NETWORK_RETRANSMITS,
	NETWORK_COUNTERS
};

struct network {
	bool known;
	int64_t counters[NETWORK_COUNTERS];
};

extern const char * const network_names[NETWORK_COUNTERS];

void network_read(struct network *network);

#endif
