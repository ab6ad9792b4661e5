# SPDX-License-Identifier: GPL-2.0
"""The cases of any-rate: links, sources and bounds from 1 Mb/s to 1 Gb/s."""

import pytest
from cases_bench import job

from tollwaylib.guest import topologies
from tollwaylib.papers.any_rate import JOIN, LEAVE, VARIANTS
from tollwaylib.results.fields import case_of


def any_rate(cc="sbrm", aqm="delay", **keywords):
    return job("any-rate", cc, aqm, **keywords)


def link_of(made, case):
    """(bit/s, ms of the round trip) of the link in a case."""
    built = topologies.Built(aqm="sbrm", **(case["network"] or made["topology"]))
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
    built = topologies.Built(aqm="sbrm", **made["topology"])
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
