#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""`tollway` with a lab that only sleeps: its runs have made-up measurements.

    TOLLWAY_FAKE='{"sleep_s": 0.1}' selftests/fake_place.py run double-bottleneck

The measurements differ from seed to seed and depend on nothing else. Entries of
TOLLWAY_FAKE: sleep_s, real time of a run; fail, the seed of a run that fails;
kernel, the name of the kernel that it says it has.
"""

import json
import os
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "scripts"), str(HERE / "golden")]

import synthetic  # noqa: E402
from tollwaylib import cli, ends  # noqa: E402
from tollwaylib.commands import run  # noqa: E402
from tollwaylib.errors import TollwayError  # noqa: E402


class FakePlace:
    """A place without a kernel."""

    parallel = True
    has_kernel = True

    def __init__(self, *_):
        self.options = json.loads(os.environ.get("TOLLWAY_FAKE", "{}"))
        self.stopped = threading.Event()

    def prepare(self, _progress):
        """There is nothing to build."""

    def run(self, job, folder, core, on_line):
        """Sleep, and leave what was never measured."""
        (folder / "job.json").write_text(json.dumps(dict(
            job, out_dir="anywhere")))
        (folder / "core").write_text(str(core))
        on_line("tollway: second 1 of 2")
        if self.stopped.wait(self.options.get("sleep_s", 0)):
            raise TollwayError("it was stopped")
        seed = job["seed"]
        if seed == self.options.get("fail"):
            raise TollwayError(f"seed {seed} fails on purpose")
        raw = synthetic.steady(
            lambda number, path, wtp: 1 + ((seed * number) % 7 - 3) / 100,
            duration_s=job["parameters"]["duration_s"],
            warmup_s=job["parameters"]["warmup_s"], seed=seed,
            cc=job["parameters"]["cc"], aqm=job["parameters"]["aqm"])
        raw.update(parameters=job["parameters"],
                   experiment=job["experiment"])
        (folder / "raw.json").write_text(json.dumps(raw))

    def stop(self):
        """End what is running."""
        self.stopped.set()

    def provenance(self):
        """What the results of this place depend on."""
        return {"place": "fake", "kernel": self.options.get("kernel", "none")}


if __name__ == "__main__":
    run.LabPlace = FakePlace
    sys.exit(ends.guarded("tollway", cli.main))
