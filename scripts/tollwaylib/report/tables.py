# SPDX-License-Identifier: GPL-2.0
"""Tables of results.

Every *_table function takes a result (results.analyse) or an aggregate over
seeds (results.aggregate), those of a case also that case of it, and returns a
Table, see rendering.py.
"""

from ..errors import TollwayError
from ..results.comparison import reasons
from ..results.fields import case_of, cases_with, head_of, mean_of
from ..results.metrics.shares import steady_form_of
from .cells import (NONE, count, drops_of, error_of, number, percent, seeds_note,
                    signed_percent, wtp_of)
from .names import case_name, combination, heading, run_names
from .rendering import Table
from .verdict_tables import bound_cells, bounds_table, published_table

# How papers/cp05.json names the column that comparisons quote.
_MEAN_UTILISATION = "mean core link utilisation"


# --- tables --------------------------------------------------------------

def classes_table(result, case):
    """Each class's rate beside its weighted proportionally fair share; None for
    users of pages, which are no greedy flows, and a case without classes."""
    if "classes" not in case or "pages" in case:
        return None
    rows = []
    for group in case["classes"]:
        members = _members(case, group)
        rows.append([group["path"], wtp_of(group), str(members),
                     number(group["rate_pps"]),
                     number(group["expected_pps"]), error_of(group),
                     percent(group["spread"])])
    return Table(
        f"Rates by class: {heading(result, case)}",
        ["path", "wtp [pkts/s]", "flows", "rate [pkts/s]", "fair [pkts/s]",
         "error [%]", "spread [%]"], rows,
        notes=["fair: weighted proportionally fair share. spread: largest minus "
               "smallest rate/fair of the flows, divided by the mean",
               *seeds_note(result)])


def _members(case, group):
    """How many flows a class has."""
    return sum((flow["path"], flow["wtp"]) == (group["path"], group["wtp"])
               for flow in case["flows"])


def links_table(result, case):
    """Utilisation, backlog, marks and drops of each link with a queue; None
    if the case has only metrics."""
    if "links" not in case:
        return None
    rows = [[name, f"{link['capacity_bps'] / 1e6:g}",
             percent(link["utilization"], 2),
             number(link["queue_mean_pkts"]),
             number(link["queue_p99_pkts"]),
             count(link["marks"]), count(link["drops"])]
            for name, link in case["links"].items()]
    return Table(
        f"Links: {heading(result, case)}",
        ["link", "rate [Mbit/s]", "utilisation [%]", "mean backlog [pkts]",
         "99th percentile [pkts]", "marks", "drops"], rows,
        notes=["marks and drops: of all packets after the warm-up, ACKs included",
               *seeds_note(result)])


def costliest_path(case):
    """The path whose fair share per wtp is smallest: the most bottlenecks."""
    return min(case["classes"], key=lambda group:
               group["expected_pps"] / (group["wtp"] or 1.0))["path"]


def path_share(case, path):
    """A path's total rate over its weighted proportionally fair total. Raises TollwayError if
    the case has no class on the path."""
    found = shares_of_paths(case)
    if path not in found:
        raise TollwayError(f"the result has no class on path {path}")
    return found[path]


def shares_of_paths(case):
    """{path: its total rate over its weighted proportionally fair total}."""
    found = {}
    for group in case["classes"]:
        members = _members(case, group)
        rate, fair = found.get(group["path"], (0, 0))
        found[group["path"]] = (rate + members * mean_of(group["rate_pps"]),
                                fair + members * group["expected_pps"])
    return {path: rate / fair for path, (rate, fair) in found.items()}


def comparison_table(results, name=None):
    """Several pairs of congestion control and AQM of one experiment.

    results: results or aggregates with the same links. name: of the case, by
    default the first. The share column shows
    how much of its fair rate the path with the most bottlenecks gets: far
    below 100 % for loss-based TCP (CP05 4.3.2, Figure 4.3.5).

    Raises TollwayError if there are no results, or if their experiments or links differ.
    """
    if not results:
        raise TollwayError("there are no results to compare")
    runs = [case_of(result, name) for result in results]
    links = list(runs[0]["links"])
    path = costliest_path(runs[0])
    if any(list(run["links"]) != links
           or result["experiment"] != results[0]["experiment"]
           or path not in {group["path"] for group in run["classes"]}
           for result, run in zip(results, runs)):
        raise TollwayError("only results of one experiment on the same links "
                           "can stand in one table")
    rows, known = [], [[entry for entry in result["published"]
                        if entry["name"].endswith(_MEAN_UTILISATION)]
                       for result in results]
    for called, run, published in zip(run_names(results), runs, known):
        mean = sum(mean_of(link["utilization"])
                   for link in run["links"].values()) / len(links)
        rows.append(
            [called]
            + [percent(run["links"][link]["utilization"])
               for link in links]
            + [percent(mean)]
            + [percent(published[0]["value"]) if published else NONE] * any(known)
            + [number(run["links"][link]["queue_mean_pkts"])
               for link in links]
            + [drops_of(run["links"]),
               signed_percent(max((group["error"] for group in
                                    run["classes"]), key=abs)),
               percent(path_share(run, path))])
    return Table(
        "Congestion controls and AQMs compared",
        ["congestion control + queue",
         *(f"utilisation of {name} [%]" for name in links),
         "mean utilisation [%]", *["published [%]"] * any(known),
         *(f"backlog {name} [pkts]" for name in links), "drops",
         "worst class error [%]", f"path {path} of fair [%]"], rows,
        notes=["published: mean utilisation in the paper. " * any(known) +
               "worst class error: largest difference of the rate of a class from its weighted "
               "proportionally fair share, as a fraction of that share. "
               f"path {path} of fair: total rate of the path, divided by its "
               "weighted proportionally fair share"])


def intervals_table(result, case):
    """One row per interval of a schedule; None if there is no schedule."""
    if "intervals" not in case:
        return None
    links = list(case["links"])
    rows = []
    for step in case["intervals"]:
        worst = max(step["classes"], key=lambda group: abs(group["error"]))
        rows.append(
            [f"{step['start_s']:g}-{step['stop_s']:g}",
             f"{step['factor']:g}"]
            + [percent(step["links"][name]["utilization_after_2s"])
               for name in links]
            + [number(step["links"][name]["queue_mean_pkts"])
               for name in links]
            + [drops_of(step["links"]), drops_of(step["links"], "drops_after_2s"),
               signed_percent(worst["error"]), _seconds(step["max_convergence_s"]),
               _seconds(_slowest(step["classes"])), f"{step['min_jain']:.4f}"])
    return Table(
        f"Intervals: {heading(result, case)}",
        ["interval [s]", "load", *(f"{name} [%]" for name in links),
         *(f"backlog {name} [pkts]" for name in links), "drops",
         "drops after 2 s", "worst class error [%]", "converged [s]",
         "near [s]", "least Jain"], rows,
        notes=[f"{', '.join(links)}: utilisation from 2 s after the change "
               f"on, or after the warm-up; converged: time until the "
               f"rate of each class over 1 s is within 10 % of its share; "
               f"near: the same over 2 s and within 5 %; least Jain: smallest "
               f"Jain's index of the flows of a class",
               *seeds_note(result)])


# Figure 5.4.4 of CP05 shows these.
_FIGURE_544 = {"path": "S3", "link": "R3"}


def variants_table(results):
    """Throughput of source 3, utilisation and backlog of link 3 (as CP05
    Figure 5.4.4), a row per combination of Table 5.4.2.

    results: results or aggregates of price-laws.
    """
    path, link = _FIGURE_544["path"], _FIGURE_544["link"]
    rows = []
    for result in results:
        parameters = result["parameters"]
        run = case_of(result)
        rate = sum(mean_of(flow["rate_pps"]) for flow in run["flows"]
                   if flow["path"] == path)
        rows.append([
            str(parameters.get("simulations", NONE)), combination(result),
            f"{rate:.0f}", percent(path_share(run, path)),
            signed_percent(max((group["error"] for group in
                                 run["classes"]), key=abs)),
            percent(run["links"][link]["utilization"]),
            number(run["links"][link]["queue_mean_pkts"]),
            drops_of(run["links"])])
    return Table(
        "Combinations of CP05 Table 5.4.2",
        ["simulation", "congestion control + queue", f"{path} [pkts/s]",
         f"{path} of fair [%]", "worst class error [%]", f"{link} [%]",
         f"backlog {link} [pkts]", "drops"], rows, left=2,
        notes=_raw_note(results))


def _raw_note(results):
    """A note about prices that the estimator raw and virtual queues cannot express."""
    prices = [group["wtp"] / group["expected_pps"] for result in results
              if result["parameters"]["estimator"] == "raw"
              for case in result["cases"] for group in case["classes"]
              if group["wtp"]]
    if not prices:
        return []
    return ["The estimator raw and virtual queues can express prices up to 1. "
            "The fair shares of these paths need prices up to "
            f"{max(prices):.2f}"]


def variants_tables(results):
    """The tables of a comparison: its variants, and the verdicts between them.

    results: results or aggregates of one experiment, from results.compare().
    """
    judged = _judged_table(results)
    if "simulations" in results[0]["parameters"]:
        return [variants_table(results)] + judged
    if results[0]["columns"]:
        shown = case_variants_tables(results)
    else:
        shown = [baselines_table(results, name)
                 for name in cases_with(results, "links")]
    return shown + [table for table in map(published_table, results)
                    if table] + judged


def _judged_table(results):
    """[the bounds of all variants], or nothing."""
    rows = [[result["parameters"]["variant"], *bound_cells(bound)]
            for result in results for bound in result["bounds"]]
    return [Table(
        "Bounds", ["variant", "quantity", "verdict", "measured", "bound"],
        rows, left=3, notes=list(dict.fromkeys(
            reason for result in results
            for reason in reasons(result, "bounds"))))] if rows else []


def baselines_table(results, name):
    """Links, recovery and pages of a case of each variant (as CP05 Tables
    5.6.1-5.6.3), a row each. results: as for variants_tables()."""
    runs = [case_of(result, name) for result in results]
    links = list(runs[0]["links"])
    heads = ["variant", "congestion control + queue", *(f"{name} [%]" for name in links),
             *(f"backlog {name} [pkts]" for name in links),
             *(f"delay {name} [ms]" for name in links),
             "fast retransmits", "timeouts"]
    has_pages = all("pages" in run for run in runs)
    if has_pages:
        heads += ["pages", "unfinished", "median [s]", "99th percentile [s]",
                  "mean [s]", "throughput [kB/s]"]
    rows = []
    for result, run in zip(results, runs):
        row = [result["parameters"]["variant"], combination(result)]
        for key, show in (("utilization", percent),
                          ("queue_mean_pkts", number),
                          ("queue_mean_ms", number)):
            row += [show(run["links"][name][key]) for name in links]
        recovery = run.get("recovery", {})
        row += [count(recovery.get(key)) for key in
                ("fast_retransmits", "timeouts")]
        if has_pages:
            row += _page_cells(run["pages"][0])
        rows.append(row)
    return Table("Variants compared", heads, rows, left=2,
                 notes=[f"{', '.join(links)}: utilisation; delay: time that the link "
                        "needs to send the mean backlog, if all packets have the full "
                        "size", *seeds_note(results[0])])


def _page_cells(group):
    return [count(group["pages"]), count(group["unfinished"]),
            number(group["median_s"], 3), number(group["p99_s"], 3),
            number(group["mean_s"], 3), number(group["throughput_kBps"])]


def _seconds(value):
    return "never" if value is None else f"{value:.2f}"


def _slowest(groups):
    times = [group["near_s"] for group in groups]
    return None if None in times else max(times)


def interval_classes_table(result, case):
    """Each class's error in each interval; None if there is no schedule."""
    steps = case.get("intervals")
    if steps is None:
        return None
    keys = list(dict.fromkeys(
        (group["path"], group["wtp"]) for step in steps
        for group in step["classes"]))
    rows = []
    for path, wtp in keys:
        row = [path, NONE if wtp is None else f"{wtp:g}"]
        for step in steps:
            group = [group for group in step["classes"]
                     if (group["path"], group["wtp"]) == (path, wtp)]
            row.append(error_of(group[0]) if group else NONE)
        rows.append(row)
    return Table(
        f"Errors of the classes by interval: {heading(result, case)}",
        ["path", "wtp [pkts/s]",
         *(f"{step['start_s']:g}-{step['stop_s']:g} s [%]" for step in steps)],
        rows, notes=["difference of the mean rate, from 2 s after the change on, "
                     "from the weighted proportionally fair share"])


def steady_state_table(result, case):
    """Each link beside the model of CP05 5.5; None if it is not compared."""
    points = case.get("steady_state")
    if points is None:
        return None
    # The paper's table is of this form alone.
    model = "CP05 Table 5.5.1" if steady_form_of(result["parameters"]) \
        == "raw" else "the model of this source (not that of CP05 Table 5.5.1)"
    rows = []
    for point in points:
        queue = mean_of(point["queue_pkts"])
        rows.append([
            point["link"], str(point["flows"]), f"{point['wtp_sum']:g}",
            f"{point['capacity_pps']:g}", percent(point["max_rate_error"], 2),
            percent(point["mark_probability"], 2),
            percent(point["expected_mark_probability"], 2),
            number(point["queue_pkts"]),
            number(point["expected_queue_pkts"]),
            signed_percent(queue / point["expected_queue_pkts"] - 1)])
    return Table(
        f"Steady state and {model}: {heading(result, case)}",
        ["link", "flows", "sum of w [pkts/s]", "c [pkts/s]",
         "worst rate error [%]", "marked [%]", "model [%]", "backlog [pkts]",
         "model [pkts]", "error [%]"], rows, notes=seeds_note(result))


def pages_table(result, case):
    """Page times of the HTTP model; None if there are no pages."""
    groups = case.get("pages")
    if groups is None:
        return None
    rows = [[group["path"], *_page_cells(group)] for group in groups]
    return Table(
        f"Pages: {heading(result, case)}",
        ["path", "pages", "unfinished", "median [s]", "99th percentile [s]", "mean [s]",
         "throughput [kB/s]"], rows,
        notes=["pages that began after the warm-up. In the percentiles, an "
               "unfinished page takes longer than the time until the end of the "
               "run (Kaplan-Meier). throughput: mean size over mean time of "
               "finished pages",
               *seeds_note(result)])


def recovery_table(result, case):
    """Retransmissions and timeouts of all hosts; None if not counted."""
    counters = case.get("recovery")
    if counters is None:
        return None
    return Table(
        f"Recovery: {heading(result, case)}",
        ["counter", "number"],
        [[name.replace("_", " "), count(value)]
         for name, value in counters.items()],
        notes=["sums over all senders and the whole time of the run"])


# --- cases -----------------------------------------------------------------

# More cases than that are shown by series and x, a table for each metric.
_LONG = 30


def _metric_cell(point, column):
    show = percent if column["unit"] == "%" else number
    # A run of before a file was changed may not have it.
    value, key = point["metrics"].get(column["key"]), column["key"]
    if key in point.get("batches", ()):
        value = {"mean": mean_of(value), "ci95": point["batches"][key]["half"]}
    return show(value, column["digits"])


def _batches_note(result):
    """[a sentence about the intervals of long runs], or none."""
    counts = sorted({batch["n"] for point in result["cases"]
                     for batch in point.get("batches", {}).values()})
    return [f"± of a long run: 1.96 standard errors of the mean over {counts[0]} successive "
            "parts of it (MK94 (9))"] if counts else []


def _is_known(result, column):
    return any(mean_of(point["metrics"].get(column["key"])) is not None
               for point in result["cases"])


def cases_tables(result):
    """Each case's metrics: a row each, or a table for each metric of those that
    have a series and an x, where there are very many; none where the experiment
    names no metrics."""
    if not result["columns"]:
        return []
    columns = [column for column in result["columns"]
               if _is_known(result, column)]
    points = _series_points(result["cases"])
    tables = [_series_table(result, points, column) for column in columns
              if points]
    there = {point["name"] for point in points.values()}
    rows = [[case_name(point["name"]), str(point["runs"]),
             *(_metric_cell(point, column) for column in columns)]
            for point in result["cases"] if point["name"] not in there]
    if rows:
        tables.append(Table(f"Cases: {combination(result)}",
                            ["case", "runs", *map(head_of, columns)],
                            rows, notes=seeds_note(result) + _batches_note(result)))
    return tables


def _series_points(cases):
    """{(series, x): case} of those that have both; none where cases are few, or
    two of them are at the same place."""
    points = {(point["series"], point["x"]): point for point in cases
              if point["series"] is not None and point["x"] is not None}
    placed = [point for point in cases if point in points.values()]
    alike = len(placed) < sum(None not in (point["series"], point["x"])
                              for point in cases)
    return {} if alike or len(cases) <= _LONG else points


def _series_table(result, points, column):
    at = sorted({x for _, x in points})
    rows = [[series, *(_metric_cell(points[series, x], column)
                       if (series, x) in points else NONE for x in at)]
            for series in dict.fromkeys(series for series, _ in points)]
    return Table(f"{head_of(column)}: {combination(result)}",
                 ["series", *(f"{x:g}" for x in at)], rows,
                 notes=seeds_note(result) + _batches_note(result))


def case_variants_tables(results):
    """Variants of an experiment of cases beside one another: one table where
    there is one case, else one for each metric. A variant may leave cases
    out."""
    points = [{point["name"]: point for point in result["cases"]}
              for result in results]
    names = list(dict.fromkeys(
        name for found in sorted(points, key=len, reverse=True)
        for name in found))
    columns = [column for column in results[0]["columns"]
               if any(_is_known(result, column) for result in results)]
    if len(names) == 1:
        rows = [[run, *(_metric_cell(found[names[0]], column)
                        for column in columns)]
                for run, found in zip(run_names(results), points)]
        return [Table(f"Variants compared: {case_name(names[0])}",
                      ["congestion control + queue",
                       *map(head_of, columns)], rows,
                      notes=seeds_note(results[0]))]
    return [Table(
        head_of(column), ["case", *run_names(results)],
        [[name, *(_metric_cell(found[name], column) if name in found else NONE
                  for found in points)] for name in names],
        notes=seeds_note(results[0])) for column in columns]


def result_tables(result):
    """All tables of one result or aggregate, those that apply."""
    def of_cases(*made):
        return [table(result, case) for case in result["cases"] for table in made]

    tables = [*cases_tables(result),
              *of_cases(classes_table, links_table, steady_state_table,
                        pages_table, recovery_table),
              published_table(result), bounds_table(result),
              *of_cases(intervals_table, interval_classes_table)]
    return [table for table in tables if table is not None]
