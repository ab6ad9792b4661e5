# SPDX-License-Identifier: GPL-2.0
"""Random options of sbrm and fq_rr, right and wrong, and what a queue makes of them:
models of pkt_sbrm.h and pkt_fq_rr.h, apart from the kernel's code."""

import math
import struct
import sys

from rtnl import (ALPHA, ALPHA_LAW, AVPKT, CLASSIC, COUPLING, DELAY,
                  DELAY_TARGET, DELTA, FEEDBACK, FLAGS, FQ_RR_FLAGS,
                  FQ_RR_PERTURB, FQ_RR_RESERVE, FQ_RR_WEIGHTS, GAMMA,
                  GAMMA_AUTO, GAMMA_ONE, GOAL, HIGH, INTERVAL, LAW, LIMIT, LOW,
                  OF_LAWS, PHI, PHI_ONE, RATE, RESET_STATS, SBRM, SCALE,
                  SETTABLE, SMALL, SPARSE, TARGET, TWO_BIT, attr, bitfield,
                  u32, u64)

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


def all_options(rng):
    """Any law, with all that it asks for: what was said before seldom allows it."""
    law = rng.randrange(ALPHA_LAW + 1)
    two_bit = law == ALPHA_LAW and rng.random() < 0.5
    data = u32(LAW, law) + u32(FEEDBACK, TWO_BIT if two_bit else 0)
    low, high, goal, limit = sorted(rng.sample(range(2000), 4))
    data += u32(LIMIT, limit)
    for kind, value in ((TARGET, low), (LOW, low), (HIGH, high), (GOAL, goal)):
        if kind in TAKES[law]:
            data += u32(kind, value)
    if RATE in TAKES[law]:
        data += u64(RATE, 1000)
    return data


def sbrm_options_of(rng):
    """Options of the right form, with any values."""
    if rng.random() < 0.02:
        return all_options(rng)
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
            lambda: attr(kind, sbrm_options_of(rng)),
            lambda: attr(kind, payload(rng),
                         rng.choice((0, 1, 3, 4, 5, 8, 100, 65535))),
            lambda: sbrm_options_of(rng)))()
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
        self.flags &= ~(GAMMA_AUTO | SPARSE)
        if law == DELAY:
            self.flags |= SPARSE
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


def fq_rr_options_of(rng, state):
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
