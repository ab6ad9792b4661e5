# SPDX-License-Identifier: GPL-2.0
"""Experiments of cases: descriptions against PP94 and MK94, metrics, bounds."""

import copy
import json
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "scripts"))

from tollwaylib import files, papers  # noqa: E402
from tollwaylib.errors import TollwayError  # noqa: E402
from tollwaylib.experiments import jobs, plan, published  # noqa: E402
from tollwaylib.experiments import workload  # noqa: E402
from tollwaylib.guest import topologies  # noqa: E402
from tollwaylib.papers.any_rate import JOIN, LEAVE, VARIANTS  # noqa: E402
from tollwaylib.report import charts, rendering, tables  # noqa: E402
from tollwaylib.report.page import write_report  # noqa: E402
from tollwaylib.report.plotting import Look  # noqa: E402
from tollwaylib.results import aggregate, analysis, metrics  # noqa: E402
from tollwaylib.results import schema  # noqa: E402
from tollwaylib.theory import fluid, measures  # noqa: E402

NAMES = [name for name, experiment in papers.EXPERIMENTS.items()
         if experiment.cases]
BENCHES = [f"pp-bench-{number}" for number in range(1, 10)]


def job(name, cc="pp", aqm="fq_rr", words=(), duration_s=None, seed=1):
    experiment = papers.get(name)
    values = plan.parse_settings(experiment, words, cc, aqm)
    return jobs.job(experiment, cc, aqm, values,
                    duration_s or experiment.duration_s, seed)


def case_of(made, name):
    return next(case for case in made["cases"] if case["name"] == name)


def optima_ms(made, role):
    return [round(1000 * flow["optimal_s"], 1) for case in made["cases"]
            for flow in case["flows"] if flow["role"] == role]


# --- theory ------------------------------------------------------------------

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


# --- scenarios against the papers --------------------------------------------

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
    topo = topologies.topology("Confluence")(
        aqm="fq_rr", **made["topology"][1])
    assert [path["rtt_ms"] for path in topo.paths.values()][:2] == [0.2, 20.2]


@pytest.mark.parametrize("row, mbit, rtt_ms", [
    ("lan", 400, 1), ("man", 40, 10), ("wan", 6.667, 60)])
def test_rows_of_table_3_are_100_packets(row, mbit, rtt_ms):
    made = job("pp-burst", words=[f"row={row}"])
    shape = made["topology"][1]
    assert shape["rate_bps"] == pytest.approx(mbit * 1e6, rel=1e-3)
    assert shape["rate_bps"] * shape["rtts_ms"][0] / 1000 / 8 / 500 \
        == pytest.approx(100, rel=1e-3)
    assert shape["edge_bps"] == pytest.approx(10 * shape["rate_bps"], rel=1e-6)
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
        topo = topologies.topology(made["topology"][0])(
            aqm="fq_rr", **made["topology"][1])
        for part in parts:
            for link, rate in part["setup"]["capacity_bps"].items():
                assert topo.links_described[link]["capacity_bps"] == rate
            for row in part["rows"]:
                for number in row["numbers"]:
                    assert number["metric"] in keys
                    assert number["case"] in there


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


# --- any rate ----------------------------------------------------------------

def any_rate(cc="sbrm", aqm="delay", **keywords):
    return job("any-rate", cc, aqm, **keywords)


def link_of(made, case):
    """(bit/s, ms of the round trip) of the link in a case."""
    keywords = case["network"] or made["topology"][1]
    built = topologies.topology("OneLink")(aqm="sbrm", **keywords)
    assert built.paths["1"]["rtt_ms"] \
        == 2 * built.links_described["R1"]["delay_ms"]
    return built.links_described["R1"]["capacity_bps"], \
        built.paths["1"]["rtt_ms"]


def test_the_grid_of_issue_14():
    made = any_rate()
    cells = {(*link_of(made, case), len(case["flows"])) for case in made["cases"]
             if " joins " not in case["name"] and "leave" not in case["name"]}
    assert cells == {
        *((rate, 20, flows) for rate in (10**6, 10**7, 10**8, 10**9)
          for flows in (1, 4)),
        *((10**8, rtt_ms, flows) for rtt_ms in (5, 100, 200)
          for flows in (1, 4)), (10**8, 20, 36)}
    for case in made["cases"]:
        rate, rtt_ms = link_of(made, case)
        assert case["name"].startswith(f"{rate / 1e6:g} Mb/s, {rtt_ms:g} ms, ")
        assert case["duration_s"] == 30
        # Two round trips, or a thousand packets.
        room = max(1000, rate * 2 * rtt_ms / 8e3 / 1514)
        assert case["aqm"] == (f"sbrm limit {round(room)} mark delay "
                               "target 3ms coupling 0.5")
        assert (case["x"] is None) == (
            rtt_ms != 20 or len(case["flows"]) not in (1, 4))
    # What is calibrated first is as it is in most cases.
    assert sum(case["network"] is None for case in made["cases"]) == 5


def test_hosts_of_any_rate_are_as_they_are():
    made = any_rate()
    assert made["sysctls"]["net.ipv4.tcp_timestamps"] == 1
    assert made["parameters"]["initcwnd"] == 10
    built = topologies.topology("OneLink")(aqm="sbrm", **made["topology"][1])
    assert built.mtu == 1500 and not built.pairs and not built.edge_bps
    for node, end in built.ends().values():
        if node in ("s1", "d1"):
            assert end["gso_max_segs"] is None and not end.get("segments")
            assert not end.get("rate_bps") and not end.get("delay_ms")
    for case in made["cases"]:
        assert not any("early" in flow["words"] for flow in case["flows"])


def test_nothing_is_set_but_the_source_and_its_weight():
    """All else is the default of the module, see sbrm_net.c."""
    base = "net.ipv4.tcp_sbrm."
    found = {key[len(base):]: value for key, value in
             any_rate()["sysctls"].items() if key.startswith(base)}
    assert found == {
        "source": "relative", "wtp": " ".join(["25"] * 16), "kappa": "0.100000",
        "kappa_young": "0.000000", "young_ms": 4000,
        "history_gain": "0.015625", "estimator": "log", "loss_cut": 2}
    assert any_rate()["parameters"]["wtp"] == [25]


def test_buffers_hold_what_is_in_flight():
    made = any_rate()
    for case in made["cases"]:
        rate, rtt_ms = link_of(made, case)
        stay = sum(flow["stop_s"] == case["duration_s"]
                   for flow in case["flows"])
        flight = rate * (rtt_ms + 3) / 8e3 / stay
        least, most = (
            [int(word) for word in case["sysctls"][f"net.ipv4.tcp_{way}"]
             .split()][2] for way in ("wmem", "rmem"))
        # Half of it is for what the kernel needs beside the data.
        assert least > 2 * flight and most > 2 * (flight + (256 << 10))
        # Nor is there much more: TCP has 36 MB in the lab.
        assert least <= 24 * (rtt_ms + 10) / (rtt_ms + 3) * flight + 800000


def test_changes_of_any_rate():
    made = any_rate()
    join, leave = (case_of(made, name)["flows"] for name in (
        JOIN, LEAVE))
    assert [flow["start_s"] for flow in join] == [0] * 9 + [8]
    assert all(flow["stop_s"] == 30 for flow in join)
    assert [flow["stop_s"] for flow in leave] == [8] * 5 + [30] * 5
    assert {flow["start_s"] for flow in leave} == {0}
    assert len({flow["name"] for flow in join}) == 10


def test_bounds_of_any_rate_are_those_of_the_issue():
    made = any_rate()
    found = {}
    for bound in made["bounds"]:
        found.setdefault(bound["case"], {})[bound["metric"]] = (
            bound["op"], pytest.approx(bound["value"]))
    assert set(found) == {case["name"] for case in made["cases"]}
    usual = {"utilization": (">=", 0.98), "drops": ("<=", 0)}
    # Two packets of 1514 bytes take 24.224 ms there.
    assert found["1 Mb/s, 20 ms, 4 flows"] == {
        **usual, "delay_mean_ms": ("<=", 2 * 24.224 + 1),
        "delay_p99_ms": ("<=", 3 * 24.224), "share_error": ("<=", 0.05)}
    assert found["100 Mb/s, 200 ms, 1 flow"] == {
        **usual, "delay_mean_ms": ("<=", 4 + 0.24224),
        "delay_p99_ms": ("<=", 9), "start_ms": ("<=", 200)}
    assert found["100 Mb/s, 20 ms, 36 flows"]["start_ms"] == ("<=", 20)
    for name in (JOIN, LEAVE):
        assert found[name] == {"settled_s": ("<=", 1.0)}
    # With another target, too.
    assert max(bound["value"] for bound in any_rate(
        words=["delay_ms=30"])["bounds"] if bound["metric"] == "delay_p99_ms") \
        == 90


@pytest.mark.parametrize("variant", VARIANTS)
def test_baselines_at_any_rate(variant):
    made = any_rate(variant.cc, variant.aqm)
    assert bool(made["bounds"]) == (variant.name == "sbrm-delay")
    # Those that echo marks are the receivers, too.
    assert made["sink_cc"] == (variant.cc if variant.cc in ("sbrm", "dctcp")
                               else None)
    assert [case["network"] for case in made["cases"]] \
        == [case["network"] for case in any_rate()["cases"]]
    words = case_of(made, "1000 Mb/s, 20 ms, 1 flow")["aqm"]
    assert words == {
        "sbrm": "sbrm limit 3303 mark delay target 3ms coupling 0.5",
        "cubic": "fq_codel limit 3303", "bbr": "fq",
        "dctcp": "codel limit 3303 ce_threshold 1ms ecn",
        "pp": "fq_rr limit 3303 service rr overflow drop-tail-of-longest",
    }[variant.cc]


# --- from raw to results -----------------------------------------------------

def raw(**changes):
    """Two transfers of 100 packets over a link of 100 packets/s, by hand: the
    first takes 2 s instead of 1.5, the other is never done."""
    times = [index / 10 for index in range(41)]

    def flow(number, end_s, acked):
        return {"id": number, "name": str(number), "path": str(number),
                "role": "one" if number == 1 else "two", "packets": 100,
                "optimal_s": 1.5, "cc": "pp", "words": "", "start_s": 0.0,
                "stop_s": 4.0,
                "final": {"transfers": [{"start_s": 0.0, "end_s": end_s,
                                         "bytes": 46000}],
                          "retransmits": number, "bytes_sent": 46000 + 460,
                          "error": None},
                "samples": {"t_s": times, "bytes_acked": acked,
                            "unacked": [3] * 41,
                            "cc_rate_bps": [1] * 41,
                            "cc_pacing_gain": [256 * number] * 41,
                            "srtt_us": [0] * 41}}

    done = [min(46000, 2300 * index) for index in range(41)]
    half = [1000 * index for index in range(41)]
    classes = {"10:1": {"backlog_pkts": [2] * 41, "drops": [0] * 40 + [4]},
               "10:2": {"backlog_pkts": [1] * 20 + [9] * 21,
                        "drops": [0] * 41}}
    made = {
        "schema": 1, "experiment": "pp-bench-1", "seed": 1,
        "parameters": {"packet_bytes": 500, "warmup_s": 0.0, "cc": "pp",
                       "aqm": "fq_rr", "duration_s": 4.0, "buffer": 440},
        "links": {"R1": {"capacity_bps": 400000, "bottleneck": True}},
        "paths": {"1": {"links": ["R1"]}, "2": {"links": ["R1"]}},
        "mss_bytes": 460,
        "cases": [{
            "name": "a", "point": "a", "x": 1.0, "series": "s", "rtt_s": 0.5,
            "duration_s": 4.0, "values": {}, "wires": {}, "aqm": "fq_rr",
            "flows": [flow(1, 2.0, done), flow(2, None, half)],
            "queues": {"R1": {
                "t_s": times, "backlog_pkts": [3] * 20 + [11] * 21,
                # The queue holds super-packets of 1000 bytes.
                "backlog_bytes": [3000] * 20 + [11000] * 20 + [25000],
                "bytes": [min(5000 * index, 100000) for index in range(41)],
                "drops": [1] * 10 + [3] * 21 + [4] * 10, "classes": classes,
                # Between the samples there was more.
                "class_peaks": {"10:1": 2, "10:2": 14},
                "stats_at_end": {"drops": 4, "bytes": 1, "packets": 1}}}}],
        "metrics": [], "pictures": [], "bounds": [],
        "calibration": {"R1": {"ok": True}},
        "provenance": {"kernel": "k", "config_sha256": "c", "patches": [],
                       "hz": 1000, "modules": {}, "sysctls": {},
                       "qdiscs": {}, "tools": {}, "command": "x"},
        "trace_sha256": "0" * 64}
    made.update(changes)
    return made


def measured(kind, **words):
    made = raw(metrics=[{"key": "m", "kind": kind, "title": "m", "digits": 1,
                         "words": words}])
    return analysis.analyse(made)["cases"][0]["metrics"]["m"]


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
    # Windows that the run did not reach.
    ("estimate_error", {"from_s": 4.0}, None),
    ("goodput_share", {"from_rtt": 20}, None),
    ("share_error", {"from_s": 5.0}, None),
    ("delay_p99_ms", {"link": "R1", "from_s": 4.0}, None)])
def test_kinds_of_metrics(kind, words, value):
    found = measured(kind, **words)
    assert found == (value if value is None else pytest.approx(value))


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
    return analysis.analyse(made)["cases"][0]["metrics"]["m"]


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
    found = [analysis.analyse(made)["cases"][0]["metrics"]]
    made["cases"][0]["links"] = {"R1": {"capacity_bps": 800000,
                                        "bottleneck": True}}
    found.append(analysis.analyse(made)["cases"][0]["metrics"])
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
    assert set(analysis.analyse(made)["cases"][0]["metrics"].values()) \
        == {None}


_MS = {"key": "completion_ms", "kind": "completion_ms", "title": "ms",
       "digits": 1, "words": {"role": "one"}}
_VAR = {"key": "v", "kind": "completion_variance", "title": "v", "digits": 1,
        "words": {}}


def repeated():
    """Case a twice, of 2 and 2.1 s, and a case b of 1 s."""
    made = raw(metrics=[_MS, _VAR])
    again, other = copy.deepcopy(made["cases"] * 2)
    again.update(name="a #2")
    again["flows"][0]["final"]["transfers"][0]["end_s"] = 2.1
    other = copy.deepcopy(other)
    other.update(name="b", point="b", x=2.0)
    other["flows"][0]["final"]["transfers"][0]["end_s"] = 1.0
    made["cases"] += [again, other]
    return made


def test_repeats_are_one_case_with_their_mean():
    first, second = analysis.analyse(repeated())["cases"]
    assert (first["runs"], second["runs"]) == (2, 1)
    assert first["metrics"]["completion_ms"] == pytest.approx(2050)
    assert first["metrics"]["v"] == pytest.approx(5000)
    assert second["metrics"]["v"] is None


def bounded(operator, value, case="a", **more):
    made = repeated()
    made["bounds"] = [{"name": "n", "case": case, "metric": "completion_ms",
                       "op": operator, "value": value, **more}]
    return analysis.analyse(made)["bounds"][0]


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
    assert analysis.analyse(made)["bounds"][0]["verdict"] == "fails"


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
    return [entry for entry in analysis.analyse(made)["published"]
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
    assert analysis.analyse(made)
    made["metrics"] = [{"key": "r", "kind": "retransmits", "title": "r",
                        "digits": 0, "words": {}}]
    with pytest.raises(TollwayError, match="flow 2 failed"):
        analysis.analyse(made)


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
                        .__setitem__(7, 1e9), "flow 1's bytes_acked runs"),
    "queue backwards": (lambda made: _queue(made)["drops"]
                        .__setitem__(0, 9), "queue R1's drops runs"),
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
        analysis.analyse(made)


def test_seeds_are_put_together():
    one, two = repeated(), repeated()
    two.update(seed=2, trace_sha256="1" * 64)
    two["cases"][2]["flows"][0]["final"]["transfers"][0]["end_s"] = 1.2
    two["bounds"] = one["bounds"] = [
        {"name": "n", "case": "b", "metric": "completion_ms", "op": "<=",
         "value": 1100}]
    whole = aggregate.aggregate([analysis.analyse(one), analysis.analyse(two)])
    assert whole["cases"][1]["metrics"]["completion_ms"]["mean"] \
        == pytest.approx(1100)
    assert whole["bounds"][0]["verdict"] == "fails"
    assert whole["bounds"][0]["measured"] == pytest.approx(1200)
    text = rendering.render_text(tables.cases_tables(whole)[0])
    assert "1100.0 ±" in text


def test_a_result_of_cases_is_checked():
    result = analysis.analyse(repeated())
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


def test_tables_of_variants_stand_side_by_side():
    one, two = analysis.analyse(repeated()), analysis.analyse(repeated())
    two["parameters"] = dict(two["parameters"], cc="cubic")
    shown = tables.case_variants_tables([one, two])
    assert [table.title for table in shown] == ["ms", "v"]
    assert shown[0].heads == ["case", "pp + fq_rr", "cubic + fq_rr"]
    assert shown[0].rows[0] == ["a", "2050.0", "2050.0"]


def test_a_variant_may_leave_cases_out():
    whole, part = analysis.analyse(repeated()), analysis.analyse(repeated())
    part["parameters"] = dict(part["parameters"], cc="cubic")
    names = [point["name"] for point in whole["cases"]]
    del part["cases"][0]
    for order in ([whole, part], [part, whole]):
        shown = tables.case_variants_tables(order)[0]
        assert [row[0] for row in shown.rows] == names
        column = shown.heads.index("cubic + fq_rr")
        assert shown.rows[0][column] == tables._NONE
        assert shown.rows[1][column] == shown.rows[1][3 - column]


def test_a_report_of_cases(tmp_path):
    for number, cc in enumerate(("pp", "cubic")):
        made = repeated()
        made["parameters"]["cc"] = cc
        made["pictures"] = [
            ["curve", "completion_ms"], ["queue", "a"], ["sequence", "a"],
            ["class_queues", "a"], ["rates", "a"], ["utilization", "b"],
            ["curves", [{"key": "completion_ms", "log": True},
                        {"key": "v", "log": False}]]]
        folder = tmp_path / cc / "seed-1"
        folder.mkdir(parents=True)
        made["trace_sha256"] = str(number) * 64
        files.write_json_atomic(folder / "raw.json", made)
        files.write_json_atomic(folder / "result.json",
                                analysis.analyse(made))
    page = write_report(tmp_path).read_text()
    # The network; of each, seven and two over time; of both, two and one.
    assert page.count("<figure>") == 1 + 2 * 9 + 3
    # In words, not by their keys.
    assert "completion_ms" not in page.partition("<body>")[2].partition(
        "<summary>Kernel")[0]
    assert "pp + fq_rr" in page and "cubic + fq_rr" in page


def drawn(monkeypatch, tmp_path, values, log=True):
    """What curves() draws for {combination: {series: [(x, value)]}}."""
    wholes = []
    for cc, series in values.items():
        wholes.append({
            "parameters": {"cc": cc, "aqm": "q"}, "x_title": "x",
            "columns": [{"key": "k", "title": "k", "unit": "%", "digits": 1}],
            "cases": [{"name": f"{name} {x}", "x": x, "series": name,
                       "metrics": {"k": value}}
                      for name, points in series.items()
                      for x, value in points]})
    figures = []
    monkeypatch.setattr(charts, "save",
                        lambda figure, out: figures.append(figure) or [out])
    if not charts.curves(wholes, [{"key": "k", "log": log}],
                         tmp_path / "x", Look()):
        return None
    return {axes.get_title("left"): axes for axes in figures[0].axes
            if axes.lines}


def test_curves_have_a_column_for_each_series(monkeypatch, tmp_path):
    found = drawn(monkeypatch, tmp_path, {
        "a": {"one": [(1, 0.02), (1000, 0.5)], "four": [(1, 0.03)]},
        "b": {"one": [(1, 4.0), (1000, None)], "four": [(1, 0.04)]}})
    assert list(found) == ["one", "four"]
    # In per cent; what never was is a gap; limits are the same for all.
    assert [list(line.get_ydata()) for line in found["four"].lines] \
        == [[3], [4]]
    assert list(found["one"].lines[0].get_ydata()) == [2, 50]
    ((first, missing),) = [line.get_ydata() for line in
                           found["one"].lines[1:]]
    assert first == 400 and missing != missing
    for axes in found.values():
        assert axes.get_yscale() == "log" and axes.get_ylim() == (1, 1000)
    assert found["one"].get_xscale() == "log"
    linear = drawn(monkeypatch, tmp_path, {
        "a": {"one": [(1, 0.02)], "four": [(1, 0.5)]},
        "b": {"one": [(1, 0.9)], "four": [(1, 0.1)]}}, log=False)
    for axes in linear.values():
        assert axes.get_yscale() == "linear"
        assert axes.get_ylim()[0] == 0 and axes.get_ylim()[1] > 90


def test_curves_of_one_result_are_its_series(monkeypatch, tmp_path):
    found = drawn(monkeypatch, tmp_path, {
        "a": {"one": [(1, 0.02)], "four": [(1, 0.03)]}})
    assert list(found) == ["a + q"]
    assert [line.get_label() for line in found["a + q"].lines] \
        == ["one", "four"]
    assert drawn(monkeypatch, tmp_path, {"a": {"one": [(1, None)]}}) is None
    assert drawn(monkeypatch, tmp_path, {"a": {"one": [(None, 0.3)]}}) is None


@pytest.mark.parametrize("name", BENCHES)
def test_baselines_run_the_same_scenario(name):
    experiment = papers.get(name)
    names = [(variant.cc, variant.aqm) for variant in
             plan.variants(experiment, plan.parse_settings(
                 experiment, [])) if not variant.settings]
    assert names == [("pp", "fq_rr"), ("cubic", "fq_rr"), ("bbr", "fq_rr"),
                     ("reno", "fq_rr"), ("cubic", "fq_codel"),
                     ("bbr", "fq_codel"), ("reno", "fq_codel")]
    ours, theirs = job(name), job(name, "bbr", "fq_codel")
    for one, other in zip(ours["cases"], theirs["cases"]):
        assert [flow["words"] for flow in one["flows"]] \
            == [flow["words"] for flow in other["flows"]]
