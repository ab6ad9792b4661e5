# SPDX-License-Identifier: GPL-2.0
"""Published values beside measured ones."""

from ..experiments import published
from ..experiments.quantities import unit_of
from . import fields
from .fields import case_of, look_up, mean_of, statistics_of
from .measurements import EPSILON
from .verdicts import MISS

# Instead of a verdict: the row is not about a run that was set like this one.
OTHER_SETUP = "other setup"
# With fewer seeds the 95 % interval is too wide to judge by: Student's t is 12.7 for two
# seeds and 2.8 for five.
SEEDS_FOR_INTERVAL = 5


def compare_published(result, runs=()):
    """The published values for a run, beside the measured ones.

    result: a result or an aggregate; its published part is not needed. Its `references` are
    the values of the experiment itself. runs: the results of the seeds of an aggregate.

    Returns the entries of result.schema.json, none if no paper has the pair of congestion
    control and AQM, or if the network is not that of the paper. If the parameters are not
    those of the published row, the verdict is "other setup", which is not judged, and
    `differences` names them. Otherwise a single run, or the mean of fewer than
    SEEDS_FOR_INTERVAL seeds, "agrees" if it is within the tolerance of the published value,
    is "better" if it is beyond the tolerance in the good direction (for a row in which the
    paper shows its own proposal), and "differs" if not. With as many seeds or more the
    same is asked of the whole 95 % interval of the mean: it agrees if some of it is within
    the tolerance, and is better or differs if all of it is beyond. `ci95` of an aggregate
    is half of that interval.
    """
    pair = [result["parameters"].get("cc"), result["parameters"].get("aqm")]
    found = [
        (row, number, part["setup"]["capacity_bps"])
        for part in result.get("references")
        or published.parts(result["experiment"])
        if _is_network(result, part["setup"])
        for row in part["rows"] if pair in row["pairs"]
        for number in row["numbers"]]
    of_runs = [{entry["name"]: entry["measured"] for entry in compare_published(run)}
               for run in runs]
    measured = []
    for row, number, links in found:
        if "case" not in number:
            value = look_up(case_of(result), number["metric"], number["of"],
                            links)
            if value is None:
                continue
        elif fields.has_case(result, number["case"]):
            value = mean_of(fields.metric_of(result, number["case"],
                                             number["metric"]))
        else:
            continue
        entry = {"name": f"{row['name']}: {number['name']}", "value": number["value"],
                 "unit": number["unit"] if "unit" in number else
                 "%" if "case" in number else unit_of(number["metric"]),
                 "paper": row["paper"], "measured": value}
        if runs:
            entry["ci95"] = statistics_of([found.get(entry["name"])
                                           for found in of_runs])["ci95"]
        half = entry.get("ci95") if len(runs) >= SEEDS_FOR_INTERVAL else None
        differences = _differences(result, row["setup"])
        measured.append({
            **entry, "verdict": OTHER_SETUP if differences else
            verdict_on(row, number, value, half or 0.0), "differences": differences})
    return measured


def reasons(result, kind):
    """The known reasons for verdicts of a result that do not hold.

    result: a result or an aggregate. kind: "published" or "bounds". Returns a list of
    texts, each about entries that are "differs" or "fails".
    """
    pair = [result["parameters"].get("cc"), result["parameters"].get("aqm")]
    missed = [entry["name"] for entry in result[kind]
              if entry["verdict"] in MISS]
    return [reason["why"] for reason in published.reasons()
            if reason["experiment"] == result["experiment"]
            and pair in reason["pairs"]
            and any(reason["about"] in name for name in missed)]


def _is_network(result, setup):
    """True if the run had the links, flows and schedule of the paper."""
    capacity, case = result["capacity_bps"], case_of(result)
    edges = [step["start_s"] for step in case.get("intervals", ())]
    if edges:
        edges.append(case["intervals"][-1]["stop_s"])
    return (all(capacity.get(name) == value
                for name, value in setup["capacity_bps"].items())
            and setup.get("flows") in (None, len(case.get("flows", ())))
            and setup.get("edges_s", edges) == edges
            and all(result["parameters"].get(name) == value
                    for name, value in setup.get("parameters", {}).items()))


def _differences(result, setup):
    """The settings of a run that differ from those of a published row."""
    there = result["parameters"]
    return [f"{name} {_plain(there.get(name))} instead of {_plain(value)}"
            for name, value in setup.items() if there.get(name) != value]


def _plain(value):
    if isinstance(value, list):
        return "/".join(map(_plain, value))
    return "unset" if value is None else f"{value:g}" \
        if isinstance(value, (int, float)) else str(value)


def verdict_on(row, number, measured, half=0.0):
    """The verdict of compare_published() on a measured value (None: it was not measured) for
    a number of a row of a paper. half: half the interval of a mean over seeds."""
    if measured is None:
        return "differs"
    above = measured - number["value"]
    if number["better"] == "lower":
        above = -above
    if abs(above) <= number["tolerance"] + half + EPSILON:
        return "agrees"
    # A baseline that does better than published is a difference, too.
    return "better" if above > 0 and not row.get("baseline") else "differs"
