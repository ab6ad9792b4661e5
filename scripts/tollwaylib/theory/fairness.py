# SPDX-License-Identifier: GPL-2.0
"""What congestion pricing says a network should do, in closed form or solved.

Rates are in packets/s, the willingness to pay (wtp) in packets/s as well, so
that prices are pure numbers: a flow of rate x on a path of price p pays p x
per second. Prices are in base e, p = -ln(1 - m); CP05 uses base phi for REM.
"""

import math

import numpy as np

from ..errors import TollwayError

KKT_TOLERANCE = 1e-9
# The barrier weight goes from 1 to here; normalised prices are of order one,
# and a link that is full at price zero ends sqrt(_LAST_BARRIER) away from it.
_LAST_BARRIER = 1e-21
_BARRIER_STEP = 0.05
_NEWTON_STEPS = 60


def wpf_allocation(capacity_pps, flows):
    """Weighted proportionally fair rates (CP05 3.2.6).

    capacity_pps: dict, link -> capacity in packets/s, above 0.
    flows: list of (id, weight, links): ids unique, weights above 0 in any one
        unit (only their ratios matter), links an iterable of at least one key
        of capacity_pps.

    Returns a dict, id -> rate in packets/s, in the order of flows.
    Raises TollwayError on bad input, and if the answer misses the optimality
    conditions by more than KKT_TOLERANCE, relative.
    """
    return wpf_solution(capacity_pps, flows)[0]


def wpf_solution(capacity_pps, flows):
    """Rates and shadow prices of the weighted proportionally fair optimum.

    Maximises sum w log x under the links' capacities through the dual of
    CP05 3.2.5: over prices p >= 0, minimise sum c p - sum w log(path price).
    Only routes matter, so flows on the same links are solved as one. A log
    barrier keeps prices positive; barrier and objective are self-concordant,
    so plain damped Newton converges from any start.

    Arguments and errors as for wpf_allocation, with weights in packets/s.
    Returns (rates, prices): dict id -> packets/s, dict link -> price; a link
    without flows or with room to spare has price 0.

    Also raises TollwayError if the rates do not satisfy the conditions of an optimum.
    """
    flows = [(flow, float(weight), frozenset(links))
             for flow, weight, links in flows]
    _check_network(capacity_pps, flows)

    route_weight = {}
    for _, weight, links in flows:
        route_weight[links] = route_weight.get(links, 0.0) + weight
    routes = list(route_weight)
    names = [link for link in capacity_pps
             if any(link in route for route in routes)]
    uses = np.array([[link in route for link in names] for route in routes],
                    dtype=float)
    weight = np.array([route_weight[route] for route in routes])
    capacity = np.array([capacity_pps[link] for link in names], dtype=float)

    # Price revenue sum(c p) equals sum(w) at the optimum: solve for each
    # link's share of it, which is of order one whatever the units are.
    total = weight.sum()
    fraction = _minimise_dual(uses / capacity, weight / total)
    price = fraction * total / capacity
    path_price = uses @ price
    load = uses.T @ (weight / path_price)
    price[capacity - load > KKT_TOLERANCE * capacity] = 0.0

    path_of = dict(zip(routes, path_price.tolist()))
    rates = {flow: share / path_of[links] for flow, share, links in flows}
    prices = dict.fromkeys(capacity_pps, 0.0)
    prices.update(zip(names, price.tolist()))
    residual = kkt_residual(capacity_pps, flows, rates, prices)
    if not residual <= KKT_TOLERANCE:
        raise TollwayError(
            f"the fair allocation did not converge: its optimality conditions "
            f"are off by {residual:.1e}")
    return rates, prices


def _check_network(capacity_pps, flows):
    """Refuse what has no optimum; flows have float weights and link sets."""
    for link, capacity in capacity_pps.items():
        if not (math.isfinite(capacity) and capacity > 0):
            raise TollwayError(
                f"link {link} needs a capacity above 0, not {capacity}")
    if not flows:
        raise TollwayError("a fair allocation needs at least one flow")
    seen = set()
    for flow, weight, links in flows:
        if flow in seen:
            raise TollwayError(f"flow {flow} is listed twice")
        seen.add(flow)
        if not (math.isfinite(weight) and weight > 0):
            raise TollwayError(
                f"flow {flow} needs a weight above 0, not {weight}")
        if not links:
            raise TollwayError(
                f"flow {flow} crosses no link, so nothing bounds its rate")
        unknown = sorted(str(link) for link in links - set(capacity_pps))
        if unknown:
            raise TollwayError(
                f"flow {flow} crosses {unknown[0]}, which is not a link")


def _minimise_dual(uses, weight):
    """Minimise sum(q) - sum(w log(uses q)) over q >= 0.

    uses: (routes, links) matrix, no zero row or column; weight: (routes,),
    sum 1. Returns q, (links,), within the last barrier of the optimum.
    """
    q = np.full(uses.shape[1], 1.0 / uses.shape[1])
    barrier = 1.0
    while barrier >= _LAST_BARRIER:
        for _ in range(_NEWTON_STEPS):
            # In steps relative to q the system stays well scaled even where
            # q goes to zero.
            ratio = (weight / (uses @ q))[:, None] * uses * q / np.sqrt(
                weight)[:, None]
            gradient = q - ratio.T @ np.sqrt(weight) - barrier
            hessian = ratio.T @ ratio + barrier * np.eye(len(q))
            scale = 1.0 / np.sqrt(np.diag(hessian))
            # Links with the same users split one price between them as they
            # like: least squares takes the shortest of the many steps.
            step = -scale * np.linalg.lstsq(
                hessian * np.outer(scale, scale), gradient * scale,
                rcond=None)[0]
            longest = np.max(np.abs(step))
            q = q * (1.0 + step / max(1.0, longest / 0.7))
            if longest < 1e-12:
                break
        barrier *= _BARRIER_STEP
    return q


def kkt_residual(capacity_pps, flows, rates, prices):
    """How far rates and prices are from optimal, relative: 0 is exact.

    The largest of: a flow's payment against its weight (x p = w), a link's
    load above its capacity, a negative price, and money paid for unused
    capacity as a part of all payments (CP05 3.2.1 and 3.2.5).
    capacity_pps, flows as for wpf_allocation; rates: id -> packets/s;
    prices: link -> price.
    """
    load = dict.fromkeys(capacity_pps, 0.0)
    worst = 0.0
    total = 0.0
    for flow, weight, links in flows:
        total += weight
        paid = rates[flow] * sum(prices[link] for link in links)
        worst = max(worst, abs(paid - weight) / weight)
        for link in links:
            load[link] += rates[flow]
    for link, capacity in capacity_pps.items():
        unused = capacity - load[link]
        worst = max(worst, -unused / capacity, -prices[link],
                    abs(unused * prices[link]) / total)
    return worst
