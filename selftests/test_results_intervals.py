# SPDX-License-Identifier: GPL-2.0
"""Intervals of a schedule: their shares, convergence and bounds."""

import pytest
from results_bench import bound, judged

import synthetic
from tollwaylib.errors import TollwayError
from tollwaylib.results import schema
from tollwaylib.results.fields import case_of

pytest_plugins = ["results_bench"]


def test_intervals_have_their_own_shares(dynamics):
    assert [(step["start_s"], step["stop_s"], step["factor"])
            for step in case_of(dynamics)["intervals"]] == [
        (0, 10, 1), (10, 20, 2), (20, 30, 1)]
    for step, per_class in zip(case_of(dynamics)["intervals"], (1, 2, 1)):
        for group in step["classes"]:
            assert group["expected_pps"] == pytest.approx(synthetic.fair_pps(
                group["path"], group["wtp"], per_class), rel=1e-9)
            assert abs(group["error"]) < 1e-4
            assert group["spread"] < 1e-4


def test_convergence_is_the_first_second_near_the_share(dynamics):
    # Old rates last 1.52 s. They are twice the share at 10 s: the second from
    # t has 1.52 - t of them, at most a tenth from t = 1.42. At 20 s they are
    # half the share: at most a fifth from t = 1.32. Steps are 0.05 s.
    assert [step["max_convergence_s"] for step in case_of(dynamics)["intervals"]] == \
        pytest.approx([0, 1.45, 1.35], abs=0.051)
    schema.validate(dynamics)


def test_no_convergence_is_null_and_fails_its_bound():
    raw = synthetic.dynamics(lag_s=9.9)
    outcome = judged(raw, "max_convergence_s", "<=", 1e9)
    assert outcome["measured"] is None and outcome["verdict"] == "fails"
    steps = case_of(synthetic.analyse(raw))["intervals"]
    assert steps[0]["max_convergence_s"] == 0
    assert steps[1]["max_convergence_s"] is None


def test_interval_links_and_bounds(dynamics):
    # The queues drop 3 packets before 15 s and 2 at 15 s.
    assert [step["links"]["core1"]["drops"]
            for step in case_of(dynamics)["intervals"]] == [0, 2, 0]
    for step in case_of(dynamics)["intervals"]:
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
        synthetic.analyse(raw)


def test_jain_and_near_of_an_interval():
    """Of two flows a class, one at half of the rate of the other: 0.9."""
    raw = synthetic.dynamics(lag_s=1.52)
    result = synthetic.analyse(raw)
    for step in case_of(result)["intervals"]:
        assert step["min_jain"] == pytest.approx(1, abs=1e-6)
        assert step["max_abs_error"] == max(
            abs(group["error"]) for group in step["classes"])
    # At 10 s all go from 1 to 1/2, lag_s later; a 2 s window is within 5 %
    # when it has at most 0.1 s of the old rate.
    for group in case_of(result)["intervals"][1]["classes"]:
        assert group["near_s"] == pytest.approx(1.52 - 0.1, abs=0.06)
    for flow in raw["flows"][1::2]:
        samples = flow["samples"]
        samples["bytes_acked"] = [value / 2 for value in
                                  samples["bytes_acked"]]
    unequal = case_of(synthetic.analyse(raw))["intervals"][1]
    assert unequal["min_jain"] == pytest.approx(1.5 ** 2 / (2 * 1.25),
                                                rel=1e-3)


def test_a_bound_on_a_field_of_an_interval():
    raw = synthetic.dynamics()
    raw["bounds"] = [
        bound("queue_mean_pkts", "<=", limit, link="core1", interval=2)
        for limit in (24.0, 25.0)]
    outcome = [entry["verdict"] for entry in synthetic.analyse(raw)["bounds"]]
    assert outcome == ["fails", "holds"]
    raw["bounds"] = [bound("max_abs_error", "<=", 1, interval=8)]
    with pytest.raises(TollwayError, match="no max_abs_error of interval 8"):
        synthetic.analyse(raw)
