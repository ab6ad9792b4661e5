# SPDX-License-Identifier: GPL-2.0
"""What has to be in the files of results."""

import math
import pathlib
import re

from ..errors import TollwayError
from ..files import load_json

SCHEMA = 3
# Of raw.json, which guest/run.py writes; upgraded() reads those before it.
RAW_SCHEMA = 2
# What schema 1 of raw.json had beside the rest, of a run without a list of cases.
OF_CASE = ("flows", "queues", "network")
# More than this means that the link is not shaped as described.
LARGEST_UTILIZATION = 1.02
# What the report of tollway-traffic calls them.
RECOVERY = ("fast_retransmits", "timeouts", "retransmits")
_EPSILON = 1e-9


def load_raw(directory):
    """The raw result in a directory's raw.json, as a dict of the schema of now.

    Raises TollwayError if it is missing, damaged or of an unknown schema.
    """
    raw = load_json(pathlib.Path(directory) / "raw.json")
    try:
        return upgraded(raw)
    except TollwayError as error:
        raise TollwayError(f"{directory}/raw.json: {error}") from error


def upgraded(raw):
    """A raw result of this or an older schema, as one of RAW_SCHEMA.

    In schema 1 a run without a list of cases had its flows and queues in their
    place. Raises TollwayError if the schema is unknown.
    """
    found = raw.get("schema") if isinstance(raw, dict) else None
    if found == RAW_SCHEMA:
        return raw
    if found != 1:
        raise TollwayError(f"the raw result has schema {found!r}, not "
                           f"{RAW_SCHEMA} or 1")
    if "cases" in raw:
        return {**raw, "schema": RAW_SCHEMA}
    whole = {key: value for key, value in raw.items()
             if key not in OF_CASE}
    case = {key: raw[key] for key in OF_CASE if key in raw}
    flows = raw.get("flows") or [{}]
    return {**whole, "schema": RAW_SCHEMA,
            "mss_bytes": flows[0].get("mss_bytes"),
            "metrics": [], "pictures": [],
            "cases": [{"name": "run", "point": "run", "x": None,
                       "series": None, "rtt_s": None, "values": {},
                       "wires": {},
                       "duration_s": raw.get("parameters", {}).get(
                           "duration_s"), **case}]}


def whole_run(raw):
    """A raw result of one case, with what it has of the case beside the rest:
    what tables and figures of a run without a list of cases read."""
    (case,) = raw["cases"]
    return {**raw, **case, "flows": [{"mss_bytes": raw["mss_bytes"], **flow}
                                     for flow in case["flows"]]}


# --- the schema ----------------------------------------------------------

def _is_number(value):
    return (isinstance(value, (int, float)) and not isinstance(value, bool)
            and math.isfinite(value))


def _is_count(value):
    return _is_number(value) and value >= 0 and value == int(value)


def _is_text(value):
    return isinstance(value, str) and value != ""


def _is_positive(value):
    return _is_number(value) and value > 0


def _is_share(value):
    return _is_number(value) and 0 <= value <= LARGEST_UTILIZATION


def _is_part(value):
    return _is_number(value) and 0 <= value <= 1 + _EPSILON


def _at_least_zero(value):
    return _is_number(value) and value >= 0


def _is_integer(value):
    return isinstance(value, int) and not isinstance(value, bool)


def _is_digest(value):
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value)


def _or_null(check):
    return lambda value: value is None or check(value)


def _one_of(*words):
    return lambda value: value in words


def _is_anything(value):
    return True


def _is_parameters(value):
    return isinstance(value, dict) and _finite(value)


def _finite(value):
    if isinstance(value, dict):
        return all(map(_finite, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _fields(value, where, fields):
    """Check an object: exactly these fields, each passing its check."""
    if not isinstance(value, dict):
        raise TollwayError(f"the result's {where} is not an object")
    for name in fields:
        if name not in value:
            raise TollwayError(f"the result's {where} has no {name}")
    for name, content in value.items():
        if name not in fields:
            raise TollwayError(f"the result's {where} has an unknown field "
                               f"{name}")
        if not fields[name](content):
            raise TollwayError(f"the result's {where}.{name} cannot be "
                               f"{_short(content)}")


def _short(value):
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _list(value, where, fields, empty=False, rivals=None):
    if not isinstance(value, list) or not (value or empty):
        raise TollwayError(f"the result's {where} is not a list"
                           f"{'' if empty else ' with entries'}")
    for index, entry in enumerate(value):
        is_rival = rivals and isinstance(entry, dict) and "than" in entry
        _fields(entry, f"{where}[{index}]", rivals if is_rival else fields)


def _links(value, where, fields):
    if not isinstance(value, dict) or not value:
        raise TollwayError(f"the result's {where} is not an object with links")
    for name, link in value.items():
        _fields(link, f"{where}.{name}", fields)


_LINK = {"capacity_bps": _is_positive, "utilization": _is_share,
         "queue_mean_pkts": _at_least_zero, "queue_p99_pkts": _at_least_zero,
         "queue_mean_ms": _at_least_zero,
         "marks": _is_count, "drops": _is_count}
_FLOW = {"id": _is_integer, "path": _is_text, "cc": _is_text,
         "wtp": _or_null(_is_positive), "rate_pps": _at_least_zero,
         "goodput_bps": _at_least_zero, "retransmits": _or_null(_is_count),
         "rtt_mean_ms": _or_null(_is_positive)}
_CLASS = {"path": _is_text, "wtp": _or_null(_is_positive),
          "rate_pps": _is_positive, "expected_pps": _is_positive,
          "error": _is_number, "spread": _at_least_zero}
_PUBLISHED_ENTRY = {"name": _is_text, "value": _is_number, "unit": _is_text,
                    "paper": _is_text,
                    "measured": _or_null(_is_number),
                    "verdict": _one_of("agrees", "better", "differs",
                                       "other setup"),
                    "differences": lambda value: isinstance(value, list) and
                    all(map(_is_text, value))}
_BOUND = {"name": _is_text, "metric": _is_text,
          "measured": _or_null(_is_number), "op": _one_of("<=", ">="),
          "bound": _is_number,
          "verdict": _one_of("holds", "fails", "needs seeds")}
# Where the bound is what another variant measured, which may be missing.
_RIVAL = {**_BOUND, "than": _is_text, "bound": _or_null(_is_number),
          "verdict": _one_of("holds", "fails", "needs runs")}
_INTERVAL_LINK = {"utilization": _is_share, "utilization_after_2s": _is_share,
                  "queue_mean_pkts": _at_least_zero, "drops": _is_count,
                  "drops_after_2s": _is_count}
_INTERVAL_CLASS = {**_CLASS, "convergence_s": _or_null(_at_least_zero),
                   "near_s": _or_null(_at_least_zero), "jain": _is_part}
_INTERVAL = {"start_s": _at_least_zero, "stop_s": _is_positive,
             "factor": _is_positive, "links": _is_anything,
             "classes": _is_anything,
             "max_convergence_s": _or_null(_at_least_zero),
             "max_abs_error": _at_least_zero, "min_jain": _is_part}
_POINT = {"link": _is_text, "flows": _is_count, "wtp_sum": _is_positive,
          "capacity_pps": _is_positive, "max_rate_error": _at_least_zero,
          "mark_probability": _is_part, "expected_mark_probability": _is_part,
          "queue_pkts": _at_least_zero, "expected_queue_pkts": _at_least_zero}
_PAGES = {"path": _is_text, "pages": _is_count, "unfinished": _is_count,
          "median_s": _or_null(_is_positive),
          "p99_s": _or_null(_is_positive), "mean_s": _is_positive,
          "mean_bytes": _is_positive, "throughput_kBps": _is_positive}
_LISTS = {"steady_state": _POINT, "pages": _PAGES}
_PROVENANCE = {"kernel": _is_text, "config_sha256": _is_text,
               "patches": lambda value: isinstance(value, list),
               "hz": _or_null(_is_positive),
               "modules": lambda value: isinstance(value, dict),
               "sysctls": lambda value: isinstance(value, dict),
               "qdiscs": lambda value: isinstance(value, (list, dict)),
               "tools": lambda value: isinstance(value, dict),
               "command": _is_text}
_RESULT = {"schema": lambda value: value == SCHEMA, "experiment": _is_text,
           "parameters": _is_parameters, "seed": _is_integer,
           "links": _is_anything, "flows": _is_anything,
           "classes": _is_anything, "published": _is_anything,
           "bounds": _is_anything, "provenance": _is_parameters,
           "digest": _is_digest}


_CASE = {"name": _is_text, "x": _or_null(_is_number),
         "series": _or_null(_is_text), "runs": _is_count,
         "metrics": lambda value: isinstance(value, dict) and all(
             _is_text(key) and (number is None or _is_number(number))
             for key, number in value.items())}
_COLUMN = {"key": _is_text, "title": _is_text, "digits": _is_count}


def _validate_cases(result):
    fields = {name: check for name, check in _RESULT.items()
              if name not in ("links", "flows", "classes")}
    _fields(result, "object", {**fields, "cases": _is_anything,
                               "columns": _is_anything,
                               "x_title": _or_null(_is_text),
                               "capacity_bps": _is_parameters})
    _list(result["cases"], "cases", _CASE)
    _list(result["columns"], "columns", _COLUMN)


def validate(result):
    """Check a result against the schema: every field, and no other.

    `intervals` is there exactly when the run has a schedule, `steady_state`
    when it is compared with the model, `recovery` when the hosts' counters are
    known, `pages` when there are some; provenance may say more than it must.
    Where a run has `cases`, these, their `columns` and `capacity_bps` stand in
    the place of `links`, `flows` and `classes`.
    Raises TollwayError that names the first field that is wrong; returns None.
    """
    if isinstance(result, dict) and "cases" in result:
        _validate_cases(result)
    else:
        fields = dict(_RESULT)
        if isinstance(result, dict):
            fields.update({name: _is_anything for name in
                           ("intervals", "recovery", *_LISTS)
                           if name in result})
        _fields(result, "object", fields)
        _links(result["links"], "links", _LINK)
        _list(result["flows"], "flows", _FLOW)
        _list(result["classes"], "classes", _CLASS)
    _list(result["published"], "published", _PUBLISHED_ENTRY, empty=True)
    _list(result["bounds"], "bounds", _BOUND, empty=True, rivals=_RIVAL)
    required = {name: result["provenance"].get(name) for name in _PROVENANCE
                if name in result["provenance"]}
    _fields(required, "provenance", _PROVENANCE)
    for name, entries in _LISTS.items():
        if name in result:
            _list(result[name], name, entries)
    if "recovery" in result:
        _fields(result["recovery"], "recovery",
                dict.fromkeys(RECOVERY, _or_null(_is_count)))
    for index, interval in enumerate(result.get("intervals", ())):
        where = f"intervals[{index}]"
        _fields(interval, where, _INTERVAL)
        _links(interval["links"], f"{where}.links", _INTERVAL_LINK)
        _list(interval["classes"], f"{where}.classes", _INTERVAL_CLASS)
