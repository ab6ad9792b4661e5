# SPDX-License-Identifier: GPL-2.0
"""Raw measurements, checked: those of the cases of a run."""

import math

import numpy as np

from ..errors import TollwayError
from ..theory import fairness
from .schema import LARGEST_UTILIZATION


# Samples come every 50-500 ms; a hole of a second would hide what happened.
_LONGEST_GAP_S = 1.0

EPSILON = 1e-9
# Bytes that leave a queue at once: a super-packet.
MOST_AT_ONCE = 1 << 16
# Samples of a flow that only grow.
COUNTERS = ("bytes_acked", "retransmits", "delivered", "delivered_ce")
# Where flows come and go more often than that in all, those of a millisecond do
# so at once: each time asks for all shares anew.
_EDGES_MAX = 1000
_EDGE_S = 0.001


def entry_of(mapping, key, where):
    """mapping[key] of a raw result, of any type. where: the name of the mapping in messages.
    Raises TollwayError if the mapping is no dict or has no such key."""
    if not isinstance(mapping, dict) or key not in mapping:
        raise TollwayError(f"the raw result has no {where}.{key}")
    return mapping[key]


def number_of(mapping, key, where, above=None):
    """mapping[key] of a raw result, a finite number. where: the name of the mapping in
    messages. above: a number that it must be greater than. Raises TollwayError if there is
    no such key, or if its value is no such number."""
    value = entry_of(mapping, key, where)
    if (isinstance(value, bool) or not isinstance(value, (int, float))
            or not math.isfinite(value) or (above is not None
                                            and value <= above)):
        wanted = "a number" if above is None else f"a number above {above}"
        raise TollwayError(f"the raw result's {where}.{key} is {value!r}, "
                           f"not {wanted}")
    return value


def series_of(mapping, key, where, length=None):
    """One list of samples as a float array, finite and of the right length. length: the number
    of samples that it must have. Raises TollwayError if there is no such list, or if it has
    other values or another length."""
    try:
        values = np.asarray(entry_of(mapping, key, where), dtype=float)
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
            raise TollwayError(f"the counter {where} decreases")
        self.times, self.values, self.where = times, values, where

    def at(self, time):
        return np.interp(time, self.times, self.values)

    def between(self, start, stop):
        return float(self.at(stop) - self.at(start))

    def end_within(self, start, stop):
        """The last sampled moment up to stop. Raises TollwayError if samples are missing in the
        window."""
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


def _sample_times(samples, where, least=2):
    times = series_of(samples, "t_s", where)
    if len(times) < least or np.any(np.diff(times) <= 0):
        raise TollwayError(f"{where} needs {least} samples or more, in order")
    return times


class _Pages:
    """The pages that a user of the HTTP model requested, from `pages` of the report."""

    def __init__(self, raw, where, stop):
        self.start = series_of(raw, "start_s", where)
        self.bytes = series_of(raw, "bytes", where, len(self.start))
        durations = entry_of(raw, "duration_s", where)
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

    def __init__(self, raw, paths, mss):
        self.id = entry_of(raw, "id", "flow")
        self.where = f"flow {self.id}"
        self.path = entry_of(raw, "path", self.where)
        self.links = entry_of(entry_of(paths, self.path, "paths"), "links",
                              f"path {self.path}")
        self.cc = entry_of(raw, "cc", self.where)
        self.wtp = raw.get("wtp")
        if self.wtp is not None:
            number_of(raw, "wtp", self.where, above=0)
        self.weight = 1.0 if self.wtp is None else float(self.wtp)
        self.start = number_of(raw, "start_s", self.where)
        self.stop = number_of(raw, "stop_s", self.where)
        self.mss = number_of({"mss_bytes": mss}, "mss_bytes", self.where, above=0)
        # Of our own sender; iperf3 does not say.
        self.connected = raw.get("final", {}).get("connected_s") or self.start
        self.samples = raw.get("samples") or {}
        self.pages = self.acked = self.times = None
        # Users of pages have no connection between them, so no samples.
        if "pages" in raw:
            self.samples = {}
            self.pages = _Pages(raw["pages"], self.where, self.stop)
            self.acked = self.pages.acked
        elif self.samples.get("t_s"):
            self._check_samples()

    def _check_samples(self):
        """All samples are finite and as many as their times, which are in
        order; counters do not run backwards."""
        self.times = _sample_times(self.samples, self.where, least=1)
        for key in self.samples:
            if key in COUNTERS:
                self.counter(key)
            else:
                series_of(self.samples, key, self.where, len(self.times))
        self.acked = self.counter("bytes_acked")

    def counter(self, key):
        """A counter of the flow's samples, 0 at its start; None if absent."""
        if key not in self.samples:
            return None
        values = series_of(self.samples, key, self.where, len(self.times))
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
        if self.acked is None or len(self.times) < 2:
            raise TollwayError(f"{self.where} needs two samples or more")
        if stop - start < EPSILON:
            raise TollwayError(f"{self.where} did not run while rates were "
                               "measured, so it has no rate")
        # A SYN may have been lost: until it is connected a flow has nothing to
        # sample, and has sent nothing.
        return start, self.acked.end_within(
            max(start, min(self.connected, self.times[0])), stop)

    def rate_pps(self, start, stop):
        return self.acked.between(start, stop) / self.mss / (stop - start)

    def overlap(self, start, stop):
        return min(stop, self.stop) - max(start, self.start)


def _rates_of(case, links):
    """[(s, bit/s, link)] of a case, in the order of time. Raises TollwayError."""
    found = case.get("rates", [])
    try:
        good = all(link in links and math.isfinite(when_s) and
                   0 < rate_bps < math.inf for when_s, rate_bps, link in found)
        times = [when_s for when_s, *_ in found]
    except (TypeError, ValueError):
        good = False
    if not good or times != sorted(times) or times and times[0] < 0:
        raise TollwayError("rates of a case are not [[time, bit/s, link], ...] "
                           "in the order of time")
    return found


class LinkRate:
    """The rate of a link, bit/s, which a case may change from time to time.

    case: one of raw["cases"]; links: as they are in it when it begins.
    """

    def __init__(self, case, links, name):
        self.first = number_of(entry_of(links, name, "links"), "capacity_bps",
                               f"link {name}", above=0)
        changes = [(when_s, rate_bps) for when_s, rate_bps, link in
                   _rates_of(case, links) if link == name]
        self.times = np.array([0.0, *(when_s for when_s, _ in changes)])
        self.rates = np.array([self.first, *(rate for _, rate in changes)],
                              dtype=float)

    def at(self, times):
        """The rate at each of these times, s."""
        return self.rates[np.maximum(np.searchsorted(
            self.times, times, side="right") - 1, 0)]

    def mean(self, start, stop):
        """The mean rate between two times, s."""
        if len(self.rates) == 1:
            return self.first
        ends = np.clip([*self.times, np.inf], start, stop)
        return float(np.diff(ends) @ self.rates / (stop - start))


class _Queue:
    """One link's queue: backlog samples and counters. rate: its LinkRate."""

    def __init__(self, raw, name, rate):
        self.name, self.where = name, f"queue {name}"
        self.raw, self.rate, self.capacity = raw, rate, rate.first
        self.times = _sample_times(raw, self.where)
        self.backlog = series_of(raw, "backlog_pkts", self.where,
                                 len(self.times))
        self._counters = {}
        for key in ("bytes", "drops"):
            self.counter(key)
        for key, held in (raw.get("classes") or {}).items():
            for column in held:
                series_of(held, column, f"{self.where}, class {key}")

    def counter(self, key):
        if key not in self._counters:
            self._counters[key] = _Counter(
                self.times,
                series_of(self.raw, key, self.where, len(self.times)),
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
        ends = [number_of(entry_of(self.raw, when, self.where), key,
                          f"{self.where}.{when}")
                for when in ("stats_at_warmup", "stats_at_end")]
        if ends[1] < ends[0]:
            raise TollwayError(f"{self.where}'s {key} decrease")
        return ends[1] - ends[0]

    def utilization(self, start, stop):
        """Fraction of the rate that was sent. It is not computed with stat(), because a slow host
        reads these counters late."""
        sent = self.counter("bytes")
        sent.end_within(start, stop)
        value = sent.between(start, stop) * 8 / (
            self.rate.mean(start, stop) * (stop - start))
        if value > LARGEST_UTILIZATION:
            raise TollwayError(
                f"link {self.name} carried {value:.1%} of its rate, so it is "
                f"not shaped as described")
        return value


def check_calibration(raw, bottlenecks):
    """Raises TollwayError if the raw result has no calibration of one of the bottlenecks (names
    of links), or if the calibration of any link failed."""
    calibration = entry_of(raw, "calibration", "raw")
    for name in bottlenecks:
        if name not in calibration:
            raise TollwayError(f"link {name} was not calibrated")
    for name, outcome in calibration.items():
        if not isinstance(outcome, dict) or outcome.get("ok") is not True:
            raise TollwayError(f"the calibration of link {name} failed, "
                               f"so nothing measured over it counts")


def cases_of(raw):
    """The cases of a raw result of RAW_SCHEMA as CaseData, all of it checked.

    Raises TollwayError if any of it cannot be trusted.
    """
    links = entry_of(raw, "links", "raw")
    bottlenecks = [name for name, link in links.items()
                   if link.get("bottleneck")]
    if not bottlenecks:
        raise TollwayError("the raw result names no bottleneck link")
    check_calibration(raw, bottlenecks)
    cases = [CaseData(raw, case) for case in entry_of(raw, "cases", "raw")]
    if not cases:
        raise TollwayError("the raw result has no cases")
    return cases


class CaseData:
    """One case of a raw result, checked, with what metrics need of it.

    raw: of RAW_SCHEMA; case: one of its cases.
    """

    def __init__(self, raw, case):
        self.raw, self.case = raw, case
        self.parameters = entry_of(raw, "parameters", "raw")
        self.packet_bytes = number_of(self.parameters, "packet_bytes",
                                      "parameters", above=0)
        self.warmup_s = number_of(self.parameters, "warmup_s", "parameters")
        self.duration_s = number_of(case, "duration_s", "case", above=0)
        # Parameters as the case had them.
        self.values = {**self.parameters, **(case.get("values") or {})}
        self.rtt_s = case.get("rtt_s")
        self.mss = raw.get("mss_bytes")
        # As the network was built, but for what the case changed.
        self.links = {**raw["links"], **case.get("links", {})}
        self.bottlenecks = [name for name, link in self.links.items()
                            if link.get("bottleneck")]
        self.paths = entry_of(raw, "paths", "raw")
        self.classes = {path: f"10:{number:x}" for number, path in
                        enumerate(self.paths, 1)}
        self.queues = {
            name: _Queue(queue, name, LinkRate(case, self.links, name))
            for name, queue in entry_of(case, "queues", "case").items()}
        for name in self.bottlenecks:
            entry_of(self.queues, name, "queues")
        self._capacity_pps = {
            name: number_of(link, "capacity_bps", f"link {name}", above=0)
            / (8 * self.packet_bytes) for name, link in self.links.items()}
        self.flows = [_Flow(flow, self.paths, self.mss)
                      for flow in entry_of(case, "flows", "case")]
        self._check_flows()
        self._check_queues()
        self._shares = {}

    def _check_flows(self):
        if not self.flows:
            raise TollwayError("the raw result has no flows")
        if len({flow.id for flow in self.flows}) < len(self.flows):
            raise TollwayError("two flows have the same id")
        if len({flow.wtp is None for flow in self.flows}) > 1:
            raise TollwayError("flows with and without a willingness to pay "
                               "have no common fair share")

    def _check_queues(self):
        """Queues were sampled to the end, and links are shaped as described."""
        for queue in self.queues.values():
            times = queue.times
            if max(np.max(np.diff(times)),
                   self.duration_s - times[-1]) > _LONGEST_GAP_S:
                raise TollwayError(f"{queue.where} was not sampled all the way "
                                   f"to {self.duration_s:g} s")
            sent = queue.counter("bytes").between(times[0], times[-1])
            most = queue.rate.mean(times[0], times[-1]) * (times[-1] - times[0]) / 8
            if sent - MOST_AT_ONCE > LARGEST_UTILIZATION * most:
                raise TollwayError(
                    f"link {queue.name} carried {sent / most:.1%} of its rate, "
                    f"so it is not shaped as described")

    def need_window(self):
        """Raise TollwayError if the warm-up leaves no time to measure."""
        if not 0 <= self.warmup_s < self.duration_s:
            raise TollwayError(
                f"nothing is left to measure: the warm-up of "
                f"{self.warmup_s:g} s is not within the duration of "
                f"{self.duration_s:g} s")

    def of_role(self, role=None):
        """The flows that have a control: TCP flows, and UDP flows with a law (`law=` of
        tollway-traffic(1)). role: only flows of this role. Raises TollwayError if one
        of them has failed."""
        found = [flow for flow in self.case["flows"]
                 if (flow["cc"] or flow.get("law")) and
                 role in (None, flow.get("role"))]
        for flow in found:
            if flow["final"].get("error"):
                raise TollwayError(f"{self.case['name']}: flow "
                                   f"{flow.get('name', flow['id'])} failed: "
                                   f"{flow['final']['error']}")
        return found

    def capacity_pps(self, link):
        return self._capacity_pps[link]

    def window(self, words):
        """(from, to) in s of the window of a metric."""
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
        """(times, backlog) of the queue of one flow, summed over all links of its path; None if no
        queue has classes."""
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
        """Time from when a transfer has data until its last acknowledgement, s, or None."""
        transfers = flow["final"].get("transfers") or [{}]
        end_s = transfers[0].get("end_s")
        return None if end_s is None else end_s - flow["start_s"]

    def acked_at(self, flow, times):
        """Bytes acknowledged at these times, interpolated linearly."""
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

    def shares(self, active):
        """Fair rates in packets/s of the flows in active, by id."""
        key = frozenset(flow.id for flow in active)
        if key not in self._shares:
            self._shares[key] = fairness.wpf_allocation(
                self._capacity_pps,
                [(flow.id, flow.weight, flow.links) for flow in active])
        return self._shares[key]

    def expected_pps(self):
        """The fair rate of each flow, averaged over its part of the window."""
        edges = {self.warmup_s, self.duration_s}
        for flow in self.flows:
            edges |= {edge for edge in (flow.start, flow.stop)
                      if self.warmup_s < edge < self.duration_s}
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
