# SPDX-License-Identifier: GPL-2.0
"""Metrics of rates and shares."""

import statistics

import numpy as np

from ...errors import TollwayError
from ...theory import fairness, measures, pricing
from ..fields import mean_of
from ..measurements import EPSILON, entry_of, number_of, series_of


def goodput_share(data, words):
    """Packets of data acknowledged in the window, divided by what the first link can carry."""
    start, stop = data.window(words)
    flows = data.of_role(words.get("role"))
    link = next(iter(data.links))
    return sum(data.rate_pps(flow, start, stop) for flow in flows) \
        / data.capacity_pps(link) if flows else None


def goodput_each(data, words):
    """goodput_share() of a role, divided by the number of its flows; None if it has none."""
    share = goodput_share(data, words)
    return share and share / len(data.of_role(words["role"]))


def advantage(data, words):
    """Goodput of a source of a role, divided by an equal share of all goodput."""
    mine = goodput_each(data, words)
    together = goodput_share(data, {**words, "role": None})
    if not mine or not together:
        return None
    return mine * len(data.of_role()) / together


def sent_most(data, words):
    """The largest rate at which a flow of a role sent over one round trip within the window,
    divided by what the first link can carry; None if the window is shorter. What was sent
    is what is acknowledged and what is outstanding."""
    start, stop = data.window(words)
    width = data.rtt_s
    ends = np.arange(start + width, stop + EPSILON, width / 20)
    if not len(ends):
        return None

    def sent(flow, times):
        samples = flow["samples"]
        return data.acked_at(flow, times) / data.mss + np.interp(
            times, samples["t_s"], samples["unacked"])

    return max(float((sent(flow, ends) - sent(flow, ends - width)).max()) for flow in
               data.of_role(words["role"])) / width / data.capacity_pps(next(iter(data.links)))


def told_most(data, words):
    """The largest service rate of which a flow of a role was told by its pairs, within the
    window, divided by what the first link can carry; None if its congestion control reports
    none."""
    start, stop = data.window(words)
    told = [bps for flow in data.of_role(words["role"])
            for t_s, bps in zip(flow["samples"]["t_s"],
                                flow["samples"].get("cc_rate_bps", ()))
            if start <= t_s <= stop]
    return max(told) / (8 * data.mss) / data.capacity_pps(next(iter(data.links))) \
        if any(told) else None


def rates(data, words):
    """[packets/s] of the data of each flow of a role that was acknowledged in the window of a
    metric."""
    start, stop = data.window(words)
    return [data.rate_pps(flow, start, stop)
            for flow in data.of_role(words.get("role"))]


def goodput_mbit(data, words):
    """Data of all flows of a role that was acknowledged in the window, Mbit/s; None if the case
    has no such flow."""
    if not data.of_role(words.get("role")):
        return None
    return 8e-6 * data.mss * sum(rates(data, words))


def _whole_rates(data, words):
    """Of those flows that are there for the whole window.

    The seed puts off each start by up to start_jitter_s. A flow that was to
    start with the window is still there for all of it; the window of all such
    flows begins with the last of them.
    """
    start, stop = data.window(words)
    latest = start + data.values.get("start_jitter_s", 0.0) + EPSILON
    flows = []
    for flow in data.of_role(words.get("role")):
        done = data.completion_s(flow)
        ends = flow["stop_s"] if done is None else flow["start_s"] + done
        if flow["start_s"] <= latest and ends >= stop - EPSILON:
            flows.append(flow)
    start = max([start, *(flow["start_s"] for flow in flows)])
    return [data.rate_pps(flow, start, stop) for flow in flows] \
        if stop - start > EPSILON else []


def jain(data, words):
    """Jain's index of the rates of those flows of a role that run during the whole window; None
    if there are none, or if they sent nothing."""
    rates = _whole_rates(data, words)
    return measures.jain_index(rates) if rates and max(rates) > 0 else None


def share_error(data, words):
    """Largest relative difference of the rate of a flow from an equal share."""
    rates = _whole_rates(data, words)
    fair = statistics.fmean(rates) if rates else None
    return max(abs(rate / fair - 1) for rate in rates) if fair else None


# In a window of settled_s each flow's share is so many packets at least: one
# more or less is then a third of the 15 % that the bound of issue 14 leaves.
SHARE_PKTS = 20


def settled_s(data, words):
    """Time from the last start or stop of a flow to the end of the last window, s, in which the
    rate of a flow differs from an equal share of the link by more than `part`, or in which
    the sum of all rates is below `level` of the rate of the link. None if this is the last
    window of the case."""
    changes = [flow[key] for flow in data.of_role()
               for key in ("start_s", "stop_s")]
    event = max(t for t in changes if t < data.duration_s)
    flows = [flow for flow in data.of_role() if flow["stop_s"] > event]
    capacity = data.capacity_pps(words["link"])
    fair = capacity / len(flows)
    width_s = max(words["width_s"], SHARE_PKTS / fair)
    starts = np.arange(event, data.duration_s - width_s + EPSILON,
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


SETTLE_S = 2.0
CONVERGENCE_WINDOW_S = 1.0
CONVERGENCE_BAND = 0.10
_CONVERGENCE_STEP_S = 0.05
NEAR_WINDOW_S = 2.0
NEAR_BAND = 0.05


def measure_flows(run):
    """([numbers of a flow], {flow id: packets/s}) of a run (CaseData) from the end of the
    warm-up to the end of the run, or while the flow runs. The numbers are those of a result,
    see result.schema.json. Raises TollwayError if a flow sent nothing in this time, unless
    it is a user of pages."""
    flows, rates = [], {}
    for flow in run.flows:
        start, stop = flow.window(run.warmup_s, run.duration_s)
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
            "rtt_mean_ms": rtt_mean_ms(flow, start, stop),
        })
    return flows, rates


def rtt_mean_ms(flow, start, stop):
    """Mean smoothed round-trip time of a flow in the samples from start to stop (s), ms; None
    if there are none."""
    if "srtt_us" not in flow.samples:
        return None
    rtt = series_of(flow.samples, "srtt_us", flow.where, len(flow.times))
    rtt = rtt[(flow.times >= start) & (flow.times <= stop) & (rtt > 0)]
    return float(np.mean(rtt)) / 1000 if len(rtt) else None


def by_class(flows):
    """Dict (path, wtp) -> flows, in the order of the flows."""
    groups = {}
    for flow in flows:
        groups.setdefault((flow.path, flow.wtp), []).append(flow)
    return groups


def classes_of(flows, rates, expected):
    """[numbers of a class] of flows with the same path and willingness to pay, as in a result:
    mean rate and mean expected rate (packets/s), the relative error of the former, and the
    range of rate/expected divided by its mean. rates, expected: {flow id: packets/s}."""
    classes = []
    for (path, wtp), members in by_class(flows).items():
        mean = statistics.fmean(rates[flow.id] for flow in members)
        parts = [rates[flow.id] / expected[flow.id] for flow in members]
        share = statistics.fmean(expected[flow.id] for flow in members)
        classes.append({
            "path": path, "wtp": wtp, "rate_pps": mean,
            "expected_pps": share, "error": mean / share - 1,
            "spread": (max(parts) - min(parts)) / statistics.fmean(parts),
        })
    return classes


def steady_form_of(parameters):
    """The form of pricing.STEADY_FORMS that the sources of a run have."""
    return pricing.steady_form(*(entry_of(parameters, name, "parameters")
                                 for name in ("source", "estimator")))


def steady_state_of(run, result):
    """Each priced link beside the model of CP05 5.5, see theory.steady_state.

    Only for links that are the only ones of the flows over them.
    """
    form = steady_form_of(run.parameters)
    target, gamma = _target_and_gamma(run)
    points = []
    for name in run.bottlenecks:
        flows = [flow for flow in run.flows if list(flow.links) == [name]]
        model = pricing.steady_state(
            run.capacity_pps(name), [flow.weight for flow in flows],
            target, gamma, form)
        queue, paths = run.queues[name], {flow.path for flow in flows}
        points.append({
            "link": name, "flows": len(flows),
            "wtp_sum": sum(flow.weight for flow in flows),
            "capacity_pps": run.capacity_pps(name),
            "max_rate_error": max(
                abs(group["error"]) for group in result["classes"]
                if group["path"] in paths),
            "mark_probability": queue.stat("marks") / max(
                queue.stat("packets"), 1),
            "expected_mark_probability": model["mark_probability"],
            "queue_pkts": result["links"][name]["queue_mean_pkts"],
            "expected_queue_pkts": model["queue_pkts"]})
    return points


def intervals_of(run):
    """[numbers of an interval] of the schedule of a run (CaseData), as in a result: links,
    classes and times of convergence (s). An interval is measured from SETTLE_S after its
    start, or from the end of the warm-up. Raises TollwayError if an interval is too short
    for that, if it has no flows, or if one of them sent nothing."""
    schedule = run.raw["schedule"]
    starts = [number_of(step, "t_s", "schedule") for step in schedule]
    stops = starts[1:] + [run.duration_s]
    intervals = []
    for step, start, stop in zip(schedule, starts, stops):
        settled = max(start + SETTLE_S, run.warmup_s)
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
        classes = classes_of(active, rates, shares)
        for group, members in zip(classes, by_class(active).values()):
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
            "factor": number_of(step, "factor", "schedule"),
            "links": {
                name: _interval_link(queue, max(start, run.warmup_s), settled,
                                     stop)
                for name, queue in run.queues.items()},
            "classes": classes,
            "max_convergence_s": longest_of(times),
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
    """Seconds from start until the class first has its share, within a band over a window; None
    if that never happens."""
    times = np.arange(start, stop - window_s + EPSILON, _CONVERGENCE_STEP_S)
    rate = sum((flow.acked.at(times + window_s) - flow.acked.at(times))
               / flow.mss for flow in members)
    rate = rate / window_s / len(members)
    near = np.flatnonzero(np.abs(rate / share - 1) <= band)
    return round(float(times[near[0]] - start), 3) if len(near) else None


def max_abs_error(run, result):
    """The largest relative difference of the mean rate of a class from its expected rate."""
    return max(abs(group["error"]) for group in result["classes"])


def max_spread(run, result):
    """The largest range of the rates of the flows of a class, divided by their mean; each rate
    is divided by its expected rate first."""
    return max(group["spread"] for group in result["classes"])


def _steady_points(result):
    if "steady_state" not in result:
        raise TollwayError("a bound on the steady state needs a run that is "
                           "compared with it")
    return result["steady_state"]


def max_rate_error(run, result):
    """The largest relative difference of a class mean from the model of CP05 5.5. Raises
    TollwayError if the result is not compared with that model."""
    return max(point["max_rate_error"] for point in _steady_points(result))


def max_steady_mark_error(run, result):
    """The largest relative difference of the marked fraction of the packets of a link from the
    model of CP05 5.5. Raises TollwayError if the result is not compared with that model."""
    return max(abs(point["mark_probability"] /
                   point["expected_mark_probability"] - 1)
               for point in _steady_points(result))


def max_steady_queue_error(run, result):
    """The largest relative difference of the mean backlog of a link from the model of CP05 5.5.
    Raises TollwayError if the result is not compared with that model."""
    return max(abs(point["queue_pkts"] / point["expected_queue_pkts"] - 1)
               for point in _steady_points(result))


def _interval_list(result):
    if "intervals" not in result:
        raise TollwayError("a bound on intervals needs a schedule")
    return result["intervals"]


def min_utilization_after_2s(run, result):
    """The smallest utilisation of a bottleneck in an interval, without the first SETTLE_S (2 s)
    of each. Raises TollwayError if the result has no intervals."""
    return min(interval["links"][name]["utilization_after_2s"]
               for interval in _interval_list(result)
               for name in run.bottlenecks)


def drops_after_2s(run, result):
    """Packets dropped at all links in all intervals, without the first SETTLE_S (2 s) of each.
    Raises TollwayError if the result has no intervals."""
    return sum(link["drops_after_2s"] for interval in _interval_list(result)
               for link in interval["links"].values())


def max_interval_error(run, result):
    """The largest relative difference of a class mean from its expected rate in an interval.
    Raises TollwayError if the result has no intervals."""
    return max(abs(group["error"]) for interval in _interval_list(result)
               for group in interval["classes"])


def max_convergence_s(run, result):
    """The longest time from the start of an interval until the class means are near their
    expected rates, s; None if that does not happen in one of them. Raises TollwayError if
    the result has no intervals."""
    times = [interval["max_convergence_s"]
             for interval in _interval_list(result)]
    return None if None in times else max(times)


def aimd_max_abs_error(run, result):
    """The largest relative difference of a class mean from x = w (1 - m)/m, the equilibrium of
    the source aimd with the marked fraction m. None if a class has no marks, or nothing
    else. Raises TollwayError if a class has no willingness to pay."""
    worst = 0.0
    groups = by_class(run.flows)
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
    """Marked fraction of the packets of a class: from its own counters, or from those of its
    links."""
    marked = delivered = 0.0
    for flow in members:
        counters = flow.counter("delivered_ce"), flow.counter("delivered")
        if None not in counters:
            start, stop = flow.window(run.warmup_s, run.duration_s)
            marked += counters[0].between(start, stop)
            delivered += counters[1].between(start, stop)
    if marked > 0 and delivered > 0:
        return marked / delivered
    queues = [run.queues[link] for link in members[0].links
              if link in run.queues]
    return pricing.path_mark_probability(
        queue.stat("marks") / max(queue.stat("packets"), 1)
        for queue in queues)


def _target_and_gamma(run):
    """b0 in packets and the price per packet of a run; gamma 0 means auto."""
    target = number_of(run.parameters, "target", "parameters")
    return target, number_of(run.parameters, "gamma", "parameters") or \
        pricing.gamma_auto(number_of(run.parameters, "limit", "parameters"),
                           target)


def max_queue_error(run, result):
    """Largest difference of a mean backlog, for links with the law sbrm and the default source.
    The price of such a link is that of the weighted proportionally fair shares (CP05 3.2.5)."""
    _, prices = fairness.wpf_solution(
        {name: run.capacity_pps(name) for name in run.links}, [(flow.id, flow.weight, flow.links)
                           for flow in run.flows])
    target, gamma = _target_and_gamma(run)
    return max(abs(result["links"][name]["queue_mean_pkts"] /
                   pricing.expected_backlog(target, gamma, prices[name]) - 1)
               for name in run.bottlenecks)


def path_share(_run, result, path):
    """Rate of a path, divided by its weighted proportionally fair rate."""
    rates, shares = zip(*(
        (mean_of(group["rate_pps"]), group["expected_pps"])
        for group in result["classes"] if group["path"] == path))
    return sum(rates) / sum(shares)


def longest_of(times):
    """The largest of some times; None if one of them is None, which means that the event never
    came."""
    return None if None in times else max(times)
