# SPDX-License-Identifier: GPL-2.0
"""One figure of several runs: a column for each run, with the rate of each flow
and the queueing delay of each link over time, on common axes."""

import textwrap

import numpy as np

from ..results.fields import case_of, mean_of
from ..results.measurements import LinkRate
from .names import run_names
from .plotting import STYLE, THEORY, headroom, plt, save

# More columns than this are too narrow to read.
_MOST = 5
# Points of a line: with dozens of flows the file stays below 150 KB.
_RATES, _DELAYS = 25, 150
# So many characters of a title are as wide as a column.
_TITLE = 22
# Labels in a line of the legend.
_LABELS = 6


def side_by_side(groups, name, out, look):
    """Draw runs beside one another.

    groups: runs of one experiment, each with raw (the raw result of its first
    seed) and outcome (its result or aggregate). name: of the case that is drawn.
    Runs whose flows have weights come first. out: path without suffix. The
    description of the SVG has the commands of the runs.

    Returns [SVG path, PNG path], or None if there are too many runs, or if
    their flows have no constant number or no rate.
    """
    outcomes = [group.outcome for group in groups]
    runs = [case_of(outcome, name) for outcome in outcomes]
    if not 2 <= len(groups) <= _MOST or any(
            "pages" in run or "intervals" in run for run in runs):
        return None
    order = sorted(range(len(runs)),
                   key=lambda number: not _weights(runs[number]))
    names = run_names(outcomes)
    with plt.rc_context({**STYLE, "axes.titlesize": 11, "font.size": 10}):
        figure, panels = plt.subplots(
            2, len(groups), sharex=True, sharey="row", squeeze=False,
            figsize=(10, 5.4))
        for (rates, delays), number in zip(panels.T, order):
            raw = groups[number].raw
            case = case_of(raw, name)
            rates.set_title(textwrap.fill(names[number], _TITLE))
            _rates(rates, case, raw["mss_bytes"], runs[number], look)
            _delays(delays, raw, case, runs[number], look)
            delays.set_xlabel("time [s]")
        panels[0, 0].set_ylabel("rate of each flow [Mbit/s]")
        panels[1, 0].set_ylabel("delay in the queue [ms]")
        panels[0, 0].set_xlim(0, max(
            case_of(group.raw, name)["duration_s"] for group in groups))
        for axes in panels[:, 0]:
            headroom(axes, max(
                other.dataLim.y1 for other in
                axes.get_shared_y_axes().get_siblings(axes)))
        commands = dict.fromkeys(
            result["provenance"]["command"] for group in groups
            for result in group.results)
        return save(figure, out, readings=False,
                    bottom=_legend(figure, panels), description="\n".join(
                        ["Drawn by tollway report from the results of:",
                         *commands]))


def _weights(run):
    """The weights of the flows of a run, the least as 1; [] if they have none."""
    wtps = sorted({group["wtp"] for group in run["classes"]} - {None})
    return [wtp / wtps[0] for wtp in wtps]


def _rates(axes, case, mss_bytes, run, look):
    """What each flow has acknowledged, without headers and retransmissions. The
    dotted lines are weighted proportionally fair shares, where flows have
    weights."""
    edges = np.linspace(0, case["duration_s"], 1 + _RATES)
    middles = (edges[1:] + edges[:-1]) / 2
    # The flows of a path are one line with gaps: that makes a smaller file.
    found = {}
    for flow in case["flows"]:
        samples = flow["samples"]
        if samples.get("t_s"):
            bits = 8 * np.interp(edges, [flow["start_s"], *samples["t_s"]],
                                 [0, *samples["bytes_acked"]])
            found.setdefault(flow["path"], []).append(
                np.append(np.diff(bits) / np.diff(edges) / 1e6, np.nan))
    for path, rates in found.items():
        axes.plot(np.tile(np.append(middles, np.nan), len(rates)),
                  np.concatenate(rates), linewidth=0.8,
                  label=f"flows of path {path}", **look.line("path", path))
    weights = _weights(run)
    label = f"fair shares for weights {':'.join(map('{:g}'.format, weights))}" \
        if len(weights) > 1 else "fair share"
    for group in run["classes"] if weights else ():
        axes.axhline(mean_of(group["expected_pps"]) * 8 * mss_bytes / 1e6,
                     color=THEORY, linestyle=":", linewidth=1.2, zorder=3,
                     label=label)


def _delays(axes, raw, case, run, look):
    """The backlog of each link, divided by its rate; means without the warm-up."""
    means = []
    for name, queue in case["queues"].items():
        times = np.asarray(queue["t_s"], dtype=float)
        count = max(1, len(times) // _DELAYS)
        usable = len(times) // count * count
        backlog = np.asarray(queue["backlog_bytes"], dtype=float) \
            if "backlog_bytes" in queue else \
            raw["parameters"]["packet_bytes"] * np.asarray(
                queue["backlog_pkts"], dtype=float)
        delays = 8e3 * backlog / LinkRate(case, raw["links"], name).at(times)
        means.append(delays[times >= raw["parameters"]["warmup_s"]].mean())
        axes.plot(times[:usable].reshape(-1, count).mean(axis=1),
                  delays[:usable].reshape(-1, count).mean(axis=1),
                  linewidth=0.9, label=f"queue of link {name}",
                  **look.line("link", name))
    links = run["links"].values()
    axes.text(0.99, 0.98, "mean {}\nlinks {} used".format(
        _from_to(means, "ms"),
        _from_to([100 * mean_of(link["utilization"]) for link in links], "%")),
        ha="right", va="top", transform=axes.transAxes, fontsize=9)


def _from_to(values, unit):
    """Numbers as one text of two digits or three: "2.9 ms", "20 to 28 ms"."""
    shown = list(dict.fromkeys(
        f"{value:.0f}" if value >= 9.95 else f"{value:.1f}"
        for value in (min(values), max(values))))
    return f"{' to '.join(shown)} {unit}"


def _legend(figure, panels):
    """One legend for all columns, below them. Returns the part of the figure that
    it needs."""
    found = {}
    for axes in panels.flat:
        for line, label in zip(*axes.get_legend_handles_labels()):
            found.setdefault(label, line)
    legend = figure.legend(found.values(), found.keys(), ncol=_LABELS,
                           loc="lower center", fontsize=9, columnspacing=1.4,
                           handlelength=1.6)
    for line in legend.get_lines():
        line.set_linewidth(2)
    return 0.02 + 0.035 * -(-len(found) // _LABELS)
