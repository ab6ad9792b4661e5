// SPDX-License-Identifier: GPL-2.0
/*
 * The propagation delay R
 *
 * R is the smallest round-trip time. It is increased if a path has become longer (pp_path.c).
 * If it was measured while others filled a FIFO, it is too large, and stays too large,
 * because the connection itself then keeps the FIFO full. To detect this, the connection
 * sends nothing for a time: for a round trip if there is a sign of it (a look), and for some
 * service times at regular times (a peek).
 */

#include <linux/bitops.h>

#include "pp.h"

/*
 * A queue that may be full of ours: a round trip in which more than this part of what
 * arrives is lost counts as 4, so that R is looked at after 16 of them; if R stays, as 2,
 * and then as 1. A round trip that says nothing takes one back, and one without losses in
 * which little waits takes all back. A look costs a round trip. If they came more often, a
 * path with random losses would be used less (by 1 to 2 % now, where 8 % of the packets
 * are lost). If less often, or with a larger part, one flow would starve the others of a
 * FIFO for longer.
 */
#define PP_FULL_LOSSES		64
#define PP_FULL_STEP		4
#define PP_LOOKS		2

/*
 * Without losses nothing shows an R that is too large. So each 8 s (2^23 us), or each 16
 * to 32 round trips (2^4) if these take longer, the connection sends nothing until its
 * queue should be empty, then for four service times, and for a margin of two more. If it
 * came less often, a flow would keep the queue that others have left for longer.
 *
 * The first of these times passes, as R was measured not long ago. The first three of them
 * (PP_PEEKS) are 1, 2 and 4 s long, or 8 to 16 round trips, if the kernel knows a round-trip
 * time that is shorter by more than a 16th (PP_PEEK_DOUBT), as that of the SYN, so that there
 * is a reason to doubt R. Without these, the last of eight flows at 10 Mb/s and 5 ms, whose
 * first segment had waited for the turns of all others behind an ACK that had waited, too,
 * kept an R of 23 ms for up to 16 s; and with an eighth, one at 40 ms had 54.6 ms for 13 s.
 *
 * n_hat may be wrong by 2 packets for the pair that is counted, and by as many for what a
 * pair changes it by: the queue is empty at the latest when four packets were served, and
 * the margin shows in R if that was too large. R is a minimum, and what comes earlier than
 * that by more than half of the margin seldom does so by chance: then R is looked at, which
 * takes a round trip if it was chance. (If ACKs are delayed and trains have four segments,
 * n_hat may be wrong by four packets for a train, and less of the margin is left.)
 *
 * If R is right, the link is that of the others for this time. What waits of theirs, up to
 * their setpoints, keeps it busy: of one other flow ten packets, of which the link serves
 * one more in each service time than come. When that has gone, each of the others takes
 * the whole link for its share. With a quarter of R it had, where R is long: three flows
 * at 100 Mb/s and 150 ms filled the queue with 1049 packets then. With a 16th of R, and
 * with a margin of four, two flows had 180, where they have 22 now.
 *
 * A margin of less than 64 us could not be told from the jitter of a host, and one of more
 * than a 16th of R would leave a link with one flow idle for longer than necessary. Where
 * few packets fit into R, the time beyond that of the queue is no more than a quarter of R.
 * With that, nothing shows where R is less than a service time. So the early ones are longer:
 * at most a 64th (2^-6) of the time to the next one. Either way a flow which is alone leaves
 * the link idle for no more than 1.6 % of the time.
 *
 * Where ACKs come in bursts, each 2 s (PP_PEEK_BUNCHED powers of two earlier), or each 32 to 64
 * round trips, if R needs it at all, see pp_bunch_may_peek(): a round-trip time tells R only if
 * its ACK came just before the end of a slot, so that one peek is not enough. It shows within
 * PP_PEEK_WARY round trips after the one that began with the stop: those until the silence arrives,
 * and that in which the queue fills again.
 */
#define PP_PEEK_SHIFT		23
#define PP_PEEK_ROUNDS		4
#define PP_PEEKS		3
#define PP_PEEK_BUNCHED		2
#define PP_PEEK_WARY		4
#define PP_PEEK_DOUBT		16
#define PP_PEEK_PART		16
#define PP_PEEK_PACKETS		(4 * PP_PACKET)
#define PP_PEEK_MARGIN		(2 * PP_PACKET)
#define PP_PEEK_LEAST_US	64U
#define PP_PEEK_MOST		4
#define PP_PEEK_MOST_EARLY	6

/* As much in a round trip of another length, Q8. */
static u32 pp_delay_scale(u32 flight, u32 before_us, u32 delay_us)
{
	return min_t(u64, div_u64((u64)flight * delay_us, before_us), U32_MAX);
}

/**
 * pp_delay_forget() - R is new, or the path may be another one: R was not looked at
 * @ca: connection
 */
void pp_delay_forget(struct pp *ca)
{
	ca->full = 0;
	ca->estimate.rounds = PP_SUDDEN_ROUNDS_MOST;
	/* With bursts of ACKs the byte is part of another. */
	if (pp_is_bunched(ca))
		return;
	ca->history.looks = 0;
	ca->history.peeks = 0;
}

/* The part of a peek that shows in R if R is too large, us; less than R. */
static u32 pp_delay_margin_us(const struct pp *ca)
{
	/* Two packets of up to 2^32 ns. */
	u32 margin_us = div_u64(pp_law_rtt_ns(PP_PEEK_MARGIN, 0, ca->estimate.service),
				NSEC_PER_USEC);

	return min_t(u32, max(margin_us, PP_PEEK_LEAST_US), ca->delay_us / PP_PEEK_PART);
}

/**
 * pp_delay_set() - another R
 * @ca: connection
 * @delay_us: us
 *
 * If it differs by much, what was seen of the path was seen with a wrong one.
 */
void pp_delay_set(struct pp *ca, u32 delay_us)
{
	u32 before_us = ca->delay_us;
	/* It may be less still: look again. */
	bool again = ca->looking &&
		     delay_us < before_us - pp_delay_margin_us(ca) / 2;

	ca->delay_us = delay_us;
	if (before_us && (delay_us < before_us - before_us / PP_TOLERANCE ||
			  delay_us > before_us + before_us / PP_TOLERANCE)) {
		ca->flight = pp_delay_scale(ca->flight, before_us, delay_us);
		ca->flight_last = pp_delay_scale(ca->flight_last, before_us,
						 delay_us);
		pp_delay_forget(ca);
	}
	/* With bursts of ACKs it is what these are held back for. */
	if (again && !pp_is_bunched(ca))
		ca->full = PP_FULL_LIMIT;
}

/**
 * pp_delay_raise() - take the least round-trip time of late for R
 * @sk: socket
 * @ca: connection
 *
 * Return: true, or false if that was done not long ago, or there is none.
 */
bool pp_delay_raise(const struct sock *sk, struct pp *ca)
{
	if (ca->hold || ca->low_us == PP_LOW_NONE)
		return false;
	pp_delay_set(ca, ca->low_us);
	/* It contains what ACKs are held back for. */
	if (pp_is_bunched(ca))
		ca->full = 0;
	ca->hold = U8_MAX;
	pp_count(sock_net(sk), PP_COUNT_LONGER);
	return true;
}

/*
 * Send nothing for a time to see R, at most for two round trips; after a stall the last
 * ACK may have taken far longer than others. Not with the discrete law, which does not
 * know when it stopped, and not where the application or the user's limit holds the rate
 * down: such a flow does not keep a queue full by itself.
 */
static bool pp_delay_stop(struct sock *sk, struct pp *ca, u64 wait_us)
{
	/* srtt_us is in 2^-3 us. */
	u32 rtt_us = min_t(u32, ca->rtt_us, max(tcp_sk(sk)->srtt_us >> 3, 1U));

	if (pp_is_discrete(ca) || !pp_pace_has_more(sk, ca) ||
	    sk->sk_pacing_rate >= READ_ONCE(sk->sk_max_pacing_rate))
		return false;
	if (!pp_pace_stop(sk, ca, min_t(u64, wait_us, 2 * rtt_us)))
		return false;
	pp_pace_be_wary(ca, true);
	return true;
}

/**
 * pp_delay_look() - let all that waits leave, to see R
 * @sk: socket
 * @ca: connection; ACKs do not come in bursts
 *
 * R is a minimum, and in a queue of our own what waits is kept at the setpoint. But an R
 * that was measured with the packets of others has room for as many of ours: they stay,
 * and R as well. So nothing is sent for as long as the last round trip took, or, where
 * the queue has grown since, until all that is outstanding has arrived.
 *
 * Return: false if it cannot stop now.
 */
bool pp_delay_look(struct sock *sk, struct pp *ca)
{
	u64 served_us = div_u64(pp_law_rtt_ns(pp_outstanding(sk), 0,
					      ca->estimate.service), NSEC_PER_USEC);

	return pp_delay_stop(sk, ca, max_t(u64, served_us, ca->rtt_us));
}

/*
 * How long a peek is: what seems to wait (Q8) leaves, and then R would show, for most_us (below
 * 2^25) at most. Times are below 2^58 ns.
 */
static u64 pp_delay_peek_us(const struct pp *ca, u32 queue, u32 most_us)
{
	u64 service = ca->estimate.service;
	u64 most_ns = pp_law_rtt_ns(queue, most_us, service);
	u64 wait_ns = pp_law_rtt_ns(queue, pp_delay_margin_us(ca), service) +
		      pp_law_rtt_ns(PP_PEEK_PACKETS, 0, service);

	return div_u64(min(wait_ns, most_ns), NSEC_PER_USEC);
}

/*
 * Was there a round-trip time that is less than R by more than a sixteenth? That of the SYN
 * is not taken for R: it is a small packet, and may have been sent with another route.
 */
static bool pp_delay_is_doubtful(const struct sock *sk, const struct pp *ca)
{
	u32 least_us = tcp_min_rtt(tcp_sk(sk));

	return least_us < ca->delay_us - ca->delay_us / PP_PEEK_DOUBT;
}

/**
 * pp_delay_peek() - each 2^23 us or so: let what seems to wait leave, and a little more
 * @sk: socket
 * @ca: connection; a round trip is over, and ACKs do not come in bursts
 *
 * It is time when the bits of the clock above that differ from those at the begin of the
 * round trip. Each connection has a clock of its own: if all of a host stopped at once,
 * each would find an idle link and take it for its share.
 */
void pp_delay_peek(struct sock *sk, struct pp *ca)
{
	u32 now_us = (u32)tcp_sk(sk)->tcp_mstamp + sk->sk_hash;
	u32 began_us = ca->round_us + sk->sk_hash;
	u32 early = pp_delay_is_doubtful(sk, ca) ? PP_PEEKS - ca->history.peeks : 0;
	u32 shift = max_t(u32, PP_PEEK_SHIFT - early,
			  fls(ca->rtt_us) + PP_PEEK_ROUNDS - !!early);
	u32 most_us = early ? 1U << (shift - PP_PEEK_MOST_EARLY) :
			      ca->delay_us / PP_PEEK_MOST;

	/* If it is wary, the round trip may have contained the pause that it is wary of. */
	if (likely(!((now_us ^ began_us) >> shift)) || ca->wary)
		return;
	if (ca->history.peeks && !pp_delay_stop(sk, ca, pp_delay_peek_us(ca, ca->queue, most_us)))
		return;
	if (ca->history.peeks < PP_PEEKS)
		ca->history.peeks++;
}

/**
 * pp_delay_peek_bunched() - the same where ACKs come in bursts, each 2^21 us or so
 * @sk: socket
 * @ca: connection; a round trip is over
 * @least: packets that waited in it at the least, Q8
 *
 * The time at which the round trip began is not kept. It may be longer than the last round-trip
 * time by two slots. If it is not, the same time is seen twice; but then the flow is wary. Pushes
 * have the same clock (pp_share_is_time()) and show nothing beside a peek, so this one is half a
 * period later.
 */
void pp_delay_peek_bunched(struct sock *sk, struct pp *ca, u32 least)
{
	u32 shift = max_t(u32, PP_PEEK_SHIFT - PP_PEEK_BUNCHED,
			  fls(ca->rtt_us) + PP_PEEK_ROUNDS + 1);
	u32 now_us = (u32)tcp_sk(sk)->tcp_mstamp + sk->sk_hash + BIT(shift - 1);
	u32 began_us = now_us - ca->rtt_us - 2 * pp_slot_us(ca);
	u64 wait_us;

	if (likely(!((now_us ^ began_us) >> shift)) || ca->wary)
		return;
	wait_us = pp_delay_peek_us(ca, least, 1U << (shift - PP_PEEK_MOST_EARLY));
	if (pp_delay_stop(sk, ca, wait_us))
		ca->wary = PP_PEEK_WARY;
}

/* May the queue be full of ours, as far as one round trip tells? */
static bool pp_delay_is_full(const struct sock *sk, const struct pp *ca)
{
	u32 arrived = tcp_sk(sk)->delivered - ca->round_start;

	return pp_has_lost(ca, arrived / PP_FULL_LOSSES) &&
	       pp_pace_has_more(sk, ca);
}

/**
 * pp_delay_full() - a round trip says nothing else: is the queue full of ours?
 * @sk: socket
 * @ca: connection
 */
void pp_delay_full(const struct sock *sk, struct pp *ca)
{
	if (ca->full >= PP_FULL_LIMIT)
		return;
	if (!pp_delay_is_full(sk, ca)) {
		if (ca->full)
			ca->full--;
		return;
	}
	ca->full += PP_FULL_STEP >> ca->history.looks;
}

/**
 * pp_delay_look_full() - the queue may be full of ours: look at R
 * @sk: socket
 * @ca: connection
 */
void pp_delay_look_full(struct sock *sk, struct pp *ca)
{
	if (!pp_delay_look(sk, ca))
		return;
	ca->full = 0;
	if (ca->history.looks < PP_LOOKS)
		ca->history.looks++;
}
