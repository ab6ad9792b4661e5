# SPDX-License-Identifier: GPL-2.0
"""The theory against closed forms, optimality and an independent solver."""

import collections
import math
import pathlib
import random
import sys

import numpy as np
import pytest
from scipy.optimize import minimize

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "scripts"))

from tollwaylib.errors import TollwayError  # noqa: E402
from tollwaylib.theory import fairness, measures, pricing  # noqa: E402
from tollwaylib.theory.rate_cycle import (  # noqa: E402
    RateCycle, converges, gain_fairness, gain_for, keeps, next_gains, replay,
    replay_aimd)

DOUBLE = {"core1": 12000.0, "core2": 12000.0}
PATHS = {"I": ["core1"], "II": ["core2"], "III": ["core1", "core2"]}


def random_network(seed, links=6, flows=12, spread=2.0):
    """Every third network has links of one capacity, so that ties happen."""
    source = random.Random(seed)
    capacity = {f"l{n}": 10 ** (source.uniform(2, 2 + spread) if seed % 3
                                else 3)
                for n in range(source.randint(1, links))}
    return capacity, [
        (n, 10 ** source.uniform(0, spread),
         source.sample(list(capacity), source.randint(1, len(capacity))))
        for n in range(source.randint(1, flows))]


def test_two_equal_links_give_two_thirds_and_one_third():
    rates = fairness.wpf_allocation(DOUBLE, [(name, 1, links) for name, links
                                             in PATHS.items()])
    assert rates == pytest.approx({"I": 8000, "II": 8000, "III": 4000},
                                  rel=1e-9)


@pytest.mark.parametrize("w1, w2, w3", [(1, 1, 4), (100, 30, 7), (5, 5, 1e-3)])
def test_two_equal_links_with_weights(w1, w2, w3):
    # With x1 = x2 = c - x3, w1/p1 = w2/p2 and w3 = x3 (p1 + p2).
    rates = fairness.wpf_allocation(DOUBLE, [(1, w1, PATHS["I"]),
                                             (2, w2, PATHS["II"]),
                                             (3, w3, PATHS["III"])])
    third = 12000 * w3 / (w1 + w2 + w3)
    assert rates == pytest.approx(
        {1: 12000 - third, 2: 12000 - third, 3: third}, rel=1e-9)


def test_cp05_table_432_shares():
    flows = [((path, wtp, n), wtp, links) for path, links in PATHS.items()
             for wtp in (100, 200, 400) for n in range(4)]
    rates, prices = fairness.wpf_solution(DOUBLE, flows)
    for (path, wtp, _), rate in rates.items():
        part = 1 / 3 if path == "III" else 2 / 3
        assert rate == pytest.approx(12000 * part * wtp / 2800, rel=1e-9)
    assert prices == pytest.approx({"core1": 0.35, "core2": 0.35}, rel=1e-9)


def test_one_link_shares_by_weight():
    rates, prices = fairness.wpf_solution(
        {"link": 1000}, [(n, n, ["link"]) for n in range(1, 5)])
    assert rates == pytest.approx({1: 100, 2: 200, 3: 300, 4: 400}, rel=1e-9)
    assert prices["link"] == pytest.approx(10 / 1000, rel=1e-9)


def test_links_with_room_or_without_flows_are_free():
    _, prices = fairness.wpf_solution(
        {"narrow": 10, "wide": 1000, "empty": 1},
        [(1, 1, ["narrow", "wide"]), (2, 1, ["narrow"])])
    assert prices["wide"] == 0 and prices["empty"] == 0
    assert prices["narrow"] == pytest.approx(0.2, rel=1e-9)


def test_a_link_filled_exactly_at_price_zero():
    rates = fairness.wpf_allocation({"a": 2, "b": 1},
                                    [(1, 1, ["a"]), (2, 1, ["a", "b"])])
    assert rates == pytest.approx({1: 1, 2: 1}, rel=1e-9)


def test_duplicate_bottlenecks_leave_rates_unique():
    rates = fairness.wpf_allocation(
        {"a": 6, "b": 6}, [(1, 1, ["a", "b"]), (2, 2, ["a", "b"])])
    assert rates == pytest.approx({1: 2, 2: 4}, rel=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_random_networks_meet_the_optimality_conditions(seed):
    capacity, flows = random_network(seed, flows=40, spread=5)
    rates, prices = fairness.wpf_solution(capacity, flows)
    load = dict.fromkeys(capacity, 0.0)
    revenue = 0.0
    for flow, weight, links in flows:
        assert rates[flow] * sum(prices[link] for link in links) == \
            pytest.approx(weight, rel=1e-9)
        for link in links:
            load[link] += rates[flow]
    for link, limit in capacity.items():
        assert load[link] <= limit * (1 + 1e-9)
        assert prices[link] >= 0
        if prices[link] > 0:
            assert load[link] == pytest.approx(limit, rel=1e-8)
        revenue += prices[link] * limit
    assert revenue == pytest.approx(sum(flow[1] for flow in flows), rel=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_random_networks_against_slsqp_on_the_primal(seed):
    capacity, flows = random_network(seed, links=4, flows=6, spread=1)
    ours = fairness.wpf_allocation(capacity, flows)
    names = list(capacity)
    uses = np.array([[link in links for _, _, links in flows]
                     for link in names], dtype=float)
    limit = np.array([capacity[name] for name in names])
    scale = limit.min() / len(flows)
    weight = np.array([flow[1] for flow in flows])
    weight = weight / weight.sum()
    answer = minimize(
        lambda y: -weight @ np.log(y), np.ones(len(flows)),
        jac=lambda y: -weight / y, method="SLSQP",
        bounds=[(1e-6, None)] * len(flows),
        constraints={"type": "ineq",
                     "fun": lambda y: limit / scale - uses @ y,
                     "jac": lambda y: -uses},
        options={"ftol": 1e-14, "maxiter": 1000})
    assert answer.success
    assert [ours[flow[0]] for flow in flows] == pytest.approx(
        list(answer.x * scale), rel=1e-4)


def test_units_do_not_matter():
    capacity, flows = random_network(3)
    one = fairness.wpf_allocation(capacity, flows)
    other = fairness.wpf_allocation(
        {link: 1e6 * value for link, value in capacity.items()},
        [(flow, 1e-4 * weight, links) for flow, weight, links in flows])
    assert other == pytest.approx({flow: 1e6 * rate for flow, rate
                                   in one.items()}, rel=1e-9)


@pytest.mark.parametrize("capacity, flows, word", [
    ({"a": 0}, [(1, 1, ["a"])], "capacity"),
    ({"a": math.nan}, [(1, 1, ["a"])], "capacity"),
    ({"a": 1}, [], "at least one flow"),
    ({"a": 1}, [(1, 0, ["a"])], "weight"),
    ({"a": 1}, [(1, math.inf, ["a"])], "weight"),
    ({"a": 1}, [(1, 1, [])], "no link"),
    ({"a": 1}, [(1, 1, ["b"])], "b"),
    ({"a": 1}, [(1, 1, ["a"]), (1, 1, ["a"])], "twice"),
])
def test_nonsense_is_refused(capacity, flows, word):
    with pytest.raises(TollwayError, match=word):
        fairness.wpf_allocation(capacity, flows)


def test_residual_sees_every_kind_of_error():
    flows = [(1, 1.0, ["a"]), (2, 1.0, ["a"])]
    right = {1: 5.0, 2: 5.0}
    assert fairness.kkt_residual({"a": 10}, flows, right, {"a": 0.2}) < 1e-15
    assert fairness.kkt_residual({"a": 9}, flows, right, {"a": 0.2}) > 0.1
    assert fairness.kkt_residual({"a": 20}, flows, right, {"a": 0.2}) > 0.1
    assert fairness.kkt_residual({"a": 10}, flows, {1: 4, 2: 6},
                                 {"a": 0.2}) > 0.1


def test_marks_and_prices_are_inverse():
    assert pricing.mark_probability(0) == 0
    assert pricing.mark_probability(math.log(2)) == pytest.approx(0.5)
    assert pricing.mark_probability(3, phi=2) == pytest.approx(7 / 8)
    assert pricing.mark_probability(1e-12) == pytest.approx(1e-12, rel=1e-9)
    assert list(pricing.mark_probability([0, math.log(4)])) == \
        pytest.approx([0, 0.75])
    for bad in ({"price": -1}, {"price": 1, "phi": 1}):
        with pytest.raises(TollwayError):
            pricing.mark_probability(**bad)


def test_path_marks_add_up_as_prices():
    marks = [pricing.mark_probability(price) for price in (0.1, 0.4)]
    assert pricing.path_mark_probability(marks) == pytest.approx(
        pricing.mark_probability(0.5))
    assert pricing.path_mark_probability([]) == 0
    with pytest.raises(TollwayError, match="probability"):
        pricing.path_mark_probability([1.5])


def test_expected_backlog_inverts_the_marking_law():
    # CP05 5.5.7 in marks: b = b0 - ln(1 - m)/gamma.
    mark = pricing.mark_probability(0.35)
    assert pricing.expected_backlog(10, 0.015, 0.35) == pytest.approx(
        10 - math.log(1 - mark) / 0.015)
    assert pricing.expected_backlog(10, 0.015, 0) == 10
    for bad in ((-1, 1, 1), (1, 0, 1), (1, 1, -1)):
        with pytest.raises(TollwayError):
            pricing.expected_backlog(*bad)


def test_aimd_rate_balances_its_steps():
    w, m, kappa, rtt = 100.0, 0.25, 0.1, 0.05
    rate = pricing.aimd_rate(w, m)
    cwnd = rate * rtt
    assert (1 - m) * kappa * w * rtt / cwnd == pytest.approx(m * kappa)
    assert rate == pytest.approx(300)
    for bad in ((0, 0.5), (1, 0), (1, 1.1)):
        with pytest.raises(TollwayError):
            pricing.aimd_rate(*bad)


# --- the steady state (CP05 5.5) ---------------------------------------------

def test_steady_state_of_table_551():
    state = pricing.steady_state(6000, [100, 200, 300], 30, 0.02, "raw")
    assert state["rates_pps"] == pytest.approx([1000, 2000, 3000])
    assert state["mark_probability"] == pytest.approx(0.1)
    assert state["queue_pkts"] == pytest.approx(30 - math.log(0.9) / 0.02)


def test_steady_state_of_the_default_source():
    state = pricing.steady_state(6000, [100] * 12, 10, 0.015)
    assert state["queue_pkts"] == pytest.approx(10 + 0.2 / 0.015)
    assert state["mark_probability"] == pytest.approx(1 - math.exp(-0.2))


def test_steady_state_of_the_aimd_form():
    state = pricing.steady_state(6000, [1500] * 2, 0, 1.0, "aimd")
    m = state["mark_probability"]
    for rate in state["rates_pps"]:
        assert pricing.aimd_rate(1500, m) == pytest.approx(rate)


def test_steady_state_refuses_what_has_none():
    for arguments in ((6000, [6000], 10, 0.1, "raw"), (6000, [], 10, 0.1),
                      (6000, [-1], 10, 0.1), (6000, [1], 10, 0.1, "x")):
        with pytest.raises(TollwayError):
            pricing.steady_state(*arguments)


def test_jain_index():
    assert measures.jain_index([3, 3, 3]) == pytest.approx(1)
    assert measures.jain_index([1, 0, 0, 0]) == pytest.approx(0.25)
    for bad in ([], [0, 0], [1, -1]):
        with pytest.raises(TollwayError):
            measures.jain_index(bad)


def test_quantiles_of_what_was_watched_to_the_end():
    done = [(float(second), True) for second in range(100, 0, -1)]
    assert measures.survival_quantile(done, 0.5) == 50
    assert measures.survival_quantile(done, 0.99) == 99
    assert measures.survival_quantile([(3.0, True)], 0.99) == 3


def test_quantiles_of_what_was_not():
    """Kaplan and Meier 1958, the example of their section 2.1: losses count
    for those that are left."""
    watched = [(0.8, True), (1.0, False), (2.7, False), (3.1, True),
               (5.4, True), (7.0, False), (9.2, True), (12.1, False)]
    # What is left: 7/8, 7/8 4/5, 7/8 3/5, and half of that.
    for part, time in ((0.125, 0.8), (0.3, 3.1), (0.475, 5.4), (0.7, 9.2),
                       (0.7375, 9.2), (0.8, None)):
        assert measures.survival_quantile(watched, part) == time
    assert measures.survival_quantile([(1.0, False)], 0.5) is None


# --- second-order rate control (ALPHA) ---------------------------------------

def cycle(alpha, tau=2.0, mu=367.0, high=50.0):
    # One threshold, as in the paper's examples.
    return RateCycle(mu, tau, alpha, high, high)


def test_the_largest_queues_of_section_v():
    """Q_goal 200 is that of gains of 18 and 6, and 207 and 261 those of the two
    overshoots, with a threshold of 20: with the printed 18 none is."""
    def largest(alpha, tau, high=20):
        return cycle(alpha, tau, 184, high).largest_queue

    for high, due in ((20, (200, 200, 207, 261)), (18, (191, 190, None, None))):
        for (alpha, tau), queue in zip(
                ((18, 2), (6, 3.34), (6.488, 3.34), (9.88, 3.34)), due):
            if queue:
                assert largest(alpha, tau, high) == pytest.approx(queue, abs=1.5)


def test_the_losses_of_section_iv():
    """At most 2 % for gains below 50 at 2 ms, and up to 22 at 3.2 ms."""
    assert 0.018 < cycle(49).loss(400) < 0.0205
    assert 0.018 < cycle(22, 3.2).loss(400) < 0.02
    assert cycle(60).loss(400) > 0.03 > 0.02 > cycle(40).loss(400)
    assert cycle(25).loss(400) == 0 and cycle(25).efficiency(400) == 1


@pytest.mark.parametrize("alpha, tau", [(30, 2), (60, 2), (22, 3.2), (5, 3.2)])
def test_a_cycle_is_that_of_its_differential_equations(alpha, tau):
    """(1) and (2), in small steps: rate, queue, drops and duration."""
    mu, high, low, step = 367.0, 50.0, 25.0, 1e-4
    # What the source hears is what the queue was a round trip before.
    way = collections.deque([False] * round(tau / step))
    rate, queue, marked = mu, 0.0, False
    largest = sent = now = 0.0
    starts = []
    while len(starts) < 3:
        way.append(marked)
        before = rate
        rate += step * (-alpha / mu * rate if way.popleft() else alpha)
        queue = max(queue + step * (rate - mu), 0.0)
        largest, sent = max(largest, queue), sent + step * rate
        marked = queue > (low if marked else high)
        now += step
        if before < mu <= rate:
            starts.append(now)
            if len(starts) < 3:
                # (12) begins with an empty queue.
                largest = sent = queue = 0.0
    fluid = RateCycle(mu, tau, alpha, high, low)
    assert largest == pytest.approx(fluid.largest_queue, rel=0.01)
    assert starts[2] - starts[1] == pytest.approx(fluid.duration, rel=0.01)
    assert sent / (starts[2] - starts[1]) == pytest.approx(fluid.mean_rate,
                                                           rel=0.01)


def test_what_is_lost_is_what_does_not_fit():
    """rho is what a cycle holds beyond the room while more comes than leaves,
    with the room full in the linear part and in the exponential one."""
    for alpha, tau, room in ((60, 2, 400), (60, 2, 150), (40, 3.2, 400)):
        fluid = cycle(alpha, tau)
        assert fluid.lost(room) == pytest.approx(
            fluid.largest_queue - room, rel=1e-6)
    assert cycle(60).full_at(150) < cycle(60).rise < cycle(60).full_at(400)
    assert cycle(10).full_at(400) is None and cycle(10).lost(400) == 0


def test_rule_3_replays_the_examples_of_section_v():
    both = replay((3.035, 12.76), [18] * 4 + [6] * 8 + [18] * 6, 2, 0.8)
    phi = [round(gain_fairness(gains), 3) for gains in both]
    both = [tuple(round(gain, 2) for gain in gains) for gains in both]
    # One cycle to 18, and about it; five to 6; three to 18 again.
    assert both[1:5] == [(5.04, 14.76), (4.03, 11.81)] * 2
    assert both[8:13] == [(1.65, 4.84), (1.32, 3.87)] * 2 + [(1.65, 4.84)]
    assert both[15:] == [(7.65, 10.84), (6.12, 8.67), (7.65, 10.84),
                         (6.12, 8.67)]
    assert phi[0] == 0.725 and phi[15] == 0.971


def test_aimd_of_gains_overshoots_as_in_example_2():
    """Up from just below the goal by all of p, where rule (3) goes up by 1/q."""
    sums = replay_aimd(19.795, [6] * 20, 4, 0.8)
    swing = [sum(gains) for gains in
             replay((5.035, 14.76), [6] * 20, 2, 0.8)[7:]]
    for most, queue in ((max(sums[7:]), 261), (max(swing), 207)):
        assert cycle(most, 3.34, 184, 20).largest_queue == \
            pytest.approx(queue, abs=1)


def test_theorem_2():
    """Only additive up and multiplicative down converges, and only q and 1/q
    stay; what it says of fairness."""
    assert converges((2, 1), (0, 0.8)) and keeps((0, 1 / 0.8), (0, 0.8))
    for up, down in (((2, 1.1), (0, 0.8)), ((0, 1), (0, 0.8)),
                     ((2, 1), (1, 0.8)), ((2, 1), (0, 1))):
        assert not converges(up, down)
    assert not keeps((2, 1), (0, 0.8)) and not keeps((0, 1.1), (0, 0.8))
    gains = (3.0, 12.0)
    phi = gain_fairness(gains)
    assert gain_fairness(next_gains(gains, True, False, 2, 0.8)) == \
        pytest.approx(phi)
    assert gain_fairness(next_gains(gains, False, True, 2, 0.8)) == \
        pytest.approx(phi)
    # (28), with theta = p/q = 2.
    raised = gain_fairness(next_gains(gains, False, False, 2, 0.8))
    assert raised - phi == pytest.approx((1 - phi) * (
        1 - sum(gain ** 2 for gain in gains) /
        sum((2 + gain) ** 2 for gain in gains)))


def test_no_gain_has_a_queue_below_twice_the_threshold():
    assert cycle(1e-6).largest_queue == pytest.approx(100, rel=1e-2)
    assert gain_for(300, 367, 2, 50) == pytest.approx(15.3, abs=0.05)
    with pytest.raises(TollwayError, match="no gain"):
        gain_for(99, 367, 2, 50)
    with pytest.raises(TollwayError):
        RateCycle(367, 2, 0, 50)
