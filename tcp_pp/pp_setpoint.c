// SPDX-License-Identifier: GPL-2.0
/*
 * The setpoint, how losses and marks change it, and the start of a connection
 *
 * The setpoint B is how many packets shall wait at the bottleneck. It is a setting, or
 * probed; either way one that was too much is tried again ever more rarely.
 */

#include <linux/random.h>

#include "pp.h"

/* PP94 Table 2, where it is probed: the first one, and the least. */
#define PP_SETPOINT_INITIAL	(5 * PP_PACKET)
#define PP_SETPOINT_MIN		(2 * PP_PACKET)
/*
 * A queue that is nearer to the setpoint has reached it: n_hat changes by two packets
 * whenever a pair is sent.
 */
#define PP_SETPOINT_NEAR	(2 * PP_PACKET)
/*
 * After so many it is not tried more rarely. Each takes 5 bits of a random number, and 6
 * are the most that a number of 32 bits has.
 */
#define PP_SETPOINT_TRIES	6
/*
 * Part of what a round trip holds: fewer losses than that may be by chance. The random
 * losses that were tested are at most 3 %, a 33rd.
 */
#define PP_SETPOINT_LOSSES	32
/*
 * This does not apply if fewer than 2040 packets (an 8-bit counter of 255, in units of
 * 2^3 packets) arrived since the last losses. CoDel drops 0.6 to 2 % of the packets of flows
 * with ten packets each, without end, which is at least one in 170. 2040 is twelve times
 * this, so hardly any gap between two of its drops is longer. With more, rare random losses
 * keep the setpoint at two packets for longer.
 */
#define PP_LOSSY_MAX		U8_MAX
#define PP_LOSSY_SHIFT		3
/*
 * The counter of losses has eight bits. It is full, and by then they were no more than
 * a quarter of what had arrived; or more than that.
 */
#define PP_LOSSES_FULL		(U8_MAX - 1)
#define PP_LOSSES_MUCH		U8_MAX

/**
 * pp_setpoint_begin() - the setpoint of a new connection, or of another path
 * @ca: connection
 *
 * What was too much is forgotten.
 */
void pp_setpoint_begin(struct pp *ca)
{
	ca->setpoint = READ_ONCE(ca->net->setpoint) << PP_PACKET_SHIFT ?:
		       PP_SETPOINT_INITIAL;
	ca->tries = 0;
	ca->raised = 0;
}

/*
 * Time to try a larger setpoint? With probability 1 / 4^tries where it is probed, and
 * 1 / 32^tries where it is given: forty flows that want 400 packets to wait where 100
 * may lose a whole queue each time that one of them tries.
 */
static bool pp_setpoint_is_due(const struct pp *ca, bool fixed)
{
	return likely(!ca->tries) ||
	       !(get_random_u32() >> (32 - (fixed ? 5 : 2) * ca->tries));
}

/**
 * pp_setpoint() - a round trip is over: is it time to try a larger setpoint?
 * @ca: connection
 *
 * Probing, PP94 section 7, by default with the numbers of Table 2. A setpoint that the queue
 * has not reached was not probed. Where a larger one was too much before, it is
 * tried the more rarely the more often that was so: on average after 4^tries times
 * as many round trips, or 32^tries. A setpoint that is given is the most that is tried, and
 * what was too much is forgotten as soon as it is reached. In a shared queue it stands.
 */
void pp_setpoint(struct pp *ca)
{
	u32 fixed = READ_ONCE(ca->net->setpoint) << PP_PACKET_SHIFT;
	u32 most = fixed ?: READ_ONCE(ca->net->setpoint_max) << PP_PACKET_SHIFT;
	u32 rounds = ca->rounds + 1;

	if (ca->shared)
		return;
	if (likely(fixed && !ca->tries)) {
		ca->setpoint = fixed;
		return;
	}
	/* At most 3 are kept. */
	if (rounds < READ_ONCE(ca->net->setpoint_every)) {
		ca->rounds = rounds;
		return;
	}
	ca->rounds = 0;
	if (ca->queue + PP_SETPOINT_NEAR >= ca->setpoint &&
	    pp_setpoint_is_due(ca, fixed)) {
		ca->setpoint += READ_ONCE(ca->net->setpoint_step);
		ca->raised = 1;
	}
	if (ca->setpoint >= most) {
		ca->setpoint = most;
		if (fixed)
			ca->tries = 0;
	}
}

/**
 * pp_setpoint_cut() - the setpoint is too much: packets were lost, or marked
 * @ca: connection
 */
void pp_setpoint_cut(struct pp *ca)
{
	u32 cut = PP_MILLE - READ_ONCE(ca->net->setpoint_cut);

	if (ca->shared)
		return;
	ca->rounds = 0;
	cut = div_u64((u64)ca->setpoint * cut, PP_MILLE);
	/*
	 * Where it is given, what one flow raised is given back by one: with a
	 * quarter of 3 packets less for 2 more, three flows would have to lose.
	 */
	if (READ_ONCE(ca->net->setpoint) && ca->tries)
		cut = max(cut, READ_ONCE(ca->net->setpoint_step));
	ca->setpoint = max_t(u32, ca->setpoint - min_t(u32, ca->setpoint, cut),
			     min_t(u32, ca->setpoint, PP_SETPOINT_MIN));
	/* The first time, or since the last. */
	if ((ca->raised || !ca->tries) && ca->tries < PP_SETPOINT_TRIES)
		ca->tries++;
	ca->raised = 0;
}

/*
 * The counter is full before a path that holds thousands has lost a quarter. Then the
 * part that is lost until now is the measure for the whole round trip.
 */
static void pp_loss_count(const struct tcp_sock *tp, struct pp *ca, u32 losses)
{
	u32 arrived = tp->delivered - ca->round_start;

	if (ca->losses >= PP_LOSSES_FULL)
		return;
	losses += ca->losses;
	if (losses < PP_LOSSES_FULL)
		ca->losses = losses;
	else
		ca->losses = losses > arrived / 4 ? PP_LOSSES_MUCH :
						    PP_LOSSES_FULL;
}

/**
 * pp_loss() - packets are lost
 * @tp: socket
 * @ca: connection
 * @losses: how many
 *
 * PP94 probes by losses: each counts, once in a round trip. A setpoint that is
 * given is not the cause of each, see pp_setpoint_lost().
 */
void pp_loss(const struct tcp_sock *tp, struct pp *ca, u32 losses)
{
	bool first = !ca->losses;

	pp_loss_count(tp, ca, losses);
	if (first && !READ_ONCE(ca->net->setpoint))
		pp_setpoint_cut(ca);
}

/**
 * pp_has_lost() - has this round trip lost more than a limit?
 * @ca: connection
 * @limit: segments, at most a quarter of what arrived
 *
 * Return: true if so.
 */
bool pp_has_lost(const struct pp *ca, u32 limit)
{
	return ca->losses > limit || ca->losses == PP_LOSSES_MUCH;
}

/**
 * pp_setpoint_lost() - a round trip with losses is over: was the setpoint too much?
 * @ca: connection
 *
 * PP94 asks for probing only; this is for a setpoint that is given. A queue without
 * room drops many packets, and CoDel one now and then for as long as packets wait for
 * longer than its target. A link that loses packets by chance looks like the latter:
 * there the setpoint comes down to two packets for nothing, and a flow uses as much of
 * the link as with ten (test_wild). Not where ACKs come in bursts: there two packets
 * are not enough for equal shares.
 */
void pp_setpoint_lost(struct pp *ca)
{
	u32 arrived = ca->flight >> PP_PACKET_SHIFT;

	if (READ_ONCE(ca->net->setpoint) &&
	    ((ca->lossy && !pp_is_bunched(ca)) ||
	     pp_has_lost(ca, arrived / PP_SETPOINT_LOSSES))) {
		/*
		 * The one that raised its setpoint is not always the one that loses:
		 * where losses go on, who did not raise it may do so later. Losses of
		 * one attempt last for some round trips: these are others if more than
		 * a quarter of the 2040 packets arrived in between without any.
		 */
		if (ca->lossy < PP_LOSSY_MAX / 4 * 3)
			ca->raised = 1;
		pp_setpoint_cut(ca);
	}
	ca->lossy = PP_LOSSY_MAX;
}

/**
 * pp_setpoint_kept() - a round trip without losses is over, and there were some before
 * @ca: connection
 */
void pp_setpoint_kept(struct pp *ca)
{
	u32 arrived = ca->flight >> (PP_PACKET_SHIFT + PP_LOSSY_SHIFT);

	ca->lossy -= clamp_t(u32, arrived, 1, ca->lossy);
}

/**
 * pp_start_window() - the most that a connection may send first after an idle time
 * @sk: socket
 * @ca: connection; nothing is known of its path
 *
 * Return: segments, %TCP_INIT_CWND and up: what the sysctls or the route say is more at times.
 */
u32 pp_start_window(struct sock *sk, const struct pp *ca)
{
	const struct dst_entry *dst = __sk_dst_get(sk);
	u32 route = dst ? dst_metric(dst, RTAX_INITCWND) : 0;

	if (READ_ONCE(ca->net->initial_rate))
		return U32_MAX;
	return max3((u32)TCP_INIT_CWND, READ_ONCE(ca->net->initial), route);
}

/**
 * pp_start_grow() - nothing is known yet: a pair more in each round trip
 * @sk: socket
 * @ca: connection
 *
 * Only if the window was used: of an application that sends single segments no pair ever
 * tells anything, and what it sends at once after an hour may not be an hour's growth.
 */
void pp_start_grow(struct sock *sk, const struct pp *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_is_cwnd_limited(sk))
		return;
	tcp_snd_cwnd_set(tp, min(tcp_snd_cwnd(tp) + 2, tp->snd_cwnd_clamp));
	pp_pace(sk, pp_law_rate(min_t(u32, tcp_snd_cwnd(tp), PP_PACKETS_MAX) <<
				PP_PACKET_SHIFT, ca->rtt_us));
}

/**
 * pp_start_wait() - nothing is known yet: wait for the first sample
 * @sk: socket
 * @ca: connection
 *
 * A window of less than a train would tell nothing. But
 * when half of the only train has been acknowledged, the next ACK brings the first
 * sample, and the segment that this one lets go would be none of a pair: nine
 * sources that begin at once are nine packets more in the queue of the tenth. Not
 * with a larger window: there the application had no more to send.
 */
void pp_start_wait(struct sock *sk, const struct pp *ca)
{
	u32 train = READ_ONCE(ca->net->train);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 flight = tcp_packets_in_flight(tp);
	u32 cwnd = max(tcp_snd_cwnd(tp), train);

	if (tp->data_segs_out <= train && flight && flight < train && cwnd == train)
		cwnd = flight;
	tcp_snd_cwnd_set(tp, min(cwnd, tp->snd_cwnd_clamp));
}
