// SPDX-License-Identifier: GPL-2.0
/*
 * CN and BCN in the identification field; tollway_carrier.h describes the field
 *
 * sch_sbrm with "mark alpha feedback two-bit" sets the bits. The receiver collects
 * the bits of all packets that an ACK acknowledges, as that of ALPHA does for all data
 * packets since the last control packet (Fig. 3). The sender collects the bits of all
 * ACKs of a step.
 *
 * Valid fields are 0, CN, and CN with BCN. With any other value, a box on the path
 * rewrites the identification, or the field carries other feedback. The receiver then
 * stops to echo. It stops permanently after more such packets than a peer can send
 * before its hooks are registered.
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
 * Number of invalid fields after which the receiver stops permanently. It is larger
 * than the first window of a connection, 10 segments by default. With a smaller
 * number, a larger first window (initcwnd) makes the receiver stop. With a larger
 * number, a rewritten field that is valid by chance is believed for longer.
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

/* Valid: no bit, CN, or both bits. */
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

/* Sender: keep the bits of an ACK for the next step. */
static void alpha_echo_keep(struct alpha *ca, u16 echo)
{
	if (!alpha_is_sane(echo - 1))
		return;
	ca->silent = ALPHA_ECHOED;
	ca->absent = 0;
	ca->bits |= echo - 1;
	/* The echo tells whether the queue was beyond the goal: no estimate is needed. */
	ca->cycle_bits |= echo - 1;
}

/**
 * alpha_carrier_is_early() - may an echo have the identification of the stack?
 * @sk: socket with a field
 *
 * Return: true for a short time after the hooks were registered, see
 * tollway_carrier_is_early().
 */
bool alpha_carrier_is_early(const struct sock *sk)
{
	return tollway_carrier_is_early(alpha_carrier_net(sock_net(sk)),
					tcp_sk(sk));
}

/* Process the field of a segment; its socket is locked. */
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
 * Netfilter hook. Early demux has found the socket. If a process owns the socket,
 * the packet will wait in the backlog of the socket; its field is ignored, because
 * the next packet carries the bits again.
 */
static unsigned int alpha_hook_in(void *priv, struct sk_buff *skb,
				  const struct nf_hook_state *state)
{
	struct tollway_carried found;
	struct sock *sk = skb->sk;
	struct alpha *ca;

	/* Check without the lock first, and again with it. */
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
 * alpha_carrier_use() - a connection begins to use the field
 * @sk: its socket, locked
 */
void alpha_carrier_use(struct sock *sk)
{
	tollway_carrier_use(alpha_carrier_net(sock_net(sk)), alpha_hooks);
}
