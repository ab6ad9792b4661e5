# SPDX-License-Identifier: GPL-2.0
"""Second-order rate control in formulas (ALPHA III.B, IV and V).

The units are packets, ms and packets/ms, or any other consistent set. mu: rate of the link;
tau: round-trip time; alpha: the sum of the gains of all sources; high, low: thresholds of
the queue; room: packets that the queue can hold.

The page with the time constant of the decrease is missing. It is D = mu/alpha: this follows
from RDP = exp(-RIR/BW_EST), and no other value reproduces ALPHA's examples (see
test_theory.py).
"""

import math
from dataclasses import dataclass

from ..errors import TollwayError
from .measures import jain_index


def _root(function, least, most):
    """Where a function of opposite signs at its ends is zero."""
    # It takes longer to import than most commands take.
    from scipy.optimize import brentq
    return brentq(function, least, most)


@dataclass(frozen=True)
class RateCycle:
    """A cycle of the rate with a gain that is the same before and after it."""
    mu: float
    tau: float
    alpha: float
    high: float
    low: float = 0.0

    def __post_init__(self):
        if min(self.mu, self.tau, self.alpha) <= 0 or \
                not 0 <= self.low <= self.high:
            raise TollwayError("a rate cycle needs a rate, a round trip and a "
                               "gain above 0, and thresholds in order")

    @property
    def decay(self):
        """D = Delta/(1 - beta), of the exponential decrease."""
        return self.mu / self.alpha

    @property
    def rise(self):
        """T_max (5): from R = mu up to the largest rate."""
        return math.sqrt(2 * self.high / self.alpha) + self.tau

    @property
    def largest_rate(self):
        """R_max (4)."""
        return self.mu + self.alpha * self.rise

    @property
    def fall(self):
        """T_d (7): from the largest rate down to mu."""
        return self.decay * math.log(self.largest_rate / self.mu)

    @property
    def largest_queue(self):
        """Q_max (6), (8), of a queue with room for all of it."""
        return self.alpha / 2 * self.rise ** 2 + self.largest_rate * \
            self.decay * -math.expm1(-self.fall / self.decay) - \
            self.mu * self.fall

    @property
    def drain(self):
        """T_l (9), (10): from the largest queue down to the lower threshold."""
        held = (self.largest_queue - self.low) / (self.mu * self.decay)

        def missing(part):
            return math.expm1(-part) + part - held
        return self.decay * _root(missing, 0, held + 1)

    @property
    def least_rate(self):
        """R_min (11)."""
        return self.mu * math.exp(-(self.drain + self.tau) / self.decay)

    @property
    def recovery(self):
        """T_r: from the least rate up to mu."""
        return (self.mu - self.least_rate) / self.alpha

    @property
    def duration(self):
        """T (12)."""
        return self.rise + self.tau + self.fall + self.drain + self.recovery

    @property
    def mean_rate(self):
        """(13), (14): of what is sent, over the cycle."""
        falling = self.fall + self.drain + self.tau
        sent = self.mu * self.rise + self.alpha / 2 * self.rise ** 2 + \
            self.largest_rate * self.decay * \
            -math.expm1(-falling / self.decay) + \
            self.recovery * (self.least_rate + self.mu) / 2
        return sent / self.duration

    def full_at(self, room):
        """t_xi (17), (19), (20): from R = mu until the queue is full; None where
        it never is."""
        if room >= self.largest_queue:
            return None
        if room <= self.alpha / 2 * self.rise ** 2:
            return math.sqrt(2 * room / self.alpha)

        def missing(time):
            return self.alpha / 2 * self.rise ** 2 + self.largest_rate * \
                self.decay * -math.expm1(-time / self.decay) - \
                self.mu * time - room
        return self.rise + _root(missing, 0, self.fall)

    def lost(self, room):
        """rho (16): packets of a cycle."""
        full = self.full_at(room)
        if full is None:
            return 0.0
        if full <= self.rise:
            return self.alpha / 2 * (self.rise ** 2 - full ** 2) - \
                self.mu * self.fall + self.largest_rate * self.decay * \
                -math.expm1(-self.fall / self.decay)
        later = full - self.rise
        return self.mu * (later - self.fall) + self.largest_rate * \
            self.decay * (math.exp(-later / self.decay) -
                          math.exp(-self.fall / self.decay))

    def loss(self, room):
        """gamma (15): the share of what is sent that is lost."""
        return self.lost(room) / (self.duration * self.mean_rate)

    def efficiency(self, room):
        """eta (15)."""
        return 1 - self.loss(room)


def gain_for(goal, mu, tau, high, most=1e6):
    """The gain with which the largest queue is `goal`; TollwayError where none
    is: it is above 2 high however small the gain."""
    def missing(alpha):
        return RateCycle(mu, tau, alpha, high).largest_queue - goal
    least = 1e-9 * mu / tau
    if missing(least) > 0 or missing(most) < 0:
        raise TollwayError(f"no gain has a largest queue of {goal:g}")
    return _root(missing, least, most)


def next_gains(gains, bcn, last_bcn, gip, gdp):
    """Rule (3) of all sources, who see the same BCN.

    gip: p of one source; gdp: q.
    """
    if bcn:
        return [gdp * gain for gain in gains]
    if last_bcn:
        return [gain / gdp for gain in gains]
    return [gain + gip for gain in gains]


def replay(gains, targets, gip, gdp, last_bcn=False):
    """ALPHA V, example 1: gains after each cycle, from those at the beginning.

    targets: of each cycle, the sum of gains whose largest queue is the goal.
    """
    found = [list(gains)]
    for target in targets:
        bcn = sum(found[-1]) > target
        found.append(next_gains(found[-1], bcn, last_bcn, gip, gdp))
        last_bcn = bcn
    return found


def replay_aimd(gain, targets, gip, gdp):
    """ALPHA V, example 2: the sum of gains without the 1/q of rule (3)."""
    found = [gain]
    for target in targets:
        found.append(gdp * found[-1] if found[-1] > target
                     else found[-1] + gip)
    return found


def gain_fairness(gains):
    """phi (24) of gains: theorem 2's, which a factor does not change and each p
    brings nearer to 1 (28)."""
    return jain_index(gains)


def converges(increase, decrease):
    """Theorem 2: do alpha(k+1) = p + q alpha(k), with (p, q) below the goal and
    (p, q) above it, come to the goal and to equal gains from anywhere (32)?"""
    (p_up, q_up), (p_down, q_down) = increase, decrease
    return q_up == 1 and p_up > 0 and p_down == 0 and 0 < q_down < 1


def keeps(increase, decrease):
    """Theorem 2: do they stay there, once there (34), (35)?"""
    (p_up, q_up), (p_down, q_down) = increase, decrease
    return p_up == p_down == 0 and 0 < q_down < 1 and \
        math.isclose(q_up * q_down, 1)
