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
	if (train->full && train->extra)
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

/*
 * Trains that look so until a receiver is believed to hold segments back. In a FIFO
 * less than every second one does, if packets of others come between its segments
 * by chance: one that does not takes four back. With fewer, such a FIFO is taken for
 * a queue of our own; with more, or with more taken back, the rate is wrong for longer.
 */
#define PP_GRO_BELIEVED		15
#define PP_GRO_OTHER		4

/*
 * Part of a distance by which the last one must be shorter: by less distances differ
 * for the packets of others. A smaller h is an error of s_hat that is as small.
 */
#define PP_GRO_LEAST		16

/**
 * pp_train_gro_doubt() - a train, or a round trip, that does not look so
 * @train: ACKs so far
 */
void pp_train_gro_doubt(struct pp_train *train)
{
	train->gro_seen -= min_t(u32, train->gro_seen, PP_GRO_OTHER);
	if (!train->gro_seen)
		train->gro = 0;
}

/**
 * pp_train_gro() - does the receiver's GRO hold segments back?
 * @train: ACKs so far
 * @stamp_us: when the last segment that it delivers was sent, us
 * @now_ns: when the ACK came, low word, ns
 * @acked: segments that it delivers
 * @wanted: segments of a train, of which two were sent at once
 *
 * With gro_flush_timeout GRO holds a segment back for some time h, in case another
 * one follows. The last segment of a super-packet has PSH (since Linux 5.4), and is
 * passed on at once. So of pairs that are served at the distance s, and are sent at
 * once, the ACKs are s - h, s + h, s - h apart: a pair seems to be served faster than
 * it was, and from the end of one to that of the other it takes 2 s. In a FIFO that
 * others share, which looks the same to one pair, all of these distances are alike.
 * To be called before pp_train_ack() takes the ACK.
 *
 * Return: the service time of a segment, ns in Q10, if that is believed from now on;
 * or 0.
 */
u64 pp_train_gro(struct pp_train *train, u32 stamp_us, u32 now_ns, u32 acked,
		 u32 wanted)
{
	u64 mean, last;

	/* The last ACK of the second one? */
	if (!train->extra || !train->full || acked != 1 ||
	    train->segs + 1 != wanted || stamp_us != train->stamp_us)
		return 0;

	mean = div_u64((u64)(now_ns - train->first_ns) << PP_SERVICE_SHIFT, wanted);
	last = (u64)(now_ns - train->last_ns) << PP_SERVICE_SHIFT;
	if (last >= mean - mean / PP_GRO_LEAST) {
		pp_train_gro_doubt(train);
		return 0;
	}
	if (train->gro_seen < PP_GRO_BELIEVED)
		train->gro_seen++;
	if (train->gro || train->gro_seen < PP_GRO_BELIEVED)
		return 0;
	train->gro = 1;
	return mean;
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
 * pp_train_bunch_count() - take a burst into account
 * @train: ACKs so far
 */
void pp_train_bunch_count(struct pp_train *train)
{
	train->bunch_seen = 1;
	if (train->bunches < PP_BUNCHES_MAX)
		train->bunches++;
}

/**
 * pp_train_bunch_believe() - were there enough bursts to believe in them?
 * @train: ACKs so far
 *
 * Return: true if they are believed from now on.
 */
bool pp_train_bunch_believe(struct pp_train *train)
{
	if (train->bunched || train->bunches < PP_BUNCHES)
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
 * than two trains is a burst, too, and so are two ACKs at the same time: no
 * bottleneck does that. So is an ACK for a segment that was sent before the one of the
 * ACK before it: a queue serves a flow in order, so packets have other delays of their
 * own somewhere on the path, and the time between two ACKs is not that of service. To
 * be called before pp_train_ack() takes the ACK.
 *
 * Return: true if that is believed from now on.
 */
bool pp_train_bunch(struct pp_train *train, u32 stamp_us, u32 now_ns, u32 acked,
		    u32 wanted)
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

/**
 * pp_train_bunch_round() - a round trip is over
 * @train: ACKs so far
 *
 * ACKs no longer come in bursts when as many round trips had none.
 *
 * Return: true if that is so from now on.
 */
bool pp_train_bunch_round(struct pp_train *train)
{
	if (!train->bunch_seen && train->bunches)
		train->bunches--;
	train->bunch_seen = 0;
	if (train->bunches || !train->bunched)
		return false;
	train->bunched = 0;
	/* The next ACK may be of a train whose first one was not noted. */
	train->open = 0;
	return true;
}
