# SPDX-License-Identifier: GPL-2.0
"""What cases change in their network: links and what happens on them."""

import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "scripts"))

from tollwaylib import experiments, network, network_cases, topo  # noqa: E402


@pytest.fixture
def ran(monkeypatch):
    """Commands that interfaces give."""
    commands = []
    monkeypatch.setattr(topo, "shell",
                        lambda node, *given: commands.extend(given))
    return commands


class FakeNode:
    """A node of an unbuilt network."""

    def __init__(self, name):
        self.name, self.nameToIntf = name, {}


def built_run(name, *words):
    """A CaseRun of an experiment with a network whose interfaces know what they
    are, and nothing else."""
    experiment = experiments.get(name)
    cc, aqm = experiment.cc, experiment.aqm
    values = experiments.parse_settings(experiment, words, cc, aqm)
    job = experiments.job(experiment, cc, aqm, values, experiment.duration_s, 1)
    made = network_cases.CaseRun(dict(job, out_dir="/x", bin_dir="/x"))
    kind, parameters = made.job["topology"]
    made.topo = network.topology(kind)(aqm=made.job["aqm"], **parameters)
    made.net = {node: FakeNode(node) for node in made.topo.nodes()}
    for device, (node, end) in made.topo.ends().items():
        interface = object.__new__(topo.TollwayIntf)
        interface.name, interface.node = device, made.net[node]
        interface.params = {}
        interface.config(**{key: value for key, value in end.items()
                            if key in ("mtu", "rate_bps", "delay_ms", "aqm",
                                       "gso_max_segs", "packet_bytes",
                                       "ip_only", "segments")})
        made.net[node].nameToIntf[device] = interface
    return made


def case_of(made, name):
    return next(case for case in made.job["cases"] if case["name"] == name)


def prepare(made, name, monkeypatch):
    monkeypatch.setattr(made, "hosts", lambda: [])
    made.prepare_case(case_of(made, name))


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
