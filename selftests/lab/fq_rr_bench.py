# SPDX-License-Identifier: GPL-2.0
"""An fq_rr between two namespaces, and beside its reference scheduler."""

import socket
import struct

from bench import CHILD, HOLD_BPS, QDISC, Bench, ipv4
from fq_rr_model import Fairness
from rtnl import (BY_PRIORITY, DROP_LAST, DROP_LONGEST, DROP_TAIL_OF_LONGEST,
                  DRR, RR, WFQ, fq_rr_options)

KIND = b"fq_rr\0"
SERVICES = {"rr": RR, "drr": DRR, "wfq": WFQ}
OVERFLOWS = {"drop-last": DROP_LAST,
             "drop-tail-of-longest": DROP_TAIL_OF_LONGEST,
             "drop-longest": DROP_LONGEST}
FLOWS = 16


class FqBench(Bench):
    """The bench with an fq_rr; a flow is a priority, unless hashed."""

    def __init__(self, parent="htb", rate_bps=HOLD_BPS, stab="", **words):
        """stab: words of a table of sizes of an HTB; words: options."""
        super().__init__()
        words.setdefault("flows", FLOWS)
        words.setdefault("classify", BY_PRIORITY)
        getattr(self, parent)(rate_bps, 1514, fq_rr_options(**words), KIND,
                              **({"stab": stab} if stab else {}))

    def change(self, **words):
        with self.a:
            self.rtnl.sbrm("va", fq_rr_options(**words), QDISC, CHILD, flags=0,
                           name=KIND)

    def classes(self):
        """{number: FqRrClass}"""
        with self.a:
            return self.rtnl.classes("va", QDISC)

    def put(self, flow, size=1000, port=5000):
        """Send a frame: (its number, was it accepted?)."""
        self.number += 1
        self.out.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, flow)
        frame = bytearray(ipv4(self.number, size, 0))
        frame[34:36] = struct.pack(">H", port)
        try:
            self.out.send(frame)
        except OSError as error:
            if error.errno != 105:
                raise
            return self.number, False
        return self.number, True

    def empty(self):
        """Assert that nothing is left, in any account."""
        stats, parent = self.stats(), self.parent()
        assert stats.qlen == stats.backlog == 0, stats.__dict__
        assert parent.qlen == parent.backlog == 0, parent.__dict__
        assert stats.x.flows == stats.x.memory == stats.x.longest == 0, stats.x
        for number, one in self.classes().items():
            assert one.qlen == one.backlog == one.memory == 0, (number, one)


class Pair:
    """The kernel and the reference, fed alike and compared at each packet.

    overhead: what a table of sizes adds to each of them, bytes.
    """

    def __init__(self, bench, reference, largest=1514, overhead=0):
        self.bench, self.reference, self.overhead = bench, reference, overhead
        self.fairness = Fairness(reference, largest)
        self.sent = self.out = 0
        self.sizes = {}

    def send(self, flow, size):
        """One packet; the kernel's answer must be that of the reference."""
        number, accepted = self.bench.put(flow, size)
        self.sent += 1
        self.sizes[number] = size
        dropped = self.reference.enqueue(flow, number, size + self.overhead)
        assert accepted == (number not in dropped), \
            f"{number}: accepted {accepted}, the reference drops {dropped}"
        # One that lost all has lost its place, even if a packet follows.
        for name in self.reference.emptied:
            self.fairness.idle(name)
        while True:
            frame = self.bench.receive(0.001 if number < 4 else 0)
            if frame is None:
                return
            self.left(frame)

    def left(self, frame):
        """A frame that came out."""
        busy = self.reference.busy()
        name, number, size = self.reference.dequeue(frame.number)
        assert frame.number == number, \
            f"{frame.number} came out, {number} is due"
        assert frame.size + self.overhead == size
        self.out += 1
        self.fairness.served(name, size, busy)
        if not self.reference.flows[name].packets:
            self.fairness.idle(name)

    def step(self):
        """Wait for the next departure."""
        frame = self.bench.receive(100)
        assert frame is not None, "packets wait, and nothing comes out"
        self.left(frame)

    def agrees(self):
        """Assert that the statistics are those of the reference."""
        ref = self.reference
        stats, parent = self.bench.stats(), self.bench.parent()
        assert stats.qlen == parent.qlen == len(ref)
        assert stats.backlog == parent.backlog == ref.backlog()
        assert stats.packets == self.out
        x = stats.x
        assert x.flows == len(ref.busy())
        got = (x.last_drops, x.longest_drops, x.longest_events, x.own_drops,
               x.new_flows, x.packets_max, x.owners, x.refused)
        due = (ref.last_drops, ref.longest_drops, ref.events, ref.own, ref.new,
               ref.most, len(ref.owners), ref.refused)
        assert got == due, f"{got} is not {due}"
        assert stats.drops == x.last_drops + x.longest_drops
        assert self.sent == self.out + stats.drops + stats.qlen
        if ref.overflow != DROP_LAST:
            longest = ref.longest()
            assert x.longest == (ref.length(longest) if longest is not None
                                 else 0)
        for name, one in ref.flows.items():
            cl = self.bench.classes()[name % FLOWS + 1]
            assert (cl.qlen, cl.backlog) == (len(one.packets), one.size())
            assert cl.packets_max == one.most
            assert cl.reserve == (ref.reserve if name in ref.owners else 0)

    def drain(self):
        """Let all out."""
        while self.reference.busy():
            self.step()
