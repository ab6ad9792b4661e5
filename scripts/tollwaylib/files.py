# SPDX-License-Identifier: GPL-2.0
"""JSON files: read and checked completely, written completely or not at all."""

import json
import os
import pathlib
import tempfile

from .errors import TollwayError


def result_directories(directory):
    """Directories below this one with a result, in the order of their paths."""
    found = []
    for place, subdirectories, files in os.walk(directory):
        subdirectories.sort()
        if "raw.json" in files or "result.json" in files:
            found.append(pathlib.Path(place))
    return found


def load_json(path):
    """The value in a JSON file; NaN and damage raise TollwayError."""
    def refuse(name):
        raise TollwayError(f"{path} contains {name}, which is not a number")

    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file, parse_constant=refuse)
    except OSError as error:
        raise TollwayError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise TollwayError(f"{path} is not valid JSON: {error}") from error


def write_json_atomic(path, value, indent=1):
    """Write value to path as JSON: the whole file appears, or nothing does.

    indent: as for json.dumps; None writes one line. NaN raises TollwayError.
    """
    try:
        # In ASCII: a file name may have bytes that are no character of UTF-8.
        text = json.dumps(value, indent=indent, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise TollwayError(f"cannot write {path}: {error}") from error
    write_text_atomic(path, text + "\n")


def write_text_atomic(path, text):
    """Write text to path in UTF-8: the whole file appears, or nothing does. Raises TollwayError
    if the file cannot be written; an earlier one is kept then."""
    path = pathlib.Path(path)
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(
                "w", encoding="utf-8", dir=path.parent, suffix=".tmp",
                delete=False) as file:
            temporary = file.name
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None:
            pathlib.Path(temporary).unlink(missing_ok=True)
        raise TollwayError(f"cannot write {path}: {error.strerror}") from error


def write_named(path, text):
    """Write the file of an option: whole or not at all if it is a file, as it
    comes if it is anything else, such as a pipe or /dev/null."""
    path = pathlib.Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
    else:
        write_text_atomic(path, text)
