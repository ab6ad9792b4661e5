# SPDX-License-Identifier: GPL-2.0
"""Fifty days of virtual time, with rates measured right after every kind of wrap.

    s ---- r1 ==[HTB: 1:1 sbrm, 1:2 fq_rr]== r2 ---- d

On either link two flows are as old as the kernel, and rest between the rounds;
two are new in each round, one more comes and goes before anything is measured.
The kernel's clocks begin at boot: 32 bits of us are over after 71.6 minutes, of
jiffies after 5 minutes (that is where Linux lets them start) and again after
49.7 days, of the ms in time stamps after 49.7 days, and the sign of each half
way. Numbers of sequence wrap whenever a flow says so (TCP_REPAIR).
"""

import collections
import itertools
import math
import random
import socket
import statistics
import time

import guest_base
from guest_base import amount, note
from memory import memory, no_leak
from tcp_bench import (PACKET, PORT, SO_PRIORITY, TCP_CONGESTION, Path, info,
                       paper_queue, pump, settle)

guest_base.CHECK_LIMIT_S = 5 * 10**6
DAYS = {"short": 0.05, "full": 50, "full_debug": 1}
US_S, MS_S = 2**32 / 1e6, 2**32 / 1e3
JIFFIES_S = 300
# Of the wraps of us, each of the first ones and every so manieth later on.
EACH, EVERY = 10, 8
RATE_BPS = 2 * 10**6
WARMUP_S, WINDOW_S = 40, 60
# Ports of pp, of which each has a queue: 8 of them have these bits in common.
PAIRS = 5008
# {priority: packets/s}
WORTH = {0: 20, 1: 40}
TCP_REPAIR, TCP_REPAIR_QUEUE, TCP_QUEUE_SEQ, SEND_QUEUE = 19, 20, 21, 2
# As the double bottleneck of CP05 has it for the means of its classes.
SBRM_BOUND, SBRM_MEAN_BOUND = 0.015, 0.007
# As many hashes tell the flows of sch_sbrm apart; two with one share their marks.
ACCOUNTS = 1 << 26
# pp measures its share; what is left is the packet that the window cuts.
PP_BOUND = 0.005


def wraps(days):
    """When something wraps, s of the monotonic clock: [(time, what)]."""
    found = [(JIFFIES_S, "jiffies"), (MS_S + JIFFIES_S, "jiffies again"),
             (MS_S / 2 + JIFFIES_S, "sign of jiffies"),
             (MS_S, "ms"), (MS_S / 2, "sign of ms"), (US_S / 2, "sign of us")]
    found += [(number * US_S, "us") for number in range(1, 1100)
              if number <= EACH or number % EVERY == 0]
    # A wrap of ms is one of us as well, and one a while before is as good.
    kept, last = [], 0
    for when, what in sorted(found):
        if when - last > WARMUP_S + WINDOW_S + 60 or not what.startswith("us"):
            kept.append((when, what))
            last = when
    return [one for one in kept if one[0] < days * 86400]


class Links:
    """The two of them, and what flows there."""

    def __init__(self, rng):
        self.rng = rng
        path = self.path = Path(rate_bps=RATE_BPS, rtt_ms=80,
                                aqm=paper_queue(limit=1000, target=5, gamma=0.02))
        path.r1.batch("tc", [
            f"class add dev right parent 1: classid 1:2 htb rate {RATE_BPS}bit "
            f"burst 47 cburst 47 quantum {PACKET}",
            "qdisc add dev right parent 1:2 handle 20: fq_rr limit 1000",
            "filter add dev right parent 1: protocol ip prio 1 u32 match ip "
            f"dport {PAIRS} 0xfff8 flowid 1:2",
            # By port: of a hash two flows would share a queue at times.
            *("filter add dev right parent 20: protocol ip prio 1 u32 match ip "
              f"dport {PAIRS + number} 0xffff flowid 20:{number + 1}"
              for number in range(5))])
        for number in range(5):
            path.sink("reno", PAIRS + number)
        for space in (path.s, path.d):
            # 2: time stamps are the clock's, and wrap with it.
            space.sysctl("net.ipv4.tcp_timestamps", 2)
        # What a flow has written has to be sent before it may rest.
        path.s.sysctl("net.ipv4.tcp_wmem", "4096 65536 65536")
        path.s.run("ip link set dev right gso_max_segs 1")
        path.s.sysctl("net.ipv4.tcp_sbrm.wtp", " ".join(
            str(WORTH.get(priority, 1)) for priority in range(16)))
        # Where each flow's numbers wrap, in bytes.
        self.wrap_at = {}
        self.wrapped = 0

    def connect(self, cc, number):
        """A flow whose sequence numbers wrap some time in its first round.

        number: the priority of sbrm, the queue of pp.
        """
        with self.path.s:
            made = socket.socket()
        room = self.rng.randrange(1, RATE_BPS // 8 // 4 *
                                  (WARMUP_S + WINDOW_S))
        for name, value in ((TCP_REPAIR, 1), (TCP_REPAIR_QUEUE, SEND_QUEUE),
                            (TCP_QUEUE_SEQ, 2**32 - room), (TCP_REPAIR, 0)):
            made.setsockopt(socket.IPPROTO_TCP, name,
                            value if value < 2**31 else value - 2**32)
        made.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, cc.encode())
        if cc == "sbrm":
            made.setsockopt(socket.SOL_SOCKET, SO_PRIORITY, number)
        made.connect(("10.0.2.2", PAIRS + number if cc == "pp" else PORT))
        self.wrap_at[made] = room
        return made

    def close(self, flow):
        """End a flow in order: whatever it wrote has been acknowledged."""
        last = settle(flow)
        assert last.bytes_acked > 0
        self.wrapped += last.bytes_acked > self.wrap_at.pop(flow)
        flow.close()
        return last


def errors(flows, shares):
    """Measure for a window: relative errors of the rates of flows."""
    before = [info(one).bytes_acked for one in flows]
    began = time.monotonic()
    pump(flows, WINDOW_S)
    took = time.monotonic() - began
    full = RATE_BPS / 8 * 1448 / PACKET
    return [(info(one).bytes_acked - was) / took / full / share - 1
            for one, was, share in zip(flows, before, shares)]


def are_shared(found):
    """Do two flows of sbrm share an account (dither, tc-sbrm(8))?

    Both together get the marks that are due then, and each of them at random:
    its rate was 1 to 6 % off in a window of a minute. The sum of both is right,
    and so are the others, which they would not be if one flow paid too much.

    found: relative errors of old and new flows, worth as in WORTH by turns
    """
    worth = [*WORTH.values()] * 2
    for pair in itertools.combinations(range(len(found)), 2):
        both = (sum(found[one] * worth[one] for one in pair) /
                sum(worth[one] for one in pair))
        rest = [error for one, error in enumerate(found) if one not in pair]
        if max(map(abs, [both, *rest])) < SBRM_MEAN_BOUND:
            return True
    return False


def one_round(links, old, when):
    """Flows come, a wrap comes, and the shares are what they should be.

    Errors of {sbrm, pp}, each as a list.
    """
    time.sleep(max(when - WARMUP_S - time.monotonic(), 0))
    new = [links.connect("sbrm", 0), links.connect("sbrm", 1),
           links.connect("pp", 2), links.connect("pp", 3)]
    guests = [links.connect("sbrm", 1), links.connect("pp", 4)]
    flows = old + new
    pump(flows + guests, 10)
    for guest in guests:
        links.close(guest)
    # The two who left may have needed longer than that.
    pump(flows, max(when - time.monotonic(), WARMUP_S / 2))
    total = sum(WORTH.values())
    shares = [WORTH[0] / total / 2, WORTH[1] / total / 2, 0.25, 0.25] * 2
    found = errors(flows, shares)
    for flow in flows:
        last = settle(flow)
        assert not last.total_retrans, last
    for flow in new:
        links.close(flow)
    return {"sbrm": found[0:2] + found[4:6], "pp": found[2:4] + found[6:8]}


def check_soak():
    """No bound drifts, whatever wraps, and no flow ever sends twice."""
    rng = random.Random(guest_base.SETTINGS["seed"] + 30)
    links = Links(rng)
    # As the kernel has them when they are first used: before the first wrap.
    old = [links.connect("sbrm", 0), links.connect("sbrm", 1),
           links.connect("pp", 0), links.connect("pp", 1)]
    days = amount(**DAYS)
    rows, kinds = [], collections.Counter()
    before, shared = None, 0
    for when, what in wraps(days):
        rows.append(one_round(links, old, when))
        kinds[what] += 1
        text = {cc: " ".join(f"{100 * error:+.2f}" for error in errors_)
                for cc, errors_ in rows[-1].items()}
        line = f"{when / 86400:.3f} d, {what}: % off: {text}"
        print(line, flush=True)
        if max(map(abs, rows[-1]["sbrm"])) >= SBRM_BOUND:
            assert are_shared(rows[-1]["sbrm"]), line
            shared += 1
        assert max(map(abs, rows[-1]["pp"])) < PP_BOUND, line
        if len(rows) == 3:
            before = memory()
    note(f"{time.monotonic() / 86400:.2f} days, rounds: {dict(kinds)}, "
         f"{links.wrapped} flows' numbers wrapped, an account was shared in "
         f"{shared}")
    # There are six pairs in each round.
    due = len(rows) * 6 / ACCOUNTS
    assert shared <= due + 4 * math.sqrt(due) + 1
    for cc in "sbrm", "pp":
        means = [statistics.mean(column) for column in
                 zip(*(row[cc] for row in rows))]
        worst = max(abs(error) for row in rows for error in row[cc])
        note(f"{cc}: mean errors of the flows " +
             ", ".join(f"{100 * mean:+.2f} %" for mean in means) +
             f", largest in a window {100 * worst:.2f} %")
        if len(rows) > 20:
            assert max(map(abs, means)) < SBRM_MEAN_BOUND
    assert links.wrapped > len(rows)
    if before and len(rows) > 20:
        no_leak(f"{len(rows)} rounds", len(rows), before)
    for flow in old:
        links.close(flow)


if __name__ == "__main__":
    guest_base.main(globals())
