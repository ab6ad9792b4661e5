// SPDX-License-Identifier: GPL-2.0
/*
 * What ss shows of a connection, and whether a connection is ours: the private
 * area is, where the operations have this callback.
 */

#include <linux/inet_diag.h>
#include <net/tcp.h>

#include "sbrm.h"

/* The alpha of dctcp is in 2^-10. */
#define SBRM_ALPHA_SHIFT	10

/*
 * ss knows no structure of ours; dctcp's has the nearest fields. enabled:
 * prices come back; ce_state: our receiver; alpha: m in 1/1024, of the price if
 * that came by itself; ab_ecn and ab_tot: segments marked and acknowledged,
 * since the connection began.
 * Documented in tcp_sbrm(7).
 */
size_t sbrm_get_info(struct sock *sk, u32 ext, int *attr,
		     union tcp_cc_info *info)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct sbrm *ca = inet_csk_ca(sk);
	u32 mark = ca->carrier ? sbrm_mark_share(ca) : ca->mark;

	if (!(ext & (1 << (INET_DIAG_DCTCPINFO - 1))) &&
	    !(ext & (1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	/* A listener, say. */
	if (!sbrm_is_ready(sk))
		return 0;

	memset(&info->dctcp, 0, sizeof(info->dctcp));
	if (!sbrm_is_rm(ca)) {
		info->dctcp.dctcp_enabled = 1;
		info->dctcp.dctcp_ce_state = ca->rcv_ce;
		info->dctcp.dctcp_alpha = mark >> (FIXP_SHIFT - SBRM_ALPHA_SHIFT);
		info->dctcp.dctcp_ab_ecn = tp->delivered_ce;
		info->dctcp.dctcp_ab_tot = tp->delivered;
	}
	*attr = INET_DIAG_DCTCPINFO;
	return sizeof(info->dctcp);
}

/**
 * sbrm_owns() - is the private area of a socket ours?
 * @sk: TCP socket, locked, or the answer may be old
 *
 * Return: true if it is a struct sbrm, and init() has run.
 */
bool sbrm_owns(const struct sock *sk)
{
	const struct tcp_congestion_ops *ops =
		READ_ONCE(inet_csk(sk)->icsk_ca_ops);

	/* Not a callback that a wrapper would replace. */
	return ops && ops->get_info == sbrm_get_info && sbrm_is_ready(sk);
}
