# SPDX-License-Identifier: GPL-2.0
"""Transfers and on-off sources as fluids."""

from ..errors import TollwayError
from .fairness import KKT_TOLERANCE


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
