# SPDX-License-Identifier: GPL-2.0
"""Published values, from papers/*.json.

A part of an experiment has the links, flows and parameters that a run must have to be
compared with its values. A row of a part is one congestion control over one queue. Its
`setup` has their parameters. The numbers of a row are judged if the run had the same
parameters. `baseline`: the paper has this row to compare its own proposals with.
"""

import functools
import pathlib

from ..errors import TollwayError
from ..files import load_json

_DATA = pathlib.Path(__file__).parents[1] / "papers"


@functools.lru_cache(maxsize=None)
def _all():
    """Parts by experiment, and reasons, of all papers."""
    found = {"experiments": {}, "reasons": []}
    for path in sorted(_DATA.glob("*.json")):
        data = load_json(path)
        for name, parts in data["experiments"].items():
            found["experiments"].setdefault(name, []).extend(parts)
        found["reasons"] += data.get("reasons", [])
    return found


def parts(experiment):
    """The parts of the experiment with this name; none if no paper has it."""
    return _all()["experiments"].get(experiment, [])


def reasons():
    """Known reasons for verdicts that do not hold: [{experiment, pairs, about, why}]."""
    return _all()["reasons"]


def rows(experiment, cc, aqm, values):
    """Rows of a congestion control over a queue, of the parts whose parameters the run has.

    values: {name: value}; a parameter that is missing is not compared.
    """
    return [row for part in parts(experiment)
            if all(values.get(name, wanted) == wanted for name, wanted in
                   part["setup"].get("parameters", {}).items())
            for row in part["rows"] if [cc, aqm] in row["pairs"]]


def setup(experiment, cc, aqm, values):
    """{name: value} of the settings of a paper's row, as parameters.

    Arguments as for rows(). Raises TollwayError if no paper has such a row.
    """
    found = rows(experiment, cc, aqm, values)
    if not found:
        raise TollwayError(
            f"--set setup=paper: no paper has values of {cc} over {aqm} in "
            f"{experiment}")
    # A row names the willingness to pay of each class.
    return {name: value[0] if name == "wtp" else value
            for name, value in found[0]["setup"].items()}
