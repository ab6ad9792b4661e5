// SPDX-License-Identifier: GPL-2.0
/*
 * The source "relative": it is the logarithm of the window that moves
 *
 * The sources of the papers step by kappa segments for a mark. A mark is 4 % of
 * a window of 2.4 segments then, and 0.006 % of one of 1700: none of them serves
 * both. Here a mark takes a k-th off the window, and the time in which one is
 * due, 1 / w, gives it back:
 *
 *	d ln cwnd = (w dt - marks g(m) r) / k
 *
 * - g(m) = -ln(1 - m) / m, m the share of marks: the price that a mark stands
 *   for. It is 1 while few packets are marked;
 * - r is the round-trip time that paces the flow, see sbrm_relative_rtt(), over its
 *   average of two seconds, and 1 at rest. Once a link is full, marks come at its
 *   capacity times the price, however large the windows are: without r they are
 *   all that a source learns, the queue grows for a round trip longer, and beyond
 *   100 ms all of it swings. A small window is paced by the average: what it
 *   sends does not follow the round trip, and neither does r. (With an r of 1
 *   below three segments, flows around three paid 4 % more than others.)
 * - k is at least 10 marks, so that single ones do not shake the flow; what is
 *   due in 0.2 s; and in three times what it takes to see an answer: a round trip
 *   and, where windows are small, two to ten packets.
 *
 * At rest, w = x g(m) m = x p: weighted proportional fairness, by one bit. No
 * capacity and no number of flows is part of the loop gain. Its counterpart in
 * sch_sbrm is the law "delay".
 *
 * It is linear in the marks: their noise leaves no bias.
 *
 * Not from the papers, but for the rest point (CP05 4.2) and the price of a share
 * of marks (5.4.1).
 */

#include <linux/math64.h>
#include <linux/time64.h>

#include "sbrm.h"

/*
 * k: marks, ... A mark takes a tenth off the window. With fewer, single marks
 * move the window by more; with more, the flow needs longer to come near its
 * rate, which takes k / w: 0.4 s with the default w of 25.
 */
#define RELATIVE_MARKS		10U
/*
 * ... what is due in this time, ... It decides from a w of 50 on: without a
 * price windows grow by w / k, 5 per second at most then. A shorter time lets
 * them grow faster than the price of a queue can rise; a longer one makes flows
 * with a large w slower.
 */
#define RELATIVE_TIME_US	(200 * 1000U)
/*
 * ... and in so many times what it takes to see an answer. The window moves by
 * w / k of what is wrong in each second, so that a third of it is moved before
 * the answer is seen. The limit, where the loop would swing without end, is
 * pi / 2. The rest is for what the delay of the queue adds to the gain. With
 * fewer, queues swing; with more, flows are slower where round trips are long.
 */
#define RELATIVE_ROUNDS		3U

/*
 * The logarithm of the window is reduced by at most 0.7 in a round trip, about ln 2, which
 * halves it as a loss does. It is counted in 2^-14: 0.7 is 11469, and even a sum of 4.0 fits
 * into 16 bits. All marks of a round trip belong to packets that were sent before the first
 * of the marks was seen. With more than 0.7, the marks of one round trip reduce a window too
 * far; with less, windows need several round trips to make room for new flows.
 */
#define RELATIVE_CUT_SHIFT	14
#define RELATIVE_CUT_MAX	11469U		/* 0.7 */

/* A step of the slow round-trip time is a 2^8th, see SBRM_RTT_SLOW_US_SHIFT. */
#define RELATIVE_SLOW_SHIFT	8
/*
 * It is at most so many times the last one. After round trips of 4 s it would need
 * 8 s to come there, in which flows that return at different times have different
 * shares. Not the other way round: round trips that are long for a moment would
 * raise it.
 */
#define RELATIVE_SLOW_MOST	4

/* m is at least 2^-20 (2^12 in Q32) when the price of a mark is computed. */
#define RELATIVE_MARK_MIN	BIT(12)

/*
 * The window is halved when the balance is below this, marks in 2^-16. Marks
 * come one by one, so one mark more than was due is the least that says
 * anything. With less, a mark that is due to other flows would halve the
 * window; with more, slow start would go on in a full queue.
 */
#define RELATIVE_BALANCE_ONE	65536
#define RELATIVE_BALANCE_END	(-RELATIVE_BALANCE_ONE)

/*
 * Or when the round trip takes so much longer, us, or an eighth. The queue that
 * the law delay of sch_sbrm aims at takes 3 ms, and must not end it. With less,
 * the jitter of a path does; with more, a queue without a price becomes longer.
 */
#define RELATIVE_LATER_US	5000U

/*
 * Above a price of 6 fewer than one packet in 400 is unmarked, and marks do not tell how
 * high the price is. A flow that has what it should at such a price only, so that its rate
 * is below w / 6, has one packet on its way while the price may be that high, see
 * sbrm_relative_in_turn(). With the default w of 25 these are 4 packets per second. If this
 * were smaller, weights would no longer count where marks still show them; if it were 8,
 * 1000 flows at 10 Mb/s would need minutes to have equal rates. What a mark stands for ends
 * at 11.
 */
#define RELATIVE_PRICE_MOST	6U
/*
 * It may be that high if more than 7/8 of the packets are marked, and the queue makes half
 * of the round trip, or no packet was ever unmarked. (A flow that begins in a full queue
 * does not know the round trip without it.) Else 44 in a row must be marked, from where on
 * the share is within 2^-11 of one: at a price of 4, one in 55 is not. If 7/8 were enough,
 * a flow with a round trip of 0.6 s and a price of 3 would never have more than one packet
 * on its way, a fifth of its share. If 44 were asked for always, 1000 flows at 10 Mb/s would
 * need minutes to have equal rates.
 */
#define RELATIVE_MARK_MOST	(U32_MAX - U32_MAX / 8)
#define RELATIVE_MARK_AGAIN	(U32_MAX - BIT(21))

/**
 * sbrm_relative_slow_step() - the slow round-trip time takes its steps
 * @ca: connection
 * @ack: what the ACK brought
 *
 * It is in 2^-6 us.
 */
void sbrm_relative_slow_step(struct sbrm *ca, const struct sbrm_ack *ack)
{
	/* The clock wraps at 2^32 us, and the number of its steps with it. */
	u32 steps = ((ack->now_us >> SBRM_RTT_SLOW_US_SHIFT) -
		     (ack->last_us >> SBRM_RTT_SLOW_US_SHIFT)) &
		    (BIT(32 - SBRM_RTT_SLOW_US_SHIFT) - 1);
	s64 off;

	/* Not rtt_us: what it is before the first sample may be part of that. */
	if (unlikely(!ca->rtt_slow))
		ca->rtt_slow = ca->rtt_last_us << SBRM_RTT_SLOW_SHIFT;
	if (!steps)
		return;

	/* rtt_us is at most 2^24: 2^30 times 2^8. */
	off = ((s64)ca->rtt_us << SBRM_RTT_SLOW_SHIFT) - ca->rtt_slow;
	off = off * min_t(u32, steps, BIT(RELATIVE_SLOW_SHIFT)) >>
	      RELATIVE_SLOW_SHIFT;
	/* 2^30 times 4 */
	ca->rtt_slow = clamp_t(s64, ca->rtt_slow + off, 1,
			       ((s64)ca->rtt_us << SBRM_RTT_SLOW_SHIFT) *
			       RELATIVE_SLOW_MOST);
}

/**
 * relative_share() - share of marks around a mark
 * @ca: connection; its average has the last ACK, which brought a mark
 * @acked: segments of that ACK
 *
 * A mark must not raise what it stands for itself: where marks come at random,
 * the average before it is the one without bias. Our queues dither: a flow has
 * a mark every 1 / m packets. In between the average falls exponentially, and
 * it is at its least right before the next mark. By that value a flow would pay
 * up to 4 % too little (over 8 packets). The mean over the time between the marks is the
 * logarithmic mean of the two ends, which is less than 1.5 % off up to a share of
 * 70 %. Marks that come at random cost about 1 % too much by this where few are marked,
 * and 7 % where 70 % are, the smaller error of the two for most users: our queues make
 * even ones.
 *
 * Of an average over s packets, one segment of an ACK of n has about 1 / (s + (n - 1) / 2).
 * A plain average is over what it has seen, see sbrm_plain_gain(), which has counted @acked.
 *
 * Return: Q32, RELATIVE_MARK_MIN and up.
 */
static u32 relative_share(const struct sbrm *ca, u32 acked)
{
	u32 over = likely(ca->marks.plain == U16_MAX) ? 1U << sbrm_relative_shift(ca) :
		   ca->marks.plain - acked + SBRM_PLAIN_START;
	u32 own = div_u64(2 * FIXP_ONE, 2 * over + acked - 1);
	u32 before = 0, after = ca->mark, gone;
	u64 mean;

	if (after > own)
		before = fixp_mul_div(after - own, FIXP_ONE, FIXP_ONE - own);
	before = max_t(u32, before, RELATIVE_MARK_MIN);
	if (unlikely(after <= before))
		return before;
	gone = fixp_mul_div(after - before, FIXP_ONE, after);
	mean = fixp_mul_div(after - before, FIXP_ONE,
			    max_t(u64, fixp_ln_lost(gone), 1));
	/*
	 * A mean is no more than the larger of the two. But gone was rounded down:
	 * where nearly all are marked it would be, and not fit 32 bits.
	 */
	return clamp_t(u64, mean, RELATIVE_MARK_MIN, after);
}

/**
 * sbrm_relative_paid() - what the marks of an ACK stand for
 * @ca: connection, with sbrm_by_marks()
 * @ack: what the ACK brought
 *
 * Return: segments times price in Q32, below 2^56.
 */
u64 sbrm_relative_paid(const struct sbrm *ca, const struct sbrm_ack *ack)
{
	u32 share;

	if (likely(!ack->marked))
		return 0;
	share = relative_share(ca, ack->acked);
	/* g(m) is below 12, with m of at most 1 - 2^-16. */
	return ack->marked * fixp_mul_div(fixp_ln_lost(share), FIXP_ONE, share);
}

/*
 * What was due in the time that an ACK stands for: since the last one, as far as it is
 * no longer than the path and two ACKs that are held back explain.
 */
static noinline s64 relative_due_late(const struct sbrm *ca,
				      const struct sbrm_ack *ack)
{
	u32 slow_us = ca->rtt_slow >> SBRM_RTT_SLOW_SHIFT;
	u64 limit_us = (u64)max(ca->rtt_us, slow_us) * 4;

	if (unlikely(ca->cwnd < FIXP_ONE))
		limit_us = fixp_mul_div(limit_us, FIXP_ONE, ca->cwnd);
	if (ack->time_us <= limit_us)
		return ack->due;
	return sbrm_paid(ack->wtp, limit_us, 0);
}

/* What the marks of an ACK take, marks in Q32: g(m) r for each. */
static noinline s64 relative_charge(struct sbrm *ca, const struct sbrm_ack *ack)
{
	u64 rtt;

	ca->halved = 0;
	/*
	 * r is at most 4, and at least 1/4, which it is only in slow start: a slow
	 * round-trip time four times as long as the last one makes it 3/8. With
	 * a wider range a queue that some flows make when they begin, or another
	 * path, would make a mark worth next to nothing, or worth most of the
	 * window, for two seconds. A narrower one would end the damping in long
	 * queues.
	 *
	 * By the round trip that paces the flow: where windows are small, the last
	 * one is that of a queue which no window limits, and r would be a gain of
	 * 1 / RTT beside the b of the queue. A hundred flows at 10 Mb/s and 20 ms
	 * swung by 200 ms with it, every 1.3 s, for half of the time.
	 */
	rtt = clamp_t(u64, sbrm_relative_rtt(ca), ca->rtt_slow / 4,
		      (u64)ca->rtt_slow * 4);
	/* Below 2^56 times 4. */
	return fixp_mul_div(ack->paid, rtt, ca->rtt_slow);
}

/**
 * relative_balance() - what an ACK says that the flow paid too little
 * @ca: connection
 * @ack: what the ACK brought
 * @due: what was due, ack->due
 *
 * Return: w dt - marks g(m) r, marks in Q32, size below 2^63.
 */
static __always_inline s64 relative_balance(struct sbrm *ca,
					    const struct sbrm_ack *ack, s64 due)
{
	/* Nearly always: what it may be is four times that, or more. */
	if (unlikely(ack->time_us > ca->rtt_us))
		due = relative_due_late(ca, ack);
	if (unlikely(ack->paid))
		due -= relative_charge(ca, ack);
	return due;
}

/**
 * sbrm_relative_begin() - slow start begins
 * @ca: connection
 */
void sbrm_relative_begin(struct sbrm *ca)
{
	if (ca->source != SBRM_SOURCE_RELATIVE)
		return;
	ca->in_turn = 0;
	/* TCP/RM takes it for the end of its cut: there is none any more. */
	ca->balance = 0;
	ca->cut = 0;
}

/**
 * sbrm_relative_start_end() - shall slow start end?
 * @sk: socket
 * @ca: its private area, in slow start
 * @ack: what the ACK brought
 *
 * A mark alone says little: other flows have a price, too. It ends slow start, as
 * the stack goes to CWR and sets ssthresh for it, but with the window as it is, and
 * proves that there is a price: see sbrm_loss_priced().
 * That is halved where the flow was charged more than it was willing to pay, by a
 * mark, since the last time that it was not; of what it saved before, a round trip
 * counts. And it loses a quarter where packets wait, with no price, or not yet.
 *
 * Return: the window to go on with, segments in Q32; 0 while slow start goes on.
 */
u64 sbrm_relative_start_end(const struct sock *sk, struct sbrm *ca,
			    const struct sbrm_ack *ack)
{
	u32 least_us = clamp_t(u32, tcp_min_rtt(tcp_sk(sk)), 1, ca->rtt_us);
	/* From Q32 to Q16, which fits the 32 bits of the balance. */
	s64 most = (sbrm_paid(ack->wtp, ca->rtt_us, 0) >> 16) +
		   RELATIVE_BALANCE_ONE;
	s64 balance = ca->balance + (relative_balance(ca, ack, ack->due) >> 16);

	ca->balance = clamp_t(s64, min_t(s64, balance, most), S32_MIN, S32_MAX);
	if (ack->ece)
		sbrm_loss_priced(ca);
	/* The window has doubled since the marked packet was sent. */
	if (ca->balance < RELATIVE_BALANCE_END) {
		sbrm_loss_priced(ca);
		return ca->cwnd / 2;
	}
	if (ca->rtt_us > least_us + max(least_us / 8, RELATIVE_LATER_US)) {
		sbrm_loss_queued(sk, ca);
		/*
		 * Three quarters: the packets that wait have filled the link,
		 * and the source takes more where that is due. With less left
		 * the link rests; with more the queue stays until marks come.
		 */
		return ca->cwnd / 4 * 3;
	}
	return 0;
}

/*
 * exp(x) - 1 and 1 - exp(-x), x in Q32: less than 2^-14 off up to 1/8, and 0.01 at
 * 0.7. Without the second term a flow with k of 10 would have 5 % more than one of
 * 100.
 */
static u32 relative_grown(u32 x)
{
	u64 square = (u64)x * x >> FIXP_SHIFT;

	return x + square / 2 + (u32)(square * x >> FIXP_SHIFT) / 6;
}

static u32 relative_shrunk(u32 x)
{
	u64 square = (u64)x * x >> FIXP_SHIFT;

	return x - square / 2 + (u32)(square * x >> FIXP_SHIFT) / 6;
}

/*
 * How long it takes to see an answer: a round trip; two packets, as receivers hold
 * back every second ACK; and 8 m packets. Where nearly all are marked, another mark
 * says nothing: it is m that tells of a higher price, an average over 8 packets.
 * From 8 segments on a round trip is long enough for that.
 */
static noinline u32 relative_answer_small(const struct sbrm *ca)
{
	/*
	 * 2 + 8 m in Q32 is below 2^36, times 2^24 us. Eight bits less of it and of
	 * the window, in the same unit, leave the quotient in us.
	 */
	u64 gaps = ca->rtt_us * (2 * FIXP_ONE + 8 * (u64)ca->mark) >> 8;

	return min_t(u64, ca->rtt_us + div64_u64(gaps, ca->cwnd >> 8),
		     SBRM_TIME_MAX_US / RELATIVE_ROUNDS);
}

static u32 relative_answer_us(const struct sbrm *ca)
{
	return likely(ca->cwnd >= 8 * FIXP_ONE) ? ca->rtt_us :
						  relative_answer_small(ca);
}

/*
 * As far as the window may grow where losses take the place of a price, Q32. No price
 * bounds what a window that doubles in 0.3 s does to the flows beside it: one segment
 * in a round trip, as they have, until a price is there again.
 */
static noinline u64 relative_room(const struct sbrm *ca, const struct sbrm_ack *ack)
{
	return fixp_mul_div((u64)ack->acked << FIXP_SHIFT, FIXP_ONE,
			    max_t(u64, ca->cwnd, FIXP_ONE));
}

/* What is wrong over k, Q32, where more marks are due in the time of k. */
static noinline u64 relative_size_by_time(const struct sbrm_ack *ack, u64 wrong,
					  u32 time_us)
{
	return fixp_mul_div(wrong, FIXP_ONE, sbrm_paid(ack->wtp, time_us, 0));
}

/*
 * What is wrong over k, Q32. Marks due in the time of k, times us in a second, are few
 * nearly always, and to divide by a constant is a product for the compiler.
 */
static __always_inline u64 relative_size(const struct sbrm *ca,
					 const struct sbrm_ack *ack, u64 wrong)
{
	u32 time_us = max(RELATIVE_TIME_US,
			  RELATIVE_ROUNDS * relative_answer_us(ca));

	if (likely(mul_u64_u32_shr(ack->wtp, time_us, SBRM_LN_PHI_SHIFT) <=
		   RELATIVE_MARKS * USEC_PER_SEC))
		return div_u64(wrong, RELATIVE_MARKS);
	return relative_size_by_time(ack, wrong, time_us);
}

/* Down: as much as is left of the cut of this round trip. */
static noinline s64 relative_down(struct sbrm *ca, const struct sbrm_ack *ack,
				  u64 charged)
{
	u32 room = RELATIVE_CUT_MAX - min_t(u32, RELATIVE_CUT_MAX, ca->round_cut);
	u64 size = relative_size(ca, ack, charged);

	size = min(size, (u64)room << (FIXP_SHIFT - RELATIVE_CUT_SHIFT));
	/* Rounded at random, by 16 bits, so that small cuts count as well. */
	ca->round_cut += (size + ((u64)(u16)ack->random <<
				  (FIXP_SHIFT - RELATIVE_CUT_SHIFT - 16))) >>
			 (FIXP_SHIFT - RELATIVE_CUT_SHIFT);
	return -(s64)fixp_mul(ca->cwnd, relative_shrunk(size));
}

/**
 * sbrm_relative_in_turn() - the window where marks do not tell the price
 * @sk: socket
 * @ca: its private area, out of slow start
 * @ack: what the ACK brought
 *
 * Where more flows want to pass than marks can tell a price for, all of them send one
 * packet, and the next one when its ACK comes. So the queue, a FIFO, serves the flows in
 * turn: rates are the same, and there are as many packets in the queue as flows. (If each
 * window followed marks that say nothing, windows would grow until the queue is full.)
 *
 * A flow comes to this from both sides: with a larger window it takes more than its turn;
 * with a smaller one it would wait for a minute to have it. As its rate must not be above
 * that for which this applies, a smaller window may be what is due then.
 *
 * Return: change of the window, segments in Q32, size below 2^56; 0 where marks tell the
 *	price.
 */
s64 sbrm_relative_in_turn(const struct sock *sk, struct sbrm *ca,
			  const struct sbrm_ack *ack)
{
	u64 most;

	ca->in_turn = 0;
	if (ack->marked < ack->acked)
		ca->told = 1;
	else if (ca->mark >= RELATIVE_MARK_AGAIN)
		ca->told = 0;
	if (ca->mark < RELATIVE_MARK_MOST || !sbrm_by_marks(ca) || sbrm_is_rm(ca) ||
	    (ca->told && ca->rtt_us / 2 < tcp_min_rtt(tcp_sk(sk))))
		return 0;
	most = div_u64(sbrm_paid(ack->wtp, ca->rtt_us, 0), RELATIVE_PRICE_MOST);
	if (ca->cwnd >= most)
		return 0;
	/* Half of the way, as the queue is too long, and an eighth, as it gets longer. */
	if (ca->cwnd >= 2 * FIXP_ONE)
		return -(s64)(ca->cwnd - FIXP_ONE) / 2;
	if (most > FIXP_ONE) {
		most = FIXP_ONE;
		ca->in_turn = 1;
	}
	if (ca->cwnd > most)
		return -(s64)(ca->cwnd - most);
	return (most - ca->cwnd) / 8;
}

/**
 * sbrm_relative_step() - how far an ACK moves the window
 * @sk: socket
 * @ca: its private area
 * @ack: what the ACK brought
 * @due: ack->due, from where it is only known after it was stored
 *
 * From what was due to the rate each product waits for the one before. So what is
 * nearly always so is a branch here, for which nothing has to wait.
 *
 * Return: change of the window, segments in Q32, size below 2^56.
 */
s64 sbrm_relative_step(const struct sock *sk, struct sbrm *ca,
		       const struct sbrm_ack *ack, s64 due)
{
	s64 balance = relative_balance(ca, ack, due);
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 size, change;
	s64 to_turn;

	/* After slow start it holds what is no sequence number. */
	if (!before(tp->snd_una, ca->round_cut_end) ||
	    after(ca->round_cut_end, tp->snd_nxt)) {
		ca->round_cut_end = tp->snd_nxt;
		ca->round_cut = 0;
	}
	if (unlikely(ca->mark >= RELATIVE_MARK_MOST || ca->in_turn || !ca->told)) {
		to_turn = sbrm_relative_in_turn(sk, ca, ack);
		if (to_turn || ca->in_turn)
			return to_turn;
	}
	if (unlikely(balance < 0))
		return relative_down(ca, ack, -balance);
	/*
	 * At most an eighth at once. After a pause one ACK may stand for four round
	 * trips, in which 4/3 may be due. With more, such an ACK makes a burst; with
	 * less, windows whose round trip has few ACKs grow more slowly. Up to an
	 * eighth relative_grown() is right to 2^-14.
	 */
	size = relative_size(ca, ack, balance);
	change = fixp_mul(ca->cwnd, likely(size <= FIXP_ONE / 8) ?
				    relative_grown(size) :
				    relative_grown(FIXP_ONE / 8));
	return unlikely(ca->halved) ? min(change, relative_room(ca, ack)) : change;
}

/**
 * sbrm_relative_rtt_small() - round-trip time to pace a small window by
 * @ca: connection, with a slow round-trip time; its window is below
 *	2^%SBRM_RTT_HALF_CWND_SHIFT segments, or twice that with the price field
 *
 * The smaller the window, the more the slow round-trip time counts.
 *
 * Return: 2^-6 us.
 */
u32 sbrm_relative_rtt_small(const struct sbrm *ca)
{
	s64 longer = ((s64)ca->rtt_us << SBRM_RTT_SLOW_SHIFT) - ca->rtt_slow;

	/* The window is below 2^34, 2^25 of that, times 2^32. */
	return ca->rtt_slow + (longer * (s64)(ca->cwnd >> 9) >>
			       (FIXP_SHIFT + SBRM_RTT_HALF_CWND_SHIFT + 1 - 9));
}
