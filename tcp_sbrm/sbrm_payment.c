// SPDX-License-Identifier: GPL-2.0
/*
 * How far a price moves the window of a flow: kappa of CP05, from the settings of the
 * namespace. What the flow is willing to pay is in sbrm.h.
 */

#include <linux/jiffies.h>
#include <linux/math64.h>

#include "sbrm.h"

/**
 * sbrm_kappa_by_age() - gain per acknowledged segment
 * @ca: connection
 *
 * A young connection may use a larger gain that decays to the final one with
 * its age t as 1 / (1 + (2 t / young_ms)^2) (CP05 5.6.4 asks for it, and
 * leaves the form open).
 *
 * Return: kappa in Q28, at most 10.0.
 */
static u32 sbrm_kappa_by_age(struct sbrm *ca)
{
	const struct sbrm_net *net = ca->net;
	u32 kappa = READ_ONCE(net->kappa);
	u32 young = READ_ONCE(net->kappa_young);
	u32 young_ms = READ_ONCE(net->young_ms);
	u32 age_ms, t;

	if (likely(ca->grown || young <= kappa))
		return kappa;

	age_ms = jiffies_to_msecs(tcp_jiffies32 - ca->born);
	/* At 16 times young_ms 0.1 % of the difference is left. */
	if (age_ms / 16 >= young_ms) {
		ca->grown = 1;
		return kappa;
	}
	/*
	 * 2 t / young_ms in Q8, for which 9 is 8 and the factor of two. It is below
	 * 2 * 16 * 2^8 = 2^13; its square is in Q16, as the 1 beside it is.
	 */
	t = div_u64((u64)age_ms << 9, young_ms);
	return kappa + div_u64((u64)(young - kappa) << 16, (1U << 16) + t * t);
}

/**
 * sbrm_kappa_slow() - gain in force, of a young connection or by the window
 * @ca: connection
 *
 * The loop gain grows with the window; kappa_window, where set, takes that back
 * for larger ones (CP05 6.6.2).
 *
 * Return: kappa in Q28, at most 10.0.
 */
u32 sbrm_kappa_slow(struct sbrm *ca)
{
	u64 window = (u64)READ_ONCE(ca->net->kappa_window) << FIXP_SHIFT;
	u32 kappa = sbrm_kappa_by_age(ca);

	if (!window || ca->cwnd <= window)
		return kappa;
	return fixp_mul_div(kappa, window, ca->cwnd);
}
