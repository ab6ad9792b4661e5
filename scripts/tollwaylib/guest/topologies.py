# SPDX-License-Identifier: GPL-2.0
"""The networks of the experiments.

In those of PP94 section 9 and of MK94, Confluence and Migration, hosts send
pairs (see PathTopo.pairs). Of a round trip, what the papers do not give to the
bottleneck is in the links of the hosts.
"""

from ..errors import TollwayError
from .network import PathTopo
from .nodes import PlainNode


class Confluence(PathTopo):
    """Sources that meet in one link, as PP94 Figures 10 and 22, MK94 Figure 1.

    rtts_ms: propagation there and back, of each source. sink_ms: delay of the
    link to the sinks. mirror: as many sources behind the link send the other
    way (PP94 Figure 27), on paths whose names begin with this word; the way
    back is then a link R2 of the same rate with the same queue.
    """

    pairs = True

    def build(self, rate_bps=40000000, rtts_ms=(44,), delay_ms=20, sink_ms=1,
              mirror=""):
        first, second = self.router("r1"), self.router("r2")
        self.priced_link("R1", first, second, rate_bps, delay_ms,
                         back="R2" if mirror else None)
        self.converge("", first, second, "R1", rtts_ms, delay_ms, sink_ms)
        if mirror:
            self.converge(mirror, second, first, "R2", rtts_ms, delay_ms,
                          sink_ms)

    def converge(self, prefix, first, second, link, rtts_ms, delay_ms,
                 sink_ms):
        """Add one way's sources and their sink."""
        sink = self.endpoint(f"{prefix}d", second, sink_ms)
        for number, rtt_ms in enumerate(rtts_ms, 1):
            edge_ms = round(rtt_ms / 2 - delay_ms - sink_ms, 6)
            source = self.endpoint(f"{prefix}s{number}", first, edge_ms)
            self.path(f"{prefix}{number}", source, sink, [link], rtt_ms)


class Migration(PathTopo):
    """PP94 Figure 26: connection 1 crosses two links of one rate in a row,
    connection 2 the first alone, connections 3 and 4 the second.

    The figure is lost. Each link has 10 ms, and all round trips are 44 ms as in
    benchmark 1, of which hosts at the inner switch have 11 ms on their own.
    """

    pairs = True

    def build(self, rate_bps=40000000, rtt_ms=44, delay_ms=10, edge_ms=1):
        one, two, three = (self.router(f"r{number}") for number in (1, 2, 3))
        self.priced_link("L1", one, two, rate_bps, delay_ms)
        self.priced_link("L2", two, three, rate_bps, delay_ms)
        inner_ms = rtt_ms / 2 - delay_ms - edge_ms
        last = self.endpoint("d", three, edge_ms)
        middle = self.endpoint("m", two, inner_ms)
        for number, router, its_ms, sink, links in (
                (1, one, edge_ms, last, ["L1", "L2"]),
                (2, one, edge_ms, middle, ["L1"]),
                (3, two, inner_ms, last, ["L2"]),
                (4, two, inner_ms, last, ["L2"])):
            source = self.endpoint(f"s{number}", router, its_ms)
            self.path(str(number), source, sink, links, rtt_ms)


def topology(name):
    """The class of a topology."""
    found = globals().get(name)
    if found is None:
        raise TollwayError(f"there is no topology {name}")
    return found


class DoubleBottleneck(PathTopo):
    """CP05 Figure 4.3.1: three routers in a row, two 96 Mb/s links between.

    Path I crosses the first, path II the second, path III both. All delays are
    1 ms but for the 15 ms of the second core link, which gives the round trips
    of Table 4.3.2: 6, 34 and 36 ms.
    """

    def build(self, rate_bps=96000000, delays_ms=(1, 15), edge_delay_ms=1):
        for name in ("r1", "r2", "r3"):
            self.router(name)
        self.priced_link("core1", "r1", "r2", rate_bps, delays_ms[0])
        self.priced_link("core2", "r2", "r3", rate_bps, delays_ms[1])
        for name, first, last, links in (
                ("I", "r1", "r2", ("core1",)),
                ("II", "r2", "r3", ("core2",)),
                ("III", "r1", "r3", ("core1", "core2"))):
            number = len(self.paths) + 1
            source = self.endpoint(f"s{number}", first, edge_delay_ms)
            sink = self.endpoint(f"d{number}", last, edge_delay_ms,
                                 sends=False)
            delay_ms = 2 * edge_delay_ms + sum(
                self.links_described[link]["delay_ms"] for link in links)
            self.path(name, source, sink, links, 2 * delay_ms)


class ParkingLot(PathTopo):
    """CP05 Figure 4.4.1: five routers in a row, a priced link behind each of
    the first four, named after it, of 8, 24, 8 and 8 ms.

    The figure is lost. Edges of 1 ms and these ends give the hop counts and
    round trips of Table 4.4.1, which build() checks; a path has its source's
    name. Where an end of one path is the start of another there are two hosts,
    s5 and d5, so that each has only one kind of packets to send.
    """

    # Path: (first router, last router, sink, hop count, round trip in ms).
    TABLE_441 = {
        "S1": (1, 5, "S12", 5, 100), "S2": (1, 3, "S6", 3, 68),
        "S3": (1, 2, "S5", 2, 20), "S4": (2, 4, "S8", 3, 68),
        "S5": (2, 3, "S7", 2, 52), "S6": (3, 5, "S10", 3, 36),
        "S7": (3, 4, "S9", 2, 20), "S9": (4, 5, "S11", 2, 20)}

    def build(self, rate_bps=48000000, delays_ms=(8, 24, 8, 8),
              edge_delay_ms=1):
        routers = [self.router(f"r{number}") for number in range(1, 6)]
        for number, delay_ms in enumerate(delays_ms, 1):
            self.priced_link(f"R{number}", routers[number - 1],
                             routers[number], rate_bps, delay_ms)
        behind = {}
        for source, (first, last, sink, *_) in self.TABLE_441.items():
            for host, router in ((source, first), (sink, last)):
                if behind.setdefault(host, router) != router:
                    raise TollwayError(f"{host} is behind two routers")
        for source, (first, last, sink, hops, rtt_ms) in \
                self.TABLE_441.items():
            links = [f"R{number}" for number in range(first, last)]
            delay_ms = 2 * edge_delay_ms + sum(
                self.links_described[link]["delay_ms"] for link in links)
            if (len(links) + 1, 2 * delay_ms) != (hops, rtt_ms):
                raise TollwayError(f"path {source} is not that of Table 4.4.1")
            self.path(
                source,
                self.endpoint(source.lower(), routers[first - 1],
                              edge_delay_ms),
                self.endpoint(sink.lower().replace("s", "d"),
                              routers[last - 1], edge_delay_ms, sends=False),
                links, 2 * delay_ms)


class SingleBottleneck(PathTopo):
    """CP05 Figure 5.6.2: three hosts on each side of one link, both ways
    priced and named after the router before them.

    The figure is lost; its round trips are 20, 36 and 56 ms, and the queueing
    delays of Table 5.6.1 say 34 Mb/s: an E3 line.
    """

    def build(self, rate_bps=34368000, delay_ms=6, edges_ms=(2, 6, 11)):
        first, second = self.router("r1"), self.router("r2")
        self.priced_link("R1", first, second, rate_bps, delay_ms, back="R2")
        count = len(edges_ms)
        left = [self.endpoint(f"s{number}", first, edge_ms)
                for number, edge_ms in enumerate(edges_ms, 1)]
        right = [self.endpoint(f"s{number + count}", second, edge_ms)
                 for number, edge_ms in enumerate(edges_ms, 1)]
        for link, sources, sinks in (("R1", left, right),
                                     ("R2", right, left)):
            for source, sink, edge_ms in zip(sources, sinks, edges_ms):
                self.path(source.upper(), source, sink, [link],
                          2 * (delay_ms + 2 * edge_ms))


class OneLink(PathTopo):
    """One link between a host with all senders and one with all sinks.

    others_ms: a host more for each of these round trips, on paths from 2 on.
    """

    def build(self, rate_bps=100000000, rtt_ms=20, others_ms=()):
        first, second = self.router("r1"), self.router("r2")
        delay_ms = min((rtt_ms, *others_ms)) / 2
        self.priced_link("R1", first, second, rate_bps, delay_ms)
        sink = self.endpoint("d1", second, 0, sends=False)
        for number, its_ms in enumerate((rtt_ms, *others_ms), 1):
            source = self.endpoint(f"s{number}", first,
                                   round(its_ms / 2 - delay_ms, 6))
            self.path(str(number), source, sink, ["R1"], its_ms)


class Declared(PathTopo):
    """Links and paths as data, see experiments/own.py.

    links: dicts with name, from, to, rate_bps, delay_ms and queue (tc words, or
    None for the queue under test); one there and one back between the same
    routers are the two ways of one link. paths: dicts with name, links, rtt_ms
    and edge_ms, the delay of the link to each of the path's two hosts.
    """

    def build(self, rate_bps=None, links=(), paths=()):
        self.queues = {link["name"]: link["queue"] for link in links
                       if link["queue"]}
        ends = {}
        for link in links:
            ends.setdefault(frozenset((link["from"], link["to"])),
                            []).append(link)
        routers = dict.fromkeys(router for link in links
                                for router in (link["from"], link["to"]))
        names = {router: self.router(f"r{number}")
                 for number, router in enumerate(routers, 1)}
        self.called = dict(names)
        for there, *back in ends.values():
            self.priced_link(
                there["name"], names[there["from"]], names[there["to"]],
                there["rate_bps"], there["delay_ms"],
                **{key: link[word] for link in back for key, word in (
                    ("back", "name"), ("back_bps", "rate_bps"),
                    ("back_ms", "delay_ms"))})
        # As the file calls them.
        for link in links:
            self.links_described[link["name"]]["routers"] = [link["from"],
                                                             link["to"]]
        by_name = {link["name"]: link for link in links}
        for number, path in enumerate(paths, 1):
            first, last = (by_name[path["links"][index]][end]
                           for index, end in ((0, "from"), (-1, "to")))
            source = self.endpoint(f"s{number}", names[first], path["edge_ms"])
            sink = self.endpoint(f"d{number}", names[last], path["edge_ms"],
                                 sends=False)
            self.called.update({f"source of {path['name']}": source,
                                f"sink of {path['name']}": sink})
            self.path(path["name"], source, sink, path["links"],
                      path["rtt_ms"])


class Borders(PathTopo):
    """AACC Figure 4: sources, each behind a border of its own, meet in one link.

    The border gN of path N has a class 1:10 for what its source sends, with the
    queue `gate` (words of tc), as any border has that tollway-admit(8) is to
    control; the sink d, where the far end of admission is, has a class for each
    border. All propagation is behind the bottleneck.
    """

    def build(self, rate_bps=8000000, sources=2, rtt_ms=0,
              gate="pfifo limit 1000000"):
        first, second = self.router("r1"), self.router("r2")
        self.priced_link("R1", first, second, rate_bps, rtt_ms / 2)
        sink = self.addHost("d", cls=PlainNode)
        self.veth(sink, second, intfName1="d-r2", intfName2="r2-d",
                  params1={"gates": [gate] * sources})
        for number in range(1, sources + 1):
            border = self.router(f"g{number}")
            source = self.endpoint(f"s{number}", border, 0)
            self.veth(border, first, intfName1=f"{border}-{first}",
                      intfName2=f"{first}-{border}", params1={"gates": [gate]})
            self.path(str(number), source, sink, ["R1"], rtt_ms)


class SteadyState(PathTopo):
    """Links that share nothing, each with three paths of 10, 30 and 60 ms.

    A point of CP05 Table 5.5.1 each: `rate_bps` for all but F, which has twice
    and G, which has half of it. Path A1 is the shortest over link A.
    """

    FACTORS = {"A": 1, "B": 1, "C": 1, "D": 1, "E": 1, "F": 2, "G": 0.5}

    def build(self, rate_bps=48000000, delay_ms=3, edge_ms=1,
              rtts_ms=(10, 30, 60)):
        for link, factor in self.FACTORS.items():
            name = link.lower()
            first = self.router(f"{name}a")
            second = self.router(f"{name}b")
            self.priced_link(link, first, second, int(rate_bps * factor),
                             delay_ms)
            sink = self.endpoint(f"{name}s", second, edge_ms, sends=False)
            for number, rtt_ms in enumerate(rtts_ms, 1):
                source = self.endpoint(f"{name}{number}", first,
                                       rtt_ms // 2 - delay_ms - edge_ms)
                self.path(f"{link}{number}", source, sink, [link], rtt_ms)
