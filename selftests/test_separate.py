# SPDX-License-Identifier: GPL-2.0
"""Cases of a run are jobs of their own: with the fluid model, and in the lab. For the
host see lab/guest_host.py."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tollwaylib.experiments import own
from tollwaylib.runs import runner
from tollwaylib.runs import separate as separate_cases

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
    # Not rglob(), which looks into directories that a run may be removing.
    return {path: path.stat().st_mtime_ns
            for path in out_dir.glob("seed-*/cases/*/part.json")}


@pytest.fixture(scope="module")
def separate(tmp_path_factory):
    """The results of all cases."""
    out_dir = tmp_path_factory.mktemp("separate") / "whole"
    done = run(out_dir, "-j", "2")
    assert done.returncode in (0, 1), done.stderr
    assert f"{CASES} of {CASES} cases done" in done.stderr
    return out_dir


def test_a_result_is_that_of_all_cases(separate):
    found = load(separate / "seed-1/result.json")
    assert [case["name"] for case in found["cases"]] == \
        [case["name"] for case in load(separate / "seed-1/job.json")["cases"]]
    assert len(found["cases"]) == CASES == len(parts(separate))
    assert found["provenance"]["separate"] is True
    page = (separate / "index.html").read_text()
    assert "seed-1/cases/004/job.json" in page
    # One directory is one result, however many parts it has.
    shown = subprocess.run([sys.executable, TOLLWAY, "table", separate], text=True,
                           check=True, stdout=subprocess.PIPE).stdout
    assert {line.split(",")[1] for line in shown.splitlines()[1:]} == {"seed-1"}


def test_a_case_does_not_depend_on_the_others(separate, tmp_path):
    alone = tmp_path / "alone"
    name = load(separate / "seed-1/result.json")["cases"][-1]["name"]
    assert run(alone, "--set", f"only={name}").returncode in (0, 1)
    found, = (case for case in load(separate / "seed-1/raw.json")["cases"]
              if case["name"] == name)
    case, = load(alone / "seed-1/raw.json")["cases"]
    assert case == found


def test_what_is_there_is_not_made_again(separate):
    before = parts(separate)
    result = separate / "seed-1/result.json"
    kept = load(result)
    lost = sorted(before)[1]
    lost.unlink()
    result.unlink()
    # What a kill leaves of a file that was being written.
    left = separate / "seed-1/tmp1.tmp"
    left.write_text("{")
    done = run(separate, "--resume")
    assert done.returncode in (0, 1), done.stderr
    assert "3 of 4 cases exist already" in done.stderr
    after = parts(separate)
    assert {path for path in after if after[path] != before[path]} == {lost}
    assert load(result)["cases"] == kept["cases"]
    assert load(result)["digest"] == kept["digest"]
    assert not left.exists()
    # All parts, and no result: nothing is run.
    result.unlink()
    assert run(separate, "--resume").returncode in (0, 1)
    assert parts(separate) == after
    assert load(result)["digest"] == kept["digest"]


def test_cases_that_ran_one_after_another_do_not_mix(separate):
    """As earlier versions ran them everywhere."""
    path, before = separate / "seed-1/job.json", parts(separate)
    made = path.read_text()
    job = json.loads(made)
    del job["separate"]
    path.write_text(json.dumps(job))
    done = run(separate, "--resume")
    assert done.returncode == 2
    assert "another run (job.separate" in done.stderr
    assert parts(separate) == before
    path.write_text(made)


def test_without_resume_all_is_made_again(separate):
    before = parts(separate)
    assert run(separate).returncode in (0, 1)
    after = parts(separate)
    assert after.keys() == before.keys()
    assert not any(after[path] == before[path] for path in after)


MANY = '''
links = {"core": {"from": "a", "to": "b", "rate": "8Mbit"}}
paths = {"p": {"links": ["core"], "rtt": "20ms"}}
flows = [{"path": "p"}]
cases = {f"{_kbit}k-{_n}": {"links": {"core": {"rate": f"{_kbit}kbit"}},
                            "flows": {"p": _n}, "x": _kbit, "series": f"{_n} flows"}
         for _kbit in range(2000, 12000, STEP) for _n in (1, 2, 3, 4)}
cc = "sbrm"
queue = "delay"
duration = "50ms"
metrics = [("utilization", "core"), ("queue_mean", "core"), ("goodput_mbit", "p")]
'''
# Of the short form; the extended one has 200.
MANY_CASES = 40


def many(cases=MANY_CASES):
    """The text of an experiment with so many cases."""
    return MANY.replace("STEP", str(40000 // cases))


def started(out, *words, cases=MANY_CASES):
    """The run of many cases, as a process in a session of its own."""
    (out.parent / "many.py").write_text(many(cases))
    return subprocess.Popen(
        [sys.executable, TOLLWAY, "run", "many.py", "--on", "model", "--set",
         "start_jitter_s=0.005", "--out", out, *words], cwd=out.parent, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, start_new_session=True)


def ended(process):
    """The status and what was said; no process is left of its session."""
    said = process.communicate(timeout=300)[1]
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    return process.returncode, said


def until_parts(process, out, count):
    """Wait until so many cases are kept."""
    while len(parts(out)) < count:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)


def tables(out):
    """All numbers, and what there is: no file is left of what was killed."""
    shown = subprocess.run([sys.executable, TOLLWAY, "table", out], text=True,
                           check=True, stdout=subprocess.PIPE).stdout
    return shown, sorted(str(path.relative_to(out)) for path in out.rglob("*"))


@pytest.mark.parametrize("cases, kills", [
    (MANY_CASES, 3), pytest.param(200, 10, marks=pytest.mark.full)])
def test_many_cases_survive_kills(cases, kills, tmp_path):
    """Killed at random moments and resumed, they give the same table as when they
    are not, byte for byte."""
    numbers = random.Random(int(os.environ.get("TOLLWAY_SEED", "1")))
    whole, out, before, counts = tmp_path / "whole", tmp_path / "killed", {}, []
    status, said = ended(started(whole, cases=cases))
    assert status == 0 and len(parts(whole)) == cases, said
    assert len(tables(whole)[0].splitlines()) > cases
    for _ in range(kills):
        process = started(out, "--resume", cases=cases)
        # After some more cases or during the start; and in the middle of one.
        until_parts(process, out, min(
            len(before) + numbers.randint(0, 3 * cases // (2 * kills)), cases - 10))
        time.sleep(numbers.uniform(0, 0.1))
        os.killpg(process.pid, signal.SIGKILL)
        assert ended(process)[0] == -signal.SIGKILL
        now = parts(out)
        assert {path: now.get(path) for path in before} == before
        before = now
        counts.append(len(now))
    assert 0 < counts[-1] < cases, counts
    status, said = ended(started(out, "--resume", cases=cases))
    assert status == 0, said
    assert f"{counts[-1]} of {cases} cases exist already" in said
    assert {path: parts(out).get(path) for path in before} == before
    result, expected = (load(each / "seed-1/result.json") for each in (out, whole))
    assert (tables(out), result["cases"], result["digest"]) == \
        (tables(whole), expected["cases"], expected["digest"])


def test_an_interrupt_loses_one_case(tmp_path):
    out = tmp_path / "interrupted"
    process = started(out)
    until_parts(process, out, 20)
    process.send_signal(signal.SIGINT)
    status, said = ended(process)
    assert status == 130, said
    left = len(parts(out))
    assert 20 <= left < MANY_CASES
    assert f"{left} of {MANY_CASES} cases are kept: the same command with " \
        "--resume makes the others" in said


def test_the_lab_has_a_kernel_for_each_case(tmp_path):
    """The numbers are the same to the byte with one job and with two at a time, and
    with a case that is made again."""
    (tmp_path / "two.py").write_text(many().replace(
        "range(2000, 12000, 1000) for _n in (1, 2, 3, 4)",
        "(4000, 8000) for _n in (2,)").replace("50ms", "1s"))
    for out, words in (("one", ()), ("two", ("-j", "2")), ("two", ("--resume",))):
        done = subprocess.run(
            [sys.executable, TOLLWAY, "run", "two.py", "--out", out, *words],
            cwd=tmp_path, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        cases = [load(tmp_path / each / "seed-1/raw.json")["cases"]
                 for each in ("one", out)]
        assert len(cases[0]) == 2 and cases[0] == cases[1]
        if words == ("-j", "2"):
            (tmp_path / "two/seed-1/cases/001/part.json").unlink()
            (tmp_path / "two/seed-1/result.json").unlink()
    assert "1 of 2 cases exist already" in done.stderr


def test_a_refused_case_leaves_nothing(tmp_path):
    """The kernel of the lab has no such queue."""
    (tmp_path / "two.py").write_text(many().replace("50ms", "1s"))
    done = subprocess.run(
        [sys.executable, TOLLWAY, "run", "two.py", "--aqm", "nosuchqueue", "-j",
         "2", "--out", "out"], cwd=tmp_path, text=True, capture_output=True,
        check=False)
    assert done.returncode == 2 and "nosuchqueue" in done.stderr
    assert not (tmp_path / "out").exists()


def test_earlier_results_go_when_their_first_case_begins(tmp_path):
    """And not before: what is refused or interrupted first has lost nothing."""
    task = SimpleNamespace(folder=tmp_path / "seed-1")
    parts, joined = [SimpleNamespace(task=task)] * 2, separate_cases.Joined()
    for resume in (True, False):
        task.folder.mkdir(exist_ok=True)
        (task.folder / "raw.json").write_text("{}")
        joined.expect(task, 2, resume)
        assert (task.folder / "raw.json").exists()
        joined.begin(parts[0])
        assert (task.folder / "raw.json").exists() == resume
    task.folder.mkdir()
    (task.folder / "case").write_text("{}")
    joined.begin(parts[1])
    assert (task.folder / "case").exists()


def test_a_case_has_the_queues_of_its_links(tmp_path):
    """As with --set only=: each queue that is looked up takes random numbers."""
    second = '{"more": {"from": "b", "to": "c", "rate": "9Mbit", "queue": "fq_codel"},'
    (tmp_path / "two.py").write_text(
        many().replace('{"core": {"from"', second + ' "core": {"from"')
        .replace('["core"]', '["core", "more"]'))
    experiment = own.load(tmp_path / "two.py")
    values = {name: spec[0] for name, spec in experiment.parameters().items()}
    combination = runner.Combination(experiment, "sbrm", "delay", values, 1.0,
                                     tmp_path)
    task = runner.Task(combination, 1, None)
    found = separate_cases.parts_of(task)
    assert found and task.job()["queues"] == ["fq_codel"]
    assert all(part.job()["queues"] == ["fq_codel"] for part in found)
