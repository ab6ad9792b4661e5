# SPDX-License-Identifier: GPL-2.0
"""Figures of results, each as SVG and PNG.

The same input gives the same SVG, byte for byte, on one version of
matplotlib: identifiers are salted with a constant and no date is written.
"""

import atexit
import logging
import os
import pathlib
import shutil
import tempfile


def _place_for_matplotlib():
    """Give matplotlib a directory of its own for its caches where it would not
    find one: without a home it does not start, and where it cannot write to
    the home it says so on standard error."""
    def can_be_made(path):
        # As matplotlib does: whether it can only trying shows, as in /proc.
        try:
            os.makedirs(path, exist_ok=True)
        except OSError:
            return False
        return os.access(path, os.W_OK | os.X_OK)

    wanted = [os.path.join(os.environ.get(name) or
                           os.path.join(os.path.expanduser("~"), usual),
                           "matplotlib")
              for name, usual in (("XDG_CONFIG_HOME", ".config"),
                                  ("XDG_CACHE_HOME", ".cache"))]
    if "MPLCONFIGDIR" not in os.environ and not all(
            os.path.isabs(path) and can_be_made(path) for path in wanted):
        folder = tempfile.mkdtemp(prefix="tollway-matplotlib-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ["MPLCONFIGDIR"] = folder


_place_for_matplotlib()
# Nor is anyone to wait for the list of fonts with a warning.
logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)

import matplotlib  # noqa: E402  (it looks for its directory at once)

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402  (the backend comes first)
import numpy as np  # noqa: E402

from .errors import TollwayError
from .results.aggregate import aggregate
from .results.fields import mean_of
from .tables import combination, path_share

# Okabe and Ito's palette, distinguishable with any colour vision.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# Link algorithms that have a backlog to aim at (CP05 b0).
_AIM_AT_TARGET = ("sbrm", "rem-pc2", "rem-pc3", "rem4-pc2", "rem4", "price-pc2",
                  "price", "price-sbrm")
THEORY = "#444444"
_GRID = "#d9d9d9"
_SHADE = "#f1f3f5"
STYLE = {
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
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(9, 4.6))
        _plot_flows(axes, whole)
        axes.set_title(f"Rate allocation: {combination(whole)}")
        axes.set_xlabel("flow")
        axes.set_ylabel("rate [packets/s]")
        legend_above(axes)
        return save(figure, out)


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
                  color=THEORY)
        rates = [flows[place]["rate_pps"] for place in at]
        axes.errorbar(
            at, [rate["mean"] for rate in rates],
            yerr=[rate["ci95"] or 0.0 for rate in rates] if seeds > 1 else None,
            fmt="o", markersize=4.5, capsize=3, linewidth=1.2, zorder=3,
            color=PALETTE[index % len(PALETTE)],
            label=None if index else label)
    for place, flow in enumerate(flows):
        share = expected[flow["path"], flow["wtp"]]
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
    with plt.rc_context(STYLE):
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
        headroom(axes, max(max(flow["samples"]["cwnd"]) for flow in chosen))
        legend_above(axes)
        return save(figure, out)


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
    with plt.rc_context(STYLE):
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
                axes.axhline(target, color=THEORY, linewidth=1.3,
                             linestyle=":", label=f"target {target:g}")
            axes.set_ylabel("backlog [packets]")
            headroom(axes, max(backlog.max(), target or 0))
            axes.set_xlim(0, parameters["duration_s"])
            if index == 0:
                axes.set_title(f"Queues: {combination(raw)}")
            legend_above(axes)
        panels[-1, 0].set_xlabel("time [s]")
        return save(figure, out)


def acknowledgements(raw, out, paths=("S3", "S5", "S6", "S1"), modulus=2000):
    """Acknowledged segments of two flows of each path, modulo 2000 (as CP05
    Figures 4.4.4 and 5.2.7): equal slopes are equal rates.

    raw: a raw result; paths: those to show, that exist. The two flows are the
    first that run from the beginning. out: path without suffix. Returns
    [SVG path, PNG path].
    """
    chosen = {path: [flow for flow in raw["flows"] if flow["path"] == path][:2]
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
            _shade_intervals(axes, raw)
            for index, flow in enumerate(flows):
                segments = np.asarray(flow["samples"]["bytes_acked"],
                                      dtype=float) / flow["mss_bytes"]
                axes.plot(*_sawtooth(flow["samples"]["t_s"], segments,
                                     modulus), linewidth=0.9,
                          color=PALETTE[index], label=f"flow {index}")
            axes.set_ylabel(f"{path}: segment")
            axes.set_ylim(0, 1.12 * modulus)
            axes.set_xlim(0, raw["parameters"]["duration_s"])
        panels[0, 0].set_title(f"Acknowledged segments modulo {modulus}: "
                               f"{combination(raw)}")
        legend_above(panels[0, 0])
        panels[-1, 0].set_xlabel("time [s]")
        return save(figure, out)


def _sawtooth(times, values, modulus):
    """values modulo a number, with a gap where they wrap."""
    times, values = np.asarray(times, dtype=float), values.copy()
    wraps = np.flatnonzero(np.diff(values // modulus) > 0) + 1
    return (np.insert(times, wraps, times[wraps]),
            np.insert(values % modulus, wraps, np.nan))


def price_tracking(raw, out, path="S1", step_s=0.5):
    """A path's price, and what its first flow takes it for (as CP05 Figure
    5.2.4), in base e.

    The price is the sum of those of the path's queues, as sampled. The flow's
    is -ln(1 - m) of the segments that it had acknowledged where marks carry
    the price; where the price is told as it is, w over its rate, for which it
    is the right price. All are means over step_s.
    raw: a raw result. out: path without suffix. Returns [SVG path, PNG path].
    """
    flow = next((flow for flow in raw["flows"] if flow["path"] == path), None)
    if flow is None or any("price_q32" not in raw["queues"][link]
                           for link in raw["paths"][path]["links"]):
        raise TollwayError(f"a path {path} has a price where all of its "
                           "queues are sbrm")
    parameters = raw["parameters"]
    edges = np.arange(0, parameters["duration_s"] + step_s / 2, step_s)
    middles = (edges[:-1] + edges[1:]) / 2
    actual = np.zeros(len(middles))
    for link in raw["paths"][path]["links"]:
        queue = raw["queues"][link]
        prices = np.asarray(queue["price_q32"], dtype=float) / 2**32
        place = np.digitize(queue["t_s"], edges) - 1
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
        _shade_intervals(axes, raw)
        axes.plot(middles, actual, color=PALETTE[0], linewidth=1.4,
                  label=f"price of path {path}")
        axes.plot(middles, estimate, color=PALETTE[1], linewidth=0.9,
                  label=label)
        axes.set_title(f"Price tracking: {combination(raw)}")
        axes.set_xlabel("time [s]")
        axes.set_ylabel("price (base e)")
        axes.set_xlim(0, parameters["duration_s"])
        # One flow's marks are few: its noise may leave the picture.
        headroom(axes, 1.25 * np.nanmax(actual))
        legend_above(axes)
        return save(figure, out)


def window_histograms(raw, out):
    """How often a path's flows had which window (as CP05 Figures 5.6.4 and
    5.6.6), after the warm-up. Arguments and value as for queues()."""
    warmup_s = raw["parameters"]["warmup_s"]
    windows_of = {}
    for flow in raw["flows"]:
        samples = flow["samples"]
        windows_of.setdefault(flow["path"], []).extend(
            cwnd for t, cwnd in zip(samples["t_s"], samples["cwnd"])
            if t >= warmup_s)
    return _histograms(
        {f"path {path}": values for path, values in windows_of.items()},
        f"Congestion windows: {combination(raw)}", "window [packets]", out)


def queue_histograms(raw, out):
    """How often a queue had which backlog (as CP05 Figures 5.6.5, 5.6.7 and
    5.6.9), after the warm-up. Arguments and value as for queues()."""
    warmup_s = raw["parameters"]["warmup_s"]
    return _histograms(
        {name: [backlog for t, backlog in zip(queue["t_s"],
                                              queue["backlog_pkts"])
                if t >= warmup_s] for name, queue in raw["queues"].items()},
        f"Backlogs: {combination(raw)}", "backlog [packets]", out)


def _histograms(series, title, unit, out):
    """Histograms of whole numbers, one below another with a common axis."""
    if not all(series.values()):
        raise TollwayError("nothing was sampled after the warm-up")
    top = max(max(values) for values in series.values())
    # Wide bars where there would be hundreds of narrow ones.
    width = max(1, int(np.ceil((top + 1) / 100)))
    bins = np.arange(0, top + 2 * width, width) - 0.5
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(
            len(series), 1, figsize=(9, 1.2 + 1.6 * len(series)), sharex=True,
            squeeze=False)
        for index, ((name, values), axes) in enumerate(zip(
                series.items(), panels[:, 0])):
            axes.hist(values, bins=bins, weights=np.full(
                len(values), 100 / len(values)), color=PALETTE[
                    index % len(PALETTE)])
            mean, spread = np.mean(values), np.std(values)
            axes.set_ylabel("samples [%]")
            axes.text(0.995, 0.95, f"{name}: mean {mean:.1f}, standard "
                      f"deviation {spread:.1f}", ha="right", va="top",
                      transform=axes.transAxes, color=THEORY)
        panels[0, 0].set_title(title)
        panels[-1, 0].set_xlabel(unit)
        return save(figure, out)


def price_laws(results, out):
    """Throughput of S3, utilisation and backlog of R3 for each combination of
    Table 5.4.2 (as CP05 Figure 5.4.4).

    results: results or aggregates of price-laws. out: path without suffix.
    Returns [SVG path, PNG path].
    """
    labels = [result["parameters"]["simulations"] for result in results]
    shares = [100 * path_share(result, "S3") for result in results]
    links = [result["links"]["R3"] for result in results]
    panels_of = (
        ("S3 of its fair share [%]", shares, 100),
        ("utilisation of R3 [%]",
         [100 * mean_of(link["utilization"]) for link in links], 100),
        ("backlog of R3 [packets]",
         [mean_of(link["queue_mean_pkts"]) for link in links], None))
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(3, 1, figsize=(9, 8), sharex=True)
        for axes, (label, values, ideal), colour in zip(panels, panels_of,
                                                        PALETTE):
            axes.bar(range(len(values)), values, color=colour)
            if ideal is not None:
                axes.axhline(ideal, color=THEORY, linewidth=1.2,
                             linestyle=":")
            axes.set_ylabel(label)
            headroom(axes, max(values))
        panels[0].set_title("Combinations of CP05 Table 5.4.2")
        panels[-1].set_xticks(range(len(labels)), labels)
        panels[-1].set_xlabel("simulation")
        return save(figure, out)


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
                  ha="center", va="top", color=THEORY, fontsize=9,
                  transform=axes.get_xaxis_transform())


def headroom(axes, top):
    """Start the y axis at 0 and leave room for labels above the data."""
    axes.set_ylim(0, 1.12 * top if top > 0 else 1)


def legend_above(axes):
    """Put the legend between the title and the axes, off the data."""
    axes.legend(loc="lower left", ncol=8, bbox_to_anchor=(0, 1),
                borderaxespad=0.2, borderpad=0.2, columnspacing=1.6,
                handlelength=1.8)
    if axes.get_title("left"):
        axes.set_title(axes.get_title("left"), pad=28)


def save(figure, out):
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
