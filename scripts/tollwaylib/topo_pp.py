# SPDX-License-Identifier: GPL-2.0
"""Topologies of PP94 section 9 and of MK94.

Hosts send pairs (see topo.PathTopo.pairs). Of a round trip, what the papers do
not give to the bottleneck is in the links of the hosts.
"""

from .topo import PathTopo


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
