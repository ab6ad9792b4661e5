// SPDX-License-Identifier: GPL-2.0
/*
 * CN and BCN in the identification field, see tollway_carrier.h for all but what
 * they say
 *
 * sch_sbrm with "mark alpha feedback two-bit" sets them. The receiver keeps those
 * of all packets that an ACK stands for, as ALPHA's does of all data packets since
 * the last control packet (Fig. 3), and the sender those of all ACKs of a step.
 *
 * A field that says anything but nothing, CN, or CN and BCN, is none of ours: some
 * box on the path rewrites the identification, or another feedback is carried. The
 * receiver falls silent, for good where there are more of them than a peer can have
 * sent before its hooks were in place.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/netfilter.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <net/net_namespace.h>
#include <net/tcp.h>

#include "alpha.h"
#include "tollway_carrier.h"

#define ALPHA_BITS	(PKT_SBRM_CN | PKT_SBRM_BCN)

/*
 * So many strange fields are not the first window of a connection, which is 10
 * segments by default. With fewer, a larger one (initcwnd) makes the receiver
 * fall silent for good; with more, a field that is rewritten is believed for
 * longer where it looks like bits of ours by chance.
 */
#define ALPHA_STRANGE_MAX	64

/* Our own socket, in a state that has sequence numbers, with a field? */
static struct alpha *alpha_carrier(const struct sock *sk)
{
	struct alpha *ca;

	if (!tollway_carrier_possible(sk) || !alpha_owns(sk) ||
	    compat_tcp_is_signed(tcp_sk(sk)))
		return NULL;

	ca = inet_csk_ca(sk);
	return ca->carrier ? ca : NULL;
}

static unsigned int alpha_hook_out(void *priv, struct sk_buff *skb,
				   const struct nf_hook_state *state)
{
	struct alpha *ca = alpha_carrier(state->sk);
	bool told;
	u16 echo;

	if (!ca)
		return NF_ACCEPT;
	echo = ca->rcv_any ? ca->echo_bits + 1 : 0;
	if (!tollway_carrier_write(skb, echo, &told))
		alpha_count(state->net, ALPHA_COUNT_NO_DF);
	if (told)
		ca->echo_bits = ca->last_bits;
	return NF_ACCEPT;
}

/* There is CN, or both, or nothing. */
static bool alpha_is_sane(u16 field)
{
	return !field || field == PKT_SBRM_CN || field == ALPHA_BITS;
}

/* Receiver: keep the field of a packet for the next ACK. */
static void alpha_field_keep(const struct sock *sk, struct alpha *ca, u16 field)
{
	if (ca->strange == ALPHA_STRANGE_MAX)
		return;
	if (!alpha_is_sane(field)) {
		ca->rcv_any = 0;
		if (++ca->strange < ALPHA_STRANGE_MAX)
			return;
		alpha_count(sock_net(sk), ALPHA_COUNT_REWRITTEN);
		pr_info_once("the IP identification is rewritten on a path: such connections get no bits\n");
		return;
	}
	ca->rcv_any = 1;
	ca->last_bits = field;
	ca->echo_bits |= field;
}

/* Sender: keep what an ACK says for the next step. */
static void alpha_echo_keep(struct alpha *ca, u16 echo)
{
	if (!alpha_is_sane(echo - 1))
		return;
	ca->silent = ALPHA_ECHOED;
	ca->absent = 0;
	ca->bits |= echo - 1;
	/* Whether it was beyond the goal is not to be guessed then. */
	ca->cycle_bits |= echo - 1;
}

/**
 * alpha_carrier_is_early() - may an echo be of the identification of the stack?
 * @sk: socket with a field
 *
 * Return: true for a moment after the hooks came, see tollway_carrier_is_early().
 */
bool alpha_carrier_is_early(const struct sock *sk)
{
	return tollway_carrier_is_early(alpha_carrier_net(sock_net(sk)),
					tcp_sk(sk));
}

/* Take what a segment says; its socket is locked. */
static void alpha_take(const struct sock *sk, struct alpha *ca,
		       const struct tollway_carried *found)
{
	if (tollway_carrier_is_invalid(tcp_sk(sk), found)) {
		alpha_count(sock_net(sk), ALPHA_COUNT_INVALID);
		return;
	}
	if (!tollway_carrier_in_window(tcp_sk(sk), found)) {
		alpha_count(sock_net(sk), ALPHA_COUNT_OUTSIDE);
		return;
	}
	if (found->field >= 0)
		alpha_field_keep(sk, ca, found->field);
	if (found->echo && !alpha_carrier_is_early(sk))
		alpha_echo_keep(ca, found->echo);
}

/*
 * Early demux has found the socket. A packet that comes while a process owns
 * the socket waits in its backlog: what it says is given up, the next one says it
 * again.
 */
static unsigned int alpha_hook_in(void *priv, struct sk_buff *skb,
				  const struct nf_hook_state *state)
{
	struct tollway_carried found;
	struct sock *sk = skb->sk;
	struct alpha *ca;

	/* Without the lock a first look; again with it. */
	if (!alpha_carrier(sk) || !tollway_carrier_read(skb, &found))
		return NF_ACCEPT;
	if (!tollway_carrier_is_genuine(sk, skb)) {
		alpha_count(state->net, ALPHA_COUNT_INVALID);
		return NF_ACCEPT;
	}

	bh_lock_sock_nested(sk);
	if (!sock_owned_by_user(sk)) {
		ca = alpha_carrier(sk);
		if (ca)
			alpha_take(sk, ca, &found);
	}
	bh_unlock_sock(sk);
	return NF_ACCEPT;
}

static const struct nf_hook_ops alpha_hooks[TOLLWAY_CARRIER_HOOKS] = {
	TOLLWAY_CARRIER_HOOK(alpha_hook_in, NF_INET_LOCAL_IN),
	TOLLWAY_CARRIER_HOOK(alpha_hook_out, NF_INET_LOCAL_OUT),
};

/**
 * alpha_carrier_use() - a connection wants the field
 * @sk: its socket, locked
 */
void alpha_carrier_use(struct sock *sk)
{
	tollway_carrier_use(alpha_carrier_net(sock_net(sk)), alpha_hooks);
}
