// SPDX-License-Identifier: GPL-2.0
/*
 * ppx: the uncontrolled source of MK94, for experiments
 *
 * The same pairs and the same repair of losses as those of pp, at no rate at all.
 */

#include "pp.h"
#include "tollway_release.h"

/* Window of ppx, segments: no bound but the receiver's. */
#define PPX_CWND		1048576U

/* For ppx, which has no rate. */
static u32 ppx_tso_segs(COMPAT_TSO_SEGS_ARGS)
{
	const struct pp *ca = inet_csk_ca(sk);
	u32 train;

	if (unlikely(!pp_is_ready(sk)))
		return 1;
	train = READ_ONCE(ca->net->train);
	pp_train_use(sk, train);
	return train;
}

/* The source of MK94: everything at once, nothing held back. */
static void ppx_cong_control(COMPAT_CONG_CONTROL_ARGS,
			     const struct rate_sample *rs)
{
	tcp_snd_cwnd_set(tcp_sk(sk), min_t(u32, tcp_sk(sk)->snd_cwnd_clamp,
					   PPX_CWND));
}

static void ppx_init(struct sock *sk)
{
	struct pp *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	ca->net = pp_net(sock_net(sk));
	pp_train_use(sk, READ_ONCE(ca->net->train));
	tcp_snd_cwnd_set(tcp_sk(sk), min_t(u32, tcp_sk(sk)->snd_cwnd_clamp,
					   PPX_CWND));
}

/* The window was that of no control at all. */
static void ppx_release(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!pp_is_ready(sk))
		return;
	tollway_release_packets(sk);
	tcp_snd_cwnd_set(tp, clamp_t(u32, tcp_packets_in_flight(tp),
				     TCP_INIT_CWND, tcp_snd_cwnd(tp)));
}

/* No loss means anything. */
static u32 ppx_same_cwnd(struct sock *sk)
{
	return max(tcp_snd_cwnd(tcp_sk(sk)), 2U);
}

struct tcp_congestion_ops ppx_ops __read_mostly = {
	/* Restricted: no control at all is not for every user to have. */
	.name		= "ppx",
	.owner		= THIS_MODULE,
	.init		= ppx_init,
	.release	= ppx_release,
	.cong_control	= ppx_cong_control,
	.ssthresh	= ppx_same_cwnd,
	.undo_cwnd	= ppx_same_cwnd,
	.COMPAT_TSO_SEGS_OP = ppx_tso_segs,
};
