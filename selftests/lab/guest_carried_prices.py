# SPDX-License-Identifier: GPL-2.0
"""How packets carry prices: the identification of IPv4, four bits, super-packets."""

import fcntl
import math
import socket
import struct
import time

import guest_base
from bench import (CE, ECT0, HOLD_BPS, INDEPENDENT, SIGMA, Bench, ipv4, ipv6,
                   other, super_packet)
from guest_base import note
from law_bench import carried_prices, carrier, price_of
from rtnl import (ECN, FOUR_BIT, PRICE, PRICE_MAX, PRICE_ONE, SPLIT_GSO, VQM,
                  options)


def filled(count, data, make=carrier, size=200):
    """`count` packets that leave one after the other; (bench, frames).

    frames: (backlog that it left behind and itself, frame).
    """
    bench = Bench()
    bench.htb(HOLD_BPS, 1000, data)
    for _ in range(count):
        bench.send(size, ECT0, make)
    bench.drain()
    held = bench.stats().qlen
    bench.change(reset=True)
    bench.htb_rate(10**9, 1000)
    frames = bench.drain(5)[-held:]
    assert len(frames) == held
    return bench, list(zip(range(held, 0, -1), frames))


def check_price_is_added():
    """The identification grows by the price, rounded so that the mean fits."""
    gamma = 0.00731
    bench, frames = filled(900, options(limit=1000, target=3, gamma=gamma,
                                        feedback=PRICE))
    draws = [(0, gamma * max(backlog - 3, 0), 1e-9, frame)
             for backlog, frame in frames]
    carried_prices(draws)
    assert not any(frame.tos & 3 == CE for _, frame in frames)
    for _, frame in frames:
        expected = carrier(frame.number, 200, ECT0, price_of(frame))
        assert frame.frame == expected, "changed elsewhere"
    stats = bench.stats()
    assert stats.x.carried == len(frames) == stats.x.packets
    assert not stats.x.uncarried and not stats.x.saturated
    assert not stats.x.marks and not stats.x.price_drops


def check_small_price_is_carried():
    """A price far below the unit shows as often as it should."""
    unit = 1 / PRICE_ONE
    bench, frames = filled(900, options(limit=1000, target=0,
                                        gamma=unit / 3000, feedback=PRICE))
    due = sum(backlog / 3000 for backlog, _ in frames)
    got = sum(price_of(frame) for _, frame in frames)
    assert all(price_of(frame) <= 1 for _, frame in frames)
    variance = sum(backlog / 3000 * (1 - backlog / 3000)
                   for backlog, _ in frames)
    note(f"{got} units where {due:.1f} are due")
    assert abs(got - due) <= SIGMA * math.sqrt(variance)
    assert bench.stats().x.carried == len(frames)


def check_chain_of_queues():
    """Two queues: the second adds to what the first one wrote."""
    data = options(limit=500, target=0, gamma=0.0213, feedback=PRICE)
    _, first = filled(200, data)
    guest_base.cleanup()
    passed = iter([price_of(frame) for _, frame in first])
    before = []

    def again(number, size, tos):
        before.append(next(passed, 77))
        return carrier(number, size, tos, before[-1])

    _, second = filled(250, data, again)
    total = due = 0
    for backlog, frame in second:
        was = before[frame.number - 1]
        units = 0.0213 * backlog * PRICE_ONE
        assert math.floor(units - 1e-3) <= price_of(frame) - was <= \
            math.ceil(units + 1e-3)
        assert frame.checksum_ok
        total += price_of(frame) - was
        due += units
    assert abs(total - due) <= SIGMA * math.sqrt(len(second) / 4)


def check_saturation():
    """The sum stops one below the end of the field."""
    values = (0, 1, 32767, 60000, 65533, 65534, 65535)

    def make(number, size, tos):
        return carrier(number, size, tos, values[number % len(values)])

    # From 16 * 1.0 on nothing fits, whatever was there.
    bench, frames = filled(60, options(limit=1000, target=0, gamma=1,
                                       feedback=PRICE), make)
    over = 0
    for backlog, frame in frames:
        total = values[frame.number % len(values)] + backlog * PRICE_ONE
        assert price_of(frame) == min(total, PRICE_MAX), (backlog, total)
        assert frame.checksum_ok
        over += total > PRICE_MAX
    assert bench.stats().x.saturated == over > len(values)
    assert bench.stats().x.carried == len(frames)


def check_uncarried():
    """What cannot carry a price passes, and is counted."""
    makes = {
        "IPv6": ipv6, "not IP": other, "no DF": ipv4,
        "first fragment": lambda *words: carrier(*words, fragment=0x6000),
        "fragment": lambda *words: carrier(*words, fragment=0x4010),
        "last fragment": lambda *words: carrier(*words, fragment=0x0010)}
    for feedback in (PRICE, FOUR_BIT):
        for name, make in makes.items():
            bench, frames = filled(50, options(limit=1000, target=0, gamma=1,
                                               feedback=feedback), make)
            for _, frame in frames:
                assert frame.frame == make(frame.number, 200, ECT0), name
            stats = bench.stats()
            assert stats.x.uncarried == len(frames) > 40, (name, stats.x)
            assert not stats.x.carried and not stats.x.price_drops
            assert not stats.drops, name
            guest_base.cleanup()
    # A full queue still drops.
    bench = Bench()
    bench.htb(HOLD_BPS, 1000, options(limit=10, target=0, feedback=PRICE))
    for _ in range(60):
        bench.send(1000, ECT0, carrier)
    assert bench.stats().x.full_drops >= 45


def check_vlan():
    """The tags of VLANs are no hindrance, and are not written to."""
    for tags in (b"\x81\x00\x00\x07", b"\x88\xa8\x45\x02\x81\x00\x60\x20"):
        def make(number, size, tos, tags=tags):
            frame = carrier(number, size - len(tags), tos)
            return frame[:12] + tags + frame[12:]

        bench = Bench()
        bench.htb(HOLD_BPS, 1000, options(limit=1000, target=0, gamma=0.1,
                                          feedback=PRICE))
        for _ in range(40):
            bench.send(200, ECT0, make)
        bench.htb_rate(10**9, 1000)
        time.sleep(5)
        stats = bench.stats()
        assert stats.qlen == 0 and stats.x.carried == 40, (tags, stats.x)
        # The kernel takes the outer tag off before it shows a frame.
        frames = []
        while bench.poll.poll(0):
            frames.append(bench.into.recv(2048))
        assert len(frames) == 40
        inner = tags[4:] + b"\x08\x00"
        assert all(frame[12:].startswith((tags, inner)) for frame in frames), tags
        guest_base.cleanup()


def check_four_bit():
    """Each bit is set with its own probability, and bits are only added."""
    k = (math.log(phi) / math.log(1.007)
         for phi in (1.06, 1.007, 1.001, 1.00015))
    bench, frames = filled(990, options(limit=1000, target=0, gamma=0.003,
                                        feedback=FOUR_BIT))
    for bit, factor in enumerate(k):
        chances = [-math.expm1(-factor * 0.003 * backlog)
                   for backlog, _ in frames]
        hits = sum(price_of(frame) >> bit & 1 for _, frame in frames)
        sigma = (hits - sum(chances)) / math.sqrt(
            sum(chance * (1 - chance) for chance in chances))
        note(f"bit {bit}: {hits} of {len(frames)}, {sum(chances):.1f} due, "
             f"{sigma:+.2f} sigma")
        assert abs(sigma) <= SIGMA
    assert all(price_of(frame) < 16 and frame.checksum_ok
               for _, frame in frames)
    assert bench.stats().x.carried == len(frames)
    guest_base.cleanup()

    values = (0, 5, 0x8000, 0xFFF0, 0xFFFF)

    def make(number, size, tos):
        return carrier(number, size, tos, values[number % len(values)])

    _, frames = filled(900, options(limit=1000, target=0, gamma=1,
                                    feedback=FOUR_BIT), make)
    for backlog, frame in frames:
        was = values[frame.number % len(values)]
        assert price_of(frame) & ~15 == was & ~15
        assert price_of(frame) & was == was and frame.checksum_ok
        if backlog > 25:
            assert price_of(frame) & 2, "exp(-25)"
    guest_base.cleanup()
    # Certain is the mark of vqm, not its bits.
    bench = Bench()
    bench.htb(HOLD_BPS, 1000, options(law=VQM, rate=1000, limit=500,
                                      scale=0.02, feedback=FOUR_BIT))
    for _ in range(490):
        bench.send(100, ECT0, carrier)
    bench.htb_rate(10**9, 1000)
    frames = bench.drain(2)
    hits = sum(price_of(frame) >> 1 & 1 for frame in frames[-400:])
    assert abs(hits - 400 * -math.expm1(-1)) < SIGMA * 10, hits


def no_tso(device):
    """Let segments be separated before the device: SIOCETHTOOL, STSO."""
    sock = socket.socket()
    value = bytearray(struct.pack("=II", 0x1F, 0))
    import ctypes
    buffer = (ctypes.c_char * 8).from_buffer(value)
    request = struct.pack("16sP", device.encode(), ctypes.addressof(buffer))
    fcntl.ioctl(sock, 0x8946, request.ljust(40, b"\0"))
    sock.close()


def check_super_packets():
    """All segments of a super-packet of TCP carry the one price."""
    for flags in (INDEPENDENT, ECN):
        bench = Bench()
        with bench.a:
            no_tso("va")
        bench.htb(HOLD_BPS, 60000, options(limit=1000, target=0, gamma=0.01,
                                           flags=flags, feedback=PRICE))
        raw = bench.virtio()
        for _ in range(20):
            raw.send(super_packet(10, carrier))
        bench.drain()
        stats = bench.stats()
        held = stats.qlen
        bench.change(reset=True)
        bench.htb_rate(10**9, 60000)
        frames = bench.drain(200)
        assert all(frame.size == 1054 and frame.checksum_ok
                   for frame in frames), [frame.size for frame in frames]
        stats = bench.stats()
        assert stats.x.carried == stats.x.packets and not stats.x.uncarried
        if flags & SPLIT_GSO:
            frames = frames[-held:]
            backlogs = range(held, 0, -1)
        else:
            frames = frames[-10 * held:]
            backlogs = [10 * left for left in range(held, 0, -1)
                        for _ in range(10)]
            for at in range(0, len(frames), 10):
                assert len({price_of(frame)
                            for frame in frames[at:at + 10]}) == 1
        assert len(frames) == len(backlogs) >= 100
        carried_prices([(0, 0.01 * backlog, 1e-9, frame)
                        for backlog, frame in zip(backlogs, frames)]
                       [::1 if flags & SPLIT_GSO else 10])
        guest_base.cleanup()


def check_super_packets_of_udp():
    """Those of UDP cannot: whole they are counted, split they carry it."""
    for flags in (INDEPENDENT, ECN):
        bench = Bench()
        bench.htb(HOLD_BPS, 60000, options(limit=1000, target=0, gamma=0.01,
                                           flags=flags, feedback=PRICE))
        with bench.a:
            sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sender.setsockopt(socket.IPPROTO_UDP, 103, 1000)
        sender.setsockopt(socket.IPPROTO_IP, 10, 2)
        for _ in range(20):
            sender.sendto(bytes(10000), ("10.0.0.2", 5000))
        sender.close()
        bench.htb_rate(10**9, 60000)
        bench.drain(200)
        stats = bench.stats()
        note(f"flags {flags}: {stats.x}")
        assert stats.x.carried + stats.x.uncarried == 200
        assert bool(stats.x.uncarried) != bool(flags & SPLIT_GSO)
        guest_base.cleanup()


if __name__ == "__main__":
    guest_base.main(globals())
