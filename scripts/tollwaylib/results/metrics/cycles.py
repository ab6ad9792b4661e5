# SPDX-License-Identifier: GPL-2.0
"""Metrics of rate cycles (ALPHA III.B) and of the gains of their sources."""

import numpy as np

from ...theory.rate_cycle import RateCycle
from ..fields import mean_or_none
from .queues import samples_within
from .transfers import retransmits

# The unit in which a source reports its gain, see tcp_alpha(7): packets/s per ms.
GAIN_SCALE = 256 / 1000


def cycles(data, words):
    """[(largest backlog, packets; drops)] of the cycles of a link that begin and end in the
    window of a metric. As in the law alpha, a cycle lasts from a queue above `high` to one of
    half of that. Cycles before number `skip` are left out."""
    found = samples_within(data, words, "backlog_pkts", "drops")
    if found is None:
        return []
    _, backlog, drops = found
    high = data.values["high"]
    above, below = backlog > high, backlog <= high // 2
    made, place = [], 0
    while place < len(backlog):
        starts = np.flatnonzero(above[place:])
        if not len(starts):
            break
        start = place + starts[0]
        ends = np.flatnonzero(below[start:])
        if not len(ends):
            break
        place = start + ends[0]
        # What is in progress as the window begins did not begin there.
        if start:
            made.append((backlog[start:place].max(),
                         drops[place] - drops[start - 1]))
    return made[words.get("skip", 0):]


def cycle_count(data, words):
    """The number of cycles in the window of a metric, without those before number `skip`."""
    return len(cycles(data, words))


def of_cycles(function):
    """A metric: the function of the largest backlogs of cycles, packets."""
    def kind(data, words):
        made = cycles(data, words)
        return float(function([size for size, _ in made])) if made else None
    return kind


def first_cycle(data, words):
    """The largest backlog of the first cycle, packets."""
    made = cycles(data, words)
    return float(made[0][0]) if made else None


def cycle_drops(data, words):
    """Mean number of drops of a cycle."""
    return mean_or_none(drops for _, drops in cycles(data, words))


def drops_after(data, words):
    """Drops of all cycles from number `skip` on."""
    made = cycles(data, words)
    return float(sum(drops for _, drops in made)) if made else None


def fluid(what):
    """A metric: the value of theory for a case of one source with a constant gain. what: an
    attribute of RateCycle, or a method of it that takes the limit of the queue."""
    def kind(data, words):
        values = data.values
        cycle = RateCycle(
            data.capacity_pps(words["link"]), values["rtt_ms"] / 1000,
            values["gain"], values["high"], values["high"] // 2)
        value = getattr(cycle, what)
        return value(values["limit"]) if callable(value) else value
    return kind


def received(data, words):
    """Packets that the receivers of a role have acknowledged."""
    return sum(flow["final"]["bytes_acked"] for flow in
               data.of_role(words.get("role"))) / data.mss


def _gains(data, words):
    """The gain of each flow at the times of the first flow's samples, packets/s^2; None if the
    sources have no gain."""
    start, stop = data.window(words)
    flows = [flow.get("samples") for flow in data.of_role(words.get("role"))]
    if not flows or not all(one and any(one.get("cc_pacing_gain", ()))
                            for one in flows):
        return None
    times = np.asarray(flows[0]["t_s"], dtype=float)
    times = times[(times >= start) & (times <= stop)]
    return np.array([np.interp(times, one["t_s"], one["cc_pacing_gain"])
                     for one in flows]) / GAIN_SCALE if len(times) else None


def gain_sum(function):
    """A metric: the function of the sum of all gains, packets/ms^2, for a paper whose link has
    `mu` packets/ms."""
    def kind(data, words):
        gains = _gains(data, words)
        if gains is None:
            return None
        faster = 1e3 * words["mu"] / data.capacity_pps(words["link"])
        return float(function(gains.sum(axis=0))) * 1e-6 * faster ** 2
    return kind


def gain_jain(data, words):
    """phi of the gains, ALPHA definition 3, at the end of a window."""
    gains = _gains(data, words)
    if gains is None:
        return None
    last = gains[:, -1]
    return float(last.sum() ** 2 / len(last) / (last ** 2).sum())


def paper_ms(data, words):
    """Time of the transfers of a role, for a link of `mu` packets/ms."""
    ends = [data.completion_s(flow) for flow in data.of_role(words["role"])]
    value = mean_or_none(ends)
    return None if value is None else \
        value * data.capacity_pps(words["link"]) / words["mu"]


def resent_kbytes(data, words):
    """Retransmitted data in kB, with packets of `bytes`."""
    return retransmits(data, words) * words["bytes"] / 1000
