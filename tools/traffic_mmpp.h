/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A Markov-modulated Poisson process (AACC 4.1, Figure 8), computed with integers, for
 * the reason in traffic_random.h.
 *
 * A chain of states 1 to N. Each state lasts an exponentially distributed time. Then one
 * of its two neighbours follows, each with probability 1/2; states 1 and N have only one.
 * In state i packets are a Poisson process whose rate is linear in i, from the lowest
 * rate in state 1 to the highest in state N. The figure was not available: the text of
 * the paper has N, the two rates and the mean time in a state.
 *
 * Each state is the first one with the same probability. States 1 and N have 2 of N of
 * it; in a long run each of them is half as frequent as another state.
 */
#ifndef TOLLWAY_TRAFFIC_MMPP_H
#define TOLLWAY_TRAFFIC_MMPP_H

#include "traffic_random.h"

#define MMPP_STATES_MAX		1000000

struct mmpp {
	int64_t states;
	int64_t low_bps, high_bps;
	int64_t hold_ns;	/* mean time in a state */
};

struct mmpp_place {
	int64_t state;		/* from 1 */
	int64_t until_ns;
	uint64_t changes;
};

/* Bits per second in a state; the product stays below 2^63 * 2^20. */
static inline int64_t mmpp_rate_bps(const struct mmpp *mmpp, int64_t state)
{
	__int128 above = (__int128)(mmpp->high_bps - mmpp->low_bps) *
			 (state - 1);

	return mmpp->low_bps + (int64_t)(above / (mmpp->states - 1));
}

static inline void mmpp_enter(const struct mmpp *mmpp,
			      struct mmpp_place *place, uint64_t *random,
			      int64_t state, int64_t at_ns)
{
	int64_t ns = random_exponential_mean(random, mmpp->hold_ns, 1);

	place->state = state;
	place->until_ns = ns < TIME_NEVER - at_ns ? at_ns + ns : TIME_NEVER;
}

static inline void mmpp_begin(const struct mmpp *mmpp,
			      struct mmpp_place *place, uint64_t *random,
			      int64_t at_ns)
{
	place->changes = 0;
	mmpp_enter(mmpp, place, random,
		   1 + random_next(random) % mmpp->states, at_ns);
}

static inline void mmpp_change(const struct mmpp *mmpp,
			       struct mmpp_place *place, uint64_t *random)
{
	int64_t state = place->state;

	if (state == 1)
		state++;
	else if (state == mmpp->states)
		state--;
	else
		state += random_next(random) >> 63 ? 1 : -1;
	place->changes++;
	mmpp_enter(mmpp, place, random, state, place->until_ns);
}

/*
 * Go from @at_ns to the next packet (returns true) or to the end of the state (false). A
 * Poisson process has no memory, so in the next state the wait begins anew.
 * @bits_ns: bits of a packet, times 10^9.
 */
static inline bool mmpp_step(const struct mmpp *mmpp,
			     const struct mmpp_place *place, uint64_t *random,
			     uint64_t bits_ns, int64_t *at_ns)
{
	int64_t wait_ns =
		random_exponential_mean(random, bits_ns,
					mmpp_rate_bps(mmpp, place->state));

	if (wait_ns < place->until_ns - *at_ns) {
		*at_ns += wait_ns;
		return true;
	}
	*at_ns = place->until_ns;
	return false;
}

#endif
