# SPDX-License-Identifier: GPL-2.0
"""The experiments of ALPHA: what is run, and what is measured of rate cycles."""

import pathlib
import sys

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "scripts"))

from tollwaylib import papers  # noqa: E402
from tollwaylib.experiments import jobs, plan  # noqa: E402
from tollwaylib.papers.alpha_second_order import FILE_KBYTES, Scale  # noqa: E402
from tollwaylib.results.measurements import CaseData  # noqa: E402
from tollwaylib.results.metrics import KINDS  # noqa: E402
from tollwaylib.theory.rate_cycle import RateCycle  # noqa: E402

NAMES = [name for name in papers.EXPERIMENTS if name.startswith("alpha-")]
GAIN = "net.ipv4.tcp_alpha.gain"


def job(name, cc="alpha", aqm="alpha", words=()):
    experiment = papers.get(name)
    values = plan.parse_settings(experiment, words, cc, aqm)
    return jobs.job(experiment, cc, aqm, values, experiment.duration_s, 1)


# --- what is run -------------------------------------------------------------

def test_times_and_gains_are_the_papers_times_s():
    """s = 367/12: what mu tau, mu Delta and alpha tau^2 are stays as it is."""
    scale = Scale(367)
    assert scale.pps == 12000
    assert scale.rtt_ms(2) * 12 == pytest.approx(2 * 367, rel=1e-4)
    for alpha in (8.7, 14.7, 17.7, 91.6):
        assert scale.gain(alpha) * scale.seconds(2) ** 2 == \
            pytest.approx(alpha * 2 ** 2, rel=1e-3)
    assert scale.rate(30) / 12000 == pytest.approx(30 / 367, rel=1e-3)


def test_three_connections_of_section_vi():
    made = job("alpha-connections")
    assert [case["name"] for case in made["cases"]] == [
        f"{room}, {kind}" for room in ("I", "II")
        for kind in ("alpha", "constant", "share")]
    assert made["sink_cc"] == "alpha"
    for case in made["cases"]:
        assert [flow["start_s"] for flow in case["flows"]] == [
            0, pytest.approx(7.49, abs=0.01), pytest.approx(21.71, abs=0.01)]
        assert [flow["sysctls"][GAIN] for flow in case["flows"]] == [
            9301, 15716, 18924]
        assert case["duration_s"] == pytest.approx(30.58, abs=0.01)
        room = 800 if case["name"].startswith("I,") else 400
        assert f"limit {room} mark alpha high 50 goal 300 feedback two-bit" \
            in case["aqm"]
    constant = made["cases"][1]["sysctls"]
    assert constant["net.ipv4.tcp_alpha.gip"] == 0
    assert constant["net.ipv4.tcp_alpha.gdp"] == "1.000000"
    assert made["sysctls"]["net.ipv4.tcp_alpha.gip"] == 3100
    assert made["sysctls"]["net.ipv4.tcp_alpha.losses"] == "1.000000"


def test_files_of_table_ii_have_as_many_cells():
    made = job("alpha-files")
    assert len(made["cases"]) == 40
    sizes = {case["x"]: case["flows"][0]["packets"] for case in made["cases"]}
    assert list(sizes) == sorted(map(float, FILE_KBYTES), reverse=True)
    assert sizes[1700] == round(1700e3 / 53)
    for case in made["cases"]:
        # No transfer of Table II would be cut off.
        assert case["duration_s"] > 0.121 * case["x"] / 1.7 * 30.58 / 1000


def test_figures_7_and_8_are_compared_with_the_fluid():
    bounds = {bound["name"]: bound for bound in job("alpha-loss")["bounds"]}
    assert "mean largest queue of a cycle (566 by equation (8)), at most" in bounds
    assert "mean drops of a cycle (166 by equation (16)), at most" in bounds
    assert all(bound["value"] == 0 for name, bound in bounds.items()
               if "(0 by equation (16))" in name)


@pytest.mark.parametrize("name", NAMES)
def test_cases_have_names_of_their_own(name):
    made = job(name)
    names = [case["name"] for case in made["cases"]]
    assert len(set(names)) == len(names)
    known = {metric["key"] for metric in made["metrics"]}
    for bound in made["bounds"]:
        assert bound["case"] in names and bound["metric"] in known


# --- what is measured --------------------------------------------------------

def case_data(backlog, drops=None, gains=((256.0,) * 16,)):
    """A case with a queue sampled once a second, and flows with gains in the unit
    that sources report, packets/s per ms in 1/256."""
    times = list(range(len(backlog)))
    raw = {"paths": {"1": {"links": ["R1"]}}, "mss_bytes": 1000, "links": {
        "R1": {"capacity_bps": 96e6}}, "parameters": {
            "packet_bytes": 1000, "warmup_s": 0.0, "high": 50}}
    flows = [{"id": number, "path": "1", "cc": "alpha", "role": "source", "start_s": 0.0, "stop_s": 100.0,
              "name": str(number), "final": {"bytes_acked": 5000,
                                             "retransmits": 3},
              "samples": {"t_s": times, "bytes_acked": [0] * len(times),
                          "cc_pacing_gain": values}}
             for number, values in enumerate(gains)]
    return CaseData(raw, {
        "name": "one", "flows": flows, "duration_s": float(len(backlog) - 1),
        "values": {}, "queues": {"R1": {
            "t_s": times, "backlog_pkts": backlog,
            "drops": drops or [0] * len(backlog),
            "bytes": [0] * len(backlog)}}})


def measured(data, kind, **words):
    return KINDS[kind](data, {"link": "R1", **words})


# Three cycles, with 0, 4 and 2 drops; it stays above 25 before the second.
QUEUE = [0, 51, 90, 40, 20, 60, 200, 180, 26, 70, 20, 0, 55, 120, 10, 60]
DROPS = [0, 0, 0, 0, 0, 0, 1, 4, 4, 4, 4, 4, 4, 6, 6, 6]


def test_a_cycle_is_from_high_to_half_of_it():
    data = case_data(QUEUE, DROPS)
    assert measured(data, "cycles") == 3
    assert measured(data, "cycle_first") == 90
    assert [measured(data, f"cycle_{which}") for which in
            ("least", "most")] == [90, 200]
    assert measured(data, "cycle_mean") == pytest.approx(410 / 3)
    assert measured(data, "cycle_drops") == 2
    assert measured(data, "cycle_least", skip=1) == 120
    assert measured(data, "drops_after", skip=2) == 2
    assert measured(data, "cycle_most", skip=3) is None


def test_cycles_begin_and_end_in_the_window():
    """What was in progress as it began, or is as it ends, is none of it."""
    data = case_data(QUEUE, DROPS)
    assert measured(data, "cycles", from_s=2) == 2
    assert measured(data, "cycle_first", from_s=2) == 200
    assert measured(data, "cycles", to_s=9) == 1
    assert measured(data, "cycle_mean", from_s=11, to_s=12) is None


def test_gains_are_in_the_unit_of_the_paper():
    """12 packets/ms for 184: s is 15.33, and a packet/s^2 is 235e-6 of the
    paper's packets/ms^2."""
    first, second = [256.0] * 16, [512.0] * 8 + [768.0] * 8
    data = case_data(QUEUE, gains=(first, second))
    unit = 1e3 * 1e-6 * (184 / 12) ** 2
    assert measured(data, "gain_least", mu=184) == pytest.approx(3 * unit)
    assert measured(data, "gain_most", mu=184) == pytest.approx(4 * unit)
    assert measured(data, "gain_jain") == pytest.approx(16 / 2 / 10)
    assert measured(case_data(QUEUE, gains=([0] * 16,)), "gain_jain") is None


def test_theory_is_beside_what_is_measured():
    """Of the same case, whatever the units."""
    data = case_data(QUEUE)
    scale = Scale(367)
    data.values.update(rtt_ms=scale.rtt_ms(3.2), gain=scale.gain(22), limit=400)
    there = RateCycle(367, 3.2, 22, 50, 25)
    for kind, due in (("largest", there.largest_queue),
                      ("drops", there.lost(400)), ("loss", there.loss(400))):
        assert measured(data, f"fluid_{kind}") == pytest.approx(due, rel=1e-3)


def test_what_was_received_and_sent_again():
    data = case_data(QUEUE, gains=([256.0] * 16,) * 2)
    assert measured(data, "received") == 10
    assert measured(data, "resent_kbytes", bytes=53) == \
        pytest.approx(6 * 53 / 1000)
    assert np.isclose(measured(data, "received", role="source"), 10)
