# SPDX-License-Identifier: GPL-2.0
"""From one run's raw measurements to its result, and from seeds to means.

Everything here is a pure function of raw.json (and of the published numbers
in data/), so results can be made again without running anything. Input that
cannot be trusted (failed calibration, a flow that sent nothing, a counter
that runs backwards, NaN) raises TollwayError; no number is made up.

What is measured:

- the window: from warmup_s to duration_s, cut to the life of the flow;
- rate_pps: packets/s, bytes_acked in the window over mss over its seconds,
  samples interpolated linearly; goodput_bps: the same bytes in bit/s;
- expected_pps: the weighted proportionally fair rate of the flows active at
  each moment, averaged over the same window; without wtp, every weight is 1;
- utilization: bytes from warm-up to end over what the link could carry;
- queue_mean_pkts, queue_p99_pkts: of the backlog samples in the window;
- queue_mean_ms: the mean backlog in times of the link, of full packets;
- marks, drops: between warm-up and end;
- class: flows of one path and one wtp; its rate is their mean, spread is
  (max - min)/mean of rate/expected, error is rate/expected - 1;
- in an interval of a schedule, the first SETTLE_S seconds (or the warm-up,
  if that is later) are left out of rates and of every *_after_2s;
- jain: Jain's index of rate/expected over the flows of a class in an
  interval, 1 if all get the same part of their share;
- near_s: the first time after a change from which the class's mean rate over
  the following 2 s is within 5 % of its new share; null if never;
- pages: of the HTTP model, see _pages();
- convergence_s: the first time after a change from which the class's mean
  rate over the following second is within 10 % of its new share; null if
  that never happens.
"""

import math
import statistics

import numpy as np
from scipy import stats

from . import cases, published
from .errors import TollwayError
from .schema import LARGEST_UTILIZATION, RAW_SCHEMA, RECOVERY, SCHEMA, validate
from .theory import fairness, measures, pricing

SETTLE_S = 2.0
CONVERGENCE_WINDOW_S = 1.0
CONVERGENCE_BAND = 0.10
_CONVERGENCE_STEP_S = 0.05
NEAR_WINDOW_S = 2.0
NEAR_BAND = 0.05
# Samples come every 50-100 ms; a hole of a second would hide what happened.
_LONGEST_GAP_S = 1.0
# Instead of a verdict: the row is not about a run that was set like this one.
OTHER_SETUP = "other setup"
HOLD, MISS = ("holds", "agrees", "better"), ("fails", "differs")
_EPSILON = 1e-9
# Where flows come and go more often than that in all, those of a millisecond do
# so at once: each time asks for all shares anew.
_EDGES_MAX = 1000
_EDGE_S = 0.001


# --- raw measurements ----------------------------------------------------

def _get(mapping, key, where):
    if not isinstance(mapping, dict) or key not in mapping:
        raise TollwayError(f"the raw result has no {where}.{key}")
    return mapping[key]


def _number(mapping, key, where, above=None):
    value = _get(mapping, key, where)
    if (isinstance(value, bool) or not isinstance(value, (int, float))
            or not math.isfinite(value) or (above is not None
                                            and value <= above)):
        wanted = "a number" if above is None else f"a number above {above}"
        raise TollwayError(f"the raw result's {where}.{key} is {value!r}, "
                           f"not {wanted}")
    return value


def _series(mapping, key, where, length=None):
    """One list of samples as a float array, finite and of the right length."""
    try:
        values = np.asarray(_get(mapping, key, where), dtype=float)
    except (TypeError, ValueError):
        values = np.full(1, np.nan)
    if values.ndim != 1 or not np.all(np.isfinite(values)):
        raise TollwayError(
            f"{where}.{key} has samples that are not finite numbers")
    if length is not None and len(values) != length:
        raise TollwayError(f"{where}.{key} has {len(values)} samples "
                           f"for {length} points in time")
    return values


class _Counter:
    """A cumulative counter sampled over time, linear between samples."""

    def __init__(self, times, values, where):
        if np.any(np.diff(values) < 0):
            raise TollwayError(f"the counter {where} runs backwards")
        self.times, self.values, self.where = times, values, where

    def at(self, time):
        return np.interp(time, self.times, self.values)

    def between(self, start, stop):
        return float(self.at(stop) - self.at(start))

    def end_within(self, start, stop):
        """The last sampled moment up to stop; refuses holes in the window."""
        edges = self.times[(self.times > start) & (self.times < stop)]
        edges = np.concatenate(([max(start, self.times[0])], edges,
                                [min(stop, self.times[-1])]))
        if (len(edges) < 3 or edges[0] - start > _LONGEST_GAP_S
                or stop - edges[-1] > _LONGEST_GAP_S
                or np.max(np.diff(edges)) > _LONGEST_GAP_S):
            raise TollwayError(
                f"{self.where} was not sampled all the way from {start:g} s "
                f"to {stop:g} s")
        return float(edges[-1])


def _sample_times(samples, where):
    times = _series(samples, "t_s", where)
    if len(times) < 2 or np.any(np.diff(times) <= 0):
        raise TollwayError(f"{where} needs two samples or more, in order")
    return times


class _Pages:
    """What a user of the HTTP model asked for, from `pages` of the report."""

    def __init__(self, raw, where, stop):
        self.start = _series(raw, "start_s", where)
        self.bytes = _series(raw, "bytes", where, len(self.start))
        durations = _get(raw, "duration_s", where)
        if len(durations) != len(self.start) or None in durations[:-1]:
            raise TollwayError(f"{where} has pages that were never finished")
        self.finished = np.array([value is not None for value in durations],
                                 dtype=bool)
        self.end = np.array([stop if value is None else begin + value for
                             begin, value in zip(self.start, durations)])
        # Bytes are taken to come evenly from the beginning of a page.
        times = np.ravel(np.column_stack((self.start, self.end)))
        sums = np.concatenate(([0.0], np.cumsum(self.bytes)))
        values = np.ravel(np.column_stack((sums[:-1], sums[1:])))
        if np.any(np.diff(times) < 0):
            raise TollwayError(f"{where} has pages that are not in order")
        self.acked = _Counter(np.concatenate(([0.0], times)),
                              np.concatenate(([0.0], values)), where)


class _Flow:
    """One flow's description and counters."""

    def __init__(self, raw, paths):
        self.id = _get(raw, "id", "flow")
        self.where = f"flow {self.id}"
        self.path = _get(raw, "path", self.where)
        self.links = _get(_get(paths, self.path, "paths"), "links",
                          f"path {self.path}")
        self.cc = _get(raw, "cc", self.where)
        self.wtp = _get(raw, "wtp", self.where)
        if self.wtp is not None:
            _number(raw, "wtp", self.where, above=0)
        self.weight = 1.0 if self.wtp is None else float(self.wtp)
        self.start = _number(raw, "start_s", self.where)
        self.stop = _number(raw, "stop_s", self.where)
        self.mss = _number(raw, "mss_bytes", self.where, above=0)
        self.pages = None
        # Users of pages have no connection between them, so no samples.
        if "pages" in raw:
            self.samples = {}
            self.pages = _Pages(raw["pages"], self.where, self.stop)
            self.acked = self.pages.acked
            return
        # Of our own sender; iperf3 does not say.
        self.connected = raw.get("final", {}).get("connected_s") or self.start
        self.samples = _get(raw, "samples", self.where)
        self.times = _sample_times(self.samples, self.where)
        self.acked = self.counter("bytes_acked")

    def counter(self, key):
        """A counter of the flow's samples, 0 at its start; None if absent."""
        if key not in self.samples:
            return None
        values = _series(self.samples, key, self.where, len(self.times))
        times = self.times
        if times[0] > self.start:
            times = np.concatenate(([self.start], times))
            values = np.concatenate(([0.0], values))
        return _Counter(times, values, f"{self.where}'s {key}")

    def window(self, start, stop):
        """The part of [start, stop] in which the flow ran and was sampled."""
        start, stop = max(start, self.start), min(stop, self.stop)
        if self.pages:
            return start, stop
        if stop - start < _EPSILON:
            raise TollwayError(f"{self.where} did not run while rates were "
                               f"measured, so it has none")
        # A SYN may have been lost: until it is connected a flow has nothing to
        # sample, and has sent nothing.
        return start, self.acked.end_within(
            max(start, min(self.connected, self.times[0])), stop)

    def rate_pps(self, start, stop):
        return self.acked.between(start, stop) / self.mss / (stop - start)

    def overlap(self, start, stop):
        return min(stop, self.stop) - max(start, self.start)


class _Queue:
    """One link's queue: backlog samples and counters."""

    def __init__(self, raw, name, link):
        self.name, self.where = name, f"queue {name}"
        self.raw = raw
        self.capacity = _number(link, "capacity_bps", f"link {name}", above=0)
        self.times = _sample_times(raw, self.where)
        self.backlog = _series(raw, "backlog_pkts", self.where,
                               len(self.times))
        self._counters = {}

    def counter(self, key):
        if key not in self._counters:
            self._counters[key] = _Counter(
                self.times,
                _series(self.raw, key, self.where, len(self.times)),
                f"{self.where}'s {key}")
        return self._counters[key]

    def backlog_within(self, start, stop):
        values = self.backlog[(self.times >= start) & (self.times <= stop)]
        if not len(values):
            raise TollwayError(f"{self.where} has no samples between "
                               f"{start:g} s and {stop:g} s")
        return values

    def stat(self, key):
        """The qdisc's own counter between warm-up and end."""
        ends = [_number(_get(self.raw, when, self.where), key,
                        f"{self.where}.{when}")
                for when in ("stats_at_warmup", "stats_at_end")]
        if ends[1] < ends[0]:
            raise TollwayError(f"{self.where}'s {key} run backwards")
        return ends[1] - ends[0]

    def utilization(self, start, stop):
        """Part of the rate that was sent. Not by stat(): a slow host reads that
        late."""
        sent = self.counter("bytes")
        sent.end_within(start, stop)
        value = sent.between(start, stop) * 8 / (self.capacity * (stop - start))
        if value > LARGEST_UTILIZATION:
            raise TollwayError(
                f"link {self.name} carried {value:.1%} of its rate, so it is "
                f"not shaped as described")
        return value


def _check_calibration(raw, bottlenecks):
    calibration = _get(raw, "calibration", "raw")
    for name in bottlenecks:
        if name not in calibration:
            raise TollwayError(f"link {name} was not calibrated")
    for name, outcome in calibration.items():
        if not isinstance(outcome, dict) or outcome.get("ok") is not True:
            raise TollwayError(f"the calibration of link {name} failed, "
                               f"so nothing measured over it counts")


class _Run:
    """A raw result, checked, with the fair shares of any set of flows."""

    def __init__(self, raw):
        self.raw = raw
        if raw.get("schema") != RAW_SCHEMA:
            raise TollwayError(f"the raw result has schema "
                               f"{raw.get('schema')!r}, not {RAW_SCHEMA}")
        self.parameters = _get(raw, "parameters", "raw")
        self.warmup = _number(self.parameters, "warmup_s", "parameters")
        self.duration = _number(self.parameters, "duration_s", "parameters")
        if not 0 <= self.warmup < self.duration:
            raise TollwayError(
                f"nothing is left to measure: the warm-up of {self.warmup:g} s "
                f"is not within the duration of {self.duration:g} s")
        self.packet_bytes = _number(self.parameters, "packet_bytes",
                                    "parameters", above=0)
        self.links = _get(raw, "links", "raw")
        self.bottlenecks = [name for name, link in self.links.items()
                            if link.get("bottleneck")]
        if not self.bottlenecks:
            raise TollwayError("the raw result names no bottleneck link")
        _check_calibration(raw, self.bottlenecks)
        self.queues = {
            name: _Queue(queue, name, _get(self.links, name, "links"))
            for name, queue in _get(raw, "queues", "raw").items()}
        for name in self.bottlenecks:
            _get(self.queues, name, "queues")
        self.capacity_pps = {
            name: _number(link, "capacity_bps", f"link {name}", above=0)
            / (8 * self.packet_bytes) for name, link in self.links.items()}
        paths = _get(raw, "paths", "raw")
        self.flows = [_Flow(flow, paths) for flow in _get(raw, "flows", "raw")]
        self._check_flows()
        self._shares = {}

    def _check_flows(self):
        if not self.flows:
            raise TollwayError("the raw result has no flows")
        if len({flow.id for flow in self.flows}) < len(self.flows):
            raise TollwayError("two flows have the same id")
        if len({flow.wtp is None for flow in self.flows}) > 1:
            raise TollwayError("flows with and without a willingness to pay "
                               "have no common fair share")

    def shares(self, active):
        """Fair rates in packets/s of the flows in active, by id."""
        key = frozenset(flow.id for flow in active)
        if key not in self._shares:
            self._shares[key] = fairness.wpf_allocation(
                self.capacity_pps,
                [(flow.id, flow.weight, flow.links) for flow in active])
        return self._shares[key]

    def expected_pps(self):
        """Each flow's fair rate, averaged over its part of the window."""
        edges = {self.warmup, self.duration}
        for flow in self.flows:
            edges |= {edge for edge in (flow.start, flow.stop)
                      if self.warmup < edge < self.duration}
        edges = sorted(edges)
        if len(edges) > _EDGES_MAX:
            edges = [edge for before, edge in zip([None, *edges], edges)
                     if before is None or edge == edges[-1]
                     or edge // _EDGE_S > before // _EDGE_S]
        packets = dict.fromkeys((flow.id for flow in self.flows), 0.0)
        seconds = dict(packets)
        for start, stop in zip(edges, edges[1:]):
            active = [flow for flow in self.flows
                      if flow.overlap(start, stop) > 0]
            for flow, share in (self.shares(active) if active else {}).items():
                packets[flow] += share * (stop - start)
                seconds[flow] += stop - start
        return {flow: packets[flow] / seconds[flow] for flow in packets
                if seconds[flow]}


# --- the result of one run -----------------------------------------------

def analyse(raw):
    """The result of one run, the object that `tollway run --json` writes.

    raw: the content of raw.json. Returns a dict that passes validate().
    Raises TollwayError if any of it cannot be trusted.
    """
    if isinstance(raw, dict) and "cases" in raw:
        return _analyse_cases(raw)
    run = _Run(raw)
    flows, rates = _measure_flows(run)
    result = {
        "schema": SCHEMA,
        "experiment": _get(raw, "experiment", "raw"),
        "parameters": run.parameters,
        "seed": _get(raw, "seed", "raw"),
        "links": {name: _measure_link(run, queue)
                  for name, queue in run.queues.items()},
        "flows": flows,
        "classes": _classes(run.flows, rates, run.expected_pps()),
        "published": [],
        "bounds": [],
        "provenance": _get(raw, "provenance", "raw"),
        "digest": _get(raw, "trace_sha256", "raw"),
    }
    if raw.get("schedule"):
        result["intervals"] = _intervals(run)
    if raw.get("steady_state"):
        result["steady_state"] = _steady_state(run, result)
    if raw.get("network"):
        result["recovery"] = _recovery(raw["network"])
    if any("pages" in flow for flow in raw["flows"]):
        result["pages"] = _pages(run)
    result["published"] = compare_published(result)
    result["bounds"] = [
        _judge(bound, _measure(bound, run, result))
        for bound in raw.get("bounds") or []]
    validate(result)
    return result


def _analyse_cases(raw):
    """The result of a run of cases: they and their metrics stand in the place
    of links, flows and classes."""
    if raw.get("schema") != RAW_SCHEMA:
        raise TollwayError(f"the raw result has schema {raw.get('schema')!r}, "
                           f"not {RAW_SCHEMA}")
    links = _get(raw, "links", "raw")
    _check_calibration(raw, links)
    result = {
        "schema": SCHEMA,
        "experiment": _get(raw, "experiment", "raw"),
        "parameters": _get(raw, "parameters", "raw"),
        "seed": _get(raw, "seed", "raw"),
        "capacity_bps": {name: link["capacity_bps"]
                         for name, link in links.items()},
        "columns": [{key: spec[key] for key in ("key", "title", "digits")}
                    for spec in _get(raw, "metrics", "raw")],
        "x_title": raw.get("x_title"),
        "cases": cases.measure(raw),
        "published": [],
        "bounds": [],
        "provenance": _get(raw, "provenance", "raw"),
        "digest": _get(raw, "trace_sha256", "raw"),
    }
    result["published"] = compare_published(result)
    result["bounds"] = [_judge_case(bound, result)
                        for bound in raw.get("bounds") or []
                        if cases.has_case(result, bound["case"]) and
                        cases.has_case(result, bound.get("of_case",
                                                         bound["case"]))]
    validate(result)
    return result


def _judge_case(bound, result):
    limit = cases.limit_of(bound, result, mean_of)
    measured = cases.metric_of(result, bound["case"], bound["metric"])
    if limit is None:
        # What another case never reached is no match for what was reached.
        limit = 0.0 if measured is None else measured
    verdict = _judge({**bound, "value": limit}, measured)
    return {**verdict, "name": f"{bound['case']}: {bound['name']}"}


def _measure_flows(run):
    flows, rates = [], {}
    for flow in run.flows:
        start, stop = flow.window(run.warmup, run.duration)
        rate = flow.rate_pps(start, stop)
        # A user may have been silent all the time.
        if not rate > 0 and not flow.pages:
            raise TollwayError(f"{flow.where} sent nothing between "
                               f"{start:g} s and {stop:g} s")
        rates[flow.id] = rate
        again = flow.counter("retransmits")
        flows.append({
            "id": flow.id, "path": flow.path, "cc": flow.cc, "wtp": flow.wtp,
            "rate_pps": rate,
            "goodput_bps": rate * flow.mss * 8,
            "retransmits": again and round(again.between(start, stop)),
            "rtt_mean_ms": _rtt_mean_ms(flow, start, stop),
        })
    return flows, rates


def _rtt_mean_ms(flow, start, stop):
    if "srtt_us" not in flow.samples:
        return None
    rtt = _series(flow.samples, "srtt_us", flow.where, len(flow.times))
    rtt = rtt[(flow.times >= start) & (flow.times <= stop) & (rtt > 0)]
    return float(np.mean(rtt)) / 1000 if len(rtt) else None


def _measure_link(run, queue):
    backlog = queue.backlog_within(run.warmup, run.duration)
    return {
        "capacity_bps": queue.capacity,
        "utilization": queue.utilization(run.warmup, run.duration),
        "queue_mean_pkts": float(np.mean(backlog)),
        "queue_p99_pkts": float(np.percentile(backlog, 99)),
        "queue_mean_ms": float(np.mean(backlog)) * run.packet_bytes * 8e3
        / queue.capacity,
        "marks": queue.stat("marks"),
        "drops": queue.stat("drops"),
    }


def _by_class(flows):
    """Dict (path, wtp) -> flows, in the order of the flows."""
    groups = {}
    for flow in flows:
        groups.setdefault((flow.path, flow.wtp), []).append(flow)
    return groups


def _classes(flows, rates, expected):
    classes = []
    for (path, wtp), members in _by_class(flows).items():
        mean = statistics.fmean(rates[flow.id] for flow in members)
        parts = [rates[flow.id] / expected[flow.id] for flow in members]
        share = statistics.fmean(expected[flow.id] for flow in members)
        classes.append({
            "path": path, "wtp": wtp, "rate_pps": mean,
            "expected_pps": share, "error": mean / share - 1,
            "spread": (max(parts) - min(parts)) / statistics.fmean(parts),
        })
    return classes


def _steady_state(run, result):
    """Each priced link beside the model of CP05 5.5, see theory.steady_state.

    Only for links that are the only ones of the flows over them.
    """
    source = _get(run.parameters, "source", "parameters")
    # The source relative takes the bits as marks: raw is log for it.
    form = {"aimd": "aimd", "relative": "log"}.get(source) or _get(
        run.parameters, "estimator", "parameters")
    points = []
    for name in run.bottlenecks:
        flows = [flow for flow in run.flows if list(flow.links) == [name]]
        model = pricing.steady_state(
            run.capacity_pps[name], [flow.weight for flow in flows],
            _number(run.parameters, "target", "parameters"),
            _number(run.parameters, "gamma", "parameters", above=0), form)
        queue, paths = run.queues[name], {flow.path for flow in flows}
        points.append({
            "link": name, "flows": len(flows),
            "wtp_sum": sum(flow.weight for flow in flows),
            "capacity_pps": run.capacity_pps[name],
            "max_rate_error": max(
                abs(group["error"]) for group in result["classes"]
                if group["path"] in paths),
            "mark_probability": queue.stat("marks") / max(
                queue.stat("packets"), 1),
            "expected_mark_probability": model["mark_probability"],
            "queue_pkts": result["links"][name]["queue_mean_pkts"],
            "expected_queue_pkts": model["queue_pkts"]})
    return points


def _recovery(network):
    """Segments and timers of all hosts over the whole run; None if one host's
    kernel does not say."""
    return {key: None if any(counts.get(key) is None
                             for counts in network.values())
            else sum(counts[key] for counts in network.values())
            for key in RECOVERY}


def _pages(run):
    """Times and throughput of the pages that began while rates were measured
    (CP05 Table 5.6.3), of all users and of each path.

    A page that was not finished at the end, and so took longer than until
    then, counts in the percentiles as Kaplan and Meier have it. The mean is of
    those that were finished.
    """
    by_path = {}
    for flow in run.flows:
        if not flow.pages:
            raise TollwayError(f"{flow.where} has no pages, as others have")
        pages = by_path.setdefault(flow.path, [])
        chosen = (flow.pages.start >= run.warmup) \
            & (flow.pages.start < run.duration)
        for index in np.flatnonzero(chosen):
            end = float(flow.pages.end[index])
            pages.append((min(end, run.duration)
                          - float(flow.pages.start[index]),
                          bool(flow.pages.finished[index])
                          and end <= run.duration,
                          float(flow.pages.bytes[index])))
    groups = {"all": [page for pages in by_path.values() for page in pages],
              **by_path}
    return [_page_times(path, pages) for path, pages in groups.items()]


def _page_times(path, pages):
    finished = [page for page in pages if page[1]]
    if not finished:
        raise TollwayError("no page was finished while rates were measured")
    mean_s = statistics.fmean(page[0] for page in finished)
    mean_bytes = statistics.fmean(page[2] for page in finished)
    return {"path": path, "pages": len(finished),
            "unfinished": len(pages) - len(finished),
            "median_s": measures.survival_quantile(pages, 0.5),
            "p99_s": measures.survival_quantile(pages, 0.99),
            "mean_s": mean_s, "mean_bytes": mean_bytes,
            # The paper: an average page over the mean time of a page.
            "throughput_kBps": mean_bytes / mean_s / 1000}


def _intervals(run):
    schedule = run.raw["schedule"]
    starts = [_number(step, "t_s", "schedule") for step in schedule]
    stops = starts[1:] + [run.duration]
    intervals = []
    for step, start, stop in zip(schedule, starts, stops):
        settled = max(start + SETTLE_S, run.warmup)
        if stop - settled < CONVERGENCE_WINDOW_S:
            raise TollwayError(
                f"the interval from {start:g} s to {stop:g} s is too short to "
                f"measure after {settled:g} s")
        active = [flow for flow in run.flows
                  if flow.overlap(start, stop) > (stop - start) / 2]
        if not active:
            raise TollwayError(f"no flow runs from {start:g} s to {stop:g} s")
        shares = run.shares(active)
        rates = {flow.id: flow.rate_pps(*flow.window(settled, stop))
                 for flow in active}
        silent = [flow.where for flow in active if not rates[flow.id] > 0]
        if silent:
            raise TollwayError(f"{silent[0]} sent nothing between "
                               f"{settled:g} s and {stop:g} s")
        classes = _classes(active, rates, shares)
        for group, members in zip(classes, _by_class(active).values()):
            parts = [rates[flow.id] / shares[flow.id] for flow in members]
            group["jain"] = measures.jain_index(parts)
            share = group["expected_pps"]
            group["convergence_s"] = _time_to_share(
                members, share, start, stop, CONVERGENCE_WINDOW_S,
                CONVERGENCE_BAND)
            group["near_s"] = _time_to_share(
                members, share, start, stop, NEAR_WINDOW_S, NEAR_BAND)
        times = [group["convergence_s"] for group in classes]
        intervals.append({
            "start_s": start, "stop_s": stop,
            "factor": _number(step, "factor", "schedule"),
            "links": {
                name: _interval_link(queue, max(start, run.warmup), settled,
                                     stop)
                for name, queue in run.queues.items()},
            "classes": classes,
            "max_convergence_s": _worst(times),
            "max_abs_error": max(abs(group["error"]) for group in classes),
            "min_jain": min(group["jain"] for group in classes),
        })
    return intervals


def _interval_link(queue, start, settled, stop):
    drops = queue.counter("drops")
    return {
        "utilization": queue.utilization(start, stop),
        "utilization_after_2s": queue.utilization(settled, stop),
        "queue_mean_pkts": float(np.mean(queue.backlog_within(start, stop))),
        "drops": round(drops.between(start, stop)),
        "drops_after_2s": round(drops.between(settled, stop)),
    }


def _time_to_share(members, share, start, stop, window_s, band):
    """Seconds from start until the class first has its share, within a band
    over a window; None if that never happens."""
    times = np.arange(start, stop - window_s + _EPSILON, _CONVERGENCE_STEP_S)
    rate = sum((flow.acked.at(times + window_s) - flow.acked.at(times))
               / flow.mss for flow in members)
    rate = rate / window_s / len(members)
    near = np.flatnonzero(np.abs(rate / share - 1) <= band)
    return round(float(times[near[0]] - start), 3) if len(near) else None


# --- verdicts ------------------------------------------------------------

def compare_published(result):
    """What the paper published for this run, beside what was measured.

    result: a result or an aggregate, without need of its published part. The
    list is empty when the paper says nothing about the pair of congestion
    control and AQM, or the network is not the paper's. Where the sources and
    queues were set in another way than the row says it holds for, the verdict
    is "other setup", which is none, and `differences` says in what. Else it is
    "agrees" (within the tolerance), "better" (beyond it in the good direction,
    of what the paper is in favour of) or "differs".
    """
    pair = [result["parameters"].get("cc"), result["parameters"].get("aqm")]
    found = [
        (row, number, part["setup"]["capacity_bps"])
        for part in published.parts(result["experiment"])
        if _is_network(result, part["setup"])
        for row in part["rows"] if pair in row["pairs"]
        for number in row["numbers"]]
    measured = []
    for row, number, links in found:
        if "cases" not in result:
            value = _lookup(result, number["metric"], links)
            if value is None:
                continue
        elif cases.has_case(result, number["case"]):
            value = mean_of(cases.metric_of(result, number["case"],
                                            number["metric"]))
        else:
            continue
        measured.append(_compare(row, number, value,
                                 _differences(result, row["setup"])))
    return measured


def reasons(result, kind):
    """Why verdicts of a result do not hold, where that was found out.

    result: a result or an aggregate. kind: "published" or "bounds". Returns a
    list of texts, each about entries that are "differs" or "fails".
    """
    pair = [result["parameters"].get("cc"), result["parameters"].get("aqm")]
    missed = [entry["name"] for entry in result[kind]
              if entry["verdict"] in MISS]
    return [reason["why"] for reason in published.reasons()
            if reason["experiment"] == result["experiment"]
            and pair in reason["pairs"]
            and any(reason["about"] in name for name in missed)]


def _is_network(result, setup):
    """Did the run have the links, flows and schedule that the paper's had?"""
    capacity = result.get("capacity_bps") or {
        name: link["capacity_bps"] for name, link in result["links"].items()}
    edges = [step["start_s"] for step in result.get("intervals", ())]
    if edges:
        edges.append(result["intervals"][-1]["stop_s"])
    return (all(capacity.get(name) == value
                for name, value in setup["capacity_bps"].items())
            and setup.get("flows") in (None, len(result.get("flows", ())))
            and setup.get("edges_s", edges) == edges
            and all(result["parameters"].get(name) == value
                    for name, value in setup.get("parameters", {}).items()))


def _differences(result, setup):
    """In what a run's settings differ from those that a row holds for."""
    there = result["parameters"]
    return [f"{name} {_plain(there.get(name))} instead of {_plain(value)}"
            for name, value in setup.items() if there.get(name) != value]


def _plain(value):
    if isinstance(value, list):
        return "/".join(map(_plain, value))
    return "unset" if value is None else f"{value:g}" \
        if isinstance(value, (int, float)) else str(value)


def _compare(row, number, measured, differences):
    if differences:
        verdict = OTHER_SETUP
    elif measured is None:
        verdict = "differs"
    else:
        above = measured - number["value"]
        if number["better"] == "lower":
            above = -above
        if abs(above) <= number["tolerance"] + _EPSILON:
            verdict = "agrees"
        else:
            # A rival that does better than published is a difference, too.
            verdict = "better" if above > 0 and not row.get("rival") \
                else "differs"
    return {"name": f"{row['name']}: {number['name']}",
            "value": number["value"], "unit": number.get("unit", "%"),
            "paper": row["paper"], "measured": measured, "verdict": verdict,
            "differences": differences}


def mean_of(value):
    """A number, or the mean of an aggregated one."""
    return value["mean"] if isinstance(value, dict) else value


def _lookup(result, metric, links):
    """What a published number's metric names: a field, or a mean over links."""
    if metric == "links.mean_utilization":
        return statistics.fmean(
            mean_of(result["links"][name]["utilization"]) for name in links)
    found = result
    try:
        for key in metric.split("."):
            found = found[int(key) if isinstance(found, list) else key]
    except (KeyError, IndexError, ValueError, TypeError):
        raise TollwayError(f"the result has no {metric}") from None
    return mean_of(found)


def _max_abs_error(run, result):
    return max(abs(group["error"]) for group in result["classes"])


def _max_spread(run, result):
    return max(group["spread"] for group in result["classes"])


def _min_utilization(run, result):
    return min(result["links"][name]["utilization"]
               for name in run.bottlenecks)


def _max_queue_mean(run, result):
    return max(result["links"][name]["queue_mean_pkts"]
               for name in run.bottlenecks)


def _total_drops(run, result):
    return sum(link["drops"] for link in result["links"].values())


def _total_drops_whole_run(run, result):
    return sum(_number(queue.raw["stats_at_end"], "drops", queue.where)
               for queue in run.queues.values())


def _steady_points(result):
    if "steady_state" not in result:
        raise TollwayError("a bound on the steady state needs a run that is "
                           "compared with it")
    return result["steady_state"]


def _max_rate_error(run, result):
    return max(point["max_rate_error"] for point in _steady_points(result))


def _max_steady_queue_error(run, result):
    return max(abs(point["queue_pkts"] / point["expected_queue_pkts"] - 1)
               for point in _steady_points(result))


def _interval_list(result):
    if "intervals" not in result:
        raise TollwayError("a bound on intervals needs a schedule")
    return result["intervals"]


def _min_utilization_after_2s(run, result):
    return min(interval["links"][name]["utilization_after_2s"]
               for interval in _interval_list(result)
               for name in run.bottlenecks)


def _drops_after_2s(run, result):
    return sum(link["drops_after_2s"] for interval in _interval_list(result)
               for link in interval["links"].values())


def _max_interval_error(run, result):
    return max(abs(group["error"]) for interval in _interval_list(result)
               for group in interval["classes"])


def _max_convergence_s(run, result):
    times = [interval["max_convergence_s"]
             for interval in _interval_list(result)]
    return None if None in times else max(times)


def _aimd_max_abs_error(run, result):
    worst = 0.0
    groups = _by_class(run.flows)
    for group, members in zip(result["classes"], groups.values()):
        if group["wtp"] is None:
            raise TollwayError("the AIMD equilibrium needs flows with a "
                               "willingness to pay")
        marked = _mark_fraction(run, members)
        if not 0 < marked < 1:
            return None
        share = pricing.aimd_rate(group["wtp"], marked)
        worst = max(worst, abs(group["rate_pps"] / share - 1))
    return worst


def _mark_fraction(run, members):
    """Marked part of a class's packets: its own counters, or its links'."""
    marked = delivered = 0.0
    for flow in members:
        counters = flow.counter("delivered_ce"), flow.counter("delivered")
        if None not in counters:
            start, stop = flow.window(run.warmup, run.duration)
            marked += counters[0].between(start, stop)
            delivered += counters[1].between(start, stop)
    if marked > 0 and delivered > 0:
        return marked / delivered
    queues = [run.queues[link] for link in members[0].links
              if link in run.queues]
    return pricing.path_mark_probability(
        queue.stat("marks") / max(queue.stat("packets"), 1)
        for queue in queues)


def _max_utilization(run, result):
    return max(result["links"][name]["utilization"]
               for name in run.bottlenecks)


def _max_queue_error(run, result):
    """Of links with the law sbrm and the default source, whose price is that of
    the weighted proportionally fair shares (CP05 3.2.5)."""
    _, prices = fairness.wpf_solution(
        run.capacity_pps, [(flow.id, flow.weight, flow.links)
                           for flow in run.flows])
    target = _number(run.parameters, "target", "parameters")
    gamma = _number(run.parameters, "gamma", "parameters") or \
        pricing.gamma_auto(_number(run.parameters, "limit", "parameters"),
                           target)
    return max(abs(result["links"][name]["queue_mean_pkts"] /
                   pricing.expected_backlog(target, gamma, prices[name]) - 1)
               for name in run.bottlenecks)


def _max_pc3_error(run, result):
    """Of links with the law PC3: the price adds up alpha (b - b0) + y - c, and
    does not go away, so that the mean of that is 0. What comes in the mean is
    what the link sends, u c, and then b = b0 + (1 - u) c/alpha, with c in
    packets in an interval."""
    target, alpha, interval_us = (
        _number(run.parameters, name, "parameters")
        for name in ("target", "alpha", "interval_us"))
    worst = 0.0
    for name in run.bottlenecks:
        link = result["links"][name]
        expected = target + (1 - link["utilization"]) / alpha * \
            run.capacity_pps[name] * interval_us / 1e6
        worst = max(worst, abs(link["queue_mean_pkts"] / expected - 1))
    return worst


def _path_share(path):
    """A metric: a path's rate over its weighted proportionally fair one."""
    def measure(_run, result):
        rates, shares = zip(*(
            (mean_of(group["rate_pps"]), group["expected_pps"])
            for group in result["classes"] if group["path"] == path))
        return sum(rates) / sum(shares)
    return measure


# What an experiment may set bounds on. Each takes the run and its result and
# returns a number, or None for "never happened", which fails every bound.
# Utilisation and queue bounds look at bottleneck links only.
METRICS = {
    # largest |error| of a class, relative
    "classes.max_abs_error": _max_abs_error,
    # largest (max - min)/mean within a class
    "classes.max_spread": _max_spread,
    # smallest utilisation, 0 to 1
    "links.min_utilization": _min_utilization,
    # greatest utilisation, 0 to 1
    "links.max_utilization": _max_utilization,
    # largest mean backlog, packets
    "links.max_queue_mean_pkts": _max_queue_mean,
    # largest |error| of a mean backlog against b0 + p/gamma, relative
    "links.max_queue_error": _max_queue_error,
    # the same against what the law PC3 comes to with the link's utilisation
    "links.max_pc3_error": _max_pc3_error,
    # rate of path III over its fair one, of the double bottleneck
    "classes.share_of_III": _path_share("III"),
    # packets dropped on all links after the warm-up
    "links.total_drops": _total_drops,
    # packets dropped on all links, warm-up included
    "links.total_drops_whole_run": _total_drops_whole_run,
    # smallest utilisation from 2 s after each change, 0 to 1
    "intervals.min_utilization_after_2s": _min_utilization_after_2s,
    # packets dropped later than 2 s after a change
    "intervals.drops_after_2s": _drops_after_2s,
    # largest |error| of a class from 2 s after each change, relative
    "intervals.max_abs_error": _max_interval_error,
    # longest convergence_s, the start of the run included, s
    "intervals.max_convergence_s": _max_convergence_s,
    # largest |error| of a class against w (1 - m)/m, relative; m from its
    # flows' delivered_ce/delivered, or if those are zero from its links'
    # marks/packets; None when nothing was marked
    "aimd.max_abs_error": _aimd_max_abs_error,
    # largest |error| of a class, of links compared with the steady state
    "steady_state.max_rate_error": _max_rate_error,
    # largest |error| of a mean backlog against the steady state, relative
    "steady_state.max_queue_error": _max_steady_queue_error,
}


# Judged by aggregate() alone, on the class means over all seeds.
OVER_SEEDS = "classes.max_abs_error_over_seeds"


def _is_metric(value):
    """The name of a metric, or of a field of one interval or link."""
    return value in (OVER_SEEDS, *METRICS) or (
        isinstance(value, str) and value.startswith(("intervals.", "links.")))


def _measure(bound, run, result):
    metric = _get(bound, "metric", "bounds")
    if "than" in bound:
        return _lookup(result, metric, run.bottlenecks)
    if metric == OVER_SEEDS:
        return OVER_SEEDS
    if metric in METRICS:
        return METRICS[metric](run, result)
    if _is_metric(metric):
        return _lookup(result, metric, run.bottlenecks)
    raise TollwayError(f"there is no metric {metric!r}; there are fields of "
                       f"an interval or a link and {', '.join(METRICS)}")


def _judge(bound, measured):
    if "than" in bound:
        return _judge_rival(bound, measured, None)
    value, op = _number(bound, "value", "bounds"), _get(bound, "op", "bounds")
    if measured is OVER_SEEDS:
        return {"name": _get(bound, "name", "bounds"), "metric": OVER_SEEDS,
                "measured": None, "op": op, "bound": value,
                "verdict": "needs seeds"}
    if op not in ("<=", ">="):
        raise TollwayError(f"a bound's op is <= or >=, not {op!r}")
    holds = measured is not None and (
        measured <= value if op == "<=" else measured >= value)
    return {"name": _get(bound, "name", "bounds"), "metric": bound["metric"],
            "measured": measured, "op": op, "bound": value,
            "verdict": "holds" if holds else "fails"}


def _judge_rival(bound, measured, rival):
    """A bound against what a rival measured; rival: its result, or None."""
    entry = {**{key: _get(bound, key, "bounds") for key in
                ("name", "metric")}, "measured": measured,
             **{key: _get(bound, key, "bounds") for key in ("op", "than")},
             "bound": None, "verdict": "needs runs"}
    if rival is None:
        return entry
    value = _lookup(rival, bound["metric"], list(rival["links"]))
    # What a rival never reached is no match for what was reached.
    entry["bound"] = value
    if None in (measured, value):
        holds = measured is not None
    else:
        holds = measured <= value if bound["op"] == "<=" else measured >= value
    entry["verdict"] = "holds" if holds else "fails"
    return entry


def compare(wholes):
    """The same results or aggregates, judged against one another.

    Bounds with `than` are against the variant of that name, of the same
    experiment and the same seeds; where that is not among wholes, their
    verdict stays "needs runs".
    """
    def key(whole, name):
        return (whole["experiment"], name,
                tuple(whole.get("seeds") or [whole["seed"]]))

    there = {key(whole, whole["parameters"].get("variant")): whole
             for whole in wholes}
    return [{**whole, "bounds": [
        _judge_rival(bound, bound["measured"],
                     there.get(key(whole, bound["than"])))
        if "than" in bound else bound for bound in whole["bounds"]]}
        for whole in wholes]


def verdicts(result):
    """The entries of a result or aggregate that are judged: a published value
    of another setup is not, nor what needs other seeds or runs."""
    return [entry for entry in result["published"] + result["bounds"]
            if entry["verdict"] in HOLD + MISS]


def all_hold(result):
    """True if no verdict of a result or aggregate is "fails" or "differs"."""
    return all(entry["verdict"] in HOLD for entry in verdicts(result))


# --- over seeds ----------------------------------------------------------

def _statistics(values):
    """Mean, standard deviation and half the 95 % interval (Student's t).

    With one value the last two are None. A None among the values makes
    every entry None: what did not always happen has no mean.
    """
    count = len(values)
    if None in values:
        return {"mean": None, "sd": None, "ci95": None, "n": count}
    mean = statistics.fmean(values)
    if count < 2:
        return {"mean": mean, "sd": None, "ci95": None, "n": count}
    sd = statistics.stdev(values)
    half = float(stats.t.ppf(0.975, count - 1)) * sd / math.sqrt(count)
    return {"mean": mean, "sd": sd, "ci95": half, "n": count}


def aggregate(results):
    """One object for several seeds of one experiment.

    results: one or more results with the same experiment, parameters (but for
    a parameter named seed), links and flows, and different seeds.

    Returns a dict shaped like a result, with `seeds` and `digests` (lists)
    for `seed` and `digest`. Measured numbers become {mean, sd, ci95, n}: ci95
    is half the 95 % confidence interval of the mean (Student's t), sd and
    ci95 are None for one seed. A class's `error` is the mean rate's, and
    `error_ci95` its half interval. A bound's `measured` is the worst seed's,
    but for classes.max_abs_error_over_seeds, which is of the mean rates and
    has no verdict in a single run.
    """
    _check_same(results)
    first = results[0]
    if "cases" in first:
        return _aggregate_cases(results)
    whole = {
        "schema": SCHEMA,
        "experiment": first["experiment"],
        "parameters": {key: value for key, value in
                       first["parameters"].items() if key != "seed"},
        "seeds": [result["seed"] for result in results],
        "links": _aggregate_links([result["links"] for result in results]),
        "flows": [
            {**{key: same[0][key] for key in ("id", "path", "cc", "wtp")},
             **{key: _statistics([flow[key] for flow in same]) for key in
                ("rate_pps", "goodput_bps", "retransmits", "rtt_mean_ms")}}
            for same in zip(*(result["flows"] for result in results))],
        "classes": _aggregate_classes(
            [result["classes"] for result in results]),
        "published": [],
        "bounds": [],
        "provenance": first["provenance"],
        "digests": [result["digest"] for result in results],
    }
    if "intervals" in first:
        whole["intervals"] = [
            {**{key: same[0][key] for key in ("start_s", "stop_s", "factor")},
             "links": _aggregate_links([step["links"] for step in same]),
             "classes": groups,
             "max_convergence_s": _worst([step["max_convergence_s"]
                                          for step in same]),
             "max_abs_error": max(abs(group["error"]) for group in groups),
             "min_jain": min(step["min_jain"] for step in same)}
            for same in zip(*(result["intervals"] for result in results))
            for groups in [_aggregate_classes([step["classes"]
                                               for step in same])]]
    for name, keys in (("steady_state", ("link", "flows", "wtp_sum",
                                         "capacity_pps",
                                         "expected_mark_probability",
                                         "expected_queue_pkts")),
                       ("pages", ("path",))):
        if name in first:
            whole[name] = [
                {key: value if key in keys else
                 _statistics([entry[key] for entry in same])
                 for key, value in same[0].items()}
                for same in zip(*(result[name] for result in results))]
    if "recovery" in first:
        whole["recovery"] = {
            key: _statistics([result["recovery"][key] for result in results])
            for key in first["recovery"]}
    whole["published"] = compare_published(whole)
    whole["bounds"] = [
        _aggregate_bound(same, whole)
        for same in zip(*(result["bounds"] for result in results))]
    return whole


def _aggregate_cases(results):
    first = results[0]
    whole = {
        **{key: first[key] for key in ("schema", "experiment", "capacity_bps",
                                       "columns", "x_title",
                                       "provenance")},
        "parameters": {key: value for key, value in
                       first["parameters"].items() if key != "seed"},
        "seeds": [result["seed"] for result in results],
        "digests": [result["digest"] for result in results],
        "cases": [
            {**same[0], "metrics": {
                key: _statistics([point["metrics"][key] for point in same])
                for key in same[0]["metrics"]}}
            for same in zip(*(result["cases"] for result in results))],
        "published": [],
        # The worst seed's: one that fails, if one does.
        "bounds": [min(same, key=_margin) for same in
                   zip(*(result["bounds"] for result in results))],
    }
    whole["published"] = compare_published(whole)
    return whole


def _margin(bound):
    """How far a bound is from failing; failing ones are below 0."""
    if bound["measured"] is None:
        return -math.inf
    over = bound["measured"] - bound["bound"]
    return over if bound["op"] == ">=" else -over


def _check_same(results):
    if not results:
        raise TollwayError("there are no results to put together")
    for result in results:
        validate(result)

    def kind(result):
        parameters = {key: value for key, value in
                      result["parameters"].items() if key != "seed"}
        if "cases" in result:
            return (result["experiment"], parameters, result["capacity_bps"],
                    [(point["name"], point["runs"])
                     for point in result["cases"]])
        return (result["experiment"], parameters,
                {name: link["capacity_bps"]
                 for name, link in result["links"].items()},
                [(flow["id"], flow["path"], flow["cc"], flow["wtp"])
                 for flow in result["flows"]],
                [(bound["metric"], bound["op"],
                  bound.get("than", bound["bound"]))
                 for bound in result["bounds"]],
                [(step["start_s"], step["stop_s"], step["factor"])
                 for step in result.get("intervals", ())])

    seeds = [result["seed"] for result in results]
    if len(set(seeds)) < len(seeds):
        raise TollwayError("two results have the same seed, and a repeat says "
                           "nothing about spread")
    if len({result["digest"] for result in results}) < len(results):
        raise TollwayError("two seeds left the same trace, so the seed has no "
                           "effect and the repeats no spread")
    if any(kind(result) != kind(results[0]) for result in results[1:]):
        raise TollwayError("results of different experiments or parameters "
                           "have no common mean")


def _aggregate_links(runs):
    return {
        name: {key: value if key == "capacity_bps" else
               _statistics([links[name][key] for links in runs])
               for key, value in link.items()}
        for name, link in runs[0].items()}


def _aggregate_classes(runs):
    classes = []
    for same in zip(*runs):
        share = statistics.fmean(group["expected_pps"] for group in same)
        rate = _statistics([group["rate_pps"] for group in same])
        group = {
            "path": same[0]["path"], "wtp": same[0]["wtp"],
            "rate_pps": rate, "expected_pps": share,
            "error": rate["mean"] / share - 1,
            "error_ci95": rate["ci95"] and rate["ci95"] / share,
            "spread": _statistics([group["spread"] for group in same]),
        }
        if "convergence_s" in same[0]:
            for key in ("convergence_s", "near_s"):
                group[key] = _worst([group[key] for group in same])
            group["jain"] = min(group["jain"] for group in same)
        classes.append(group)
    return classes


def _worst(times):
    return None if None in times else max(times)


def _aggregate_bound(same, whole):
    if "than" in same[0]:
        return _judge_rival(same[0], _lookup(whole, same[0]["metric"],
                                             list(whole["links"])), None)
    bound = {"name": same[0]["name"], "metric": same[0]["metric"],
             "op": same[0]["op"], "value": same[0]["bound"]}
    measured = [entry["measured"] for entry in same]
    if bound["metric"] == OVER_SEEDS:
        return _judge(bound, _max_abs_error(None, whole))
    if None in measured:
        return _judge(bound, None)
    worst = max if bound["op"] == "<=" else min
    return _judge(bound, worst(measured))
