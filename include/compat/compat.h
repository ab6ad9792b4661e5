/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between the supported kernels: the modules are written for the newest one. A
 * difference that a macro of the kernel shows is tested by this macro. All others have a
 * HAVE_ symbol in compat_config.h, which include/compat/probe.sh makes by small compile tests
 * (not by version numbers, because kernels are patched).
 */
#ifndef _TOLLWAY_COMPAT_H
#define _TOLLWAY_COMPAT_H

#include <linux/skbuff.h>
#include <linux/sysctl.h>
#include <linux/timer.h>
#include <net/gen_stats.h>
#include <net/pkt_cls.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>
#include <net/tcp.h>

#include "compat_config.h"

#ifdef HAVE_NET_GSO_H	/* split from netdevice.h in 6.5 */
#include <net/gso.h>
#endif

/* The segments of a packet, kept in qdisc_skb_cb since 6.19. */
static inline void compat_qdisc_set_pkt_segs(struct sk_buff *skb, u32 segs)
{
#ifdef HAVE_QDISC_PKT_SEGS
	qdisc_skb_cb(skb)->pkt_segs = segs;
#endif
}

/* Why a packet is dropped that was queued: for qdiscs since 7.1. */
static inline void compat_qdisc_set_overlimit(const struct sk_buff *skb)
{
#if defined(HAVE_QDISC_DROP_REASON)
	tcf_set_qdisc_drop_reason(skb, QDISC_DROP_OVERLIMIT);
#elif defined(HAVE_SKB_DROP_REASON_QDISC)
	tcf_set_drop_reason(skb, SKB_DROP_REASON_QDISC_OVERLIMIT);
#endif
}

/* tcf_classify() has a block since 5.14; qdiscs call another since 2025. */
#ifndef HAVE_TCF_CLASSIFY_QDISC
static inline int tcf_classify_qdisc(struct sk_buff *skb,
				     const struct tcf_proto *tp,
				     struct tcf_result *res, bool compat_mode)
{
#ifdef HAVE_TCF_CLASSIFY_BLOCK
	return tcf_classify(skb, NULL, tp, res, compat_mode);
#else
	return tcf_classify(skb, tp, res, compat_mode);
#endif
}
#endif

#ifndef HAVE_TC_QDISC_STATS_DUMP	/* 6.1 */
static inline bool tc_qdisc_stats_dump(struct Qdisc *sch, unsigned long cl,
				       struct qdisc_walker *arg)
{
	if (arg->count >= arg->skip && arg->fn(sch, cl, arg) < 0) {
		arg->stop = 1;
		return false;
	}

	arg->count++;
	return true;
}
#endif

/* Counters of a class, which have had a lock of their own since 5.16. */
static inline int compat_gnet_stats_copy_basic(struct gnet_dump *d, u64 bytes,
					       u64 packets)
{
#ifdef HAVE_GNET_STATS_BASIC_SYNC
	struct gnet_stats_basic_sync basic;

	gnet_stats_basic_sync_init(&basic);
	u64_stats_set(&basic.bytes, bytes);
	u64_stats_set(&basic.packets, packets);
	return gnet_stats_copy_basic(d, NULL, &basic, false);
#else
	struct gnet_stats_basic_packed basic = {
		.bytes = bytes,
		.packets = packets,
	};

	return gnet_stats_copy_basic(NULL, d, NULL, &basic);
#endif
}

/* del_timer_sync() until 6.2, which went in 6.16. */
static inline void compat_timer_delete_sync(struct timer_list *timer)
{
#ifdef HAVE_TIMER_DELETE_SYNC
	timer_delete_sync(timer);
#else
	del_timer_sync(timer);
#endif
}

#ifndef HAVE_TCP_SND_CWND_SET
static inline u32 tcp_snd_cwnd(const struct tcp_sock *tp)
{
	return tp->snd_cwnd;
}

static inline void tcp_snd_cwnd_set(struct tcp_sock *tp, u32 val)
{
	tp->snd_cwnd = val;
}
#endif

/* __tcp_send_ack() takes flags for AccECN since 6.18. */
static inline void compat_tcp_send_ack(struct sock *sk, u32 rcv_nxt)
{
#ifdef HAVE_TCP_SEND_ACK_FLAGS
	__tcp_send_ack(sk, rcv_nxt, 0);
#else
	__tcp_send_ack(sk, rcv_nxt);
#endif
}

/* Was ECN negotiated, in whichever form? TCP_ECN_OK until AccECN came. */
static inline bool compat_tcp_ecn_negotiated(const struct tcp_sock *tp)
{
#ifdef TCP_ECN_OK
	return tp->ecn_flags & TCP_ECN_OK;
#else
	return tcp_ecn_mode_any(tp);
#endif
}

/* Does the peer report every mark by itself (AccECN)? */
static inline bool compat_tcp_ecn_accurate(const struct tcp_sock *tp)
{
#ifdef TCP_ECN_OK
	return false;
#else
	return tcp_ecn_mode_accecn(tp);
#endif
}

/* The option that signs a segment by TCP-AO, named since 6.7. */
#ifndef TCPOPT_AO
#define TCPOPT_AO	29
#endif

/*
 * Does TCP sign the segments of this socket, or has it done so? Each way that a
 * kernel has is a member of tcp_sock under its own configuration.
 */
static inline bool compat_tcp_is_signed(const struct tcp_sock *tp)
{
#ifdef CONFIG_TCP_AO
	if (rcu_access_pointer(tp->ao_info))
		return true;
#endif
#ifdef CONFIG_TCP_MD5SIG
	if (rcu_access_pointer(tp->md5sig_info))
		return true;
#endif
	return false;
}

/* Arguments of cong_control() before @rs: ack and flag came in 6.10. */
#ifdef HAVE_CONG_CONTROL_ACK
#define COMPAT_CONG_CONTROL_ARGS	struct sock *sk, u32 ack, int flag
#else
#define COMPAT_CONG_CONTROL_ARGS	struct sock *sk
#endif

/**
 * compat_tso_autosize() - segments of a packet, as the stack has them by default
 * @sk: socket
 * @mss: size of a segment
 * @least: not fewer
 *
 * Return: what the pacing rate sends in a millisecond, and a packet can have.
 */
static inline u32 compat_tso_autosize(const struct sock *sk, u32 mss, u32 least)
{
	unsigned long bytes = READ_ONCE(sk->sk_pacing_rate) >>
			      READ_ONCE(sk->sk_pacing_shift);

	bytes = min_t(unsigned long, bytes, sk->sk_gso_max_size);
	return max_t(u32, bytes / max(mss, 1U), least);
}

/*
 * min_tso_segs() became tso_segs(sk, mss) in 7.4, which says how many there are, not
 * the least of them. Both are limited by sk_gso_max_segs after that.
 */
#ifdef HAVE_TSO_SEGS
#define COMPAT_TSO_SEGS_OP		tso_segs
#define COMPAT_TSO_SEGS_ARGS		struct sock *sk, u32 mss_now
#define COMPAT_TSO_SEGS(sk, least)	compat_tso_autosize(sk, mss_now, least)
#else
#define COMPAT_TSO_SEGS_OP		min_tso_segs
#define COMPAT_TSO_SEGS_ARGS		struct sock *sk
#define COMPAT_TSO_SEGS(sk, least)	((void)(sk), (least))
#endif

/* proc handlers take a const table since 6.11. */
#ifdef HAVE_CTL_TABLE_CONST
#define COMPAT_CTL_CONST		const
#else
#define COMPAT_CTL_CONST
#endif

/* Tables ended with an empty entry until sizes were passed (6.6). */
#ifdef HAVE_NET_SYSCTL_SZ
#define compat_register_net_sysctl(net, path, table, size) \
	register_net_sysctl_sz(net, path, table, size)
#else
#define compat_register_net_sysctl(net, path, table, size) \
	((void)(size), register_net_sysctl(net, path, table))
#endif

#endif /* _TOLLWAY_COMPAT_H */
