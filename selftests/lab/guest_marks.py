# SPDX-License-Identifier: GPL-2.0
"""What the qdisc sbrm marks and drops for its price, packet by packet."""

import math
import random
import struct

import guest_base
from bench import (CE, DEFAULTS, ECT0, ECT1, FAST_BPS, HOLD_BPS, INDEPENDENT,
                   NOT_ECT, SIGMA, Bench, Model, deviation, ip_sum, ipv4, ipv6,
                   other, probability)
from guest_base import SETTINGS, chi_square_limit, note
from rtnl import BYTES, DITHER, NODROP, PRICE_DROP, SPLIT_GSO, options

BACKLOGS = (6, 10, 20, 40, 80, 160)
TARGET, GAMMA = 5, 0.02


def frequencies(bench, draws_each, gamma, target, backlogs, in_bytes=False,
                **packets):
    """Draw at each backlog: every frequency and their chi-square must fit.

    With dither the hits of the one flow are those due, to within two, and the
    chi-square only has an upper bound; without, they are independent.
    """
    dither = bench.stats().flags & DITHER
    model = Model(bench, in_bytes)
    total = 0.0
    for backlog in backlogs:
        # The first departures still come from the level before.
        model.run(5, backlog, **packets)
        model.draws.clear()
        model.run(draws_each, backlog, **packets)
        count, hits, expected, sigma = deviation(model.draws, gamma, target)
        note(f"backlog {backlog}: {hits} of {count} where {expected:.1f} were "
             f"due, {sigma:+.2f} sigma")
        assert abs(sigma) <= SIGMA, "the frequency is off"
        if dither:
            assert abs(hits - expected) <= 2, "not shared out evenly"
        total += sigma * sigma
    limit = chi_square_limit(len(backlogs))
    note(f"chi-square {total:.1f}, limit {limit:.1f}")
    assert total <= limit
    if not dither:
        # As many degrees of freedom: draws that are too even are no draws.
        assert total >= chi_square_limit(len(backlogs), -3.1)
    return model


def check_marks_in_packets():
    """ECT packets are marked with probability 1 - exp(-gamma [b - b0]+)."""
    for flags in (INDEPENDENT, DEFAULTS):
        bench = Bench()
        bench.htb(FAST_BPS, 1000, options(limit=1000, target=TARGET,
                                          gamma=GAMMA, flags=flags))
        model = frequencies(bench, 1000, GAMMA, TARGET, BACKLOGS)
        stats = model.agrees()
        assert stats.x.marks == model.marks and not model.drops
        guest_base.cleanup()


def check_dither_by_flow():
    """Dither shares out the marks of each flow, and their places are random.

    Sixteen flows in turn (by UDP port) with m near 0.3: each has its share to
    within two. The gaps between the marks of one flow vary, and the marks of
    two flows do not come together.
    """
    bench = Bench()
    bench.htb(FAST_BPS, 1000, options(limit=1000, target=0, gamma=0.0357,
                                      flags=DEFAULTS))
    flows = 16

    def make(number, size, tos):
        frame = bytearray(ipv4(number, size, tos))
        frame[35] = number % flows
        return bytes(frame)

    model = Model(bench)
    model.run(20, 10, make=make)
    first, before = model.left, len(model.draws)
    model.run(200 * flows, 10, make=make)
    draws = model.draws[before:]
    m = probability(0.0357, 0, 10)
    hits = [[] for _ in range(flows)]
    for index, (backlog, hit) in enumerate(draws):
        assert backlog == 10
        hits[(first + index) % flows].append(hit)
    uneven = [sum(one) for one in hits if abs(sum(one) - len(one) * m) > 2]
    note(f"marks of each flow {[sum(one) for one in hits]}, "
         f"{200 * m:.1f} are due")
    assert not uneven, uneven
    places = [index for index, hit in enumerate(hits[0]) if hit]
    gaps = {after - before for before, after in zip(places, places[1:])}
    assert len(gaps) > 2, f"the gaps are always {gaps}"
    both = sum(one * two for one, two in zip(hits[1], hits[2]))
    due = sum(hits[1]) * sum(hits[2]) / 200
    assert abs(both - due) < 4.5 * math.sqrt(due), (both, due)


def check_dither_of_many_flows():
    """Each of 200 flows has its own marks; of 5000 some collide."""
    # Two flows with one account would take turns for long, with m of a half. Of 400
    # flows, one queue in 16 has a set with a fifth flow; of 200, one in 500.
    gamma, each, flows = 0.0693, 40, 200
    bench = Bench()
    bench.htb(FAST_BPS, 1000, options(limit=1000, target=0, gamma=gamma,
                                      flags=DEFAULTS))

    # In any order: a hash may spread what is in a row.
    ports = random.Random(SETTINGS["seed"]).sample(range(1024, 65536), 5000)

    def flows_of(count):
        def make(number, size, tos):
            frame = bytearray(ipv4(number, size, tos))
            frame[34:36] = struct.pack(">H", ports[number % count])
            return bytes(frame)
        return make

    model = Model(bench)
    model.run(20, 10, make=flows_of(flows))
    first, before = model.left, len(model.draws)
    model.run(each * flows, 10, make=flows_of(flows))
    marks = [0] * flows
    for index, (_, hit) in enumerate(model.draws[before:]):
        marks[(first + index) % flows] += hit
    due = each * probability(gamma, 0, 10)
    uneven = [mark for mark in marks if abs(mark - due) > 1.5]
    note(f"{min(marks)} to {max(marks)} marks for each flow, {due:.1f} are due")
    assert not uneven, uneven
    assert not bench.stats().x.collisions

    # More than there are accounts, within a second.
    bench.htb_rate(160 * 10**6, 1000)
    model.run(2 * 5000, 10, make=flows_of(5000))
    found = bench.stats().x.collisions
    note(f"5000 flows: {found} collisions")
    assert found > 1000


def check_dither_without_ports():
    """Packets whose ports are not where most have theirs are one flow."""
    def shape(length, fragment, protocol):
        def make(number, size, tos):
            frame = bytearray(ipv4(number, size, tos))
            frame[14] = 0x40 | length
            frame[20:22] = struct.pack(">H", fragment)
            frame[23] = protocol
            frame[34:38] = struct.pack(">I", number * 40503)
            frame[24:26] = bytes(2)
            frame[24:26] = struct.pack(">H", ip_sum(frame[14:14 + 4 * length]))
            return bytes(frame)
        return make

    for name, make in {"first fragment": shape(5, 0x2000, 17),
                       "fragment": shape(5, 0x2010, 17),
                       "last fragment": shape(5, 0x0010, 6),
                       "options": shape(6, 0x4000, 17),
                       "no protocol with ports": shape(5, 0, 253)}.items():
        bench = Bench()
        bench.htb(FAST_BPS, 1000, options(limit=1000, target=0, gamma=0.0357,
                                          flags=DEFAULTS))
        model = Model(bench)
        model.run(20, 10, make=make)
        model.draws.clear()
        model.run(300, 10, make=make)
        _, hits, expected, _ = deviation(model.draws, 0.0357, 0)
        note(f"{name}: {hits} where {expected:.1f} were due")
        assert abs(hits - expected) <= 2, name
        guest_base.cleanup()


def check_marks_in_bytes():
    """The same when backlog, target and gamma count bytes of mixed sizes."""
    bench = Bench()
    sizes = (100, 1000, 60, 1514, 333)
    gamma = GAMMA / 1000
    bench.htb(FAST_BPS, 1514, options(limit=10**6, target=5000, gamma=gamma,
                                      flags=INDEPENDENT | BYTES))
    model = frequencies(bench, 600, gamma, 5000,
                        [1000 * backlog for backlog in BACKLOGS], True,
                        sizes=sizes)
    stats = model.agrees()
    assert stats.x.marks == model.marks and not model.drops


def check_drops_of_others():
    """price-drop: packets that are not ECN-capable are dropped as often."""
    bench = Bench()
    bench.htb(FAST_BPS, 1000, options(limit=1000, target=TARGET, gamma=GAMMA,
                                      flags=INDEPENDENT | PRICE_DROP))
    model = frequencies(bench, 600, GAMMA, TARGET, BACKLOGS[:5], tos=NOT_ECT)
    stats = model.agrees()
    assert stats.x.marks == 0 and stats.x.full_drops == 0


def check_drops_of_other_protocols():
    """price-drop: what is not IP pays by drops too."""
    bench = Bench()
    bench.htb(FAST_BPS, 1000, options(limit=1000, target=TARGET, gamma=GAMMA,
                                      flags=INDEPENDENT | PRICE_DROP))
    frequencies(bench, 300, GAMMA, TARGET, (20, 40), make=other).agrees()


def check_drop_mode():
    """drop price-drop: ECT packets are dropped and nothing is marked."""
    bench = Bench()
    bench.htb(FAST_BPS, 1000, options(limit=1000, target=TARGET, gamma=GAMMA,
                                      flags=SPLIT_GSO | PRICE_DROP))
    model = frequencies(bench, 600, GAMMA, TARGET, BACKLOGS[:5])
    stats = model.agrees()
    assert stats.x.marks == model.marks == 0


def check_nodrop():
    """nodrop lets packets that are not ECN-capable pass, and marks others."""
    bench = Bench()
    bench.htb(FAST_BPS, 1000, options(limit=1000, target=0, gamma=1,
                                      flags=DEFAULTS | NODROP))
    model = Model(bench)
    model.run(300, 50, tos=NOT_ECT)
    assert not model.drops
    model.run(50, 50)
    model.draws.clear()
    model.run(200, 50)
    assert all(hit for _, hit in model.draws), "p = 1 - exp(-50)"
    stats = model.agrees()
    assert stats.x.marks == model.marks


def check_code_points():
    """ECT(0), ECT(1) and CE leave as CE, DSCP and checksum are kept."""
    bench = Bench()
    # exp(-199): every packet is marked. Dithered, the draws of the first ones,
    # which see no backlog yet, would be taken into account by those after.
    bench.htb(HOLD_BPS, 1000, options(limit=1000, target=0, gamma=1,
                                      flags=INDEPENDENT | PRICE_DROP))
    tos_values = [dscp << 2 | ecn for dscp in (0, 1, 46, 63)
                  for ecn in (ECT0, ECT1, CE, NOT_ECT)]
    sent = {}
    # The first two leave at once, before there is a backlog to speak of.
    for _ in range(4):
        bench.send()
    early = {frame.number for frame in bench.drain()}
    for make in (ipv4, ipv6):
        for tos in tos_values:
            sent[bench.send(200, tos, make)] = make, tos
    for _ in range(200):
        bench.send()
    before = bench.stats()
    bench.htb_rate(10**9, 1000)
    frames = {frame.number: frame for frame in bench.drain(1)}
    for number, (make, tos) in sent.items():
        if tos & 3 == NOT_ECT:
            assert number not in frames, f"tos {tos} was not dropped"
            continue
        frame = frames[number]
        assert frame.tos == tos | CE, f"{tos} became {frame.tos}"
        assert frame.checksum_ok, f"the checksum is wrong for tos {tos}"
        # Nothing else has changed.
        expected = make(number, 200, tos | CE)
        assert frame.frame == expected, f"tos {tos}: changed elsewhere"
    stats = bench.stats()
    assert stats.x.price_drops == 8 and stats.qlen == stats.backlog == 0
    assert before.qlen == 4 - len(early) + 32 + 200
    assert stats.packets == 204 + 24


def check_peeking_parent():
    """Below a TBF, which peeks, each packet pays once and counts stay right."""
    bench = Bench()
    bench.tbf(FAST_BPS, 1000, options(limit=1000, target=TARGET, gamma=GAMMA,
                                      flags=INDEPENDENT))
    # One packet is peeked at, and has paid: the FIFO holds one less.
    total = 0
    for backlog in (10, 40, 80):
        marks = count = 0
        bench.change(reset=True)
        while bench.stats().qlen < backlog + 1:
            bench.send()
        bench.drain()
        start = bench.stats()
        for _ in range(800):
            frame = bench.receive(10)
            bench.send()
            marks += frame.ce
            count += 1
        stats = bench.stats()
        assert stats.qlen == bench.parent().qlen == backlog + 1
        assert stats.backlog == 1000 * stats.qlen == bench.parent().backlog
        assert stats.x.packets - start.x.packets == count
        assert stats.x.backlog_sum - start.x.backlog_sum == count * backlog
        # A peeked packet pays when it is peeked at.
        charged = stats.x.marks - start.x.marks
        assert abs(charged - marks) <= 1
        m = probability(GAMMA, TARGET, backlog)
        sigma = (charged - count * m) / math.sqrt(count * m * (1 - m))
        note(f"backlog {backlog}: {charged} of {count}, {sigma:+.2f} sigma")
        assert abs(sigma) <= SIGMA
        total += sigma * sigma
    assert total <= chi_square_limit(3)
    sent = bench.number
    bench.drain(5)
    stats = bench.stats()
    assert stats.packets == sent and stats.qlen == stats.backlog == 0
    assert bench.parent().qlen == bench.parent().backlog == 0


if __name__ == "__main__":
    guest_base.main(globals())
