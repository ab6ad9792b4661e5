// SPDX-License-Identifier: GPL-2.0
/*
 * tollway-qsample - sample the content of queues at exact times
 *
 * A sample takes three system calls for any number of devices: read() of a periodic
 * absolute timer, one send() with a request for each device, and one recvmmsg() for the
 * answers. The clock is not read: sample times are those of the timer, and its count
 * tells how many ticks were missed. With --classes a sample takes two more calls for each
 * device: a dump of the classes of its qdisc.
 */
#include <getopt.h>
#include <linux/gen_stats.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "json.h"
#include "pkt_sbrm.h"

#define DEVICES_MAX	64
#define KIND_MAX	16		/* IFNAMSIZ, which the kernel uses */
#define ANSWER_BYTES	8192		/* of one qdisc with its statistics */
#define DUMP_BYTES	65536
#define REPLY_TIMEOUT_S	5
#define CLASSES_MAX	1024		/* of a device, that ever held a packet */

static const char usage[] =
"Usage: tollway-qsample --dev IFNAME [--dev ...] [--kind KIND] [--handle H:]\n"
"                       [--classes] --interval-us N --stop S [--start S]\n"
"                       [--epoch-ns N] [--json FILE|-]\n";

struct statistics {
	uint64_t packets, bytes;
	uint32_t backlog_pkts, backlog_bytes, drops, overlimits;
	uint64_t price_q32;	/* of sbrm, 0 for all others */
};

struct sample {
	uint64_t tick;
	struct statistics statistics;
};

/* A class of a qdisc from its first sample on; a missing sample is 0. */
struct class {
	uint32_t handle;
	uint32_t *backlog_pkts;
	uint32_t *drops;
};

struct device {
	const char *name;
	int ifindex;
	char kind[KIND_MAX];
	uint32_t handle;
	uint32_t parent;
	unsigned int matches;	/* qdiscs that match the options */
	bool answered;
	struct sample *samples;
	size_t count;
	struct class *classes;
	unsigned int class_count;
};

struct request {
	struct nlmsghdr header;
	struct tcmsg message;
};

struct sampler {
	struct device devices[DEVICES_MAX];
	unsigned int device_count;
	const char *kind;
	bool handle_given;
	bool with_classes;
	uint32_t handle;
	int64_t interval_ns, start_ns, stop_ns, epoch_ns;
	int netlink_fd;
	uint64_t ticks;		/* from start to stop, both included */
	uint64_t missed;
	char *error;
};

static volatile sig_atomic_t stop_signal;
static int timer_fd = -1;

/* The timer fires at once, so that a signal before the read() is not lost. */
static void on_stop_signal(int number)
{
	const struct itimerspec at_once = { .it_value = { .tv_nsec = 1 } };
	int saved = errno;

	stop_signal = number;
	timerfd_settime(timer_fd, 0, &at_once, NULL);
	errno = saved;
}

/* Netlink. */

static int netlink_open(void)
{
	const struct timeval timeout = { .tv_sec = REPLY_TIMEOUT_S };
	const int room = 1024 * 1024;
	int fd;

	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0)
		die(STATUS_FAILED, "cannot open netlink: %s", strerror(errno));
	/* The kernel answers during send(); the timeout is for errors only. */
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	return fd;
}

static const struct rtattr *find_attribute(const struct rtattr *attribute,
					   int length, unsigned short type)
{
	for (; RTA_OK(attribute, length);
	     attribute = RTA_NEXT(attribute, length))
		if ((attribute->rta_type & NLA_TYPE_MASK) == type)
			return attribute;
	return NULL;
}

/* Attributes of other kernels may be longer or shorter: copy the common part. */
static bool copy_attribute(const struct rtattr *nest, unsigned short type,
			   void *value, size_t size)
{
	const struct rtattr *attribute;

	attribute = find_attribute(RTA_DATA(nest), RTA_PAYLOAD(nest), type);
	if (!attribute)
		return false;
	if (size > RTA_PAYLOAD(attribute))
		size = RTA_PAYLOAD(attribute);
	memcpy(value, RTA_DATA(attribute), size);
	return true;
}

static bool is_sbrm(const struct device *device)
{
	return strcmp(device->kind, "sbrm") == 0;
}

static bool parse_statistics(const struct nlmsghdr *header,
			     const struct device *device,
			     struct statistics *statistics)
{
	const struct tcmsg *message = NLMSG_DATA(header);
	struct gnet_stats_basic basic = { 0 };
	struct gnet_stats_queue queue = { 0 };
	struct tc_sbrm_xstats sbrm = { 0 };
	const struct rtattr *nest;
	uint64_t packets;

	nest = find_attribute(TCA_RTA(message), TCA_PAYLOAD(header),
			      TCA_STATS2);
	if (!nest || !copy_attribute(nest, TCA_STATS_BASIC, &basic,
				     sizeof(basic)) ||
	    !copy_attribute(nest, TCA_STATS_QUEUE, &queue, sizeof(queue)))
		return false;
	/* This attribute exists only if the number needs more than 32 bits. */
	if (!copy_attribute(nest, TCA_STATS_PKT64, &packets, sizeof(packets)))
		packets = basic.packets;
	if (is_sbrm(device) &&
	    !copy_attribute(nest, TCA_STATS_APP, &sbrm, sizeof(sbrm)))
		return false;
	*statistics = (struct statistics){
		.packets = packets,
		.bytes = basic.bytes,
		.backlog_pkts = queue.qlen,
		.backlog_bytes = queue.backlog,
		.drops = queue.drops,
		.overlimits = queue.overlimits,
		.price_q32 = sbrm.price,
	};
	return true;
}

/* Choosing the qdisc of each device, from one dump. */

static bool qdisc_fits(const struct sampler *sampler,
		       const struct tcmsg *message, const char *kind)
{
	if (sampler->kind && strcmp(kind, sampler->kind))
		return false;
	if (sampler->handle_given)
		return message->tcm_handle == sampler->handle;
	/* Without an option: the root qdisc. */
	return sampler->kind || message->tcm_parent == TC_H_ROOT;
}

static void consider_qdisc(struct sampler *sampler,
			   const struct nlmsghdr *header)
{
	const struct tcmsg *message = NLMSG_DATA(header);
	const struct rtattr *attribute;
	char kind[KIND_MAX];
	unsigned int i;

	attribute = find_attribute(TCA_RTA(message), TCA_PAYLOAD(header),
				   TCA_KIND);
	if (!attribute)
		return;
	snprintf(kind, sizeof(kind), "%.*s", (int)RTA_PAYLOAD(attribute),
		 (const char *)RTA_DATA(attribute));
	if (!qdisc_fits(sampler, message, kind))
		return;
	for (i = 0; i < sampler->device_count; i++) {
		struct device *device = &sampler->devices[i];

		if (device->ifindex != message->tcm_ifindex)
			continue;
		device->matches++;
		device->handle = message->tcm_handle;
		device->parent = message->tcm_parent;
		strcpy(device->kind, kind);
	}
}

static void find_qdiscs(struct sampler *sampler)
{
	struct request request = {
		.header = {
			.nlmsg_len = sizeof(request),
			.nlmsg_type = RTM_GETQDISC,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		},
		.message = { .tcm_family = AF_UNSPEC },
	};
	static char answer[DUMP_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));
	bool done = false;

	if (send(sampler->netlink_fd, &request, sizeof(request), 0) < 0)
		die(STATUS_FAILED, "cannot list qdiscs: %s", strerror(errno));
	while (!done) {
		struct nlmsghdr *header = (struct nlmsghdr *)answer;
		ssize_t received = recv(sampler->netlink_fd, answer,
					sizeof(answer), 0);
		int length = received;

		if (received < 0)
			die(STATUS_FAILED, "cannot list qdiscs: %s",
			    strerror(errno));
		for (; NLMSG_OK(header, length);
		     header = NLMSG_NEXT(header, length)) {
			if (header->nlmsg_type == NLMSG_DONE)
				done = true;
			else if (header->nlmsg_type == NLMSG_ERROR)
				die(STATUS_FAILED, "cannot list qdiscs");
			else if (header->nlmsg_type == RTM_NEWQDISC)
				consider_qdisc(sampler, header);
		}
	}
}

static void describe_choice(const struct sampler *sampler, char *text,
			    size_t size)
{
	char handle[32] = "";

	if (sampler->handle_given)
		snprintf(handle, sizeof(handle), " %x:",
			 TC_H_MAJ(sampler->handle) >> 16);
	snprintf(text, size, "%s%s qdisc%s",
		 sampler->kind || sampler->handle_given ? "" : "root ",
		 sampler->kind ? sampler->kind : "", handle);
	if (*text == ' ')
		memmove(text, text + 1, strlen(text));
}

static void check_choice(const struct sampler *sampler)
{
	char choice[64];
	unsigned int i;

	describe_choice(sampler, choice, sizeof(choice));
	for (i = 0; i < sampler->device_count; i++) {
		const struct device *device = &sampler->devices[i];

		if (!device->matches)
			die(STATUS_USAGE, "%s: no %s", device->name, choice);
		if (device->matches > 1)
			die(STATUS_USAGE,
			    "%s: more than one %s, say which with --handle",
			    device->name, choice);
	}
}

/* Sampling. */

static void fill_request(const struct device *device, unsigned int index,
			 struct request *request)
{
	*request = (struct request){
		.header = {
			.nlmsg_len = sizeof(*request),
			.nlmsg_type = RTM_GETQDISC,
			/*
			 * Without ECHO, older kernels send the answer to all
			 * listeners, but not to the requester.
			 */
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_ECHO,
			.nlmsg_seq = index + 1,
		},
		.message = {
			.tcm_family = AF_UNSPEC,
			.tcm_ifindex = device->ifindex,
			.tcm_handle = device->handle,
			/* The kernel's own default qdiscs have no handle. */
			.tcm_parent = device->handle ? 0 : device->parent,
		},
	};
}

static void fail(struct sampler *sampler, const struct device *device,
		 const char *what, int error)
{
	if (sampler->error)
		return;
	if (asprintf(&sampler->error, "%s%s%s: %s",
		     device ? device->name : "", device ? ": " : "", what,
		     strerror(error)) < 0)
		die(STATUS_FAILED, "out of memory");
	complain("%s", sampler->error);
}

static void take_answer(struct sampler *sampler,
			const struct nlmsghdr *header, unsigned int length,
			uint64_t tick)
{
	struct device *device;

	if (!NLMSG_OK(header, length) || !header->nlmsg_seq ||
	    header->nlmsg_seq > sampler->device_count)
		return;
	device = &sampler->devices[header->nlmsg_seq - 1];
	device->answered = true;
	if (header->nlmsg_type == NLMSG_ERROR) {
		const struct nlmsgerr *error = NLMSG_DATA(header);

		fail(sampler, device, "the qdisc cannot be read",
		     -error->error);
		return;
	}
	if (header->nlmsg_type != RTM_NEWQDISC)
		return;
	device->samples[device->count].tick = tick;
	if (parse_statistics(header, device,
			     &device->samples[device->count].statistics))
		device->count++;
	else
		fail(sampler, device, "the qdisc has no statistics", ENODATA);
}

/* Classes. */

static struct class *find_class(const struct sampler *sampler,
				struct device *device, uint32_t handle)
{
	struct class *class;
	unsigned int i;

	for (i = 0; i < device->class_count; i++)
		if (device->classes[i].handle == handle)
			return &device->classes[i];
	if (device->class_count == CLASSES_MAX)
		return NULL;
	class = &device->classes[device->class_count++];
	class->handle = handle;
	class->backlog_pkts = checked_alloc(calloc(sampler->ticks,
						   sizeof(uint32_t)));
	class->drops = checked_alloc(calloc(sampler->ticks, sizeof(uint32_t)));
	return class;
}

/* A class that has never held a packet is not recorded. */
static void take_class(const struct sampler *sampler, struct device *device,
		       const struct nlmsghdr *header)
{
	const struct tcmsg *message = NLMSG_DATA(header);
	struct gnet_stats_queue queue = { 0 };
	const struct rtattr *nest;
	struct class *class;

	nest = find_attribute(TCA_RTA(message), TCA_PAYLOAD(header),
			      TCA_STATS2);
	if (!nest || !copy_attribute(nest, TCA_STATS_QUEUE, &queue,
				     sizeof(queue)) ||
	    (!queue.qlen && !queue.drops))
		return;
	class = find_class(sampler, device, message->tcm_handle);
	if (!class)
		return;
	class->backlog_pkts[device->count - 1] = queue.qlen;
	class->drops[device->count - 1] = queue.drops;
}

static void sample_classes(struct sampler *sampler, struct device *device)
{
	struct request request = {
		.header = {
			.nlmsg_len = sizeof(request),
			.nlmsg_type = RTM_GETTCLASS,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		},
		.message = {
			.tcm_family = AF_UNSPEC,
			.tcm_ifindex = device->ifindex,
			.tcm_parent = device->handle,
		},
	};
	static char answer[DUMP_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));
	bool done = false;

	if (send(sampler->netlink_fd, &request, sizeof(request), 0) < 0) {
		fail(sampler, device, "cannot ask for the classes", errno);
		return;
	}
	while (!done) {
		struct nlmsghdr *header = (struct nlmsghdr *)answer;
		ssize_t received = recv(sampler->netlink_fd, answer,
					sizeof(answer), 0);
		int length = received;

		if (received < 0 && errno == EINTR)
			continue;
		if (received <= 0) {
			fail(sampler, device, "no answer about the classes",
			     errno);
			return;
		}
		for (; NLMSG_OK(header, length);
		     header = NLMSG_NEXT(header, length)) {
			if (header->nlmsg_type == NLMSG_DONE ||
			    header->nlmsg_type == NLMSG_ERROR)
				done = true;
			else if (header->nlmsg_type == RTM_NEWTCLASS)
				take_class(sampler, device, header);
		}
	}
}

static void sample_once(struct sampler *sampler,
			const struct request *requests, uint64_t tick)
{
	static char answers[DEVICES_MAX][ANSWER_BYTES]
		__attribute__((aligned(NLMSG_ALIGNTO)));
	static struct iovec vectors[DEVICES_MAX];
	static struct mmsghdr messages[DEVICES_MAX];
	unsigned int wanted = sampler->device_count, i;

	for (i = 0; i < wanted; i++) {
		sampler->devices[i].answered = false;
		vectors[i].iov_base = answers[i];
		vectors[i].iov_len = sizeof(answers[i]);
		messages[i].msg_hdr = (struct msghdr){
			.msg_iov = &vectors[i],
			.msg_iovlen = 1,
		};
	}
	if (send(sampler->netlink_fd, requests, wanted * sizeof(*requests),
		 0) < 0) {
		fail(sampler, NULL, "cannot ask for the qdiscs", errno);
		return;
	}
	while (wanted) {
		int received = recvmmsg(sampler->netlink_fd, messages, wanted,
					0, NULL);

		if (received < 0 && errno == EINTR)
			continue;
		if (received <= 0) {
			fail(sampler, NULL, "no answer about the qdiscs",
			     errno);
			return;
		}
		for (i = 0; i < (unsigned int)received; i++)
			take_answer(sampler, (struct nlmsghdr *)answers[i],
				    messages[i].msg_len, tick);
		wanted -= received;
	}
	for (i = 0; i < sampler->device_count; i++)
		if (!sampler->devices[i].answered)
			fail(sampler, &sampler->devices[i], "no answer", EPROTO);
	for (i = 0; i < sampler->device_count; i++)
		if (sampler->with_classes && sampler->devices[i].count &&
		    !sampler->error)
			sample_classes(sampler, &sampler->devices[i]);
}

static void arm_timer(const struct sampler *sampler)
{
	int64_t first_ns = sampler->epoch_ns + sampler->start_ns;
	struct itimerspec setting = {
		.it_value = ns_to_timespec(first_ns > 0 ? first_ns : 1),
		.it_interval = ns_to_timespec(sampler->interval_ns),
	};
	struct sigaction action = { .sa_handler = on_stop_signal };

	timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (timer_fd < 0 ||
	    timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &setting, NULL))
		die(STATUS_FAILED, "cannot set the timer: %s",
		    strerror(errno));
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static void sampler_run(struct sampler *sampler)
{
	struct request requests[DEVICES_MAX];
	uint64_t elapsed = 0, fired;
	unsigned int i;

	for (i = 0; i < sampler->device_count; i++)
		fill_request(&sampler->devices[i], i, &requests[i]);
	while (!sampler->error && elapsed < sampler->ticks) {
		ssize_t got = read(timer_fd, &fired, sizeof(fired));

		if (stop_signal)
			return;
		if (got != sizeof(fired))
			continue;
		/* Late by one tick or more: this sample belongs to the last tick. */
		elapsed += fired;
		sampler->missed += fired - 1;
		if (elapsed <= sampler->ticks)
			sample_once(sampler, requests, elapsed - 1);
		else
			sampler->missed -= elapsed - sampler->ticks - 1;
	}
}

/* The report. */

#define REPORT_COLUMN(to, from, name) do {				\
	const struct device *column_of = (from);			\
									\
	JSON_COLUMN(to, #name, column_of->samples, column_of->count,	\
		    statistics.name);					\
} while (0)

static void report_numbers(struct json *json, const char *name,
			   const uint32_t *numbers, size_t count)
{
	size_t row;

	json_begin(json, name, '[');
	for (row = 0; row < count; row++)
		json_integer(json, NULL, numbers[row]);
	json_end(json, ']');
}

static void report_classes(struct json *json, const struct device *device)
{
	char handle[16];
	unsigned int i;

	json_begin(json, "classes", '{');
	for (i = 0; i < device->class_count; i++) {
		const struct class *class = &device->classes[i];

		snprintf(handle, sizeof(handle), "%x:%x",
			 TC_H_MAJ(class->handle) >> 16,
			 TC_H_MIN(class->handle));
		json_begin(json, handle, '{');
		report_numbers(json, "backlog_pkts", class->backlog_pkts,
			       device->count);
		report_numbers(json, "drops", class->drops, device->count);
		json_end(json, '}');
	}
	json_end(json, '}');
}

static void report_device(struct json *json, const struct sampler *sampler,
			  const struct device *device)
{
	char handle[16];
	size_t i;

	snprintf(handle, sizeof(handle), "%x:",
		 TC_H_MAJ(device->handle) >> 16);
	json_begin(json, device->name, '{');
	json_string(json, "kind", device->kind);
	json_string(json, "handle", handle);
	json_begin(json, "t_s", '[');
	for (i = 0; i < device->count; i++)
		json_seconds(json, NULL, sampler->start_ns +
			     (int64_t)device->samples[i].tick *
			     sampler->interval_ns);
	json_end(json, ']');
	REPORT_COLUMN(json, device, backlog_pkts);
	REPORT_COLUMN(json, device, backlog_bytes);
	REPORT_COLUMN(json, device, drops);
	REPORT_COLUMN(json, device, packets);
	REPORT_COLUMN(json, device, bytes);
	REPORT_COLUMN(json, device, overlimits);
	if (is_sbrm(device))
		REPORT_COLUMN(json, device, price_q32);
	if (sampler->with_classes)
		report_classes(json, device);
	json_end(json, '}');
}

static bool report(struct json *json, const struct sampler *sampler)
{
	unsigned int i;

	json_begin(json, NULL, '{');
	json_integer(json, "schema", 1);
	json_integer(json, "epoch_ns", sampler->epoch_ns);
	json_key(json, "interval_us");
	fprintf(json->stream, "%" PRId64,
		sampler->interval_ns / (int64_t)NSEC_PER_USEC);
	if (sampler->interval_ns % NSEC_PER_USEC)
		fprintf(json->stream, ".%03" PRId64,
			sampler->interval_ns % (int64_t)NSEC_PER_USEC);
	json_boolean(json, "interrupted", stop_signal);
	json_integer(json, "missed", sampler->missed);
	json_string(json, "error", sampler->error);
	json_begin(json, "devices", '{');
	for (i = 0; i < sampler->device_count; i++)
		report_device(json, sampler, &sampler->devices[i]);
	json_end(json, '}');
	json_end(json, '}');
	return json_commit(json);
}

/* Arguments. */

static void add_device(struct sampler *sampler, const char *name)
{
	struct device *device = &sampler->devices[sampler->device_count];
	unsigned int i;

	for (i = 0; i < sampler->device_count; i++)
		if (!strcmp(sampler->devices[i].name, name))
			die(STATUS_USAGE, "--dev %s is given twice", name);
	if (sampler->device_count == DEVICES_MAX)
		die(STATUS_USAGE, "more than %d devices", DEVICES_MAX);
	device->name = name;
	device->ifindex = if_nametoindex(name);
	if (!device->ifindex)
		die(STATUS_USAGE, "--dev: no device '%s'", name);
	sampler->device_count++;
}

/* "10:" or "10", in hexadecimal as tc writes them. */
static uint32_t parse_handle(const char *text)
{
	unsigned long major;
	char *end;

	errno = 0;
	major = strtoul(text, &end, 16);
	if (*end == ':')
		end++;
	if (errno || end == text || *text == ':' || *text == '-' ||
	    *text == '+' || *end || !major || major > 0xffff)
		die(STATUS_USAGE, "--handle: '%s' is not a handle such as 10:",
		    text);
	return major << 16;
}

static void parse_arguments(struct sampler *sampler, int argc, char **argv,
			    const char **json_path)
{
	static const struct option long_options[] = {
		{ "dev", required_argument, NULL, 'd' },
		{ "kind", required_argument, NULL, 'k' },
		{ "handle", required_argument, NULL, 'H' },
		{ "classes", no_argument, NULL, 'c' },
		{ "interval-us", required_argument, NULL, 'i' },
		{ "epoch-ns", required_argument, NULL, 'e' },
		{ "start", required_argument, NULL, 's' },
		{ "stop", required_argument, NULL, 'S' },
		{ "json", required_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 }
	};
	int option;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) >= 0) {
		switch (option) {
		case 'd':
			add_device(sampler, optarg);
			break;
		case 'k':
			if (!*optarg || strlen(optarg) >= KIND_MAX)
				die(STATUS_USAGE,
				    "--kind: '%s' is not a kind of qdisc",
				    optarg);
			sampler->kind = optarg;
			break;
		case 'H':
			sampler->handle = parse_handle(optarg);
			sampler->handle_given = true;
			break;
		case 'c':
			sampler->with_classes = true;
			break;
		case 'i':
			if (!parse_decimal(optarg, NSEC_PER_USEC, false,
					   &sampler->interval_ns) ||
			    !sampler->interval_ns)
				die(STATUS_USAGE,
				    "--interval-us: '%s' is not a number of microseconds above 0",
				    optarg);
			break;
		case 'e':
			sampler->epoch_ns = option_integer("--epoch-ns", optarg,
							   0, TIME_NEVER);
			break;
		case 's':
			sampler->start_ns = option_seconds("--start", optarg);
			break;
		case 'S':
			sampler->stop_ns = option_seconds("--stop", optarg);
			break;
		case 'j':
			*json_path = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		default:
			exit(STATUS_USAGE);
		}
	}
	if (optind < argc)
		die(STATUS_USAGE, "unexpected argument '%s'", argv[optind]);
	if (!sampler->device_count)
		die(STATUS_USAGE, "--dev is missing");
	if (!sampler->interval_ns)
		die(STATUS_USAGE, "--interval-us is missing");
	if (sampler->stop_ns == TIME_UNSET)
		die(STATUS_USAGE, "--stop is missing");
	if (sampler->stop_ns < sampler->start_ns)
		die(STATUS_USAGE, "--stop is before --start");
}

int main(int argc, char **argv)
{
	static struct sampler sampler = {
		.stop_ns = TIME_UNSET,
		.epoch_ns = TIME_UNSET,
	};
	const char *json_path = "-";
	struct json json;
	unsigned int i;

	if (argc < 2) {
		fputs(usage, stderr);
		return STATUS_USAGE;
	}
	parse_arguments(&sampler, argc, argv, &json_path);
	sampler.netlink_fd = netlink_open();
	find_qdiscs(&sampler);
	check_choice(&sampler);
	sampler.ticks = (sampler.stop_ns - sampler.start_ns) /
			sampler.interval_ns + 1;
	for (i = 0; i < sampler.device_count; i++) {
		struct device *device = &sampler.devices[i];

		device->samples = checked_alloc(calloc(sampler.ticks,
						       sizeof(struct sample)));
		if (sampler.with_classes)
			device->classes =
				checked_alloc(calloc(CLASSES_MAX,
						     sizeof(struct class)));
	}
	json_open(&json, json_path);
	if (sampler.epoch_ns == TIME_UNSET)
		sampler.epoch_ns = clock_ns();
	arm_timer(&sampler);
	sampler_run(&sampler);
	if (!report(&json, &sampler))
		return STATUS_FAILED;
	if (stop_signal)
		return STATUS_SIGNAL + stop_signal;
	return sampler.error ? STATUS_FAILED : 0;
}
