# SPDX-License-Identifier: GPL-2.0
"""What cases change in their network: links and what happens on them."""

import pathlib
import random
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "scripts"))

from tollwaylib import papers  # noqa: E402
from tollwaylib.errors import TollwayError  # noqa: E402
from tollwaylib.experiments import jobs, plan  # noqa: E402
from tollwaylib.guest import links, topologies, traffic  # noqa: E402
from tollwaylib.guest.calibration import Calibration  # noqa: E402
from tollwaylib.guest.job import Run  # noqa: E402
from tollwaylib.guest.traffic import TollwayTraffic  # noqa: E402


@pytest.fixture
def ran(monkeypatch):
    """Commands that interfaces give."""
    commands = []
    monkeypatch.setattr(links, "shell",
                        lambda node, *given: commands.extend(given))
    return commands


class FakeNode:
    """A node of an unbuilt network."""

    def __init__(self, name):
        self.name, self.nameToIntf = name, {}

    def intfList(self):  # noqa: N802  (Mininet's name)
        """Its interfaces."""
        return list(self.nameToIntf.values())


def built_run(name, *words, cc=None):
    """A Run of an experiment with a network whose interfaces know what they
    are, and nothing else."""
    experiment = papers.get(name)
    cc, aqm = cc or experiment.cc, experiment.aqm
    values = plan.parse_settings(experiment, words, cc, aqm)
    job = jobs.job(experiment, cc, aqm, values, experiment.duration_s, 1)
    made = Run(dict(job, out_dir="/x", bin_dir="/x"))
    made.topo = topologies.Built(aqm=made.job["aqm"], **made.job["topology"])
    made.net = {node: FakeNode(node) for node in made.topo.nodes()}
    for device, (node, end) in made.topo.ends().items():
        interface = object.__new__(links.TollwayIntf)
        interface.name, interface.node = device, made.net[node]
        interface.params = {}
        interface.config(**{key: value for key, value in end.items()
                            if key in ("mtu", "rate_bps", "delay_ms", "aqm",
                                       "gso_max_segs", "packet_bytes",
                                       "ip_only", "segments", "gates")})
        made.net[node].nameToIntf[device] = interface
    return made


def case_of(made, name):
    return next(case for case in made.job["cases"] if case["name"] == name)


def test_links_are_changed_from_case_to_case(ran):
    made = built_run("any-rate")
    slow = case_of(made, "1 Mb/s, 20 ms, 1 flow")["network"]
    far = case_of(made, "100 Mb/s, 200 ms, 1 flow")["network"]
    shaper = "tc class replace dev r1-r2 parent 2: classid 2:1 htb rate " \
        "{0}bit burst {1} cburst {1} quantum {1}"
    netem = "tc qdisc replace dev r2-r1 root handle 1: netem " \
        "limit 1000000 delay {}ms"
    for keywords, wanted, rate_bps, rtt_ms in (
            (None, [], 10**8, 20),
            (slow, [shaper.format(10**6, 1514)], 10**6, 20),
            (slow, [], 10**6, 20),
            (far, [shaper.format(10**8, 1514), netem.format(200)], 10**8, 200),
            (None, [netem.format(20)], 10**8, 20)):
        ran.clear()
        made.adapt(keywords)
        assert ran == wanted
        # Which is what is then calibrated.
        assert made.topo.links_described["R1"]["capacity_bps"] == rate_bps
        assert made.topo.paths["1"]["rtt_ms"] == rtt_ms


def test_only_rates_and_delays_can_be_changed(ran):
    made = built_run("any-rate")
    built = made.job["topology"]
    with pytest.raises(TollwayError, match="r1-r2 was built with another "
                                           "mtu, packet_bytes"):
        made.adapt({**built, "packet_bytes": 1000, "gso_max_segs": 1})
    # Hosts without a limit have nothing that could have one.
    with pytest.raises(TollwayError, match="built without a shaper"):
        made.adapt({**built, "edge_bps": 10**9})
    assert not ran


def test_all_networks_of_cases_are_calibrated(monkeypatch, ran):
    made = built_run("any-rate", "only=20 ms, 4 flows")
    seen = []
    monkeypatch.setattr(Calibration, "calibrate", lambda run: seen.append(
        run.topo.links_described["R1"]["capacity_bps"]) or len(seen))
    # The result is of the network as it was built.
    assert made.calibrate() == 1
    assert seen == [10**8, 10**6, 10**7, 10**9]
    assert made.topo.links_described["R1"]["capacity_bps"] == 10**8


@pytest.mark.parametrize("cc, sink", [("sbrm", "sbrm"), ("dctcp", "dctcp"),
                                      ("cubic", None)])
def test_sinks_of_cases_echo_marks(cc, sink, monkeypatch, ran):
    made = built_run("any-rate", cc=cc)
    started = []
    monkeypatch.setattr(made, "sink",
                        lambda *words: started.append(words) or 1)
    # One sink for all cases.
    TollwayTraffic.begin(made, 0)
    assert [(host, echo, sample_ms) for host, _, echo, sample_ms in started] \
        == [("d1", sink, None)]


def test_sinks_sample_udp(monkeypatch, ran):
    made = built_run("any-rate")
    cases = made.job["cases"]
    cases[0]["flows"] = [dict(cases[0]["flows"][0], cc=None)]
    cases[0]["sample_ms"], cases[1]["sample_ms"] = 30, 20
    assert made.udp_sample_ms() == 30


def test_arrivals_of_a_case():
    """The sink of all cases counts from the beginning of the first."""
    counted = {"epoch_ns": 10 * 10**9, "sample_s": 0.5, "udp": [
        {"peer": "10.0.0.1:7", "received_bytes": [1]},
        {"peer": "10.0.0.2:9", "received_bytes": [5]},
        {"peer": "10.0.0.1:7", "received_bytes": [0, 0, 10, 20, 0, 5]}]}
    assert traffic.arrivals(counted, "10.0.0.1:7", 11 * 10**9, 1.6) == {
        "t_s": [0.5, 1.0, 1.5], "bytes": [10, 30, 30]}
    assert traffic.arrivals(counted, "10.0.0.1:8", 11 * 10**9, 1.6) is None


def prepare(made, name, monkeypatch):
    monkeypatch.setattr(made, "hosts", lambda: [])
    made.prepare_case(case_of(made, name))


def test_a_case_gets_its_links_and_says_what_they_were(monkeypatch, ran):
    made = built_run("any-rate", "only=20 ms, 1 flow")
    seen = {"devices": {"r1-r2": {}}, "flows": [{"id": 1}]}
    made.job["traffic"], made.sinks = "tollway", {}
    for name, means in (("hosts", []), ("sampler", None), ("sender", None),
                        ("sink", 1), ("qdisc_stats", {}), ("finish", seen)):
        monkeypatch.setattr(made, name, lambda *words, means=means: means)
    monkeypatch.setattr(traffic, "address_of", lambda node: "10.0.0.1")
    found = {}
    for case in made.job["cases"]:
        ran.clear()
        raw = made.measure_case(case, random.Random(1))
        found[case["name"]] = (
            [command for command in ran if " rate " in command],
            raw.get("links", {}).get("R1", {}).get("capacity_bps"))
    shapers = {name: shaper and shaper[0].split(" rate ")[1].split()[0]
               for name, (shaper, _) in found.items()}
    assert shapers == {f"{mbit} Mb/s, 20 ms, 1 flow": f"{mbit}000000bit"
                       for mbit in (1, 10, 100, 1000)}
    # Nothing is said where they are as they were built.
    assert [said for _, said in found.values()] == [10**6, 10**7, None, 10**9]


def test_gates_have_the_queue_of_the_case(monkeypatch, ran):
    made = built_run("aacc-tcp")
    expected = [f"tc qdisc {verb} dev {device} parent 1:{minor}{queue}"
                for device, minor in (("d-r2", 10), ("d-r2", 11), ("g1-r1", 10),
                                      ("g2-r1", 10))
                for verb, queue in (("del", ""), ("add", " pfifo limit 100"))]
    for name, wanted in (("no control", expected), ("AACC", [])):
        ran.clear()
        prepare(made, name, monkeypatch)
        assert sorted(command for command in ran
                      if "parent 1:" in command) == sorted(wanted)
    # What waits there is gone, and the queue stays.
    ran.clear()
    for interface in made.gated():
        interface.empty_gates()
    assert sorted(ran) == sorted(expected)


def test_a_link_changes_during_a_case(monkeypatch, ran):
    made = built_run("aacc-change")
    monkeypatch.setattr(made, "sleep_until", lambda when_ns: ran.append(when_ns))
    case = case_of(made, "AACC")
    ran.clear()
    made.change_rates(10**9, made.rates_of(case))
    assert [entry if isinstance(entry, int) else entry.split(" rate ")[1].split()[0]
            for entry in ran] == [41 * 10**9, "800000bit",
                                  81 * 10**9, "8000000bit"]


def test_impairments_reach_the_wire(monkeypatch, ran):
    """Loss and reordering of pp-paths are in the netem before the link, which
    keeps its delay and the table by which packets are counted."""
    made = built_run("pp-paths")
    for name, words in (("clean", None), ("loss 1 %", " loss 1%"),
                        ("reordering by 3", " 1.050000ms distribution late"),
                        ("clean", "")):
        ran.clear()
        prepare(made, name, monkeypatch)
        assert [command for command in ran if "netem" in command] == (
            [] if words is None else
            ["tc qdisc replace dev r1-r2 root handle 1: stab overhead -14 "
             f"netem limit 1000000 delay 20ms{words}"])


def test_an_impairment_that_has_no_place_is_refused(monkeypatch, ran):
    made = built_run("any-rate")
    made.job["cases"][0]["wires"] = {"R1": "loss 1%"}
    with pytest.raises(TollwayError, match="r1-r2 has no delay"):
        prepare(made, made.job["cases"][0]["name"], monkeypatch)
