# SPDX-License-Identifier: GPL-2.0
"""Verdicts on synthetic runs: bounds, and what the papers published."""

import copy
import json
import math
import pathlib

import pytest
from results_bench import bound, judged

import synthetic
from tollwaylib import papers
from tollwaylib.errors import TollwayError
from tollwaylib.experiments import published, quantities
from tollwaylib.report import tables
from tollwaylib.results import aggregate, metrics
from tollwaylib.results import schema
from tollwaylib.results import verdicts
from tollwaylib.results.fields import case_of
from tollwaylib.results.comparison import compare_published, verdict_on
from tollwaylib.results.comparison import reasons
from tollwaylib.theory import pricing

pytest_plugins = ["results_bench"]

HERE = pathlib.Path(__file__).parent
PUBLISHED = HERE.parent / "scripts/tollwaylib/papers/cp05.json"


def test_bounds_on_classes_and_links():
    def scale(number, path, wtp):
        return 0.98 if path == "III" else 1.0

    raw = synthetic.steady(scale)
    error = judged(raw, "max_abs_error", "<=", 0.0201)
    assert error["measured"] == pytest.approx(0.02, abs=1e-5)
    assert error["verdict"] == "holds" and error["op"] == "<="
    assert judged(raw, "max_abs_error", "<=", 0.0199)["verdict"] == \
        "fails"
    used = judged(raw, "min_utilization", ">=", 0.97)
    assert used["measured"] == pytest.approx(0.97)
    assert judged(raw, "min_utilization", ">=", 0.98)["verdict"] == \
        "fails"
    assert judged(raw, "max_queue_mean_pkts")["measured"] == \
        pytest.approx(24.5, abs=0.02)
    assert judged(raw, "total_drops")["measured"] == 4
    assert judged(raw, "total_drops_whole_run")["measured"] == 10
    assert judged(raw, "max_spread")["measured"] < 1e-5


def test_a_mean_queue_is_held_against_the_law():
    """At the fair shares of CP05 4.3.1 each link has the price 0.35: 2800 packets/s
    of w from its own path, and as much from path III at twice the price."""
    raw = synthetic.steady()
    backlog = case_of(synthetic.analyse(raw))["links"]["core1"]["queue_mean_pkts"]
    expected = 10 + 0.35 / 0.015
    assert judged(raw, "max_queue_error")["measured"] == pytest.approx(
        abs(backlog / expected - 1), rel=1e-6)
    # gamma 0 is auto, 99 % at the limit.
    raw["parameters"].update(gamma=0.0, limit=300)
    expected = 10 + 0.35 * 290 / math.log(100)
    assert judged(raw, "max_queue_error")["measured"] == pytest.approx(
        abs(backlog / expected - 1), rel=1e-6)
    assert pricing.mark_probability(
        pricing.gamma_auto(300, 10) * 290) == pytest.approx(0.99)


def test_every_bound_has_a_measure_of_its_own():
    """Of two functions with one name, one hides the other."""
    measures = list(verdicts.METRICS.values())
    assert len(set(measures)) == len(measures)


def test_what_is_measured_is_named_once():
    """In experiments/quantities.py, with its unit."""
    assert set(verdicts.METRICS) < set(quantities.OF_RUNS)
    assert set(metrics.KINDS) == set(quantities.OF_CASES)


def test_every_published_value_names_a_quantity():
    count = 0
    for experiment in papers.EXPERIMENTS:
        for part in published.parts(experiment):
            for number in (number for row in part["rows"]
                           for number in row["numbers"]):
                if "case" not in number:
                    quantities.check(number["metric"], number["of"])
                    assert "unit" not in number
                    count += 1
    assert count > 100


def test_metrics_of_older_cases_have_their_unit_apart():
    """Of raw.json of schemas 1 and 2, and where it named none."""
    for version in (1, 2):
        made = {"schema": version, "cases": [{"flows": []}]}
        found = schema.upgraded({**made, "pictures": [["curve", "a"]], "metrics": [
            {"key": "a", "title": "of a [pkts]"}, {"key": "b", "title": "b"}]})
        assert found["metrics"] == [
            {"key": "a", "title": "of a", "unit": "pkts"},
            {"key": "b", "title": "b", "unit": None}]
        assert found["pictures"] == [["curve", "a"]]
        found = schema.upgraded(made)
        assert found["metrics"] == found["pictures"] == []


@pytest.mark.parametrize("old, metric, of", [
    ("classes.max_abs_error", "max_abs_error", {}),
    ("classes.share_of_III", "path_share", {"path": "III"}),
    ("links.core1.utilization", "utilization", {"link": "core1"}),
    ("links.mean_utilization", "mean_utilization", {}),
    ("intervals.1.links.core1.queue_mean_pkts", "queue_mean_pkts",
     {"link": "core1", "interval": 2}),
    ("intervals.2.max_abs_error", "max_abs_error", {"interval": 3}),
    # The classes of a path are three.
    ("intervals.0.classes.3.near_s", "near_s", {"path": "II", "interval": 1}),
    ("pages.0.p99_s", "p99_s", {"path": "all"}),
    ("recovery.timeouts", "timeouts", {}),
])
def test_names_of_older_schemas_are_read(old, metric, of, dynamics):
    """Of bounds in raw.json of schema 2, and in result.json of schema 3."""
    quantities.check(metric, of)
    raw = dict(synthetic.steady(), bounds=[
        {"name": "n", "metric": old, "op": "<=", "value": 1.0}])
    (found,) = schema.upgraded(raw)["bounds"]
    assert (found["metric"], found["of"]) == (metric, of)
    (case,) = dynamics["cases"]
    result = {**dynamics, "schema": 3, "cases": dynamics["cases"], **case,
              "bounds": [{"name": "n", "metric": old, "measured": 0.5,
                          "op": "<=", "bound": 1.0, "verdict": "holds"}]}
    for name in ("cases", "metrics", "name", "x", "series", "runs", "columns"):
        del result[name]
    result = schema.upgraded_result(result)
    schema.validate(result)
    (found,) = result["bounds"]
    assert (found["metric"], found["of"]) == (metric, of)
    assert found["unit"] == quantities.OF_RUNS[metric].unit


def test_a_mean_queue_is_held_against_pc3():
    """12 packets come in an interval of 1 ms."""
    raw = synthetic.steady(utilization=(0.99, 0.97))
    raw["parameters"].update(alpha=0.1, interval_us=1000, target=2)
    backlog = case_of(synthetic.analyse(raw))["links"]["core1"]["queue_mean_pkts"]
    errors = [abs(backlog / (2 + (1 - used) * 12 / 0.1) - 1)
              for used in (0.99, 0.97)]
    assert judged(raw, "max_pc3_error")["measured"] == pytest.approx(
        max(errors), rel=1e-3)


def test_bounds_on_links_and_on_path_iii():
    low = synthetic.steady(lambda number, path, wtp:
                           0.8 if path == "III" else 1.1)
    assert judged(low, "path_share", path="III")["measured"] == pytest.approx(
        0.8, rel=1e-4)
    assert judged(low, "max_utilization")["measured"] == pytest.approx(
        0.99)
    used = judged(low, "utilization", ">=", 0.96, link="core2")
    assert used["verdict"] == "holds"
    assert (used["of"], used["unit"]) == ({"link": "core2"}, "%")
    assert judged(low, "utilization", ">=", 0.98, link="core2")["verdict"] \
        == "fails"
    with pytest.raises(TollwayError, match="no utilization of link core9"):
        judged(low, "utilization", link="core9")


def test_aimd_bound_uses_the_flows_own_marks():
    raw = synthetic.steady()
    for flow in raw["flows"]:
        rate = synthetic.fair_pps(flow["path"], flow["wtp"])
        mark = flow["wtp"] / (flow["wtp"] + rate / 1.05)
        samples = flow["samples"]
        samples["delivered_ce"] = [mark * n for n in samples["delivered"]]
    assert judged(raw, "aimd_max_abs_error")["measured"] == pytest.approx(
        0.05, abs=1e-4)


def test_aimd_bound_falls_back_on_the_links_marks():
    raw = synthetic.steady()
    for flow in raw["flows"]:
        flow["samples"]["delivered_ce"] = [0] * len(flow["samples"]["t_s"])
    # Each link marks a tenth: 9 w on one link, w 0.81/0.19 on two.
    worst = max(abs(synthetic.fair_pps(path, 100) / share - 1)
                for path, share in (("I", 900), ("III", 81 / 0.19)))
    assert judged(raw, "aimd_max_abs_error")["measured"] == pytest.approx(
        worst, rel=1e-3)


def test_aimd_bound_without_any_mark_fails():
    raw = synthetic.steady()
    for flow in raw["flows"]:
        del flow["samples"]["delivered_ce"]
    for queue in raw["queues"].values():
        queue["stats_at_end"]["marks"] = queue["stats_at_warmup"]["marks"]
    outcome = judged(raw, "aimd_max_abs_error", "<=", 1e9)
    assert outcome["measured"] is None and outcome["verdict"] == "fails"


@pytest.fixture(scope="module")
def as_published():
    return synthetic.analyse(synthetic.as_published())


def test_published_values_of_table_541(as_published):
    found = {entry["name"]: entry for entry in as_published["published"]}
    one = found["SBRM: utilisation of core link 1"]
    assert one == {"name": one["name"], "value": 0.979, "unit": "%",
                   "verdict": "agrees", "differences": [],
                   "paper": "CP05 Table 5.4.1",
                   "measured": pytest.approx(0.99)}
    assert found["SBRM: utilisation of core link 2"]["verdict"] == "better"
    mean = found["SBRM: mean core link utilisation"]
    assert mean["measured"] == pytest.approx(0.98)
    assert verdicts.all_hold(as_published)
    assert len(verdicts.verdicts(as_published)) == 3
    assert tables.published_table(as_published).notes == []


def test_another_source_than_the_papers_is_not_judged(as_published):
    """Whatever it is set to, and however good or bad it was."""
    setup = published.rows("double-bottleneck", "sbrm", "sbrm", {})[0]["setup"]
    for name, value in setup.items():
        other = dict(as_published, parameters={
            **as_published["parameters"],
            name: "other" if isinstance(value, str) else 12345})
        other["published"] = compare_published(other)
        assert [entry["verdict"] for entry in other["published"]] \
            == ["other setup"] * 3
        (difference,) = other["published"][0]["differences"]
        assert difference.startswith(f"{name} ")
        assert verdicts.verdicts(other) == [] and verdicts.all_hold(other)
        schema.validate(other)
        (note,) = tables.published_table(other).notes
        assert "no verdict" in note and difference in note


@pytest.mark.parametrize("utilization, own, baseline", [
    (0.979, "agrees", "agrees"), (0.999, "agrees", "agrees"),
    (0.9995, "better", "differs"), (0.95, "differs", "differs")])
def test_a_baseline_that_does_better_differs(as_published, utilization, own,
                                          baseline):
    """SBRM's first number, were it that of a baseline."""
    row = published.rows("double-bottleneck", "sbrm", "sbrm", {})[0]
    for given, verdict in ((row, own), (dict(row, baseline=True), baseline)):
        assert verdict_on(given, row["numbers"][0], utilization) == verdict


@pytest.mark.parametrize("measured, half, own, baseline", [
    # SBRM's 97.9 % with a tolerance of 2 points: 95.9 to 99.9 % agree.
    (0.9495, 0.01, "agrees", "agrees"), (0.9485, 0.01, "differs", "differs"),
    (0.9495, 0.0, "differs", "differs"),
    (1.0085, 0.01, "agrees", "agrees"), (1.0095, 0.01, "better", "differs"),
    (None, 0.01, "differs", "differs")])
def test_an_interval_is_judged_as_a_whole(as_published, measured, half, own, baseline):
    row = published.rows("double-bottleneck", "sbrm", "sbrm", {})[0]
    for given, verdict in ((row, own), (dict(row, baseline=True), baseline)):
        assert verdict_on(given, row["numbers"][0], measured, half) == verdict


def test_baselines_are_those_of_the_papers():
    """What a paper compares its own proposals with, and nothing else."""
    baselines = {" over ".join(row["pairs"][0]) for name in papers.EXPERIMENTS
              for part in published.parts(name) for row in part["rows"]
              if row.get("baseline")}
    assert baselines == {
        "reno over pfifo", "reno over red", "reno over sbrm", "sbrm over vqm",
        "rem over rem-pc3", "rem over rem4", "pp over fq_rr", "cubic over pfifo",
        "alpha over alpha"}
    (row,) = [row for part in published.parts("pp-overload")
              for row in part["rows"] if row.get("baseline")]
    assert row["name"] == "none packet-pair"


def test_reasons_are_given_for_what_does_not_hold():
    vqm = synthetic.analyse(synthetic.as_published(
        aqm="vqm", utilization=(0.75, 0.77)))
    assert {entry["verdict"] for entry in vqm["published"]} == {"differs"}
    (reason,) = reasons(vqm, "published")
    assert reason.startswith("VQM: ")
    assert reason in tables.published_table(vqm).notes
    assert reasons(vqm, "bounds") == []
    agrees = [dict(entry, verdict="agrees") for entry in vqm["published"]]
    assert reasons(dict(vqm, published=agrees), "published") == []


def test_every_reason_is_about_something():
    data = json.loads(PUBLISHED.read_text())
    for reason in data["reasons"]:
        experiment = papers.get(reason["experiment"])
        names = [bound["name"] for _, group in experiment.bounds
                 for bound in group]
        names += [bound["name"] for variant in experiment.variants
                  for bound in variant.bounds]
        names += [f"{row['name']}: {number['name']}"
                  for part in data["experiments"][experiment.name]
                  for row in part["rows"] if row["pairs"][0] in reason["pairs"]
                  for number in row["numbers"]]
        assert any(reason["about"] in name for name in names), reason


def test_worse_than_published_differs():
    result = synthetic.analyse(synthetic.as_published(
        utilization=(0.95, 0.97)))
    assert result["published"][0]["verdict"] == "differs"
    assert not verdicts.all_hold(result)


@pytest.mark.parametrize("cc, aqm, values", [
    ("reno", "pfifo", [0.965, 0.875, 0.920]),
    ("reno", "red", [0.951, 0.899, 0.925]),
    ("cp", "price", [0.934, 0.926, 0.930]),
    ("sbrm", "vqm", [0.941, 0.878, 0.909]),
    ("rem", "rem-pc3", [0.949, 0.932, 0.941]),
    ("sbrm", "sbrm", [0.979, 0.920, 0.950]),
])
def test_published_rows(steady, cc, aqm, values):
    result = dict(steady, parameters={"cc": cc, "aqm": aqm})
    found = compare_published(result)
    assert [entry["value"] for entry in found] == values
    for entry in found:
        assert entry["paper"].startswith("CP05 Table ")


def test_another_setup_is_not_compared_with_the_paper(steady):
    other = copy.deepcopy(steady)
    del case_of(other)["flows"][12:]
    assert compare_published(other) == []
    slow = copy.deepcopy(steady)
    slow["capacity_bps"]["core1"] = 48e6
    assert compare_published(slow) == []
    unknown = dict(steady, parameters={"cc": "cubic", "aqm": "pfifo"})
    assert compare_published(unknown) == []
    assert compare_published(dict(steady, experiment="x")) == []


def baselines(*utilizations, op=">="):
    """Two variants, of which the first wants to be better than the second."""
    found = []
    for name, utilization in zip(("mine", "theirs"), utilizations):
        raw = synthetic.steady(utilization=(utilization, 0.9), cc=name)
        raw["parameters"]["variant"] = name
        found.append(raw)
    found[0]["bounds"] = [{"name": "u", "metric": "utilization",
                           "of": {"link": "core1"}, "op": op,
                           "baseline": "theirs"},
                          bound("min_utilization", ">=", 0.5)]
    return [synthetic.analyse(raw) for raw in found]


@pytest.mark.parametrize("mine, theirs, op, verdict", [
    (0.95, 0.9, ">=", "holds"), (0.9, 0.95, ">=", "fails"),
    (0.9, 0.9, ">=", "holds"), (0.9, 0.9, "<=", "holds"),
    (0.95, 0.9, "<=", "fails")])
def test_variants_are_judged_against_one_another(mine, theirs, op, verdict):
    before = baselines(mine, theirs, op=op)
    assert before[0]["bounds"][0]["verdict"] == "needs runs"
    assert verdicts.all_hold(before[0])
    judged = verdicts.compare(before)
    first, second = judged[0]["bounds"]
    assert first["measured"] == pytest.approx(mine)
    assert first["bound"] == pytest.approx(theirs)
    assert (first["verdict"], second["verdict"]) == (verdict, "holds")
    assert verdicts.all_hold(judged[0]) == (verdict == "holds")
    for result in judged:
        schema.validate(result)
    assert before[0]["bounds"][0]["bound"] is None
    # Without the other, and with another seed of it, nothing is judged.
    alone = verdicts.compare(before[:1])
    assert alone[0]["bounds"][0]["verdict"] == "needs runs"
    before[1]["seed"] = 2
    assert verdicts.compare(before)[0]["bounds"][0]["verdict"] == "needs runs"
    # Nor against one of another place.
    before[1].update(seed=1, provenance={**before[1]["provenance"],
                                         "place": "host"})
    assert verdicts.compare(before)[0]["bounds"][0]["verdict"] == "needs runs"


def test_variants_are_judged_by_their_means():
    first, baseline = baselines(0.95, 0.93)
    second = baselines(0.90, 0.93)[0]
    second.update(seed=2, digest="ab" * 32)
    other = dict(baseline, seed=2, digest="cd" * 32)
    judged = verdicts.compare([aggregate.aggregate([first, second]),
                               aggregate.aggregate([baseline, other])])
    entry = judged[0]["bounds"][0]
    assert entry["measured"] == pytest.approx(0.925)
    assert (entry["bound"], entry["verdict"]) == (pytest.approx(0.93), "fails")


@pytest.mark.parametrize("seeds", [(1,), (1, 2)])
@pytest.mark.parametrize("theirs, verdict", [(1.05, "holds"), (1.01, "fails")])
def test_worst_classes_are_judged_against_one_another(theirs, verdict, seeds):
    """Of results and of aggregates, by the larger side of the share."""
    def outcome(name, off):
        found = []
        for seed in seeds:
            raw = synthetic.steady(
                lambda number, path, wtp: off if path == "III" else 1.0,
                cc=name, seed=seed)
            raw["parameters"]["variant"] = name
            raw["bounds"] = [{"name": "w", "metric": "max_abs_error", "of": {},
                              "op": "<=", "baseline": "theirs"}]
            found.append(synthetic.analyse(raw))
        return aggregate.aggregate(found) if len(found) > 1 else found[0]
    (entry,), _ = (one["bounds"] for one in verdicts.compare(
        [outcome("mine", 0.97), outcome("theirs", theirs)]))
    assert entry["measured"] == pytest.approx(0.03, abs=1e-4)
    assert entry["bound"] == pytest.approx(theirs - 1, abs=1e-4)
    assert entry["verdict"] == verdict


def test_what_never_ended_is_no_match(one_link_each):
    mine, theirs = baselines(0.9, 0.9)
    entry = mine["bounds"][0]
    for value, bound_value, verdict in ((1.0, None, "holds"),
                                        (None, 1.0, "fails"),
                                        (None, None, "fails")):
        case_of(theirs)["links"]["core1"]["utilization"] = bound_value
        entry.update(measured=value, op="<=")
        assert verdicts.compare([mine, theirs])[0]["bounds"][0]["verdict"] \
            == verdict


def test_published_backlogs_have_units():
    raw = synthetic.steady()
    raw["experiment"] = "single-bottleneck"
    result = synthetic.analyse(raw)
    run = case_of(result)
    run["links"] = {"R1": run["links"]["core1"], "R2": run["links"]["core2"]}
    result["capacity_bps"] = dict.fromkeys(run["links"], 34368000)
    run["flows"] += run["flows"][:24]
    result["parameters"] = {"cc": "rm", "aqm": "sbrm", "model": "greedy"}
    (row,) = published.rows("single-bottleneck", "rm", "sbrm",
                            {"model": "greedy"})
    result["parameters"].update(row["setup"])
    found = {entry["name"].partition(": ")[2]: entry for entry in
             compare_published(result)}
    assert {entry["unit"] for entry in found.values()} == {"%", "pkts", "ms"}
    assert found["mean buffer occupancy"]["verdict"] == "better"
    result["parameters"]["model"] = "http"
    assert compare_published(result) == []
