# SPDX-License-Identifier: GPL-2.0
"""Fields of results and aggregates."""

import statistics

from ..errors import TollwayError


def mean_or_none(values):
    values = list(values)
    return None if None in values or not values else statistics.fmean(values)


def metric_of(result, case, key):
    """A metric of a result's case; TollwayError if there is none."""
    for point in result["cases"]:
        if point["name"] == case and key in point["metrics"]:
            return point["metrics"][key]
    raise TollwayError(f"the result has no {key} of {case}")


def has_case(result, case):
    return any(point["name"] == case for point in result["cases"])


def run_of(result):
    """The case of a result or aggregate of which links, flows and classes were
    measured: the only one of an experiment that names no metrics. None for an
    experiment that does."""
    return next((case for case in result["cases"] if "links" in case), None)


def part_of(result, name):
    """`intervals`, `pages` or another part of run_of(); None if there is none."""
    return (run_of(result) or {}).get(name)


def limit_of(bound, result, mean_of):
    """What a bound asks for: its value, or that part of another case's."""
    if "of_case" not in bound:
        return bound["value"]
    other = mean_of(metric_of(result, bound["of_case"], bound["metric"]))
    return None if other is None else bound["value"] * other


def mean_of(value):
    """A number, or the mean of an aggregated one."""
    return value["mean"] if isinstance(value, dict) else value


def look_up(result, metric, links=None):
    """What a published number's metric names: a field, or a mean over links;
    of a result with links, flows and classes. links: all by default."""
    found = run = run_of(result)
    if metric == "links.mean_utilization":
        return statistics.fmean(
            mean_of(run["links"][name]["utilization"])
            for name in links or run["links"])
    try:
        for key in metric.split("."):
            found = found[int(key) if isinstance(found, list) else key]
    except (KeyError, IndexError, ValueError, TypeError):
        raise TollwayError(f"the result has no {metric}") from None
    return mean_of(found)
