# SPDX-License-Identifier: GPL-2.0
"""Run experiments at a place: all jobs of a command in one queue.

A job is one case of one seed of one variant, at each place: see separate.py.
"""

import contextlib
import errno
import fcntl
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import files, jobqueue, programs
from ..errors import RefusedError, TollwayError
from ..experiments import jobs as experiments
from ..paths import checkout
from ..progress import Progress
from . import separate

# Of a job: what does not change its numbers, and what places add to it.
_NOT_COMPARED = {"title", "about", "verbose", "out_dir", "bin_dir", "disposable",
                 "real_time"}


@dataclass(frozen=True)
class Combination:
    """An experiment with a congestion control, a queue and parameters, and the directory that
    has the results of its seeds in seed-N. variant: the Variant, if the experiment compares.
    options: more entries of its jobs (trace, traffic, verbose)."""
    experiment: Any
    cc: str
    aqm: str
    values: dict
    duration_s: float
    out_dir: Path
    variant: Any = None
    options: dict = None

    def job(self, seed):
        """What the guest needs for a seed (dict)."""
        return dict(experiments.job(self.experiment, self.cc, self.aqm,
                                    self.values, self.duration_s, seed,
                                    self.variant), **(self.options or {}))

    def needs(self):
        """What programs are needed for, see programs.need()."""
        options, make = self.options or {}, self.experiment.cases
        return ([programs.EXPERIMENTS]
                + [programs.PASSAGES] * bool(make and any(
                    case.passages for case in make(self.values)))
                + [programs.TRACE] * bool(options.get("trace"))
                + [programs.IPERF3] * (options.get("traffic") == "iperf3"))


@dataclass(frozen=True)
class Task:
    """A seed of a combination. Its cases, if it has several, are jobs of their own.
    results: see run()."""
    combination: Combination
    seed: int
    results: Any

    @property
    def folder(self):
        """The directory of its raw.json and result.json."""
        return self.combination.out_dir / f"seed-{self.seed}"

    @property
    def name(self):
        """Its name in lines of progress."""
        variant = self.combination.variant
        return f"{variant.name}, seed {self.seed}" if variant else \
            f"seed {self.seed}"

    def job(self):
        """What the guest needs (dict)."""
        job = self.combination.job(self.seed)
        # Results of earlier versions, whose cases shared a network, are others.
        return dict(job, separate=True) if len(job["cases"]) > 1 else job


@contextlib.contextmanager
def claimed(out_dir):
    """Lock a directory against a second run while this one lasts.

    Directories that were created for it and are empty at the end are removed.

    Raises TollwayError if another run has locked it, or if it cannot be written.
    """
    made = [folder for folder in (out_dir, *out_dir.parents)
            if not folder.exists()]
    path = out_dir / ".lock"
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        lock = open(path, "w", encoding="ascii")
    except OSError as error:
        raise TollwayError(f"{out_dir} cannot be made or written: "
                           f"{error.strerror}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            raise TollwayError(f"another run writes to {out_dir}: give this "
                               "one another --out") from None
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                if made and os.listdir(out_dir) == [path.name]:
                    path.unlink()
                for folder in made:
                    folder.rmdir()


def run(place, combinations, seeds, out_dir, results, jobs=1, command="",
        progress=None, resume=False):
    """Run every seed of every combination; returns the list of results, in this order.

    place: object with prepare(progress), run(job, folder, core, on_line), stop(),
    provenance(), `parallel` (several jobs may run at the same time) and `has_kernel` (there
    are networks to build), see places/usermode_lab.py. out_dir: directory of all
    combinations. results: functions that read and make results, see results/reading.py.
    jobs: number of jobs that run at the same time, each on a core of its own. resume: keep
    existing results; TollwayError if another job or another kernel made one of them.

    The measurements of a job are written when it ends. Files of a failed or interrupted job
    are removed, except for its logs. An interrupt loses only the jobs that are running.
    """
    progress = progress or Progress()
    if place.has_kernel:
        programs.need(*dict.fromkeys(need for combination in combinations
                                     for need in combination.needs()))
    place.prepare(progress)
    # Before the run: what fails here would have made it in vain.
    provenance = place.provenance()
    tasks = [Task(combination, seed, results)
             for combination in combinations for seed in seeds]
    with contextlib.ExitStack() as claims:
        for folder in dict.fromkeys([out_dir, *(combination.out_dir for
                                                combination in combinations)]):
            claims.enter_context(claimed(folder))
        done = {task.folder: earlier_result(task, provenance) for task in tasks} \
            if resume else {}
        joined, queue, total, complete = separate.Joined(), [], 0, []
        for task in tasks:
            parts = separate.parts_of(task)
            total += len(parts) or 1
            if not done.get(task.folder):
                queue += _missing_parts(task, parts, provenance, resume, joined) \
                    if parts else [task]
                if parts and joined.is_complete(task):
                    complete.append(task)
        called = "cases" if total > len(tasks) else "runs"
        if resume:
            progress.say(f"{total - len(queue)} of {total} {called} exist already")
        provenance.update(command=command, checkout=checkout())
        ended = []

        def one(job, core):
            with progress.job(job.name) as line:
                if isinstance(job, separate.Part):
                    joined.begin(job)
                    run_part(place, job, core, provenance, line)
                    ended.append(job)
                    if joined.is_last(job):
                        done[job.task.folder] = join(job.task)
                else:
                    done[job.folder] = run_task(place, job, core, provenance, line)
                    ended.append(job)

        cores = jobqueue.cores()[:max(1, min(jobs if place.parallel else 1,
                                             len(queue)))]
        progress.jobs(len(queue), called)
        try:
            jobqueue.run(queue, cores, one, place.stop)
            # Last: what cannot be joined must not keep others from being run.
            for task in complete:
                done[task.folder] = join(task)
        except BaseException as error:
            if isinstance(error, RefusedError):
                # Nor is there anything to explain of those that it has stopped.
                separate.discard(queue)
            count = total - len(queue) + len(ended)
            if count:
                progress.say(f"{count} of {total} {called} are kept: the "
                             "same command with --resume makes the others")
            raise
        finally:
            progress.done()
    return [done[task.folder] for task in tasks]


def _missing_parts(task, parts, provenance, resume, joined):
    """The parts of a task that still have to be run."""
    left = [part for part in parts
            if not resume or not _is_kept(part, provenance)]
    joined.expect(task, len(left), resume)
    return left


def _is_kept(part, provenance):
    """True if an earlier run has left the measurements of this part."""
    folder = part.folder
    if not all((folder / name).is_file() for name in
               ("job.json", separate.PART)):
        return False
    made = files.load_json(folder / separate.PART)["provenance"]
    return not difference(
        {"job": _compared(files.load_json(folder / "job.json")),
         **{key: made.get(key) for key in provenance}},
        json.loads(json.dumps({"job": _compared(part.job()), **provenance})))


def join(task):
    """Write the result of a task whose parts are all complete; returns it."""
    separate.write_job(task)
    raw = separate.merged(separate.parts_of(task))
    files.write_json_atomic(task.folder / "raw.json", raw, indent=None)
    return _write_result(task, raw)


def _write_result(task, raw):
    """Write the result of raw measurements. The result is the sign that all files are
    complete, so nothing is written after it."""
    result = task.results.analyse(raw)
    files.write_json_atomic(task.folder / "result.json", result)
    return result


def _follow(job, line):
    """Process a line that a place prints."""
    def on_line(text):
        if text.startswith("tollway: "):
            line.step(text[9:])
        elif job.get("verbose"):
            line.say(text)
    return on_line


def run_task(place, task, core, provenance, line):
    """Run all cases of a task; returns its result. line: its progress.Job."""
    with _measured(place, task, core, provenance, line) as raw:
        return _write_result(task, raw)


def run_part(place, part, core, provenance, line):
    """Run one case of a task."""
    with _measured(place, part, core, provenance, line):
        separate.keep(part)


@contextlib.contextmanager
def _measured(place, task, core, provenance, line):
    """Run a task or a part into its folder; yields its raw.json, which is removed if the code
    that uses it fails."""
    folder, job = task.folder, task.job()
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        place.run(job, folder, core, _follow(job, line))
        raw = task.results.load_raw(folder)
        raw["provenance"].update(provenance)
        files.write_json_atomic(folder / "raw.json", raw, indent=None)
        yield raw
    except BaseException as error:
        for name in ("raw.json", "raw.json.new", "result.json"):
            (folder / name).unlink(missing_ok=True)
        if isinstance(error, RefusedError):
            # It was not run, and there is nothing that a log could explain.
            shutil.rmtree(folder, ignore_errors=True)
        raise


def earlier_result(task, provenance):
    """The result of a task that an earlier run has left, or None. TollwayError if the job of
    that run differs from this one.

    provenance: of the place.
    """
    folder = task.folder
    if not all((folder / name).is_file() for name in
               ("job.json", "raw.json", "result.json")):
        return None
    result = task.results.load_result(folder)
    made = {"job": _compared(files.load_json(folder / "job.json")),
            **{key: result["provenance"].get(key) for key in provenance}}
    # As it is after a way through a file of JSON.
    asked = json.loads(json.dumps({"job": _compared(task.job()),
                                   **provenance}))
    found = difference(made, asked)
    if found:
        raise TollwayError(
            f"{folder} has the result of another run ({found}): give this one "
            "another --out, or leave out --resume to replace it")
    return result


def _compared(job):
    return {key: value for key, value in job.items()
            if key not in _NOT_COMPARED}


def difference(made, asked, where=""):
    """The first difference of two JSON values in words, "" if there is none."""
    if isinstance(made, dict) and isinstance(asked, dict):
        pairs = [(key, made.get(key), asked.get(key)) for key in
                 dict.fromkeys([*made, *asked])]
    elif isinstance(made, list) and isinstance(asked, list) and \
            len(made) == len(asked):
        pairs = list(zip(range(len(made)), made, asked))
    elif made == asked:
        return ""
    else:
        return f"{where} {_short(made)} instead of {_short(asked)}"
    return next(filter(None, (
        difference(mine, other, f"{where}.{key}" if where else str(key))
        for key, mine, other in pairs)), "")


def _short(value):
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
