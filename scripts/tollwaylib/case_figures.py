# SPDX-License-Identifier: GPL-2.0
"""Figures of cases, each as SVG and PNG. Functions of one case take the raw
result and its name; out: path without suffix. All return [SVG path, PNG path].
"""

import numpy as np

from .errors import TollwayError
from .figures import PALETTE, STYLE, THEORY, headroom, legend_above, plt, save
from .results.fields import mean_of
from .results.measurements import CaseData
from .results.metrics.queues import ESTIMATE_SCALE
from .tables import combination
# Before anything imports matplotlib: it finds a directory for its caches.

_PLAIN = "{x:g}"
# More sources than this are not told apart.
_SOURCES = 6


def _case(raw, name):
    for case in raw["cases"]:
        if case["name"] == name:
            return case
    raise TollwayError(f"the run has no case {name}")


def _scale(case):
    """(s of a unit of the time axis, its name)."""
    if case.get("rtt_s"):
        return case["rtt_s"], "time [round trips]"
    return 1.0, "time [s]"


def _few(flows):
    return flows if len(flows) <= _SOURCES else [
        flows[index] for index in sorted({round(place) for place in np.linspace(
            0, len(flows) - 1, _SOURCES)})]


def _until(case):
    """When the last transfer is done, or the case, s."""
    ends = [(flow["final"].get("transfers") or [{}])[0].get("end_s")
            for flow in case["flows"] if flow["cc"]]
    return case["duration_s"] if None in ends or not ends \
        else min(1.05 * max(ends), case["duration_s"])


def _one(raw, name, out, label, draw):
    """A figure of one panel with the time as its x axis."""
    case = _case(raw, name)
    unit_s, unit = _scale(case)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(9, 4.2))
        top = draw(axes, case, unit_s)
        axes.set_title(f"{name}: {combination(raw)}")
        axes.set_xlabel(unit)
        axes.set_ylabel(label)
        axes.set_xlim(0, _until(case) / unit_s)
        headroom(axes, top)
        legend_above(axes)
        return save(figure, out)


def queue(raw, name, out):
    """Backlog, setpoint, packets outstanding and what the source takes its
    queue for (as PP94 Figure 11)."""
    def draw(axes, case, unit_s):
        top = 0
        for index, (link, sampled) in enumerate(case["queues"].items()):
            axes.step(np.asarray(sampled["t_s"]) / unit_s,
                      sampled["backlog_pkts"], where="post", linewidth=0.8,
                      color=PALETTE[index], label=f"queue {link}")
            top = max(top, *sampled["backlog_pkts"])
        flow = next(flow for flow in case["flows"] if flow.get("samples"))
        samples = flow["samples"]
        axes.plot(np.asarray(samples["t_s"]) / unit_s, samples["unacked"],
                  color=PALETTE[3], linewidth=0.9,
                  label=f"outstanding, source {flow['name']}")
        if any(samples.get("cc_rate_bps", ())):
            axes.plot(np.asarray(samples["t_s"]) / unit_s,
                      np.asarray(samples["cc_pacing_gain"]) / ESTIMATE_SCALE,
                      color=PALETTE[1], linewidth=0.9,
                      label=f"estimate of source {flow['name']}")
        setpoint = {**raw["parameters"], **case["values"]}.get("setpoint")
        if setpoint:
            axes.axhline(setpoint, color=THEORY, linestyle=":",
                         label="setpoint")
        return max(top, *samples["unacked"])
    return _one(raw, name, out, "packets", draw)


def has_classes(raw, name):
    """Do the queues of a case tell sources apart?"""
    data = CaseData(raw, _case(raw, name))
    return all(data.own_queues(flow) is not None for flow in data.flows())


def class_queues(raw, name, out):
    """Backlog of each source's own queue (as PP94 Figures 15 and 20)."""
    data = CaseData(raw, _case(raw, name))

    def draw(axes, case, unit_s):
        top = 0
        for index, flow in enumerate(_few(data.flows())):
            own = data.own_queues(flow)
            if own is None:
                raise TollwayError(f"{name}: the queue has no classes")
            axes.step(own[0] / unit_s, own[1], where="post", linewidth=0.8,
                      color=PALETTE[index], label=f"source {flow['name']}")
            top = max(top, own[1].max())
        del case
        return top
    return _one(raw, name, out, "backlog [packets]", draw)


def sequence(raw, name, out):
    """Packets acknowledged (as PP94 Figures 14, 16 and 21)."""
    def draw(axes, case, unit_s):
        flows = [flow for flow in case["flows"] if flow["cc"]]
        top = 0
        for index, flow in enumerate(_few(flows)):
            packets = np.asarray(flow["samples"]["bytes_acked"]) \
                / raw["mss_bytes"]
            axes.plot(np.asarray(flow["samples"]["t_s"]) / unit_s, packets,
                      color=PALETTE[index], linewidth=1.1,
                      label=f"source {flow['name']}")
            top = max(top, packets.max(initial=0))
        return top
    return _one(raw, name, out, "acknowledged [packets]", draw)


def rates(raw, name, out, window_units=50):
    """Rates of sources, of the link's (as PP94 Figures 17 and 18)."""
    data = CaseData(raw, _case(raw, name))

    def draw(axes, case, unit_s):
        width_s = window_units / 100 * unit_s
        at = np.arange(width_s, _until(case), width_s / 5)
        link = next(iter(data.links))
        top = 0
        for index, flow in enumerate(_few(data.flows())):
            share = (data.acked_at(flow, at)
                     - data.acked_at(flow, at - width_s)) / data.mss \
                / width_s / data.capacity_pps(link)
            axes.plot(at / unit_s, share, color=PALETTE[index], linewidth=1.1,
                      label=f"source {flow['name']}")
            top = max(top, share.max(initial=0))
        return top
    return _one(raw, name, out, "delivered, of the link's rate", draw)


def utilization(raw, name, out, window_units=25):
    """Utilisation of the links in windows of 25 units (as PP94 Figure 13)."""
    links = CaseData(raw, _case(raw, name)).links

    def draw(axes, case, unit_s):
        width_s = window_units / 100 * unit_s
        at = np.arange(width_s, case["duration_s"], width_s)
        for index, (link, sampled) in enumerate(case["queues"].items()):
            sent = np.interp(at, sampled["t_s"], sampled["bytes"]) \
                - np.interp(at - width_s, sampled["t_s"], sampled["bytes"])
            axes.step(at / unit_s, 800 * sent / width_s
                      / links[link]["capacity_bps"], where="pre",
                      color=PALETTE[index], label=f"link {link}")
        return 100
    return _one(raw, name, out, "utilisation [%]", draw)


def frames(raw, name, out):
    """What coders made of a second."""
    def draw(axes, case, unit_s):
        top = 0
        coders = [flow for flow in case["flows"] if flow["role"] == "video"]
        for index, flow in enumerate(_few(coders)):
            made = flow["final"].get("frames")
            times, values = flow["samples"]["t_s"], \
                flow["samples"]["bytes_acked"]
            if made:
                times, values = made["t_s"], np.cumsum(made["bytes"])
            at = np.arange(1.0, case["duration_s"], 0.25)
            mbit = 8e-6 * (np.interp(at, times, values)
                           - np.interp(at - 1.0, times, values))
            axes.plot(at / unit_s, mbit, color=PALETTE[index], linewidth=1.1,
                      label=f"coder {flow['name']}")
            top = max(top, mbit.max())
        return top
    return _one(raw, name, out, "coded [Mbit/s]", draw)


def _series(whole, key):
    """(the column of a metric, {series: [(x, value or None)]} of its cases that
    have an x; parts in per cent where the column is)."""
    column = next(column for column in whole["columns"]
                  if column["key"] == key)
    factor = 100 if column["title"].endswith("[%]") else 1
    found = {}
    for point in whole["cases"]:
        if point["x"] is not None:
            value = mean_of(point["metrics"][key])
            found.setdefault(point["series"], []).append(
                (point["x"], None if value is None else factor * value))
    return column, found


def _known(points):
    return [(x, value) for x, value in points if value is not None]


def _lines(axes, drawn):
    """Draw [(label, [(x, value or None)])]: a line is interrupted where there
    is no value."""
    for index, (label, points) in enumerate(drawn):
        at, values = zip(*points)
        axes.plot(at, [np.nan if value is None else value for value in values],
                  marker="o", markersize=4,
                  color=PALETTE[index % len(PALETTE)],
                  linestyle="--" if index >= len(PALETTE) else "-",
                  label=label)
    at = [x for _, points in drawn for x, _ in points]
    # Sizes of files and rates of links go over several powers of ten.
    if min(at) > 0 and max(at) / min(at) > 50:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(_PLAIN)
        axes.xaxis.set_minor_formatter("")


def _limit(axes, drawn, log=False):
    """Limits of the y axis for lines: from 0, or whole powers of ten."""
    values = [value for _, points in drawn for _, value in _known(points)
              if value > 0]
    if not log or not values:
        headroom(axes, max(values, default=0))
        return
    axes.set_yscale("log", nonpositive="mask")
    axes.yaxis.set_major_formatter(_PLAIN)
    axes.yaxis.set_minor_formatter("")
    least, most = np.log10(min(values)), np.log10(max(values))
    axes.set_ylim(10 ** np.floor(least), 10 ** max(np.ceil(most),
                                                   np.floor(least) + 1))


def curve(wholes, key, out):
    """A metric against the x of its cases: a panel for each series if several
    results are compared, else a line. None if no case has it."""
    first = wholes[0]
    column = _series(first, key)[0]
    lines = [(combination(whole), {
        name: _known(points) for name, points in _series(whole, key)[1].items()
        if _known(points)}) for whole in wholes]
    if len(wholes) > 1:
        names = list(dict.fromkeys(name for _, found in lines
                                   for name in found))
        panels = [(name, [(label, found[name]) for label, found in lines
                          if name in found]) for name in names]
    else:
        # A long list of series: those with one beginning share a panel.
        groups = {}
        for name, points in lines[0][1].items():
            head, _, rest = (name or "").rpartition(", ")
            groups.setdefault(head, []).append((rest, points))
        panels = list(groups.items())
    if not panels:
        return None
    with plt.rc_context(STYLE):
        figure, grid = plt.subplots(
            len(panels), 1, figsize=(9, 1.2 + 2.8 * len(panels)),
            squeeze=False)
        for (name, drawn), axes in zip(panels, grid[:, 0]):
            _lines(axes, drawn)
            _limit(axes, drawn)
            axes.set_title(name or column["title"])
            axes.set_ylabel(column["title"])
            axes.legend(ncol=4)
        grid[-1, 0].set_xlabel(first["x_title"] or "")
        return save(figure, out)


def curves(wholes, panels, out):
    """Several metrics against the x of the cases, one below another: a column
    and in it a line for each of the results if several are compared, else one
    column with a line for each series. None if no case has any of them.

    panels: see experiment.panel(). What never happened is missing.
    """
    def drawn(key):
        """{head of a column: its lines}."""
        if len(wholes) == 1:
            return {combination(wholes[0]):
                    list(_series(wholes[0], key)[1].items())}
        found = {}
        for whole in wholes:
            for name, points in _series(whole, key)[1].items():
                found.setdefault(name, []).append((combination(whole), points))
        return found

    rows = [(panel, _series(wholes[0], panel["key"])[0]["title"],
             drawn(panel["key"])) for panel in panels]
    heads = list(rows[0][2])
    if not any(_known(points) for _, _, found in rows
               for lines in found.values() for _, points in lines):
        return None
    with plt.rc_context(STYLE):
        # The row above the panels is for the legend of all of them.
        figure, (above, *grid) = plt.subplots(
            len(rows) + 1, len(heads), squeeze=False, sharex="col",
            sharey="row", figsize=(4 + 5 * len(heads), 1.6 + 2.4 * len(rows)),
            height_ratios=[0.25] + [1] * len(rows))
        for axes in above:
            axes.set_axis_off()
        for line, (panel, title, found) in zip(grid, rows):
            for axes, head in zip(line, heads):
                _lines(axes, found[head])
            _limit(line[0], sum(found.values(), []), panel["log"])
            line[0].set_ylabel(title)
        for axes, head in zip(grid[0], heads):
            axes.set_title(head)
        for axes in grid[-1]:
            axes.set_xlabel(wholes[0]["x_title"] or "")
        above[0].legend(*grid[0][0].get_legend_handles_labels(), ncol=3,
                        loc="center left").set_in_layout(False)
        return save(figure, out)


PICTURES = {"queue": queue, "class_queues": class_queues,
            "sequence": sequence, "rates": rates, "utilization": utilization,
            "frames": frames}
CAPTIONS = {
    "queue": "Queue, and what the first source has outstanding",
    "class_queues": "Backlog of the sources' own queues",
    "sequence": "Packets acknowledged", "rates": "Rates of sources",
    "utilization": "Utilisation in windows of 25 hundredths of a round trip",
    "frames": "Rates of coders"}
# What shows metrics of all cases, of one result or of several.
OF_METRICS = {"curve": curve, "curves": curves}
