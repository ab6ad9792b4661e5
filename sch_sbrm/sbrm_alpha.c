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
 * Notable difference from the paper: there a source asks for a new maximum at
 * the end of its cycle (NMQ), and BCN is shown until then. With n sources out of
 * step each would begin the maximum anew for all others, and one that asks while
 * another has not yet read BCN takes it from that one. Here nobody asks. The
 * queue itself knows when a cycle ends: when it falls to the lower threshold. The
 * maximum begins anew there, and BCN is shown only while CN is. In all of a
 * cycle's CN phase behind its maximum BCN stands still, so that every source
 * reads the same of every cycle, whatever its delay, and no source can take it
 * from another. Nothing of an old cycle stays where a link has nothing to do any
 * more.
 */

#include <linux/compiler.h>
#include <linux/types.h>

#include "sbrm_laws.h"

/**
 * sbrm_alpha_advance() - look at the queue
 * @coef: its thresholds
 * @state: bits and maximum
 * @now: unused, the law has no clock
 * @backlog: as a packet leaves, itself included: a queue grows only between
 *	those times, so its maximum is among them; 0 as one finds nothing
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

/* With marks only CN is told: each packet is marked, or none. */
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
