# SPDX-License-Identifier: GPL-2.0
"""A network as data: what guest/topologies.py builds it from.

Functions of papers/networks.py, and the files of users (own.py), describe theirs
with this; Network.data() is JSON.
"""


class Network:
    """Parts of a network, in the order in which they are built. The order gives
    interfaces their addresses, and paths their classes.

    pairs: do hosts send pairs? See PathTopo.
    """

    def __init__(self, pairs=False):
        self.pairs, self.parts, self.called = pairs, [], {}
        # Of links: ms in their direction.
        self.delays = {}

    def _add(self, kind, **words):
        self.parts.append([kind, words])

    def router(self, name, called=None):
        """Add a router; called: what the experiment calls it, if not that."""
        self._add("router", name=name)
        if called:
            self.called[called] = name
        return name

    def host(self, name, called=None):
        """Add a host that has no link yet."""
        self._add("host", name=name)
        if called:
            self.called[called] = name
        return name

    def endpoint(self, name, router, delay_ms, sends=True, called=None):
        """Add a host behind a router, with a link of its own that has no queue.

        delay_ms: of each direction. sends: does it send data, or acknowledge it?
        """
        self._add("endpoint", name=name, router=router, delay_ms=delay_ms,
                  sends=sends)
        if called:
            self.called[called] = name
        return name

    def link(self, name, first, second, rate_bps, delay_ms, back=None):
        """Add a link with a queue, from one router to another.

        back: what the opposite direction has: name, and rate_bps, delay_ms and
        queue where they differ; without it, that has the same delay and no limit
        of the rate.
        """
        self.delays[name] = delay_ms
        self._add("link", name=name, first=first, second=second, rate_bps=rate_bps,
                  delay_ms=delay_ms, **({"back": back} if back else {}))

    def own_queue(self, link, words):
        """Give a link, which is added later, a queue that is not the one under
        test: words of tc."""
        self._add("queue", link=link, words=words)

    def ends(self, link, first, second):
        """What the experiment calls the routers of a link."""
        self._add("ends", link=link, first=first, second=second)

    def wire(self, first, second, gates):
        """Add a link of which only `first` has something: a class with a queue for
        each of gates, words of tc."""
        self._add("wire", first=first, second=second, gates=list(gates))

    def path(self, name, source, sink, links, rtt_ms):
        """Name the way from one host to another."""
        self._add("path", name=name, source=source, sink=sink, links=list(links),
                  rtt_ms=rtt_ms)

    def data(self):
        """The keywords of guest.topologies.Built."""
        return {"parts": self.parts, "pairs": self.pairs,
                **({"called": self.called} if self.called else {})}


def of(data, kind):
    """The parts of a kind in the data of a network."""
    return [words for name, words in data["parts"] if name == kind]
