/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Price laws: functions that compute the shadow price of the queue.
 *
 * A law is a struct sbrm_law_ops and the functions in it. They use coefficients that
 * were computed when the options were set, the state of the law, and the backlog. They
 * never see a packet, and do not depend on how the price is sent.
 */
#ifndef _SBRM_LAWS_H
#define _SBRM_LAWS_H

#include <linux/bits.h>
#include <linux/types.h>

#include "pkt_sbrm.h"
#include "tollway_fixp.h"

/**
 * struct sbrm_params - what the user sets
 * @gamma: price per unit of backlog or rate, Q48, 1 .. 2^48; 0 if the law has
 *	none
 * @phi: base of the price, Q32, 2^32 + 1 .. 2^36
 * @rate: of the link, bytes/s, 0 if it was never set, at most 2^37
 * @limit: largest backlog, packets or bytes, 1 .. 2^31 - 1
 * @target: backlog without a price, packets or bytes; below @limit if the law uses
 *	it
 * @alpha: weight of the backlog, Q24, 1 .. 2^28
 * @avpkt: bytes that count as a packet, 1 .. 65535
 * @interval: between updates, us, 1 .. 10^6
 * @delta: weight of the last interval, Q32, %SBRM_DELTA_MIN ..
 * @scale: of the virtual queue, Q32, %SBRM_SCALE_MIN ..
 * @law: an &enum sbrm_law
 * @feedback: an &enum sbrm_feedback
 * @coupling: k of the coupled probability, Q20, %SBRM_COUPLING_MIN ..
 *	%SBRM_COUPLING_MAX
 * @small: bytes up to which a packet is exempt from coupled drops, at most 65535
 * @delay: target of the law delay, us, %SBRM_DELAY_MIN .. %SBRM_DELAY_MAX
 * @high: alpha: backlog above which CN is set, packets or bytes
 * @low: alpha: backlog at which CN is cleared, below @high
 * @goal: alpha: setpoint of the largest backlog, at least @high and below @limit
 * @flags: %SBRM_F_ bits
 * @chosen: bit n is set if attribute TCA_SBRM_n was given. Until then, the defaults
 *	of limit and coupling depend on the law, and that of low on high
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
	u32	delay;
	u32	high;
	u32	low;
	u32	goal;
	u32	flags;
	u32	chosen;
};

/**
 * struct sbrm_coef - coefficients of the law, computed from the options
 * @gamma: price per unit of backlog, base e, Q48, below 2^49.5
 * @target: backlog without a price
 * @unit: bytes of one unit of the backlog
 * @alpha: rem: weight of the backlog, Q24, at most 2^28, 0 in rem-pc1
 * @decay: rem: 1 - delta, Q32, at most 0.999
 * @interval_ns: rem: between updates, ns, 10^3 .. 10^9
 * @capacity: rem: units that the link serves in an interval, Q24, at most 2^61
 * @byte_ns: vqm: service time of a byte, ns in Q32, 2^24 .. 10^9 * 2^32
 * @room: vqm: service time of a full queue, ns in Q16, at most 2^62
 * @delay_ns: delay: target, ns, 10^4 .. 10^9
 * @high: alpha: as in struct sbrm_params
 * @low: alpha: likewise
 * @goal: alpha: likewise
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
	u32	delay_ns;
	u32	high;
	u32	low;
	u32	goal;
};

/**
 * struct sbrm_state - the state of a law
 * @time: time for which the other fields are valid, ns
 * @price: rem: price, base e, Q48, at most 2^61; vqm: is it marking?; delay: Q32,
 *	at most 400
 * @input: rem: input rate y, units per interval, Q24, at most 2^61
 * @pending: rem: bytes that arrived since @time, at most 2^37; vqm: service time
 *	of the virtual backlog, ns in Q16, at most @room
 * @full: a packet found no room since the law delay has last updated its price
 * @log_price: delay: u, Q32, -16 .. ln 400
 * @service: delay: ns to serve a byte, Q20; 0 while unknown
 * @served: delay: bytes served in @served_ns, Q8; older bytes count less
 * @served_ns: delay: time in which there was something to send; older time counts less
 * @busy_ns: delay: such time since the last update, at most 2^31
 * @idle_ns: delay: other time since then, at most 2^31
 * @left: delay: bytes served since then, in a time that could be measured
 * @left_ns: delay: this time
 * @gap_ns: delay: time since the last packet left
 * @wait_ns: delay: of @gap_ns, the time in which another packet waited
 * @age_ns: delay: since the rate of the link could last be measured
 * @passed_ns: delay: a part of the time in which bytes are counted
 * @marks: delay: marks per second that the price asks for, Q32, at most 2^44
 * @tail_ns: delay: time for which packets that have left keep the link busy
 * @fast_ns: delay: time for which the link has been faster than its measured rate
 * @slow_ns: delay: average of the delay of the queue, at most 10^9
 * @idle: delay: share of idle time, Q32
 * @size: delay: bytes of a full packet: the largest of the last hundreds
 * @last: delay: bytes of the last packet that left, 0 if the link has been idle since
 * @full_time: delay: when the price was last updated after packets had found no room, ns
 * @again: delay: then it was the second time within %DELAY_FULL_AGAIN_NS
 * @is_new: delay: the price is the first one, for a link of any rate
 * @waited: delay: the last packet had to wait for the one before
 * @stale: delay: @age_ns is so long that the rate may have changed, or it has changed
 * @passed: delay: bytes that left in @passed_ns
 * @packets: delay: packets that left since the last update
 * @cycles: alpha: number of times that CN was cleared
 * @beyond: alpha: cycles with BCN, including the present one
 * @longest: alpha: while CN is set, the largest backlog since it was set
 * @cycle_max: alpha: the same of the last cycle that ended
 * @bits: alpha: %PKT_SBRM_CN and %PKT_SBRM_BCN
 * @doubt: delay: share of @tail_ns that counts as idle, Q16
 */
struct sbrm_state {
	u64	time;
	u64	price;
	bool	full;
	union {
		struct {
			u64	input;
			u64	pending;
		};
		struct {
			s64	log_price;
			u64	service;
			u64	served;
			u64	served_ns;
			u64	busy_ns;
			u64	idle_ns;
			u64	left;
			u64	left_ns;
			u64	gap_ns;
			u64	wait_ns;
			u64	age_ns;
			u64	passed_ns;
			u64	passed;
			u64	marks;
			u64	tail_ns;
			u64	fast_ns;
			u64	slow_ns;
			u64	full_time;
			u32	idle;
			u32	size;
			u32	last;
			u32	packets;
			u32	doubt;
			bool	again;
			bool	is_new;
			bool	waited;
			bool	stale;
		};
		struct {
			u64	cycles;
			u64	beyond;
			u32	longest;
			u32	cycle_max;
			u32	bits;
		};
	};
};

/**
 * struct sbrm_law_ops - one price law
 * @options: bit n for each attribute TCA_SBRM_n that the law takes
 * @required: those of @options that have no default
 * @gamma: default, Q48; 0 for "auto", or where the law has none
 * @certain: every packet that leaves at a price above 0 is marked
 * @bytes: the backlog of the law is in bytes, also if limit is in packets
 * @start: begin with the price of another law, 0 for none. The state is 0, except
 *	for @sbrm_state.time. NULL if nothing else has to be done
 * @advance: update the state to a time (ns); the backlog was constant since the last
 *	update. NULL for a law without a clock; no clock is read for its packets
 * @arrival: a packet of so many bytes arrives, called after @advance. If it is NULL,
 *	@advance is called for a packet that finds the queue empty, and for each
 *	packet that leaves
 * @departure: a packet of so many bytes leaves, called after @advance; or NULL
 * @price: price in Q32, base e, for the state that @advance left; NULL if it is
 *	@sbrm_state.price
 * @rescale: convert the state to other coefficients; NULL if it does not depend on
 *	them
 * @fill_xstats: statistics of this law; NULL for none
 */
struct sbrm_law_ops {
	u32	options;
	u32	required;
	u64	gamma;
	bool	certain;
	bool	bytes;
	void	(*start)(struct sbrm_state *state, u64 price);
	void	(*advance)(const struct sbrm_coef *coef,
			   struct sbrm_state *state, u64 now, u32 backlog);
	void	(*arrival)(const struct sbrm_coef *coef,
			   struct sbrm_state *state, u32 bytes);
	void	(*departure)(struct sbrm_state *state, u32 bytes);
	u64	(*price)(const struct sbrm_coef *coef,
			 const struct sbrm_state *state, u32 backlog);
	void	(*rescale)(const struct sbrm_coef *from,
			   const struct sbrm_coef *to,
			   struct sbrm_state *state);
	void	(*fill_xstats)(const struct sbrm_coef *coef,
			       const struct sbrm_state *state,
			       struct tc_sbrm_xstats *xstats);
};

/* Attributes that only some laws have. */
#define SBRM_LAW_OPTIONS						\
	(BIT(TCA_SBRM_TARGET) | BIT(TCA_SBRM_GAMMA) |			\
	 BIT(TCA_SBRM_PHI) | BIT(TCA_SBRM_ALPHA) | BIT(TCA_SBRM_RATE) |	\
	 BIT(TCA_SBRM_AVPKT) | BIT(TCA_SBRM_INTERVAL) |			\
	 BIT(TCA_SBRM_DELTA) | BIT(TCA_SBRM_SCALE) |			\
	 BIT(TCA_SBRM_DELAY) | BIT(TCA_SBRM_HIGH) |			\
	 BIT(TCA_SBRM_LOW) | BIT(TCA_SBRM_GOAL))

extern const struct sbrm_law_ops sbrm_laws[];

u64 sbrm_backlog_price(const struct sbrm_coef *coef,
		       const struct sbrm_state *state, u32 backlog);
void sbrm_coef_set(struct sbrm_coef *coef, const struct sbrm_params *params);
u64 sbrm_gamma_auto(const struct sbrm_params *params);

/* sbrm_delay.c */
void sbrm_delay_advance(const struct sbrm_coef *coef, struct sbrm_state *state,
			u64 now, u32 backlog);
void sbrm_delay_departure(struct sbrm_state *state, u32 bytes);
void sbrm_delay_start(struct sbrm_state *state, u64 price);
void sbrm_delay_fill_xstats(const struct sbrm_coef *coef,
			    const struct sbrm_state *state,
			    struct tc_sbrm_xstats *xstats);

/* sbrm_alpha.c */
void sbrm_alpha_advance(const struct sbrm_coef *coef, struct sbrm_state *state,
			u64 now, u32 backlog);
u64 sbrm_alpha_price(const struct sbrm_coef *coef,
		     const struct sbrm_state *state, u32 backlog);
void sbrm_alpha_fill_xstats(const struct sbrm_coef *coef,
			    const struct sbrm_state *state,
			    struct tc_sbrm_xstats *xstats);

#endif /* _SBRM_LAWS_H */
