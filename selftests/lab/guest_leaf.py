# SPDX-License-Identifier: GPL-2.0
"""The law delay below other parents than a class of HTB, with the defaults.

Nobody tells it the rate of the link. It has to find it below a shaper that peeks,
where bytes are counted that are not in the packets, where others are served before
it or beside it, and where nothing ever waits for it.
"""

import itertools
import json
import socket
import time

import guest_base
from bench import ECT0, HOLD_BPS, Bench, super_packet
from guest_any_rate import PACKET, PORT, SETTLED_S, Link, expect
from guest_base import Namespace, mac, note, quiet, reset_later, start, wait_for_links
from rtnl import DELAY, Rtnl, fq_rr_options, options
from tcp_bench import TCP_CONGESTION, TRAFFIC, pump

MBIT, RTT_MS, FLOWS = 10, 20, 4
RATE_BPS = MBIT * 10**6
HTB = ("qdisc add dev right {}root handle 1: htb default 1",
       f"class add dev right parent 1: classid 1:1 htb rate {{}}bit burst {PACKET} "
       f"cburst {PACKET} quantum {PACKET}")


def htb(rate_bps=RATE_BPS, before=""):
    """Lines of tc for one class of HTB."""
    return [HTB[0].format(before), HTB[1].format(rate_bps)]


def served(link):
    """Does the law know what the link does for its queue, within 2 %? It is an
    average over 0.1 s: its mean over the last second is looked at."""
    last = [look.service_bps for look in
            link.between(link.looks[-1].time - 1, link.looks[-1].time)]
    found = sum(last) / len(last) / link.rate_bps
    note(f"the rate found is {found:.4f} of what it is")
    assert abs(found - 1) < 0.02, found


def note_cell(what, cell):
    """Keep what was measured."""
    note(f"{what}: utilisation {cell.utilisation:.3f}, delay {cell.mean_ms:.2f} "
         f"ms, p99 {cell.p99_ms:.2f} ms, at the start {cell.start_ms:.0f} ms, "
         f"drops {cell.late_drops}, worst share {cell.worst:.3f} off")


def counters(link):
    """(time, bytes, packets) that the device of the link has sent, as they are."""
    show = json.loads(link.path.r1.run("ip -j -s link show dev right"))[0]
    sent = show["stats64"]["tx"]
    return time.monotonic(), sent["bytes"], sent["packets"]


def steady(what, shape, mbit=MBIT, flows=FLOWS, before=None, from_s=SETTLED_S,
           seconds=20, event=(None, None)):
    """Flows over a link of so much for the queue: the bounds of the grid.
    before: what is done to the path first; event: of Link.go()."""
    link = Link(mbit * 10**6, RTT_MS, flows, seconds, shape=shape)
    if before:
        before(link)
    for number in range(flows):
        link.add(start=f"{0.1 * number / flows:.4f}")
    link.go(event[0], event[1] and (lambda: event[1](link)))
    cell = link.cell(from_s, seconds, shares_s=(from_s + seconds) / 2)
    note_cell(what, cell)
    served(link)
    expect([cell])
    guest_base.cleanup()


def check_tbf():
    """It peeks: a packet has left the queue while it waits for its tokens. At
    1 Mb/s the start of a flow takes some 20 s to pass, below HTB as well."""
    for mbit, flows, from_s in ((1, 1, 25), (10, FLOWS, SETTLED_S),
                                (100, FLOWS, SETTLED_S)):
        steady(f"tbf, {mbit} Mb/s", [
            f"qdisc add dev right root handle 1: tbf rate {mbit}mbit "
            f"burst {PACKET} limit 100mb"], mbit=mbit, flows=flows,
               from_s=from_s, seconds=from_s + 17)


def atm(size):
    """Bytes of cells that a frame takes with 44 bytes more."""
    return -(-(size + 44) // 48) * 53


# {words of a table of sizes: bytes that the line carries for a frame of a size}
OVERHEADS = {"overhead 40": lambda size: size + 40,
             "overhead 44 mpu 96 linklayer atm": atm,
             "overhead -14": lambda size: size - 14}


def check_overhead():
    """A table of sizes counts what a link adds to each packet: the rate is the one
    in these bytes. The device counts what was sent without it: the line is full,
    and not more."""
    for words, line_bytes in OVERHEADS.items():
        seen = []

        def look(link):
            # pylint: disable-next=cell-var-from-loop
            seen.append(counters(link))
            return (19, lambda: look(link)) if len(seen) == 1 else None
        steady(words, htb(before=f"stab {words} "), event=(SETTLED_S, look))
        took_s, size, packets = (end - begin for begin, end in zip(*seen))
        line = packets * line_bytes(PACKET) * 8 / took_s / RATE_BPS
        note(f"{words}: {size / packets:.1f} bytes a packet, the line carries "
             f"{line:.4f} of what it can")
        # Nearly all are full frames.
        assert size / packets > PACKET - 2, size / packets
        assert 0.975 < line < 1.002, line


def check_overhead_of_super_packets():
    """Each segment of a super-packet has the size that a packet of its own has,
    in the queue, in its parent and on the line."""
    size, count, rate_bps = 1054, 40, 10**6
    for (words, line_bytes), kind in itertools.product(OVERHEADS.items(),
                                                       ("sbrm", "fq_rr")):
        bench, due = Bench(), line_bytes(size)
        bench.htb(HOLD_BPS, due, options(limit=10000, target=9999) if kind == "sbrm"
                  else fq_rr_options(), kind.encode() + b"\0", f"stab {words} ")
        raw = bench.virtio()
        raw.setsockopt(socket.SOL_SOCKET, 32, 1 << 28)  # SO_SNDBUFFORCE
        while bench.stats().qlen < 2:
            bench.send(size, ECT0)
        bench.drain()
        for _ in range(10):
            before = bench.stats()
            bench.send(size, ECT0)
            after = bench.stats()
            assert after.backlog - before.backlog == due, (words, kind)
            raw.send(super_packet(count))
            last, above = bench.stats(), bench.parent()
            assert last.qlen - after.qlen == count, (words, kind)
            assert last.backlog - after.backlog == count * due, \
                (words, kind, (last.backlog - after.backlog) / count, due)
            assert (last.qlen, last.backlog) == (above.qlen, above.backlog)
        bench.htb_rate(rate_bps, due)
        times = [(time.monotonic(), bench.receive(100).size)
                 for _ in range(last.qlen)]
        assert {got for _, got in times} == {size}
        took_s = times[-1][0] - times[1][0]
        line = (len(times) - 2) * due * 8 / took_s / rate_bps
        note(f"{kind}, {words}: the line carries {line:.4f} of what it can")
        assert 0.99 < line < 1.002, line
        last, above = bench.stats(), bench.parent()
        assert last.qlen == last.backlog == above.qlen == above.backlog == 0
        guest_base.cleanup()


# Datagrams, which go to port PORT + 1, come before all else.
PRIO = [*htb(), "qdisc add dev right parent 1:1 handle 2: prio bands 2 priomap" +
        " 1" * 16, "filter add dev right parent 2: protocol ip prio 1 u32 match "
        f"ip dport {PORT + 1} 0xffff flowid 2:1"]


def check_served_last():
    """Below prio, behind datagrams that take half of the link: the queue has the
    other half."""
    link = Link(RATE_BPS // 2, RTT_MS, FLOWS, 20, shape=PRIO, leaf="2:2")
    for number in range(FLOWS):
        link.add(start=f"{0.1 * number / FLOWS:.4f}")
    link.path.sink("sbrm", PORT + 1)
    link.add(port=PORT + 1, proto="udp", rate=RATE_BPS // 2, size=PACKET - 42,
             overhead=42)
    link.go()
    cell = link.cell(SETTLED_S, 20, shares_s=10, flows=range(FLOWS))
    note_cell("behind datagrams at half of the link", cell)
    served(link)
    expect([cell])


def check_starved():
    """Datagrams that take all of the link for a second: a second after their end
    the flows have it again. The price fell while they waited for their timers: it
    takes up to three seconds until their queue is short, and 12 until the shares
    are right."""
    begin_s, short_s, settled_s, seconds = 5, 9, 18, 22
    link = Link(RATE_BPS, RTT_MS, FLOWS, seconds, shape=PRIO, leaf="2:2")
    link.path.sink("sbrm", PORT + 1)
    for number in range(FLOWS):
        link.add(start=f"{0.1 * number / FLOWS:.4f}")
    link.add(port=PORT + 1, proto="udp", rate=RATE_BPS, size=PACKET - 42,
             overhead=42, start=begin_s, stop=begin_s + 1)
    link.go()
    starved = sum(link.rates(begin_s + 0.1, begin_s + 0.9, range(FLOWS))) / RATE_BPS
    again = link.cell(begin_s + 2, seconds, flows=range(FLOWS))
    note_cell("after a second without service", again)
    found_ms = [max(look.delay_ms for look in link.between(*times))
                for times in ((begin_s + 1, short_s), (short_s, seconds))]
    note(f"up to {found_ms[0]:.0f} ms, and {found_ms[1]:.1f} ms from 3 s after its "
         "end on")
    after = link.cell(settled_s, seconds, flows=range(FLOWS))
    note_cell(f"{settled_s - begin_s - 1} s later", after)
    served(link)
    assert starved < 0.02, starved
    assert again.utilisation > 0.98 and not link.looks[-1].drops, again
    assert found_ms[1] < 12, found_ms
    expect([after])


def check_beside_its_like():
    """Four such queues share a link, as those of mq do, a flow in each; then three
    of the flows leave. The rate is a quarter of the link, and then all of it. The
    delay, which takes many seconds to settle here, is only told."""
    queues, leave_s, seconds = 4, 15, 24
    shape = [*htb(), "qdisc add dev right parent 1:1 handle 2: drr"]
    for number in range(1, queues + 1):
        shape += [f"class add dev right parent 2: classid 2:{number} drr quantum "
                  f"{PACKET}",
                  "filter add dev right parent 2: protocol ip prio 1 u32 match ip "
                  f"dport {PORT + number - 1} 0xffff flowid 2:{number}"]
        if number > 1:
            shape.append(f"qdisc add dev right parent 2:{number} sbrm")
    link = Link(RATE_BPS // queues, RTT_MS, 1, seconds, most_bps=RATE_BPS,
                shape=shape, leaf="2:1")
    link.add(start=0)
    for number in range(1, queues):
        link.path.sink("sbrm", PORT + number)
        link.add(start=f"0.0{number}", stop=leave_s, port=PORT + number)
    link.go(leave_s - 0.2, lambda: served(link))
    shared = link.cell(8, leave_s, flows=[0])
    note_cell("beside three others", shared)
    each = link.rates(8, leave_s - 0.1)
    assert max(each) < 1.05 * min(each), each
    link.rate_bps = RATE_BPS
    whole = link.cell(leave_s + SETTLED_S, seconds, flows=[0])
    note_cell("alone", whole)
    served(link)
    for one in shared, whole:
        assert one.utilisation > 0.98 and not one.late_drops, one


def check_root_of_veth():
    """A device that takes all at once, and a slower link beyond: nothing waits, so
    there is no price, and no mark. The flow lives from losses, as it would without
    the queue."""
    for beyond in (f"tbf rate {MBIT}mbit burst 3028 limit 50000",
                   f"netem rate {MBIT}mbit limit 40"):
        link = Link(RATE_BPS, RTT_MS, 1, 20, shape=[], leaf="root")
        link.path.r2.run("tc qdisc add dev right root " + beyond)
        link.add(start=0)
        link.go()
        stats = link.path.stats()
        part = link.utilisation(SETTLED_S, 20)
        note(f"{beyond}: {part:.3f} of that link, {stats.x}")
        assert not stats.x.marks and not stats.x.price_drops, stats.x
        assert not stats.x.full_drops and not stats.x.coupled_drops, stats.x
        assert not max(look.delay_ms for look in link.looks)
        assert 0.9 < part < 1.1, part
        guest_base.cleanup()


def check_mq():
    """A queue for each of four queues of a device."""
    a, b = Namespace("a"), Namespace("b")
    for space in (a, b):
        quiet(space)
    many = "numtxqueues 4 numrxqueues 4"
    a.batch("ip", [
        f"link add va {many} type veth peer name vb netns b {many}",
        f"link set va address {mac(1)}", "addr add 10.0.0.1/24 dev va",
        "link set va up",
        f"neigh add 10.0.0.2 lladdr {mac(2)} dev va nud permanent"])
    b.batch("ip", [
        f"link set vb address {mac(2)}", "addr add 10.0.0.2/24 dev vb",
        "link set vb up",
        f"neigh add 10.0.0.1 lladdr {mac(1)} dev vb nud permanent"])
    wait_for_links((a, "va"), (b, "vb"))
    a.batch("tc", ["qdisc replace dev va root handle 1: mq"] + [
        f"qdisc replace dev va parent 1:{number} handle {number:x}0: sbrm"
        for number in range(1, 5)])
    with b:
        start([TRAFFIC, "sink", "--port", str(PORT), "--cc", "sbrm", "--json",
               "/dev/null"])
        time.sleep(1)
    with a:
        rtnl = Rtnl()
        flows = [reset_later(socket.socket()) for _ in range(48)]
    for one in flows:
        one.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"sbrm")
        one.connect(("10.0.0.2", PORT))
    pump(flows, 0.2)
    with a:
        ours = {handle: one for handle, one in rtnl.dump("va").items() if one.x}
    note(f"packets of the four: {[one.packets for one in ours.values()]}")
    assert len(ours) == 4
    for one in ours.values():
        assert one.law == DELAY and one.packets > 10, vars(one)
        assert not one.x.marks and not one.drops, one.x
    # As one of them is changed and another goes, the rest stays in use.
    a.batch("tc", ["qdisc change dev va parent 1:1 sbrm mark sbrm",
                   "qdisc del dev va parent 1:2"])
    before = {handle: one.packets for handle, one in ours.items()}
    pump(flows, 0.2)
    with a:
        after = {handle: one for handle, one in rtnl.dump("va").items() if one.x}
    assert sorted(after) == sorted(set(before) - {0x200000})
    assert all(one.packets > before[handle] for handle, one in after.items())


if __name__ == "__main__":
    guest_base.main(globals())
