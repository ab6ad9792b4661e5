# SPDX-License-Identifier: GPL-2.0
"""Limits, changes and super-packets of the qdisc sbrm, packet by packet."""

import math
import socket

import guest_base
from bench import (DEFAULTS, ECT0, FAST_BPS, HOLD_BPS, INDEPENDENT, SIGMA,
                   Bench, Model, deviation, probability, super_packet)
from guest_base import near, note, run
from guest_marks import GAMMA
from rtnl import (BYTES, ECN, GAMMA_AUTO, GAMMA_ONE, NODROP, PRICE_DROP,
                  SPLIT_GSO, Refused, options)


def check_statistics():
    """Price and probability of a dump are those of the backlog."""
    bench = Bench()
    bench.htb(HOLD_BPS, 1000, options(limit=1000, target=7, gamma=0.0123))
    for _ in range(600):
        bench.send()
        stats = bench.stats() if bench.number % 40 == 0 or \
            bench.number < 15 else None
        if not stats:
            continue
        price = round(0.0123 * GAMMA_ONE) * max(stats.qlen - 7, 0) / 2**16
        assert abs(stats.x.price - price) <= 1, (stats.x.price, price)
        expected = probability(0.0123, 7, stats.qlen) * 2**32
        assert abs(stats.x.prob - expected) <= 8, (stats.x.prob, expected)
        assert stats.x.backlog_max >= stats.qlen
        assert stats.qlen == bench.parent().qlen
        assert stats.backlog == 1000 * stats.qlen
    # The top of the scale stands for one.
    bench.change(target=0, gamma=1)
    assert bench.stats().x.prob == 2**32 - 1
    bench.change(limit=1000, target=999)
    assert bench.stats().x.prob == bench.stats().x.price == 0


def check_reset_stats():
    """reset-stats starts the sums again and leaves queue and options."""
    bench = Bench()
    bench.htb(FAST_BPS, 1000, options(limit=60, target=2, gamma=0.05))
    model = Model(bench)
    model.run(100, 50)
    for _ in range(20):
        bench.send()
    before = bench.stats()
    assert before.x.full_drops and before.x.marks and before.x.packets
    bench.change(reset=True)
    after = bench.stats()
    assert after.x[:5] == (0, 0, 0, 0, 0)
    assert after.x.backlog_max == after.qlen == before.qlen
    assert after.settings == before.settings
    assert (after.x.price, after.x.prob) == (before.x.price, before.x.prob)
    bench.drain(1)
    after = bench.stats()
    count = before.qlen
    assert after.x.packets == count
    assert after.x.backlog_sum == count * (count + 1) // 2
    assert after.x.backlog_max == count


def check_peeking_parent_and_drops():
    """Drops below a TBF leave consistent counters, and nothing gets stuck."""
    for target in (0, 1, 5):
        bench = Bench()
        bench.tbf(FAST_BPS, 1000, options(limit=100, target=target, gamma=0.3,
                                          flags=SPLIT_GSO | PRICE_DROP))
        out = 0
        for burst in range(1, 40):
            for _ in range(burst):
                bench.send()
            out += len(bench.drain(2))
            stats, parent = bench.stats(), bench.parent()
            assert stats.qlen == parent.qlen == 0, (stats.qlen, parent.qlen)
            assert stats.backlog == parent.backlog == 0
            assert out + stats.x.price_drops == bench.number
            assert parent.drops == stats.drops == stats.x.price_drops
        assert stats.x.full_drops == 0 and out == stats.packets
        guest_base.cleanup()


def check_emptied_by_drops():
    """A queue that drops its way down never leaves a class half active.

    A dequeue that drops one packet and hands out the last one makes the queue
    empty: the parent must hear of the drop, but not that the class is idle
    while it serves it.
    """
    bands = {
        "htb": ["class add dev va parent 1: classid 1:1 htb rate 80mbit "
                "burst 1000 cburst 1000 quantum 1500"],
        "drr": ["class add dev va parent 1: classid 1:1 drr quantum 1500"],
        "qfq": ["class add dev va parent 1: classid 1:1 qfq weight 1 "
                "maxpkt 2048"],
    }
    for parent, classes in bands.items():
        bench = Bench()
        bench.a.batch("tc", [
            "qdisc add dev va root handle 2: tbf rate 8mbit burst 1000 "
            "limit 10mb",
            f"qdisc add dev va parent 2:1 handle 1: {parent}" +
            (" default 1" if parent == "htb" else ""),
            *classes,
            "filter add dev va parent 1: protocol all matchall classid 1:1"])
        with bench.a:
            bench.rtnl.sbrm("va", options(limit=1000, target=0, gamma=1,
                                          flags=SPLIT_GSO | PRICE_DROP), parent=0x00010001)
        bench.parent_handle, bench.where = 0x00010000, 0x00010001
        out = 0
        for burst in (2, 3, 1, 2, 5, 9, 2, 2, 2, 40, 200, 2, 3, 3, 3):
            for _ in range(burst):
                bench.send()
            out += len(bench.drain(2))
            stats, above = bench.stats(), bench.parent()
            assert stats.qlen == above.qlen == 0, \
                f"{parent}: {stats.qlen} below, {above.qlen} above"
            assert stats.backlog == above.backlog == 0
            assert out + stats.x.price_drops == bench.number, parent
        note(f"{parent}: {out} out, {stats.x.price_drops} dropped")
        guest_base.cleanup()


def check_full():
    """A full queue drops what arrives, counted apart."""
    bench = Bench()
    bench.htb(HOLD_BPS, 1000, options(limit=20, target=5, gamma=GAMMA))
    for _ in range(50):
        bench.send()
    early = len(bench.drain())
    stats = bench.stats()
    assert stats.qlen == stats.x.backlog_max == 20
    assert stats.x.full_drops == stats.drops == 30 - early
    assert bench.parent().qlen == 20
    bench.htb_rate(10**9, 1000)
    numbers = [frame.number for frame in bench.drain(1)]
    assert numbers == list(range(early + 1, early + 21)), numbers


def check_full_in_bytes():
    """In bytes a packet must fit as a whole."""
    bench = Bench()
    bench.htb(HOLD_BPS, 1000, options(limit=5000, target=100, gamma=1e-6,
                                      flags=DEFAULTS | BYTES))
    while not bench.stats().qlen:
        bench.send(1000)
    for _ in range(3):
        bench.send(1000)
    assert bench.stats().backlog == 4000
    bench.send(1001)
    assert bench.stats().x.full_drops == 1
    bench.send(1000)
    stats = bench.stats()
    assert stats.backlog == 5000 and stats.qlen == 5
    assert stats.x.backlog_max == 5000
    bench.send(60)
    assert bench.stats().x.full_drops == 2


def check_change_while_full():
    """A lower limit drops the oldest; other changes keep the queue."""
    bench = Bench()
    bench.htb(HOLD_BPS, 1000, options(limit=100, target=5, gamma=GAMMA))
    for _ in range(100):
        bench.send()
    early = len(bench.drain())
    before = bench.stats()
    assert before.qlen == 100 - early
    for words in ({"gamma": 0.5}, {"gamma": 0}, {"target": 50},
                  {"flags": ECN | NODROP}, {"flags": 0},
                  {"flags": DEFAULTS}, {"law": 0}, {}, {"limit": 2000},
                  {"gamma": 1 / GAMMA_ONE, "target": 0}):
        bench.change(**words)
        stats = bench.stats()
        assert stats.qlen == before.qlen, words
        assert stats.x[:5] == before.x[:5], words
        for word in ("target", "limit"):
            if word in words:
                assert getattr(stats, word) == words[word]
    assert stats.gamma == 1

    bench.change(limit=30)
    stats = bench.stats()
    assert stats.qlen == bench.parent().qlen == 30
    assert stats.backlog == bench.parent().backlog == 30000 or \
        stats.backlog == 30000
    assert stats.drops == stats.x.full_drops == before.qlen - 30
    assert bench.parent().drops >= before.qlen - 30
    bench.htb_rate(10**9, 1000)
    numbers = [frame.number for frame in bench.drain(1)]
    assert numbers == list(range(71, 101)), numbers
    assert bench.stats().qlen == bench.parent().qlen == 0

    # Once more while a TBF holds the packet that it has peeked at.
    guest_base.cleanup()
    bench = Bench()
    bench.tbf(HOLD_BPS, 1000, options(limit=100, target=5, gamma=1e-6))
    for _ in range(60):
        bench.send()
    early = len(bench.drain())
    bench.change(limit=1, target=0)
    stats = bench.stats()
    assert stats.qlen == bench.parent().qlen == 2, stats.qlen
    assert stats.backlog == bench.parent().backlog == 2000
    bench.a.batch("tc", ["qdisc change dev va root handle 1: tbf "
                         "rate 8mbit burst 1000 limit 100mb"])
    numbers = [frame.number for frame in bench.drain(2000)]
    assert numbers == [early + 1, 60], numbers


def check_change_between_packets_and_bytes():
    """The unit may change under load: limits start from their defaults."""
    bench = Bench()
    bench.htb(HOLD_BPS, 1000, options(limit=100, target=5, gamma=GAMMA))
    for _ in range(100):
        bench.send()
    held = bench.stats().qlen
    bench.change(flags=BYTES, selector=BYTES)
    stats = bench.stats()
    assert stats.flags & BYTES and stats.qlen == held
    assert stats.limit == 1514000 and stats.target == 15140
    bench.change(limit=10000, target=5000)
    assert bench.stats().qlen == 10
    bench.change(flags=0, selector=BYTES)
    stats = bench.stats()
    assert (stats.limit, stats.target, stats.qlen) == (1000, 10, 10)


def check_delete_and_replace_while_full():
    """Deleting a full queue leaves nothing behind in its parent."""
    bench = Bench()
    bench.htb(HOLD_BPS, 1000, options(limit=100, target=5, gamma=GAMMA))
    for _ in range(80):
        bench.send()
    assert bench.parent().qlen
    with bench.a:
        bench.rtnl.delete("va", 0x100000, 0x00010001)
    parent = bench.parent()
    assert parent.qlen == parent.backlog == 0
    with bench.a:
        bench.rtnl.sbrm("va", options(limit=50), parent=0x00010001)
        for _ in range(80):
            bench.send()
        assert bench.stats().qlen == bench.parent().qlen == 50
        # By another kind, and back.
        run("tc qdisc replace dev va parent 1:1 handle 20: pfifo limit 10")
        assert bench.parent().qlen == 0
        for _ in range(20):
            bench.send()
        run("tc qdisc replace dev va parent 1:1 handle 10: sbrm limit 40")
    assert bench.parent().qlen == 0
    for _ in range(80):
        bench.send()
    assert bench.stats().qlen == bench.parent().qlen == 40
    # The interface goes away with a full queue on it.
    bench.a.run("ip link set va down")
    assert bench.parent().qlen == 0
    stats = bench.stats()
    assert stats.qlen == stats.backlog == 0 and stats.x.prob == 0
    bench.a.run("ip link set va up")
    bench.send()
    bench.a.run("ip link del va")


def check_root():
    """As the root of a device: replace and delete under traffic."""
    bench = Bench()
    with bench.a:
        for turn in range(10):
            run(f"tc qdisc replace dev va root handle 10: sbrm "
                f"limit {turn + 20} target {turn}")
            for _ in range(20):
                bench.send()
            stats = bench.stats()
            assert stats.limit == turn + 20 and stats.qlen == 0
            if turn % 3 == 2:
                run("tc qdisc del dev va root")
    assert len(bench.drain()) == 200


def check_limit_one():
    """limit 1 and target 0: room for one packet."""
    bench = Bench()
    bench.htb(FAST_BPS, 1000, options(limit=1, target=0, gamma=1,
                                      flags=INDEPENDENT))
    model = Model(bench)
    model.run(1500, 1)
    _, hits, expected, sigma = deviation(model.draws, 1, 0)
    note(f"{hits} marks, {expected:.1f} due, {sigma:+.2f} sigma")
    assert abs(sigma) <= SIGMA
    model.agrees()
    bench.send()
    bench.send()
    stats = bench.stats()
    assert stats.qlen == 1 and stats.x.full_drops >= 1

    # In drop mode the only packet is never dropped for its price.
    bench.drain(1)
    bench.change(flags=SPLIT_GSO | PRICE_DROP)
    sent = bench.number
    for _ in range(100):
        bench.send()
        assert bench.receive(1) is not None
    assert bench.number == sent + 100


def check_extreme_gamma():
    """gamma 1 and 2^-48, limit 2^31 - 1: the arithmetic holds."""
    bench = Bench()
    bench.htb(HOLD_BPS, 1000, options(limit=2**31 - 1, target=2**31 - 2,
                                      gamma=1))
    for _ in range(300):
        bench.send()
    assert bench.stats().x.prob == 0
    bench.change(target=0)
    stats = bench.stats()
    assert stats.x.prob == 2**32 - 1
    assert stats.x.price == stats.qlen << 32
    bench.change(gamma=1 / GAMMA_ONE)
    stats = bench.stats()
    assert stats.gamma == 1 and stats.x.price == 0 and stats.x.prob == 0
    before = stats.x.marks
    bench.htb_rate(10**9, 1000)
    assert not any(frame.ce for frame in bench.drain(1)[3:])
    assert bench.stats().x.marks == before
    # auto: 99 % at the limit, also at the ends of the range.
    for limit, target in ((1, 0), (2, 1), (1000, 10), (2**31 - 1, 0),
                          (2**31 - 1, 2**31 - 2)):
        bench.change(limit=limit, target=target, gamma=0)
        stats = bench.stats()
        assert stats.flags & GAMMA_AUTO
        expected = min(math.log(100) / (limit - target), 1)
        assert near(stats.gamma / GAMMA_ONE, expected, 1e-4) or \
            abs(stats.gamma - expected * GAMMA_ONE) <= 1, \
            (limit, target, stats.gamma)


def check_refusals():
    """Each bad option is refused with a message and changes nothing."""
    bench = Bench()
    bench.htb(HOLD_BPS, 1000, options(limit=100, target=5, gamma=GAMMA))
    good = bench.stats().settings
    bad = (
        {"limit": 0}, {"limit": 2**31}, {"limit": 2**32 - 1},
        {"target": 2**31 - 1}, {"target": 100}, {"limit": 5},
        {"target": 7, "limit": 7}, {"law": 1}, {"law": 2**32 - 1},
        {"gamma": 1 + 1 / GAMMA_ONE}, {"gamma": 2**15},
        {"flags": 256, "selector": 256}, {"flags": 1, "selector": 0},
        {"flags": 1 << 31, "selector": 1 << 31},
        {"flags": NODROP, "selector": NODROP | ECN})
    for words in bad:
        try:
            bench.change(**words)
        except Refused as answer:
            assert answer.errno in (22, 34), (words, answer)
            assert answer.message, f"{words}: refused without a message"
        else:
            raise AssertionError(f"{words} was accepted")
        assert bench.stats().settings == good, words
    message = ""
    try:
        bench.change(target=100)
    except Refused as answer:
        message = answer.message
    assert "below limit" in message, message


def send_super_packet(bench, segments, size, tos=ECT0):
    """One UDP datagram with UDP_SEGMENT: a super-packet at the qdisc."""
    with bench.a:
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
    sender.setsockopt(socket.IPPROTO_UDP, 103, size)
    sender.sendto(bytes(segments * size), ("10.0.0.2", 5000))
    sender.close()


def check_split_gso():
    """split-gso: a super-packet is so many packets, each with its own draw."""
    bench = Bench()
    bench.htb(HOLD_BPS, 1042, options(limit=1000, target=5, gamma=0.05))
    while not bench.stats().qlen:
        bench.send()
    for count in (2, 10, 40):
        before = bench.stats()
        send_super_packet(bench, count, 1000)
        stats, parent = bench.stats(), bench.parent()
        assert stats.qlen - before.qlen == count
        assert stats.backlog - before.backlog == count * 1042
        assert parent.qlen == stats.qlen and parent.backlog == stats.backlog \
            or parent.qlen == stats.qlen
    bench.change(limit=60)
    before = bench.stats()
    send_super_packet(bench, 40, 1000)
    stats = bench.stats()
    assert stats.qlen == bench.parent().qlen == 60
    assert stats.x.full_drops - before.x.full_drops == 40 - (60 - before.qlen)
    # Nothing fits any more: the whole super-packet goes.
    send_super_packet(bench, 40, 1000)
    assert bench.stats().x.full_drops - stats.x.full_drops == 40
    assert bench.stats().qlen == bench.parent().qlen == 60
    bench.htb_rate(10**9, 1042)
    frames = bench.drain(1)
    assert max(frame.size for frame in frames) == 1042
    assert all(frame.checksum_ok for frame in frames)
    stats = bench.stats()
    assert stats.qlen == bench.parent().qlen == stats.backlog == 0
    marked = sum(frame.ce for frame in frames)
    note(f"{marked} of {len(frames)} marked")
    assert 0 < marked < len(frames)


def check_no_split_gso():
    """no-split-gso: counted by segments, priced as a whole."""
    bench = Bench()
    bench.htb(HOLD_BPS, 60000, options(limit=1000, target=5, gamma=0.004,
                                       flags=ECN))
    while not bench.stats().qlen:
        send_super_packet(bench, 20, 1000)
    for _ in range(9):
        send_super_packet(bench, 20, 1000)
    stats = bench.stats()
    assert stats.qlen == bench.parent().qlen == 10
    price = round(0.004 * GAMMA_ONE) * (200 - 5) / 2**16
    assert abs(stats.x.price - price) <= 1, "the backlog counts segments"
    before = stats
    bench.change(reset=True)
    bench.htb_rate(10**9, 60000)
    # HTB looks again when the debt at the old rate would be paid.
    frames = bench.drain(100)
    stats = bench.stats()
    assert stats.x.packets == 200, stats.x
    assert stats.x.backlog_sum == sum(20 * 20 * left
                                      for left in range(1, 11))
    assert stats.x.backlog_max == 200
    whole = [frame for frame in frames if frame.size > 2000]
    assert len(whole) == len(frames) >= 10, [frame.size for frame in frames]
    marked = sum(frame.ce for frame in frames[-10:])
    assert stats.x.marks == 20 * marked
    note(f"{marked} of 10 marked")

    # A limit counts segments too, and one that is too large passes alone.
    bench.change(limit=30, target=0)
    bench.htb_rate(HOLD_BPS, 60000)
    bench.send()
    while not bench.stats().qlen:
        send_super_packet(bench, 40, 1000)
    before = bench.stats()
    send_super_packet(bench, 20, 1000)
    stats = bench.stats()
    assert stats.x.full_drops - before.x.full_drops == 20
    assert stats.qlen == bench.parent().qlen == before.qlen


def check_no_split_gso_from_outside():
    """A super-packet of a virtual machine states no number of segments.

    tun, AF_PACKET with a virtio header and macvtap leave gso_segs at 0 (see
    SKB_GSO_DODGY): it must be computed.
    """
    bench = Bench()
    bench.htb(HOLD_BPS, 60000, options(limit=1000, target=5, gamma=0.004,
                                       flags=ECN))
    raw = bench.virtio()
    while not bench.stats().qlen:
        bench.send()
    before = bench.stats()
    raw.send(super_packet(10))
    stats = bench.stats()
    assert stats.qlen == before.qlen + 1
    price = round(0.004 * GAMMA_ONE) * (before.qlen + 10 - 5) / 2**16
    note(f"counted as {stats.x.price * 2**16 / GAMMA_ONE / 0.004 + 5:.1f}, "
         f"{before.qlen + 10} are right")
    assert abs(stats.x.price - price) <= 1, "the segments were not counted"


def check_tcp_with_tso():
    """TCP with TSO: MTU-sized packets come out of split-gso, none lost."""
    for split in (True, False):
        bench = Bench()
        bench.htb(80000000, 65600 if not split else 1514,
                  options(limit=1000, target=5, gamma=0.01,
                          flags=ECN | SPLIT_GSO if split else ECN))
        with bench.b:
            server = socket.socket()
            server.bind(("10.0.0.2", 80))
            server.listen()
        with bench.a:
            bench.a.sysctl("net.ipv4.tcp_ecn", 1)
            client = socket.socket()
            client.connect(("10.0.0.2", 80))
        there, _ = server.accept()
        there.setblocking(False)
        client.setblocking(False)
        total = 3 << 20
        received = sent = largest = frames = marks = 0
        data = bytes(1 << 16)
        while received < total:
            while sent < total:
                try:
                    sent += client.send(data)
                except BlockingIOError:
                    break
            for frame in bench.drain(0.05):
                if frame.frame[26:30] == bytes((10, 0, 0, 1)):
                    largest = max(largest, frame.size)
                    frames += 1
                    marks += frame.ce
            try:
                while True:
                    received += len(there.recv(1 << 20))
            except BlockingIOError:
                pass
        bench.drain(1)
        stats = bench.stats()
        note(f"split {split}: largest {largest} bytes, {frames} frames, "
             f"{stats.x.packets} packets, {stats.x.marks} marks")
        assert stats.qlen == stats.backlog == bench.parent().qlen == 0
        if split:
            assert largest == 1514
            assert stats.x.packets == frames == stats.packets
            assert stats.x.marks == marks
        else:
            assert largest > 1514
            # Segments of the payload, and the packets without any.
            assert frames < stats.x.packets
            assert stats.packets == stats.x.packets
        guest_base.cleanup()


def check_kind_and_tc():
    """The plugin's words arrive, and a dump can be fed back."""
    bench = Bench()
    lines = (
        "limit 1000 target 10 gamma auto",
        "limit 50 target 0 gamma 1 drop",
        "limit 50 target 0 gamma 1 drop price-drop",
        "limit 300 target 7 gamma 0.015 ecn nodrop no-split-gso",
        "limit 300 target 7 gamma 0.015 ecn price-drop",
        "limit 300 target 7 gamma 0.015 ecn coupled coupling 3.3 small 0b "
        "l4s-ect",
        "bytes limit 300kb target 15kb gamma 8e-5",
    )
    with bench.a:
        for line in lines:
            run(f"tc qdisc replace dev va root handle 10: sbrm {line}")
            first = bench.stats().settings
            shown = run("tc qdisc show dev va").split("refcnt")[1].split(None, 1)[1]
            run("tc qdisc del dev va root")
            run(f"tc qdisc replace dev va root handle 10: sbrm {shown.strip()}")
            assert bench.stats().settings == first, (line, shown)


if __name__ == "__main__":
    guest_base.main(globals())
