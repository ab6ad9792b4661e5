/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What each ACK needs of pp_train.c: it is no call, as the registers that a call saves
 * cost more than most of this does.
 */
#ifndef _PP_TRAIN_H
#define _PP_TRAIN_H

#include "pp_model.h"

/*
 * Distance of ACKs over that of sending, from which on packets are a train.
 * Then the second packet has waited for the first: it would have come a 16th of
 * the time later. With less, packets that were paced, and did not wait, pass
 * for a train. With more, two pushes in a row on a fast link are none, and the
 * first sample comes later.
 */
#define PP_TRAIN_APART	16

/* What fits into the field. Longer trains do not exist, see tcp_pp(7). */
#define PP_TRAIN_SEGS_MAX	511

/* The mean over the segments of the train so far. */
static inline u64 pp_train_sample(const struct pp_train *train)
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
static inline bool pp_train_is_next(const struct pp_train *train, u32 stamp_us,
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
static __always_inline u64 pp_train_ack(struct pp_train *train, u32 stamp_us,
					u32 now_ns, u32 acked, u32 wanted)
{
	/* Before the fields beside them are written: a load would wait for that. */
	bool second = train->full && train->extra;
	u64 sample;

	if (!pp_train_is_next(train, stamp_us, now_ns)) {
		/* With @gro only a whole second train tells something. */
		sample = train->extra && (train->full || train->gro) ? 0 :
			 pp_train_sample(train);
		train->stamp_us = stamp_us;
		train->first_ns = now_ns;
		train->last_ns = now_ns;
		train->segs = 0;
		train->open = 1;
		train->full = 0;
		return sample;
	}

	train->stamp_us = stamp_us;
	train->segs = min_t(u32, train->segs + acked, PP_TRAIN_SEGS_MAX);
	train->last_ns = now_ns;
	if (unlikely(second))
		return train->gro && train->segs == wanted ?
		       pp_train_sample(train) : 0;
	if (train->segs + 1 < wanted)
		return 0;

	/* Segments may follow: those sent before pacing sets in, or a second train. */
	sample = train->extra && train->gro ? 0 : pp_train_sample(train);
	train->first_ns = now_ns;
	train->segs = 0;
	train->full = 1;
	return sample;
}

/* Distance of sending over that of ACKs, from which on these are a burst. */
#define PP_BUNCH_CLOSE		32
/*
 * Less than this between two trains is none that could be told from nothing:
 * times of sending are in us, so that it is known to an eighth. A 32nd of it is
 * 250 ns. If it is less, errors of the clock look like bursts; if it is more,
 * bursts are not seen where many trains are sent in a ms.
 */
#define PP_BUNCH_APART_US	8
/*
 * Bursts until ACKs are believed to come in bursts. A share that grows at once
 * looks like one, and so may two trains in a FIFO that 32 flows share. With
 * fewer, these end the samples of pairs; with more, the rate is wrong for
 * longer where ACKs come in bursts. Three bits count up to seven, and after as
 * many round trips without a burst pairs are used again.
 */
#define PP_BUNCHES		4
#define PP_BUNCHES_MAX		7

/**
 * pp_train_bunch_believe() - were there enough bursts to believe in them?
 * @train: ACKs so far
 *
 * Return: true if they are believed from now on.
 */
static inline bool pp_train_bunch_believe(struct pp_train *train)
{
	if (likely(train->bunches < PP_BUNCHES || train->bunched))
		return false;
	train->bunched = 1;
	return true;
}

/**
 * pp_train_bunch() - do ACKs come in bursts?
 * @train: ACKs so far
 * @stamp_us: when the last segment that it delivers was sent, us
 * @now_ns: when the ACK came, low word, ns
 * @acked: segments that it delivers
 * @wanted: segments of a train
 *
 * A queue lets trains come closer together than they were sent, but never closer
 * than it serves them; a flow sends half as fast as it is served, or faster. So
 * trains that come 32 times closer together have waited elsewhere, or the share has
 * just grown as much: that happens once, and a burst counts once, however long it is.
 * In a FIFO that 32 flows share two trains may come so close, too. An ACK for more
 * than two trains (as long as they are without delayed ACKs) is a burst, too, and
 * so are two ACKs at the same time: no bottleneck does that. So is an ACK for a
 * segment that was sent before the one of the ACK before it: a queue serves a flow
 * in order, so packets have other delays of their own somewhere on the path, and
 * the time between two ACKs is not that of service. To be called before
 * pp_train_ack() takes the ACK.
 *
 * Return: true if that is believed from now on.
 */
static inline bool pp_train_bunch(struct pp_train *train, u32 stamp_us,
				  u32 now_ns, u32 acked, u32 wanted)
{
	s32 apart_us = stamp_us - train->stamp_us;
	bool sure = acked > 2 * wanted || now_ns == train->last_ns || apart_us < 0;
	bool close;

	if (!train->open || (!apart_us && !sure))
		return false;
	close = sure || (apart_us >= PP_BUNCH_APART_US &&
			 (u64)(now_ns - train->last_ns) * PP_BUNCH_CLOSE <
			 (u64)apart_us * NSEC_PER_USEC);
	if (sure || (close && !train->close))
		pp_train_bunch_count(train);
	train->close = close;
	return pp_train_bunch_believe(train);
}

#endif /* _PP_TRAIN_H */
