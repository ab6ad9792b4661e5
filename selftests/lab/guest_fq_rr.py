# SPDX-License-Identifier: GPL-2.0
"""Behaviour of the qdisc fq_rr, packet by packet."""

import collections
import itertools
import random
import re
import socket
import time

import guest_base
from bench import CHILD, HOLD_BPS, QDISC
from fq_rr_bench import FLOWS, KIND, OVERFLOWS, SERVICES, FqBench, Pair
from fq_rr_model import Reference
from guest_base import note, refused, run
from rtnl import (BY_FLOW, BY_MARK, BY_PRIORITY, DROP_LAST, DROP_LONGEST,
                  DROP_TAIL_OF_LONGEST, DRR, FQ_RR_CLASS_WEIGHT,
                  FQ_RR_WEIGHTS, RR, WFQ, Refused, attr, fq_rr_options, u32)


def arrivals(pair, rng, packets, flows, sizes):
    """Random bursts of random flows, with departures in between."""
    weights = [rng.choice((1, 1, 2, 5, 20)) for _ in range(flows)]
    while pair.sent < packets:
        for _ in range(rng.choice((1, 1, 2, 3, 30))):
            # Of two queues with as many bytes either may be the longest.
            while pair.reference.in_bytes and pair.reference.tied():
                pair.step()
            size = rng.choice(sizes)
            pair.send(rng.choices(range(flows), weights)[0], size)
        for _ in range(rng.choice((0, 1, 2, 2, 5, 25))):
            if pair.reference.busy():
                pair.step()


def against_reference(service):
    """All rules of overflow, both measures, random weights and arrivals."""
    rng = random.Random(guest_base.SETTINGS["seed"] * 10 + service)
    for overflow, in_bytes, weighted in itertools.product(
            OVERFLOWS.values(), (False, True), (False, True)):
        limit = rng.choice((2, 7, 20, 50))
        quantum = rng.choice((256, 600, 1514, 4000))
        weights = [rng.choice((1, 2, 3, 10)) for _ in range(FLOWS)] \
            if weighted else [1]
        sizes = [1000] if service == RR and not in_bytes else \
            [rng.randrange(60, 1514) for _ in range(200)]
        bench = FqBench(service=service, overflow=overflow, limit=limit,
                        longest=int(in_bytes), quantum=quantum,
                        weights=weights)
        pair = Pair(bench, Reference(
            service, overflow, in_bytes, limit, quantum,
            dict(enumerate(weights)) if weighted else None))
        if service == RR and weighted:
            # A turn is a whole run of packets.
            pair.fairness.bound = lambda *_: 2
        for _ in range(3):
            arrivals(pair, rng, pair.sent + 150, FLOWS, sizes)
            pair.agrees()
        pair.drain()
        pair.agrees()
        bench.empty()
        note(f"overflow {overflow} limit {limit} bytes {in_bytes} weights "
             f"{weighted}: {pair.out} of {pair.sent} out, apart by "
             f"{pair.fairness.worst:.2f} of the bound")
        assert pair.out > 20
        guest_base.cleanup()


def check_reference_rr():
    """rr packet by packet: order, drops, sums, one packet per round."""
    against_reference(RR)


def check_reference_drr():
    """drr the same, with the bound of deficit round robin."""
    against_reference(DRR)


def check_reference_debts():
    """drr where each packet is larger than many turns, as a table of sizes may make
    it, and all queues are in debt: the order is still that of the reference."""
    for overhead, packets, limit in ((3000, 300, 30), (60000, 300, 30), (10**6, 60, 20)):
        rng = random.Random(guest_base.SETTINGS["seed"] + overhead)
        weights = [rng.choice((1, 1, 2, 3, 10)) for _ in range(FLOWS)]
        bench = FqBench(rate_bps=10**6, stab=f"stab overhead {overhead} ",
                        service=DRR, overflow=DROP_TAIL_OF_LONGEST, limit=limit,
                        quantum=256, weights=weights)
        pair = Pair(bench, Reference(DRR, DROP_TAIL_OF_LONGEST, False, limit, 256,
                                     dict(enumerate(weights))),
                    largest=overhead + 1514, overhead=overhead)
        arrivals(pair, rng, packets, FLOWS,
                 [rng.randrange(60, 1514) for _ in range(200)])
        pair.agrees()
        pair.drain()
        bench.empty()
        note(f"overhead {overhead}: {pair.out} of {pair.sent} out, apart by "
             f"{pair.fairness.worst:.2f} of the bound")
        guest_base.cleanup()


def check_longest_dequeue():
    """All of 4096 queues are 4096 turns in debt: the dequeue that finds out who is
    next computes these turns and does not walk them."""
    run("ip link add cost type veth peer name tsoc")
    run("tc qdisc add dev cost root handle 1: fq_rr service drr quantum 256 "
        "flows 65536 no-split-gso")
    run("insmod /run/tollway/build/modules/selftests/kunit/qdisc_cost.ko device=cost "
        "flows=4096 each=2 size=1048576 rounds=40960")
    longest, = re.findall(r"qdisc_cost: .* longest (\d+)", run("dmesg"))
    run("rmmod qdisc_cost")
    run("ip link del cost")
    note(f"{int(longest)} cycles")
    # Two walks of 4096 queues. 4096 walks, 17 million visits, took 2 000 million.
    assert int(longest) < 5e7, longest


def check_reference_wfq():
    """wfq the same, with the bound of self-clocked fair queueing."""
    against_reference(WFQ)


def check_work_conservation():
    """While packets wait, the link is never idle, whoever they belong to."""
    for service in SERVICES.values():
        bench = FqBench(service=service)
        rng = random.Random(service)
        for _ in range(3):
            bench.put(0)
        bench.drain(2)
        sizes = [rng.randrange(60, 1514) for _ in range(200)]
        for size in sizes:
            bench.put(rng.randrange(FLOWS), size)
        start = time.monotonic()
        found = bench.drain(5)
        took = time.monotonic() - 5 - start
        due = sum(sizes) * 8 / HOLD_BPS
        note(f"{took:.2f} s, the link needs {due:.2f}")
        assert len(found) == 200
        # A burst of one packet leaves at once.
        assert due - 4 <= took <= due * 1.001 + 0.01
        guest_base.cleanup()


def check_new_flows_do_not_starve():
    """A stream of flows of one packet moves nobody back by more than a round."""
    for service in SERVICES.values():
        bench = FqBench(service=service, flows=4096)
        for _ in range(40):
            for flow in range(5):
                bench.put(flow)
        while bench.receive():
            pass
        fresh, since, worst = 100, collections.Counter(), 0
        for _ in range(150):
            frame = bench.receive(10)
            fresh += 1
            bench.put(fresh)
            index = frame.number - 1
            old = index % 5 if index < 200 else None
            waiting = bench.stats().x.flows
            for flow in range(5):
                since[flow] = 0 if flow == old else since[flow] + 1
                worst = max(worst, since[flow] - waiting)
        note(f"service {service}: {worst} over the flows that wait")
        assert worst <= 0
        guest_base.cleanup()


def check_leaving_gives_no_credit():
    """A flow that sends one packet whenever it has none gains nothing."""
    for service, bound in ((RR, 1), (DRR, 1514), (WFQ, 1514)):
        bench = FqBench(service=service)
        for _ in range(300):
            bench.put(1, 1000)
        for _ in range(4):
            bench.drain()
        # The one that comes and goes has packets of all sizes.
        rng = random.Random(4)
        gains, mine, busy = [], None, False
        served = [0, 0]
        for _ in range(400):
            if not busy:
                mine, _ = bench.put(2, rng.choice((100, 1000, 1514)))
                busy = True
            frame = bench.receive(10)
            if frame is None:
                break
            cost = 1 if service == RR else frame.size
            served[frame.number == mine] += cost
            busy = busy and frame.number != mine
            gains.append(served[1] - served[0])
        best = max(gains[i] - min(gains[:i + 1]) for i in range(len(gains)))
        note(f"service {service}: it gains {best} at most, {len(gains)} served")
        assert len(gains) > 150 and best <= 2 * bound
        guest_base.cleanup()


def check_new_owner():
    """All packets of a flow are dropped while it waits for its next turn. The next
    flow that gets the queue does not wait for one turn more."""
    for service in (RR, DRR):
        bench = FqBench(service=service, quantum=1000, classify=BY_FLOW, flows=2,
                        overflow=DROP_LONGEST, limit=20)
        owner = {}

        def put(flow):
            # pylint: disable-next=cell-var-from-loop
            owner[bench.put(0, 1000, port=6000 + flow)[0]] = flow

        for flow in (1, 2) * 6:
            put(flow)
        assert bench.stats().x.flows == 2
        while owner[bench.receive(100).number] != 2:
            pass
        # It is the turn of 1, and 2 waits for the one after this.
        while bench.stats().qlen < 20:
            put(2)
        put(1)
        x = bench.stats().x
        assert x.flows == 1 and x.longest_events == 1, x
        for _ in range(3):
            put(3)
        assert bench.stats().x.flows == 2 and not bench.stats().x.collisions
        left = [owner[bench.receive(100).number] for _ in range(6)]
        note(f"service {service}: {left}")
        assert left == [1, 3, 1, 3, 1, 3], left
        guest_base.cleanup()


def check_weights():
    """Rates are as the weights: by priority, by mark and by class."""
    for service, how in itertools.product(SERVICES.values(),
                                          ("priority", "mark", "class")):
        weights = [1, 2, 4]
        words = {"service": service, "quantum": 1000}
        if how != "class":
            words["weights"] = weights
        if how == "mark":
            words.update(classify=BY_MARK, weigh=1)
        bench = FqBench(**words)
        if how == "class":
            for number, weight in enumerate(weights):
                bench.a.run(f"tc class change dev va classid 10:{number + 1} "
                            f"fq_rr weight {weight}")
        owner = {}
        for _ in range(200):
            for flow in range(3):
                if how == "mark":
                    bench.out.setsockopt(socket.SOL_SOCKET, 36, flow)
                owner[bench.put(0 if how == "mark" else flow)[0]] = flow
        bench.drain()
        count = collections.Counter(
            owner[bench.receive(10).number] for _ in range(280))
        note(f"service {service} by {how}: {sorted(count.items())}")
        for flow, weight in enumerate(weights):
            assert abs(count[flow] - 40 * weight) <= 2 * weight
            assert bench.classes()[flow + 1].weight == weight
        guest_base.cleanup()


def check_congestion_notice():
    """NET_XMIT_CN goes up where own packets went: the parent counts right."""
    bench = FqBench(overflow=DROP_LONGEST, limit=20)
    for _ in range(3):
        bench.put(0)
    bench.drain()
    for _ in range(200):
        # All of one flow: its own queue is the longest.
        number, accepted = bench.put(1)
        assert accepted, f"{number} took the place of its own flow's packets"
        stats, parent = bench.stats(), bench.parent()
        assert stats.qlen == parent.qlen and stats.backlog == parent.backlog
        assert stats.qlen <= 20
    x = bench.stats().x
    note(f"{x.longest_events} times the queue went, {x.own_drops} packets")
    assert x.own_drops == x.longest_drops >= 150
    # The class of the parent is alive all the time.
    waiting = bench.stats().qlen
    assert waiting and len(bench.drain(3)) == waiting
    bench.empty()


def check_drop_longest_spares_others():
    """The longest queue goes even if it is not the arriving flow's (MK94)."""
    bench = FqBench(overflow=DROP_LONGEST, limit=30)
    for flow, count in ((1, 20), (2, 6), (3, 4)):
        for _ in range(count):
            bench.put(flow)
        if flow == 1:
            bench.drain()
    while bench.stats().qlen < 30:
        bench.put(1)
    before = bench.classes()
    assert bench.put(3)[1]
    after = bench.classes()
    assert after[2].qlen == 0 and before[2].qlen >= 18
    assert after[3].qlen == before[3].qlen
    assert after[4].qlen == before[4].qlen + 1
    assert bench.stats().x.own_drops == 0
    assert after[2].drops == before[2].qlen


def check_memory():
    """Bytes of memory bound the buffer as packets do, under every rule."""
    for overflow in OVERFLOWS.values():
        bench = FqBench(overflow=overflow, limit=1000, memory_limit=40000)
        rng = random.Random(overflow)
        refused_count = 0
        for _ in range(500):
            refused_count += not bench.put(rng.choice((0, 1, 1, 1, 2)),
                                           rng.choice((60, 1000, 1514)))[1]
            stats = bench.stats()
            assert stats.x.memory <= 40000
            assert stats.qlen == bench.parent().qlen
        x = stats.x
        note(f"overflow {overflow}: {x.memory_max} bytes, {x.memory_drops} "
             f"dropped, {refused_count} refused")
        assert x.memory_max > 36000 and x.memory_drops > 100
        assert x.memory_drops == stats.drops
        assert x.memory == sum(one.memory for one in bench.classes().values())
        bench.drain(3)
        bench.empty()
        # One that is larger than all of it passes through an empty buffer.
        bench.change(memory_limit=1)
        for _ in range(5):
            assert bench.put(1)[1]
            bench.drain(3)
        guest_base.cleanup()


def check_change():
    """Whatever changes while packets wait, none is lost or overtaken."""
    changes = [{"service": DRR}, {"service": WFQ}, {"service": RR},
               {"overflow": DROP_LAST}, {"overflow": DROP_LONGEST},
               {"longest": 1}, {"longest": 0},
               {"overflow": DROP_TAIL_OF_LONGEST}, {"quantum": 300},
               {"limit": 200}, {"limit": 1 << 20}, {"flows": 3},
               {"flows": 65536}, {"flows": 1}, {"flows": 64},
               {"classify": BY_FLOW}, {"classify": BY_PRIORITY},
               {"weights": [3, 1, 2]}, {"weigh": 1}, {"perturb": 3},
               {"perturb": 0}, {"memory_limit": 1 << 31}, {}]
    for parent in ("htb", "tbf"):
        bench = FqBench(parent)
        owner = {}
        for index in range(6 * len(changes)):
            flow = index % 5
            owner[bench.put(flow, port=6000 + flow)[0]] = flow
        found = [frame.number for frame in bench.drain()]
        for words in changes:
            before = bench.stats()
            bench.change(**words)
            stats = bench.stats()
            assert stats.qlen == before.qlen == bench.parent().qlen, words
            assert stats.backlog == before.backlog == bench.parent().backlog
            assert stats.drops == 0
            queued = sum(one.qlen for one in bench.classes().values())
            # A TBF has one that it peeked at.
            assert queued == stats.qlen - (parent == "tbf")
            found.append(bench.receive(100).number)
        found += [frame.number for frame in bench.drain(5)]
        assert sorted(found) == sorted(owner)
        for flow in range(5):
            mine = [number for number in found if owner[number] == flow]
            assert mine == sorted(mine), mine
        bench.empty()
        guest_base.cleanup()


def check_shrink():
    """A smaller buffer costs what is over it, and counts it."""
    for parent in ("htb", "tbf"):
        for words, left in (({"limit": 10}, 10), ({"limit": 1}, 1),
                            ({"memory_limit": 1}, None)):
            bench = FqBench(parent, limit=100)
            for index in range(60):
                bench.put(index % 7)
            bench.drain()
            before = bench.stats()
            peeked = parent == "tbf"
            bench.change(**words)
            stats, above = bench.stats(), bench.parent()
            assert stats.qlen == above.qlen and stats.backlog == above.backlog
            assert stats.x.trim_drops == before.qlen - stats.qlen
            assert stats.drops == stats.x.trim_drops
            if left:
                assert stats.qlen == left + peeked
            else:
                assert stats.qlen == 1
            out = len(bench.drain(5))
            assert out == stats.qlen
            bench.empty()
            for _ in range(5):
                bench.put(3)
                bench.drain(3)
            bench.empty()
            guest_base.cleanup()


def check_reset():
    """Nothing is left in any account after a reset, and it works again."""
    rng = random.Random(9)
    for service, overflow, longest in itertools.product(
            SERVICES.values(), OVERFLOWS.values(), (0, 1)):
        bench = FqBench(service=service, overflow=overflow, longest=longest,
                        limit=50)
        for _ in range(3):
            for _ in range(80):
                bench.put(rng.randrange(FLOWS), rng.randrange(60, 1514))
            assert bench.stats().qlen > 10
            bench.a.batch("ip", ["link set va down"])
            bench.empty()
            bench.a.batch("ip", ["link set va up"])
            bench.drain()
        for _ in range(10):
            bench.put(1)
        assert len(bench.drain(5)) == 10
        bench.empty()
        guest_base.cleanup()


def super_packet(bench, segments, port):
    """One UDP datagram with UDP_SEGMENT: a super-packet at the qdisc."""
    with bench.a:
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, port)
    sender.setsockopt(socket.IPPROTO_UDP, 103, 1000)
    try:
        sender.sendto(bytes(segments * 1000), ("10.0.0.2", 5000 + port))
    except OSError as error:
        assert error.errno == 105
    sender.close()


def check_split_gso():
    """A super-packet is so many packets; without split it is one."""
    for overflow in OVERFLOWS.values():
        bench = FqBench(overflow=overflow, limit=60)
        while not bench.stats().qlen:
            bench.put(0)
        for count in (2, 10, 40, 40, 40, 30):
            before = bench.stats()
            super_packet(bench, count, 1 + count % 3)
            stats, above = bench.stats(), bench.parent()
            assert stats.qlen == above.qlen <= 60
            assert stats.backlog == above.backlog
            drops = stats.drops - before.drops
            assert stats.qlen - before.qlen == count - drops
        assert stats.x.last_drops + stats.x.longest_drops == stats.drops > 0
        bench.htb_rate(10**9, 1042)
        frames = bench.drain(1)
        assert max(frame.size for frame in frames) <= 1042
        bench.empty()
        guest_base.cleanup()
    bench = FqBench(split_gso=False)
    while not bench.stats().qlen:
        super_packet(bench, 20, 1)
    before = bench.stats()
    super_packet(bench, 20, 1)
    assert bench.stats().qlen == before.qlen + 1
    # Whatever the quantum is, all of it comes out.
    bench.change(service=DRR, quantum=1)
    for port in range(4):
        super_packet(bench, 30, port)
    assert bench.stats().x.quantum == 256
    bench.htb_rate(10**9, 60000)
    bench.drain(100)
    bench.empty()


def backlog_of_two(bench, packets):
    """Queue packets of the flows 2 and 3: {number: flow}."""
    return {bench.put(flow)[0]: flow
            for _ in range(packets) for flow in (2, 3)}


def check_quantum_stays():
    """Super-packets leave the turns of all others as short as they were."""
    bench = FqBench(service=DRR, split_gso=False)
    for _ in range(3):
        super_packet(bench, 40, 1)
    bench.drain(200)
    assert bench.stats().x.quantum == 1514
    owner = backlog_of_two(bench, 60)
    left = [owner[frame.number] for frame in bench.drain(3)]
    runs = [len(list(run)) for _, run in itertools.groupby(left)]
    note(f"runs of at most {max(runs)} packets of 1000 bytes")
    assert len(left) == 120 and max(runs) <= 2
    bench.empty()


def check_super_packets_pay():
    """A flow of super-packets gets its share in bytes, and no more; what it
    owes is paid by the turns of the others, whether it waits or is away."""
    bench = FqBench(service=DRR, split_gso=False, limit=1000)
    # As on the wire, which is what a super-packet costs.
    large = 20 * 1042
    for _ in range(3):
        bench.put(9)
    bench.drain()
    owner = backlog_of_two(bench, 150)
    for _ in range(8):
        super_packet(bench, 20, 1)
    bench.drain()
    bytes_of, least, most = collections.Counter(), 0, 0
    for _ in range(200):
        frame = bench.receive(100)
        if frame.size > 10000:
            bytes_of[1] += large
        else:
            bytes_of[owner.get(frame.number)] += frame.size
        lead = bytes_of[1] - bytes_of[2]
        least, most = min(least, lead), max(most, lead)
    note(f"super-packets are ahead by {least} to {most} bytes")
    assert most - least <= 1514 + large + 1000
    bench.htb_rate(10**8, 1514)
    bench.drain(300)
    bench.empty()

    # It goes away with a debt of some 20 KB and returns at once, and later.
    bench.htb_rate(HOLD_BPS, 1514)
    # 20840 bytes less one turn are 19.3 packets of each of the others.
    for meanwhile, low, high in ((0, 17, 22), (5, 12, 17), (30, 0, 2)):
        backlog_of_two(bench, 60)
        super_packet(bench, 20, 1)
        while bench.receive(100).size < 10000:
            pass
        for _ in range(2 * meanwhile):
            bench.receive(10)
        mine, _ = bench.put(1)
        waits = 0
        while bench.receive(100).number != mine:
            waits += 1
        note(f"{meanwhile} packets of each later: waits for {waits} packets")
        assert 2 * low <= waits <= 2 * high + 2
        bench.drain(200)
        bench.empty()
    # With nobody there the debt is forgotten: it waits for one turn of each.
    # Some leave before it comes.
    super_packet(bench, 20, 1)
    bench.drain(100)
    backlog_of_two(bench, 10)
    mine, _ = bench.put(1)
    left = [frame.number for frame in bench.drain(10)]
    assert left.index(mine) <= 7, left


def check_options_refused():
    """Bad options die with a message that names them, and change nothing."""
    bench = FqBench()
    before = bench.stats().words
    for data, says in (
            (fq_rr_options(weights=[1, 0]), "each of the weights"),
            (fq_rr_options(weights=[1025]), "each of the weights"),
            (attr(FQ_RR_WEIGHTS), "1 to 16 values"),
            (attr(FQ_RR_WEIGHTS, b"123456"), "1 to 16 values"),
            (u32(FQ_RR_CLASS_WEIGHT, 3), "Unsupported"),
            (fq_rr_options(limit=0), "range"),
            (fq_rr_options(limit=(1 << 20) + 1), "range"),
            (fq_rr_options(flows=65537), "range"),
            (fq_rr_options(service=3), "range"),
            (fq_rr_options(quantum=0), "range"),
            (fq_rr_options(perturb=86401), "range")):
        try:
            with bench.a:
                bench.rtnl.sbrm("va", data, QDISC, CHILD, flags=0, name=KIND)
        except Refused as error:
            assert says in error.message, (data, error.message)
        else:
            raise AssertionError(f"{data} was accepted")
    assert bench.stats().words == before
    with bench.a:
        for words in ("class change dev va classid 10:4000 fq_rr weight 2",
                      "class add dev va classid 10:1 fq_rr weight 2",
                      "class del dev va classid 10:1",
                      "qdisc add dev va parent 10:1 pfifo"):
            refused(f"tc {words}")


def check_command_line():
    """What tc shows can be given to tc again, and JSON has it all."""
    bench = FqBench()
    line = ("limit 300p memory_limit 4Mb flows 100 quantum 3000b perturb 20s "
            "service wfq overflow drop-longest longest bytes classify mark "
            "weigh mark weights 1,2,4 no-split-gso")
    with bench.a:
        run(f"tc qdisc replace dev va parent 1:1 handle 10: fq_rr {line}")
        shown = run("tc qdisc show dev va parent 1:1")
        assert f"parent 1:1 {line}" in shown, shown
        bench.out.setsockopt(socket.SOL_SOCKET, 36, 2)
        for _ in range(5):
            bench.put(0)
        text = run("tc -s qdisc show dev va parent 1:1")
        for word in ("flows 1", "longest_drops", "collisions", "memory"):
            assert word in text, text
        text = run("tc -s class show dev va parent 10:")
        assert "class fq_rr 10:3" in text and "weight 4" in text, text


if __name__ == "__main__":
    guest_base.main(globals())
