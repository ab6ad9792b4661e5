# SPDX-License-Identifier: GPL-2.0
"""Run an experiment for one or more seeds, at a place, into a directory."""

import concurrent.futures
import contextlib
import errno
import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from . import (experiments, files, programs, report, results, schema, tables,
               verdicts)
from .errors import RefusedError, TollwayError
from .kernels import build
from .paths import TOP
from .progress import Progress


def write_json(path, text):
    """Write the file of --json: whole or not at all if it is a file, as it
    comes if it is anything else, such as a pipe or /dev/null."""
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
    else:
        files.write_text_atomic(path, text)


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
    provenance(), see place_lab.py and place_host.py. options: more entries of
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
        result = results.analyse(raw)
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


def tool_versions():
    """{program: version} of what took part."""
    def first_line(*argv):
        with contextlib.suppress(OSError):
            done = subprocess.run(argv, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, check=False)
            return done.stdout.strip().partition("\n")[0]
        return "missing"
    return {"tc": first_line("tc", "-V"), "ip": first_line("ip", "-V"),
            "python": sys.version.split()[0],
            "mininet": first_line("mn", "--version"),
            "gcc": first_line("gcc", "--version")}


def module_versions(folder):
    """{module: {version, srcversion}} of built modules."""
    versions = {}
    for path in build.module_files(folder):
        fields = subprocess.run(
            ["modinfo", str(path)], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, check=False).stdout
        entries = dict(line.split(":", 1) for line in fields.splitlines()
                       if ":" in line)
        versions[Path(path).stem] = {
            key: entries.get(key, "").strip()
            for key in ("version", "srcversion")}
    return versions


def show_variants(done, out_dir, as_json=None):
    """Print the comparison of all variants, write the report; returns the
    list of their results or aggregates, the content of --json."""
    settings = {}
    for result in done:
        key = json.dumps(result["parameters"], sort_keys=True)
        settings.setdefault(key, []).append(result)
    wholes = results.compare([
        results.aggregate(same) if len(same) > 1 else same[0]
        for same in settings.values()])
    _present(wholes, tables.variants_tables(wholes), out_dir, as_json)
    return wholes


def show(done, out_dir, as_json=None):
    """Print the tables, write the report; returns the object of --json."""
    whole = results.aggregate(done) if len(done) > 1 else done[0]
    _present(whole, tables.result_tables(whole), out_dir, as_json)
    return whole


def _present(wholes, shown, out_dir, as_json):
    """Write the report and the object of --json, or print its tables; then how
    many verdicts hold, and which do not."""
    # First what lasts: the terminal may be gone.
    page = report.write_report(out_dir)
    text = json.dumps(wholes, indent=1) + "\n"
    if as_json == "-":
        sys.stdout.write(text)
    elif as_json:
        write_json(as_json, text)
    if as_json != "-":
        for table in shown:
            print(tables.render_text(table))
            print()
    if isinstance(wholes, dict):
        wholes = [wholes]
    print(f"report: {page}\n{verdicts.text(wholes)}",
          file=sys.stderr if as_json == "-" else sys.stdout)
