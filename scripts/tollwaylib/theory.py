# SPDX-License-Identifier: GPL-2.0
"""What congestion pricing says a network should do, in closed form or solved.

Rates are in packets/s, the willingness to pay (wtp) in packets/s as well, so
that prices are pure numbers: a flow of rate x on a path of price p pays p x
per second. Prices are in base e, p = -ln(1 - m); CP05 uses base phi for REM.
"""

import math

import numpy as np

from .errors import TollwayError

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


def mark_probability(price, phi=math.e):
    """Marking probability m = 1 - phi^-price (CP05 5.2.1; base e in 5.4.1).

    price: number or array, no unit, 0 and up; phi: base above 1.
    """
    if np.any(np.asarray(price) < 0) or phi <= 1:
        raise TollwayError("a mark needs a price of 0 and up "
                           "and a base above 1")
    return -np.expm1(-np.asarray(price, dtype=float) * math.log(phi))[()]


def path_mark_probability(probabilities):
    """Marking probability of a path, 1 - prod(1 - m_l) (CP05 5.2.1).

    probabilities: iterable of the links' probabilities, 0 to 1.
    """
    passed = 1.0
    for probability in probabilities:
        if not 0 <= probability <= 1:
            raise TollwayError(
                f"{probability} is not a probability between 0 and 1")
        passed *= 1.0 - probability
    return 1.0 - passed


def expected_backlog(target, gamma, price):
    """Backlog in packets at which the sbrm law asks a price (CP05 5.5.7).

    target: b0 in packets, 0 and up; gamma: price per packet, above 0;
    price: of the link, base e, 0 and up. At price 0 the backlog can be
    anything up to the target: the target is returned.
    """
    if target < 0 or gamma <= 0 or price < 0:
        raise TollwayError("a backlog needs a target and a price of 0 and up "
                           "and a gamma above 0")
    return target + price / gamma


def gamma_auto(limit, target):
    """gamma with which 99 % are marked at the queue's limit (CP05 5.4.2)."""
    return math.log(100) / (limit - target)


def aimd_rate(w, m):
    """Rate in packets/s at which the AIMD form of SBRM settles.

    Unmarked ACKs add kappa w RTT/cwnd, marked ones take kappa (CP05
    5.1.2-5.1.3, 5.4.2); they balance at x = w (1 - m)/m.
    w: willingness to pay in packets/s, above 0; m: marking probability of
    the path, above 0 and at most 1.
    """
    if w <= 0 or not 0 < m <= 1:
        raise TollwayError(
            f"the AIMD source has no equilibrium for w = {w} and m = {m}")
    return w * (1.0 - m) / m


def jain_index(values):
    """Jain's fairness index, (sum x)^2 / (n sum x^2): 1 if all are equal.

    values: numbers of 0 and up in one unit, at least one of them above 0.
    """
    values = np.asarray(values, dtype=float)
    if not len(values) or np.any(values < 0) or not np.any(values > 0):
        raise TollwayError("Jain's index needs shares of 0 and up, "
                           "and one above 0")
    return float(values.sum() ** 2 / (len(values) * np.square(values).sum()))


# What a source makes of marks, by its two parameters: the sum of w over the
# capacity is then the price, the probability, or its odds.
STEADY_FORMS = ("log", "raw", "aimd")


def steady_state(capacity_pps, weights, target, gamma, form="log"):
    """Where sources with a willingness to pay settle over one sbrm queue.

    capacity_pps: c in packets/s; weights: w of each flow in packets/s;
    target: b0 in packets; gamma: price per packet; form: what the sources do.
    "log", the default source and estimator: w = x p with p = -ln(1 - m), so
    p = sum(w)/c and b = b0 + p/gamma. "raw", the direct update by the mark
    itself: w = x m, so m = sum(w)/c and b = b0 - ln(1 - m)/gamma, which is CP05
    Table 5.5.1. "aimd": x = w (1 - m)/m, so m = sum(w)/(c + sum(w)).

    Returns {"rates_pps": [of each flow], "mark_probability", "price" (base e),
    "queue_pkts"}. Raises TollwayError where there is no steady state.
    """
    load = sum(weights) / capacity_pps
    if form not in STEADY_FORMS or not weights or min(weights) <= 0:
        raise TollwayError(f"there is no steady state of {weights} and {form}")
    if form == "raw" and load >= 1:
        raise TollwayError("with the mark as the price the sum of w must be "
                           "below the capacity (CP05 5.5.6)")
    price = {"log": load, "raw": -math.log1p(-min(load, 0.999999)),
             "aimd": math.log1p(load)}[form]
    rates = [capacity_pps * w / sum(weights) for w in weights]
    return {"rates_pps": rates, "mark_probability": mark_probability(price),
            "price": price,
            "queue_pkts": expected_backlog(target, gamma, price)}


def fluid_completions(capacity_pps, flows):
    """When transfers end that share links as round robin would, as a fluid.

    The whole of a transfer is at its links from its start on (PP94 9.4: the
    bottleneck has infinite buffers); at each moment rates are max-min fair.
    capacity_pps: dict, link -> packets/s. flows: list of (id, start s,
    packets or None, links, demand): packets None never ends; demand packets/s
    it asks for at most, or None.

    Returns {id: end in s} of the transfers, without any propagation. Raises
    TollwayError where one never ends.
    """
    left = {flow: packets for flow, _, packets, _, _ in flows
            if packets is not None}
    ends, now = {}, 0.0
    while left:
        active = [flow for flow in flows if flow[1] <= now + KKT_TOLERANCE
                  and flow[0] not in ends]
        rates = max_min_rates(capacity_pps, [
            (flow, links, demand) for flow, _, _, links, demand in active])
        starts = [start for _, start, *_ in flows
                  if start > now + KKT_TOLERANCE]
        done = [now + left[flow] / rates[flow] for flow in rates
                if flow in left and rates[flow] > 0]
        if not starts + done:
            raise TollwayError("a transfer never ends in this scenario")
        then = min(starts + done)
        for flow, rate in rates.items():
            if flow in left:
                left[flow] -= rate * (then - now)
                if left[flow] <= KKT_TOLERANCE * capacity_pps[
                        next(iter(capacity_pps))]:
                    ends[flow] = then
                    del left[flow]
        now = then
    return ends


def max_min_rates(capacity_pps, flows):
    """Max-min fair rates in packets/s, by filling all flows at one pace.

    capacity_pps: dict, link -> packets/s. flows: list of (id, links, demand),
    demand in packets/s or None. Returns {id: rate}.
    """
    room, rates = dict(capacity_pps), {flow: 0.0 for flow, _, _ in flows}
    growing = {flow: (frozenset(links), demand)
               for flow, links, demand in flows}
    while growing:
        users = {link: sum(link in links for links, _ in growing.values())
                 for link in room}
        step = min([room[link] / count for link, count in users.items()
                    if count] + [demand - rates[flow] for flow, (_, demand)
                                 in growing.items() if demand is not None])
        for flow, (links, _) in growing.items():
            rates[flow] += step
            for link in links:
                room[link] -= step
        full = {link for link in users if users[link] and
                room[link] <= KKT_TOLERANCE * capacity_pps[link]}
        growing = {flow: (links, demand) for flow, (links, demand)
                   in growing.items() if not links & full and
                   (demand is None or rates[flow] <
                    demand * (1 - KKT_TOLERANCE))}
    return rates


def off_for_load(load, on_s, extra_s=0.0):
    """Mean silence in s that makes a source use a part of a link on its own.

    load: that part, as MK94 (6): on_s/(on_s + extra_s + off). extra_s: what
    else a cycle has, such as the round trip after which a closed source knows
    that all has come. Raises TollwayError where no silence is short enough.
    """
    off_s = on_s / load - on_s - extra_s
    if off_s < 0:
        raise TollwayError(f"a source that is on for {on_s:g} s cannot offer "
                           f"a load of {load:g}")
    return off_s


def survival_quantile(times, part):
    """The time within which a part of all is done, by Kaplan and Meier.

    times: list of (s, done, ...): how long something took or, if it was not
    done when the watch ended, had taken by then. part: 0 to 1. Returns s, or
    None where too few were watched for so long. Without any that were not done
    it is the sample's quantile (the smallest time that so many do not exceed).
    """
    left, waiting = 1.0, len(times)
    # What was done at a moment was done before the watch ended there.
    for time, done, *_ in sorted(times, key=lambda one: (one[0], not one[1])):
        if done:
            left *= 1 - 1 / waiting
            if left <= 1 - part + KKT_TOLERANCE:
                return time
        waiting -= 1
    return None
