// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of the network namespace, mainly timeouts, which TCP_INFO does not have
 * before Linux 6.7.
 */
#include "traffic.h"

#define LINE_BYTES	8192

const char * const network_names[NETWORK_COUNTERS] = {
	[NETWORK_TIMEOUTS] = "timeouts",
	[NETWORK_FAST_RETRANSMITS] = "fast_retransmits",
	[NETWORK_SLOW_START_RETRANSMITS] = "slow_start_retransmits",
	[NETWORK_LOST_RETRANSMITS] = "lost_retransmits",
	[NETWORK_RETRANSMITS] = "retransmits",
};

static const char * const kernel_names[NETWORK_COUNTERS] = {
	[NETWORK_TIMEOUTS] = "TCPTimeouts",
	[NETWORK_FAST_RETRANSMITS] = "TCPFastRetrans",
	[NETWORK_SLOW_START_RETRANSMITS] = "TCPSlowStartRetrans",
	[NETWORK_LOST_RETRANSMITS] = "TCPLostRetransmit",
	[NETWORK_RETRANSMITS] = "RetransSegs",
};

/* A line of names is followed by one of numbers, in columns. */
static unsigned int read_columns(struct network *network, char *names,
				 char *numbers)
{
	unsigned int found = 0;
	char *name, *number;
	int i;

	while ((name = strtok_r(names, "\n ", &names)) &&
	       (number = strtok_r(numbers, "\n ", &numbers))) {
		for (i = 0; i < NETWORK_COUNTERS; i++) {
			if (strcmp(name, kernel_names[i]))
				continue;
			network->counters[i] = strtoll(number, NULL, 10);
			found++;
		}
	}
	return found;
}

void network_read(struct network *network)
{
	static const char * const paths[] = {
		"/proc/net/netstat", "/proc/net/snmp",
	};
	static char names[LINE_BYTES], numbers[LINE_BYTES];
	unsigned int found = 0;
	size_t i;

	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		FILE *stream = fopen(paths[i], "re");

		if (!stream)
			continue;
		while (fgets(names, sizeof(names), stream) &&
		       fgets(numbers, sizeof(numbers), stream))
			found += read_columns(network, names, numbers);
		fclose(stream);
	}
	network->known = found == NETWORK_COUNTERS;
}
