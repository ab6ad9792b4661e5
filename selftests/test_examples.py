# SPDX-License-Identifier: GPL-2.0
"""The files in examples/: each one runs."""

import json
import pathlib
import re
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "scripts"))

from tollwaylib import papers  # noqa: E402
from tollwaylib.experiments import jobs, plan  # noqa: E402
from tollwaylib.paths import TOP  # noqa: E402

EXAMPLES = sorted((TOP / "examples").glob("*.py"))


def job(experiment, cc, aqm):
    """What a run of the experiment is asked to do."""
    values = plan.parse_settings(experiment, [], cc, aqm)
    return jobs.job(experiment, cc, aqm, values, experiment.duration_s, 1)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_variants_of_an_example_are_jobs(path):
    experiment = papers.get(str(path))
    values = plan.parse_settings(experiment, [], with_setup=False)
    variants = plan.variants(experiment, values)
    assert len(variants) > 1
    for variant in variants:
        assert job(experiment, variant.cc, variant.aqm)["cases"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path, tmp_path):
    """For a moment of its own queue and control."""
    experiment = papers.get(str(path))
    last = job(experiment, experiment.cc, experiment.aqm)["cases"][-1]["name"]
    done = subprocess.run(
        [str(TOP / "scripts/tollway"), "run", str(path), "--cc",
         experiment.cc, "--aqm", experiment.aqm, "--duration", "7", "--set",
         "warmup_s=5.5", *(("--set", f"only={last}") if experiment.cases else ()),
         "--json", "-", "--out", str(tmp_path)], text=True,
        stdin=subprocess.DEVNULL, capture_output=True, check=False,
        timeout=600)
    assert done.returncode in (0, 1), done.stderr
    (case,) = json.loads(done.stdout)["cases"]
    idle = {name: value for name, value in case["metrics"].items()
            if name.startswith("utilization") and not value > 0.5
            or name.startswith("goodput") and not value > 0}
    assert not idle
    raw = json.loads((tmp_path / "seed-1/raw.json").read_text())
    for flow in raw["cases"][0]["flows"]:
        if flow["cc"]:
            continue
        # All but what is on its way.
        came = flow["arrivals"]
        assert came["t_s"] == sorted(set(came["t_s"]))
        assert 0.9 < came["bytes"][-1] / flow["final"]["bytes"] <= 1


def both_ways(tmp_path, cc, aqm, only):
    """The cases of examples/both-ways.py whose names contain `only`, which must hold."""
    done = subprocess.run(
        [str(TOP / "scripts/tollway"), "run", str(TOP / "examples/both-ways.py"),
         "--cc", cc, "--aqm", aqm, "--set", f"only={only}", "--json", "-",
         "--out", str(tmp_path)], text=True, stdin=subprocess.DEVNULL,
        capture_output=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)["cases"]


def test_both_directions_of_a_line_stay_full(tmp_path):
    """Their queues do not take turns (DELAY_LEAD_HALVES of sch_sbrm/sbrm_delay.c): without
    that, one flow in each direction had 95 %, and 13 ms at the 99th percentile."""
    cases = both_ways(tmp_path, "sbrm", "delay", "Mbit-1")
    assert len(cases) == 2
    for case in cases:
        for link in ("up", "down"):
            assert case["metrics"][f"drops {link}"] == 0
            assert case["metrics"][f"delay_p99_ms {link}"] <= 12


def test_ten_packets_of_each_flow_of_pp_wait(tmp_path):
    """As the module comes. A setpoint that is probed, as in PP94, made it 500 ms."""
    (case,) = both_ways(tmp_path, "pp", "fq_rr", "10Mbit-8")
    for link in ("up", "down"):
        assert case["metrics"][f"drops {link}"] == 0
        assert case["metrics"][f"delay_mean_ms {link}"] <= 8 * 10.5 * 1.2112


def test_the_manual_page_shows_one_whole():
    page = (TOP / "tools/man/tollway.1").read_text()
    (text,) = re.findall(r"examples/ \):\n\.P\n\.EX\n(.*?)\n\.EE\n", page, re.S)
    shown = "\n".join(line.removeprefix("\\&") for line in
                      text.replace("\\-", "-").splitlines())
    assert shown + "\n" == (TOP / "examples/home.py").read_text()


def test_there_are_four_examples():
    assert {path.stem for path in EXAMPLES} == {
        "both-ways", "chain", "dumbbell", "home"}
