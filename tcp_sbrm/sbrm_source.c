// SPDX-License-Identifier: GPL-2.0
/*
 * Sources: how the window follows the price of the path
 *
 *	direct	each segment: kappa (w T - p)			CP05 (4.2.1)
 *	aimd	unmarked: + kappa w T; marked: - kappa		(5.1.2), (5.1.3)
 *	vegas	each round trip: +1, 0, -1 as p x <=> w		(5.2.7)
 *	rm	unmarked: + kappa w T; first ECE in a round
 *		trip: - kappa cwnd				(5.6.1), (5.6.2)
 *	relative  its logarithm, see sbrm_relative.c
 *
 * T is the time for which a segment stands, RTT / cwnd in the mean.
 */

#include <linux/math64.h>

#include "sbrm.h"

/*
 * Mean gaps are in 2^-4 us: a new gap has a weight of 1/16, so 1 us of it is not lost. Gaps
 * of 2^26 us (SBRM_TIME_MAX_US) have 30 bits, the most that sbrm_paid() can use.
 */
#define SBRM_GAP_SHIFT	4

/*
 * A gap has a weight of 2^-4 in the mean. With more, the mean is not the same
 * at marked and unmarked segments, see sbrm_demand(). With less, it is that of
 * an old rate for longer.
 */
#define SBRM_GAP_MEAN_SHIFT	4

/*
 * So many marks missing mean that the price has gone, see sbrm_is_unpriced().
 * With fewer, it seems to go by chance; with more, what others have left is
 * used later.
 */
#define SBRM_QUIET_MARKS	8
/* The time without one is in 2^6 us: 16 bits of that are 4 s. */
#define SBRM_QUIET_SHIFT	6

/**
 * sbrm_step() - kappa times a sum of prices
 * @price: sum over @segments, Q32
 * @kappa: gain, Q28, at most 10.0
 * @segments: below 2^21
 *
 * Return: change of the window, Q32, at most one segment for each.
 */
static s64 sbrm_step(s64 price, u32 kappa, u32 segments)
{
	s64 most = (s64)segments << FIXP_SHIFT;
	u64 size = abs(price);

	/* Nearly always it is below 1, and the product below 2^64. */
	if (likely(size < FIXP_ONE))
		size = min_t(u64, size * kappa >> SBRM_KAPPA_SHIFT, most);
	/* Products of 2^63 and up are far more than @segments, and would not fit. */
	else if (unlikely(fls64(size) + fls(kappa) > 63 + SBRM_KAPPA_SHIFT))
		size = most;
	else
		size = min_t(u64, mul_u64_u32_shr(size, kappa, SBRM_KAPPA_SHIFT),
			     most);
	return price < 0 ? -(s64)size : size;
}

/* A time for each segment of the window, out of the way of sbrm_time_us(). */
static noinline u64 sbrm_over_window(const struct sbrm *ca, u64 time_us)
{
	return fixp_mul_div(time_us, FIXP_ONE, ca->cwnd);
}

/**
 * sbrm_time_us() - time that the segments of an ACK stand for
 * @ca: connection
 * @ack: what the ACK brought
 *
 * The time since the last ACK, which is RTT / cwnd per segment in the mean.
 * A flow that something else holds back (a receive window, say) would turn its
 * waiting into window without end: no more than twice RTT / cwnd per segment
 * counts, and what is above waits in @ca->waited_us for a later ACK, up to four
 * round trips, or four gaps where those are longer: two in the mean between the
 * ACKs of a receiver that delays them.
 *
 * Return: us, below 2^26.
 */
static u32 sbrm_time_us(struct sbrm *ca, const struct sbrm_ack *ack)
{
	/* Twice RTT for each segment; over cwnd it is the most. */
	u64 twice_us = (u64)ca->rtt_us * 2 * ack->acked;
	u64 limit_us = (u64)ca->rtt_us * 4;
	u32 waited_us, time_us;

	if (unlikely(ca->cwnd < FIXP_ONE))
		limit_us = sbrm_over_window(ca, limit_us);
	waited_us = min3((u64)ca->waited_us + (ack->now_us - ack->last_us),
			 limit_us, (u64)SBRM_TIME_MAX_US);
	time_us = waited_us;
	/* Nearly always it is less, which needs no quotient. */
	if (unlikely(mul_u64_u32_shr(ca->cwnd, waited_us, FIXP_SHIFT) >=
		     twice_us))
		time_us = min_t(u64, waited_us, sbrm_over_window(ca, twice_us));

	ca->waited_us = waited_us - time_us;
	return time_us;
}

/**
 * sbrm_demand() - what the flow is willing to pay for one segment
 * @ca: connection
 * @ack: what the ACK brought
 *
 * The RTT / cwnd of CP05 (5.1.2), as the mean time between segments: the time
 * of a single ACK is not the same for marked and unmarked ones, as a receiver
 * that sees the mark change sends the ACK it held back first.
 *
 * Return: w T in Q32, below 2^63.
 */
static s64 sbrm_demand(struct sbrm *ca, const struct sbrm_ack *ack)
{
	u32 time_us = sbrm_time_us(ca, ack);
	u64 gap = div_u64((u64)time_us << SBRM_GAP_SHIFT, ack->acked);

	if (!ca->gap)
		ca->gap = gap;
	ca->gap = (((u64)ca->gap << SBRM_GAP_MEAN_SHIFT) - ca->gap + gap) >>
		  SBRM_GAP_MEAN_SHIFT;
	return sbrm_paid(ack->wtp, ca->gap, SBRM_GAP_SHIFT);
}

/* Time without a mark; what no segment was sent in hardly counts. */
static void sbrm_quiet_update(struct sbrm *ca, const struct sbrm_ack *ack)
{
	u32 passed = (ack->now_us >> SBRM_QUIET_SHIFT) -
		     (ack->last_us >> SBRM_QUIET_SHIFT);

	passed = min(passed, ca->rtt_us >> SBRM_QUIET_SHIFT);
	ca->quiet = ack->marked ? 0 : min_t(u32, ca->quiet + passed, U16_MAX);
}

/**
 * sbrm_is_unpriced() - has the price of the path gone?
 * @sk: socket
 * @ca: its private area
 * @wtp: what it is willing to pay, see sbrm_wtp()
 * @price: price of the path, Q32
 *
 * At rest a flow gets w marks a second. When eight are due and none has come,
 * the odds are e^8 that the price is well below what the window is for: others
 * have left. A price that is known as such says so at once.
 *
 * Return: true while the flow should look for room faster than by kappa.
 */
static bool sbrm_is_unpriced(const struct sock *sk, const struct sbrm *ca,
			     u64 wtp, s64 price)
{
	u32 quiet_us = (u32)ca->quiet << SBRM_QUIET_SHIFT;

	if (ca->carrier)
		return sbrm_balance(sk, ca, price * SBRM_QUIET_MARKS) > 0;

	return mul_u64_u32_shr(wtp, quiet_us, SBRM_LN_PHI_SHIFT) >=
	       SBRM_QUIET_MARKS * USEC_PER_SEC;
}

/*
 * Would it make a difference to be young, and is the connection old enough that
 * what it sees is not of its own making? After four times young_ms its kappa is
 * the final one but for a 65th of the difference: 1 / (1 + (2 * 4)^2).
 */
static bool sbrm_may_be_young(const struct sbrm *ca)
{
	const struct sbrm_net *net = ca->net;

	if (READ_ONCE(net->kappa_young) <= READ_ONCE(net->kappa))
		return false;

	return ca->grown || jiffies_to_msecs(tcp_jiffies32 - ca->born) / 4 >=
			    READ_ONCE(net->young_ms);
}

/**
 * sbrm_direct() - direct window update, CP05 (4.2.1)
 * @sk: socket
 * @ca: its private area
 * @ack: what the ACK brought
 * @price: price of the path, Q32
 * @kappa: gain, Q28
 *
 * For each segment kappa (w T - p), T the time since the one before. (4.2.3)
 * puts RTT / cwnd for T; the time itself makes the rest point w / p exact,
 * whatever delayed ACKs, pacing and the noise of RTT samples do.
 *
 * Without any price that is kappa w segments a second, however large the share
 * that fell free: a flow for which the price has gone is young again.
 *
 * Return: change of the window, segments in Q32.
 */
static s64 sbrm_direct(const struct sock *sk, struct sbrm *ca,
		       const struct sbrm_ack *ack, s64 price, u32 kappa)
{
	u32 time_us;
	s64 room;

	sbrm_quiet_update(ca, ack);
	time_us = sbrm_time_us(ca, ack);
	room = sbrm_paid(ack->wtp, time_us, 0);

	if (sbrm_may_be_young(ca) && sbrm_is_unpriced(sk, ca, ack->wtp, price)) {
		ca->born = tcp_jiffies32;
		ca->grown = 0;
	}
	/* price < 2^36 and acked < 2^21 */
	return sbrm_step(room - price * ack->acked, kappa, ack->acked);
}

/**
 * sbrm_aimd() - AIMD form, CP05 (5.1.2), (5.1.3)
 * @ca: connection
 * @ack: what the ACK brought
 * @kappa: gain, Q28
 *
 * Up for each unmarked segment, down for each marked one. A price from the
 * price field stands for the marks that it would have made.
 *
 * Return: change of the window, segments in Q32.
 */
static s64 sbrm_aimd(struct sbrm *ca, const struct sbrm_ack *ack, u32 kappa)
{
	s64 up = sbrm_step(sbrm_demand(ca, ack), kappa, 1);
	s64 down = sbrm_step(FIXP_ONE, kappa, 1);
	u32 share;

	if (!ca->carrier)
		return up * (ack->acked - ack->marked) - down * ack->marked;

	share = sbrm_mark_share(ca);
	return ((s64)fixp_mul(up, U32_MAX - share) -
		(s64)fixp_mul(down, share)) * ack->acked;
}

/**
 * sbrm_balance() - what a flow is willing to pay, less what it is charged
 * @sk: socket
 * @ca: its private area
 * @price: price of the path, Q32
 *
 * For one round trip: w RTT against p cwnd.
 *
 * Return: above, below or equal to 0.
 */
int sbrm_balance(const struct sock *sk, const struct sbrm *ca, s64 price)
{
	u32 rtt_us = ca->rtt_us;
	u64 charge, paid;

	if (READ_ONCE(ca->net->rtt) == SBRM_RTT_MIN)
		rtt_us = clamp_t(u32, tcp_min_rtt(tcp_sk(sk)), 1, rtt_us);
	charge = fixp_mul_div(price, ca->cwnd, FIXP_ONE);
	paid = sbrm_paid(sbrm_wtp(sk, ca), rtt_us, 0);
	return paid > charge ? 1 : -(paid < charge);
}

/* Vegas/CP (5.2.7): once in a round trip, one segment or none. */
static s64 sbrm_vegas(const struct sock *sk, struct sbrm *ca,
		      const struct sbrm_ack *ack, s64 price)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (before(tp->snd_una, ca->step_end))
		return 0;

	ca->step_end = tp->snd_nxt;
	return sbrm_balance(sk, ca, price) * (s64)FIXP_ONE;
}

/* The first ECE in a round trip cuts by kappa cwnd (5.6.2). */
static s64 sbrm_cut(const struct sock *sk, struct sbrm *ca, u32 kappa)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (ca->cut)
		return 0;

	ca->cut = 1;
	ca->cut_end = tp->snd_nxt;
	/* kappa of one and above would leave nothing: halve at most. */
	kappa = min_t(u32, kappa, SBRM_KAPPA_ONE / 2);
	return -(s64)mul_u64_u32_shr(ca->cwnd, kappa, SBRM_KAPPA_SHIFT);
}

/*
 * TCP/RM (5.6.1). Its kappa w segments per second are next to nothing with the
 * w that relative is for: where nothing better comes back, that counts four
 * times. The default of 25 becomes 100 so, which is what the sources of CP05
 * are used with (tcp_sbrm(7)).
 */
static s64 sbrm_rm(const struct sock *sk, struct sbrm *ca,
		   const struct sbrm_ack *ack, u32 kappa)
{
	s64 demand = sbrm_demand(ca, ack);

	if (ca->source == SBRM_SOURCE_RELATIVE)
		demand = min(demand, S64_MAX / 4) * 4;
	if (ack->ece)
		return sbrm_cut(sk, ca, kappa);
	return sbrm_step(demand, kappa, 1) * ack->acked;
}

/**
 * sbrm_source_step_slow() - how far an ACK moves the window, by whatever source
 * @sk: socket
 * @ca: its private area
 * @ack: what the ACK brought
 * @price: price of the path, Q32
 *
 * A queue on the path that marks, where the price comes by the price field,
 * is one more reason to slow down: it cuts as in TCP/RM.
 *
 * Return: change of the window, segments in Q32, size below 2^56.
 */
s64 sbrm_source_step_slow(struct sock *sk, struct sbrm *ca,
			  const struct sbrm_ack *ack, s64 price)
{
	u32 kappa;

	/* Not only when it is asked for: sequence numbers wrap. */
	if (ca->cut && !before(tcp_sk(sk)->snd_una, ca->cut_end))
		ca->cut = 0;

	/* It has no kappa. */
	if (likely(sbrm_is_relative(ca)) && !(ca->carrier && ack->ece))
		return sbrm_relative_step(sk, ca, ack, ack->due);

	kappa = sbrm_kappa(ca);
	if (sbrm_is_rm(ca))
		return sbrm_rm(sk, ca, ack, kappa);
	if (ca->carrier && ack->ece)
		return sbrm_cut(sk, ca, kappa);

	switch (ca->source) {
	case SBRM_SOURCE_AIMD:
		return sbrm_aimd(ca, ack, kappa);
	case SBRM_SOURCE_VEGAS:
		return sbrm_vegas(sk, ca, ack, price);
	default:
		return sbrm_direct(sk, ca, ack, price, kappa);
	}
}
