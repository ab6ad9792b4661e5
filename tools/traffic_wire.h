/* SPDX-License-Identifier: GPL-2.0 */
/* The first bytes of a UDP payload: how the sink finds gaps. Big endian. */
#ifndef TOLLWAY_TRAFFIC_WIRE_H
#define TOLLWAY_TRAFFIC_WIRE_H

#include <stdint.h>

#define WIRE_MAGIC	0x544f4c4c	/* "TOLL" */

struct wire_header {
	uint32_t magic;
	uint32_t flow;
	uint64_t sequence;	/* from 0 */
};

#endif
