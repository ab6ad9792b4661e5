# SPDX-License-Identifier: GPL-2.0
"""One tidy table of all results below a directory, for other programs."""

import csv
import functools
import io
import os
import shutil
import sys
import tempfile
from pathlib import Path

from ..errors import TollwayError
from .directories import complete_results
from .entries import entries_of
from .schema import load_raw, load_result

FORMATS = ("csv", "parquet")
# One row for each number that was measured.
# The names of cases, which may have commas, are last.
COLUMNS = ("experiment", "run", "cc", "aqm", "seed", "kind", "name", "path",
           "wtp", "series", "x", "metric", "value", "case")
# Of a result: the kind of its rows, the field that names an entry, and those
# that describe it. All others are measured.
_LISTS = {"flows": ("flow", "id", ("path", "cc", "wtp")),
          "classes": ("class", "path", ("path", "wtp")),
          "steady_state": ("steady_state", "link", ()),
          "pages": ("pages", "path", ("path",))}
# Of an interval: what has rows of its own.
_PARTS_OF_INTERVALS = ("links", "classes")


def rows(result, run, raw=None):
    """Rows of one result as a list of dicts, each with some of COLUMNS.

    result: as in result.json. run: the name of its directory. raw: of load_raw(); only this
    has the flows and links of an experiment that names metrics. Flows, classes, links,
    cases and all other parts of a run have one row for each measured number. None is a
    number that was not measured, and has no row. Units are in the names of metrics.

    Rows of an interval have its number as `series`, and its beginning in s as `x`. Their
    kinds differ from those of the whole run, so that nobody mixes them by mistake.
    """
    whose = {"experiment": result["experiment"], "run": run,
             "cc": result["parameters"].get("cc"),
             "aqm": result["parameters"].get("aqm"), "seed": result["seed"]}
    found = []

    def add(numbers, **words):
        found.extend({**whose, **words, "metric": metric, "value": value}
                     for metric, value in numbers.items() if value is not None)

    def add_entries(part, prefix="", **words):
        for name, link in part.get("links", {}).items():
            add(link, kind=f"{prefix}link", name=name, **words)
        for field, (kind, key, told) in _LISTS.items():
            for entry in part.get(field, ()):
                given = {word: entry[word] for word in told}
                given.setdefault("cc", whose["cc"])
                add({metric: value for metric, value in entry.items()
                     if metric not in (key, *told)}, kind=prefix + kind,
                    name=str(entry[key]), **given, **words)

    def add_case(case):
        add_entries(case, case=case["name"])
        add(case.get("recovery", {}), case=case["name"], kind="recovery",
            name=case["name"])
        for number, step in enumerate(case.get("intervals", ()), 1):
            words = {"case": case["name"], "series": f"interval {number}",
                     "x": step["start_s"]}
            add_entries(step, "interval_", **words)
            add({metric: value for metric, value in step.items()
                 if metric not in _PARTS_OF_INTERVALS}, kind="interval",
                name=str(number), **words)

    for case in result["cases"]:
        add_case(case)
        add(case["metrics"], case=case["name"], kind="case", name=case["name"],
            series=case["series"], x=case["x"])
    for case in entries_of(raw) if raw else ():
        add_case(case)
    return found


def table(directory):
    """Rows of all results below a directory, in the order of their paths.

    Directories without result.json are left out, see complete_results(). Raises
    TollwayError if there is no result, or if one of them is damaged.
    """
    directory = Path(directory)
    found = []
    for place in complete_results(directory):
        result, raw = load_result(place), place / "raw.json"
        found += rows(result, str(place.relative_to(directory)),
                      load_raw(place) if result["columns"] and raw.exists()
                      else None)
    if not found:
        raise TollwayError(f"{directory} holds no results: no result.json was "
                           "found below it")
    return found


def write(directory, form, out=None):
    """Write the table of a directory as csv or parquet.

    out: the path of a file, which is replaced at once, or not at all if writing fails. A
    special file, such as a FIFO, is opened and written. If out is a symbolic link, its
    target is written. None is the standard output, for csv only.

    Raises TollwayError if parquet shall go to the standard output, or if out cannot be written.
    """
    found = table(directory)
    if form == "parquet":
        if out is None:
            raise TollwayError("parquet is a binary format: name a file with "
                               "--out")
        _write_to(Path(out), functools.partial(_write_parquet, found))
        return
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)
    if out is None:
        sys.stdout.write(text.getvalue())
    else:
        _write_to(Path(out), functools.partial(
            Path.write_text, data=text.getvalue(), encoding="utf-8"))


def _write_to(out, write_file):
    """Write out by write_file(path), which writes a regular file."""
    new = None
    try:
        special = out.exists() and not out.is_file()
        # Not of a special file: /dev/stdout leads to a name that cannot be opened.
        target = out if special else Path(os.path.realpath(out))
        # In the same file system as the target, for os.replace().
        handle, new = tempfile.mkstemp(
            dir=None if special else target.parent, suffix=".tmp")
        os.close(handle)
        write_file(Path(new))
        if special:
            with open(new, "rb") as source, open(target, "wb") as sink:
                shutil.copyfileobj(source, sink)
        else:
            os.chmod(new, 0o644)
            os.replace(new, target)
            new = None
    except OSError as error:
        raise TollwayError(f"cannot write {out}: {error.strerror}") from error
    finally:
        if new is not None:
            Path(new).unlink(missing_ok=True)


def _write_parquet(found, path):
    try:
        # Slow to import, and only needed here.
        import pandas
        pandas.DataFrame(found, columns=COLUMNS).to_parquet(path, index=False)
    except ImportError as error:
        raise TollwayError(
            "--format parquet needs the Python packages pandas and pyarrow or "
            "fastparquet; --format csv needs none of them") from error
