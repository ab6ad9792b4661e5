# SPDX-License-Identifier: GPL-2.0
"""Malformed messages of netlink to both qdiscs, from a generator with a seed.

Each begins as a message that tc could send, and is then cut, lengthened, nested
or given types, lengths and values that nothing has. Most must be refused, and
what is refused must change nothing; those that are no messages at all get no
answer.
"""

import collections
import errno
import os
import random
import socket
import struct

import guest_base
from bench import CHILD, QDISC, Bench
from fuzz_models import (FQ_RR_DEFAULTS, FQ_RR_RANGES, TAKES, fq_rr_options_of,
                         number, payload, sbrm_options_of)
from guest_base import amount, note
from guest_fuzz import accounts, traffic, usable
from memory import memory, no_leak
from rtnl import (FQ_RR_CLASS_WEIGHT, GAMMA, GAMMA_AUTO, GAMMA_ONE, NLM_F_ACK,
                  NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST,
                  NLMSG_ERROR, RTM_GETQDISC, RTM_GETTCLASS, RTM_NEWQDISC,
                  RTM_NEWTCLASS, SETTABLE, TARGET, TCA_KIND, TCA_OPTIONS, attr, u32)

MESSAGES = {"short": 10000, "full": 1000000, "full_debug": 100000}
# Messages between two looks at the queue.
ROUND = 100
NESTED = 0x8000
# What may be wrong with a message of ours, and nothing else: no sign of want of
# memory, of an interrupted or of a half-done change.
ERRORS = {errno.EINVAL, errno.ERANGE, errno.EOPNOTSUPP, errno.ENOENT,
          errno.EEXIST, errno.ENODEV, errno.EMSGSIZE, errno.EBUSY}


def options(rng, kind):
    """Options of the right form for a kind."""
    if kind == b"sbrm\0":
        return sbrm_options_of(rng)
    while True:
        data, after = fq_rr_options_of(rng, FQ_RR_DEFAULTS)
        # User mode maps each page of a large table by a call to the host.
        if not after or rng.random() < 0.02 or \
                after[1] <= 20000 and after[3] <= 2000:
            return data


def nest(rng, inner):
    """Attributes in attributes, up to far deeper than anything has."""
    for _ in range(rng.choice((1, 2, 3, 10, 40, 400))):
        inner = attr(rng.randrange(16) | rng.choice((0, NESTED)), inner)
        if len(inner) > 60000:
            break
    return inner


def some_bytes(rng, most):
    """Random bytes, up to so many."""
    return rng.randbytes(rng.randrange(most))


def spoil(rng, data):
    """A row of attributes with something wrong in it."""
    return rng.choice((
        # truncated: an attribute, or the last one's payload
        lambda: data[:rng.randrange(len(data) + 1)],
        # oversized: by bytes that belong to nothing
        lambda: data + some_bytes(rng, 64),
        lambda: data + bytes(rng.randrange(1, 20000)),
        # a length that lies
        lambda: data + attr(rng.randrange(20), payload(rng),
                            rng.choice((0, 1, 2, 3, 4, 5, 8, 100, 65535,
                                        rng.getrandbits(16)))),
        # wrong types: of what is there, or of another payload
        lambda: retype(rng, data),
        lambda: data + attr(rng.randrange(1, 16), payload(rng)),
        lambda: data + attr(rng.randrange(1, 16) | rng.choice((NESTED, 0x4000)),
                            payload(rng)),
        # unknown attributes
        lambda: attr(rng.randrange(16, 0x4000), payload(rng)) + data,
        # nested junk
        lambda: data + nest(rng, data),
        lambda: nest(rng, data),
        lambda: nest(rng, some_bytes(rng, 40)),
        # twice, or many times
        lambda: (data + data) * rng.choice((1, 1, 50)),
        # a bit that flips
        lambda: flip(rng, data), lambda: flip(rng, data),
        # nothing of it
        lambda: some_bytes(rng, 200), lambda: b""))()


def retype(rng, data):
    """The first attribute with another type."""
    if len(data) < 4:
        return data
    return data[:2] + struct.pack("=H", rng.choice(
        (rng.randrange(20), rng.getrandbits(16)))) + data[4:]


def flip(rng, data):
    """One bit of it turned over."""
    data = bytearray(data)
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def kind_name(rng, kind):
    """TCA_KIND, mostly as it should be."""
    if rng.random() < 0.9:
        return attr(TCA_KIND, kind)
    return attr(TCA_KIND, rng.choice((
        b"", kind[:-1], kind[:2], kind * 8, b"\0" * 20, some_bytes(rng, 30),
        b"x" * 16, b"x" * 1000, kind.upper(), b"sbrm\0", b"fq_rr\0")))


def message(rng, kind, index):
    """One message for the queue below HTB, and whether it is refused as a
    whole if it is: sch_api.c changes a queue before it looks at TCA_STAB."""
    what, flags = rng.choice((
        (RTM_NEWQDISC, 0), (RTM_NEWQDISC, 0), (RTM_NEWQDISC, 0),
        (RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE),
        (RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL),
        (RTM_NEWTCLASS, 0), (RTM_NEWTCLASS, NLM_F_CREATE),
        (RTM_GETQDISC, 0), (RTM_GETTCLASS, 0)))
    handle, parent = QDISC, CHILD
    inner = u32(FQ_RR_CLASS_WEIGHT, number(rng)) if what == RTM_NEWTCLASS else \
        options(rng, kind)
    if what in (RTM_NEWTCLASS, RTM_GETTCLASS):
        parent = QDISC
        handle |= rng.choice((0, 1, 7, 1024, 1025, rng.getrandbits(16)))
    where = rng.random()
    name, outer = kind_name(rng, kind), b""
    if where < 0.6:
        inner = spoil(rng, inner)
    elif where < 0.75:
        # TCA_RATE, TCA_STAB, blocks and what else sch_api.c reads
        outer = attr(rng.randrange(3, 18) | rng.choice((0, NESTED)),
                     rng.choice((payload(rng), inner, some_bytes(rng, 80))))
    elif where < 0.8:
        handle = rng.choice((0, 0x50000, handle | 5, rng.getrandbits(32)))
    data = name + attr(TCA_OPTIONS | rng.choice((NESTED, NESTED, NESTED, 0)),
                       inner[:60000]) + outer
    if where > 0.9:
        data = spoil(rng, data)
    body = struct.pack("=BxxxiIII", 0, index, handle, parent, 0) + data[:65000]
    if 0.8 < where < 0.85:
        body = body[:rng.randrange(len(body) + 1)]
    length = 16 + len(body)
    if 0.85 < where < 0.9:
        length = rng.choice((0, 1, 15, 16, 17, 20, 35, length - 1, length + 1,
                             length + 4, 65535, 2**31, 2**32 - 1))
    # Without REQUEST netlink does not look at it; ACK only now and then, as
    # errors are told in any case.
    flags |= NLM_F_REQUEST | (NLM_F_ACK if rng.random() < 0.1 else 0)
    return struct.pack("=IHHII", length, what, flags, rng.getrandbits(32),
                       0) + body, where < 0.6 or 0.75 <= where <= 0.9


class Junk:
    """A queue below HTB, and a socket to talk to it as root of its device."""

    def __init__(self, kind):
        self.bench = Bench()
        self.kind = kind
        self.bench.htb(400000, 1514, None, kind)
        with self.bench.a:
            self.index = socket.if_nametoindex("va")
            self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)
        self.socket.setblocking(False)
        self.outcomes = collections.Counter()

    def answers(self):
        """Take in what the kernel says: the errors."""
        found = []
        try:
            while True:
                data = self.socket.recv(1 << 17)
                # Here each message of the kernel is one datagram.
                _, answer, _, _, _ = struct.unpack_from("=IHHII", data)
                if answer != NLMSG_ERROR:
                    self.outcomes["answers"] += 1
                    continue
                code = -struct.unpack_from("=i", data, 16)[0]
                self.outcomes[os.strerror(code)] += 1
                assert not code or code in ERRORS, f"{code}: {data.hex()}"
                found.append(code)
        except BlockingIOError:
            return found

    def settings(self):
        """What the queue has been told, or None if there is another one."""
        with self.bench.a:
            found = self.bench.rtnl.dump("va").get(QDISC)
        if found is None or found.kind + "\0" != self.kind.decode():
            return None
        return found.settings if found.kind == "sbrm" else found.words

    def sane(self):
        """Assert that nothing that was taken is out of range."""
        stats, parent = accounts(self.bench)
        assert (stats.qlen, stats.backlog) == (parent.qlen, parent.backlog)
        if stats.kind == "sbrm":
            law, limit, target, gamma, flags = stats.settings
            assert 1 <= limit < 2**31 and law < len(TAKES)
            assert target < limit or TARGET not in TAKES[law]
            assert 0 <= gamma <= GAMMA_ONE and (gamma or GAMMA not in TAKES[law])
            assert not flags & ~(SETTABLE | GAMMA_AUTO)
            return
        for attribute, (_, least, most) in FQ_RR_RANGES.items():
            value = int.from_bytes(stats.words[attribute], "little")
            assert least <= value <= most, (attribute, value)

    def restore(self, data=None):
        """A queue of our kind, and of no great size, where it was."""
        with self.bench.a:
            self.bench.rtnl.sbrm("va", data, 0x200000, CHILD,
                                 NLM_F_CREATE | NLM_F_REPLACE, b"pfifo\0")
            self.bench.rtnl.sbrm("va", data, QDISC, CHILD,
                                 NLM_F_CREATE | NLM_F_REPLACE, self.kind)

    def run(self, rng, messages):
        """That many of them, under traffic."""
        for turn in range(messages):
            data, whole = message(rng, self.kind, self.index)
            looked = turn % ROUND == 0
            if looked:
                traffic(self.bench, rng)
                self.answers()
                before = self.settings()
            self.socket.send(data)
            if turn % 16 == 0 and not looked:
                self.answers()
            if looked:
                said = self.answers()
                after = self.settings()
                assert not any(said) or after == before or not whole, \
                    data.hex()
                if after is not None:
                    self.sane()
                self.restore()
                self.answers()
                self.bench.drain(rng.random() / 10)
            if turn % 100000 == 99999:
                print(f"{turn + 1} messages", flush=True)


def junk(kind, seed, use):
    """Half a million of messages to a kind; then it must be of use."""
    rng = random.Random(seed)
    Junk(kind).run(rng, 1000)
    guest_base.cleanup()
    before = memory()
    target = Junk(kind)
    messages = amount(**MESSAGES) // 2
    target.run(rng, messages)
    outcomes = target.outcomes
    note(f"{messages} messages: {dict(outcomes.most_common())}")
    refused = sum(outcomes[os.strerror(code)] for code in ERRORS)
    assert messages / 3 < refused < messages
    assert all(outcomes[os.strerror(code)] for code in
               (errno.EINVAL, errno.ERANGE, errno.EOPNOTSUPP))
    target.restore()
    use(target.bench)
    # Its sockets keep their namespace.
    del target
    guest_base.cleanup()
    no_leak(f"{messages} messages", messages, before)


def use_sbrm(bench):
    """It still marks as it should."""
    bench.htb_rate(40000, 1514)
    usable(bench)


def use_fq_rr(bench):
    """It still lets everything pass that it should."""
    bench.drain(1000)
    before = bench.stats().drops
    for _ in range(20):
        bench.send()
    assert len(bench.drain(100)) == 20
    stats, parent = bench.stats(), bench.parent()
    assert stats.drops == before
    assert stats.qlen == stats.x.memory == stats.x.flows == parent.qlen == 0


def check_junk_sbrm():
    """The qdisc sbrm: refused or sane, never harm."""
    junk(b"sbrm\0", guest_base.SETTINGS["seed"] + 20, use_sbrm)


def check_junk_fq_rr():
    """The qdisc fq_rr: the same."""
    junk(b"fq_rr\0", guest_base.SETTINGS["seed"] + 21, use_fq_rr)


if __name__ == "__main__":
    guest_base.main(globals())
