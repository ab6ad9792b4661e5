# SPDX-License-Identifier: GPL-2.0
"""Synthetic results, and what the tests of reports ask of them."""

import random

import pytest

import synthetic
from tollwaylib import files
from tollwaylib.report.page import write_report
from tollwaylib.results import schema

BOUNDS = [{"name": "class error", "metric": "max_abs_error",
           "op": "<=", "value": 0.015}]


def priced(seed, made=synthetic.steady, **more):
    source = random.Random(seed)
    return made(
        lambda number, path, wtp: 1 + source.uniform(-0.02, 0.02), seed=seed,
        **more)


def unfair(seed):
    """Like NewReno in CP05 Figure 4.3.5: path III gets a third of its share."""
    return synthetic.as_published(
        lambda number, path, wtp: (1 if path == "III" else 4) / 3, seed=seed,
        wtps=None, cc="reno", aqm="pfifo", utilization=(0.96, 0.85))


def save(place, raw):
    place.mkdir(parents=True)
    files.write_json_atomic(place / "raw.json", raw, indent=None)
    files.write_json_atomic(place / "result.json", synthetic.analyse(raw))


@pytest.fixture(scope="module")
def raws():
    return {"sbrm-1": priced(1, bounds=BOUNDS),
            "sbrm-2": priced(2, bounds=BOUNDS),
            "reno-1": unfair(1), "dynamics-1": synthetic.dynamics()}


@pytest.fixture(scope="module")
def loaded(raws):
    """The same, as they are after they were loaded."""
    return {name: schema.upgraded(raw) for name, raw in raws.items()}


@pytest.fixture(scope="module")
def analysed(raws):
    return {name: synthetic.analyse(raw) for name, raw in raws.items()}


@pytest.fixture(scope="module")
def site(raws, tmp_path_factory):
    place = tmp_path_factory.mktemp("site")
    for name, raw in raws.items():
        save(place / "runs" / name, raw)
    assert write_report(place) == place / "index.html"
    return place


@pytest.fixture(scope="module")
def page(site):
    return (site / "index.html").read_text(encoding="utf-8")


@pytest.fixture
def one(tmp_path, raws):
    save(tmp_path / "run", raws["sbrm-1"])
    return tmp_path
