// SPDX-License-Identifier: GPL-2.0
/*
 * What kind of path is this?
 *
 * PP94 asks for a receiver that acknowledges every segment, queues that serve
 * flows in turn and a propagation delay that does not change. The Internet has
 * others. Each is noticed here, and what then becomes of a sample of the
 * service time is said here; the laws stay the same.
 *
 * Delayed ACKs: a pair has one ACK. While packets of ours wait at the bottleneck
 * it is never idle, and ACKs of successive pairs are as far apart as their
 * segments take. While none do, such a distance says how fast we send: it counts
 * only if it is shorter than the estimate.
 *
 * A queue that is shared (FIFO, a hash collision, a policer): pairs tell the
 * speed of the link and not our share, PP94 section 11. Then less arrives than
 * 1 / s_hat although n_hat says that packets wait; or, where nothing can wait,
 * much is lost. After four such round trips the connection takes for s_hat what
 * arrives: n_hat = S - R / s_hat becomes the number of packets that it has in the
 * shared queue, and the law keeps that at the setpoint, which starves nobody. As
 * soon as pairs tell the same as what arrives, for 16 round trips, it is over.
 *
 * A longer way: R is a minimum, so n_hat is too large by what the way grew, and
 * again less arrives than 1 / s_hat while n_hat says that packets wait. Here,
 * though, nobody's queue is there: when the connection sends less, for that
 * reason, the round-trip time does not fall. If it has not after eight round
 * trips, its minimum is the new R. In a shared queue that others keep full it
 * does not fall either, and the new R lets the connection hold its own there;
 * so this is done once in 255 round trips. A connection that was idle measures
 * R anew in any case.
 */

#include "pp.h"

/* ACKs of two segments or more in a row: they are delayed. */
#define PP_DELAYED_ACKS		7

/* Round trips in a row until a path is believed to be another one. */
#define PP_ROUNDS_ODD		4
#define PP_ROUNDS_FIT		16
#define PP_ROUNDS_FALL		8

/* Losses in a round trip that are nobody's bad luck. */
#define PP_LOSSES		8

/* What arrives, as a service time; 0 if the ACK does not tell. */
static u64 pp_path_arrivals(const struct pp_ack *ack)
{
	if (ack->rs->delivered <= 0 || ack->rs->interval_us <= 0)
		return 0;
	return div_u64((u64)min_t(u64, ack->rs->interval_us, PP_RTT_MAX_US) *
		       NSEC_PER_USEC << PP_SERVICE_SHIFT, ack->rs->delivered);
}

/* A sample of pairs while ACKs are delayed. */
static u64 pp_path_delayed(const struct pp *ca, u64 gap)
{
	if (!ca->estimate.service || !pp_is_low(ca) ||
	    gap < ca->estimate.service)
		return gap;
	return 0;
}

static void pp_path_watch_acks(const struct sock *sk, struct pp *ca,
			       const struct pp_ack *ack, bool paired)
{
	if (paired) {
		ca->held = 0;
		ca->delayed = 0;
	} else if (ack->acked > 1 && !ca->delayed &&
		   ++ca->held >= PP_DELAYED_ACKS) {
		ca->delayed = 1;
		pp_count(sock_net(sk), PP_COUNT_DELAYED);
	}
}

/* The most that a round trip delivered, as a rate. */
static u64 pp_path_seen(const struct pp *ca)
{
	return pp_law_rate(max(ca->flight, ca->flight_last), ca->delay_us);
}

/**
 * pp_path_bound() - most that the rate may be while the queue is low
 * @ca: connection
 *
 * A token bucket that is full lets a pair pass as one, and its rate would seem
 * to be that of the link before it. So the rate becomes no more than four times
 * what has been seen to arrive, and twice where the share is known.
 *
 * Return: rate, packets/s in Q16.
 */
u64 pp_path_bound(const struct pp *ca)
{
	return pp_path_seen(ca) * (ca->settled ? 2 : 4);
}

/* For the same reason a sample is no shorter than half of that. */
static u64 pp_path_credible(const struct pp *ca, u64 sample)
{
	if (!sample || !pp_is_low(ca) || !ca->estimate.service)
		return sample;
	return max(sample, pp_invert(2 * pp_path_bound(ca)));
}

/**
 * pp_path_sample() - the service time that an ACK tells, of whatever path
 * @sk: socket
 * @ca: connection
 * @ack: what the ACK brought
 *
 * Return: sample, ns in Q10, or 0.
 */
u64 pp_path_sample(struct sock *sk, struct pp *ca, const struct pp_ack *ack)
{
	u64 gap, sample;

	if (!ack->timed) {
		pp_train_break(&ca->train);
		return 0;
	}

	gap = pp_train_gap(&ca->train, ack->now_ns, ack->acked);
	sample = pp_train_ack(&ca->train, (u32)tcp_sk(sk)->first_tx_mstamp,
			      ack->now_ns, ack->acked,
			      READ_ONCE(ack->net->train));
	pp_path_watch_acks(sk, ca, ack, sample);
	if (!sample && ca->delayed)
		sample = pp_path_delayed(ca, gap);

	if (sample)
		ca->paired = 1;
	if (!ca->shared)
		return pp_path_credible(ca, sample);

	if (sample && sample < ca->estimate.service - ca->estimate.service / 4)
		ca->narrow = 1;
	return pp_path_arrivals(ack);
}

/**
 * pp_path_delay() - take the round-trip time of an ACK
 * @sk: socket
 * @ca: connection
 * @ack: what the ACK brought
 *
 * The first packet after an idle time finds nothing of ours on the path. Its
 * round-trip time is R, but for the time until it is its queue's turn.
 */
void pp_path_delay(const struct sock *sk, struct pp *ca,
		   const struct pp_ack *ack)
{
	u64 turn_us = ca->estimate.service >> (PP_SERVICE_SHIFT + 9);
	bool clean = ca->clean && ack->acked == 1;

	ca->clean = 0;
	if (ack->rs->rtt_us < 0)
		return;

	ca->rtt_us = clamp_t(long, ack->rs->rtt_us, 1, PP_RTT_MAX_US);
	if (!ca->delay_us || ca->rtt_us < ca->delay_us) {
		ca->delay_us = ca->rtt_us;
	} else if (clean && !ca->shared &&
		   ca->rtt_us > ca->delay_us + ca->delay_us / 8 + turn_us) {
		ca->delay_us = ca->rtt_us;
		pp_count(sock_net(sk), PP_COUNT_LONGER);
	}

	if (ca->fresh && ca->rtt_us < ca->low_us -
	    (ca->low_us - min(ca->delay_us, ca->low_us)) / 8)
		ca->fell = 1;
	if (!ca->shared)
		ca->low_us = min(ca->low_us, ca->rtt_us);
}

/* Did this round trip look like one over a queue of our own? */
static bool pp_path_fits(const struct sock *sk, const struct pp *ca)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 took_us = (u32)tp->tcp_mstamp - ca->round_us;
	u32 arrived = tp->delivered - ca->round_start;
	u64 busy_us, most_us;

	if (ca->losses >= PP_LOSSES && ca->losses > arrived / 4 && ca->empty)
		return false;

	/* Are as many packets waiting as the round-trip time says? */
	most_us = pp_law_rtt_ns(2 * (ca->queue + 4 * PP_PACKET), ca->delay_us,
				ca->estimate.service);
	most_us = div_u64(most_us, NSEC_PER_USEC) + ca->delay_us / 8;
	if (ca->low_us != U32_MAX && ca->low_us > most_us)
		return false;

	/* Does as much arrive? Segments are below 2^24, service below 2^42. */
	busy_us = div_u64(mul_u64_u32_shr(ca->estimate.service, arrived,
					  PP_SERVICE_SHIFT), NSEC_PER_USEC);
	return ca->empty || busy_us >= took_us - took_us / 8;
}

static void pp_path_share(const struct sock *sk, struct pp *ca)
{
	ca->shared = 1;
	ca->fresh = !ca->hold;
	ca->fell = 0;
	ca->odd = 0;
	pp_count(sock_net(sk), PP_COUNT_SHARED);
}

/* A round trip in a queue that is taken for a shared one. */
static void pp_path_shared(const struct sock *sk, struct pp *ca)
{
	if (ca->fresh && ++ca->odd >= PP_ROUNDS_FALL) {
		ca->fresh = 0;
		ca->odd = 0;
		if (!ca->fell) {
			ca->delay_us = ca->low_us;
			ca->hold = U8_MAX;
			ca->shared = 0;
			pp_count(sock_net(sk), PP_COUNT_LONGER);
		}
	} else if (!ca->fresh) {
		if (ca->narrow)
			ca->odd = 0;
		else if (ca->paired && ++ca->odd >= PP_ROUNDS_FIT)
			ca->shared = 0;
		if (!ca->shared)
			ca->odd = 0;
	}
}

/**
 * pp_path_round() - a round trip is over: what did it look like?
 * @sk: socket
 * @ca: connection
 */
void pp_path_round(const struct sock *sk, struct pp *ca)
{
	if (ca->hold)
		ca->hold--;

	if (ca->shared) {
		pp_path_shared(sk, ca);
	} else if (!ca->estimate.service || pp_path_fits(sk, ca)) {
		ca->odd = 0;
		ca->low_us = U32_MAX;
	} else if (++ca->odd >= PP_ROUNDS_ODD) {
		pp_path_share(sk, ca);
	}

	ca->empty = 0;
	ca->paired = 0;
	ca->narrow = 0;
	ca->losses = 0;
	ca->round_start = tcp_sk(sk)->delivered;
	ca->round_us = tcp_sk(sk)->tcp_mstamp;
}
