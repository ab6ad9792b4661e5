// SPDX-License-Identifier: GPL-2.0
/*
 * Is a loss congestion? (CP05 5.7)
 *
 * Where the bottleneck has a price, a loss is not one more of them: a radio link
 * loses packets, too. But a bottleneck without a price has nothing but losses to
 * say that it is full, and both look the same to a sender. So it asks for a
 * proof, and bounds what it does harm with where the proof is wrong.
 *
 * Proof: for each ACK, price times segments less half of w times the time; this
 * is positive while the price explains at least half of the rate. It is kept
 * between 0 and 256 marks, and so is forgotten when marks cease: at w = 100 within
 * five seconds, or, if that is longer, in the time in which the window climbs by
 * its own size. A smaller window has no reason to see a price.
 *
 * Bound: one loss in 64 segments is tolerated in the long run. Some more than
 * that are congestion, whatever the proof says, which is then void; and much more
 * of it is asked for from then on.
 *
 * In slow start nothing can have been proven, nor in the second after it, where it
 * ended as packets began to wait. There, a few losses are spared: a queue that
 * overflows loses every second packet, which does not take long.
 */

#include "sbrm.h"

/*
 * So many marks are proof enough. If another queue of the path marks for a
 * quarter of the rate, and the bottleneck has no price, marks at random are
 * eight ahead of half of w with odds of e^-10: e^-8x for the x with
 * (e^x - 1) / 4 = x / 2, 1.26. With fewer it happens; with more, a flow that
 * has a price needs more marks before it spares a loss.
 */
#define SBRM_PROOF_ENOUGH	(8 << SBRM_PROOF_SHIFT)

/*
 * One loss in 2^6 segments is tolerated, and so many more.
 *
 * One in 64 is 1.6 %: a flow behind a queue with a price has 0.98 of a link
 * that loses 1 % at random, and had 0.04 to 0.25 when each loss halved its
 * window. With more, a flow whose proof is wrong takes more from the others of
 * its queue.
 *
 * 32 more, as losses come in bursts: with fewer, a burst on a radio link voids
 * the proof; with more, a wrong proof does harm for longer. In slow start it is
 * 8: a queue that overflows loses every second packet, so that 16 segments show
 * it.
 *
 * What is above 64 is forgotten. From there 2048 segments without a loss lead
 * back to 32. With more, a flow pays for longer for a time of many losses.
 */
#define SBRM_LOST_SHIFT		6
#define SBRM_LOST_CONGESTED	(32 << SBRM_LOST_SHIFT)
#define SBRM_LOST_UNPROVEN	(8 << SBRM_LOST_SHIFT)
#define SBRM_LOST_MAX		(64 << SBRM_LOST_SHIFT)

/* Has a price come, and is it known how it comes back? */
static bool sbrm_has_price(const struct sbrm *ca)
{
	return ca->priced && ca->echo != SBRM_ECHO_UNKNOWN;
}

static bool sbrm_is_proven(const struct sbrm *ca)
{
	return ca->proof >= SBRM_PROOF_ENOUGH && !ca->wary &&
	       sbrm_has_price(ca);
}

/* In slow start, or until the first mark is due: see sbrm_loss_queued(). */
static bool sbrm_is_new(const struct sbrm *ca)
{
	return ca->slow_start ||
	       (!sbrm_has_price(ca) && ca->proof >= SBRM_PROOF_ENOUGH);
}

/* Are there more losses than may be spared? */
static bool sbrm_is_lossy(const struct sbrm *ca)
{
	if (sbrm_is_new(ca) && !sbrm_is_proven(ca))
		return ca->lost > SBRM_LOST_UNPROVEN;
	return ca->lost > SBRM_LOST_CONGESTED;
}

/**
 * sbrm_spares_loss() - shall a loss that was just found leave the window alone?
 * @ca: connection
 *
 * Return: true if so.
 */
bool sbrm_spares_loss(const struct sbrm *ca)
{
	if (sbrm_is_rm(ca))
		return false;

	switch (READ_ONCE(ca->net->loss_cut)) {
	case SBRM_LOSS_CUT_NEVER:
		return ca->echo != SBRM_ECHO_UNKNOWN;
	case SBRM_LOSS_CUT_UNPROVEN:
		return (sbrm_is_new(ca) || sbrm_is_proven(ca)) &&
		       !sbrm_is_lossy(ca);
	default:
		return false;
	}
}

/* Out of the way of sbrm_forgotten(). */
s64 sbrm_forgotten_part(s64 short_of, u64 climb, u64 cwnd)
{
	return fixp_mul_div(short_of, climb, cwnd);
}

/**
 * sbrm_loss_count() - take lost segments into account, or forget them
 * @ca: connection
 * @ack: what the ACK brought
 *
 * Return: true if the losses are congestion, in spite of the proof.
 */
bool sbrm_loss_count(struct sbrm *ca, const struct sbrm_ack *ack)
{
	s64 lost = (s64)ca->lost + ((u64)ack->lost << SBRM_LOST_SHIFT) -
		   ack->acked;

	ca->lost = clamp_t(s64, lost, 0, SBRM_LOST_MAX);
	if (likely(!sbrm_is_lossy(ca)) ||
	    READ_ONCE(ca->net->loss_cut) != SBRM_LOSS_CUT_UNPROVEN)
		return false;

	ca->proof = 0;
	ca->wary = 1;
	return true;
}

/**
 * sbrm_loss_priced() - a price ends slow start
 * @ca: connection
 *
 * The bottleneck has a price then, as it comes before the first loss that would
 * be congestion. But the window is halved then and the marks cease, while it
 * climbs by kappa w a second: they have all the time that a proof lasts to prove
 * it.
 */
void sbrm_loss_priced(struct sbrm *ca)
{
	if (!ca->wary)
		ca->proof = SBRM_PROOF_MAX;
}

/**
 * sbrm_loss_queued() - packets wait, and no price has come yet
 * @sk: socket
 * @ca: its private area; slow start ends for that
 *
 * The price of such a queue comes within some round trips. Until then a loss that
 * is noise would take the window that keeps the queue there, and the price would
 * never come. One second is enough.
 */
void sbrm_loss_queued(const struct sock *sk, struct sbrm *ca)
{
	/* From Q32 to Q7, and half of it: that is what no price takes, above. */
	u64 second = sbrm_paid(sbrm_wtp(sk, ca), USEC_PER_SEC, 0) >>
		     (FIXP_SHIFT - SBRM_PROOF_SHIFT + 1);

	if (!ca->wary)
		ca->proof = max_t(u64, ca->proof,
				  min_t(u64, SBRM_PROOF_ENOUGH + second,
					SBRM_PROOF_MAX));
}
