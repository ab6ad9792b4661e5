// SPDX-License-Identifier: GPL-2.0
/*
 * Packet pair: rate control for networks of round-robin queues (PP94)
 *
 * Where each flow has a queue of its own and queues are served in turn, two
 * packets that arrive back to back leave the bottleneck one round of service
 * apart. So all data is sent as pairs, and the distance of the two ACKs of a
 * pair is the service time s of the bottleneck for this flow: its share of the
 * link, measured and not searched for.
 *
 *	s_hat = a s_hat + (1 - a) s		pp_estimator.c
 *	n_hat = S - R / s_hat			packets that wait there
 *	rate  = (B - n_hat) / J + 1 / s_hat	pp_law.c
 *
 * S is what is outstanding, R the propagation delay, B the setpoint: the number
 * of packets that shall wait, so that the share is used whenever it grows.
 *
 *	   first pair of ACKs		n_hat > 2
 *	 +-------+	 +--------+ ----------> +---------+
 *	 | start | ----> | rising |		| the law |
 *	 +-------+	 +--------+ <---------- +---------+
 *			      ^	    n_hat <= 2	     |
 *			      +----------------------+
 *				idle, or a timeout
 *
 * Sources: S. Keshav, Packet-Pair Flow Control, 1994 (PP94). ppx is the
 * uncontrolled source of S. Morgan, S. Keshav, Packet-Pair Rate Control, 1994
 * (MK94): the same pairs and the same repair of losses at no rate at all, for
 * experiments.
 *
 * Notable differences from the paper:
 * - a pair is one packet of two segments, which share their time of
 *   transmission: by it ACKs are known as those of a pair, pp_train.c; so are
 *   two packets that left at almost the same time;
 * - the soft timeout (the first hole again after two round trips without
 *   progress) and the single timer of 1.5 round trips became what Linux has:
 *   SACK and RACK find each lost segment and lost retransmissions, TLP asks
 *   after a quiet time, the retransmission timer with its backoff comes last;
 * - what is sent again is paced like anything else, by twos of whatever is next,
 *   and their ACKs are samples (pp_pace.c); S leaves out what is known to be
 *   lost, as PP94 section 6 wants it;
 * - above the setpoint half of what is served is sent, and not nothing until the
 *   queue has drained, see pp_law_drain(); far above it the continuous law sends
 *   nothing while what waits for certain drains, see pp_law_stop();
 * - while next to nothing waits, the law also comes with every second pair whose
 *   ACKs were no sample;
 * - after a timeout or an idle time the mean rate is forgotten and the rate
 *   rises again; PP94 keeps it;
 * - where no pair tells at the start, the rate grows as fast as what arrives, see
 *   pp_path_is_unpaired();
 * - while next to nothing waits, a pair that seems to come from a full token
 *   bucket is not believed, see pp_path_credible(); after a pause s_hat becomes
 *   smaller slowly, see pp_path_hold();
 * - n_hat takes the mean of S over a train: at the second ACK of a pair, when
 *   PP94 reads it, it is at its least;
 * - single packets leave at once, or when Nagle lets them, and are no samples:
 *   no timer of 100 ms;
 * - before the first sample, the first ten segments of a connection are not paced;
 * - delayed ACKs, shared queues and longer paths are noticed, pp_path.c.
 *
 * Pair it with a queue that serves flows in turn: sch_fq_rr, fq_codel, sfq. Hosts need
 * no settings; only the experiments of PP94 have receivers that acknowledge every
 * segment (ip route ... quickack 1).
 */

#include <linux/inet_diag.h>
#include <linux/module.h>
#include <net/tcp.h>

#include "pp.h"
#include "tollway_release.h"

/*
 * S for n_hat. When an ACK comes that brings a sample, a whole train has just
 * left, and S is the least it is until the next one is acknowledged: its mean is
 * half a train more. (If ACKs are delayed, the first of the two of a train may bring
 * one as well: then this is two packets too much.)
 */
static u32 pp_outstanding_mean(const struct pp *ca, u32 flight)
{
	u32 train = pp_train_sent(ca);
	u32 now = min(flight, PP_PACKETS_MAX) << PP_PACKET_SHIFT;

	return now + min(now, train * PP_PACKET / 2);
}

/* Is the queue longer than a lower rate can bring it down? */
static void pp_stop(struct sock *sk, struct pp *ca)
{
	u32 wait_us;

	/* Nearly always, and pp_law_stop() would say the same. */
	if (likely(ca->queue / 2 <= ca->setpoint))
		return;
	/*
	 * The discrete law asks for all that is too much in one round trip as it
	 * is. n_hat counts what was lost; in a shared queue others would fill it.
	 */
	if (pp_is_discrete(ca) || ca->losses || ca->shared || pp_is_bunched(ca) ||
	    ca->push || pp_pace_is_stopped(sk, ca))
		return;
	wait_us = pp_law_stop(ca->setpoint, ca->queue, ca->delay_us, ca->rtt_us,
			      ca->estimate.service);
	if (wait_us)
		pp_pace_stop(sk, ca, wait_us);
}

/*
 * Where ACKs come in bursts: has the share become less by a quarter since a push began? What it
 * asks has an answer then, and with the packets of the push a round trip takes longer and longer:
 * when ten flows began in both ways, one sent 3/2 of what had been its share for 200 ms. Its
 * end is that of a push in vain: if there were none, the next one would begin at once.
 */
static bool pp_push_is_late(const struct pp *ca, u64 service)
{
	return pp_is_bunched(ca) &&
	       pp_invert(service) < ca->epoch_rate - ca->epoch_rate / 4;
}

/**
 * pp_control() - the rate for a target of the law
 * @sk: socket
 * @ca: its private area
 * @target: what the law says
 * @service: s_hat
 * @app_limited: the flow has not sent what it might
 */
static __always_inline void pp_control(struct sock *sk, struct pp *ca, u64 target,
				       u64 service, bool app_limited)
{
	/* Worked out only where it counts. */
	u64 bound = unlikely(pp_is_low(ca)) && target > ca->mean_rate ?
		    pp_path_bound(ca) : U64_MAX;
	u64 rate = pp_law_rise(target, ca->mean_rate, ca->queue, bound);

	if (unlikely(pp_is_bunched(ca) && pp_is_low(ca) &&
		     ca->queue <= ca->setpoint / 2 && !pp_bunch_has_peeked(ca))) {
		rate = pp_law_probe(ca->estimate.service, ca->settled, pp_bunch_shift(ca));
		target = rate + 1;
	} else if (pp_is_unpaired(ca) && pp_is_low(ca)) {
		rate = max(rate, pp_law_probe(ca->estimate.service, false, 0));
		target = rate + 1;
	}
	ca->rising = rate < target;
	/* What was not sent is no part of the mean. */
	if (!app_limited || rate < ca->mean_rate)
		ca->mean_rate = pp_law_mean(ca->mean_rate, rate);

	if (unlikely(ca->push == PP_PUSH_SEND && pp_push_is_late(ca, service)))
		ca->push = PP_PUSH_WAIT;
	if (unlikely(ca->push == PP_PUSH_SEND)) {
		/* A sum of bit-fields would have their width. */
		target = ca->epoch_rate;
		target = max(target + (target >> pp_push_shift(ca)), rate);
		target = min(target, PP_RATE_MAX);
		ca->draining = 0;
	} else {
		target = pp_law_drain(rate, ca->setpoint, ca->queue, ca->delay_us,
				      service);
		ca->draining = target > rate;
		pp_stop(sk, ca);
	}
	/* The laws do not go beyond it, but the mean may have begun there. */
	if (unlikely(ca->rising))
		target = min(target, PP_RATE_MAX);
	pp_pace(sk, target);
}

static bool pp_is_app_limited(const struct sock *sk,
			      const struct rate_sample *rs)
{
	/* The first flight always seems to be. */
	return rs->is_app_limited && !pp_pace_has_segment(sk);
}

/*
 * The delay of the loop. Where ACKs come in bursts n_hat is that of a round trip
 * and a slot ago.
 */
static u32 pp_law_delay(const struct pp *ca)
{
	return pp_is_bunched(ca) ? min(2 * pp_delay_slot(ca), PP_RTT_MAX_US) :
				   ca->delay_us;
}

/* The continuous law, for an s_hat that is ca->estimate.service. */
static __always_inline void pp_law_at(struct sock *sk, struct pp *ca, u64 service,
				      bool app_limited)
{
	pp_control(sk, ca,
		   pp_law_continuous(ca->setpoint, ca->queue, pp_law_delay(ca),
				     service), service, app_limited);
}

static noinline void pp_law_now(struct sock *sk, struct pp *ca, bool app_limited)
{
	pp_law_at(sk, ca, ca->estimate.service, app_limited);
}

/* The discrete law, at the end of a round trip. */
static void pp_law_epoch(struct sock *sk, struct pp *ca, bool app_limited)
{
	u64 rate = pp_invert(ca->estimate.service);

	pp_control(sk, ca,
		   pp_law_discrete(ca->setpoint, ca->epoch_queue,
				   pp_outstanding(sk), ca->epoch_rate ?: rate,
				   rate, (u64)ca->rtt_us * NSEC_PER_USEC,
				   READ_ONCE(ca->net->pole)),
		   ca->estimate.service, app_limited);
}

/* The law of the sysctl, and what only it remembers: nothing as yet. */
static void pp_law_begin(const struct sock *sk, struct pp *ca)
{
	ca->law = READ_ONCE(ca->net->law);
	ca->push = PP_PUSH_NONE;
	if (pp_is_discrete(ca)) {
		ca->epoch_queue = ca->queue;
		/* While it was watched it may have been something else. */
		if (ca->estimate.service)
			ca->epoch_rate = pp_invert(ca->estimate.service);
	} else {
		ca->stop_us = (u32)tcp_sk(sk)->tcp_mstamp - PP_RTT_MAX_US;
		/* What arrived before the watch is not known, see pp_share_is_alone(). */
		if (ca->watched)
			ca->epoch_rate = PP_RATE_NONE;
	}
}

static void pp_round(struct sock *sk, struct pp *ca,
		     const struct rate_sample *rs, u64 mean)
{
	/* The first ACK ends a round trip in which nothing else arrived. */
	bool first = tcp_sk(sk)->delivered - ca->round_start < 2;

	if (unlikely(ca->losses))
		pp_setpoint_lost(ca);
	else if (unlikely(ca->lossy))
		pp_setpoint_kept(ca);
	ca->flight_last = ca->flight;
	ca->flight = 0;
	pp_setpoint(ca);
	pp_path_round(sk, ca, mean);
	if (!ca->estimate.service && !first)
		pp_start_grow(sk, ca);
	else if (ca->estimate.service && pp_is_discrete(ca) && !pp_is_window(ca))
		pp_law_epoch(sk, ca, pp_is_app_limited(sk, rs));
	if (ca->estimate.service) {
		if (ca->push != PP_PUSH_WAIT && (!ca->watched || pp_is_discrete(ca)))
			ca->epoch_rate = pp_invert(ca->estimate.service);
		if (pp_is_discrete(ca))
			ca->epoch_queue = ca->queue;
	}
}

/*
 * Is it time for the law? It comes with each sample, PP94 section 8. While next
 * to nothing waits there are ACKs that bring none (of pairs that lost a half, or
 * delayed ones): two trains, as long as they are without delayed ACKs, stand for a
 * sample, or the rate would never rise to what the estimate allows.
 */
static bool pp_is_law_due(struct pp *ca, u32 acked, bool sample)
{
	u32 train = READ_ONCE(ca->net->train);

	/* The last ACK of a burst counts, and nobody knows which it is. */
	if (unlikely(pp_is_bunched(ca)))
		return true;

	ca->train.missed = min_t(u32, ca->train.missed + acked, U8_MAX);
	if (!sample && !(pp_is_low(ca) && ca->train.missed >= 2 * train))
		return false;
	ca->train.missed = 0;
	return true;
}

/* n_hat where ACKs come in bursts, and what pp_queue() returns. */
static noinline u32 pp_queue_bunched(const struct sock *sk, struct pp *ca,
				     u64 service)
{
	ca->queue = pp_law_wait(pp_bunch_rtt(sk, ca), ca->delay_us + pp_held_us(ca), service);
	return pp_law_pipe(pp_delay_slot(ca), service);
}

/*
 * n_hat, by s_hat and what is outstanding, in segments; returns what the way holds
 * without it, Q8.
 */
static __always_inline u32 pp_queue(const struct sock *sk, struct pp *ca,
				    u64 service)
{
	u32 pipe;

	if (unlikely(pp_is_bunched(ca)))
		return pp_queue_bunched(sk, ca, service);
	pipe = pp_law_pipe(ca->delay_us, service);
	ca->queue = pp_law_queue(pp_outstanding_mean(ca, pp_flight(sk)), pipe);
	/* More is sent before s_hat, the distance at which that is done, follows. */
	if (pp_is_unpaired(ca))
		ca->queue = min(ca->queue, pp_law_wait(ca->rtt_us, ca->delay_us, service));
	if (unlikely(pp_is_low(ca)))
		ca->empty = 1;
	else if (unlikely(!ca->settled))
		ca->settled = 1;
	return pipe;
}

/* Takes a sample; returns s_hat. */
static u64 pp_sample(const struct sock *sk, struct pp *ca, u64 sample)
{
	u64 before = ca->estimate.service, service;

	if (unlikely(pp_is_bunched(ca))) {
		pp_bunch_sample(ca, sample);
		return ca->estimate.service;
	}
	service = pp_estimate_sample(&ca->estimate, &ca->net->gains, sample);
	if (unlikely(pp_path_is_sudden(before, sample)))
		service = pp_path_sudden(sk, ca, before, sample);
	else if (unlikely(ca->estimate.sudden))
		ca->estimate.sudden = 0;
	if (likely(!ca->wary || ca->shared))
		return service;
	pp_path_hold(ca);
	return ca->estimate.service;
}

static void pp_cong_control(COMPAT_CONG_CONTROL_ARGS,
			    const struct rate_sample *rs)
{
	struct pp *ca = inet_csk_ca(sk);
	u64 sample, service;
	bool first;

	/* The ACK of the SYN comes before init(). */
	if (!pp_is_ready(sk))
		return;

	first = !ca->estimate.service;
	if (unlikely(ca->turn)) {
		pp_pace_settle(sk, ca);
		/* An ACK that delivers nothing would leave the window of the turn. */
		if (!rs->acked_sacked) {
			pp_pace_window(sk, ca, pp_law_pipe(ca->delay_us,
							   ca->estimate.service),
				       tcp_packets_in_flight(tcp_sk(sk)));
			pp_pace_cut_off(sk, ca);
		}
	}
	if (unlikely(rs->losses > 0))
		pp_loss(tcp_sk(sk), ca, rs->losses);
	if (unlikely(ca->marked)) {
		ca->marked = 0;
		pp_setpoint_cut(ca);
	}
	if (!rs->acked_sacked)
		return;
	if (unlikely(READ_ONCE(ca->net->law) != ca->law))
		pp_law_begin(sk, ca);

	sample = pp_path_ack(sk, ca, rs);
	service = sample ? pp_sample(sk, ca, sample) : ca->estimate.service;
	if (unlikely(pp_is_window(ca))) {
		pp_queue(sk, ca, service);
		pp_share_control(sk, ca, rs);
	} else if (likely(service)) {
		u32 flight = tcp_packets_in_flight(tcp_sk(sk));
		u32 pipe = pp_queue(sk, ca, service);

		if (pp_is_law_due(ca, rs->acked_sacked, sample) &&
		    (first || !pp_is_discrete(ca)))
			pp_law_at(sk, ca, service, pp_is_app_limited(sk, rs));
		pp_pace_window(sk, ca, pipe, flight);
	} else {
		pp_start_wait(sk, ca);
	}

	if (unlikely(pp_is_bunched(ca)) ? sample != 0 :
	    unlikely(!before(rs->prior_delivered, ca->round_start) && rs->delivered > 0))
		pp_round(sk, ca, rs, sample);
	pp_pace_cut_off(sk, ca);
}

/* Losses are no affair of the rate, PP94 section 6, but of a window. */
static u32 pp_ssthresh(struct sock *sk)
{
	struct pp *ca = inet_csk_ca(sk);

	if (pp_is_ready(sk) && pp_is_window(ca))
		return pp_share_ssthresh(tcp_sk(sk), ca);
	return max(tcp_snd_cwnd(tcp_sk(sk)), 2U);
}

static u32 pp_undo_cwnd(struct sock *sk)
{
	const struct pp *ca = inet_csk_ca(sk);

	if (pp_is_ready(sk) && pp_is_window(ca))
		return tcp_reno_undo_cwnd(sk);
	return tcp_snd_cwnd(tcp_sk(sk));
}

/* Nothing was sent for a time: a token bucket may have filled, see pp_path_hold(). */
static void pp_be_wary(struct pp *ca)
{
	if (!ca->estimate.service)
		return;
	ca->push = PP_PUSH_NONE;
	if (ca->watched && !pp_is_discrete(ca))
		ca->epoch_rate = PP_RATE_NONE;
	else
		ca->epoch_rate = pp_invert(ca->estimate.service);
	if (!pp_is_bunched(ca))
		pp_pace_be_wary(ca, false);
}

/**
 * pp_restart() - begin anew, with what is known
 * @sk: socket
 * @ca: its private area
 * @rounds: round trips since it was known
 *
 * The mean rate is forgotten, by half in a round trip, so that the rate rises
 * again.
 */
static void pp_restart(struct sock *sk, struct pp *ca, u32 rounds)
{
	pp_train_break(&ca->train);
	/* What is between two marks would be the idle time. */
	if (pp_is_bunched(ca)) {
		ca->unmarked = 1;
		ca->wary = 0;
		ca->looking = 0;
	}
	ca->mean_rate = (u64)ca->mean_rate >> min(rounds, 63U);
	/*
	 * What arrived before counts half, or a quarter. A pair that finds a full
	 * token bucket is believed up to eight times that, see pp_path_credible(),
	 * so up to twice what arrived before the pause.
	 */
	ca->flight >>= min(rounds, 2U);
	ca->flight_last >>= min(rounds, 2U);
	ca->settled = 0;
	/* What is known now may be the service time: not as at the start, pp_is_unpaired(). */
	if (ca->estimate.service)
		ca->fastest = min_t(u32, ca->fastest, pp_service_code(ca->estimate.service));
	ca->estimate.rounds = PP_SUDDEN_ROUNDS_MOST;
	ca->queue = 0;
	pp_be_wary(ca);
	if (!pp_is_bunched(ca))
		ca->history.peeks = 0;
	if (pp_is_discrete(ca))
		ca->epoch_queue = 0;
	if (ca->estimate.service && !pp_is_window(ca))
		pp_law_now(sk, ca, true);
}

/* Before something is sent, and nothing is outstanding: is it the first after an idle time? */
static noinline void pp_before_send(struct sock *sk, struct pp *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 idle_us;

	/* The stack asks also where nothing can leave: the idle time goes on. */
	if (ca->after_idle || !tcp_send_head(sk) ||
	    !before(tp->snd_nxt, tcp_wnd_end(tp)))
		return;
	/* Where ACKs come in bursts all may have arrived before a peek is over. */
	if (pp_bunch_has_peeked(ca) &&
	    tp->tcp_clock_cache < tp->tcp_wstamp_ns + (u64)ca->rtt_us * NSEC_PER_USEC)
		return;
	ca->after_idle = 1;
	/*
	 * A minute at most, which 32 bits hold. Where R is less than 1.2 s this is
	 * 48 round trips and more: nothing is left of a mean rate of 48 bits.
	 */
	idle_us = min_t(u64, tp->tcp_mstamp - tp->delivered_mstamp,
			60 * USEC_PER_SEC);
	if (pp_is_window(ca)) {
		pp_share_idle(sk, ca, idle_us);
	} else if (ca->delay_us && idle_us > ca->delay_us) {
		/* What it has grown to, without a sample, was long ago. */
		if (!ca->estimate.service)
			tcp_snd_cwnd_set(tp, min(tcp_snd_cwnd(tp), pp_start_window(sk, ca)));
		pp_restart(sk, ca, idle_us / ca->delay_us);
		return;
	}
	if (!ca->looking)
		pp_be_wary(ca);
}

/* Before init() only SYNs are sent, of one segment. */
static u32 pp_tso_segs(COMPAT_TSO_SEGS_ARGS)
{
	struct pp *ca = inet_csk_ca(sk);
	u32 train;

	if (unlikely(!pp_is_ready(sk)))
		return 1;
	train = pp_train_segs(ca);
	pp_train_use(sk, train);
	if (unlikely(!tcp_sk(sk)->packets_out))
		pp_before_send(sk, ca);
	pp_pace_before_send(sk, ca, pp_train_sent(ca));
	return train;
}

/*
 * A timeout: nothing is outstanding, nothing that is known is sure. PP94 goes
 * back to the first setpoint and keeps the rate; here the rate rises again, as
 * the path may be another one.
 */
static void pp_set_state(struct sock *sk, u8 new_state)
{
	struct pp *ca = inet_csk_ca(sk);

	if (!pp_is_ready(sk))
		return;
	pp_pace_settle(sk, ca);
	if (pp_is_window(ca)) {
		pp_share_state(sk, new_state);
		return;
	}
	/*
	 * ECE, or a packet that the host itself had no room for: the stack says so once in a
	 * round trip. For a loss at the end that a probe has repaired it says so as well, and
	 * takes it back at once: that is one loss, and no mark. So the next ACK decides.
	 */
	ca->marked = new_state == TCP_CA_CWR;
	if (new_state != TCP_CA_Loss ||
	    inet_csk(sk)->icsk_ca_state == TCP_CA_Loss)
		return;
	/* The path may be another one: what was too much there is forgotten. */
	if (!READ_ONCE(ca->net->setpoint))
		pp_setpoint_begin(ca);
	pp_delay_forget(ca);
	pp_restart(sk, ca, 63);
}

/*
 * A nominal rate that the network guarantees to each new connection (PP94 5): the
 * first round trip is sent at it, and the rise to the first target begins there.
 * In units of 2^-3 us srtt_us is below 2^32, and the product below 2^59.
 */
static void pp_begin_at(struct sock *sk, struct pp *ca, u32 nominal)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 packets = div_u64((u64)nominal * tp->srtt_us, 8 * USEC_PER_SEC);

	packets = clamp_t(u64, packets, 2, PP_PACKETS_MAX);
	tcp_snd_cwnd_set(tp, min_t(u32, packets, tp->snd_cwnd_clamp));
	ca->mean_rate = (u64)nominal << PP_RATE_SHIFT;
}

static void pp_init(struct sock *sk)
{
	const struct pp_net *net = pp_net(sock_net(sk));
	u32 nominal = READ_ONCE(net->initial_rate);
	u32 initial = READ_ONCE(net->initial);
	struct tcp_sock *tp = tcp_sk(sk);
	struct pp *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	ca->net = net;
	pp_law_begin(sk, ca);
	ca->round_start = tp->delivered;
	ca->round_us = tp->tcp_mstamp;
	ca->low_us = PP_LOW_NONE;
	ca->fastest = PP_FASTEST_NONE;
	ca->history.since = U8_MAX;
	ca->estimate.rounds = PP_SUDDEN_ROUNDS_MOST;
	/* An old connection knows R; of a new one only the SYN was timed. */
	if (tp->bytes_acked > tp->mss_cache && tcp_min_rtt(tp) != U32_MAX)
		ca->delay_us = clamp(tcp_min_rtt(tp), 1U, PP_RTT_MAX_US);
	pp_setpoint_begin(ca);
	if (nominal && tp->srtt_us)
		pp_begin_at(sk, ca, nominal);
	else if (initial)
		tcp_snd_cwnd_set(tp, min(initial, tp->snd_cwnd_clamp));
	pp_pace_cut_off(sk, ca);
	/* The stack does not pace the first ten segments. srtt_us is in 2^-3 us. */
	if (tp->srtt_us)
		pp_pace(sk, pp_law_rate(tcp_snd_cwnd(tp) << PP_PACKET_SHIFT,
					tp->srtt_us >> 3));
	pp_train_use(sk, READ_ONCE(net->train));
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
}

static void pp_release(struct sock *sk)
{
	struct pp *ca = inet_csk_ca(sk);

	if (!pp_is_ready(sk))
		return;
	pp_pace_settle(sk, ca);
	tollway_release_packets(sk);
	tollway_release_pacing(sk);
}

/*
 * The send buffer in windows. One is twice what the pipe and the setpoint hold:
 * all that is outstanding, and as much again while losses are repaired; the stack
 * would take two. It never makes a buffer smaller, and a token bucket that was full
 * can make the first samples, and the window, tenfold. So the buffer stays as it
 * is while a first flight is under way, and while more waits in it than is
 * outstanding.
 */
static u32 pp_sndbuf_expand(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct pp *ca = inet_csk_ca(sk);

	if (!pp_is_ready(sk) || !ca->estimate.service || pp_is_window(ca))
		return 2;
	return tp->delivered > TCP_INIT_CWND &&
	       tp->write_seq - tp->snd_nxt < tp->snd_nxt - tp->snd_una;
}

/* What ss shows beside the setpoint, see pp_get_info(). */
static u32 pp_state(const struct sock *sk, const struct pp *ca)
{
	const struct pp_net *net = pp_net(sock_net(sk));

	return (ca->estimate.service ? 0 : PP_STATE_START) |
	       (ca->rising ? PP_STATE_RISING : 0) |
	       (ca->draining ? PP_STATE_DRAINING : 0) |
	       (ca->delayed ? PP_STATE_DELAYED : 0) |
	       (ca->shared ? PP_STATE_SHARED : 0) |
	       (pp_is_bunched(ca) ? PP_STATE_BUNCHED : 0) |
	       (pp_is_window(ca) ? PP_STATE_WINDOW : 0) |
	       (ca->train.gro ? PP_STATE_GRO : 0) |
	       (pp_pace_is_cut_off(sk, ca, net, pp_train_of(net, pp_train_is_four(ca))) ?
		PP_STATE_CUT_OFF : 0);
}

/*
 * ss knows no structure of ours; bbr's has the nearest fields. bw: 1 / s_hat;
 * mrtt: R; pacing_gain: n_hat, packets; cwnd_gain: the setpoint, packets, and
 * 10000 times the state. Documented in tcp_pp(7).
 */
static size_t pp_get_info(struct sock *sk, u32 ext, int *attr,
			  union tcp_cc_info *info)
{
	const struct pp *ca = inet_csk_ca(sk);
	u64 service, bw;

	if (!(ext & (1 << (INET_DIAG_BBRINFO - 1))) &&
	    !(ext & (1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	/* A listener, say. */
	if (!pp_is_ready(sk))
		return 0;

	memset(&info->bbr, 0, sizeof(info->bbr));
	/* Once: there is no lock here, and it becomes 0 as the control changes. */
	service = READ_ONCE(ca->estimate.service);
	bw = service ? pp_invert(service) : 0;
	bw = (bw * tcp_sk(sk)->mss_cache) >> PP_RATE_SHIFT;
	info->bbr.bbr_bw_lo = (u32)bw;
	info->bbr.bbr_bw_hi = (u32)(bw >> 32);
	info->bbr.bbr_min_rtt = ca->delay_us;
	/* Gains are in Q8, as our numbers of packets are. */
	info->bbr.bbr_pacing_gain = ca->queue;
	info->bbr.bbr_cwnd_gain = ca->setpoint +
				  pp_state(sk, ca) * PP_STATE_UNIT * PP_PACKET;
	*attr = INET_DIAG_BBRINFO;
	return sizeof(info->bbr);
}

static struct tcp_congestion_ops pp_ops __read_mostly = {
	.name		= "pp",
	.owner		= THIS_MODULE,
	.flags		= TCP_CONG_NON_RESTRICTED,
	.init		= pp_init,
	.release	= pp_release,
	.cong_control	= pp_cong_control,
	.ssthresh	= pp_ssthresh,
	.undo_cwnd	= pp_undo_cwnd,
	.set_state	= pp_set_state,
	.COMPAT_TSO_SEGS_OP = pp_tso_segs,
	.sndbuf_expand	= pp_sndbuf_expand,
	.get_info	= pp_get_info,
};

static struct tcp_congestion_ops *const pp_all_ops[] = { &pp_ops, &ppx_ops };

static void pp_unregister(int count)
{
	/* Each returns only when no socket can find the operations any more. */
	while (count--)
		tcp_unregister_congestion_control(pp_all_ops[count]);
	pp_net_unregister();
}

static int __init pp_module_init(void)
{
	int err, i;

	BUILD_BUG_ON(sizeof(struct pp) > ICSK_CA_PRIV_SIZE);

	err = pp_net_register();
	if (err)
		return err;

	for (i = 0; i < ARRAY_SIZE(pp_all_ops); i++) {
		err = tcp_register_congestion_control(pp_all_ops[i]);
		if (err) {
			pp_unregister(i);
			return err;
		}
	}
	return 0;
}

static void __exit pp_module_exit(void)
{
	pp_unregister(ARRAY_SIZE(pp_all_ops));
}

module_init(pp_module_init);
module_exit(pp_module_exit);

MODULE_ALIAS("tcp_ppx");
MODULE_DESCRIPTION("Packet-pair rate control: pp, ppx");
MODULE_VERSION("0.1.0");
MODULE_LICENSE("GPL");
