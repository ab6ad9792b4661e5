# SPDX-License-Identifier: GPL-2.0
"""The order of the queue: packets of sparse flows leave before those of others."""

import collections
import random
import struct
import time

import guest_base
from bench import DEFAULTS, ECT0, HOLD_BPS, NOT_ECT, Bench, ipv4, super_packet
from guest_any_rate import Link
from guest_base import SETTINGS, note
from rtnl import BYTES, DELAY, PRICE_DROP, SPARSE, SPLIT_GSO, options

FRAME = 1514
# As sbrm_sparse.c has them.
BURST, FULL, CREDIT = 30 * FRAME, 65535, 64 * FRAME
FEW, SPARE = 2 * FRAME, 16 * FRAME
# No bucket holds anything after this time: 44 units of 80 ms (HZ is 100 here).
EMPTY_S = 4


def port(number):
    """A maker of frames with another source port."""
    def make(count, size, tos):
        frame = ipv4(count, size, tos)
        return frame[:34] + struct.pack(">H", number) + frame[36:]
    return make


class Order:
    """A model of the two parts, and of the packets in them.

    Hashes are not known to it: with its few flows two of them hardly ever have one
    bucket. All that is sent between two calls of rested() is sent at one time.
    """

    def __init__(self, bench):
        self.bench = bench
        self.first, self.second = collections.deque(), collections.deque()
        self.sparse, self.credit, self.overtook = True, CREDIT, 0
        # bulk: the number of the last packet of a flow that was not sparse.
        self.joined = self.left = self.bulk = 0
        self.used, self.last = {}, collections.defaultdict(int)

    def rested(self):
        """So much time has passed that each flow is sparse."""
        self.used = {}

    def change(self, sparse):
        """Switch the option."""
        self.bench.change(flags=SPARSE * sparse, selector=SPARSE)
        if sparse and not self.sparse:
            self.last = collections.defaultdict(lambda joined=self.joined: joined)
            self.bulk = self.joined
        self.sparse = sparse

    def is_sparse(self, flow, size):
        """Does a packet join the first part?"""
        if not self.sparse:
            return False
        used = self.used[flow] = min(self.used.get(flow, 0) + size, FULL)
        if used <= BURST and self.left >= self.last[flow]:
            if not self.second:
                return True
            if self.bulk > self.left and self.credit >= size + (used > FEW) * SPARE:
                self.credit -= size
                return True
        self.last[flow] = self.joined + 1
        if used > BURST:
            self.bulk = self.joined + 1
        return False

    def send(self, flow, size):
        """Send a frame of a flow. The first one of all leaves at once."""
        sparse = self.is_sparse(flow, size)
        number = self.bench.send(size, ECT0, port(6000 + flow))
        if sparse:
            self.overtook += bool(self.second)
            self.first.append((number, flow, size))
        else:
            self.joined += 1
            self.second.append((number, flow, size))
        while (frame := self.bench.receive(0.001 if number < 4 else 0)) is not None:
            self.arrived(frame)

    def leave(self):
        """Take the head out: (number, flow)."""
        if self.first:
            return self.first.popleft()[:2]
        number, flow, size = self.second.popleft()
        self.left += 1
        self.credit = min(self.credit + size, CREDIT)
        return number, flow

    def arrived(self, frame):
        """A frame that comes out must be the head; its flow."""
        number, flow = self.leave()
        assert frame.number == number, (frame.number, number)
        return flow

    def step(self):
        """Wait for the next departure; its flow."""
        frame = self.bench.receive(100)
        assert frame is not None, "nothing comes out"
        return self.arrived(frame)

    def agrees(self):
        """Assert that the counters of the kernel are those of the model."""
        stats = self.bench.stats()
        waiting = len(self.first) + len(self.second)
        assert stats.qlen == self.bench.parent().qlen == waiting, (stats.qlen, waiting)
        size = sum(entry[2] for entry in (*self.first, *self.second))
        assert stats.backlog == size, (stats.backlog, size)
        assert stats.x.sparse == self.overtook, (stats.x.sparse, self.overtook)


def filled(parent, **words):
    """A bench with the law delay below a class of one packet a second."""
    bench = Bench()
    getattr(bench, parent)(HOLD_BPS, FRAME, options(law=DELAY, **words))
    return bench


def check_order():
    """Random flows, sizes, rests, switches and limits: each packet leaves when the
    model says so, and none before an earlier one of its flow."""
    rng = random.Random(SETTINGS["seed"])
    order = Order(filled("htb"))
    last, overtakes = collections.defaultdict(int), 0
    for turn in range(120):
        for _ in range(rng.randrange(150)):
            order.send(rng.choice((0, 0, 0, 0, 0, 1, 2, 3, 4, 5)),
                       rng.choice((60, 300, 1000, FRAME)))
        if rng.random() < 0.2:
            order.change(rng.random() < 0.8)
        if rng.random() < 0.2:
            waiting = len(order.first) + len(order.second)
            limit = rng.randrange(1, 200)
            order.bench.change(limit=limit)
            for _ in range(max(waiting - limit, 0)):
                order.leave()
            order.bench.change(limit=10240)
        order.agrees()
        end = time.monotonic() + EMPTY_S
        # A queue that never becomes empty would hold all flows back for good.
        for _ in range(rng.randrange(200) if turn % 3 else 1000):
            if not order.first and not order.second:
                break
            number = (order.first or order.second)[0][0]
            flow = order.step()
            assert number > last[flow], "reordered"
            overtakes += number < max(last.values())
            last[flow] = number
        while time.monotonic() < end and (order.first or order.second):
            order.step()
        time.sleep(max(end - time.monotonic(), 0))
        order.rested()
    note(f"{order.overtook} packets joined before others, {overtakes} left late")
    assert order.overtook > 100 and overtakes > 100


def check_peek():
    """Below a TBF, which takes a packet out and holds it: one that is sparse joins
    before all others but that one."""
    bench = filled("tbf")
    numbers = [bench.send(FRAME, ECT0, port(6000)) for _ in range(60)]
    late = [bench.send(FRAME, ECT0, port(6001)) for _ in range(3)]
    arrived = []
    while len(arrived) < 63:
        frame = bench.receive(100)
        assert frame is not None, arrived
        arrived.append(frame.number)
    at = arrived.index(late[0])
    # The first ones of the large flow were sparse, too.
    assert arrived == [*numbers[:at], *late, *numbers[at:]], arrived
    assert 30 <= at <= 33, at


def check_link_down():
    """A link that goes down takes both parts with it: what comes then finds an empty
    queue, and leaves."""
    bench = filled("htb")
    for flow in (6000, 6001):
        for _ in range(40):
            bench.send(FRAME, ECT0, port(flow))
    for flow in range(6002, 6010):
        bench.send(FRAME, ECT0, port(flow))
    assert bench.stats().x.sparse
    for way in ("down", "up"):
        bench.a.run(f"ip link set va {way}")
    time.sleep(2)
    bench.drain()
    assert bench.stats().qlen == 0
    numbers = [bench.send(FRAME, ECT0, port(6020 + flow)) for flow in range(5)]
    arrived = []
    while len(arrived) < 5:
        frame = bench.receive(100)
        assert frame is not None, arrived
        arrived.append(frame.number)
    assert arrived == numbers, (arrived, numbers)
    assert bench.stats().qlen == bench.stats().backlog == 0


def check_new_flows():
    """A flood in which each packet is a new flow takes half of the link from a flow
    that waits, and no more; without the option it takes nothing from it."""
    for sparse in (True, False):
        bench = filled("htb", flags=DEFAULTS | SPARSE * sparse, limit=10240)
        of_large, number, out = set(), 0, []
        for _ in range(600):
            of_large.add(bench.send(FRAME, ECT0, port(6000)))
        # Those of its first burst.
        for _ in range(20):
            assert bench.receive(100) is not None
        for _ in range(500):
            for _ in range(2):
                number += 1
                bench.send(FRAME, ECT0, port(10000 + number))
            frame = bench.receive(100)
            assert frame is not None
            out.append(frame.number in of_large)
        # 64 frames overtake at first.
        share = sum(out[150:]) / len(out[150:])
        note(f"sparse {sparse}: the flow that waits has {share:.3f}")
        assert 0.47 < share < 0.53 if sparse else share == 1, share
        guest_base.cleanup()


def check_debt_ends():
    """The last packet of a queue leaves whatever its price, and the next one of its
    flow is dropped for it: if it comes within a second, not after a rest."""
    bench = Bench()
    # In bytes, so that one packet has a price of 1514.
    bench.htb(10**6, FRAME, options(
        limit=10**6, target=0, gamma=1, flags=DEFAULTS | SPARSE | PRICE_DROP | BYTES))
    for pause_s, dropped in ((0, True), (0.5, True), (1.5, False), (60, False)):
        # Whether this one pays or not, the one after it does not.
        bench.send(FRAME, NOT_ECT, port(6000))
        bench.drain(1.2)
        number = bench.send(FRAME, NOT_ECT, port(6000))
        assert [one.number for one in bench.drain(0.02)] == [number]
        time.sleep(pause_s)
        before = bench.stats().x.price_drops
        number = bench.send(FRAME, NOT_ECT, port(6000))
        arrived = [one.number for one in bench.drain(0.02)]
        drops = bench.stats().x.price_drops - before
        note(f"after {pause_s} s: {drops} dropped")
        assert (arrived, drops) == (([], 1) if dropped else ([number], 0)), pause_s


def check_small_packets():
    """A full queue has room for as many packets of up to 128 bytes, and drops larger
    ones and what is above that; without the option it drops all."""
    for sparse in (True, False):
        bench = filled("htb", flags=DEFAULTS | SPARSE * sparse, limit=40)
        # One leaves at once, and the class may hold the next.
        while not bench.stats().x.full_drops:
            bench.send(FRAME, ECT0, port(6000))
        full = bench.stats().qlen
        assert full in (40, 41), full
        for number, (size, fits) in enumerate(((128, 39), (129, 39), (128, 40), (128, 40)),
                                              6001):
            for _ in range(39 if number == 6001 else 1):
                bench.send(size, ECT0, port(number))
            waiting = bench.stats().qlen - full
            note(f"sparse {sparse}: {waiting} small ones")
            assert waiting == (fits if sparse else 0), (number, waiting)
        # They stay while the limit does.
        bench.change(delay=5000)
        assert bench.stats().qlen == full + waiting
        bench.change(limit=39)
        assert bench.stats().qlen <= 40
        guest_base.cleanup()


def check_super_packets():
    """A super-packet that is not split counts with all its bytes: one of 40 kB is
    more than a flow may send and be sparse."""
    bench = filled("htb", flags=DEFAULTS & ~SPLIT_GSO | SPARSE)
    raw = bench.virtio()
    for _ in range(4):
        raw.send(super_packet(40))
    # Two of them: one may have the bucket of the large packets.
    late = [bench.send(FRAME, ECT0, port(flow)) for flow in (6001, 6002)]
    arrived = []
    while len(arrived) < 6:
        frame = bench.receive(1000)
        assert frame is not None, arrived
        arrived.append(frame.size == FRAME and frame.number in late)
    # One leaves at once, and the class may hold the next.
    note(f"the first sparse packet is number {arrived.index(True) + 1} of 6")
    assert arrived.index(True) in (1, 2), arrived


def questions_ms(words):
    """How long it takes to connect and send 100 bytes beside four transfers that fill
    1 Mb/s, with a round trip of 20 ms: (median, longest of 40), ms."""
    link = Link(10**6, 20, 4, 30)
    link.path.r1.run(f"tc qdisc change dev right parent 1:1 sbrm {words}")
    for number in range(4):
        link.add(start=f"{0.1 * number / 4:.4f}")
    for number in range(40):
        link.add(start=f"{10 + 0.487 * number:.4f}", bytes=100)
    link.go()
    took = sorted(1e3 * (flow["transfers"][0]["end_s"] - flow["transfers"][0]["start_s"])
                  for flow in link.report[4:])
    late = link.path.d.tcp_ext()["TCPOFOQueue"]
    assert not late, f"{late} packets came out of order"
    note(f"{words}: median {took[20]:.1f} ms, longest {took[-1]:.1f} ms")
    guest_base.cleanup()
    return took[20], took[-1]


def check_questions():
    """A question beside long transfers waits for the packet that is being sent, and
    not for those that are queued: two round trips, and 12 ms for each."""
    median, longest = questions_ms("sparse")
    assert median < 2 * (20 + 12) and longest < 2 * (20 + 12 + 2), (median, longest)
    assert questions_ms("no-sparse")[0] > median + 15


if __name__ == "__main__":
    guest_base.main(globals())
