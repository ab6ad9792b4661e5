# SPDX-License-Identifier: GPL-2.0
"""The network of an experiment, built from its description."""

from .network import PathTopo
from .nodes import PlainNode


class Built(PathTopo):
    """A network of parts, see experiments/network_parts.py.

    parts: [(kind, words)], in the order in which they are built. called: nodes by
    the names that the experiment has for them.
    """

    def build(self, parts=(), called=None):
        self.called = dict(called or {})
        for kind, words in parts:
            self.BUILDERS[kind](self, **words)

    def _host(self, name):
        """A host that has no link yet."""
        return self.addHost(name, cls=PlainNode)

    def _queue(self, link, words):
        """A link that is not there yet has a queue of its own."""
        self.queues[link] = words

    def _link(self, name, first, second, rate_bps, delay_ms, back=None,
              delays=False):
        """A link with a queue; back: of the opposite direction."""
        back = back or {}
        self.priced_link(name, first, second, rate_bps, delay_ms,
                         back=back.get("name"), back_bps=back.get("rate_bps"),
                         back_ms=back.get("delay_ms"), delays=delays)

    def _ends(self, link, first, second):
        """The routers of a link, as the experiment calls them."""
        self.links_described[link]["routers"] = [first, second]

    def _wire(self, first, second, gates):
        """A link with gates at its first end."""
        self.veth(first, second, intfName1=f"{first}-{second}",
                  intfName2=f"{second}-{first}", params1={"gates": gates})

    BUILDERS = {"router": PathTopo.router, "host": _host, "queue": _queue,
                "endpoint": PathTopo.endpoint, "link": _link, "ends": _ends,
                "wire": _wire, "path": PathTopo.path}
