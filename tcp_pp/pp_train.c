// SPDX-License-Identifier: GPL-2.0
/*
 * Pairs, and longer trains: from the times of ACKs to samples of the service
 * time (PP94 section 3)
 *
 * Segments that left back to back carry the same time of transmission, or nearly
 * so. ACKs of such segments that come one after the other are as far apart as the
 * segments left the bottleneck: an ACK that newly delivers k of them, dt after
 * the ACK before, says that the service of a segment takes dt / k.
 */

#include "pp_model.h"

/* Distance of ACKs over that of sending, from which on packets are a train. */
#define PP_TRAIN_APART	16

/**
 * pp_train_break() - what comes next does not belong to what came
 * @train: ACKs so far
 */
void pp_train_break(struct pp_train *train)
{
	train->open = 0;
	train->segs = 0;
}

/* The mean over the segments of the train so far. */
static u64 pp_train_sample(const struct pp_train *train)
{
	u64 span = (u64)(train->last_ns - train->first_ns) << PP_SERVICE_SHIFT;

	/* One for a pair, which needs no quotient. */
	if (likely(train->segs == 1))
		return span;
	return train->segs ? div_u64(span, train->segs) : 0;
}

/*
 * Did a segment leave back to back with the last one? Those of one packet have
 * the same time. Two packets that pushes in a row sent do if their ACKs are much
 * farther apart than they were: then the one has waited for the other. Only
 * until the train is full, or whatever is sent at once would be one.
 */
static bool pp_train_is_next(const struct pp_train *train, u32 stamp_us,
			     u32 now_ns)
{
	u32 apart_us = stamp_us - train->stamp_us;

	if (!train->open)
		return false;
	return !apart_us || (!train->full && (u64)apart_us * NSEC_PER_USEC <=
			     (now_ns - train->last_ns) / PP_TRAIN_APART);
}

/**
 * pp_train_ack() - take an ACK that delivers something
 * @train: ACKs so far
 * @stamp_us: when the last segment that it delivers was sent, us
 * @now_ns: when the ACK came, low word, ns
 * @acked: segments that it delivers
 * @wanted: segments of a train, 2 and up
 *
 * An ACK whose segment left at another time begins a train, and ends the one
 * before: what that one had, if it was not full, is a sample still. The first
 * ACK of a train may deliver segments of others too, as its time alone counts.
 * A later one may stand for several segments, if ACKs before it were lost or
 * held back.
 *
 * Return: a sample of the service time, ns in Q10, or 0.
 */
u64 pp_train_ack(struct pp_train *train, u32 stamp_us, u32 now_ns, u32 acked,
		 u32 wanted)
{
	u64 sample;

	if (!pp_train_is_next(train, stamp_us, now_ns)) {
		sample = pp_train_sample(train);
		train->stamp_us = stamp_us;
		train->first_ns = now_ns;
		train->last_ns = now_ns;
		train->segs = 0;
		train->open = 1;
		train->full = 0;
		return sample;
	}

	train->stamp_us = stamp_us;
	train->segs = min_t(u32, train->segs + acked, U16_MAX);
	train->last_ns = now_ns;
	if (train->segs + 1 < wanted)
		return 0;

	/* Segments may follow: those sent before pacing sets in. */
	sample = pp_train_sample(train);
	train->first_ns = now_ns;
	train->segs = 0;
	train->full = 1;
	return sample;
}

/**
 * pp_train_gap() - service time from the distance of any two ACKs
 * @train: ACKs so far
 * @now_ns: when an ACK came, low word, ns
 * @acked: segments that it delivers, 1 and up
 *
 * True only while the bottleneck was never idle between them. To be called
 * before pp_train_ack() takes the ACK.
 *
 * Return: ns in Q10, or 0 if there is no ACK before.
 */
u64 pp_train_gap(const struct pp_train *train, u32 now_ns, u32 acked)
{
	u64 span = (u64)(now_ns - train->last_ns) << PP_SERVICE_SHIFT;

	return train->open ? div_u64(span, acked ?: 1) : 0;
}
