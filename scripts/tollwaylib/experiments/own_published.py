# SPDX-License-Identifier: GPL-2.0
"""What others have published of a user's own experiment: in its file, or in a JSON
file beside it, in the format of papers/*.json."""

import json
import math

from ..components import known_aqm
from .own_file import (JsonFile, as_dict, as_number, as_shown, as_spelled, one_of,
                       shown, spoken)
from .own_words import as_control, as_queue
from .parameters import COMMON

BETTER = ("higher", "lower")
# What a run may be set to, beside parameters of --set.
DURATION = "duration_s"


def published_of(file, names, links, metrics, cc, queue):
    """Parts as in published.py. names: of the cases; links: {name: link}; metrics:
    of the experiment; cc, queue: those of the file."""
    given = file.given.get("published", ())
    units = {one["key"]: one["unit"] for one in metrics}
    if isinstance(given, str):
        return _of_json(file, given, names, links, units)
    if not isinstance(given, (list, tuple)):
        raise file.error(("published",), f"published is {shown(given)}: give a "
                         "list, or the path of a JSON file")
    rows = [_row_of(file, ("published", index), entry, names, units, cc, queue)
            for index, entry in enumerate(given)]
    return ({"setup": {"capacity_bps": {}}, "rows": rows},) if rows else ()


def _as_tolerance(value):
    if as_number(value) < 0:
        raise ValueError("give a number of 0 or more")
    return value


def _row_of(file, place, entry, names, units, cc, queue):
    """A row of one number, of an entry of a list."""
    one = file.table(
        place, entry, {"metric": lambda value: value, "value": as_number,
                       "source": as_shown},
        {"tolerance": _as_tolerance, "case": one_of(names, "the name of a case, "),
         "better": one_of(BETTER), "cc": as_control, "queue": as_queue})
    key = one["metric"]
    if not isinstance(key, (list, tuple)) or len(key) != 2:
        raise file.error((*place, "metric"), f"{spoken(place)}['metric'] is "
                         f"{shown(key)}: give (name, link or flows)")
    key = f"{as_spelled(key[0])} {key[1]}"
    file.read((*place, "metric"), key, one_of(
        tuple(units), "a metric of the experiment with its link or flows, "))
    case = one.get("case", names[0])
    return {
        "name": one["source"], "paper": one["source"], "setup": {},
        "pairs": [[one.get("cc", cc), known_aqm(one.get("queue", queue))]],
        # One of which nobody says what is better can only agree or differ.
        "baseline": "better" not in one,
        "numbers": [{"name": key if len(names) == 1 else f"{key}, {case}",
                     "case": case, "metric": key, "value": one["value"],
                     "unit": units[key], "tolerance": one.get("tolerance", 0),
                     "better": one.get("better", "higher")}]}


# --- a JSON file -------------------------------------------------------------

def _of_json(own, path, names, links, units):
    """The parts in a JSON file. own: the file that names it; path: from the
    directory of that file."""
    where = own.path.parent / path
    try:
        there = where.is_file()
    except (OSError, ValueError):  # of a name that no file can have
        there = False
    if not there:
        raise own.error(("published",), f"published is {shown(path)}: there is no "
                        f"such file beside {own.path.name}: give a list, or the "
                        "path of a JSON file")
    file = JsonFile(where)
    top = file.table((), file.value,
                     {"experiments": as_dict("{name of an experiment: [{...}]}")},
                     {"schema": one_of((2,)), "notes": lambda value: value})
    name, place = own.path.stem, ("experiments", own.path.stem)
    if name not in top["experiments"]:
        raise file.error(("experiments",), f"experiments has no {name!r}: give "
                         f"what was published of {own.path.name} by this name")
    return tuple(
        _part(file, (*place, index), entry, names, links, units) for index, entry
        in enumerate(file.entries(place, top["experiments"][name], 1)))


def _as_value(value):
    """The value of a parameter."""
    for one in value if isinstance(value, list) else [value]:
        if not (one is None or isinstance(one, (bool, str, int)) or
                isinstance(one, float) and math.isfinite(one)):
            raise ValueError("give a value of --set, or a list of such")
    return value


def _as_rate(value):
    if as_number(value) <= 0:
        raise ValueError("give a number above 0, bit/s")
    return value


def _as_truth(value):
    if not isinstance(value, bool):
        raise ValueError("give true or false")
    return value


def _parameters(file, place, given):
    for name, value in given.items():
        file.read((*place, name), name, _as_parameter)
        file.read((*place, name), value, _as_value)


def _as_parameter(name):
    if name not in COMMON and name != DURATION:
        raise ValueError(f"give a parameter of --set, see tollway(1), or {DURATION}")


def _part(file, place, entry, names, links, units):
    part = file.table(place, entry, {"setup": lambda value: value,
                                     "rows": lambda value: value}, {})
    inner = (*place, "setup")
    setup = file.table(
        inner, part["setup"], {"capacity_bps": as_dict("{name of a link: bit/s}")},
        {"parameters": as_dict("{parameter of --set: value}")})
    for link, bps in setup["capacity_bps"].items():
        where = (*inner, "capacity_bps", link)
        file.read(where, link, one_of(tuple(links), "the name of a link, "))
        file.read(where, bps, _as_rate)
    _parameters(file, (*inner, "parameters"), setup.get("parameters", {}))
    return {"setup": setup, "rows": [
        _row(file, (*place, "rows", index), one, names, units)
        for index, one in enumerate(file.entries((*place, "rows"),
                                                 part["rows"], 1))]}


def _row(file, place, entry, names, units):
    row = file.table(
        place, entry, {"name": as_shown, "pairs": lambda value: value,
                       "paper": as_shown,
                       "setup": as_dict("{parameter of --set: value}"),
                       "numbers": lambda value: value}, {"baseline": _as_truth})
    _parameters(file, (*place, "setup"), row["setup"])
    pairs, inner = [], (*place, "pairs")
    for index, pair in enumerate(file.entries(inner, row["pairs"], 1)):
        if not isinstance(pair, list) or len(pair) != 2:
            raise file.error((*inner, index), f"{spoken((*inner, index))} is "
                             f"{shown(pair)}: give [congestion control, queue]")
        cc, queue = (file.read((*inner, index, number), word, reader) for number, (
            word, reader) in enumerate(zip(pair, (as_control, as_queue))))
        pairs.append([cc, known_aqm(queue)])
    return {**row, "pairs": pairs, "numbers": [
        _number(file, (*place, "numbers", index), one, names, units)
        for index, one in enumerate(file.entries((*place, "numbers"),
                                                 row["numbers"]))]}


def _number(file, place, entry, names, units):
    one = file.table(
        place, entry,
        {"name": as_shown, "value": as_number, "tolerance": _as_tolerance,
         "better": one_of(BETTER), "metric": one_of(
             tuple(units), "a metric of the experiment with its link or flows, ")},
        {"case": one_of(names, "the name of a case, "),
         "unit": lambda value: value})
    unit = units[one["metric"]]
    if one.get("unit", unit) != unit:
        raise file.error((*place, "unit"), f"{spoken(place)}['unit'] is "
                         f"{shown(one['unit'])}: give {json.dumps(unit)}, the unit "
                         f"of {one['metric']}, or none")
    return {"case": names[0], **one, "unit": unit}
