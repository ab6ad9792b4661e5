# SPDX-License-Identifier: GPL-2.0
"""Synthetic runs, and what the tests of results ask of them."""

import copy

import pytest

import synthetic


@pytest.fixture(scope="module")
def steady_raw():
    return synthetic.steady()


@pytest.fixture(scope="module")
def steady(steady_raw):
    return synthetic.analyse(steady_raw)


@pytest.fixture(scope="module")
def dynamics():
    return synthetic.analyse(synthetic.dynamics(lag_s=1.52))


@pytest.fixture
def raw(steady_raw):
    return copy.deepcopy(steady_raw)


def bound(metric, op, value, **of):
    return {"name": metric, "metric": metric, "of": of, "op": op,
            "value": value}


def judged(raw, metric, op="<=", value=0.0, **of):
    raw = dict(raw, bounds=[bound(metric, op, value, **of)])
    return synthetic.analyse(raw)["bounds"][0]


@pytest.fixture
def one_link_each():
    """Paths I and II alone, at their shares of a whole link each."""
    flows = [synthetic.flow(number + 1, path, wtp, [
        (0.0, 20.0, synthetic.CAPACITY_PPS * wtp / 700)])
        for number, (path, wtp) in enumerate(
            (path, wtp) for path in ("I", "II") for wtp in (100, 200, 400))]
    raw = synthetic.raw(flows, steady_state=True)
    raw["parameters"].update(source="direct", estimator="log")
    return raw
