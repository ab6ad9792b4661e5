# SPDX-License-Identifier: GPL-2.0
"""Results of cases: metrics from raw measurements, repetitions, bounds, and what
was published."""

import copy

import pytest
from cases_bench import _MS, job, raw, repeated

import synthetic
from tollwaylib import papers
from tollwaylib.errors import TollwayError
from tollwaylib.experiments import plan, published
from tollwaylib.report import rendering, tables
from tollwaylib.results import aggregate
from tollwaylib.results import schema
from tollwaylib.theory import measures


def measured(kind, **words):
    made = raw(metrics=[{"key": "m", "kind": kind, "title": "m", "digits": 1,
                         "words": words}])
    return synthetic.analyse(made)["cases"][0]["metrics"]["m"]


@pytest.mark.parametrize("kind, words, value", [
    ("completion_ms", {"role": "one"}, 2000), ("optimal_ms", {"role": "one"},
                                               1500),
    ("slowdown", {"role": "one"}, 1 / 3),
    ("completion_units", {"role": "one"}, 400),
    ("completion_ms", {"role": "two"}, None), ("slowdown", {"role": "two"},
                                               None),
    ("last_s", {}, None), ("finished", {}, 1), ("retransmits", {}, 3),
    ("retransmits", {"role": "two"}, 2), ("goodput_sent", {}, 1 - 3 / 200),
    ("loss_part", {"role": "one"}, 1 / 101), ("drops", {}, 4),
    ("drops", {"from_s": 0.9}, 3), ("drops", {"from_s": 1.0, "to_s": 3.0}, 0),
    ("drops", {"from_part": 0.75}, 1), ("drops", {"from_s": 4.0}, None),
    ("loss_rate", {"role": "one"}, 10), ("losses_each", {}, 2),
    ("retransmission_rate", {"role": "one"}, 2.5),
    # Sent again once, and four were lost.
    ("sent_needlessly", {"role": "one"}, -3),
    ("queue_min", {"link": "R1", "from_s": 2.5}, 11),
    ("queue_max", {"link": "R1", "to_rtt": 3}, 3),
    # 400 kb/s carry 50 bytes in a ms.
    ("delay_mean_ms", {"link": "R1", "to_s": 1.9}, 60),
    ("delay_mean_ms", {"link": "R1", "from_s": 1.9, "to_s": 2.0}, 140),
    ("delay_max_ms", {"link": "R1", "to_s": 1.9}, 60),
    ("delay_max_ms", {"link": "R1", "from_part": 0.5}, 500),
    # Of 21 samples the last is 25000 bytes: a fifth of the way to it.
    ("delay_p99_ms", {"link": "R1", "from_part": 0.5}, 220 + 0.8 * 280),
    ("utilization", {"link": "R1", "to_s": 2.0}, 1.0),
    ("utilization", {"link": "R1", "from_s": 2.0, "to_s": 3.0}, 0.0),
    ("full_at", {"link": "R1", "units": 40, "level": 0.99}, 0.4),
    ("goodput_share", {"role": "one", "to_s": 2.0}, 0.5),
    ("goodput_each", {"role": "one", "to_s": 2.0}, 0.5),
    ("advantage", {"role": "one", "to_s": 2.0},
     2 * 0.5 / (0.5 + 10000 / 460 / 100)),
    ("jain", {"to_s": 2.0}, measures.jain_index([50, 10000 / 460])),
    # The first is gone before the end of this window.
    ("jain", {"to_s": 3.0}, 1.0),
    ("share_error", {"to_s": 2.0}, 1 - 2 / (1 + 2300 / 1000)),
    # The second has all of what is left when the first is gone.
    ("share_error", {"to_s": 3.0}, 0),
    ("class_mean", {"from_s": 2.5}, 5.5), ("class_peak", {"role": "two"}, 14),
    ("class_jain", {"from_s": 2.5}, measures.jain_index([2, 9])),
    ("estimate_error", {"from_s": 2.5}, 7),
    # 25 packets in half a second of a round trip; the link carries 100 packets/s.
    ("sent_most", {"role": "one"}, 0.5), ("sent_most", {"role": "one", "to_s": 0.4}, None),
    ("told_most", {"role": "one"}, 1 / (8 * 460 * 100)), ("outstanding", {}, 3),
    # Windows that the run did not reach.
    ("outstanding", {"from_s": 4.5}, None),
    ("estimate_error", {"from_s": 4.0}, None),
    ("goodput_share", {"from_rtt": 20}, None),
    ("share_error", {"from_s": 5.0}, None),
    ("delay_p99_ms", {"link": "R1", "from_s": 4.0}, None)])
def test_kinds_of_metrics(kind, words, value):
    found = measured(kind, **words)
    assert found == (value if value is None else pytest.approx(value))


def test_what_is_outstanding_was_sent():
    """Flow 1 has 50 packets/s acknowledged, and 20 more outstanding from 1 s on."""
    made = raw(metrics=[{"key": "m", "kind": "sent_most", "title": "m", "digits": 1,
                         "words": {"role": "one"}}])
    made["cases"][0]["flows"][0]["samples"]["unacked"] = [0] * 11 + [20] * 30
    (case,) = synthetic.analyse(made)["cases"]
    assert case["metrics"]["m"] == pytest.approx((25 + 20) / 50)


@pytest.mark.parametrize("each_s, runs, half", [
    # Ten parts of 0.4 s: five of half the link, five of none. Their standard deviation is
    # sqrt(10 * 0.25^2 / 9).
    (0.4, 1, 1.96 * (10 * 0.0625 / 9) ** 0.5 / 10 ** 0.5),
    # Eight are too few, and repetitions have no common parts.
    (0.5, 1, None), (0.4, 2, None)])
def test_a_long_run_has_an_interval(each_s, runs, half):
    made = raw(metrics=[{"key": "m", "kind": "goodput_share", "title": "m", "digits": 3,
                         "words": {"role": "one", "batch_s": each_s}}])
    made["cases"] *= runs
    result = synthetic.analyse(made)
    (case,) = result["cases"]
    assert case["metrics"]["m"] == pytest.approx(0.25)
    (shown,) = tables.cases_tables(result)
    if half is None:
        assert "batches" not in case and "±" not in rendering.render_text(shown)
        return
    assert case["batches"] == {"m": {"n": 10, "half": pytest.approx(half)}}
    assert "0.250 ± 0.163" in rendering.render_text(shown) and "over 10 " in shown.notes[0]
    # The spread over seeds takes its place.
    other = {**copy.deepcopy(result), "seed": 2, "digest": "1" * 64}
    assert "batches" in aggregate.aggregate([result])["cases"][0]
    assert "batches" not in aggregate.aggregate([result, other])["cases"][0]


@pytest.mark.parametrize("jitter_s, starts, found", [
    (0.1, (0.03, 0.07), (0.8, 0.5)), (0.1, (0.1, 0.0), (0.8, 0.5)),
    (0.0, (0.0, 0.0), (0.8, 0.5)),
    # One that was to start later is not there for the whole window.
    (0.1, (0.03, 0.2), (1, 0)), (0.0, (0.0, 0.07), (1, 0)),
    # What starts at the end of the window has no rate.
    (5.0, (4.0, 4.0), (None, None))])
def test_shares_without_a_warm_up(jitter_s, starts, found):
    """Flows start a little after the window, as the seed wants it."""
    kinds = ("jain", "share_error")
    made = raw(metrics=[{"key": kind, "kind": kind, "title": kind, "digits": 1,
                         "words": {}} for kind in kinds])
    made["parameters"]["start_jitter_s"] = jitter_s
    for flow, start_s, rate in zip(made["cases"][0]["flows"], starts, (10, 30)):
        flow["final"]["transfers"] = []
        flow["start_s"] = start_s
        flow["samples"]["bytes_acked"] = [
            460 * rate * max(t - start_s, 0) for t in flow["samples"]["t_s"]]
    metrics = synthetic.analyse(made)["cases"][0]["metrics"]
    for kind, value in zip(kinds, found):
        assert metrics[kind] == (value if value is None
                                 else pytest.approx(value))


def settled(first, second, changes=(), **words):
    """settled_s of two flows over 100 packets/s, each of which has acknowledged
    packets at a rate in each of four seconds. changes: to the flows."""
    made = raw(metrics=[{"key": "m", "kind": "settled_s", "title": "m",
                         "digits": 1, "words": {
                             "link": "R1", "width_s": 0.5, "step_s": 0.1,
                             "part": 0.15, "level": 0.9, **words}}])
    flows = made["cases"][0]["flows"]
    for flow, rates in zip(flows, (first, second)):
        flow["packets"] = None
        flow["final"]["transfers"] = []
        flow["samples"]["bytes_acked"] = [460 * sum(
            rate * min(max(t / 10 - second, 0), 1)
            for second, rate in enumerate(rates)) for t in range(41)]
    for flow, change in zip(flows, changes):
        flow.update(change)
    return synthetic.analyse(made)["cases"][0]["metrics"]["m"]


def test_when_shares_are_settled():
    even = [50] * 4
    assert settled(even, even) == 0
    # From 0.8 s on it is 62, from 0.9 s on 56 packets/s.
    assert settled([80] + even[1:], [20] + even[1:]) == pytest.approx(1.3)
    # 15 % are allowed, and nine tenths of the link.
    assert settled([57] * 4, [43] * 4) == 0
    assert settled([58] * 4, [42] * 4) is None
    assert settled([43, 44, 45.5, 45.5], [43, 44, 45.5, 45.5]) \
        == pytest.approx(2.3)
    assert settled([44] * 4, [44] * 4, level=0.85) == 0
    # Whoever is alone and as slow is far below what there is.
    assert settled(even, even, [{}, {"stop_s": 2.0}]) is None
    # Once is not for good.
    assert settled([50, 20, 50, 20], [50, 80, 50, 80]) is None


def test_shares_are_settled_after_the_last_change():
    late = {"start_s": 1.0}
    assert settled([100, 70, 50, 50], [0, 30, 50, 50], [{}, late]) \
        == pytest.approx(1.3)
    assert settled([50, 50, 70, 100], [50, 50, 0, 0], [{}, {"stop_s": 2.0}]) \
        == pytest.approx(1.3)
    # A window is so long that a packet does not matter: 20 of each of two
    # flows over 100 packets/s.
    assert settled([50] * 4, [50] * 4, width_s=3.8) == 0
    assert settled([50] * 4, [50] * 4, [{}, {"start_s": 3.7}],
                   width_s=0.1) is None


def test_links_are_those_of_the_case():
    made = raw(metrics=[
        {"key": kind, "kind": kind, "title": kind, "digits": 1,
         "words": {"link": "R1", "to_s": 1.9, "role": "one"}} for kind in
        ("utilization", "delay_max_ms", "goodput_share")])
    found = [synthetic.analyse(made)["cases"][0]["metrics"]]
    made["cases"][0]["links"] = {"R1": {"capacity_bps": 800000,
                                        "bottleneck": True}}
    found.append(synthetic.analyse(made)["cases"][0]["metrics"])
    for key in found[0]:
        assert found[1][key] == pytest.approx(found[0][key] / 2), key


def test_kinds_that_do_not_exist_are_refused():
    with pytest.raises(TollwayError, match="no metric 'sorcery'"):
        measured("sorcery")


def test_a_queue_without_classes_has_no_class_metrics():
    made = raw(metrics=[
        {"key": kind, "kind": kind, "title": kind, "digits": 1,
         "words": {"role": "one"}} for kind in
        ("class_mean", "class_peak", "losses_each", "estimate_error")])
    del made["cases"][0]["queues"]["R1"]["classes"]
    made["cases"][0]["queues"]["R1"]["class_peaks"] = {}
    assert set(synthetic.analyse(made)["cases"][0]["metrics"].values()) \
        == {None}


def test_repeats_are_one_case_with_their_mean():
    first, second = synthetic.analyse(repeated())["cases"]
    assert (first["runs"], second["runs"]) == (2, 1)
    assert first["metrics"]["completion_ms"] == pytest.approx(2050)
    assert first["metrics"]["v"] == pytest.approx(5000)
    assert second["metrics"]["v"] is None


def bounded(operator, value, case="a", **more):
    made = repeated()
    made["bounds"] = [{"name": "n", "case": case, "metric": "completion_ms",
                       "op": operator, "value": value, **more}]
    return synthetic.analyse(made)["bounds"][0]


def test_bounds_of_cases():
    assert bounded("<=", 2050.1)["verdict"] == "holds"
    assert bounded("<=", 2049.9)["verdict"] == "fails"
    assert bounded("<=", 0.5, case="b", of_case="a") == {
        "name": "b: n", "metric": "completion_ms", "of": {},
        "unit": None, "op": "<=",
        "measured": pytest.approx(1000), "bound": pytest.approx(1025),
        "verdict": "holds"}
    assert bounded(">=", 0.5, case="b", of_case="a")["verdict"] == "fails"


def test_a_case_that_did_not_end_fails_its_bound():
    made = raw(metrics=[dict(_MS, words={"role": "two"})], bounds=[
        {"name": "n", "case": "a", "metric": "completion_ms", "op": "<=",
         "value": 1e9}])
    assert synthetic.analyse(made)["bounds"][0]["verdict"] == "fails"


def against_table_7(slowdown_s):
    """The verdict on benchmark 1 for a transfer of so many s."""
    made = raw(metrics=[_MS, {"key": "slowdown", "kind": "slowdown",
                              "title": "slowdown [%]", "digits": 1,
                              "words": {"role": "one"}}])
    made["links"]["R1"]["capacity_bps"] = 40000000
    (row,) = published.rows("pp-bench-1", "pp", "fq_rr", {})
    made["parameters"].update(row["setup"])
    made["cases"][0]["point"] = "transfer"
    made["cases"][0]["flows"][0]["final"]["transfers"][0]["end_s"] = slowdown_s
    return [entry for entry in synthetic.analyse(made)["published"]
            if entry["unit"] == "%"]


def test_verdicts_on_published_values():
    assert [entry["verdict"] for end_s in (1.5 * 1.091, 1.5 * 1.08, 1.5 * 1.1)
            for entry in against_table_7(end_s)] \
        == ["agrees", "better", "differs"]
    # What was never done is no agreement.
    assert against_table_7(None)[0]["verdict"] == "differs"
    assert against_table_7(None)[0]["measured"] is None


def test_benchmarks_have_a_variant_that_begins_with_a_pair():
    """PP94 sends two packets at first, and Linux ten."""
    for number in range(1, 10):
        experiment = papers.get(f"pp-bench-{number}")
        (paper,) = [variant for variant in experiment.variants
                    if variant.settings.get("setup") == "paper"]
        ours, theirs = (job(experiment.name, words=words)["parameters"]
                        for words in ([], ["setup=paper"]))
        assert (paper.cc, paper.aqm) == ("pp", "fq_rr")
        assert (ours["initial"], theirs["initial"]) == (0, 2)
        # Asked for the paper's alone, baselines and our own are left out.
        values = plan.parse_settings(experiment, ["setup=paper"],
                                     "pp", "fq_rr")
        assert [variant.name for variant in plan.variants(
            experiment, values)] == ["pp-fq_rr"]


def test_a_failed_flow_is_no_measurement():
    made = raw(metrics=[_MS])
    made["cases"][0]["flows"][1]["final"]["error"] = "connect to x: refused"
    assert synthetic.analyse(made)
    made["metrics"] = [{"key": "r", "kind": "retransmits", "title": "r",
                        "digits": 0, "words": {}}]
    with pytest.raises(TollwayError, match="flow 2 failed"):
        synthetic.analyse(made)


def _queue(made):
    return made["cases"][0]["queues"]["R1"]


def _flow(made):
    return made["cases"][0]["flows"][0]


BROKEN = {
    "no cases": (lambda made: made.update(cases=[]), "no cases"),
    "no flows": (lambda made: made["cases"][0].update(flows=[]), "no flows"),
    "no queue": (lambda made: made["cases"][0].update(queues={}), "queues.R1"),
    "no bottleneck": (lambda made: made["links"]["R1"].pop("bottleneck"),
                      "no bottleneck"),
    "not calibrated": (lambda made: made["calibration"].clear(),
                       "not calibrated"),
    "no packet size": (lambda made: made["parameters"].pop("packet_bytes"),
                       "packet_bytes"),
    "no mss": (lambda made: made.update(mss_bytes=0), "mss_bytes"),
    "unknown path": (lambda made: _flow(made).update(path="9"), "paths.9"),
    "same id": (lambda made: _flow(made).update(id=2), "same id"),
    "no start": (lambda made: _flow(made).update(start_s=None), "start_s"),
    "times out of order": (
        lambda made: _flow(made)["samples"]["t_s"].reverse(), "in order"),
    "not a number": (lambda made: _flow(made)["samples"]["unacked"]
                     .__setitem__(3, float("nan")), "not finite"),
    "short series": (lambda made: _flow(made)["samples"]["srtt_us"].pop(),
                     "40 samples for 41"),
    "bytes backwards": (lambda made: _flow(made)["samples"]["bytes_acked"]
                        .__setitem__(7, 1e9), "flow 1's bytes_acked decreases"),
    "queue backwards": (lambda made: _queue(made)["drops"]
                        .__setitem__(0, 9), "queue R1's drops decreases"),
    "queue infinite": (lambda made: _queue(made)["backlog_pkts"]
                       .__setitem__(0, float("inf")), "not finite"),
    "class infinite": (lambda made: _queue(made)["classes"]["10:1"]["drops"]
                       .__setitem__(0, float("inf")), "class 10:1"),
    "too fast": (lambda made: _queue(made)["bytes"].__setitem__(-1, 300000),
                 "not shaped as described"),
    "a hole": (lambda made: made["cases"][0].update(duration_s=5.1),
               "not sampled all the way to 5.1 s"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_untrustworthy_cases_are_refused(name):
    """All that is asked of a run without a list of cases is asked of each."""
    change, words = BROKEN[name]
    made = raw(metrics=[_MS])
    change(made)
    with pytest.raises(TollwayError, match=words):
        synthetic.analyse(made)


def test_seeds_are_put_together():
    one, two = repeated(), repeated()
    two.update(seed=2, trace_sha256="1" * 64)
    two["cases"][2]["flows"][0]["final"]["transfers"][0]["end_s"] = 1.2
    two["bounds"] = one["bounds"] = [
        {"name": "n", "case": "b", "metric": "completion_ms", "op": "<=",
         "value": 1100}]
    whole = aggregate.aggregate([synthetic.analyse(one), synthetic.analyse(two)])
    assert whole["cases"][1]["metrics"]["completion_ms"]["mean"] \
        == pytest.approx(1100)
    assert whole["bounds"][0]["verdict"] == "fails"
    assert whole["bounds"][0]["measured"] == pytest.approx(1200)
    text = rendering.render_text(tables.cases_tables(whole)[0])
    assert "1100.0 ±" in text


def test_many_cases_are_shown_by_series(monkeypatch):
    """Those that have no place in a series stay in a table of their own."""
    monkeypatch.setattr(tables, "_LONG", 1)
    result = synthetic.analyse(repeated())
    for number, point in enumerate(result["cases"]):
        point.update(series="s", x=number)
    result["cases"][-1].update(series=None, x=None)
    *by_series, rest = tables.cases_tables(result)
    assert [table.heads for table in by_series] == \
        [["series", "0"]] * len(result["columns"])
    assert [row[0] for row in rest.rows] == [result["cases"][-1]["name"]]
    # Two at one place would hide one another.
    for point in result["cases"]:
        point.update(series="s", x=0)
    (together,) = tables.cases_tables(result)
    assert len(together.rows) == len(result["cases"])


def test_a_result_of_cases_is_checked():
    result = synthetic.analyse(repeated())
    schema.validate(result)
    for path, value in ((("cases",), []), (("columns",), None),
                        (("capacity_bps",), 3)):
        broken = copy.deepcopy(result)
        broken[path[0]] = value
        with pytest.raises(TollwayError):
            schema.validate(broken)
    broken = copy.deepcopy(result)
    broken["cases"][0]["metrics"]["completion_ms"] = "fast"
    with pytest.raises(TollwayError):
        schema.validate(broken)
