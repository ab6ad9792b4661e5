# SPDX-License-Identifier: GPL-2.0
"""The published schema of result.json."""

import copy
import json
import sys
from pathlib import Path

import jsonschema
import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "scripts"), str(HERE / "golden")]

import synthetic  # noqa: E402
from tollwaylib.errors import TollwayError  # noqa: E402
from tollwaylib.results import analysis, schema  # noqa: E402

PUBLISHED = json.loads(schema.PUBLISHED.read_text())
# Objects that may have fields of any name.
OPEN = {"parameters", "provenance", "modules", "sysctls", "tools"}
EXAMPLES = {
    "golden": lambda: json.loads(
        (HERE / "golden/double-bottleneck.json").read_text()),
    "steady": lambda: analysis.analyse(synthetic.steady()),
    "dynamics": lambda: analysis.analyse(synthetic.dynamics()),
}


@pytest.fixture(params=EXAMPLES, scope="module")
def result(request):
    """A result, as it is after a way through a file."""
    return json.loads(json.dumps(EXAMPLES[request.param]()))


def test_it_is_a_schema_and_agrees_with_the_code():
    jsonschema.Draft202012Validator.check_schema(PUBLISHED)
    parts = PUBLISHED["$defs"]
    assert parts["version"]["const"] == schema.SCHEMA
    assert parts["utilization"]["maximum"] == schema.LARGEST_UTILIZATION
    recovery = parts["result_of_a_run"]["properties"]["recovery"]
    assert tuple(recovery["properties"]) == schema.RECOVERY


def closed(part, where=""):
    """Places of a schema with properties but without an end of them."""
    if isinstance(part, dict):
        if "properties" in part and "required" in part and \
                part.get("additionalProperties") is not False:
            yield where
        for key, value in part.items():
            yield from closed(value, f"{where}/{key}")


def test_nothing_but_provenance_may_have_more():
    assert list(closed(PUBLISHED)) == ["/$defs/provenance"]


def test_results_are_valid(result):
    schema.validate(result)
    # For any program, without ours.
    jsonschema.validate(result, PUBLISHED)


def fields(value, where=()):
    """The ways to the entries of a result; of a list, to its first ones."""
    if isinstance(value, dict):
        for key in value:
            yield (*where, key)
            if key not in OPEN:
                yield from fields(value[key], (*where, key))
    elif isinstance(value, list) and value:
        yield from fields(value[0], (*where, 0))


def broken(result, where, change):
    """A copy with one object changed; change: of the object and its key."""
    other = copy.deepcopy(result)
    found = other
    for step in where[:-1]:
        found = found[step]
    change(found, where[-1])
    return other


# What may be missing: a bound has `than` where it is against another variant,
# and these parts are of some runs only; a link may have any name.
OPTIONAL = {("intervals",), ("links", "core1"), ("links", "core2"),
            ("intervals", 0, "links", "core1"),
            ("intervals", 0, "links", "core2")}


def test_each_field_is_checked(result):
    """What is missing, of another type or of another name is named."""
    count = 0
    for where in fields(result):
        name = str(where[-1])
        count += 1
        if where not in OPTIONAL:
            with pytest.raises(TollwayError, match=f"has no {name}$"):
                schema.validate(broken(result, where, lambda found, key:
                                       found.pop(key)))
        with pytest.raises(TollwayError, match=name):
            schema.validate(broken(result, where, lambda found, key:
                                   found.update({key: ["?", 7]})
                                   if key not in ("qdiscs", "patches")
                                   else found.update({key: 7})))
        if where[:-1] and where[-2] not in (*OPEN, "links"):
            with pytest.raises(TollwayError, match="unknown field nosuch$"):
                schema.validate(broken(result, where, lambda found, key:
                                       found.update(nosuch=1)))
    assert count > 40


def test_numbers_that_json_has_not(result):
    for number in (float("nan"), float("inf")):
        with pytest.raises(TollwayError, match=r"flows\[3\]\.rate_pps"):
            schema.validate(broken(result, ("flows", 3, "rate_pps"),
                                   lambda found, key, number=number:
                                   found.update({key: number})))
