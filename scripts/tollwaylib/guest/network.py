# SPDX-License-Identifier: GPL-2.0
"""The network of a run: the parts of topologies, and their configuration.

This file does not depend on the place where the network runs. Each interface is configured
with plain `ip` and `tc` commands. They go through `shell()`, so that `tollway run -v` can
print them. configure_network() runs them, one node at a time.

A bottleneck is a priced link: its shaper (HTB with a burst and a quantum of one packet)
and the AQM under test are at the egress of a router. The backlog of the AQM has only
packets that wait for the link, because the propagation delay of both directions is in a
netem in the opposite direction, where only acknowledgements pass. For all flows this is
the same link: between two routers only the sum of the two delays can be observed. It is
also faster, because acknowledgements are fewer and smaller than data packets. If both
directions are priced, each has its own delay in a netem above the shaper. A fat link has
its rate and its delay in one netem at each end, and no queue is expected there.
"""

from mininet.topo import Topo

from .links import ETHERNET_HEADER_BYTES, TollwayLink
from .nodes import PlainNode, Router, address_of, shell


class PathTopo(Topo):
    """Hosts and routers in a tree, with priced links between routers.

    Subclasses describe themselves in build() by router(), endpoint() and priced_link(). pairs:
    hosts send pairs of packets. Then a pair leaves at once, receivers acknowledge each segment,
    links count the bytes of IP packets, and each source has a class of its own in queues that
    have classes. After build, `priced` maps the name of each priced link to the (node,
    interface) of its AQM, and `paths` maps the name of each path to (source, sink, [names of
    priced links], rtt_ms).
    """

    def __init__(self, packet_bytes, aqm, edge_bps=10**9, gso_max_segs=1,
                 pairs=False, **params):
        self.pairs = pairs
        self.packet_bytes = packet_bytes
        self.aqm = aqm
        self.edge_bps = edge_bps
        self.gso_max_segs = None if self.pairs else gso_max_segs
        self.header_bytes = 0 if self.pairs else ETHERNET_HEADER_BYTES
        self.mtu = packet_bytes - self.header_bytes
        self.priced = {}
        # Of links that have another queue than the one under test: tc words.
        self.queues = {}
        self.links_described = {}
        self.paths = {}
        # Nodes by the names that an experiment has for them, where it has others.
        self.called = {}
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

    def endpoint(self, name, router, delay_ms, sends=True, delays=False):
        """Add a host behind `router`, over a fat link.

        delays: cases will give the link another delay.

        If the link has no rate (edge_bps 0), the delay of both directions is in one of them:
        for a host that sends in the direction to the host, otherwise from the host.
        Acknowledgements, which are fewer, use this direction.
        """
        host = self.addHost(name, cls=PlainNode)
        ways = [{"delay_ms": delay_ms}, {"delay_ms": delay_ms}]
        if not self.edge_bps:
            ways = [{}, {"delay_ms": 2 * delay_ms}]
            if delays:
                ways[1]["delays"] = True
            if not sends:
                ways.reverse()
        self.veth(host, router, rate_bps=self.edge_bps,
                  gso_max_segs=self.gso_max_segs,
                  params1=dict(ways[0], segments=self.pairs), params2=ways[1], intfName1=f"{host}-{router}",
                  intfName2=f"{router}-{host}")
        return host

    def priced_link(self, name, first, second, rate_bps, delay_ms, back=None,
                    back_bps=None, back_ms=None, delays=False):
        """Add a bottleneck from `first` to `second`. The opposite direction is free, or another
        bottleneck with the name `back`: with the same rate and delay, or with others.
        delays: cases will give it another delay."""
        out, home = f"{first}-{second}", f"{second}-{first}"
        links = {name: (first, out, rate_bps, delay_ms)}
        if back:
            links[back] = (second, home, back_bps or rate_bps,
                           delay_ms if back_ms is None else back_ms)
        ways = []
        ends = {name: [first, second], back: [second, first]}
        for link, (node, device, bps, ms) in links.items():
            ways.append({"rate_bps": bps, "delay_ms": ms,
                         "aqm": self.queues.get(link, self.aqm),
                         "packet_bytes": self.packet_bytes})
            self.priced[link] = (node, device)
            self.links_described[link] = {
                "capacity_bps": bps, "delay_ms": ms, "bottleneck": True,
                "routers": ends[link],
                **({"queue": self.queues[link]} if link in self.queues else {})}
        if not back:
            del ways[0]["delay_ms"]
            ways.append({"delay_ms": 2 * delay_ms})
        if delays:
            for way in ways[0 if back else 1:]:
                way["delays"] = True
        self.veth(first, second, intfName1=out, intfName2=home,
                  params1=ways[0], params2=ways[1])

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

    def ways_in(self, router):
        """Interfaces of a router by which packets for a priced link can arrive: all those that
        carry no priced link."""
        priced = {device for _, device in self.priced.values()}
        return [device for first, second, link in self.links(withInfo=True)
                for node, device, peer in (
                    (first, link["intfName1"], link["intfName2"]),
                    (second, link["intfName2"], link["intfName1"]))
                if node == router and not priced & {device, peer}]

    def path(self, name, source, sink, links, rtt_ms):
        """Give the path from one host to another a name."""
        self.paths[name] = {"source": source, "sink": sink,
                            "links": list(links), "rtt_ms": rtt_ms}


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


def separate_sources(net, topo, classful):
    """Give each path a class of its own in every AQM that has classes: the
    class of path number N, in either direction, is 10:N in hexadecimal.
    classful: kinds of qdiscs whose flows are classes."""
    for name, device in topo.priced.values():
        intf = net[name].nameToIntf[device]
        intf.classful = classful
        intf.filters = [
            f"tc filter add dev {device} parent 10: protocol ip prio 1 u32 "
            f"match ip {way} {address_of(net[path['source']])}/32 "
            f"classid 10:{number:x}"
            for number, path in enumerate(topo.paths.values(), 1)
            for way in ("src", "dst")]
        if topo.aqm.split()[0] in classful:
            shell(net[name], *intf.filters)


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
