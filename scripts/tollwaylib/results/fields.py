# SPDX-License-Identifier: GPL-2.0
"""Fields of results and aggregates."""

import math
import statistics

from scipy import special

from ..errors import TollwayError


def mean_or_none(values):
    """The mean of numbers; None if there are none, or if one of them is None."""
    values = list(values)
    return None if None in values or not values else statistics.fmean(values)


def statistics_of(values):
    """Mean, standard deviation and half the 95 % interval of the mean (Student's t) of
    numbers, as {mean, sd, ci95, n}.

    With one value sd and ci95 are None. If one of the values is None (an event that did not
    happen in each run), all but n are None.
    """
    count = len(values)
    if None in values:
        return {"mean": None, "sd": None, "ci95": None, "n": count}
    mean = statistics.fmean(values)
    if count < 2:
        return {"mean": mean, "sd": None, "ci95": None, "n": count}
    sd = statistics.stdev(values)
    half = float(special.stdtrit(count - 1, 0.975)) * sd / math.sqrt(count)
    return {"mean": mean, "sd": sd, "ci95": half, "n": count}


def metric_of(result, case, key):
    """A metric of a result's case; TollwayError if there is none."""
    for point in result["cases"]:
        if point["name"] == case and key in point["metrics"]:
            return point["metrics"][key]
    raise TollwayError(f"the result has no {key} of {case}")


def has_case(result, case):
    """True if a result, an aggregate or a raw result has a case with this name."""
    return any(point["name"] == case for point in result["cases"])


def case_of(result, name=None):
    """A case of a result, an aggregate or a raw result. Without a name it is the first one: if
    the bounds and published values of an experiment name no case, it has only one. Raises
    TollwayError if there is no such case."""
    for case in result["cases"]:
        if name in (None, case["name"]):
            return case
    raise TollwayError(f"the run has no case {name}")


def cases_with(results, part):
    """The names of the cases of which all these results have a part (`links`,
    `classes` and others)."""
    first, *others = ([case["name"] for case in result["cases"] if part in case]
                      for result in results)
    return [name for name in first if all(name in other for other in others)]


def limit_of(bound, result, mean_of):
    """The limit of a bound: its value, or this fraction of what another case measured."""
    if "of_case" not in bound:
        return bound["value"]
    other = mean_of(metric_of(result, bound["of_case"],
                              bound.get("of_metric", bound["metric"])))
    return None if other is None else bound["value"] * other


def head_of(column):
    """The head of a metric of cases in tables: its title and unit."""
    return f"{column['title']} [{column['unit']}]" if column["unit"] \
        else column["title"]


def mean_of(value):
    """A number, or the mean of an aggregated one."""
    return value["mean"] if isinstance(value, dict) else value


# Parts of a case whose entries are of a path.
_OF_PATHS = ("classes", "pages")


def look_up(case, metric, of, links=None):
    """A field of a result's case, a mean over links, or the worst class.

    metric: of quantities.OF_RUNS; of: its link, path or interval. links: all by
    default. Raises TollwayError where the case has no such field.
    """
    try:
        found = case
        if metric == "mean_utilization":
            return statistics.fmean(
                mean_of(found["links"][name]["utilization"])
                for name in links or found["links"])
        if metric == "max_abs_error" and "interval" not in of:
            return max(abs(group["error"]) for group in found["classes"])
        if "interval" in of:
            found = found["intervals"][of["interval"] - 1]
        if "link" in of:
            found = found["links"][of["link"]]
        elif "path" in of:
            (found,) = [entry for part in _OF_PATHS
                        for entry in found.get(part, ())
                        if entry["path"] == of["path"] and metric in entry]
        elif "interval" not in of:
            found = found["recovery"]
        return mean_of(found[metric])
    except (KeyError, IndexError, ValueError, TypeError, AttributeError):
        raise TollwayError(
            f"the result has no {metric}" + "".join(
                f" of {what} {which}" for what, which in of.items())) from None
