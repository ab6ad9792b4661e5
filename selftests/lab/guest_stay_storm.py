# SPDX-License-Identifier: GPL-2.0
"""A storm of tc commands on queues that are in use, all options random.

Each command is one message of netlink, as tc sends it, and whether the kernel
takes it must be what the models of fuzz_models.py say.
"""

import collections
import copy
import gc
import random
import socket
import struct
import time

import guest_base
from bench import CHILD, ETH_P_ALL, Bench, ipv4, ipv6, other
from fuzz_models import (FQ_RR_DEFAULTS, Settings, fq_rr_options_of, fq_rr_shown,
                         junk, sbrm_options_of)
from guest_base import amount, note
from guest_fuzz import accounts, usable
from memory import memory, no_leak
from rtnl import (FQ_RR_CLASS_WEIGHT, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL,
                  NLM_F_REPLACE, RTM_NEWTCLASS, TCA_KIND, TCA_OPTIONS, Refused, attr, u32)
from tcp_bench import DATA, TCP_CONGESTION

OPERATIONS = {"short": 1500, "full": 100000, "full_debug": 20000}
HANDLES = 0x100000, 0x200000, 0x300000
RTM_NEWTFILTER, TCA_MATCHALL_CLASSID = 44, 1
CREATE = NLM_F_CREATE | NLM_F_EXCL
REPLACE = NLM_F_CREATE | NLM_F_REPLACE
RATE_BPS = 4 * 10**7


class Sbrm:
    """What a queue of kind sbrm has been told."""

    name = b"sbrm\0"

    def __init__(self, there=False):
        """there: it has been made, without a word."""
        self.settings, self.there = Settings(), there

    def options(self, rng):
        """(options, the model after them or None)"""
        data = sbrm_options_of(rng)
        after = copy.deepcopy(self)
        after.there = True
        taken = after.settings.take(data, new=not self.there)
        return data, after if taken else None

    def agrees(self, stats):
        """Assert that a dump shows what it should."""
        self.settings.agrees(stats)


class FqRr:
    """The same of kind fq_rr."""

    name = b"fq_rr\0"

    def __init__(self, state=None):
        self.state = state or FQ_RR_DEFAULTS

    def options(self, rng):
        while True:
            data, after = fq_rr_options_of(rng, self.state)
            # User mode maps each page of a large table by a call to the host.
            if not after or rng.random() < 0.1 or \
                    after[1] <= 20000 and after[3] <= 2000:
                return data, after and FqRr(after)

    def agrees(self, stats):
        shown = fq_rr_shown(stats.words)
        assert shown == self.state, (shown, self.state)


class Storm:
    """The link, its flows, and the queue that is there now."""

    def __init__(self, rng):
        self.rng = rng
        self.bench = Bench()
        self.bench.htb(RATE_BPS, 1514, None)
        self.device = self.index()
        self.handle, self.model = HANDLES[0], Sbrm(there=True)
        self.count = collections.Counter()
        self.flows = [self.connect(6000 + number, cc) for number, cc in
                      enumerate(("sbrm", "cp", "pp", "reno"))]

    def index(self):
        with self.bench.a:
            return socket.if_nametoindex("va")

    def connect(self, port, cc):
        """A flow of TCP from a to b; both ends."""
        with self.bench.b:
            server = socket.create_server(("10.0.0.2", port))
        with self.bench.a:
            near = socket.socket()
        for end in server, near:
            end.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, cc.encode())
        near.connect(("10.0.0.2", port))
        far, _ = server.accept()
        near.setblocking(False)
        far.setblocking(False)
        return near, far

    def traffic(self):
        """Frames of all kinds, and of all priorities."""
        rng, bench = self.rng, self.bench
        if rng.random() < 0.3:
            bench.out.setsockopt(
                socket.SOL_SOCKET, socket.SO_PRIORITY,
                rng.choice((0, 1, 5, self.handle | rng.randrange(70),
                            rng.getrandbits(31))))
        for _ in range(rng.randrange(5)):
            bench.send(rng.randrange(70, 1500), rng.randrange(4),
                       rng.choice((ipv4, ipv6, other)))

    def flow(self):
        """Let time pass."""
        for near, far in self.flows:
            for use in (lambda one=near: one.send(DATA),
                        lambda one=far: one.recv(len(DATA),
                                                 socket.MSG_TRUNC)):
                try:
                    while use():
                        pass
                except BlockingIOError:
                    pass
        self.bench.poll.poll(self.rng.random() * 10)
        time.sleep(self.rng.random() / 100)
        try:
            while True:
                self.bench.into.recv(1)
        except BlockingIOError:
            pass

    def send(self, model, data, handle, flags):
        """Send options; the answer of the kernel, which must be the model's."""
        try:
            self.bench.rtnl.sbrm("va", data, handle, CHILD, flags, model.name)
        except Refused as answer:
            self.count["refused"] += 1
            return answer
        self.count["accepted"] += 1
        return None

    def judge(self, answer, after, data):
        """Was it right to take, or to refuse, options of the right form?"""
        assert (answer is None) == (after is not None), \
            f"{vars(self.model)} {data.hex()}: {answer}"
        assert answer is None or answer.message, f"no message: {data.hex()}"

    def change(self):
        """tc qdisc change"""
        data, after = self.model.options(self.rng)
        answer = self.send(self.model, data, self.handle, 0)
        self.judge(answer, after, data)
        self.model = after or self.model

    def replace(self, kind=None, flags=REPLACE):
        """tc qdisc replace: another queue takes the place."""
        new = (kind or self.rng.choice((Sbrm, FqRr)))()
        handle = self.rng.choice([one for one in HANDLES
                                  if one != self.handle])
        data, after = new.options(self.rng)
        answer = self.send(new, data, handle, flags)
        self.judge(answer, after, data)
        if after:
            self.model, self.handle = after, handle
        return after

    def replace_same(self):
        """tc qdisc replace with the handle that is there: a change."""
        data, after = self.model.options(self.rng)
        answer = self.send(self.model, data, self.handle, REPLACE)
        self.judge(answer, after, data)
        self.model = after or self.model

    def delete(self):
        """tc qdisc del, and add again"""
        self.bench.rtnl.delete("va", self.handle, CHILD)
        self.count["accepted"] += 1
        self.traffic()
        if self.rng.random() < 0.2:
            self.flow()
        while not self.replace(flags=CREATE):
            pass

    def junk(self):
        """Malformed options; what was taken nobody knows: start afresh."""
        data = junk(self.rng)
        before = self.stats()
        if self.send(self.model, data, self.handle, 0):
            after = self.stats()
            if before.kind == "sbrm":
                assert before.settings == after.settings, data.hex()
            else:
                assert before.words == after.words, data.hex()
        else:
            while not self.replace(type(self.model)):
                pass

    def classes(self):
        """tc class change and show; tc filter add. Of fq_rr, or refused."""
        rng = self.rng
        number = rng.choice((0, 1, 2, 5, 64, rng.getrandbits(16)))
        weight = rng.choice((0, 1, 7, 1024, 1025, rng.getrandbits(32)))
        if rng.random() < 0.3:
            # Of one of a few priorities, for all protocols, to a class.
            about = rng.randrange(1, 9) << 16 | socket.htons(ETH_P_ALL)
            message = struct.pack("=BxxxiIII", 0, self.device, 0, self.handle,
                                  about) + attr(TCA_KIND, b"matchall\0") + \
                attr(TCA_OPTIONS | 0x8000,
                     u32(TCA_MATCHALL_CLASSID, self.handle | number))
            try:
                for _ in self.bench.rtnl.send(RTM_NEWTFILTER,
                                              CREATE | NLM_F_ACK, message):
                    pass
            except Refused:
                self.count["refused"] += 1
            else:
                assert isinstance(self.model, FqRr)
                self.count["filters"] += 1
            return
        if isinstance(self.model, Sbrm):
            return
        right = 1 <= number <= self.model.state[3] and weight <= 1024
        try:
            self.bench.rtnl.qdisc(
                RTM_NEWTCLASS, 0, self.device, self.handle | number,
                self.handle, attr(TCA_KIND, b"fq_rr\0") +
                attr(TCA_OPTIONS | 0x8000, u32(FQ_RR_CLASS_WEIGHT, weight)))
        except Refused:
            assert not right, (number, weight, self.model.state)
            self.count["refused"] += 1
        else:
            assert right, (number, weight, self.model.state)
            self.count["accepted"] += 1

    def stats(self):
        """Dump of what is there."""
        return self.bench.rtnl.stats("va", self.handle)

    def show(self):
        """tc -s qdisc show: the accounts of the queue and of its parent."""
        stats, parent = accounts(self.bench, self.handle)
        self.model.agrees(stats)
        assert (stats.qlen, stats.backlog) == (parent.qlen, parent.backlog)
        if stats.kind == "fq_rr" and self.rng.random() < 0.1:
            with self.bench.a:
                queues = self.bench.rtnl.classes("va", self.handle)
            assert sum(one.qlen for one in queues.values()) <= stats.qlen

    def run(self, operations):
        """That many of them."""
        kinds = {self.change: 40, self.replace: 20, self.replace_same: 8,
                 self.delete: 10, self.junk: 7, self.classes: 10,
                 self.show: 5}
        row = self.rng.choices(list(kinds), kinds.values(), k=operations)
        for number, operation in enumerate(row):
            self.traffic()
            with self.bench.a:
                operation()
            self.count[operation.__name__] += 1
            if number % 8 == 0:
                self.flow()
            if number % 10000 == 9999:
                print(f"{number + 1} operations", flush=True)


def check_storm():
    """100 000 commands under traffic: each answer right, nothing left."""
    rng = random.Random(guest_base.SETTINGS["seed"] + 10)
    storm(rng, 500)
    before = memory()
    operations = amount(**OPERATIONS)
    storm(rng, operations)
    no_leak(f"{operations} operations", operations, before)
    bench = Bench()
    bench.htb(40000, 1514, None)
    usable(bench)


def storm(rng, operations):
    """One storm, from the first to the last of its packets."""
    it = Storm(rng)
    it.run(operations)
    note(str(dict(it.count)))
    for ends in it.flows:
        for end in ends:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                           b"\1\0\0\0\0\0\0\0")
            end.close()
    # Sockets keep their namespace, and each Refused what was around it.
    del it
    gc.collect()
    guest_base.cleanup()


if __name__ == "__main__":
    guest_base.main(globals())
