# SPDX-License-Identifier: GPL-2.0
"""The analysis against synthetic runs whose numbers are known beforehand."""

import copy
import json
import math
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).parent
PUBLISHED = HERE.parent / "scripts/tollwaylib/papers/cp05.json"
sys.path[:0] = [str(HERE.parent / "scripts"), str(HERE / "golden")]

import synthetic  # noqa: E402
from tollwaylib import files, papers  # noqa: E402
from tollwaylib.errors import TollwayError  # noqa: E402
from tollwaylib.experiments import published, quantities  # noqa: E402
from tollwaylib.report import tables  # noqa: E402
from tollwaylib.guest import run as guest_run  # noqa: E402
from tollwaylib.results import aggregate, analysis, metrics  # noqa: E402
from tollwaylib.results import schema  # noqa: E402
from tollwaylib.results import verdicts  # noqa: E402
from tollwaylib.results.fields import run_of  # noqa: E402
from tollwaylib.results.published import _compare  # noqa: E402
from tollwaylib.results.published import compare_published  # noqa: E402
from tollwaylib.results.published import reasons  # noqa: E402
from tollwaylib.theory import pricing  # noqa: E402


@pytest.fixture(scope="module")
def steady_raw():
    return synthetic.steady()


@pytest.fixture(scope="module")
def steady(steady_raw):
    return analysis.analyse(steady_raw)


@pytest.fixture(scope="module")
def dynamics():
    return analysis.analyse(synthetic.dynamics(lag_s=1.52))


@pytest.fixture
def raw(steady_raw):
    return copy.deepcopy(steady_raw)


def bound(metric, op, value, **of):
    return {"name": metric, "metric": metric, "of": of, "op": op,
            "value": value}


def judged(raw, metric, op="<=", value=0.0, **of):
    raw = dict(raw, bounds=[bound(metric, op, value, **of)])
    return analysis.analyse(raw)["bounds"][0]


# --- one run ---------------------------------------------------------------

def test_result_has_the_documented_fields(steady):
    assert list(steady) == [
        "schema", "experiment", "parameters", "seed", "capacity_bps",
        "columns", "x_title", "cases", "published", "bounds", "provenance",
        "digest"]
    assert list(run_of(steady)) == [
        "name", "x", "series", "runs", "metrics", "links", "flows", "classes"]
    assert json.loads(json.dumps(steady, allow_nan=False)) == steady
    schema.validate(steady)


def test_golden_result(steady):
    """The whole object, number by number, against a stored one."""
    golden = files.load_json(HERE / "golden" / "double-bottleneck.json")

    def compare(one, other, where):
        assert type(one) is type(other) or {type(one), type(other)} == {
            int, float}, where
        if isinstance(one, dict):
            assert list(one) == list(other), where
            for key in one:
                compare(one[key], other[key], f"{where}.{key}")
        elif isinstance(one, list):
            assert len(one) == len(other), where
            for index, pair in enumerate(zip(one, other)):
                compare(*pair, f"{where}[{index}]")
        elif isinstance(one, float):
            assert one == pytest.approx(other, rel=1e-9, abs=1e-7), where
        else:
            assert one == other, where

    compare(steady, golden, "result")


def test_rates_are_delivered_segments_per_second(steady):
    for flow in run_of(steady)["flows"]:
        share = synthetic.fair_pps(flow["path"], flow["wtp"])
        assert flow["rate_pps"] == pytest.approx(share, rel=1e-5)
        assert flow["goodput_bps"] == pytest.approx(share * 934 * 8, rel=1e-5)
        assert flow["retransmits"] == 15
        assert flow["rtt_mean_ms"] == pytest.approx(
            synthetic.PATHS[flow["path"]]["rtt_ms"] + 2.5)


def test_warm_up_is_left_out(raw):
    wild = synthetic.flow(1, "I", 100,
                          [(0.01, 5.0, 5000.0), (5.0, 20.0, 200.0)])
    raw["flows"][0] = wild
    flow = run_of(analysis.analyse(raw))["flows"][0]
    # The sample before and after 5 s are 0.1 s apart, a little leaks in.
    assert flow["rate_pps"] == pytest.approx(200, abs=0.1 * 4800 / 15)
    assert flow["retransmits"] == 15


def test_samples_are_interpolated(raw):
    steps = synthetic.flow(1, "I", 100, [(0.0, 20.0, 285.0)], step=0.7)
    raw["flows"][0] = steps
    assert run_of(analysis.analyse(raw))["flows"][0]["rate_pps"] == pytest.approx(
        285, rel=1e-6)


def test_a_late_connection_is_no_hole(raw):
    """A SYN that was lost: until the answer to it there is nothing to see."""
    raw["parameters"]["warmup_s"] = 0.0
    flow = raw["flows"][0]
    late = next(index for index, t in enumerate(flow["samples"]["t_s"])
                if t > 1.3)
    for key, values in flow["samples"].items():
        flow["samples"][key] = values[late:]
    with pytest.raises(TollwayError, match="was not sampled all the way"):
        analysis.analyse(raw)
    flow["final"]["connected_s"] = 1.28
    rate = run_of(analysis.analyse(raw))["flows"][0]["rate_pps"]
    # Of the whole time, the handshake included.
    samples = flow["samples"]
    assert rate == pytest.approx(samples["bytes_acked"][-1] / flow["mss_bytes"]
                                 / (20.0 - flow["start_s"]))


def test_unmeasured_is_null_not_zero(raw):
    del raw["flows"][0]["samples"]["retransmits"]
    raw["flows"][1]["samples"]["srtt_us"] = [0] * len(
        raw["flows"][1]["samples"]["t_s"])
    flows = run_of(analysis.analyse(raw))["flows"]
    assert flows[0]["retransmits"] is None
    assert flows[1]["rtt_mean_ms"] is None


def test_links(steady):
    assert list(run_of(steady)["links"]) == ["core1", "core2"]
    core1, core2 = run_of(steady)["links"].values()
    assert core1["utilization"] == pytest.approx(0.99)
    assert core2["utilization"] == pytest.approx(0.97)
    # 301 samples from 5 to 20 s of 20..29, one more of the first value.
    assert core1["queue_mean_pkts"] == pytest.approx((30 * 245 + 20) / 301)
    assert core1["queue_p99_pkts"] == 29
    assert core1["marks"] == 17820 and core1["drops"] == 2


def test_queue_percentile_and_warm_up(raw):
    queue = raw["queues"]["core1"]
    # 301 samples from 5 to 20 s: 0, 1, ... 300; before that a start-up peak.
    queue["backlog_pkts"] = [5000] * 100 + list(range(301))
    link = run_of(analysis.analyse(raw))["links"]["core1"]
    assert link["queue_mean_pkts"] == pytest.approx(150)
    assert link["queue_p99_pkts"] == pytest.approx(297)


def test_classes_against_theory(steady):
    assert [(group["path"], group["wtp"]) for group in run_of(steady)["classes"]] == [
        (path, wtp) for path in ("I", "II", "III") for wtp in (100, 200, 400)]
    for group in run_of(steady)["classes"]:
        assert group["expected_pps"] == pytest.approx(
            synthetic.fair_pps(group["path"], group["wtp"]), rel=1e-9)
        assert abs(group["error"]) < 1e-5
        assert group["spread"] < 1e-5


def test_error_and_spread():
    def scale(number, path, wtp):
        return {1: 1.1, 2: 1.0, 3: 1.0, 4: 0.94}.get(number, 1.0)

    group = run_of(analysis.analyse(synthetic.steady(scale)))["classes"][0]
    assert group["error"] == pytest.approx(0.01, abs=1e-5)
    assert group["spread"] == pytest.approx(0.16 / 1.01, abs=1e-5)


def test_without_wtp_all_weights_are_one():
    result = analysis.analyse(synthetic.steady(wtps=None, cc="reno",
                                               aqm="pfifo"))
    assert [group["path"] for group in run_of(result)["classes"]] == ["I", "II", "III"]
    assert [group["expected_pps"] for group in run_of(result)["classes"]] == \
        pytest.approx([8000 / 12, 8000 / 12, 4000 / 12])


def test_flows_that_stop_are_measured_while_they_run(raw):
    raw["flows"] = [
        synthetic.flow(1, "I", 100, [(0, 10, 8000.0)]),
        synthetic.flow(2, "I", 100, [(0, 10, 4000.0), (10, 20, 12000.0)])]
    one, two = run_of(analysis.analyse(raw))["flows"]
    assert one["rate_pps"] == pytest.approx(8000, rel=1e-4)
    assert two["rate_pps"] == pytest.approx((5 * 4000 + 10 * 12000) / 15,
                                            rel=1e-4)
    group = run_of(analysis.analyse(raw))["classes"][0]
    # Half the link for each until 10 s, all of it for flow 2 after.
    assert group["expected_pps"] == pytest.approx((6000 + 10000) / 2)


# --- what must not pass ----------------------------------------------------

def break_flow(raw, **change):
    raw["flows"][7].update(change)


def silence(raw):
    samples = raw["flows"][7]["samples"]
    samples["bytes_acked"] = [0] * len(samples["t_s"])


def stall_after_warm_up(raw):
    samples = raw["flows"][7]["samples"]
    samples["bytes_acked"] = [min(4000.0, value)
                              for value in samples["bytes_acked"]]


def cut_samples(raw, first, last):
    samples = raw["flows"][7]["samples"]
    keep = [index for index, time in enumerate(samples["t_s"])
            if not first < time < last]
    for key, values in samples.items():
        samples[key] = [values[index] for index in keep]


def poison(series, value, index=90):
    def change(raw):
        raw["flows"][7]["samples"][series][index] = value
    return change


BROKEN = {
    "silent flow": (silence, "flow 8 sent nothing"),
    "stalled flow": (stall_after_warm_up, "flow 8 sent nothing"),
    "nan": (poison("bytes_acked", math.nan), "flow 8.bytes_acked"),
    "null": (poison("bytes_acked", None), "flow 8.bytes_acked"),
    "text": (poison("srtt_us", "fast"), "flow 8.srtt_us"),
    "infinite rtt": (poison("srtt_us", math.inf), "flow 8.srtt_us"),
    "backwards": (poison("bytes_acked", 1), "runs backwards"),
    "time backwards": (poison("t_s", 1), "in order"),
    "short series": (lambda raw: raw["flows"][7]["samples"]["srtt_us"].pop(),
                     "samples for"),
    "hole": (lambda raw: cut_samples(raw, 8, 11), "not sampled"),
    "cut off": (lambda raw: cut_samples(raw, 15, 99), "not sampled"),
    "not running": (lambda raw: break_flow(raw, start_s=0, stop_s=4),
                    "did not run"),
    "unknown path": (lambda raw: break_flow(raw, path="IV"), "IV"),
    "wtp of zero": (lambda raw: break_flow(raw, wtp=0), "wtp"),
    "some without wtp": (lambda raw: break_flow(raw, wtp=None),
                         "with and without"),
    "same id": (lambda raw: break_flow(raw, id=1), "same id"),
    "no flows": (lambda raw: raw.update(flows=[]), "no flows"),
    "failed calibration": (
        lambda raw: raw["calibration"]["core2"].update(ok=False),
        "calibration of link core2"),
    "no calibration": (lambda raw: raw["calibration"].pop("core1"),
                       "core1 was not calibrated"),
    "no queue": (lambda raw: raw["queues"].pop("core1"), "core1"),
    "no bottleneck": (lambda raw: [link.update(bottleneck=False) for link
                                   in raw["links"].values()], "bottleneck"),
    "too fast a link": (
        lambda raw: raw["queues"]["core1"]["bytes"].__setitem__(-1, 1e9),
        "not shaped"),
    "queue counts down": (
        lambda raw: raw["queues"]["core1"]["stats_at_end"].update(marks=0),
        "marks run backwards"),
    "backlog nan": (
        lambda raw: raw["queues"]["core1"]["backlog_pkts"].__setitem__(
            50, math.nan), "queue core1.backlog_pkts"),
    "warm-up too long": (lambda raw: raw["parameters"].update(warmup_s=20),
                         "nothing is left"),
    "no packet size": (lambda raw: raw["parameters"].pop("packet_bytes"),
                       "packet_bytes"),
    "other schema": (lambda raw: raw.update(schema=4), "schema"),
    "no digest": (lambda raw: raw.update(trace_sha256=""), "digest"),
    "no kernel": (lambda raw: raw["provenance"].pop("kernel"), "kernel"),
    "unknown metric": (
        lambda raw: raw.update(bounds=[bound("beauty", "<=", 1)]),
        "no metric 'beauty'; there are utilization, "),
    "metric of nothing": (
        lambda raw: raw.update(bounds=[bound("utilization", "<=", 1)]),
        "is of link, and may have interval; not of nothing"),
    "metric of a path": (
        lambda raw: raw.update(bounds=[bound("max_spread", "<=", 1, path="I")]),
        "is of nothing; not of path"),
    "unknown op": (
        lambda raw: raw.update(bounds=[bound("total_drops", "<", 1)]),
        "op"),
    "bound without schedule": (
        lambda raw: raw.update(
            bounds=[bound("total_drops_after_2s", "<=", 1)]), "schedule"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_untrustworthy_input_is_refused(raw, name):
    change, words = BROKEN[name]
    change(raw)
    with pytest.raises(TollwayError, match=words):
        analysis.analyse(raw)


def test_analysis_leaves_its_input_alone(raw, steady_raw):
    analysis.analyse(raw)
    assert raw == steady_raw


def test_what_is_read_late_is_no_rate(raw):
    links = run_of(analysis.analyse(raw))["links"]
    for queue in raw["queues"].values():
        queue["stats_at_end"]["bytes"] *= 1.05
    assert run_of(analysis.analyse(raw))["links"] == links


# --- bounds and published values ---------------------------------------------

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
    backlog = run_of(analysis.analyse(raw))["links"]["core1"]["queue_mean_pkts"]
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
    backlog = run_of(analysis.analyse(raw))["links"]["core1"]["queue_mean_pkts"]
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
    return analysis.analyse(synthetic.as_published())


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
        entry = _compare(given, row["numbers"][0], utilization, [])
        assert entry["verdict"] == verdict


def test_baselines_are_those_of_the_papers():
    """What a paper compares its own proposals with, and nothing else."""
    baselines = {tuple(row["pairs"][0]) for name in papers.EXPERIMENTS
              for part in published.parts(name) for row in part["rows"]
              if row.get("baseline")}
    assert baselines == {("reno", "pfifo"), ("reno", "red"), ("reno", "sbrm"),
                      ("sbrm", "vqm"), ("rem", "rem-pc3"), ("rem", "rem4"),
                      ("pp", "fq_rr"), ("cubic", "pfifo"),
                      ("alpha", "alpha")}
    (row,) = [row for part in published.parts("pp-overload")
              for row in part["rows"] if row.get("baseline")]
    assert row["name"] == "none packet-pair"


def test_reasons_are_given_for_what_does_not_hold():
    vqm = analysis.analyse(synthetic.as_published(
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
    result = analysis.analyse(synthetic.as_published(
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
    del run_of(other)["flows"][12:]
    assert compare_published(other) == []
    slow = copy.deepcopy(steady)
    slow["capacity_bps"]["core1"] = 48e6
    assert compare_published(slow) == []
    unknown = dict(steady, parameters={"cc": "cubic", "aqm": "pfifo"})
    assert compare_published(unknown) == []
    assert compare_published(dict(steady, experiment="x")) == []


# --- schedules ---------------------------------------------------------------

def test_intervals_have_their_own_shares(dynamics):
    assert [(step["start_s"], step["stop_s"], step["factor"])
            for step in run_of(dynamics)["intervals"]] == [
        (0, 10, 1), (10, 20, 2), (20, 30, 1)]
    for step, per_class in zip(run_of(dynamics)["intervals"], (1, 2, 1)):
        for group in step["classes"]:
            assert group["expected_pps"] == pytest.approx(synthetic.fair_pps(
                group["path"], group["wtp"], per_class), rel=1e-9)
            assert abs(group["error"]) < 1e-4
            assert group["spread"] < 1e-4


def test_convergence_is_the_first_second_near_the_share(dynamics):
    # Old rates last 1.52 s. They are twice the share at 10 s: the second from
    # t has 1.52 - t of them, at most a tenth from t = 1.42. At 20 s they are
    # half the share: at most a fifth from t = 1.32. Steps are 0.05 s.
    assert [step["max_convergence_s"] for step in run_of(dynamics)["intervals"]] == \
        pytest.approx([0, 1.45, 1.35], abs=0.051)
    schema.validate(dynamics)


def test_no_convergence_is_null_and_fails_its_bound():
    raw = synthetic.dynamics(lag_s=9.9)
    outcome = judged(raw, "max_convergence_s", "<=", 1e9)
    assert outcome["measured"] is None and outcome["verdict"] == "fails"
    steps = run_of(analysis.analyse(raw))["intervals"]
    assert steps[0]["max_convergence_s"] == 0
    assert steps[1]["max_convergence_s"] is None


def test_interval_links_and_bounds(dynamics):
    # The queues drop 3 packets before 15 s and 2 at 15 s.
    assert [step["links"]["core1"]["drops"]
            for step in run_of(dynamics)["intervals"]] == [0, 2, 0]
    for step in run_of(dynamics)["intervals"]:
        assert step["links"]["core1"]["utilization"] == pytest.approx(0.99)
        assert step["links"]["core2"]["utilization_after_2s"] == \
            pytest.approx(0.97)
    raw = synthetic.dynamics()
    assert judged(raw, "total_drops_after_2s")["measured"] == 4
    assert judged(raw, "min_utilization_after_2s")["measured"] == \
        pytest.approx(0.97)
    assert judged(raw, "max_interval_error")["measured"] < 1e-4
    raw["queues"]["core1"]["drops"] = [
        int(t >= 11) for t in raw["queues"]["core1"]["t_s"]]
    raw["queues"]["core2"]["drops"] = [0] * len(
        raw["queues"]["core2"]["t_s"])
    assert judged(raw, "total_drops_after_2s", "<=", 0)["verdict"] == \
        "holds"


def test_an_interval_too_short_to_measure_is_refused():
    raw = synthetic.dynamics()
    raw["schedule"].append({"t_s": 28, "factor": 1})
    with pytest.raises(TollwayError, match="too short"):
        analysis.analyse(raw)


# --- over seeds --------------------------------------------------------------

def seeds(*scales, **more):
    return [analysis.analyse(synthetic.steady(
        lambda number, path, wtp, scale=scale: scale, seed=seed, **more))
        for seed, scale in enumerate(scales, 1)]


def test_aggregate_mean_spread_and_student_interval():
    whole = aggregate.aggregate(seeds(0.98, 0.99, 1.03))
    group = run_of(whole)["classes"][0]
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
    assert run_of(whole)["links"]["core1"]["utilization"]["mean"] == \
        pytest.approx(0.99)
    assert run_of(whole)["links"]["core1"]["utilization"]["ci95"] == \
        pytest.approx(0, abs=1e-9)
    assert len(run_of(whole)["flows"]) == 36
    assert whole["published"][0]["measured"] == pytest.approx(0.99)
    json.dumps(whole, allow_nan=False)


def test_aggregate_of_one_seed_has_no_spread():
    group = run_of(aggregate.aggregate(seeds(1.0)))["classes"][0]
    assert group["rate_pps"]["sd"] is None and group["error_ci95"] is None


def test_aggregate_bounds():
    limits = [bound("max_abs_error_over_seeds", "<=", 0.01),
              bound("max_abs_error", "<=", 0.01),
              bound("min_utilization", ">=", 0.98)]
    some = [*seeds(0.97, bounds=limits), analysis.analyse(synthetic.steady(
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
    some = [analysis.analyse(synthetic.dynamics(lag_s=lag, seed=seed))
            for seed, lag in enumerate((0.52, 1.52))]
    whole = aggregate.aggregate(some)
    assert run_of(whole)["intervals"][1]["max_convergence_s"] == \
        run_of(some[1])["intervals"][1]["max_convergence_s"]
    run_of(some[0])["intervals"][1]["max_convergence_s"] = None
    assert run_of(aggregate.aggregate(some))["intervals"][1]["max_convergence_s"] is None


def test_aggregate_refuses_what_has_no_mean():
    one, two = seeds(1.0, 0.99)
    with pytest.raises(TollwayError, match="no results"):
        aggregate.aggregate([])
    with pytest.raises(TollwayError, match="same seed"):
        aggregate.aggregate([one, one])
    with pytest.raises(TollwayError, match="same trace"):
        aggregate.aggregate([one, dict(two, digest=one["digest"])])
    with pytest.raises(TollwayError, match="different"):
        aggregate.aggregate([one, dict(two, parameters=dict(
            two["parameters"], kappa=0.2))])
    with pytest.raises(TollwayError, match="different"):
        aggregate.aggregate([one, dict(two, experiment="parking-lot")])


# --- schema and files --------------------------------------------------------

@pytest.mark.parametrize("change, words", [
    (lambda r: r.pop("digest"), "no digest"),
    (lambda r: r.update(comment="hello"), "unknown field comment"),
    (lambda r: r.update(schema=1), "schema"),
    (lambda r: r.update(seed="1"), "seed"),
    (lambda r: r.update(digest="abc"), "digest"),
    (lambda r: run_of(r).update(flows=[]), "flows"),
    (lambda r: run_of(r).update(links={}), "links"),
    (lambda r: run_of(r)["links"]["core1"].pop("marks"), "core1 has no marks"),
    (lambda r: run_of(r)["links"]["core1"].update(utilization=1.5), "utilization"),
    (lambda r: run_of(r)["links"]["core1"].update(drops=0.5), "drops"),
    (lambda r: run_of(r)["flows"][3].update(rate_pps=math.nan), r"flows\[3\].rate_pps"),
    (lambda r: run_of(r)["flows"][3].update(rate_pps=True), r"flows\[3\].rate_pps"),
    (lambda r: run_of(r)["flows"][3].update(mss=1), "unknown field mss"),
    (lambda r: run_of(r)["classes"][0].update(error=None), "error"),
    (lambda r: r["published"][0].update(verdict="close"), "verdict"),
    (lambda r: r["provenance"].pop("hz"), "hz"),
    (lambda r: r["parameters"].update(gamma=math.inf), "parameters"),
])
def test_validate_names_the_field(steady, change, words):
    result = copy.deepcopy(steady)
    change(result)
    with pytest.raises(TollwayError, match=words):
        schema.validate(result)


def test_validate_looks_into_intervals(dynamics):
    result = copy.deepcopy(dynamics)
    del run_of(result)["intervals"][1]["classes"][0]["convergence_s"]
    with pytest.raises(TollwayError, match=r"intervals\[1\].*convergence_s"):
        schema.validate(result)


@pytest.mark.parametrize("value", [None, [], "x", {}])
def test_validate_refuses_other_things(value):
    with pytest.raises(TollwayError):
        schema.validate(value)


def test_raw_files(tmp_path, steady_raw):
    with pytest.raises(TollwayError, match="cannot read"):
        schema.load_raw(tmp_path)
    path = tmp_path / "raw.json"
    files.write_json_atomic(path, steady_raw, indent=None)
    found = schema.load_raw(tmp_path)
    assert found == schema.upgraded(steady_raw)
    assert found["schema"] == schema.RAW_SCHEMA == guest_run.RAW_SCHEMA
    # One of now is left as it is.
    assert schema.upgraded(found) is found
    path.write_text(path.read_text()[:1000])
    with pytest.raises(TollwayError, match="not valid JSON"):
        schema.load_raw(tmp_path)
    path.write_text('{"schema": 1, "seed": NaN}')
    with pytest.raises(TollwayError, match="NaN"):
        schema.load_raw(tmp_path)
    path.write_text('{"schema": 7}')
    with pytest.raises(TollwayError, match="schema"):
        schema.load_raw(tmp_path)


def test_old_and_new_runs_give_the_same_result(steady_raw):
    """A run of schema 1, and the same as a list of one case."""
    case = {key: steady_raw[key] for key in ("flows", "queues")}
    new = {key: value for key, value in steady_raw.items() if key not in case}
    new.update(schema=2, mss_bytes=934, metrics=[], cases=[
        {"name": "run", "point": "run", "x": None, "series": None,
         "duration_s": 20.0, "flows": [
            {key: value for key, value in flow.items() if key != "mss_bytes"}
            for flow in case["flows"]], "queues": case["queues"]}])
    assert analysis.analyse(new) == analysis.analyse(steady_raw)


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "result.json"
    files.write_json_atomic(path, {"good": 1})
    for bad in ({"x": math.nan}, {"x": object()}):
        with pytest.raises(TollwayError, match="cannot write"):
            files.write_json_atomic(path, bad)
    assert json.loads(path.read_text()) == {"good": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["result.json"]
    with pytest.raises(TollwayError, match="cannot write"):
        files.write_json_atomic(tmp_path / "none" / "x.json", {})


# --- what only some experiments have -----------------------------------------

def test_jain_and_near_of_an_interval():
    """Of two flows a class, one at half of the rate of the other: 0.9."""
    raw = synthetic.dynamics(lag_s=1.52)
    result = analysis.analyse(raw)
    for step in run_of(result)["intervals"]:
        assert step["min_jain"] == pytest.approx(1, abs=1e-6)
        assert step["max_abs_error"] == max(
            abs(group["error"]) for group in step["classes"])
    # At 10 s all go from 1 to 1/2, lag_s later; a 2 s window is within 5 %
    # when it has at most 0.1 s of the old rate.
    for group in run_of(result)["intervals"][1]["classes"]:
        assert group["near_s"] == pytest.approx(1.52 - 0.1, abs=0.06)
    for flow in raw["flows"][1::2]:
        samples = flow["samples"]
        samples["bytes_acked"] = [value / 2 for value in
                                  samples["bytes_acked"]]
    unequal = run_of(analysis.analyse(raw))["intervals"][1]
    assert unequal["min_jain"] == pytest.approx(1.5 ** 2 / (2 * 1.25),
                                                rel=1e-3)


def test_a_bound_on_a_field_of_an_interval():
    raw = synthetic.dynamics()
    raw["bounds"] = [
        bound("queue_mean_pkts", "<=", limit, link="core1", interval=2)
        for limit in (24.0, 25.0)]
    outcome = [entry["verdict"] for entry in analysis.analyse(raw)["bounds"]]
    assert outcome == ["fails", "holds"]
    raw["bounds"] = [bound("max_abs_error", "<=", 1, interval=8)]
    with pytest.raises(TollwayError, match="no max_abs_error of interval 8"):
        analysis.analyse(raw)


@pytest.fixture
def one_link_each():
    """Paths I and II alone, at their shares of a whole link each."""
    flows = [synthetic.flow(number + 1, path, wtp, [
        (0.0, 20.0, synthetic.CAPACITY_PPS * wtp / 700)])
        for number, (path, wtp) in enumerate(
            (path, wtp) for path in ("I", "II") for wtp in (100, 200, 400))]
    raw = synthetic.raw(flows, steady_state=True)
    raw["parameters"].update(source="direct", estimator="log")
    return raw


def test_steady_state_beside_the_model(one_link_each):
    result = analysis.analyse(one_link_each)
    first = run_of(result)["steady_state"][0]
    load = 700 / synthetic.CAPACITY_PPS
    assert first["expected_queue_pkts"] == pytest.approx(10 + load / 0.015)
    assert first["expected_mark_probability"] == pytest.approx(
        1 - math.exp(-load))
    assert first["mark_probability"] == pytest.approx(0.1, rel=1e-3)
    assert first["queue_pkts"] == pytest.approx(24.5, abs=0.1)
    assert first["max_rate_error"] < 1e-4
    one_link_each["parameters"]["estimator"] = "raw"
    raw_form = run_of(analysis.analyse(one_link_each))["steady_state"][0]
    assert raw_form["expected_mark_probability"] == pytest.approx(load)
    one_link_each["bounds"] = [
        bound("steady_max_rate_error", "<=", 0.02),
        bound("steady_max_queue_error", "<=", 0.05)]
    assert [entry["verdict"] for entry in
            analysis.analyse(one_link_each)["bounds"]] == ["holds", "fails"]


def test_pages_and_recovery(one_link_each):
    del one_link_each["steady_state"]
    for flow in one_link_each["flows"]:
        flow["pages"] = {"start_s": [1.0, 6.0, 8.0, 19.0],
                         "duration_s": [0.1, 0.2, 0.4, None],
                         "bytes": [1, 30000, 60000, 7],
                         "objects": [1, 2, 3, 1]}
        # Nothing is sampled of connections that last for a page.
        flow["samples"] = {}
    one_link_each["network"] = {
        "s1": {"fast_retransmits": 3, "timeouts": 1, "retransmits": 9},
        "s2": {"fast_retransmits": 2, "timeouts": None, "retransmits": 1}}
    result = analysis.analyse(one_link_each)
    every = run_of(result)["pages"][0]
    # The first began in the warm-up, the last did not end.
    assert (every["path"], every["pages"], every["unfinished"]) \
        == ("all", 12, 6)
    # That of 1 s without an end is longer than all others.
    assert (every["median_s"], every["p99_s"]) == (pytest.approx(0.4), None)
    assert run_of(result)["flows"][0]["rate_pps"] == pytest.approx(
        90007 / 934 / 15, rel=1e-6)
    assert run_of(result)["flows"][0]["rtt_mean_ms"] is None
    assert every["mean_s"] == pytest.approx(0.3)
    assert every["throughput_kBps"] == pytest.approx(45000 / 0.3 / 1000)
    assert [group["path"] for group in run_of(result)["pages"]] == ["all", "I", "II"]
    assert run_of(result)["recovery"] == {"fast_retransmits": 5, "timeouts": None,
                                  "retransmits": 10}
    second = copy.deepcopy(one_link_each)
    second.update(seed=2, trace_sha256="ab" * 32)
    whole = aggregate.aggregate([result, analysis.analyse(second)])
    assert run_of(whole)["pages"][0]["mean_s"]["mean"] == pytest.approx(0.3)


def test_a_user_may_be_silent(one_link_each):
    del one_link_each["steady_state"]
    for flow in one_link_each["flows"]:
        flow["pages"] = {"start_s": [6.0], "duration_s": [0.5],
                         "bytes": [1000], "objects": [1]}
        flow["samples"] = {}
    silent, other = one_link_each["flows"][:2]
    other["wtp"] = silent["wtp"]
    silent["pages"] = {"start_s": [], "duration_s": [], "bytes": [],
                       "objects": []}
    result = analysis.analyse(one_link_each)
    assert run_of(result)["flows"][0]["rate_pps"] == 0
    assert run_of(result)["classes"][0]["spread"] == pytest.approx(2)
    silent["pages"] = {"start_s": [1.0, 2.0], "duration_s": [None, 1.0],
                       "bytes": [1, 1], "objects": [1, 1]}
    with pytest.raises(TollwayError, match="never finished"):
        analysis.analyse(one_link_each)


def baselines(*utilizations, op=">="):
    """Two variants, of which the first wants to be better than the second."""
    found = []
    for name, utilization in zip(("mine", "theirs"), utilizations):
        raw = synthetic.steady(utilization=(utilization, 0.9), cc=name)
        raw["parameters"]["variant"] = name
        found.append(raw)
    found[0]["bounds"] = [{"name": "u", "metric": "utilization",
                           "of": {"link": "core1"}, "op": op,
                           "than": "theirs"},
                          bound("min_utilization", ">=", 0.5)]
    return [analysis.analyse(raw) for raw in found]


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


def test_what_never_ended_is_no_match(one_link_each):
    mine, theirs = baselines(0.9, 0.9)
    entry = mine["bounds"][0]
    for value, bound_value, verdict in ((1.0, None, "holds"),
                                        (None, 1.0, "fails"),
                                        (None, None, "fails")):
        run_of(theirs)["links"]["core1"]["utilization"] = bound_value
        entry.update(measured=value, op="<=")
        assert verdicts.compare([mine, theirs])[0]["bounds"][0]["verdict"] \
            == verdict


def test_published_backlogs_have_units():
    raw = synthetic.steady()
    raw["experiment"] = "single-bottleneck"
    result = analysis.analyse(raw)
    run = run_of(result)
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
