# SPDX-License-Identifier: GPL-2.0
"""pp beside what bbr does on the same path: losses, jitter, reordering, steps.

Each path has a queue that serves flows in turn (fq_codel without an opinion on
length), and is used by one connection for some time.
"""

import itertools
import json
import time
from collections import namedtuple
from pathlib import Path

import guest_base
from guest_base import note
from guest_slots import QUEUES, SETPOINT, two_of_three
from pp_bench import counters, fair_path, pp_info
from tcp_bench import PACKET, info, pump

# What happens to the packets: netem's words, or the rates of steps.
WILD = ("loss random 0.1%", "loss random 1%", "loss random 3%",
        "delay 10ms 5ms", "delay 10ms 5ms 90%", "delay 10ms reorder 75% 50%",
        "delay 5ms reorder 99% 25%")

# In order, as queues on the way make it: netem with a rate lets no packet overtake another.
ORDERED = ("delay 10ms 5ms rate 10gbit", "acks 10ms rate 10gbit", "acks 10ms")
# Part of the link, mean queue in packets, and each flow's part of an equal share.
Used = namedtuple("Used", "goodput queue shares")


def set_rate(path, rate_bps):
    """Another rate of the bottleneck."""
    path.r1.run("tc class change dev right parent 1: classid 1:1 htb rate "
                f"{rate_bps}bit burst 1514 cburst 1514 quantum 1514")


def disturb(path, how, rtt_ms):
    """Let packets suffer that; "acks": those on the way back."""
    back, _, words = how.partition("acks ")
    if words:
        path.r2.run(f"tc qdisc replace dev left root netem delay {rtt_ms + 10}ms {words} "
                    "limit 1000000")
    else:
        path.ahead(f"{back} limit 1000000")


def some(how, name, rate_mbit, rtt_ms, flows=1, queue="fq_codel", warm_s=3, seconds=10):
    """Used of so many connections."""
    path = fair_path(SETPOINT, aqm=QUEUES[queue], rate_bps=rate_mbit * 10**6, rtt_ms=rtt_ms)
    most = max(2 * 10**6, rate_mbit * rtt_ms * 1000)
    for space in (path.s, path.d):
        space.sysctl("net.ipv4.tcp_wmem", f"4096 {most // 2} {most}")
        space.sysctl("net.ipv4.tcp_rmem", f"4096 {most} {2 * most}")
    many, steps = [], how == "steps"
    # What is in order from the beginning; no SYN is lost.
    if how in ORDERED:
        disturb(path, how, rtt_ms)
    for _ in range(flows):
        many.append(path.connect(name))
        if flows > 1:
            pump(many, 0.013)
    if not steps and how not in ORDERED:
        disturb(path, how, rtt_ms)
    pump(many, warm_s)
    before, since = [info(one).bytes_acked for one in many], time.monotonic()
    queues, due = [], 0
    while (now := time.monotonic() - since) < seconds:
        # Up by ten and down by ten, each for two seconds.
        rate = rate_mbit / 10 if steps and now % 4 < 2 else rate_mbit
        if steps:
            set_rate(path, round(rate * 10**6))
        pump(many, 0.05)
        queues.append(path.stats().qlen)
        due += rate * 1e6 * (time.monotonic() - since - now)
    again = [info(one) for one in many]
    shares = [(new.bytes_acked - old) * 8 * PACKET / 1448 * flows / due
              for new, old in zip(again, before)]
    found = Used(sum(shares) / flows, sum(queues) / len(queues), shares)
    note(f"{how}, {rate_mbit} Mb/s {rtt_ms} ms, {flows} of {name} over {queue}: "
         f"{found.goodput:.3f} of the link, shares {min(shares):.3f} to {max(shares):.3f}, "
         f"queue {found.queue:.1f}, {sum(one.total_retrans for one in again)} of "
         f"{sum(one.data_segs_out for one in again)} again"
         + (f", state {[pp_info(one).state for one in many]}, "
            f"R {[pp_info(one).delay_us for one in many]}, "
            f"{counters(path.s)}" if name == "pp" else ""))
    guest_base.cleanup()
    return found


def beside_bbr(rates, rtts, hows=(*WILD, "steps"), flows=(1,), queues=("fq_codel",), name="wild",
               missed=()):
    """pp has at least bbr's goodput, and at most its queue or the setpoint. missed: (how, rtt_ms)
    in which it has not."""
    rows, bad = [], []
    for cell in itertools.product(queues, hows, rates, rtts, flows):
        queue, *words, count = cell
        ours, theirs = (some(words[0], cc, *words[1:], flows=count, queue=queue)
                        for cc in ("pp", "bbr"))
        rows.append([*cell, *ours, *theirs])
        if (words[0], words[2]) not in missed and (
                ours.goodput < theirs.goodput - 0.005 or
                ours.queue > max(theirs.queue, (SETPOINT + 0.5) * count)):
            bad.append([*cell, *ours[:2], *theirs[:2]])
    Path(f"{name}.json").write_text(json.dumps(rows))
    assert not bad, f"{len(bad)} of {len(rows)}: {bad}"


def check_losses():
    """Random losses of 0.1 and 1 %: the link is used, hardly anything waits."""
    for how in WILD[:2]:
        goodput, queue, _ = some(how, "pp", 20, 40, seconds=5)
        assert goodput >= 0.97 and queue <= 12, (how, goodput, queue)


def check_jitter():
    """Each packet takes 5 ms more or less: the time of one packet is no queue."""
    for rate_mbit in (10, 20, 40):
        goodput, queue, _ = some("delay 10ms 5ms", "pp", rate_mbit, 40, seconds=5)
        assert goodput >= 0.97 and queue <= 12, (rate_mbit, goodput, queue)


def ordered(how, rate_mbit=20, less=0.005, share=0.05):
    """What is wrong of two flows that start on such a path, beside two of bbr there. less: of the
    link, than bbr uses; share: by how much that of a flow may be off."""
    ours = some(how, "pp", rate_mbit, 40, flows=2, warm_s=8, seconds=8)
    theirs = some(how, "bbr", rate_mbit, 40, flows=2, warm_s=3, seconds=5)
    return [name for name, is_wrong in (
        ("used", ours.goodput < max(0.975, theirs.goodput) - less),
        ("shares", max(abs(one - ours.goodput) for one in ours.shares) > share),
        ("queue", ours.queue > max(theirs.queue, 2 * (SETPOINT + 0.5)))) if is_wrong]


def check_ordered():
    """Data, or ACKs, that take 5 or 10 ms more or less and stay in order, and ACKs that do not
    stay in order: two flows use the link, have equal shares, and no more waits than with bbr.
    Where ACKs lose their order, shares are off by 6 % in one of six starts."""
    bad = {how: found for how in ORDERED if (found := two_of_three(lambda how=how: ordered(how)))}
    assert not bad, bad


def ordered_fast(cells):
    """The same where more packets are sent in the time that ACKs are held back for than the
    setpoint has. bbr uses 0.97 to 1.0 there. cells: (how, rate in Mb/s)."""
    bad = {cell: found for cell in cells if (found := two_of_three(
        lambda cell=cell: ordered(*cell, less=0.2, share=0.25)))}
    assert not bad, bad


def check_ordered_fast():
    """Two flows used 0.26 to 0.61 of this link."""
    ordered_fast([("acks 10ms rate 10gbit", 100)])


def check_many_ordered_fast():
    """Other rates, and ACKs with 5 ms: one of two flows had a share of 0.17 there, and a queue of
    600 packets."""
    ordered_fast([*itertools.product(("acks 5ms rate 10gbit",), (50, 100, 200)),
                  *itertools.product(("acks 10ms rate 10gbit",), (50, 200))])


def check_many_beside_bbr():
    """The table."""
    beside_bbr((10, 20, 100), (40,))


def check_many_flows_beside_bbr():
    """Two flows, another queue, shorter and longer ways, and eight flows; jitter in order, too.
    README.md has the cells that are missed."""
    every = (*WILD, *ORDERED, "steps")
    beside_bbr((20,), (5, 150), hows=every, flows=(2,), queues=("fq_rr",), name="two",
               missed=[(how, 5) for how in WILD[3:6]] + [("steps", 150)])
    beside_bbr((20,), (40,), hows=every, flows=(8,), name="eight", missed=[("steps", 40)])


if __name__ == "__main__":
    guest_base.main(globals())
