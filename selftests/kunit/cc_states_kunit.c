// SPDX-License-Identifier: GPL-2.0
/*
 * Callbacks of the congestion controls before init() and after release()
 *
 * The stack calls most of them for sockets whose private area is zero, or still
 * that of another congestion control. Nothing there may be used or changed then.
 * Each is called here as well, in each state of a socket, on a socket that was
 * never connected: what is tested is that nothing depends on the order.
 */

#include <kunit/test.h>
#include <linux/inet_diag.h>
#include <linux/module.h>
#include <linux/net.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/sockptr.h>
#include <net/net_namespace.h>
#include <net/tcp.h>

#include "cc_names.h"
#include "compat.h"

/* A socket with a congestion control, locked. */
static struct socket *cc_socket(struct kunit *test, const char *name)
{
	struct socket *sock;
	int err;

	err = sock_create_kern(&init_net, AF_INET, SOCK_STREAM, IPPROTO_TCP,
			       &sock);
	KUNIT_ASSERT_EQ(test, err, 0);
	err = sock->ops->setsockopt(sock, SOL_TCP, TCP_CONGESTION,
				    KERNEL_SOCKPTR((char *)name), strlen(name));
	if (err)
		sock_release(sock);
	KUNIT_ASSERT_EQ_MSG(test, err, 0, "%s", name);
	lock_sock(sock->sk);
	return sock;
}

static void cc_cong_control(const struct tcp_congestion_ops *ops,
			    struct sock *sk)
{
	struct rate_sample rs = {
		.delivered = 1,
		.interval_us = 1000,
		.rcv_interval_us = 1000,
		.rtt_us = 1000,
		.acked_sacked = 1,
		.losses = 1,
	};

#ifdef HAVE_CONG_CONTROL_ACK
	ops->cong_control(sk, 0, 0, &rs);
#else
	ops->cong_control(sk, &rs);
#endif
}

static u32 cc_tso_segs(const struct tcp_congestion_ops *ops, struct sock *sk)
{
#ifdef HAVE_TSO_SEGS
	return ops->tso_segs(sk, tcp_sk(sk)->mss_cache);
#else
	return ops->min_tso_segs(sk);
#endif
}

/* All callbacks that are there but init(), whatever they make of it. */
static void cc_call_all(struct kunit *test,
			const struct tcp_congestion_ops *ops, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	int event, state;

	for (state = TCP_CA_Open; state <= TCP_CA_Loss; state++) {
		if (ops->set_state)
			ops->set_state(sk, state);
		inet_csk(sk)->icsk_ca_state = state;
		if (ops->cwnd_event)
			for (event = 0; event <= CA_EVENT_ECN_IS_CE; event++)
				ops->cwnd_event(sk, event);
		tp->delivered++;
		cc_cong_control(ops, sk);
		KUNIT_EXPECT_GE(test, ops->ssthresh(sk), 2U);
		KUNIT_EXPECT_GE(test, cc_tso_segs(ops, sk), 1U);
		KUNIT_EXPECT_GE(test, ops->undo_cwnd(sk), 1U);
		if (ops->sndbuf_expand)
			KUNIT_EXPECT_LE(test, ops->sndbuf_expand(sk), 3U);
		KUNIT_EXPECT_GE(test, tcp_snd_cwnd(tp), 1U);
	}
	inet_csk(sk)->icsk_ca_state = TCP_CA_Open;
	/* The last one, as it may end what init() began. */
	if (ops->release)
		ops->release(sk);
}

static size_t cc_info(const struct tcp_congestion_ops *ops, struct sock *sk)
{
	union tcp_cc_info info;
	int attr;

	return ops->get_info ? ops->get_info(sk, ~0U, &attr, &info) : 0;
}

/* Without init() nothing is read from the area, and nothing written to it. */
static void cc_before_init(struct kunit *test, const char *name, int fill,
			   bool initialized)
{
	struct socket *sock = cc_socket(test, name);
	struct inet_connection_sock *icsk = inet_csk(sock->sk);
	const struct tcp_congestion_ops *ops = icsk->icsk_ca_ops;
	int state;

	for (state = TCP_ESTABLISHED; state < TCP_MAX_STATES; state++) {
		memset(icsk->icsk_ca_priv, fill, sizeof(icsk->icsk_ca_priv));
		icsk->icsk_ca_initialized = initialized;
		sock->sk->sk_state = state;
		cc_call_all(test, ops, sock->sk);
		KUNIT_EXPECT_EQ_MSG(test, cc_info(ops, sock->sk), (size_t)0,
				    "%s says something of state %d", name,
				    state);
		KUNIT_EXPECT_TRUE_MSG(test,
				      !memchr_inv(icsk->icsk_ca_priv, fill,
						  sizeof(icsk->icsk_ca_priv)),
				      "%s wrote in state %d", name, state);
		KUNIT_EXPECT_PTR_EQ(test, icsk->icsk_ca_ops, ops);
	}
	sock->sk->sk_state = TCP_CLOSE;
	memset(icsk->icsk_ca_priv, 0, sizeof(icsk->icsk_ca_priv));
	icsk->icsk_ca_initialized = 0;
	release_sock(sock->sk);
	sock_release(sock);
}

/* A socket that is new, or was closed and has another control since. */
static void cc_zero_test(struct kunit *test)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cc_names); i++) {
		cc_before_init(test, cc_names[i], 0, false);
		cc_before_init(test, cc_names[i], 0, true);
	}
}

/* What another control left, which the route has replaced. */
static void cc_leftover_test(struct kunit *test)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cc_names); i++)
		cc_before_init(test, cc_names[i], 0xa5, false);
}

/* init() in each state, all callbacks, release(), and all of them again. */
static void cc_after_init_test(struct kunit *test)
{
	const struct tcp_congestion_ops *ops;
	struct inet_connection_sock *icsk;
	struct socket *sock;
	size_t i;
	int state;

	for (i = 0; i < ARRAY_SIZE(cc_names); i++) {
		sock = cc_socket(test, cc_names[i]);
		icsk = inet_csk(sock->sk);
		ops = icsk->icsk_ca_ops;
		for (state = TCP_ESTABLISHED; state < TCP_MAX_STATES; state++) {
			sock->sk->sk_state = state;
			ops->init(sock->sk);
			icsk->icsk_ca_initialized = 1;
			cc_info(icsk->icsk_ca_ops, sock->sk);
			cc_call_all(test, icsk->icsk_ca_ops, sock->sk);
			KUNIT_EXPECT_PTR_EQ_MSG(test, icsk->icsk_ca_ops, ops,
						"%s, state %d", cc_names[i],
						state);
			/* As tcp_disconnect() does. */
			memset(icsk->icsk_ca_priv, 0,
			       sizeof(icsk->icsk_ca_priv));
			icsk->icsk_ca_initialized = 0;
			cc_call_all(test, icsk->icsk_ca_ops, sock->sk);
			cc_info(icsk->icsk_ca_ops, sock->sk);
		}
		sock->sk->sk_state = TCP_CLOSE;
		release_sock(sock->sk);
		sock_release(sock);
	}
}

/*
 * get_info() has no lock: ss asks while another processor changes the control, so
 * what was ours a moment ago may be another one's. No pointer in it may be followed.
 */
static void cc_unlocked_info_test(struct kunit *test)
{
	struct inet_connection_sock *icsk;
	struct socket *sock;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cc_names); i++) {
		sock = cc_socket(test, cc_names[i]);
		icsk = inet_csk(sock->sk);
		memset(icsk->icsk_ca_priv, 0xa5, sizeof(icsk->icsk_ca_priv));
		icsk->icsk_ca_initialized = 1;
		cc_info(icsk->icsk_ca_ops, sock->sk);
		memset(icsk->icsk_ca_priv, 0, sizeof(icsk->icsk_ca_priv));
		icsk->icsk_ca_initialized = 0;
		release_sock(sock->sk);
		sock_release(sock);
	}
}

/* One callback, by its number; those that a control leaves out do nothing. */
enum {
	CC_INIT, CC_RELEASE, CC_SET_STATE, CC_EVENT, CC_CONTROL, CC_SSTHRESH,
	CC_TSO_SEGS, CC_UNDO, CC_SNDBUF, CC_INFO, CC_CALLS
};

static void cc_call_one(struct kunit *test, struct sock *sk, u32 call, u32 with)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	const struct tcp_congestion_ops *ops = icsk->icsk_ca_ops;

	switch (call) {
	case CC_INIT:
		ops->init(sk);
		icsk->icsk_ca_initialized = 1;
		break;
	case CC_RELEASE:
		/* As tcp_disconnect() and a change of the control do. */
		if (ops->release)
			ops->release(sk);
		icsk->icsk_ca_initialized = 0;
		memset(icsk->icsk_ca_priv, 0, sizeof(icsk->icsk_ca_priv));
		break;
	case CC_SET_STATE:
		with %= TCP_CA_Loss + 1;
		if (ops->set_state)
			ops->set_state(sk, with);
		icsk->icsk_ca_state = with;
		break;
	case CC_EVENT:
		if (ops->cwnd_event)
			ops->cwnd_event(sk, with % (CA_EVENT_ECN_IS_CE + 1));
		break;
	case CC_CONTROL:
		tcp_sk(sk)->delivered++;
		cc_cong_control(ops, sk);
		break;
	case CC_SSTHRESH:
		KUNIT_EXPECT_GE(test, ops->ssthresh(sk), 2U);
		break;
	case CC_TSO_SEGS:
		KUNIT_EXPECT_GE(test, cc_tso_segs(ops, sk), 1U);
		break;
	case CC_UNDO:
		KUNIT_EXPECT_GE(test, ops->undo_cwnd(sk), 1U);
		break;
	case CC_SNDBUF:
		if (ops->sndbuf_expand)
			KUNIT_EXPECT_LE(test, ops->sndbuf_expand(sk), 3U);
		break;
	case CC_INFO:
		cc_info(ops, sk);
		break;
	}
	KUNIT_EXPECT_GE(test, tcp_snd_cwnd(tcp_sk(sk)), 1U);
}

#define CC_ROUNDS 20000

/*
 * Callbacks in any order, with any argument, in any state of the socket. In the lab
 * the seed follows from that of the boot. KUnit runs before parameters are parsed.
 */
static void cc_any_order_test(struct kunit *test)
{
	const struct tcp_congestion_ops *ops;
	u64 seed = get_random_u64();
	struct rnd_state rnd;
	struct socket *sock;
	u32 round;
	size_t i;

	kunit_info(test, "seed %llu\n", seed);
	prandom_seed_state(&rnd, seed);
	for (i = 0; i < ARRAY_SIZE(cc_names); i++) {
		sock = cc_socket(test, cc_names[i]);
		ops = inet_csk(sock->sk)->icsk_ca_ops;
		for (round = 0; round < CC_ROUNDS; round++) {
			u32 bits = prandom_u32_state(&rnd);

			if (!(bits >> 29))
				sock->sk->sk_state = TCP_ESTABLISHED +
					(bits >> 16 & 0xff) %
					(TCP_MAX_STATES - TCP_ESTABLISHED);
			cc_call_one(test, sock->sk, (bits & 0xff) % CC_CALLS,
				    bits >> 8 & 0xff);
		}
		cc_call_one(test, sock->sk, CC_RELEASE, 0);
		/* A connection without ECN has others until release(). */
		KUNIT_EXPECT_PTR_EQ_MSG(test, inet_csk(sock->sk)->icsk_ca_ops,
					ops, "%s", cc_names[i]);
		inet_csk(sock->sk)->icsk_ca_state = TCP_CA_Open;
		sock->sk->sk_state = TCP_CLOSE;
		release_sock(sock->sk);
		sock_release(sock);
	}
}

static struct kunit_case cc_states_cases[] = {
	KUNIT_CASE(cc_zero_test),
	KUNIT_CASE(cc_leftover_test),
	KUNIT_CASE(cc_after_init_test),
	KUNIT_CASE(cc_unlocked_info_test),
	KUNIT_CASE(cc_any_order_test),
	{}
};

static struct kunit_suite cc_states_suite = {
	.name = "tollway_cc_states",
	.test_cases = cc_states_cases,
};

kunit_test_suite(cc_states_suite);

MODULE_DESCRIPTION("KUnit tests of callbacks before init() and after release()");
MODULE_LICENSE("GPL");
