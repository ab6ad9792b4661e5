# SPDX-License-Identifier: GPL-2.0
"""The price laws in floating point, stepped interval by interval.

Nothing here is in closed form, so that what the kernel does over idle times is
compared with what the papers write. Rates in bytes/s, times in s.
"""

import collections
import copy
import math
import select

from rtnl import (ALPHA_ONE, BYTES, GAMMA_ONE, PHI_ONE, REM_PC3,
                  VQM, options)


class Rem:
    """rem-pc1 and rem-pc3, CP05 (5.2.3) and (5.2.5), in base e."""

    def __init__(self, start_s, settings):
        self.time = start_s
        self.price = self.input = self.arrived = 0.0
        self.steps = 0
        self.moved = 0.0
        self.set(settings)

    def set(self, settings):
        """Take the options from a dump: as the kernel rounded them."""
        own = settings.of_law
        unit = 1 if settings.flags & BYTES else own["avpkt"]
        if self.steps:
            self.input *= (self.unit / unit) * (own["interval"] / 1e6 /
                                                self.interval)
        self.interval = own["interval"] / 1e6
        self.unit = unit
        self.gamma = (settings.gamma / GAMMA_ONE *
                      math.log1p((own["phi"] - PHI_ONE) / PHI_ONE))
        self.alpha = own["alpha"] / ALPHA_ONE if settings.law == REM_PC3 else 0
        self.target = settings.target
        self.delta = own["delta"] / PHI_ONE
        if own["delta"] == 2**32 - 1:
            self.delta = 1.0
        self.rate = own["rate"]

    def advance(self, now_s, backlog):
        """Let all intervals end that have ended."""
        while self.time + self.interval <= now_s:
            self.time += self.interval
            self.input += self.delta * (self.arrived / self.unit - self.input)
            self.arrived = 0.0
            step = self.gamma * (self.alpha * (backlog - self.target) +
                                 self.input -
                                 self.rate * self.interval / self.unit)
            self.price = min(max(self.price + step, 0.0), 8192.0)
            self.moved += abs(step)
            self.steps += 1

    def arrival(self, size):
        """A packet arrives, after advance()."""
        self.arrived += size

    def tolerance(self):
        """How far fixed point may be off: ln(phi), gamma and the units."""
        return 4e-7 * self.moved + (self.steps + 2) * 2**-40 + 2**-31 + \
            self.gamma * (self.steps + 16) * 3 / self.delta * 2**-24

    def verify(self, x):
        """Compare statistics of a dump at the time of the last advance()."""
        assert abs(x.price / PHI_ONE - self.price) <= self.tolerance(), \
            (x.price / PHI_ONE, self.price, self.tolerance(), self.steps)
        bytes_per_s = self.input * self.unit / self.interval
        assert abs(x.input - bytes_per_s) <= 2 + 1e-6 * bytes_per_s, \
            (x.input, bytes_per_s)
        assert abs(x.prob / 2**32 + math.expm1(-self.price)) <= \
            self.tolerance() + 2**-28

    def probability(self):
        """That of a mark."""
        return -math.expm1(-self.price)


class Vqm:
    """The virtual queue of CP05 5.1.1."""

    def __init__(self, start_s, settings):
        self.time = start_s
        self.backlog = 0.0
        self.marking = False
        self.set(settings)

    def set(self, settings):
        """Take the options from a dump."""
        own = settings.of_law
        scale = own["scale"] / PHI_ONE if own["scale"] < 2**32 - 1 else 1
        self.rate = max(own["rate"] * scale, 1)
        self.room = settings.limit * scale * \
            (1 if settings.flags & BYTES else own["avpkt"])
        self.backlog = min(self.backlog, self.room)

    def advance(self, now_s, _backlog):
        """Serve."""
        self.backlog -= (now_s - self.time) * self.rate
        self.time = now_s
        if self.backlog <= 0:
            self.backlog, self.marking = 0.0, False

    def arrival(self, size):
        """Enter, or overflow."""
        if self.backlog + size > self.room:
            self.marking = True
        else:
            self.backlog += size

    @property
    def price(self):
        """1 or 0."""
        return float(self.marking)

    def tolerance(self):
        """It is one or the other."""
        return 0.0

    def verify(self, x):
        """Compare statistics of a dump, some us late."""
        assert x.price == self.marking << 32, (x, vars(self))
        assert x.prob == (2**32 - 1 if self.marking else 0)
        assert abs(x.virtual_backlog - self.backlog) <= 2 + 2e-5 * self.rate, \
            (x.virtual_backlog, self.backlog)

    def probability(self):
        """Certain, or none."""
        return self.price


class Alpha:
    """The two bits of ALPHA II.A: a cycle ends as CN goes."""

    def __init__(self, _start_s, settings):
        self.congested = self.beyond = False
        self.longest = self.cycle_max = self.cycles = self.cycles_beyond = 0
        self.set(settings)

    def set(self, settings):
        """Take the options from a dump."""
        self.high, self.low, self.goal = (
            settings.of_law[name] for name in ("high", "low", "goal"))

    def advance(self, _now_s, backlog):
        """A packet leaves, or finds nothing: look at the backlog."""
        if not self.congested and backlog > self.high:
            self.congested, self.beyond, self.longest = True, False, 0
        if not self.congested:
            return
        if backlog <= self.low:
            self.congested = self.beyond = False
            self.cycles += 1
            self.cycle_max = self.longest
            return
        self.longest = max(self.longest, backlog)
        if backlog > self.goal and not self.beyond:
            self.beyond = True
            self.cycles_beyond += 1

    @property
    def bits(self):
        """What the identification of a packet says."""
        return self.congested | self.beyond << 1

    def verify(self, x):
        """Compare statistics of a dump."""
        assert (x.bits, x.cycles, x.beyond, x.cycle_max) == \
            (self.bits, self.cycles, self.cycles_beyond, self.cycle_max), \
            (x, vars(self))


def model_of(start_s, settings):
    """The model for a dump."""
    return (Vqm if settings.law == VQM else Rem)(start_s, settings)


class Scene:
    """A queue below HTB and the model of its law, in the same virtual time.

    Nothing happens at the end of an interval: packets are sent at the middle of one of
    50 ms, and at HOLD_BPS they take whole intervals of 50 ms or more to leave. Of
    shorter intervals that may be just after the end, see until().

    The kernel does not look at the clock for a packet that finds others, unless
    the one before has not been told to the law either: for the law that packet
    arrives, and joins the backlog, when the clock is next read.

    So the order matters in which packets come and leave: none is sent while
    another one is about to leave, which the tokens of HTB tell.

    late: (its size, the backlog that it found), or None.
    """

    TICK_S = 0.05
    # More than what commands take.
    GUARD_S = 0.001

    def __init__(self, bench, clock, make, rate_bps, burst):
        self.bench, self.clock, self.make = bench, clock, make
        self.byte_s = 8 / rate_bps
        self.burst_s = self.credit_s = burst * self.byte_s
        self.charged = clock()
        self.fifo = collections.deque()
        self.backlog = 0
        self.draws = []         # (probability, frame) of each departure
        self.lost = 0
        self.restart()

    def restart(self):
        """The law starts now, for all that the model knows."""
        self.settings = self.bench.stats()
        self.law = model_of(self.clock(), self.settings)
        self.late = None
        self.start = self.clock()

    def catch_up(self, law):
        """`law` sees the time, and what it has not been told of."""
        if self.late:
            law.advance(self.clock(), self.late[1])
            law.arrival(self.late[0])
        else:
            law.advance(self.clock(), self.backlog)

    def read_clock(self):
        """The kernel reads the clock just now."""
        self.catch_up(self.law)
        self.late = None

    def until(self, when_s):
        """Let time pass, and take in what leaves.

        It ends 50 us after that time at most; with poll() it was up to 1 ms. The kernel's
        intervals begin some 100 ns before those of the model: where all times are a
        little after the end of an interval, both see the same ones.
        """
        while True:
            left = when_s - self.clock()
            if left > 0:
                select.select([self.bench.into], [], [], left)
            frame = self.bench.receive()
            if frame is None:
                if self.clock() >= when_s:
                    break
                continue
            self.left(frame)

    def size(self, size):
        """A packet in units of the backlog."""
        return size if self.settings.flags & BYTES else 1

    def left(self, frame):
        """A packet left just now."""
        self.read_clock()
        number, size = self.fifo.popleft()
        self.credit_s = self.credit() - size * self.byte_s
        self.charged = self.clock()
        assert number == frame.number, (number, frame.number)
        self.draws.append((self.law.probability(), self.law.price,
                           self.law.tolerance(), frame))
        self.backlog -= self.size(size)

    def credit(self):
        """Tokens of HTB now, s: where they are none, nothing leaves."""
        return min(self.credit_s + self.clock() - self.charged, self.burst_s)

    def send(self, size):
        """A packet arrives."""
        while self.fifo and self.credit() > -self.GUARD_S:
            frame = self.bench.receive(3 * self.GUARD_S)
            assert frame is not None, "it should have left"
            self.left(frame)
        if self.fifo and not self.late:
            self.late = size, self.backlog
        else:
            self.read_clock()
            self.law.arrival(size)
        number = self.bench.send(size, 2, self.make)
        units = self.size(size)
        if self.fifo and units > self.settings.limit - min(
                self.backlog, self.settings.limit):
            self.lost += 1
        else:
            self.fifo.append((number, size))
            self.backlog += units
        # It may leave at once.
        frame = self.bench.receive(0.002)
        if frame:
            self.left(frame)

    def tick(self, sizes):
        """One interval of 50 ms: send at its middle, compare at its end."""
        passed = self.clock() - self.start
        middle = (math.floor(passed / self.TICK_S) + 1.5) * self.TICK_S
        self.until(self.start + middle)
        for size in sizes:
            self.send(size)
        self.until(self.start + middle + 0.3 * self.TICK_S)
        self.verify()

    def verify(self):
        """The dump agrees with the model."""
        stats = self.bench.stats()
        assert stats.qlen == len(self.fifo), (stats.qlen, len(self.fifo))
        # What the next packet will find: a dump changes nothing.
        law = copy.copy(self.law)
        self.catch_up(law)
        law.verify(stats.x)
        assert stats.x.full_drops == self.lost

    def change(self, **words):
        """Other options, from now on."""
        self.read_clock()
        with self.bench.a:
            self.bench.rtnl.sbrm("va", options(**{"law": None, **words}), 0x100000,
                                 self.bench.where, flags=0)
        self.settings = self.bench.stats()
        self.law.set(self.settings)


