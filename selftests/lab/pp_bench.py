# SPDX-License-Identifier: GPL-2.0
"""A path that serves flows of pp in turn, and what is seen of them."""

import re
import socket
import struct
import time
from collections import namedtuple

from guest_base import note, run
from tcp_bench import PACKET, PORT, TCP_CC_INFO, Path, info, pump

SYSCTL = "net.ipv4.tcp_pp."
SO_MAX_PACING_RATE = 47
START, RISING, DRAINING, DELAYED, SHARED = 1, 2, 4, 8, 16
STATE_UNIT = 10000
# A queue for each flow, served in turn, and no opinion on its length.
FAIR = "fq_codel limit 10000 flows 65536 quantum 1514 target 10s interval 100s"
FULL_BPS = 10**7 * 1448 / PACKET
# Packets in 40 ms.
PIPE = 0.04 * 10**7 / 8 / PACKET
Pp = namedtuple("Pp", "bw delay_us queue setpoint state")

# Settings: what they take, and what they refuse.
TAKEN = {"estimator": ("fixed", "kalman", "fuzzy"),
         "law": ("discrete", "continuous"),
         "gain": ("0.5", "1", "0.125"), "kalman_ratio": ("128", "0.015625"),
         "setpoint": ("0", "9999", "10"), "setpoint_max": ("2", "9999"),
         "train": ("64", "2"), "initial": ("1024", "0"),
         "initial_rate": ("100000000", "1", "0"),
         "window": ("1048576", "0"), "reserved": ("1048576", "1", "0"),
         "pole": ("1", "0.5", "0.01", "0.9"),
         "setpoint_step": ("64", "0.5", "2"),
         "setpoint_every": ("4", "1", "2"),
         "setpoint_cut": ("0.5", "0.75")}
REFUSED = {"estimator": ("fuzz", "", "fuzzyfuzzyfuzzyfuzzy"),
           "law": ("9", "cont"),
           "gain": ("0", "1.1", "-1", "x"), "kalman_ratio": ("0", "129"),
           "setpoint": ("10000", "-1", "x"), "setpoint_max": ("1", "10000"),
           "train": ("1", "65"), "initial": ("1025", "-1"),
           "initial_rate": ("100000001", "-1", "x"),
           "window": ("1048577", "-1"), "reserved": ("1048577", "-1"),
           "pole": ("0", "1.01"),
           "setpoint_step": ("0.003", "65"), "setpoint_every": ("0", "5"),
           "setpoint_cut": ("0", "1")}


def pp_info(connection):
    """What ss shows as bbr:(), as what it is."""
    low, high, delay_us, queue, setpoint = struct.unpack(
        "=5I", connection.getsockopt(socket.IPPROTO_TCP, TCP_CC_INFO, 20))
    state, setpoint = divmod(setpoint, STATE_UNIT * 256)
    return Pp((high << 32 | low) * 8, delay_us, queue / 256, setpoint / 256,
              state)


def fair_path(setpoint=None, bucket=False, **words):
    """A path whose bottleneck serves flows in turn.

    bucket: an idle link lets two packets pass at once, as HTB does that has
    tokens for one and sends while it has no debt.
    """
    path = Path(**{"aqm": FAIR, "sink": "reno", "quickack": True, **words})
    if not bucket:
        path.r1.run("tc class change dev right parent 1: classid 1:1 htb rate "
                    f"{words.get('rate_bps', 10**7)}bit burst 47 cburst 47 "
                    "quantum 1514")
    # What leaves a host are packets of one segment.
    path.s.run("ip link set dev right gso_max_segs 1")
    path.d.run("ip link set dev left gso_max_segs 1")
    # Two dozen flows may not hold more than TCP has memory for.
    for space in (path.s, path.d):
        space.sysctl("net.ipv4.tcp_wmem", "4096 1000000 1000000")
    if setpoint is not None:
        path.s.sysctl(SYSCTL + "setpoint", setpoint)
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


def trace(seen, every=1):
    """Some of what look() saw, for a failure's report."""
    for when, queue, pp, tcp in seen[::every]:
        note(f"{when:.3f} queue {queue} n_hat {pp.queue:.2f} B {pp.setpoint} "
             f"1/s {pp.bw / 1e6:.3f} R {pp.delay_us} rtt {tcp.rtt} "
             f"state {pp.state} rate {tcp.pacing_rate * 8 / 1e6:.3f} "
             f"unacked {tcp.unacked} cwnd {tcp.cwnd} "
             f"retrans {tcp.total_retrans}")


def goodputs(connections, warm_s, seconds):
    """bit/s of acknowledged payload of each, after a time to settle."""
    pump(connections, warm_s)
    before = [info(one).bytes_acked for one in connections]
    began = time.monotonic()
    pump(connections, seconds)
    took = time.monotonic() - began
    return [(info(one).bytes_acked - was) * 8 / took
            for one, was in zip(connections, before)]


def received(path, connections):
    """Bytes that have arrived of each. The sender learns of them by ACKs: where these are
    thinned, of many segments at a time."""
    lines = path.d.run(f"ss -Htin sport = :{PORT}").splitlines()
    found = {peer.split()[4].rpartition(":")[2]:
             int(re.search(r"bytes_received:(\d+)", said).group(1))
             for peer, said in zip(lines[::2], lines[1::2])}
    return [found[str(one.getsockname()[1])] for one in connections]


def counters(space):
    """/proc/net/tcp_pp of a namespace."""
    with space:
        text = run("cat /proc/net/tcp_pp")
    return {name: int(value) for name, value in
            (line.split() for line in text.splitlines())}


def set_rate(path, rate_bps):
    """Another rate for the bottleneck of fair_path()."""
    path.r1.run("tc class change dev right parent 1: classid 1:1 htb rate "
                f"{rate_bps}bit burst 47 cburst 47 quantum 1514")


def limit(flow, rate=None):
    """No more than so many bytes/s, or as many as the law lets it."""
    flow.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE,
                    struct.pack("=Q", rate or 2**64 - 1))


def after_burst(loss, lasts_s, limited_s):
    """A burst of losses, percent for s, then s with an application that sends little:
    (path, TCP_INFO, state of pp, round trips from the end of that until 98 % of the
    link are used again or None)."""
    path = fair_path(20, rtt_ms=200)
    flow = path.connect("pp")
    pump([flow], 3)
    path.ahead(f"loss {loss}% limit 10000")
    pump([flow], lasts_s)
    path.ahead("limit 10000")
    # Until nothing is on the way but a pair of repairs now and then.
    limit(flow, 15000)
    look(path, flow, limited_s)
    begun, state = info(flow), pp_info(flow).state
    limit(flow)
    seen = [(0, begun.delivered)] + [
        (when, tcp.delivered) for when, *_, tcp in look(path, flow, 2)]
    # Of a fifth of a second.
    full = [when / 0.2 for (since, was), (when, now) in zip(seen, seen[40:])
            if (now - was) * 8 * PACKET >= 0.98 * 10**7 * (when - since)]
    note(f"{begun.lost} lost, {begun.total_retrans} sent again; full after "
         f"{full[0] if full else None} round trips")
    return path, begun, state, full[0] if full else None
