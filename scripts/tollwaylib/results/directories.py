# SPDX-License-Identifier: GPL-2.0
"""Directories of whole results."""

import pathlib
import sys

from ..errors import TollwayError
from ..files import result_directories


def whole_results(directory):
    """Directories below this one that have a result.json, in the order of their
    paths.

    A run writes raw.json first. If it is killed then, raw.json is left alone:
    such a directory is passed over, with a note on the standard error. It is an
    error (TollwayError) if it is `directory` itself, or if there is no other.
    """
    directory = pathlib.Path(directory)
    if not directory.is_dir():
        raise TollwayError(f"{directory} is not a directory with results")
    whole, left = [], []
    for place in result_directories(directory):
        (whole if (place / "result.json").is_file() else left).append(place)
    if left and (directory in left or not whole):
        raise TollwayError(f"the result in {left[0]} is incomplete: it has no "
                           "result.json. Make the run again")
    for place in left:
        print(f"note: {place} is left out: it has a raw.json, but no "
              "result.json", file=sys.stderr)
    return whole
