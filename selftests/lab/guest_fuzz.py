# SPDX-License-Identifier: GPL-2.0
"""Random messages and random settings: all from one seed, see checks.json."""

import collections
import copy
import itertools
import math
import os
import random
import socket
import struct
import sys
import threading
import time
from pathlib import Path as File

import guest_base
from bench import (CHILD, NOT_ECT, PARENT, QDISC, Bench, Model, ipv4, ipv6,
                   other, super_packet)
from guest_base import Namespace, note
from rtnl import (ALPHA, ALPHA_LAW, AVPKT, CLASSIC, COUPLING, DELAY, DELAY_TARGET, DELTA,
                  FEEDBACK, FLAGS, FQ_RR_FLAGS, FQ_RR_PERTURB,
                  FQ_RR_RESERVE, FQ_RR_WEIGHTS, GAMMA, GAMMA_AUTO, GAMMA_ONE, GOAL, HIGH,
                  INTERVAL, LAW, LIMIT, LOW, OF_LAWS, PHI, PHI_ONE, RATE, REM_PC1,
                  RESET_STATS, SBRM, SCALE, SETTABLE, SMALL, TARGET, TWO_BIT,
                  VQM, WFQ,
                  Refused, Rtnl, attr, bitfield, fq_rr_options, options, u32, u64)
from tcp_bench import Path, info, pump, settle

MESSAGES = 3000
WRITES = 3000
EDGES = (0, 1, 2, 9, 10, 11, 99, 100, 999, 1000, 1001, 2**15, 2**16, 2**24,
         2**31 - 2, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1, 65535, 65536, 10**6,
        10**6 + 1, 2**28, 2**28 + 1, 4294966, 4294967, 42949672, 42949673)
WIDE_EDGES = (0, 1, 2**32, 2**32 + 1, 2**36, 2**36 + 1, 2**37, 2**37 + 1,
              2**63, 2**64 - 1)

# As pkt_sbrm.h has them. {attribute: (least, most)}
RANGES_OF_LAWS = {
    PHI: (2**32 + 1, 2**36), ALPHA: (1, 2**28), RATE: (1, 2**37),
    AVPKT: (1, 65535), INTERVAL: (1, 10**6), DELTA: (4294967, 2**32 - 1),
    SCALE: (42949673, 2**32 - 1), DELAY_TARGET: (10, 10**6),
    HIGH: (1, 2**31 - 2), LOW: (0, 2**31 - 2), GOAL: (1, 2**31 - 2)}
RANGES_OF_SBRM = {**RANGES_OF_LAWS, COUPLING: (10486, 1000 << 20), SMALL: (0, 65535)}
CLOCK = {RATE, AVPKT, INTERVAL, DELTA}
TAKES = ({TARGET, GAMMA}, {GAMMA, PHI} | CLOCK, {TARGET, GAMMA, PHI},
         {TARGET, GAMMA, PHI, ALPHA} | CLOCK, {SCALE, RATE, AVPKT},
         {DELAY_TARGET}, {HIGH, LOW, GOAL})
OWN_GAMMA = {1: 281474976711, 3: 281474976711}
DEFAULTS_OF_LAWS = {PHI: 4552665334, ALPHA: 1677722, INTERVAL: 1000,
                    DELTA: 3865470566, SCALE: 3865470566,
                    DELAY_TARGET: 3000}


def number(rng, bits=32):
    """An integer that is likely to be near an edge."""
    return rng.choice((lambda: rng.choice(EDGES), lambda: rng.getrandbits(bits),
                       lambda: rng.getrandbits(rng.randrange(1, bits + 1)),
                       lambda: rng.randrange(1, 2000)))()


def payload(rng):
    """Bytes of a length that may be wrong."""
    return bytes(rng.getrandbits(8) for _ in
                 range(rng.choice((0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 40))))


def of_law(rng, kind):
    """An option with a range of its own; its value is likely to be good."""
    least, most = RANGES_OF_SBRM[kind]
    if rng.random() < 0.8:
        value = rng.choice((least, most, rng.randint(least, most),
                            rng.randint(least, min(most, 2 * least + 10**4))))
    elif kind in (PHI, RATE):
        value = rng.choice((rng.choice(WIDE_EDGES), rng.getrandbits(64)))
    else:
        value = number(rng)
    return (u64 if kind in (PHI, RATE) else u32)(kind, value)


def whole(rng):
    """A law that what was said before seldom allows, with all that it asks for."""
    if rng.random() < 0.5:
        return u32(LAW, rng.choice((SBRM, DELAY))) + u32(FEEDBACK, 0)
    if rng.random() < 0.4:
        return u32(LAW, VQM) + u32(FEEDBACK, 0) + u64(RATE, 1000)
    low, high, goal, limit = sorted(rng.sample(range(2000), 4))
    return (u32(LAW, ALPHA_LAW) + u32(FEEDBACK, rng.choice((0, TWO_BIT))) +
            u32(LOW, low) + u32(HIGH, high) + u32(GOAL, goal) + u32(LIMIT, limit))


def good(rng):
    """Options of the right form, with any values."""
    if rng.random() < 0.02:
        return whole(rng)
    data = b""
    for make in rng.sample((
            lambda: u32(LAW, rng.choice((0, 0, 0, 1, 2, 3, 4, 5, 6, 7,
                                         number(rng)))),
            lambda: u32(FEEDBACK, rng.choice((0, 1, 2, 3, 4, number(rng)))),
            lambda: of_law(rng, rng.choice(tuple(RANGES_OF_LAWS))),
            lambda: of_law(rng, RATE), lambda: of_law(rng, RATE),
            lambda: u32(rng.choice((HIGH, LOW, GOAL)), rng.randrange(500)),
            lambda: of_law(rng, rng.choice((COUPLING, SMALL))),
            lambda: u32(LIMIT, number(rng)), lambda: u32(TARGET, number(rng)),
            lambda: u64(GAMMA, rng.choice((0, 1, GAMMA_ONE, GAMMA_ONE + 1,
                                           rng.getrandbits(49), number(rng),
                                           2**64 - 1))),
            lambda: bitfield(FLAGS, rng.choice((rng.getrandbits(5),
                                                rng.getrandbits(7))),
                             rng.choice((SETTABLE, rng.getrandbits(7)))),
            lambda: bitfield(FLAGS, number(rng), number(rng)),
            lambda: attr(RESET_STATS)), rng.randrange(8)):
        data += make()
    return data


def junk(rng):
    """Options of a wrong form."""
    data = b""
    for _ in range(rng.randrange(1, 6)):
        kind = rng.choice((*range(24), 0x7FFF, 0x8000 | rng.randrange(9),
                           0x4000 | rng.randrange(9), rng.getrandbits(16)))
        part = rng.choice((
            lambda: attr(kind, payload(rng)),
            lambda: attr(kind, good(rng)),
            lambda: attr(kind, payload(rng),
                         rng.choice((0, 1, 3, 4, 5, 8, 100, 65535))),
            lambda: good(rng)))()
        data += part[:rng.randrange(len(part) + 1)] if \
            rng.random() < 0.2 else part
    return data


class Settings:
    """What a queue has been told: a model of pkt_sbrm.h, apart from its code."""

    def __init__(self):
        self.feedback, self.chosen = 0, set()
        self.target, self.flags = 10, 2 | 8 | 16
        self.own = {RATE: 0, AVPKT: 1000}
        self.classic = {SMALL: 256}
        self.start_law(DELAY)

    def follow_law(self):
        """Limit and coupling are those of the law until they are chosen."""
        if COUPLING not in self.chosen:
            self.classic[COUPLING] = 1 << 19 if self.law == DELAY else 2 << 20
        if LIMIT not in self.chosen:
            self.limit = (10240 if self.law == DELAY else 1000) * (
                1514 if self.flags & 1 else 1)

    def follow_unit(self):
        """The thresholds of the law alpha start anew."""
        unit = 1514 if self.flags & 1 else 1
        self.own.update({HIGH: 50 * unit, LOW: 25 * unit, GOAL: 300 * unit})
        self.chosen -= {LOW}

    def start_law(self, law):
        """Another law starts with its own defaults."""
        self.law = law
        self.follow_law()
        self.own.update(DEFAULTS_OF_LAWS)
        self.follow_unit()
        self.gamma = OWN_GAMMA.get(law, 0)
        self.flags &= ~GAMMA_AUTO
        if not self.gamma and GAMMA in TAKES[law]:
            self.flags |= GAMMA_AUTO

    def settle(self):
        """Work out gamma where it is auto."""
        if not self.flags & GAMMA_AUTO:
            return
        price = int(math.log(100) * GAMMA_ONE)
        if PHI in TAKES[self.law]:
            price /= math.log1p((self.own[PHI] - PHI_ONE) / PHI_ONE)
        self.gamma = max(1, min(int(price / (self.limit - self.target)),
                                GAMMA_ONE))

    def take(self, data, new=False):
        """Apply options of the right form, to a new queue or to one that is there.
        False if they must be refused."""
        values = {}
        while data:
            length, kind = struct.unpack_from("=HH", data)
            part = data[4:length]
            data = data[(length + 3) & ~3:]
            # Each is looked at, the last one of a kind counts.
            if kind == FLAGS:
                value, selector = struct.unpack("=II", part)
                if (value | selector) & ~SETTABLE or value & ~selector:
                    return False
                values[kind] = value, selector
            elif kind != RESET_STATS:
                values[kind] = int.from_bytes(part, sys.byteorder)
            if kind in RANGES_OF_SBRM:
                least, most = RANGES_OF_SBRM[kind]
                if not least <= values[kind] <= most:
                    return False
            elif {LAW: values.get(LAW, 0) > ALPHA_LAW,
                  FEEDBACK: values.get(FEEDBACK, 0) > TWO_BIT,
                  LIMIT: not 1 <= values.get(LIMIT, 1) < 2**31,
                  TARGET: values.get(TARGET, 0) >= 2**31 - 1,
                  GAMMA: values.get(GAMMA, 0) > GAMMA_ONE}.get(kind):
                return False
        if new and LAW not in values and {TARGET, GAMMA} & set(values):
            self.start_law(SBRM)
        return self.apply(values)

    def apply(self, values):
        """The part of take() that needs them all."""
        law = values.get(LAW, self.law)
        if law != self.law:
            self.start_law(law)
        takes = TAKES[law]
        if (set(values) & ({TARGET, GAMMA} | set(RANGES_OF_LAWS))) - takes:
            return False
        self.feedback = values.get(FEEDBACK, self.feedback)
        if RATE in takes and not values.get(RATE, self.own[RATE]):
            return False
        if FLAGS in values:
            value, selector = values[FLAGS]
            was = self.flags
            self.flags = was & ~selector | value
            if (self.flags ^ was) & 1:
                self.chosen -= {LIMIT}
                self.follow_law()
                self.target = 15140 if self.flags & 1 else 10
                self.follow_unit()
        self.own.update((kind, value) for kind, value in values.items()
                        if kind in RANGES_OF_LAWS)
        self.chosen |= {LIMIT, COUPLING, LOW} & set(values)
        self.limit = values.get(LIMIT, self.limit)
        self.target = values.get(TARGET, self.target)
        if self.flags & 4 and (not self.flags & 2 or self.flags & 32):
            return False
        if self.flags & 64 and (not self.flags & 2 or self.flags & 36):
            return False
        if self.flags & 36 and set(values) & set(self.classic):
            return False
        self.classic.update((kind, value) for kind, value in values.items()
                            if kind in self.classic)
        if TARGET in takes and self.target >= self.limit:
            return False
        if not self.apply_alpha():
            return False
        if GAMMA in values:
            self.gamma = values[GAMMA]
            self.flags = self.flags & ~GAMMA_AUTO if self.gamma else \
                self.flags | GAMMA_AUTO
            if not self.gamma and law in OWN_GAMMA:
                return False
        self.settle()
        return True

    def apply_alpha(self):
        """Its thresholds, and how bits are told."""
        if self.law != ALPHA_LAW:
            return self.feedback != TWO_BIT
        if LOW not in self.chosen:
            self.own[LOW] = self.own[HIGH] // 2
        return self.feedback in (0, TWO_BIT) and \
            self.own[LOW] < self.own[HIGH] < self.own[GOAL] < self.limit

    def agrees(self, stats):
        """Assert that a dump shows these settings."""
        law, limit, target, gamma, flags = stats.settings
        assert (law, limit, target, flags, stats.feedback) == \
            (self.law, self.limit, self.target, self.flags, self.feedback), \
            (stats.settings, vars(self))
        assert gamma == self.gamma or self.flags & GAMMA_AUTO and \
            PHI in TAKES[law] and abs(gamma - self.gamma) <= \
            2 + self.gamma * 2**-20, (gamma, vars(self))
        # auto is rounded: the model goes on from what the kernel has.
        self.gamma = gamma
        assert self.classic == {CLASSIC[name][0]: value for name, value
                                in stats.classic.items()}, vars(self)
        shown = {OF_LAWS[name][0]: value
                 for name, value in stats.of_law.items()}
        assert shown == {kind: value for kind, value in self.own.items()
                         if kind in TAKES[law]}, (shown, vars(self))


def traffic(bench, rng):
    """Some packets of all kinds."""
    for _ in range(rng.randrange(4)):
        bench.send(rng.randrange(70, 1500), rng.randrange(4),
                   rng.choice((ipv4, ipv6, other)))


def fuzz_change(bench, rng):
    """Options of the right form: accepted or refused as the model says."""
    accepted = 0
    laws = collections.Counter()
    settings = Settings()
    for turn in range(MESSAGES):
        traffic(bench, rng)
        before = vars(settings)
        data = good(rng)
        after = copy.deepcopy(settings)
        wrong = not after.take(data)
        try:
            with bench.a:
                bench.rtnl.sbrm("va", data, QDISC, CHILD, flags=0)
        except Refused as answer:
            assert wrong, f"turn {turn}: {before} {data.hex()}: {answer}"
            assert answer.message, f"turn {turn}: no message: {data.hex()}"
        else:
            assert not wrong, f"turn {turn}: {before} took {data.hex()}"
            accepted += 1
            settings = after
        stats = bench.stats()
        settings.agrees(stats)
        laws[stats.law] += 1
        assert stats.qlen <= max(stats.limit, 1) or stats.flags & 1
        if turn % 50 == 0:
            bench.drain(rng.random())
            parent = bench.parent()
            stats = bench.stats()
            assert (stats.qlen, stats.backlog) == (parent.qlen, parent.backlog)
    note(f"{accepted} of {MESSAGES} changes accepted, laws {dict(laws)}")
    assert all(laws[law] > MESSAGES / 50 for law in range(ALPHA_LAW + 1))
    assert MESSAGES / 20 < accepted < MESSAGES


def usable(bench):
    """After all that, the queue still does what it should."""
    bench.drain(1000)
    with bench.a:
        bench.rtnl.sbrm("va", options(law=0, limit=1000, target=0, gamma=1,
                                      flags=10, reset=True, feedback=0),
                        QDISC, CHILD, flags=0)
    stats = bench.stats()
    assert stats.qlen == stats.backlog == bench.parent().qlen == 0
    assert bench.parent().backlog == 0
    model = Model(bench)
    model.run(100, 50)
    assert model.draws[-1] == (50, 1)
    model.agrees(after_reset=True)


def check_change():
    """Random options to a queue below HTB, under traffic."""
    rng = random.Random(guest_base.SETTINGS["seed"])
    bench = Bench()
    bench.htb(40000, 1514, None)
    fuzz_change(bench, rng)
    usable(bench)


def check_junk():
    """Malformed options: an error or success, never harm."""
    rng = random.Random(guest_base.SETTINGS["seed"] + 1)
    bench = Bench()
    bench.htb(40000, 1514, None)
    outcomes = {}
    for turn in range(MESSAGES):
        traffic(bench, rng)
        data = junk(rng)
        before = bench.stats().settings
        try:
            with bench.a:
                bench.rtnl.sbrm("va", data, QDISC, CHILD, flags=0)
            outcome = "accepted"
        except Refused as answer:
            outcome = answer.errno
            assert answer.message, f"turn {turn}: no message: {data.hex()}"
            assert bench.stats().settings == before, data.hex()
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        law, limit, target, gamma, flags = bench.stats().settings
        assert limit < 2**31 and (target < limit or
                                   law in (REM_PC1, VQM, DELAY, ALPHA_LAW))
        assert law <= ALPHA_LAW and 0 <= gamma <= GAMMA_ONE
        assert gamma or law in (VQM, DELAY, ALPHA_LAW)
        assert not flags & ~(SETTABLE | GAMMA_AUTO)
        assert flags & 2 or not flags & 68
        assert flags & 36 != 36 and not (flags & 64 and flags & 36)
        if turn % 100 == 0:
            bench.drain(0.2)
    note(f"outcomes {outcomes}")
    usable(bench)


def check_create():
    """Random options at creation and replacement, as root of a device."""
    rng = random.Random(guest_base.SETTINGS["seed"] + 2)
    bench = Bench()
    made = 0
    for _ in range(MESSAGES // 4):
        data = rng.choice((good, junk, lambda _: None))(rng)
        try:
            with bench.a:
                # NLM_F_CREATE | NLM_F_REPLACE, with one of two handles.
                bench.rtnl.sbrm("va", data, rng.choice((0x10, 0x20)) << 16,
                                flags=0x500)
            made += 1
        except Refused as answer:
            assert answer.errno in (22, 34, 95), answer
        traffic(bench, rng)
        if rng.random() < 0.1:
            try:
                with bench.a:
                    bench.rtnl.delete("va", 0)
            except Refused:
                pass
    note(f"{made} accepted")
    bench.drain()
    with bench.a:
        bench.rtnl.sbrm("va", options(limit=10, target=5), 0x300000, flags=0x500)
    bench.send()
    assert len(bench.drain()) == 1


WORDS = {"source": ("direct", "aimd", "vegas", "relative"),
         "estimator": ("log", "raw", "history", "four-bit", "explicit"),
         "rtt": ("last", "min")}
FRACTIONS = {"kappa": (1e-6, 10), "kappa_young": (0, 10),
             "history_gain": (1e-6, 1), "phi": (1.0001, 16)}
INTEGERS = {"young_ms": (1, 3600000), "kappa_window": (0, 1 << 24),
            "history": (1, 64), "slow_start": (0, 1), "loss_cut": (0, 2)}
RANGES = {"wtp": (1, 10**7), **FRACTIONS, **INTEGERS}
NAMES = (*WORDS, *RANGES)


def word(rng, name):
    """Something to write into a setting."""
    plain = (
        lambda: str(number(rng)), lambda: str(-number(rng)),
        lambda: f"{rng.random() * rng.choice((1e-7, 1e-5, 1, 10, 1e4)):.7f}",
        lambda: f"{rng.randrange(10)}.{rng.randrange(10**6):06}",
        lambda: f"{rng.random():.3f}",
        lambda: rng.choice(("direct", "rm", "raw", "min", "auto", "", ".",
                            "1e5", "0x10", "nan", "+1", "1.2.3", "\0", "\x80")),
        lambda: " ".join(str(number(rng)) for _ in range(rng.randrange(1, 17))),
        lambda: " ".join(str(rng.randrange(1, 10**6))
                         for _ in range(rng.randrange(1, 17))),
        lambda: "".join(chr(rng.randrange(1, 128))
                        for _ in range(rng.randrange(1, 14))))
    if name in WORDS and rng.random() < 0.5:
        return rng.choice(WORDS[name])
    if name in INTEGERS and rng.random() < 0.3:
        return str(rng.randrange(80))
    return rng.choice(plain)()


def c_integer(text):
    """As the kernel's own handlers read it: 0x10 and 010 are 16 and 8."""
    digits = text.lstrip("+-")
    if digits[:2] in ("0x", "0X"):
        return int(text, 16)
    return int(text, 8 if digits[0] == "0" else 10)


def means(name, text):
    """The list of numbers that an accepted text stands for, or its words."""
    text = text.split("\n")[0].split("\0")[0]
    if name in WORDS:
        return text.strip()
    if name == "wtp":
        return [c_integer(part) for part in text.split()]
    if name in INTEGERS:
        # The kernel's own handler takes the first and says so by a short count.
        return [c_integer(text.split()[0])]
    return [float(text)]


def check_sysctls():
    """Random writes under traffic: stored exactly, or refused and kept."""
    rng = random.Random(guest_base.SETTINGS["seed"] + 3)
    path = Path(aqm=options(limit=500, target=5, gamma=0.01))
    flows = [path.connect(priority=turn) for turn in range(3)]
    stored = 0
    for turn in range(WRITES):
        name = rng.choice(NAMES)
        text = word(rng, name)
        setting = "net.ipv4.tcp_sbrm." + name
        before = path.s.sysctl(setting)
        try:
            path.s.sysctl(setting, text.encode("latin-1"))
        except OSError as error:
            assert error.errno in (22, 34), error
            assert path.s.sysctl(setting) == before, f"{name}: {text!r}"
        else:
            after = path.s.sysctl(setting)
            if not text:
                assert after == before
                continue
            stored += 1
            want = means(name, text)
            if isinstance(want, str):
                assert after == want, f"{name}: {text!r} gave {after}"
            else:
                got = [float(part) for part in after.split()]
                low, high = RANGES[name]
                assert all(low <= one <= high for one in got), after
                assert got[:len(want)] == want, f"{name}: {text!r}: {after}"
        if turn % 100 == 0:
            # Source and estimator are those of new connections.
            flows[turn // 100 % 3] = path.connect(
                rng.choice(("sbrm", "cp", "rem", "rm")), priority=turn % 3)
        if turn % 25 == 0:
            pump(flows, 0.2)
            for flow in flows:
                last = info(flow)
                assert 1 <= last.cwnd <= 1 << 24 and last.pacing_rate
    note(f"{stored} of {WRITES} writes accepted")
    assert stored > WRITES / 10
    # It still works.
    path.s.sysctl("net.ipv4.tcp_sbrm.kappa", "0.1")
    path.s.sysctl("net.ipv4.tcp_sbrm.phi", "2.718282")
    path.s.sysctl("net.ipv4.tcp_sbrm.wtp", " ".join(["100"] * 16))
    before = info(flows[0]).bytes_acked
    pump(flows, 5)
    assert info(flows[0]).bytes_acked > before
    for flow in flows:
        settle(flow)


# As pkt_fq_rr.h has them: {attribute: (default, least, most)}.
FQ_RR_RANGES = {1: (10240, 1, 1 << 20), 2: (32 << 20, 1, 1 << 31),
                3: (4096, 1, 65536), 4: (0, 0, 2), 5: (1, 0, 2), 6: (0, 0, 1),
                7: (1514, 1, 1 << 20), 8: (0, 0, 2), 9: (0, 0, 1),
                FQ_RR_PERTURB: (0, 0, 86400), FQ_RR_RESERVE: (0, 0, 1 << 20)}
FQ_RR_DEFAULTS = {**{kind: one[0] for kind, one in FQ_RR_RANGES.items()},
                  FQ_RR_WEIGHTS: [], FQ_RR_FLAGS: 1}


def fq_rr_weights(rng):
    """(payload, is it good?, the list as it is dumped)"""
    values = [rng.choice((1, 2, 1024, rng.randrange(1, 1025),
                          rng.choice((0, 1025, number(rng)))
                          if rng.random() < 0.2 else 7))
              for _ in range(rng.choice((0, 1, 1, 2, 3, 16, 17)))]
    good_list = 0 < len(values) <= 16 and \
        all(1 <= value <= 1024 for value in values)
    return (struct.pack(f"={len(values)}I", *values), good_list,
            [] if values == [1] else values)


def fq_rr_good(rng, state):
    """Options of the right form: (payload, state after it or None)."""
    data, after = b"", dict(state)
    right = True
    for kind in rng.sample((*FQ_RR_RANGES, FQ_RR_WEIGHTS, FQ_RR_FLAGS),
                           rng.randrange(4)):
        if kind == FQ_RR_WEIGHTS:
            payload_, fine, after[kind] = fq_rr_weights(rng)
            data += attr(kind, payload_)
        elif kind == FQ_RR_FLAGS:
            value, selector = rng.choice(((0, 1), (1, 1), (1, 0), (0, 0),
                                          (2, 2), (1, 3)))
            fine = selector <= 1 and not value & ~selector
            after[kind] = after[kind] & ~selector | value
            data += bitfield(kind, value, selector)
        else:
            _, least, most = FQ_RR_RANGES[kind]
            value = rng.choice((least, most, rng.randint(least, most),
                                rng.randint(least, min(most, 2000)),
                                number(rng)))
            fine = least <= value <= most
            after[kind] = value
            data += u32(kind, value)
        right = right and fine
    # Owned room is within the limit, and not for a rule that never takes it back.
    right = right and after[FQ_RR_RESERVE] <= after[1] and \
        (after[5] or not after[FQ_RR_RESERVE])
    return data, after if right else None


def fq_rr_shown(words):
    """The state that a dump shows."""
    shown = {kind: struct.unpack("=I", words[kind])[0] for kind in FQ_RR_RANGES}
    shown[FQ_RR_WEIGHTS] = [
        value for value, in struct.iter_unpack(
            "=I", words.get(FQ_RR_WEIGHTS, b""))]
    shown[FQ_RR_FLAGS] = struct.unpack("=II", words[FQ_RR_FLAGS])[0]
    return shown


def check_fq_rr():
    """The same for fq_rr: random and malformed options, under traffic."""
    rng = random.Random(guest_base.SETTINGS["seed"] + 5)
    bench = Bench()
    bench.htb(400000, 1514, None, b"fq_rr\0")
    state = fq_rr_shown(bench.stats().words)
    assert state == FQ_RR_DEFAULTS
    outcomes = collections.Counter()
    for turn in range(MESSAGES // 2):
        for _ in range(3):
            bench.out.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY,
                                 rng.choice((0, 1, 5, 0x100003, 2**31 - 1)))
            traffic(bench, rng)
        if rng.random() < 0.7:
            data, after = fq_rr_good(rng, state)
        else:
            data, after = junk(rng), {}
        try:
            with bench.a:
                bench.rtnl.sbrm("va", data, QDISC, CHILD, flags=0,
                                name=b"fq_rr\0")
        except Refused as answer:
            assert not after, f"turn {turn}: {state}: {data.hex()}: {answer}"
            assert answer.message, f"turn {turn}: no message: {data.hex()}"
            outcomes["refused"] += 1
        else:
            assert after is not None, f"turn {turn}: took {data.hex()}"
            # What a malformed one changed is whatever was right in it.
            state = after or fq_rr_shown(bench.stats().words)
            outcomes["accepted"] += 1
        stats, parent = bench.stats(), bench.parent()
        assert fq_rr_shown(stats.words) == state, f"turn {turn}: {data.hex()}"
        for kind, (_, least, most) in FQ_RR_RANGES.items():
            assert least <= state[kind] <= most
        assert (stats.qlen, stats.backlog) == (parent.qlen, parent.backlog)
        assert stats.qlen <= state[1]
        assert stats.drops == (stats.x.last_drops + stats.x.longest_drops +
                               stats.x.trim_drops)
        if turn % 20 == 0:
            bench.drain(rng.random() / 10)
    note(f"{dict(outcomes)}, {stats.packets} packets, {stats.drops} dropped")
    assert min(outcomes.values()) > MESSAGES / 20
    bench.drain(1000)
    stats = bench.stats()
    assert stats.qlen == stats.backlog == stats.x.memory == stats.x.flows == 0
    with bench.a:
        assert all(one.qlen == 0
                   for one in bench.rtnl.classes("va").values())


class Injected:
    """Allocations of this thread that fail, by the kernel's fault injection."""

    def __init__(self):
        if not File("/sys/kernel/debug/failslab").exists():
            raise guest_base.Skip("only the debug flavour can make them fail")
        # Pages of programs, which are highmem, are none of ours.
        for knob in "failslab", "fail_page_alloc":
            for name, value in (("task-filter", "Y"), ("verbose", "0"),
                                ("times", "-1"), ("ignore-gfp-wait", "N")):
                File(f"/sys/kernel/debug/{knob}/{name}").write_text(value)
        File("/sys/kernel/debug/fail_page_alloc/min-order").write_text("0")
        # Opened before: opening could fail.
        task = f"/proc/self/task/{threading.get_native_id()}"
        self.some = os.open(f"{task}/make-it-fail", os.O_RDWR)
        self.nth = os.open(f"{task}/fail-nth", os.O_RDWR)

    def close(self):
        """No failures any more."""
        self.probability(0)
        os.close(self.some)
        os.close(self.nth)

    @staticmethod
    def probability(percent):
        """How many of the allocations in at_random() shall fail."""
        File("/sys/kernel/debug/failslab/probability").write_text(str(percent))

    def at_random(self, function):
        """1 if it failed for want of memory, or was refused."""
        os.pwrite(self.some, b"1", 0)
        try:
            function()
        except (OSError, Refused):
            return 1
        finally:
            os.pwrite(self.some, b"0", 0)
        return 0

    def each(self, function, after=lambda failed: None):
        """Do something again and again, and let another allocation fail each
        time until none is left: how many there are. after() follows each."""
        for number in itertools.count(1):
            failed = False
            os.pwrite(self.nth, b"%d" % number, 0)
            try:
                function()
            except (OSError, Refused):
                failed = True
            left = int(os.pread(self.nth, 20, 0))
            os.pwrite(self.nth, b"0", 0)
            after(failed)
            # No time passes while this runs, and no other task does: let the
            # kernel's worker unmap what vfree() has left. Each such page is a
            # mapping of the host's, which has no more than 65 530 for a process.
            time.sleep(0.001)
            if left:
                assert not failed, "refused, and not for want of memory"
                return number - 1


def new_namespace():
    """Be in another network namespace."""
    if guest_base.LIBC.unshare(guest_base.CLONE_NEWNET):
        raise OSError


def check_failing_allocations():
    """Queues and namespaces while allocations fail: errors, no leaks."""
    injected = Injected()
    rng = random.Random(guest_base.SETTINGS["seed"] + 4)
    bench = Bench()
    failures = 0
    injected.probability(5)
    with bench.a:
        device = socket.if_nametoindex("va")
    creates = (attr(1, b"sbrm\0") + attr(2 | 0x8000, options(limit=100)),
               attr(1, b"fq_rr\0") + attr(2 | 0x8000, fq_rr_options(
                   limit=100, service=WFQ, longest=1)))
    outside = os.open("/proc/self/ns/net", os.O_RDONLY)
    try:
        for _ in range(400):
            failures += injected.at_random(lambda: bench.rtnl.qdisc(
                36, 0x500, device, 0x100000, 0xFFFFFFFF, rng.choice(creates)))
            if rng.random() < 0.3:
                failures += injected.at_random(lambda: bench.rtnl.qdisc(
                    37, 0, device, 0, 0xFFFFFFFF, b""))
            # An answer may be left over from a failure.
            bench.rtnl.socket.close()
            with bench.a:
                bench.rtnl = Rtnl()
            bench.send(100, NOT_ECT)
        # Namespaces whose settings cannot be allocated.
        for _ in range(100):
            failures += injected.at_random(new_namespace)
    finally:
        Namespace.move(outside)
        os.close(outside)
        injected.close()
    note(f"{failures} operations failed")
    assert failures


# What asks for different memory: {name: (kind, options, other options)}.
TABLES = {
    "sbrm": (b"sbrm\0", options(limit=100, target=0, gamma=1),
             options(limit=50, target=0, gamma=1)),
    "rem": (b"sbrm\0", options(law=3, limit=100, rate=10**6, gamma=0.1),
            options(law=3, limit=50, rate=10**6, gamma=0.1)),
    "rr": (b"fq_rr\0", fq_rr_options(limit=100, flows=16),
           fq_rr_options(limit=50, flows=17)),
    "wfq": (b"fq_rr\0",
            fq_rr_options(limit=100, flows=16, service=WFQ, longest=1),
            fq_rr_options(limit=50, flows=17)),
    "large": (b"fq_rr\0",
              fq_rr_options(limit=1 << 20, flows=65536, service=WFQ,
                            longest=1),
              fq_rr_options(limit=1 << 20, flows=65535)),
}


def settings(stats):
    """What a dump says that a queue has been told."""
    return stats.settings if stats.kind == "sbrm" else stats.words


def check_each_allocation():
    """Every single allocation of init, change, dump and enqueue fails once: an
    error, the queue as it was, and nothing lost or leaked."""
    injected = Injected()
    bench = Bench()
    bench.htb(40000, 1514, options(limit=100))
    virtio = bench.virtio()
    found = {}
    spare = 0x700000

    def leaf():
        """The queue that is there, and that its parent agrees."""
        # An answer may be left over from a failure, or lost.
        bench.rtnl.socket.close()
        bench.rtnl = Rtnl()
        there = bench.rtnl.dump("va")
        parent = there.pop(PARENT)
        (stats,) = there.values()
        assert (stats.qlen, stats.backlog) == (parent.qlen, parent.backlog)
        return stats

    def another(kind, data, handle=QDISC):
        bench.rtnl.sbrm("va", data, handle, CHILD, 0x500, kind)

    def init(name, kind, data):
        def after(failed):
            stats = leaf()
            # If only the answer fails, it is there all the same.
            assert stats.handle == QDISC or failed
            if stats.handle == QDISC:
                another(b"sbrm\0", None, spare)

        another(b"sbrm\0", None, spare)
        found[f"{name}: init"] = injected.each(
            lambda: another(kind, data), after)
        another(kind, data)

    def change(name, kind, data, later):
        def tell(words):
            bench.rtnl.sbrm("va", words, QDISC, CHILD, 0, kind)

        def after(failed):
            now = settings(leaf())
            assert now == new or failed and now == was, (was, now)
            tell(data)

        tell(later)
        new = settings(leaf())
        tell(data)
        was = settings(leaf())
        found[f"{name}: change"] = injected.each(lambda: tell(later), after)

    outside = os.open("/proc/self/ns/net", os.O_RDONLY)
    try:
        Namespace.move(bench.a.file)
        for name, (kind, data, later) in TABLES.items():
            init(name, kind, data)
            for _ in range(20):
                bench.send(300)
            change(name, kind, data, later)
            packets = leaf().qlen
            found[f"{name}: enqueue"] = injected.each(bench.send)
            # Split, or counted.
            found[f"{name}: GSO"] = injected.each(
                lambda: virtio.send(super_packet(3)))
            assert leaf().qlen >= packets + 4
            found[f"{name}: dump"] = injected.each(
                lambda: bench.rtnl.dump("va"), lambda failed: leaf())
            if kind == b"fq_rr\0":
                found[f"{name}: classes"] = injected.each(
                    lambda: bench.rtnl.classes("va"), lambda failed: leaf())
            bench.drain(1000)
            assert leaf().qlen == 0
            # Now each packet leaves in the call that sends it, and is marked.
            found[f"{name}: pass"] = injected.each(
                bench.send, lambda failed: bench.drain(1))
        found["namespace"] = injected.each(new_namespace)
    finally:
        Namespace.move(outside)
        os.close(outside)
        injected.close()
    note(", ".join(f"{name} {number}" for name, number in found.items()))
    assert all(number > 0 for number in found.values())


if __name__ == "__main__":
    guest_base.main(globals())
