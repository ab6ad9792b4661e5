# SPDX-License-Identifier: GPL-2.0
"""pp beside what bbr does on the same path: losses, jitter, reordering, steps.

Each path has a queue that serves flows in turn (fq_codel without an opinion on
length), and is used by one connection for some time.
"""

import json
import time
from pathlib import Path

import guest_base
from guest_base import note
from pp_bench import counters, fair_path, pp_info
from tcp_bench import PACKET, info, pump

# What happens to the packets: netem's words, or the rates of steps.
WILD = ("loss random 0.1%", "loss random 1%", "loss random 3%",
        "delay 10ms 5ms", "delay 10ms 5ms 90%", "delay 10ms reorder 75% 50%",
        "delay 5ms reorder 99% 25%")


def set_rate(path, rate_bps):
    """Another rate of the bottleneck."""
    path.r1.run("tc class change dev right parent 1: classid 1:1 htb rate "
                f"{rate_bps}bit burst 1514 cburst 1514 quantum 1514")


def one(how, name, rate_mbit, rtt_ms, warm_s=3, seconds=10):
    """(part of the link, mean queue) of one connection."""
    path = fair_path(10, rate_bps=rate_mbit * 10**6, rtt_ms=rtt_ms)
    most = max(2 * 10**6, rate_mbit * rtt_ms * 1000)
    for space in (path.s, path.d):
        space.sysctl("net.ipv4.tcp_wmem", f"4096 {most // 2} {most}")
        space.sysctl("net.ipv4.tcp_rmem", f"4096 {most} {2 * most}")
    flow = path.connect(name)
    steps = how == "steps"
    if not steps:
        path.ahead(f"{how} limit 1000000")
    pump([flow], warm_s)
    before, since = info(flow).bytes_acked, time.monotonic()
    queues, due = [], 0
    while (now := time.monotonic() - since) < seconds:
        # Up by ten and down by ten, each for two seconds.
        rate = rate_mbit / 10 if steps and now % 4 < 2 else rate_mbit
        if steps:
            set_rate(path, round(rate * 10**6))
        pump([flow], 0.05)
        queues.append(path.stats().qlen)
        due += rate * 1e6 * (time.monotonic() - since - now)
    goodput = (info(flow).bytes_acked - before) * 8 * PACKET / 1448 / due
    queue = sum(queues) / len(queues)
    again = info(flow)
    note(f"{how}, {rate_mbit} Mb/s {rtt_ms} ms, {name}: {goodput:.3f} of the link, "
         f"queue {queue:.1f}, {again.total_retrans} of {again.data_segs_out} again"
         + (f", state {pp_info(flow).state}, R {pp_info(flow).delay_us}, "
            f"{counters(path.s)}" if name == "pp" else ""))
    guest_base.cleanup()
    return goodput, queue


def beside_bbr(rates, rtts, hows=(*WILD, "steps")):
    """pp has at least bbr's goodput, and at most its queue or the setpoint."""
    rows, bad = [], []
    for how in hows:
        for rate_mbit in rates:
            for rtt_ms in rtts:
                ours, theirs = (one(how, name, rate_mbit, rtt_ms)
                                for name in ("pp", "bbr"))
                rows.append([how, rate_mbit, rtt_ms, *ours, *theirs])
                if ours[0] < theirs[0] - 0.005 or ours[1] > max(theirs[1], 10.5):
                    bad.append(rows[-1])
    Path("wild.json").write_text(json.dumps(rows))
    assert not bad, f"{len(bad)} of {len(rows)}: {bad}"


def check_losses():
    """Random losses of 0.1 and 1 %: the link is used, hardly anything waits."""
    for how in WILD[:2]:
        goodput, queue = one(how, "pp", 20, 40, seconds=5)
        assert goodput >= 0.97 and queue <= 12, (how, goodput, queue)


def check_jitter():
    """Each packet takes 5 ms more or less: the time of one packet is no queue."""
    for rate_mbit in (10, 20, 40):
        goodput, queue = one("delay 10ms 5ms", "pp", rate_mbit, 40, seconds=5)
        assert goodput >= 0.97 and queue <= 12, (rate_mbit, goodput, queue)


def check_many_beside_bbr():
    """The table."""
    beside_bbr((10, 20, 100), (40,))


if __name__ == "__main__":
    guest_base.main(globals())
