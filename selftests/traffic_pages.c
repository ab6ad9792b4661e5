// SPDX-License-Identifier: GPL-2.0
/*
 * Prints what the HTTP model of tollway-traffic makes:
 *
 *	traffic_pages OBJECTS MEAN MIN MAX SEED COUNT
 *
 * shape and decay in units of 2^-40 (OBJECTS is in millionths), then COUNT
 * lines: a page's number of objects and the size of one.
 */
#include "../tools/traffic_pages.h"

int main(int argc, char **argv)
{
	struct pages pages;
	uint64_t state;
	long count;

	if (argc != 7)
		return STATUS_USAGE;
	pages = (struct pages){
		.objects = atoll(argv[1]),
		.mean_bytes = atoll(argv[2]),
		.min_bytes = atoll(argv[3]),
		.max_bytes = atoll(argv[4]),
	};
	state = atoll(argv[5]);
	if (!pages_solve(&pages))
		return STATUS_FAILED;
	printf("%llu %llu\n", (unsigned long long)pages.shape,
	       (unsigned long long)pages.decay);
	for (count = atol(argv[6]); count > 0; count--) {
		uint32_t objects = pages_objects(&pages, &state);

		printf("%u %lld\n", objects,
		       (long long)pages_bytes(&pages, &state));
	}
	return 0;
}
