// SPDX-License-Identifier: GPL-2.0
/*
 * tollway-traffic - many TCP and UDP flows from one process
 *
 * For a kernel in virtual time (User Mode Linux), in which a system call takes 7 to
 * 12 us of real time, and a packet a few us. So the program makes as few calls per byte
 * as possible, and its results depend on its arguments only. See tollway-traffic(1).
 *
 *	traffic.c		arguments, addresses
 *	traffic_flows.c		the flow file
 *	traffic_loop.c		epoll, timer, signals
 *	traffic_pages.h		the HTTP model
 *	traffic_network.c	counters of the network namespace
 *	traffic_send.c		the sender
 *	traffic_pairs.c		its flows that the receiver controls
 *	traffic_sink.c		the receiver
 *	traffic_receiver.c	packet pair at the receiver
 */
#include <getopt.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include "traffic.h"

#define WANTED_FILES	1048576
#define SAMPLE_DEFAULT	(100 * NSEC_PER_MSEC)

static const char usage[] =
"Usage: tollway-traffic sink --port P[,P..] [--bind ADDR] [--json FILE|-]\n"
"                            [--cc NAME] [--stop-at S] [--epoch-ns N]\n"
"                            [--lowat BYTES | --read-ms N] [--sample-ms N]\n"
"       tollway-traffic send --flows FILE|- [--epoch-ns N] [--sample-ms N]\n"
"                            [--duration S] [--json FILE|-]\n"
"                            [--unsent BYTES] [--rest-ms N] [--cc-info]\n";

bool address_parse(const char *text, union address *address)
{
	char host[ADDRESS_TEXT_MAX], *scope;

	memset(address, 0, sizeof(*address));
	address->any.sa_family = AF_INET;
	if (inet_pton(AF_INET, text, &address->v4.sin_addr) == 1)
		return true;
	if (strlen(text) >= sizeof(host))
		return false;
	strcpy(host, text);
	memset(address, 0, sizeof(*address));
	address->any.sa_family = AF_INET6;
	scope = strchr(host, '%');
	if (scope) {
		*scope++ = '\0';
		address->v6.sin6_scope_id = if_nametoindex(scope);
		if (!address->v6.sin6_scope_id)
			return false;
	}
	return inet_pton(AF_INET6, host, &address->v6.sin6_addr) == 1;
}

/* sin_port and sin6_port are at the same offset. */
void address_set_port(union address *address, uint16_t port)
{
	address->v4.sin_port = htons(port);
}

uint16_t address_port(const union address *address)
{
	return ntohs(address->v4.sin_port);
}

socklen_t address_length(const union address *address)
{
	return address->any.sa_family == AF_INET6 ? sizeof(address->v6) :
						    sizeof(address->v4);
}

/* @text has room for ADDRESS_TEXT_MAX characters. */
const char *address_text(const union address *address, char *text)
{
	char host[INET6_ADDRSTRLEN];

	if (address->any.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &address->v6.sin6_addr, host,
			  sizeof(host));
		snprintf(text, ADDRESS_TEXT_MAX, "[%s]:%u", host,
			 address_port(address));
	} else {
		inet_ntop(AF_INET, &address->v4.sin_addr, host, sizeof(host));
		snprintf(text, ADDRESS_TEXT_MAX, "%s:%u", host,
			 address_port(address));
	}
	return text;
}

/*
 * Bytes of buffers below which TCP has no memory pressure: tcp_mem[0]. This sysctl
 * cannot be read in a network namespace, so this is the kernel's formula for its
 * default, 3/64 of the memory.
 */
int64_t tcp_memory_low_bytes(void)
{
	struct sysinfo info;

	if (sysinfo(&info))
		die(STATUS_FAILED, "sysinfo: %s", strerror(errno));
	return (int64_t)info.totalram * info.mem_unit / 64 * 3;
}

static void raise_file_limit(void)
{
	struct rlimit limit = { WANTED_FILES, WANTED_FILES };

	if (!setrlimit(RLIMIT_NOFILE, &limit))
		return;
	/* Without privileges, the soft limit can be raised to the hard limit. */
	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static void parse_ports(struct sink_options *options, char *text)
{
	char *word;

	while ((word = strtok_r(text, ",", &text))) {
		options->ports = checked_reallocarray(options->ports,
						      options->port_count + 1,
						      sizeof(*options->ports));
		options->ports[options->port_count++] =
			option_integer("--port", word, 1, UINT16_MAX);
	}
}

static int64_t option_quantity(const char *name, const char *text)
{
	int64_t value;

	if (!parse_quantity(text, &value) || value < 1 || value > INT32_MAX / 4)
		die(STATUS_USAGE, "%s: '%s' is not a number of bytes", name,
		    text);
	return value;
}

static void help(void)
{
	fputs(usage, stdout);
	exit(0);
}

/* getopt has printed a message already. */
static void refuse_rest(int argc, char **argv)
{
	if (optind < argc)
		die(STATUS_USAGE, "unexpected argument '%s'", argv[optind]);
}

static int64_t option_milliseconds(const char *name, const char *text)
{
	int64_t value;

	if (!parse_decimal(text, NSEC_PER_MSEC, false, &value))
		die(STATUS_USAGE, "%s: '%s' is not a number of milliseconds",
		    name, text);
	return value;
}

static int main_sink(int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "bind", required_argument, NULL, 'b' },
		{ "port", required_argument, NULL, 'p' },
		{ "json", required_argument, NULL, 'j' },
		{ "cc", required_argument, NULL, 'c' },
		{ "stop-at", required_argument, NULL, 's' },
		{ "epoch-ns", required_argument, NULL, 'e' },
		{ "lowat", required_argument, NULL, 'l' },
		{ "read-ms", required_argument, NULL, 'r' },
		{ "sample-ms", required_argument, NULL, 'm' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 }
	};
	struct sink_options options = {
		.json = "-",
		.epoch_ns = TIME_UNSET,
		.stop_ns = TIME_NEVER,
	};
	int option;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) >= 0) {
		switch (option) {
		case 'b':
			if (!address_parse(optarg, &options.bind))
				die(STATUS_USAGE,
				    "--bind: '%s' is not an address", optarg);
			options.bind_given = true;
			break;
		case 'p':
			parse_ports(&options, optarg);
			break;
		case 'j':
			options.json = optarg;
			break;
		case 'c':
			options.cc = optarg;
			break;
		case 's':
			options.stop_ns = option_seconds("--stop-at", optarg);
			break;
		case 'e':
			options.epoch_ns = option_integer("--epoch-ns", optarg,
							  0, TIME_NEVER);
			break;
		case 'l':
			options.lowat_bytes = option_quantity("--lowat", optarg);
			break;
		case 'r':
			options.read_ns = option_milliseconds("--read-ms",
							      optarg);
			break;
		case 'm':
			options.sample_ns = option_milliseconds("--sample-ms",
								optarg);
			break;
		case 'h':
			help();
			break;
		default:
			return STATUS_USAGE;
		}
	}
	refuse_rest(argc, argv);
	if (!options.port_count)
		die(STATUS_USAGE, "sink: --port is missing");
	if (options.read_ns && options.lowat_bytes)
		die(STATUS_USAGE, "sink: --lowat and --read-ms exclude each other");
	return traffic_sink(&options);
}

static int main_send(int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "flows", required_argument, NULL, 'f' },
		{ "epoch-ns", required_argument, NULL, 'e' },
		{ "sample-ms", required_argument, NULL, 'm' },
		{ "duration", required_argument, NULL, 'd' },
		{ "json", required_argument, NULL, 'j' },
		{ "unsent", required_argument, NULL, 'u' },
		{ "rest-ms", required_argument, NULL, 'r' },
		{ "cc-info", no_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 }
	};
	struct send_options options = {
		.json = "-",
		.epoch_ns = TIME_UNSET,
		.sample_ns = SAMPLE_DEFAULT,
		.duration_ns = TIME_NEVER,
	};
	int option;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) >= 0) {
		switch (option) {
		case 'f':
			options.flows = optarg;
			break;
		case 'e':
			options.epoch_ns = option_integer("--epoch-ns", optarg,
							  0, TIME_NEVER);
			break;
		case 'm':
			options.sample_ns = option_milliseconds("--sample-ms",
								optarg);
			break;
		case 'd':
			options.duration_ns = option_seconds("--duration",
							     optarg);
			break;
		case 'j':
			options.json = optarg;
			break;
		case 'u':
			options.unsent_bytes = option_quantity("--unsent",
							       optarg);
			break;
		case 'r':
			options.rest_ns = option_milliseconds("--rest-ms",
							      optarg);
			break;
		case 'c':
			options.cc_info = true;
			break;
		case 'h':
			help();
			break;
		default:
			return STATUS_USAGE;
		}
	}
	refuse_rest(argc, argv);
	if (!options.flows)
		die(STATUS_USAGE, "send: --flows is missing");
	return traffic_send(&options);
}

int main(int argc, char **argv)
{
	const char *role;

	if (argc < 2) {
		fputs(usage, stderr);
		return STATUS_USAGE;
	}
	role = argv[1];
	argv[1] = argv[0];	/* getopt's messages begin with it */
	raise_file_limit();
	if (!strcmp(role, "sink"))
		return main_sink(argc - 1, argv + 1);
	if (!strcmp(role, "send"))
		return main_send(argc - 1, argv + 1);
	if (!strcmp(role, "--help") || !strcmp(role, "-h"))
		help();
	die(STATUS_USAGE, "'%s' is neither sink nor send", role);
}
