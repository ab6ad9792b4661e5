// SPDX-License-Identifier: GPL-2.0
/*
 * What a flow is willing to pay, and how far a price moves its window: w and kappa
 * of CP05, from the settings of the namespace
 */

#include <linux/jiffies.h>
#include <linux/math64.h>

#include "sbrm.h"

/**
 * sbrm_wtp() - willingness to pay of a flow, w ln(phi)
 * @sk: socket
 * @ca: its private area
 *
 * Return: packets/s in Q24, below 2^49: w is at most 10^7, and ln(phi) at most
 *	ln(16) < 2.78, which is less than 2^25 together.
 */
u64 sbrm_wtp(const struct sock *sk, const struct sbrm *ca)
{
	u32 priority = min_t(u32, READ_ONCE(sk->sk_priority),
			     SBRM_WTP_CLASSES - 1);

	return (u64)READ_ONCE(ca->net->wtp[priority]) *
	       READ_ONCE(ca->net->ln_phi);
}

/**
 * sbrm_paid() - what a flow pays in some time
 * @wtp: sbrm_wtp() of the flow
 * @time: in 2^-@shift us, below 2^(26 + @shift)
 * @shift: fractional bits of @time, at most 4
 *
 * Return: segments times price in Q32, below 2^63.
 */
s64 sbrm_paid(u64 wtp, u32 time, unsigned int shift)
{
	/* Eight of the places of @wtp stay: below 2^(49 + 30 - 16) = 2^63. */
	u64 paid = mul_u64_u32_shr(wtp, time, SBRM_LN_PHI_SHIFT - 8);

	/*
	 * By 10^6, as us were seconds: 2251799814 is 2^51 / 10^6, and 2^52 / 10^6
	 * does not fit 32 bits. From 8 + @shift places to those of Q32.
	 */
	return mul_u64_u32_shr(paid, 2251799814U, 51 - FIXP_SHIFT + 8 + shift);
}

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
 * sbrm_kappa() - gain in force
 * @ca: connection
 *
 * The loop gain grows with the window; kappa_window, where set, takes that back
 * for larger ones (CP05 6.6.2).
 *
 * Return: kappa in Q28, at most 10.0.
 */
u32 sbrm_kappa(struct sbrm *ca)
{
	u64 window = (u64)READ_ONCE(ca->net->kappa_window) << FIXP_SHIFT;
	u32 kappa = sbrm_kappa_by_age(ca);

	if (likely(!window || ca->cwnd <= window))
		return kappa;
	return fixp_mul_div(kappa, window, ca->cwnd);
}
