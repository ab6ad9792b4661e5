# SPDX-License-Identifier: GPL-2.0
"""Many runs of one command: at a time, interrupted, and gone on with."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tollwaylib import jobqueue

HERE = Path(__file__).resolve().parent
FAKE = [sys.executable, str(HERE / "fake_place.py")]
REAL = [str(HERE.parent / "scripts/tollway")]
SHORT = ("run", "double-bottleneck", "--duration", "8", "--set", "warmup_s=2")
KILLS = 10


def words(out_dir, *more):
    return [*SHORT, "--out", str(out_dir), *more]


def fake(out_dir, *more, **options):
    """Run the command with a lab that only sleeps; the finished process."""
    return subprocess.run(
        [*FAKE, *words(out_dir, *more)], text=True, capture_output=True,
        check=False, env=dict(os.environ, TOLLWAY_FAKE=json.dumps(options)))


def results(out_dir):
    """{path of a result: when it was written}"""
    # Not rglob(), which fails where a directory goes while it looks.
    return {Path(place, name): Path(place, name).stat().st_mtime_ns
            for place, _, names in os.walk(out_dir) for name in names
            if name == "result.json"}


def table(out_dir):
    """What `tollway table` says of a directory."""
    return subprocess.run([*REAL, "table", str(out_dir)], text=True, check=True,
                          stdout=subprocess.PIPE).stdout


def shown(done):
    """What a run printed, but for the directory of its report."""
    return re.sub("report: .*", "", done.stdout)


def kill_and_resume(command, out_dir, total, most, longest_s,
                    environment=None):
    """Kill a command KILLS times, each time going on with what is there; the
    number of results that each time has left. total: of its runs; most: so many
    more may end before it is killed."""
    moments, counts, before = random.Random(), [0], {}
    for _ in range(KILLS):
        process = subprocess.Popen(
            [*command, "--resume"], text=True, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, env=environment)
        for line in process.stderr:
            if "exist already" in line:
                assert int(line.split()[0]) == len(before)
                break
        # After a few more results, or in the middle of one.
        wanted = min(len(before) + moments.randint(0, most), total - 1)
        while len(results(out_dir)) < wanted:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.02)
        time.sleep(moments.uniform(0, longest_s))
        process.kill()
        process.communicate()
        now = results(out_dir)
        # Nothing that was finished is lost or made again.
        assert {path: now.get(path) for path in before} == before
        before = now
        counts.append(len(now))
    return counts


def test_killed_ten_times_and_resumed(tmp_path):
    more = ("--repeat", "100", "-j", "2")
    options = {"sleep_s": 0.04}
    whole = fake(tmp_path / "whole", *more)
    assert whole.returncode in (0, 1), whole.stderr
    counts = kill_and_resume(
        [*FAKE, *words(tmp_path / "parts", *more)], tmp_path / "parts", 100,
        8, 0.3, dict(os.environ, TOLLWAY_FAKE=json.dumps(options)))
    assert len(set(counts)) > 3, counts
    last = fake(tmp_path / "parts", *more, "--resume")
    assert last.returncode == whole.returncode, last.stderr
    assert f"{counts[-1]} of 100 runs exist already" in last.stderr
    assert shown(last) == shown(whole)
    assert table(tmp_path / "parts") == table(tmp_path / "whole")


@pytest.mark.full
def test_killed_ten_times_in_the_lab(tmp_path):
    more = ("--set", "flows_per_class=1", "--set", "rate_mbit=8",
            "--repeat", "200", "-j", "2")
    whole = subprocess.run([*REAL, *words(tmp_path / "whole", *more)],
                           text=True, capture_output=True, check=False)
    assert whole.returncode in (0, 1), whole.stderr
    counts = kill_and_resume([*REAL, *words(tmp_path / "parts", *more)],
                             tmp_path / "parts", 200, 14, 4)
    assert len(set(counts)) > 2, counts
    last = subprocess.run(
        [*REAL, *words(tmp_path / "parts", *more, "--resume")], text=True,
        capture_output=True, check=False)
    assert last.returncode == whole.returncode, last.stderr
    assert shown(last) == shown(whole)
    assert table(tmp_path / "parts") == table(tmp_path / "whole")


@pytest.fixture
def cores():
    """The cores of the machine, of which xdist and full.py leave a test one."""
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(os.cpu_count()))
    yield os.sched_getaffinity(0)
    os.sched_setaffinity(0, mine)


def test_variants_and_seeds_are_one_queue(tmp_path, cores):
    """Variants of one seed each are run at a time, too."""
    if len(cores) < 2:
        pytest.skip("one core: one run at a time")
    done = subprocess.run(
        [*FAKE, "run", "double-bottleneck", "--set", "setup=paper", "-j", "2",
         "--out", str(tmp_path)], text=True, capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    assert len({core.read_text() for core in tmp_path.rglob("core")}) == 2
    assert len(results(tmp_path)) > 2


def test_an_interrupt_loses_only_what_runs(tmp_path):
    out = tmp_path / "out"
    process = subprocess.Popen(
        [*FAKE, *words(out, "--repeat", "40", "-j", "2")], text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env=dict(os.environ, TOLLWAY_FAKE='{"sleep_s": 0.2}'))
    while len(results(out)) < 5:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=30)[1]
    assert process.returncode == 130 and said.endswith("tollway: interrupted\n")
    left = len(results(out))
    assert 5 <= left < 40
    assert f"{left} of 40 runs are kept: the same command with --resume " \
        "makes the others" in said
    assert len(list(out.rglob("raw.json"))) == left


def test_an_interrupt_while_jobs_are_queued():
    """A core may have done some while the others are being put into the queue."""
    done, third, stopped = [], threading.Event(), threading.Event()

    def run_one(job, _core):
        done.append(job)
        if len(done) == 3:
            third.set()
            assert stopped.wait(60)

    def jobs():
        yield from range(100)
        assert third.wait(60)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jobqueue.run(jobs(), [0], run_one, stopped.set)
    assert done == [0, 1, 2]


def test_a_failure_keeps_what_is_done(tmp_path):
    done = fake(tmp_path, "--repeat", "6", fail=4)
    assert done.returncode == 2
    assert done.stderr.endswith("tollway: seed 4 fails on purpose\n")
    assert len(results(tmp_path)) == 3
    assert "3 of 6 runs are kept" in done.stderr
    assert fake(tmp_path, "--repeat", "6", "--resume").returncode in (0, 1)
    assert len(results(tmp_path)) == 6


def test_results_of_another_run_are_not_taken(tmp_path):
    assert fake(tmp_path, "-v").returncode in (0, 1)
    before = results(tmp_path)
    for more, options, says in (
            (("--set", "gamma=0.02"), {}, "job.aqm"),
            (("--set", "kappa=0.2"), {}, "job.parameters.kappa 0.1 instead of"),
            (("--trace", "hash"), {}, "job.trace null instead of"),
            ((), {"kernel": "7.2"}, 'kernel "none" instead of "7.2"')):
        done = fake(tmp_path, "--resume", *more, **options)
        assert done.returncode == 2 and results(tmp_path) == before
        assert f"{tmp_path}/seed-1 has the result of another run" in \
            done.stderr and says in done.stderr, done.stderr
        assert len(done.stderr.splitlines()) == 1
    # Whether commands are shown changes no number.
    assert fake(tmp_path, "--resume").returncode in (0, 1)
    assert results(tmp_path) == before
    # Without --resume it is made again, and so is what is incomplete.
    assert fake(tmp_path).returncode in (0, 1)
    assert results(tmp_path) != before
    before = results(tmp_path)
    (tmp_path / "seed-1/raw.json").unlink()
    assert fake(tmp_path, "--resume").returncode in (0, 1)
    assert results(tmp_path) != before


def test_a_damaged_result_is_named(tmp_path):
    assert fake(tmp_path).returncode in (0, 1)
    result = tmp_path / "seed-1/result.json"
    result.write_text("{}")
    done = fake(tmp_path, "--resume")
    assert done.returncode == 2 and str(result) in done.stderr
