// SPDX-License-Identifier: GPL-2.0
/*
 * ACKs that come in bursts
 *
 * Network cards, Wi-Fi and cable modems hold ACKs back and release them together;
 * receivers merge segments, routers drop ACKs that a later one repeats. The
 * distance of two ACKs then tells nothing of the bottleneck: within a burst it is
 * that of the last link, between bursts that of its slots. pp_train_bunch() sees
 * that.
 *
 * What can be trusted is what arrives, from the end of one burst to that of
 * another: the last ACK of a burst waited for less than a service time. Marks at
 * such ends, a round trip or more apart, give the mean service time
 *
 *	s = (time between marks) / (segments delivered between them)
 *
 * which is that of the bottleneck if packets of ours waited there all the time,
 * and otherwise no less than it. Whether they waited is seen from the least
 * round-trip time, again that of the last ACK of a burst: n_hat = (rtt - R) / s_hat.
 *
 *	n_hat > 2 in all of the round trip	s_hat takes s as a sample
 *	otherwise				s_hat is the less of both
 *	(rtt - R) > R / 2 and 4 slots		s_hat is no less than s so far
 *	n_hat <= 2				the rate is 5/2 of 1 / s_hat, or
 *						3/2 once packets have waited, and
 *						less after that was too much
 *
 * So the rate grows as long as more arrives when more is sent, and s_hat never
 * promises more than has arrived. Where each ACK is held back for a time of its own, all
 * round-trip times may be above R though nothing waits: pp_bunch_held() finds out, and more is
 * sent from time to time to see it, pp_share_doubt().
 *
 * R is raised only where nothing else is left: when
 * twice the setpoint and more seemed to wait for 64 round trips and no more was
 * sent than arrived.
 */

#include "pp.h"

/*
 * A slot is no longer than that, or than R. It is twice the longest slot that
 * was tested (selftests/README.md, "ACKs in bursts"). If it is shorter, slots
 * that are longer are taken for less than they are. If it is longer, a pause of
 * the application is taken for a slot, and makes the delay of the loop longer,
 * see pp_law_delay().
 */
#define PP_SLOT_MAX_US		20000

/*
 * Round trips of far too long a queue: it is none. With fewer, a queue that
 * others keep long for a time makes R too large, and a connection takes more
 * than its part then. With more, it sends too little for longer after its path
 * has become longer.
 */
#define PP_BUNCH_LONGER		64

/**
 * pp_most_arrived() - the most that a round trip delivered
 * @ca: connection
 *
 * Return: rate, packets/s in Q16.
 */
u64 pp_most_arrived(const struct pp *ca)
{
	return pp_law_rate(max(ca->flight, ca->flight_last), ca->delay_us);
}

/**
 * pp_bunch_begin() - ACKs have begun to come in bursts
 * @sk: socket
 * @ca: connection
 *
 * What pairs told is nothing. The most that arrived is, until there are marks.
 */
void pp_bunch_begin(const struct sock *sk, struct pp *ca)
{
	u64 seen = pp_most_arrived(ca);

	if (seen)
		ca->estimate.service = clamp_t(u64, pp_invert(seen),
					       PP_SERVICE_MIN, PP_SERVICE_MAX);
	/* There is no mean while a window controls. */
	ca->mean_rate = pp_is_window(ca) ? seen : min_t(u64, ca->mean_rate, seen);
	/*
	 * Until one is seen it is taken for a 16th of R, for which the shift is
	 * by 4 more. pp_bunch_is_first() makes it as long as slots are within a
	 * slot or two.
	 */
	ca->slot = min_t(u32, ca->delay_us >> (PP_SLOT_SHIFT + 4), U16_MAX);
	ca->unmarked = 1;
	ca->full = 0;
	ca->estimate.sudden = 0;
	ca->estimate.slower = 0;
	ca->train.missed = 0;
	ca->train.extra = 0;
	ca->train.gro = 0;
	ca->train.gro_seen = 0;
	ca->short_rounds = 0;
	ca->push = PP_PUSH_NONE;
	ca->long_queues = 0;
	/* Pairs have said so, which is nothing now: pp_share_doubt() looks soon. */
	if (ca->shared)
		ca->fastest = 0;
	ca->shared = 0;
	ca->watched = 0;
	ca->delayed = 0;
	ca->wary = 0;
	/* It was a count of merged ACKs, see pp_bunch_was_late(). */
	ca->merged_acks = 0;
	pp_count(sock_net(sk), PP_COUNT_BUNCHED);
}

/**
 * pp_bunch_end() - ACKs do not come in bursts any more, or a window controls
 * @ca: connection, whose train.bunched is false
 */
void pp_bunch_end(struct pp *ca)
{
	ca->misfits = 0;
	ca->push = PP_PUSH_NONE;
	ca->short_rounds = 0;
	ca->full = 0;
	ca->estimate.sudden = 0;
	ca->estimate.slower = 0;
	ca->merged_acks = 0;
	ca->estimate.rounds = PP_SUDDEN_ROUNDS_MOST;
	memset(&ca->history, 0, sizeof(ca->history));
	ca->history.since = U8_MAX;
}

/*
 * Is this the first ACK of a burst? What came before it is then whole. late_us: time since the
 * last mark.
 */
static bool pp_bunch_is_first(struct pp *ca, u32 gap_us, u32 late_us)
{
	u32 gap = min(gap_us, max_t(u32, ca->delay_us, PP_SLOT_MAX_US)) >>
		  PP_SLOT_SHIFT;
	u32 part;

	if (gap >= ca->slot / 2) {
		if (!pp_bunch_has_peeked(ca))
			ca->slot = max_t(u32, ca->slot, min_t(u32, gap, U16_MAX));
		return true;
	}
	/*
	 * A mark is overdue: have slots become shorter? Each silence shortens it by half of that
	 * silence. The many short ones within a burst hardly matter. Without silences it becomes
	 * half as long after 44 ACKs, (63/64)^44, when a mark is overdue by two slots.
	 */
	part = gap / 2;
	if (late_us > ca->rtt_us + 2 * pp_slot_us(ca))
		part = max_t(u32, part, DIV_ROUND_UP(ca->slot, 64));
	ca->slot -= part;
	return false;
}

/*
 * A mark is not due yet. Where a burst has a hundred ACKs, a mark is nearly always due within one.
 * The slot was that of the ACKs within a burst then, less than PP_SLOT_LOST (two units, 32 us), and
 * stayed so. So then any silence counts, but not after a peek, and not if it is very long, as these
 * silences may be no slots. When any silence counted that was twice as long as the slot, pushes
 * were larger where ACKs are thinned.
 */
#define PP_SLOT_LOST		2

static void pp_bunch_longer(struct pp *ca, u32 gap_us)
{
	if (ca->slot < PP_SLOT_LOST && gap_us <= PP_SLOT_MAX_US && !pp_bunch_has_peeked(ca))
		ca->slot = max_t(u32, ca->slot, gap_us >> PP_SLOT_SHIFT);
}

/*
 * While ACKs are delayed or come in bursts nobody counts merged ones. The counter then has bits: an
 * ACK came later than a pair is served, and the one after it is awaited; with bursts, one of this
 * round trip stands for more than two trains.
 */
#define PP_ACK_LATE		BIT(0)
#define PP_ACK_MANY		BIT(1)

static bool pp_bunch_was_late(const struct pp *ca)
{
	return ca->merged_acks & PP_ACK_LATE;
}

static void pp_bunch_set_late(struct pp *ca, bool late)
{
	ca->merged_acks = (ca->merged_acks & ~PP_ACK_LATE) | (late ? PP_ACK_LATE : 0);
}

/**
 * pp_bunch_watch() - do ACKs that stand for pairs keep their distance?
 * @ca: connection; receivers delay ACKs, or these come in bursts
 * @gap: time since the ACK before, for each segment, ns in Q10
 *
 * Pairs in a row are served at the same distance, and merged segments wait for the
 * end of a slot: by turns their ACKs are too late and too early. Where others begin
 * or end a distance is longer or shorter than the one before just once.
 */
void pp_bunch_watch(struct pp *ca, u64 gap)
{
	u64 service = ca->estimate.service;
	/*
	 * Where GRO merges pairs, distances are 2:1 by turns: the short one is
	 * a third less than their mean. A quarter leaves some of that for jitter.
	 * As slots go on they may be hardly less than a service time: then an
	 * eighth, by which any time may be wrong (PP_TOLERANCE).
	 */
	u64 margin = service / (pp_is_bunched(ca) ? 8 : 4);

	if (pp_is_low(ca))
		return;
	if (pp_bunch_was_late(ca) && gap < service - margin)
		pp_train_bunch_count(&ca->train);
	pp_bunch_set_late(ca, gap > service);
}

/* Mean service time, ns in Q10, of segs segments that were delivered in took_us. */
static u64 pp_bunch_mean(u32 took_us, u32 segs)
{
	return div_u64((u64)min(took_us, PP_RTT_MAX_US) * NSEC_PER_USEC << PP_SERVICE_SHIFT, segs);
}

/*
 * A round trip lasts for long if much waits, and s_hat has no new sample until it is over. Where
 * flows begin one after another it is that of a larger share, and half of 1 / s_hat, the least rate
 * of the law, may be all of the share: one of eight flows (10 Mb/s, 150 ms, slots of 10 ms) assumed
 * twice its share for up to 6 s, as a round trip took 3 s. But packets of ours have waited all the
 * time since the mark if this one waited for longer. Then what was delivered since bounds 1 / s_hat
 * at once, after half of R and four slots. One slot is subtracted, as the time may be wrong by
 * that, so not while the slot is not known. With less than 16 segments one more or less would
 * matter. (With twice R, and pushes that go on, see pp_push_is_late(), flows that were alone until
 * ten others began in both ways had up to 1700 packets on a path of 170, and lost up to 1390 of
 * 4000. Now these are 790 and 360. PP94's benchmark 6, seeds 3 to 6.)
 *
 * After a silence of the path just behind a mark too little was delivered. So no more than half of
 * the rate is taken away in a round trip. (A model of the review: a silence of 100 ms with an R of
 * 5 ms made s_hat 49 times as long as it was.)
 */
#define PP_BUNCH_BOUND		16

static void pp_bunch_bound(struct pp *ca, u32 gap_us, u32 took_us, u32 segs)
{
	u32 slot_us = pp_slot_us(ca), path_us = ca->delay_us + pp_held_us(ca);
	u64 least = ca->epoch_rate / 2, service = ca->estimate.service, mean;

	if (segs < PP_BUNCH_BOUND || gap_us < slot_us / 2 || ca->slot < PP_SLOT_LOST ||
	    took_us < ca->delay_us / 2 + 4 * slot_us ||
	    took_us + gap_us + path_us > ca->rtt_us || !service || !least)
		return;
	mean = min(pp_bunch_mean(took_us - slot_us, segs), pp_invert(least));
	if (mean > service)
		ca->estimate.service = min_t(u64, mean, PP_SERVICE_MAX);
}

/**
 * pp_bunch_ack() - take an ACK whose time is true
 * @sk: socket
 * @ca: connection
 * @rs: rate sample of the stack; something was delivered
 *
 * Return: mean service time, ns in Q10, if a round trip is over; or 0. s_hat may have become longer
 * then, see pp_bunch_bound().
 */
u64 pp_bunch_ack(const struct sock *sk, struct pp *ca,
		 const struct rate_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct pp_train *train = &ca->train;
	u32 gap_us = ((u32)tp->tcp_clock_cache - train->last_ns) / NSEC_PER_USEC;
	u32 segs, took_us;
	bool known = train->open;

	pp_bunch_watch(ca, pp_train_gap(train, tp->tcp_clock_cache,
					rs->acked_sacked));
	if (rs->acked_sacked > 2 * READ_ONCE(ca->net->train))
		ca->merged_acks |= PP_ACK_MANY;
	train->open = 1;
	train->segs = 0;
	train->stamp_us = tp->first_tx_mstamp;
	train->last_ns = tp->tcp_clock_cache;
	if (!known)
		return 0;
	segs = tp->delivered - rs->acked_sacked - ca->mark_delivered;
	took_us = (u32)tp->tcp_mstamp - gap_us - ca->mark_us;
	if (!ca->unmarked && before(rs->prior_delivered, ca->mark_delivered)) {
		pp_bunch_longer(ca, gap_us);
		if (rs->rtt_us >= 0 && (s32)segs > 0 && (s32)took_us > 0)
			pp_bunch_bound(ca, gap_us, took_us, segs);
		return 0;
	}
	if (!pp_bunch_is_first(ca, gap_us, ca->unmarked ? U32_MAX :
			       (u32)tp->tcp_mstamp - ca->mark_us))
		return 0;

	/* The first mark: what is before it began within a burst, or was idle. */
	if (ca->unmarked) {
		ca->unmarked = 0;
		ca->mark_delivered = tp->delivered - rs->acked_sacked;
		ca->mark_us = (u32)tp->tcp_mstamp - gap_us;
		return 0;
	}
	if (!segs || (s32)segs < 0 || (s32)took_us <= 0)
		return 0;
	ca->mark_delivered += segs;
	ca->mark_us += took_us;
	return pp_bunch_mean(took_us, segs);
}

/**
 * pp_bunch_rtt() - the round-trip time that says what waits
 * @sk: socket
 * @ca: connection
 *
 * Where each packet takes a time of its own, as over radio links, that of the last one
 * is no queue. The least of this round trip is without that, but comes from a time when
 * less waited, if the queue grows: with it alone, flows over paths of 150 ms had up to
 * 40 packets in the queue instead of 10. So no less than the last one, less four times
 * the mean deviation. In the mean a packet waits for the end of half a slot, and that
 * is more than the least.
 *
 * Return: us.
 */
u32 pp_bunch_rtt(const struct sock *sk, const struct pp *ca)
{
	u32 rtt_us = ca->rtt_us;
	/* It is kept as four times of itself. */
	u32 deviation_us = min(tcp_sk(sk)->mdev_us, rtt_us);
	u32 least_us = max_t(u32, ca->low_us, rtt_us - deviation_us);

	/* The least may be PP_LOW_NONE. */
	return least_us < rtt_us ? min(rtt_us, least_us + pp_slot_us(ca) / 2) : rtt_us;
}

/**
 * pp_queue_least() - packets that waited at the least, in a round trip
 * @ca: connection
 *
 * Return: Q8; 0 if no round-trip time is known.
 */
u32 pp_queue_least(const struct pp *ca)
{
	/* No round-trip time: all was sent again, without time stamps. */
	if (ca->low_us == PP_LOW_NONE)
		return 0;
	return pp_law_wait(ca->low_us, ca->delay_us + pp_held_us(ca), ca->estimate.service);
}

/*
 * An estimator is for pairs, of which a round trip has many. This sample is the only one of
 * its round trip, and the mean of all that arrived in it, so it counts for a quarter at
 * least. If it counted for less (the fuzzy estimator gives a 27th to one that is off by a
 * few per cent), an s_hat that is too small by 3 % would last for seconds: flows at 100 Mb/s
 * and 150 ms had 14 packets in the queue instead of 10 after eight seconds, and 19 where
 * slots were 1 ms. If it counted for more, two slots of a short path would be all that s_hat
 * is made of.
 */
#define PP_BUNCH_WEIGHT		4

/**
 * pp_bunch_sample() - take the mean service time of a round trip
 * @ca: connection
 * @sample: ns in Q10
 */
void pp_bunch_sample(struct pp *ca, u64 sample)
{
	struct pp_estimate *est = &ca->estimate;
	u64 before = est->service, service, part;
	u32 least = pp_queue_least(ca);

	/*
	 * With the silence of a peek in it, it is too long, and while the queue is empty it may
	 * be too short by chance. If more than the setpoint waits, the share has changed.
	 */
	if (pp_bunch_has_peeked(ca) && least <= ca->setpoint)
		return;
	if (least > PP_QUEUE_LOW) {
		sample = clamp_t(u64, sample, PP_SERVICE_MIN, PP_SERVICE_MAX);
		service = pp_estimate_sample(est, &ca->net->gains, sample);
		/* Below 2^42 times four: no overflow. */
		part = (before * (PP_BUNCH_WEIGHT - 1) + sample) / PP_BUNCH_WEIGHT;
		est->service = sample > before ? max(service, part) :
						 min(service, part);
	} else if (sample < before) {
		est->service = max(sample, PP_SERVICE_MIN);
	}
}

/* Is more sent than arrives? Then what waits is ours. */
static bool pp_bunch_is_pushing(const struct sock *sk, const struct pp *ca)
{
	u64 rate = pp_invert(ca->estimate.service);

	rate = (rate * tcp_sk(sk)->mss_cache) >> PP_RATE_SHIFT;
	return READ_ONCE(sk->sk_pacing_rate) > rate;
}

/*
 * After so many round trips in which next to nothing waited, all is probed
 * again. What leaves now shows in what arrives in the round trip after the
 * next: a queue that drained too far for a moment is back by then. With fewer,
 * the flows of a full link probe for that: when nothing held them back, two
 * flows had 25 to 36 packets in the queue instead of 10. With more, a link
 * whose other flows have left is used later.
 */
#define PP_BUNCH_LOWS		3

/*
 * A link whose other flows have left takes what is probed. One that is full has half
 * of a round trip more in its queue a round trip later, the law brings that down,
 * and where the queue drains too far for a moment the flows probe again, all of
 * them. The less was there for them, the less is probed: half as much each time that
 * twice the setpoint and more waited, down to a 16th of what arrives, which is a packet
 * in a round trip of 16. The counter has two bits. Where a 16th is far more than the
 * setpoint, it is a quarter as much each time, see pp_bunch_shift().
 */
#define PP_BUNCH_CAUTION	3

static void pp_bunch_caution(struct pp *ca, u32 least)
{
	struct pp_train *train = &ca->train;

	if (least > PP_QUEUE_LOW) {
		train->probe.low_rounds = 0;
		if (least / 2 > ca->setpoint && train->probe.caution < PP_BUNCH_CAUTION)
			train->probe.caution++;
	} else if (train->probe.low_rounds + 1 < PP_BUNCH_LOWS) {
		train->probe.low_rounds++;
	} else {
		train->probe.caution = 0;
	}
}

/**
 * pp_bunch_shift() - by how many powers of two less is probed
 * @ca: connection
 *
 * By one for each step of caution, or by up to two as long as more than twice the setpoint is
 * probed in a round trip. With one, two flows at 1 Gb/s and 150 ms probed with 375 packets each.
 * While the law let these drain, the queue became empty, and both flows probed again, every 0.7 s.
 *
 * Return: what pp_law_probe() wants.
 */
u32 pp_bunch_shift(const struct pp *ca)
{
	u32 caution = ca->train.probe.caution;
	u32 pipe = pp_law_pipe(ca->delay_us, ca->estimate.service);
	/* pp_law_probe() halves once more. The setpoint is a packet at least, and has 23 bits. */
	u32 most = fls(pipe / (4 * (u32)ca->setpoint));

	return clamp(most, caution, 2 * caution);
}

/**
 * pp_bunch_has_no_room() - more was sent, and no more has arrived
 * @sk: socket
 * @ca: connection
 *
 * So something waits. If what ACKs are held back for is more than slots explain, it may be packets
 * of ours, as when a push came while other flows left. It is if round-trip times hardly change:
 * then half of it is left. Otherwise it becomes less by a step of its code, if the last pushes were
 * in vain, too. (Without the half, 1 of 25 starts with slots of 300 us had 13 to 27 packets in the
 * queue instead of 10. With it, the ACKs of pp_held_most_us() leave 0.71 to 0.93 of a link of 50 to
 * 200 Mb/s to one flow or two, and without it 0.87 to 0.97.)
 */
void pp_bunch_has_no_room(const struct sock *sk, struct pp *ca)
{
	u32 held_us = pp_held_us(ca);

	if (held_us <= pp_held_slots_us(ca))
		return;
	/* It is kept as four times of itself. */
	if (held_us > 2 * tcp_sk(sk)->mdev_us)
		ca->full = pp_held_code(held_us / 2);
	else if (ca->short_rounds == PP_PUSH_TIMES)
		ca->full--;
}

/**
 * pp_bunch_has_room() - more was sent, and more has arrived
 * @ca: connection for which pp_may_be_held() is true
 * @mean: mean service time of what has arrived, ns in Q10
 *
 * So nothing of ours waits, and what round-trip times are above R is what ACKs are held back
 * for.
 */
void pp_bunch_has_room(struct pp *ca, u64 mean)
{
	ca->estimate.service = clamp_t(u64, mean, PP_SERVICE_MIN, PP_SERVICE_MAX);
	ca->fastest = pp_service_code(ca->estimate.service);
	ca->estimate.sudden = ca->fastest;
	ca->full = pp_held_code(pp_above_us(ca));
	/* Not to a half at once: what arrived may be chance. */
	ca->short_rounds -= !!ca->short_rounds;
}

/*
 * What are ACKs held back for, while nothing waits? R is the least of all round-trip times. Where
 * GRO, thinned ACKs and slots hold each ACK back for a time of its own, most round trips have no
 * ACK that comes as soon. That is a constant time, so at a high rate many packets seem to wait,
 * and the law keeps the rate where these are the setpoint: two flows used 14 % of a link of
 * 1 Gb/s and 40 ms (all of these with 1 ms).
 *
 * But if packets seem to wait, and 1 / s_hat becomes more by two steps of pp_service_code(),
 * nothing waited before. One step may be chance. If other flows have left instead, some of ours
 * did wait; they leave the queue sooner now, and what is held is less again. So only what slots
 * explain counts in this way: by no more is n_hat too small then.
 *
 * What is held for longer than slots explain (pp_held_most_us()) is another time in each round
 * trip. If it were the least of them, it would be far too short after a hundred. So it comes
 * nearer to a shorter one by a quarter, or by a step of its code if that is more. But all of it has
 * gone if it is less than half as long: slots have become shorter, or a queue of ours was taken for
 * it.
 */
#define PP_HELD_LESS		4

static void pp_bunch_held(struct pp *ca, u32 least)
{
	u32 code = pp_service_code(ca->estimate.service), before = ca->estimate.sudden;
	u32 above_us, held_us = pp_held_us(ca), slots_us = pp_held_slots_us(ca);
	bool waits = least > PP_QUEUE_LOW;

	if (ca->low_us == PP_LOW_NONE)
		return;
	above_us = pp_above_us(ca);
	if (waits && code + 2 <= before && above_us <= slots_us)
		ca->full = pp_held_code(above_us);
	else if (above_us < held_us)
		ca->full = pp_held_code(held_us <= slots_us || above_us < held_us / 2 ?
					above_us : held_us - (held_us - above_us) / PP_HELD_LESS);
	if (!waits || code > before || code + 2 <= before)
		ca->estimate.sudden = code;
}

/*
 * Does R need a peek? Only ACKs that come just before the end of a slot show R, and only of packets
 * that found an empty queue. Where a slot has few packets of ours, hardly any does: with slots of
 * 4 ms one of two flows at 10 Mb/s had an R of 12 ms instead of 5. Where a slot has many, some do
 * at the start. Where R holds many, a peek makes others fill the queue: with 150 ms at 1 Gb/s two
 * flows had 40 packets in the mean instead of 10. Before packets have waited a pause would make the
 * start slower. And where ACKs stand for many packets, each is held back for a time of its own,
 * which is taken for a queue: while none waits, no more is sent. (With all of these at once, eight
 * flows at 10 Mb/s and 150 ms used 87 % of the link.)
 */
#define PP_PEEK_SLOT		16

static bool pp_bunch_may_peek(const struct pp *ca)
{
	u64 service = ca->estimate.service;

	return ca->settled && !(ca->merged_acks & PP_ACK_MANY) && !pp_is_long(ca, service) &&
	       ((u64)pp_slot_us(ca) * NSEC_PER_USEC << PP_SERVICE_SHIFT) < service * PP_PEEK_SLOT;
}

/*
 * Behind a policer nothing waits, so that more and more is sent, and nothing else ends that. As
 * where pairs tell, four such round trips are enough, with no other between them that loses
 * nothing. (Without this 19 to 38 % of all packets were lost for good behind policers of 3, 5 and
 * 30 Mb/s, with slots of 1 and 4 ms.) The byte counts them in its highest two bits, in units of
 * PP_BUNCH_LONGER: below that it counts round trips with far too long a queue.
 */
#define PP_BUNCH_LOSSY		4

/* Has a round trip lost more than a quarter of what arrived, though nothing waited? */
static bool pp_bunch_is_lossy(const struct pp *ca, u32 least, u64 mean)
{
	u32 arrived = pp_law_pipe(ca->rtt_us + pp_slot_us(ca), mean) >> PP_PACKET_SHIFT;

	return least <= PP_QUEUE_LOW && ca->losses >= PP_LOSSES && pp_has_lost(ca, arrived / 4);
}

/**
 * pp_bunch_round() - a round trip is over
 * @sk: socket
 * @ca: connection
 * @mean: mean service time in it, ns in Q10
 *
 * Return: true if a policer takes far too much of what is sent.
 */
bool pp_bunch_round(struct sock *sk, struct pp *ca, u64 mean)
{
	u32 least = pp_queue_least(ca), lossy = ca->long_queues / PP_BUNCH_LONGER;

	/*
	 * Each burst makes it as long as slots are now, but not after a peek, which is a
	 * silence, too. Without one it is half as long after five round trips, (7/8)^5.
	 */
	if (!pp_bunch_has_peeked(ca)) {
		ca->slot -= DIV_ROUND_UP(ca->slot, 8);
		pp_bunch_caution(ca, least);
	}
	pp_bunch_held(ca, least);
	if (least > PP_QUEUE_LOW)
		ca->settled = 1;
	if (least / 2 <= ca->setpoint && pp_bunch_may_peek(ca))
		pp_delay_peek_bunched(sk, ca, least);
	ca->merged_acks &= ~PP_ACK_MANY;
	if (pp_bunch_is_lossy(ca, least, mean)) {
		if (lossy + 1 >= PP_BUNCH_LOSSY)
			return true;
		ca->long_queues = (lossy + 1) * PP_BUNCH_LONGER;
	} else if (least / 2 <= ca->setpoint || pp_bunch_is_pushing(sk, ca)) {
		ca->long_queues = ca->losses ? lossy * PP_BUNCH_LONGER : 0;
	} else {
		ca->long_queues = ca->long_queues % PP_BUNCH_LONGER + 1;
		if (ca->long_queues < PP_BUNCH_LONGER)
			return false;
		ca->long_queues = 0;
		pp_delay_raise(sk, ca);
	}
	return false;
}
