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
from tollwaylib.results import aggregate, schema  # noqa: E402

PUBLISHED = json.loads(schema.PUBLISHED.read_text())
# Objects that may have fields of any name.
OPEN = {"parameters", "provenance", "modules", "sysctls", "tools",
        "capacity_bps"}
EXAMPLES = {
    "golden": lambda: json.loads(
        (HERE / "golden/double-bottleneck.json").read_text()),
    "steady": lambda: synthetic.analyse(synthetic.steady()),
    "dynamics": lambda: synthetic.analyse(synthetic.dynamics()),
}


@pytest.fixture(params=EXAMPLES, scope="module")
def result(request):
    """A result, as it is after a way through a file."""
    return json.loads(json.dumps(EXAMPLES[request.param]()))


def test_old_results_have_the_figures_that_they_had():
    """The report knew three experiments by their names."""
    def pictures(name, given):
        return schema.upgraded({"schema": schema.RAW_SCHEMA, "experiment": name,
                                "pictures": given})["pictures"]

    assert pictures("parking-lot", []) == [["acknowledgements", "run"],
                                           ["price_tracking", "run"]]
    assert pictures("any-rate", []) == []
    assert pictures("price-laws", [["queue", "x"]]) == [["queue", "x"]]


def test_it_is_a_schema_and_agrees_with_the_code():
    jsonschema.Draft202012Validator.check_schema(PUBLISHED)
    parts = PUBLISHED["$defs"]
    assert parts["version"]["const"] == schema.SCHEMA
    assert parts["utilization"]["maximum"] == schema.LARGEST_UTILIZATION
    case = parts["result"]["properties"]["cases"]["items"]["properties"]
    recovery = case["recovery"]
    assert tuple(recovery["properties"]) == schema.RECOVERY


def closed(part, where=""):
    """Places of a schema with properties but without an end of them."""
    if isinstance(part, dict):
        if "properties" in part and "required" in part and \
                part.get("additionalProperties") is not False and \
                not where.endswith("/if"):
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
_RUN = ("cases", 0)
OPTIONAL = {(*_RUN, "intervals"), *(
    (*_RUN, *way, "links", link) for way in ((), ("intervals", 0))
    for link in ("core1", "core2"))}


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


# --- several seeds, several variants ---------------------------------------

def made_of_all():
    """A raw result with all parts that a run may have, but for intervals."""
    raw = synthetic.steady(bounds=[{"name": "u", "metric": "min_utilization",
                                    "of": {}, "op": ">=", "value": 0.5}])
    raw["network"] = {"s1": dict.fromkeys(schema.RECOVERY, 3)}
    result = json.loads(json.dumps(synthetic.analyse(raw)))
    result["cases"][0].update(
        steady_state=[{"link": "core1", "flows": 24, "wtp_sum": 700.0,
                       "capacity_pps": 12000.0, "max_rate_error": 0.1,
                       "mark_probability": 0.1, "expected_queue_pkts": 12.0,
                       "expected_mark_probability": 0.1, "queue_pkts": 11.0}],
        pages=[{"path": "all", "pages": 12, "unfinished": 6, "median_s": 0.4,
                "p99_s": None, "mean_s": 0.3, "mean_bytes": 45000.0,
                "throughput_kBps": 150.0}],
        metrics={"some": 1.0, "never": None})
    assert "recovery" in result["cases"][0]
    return result


def aggregate_of(result):
    other = {**copy.deepcopy(result), "seed": 77, "digest": "ab" * 32}
    return json.loads(json.dumps(aggregate.aggregate([result, other])))


AGGREGATES = {"all": lambda: aggregate_of(made_of_all()),
              "dynamics": lambda: aggregate_of(EXAMPLES["dynamics"]())}


@pytest.mark.parametrize("name", AGGREGATES)
def test_what_json_writes_is_valid(name):
    whole, result = AGGREGATES[name](), EXAMPLES["steady"]()
    for written in (whole, result, [whole, result]):
        jsonschema.validate(written, PUBLISHED)
    for wrong in ([], [[whole]], [1], {}, {**whole, "seed": 1},
                  {**result, "seeds": [1]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, PUBLISHED)
    # result.json is of one run.
    with pytest.raises(TollwayError, match="unknown field seeds"):
        schema.validate(whole)


# Parts that a case of an aggregate need not have, and its metrics.
_FREE = ("intervals", "steady_state", "pages", "recovery", "core1", "core2",
         "some", "never")


@pytest.mark.parametrize("name", AGGREGATES)
def test_each_field_of_an_aggregate_is_checked(name):
    whole, count = AGGREGATES[name](), 0
    for where in fields(whole):
        last = str(where[-1])
        if last in ("qdiscs", "patches") or where[-1] == 0:
            continue
        count += 1
        for change in (
                lambda found, key: found.update({key: ["?", 7]}),
                *([] if last in _FREE or where[-2:-1] == ("of",) else
                  [lambda found, key: found.pop(key)])):
            with pytest.raises(TollwayError, match=last):
                schema.validate_aggregate(broken(whole, where, change))
    assert count > 80


@pytest.mark.parametrize("where, value", [
    (("provenance", "patches"), [1]), (("provenance", "qdiscs"), {"r1": [1]}),
    (("provenance", "tools"), {"tc": 1}), (("capacity_bps",), {"core1": "1"}),
    ((*_RUN, "intervals"), [])])
def test_entries_of_lists_are_checked(where, value):
    with pytest.raises(TollwayError, match=str(where[-1])):
        schema.validate(broken(EXAMPLES["dynamics"](), where, lambda found, key:
                               found.update({key: value})))


def test_references_are_checked():
    result = {**EXAMPLES["steady"](), "references": [{
        "setup": {"capacity_bps": {}}, "rows": [{
            "name": "E", "paper": "E", "setup": {}, "pairs": [["pp", "fq_rr"]],
            "baseline": True, "numbers": [{
                "name": "jain", "case": "a", "metric": "jain", "value": 1,
                "unit": None, "tolerance": 0, "better": "higher"}]}]}]}
    schema.validate(result)
    for where in fields(result["references"], ("references",)):
        # Where an experiment measures one network, it may have no case.
        if where[-1] not in ("case", "unit", "baseline", 0):
            with pytest.raises(TollwayError, match=f"has no {where[-1]}$|empty"):
                schema.validate(broken(result, where, lambda found, key:
                                       found.pop(key)))


def test_published_values_are_references():
    """papers/*.json and what a FILE.py brings are read by the same code."""
    one = EXAMPLES["steady"]()
    for path in sorted((HERE.parent / "scripts/tollwaylib/papers").glob("*.json")):
        for parts in json.loads(path.read_text())["experiments"].values():
            schema.validate({**one, "references": parts})


def test_numbers_that_json_has_not(result):
    for number in (float("nan"), float("inf")):
        with pytest.raises(TollwayError,
                           match=r"cases\[0\]\.flows\[3\]\.rate_pps"):
            schema.validate(broken(result, (*_RUN, "flows", 3, "rate_pps"),
                                   lambda found, key, number=number:
                                   found.update({key: number})))


# --- older files -----------------------------------------------------------

def older(version):
    """A result that this program has written in a schema before this one."""
    return json.loads((HERE / f"golden/schema-{version}.json").read_text())


def flat(result):
    """A result of now as schema 3 had it."""
    (case,) = result["cases"]
    return {**{key: value for key, value in result.items() if key not in
               ("cases", "columns", "x_title", "capacity_bps")},
            **{key: value for key, value in case.items() if key not in
               ("name", "x", "series", "runs", "metrics")}, "schema": 3}


@pytest.mark.parametrize("version", (1, 2, 3))
def test_results_of_older_schemas_are_read(version, tmp_path):
    old = older(version)
    assert old["schema"] == version and "cases" not in old
    (tmp_path / "result.json").write_text(json.dumps(old))
    result = schema.load_result(tmp_path)
    assert result["schema"] == schema.SCHEMA
    (case,) = result["cases"]
    assert (case["name"], case["runs"], result["columns"]) == ("run", 1, [])
    assert result["capacity_bps"] == {"core1": 96000000, "core2": 96000000}
    for name in ("flows", "classes"):
        assert case[name] == old[name]
    for name, link in old["links"].items():
        # 1000 bytes at 96 Mbit/s take 1/12 ms.
        assert case["links"][name] == {
            "queue_mean_ms": pytest.approx(link["queue_mean_pkts"] / 12),
            **link}
    for now, then in zip(result["published"], old["published"], strict=True):
        assert now == {"unit": "%", "differences": [], **then}
    for name in ("bounds", "provenance", "digest", "seed", "parameters"):
        assert result[name] == old[name]


def test_baselines_of_schema_4(tmp_path):
    old = older(4)
    (tmp_path / "result.json").write_text(json.dumps(old))
    result = schema.load_result(tmp_path)
    then, now = (found.pop("bounds") for found in (old, result))
    assert result == {**old, "schema": schema.SCHEMA}
    assert now[:-1] == then[:-1]
    name = then[-1].pop("than")
    assert now[-1] == {**then[-1], "baseline": name}


def test_a_result_of_now_is_left_alone(result):
    assert schema.upgraded_result(result) is result


def test_parts_of_a_run_go_into_its_case():
    result = EXAMPLES["dynamics"]()
    assert schema.upgraded_result(flat(result)) == {
        **result, "capacity_bps": {"core1": 96000000, "core2": 96000000}}


def test_intervals_of_schema_1():
    """It had no Jain's index, no near_s and no largest error of an interval."""
    old = {**flat(EXAMPLES["dynamics"]()), "schema": 1}
    known = [step.pop("max_abs_error") for step in old["intervals"]]
    for step in old["intervals"]:
        del step["min_jain"]
        for group in step["classes"]:
            del group["near_s"], group["jain"]
    result = schema.upgraded_result(old)
    schema.validate(result)
    steps = result["cases"][0]["intervals"]
    assert [step["max_abs_error"] for step in steps] == known
    assert all(group["jain"] is None and group["near_s"] is None
               for step in steps for group in step["classes"])


def test_cases_of_schema_3():
    case = {"name": "one", "x": 1.0, "series": None, "runs": 1,
            "metrics": {"a": 1.0}}
    old = {**flat(EXAMPLES["steady"]()), "cases": [case], "x_title": None,
           "columns": [{"key": "a", "title": "a [ms]", "digits": 1}],
           "capacity_bps": {"core1": 1e6}}
    for name in ("links", "flows", "classes"):
        del old[name]
    result = schema.upgraded_result(old)
    schema.validate(result)
    assert result["cases"] == [case]
    assert result["columns"] == [{"key": "a", "title": "a", "unit": "ms",
                                  "digits": 1}]


@pytest.mark.parametrize("change, sentence", [
    (lambda old: old.update(schema=0), "schema 0, not one of 1 to 5"),
    (lambda old: old.update(schema=6), "schema 6, not one of 1 to 5"),
    (lambda old: old.update(schema="3"), "schema '3', not one of"),
    (lambda old: old.pop("links"), "of schema 1 is damaged: it has no links"),
    (lambda old: old.update(links=[]), "of schema 1 is damaged"),
    (lambda old: old["flows"][0].pop("cc"), r"cases\[0\].flows\[0\] has no cc"),
])
def test_damaged_results_of_older_schemas(change, sentence, tmp_path):
    old = older(1)
    change(old)
    (tmp_path / "result.json").write_text(json.dumps(old))
    with pytest.raises(TollwayError, match=f"result.json: .*{sentence}"):
        schema.load_result(tmp_path)


def test_a_case_has_metrics_or_all_of_a_run():
    for name in ("links", "flows", "classes"):
        broken_one = EXAMPLES["steady"]()
        del broken_one["cases"][0][name]
        with pytest.raises(TollwayError, match=rf"cases\[0\] has no {name}$"):
            schema.validate(broken_one)
