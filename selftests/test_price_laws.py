# SPDX-License-Identifier: GPL-2.0
"""The 27 simulations of CP05 Table 5.4.2, and what 5.4.4 says of them."""

import numpy as np
import pytest
from scipy import optimize

from tollwaylib import papers
from tollwaylib.errors import TollwayError
from tollwaylib.experiments import jobs, plan
from tollwaylib.guest import topologies
from tollwaylib.theory import fairness

LAWS = papers.get("price-laws")
# As 5.4.4 names them.
FULL_PRICE = {3, 4, 5, 7, 10, 11, 12, 14, 17, 18, 19, 21}
ONE_BIT_OF_SBRM = {24, 25, 26}


def job(variant, *words):
    mine = [f"{name}={value}" for name, value in variant.settings.items()]
    values = plan.parse_settings(LAWS, [*mine, *words], variant.cc, variant.aqm)
    return jobs.job(LAWS, variant.cc, variant.aqm, values, LAWS.duration_s, 1,
                    variant)


def numbers_with(metric):
    """{number of a simulation: its bounds on a metric}, of those with one."""
    found = {int(variant.name): [bound for bound in variant.bounds
                                 if bound["metric"] == metric]
             for variant in LAWS.variants}
    return {number: bounds for number, bounds in found.items() if bounds}


def test_price_laws_are_those_of_table_542():
    variants = LAWS.variants
    assert [variant.name for variant in variants] == [
        f"{number:02d}" for number in range(1, 28)]
    table = {variant.name: variant for variant in variants}
    # Explicit feedback, minimum round trip, no slow start.
    for number, law in (("05", "price-pc1"), ("12", "price-pc2"),
                        ("19", "price")):
        assert (table[number].cc, table[number].aqm) == ("cp", law)
        assert table[number].settings == {"source": "vegas", "rtt": "min",
                                          "slow_start": 0}
    for number in ("02", "09", "16"):
        assert table[number].cc == "rem"
        assert "rem4" in table[number].aqm
    # No two of them are the same.
    assert len({(variant.cc, variant.aqm, str(variant.settings))
                for variant in variants}) == 27
    # SBRM's marks: base e, the mark itself is the price, and what is paid for
    # is 20 packets/s; so it is with VQM, whose prices are 0 and 1.
    for number in ("22", "23", "24", "25", "26"):
        assert table[number].settings["phi"] == 1.0
        assert table[number].settings["wtp"] == 20
        assert number == "23" or table[number].settings["estimator"] == "raw"
    assert (table["27"].cc, table["27"].aqm) == ("reno", "red")
    assert all(job(variant)["cases"][0]["flows"] for variant in variants)


def test_marks_are_drawn_as_in_the_paper():
    """CP05 draws each mark by itself, and has no other setup of these."""
    for words in ([], ["setup=paper"]):
        for variant in LAWS.variants:
            made = job(variant, *words)
            assert made["parameters"]["setup"] == "paper"
            assert made["parameters"]["dither"] == 0
            # Explicit prices and the marks of VQM are not drawn, and four bits
            # are always drawn each by itself (sch_sbrm/sbrm_feedback.c).
            drawn = variant.aqm.startswith("rem-pc")
            assert ("no-dither" in made["aqm"]) == drawn, variant.title
    assert "no-dither" not in job(LAWS.variants[0], "dither=1")["aqm"]
    with pytest.raises(TollwayError, match="has only the setup of the paper"):
        job(LAWS.variants[0], "setup=ours")


def test_each_statement_of_544_is_a_bound():
    rate = set(range(1, 22)) | ONE_BIT_OF_SBRM
    assert set(numbers_with("path_share")) == rate
    for bounds in numbers_with("path_share").values():
        assert [bound["op"] for bound in bounds] == [">=", "<="]
        assert {bound["of"]["path"] for bound in bounds} == {"S3"}
    assert {number for number, bounds in numbers_with("utilization").items()
            if any("baseline" not in bound for bound in bounds)} \
        == FULL_PRICE | ONE_BIT_OF_SBRM
    assert set(numbers_with("max_spread")) == FULL_PRICE | ONE_BIT_OF_SBRM
    # The rate of cwnd over the least round trip is not what is paid for.
    assert set(numbers_with("max_abs_error")) \
        == FULL_PRICE - {5, 12, 19} | ONE_BIT_OF_SBRM
    # PC1 has no backlog of its own.
    assert set(numbers_with("queue_mean_pkts")) == {25, 26}
    assert set(numbers_with("max_utilization")) == {22, 23}
    for number in ONE_BIT_OF_SBRM:
        against = [bound["baseline"] for bound in
                   LAWS.variants[number - 1].bounds if "baseline" in bound]
        assert sorted(against) == ["22", "22", "27", "27"]


def shares(w, path_price):
    """Rates of the paths in packets/s where x = w/path_price(sum of prices)."""
    network = topologies.Built(aqm="sbrm", **job(LAWS.variants[25])["topology"])
    links = list(network.priced)
    over = np.array([[link in path["links"] for link in links]
                     for path in network.paths.values()], dtype=float)

    def rates(prices):
        return w / path_price(over @ np.abs(prices))
    prices = optimize.fsolve(
        lambda prices: over.T @ rates(prices) * 8 / 6000 - 1,
        np.full(len(links), w / 200))
    return dict(zip(network.paths, rates(prices)))


def test_what_one_bit_costs_is_in_the_bounds():
    """A path's bit is 1 - prod(1 - m) where a price is the sum: the bounds hold
    SBRM's simulations at w = 20 and not those at REM's w of 140."""
    fair = shares(20, lambda price: price)
    network = {f"{number}-{path}": path for path in fair for number in range(8)}
    built = topologies.Built(aqm="sbrm", **job(LAWS.variants[25])["topology"])
    solved, _ = fairness.wpf_solution(
        {link: 6000.0 for link in built.priced},
        [(name, 20, built.paths[path]["links"])
         for name, path in network.items()])
    for name, path in network.items():
        assert solved[name] == pytest.approx(fair[path], rel=1e-3)
    errors = {}
    for w in (20, 140):
        bits = shares(w, lambda price: -np.expm1(-price))
        errors[w] = {path: bits[path] / fair[path] - 1 for path in fair}
    assert errors[20]["S1"] == pytest.approx(0.062, abs=5e-4)
    assert errors[20]["S3"] == pytest.approx(-0.014, abs=5e-4)
    assert errors[140]["S1"] == pytest.approx(0.611, abs=5e-4)
    for number in ONE_BIT_OF_SBRM:
        (worst,) = [bound["value"] for bound in
                    numbers_with("max_abs_error")[number]
                    if "value" in bound]
        least = numbers_with("path_share")[number][0]["value"]
        for w, holds in ((20, True), (140, False)):
            assert (max(map(abs, errors[w].values())) <= worst) == holds
            assert (1 + errors[w]["S3"] >= least) == holds


def test_half_a_segment_is_that_of_the_least_windows():
    """(5.2.7) moves a window by one; of S3 and of S7 at b0 = 18 packets."""
    fair = shares(20, lambda price: price)
    queue_s = 18 / 6000
    halves = {path: 0.5 / (fair[path] * (rtt_s + queue_s))
              for path, rtt_s in (("S3", 0.020), ("S7", 0.020))}
    for bound in numbers_with("path_share")[17]:
        assert abs(bound["value"] - 1) == pytest.approx(halves["S3"], abs=5e-4)
    (error,) = numbers_with("max_abs_error")[17]
    assert error["value"] == pytest.approx(halves["S7"], abs=1e-3)
    (spread,) = numbers_with("max_spread")[17]
    assert spread["value"] == pytest.approx(2 * halves["S7"], abs=2e-3)


def test_some_simulations_can_be_chosen():
    def chosen(text):
        return [variant.name for variant in plan.variants(
            LAWS, plan.parse_settings(
                LAWS, [f"simulations={text}"]))]
    assert chosen("all") == [f"{n:02d}" for n in range(1, 28)]
    assert chosen("27,1,1") == ["27", "01"]
    for bad in ("0", "28", "x", ""):
        with pytest.raises(TollwayError, match="simulations"):
            chosen(bad)
