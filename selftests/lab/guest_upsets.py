# SPDX-License-Identifier: GPL-2.0
"""What may happen to a queue in use, with the defaults: a link a thousand times
slower or faster, one that is not served at all, another price law, another time of
day. The flows live through it, and the queue is what it was before.
"""

import time

import guest_base
from guest_any_rate import PACKET, PORT, SETTLED_S, Link, expect, settled
from guest_base import note
from guest_leaf import PRIO
from rtnl import DELAY, REM_PC1, REM_PC2, REM_PC3, SBRM, VQM
from tcp_bench import class_of

RTT_MS, FLOWS = 20, 4


def busy(mbit, seconds, **words):
    """A link with four flows."""
    link = Link(round(mbit * 10**6), RTT_MS, FLOWS, seconds, **words)
    for number in range(FLOWS):
        link.add(start=f"{0.1 * number / FLOWS:.4f}")
    return link


def note_cell(what, cell):
    """Keep what was measured."""
    note(f"{what}: utilisation {cell.utilisation:.3f}, delay {cell.mean_ms:.2f} "
         f"ms, p99 {cell.p99_ms:.2f} ms, drops {cell.late_drops}, worst share "
         f"{cell.worst:.3f} off")


def slow_for(link, rate_bps, begin_s, end_s):
    """Run the flows, with a link that is so slow for some time."""
    whole_bps = link.rate_bps

    def slow():
        link.change(rate_bps)
        return end_s, lambda: link.change(whole_bps)
    link.go(begin_s, slow)


def back(link, event_s):
    """s until the last flow sends again after an event; no more than 0.3 s late."""
    at, back_s = event_s, 0.0
    while at < link.seconds - 0.5:
        if min(link.rates(at, at + 0.3)) == 0:
            back_s = at + 0.3 - event_s
        at += 0.1
    return back_s


def check_thousandth():
    """100 Mb/s, then 0.1 Mb/s, then 100 Mb/s: 5 s after the last flow is back all is
    as it was. Round trips of 4 s make TCP wait for up to 20 s before it sends
    again."""
    link = busy(100, 45)
    slow_for(link, 10**5, 5, 10)
    shares_s, full_s = settled(link, 10, range(FLOWS), link.rate_bps)
    back_s = back(link, 10)
    slow = link.between(6, 10)
    served = (slow[-1].bytes - slow[0].bytes) * 8 / (slow[-1].time - slow[0].time)
    note(f"a thousandth of the rate: {served / 1e5:.3f} of it used; then the last flow "
         f"sends after {back_s:.1f} s, shares after {shares_s:.1f} s, full after "
         f"{full_s:.1f} s")
    after = link.cell(10 + back_s + 5, link.seconds)
    note_cell("5 s after it was back", after)
    assert back_s < 25, back_s
    # Of some 33 packets, one more or less.
    assert 0.95 < served / 1e5 < 1.05, served
    expect([after])


def check_not_served():
    """Datagrams that come first take more than the link for half a minute: 25 s
    later all is as it was."""
    link = busy(10, 70, shape=PRIO, leaf="2:2")
    link.path.sink("sbrm", PORT + 1)
    link.add(port=PORT + 1, proto="udp", rate=15 * 10**6, size=PACKET - 42,
             overhead=42, start=5, stop=34)
    link.go()
    slow = link.between(6, 34)
    assert slow[-1].bytes - slow[0].bytes <= 2 * PACKET
    shares_s, full_s = settled(link, 36, range(FLOWS), link.rate_bps)
    after = link.cell(60, 70, flows=range(FLOWS))
    note_cell(f"shares after {shares_s:.1f} s, full after {full_s:.1f} s; 25 s later",
         after)
    expect([after])


def check_burst():
    """Datagrams that fill a short queue for a tenth of a second and are lost: a queue that
    drops packets once does not take its price for one that is too low. If they come again
    within two seconds, it does."""
    flows, first_s, again_s, takes_s = 10, 8, 16, 0.1
    link = Link(10**8, RTT_MS, flows, 19, limit=330)
    link.path.sink("sbrm", PORT + 1)
    for number in range(flows):
        link.add(start=f"{0.01 * number:.2f}")
    for at in (first_s, again_s, again_s + 1):
        link.add(port=PORT + 1, proto="udp", rate=2 * 10**8, size=PACKET - 42,
                 overhead=42, start=at, stop=at + takes_s)
    link.go()
    used = [link.utilisation(at + takes_s, at + takes_s + 0.5)
            for at in (first_s, again_s, again_s + 1)]
    drops = link.between(0, first_s + 1)[-1].drops - link.between(0, first_s)[-1].drops
    note(f"{drops} packets dropped; in the next half second the flows use "
         f"{used[0]:.3f} of the link, after two other bursts {used[1]:.3f} and {used[2]:.3f}")
    assert drops > 500 and min(used[:2]) >= 0.9 and used[2] < 0.8, used
    guest_base.cleanup()


RATE = {REM_PC1, REM_PC3, VQM}


def check_laws():
    """From each law to each other one: what is in the queue stays there, and a law
    that has a price of its own goes on from that of the one before."""
    laws = (DELAY, SBRM, REM_PC1, REM_PC2, REM_PC3, VQM)
    order = [law for number, first in enumerate(laws)
             for second in laws[number + 1:] for law in (first, second)] + [DELAY]
    at_s, each_s = 3, 0.7
    link = busy(10, len(order) * each_s + 25)
    path, last, seen, kept = link.path, None, [], 0

    def step():
        nonlocal last, kept
        law = order.pop(0)
        words = {"rate": link.rate_bps // 8} if law in RATE else {}
        with path.r1:
            # The law delay shows its price as the last packet left it. A change of
            # nothing brings it up to now, as the one to another law does.
            path.rtnl.change("right", parent=class_of("1:1"))
            before = path.rtnl.stats("right")
            path.rtnl.change("right", parent=class_of("1:1"), law=law, **words)
            after = path.rtnl.stats("right")
        seen.append((last, law))
        assert after.law == law and after.limit == before.limit
        # One may come or leave in between.
        assert abs(before.qlen - after.qlen) <= 1, (before.qlen, after.qlen)
        assert after.drops == before.drops
        if law in (DELAY, REM_PC1, REM_PC3) and last not in (None, VQM):
            assert abs(after.x.price - before.x.price) <= 0.01 * max(
                before.x.price, 2**20), (last, law, before.x, after.x)
            kept += after.x.price == before.x.price
        last = law
        return (at_s + each_s * len(seen), step) if order else None

    link.go(at_s, step)
    pairs = {(first, second) for first in laws for second in laws
             if first != second}
    assert not order and not pairs.difference(seen), pairs.difference(seen)
    note(f"exactly the same price after {kept} of 12 changes")
    # About 1 us passes between the two dumps. A packet comes or leaves in 600 us,
    # and a price of its own moves in 1 ms.
    assert kept >= 10, kept
    end = link.cell(link.seconds - 10, link.seconds)
    note_cell("the law delay again", end)
    expect([end])


def check_time_of_day():
    """The clock on the wall is set: nothing here looks at it."""
    link = busy(10, 16)
    was = time.clock_gettime(time.CLOCK_REALTIME), time.monotonic()
    steps = [3600, -7200, 10**8, -2 * 10**8, 0.5, -0.5]

    def step():
        time.clock_settime(time.CLOCK_REALTIME, time.clock_gettime(
            time.CLOCK_REALTIME) + steps.pop(0))
        return (12 - len(steps), step) if steps else None

    try:
        link.go(5, step)
    finally:
        time.clock_settime(time.CLOCK_REALTIME,
                           was[0] + time.monotonic() - was[1])
    cell = link.cell(SETTLED_S, 16)
    note_cell("while the clock is set", cell)
    expect([cell])


if __name__ == "__main__":
    guest_base.main(globals())
