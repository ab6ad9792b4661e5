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

/* Linear between the entries of a table; @x in Q16, at most 1.0. */
static u32 pp_fuzzy(const u32 *table, u32 x)
{
	const u32 width = PP_ONE / PP_FUZZY_STEPS;
	u32 i = x / width, part = x % width;

	if (i >= PP_FUZZY_STEPS)
		return table[PP_FUZZY_STEPS];
	/* Entries are at most 2^16, width is 2^8. */
	return (table[i] * (width - part) + table[i + 1] * part + width / 2) /
	       width;
}

/**
 * pp_fuzzy_alpha_of() - weight of history
 * @error: smoothed proportional error, Q16
 *
 * Return: alpha in Q16, within 2^-11 of the exact controller.
 */
u32 pp_fuzzy_alpha_of(u32 error)
{
	return pp_fuzzy(pp_fuzzy_alpha, min(error, PP_ONE));
}

/**
 * pp_fuzzy_beta_of() - weight of the history of errors
 * @change: change of the proportional error, Q16
 *
 * Return: beta in Q16, within 2^-11 of the exact controller.
 */
u32 pp_fuzzy_beta_of(u32 change)
{
	return pp_fuzzy(pp_fuzzy_beta, min(change, PP_ONE));
}

/* Both values at most 2^46, the weight (Q16) of @b at most 1.0. */
static u64 pp_average(u64 a, u64 b, u32 weight)
{
	return (a * (PP_ONE - weight) + b * weight + PP_ONE / 2) >> 16;
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
	return div64_u64(away << 16, service);
}

static void pp_estimate_fuzzy(struct pp_estimate *est, u64 sample)
{
	u32 error = pp_error(est->service, sample);
	u32 change = error > est->last_error ? error - est->last_error :
					       est->last_error - error;
	u32 beta = pp_fuzzy_beta_of(change);

	est->last_error = error;
	est->error = pp_average(error, est->error, beta);
	est->service = pp_average(sample, est->service,
				  pp_fuzzy_alpha_of(est->error));
}

static void pp_estimate_kalman(struct pp_estimate *est, u64 sample, u32 ratio)
{
	u64 p = est->error;
	u64 gain = div_u64(p << 16, p + PP_ONE);
	/* Rates are up to 2^46 and the gain 2^16. */
	u64 rate = pp_invert(est->service), seen = pp_invert(sample);

	rate = pp_average(rate, seen, gain);
	est->service = pp_invert(rate);
	/* P R / (P + R) is the gain, as R is 1; the ratio is below 2^24. */
	est->error = ratio + gain;
}

/**
 * pp_estimate_sample() - take a sample into the estimate
 * @est: estimate
 * @gains: which estimator, and its settings
 * @sample: service time, ns in Q10; outside of the range the nearest counts
 *
 * The first one is taken as it is. PP94's simulations let the error begin at
 * one half, so that the next ones still count.
 */
void pp_estimate_sample(struct pp_estimate *est, const struct pp_gains *gains,
			u64 sample)
{
	sample = clamp_t(u64, sample, PP_SERVICE_MIN, PP_SERVICE_MAX);

	if (unlikely(!est->service)) {
		est->service = sample;
		est->last_error = 0;
		est->error = gains->estimator == PP_ESTIMATOR_KALMAN ?
			     PP_ONE + gains->kalman : PP_ONE / 2;
		return;
	}

	switch (gains->estimator) {
	case PP_ESTIMATOR_FIXED:
		est->service = pp_average(est->service, sample, gains->fixed);
		break;
	case PP_ESTIMATOR_KALMAN:
		pp_estimate_kalman(est, sample, gains->kalman);
		break;
	default:
		pp_estimate_fuzzy(est, sample);
	}
	est->service = clamp_t(u64, est->service, PP_SERVICE_MIN,
			       PP_SERVICE_MAX);
}
