# SPDX-License-Identifier: GPL-2.0
"""From the results of several seeds to means."""

import statistics

from ..errors import TollwayError
from ..experiments.quantities import OVER_SEEDS
from .fields import case_of, look_up, statistics_of
from .metrics.shares import longest_of, max_abs_error
from .origins import origin_of
from .comparison import compare_published
from .schema import SCHEMA, validate, validate_aggregate
from .verdicts import judge, judge_baseline, judge_case, margin_of


def aggregate(results):
    """One object for several seeds of one experiment.

    results: one or more results with the same experiment, parameters (except for a
    parameter named seed), links, flows and origin (origins.py), and different seeds.

    Returns a dict shaped like a result, with the lists `seeds` and `digests` instead of
    `seed` and `digest`. Measured numbers become {mean, sd, ci95, n}: ci95 is half the 95 %
    confidence interval of the mean (Student's t); sd and ci95 are None for one seed. The
    `error` of a class is that of its mean rate, and `error_ci95` half its interval. A
    published value is judged by the mean and its interval, see compare_published(); a bound
    by the worst seed, and its `measured` is that of this seed. Only
    max_abs_error_over_seeds is computed from the mean rates; it has no verdict in a single
    run.
    """
    _check_same(results)
    first = results[0]
    outcome = {
        "schema": SCHEMA,
        "experiment": first["experiment"],
        "parameters": {key: value for key, value in
                       first["parameters"].items() if key != "seed"},
        "seeds": [result["seed"] for result in results],
        **{name: first[name] for name in
           ("capacity_bps", "columns", "x_title")},
        "cases": [_aggregate_case(same) for same in
                  zip(*(result["cases"] for result in results))],
        "published": [],
        "bounds": [],
        "provenance": first["provenance"],
        **({"references": first["references"]} if "references" in first else {}),
        "digests": [result["digest"] for result in results],
    }
    outcome["published"] = compare_published(outcome, results)
    outcome["bounds"] = [
        _aggregate_bound(same, outcome)
        for same in zip(*(result["bounds"] for result in results))]
    validate_aggregate(outcome)
    return outcome


def _check_same(results):
    if not results:
        raise TollwayError("there are no results to put together")
    for result in results:
        validate(result)

    def kind(result):
        parameters = {key: value for key, value in
                      result["parameters"].items() if key != "seed"}
        return (result["experiment"], parameters, result["capacity_bps"],
                result["columns"], result.get("references"),
                [(case["name"], case["runs"],
                  [(flow["id"], flow["path"], flow["cc"], flow["wtp"])
                   for flow in case.get("flows", ())],
                  [(step["start_s"], step["stop_s"], step["factor"])
                   for step in case.get("intervals", ())])
                 for case in result["cases"]],
                # A bound on a metric of one case may be what another one
                # measured, which differs from seed to seed.
                [(bound["name"], bound["metric"], bound["of"], bound["op"],
                  bound.get("baseline") or result["columns"] or bound["bound"])
                 for bound in result["bounds"]])

    seeds = [result["seed"] for result in results]
    if len(set(seeds)) < len(seeds):
        raise TollwayError("two results have the same seed, so they do not show "
                           "how much the numbers vary")
    if len({result["digest"] for result in results}) < len(results):
        raise TollwayError("two seeds gave the same packets, so the seed had no "
                           "effect")
    if any(kind(result) != kind(results[0]) for result in results[1:]):
        raise TollwayError("results of different experiments or parameters "
                           "cannot be averaged")
    _check_origins([origin_of(result) for result in results])


def _check_origins(origins):
    first = origins[0]
    for other in origins[1:]:
        for name, value in other.items():
            if value != first[name]:
                raise TollwayError(
                    "results of different origins cannot be averaged "
                    f"({name}: {first[name]} and {value})")


def _aggregate_links(runs):
    return {
        name: {key: value if key == "capacity_bps" else
               statistics_of([links[name][key] for links in runs])
               for key, value in link.items()}
        for name, link in runs[0].items()}


def _aggregate_classes(runs):
    classes = []
    for same in zip(*runs):
        share = statistics.fmean(group["expected_pps"] for group in same)
        rate = statistics_of([group["rate_pps"] for group in same])
        group = {
            "path": same[0]["path"], "wtp": same[0]["wtp"],
            "rate_pps": rate, "expected_pps": share,
            "error": rate["mean"] / share - 1,
            "error_ci95": rate["ci95"] and rate["ci95"] / share,
            "spread": statistics_of([group["spread"] for group in same]),
        }
        if "convergence_s" in same[0]:
            for key in ("convergence_s", "near_s"):
                group[key] = longest_of([group[key] for group in same])
            group["jain"] = min(group["jain"] for group in same)
        classes.append(group)
    return classes


def _aggregate_flows(runs):
    return [
        {**{key: same[0][key] for key in ("id", "path", "cc", "wtp")},
         **{key: statistics_of([flow[key] for flow in same]) for key in
            ("rate_pps", "goodput_bps", "retransmits", "rtt_mean_ms")}}
        for same in zip(*runs)]


def _aggregate_intervals(runs):
    return [
        {**{key: same[0][key] for key in ("start_s", "stop_s", "factor")},
         "links": _aggregate_links([step["links"] for step in same]),
         "classes": groups,
         "max_convergence_s": longest_of([step["max_convergence_s"]
                                          for step in same]),
         "max_abs_error": max(abs(group["error"]) for group in groups),
         "min_jain": min(step["min_jain"] for step in same)}
        for same in zip(*runs)
        for groups in [_aggregate_classes([step["classes"]
                                           for step in same])]]


def _aggregate_entries(*described):
    """Of lists of objects: those fields are the same in all runs, and all
    others are measured."""
    def entries(runs):
        return [{key: value if key in described else
                 statistics_of([entry[key] for entry in same])
                 for key, value in same[0].items()} for same in zip(*runs)]
    return entries


def _aggregate_case(same):
    first = same[0]
    # Where there are seeds, their spread takes the place of that within a run.
    left_out = {*_PARTS, *(["batches"] if len(same) > 1 else [])}
    return {**{key: value for key, value in first.items() if key not in left_out},
            **{name: _PARTS[name]([case[name] for case in same])
               for name in first if name in _PARTS}}


def _aggregate_counters(runs):
    return {key: statistics_of([counters[key] for counters in runs])
            for key in runs[0]}


# What becomes of what was measured of a case, which has some of these.
_PARTS = {
    "metrics": _aggregate_counters, "links": _aggregate_links, "flows": _aggregate_flows,
    "classes": _aggregate_classes, "intervals": _aggregate_intervals,
    "steady_state": _aggregate_entries(
        "link", "flows", "wtp_sum", "capacity_pps",
        "expected_mark_probability", "expected_queue_pkts"),
    "pages": _aggregate_entries("path"), "recovery": _aggregate_counters,
}


def _aggregate_bound(same, outcome):
    """The bound of the worst seed: one that fails, if there is one."""
    if "baseline" in same[0]:
        return judge_baseline(same[0], look_up(
            case_of(outcome), same[0]["metric"], same[0]["of"]), None)
    if same[0]["metric"] == OVER_SEEDS:
        return judge({**same[0], "value": same[0]["bound"]},
                     max_abs_error(None, case_of(outcome)))
    if "over_seeds" in same[0]:
        return judge_case(same[0]["over_seeds"], outcome)
    return min(same, key=margin_of)
