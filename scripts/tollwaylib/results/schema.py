# SPDX-License-Identifier: GPL-2.0
"""The schemas of the files of results."""

import functools
import math
import pathlib

from ..errors import TollwayError
from ..files import load_json
from . import older

# Of result.json, and of raw.json, which guest/job.py writes; older.py reads
# those before them.
SCHEMA = 5
RAW_SCHEMA = 4
# More than this means that the link is not shaped as described.
LARGEST_UTILIZATION = 1.02
# What the report of tollway-traffic calls them.
RECOVERY = ("fast_retransmits", "timeouts", "retransmits")
# The schema of result.json, for every program that reads one.
PUBLISHED = pathlib.Path(__file__).with_name("result.schema.json")


def load_raw(directory, name="raw.json"):
    """The raw result in a directory's raw.json, as a dict of the schema of now.

    Raises TollwayError if it is missing, damaged or of an unknown schema.
    """
    return _load(pathlib.Path(directory) / name, upgraded)


def load_result(directory):
    """The result in a directory's result.json, of the schema of now and checked.

    Raises TollwayError as load_raw() does, and if a field is wrong.
    """
    def checked(result):
        result = upgraded_result(result)
        validate(result)
        return result

    return _load(pathlib.Path(directory) / "result.json", checked)


def _load(path, read):
    content = load_json(path)
    try:
        return read(content)
    except TollwayError as error:
        raise TollwayError(f"{path}: {error}") from error


def upgraded(raw):
    """A raw result of this or an older schema, as one of RAW_SCHEMA.

    Raises TollwayError if the schema is unknown.
    """
    return older.with_figures(
        older.upgraded(raw, "raw result", RAW_SCHEMA, older.RAW))


def upgraded_result(result):
    """The same of a result, as one of SCHEMA."""
    return older.upgraded(result, "result", SCHEMA, older.RESULT)


# --- the schema ----------------------------------------------------------

@functools.cache
def _validator(kind):
    """A validator of one of the $defs of the published schema."""
    try:
        # Slow to import, and not all commands need it.
        import jsonschema
    except ImportError as error:
        raise TollwayError("the Python package jsonschema is missing: run "
                           "scripts/install-dependencies") from error
    return jsonschema.Draft202012Validator(
        {**load_json(PUBLISHED), "$ref": f"#/$defs/{kind}"})


def validate(result):
    """Check a result against result.schema.json: every field, and no other.

    Raises TollwayError that names the first field that is wrong; returns None.
    """
    _check(result, "result")


def validate_aggregate(outcome):
    """Check an aggregate of several seeds in the same way."""
    _check(outcome, "aggregate")


def _check(result, kind):
    for error in _validator(kind).iter_errors(result):
        raise TollwayError(_sentence(error))
    # Python has numbers that JSON has not.
    where = _not_finite(result, ())
    if where:
        raise TollwayError(f"the result's {_place(where)} is not a finite "
                           "number")


def _sentence(error):
    """A sentence about an error of jsonschema, with the name of the field."""
    where, there = _place(error.absolute_path), error.instance
    if error.validator == "required":
        (missing, *_) = [name for name in error.validator_value
                         if name not in there]
        return f"the result's {where} has no {missing}"
    if error.validator == "additionalProperties":
        (unknown, *_) = [name for name in there
                         if name not in error.schema["properties"]]
        return f"the result's {where} has an unknown field {unknown}"
    if error.validator in ("minItems", "minProperties"):
        return f"the result's {where} is empty"
    if error.validator == "type" and error.validator_value in ("object",
                                                               "array"):
        kind = {"object": "an object", "array": "a list"}
        return f"the result's {where} is not {kind[error.validator_value]}"
    return f"the result's {where} cannot be {_short(there)}"


def _place(path):
    """The path of a field in a result: flows[3].rate_pps."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}"
                   for step in path)
    return text.lstrip(".") or "object"


def _not_finite(value, where):
    """The path of a number that is not finite, or None."""
    if isinstance(value, float):
        return None if math.isfinite(value) else where
    inside = value.items() if isinstance(value, dict) else \
        enumerate(value) if isinstance(value, (list, tuple)) else ()
    return next(filter(None, (_not_finite(part, (*where, key))
                              for key, part in inside)), None)


def _short(value):
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
