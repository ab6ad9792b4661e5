// SPDX-License-Identifier: GPL-2.0
/*
 * The law alpha: the router of second-order rate control
 *
 * Two bits for the sources of tcp_alpha. CN says that the queue Q is long, BCN
 * that it has grown beyond what its largest value is to be:
 *
 *	Q
 *	|		   .--.
 * goal |- - - - - - - -  / - -\ - - - - - - - - - - - -
 *	|		 /	\
 * high |- - - - - - - -/- - - - \- - - - - - - - - - - -
 * low	|- - - - - - - / - - - - -\- - - - - - - - - - -
 *	|_____________/	  :	   \_____________
 *	CN	       0  :  1	    :  0
 *	BCN	       0    : 1	    :  0
 *
 * Source: X. Zhang, K. G. Shin, Second-Order Rate-Based Flow Control with
 * Decoupled Error Control for High-Throughput Transport Protocols (ALPHA),
 * section II.A; the lower threshold is that of its equations (9) and (10).
 *
 * Notable difference from the paper: there, a source requests a new maximum at the
 * end of its cycle (NMQ), and BCN is sent until then. If n sources have cycles at
 * different times, each of them would restart the maximum for all others, and a
 * source that requests it before another one has read BCN hides BCN from that one.
 * Here no source requests anything. The queue finds the end of a cycle by itself:
 * when it falls to the lower threshold. The maximum begins anew then, and BCN is
 * sent only together with CN. After the maximum of a cycle, BCN does not change
 * until its CN phase ends. So every source reads the same BCN of every cycle,
 * whatever its delay, and no source can hide it from another one. If a link becomes
 * idle, nothing of the old cycle is left.
 */

#include <linux/compiler.h>
#include <linux/types.h>

#include "sbrm_laws.h"

/**
 * sbrm_alpha_advance() - update the bits and the maximum
 * @coef: thresholds
 * @state: bits and maximum
 * @now: unused, because the law has no clock
 * @backlog: the backlog when a packet leaves, including this packet. A queue grows
 *	only between two of these times, so its maximum is at one of them. 0 if an
 *	arriving packet finds the queue empty
 */
void sbrm_alpha_advance(const struct sbrm_coef *coef, struct sbrm_state *state,
			u64 now, u32 backlog)
{
	if (likely(!state->bits)) {
		if (backlog <= coef->high)
			return;
		WRITE_ONCE(state->bits, PKT_SBRM_CN);
		state->longest = 0;
	}

	if (backlog <= coef->low) {
		WRITE_ONCE(state->bits, 0);
		WRITE_ONCE(state->cycles, state->cycles + 1);
		WRITE_ONCE(state->cycle_max, state->longest);
		return;
	}
	if (backlog <= state->longest)
		return;
	state->longest = backlog;
	if (backlog > coef->goal && state->bits == PKT_SBRM_CN) {
		WRITE_ONCE(state->bits, PKT_SBRM_CN | PKT_SBRM_BCN);
		WRITE_ONCE(state->beyond, state->beyond + 1);
	}
}

/* With marks only CN is sent: the price marks all packets, or none. */
u64 sbrm_alpha_price(const struct sbrm_coef *coef,
		     const struct sbrm_state *state, u32 backlog)
{
	return state->bits ? FIXP_ONE : 0;
}

void sbrm_alpha_fill_xstats(const struct sbrm_coef *coef,
			    const struct sbrm_state *state,
			    struct tc_sbrm_xstats *xstats)
{
	xstats->cycles = state->cycles;
	xstats->beyond = state->beyond;
	xstats->cycle_max = state->cycle_max;
	xstats->bits = state->bits;
}
