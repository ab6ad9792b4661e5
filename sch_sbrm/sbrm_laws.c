// SPDX-License-Identifier: GPL-2.0
/*
 * The price laws of sch_sbrm: SBRM, the three of REM, and VQM; for the laws delay
 * and alpha, see sbrm_delay.c and sbrm_alpha.c
 *
 * Sources: CP05 (see sbrm_qdisc.c) 4.2.2, 5.1.1, 5.2.1 and 5.4.1; VQM is by
 * R. Gibbens and F. Kelly, REM by S. Athuraliya and S. Low.
 *
 * Notable differences from the papers:
 * - there is no timer: when a packet arrives or leaves, all intervals that have
 *   ended are computed at once, also those of an idle time of any length;
 * - phi is no part of the price: gamma is multiplied by ln(phi) when the options
 *   are set, and all prices have base e;
 * - the price of rem-pc1 and rem-pc3 is at most 2^13;
 * - the virtual queue is a fluid that drains in bytes, and a packet for which it
 *   has no room is not added.
 */

#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/time64.h>

#include "sbrm_laws.h"

/* -ln(0.01) * 2^48: the price at which 99 % of the packets are marked (CP05 5.4.2). */
#define SBRM_PRICE_99_Q48	1296240170849605ULL

/*
 * Fractional bits of units of backlog. An interval of a second brings at most 2^37
 * bytes (SBRM_RATE_MAX): 2^61 in Q24. The sum of two such numbers is below 2^63, so it
 * fits into a signed word.
 */
#define REM_UNIT_SHIFT		24

/* A price of 2^13 is 2^61 in Q48: the sum of two fits into a signed word, too. */
#define REM_PRICE_MAX		BIT_ULL(SBRM_GAMMA_SHIFT + 13)
/* At most the bytes of one second at the largest rate are counted. */
#define REM_BYTES_MAX		SBRM_RATE_MAX

/* The virtual backlog is ns in Q16; its limit of 2^62 is 2^46 ns, 19 hours. */
#define VQM_TIME_SHIFT		16
#define VQM_ROOM_MAX		BIT_ULL(62)

/*
 * ln(phi) in Q48. For phi near 1 the result of fixp_ln() has few significant bits.
 * There, ln(1 + t) = t (1 - t (1/2 - t (1/3 - t/4))) is used; its error t^5 / 5 is
 * below 2^-32 for t < 2^-6.
 */
static u64 sbrm_ln_phi(u64 phi)
{
	u64 t = phi - FIXP_ONE, sum;

	if (t >= FIXP_ONE >> 6)
		return (u64)fixp_ln(phi) << (SBRM_GAMMA_SHIFT - FIXP_SHIFT);

	sum = FIXP_ONE / 3 - t / 4;
	sum = FIXP_ONE / 2 - fixp_mul(sum, t);
	sum = FIXP_ONE - fixp_mul(sum, t);
	/* sum <= 2^32 and t < 2^26: below 2^58. From Q64 to Q48: shift by 16. */
	return sum * t >> (2 * FIXP_SHIFT - SBRM_GAMMA_SHIFT);
}

/* gamma in base e: phi <= 16 and ln(16) = 2.78, so it is below 2.78 * 2^48. */
static u64 sbrm_gamma_base_e(const struct sbrm_params *params)
{
	if (!(sbrm_laws[params->law].options & BIT(TCA_SBRM_PHI)))
		return params->gamma;

	return mul_u64_u64_shr(params->gamma, sbrm_ln_phi(params->phi),
			       SBRM_GAMMA_SHIFT);
}

/**
 * sbrm_gamma_auto() - default gamma of the laws whose price depends on the backlog
 * @params: law, phi, limit and target are used; the target must be below the limit
 *
 * Return: the gamma that marks 99 % at the limit (CP05 5.4.2), Q48, if it is at
 * most 1.
 */
u64 sbrm_gamma_auto(const struct sbrm_params *params)
{
	u32 room = params->limit - params->target;
	u64 gamma;

	if (sbrm_laws[params->law].options & BIT(TCA_SBRM_PHI)) {
		/*
		 * Divide by room first: a division by a small ln(phi) first would
		 * not fit into 64 bits. The price of 4.6 has 51 bits in Q48. It is
		 * shifted left by 13, all bits that are left, so that the quotient
		 * keeps as many significant bits as possible.
		 */
		gamma = div_u64(SBRM_PRICE_99_Q48 << 13, room);
		gamma = fixp_mul_div(gamma, SBRM_GAMMA_ONE >> 13,
				     sbrm_ln_phi(params->phi));
	} else {
		gamma = div_u64(SBRM_PRICE_99_Q48, room);
	}

	return clamp_t(u64, gamma, 1, SBRM_GAMMA_ONE);
}

/* Units that the link serves in an interval, Q24, with an error below 2^-24. */
static u64 rem_capacity(const struct sbrm_params *params, u32 unit)
{
	u64 divisor = (u64)unit * USEC_PER_SEC;	/* 2^16 * 10^6 < 2^36 */
	u64 whole, rest;

	/* rate <= 2^37 bytes/s and interval <= 10^6 < 2^20 us: below 2^57 */
	whole = div64_u64_rem(params->rate * params->interval, divisor, &rest);
	return (whole << REM_UNIT_SHIFT) +
	       div64_u64(rest << REM_UNIT_SHIFT, divisor);
}

/*
 * Service time of a byte of the virtual queue, ns in Q32; relative error 2^-25.
 * A rate below one byte per second counts as one byte per second.
 */
static u64 vqm_byte_ns(const struct sbrm_params *params)
{
	u64 scale = params->scale == U32_MAX ? FIXP_ONE : params->scale;
	u64 real = div64_u64((u64)NSEC_PER_SEC << FIXP_SHIFT,
			     max(params->rate, 1ULL));

	return min_t(u64, fixp_mul_div(real, FIXP_ONE, scale),
		     (u64)NSEC_PER_SEC << FIXP_SHIFT);
}

static u64 vqm_room(const struct sbrm_params *params, u32 unit, u64 byte_ns)
{
	/* limit < 2^31, unit < 2^16 and a shift by 16: below 2^63 */
	u64 bytes = (u64)params->limit * unit << VQM_TIME_SHIFT;

	if (params->scale != U32_MAX)
		bytes = fixp_mul(bytes, params->scale);

	return min_t(u64, fixp_mul_div(bytes, byte_ns, FIXP_ONE),
		     VQM_ROOM_MAX);
}

/**
 * sbrm_coef_set() - compute the coefficients of a law
 * @coef: result
 * @params: options, all within their ranges
 */
void sbrm_coef_set(struct sbrm_coef *coef, const struct sbrm_params *params)
{
	u32 options = sbrm_laws[params->law].options;
	u32 unit = params->flags & SBRM_F_BYTES ? 1 : params->avpkt;

	coef->gamma = sbrm_gamma_base_e(params);
	coef->target = params->target;
	coef->unit = unit;
	coef->alpha = options & BIT(TCA_SBRM_ALPHA) ? params->alpha : 0;
	coef->decay = params->delta == U32_MAX ? 0 : FIXP_ONE - params->delta;
	coef->interval_ns = params->interval * NSEC_PER_USEC;
	coef->capacity = rem_capacity(params, unit);
	coef->byte_ns = vqm_byte_ns(params);
	coef->room = vqm_room(params, unit, coef->byte_ns);
	coef->delay_ns = params->delay * NSEC_PER_USEC;
	coef->high = params->high;
	coef->low = params->low;
	coef->goal = params->goal;
}

/*
 * SBRM
 */

/**
 * sbrm_backlog_price() - gamma [b - target]+
 * @coef: gamma and target are used; gamma is at most 2^48
 * @state: unused
 * @backlog: packets or bytes, below 2^31 and one packet
 *
 * gamma <= 2^48 (Q48), and with b < 2^32 the product, shifted by 16 to Q32, is
 * below 2^64.
 *
 * Return: price in Q32.
 */
u64 sbrm_backlog_price(const struct sbrm_coef *coef,
		       const struct sbrm_state *state, u32 backlog)
{
	if (backlog <= coef->target)
		return 0;

	return mul_u64_u32_shr(coef->gamma, backlog - coef->target,
			       SBRM_GAMMA_SHIFT - FIXP_SHIFT);
}

/*
 * REM
 */

/*
 * The same with a gamma up to 2^49.5 (Q48). Its product with a backlog below 2^32 is
 * below 2^81.5. Shifted by 18 it fits into 64 bits, in multiples of 2^-30; the shift by
 * 2 makes it Q32. The largest prices are limited.
 */
static u64 rem_pc2_price(const struct sbrm_coef *coef,
			 const struct sbrm_state *state, u32 backlog)
{
	u64 price;

	if (backlog <= coef->target)
		return 0;

	price = mul_u64_u32_shr(coef->gamma, backlog - coef->target,
				SBRM_GAMMA_SHIFT - FIXP_SHIFT + 2);
	return price >> 62 ? U64_MAX : price << 2;
}

/*
 * gamma * @units, limited to -2^61 .. 2^61, the range of a price. gamma is Q48 and @units
 * are Q24: the shift by 24 makes the product Q48. With 61 + 24 bits of both factors it is
 * below 2^61 then.
 */
static s64 rem_step(u64 gamma, s64 units)
{
	u64 size = units < 0 ? -(u64)units : units;
	u64 step = REM_PRICE_MAX;

	if (fls64(gamma) + fls64(size) <= 61 + REM_UNIT_SHIFT)
		step = mul_u64_u64_shr(gamma, size, REM_UNIT_SHIFT);

	return units < 0 ? -(s64)step : (s64)step;
}

/*
 * In every interval: y = (1 - delta) y + delta a, where a is the number of units that
 * arrived, and then lambda = [lambda + gamma (alpha (b - target) + y - c)]+.
 *
 * If n intervals have ended since the last call, all arrivals belong to the first one,
 * and the backlog was the same in all of them. So y_k = y_1 (1 - delta)^(k-1), and the
 * steps d_k of the price never increase. If the sum of the last steps is positive, all
 * steps before them are positive, too, and the price was not limited to 0 before them.
 * So the price is max(0, lambda + d_1 + .. + d_n), where the sum of y_k is that of a
 * geometric series.
 *
 * Because of rounding, y is too small by up to 3 / delta units of 2^-24.
 */
static noinline void rem_intervals(const struct sbrm_coef *coef,
				   struct sbrm_state *state, u64 now,
				   u32 backlog)
{
	u64 n, came, input, sum;
	s64 each, units;
	u32 many;

	n = div_u64(now - state->time, coef->interval_ns);
	many = min_t(u64, n, U32_MAX);

	/* At most 2^37 bytes, in Q24: 2^61. */
	came = div_u64(state->pending << REM_UNIT_SHIFT, coef->unit);
	input = came - fixp_mul(came, coef->decay) +
		fixp_mul(state->input, coef->decay);
	sum = input;
	if (many > 1) {
		sum = fixp_mul_div(input,
				   FIXP_ONE - fixp_pow(coef->decay, many),
				   FIXP_ONE - coef->decay);
		sum = min_t(u64, sum, S64_MAX);
		input = fixp_mul(input, fixp_pow(coef->decay, many - 1));
	}

	/* |each| < 2^28 * 2^32 + 2^61 < 2^63: no overflow before the product with n. */
	each = (s64)coef->alpha * ((s64)backlog - coef->target) -
	       (s64)coef->capacity;
	if (check_mul_overflow(each, (s64)min_t(u64, n, S64_MAX), &units))
		units = each < 0 ? S64_MIN : S64_MAX;
	if (check_add_overflow(units, (s64)sum, &units))
		units = S64_MAX;

	units = rem_step(coef->gamma, units);
	WRITE_ONCE(state->price, clamp_t(s64, (s64)state->price + units, 0,
					 REM_PRICE_MAX));
	WRITE_ONCE(state->input, input);
	WRITE_ONCE(state->pending, 0);
	WRITE_ONCE(state->time, state->time + n * coef->interval_ns);
}

static void rem_advance(const struct sbrm_coef *coef, struct sbrm_state *state,
			u64 now, u32 backlog)
{
	/* Signed: a dump may read the clock first, and then a later state. */
	if ((s64)(now - state->time) >= (s64)coef->interval_ns)
		rem_intervals(coef, state, now, backlog);
}

static void rem_arrival(const struct sbrm_coef *coef, struct sbrm_state *state,
			u32 bytes)
{
	WRITE_ONCE(state->pending, min(state->pending + bytes, REM_BYTES_MAX));
}

static u64 rem_price(const struct sbrm_coef *coef,
		     const struct sbrm_state *state, u32 backlog)
{
	return state->price >> (SBRM_GAMMA_SHIFT - FIXP_SHIFT);
}

/* Q32 becomes Q48. */
static void rem_start(struct sbrm_state *state, u64 price)
{
	state->price = min(price, REM_PRICE_MAX >> (SBRM_GAMMA_SHIFT -
						    FIXP_SHIFT)) <<
		       (SBRM_GAMMA_SHIFT - FIXP_SHIFT);
}

/* Other options: the input rate stays the same in bytes per second. */
static void rem_rescale(const struct sbrm_coef *from, const struct sbrm_coef *to,
			struct sbrm_state *state)
{
	u64 input = fixp_mul_div(state->input,
				 (u64)from->unit * to->interval_ns,
				 (u64)to->unit * from->interval_ns);

	if (from->unit != to->unit || from->interval_ns != to->interval_ns)
		WRITE_ONCE(state->input,
			   min(input, REM_BYTES_MAX << REM_UNIT_SHIFT));
}

static void rem_fill_xstats(const struct sbrm_coef *coef,
			    const struct sbrm_state *state,
			    struct tc_sbrm_xstats *xstats)
{
	xstats->input = fixp_mul_div(state->input,
				     (u64)coef->unit * NSEC_PER_SEC,
				     (u64)coef->interval_ns << REM_UNIT_SHIFT);
}

/*
 * VQM
 */

/* The virtual backlog is stored as its service time, so it drains without rounding. */
static void vqm_advance(const struct sbrm_coef *coef, struct sbrm_state *state,
			u64 now, u32 backlog)
{
	u64 passed = now - state->time;

	if ((s64)passed < 0)
		return;

	WRITE_ONCE(state->time, now);
	if (passed >= state->pending >> VQM_TIME_SHIFT) {
		/* Work of less than a nanosecond is discarded. */
		WRITE_ONCE(state->pending, 0);
		WRITE_ONCE(state->price, 0);
	} else {
		WRITE_ONCE(state->pending, state->pending -
					   (passed << VQM_TIME_SHIFT));
	}
}

static void vqm_arrival(const struct sbrm_coef *coef, struct sbrm_state *state,
			u32 bytes)
{
	/*
	 * byte_ns <= 10^9 * 2^32 < 2^62. With less than 2^18 bytes, the product shifted
	 * by 16, from Q32 to Q16, is below 2^64.
	 */
	u64 work = mul_u64_u32_shr(coef->byte_ns, bytes,
				   FIXP_SHIFT - VQM_TIME_SHIFT);

	if (work > coef->room - state->pending)
		WRITE_ONCE(state->price, 1);
	else
		WRITE_ONCE(state->pending, state->pending + work);
}

static u64 vqm_price(const struct sbrm_coef *coef,
		     const struct sbrm_state *state, u32 backlog)
{
	return state->price ? FIXP_ONE : 0;
}

/* Other options: the virtual backlog stays the same in bytes, at most the limit. */
static void vqm_rescale(const struct sbrm_coef *from, const struct sbrm_coef *to,
			struct sbrm_state *state)
{
	u64 pending = state->pending;

	if (from->byte_ns != to->byte_ns)
		pending = fixp_mul_div(pending, to->byte_ns, from->byte_ns);
	WRITE_ONCE(state->pending, min(pending, to->room));
}

static void vqm_fill_xstats(const struct sbrm_coef *coef,
			    const struct sbrm_state *state,
			    struct tc_sbrm_xstats *xstats)
{
	xstats->virtual_backlog = fixp_mul_div(state->pending, BIT_ULL(16),
					       coef->byte_ns);
}

/*
 * All of them
 */

#define REM_OPTIONS	(BIT(TCA_SBRM_GAMMA) | BIT(TCA_SBRM_PHI))
#define REM_CLOCK	(BIT(TCA_SBRM_RATE) | BIT(TCA_SBRM_AVPKT) | \
			 BIT(TCA_SBRM_INTERVAL) | BIT(TCA_SBRM_DELTA))
/* 0.001 * 2^48, the gamma of CP05 4.3.1. */
#define REM_GAMMA	281474976711ULL

const struct sbrm_law_ops sbrm_laws[] = {
	[SBRM_LAW_SBRM] = {
		.options	= BIT(TCA_SBRM_TARGET) | BIT(TCA_SBRM_GAMMA),
		.price		= sbrm_backlog_price,
	},
	[SBRM_LAW_REM_PC1] = {
		.options	= REM_OPTIONS | REM_CLOCK,
		.required	= BIT(TCA_SBRM_RATE),
		.gamma		= REM_GAMMA,
		.start		= rem_start,
		.advance	= rem_advance,
		.arrival	= rem_arrival,
		.price		= rem_price,
		.rescale	= rem_rescale,
		.fill_xstats	= rem_fill_xstats,
	},
	[SBRM_LAW_REM_PC2] = {
		.options	= BIT(TCA_SBRM_TARGET) | REM_OPTIONS,
		.price		= rem_pc2_price,
	},
	[SBRM_LAW_REM_PC3] = {
		.options	= BIT(TCA_SBRM_TARGET) | REM_OPTIONS |
				  REM_CLOCK | BIT(TCA_SBRM_ALPHA),
		.required	= BIT(TCA_SBRM_RATE),
		.gamma		= REM_GAMMA,
		.start		= rem_start,
		.advance	= rem_advance,
		.arrival	= rem_arrival,
		.price		= rem_price,
		.rescale	= rem_rescale,
		.fill_xstats	= rem_fill_xstats,
	},
	[SBRM_LAW_VQM] = {
		.options	= BIT(TCA_SBRM_SCALE) | BIT(TCA_SBRM_RATE) |
				  BIT(TCA_SBRM_AVPKT),
		.required	= BIT(TCA_SBRM_RATE),
		.certain	= true,
		.advance	= vqm_advance,
		.arrival	= vqm_arrival,
		.price		= vqm_price,
		.rescale	= vqm_rescale,
		.fill_xstats	= vqm_fill_xstats,
	},
	[SBRM_LAW_DELAY] = {
		.options	= BIT(TCA_SBRM_DELAY),
		.bytes		= true,
		.start		= sbrm_delay_start,
		.advance	= sbrm_delay_advance,
		.departure	= sbrm_delay_departure,
		.fill_xstats	= sbrm_delay_fill_xstats,
	},
	[SBRM_LAW_ALPHA] = {
		.options	= BIT(TCA_SBRM_HIGH) | BIT(TCA_SBRM_LOW) |
				  BIT(TCA_SBRM_GOAL),
		.certain	= true,
		.advance	= sbrm_alpha_advance,
		.price		= sbrm_alpha_price,
		.fill_xstats	= sbrm_alpha_fill_xstats,
	},
};
