# SPDX-License-Identifier: GPL-2.0
"""pp where two segments may not leave as one packet, of applications that send single
segments, and on paths that become longer again and again."""

import json
import selectors
import socket
import struct
import threading
import time

import guest_base
from guest_base import note
from guest_release import MSS
from pp_bench import FULL_BPS, PIPE, SHARED, fair_path, goodputs, look, pp_info
from tcp_bench import PACKET, TCP_CONGESTION, info, pump

TCP_MD5SIG, SO_SNDBUFFORCE, SIGNED_PORT = 14, 32, 5002
SETPOINT, WINDOW = 10, 64


def with_key(made, address):
    """Let a socket sign what it sends to an address, and ask for as much (RFC 2385)."""
    key = b"toll"
    made.setsockopt(socket.IPPROTO_TCP, TCP_MD5SIG, struct.pack(
        "=H2x4s120xBBHi80s", socket.AF_INET, socket.inet_aton(address), 0, 0, len(key), 0,
        key))
    return made


def signed_flows(path, count):
    """Connections of pp whose segments are signed, and somebody who reads what arrives."""
    with path.d:
        sink = with_key(socket.socket(), "10.0.0.1")
        sink.bind(("", SIGNED_PORT))
        sink.listen()

    def read():
        heard = selectors.DefaultSelector()
        heard.register(sink, selectors.EVENT_READ)
        while True:
            for one, _ in heard.select():
                if one.fileobj is sink:
                    heard.register(sink.accept()[0], selectors.EVENT_READ)
                else:
                    one.fileobj.recv(1 << 20)
    threading.Thread(target=read, daemon=True).start()
    flows = []
    for _ in range(count):
        with path.s:
            flows.append(with_key(socket.socket(), "10.0.2.2"))
        flows[-1].setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"pp")
        flows[-1].connect(("10.0.2.2", SIGNED_PORT))
    return flows


def check_signed():
    """Segments that are signed leave one by one, and are pairs as others."""
    path = fair_path(SETPOINT)
    path.s.run("ip link set dev right gso_max_segs 65535")
    flows = signed_flows(path, 2)
    rates = goodputs(flows, 5, 10)
    queue = []
    for _ in range(400):
        pump(flows, 0.01)
        queue.append(path.stats().qlen)
    states = [pp_info(flow) for flow in flows]
    mean = sum(queue) / len(queue)
    heard = json.loads(path.r1.run("ip -j -s link show left"))[0]["stats64"]["rx"]
    octets, packets = heard["bytes"], heard["packets"]
    note(f"{[round(one / FULL_BPS, 4) for one in rates]} of the link, {mean:.1f} packets wait, "
         f"{octets / packets:.0f} bytes of a packet, {states}, {path.stats().drops} dropped")
    assert octets / packets <= PACKET and path.stats().drops == 0
    # An option of 20 bytes is in each of them.
    assert sum(rates) > 0.97 * FULL_BPS * 1428 / 1448
    assert all(abs(one / sum(rates) - 0.5) < 0.025 for one in rates)
    assert mean <= 2 * SETPOINT + 1
    assert all(abs(one.bw / sum(rates) - 0.5) < 0.025 and not one.state & (SHARED | WINDOW)
               for one in states)
    assert all(info(flow).total_retrans == 0 for flow in flows)


def check_silence():
    """Nothing comes back any more: no more leaves than the window has room for, in turns as
    otherwise, and timeouts begin."""
    for signed in (False, True):
        path = fair_path(SETPOINT)
        flow, = signed_flows(path, 1) if signed else [path.connect("pp")]
        # Else the kernel gives it no room for more.
        flow.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 4000000)
        pump([flow], 5)
        path.black_hole(True)
        pump([flow], 3)
        outstanding, backoff = info(flow).unacked, info(flow).backoff
        path.black_hole(False)
        pump([flow], 10)
        rate, = goodputs([flow], 0, 5)
        note(f"{'signed: ' if signed else ''}{outstanding} outstanding, backoff {backoff}, then "
             f"{rate / FULL_BPS:.3f} of the link")
        assert outstanding <= 2 * (PIPE + SETPOINT) + 32 and backoff >= 1
        assert rate > 0.95 * FULL_BPS
        guest_base.cleanup()


def check_single_segments():
    """An application that sends small messages, two in a round trip, for a minute: no pair
    tells anything, and what it then sends at once is an initial window."""
    path = fair_path(SETPOINT)
    flow = path.connect("pp")
    flow.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        flow.send(b"x" * 100)
        time.sleep(0.02)
    cwnd = info(flow).cwnd
    peak = max(one[1] for one in look(path, flow, 1))
    note(f"window {cwnd} after a minute, then {peak} packets wait")
    assert cwnd <= 20 and peak <= 30


def check_small_writes():
    """Two messages of a segment each in the first round trip, as of ssh and TLS, leave the
    initial window as it is. It became that of a pair."""
    path = fair_path(SETPOINT, shipped=True)
    flow = path.connect("pp")
    flow.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(2):
        flow.send(bytes(100))
        time.sleep(0.01)
    time.sleep(0.2)
    now = info(flow)
    note(f"a window of {now.cwnd}, {now.data_segs_out} segments, {now.unacked} outstanding")
    assert not now.unacked and now.data_segs_out == 2 and now.cwnd == 10


def check_tail_loss():
    """The last segment of a message is lost and a probe repairs it: the setpoint stays."""
    path = fair_path(SETPOINT)
    flow = path.connect("pp")
    flow.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(5):
        flow.send(b"x" * 64 * MSS)
        time.sleep(1)
        path.black_hole(True)
        before = info(flow).total_retrans
        flow.send(b"x" * MSS)
        time.sleep(0.045)
        path.black_hole(False)
        time.sleep(1)
        pp = pp_info(flow)
        again = info(flow).total_retrans - before
        note(f"{again} sent again, setpoint {pp.setpoint}, state {pp.state}")
        assert again == 1 and pp.setpoint == SETPOINT


def check_longer_again():
    """A path that becomes longer, and again after a hundred round trips: R follows, and it is
    not taken for a shared queue."""
    path = fair_path(SETPOINT)
    flow = path.connect("pp")
    pump([flow], 20)
    for rtt_ms in (70, 120):
        path.r2.run(f"tc qdisc change dev left root netem delay {rtt_ms}ms limit 1000000")
        seen = look(path, flow, 5 + 100 * rtt_ms / 1000, 0.1)
        window = sum(1 for *_, one, _ in seen if one.state & WINDOW) / len(seen)
        rate, = goodputs([flow], 0, 3)
        note(f"{rtt_ms} ms: R {pp_info(flow).delay_us}, a window in {window:.2f} of the samples, "
             f"{rate / FULL_BPS:.3f} of the link")
        assert abs(pp_info(flow).delay_us / 1000 / rtt_ms - 1) < 0.05
        assert rate > 0.97 * FULL_BPS and window == 0


if __name__ == "__main__":
    guest_base.main(globals())
