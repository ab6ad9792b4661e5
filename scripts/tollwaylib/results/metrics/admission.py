# SPDX-License-Identifier: GPL-2.0
"""Metrics of packets whose time through the network was measured, and of admission.

Delays and limits are in packet times of the bottleneck, as in AACC. A packet that never
left the network, or was dropped in it, has an infinite delay.
"""

import numpy as np

from ...errors import TollwayError
from ...theory import measures
from ..fields import mean_or_none

ETHERNET_HEADER_BYTES = 14


def _passages(case, role=None):
    """(raw passages, those of the flows of a role) of a raw case."""
    found = case.get("passages")
    if not found:
        raise TollwayError(f"{case['name']} has no timed packets")
    wanted = [str(flow["id"]) for flow in case["flows"]
              if role in (None, flow["role"])]
    return found, [found["flows"][name] for name in wanted
                   if name in found["flows"]]


def _upto(found, flows, limit):
    """Number of packets with at most this delay, which is an edge of a bin."""
    last = int(np.searchsorted(found["edges"], limit + 1e-9, side="right"))
    return sum(sum(flow["counts"][:last]) for flow in flows)


def _entered(flows):
    return sum(flow["entered"] for flow in flows)


def in_time_share(data, words):
    """Packets that crossed the network within the limit, divided by what the link can carry."""
    found, flows = _passages(data.case, words.get("role"))
    window_s = found["to_s"] - found["from_s"]
    if window_s <= 0:
        return None
    in_time = _upto(found, flows, data.parameters["time_limit"])
    return in_time * found["unit_s"] / window_s


def late_part(data, words):
    """Fraction of the packets that entered and took longer than the limit."""
    found, flows = _passages(data.case, words.get("role"))
    entered = _entered(flows)
    in_time = _upto(found, flows, data.parameters["time_limit"])
    return 1 - in_time / entered if entered else None


def delay_units(data, words):
    """Mean delay of the packets that left the network."""
    _, flows = _passages(data.case, words.get("role"))
    left = sum(flow["left"] for flow in flows)
    return sum(flow["delay_sum"] for flow in flows) / left if left else None


def _limit_of(case, part):
    """The smallest limit that at most this fraction of the packets exceeds; None if there is
    none."""
    found, flows = _passages(case)
    entered = _entered(flows)
    for limit in found["edges"] if entered else ():
        if entered - _upto(found, flows, limit) <= part * entered:
            return float(limit)
    return None


def build_out_units(data, words):
    """The build-out delay of AACC 4.2: the smallest limit of a case for a given loss."""
    return _limit_of(data.case, words["part"])


def loss_at_build_out(data, words):
    """The loss with the largest build-out delay of all cases of a series."""
    limits = [_limit_of(case, words["part"]) for case in data.raw["cases"]
              if case["series"] == words["series"]]
    if not limits or None in limits:
        return None
    found, flows = _passages(data.case)
    entered = _entered(flows)
    return 1 - _upto(found, flows, max(limits)) / entered if entered else None


def _traces(data):
    """(times, beta) of each gate of a case that has some."""
    return [(np.asarray(trace["t_s"], dtype=float),
             np.asarray(trace["beta"], dtype=float))
            for program in data.case.get("programs", {}).values()
            for trace in program["output"].values() if trace.get("beta")]


def beta_mean(data, words):
    """Mean beta of all gates in a window; None without a gate."""
    start, stop = data.window(words)
    values = [beta[(times >= start) & (times < stop)]
              for times, beta in _traces(data)]
    return mean_or_none(float(value.mean()) if len(value) else None
                        for value in values)


def _offered(data):
    """When the offered sum of modulated sources changes, and to what part of the link's rate."""
    offered = [flow["final"]["mmpp"] for flow in data.case["flows"]]
    sums = sum(np.asarray(one["rate_bps"], dtype=float) for one in offered)
    # The rates leave the Ethernet header out, which the link's has.
    wire = data.packet_bytes / (data.packet_bytes - ETHERNET_HEADER_BYTES)
    return np.asarray(offered[0]["t_s"], dtype=float), \
        sums * wire / next(iter(data.links.values()))["capacity_bps"]


def low_s(data, words):
    """The time in which the offered sum is below a level of the link's rate."""
    start, stop = data.window(words)
    times, parts = _offered(data)
    ends = np.append(times[1:], times[-1])
    spans = np.clip(ends, start, stop) - np.clip(times, start, stop)
    return float(spans[parts < words["below"]].sum())


def held_s(data, words):
    """The part of low_s in which beta is below 1, a mean over the gates; None without one.

    Each sample of beta stands for the time until the next one. Before the first one a gate
    has what it starts with, and counts as one that holds packets back."""
    start, stop = data.window(words)
    times, parts = _offered(data)
    stop = min(stop, times[-1])
    held = []
    for at_s, beta in _traces(data):
        # Everything that changes, and what is there from then on.
        marks = np.unique(np.clip(np.concatenate((at_s, times, [start, stop])), start, stop))
        low = parts[np.searchsorted(times, marks[:-1], side="right") - 1] < words["below"]
        place = np.searchsorted(at_s, marks[:-1], side="right") - 1
        closed = (place < 0) | (beta[place] < 1)
        held.append(float(np.diff(marks)[low & closed].sum()))
    return mean_or_none(held)


def admitted_jain(data, _words):
    """Jain's index of the numbers of packets of each flow that entered the network."""
    _, flows = _passages(data.case)
    counts = [flow["entered"] for flow in flows]
    return measures.jain_index(counts) if sum(counts) else None


def gate_drops(data, _words):
    """Packets dropped at the gates; None without a gate."""
    drops = [trace["dropped_packets"][-1]
             for program in data.case.get("programs", {}).values()
             for trace in program["output"].values()
             if trace.get("dropped_packets")]
    return sum(drops) if drops else None
