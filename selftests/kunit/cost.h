/* SPDX-License-Identifier: GPL-2.0 */
/* The clock of the modules that measure costs. */
#ifndef _COST_H
#define _COST_H

#include <linux/types.h>

/* Cycles of the time stamp counter: that of the host, in virtual time too. */
static inline u64 cost_cycles(void)
{
	u32 low, high;

	asm volatile("lfence; rdtsc" : "=a" (low), "=d" (high) : : "memory");
	return (u64)high << 32 | low;
}

#endif /* _COST_H */
