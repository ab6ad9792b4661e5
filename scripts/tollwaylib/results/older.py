# SPDX-License-Identifier: GPL-2.0
"""Results and raw results of older schemas, converted to the present ones.

Each step converts a file of one schema to the next one. A value that the older program
did not measure, and that does not follow from the others, is null.
"""

import re

from ..errors import TollwayError
from ..experiments.quantities import unit_of

# What schema 1 of raw.json had beside the rest, of a run without a list of cases.
_OF_RAW_CASE = ("flows", "queues", "network")
# What schema 3 of result.json had beside the rest, of such a run.
_OF_CASE = ("links", "flows", "classes", "intervals", "steady_state", "pages",
            "recovery")


# Figures of experiments that named none before schema 4 had a place for theirs.
_FIGURES = {"parking-lot": ("acknowledgements", "price_tracking"),
            "price-laws": ("price_laws",),
            "single-bottleneck": ("window_histograms", "queue_histograms")}


def with_figures(raw):
    """A raw result with its figures. Before experiments named figures, the report drew them by
    the name of the experiment."""
    known = _FIGURES.get(raw.get("experiment"), ())
    if raw.get("pictures") or not known:
        return raw
    return {**raw, "pictures": [[kind, "run"] for kind in known]}


def upgraded(content, what, schema, steps):
    """The content of a file of this or an older schema, as one of `schema`.

    steps: RAW or RESULT. Raises TollwayError if its schema is unknown, with
    `what` for its name.
    """
    known = range(schema - len(steps), schema + 1)
    found = content.get("schema") if isinstance(content, dict) else None
    if isinstance(found, bool) or found not in known:
        raise TollwayError(f"the {what} has schema {found!r}, not one of "
                           f"{known[0]} to {schema}")
    try:
        for step in steps[found - known[0]:]:
            content = {**step(content), "schema": content["schema"] + 1}
    except KeyError as error:
        raise TollwayError(f"the {what} of schema {found} is damaged: it has "
                           f"no {error.args[0]}") from error
    except (TypeError, ValueError, AttributeError, ZeroDivisionError) as error:
        raise TollwayError(f"the {what} of schema {found} is damaged: "
                           f"{error}") from error
    return content


def _raw_with_cases(raw):
    """Of schema 1: a run without a list of cases had its flows and queues in
    their place, and each flow the size of its packets."""
    if "cases" in raw:
        return raw
    kept = {key: value for key, value in raw.items()
             if key not in _OF_RAW_CASE}
    case = {key: raw[key] for key in _OF_RAW_CASE if key in raw}
    sizes = {flow.get("mss_bytes") for flow in raw.get("flows") or [{}]}
    if len(sizes) > 1:
        raise ValueError("the flows have packets of several sizes")
    if "flows" in case:
        case["flows"] = [{key: value for key, value in flow.items()
                          if key != "mss_bytes"} for flow in case["flows"]]
    return {**kept, "mss_bytes": sizes.pop(),
            "metrics": [], "pictures": [],
            "cases": [{"name": "run", "point": "run", "x": None,
                       "series": None, "rtt_s": None, "values": {},
                       "wires": {},
                       "duration_s": raw.get("parameters", {}).get(
                           "duration_s"), **case}]}


def _with_delays(result):
    """Of schema 1: no queueing delay, no unit of published values (all were of
    utilisation), and of an interval no near_s, Jain's index or worst error."""
    packet_bits = 8 * result["parameters"]["packet_bytes"]
    upgrade = {
        "links": {name: {**link, "queue_mean_ms": link["queue_mean_pkts"]
                         * packet_bits * 1e3 / link["capacity_bps"]}
                  for name, link in result["links"].items()},
        "published": [{"unit": "%", **entry}
                      for entry in result["published"]]}
    if "intervals" in result:
        upgrade["intervals"] = [
            {**step, "min_jain": None,
             "max_abs_error": max(abs(group["error"])
                                  for group in step["classes"]),
             "classes": [{**group, "near_s": None, "jain": None}
                         for group in step["classes"]]}
            for step in result["intervals"]]
    return {**result, **upgrade}


def _with_differences(result):
    """Of schema 2: published values were judged in any setup."""
    return {**result, "published": [{**entry, "differences": []}
                                    for entry in result["published"]]}


def _with_cases(result):
    """Of schema 3: a result had links, flows and classes, or in their place
    cases."""
    if "cases" in result:
        return result
    kept = {key: value for key, value in result.items()
             if key not in _OF_CASE}
    return {**kept, "columns": [], "x_title": None,
            "capacity_bps": {name: link["capacity_bps"] for name, link in
                             result["links"].items()},
            "cases": [{"name": "run", "x": None, "series": None, "runs": 1,
                       "metrics": {}, **{key: result[key] for key in _OF_CASE
                                         if key in result}}]}


# --- names of metrics ------------------------------------------------------

# Names before experiments/quantities.py, of what is no field of a result.
_NAMES = {
    "classes.max_abs_error": "max_abs_error",
    "classes.max_abs_error_over_seeds": "max_abs_error_over_seeds",
    "classes.max_spread": "max_spread",
    "links.min_utilization": "min_utilization",
    "links.max_utilization": "max_utilization",
    "links.mean_utilization": "mean_utilization",
    "links.max_queue_mean_pkts": "max_queue_mean_pkts",
    "links.max_queue_error": "max_queue_error",
    "links.max_pc3_error": "max_pc3_error",
    "links.total_drops": "total_drops",
    "links.total_drops_whole_run": "total_drops_whole_run",
    "intervals.min_utilization_after_2s": "min_utilization_after_2s",
    "intervals.drops_after_2s": "total_drops_after_2s",
    "intervals.max_abs_error": "max_interval_error",
    "intervals.max_convergence_s": "max_convergence_s",
    "aimd.max_abs_error": "aimd_max_abs_error",
    "steady_state.max_rate_error": "steady_max_rate_error",
    "steady_state.max_queue_error": "steady_max_queue_error",
}
# Ways through a result, with the part that each of them named.
_WAY = re.compile(r"(?:intervals\.(?P<interval>\d+)\.)?"
                  r"(?:links\.(?P<link>[^.]+)\.|classes\.(?P<group>\d+)\.|"
                  r"pages\.(?P<pages>0)\.|recovery\.)?(?P<metric>\w+)")


def _in_words(bound, paths):
    """A bound with a name in words and what it is of. paths: of the classes, in
    their order."""
    metric, of = bound["metric"], {}
    found = _WAY.fullmatch(metric)
    if metric in _NAMES:
        metric = _NAMES[metric]
    elif metric.startswith("classes.share_of_"):
        metric, of = "path_share", {"path": metric.rpartition("_")[2]}
    elif found:
        metric = found["metric"]
        if found["link"]:
            of["link"] = found["link"]
        if found["group"]:
            of["path"] = paths[int(found["group"])]
        if found["pages"]:
            of["path"] = "all"
        if found["interval"]:
            of["interval"] = int(found["interval"]) + 1
    return {**bound, "metric": metric, "of": bound.get("of", of)}


def _column(column):
    """A metric of cases, with its unit apart from its title."""
    title, _, unit = column["title"].partition(" [")
    return {**column, "title": title, "unit": unit.rstrip("]") or None}


def _raw_in_words(raw):
    """Of schema 2 of raw.json: bounds named ways through the result, and titles
    of metrics had the unit."""
    bounds, metrics = raw.get("bounds") or [], raw.get("metrics") or []
    if not metrics:
        paths = [path for path, _ in dict.fromkeys(
            (flow.get("path"), flow.get("wtp")) for case in raw["cases"]
            for flow in case["flows"])]
        bounds = [_in_words(bound, paths) for bound in bounds]
    return {"pictures": [], **raw, "bounds": bounds,
            "metrics": [_column(spec) for spec in metrics]}


def _in_words_of_now(result):
    """The same of schema 3 of result.json, whose bounds had no unit."""
    columns = [_column(column) for column in result["columns"]]
    units = {column["key"]: column["unit"] for column in columns}
    if columns:
        bounds = [{**bound, "of": {}, "unit": units.get(bound["metric"])}
                  for bound in result["bounds"]]
    else:
        (case,) = result["cases"]
        paths = [group["path"] for group in case["classes"]]
        bounds = [_in_words(bound, paths) for bound in result["bounds"]]
        bounds = [{**bound, "unit": unit_of(bound["metric"])}
                  for bound in bounds]
    return {**result, "columns": columns, "bounds": bounds}


def _with_cases_and_words(result):
    return _in_words_of_now(_with_cases(result))


def _with_baselines(content):
    """Of schema 3 of raw.json, and 4 of result.json: bounds had the name of
    their baseline as `than`."""
    return {**content, "bounds": [
        {"baseline" if key == "than" else key: value
         for key, value in bound.items()} for bound in content["bounds"] or []]}


# From schema 1 of raw.json, and of result.json, on.
RAW = (_raw_with_cases, _raw_in_words, _with_baselines)
RESULT = (_with_delays, _with_differences, _with_cases_and_words,
          _with_baselines)
