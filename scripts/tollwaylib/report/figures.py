# SPDX-License-Identifier: GPL-2.0
"""Figures of one run, each as SVG and PNG.

raw: its raw result; name: of the case that is drawn. out: path without suffix.
look: the Look of the page. All return [SVG path, PNG path].
"""

import numpy as np

from ..components import AQMS
from ..components.pp import ESTIMATE_SCALE, STATE_UNIT
from ..errors import TollwayError
from ..results.fields import case_of
from ..results.measurements import CaseData
from .plotting import (INK, LINES, STYLE, THEORY, headroom, legend_above, plt, save,
                       sawtooth, shade_intervals)
from .names import heading, of_case


def windows(raw, name, out, look, flow_ids=(1, 5, 9)):
    """Congestion windows over time (as CP05 Figure 4.3.6).

    flow_ids: the flows to show, those that exist. With a schedule, every second
    interval is shaded. Raises TollwayError if none of them exists.
    """
    case = case_of(raw, name)
    chosen = [flow for flow in case["flows"] if flow["id"] in flow_ids]
    if not chosen:
        raise TollwayError(f"none of the flows "
                           f"{', '.join(map(str, flow_ids))} is in the run")
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(9, 4.2))
        shade_intervals(axes, raw)
        for index, flow in enumerate(chosen):
            wtp = "" if flow["wtp"] is None else f", wtp {flow['wtp']:g}"
            axes.step(flow["samples"]["t_s"], flow["samples"]["cwnd"],
                      where="post", linewidth=1.3,
                      color=look.line("path", flow["path"])["color"],
                      linestyle=LINES[index % len(LINES)],
                      label=f"flow {flow['id']} (path {flow['path']}{wtp})")
        axes.set_title(f"Congestion windows: {heading(raw, case)}")
        axes.set_xlabel("time [s]")
        axes.set_ylabel("window [packets]")
        axes.set_xlim(0, case["duration_s"])
        headroom(axes, max(max(flow["samples"]["cwnd"]) for flow in chosen))
        legend_above(axes)
        return save(figure, out)


def queues(raw, name, out, look):
    """Backlog of each queue over time (as CP05 Figure 4.3.7).

    The queues stand below each other on one time axis, with mean after the
    warm-up and, when the AQM has one, target. With a schedule, every second
    interval is shaded.
    """
    case = case_of(raw, name)
    links = list(case["queues"])
    parameters = raw["parameters"]
    target = None
    # Some queues have a backlog to aim at (CP05 b0).
    if "{target}" in AQMS.get(parameters.get("aqm"), ""):
        target = parameters.get("target")
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(
            len(links), 1, figsize=(9, 1.2 + 2.3 * len(links)), sharex=True,
            squeeze=False)
        for link, axes in zip(links, panels[:, 0]):
            sampled = case["queues"][link]
            times = np.asarray(sampled["t_s"], dtype=float)
            backlog = np.asarray(sampled["backlog_pkts"], dtype=float)
            mean = backlog[times >= parameters["warmup_s"]].mean()
            shade_intervals(axes, raw)
            axes.step(times, backlog, where="post", linewidth=0.6,
                      label=f"queue {link}", **look.line("link", link))
            axes.axhline(mean, color=INK, linewidth=1.3, linestyle="--",
                         label=f"mean after warm-up {mean:.1f}")
            if target is not None:
                axes.axhline(target, color=THEORY, linewidth=1.3,
                             linestyle=":", label=f"target {target:g}")
            axes.set_ylabel("backlog [packets]")
            headroom(axes, max(backlog.max(), target or 0))
            axes.set_xlim(0, case["duration_s"])
            if link == links[0]:
                axes.set_title(f"Queues: {heading(raw, case)}")
            legend_above(axes)
        panels[-1, 0].set_xlabel("time [s]")
        return save(figure, out)


def acknowledgements(raw, name, out, look, paths=("S3", "S5", "S6", "S1"),
                     modulus=2000):
    """Acknowledged segments of two flows of each path, modulo 2000 (as CP05
    Figures 4.4.4 and 5.2.7): equal slopes are equal rates.

    paths: those to show, that exist. The two flows are the first that run from
    the beginning. Raises TollwayError if the run has none of the paths.
    """
    case = case_of(raw, name)
    chosen = {path: [flow for flow in case["flows"] if flow["path"] == path][:2]
              for path in paths}
    chosen = {path: flows for path, flows in chosen.items() if flows}
    if not chosen:
        raise TollwayError("the run has none of the paths "
                           f"{', '.join(paths)}")
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(
            len(chosen), 1, figsize=(9, 1.2 + 1.9 * len(chosen)), sharex=True,
            squeeze=False)
        for (path, flows), axes in zip(chosen.items(), panels[:, 0]):
            shade_intervals(axes, raw)
            for index, flow in enumerate(flows):
                segments = np.asarray(flow["samples"]["bytes_acked"],
                                      dtype=float) / raw["mss_bytes"]
                axes.plot(*sawtooth(flow["samples"]["t_s"], segments,
                                    modulus), linewidth=0.9,
                          color=look.line("path", path)["color"],
                          linestyle=("-", "--")[index],
                          label=f"path {path}, flow {index + 1}")
            axes.set_ylabel(f"{path}: segment")
            axes.set_ylim(0, 1.12 * modulus)
            axes.set_xlim(0, case["duration_s"])
            if axes is panels[0, 0]:
                axes.set_title(f"Acknowledged segments modulo {modulus}: "
                               f"{heading(raw, case)}")
            legend_above(axes)
        panels[-1, 0].set_xlabel("time [s]")
        return save(figure, out)


def price_tracking(raw, name, out, look, path="S1", step_s=0.5):
    """The price of a path, and the estimate of its first flow (as CP05 Figure 5.2.4), in base
    e.

    The price is the sum of the sampled prices of the path's queues. If marks carry the price,
    the estimate is -ln(1 - m) of the acknowledged segments. If the price itself is sent, the
    estimate is w over the rate of the flow, the price for which this rate is right. All are
    means over step_s. Raises TollwayError if a queue of the path has no price.
    """
    case = case_of(raw, name)
    flow = next((flow for flow in case["flows"] if flow["path"] == path), None)
    if flow is None or any("price_q32" not in case["queues"][link]
                           for link in raw["paths"][path]["links"]):
        raise TollwayError(f"the price of path {path} is known only if all of "
                           "its queues are sbrm")
    parameters = raw["parameters"]
    edges = np.arange(0, case["duration_s"] + step_s / 2, step_s)
    middles = (edges[:-1] + edges[1:]) / 2
    actual = np.zeros(len(middles))
    for link in raw["paths"][path]["links"]:
        sampled = case["queues"][link]
        prices = np.asarray(sampled["price_q32"], dtype=float) / 2**32
        place = np.digitize(sampled["t_s"], edges) - 1
        for index in range(len(middles)):
            there = prices[place == index]
            actual[index] += there.mean() if len(there) else np.nan
    samples = flow["samples"]
    marked, delivered = (
        np.diff(np.interp(edges, samples["t_s"], samples[key]))
        for key in ("delivered_ce", "delivered"))
    if any(samples["delivered_ce"]):
        label = f"from the marks of flow {flow['id']}"
        part = np.divide(marked, delivered, where=delivered > 0,
                         out=np.full(len(middles), np.nan))
        estimate = -np.log1p(-np.minimum(part, 0.999))
    else:
        label = f"w over the rate of flow {flow['id']}"
        wtp = flow["wtp"] * np.log(parameters["phi"]) \
            if parameters["phi"] > 1 else flow["wtp"]
        estimate = np.divide(wtp * step_s, delivered, where=delivered > 0,
                             out=np.full(len(middles), np.nan))
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(9, 4.2))
        shade_intervals(axes, raw)
        axes.plot(middles, actual, color=look.line("path", path)["color"], linewidth=1.4,
                  label=f"price of path {path}")
        axes.plot(middles, estimate, linewidth=0.9, label=label,
                  **look.line("flow", flow["id"]))
        axes.set_title(f"Price tracking: {heading(raw, case)}")
        axes.set_xlabel("time [s]")
        axes.set_ylabel("price (base e)")
        axes.set_xlim(0, case["duration_s"])
        # One flow's marks are few: its noise may leave the picture.
        headroom(axes, 1.25 * np.nanmax(actual))
        legend_above(axes)
        return save(figure, out)

# More sources than this are not told apart.
_SOURCES = 6


def _scale(case):
    """(s of a unit of the time axis, its name)."""
    if case.get("rtt_s"):
        return case["rtt_s"], "time [round trips]"
    return 1.0, "time [s]"


def _some_flows(flows):
    return flows if len(flows) <= _SOURCES else [
        flows[index] for index in sorted({round(place) for place in np.linspace(
            0, len(flows) - 1, _SOURCES)})]


def _end_s(case):
    """When the last transfer is done, or the case, s."""
    ends = [(flow["final"].get("transfers") or [{}])[0].get("end_s")
            for flow in case["flows"] if flow["cc"]]
    return case["duration_s"] if None in ends or not ends \
        else min(1.05 * max(ends), case["duration_s"])


def _one(raw, name, out, label, draw):
    """A figure of one panel with the time as its x axis."""
    case = case_of(raw, name)
    unit_s, unit = _scale(case)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(9, 4.2))
        top = draw(axes, case, unit_s)
        axes.set_title(of_case(raw, name))
        axes.set_xlabel(unit)
        axes.set_ylabel(label)
        axes.set_xlim(0, _end_s(case) / unit_s)
        headroom(axes, top)
        if axes.get_legend_handles_labels()[0]:
            legend_above(axes)
        return save(figure, out)


def queue(raw, name, out, look):
    """Backlog, setpoint, outstanding packets, and the queue that the source estimates (as PP94
    Figure 11)."""
    def draw(axes, case, unit_s):
        top = 0
        for link, sampled in case["queues"].items():
            axes.step(np.asarray(sampled["t_s"]) / unit_s,
                      sampled["backlog_pkts"], where="post", linewidth=0.8,
                      **look.line("link", link), label=f"queue {link}")
            top = max(top, *sampled["backlog_pkts"])
        # Nobody knows what a stream over UDP has outstanding.
        for flow in [flow for flow in case["flows"]
                     if "unacked" in flow.get("samples", ())][:1]:
            samples = flow["samples"]
            axes.plot(np.asarray(samples["t_s"]) / unit_s, samples["unacked"],
                      linewidth=0.9, **look.line("outstanding", ""),
                      label=f"outstanding, source {flow['name']}")
            top = max(top, *samples["unacked"])
            if any(samples.get("cc_rate_bps", ())):
                axes.plot(np.asarray(samples["t_s"]) / unit_s,
                          np.asarray(samples["cc_pacing_gain"])
                          / ESTIMATE_SCALE,
                          linewidth=0.9, **look.line("estimate", ""),
                          label=f"estimate of source {flow['name']}")
        setpoint = {**raw["parameters"], **case["values"]}.get("setpoint")
        if setpoint:
            axes.axhline(setpoint, color=THEORY, linestyle=":",
                         label="setpoint")
        return top
    return _one(raw, name, out, "packets", draw)


def has_classes(raw, name):
    """True if the queues of a case have a class for each source."""
    data = CaseData(raw, case_of(raw, name))
    flows = data.of_role()
    return bool(flows) and all(data.own_queues(flow) is not None
                               for flow in flows)


def class_queues(raw, name, out, look):
    """Backlog of each source's own queue (as PP94 Figures 15 and 20)."""
    data = CaseData(raw, case_of(raw, name))

    def draw(axes, case, unit_s):
        top = 0
        for flow in _some_flows(data.of_role()):
            own = data.own_queues(flow)
            if own is None:
                raise TollwayError(f"{name}: the queue has no classes")
            axes.step(own[0] / unit_s, own[1], where="post", linewidth=0.8,
                      **look.line("source", flow["name"]), label=f"source {flow['name']}")
            top = max(top, own[1].max())
        del case
        return top
    return _one(raw, name, out, "backlog [packets]", draw)


def sequence(raw, name, out, look):
    """Packets acknowledged, and sent if samples have what is outstanding (as PP94 Figures 14,
    16 and 21)."""
    def draw(axes, case, unit_s):
        flows = [flow for flow in case["flows"] if flow["cc"]]
        top = 0
        for flow in _some_flows(flows):
            packets = np.asarray(flow["samples"]["bytes_acked"]) \
                / raw["mss_bytes"]
            at = np.asarray(flow["samples"]["t_s"]) / unit_s
            line = look.line("source", flow["name"])
            axes.plot(at, packets, linewidth=1.1, **line, label=f"source {flow['name']}")
            if "unacked" in flow["samples"]:
                packets = packets + np.asarray(flow["samples"]["unacked"])
                axes.plot(at, packets, linewidth=0.6, alpha=0.6, **line)
            top = max(top, packets.max(initial=0))
        return top
    return _one(raw, name, out, "acknowledged, and sent [packets]", draw)


def _sampled(raw, name, out, look, key, label, value):
    """A field of the samples of some sources over time. value: function of the field's numbers
    and the case; numbers that are 0 are left out."""
    def draw(axes, case, unit_s):
        top = 0
        for flow in _some_flows([flow for flow in case["flows"]
                                 if any(flow.get("samples", {}).get(key, ()))]):
            numbers = np.asarray(flow["samples"][key], dtype=float)
            times = np.asarray(flow["samples"]["t_s"])[numbers > 0]
            values = value(numbers[numbers > 0], case)
            axes.step(times / unit_s, values, where="post", linewidth=1.0,
                      **look.line("source", flow["name"]), label=f"source {flow['name']}")
            top = max(top, values.max(initial=0))
        return top
    return _one(raw, name, out, label, draw)


def spacing(raw, name, out, look):
    """What sources take for the service time, from the distances of the ACKs of pairs (as PP94
    Figure 19), in hundredths of the round trip."""
    return _sampled(raw, name, out, look, "cc_rate_bps", "service time [RTT/100]",
                    lambda bps, case: 8 * raw["mss_bytes"] / bps / case["rtt_s"] * 100)


def setpoints(raw, name, out, look):
    """Setpoints of sources (as PP94 Figure 15)."""
    return _sampled(raw, name, out, look, "cc_cwnd_gain", "setpoint [packets]",
                    lambda gain, case: gain / ESTIMATE_SCALE % STATE_UNIT)


def rates(raw, name, out, look):
    """Rates of sources as fractions of the link's rate (as PP94 Figures 17 and 18)."""
    data = CaseData(raw, case_of(raw, name))
    return _rates(data, raw, name, out, look, "rate, parts of the link's",
                  1 / data.capacity_pps(next(iter(data.links))))


def throughput(raw, name, out, look):
    """Acknowledged data of sources, Mbit/s."""
    data = CaseData(raw, case_of(raw, name))
    return _rates(data, raw, name, out, look, "goodput [Mbit/s]", 8e-6 * data.mss)


def _rates(data, raw, name, out, look, title, factor, window_units=50):
    """factor: the value in the figure of one packet per second."""
    def draw(axes, case, unit_s):
        width_s = window_units / 100 * unit_s
        at = np.arange(width_s, _end_s(case), width_s / 5)
        top = 0
        for flow in _some_flows(data.of_role()):
            rate = (data.acked_at(flow, at)
                    - data.acked_at(flow, at - width_s)) / data.mss \
                / width_s * factor
            axes.plot(at / unit_s, rate, linewidth=1.1,
                      **look.line("source", flow["name"]), label=f"source {flow['name']}")
            top = max(top, rate.max(initial=0))
        return top
    return _one(raw, name, out, title, draw)


def utilization(raw, name, out, look, window_units=25):
    """Utilisation of the links in windows of 25 units (as PP94 Figure 13)."""
    queues = CaseData(raw, case_of(raw, name)).queues

    def draw(axes, case, unit_s):
        width_s = window_units / 100 * unit_s
        at = np.arange(width_s, case["duration_s"], width_s)
        for link, sampled in case["queues"].items():
            sent = np.interp(at, sampled["t_s"], sampled["bytes"]) \
                - np.interp(at - width_s, sampled["t_s"], sampled["bytes"])
            mean = [queues[link].rate.mean(stop - width_s, stop) for stop in at]
            axes.step(at / unit_s, 800 * sent / width_s / mean, where="pre",
                      **look.line("link", link), label=f"link {link}")
        return 100
    return _one(raw, name, out, "utilisation [%]", draw)


def frames(raw, name, out, look):
    """Coded data of each coder over the last second."""
    def draw(axes, case, unit_s):
        top = 0
        coders = [flow for flow in case["flows"] if flow["role"] == "video"]
        for flow in _some_flows(coders):
            made = flow["final"].get("frames")
            times, values = flow["samples"]["t_s"], \
                flow["samples"]["bytes_acked"]
            if made:
                times, values = made["t_s"], np.cumsum(made["bytes"])
            at = np.arange(1.0, case["duration_s"], 0.25)
            mbit = 8e-6 * (np.interp(at, times, values)
                           - np.interp(at - 1.0, times, values))
            axes.plot(at / unit_s, mbit, linewidth=1.1,
                      **look.line("source", flow["name"]), label=f"coder {flow['name']}")
            top = max(top, mbit.max())
        return top
    return _one(raw, name, out, "coded [Mbit/s]", draw)


def admission(raw, name, out, look):
    """For a case whose packets' delays were measured: offered rates, beta of each gate, the
    backlog, and delay and goodput in each second (as AACC Figures 6 to 11)."""
    case = case_of(raw, name)
    data, passages = CaseData(raw, case), case["passages"]
    seconds = np.asarray(passages["t_s"])
    link, sampled = next(iter(case["queues"].items()))
    per_s = passages["unit_s"] / np.diff([*seconds, case["duration_s"]])
    flows = passages["flows"].values()

    def total(key):
        return sum(np.asarray(flow[key], dtype=float) for flow in flows)

    def draw_offered(axes):
        for flow in case["flows"]:
            modulated = flow["final"].get("mmpp")
            if modulated:
                axes.plot(modulated["t_s"], np.asarray(modulated["rate_bps"])
                          / data.links[link]["capacity_bps"], linewidth=0.8,
                          **look.line("source", flow["name"]),
                          label=f"source {flow['name']}")
        axes.step(seconds, total("entered_each_s") * per_s, where="post",
                  color=THEORY, linewidth=1.1, label="admitted, all")
        axes.set_ylabel("of the rate")

    def draw_beta(axes):
        for gate, program in case.get("programs", {}).items():
            for trace in program["output"].values():
                axes.step(trace["t_s"], trace["beta"], where="post",
                          linewidth=1.0, **look.line("gate", gate),
                          label=f"gate {gate}")
        axes.set_ylabel("beta")
        axes.set_ylim(0, 1.05)

    def draw_queue(axes):
        axes.step(sampled["t_s"], sampled["backlog_pkts"], where="post",
                  linewidth=0.6, **look.line("link", link),
                  label=f"queue {link}")
        axes.set_ylabel("packets")
        axes.set_ylim(bottom=0)

    def draw_delay(axes):
        entered = np.maximum(total("left_each_s"), 1)
        axes.step(seconds, total("delay_sum_each_s") / entered, where="post",
                  color=INK, label="mean delay")
        axes.axhline(data.parameters["time_limit"], color=THEORY,
                     linestyle=":", label="limit")
        axes.set_ylabel("packet times")
        axes.set_ylim(bottom=0)

    def draw_goodput(axes):
        axes.step(seconds, total("in_time_each_s") * per_s, where="post",
                  color=INK, label="goodput")
        axes.set_ylabel("of the rate")
        axes.set_ylim(0, 1.05)

    draws = [draw_offered, draw_queue, draw_delay, draw_goodput]
    if case.get("programs"):
        draws.insert(1, draw_beta)
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(len(draws), 1, sharex=True,
                                      figsize=(9, 1.2 + 1.9 * len(draws)))
        for draw, axes in zip(draws, panels):
            draw(axes)
            axes.legend(ncol=4)
        panels[0].set_title(of_case(raw, name))
        panels[-1].set_xlabel("time [s]")
        panels[-1].set_xlim(0, case["duration_s"])
        return save(figure, out)


PICTURES = {"queue": queue, "class_queues": class_queues,
            "sequence": sequence, "spacing": spacing, "setpoints": setpoints,
            "rates": rates, "throughput": throughput,
            "utilization": utilization,
            "frames": frames, "admission": admission}
CAPTIONS = {
    "queue": "Packets in the queue, and packets that the first source has sent "
             "and that are not acknowledged",
    "class_queues": "Packets in each source's own queue",
    "sequence": "Packets that are acknowledged, and (thin) that are sent",
    "spacing": "Service times that the sources estimate from the distance of the two ACKs of "
               "a pair",
    "setpoints": "Setpoints of the sources",
    "rates": "Rates of the sources, in parts of the link's rate",
    "throughput": "Goodput of the sources, over windows of half a second (of half a "
                  "round trip if all paths have the same)",
    "utilization": "Utilisation of the links, over windows of a quarter of a "
                   "round trip, or of a second where there are several",
    "frames": "Rates of the video coders",
    "admission": "What is offered and admitted, the queue, delay and goodput "
                 "over time"}
