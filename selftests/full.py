#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Run every test with its long form, and those of the lab on the debug kernel, too.

    selftests/full.py [--jobs N] [--resume] [TEST...]

TEST: files or directories of tests, or other words for pytest; all tests by
default. One pytest runs one file on one kernel; N of them run at a time, each on
a core of its own, those first that took longest the last time. What fails does
not keep the others from being run, and is named again at the end. The files of
ON_PLAIN are about programs, on which the debug kernel has nothing to say.

build/check-full has what each file printed, and its outcome with the commit.
--resume keeps the outcomes of the same inputs, the same words and the same
TOLLWAY_SEED, and runs the other files; it needs a tree without changes. The
inputs of a file of tests are all files of the tree; of those of whole systems, all
but the texts that say what tests found. Those of the lab run where
there is nothing but the sources: other tests, checks that are not imported, what
only this program, clean-system or stock kernels read, texts, and experiments that
they do not use are no inputs of theirs. Exit status: 0 if nothing failed.
"""

import argparse
import ast
import contextlib
import functools
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
TOP = HERE.parent
sys.path.insert(0, str(TOP / "scripts"))

from tollwaylib import ends, files, jobqueue, progress  # noqa: E402
from tollwaylib.errors import TollwayError  # noqa: E402
from tollwaylib.paths import checkout, digest_of  # noqa: E402
from tollwaylib.places.session import end_session  # noqa: E402
from tollwaylib.programs import WITH_US  # noqa: E402

TOLLWAY = str(TOP / "scripts/tollway")
RECORDS = TOP / "build/check-full"
# Of pytest, where a file has no test of those asked for.
NOTHING_COLLECTED = 5
OUTCOMES = ("FAILED ", "ERROR ", "SKIPPED ")
# What pytest is told on each kernel, and its environment.
KERNELS = {"plain": ("", {}),
           "debug": ("lab", {"TOLLWAY_LAB_FLAVOUR": "debug"})}
# Tests of programs in the lab: what they do with the modules, others do, too.
ON_PLAIN = ("test_admit.py", "test_calibration.py", "test_cost.py",
            "test_doctor.py", "test_host.py", "test_readme.py")
# What no test of the lab reads, beside other tests and texts.
NO_INPUTS_OF_THE_LAB = ("tools/man/", "examples/", ".ci/", "selftests/full.py",
                        "selftests/clean-", "selftests/golden/", "scripts/qemu/",
                        "scripts/tollwaylib/places/qemu.py")
# Tests of whole systems, each an hour: what is written down of results is no input of
# theirs. The tests of texts that they run there are run here, too.
OF_SYSTEMS = ("test_clean_bookworm.py", "test_clean_trixie.py", "test_deb.py",
              "test_qemu.py")
RECORDED = ("selftests/README.md", "CHANGELOG.md")
# What is about experiments and their results, and what a file of tests of the lab,
# or one of its scripts, has if it uses that.
OF_EXPERIMENTS = tuple(f"scripts/tollwaylib/{part}" for part in (
    "commands/", "doctor/", "experiments/", "papers/", "report/", "results/",
    "runs/", "theory/", "places/host.py", "places/usermode_lab.py",
    "places/model.py", "places/model_pairs.py", "places/model_prices.py",
    # All of the guest's part but what starts a script.
    *(f"guest/{name}.py" for name in (
        "calibration", "daemons", "iperf3", "job", "links", "network", "nodes",
        "passages", "processes", "smoke", "smoke_bench", "topologies",
        "traffic"))))
# Of these only some lines count for tests of the lab that do not use experiments.
LINES = {"scripts/tollwaylib/places/limits.py": re.compile(r"^.*\bMEMORY_MB\b.*=.*", re.M)}
USES_EXPERIMENTS = re.compile(r"(?:from|import) tollwaylib\b|(?:scripts|bin)/tollway\b")
# How long pytest may take to end when it is interrupted.
STOP_S = 60
COUNTS = ("passed", "failed", "skipped")


@dataclass(frozen=True)
class Job:
    """A file of tests on a kernel. test: the path, with ::names as for pytest."""
    kernel: str
    test: str
    words: tuple = ()

    @property
    def name(self):
        """What it is called in the summary."""
        path = os.path.relpath(self.test, TOP)
        return f"{self.kernel} {self.test if path.startswith('..') else path}"

    @property
    def record(self):
        """Where its outcome is kept, without an ending."""
        name = self.name.replace("/", "-").replace(" ", "-")
        if self.words:
            name += f"-{digest_of(*self.words)[:8]}"
        return RECORDS / name

    def argv(self, core):
        """The command that runs it on a core; it ends if this process does."""
        return [*WITH_US, "taskset", "-c", str(core),
                sys.executable, "-m", "pytest", "-ra", "-m",
                KERNELS[self.kernel][0], f"--junitxml={self.record}.xml", *self.words, self.test]


def jobs_of(words):
    """The jobs that the words of the command line ask for."""
    tests = [word for word in words if os.path.exists(word.partition("::")[0])]
    more = tuple(word for word in words if word not in tests)
    for word in more:
        # As an option each file would fail for it, and lose its last result.
        if word.partition("::")[0].endswith(".py"):
            raise TollwayError(f"{word}: there is no such file of tests")
    found = []
    for test in tests or [str(HERE)]:
        path = Path(test)
        found += map(str, sorted(path.rglob("test_*.py"))) \
            if path.is_dir() else [test]
    tests = [os.path.abspath(test) for test in dict.fromkeys(found)]
    return [Job(kernel, test, more) for kernel in KERNELS for test in tests
            if kernel == "plain" or has_debug_form(Path(test.partition("::")[0]))]


def has_debug_form(path):
    """Is a file of tests run on the debug kernel?"""
    return path.name not in ON_PLAIN and \
        "mark.lab" in path.read_text(encoding="utf-8")


def state():
    """The commit, or None where the tree differs from it, or may do so."""
    found = checkout()
    return found["commit"] if found["changed"] is False else None


@functools.cache
def tree(commit):
    """{path: hash of its content} of a commit."""
    said = subprocess.run(["git", "ls-tree", "-rz", commit], cwd=TOP, text=True,
                          check=True, stdout=subprocess.PIPE).stdout
    return {path: words.split()[2] for words, path in
            (line.split("\t") for line in said.split("\0") if line)}


@functools.cache
def counting_lines(path, content):
    """Those lines of a file that count; content: its hash in git."""
    said = subprocess.run(["git", "cat-file", "blob", content], cwd=TOP, text=True,
                          check=True, stdout=subprocess.PIPE).stdout
    return "\n".join(LINES[path].findall(said))


def scripts_of(test):
    """Names of the Python files beside a file of tests of the lab that it runs or
    imports, and of those that they run or import."""
    waiting, found = [test], set()
    while waiting:
        for node in ast.walk(ast.parse(waiting.pop().read_text(encoding="utf-8"))):
            names = [f"{alias.name}.py" for alias in node.names] \
                if isinstance(node, ast.Import) else \
                [f"{node.module}.py"] if isinstance(node, ast.ImportFrom) else \
                [node.value.rpartition("/")[2]] if isinstance(node, ast.Constant) and \
                isinstance(node.value, str) else []
            new = {name for name in names if name.endswith(".py")
                   and (test.parent / name).is_file()} - found
            found |= new
            waiting += [test.parent / name for name in new]
    return found


def is_input(path, test, scripts, kernel, experiments):
    """Does a file of tests of the lab depend on a file of the tree?

    path: in the tree; test: that file, in the tree; scripts: of scripts_of();
    kernel: one of KERNELS; experiments: does it use them?"""
    if path == test:
        return True
    if path.startswith(OF_EXPERIMENTS) and not experiments:
        return False
    folder, _, name = path.rpartition("/")
    if path.startswith("selftests/") and name.startswith("test_"):
        return False
    if folder == "selftests/lab" and name.endswith(".py"):
        return name in scripts
    if name == "config.debug":
        return kernel == "debug"
    return not (name.endswith(".md") or path.startswith(NO_INPUTS_OF_THE_LAB))


def inputs_of(job, commit):
    """The digest of what a job's outcome depends on."""
    files_of, test = tree(commit), job.test.partition("::")[0]
    path = os.path.relpath(test, TOP)
    if path.startswith("selftests/lab/"):
        scripts = scripts_of(Path(test))
        texts = [one.read_text(encoding="utf-8") for one in (
            Path(test), *(HERE / "lab" / name for name in scripts))]
        # Those that read texts depend on them.
        if not any('.md"' in text for text in texts):
            experiments = any(map(USES_EXPERIMENTS.search, texts))
            files_of = {name: content for name, content in files_of.items()
                        if is_input(name, path, scripts, job.kernel, experiments)}
            if not experiments:
                files_of.update({name: counting_lines(name, files_of[name])
                                 for name in LINES.keys() & files_of.keys()})
    elif path.removeprefix("selftests/") in OF_SYSTEMS:
        files_of = {name: content for name, content in files_of.items()
                    if name not in RECORDED}
    return digest_of(*(f"{content} {name}" for name, content in
                       sorted(files_of.items())))


def key_of(job, commit):
    """What an outcome depends on; None of a tree that has changed."""
    return commit and {"inputs": inputs_of(job, commit), "words": list(job.words),
                       "seed": os.environ.get("TOLLWAY_SEED", "1")}


def durations(jobs):
    """{job: seconds that it took the last time}, of those that are known."""
    found = {}
    for job in jobs:
        with contextlib.suppress(OSError, ValueError, KeyError):
            found[job] = json.loads(
                Path(f"{job.record}.json").read_text())["seconds"]
    return found


def in_order(jobs):
    """The jobs, longest first; what was never run may be the longest."""
    took = durations(jobs)
    return sorted(jobs, key=lambda job: -took.get(job, float("inf")))


def kept(jobs, commit):
    """{job: its outcome} of those that were run with the inputs of a commit."""
    found = {}
    for job in jobs:
        with contextlib.suppress(OSError, ValueError, KeyError):
            record = json.loads(Path(f"{job.record}.json").read_text())
            if record["key"] == key_of(job, commit):
                found[job] = record
    return found


def counts_of(path):
    """{"passed", "failed", "skipped": numbers of tests} of a file of pytest.
    OSError or ParseError where pytest did not come to its end."""
    totals = dict.fromkeys(COUNTS, 0)
    for suite in ElementTree.parse(path).getroot().iter("testsuite"):
        count = {name: int(suite.get(name)) for name in
                 ("tests", "failures", "errors", "skipped")}
        bad = count["failures"] + count["errors"]
        totals["failed"] += bad
        totals["skipped"] += count["skipped"]
        totals["passed"] += count["tests"] - bad - count["skipped"]
    return totals


def outcome_of(job, status, seconds):
    """What came of a job whose pytest has ended."""
    lines = []
    with open(f"{job.record}.log", encoding="utf-8", errors="replace") as log:
        lines += [line.rstrip() for line in log if line.startswith(OUTCOMES)]
    counts, complete = dict.fromkeys(COUNTS, 0), True
    try:
        counts = counts_of(f"{job.record}.xml")
    except (OSError, ElementTree.ParseError):
        complete = False
    good = complete and status in (0, NOTHING_COLLECTED)
    if status < 0:
        lines.append(f"FAILED {job.name}: ended by "
                     f"{signal.Signals(-status).name}")
    elif not good and not counts["failed"]:
        lines.append(f"FAILED {job.name}: pytest ended with {status}")
    if not good and not counts["failed"]:
        counts["failed"] = 1
    return {"good": good, "status": status, "seconds": round(seconds, 1),
            **counts, "lines": lines}


class Queue:
    """Jobs that wait, run and have ended."""

    def __init__(self, commit, total):
        self.commit, self.total = commit, total
        self.started = time.monotonic()
        self.lock = threading.Lock()
        self.running, self.stopped = {}, False
        self.outcomes = {}

    def run(self, jobs, count):
        """Run the jobs in this order, `count` at a time."""
        cores = jobqueue.cores()
        jobqueue.run(jobs, [cores[number % len(cores)]
                            for number in range(count)],
                     self.run_job, self.stop)

    def run_job(self, job, core):
        """Run a job, and keep its outcome, unless it was interrupted."""
        Path(f"{job.record}.xml").unlink(missing_ok=True)
        started = time.monotonic()
        with open(f"{job.record}.log", "wb") as log:
            with self.lock:
                if self.stopped:
                    return
                process = subprocess.Popen(
                    job.argv(core), stdout=log, stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL, start_new_session=True,
                    env={**os.environ, **KERNELS[job.kernel][1]})
                self.running[job] = process
            status = process.wait()
        with self.lock:
            del self.running[job]
            if self.stopped:
                return
            outcome = {"commit": self.commit, **outcome_of(
                job, status, time.monotonic() - started)}
            # The sources may have changed while it ran.
            commit = self.commit if state() == self.commit else None
            files.write_json_atomic(
                f"{job.record}.json",
                {"key": key_of(job, commit), "name": job.name, **outcome})
            self.outcomes[job] = outcome
            print("\n".join([*lines_of(job, outcome), self.so_far()]),
                  flush=True)

    def stop(self):
        """End what is running, as Ctrl-C would."""
        with self.lock:
            self.stopped = True
            running = list(self.running.values())
        for process in running:
            process.send_signal(signal.SIGINT)
        for process in running:
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                end_session(process.pid)

    def so_far(self):
        """How far it is."""
        passed = time.monotonic() - self.started
        return f"-- {len(self.outcomes)} of {self.total} files, " \
            f"{progress.duration(passed)}"


def lines_of(job, outcome):
    """A job's part of the summary."""
    words = ", ".join(f"{outcome[name]} {name}" for name in COUNTS
                      if outcome[name]) or "no test"
    bad = [] if outcome["good"] else [f"    see {job.record}.log"]
    return [f"{'ok' if outcome['good'] else 'FAILED'}: {job.name}: {words}, "
            f"{progress.duration(outcome['seconds'])}",
            *(f"    {line}" for line in outcome["lines"]), *bad]


def summary(outcomes, builds, seconds):
    """All jobs, then the totals of each kernel, as lines."""
    said = ["== summary", *builds]
    for job in sorted(outcomes, key=lambda job: job.name):
        said += lines_of(job, outcomes[job])
    for kernel in KERNELS:
        mine = [one for job, one in outcomes.items() if job.kernel == kernel]
        if mine:
            said.append(f"{kernel} kernel: " + ", ".join(
                f"{sum(one[name] for one in mine)} {name}" for name in COUNTS)
                + f" in {len(mine)} files, "
                f"{sum(one['seconds'] for one in mine) / 60:.0f} minutes of a "
                "core")
    commits = [str(one["commit"])[:12] for one in outcomes.values()
               if one.get("commit")]
    if len(set(commits)) > 1:
        said.append("run with the same inputs at several commits: " + ", ".join(
            f"{commits.count(commit)} files at {commit}"
            for commit in dict.fromkeys(commits)))
    return [*said, f"all together {seconds / 60:.0f} minutes"]


def build(kernels):
    """Build the labs; (are all there?, what to say of each)."""
    good, said = True, []
    for kernel in kernels:
        status = subprocess.run([TOLLWAY, "lab", "build", "--flavour", kernel],
                                stdin=subprocess.DEVNULL, check=False
                                ).returncode
        good = good and not status
        said.append(f"{'FAILED' if status else 'ok'}: build of the {kernel} "
                    "lab")
    return good, said


def main():
    """Run all, and say what came of it."""
    parser = argparse.ArgumentParser(
        description="Run every test with its long form, on both kernels.")
    parser.add_argument("--jobs", type=int, default=1, metavar="N",
                        help="files of tests that run at the same time "
                        "(default: 1)")
    parser.add_argument("--resume", action="store_true",
                        help="run only the files that have no result of the "
                        "same inputs")
    options, words = parser.parse_known_args()
    jobs, commit, started = jobs_of(words), state(), time.monotonic()
    if options.resume and not commit:
        raise TollwayError("--resume needs a tree without changes: outcomes of "
                           "other sources would count for these")
    RECORDS.mkdir(parents=True, exist_ok=True)
    good, builds = build(dict.fromkeys(job.kernel for job in jobs))
    work = Queue(commit, len(jobs))
    if options.resume:
        work.outcomes.update(kept(jobs, commit))
        print(f"== {len(work.outcomes)} of {len(jobs)} files are done already")
    try:
        work.run([job for job in in_order(jobs) if job not in work.outcomes],
                 max(options.jobs, 1))
    finally:
        print("\n".join(summary(work.outcomes, builds,
                                time.monotonic() - started)), flush=True)
    return not (good and all(one["good"] for one in work.outcomes.values()))


if __name__ == "__main__":
    ends.leave(ends.guarded("full.py", main))
