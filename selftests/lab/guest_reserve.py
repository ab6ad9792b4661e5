# SPDX-License-Identifier: GPL-2.0
"""A window beside the rate, and a reservation at the queue (PP94 10.3).

fq_rr with `reserve` packet by packet against the reference, with arrivals that
are as hostile as they can be; and pp with `window` beside a flood.
"""

import itertools
import random

import guest_base
from bench import super_packet
from fq_rr_bench import FLOWS, FqBench, Pair
from fq_rr_model import Reference
from guest_base import note, refused
from pp_bench import SYSCTL, fair_path, look, pp_info, set_rate
from rtnl import DROP_LAST, DROP_LONGEST, DROP_TAIL_OF_LONGEST, DRR, RR, WFQ
from tcp_bench import info, pump

CUT_OFF = 128
RULES = (DROP_TAIL_OF_LONGEST, DROP_LONGEST)


def reserved(service, overflow, in_bytes, limit, reserve):
    """A bench with a reservation, and the reference beside it."""
    return Pair(FqBench(service=service, overflow=overflow, limit=limit,
                        longest=int(in_bytes), quantum=600, reserve=reserve),
                Reference(service, overflow, in_bytes, limit, 600,
                          reserve=reserve))


def untie(pair):
    """Of two queues with as many bytes either may be the longest."""
    while pair.reference.in_bytes and pair.reference.tied():
        pair.step()


def attack(pair, rng, packets, polite, rude):
    """Bursts of all at once: `polite` flows stay within the reservation, `rude`
    ones send as many as they like; a packet of a polite flow is never dropped."""
    reference, reserve = pair.reference, pair.reference.reserve
    until = pair.sent + packets
    while pair.sent < until:
        # Floods, bursts of one flow, and all polite flows up to their right.
        flow = rng.choice([*polite, *rude, *rude])
        burst = rng.choice((1, reserve, 3 * reserve, reference.limit))
        for _ in range(burst):
            untie(pair)
            if flow in polite and \
                    len(reference.flows[flow].packets) >= reserve:
                break
            before = reference.last_drops, reference.longest_drops
            pair.send(flow, rng.randrange(60, 1514))
            if flow in polite:
                # Room was made, if at all, at the cost of a rude one.
                assert reference.last_drops == before[0]
        for _ in range(rng.choice((0, 0, 1, 2, reference.limit // 4))):
            if reference.busy():
                pair.step()


def check_never_lost():
    """As many flows as there is room for: a flow within its reservation loses
    nothing, whatever the others send, in every service and rule."""
    rng = random.Random(guest_base.SETTINGS["seed"] + 31)
    for service, overflow, in_bytes in itertools.product(
            (RR, DRR, WFQ), RULES, (False, True)):
        count = rng.choice((2, 3, FLOWS))
        reserve = rng.choice((1, 2, 5, 9)) if count < FLOWS else 2
        limit = reserve * count + rng.choice((0, 1, 20))
        pair = reserved(service, overflow, in_bytes, limit, reserve)
        flows = rng.sample(range(FLOWS), count)
        polite, rude = flows[:(count + 1) // 2], flows[(count + 1) // 2:]
        for _ in range(3):
            attack(pair, rng, 80, polite, rude)
            pair.agrees()
        classes = pair.bench.classes()
        lost = sum(classes[flow + 1].drops for flow in polite
                   if flow + 1 in classes)
        stats = pair.bench.stats()
        note(f"service {service} overflow {overflow} bytes {in_bytes}: {reserve} "
             f"of {limit} for each of {count}, {stats.drops} dropped, {lost} of "
             f"flows within it, at most {stats.x.packets_max}")
        assert lost == 0 and stats.drops > 20 and stats.x.refused == 0
        pair.drain()
        pair.agrees()
        pair.bench.empty()
        guest_base.cleanup()


def check_refused():
    """More flows than reservations: the others have none, and are counted."""
    rng = random.Random(guest_base.SETTINGS["seed"] + 32)
    refusals = 0
    for overflow, in_bytes in itertools.product(RULES, (False, True)):
        pair = reserved(RR, overflow, in_bytes, 25, 8)
        for _ in range(3):
            attack(pair, rng, 200, (), range(6))
            pair.agrees()
        x = pair.bench.stats().x
        note(f"overflow {overflow} bytes {in_bytes}: {x.refused} refused of "
             f"{x.new_flows}, {x.owners} of {x.flows} own")
        assert x.owners <= 3
        refusals += x.refused
        pair.drain()
        pair.agrees()
        pair.bench.empty()
        guest_base.cleanup()
    assert refusals > 10


def check_changes():
    """The option while packets wait: rights are given anew; nonsense is refused."""
    bench = FqBench(limit=40, reserve=10)
    for flow, count in ((1, 20), (2, 5), (3, 5), (4, 5), (5, 5)):
        for _ in range(count):
            assert bench.put(flow)[1]
    bench.drain()
    x = bench.stats().x
    assert (x.owners, x.refused) == (4, 1), x
    for words, says in (({"reserve": 41}, "more than limit"),
                        ({"limit": 9}, "more than limit"),
                        ({"overflow": DROP_LAST}, "drop-last")):
        try:
            bench.change(**words)
        except Exception as answer:
            assert says in str(answer), answer
        else:
            raise AssertionError(f"took {words}")
    assert "drop-last" in refused("tc qdisc add dev lo root fq_rr reserve 1 "
                                  "overflow drop-last")
    bench.change(reserve=5)
    x = bench.stats().x
    assert x.owners == 5 and x.longest >= 13, x
    assert all(one.reserve == 5 for one in bench.classes().values() if one.qlen)
    # Full, and the longest gives way to who has a right to one packet more.
    while bench.stats().qlen < 40:
        bench.put(1)
    drops = bench.classes()[2].drops
    assert bench.put(6)[1] and bench.classes()[2].drops == drops + 1
    bench.change(reserve=0)
    x = bench.stats().x
    assert x.owners == 0 and x.longest == bench.classes()[2].qlen > 15, x
    assert "reserve" not in bench.a.run("tc qdisc show dev va")
    bench.drain(2)
    bench.empty()


def check_memory():
    """Memory bounds what is owned, too: what has no room then goes itself."""
    for overflow in RULES:
        bench = FqBench(overflow=overflow, limit=1000, reserve=100,
                        memory_limit=20000)
        for _ in range(60):
            for flow in range(3):
                bench.put(flow, 1514)
            assert bench.stats().x.memory <= 20000
        stats = bench.stats()
        note(f"{stats.x.memory_max} bytes, {stats.x.memory_drops} dropped")
        assert stats.x.last_drops == stats.x.memory_drops == stats.drops > 100
        bench.drain(3)
        bench.empty()
        guest_base.cleanup()


def check_segments():
    """Each segment of a super-packet has its own right."""
    bench = FqBench(limit=30, reserve=10)
    for _ in range(40):
        bench.put(1)
    bench.drain()
    raw = bench.virtio()
    raw.send(super_packet(12))
    own = bench.classes()[1]
    x = bench.stats().x
    note(f"{own.qlen} of 12 segments queued, {own.drops} dropped, {x}")
    assert own.qlen >= 10 and bench.classes()[2].drops >= 10
    assert bench.stats().qlen == bench.parent().qlen == 30


# --- pp --------------------------------------------------------------------

WINDOW, OURS = 30, 4
ROOM = 5 * (WINDOW + 1)


def beside_flood(aqm, window):
    """Four flows of pp that start at once and want far too much, beside cubic:
    (drops of all, of pp's retransmissions, most outstanding, goodputs)."""
    path = fair_path(200, aqm=aqm)
    path.s.sysctl(SYSCTL + "window", window)
    path.sink("reno", 5001)
    flood = path.connect("cubic", port=5001)
    pump([flood], 3)
    flows = [path.connect("pp") for _ in range(OURS)]
    most = 0
    before = [info(one).bytes_acked for one in flows]
    for _ in range(160):
        pump([flood, *flows], 0.05)
        most = max(most, *(info(one).unacked for one in flows))
    rates = [(info(one).bytes_acked - start) / 8
             for one, start in zip(flows, before)]
    again = sum(info(one).total_retrans for one in flows)
    stats = path.stats()
    note(f"{aqm}, window {window}: {stats.drops} dropped, {again} sent again by "
         f"pp, at most {most} outstanding, cubic {info(flood).total_retrans} "
         f"again, rates {[round(one * 8 / 1e6, 3) for one in rates]} Mb/s")
    guest_base.cleanup()
    return stats.drops, again, most, rates


def check_pp_loses_nothing():
    """pp with a window that the queue has room for sends nothing again, though a
    flow of cubic fills the rest of the buffer and they want 200 packets each;
    without window and reservation it does."""
    aqm = f"fq_rr limit {ROOM} overflow drop-longest"
    drops, again, most, _ = beside_flood(aqm, 0)
    assert drops and again and most > WINDOW
    drops, again, most, rates = beside_flood(
        f"{aqm} reserve {WINDOW + 1}", WINDOW)
    # cubic is cut down, and pp is not: its share is a fifth.
    assert drops > 0 and again == 0 and most <= WINDOW
    fair = 10**7 / 8 * 1448 / 1514 / 5
    assert all(one > 0.95 * fair for one in rates), (rates, fair)


def check_any_share():
    """The rate of the link, and so the share of each flow, becomes a fifth and then ten
    times as large, while cubic fills what is not reserved: pp sends nothing again."""
    path = fair_path(200, aqm=f"fq_rr limit {ROOM} overflow drop-longest "
                              f"reserve {WINDOW + 1}")
    path.s.sysctl(SYSCTL + "window", WINDOW)
    path.sink("reno", 5001)
    flood = path.connect("cubic", port=5001)
    flows = [path.connect("pp") for _ in range(OURS)]
    for rate_mbit in (10, 2, 20, 4, 10):
        set_rate(path, rate_mbit * 10**6)
        before = [info(one).bytes_acked for one in flows]
        for _ in range(30):
            pump([flood, *flows], 0.1)
            # What a flow has in the queue is a part of it.
            assert sum(min(info(one).unacked, WINDOW) for one in flows) <= ROOM
        rates = [(info(one).bytes_acked - start) * 8 / 3e6
                 for one, start in zip(flows, before)]
        again = sum(info(one).total_retrans for one in flows)
        note(f"{rate_mbit} Mb/s: {[round(one, 3) for one in rates]} Mb/s, {again} sent "
             f"again by pp, {path.stats().drops} dropped")
        assert again == 0 and min(rates) > 0.1 * rate_mbit
    assert path.stats().drops > 0


def joins(reserved, aqm):
    """Four flows, one after another: (drops, used of the link, at most outstanding beyond
    what the path holds with the share of each, of the samples of the last flow cut off)."""
    path = fair_path(10, aqm=aqm, rtt_ms=100)
    path.s.sysctl(SYSCTL + "reserved", reserved)
    flows, beyond, cut, seen = [], 0, 0, 0
    for _ in range(OURS):
        flows.append(path.connect("pp"))
        pump(flows, 3)
        for _ in range(20):
            pump(flows, 0.05)
            for one in flows:
                pp, tcp = pp_info(one), info(one)
                room = pp.bw / 8 / 1448 * pp.delay_us / 1e6
                beyond = max(beyond, tcp.unacked - room)
                cut += bool(pp.state & CUT_OFF)
                seen += 1
    before = path.stats()
    pump(flows, 4)
    after = path.stats()
    used = (after.bytes - before.bytes) * 8 / 4 / 10**7
    note(f"{aqm}, reserved {reserved}: {after.drops} dropped, {used:.4f} used, {beyond:.1f} "
         f"outstanding beyond the path, cut off in {cut} of {seen}")
    guest_base.cleanup()
    return after.drops, used, beyond


def check_reserved():
    """A window that follows the path: no more than what is reserved waits, and the link is
    as full as without. It is at least the setpoint and four packets."""
    _, free, _ = joins(0, "fq_rr limit 1000")
    for reserved, room in ((30, 30), (1, 14)):
        drops, used, beyond = joins(reserved, f"fq_rr limit {OURS * room} reserve {room}")
        assert drops == 0 and used > free - 0.01 and beyond <= room + 1


def check_window_binds():
    """Half of what the path holds is sent: half of the link, still in pairs, and
    it is not taken for a shared queue. The window follows the setting at once."""
    path = fair_path(20, rtt_ms=100)
    pipe = 0.1 * 10**7 / 8 / 1514
    flow = path.connect("pp")
    for window, used in ((round(pipe / 2), 0.5), (0, 1), (round(pipe / 4), 0.25)):
        path.s.sysctl(SYSCTL + "window", window)
        pump([flow], 2)
        before = info(flow).bytes_acked
        seen = look(path, flow, 4, 0.02)
        after = info(flow)
        rate = (after.bytes_acked - before) * 8 / 4 / (10**7 * 1448 / 1514)
        pp = pp_info(flow)
        cut = sum(1 for *_, one, _ in seen if one.state & CUT_OFF) / len(seen)
        note(f"window {window}: {rate:.3f} of the link, {after.unacked} "
             f"outstanding, cut off in {cut:.2f} of the samples, {pp}")
        assert abs(rate - used) < 0.04, (window, rate)
        assert window == 0 or max(one.unacked for *_, one in seen) <= window
        assert (cut > 0.5) == bool(window)
        # Only pairs tell the rate of the link; one that finds it idle is closer
        # by what the token bucket has of its 47 bytes.
        assert 0.99 < pp.bw / (10**7 * 1448 / 1514) < 1.01 + 47 / 1514
        assert not any(one.state // 16 % 2 for *_, one, _ in seen)


def check_small_windows():
    """A window of one segment, of two and of less than a train: data arrives."""
    path = fair_path(20, rtt_ms=20)
    flow = path.connect("pp")
    for window, train in ((1, 2), (2, 2), (3, 2), (5, 8)):
        path.s.sysctl(SYSCTL + "window", window)
        path.s.sysctl(SYSCTL + "train", train)
        pump([flow], 0.5)
        before = info(flow).bytes_acked
        pump([flow], 2)
        rounds = (info(flow).bytes_acked - before) / 1448 / window / (2 / 0.0212)
        note(f"window {window} train {train}: {rounds:.2f} windows each round "
             f"trip, {info(flow).total_retrans} again")
        assert rounds > 0.5
    assert info(flow).total_retrans == 0


if __name__ == "__main__":
    guest_base.main(globals())
