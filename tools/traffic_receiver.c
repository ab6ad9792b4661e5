// SPDX-License-Identifier: GPL-2.0
/*
 * Packet pair at the receiver, PP94 10.4
 *
 * For streams that go one way. The sender puts its state into each packet. Here
 * the distance of the halves of a pair is the service time s of the bottleneck,
 * and what the first half waited is the queue that it found:
 *
 *	s_hat		of the distances, pp_estimator.c
 *	d_q		one-way delay over its minimum
 *	n_hat		see receiver_queue()
 *	rate		(B - n_hat) / J + 1 / s_hat, pp_law.c
 *
 * This file knows no socket. Its arithmetic is that of tcp_pp, of which it is
 * built with the files themselves.
 *
 * Notable differences from PP94's sender:
 * - n_hat = S - R / s_hat is what will wait when all has arrived that is on the
 *   way, S. The receiver does not see that. It knows what rates it has told, and
 *   so what has left since the pair that it has just measured;
 * - a report also leaves early when the rate is off by more than an eighth, but
 *   not sooner than a 16th of the interval after the last one. Else what a rate
 *   that is too high adds to the queue until the next report would be twice what a
 *   sender adds that hears of each pair;
 * - a rate that is told is in force until the next report comes, so that J is not
 *   shorter than the interval of reports: else one rate would correct the queue
 *   by more than it is off;
 * - the clocks of the two hosts drift. A minimum of one-way delays over a window
 *   would not do, as the queue that the law wants never drains: see
 *   receiver_drift().
 *
 * Everything in a packet may be forged. What is impossible is counted and not
 * used; what is possible can make the rate wrong, and the sender has a greatest
 * rate of its own.
 */
#include <linux/kernel.h>

#include <endian.h>
#include <string.h>

#include "pp_model.h"
#include "traffic_receiver.h"

/* RFC 3550 A.1: beyond, two packets in a row show that it is no accident. */
#define FAR_AHEAD		65536
/* How far back repeated packets are known from late ones. */
#define WINDOW_PKTS		64
/* A clock in us tells no shorter distance. */
#define SERVICE_MIN		((u64)NSEC_PER_USEC << PP_SERVICE_SHIFT)
/* A rate that is off by this part is told early, but so often at most. */
#define URGENT_PART		8
#define URGENT_OFTEN		16
/* Rates that are told are kept for a round trip: it is four intervals at most. */
#define TOLD_COUNT		(4 * URGENT_OFTEN + 1)
/* Of what has come, in a round trip. */
#define SEEN_COUNT		32
/* How often the drift of the clocks is looked at. */
#define DRIFT_NS		(2 * NSEC_PER_SEC)
/* A clock of quartz is off by up to 100 ppm, and two of them by 1 in 5000. */
#define DRIFT_PART		5000

struct told {
	int64_t at_ns;
	u64 rate;		/* packets/s in Q16 */
};

/* How many had come by a time. */
struct seen {
	int64_t at_ns;
	u32 received;
};

/* All that is forgotten when the sequence begins anew. */
struct course {
	bool begun;
	u32 highest;
	u32 first;		/* sequence less packets received before it */
	u64 window;		/* bit n: highest - n has come */

	/* of the last packet */
	u16 setpoint;
	u16 quarters;
	size_t length;

	/* the pair of which the first half has come */
	bool open;
	u16 pair;
	u32 pair_sequence;

	/* the last first half */
	bool stamped;
	u32 stamp_us;
	int64_t first_ns;
	u32 wait_us;

	/* one-way delays, of which the clocks' difference is a part */
	bool based;
	u32 base_us;
	s32 seen_us;			/* least that was seen, over base_us */
	int64_t seen_ns;		/* when that was */
	s32 low_us;		/* least of this window, over base_us */
	u32 low_srtt_us;	/* the same of round trips */
	int64_t window_ns;	/* when it began */
	u32 delay_us;		/* R: least round trip; 0: not known */

	struct pp_estimate estimate;
	u64 mean_rate;
	u64 rate;
	u32 queue;
	int64_t stop_ns;		/* when to go on after a stop */
	struct told told[TOLD_COUNT];	/* the last one first, from `newest` on */
	unsigned int newest, told_count;
	struct seen seen[SEEN_COUNT];	/* the same */
	unsigned int newest_seen, seen_count;
	bool idle;			/* nothing was left to send, */
	int64_t idle_ns;		/* the last time here */
	int64_t due_ns;			/* of the next report */
	bool fresh;			/* something came since the last one */
	bool paired;			/* and a pair was among it */
};

struct receiver {
	struct course now;
	struct receiver_counts counts;
	u32 received;
	u32 resume;		/* sequence that would begin anew */
	bool resuming;
};

struct receiver *receiver_new(void)
{
	return calloc(1, sizeof(struct receiver));
}

void receiver_free(struct receiver *receiver)
{
	free(receiver);
}

/* Sequence numbers, PP94's or RTP's: is this packet the first of its kind? */

static void receiver_begin(struct receiver *receiver, u32 sequence)
{
	struct course *now = &receiver->now;

	*now = (struct course){
		.begun = true,
		.highest = sequence,
		/* What came before the sequence began anew is not lost. */
		.first = sequence - receiver->received,
		.window = 1,
	};
	receiver->resuming = false;
}

/* What is too far off begins anew if the one that follows it comes next. */
static bool receiver_resume(struct receiver *receiver, u32 sequence,
			    uint64_t *counter)
{
	if (receiver->resuming && sequence == receiver->resume) {
		receiver->counts.restarts++;
		receiver_begin(receiver, sequence);
		return true;
	}
	receiver->resuming = true;
	receiver->resume = sequence + 1;
	(*counter)++;
	return false;
}

static bool receiver_is_new(struct receiver *receiver, u32 sequence)
{
	struct course *now = &receiver->now;
	u32 ahead = sequence - now->highest, back = now->highest - sequence;

	if (!now->begun) {
		if (sequence >= FAR_AHEAD)
			return receiver_resume(receiver, sequence,
					       &receiver->counts.far);
		receiver_begin(receiver, sequence);
		/* Those before it were lost. */
		now->first = 0;
		return true;
	}
	if (ahead && ahead < FAR_AHEAD) {
		now->window = ahead < WINDOW_PKTS ? now->window << ahead : 0;
		now->window |= 1;
		now->highest = sequence;
		receiver->resuming = false;
		return true;
	}
	if (back < WINDOW_PKTS) {
		if (now->window & BIT_ULL(back)) {
			receiver->counts.repeated++;
			return false;
		}
		now->window |= BIT_ULL(back);
		return true;
	}
	/* Another sender from the same port. */
	if (!sequence) {
		receiver->counts.restarts++;
		receiver_begin(receiver, sequence);
		return true;
	}
	return receiver_resume(receiver, sequence, back < FAR_AHEAD ?
			       &receiver->counts.late : &receiver->counts.far);
}

/* Delays. */

/*
 * The round trip is measured by one clock, and does not drift. In a window the
 * least of one-way delays less the least queue on the round trip is a base
 * without drift. A queue on the way back makes it too small. So the base in use is
 * no farther from a delay that was seen than clocks may have drifted since then.
 */
static void receiver_drift(struct course *now, int64_t arrival_ns)
{
	s64 base, most;

	if (arrival_ns - now->window_ns < DRIFT_NS)
		return;
	if (now->low_srtt_us && now->delay_us) {
		most = (arrival_ns - now->seen_ns) / DRIFT_PART / NSEC_PER_USEC;
		base = now->low_us - (s64)(now->low_srtt_us - now->delay_us);
		base = clamp_t(s64, base, now->seen_us - most,
			       now->seen_us + most);
		base = clamp_t(s64, base, -(s64)PP_RTT_MAX_US, PP_RTT_MAX_US);
		now->base_us += base;
		now->seen_us -= base;
	}
	now->window_ns = arrival_ns;
	now->low_us = INT32_MAX;
	now->low_srtt_us = 0;
}

/* What the first half of a pair waited; false if the stamp is impossible. */
static bool receiver_wait(struct course *now, u32 stamp_us, int64_t arrival_ns)
{
	/* Differences of clocks cancel, modulo 2^32 us. */
	u32 way_us = (u32)(arrival_ns / NSEC_PER_USEC) - stamp_us;
	s32 over_us;

	if (!now->based) {
		now->based = true;
		now->base_us = way_us;
		now->seen_ns = arrival_ns;
		now->window_ns = arrival_ns;
		now->low_us = INT32_MAX;
	}
	over_us = way_us - now->base_us;
	if (over_us > (s32)PP_RTT_MAX_US || over_us < -(s32)PP_RTT_MAX_US)
		return false;
	if (over_us < 0) {
		now->base_us = way_us;
		now->seen_us = 0;
		now->seen_ns = arrival_ns;
		if (now->low_us != INT32_MAX)
			now->low_us -= over_us;
		over_us = 0;
	}
	now->low_us = min(now->low_us, over_us);
	now->wait_us = over_us;
	now->stamp_us = stamp_us;
	now->first_ns = arrival_ns;
	now->stamped = true;
	receiver_drift(now, arrival_ns);
	return true;
}

static void receiver_round_trip(struct course *now, u32 srtt_us)
{
	if (!srtt_us)
		return;
	srtt_us = min(srtt_us, PP_RTT_MAX_US);
	if (!now->delay_us) {
		/* From now on there is a law: tell what it says with the next pair. */
		now->due_ns = 0;
		now->delay_us = srtt_us;
	}
	now->delay_us = min(now->delay_us, srtt_us);
	now->low_srtt_us = now->low_srtt_us ? min(now->low_srtt_us, srtt_us) :
					      srtt_us;
}

/* The law. */

/* Packets that were told to be sent in a time that ends now, Q8. */
static u64 receiver_told(const struct course *now, int64_t from_ns,
			 int64_t to_ns)
{
	__uint128_t sum = 0;
	unsigned int i;

	for (i = 0; i < now->told_count && to_ns > from_ns; i++) {
		const struct told *told =
			&now->told[(now->newest + i) % TOLD_COUNT];
		int64_t since_ns = max(told->at_ns, from_ns);

		/* Rates are below 2^47, and times below 2^40. */
		if (since_ns < to_ns) {
			sum += (__uint128_t)told->rate *
			       (to_ns - since_ns);
			to_ns = since_ns;
		}
	}
	sum = (sum / NSEC_PER_SEC) >> (PP_RATE_SHIFT - PP_PACKET_SHIFT);
	return min_t(__uint128_t, sum, U32_MAX / 4);
}

static u32 receiver_rtt_us(const struct course *now)
{
	return min(now->delay_us + now->wait_us, PP_RTT_MAX_US);
}

/* Remember how many have come, some times in a round trip. */
static void receiver_see(struct course *now, u32 received, int64_t arrival_ns)
{
	int64_t apart_ns = receiver_rtt_us(now) * NSEC_PER_USEC /
			   (SEEN_COUNT / 2);

	if (now->seen_count &&
	    arrival_ns - now->seen[now->newest_seen].at_ns < apart_ns)
		return;
	now->newest_seen = (now->newest_seen + SEEN_COUNT - 1) % SEEN_COUNT;
	now->seen[now->newest_seen] = (struct seen){
		.at_ns = arrival_ns,
		.received = received,
	};
	now->seen_count = min(now->seen_count + 1, (unsigned int)SEEN_COUNT);
}

/* Packets that came in about a round trip until now, Q8; for a part of it, more. */
static u32 receiver_came(const struct course *now, u32 received, int64_t now_ns)
{
	int64_t rtt_ns = receiver_rtt_us(now) * NSEC_PER_USEC;
	const struct seen *seen = NULL;
	u64 came;
	unsigned int i;

	for (i = 0; i < now->seen_count; i++) {
		seen = &now->seen[(now->newest_seen + i) % SEEN_COUNT];
		if (now_ns - seen->at_ns >= rtt_ns)
			break;
	}
	if (!seen || now_ns <= seen->at_ns)
		return U32_MAX / 4;
	came = (u64)(received - seen->received) << PP_PACKET_SHIFT;
	return min_t(u64, U32_MAX / 4,
		     (__uint128_t)came * rtt_ns / (now_ns - seen->at_ns));
}

/* Has the sender had nothing to send, of late? */
static bool receiver_is_idle(const struct course *now, int64_t now_ns)
{
	return now->idle && now_ns - now->idle_ns <
			    2 * (int64_t)receiver_rtt_us(now) * NSEC_PER_USEC;
}

/*
 * n_hat, for the moment at which a report that leaves now reaches the sender:
 * what waited when the last pair came, and what the sender was told to send since
 * then, less what is served since then. That pair left a round trip before that
 * moment. As in tcp_pp, half a pair more: it is found when it does not wait yet.
 *
 * A sender that has less to send than it is told sends about as much as it did.
 */
static u32 receiver_queue(const struct course *now, u32 received,
			  int64_t now_ns)
{
	u64 service = now->estimate.service;
	u32 rtt_us = receiver_rtt_us(now);
	u32 held_us = min_t(u64, (now_ns - now->first_ns) / NSEC_PER_USEC,
			    PP_RTT_MAX_US - rtt_us);
	u64 there = receiver_told(now, now->first_ns - rtt_us * NSEC_PER_USEC,
				  now_ns);

	if (receiver_is_idle(now, now_ns))
		there = min_t(u64, there, receiver_came(now, received, now_ns));
	there += min(pp_law_pipe(now->wait_us, service), U32_MAX / 4);
	there += PP_PACKET;
	return pp_law_queue(there, pp_law_pipe(rtt_us + held_us, service));
}

/* Between two reports, us. */
static u32 receiver_interval_us(const struct course *now)
{
	u32 rtt_us = receiver_rtt_us(now);

	if (now->quarters)
		return min_t(u64, (u64)rtt_us * now->quarters / 4,
			     PP_RTT_MAX_US);
	/* Also as long as no round trip is known. */
	return now->delay_us ? min_t(u32, rtt_us, WIRE_REPORT_NS / NSEC_PER_USEC) :
			       WIRE_REPORT_NS / NSEC_PER_USEC;
}

/*
 * Far above the setpoint PP94's sources wait until the queue has drained. They are
 * told to send next to nothing for that time, and not again for a round trip, after
 * which it shows. The rest is that of tcp_pp.
 */
static u64 receiver_drain(struct course *now, u64 rate, int64_t now_ns)
{
	u64 service = now->estimate.service;
	u32 setpoint = now->setpoint * PP_PACKET, stop_us;
	u32 rtt_us = receiver_rtt_us(now);

	if (now_ns >= now->stop_ns + rtt_us * NSEC_PER_USEC) {
		stop_us = pp_law_stop(setpoint, now->queue, now->delay_us, rtt_us,
				      service);
		if (stop_us)
			now->stop_ns = now_ns + stop_us * NSEC_PER_USEC;
	}
	if (now_ns < now->stop_ns)
		return pp_law_rate(2 * PP_PACKET, rtt_us);
	return min(pp_law_drain(rate, setpoint, now->queue, now->delay_us,
				service), PP_RATE_MAX);
}

static void receiver_law(struct course *now, u32 received, int64_t now_ns)
{
	u64 service = now->estimate.service;
	u32 setpoint = now->setpoint * PP_PACKET;
	u32 interval_us, delay_us;
	u64 target;

	if (now->delay_us) {
		now->queue = receiver_queue(now, received, now_ns);
		/* J goes by R + n_hat s_hat. */
		interval_us = receiver_interval_us(now);
		delay_us = max(now->delay_us,
			       interval_us - min(interval_us, now->wait_us));
		target = pp_law_continuous(setpoint, now->queue, delay_us,
					   service);
	} else {
		target = pp_invert(service);
	}
	target = pp_law_rise(target, now->mean_rate, now->queue, U64_MAX);
	now->mean_rate = pp_law_mean(now->mean_rate, target);
	now->rate = now->delay_us ? receiver_drain(now, target, now_ns) : target;
}

static void receiver_sample(struct receiver *receiver, int64_t distance_ns,
			    int64_t arrival_ns)
{
	static const struct pp_gains gains = {
		.estimator = PP_ESTIMATOR_FUZZY,
	};
	struct course *now = &receiver->now;
	u64 sample;

	/* Nothing is served in no time. */
	if (distance_ns < 0) {
		receiver->counts.unordered++;
		return;
	}
	sample = min_t(u64, distance_ns, PP_SERVICE_MAX >> PP_SERVICE_SHIFT) <<
		 PP_SERVICE_SHIFT;
	pp_estimate_sample(&now->estimate, &gains, max(sample, SERVICE_MIN));
	receiver->counts.pairs++;
	now->paired = true;
	receiver_law(now, receiver->received, arrival_ns);
}

/**
 * receiver_packet() - a packet has come
 * @receiver: of its flow
 * @bytes: its payload
 * @there: how many of these bytes there are
 * @length: of the payload; more than @there if it was cut off
 * @arrival_ns: when it came, by any clock that is always the same
 *
 * Return: true if it is a packet of the flow that has not come before.
 */
bool receiver_packet(struct receiver *receiver, const void *bytes,
		     size_t there, size_t length, int64_t arrival_ns)
{
	struct course *now = &receiver->now;
	struct wire_pair header;
	u16 pair, wish, setpoint;
	u32 sequence, stamp_us;
	bool in_order;

	if (there < sizeof(header)) {
		receiver->counts.truncated++;
		return false;
	}
	memcpy(&header, bytes, sizeof(header));
	sequence = be32toh(header.sequence);
	stamp_us = be32toh(header.stamp_us);
	pair = be16toh(header.pair);
	wish = be16toh(header.wish);
	setpoint = wish & WIRE_SETPOINT_MAX;
	if (be32toh(header.magic) != WIRE_MAGIC_PAIR) {
		receiver->counts.truncated++;
		return false;
	}
	if (!setpoint) {
		receiver->counts.absurd++;
		return false;
	}
	if (!receiver_is_new(receiver, sequence))
		return false;
	receiver->counts.packets++;
	receiver->received++;
	in_order = sequence == now->highest;
	now->fresh = true;
	/* What is older tells what was. */
	if (!in_order)
		return true;
	now->setpoint = setpoint;
	now->quarters = wish >> WIRE_SETPOINT_BITS;
	now->length = length;
	receiver_round_trip(now, be32toh(header.srtt_us));
	receiver_see(now, receiver->received, arrival_ns);
	if (pair & WIRE_IDLE) {
		now->idle = true;
		now->idle_ns = arrival_ns;
	}
	if (!(pair & WIRE_SECOND_HALF)) {
		now->open = receiver_wait(now, stamp_us, arrival_ns);
		now->pair = pair >> WIRE_PAIR_SHIFT;
		now->pair_sequence = sequence;
		if (!now->open)
			receiver->counts.absurd++;
	} else if (now->open && now->pair == pair >> WIRE_PAIR_SHIFT &&
		   now->pair_sequence + 1 == sequence) {
		now->open = false;
		receiver_sample(receiver, arrival_ns - now->first_ns,
				arrival_ns);
	}
	return true;
}

static u32 receiver_rate_kbps(const struct course *now)
{
	/* Payloads are below 2^16 bytes, rates up to 2^46. */
	__uint128_t bits = (__uint128_t)now->rate * now->length * 8;
	u64 kbps;

	kbps = (bits >> PP_RATE_SHIFT) / 1000;
	/* A rate of nothing would end the flow. */
	return clamp_t(u64, kbps, 1, U32_MAX);
}

/* Is the rate that is in force so far off that the next report would come late? */
static bool receiver_is_urgent(const struct course *now, int64_t now_ns,
			       int64_t interval_ns)
{
	const struct told *last = &now->told[now->newest];
	u64 off = now->rate > last->rate ? now->rate - last->rate :
					   last->rate - now->rate;

	return now->told_count && now->paired &&
	       off > last->rate / URGENT_PART &&
	       now_ns >= last->at_ns + interval_ns / URGENT_OFTEN;
}

/**
 * receiver_report() - is a report due?
 * @receiver: of the flow
 * @now_ns: by the clock of receiver_packet()
 * @report: what to send then
 *
 * With the first pair, and then an interval after the last one, or earlier if it is
 * urgent, with the pair that comes next. If no pair comes as a whole for another
 * interval, with any packet.
 * So nobody is sent more reports than packets have come from there.
 *
 * Return: true if @report is to be sent.
 */
bool receiver_report(struct receiver *receiver, int64_t now_ns,
		     struct wire_report *report)
{
	struct course *now = &receiver->now;
	int64_t interval_ns = receiver_interval_us(now) * NSEC_PER_USEC;
	int64_t held_ns;

	if (!now->fresh || !now->stamped || !now->rate)
		return false;
	if (!receiver_is_urgent(now, now_ns, interval_ns) &&
	    (now_ns < now->due_ns ||
	     (!now->paired && now_ns < now->due_ns + interval_ns)))
		return false;

	held_ns = max(now_ns - now->first_ns, (int64_t)0);
	*report = (struct wire_report){
		.highest = htobe32(now->highest),
		.received = htobe32(receiver->received),
		.lost = htobe32(now->highest + 1 - now->first -
				receiver->received),
		.rate_kbps = htobe32(receiver_rate_kbps(now)),
		.echo_us = htobe32(now->stamp_us +
				   (u32)(held_ns / NSEC_PER_USEC)),
	};
	now->newest = (now->newest + TOLD_COUNT - 1) % TOLD_COUNT;
	now->told[now->newest] = (struct told){
		.at_ns = now_ns,
		.rate = now->rate,
	};
	now->told_count = min(now->told_count + 1, (unsigned int)TOLD_COUNT);
	now->due_ns = now_ns + interval_ns;
	now->fresh = false;
	now->paired = false;
	receiver->counts.reports++;
	return true;
}

/* The sequence number that is expected next. */
uint32_t receiver_next_sequence(const struct receiver *receiver)
{
	return receiver->now.begun ? receiver->now.highest + 1 : 0;
}

const struct receiver_counts *receiver_counts(const struct receiver *receiver)
{
	return &receiver->counts;
}

void receiver_read(const struct receiver *receiver,
		   struct receiver_state *state)
{
	const struct course *now = &receiver->now;

	*state = (struct receiver_state){
		.service_ns = now->estimate.service >> PP_SERVICE_SHIFT,
		.wait_us = now->wait_us,
		.way_us = now->base_us,
		.delay_us = now->delay_us,
		.queue_256 = now->queue,
		.rate_kbps = now->rate ? receiver_rate_kbps(now) : 0,
		.lost = now->begun ? now->highest + 1 - now->first -
				     receiver->received : 0,
	};
}
