// SPDX-License-Identifier: GPL-2.0
/*
 * A queue that others share
 *
 * There a rate by pairs is no share, and a setpoint is no protection: in a long FIFO
 * the connection would have less than greedy ones, in a short one nearly all. So
 * what is known to live with others takes over: a window much as that of RFC 9438 (CUBIC).
 * That is 7/10 of the window after a loss or a mark (ECE). Then it grows by a part of a
 * segment or more in each round trip, see pp_share_reno(), or as a cubic function of time, see
 * pp_share_growth(): beside cubic on a path that holds 300 packets, a flow with the first alone
 * had less than half of an equal share. What the window allows still leaves as pairs, if pairs
 * have shown the queue, and is paced at 6/5 of the window in a round-trip time, and at two
 * windows in slow start (below half of ssthresh), as the kernel paces.
 *
 *		       shared			 fell, or R was raised lately
 *	 +---------+ ---------> +-------------+ ------> +------------+
 *	 | the law |		| law, with   |		| the window |
 *	 |	   | <--------- | what arrives| <------ |	     |
 *	 +---------+  R raised,	+-------------+  seldom +------------+
 *	      ^	      or alone				      |
 *	      +-----------------------------------------------+
 *		quiet, or pairs tell the same as what arrives
 *
 * First, for eight round trips, the connection sends what arrives and the setpoint,
 * and looks whether the round-trip time falls for that; if it does not, the way is
 * longer than R, and R is raised.
 *
 * Without pairs, more is sent for a round trip to see it: see pp_share_doubt(). Then the
 * window begins at once.
 *
 * The window ends when pairs have told the same as what arrives for 16 round trips:
 * nobody else is there. A round trip in which nothing was lost and nothing waits
 * counts as four. The window also ends if a third of it has waited, less is sent while the
 * path is watched, and two round trips bring as much as before. If the queue is found to be
 * shared again within 255 round trips, the next time must be twice as long, up to 32 times;
 * after as many without it, half. By the same measure, four times as rarely, the path is
 * watched again; if packets have waited, for the first time after 16 round trips, and again
 * when nothing is lost though the window has grown by half and a third of it waits, or after
 * 16 round trips or more that take 17 s.
 *
 * R may have been measured while others had filled the queue. So when pairs or quiet round
 * trips end the window, and packets have waited meanwhile, the connection looks at R: it
 * sends nothing for a round trip. Without pairs it does so as well when the path was watched
 * in vain though round-trip times fell to R. Behind a policer nothing waits, and a pause would
 * only fill its bucket.
 */

#include "pp.h"
#include "tollway_fixp.h"

/*
 * Round trips in which delays may fall. The law takes about one to bring the
 * queue to the setpoint, and what it sends shows a round trip later. With
 * fewer, a queue that falls slowly is taken for a longer way. With more, the
 * connection gives more of its share to the others of the queue.
 */
#define PP_SHARE_WATCH		8
/*
 * What speaks for a queue of our own: needed, and in a quiet round trip. With
 * less, pairs that tell by chance what arrives end the window. With more, a
 * connection that is alone again waits for longer. Four quiet round trips are
 * enough, as nobody is harmed while nothing waits.
 *
 * Each relapse doubles what is needed. Five of them make it 512 round trips,
 * 20 s with 40 ms. With more, a connection that is alone again would wait for
 * minutes.
 */
#define PP_SHARE_FITS		16
#define PP_SHARE_QUIET		4
#define PP_SHARE_RELAPSES	5
/*
 * Packets have waited if a round trip took longer than R by this part. With a smaller
 * part, the pairs and the jitter of a path look like that. With a larger one, R is not
 * looked at where it is nearly that of a full queue.
 */
#define PP_SHARE_WAITED		8
/* Tenths of the window that are left after a loss. */
#define PP_SHARE_DECREASE	7
/*
 * C of RFC 9438, 4.1, is 0.4 segments/s^3: with times in ticks of 2^10 us it is 59 / 2^37. A
 * window needs the cube root of 2^24 / C, or 339303 ticks (347 s), to grow by 2^24 segments
 * up to its plateau. The cube of 2^19 ticks (9 min), times 59, is below 2^63.
 */
#define PP_CUBIC_TICK		10
#define PP_CUBIC_C		59
#define PP_CUBIC_SHIFT		37
#define PP_CUBIC_SEGS_SHIFT	24
#define PP_CUBIC_LONGEST	339303U
#define PP_CUBIC_MOST		BIT(19)
/*
 * Round trips of a window until the path is watched again. That takes eight, a
 * ninth of the time. With fewer, the connection gives away more of its share in
 * a queue that is shared. With more, it needs longer to see that its path has
 * become longer.
 */
#define PP_SHARE_AGAIN		64
/*
 * If packets have waited: 2^24 us (17 s), where that is less, but no fewer than PP_SHARE_FIRST.
 * What began the window may have left since, and where no pairs tell that, nothing else ends it. In
 * a FIFO of 1000 packets a round trip takes 1.2 s at 10 Mb/s: in 12 of 63 starts a flow that was
 * alone there kept it full for more than a minute.
 */
#define PP_SHARE_AGAIN_US	BIT(24)
/*
 * If packets have waited: until it is watched for the first time, or again if it grows on and
 * on. What began the window may have been chance, as when a path becomes longer while pairs are
 * held back, and in a queue of our own nothing would end it but that. The first time may be
 * too early, as few packets wait then. When there was no second time, one of two flows had 427
 * packets in the queue in the mean (100 Mb/s, 40 ms, fq_codel, slots of 300 us), and one of
 * eight had 1100 of them, 9 s of its share (10 Mb/s, 5 ms, slots of 4 ms): 64 round trips
 * became longer and longer.
 */
#define PP_SHARE_FIRST		16
/* The most that window.rounds counts, in 12 bits. It is compared with 64 << 5 at the most. */
#define PP_SHARE_ROUNDS_MOST	4095

/**
 * pp_may_be_held() - do round-trip times not tell whether packets wait?
 * @ca: connection
 *
 * Return: true if they are above R by no more than what ACKs may be held back for, nothing was
 * lost of late, and the setpoint is that of the sysctl.
 */
bool pp_may_be_held(const struct pp *ca)
{
	return pp_is_bunched(ca) && !ca->lossy && !ca->tries && ca->low_us != PP_LOW_NONE &&
	       pp_above_us(ca) <= pp_held_most_us(ca);
}

/**
 * pp_push_shift() - how much more is sent in a push, see pp_share_doubt()
 * @ca: connection
 *
 * In one that asks whether ACKs are held back it is a half, an eighth, a 32nd or a 128th, for 0 to
 * 3 pushes in vain. If half of that, a packet and a slot more arrive, there was room. So it is at
 * least what arrives in four slots, and at least eight packets, but never more than a half: a slot
 * would hide less. (Slots and s_hat may change until it is judged: then it may be in vain though
 * there was room.)
 *
 * Return: a shift; it is 1 / 2^shift.
 */
u32 pp_push_shift(const struct pp *ca)
{
	u32 slots, packets, most;

	if (!pp_push_is_held(ca))
		return 1;
	slots = ca->rtt_us / max(4 * pp_slot_us(ca), 1U);
	packets = pp_law_pipe(ca->delay_us, ca->estimate.service) >> (PP_PACKET_SHIFT + 3);
	most = max(fls(min(slots, packets)), 2) - 1;
	return min_t(u32, 1 + 2 * ca->short_rounds, most);
}

/* All of what arrives, or less if something was lost. */
static u32 pp_share_first(const struct sock *sk, const struct pp *ca)
{
	u64 seen = pp_most_arrived(ca);
	u32 cwnd = tcp_packets_in_flight(tcp_sk(sk));

	if (seen)
		cwnd = min(cwnd, pp_law_pipe(ca->rtt_us, pp_invert(seen)) >>
				 PP_PACKET_SHIFT);
	return max(ca->losses ? cwnd * PP_SHARE_DECREASE / 10 : cwnd, 2U);
}

/* The window takes over. */
static void pp_share_window(struct sock *sk, struct pp *ca)
{
	u32 cwnd = pp_share_first(sk, ca);
	u32 goal = cwnd << (ca->window.known & PP_PUSHED);
	struct tcp_sock *tp = tcp_sk(sk);

	ca->watched = 0;
	ca->window.rounds = 0;
	ca->rising = 0;
	ca->draining = 0;
	/* Without pairs: its share had become less before that was seen. */
	tp->snd_ssthresh = max_t(u32, goal, ca->window.cwnd_before);
	tp->snd_cwnd_cnt = 0;
	/*
	 * After a watch the window at the last loss still is that of the plateau, see
	 * pp_share_growth(). It was no more than this one before the loss.
	 */
	tp->prior_cwnd = clamp_t(u32, tp->prior_cwnd, goal,
				 max_t(u32, goal, ca->window.cwnd_before * 10 /
						  PP_SHARE_DECREASE));
	/* A loss that is undone now was one in the window of the law: no undo. */
	tp->prior_ssthresh = 0;
	ca->mean_rate = 0;
	tcp_snd_cwnd_set(tp, min(cwnd, tp->snd_cwnd_clamp));
	ca->window.fits = 0;
	pp_count(sock_net(sk), PP_COUNT_WINDOW);
}

/**
 * pp_share_begin() - the queue is shared: take what arrives for s_hat
 * @sk: socket
 * @ca: connection
 * @watch: does the round-trip time fall when less is sent? Packets wait
 * @pushed: a push has shown it, so a window takes over at once
 */
void pp_share_begin(struct sock *sk, struct pp *ca, bool watch, bool pushed)
{
	if (ca->history.since < U8_MAX &&
	    ca->history.relapses < PP_SHARE_RELAPSES)
		ca->history.relapses++;
	pp_pace_settle(sk, ca);
	ca->push = PP_PUSH_NONE;
	ca->shared = 1;
	ca->watched = 1;
	ca->watched_rounds = 0;
	ca->rtt_fell = 0;
	ca->window.cwnd_before = 0;
	ca->window.waited = watch;
	ca->window.known = pushed ? PP_PUSHED : 0;
	pp_count(sock_net(sk), PP_COUNT_SHARED);
	if (!watch || pushed || ca->hold)
		pp_share_window(sk, ca);
}

/*
 * Part by which more must arrive than before a push, see pp_share_doubt(); besides a slot. Where
 * round-trip times do not tell, half of what more was sent.
 */
#define PP_PUSH_ARRIVED		8

/*
 * A push after losses: each 2^21 us (2 s), or 32 to 64 round trips, whichever is longer, and half
 * as often after each, up to an eighth. With more of them, more waits in a queue of our own that
 * loses packets: with an eighth it is 0.2 % of what the path holds, in the mean. With fewer, a
 * connection has less than its share of a shared queue for longer.
 *
 * Where round-trip times do not tell: after 2 to 4 round trips, and a quarter as often after each
 * in vain, up to each 128 to 256. There each one is smaller than the one before, if slots are
 * short, see pp_push_shift(). Once a push has shown that ACKs are held back for longer than slots
 * explain, half as often after each: what arrives is often less by chance than a push should bring
 * there. (With a quarter, two flows used 0.70 of 200 Mb/s with the ACKs of pp_held_most_us(). With
 * half for all, 15 packets instead of 11 waited where ACKs are thinned.) That is each 16 to 32 at
 * the least.
 */
#define PP_PUSH_SHIFT		21
#define PP_PUSH_ROUNDS		5
#define PP_PUSH_HELD		1

/**
 * pp_share_found() - the queue is shared, and no pair is needed to see it
 * @sk: socket
 * @ca: connection; a round trip is over
 * @watch: packets wait: a push has shown it. Otherwise losses have
 */
void pp_share_found(struct sock *sk, struct pp *ca, bool watch)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (pp_is_bunched(ca)) {
		ca->train.bunched = 0;
		ca->train.bunches = 0;
		pp_train_break(&ca->train);
		pp_bunch_end(ca);
		ca->round_start = tp->delivered;
		ca->round_us = tp->tcp_mstamp;
	}
	pp_share_begin(sk, ca, watch, true);
	/* While nothing waits, all round trips are quiet but those in which much is lost again. */
	if (!watch)
		ca->history.relapses = PP_SHARE_RELAPSES;
}

/* The mean service time in a round trip that is over, ns in Q10. */
static u64 pp_share_mean(const struct sock *sk, const struct pp *ca)
{
	u32 took_us = (u32)tcp_sk(sk)->tcp_mstamp - ca->round_us;
	u32 arrived = tcp_sk(sk)->delivered - ca->round_start;

	return clamp_t(u64, div_u64((u64)min(took_us, PP_RTT_MAX_US) * NSEC_PER_USEC <<
				    PP_SERVICE_SHIFT, max(arrived, 1U)),
		       PP_SERVICE_MIN, PP_SERVICE_MAX);
}

/*
 * Packets have waited all the round trip: two, or for an eighth of R and a ms (where few are
 * sent, two are more than the setpoint leaves after losses).
 */
static bool pp_share_waits(const struct pp *ca)
{
	return pp_queue_least(ca) > PP_QUEUE_LOW ||
	       (ca->low_us != PP_LOW_NONE &&
		ca->low_us > ca->delay_us + ca->delay_us / PP_SHARE_WAITED + USEC_PER_MSEC);
}

/*
 * Can more be sent, and would that show? Either packets wait, so that what arrives is what is
 * served, which is not so for a moment in which other flows pause. Or round-trip times do not
 * tell. No more waits than the law leaves there, or than the path holds, as a push adds to that.
 * With slots of more than a quarter of a round trip nothing would show. Where a half more is sent
 * to see whether ACKs are held back, a quarter and a slot must arrive: then a sixth is the limit.
 */
static bool pp_share_may_push(const struct sock *sk, const struct pp *ca)
{
	u32 pipe = pp_law_pipe(ca->delay_us, ca->estimate.service);

	return (pp_share_waits(ca) || pp_may_be_held(ca)) &&
	       ca->queue <= max_t(u32, 2 * ca->setpoint, pipe) &&
	       pp_slot_us(ca) <= ca->rtt_us / (pp_may_be_held(ca) ? 6 : 4) &&
	       !pp_is_discrete(ca) && !pp_pace_is_stopped(sk, ca) &&
	       pp_pace_has_more(sk, ca) &&
	       sk->sk_pacing_rate < READ_ONCE(sk->sk_max_pacing_rate);
}

/*
 * A round trip of a push is over. mean: mean service time in it, ns in Q10. In the one in which
 * more is sent, what was sent before arrives: s_hat may lag behind that.
 */
static void pp_share_push(struct sock *sk, struct pp *ca, u64 mean)
{
	u64 rate = pp_invert(mean), before = ca->epoch_rate, chance, more;
	bool held = pp_push_is_held(ca);

	if (ca->push == PP_PUSH_SEND) {
		ca->push = PP_PUSH_WAIT;
		ca->epoch_rate = clamp_t(u64, rate, before, PP_RATE_MAX - 1);
		return;
	}
	ca->push = PP_PUSH_NONE;
	/* A slot of ACKs more or less in a round trip. The rate is below 2^46, a slot 2^20. */
	chance = div_u64((before >> 8) * pp_slot_us(ca), max_t(u32, ca->rtt_us, 1)) << 8;
	more = before / PP_PUSH_ARRIVED;
	/* One that asks this may be as small as a 128th: then a packet counts, too. */
	if (held)
		more = (before >> (pp_push_shift(ca) + 1)) +
		       pp_law_rate(PP_PACKET, max_t(u32, ca->rtt_us, 1));
	if (rate <= before + more + chance) {
		if (held)
			pp_bunch_has_no_room(sk, ca);
		return;
	}
	if (!held) {
		pp_share_found(sk, ca, true);
	} else if (pp_may_be_held(ca)) {
		pp_bunch_has_room(ca, mean);
		if (pp_share_may_push(sk, ca))
			ca->push = PP_PUSH_SEND;
	}
}

/*
 * Pushes in vain that count for the next one. With bursts of ACKs there are two kinds of pushes,
 * see pp_push_is_held(): of the other kind one counts.
 */
static u32 pp_share_times(const struct pp *ca, bool held)
{
	u32 times = ca->short_rounds;

	return pp_is_bunched(ca) && held != pp_push_is_held(ca) ? min(times, 1U) : times;
}

/* The next push is of this kind. */
static void pp_share_ask(struct pp *ca, bool held)
{
	if (!pp_is_bunched(ca))
		return;
	ca->short_rounds = pp_share_times(ca, held);
	ca->estimate.slower = held;
}

/*
 * Is it time for a push after losses, or marks, or where round-trip times do not tell? When the
 * bits of the clock above that differ from those of a round-trip time ago, much as in
 * pp_delay_peek(). (Where ACKs come in bursts, the time at which a round trip began is not kept,
 * and one that is longer may miss it.)
 */
static bool pp_share_is_time(const struct sock *sk, struct pp *ca)
{
	u32 now_us = (u32)tcp_sk(sk)->tcp_mstamp + sk->sk_hash;
	bool held = pp_may_be_held(ca);
	u32 times = pp_share_times(ca, held), shift;

	if (held)
		shift = fls(ca->rtt_us) + PP_PUSH_HELD +
			(pp_held_us(ca) > pp_held_slots_us(ca) ? times : 2 * times);
	else if ((ca->lossy || ca->tries) && pp_share_waits(ca))
		shift = max_t(u32, PP_PUSH_SHIFT, fls(ca->rtt_us) + PP_PUSH_ROUNDS) + times;
	else
		return false;
	if (!((now_us ^ (now_us - ca->rtt_us)) >> min(shift, 31U)))
		return false;
	pp_share_ask(ca, held);
	ca->short_rounds = min(times + 1, PP_PUSH_TIMES);
	return true;
}

/**
 * pp_share_doubt() - without pairs: may the queue be shared?
 * @sk: socket
 * @ca: connection with an s_hat; a round trip is over
 * @mean: with bursts of ACKs: mean service time in it, ns in Q10
 *
 * Without pairs s_hat is what arrives, which tells nothing of a queue that is shared: there
 * it is what this connection sends. The law holds n_hat at the setpoint, others take what
 * it leaves, and its share becomes less and less: one of two flows, the other one of
 * cubic, had a seventh of an equal share at 50 Mb/s and 40 ms.
 *
 * A queue of our own serves its share, whatever is sent, and more than that waits there. In a
 * shared queue more arrives when more is sent. So whenever 1 / s_hat has become less by an
 * eighth to a third (two steps of pp_service_code()), as it does in a shared queue sooner or
 * later, the connection sends 3/2 of 1 / s_hat for a round trip (where ACKs come in bursts, no
 * longer than until 1 / s_hat is a quarter less). It does so as well from time to time after
 * losses, which every shared queue has: the share may be small from the beginning, and stay so
 * (pp_share_is_time()). If in the next round trip, that of their ACKs,
 * 9/8 of what arrived before and more arrives, the queue is shared: where the connection has
 * a part x of the link, (3/2) / (1 + x / 2) of it arrives, 6/5 with a half and 4/3 with a
 * quarter. In a queue of our own half of what the path holds comes to wait for about a round
 * trip. With 5/4 it would be half as much, and 10/9 would arrive with a half, which may be
 * chance.
 *
 * Where ACKs come in bursts, and nothing is lost or marked, what seems to wait may be ACKs that
 * are held back (pp_may_be_held()), and 1 / s_hat may have become less by chance. Then a push
 * shows that the queue is not full yet, and not that it is shared. It comes from time to time
 * without losses, too, and becomes smaller.
 *
 * While pairs tell s_hat, pp_path_verdict() finds a shared queue, and here s_hat is only kept,
 * as what the next one without pairs is compared with. After a stop or a loss what arrives
 * is that of another time.
 */
void pp_share_doubt(struct sock *sk, struct pp *ca, u64 mean)
{
	u32 code = pp_service_code(ca->estimate.service);

	if (!pp_is_blind(ca)) {
		ca->push = PP_PUSH_NONE;
		ca->fastest = code;
	} else if (ca->looking || ca->losses || pp_bunch_has_peeked(ca)) {
		ca->push = PP_PUSH_NONE;
	} else if (ca->push) {
		pp_share_push(sk, ca, pp_is_bunched(ca) ? mean : pp_share_mean(sk, ca));
	} else if (pp_share_may_push(sk, ca)) {
		bool less = code >= ca->fastest + 2 && pp_share_waits(ca);

		if (less)
			pp_share_ask(ca, pp_may_be_held(ca));
		if (less || pp_share_is_time(sk, ca))
			ca->push = PP_PUSH_SEND;
		if (ca->push || (code < ca->fastest && pp_share_waits(ca)))
			ca->fastest = code;
	}
}

/*
 * So many setpoints are far more than the law lets wait in a queue of our own; and so many
 * packets of a round trip tell how fast it is served.
 */
#define PP_FLOOD		8
#define PP_FLOOD_PACKETS	16

/**
 * pp_share_is_flooded() - do far too many packets wait in a queue that others fill, too?
 * @sk: socket
 * @ca: connection
 *
 * Flows that begin together in a long queue, with pairs that tell each of them the rate of the
 * link, make round trips of a second: after four of them four flows at 50 Mb/s and 40 ms had 4000
 * packets in it. So the second one that looks like a shared queue need not end. Not the first one:
 * what arrives in it may be what a stall of the path has held back. The caller looks at
 * @ca->misfits for that.
 *
 * Return: true if so.
 */
bool pp_share_is_flooded(const struct sock *sk, const struct pp *ca)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 arrived = tp->delivered - ca->round_start;
	u64 busy_ns;

	/* Then the byte of misfits counts something else. */
	if (ca->shared || pp_is_bunched(ca))
		return false;
	if (ca->queue <= PP_FLOOD * ca->setpoint || ca->rtt_us / 4 <= ca->delay_us ||
	    arrived < PP_FLOOD_PACKETS)
		return false;
	busy_ns = mul_u64_u32_shr(ca->estimate.service, arrived, PP_SERVICE_SHIFT);
	return busy_ns < (u64)((u32)tp->tcp_mstamp - ca->round_us) * (NSEC_PER_USEC / 2);
}

/**
 * pp_share_forget() - a round trip in which the queue is not shared
 * @ca: connection
 */
void pp_share_forget(struct pp *ca)
{
	/* What R was raised to was right. */
	if (ca->hold && ca->history.since >= PP_SHARE_AGAIN &&
	    ca->hold <= U8_MAX - PP_SHARE_AGAIN)
		ca->hold = 0;
	if (ca->history.since == U8_MAX)
		return;
	if (++ca->history.since == PP_SHARE_AGAIN)
		ca->hold = 0;
	if (ca->history.since == U8_MAX && ca->history.relapses) {
		ca->history.relapses--;
		ca->history.since = PP_SHARE_AGAIN;
	}
}

/* The window, or the law with what arrives, is over. */
static void pp_share_end(struct pp *ca)
{
	ca->shared = 0;
	ca->watched = 0;
	ca->misfits = 0;
	ca->full = 0;
	ca->history.since = 0;
	ca->fastest = PP_FASTEST_NONE;
	ca->estimate.rounds = PP_SUDDEN_ROUNDS_MOST;
	ca->mean_rate = pp_invert(ca->estimate.service);
}

/*
 * Nothing was lost or marked and nothing waits: nobody keeps this connection down. A
 * quarter of R leaves room for the pairs and the jitter of a path. With less,
 * they look like a queue; with more, a short queue of others looks like none.
 */
static bool pp_share_is_quiet(const struct sock *sk, const struct pp *ca)
{
	return !ca->losses && !pp_is_marked(sk) &&
	       ca->rtt_us <= ca->delay_us + ca->delay_us / 4;
}

/* Of the socket's window, what fits into window.cwnd_before. */
static u32 pp_share_cwnd(const struct sock *sk)
{
	return min_t(u32, tcp_snd_cwnd(tcp_sk(sk)), U16_MAX);
}

/*
 * What arrives before a watch, to compare with, packets/s in Q16. PP_RATE_NONE if less than a
 * third of the window arrives in a round trip, as after a pause in it, or if something else than
 * the window holds the connection down: it would send as much while it is watched. (The window
 * may be half as large again in each round trip, and what arrives was sent two of them ago.)
 */
static u64 pp_share_before(const struct sock *sk, const struct pp *ca)
{
	u64 rate = pp_invert(pp_share_mean(sk, ca));
	u64 full = pp_law_rate(pp_share_cwnd(sk) << PP_PACKET_SHIFT, ca->low_us);

	if (rate < div_u64(full, 3) || !pp_pace_has_more(sk, ca) ||
	    sk->sk_pacing_rate >= READ_ONCE(sk->sk_max_pacing_rate))
		return PP_RATE_NONE;
	return rate;
}

/* Give the law a time to see whether the way is longer. */
static void pp_share_look(struct sock *sk, struct pp *ca)
{
	ca->window.cwnd_before = pp_share_cwnd(sk);
	ca->window.known &= ~PP_AS_BEFORE;
	ca->epoch_rate = pp_share_before(sk, ca);
	ca->watched = 1;
	ca->watched_rounds = 0;
	ca->rtt_fell = 0;
	ca->mean_rate = pp_invert(ca->estimate.service);
}

/*
 * Do so many packets of a window wait that a watch would tell whose they are? The law makes
 * them as many as the setpoint, and sends less by the others for a round trip. With less than
 * a third of the window that would hardly show in what arrives: of two equal flows 4/5 of what
 * arrived before do so for a third, and 6/7 for a quarter. (One that has more than 6/7 of the
 * link is nearly alone, and is taken for that.)
 */
static bool pp_share_has_filled(const struct pp *ca, u32 cwnd)
{
	u32 window = cwnd << PP_PACKET_SHIFT, waits;

	/* Below 2^24, and times below 2^25. */
	waits = window - (u32)div_u64((u64)window * ca->delay_us,
				      max_t(u32, ca->low_us, ca->delay_us));
	return waits > 2 * ca->setpoint && 3 * waits > window;
}

/*
 * Part by which less may arrive. With a larger one, a flow that has 3/4 of a FIFO would keep it;
 * with a smaller one, slots of ACKs look like others.
 */
#define PP_SHARE_LESS		16

/*
 * The window had filled the queue, and a round trip of the watch without losses has brought as
 * much as the last one of the window: the connection is the only one there, or the queue
 * serves flows in turn. The discrete law compares epochs, and does without this.
 */
static bool pp_share_is_alone(const struct sock *sk, const struct pp *ca)
{
	return !ca->losses && !pp_is_marked(sk) && !pp_is_discrete(ca) &&
	       pp_share_has_filled(ca, ca->window.cwnd_before) &&
	       pp_invert(pp_share_mean(sk, ca)) >=
		       ca->epoch_rate - ca->epoch_rate / PP_SHARE_LESS;
}

/*
 * A round trip of a watch is over. The first one brings what the window has sent. What less is
 * sent in it and in the next one shows in the second and the third one: in a shared queue
 * less arrives in both, in one that serves flows in turn what waits there is served as before.
 * Later it may have gone, and what arrives is what is sent.
 */
static void pp_share_watch(struct sock *sk, struct pp *ca)
{
	bool blind = pp_is_blind(ca) || ca->window.known & PP_PUSHED;
	bool alone = false, quiet;

	ca->watched_rounds++;
	if (ca->watched_rounds == 2 || ca->watched_rounds == 3) {
		alone = pp_share_is_alone(sk, ca);
		if (alone && ca->watched_rounds == 2)
			ca->window.known |= PP_AS_BEFORE;
		alone &= ca->watched_rounds == 3 && ca->window.known & PP_AS_BEFORE;
	}
	if (ca->watched_rounds < PP_SHARE_WATCH && !alone)
		return;
	/* s_hat is an average, and may lag behind. */
	if (alone)
		ca->estimate.service = pp_share_mean(sk, ca);
	if (alone || (!ca->rtt_fell && !pp_is_marked(sk) &&
		      (!blind || ca->window.known & PP_WATCHED) && pp_delay_raise(sk, ca))) {
		pp_share_end(ca);
		return;
	}
	/* Before the first window it was watched as well, which is not enough. */
	if (ca->window.cwnd_before)
		ca->window.known |= PP_WATCHED;
	quiet = pp_share_is_quiet(sk, ca);
	pp_share_window(sk, ca);
	/*
	 * By an R that was measured while others had filled the queue, too few of our packets
	 * wait for pp_share_has_filled(), and the watch takes only these away.
	 */
	if (blind && quiet && ca->window.waited && ca->window.known & PP_WATCHED)
		pp_delay_look(sk, ca);
}

/*
 * Is the window half as large again as at the last watch, and as at the last loss? In a queue
 * that others fill, something is lost before that, if the queue is not very long.
 */
static bool pp_share_has_grown(const struct tcp_sock *tp)
{
	return tcp_snd_cwnd(tp) > (u64)max(tp->prior_cwnd, tp->snd_ssthresh) * 3 / 2;
}

/*
 * Is it time to watch the path? Behind a policer, where nothing waits, this ends windows, and
 * what is sent then is lost. So there it is no sooner than R may be raised again. Not after a
 * loss, as the others may send less for it.
 */
static bool pp_share_is_due(const struct sock *sk, const struct pp *ca)
{
	u32 again = PP_SHARE_AGAIN;
	bool soon = ca->window.waited &&
		    (!(ca->window.known & PP_WATCHED) ||
		     (pp_share_has_grown(tcp_sk(sk)) &&
		      pp_share_has_filled(ca, pp_share_cwnd(sk))));

	if (ca->low_us == PP_LOW_NONE || ca->losses || pp_is_marked(sk) ||
	    (ca->hold && !ca->window.waited))
		return false;
	if (ca->window.waited)
		again = clamp_t(u32, PP_SHARE_AGAIN_US / max_t(u32, ca->rtt_us, 1),
				PP_SHARE_FIRST, PP_SHARE_AGAIN);
	return ca->window.rounds >= (soon ? PP_SHARE_FIRST : again << ca->history.relapses);
}

/* A round trip of a window: does it speak for a queue of our own? */
static void pp_share_fit(const struct sock *sk, struct pp *ca)
{
	if (pp_share_is_quiet(sk, ca))
		ca->window.fits += PP_SHARE_QUIET;
	else if (ca->pairs_faster)
		ca->window.fits = 0;
	else if (ca->paired && !(ca->window.known & PP_PUSHED))
		ca->window.fits++;
}

/**
 * pp_share_round() - a round trip in a queue that is taken for a shared one
 * @sk: socket
 * @ca: connection
 * @looked: it began with a stop to see R, so that it does not tell who has the queue
 */
void pp_share_round(struct sock *sk, struct pp *ca, bool looked)
{
	u8 relapses = ca->history.relapses;
	bool waited;

	if (ca->watched) {
		pp_share_watch(sk, ca);
		return;
	}

	if (ca->rtt_us > ca->delay_us + ca->delay_us / PP_SHARE_WAITED)
		ca->window.waited = 1;
	if (!looked)
		pp_share_fit(sk, ca);
	if (ca->window.fits >= PP_SHARE_FITS << relapses) {
		waited = ca->window.waited;
		pp_share_end(ca);
		if (waited)
			pp_delay_look(sk, ca);
		return;
	}
	if (ca->window.rounds < PP_SHARE_ROUNDS_MOST)
		ca->window.rounds++;
	if (pp_share_is_due(sk, ca))
		pp_share_look(sk, ca);
}

/**
 * pp_share_ssthresh() - window after a loss
 * @tp: socket
 * @ca: connection
 *
 * Return: segments, 2 and up.
 */
u32 pp_share_ssthresh(const struct tcp_sock *tp, struct pp *ca)
{
	ca->mean_rate = 0;
	return max_t(u32, div_u64((u64)tcp_snd_cwnd(tp) * PP_SHARE_DECREASE, 10), 2);
}

/* Time in which the window grows by so many segments up to the plateau, or from there, ticks. */
static u32 pp_share_cubic_time(u32 segs)
{
	u64 part = (u64)min(segs, PP_PACKETS_MAX) << (FIXP_SHIFT - PP_CUBIC_SEGS_SHIFT);

	/* The cube root. */
	return part ? mul_u64_u32_shr(fixp_exp_neg(div_u64(-fixp_ln(part), 3)), PP_CUBIC_LONGEST,
				      FIXP_SHIFT) : 0;
}

/* By how much the window is below its plateau, or above it, so many ticks from there. */
static u32 pp_share_cubic_by(u64 ticks)
{
	ticks = min_t(u64, ticks, PP_CUBIC_MOST);
	return ticks * ticks * ticks * PP_CUBIC_C >> PP_CUBIC_SHIFT;
}

/*
 * How many segments must arrive for one more in the window of Reno. With a decrease to 7/10, a
 * flow has the mean rate of Reno in the same queue if it grows by 3 (1 - 0.7) / (1 + 0.7) = 9/17
 * of a segment in a round trip (RFC 9438, 4.3). But in a FIFO that is full one packet leaves at
 * a time, so of a pair the second one finds no room: a window whose segments leave in pairs is
 * cut more often. It grows by a whole segment. With 9/17 such a flow had 0.56 of an equal share
 * in the mean of 16 starts beside four of cubic at 10 Mb/s and 40 ms, and less than half in four
 * of them; with a whole one it has 0.68. With 4/3 it had 0.86, but four flows of pp in a FIFO of
 * 100 packets at 10 Mb/s lost 1.0 % of their packets, of which 0.75 % are allowed in a test.
 * Where nothing has waited, as behind a policer, it is no such queue.
 */
static u32 pp_share_reno(const struct pp *ca, u32 cwnd)
{
	if (ca->window.known & PP_PUSHED || !ca->window.waited)
		return cwnd + cwnd * 8 / 9;
	return max(cwnd, 2U);
}

/*
 * How many segments must arrive for one more in the window. RFC 9438 has the larger one of two
 * windows, that of Reno (4.3) and a cubic function of time (4.2). Up to the plateau, the
 * window at the last loss, this is the one that is there sooner. Beyond it is what grows
 * faster. The function goes through the window now, so it is known again after a watch or
 * an idle time. srtt_us is in 2^-3 us.
 */
static u32 pp_share_growth(const struct tcp_sock *tp, struct pp *ca)
{
	u32 cwnd = tcp_snd_cwnd(tp), most = tp->prior_cwnd, reno = pp_share_reno(ca, cwnd), goal;
	u32 rtt = tp->srtt_us >> (3 + PP_CUBIC_TICK);
	u64 now = (tp->tcp_mstamp >> PP_CUBIC_TICK) + 1, ticks;
	s64 since;

	if (!ca->mean_rate)
		ca->mean_rate = cwnd < most ? now + pp_share_cubic_time(most - cwnd) :
			now - min_t(u64, pp_share_cubic_time(cwnd - most), now - 1);
	/* What grows now is there a round trip later. */
	since = now + rtt - ca->mean_rate;
	/* Does Reno need less time for the 3/10 of the window up to the plateau? */
	ticks = div_u64((u64)pp_share_reno(ca, most) * 3 * rtt, 10);
	if (since <= 0 && (u64)pp_share_cubic_by(ticks) * 10 < (u64)most * 3)
		return reno;
	goal = since > 0 ? most + pp_share_cubic_by(since) :
			   most - min(most, pp_share_cubic_by(-since));
	/* No more than half as much again in a round trip. */
	if (goal > cwnd)
		return max(since > 0 ? min(cwnd / (goal - cwnd), reno) : cwnd / (goal - cwnd), 2U);
	return since > 0 ? reno : U32_MAX;
}

/* As tcp_reno_cong_avoid(), but by the growth above. */
static void pp_share_increase(struct sock *sk, struct pp *ca, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	/* Time in which the window was not needed does not count. */
	if (!tcp_is_cwnd_limited(sk)) {
		ca->mean_rate = 0;
		return;
	}
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	tcp_cong_avoid_ai(tp, pp_share_growth(tp, ca), acked);
}

/* In recovery: half of what arrives leaves until the window is reached. */
static void pp_share_reduce(struct tcp_sock *tp, u32 acked)
{
	u32 flight = tcp_packets_in_flight(tp), cwnd;

	if (flight > tp->snd_ssthresh)
		cwnd = max(tp->snd_ssthresh, flight + acked / 2);
	else
		cwnd = min(tp->snd_ssthresh, flight + acked + 1);
	/* A lost segment is sent again at once. */
	tcp_snd_cwnd_set(tp, max(cwnd, flight + (tp->lost_out > tp->retrans_out &&
						 !tp->retrans_out)));
}

/**
 * pp_share_control() - the window, and the rate for it
 * @sk: socket
 * @ca: connection
 * @rs: rate sample of the stack; something was delivered
 */
void pp_share_control(struct sock *sk, struct pp *ca,
		      const struct rate_sample *rs)
{
	u8 state = inet_csk(sk)->icsk_ca_state;
	struct tcp_sock *tp = tcp_sk(sk);
	u64 rate;

	if (state == TCP_CA_CWR || state == TCP_CA_Recovery)
		pp_share_reduce(tp, rs->acked_sacked);
	else
		pp_share_increase(sk, ca, rs->acked_sacked);

	/* srtt_us is in 2^-3 us. */
	rate = pp_law_rate(min_t(u32, tcp_snd_cwnd(tp), PP_PACKETS_MAX) <<
			   PP_PACKET_SHIFT, max(tp->srtt_us >> 3, 1U));
	rate += tcp_snd_cwnd(tp) < tp->snd_ssthresh / 2 ? rate : div_u64(rate, 5);
	pp_pace(sk, min(rate, PP_RATE_MAX));
}

/**
 * pp_share_state() - the stack enters another state
 * @sk: socket; still in the old state
 * @new_state: TCP_CA_*
 *
 * The stack leaves the end of a reduction to those who control by themselves.
 */
void pp_share_state(struct sock *sk, u8 new_state)
{
	u8 state = inet_csk(sk)->icsk_ca_state;
	struct tcp_sock *tp = tcp_sk(sk);

	if (new_state <= TCP_CA_Disorder &&
	    tp->snd_ssthresh < TCP_INFINITE_SSTHRESH &&
	    (state == TCP_CA_CWR || (state == TCP_CA_Recovery && tp->undo_marker)))
		tcp_snd_cwnd_set(tp, min(max(tp->snd_ssthresh, 2U),
					 tp->snd_cwnd_clamp));
}

/**
 * pp_share_idle() - something is sent after an idle time
 * @sk: socket
 * @ca: connection
 * @idle_us: how long
 *
 * RFC 2861: what the window was is no longer known to be true.
 */
void pp_share_idle(struct sock *sk, struct pp *ca, u32 idle_us)
{
	struct tcp_sock *tp = tcp_sk(sk);

	ca->mean_rate = 0;
	if (idle_us <= jiffies_to_usecs(inet_csk(sk)->icsk_rto))
		return;
	tp->snd_ssthresh = tcp_current_ssthresh(sk);
	tcp_snd_cwnd_set(tp, min_t(u32, tcp_snd_cwnd(tp), TCP_INIT_CWND));
}
