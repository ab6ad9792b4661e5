# SPDX-License-Identifier: GPL-2.0
"""Sources and queues of CP05 as fluids, without packets, kernel and random numbers.

A source has a window W and sends at the rate x = W/RTT, with the round-trip time of its path
and of the queues on it. A queue grows by the input beyond its rate. Its price is
gamma (b - b0), and it marks the fraction 1 - exp(-price). Sources know marks one propagation
round trip later. The mean effect of an acknowledgement (CP05 4.2.3, 5.1.2, 5.1.3) is then

    direct  dW/dt = kappa (w - x p), p = -ln(1 - q) or q, where q is the mean of the marks
            over the last 1/history_gain packets (estimator log), or the present marks
            (estimator raw)
    aimd    dW/dt = kappa ((1 - m) w - m x)

In slow start dW/dt = x, until one mark is due; then the window is halved. All links of a
path get the rate of its source at the same time. Sources do not respond to losses.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..errors import TollwayError

# The shortest round trip has so many steps.
STEPS_PER_RTT = 6
LARGEST_STEP_S = 0.001
FORMS = ("log", "raw", "aimd")


@dataclass(frozen=True)
class Setting:
    """Settings of sources and queues. form: one of FORMS, how a source uses marks. kappa: per
    segment; kappa_young, young_s: see tcp_sbrm(7). target, limit: packets; gamma: price per
    packet."""
    form: str
    kappa: float
    target: float
    gamma: float
    limit: float
    history_gain: float = 1 / 64
    kappa_young: float = 0.0
    young_s: float = 4.0
    first_window: float = 1.0
    slow_start: bool = True

    def sources(self, wtp, start_s):
        """Sources with a willingness to pay in packets/s each. Raises TollwayError if there is
        no fluid model of this form."""
        if self.form not in FORMS:
            raise TollwayError(f"there is no fluid model of {self.form}")
        return Sources(self, wtp, start_s)

    def queues(self, capacity_pps):
        """Queues of links with these rates."""
        return Queues(self)


class Queues:
    """Prices of queues by the law sbrm."""

    def __init__(self, setting):
        self.setting = setting

    def price(self, backlog, served, step_s):
        """Prices after a step. backlog: packets."""
        return self.setting.gamma * np.maximum(backlog - self.setting.target,
                                               0.0)


class Sources:
    """Windows of sources that step by kappa: arrays with a value for each."""

    def __init__(self, setting, wtp, start_s):
        self.setting, self.wtp, self.start_s = setting, wtp, start_s
        self.window = np.full(len(wtp), float(setting.first_window))
        self.marked, self.due = np.zeros((2, len(wtp)))
        self.starting = np.full(len(wtp), setting.slow_start)

    def pace_s(self, rtt_s):
        """The round trip by which a window becomes a rate."""
        return rtt_s

    def advance(self, step_s, now, active, rate, rtt_s, price):
        """A step: rate in packets/s, and the price that marks of now were made
        by."""
        mark = -np.expm1(-price)
        self.due += np.where(self.starting, mark * rate * step_s, 0.0)
        ended = self.starting & (self.due >= 1)
        self.window[ended] /= 2
        # What slow start saw says little of the price after it.
        self.marked[ended] = mark[ended]
        self.starting &= ~ended
        self.marked += np.minimum(self.setting.history_gain * rate * step_s,
                                  1.0) * (mark - self.marked)
        self.window += np.where(self.starting, rate, self._change(
            rate, mark, now - self.start_s)) * step_s * active
        np.maximum(self.window, 1.0, out=self.window)

    def _change(self, rate, mark, age_s):
        """dW/dt of each source after its slow start."""
        setting, kappa = self.setting, self.setting.kappa
        if setting.kappa_young > kappa:
            kappa = kappa + (setting.kappa_young - kappa) / (
                1 + np.square(2 * age_s / setting.young_s))
        if setting.form == "aimd":
            return kappa * ((1 - mark) * self.wtp - mark * rate)
        price = mark if setting.form == "raw" else -np.log1p(
            -np.minimum(self.marked, 1 - 1e-9))
        return kappa * (self.wtp - rate * price)


def simulate(capacity_pps, flows, setting, duration_s, flow_sample_s,
             queue_sample_s, progress=lambda seconds: None):
    """The course of a network of fluids.

    capacity_pps: {link: packets/s}. flows: list of (links, w in packets/s,
    start s, stop s, round trip s without queues). setting: a Setting here, or
    the one of relative.py. progress: called now and then with the seconds that
    are done.

    Returns (links, flows). links: {link: {"t_s", "backlog_pkts", "packets",
    "marks", "drops"}}, the last three counted from the start; flows: for each
    {"t_s", "acked_pkts", "cwnd", "rtt_s"}, from its start to its stop. All
    values are lists of floats.
    """
    names = list(capacity_pps)
    uses = np.array([[name in links for name in names]
                     for links, *_ in flows], dtype=float)
    wtp, start, stop, base = (np.array(column, dtype=float)
                              for column in list(zip(*flows))[1:])
    capacity = np.array([capacity_pps[name] for name in names], dtype=float)
    step_s = min(LARGEST_STEP_S, base.min() / STEPS_PER_RTT)
    steps = math.ceil(duration_s / step_s)
    lag = np.maximum(np.rint(base / step_s).astype(int), 1)
    past = np.zeros((lag.max() + 1, len(names)))
    sources, queues = setting.sources(wtp, start), setting.queues(capacity)
    acked = np.zeros(len(flows))
    backlog, sent, marks, drops = np.zeros((4, len(names)))
    links_seen, flows_seen = [], []
    next_link = next_flow = 0.0

    for number in range(steps + 1):
        now = number * step_s
        rtt = base + uses @ (backlog / capacity)
        if now >= next_link - step_s / 2:
            links_seen.append((now, *(column.copy() for column in
                                      (backlog, sent, marks, drops))))
            next_link += queue_sample_s
        if now >= next_flow - step_s / 2 or number == steps or \
                np.any((stop <= now) & (stop > now - step_s)):
            flows_seen.append((now, acked.copy(), sources.window.copy(), rtt))
            if now >= next_flow - step_s / 2:
                next_flow += flow_sample_s
            progress(now)
        active = (now >= start) & (now < stop)
        rate = np.where(active, sources.window / sources.pace_s(rtt), 0.0)
        seen = past[(number - lag) % len(past)]
        sources.advance(step_s, now, active, rate, rtt,
                        (seen * uses).sum(axis=1))
        came = uses.T @ rate * step_s
        there = backlog + came
        served = np.minimum(there, capacity * step_s)
        backlog = np.minimum(there - served, setting.limit)
        lost = there - served - backlog
        drops += lost
        # What a queue drops is not acknowledged, and is sent again in its turn.
        kept = 1 - lost / np.maximum(came, 1e-12)
        acked += rate * step_s * np.where(uses > 0, kept, 1.0).prod(axis=1)
        sent += served
        price = queues.price(backlog, served, step_s)
        marks += served * -np.expm1(-price)
        past[number % len(past)] = price
    return (_links_of(names, links_seen), _flows_of(start, stop, flows_seen))


def _links_of(names, seen):
    times, *columns = zip(*seen)
    return {name: {"t_s": list(times), **{
        key: [float(row[index]) for row in column] for key, column in
        zip(("backlog_pkts", "packets", "marks", "drops"), columns)}}
        for index, name in enumerate(names)}


def _flows_of(start, stop, seen):
    found = []
    for index, (first, last) in enumerate(zip(start, stop)):
        rows = [row for row in seen if first <= row[0] <= last + LARGEST_STEP_S]
        found.append({"t_s": [row[0] for row in rows], **{
            key: [float(row[column][index]) for row in rows] for column, key
            in enumerate(("acked_pkts", "cwnd", "rtt_s"), start=1)}})
    return found
