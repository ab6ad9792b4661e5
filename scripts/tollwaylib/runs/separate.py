# SPDX-License-Identifier: GPL-2.0
"""Cases of a run as jobs of their own: they can run at the same time, and the result of
each is stored when it ends.

Each case has a network of its own, and in the lab and in qemu a kernel of its own. Its
numbers are those of `--set only=CASE`, and do not depend on the other cases. In one
kernel after other cases, a case would begin at another time and with another state of
the random numbers, and would have other numbers, as with another seed.
"""

import contextlib
import hashlib
import json
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Raw measurements of a part; a raw.json is a run's.
PART = "part.json"


@dataclass(frozen=True)
class Part:
    """A job of the queue: one case of a task. number: place of the case, from 0.
    task_job: the job of the task, with all cases."""
    task: Any
    number: int
    case: dict
    task_job: dict

    @property
    def folder(self):
        """Where its measurements are."""
        return self.task.folder / "cases" / f"{self.number + 1:03d}"

    @property
    def results(self):
        """What reads its measurements."""
        return self.task.results

    @property
    def name(self):
        """What it is called in lines of progress."""
        return f"{self.task.name}, {self.case['name']}"

    def job(self):
        """What the guest needs (dict)."""
        job, combination = self.task_job, self.task.combination
        # Each queue that is looked up takes random numbers.
        return dict(job, cases=[self.case],
                    queues=sorted({*combination.experiment.queues(
                        combination.values), self.case["aqm"]} - {job["aqm"]}),
                    virtual_s=self.case["duration_s"] + 5)


def parts_of(task):
    """The parts of a task, in order; none where it has one case."""
    job = task.job()
    if len(job["cases"]) < 2:
        return []
    return [Part(task, number, case, job) for number, case in
            enumerate(job["cases"])]


def keep(part):
    """Store the measurements of a part under another name, because raw.json is that of all
    cases, and the files of its programs in the directory of those of all cases."""
    for made in part.folder.glob("programs/*"):
        kept = part.task.folder / "programs" / made.name
        shutil.rmtree(kept, ignore_errors=True)
        kept.parent.mkdir(exist_ok=True)
        made.rename(kept)
    with contextlib.suppress(OSError):
        (part.folder / "programs").rmdir()
    # Last: it is the sign that all is there.
    (part.folder / "raw.json").rename(part.folder / PART)


def discard(jobs):
    """Remove the files of parts that did not end, and directories that are then empty."""
    for part in jobs:
        if isinstance(part, Part) and not (part.folder / PART).is_file():
            shutil.rmtree(part.folder, ignore_errors=True)
            with contextlib.suppress(OSError):
                part.folder.parent.rmdir()
                part.task.folder.rmdir()


def merged(parts):
    """The raw result of all cases of a task, from those of its parts."""
    found = [part.results.load_raw(part.folder, PART) for part in parts]
    body = hashlib.sha256()
    for raw in found:
        body.update(raw["trace_sha256"].encode())
    calibration = found[0]["calibration"]
    for raw in found[1:]:
        for link, outcome in raw["calibration"].items():
            if outcome.get("ok") is not True:
                calibration[link] = outcome
    return {**found[0], "cases": [case for raw in found
                                  for case in raw["cases"]],
            # A model has none.
            "sinks": [raw.get("sinks") for raw in found],
            "calibration": calibration, "trace_sha256": body.hexdigest(),
            "provenance": {**found[0]["provenance"], "separate": True}}


class Joined:
    """Counts the completed parts of tasks; safe for several threads."""

    def __init__(self):
        self.lock, self.left, self.old = threading.Lock(), {}, set()

    def expect(self, task, count, resume):
        """Set the number of parts of a task. resume: existing files are kept."""
        self.left[task.folder] = count
        if not resume:
            self.old.add(task.folder)

    def begin(self, part):
        """A part begins. The first part removes the files of an earlier run of its task; nothing is
        removed before a part runs."""
        with self.lock:
            if part.task.folder in self.old:
                self.old.remove(part.task.folder)
                shutil.rmtree(part.task.folder, ignore_errors=True)

    def is_complete(self, task):
        """True if all parts of a task are complete."""
        return not self.left[task.folder]

    def is_last(self, part):
        """Count a completed part; true if it was the last one of its task."""
        with self.lock:
            self.left[part.task.folder] -= 1
            return not self.left[part.task.folder]


def write_job(task):
    """Write the job of all cases of a task, like a place that runs them all. Other files are
    removed, except for those of the parts, which a killed run may have left."""
    for path in task.folder.iterdir():
        if path.is_file():
            path.unlink()
    # Another choice of cases may have been interrupted here.
    for folder in {*(task.folder / "cases").glob("*")} - {
            part.folder for part in parts_of(task)}:
        shutil.rmtree(folder)
    Path(task.folder / "job.json").write_text(json.dumps(task.job()))
