# SPDX-License-Identifier: GPL-2.0
"""The networks of the papers: functions that return a Network.

rate_bps is the rate of each link with a queue. If a network has several, `delays_ms` are
their delays. In the networks of PP94 section 9 and of MK94, and in confluence() and
migration(), hosts send pairs. The part of a round trip that the papers do not assign to the
bottleneck is in the links of the hosts.
"""

from ..errors import TollwayError
from ..experiments.network_parts import Network


def confluence(rate_bps, rtts_ms=(44,), delay_ms=20, sink_ms=1, mirror=""):
    """Sources that meet in one link, as PP94 Figures 10 and 22, MK94 Figure 1.

    rtts_ms: propagation there and back, of each source. sink_ms: delay of the
    link to the sinks. mirror: as many sources behind the link send the other
    way (PP94 Figure 27), on paths whose names begin with this word; the way
    back is then a link R2 of the same rate with the same queue.
    """
    network = Network(pairs=True)
    first, second = network.router("r1"), network.router("r2")
    network.link("R1", first, second, rate_bps, delay_ms,
                 back={"name": "R2"} if mirror else None)
    _converge(network, "", (first, second), "R1", rtts_ms, delay_ms, sink_ms)
    if mirror:
        _converge(network, mirror, (second, first), "R2", rtts_ms, delay_ms,
                  sink_ms)
    return network


def _converge(network, prefix, routers, link, rtts_ms, delay_ms, sink_ms):
    """One way's sources and their sink."""
    sink = network.endpoint(f"{prefix}d", routers[1], sink_ms)
    for number, rtt_ms in enumerate(rtts_ms, 1):
        edge_ms = round(rtt_ms / 2 - delay_ms - sink_ms, 6)
        source = network.endpoint(f"{prefix}s{number}", routers[0], edge_ms)
        network.path(f"{prefix}{number}", source, sink, [link], rtt_ms)


def migration(rate_bps, rtt_ms=44, delay_ms=10, edge_ms=1):
    """PP94 Figure 26: connection 1 crosses two links of one rate in a row,
    connection 2 the first alone, connections 3 and 4 the second.

    The figure is lost. Each link has 10 ms, and all round trips are 44 ms as in
    benchmark 1, of which hosts at the inner switch have 11 ms on their own.
    """
    network = Network(pairs=True)
    one, two, three = (network.router(f"r{number}") for number in (1, 2, 3))
    network.link("L1", one, two, rate_bps, delay_ms)
    network.link("L2", two, three, rate_bps, delay_ms)
    inner_ms = rtt_ms / 2 - delay_ms - edge_ms
    last = network.endpoint("d", three, edge_ms)
    middle = network.endpoint("m", two, inner_ms)
    for number, router, its_ms, sink, links in (
            (1, one, edge_ms, last, ["L1", "L2"]),
            (2, one, edge_ms, middle, ["L1"]),
            (3, two, inner_ms, last, ["L2"]),
            (4, two, inner_ms, last, ["L2"])):
        source = network.endpoint(f"s{number}", router, its_ms)
        network.path(str(number), source, sink, links, rtt_ms)
    return network


def double_bottleneck(rate_bps, delays_ms=(1, 15), edge_ms=1):
    """CP05 Figure 4.3.1: three routers in a row, two 96 Mb/s links between.

    Path I crosses the first, path II the second, path III both. All delays are
    1 ms but for the 15 ms of the second core link, which gives the round trips
    of Table 4.3.2: 6, 34 and 36 ms.
    """
    network = Network()
    for name in ("r1", "r2", "r3"):
        network.router(name)
    network.link("core1", "r1", "r2", rate_bps, delays_ms[0])
    network.link("core2", "r2", "r3", rate_bps, delays_ms[1])
    for number, (name, first, last, links) in enumerate((
            ("I", "r1", "r2", ("core1",)),
            ("II", "r2", "r3", ("core2",)),
            ("III", "r1", "r3", ("core1", "core2"))), 1):
        source = network.endpoint(f"s{number}", first, edge_ms)
        sink = network.endpoint(f"d{number}", last, edge_ms, sends=False)
        delay_ms = 2 * edge_ms + sum(network.delays[link] for link in links)
        network.path(name, source, sink, links, 2 * delay_ms)
    return network


# Path: (first router, last router, sink, hop count, round trip in ms).
TABLE_441 = {
    "S1": (1, 5, "S12", 5, 100), "S2": (1, 3, "S6", 3, 68),
    "S3": (1, 2, "S5", 2, 20), "S4": (2, 4, "S8", 3, 68),
    "S5": (2, 3, "S7", 2, 52), "S6": (3, 5, "S10", 3, 36),
    "S7": (3, 4, "S9", 2, 20), "S9": (4, 5, "S11", 2, 20)}


def parking_lot(rate_bps, delays_ms=(8, 24, 8, 8), edge_ms=1):
    """CP05 Figure 4.4.1: five routers in a row, a priced link behind each of
    the first four, named after it, of 8, 24, 8 and 8 ms.

    The figure is lost. Edges of 1 ms and these ends give the hop counts and
    round trips of Table 4.4.1, which is checked; a path has its source's name.
    Where an end of one path is the start of another there are two hosts, s5 and
    d5, so that each has only one kind of packets to send.

    Raises TollwayError if these delays do not give the numbers of Table 4.4.1.
    """
    network = Network()
    routers = [network.router(f"r{number}") for number in range(1, 6)]
    for number, delay_ms in enumerate(delays_ms, 1):
        network.link(f"R{number}", routers[number - 1], routers[number], rate_bps,
                     delay_ms)
    behind = {}
    for source, (first, last, sink, *_) in TABLE_441.items():
        for host, router in ((source, first), (sink, last)):
            if behind.setdefault(host, router) != router:
                raise TollwayError(f"{host} is behind two routers")
    for source, (first, last, sink, hops, rtt_ms) in TABLE_441.items():
        links = [f"R{number}" for number in range(first, last)]
        delay_ms = 2 * edge_ms + sum(network.delays[link] for link in links)
        if (len(links) + 1, 2 * delay_ms) != (hops, rtt_ms):
            raise TollwayError(f"path {source} is not that of Table 4.4.1")
        network.path(
            source, network.endpoint(source.lower(), routers[first - 1], edge_ms),
            network.endpoint(sink.lower().replace("s", "d"), routers[last - 1],
                             edge_ms, sends=False), links, 2 * delay_ms)
    return network


def single_bottleneck(rate_bps, delay_ms=6, edges_ms=(2, 6, 11)):
    """CP05 Figure 5.6.2: three hosts on each side of one link, both ways
    priced and named after the router before them.

    The figure is lost; its round trips are 20, 36 and 56 ms, and the queueing
    delays of Table 5.6.1 say 34 Mb/s: an E3 line.
    """
    network = Network()
    first, second = network.router("r1"), network.router("r2")
    network.link("R1", first, second, rate_bps, delay_ms, back={"name": "R2"})
    count = len(edges_ms)
    left = [network.endpoint(f"s{number}", first, edge_ms)
            for number, edge_ms in enumerate(edges_ms, 1)]
    right = [network.endpoint(f"s{number + count}", second, edge_ms)
             for number, edge_ms in enumerate(edges_ms, 1)]
    for link, sources, sinks in (("R1", left, right), ("R2", right, left)):
        for source, sink, edge_ms in zip(sources, sinks, edges_ms):
            network.path(source.upper(), source, sink, [link],
                         2 * (delay_ms + 2 * edge_ms))
    return network


# Links of a point of CP05 Table 5.5.1 each: parts of the rate.
STEADY_RATES = {"A": 1, "B": 1, "C": 1, "D": 1, "E": 1, "F": 2, "G": 0.5}


def steady_state(rate_bps, delay_ms=3, edge_ms=1, rtts_ms=(10, 30, 60)):
    """Links that share nothing, each with three paths of 10, 30 and 60 ms. Path
    A1 is the shortest over link A."""
    network = Network()
    for link, factor in STEADY_RATES.items():
        name = link.lower()
        first, second = network.router(f"{name}a"), network.router(f"{name}b")
        network.link(link, first, second, int(rate_bps * factor), delay_ms)
        sink = network.endpoint(f"{name}s", second, edge_ms, sends=False)
        for number, rtt_ms in enumerate(rtts_ms, 1):
            source = network.endpoint(f"{name}{number}", first,
                                      rtt_ms // 2 - delay_ms - edge_ms)
            network.path(f"{link}{number}", source, sink, [link], rtt_ms)
    return network


def one_link(rate_bps, rtt_ms=20, others_ms=()):
    """One link between a host with all senders and one with all sinks.

    others_ms: a host more for each of these round trips, on paths from 2 on.
    """
    network = Network()
    first, second = network.router("r1"), network.router("r2")
    delay_ms = min((rtt_ms, *others_ms)) / 2
    network.link("R1", first, second, rate_bps, delay_ms)
    sink = network.endpoint("d1", second, 0, sends=False)
    for number, its_ms in enumerate((rtt_ms, *others_ms), 1):
        source = network.endpoint(f"s{number}", first,
                                  round(its_ms / 2 - delay_ms, 6))
        network.path(str(number), source, sink, ["R1"], its_ms)
    return network


def borders(rate_bps, sources=2, rtt_ms=0, gate="pfifo limit 1000000"):
    """AACC Figure 4: sources, each behind a border of its own, meet in one link.

    The border gN of path N has a class 1:10 for what its source sends, with the
    queue `gate` (words of tc), as any border has that tollway-admit(8) is to
    control; the sink d, where the far end of admission is, has a class for each
    border. All propagation is behind the bottleneck.
    """
    network = Network()
    first, second = network.router("r1"), network.router("r2")
    network.link("R1", first, second, rate_bps, rtt_ms / 2)
    sink = network.host("d")
    network.wire(sink, second, [gate] * sources)
    for number in range(1, sources + 1):
        border = network.router(f"g{number}")
        source = network.endpoint(f"s{number}", border, 0)
        network.wire(border, first, [gate])
        network.path(str(number), source, sink, ["R1"], rtt_ms)
    return network
