# SPDX-License-Identifier: GPL-2.0
"""A network as data, from which guest/topologies.py builds it.

Functions of papers/networks.py and the files of users (own.py) describe their networks
with class Network. Network.data() is JSON.
"""


class Network:
    """Parts of a network, in the order in which they are built. The addresses of interfaces
    and the classes of paths depend on this order.

    pairs: hosts send pairs of packets, see PathTopo.
    """

    def __init__(self, pairs=False):
        self.pairs, self.parts, self.called = pairs, [], {}
        # Of links: ms in their direction.
        self.delays = {}

    def _add(self, kind, called=None, **words):
        self.parts.append([kind, words])
        if called:
            self.called[called] = words["name"]
        return words.get("name")

    def router(self, name, called=None):
        """Add a router. called: its name in the experiment, if it has another one."""
        return self._add("router", called, name=name)

    def host(self, name):
        """Add a host that has no link yet."""
        return self._add("host", name=name)

    def endpoint(self, name, router, delay_ms, sends=True, called=None,
                 delays=False):
        """Add a host behind a router. The link between them has no queue.

        delay_ms: of each direction. sends: the host sends data; otherwise it acknowledges
        data. delays: cases may give the link another delay.
        """
        return self._add("endpoint", called, name=name, router=router,
                         delay_ms=delay_ms, sends=sends,
                         **({"delays": True} if delays else {}))

    def link(self, name, first, second, rate_bps, delay_ms, back=None,
             delays=False):
        """Add a link with a queue, from one router to another.

        back: the opposite direction: its name, and rate_bps and delay_ms if they differ. Without
        it, the opposite direction has the same delay and no limit of the rate. delays: cases may
        give the link another delay.
        """
        self.delays[name] = delay_ms
        self._add("link", name=name, first=first, second=second, rate_bps=rate_bps,
                  delay_ms=delay_ms, **({"back": back} if back else {}),
                  **({"delays": True} if delays else {}))

    def own_queue(self, link, words):
        """Give a link that is added later a queue of its own (tc words), which is not the queue
        under test."""
        self._add("queue", link=link, words=words)

    def ends(self, link, first, second):
        """Set the names of the routers of a link in the experiment."""
        self._add("ends", link=link, first=first, second=second)

    def wire(self, first, second, gates):
        """Add a link without a limit of the rate. Only `first` has a qdisc on it, with a class
        and a queue for each of gates (tc words)."""
        self._add("wire", first=first, second=second, gates=list(gates))

    def path(self, name, source, sink, links, rtt_ms):
        """Give the path from one host to another a name."""
        self._add("path", name=name, source=source, sink=sink, links=list(links),
                  rtt_ms=rtt_ms)

    def data(self):
        """The keywords of guest.topologies.Built."""
        return {"parts": self.parts, "pairs": self.pairs,
                **({"called": self.called} if self.called else {})}


def of(data, kind):
    """The parts of one kind in the data of a network."""
    return [words for name, words in data["parts"] if name == kind]


def of_links(rate_bps, links, paths):
    """A Network of links, each with a rate of its own, and of paths.

    links: dicts with name, from, to, rate_bps, delay_ms, delays (cases may change the delay)
    and queue (tc words, or None for the queue under test). Two links in opposite directions
    between the same routers are the two directions of one link. paths: dicts with name,
    links, rtt_ms, delays, and edge_ms, the delay of the link to each of the path's two hosts.
    """
    network, ends = Network(), {}
    for link in links:
        ends.setdefault(frozenset((link["from"], link["to"])), []).append(link)
        if link["queue"]:
            network.own_queue(link["name"], link["queue"])
    routers = dict.fromkeys(router for link in links
                            for router in (link["from"], link["to"]))
    names = {router: network.router(f"r{number}", called=router)
             for number, router in enumerate(routers, 1)}
    for there, *back in ends.values():
        network.link(there["name"], names[there["from"]], names[there["to"]],
                     there["rate_bps"], there["delay_ms"], back={
                         key: back[0][key] for key in
                         ("name", "rate_bps", "delay_ms")} if back else None,
                     delays=any(one["delays"] for one in (there, *back)))
    for link in links:
        network.ends(link["name"], link["from"], link["to"])
    by_name = {link["name"]: link for link in links}
    for number, path in enumerate(paths, 1):
        first, last = (names[by_name[path["links"][index]][end]]
                       for index, end in ((0, "from"), (-1, "to")))
        source = network.endpoint(f"s{number}", first, path["edge_ms"],
                                  called=f"source of {path['name']}",
                                  delays=path["delays"])
        sink = network.endpoint(f"d{number}", last, path["edge_ms"], sends=False,
                                called=f"sink of {path['name']}",
                                delays=path["delays"])
        network.path(path["name"], source, sink, path["links"], path["rtt_ms"])
    return network
