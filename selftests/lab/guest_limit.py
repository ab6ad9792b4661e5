# SPDX-License-Identifier: GPL-2.0
"""pp over a queue that has room for fewer packets than its flows want to wait.

n flows with a setpoint of 10 want 10 n packets to wait, and the limit is 100. A
setpoint that was too much is tried again ever more rarely, so after the first
seconds hardly anything is lost.
"""

import guest_base
from guest_base import note
from pp_bench import counters, fair_path, pp_info
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
