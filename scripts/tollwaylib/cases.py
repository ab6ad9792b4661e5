# SPDX-License-Identifier: GPL-2.0
"""From the raw measurements of cases to their result, and from seeds to means.

Everything here is a pure function of raw.json. A case's metrics are those that
its experiment asks for; KINDS has what each kind is. A metric is a number, or
null for what never happened (a transfer that was not finished) or does not
exist for this source or queue. Roles are the experiment's names for flows that
do the same.
"""

import math
import statistics

import numpy as np

from .errors import TollwayError
from .theory import measures

_EPSILON = 1e-9


class CaseData:
    """One raw case, with what its kinds of metrics need."""

    def __init__(self, raw, case):
        self.case, self.paths = case, raw["paths"]
        # As the network was built, but for what the case changed.
        self.links = {**raw["links"], **case.get("links", {})}
        self.mss = raw["mss_bytes"]
        self.packet_bytes = raw["parameters"]["packet_bytes"]
        self.warmup_s = raw["parameters"]["warmup_s"]
        self.rtt_s = case.get("rtt_s")
        self.duration_s = case["duration_s"]
        self.classes = {path: f"10:{number:x}" for number, path in
                        enumerate(self.paths, 1)}

    def flows(self, role=None):
        """The TCP flows of a role, or all."""
        found = [flow for flow in self.case["flows"] if flow["cc"] and
                 role in (None, flow["role"])]
        for flow in found:
            if flow["final"].get("error"):
                raise TollwayError(f"{self.case['name']}: flow {flow['name']} "
                                   f"failed: {flow['final']['error']}")
        return found

    def capacity_pps(self, link):
        return self.links[link]["capacity_bps"] / 8 / self.packet_bytes

    def window(self, words):
        """(from, to) in s that a metric is about."""
        unit = self.rtt_s or 1.0
        start = max(words.get("from_s", words.get("from_rtt", 0) * unit),
                    words.get("from_part", 0) * self.duration_s)
        stop = words.get("to_s", words.get("to_rtt", math.inf) * unit)
        return max(start, self.warmup_s), min(stop, self.duration_s)

    def queue(self, link, *columns):
        """(times, each of the columns) of a link's queue."""
        queue = self.case["queues"][link]
        return tuple(np.asarray(queue[key], dtype=float)
                     for key in ("t_s", *columns))

    def own_queues(self, flow):
        """(times, backlog) of a flow's class, over all links of its path; None
        where no queue has classes."""
        total, times = None, None
        for link in self.paths[flow["path"]]["links"]:
            queue = self.case["queues"][link]
            if "classes" not in queue:
                return None
            times = np.asarray(queue["t_s"], dtype=float)
            held = queue["classes"].get(self.classes[flow["path"]])
            held = np.zeros(len(times)) if held is None else np.asarray(
                held["backlog_pkts"], dtype=float)
            total = held if total is None else total + held
        if not any(queue["classes"] for queue in
                   self.case["queues"].values()):
            return None
        return times, total

    def completion_s(self, flow):
        """s from a transfer's data to its last acknowledgement, or None."""
        transfers = flow["final"].get("transfers") or [{}]
        end_s = transfers[0].get("end_s")
        return None if end_s is None else end_s - flow["start_s"]

    def acked_at(self, flow, times):
        """Bytes acknowledged by then, linear between samples."""
        samples = flow.get("samples") or {"t_s": [], "bytes_acked": []}
        known = [(flow["start_s"], 0.0)]
        known += [(t, acked) for t, acked in
                  zip(samples["t_s"], samples["bytes_acked"])
                  if t > flow["start_s"]]
        times_s, values = zip(*known)
        return np.interp(times, times_s, values)

    def rate_pps(self, flow, start, stop):
        before, after = self.acked_at(flow, [start, stop])
        return (after - before) / self.mss / (stop - start)


# --- kinds of metrics ------------------------------------------------------

def _transfers(data, words):
    """[(completion s or None, optimum s)] of a role."""
    found = [(data.completion_s(flow), flow["optimal_s"])
             for flow in data.flows(words["role"])]
    if not found:
        raise TollwayError(f"{data.case['name']} has no {words['role']}")
    return found


def _mean(values):
    values = list(values)
    return None if None in values or not values else statistics.fmean(values)


def _completion_ms(data, words):
    value = _mean(done for done, _ in _transfers(data, words))
    return None if value is None else 1000 * value


def _optimal_ms(data, words):
    return 1000 * _mean(best for _, best in _transfers(data, words))


def _slowdown(data, words):
    done, best = _completion_ms(data, words), _optimal_ms(data, words)
    return None if done is None else done / best - 1


def _completion_units(data, words):
    value = _completion_ms(data, words)
    return None if value is None else value / 10 / data.rtt_s


def _optimal_units(data, words):
    return _optimal_ms(data, words) / 10 / data.rtt_s


def _last_s(data, _words):
    ends = [data.completion_s(flow) for flow in data.flows()]
    return None if None in ends else max(
        end + flow["start_s"] for end, flow in zip(ends, data.flows()))


def _last_units(data, words):
    value = _last_s(data, words)
    return None if value is None else 100 * value / data.rtt_s


def _finished(data, words):
    return sum(data.completion_s(flow) is not None
               for flow in data.flows(words.get("role")))


def _retransmits(data, words):
    return sum(flow["final"]["retransmits"]
               for flow in data.flows(words.get("role")))


def _loss_part(data, words):
    """Packets sent again, of all that were sent."""
    flows = data.flows(words["role"])
    sent = sum(flow["final"]["bytes_sent"] for flow in flows) / data.mss
    return _retransmits(data, words) / max(sent, 1)


def _goodput_sent(data, _words):
    """PP94 9.3: 1 - retransmissions/packets."""
    packets = sum(flow["packets"] for flow in data.flows())
    return 1 - _retransmits(data, {}) / packets


def _drops(data, words):
    if not words:
        return sum(queue["stats_at_end"]["drops"]
                   for queue in data.case["queues"].values())
    found = [_in_window(data, {**words, "link": link}, "drops")
             for link in data.case["queues"]]
    return None if None in found else sum(
        drops[-1] - drops[0] for _, drops in found)


def _units_of(data, flow):
    done = data.completion_s(flow)
    return None if done is None else done / data.rtt_s * 100


def _loss_rate(data, words):
    """Drops of a source's class per 1000 time units of its transfer."""
    rates = []
    for flow in data.flows(words["role"]):
        units, drops = _units_of(data, flow), _class_drops(data, flow)
        rates.append(None if None in (units, drops)
                     else 1000 * drops / units)
    return _mean(rates)


def _class_drops(data, flow):
    total = 0
    for link in data.paths[flow["path"]]["links"]:
        classes = data.case["queues"][link].get("classes")
        if not classes:
            return None
        seen = classes.get(data.classes[flow["path"]])
        total += max(seen["drops"]) if seen and seen["drops"] else 0
    return total


def _losses_each(data, words):
    drops = [_class_drops(data, flow) for flow in
             data.flows(words.get("role"))]
    return _mean(drops)


def _sent_needlessly(data, words):
    """Packets of a role that were sent again, less those that its classes lost;
    None where no queue has classes."""
    drops = [_class_drops(data, flow) for flow in data.flows(words["role"])]
    return None if None in drops else _retransmits(data, words) - sum(drops)


def _retransmission_rate(data, words):
    rates = []
    for flow in data.flows(words["role"]):
        units = _units_of(data, flow)
        rates.append(None if units is None else
                     1000 * flow["final"]["retransmits"] / units)
    return _mean(rates)


def _in_window(data, words, *columns):
    """Samples of a queue in a metric's window: (times, each of the columns), or
    None where there are not two."""
    link = words.get("link") or next(iter(data.case["queues"]))
    samples = data.queue(link, *columns)
    start, stop = data.window(words)
    there = (samples[0] >= start - _EPSILON) & (samples[0] <= stop + _EPSILON)
    if there.sum() < 2:
        return None
    return tuple(column[there] for column in samples)


def _of_backlog(function):
    def kind(data, words):
        found = _in_window(data, words, "backlog_pkts")
        return None if found is None else float(function(found[1]))
    return kind


def _of_delay(function):
    """Of the time that the link takes for what is in its queue, ms. In bytes:
    some queues count a super-packet as one packet."""
    def kind(data, words):
        found = _in_window(data, words, "backlog_bytes")
        return None if found is None else float(function(
            8e3 * found[1] / data.links[words["link"]]["capacity_bps"]))
    return kind


def _utilization(data, words):
    found = _in_window(data, words, "bytes")
    if found is None:
        return None
    times, sent = found
    rate = 8 * (sent[-1] - sent[0]) / (times[-1] - times[0])
    return rate / data.links[words["link"]]["capacity_bps"]


def _full_at(data, words):
    """Round trips from the first data to the end of the first window of so
    many time units in which the link is used to a level."""
    times, sent = data.queue(words["link"], "bytes")
    start = min(flow["start_s"] for flow in data.flows())
    width_s = words["units"] * data.rtt_s / 100
    capacity = data.links[words["link"]]["capacity_bps"] / 8
    ends = np.arange(start + width_s, data.duration_s, width_s)
    used = (np.interp(ends, times, sent) -
            np.interp(ends - width_s, times, sent)) / width_s / capacity
    full = np.flatnonzero(used >= words["level"])
    return float((ends[full[0]] - start) / data.rtt_s) if len(full) else None


def _goodput_share(data, words):
    """Data acknowledged in the window, in packets, of the first link's rate."""
    start, stop = data.window(words)
    flows = data.flows(words.get("role"))
    link = next(iter(data.links))
    return sum(data.rate_pps(flow, start, stop) for flow in flows) \
        / data.capacity_pps(link) if flows else None


def _goodput_each(data, words):
    whole = _goodput_share(data, words)
    return whole and whole / len(data.flows(words["role"]))


def _advantage(data, words):
    """Goodput of a source of a role over an equal part of all goodput."""
    mine = _goodput_each(data, words)
    whole = _goodput_share(data, {**words, "role": None})
    if not mine or not whole:
        return None
    return mine * len(data.flows()) / whole


def _rates(data, words):
    start, stop = data.window(words)
    return [data.rate_pps(flow, start, stop)
            for flow in data.flows(words.get("role"))]


def _whole_rates(data, words):
    """Of those flows that are there for the whole window."""
    start, stop = data.window(words)
    rates = []
    for flow in data.flows(words.get("role")):
        done = data.completion_s(flow)
        ends = flow["stop_s"] if done is None else flow["start_s"] + done
        if flow["start_s"] <= start + _EPSILON and ends >= stop - _EPSILON:
            rates.append(data.rate_pps(flow, start, stop))
    return rates


def _jain(data, words):
    rates = _whole_rates(data, words)
    return measures.jain_index(rates) if rates and max(rates) > 0 else None


def _share_error(data, words):
    """Worst difference of a flow's rate from an equal part of what all get."""
    rates = _whole_rates(data, words)
    fair = statistics.fmean(rates) if rates else None
    return max(abs(rate / fair - 1) for rate in rates) if fair else None


# In a window of settled_s each flow's share is so many packets at least: one
# more or less is then a third of the 15 % that the bound of issue 14 leaves.
SHARE_PKTS = 20


def _settled_s(data, words):
    """s from the last flow that comes or goes to the end of the last window in
    which a flow's rate is off an equal share of the link by more than `part`,
    or all of them are below `level` of it. None if that is the last window."""
    changes = [flow[key] for flow in data.flows()
               for key in ("start_s", "stop_s")]
    event = max(t for t in changes if t < data.duration_s)
    flows = [flow for flow in data.flows() if flow["stop_s"] > event]
    capacity = data.capacity_pps(words["link"])
    fair = capacity / len(flows)
    width_s = max(words["width_s"], SHARE_PKTS / fair)
    starts = np.arange(event, data.duration_s - width_s + _EPSILON,
                       words["step_s"])
    if not len(starts):
        return None
    rates = np.array([data.acked_at(flow, starts + width_s)
                      - data.acked_at(flow, starts) for flow in flows]) \
        / data.mss / width_s
    bad = np.flatnonzero((abs(rates / fair - 1) > words["part"]).any(axis=0) |
                         (rates.sum(axis=0) < words["level"] * capacity))
    if not len(bad):
        return 0.0
    return None if bad[-1] == len(starts) - 1 else \
        float(starts[bad[-1]] + width_s - event)


def _class_values(data, words):
    """Each flow's own backlog in the window; None where no queue tells."""
    start, stop = data.window(words)
    values = []
    for flow in data.flows(words.get("role")):
        own = data.own_queues(flow)
        if own is None:
            return None
        times, backlog = own
        there = (times >= start) & (times <= stop)
        values.append(backlog[there])
    return values if values and all(map(len, values)) else None


def _class_mean(data, words):
    values = _class_values(data, words)
    return values and statistics.fmean(float(one.mean()) for one in values)


def _class_peak(data, words):
    """The most packets that a class of a role held in the whole case, as the
    queues counted: samples would miss what comes and goes between them."""
    peaks = []
    for flow in data.flows(words.get("role")):
        for link in data.paths[flow["path"]]["links"]:
            counted = data.case["queues"][link].get("class_peaks", {})
            peaks.append(counted.get(data.classes[flow["path"]]))
    return None if None in peaks or not peaks else max(peaks)


def _class_jain(data, words):
    values = _class_values(data, words)
    means = values and [float(one.mean()) for one in values]
    return measures.jain_index(means) if means and max(means) > 0 else None


# The unit in which a packet-pair source reports, see tcp_pp(7).
ESTIMATE_SCALE = 256


def _estimate_error(data, words):
    """Worst |mean estimate - mean own backlog| of a flow, in packets, from the
    report of sources that have an estimate."""
    start, stop = data.window(words)
    worst = None
    for flow in data.flows(words.get("role")):
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


def _frames(data, flow):
    """[(bytes, s until all of it was acknowledged or None)] of a coder."""
    frames = flow["final"].get("frames")
    samples = flow["samples"]
    if frames:
        sizes, begun = frames["bytes"], frames["t_s"]
    else:
        # A constant coder: what it hands over, and when, is in its words.
        words = dict(word.split("=", 1) for word in flow["words"].split())
        size, rate = int(words["size"]), int(words["rate"])
        count = int((flow["stop_s"] - flow["start_s"]) * rate / 8 / size)
        sizes = [size] * count
        begun = [flow["start_s"] + index * size * 8 / rate
                 for index in range(count)]
    acked = np.asarray(samples["bytes_acked"], dtype=float)
    times = np.asarray(samples["t_s"], dtype=float)
    ends = np.cumsum(np.asarray(sizes, dtype=float))
    place = np.searchsorted(acked, ends - _EPSILON)
    return [(size, float(times[where]) - t if where < len(times) else None)
            for size, t, where in zip(sizes, begun, place)]


def _frame_delay_ms(data, words):
    """A quantile of the times of frames, where one that is not there at the end
    took at least until then; a sample's distance too long at most."""
    times = []
    for flow in data.flows(words["role"]):
        frames = flow["final"].get("frames")
        begun = frames["t_s"] if frames else None
        for index, (_, delay) in enumerate(_frames(data, flow)):
            if delay is None:
                since = begun[index] if begun else flow["start_s"]
                times.append((flow["stop_s"] - since, False))
            else:
                times.append((delay, True))
    value = measures.survival_quantile(times, words["part"]) if times else None
    return None if value is None else 1000 * value


def _frame_rate_mbit(data, words):
    start, stop = data.window(words)
    return _mean(8e-6 * data.mss * rate for rate in
                 _rates(data, {**words, "from_s": start, "to_s": stop}))


KINDS = {
    # ms from the data's being there to the acknowledgement of its last byte,
    # mean of a role; what theory says is best; how much more it took, of that
    "completion_ms": _completion_ms,
    "optimal_ms": _optimal_ms,
    "slowdown": _slowdown,
    # the same in hundredths of the round trip
    "completion_units": _completion_units,
    "optimal_units": _optimal_units,
    # of repeated cases, see analyse()
    "completion_variance": lambda data, words: None,
    # when the last of all transfers was done
    "last_s": _last_s,
    "last_units": _last_units,
    # how many transfers were
    "finished": _finished,
    # packets sent again, and as a part of those sent, of a role or of all
    "retransmits": _retransmits,
    "loss_part": _loss_part,
    # 1 - packets sent again/packets asked for
    "goodput_sent": _goodput_sent,
    # packets dropped at all queues, in the whole case or in a window
    "drops": _drops,
    # of a role's classes: drops, and drops and packets sent again per 1000
    # hundredths of a round trip of their transfer
    "losses_each": _losses_each,
    "loss_rate": _loss_rate,
    "retransmission_rate": _retransmission_rate,
    # packets sent again and not lost
    "sent_needlessly": _sent_needlessly,
    # of a link's queue in packets, in a window
    "queue_min": _of_backlog(np.min),
    "queue_mean": _of_backlog(np.mean),
    "queue_max": _of_backlog(np.max),
    # the same in ms of the link's rate
    "delay_mean_ms": _of_delay(np.mean),
    "delay_p99_ms": _of_delay(lambda values: np.percentile(values, 99)),
    "delay_max_ms": _of_delay(np.max),
    # 0 to 1, on the wire; and the first time it reached a level, round trips
    "utilization": _utilization,
    "full_at": _full_at,
    # data acknowledged, in packets, over what the link could carry: of all of a
    # role, of one of them, and that over an equal part
    "goodput_share": _goodput_share,
    "goodput_each": _goodput_each,
    "advantage": _advantage,
    # of the rates of flows that are there for a whole window: Jain's index,
    # worst |rate/mean - 1|
    "jain": _jain,
    "share_error": _share_error,
    # s until all have an equal share of a full link, after the last change
    "settled_s": _settled_s,
    # of the flows' own queues in packets
    "class_mean": _class_mean,
    "class_peak": _class_peak,
    "class_jain": _class_jain,
    # worst difference of what a source takes its queue for, mean, packets
    "estimate_error": _estimate_error,
    # of coders
    "frame_delay_ms": _frame_delay_ms,
    "frame_rate_mbit": _frame_rate_mbit,
}


# --- results ---------------------------------------------------------------

def measure(raw):
    """[{"name", "x", "series", "runs", "metrics"}] of a raw result, repeated
    cases as one with the means."""
    points = {}
    for case in raw["cases"]:
        data = CaseData(raw, case)
        found = {}
        for wanted in raw["metrics"]:
            if wanted["kind"] not in KINDS:
                raise TollwayError(f"there is no metric {wanted['kind']!r}")
            start, stop = data.window(wanted["words"])
            # A run may end before the window that a metric is about.
            value = KINDS[wanted["kind"]](data, wanted["words"]) \
                if stop > start else None
            found[wanted["key"]] = None if value is None else float(value)
        points.setdefault(case["point"], []).append((case, found))
    return [_point(name, runs, raw["metrics"])
            for name, runs in points.items()]


def _point(name, runs, wanted):
    metrics = {}
    for spec in wanted:
        key = spec["key"]
        values = [found[key] for _, found in runs]
        if spec["kind"] == "completion_variance":
            times = [found["completion_ms"] for _, found in runs]
            metrics[key] = statistics.variance(times) \
                if len(times) > 1 and None not in times else None
        else:
            metrics[key] = _mean(values)
    first = runs[0][0]
    return {"name": name, "x": first["x"], "series": first["series"],
            "runs": len(runs), "metrics": metrics}


def metric_of(result, case, key):
    """A metric of a result's case; TollwayError if there is none."""
    for point in result["cases"]:
        if point["name"] == case and key in point["metrics"]:
            return point["metrics"][key]
    raise TollwayError(f"the result has no {key} of {case}")


def has_case(result, case):
    return any(point["name"] == case for point in result["cases"])


def limit_of(bound, result, mean_of):
    """What a bound asks for: its value, or that part of another case's."""
    if "of_case" not in bound:
        return bound["value"]
    other = mean_of(metric_of(result, bound["of_case"], bound["metric"]))
    return None if other is None else bound["value"] * other
