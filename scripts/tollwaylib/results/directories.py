# SPDX-License-Identifier: GPL-2.0
"""Directories of complete results."""

import pathlib
import sys

from ..errors import TollwayError
from ..files import result_directories


def complete_results(directory):
    """Directories below this one that have a result.json, in the order of their paths.

    A run writes raw.json first. If it is killed then, raw.json has no result.json beside it.
    Such a directory is left out, with a note on the standard error. It is an error
    (TollwayError) if it is `directory` itself, or if there is no other directory.
    """
    directory = pathlib.Path(directory)
    if not directory.is_dir():
        raise TollwayError(f"{directory} is not a directory with results")
    complete, incomplete = [], []
    for place in result_directories(directory):
        found = complete if (place / "result.json").is_file() else incomplete
        found.append(place)
    if incomplete and (directory in incomplete or not complete):
        raise TollwayError(f"the result in {incomplete[0]} is incomplete: it has no "
                           "result.json. Make the run again")
    for place in incomplete:
        print(f"note: {place} is left out: it has a raw.json, but no "
              "result.json", file=sys.stderr)
    return complete
