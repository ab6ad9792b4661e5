# SPDX-License-Identifier: GPL-2.0
"""Sources and queues of CP05 as fluids: no packets, no kernel, no chance.

A source has a window W and sends x = W/RTT, with the round trip of its path and
of the queues on it. A queue fills by what comes beyond its rate, and has the
price gamma (b - b0), and marks the part 1 - exp(-price). Marks are known one
propagation round trip later. The mean of what an acknowledgement does (CP05
4.2.3, 5.1.2, 5.1.3) then gives

    direct  dW/dt = kappa (w - x p), p = -ln(1 - q) or q, where q is the mean of
            the marks over the last 1/history_gain packets (estimator log), or
            the marks of now (estimator raw)
    aimd    dW/dt = kappa ((1 - m) w - m x)

In slow start dW/dt = x, until one mark is due, where the window is halved. All
links on a path see what its source sends at the same time; nobody reacts to a
loss.
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
    """What sources and queues are set to. form: of FORMS, what a source makes
    of marks. kappa: per segment; kappa_young, young_s: see tcp_sbrm(7).
    target, limit: packets; gamma: price per packet."""
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


def simulate(capacity_pps, flows, setting, duration_s, flow_sample_s,
             queue_sample_s, progress=lambda seconds: None):
    """The course of a network of fluids.

    capacity_pps: {link: packets/s}. flows: list of (links, w in packets/s,
    start s, stop s, round trip s without queues). progress: called now and
    then with the seconds that are done.

    Returns (links, flows). links: {link: {"t_s", "backlog_pkts", "packets",
    "marks", "drops"}}, the last three counted from the start; flows: for each
    {"t_s", "acked_pkts", "cwnd", "rtt_s"}, from its start to its stop. All
    values are lists of floats.
    """
    if setting.form not in FORMS:
        raise TollwayError(f"there is no fluid model of {setting.form}")
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
    window = np.full(len(flows), float(setting.first_window))
    marked = np.zeros(len(flows))
    due = np.zeros(len(flows))
    starting = np.full(len(flows), setting.slow_start)
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
        if now >= next_flow - step_s / 2:
            flows_seen.append((now, acked.copy(), window.copy(), rtt))
            next_flow += flow_sample_s
            progress(now)
        active = (now >= start) & (now < stop)
        rate = np.where(active, window / rtt, 0.0)
        seen = past[(number - lag) % len(past)]
        mark = -np.expm1(-(seen * uses).sum(axis=1))

        due += np.where(starting, mark * rate * step_s, 0.0)
        ended = starting & (due >= 1)
        window[ended] /= 2
        # What slow start saw says little of the price after it.
        marked[ended] = mark[ended]
        starting &= ~ended
        marked += np.minimum(setting.history_gain * rate * step_s, 1.0) \
            * (mark - marked)
        window += np.where(starting, rate, _change(
            setting, wtp, rate, mark, marked, now - start)) * step_s * active
        np.maximum(window, 1.0, out=window)
        acked += rate * step_s

        there = backlog + uses.T @ rate * step_s
        served = np.minimum(there, capacity * step_s)
        backlog = np.minimum(there - served, setting.limit)
        drops += there - served - backlog
        sent += served
        price = setting.gamma * np.maximum(backlog - setting.target, 0.0)
        marks += served * -np.expm1(-price)
        past[number % len(past)] = price
    return (_links_of(names, links_seen), _flows_of(start, stop, flows_seen))


def _change(setting, wtp, rate, mark, marked, age_s):
    """dW/dt of each source after its slow start."""
    kappa = setting.kappa
    if setting.kappa_young > kappa:
        kappa = kappa + (setting.kappa_young - kappa) / (
            1 + np.square(2 * age_s / setting.young_s))
    if setting.form == "aimd":
        return kappa * ((1 - mark) * wtp - mark * rate)
    price = mark if setting.form == "raw" else -np.log1p(
        -np.minimum(marked, 1 - 1e-9))
    return kappa * (wtp - rate * price)


def _links_of(names, seen):
    times, *columns = zip(*seen)
    return {name: {"t_s": list(times), **{
        key: [float(row[index]) for row in column] for key, column in
        zip(("backlog_pkts", "packets", "marks", "drops"), columns)}}
        for index, name in enumerate(names)}


def _flows_of(start, stop, seen):
    found = []
    for index, (first, last) in enumerate(zip(start, stop)):
        rows = [row for row in seen if first <= row[0] <= last]
        found.append({"t_s": [row[0] for row in rows], **{
            key: [float(row[column][index]) for row in rows] for column, key
            in enumerate(("acked_pkts", "cwnd", "rtt_s"), start=1)}})
    return found
