# SPDX-License-Identifier: GPL-2.0
"""Figures that all experiments have: throughput and queueing delay over time,
runs beside one another, and published values beside the measured ones.

look: the Look of the page. out: path without suffix. All return [SVG path,
PNG path], or None if there is nothing to show.
"""

import numpy as np

from ..experiments.description import WHOLE_RUN
from ..results.fields import case_of, cases_with, head_of, mean_of
from ..results.measurements import LinkRate
from .names import case_name, combination, heading, of_case, run_names
from .plotting import (INK, STYLE, THEORY, headroom, legend_above, plt, reading,
                       reading_of_row, save, shade_intervals)
from .tables import shares_of_paths

# Points of a line over time; a bin has a mean, and from least to most.
_BINS = 250
# More paths or sources than this are not told apart.
_MOST_LINES = 8
# More than that are read in their table.
_MOST_ROWS, _MOST_CASES = 40, 12


def over_time(raw, name, out, look, shares=None):
    """Throughput of each source of a case, or of each of its paths, and the queueing delay of
    each link, over time.

    Throughput is acknowledged data, without headers and retransmissions; for UDP, received data
    without headers. Queueing delay is the backlog divided by the rate of the link. shares: the
    result of the case; then its paths are drawn, with their weighted proportionally fair
    shares.
    """
    case = case_of(raw, name)
    links, duration_s = {**raw["links"], **case.get("links", {})}, \
        case["duration_s"]
    lines = [line for line in (_paths(raw, case) if shares else _sources(case))
             if line[3]]
    if len(lines) > _MOST_LINES:
        lines = [lines[index] for index in sorted({
            round(place) for place in np.linspace(0, len(lines) - 1,
                                                  _MOST_LINES - 2)})]
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(
            1 + bool(lines), 1, figsize=(9, 3.2 + 2.9 * bool(lines)),
            sharex=True, squeeze=False)
        if lines:
            _throughput(panels[0, 0], lines, duration_s, look)
            if shares:
                _fair_shares(panels[0, 0], raw, case, shares, look)
        _delays(panels[-1, 0], case, links, raw["parameters"]["packet_bytes"],
                look)
        target_ms = {**raw["parameters"], **case.get("values", {})}.get(
            "delay_ms") if raw["parameters"].get("aqm") == "delay" else None
        if target_ms:
            panels[-1, 0].axhline(target_ms, color=THEORY, linestyle=":",
                                  label=f"target {target_ms:g} ms")
        for axes in panels[:, 0]:
            if shares:
                shade_intervals(axes, raw)
            axes.set_xlim(0, duration_s)
        panels[0, 0].set_title(heading(raw, case) if shares else
                               of_case(raw, name))
        panels[-1, 0].set_xlabel("time [s]")
        for axes in panels[:, 0]:
            legend_above(axes)
        return save(figure, out)


def _paths(raw, case):
    """[(kind, name, label, flows)] of the paths of a case, flows as
    [(times, start, bits acknowledged)]."""
    return [("path", path, f"path {path}",
             [(flow["samples"]["t_s"], flow["start_s"],
               8 * np.asarray(flow["samples"]["bytes_acked"], dtype=float))
              for flow in case["flows"]
              if flow["path"] == path and flow["samples"].get("t_s")])
            for path in raw["paths"]]


def _sources(case):
    """The same of the sources of a case; over UDP, bits received."""
    found = []
    for flow in case["flows"]:
        samples, key = (flow.get("samples"), "bytes_acked") if flow["cc"] \
            else (flow.get("arrivals"), "bytes")
        found.append((
            "source", flow["name"],
            f"source {flow['name']}{'' if flow['cc'] else ' (UDP)'}",
            [(samples["t_s"], flow["start_s"],
              8 * np.asarray(samples[key], dtype=float))]
            if samples and samples["t_s"] else []))
    return found


def _throughput(axes, lines, duration_s, look):
    """Means over bins that hold several samples."""
    longest = max(np.diff(times).max(initial=0) for *_, flows in lines
                  for times, _, _ in flows)
    edges = np.linspace(0, duration_s, 1 + max(1, int(
        duration_s / max(duration_s / _BINS, 3 * longest))))
    top = 0
    for kind, name, label, flows in lines:
        sent = sum(np.interp(edges, [start, *times], [0, *bits])
                   for times, start, bits in flows)
        rates = np.diff(sent) / np.diff(edges) / 1e6
        axes.step(edges, [*rates, rates[-1]], where="post", linewidth=1.2,
                  label=label, **look.line(kind, name))
        top = max(top, rates.max(initial=0))
    axes.set_ylabel("throughput [Mbit/s]")
    headroom(axes, top)


def _fair_shares(axes, raw, case, shares, look):
    """A dotted line for each path, in each interval if there are several."""
    mss_bits = 8 * raw["mss_bytes"]
    steps = shares.get("intervals") or [
        {"start_s": 0, "stop_s": case["duration_s"],
         "classes": shares["classes"]}]
    for path in raw["paths"]:
        for step in steps:
            fair_pps = sum(
                group["expected_pps"] * sum(
                    flow["path"] == path and flow["wtp"] == group["wtp"]
                    and flow["start_s"] < step["stop_s"]
                    and flow["stop_s"] > step["start_s"]
                    for flow in case["flows"])
                for group in step["classes"] if group["path"] == path)
            axes.hlines(fair_pps * mss_bits / 1e6, step["start_s"],
                        step["stop_s"], linestyle=":", linewidth=1.4,
                        color=look.line("path", path)["color"])
    axes.plot([], [], color=THEORY, linestyle=":",
              label="weighted proportionally fair share")


def _delays(axes, case, links, packet_bytes, look):
    """packet_bytes: size of a packet, for queues whose bytes were not sampled."""
    top = 0
    for name, queue in case["queues"].items():
        times = np.asarray(queue["t_s"], dtype=float)
        if "backlog_bytes" in queue:
            waiting = np.asarray(queue["backlog_bytes"], dtype=float)
        else:
            waiting = packet_bytes * np.asarray(queue["backlog_pkts"],
                                                dtype=float)
        delays = 8e3 * waiting / LinkRate(case, links, name).at(times)
        count = max(1, len(times) // _BINS)
        outcome = len(times) // count * count
        bins = delays[:outcome].reshape(-1, count)
        at = times[:outcome].reshape(-1, count)[:, 0]
        line = look.line("link", name)
        if count > 1:
            axes.fill_between(at, bins.min(axis=1), bins.max(axis=1),
                              step="post", color=line["color"], alpha=0.2,
                              linewidth=0)
        axes.step(at, bins.mean(axis=1), where="post", linewidth=1.1,
                  label=f"queue {name}", **line)
        top = max(top, bins.max(initial=0))
    axes.set_ylabel("queueing delay [ms]")
    headroom(axes, top)


# --- runs beside one another -------------------------------------------------

def compared(outcomes, out, look):
    """Several results or aggregates of one experiment: a panel for each
    quantity and in it a bar for each run, at each link, path or case."""
    rows = _rows_of_cases(outcomes)
    names = cases_with(outcomes, "links")
    for name in names:
        rows += _rows_of_links([case_of(outcome, name) for outcome in outcomes],
                               f"{name}: " if len(names) > 1 else "")
    if not rows:
        return None
    runs = run_names(outcomes)
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(
            len(rows), 1, squeeze=False,
            figsize=(9, 0.9 + 1.9 * len(rows)))
        for (title, values, ideal), axes in zip(rows, panels[:, 0]):
            _bars(axes, runs, title, values, look)
            if ideal is not None:
                axes.axhline(ideal[0], color=THEORY, linestyle="--",
                             linewidth=1.4, label=ideal[1])
        legend_above(panels[0, 0])
        return save(figure, out)


def _bars(axes, names, title, values, look):
    """values: for each run {place: number or None}."""
    places = list(dict.fromkeys(place for found in values for place in found))
    width = 0.8 / len(names)
    for number, (name, found) in enumerate(zip(names, values)):
        left = [index - 0.4 + number * width for index in range(len(places))]
        shown = [found.get(place) for place in places]
        axes.bar(left, [value or 0 for value in shown], 0.9 * width,
                 align="edge", label=name, **look.bar("run", name))
        for at, place, value in zip(left, places, shown):
            reading(axes, at, at + width,
                    f"{name}, {case_name(place)}\n{title}: " +
                    ("none" if value is None else f"{value:.4g}"))
    axes.set_ylabel(_two_lines(title))
    axes.set_xlim(-0.5, len(places) - 0.5)
    if places == [WHOLE_RUN]:
        axes.set_xticks([])
    else:
        axes.set_xticks(range(len(places)), places)
    headroom(axes, max((value for found in values for value in
                        found.values() if value is not None), default=0))


def _two_lines(title):
    """A label of an axis that is not longer than the axis."""
    if len(title) < 22 or " " not in title:
        return title
    cut = title.rfind(" ", 0, 22)
    return title if cut < 0 else f"{title[:cut]}\n{title[cut + 1:]}"


def _rows_of_cases(outcomes):
    """[(title, values, None)] of all metrics of cases; nothing where there are
    too many cases, which tables and curves show."""
    names = {point["name"] for outcome in outcomes for point in outcome["cases"]}
    if len(names) > _MOST_CASES:
        return []
    rows = []
    for column in outcomes[0]["columns"]:
        factor = 100 if column["unit"] == "%" else 1
        values = [{point["name"]: _times(factor, point["metrics"].get(
            column["key"])) for point in outcome["cases"]} for outcome in outcomes]
        if any(value is not None for found in values
               for value in found.values()):
            rows.append((head_of(column), values, None))
    return rows


def _times(factor, value):
    value = mean_of(value)
    return None if value is None else factor * value


def _rows_of_links(cases, head):
    """The same for links and paths of a case of each result. head: beginning of the titles."""
    def of_links(key, factor=1):
        return [{f"link {name}": factor * mean_of(link[key])
                 for name, link in case["links"].items()} for case in cases]

    rows = [(f"{head}utilisation [%]", of_links("utilization", 100), None),
            (f"{head}mean backlog [ms of full packets]", of_links("queue_mean_ms"),
             None),
            (f"{head}drops [packets]", of_links("drops"), None)]
    if any("pages" in case or "intervals" in case for case in cases):
        return rows
    return [(f"{head}rate / fair share [%]",
             [{f"path {path}": 100 * part for path, part in
               shares_of_paths(case).items()} for case in cases],
             (100, "weighted proportionally fair share")), *rows]


# --- published values --------------------------------------------------------

def published(outcome, out, look):
    """Published values, and what was measured, in a panel for each unit."""
    units = {}
    for entry in outcome["published"]:
        units.setdefault(entry["unit"], []).append(entry)
    units = {unit: entries for unit, entries in units.items()
             if len(entries) <= _MOST_ROWS}
    if not units:
        return None
    count = sum(map(len, units.values()))
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(
            len(units), 1, squeeze=False,
            figsize=(9, 0.9 + 0.7 * len(units) + 0.27 * count),
            height_ratios=[len(entries) + 1.5 for entries in units.values()])
        for (unit, entries), axes in zip(units.items(), panels[:, 0]):
            _draw_published(axes, unit, entries, outcome, look)
        legend_above(panels[0, 0])
        return save(figure, out)


def _draw_published(axes, unit, entries, outcome, look):
    factor, named = 100 if unit == "%" else 1, f" {unit}" if unit else ""
    mine = look.marker("run", combination(outcome))
    for row, entry in enumerate(entries):
        value, measured = (_times(factor, entry[key])
                           for key in ("value", "measured"))
        first = not row
        reading_of_row(axes, row - 0.5, row + 0.5,
                       f"{entry['name']}\npublished: {value:.4g}{named}\n"
                       "measured: " + ("none" if measured is None else
                                       f"{measured:.4g}{named}"))
        if measured is not None:
            axes.plot([value, measured], [row, row], color=THEORY,
                      linewidth=0.8, zorder=1)
            axes.plot([measured], [row], linestyle="none", markersize=6,
                      zorder=3, label="measured" if first else "_", **mine)
            if entry.get("ci95"):
                # Of a mean over seeds.
                axes.errorbar([measured], [row], xerr=factor * entry["ci95"], capsize=3,
                              linewidth=1.2, zorder=2, color=mine["color"])
        axes.plot([value], [row], linestyle="none", marker="D", markersize=7,
                  markerfacecolor="none", markeredgecolor=INK, zorder=2,
                  label="published" if first else "_")
    axes.set_yticks(range(len(entries)),
                    [entry["name"] for entry in entries], fontsize=9)
    axes.set_ylim(len(entries) - 0.4, -0.6)
    axes.grid(True, axis="x")
    axes.grid(False, axis="y")
    axes.set_xlabel(f"[{unit}]" if unit else "")
