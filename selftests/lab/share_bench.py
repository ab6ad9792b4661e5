# SPDX-License-Identifier: GPL-2.0
"""Flows of pp and of others in one queue: who gets what, and how long the queue is."""

import math
import statistics
import time
from collections import namedtuple

import guest_base
from guest_base import note
from guest_slots import bunch
from pp_bench import SHARED, counters, fair_path, pp_info
from tcp_bench import PACKET, PORT, info, pump

RTT_MS = 40
# Three packets of 10 Mb/s.
START_S = 0.0037
# What ss shows while a window controls.
WINDOW = 64
# sbrm needs a receiver that tells each mark.
PORT_SBRM = PORT + 1
# Shares of pp and of the others, of an equal one; mean queue, packets; s until each of pp had
# seen that the queue is shared, or None; part of the packets that was dropped, and for pp and
# the others the part of what arrived that was marked.
Shares = namedtuple("Shares", "ours others queue seen_s lost marked marked_others")


def shared_path(rate_mbit, rtt_ms=RTT_MS, acks=None, aqm=None, ecn=True, setup=None):
    """A path with one queue for all: a FIFO of its bandwidth-delay product, or aqm, in words
    of tc. acks: what happens to them, see guest_slots.bunch(). ecn: of those who do not ask
    for it by themselves. setup: changes the path, see host_bench.Setup."""
    pipe = rate_mbit * 125 * rtt_ms / PACKET
    path = fair_path(10, aqm=aqm or f"pfifo limit {round(pipe)}", shipped=True,
                     rate_bps=rate_mbit * 10**6, rtt_ms=rtt_ms,
                     quickack=acks != "delayed")
    most = max(2 * 10**6, rate_mbit * rtt_ms * 500)
    for space in (path.s, path.d):
        space.sysctl("net.ipv4.tcp_wmem", f"4096 {most // 2} {most}")
        space.sysctl("net.ipv4.tcp_rmem", f"4096 {most} {2 * most}")
    path.s.sysctl("net.ipv4.tcp_ecn", int(ecn))
    if acks:
        bunch(path, acks, rate_mbit, rtt_ms)
    if setup:
        setup(path)
    return path


def connect(path, name):
    """A flow of this congestion control."""
    return path.connect(name, port=PORT_SBRM if name == "sbrm" else PORT)


def share(ours, others, rate_mbit=50, late=False, warm_s=10, seconds=30, after_s=0, cc="pp",
          **words):
    """So many flows of pp, or of cc in its place, beside flows of these names: Shares.

    late: pp begins 5 s after the others, in a queue that they have filled.
    after_s: later by so much. Each is another case: where in the others' sawtooth it
    begins, and which packets come between those of its first pairs.
    words: of shared_path().
    """
    path = shared_path(rate_mbit, **words)
    if "sbrm" in others:
        path.sink("sbrm", PORT_SBRM)
    first = [connect(path, name) for name in others] if late else []
    if late:
        pump(first, 5)
    pump(first, after_s)
    pps = []
    for _ in range(ours):
        pps.append(path.connect(cc))
        pump(first + pps, 0.013)
    if not late:
        for name in others:
            first.append(connect(path, name))
            pump(first + pps, 0.013)
    flows = pps + first
    ours_pp = pps if cc == "pp" else []
    began = time.monotonic()
    # One flow may see that it is alone for a moment before the last one has seen it.
    seen = {}
    while time.monotonic() - began < warm_s:
        pump(flows, 0.02)
        for one in ours_pp:
            if one not in seen and pp_info(one).state & SHARED:
                seen[one] = round(time.monotonic() - began, 2)
    seen_s = max(seen.values(), default=0) if len(seen) == len(ours_pp) else None
    before = [info(one) for one in flows]
    was, since, queues, windows = path.stats(), time.monotonic(), [], 0
    while time.monotonic() - since < seconds:
        pump(flows, 0.05)
        queues.append(path.stats().qlen)
        windows += sum(1 for one in ours_pp if pp_info(one).state & WINDOW)
    took, now = time.monotonic() - since, path.stats()
    after = [info(one) for one in flows]
    equal = rate_mbit * 10**6 / len(flows) * path.payload / path.size
    shares = [(new.bytes_acked - old.bytes_acked) * 8 / took / equal
              for new, old in zip(after, before)]
    drops = now.drops - was.drops
    found = Shares(shares[:ours], shares[ours:], sum(queues) / len(queues), seen_s,
                   drops / (drops + now.packets - was.packets),
                   marked(before[:ours], after[:ours]), marked(before[ours:], after[ours:]))
    delays = " ".join(f"{pp_info(one).delay_us / 1000:.1f}" for one in ours_pp)
    note(f"{words.get('aqm') or ''} {words.get('setup') or ''}{' late' if late else ''} "
         f"{rate_mbit} Mb/s {words.get('acks') or ''} {cc} "
         f"{' '.join(f'{one:.2f}' for one in found.ours)} beside "
         f"{' '.join(others)} {' '.join(f'{one:.2f}' for one in found.others)}: "
         f"queue {found.queue:.1f}, {100 * found.lost:.2f} % dropped, "
         f"{100 * found.marked:.2f} and {100 * found.marked_others:.2f} % marked, "
         f"R {delays} ms, seen after {seen_s} s, window "
         f"{windows / max(1, len(ours_pp) * len(queues)):.2f} of the time, {counters(path.s)}")
    guest_base.cleanup()
    return found


def marked(before, after):
    """The part of what arrived between two TCP_INFO of each flow that was marked."""
    arrived = sum(new.delivered - old.delivered for new, old in zip(after, before))
    return sum(new.delivered_ce - old.delivered_ce
               for new, old in zip(after, before)) / max(arrived, 1)


def hold(cells, starts=1, seen_limit_s=2, least_of=statistics.median, longer=1.05,
         no_losses=False, least_share=0.5, **words):
    """Nobody has less than half of an equal share, or least_share, the queue is no longer than
    with cubic in the place of pp, and each of pp has seen in time that the queue is shared: the
    medians of so many starts. least_of: the same for shares. longer: times that the queue may
    be as long as with cubic. no_losses: nor is anything dropped, though packets are marked."""
    bad = []
    for ours, others in cells:
        found = [share(ours, others, after_s=START_S * number, **words)
                 for number in range(starts)]
        least = least_of(min(one.ours + one.others) for one in found)
        queue = statistics.median(one.queue for one in found)
        seen_s = statistics.median(math.inf if one.seen_s is None else one.seen_s
                                   for one in found)
        cubic = share(0, ["cubic"] * ours + others, **words)
        wrong = [name for name, is_wrong in (
            ("share", least < least_share), ("queue", queue > longer * cubic.queue),
            ("seen", seen_s > seen_limit_s),
            ("losses", no_losses and any(one.lost or not one.marked for one in found)))
            if is_wrong]
        if wrong:
            bad.append((ours, others, wrong))
    assert not bad, bad
