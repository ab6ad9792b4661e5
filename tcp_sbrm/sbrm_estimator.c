// SPDX-License-Identifier: GPL-2.0
/*
 * Estimators: from what comes back, the price of the path (CP05 5.2.2, 5.2.3)
 *
 *	log	 p = -ln(1 - m), m an exponential average of the marks
 *	history	 the same, m of the last N packets
 *	raw	 the mark of each packet, 0 or 1
 *	four-bit p = -ln(1 - m_i) / k_i, i the bit whose m_i is nearest to 1/2
 *	explicit the price field itself
 *
 * Base e throughout: where routers mark with 1 - phi^-lambda, this is
 * lambda ln(phi).
 */

#include <linux/bitops.h>
#include <linux/math64.h>

#include "sbrm.h"
#include "pkt_sbrm.h"

/* The estimate of m stays below 1 - 2^-16: prices stay below 11.1. */
#define SBRM_MARK_MAX	(U32_MAX - 65535)

/* 0.5 in Q32: the bit of the four-bit feedback whose share is nearest to it is used. */
#define SBRM_HALF	BIT(31)

/*
 * From this share of marks on the source relative takes an average over fewer packets, and
 * below this one over more of them. They are far apart, so that a share at rest does not
 * pass both: a flow that has one average while it is low and another one while it is high
 * would pay up to 4 % too little.
 */
#define SBRM_MARK_MANY	(3U << 29)	/* 3/8 */
#define SBRM_MARK_FEW	BIT(29)		/* 1/8 */

/* The same of more than one packet, see sbrm_average(). */
static noinline u32 sbrm_average_many(u32 mean, u32 count, u32 hits, u32 gain)
{
	u64 keep = gain ? fixp_pow(U32_MAX - gain + 1, count) : 0;
	u64 seen = div_u64((u64)hits << FIXP_SHIFT, count);

	/* Both factors are at most 2^32 - 1 after the clamp. */
	return min_t(u64, fixp_mul(keep, mean) +
		     fixp_mul(FIXP_ONE - keep, min_t(u64, seen, U32_MAX)),
		     SBRM_MARK_MAX);
}

/**
 * sbrm_average() - take some packets into an exponential average
 * @mean: average so far, Q32
 * @count: packets, 1 and up
 * @hits: how many of them were hit
 * @gain: weight of one packet, Q32
 *
 * m = m (1 - g)^n + (1 - (1 - g)^n) k/n, which for n = 1 is the usual form.
 *
 * Return: the average after them, Q32, at most SBRM_MARK_MAX.
 */
static inline u32 sbrm_average(u32 mean, u32 count, u32 hits, u32 gain)
{
	/* Both factors are at most 2^32 - 1. */
	if (likely(count == 1))
		return min_t(u64, ((FIXP_ONE - gain) * mean >> FIXP_SHIFT) +
			     (hits ? (u64)gain * U32_MAX >> FIXP_SHIFT : 0),
			     SBRM_MARK_MAX);
	return sbrm_average_many(mean, count, hits, gain);
}

/*
 * What slow start saw says little of the price after it: from there on the
 * average is a plain one, until it holds as many packets as the exponential one
 * remembers.
 */
static u32 sbrm_plain_gain(struct sbrm *ca, u32 acked, u32 gain)
{
	u32 plain;

	if (ca->marks.plain == U16_MAX)
		return gain;

	plain = U32_MAX / (ca->marks.plain + SBRM_PLAIN_START);
	if (plain <= gain) {
		ca->marks.plain = U16_MAX;
		return gain;
	}
	ca->marks.plain = min_t(u32, ca->marks.plain + acked, U16_MAX);
	return plain;
}

/* -ln(1 - m) in Q28; m at most SBRM_MARK_MAX. */
static u32 sbrm_log_price(u32 mark)
{
	return fixp_ln_lost(mark) >> (FIXP_SHIFT - SBRM_PRICE_SHIFT);
}

/**
 * sbrm_history() - share of marks among the last packets
 * @ca: connection
 * @ack: segments and marks
 *
 * Which of the segments of one ACK were marked is not known; the oldest are
 * taken. All marked counts as all but half a packet, so that the price stays
 * finite.
 *
 * Return: m in Q32.
 */
static u32 sbrm_history(struct sbrm *ca, const struct sbrm_ack *ack)
{
	u32 window = clamp_t(u32, READ_ONCE(ca->net->history), 1, 64);
	u32 acked = min(ack->acked, 64U);
	u32 marked = min(ack->marked, acked);
	u64 fresh = marked ? GENMASK_ULL(acked - 1, acked - marked) : 0;
	u32 hits;

	ca->marks.bits = acked < 64 ? ca->marks.bits << acked | fresh : fresh;
	hits = hweight64(ca->marks.bits & GENMASK_ULL(window - 1, 0));
	return div_u64((u64)min(2 * hits, 2 * window - 1) << FIXP_SHIFT,
		       2 * window);
}

/**
 * sbrm_four_bit() - price by the bit whose share is nearest to one half
 * @ca: connection
 * @ack: segments
 *
 * The echo has the bits of one packet; it stands for all that the ACK
 * acknowledges. Without one nothing changes.
 *
 * Return: price in Q28. The least exponent is 1409 / 65536, so that a share at
 * its limit could stand for 516: what does not fit is cut off at 15.99.
 */
static u32 sbrm_four_bit(struct sbrm *ca, const struct sbrm_ack *ack)
{
	static const u32 exponents[SBRM_BITS] = {
		PKT_SBRM_FOUR_BIT_K0, PKT_SBRM_FOUR_BIT_K1,
		PKT_SBRM_FOUR_BIT_K2, PKT_SBRM_FOUR_BIT_K3,
	};
	u32 gain = READ_ONCE(ca->net->history_gain);
	u32 nearest = U32_MAX;
	int best = 0, i;
	u64 price;

	if (ca->seen) {
		u32 bits = ca->seen - 1;

		for (i = 0; i < SBRM_BITS; i++)
			ca->field.bit[i] =
				sbrm_average(ca->field.bit[i], ack->acked,
					     bits & BIT(i) ? ack->acked : 0,
					     gain);
	}

	for (i = 0; i < SBRM_BITS; i++) {
		u32 share = ca->field.bit[i];
		u32 away = share > SBRM_HALF ? share - SBRM_HALF :
					       SBRM_HALF - share;

		if (away < nearest) {
			nearest = away;
			best = i;
		}
	}
	price = div_u64((u64)sbrm_log_price(ca->field.bit[best]) <<
			PKT_SBRM_FOUR_BIT_SHIFT, exponents[best]);
	return min_t(u64, price, U32_MAX);
}

/*
 * Into the average that ss shows, and that the source relative and the estimators log
 * and raw use.
 */
static void sbrm_mark_update(struct sbrm *ca, const struct sbrm_ack *ack)
{
	u32 gain;

	if (ca->source == SBRM_SOURCE_RELATIVE) {
		if (ca->mark > SBRM_MARK_MANY)
			ca->few = 0;
		else if (ca->mark < SBRM_MARK_FEW)
			ca->few = 1;
		gain = FIXP_ONE >> sbrm_relative_shift(ca);
	} else {
		gain = READ_ONCE(ca->net->history_gain);
	}
	gain = sbrm_plain_gain(ca, ack->acked, gain);
	ca->mark = sbrm_average(ca->mark, ack->acked, ack->marked, gain);
}

/**
 * sbrm_estimate_slow() - take what an ACK brings into the estimate
 * @ca: connection
 * @ack: what the ACK brought
 *
 * With the estimator log, an ACK of two segments comes more often when both
 * were unmarked (a mark makes the receiver answer at once), so that the price
 * at its end, counted twice, would be biased: take the mean of the prices
 * before and after.
 *
 * Return: price of the path for the segments of the ACK, Q32, below 2^36; 0 with
 *	sbrm_by_marks(), see sbrm_relative_paid().
 */
s64 sbrm_estimate_slow(struct sbrm *ca, const struct sbrm_ack *ack)
{
	u32 before = ca->price;

	if (ca->carrier) {
		if (ca->estimator == SBRM_ESTIMATOR_FOUR_BIT)
			ca->price = sbrm_four_bit(ca, ack);
		else if (ca->seen)
			/* 65534 is the greatest: in Q28 it fits. */
			ca->price = (u32)(ca->seen - 1) <<
				    (SBRM_PRICE_SHIFT - PKT_SBRM_PRICE_SHIFT);
		return (s64)ca->price << (FIXP_SHIFT - SBRM_PRICE_SHIFT);
	}

	sbrm_mark_update(ca, ack);
	/* It needs a price where a mark comes, no earlier. */
	if (sbrm_by_marks(ca))
		return 0;
	if (ca->estimator == SBRM_ESTIMATOR_RAW) {
		ca->price = sbrm_log_price(ca->mark);
		return div_u64((u64)ack->marked << FIXP_SHIFT, ack->acked);
	}
	if (ca->estimator == SBRM_ESTIMATOR_HISTORY) {
		ca->price = sbrm_log_price(sbrm_history(ca, ack));
		return (s64)ca->price << (FIXP_SHIFT - SBRM_PRICE_SHIFT);
	}

	ca->price = sbrm_log_price(ca->mark);
	return ((s64)before + ca->price) << (FIXP_SHIFT - SBRM_PRICE_SHIFT - 1);
}

/**
 * sbrm_estimator_restart() - slow start is over
 * @ca: connection
 */
void sbrm_estimator_restart(struct sbrm *ca)
{
	if (!ca->carrier)
		ca->marks.plain = 0;
}

/**
 * sbrm_mark_share() - share of packets that one bit would mark for the price
 * @ca: connection
 *
 * Return: 1 - exp(-p) in Q32, at most U32_MAX.
 */
u32 sbrm_mark_share(const struct sbrm *ca)
{
	u64 price = (u64)ca->price << (FIXP_SHIFT - SBRM_PRICE_SHIFT);

	return min_t(u64, FIXP_ONE - fixp_exp_neg(price), U32_MAX);
}
