# SPDX-License-Identifier: GPL-2.0
"""How many packets of n flows of pp wait: 10 of each, or what there is room for.

n flows with a setpoint of 10 want 10 n packets to wait. Where the limit is 100, a
setpoint that was too much is tried again ever more rarely, so after the first
seconds hardly anything is lost.
"""

import time

import guest_base
from guest_base import note
from guest_slots import SETPOINT, Cell, slotted_path, two_of_three
from pp_bench import counters, fair_path, limit, pp_info
from tcp_bench import PACKET, info, pump

LIMIT = 100
# Of the packets that are sent after the first seconds.
MOST_LOST = 0.001


def losses(count, aqm=f"fq_rr limit {LIMIT}", rate_mbit=50, rtt_ms=40, warm_s=5,
           seconds=15):
    """(part of the packets that is lost after `warm_s`, use of the link)."""
    path = fair_path(10, aqm=aqm, rate_bps=rate_mbit * 10**6, rtt_ms=rtt_ms)
    flows = []
    for _ in range(count):
        flows.append(path.connect("pp"))
        pump(flows, 0.01)
    pump(flows, warm_s - 0.01 * count)
    was, before = path.stats(), [info(one).bytes_acked for one in flows]
    pump(flows, seconds)
    now = path.stats()
    drops, sent = now.drops - was.drops, now.packets - was.packets
    used = (now.bytes - was.bytes) * 8 / seconds / rate_mbit / 1e6
    equal = rate_mbit * 10**6 / count * 1448 / PACKET
    shares = [(info(one).bytes_acked - old) * 8 / seconds / equal
              for one, old in zip(flows, before)]
    setpoints = sorted(pp_info(one).setpoint for one in flows)
    note(f"{count} flows, {aqm}: {drops} of {sent} lost "
         f"({100 * drops / (drops + sent):.3f} %), {used:.4f} used, shares "
         f"{min(shares):.3f} to {max(shares):.3f}, queue {now.qlen}, setpoints "
         f"{setpoints[0]:.1f} to {setpoints[-1]:.1f}, states "
         f"{sorted({pp_info(one).state for one in flows})}, {counters(path.s)}")
    guest_base.cleanup()
    return drops / (drops + sent), used


def hold(counts, **words):
    """At most a thousandth is lost, and the link is used."""
    bad = []
    for count in counts:
        lost, used = losses(count, **words)
        if lost > MOST_LOST or used < 0.98:
            bad.append((count, lost, used))
    assert not bad, bad


def waiting(cell, warm_s=5, seconds=25):
    """(packets of a flow that wait in the mean, packets of all that do at most, use of
    the link) after the start, with the peeks at R, of which the first one comes 8.4 to
    16.8 s after the start, or 1 to 3 s where R is doubtful."""
    path, _ = slotted_path(cell)
    flows, queues = [], []
    for _ in range(cell.flows):
        flows.append(path.connect("pp"))
        pump(flows, 0.01)
    pump(flows, warm_s)
    was, began = path.stats(), time.monotonic()
    while (took := time.monotonic() - began) < seconds:
        pump(flows, 0.01)
        queues.append(path.stats().qlen)
    now = path.stats()
    mean, most = sum(queues) / len(queues) / cell.flows, max(queues)
    used = (now.bytes - was.bytes) * 8 / took / cell.rate_mbit / 1e6
    note(f"{cell.queue} {cell.flows} flows {cell.rate_mbit} Mb/s {cell.rtt_ms} ms "
         f"{cell.acks}: {mean:.2f} packets of a flow, at most {most} of all, "
         f"{1e3 * used:.1f} per mille used, {now.drops} dropped, {counters(path.s)}")
    guest_base.cleanup()
    return mean, most, used


def too_much(cell, more=0.5):
    """What waits in a start, if that is more than the setpoint, or else the use of the link,
    if it is not used. more: half a packet is that of a pair that leaves."""
    mean, most, used = waiting(cell)
    return (cell, mean, most, used) if mean > SETPOINT + more or used < 0.99 else ()


def wait(rates, rtts, flows, queues=("fq_rr",), acks=("slot 0",), **words):
    """The setpoint waits, and not more."""
    bad = [found for how in acks for queue in queues for rate in rates for rtt in rtts
           for count in flows
           if (found := too_much(Cell(queue, count, rate, rtt, how), **words))]
    assert not bad, bad


def check_queue():
    """With the setpoint of 10, 10 n packets wait, also where one of the flows looks at
    R now and then. When it did that for a quarter of R, four flows had 72 at 150 ms,
    and up to 1049. When others believed at once that its share is theirs, two flows had 24
    over fq_codel. They have more than 10.5 in one of 16 starts: so two of three count."""
    wait((10,), (5, 40), (1, 16))
    wait((100,), (40,), (2, 8))
    wait((100,), (150,), (4, 8))
    missed = two_of_three(lambda: too_much(Cell("fq_codel", 2, 100, 150, "slot 0")))
    assert not missed, missed
    wait((100,), (150,), (2,), acks=("delayed",), more=1)


def check_beside_a_rate():
    """Beside a flow that sends at a rate of its own, pairs tell the whole link and half of
    it by turns, and s_hat is the mean. Where each kind counted little after the other one,
    324 packets waited."""
    path, _ = slotted_path(Cell("fq_rr", 2, 100, 150, "slot 0"))
    flow, other = path.connect("pp"), path.connect("cubic")
    limit(other, 10**8 // 8 * 3 // 7)
    pump([flow, other], 20)
    was, began, queues = path.stats(), time.monotonic(), []
    while (took := time.monotonic() - began) < 10:
        pump([flow, other], 0.02)
        queues.append(path.stats().qlen)
    used = (path.stats().bytes - was.bytes) * 8 / took / 10**8
    queue = sum(queues) / len(queues)
    note(f"{used:.3f} used, {queue:.1f} packets, at most {max(queues)}, {pp_info(flow)}")
    assert used > 0.98 and queue < 80


def check_many_queues():
    """All of them."""
    wait((10, 100), (5, 40, 150), (1, 2, 4, 8, 16), ("fq_rr", "fq_codel"), more=1)


def check_many_queues_delayed():
    """The same where receivers delay ACKs, so that trains are of four packets. With pairs
    two flows had up to 15 at 150 ms."""
    wait((10, 100), (5, 40, 150), (1, 2, 4, 8, 16), acks=("delayed",), more=1)


def check_few():
    """As many flows as there is room for, and more."""
    hold((8, 24))


def check_many_flows():
    """A minute each."""
    for rtt_ms in (10, 40):
        hold((2, 4, 8, 12, 16, 20, 24, 30, 36, 40), rate_mbit=96, rtt_ms=rtt_ms,
             seconds=55)


def check_many_codel():
    """CoDel below, which drops what waits for longer than 5 ms. Of 40 flows two
    share one of its 1024 queues by default as often as not."""
    hold((2, 4, 8, 16, 24, 40), aqm="fq_codel flows 65535 noecn quantum 1514",
         rate_mbit=96, seconds=55)


if __name__ == "__main__":
    guest_base.main(globals())
