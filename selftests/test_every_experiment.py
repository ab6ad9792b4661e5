# SPDX-License-Identifier: GPL-2.0
"""Every experiment builds its network and carries data, for a moment: what they
measure is looked at elsewhere. The short form leaves some of them out."""

import json
import subprocess

import pytest

from tollwaylib import papers
from tollwaylib.paths import TOP

# In the lab these are aacc-static with other numbers in the words of programs, which
# test_aacc.py looks at.
LIKE_AACC_STATIC = ("aacc-loss", "aacc-theta", "aacc-rate")
# What the short form leaves out: other tests run them for longer, or others of these names
# have the same network and kinds of flows.
IN_OTHER_TESTS = ("double-bottleneck", "parking-lot", "steady-state", "single-bottleneck",
                  "pp-base", "pp-bench-3", "pp-burst")
LIKE_OTHERS = ("aacc-change", *(f"pp-bench-{number}" for number in (
    2, 4, 5, 6, 7, 8, 9)), "pp-receiver-two-way", "pp-receiver-video", "pp-video-told",
    "pp-window-public")
# price-laws has the network of parking-lot and no run of its own.
NAMES = [pytest.param(name, marks=pytest.mark.full if name in
                      IN_OTHER_TESTS + LIKE_OTHERS else ())
         for name, experiment in papers.EXPERIMENTS.items()
         if not experiment.only_compares and name not in LIKE_AACC_STATIC]


def test_names_of_what_is_left_out():
    assert {*IN_OTHER_TESTS, *LIKE_OTHERS, *LIKE_AACC_STATIC} < papers.EXPERIMENTS.keys()


@pytest.mark.parametrize("name", NAMES)
def test_a_moment_of(name, tmp_path):
    experiment = papers.EXPERIMENTS[name]
    words = ["--cc", experiment.cc, "--aqm", experiment.aqm, "--set",
             "warmup_s=0.5", "--duration", "3"]
    if experiment.cases:
        values = {key: value for key, (value, *_) in
                  experiment.parameters().items()}
        last = experiment.cases(values)[-1].name
        words += ["--set", f"only={last}", "--set", "start_jitter_s=0"]
    done = subprocess.run(
        [str(TOP / "scripts/tollway"), "run", name, *words, "--json", "-",
         "--out", str(tmp_path)], text=True, stdin=subprocess.DEVNULL,
        capture_output=True, check=False, timeout=600)
    # 1: a bound that a moment is too short for.
    assert done.returncode in (0, 1), done.stderr
    assert len(json.loads(done.stdout)["digest"]) == 64
    raw = json.loads((tmp_path / "seed-1/raw.json").read_text())
    flows = [flow for case in raw["cases"]
             for flow in case["flows"]]
    assert any(flow["final"].get("bytes_acked") or flow["final"].get("packets")
               for flow in flows)
