# SPDX-License-Identifier: GPL-2.0
"""Behaviour of the congestion control pp between network namespaces."""

import socket
import struct
import time
from collections import namedtuple

import guest_base
from guest_base import near, note, run
from tcp_bench import PACKET, TCP_CC_INFO, Path, info, pump, settle

SYSCTL = "net.ipv4.tcp_pp."
START, RISING, DRAINING = 1, 2, 4
STATE_UNIT = 10000
# A queue for each flow, served in turn, and no opinion on its length.
FAIR = "fq_codel limit 10000 flows 1024 quantum 1514 target 10s interval 100s"
Pp = namedtuple("Pp", "bw delay_us queue setpoint state")


def pp_info(connection):
    """What ss shows as bbr:(), as what it is."""
    low, high, delay_us, queue, setpoint = struct.unpack(
        "=5I", connection.getsockopt(socket.IPPROTO_TCP, TCP_CC_INFO, 20))
    state, setpoint = divmod(setpoint, STATE_UNIT * 256)
    return Pp(high << 32 | low, delay_us, queue / 256, setpoint / 256, state)


def fair_path(**words):
    """A path whose bottleneck serves flows in turn."""
    path = Path(**{"aqm": FAIR, "sink": "reno", "quickack": True, **words})
    # What leaves the host are packets of one segment.
    path.s.run("ip link set dev right gso_max_segs 1")
    return path


def look(path, connection, seconds, step_s=0.005):
    """[(time, real queue, Pp, Info)] of a busy connection."""
    found = []
    started = time.monotonic()
    while time.monotonic() < started + seconds:
        pump([connection], step_s)
        found.append((time.monotonic() - started, path.stats().qlen,
                      pp_info(connection), info(connection)))
    return found


def check_setpoint():
    """The queue is at the setpoint after 10 round trips, and stays there."""
    path = fair_path()
    path.s.sysctl(SYSCTL + "setpoint", 20)
    flow = path.connect("pp")
    seen = look(path, flow, 4)
    for when, queue, pp, tcp in seen[::8][:40] + seen[::80]:
        note(f"{when:.3f} queue {queue} n_hat {pp.queue:.2f} B {pp.setpoint} "
             f"1/s {pp.bw * 8 / 1e6:.3f} R {pp.delay_us} state {pp.state} "
             f"rate {tcp.pacing_rate * 8 / 1e6:.3f} unacked {tcp.unacked} "
             f"cwnd {tcp.cwnd} retrans {tcp.total_retrans}")
    late = [queue for when, queue, *_ in seen if when > 0.5]
    note(f"queue {min(late)} to {max(late)}")
    assert 18 <= min(late) and max(late) <= 22


if __name__ == "__main__":
    guest_base.main(globals())
