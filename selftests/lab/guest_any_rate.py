# SPDX-License-Identifier: GPL-2.0
"""The law delay of sch_sbrm with the source relative of tcp_sbrm: one set of
constants for every rate of the link, every round trip and every number of flows.

They are what the modules come with. Nothing is set but the limit of the queue and
the buffers of the hosts, so that both hold what the path does, and w where flows are
to differ. The bounds are the same in all cells.
"""

import json
import math
import time
from collections import namedtuple
from pathlib import Path

import guest_base
from guest_base import near, note, start
from rtnl import DELAY, PRICE, options
from tcp_bench import PACKET, TRAFFIC, info, pump
from tcp_bench import Path as TcpPath

SYSCTL = "net.ipv4.tcp_sbrm."
# W and TARGET_MS: the defaults.
PORT, PAYLOAD, W, TARGET_MS = 5000, 1448, 25, 3
# A window of flows that follow each other: what their shares are.
STEP_MS = 100
# After this all have left the start behind them.
SETTLED_S = 3
LOOK_S = 0.01

Look = namedtuple("Look", "time bytes delay_ms drops service_bps")
Cell = namedtuple("Cell", "mbit rtt_ms flows utilisation mean_ms p99_ms start_ms "
                  "late_drops worst")


class Link:
    """A link and flows of sbrm over it, s -> d; rates in bit/s."""

    def __init__(self, rate_bps, rtt_ms, flows, seconds, wtps=(W,), most_bps=None,
                 limit=None, rtts_ms=(), feedback=None, **words):
        """wtps: w of SO_PRIORITY 0, 1, ..; most_bps: what the link is changed
        to, if that is more; limit: of the queue, packets; rtts_ms: round trips of
        flows to port PORT, PORT + 1, .., the longest is rtt_ms; feedback: of the
        queue; words: of the path."""
        self.rate_bps, self.rtt_ms, self.seconds = rate_bps, rtt_ms, seconds
        most_bps = max(rate_bps, most_bps or 0)
        limit = limit or max(1000, round(
            2 * most_bps * rtt_ms / 8e3 / PACKET))
        self.path = TcpPath(rate_bps=rate_bps, rtt_ms=0 if rtts_ms else rtt_ms,
                            shipped=True, aqm=options(law=None, limit=limit,
                                                       feedback=feedback),
                            **words)
        assert self.path.stats().law == DELAY
        s, d = self.path.s, self.path.d
        if wtps != (W,):
            s.sysctl(SYSCTL + "wtp", " ".join(
                str(wtps[index % len(wtps)]) for index in range(16)))
        # What is in flight, what waits, and what the program writes at a time.
        room = round(max(200e3, 6 * most_bps * (rtt_ms + 10) / 8e3 / flows))
        s.sysctl("net.ipv4.tcp_wmem", f"4096 {min(room, 400000)} {4 * room}")
        d.sysctl("net.ipv4.tcp_rmem", f"4096 {2 * room} {8 * room}")
        self.flows, self.looks, self.report = [], [], []
        self.lengthen(rtts_ms)

    def lengthen(self, rtts_ms):
        """Delay what comes back, for each port of the receiver by itself."""
        if not rtts_ms:
            return
        lines = [f"qdisc add dev left root handle 1: prio bands {len(rtts_ms)}"]
        for number, rtt_ms in enumerate(rtts_ms):
            lines += [f"qdisc add dev left parent 1:{number + 1} netem "
                      f"delay {rtt_ms}ms limit 1000000",
                      "filter add dev left parent 1: protocol ip prio 1 u32 match "
                      f"ip sport {PORT + number} 0xffff flowid 1:{number + 1}"]
            if number:
                self.path.sink("sbrm", PORT + number)
        self.path.r2.batch("tc", lines)

    def add(self, **words):
        """A flow, in words of tollway-traffic."""
        words = {"id": len(self.flows) + 1, "dst": "10.0.2.2", "port": PORT,
                 **words, **({} if "proto" in words else {"cc": "sbrm"})}
        self.flows.append(" ".join(f"{key}={value}"
                                   for key, value in words.items()))

    def change(self, rate_bps):
        """Give the link another rate."""
        self.rate_bps = rate_bps
        self.path.r1.run(
            f"tc class change dev right parent 1: classid 1:1 htb rate "
            f"{rate_bps}bit burst {PACKET} cburst {PACKET} quantum {PACKET}")

    def go(self, event_s=None, event=None):
        """Run all flows; look at the queue all the time; call event(), which may
        return (event_s, event) of the next one."""
        Path("flows").write_text("\n".join(self.flows) + "\n")
        Path("send.json").unlink(missing_ok=True)
        with self.path.s:
            sender = start([TRAFFIC, "send", "--flows", "flows", "--duration",
                            str(self.seconds), "--sample-ms", str(STEP_MS),
                            "--json", "send.json"])
        begin = time.monotonic()
        while time.monotonic() - begin < self.seconds:
            # No multiple of the time between packets of any link.
            time.sleep(LOOK_S * 1.0137)
            now = time.monotonic() - begin
            if event and now >= event_s:
                event_s, event = event() or (None, None)
            stats = self.path.stats()
            self.looks.append(Look(now, stats.bytes, stats.backlog * 8e3 /
                                   self.rate_bps, stats.x.full_drops,
                                   8 * stats.x.service_rate))
        sender.wait()
        self.report = json.loads(Path("send.json").read_text())["flows"]

    def between(self, first_s, last_s):
        """The looks of some time."""
        return [look for look in self.looks if first_s <= look.time < last_s]

    def utilisation(self, first_s, last_s):
        """Share of the link in use."""
        looks = self.between(first_s, last_s)
        sent = looks[-1].bytes - looks[0].bytes
        return sent * 8 / (looks[-1].time - looks[0].time) / (
            self.rate_bps)

    def rates(self, first_s, last_s, flows=None):
        """Payload acknowledged in some time, bit/s for each flow."""
        found = []
        for number, flow in enumerate(self.report):
            if flows is not None and number not in flows:
                continue
            times = flow["samples"]["t_s"]
            acked = flow["samples"]["bytes_acked"]
            low = min(range(len(times)), key=lambda at: abs(times[at] - first_s))
            high = min(range(len(times)), key=lambda at: abs(times[at] - last_s))
            found.append(8 * (acked[high] - acked[low]) /
                         max(times[high] - times[low], 1e-9))
        return found

    def cell(self, first_s, last_s, shares_s=None, flows=None):
        """What the bounds are about, in some time; shares from shares_s on."""
        looks = self.between(first_s, last_s)
        delays = sorted(look.delay_ms for look in looks)
        rates = self.rates(first_s if shares_s is None else shares_s,
                           last_s - 0.1, flows)
        mean = sum(rates) / len(rates)
        return Cell(self.rate_bps / 1e6, self.rtt_ms, len(rates),
                    self.utilisation(first_s, last_s),
                    sum(delays) / len(delays),
                    delays[math.ceil(0.99 * len(delays)) - 1],
                    max((look.delay_ms for look in self.between(0, first_s)),
                        default=0), looks[-1].drops - looks[0].drops,
                    max(abs(rate / mean - 1) for rate in rates))


def measure(mbit, rtt_ms, flows, seconds=30):
    """One cell of the grid: all flows start within 0.1 s."""
    link = Link(round(mbit * 1e6), rtt_ms, flows, seconds)
    for number in range(flows):
        link.add(start=f"{0.1 * number / flows:.4f}")
    link.go()
    cell = link.cell(SETTLED_S, seconds, shares_s=seconds / 2)
    note(f"{mbit:g} Mb/s, {rtt_ms} ms, {flows} flows: utilisation "
         f"{cell.utilisation:.3f}, delay {cell.mean_ms:.2f} ms, p99 "
         f"{cell.p99_ms:.2f} ms, at the start {cell.start_ms:.0f} ms, drops "
         f"{cell.late_drops}, worst share {cell.worst:.3f} off")
    guest_base.cleanup()
    return cell


def judge(cell):
    """What a cell misses of the bounds, in words."""
    packet_ms = PACKET * 8 / cell.mbit / 1e3
    target = max(TARGET_MS, 2 * packet_ms)
    return [text for text, missed in (
        (f"utilisation {cell.utilisation:.3f}", cell.utilisation < 0.98),
        (f"mean delay {cell.mean_ms:.1f}",
         cell.mean_ms > target + 2 * packet_ms + 1),
        (f"p99 {cell.p99_ms:.1f}", cell.p99_ms > 3 * target),
        (f"{cell.late_drops} drops", cell.late_drops > 0),
        (f"shares {cell.worst:.3f} off", cell.worst > 0.05)) if missed]


def expect(cells):
    """All of them hold all bounds."""
    missed = {tuple(cell[:3]): judge(cell) for cell in cells if judge(cell)}
    assert not missed, missed


def check_rates():
    """From 10 Mb/s to 1 Gb/s with the same constants."""
    expect([measure(10, 20, 4), measure(100, 20, 4), measure(1000, 20, 4, 10)])


def check_round_trips():
    """From 5 to 100 ms, and with many flows. With 100 ms and 36 of them a change of
    the delay that counts too much (DELAY_LEAD_HALVES) makes it swing."""
    expect([measure(100, 20, 36), measure(100, 100, 36), measure(100, 100, 4),
            measure(10, 5, 1)])


def check_soon():
    """Soon after the start of many flows, or of some on a slow link, the queue is short, and
    does not swing: what paces a flow is not the last round trip alone (sbrm_relative_rtt())."""
    expect([measure(100, 200, 36), measure(1, 100, 4)])


def check_price_field():
    """Queues that add their price to a field: where windows are small, a flow is not paced by
    the last round trip alone (sbrm_relative_rtt())."""
    for mbit, rtt_ms, flows, p99_ms in ((10, 20, 36, 20), (2, 100, 8, 80)):
        link = Link(mbit * 10**6, rtt_ms, flows, 60, feedback=PRICE)
        for space in (link.path.s, link.path.d):
            space.sysctl(SYSCTL + "estimator", "explicit")
        for number in range(flows):
            link.add(start=f"{0.1 * number / flows:.4f}")
        link.go()
        cell = link.cell(20, 60)
        note(f"{flows} flows at {mbit} Mb/s and {rtt_ms} ms: {cell.utilisation:.3f} used, delay "
             f"{cell.mean_ms:.1f} ms, p99 {cell.p99_ms:.1f}, worst share {cell.worst:.3f} off")
        assert cell.utilisation >= 0.98 and cell.p99_ms <= p99_ms and cell.worst <= 0.05
        guest_base.cleanup()


def check_above_one():
    """A price above 1, where sources have a packet in an eighth of a second: it
    does not swing, nor does what it leads to. A swing that grows needs a minute to
    be seen."""
    mbit, flows, seconds, from_s = 10, 100, 90, 30
    link = Link(mbit * 10**6, 20, flows, seconds, limit=10240)
    for number in range(flows):
        link.add(start=f"{0.1 * number / flows:.4f}")
    link.go()
    parts = [link.utilisation(at, at + 2) for at in range(from_s, seconds - 2, 2)]
    cell = link.cell(from_s, seconds)
    price = link.path.stats().x.price / 2**32
    note(f"{flows} flows at {mbit} Mb/s: {min(parts):.3f} to {max(parts):.3f} of "
         f"the link in 2 s, delay {cell.mean_ms:.1f} ms, p99 {cell.p99_ms:.1f}, "
         f"price {price:.2f}, worst share {cell.worst:.3f} off")
    assert price > 1 and min(parts) >= 0.95, parts
    assert cell.mean_ms <= 20 and cell.p99_ms <= 40 and cell.worst <= 0.25 and not cell.late_drops
    guest_base.cleanup()


def check_in_turn():
    """So many flows that marks do not tell the price: each has one packet on its way, and
    they are served in turn. When they begin there is not room for one packet of each, and
    all connect."""
    for rate_bps, flows, limit in ((10**6, 36, 1000), (3 * 10**6, 300, 290)):
        seconds, from_s = 60, 40
        link = Link(rate_bps, 20, flows, seconds, limit=limit)
        for number in range(flows):
            link.add(start=f"{0.1 * number / flows:.4f}")
        link.go()
        cell = link.cell(from_s, seconds)
        turn_ms = flows * PACKET * 8e3 / rate_bps
        late = sum(flow["connected_s"] is None for flow in link.report)
        note(f"{flows} flows at {rate_bps / 1e6:g} Mb/s: {cell.utilisation:.3f} used, delay "
             f"{cell.mean_ms:.0f} ms (of {turn_ms:.0f} for one packet of each), p99 "
             f"{cell.p99_ms:.0f}, {late} do not connect, worst share {cell.worst:.3f} off")
        assert cell.utilisation >= 0.99 and not late
        assert cell.p99_ms <= 1.1 * turn_ms
        if limit > flows:
            assert cell.worst <= 0.05 and not cell.late_drops
        guest_base.cleanup()


def check_not_in_turn():
    """A long round trip is no queue: where marks tell the price, flows that begin later
    have their share, and not one packet on its way."""
    flows, seconds, from_s, late_s = 10, 120, 80, 20
    link = Link(10**6, 600, flows, seconds, limit=1000)
    for number in range(flows):
        link.add(start=f"{late_s * (number % 2) + 0.01 * number:.2f}")
    link.go()
    cell = link.cell(from_s, seconds)
    note(f"{flows} flows at 1 Mb/s and 600 ms: {cell.utilisation:.3f} used, delay "
         f"{cell.mean_ms:.0f} ms, worst share {cell.worst:.3f} off")
    assert cell.utilisation >= 0.95 and cell.worst <= 0.15
    guest_base.cleanup()


def settled(link, event_s, flows, rate_bps):
    """(s until each flow is within 15 % of its share, until the link is full to
    90 %) after an event; judged over 0.3 s."""
    fair = rate_bps * PAYLOAD / PACKET / len(flows)
    shares_s = full_s = 0.0
    at = event_s
    while at < link.seconds - 0.5:
        rates = link.rates(at, at + 0.3, flows)
        if min(rates) < 0.85 * fair or max(rates) > 1.15 * fair:
            shares_s = at + 0.3 - event_s
        if sum(rates) < 0.9 * rate_bps * PAYLOAD / PACKET:
            full_s = at + 0.3 - event_s
        at += 0.1
    return shares_s, full_s


def event_of(mbit, rtt_ms, flows, join=0, leave=0, factor=None, event_s=7.5,
             seconds=15):
    """Something happens to a link in use: how long until all is well again?"""
    rate_bps = round(mbit * 1e6)
    after_bps = round(rate_bps * (factor or 1))
    link = Link(rate_bps, rtt_ms, flows, seconds, most_bps=after_bps)
    for number in range(flows):
        stop = {"stop": event_s} if number < leave else {}
        link.add(start=f"{0.1 * number / flows:.4f}", **stop)
    for _ in range(join):
        link.add(start=event_s)
    link.go(event_s, (lambda: link.change(after_bps)) if factor else None)
    shares_s, full_s = settled(link, event_s, range(leave, flows + join),
                               after_bps)
    worst_ms = max(look.delay_ms for look in link.between(event_s, seconds))
    what = f"{join} join" if join else f"{leave} leave" if leave else \
        f"the link times {factor:g}"
    note(f"{mbit:g} Mb/s, {rtt_ms} ms, {flows} flows, {what}: shares after "
         f"{shares_s:.1f} s, full after {full_s:.1f} s, delay up to "
         f"{worst_ms:.0f} ms")
    guest_base.cleanup()
    limit = max(1, 15 * rtt_ms / 1e3)
    return shares_s <= limit and full_s <= limit, \
        (mbit, rtt_ms, flows, what, shares_s, full_s)


def check_changes():
    """Flows join and leave, the link becomes slower and faster."""
    found = [event_of(100, 20, 9, join=1), event_of(100, 20, 10, leave=5),
             event_of(100, 20, 4, factor=0.5), event_of(100, 20, 4, factor=2)]
    assert all(held for held, _ in found), found


def check_weights():
    """Rates go with w, 1:2:4 and 1:50."""
    for wtps in ((25, 50, 100), (10, 500)):
        link = Link(10**8, 20, len(wtps), 40, wtps=wtps)
        for number in range(len(wtps)):
            link.add(start=f"{0.03 * number:.2f}", prio=number)
        link.go()
        rates = link.rates(10, 39.9)
        shares = [rate / sum(rates) * sum(wtps) / w
                  for rate, w in zip(rates, wtps)]
        note(f"w {wtps}: {' '.join(f'{share:.3f}' for share in shares)} of "
             "their shares")
        assert all(abs(share - 1) < 0.03 for share in shares), (wtps, shares)
        guest_base.cleanup()


def check_unequal_round_trips():
    """5, 50 and 200 ms over one bottleneck: the same w, the same rate."""
    for mbit, flows in ((10, 3), (100, 3), (100, 12)):
        link = Link(mbit * 10**6, 200, flows, 60, rtts_ms=(5, 50, 200))
        for number in range(flows):
            link.add(start=f"{0.1 * number / flows:.4f}", port=PORT + number % 3)
        link.go()
        rates = link.rates(20, 59.9)
        mean = sum(rates) / len(rates)
        shares = [sum(rates[first::3]) / len(rates[first::3]) / mean
                  for first in range(3)]
        delays = sorted(look.delay_ms for look in link.between(20, 60))
        note(f"{mbit} Mb/s, {flows} flows, round trips of 5, 50 and 200 ms: "
             f"{' '.join(f'{share:.3f}' for share in shares)} of their shares, "
             f"utilisation {link.utilisation(20, 60):.3f}, delay "
             f"{sum(delays) / len(delays):.1f} ms")
        assert all(abs(share - 1) < 0.03 for share in shares), (mbit, shares)
        guest_base.cleanup()


def check_shorter_path():
    """A path becomes ten times as short, and three of four flows leave: the other one is
    not held back by the round trips that were (sbrm_relative_rtt())."""
    rate_bps, event_s, flows = 2 * 10**7, 15, 4
    for rtt_ms in (100, 400):
        link = Link(rate_bps, rtt_ms, flows, event_s + 3)
        for number in range(flows):
            stop = {"stop": event_s} if number else {}
            link.add(start=f"{0.1 * number / flows:.4f}", **stop)
        link.go(event_s, lambda link=link: link.path.r2.run(
            f"tc qdisc change dev left root netem delay {rtt_ms // 10}ms limit 1000000"))
        shares = [link.rates(event_s + at, event_s + at + 0.5, [0])[0] / rate_bps
                  for at in (0.25, 0.75, 1.25, 1.75)]
        worst_ms = max(look.delay_ms for look in link.between(event_s + 1, event_s + 3))
        note(f"{rtt_ms} ms become {rtt_ms // 10} ms: {' '.join(f'{share:.2f}' for share in shares)}"
             f" of the link in half seconds, delay up to {worst_ms:.1f} ms after a second")
        assert min(shares) >= 0.6, shares
        guest_base.cleanup()


def check_rest():
    """A link that rests for a minute, or carries a little, does not lead to a
    price that is too low for all who come then."""
    for trickle in (False, True):
        link = Link(10**7, 40, 9, 90)
        if trickle:
            link.add(proto="udp", rate="200k", start=0)
        for number in range(8):
            link.add(start=f"{60 + 0.01 * number:.2f}")
        link.go()
        worst_ms = max(look.delay_ms for look in link.between(60, 63))
        after = sorted(look.delay_ms for look in link.between(63, 90))
        p99_ms = after[math.ceil(0.99 * len(after)) - 1]
        note(f"{'a trickle' if trickle else 'nothing'} for 60 s, then 8 flows: "
             f"up to {worst_ms:.0f} ms, p99 {p99_ms:.1f} ms after 3 s")
        # Eight initial windows take 97 ms.
        assert worst_ms < 110, (trickle, worst_ms)
        # 9 ms is what the grid asks for, and is just missed with eight flows.
        assert p99_ms < 15, (trickle, p99_ms)
        guest_base.cleanup()


def beside_datagrams(mbit, flows, ecn=None, seconds=60, from_s=5):
    """Datagrams at half of the rate of a link, whatever happens to them, beside
    flows of sbrm; ecn: which ECT they carry. In 20 s the 99th percentile is one packet
    more now and then, and the bound is between the two."""
    link = Link(mbit * 10**6, 20, flows, seconds)
    with link.path.d:
        receiver = start([TRAFFIC, "sink", "--port", str(PORT + 1), "--json",
                          "datagrams.json"])
    for number in range(flows):
        link.add(start=f"{0.1 * number / flows:.4f}")
    link.add(port=PORT + 1, proto="udp", rate=mbit * 10**6 // 2, start=0.05,
             size=PACKET - 42, overhead=42, **({} if ecn is None else
                                               {"ecn": ecn}))
    link.go()
    receiver.terminate()
    receiver.wait()
    (datagrams,) = json.loads(Path("datagrams.json").read_text())["udp"]
    lost = datagrams["lost"] / (datagrams["packets"] + datagrams["lost"])
    rates = link.rates(from_s, seconds - 0.1, range(flows))
    rest = sum(rates) / (link.rate_bps * PAYLOAD / PACKET)
    cell = link.cell(from_s, seconds, flows=range(flows))
    note(f"{mbit} Mb/s, {flows} flows beside datagrams "
         f"{'without ECN' if ecn is None else f'with ECT({ecn})'}: they have "
         f"{rest:.3f} of the link, worst share {cell.worst:.3f} off, "
         f"{lost:.4f} of the datagrams lost, delay {cell.mean_ms:.2f} ms, p99 "
         f"{cell.p99_ms:.2f} ms, utilisation {cell.utilisation:.3f}")
    # To drop what takes no notice of it may give more to the rest, not less.
    assert 0.495 <= rest <= 0.505 + 0.6 * lost, rest
    assert ecn is None or not lost, lost
    expect([cell])
    guest_base.cleanup()


def check_datagrams():
    """Beside datagrams at half of the rate the flows share the other half, as if
    the link had no more, whether the datagrams can be marked or not."""
    for mbit, flows, ecn in ((10, 1, None), (10, 4, None), (10, 4, 0), (10, 4, 1)):
        beside_datagrams(mbit, flows, ecn)


def check_many_datagrams():
    """The same on a faster link."""
    for ecn in (None, 1):
        beside_datagrams(100, 4, ecn)


# All bounds hold in these; README.md has what the others miss.
HOLDS = {(1, 5, 1), (1, 5, 4), (1, 20, 1), (1, 20, 4), (1, 100, 1), (1, 100, 4),
         (10, 5, 1), (10, 5, 4), (10, 20, 1), (10, 20, 4), (10, 100, 1),
         (10, 100, 4), (10, 200, 1), (100, 5, 1), (100, 5, 4), (100, 5, 36), (100, 20, 1),
         (100, 20, 4), (100, 20, 36), (100, 100, 1), (100, 100, 4), (100, 100, 36),
         (100, 200, 1), (100, 200, 4), (100, 200, 36)}


def check_many_cells():
    """The grid: what misses a bound is named."""
    cells = [measure(mbit, rtt_ms, flows)
             for mbit in (1, 10, 100) for rtt_ms in (5, 20, 100, 200)
             for flows in (1, 4, 36) if mbit / flows >= 0.25]
    Path("cells.json").write_text(json.dumps([cell._asdict() for cell in cells]))
    for cell in cells:
        note(f"{cell[:3]}: {', '.join(judge(cell)) or 'holds'}")
    expect([cell for cell in cells if tuple(cell[:3]) in HOLDS])


def check_everything_marked():
    """A queue that marks all packets: a price of 6, as tcp_sbrm(7) says, and not that of
    one mark."""
    path = TcpPath(shipped=True, quickack=True)
    flow = path.connect("sbrm")
    pump([flow], 3)
    path.ahead("loss random 100% ecn limit 10000")
    pump([flow], 30)
    before, started = info(flow), time.monotonic()
    pump([flow], 60)
    rate = (info(flow).delivered - before.delivered) / (time.monotonic() - started)
    note(f"{rate:.2f} packets/s of {W / 6:.2f}")
    assert near(rate, W / 6, 0.1)


def check_marks_at_random():
    """Marks that come at random are the worst case of those of several queues: what one
    stands for is right within 2 % in the mean. (With an average of m over 8 packets it is
    3.5 %.)"""
    found = []
    for percent in (5, 10, 20):
        price = -math.log(1 - percent / 100)
        path = TcpPath(rate_bps=10**8, shipped=True, quickack=True)
        path.s.sysctl(SYSCTL + "wtp", str(round(2000 * price)))
        flow = path.connect("sbrm")
        pump([flow], 3)
        path.ahead(f"loss random {percent}% ecn limit 10000")
        pump([flow], 20)
        before, started = info(flow), time.monotonic()
        pump([flow], 250)
        rate = (info(flow).delivered - before.delivered) / (time.monotonic() - started)
        paid = rate * price / round(2000 * price)
        note(f"{percent} % marked: pays as for {1 / paid:.4f} times the price")
        found.append(paid)
        guest_base.cleanup()
    assert near(sum(found) / len(found), 1, 0.02), found


if __name__ == "__main__":
    guest_base.main(globals())
