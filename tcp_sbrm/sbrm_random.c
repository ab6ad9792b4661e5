// SPDX-License-Identifier: GPL-2.0
/*
 * Random numbers for the gaps between packets, and for what is rounded: one
 * generator for each processor, so that nothing is locked.
 */

#include <linux/cache.h>
#include <linux/percpu.h>
#include <linux/random.h>

#include "sbrm.h"

DEFINE_PER_CPU(u64, sbrm_random);

/* Seed the generators, before anything draws. */
void __init sbrm_random_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		per_cpu(sbrm_random, cpu) = get_random_u64();
}
