# SPDX-License-Identifier: GPL-2.0
"""Figures of metrics and of shares, each as SVG and PNG."""

import numpy as np

from ..results.aggregate import aggregate
from ..results.fields import case_of, head_of, mean_of
from .names import combination, heading, run_names
from .plotting import (SHADE, STYLE, THEORY, headroom, histograms,
                       legend_above, plt, reading, save)
from .tables import path_share

_PLAIN = "{x:g}"


def _series(outcome, key):
    """(the column of a metric, {series: [(x, value or None)]} of its cases that have an x;
    fractions are in per cent if the unit is per cent)."""
    column = next((column for column in outcome["columns"]
                   if column["key"] == key), None)
    if column is None:
        # A run of before a file was changed.
        return {"title": key, "unit": None, "key": key, "digits": 0}, {}
    factor = 100 if column["unit"] == "%" else 1
    found = {}
    for point in outcome["cases"]:
        if point["x"] is not None:
            value = mean_of(point["metrics"][key])
            found.setdefault(point["series"], []).append(
                (point["x"], None if value is None else factor * value))
    return column, found


def _halves(outcome, key):
    """{series: {x: half of the interval of a metric}} of its cases that have one: over seeds, or
    over the parts of a long run. Fractions are in per cent, as in _series()."""
    column, found = _series(outcome, key)[0], {}
    for point in outcome["cases"]:
        value = point["metrics"].get(key)
        half = value["ci95"] if isinstance(value, dict) and value["ci95"] is not None else \
            point.get("batches", {}).get(key, {}).get("half")
        if half is not None and point["x"] is not None:
            found.setdefault(point["series"], {})[point["x"]] = \
                (100 if column["unit"] == "%" else 1) * half
    return found


def _bars(axes, drawn, halves, look, kind):
    """The intervals of lines of _lines(). halves: {label: {x: half}}."""
    for label, points in drawn:
        here = [(x, value, halves[label][x]) for x, value in _known(points)
                if x in halves.get(label, ())]
        if here:
            at, values, half = zip(*here)
            axes.errorbar(at, values, yerr=half, linestyle="none", capsize=3, linewidth=1.0,
                          color=look.marker(kind, label)["color"])


def _known(points):
    return [(x, value) for x, value in points if value is not None]


def _lines(axes, drawn, look, kind):
    """Draw [(label, [(x, value or None)])] of one kind of things. A line is interrupted where
    there is no value."""
    for label, points in drawn:
        at, values = zip(*points)
        axes.plot(at, [np.nan if value is None else value for value in values],
                  markersize=4, label=label or "all", **look.marker(kind, label),
                  **{"linestyle": look.line(kind, label)["linestyle"]})
    at = [x for _, points in drawn for x, _ in points]
    if not at:
        return
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


def curve(outcomes, key, out, look):
    """A metric against the x of its cases, with the intervals of those that have one. If several
    results are compared, there is a panel
    for each series, otherwise a line. None if no case has the metric."""
    first = outcomes[0]
    column = _series(first, key)[0]
    lines = [(run, {
        name: _known(points) for name, points in _series(outcome, key)[1].items()
        if _known(points)}) for run, outcome in zip(run_names(outcomes), outcomes)]
    if len(outcomes) > 1:
        names = list(dict.fromkeys(name for _, found in lines
                                   for name in found))
        panels = [(name, [(label, found[name]) for label, found in lines
                          if name in found]) for name in names]
        each = dict(zip(run_names(outcomes), (_halves(one, key) for one in outcomes)))
        halves = {name: {label: found.get(name, {}) for label, found in each.items()}
                  for name in names}
    else:
        # A long list of series: those with one beginning share a panel.
        groups, halves, mine = {}, {}, _halves(first, key)
        for name, points in lines[0][1].items():
            head, _, rest = (name or "").rpartition(", ")
            groups.setdefault(head, []).append((rest, points))
            halves.setdefault(head, {})[rest] = mine.get(name, {})
        panels = list(groups.items())
    if not panels:
        return None
    with plt.rc_context(STYLE):
        figure, grid = plt.subplots(
            len(panels), 1, figsize=(9, 1.2 + 2.8 * len(panels)),
            squeeze=False)
        for (name, drawn), axes in zip(panels, grid[:, 0]):
            kind = "run" if len(outcomes) > 1 else "series"
            _lines(axes, drawn, look, kind)
            _bars(axes, drawn, halves[name], look, kind)
            _limit(axes, drawn)
            axes.set_title(name or head_of(column))
            axes.set_ylabel(head_of(column))
            legend_above(axes)
        grid[-1, 0].set_xlabel(first["x_title"] or "")
        return save(figure, out)


def curves(outcomes, panels, out, look):
    """Several metrics against the x of the cases, one below another. If several results are
    compared, there is a column for each series with a line for each result; otherwise one
    column with a line for each series. None if no case has any of the metrics.

    panels: see description.panel(). Events that never happened have no point.
    """
    def drawn(key):
        """{head of a column: its lines}."""
        if len(outcomes) == 1:
            return {combination(outcomes[0]):
                    list(_series(outcomes[0], key)[1].items())}
        found = {}
        for run, outcome in zip(run_names(outcomes), outcomes):
            for name, points in _series(outcome, key)[1].items():
                found.setdefault(name, []).append((run, points))
        return found

    rows = [(panel, head_of(_series(outcomes[0], panel["key"])[0]),
             drawn(panel["key"])) for panel in panels]
    heads = list(rows[0][2])
    if not any(_known(points) for _, _, found in rows
               for lines in found.values() for _, points in lines):
        return None
    with plt.rc_context(STYLE):
        # The row above the panels is for the legend of all of them.
        figure, (above, *grid) = plt.subplots(
            len(rows) + 1, len(heads), squeeze=False, sharex="col",
            sharey="row", figsize=(1 + 4 * max(2, len(heads)), 1.6 + 2.4 * len(rows)),
            height_ratios=[0.25] + [1] * len(rows))
        for axes in above:
            axes.set_axis_off()
        for line, (panel, title, found) in zip(grid, rows):
            for axes, head in zip(line, heads):
                _lines(axes, found[head], look,
                       "run" if len(outcomes) > 1 else "series")
            _limit(line[0], sum(found.values(), []), panel["log"])
            line[0].set_ylabel(title)
        for axes, head in zip(grid[0], heads):
            axes.set_title(head)
        for axes in grid[-1]:
            axes.set_xlabel(outcomes[0]["x_title"] or "")
        above[0].legend(*grid[0][0].get_legend_handles_labels(), ncol=3,
                        loc="center left").set_in_layout(False)
        return save(figure, out)


# What shows metrics of all cases, of one result or of several.
OF_METRICS = {"curve": curve, "curves": curves}


def rate_allocation(results, name, out, look):
    """Every flow's rate beside its fair share (as CP05 Figure 4.3.4).

    results: one result per seed of one experiment. name: of the case that is
    drawn. Flows stand on the x axis, grouped by path. A point is the mean over seeds
    with its 95 % confidence interval. A line is the weighted proportionally fair rate
    of a class.
    out: path without suffix. Returns [SVG path, PNG path].
    """
    outcome = aggregate(results)
    case = case_of(outcome, name)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(9, 4.6))
        _plot_flows(axes, case, len(outcome["seeds"]), look)
        axes.set_title(f"Rate allocation: {heading(outcome, case)}")
        axes.set_xlabel("flow")
        axes.set_ylabel("rate [packets/s]")
        legend_above(axes)
        return save(figure, out)


def _plot_flows(axes, case, seeds, look):
    """Points, class lines and path bands; flows ordered by path. case: of an
    aggregate of so many seeds."""
    paths = list(dict.fromkeys(group["path"] for group in case["classes"]))
    flows = sorted(case["flows"], key=lambda flow: (
        paths.index(flow["path"]), flow["id"]))
    expected = {(group["path"], group["wtp"]): group["expected_pps"]
                for group in case["classes"]}
    label = "flow"
    if seeds > 1:
        label = f"flow: mean over {seeds} seeds and 95 % confidence interval"
    for index, path in enumerate(paths):
        at = [place for place, flow in enumerate(flows)
              if flow["path"] == path]
        if index % 2 == 0:
            axes.axvspan(at[0] - 0.5, at[-1] + 0.5, color=SHADE, zorder=0,
                         linewidth=0)
        axes.text((at[0] + at[-1]) / 2, 0.985, f"path {path}", ha="center",
                  va="top", transform=axes.get_xaxis_transform(),
                  color=THEORY)
        rates = [flows[place]["rate_pps"] for place in at]
        axes.errorbar(
            at, [rate["mean"] for rate in rates],
            yerr=[rate["ci95"] or 0.0 for rate in rates] if seeds > 1 else None,
            fmt="o", markersize=4.5, capsize=3, linewidth=1.2, zorder=3,
            color=look.line("path", path)["color"],
            label=None if index else label)
    for place, flow in enumerate(flows):
        share = expected[flow["path"], flow["wtp"]]
        reading(axes, place - 0.5, place + 0.5,
                f"flow {flow['id']}, path {flow['path']}\n"
                f"rate: {flow['rate_pps']['mean']:.1f} packets/s\n"
                f"fair share: {share:.1f} packets/s")
        axes.hlines(share, place - 0.5, place + 0.5, color=THEORY,
                    linewidth=1.4, zorder=2,
                    label=None if place else
                    "weighted proportionally fair share")
    top = max([*expected.values(),
               *(flow["rate_pps"]["mean"] + (flow["rate_pps"]["ci95"] or 0)
                 for flow in flows)])
    headroom(axes, top)
    axes.set_xlim(-0.5, len(flows) - 0.5)
    every = max(1, round(len(flows) / 12))
    axes.set_xticks(range(0, len(flows), every),
                    [flow["id"] for flow in flows[::every]])


def window_histograms(raw, name, out, look):
    """Distribution of the congestion windows of each path's flows after the warm-up (as CP05
    Figures 5.6.4 and 5.6.6). Arguments and value as for queues()."""
    case, warmup_s = case_of(raw, name), raw["parameters"]["warmup_s"]
    windows_of = {}
    for flow in case["flows"]:
        samples = flow["samples"]
        windows_of.setdefault(flow["path"], []).extend(
            cwnd for t, cwnd in zip(samples["t_s"], samples["cwnd"])
            if t >= warmup_s)
    return histograms(
        {("path", path): values for path, values in windows_of.items()},
        f"Congestion windows: {heading(raw, case)}", "window [packets]", out, look)


def queue_histograms(raw, name, out, look):
    """Distribution of the backlog of each queue after the warm-up (as CP05 Figures 5.6.5, 5.6.7
    and 5.6.9). Arguments and value as for queues()."""
    case, warmup_s = case_of(raw, name), raw["parameters"]["warmup_s"]
    return histograms(
        {("link", link): [backlog for t, backlog in zip(queue["t_s"],
                                              queue["backlog_pkts"])
                if t >= warmup_s] for link, queue in case["queues"].items()},
        f"Backlogs: {heading(raw, case)}", "backlog [packets]", out, look)


def price_laws(results, out, look):
    """Throughput of S3, utilisation and backlog of R3 for each combination of
    Table 5.4.2 (as CP05 Figure 5.4.4).

    results: results or aggregates of price-laws. out: path without suffix.
    Returns [SVG path, PNG path].
    """
    labels = [result["parameters"]["simulations"] for result in results]
    cases = list(map(case_of, results))
    shares = [100 * path_share(case, "S3") for case in cases]
    links = [case["links"]["R3"] for case in cases]
    panels_of = (
        ("S3 of its fair share [%]", shares, 100),
        ("utilisation of R3 [%]",
         [100 * mean_of(link["utilization"]) for link in links], 100),
        ("backlog of R3 [packets]",
         [mean_of(link["queue_mean_pkts"]) for link in links], None))
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(3, 1, figsize=(9, 8), sharex=True)
        things = ("path", "S3"), ("link", "R3"), ("link", "R3")
        for axes, (label, values, ideal), thing in zip(panels, panels_of,
                                                       things):
            axes.bar(range(len(values)), values, **look.bar(*thing))
            for place, (number, value) in enumerate(zip(labels, values)):
                reading(axes, place - 0.5, place + 0.5,
                        f"simulation {number}\n{label}: {value:.4g}")
            if ideal is not None:
                axes.axhline(ideal, color=THEORY, linewidth=1.2,
                             linestyle=":")
            axes.set_ylabel(label)
            headroom(axes, max(values))
        panels[0].set_title("Combinations of CP05 Table 5.4.2")
        panels[-1].set_xticks(range(len(labels)), labels)
        panels[-1].set_xlabel("simulation")
        return save(figure, out)


# What shows the variants of an experiment beside one another: function, caption.
OF_VARIANTS = {"price_laws": (
    price_laws, "Each combination of Table 5.4.2. Dotted lines show 100 % of the "
                "fair share and a fully used link")}
