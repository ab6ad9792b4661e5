// SPDX-License-Identifier: GPL-2.0
/*
 * The receiver of tollway-traffic without its sockets. Commands on standard input,
 * an answer to each on standard output:
 *
 *	packet SEQUENCE STAMP_US PAIR HALF SETPOINT QUARTERS SRTT_US LENGTH NS
 *				HALF may have WIRE_IDLE in it
 *	bytes HEX NS		any payload
 *	report NS		none, or HIGHEST RECEIVED LOST RATE_KBPS ECHO_US
 *	counts			all of struct receiver_counts
 *	state			all of struct receiver_state
 *	reference		worst errors against gen_pp_reference.py, in 2^-20
 */
#include <linux/kernel.h>

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pp_model.h"
#include "../tools/traffic_receiver.h"
#include "pp_reference.h"

#define PAYLOAD_MAX	65536

static struct receiver *receiver;

static void print_numbers(const void *numbers, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes / sizeof(uint64_t); i++)
		printf("%s%" PRIu64, i ? " " : "", ((uint64_t *)numbers)[i]);
	putchar('\n');
}

static void on_packet(const char *words)
{
	uint32_t sequence, stamp_us, pair, half, setpoint, quarters, srtt_us;
	struct wire_pair header;
	uint32_t length;
	int64_t ns;

	if (sscanf(words, "%u %u %u %u %u %u %u %u %" SCNd64, &sequence,
		   &stamp_us, &pair, &half, &setpoint, &quarters, &srtt_us,
		   &length, &ns) != 9)
		exit(2);
	header = (struct wire_pair){
		.magic = htobe32(WIRE_MAGIC_PAIR),
		.flow = htobe32(1),
		.sequence = htobe32(sequence),
		.stamp_us = htobe32(stamp_us),
		.pair = htobe16(pair << WIRE_PAIR_SHIFT | half),
		.wish = htobe16(quarters << WIRE_SETPOINT_BITS | setpoint),
		.srtt_us = htobe32(srtt_us),
	};
	printf("%d\n", receiver_packet(receiver, &header, sizeof(header),
				       length, ns));
}

static void on_bytes(const char *words)
{
	static unsigned char bytes[PAYLOAD_MAX];
	size_t length = 0;
	unsigned int byte;
	int64_t ns;

	for (; sscanf(words, "%2x", &byte) == 1 && *words != ' '; words += 2)
		bytes[length++] = byte;
	if (sscanf(words, "%" SCNd64, &ns) != 1)
		exit(2);
	printf("%d\n", receiver_packet(receiver, bytes, length, length, ns));
}

static void on_report(const char *words)
{
	struct wire_report report;

	if (!receiver_report(receiver, atoll(words), &report))
		puts("none");
	else
		printf("%u %u %u %u %u\n", be32toh(report.highest),
		       be32toh(report.received), be32toh(report.lost),
		       be32toh(report.rate_kbps), be32toh(report.echo_us));
}

static void on_state(void)
{
	struct receiver_state state;

	receiver_read(receiver, &state);
	printf("%" PRIu64 " %u %u %u %u %u\n", state.service_ns, state.wait_us,
	       state.delay_us, state.queue_256, state.rate_kbps, state.lost);
}

/* Relative distance in 2^-20, as in pp_kunit.c. */
static u64 relative(u64 a, u64 b)
{
	u64 away = a > b ? a - b : b - a;

	return ((__uint128_t)away << 20) / max_t(u64, b, 1);
}

static void on_reference(void)
{
	struct pp_gains gains = { .estimator = PP_ESTIMATOR_FUZZY };
	u64 fuzzy = 0, law = 0, queue = 0;
	struct pp_estimate estimate = { 0 };
	size_t i;

	for (i = 0; i < sizeof(estimate_reference) /
			sizeof(*estimate_reference); i++) {
		pp_estimate_sample(&estimate, &gains,
				   estimate_reference[i].sample);
		fuzzy = max(fuzzy, relative(estimate.service,
					    estimate_reference[i].fuzzy));
	}
	for (i = 0; i < sizeof(law_reference) / sizeof(*law_reference); i++) {
		u64 due = min(law_reference[i].continuous, PP_RATE_MAX);
		/* Sums cancel: the error is that of what is summed. */
		u64 scale = max(law_reference[i].rate, due);
		u64 rate = pp_law_continuous(law_reference[i].setpoint,
					     law_reference[i].queue,
					     law_reference[i].delay_us,
					     law_reference[i].service);
		u32 pipe = pp_law_pipe(law_reference[i].delay_us,
				       law_reference[i].service);
		u32 waits = pp_law_queue(law_reference[i].outstanding, pipe);
		u64 away = rate > due ? rate - due : due - rate;

		law = max(law, relative(scale + away, scale));
		queue = max_t(u64, queue, abs((s64)waits -
					      law_reference[i].n_hat));
	}
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", fuzzy, law, queue);
}

int main(void)
{
	static char line[2 * PAYLOAD_MAX];

	receiver = receiver_new();
	if (!receiver)
		return 1;
	while (fgets(line, sizeof(line), stdin)) {
		if (!strncmp(line, "packet ", 7))
			on_packet(line + 7);
		else if (!strncmp(line, "bytes ", 6))
			on_bytes(line + 6);
		else if (!strncmp(line, "report ", 7))
			on_report(line + 7);
		else if (!strncmp(line, "counts", 6))
			print_numbers(receiver_counts(receiver),
				      sizeof(struct receiver_counts));
		else if (!strncmp(line, "state", 5))
			on_state();
		else if (!strncmp(line, "reference", 9))
			on_reference();
		else
			return 2;
		fflush(stdout);
	}
	receiver_free(receiver);
	return 0;
}
