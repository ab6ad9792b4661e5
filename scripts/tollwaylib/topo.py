# SPDX-License-Identifier: GPL-2.0
"""Mininet nodes, links and topologies of the experiments.

Nothing here knows where the network runs. Each interface is configured
with plain `ip` and `tc` commands, which go through `shell()` so that
`tollway run -v` can print them; configure_network() runs them, a node at a
time.

A bottleneck is a priced link: its shaper (HTB with a burst and a quantum of
one packet) and the AQM under test sit at the egress of a router. The backlog of
the AQM holds queued packets and nothing else, because the propagation delay of
both ways is in a netem on the way back, where only acknowledgements pass. To
all flows that is the same link: between two routers only the sum can be seen,
how it is shared between the ways says what time it is behind the link, and a
packet that has not to be kept is cheap. Where both ways are priced, each has its
own delay in a netem above the shaper. A fat link has its rate and delay in one
netem at each end: nothing is expected to queue there.
"""

import itertools
import re
import shlex

from mininet.link import Intf, Link
from mininet.log import debug
from mininet.node import Node
from mininet.topo import Topo

from .errors import TollwayError

# Room of the queues that only delay: more than any experiment has in flight.
DELAY_LIMIT_PKTS = 1000000
# Far below any round trip; a packet of 1000 bytes at 400 Mb/s.
BURST_S = 20e-6
# Where pairs are sent, a burst is this part of a packet: by so much the second
# of a pair may be early, and so late may the timer be without loss of rate.
PAIRED_BURST = 32
ETHERNET_HEADER_BYTES = 14
# Characters that the shells of Mininet, which have a terminal, take at once: it
# is 4095, of which quotes take some.
LONGEST_LINE = 3400
COLOURS = re.compile("\x1b\\[[0-9;]*[A-Za-z]")
# Queues whose flows are classes that a filter can choose.
CLASSFUL = ("fq_rr", "fq_codel")


def shell(node, *commands):
    """Run commands in a node, all in one go.

    node: mininet Node; commands: str, each must succeed. Successive commands
    of ip, or of tc, become one batch: a process is dear in the lab. Returns
    what they printed; raises TollwayError with the command that failed.
    """
    if len(commands) > 1 and sum(map(len, commands)) > LONGEST_LINE:
        half = len(commands) // 2
        return shell(node, *commands[:half]) + shell(node, *commands[half:])
    for command in commands:
        debug(f"{node.name}# {command}\n")
    groups = []
    for program, group in itertools.groupby(
            commands, key=lambda command: command.split()[0]):
        group = list(group)
        if program in ("ip", "tc") and len(group) > 1:
            groups.append(group)
        else:
            groups += [[command] for command in group]
    script = " && ".join(f"piece={index}; {{ {_one_process(group)}; }}"
                         for index, group in enumerate(groups))
    output = node.cmd(f"{script}; echo \"exit:$?:$piece\"").strip()
    text, _, end = output.rpartition("exit:")
    status, _, piece = end.strip().partition(":")
    # The shells of Mininet have a terminal, on which tc may print in colours.
    text = COLOURS.sub("", text)
    if status == "0":
        return text
    group = groups[int(piece)] if piece.isdigit() else commands
    line = re.search(r"Command failed -:(\d+)", text)
    failed = group[int(line.group(1)) - 1] if line else "; ".join(group)
    reason = (text or output).strip().partition("\n")[0]
    raise TollwayError(f"in node {node.name}: {reason} (from: {failed})")


def _one_process(group):
    """Shell words that run commands of one program by one process."""
    if len(group) == 1:
        return group[0]
    words = " ".join(shlex.quote(line.split(None, 1)[1]) for line in group)
    return (f"printf '%s\\n' {words} | "
            f"{group[0].split()[0]} -batch -")


class PlainNode(Node):
    """A namespace of which nothing is set but by configure_network()."""

    preparation = ("ip link set lo up",)

    def config(self, **_params):
        return {}


class Router(PlainNode):
    """A node that forwards IPv4."""

    preparation = PlainNode.preparation + (
        "sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 "
        "net.ipv4.conf.default.rp_filter=0 net.ipv4.conf.all.send_redirects=0 "
        # No packet is for a socket of a router: to look for one is dear.
        "net.ipv4.ip_early_demux=0",)


def burst_bytes(rate_bps, packet_bytes):
    """What a shaper lets go at once: a packet, or what its rate sends in 20 us.

    Each burst costs the lab a timer; several Gb/s have hundreds of thousands
    of packets in a second.
    """
    return max(packet_bytes, int(rate_bps * BURST_S / 8))


class TollwayIntf(Intf):
    """An interface that shapes, queues and delays as its link says."""

    def config(self, mtu=1500, rate_bps=None, delay_ms=None, aqm=None,
               gso_max_segs=None, packet_bytes=None, ip_only=False,
               segments=False, **params):
        """Collect the commands that configure the interface.

        mtu: bytes of IP. rate_bps: bit/s on the wire, Ethernet header
        included. delay_ms: propagation. aqm: tc words of the leaf qdisc, such
        as "sbrm target 10"; needs rate_bps. gso_max_segs: segments the host
        may hand over in one packet; 1 switches segmentation off.
        packet_bytes: bytes of a full packet on the wire, the shaper's burst
        at rates where burst_bytes() says so. ip_only: the Ethernet header takes
        no time. segments: it takes the super-packets of the host apart, so
        that what TCP hands over at once leaves back to back, as packets.
        """
        commands = [f"ip link set dev {self.name} mtu {mtu} up"]
        self.stab = f" stab overhead -{ETHERNET_HEADER_BYTES}" if ip_only \
            else ""
        self.packet, self.ip_only = \
            packet_bytes or mtu + ETHERNET_HEADER_BYTES, ip_only
        self.rate_bps, self.delay_ms = rate_bps, delay_ms or 0
        self.is_shaped, self.impairment = aqm is not None, ""
        if segments:
            commands.append(f"ethtool -K {self.name} tso off gso on")
        if gso_max_segs is not None:
            commands.append(f"ip link set dev {self.name} "
                            f"gso_max_segs {gso_max_segs}")
        self.has_netem = bool(delay_ms or rate_bps and not self.is_shaped)
        if self.has_netem:
            commands.append(self.netem_command())
        if self.is_shaped:
            # Only a root may have the table; what is below goes by it.
            place = "parent 1:1 handle 2:" if self.has_netem else \
                f"root handle 2:{self.stab}"
            commands += [
                f"tc qdisc replace dev {self.name} {place} htb default 1",
                self.shaper_command(), self.aqm_command(aqm)]
        self.commands = commands
        # Of tc, to be given again with each new AQM.
        self.filters = []
        return super().config(up=None, **params)

    def netem_command(self):
        """The tc command of what delays, and has the rate where nothing is
        shaped."""
        rate = f" rate {self.rate_bps}bit" \
            if self.rate_bps and not self.is_shaped else ""
        # What follows the delay in an impairment may begin with a time.
        delay = f" delay {self.delay_ms:g}ms" if self.delay_ms else ""
        return (f"tc qdisc replace dev {self.name} root handle 1:{self.stab} "
                f"netem limit {DELAY_LIMIT_PKTS}{rate}{delay} "
                f"{self.impairment}").rstrip()

    def shaper_command(self):
        """The tc command of the class with the rate."""
        # HTB sends as soon as it has no debt: with a burst of a packet an
        # idle link lets a pair go at once, which is no measure of anything.
        quantum = burst_bytes(self.rate_bps, self.packet)
        burst = self.packet // PAIRED_BURST if self.ip_only else quantum
        return (f"tc class replace dev {self.name} parent 2: classid 2:1 htb "
                f"rate {self.rate_bps}bit burst {burst} cburst {burst} "
                f"quantum {quantum}")

    def change(self, rate_bps, delay_ms):
        """Give the link another rate (bit/s) and delay (ms, or None).

        Raises TollwayError where there is nothing that could have them."""
        before = self.rate_bps, self.delay_ms
        self.rate_bps, self.delay_ms = rate_bps, delay_ms or 0
        if bool(before[0]) != bool(rate_bps) or \
                self.delay_ms and not self.has_netem:
            raise TollwayError(f"{self.name} was not built for this rate or "
                               "delay")
        if self.is_shaped and rate_bps != before[0]:
            shell(self.node, self.shaper_command())
        if self.has_netem:
            shell(self.node, self.netem_command())

    def impair(self, impairment):
        """Give what delays another impairment, in words of tc such as
        "loss 1%", or none ("").

        Raises TollwayError where nothing delays."""
        if impairment == self.impairment:
            return
        if not self.has_netem:
            raise TollwayError(f"{self.name} has no delay that could have "
                               f"{impairment!r}")
        self.impairment = impairment
        shell(self.node, self.netem_command())

    def aqm_command(self, aqm):
        """The tc command that makes `aqm` the leaf of the new shaper."""
        return f"tc qdisc add dev {self.name} parent 2:1 handle 10: {aqm}"

    def change_aqm(self, aqm):
        """Put another kind of qdisc in the place of the leaf."""
        filters = self.filters if aqm.split()[0] in CLASSFUL else []
        shell(self.node, f"tc qdisc del dev {self.name} parent 2:1",
              self.aqm_command(aqm), *filters)


class TollwayLink(Link):
    """A veth pair whose two ends are TollwayIntf."""

    def __init__(self, node1, node2, port1=None, port2=None, intfName1=None,
                 intfName2=None, addr1=None, addr2=None, params1=None,
                 params2=None, **params):
        ends = [dict(params, **(end or {})) for end in (params1, params2)]
        super().__init__(node1, node2, port1=port1, port2=port2,
                         intfName1=intfName1, intfName2=intfName2,
                         addr1=addr1, addr2=addr2, intf=TollwayIntf,
                         params1=ends[0], params2=ends[1])


class PathTopo(Topo):
    """Hosts and routers in a tree, with priced links between routers.

    Subclasses describe themselves in build() by router(), host() and
    priced_link(). After build: `priced` maps the name of each priced link to
    the (node, interface) that carries its AQM, `paths` maps each path's name
    to (source, sink, [names of priced links], rtt_ms).
    """

    # Do hosts send pairs? Then what they hand over at once leaves at once,
    # receivers acknowledge each segment, links count what IP counts, and each
    # source has a class of its own in queues that have classes.
    pairs = False

    def __init__(self, packet_bytes, aqm, edge_bps=10**9, gso_max_segs=1,
                 **params):
        self.packet_bytes = packet_bytes
        self.aqm = aqm
        self.edge_bps = edge_bps
        self.gso_max_segs = None if self.pairs else gso_max_segs
        self.header_bytes = 0 if self.pairs else ETHERNET_HEADER_BYTES
        self.mtu = packet_bytes - self.header_bytes
        self.priced = {}
        self.links_described = {}
        self.paths = {}
        self.interfaces = 0
        super().__init__(**params)

    def router(self, name):
        """Add a router."""
        return self.addHost(name, cls=Router)

    def veth(self, first, second, **params):
        """Add a link whose MAC addresses are the same in every run."""
        macs = []
        for _ in range(2):
            self.interfaces += 1
            macs.append(f"02:00:00:00:{self.interfaces // 256:02x}:"
                        f"{self.interfaces % 256:02x}")
        self.addLink(first, second, cls=TollwayLink, mtu=self.mtu,
                     addr1=macs[0], addr2=macs[1], ip_only=self.pairs,
                     **params)

    def endpoint(self, name, router, delay_ms, sends=True):
        """Add a host behind `router`, over a fat link.

        Where the link has no rate (edge_bps 0), both ways' delay is in one of
        them, and nothing in the other: for a host that sends on its way in,
        else on its way out, where there are acknowledgements, which are fewer.
        """
        host = self.addHost(name, cls=PlainNode)
        ways = [{"delay_ms": delay_ms}, {"delay_ms": delay_ms}]
        if not self.edge_bps:
            ways = [{}, {"delay_ms": 2 * delay_ms}]
            if not sends:
                ways.reverse()
        self.veth(host, router, rate_bps=self.edge_bps,
                  gso_max_segs=self.gso_max_segs,
                  params1=dict(ways[0], segments=self.pairs), params2=ways[1], intfName1=f"{host}-{router}",
                  intfName2=f"{router}-{host}")
        return host

    def priced_link(self, name, first, second, rate_bps, delay_ms, back=None):
        """Add a bottleneck from `first` to `second` and a free way back, or
        one like it, named `back`."""
        out = f"{first}-{second}"
        shaped = {"rate_bps": rate_bps, "aqm": self.aqm,
                  "packet_bytes": self.packet_bytes}
        ways = (shaped, {"delay_ms": 2 * delay_ms})
        if back:
            ways = (dict(shaped, delay_ms=delay_ms),) * 2
        self.veth(first, second, intfName1=out, intfName2=f"{second}-{first}",
                  params1=ways[0], params2=ways[1])
        ends = {name: (first, out), back: (second, f"{second}-{first}")}
        ends.pop(None, None)
        for link, end in ends.items():
            self.priced[link] = end
            self.links_described[link] = {
                "capacity_bps": rate_bps, "delay_ms": delay_ms,
                "bottleneck": True}

    def ends(self):
        """{interface: (node, its parameters)}, see TollwayIntf.config()."""
        found = {}
        for first, second, link in self.links(withInfo=True):
            for node, number in ((first, 1), (second, 2)):
                common = {key: value for key, value in link.items()
                          if key[-1] not in "12"}
                found[link[f"intfName{number}"]] = (node, {
                    **common, **(link.get(f"params{number}") or {})})
        return found

    def path(self, name, source, sink, links, rtt_ms):
        """Name the way from one host to another."""
        self.paths[name] = {"source": source, "sink": sink,
                            "links": list(links), "rtt_ms": rtt_ms}


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
    """One link between a host with all senders and one with all sinks."""

    def build(self, rate_bps=100000000, rtt_ms=20):
        first, second = self.router("r1"), self.router("r2")
        self.priced_link("R1", first, second, rate_bps, rtt_ms / 2)
        self.path("1", self.endpoint("s1", first, 0),
                  self.endpoint("d1", second, 0, sends=False), ["R1"], rtt_ms)


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


def configure_network(net, initcwnd=1, quickack=False):
    """Configure every interface, give it an address, and every node its routes.

    net: built Mininet of a PathTopo. Each pair of interfaces that IP sees gets
    a /30 of 10.0.0.0/8. Routes are shortest paths; neighbours are permanent, so
    that no ARP packet meets a queue. initcwnd: segments a host may send at first
    (CP05 4.3.1 starts with one). quickack: hosts acknowledge every segment.
    """
    host_route = f" initcwnd {initcwnd}" + (" quickack 1" if quickack else "")
    pairs = [(link.intf1, link.intf2) for link in net.links]
    subnets, commands = [], {}
    for node in net.values():
        commands[node] = [command for intf in node.intfList()
                          for command in intf.commands]
    neighbours = {node: [] for node in net.values()}
    for number, ends in enumerate(pairs):
        base = f"10.{number // 64}.{number % 64}"
        subnets.append((f"{base}.0/30", [end.node for end in ends]))
        for index, intf in enumerate(ends):
            peer = ends[1 - index]
            intf.tollway_ip = f"{base}.{index + 1}"
            commands[intf.node] += [
                f"ip addr add {base}.{index + 1}/30 dev {intf.name}",
                f"ip neigh replace {base}.{2 - index} lladdr {peer.mac} "
                f"dev {intf.name} nud permanent"]
            neighbours[intf.node].append((peer.node, f"{base}.{2 - index}",
                                          intf.name))

    for node, script in commands.items():
        for subnet, owners in subnets:
            if node in owners or not neighbours[node]:
                continue
            hop = _next_hop(node, owners, neighbours)
            if hop is None:
                continue
            gateway, device = hop
            window = "" if isinstance(node, Router) else host_route
            script.append(f"ip route add {subnet} via {gateway} "
                          f"dev {device}{window}")
        # Batches: links first, then addresses and routes, then qdiscs.
        script.sort(key=lambda command: ("ip", "ethtool", "tc").index(
            command.split()[0]))
        shell(node, *node.preparation, *script)


def separate_sources(net, topo):
    """Give each path a class of its own in every AQM that has classes: the
    class of path number N, in either direction, is 10:N in hexadecimal."""
    for name, device in topo.priced.values():
        intf = net[name].nameToIntf[device]
        intf.filters = [
            f"tc filter add dev {device} parent 10: protocol ip prio 1 u32 "
            f"match ip {way} {address_of(net[path['source']])}/32 "
            f"classid 10:{number:x}"
            for number, path in enumerate(topo.paths.values(), 1)
            for way in ("src", "dst")]
        if topo.aqm.split()[0] in CLASSFUL:
            shell(net[name], *intf.filters)


def address_of(node):
    """IPv4 address of a host's only interface."""
    return node.intfList()[0].tollway_ip


def _next_hop(start, goals, neighbours):
    """First hop (gateway address, device) of a shortest way to any goal; None
    if there is no way, as between parts that share nothing."""
    seen, front = {start}, [(start, None)]
    for node, hop in front:
        if node in goals:
            return hop
        for peer, gateway, device in neighbours[node]:
            if peer not in seen:
                seen.add(peer)
                front.append((peer, hop or (gateway, device)))
    return None
