#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Run tests and say in KTAP what came of them.

    selftests/ktap.py stay_storm hostile
    selftests/ktap.py --full --debug stay_junk

NAME: a file of tests, selftests/lab/test_NAME.py or selftests/test_NAME.py;
without one all that is called stay_. --full: the long forms as well, as in make
check-full. --debug: on the lab's kernel with KASAN, lockdep and kmemleak.
TOLLWAY_SEED is the seed, as everywhere. Exit status as for kselftest: 0 if
nothing failed, 1 if something did, 4 if all was skipped.

pytest runs the tests and knows nothing of this; what a test measured follows it
in lines that begin with "#".
"""

import argparse
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SKIPPED = 4


class Ktap:
    """A plugin of pytest: one line for each test, as soon as it is known."""

    def __init__(self):
        self.number = 0
        self.outcomes = set()

    @staticmethod
    def pytest_collection_finish(session):
        """The plan."""
        print(f"KTAP version 1\n1..{len(session.items)}", flush=True)

    def pytest_collectreport(self, report):
        """A file that cannot be read is no test at all: say why."""
        if report.failed:
            self.outcomes.add("failed")
            self.comment(report.longreprtext)

    def pytest_runtest_logreport(self, report):
        """A result: of the test, or of what it needed, where that failed."""
        if report.when != "call" and report.passed:
            return
        if report.when == "teardown":
            self.comment(report.longreprtext)
            return
        self.number += 1
        self.outcomes.add(report.outcome)
        name = report.nodeid.rpartition("/")[2].replace("#", "_")
        reason = report.longrepr[2] if report.skipped else ""
        print(f"{'not ok' if report.failed else 'ok'} {self.number} {name}" +
              (f" # SKIP {reason.removeprefix('Skipped: ')}" if reason else ""))
        self.comment(report.capstdout)
        if report.failed:
            self.comment(report.longreprtext)
        sys.stdout.flush()

    @staticmethod
    def comment(text):
        """Lines that are no results."""
        for line in text.splitlines():
            print(f"# {line}")


def files(names):
    """The files of tests with these names."""
    if not names:
        return sorted(HERE.glob("lab/test_stay_*.py"))
    found = []
    for name in names:
        there = [path for path in (HERE / f"lab/test_{name}.py",
                                   HERE / f"test_{name}.py") if path.exists()]
        if not there:
            raise SystemExit(f"ktap.py: there is no test {name}")
        found += there
    return found


def main():
    """Run what the command line names."""
    parser = argparse.ArgumentParser(
        description="Run tests, with their results in KTAP.")
    parser.add_argument("names", nargs="*", metavar="NAME",
                        help="name of a test, such as stay_storm, userns or "
                        "tcp (default: all that begin with stay_)")
    parser.add_argument("--full", action="store_true",
                        help="also run the extended forms")
    parser.add_argument("--debug", action="store_true",
                        help="use the debug kernel of the lab")
    options = parser.parse_args()
    if options.debug:
        os.environ["TOLLWAY_LAB_FLAVOUR"] = "debug"
    ktap = Ktap()
    status = pytest.main(
        ["-p", "no:terminal", "-o", "addopts=--strict-markers", "-m",
         "" if options.full else "not full", *map(str, files(options.names))],
        plugins=[ktap])
    if ktap.outcomes == {"skipped"}:
        return SKIPPED
    return int(bool(status))


if __name__ == "__main__":
    sys.exit(main())
