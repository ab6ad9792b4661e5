# SPDX-License-Identifier: GPL-2.0
"""The source relative over the law delay as fluids, with the modules' defaults.

Let u be the logarithm of a price, d the delay of a queue, d0 its target, and idle the
fraction of time in which its link has nothing to send. Then (sch_sbrm/sbrm_delay.c)

    u' = a (d/d0 - 1) - b idle,  p = exp(u + b d + l d') (1 - idle)^h

and a source changes the logarithm of its window W by (tcp_sbrm/sbrm_relative.c)

    (ln W)' = (w - x p r)/k

where p is the price that its marks carry and x = W/T is its rate, but no more than the window
and two packets in a round trip. T lies between the last round-trip time and its average over
two seconds, and r is T divided by that average. In slow start
W' = x. Slow start ends when one mark is due, which leaves the window unchanged; when the charge
exceeds what was due by more than one mark, which halves the window; or when packets wait, which
reduces it by a quarter.

No paper has this source and law. The constants are those of the modules, whose files have
the reasons. The part of the law that measures the rate of the link is not modelled: a fluid
link has a known rate. Nor is the one packet that each flow has on its way where its share is
below w / 6, nor that a queue which drops packets again and again raises its price faster. And a
source knows the round-trip time with the queue of this moment, not that of the last packet which
is acknowledged: swings for which that delay is the cause do not appear.
"""

import math
from dataclasses import dataclass

import numpy as np

# --- the queue ---
A_PER_S, B_PER_S, H, LEAD = 1 / 40, 3.0, 1.3, 1.5
LATE_MAX = 32
# A delay that is late by so many targets, and not below its average by FALLS_S, raises
# the price by so much in a second for as many targets more, up to so many times that,
# and up to a part of the first.
RISE_LATE, RISE_PER_S, RISE_MAX, RISE_PART = 3, 6.0, 2, 1 / 8
# By so many times as much, up to a smaller part.
FAST, FAST_PART = 16, 1 / 128
# a is divided by the square of a price above 1, by less if the target is longer.
SLOW_TARGET_S = 0.003
# No more of a rest counts, nor of a delay but for how late it is.
REST_MAX_S = DELAY_MAX_S = 1.0
# Averages of the delay, of the share of idle time and of marks, s. The first one takes
# at least so many packets, and at most so long.
SLOW_PKTS, SLOW_MAX_S = 40, 1.0
SLOW_S, IDLE_S, MARKS_S = 0.032, 0.064, 1.0
FALLS_S = SLOW_S / 5
# Below so many marks per second, demand is missing.
MARKS_PER_S = 0.5
# The first price asks for so many marks per second of all, up to a price.
FIRST_MARKS_PER_S, FIRST_MAX = 1000, 1.7
# d0 is at least the time of so many packets.
PACKETS = 2
LOG_MIN, LOG_MAX = -16.0, math.log(400)

# --- the source ---
# k is at least so many marks, what is due in so long, and in so many answers.
MARKS, TIME_S, ROUNDS = 10, 0.2, 3
# Where windows are small an answer takes so many packets, and so many for marks.
ANSWER_PKTS, ANSWER_MARKED_PKTS, SMALL_PKTS = 2, 8, 8
# Of the window, what a round trip may take off it.
CUT_MAX = 0.7
# Averages of the round trip, s, which is at most so many times the last one, and of
# the marks, packets.
SLOW_RTT_S, SLOW_RTT_MOST, MARK_PKTS = 2.1, 4, 8
MARK_MIN = 2.0 ** -20
LATER_S = 0.005
# The last round trip is so much of the one that paces, with this window and larger ones, and
# the average counts as so many times the last one at most there.
WINDOW_MIN, LAST_PART, LAST_PKTS, SLOW_PACE_MOST = 1 / 64, 1 / 2, 2, 2
# So many packets more than the window may be on their way.
BESIDE_PKTS = 2


@dataclass(frozen=True)
class RelativeSetting:
    """Settings of sources and queues. delay_s: target; limit: packets; first_window: segments."""
    delay_s: float
    limit: float
    first_window: float = 10.0
    slow_start: bool = True

    def sources(self, wtp, start_s):
        """Sources with a willingness to pay in packets/s each."""
        return RelativeSources(self, wtp)

    def queues(self, capacity_pps):
        """Queues of links with these rates."""
        return DelayQueues(self, capacity_pps)


class DelayQueues:
    """Prices of queues: arrays with a value for each."""

    def __init__(self, setting, capacity_pps):
        self.capacity = capacity_pps
        self.target_s = np.maximum(setting.delay_s, PACKETS / capacity_pps)
        self.first = np.log(np.minimum(FIRST_MARKS_PER_S / capacity_pps,
                                       FIRST_MAX))
        self.log_price = self.first.copy()
        self.idle = np.ones(len(capacity_pps))
        self.marks, self.slow_s = np.zeros((2, len(capacity_pps)))
        self.asked, self.rest_s = np.zeros((2, len(capacity_pps)))

    def price(self, backlog, served, step_s):
        """Prices after a step. backlog, served: packets."""
        # Where nothing passes the law looks at its clock with the next packet, and
        # takes the rest for a second at most.
        passes = (served > 0) | (backlog > 0)
        self.rest_s += np.where(passes, 0.0, step_s)
        if not passes.any():
            return self.asked
        before = (self.log_price, self.marks, self.slow_s, self.idle, self.asked)
        rest_s = np.minimum(self.rest_s, REST_MAX_S)
        self._update(backlog, served, rest_s + step_s,
                     rest_s + step_s - served / self.capacity)
        after = (self.log_price, self.marks, self.slow_s, self.idle, self.asked)
        (self.log_price, self.marks, self.slow_s, self.idle, self.asked) = (
            np.where(passes, new, old) for new, old in zip(after, before))
        self.rest_s = np.where(passes, 0.0, self.rest_s)
        return self.asked

    def _update(self, backlog, served, since_s, idle_s):
        """Update the price with a packet after some time, s; the link had nothing to send for
        idle_s of it."""
        delay_s = backlog / self.capacity
        self.marks = self.marks + np.minimum(since_s / MARKS_S, 1) * (
            self.asked * served / since_s - self.marks)
        fall = B_PER_S * idle_s * (self.marks - MARKS_PER_S) / (
            self.marks + MARKS_PER_S)
        # Above 1 sources are slower.
        price = np.exp(np.maximum(self.log_price, 0.0))
        u = np.where(fall < 0, np.maximum(self.log_price, np.minimum(
            self.log_price - fall, self.first)),
                     self.log_price - fall / np.maximum(self.asked, 1.0))
        late = np.minimum(delay_s / self.target_s, LATE_MAX)
        u += A_PER_S * since_s * (late - 1) / np.maximum(
            price**2 * SLOW_TARGET_S / np.maximum(self.target_s, SLOW_TARGET_S), 1.0)
        slow_s = np.minimum(SLOW_MAX_S, price * np.maximum(
            SLOW_S, SLOW_PKTS / self.capacity))
        counts_s = np.minimum(delay_s, DELAY_MAX_S)
        off_s = counts_s - self.slow_s
        rise = self._rise(late, off_s) * since_s
        u = np.where(rise > 0, np.maximum.reduce([
            u, np.minimum(u + rise, self.first + math.log(RISE_PART)),
            np.minimum(u + FAST * rise, self.first + math.log(FAST_PART))]), u)
        self.log_price = np.clip(u, LOG_MIN, LOG_MAX)
        self.slow_s = self.slow_s + np.minimum(since_s / slow_s, 1) * off_s
        self.idle = self.idle + np.minimum(since_s / IDLE_S, 1) * (
            idle_s / since_s - self.idle)
        self.asked = np.exp(np.minimum(
            self.log_price + B_PER_S * counts_s
            + LEAD * np.clip(off_s / slow_s, -1, 1), LOG_MAX)) \
            * np.maximum(1 - self.idle, 0.0) ** H

    def _rise(self, late, off_s):
        """Per second, where the delay is far above its target and does not fall."""
        return RISE_PER_S * np.clip(late / RISE_LATE - 1, 0, RISE_MAX) \
            * np.clip(1 + off_s / FALLS_S, 0, 1)


class RelativeSources:
    """Windows of sources: arrays with a value for each."""

    def __init__(self, setting, wtp):
        count = len(wtp)
        self.wtp = wtp
        self.window = np.full(count, float(setting.first_window))
        self.starting = np.full(count, setting.slow_start)
        self.slow_rtt_s, self.least_rtt_s = np.zeros((2, count))
        self.marked, self.balance, self.due = np.zeros((3, count))

    def pace_s(self, rtt_s):
        """The time in which a window is sent."""
        return np.where(self.starting, rtt_s, np.maximum(
            self._mean_s(rtt_s), rtt_s * self.window / (self.window + BESIDE_PKTS)))

    def _mean_s(self, rtt_s):
        """The round-trip time that paces: between the last one and its average, and nearer to
        the average, the smaller the window is. In slow start it is the last one."""
        slow_s = np.where((self.slow_rtt_s > 0) & ~self.starting, self.slow_rtt_s, rtt_s)
        slow_s = np.where(self.window < LAST_PKTS, slow_s,
                          np.minimum(slow_s, SLOW_PACE_MOST * rtt_s))
        return slow_s + (rtt_s - slow_s) * LAST_PART * np.minimum(
            self.window / LAST_PKTS, 1)

    def advance(self, step_s, now, active, rate, rtt_s, price):
        """A step: rate in packets/s, the round trip with queues, and the price
        that marks of now were made by."""
        mark = -np.expm1(-price)
        new = self.slow_rtt_s == 0
        self.slow_rtt_s[new] = self.least_rtt_s[new] = rtt_s[new]
        self.least_rtt_s = np.where(active, np.minimum(self.least_rtt_s, rtt_s),
                                    rtt_s)
        self.slow_rtt_s += np.where(active, step_s / SLOW_RTT_S *
                                    (rtt_s - self.slow_rtt_s),
                                    rtt_s - self.slow_rtt_s)
        self.slow_rtt_s = np.minimum(self.slow_rtt_s, SLOW_RTT_MOST * rtt_s)
        self.marked += np.minimum(rate * step_s / MARK_PKTS, 1.0) \
            * (mark - self.marked)
        # What a mark stands for.
        share = np.clip(self.marked, MARK_MIN, 1 - 2.0 ** -16)
        paid = rate * mark * -np.log1p(-share) / share
        lacks = self.wtp - paid * np.clip(self._mean_s(rtt_s) / self.slow_rtt_s, 0.25, 4)
        grows = np.where(self.starting, rate, self.window * np.maximum(
            lacks / self._marks(rtt_s), -CUT_MAX / rtt_s))
        self._starts(step_s, lacks, mark * rate, rtt_s)
        self.window += grows * step_s * active
        np.maximum(self.window, WINDOW_MIN, out=self.window)

    def _marks(self, rtt_s):
        """k of each, marks."""
        answer_s = rtt_s + np.where(
            self.window < SMALL_PKTS, rtt_s / self.window *
            (ANSWER_PKTS + ANSWER_MARKED_PKTS * self.marked), 0.0)
        return np.maximum(MARKS, self.wtp * np.maximum(TIME_S,
                                                       ROUNDS * answer_s))

    def _starts(self, step_s, lacks, marks_per_s, rtt_s):
        """Slow starts that end."""
        on = self.starting
        self.due += np.where(on, marks_per_s * step_s, 0.0)
        self.balance = np.where(on, np.minimum(self.balance + lacks * step_s,
                                               self.wtp * rtt_s + 1), 0.0)
        charged = on & (self.balance < -1)
        late = on & ~charged & (rtt_s > self.least_rtt_s + np.maximum(
            self.least_rtt_s / 8, LATER_S))
        self.window[charged] /= 2
        self.window[late] *= 0.75
        self.starting = on & ~charged & ~late & (self.due < 1)
