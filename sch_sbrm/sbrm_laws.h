/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Price laws: what the shadow price of the queue follows from.
 *
 * A law is a struct sbrm_law_ops and the functions that it names. It sees numbers
 * that were worked out when the options were set, its own state, and the
 * backlog: never a packet, and nothing of how its price is told.
 */
#ifndef _SBRM_LAWS_H
#define _SBRM_LAWS_H

#include <linux/bits.h>
#include <linux/types.h>

#include "pkt_sbrm.h"
#include "tollway_fixp.h"

/**
 * struct sbrm_params - what the user sets
 * @gamma: price per unit of backlog or rate, Q48, 1 .. 2^48, 0 where the law
 *	has none
 * @phi: base of the price, Q32, 2^32 + 1 .. 2^36
 * @rate: of the link, bytes/s, 0 if it was never set, at most 2^37
 * @limit: room, packets or bytes, 1 .. 2^31 - 1
 * @target: backlog without a price, packets or bytes, below @limit where the
 *	law takes it
 * @alpha: weight of the backlog, Q24, 1 .. 2^28
 * @avpkt: bytes that count as a packet, 1 .. 65535
 * @interval: between updates, us, 1 .. 10^6
 * @delta: weight of the last interval, Q32, %SBRM_DELTA_MIN ..
 * @scale: of the virtual queue, Q32, %SBRM_SCALE_MIN ..
 * @law: an &enum sbrm_law
 * @feedback: an &enum sbrm_feedback
 * @coupling: k of the coupled probability, Q20, %SBRM_COUPLING_MIN ..
 *	%SBRM_COUPLING_MAX
 * @small: bytes up to which a packet is exempt from it, at most 65535
 * @flags: %SBRM_F_ bits
 */
struct sbrm_params {
	u64	gamma;
	u64	phi;
	u64	rate;
	u32	limit;
	u32	target;
	u32	alpha;
	u32	avpkt;
	u32	interval;
	u32	delta;
	u32	scale;
	u32	law;
	u32	feedback;
	u32	coupling;
	u32	small;
	u32	flags;
};

/**
 * struct sbrm_coef - the options as the law needs them for a packet
 * @gamma: price per unit of backlog, base e, Q48, below 2^49.5
 * @target: backlog without a price
 * @unit: bytes of one unit of the backlog
 * @alpha: rem: weight of the backlog, Q24, at most 2^28, 0 in rem-pc1
 * @decay: rem: 1 - delta, Q32, at most 0.999
 * @interval_ns: rem: between updates, ns, 10^3 .. 10^9
 * @capacity: rem: units that the link serves in an interval, Q24, at most 2^61
 * @byte_ns: vqm: service time of a byte, ns in Q32, 2^24 .. 10^9 * 2^32
 * @room: vqm: service time of a full queue, ns in Q16, at most 2^62
 */
struct sbrm_coef {
	u64	gamma;
	u32	target;
	u32	unit;
	u32	alpha;
	u32	decay;
	u32	interval_ns;
	u64	capacity;
	u64	byte_ns;
	u64	room;
};

/**
 * struct sbrm_state - what a law remembers; all 0 but @time at first
 * @time: up to which the rest holds, ns
 * @price: rem: price, base e, Q48, at most 2^61; vqm: is it marking?
 * @input: rem: input rate y, units per interval, Q24, at most 2^61
 * @pending: rem: bytes that came since @time, at most 2^37; vqm: service time
 *	of the virtual backlog, ns in Q16, at most @room
 */
struct sbrm_state {
	u64	time;
	u64	price;
	u64	input;
	u64	pending;
};

/**
 * struct sbrm_law_ops - one price law
 * @options: bit n for each attribute TCA_SBRM_n that the law takes
 * @required: those of @options that have no default
 * @gamma: default, Q48; 0 for "auto", or where the law has none
 * @certain: a packet that leaves at any price but 0 is marked for sure
 * @advance: bring the state up to a time (ns), during which the backlog was as
 *	given; NULL for a law without a clock, whose packets then cost none
 * @arrival: a packet of so many bytes arrives; NULL, or after @advance
 * @price: price in Q32, base e, with the state as @advance left it
 * @rescale: other coefficients hold from now on; NULL if the state is good for
 *	all of them
 * @fill_xstats: statistics of the law alone; NULL for none
 */
struct sbrm_law_ops {
	u32	options;
	u32	required;
	u64	gamma;
	bool	certain;
	void	(*advance)(const struct sbrm_coef *coef,
			   struct sbrm_state *state, u64 now, u32 backlog);
	void	(*arrival)(const struct sbrm_coef *coef,
			   struct sbrm_state *state, u32 bytes);
	u64	(*price)(const struct sbrm_coef *coef,
			 const struct sbrm_state *state, u32 backlog);
	void	(*rescale)(const struct sbrm_coef *from,
			   const struct sbrm_coef *to,
			   struct sbrm_state *state);
	void	(*fill_xstats)(const struct sbrm_coef *coef,
			       const struct sbrm_state *state,
			       struct tc_sbrm_xstats *xstats);
};

/* Attributes that belong to some laws and not to others. */
#define SBRM_LAW_OPTIONS						\
	(BIT(TCA_SBRM_TARGET) | BIT(TCA_SBRM_GAMMA) |			\
	 BIT(TCA_SBRM_PHI) | BIT(TCA_SBRM_ALPHA) | BIT(TCA_SBRM_RATE) |	\
	 BIT(TCA_SBRM_AVPKT) | BIT(TCA_SBRM_INTERVAL) |			\
	 BIT(TCA_SBRM_DELTA) | BIT(TCA_SBRM_SCALE))

extern const struct sbrm_law_ops sbrm_laws[];

u64 sbrm_backlog_price(const struct sbrm_coef *coef,
		       const struct sbrm_state *state, u32 backlog);
void sbrm_coef_set(struct sbrm_coef *coef, const struct sbrm_params *params);
u64 sbrm_gamma_auto(const struct sbrm_params *params);

#endif /* _SBRM_LAWS_H */
