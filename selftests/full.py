#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Run every test with its long form, then those of the lab on the debug kernel.

    selftests/full.py [--jobs N] [TEST...]

TEST: files or directories, or other words for pytest; all tests by default. What
fails in one part does not keep the others from being run, and is named again at
the end. Exit status: 0 if nothing failed.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOLLWAY = str(HERE.parent / "scripts/tollway")
# Of pytest, where a part has no test of those asked for.
NOTHING_COLLECTED = 5
OUTCOMES = ("FAILED ", "ERROR ", "SKIPPED ")


def parts(jobs, tests):
    """[(name, words, environment)] of what is run, in this order."""
    pytest = [sys.executable, "-m", "pytest", "-n", str(jobs), "--dist",
              "loadfile", *tests]
    debug = {"TOLLWAY_LAB_FLAVOUR": "debug"}
    return [("build of the lab", [TOLLWAY, "lab", "build"], {}),
            ("every test", [*pytest, "-m", ""], {}),
            ("build of the debug lab",
             [TOLLWAY, "lab", "build", "--flavour", "debug"], {}),
            ("the lab's tests on the debug kernel", [*pytest, "-m", "lab"],
             debug)]


def run(words, environment):
    """Run a part; (did nothing fail?, what is to be said again)."""
    kept, last = [], ""
    with subprocess.Popen(words, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, **environment}) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line.strip(" =\n") or last
            if line.startswith(OUTCOMES):
                kept.append(line.rstrip())
    return process.returncode in (0, NOTHING_COLLECTED), [*kept, last]


def main():
    """Run all parts, and say what came of them."""
    parser = argparse.ArgumentParser(
        description="Run every test with its long form, on both kernels.")
    parser.add_argument("--jobs", type=int, default=1, metavar="N",
                        help="files of tests at a time (default: 1)")
    options, tests = parser.parse_known_args()
    summary, good = [], True
    for name, words, environment in parts(options.jobs,
                                          tests or [str(HERE)]):
        started = time.monotonic()
        print(f"== {name}", flush=True)
        held, lines = run(words, environment)
        good = good and held
        took = round((time.monotonic() - started) / 60)
        summary += [f"{'ok' if held else 'FAILED'}: {name}, {took} minutes",
                    *(f"    {line}" for line in lines)]
    print("\n".join(["== summary", *summary]))
    return not good


if __name__ == "__main__":
    sys.exit(main())
