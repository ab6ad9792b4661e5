# SPDX-License-Identifier: GPL-2.0
"""A congestion control of ours gives back what it took from a socket when the
socket takes another one: size of packets, pacing, window."""

import socket
import struct
import time

import guest_base
from guest_base import note
from guest_price import segments, tap
from tcp_bench import (PACKET, PORT, TCP_CONGESTION, Path, info, pump,
                       settle)

PP, SBRM = "net.ipv4.tcp_pp.", "net.ipv4.tcp_sbrm."
SO_MAX_PACING_RATE, SO_TIMESTAMPNS = 47, 35
MSS = 1448


def take(flow, cc):
    """Let a connection have another congestion control."""
    flow.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, cc.encode())


def sizes(raw, flow, seconds=1):
    """(segments in the largest packet that leaves the sender in some time, those
    that its mean rate then sends in 64 us)."""
    segments(raw)
    sent, started = [], time.monotonic()
    while time.monotonic() < started + seconds:
        # The tap has no room for more than some 15 ms.
        pump([flow], 0.01)
        sent += [-(-one.payload // MSS) for one in segments(raw) if one.there]
    return max(sent), sum(sent) / (time.monotonic() - started) * 64e-6


def largest(raw, flow, seconds=1):
    """The first of sizes()."""
    return sizes(raw, flow, seconds)[0]


def check_large_packets_come_back():
    """pp and ppx: after changes of train on the way, packets are as large as the
    device takes; also where it takes others than before."""
    for cc in ("pp", "ppx"):
        path = Path(rate_bps=10**9, rtt_ms=4, aqm="pfifo limit 10000",
                    sink="reno", quickack=True)
        # What waits in the sender keeps the size with which it was written.
        path.s.sysctl("net.ipv4.tcp_notsent_lowat", 2 * MSS)
        raw = tap(path.s, "right")
        flow = path.connect("cubic")
        before = largest(raw, flow)
        take(flow, cc)
        pump([flow], 1)
        ours = []
        for train in (8, 3, 2, 5):
            path.s.sysctl(PP + "train", train)
            pump([flow], 1)
            ours.append((train, largest(raw, flow)))
        take(flow, "cubic")
        pump([flow], 1)
        after = largest(raw, flow)
        take(flow, cc)
        path.s.sysctl(PP + "train", 2)
        pump([flow], 1)
        path.s.run("ip link set dev right gso_max_segs 9")
        path.s.sysctl(PP + "train", 4)
        pump([flow], 1)
        take(flow, "cubic")
        pump([flow], 1)
        fewer = largest(raw, flow)
        note(f"{cc}: {before} segments before, (train, segments) {ours}, {after} "
             f"after, {fewer} where the device takes 9")
        assert all(train == size for train, size in ours)
        assert before > 9 and after > 9 and fewer == 9
        guest_base.cleanup()


def check_bursts_of_a_flow():
    """sbrm, rem, rm and cp at 1 Gb/s: what leaves as one packet is 64 us at most,
    of a flow of 10 Mb/s two segments; as much as the device of the route takes, if
    that is less, also of a later route; and gone when another one follows."""
    queue = "tc qdisc replace dev right parent 1:1 handle {}: {}"
    for cc in ("sbrm", "rem", "rm", "cp"):
        path = Path(rate_bps=10**9, rtt_ms=4, aqm="pfifo limit 1000", sink=cc)
        path.s.sysctl("net.ipv4.tcp_wmem", "4096 2000000 2000000")
        path.s.sysctl(SBRM + "wtp", 5000)
        raw = tap(path.s, "right")
        flow = path.connect("cubic")
        before = largest(raw, flow)
        path.r1.run(queue.format(20, "sbrm limit 1000 target 10" + (
            " feedback price" if cc == "cp" else "")))
        take(flow, cc)
        # TCP/RM takes its time.
        pump([flow], 15 if cc == "rm" else 5)
        found = {None: sizes(raw, flow, 0.1)}
        for most in (1, 4, 65535):
            path.s.run(f"ip link set dev right gso_max_segs {most}")
            # Sockets look for their route again.
            path.s.run("ip route replace 10.9.0.0/16 via 10.0.0.2")
            path.s.run("ip route del 10.9.0.0/16")
            pump([flow], 0.2)
            found[most] = sizes(raw, flow, 0.1)
        path.r1.run(queue.format(30, "pfifo limit 1000"))
        take(flow, "cubic")
        pump([flow], 1)
        after = largest(raw, flow, 0.2)
        slow = path.connect(cc)
        slow.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, 10**7 // 8)
        pump([slow], 3)
        few = largest(raw, slow)
        note(f"{cc}: {before} segments before, (largest, sent in 64 us) where the "
             f"device takes some {found}, {after} after, {few} of a slow flow")
        assert before > 9 and after > 9
        assert found[None][0] >= 3
        # A packet has the whole segments that the window of its time sends in
        # 64 us. That goes up and down: the largest of a time has those of the mean
        # at least, and those of a full link at most.
        full = 1.2 * 64e-6 * 10**9 / 8 / PACKET
        for most, (size, mean) in found.items():
            most = most or 65535
            assert min(int(mean), most) <= size <= min(full, most), (cc, found)
        assert few <= 2
        guest_base.cleanup()


def slow_flow():
    """A connection of sbrm that sends one packet in about 10 s."""
    path = Path(rtt_ms=10000, initcwnd=1, aqm="pfifo limit 100")
    for name, value in (("slow_start", 0), ("kappa", "0.000001")):
        path.s.sysctl(SBRM + name, value)
    flow = path.connect("sbrm")
    # The stack does not pace the first ten.
    pump([flow], 200)
    return flow


def check_gap_ends():
    """A gap of seconds, charged at the rate of sbrm, does not outlast it."""
    flow = slow_flow()
    before = info(flow)
    # Right behind a packet: the whole gap is still to come.
    while info(flow).data_segs_out == before.data_segs_out:
        time.sleep(0.005)
    left = info(flow)
    started = time.monotonic()
    take(flow, "reno")
    while info(flow).data_segs_out == left.data_segs_out:
        time.sleep(0.005)
    took = time.monotonic() - started
    note(f"sbrm sent {before.pacing_rate} B/s in a window of {left.cwnd}; reno's "
         f"first packet after {took:.3f} s")
    assert MSS / before.pacing_rate > 5, "there was no gap to end"
    assert left.unacked < left.cwnd and took < 0.1


def stamped(raw):
    """Times at which packets with data left, s."""
    found = []
    while True:
        try:
            frame, words, _, _ = raw.recvmsg(100, 100)
        except BlockingIOError:
            return found
        if frame[12:14] != b"\x08\x00" or frame[23] != 6:
            continue
        payload = struct.unpack_from(">H", frame, 16)[0] - 20 - \
            (frame[46] >> 4) * 4
        if payload and struct.unpack_from(">H", frame, 36)[0] == PORT:
            found.append(struct.unpack("=qq", words[0][2]))
    return found


def spread(path, flow):
    """Time over which some packets leave that the window has room for, s."""
    settle(flow)
    raw = tap(path.s, "right")
    raw.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    flow.setblocking(True)
    for _ in range(8):
        flow.send(bytes(MSS))
    settle(flow)
    times = [seconds + ns / 1e9 for seconds, ns in stamped(raw)]
    assert len(times) >= 2
    return times[-1] - times[0]


def check_pacing_ends():
    """reno after sbrm or pp is paced where the socket asks for it, only."""
    for cc in ("sbrm", "pp"):
        path = Path(rate_bps=10**7, rtt_ms=200, aqm="pfifo limit 1000",
                    sink="sbrm")
        path.s.run("ip link set dev right gso_max_segs 1")
        path.s.sysctl("net.ipv4.tcp_slow_start_after_idle", 0)
        flow = path.connect("reno")
        flow.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pump([flow], 0.3)
        never = spread(path, flow)
        take(flow, cc)
        pump([flow], 3)
        take(flow, "reno")
        pump([flow], 1)
        after = spread(path, flow)
        flow.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, 100000)
        take(flow, cc)
        pump([flow], 1)
        take(flow, "reno")
        asked = spread(path, flow)
        note(f"{cc}: 8 packets of reno leave within {never:.4f} s before, "
             f"{after:.4f} s after, {asked:.4f} s at 100 kB/s")
        assert never < 0.001 and after < 0.001
        assert asked > 0.5 * 8 * MSS / 100000
        guest_base.cleanup()


def check_window_of_ppx():
    """What follows ppx begins with what is outstanding, not with its window."""
    path = Path(rate_bps=10**7, rtt_ms=20, aqm="pfifo limit 100", sink="reno")
    flow = path.connect("ppx")
    pump([flow], 2)
    there = info(flow)
    take(flow, "reno")
    last = info(flow)
    note(f"window {there.cwnd} with ppx, {last.cwnd} after it, {there.unacked} "
         "outstanding")
    assert there.cwnd > 100000
    assert last.cwnd <= max(there.unacked, 10)


if __name__ == "__main__":
    guest_base.main(globals())
