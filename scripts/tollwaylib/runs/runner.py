# SPDX-License-Identifier: GPL-2.0
"""Run an experiment for one or more seeds, at a place, into a directory."""

import concurrent.futures
import contextlib
import errno
import fcntl
import os
import shutil
import subprocess
import sys

from .. import files, programs
from ..errors import RefusedError, TollwayError
from ..experiments import jobs as experiments
from ..paths import TOP
from ..progress import Progress
from ..results import analysis, schema


@contextlib.contextmanager
def claimed(out_dir):
    """Keep a second run away from a directory as long as this one lasts.

    Directories that are made for it and have nothing in them at the end, as
    nothing was run, are removed.
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


def run(place, experiment, cc, aqm, values, duration_s, seeds, out_dir,
        jobs=1, command="", options=None, progress=None, variant=None):
    """Run every seed; returns the list of results, in the order of seeds.

    place: object with prepare(progress), run(job, out_dir, core, on_line) and
    provenance(), see places/lab.py and places/host.py. options: more entries of
    the job (trace, traffic, verbose). variant: the Variant that it is, of an
    experiment that compares. Each seed's raw.json and result.json are
    in out_dir/seed-N. What a failed or interrupted seed left is removed, but
    for its logs.
    """
    progress = progress or Progress()
    options = options or {}
    programs.need(programs.EXPERIMENTS,
                  *([programs.TRACE] if options.get("trace") else []),
                  *([programs.IPERF3] if options.get("traffic") == "iperf3"
                    else []))
    place.prepare(progress)
    # Before the run: what fails here would have made it in vain.
    provenance = dict(place.provenance(), command=command, checkout=checkout())
    cores = sorted(os.sched_getaffinity(0))
    jobs = min(jobs, len(seeds), len(cores))
    done = []
    with claimed(out_dir), concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        def one(index):
            seed = seeds[index]
            job = dict(experiments.job(experiment, cc, aqm, values, duration_s,
                                       seed, variant), **options)
            return run_seed(place, job, out_dir / f"seed-{seed}",
                            cores[index % jobs], provenance, progress)

        futures = []
        try:
            futures += [pool.submit(one, index) for index in range(len(seeds))]
            for future in futures:
                done.append(future.result())
        except BaseException:
            for future in futures:
                future.cancel()
            place.stop()
            raise
        finally:
            progress.done()
    return done


def run_seed(place, job, folder, core, provenance, progress):
    """Run one seed into a folder; returns its result."""
    complete = False
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        place.run(job, folder, core, lambda line: _show(line, job, progress))
        raw = schema.load_raw(folder)
        raw["provenance"].update(provenance)
        files.write_json_atomic(folder / "raw.json", raw, indent=None)
        result = analysis.analyse(raw)
        files.write_json_atomic(folder / "result.json", result)
        complete = True
        return result
    except RefusedError:
        # It was not run, and there is nothing that a log could explain.
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        if not complete:
            for name in ("raw.json", "raw.json.new", "result.json"):
                (folder / name).unlink(missing_ok=True)


def _show(line, job, progress):
    if line.startswith("tollway: "):
        progress.step(f"seed {job['seed']}: {line[9:]}")
    elif job.get("verbose"):
        print(line, file=sys.stderr)


def checkout():
    """What was run: the commit and whether the tree differs from it."""
    def git(*words):
        with contextlib.suppress(OSError):
            return subprocess.run(
                ["git", "-C", str(TOP), *words], text=True, check=False,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL).stdout.strip()
        return ""
    return {"commit": git("rev-parse", "HEAD") or None,
            "changed": bool(git("status", "--porcelain"))}
