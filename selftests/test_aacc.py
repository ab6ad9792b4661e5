# SPDX-License-Identifier: GPL-2.0
"""The experiments of AACC without the lab: programs of a case, packets that are
timed, their metrics, and bounds over cases and seeds."""

import copy
import json
import re
import struct
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "scripts"), str(HERE.parent / "tools")]

from admit import __main__ as admission  # noqa: E402
from test_every_experiment import LIKE_AACC_STATIC  # noqa: E402
from tollwaylib import papers  # noqa: E402
from tollwaylib.errors import TollwayError  # noqa: E402
from tollwaylib.experiments import jobs, plan  # noqa: E402
from tollwaylib.experiments.description import (  # noqa: E402
    case_bound, cases_bound, program)
from tollwaylib.guest import passages  # noqa: E402
from tollwaylib.guest.daemons import Daemons  # noqa: E402
from tollwaylib.guest.topologies import Built  # noqa: E402
from tollwaylib.papers import aacc  # noqa: E402
from tollwaylib.report import figures  # noqa: E402
from tollwaylib.report.plotting import Look  # noqa: E402
from tollwaylib.results import aggregate, schema  # noqa: E402
from tollwaylib.results.measurements import CaseData  # noqa: E402
from tollwaylib.results.metrics import KINDS  # noqa: E402
from tollwaylib.results.verdicts import judge_case  # noqa: E402

BEYOND = ("aacc-peers", "aacc-tcp", "aacc-change")
NAMES = [experiment.name for experiment in aacc.EXPERIMENTS]


def job(name, words=()):
    experiment = papers.get(name)
    values = plan.parse_settings(experiment, words, experiment.cc,
                                 experiment.aqm)
    return jobs.job(experiment, experiment.cc, experiment.aqm, values,
                    experiment.duration_s, 1)


def option(words, name):
    return words[words.index(name) + 1]


# --- programs of a case ------------------------------------------------------

class Node:
    """A node as Mininet has them, of this host."""

    name = "n1"
    nameToIntf = {"n1-r": SimpleNamespace(tollway_ip="10.0.0.1")}

    def intfList(self):
        return list(self.nameToIntf.values())

    def popen(self, argv, **keywords):
        return subprocess.Popen(argv, **keywords)


@pytest.fixture
def guest(tmp_path):
    (tmp_path / "bin").mkdir()
    run = SimpleNamespace(out_dir=tmp_path / "out", bin_dir=tmp_path / "bin",
                          net={"n1": Node()}, processes=[],
                          topo=SimpleNamespace(called={"border": "n1"}))
    yield run
    for process in run.processes:
        process.kill()
        process.wait()


def started(guest, script, keep=(), words=(), node="n1"):
    tool = guest.bin_dir / "tool"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    return Daemons(guest, {"name": "a case", "programs": [
        program("one", node, "tool", *words, files={"key": "secret"},
                keep=keep)]})


def wait_until(condition):
    ends = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_a_program_is_ended_and_kept(guest):
    made = started(guest, 'trap "echo ended; exit 0" TERM; echo $1 $(cat key); '
                   """echo '{"t_ns": 1500000000, "beta": 0.5}' > trace; """
                   """echo '{"t_ns": 2000000000, "beta": 0.6}' >> trace; """
                   "echo on >> said; while :; do sleep 0.01; done",
                   keep=("trace",), words=("{address:n1-r}",))
    folder = guest.out_dir / "programs/a-case/one"
    wait_until((folder / "said").exists)
    made.check()
    assert (folder / "key").stat().st_mode & 0o777 == 0o600
    left = made.stop(10**9)["one"]
    assert left["output"] == {"trace": {"beta": [0.5, 0.6],
                                        "t_s": [0.5, 1.0]}}
    assert left["log"] == ["10.0.0.1 secret", "ended"]
    assert left["status"] == 0 and left["node"] == "n1"
    assert not (folder / "key").exists()


@pytest.mark.parametrize("lines", [
    "1", "null", "[1, 2]", '{"a": 1}\n{"b": 2}', '{"t_ns": "x"}', '{"a": NaN}', "{"])
def test_a_kept_file_of_something_else_is_an_error(guest, lines):
    made = started(guest, f"echo '{lines}' > trace; exec sleep 100", keep=("trace",))
    wait_until((guest.out_dir / "programs/a-case/one/trace").exists)
    time.sleep(0.1)
    with pytest.raises(TollwayError, match="one: trace cannot be read: "):
        made.stop(0)


def test_a_program_of_the_system_at_a_node_by_another_name(guest):
    made = Daemons(guest, {"name": "a case", "programs": [
        program("one", "border", "sh", "-c",
                "echo {address:n1-r} > said; exec sleep 100")]})
    said = guest.out_dir / "programs/a-case/one/said"
    wait_until(lambda: said.exists() and said.read_text())
    assert said.read_text() == "10.0.0.1\n"
    left = made.stop(0)["one"]
    assert left["node"] == "border" and left["command"][0] == "sh"
    for node, words, what in (("n2", "sh", "no node n2 for one"),
                              ("n1", "nosuch", "no program nosuch for node n1")):
        with pytest.raises(TollwayError, match=what):
            Daemons(guest, {"name": f"with {words} at {node}", "programs": [
                program("one", node, words)]})


@pytest.mark.parametrize("script, what", [
    ("echo broken >&2; exit 3", "ended by itself with status 3: broken"),
    ("exit 0", "ended by itself with status 0: it said nothing")])
def test_a_program_that_dies_is_an_error(guest, script, what):
    made = started(guest, script)
    wait_until(lambda: guest.processes[0].poll() is not None)
    with pytest.raises(TollwayError, match=f"one in node n1 {what}"):
        made.check()
    with pytest.raises(TollwayError, match="one in node n1"):
        made.stop(0)


def test_a_program_that_fails_at_its_end_is_an_error(guest):
    made = started(guest, 'trap "exit 5" TERM; echo on; touch said; '
                   "while :; do sleep 0.01; done")
    wait_until((guest.out_dir / "programs/a-case/one/said").exists)
    with pytest.raises(TollwayError, match="ended with status 5: on"):
        made.stop(0)


def test_a_program_needs_its_node_and_address(guest):
    with pytest.raises(TollwayError, match="no node n2 for one"):
        started(guest, "exit 0", node="n2")
    (guest.out_dir / "programs").rename(guest.out_dir / "earlier")
    with pytest.raises(TollwayError, match="no interface is called n9-r"):
        started(guest, "exit 0", words=("{address:n9-r}",))


@pytest.mark.parametrize("script", ["lab/init", "qemu/start"])
def test_tollway_admit_has_all_it_imports_in_a_guest(script, tmp_path):
    text = (HERE.parent / f"scripts/{script}").read_text()
    copied = re.findall(r"^cd /run/tollway/src/(\S+) .*\n"
                        r"cp --parents ([^/]+(?:/\*\.py)?) \\?\s*"
                        r"/run/tollway/(\S+)$", text, re.MULTILINE)
    assert [folder for folder, *_ in copied] == ["scripts/tollwaylib", "tools"]
    for folder, names, to in copied:
        (tmp_path / to).mkdir(parents=True)
        subprocess.run(f"cp --parents {names} {tmp_path / to}", shell=True,
                       cwd=HERE.parent / folder, check=True)
    done = subprocess.run(
        [str(tmp_path / "tools/tollway-admit"), "--help"], text=True,
        capture_output=True, check=False,
        env={"PYTHONPATH": str(tmp_path / "lib"), "PATH": "/usr/bin:/bin"})
    assert done.returncode == 0, done.stderr


# --- experiments -------------------------------------------------------------

@pytest.mark.parametrize("name", NAMES)
def test_programs_are_where_the_network_has_a_gate(name):
    made = job(name)
    topo = Built(aqm="pfifo", **made["topology"])
    ends = topo.ends()
    for case in made["cases"]:
        for declared in case["programs"]:
            words = declared["words"]
            node, parameters = ends[option(words, "--device")]
            assert node == declared["node"]
            minor = int(option(words, "--class").partition(":")[2], 16)
            assert 0 <= minor - 0x10 < len(parameters["gates"])
            peer = option(words, "--peer")[len("{address:"):-1]
            assert peer in ends or peer == "d"
        ports = [(declared["node"], option(declared["words"], "--port"))
                 for declared in case["programs"]]
        assert len(set(ports)) == len(ports)
        # Sources offer what the case says, with their Ethernet headers.
        rates = [int(word.split("=")[1]) for flow in case["flows"]
                 for word in flow["words"].split() if word.startswith("rate=")]
        assert len(rates) in (0, len(case["flows"]))
        assert name in BEYOND or len(rates) == 2


@pytest.mark.parametrize("name", LIKE_AACC_STATIC)
def test_experiments_that_the_lab_sees_as_one(name):
    """All but numbers is that of aacc-static, which test_every_experiment.py
    runs."""
    def in_the_lab(one):
        made = job(one)
        case = made["cases"][-1]
        assert case["programs"]
        # Names, and what is made of the results, on the host.
        own = {"name", "point", "x", "series"}
        after = {"experiment", "title", "cases", "virtual_s", "metrics", "x_title",
                 "pictures", "bounds", "queues"}
        return [{key: value for key, value in each.items() if key not in left}
                for each, left in ((made, after), (case, own))]
    found, expected = (re.sub(r"\b[0-9.]+(ms)?\b", "0", json.dumps(
        in_the_lab(one), sort_keys=True)) for one in (name, "aacc-static"))
    assert found == expected


@pytest.mark.parametrize("name", NAMES)
def test_programs_take_the_words_of_all_cases(name):
    checked = 0
    for case in job(name)["cases"]:
        for declared in case["programs"]:
            assert declared["words"][0] == "tollway-admit"
            words = [re.sub(r"\{address:.*\}", "10.0.0.1", str(word))
                     for word in declared["words"][1:]]
            options = admission.parser().parse_args(words)
            assert options.low_ns <= options.high_ns
            assert options.interval_ns <= options.quota_ns
            checked += 1
    assert checked


def test_parameter_sets_are_those_of_the_paper():
    words = {case["name"]: case["programs"][0]["words"]
             for name in ("aacc-static", "aacc-delay", "aacc-theta",
                          "aacc-rate")
             for case in job(name)["cases"] if case["programs"]}

    def found(case):
        return tuple(option(words[case], name) for name in (
            "--low", "--high", "--up", "--down", "--interval", "--quota"))
    assert found("AACC 1") == ("2.000000ms", "2.000000ms", "0.005", "0.05",
                               "10.000000ms", "100.000000ms")
    steps = {"printed": ("0.05", "0.005"), "swapped": ("0.005", "0.05")}
    for name, pair in steps.items():
        assert found(f"{name}, 50 units, 1") == (
            "4.000000ms", "8.000000ms", *pair, "50.000000ms", "100.000000ms")
    assert found("theta_1 = 0.25")[:2] == ("0.250000ms", "2.000000ms")
    assert found("theta_1 = 5")[:2] == ("5.000000ms", "5.000000ms")
    assert found("r = 0.2")[4] == "5.000000ms"


def test_gates_and_rates_of_cases():
    made = job("aacc-tcp")
    assert {case["gate"] for case in made["cases"]} == {"pfifo limit 100"}
    (free, gated) = job("aacc-change")["cases"]
    assert free["rates"] == gated["rates"] == [[40.0, 800_000],
                                               [80.0, 8_000_000]]
    assert free["gate"] == gated["gate"] == "pfifo limit 1000"


def test_other_queues_are_in_the_place_of_the_bottleneck():
    made = job("aacc-static")
    aqms = {case["series"]: case["aqm"] for case in made["cases"]}
    assert aqms["AACC"] == aqms["no control"] == "pfifo limit 1000000"
    assert aqms["CoDel"] == "codel limit 1000"
    assert aqms["fq_codel"] == "fq_codel limit 1000"
    assert aqms["sbrm"].startswith("sbrm limit 1000 ")
    assert not [case for case in made["cases"]
                if case["series"] != "AACC" and case["programs"]]


# --- packets that are timed --------------------------------------------------

def capture(path, packets):
    """A capture of packets (ns of the realtime clock, flow, number)."""
    data = struct.pack("<IHHiIII", passages.PCAP_NANO, 2, 4, 0, 0, 58, 1)
    for ns, flow, number in packets:
        data += struct.pack("<IIII", ns // 10**9, ns % 10**9, 58, 1000)
        data += bytes(passages.PAYLOAD_AT)
        data += struct.pack("!IIQ", passages.MAGIC, flow, number)
    path.write_bytes(data)
    return path


def timed(tmp_path, entered, left, to_s=4.0, from_s=1.0):
    made = passages.Passages.__new__(passages.Passages)
    made.link, made.case_name = "R1", "a case"
    made.run = SimpleNamespace(
        topo=SimpleNamespace(packet_bytes=1000, links_described={
            "R1": {"capacity_bps": 8_000_000}}),
        parameters={"time_limit": 10.0}, realtime_offset_ns=lambda: 5 * 10**9)
    arrays = [made._read(capture(tmp_path / name, packets))
              for name, packets in (("in", entered), ("out", left))]
    # The epoch is at 7 s of the realtime clock.
    return made._summary(*arrays, 2 * 10**9, from_s, to_s)


SECOND, MS = 10**9, 10**6


def test_packets_are_timed_by_flow_and_number(tmp_path):
    at = 7 * SECOND
    entered = [(at + SECOND // 2, 1, 0), (at + SECOND, 1, 1),
               (at + SECOND, 2, 1), (at + 2 * SECOND, 1, 2),
               (at + 2 * SECOND + 1, 1, 3), (at + 2 * SECOND + 2, 1, 4),
               (at + 3 * SECOND + 1, 1, 5)]
    left = [(at + 2 * SECOND + 12 * MS, 1, 2), (at + SECOND + 10 * MS, 2, 1),
            (at + SECOND + MS // 20, 1, 1), (at + SECOND // 2 + MS, 1, 0),
            (at + 2 * SECOND + 1 + 10 * MS, 1, 3)]
    found = timed(tmp_path, entered, left)
    one, two = found["flows"]["1"], found["flows"]["2"]
    # From 1 s on, and not the last second; number 4 never left.
    assert (one["entered"], one["left"]) == (4, 3)
    assert one["delay_sum"] == pytest.approx(0.05 + 12 + 10)
    assert one["counts"][0] == 1 and one["counts"][99] == 1
    assert one["counts"][119] == 1 and sum(one["counts"]) == 3
    assert (two["entered"], two["counts"][99]) == (1, 1)
    assert found["unit_s"] == 0.001 and found["edges"][99] == 10.0
    assert one["entered_each_s"] == [1, 1, 3, 1]
    assert one["in_time_each_s"] == [1, 1, 1, 0]
    assert one["left_each_s"] == [1, 1, 2, 0]
    assert one["delay_sum_each_s"] == pytest.approx([1, 0.05, 22, 0])


def test_packets_of_an_earlier_case_are_an_error(tmp_path):
    with pytest.raises(TollwayError, match="a case: a packet left the network"):
        timed(tmp_path, [(9 * SECOND, 1, 0)], [(9 * SECOND - 1, 1, 0)])


def test_nothing_left_the_network(tmp_path):
    found = timed(tmp_path, [(9 * SECOND, 1, 0)], [])
    assert found["flows"]["1"]["entered"] == 1
    assert found["flows"]["1"]["counts"] == []


def test_other_packets_are_no_measurement(tmp_path):
    path = capture(tmp_path / "in", [(1, 1, 1)])
    data = bytearray(path.read_bytes())
    data[-16] ^= 1
    path.write_bytes(data)
    with pytest.raises(TollwayError, match="did not send"):
        passages.Passages._read(None, path)


# --- metrics -----------------------------------------------------------------

def raw(cases, **parameters):
    """A raw result; cases: {name: (series, x, counts by limit, entered)}."""
    edges = passages.bin_edges()

    def counts(by_limit):
        found = [0] * (1 + max(map(edges.index, by_limit), default=-1))
        for limit, count in by_limit.items():
            found[edges.index(limit)] = count
        return found
    return {
        "mss_bytes": 946, "paths": {"1": {"links": ["R1"]}}, "links": {
            "R1": {"capacity_bps": 8_000_000}},
        "parameters": {"packet_bytes": 1000, "warmup_s": 0.0,
                       "time_limit": 10.0, "cc": "cubic", "aqm": "pfifo",
                       **parameters},
        "cases": [{
            "name": name, "series": series, "x": x, "duration_s": 11.0,
            "flows": [{"id": 1, "name": "1", "role": "source", "cc": None,
                       "path": "1", "start_s": 0.0, "stop_s": 11.0,
                       "final": {}}],
            "queues": {},
            "passages": {"unit_s": 0.001, "from_s": 0.0, "to_s": 10.0,
                         "edges": edges, "t_s": list(range(11)), "flows": {
                             "1": {"entered": entered, "counts": counts(by),
                                   "left": sum(by.values()),
                                   "delay_sum": 3.0 * sum(by.values()),
                                   "entered_each_s": [100] * 11,
                                   "left_each_s": [100] * 11,
                                   "in_time_each_s": [90] * 11,
                                   "delay_sum_each_s": [300.0] * 11}}}}
            for name, (series, x, by, entered) in cases.items()]}


def measured(kind, made, index=0, **words):
    return KINDS[kind](CaseData(made, made["cases"][index]), words)


def test_goodput_and_loss():
    made = raw({"a": ("AACC", 1, {5.0: 6000, 10.0: 1000, 10.1: 500}, 8000)})
    assert measured("in_time_share", made) == pytest.approx(0.7)
    assert measured("late_part", made) == pytest.approx(1 / 8)
    assert measured("delay_units", made) == pytest.approx(3.0)
    made["parameters"]["time_limit"] = 5.0
    assert measured("in_time_share", made) == pytest.approx(0.6)


def test_build_out_is_that_of_the_worst_load():
    made = raw({"a": ("AACC", 1, {2.0: 94, 4.0: 6}, 100),
                "b": ("AACC", 2, {2.0: 50, 8.0: 45}, 100),
                "c": ("no control", 1, {8.0: 10}, 100)})
    assert [measured("build_out_units", made, index, part=0.05)
            for index in range(3)] == [4.0, 8.0, None]
    words = {"part": 0.05, "series": "AACC"}
    assert [measured("loss_at_build_out", made, index, **words)
            for index in range(3)] == pytest.approx([0.0, 0.05, 0.9])
    made["cases"][1]["passages"]["flows"]["1"]["entered"] = 1000
    assert measured("loss_at_build_out", made, 0, **words) is None


def test_what_each_flow_has_in_the_network():
    made = raw({"a": ("AACC", 1, {1.0: 1}, 30)})
    case = made["cases"][0]
    case["flows"].append({**case["flows"][0], "id": 2})
    flows = case["passages"]["flows"]
    flows["2"] = {**flows["1"], "entered": 10}
    assert measured("admitted_jain", made) == pytest.approx(0.8)


def test_round_trip_of_flows():
    made = raw({"a": ("AACC", 1, {1.0: 1}, 1)})
    flow = made["cases"][0]["flows"][0]
    flow.update(cc="cubic", samples={"t_s": [1, 2, 3],
                                     "srtt_us": [9000, 20000, 30000]})
    assert measured("srtt_ms", made, from_s=2) == pytest.approx(25)


def test_time_with_an_open_gate():
    made = raw({"a": ("AACC", 1, {1.0: 1}, 1)})
    case = made["cases"][0]
    ethernet = (1000 - 14) / 1000 * 8_000_000
    case["flows"][0]["final"]["mmpp"] = {
        "t_s": [0, 1, 2, 3, 4],
        "rate_bps": [ethernet * part for part in (0.1, 0.5, 0.9, 0.79, 0.81)]}
    trace = {"t_s": [0.5, 1.2, 1.7, 2.5, 3.2, 3.4, 3.6],
             "beta": [0.9, 1.0, 1.0, 0.3, 0.5, 1.0, 0.9],
             "dropped_packets": [0, 1, 1, 1, 1, 2, 7]}
    case["programs"] = {"g1": {"output": {"trace": trace}},
                        "d1": {"output": {}}}
    # From 0 to 2 and from 3 to 4. The gate is closed until 1.2, from 3 to 3.4 and from 3.6.
    assert measured("low_s", made, below=0.8) == pytest.approx(3)
    assert measured("held_s", made, below=0.8) == pytest.approx(1.2 + 0.4 + 0.4)
    assert measured("beta_mean", made, from_s=2) == pytest.approx(0.675)
    assert measured("gate_drops", made) == 7
    trace["beta"] = [0.9] * 7
    assert measured("held_s", made, below=0.8) == pytest.approx(3)
    case["programs"] = {}
    assert measured("held_s", made, below=0.8) is None
    assert measured("low_s", made, below=0.8) == pytest.approx(3)


def test_picture_of_admission(tmp_path):
    made = raw({"a": ("AACC", 1, {1.0: 1}, 1)})
    case = made["cases"][0]
    case["queues"] = {"R1": {
        key: [index * step for index in range(23)] for key, step in (
            ("t_s", 0.5), ("backlog_pkts", 1), ("bytes", 9), ("drops", 0))}}
    case["programs"] = {"g1": {"output": {"trace": {
        "t_s": [0.0, 5.0], "beta": [0.0, 1.0]}}}}
    for path in figures.PICTURES["admission"](made, "a", tmp_path / "out",
                                                Look()):
        assert path.stat().st_size > 1000


# --- bounds ------------------------------------------------------------------

def result(values, seed=1):
    """A result of cases a, b ... at 1, 2 ... with these values."""
    made = {
        "schema": schema.SCHEMA, "experiment": "e", "x_title": "x",
        "parameters": {}, "seed": seed, "capacity_bps": {"R1": 1},
        "columns": [], "published": [], "bounds": [],
        "digest": f"{seed:064x}", "provenance": {
            "kernel": "k", "config_sha256": "c", "patches": [], "hz": 1000,
            "modules": {}, "sysctls": {}, "qdiscs": {}, "tools": {},
            "command": "tollway"},
        "cases": [{"name": name, "x": x, "series": None, "runs": 1,
                   "metrics": {"m": value}}
                  for x, (name, value) in enumerate(zip("abcd", values), 1)]}
    made["columns"] = [{"key": "m", "title": "m", "unit": None, "digits": 1}]
    return made


@pytest.mark.parametrize("reduce, value", [
    ("range", 0.4), ("largest", 0.9), ("smallest", 0.5), ("fall", -0.2),
    ("rise", 0.4)])
def test_what_is_made_of_several_cases(reduce, value):
    bound = cases_bound("name", "abc", "m", reduce, "<=", 0)
    assert judge_case(bound, result([0.5, 0.9, 0.7]))["measured"] \
        == pytest.approx(value)


def test_linearity():
    bound = cases_bound("name", "abcd", "m", "linearity", ">=", 0.9)
    assert judge_case(bound, result([0.9, 0.8, 0.7, 0.6]))["measured"] \
        == pytest.approx(1)
    assert judge_case(bound, result([0.9, 0.6, 0.9, 0.6]))["measured"] < 0.3
    for values in ([0.5] * 4, [0.5, None, 0.4, 0.3]):
        assert judge_case(bound, result(values))["measured"] is None


def test_bounds_on_means_need_seeds():
    bounds = [case_bound("mean", "a", "m", ">=", 0.7, over_seeds=True),
              case_bound("worst", "a", "m", ">=", 0.7),
              cases_bound("range", "ab", "m", "range", "<=", 0.05)]
    seeds = []
    for seed, values in enumerate(([0.65, 0.7], [0.77, 0.7]), 1):
        one = result(values, seed)
        one["bounds"] = [judge_case(bound, one) for bound in bounds]
        schema.validate(copy.deepcopy(one))
        seeds.append(one)
    assert [entry["verdict"] for entry in seeds[0]["bounds"]] \
        == ["needs seeds", "fails", "needs seeds"]
    whole = aggregate.aggregate(seeds)
    assert [(entry["verdict"], entry["measured"])
            for entry in whole["bounds"]] == [
        ("holds", pytest.approx(0.71)), ("fails", 0.65),
        ("holds", pytest.approx(0.01))]
