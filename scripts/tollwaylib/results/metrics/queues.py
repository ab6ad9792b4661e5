# SPDX-License-Identifier: GPL-2.0
"""Metrics of links and queues."""

import statistics

import numpy as np

from ...components.pp import ESTIMATE_SCALE
from ...theory import measures
from ..fields import mean_or_none
from ..measurements import EPSILON, number_of
from .transfers import retransmits, units_of


def drops(data, words):
    """Packets that queues dropped: those of `link`, or of all links. Without words it is the
    number in the whole case, as the queues counted it; with words the number in the window,
    None if a queue has fewer than two samples there."""
    if not words:
        return sum(queue["stats_at_end"]["drops"]
                   for queue in data.case["queues"].values())
    found = [samples_within(data, {**words, "link": link}, "drops")
             for link in ([words["link"]] if "link" in words else
                          data.case["queues"])]
    return None if None in found else sum(
        drops[-1] - drops[0] for _, drops in found)


def loss_rate(data, words):
    """Drops of the queue of a source, per 1000 time units of its transfer."""
    rates = []
    for flow in data.of_role(words["role"]):
        units, drops = units_of(data, flow), _class_drops(data, flow)
        rates.append(None if None in (units, drops)
                     else 1000 * drops / units)
    return mean_or_none(rates)


def _class_drops(data, flow):
    total = 0
    for link in data.paths[flow["path"]]["links"]:
        classes = data.case["queues"][link].get("classes")
        if not classes:
            return None
        seen = classes.get(data.classes[flow["path"]])
        total += max(seen["drops"]) if seen and seen["drops"] else 0
    return total


def losses_each(data, words):
    """Mean number of packets that the queues of a flow of a role dropped, in the whole case;
    None if the queues have no classes."""
    drops = [_class_drops(data, flow) for flow in
             data.of_role(words.get("role"))]
    return mean_or_none(drops)


def sent_needlessly(data, words):
    """Retransmitted packets of a role, minus the packets that its queues dropped; None if no
    queue has classes."""
    drops = [_class_drops(data, flow) for flow in data.of_role(words["role"])]
    return None if None in drops else retransmits(data, words) - sum(drops)


def samples_within(data, words, *columns):
    """Samples of a queue in the window of a metric: (times, each of the columns), or None if
    there are fewer than two."""
    link = words.get("link") or next(iter(data.case["queues"]))
    samples = data.queue(link, *columns)
    start, stop = data.window(words)
    there = (samples[0] >= start - EPSILON) & (samples[0] <= stop + EPSILON)
    if there.sum() < 2:
        return None
    return tuple(column[there] for column in samples)


def of_backlog(function):
    """A metric: the function of the backlogs of a link in a window, packets; None if there are
    fewer than two samples."""
    def kind(data, words):
        found = samples_within(data, words, "backlog_pkts")
        return None if found is None else float(function(found[1]))
    return kind


def of_delay(function):
    """A metric: the function of the time in which the link sends the content of its queue, ms.
    The content is in bytes, because some queues count a super-packet as one packet."""
    def kind(data, words):
        found = samples_within(data, words, "backlog_bytes")
        return None if found is None else float(function(
            8e3 * found[1] / data.queues[words["link"]].rate.at(found[0])))
    return kind


def utilization(data, words):
    """What a link sent in a window, with headers, divided by what it can carry at its rate at
    each time (1: all of it); None if there are fewer than two samples."""
    found = samples_within(data, words, "bytes")
    if found is None:
        return None
    times, sent = found
    rate = 8 * (sent[-1] - sent[0]) / (times[-1] - times[0])
    return rate / data.queues[words["link"]].rate.mean(times[0], times[-1])


def full_at(data, words):
    """Round trips from the first data to the end of the first window (of so many time units)
    in which the utilisation of the link reaches a level."""
    times, sent = data.queue(words["link"], "bytes")
    start = min(flow["start_s"] for flow in data.of_role())
    width_s = words["units"] * data.rtt_s / 100
    capacity = data.links[words["link"]]["capacity_bps"] / 8
    ends = np.arange(start + width_s, data.duration_s, width_s)
    used = (np.interp(ends, times, sent) -
            np.interp(ends - width_s, times, sent)) / width_s / capacity
    full = np.flatnonzero(used >= words["level"])
    return float((ends[full[0]] - start) / data.rtt_s) if len(full) else None


def _class_values(data, words):
    """The backlog of each flow's own queue in the window; None if no queue has classes."""
    start, stop = data.window(words)
    values = []
    for flow in data.of_role(words.get("role")):
        own = data.own_queues(flow)
        if own is None:
            return None
        times, backlog = own
        there = (times >= start) & (times <= stop)
        values.append(backlog[there])
    return values if values and all(map(len, values)) else None


def class_mean(data, words):
    """Mean of the mean backlogs of each flow's own queue in a window, packets; None if no queue
    has classes."""
    values = _class_values(data, words)
    return values and statistics.fmean(float(one.mean()) for one in values)


def class_peak(data, words):
    """The largest number of packets of a flow of a role in its queue during the case, as the
    queue counted it. Samples would miss short peaks."""
    peaks = []
    for flow in data.of_role(words.get("role")):
        for link in data.paths[flow["path"]]["links"]:
            counted = data.case["queues"][link].get("class_peaks", {})
            peaks.append(counted.get(data.classes[flow["path"]]))
    return None if None in peaks or not peaks else max(peaks)


def class_jain(data, words):
    """Jain's index of the mean backlogs of each flow's own queue in a window; None if no queue
    has classes, or if all were empty."""
    values = _class_values(data, words)
    means = values and [float(one.mean()) for one in values]
    return measures.jain_index(means) if means and max(means) > 0 else None


def estimate_error(data, words):
    """Largest |mean estimate - mean own backlog| of a flow, packets, for congestion controls
    that report an estimate."""
    start, stop = data.window(words)
    worst = None
    for flow in data.of_role(words.get("role")):
        samples, own = flow.get("samples"), data.own_queues(flow)
        if not samples or own is None or not any(
                samples.get("cc_rate_bps", ())):
            return None
        told = [value / ESTIMATE_SCALE for t, value in
                zip(samples["t_s"], samples["cc_pacing_gain"])
                if start <= t <= stop]
        there = (own[0] >= start) & (own[0] <= stop)
        if not told or not there.any():
            return None
        error = abs(statistics.fmean(told) - float(own[1][there].mean()))
        worst = error if worst is None else max(worst, error)
    return worst


def measure_link(run, queue):
    """The numbers of a link (dict, see result.schema.json) from the end of the warm-up to the
    end of the run. run: CaseData. queue: one of its queues. Rates are in bit/s, backlogs in
    packets and ms, marks and drops in packets."""
    backlog = queue.backlog_within(run.warmup_s, run.duration_s)
    return {
        "capacity_bps": queue.capacity,
        "utilization": queue.utilization(run.warmup_s, run.duration_s),
        "queue_mean_pkts": float(np.mean(backlog)),
        "queue_p99_pkts": float(np.percentile(backlog, 99)),
        "queue_mean_ms": float(np.mean(backlog)) * run.packet_bytes * 8e3
        / queue.capacity,
        "marks": queue.stat("marks"),
        "drops": queue.stat("drops"),
    }


def min_utilization(run, result):
    """The smallest utilisation of a bottleneck of a result's case (1: all of its rate)."""
    return min(result["links"][name]["utilization"]
               for name in run.bottlenecks)


def max_queue_mean(run, result):
    """The largest mean backlog of a bottleneck of a result's case, packets."""
    return max(result["links"][name]["queue_mean_pkts"]
               for name in run.bottlenecks)


def total_drops(run, result):
    """Packets dropped at all links of a result's case, after the warm-up."""
    return sum(link["drops"] for link in result["links"].values())


def total_drops_whole_run(run, result):
    """Packets dropped at all links from the start of a run on, with its warm-up. run: CaseData."""
    return sum(number_of(queue.raw["stats_at_end"], "drops", queue.where)
               for queue in run.queues.values())


def max_utilization(run, result):
    """The largest utilisation of a bottleneck of a result's case (1: all of its rate)."""
    return max(result["links"][name]["utilization"]
               for name in run.bottlenecks)


def max_pc3_error(run, result):
    """Largest difference of a mean backlog, for links with the law PC3. The price is the sum of
    alpha (b - b0) + y - c over time, and stays finite, so the mean of this term is 0. The
    mean of the input y is what the link sends, u c. From this follows
    b = b0 + (1 - u) c/alpha, with c in packets per interval."""
    target, alpha, interval_us = (
        number_of(run.parameters, name, "parameters")
        for name in ("target", "alpha", "interval_us"))
    worst = 0.0
    for name in run.bottlenecks:
        link = result["links"][name]
        expected = target + (1 - link["utilization"]) / alpha * \
            run.capacity_pps(name) * interval_us / 1e6
        worst = max(worst, abs(link["queue_mean_pkts"] / expected - 1))
    return worst
