# SPDX-License-Identifier: GPL-2.0
"""The analysis of one run, against synthetic runs whose numbers are known."""

import copy
import json
import math
import pathlib

import pytest
from results_bench import bound

import synthetic
from tollwaylib import files
from tollwaylib.errors import TollwayError
from tollwaylib.report import tables
from tollwaylib.results import aggregate
from tollwaylib.results import schema
from tollwaylib.results.fields import case_of

pytest_plugins = ["results_bench"]

HERE = pathlib.Path(__file__).parent


def test_result_has_the_documented_fields(steady):
    assert list(steady) == [
        "schema", "experiment", "parameters", "seed", "capacity_bps",
        "columns", "x_title", "cases", "published", "bounds", "provenance",
        "digest"]
    assert list(case_of(steady)) == [
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
    for flow in case_of(steady)["flows"]:
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
    flow = case_of(synthetic.analyse(raw))["flows"][0]
    # The sample before and after 5 s are 0.1 s apart, a little leaks in.
    assert flow["rate_pps"] == pytest.approx(200, abs=0.1 * 4800 / 15)
    assert flow["retransmits"] == 15


def test_samples_are_interpolated(raw):
    steps = synthetic.flow(1, "I", 100, [(0.0, 20.0, 285.0)], step=0.7)
    raw["flows"][0] = steps
    assert case_of(synthetic.analyse(raw))["flows"][0]["rate_pps"] == pytest.approx(
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
        synthetic.analyse(raw)
    flow["final"]["connected_s"] = 1.28
    rate = case_of(synthetic.analyse(raw))["flows"][0]["rate_pps"]
    # Of the whole time, the handshake included.
    samples = flow["samples"]
    assert rate == pytest.approx(samples["bytes_acked"][-1] / flow["mss_bytes"]
                                 / (20.0 - flow["start_s"]))


def test_unmeasured_is_null_not_zero(raw):
    del raw["flows"][0]["samples"]["retransmits"]
    raw["flows"][1]["samples"]["srtt_us"] = [0] * len(
        raw["flows"][1]["samples"]["t_s"])
    flows = case_of(synthetic.analyse(raw))["flows"]
    assert flows[0]["retransmits"] is None
    assert flows[1]["rtt_mean_ms"] is None


def test_links(steady):
    assert list(case_of(steady)["links"]) == ["core1", "core2"]
    core1, core2 = case_of(steady)["links"].values()
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
    link = case_of(synthetic.analyse(raw))["links"]["core1"]
    assert link["queue_mean_pkts"] == pytest.approx(150)
    assert link["queue_p99_pkts"] == pytest.approx(297)


def test_classes_against_theory(steady):
    assert [(group["path"], group["wtp"]) for group in case_of(steady)["classes"]] == [
        (path, wtp) for path in ("I", "II", "III") for wtp in (100, 200, 400)]
    for group in case_of(steady)["classes"]:
        assert group["expected_pps"] == pytest.approx(
            synthetic.fair_pps(group["path"], group["wtp"]), rel=1e-9)
        assert abs(group["error"]) < 1e-5
        assert group["spread"] < 1e-5


def test_error_and_spread():
    def scale(number, path, wtp):
        return {1: 1.1, 2: 1.0, 3: 1.0, 4: 0.94}.get(number, 1.0)

    group = case_of(synthetic.analyse(synthetic.steady(scale)))["classes"][0]
    assert group["error"] == pytest.approx(0.01, abs=1e-5)
    assert group["spread"] == pytest.approx(0.16 / 1.01, abs=1e-5)


def test_without_wtp_all_weights_are_one():
    result = synthetic.analyse(synthetic.steady(wtps=None, cc="reno",
                                               aqm="pfifo"))
    assert [group["path"] for group in case_of(result)["classes"]] == ["I", "II", "III"]
    assert [group["expected_pps"] for group in case_of(result)["classes"]] == \
        pytest.approx([8000 / 12, 8000 / 12, 4000 / 12])


def test_flows_that_stop_are_measured_while_they_run(raw):
    raw["flows"] = [
        synthetic.flow(1, "I", 100, [(0, 10, 8000.0)]),
        synthetic.flow(2, "I", 100, [(0, 10, 4000.0), (10, 20, 12000.0)])]
    one, two = case_of(synthetic.analyse(raw))["flows"]
    assert one["rate_pps"] == pytest.approx(8000, rel=1e-4)
    assert two["rate_pps"] == pytest.approx((5 * 4000 + 10 * 12000) / 15,
                                            rel=1e-4)
    group = case_of(synthetic.analyse(raw))["classes"][0]
    # Half the link for each until 10 s, all of it for flow 2 after.
    assert group["expected_pps"] == pytest.approx((6000 + 10000) / 2)


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
    "backwards": (poison("bytes_acked", 1), "decreases"),
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
        "marks decrease"),
    "backlog nan": (
        lambda raw: raw["queues"]["core1"]["backlog_pkts"].__setitem__(
            50, math.nan), "queue core1.backlog_pkts"),
    "warm-up too long": (lambda raw: raw["parameters"].update(warmup_s=20),
                         "nothing is left"),
    "no packet size": (lambda raw: raw["parameters"].pop("packet_bytes"),
                       "packet_bytes"),
    "other schema": (lambda raw: raw.update(schema=5), "schema"),
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
        synthetic.analyse(raw)


def test_analysis_leaves_its_input_alone(raw, steady_raw):
    synthetic.analyse(raw)
    assert raw == steady_raw


def test_what_is_read_late_is_no_rate(raw):
    links = case_of(synthetic.analyse(raw))["links"]
    for queue in raw["queues"].values():
        queue["stats_at_end"]["bytes"] *= 1.05
    assert case_of(synthetic.analyse(raw))["links"] == links


def test_steady_state_beside_the_model(one_link_each):
    result = synthetic.analyse(one_link_each)
    first = case_of(result)["steady_state"][0]
    load = 700 / synthetic.CAPACITY_PPS
    assert first["expected_queue_pkts"] == pytest.approx(10 + load / 0.015)
    assert first["expected_mark_probability"] == pytest.approx(
        1 - math.exp(-load))
    assert first["mark_probability"] == pytest.approx(0.1, rel=1e-3)
    assert first["queue_pkts"] == pytest.approx(24.5, abs=0.1)
    assert first["max_rate_error"] < 1e-4
    one_link_each["parameters"]["estimator"] = "raw"
    raw_form = case_of(synthetic.analyse(one_link_each))["steady_state"][0]
    assert raw_form["expected_mark_probability"] == pytest.approx(load)
    one_link_each["bounds"] = [
        bound("steady_max_rate_error", "<=", 0.02),
        bound("steady_max_queue_error", "<=", 0.05),
        bound("steady_max_mark_error", "<=", 0.7),
        bound("steady_max_mark_error", "<=", 0.75)]
    judged = synthetic.analyse(one_link_each)["bounds"]
    assert [entry["verdict"] for entry in judged] \
        == ["holds", "fails", "fails", "holds"]
    assert judged[2]["measured"] == pytest.approx(0.1 / load - 1, rel=1e-2)


def test_the_steady_state_says_which_formula_it_is_beside(one_link_each):
    """CP05 Table 5.5.1 is of the bit itself; gamma 0 is 99 % at the limit."""
    def shown(**parameters):
        one_link_each["parameters"].update(parameters)
        result = synthetic.analyse(one_link_each)
        return tables.steady_state_table(result, case_of(result)).title, \
            case_of(result)["steady_state"][0]["expected_queue_pkts"]
    load = 700 / synthetic.CAPACITY_PPS
    assert "not that of CP05 Table 5.5.1" in shown(estimator="log")[0]
    assert "not that of CP05 Table 5.5.1" in shown(estimator="history")[0]
    assert shown(source="relative", estimator="raw")[1] \
        == pytest.approx(10 + load / 0.015)
    title, backlog = shown(source="direct", gamma=0.0, limit=300)
    assert title.startswith("Steady state and CP05 Table 5.5.1:")
    assert backlog == pytest.approx(
        10 - math.log(1 - load) * 290 / math.log(100))


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
    result = synthetic.analyse(one_link_each)
    every = case_of(result)["pages"][0]
    # The first began in the warm-up, the last did not end.
    assert (every["path"], every["pages"], every["unfinished"]) \
        == ("all", 12, 6)
    # That of 1 s without an end is longer than all others.
    assert (every["median_s"], every["p99_s"]) == (pytest.approx(0.4), None)
    assert case_of(result)["flows"][0]["rate_pps"] == pytest.approx(
        90007 / 934 / 15, rel=1e-6)
    assert case_of(result)["flows"][0]["rtt_mean_ms"] is None
    assert every["mean_s"] == pytest.approx(0.3)
    assert every["throughput_kBps"] == pytest.approx(45000 / 0.3 / 1000)
    assert [group["path"] for group in case_of(result)["pages"]] == ["all", "I", "II"]
    assert case_of(result)["recovery"] == {"fast_retransmits": 5, "timeouts": None,
                                  "retransmits": 10}
    second = copy.deepcopy(one_link_each)
    second.update(seed=2, trace_sha256="ab" * 32)
    whole = aggregate.aggregate([result, synthetic.analyse(second)])
    assert case_of(whole)["pages"][0]["mean_s"]["mean"] == pytest.approx(0.3)


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
    result = synthetic.analyse(one_link_each)
    assert case_of(result)["flows"][0]["rate_pps"] == 0
    assert case_of(result)["classes"][0]["spread"] == pytest.approx(2)
    silent["pages"] = {"start_s": [1.0, 2.0], "duration_s": [None, 1.0],
                       "bytes": [1, 1], "objects": [1, 1]}
    with pytest.raises(TollwayError, match="never finished"):
        synthetic.analyse(one_link_each)
