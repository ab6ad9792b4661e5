// SPDX-License-Identifier: GPL-2.0
/*
 * Estimators: from samples of the service time, s, the estimate s_hat
 *
 *	fuzzy	s_hat = alpha s_hat + (1 - alpha) s, alpha by fuzzy control of
 *		the proportional error, smoothed by beta, and beta by fuzzy
 *		control of the change in error (PP94 4.5)
 *	fixed	the same, 1 - alpha a setting
 *	kalman	Kalman filter of mu = 1 / s, the ratio of the variances a
 *		setting (PP94 4.4)
 *
 * PP94 4.4.2 has a filter of three states, (n, mu, mu before). With its
 * matrices G and C, rows 2 and 3 of the gain are the same, the estimate of "mu
 * before" is that of mu, and what is left of the Riccati equation is, for the
 * variance P of mu,
 *
 *	K = P / (P + R)		mu += K (y - mu)	P = Q + P R / (P + R)
 *
 * so that R, the variance of the observation, can be 1. n is not observed:
 * its row only integrates, and 4.3 has a better estimate (12) of it.
 */

#include <linux/kernel.h>

#include "pp_model.h"
#include "pp_fuzzy.h"

/*
 * Between an entry of a table and the next one, @part of PP_FUZZY_WIDTH. Entries are at
 * most 2^16, the width is 2^8; where the next entry is smaller the difference wraps, and
 * the sum wraps back.
 */
#define PP_FUZZY_WIDTH	(PP_ONE / PP_FUZZY_STEPS)

static inline u32 pp_fuzzy_between(u32 entry, u32 next, u32 part)
{
	return (entry * PP_FUZZY_WIDTH + PP_FUZZY_WIDTH / 2 +
		(next - entry) * part) / PP_FUZZY_WIDTH;
}

/* Linear between the entries of a table; @x in Q16, from 1.0 on the last one. */
static inline u32 pp_fuzzy(const u32 *table, u32 x)
{
	u32 i = x / PP_FUZZY_WIDTH;

	/* Nearly always in the first step: its entries are constants, not loads. */
	if (likely(!i))
		return pp_fuzzy_between(table[0], table[1], x);
	if (i >= PP_FUZZY_STEPS)
		return table[PP_FUZZY_STEPS];
	return pp_fuzzy_between(table[i], table[i + 1], x % PP_FUZZY_WIDTH);
}

/**
 * pp_fuzzy_alpha_of() - weight of history
 * @error: smoothed proportional error, Q16
 *
 * Return: alpha in Q16, within 2^-11 of the exact controller.
 */
u32 pp_fuzzy_alpha_of(u32 error)
{
	return pp_fuzzy(pp_fuzzy_alpha, error);
}

/**
 * pp_fuzzy_beta_of() - weight of the history of errors
 * @change: change of the proportional error, Q16
 *
 * Return: beta in Q16, within 2^-11 of the exact controller.
 */
u32 pp_fuzzy_beta_of(u32 change)
{
	return pp_fuzzy(pp_fuzzy_beta, change);
}

/*
 * Weighted average of two values of at most 2^46; the weight (Q16) of @b is at most 1.0.
 * If @b is smaller, the difference wraps, and the sum, which is below 2^63, wraps back.
 * In this form only one product depends on the weight, which is known last.
 */
static u64 pp_average(u64 a, u64 b, u32 weight)
{
	return ((a << 16) + PP_ONE / 2 + (b - a) * weight) >> 16;
}

/*
 * |s - s_hat| / s_hat. The text of 4.5.2 divides by s, the paper's simulations
 * by s_hat; with s, a pair whose ACKs were bunched (s near 0) would have an
 * error without bound. Errors above 1 count as 1, the end of the fuzzy sets.
 */
static u32 pp_error(u64 service, u64 sample)
{
	u64 away = sample > service ? sample - service : service - sample;

	if (unlikely(away >= service))
		return PP_ONE;
	/* away < 2^42: below 2^58. */
	return div64_u64(away << 16, service);
}

static u64 pp_estimate_fuzzy(struct pp_estimate *est, u64 sample)
{
	u32 error = pp_error(est->service, sample);
	u32 change = error > est->last_error ? error - est->last_error :
					       est->last_error - error;
	u32 beta = pp_fuzzy_beta_of(change);

	est->last_error = error;
	error = pp_average(error, est->error, beta);
	est->error = error;
	return pp_average(sample, est->service, pp_fuzzy_alpha_of(error));
}

static noinline u64 pp_estimate_kalman(struct pp_estimate *est, u64 sample,
				       u32 ratio)
{
	u64 p = est->error;
	u64 gain = div_u64(p << 16, p + PP_ONE);
	/* Rates are up to 2^46 and the gain 2^16. */
	u64 rate = pp_invert(est->service), seen = pp_invert(sample);

	rate = pp_average(rate, seen, gain);
	/* P R / (P + R) is the gain, as R is 1; the ratio is below 2^24. */
	est->error = ratio + gain;
	return pp_invert(rate);
}

/**
 * pp_estimate_sample() - take a sample into the estimate
 * @est: estimate
 * @gains: which estimator, and its settings
 * @sample: service time, ns in Q10; outside of the range the nearest counts
 *
 * The first one is taken as it is. PP94's simulations let the error begin at
 * one half, so that the next ones still count.
 *
 * Return: est->service, which the caller would have to wait for after it was stored.
 */
u64 pp_estimate_sample(struct pp_estimate *est, const struct pp_gains *gains,
		       u64 sample)
{
	u64 service = est->service;

	if (unlikely(sample < PP_SERVICE_MIN || sample > PP_SERVICE_MAX))
		sample = clamp_t(u64, sample, PP_SERVICE_MIN, PP_SERVICE_MAX);

	if (unlikely(!service)) {
		est->service = sample;
		est->last_error = 0;
		est->error = gains->estimator == PP_ESTIMATOR_KALMAN ?
			     PP_ONE + gains->kalman : PP_ONE / 2;
		return sample;
	}

	switch (gains->estimator) {
	case PP_ESTIMATOR_FIXED:
		service = pp_average(service, sample, gains->fixed);
		break;
	case PP_ESTIMATOR_KALMAN:
		service = pp_estimate_kalman(est, sample, gains->kalman);
		break;
	default:
		service = pp_estimate_fuzzy(est, sample);
	}
	if (unlikely(service < PP_SERVICE_MIN || service > PP_SERVICE_MAX))
		service = clamp_t(u64, service, PP_SERVICE_MIN, PP_SERVICE_MAX);
	est->service = service;
	return service;
}

/*
 * The weight of a sudden sample is 2^6 k / N^2, with N samples in a round trip, and k of
 * them in a row. (One that took m times as long as expected counts as m.) The sum of the
 * weights after a part t of a round trip is 2^5 t^2: of a change that lasts for a 50th of
 * it, 1.3 % are believed, after a tenth 27 %, and after a fifth 72 %. (Where N is above 5000,
 * k saturates before, and it takes longer: up to a round trip at 10 Gb/s and 150 ms.) In
 * trials with 2^8 two flows at 100 Mb/s and 150 ms, of which one looks at R, had up to 475
 * packets in the queue. With 2^4 a flow that joins two of them found 590 packets there, and
 * 540 with 2^6.
 */
#define PP_SUDDEN_SHIFT		6
/* What the field holds, and the most that one sample counts as. */
#define PP_SUDDEN_MOST		1023
#define PP_SUDDEN_TIMES		64

/**
 * pp_estimate_sudden() - a sample that is far off counts as much as those before it say
 * @est: estimate, which has taken the sample
 * @before: s_hat before it, ns in Q10
 * @sample: service time, ns in Q10
 * @count: samples in a round trip, 1 and up
 *
 * A share that has changed for good changes all samples that follow. So the more of them
 * there are in a row, on one side of s_hat, the more each one counts. It never counts for
 * more than the estimator says. If samples of two kinds come by turns, s_hat stays near one
 * of them, and is not their mean: the caller has to notice that.
 *
 * Return: s_hat, ns in Q10.
 */
u64 pp_estimate_sudden(struct pp_estimate *est, u64 before, u64 sample, u32 count)
{
	bool slower = sample > before;
	/* More than twice s_hat counts as that, as its error does in the estimator. */
	u64 away = min(slower ? sample - before : before - sample, before);
	u32 times = slower ? min_t(u64, div64_u64(sample, before), PP_SUDDEN_TIMES) : 1;
	u64 weight;

	if (slower != est->slower)
		est->sudden = 0;
	est->slower = slower;
	est->sudden = min_t(u32, est->sudden + times, PP_SUDDEN_MOST);

	/* Q32; the dividend is below 2^54. */
	weight = min_t(u64, div64_u64((u64)est->sudden * times << (PP_SUDDEN_SHIFT + 32),
				      (u64)count * count), BIT_ULL(32));
	away = mul_u64_u64_shr(away, weight, 32);
	est->service = slower ? min(est->service, before + away) :
				max(est->service, before - away);
	return est->service;
}
