# SPDX-License-Identifier: GPL-2.0
"""Both qdiscs below every parent that they may have, fed with super-packets.

What an enqueue returns and what it tells its parents must fit what the queue
holds afterwards: a parent serves a class only if it has heard that the class
has packets, and some learn that only from the enqueue of the first one. So a
queue that gets this wrong is never served again.
"""

import collections
import random
import socket
import time

import guest_base
from bench import ECT0, NOT_ECT, QDISC, Bench, super_packet
from guest_base import amount, note
from rtnl import (BY_PRIORITY, DITHER, DROP_LAST, DROP_LONGEST,
                  DROP_TAIL_OF_LONGEST, DRR, ECN, RR, SPLIT_GSO, WFQ,
                  fq_rr_options, options)

# 1000 bytes in 1 ms.
RATE_BPS = 8_000_000
# The largest super-packet there is, so that a TBF hands it down in one piece.
BURST = 1 << 16
# How long the class of a parent may be busy beyond the bytes that wait, s.
SLACK_S = 0.1

# {name: commands that make it, with its one class}; {at} is where, {me} its
# handle. The first three limit the rate. hfsc-rt has no link sharing: it knows
# its classes by the tree of deadlines alone.
SHAPERS = {
    "htb": ("qdisc add dev va {at} handle {me}: htb default 1",
            f"class add dev va parent {{me}}: classid {{me}}:1 htb "
            f"rate {RATE_BPS}bit burst {BURST} cburst {BURST} quantum 1514"),
    "tbf": (f"qdisc add dev va {{at}} handle {{me}}: tbf rate {RATE_BPS}bit "
            f"burst {BURST} limit 100mb",),
    "hfsc": ("qdisc add dev va {at} handle {me}: hfsc default 1",
             f"class add dev va parent {{me}}: classid {{me}}:1 hfsc "
             f"ls rate {RATE_BPS}bit ul rate {RATE_BPS}bit"),
    "hfsc-rt": ("qdisc add dev va {at} handle {me}: hfsc default 1",
                f"class add dev va parent {{me}}: classid {{me}}:1 hfsc "
                f"rt rate {RATE_BPS}bit"),
}
ALL = "filter add dev va parent {me}: protocol all matchall classid {me}:1"
SHARERS = {
    "drr": ("qdisc add dev va {at} handle {me}: drr",
            "class add dev va parent {me}: classid {me}:1 drr quantum 1514",
            ALL),
    "qfq": ("qdisc add dev va {at} handle {me}: qfq",
            "class add dev va parent {me}: classid {me}:1 qfq weight 1 "
            "maxpkt 2048", ALL),
    "ets": ("qdisc add dev va {at} handle {me}: ets bands 2 quanta 1514 1514 "
            "priomap " + "0 " * 16,),
    "ets-strict": ("qdisc add dev va {at} handle {me}: ets bands 2 strict 2 "
                   "priomap " + "0 " * 16,),
    "prio": ("qdisc add dev va {at} handle {me}: prio bands 2 priomap " +
             "0 " * 16,),
    # Thresholds that are out of reach.
    "red": ("qdisc add dev va {at} handle {me}: red limit 40mb min 4mb "
            "max 8mb avpkt 60000 burst 90 bandwidth 8mbit",),
}
KINDS = {**SHAPERS, **SHARERS}
# Each alone where it limits the rate, and below one that does: HTB dequeues what
# is below it, TBF and HFSC peek. HFSC learns that a class has packets from the
# first enqueue alone, and is told by those below its child too that it has none:
# so it is on top of each.
CHAINS = [(top,) for top in SHAPERS] + \
    [("hfsc", below) for below in SHARERS] + \
    [("htb", "drr"), ("tbf", "qfq"), ("htb", "ets"), ("tbf", "drr"),
     ("hfsc", "tbf"), ("hfsc-rt", "drr"), ("hfsc", "prio", "drr")]


class Below(Bench):
    """The bench with a queue below a chain of parents."""

    def __init__(self, chain, kind, data):
        super().__init__()
        self.chain = chain
        self.named = " > ".join(chain)
        lines, at = [], "root"
        for me, name in enumerate(chain, 1):
            lines += [line.format(at=at, me=me) for line in KINDS[name]]
            at = f"parent {me}:1"
        self.a.batch("tc", lines)
        with self.a:
            self.rtnl.sbrm("va", data, QDISC, len(chain) << 16 | 1, name=kind)
        self.raw = self.virtio()
        self.arrived = 0

    def put(self, flow, segments, tos=ECT0):
        """A super-packet, or a packet of 1000 bytes: is it accepted?"""
        self.raw.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, flow)
        frame = super_packet(segments, tos=tos)
        try:
            self.raw.send(frame)
        except OSError as error:
            if error.errno != 105:
                raise
            return False
        return True

    def all(self):
        """Statistics of the leaf, and of each parent."""
        with self.a:
            there = self.rtnl.dump("va")
        return there[QDISC], [there[me << 16]
                              for me in range(1, len(self.chain) + 1)]

    def collect(self, timeout_s=0.0001):
        """Take in what came out."""
        found = self.drain(timeout_s)
        self.arrived += len(found)
        return found

    def agrees(self):
        """Assert that each parent knows what is below it: the statistics of
        the leaf, and of the parent at the root.

        One that was peeked at may keep the packet, which counts there alone.
        """
        leaf, parents = self.all()
        for name, one, child in zip(self.chain, parents,
                                    [*parents[1:], leaf]):
            packets, size = one.qlen - child.qlen, one.backlog - child.backlog
            assert packets == size == 0 or \
                one is not parents[0] and packets == 1 and size > 0, \
                f"{self.named}: {name} has {one.qlen} packets, " \
                f"{one.backlog} bytes, below it are {child.qlen} and " \
                f"{child.backlog}"
        return leaf, parents[0]

    def finish(self):
        """Without more traffic, all that waits must leave in the time that the
        link takes for it."""
        # All that an enqueue sets off has happened.
        self.collect(0.001)
        top = self.agrees()[1]
        until = time.monotonic() + top.backlog * 8 / RATE_BPS + SLACK_S
        while top.qlen and time.monotonic() < until:
            self.collect(SLACK_S / 10)
            top = self.agrees()[1]
        self.collect(0.001)
        top = self.agrees()[1]
        assert top.qlen == top.backlog == 0, \
            f"{self.named}: {top.qlen} packets, {top.backlog} bytes are " \
            "never served"


def sequence(bench, rng, turns, flows, split, tos):
    """Super-packets and packets at random, with rests in between."""
    outcomes = collections.Counter()
    sent = 0
    for _ in range(turns):
        for _ in range(rng.choice((1, 1, 2, 3, 10))):
            segments = rng.choice((1, 2, 3, 5, 10, 30, 60))
            before = bench.all()[0]
            taken = bench.put(rng.randrange(flows), segments,
                              rng.choice(tos))
            bench.collect()
            after, _ = bench.agrees()
            sent += segments if split else 1
            outcomes[bool(before.qlen), taken] += 1
            lost = after.drops - before.drops
            # From an empty queue that has room for one nothing can be refused.
            assert taken or before.qlen, "refused by an empty queue"
            assert taken or lost, "refused, and not counted as dropped"
        time.sleep(rng.choice((0, 0, 0.001, 0.005, 0.02, 0.1, 0.3)))
        bench.collect()
        # Now and then all of it must come out.
        if rng.random() < 0.2:
            bench.finish()
    bench.finish()
    leaf, _ = bench.agrees()
    assert sent == bench.arrived + leaf.drops, \
        f"{sent} sent, {bench.arrived} out, {leaf.drops} dropped"
    return outcomes, leaf


def fq_rr_cases(rng):
    """(name, options, does it split?) of fq_rr: each rule of overflow."""
    for overflow in rng.sample((DROP_LAST, DROP_TAIL_OF_LONGEST, DROP_LONGEST),
                               amount(1, 3)):
        split = rng.random() < 0.8
        words = {"overflow": overflow, "limit": rng.choice((1, 2, 5, 20, 50)),
                 "service": rng.choice((RR, DRR, WFQ)),
                 "longest": rng.randrange(2), "split_gso": split,
                 "memory_limit": rng.choice((1, 5000, 40000, 1 << 25))}
        yield str(words), fq_rr_options(classify=BY_PRIORITY, flows=16,
                                        **words), split


def sbrm_cases(rng):
    """The same of sbrm: with drops at the tail, and for the price."""
    for target in rng.sample((0, 1, 10), amount(1, 3)):
        split = rng.random() < 0.8
        words = {"limit": rng.choice((target + 1, target + 5, 50)),
                 "target": target, "gamma": rng.choice((0.001, 0.3, 1)),
                 "flags": SPLIT_GSO * split | rng.choice((0, ECN, DITHER,
                                                          ECN | DITHER))}
        yield str(words), options(**words), split


def below_parents(kind, cases):
    """All chains of parents, with random options and traffic."""
    rng = random.Random(guest_base.SETTINGS["seed"] * 7 + len(kind))
    total = collections.Counter()
    for chain in CHAINS:
        for words, data, split in cases(rng):
            bench = Below(chain, kind, data)
            try:
                outcomes, leaf = sequence(bench, rng, amount(25, 100), 4,
                                          split, (ECT0, ECT0, NOT_ECT))
            except AssertionError as error:
                raise AssertionError(f"{bench.named} > {words}: {error}") \
                    from error
            total.update(outcomes)
            total["drops"] += leaf.drops
            total["out"] += bench.arrived
            guest_base.cleanup()
    note(f"{len(CHAINS)} chains of parents: {dict(total)}")
    # Empty queues, busy ones, and refusals have all been met.
    assert total[False, True] > 100 and total[True, True] > 100
    assert total[True, False] > 20 and total["drops"] > 1000


def check_fq_rr():
    """fq_rr: parents know what it holds, and all of it is served."""
    below_parents(b"fq_rr\0", fq_rr_cases)


def check_sbrm():
    """sbrm: the same."""
    below_parents(b"sbrm\0", sbrm_cases)


def check_larger_than_the_buffer():
    """A super-packet with more segments than an empty buffer has room for."""
    for chain in CHAINS:
        bench = Below(chain, b"fq_rr\0", fq_rr_options(
            limit=5, overflow=DROP_LONGEST, classify=BY_PRIORITY, flows=16))
        for _ in range(3):
            assert bench.put(1, 12), "what is left of it was taken"
            bench.finish()
        # 12 are a queue of 5, one of 5, and two.
        leaf, _ = bench.agrees()
        assert (bench.arrived, leaf.drops) == (6, 30), \
            f"{bench.named}: {bench.arrived} out, {leaf.drops} dropped"
        guest_base.cleanup()


def check_newcomer_takes_the_buffer():
    """A packet for which all others are dropped is the only one left: the
    parents of the parent must not take the class for empty."""
    for chain in CHAINS:
        bench = Below(chain, b"fq_rr\0", fq_rr_options(
            limit=5, overflow=DROP_LONGEST, classify=BY_PRIORITY, flows=16))
        for _ in range(3):
            # All of the buffer, when the link has no burst left.
            for _ in range(5 + 2 * BURST // 1000):
                if bench.agrees()[0].x.longest == 5:
                    break
                bench.put(1, 1)
                bench.collect(0)
            before, _ = bench.agrees()
            assert bench.put(2, 1)
            after, _ = bench.agrees()
            # One more may be with a parent that peeked at it.
            assert after.qlen <= 2 and after.x.longest_drops == \
                before.x.longest_drops + 5, (bench.named, after.x)
            bench.finish()
        guest_base.cleanup()


if __name__ == "__main__":
    guest_base.main(globals())
