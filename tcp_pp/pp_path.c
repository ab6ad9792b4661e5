// SPDX-License-Identifier: GPL-2.0
/*
 * Detection of the kind of path
 *
 * PP94 assumes a receiver that acknowledges every segment, queues that serve flows in
 * turn, and a propagation delay R that does not change. This file detects paths for which
 * one of these assumptions is wrong, and decides how samples of the service time are used
 * there. The laws stay the same.
 *
 *	the path has	  seen by				      what follows
 *	delayed ACKs	  7 ACKs in a row for two segments or more    trains of four if R is long,
 *								      distances of ACKs
 *	ACKs in bursts	  pp_train_bunch()			      pp_bunch.c
 *	GRO timeouts	  pp_train_gro(), once a round trip looks     the second trains
 *			  like a shared queue			      of two
 *	a shared queue	  4 round trips: packets wait, and less	      pp_share.c
 *			  arrives than 1 / s_hat
 *			  4 round trips: nothing waits, and 8 losses
 *			  or more are over a quarter of what arrives
 *			  (with ACKs in bursts, too: pp_bunch.c)
 *			  8 round trips: nothing waits, less arrives,
 *			  and more could be sent
 *			  2 round trips: nothing waits, they are much
 *			  longer than R, less than half arrives; or one ACK
 *			  8 round trips: nearly nothing is to wait, and is
 *			  marked
 *			  without pairs, as the share becomes less: a
 *			  push, pp_share_doubt()
 *	grown longer	  4 round trips: nothing waits, and all take  a larger R
 *			  much longer than R
 *	full of ours	  16 round trips: more than a 64th is lost    a look at R
 *			  R falls at a peek, each 8 s		      the same
 *
 * Delayed ACKs: a pair has one ACK, so where R holds many packets trains of four segments are
 * sent, which have two. Their distance is a sample as that of a pair is. While packets of ours
 * wait, the bottleneck is never idle, and the ACKs of successive trains tell the service time as
 * well. While none wait, their distance is that at which we send. Then it is used only if it is
 * shorter than the estimate. With pairs there was nothing else: a flow whose link others had
 * left for a moment took all of it for its share, and had n_hat = 0 until as much was
 * outstanding.
 *
 * A shared queue is a FIFO, a hash collision or a policer. There pairs tell the rate of the
 * link, and not our share of it (PP94 section 11). In the third of its rows R is too large: it
 * was measured while others had filled the FIFO.
 *
 * A longer path: R is a minimum, so it stays too small, and n_hat too large. If n_hat falls to 0
 * at times nevertheless, the round-trip times that follow are not near R, and the least of them
 * is the new R. If it never does, packets seem to wait and less arrives than 1 / s_hat, as in a
 * shared queue. To tell the two apart the connection sends less for eight round trips. If the
 * round-trip time falls, packets had waited in a shared queue. If it does not fall, nothing had
 * waited, and its minimum is the new R. In a shared queue that others keep full it does not fall
 * either. There the new R protects the share of the connection, until the queue is seen to be
 * shared again. For this case R is raised at most once in 255 round trips, or again after 64
 * round trips that have shown no shared queue. After an idle time R is measured anew, if the
 * first ACK is that of a single segment.
 *
 * Full of ours: R was measured in a FIFO that others had filled, so R is the round-trip time of
 * the full FIFO. Now this connection alone keeps the FIFO full, because R and the setpoint
 * together are more packets than the FIFO has room for. The rate of arrivals is 1 / s_hat, and
 * seldom more than 1/10 of the packets is lost: in this way one of four flows of pp can occupy
 * 9/10 of a FIFO. Therefore the connection sends nothing for a round trip, and measures R. If
 * losses are random, R does not change, and the next such pause comes after twice as many round
 * trips. In a long FIFO nothing is lost: there a shorter pause, a peek, shows that R is too
 * large.
 */

#include "pp.h"
#include "pp_train.h"

/*
 * ACKs of two segments or more in a row: they are delayed. It is the most that
 * the three bits of merged_acks count. With fewer, some ACKs that were lost look
 * like delayed ones; with more, the connection has no samples for longer.
 */
#define PP_DELAYED_ACKS		7

/*
 * Does the queue still look like one of our own? A round trip that does not
 * counts as 16 (PP_MISFIT_STEP), and as 8 if less arrives though nothing waits, or if packets are
 * marked though hardly any are to wait. It counts as 32 if less
 * than half does, and it is much longer than R: a single round trip looks like that when
 * the way becomes longer in it, two in a row do not. One that says nothing takes one
 * back, and one that does look like a queue of our own takes all back. At 64 (four round
 * trips in a row, or eight, or two) the path is taken for one of another kind.
 *
 * A share that has changed shows in the samples of the next round trip or two,
 * and must not look like another path: with less than four, it may. With more,
 * a connection takes from the others of a shared queue for longer. Eight round
 * trips where nothing waits, as only the connection itself loses by that.
 */
#define PP_MISFIT_LESS		8
#define PP_MISFIT_FALSE		32
#define PP_MISFIT_LIMIT		64

/*
 * Where nothing waits, less arrives, and the setpoint is hardly more than nothing, the queue
 * may be shared if more than this part of what arrives is lost. CoDel drops less, see
 * PP_LOSSY_MAX. Without this one of five flows of a FIFO of 33 packets had up to 3/4 of it
 * in 5 of 18 starts, where R was measured while the others filled it.
 */
#define PP_LESS_LOSSES		32

/*
 * Marks of a queue of our own: if the setpoint is as long as this, CoDel's target, they are no
 * sign of others.
 */
#define PP_MARKED_NS		(5 * NSEC_PER_MSEC)

/*
 * A relapse: for so many round trips after a queue was last taken for a shared one, a
 * single round trip that does not fit is enough, if more than this part of what arrives
 * is lost. In a FIFO of flows of pp each of them watches the path now and then, and then
 * sends at the rate of the link until it sees that the queue is shared. Half of all
 * losses there came from that. If the part were larger, they would stay. If it were
 * smaller, a path with random losses would be taken for a shared queue whenever it
 * changes. Behind a policer, where a rise ends in losses of more than what arrives, and
 * the round trips between two rises lose nothing, one that loses a quarter is enough for
 * as long as the window is remembered: 255 round trips, and until no relapse counts any
 * more. If it were not, half of all that is sent could be lost for good.
 */
#define PP_RELAPSE_ROUNDS	16
#define PP_RELAPSE_LOSSES	16

/*
 * Round trips in a row that deliver less than s_hat promises, by a 16th (what
 * PP_GRO_LEAST believes) and a packet, until two trains are sent at once to see why. A
 * share that has grown does that for two or three. With fewer, such a change makes
 * bursts; with more, s_hat is wrong for longer.
 */
#define PP_SHORT		16
#define PP_SHORT_ROUNDS		4

/*
 * More than this in a queue in which nothing of ours should wait was not there by chance. Two
 * packets count as nothing (PP_QUEUE_LOW), and a pair and the packets of a rise come to it. With
 * fewer, a queue of our own that has just filled looks like another path. With more, a connection
 * with few packets in a round trip does not notice one.
 */
#define PP_UNEXPECTED		(8 * PP_PACKET)

/*
 * What arrives, as a service time; 0 if the ACK does not tell. By the time between ACKs: that of
 * sending is longer while a queue becomes shorter. With that, pairs looked faster than what arrives
 * after each loss in a long queue of our own, and the window did not end.
 */
static u64 pp_path_arrivals(const struct rate_sample *rs)
{
	if (rs->delivered <= 0 || rs->interval_us <= 0)
		return 0;
	return div_u64((u64)min_t(u32, rs->rcv_interval_us, PP_RTT_MAX_US) *
		       NSEC_PER_USEC << PP_SERVICE_SHIFT, rs->delivered);
}

/*
 * A sample of two trains while ACKs are delayed. While nothing waits, their distance is that
 * of sending, and a longer one than s_hat tells nothing. But that nothing waits is said by
 * n_hat = S - R / s_hat, and s_hat may be that of a moment in which other flows paused:
 * then R / s_hat is what the path holds for all of them, and until as much is outstanding
 * n_hat is 0. The round-trip time does not depend on s_hat. If it says that more waits
 * than is there by chance, the distance is that of service. A distance that is too long,
 * after a pause of ours, makes what waits less.
 */
static u64 pp_path_delayed(struct pp *ca, u64 gap)
{
	pp_bunch_watch(ca, gap);
	if (!ca->estimate.service || !pp_is_low(ca) ||
	    gap < ca->estimate.service ||
	    pp_law_wait(ca->rtt_us, ca->delay_us, gap) > PP_UNEXPECTED)
		return gap;
	return 0;
}

/*
 * Do two ACKs of a train, that were not merged, tell about what s_hat is? By a quarter it
 * is wrong where a share has just changed.
 */
static bool pp_path_fits(u64 service, u64 sample)
{
	return sample >= service - service / 4 && sample <= service + service / 4;
}

/*
 * Does the receiver delay its ACKs, or not any more? One of Linux does not while its
 * window grows, now and then at the start. Where something on the path merges ACKs, some
 * are merged and some are not as well. But those were held back, and their distance is not
 * that of service.
 */
static void pp_path_watch_acks(const struct sock *sk, struct pp *ca,
			       u32 acked, u64 sample)
{
	if (ca->delayed) {
		/* Of a train of four two are left if ACKs are delayed. */
		if (!sample || acked > 1) {
			/*
			 * At the start: one ACK for all of a train of four. Later it may be
			 * that an ACK was lost.
			 */
			if (!ca->settled && pp_train_is_four(ca) && acked == pp_train_segs(ca))
				pp_train_bunch_count(&ca->train);
			return;
		}
		if (!pp_path_fits(ca->estimate.service, sample))
			pp_train_bunch_count(&ca->train);
		ca->merged_acks = 0;
		ca->short_rounds = 0;
		ca->delayed = 0;
	} else if (sample) {
		ca->merged_acks = 0;
	} else if (acked > 1 && ++ca->merged_acks >= PP_DELAYED_ACKS) {
		ca->short_rounds = 0;
		ca->merged_acks = 0;
		ca->delayed = 1;
		pp_count(sock_net(sk), PP_COUNT_DELAYED);
	}
}

/**
 * pp_path_is_unpaired() - at the start of a connection: does no pair tell yet?
 * @ca: connection whose receiver delays ACKs
 *
 * No pair has told its service time, and nothing has waited, or was lost. Then s_hat is the
 * distance at which this connection sends, as where the receiver merges pairs. After an idle time
 * @fastest is known, see pp_restart(). Not for the discrete law, which knows nothing of the rise.
 *
 * Return: true if so.
 */
bool pp_path_is_unpaired(const struct pp *ca)
{
	return !ca->settled && ca->fastest == PP_FASTEST_NONE &&
	       !ca->shared && ca->history.since == U8_MAX && !ca->lossy && !ca->tries &&
	       ca->law != PP_LAW_DISCRETE && !pp_train_is_four(ca);
}

/**
 * pp_path_bound() - most that the rate may be while the queue is low
 * @ca: connection
 *
 * Whatever the first pair says: the rule of PP94, a fifth of the way, stays
 * below 64 times what arrived where a path holds 300 times what was sent at
 * first: a fifth of that is 60. No more than four times what arrived is sent after a
 * window: the queue may be a policer, where pairs tell the link before it, and most of the
 * rest would be lost.
 *
 * Where ACKs are delayed, a share that has become smaller is seen only when packets wait,
 * a round trip later. Until then no more than 3/2 of what arrived is sent, and half of
 * what the path holds comes to wait if others had only paused. With twice as much it is
 * all of that; with 5/4 a flow that others have left to itself needs 2.7 s in place of
 * 1.0 s for an eightfold share (100 Mb/s, 40 ms).
 *
 * Return: rate, packets/s in Q16.
 */
u64 pp_path_bound(const struct pp *ca)
{
	u64 arrived = pp_most_arrived(ca);

	if (ca->delayed && ca->settled)
		return arrived + arrived / 2;
	if (!pp_is_bunched(ca) && ca->history.since < PP_RELAPSE_ROUNDS)
		return arrived * 4;
	return arrived * 64;
}

/**
 * pp_path_hold() - 1 / s_hat does not grow by more than an eighth in a round trip
 * @ca: connection that is wary, with an s_hat
 *
 * A token bucket fills while nothing is sent, and lets pairs pass at the rate of the link
 * before it until it is empty. That takes longest if as much is sent as before. So after a
 * pause 1 / s_hat grows slowly for PP_WARY round trips, and the tokens of two R are gone
 * before it is far off. If it grew by more, or for fewer round trips, several R of
 * packets came to wait. If by less, or for more, a share that has grown in the pause is
 * used later. It is s_hat that is held, and not each sample: with only the fast ones cut,
 * the mean of samples that differ would be too large.
 */
void pp_path_hold(struct pp *ca)
{
	/* A sum of bit-fields would have their width. */
	u64 before = ca->epoch_rate, most = before + before / PP_TOLERANCE;

	if (most)
		ca->estimate.service = max(ca->estimate.service, pp_invert(most));
}

/*
 * After so many round trips with sudden samples, they are what the path is like: two kinds of
 * samples come by turns, as where another flow sends at a rate of its own. Then all of them
 * count in full, as s_hat has to be their mean. A look of another flow is seen in two or
 * three. With fewer, these would count; with more, s_hat would be wrong for longer.
 */
#define PP_SUDDEN_ROUNDS	4

/*
 * Such a round trip has a sudden one among the first samples, those of so many segments. All
 * samples would be too many where there are thousands of them: at 1 Gb/s and 150 ms, 4 to 8 of
 * 3000 are off by 7 % by chance, so all counted in full, and when the queues of two flows were
 * empty for a moment, both took the whole link for their share: 30 to 420 packets waited in the
 * mean.
 *
 * With delayed ACKs all samples are looked at, and there must have been time for a peek. There
 * distances of ACKs are taken for bursts if s_hat lags behind, see pp_bunch_watch().
 */
#define PP_SUDDEN_FIRST		16

/**
 * pp_path_sudden() - on a long path, a share that changes for a moment counts little
 * @sk: socket
 * @ca: connection, which has taken the sample
 * @before: s_hat before it
 * @sample: service time, ns in Q10, for which pp_path_is_sudden() is true
 *
 * R / s_hat is what the path holds. Where that is a hundred times the setpoint, a share that
 * is seen as twice what it is makes n_hat zero, and the rate twice what it should be. It
 * takes a moment for that: a flow that looks at R leaves the link to the others for some
 * service times, and their packets, a round trip later, take its share in turn. Each
 * flow's queue was empty at times then, and pairs told the rate of the whole link by
 * turns: two flows at 100 Mb/s and 150 ms filled the queue with up to 517 packets after such
 * a look.
 *
 * Only on long paths: on others a round trip has few samples, and a wrong s_hat few packets.
 * And not soon after the start, an idle time or another R, as s_hat may be far off: then
 * estimate.rounds begins as if samples had been sudden for long.
 *
 * Return: s_hat, ns in Q10.
 */
u64 pp_path_sudden(const struct sock *sk, struct pp *ca, u64 before, u64 sample)
{
	u32 segs, each;

	if (ca->delayed || !ca->settled ||
	    tcp_sk(sk)->delivered - ca->round_start < PP_SUDDEN_FIRST)
		ca->estimate.seen = 1;
	if (!before || !ca->settled || ca->shared || (ca->delayed && !ca->history.peeks) ||
	    ca->estimate.rounds >= PP_SUDDEN_ROUNDS || !pp_is_long(ca, before)) {
		ca->estimate.sudden = 0;
		return ca->estimate.service;
	}
	/* What the path holds, or less where the application or the user sends less. */
	segs = min(tcp_packets_in_flight(tcp_sk(sk)),
		   pp_law_pipe(ca->delay_us, before) >> PP_PACKET_SHIFT);
	/* With delayed ACKs a train has two samples. */
	each = pp_train_sent(ca) >> ca->delayed;
	return pp_estimate_sudden(&ca->estimate, before, sample, max(segs / each, 1U));
}

/* A round trip is over: had it sudden samples? */
static void pp_path_sudden_round(struct pp_estimate *est)
{
	if (!est->seen)
		est->rounds -= !!est->rounds;
	else if (est->rounds < PP_SUDDEN_ROUNDS_MOST)
		est->rounds++;
	est->seen = 0;
}

/*
 * A token bucket that is full lets a pair pass as one: its ACKs tell the link before it. Where
 * nothing waits, a sample of less than a 32nd of the estimate is taken for that (shares do not grow
 * so fast but where 32 flows leave at once), and tells no more than eight times what arrived, four
 * where packets have been waiting.
 */
static noinline u64 pp_path_most(const struct pp *ca, u64 sample)
{
	u64 most = pp_most_arrived(ca) * (ca->settled ? 4 : 8);

	return most ? max(sample, pp_invert(most)) : sample;
}

static u64 pp_path_credible(const struct pp *ca, u64 sample)
{
	if (likely(!pp_is_low(ca) || !sample ||
		   sample >= ca->estimate.service / 32))
		return sample;
	return pp_path_most(ca, sample);
}

/* While the path is watched: round-trip times below this have fallen. */
static u32 pp_path_fallen_us(const struct pp *ca)
{
	u32 before_us = ca->low_us;
	u32 waited_us = before_us - min_t(u32, ca->delay_us, before_us);

	return before_us - waited_us / PP_TOLERANCE;
}

/*
 * The round-trip time of an ACK. The first packet after an idle time finds
 * nothing of ours on the path: its time is R, and what it waits for its queue's
 * turn, which is up to a service time. Not after a stop to see R: there the queue may be
 * that of others, who have filled what this connection has left.
 */
static void pp_path_delay(const struct sock *sk, struct pp *ca,
			  const struct rate_sample *rs)
{
	bool after_idle = ca->after_idle;
	u32 rtt_us, turn_us;

	if (unlikely(after_idle))
		ca->after_idle = 0;
	if (unlikely(rs->rtt_us < 0))
		return;

	rtt_us = rs->rtt_us;
	if (unlikely(rs->rtt_us < 1 || rs->rtt_us > PP_RTT_MAX_US))
		rtt_us = clamp_t(long, rs->rtt_us, 1, PP_RTT_MAX_US);
	ca->rtt_us = rtt_us;
	if (unlikely(!ca->delay_us || rtt_us < ca->delay_us)) {
		pp_delay_set(ca, rtt_us);
	} else if (unlikely(after_idle && !ca->shared && !ca->looking &&
			    rs->acked_sacked == 1)) {
		/* 2^9 ns are about half a us: two service times. */
		turn_us = ca->estimate.service >> (PP_SERVICE_SHIFT + 9);
		if (rtt_us > ca->delay_us + ca->delay_us / PP_TOLERANCE +
			     turn_us) {
			pp_delay_set(ca, rtt_us);
			pp_count(sock_net(sk), PP_COUNT_LONGER);
		}
	}

	if (likely(!ca->watched))
		ca->low_us = min_t(u32, ca->low_us, rtt_us);
	else if (rtt_us < pp_path_fallen_us(ca))
		ca->rtt_fell = 1;
}

/* What a round trip delivers, for the rise: the most of any ACK. */
static void pp_path_flight(struct pp *ca, const struct rate_sample *rs)
{
	u64 flight;

	if (rs->delivered <= 0 || rs->interval_us <= 0)
		return;
	/* Segments below 2^24 and times up to 2^24 us. */
	flight = (u64)rs->delivered * ca->delay_us << PP_PACKET_SHIFT;
	/* Nearly always it is less, which needs no quotient. */
	if (likely(flight <= (u64)ca->flight * (u32)rs->interval_us))
		return;
	flight = div_u64(flight, rs->interval_us);
	ca->flight = max_t(u32, ca->flight, min_t(u64, flight, U32_MAX));
}

/*
 * Is the time of an ACK that of the segment that it delivers? An ACK that was
 * queued on the socket backlog has no valid time. Neither has one whose segment
 * was retransmitted so recently that it acknowledges an earlier transmission.
 */
static bool pp_path_is_timed(const struct sock *sk, const struct pp *ca,
			     const struct rate_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (unlikely(sock_owned_by_user_nocheck(sk))) {
		pp_count(sock_net(sk), PP_COUNT_BACKLOG);
		return false;
	}
	if (unlikely(rs->delivered <= 0))
		return false;
	return likely(!rs->is_retrans) ||
	       tcp_stamp_us_delta(tp->tcp_mstamp, tp->first_tx_mstamp) >=
	       ca->delay_us - ca->delay_us / PP_TOLERANCE;
}

/*
 * Does the receiver's GRO make pairs look faster than what arrives? Then the queue
 * need not be shared, and s_hat by pairs was wrong.
 */
static void pp_path_gro(const struct sock *sk, struct pp *ca, u32 acked)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 service;

	/* What is sent again has no PSH. */
	if (ca->shared || tp->lost_out || tp->retrans_out)
		return;
	service = pp_train_gro(&ca->train, tp->first_tx_mstamp,
			       tp->tcp_clock_cache, acked,
			       READ_ONCE(ca->net->train));
	if (likely(!service))
		return;
	ca->estimate.service = clamp_t(u64, service, PP_SERVICE_MIN,
				       PP_SERVICE_MAX);
	ca->epoch_rate = pp_invert(ca->estimate.service);
	/* In a FIFO others may keep in step with this flow: then it is not all. */
	ca->misfits /= 2;
	pp_count(sock_net(sk), PP_COUNT_GRO);
}

/* A sample where ACKs are held back or the queue is shared, or may be. */
static noinline u64 pp_path_sample_slow(const struct sock *sk, struct pp *ca,
					const struct rate_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 acked = rs->acked_sacked;
	u64 gap, sample;

	if (unlikely(ca->train.extra)) {
		pp_path_gro(sk, ca, acked);
		/* One for a train: if not by loss, a receiver merges some of them. */
		if (!ca->train.gro && acked == READ_ONCE(ca->net->train))
			pp_train_bunch_count(&ca->train);
	}
	gap = pp_train_gap(&ca->train, tp->tcp_clock_cache, acked);
	sample = pp_train_ack(&ca->train, tp->first_tx_mstamp,
			      tp->tcp_clock_cache, acked,
			      READ_ONCE(ca->net->train));
	pp_path_watch_acks(sk, ca, acked, sample);
	if (!sample && ca->delayed)
		sample = pp_path_delayed(ca, gap);

	if (sample)
		ca->paired = 1;
	if (!ca->shared)
		return pp_path_credible(ca, sample);

	/*
	 * Others have a quarter of the link, or more. An eighth less may be jitter
	 * (PP_TOLERANCE), and as much in s_hat, which is what arrives.
	 */
	if (sample && sample < ca->estimate.service - ca->estimate.service / 4)
		ca->pairs_faster = 1;
	return pp_path_arrivals(rs);
}

/*
 * Does n_hat say that nothing waits while a packet waited for three times R, and
 * less than a quarter arrives of what s_hat promises, though there is more to send?
 * A round trip may be too long to wait for its end.
 *
 * Both are the same statement. In a round trip of 4 R, 4 R / s packets are outstanding,
 * s the service time of what arrives. That n_hat is 0 says that they are no more than
 * R / s_hat: so s_hat is below s / 4. At the end of a round trip a half is enough, see
 * pp_path_verdict_longer(); here a single ACK decides.
 */
static bool pp_path_is_false(const struct sock *sk, const struct pp *ca,
			     const struct rate_sample *rs)
{
	u64 arrivals;

	if (likely(!pp_is_low(ca) || ca->rtt_us / 4 <= ca->delay_us))
		return false;
	if (ca->shared || pp_is_bunched(ca) || !ca->estimate.service)
		return false;
	arrivals = pp_path_arrivals(rs);
	return ca->estimate.service < arrivals / 4 &&
	       pp_law_wait(ca->rtt_us, ca->delay_us, arrivals) >
		       PP_UNEXPECTED &&
	       pp_pace_has_more(sk, ca);
}

/*
 * Do ACKs come in bursts? A stop parts what is sent, and not what waits, so what
 * left before it and after it says nothing. What pp_bunch_watch() has counted does:
 * a false s_hat makes a flow stop again and again.
 */
static bool pp_path_is_bunched(struct sock *sk, struct pp *ca,
			       const struct rate_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	bool begins;

	/* This window does not end by pairs, so that it does not matter whether they are true. */
	if (unlikely(ca->shared && ca->window.known & PP_PUSHED))
		return false;
	if (unlikely(pp_path_is_false(sk, ca, rs) ||
		     (ca->misfits >= PP_MISFIT_STEP && pp_share_is_flooded(sk, ca))))
		pp_share_begin(sk, ca, false, false);
	if (!pp_is_discrete(ca) && !pp_is_bunched(ca) &&
	    (u32)tp->tcp_mstamp - ca->stop_us <= 2 * ca->rtt_us)
		begins = pp_train_bunch_believe(&ca->train);
	else
		begins = pp_train_bunch(&ca->train, tp->first_tx_mstamp,
					tp->tcp_clock_cache, rs->acked_sacked,
					READ_ONCE(ca->net->train));
	if (unlikely(begins))
		pp_bunch_begin(sk, ca);
	return pp_is_bunched(ca);
}

/* The service time that an ACK tells whose time is true, or 0. */
static u64 pp_path_sample(struct sock *sk, struct pp *ca,
			  const struct rate_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 sample;

	if (unlikely(pp_path_is_bunched(sk, ca, rs)))
		return pp_bunch_ack(sk, ca, rs);
	if (unlikely(rs->acked_sacked > 1 || ca->delayed || ca->shared ||
		     ca->train.extra))
		return pp_path_sample_slow(sk, ca, rs);

	sample = pp_train_ack(&ca->train, tp->first_tx_mstamp,
			      tp->tcp_clock_cache, 1,
			      READ_ONCE(ca->net->train));
	if (!sample)
		return 0;
	/* Nearly always both are: what comes next would wait until they are written. */
	if (unlikely(ca->merged_acks))
		ca->merged_acks = 0;
	if (unlikely(!ca->paired))
		ca->paired = 1;
	return pp_path_credible(ca, sample);
}

/**
 * pp_path_ack() - what an ACK tells of whatever path
 * @sk: socket
 * @ca: connection
 * @rs: rate sample of the stack; something was delivered
 *
 * Return: a sample of the service time, ns in Q10, or 0.
 */
u64 pp_path_ack(struct sock *sk, struct pp *ca, const struct rate_sample *rs)
{
	/* By the propagation delay that was known when it was sent. */
	bool timed = pp_path_is_timed(sk, ca, rs);

	pp_path_delay(sk, ca, rs);
	pp_path_flight(ca, rs);
	if (likely(timed))
		return pp_path_sample(sk, ca, rs);
	pp_train_break(&ca->train);
	return 0;
}

/* What a round trip says of a queue of our own. */
enum pp_verdict {
	PP_VERDICT_NONE,	/* nothing */
	PP_VERDICT_OWN,		/* it is there, and R is right */
	PP_VERDICT_SHARED,	/* less arrives than it would serve */
	PP_VERDICT_LOSSY,	/* nothing waits, and much is lost */
	PP_VERDICT_MARKED,	/* nearly nothing is to wait, and is marked */
	PP_VERDICT_LESS,	/* nothing waits, and less arrives, too */
	PP_VERDICT_LONGER,	/* it was empty, and round trips take longer */
	PP_VERDICT_FALSE,	/* the same, and far less arrives than it would serve */
};

/*
 * A round trip takes longer though n_hat says that nothing waits. As long as what
 * arrives is what s_hat promises, the way is longer. If it is not, R stays: a
 * connection that has little to send does without. But one that has more to send,
 * and sees less than half arrive of what was promised, waits in a queue of its own,
 * and s_hat is false.
 */
static enum pp_verdict pp_path_verdict_longer(const struct sock *sk, const struct pp *ca,
					      u32 busy_us, u32 took_us)
{
	if (busy_us >= took_us - took_us / PP_TOLERANCE)
		return PP_VERDICT_LONGER;
	if (busy_us < took_us / 2 &&
	    pp_pace_has_more(sk, ca))
		return PP_VERDICT_FALSE;
	return PP_VERDICT_NONE;
}

/* Is the setpoint hardly more than what counts as nothing? */
static bool pp_path_is_least(const struct pp *ca)
{
	return ca->setpoint <= PP_QUEUE_LOW + PP_PACKET;
}

/*
 * Does less arrive than s_hat promises, and more could be sent, though nothing waits?
 * The rise would have ended that, but for that of the discrete law, which takes a step
 * in a round trip and with a low pole never fills the path. In a FIFO that others fill
 * it cannot, where R was measured with their packets in it. A setpoint that is hardly
 * more than nothing does not tell: below CoDel many flows have that, and find shares
 * that change all the time. So then much must be lost, too (PP_LESS_LOSSES). Nor does a
 * rise tell after a window of two packets, which takes more than eight round trips, if
 * nothing is lost in it.
 */
static bool pp_path_is_less(const struct sock *sk, const struct pp *ca,
			    u64 busy_us, u32 took_us)
{
	u32 arrived = tcp_sk(sk)->delivered - ca->round_start;

	/* Then what is lost may be lost by chance, and would have been served. */
	if (pp_path_is_least(ca)) {
		if (!pp_has_lost(ca, arrived / PP_LESS_LOSSES))
			return false;
		busy_us += div_u64(mul_u64_u32_shr(ca->estimate.service, ca->losses,
						   PP_SERVICE_SHIFT), NSEC_PER_USEC);
	}
	return !pp_is_discrete(ca) && ca->empty && ca->was_empty &&
	       (ca->losses || ca->history.since >= PP_RELAPSE_ROUNDS) &&
	       busy_us < took_us - took_us / PP_TOLERANCE && pp_pace_has_segment(sk) &&
	       tcp_sk(sk)->chrono_type == TCP_CHRONO_BUSY &&
	       sk->sk_pacing_rate < READ_ONCE(sk->sk_max_pacing_rate) &&
	       !pp_pace_is_stopped(sk, ca) && !pp_pace_holds_window(ca);
}

/* The round-trip time behind so many packets, with what it may be wrong by. */
static u64 pp_path_most_us(const struct pp *ca, u32 queue)
{
	return div_u64(pp_law_rtt_ns(queue, ca->delay_us, ca->estimate.service),
		       NSEC_PER_USEC) + ca->delay_us / PP_TOLERANCE;
}

/*
 * Nothing waited a round trip ago, and round-trip times are not unexpected. Where few packets fit
 * into R, PP_UNEXPECTED are more than a whole R, and would hide a way that is twice as long. So
 * times that only these packets explain prove nothing when less arrives than s_hat promises. Nor
 * does any time with the least setpoint, if more could be sent: in a FIFO that others fill, one
 * round trip in three has no losses. When it proved that the queue was our own, a flow kept 3/4 of
 * a FIFO of 33 packets in 3 of 240 starts beside four of cubic, for 17 s or for good. (It still did
 * in one of 240 where only a setpoint counted that losses have reduced, by @lossy and @tries.)
 */
static enum pp_verdict pp_path_verdict_near(const struct sock *sk,
					    const struct pp *ca,
					    u64 busy_us, u32 took_us)
{
	if (pp_path_is_less(sk, ca, busy_us, took_us))
		return PP_VERDICT_LESS;
	if (busy_us < took_us - took_us / PP_TOLERANCE &&
	    (ca->low_us > pp_path_most_us(ca, PP_QUEUE_LOW) ||
	     (pp_path_is_least(ca) && pp_pace_has_more(sk, ca))))
		return PP_VERDICT_NONE;
	return PP_VERDICT_OWN;
}

/*
 * Does the application, or the user's limit, let go less than was lost? Then the losses
 * are those of the past. A policer goes on to take its part of what is sent.
 */
static bool pp_path_has_repairs_only(const struct sock *sk, const struct pp *ca)
{
	return tcp_packets_in_flight(tcp_sk(sk)) <= ca->losses &&
	       (!pp_pace_has_segment(sk) ||
		sk->sk_pacing_rate >= READ_ONCE(sk->sk_max_pacing_rate));
}

static enum pp_verdict pp_path_verdict(const struct sock *sk,
				       const struct pp *ca)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 took_us = (u32)tp->tcp_mstamp - ca->round_us;
	u32 arrived = tp->delivered - ca->round_start;
	u64 service = ca->estimate.service;
	u64 busy_us;

	/*
	 * With the least setpoint a queue of our own is marked now and then, if at all. In one
	 * that others fill the law goes on, and they give way: of sbrm, cubic had 0.03 of an
	 * equal share.
	 */
	if (pp_path_is_least(ca) && pp_is_marked(sk) &&
	    mul_u64_u32_shr(service, ca->setpoint, PP_SERVICE_SHIFT + PP_PACKET_SHIFT) <
		    PP_MARKED_NS)
		return PP_VERDICT_MARKED;
	/* Segments are below 2^24, service times below 2^42. */
	busy_us = div_u64(mul_u64_u32_shr(service, arrived, PP_SERVICE_SHIFT),
			  NSEC_PER_USEC);
	if (ca->empty && ca->losses >= PP_LOSSES &&
	    pp_has_lost(ca, arrived / 4) && !pp_path_has_repairs_only(sk, ca))
		return PP_VERDICT_LOSSY;

	/* What was low a round trip ago shows in the times of this one. */
	if (ca->was_empty && ca->low_us != PP_LOW_NONE) {
		if (ca->low_us <= pp_path_most_us(ca, PP_UNEXPECTED))
			return pp_path_verdict_near(sk, ca, busy_us, took_us);
		return pp_path_verdict_longer(sk, ca, min_t(u64, busy_us, U32_MAX), took_us);
	}
	if (ca->empty)
		return PP_VERDICT_NONE;

	/*
	 * While packets wait, as many arrive as are served, by the longer of the
	 * service times then and now.
	 */
	if (ca->epoch_rate) {
		service = max(service, pp_invert(ca->epoch_rate));
		busy_us = div_u64(mul_u64_u32_shr(service, arrived, PP_SERVICE_SHIFT),
				  NSEC_PER_USEC);
	}
	return busy_us < took_us - took_us / PP_TOLERANCE ? PP_VERDICT_SHARED :
							    PP_VERDICT_NONE;
}

/*
 * The queue was taken for a shared one until just now, and much is lost? Or not long ago,
 * and a quarter is lost though nothing waits?
 */
static bool pp_path_is_relapse(const struct sock *sk, const struct pp *ca,
			       enum pp_verdict verdict)
{
	u32 arrived = tcp_sk(sk)->delivered - ca->round_start;

	return (ca->history.since < PP_RELAPSE_ROUNDS &&
		pp_has_lost(ca, arrived / PP_RELAPSE_LOSSES)) ||
	       (ca->history.since < U8_MAX && verdict == PP_VERDICT_LOSSY);
}

/* A round trip that does not fit a queue of our own. */
static void pp_path_misfit(struct sock *sk, struct pp *ca,
			   enum pp_verdict verdict)
{
	bool watch = verdict != PP_VERDICT_LOSSY && verdict != PP_VERDICT_MARKED &&
		     verdict != PP_VERDICT_FALSE;

	if (verdict == PP_VERDICT_FALSE)
		ca->misfits += PP_MISFIT_FALSE;
	else if (verdict == PP_VERDICT_LESS || verdict == PP_VERDICT_MARKED)
		ca->misfits += PP_MISFIT_LESS;
	else
		ca->misfits += PP_MISFIT_STEP;
	if (pp_path_is_relapse(sk, ca, verdict))
		ca->misfits = PP_MISFIT_LIMIT;
	if (ca->misfits < PP_MISFIT_LIMIT)
		return;
	/* The receiver may be the reason: enough trains tell, but not of losses. */
	if (verdict == PP_VERDICT_SHARED && ca->train.extra &&
	    !ca->train.gro && ca->train.gro_seen && !ca->losses &&
	    !tcp_sk(sk)->retrans_out) {
		ca->misfits = PP_MISFIT_LIMIT;
		return;
	}
	ca->misfits = 0;
	/* A longer way loses nothing: nothing to watch for. */
	if (verdict != PP_VERDICT_LONGER || !pp_delay_raise(sk, ca))
		pp_share_begin(sk, ca, watch, false);
}

/* What a round trip says of a queue that is taken for our own. */
static void pp_path_judge(struct sock *sk, struct pp *ca)
{
	enum pp_verdict verdict = pp_path_verdict(sk, ca);

	/* n_hat leaves out what is lost. With losses "little waits" is no proof. */
	if (verdict == PP_VERDICT_OWN && !ca->losses) {
		ca->misfits = 0;
		ca->full = 0;
		return;
	}
	if (verdict > PP_VERDICT_OWN) {
		pp_path_misfit(sk, ca, verdict);
		return;
	}
	if (ca->misfits)
		ca->misfits--;
	pp_delay_full(sk, ca);
}

/*
 * A round trip in a queue that is taken for our own. A stop makes less arrive, so one that
 * began with it tells R, and nothing else.
 */
static void pp_path_own(struct sock *sk, struct pp *ca, bool looked)
{
	if (!looked)
		pp_path_judge(sk, ca);
	if (ca->shared)
		return;
	if (ca->full < PP_FULL_LIMIT) {
		if (!looked)
			pp_delay_peek(sk, ca);
	} else {
		pp_delay_look_full(sk, ca);
	}
}

/*
 * Has less arrived than s_hat promises, while packets waited, by more than a packet and
 * a part PP_SHORT? In a queue of our own the law then keeps about so many too many.
 */
static bool pp_path_is_short(const struct sock *sk, const struct pp *ca)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 took_us = (u32)tp->tcp_mstamp - ca->round_us;
	u32 arrived = tp->delivered - ca->round_start + 1;
	u64 busy_us = div_u64(mul_u64_u32_shr(ca->estimate.service, arrived,
					      PP_SERVICE_SHIFT), NSEC_PER_USEC);

	return !ca->empty && !ca->was_empty &&
	       busy_us < took_us - took_us / PP_SHORT;
}

/* Can two trains leave at once, and would that tell something? */
static bool pp_path_can_try(const struct sock *sk, const struct pp *ca)
{
	return ca->estimate.service && !pp_is_bunched(ca) && !ca->delayed &&
	       !ca->shared && pp_pace_is_ours(sk);
}

/*
 * Is it time to look whether the receiver makes pairs look faster? Counts the round
 * trips for that.
 */
static bool pp_path_wants_extra(const struct sock *sk, struct pp *ca)
{
	bool waits = !ca->empty && !ca->was_empty;

	if (!pp_path_can_try(sk, ca))
		return false;
	if (ca->train.gro || (waits && ca->misfits >= PP_MISFIT_STEP))
		return true;
	/* While the counter is above 0, misfits are held. */
	if (ca->train.extra)
		return ca->train.gro_seen || pp_path_is_short(sk, ca);
	if (!pp_path_is_short(sk, ca)) {
		ca->short_rounds = 0;
		return false;
	}
	/* Two bits: once there are enough, pp_path_try() clears them. */
	if (ca->short_rounds + 1 >= PP_SHORT_ROUNDS)
		return true;
	ca->short_rounds++;
	return false;
}

/*
 * Where pairs and what arrives do not fit, two trains at once tell whether the
 * receiver is the reason.
 */
static void pp_path_try(const struct sock *sk, struct pp *ca)
{
	bool extra = pp_path_wants_extra(sk, ca);

	/* No second train in a round trip: that cannot go on. */
	if (ca->train.gro && !ca->paired && !ca->empty)
		pp_train_gro_doubt(&ca->train);
	if (likely(ca->train.extra == extra)) {
		/* Without pairs it counts pushes. */
		if (!extra && !pp_path_can_try(sk, ca) && (ca->shared || !pp_is_blind(ca)))
			ca->short_rounds = 0;
		return;
	}
	ca->short_rounds = 0;
	ca->train.extra = extra;
	ca->train.gro = 0;
	ca->train.gro_seen = 0;
	ca->train.part = 0;
	pp_train_break(&ca->train);
}

/**
 * pp_path_round() - a round trip is over: what did it look like?
 * @sk: socket
 * @ca: connection
 * @mean: with bursts of ACKs: mean service time in it, ns in Q10
 */
void pp_path_round(struct sock *sk, struct pp *ca, u64 mean)
{
	bool looked = ca->looking;

	ca->looking = 0;
	if (!looked && ca->wary)
		ca->wary--;
	if (ca->hold)
		ca->hold--;
	if (!pp_is_bunched(ca) && !ca->shared)
		pp_share_forget(ca);
	pp_path_sudden_round(&ca->estimate);

	if (pp_is_bunched(ca)) {
		if (pp_bunch_round(sk, ca, mean))
			pp_share_found(sk, ca, false);
	} else if (ca->shared) {
		pp_share_round(sk, ca, looked);
	} else if (ca->estimate.service) {
		pp_path_own(sk, ca, looked);
	}
	if (!ca->shared && ca->estimate.service)
		pp_share_doubt(sk, ca, mean);

	/* While the connection is watched, the one before is the measure. */
	if (!ca->watched)
		ca->low_us = PP_LOW_NONE;
	pp_path_try(sk, ca);
	ca->was_empty = ca->empty;
	ca->empty = 0;
	ca->paired = 0;
	ca->pairs_faster = 0;
	ca->losses = 0;
	if (!pp_is_bunched(ca) || ca->unmarked) {
		ca->round_start = tcp_sk(sk)->delivered;
		ca->round_us = tcp_sk(sk)->tcp_mstamp;
	}
	if (pp_train_bunch_round(&ca->train))
		pp_bunch_end(ca);
}
