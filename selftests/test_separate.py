# SPDX-License-Identifier: GPL-2.0
"""tollway run --separate: cases as jobs of their own, with the fluid model."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
TOLLWAY = HERE.parent / "scripts/tollway"
CASES = 4


def run(out_dir, *words):
    """Run the experiment with four cases; the finished process."""
    return subprocess.run(
        [sys.executable, TOLLWAY, "run", "pp-law", "--on", "model", "--duration",
         "5", "--out", out_dir, *words], text=True, capture_output=True,
        check=False)


def load(path):
    return json.loads(path.read_text())


def parts(out_dir):
    return {path: path.stat().st_mtime_ns
            for path in out_dir.rglob("part.json")}


@pytest.fixture(scope="module")
def separate(tmp_path_factory):
    """The results of all cases, each as a job of its own."""
    out_dir = tmp_path_factory.mktemp("separate") / "whole"
    done = run(out_dir, "--separate", "-j", "2")
    assert done.returncode in (0, 1), done.stderr
    assert f"{CASES} of {CASES} runs done" in done.stderr
    return out_dir


def test_a_result_is_that_of_all_cases(separate, tmp_path):
    together = tmp_path / "together"
    assert run(together).returncode in (0, 1)
    found, wanted = (load(place / "seed-1/result.json")
                     for place in (separate, together))
    assert [case["name"] for case in found["cases"]] == \
        [case["name"] for case in wanted["cases"]]
    assert len(found["cases"]) == CASES == len(parts(separate))
    assert {bound["name"]: bound["verdict"] for bound in found["bounds"]} == \
        {bound["name"]: bound["verdict"] for bound in wanted["bounds"]}
    assert found["provenance"]["separate"] is True
    assert "separate" not in wanted["provenance"]
    # One directory is one result, however many parts it has.
    shown = subprocess.run([sys.executable, TOLLWAY, "table", separate], text=True,
                           check=True, stdout=subprocess.PIPE).stdout
    assert {line.split(",")[1] for line in shown.splitlines()[1:]} == {"seed-1"}


def test_a_case_does_not_depend_on_the_others(separate, tmp_path):
    alone = tmp_path / "alone"
    name = load(separate / "seed-1/result.json")["cases"][-1]["name"]
    assert run(alone, "--separate", "--set", f"only={name}").returncode in (0, 1)
    found, = (case for case in load(separate / "seed-1/raw.json")["cases"]
              if case["name"] == name)
    case, = load(alone / "seed-1/raw.json")["cases"]
    assert case == found


def test_what_is_there_is_not_made_again(separate, tmp_path):
    before = parts(separate)
    result = separate / "seed-1/result.json"
    kept = load(result)
    lost = sorted(before)[1]
    lost.unlink()
    result.unlink()
    done = run(separate, "--separate", "--resume")
    assert done.returncode in (0, 1), done.stderr
    after = parts(separate)
    assert {path for path in after if after[path] != before[path]} == {lost}
    assert load(result)["cases"] == kept["cases"]
    assert load(result)["digest"] == kept["digest"]
    # All parts, and no result: nothing is run.
    result.unlink()
    assert run(separate, "--separate", "--resume").returncode in (0, 1)
    assert parts(separate) == after
    assert load(result)["digest"] == kept["digest"]


def test_results_of_both_kinds_do_not_mix(separate):
    before = parts(separate)
    done = run(separate, "--resume")
    assert done.returncode == 2
    assert "another run (job.separate" in done.stderr
    assert parts(separate) == before


def test_without_resume_all_is_made_again(separate):
    before = parts(separate)
    assert run(separate, "--separate").returncode in (0, 1)
    after = parts(separate)
    assert after.keys() == before.keys()
    assert not any(after[path] == before[path] for path in after)


MANY = '''
links = {"core": {"from": "a", "to": "b", "rate": "8Mbit"}}
paths = {"p": {"links": ["core"], "rtt": "20ms"}}
flows = [{"path": "p"}]
cases = {f"{_kbit}k-{_n}": {"links": {"core": {"rate": f"{_kbit}kbit"}},
                            "flows": {"p": _n}, "x": _kbit, "series": f"{_n} flows"}
         for _kbit in range(2000, 12000, 200) for _n in (1, 2, 3, 4)}
cc = "sbrm"
queue = "delay"
duration = "1s"
metrics = [("utilization", "core"), ("queue_mean", "core"), ("goodput_mbit", "p")]
'''
MANY_CASES, KILLS = 200, 10


@pytest.mark.full
def test_many_cases_survive_kills(tmp_path):
    """200 cases, killed at ten random moments and resumed, give the same table as
    when they are not."""
    (tmp_path / "many.py").write_text(MANY)
    numbers = random.Random(int(os.environ.get("TOLLWAY_SEED", "1")))

    def started(out):
        return subprocess.Popen(
            [TOLLWAY, "run", "many.py", "--on", "model", "--separate", "--resume",
             "-j", "2", "--out", out], cwd=tmp_path, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True)

    def table(out):
        return subprocess.run([TOLLWAY, "table", out], cwd=tmp_path, text=True,
                              check=True, stdout=subprocess.PIPE).stdout

    begun = time.monotonic()
    assert started("whole").wait() == 0
    took_s = time.monotonic() - begun
    counts = []
    for _ in range(KILLS):
        process = started("killed")
        time.sleep(numbers.uniform(0.1, 1.7) * took_s / KILLS)
        # Unless it was done before.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        counts.append(len(parts(tmp_path / "killed")))
    print(f"{took_s:.0f} s, cases after each kill: {counts}")
    assert counts == sorted(counts) and 0 < counts[-1]
    assert started("killed").wait() == 0
    assert len(parts(tmp_path / "killed")) == MANY_CASES
    assert table("killed") == table("whole") != ""
    found, wanted = (load(tmp_path / out / "seed-1/result.json")
                     for out in ("killed", "whole"))
    assert found["cases"] == wanted["cases"]
    assert found["digest"] == wanted["digest"]
