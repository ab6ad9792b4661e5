// SPDX-License-Identifier: GPL-2.0
/*
 * The report of a connection to ss, and the owner of its private area
 */

#include <linux/inet_diag.h>
#include <net/tcp.h>

#include "alpha.h"

/**
 * alpha_bandwidth() - BW_EST
 * @sk: socket
 * @ca: its private area
 *
 * Return: packets/s in Q16.
 */
u64 alpha_bandwidth(const struct sock *sk, const struct alpha *ca)
{
	/* Not ca->net: get_info() holds no lock, and the area may change its owner. */
	const struct alpha_net *net = alpha_net(sock_net(sk));
	u64 set = (u64)READ_ONCE(net->bandwidth) << ALPHA_RATE_SHIFT;
	u64 own = max(ca->bandwidth, ca->last_bandwidth) ?: ca->rate;

	if (!set)
		return own;
	if (!READ_ONCE(net->share))
		return set;
	/* In the first two cycles, the share of the others is unknown. */
	return ca->fair ?: alpha_law_mean(set, own);
}

/*
 * ss has no structure for alpha; the structure of bbr has the most similar fields.
 * bw: BW_EST; mrtt: the longest round-trip time of the cycle; pacing_gain: alpha,
 * packets/s per ms; cwnd_gain: 1 for CN, 2 for LBCN, 4 if the peer echoes the field,
 * 8 if marks have arrived.
 * Documented in tcp_alpha(7).
 */
size_t alpha_get_info(struct sock *sk, u32 ext, int *attr,
		      union tcp_cc_info *info)
{
	const struct alpha *ca = inet_csk_ca(sk);
	u32 state;
	u64 bw;

	if (!(ext & (1 << (INET_DIAG_BBRINFO - 1))) &&
	    !(ext & (1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	/* For example a listening socket. */
	if (!alpha_is_ready(sk))
		return 0;

	memset(&info->bbr, 0, sizeof(info->bbr));
	bw = (alpha_bandwidth(sk, ca) * tcp_sk(sk)->mss_cache) >>
	     ALPHA_RATE_SHIFT;
	state = ca->cn | ca->last_bcn << 1 |
		(ca->carrier && !ca->absent) << 2 | ca->heard << 3;
	info->bbr.bbr_bw_lo = (u32)bw;
	info->bbr.bbr_bw_hi = (u32)(bw >> 32);
	info->bbr.bbr_min_rtt = ca->rtt_us;
	/* The gain is packets/s^2 in Q8; divided by 1000 it is packets/s per ms. */
	info->bbr.bbr_pacing_gain = div_u64(ca->gain, 1000);
	info->bbr.bbr_cwnd_gain = state << 8;
	*attr = INET_DIAG_BBRINFO;
	return sizeof(info->bbr);
}

/**
 * alpha_owns() - is the private area of a socket ours?
 * @sk: TCP socket; if it is not locked, the answer may be outdated
 *
 * Return: true if it is a struct alpha, and init() has run.
 */
bool alpha_owns(const struct sock *sk)
{
	const struct tcp_congestion_ops *ops =
		READ_ONCE(inet_csk(sk)->icsk_ca_ops);

	/* get_info is compared, because a wrapper replaces other callbacks. */
	return ops && ops->get_info == alpha_get_info && alpha_is_ready(sk);
}
