# SPDX-License-Identifier: GPL-2.0
"""Figures of results, each as SVG and PNG.

The same input gives the same SVG, byte for byte, on one version of
matplotlib: identifiers are salted with a constant and no date is written.
"""

import pathlib

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402  (the backend comes first)
import numpy as np  # noqa: E402

from .errors import TollwayError  # noqa: E402
from .results import aggregate  # noqa: E402
from .tables import combination  # noqa: E402

# Okabe and Ito's palette, distinguishable with any colour vision.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# Link algorithms that have a backlog to aim at (CP05 b0).
_AIM_AT_TARGET = ("sbrm", "rem-pc2", "rem-pc3", "price")
_THEORY = "#444444"
_GRID = "#d9d9d9"
_SHADE = "#f1f3f5"
_STYLE = {
    "svg.hashsalt": "tollway",
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": _GRID,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "legend.fontsize": 10,
    "figure.dpi": 100,
    "savefig.dpi": 150,
}


def rate_allocation(results, out):
    """Every flow's rate beside its fair share (as CP05 Figure 4.3.4).

    results: one result per seed of one experiment. Flows stand on the x axis,
    grouped by path; a point is the mean over seeds with its 95 % confidence
    interval, a line the weighted proportionally fair rate of a class.
    out: path without suffix. Returns [SVG path, PNG path].
    """
    whole = aggregate(results)
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(figsize=(9, 4.6))
        _plot_flows(axes, whole)
        axes.set_title(f"Rate allocation: {combination(whole)}")
        axes.set_xlabel("flow")
        axes.set_ylabel("rate [packets/s]")
        _legend_above(axes)
        return _save(figure, out)


def _plot_flows(axes, whole):
    """Points, class lines and path bands; flows ordered by path."""
    paths = list(dict.fromkeys(group["path"] for group in whole["classes"]))
    flows = sorted(whole["flows"], key=lambda flow: (
        paths.index(flow["path"]), flow["id"]))
    expected = {(group["path"], group["wtp"]): group["expected_pps"]
                for group in whole["classes"]}
    seeds = len(whole["seeds"])
    label = "flow"
    if seeds > 1:
        label = f"flow: mean over {seeds} seeds and 95 % confidence interval"
    for index, path in enumerate(paths):
        at = [place for place, flow in enumerate(flows)
              if flow["path"] == path]
        if index % 2 == 0:
            axes.axvspan(at[0] - 0.5, at[-1] + 0.5, color=_SHADE, zorder=0,
                         linewidth=0)
        axes.text((at[0] + at[-1]) / 2, 0.985, f"path {path}", ha="center",
                  va="top", transform=axes.get_xaxis_transform(),
                  color=_THEORY)
        rates = [flows[place]["rate_pps"] for place in at]
        axes.errorbar(
            at, [rate["mean"] for rate in rates],
            yerr=[rate["ci95"] or 0.0 for rate in rates] if seeds > 1 else None,
            fmt="o", markersize=4.5, capsize=3, linewidth=1.2, zorder=3,
            color=PALETTE[index % len(PALETTE)],
            label=None if index else label)
    for place, flow in enumerate(flows):
        share = expected[flow["path"], flow["wtp"]]
        axes.hlines(share, place - 0.5, place + 0.5, color=_THEORY,
                    linewidth=1.4, zorder=2,
                    label=None if place else
                    "weighted proportionally fair share")
    top = max([*expected.values(),
               *(flow["rate_pps"]["mean"] + (flow["rate_pps"]["ci95"] or 0)
                 for flow in flows)])
    _headroom(axes, top)
    axes.set_xlim(-0.5, len(flows) - 0.5)
    every = max(1, round(len(flows) / 12))
    axes.set_xticks(range(0, len(flows), every),
                    [flow["id"] for flow in flows[::every]])


def windows(raw, out, flow_ids=(1, 5, 9)):
    """Congestion windows over time (as CP05 Figure 4.3.6).

    raw: a raw result; flow_ids: the flows to show, those that exist. With a
    schedule, every second interval is shaded. out: path without suffix.
    Returns [SVG path, PNG path].
    """
    chosen = [flow for flow in raw["flows"] if flow["id"] in flow_ids]
    if not chosen:
        raise TollwayError(f"none of the flows "
                           f"{', '.join(map(str, flow_ids))} is in the run")
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(figsize=(9, 4.2))
        _shade_intervals(axes, raw)
        for index, flow in enumerate(chosen):
            wtp = "" if flow["wtp"] is None else f", wtp {flow['wtp']:g}"
            axes.step(flow["samples"]["t_s"], flow["samples"]["cwnd"],
                      where="post", linewidth=1.3,
                      color=PALETTE[index % len(PALETTE)],
                      label=f"flow {flow['id']} (path {flow['path']}{wtp})")
        axes.set_title(f"Congestion windows: {combination(raw)}")
        axes.set_xlabel("time [s]")
        axes.set_ylabel("window [packets]")
        axes.set_xlim(0, raw["parameters"]["duration_s"])
        _headroom(axes, max(max(flow["samples"]["cwnd"]) for flow in chosen))
        _legend_above(axes)
        return _save(figure, out)


def queues(raw, out):
    """Backlog of each queue over time (as CP05 Figure 4.3.7).

    raw: a raw result; its queues stand below each other on one time axis,
    with mean after the warm-up and, when the AQM has one, target. With a
    schedule, every second interval is shaded. out: path without suffix.
    Returns [SVG path, PNG path].
    """
    names = list(raw["queues"])
    parameters = raw["parameters"]
    target = None
    if parameters.get("aqm") in _AIM_AT_TARGET:
        target = parameters.get("target")
    with plt.rc_context(_STYLE):
        figure, panels = plt.subplots(
            len(names), 1, figsize=(9, 1.2 + 2.3 * len(names)), sharex=True,
            squeeze=False)
        for index, (name, axes) in enumerate(zip(names, panels[:, 0])):
            queue = raw["queues"][name]
            times = np.asarray(queue["t_s"], dtype=float)
            backlog = np.asarray(queue["backlog_pkts"], dtype=float)
            mean = backlog[times >= parameters["warmup_s"]].mean()
            _shade_intervals(axes, raw)
            axes.step(times, backlog, where="post", linewidth=0.6,
                      color=PALETTE[index % len(PALETTE)], label=name)
            axes.axhline(mean, color="black", linewidth=1.3, linestyle="--",
                         label=f"mean after warm-up {mean:.1f}")
            if target is not None:
                axes.axhline(target, color=_THEORY, linewidth=1.3,
                             linestyle=":", label=f"target {target:g}")
            axes.set_ylabel("backlog [packets]")
            _headroom(axes, max(backlog.max(), target or 0))
            axes.set_xlim(0, parameters["duration_s"])
            if index == 0:
                axes.set_title(f"Queues: {combination(raw)}")
            _legend_above(axes)
        panels[-1, 0].set_xlabel("time [s]")
        return _save(figure, out)


def _shade_intervals(axes, raw):
    """Shade every second interval; without a schedule, the warm-up."""
    parameters = raw["parameters"]
    schedule = raw.get("schedule")
    if not schedule:
        axes.axvspan(0, parameters["warmup_s"], color=_SHADE, linewidth=0,
                     zorder=0, label="warm-up")
        return
    starts = [step["t_s"] for step in schedule]
    for index, (step, start, stop) in enumerate(zip(
            schedule, starts, starts[1:] + [parameters["duration_s"]])):
        if index % 2:
            axes.axvspan(start, stop, color=_SHADE, linewidth=0, zorder=0)
        axes.text((start + stop) / 2, 0.985, f"load ×{step['factor']:g}",
                  ha="center", va="top", color=_THEORY, fontsize=9,
                  transform=axes.get_xaxis_transform())


def _headroom(axes, top):
    """Start the y axis at 0 and leave room for labels above the data."""
    axes.set_ylim(0, 1.12 * top if top > 0 else 1)


def _legend_above(axes):
    """Put the legend between the title and the axes, off the data."""
    axes.legend(loc="lower left", ncol=8, bbox_to_anchor=(0, 1),
                borderaxespad=0.2, borderpad=0.2, columnspacing=1.6,
                handlelength=1.8)
    if axes.get_title("left"):
        axes.set_title(axes.get_title("left"), pad=28)


def _save(figure, out):
    """Write figure as out.svg and out.png and close it."""
    out = pathlib.Path(out)
    try:
        figure.tight_layout()
        paths = [out.with_name(out.name + suffix)
                 for suffix in (".svg", ".png")]
        figure.savefig(paths[0], metadata={"Date": None, "Creator": "tollway"})
        figure.savefig(paths[1], metadata={"Software": "tollway"})
    except OSError as error:
        raise TollwayError(f"cannot write {out}: {error.strerror}") from error
    finally:
        plt.close(figure)
    return paths
