# SPDX-License-Identifier: GPL-2.0
"""pp in one FIFO with others: who gets what, and how long the queue is.

The FIFO holds as much as the path without it. No queue serves a flow by itself
there: pp must find that out, and then share as others do.
"""

import math
import socket
import time

import guest_base
from guest_base import note
from guest_slots import bunch
from pp_bench import FULL_BPS, counters, fair_path, look, pp_info
from share_bench import RTT_MS, START_S, hold, share
from tcp_bench import PACKET, info, pump, settle


def check_beside():
    """Beside one cubic and four, and beside other flows of pp."""
    hold([(1, ["cubic"]), (1, ["cubic"] * 4), (2, [])])


def check_late():
    """R is measured while others fill the FIFO."""
    hold([(1, ["cubic"])], starts=3, late=True)


def check_held():
    """The same where the receiver's GRO holds the first segment of a pair back. Pairs
    look faster than the link then, so that much is lost until that has been seen: no
    start may end so."""
    words = {"rate_mbit": 10, "acks": "gro 300"}
    for late in (False, True):
        hold([(1, ["cubic"])], late=late, **words)
        for number in range(1, 5):
            found = share(1, ["cubic"], late=late, after_s=START_S * number, **words)
            assert min(found.ours + found.others) > 0.5, (late, number)


def flood(path, flows, seconds):
    """More datagrams than 10 Mb/s takes, beside these flows."""
    with path.s, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for _ in range(15):
                other.sendto(bytes(PACKET - 42), ("10.0.2.2", 9))
            pump(flows, 0.01)


def leave(cubic, flow):
    """Others have no more to send, and leave when all of it has arrived."""
    for one in cubic:
        one.shutdown(socket.SHUT_WR)
    until = time.monotonic() + 120
    while any(info(one).notsent_bytes or info(one).unacked for one in cubic):
        assert time.monotonic() < until
        pump([flow], 0.05)


def left(limit, others, after_s=0, acks=None, setup=None):
    """Others fill a FIFO of 10 Mb/s, R is measured meanwhile, and they leave. R becomes
    what it is, and what waits becomes the setpoint. acks: what happens to them. setup:
    changes the path, see host_bench.Setup."""
    path = fair_path(10, aqm=f"pfifo limit {limit}", quickack=acks != "delayed")
    if acks:
        bunch(path, acks, 10, RTT_MS)
    if setup:
        setup(path)
    for space, name in ((path.s, "wmem"), (path.d, "rmem")):
        space.sysctl("net.ipv4.tcp_" + name, "4096 16000000 16000000")
    cubic = [path.connect(name) for name in others]
    if others:
        pump(cubic, 10 + after_s)
        flow = path.connect("pp")
        pump(cubic + [flow], 10)
        was = pp_info(flow).delay_us
        leave(cubic, flow)
        note(f"R is {pp_info(flow).delay_us / 1000} ms when the others have left")
    else:
        flood(path, [], 1)
        flow = path.connect("pp")
        flood(path, [flow], 1)
        was = pp_info(flow).delay_us
    # Where R is a second, it is looked at within 34 s. Without pairs the path is watched first,
    # which may take 20 s more.
    pump([flow], 75 if acks == "delayed" else 50)
    queues, before, since = [], info(flow).bytes_acked, time.monotonic()
    for _ in range(200):
        pump([flow], 0.05)
        queues.append(path.stats().qlen)
    used = (info(flow).bytes_acked - before) * 8 / (time.monotonic() - since) / FULL_BPS
    now = pp_info(flow)
    queue = sum(queues) / len(queues)
    note(f"{limit} packets, {' '.join(others) or 'datagrams'} {acks or ''}: R was "
         f"{was / 1000} ms, is {now.delay_us / 1000} ms, {used:.4f} used, queue {queue:.1f}, "
         f"state {now.state}, {counters(path.s)}")
    assert was > 1.4 * RTT_MS * 1000
    assert now.delay_us < 1.05 * RTT_MS * 1000
    assert queue < 12 and used > 0.99
    guest_base.cleanup()


def check_left():
    """In a short FIFO and in longer ones. After two of cubic in the longest one it takes longest,
    and how long depends on where in their sawtooth pp begins."""
    for limit, others in ((100, []), (300, ["cubic"]), (1000, ["cubic"])):
        left(limit, others)
    for acks in (None, "delayed"):
        for number in range(6):
            left(1000, ["cubic", "cubic"], 0.7 * number, acks)


def check_peeks():
    """A busy flow lets its queue become empty each 2^23 us to look at R, and not before R
    is that old."""
    path = fair_path(10)
    flow = path.connect("pp")
    empty = [when for when, queue, *_ in look(path, flow, 45, 0.003)
             if when > 2 and not queue]
    peeks = [when for was, when in zip([0] + empty, empty) if when - was > 1]
    note(f"the queue was empty after {[round(one, 2) for one in peeks]} s")
    period_s = 2**23 / 10**6
    assert period_s < peeks[0] < 2 * period_s + 0.1
    assert len(peeks) >= 4
    assert all(abs(after - before - period_s) < 0.1
               for before, after in zip(peeks, peeks[1:]))


def check_policer():
    """A box that drops what is beyond a rate looks like an idle queue to pairs. Alone
    they would lose more than half, for good. It holds 20 packets."""
    police([(10, 3, 40, "15k", None, 20), (100, 5, 40, "15k", None, 20),
            (1000, 200, 100, "100k", None, 20)])


def check_policer_bunched():
    """A policer that holds one packet, where ACKs come in bursts, and no pairs are looked at.
    From 0.19 to 0.38 was lost when nothing but the setpoint became less for it."""
    police([(100, 30, 40, "30k", acks, 1) for acks in ("slot 1000", "slot 4000", "gro 1000")])


def police(cells):
    """Each of (rate of the link, and of the policer, Mb/s; ms; bucket; what happens to ACKs;
    packets that it holds) loses less than 0.1, and more than half of the rate is used."""
    for rate_mbit, policed_mbit, rtt_ms, burst, acks, limit in cells:
        path = fair_path(20, rate_bps=rate_mbit * 10**6, rtt_ms=rtt_ms)
        for space, name in ((path.s, "wmem"), (path.d, "rmem")):
            space.sysctl("net.ipv4.tcp_" + name, "4096 4000000 100000000")
        if acks:
            bunch(path, acks, rate_mbit, rtt_ms)
        path.r2.run(f"tc qdisc replace dev right root tbf rate {policed_mbit}mbit "
                    f"burst {burst} limit {limit * PACKET}")
        flow = path.connect("pp")
        pump([flow], 30)
        before = info(flow)
        pump([flow], 10)
        after = info(flow)
        lost = (after.total_retrans - before.total_retrans) / \
            (after.data_segs_out - before.data_segs_out)
        used = (after.delivered - before.delivered) * 8 * PACKET / 10 / \
            (policed_mbit * 10**6)
        note(f"{rate_mbit} Mb/s, policed to {policed_mbit}, {acks}: {used:.3f} used, "
             f"{lost:.3f} lost, {counters(path.s)}")
        assert lost < 0.1 and used > 0.5
        guest_base.cleanup()


def check_shaper():
    """A token bucket that has filled in a pause lets pairs pass at the rate of the link.
    That is nobody's share: what waits stays short, and nothing is lost."""
    for pause_s in (None, 0, 0.1, 2):
        path = fair_path(10, rate_bps=200 * 10**6)
        for space, name in ((path.s, "wmem"), (path.d, "rmem")):
            space.sysctl("net.ipv4.tcp_" + name, "4096 4000000 100000000")
        path.r2.run("tc qdisc replace dev right root tbf rate 10mbit burst 30k limit "
                    f"{1000 * PACKET}")
        flow = path.connect("pp")
        pump([flow], 5)
        before, rtts = info(flow), []
        for _ in range(10):
            for _ in range(200):
                pump([flow], 0.01)
                rtts.append(info(flow).rtt / 1000)
            if pause_s is not None:
                settle(flow)
                time.sleep(pause_s)
        after = info(flow)
        sent = after.data_segs_out - before.data_segs_out
        note(f"pauses of {pause_s} s: round trips of {sum(rtts) / len(rtts):.1f} ms, at "
             f"most {max(rtts):.1f}; {after.total_retrans} of {sent} sent again, "
             f"{counters(path.s)}")
        # The setpoint takes 12 ms.
        assert max(rtts) < RTT_MS + 40
        assert after.total_retrans == before.total_retrans
        assert sent * PACKET * 8 > 0.98 * 10**7 * 20
        guest_base.cleanup()


BLIND = ("delayed", "slot 1000")


def check_blind():
    """Beside cubic where no pairs tell the rate of the link: receivers delay ACKs, or
    these come in slots of 1 ms. pp sees that its share becomes less, and sends more for a
    round trip. No start may end with less than half."""
    for acks in BLIND:
        for late in (False, True):
            hold([(1, ["cubic"])], starts=2, late=late, acks=acks, seen_limit_s=math.inf,
                 least_of=min)


def check_blind_short(starts=2):
    """A FIFO of 33 packets that four of cubic fill before: R is measured with their
    packets in it, and the setpoint falls. ACKs in slots of less than a packet's time still
    come in pairs, which tell the rate of the link."""
    for late in (False, True):
        hold([(1, ["cubic"] * 4)], starts=starts, late=late, rate_mbit=10, acks=BLIND[1],
             seen_limit_s=math.inf, least_of=min)


def check_many_beside():
    """Slower and faster links, more of pp, and both orders."""
    cells = [(1, ["cubic"]), (1, ["cubic"] * 4), (4, ["cubic"]), (2, []), (5, []),
             (8, [])]
    for rate_mbit in (10, 50, 100):
        for late in (False, True):
            hold([cell for cell in cells if cell[1] or not late],
                 rate_mbit=rate_mbit, late=late)


def check_many_blind_short():
    """The same with three times as many starts."""
    check_blind_short(6)


def check_many_blind():
    """The same with four of cubic, on slower and faster links, in three starts each."""
    for acks in BLIND:
        for rate_mbit in (10, 50, 100):
            for late in (False, True):
                hold([(1, ["cubic"]), (1, ["cubic"] * 4)], starts=3, late=late,
                     rate_mbit=rate_mbit, acks=acks, seen_limit_s=math.inf, least_of=min)


if __name__ == "__main__":
    guest_base.main(globals())
