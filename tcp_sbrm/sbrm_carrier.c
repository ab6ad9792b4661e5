// SPDX-License-Identifier: GPL-2.0
/*
 * The price field: explicit price feedback between two hosts
 *
 *	sender	 identification = 0	   router	   identification += price
 *	(cp) ---------------- DF, data ----- sch_sbrm --------------------> receiver
 *	     <------ ACK, urgent pointer = field + 1, URG clear ---------- (cp)
 *
 * CP05's footnote to 4.2.3 gives the carrier: the IPv4 identification field,
 * which means nothing while DF is set (RFC 6864). sch_sbrm with "feedback
 * price" adds the price of its link to it, or, with "feedback four-bit", sets
 * bits in it. The receiver returns what it found in the urgent pointer of its
 * ACKs, which means nothing while URG is clear. 0 says that there is nothing to
 * return, so that a peer without this module, or a path that clears the
 * pointer, is known by its silence.
 *
 * Both ways through netfilter: the hooks are registered in a namespace when its
 * first connection asks for them, and touch only packets of sockets whose
 * private area says so. As they are in the way of every packet of the namespace,
 * that is for its administrator to decide: cp is restricted (the administrator
 * may allow it to everyone by net.ipv4.tcp_allowed_congestion_control), and the
 * estimators of sbrm and rem that use the field are chosen by a sysctl.
 *
 * What is not believed:
 * - an echo or a field in a segment that TCP will discard: of a wrong checksum,
 *   against the policy of IPsec, from too far away (IP_MINTTL), signed where
 *   nothing is to be, or with a time stamp of the past (PAWS). The hook comes
 *   before TCP looks, so it looks by itself;
 * - one in a segment outside of the windows of the connection: who is not on
 *   the path must guess a sequence number first;
 * - a field that counts up by the same step, or jumps about: some box on the
 *   path rewrites the identification. The receiver falls silent.
 *
 * Connections whose segments are signed (TCP_MD5SIG, TCP-AO) have no price field:
 * the urgent pointer is part of what TCP has signed before it comes here. This
 * holds from the moment on at which the socket has a key.
 *
 * Each is counted in /proc/net/tcp_sbrm.
 */

#include <linux/ip.h>
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

#include "sbrm.h"

/* So many fields in a row with the same step, not 0, are a counter. */
#define SBRM_COUNTER_RUN	64

/*
 * Random numbers of 16 bits differ by 2^16 / 3 in the mean. Prices of a link
 * move by some units of 2^-12 from packet to packet.
 */
#define SBRM_JUMP_MAX		8192

/**
 * struct sbrm_carrier_net - hooks of a namespace for the price field
 * @net: the namespace
 * @work: registers them
 * @wanted: the work is scheduled, or done
 * @registered: they are in place
 */
struct sbrm_carrier_net {
	struct net		*net;
	struct work_struct	work;
	u32			wanted;
	bool			registered;
};

static unsigned int sbrm_carrier_id __read_mostly;

/**
 * struct sbrm_options - what the options of a segment say
 * @stamp: time stamp of the peer
 * @has_stamp: there is one
 * @is_signed: by TCP_MD5SIG or TCP-AO
 */
struct sbrm_options {
	u32	stamp;
	bool	has_stamp;
	bool	is_signed;
};

/* Our own socket, in a state that has sequence numbers, with a price field? */
static struct sbrm *sbrm_carrier(const struct sock *sk)
{
	struct sbrm *ca;

	if (!sk || !sk_fullsock(sk) || sk->sk_type != SOCK_STREAM ||
	    sk->sk_protocol != IPPROTO_TCP ||
	    (1 << sk->sk_state) & (TCPF_LISTEN | TCPF_CLOSE | TCPF_SYN_SENT))
		return NULL;
	if (!sbrm_owns(sk) || compat_tcp_is_signed(tcp_sk(sk)))
		return NULL;

	ca = inet_csk_ca(sk);
	return ca->carrier ? ca : NULL;
}

static bool sbrm_is_data(const struct sk_buff *skb, const struct iphdr *iph,
			 const struct tcphdr *th)
{
	return ntohs(iph->tot_len) > ip_hdrlen(skb) + th->doff * 4 ||
	       skb_is_gso(skb);
}

/* Sender: make the identification the price field, all zero. */
static void sbrm_field_clear(const struct net *net, struct sk_buff *skb,
			     struct iphdr *iph)
{
	if (!(iph->frag_off & htons(IP_DF))) {
		sbrm_count(net, SBRM_COUNT_NO_DF);
		return;
	}
	csum_replace2(&iph->check, iph->id, 0);
	iph->id = 0;
	/* Segmentation would count it up. */
	if (skb_is_gso(skb))
		skb_shinfo(skb)->gso_type |= SKB_GSO_TCP_FIXEDID;
}

/*
 * TCP holds the lock of the socket while it transmits. A device that sends its
 * packets through IP once more (ipvlan, vrf) does so without it: then this writes
 * what the connection says now, into the same packet.
 */
static unsigned int sbrm_hook_out(void *priv, struct sk_buff *skb,
				  const struct nf_hook_state *state)
{
	struct sbrm *ca = sbrm_carrier(state->sk);
	struct tcphdr *th;
	struct iphdr *iph;
	u16 echo;

	if (!ca || skb->protocol != htons(ETH_P_IP) ||
	    skb_ensure_writable(skb, ip_hdrlen(skb) + sizeof(struct tcphdr)))
		return NF_ACCEPT;

	iph = ip_hdr(skb);
	/* Not what a tunnel makes of it. */
	if (iph->protocol != IPPROTO_TCP)
		return NF_ACCEPT;
	th = (struct tcphdr *)((u8 *)iph + ip_hdrlen(skb));
	if (sbrm_is_data(skb, iph, th))
		sbrm_field_clear(state->net, skb, iph);

	echo = ca->field.echo;
	if (!echo || th->urg || !th->ack)
		return NF_ACCEPT;
	if (skb->ip_summed != CHECKSUM_PARTIAL)
		inet_proto_csum_replace2(&th->check, skb, th->urg_ptr,
					 htons(echo), false);
	th->urg_ptr = htons(echo);
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
		ca->field.jump += (jump - (s32)ca->field.jump) / 64;
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
		pr_info_once("something on a path rewrites the IP identification: no prices from there\n");
		return;
	}
	ca->field.echo = min_t(u32, (u32)value + 1, U16_MAX);
}

/* Would TCP take this segment, and the acknowledgment in it? */
static bool sbrm_in_window(const struct tcp_sock *tp, const struct tcphdr *th,
			   u32 len)
{
	u32 seq = ntohl(th->seq);
	u32 ack = ntohl(th->ack_seq);

	return th->ack && !th->syn && !th->rst &&
	       !before(seq + len, tp->rcv_wup) &&
	       !after(seq, tp->rcv_nxt + tcp_receive_window(tp)) &&
	       !before(ack, tp->snd_una) && !after(ack, tp->snd_nxt);
}

/**
 * sbrm_options() - look for options
 * @skb: segment
 * @offset: where its options are
 * @len: their length
 *
 * Return: what they say; nothing where the rest of them cannot be read.
 */
static struct sbrm_options sbrm_options(const struct sk_buff *skb,
					unsigned int offset, unsigned int len)
{
	struct sbrm_options found = { };
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
			found.stamp = ntohl(stamp);
			found.has_stamp = true;
		} else if (*option == TCPOPT_MD5SIG || *option == TCPOPT_AO) {
			found.is_signed = true;
		}
		option += size;
		len -= size;
	}
	return found;
}

/* Would TCP drop this packet before it looks at its own state? */
static bool sbrm_is_genuine(struct sock *sk, struct sk_buff *skb,
			    unsigned int header)
{
	return ip_hdr(skb)->ttl >= READ_ONCE(inet_sk(sk)->min_ttl) &&
	       xfrm4_policy_check(sk, XFRM_POLICY_IN, skb) &&
	       !nf_ip_checksum(skb, NF_INET_LOCAL_IN, header, IPPROTO_TCP);
}

/*
 * Is the segment of the past, RFC 7323 5.3? TCP believes such a one where no
 * time stamp came for 24 days, and where it brings nothing new; its price can
 * wait for the next.
 */
static bool sbrm_is_old(const struct tcp_sock *tp,
			const struct sbrm_options *options)
{
	return tp->rx_opt.tstamp_ok && options->has_stamp &&
	       (s32)(tp->rx_opt.ts_recent - options->stamp) > TCP_PAWS_WINDOW;
}

/**
 * sbrm_take() - take what a segment says of prices
 * @sk: socket, locked
 * @ca: its private area
 * @skb: segment, which TCP will not drop as such
 * @th: its header
 * @field: the price field of the packet, negative if it has none
 */
static void sbrm_take(const struct sock *sk, struct sbrm *ca,
		      const struct sk_buff *skb, const struct tcphdr *th,
		      int field)
{
	unsigned int header = ip_hdrlen(skb) + sizeof(*th);
	struct sbrm_options options =
		sbrm_options(skb, header, th->doff * 4 - sizeof(*th));
	u32 len = skb->len - ip_hdrlen(skb) - th->doff * 4;

	if (options.is_signed || sbrm_is_old(tcp_sk(sk), &options)) {
		sbrm_count(sock_net(sk), SBRM_COUNT_INVALID);
		return;
	}
	if (!sbrm_in_window(tcp_sk(sk), th, len)) {
		sbrm_count(sock_net(sk), SBRM_COUNT_OUTSIDE);
		return;
	}
	if (field >= 0)
		sbrm_field_keep(sk, ca, field);
	if (th->urg_ptr && !th->urg)
		ca->seen = ntohs(th->urg_ptr);
}

/*
 * Early demux has found the socket. A packet that comes while a process owns
 * the socket waits in its backlog: what it says of the price is given up, the
 * next one says it again.
 */
static unsigned int sbrm_hook_in(void *priv, struct sk_buff *skb,
				 const struct nf_hook_state *state)
{
	unsigned int header = ip_hdrlen(skb);
	struct sock *sk = skb->sk;
	const struct tcphdr *th;
	struct tcphdr copy;
	struct sbrm *ca;
	int field = -1;

	/* Without the lock a first look; again with it. */
	if (!sbrm_carrier(sk) || ip_hdr(skb)->protocol != IPPROTO_TCP)
		return NF_ACCEPT;
	th = skb_header_pointer(skb, header, sizeof(copy), &copy);
	if (!th || th->doff < 5 || skb->len < header + th->doff * 4)
		return NF_ACCEPT;

	if (skb->len > header + th->doff * 4 &&
	    ip_hdr(skb)->frag_off & htons(IP_DF))
		field = ntohs(ip_hdr(skb)->id);
	if (field < 0 && (!th->urg_ptr || th->urg))
		return NF_ACCEPT;
	if (!sbrm_is_genuine(sk, skb, header)) {
		sbrm_count(state->net, SBRM_COUNT_INVALID);
		return NF_ACCEPT;
	}

	bh_lock_sock_nested(sk);
	if (!sock_owned_by_user(sk)) {
		ca = sbrm_carrier(sk);
		if (ca)
			sbrm_take(sk, ca, skb, th, field);
	}
	bh_unlock_sock(sk);
	return NF_ACCEPT;
}

/* After everyone else has had a say: what is dropped is not counted. */
static const struct nf_hook_ops sbrm_hooks[] = {
	{
		.hook		= sbrm_hook_in,
		.pf		= NFPROTO_IPV4,
		.hooknum	= NF_INET_LOCAL_IN,
		.priority	= NF_IP_PRI_LAST,
	}, {
		.hook		= sbrm_hook_out,
		.pf		= NFPROTO_IPV4,
		.hooknum	= NF_INET_LOCAL_OUT,
		.priority	= NF_IP_PRI_LAST,
	},
};

static void sbrm_register_hooks(struct work_struct *work)
{
	struct sbrm_carrier_net *carrier =
		container_of(work, struct sbrm_carrier_net, work);
	int err = nf_register_net_hooks(carrier->net, sbrm_hooks,
					ARRAY_SIZE(sbrm_hooks));

	if (err) {
		pr_warn_ratelimited("no netfilter hooks for the price field: error %d\n",
				    err);
		/* The next connection tries again. */
		WRITE_ONCE(carrier->wanted, 0);
	} else {
		carrier->registered = true;
	}
}

/**
 * sbrm_carrier_use() - a connection wants the price field
 * @sk: its socket, locked
 *
 * Called where nothing may sleep: the hooks come by a work item. Until then
 * the field is silent.
 */
void sbrm_carrier_use(struct sock *sk)
{
	struct sbrm_carrier_net *carrier = net_generic(sock_net(sk),
						       sbrm_carrier_id);

	if (!READ_ONCE(carrier->wanted) && !xchg(&carrier->wanted, 1))
		schedule_work(&carrier->work);
}

static int __net_init sbrm_carrier_net_init(struct net *net)
{
	struct sbrm_carrier_net *carrier = net_generic(net, sbrm_carrier_id);

	carrier->net = net;
	INIT_WORK(&carrier->work, sbrm_register_hooks);
	return 0;
}

/* The namespace, or the module, goes: no socket of ours is left in it. */
static void __net_exit sbrm_carrier_net_exit(struct net *net)
{
	struct sbrm_carrier_net *carrier = net_generic(net, sbrm_carrier_id);

	cancel_work_sync(&carrier->work);
	if (carrier->registered)
		nf_unregister_net_hooks(net, sbrm_hooks,
					ARRAY_SIZE(sbrm_hooks));
}

static struct pernet_operations sbrm_carrier_net_ops = {
	.init	= sbrm_carrier_net_init,
	.exit	= sbrm_carrier_net_exit,
	.id	= &sbrm_carrier_id,
	.size	= sizeof(struct sbrm_carrier_net),
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
