/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The arithmetic of packet pair apart from TCP: trains of ACKs (pp_train.c),
 * estimators (pp_estimator.c) and control laws (pp_law.c). Nothing here knows
 * a socket; selftests/kunit/pp_kunit.c checks it against PP94's equations.
 */
#ifndef _PP_MODEL_H
#define _PP_MODEL_H

#include <linux/bits.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/time64.h>
#include <linux/types.h>

/*
 * Service times are ns in Q10, 2^10 .. 2^42 (1 ns to 4.3 s): 1 ns is known to 0.1 %, and a
 * weight in Q16 times a service time is below 2^58, see pp_average(). Rates are packets/s in
 * Q16, up to 2^46 (10^9 per second): times a weight below 2^62. Numbers of packets are in Q8,
 * up to 2^32 (16 million), so they fit into a u32.
 */
#define PP_SERVICE_SHIFT	10
#define PP_SERVICE_MIN		1024ULL
#define PP_SERVICE_MAX		BIT_ULL(32 + PP_SERVICE_SHIFT)
#define PP_RATE_SHIFT		16
#define PP_RATE_MAX		BIT_ULL(46)
/* To compare with: nothing that arrives is as much. */
#define PP_RATE_NONE		(PP_RATE_MAX - 1)
#define PP_PACKET_SHIFT		8
#define PP_PACKET		256U
#define PP_PACKETS_MAX		(U32_MAX >> PP_PACKET_SHIFT)

/* A queue of at most two packets counts as empty, PP94 section 5. */
#define PP_QUEUE_LOW		(2 * PP_PACKET)

/* Weights and errors are Q16. */
#define PP_ONE			65536U

/* Unit of fractions that users set as decimal numbers: the defaults 0.9 and 0.75 are exact. */
#define PP_MILLE		1000U

/* Round-trip times are limited to 2^24 us, 16.8 s. */
#define PP_RTT_MAX_US		16777216U

/**
 * enum pp_estimator - what becomes of the samples of the service time
 * @PP_ESTIMATOR_FUZZY: exponential average, weight by fuzzy control, PP94 4.5
 * @PP_ESTIMATOR_FIXED: exponential average of fixed weight
 * @PP_ESTIMATOR_KALMAN: Kalman filter of the service rate, PP94 4.4
 */
enum pp_estimator {
	PP_ESTIMATOR_FUZZY,
	PP_ESTIMATOR_FIXED,
	PP_ESTIMATOR_KALMAN,
};

/**
 * enum pp_law - how the rate follows the estimates
 * @PP_LAW_CONTINUOUS: at each sample, PP94 (14)
 * @PP_LAW_DISCRETE: once in a round trip, PP94 (9) with a pole (4.2.1)
 */
enum pp_law {
	PP_LAW_CONTINUOUS,
	PP_LAW_DISCRETE,
};

/**
 * struct pp_estimate - the service time of the bottleneck, for this flow
 * @service: estimate, ns in Q10; 0 before the first sample
 * @error: fuzzy: smoothed proportional error, Q16, at most 1.0;
 *	Kalman: variance of the estimate over that of the noise, Q16
 * @last_error: fuzzy: proportional error of the last sample, Q16, at most 1.0
 * @sudden: samples in a row that were far off, all of them slower or all of them faster;
 *	saturates, see pp_estimate_sudden(). With bursts of ACKs: code of an earlier estimate,
 *	see pp_bunch_held()
 * @slower: these were slower. With bursts of ACKs: see pp_push_is_held()
 * @seen: a sample of this round trip was far off, see PP_SUDDEN_FIRST
 * @rounds: round trips of late with such samples, less those without; saturates at
 *	PP_SUDDEN_ROUNDS_MOST, with which it begins, see PP_SUDDEN_ROUNDS
 */
struct pp_estimate {
	u64	service;
	u32	error;
	u32	last_error:17,
		sudden:10,
		slower:1,
		seen:1,
		rounds:3;
};

/**
 * struct pp_gains - settings of the estimators
 * @estimator: an &enum pp_estimator
 * @fixed: weight of a sample, Q16, 1 .. 2^16
 * @kalman: variance of the system noise over that of the observation, Q16
 */
struct pp_gains {
	u32	estimator;
	u32	fixed;
	u32	kalman;
};

/**
 * struct pp_train - ACKs of segments that left back to back
 * @first_ns: low word of the time of the first ACK, or of the last sample
 * @last_ns: the same of the last ACK
 * @stamp_us: low word of the time at which the last of the segments left
 * @segs: segments acknowledged after @first_ns; saturates
 * @extra: two trains are sent at once
 * @gro: the receiver holds back all segments of a train but the last: only the
 *	second one of two tells the service time
 * @gro_seen: with @extra: trains that looked like that, less those that did not, see
 *	PP_GRO_BELIEVED; otherwise 0
 * @part: with @extra: a part of a train was the next to leave, see pp_pace_parts()
 * @missed: segments acknowledged since the caller used a sample; saturates
 * @probe: with @bunched: how much is probed when next to nothing waits
 * @probe.caution: by so many powers of two it is less
 * @probe.low_rounds: round trips in a row in which next to nothing waited
 * @open: @stamp_us is valid
 * @full: as many as were wanted have been acknowledged
 * @close: the last train came closer to the one before than it was sent
 * @bunched: ACKs come in bursts; what follows from it is in pp_bunch.c
 * @bunches: bursts seen, less the round trips without any; saturates
 * @bunch_seen: one of these was in this round trip
 *
 * A service time of more than 4 s is none that could be measured.
 */
struct pp_train {
	u32	first_ns;
	u32	last_ns;
	u32	stamp_us;
	u16	segs:9,
		extra:1,
		gro:1,
		gro_seen:4,
		part:1;
	union {
		u8	missed;
		struct {
			u8 caution:2,
			   low_rounds:2;
		} probe;
	};
	u8	open:1,
		full:1,
		close:1,
		bunched:1,
		bunches:3,
		bunch_seen:1;
};

/* One over the other, in their units: 10^9 * 2^26 < 2^56. */
static inline u64 pp_invert(u64 value)
{
	return div64_u64((u64)NSEC_PER_SEC << (PP_SERVICE_SHIFT + PP_RATE_SHIFT),
			 value ?: 1);
}

/* Packets of the flow that wait: n_hat = S - R / s_hat, never below 0, Q8. */
static inline u32 pp_law_queue(u32 outstanding, u32 pipe)
{
	return outstanding - min(outstanding, pipe);
}

/**
 * pp_law_pipe() - packets of the flow that are on the way, and do not wait
 * @delay_us: propagation delay R, us, at most PP_RTT_MAX_US
 * @service: s_hat, ns in Q10
 *
 * Return: R / s_hat in Q8, at most U32_MAX.
 */
static inline u32 pp_law_pipe(u32 delay_us, u64 service)
{
	/* us to ns and to Q18: below 2^52. */
	u64 pipe = div64_u64(((u64)delay_us * NSEC_PER_USEC) <<
			     (PP_SERVICE_SHIFT + PP_PACKET_SHIFT),
			     service ?: 1);

	return min_t(u64, pipe, U32_MAX);
}

/**
 * pp_law_room() - segments that may be outstanding where room is reserved, PP94 10.3
 * @pipe: R / s_hat, Q8
 * @setpoint: B, Q8, below 2^22
 * @train: segments that leave at once, at most 64
 * @reserved: packets of room at the bottleneck, at most 2^20
 *
 * With the path full, no more than what is reserved waits. The law needs room for the
 * setpoint and for two trains, or this would set the rate.
 *
 * Return: segments, 4 and up.
 */
static inline u32 pp_law_room(u32 pipe, u32 setpoint, u32 train, u32 reserved)
{
	u32 least = (setpoint + PP_PACKET - 1) / PP_PACKET + 2 * train;

	/* At most 2^24 and 2^20. */
	return pipe / PP_PACKET + (pipe % PP_PACKET != 0) + max(least, reserved);
}

/**
 * pp_law_wait() - packets of the flow that wait, from the time that one waited
 * @rtt_us: round-trip time, us, at most PP_RTT_MAX_US
 * @delay_us: propagation delay R, us
 * @service: s_hat, ns in Q10
 *
 * A service time that is too short makes it more, where pp_law_queue() makes it
 * less: an error that ends by itself.
 *
 * Return: (rtt - R) / s_hat in Q8, at most U32_MAX.
 */
static inline u32 pp_law_wait(u32 rtt_us, u32 delay_us, u64 service)
{
	return pp_law_pipe(rtt_us - min(rtt_us, delay_us), service);
}

/**
 * pp_law_probe() - rate while packets arrive as fast as they are sent
 * @service: s_hat, ns in Q10: what arrived in a round trip
 * @settled: packets have been waiting at the bottleneck
 * @caution: once settled: powers of two by which to probe less
 *
 * What leaves now shows in what arrives in the round trip after the next. So the
 * rate grows by the root of this in a round trip. At first what is in the pipe may be
 * any part of what it holds: 5/2 makes it 1.6 times as much in each, a choice. 4 would
 * make it 2, as a slow start, which leaves a whole pipe in the queue; with 2 it would be
 * 1.4, and take a third longer. Later it is 3/2, 1.2 in a round trip. On a full link that
 * leaves half of a round trip in the queue, so that @caution makes it less there. Where
 * the other flows of a link have left, less would use it later.
 *
 * Return: packets/s in Q16: 5/2 of 1 / s_hat, or 3/2 and less.
 */
static inline u64 pp_law_probe(u64 service, bool settled, u32 caution)
{
	u64 rate = pp_invert(service);

	return min_t(u64, rate + (settled ? rate >> (1 + caution) :
					    rate + rate / 2), PP_RATE_MAX);
}

/**
 * pp_law_rtt_ns() - round-trip time that is to be expected
 * @queue: n_hat, Q8
 * @delay_us: propagation delay R, us, at most PP_RTT_MAX_US
 * @service: s_hat, ns in Q10, at most PP_SERVICE_MAX
 *
 * Return: R + n_hat s_hat in ns, 1 us .. 2^57.
 */
static inline u64 pp_law_rtt_ns(u32 queue, u32 delay_us, u64 service)
{
	u64 wait = mul_u64_u32_shr(service, queue,
				   PP_SERVICE_SHIFT + PP_PACKET_SHIFT);

	/* R alone is a us then. */
	if (likely(delay_us))
		return wait + (u64)delay_us * NSEC_PER_USEC;
	return max_t(u64, wait, NSEC_PER_USEC);
}

/**
 * pp_law_rise() - adaptive exponential rise, PP94 sections 5 and 8
 * @target: rate by the law
 * @mean: mean rate at which the flow sends
 * @queue: n_hat, Q8
 * @bound: do not go beyond, whatever the target
 *
 * While next to nothing waits at the bottleneck the estimates may come from an
 * idle one: go a fifth of the way only, the 0.2 of PP94 Table 2.
 *
 * Return: the rate to send at.
 */
static inline u64 pp_law_rise(u64 target, u64 mean, u32 queue, u64 bound)
{
	if (likely(queue > PP_QUEUE_LOW || target <= mean))
		return target;
	return max(mean, min(mean + div_u64(target - mean, 5), bound));
}

/**
 * pp_law_mean() - mean rate, for the rise
 * @mean: so far
 * @rate: at which the flow sends now
 *
 * A rise by a fifth of the way moves the mean by a twentieth of it each time.
 *
 * Return: 3/4 of the one and 1/4 of the other, PP94 Table 2, rounded.
 */
static inline u64 pp_law_mean(u64 mean, u64 rate)
{
	return (mean * 3 + rate + 2) / 4;
}

/*
 * What pp_law_drain() compares with: a rate is packets/s in Q16, so that
 *
 *	rate times a time in ns		is packets in 2^-16 * 10^-9,
 *	rate times s_hat (ns, Q10)	is part of the link in 2^-26 * 10^-9.
 *
 * In these units a pair is 2 * 10^9 * 2^16, and half of the link 10^9 * 2^25. Products
 * are of up to 2^46 * 2^57, so that both sides are divided by 2^32. That leaves a
 * fraction of the pair, which is rounded up, and none of the half.
 */
#define PP_PAIR_Q32	(((2ULL * NSEC_PER_SEC) << PP_RATE_SHIFT >> 32) + 1)
#define PP_HALF_Q32	(((u64)NSEC_PER_SEC << \
			  (PP_SERVICE_SHIFT + PP_RATE_SHIFT - 1)) >> 32)
/*
 * pp_law_drain() compares in 64 bits first:
 *
 *	(rate >> 15) * R in us			with PP_PAIR_SURE,
 *	(rate >> 15) * (s_hat >> 11)		with PP_HALF_SURE.
 *
 * rate >> 15 and s_hat >> 11 are below 2^31, and R is below 2^32, so a product has at
 * most 63 bits. A product that is above its limit is above the exact limit as well,
 * because R is less than the round-trip time, and a shift to the right only makes a
 * product smaller. The exact limits are in units of 2^32. The rate is in units of 2^15
 * here, so the limit of a pair is shifted to the left by 32 - 15, and divided by 10^3 as
 * R is in us, not ns. s_hat is in units of 2^11, so the limit of half of the link is
 * shifted by 32 - 15 - 11.
 */
#define PP_PAIR_SURE	(((PP_PAIR_Q32 + 1) << (32 - 15)) / NSEC_PER_USEC + 1)
#define PP_HALF_SURE	((PP_HALF_Q32 + 1) << (32 - 15 - 11))

u64 pp_law_drain_slow(u64 rate, u32 setpoint, u32 queue, u32 delay_us,
		      u64 service);

/**
 * pp_law_drain() - do not stop while the queue is too long
 * @rate: by the law
 * @setpoint: B, Q8
 * @queue: n_hat, Q8
 * @delay_us: propagation delay R, us
 * @service: s_hat, ns in Q10
 *
 * n_hat counts what was lost at the end of the queue until something behind it
 * arrives. Sources that all stop for that, as PP94's do, find the link idle when
 * they begin again, take all of it for theirs, and overflow it together.
 *
 * Return: @rate, but at least a pair in a round trip, and above the setpoint half
 * of what is served, so that what waits is on the way to the setpoint.
 */
static inline u64 pp_law_drain(u64 rate, u32 setpoint, u32 queue, u32 delay_us,
			       u64 service)
{
	/* Nearly always the rate is far higher, which needs no 128 bits. */
	if (likely((rate >> 15) * delay_us > PP_PAIR_SURE &&
		   (rate >> 15) * (service >> 11) > PP_HALF_SURE))
		return rate;
	return pp_law_drain_slow(rate, setpoint, queue, delay_us, service);
}

/* pp_train.c */
u64 pp_train_gap(const struct pp_train *train, u32 now_ns, u32 acked);
void pp_train_break(struct pp_train *train);
void pp_train_bunch_count(struct pp_train *train);
void pp_train_gro_doubt(struct pp_train *train);
u64 pp_train_gro(struct pp_train *train, u32 stamp_us, u32 now_ns, u32 acked,
		 u32 wanted);
bool pp_train_bunch_round(struct pp_train *train);

/* pp_estimator.c */
u32 pp_fuzzy_alpha_of(u32 error);
u32 pp_fuzzy_beta_of(u32 change);
u64 pp_estimate_sample(struct pp_estimate *est, const struct pp_gains *gains,
		       u64 sample);
u64 pp_estimate_sudden(struct pp_estimate *est, u64 before, u64 sample, u32 count);

/* pp_law.c */
u64 pp_law_continuous(u32 setpoint, u32 queue, u32 delay_us, u64 service);
u64 pp_law_discrete(u32 setpoint, u32 queue, u32 outstanding, u64 rate_before,
		    u64 rate, u64 rtt_ns, u32 pole);
u64 pp_law_rate(u32 packets, u32 delay_us);
u32 pp_law_stop(u32 setpoint, u32 queue, u32 delay_us, u32 rtt_us, u64 service);

#endif /* _PP_MODEL_H */
