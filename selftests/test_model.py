# SPDX-License-Identifier: GPL-2.0
"""`tollway run --on model`: fluids that settle where the theory says."""

import dataclasses
import json
import math
import re
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tollwaylib import papers
from tollwaylib.components import aqm_words
from tollwaylib.results.fields import case_of
from tollwaylib.errors import RefusedError, TollwayError
from tollwaylib.experiments import jobs, plan
from tollwaylib.places import model
from tollwaylib.places.model import ModelPlace, flows_of
from tollwaylib.results import analysis, schema
from tollwaylib.theory import fairness, pricing, relative, simulation

TOLLWAY = Path(__file__).resolve().parents[1] / "scripts/tollway"
SETTING = simulation.Setting(form="log", kappa=0.1, target=10, gamma=0.015,
                             limit=1000)
WTPS = (100, 200, 400)


def course(capacity_pps, flows, duration_s, **changes):
    return simulation.simulate(capacity_pps, flows, dataclasses.replace(
        SETTING, **changes), duration_s, 0.1, 0.01)


def rate(flow, last_s=5):
    """packets/s over the last seconds."""
    count = round(last_s / 0.1)
    times, acked = flow["t_s"], flow["acked_pkts"]
    return (acked[-1] - acked[-1 - count]) / (times[-1] - times[-1 - count])


@pytest.mark.parametrize("form", simulation.FORMS)
@pytest.mark.parametrize("rtt_s", [0.02, 0.1])
def test_one_link_settles_where_the_theory_says(form, rtt_s):
    wtps = WTPS * 2
    links, flows = course({"R": 3000.0}, [(("R",), wtp, 0.0, 25.0, rtt_s)
                                          for wtp in wtps], 25, form=form)
    known = pricing.steady_state(3000.0, wtps, 10, 0.015, form)
    assert [rate(flow) for flow in flows] == pytest.approx(
        known["rates_pps"], rel=0.005)
    assert links["R"]["backlog_pkts"][-1] == pytest.approx(
        known["queue_pkts"], rel=0.005)
    sent, marks = (links["R"][key][-1] - links["R"][key][-500]
                   for key in ("packets", "marks"))
    assert marks / sent == pytest.approx(known["mark_probability"], rel=0.005)


def test_two_links_share_as_the_optimum():
    routes = (("a",), 0.006), (("b",), 0.034), (("a", "b"), 0.036)
    capacity = {"a": 3000.0, "b": 4000.0}
    flows = [(links, wtp, 0.0, 30.0, rtt_s) for links, rtt_s in routes
             for wtp in WTPS]
    links, courses = course(capacity, flows, 30)
    known, prices = fairness.wpf_solution(capacity, [
        (number, wtp, links) for number, (links, wtp, *_) in enumerate(flows)])
    assert [rate(one) for one in courses] == pytest.approx(
        list(known.values()), rel=0.01)
    for link, price in prices.items():
        assert links[link]["backlog_pkts"][-1] == pytest.approx(
            pricing.expected_backlog(10, 0.015, price), rel=0.01)


# --- the source relative over the law delay: the modules' defaults ---

def relative_course(capacity_pps, flows, duration_s, limit=10**6):
    return simulation.simulate(capacity_pps, flows, relative.RelativeSetting(
        delay_s=0.003, limit=limit), duration_s, 0.1, 0.01)


@pytest.mark.parametrize("capacity, rtt_s", [(8300.0, 0.02)] + [
    pytest.param(*cell, marks=pytest.mark.full) for cell in
    ((830.0, 0.02), (8300.0, 0.1), (830000.0, 0.02), (830000.0, 0.1))])
def test_relative_sources_settle_at_any_rate(capacity, rtt_s):
    """x = w/p with the price that fills the link, whatever its rate."""
    wtps = (25, 25, 50, 100)
    links, flows = relative_course({"R": capacity}, [
        (("R",), wtp, 0.0, 30.0, rtt_s) for wtp in wtps], 30)
    assert [rate(flow, 2) for flow in flows] == pytest.approx(
        [capacity * wtp / sum(wtps) for wtp in wtps], rel=0.01)
    seen = links["R"]
    sent, marks = (seen[key][-1] - seen[key][-200] for key in
                   ("packets", "marks"))
    assert marks / sent == pytest.approx(1 - math.exp(-sum(wtps) / capacity),
                                         rel=0.02)
    late_ms = 1e3 * np.array(seen["backlog_pkts"][-200:]) / capacity
    target_ms = max(3, 2e3 / capacity)
    assert late_ms.mean() == pytest.approx(target_ms, rel=0.4)
    assert not seen["drops"][-1]


@pytest.mark.full
def test_relative_sources_over_two_links():
    routes = (("a",), 0.006), (("b",), 0.034), (("a", "b"), 0.036)
    capacity = {"a": 3000.0, "b": 4000.0}
    flows = [(links, wtp, 0.0, 60.0, rtt_s) for links, rtt_s in routes
             for wtp in WTPS]
    links, courses = relative_course(capacity, flows, 60)
    known, prices = fairness.wpf_solution(capacity, [
        (number, wtp, links) for number, (links, wtp, *_) in enumerate(flows)])
    assert [rate(one) for one in courses] == pytest.approx(
        list(known.values()), rel=0.01)
    for link, price in prices.items():
        sent, marks = (links[link][key][-1] - links[link][key][-500]
                       for key in ("packets", "marks"))
        assert marks / sent == pytest.approx(1 - math.exp(-price), rel=0.01)


@pytest.mark.parametrize("rest_s", [1.0, 3.0, 14.0])
def test_a_rest_is_one_look_at_the_clock(rest_s):
    """The law looks with the next packet, and takes a rest for a second at most:
    three are added to the logarithm of the price, up to that of the first one."""
    queues = relative.RelativeSetting(0.003, 1000).queues(np.array([8300.0]))
    first, none = queues.log_price.copy(), np.zeros(1)
    for _ in range(3000):
        queues.price(none + 25, none + 8.3, 0.001)
    assert not queues.idle > 0.01
    queues.log_price[:] = before = first - 5
    for _ in range(round(rest_s / 0.001)):
        queues.price(none, none, 0.001)
    assert queues.log_price == before
    queues.price(none, none + 0.001, 0.001)
    # a takes 1/40 per second; marks of before count for less and less.
    assert before + 2.5 < queues.log_price < before + 3
    for _ in range(5):
        for _ in range(round(rest_s / 0.001)):
            queues.price(none, none, 0.001)
        queues.price(none, none + 0.001, 0.001)
    assert queues.log_price == pytest.approx(first, abs=0.03)


def test_constants_are_those_of_the_modules():
    """Of sch_sbrm and tcp_sbrm, as their sources have them."""
    top, found = TOLLWAY.parents[1], {}
    for path in ("sch_sbrm/sbrm_delay.c", "tcp_sbrm/sbrm_relative.c"):
        for name, value in re.findall(
                r"^#define (\w+)\s+\(?(\d+)(?:U|ULL)?(?: \* .+?\))?\s*(?:/\*.*)?$",
                (top / path).read_text(), re.MULTILINE):
            found[name] = int(value)
    assert {name: found[name] for name in (
        "DELAY_B", "DELAY_A_INVERSE", "DELAY_LEAD_HALVES", "DELAY_RISE", "DELAY_RISE_LATE",
        "DELAY_RISE_MAX", "DELAY_SLOW_NS", "DELAY_SLOW_PACKETS",
        "DELAY_RISE_FAST", "DELAY_RISE_FAST_LOG", "DELAY_SLOW_TARGET_NS",
        "DELAY_H_Q10", "DELAY_PACKETS", "DELAY_FIRST_MARKS",
        "RELATIVE_MARKS", "RELATIVE_ROUNDS", "RELATIVE_CUT_MAX",
        "RELATIVE_LATER_US", "RELATIVE_SLOW_MOST")} == {
            "DELAY_B": relative.B_PER_S,
            "DELAY_A_INVERSE": round(1 / relative.A_PER_S),
            "DELAY_LEAD_HALVES": 2 * relative.LEAD,
            "DELAY_RISE": relative.RISE_PER_S,
            "DELAY_RISE_LATE": relative.RISE_LATE,
            "DELAY_RISE_MAX": relative.RISE_MAX,
            "DELAY_SLOW_PACKETS": relative.SLOW_PKTS,
            "DELAY_RISE_FAST": relative.FAST,
            # In ln 2, and in ms.
            "DELAY_RISE_FAST_LOG": round(-math.log2(relative.FAST_PART)),
            "DELAY_SLOW_TARGET_NS": round(relative.SLOW_TARGET_S * 1e3),
            "DELAY_SLOW_NS": round(relative.SLOW_S * 1e3),
            "DELAY_H_Q10": round(relative.H * 1024),
            "DELAY_PACKETS": relative.PACKETS,
            "DELAY_FIRST_MARKS": relative.FIRST_MARKS_PER_S,
            "RELATIVE_MARKS": relative.MARKS,
            "RELATIVE_ROUNDS": relative.ROUNDS,
            "RELATIVE_CUT_MAX": round(relative.CUT_MAX * 2 ** 14),
            "RELATIVE_LATER_US": round(relative.LATER_S * 1e6),
            "RELATIVE_SLOW_MOST": relative.SLOW_RTT_MOST}


def test_the_course_does_not_depend_on_the_step(monkeypatch):
    flows = [(("R",), 100.0, 0.0, 8.0, 0.01), (("R",), 300.0, 3.0, 8.0, 0.04)]
    _, coarse = course({"R": 1000.0}, flows, 8)
    monkeypatch.setattr(simulation, "STEPS_PER_RTT", 40)
    monkeypatch.setattr(simulation, "LARGEST_STEP_S", 0.00025)
    _, fine = course({"R": 1000.0}, flows, 8)
    for one, other in zip(coarse, fine):
        assert one["t_s"] == pytest.approx(other["t_s"], abs=0.002)
        assert one["acked_pkts"][-1] == pytest.approx(other["acked_pkts"][-1],
                                                      rel=0.01)


def test_a_queue_keeps_what_it_has_room_for():
    """Sources that no mark reaches in time fill it, and nothing gets lost that
    is not counted."""
    links, flows = course({"R": 500.0}, [(("R",), 300.0, 0.0, 4.0, 0.2)] * 4,
                          4, limit=60, gamma=0.0001)
    seen = links["R"]
    assert max(seen["backlog_pkts"]) == 60 and seen["drops"][-1] > 0
    sent = sum(flow["acked_pkts"][-1] for flow in flows)
    assert seen["packets"][-1] <= 500 * 4 * 1.001
    # What is dropped is not acknowledged.
    assert sent == pytest.approx(seen["packets"][-1] + seen["backlog_pkts"][-1],
                                 rel=0.002)
    # Slow start doubles the window in a round trip while there is no mark.
    assert flows[0]["cwnd"][2] == pytest.approx(2.7, abs=0.3)


def test_flows_come_and_go():
    _, flows = course({"R": 2000.0}, [(("R",), 400.0, 0.0, 20.0, 0.02),
                                      (("R",), 400.0, 5.0, 12.0, 0.02)], 20)
    assert flows[1]["t_s"][0] == pytest.approx(5, abs=0.1)
    assert flows[1]["t_s"][-1] == pytest.approx(12, abs=0.1)
    assert rate(flows[0]) == pytest.approx(2000, rel=0.01)
    assert rate(flows[1], 1) == pytest.approx(1000, rel=0.01)


def job_of(name, *words, cc="sbrm", aqm="sbrm", **more):
    experiment = papers.get(name)
    return dict(jobs.job(experiment, cc, aqm, plan.parse_settings(
        experiment, list(words), cc, aqm), 12.0, 1), **more)


@pytest.mark.parametrize("name, words, options, says", [
    ("double-bottleneck", (), {"cc": "reno"}, "model of cc reno"),
    ("double-bottleneck", (), {"aqm": "rem"}, "model of aqm rem"),
    ("double-bottleneck", ("source=relative",), {},
     "aqm sbrm with source relative, only of delay"),
    ("double-bottleneck", ("source=vegas",), {}, "source vegas"),
    ("double-bottleneck", ("estimator=explicit",), {},
     "estimator explicit with source direct, only of log and raw"),
    ("double-bottleneck", ("kappa_window=9",), {}, "kappa_window"),
    ("single-bottleneck", ("model=http",), {}, "HTTP"),
    ("pp-base", (), {}, "flows other than those of sbrm that always "
     "have data"),
    ("double-bottleneck", (), {"trace": "hash"}, "no packets for --trace"),
    ("double-bottleneck", (), {"traffic": "iperf3"}, "no packets for")])
def test_what_is_not_modelled_is_refused(name, words, options, says):
    with pytest.raises(RefusedError, match=says):
        flows_of(job_of(name, *words, **options))


def test_words_of_a_queue_are_as_good_as_its_name():
    words = aqm_words("sbrm", plan.parse_settings(
        papers.get("double-bottleneck"), [], "sbrm", "sbrm"))
    assert flows_of(job_of("double-bottleneck", aqm=words))
    with pytest.raises(RefusedError, match="no model of aqm sbrm limit 1000 "):
        flows_of(job_of("double-bottleneck", aqm=words.replace(
            "mark sbrm target", "mark sbrm target 1", 1)))


@pytest.mark.parametrize("name", [
    "any-rate", "double-bottleneck", "parking-lot", "single-bottleneck",
    "steady-state", "price-laws", "pp-bench-1"])
def test_what_is_no_model_of_packet_pair_is_refused(name):
    with pytest.raises(RefusedError, match="no model of packet pair"):
        flows_of(job_of(name, cc="pp", aqm="fq_rr"))


def test_a_model_can_be_stopped(tmp_path):
    place = ModelPlace()
    timer = threading.Timer(0.5, place.stop)
    timer.start()
    started = time.monotonic()
    with pytest.raises(TollwayError, match="the simulation was stopped"):
        job = job_of("steady-state")
        job["cases"][0].update(duration_s=1e5)
        place.run(job, tmp_path, 0, print)
    assert time.monotonic() - started < 60


@pytest.mark.parametrize("name, cc, aqm", [
    ("steady-state", "sbrm", "sbrm"), ("pp-probing", "pp", "fq_rr")])
def test_a_model_has_a_time_limit(tmp_path, monkeypatch, name, cc, aqm):
    """One for the fluid of prices, and one for that of packet pair."""
    monkeypatch.setattr(model, "WALL_S", 0.5)
    job = job_of(name, cc=cc, aqm=aqm)
    job["cases"][0].update(duration_s=1e5)
    with pytest.raises(TollwayError, match="the simulation did not finish within 0.5 s"):
        ModelPlace().run(job, tmp_path, 0, print)


def test_several_jobs_at_the_same_time(tmp_path):
    """They have the same numbers as one after another."""
    for number in (1, 2):
        done = run("double-bottleneck", "--duration", 12, "--repeat", 2, "-j", number,
                   "--out", tmp_path / str(number))
        assert done.returncode == 0, done.stderr
    for seed in (1, 2):
        one, other = (json.loads((tmp_path / f"{number}/seed-{seed}/result.json").read_text())
                      for number in (1, 2))
        assert one["digest"] == other["digest"]


def run(*words):
    return subprocess.run([str(TOLLWAY), "run", *map(str, words), "--on",
                           "model"], text=True, capture_output=True,
                          check=False)


def test_the_command(tmp_path):
    done = run("double-bottleneck", "--duration", 12, "--repeat", 2, "--out",
               tmp_path)
    assert done.returncode == 0, done.stderr
    assert "a fluid model without a kernel" in done.stderr
    assert "class means against fair shares, mean over seeds  holds" in done.stdout
    assert "verdicts hold." in done.stdout
    assert (tmp_path / "index.html").is_file()
    results = [json.loads((tmp_path / f"seed-{seed}/result.json").read_text())
               for seed in (1, 2)]
    for result in results:
        schema.validate(result)
        assert result["parameters"]["place"] == "model"
        assert result["provenance"]["kernel"].startswith("none")
        # What a fluid has not is absent.
        assert {flow["retransmits"] for flow in case_of(result)["flows"]} == {None}
        assert all(flow["rtt_mean_ms"] > 6 for flow in case_of(result)["flows"])
    # Seeds are other start times, and the same seed is the same course.
    assert results[0]["digest"] != results[1]["digest"]
    again = run("double-bottleneck", "--duration", 12, "--json", "-", "--out",
                tmp_path / "again")
    assert json.loads(again.stdout)["digest"] == results[0]["digest"]
    # It is kept apart from what is measured.
    raw = json.loads((tmp_path / "seed-1/raw.json").read_text())
    assert analysis.analyse(raw)["digest"] == results[0]["digest"]


def cells_of(done):
    """{case: {metric: value}} of the result of a run."""
    result = json.loads(done.stdout)
    schema.validate(result)
    return {case["name"]: case["metrics"] for case in result["cases"]}


def test_a_file_of_ones_own(tmp_path):
    """Six links, each with a price of its own, and the shares of WPF."""
    done = run(TOLLWAY.parents[1] / "examples/chain.py", "--cc", "sbrm", "--aqm",
               "delay", "--duration", 12, "--json", "-", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    (found,) = cells_of(done).values()
    for link in range(1, 7):
        assert found[f"utilization L{link}"] > 0.99
    assert max(value for name, value in found.items()
               if name.startswith("share_error")) < 0.02
    # The long path pays at six links, c at the fastest one alone.
    assert 1.3 < found["goodput_mbit long"] < 1.8
    assert found["goodput_mbit c"] > 20


@pytest.mark.parametrize("old, new, says", [
    ('"rate": rate', '"queue": "codel", "rate": rate', "different queues"),
    ('"count": 2', '"count": 2, "bytes": "1MB"', "always have data"),
    ('for name in paths]\n\ncc', 'for name in paths]\n'
     'flows += [{"path": "a", "udp": "1Mbit"}]\n\ncc', "always have data"),
    ('"count": 2', '"count": 2, "cc": "cubic"', "always have data"),
    ('("utilization", name)', '("retransmits", "long")',
     "a fluid has no retransmissions"),
    ('cc = "sbrm"', 'cc = "sbrm"\nsettings = {"kappa_window": 9}',
     "kappa_window"),
    ('cc = "sbrm"', 'cc = "sbrm"\nsettings = {"phi": 10}', "phi"),
    ('cc = "sbrm"', 'cc = "sbrm"\nsettings = {"edge_mbit": 1}',
     "hosts whose links are slower"),
    ('cc = "sbrm"', 'cc = "sbrm"\nsettings = {"delay_ms": 500}',
     "less than the target"),
    ('"delay": "2ms"', '"delay": "0ms"', "a round trip below 0.1 ms"),
    ('for name in paths]\n\ncc', 'for name in paths]\n'
     'links["back"] = {"from": "n2", "to": "n1", "rate": "1Mbit"}\n'
     'paths["back"] = {"links": ["back"], "rtt": "4ms"}\n'
     'flows += [{"path": "back"}]\n\ncc', "both directions"),
    ('"count": 2', '"count": 2, "start": "15s"', "a case without flows")])
def test_of_a_file_too_what_is_not_modelled_is_refused(tmp_path, old, new, says):
    text = (TOLLWAY.parents[1] / "examples/chain.py").read_text()
    assert old in text
    file = tmp_path / "chain.py"
    file.write_text(text.replace(old, new))
    done = run(file, "--cc", "sbrm", "--aqm", "delay", "--duration", 12, "--out",
               tmp_path / "out")
    assert done.returncode == 2 and says in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1 and not (tmp_path / "out").exists()


def test_any_rate_has_a_model(tmp_path):
    cell = "10000 Mb/s, 20 ms, 4 flows"
    done = run("any-rate", "--scale", "many", "--cc", "sbrm", "--aqm", "delay",
               "--duration", 10, "--set", f"only={cell}", "--json", "-", "--out",
               tmp_path)
    assert done.returncode == 0, done.stdout
    assert cells_of(done)[cell]["utilization"] > 0.98


@pytest.mark.full
def test_any_rate_holds_over_the_grid(tmp_path):
    """All but the starts whose initial windows are larger than the path, and
    what is left of those of 36 flows on 10 Mb/s."""
    done = run("any-rate", "--scale", "many", "--cc", "sbrm", "--aqm", "delay",
               "--json", "-", "--out", tmp_path)
    assert len(cells_of(done)) == 58
    failed = {bound["name"].rpartition(": ")[::2] for bound in
              json.loads(done.stdout)["bounds"] if bound["verdict"] == "fails"}
    start = "longest delay in the first 3 s, ms"
    assert {cell for cell, what in failed if what != start} == {
        "10 Mb/s, 200 ms, 36 flows"}
    assert {cell for cell, what in failed if what == start} == {
        *(f"1 Mb/s, {rtt_ms} ms, 1 flow" for rtt_ms in (5, 20)),
        *(f"10 Mb/s, {rtt_ms} ms, 36 flows" for rtt_ms in (5, 20, 100, 200)),
        *(f"100 Mb/s, {rtt_ms} ms, 36 flows" for rtt_ms in (5, 20))}


def test_a_comparison_is_refused_before_it_is_run(tmp_path):
    done = run("double-bottleneck", "--set", "setup=paper", "--out",
               tmp_path / "out")
    assert done.returncode == 2 and not (tmp_path / "out").exists()
    assert done.stderr == "tollway: --on model: there is no model of cc reno, " \
        "only of sbrm\n"


@pytest.mark.full
@pytest.mark.parametrize("name", ["parking-lot", "double-bottleneck-dynamics",
                                  "steady-state"])
def test_other_experiments(name, tmp_path):
    done = run(name, "--json", "-", "--out", tmp_path)
    assert done.returncode in (0, 1), done.stderr
    result = json.loads(done.stdout)
    assert all(abs(group["error"]) < 0.025 for group in
               case_of(result).get("intervals", [case_of(result)])[0]["classes"])
    failed = [bound["name"] for bound in result["bounds"]
              if bound["verdict"] == "fails"]
    # A fluid has no marks by chance that make room before flows leave.
    assert all(one.startswith("utilisation of R3, interval") for one in failed)
