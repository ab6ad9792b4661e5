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

#include "pp_train.h"

/**
 * pp_train_break() - what comes next does not belong to what came
 * @train: ACKs so far
 */
void pp_train_break(struct pp_train *train)
{
	train->open = 0;
	train->segs = 0;
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
