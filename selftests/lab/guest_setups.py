# SPDX-License-Identifier: GPL-2.0
"""pp on hosts as people set them up.

Two flows, over a bottleneck that serves them in turn: whatever is between TCP and the wire (see
host_bench.Setup), 97 % of the link is used, shares are equal within 5 %, a flow's queue is at
most half a packet above the setpoint (one where the receiver delays ACKs), R is right within 5 %
or 1 ms, and nothing is lost. Where a tunnel hides which packets are of which flow, they share a
FIFO, and the bounds are those of guest_fifo.py.
"""

import guest_base
import guest_fifo
import share_bench
from guest_slots import SETPOINT, Cell, measure
from host_bench import Setup

HOSTS = ("noqueue", "pfifo_fast", "pfifo", "fq", "fq_codel", "cake")
# Receivers that acknowledge each segment, and stock ones.
EACH, STOCK = RECEIVERS = ("slot 0", "delayed")
# Where 2 s of time are as many packets as 20 s elsewhere.
FAST = {"warm_s": 0.8, "seconds": 0.4, "step_s": 0.005}
# {segments of a train: setpoint}: a train waits as a whole, so that many are above a mean.
TRAINS = {8: SETPOINT, 16: 32, 64: 128}


def cell(acks=EACH, rate_mbit=100, rtt_ms=40, queue="fq_rr", flows=2):
    """What guest_slots.measure() wants."""
    return Cell(queue, flows, rate_mbit, rtt_ms, acks)


def hold(todo, but=frozenset(), **words):
    """All of [(Setup, Cell)] are as they should be; but: bounds that need not hold."""
    bad = []
    for setup, one in todo:
        room = setup.setpoint - SETPOINT + (1 if one.acks == STOCK else 0.5)
        found = set(measure(one, setup=setup, bounds={"queue": room, "lost": 0}, **words)) - but
        if found:
            bad.append((str(setup), *one, found))
    assert not bad, f"{len(bad)} of {len(todo)}: {bad}"


def check_host_queues():
    """Each root qdisc of the sender's device."""
    hold([(Setup(queue), cell(acks)) for queue, acks in (
        *zip(HOSTS, RECEIVERS * 3), ("fq", STOCK), ("fq", EACH))])


def check_many_host_queues_each():
    """The same with both receivers, and over fq_codel."""
    hold([(Setup(queue), cell(acks)) for queue in HOSTS for acks in RECEIVERS] +
         [(Setup(queue), cell(queue="fq_codel")) for queue in HOSTS])


def check_offloads():
    """Super-packets from the sender, and GRO at the receiver, which waits 50 us, or does not."""
    hold([(Setup("noqueue", card, True), cell(acks)) for card, acks in (
        ("nic", STOCK), ("veth", EACH), ("veth", "gro 50"))] +
         [(Setup("fq", "nic", True), cell("gro 0"))])


def check_many_offloads():
    """All of them."""
    hold([(Setup(queue, card, True), cell(acks)) for queue in ("noqueue", "fq_codel")
          for card in ("nic", "veth") for acks in (*RECEIVERS, "gro 50")] +
         [(Setup("fq", card, True), cell("gro 0")) for card in ("nic", "veth")])


def check_offloads_gigabit():
    """At 1 Gb/s: stock receivers are in many_gigabit. Below fq there were 410 to 440 packets when
    pp counted what fq holds back."""
    hold([(Setup("fq"), cell(EACH, 1000))])


def check_many_offloads_gigabit():
    """The same with super-packets, and trains."""
    hold([(Setup(queue, "nic", True), cell(acks, 1000)) for queue in ("noqueue", "fq_codel")
          for acks in (EACH, "gro 50")] + [(Setup("fq", train=8), cell(EACH, 1000, 5))])


def check_bridge():
    """A bridge at the sender, and one of which the bottleneck is a port."""
    hold([(Setup(card=card, bridge=where), cell(acks)) for card, where, acks in (
        ("nic", "host", STOCK), ("veth", "bottleneck", EACH))])


def check_vxlan():
    """The port of the outer header is a hash of the inner flow, so a fair queue tells flows
    apart."""
    hold([(Setup(queue, gro=gro, tunnel="vxlan"), cell(acks)) for queue, gro, acks in (
        ("noqueue", False, EACH), ("fq_codel", True, STOCK))])


def check_many_host_queues():
    """Super-packets and GRO with all host queues, on short and long ways."""
    hold([(Setup(queue, card, True), cell(acks, rtt_ms=rtt_ms)) for queue in HOSTS
          for card in ("nic", "veth") for rtt_ms in (5, 150) for acks in RECEIVERS],
         warm_s=8, seconds=5)


def check_wireguard():
    """All flows have the same outer header. One flow has the bottleneck to itself; more of
    them share a FIFO there, whatever serves flows in turn."""
    setup = Setup(gro=True, tunnel="wireguard")
    hold([(setup, cell(STOCK, flows=1))])
    share_bench.hold([(1, ["cubic"])], setup=setup, aqm="fq_rr limit 165", warm_s=6, seconds=15)


def check_trains():
    """Trains in the place of pairs, at 1 Gb/s."""
    hold([(Setup(train=64, setpoint=128), cell(EACH, 1000, 5))])


def check_many_trains():
    """All of them."""
    hold([(Setup(train=train, setpoint=setpoint), cell(EACH, 1000, 5))
          for train, setpoint in TRAINS.items()])


def check_many_trains_fast():
    """At 10 Gb/s and 5 ms. ACKs are less than a microsecond apart there, so that they are taken
    for bursts, and the queue misses its bound: see many_fast. The others hold."""
    hold([(Setup(train=64, setpoint=128), cell(EACH, 10000, 5))], but={"queue"}, **FAST)


def check_many_fast():
    """All trains, and pairs, at 10 Gb/s. README.md has the queues, which are too long."""
    hold([(Setup(train=train, setpoint=setpoint), cell(EACH, 10000, 5))
          for train, setpoint in {2: SETPOINT, **TRAINS}.items()], **FAST)


def check_many_gigabit():
    """Stock receivers at 1 Gb/s. README.md has the queues, which are too long."""
    hold([(Setup(queue, "nic", True), cell(STOCK, 1000)) for queue in ("noqueue", "fq_codel")])


def check_many_fq_codel():
    """Super-packets that nobody splits, as fq_codel does not: a pair has one ACK. README.md says
    by how much the queue is too long with some seeds."""
    hold([(Setup(card="veth", gro=True), cell(acks, queue="fq_codel")) for acks in RECEIVERS])


def check_many_fq():
    """What fq at the sender does to the bounds: README.md says how far they are missed."""
    hold([(Setup("fq", gro=True), cell("gro 50")), (Setup("fq"), cell(STOCK, 1000))])


def check_many_fq_left():
    """No pauses below fq: an R that was measured in a full FIFO stays."""
    guest_fifo.left(1000, ["cubic"], setup=Setup("fq"))


if __name__ == "__main__":
    guest_base.main(globals())
