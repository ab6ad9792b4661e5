/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The IPv4 identification as a carrier between two hosts, for congestion controls
 *
 *	sender	 identification = 0	   router	 identification changes
 *	     ---------------- DF, data ----- sch_sbrm --------------------> receiver
 *	     <------ ACK, urgent pointer = field + 1, URG clear ----------
 *
 * The identification has no meaning while DF is set (RFC 6864). sch_sbrm writes to it. The
 * receiver returns the received value in the urgent pointer of its ACKs, which has no
 * meaning while URG is clear. 0 means that there is nothing to return. So a peer without the
 * module, or a path that clears the pointer, is recognised because no value comes back. Each
 * congestion control defines the content of the field. This file has the common part: it
 * writes packets, decides which segments are accepted, and registers the hooks.
 *
 * Both directions use netfilter hooks, which are registered in a namespace when its first
 * connection needs them. They process every packet of the namespace, so its administrator
 * must allow them: the congestion control is restricted, or a sysctl selects the field.
 *
 * The field of these segments is ignored:
 * - a segment that TCP will discard: of a wrong checksum, against the policy of
 *   IPsec, from too far away (IP_MINTTL), signed where nothing is to be, or with
 *   a time stamp of the past (PAWS). The hook comes before TCP looks, so it looks
 *   by itself;
 * - one outside of the windows of the connection: who is not on the path must
 *   guess a sequence number first;
 * - an echo of what left before the hooks were in place.
 *
 * Connections whose segments are signed (TCP_MD5SIG, TCP-AO) have no carrier: the
 * urgent pointer is part of what TCP has signed before it comes here.
 */
#ifndef _TOLLWAY_CARRIER_H
#define _TOLLWAY_CARRIER_H

#include <linux/ip.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <linux/workqueue.h>
#include <net/checksum.h>
#include <net/ip.h>
#include <net/net_namespace.h>
#include <net/tcp.h>
#include <net/xfrm.h>

#include "compat.h"

/**
 * struct tollway_carried - fields of a segment, before it is accepted
 * @field: identification of a packet with data, negative if it has none
 * @echo: what the peer says of ours: field + 1, 0 for nothing
 * @len: bytes of data
 * @stamp: time stamp of the peer
 * @seq: first sequence number
 * @ack: acknowledgment
 * @has_stamp: there is a time stamp
 * @is_signed: by TCP_MD5SIG or TCP-AO
 * @is_plain: acknowledges, and is neither SYN nor RST
 */
struct tollway_carried {
	int	field;
	u16	echo;
	u32	len;
	u32	stamp;
	u32	seq;
	u32	ack;
	bool	has_stamp;
	bool	is_signed;
	bool	is_plain;
};

/* Is a socket one of ours that may have a carrier, in a state with numbers? */
static inline bool tollway_carrier_possible(const struct sock *sk)
{
	return sk && sk_fullsock(sk) && sk->sk_type == SOCK_STREAM &&
	       sk->sk_protocol == IPPROTO_TCP &&
	       !((1 << sk->sk_state) &
		 (TCPF_LISTEN | TCPF_CLOSE | TCPF_SYN_SENT));
}

/* Does a connection speak IPv4? Mapped addresses are IPv4 on the wire. */
static inline bool tollway_carrier_has_field(const struct sock *sk)
{
	return inet_csk(sk)->icsk_af_ops->net_header_len ==
	       sizeof(struct iphdr);
}

static inline bool tollway_carrier_has_data(const struct sk_buff *skb,
					    const struct iphdr *iph,
					    const struct tcphdr *th)
{
	return ntohs(iph->tot_len) > ip_hdrlen(skb) + th->doff * 4 ||
	       skb_is_gso(skb);
}

/**
 * tollway_carrier_write() - on the way out: free the field, return an echo
 * @skb: packet of a socket with a carrier
 * @echo: what the urgent pointer is to say, 0 for nothing
 * @told: whether it says so now
 *
 * TCP holds the lock of the socket while it transmits. A device that sends its
 * packets through IP once more (ipvlan, vrf) does so without it: then this writes
 * what the connection says now, into the same packet.
 *
 * Return: false if the packet has data and no field.
 */
static inline bool tollway_carrier_write(struct sk_buff *skb, u16 echo,
					 bool *told)
{
	struct tcphdr *th;
	struct iphdr *iph;
	bool free = true;

	*told = false;
	if (skb->protocol != htons(ETH_P_IP) ||
	    skb_ensure_writable(skb, ip_hdrlen(skb) + sizeof(struct tcphdr)))
		return true;

	iph = ip_hdr(skb);
	/* Not what a tunnel makes of it. */
	if (iph->protocol != IPPROTO_TCP)
		return true;
	th = (struct tcphdr *)((u8 *)iph + ip_hdrlen(skb));
	if (tollway_carrier_has_data(skb, iph, th)) {
		free = iph->frag_off & htons(IP_DF);
		if (free) {
			csum_replace2(&iph->check, iph->id, 0);
			iph->id = 0;
		}
		/* Segmentation would count it up. */
		if (free && skb_is_gso(skb))
			skb_shinfo(skb)->gso_type |= SKB_GSO_TCP_FIXEDID;
	}

	/* A pointer that is set: this packet was here before, with its echo. */
	if (!echo || th->urg || !th->ack || th->urg_ptr)
		return free;
	if (skb->ip_summed != CHECKSUM_PARTIAL)
		inet_proto_csum_replace2(&th->check, skb, th->urg_ptr,
					 htons(echo), false);
	th->urg_ptr = htons(echo);
	*told = true;
	return free;
}

/* Options of a segment; nothing where the rest of them cannot be read. */
static inline void tollway_carrier_options(const struct sk_buff *skb,
					   unsigned int offset,
					   unsigned int len,
					   struct tollway_carried *found)
{
	u8 copy[MAX_TCP_OPTION_SPACE];
	const u8 *option;
	__be32 stamp;

	option = skb_header_pointer(skb, offset, len, copy);
	while (option && len && *option != TCPOPT_EOL) {
		unsigned int size = 1;

		if (*option != TCPOPT_NOP) {
			if (len < 2 || option[1] < 2 || option[1] > len)
				break;
			size = option[1];
		}
		if (*option == TCPOPT_TIMESTAMP && size == TCPOLEN_TIMESTAMP) {
			memcpy(&stamp, option + 2, sizeof(stamp));
			found->stamp = ntohl(stamp);
			found->has_stamp = true;
		} else if (*option == TCPOPT_MD5SIG || *option == TCPOPT_AO) {
			found->is_signed = true;
		}
		option += size;
		len -= size;
	}
}

/**
 * tollway_carrier_read() - on the way in: what does a packet say?
 * @skb: IPv4 packet
 * @found: where that goes
 *
 * Return: true if it says anything.
 */
static inline bool tollway_carrier_read(const struct sk_buff *skb,
					struct tollway_carried *found)
{
	unsigned int header = ip_hdrlen(skb);
	const struct tcphdr *th;
	struct tcphdr copy;

	if (ip_hdr(skb)->protocol != IPPROTO_TCP)
		return false;
	th = skb_header_pointer(skb, header, sizeof(copy), &copy);
	if (!th || th->doff < 5 || skb->len < header + th->doff * 4)
		return false;

	*found = (struct tollway_carried) {
		.field		= -1,
		.len		= skb->len - header - th->doff * 4,
		.seq		= ntohl(th->seq),
		.ack		= ntohl(th->ack_seq),
		.is_plain	= th->ack && !th->syn && !th->rst,
	};
	if (found->len && ip_hdr(skb)->frag_off & htons(IP_DF))
		found->field = ntohs(ip_hdr(skb)->id);
	if (!th->urg)
		found->echo = ntohs(th->urg_ptr);
	if (found->field < 0 && !found->echo)
		return false;

	tollway_carrier_options(skb, header + sizeof(*th),
				th->doff * 4 - sizeof(*th), found);
	return true;
}

/* Would TCP drop this packet before it looks at its own state? */
static inline bool tollway_carrier_is_genuine(struct sock *sk,
					      struct sk_buff *skb)
{
	return ip_hdr(skb)->ttl >= READ_ONCE(inet_sk(sk)->min_ttl) &&
	       xfrm4_policy_check(sk, XFRM_POLICY_IN, skb) &&
	       !nf_ip_checksum(skb, NF_INET_LOCAL_IN, ip_hdrlen(skb),
			       IPPROTO_TCP);
}

/*
 * Is the segment signed, or of the past (RFC 7323 5.3)? TCP believes such a one
 * where no time stamp came for 24 days, and where it brings nothing new; what it
 * says can wait for the next.
 */
static inline bool
tollway_carrier_is_invalid(const struct tcp_sock *tp,
			   const struct tollway_carried *found)
{
	return found->is_signed ||
	       (tp->rx_opt.tstamp_ok && found->has_stamp &&
		(s32)(tp->rx_opt.ts_recent - found->stamp) > TCP_PAWS_WINDOW);
}

/* Would TCP take this segment, and the acknowledgment in it? */
static inline bool
tollway_carrier_in_window(const struct tcp_sock *tp,
			  const struct tollway_carried *found)
{
	return found->is_plain && !before(found->seq + found->len, tp->rcv_wup) &&
	       !after(found->seq, tp->rcv_nxt + tcp_receive_window(tp)) &&
	       !before(found->ack, tp->snd_una) &&
	       !after(found->ack, tp->snd_nxt);
}

/**
 * struct tollway_carrier_net - hooks of a namespace
 * @net: the namespace
 * @hooks: what to register, two of them
 * @work: registers them
 * @wanted: the work is scheduled, or done
 * @registered: they are in place
 * @since: from then on, us on the clock of tcp_mstamp; TOLLWAY_CARRIER_NOT_YET while
 *	they are awaited
 */
struct tollway_carrier_net {
	struct net			*net;
	const struct nf_hook_ops	*hooks;
	struct work_struct		work;
	u32				wanted;
	bool				registered;
	u64				since;
};

#define TOLLWAY_CARRIER_HOOKS	2

/* Later than any time: no clock comes so far. */
#define TOLLWAY_CARRIER_NOT_YET	BIT_ULL(62)

/* The last hook: packets that other hooks drop are not counted. */
#define TOLLWAY_CARRIER_HOOK(function, where)	\
	{ .hook = (function), .pf = NFPROTO_IPV4, .hooknum = (where), \
	  .priority = NF_IP_PRI_LAST }

static inline void tollway_carrier_register(struct work_struct *work)
{
	struct tollway_carrier_net *carrier =
		container_of(work, struct tollway_carrier_net, work);
	int err = nf_register_net_hooks(carrier->net, carrier->hooks,
					TOLLWAY_CARRIER_HOOKS);

	if (err) {
		pr_warn_ratelimited("the netfilter hooks cannot be registered: error %d\n",
				    err);
		WRITE_ONCE(carrier->since, 0);
		/* The next connection tries again. */
		WRITE_ONCE(carrier->wanted, 0);
	} else {
		carrier->registered = true;
		WRITE_ONCE(carrier->since, div_u64(ktime_get_ns(), NSEC_PER_USEC));
	}
}

/**
 * tollway_carrier_use() - a connection wants the carrier
 * @carrier: of its namespace
 * @hooks: the hooks, two of them; the same in each call
 *
 * Called where nothing may sleep: the hooks come by a work item. Until then nothing
 * is returned, and packets leave with the identification of the stack, which means
 * nothing: a receiver must not judge a path by its first packets, and a sender
 * asks tollway_carrier_is_early().
 */
static inline void tollway_carrier_use(struct tollway_carrier_net *carrier,
				       const struct nf_hook_ops *hooks)
{
	WRITE_ONCE(carrier->hooks, hooks);
	if (!READ_ONCE(carrier->wanted) && !xchg(&carrier->wanted, 1)) {
		WRITE_ONCE(carrier->since, TOLLWAY_CARRIER_NOT_YET);
		schedule_work(&carrier->work);
	}
}

/**
 * tollway_carrier_is_early() - may an echo be of the identification of the stack?
 * @carrier: of the namespace
 * @tp: socket, which got an ACK
 *
 * The hooks come a moment after the first connection of a namespace, and what it has
 * sent by then comes back in a round trip. A price that it makes up would cost this
 * connection its window; and silence in that time says nothing of the peer.
 *
 * Not by the clock and the round-trip time: a queue that grows by a second in each
 * second keeps the time since the hooks came below two round trips for long.
 *
 * Return: true until what was sent a round trip after the hooks came was acknowledged.
 */
static inline bool
tollway_carrier_is_early(const struct tollway_carrier_net *carrier,
			 const struct tcp_sock *tp)
{
	/*
	 * The stack keeps the first with SACK only. The second also moves when data
	 * leaves while nothing is outstanding: all before that was acknowledged.
	 */
	u64 sent_us = tcp_is_sack(tp) ? tp->rack.mstamp : tp->first_tx_mstamp;

	return sent_us < READ_ONCE(carrier->since) + tcp_min_rtt(tp);
}

/**
 * tollway_carrier_is_first() - is this the first ACK for data?
 * @tp: socket, which got an ACK
 * @acked: segments that it delivers
 *
 * The hook looks at an ACK before TCP does. When it saw this one, nothing had been
 * acknowledged yet, so tollway_carrier_is_early() was true, and an echo was not kept.
 *
 * Return: true for that ACK.
 */
static inline bool
tollway_carrier_is_first(const struct tcp_sock *tp, u32 acked)
{
	/* The SYN is one more. */
	return tp->delivered <= acked + 1;
}

/**
 * tollway_carrier_net_init() - prepare a namespace
 * @carrier: of the namespace
 * @net: namespace
 */
static inline void
tollway_carrier_net_init(struct tollway_carrier_net *carrier, struct net *net)
{
	carrier->net = net;
	INIT_WORK(&carrier->work, tollway_carrier_register);
}

/**
 * tollway_carrier_net_exit() - the namespace, or the module, goes
 * @carrier: of the namespace
 *
 * No socket of ours is left in it.
 */
static inline void
tollway_carrier_net_exit(struct tollway_carrier_net *carrier)
{
	/* Nobody schedules it after this. */
	xchg(&carrier->wanted, 1);
	cancel_work_sync(&carrier->work);
	if (carrier->registered)
		nf_unregister_net_hooks(carrier->net, carrier->hooks,
					TOLLWAY_CARRIER_HOOKS);
}

#endif /* _TOLLWAY_CARRIER_H */
