# SPDX-License-Identifier: GPL-2.0
"""Experiments of cases: what they describe, against PP94 and MK94."""

import json
import pathlib

import pytest
from cases_bench import job

from tollwaylib import files, papers
from tollwaylib.errors import TollwayError
from tollwaylib.experiments import network_parts
from tollwaylib.experiments.parameters import CHOICES
from tollwaylib.experiments import published
from tollwaylib.experiments import workload
from tollwaylib.guest import topologies
from tollwaylib.papers import mk94
from tollwaylib.report import charts
from tollwaylib.results import metrics
from tollwaylib.results.fields import case_of
from tollwaylib.theory import fluid

HERE = pathlib.Path(__file__).parent
NAMES = [name for name, experiment in papers.EXPERIMENTS.items()
         if experiment.cases]
# Parameters by which experiments select their bounds.
SELECTING = ("scale", "setup", "model")


def optima_ms(made, role):
    return [round(1000 * flow["optimal_s"], 1) for case in made["cases"]
            for flow in case["flows"] if flow["role"] == role]


def test_max_min_fills_what_others_leave():
    rates = fluid.max_min_rates({"a": 9.0, "b": 100.0}, [
        (1, ["a"], None), (2, ["a"], 1.0), (3, ["a", "b"], None),
        (4, ["b"], None)])
    assert rates == {1: 4.0, 2: 1.0, 3: 4.0, 4: pytest.approx(96.0)}


def test_fluid_transfers_end_when_their_data_has_passed():
    ends = fluid.fluid_completions({"a": 10.0}, [
        (1, 0.0, 100, ["a"], None), (2, 5.0, 20, ["a"], None),
        ("udp", 100.0, None, ["a"], 1.0)])
    # Alone until 5, halves until the second is done, alone again.
    assert ends == {2: pytest.approx(9.0), 1: pytest.approx(12.0)}


def test_a_transfer_that_gets_nothing_never_ends():
    with pytest.raises(TollwayError, match="never ends"):
        fluid.fluid_completions({"a": 10.0}, [
            (1, 0.0, 5, ["a"], 0.0)])


def test_loads_become_silences():
    # MK94 (6), for a load of one source of ten.
    off_s = fluid.off_for_load(0.05, 0.1, 0.05)
    assert 0.1 / (0.1 + 0.05 + off_s) == pytest.approx(0.05)
    with pytest.raises(TollwayError, match="cannot offer"):
        fluid.off_for_load(0.9, 0.1, 0.05)


@pytest.mark.parametrize("number, role, optima", [
    (1, "primary", [1444]), (2, "primary", [1444]), (4, "short", [1844]),
    (4, "long", [1882]), (5, "primary", [644]), (6, "forth", [1556]),
    (6, "back", [1556]), (8, "primary", [1444])])
def test_optima_are_those_of_the_tables(number, role, optima):
    assert optima_ms(job(f"pp-bench-{number}"), role) == optima


def test_optima_of_short_files_are_those_of_table_9():
    made = job("pp-bench-3")
    assert {case["x"]: optima_ms({"cases": [case]}, "primary")[0]
            for case in made["cases"] if case["x"] in (4, 20, 200, 2000)} \
        == {4: 44.4, 20: 46.0, 200: 64.0, 2000: 244.0}


def test_optima_under_poisson_traffic_are_those_of_table_13():
    made = job("pp-bench-7", words=["repeats=1"])
    assert optima_ms(made, "primary") == [544.0, 710.7, 1044.0, 2044.0, 4044.0]
    assert len(job("pp-bench-7")["cases"]) == 25


def test_the_torture_test_leaves_room_for_table_15():
    made = job("pp-bench-9")
    assert optima_ms(made, "near") == [pytest.approx(1163.8, abs=0.1)]
    topo = topologies.Built(aqm="fq_rr", **made["topology"])
    assert [path["rtt_ms"] for path in topo.paths.values()][:2] == [0.2, 20.2]


@pytest.mark.parametrize("row, mbit, rtt_ms", [
    ("lan", 400, 1), ("man", 40, 10), ("wan", 6.667, 60)])
def test_rows_of_table_3_are_100_packets(row, mbit, rtt_ms):
    made = job("pp-burst", words=[f"row={row}"])
    (link,) = network_parts.of(made["topology"], "link")
    paths = network_parts.of(made["topology"], "path")
    assert link["rate_bps"] == pytest.approx(mbit * 1e6, rel=1e-3)
    assert link["rate_bps"] * paths[0]["rtt_ms"] / 1000 / 8 / 500 \
        == pytest.approx(100, rel=1e-3)
    assert made["topology"]["edge_bps"] == pytest.approx(10 * link["rate_bps"],
                                                         rel=1e-6)
    # N - 1 sources start at 1000 time units.
    case = case_of(made, "N = 10, limited")
    assert len(case["flows"]) == 10
    for flow in case["flows"][1:]:
        assert flow["start_s"] == pytest.approx(10 * rtt_ms / 1000)
    assert "limit 100 " in case["aqm"]
    assert "limit 10000 " in case_of(made, "N = 10, unlimited")["aqm"]


def test_182_runs_of_mk94():
    made = job("pp-overload")
    assert len(made["cases"]) == 182
    assert len({case["name"] for case in made["cases"]}) == 182
    for case in made["cases"]:
        mixed = [flow["cc"] for flow in case["flows"]]
        assert (mixed.count("pp"), mixed.count("ppx")) in (
            (10, 0), (9, 1), (1, 9), (0, 10))
        on, off = (float(word.split("exp:")[1]) for word in
                   case["flows"][0]["words"].split()
                   if word.startswith(("on=", "off=")))
        assert 10 * on / (on + off + 0.05) == pytest.approx(case["x"],
                                                            rel=1e-4)
        assert "source=closed" in case["flows"][0]["words"]
    assert {case["values"]["buffer"] for case in made["cases"]} \
        == {101, 51, 25, 20}
    assert {case["values"]["overflow"] for case in made["cases"]} \
        == {"drop-last", "drop-longest"}


def test_mk94_has_its_propagation_and_its_round_trip():
    """Its (3): T_RT is the propagation and (P + A)(1/S_h + 1/S_a + 1/S_b)."""
    parts = job("pp-overload")["topology"]["parts"]
    assert {words["rtt_ms"] for kind, words in parts if kind == "path"} == {49.412}
    one_way = {kind: words["delay_ms"] for kind, words in parts if kind in ("link", "endpoint")}
    assert one_way["link"] + 2 * one_way["endpoint"] == pytest.approx(24.706)
    sent_ms = 1e3 * (4000 + 320) * (1 / 2e9 + 1 / 80.952e6 + 1 / 8.0952e6)
    assert 49.412 + sent_ms == pytest.approx(mk94.OVERLOAD_RTT_MS, abs=1e-3)


def test_what_leaves_is_one_of_three():
    for case in job("pp-leave")["cases"]:
        ends = {(flow["role"], round(flow["stop_s"] / case["rtt_s"]))
                for flow in case["flows"]}
        assert len(case["flows"]) == 3 and ends == {("stays", 60), ("leaves", 30)}
    assert [case["values"]["setpoint"] for case in job("pp-leave")["cases"]] == [2, 20]


def test_sources_of_a_public_network_send_2000_packets():
    made = job("pp-public")
    assert len(made["cases"]) == 14
    for case in made["cases"]:
        assert len(case["flows"]) == 10
        for flow in case["flows"]:
            assert f"bytes={2000 * 460}" in flow["words"]
            assert ("source=closed" in flow["words"]) \
                == case["name"].startswith("closed")


def test_what_would_come_too_late_stays_away():
    flows = job("pp-arrivals", duration_s=0.34)["cases"][0]["flows"]
    assert [flow["path"] for flow in flows] == ["1", "2", "3"]
    assert all(flow["start_s"] < flow["stop_s"] == 0.34 for flow in flows)


def test_some_cases_can_be_chosen():
    made = job("pp-overload", words=["only=1+9 drop-last B=0.5"])
    assert [case["x"] for case in made["cases"]] \
        == [0.5, 0.75, 0.9, 1.0, 1.5, 2.0, 5.0]
    with pytest.raises(TollwayError, match="no such case"):
        job("pp-overload", words=["only=x"])


def test_seeds_change_what_is_random():
    for name in ("pp-public", "pp-bench-7", "pp-overload"):
        one, two = (job(name, seed=seed)["cases"][0]["flows"]
                    for seed in (1, 2))
        assert one[-1]["words"] != two[-1]["words"]


@pytest.mark.parametrize("name", NAMES)
def test_every_metric_has_a_kind(name):
    made = job(name)
    keys = {spec["key"] for spec in made["metrics"]}
    assert len(keys) == len(made["metrics"])
    assert {spec["kind"] for spec in made["metrics"]} <= set(metrics.KINDS)
    there = {case["point"] for case in made["cases"]}
    for bound in made["bounds"]:
        assert bound["case"] in there and bound["metric"] in keys
        assert bound.get("of_case", bound["case"]) in there
    for kind, what in made["pictures"]:
        wanted = [panel["key"] for panel in what] if kind == "curves" else [what]
        assert set(wanted) <= (keys if kind in charts.OF_METRICS else
                               {case["name"] for case in made["cases"]})
    json.dumps(made)


def test_bounds_and_published_values_are_for_packet_pair_alone():
    assert job("pp-base")["bounds"]
    assert not job("pp-base", "cubic", "fq_codel")["bounds"]
    assert job("pp-base", "cubic", "fq_codel")["aqm"] \
        == "fq_codel limit 100"
    for key in ("setpoint", "law", "estimator"):
        assert f"net.ipv4.tcp_pp.{key}" in job("pp-base")["sysctls"]
        assert f"net.ipv4.tcp_pp.{key}" \
            not in job("pp-base", "cubic")["sysctls"]
    assert case_of(job("pp-base"), "setpoint 20")["sysctls"] \
        == {"net.ipv4.tcp_pp.setpoint": 20}


@pytest.mark.parametrize("paper", ["pp94", "mk94", "aacc"])
def test_published_values_name_what_is_measured(paper):
    data = files.load_json(HERE.parent / "scripts/tollwaylib/papers" /
                           f"{paper}.json")["experiments"]
    for name, parts in data.items():
        made = job(name)
        keys = {spec["key"] for spec in made["metrics"]}
        there = {case["point"] for case in made["cases"]}
        topo = topologies.Built(aqm="fq_rr", **made["topology"])
        for part in parts:
            for link, rate in part["setup"]["capacity_bps"].items():
                assert topo.links_described[link]["capacity_bps"] == rate
            for row in part["rows"]:
                for number in row["numbers"]:
                    assert number["metric"] in keys
                    assert number["case"] in there


@pytest.mark.parametrize("name", papers.EXPERIMENTS)
def test_titles_of_metrics_have_no_unit(name):
    """Tables and figures append the unit: "mean queue [pkts]"."""
    assert not [metric["title"] for metric in papers.EXPERIMENTS[name].metrics
                if "[" in metric["title"]]


def names_of_verdicts(experiment):
    """The names of all bounds and published values of an experiment, as results have
    them, with any value of a parameter that selects bounds."""
    usual = {name: entry[0] for name, entry in experiment.parameters().items()}
    values = [usual] + [{**usual, name: word} for name, words in CHOICES.items()
                        if name in SELECTING and name in usual for word in words]
    bounds = [bound for _, group in experiment.bounds for setting in values
              for bound in (group(setting) if callable(group) else group)]
    bounds += [bound for variant in experiment.variants for bound in variant.bounds]
    for bound in bounds:
        yield bound["name"]
        yield f"{bound.get('case')}: {bound['name']}"
    for part in published.parts(experiment.name):
        for row in part["rows"]:
            yield from (f"{row['name']}: {number['name']}" for number in row["numbers"])


@pytest.mark.parametrize("reason", published.reasons(), ids=lambda reason:
                         f"{reason['experiment']}, {reason['about']}")
def test_reasons_are_about_verdicts_that_exist(reason):
    """Otherwise the report would never show them."""
    assert any(reason["about"] in name for name in
               names_of_verdicts(papers.EXPERIMENTS[reason["experiment"]]))


def test_bounds_of_issue_4_are_in_the_data():
    data = files.load_json(HERE.parent / "scripts/tollwaylib/papers"
                           / "pp94.json")["experiments"]

    def values(number):
        return [entry["value"] for part in data[f"pp-bench-{number}"]
                for row in part["rows"] for entry in row["numbers"]]
    assert [values(number)[0] for number in (1, 2, 5, 6, 8)] \
        == [0.091, 0.1073, 0.21, 0.078, 0.1676]
    assert values(3)[:4] == [0.89, 1.0, 1.28, 0.35]


def numbers_of(experiment):
    return {number["name"]: number for part in published.parts(experiment)
            for row in part["rows"] for number in row["numbers"]}


@pytest.mark.parametrize("number", range(1, 9))
def test_times_are_those_of_the_slowdowns(number):
    """Tables 7 to 14 print both: each time over the scenario's optimum is the
    slowdown as printed, so that neither is a misprint or misread."""
    made = job(f"pp-bench-{number}")
    found = numbers_of(f"pp-bench-{number}")
    times = [one for one in found.values()
             if one["metric"].startswith("completion_ms")]
    assert times
    for one in times:
        case = next(case for case in made["cases"]
                    if case["point"] == one["case"])
        role = one["metric"].partition(", ")[2] or "primary"
        best = next(flow["optimal_s"] for flow in case["flows"]
                    if flow["role"] == role)
        # The optimum of PP94 is printed without what acknowledgements take.
        slowdown = one["value"] / round(1000 * best, 1) - 1
        printed = next(other for other in found.values()
                       if other["case"] == one["case"] and other["metric"] ==
                       one["metric"].replace("completion_ms", "slowdown"))
        assert slowdown == pytest.approx(printed["value"],
                                         abs=2 * printed["tolerance"])


def test_retransmissions_are_those_of_the_goodputs():
    """Table 6: 1 - retransmissions/20000, whether rounded or cut off."""
    found = numbers_of("pp-public")
    counts = {name: one for name, one in found.items()
              if one["metric"] == "retransmits"}
    assert len(counts) == 14
    for name, one in counts.items():
        goodput = found[name.replace("retransmissions", "goodput")]["value"]
        exact = 1 - one["value"] / 20000
        assert 0 <= exact - goodput < 0.01 or abs(exact - goodput) <= 0.005


def test_variances_of_table_13():
    found = numbers_of("pp-bench-7")
    assert [one["value"] for one in found.values()
            if one["metric"] == "variance"] == [8.5, 7.9, 19.5, 26.8, 134]
    assert workload.BENCH_RTT_MS == 44 and \
        papers.get("pp-bench-7").defaults["repeats"] > 1


def test_bounds_of_laws_are_those_of_the_laws():
    """A sawtooth of four setpoints, and the retransmissions of Table 4."""
    bounds = {bound["name"]: bound for bound in job("pp-setpoint")["bounds"]}
    least, most = (bounds[f"mean queue of a source, at {word}"]["value"]
                   for word in ("least", "most"))
    assert (least, most) == (0.75 * 25, 25)
    for count in range(2, 11):
        assert any(bound["metric"] == "needless" and bound["value"] == 0 and
                   bound["case"] == f"N = {count}, limited"
                   for bound in job("pp-burst")["bounds"])
    # That all sources come to their end says nothing of when.
    for bound in job("pp-public")["bounds"]:
        assert bound["metric"] in ("goodput", "last_s")
        # 20000 packets at the rate of the link, as load 1 asks for.
        if bound["case"].endswith(" 5") and bound["metric"] == "last_s":
            assert bound["value"] == pytest.approx(2.5 * 200 * 0.06)


def test_conclusions_of_mk94_are_bounds():
    made = job("pp-overload")["bounds"]
    text = " ".join(bound["name"] for bound in made)
    assert all(f"({number})" in text for number in (1, 2, 3, 5))

    def about(case, metric):
        return {(bound["op"], bound["value"], bound.get("of_case"))
                for bound in made
                if (bound["case"], bound["metric"]) == (case, metric)}
    # 4(d): driven out. 5: more with a quarter of the buffer than with all.
    assert ("<=", 0.25, None) in about("9+1 drop-longest B=1 5",
                                       "other_share")
    assert about("1+9 drop-longest B=0.25 5", "advantage") >= {
        (">=", 1.3, None), (">=", 1.0, "1+9 drop-longest B=1 5")}
    assert about("10+0 drop-longest B=0.5 5", "goodput") >= {
        (">=", 0.8, None), ("<=", 1.0, "10+0 drop-last B=0.5 5"),
        ("<=", 1.0, "10+0 drop-longest B=1 5")}


@pytest.mark.parametrize("recovery", ["pp94", "linux"])
def test_all_sources_of_mk94_repair_losses_in_one_way(recovery):
    made = job("pp-overload", words=[f"recovery={recovery}"])
    for case in made["cases"]:
        assert {flow["cc"] for flow in case["flows"]} <= {"pp", "ppx"}
        (same,) = {tuple(flow["sysctls"].items()) for flow in case["flows"]}
        assert bool(same) == (recovery == "pp94")
