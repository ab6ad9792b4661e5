# SPDX-License-Identifier: GPL-2.0
"""Steady states of prices, marks and sources (CP05)."""

import math

import numpy as np

from ..errors import TollwayError


def mark_probability(price, phi=math.e):
    """Marking probability m = 1 - phi^-price (CP05 5.2.1; base e in 5.4.1).

    price: number or array, no unit, 0 and up; phi: base above 1.

    Raises TollwayError if price or phi is outside of its range.
    """
    if np.any(np.asarray(price) < 0) or phi <= 1:
        raise TollwayError("a mark needs a price of 0 and up "
                           "and a base above 1")
    return -np.expm1(-np.asarray(price, dtype=float) * math.log(phi))[()]


def path_mark_probability(probabilities):
    """Marking probability of a path, 1 - prod(1 - m_l) (CP05 5.2.1).

    probabilities: iterable of the links' probabilities, 0 to 1.

    Raises TollwayError if one of them is outside of this range.
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

    Raises TollwayError if an argument is outside of its range.
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

    Raises TollwayError if w or m is outside of its range: there is no equilibrium then.
    """
    if w <= 0 or not 0 < m <= 1:
        raise TollwayError(
            f"the AIMD source has no equilibrium for w = {w} and m = {m}")
    return w * (1.0 - m) / m


# What a source makes of marks, by its two parameters: the sum of w over the
# capacity is then the price, the probability, or its odds.
STEADY_FORMS = ("log", "raw", "aimd")


def steady_form(source, estimator):
    """The form of STEADY_FORMS of a source, see steady_state()."""
    if source == "aimd":
        return "aimd"
    # The source relative takes the bits as marks: raw is log for it.
    return "raw" if (source, estimator) == ("direct", "raw") else "log"


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
