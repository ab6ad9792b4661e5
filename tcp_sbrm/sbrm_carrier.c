// SPDX-License-Identifier: GPL-2.0
/*
 * The price field: explicit price feedback between two hosts
 *
 * CP05's footnote to 4.2.3 gives the carrier: the IPv4 identification field. How
 * it is written, and which segments are believed, see tollway_carrier.h. sch_sbrm
 * with "feedback price" adds the price of its link to the field, or, with
 * "feedback four-bit", sets bits in it.
 *
 * The hooks touch only packets of sockets whose private area says so. cp is
 * restricted (the administrator may allow it to everyone by
 * net.ipv4.tcp_allowed_congestion_control), and the estimators of sbrm and rem
 * that use the field are chosen by a sysctl.
 *
 * A field that counts up by the same step, or jumps about, is not believed: some
 * box on the path rewrites the identification. The receiver falls silent.
 *
 * Connections whose segments are signed have no price field, from the moment on at
 * which the socket has a key.
 *
 * Each is counted in /proc/net/tcp_sbrm.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/netfilter.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/tcp.h>

#include "sbrm.h"
#include "tollway_carrier.h"

/*
 * So many fields in a row with the same step, not 0, are a counter. With fewer,
 * a price that rises evenly for a while, or what a peer has sent before its
 * hooks were in place, is taken for one. With more, a counter is believed for
 * longer.
 */
#define SBRM_COUNTER_RUN	64

/*
 * Random numbers of 16 bits differ by 2^16 / 3 in the mean. Prices of a link
 * move by some units of 2^-12 from packet to packet. The mean jump that is too
 * much is 3/8 of what it is with random numbers, and a change of the price by 2.
 * It is over the last 64 packets, as SBRM_COUNTER_RUN: random numbers come to the
 * limit in 30 packets, as 1 - exp(-30/64) is 3/8. A single jump counts 1/64, so
 * that it takes 8 of the largest. With a smaller limit or fewer packets some
 * jumps of a price would do; with more packets random numbers are echoed for
 * longer.
 */
#define SBRM_JUMP_MAX		8192
#define SBRM_JUMP_PACKETS	64

static unsigned int sbrm_carrier_id __read_mostly;

/* Our own socket, in a state that has sequence numbers, with a price field? */
static struct sbrm *sbrm_carrier(const struct sock *sk)
{
	struct sbrm *ca;

	if (!tollway_carrier_possible(sk) || !sbrm_owns(sk) ||
	    compat_tcp_is_signed(tcp_sk(sk)))
		return NULL;

	ca = inet_csk_ca(sk);
	return ca->carrier ? ca : NULL;
}

static unsigned int sbrm_hook_out(void *priv, struct sk_buff *skb,
				  const struct nf_hook_state *state)
{
	struct sbrm *ca = sbrm_carrier(state->sk);
	bool told;

	if (ca && !tollway_carrier_write(skb, ca->field.echo, &told))
		sbrm_count(state->net, SBRM_COUNT_NO_DF);
	return NF_ACCEPT;
}

/**
 * sbrm_field_sane() - watch whether the field behaves like a price
 * @ca: connection
 * @value: field of a packet
 *
 * Return: false once it does not.
 */
static bool sbrm_field_sane(struct sbrm *ca, u16 value)
{
	u16 step = value - ca->field.last;
	s32 jump = abs((s32)value - ca->field.last);

	if (ca->rcv_any) {
		ca->run = step && step == ca->field.step ? ca->run + 1 : 0;
		ca->field.jump += (jump - (s32)ca->field.jump) /
				  SBRM_JUMP_PACKETS;
	}
	ca->field.step = step;
	ca->field.last = value;
	ca->rcv_any = 1;

	return ca->run < SBRM_COUNTER_RUN && ca->field.jump < SBRM_JUMP_MAX;
}

/* Receiver: keep the field of a packet for the next ACK. */
static void sbrm_field_keep(const struct sock *sk, struct sbrm *ca, u16 value)
{
	if (ca->rcv_bad)
		return;

	if (!sbrm_field_sane(ca, value)) {
		ca->rcv_bad = 1;
		ca->field.echo = 0;
		sbrm_count(sock_net(sk), SBRM_COUNT_REWRITTEN);
		pr_info_once("the IP identification is rewritten on a path: such connections get no prices\n");
		return;
	}
	ca->field.echo = min_t(u32, (u32)value + 1, U16_MAX);
}

/**
 * sbrm_carrier_is_early() - may an echo be of the identification of the stack?
 * @sk: socket with a price field
 *
 * Return: true for a moment after the hooks came, see tollway_carrier_is_early().
 */
bool sbrm_carrier_is_early(const struct sock *sk)
{
	return tollway_carrier_is_early(net_generic(sock_net(sk), sbrm_carrier_id),
					tcp_sk(sk));
}

/* Take what a segment says of prices; its socket is locked. */
static void sbrm_take(const struct sock *sk, struct sbrm *ca,
		      const struct tollway_carried *found)
{
	if (tollway_carrier_is_invalid(tcp_sk(sk), found)) {
		sbrm_count(sock_net(sk), SBRM_COUNT_INVALID);
		return;
	}
	if (!tollway_carrier_in_window(tcp_sk(sk), found)) {
		sbrm_count(sock_net(sk), SBRM_COUNT_OUTSIDE);
		return;
	}
	if (found->field >= 0)
		sbrm_field_keep(sk, ca, found->field);
	if (found->echo && !sbrm_carrier_is_early(sk))
		ca->seen = found->echo;
}

/*
 * Early demux has found the socket. A packet that comes while a process owns
 * the socket waits in its backlog: what it says of the price is given up, the
 * next one says it again.
 */
static unsigned int sbrm_hook_in(void *priv, struct sk_buff *skb,
				 const struct nf_hook_state *state)
{
	struct tollway_carried found;
	struct sock *sk = skb->sk;
	struct sbrm *ca;

	/* Without the lock a first look; again with it. */
	if (!sbrm_carrier(sk) || !tollway_carrier_read(skb, &found))
		return NF_ACCEPT;
	if (!tollway_carrier_is_genuine(sk, skb)) {
		sbrm_count(state->net, SBRM_COUNT_INVALID);
		return NF_ACCEPT;
	}

	bh_lock_sock_nested(sk);
	if (!sock_owned_by_user(sk)) {
		ca = sbrm_carrier(sk);
		if (ca)
			sbrm_take(sk, ca, &found);
	}
	bh_unlock_sock(sk);
	return NF_ACCEPT;
}

static const struct nf_hook_ops sbrm_hooks[TOLLWAY_CARRIER_HOOKS] = {
	TOLLWAY_CARRIER_HOOK(sbrm_hook_in, NF_INET_LOCAL_IN),
	TOLLWAY_CARRIER_HOOK(sbrm_hook_out, NF_INET_LOCAL_OUT),
};

/**
 * sbrm_carrier_use() - a connection wants the price field
 * @sk: its socket, locked
 *
 * Called where nothing may sleep: the hooks come by a work item.
 */
void sbrm_carrier_use(struct sock *sk)
{
	tollway_carrier_use(net_generic(sock_net(sk), sbrm_carrier_id),
			    sbrm_hooks);
}

static int __net_init sbrm_carrier_net_init(struct net *net)
{
	tollway_carrier_net_init(net_generic(net, sbrm_carrier_id), net);
	return 0;
}

/* The namespace, or the module, goes: no socket of ours is left in it. */
static void __net_exit sbrm_carrier_net_exit(struct net *net)
{
	tollway_carrier_net_exit(net_generic(net, sbrm_carrier_id));
}

static struct pernet_operations sbrm_carrier_net_ops = {
	.init	= sbrm_carrier_net_init,
	.exit	= sbrm_carrier_net_exit,
	.id	= &sbrm_carrier_id,
	.size	= sizeof(struct tollway_carrier_net),
};

/**
 * sbrm_carrier_register() - prepare every namespace, present and to come
 *
 * After sbrm_net_register(), as the hooks count, and before there is a socket.
 *
 * Return: 0 or a negative error.
 */
int __init sbrm_carrier_register(void)
{
	return register_pernet_subsys(&sbrm_carrier_net_ops);
}

/* Also called when module_init fails, so not __exit. */
void sbrm_carrier_unregister(void)
{
	unregister_pernet_subsys(&sbrm_carrier_net_ops);
}
