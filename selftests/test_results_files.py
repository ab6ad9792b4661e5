# SPDX-License-Identifier: GPL-2.0
"""Files of results and of raw measurements: what they must have, older ones, and
how they are written."""

import copy
import json
import math

import pytest

import synthetic
from tollwaylib import files
from tollwaylib.errors import TollwayError
from tollwaylib.guest import job as guest_job
from tollwaylib.results import schema
from tollwaylib.results.fields import case_of

pytest_plugins = ["results_bench"]


@pytest.mark.parametrize("change, words", [
    (lambda r: r.pop("digest"), "no digest"),
    (lambda r: r.update(comment="hello"), "unknown field comment"),
    (lambda r: r.update(schema=1), "schema"),
    (lambda r: r.update(seed="1"), "seed"),
    (lambda r: r.update(digest="abc"), "digest"),
    (lambda r: case_of(r).update(flows=[]), "flows"),
    (lambda r: case_of(r).update(links={}), "links"),
    (lambda r: case_of(r)["links"]["core1"].pop("marks"), "core1 has no marks"),
    (lambda r: case_of(r)["links"]["core1"].update(utilization=1.5), "utilization"),
    (lambda r: case_of(r)["links"]["core1"].update(drops=0.5), "drops"),
    (lambda r: case_of(r)["flows"][3].update(rate_pps=math.nan), r"flows\[3\].rate_pps"),
    (lambda r: case_of(r)["flows"][3].update(rate_pps=True), r"flows\[3\].rate_pps"),
    (lambda r: case_of(r)["flows"][3].update(mss=1), "unknown field mss"),
    (lambda r: case_of(r)["classes"][0].update(error=None), "error"),
    (lambda r: r["published"][0].update(verdict="close"), "verdict"),
    (lambda r: r["provenance"].pop("hz"), "hz"),
    (lambda r: r["parameters"].update(gamma=math.inf), "parameters"),
])
def test_validate_names_the_field(steady, change, words):
    result = copy.deepcopy(steady)
    change(result)
    with pytest.raises(TollwayError, match=words):
        schema.validate(result)


def test_validate_looks_into_intervals(dynamics):
    result = copy.deepcopy(dynamics)
    del case_of(result)["intervals"][1]["classes"][0]["convergence_s"]
    with pytest.raises(TollwayError, match=r"intervals\[1\].*convergence_s"):
        schema.validate(result)


@pytest.mark.parametrize("value", [None, [], "x", {}])
def test_validate_refuses_other_things(value):
    with pytest.raises(TollwayError):
        schema.validate(value)


def test_raw_files(tmp_path, steady_raw):
    with pytest.raises(TollwayError, match="cannot read"):
        schema.load_raw(tmp_path)
    path = tmp_path / "raw.json"
    files.write_json_atomic(path, steady_raw, indent=None)
    found = schema.load_raw(tmp_path)
    assert found == schema.upgraded(steady_raw)
    assert found["schema"] == schema.RAW_SCHEMA == guest_job.RAW_SCHEMA
    # One of now is left as it is.
    assert schema.upgraded(found) is found
    path.write_text(path.read_text()[:1000])
    with pytest.raises(TollwayError, match="not valid JSON"):
        schema.load_raw(tmp_path)
    path.write_text('{"schema": 1, "seed": NaN}')
    with pytest.raises(TollwayError, match="NaN"):
        schema.load_raw(tmp_path)
    path.write_text('{"schema": 7}')
    with pytest.raises(TollwayError, match="schema"):
        schema.load_raw(tmp_path)


def test_old_and_new_runs_give_the_same_result(steady_raw):
    """A run of schema 1, and the same as a list of one case."""
    case = {key: steady_raw[key] for key in ("flows", "queues")}
    new = {key: value for key, value in steady_raw.items() if key not in case}
    new.update(schema=2, mss_bytes=934, metrics=[], cases=[
        {"name": "run", "point": "run", "x": None, "series": None,
         "duration_s": 20.0, "flows": [
            {key: value for key, value in flow.items() if key != "mss_bytes"}
            for flow in case["flows"]], "queues": case["queues"]}])
    assert synthetic.analyse(new) == synthetic.analyse(steady_raw)


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "result.json"
    files.write_json_atomic(path, {"good": 1})
    for bad in ({"x": math.nan}, {"x": object()}):
        with pytest.raises(TollwayError, match="cannot write"):
            files.write_json_atomic(path, bad)
    assert json.loads(path.read_text()) == {"good": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["result.json"]
    with pytest.raises(TollwayError, match="cannot write"):
        files.write_json_atomic(tmp_path / "none" / "x.json", {})
