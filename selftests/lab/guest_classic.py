# SPDX-License-Identifier: GPL-2.0
"""What the qdisc sbrm does to packets that cannot be marked for the price."""

import math
import struct
import time
from collections import Counter

import guest_base
from bench import (CE, ECT0, ECT1, ETH_P_IP, HOLD_BPS, MACS, NOT_ECT,
                   SOL_PACKET, PACKET_VNET_HDR, Bench, Model, ip_sum, ipv4,
                   ipv6, other, probability)
from guest_base import note
from rtnl import (COUPLING_ONE, DITHER, ECN, GAMMA_ONE, L4S_ECT, MARK, NODROP,
                  OVERLOAD_EXEMPT, OVERLOAD_PAYING, PRICE, PRICE_DROP, REM_PC2,
                  SPLIT_GSO, Refused, options)

SIGMA = 4.5
FAST_BPS = 40000
DEFAULTS = ECN | SPLIT_GSO | DITHER
SMALL, COUPLING = 256, 2
# What is not an overload loses no more of its packets.
DROPS_MOST = 3 / 8
MEAN_OVER = 256
FIN, SYN, RST, ACK = 1, 2, 4, 16


def coupled(draws, gamma, target, coupling=COUPLING, mean=0.0):
    """(hits, expected hits, deviation in sigma) of draws (backlog, outcome),
    of which the price is a mean."""
    hits = expected = variance = 0
    for backlog, hit in draws:
        price = gamma * max(backlog - target, 0)
        mean += (min(price, coupling) - mean) / MEAN_OVER
        chance = (mean / coupling) ** 2
        hits += hit
        expected += chance
        variance += chance * (1 - chance)
    return hits, expected, (hits - expected) / math.sqrt(variance)


def check_coupled_drops():
    """What is not ECN-capable is dropped with (price / coupling)^2, the price
    being a mean, whatever the law; of ECT packets none is."""
    for name, words, tos, make in (
            ("IPv4", {}, NOT_ECT, ipv4), ("IPv6", {}, NOT_ECT, ipv6),
            ("not IP", {}, NOT_ECT, other),
            ("coupling 3", {"coupling": 3}, NOT_ECT, ipv4),
            ("rem-pc2", {"law": REM_PC2, "phi": math.e}, NOT_ECT, ipv4),
            ("drop", {"flags": SPLIT_GSO}, ECT0, ipv4)):
        bench = Bench()
        bench.htb(FAST_BPS, 1000, options(limit=1000, target=5, gamma=0.02,
                                          **words))
        model = Model(bench)
        # The highest price is 0.5, so 1/16 are dropped. With 0.7 it was one of eight, and
        # one of some hundred periods had a fifth by chance, which is an overload.
        for backlog in (10, 30, 25, 20):
            model.run(600, backlog, tos=tos, make=make)
        hits, expected, sigma = coupled(model.draws, 0.02, 5,
                                        words.get("coupling", COUPLING))
        stats = bench.stats()
        note(f"{name}: {hits} drops where {expected:.1f} were due, "
             f"{sigma:+.2f} sigma, {stats.x.overload_drops} in overload")
        assert stats.x.overload_drops == 0
        assert abs(sigma) <= SIGMA, name
        assert stats.x.coupled_drops == hits == stats.drops
        assert stats.x.price_drops == stats.x.marks == stats.x.spared == 0
        guest_base.cleanup()


def check_ect_classes():
    """any-ect: both code points are marked for the price. l4s-ect: ECT(1) is,
    and ECT(0) with the coupled probability."""
    for flags, tos, is_coupled in (
            (DEFAULTS, ECT0, False), (DEFAULTS, ECT1, False),
            (DEFAULTS | L4S_ECT, ECT1, False), (DEFAULTS | L4S_ECT, ECT0, True)):
        bench = Bench()
        bench.htb(FAST_BPS, 1000, options(limit=1000, target=5, gamma=0.02,
                                          flags=flags))
        model = Model(bench)
        model.run(1500, 40, tos=tos)
        assert not model.drops
        hits, expected, sigma = coupled(model.draws, 0.02, 5)
        marks = sum(probability(0.02, 5, backlog) for backlog, _ in model.draws)
        note(f"flags {flags} ECN {tos}: {hits} marks; coupled are "
             f"{expected:.1f}, for the price {marks:.1f}")
        if is_coupled:
            assert abs(sigma) <= SIGMA
        else:
            assert abs(hits - marks) <= 2
        stats = model.agrees()
        assert stats.x.marks == hits
        assert stats.x.coupled_marks == (hits if is_coupled else 0)
        guest_base.cleanup()


def check_statistics():
    """coupled_prob is (price / coupling)^2 for any of both, once the mean is."""
    for coupling, gamma in ((0.01, 0.001), (2, 0.0001), (2, 0.1), (2, 1),
                            (1000, 0.001), (1000, 1), (3.7, 0.05)):
        bench = Bench()
        bench.htb(8 * 10**9, 1000, options(limit=100000, target=0, gamma=gamma,
                                           coupling=coupling))
        bench.htb_rate(HOLD_BPS, 1000)
        for _ in range(7 * MEAN_OVER):
            bench.send(100)
        bench.change(reset=True)
        bench.htb_rate(10**9, 1000)
        left = len(bench.drain(1))
        x = bench.stats().x
        # Each left a backlog one smaller.
        rounded = round(coupling * COUPLING_ONE) / COUPLING_ONE
        one = round(gamma * GAMMA_ONE) / GAMMA_ONE
        mean = 0.0
        for backlog in range(7 * MEAN_OVER, 0, -1):
            mean += (min(one * backlog, rounded) - mean) / MEAN_OVER
        due = min((mean / rounded) ** 2, 1)
        note(f"coupling {coupling} gamma {gamma}: {x.coupled_prob / 2**32:.9f} "
             f"where {due:.9f} is due; {left} left")
        assert abs(x.coupled_prob / 2**32 - due) <= 1e-3 * due + 2**-28
        guest_base.cleanup()


# --- classes ---------------------------------------------------------------

def tcp(flags, data=0, options_words=0):
    """A TCP segment without its checksum; bytes of zeros as data."""
    return struct.pack(">HHIIBBHHH", 1, 2, 3, 4, (5 + options_words) << 4,
                       flags, 1000, 0, 0) + bytes(4 * options_words + data)


def udp(data):
    """A UDP datagram."""
    return struct.pack(">HHHH", 5000, 5000, 8 + data, 0) + bytes(data)


def v4(protocol, payload, tos=0, fragment=0, words=0):
    """An IPv4 packet, `words` of 4 bytes of options."""
    head = bytearray(struct.pack(
        ">BBHHHBBH4s4s", 0x45 + words, tos, 20 + 4 * words + len(payload), 1,
        fragment, 64, protocol, 0, bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2))))
    head += bytes([1] * 4 * words)
    head[10:12] = struct.pack(">H", ip_sum(head))
    return bytes(head) + payload


def v6(chain, payload, tos=0):
    """An IPv6 packet; chain: numbers of its headers, the last is the payload's.
    Each extension header but a fragment's has 16 bytes."""
    first, extensions = chain[0], b""
    for number, after in zip(chain, chain[1:]):
        extensions += struct.pack(">BB14x", after, 1) if number != 44 else \
            struct.pack(">BBHI", after, 0, 0, 7)
    return struct.pack(">IHBB16s16s", 6 << 28 | tos << 20,
                       len(extensions) + len(payload), first, 64,
                       bytes(15) + b"\1", bytes(15) + b"\2") + \
        extensions + payload


def framed(packet, tags=(), pad=0):
    """Within Ethernet, and tags of VLANs."""
    kind = 0x86DD if packet[0] >> 4 == 6 else ETH_P_IP
    head = MACS
    for tpid, number in tags:
        head += struct.pack(">HH", tpid, number)
    return head + struct.pack(">H", kind) + packet + bytes(pad)


def shown(frame):
    """A frame as the receiver may show it, with and without its outer tag."""
    tagged = frame[12:14] in (b"\x81\x00", b"\x88\xa8")
    return {frame, frame[:12] + frame[16:]} if tagged else {frame}


DATA = 600
# Names of extension headers: hop-by-hop, routing, fragment, destination.
HOP, ROUTING, FRAGMENT, DESTINATION, TCP, UDP = 0, 43, 44, 60, 6, 17
DOT1Q, DOT1AD = 0x8100, 0x88A8
# DSCP of what comes in a VLAN: the kernel takes the outer tag off before it
# shows a frame, which then still is no other one.
INSIDE = 8 << 2
# {what it is: (frame, is it exempt with small 256, with small 0)}
FRAMES = {
    "SYN": (framed(v4(TCP, tcp(SYN))), True, True),
    "SYN with data": (framed(v4(TCP, tcp(SYN, DATA))), True, True),
    "SYN-ACK with data": (framed(v4(TCP, tcp(SYN | ACK, DATA))), True, True),
    "SYN with data, IPv6": (framed(v6([TCP], tcp(SYN, DATA))), True, True),
    "pure ACK": (framed(v4(TCP, tcp(ACK, 0, 10))), True, True),
    "pure ACK, padded": (framed(v4(TCP, tcp(ACK)), pad=600), True, True),
    "pure ACK, IP options": (framed(v4(TCP, tcp(ACK, 0, 10), words=10)), True,
                             True),
    "pure ACK, IPv6": (framed(v6([TCP], tcp(ACK, 0, 10))), True, True),
    "RST": (framed(v4(TCP, tcp(RST))), True, True),
    "FIN": (framed(v4(TCP, tcp(FIN | ACK))), True, True),
    "pure ACK behind extensions": (framed(v6(
        [HOP, DESTINATION, ROUTING, DESTINATION, TCP], tcp(ACK))), True, True),
    "SYN behind eight extensions": (framed(v6(
        [DESTINATION] * 8 + [TCP], tcp(SYN, DATA))), True, True),
    "SYN behind nine extensions": (framed(v6(
        [DESTINATION] * 9 + [TCP], tcp(SYN, DATA))), False, False),
    "SYN in a fragment, IPv6": (framed(v6(
        [FRAGMENT, TCP], tcp(SYN, DATA))), False, False),
    "SYN in a first fragment": (framed(v4(
        TCP, tcp(SYN, DATA), fragment=0x2000)), False, False),
    "what looks as a SYN in a later fragment": (framed(v4(
        TCP, tcp(SYN, DATA), fragment=0x0010)), False, False),
    "pure ACK in a VLAN": (framed(v4(TCP, tcp(ACK), INSIDE), ((DOT1Q, 5),)),
                           True, True),
    "SYN with data in two VLANs": (framed(
        v4(TCP, tcp(SYN, DATA), INSIDE), ((DOT1AD, 5), (DOT1Q, 6))), True,
        True),
    "data": (framed(v4(TCP, tcp(ACK, DATA))), False, False),
    "data, IPv6": (framed(v6([TCP], tcp(ACK, DATA))), False, False),
    "data in two VLANs": (framed(v4(TCP, tcp(ACK, DATA), INSIDE),
                                 ((DOT1AD, 5), (DOT1Q, 6))), False, False),
    "a short TCP header": (framed(v4(TCP, tcp(ACK, DATA)[:10], words=10),
                                  pad=600), False, False),
    "a TCP header longer than the packet": (framed(
        v4(TCP, tcp(ACK, 0, 10)[:24]), pad=600), False, False),
    "a tunnel with a SYN": (framed(v4(4, v4(TCP, tcp(SYN, DATA)))), False,
                            False),
    "UDP of 256 bytes": (framed(v4(UDP, udp(256 - 28))), True, False),
    "UDP of 257 bytes": (framed(v4(UDP, udp(257 - 28))), False, False),
    "UDP of 256 bytes, IPv6": (framed(v6([UDP], udp(256 - 48))), True, False),
    "UDP of 256 bytes in a VLAN": (framed(v4(UDP, udp(256 - 28), INSIDE),
                                          ((DOT1Q, 5),)), True, False),
    "UDP of 257 bytes in a VLAN": (framed(v4(UDP, udp(257 - 28), INSIDE),
                                          ((DOT1Q, 5),)), False, False),
    "not IP, 256 bytes": (other(1, 270, 0), True, False),
    "not IP, 257 bytes": (other(1, 271, 0), False, False),
    "an empty frame": (other(1, 18, 0), True, False),
    "version 4, 2 bytes": (MACS + b"\x08\x00\x45\x00", True, False),
    "TCP cut short": (framed(v4(TCP, tcp(ACK)))[:14 + 28], True, False),
}


def frames_after(bench, make, count, warm=20 * MEAN_OVER):
    """Let the mean become the coupling, then send, then keep others behind."""
    for _ in range(warm):
        bench.send(100, ECT0)
    for number in range(count):
        make(number)
    for _ in range(20):
        bench.send(100, ECT0)
    bench.htb_rate(10**10, 10000)
    frames = []
    until = time.monotonic() + 1
    while bench.poll.poll(max(until - time.monotonic(), 0) * 1000):
        frames.append(bench.into.recv(1 << 17))
    return frames


# Of each frame so many: that none of them is dropped by chance has odds of 2e-10.
COPIES = 48


def check_exempt():
    """SYNs, segments without data, and small packets are never dropped for the
    price; of whatever else is not ECN-capable 3/8 are, where the price is k."""
    for small, column in ((SMALL, 1), (0, 2)):
        bench = Bench()
        bench.htb(HOLD_BPS, 10000, options(limit=100000, target=0, gamma=1,
                                           small=small))
        names = list(FRAMES)
        sent = [FRAMES[name][0] for name in names] * COPIES
        frames = frames_after(bench, lambda number: bench.out.send(sent[number]),
                              len(sent))
        arrived = Counter(bytes(frame) for frame in frames)
        dropped = 0
        for name in names:
            frame, expected = FRAMES[name][0], FRAMES[name][column]
            count = sum(arrived[one] for one in shown(frame))
            assert (count == COPIES) == expected, \
                f"small {small}, {name}: {count} of {COPIES} left"
            dropped += COPIES - count
        x = bench.stats().x
        paying = COPIES * sum(not FRAMES[name][column] for name in names)
        assert x.coupled_drops == dropped and x.spared > 0
        assert abs(dropped - DROPS_MOST * paying) <= SIGMA * math.sqrt(
            DROPS_MOST * (1 - DROPS_MOST) * paying), f"{dropped} of {paying}"
        assert x.price_drops == x.overload_drops == x.full_drops == 0
        note(f"small {small}: {x.spared} spared, {dropped} of {paying} dropped")
        guest_base.cleanup()


def check_small_packets_are_marked():
    """A SYN, an ACK or a small packet that is ECT is marked as any other."""
    bench = Bench()
    bench.htb(HOLD_BPS, 1000, options(limit=100000, target=0, gamma=1,
                                      flags=ECN | SPLIT_GSO))
    sent = [framed(v4(TCP, tcp(SYN), ECT1)), framed(v4(TCP, tcp(ACK), ECT0)),
            framed(v6([TCP], tcp(ACK), ECT0)), framed(v4(UDP, udp(20), ECT1))]
    frames = frames_after(bench, lambda number: bench.out.send(sent[number]), 4, 20)
    marked = {bytes(frame) for frame in frames}
    assert framed(v4(TCP, tcp(SYN), CE)) in marked
    assert framed(v4(TCP, tcp(ACK), CE)) in marked
    assert framed(v6([TCP], tcp(ACK), CE)) in marked
    assert framed(v4(UDP, udp(20), CE)) in marked


def check_marks_behind_tags():
    """Tags of VLANs in the frame, not beside it: the packet behind them is
    marked, and no tag is written to. Tags may look like a header of IP."""
    for tags in (((DOT1Q, 0x4502),), ((DOT1AD, 5), (DOT1Q, 0x4502)),
                 ((DOT1AD, 0x4502), (DOT1Q, 0x6020))):
        for make in (lambda tos: v4(UDP, udp(DATA), tos),
                     lambda tos: v6([UDP], udp(DATA), tos)):
            bench = Bench()
            bench.htb(HOLD_BPS, 1000, options(limit=100000, target=0, gamma=1,
                                              flags=ECN | SPLIT_GSO))
            frames = frames_after(bench, lambda _: bench.out.send(
                framed(make(ECT0), tags)), 1, 20)
            frames = {bytes(frame) for frame in frames}
            assert shown(framed(make(CE), tags)) & frames, tags
            guest_base.cleanup()


def check_headers_in_fragments():
    """A packet of which only the link's header is in one piece is marked, and
    exempt, as any other."""
    bench = Bench()
    for space, device in ((bench.a, "va"), (bench.b, "vb")):
        space.run(f"ip link set {device} mtu 9000")
    bench.htb(HOLD_BPS, 10000, options(limit=100000, target=0, gamma=1,
                                       flags=ECN | SPLIT_GSO))
    sent = {"ECT(0)": framed(v4(TCP, tcp(ACK, 6000), ECT0)),
            "ECT(0), IPv6": framed(v6([TCP], tcp(ACK, 6000), ECT0)),
            "SYN": framed(v4(TCP, tcp(SYN, 6000))),
            "SYN, IPv6": framed(v6([DESTINATION, TCP], tcp(SYN, 6000))),
            "data": framed(v4(TCP, tcp(ACK, 6000)))}
    marked = {"ECT(0)": framed(v4(TCP, tcp(ACK, 6000), CE)),
              "ECT(0), IPv6": framed(v6([TCP], tcp(ACK, 6000), CE))}
    names = list(sent)

    def send(number):
        # All but 14 bytes go into pages.
        bench.out.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        bench.out.send(struct.pack("=BBHHHH", 0, 0, 14, 0, 0, 0) +
                       sent[names[number % len(names)]])
        bench.out.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 0)

    frames = Counter(bytes(frame)
                     for frame in frames_after(bench, send, COPIES * len(names)))
    for name in names:
        count = frames[marked.get(name, sent[name])]
        assert (count == COPIES) == (name != "data"), f"{name}: {count}"


def check_unmarked_choices():
    """price-drop and nodrop are what they were, small packets too."""
    for flags, drops in ((DEFAULTS | PRICE_DROP, True),
                         (DEFAULTS | NODROP, False)):
        bench = Bench()
        bench.htb(HOLD_BPS, 1000, options(
            limit=100000, target=0, gamma=1, flags=flags & ~DITHER))
        sent = [framed(v4(TCP, tcp(SYN))), framed(v4(UDP, udp(20))),
                framed(v4(UDP, udp(DATA)))]
        frames = frames_after(bench, lambda number: bench.out.send(sent[number]), 3,
                      20)
        arrived = {bytes(frame) for frame in frames}
        assert [one in arrived for one in sent] == [not drops] * 3
        x = bench.stats().x
        assert x.price_drops == (3 if drops else 0)
        assert x.coupled_drops == x.spared == x.overload_drops == 0
        guest_base.cleanup()


def check_contradictions():
    """Options that do not go together are refused, and the message names them."""
    bench = Bench()
    bench.htb(HOLD_BPS, 1000, options())
    before = bench.stats()
    for words, said in (
            ({"flags": DEFAULTS | NODROP | PRICE_DROP},
             "nodrop conflicts with price-drop"),
            ({"flags": SPLIT_GSO | NODROP}, "nodrop needs ecn"),
            ({"flags": SPLIT_GSO | L4S_ECT}, "l4s-ect needs ecn"),
            ({"flags": DEFAULTS | L4S_ECT | NODROP}, "l4s-ect needs ecn"),
            ({"flags": DEFAULTS | L4S_ECT | PRICE_DROP}, "l4s-ect needs ecn"),
            ({"flags": DEFAULTS | NODROP, "coupling": 2},
             "coupling cannot be used with nodrop or price-drop"),
            ({"flags": DEFAULTS | PRICE_DROP, "small": 0},
             "small cannot be used with nodrop or price-drop"),
            ({"coupling": 0.0099}, None), ({"coupling": 1000.1}, None),
            ({"small": 65536}, None)):
        try:
            bench.change(**words)
            raise AssertionError(f"{words} was taken")
        except Refused as answer:
            assert said is None or said in answer.message, answer.message
        after = bench.stats()
        assert (after.settings, after.classic) == (before.settings,
                                                   before.classic)
    bench.change(coupling=1000, small=65535)
    assert bench.stats().classic == {"coupling": 1000 * COUPLING_ONE,
                                     "small": 65535}


# --- overload --------------------------------------------------------------

RATE_BPS = 8 * 10**6


class Flood:
    """Packets at a multiple of the rate of the link, others among them."""

    def __init__(self, **words):
        self.bench = Bench()
        self.bench.htb(RATE_BPS, 1000, options(limit=1000, target=10,
                                               gamma=0.015, **words))
        self.began = time.monotonic()
        self.sent = 0.0

    def go(self, seconds, load, make, every=0, among=None):
        """Send for some time; `among` after every so many. What leaves is lost
        sight of."""
        until = time.monotonic() + seconds
        size = len(make())
        due = time.monotonic()
        count = 0
        while time.monotonic() < until:
            while due <= time.monotonic():
                try:
                    self.bench.out.send(make())
                    count += 1
                    if every and count % every == 0:
                        self.bench.out.send(among)
                except OSError as error:
                    assert error.errno == 105
                due += size * 8 / (RATE_BPS * load)
            time.sleep(max(due - time.monotonic(), 0) + 0.002)
            while True:
                try:
                    self.bench.into.recv(1 << 17)
                except BlockingIOError:
                    break
        return self.bench.stats().x


def check_overload():
    """A flood that does not respond to losses is dropped as often as others are
    marked, after a second and for as long as it lasts; SYNs are still spared,
    until they are the flood."""
    large = framed(v4(UDP, udp(1000 - 42)))
    syn = framed(v4(TCP, tcp(SYN, 0, 10)))
    flood = Flood()
    first = flood.go(0.9, 1.5, lambda: large, 20, syn)
    assert not first.overload and not first.overload_drops
    assert first.coupled_drops > 100 and first.spared > 0
    flood.go(2.5, 1.5, lambda: large, 20, syn)
    steady = flood.go(4, 1.5, lambda: large, 20, syn)
    note(f"price {first.price / 2**32:.2f} coupled, {steady.price / 2**32:.2f} "
         f"in overload; {steady}")
    assert steady.overload == OVERLOAD_PAYING
    assert steady.price < 0.7 * first.price
    assert not steady.full_drops
    # A third is lost, with the probability of a mark.
    assert abs(steady.prob / 2**32 - 1 / 3) < 0.1

    # Half of the link: nothing is lost any more, and the period ends with the
    # first packet that is to pay.
    flood.go(1.5, 0.5, lambda: large)
    calm = flood.go(1.5, 1.1, lambda: large)
    assert not calm.overload, calm

    # SYNs alone fill the queue, and lose their exemption.
    flood.bench.change(reset=True)
    flood.go(2.5, 3, lambda: syn)
    x = flood.bench.stats().x
    note(f"SYNs: {x}")
    assert x.overload & OVERLOAD_EXEMPT and x.overload_drops > 1000


def check_no_overload_without_marks():
    """While the queue carries prices, nothing is dropped for them, and nobody is
    judged: what the full queue lost is not held against packets that come when it
    marks again."""
    bench = Bench()
    bench.htb(HOLD_BPS, 1000, options(limit=20, target=19, gamma=0.001,
                                      feedback=PRICE))
    for _ in range(300):
        bench.send(1000, NOT_ECT)
    assert bench.stats().x.full_drops > 270
    bench.htb_rate(10**6, 1000)
    bench.drain(1)
    bench.change(feedback=MARK)
    # 150 kB, which take 1.2 s, and then a few that find the queue full.
    for _ in range(15):
        for _ in range(10):
            bench.send(1000, NOT_ECT)
        bench.drain(0.1)
    before = bench.stats().x.full_drops
    while bench.stats().x.full_drops < before + 3:
        bench.send(1000, NOT_ECT)
    x = bench.stats().x
    note(f"{x}")
    assert not x.overload, x


def check_no_overload_of_those_who_respond():
    """Loads up to that of the link and a little more are none."""
    large = framed(v4(UDP, udp(1000 - 42)))
    flood = Flood()
    for load in (0.5, 0.95, 1.05, 1.1):
        x = flood.go(3, load, lambda: large)
        assert not x.overload and not x.overload_drops, (load, x)


if __name__ == "__main__":
    guest_base.main(globals())
