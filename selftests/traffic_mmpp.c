// SPDX-License-Identifier: GPL-2.0
/*
 * Prints what the modulated process of tollway-traffic makes:
 *
 *	traffic_mmpp STATES LOW_BPS HIGH_BPS HOLD_NS PACKET_BITS SEED CHANGES
 *
 * a line for each state that it was in: state, its rate, ns, packets.
 */
#include "../tools/traffic_mmpp.h"

int main(int argc, char **argv)
{
	struct mmpp_place place;
	struct mmpp mmpp;
	uint64_t random, bits_ns;
	int64_t at_ns = 0;
	long changes;

	if (argc != 8)
		return STATUS_USAGE;
	mmpp = (struct mmpp){
		.states = atoll(argv[1]),
		.low_bps = atoll(argv[2]),
		.high_bps = atoll(argv[3]),
		.hold_ns = atoll(argv[4]),
	};
	bits_ns = atoll(argv[5]) * NSEC_PER_SEC;
	random = atoll(argv[6]);
	mmpp_begin(&mmpp, &place, &random, 0);
	for (changes = atol(argv[7]); changes > 0; changes--) {
		int64_t began_ns = at_ns;
		long packets = 0;

		while (mmpp_step(&mmpp, &place, &random, bits_ns, &at_ns))
			packets++;
		printf("%lld %lld %lld %ld\n", (long long)place.state,
		       (long long)mmpp_rate_bps(&mmpp, place.state),
		       (long long)(at_ns - began_ns), packets);
		mmpp_change(&mmpp, &place, &random);
	}
	return 0;
}
