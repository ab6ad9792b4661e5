// SPDX-License-Identifier: GPL-2.0
/*
 * What does a congestion control cost? Registers "timed", which is another
 * congestion control in all it does, and counts the cycles of its callbacks
 * while real connections use it.
 *
 * Cycles are those of the time stamp counter, so that this works in virtual
 * time too; what measuring costs itself is taken off. Results go to the
 * kernel's log when the module leaves, a line for each callback:
 *
 *	cc_cost: <name> <callback> calls <calls> cycles <cycles> late <calls>
 *	cc_cost: <name> acks <ACKs>
 *
 * calls and cycles are those of calls that nothing interrupted (longer than
 * "late" cycles), which are counted apart.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/net.h>
#include <linux/sockptr.h>
#include <net/net_namespace.h>
#include <net/tcp.h>

#include "compat.h"
#include "cost.h"

static char *cc = "";
module_param(cc, charp, 0444);
MODULE_PARM_DESC(cc, "name of the congestion control to time");

static uint late = 20000;
module_param(late, uint, 0444);
MODULE_PARM_DESC(late, "cycles after which a call was interrupted");

enum cc_cost_call {
	CC_COST_CONG_CONTROL,
	CC_COST_CONG_AVOID,
	CC_COST_PKTS_ACKED,
	CC_COST_IN_ACK_EVENT,
	CC_COST_CWND_EVENT,
	CC_COST_SET_STATE,
	CC_COST_SSTHRESH,
	CC_COST_UNDO_CWND,
	CC_COST_TSO_SEGS,
	CC_COST_CALLS
};

static const char * const cc_cost_names[] = {
	[CC_COST_CONG_CONTROL]	= "cong_control",
	[CC_COST_CONG_AVOID]	= "cong_avoid",
	[CC_COST_PKTS_ACKED]	= "pkts_acked",
	[CC_COST_IN_ACK_EVENT]	= "in_ack_event",
	[CC_COST_CWND_EVENT]	= "cwnd_event",
	[CC_COST_SET_STATE]	= "set_state",
	[CC_COST_SSTHRESH]	= "ssthresh",
	[CC_COST_UNDO_CWND]	= "undo_cwnd",
	[CC_COST_TSO_SEGS]	= "tso_segs",
};

/**
 * struct cc_cost_sum - what a callback cost
 * @calls: calls that nothing interrupted
 * @cycles: of these
 * @late: the other calls
 */
struct cc_cost_sum {
	u64	calls;
	u64	cycles;
	u64	late;
};

static struct cc_cost_sum cc_cost_sums[CC_COST_CALLS];
static u64 cc_cost_acks;
/* Cycles that measuring a call adds to it. */
static u64 overhead;

/* One CPU: UML has no other. */
static void cc_cost_add(enum cc_cost_call call, u64 cycles)
{
	struct cc_cost_sum *sum = &cc_cost_sums[call];

	if (cycles > late) {
		sum->late++;
		return;
	}
	sum->calls++;
	sum->cycles += cycles;
}

/* The operations that are timed, and a socket that keeps their module. */
static const struct tcp_congestion_ops *real;
static struct socket *holder;

#define CC_COST_TIME(call, statement) do {			\
	u64 start = cost_cycles();				\
								\
	statement;						\
	cc_cost_add(call, cost_cycles() - start);		\
} while (0)

static void timed_cong_control(COMPAT_CONG_CONTROL_ARGS,
			       const struct rate_sample *rs)
{
#ifdef HAVE_CONG_CONTROL_ACK
	CC_COST_TIME(CC_COST_CONG_CONTROL,
		     real->cong_control(sk, ack, flag, rs));
#else
	CC_COST_TIME(CC_COST_CONG_CONTROL, real->cong_control(sk, rs));
#endif
}

static void timed_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	CC_COST_TIME(CC_COST_CONG_AVOID, real->cong_avoid(sk, ack, acked));
}

static void timed_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	CC_COST_TIME(CC_COST_PKTS_ACKED, real->pkts_acked(sk, sample));
}

/* Called for each ACK: so always there. */
static void timed_in_ack_event(struct sock *sk, u32 flags)
{
	cc_cost_acks++;
	if (real->in_ack_event)
		CC_COST_TIME(CC_COST_IN_ACK_EVENT,
			     real->in_ack_event(sk, flags));
}

static void timed_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	CC_COST_TIME(CC_COST_CWND_EVENT, real->cwnd_event(sk, event));
}

static void timed_set_state(struct sock *sk, u8 state)
{
	CC_COST_TIME(CC_COST_SET_STATE, real->set_state(sk, state));
}

static u32 timed_ssthresh(struct sock *sk)
{
	u32 value;

	CC_COST_TIME(CC_COST_SSTHRESH, value = real->ssthresh(sk));
	return value;
}

static u32 timed_undo_cwnd(struct sock *sk)
{
	u32 value;

	CC_COST_TIME(CC_COST_UNDO_CWND, value = real->undo_cwnd(sk));
	return value;
}

static u32 timed_tso_segs(COMPAT_TSO_SEGS_ARGS)
{
	u32 value;

#ifdef HAVE_TSO_SEGS
	CC_COST_TIME(CC_COST_TSO_SEGS, value = real->tso_segs(sk, mss_now));
#else
	CC_COST_TIME(CC_COST_TSO_SEGS, value = real->min_tso_segs(sk));
#endif
	return value;
}

static struct tcp_congestion_ops timed;

/* init, release, get_info and the like are not timed. */
static void cc_cost_wrap(void)
{
	timed = *real;
	strscpy(timed.name, "timed", sizeof(timed.name));
	timed.owner = THIS_MODULE;
	timed.flags |= TCP_CONG_NON_RESTRICTED;
	timed.in_ack_event = timed_in_ack_event;
	timed.ssthresh = timed_ssthresh;
	if (real->cong_control)
		timed.cong_control = timed_cong_control;
	if (real->cong_avoid)
		timed.cong_avoid = timed_cong_avoid;
	if (real->pkts_acked)
		timed.pkts_acked = timed_pkts_acked;
	if (real->cwnd_event)
		timed.cwnd_event = timed_cwnd_event;
	if (real->set_state)
		timed.set_state = timed_set_state;
	if (real->undo_cwnd)
		timed.undo_cwnd = timed_undo_cwnd;
	if (real->COMPAT_TSO_SEGS_OP)
		timed.COMPAT_TSO_SEGS_OP = timed_tso_segs;
}

static void nothing_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
}

static const struct tcp_congestion_ops nothing = {
	.cong_avoid	= nothing_cong_avoid,
};

/* Cycles that a call of a function that does nothing seems to take. */
static u64 cc_cost_overhead(void)
{
	struct cc_cost_sum *sum = &cc_cost_sums[CC_COST_CONG_AVOID];
	u64 least = U64_MAX;
	int i, turn;

	real = &nothing;
	for (turn = 0; turn < 100; turn++) {
		memset(sum, 0, sizeof(*sum));
		for (i = 0; i < 100; i++)
			timed_cong_avoid(NULL, 0, 0);
		if (sum->calls)
			least = min(least, div64_u64(sum->cycles, sum->calls));
	}
	memset(sum, 0, sizeof(*sum));
	return least;
}

static int __init cc_cost_init(void)
{
	int err;

	overhead = cc_cost_overhead();
	err = sock_create_kern(&init_net, AF_INET, SOCK_STREAM, IPPROTO_TCP,
			       &holder);
	if (err)
		return err;

	err = holder->ops->setsockopt(holder, SOL_TCP, TCP_CONGESTION,
				      KERNEL_SOCKPTR(cc), strlen(cc));
	if (!err) {
		real = inet_csk(holder->sk)->icsk_ca_ops;
		cc_cost_wrap();
		err = tcp_register_congestion_control(&timed);
	}
	if (err)
		sock_release(holder);
	else
		pr_info("timing %s\n", real->name);
	return err;
}

static void cc_cost_say(enum cc_cost_call call)
{
	const struct cc_cost_sum *sum = &cc_cost_sums[call];

	if (sum->calls || sum->late)
		pr_info("%s %s calls %llu cycles %llu late %llu\n", real->name,
			cc_cost_names[call], sum->calls,
			sum->cycles - min(sum->cycles, overhead * sum->calls),
			sum->late);
}

static void __exit cc_cost_exit(void)
{
	enum cc_cost_call call;

	tcp_unregister_congestion_control(&timed);
	for (call = 0; call < CC_COST_CALLS; call++)
		cc_cost_say(call);
	pr_info("%s acks %llu\n", real->name, cc_cost_acks);
	sock_release(holder);
}

module_init(cc_cost_init)
module_exit(cc_cost_exit)
MODULE_DESCRIPTION("Cost of a congestion control in cycles");
MODULE_LICENSE("GPL");
