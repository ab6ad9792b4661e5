// SPDX-License-Identifier: GPL-2.0
/*
 * Packet pair at the receiver, PP94 10.4
 *
 * For streams in one direction. The sender puts its state into each packet. The time
 * between the two packets of a pair is the service time s of the bottleneck. The time
 * for which the first packet waited gives the queue that it found:
 *
 *	s_hat		estimate of s, pp_estimator.c
 *	d_q		one-way delay minus its minimum
 *	n_hat		see receiver_queue()
 *	rate		(B - n_hat) / J + 1 / s_hat, pp_law.c
 *
 * This file has no sockets. It is built with the arithmetic of tcp_pp (the same files).
 *
 * Notable differences from PP94's sender:
 * - n_hat = S - R / s_hat is the queue when all outstanding packets, S, have arrived at
 *   the bottleneck. The receiver does not know S. It knows the rates that it has
 *   reported, and so what the sender has sent since the pair that was measured last;
 * - a report also leaves early if the rate is wrong by more than 1/8, but not sooner
 *   than 1/16 of the interval after the last one. Otherwise a rate that is too high
 *   would add twice as much to the queue until the next report as with a sender that
 *   measures each pair itself;
 * - a reported rate is used until the next report arrives, so J is not shorter than the
 *   interval of reports. Otherwise one rate would change the queue by more than its
 *   error;
 * - the clocks of the two hosts drift. A minimum of one-way delays over a window is not
 *   enough, because the law never lets the queue become empty: see receiver_drift().
 *
 * All fields of a packet may be forged. Impossible values are counted and not used.
 * Possible ones can make the rate wrong; the sender limits it by its own largest rate.
 */
#include <linux/kernel.h>

#include <endian.h>
#include <string.h>

#include "pp_model.h"
#include "traffic_receiver.h"

/* RFC 3550 A.1: a larger jump needs two packets in a row to be accepted. */
#define FAR_AHEAD		65536
/* Packets for which repeated packets are distinguished from late ones. */
#define WINDOW_PKTS		64
/* 1 us, the resolution of the clock. */
#define SERVICE_MIN		((u64)NSEC_PER_USEC << PP_SERVICE_SHIFT)
/* A rate that changed by 1/8 is reported early, at most 16 times in an interval. */
#define URGENT_PART		8
#define URGENT_OFTEN		16
/* Reported rates are kept for a round trip, which is at most four intervals. */
#define TOLD_COUNT		(4 * URGENT_OFTEN + 1)
/* Counts of arrived packets that are kept for a round trip. */
#define SEEN_COUNT		32
/* How often the drift of the clocks is looked at. */
#define DRIFT_NS		(2 * NSEC_PER_SEC)
/* A quartz clock is wrong by up to 100 ppm, and two by 200 ppm, 1 in 5000. */
#define DRIFT_PART		5000

struct told {
	int64_t at_ns;
	u64 rate;		/* packets/s in Q16 */
};

/* Number of packets that had arrived at a time. */
struct seen {
	int64_t at_ns;
	u32 received;
};

/* State that is cleared when the sequence begins anew. */
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
		/* Packets before the new beginning of the sequence do not count as lost. */
		.first = sequence - receiver->received,
		.window = 1,
	};
	receiver->resuming = false;
}

/* A sequence number far away begins a new sequence if its successor comes next. */
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
		/* Packets before it were lost. */
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
 * The round-trip time is measured by one clock, so it does not drift. In a window, the
 * smallest one-way delay minus the smallest queueing delay of the round trip is a base
 * without drift. A queue in the opposite direction makes this base too small. Therefore
 * the base differs from a delay that was seen by at most the drift of the clocks since
 * then.
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

/* Waiting time of the first packet of a pair; false if its stamp is impossible. */
static bool receiver_wait(struct course *now, u32 stamp_us, int64_t arrival_ns)
{
	/* The difference of the clocks is part of the base, modulo 2^32 us. */
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
		/* There is a rate now: report it with the next pair. */
		now->due_ns = 0;
		now->delay_us = srtt_us;
	}
	now->delay_us = min(now->delay_us, srtt_us);
	now->low_srtt_us = now->low_srtt_us ? min(now->low_srtt_us, srtt_us) :
					      srtt_us;
}

/* The law. */

/* Packets that the reported rates allowed in a time that ends now, Q8. */
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

/* Store the number of arrived packets, several times in a round trip. */
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

/* Packets that arrived in the last round trip, Q8; extrapolated from a part of it. */
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

/* Did the sender have nothing to send in the last round trip? */
static bool receiver_is_idle(const struct course *now, int64_t now_ns)
{
	return now->idle && now_ns - now->idle_ns <
			    2 * (int64_t)receiver_rtt_us(now) * NSEC_PER_USEC;
}

/*
 * n_hat, for the moment at which a report that leaves now reaches the sender: the queue
 * when the last pair arrived, plus what the reported rates allowed since then, minus what
 * was served since then. That pair left a round trip before that moment. As in tcp_pp,
 * half a pair is added, because a pair measures the queue before it is part of it.
 *
 * A sender that has less to send than its rate allows is assumed to send as much as
 * before.
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

/* Time between two reports, us. */
static u32 receiver_interval_us(const struct course *now)
{
	u32 rtt_us = receiver_rtt_us(now);

	if (now->quarters)
		return min_t(u64, (u64)rtt_us * now->quarters / 4,
			     PP_RTT_MAX_US);
	/* This also applies while no round trip is known. */
	return now->delay_us ? min_t(u32, rtt_us, WIRE_REPORT_NS / NSEC_PER_USEC) :
			       WIRE_REPORT_NS / NSEC_PER_USEC;
}

/*
 * If the queue is far above the setpoint, the sources of PP94 wait until it has drained.
 * Here the report has the smallest rate for this time. It is not repeated for a round
 * trip, until the effect can be seen. The rest is as in tcp_pp.
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
		/* J depends on R + n_hat s_hat. */
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
 * receiver_packet() - process a packet that arrived
 * @receiver: receiver of its flow
 * @bytes: its payload
 * @there: number of bytes at @bytes
 * @length: length of the payload; more than @there if it was truncated
 * @arrival_ns: time of its arrival, always by the same clock
 *
 * Return: true if it is a packet of the flow that did not arrive before.
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
	/* An older packet has outdated values. */
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
	/* A rate of 0 would end the flow. */
	return clamp_t(u64, kbps, 1, U32_MAX);
}

/* Does the rate in use differ so much that a report must leave early? */
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
 * @receiver: receiver of the flow
 * @now_ns: time by the clock of receiver_packet()
 * @report: the report, if it is due
 *
 * The first report is due with the first pair. Each next one is due with the first pair
 * an interval after the last report, or earlier if it is urgent. If no complete pair
 * arrives for another interval, it is due with any packet. So no address gets more
 * reports than packets came from it.
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

/* The next expected sequence number. */
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
