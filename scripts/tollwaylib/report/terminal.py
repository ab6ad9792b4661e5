# SPDX-License-Identifier: GPL-2.0
"""The output of a run on the terminal, and the file of --json."""

import json
import sys

from .. import files
from ..results import aggregate
from ..results.verdicts import compare
from . import rendering, summary, tables
from .page import write_report


def show_variants(done, out_dir, as_json=None):
    """Print the comparison of all variants, write the report; returns the
    list of their results or aggregates, the content of --json."""
    settings = {}
    for result in done:
        key = json.dumps(result["parameters"], sort_keys=True)
        settings.setdefault(key, []).append(result)
    outcomes = compare([
        aggregate.aggregate(same) if len(same) > 1 else same[0]
        for same in settings.values()])
    _present(outcomes, tables.variants_tables(outcomes), out_dir, as_json)
    return outcomes


def show(done, out_dir, as_json=None):
    """Print the tables, write the report; returns the object of --json."""
    outcome = aggregate.aggregate(done) if len(done) > 1 else done[0]
    _present(outcome, tables.result_tables(outcome), out_dir, as_json)
    return outcome


def _present(outcomes, shown, out_dir, as_json):
    """Write the report and the object of --json, or print its tables; then how
    many verdicts hold, and which do not."""
    # First what lasts: the terminal may be gone.
    page = write_report(out_dir)
    text = json.dumps(outcomes, indent=1) + "\n"
    if as_json == "-":
        sys.stdout.write(text)
    elif as_json:
        files.write_named(as_json, text)
    if as_json != "-":
        for table in shown:
            print(rendering.render_text(table))
            print()
    if isinstance(outcomes, dict):
        outcomes = [outcomes]
    print(f"report: {page}\n{summary.text(outcomes)}",
          file=sys.stderr if as_json == "-" else sys.stdout)
