# SPDX-License-Identifier: GPL-2.0
"""Bounds, and their verdicts."""

import math

import numpy as np

from ..errors import TollwayError
from ..experiments.description import WHOLE_RUN
from ..experiments.quantities import OVER_SEEDS, check, unit_of
from . import fields
from .fields import case_of, look_up, mean_of
from .measurements import entry_of, number_of
from .metrics.queues import (max_pc3_error, max_queue_mean, max_utilization,
                             min_utilization, total_drops,
                             total_drops_whole_run)
from .metrics.shares import (aimd_max_abs_error, drops_after_2s, max_abs_error,
                             max_convergence_s, max_interval_error,
                             max_queue_error, max_rate_error, max_spread,
                             max_steady_mark_error, max_steady_queue_error,
                             min_utilization_after_2s, path_share)
from .origins import key_of

HOLD, MISS = ("holds", "agrees", "better"), ("fails", "differs")


def _linearity(values, places):
    """R^2 of the straight line through the values; 1 if all of them are on it."""
    if max(values) == min(values):
        return None
    return float(np.corrcoef(places, values)[0, 1] ** 2)


# Functions that compute one number from the values of several cases and their x.
REDUCERS = {
    # largest minus smallest
    "range": lambda values, places: max(values) - min(values),
    "largest": lambda values, places: max(values),
    "smallest": lambda values, places: min(values),
    # first minus last
    "fall": lambda values, places: values[0] - values[-1],
    # largest increase from one to the next
    "rise": lambda values, places: max(
        after - value for value, after in zip(values, values[1:])),
    "linearity": _linearity,
}


def cases_of(bound):
    """The cases to which a bound applies."""
    return [*bound.get("cases", ()), *(
        bound[key] for key in ("case", "of_case") if key in bound)]


def _reduced(bound, result):
    points = {point["name"]: point for point in result["cases"]}
    values = [mean_of(points[name]["metrics"][bound["metric"]])
              for name in bound["cases"]]
    if None in values:
        return None
    return REDUCERS[bound["reduce"]](
        values, [points[name]["x"] for name in bound["cases"]])


def judge_case(bound, result):
    """The verdict of a bound on cases, for a result or an aggregate. A bound on means over
    seeds has a verdict only in the aggregate of several seeds."""
    measured = _reduced(bound, result) if "cases" in bound else \
        mean_of(fields.metric_of(result, bound["case"], bound["metric"]))
    limit = fields.limit_of(bound, result, mean_of)
    if limit is None:
        # If the other case has no value, any measured value is accepted.
        limit = 0.0 if measured is None else measured
    unit = next((column["unit"] for column in result["columns"]
                 if column["key"] == bound["metric"]), None)
    verdict = judge({**bound, "of": {}, "unit": unit, "value": limit}, measured)
    if bound.get("case", WHOLE_RUN) != WHOLE_RUN:
        verdict["name"] = f"{bound['case']}: {bound['name']}"
    if bound.get("over_seeds"):
        verdict["over_seeds"] = bound
        if len(result.get("seeds", ())) < 2:
            verdict["verdict"] = "needs seeds"
    return verdict


# How quantities are measured that are no field of a result. Each takes the run
# (CaseData), its result (a case with links, flows and classes) and what
# it is of, and returns a number, or None for "never happened", which fails every
# bound. Units and meanings are in experiments/quantities.py.
METRICS = {
    "max_abs_error": max_abs_error, "max_spread": max_spread,
    "min_utilization": min_utilization, "max_utilization": max_utilization,
    "max_queue_mean_pkts": max_queue_mean, "max_queue_error": max_queue_error,
    "max_pc3_error": max_pc3_error, "path_share": path_share,
    "total_drops": total_drops, "total_drops_whole_run": total_drops_whole_run,
    "min_utilization_after_2s": min_utilization_after_2s,
    "total_drops_after_2s": drops_after_2s,
    "max_interval_error": max_interval_error,
    "max_convergence_s": max_convergence_s,
    "aimd_max_abs_error": aimd_max_abs_error,
    "steady_max_rate_error": max_rate_error,
    "steady_max_queue_error": max_steady_queue_error,
    "steady_max_mark_error": max_steady_mark_error,
}


def judged(bounds, cases, result):
    """The verdicts of those bounds whose cases the run has.

    cases: CaseData of the run, see measurements.cases_of().
    """
    return [_judge_one(bound, cases, result) for bound in bounds
            if all(fields.has_case(result, name) for name in cases_of(bound))]


def _judge_one(bound, cases, result):
    if cases_of(bound):
        return judge_case(bound, result)
    return judge({**bound, "unit": unit_of(entry_of(bound, "metric", "bounds"))},
                 _measure_bound(bound, cases[0], result))


def _measure_bound(bound, run, result):
    metric, of = (entry_of(bound, key, "bounds") for key in ("metric", "of"))
    check(metric, of)
    if metric == OVER_SEEDS:
        return OVER_SEEDS
    # Some are of the whole run or of an interval, which has them as a field.
    if metric in METRICS and "interval" not in of:
        return METRICS[metric](run, case_of(result), **of)
    return look_up(case_of(result), metric, of, run.bottlenecks)


def judge(bound, measured):
    """The verdict of a bound (dict, see description.bound()): the entry of a result, with the
    bound's value, what was measured and holds or fails. measured: a number in the unit of
    the bound; None for an event that never came, which fails; OVER_SEEDS if it needs more
    than one seed. Raises TollwayError if the bound is not complete or its operator is
    unknown."""
    if "baseline" in bound:
        return judge_baseline(bound, measured, None)
    value = number_of(bound, "value", "bounds")
    entry = {key: entry_of(bound, key, "bounds") for key in
             ("name", "metric", "of", "unit")}
    op = entry_of(bound, "op", "bounds")
    if measured is OVER_SEEDS:
        return {**entry, "measured": None, "op": op, "bound": value,
                "verdict": "needs seeds"}
    if op not in ("<=", ">="):
        raise TollwayError(f"a bound's op is <= or >=, not {op!r}")
    holds = measured is not None and (
        measured <= value if op == "<=" else measured >= value)
    return {**entry, "measured": measured, "op": op, "bound": value,
            "verdict": "holds" if holds else "fails"}


def judge_baseline(bound, measured, baseline):
    """The verdict of a bound against the value of a baseline. baseline: its result, or None."""
    entry = {**{key: entry_of(bound, key, "bounds") for key in
                ("name", "metric", "of", "unit")}, "measured": measured,
             **{key: entry_of(bound, key, "bounds") for key in ("op", "baseline")},
             "bound": None, "verdict": "needs runs"}
    if baseline is None:
        return entry
    value = look_up(case_of(baseline), bound["metric"], bound["of"])
    # A time to an event that never came for the baseline: any time is better.
    entry["bound"] = value
    if None in (measured, value):
        holds = measured is not None
    else:
        holds = measured <= value if bound["op"] == "<=" else measured >= value
    entry["verdict"] = "holds" if holds else "fails"
    return entry


def compare(outcomes):
    """The same results or aggregates, with the verdicts of bounds against one another.

    A bound with `baseline` is compared with the variant of that name, of the same
    experiment, origin and seeds. If this variant is missing, the verdict stays "needs runs".
    """
    def key(outcome, name):
        return (outcome["experiment"], name, key_of(outcome),
                tuple(outcome.get("seeds") or [outcome["seed"]]))

    there = {key(outcome, outcome["parameters"].get("variant")): outcome
             for outcome in outcomes}
    return [{**outcome, "bounds": [
        judge_baseline(bound, bound["measured"],
                       there.get(key(outcome, bound["baseline"])))
        if "baseline" in bound else bound for bound in outcome["bounds"]]}
        for outcome in outcomes]


def verdicts(result):
    """The entries of a result or aggregate that are judged. Published values for another
    setup are not judged, nor are bounds that need other seeds or runs."""
    return [entry for entry in result["published"] + result["bounds"]
            if entry["verdict"] in HOLD + MISS]


def all_hold(result):
    """True if no verdict of a result or aggregate is "fails" or "differs"."""
    return all(entry["verdict"] in HOLD for entry in verdicts(result))


def margin_of(bound):
    """How far a bound is from failing; negative if it fails."""
    if bound["measured"] is None:
        return -math.inf
    over = bound["measured"] - bound["bound"]
    return over if bound["op"] == ">=" else -over
