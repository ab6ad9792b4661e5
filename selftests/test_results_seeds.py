# SPDX-License-Identifier: GPL-2.0
"""Results of several seeds: means, spread, bounds."""

import json
import math

import pytest
from results_bench import bound

import synthetic
from tollwaylib.errors import TollwayError
from tollwaylib.report import tables
from tollwaylib.results import aggregate
from tollwaylib.results.fields import case_of


def seeds(*scales, **more):
    return [synthetic.analyse(synthetic.steady(
        lambda number, path, wtp, scale=scale: scale, seed=seed, **more))
        for seed, scale in enumerate(scales, 1)]


def test_aggregate_mean_spread_and_student_interval():
    whole = aggregate.aggregate(seeds(0.98, 0.99, 1.03))
    group = case_of(whole)["classes"][0]
    share = synthetic.fair_pps("I", 100)
    assert whole["seeds"] == [1, 2, 3] and len(whole["digests"]) == 3
    assert group["error"] == pytest.approx(0, abs=1e-5)
    sd = math.sqrt((0.02 ** 2 + 0.01 ** 2 + 0.03 ** 2) / 2) * share
    assert group["rate_pps"]["sd"] == pytest.approx(sd, rel=1e-3)
    # Student's t for two degrees of freedom at 97.5 % is 4.3027.
    assert group["rate_pps"]["ci95"] == pytest.approx(
        4.3027 * sd / math.sqrt(3), rel=1e-3)
    assert group["error_ci95"] == pytest.approx(
        group["rate_pps"]["ci95"] / share)
    assert case_of(whole)["links"]["core1"]["utilization"]["mean"] == \
        pytest.approx(0.99)
    assert case_of(whole)["links"]["core1"]["utilization"]["ci95"] == \
        pytest.approx(0, abs=1e-9)
    assert len(case_of(whole)["flows"]) == 36
    assert whole["published"][0]["measured"] == pytest.approx(0.99)
    json.dumps(whole, allow_nan=False)


def test_aggregate_of_one_seed_has_no_spread():
    group = case_of(aggregate.aggregate(seeds(1.0)))["classes"][0]
    assert group["rate_pps"]["sd"] is None and group["error_ci95"] is None


def test_aggregate_bounds():
    limits = [bound("max_abs_error_over_seeds", "<=", 0.01),
              bound("max_abs_error", "<=", 0.01),
              bound("min_utilization", ">=", 0.98)]
    some = [*seeds(0.97, bounds=limits), synthetic.analyse(synthetic.steady(
        lambda number, path, wtp: 1.03, seed=2, bounds=limits,
        utilization=(0.99, 0.985)))]
    for result in some:
        over, single, _ = result["bounds"]
        assert (over["verdict"], over["measured"]) == ("needs seeds", None)
        assert single["verdict"] == "fails"
    assert some[1]["bounds"][2]["verdict"] == "holds"
    means, single, worst = aggregate.aggregate(some)["bounds"]
    assert means["verdict"] == "holds" and means["measured"] < 1e-4
    assert single["verdict"] == "fails"
    assert single["measured"] == pytest.approx(0.03, rel=1e-3)
    assert worst["verdict"] == "fails"
    assert worst["measured"] == pytest.approx(0.97)


def test_aggregate_of_schedules_keeps_the_worst_convergence():
    some = [synthetic.analyse(synthetic.dynamics(lag_s=lag, seed=seed))
            for seed, lag in enumerate((0.52, 1.52))]
    whole = aggregate.aggregate(some)
    assert case_of(whole)["intervals"][1]["max_convergence_s"] == \
        case_of(some[1])["intervals"][1]["max_convergence_s"]
    case_of(some[0])["intervals"][1]["max_convergence_s"] = None
    assert case_of(aggregate.aggregate(some))["intervals"][1]["max_convergence_s"] is None


def test_aggregate_refuses_what_has_no_mean():
    one, two = seeds(1.0, 0.99)
    with pytest.raises(TollwayError, match="no results"):
        aggregate.aggregate([])
    with pytest.raises(TollwayError, match="same seed"):
        aggregate.aggregate([one, one])
    with pytest.raises(TollwayError, match="same packets"):
        aggregate.aggregate([one, dict(two, digest=one["digest"])])
    with pytest.raises(TollwayError, match="different"):
        aggregate.aggregate([one, dict(two, parameters=dict(
            two["parameters"], kappa=0.2))])
    with pytest.raises(TollwayError, match="different"):
        aggregate.aggregate([one, dict(two, experiment="parking-lot")])


@pytest.mark.parametrize("change, sentence", [
    ({"place": "host"}, r"\(place: lab and host\)"),
    ({"flavour": "debug"}, r"\(flavour: plain and debug\)"),
    ({"kernel": "6.12"}, r"\(kernel: 6.1.0-test and 6.12\)"),
    ({"config_sha256": "cd" * 32}, r"\(kernel config: abababababab and cd"),
    ({"command": "tollway run x --traf iperf3 --seed 2"},
     r"\(traffic: tollway and iperf3\)"),
    ({"separate": True}, r"\(separate cases: False and True\)")])
def test_results_of_different_origins_have_no_mean(change, sentence):
    one, two = seeds(1.0, 0.99)
    one["provenance"]["place"] = "lab"
    two["provenance"].update({"place": "lab", **change})
    with pytest.raises(TollwayError, match=sentence):
        aggregate.aggregate([one, two])


@pytest.mark.parametrize("command", [
    "tollway run x --trace hash", "tollway run x --traffic tollway",
    "tollway run 'x", "tollway run x --traffic iperf3 --traffic tollway"])
def test_other_words_of_a_command_are_no_origin(command):
    one, two = seeds(1.0, 0.99)
    two["provenance"]["command"] = command
    assert aggregate.aggregate([one, two])["seeds"] == [1, 2]


def of_utilizations(*values):
    """The published entry of the utilisation of link 1 (97.9 %, tolerance 2 points), of an
    aggregate of these, and the notes of its table."""
    runs = [synthetic.analyse(synthetic.as_published(
        lambda number, path, wtp: 1.0, seed=seed, utilization=(value, 0.9)))
        for seed, value in enumerate(values, 1)]
    outcome = aggregate.aggregate(runs)
    return outcome["published"][0], tables.published_table(outcome).notes


def test_published_values_are_judged_by_mean_and_interval():
    """Student's t for four degrees of freedom is 2.7764. Means of 94 % with sd 2.24 and 0.224
    points: half the interval is 2.78 and 0.28, and the lower end of what agrees 95.9 %."""
    wide, notes = of_utilizations(0.91, 0.93, 0.94, 0.95, 0.97)
    assert wide["measured"] == pytest.approx(0.94)
    assert wide["ci95"] == pytest.approx(2.7764 * math.sqrt(5e-4 / 5), rel=1e-3)
    assert wide["verdict"] == "agrees" and any("all of it" in note for note in notes)
    narrow, _ = of_utilizations(0.937, 0.939, 0.94, 0.941, 0.943)
    assert narrow["verdict"] == "differs"
    assert narrow["ci95"] == pytest.approx(wide["ci95"] / 10, rel=1e-3)


def test_an_interval_of_few_seeds_does_not_judge():
    """Of two seeds it is 12.7 sd / sqrt(2), in which almost everything would agree."""
    few, notes = of_utilizations(0.92, 0.96)
    assert few["ci95"] > 0.2 and few["verdict"] == "differs"
    assert any("The mean is judged" in note for note in notes)
    one, notes = of_utilizations(0.96)
    assert one["ci95"] is None and one["verdict"] == "agrees" and notes == []
