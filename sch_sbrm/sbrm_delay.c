// SPDX-License-Identifier: GPL-2.0
/*
 * The price law "delay": for a link of any rate, with nothing to configure
 *
 * The laws of the papers count packets above a target. One packet more is half a
 * percent of the price at 100 Mb/s, and several times the price at 1 Gb/s. Here
 * everything is a ratio. With d the delay of the queue, d0 its target and idle
 * the share of time in which the link has nothing to send,
 *
 *	u' = a (d / d0 - 1) - b idle,	p = e^(u + b d + l d') (1 - idle)^h
 *
 * so that it is the logarithm of the price that moves. The sources that go with
 * it answer a change of u by the same change of the logarithm of their windows
 * (see sbrm_relative.c of tcp_sbrm), so that neither the capacity nor the number
 * of flows is part of the loop gain.
 *
 * Too high a price shows at once, as time in which nothing is there to send: it
 * falls by b, which is about how fast windows can grow. Too low a price does
 * not: what arrives at a queue that stands is what leaves it, as long as windows
 * limit it. So a new queue begins with a high price, and (1 - idle)^h keeps a link
 * that rests from marking for it. A link that rests and hardly marks has no demand:
 * there the price goes back to the one of the start, and is not too low when all
 * come at once.
 *
 * Where both directions of a line are full the acknowledgements of one wait in the
 * queue of the other. When one queue grows as fast as the other one becomes empty,
 * round trips stay as they are, and then no window limits what arrives: both queues
 * are integrators. It is l d' that keeps them from swinging.
 *
 * A link that is used in part, by many short flows, has a price that is far too low
 * when one comes that takes all it can. The term a alone would take seconds to bring
 * it back: it is as small as the margin at rest asks for. So a delay above three
 * targets that does not fall makes the price rise at once, within a tenth of a
 * second to a 128th of the first one, and from there up to an eighth; it stops when
 * the delay falls, so that it does not rise too far.
 *
 * The rate of the link is measured: what a packet took that others waited for. So
 * the law follows a link whose rate changes.
 *
 * Not from the papers. The rest point x = w / p of a flow, the marks and how
 * those of several queues compose are those of CP05 4.2 and 5.4.
 */

#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>

#include "sbrm_laws.h"

/*
 * Between two updates of the price, at least, ns. An update takes several
 * divisions, and a packet without one takes none. A shorter time costs more of
 * them; with a longer one the price is late. This is a third of the target of
 * 3 ms.
 */
#define DELAY_TICK_NS		NSEC_PER_MSEC

/*
 * Between two packets, no more of the time counts, ns: a link that serves less
 * than a packet per second is taken for one that serves one.
 */
#define DELAY_GAP_MAX_NS	NSEC_PER_SEC

/*
 * b, per second of idle time, and for a second of delay. Without a price
 * windows of the source relative grow by w / k = 25 / 10 = 2.5 per second, and
 * b is about that. With a larger one the price falls faster than windows can
 * follow, and is too low when the link is full; with a smaller one the link is
 * idle for longer.
 *
 * Both are the same b. Where y packets/s arrive at a link of c, idle is
 * 1 - y / c, and a queue makes the delay grow by y / c - 1 per second: ln p
 * moves by b (y / c - 1), with and without a queue.
 */
#define DELAY_B			3

/*
 * Below so many marks per second, in 2^-32, it is not the price for which a
 * link rests, see delay_fall(). A flow that fills the link asks for w of them
 * at any rate. With a w of 25 that leaves (25 - 0.5) / (25 + 0.5) = 96 % of b.
 * A larger number keeps the price too high for a flow with a small w; with a
 * smaller one the price of an unused link returns later.
 *
 * Their number is an average over this time, ns. If it is shorter, a pause of
 * the flows looks like missing demand; if it is longer, the price falls for
 * longer after the last flow has left.
 */
#define DELAY_MARKS		(FIXP_ONE / 2)
#define DELAY_MARKS_NS		NSEC_PER_SEC

/*
 * a = 1/40 per second. It is small for the sake of the margin at rest. k of the
 * source relative is at least what is due in three round trips, so that ln p
 * and the delay would swing at up to sqrt(a / (3 d0)) radians per second if
 * nothing damped them: 1.7 with d0 = 3 ms, where a round trip of 0.2 s is a
 * third of a radian. With a larger a queues swing at long round trips; with a
 * smaller one a price that is too low rises later.
 *
 * d / d0 counts up to 2^5, which is 0.8 per second. With 2^6 the initial
 * windows of many flows took the price so high that it needed many seconds to
 * come down. At 10 Mb/s and 20 ms with 36 flows, 2^5 instead of 2^6 gave 98.2
 * instead of 97.9 % of the link, and 11 instead of 18 ms at the 99th percentile
 * of the delay.
 */
#define DELAY_A_INVERSE		40
#define DELAY_LATE_SHIFT	16
#define DELAY_LATE_MAX		(32U << DELAY_LATE_SHIFT)

/*
 * Above a price of 1 sources are slower. Each has w / p packets per second, and
 * needs ten of them to see an answer (see relative_answer_us() of tcp_sbrm), which
 * take 10 p / w seconds. k is what is due in three times that, 30 p marks, and
 * windows move by w / k = 25 / (30 p), 0.8 / p per second. So b is divided by p.
 * The gain a / d0 is one of the second order, and is divided by p^2. If it were not,
 * the price would be ahead of the windows by a factor of ten and more, and swing:
 * with 100 flows at 10 Mb/s and 20 ms (p = 2.5) there were 56 % of the link and 74 ms
 * of delay in turns, instead of 99 % and 10 ms.
 *
 * p^2 is for a d0 of up to this many ns. Where d0 is longer, a / d0 is smaller by
 * that anyway, and the divisor is, too. Where it is shorter, the divisor is not
 * larger, or many flows that begin would wait for their price.
 *
 * For b it is the price that the sources see: when many have left, that is far
 * below e^u, as idle is much, and those who stay do not wait for long.
 */
#define DELAY_SLOW_TARGET_NS	(3ULL * NSEC_PER_MSEC)

/*
 * While the delay is above so many targets and does not fall, u rises by 6 per
 * second for each further three targets, up to 12, but not beyond an eighth of the
 * first price: where more is due, windows have time to follow a. (With a quarter, the
 * users of web pages on a link in part use wait for longer: 2.09 s instead of 1.88 s at
 * the 99th percentile, ten seeds; but 17 instead of 31 packets wait, seed 1.) The size of 12:
 * windows grow by 2.5 per second, and in the 0.1 s until sources answer it is a
 * factor of 3. It needs nine targets: if six were enough, single flows at 10 Mb/s,
 * where this is 15 packets, would have 92 instead of 94 % of a line with a round
 * trip of 100 ms that both directions fill.
 *
 * Beyond that eighth, up to the first price, and four times as fast, while a full queue
 * drops packets again, within two seconds: it does so for about a round trip only. Else 36
 * flows at 10 Gb/s and 20 ms, where a queue of 40 ms holds what two round trips send, fill
 * it every 0.9 s for longer than 30 s: what they lose halves windows long before a brings
 * the price there. (Not four times as fast, they lost 23 000 packets and settled after
 * 11.7 s.) Not for longer than that: one flow that fills a short queue as it begins would
 * rest at a fortieth of the link with the first price. And not the first time: one burst
 * that others send says little about the price. With datagrams at twice the rate for
 * 0.1 s, ten flows had 0.67 of the link in the half second after it instead of 0.99.
 *
 * Three targets, because the term a alone keeps a queue at rest below that: the
 * 99th percentile of the delay is 7.3 ms at most, 2.4 targets, with one and
 * four flows at 10 and 100 Mb/s and round trips of up to 100 ms, and 9.7 ms with
 * 200 ms (selftests/README.md). With less, the queue at rest would raise the
 * price; with more, a price that is too low would be raised later.
 */
#define DELAY_RISE		6
#define DELAY_RISE_MAX		2U
#define DELAY_RISE_LATE		3
#define DELAY_RISE_FULL		4
/* Drops with so many ns between them are due to two bursts, not to one. */
#define DELAY_FULL_APART_NS	(NSEC_PER_SEC / 4)
/* And so soon the second one means that the price is too low. */
#define DELAY_FULL_AGAIN_NS	(2 * NSEC_PER_SEC)
/* That eighth: ln 8, from Q48 to Q32. */
#define DELAY_RISE_LOG		(3 * (s64)(FIXP_LN2_Q48 >> 16))

/*
 * Below a 128th of the first price it rises by so many times as much. That is 8
 * marks per second of a full link, a third of what a single flow with the default w
 * of 25 asks for at rest. With more, bursts that others send now and then bring the
 * price to what flows of a small w cannot pay. One of w = 1 beside a connection that
 * sends 64 kB in each second has 0.43 of 10 Mb/s; it has 0.66 without this, and 0.29
 * with a 32nd (20 ms, means of three seeds). With less, windows of several flows that
 * come at once are not slowed.
 *
 * A link that is used in part may have e^-10 of it, which 12 per second make up
 * for in 0.8 s, and this in less than 0.1 s. If it were at once, each burst that
 * takes more than three targets would bring it there. Without it, a queue of more than
 * twenty targets builds up in the meantime: with users of web pages on a link that is
 * full for 0.6 of the time, 80 ms at the 99th percentile instead of 37 (29 with a 32nd).
 * All of these numbers were measured when the slower rise ended at a quarter.
 */
#define DELAY_RISE_FAST		16
/* That 128th: ln 128. */
#define DELAY_RISE_FAST_LOG	(7 * (s64)(FIXP_LN2_Q48 >> 16))

/*
 * How fast the delay changes, d', is what it is above an average over this time,
 * ns, as a share of that. If the time is shorter, a few packets more or less look
 * like a change; if it is longer, the change is known too late to damp anything. It
 * is at least the time of so many full packets, 480 ms at 1 Mb/s. And above a price
 * of 1 it is as many times as long, as all else is slower there, too.
 */
#define DELAY_SLOW_NS		(32 * NSEC_PER_MSEC)
#define DELAY_SLOW_PACKETS	40

/*
 * A price that rises because it was far too low stops when the delay is so many ns
 * below that average: where this is over 32 ms, the delay falls by a fifth of a second
 * in a second, and four fifths of what the link sends arrive. If it were less, the
 * rise would end before windows are small enough; if it were more, the price would go
 * on rising while the queue drains, and be too high when it is empty. So it is not
 * more on slow links, whose average is over a longer time: with as large a part of
 * that, the price of a link of 1 Mb/s would rise until a queue of 250 ms is empty.
 */
#define DELAY_FALLS_NS		(DELAY_SLOW_NS / 5)

/*
 * l = 1.5, in halves. Where both directions are full, with K = 2.5 per second by which
 * windows answer,
 *
 *	s^2 = -K (a / (d0 s) + b + l s) e^(-RTT s)
 *
 * for small swings of the two queues in turns. Even without a round trip these are
 * damped only from l = a / (d0 b K) = 1.1 on. Without l such links had 75 to 97 % of
 * their rate. With 1.5 they have 98.9 % and more with round trips of up to 80 ms, and swing
 * from 150 ms on.
 *
 * Where windows limit what arrives, the same d' is what windows have changed by, a
 * round trip late. K is a third of 1 / RTT at most, so that l / 3 of each change comes
 * back: with 3 it would go on for ever, and with 2 the queue that 36 flows make when they
 * begin swings for many seconds (100 Mb/s, 100 ms: 13 ms at the 99th percentile after
 * 3 s, and 7 ms with 1.5; 200 ms: 7.6 ms in the mean, and 3.6; when all of the last round
 * trip paced tcp_sbrm).
 */
#define DELAY_LEAD_HALVES	3

/*
 * h = 1.3, in 2^-10. At the first price, which asks for 1000 marks per second
 * of a full link, a part y of the link is asked for 1000 y^(1 + h). One flow
 * with a w of 25 alone rests there at y^2.3 = 0.025: a fifth of the link, where
 * it would be a fortieth without h. From there the price falls by b. A larger h
 * leaves more to that flow, but then the price changes more with each error of
 * idle, and rises more steeply as the link fills.
 */
#define DELAY_H_Q10		1331

/*
 * The share of idle time is an average over this time, ns. If it is shorter,
 * the price falls in each gap between bursts of packets; if it is longer, a
 * link that has become full goes on for longer at the price of one that rests.
 */
#define DELAY_IDLE_NS		(64 * NSEC_PER_MSEC)

/*
 * The rate of the link is one over this time, in which it was busy, ns. At
 * 1 Mb/s that is ten full packets. If it is shorter, single packets, and turns
 * of a parent that serves other classes, change the rate; if it is longer, a
 * link whose rate has changed is taken for the old one for longer.
 */
#define DELAY_MEMORY_NS		(128 * NSEC_PER_MSEC)

/*
 * What passes is counted for so long, ns. If it is shorter, a burst of some
 * packets looks like a faster link: at 10 Mb/s four of them are 5 ms. If it is
 * longer, a faster link is measured later.
 */
#define DELAY_PASSED_NS		(64 * NSEC_PER_MSEC)

/*
 * The rate of the link is out of date after this time, 268 ms, and 2^4 packets;
 * but those at most for 2^4 times as long. With less, a queue that is empty for
 * a round trip makes the price fall, as the link may have become faster. With
 * more, a link that has become faster is found later. The packets are for links
 * below 0.7 Mb/s, which serve fewer than 16 of them in 268 ms, and the last
 * number is for a link that serves hardly any.
 */
#define DELAY_STALE_NS_SHIFT	28
#define DELAY_STALE_NS		BIT_ULL(DELAY_STALE_NS_SHIFT)
#define DELAY_STALE_SHIFT	4
#define DELAY_STALE_MAX_NS	(DELAY_STALE_NS << DELAY_STALE_SHIFT)

/*
 * A link that sends more packets than this ahead of its rate is faster. TCP
 * sends two or three at a time, and shapers let them go at once: with less,
 * each of these bursts looks like a faster link. With more, a faster link is
 * found later.
 */
#define DELAY_AHEAD		4

/*
 * Of the time for which the link is taken for busy with what has left, this
 * share counts as idle, in 2^-16: where it was ahead of its rate, a half; where
 * that is out of date, a 2^5th.
 *
 * A half is what a link that is twice as fast has. It holds until that one has
 * been measured. A 2^5th makes u fall by 3 / 32, 0.09 per second. It was a
 * half, too, but then the price fell until the link was full, and was five to
 * seven times as high 150 ms later: at 100 Mb/s and 200 ms the queue swung by
 * 100 ms. With a smaller share a link that has become faster is found later.
 */
#define DELAY_DOUBT_SHIFT	16
#define DELAY_DOUBT_FAST	BIT(DELAY_DOUBT_SHIFT - 1)
#define DELAY_DOUBT_STALE_SHIFT	5

/* Until the first packets have left a full one has so many bytes. */
#define DELAY_SIZE_FIRST	1514

/*
 * d0 is at least the service time of so many full packets. The backlog is a
 * number of whole packets: with one, the queue would be empty for a part of the
 * time. More than two only make the queue of a slow link longer, 12 ms for each
 * at 1 Mb/s.
 */
#define DELAY_PACKETS		2

/*
 * The first price asks for so many marks per second of all, once the rate of the
 * link is known: the w of 40 flows of 25.
 */
#define DELAY_FIRST_MARKS	1000ULL

/*
 * It is known from so many full packets on that were served one by one. With
 * fewer, the burst that a shaper allows at first passes for the rate. With
 * more, flows that begin see the price of a slow link for longer.
 */
#define DELAY_KNOWN_PACKETS	8

/*
 * Until then the link is taken for so many times as fast as what passes. It is
 * also what delay_rise() makes up for at once: so if the link is no faster than
 * what passes, no time is lost. With less, the slow start of a flow ends far
 * below the link; with more, the price of a slow link is lower than
 * delay_rise() can repair. With four, one flow at 1 Gb/s settled after 2.4 s
 * instead of 4.2 s.
 */
#define DELAY_UNKNOWN		4

/*
 * ln of the first, the least and the largest price, Q32: 1.7, e^-16, 400.
 *
 * 1.7 marks 82 % of the packets. It is the first price below 588 packets/s
 * (7 Mb/s), where 1000 marks per second would be more. A larger one leaves few
 * packets without a mark to tell a price by; with a smaller one the price of a
 * slow link is too low when many flows begin at once.
 *
 * e^-16 is 1.1e-7: a flow with a w of 25 is to have 2.2e8 packets/s then, which
 * is 2.7 Tb/s. No link needs a lower price.
 *
 * 400 is below the 2^9 that delay_exp() has room for. Beyond a price of 11
 * marks say no more (tcp_sbrm(7)), and time without packets takes 1.2 s to
 * bring it down from 400 to there at b: ln(400 / 11) is 3.6. A larger one takes
 * longer to come down.
 */
#define DELAY_LOG_FIRST		2279018433LL
#define DELAY_LOG_MIN		(-(16LL << FIXP_SHIFT))
#define DELAY_LOG_MAX		25733221300LL

/*
 * Fractional bits of the service time of a byte, ns: at 100 Gb/s it is 0.08 ns, 83886 in Q20,
 * with an error of 2^-16. And of the bytes served: when delay_serve() forgets a part of them,
 * Q8 keeps fractions of a byte.
 */
#define DELAY_SERVICE_SHIFT	20
#define DELAY_SERVED_SHIFT	8

/* 2^32 / 10^9 * 2^20: ns times this, shifted by 20, are seconds in Q32. */
#define DELAY_SECOND_Q20	4503600LL

/* Time to serve some bytes, at most 2^40 ns. */
static u64 delay_ns_of(u64 service, u32 bytes)
{
	return min_t(u64, mul_u64_u32_shr(service, bytes, DELAY_SERVICE_SHIFT),
		     BIT_ULL(40));
}

/* exp(u) in Q32, u at most DELAY_LOG_MAX: below 2^41. */
static u64 delay_exp(s64 u)
{
	if (u <= 0)
		return fixp_exp_neg(-u);
	/* exp(u) = 2^9 exp(u - 9 ln 2), as 2^9 > 400. ln 2 is shifted from Q48 to Q32. */
	return fixp_exp_neg(9 * (FIXP_LN2_Q48 >> 16) - u) << 9;
}

/* Add a time to busy_ns or idle_ns. */
static void delay_account(struct sbrm_state *state, u64 passed, bool busy)
{
	u64 tail = min(passed, state->tail_ns), idle = 0;

	/*
	 * What has left is still on its way out for a while, if the link is no
	 * faster than it is taken for. Below 2^42 times 2^16.
	 */
	if (!busy)
		idle = passed - tail + (tail * state->doubt >> DELAY_DOUBT_SHIFT);
	state->tail_ns -= tail;
	state->busy_ns += passed - idle;
	state->idle_ns += idle;

	state->gap_ns += passed;
	if (busy)
		state->wait_ns += passed;
	if (idle)
		state->last = 0;
}

/*
 * Where nothing waits the rate of the link cannot be measured. But it is not
 * less than what passes.
 */
static void delay_pass(struct sbrm_state *state)
{
	u64 takes;

	state->passed_ns += state->busy_ns + state->idle_ns;
	if (state->passed_ns < DELAY_PASSED_NS)
		return;

	takes = delay_ns_of(state->service,
			    min_t(u64, state->passed, U32_MAX));
	if (state->stale && takes > state->passed_ns) {
		state->served_ns = state->passed_ns;
		state->served = state->passed << DELAY_SERVED_SHIFT;
	}
	state->passed_ns = 0;
	state->passed = 0;
}

/* When the rate of a link is out of date on which a packet takes so long, ns. */
static u64 delay_stale_ns(u64 takes)
{
	return clamp(takes << DELAY_STALE_SHIFT, DELAY_STALE_NS,
		     DELAY_STALE_MAX_NS);
}

/*
 * May the link be faster than it is taken for? Half of the time is idle where it
 * was ahead of its rate. Where nothing has had to wait for long, it may be faster: a
 * 32nd is idle there, so that prices fall and more is sent, until packets wait or
 * are ahead of the rate.
 */
static void delay_doubt(struct sbrm_state *state)
{
	u64 stale = delay_stale_ns(delay_ns_of(state->service, state->size));
	u64 age = min(state->age_ns, stale);

	state->stale = age == stale || state->fast_ns;
	if (unlikely(state->fast_ns))
		state->doubt = DELAY_DOUBT_FAST;
	else
		state->doubt = div64_u64(age << (DELAY_DOUBT_SHIFT -
						 DELAY_DOUBT_STALE_SHIFT),
					 stale);
}

/* Update the measured rate of the link by the bytes served since the last update. */
static void delay_serve(struct sbrm_state *state)
{
	u64 forget = min_t(u64, state->left_ns, DELAY_MEMORY_NS);

	/* At most 2^32, and what a device sends in that time. */
	state->served_ns += state->left_ns -
		fixp_mul_div(state->served_ns, forget, DELAY_MEMORY_NS);
	state->served += (state->left << DELAY_SERVED_SHIFT) -
		fixp_mul_div(state->served, forget, DELAY_MEMORY_NS);
	delay_doubt(state);
	delay_pass(state);
	if (state->served_ns && state->served)
		WRITE_ONCE(state->service,
			   fixp_mul_div(state->served_ns,
					BIT_ULL(DELAY_SERVICE_SHIFT +
						DELAY_SERVED_SHIFT),
					state->served));
}

/* Is the rate of the link known, and not only that of a first burst? */
static bool delay_is_known(const struct sbrm_state *state)
{
	return state->served_ns >= DELAY_TICK_NS &&
	       state->served >> DELAY_SERVED_SHIFT >=
	       (u64)DELAY_KNOWN_PACKETS * state->size;
}

/*
 * ln of the price that asks for DELAY_FIRST_MARKS where a full packet leaves every
 * @takes ns, at most 2^40, Q32.
 */
static s64 delay_log_asks(u64 takes)
{
	u64 price = fixp_mul_div(takes, DELAY_FIRST_MARKS << FIXP_SHIFT,
				 NSEC_PER_SEC);

	/* Of less than a ns it is 0. */
	return min_t(s64, fixp_ln(max_t(u64, price, 1)), DELAY_LOG_FIRST);
}

/* The same where the link is full, if its rate is known. */
static s64 delay_log_first(const struct sbrm_state *state)
{
	if (!delay_is_known(state))
		return DELAY_LOG_FIRST;
	return delay_log_asks(delay_ns_of(state->service, state->size));
}

/*
 * The first price of a new queue is for a slow link. Until packets wait, and show
 * the rate of the link, the rate is at least what passes, and flows that start send
 * several times as much before they hear of a price. Without this bound the slow
 * start of each flow ends at some percent of a link of 1 Gb/s.
 */
static void delay_first_bound(struct sbrm_state *state)
{
	s64 first = DELAY_LOG_FIRST;
	u64 takes;

	if (delay_is_known(state)) {
		state->is_new = false;
		first = delay_log_first(state);
	} else if (state->passed_ns >= DELAY_PASSED_NS / 4 && state->passed) {
		/*
		 * A quarter of that time, 16 ms: before it, a burst of some
		 * packets looks like a fast link. Much later than this, slow
		 * start has ended. 2^32 times 2^32.
		 */
		takes = div64_u64(state->passed_ns * state->size,
				  DELAY_UNKNOWN * state->passed);
		first = delay_log_asks(min_t(u64, takes, BIT_ULL(40)));
	}
	state->log_price = min(state->log_price, first);
}

/*
 * What idle time takes from ln p, ns in Q0. Where next to nothing is marked it is
 * demand that is missing: then the price goes back to the first one, so that it is
 * not too low for all who come at once.
 */
static s64 delay_fall(const struct sbrm_state *state)
{
	s64 fall = DELAY_B * (s64)state->idle_ns;
	u64 marks = state->marks;

	/* |fall| < 2^32; marks are shifted by 16, from Q32 to Q16, below 2^28: below 2^60. */
	return div64_s64(fall * ((s64)(marks >> 16) - (s64)(DELAY_MARKS >> 16)),
			 (marks + DELAY_MARKS) >> 16);
}

/* Marks per second, Q32: what the price asked of those that left. */
static void delay_marks_update(struct sbrm_state *state)
{
	u64 since = state->busy_ns + state->idle_ns;
	u64 now = min_t(u64, fixp_mul_div(state->price, (u64)state->packets *
					  NSEC_PER_SEC, since), BIT_ULL(44));
	s64 off = (s64)now - (s64)state->marks;

	/*
	 * |off| < 2^44, shifted by 10, times a time below 2^30 ns, shifted by 10: below 2^54.
	 * The factor 1024 undoes the first shift; the second one is in numerator and divisor.
	 */
	off = div_s64((off >> 10) * (s64)(min_t(u64, since, DELAY_MARKS_NS) >>
					  10), DELAY_MARKS_NS >> 10) * 1024;
	/* Rounded down, it could end below 0. */
	state->marks = max_t(s64, (s64)state->marks + off, 0);
}

/**
 * delay_rise() - how fast ln p rises because it is far too low
 * @late: delay over its target, in 2^-16, at most DELAY_LATE_MAX
 * @off: of the delay from its average, see delay_off()
 *
 * Return: per second, in 2^-16.
 */
static u32 delay_rise(u32 late, s64 off)
{
	u32 share;

	if (likely(late <= DELAY_RISE_LATE << DELAY_LATE_SHIFT) ||
	    off <= -(s64)DELAY_FALLS_NS)
		return 0;
	share = min(late / DELAY_RISE_LATE - (1U << DELAY_LATE_SHIFT),
		    DELAY_RISE_MAX << DELAY_LATE_SHIFT);
	/* Below 2^17 times 2^23. */
	if (off < 0)
		share = div_u64(share * (u64)(DELAY_FALLS_NS + off),
				DELAY_FALLS_NS);
	return share * DELAY_RISE;
}

/* A step of ln p, divided by a price of at least 1 (Q32). */
static s64 delay_slowed(s64 step, u64 price)
{
	s64 size = fixp_mul_div(abs(step), FIXP_ONE, price);

	return step < 0 ? -size : size;
}

/**
 * delay_next() - ln p at the next update
 * @coef: options
 * @state: with the time since the last update in busy_ns and idle_ns
 * @delay: of the queue, at most 2^40 ns
 * @off: from its average, see delay_off()
 *
 * Return: Q32, DELAY_LOG_MIN .. DELAY_LOG_MAX.
 */
static s64 delay_next(const struct sbrm_coef *coef,
		      const struct sbrm_state *state, u64 delay, s64 off)
{
	u64 since = state->busy_ns + state->idle_ns;
	u64 target = max_t(u64, coef->delay_ns,
			   DELAY_PACKETS * delay_ns_of(state->service,
						       state->size));
	s64 fall = delay_fall(state) * DELAY_SECOND_Q20 >> 20;
	s64 u = state->log_price, step, first;
	u64 price = u > 0 ? delay_exp(u) : FIXP_ONE;
	u32 late, rise;

	/* Below 2^56 over at least 10^3; below 2^22 times 2^32. */
	late = min_t(u64, div64_u64(delay << DELAY_LATE_SHIFT, target),
		     DELAY_LATE_MAX);
	step = ((s64)late - (1 << DELAY_LATE_SHIFT)) * (s64)since >>
	       DELAY_LATE_SHIFT;
	step = div_s64(step, DELAY_A_INVERSE) * DELAY_SECOND_Q20 >> 20;
	/* While the link rests for a part of the time, less is asked for. */
	if (fall > 0 && unlikely(state->price > FIXP_ONE))
		fall = delay_slowed(fall, state->price);
	if (unlikely(price > FIXP_ONE)) {
		/* The target of a slow link is longer: it takes less off. */
		price = fixp_mul_div(fixp_mul_div(price, price, FIXP_ONE),
				     DELAY_SLOW_TARGET_NS,
				     max(target, DELAY_SLOW_TARGET_NS));
		step = delay_slowed(step, max_t(u64, price, FIXP_ONE));
	}

	if (fall < 0)
		u = max(u, min(u - fall, delay_log_first(state)));
	else
		u -= fall;
	u += step;

	rise = delay_rise(late, off);
	if (unlikely(rise)) {
		/* Below 2^20 times 2^32; 2^36 times 2^23. */
		step = ((s64)rise * (s64)since >> DELAY_LATE_SHIFT) *
		       DELAY_SECOND_Q20 >> 20;
		first = delay_log_first(state);
		u = max3(u, min(u + step * DELAY_RISE_FAST,
				first - DELAY_RISE_FAST_LOG),
			 min(u + step, first - DELAY_RISE_LOG));
		if (unlikely(state->full && state->again))
			u = max(u, min(u + step * DELAY_RISE_FULL, first));
	}
	return clamp_t(s64, u, DELAY_LOG_MIN, DELAY_LOG_MAX);
}

/* The time of the average that tells how fast the delay changes, ns. */
static u32 delay_slow_ns(const struct sbrm_state *state)
{
	u64 time = max_t(u64, DELAY_SLOW_NS, DELAY_SLOW_PACKETS *
			 delay_ns_of(state->service, state->size));

	if (unlikely(state->log_price > 0))
		time = fixp_mul_div(time, delay_exp(state->log_price),
				    FIXP_ONE);
	return min_t(u64, time, NSEC_PER_SEC);
}

/* How far a delay of at most 2^40 ns is above its average, +-10^9 ns. */
static s64 delay_off(const struct sbrm_state *state, u64 delay)
{
	return (s64)min_t(u64, delay, DELAY_GAP_MAX_NS) - (s64)state->slow_ns;
}

/**
 * delay_grows() - how fast does the delay change?
 * @state: what the law remembers; its average goes on by the time since the last update
 * @off: of the delay from that average
 *
 * Return: seconds in a second, Q32, -1 .. 1.
 */
static s64 delay_grows(struct sbrm_state *state, s64 off)
{
	u32 time = delay_slow_ns(state);
	u64 since = min_t(u64, state->busy_ns + state->idle_ns, time);

	/* 2^30 times 2^30 */
	state->slow_ns += div_s64(off * (s64)since, time);
	/* 2^30 times 2^32 */
	return div_s64(clamp_t(s64, off, -(s64)time, time) * FIXP_ONE, time);
}

/* The share of idle time, Q32. */
static void delay_idle_update(struct sbrm_state *state)
{
	u64 since = state->busy_ns + state->idle_ns;
	s64 off = (s64)fixp_mul_div(state->idle_ns, U32_MAX, since) -
		  state->idle;

	/* 2^32 times 2^26 */
	off = div_s64(off * (s64)min_t(u64, since, DELAY_IDLE_NS),
		      DELAY_IDLE_NS);
	WRITE_ONCE(state->idle, state->idle + off);
}

/* Has the queue dropped packets, and is it the second time? Idle time counts in full. */
static void delay_full_update(struct sbrm_state *state)
{
	u64 apart_ns = state->time - state->full_time;

	if (likely(!state->full))
		return;
	if (apart_ns > DELAY_FULL_APART_NS)
		state->again = apart_ns <= DELAY_FULL_AGAIN_NS;
	state->full_time = state->time;
}

/*
 * Work out the price. Apart from what each packet costs, as most packets on a fast
 * link come without an update.
 */
static noinline void delay_update(const struct sbrm_coef *coef,
				  struct sbrm_state *state, u32 backlog)
{
	s64 u, off, grows;
	u64 delay;

	delay_serve(state);
	if (unlikely(state->is_new))
		delay_first_bound(state);
	delay_marks_update(state);
	delay_full_update(state);
	delay = delay_ns_of(state->service, backlog);
	off = delay_off(state, delay);
	grows = delay_grows(state, off);
	u = delay_next(coef, state, delay, off);
	state->log_price = u;
	delay_idle_update(state);

	u += DELAY_LEAD_HALVES * grows / 2;
	u += DELAY_B * (s64)min_t(u64, delay, DELAY_GAP_MAX_NS) *
	     DELAY_SECOND_Q20 >> 20;
	u -= (s64)(fixp_ln_lost(state->idle) * DELAY_H_Q10) >> 10;
	WRITE_ONCE(state->price, delay_exp(min_t(s64, u, DELAY_LOG_MAX)));
	state->left = 0;
	state->left_ns = 0;
	state->packets = 0;
	state->busy_ns = 0;
	state->idle_ns = 0;
	state->full = false;
}

/**
 * sbrm_delay_advance() - bring the price up to a time
 * @coef: options
 * @state: what the law remembers
 * @now: time, ns
 * @backlog: bytes; 0 if there was nothing to send since the last call
 */
void sbrm_delay_advance(const struct sbrm_coef *coef, struct sbrm_state *state,
			u64 now, u32 backlog)
{
	u64 passed = now - state->time;

	if ((s64)passed <= 0)
		return;
	WRITE_ONCE(state->time, now);
	delay_account(state, min_t(u64, passed, DELAY_GAP_MAX_NS), backlog);
	if (state->busy_ns + state->idle_ns >= DELAY_TICK_NS)
		delay_update(coef, state, backlog);
}

/**
 * delay_busy() - for how long does what has left keep the link busy?
 * @state: what the law remembers; gap_ns is still the time since the last packet
 * @takes: time for the packet that leaves, ns, at most 2^40
 *
 * Packets that a shaper lets go at once, as TCP sends them, keep the link busy for
 * as long as all of them take. If only the last one counted, a link that is full to
 * 94 % would be taken for one that rests for three quarters of the time: its price
 * would fall until it is full, and jump then.
 *
 * More packets ahead of the rate than a shaper allows mean that the link is faster.
 */
static void delay_busy(struct sbrm_state *state, u64 takes)
{
	if (unlikely(state->fast_ns))
		state->fast_ns -= min(state->fast_ns, state->gap_ns);

	state->tail_ns += takes;
	/*
	 * A packet that waited left when the one before had been served: only
	 * this one is still on its way out. Twice its time, as service times
	 * vary: with less, the link would seem to rest between packets that
	 * wait; with more, a rest after them would not be seen.
	 */
	if (state->waited) {
		state->tail_ns = min(state->tail_ns, 2 * takes);
		return;
	}
	if (likely(state->tail_ns <= DELAY_AHEAD * takes))
		return;
	/* Full packets: a short one behind two of them is not ahead of anything. */
	takes = delay_ns_of(state->service, state->size);
	if (state->tail_ns > DELAY_AHEAD * takes) {
		state->tail_ns = DELAY_AHEAD * takes;
		state->fast_ns = delay_stale_ns(takes);
	}
}

/**
 * sbrm_delay_departure() - a packet leaves
 * @state: what the law remembers
 * @bytes: of the packet
 */
void sbrm_delay_departure(struct sbrm_state *state, u32 bytes)
{
	u64 takes = delay_ns_of(state->service, bytes);
	bool waited = 4 * state->wait_ns >= takes ||
		      (state->fast_ns && state->wait_ns >= state->gap_ns);

	/*
	 * A packet that waited for the one before, which had to wait itself, says
	 * how long that one took. Others may be a burst that a shaper allows. To
	 * wait for a quarter of what a packet takes is enough, or, where the link is
	 * faster, all of the time since the last one left.
	 */
	if (state->last && waited && state->waited) {
		state->left += state->last;
		state->left_ns += state->gap_ns;
		state->age_ns = 0;
	}
	state->age_ns = min_t(u64, state->age_ns + state->gap_ns,
			      DELAY_STALE_MAX_NS);
	state->waited = waited;
	delay_busy(state, takes);
	state->passed += bytes;
	state->last = bytes;
	state->gap_ns = 0;
	state->wait_ns = 0;
	state->packets++;
	/* The largest of the last 2^8, as each takes a 2^8th from an older one. */
	state->size = max(bytes, state->size - (state->size >> 8));
}

/**
 * sbrm_delay_start() - begin, with a price that another law led to
 * @state: all 0 but the time
 * @price: Q32; 0 if there was none
 */
void sbrm_delay_start(struct sbrm_state *state, u64 price)
{
	state->log_price = DELAY_LOG_FIRST;
	state->size = DELAY_SIZE_FIRST;
	/* As if it had been long ago. */
	state->full_time = state->time - DELAY_FULL_AGAIN_NS - 1;
	/* A link that rests is not priced. */
	state->idle = U32_MAX;
	state->is_new = !price;
	if (!price)
		return;
	state->log_price = clamp_t(s64, fixp_ln(price), DELAY_LOG_MIN,
				   DELAY_LOG_MAX);
	state->price = min_t(u64, price, delay_exp(DELAY_LOG_MAX));
	state->idle = 0;
}

void sbrm_delay_fill_xstats(const struct sbrm_coef *coef,
			    const struct sbrm_state *state,
			    struct tc_sbrm_xstats *xstats)
{
	u64 service = state->service;

	xstats->idle = state->idle;
	if (service)
		xstats->service_rate =
			div64_u64((u64)NSEC_PER_SEC << DELAY_SERVICE_SHIFT,
				  service);
}
