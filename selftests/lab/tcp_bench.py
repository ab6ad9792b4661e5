# SPDX-License-Identifier: GPL-2.0
"""A path for TCP between namespaces.

    s ---- r1 ==[HTB: AQM]== r2 --[netem: loss, reordering]-- d
                 <--------- [netem: round-trip time]

Everything forward passes the AQM at r1, then whatever r2 does to it; the delay
is on the way back, so that a loss or a pause ahead is felt soon.
"""

import random
import socket
import struct
import sys
import time
from collections import namedtuple

from guest_base import (
    SETTINGS, Namespace, mac, note, quiet, reset_later, run, start, wait_for_links)
from rtnl import TC_H_ROOT, Rtnl, options

TRAFFIC = "/run/tollway/build/tools/tollway-traffic"
PORT = 5000
TCP_INFO, TCP_CONGESTION, TCP_CC_INFO = 11, 13, 26
SO_PRIORITY = 12
OPEN, DISORDER, CWR, RECOVERY, LOSS = range(5)
PACKET = 1514

_INFO = struct.Struct("=8B24I4Q2I4I4Q2I2Q4I")
_FIELDS = (
    "state ca_state retransmits probes backoff options wscale flags rto ato "
    "snd_mss rcv_mss unacked sacked lost retrans fackets last_data_sent "
    "last_ack_sent last_data_recv last_ack_recv pmtu rcv_ssthresh rtt rttvar "
    "snd_ssthresh cwnd advmss reordering rcv_rtt rcv_space total_retrans "
    "pacing_rate max_pacing_rate bytes_acked bytes_received segs_out segs_in "
    "notsent_bytes min_rtt data_segs_in data_segs_out delivery_rate busy_time "
    "rwnd_limited sndbuf_limited delivered delivered_ce bytes_sent "
    "bytes_retrans dsack_dups reord_seen rcv_ooopack snd_wnd")
Info = namedtuple("Info", _FIELDS)
CcInfo = namedtuple("CcInfo", "enabled ce_state alpha ab_ecn ab_tot")


def info(connection):
    """TCP_INFO of a socket."""
    return Info(*_INFO.unpack(connection.getsockopt(
        socket.IPPROTO_TCP, TCP_INFO, _INFO.size)))


def cc_info(connection):
    """What ss shows as dctcp:()."""
    return CcInfo(*struct.unpack("=HHIII", connection.getsockopt(
        socket.IPPROTO_TCP, TCP_CC_INFO, 16)))


def as_papers(space):
    """Give a namespace the source of CP05, and what its flows pay there; nothing
    where the module is not loaded."""
    try:
        space.sysctl("net.ipv4.tcp_sbrm.source", "direct")
    except FileNotFoundError:
        return
    space.sysctl("net.ipv4.tcp_sbrm.wtp", " ".join(["100"] * 16))


def paper_queue(limit, target, gamma, **words):
    """Options of a queue with the law of CP05; or as it comes."""
    if SETTINGS["shipped"]:
        return options(law=None, **words)
    return options(limit=limit, target=target, gamma=gamma, **words)


def class_of(text):
    """The number of a class as tc names it, such as 1:1; or of root."""
    if text == "root":
        return TC_H_ROOT
    major, minor = text.split(":")
    return int(major, 16) << 16 | int(minor, 16)


class Path:
    """The four namespaces; `aqm` is a tc line or options for sbrm.

    Law and source are those of CP05, with w = 100; shipped, here or in SETTINGS:
    as the modules come.
    shape: lines of tc for r1's "right" in the place of a class of HTB, and what
    the queue is below then.
    Attributes: to is the address of the sink; a full packet has size bytes on the wire,
    payload of them are data.
    """

    to, size, payload = "10.0.2.2", PACKET, 1448

    def __init__(self, rate_bps=10**7, rtt_ms=40, aqm=None, sink="sbrm",
                 sink_ecn=1, quickack=False, mtu=1500, initcwnd=None,
                 shipped=False, shape=None, leaf="1:1"):
        shipped = shipped or SETTINGS["shipped"]
        self.spaces = [Namespace(name) for name in ("s", "r1", "r2", "d")]
        self.s, self.r1, self.r2, self.d = self.spaces
        for space in self.spaces:
            quiet(space)
        for number, (left, right) in enumerate(zip(self.spaces,
                                                   self.spaces[1:])):
            first, second = mac(2 * number + 1), mac(2 * number + 2)
            net = f"10.0.{number}"
            left.batch("ip", [
                f"link add right type veth peer name left netns {right.name}",
                f"link set right address {first} mtu {mtu}",
                f"addr add {net}.1/24 dev right", "link set right up"])
            right.batch("ip", [
                f"link set left address {second} mtu {mtu}",
                f"addr add {net}.2/24 dev left", "link set left up",
                f"neigh add {net}.1 lladdr {first} dev left nud permanent"])
            left.run(f"ip neigh add {net}.2 lladdr {second} dev right "
                     "nud permanent")
        for router in (self.r1, self.r2):
            router.sysctl("net.ipv4.ip_forward", 1)
        there = f" initcwnd {initcwnd}" if initcwnd else ""
        back = " quickack 1" if quickack else ""
        self.s.batch("ip", ["route add 10.0.0.0/8 via 10.0.0.2" + there])
        self.r1.batch("ip", ["route add 10.0.2.0/24 via 10.0.1.2"])
        self.r2.batch("ip", ["route add 10.0.0.0/24 via 10.0.1.1"])
        self.d.batch("ip", ["route add 10.0.0.0/8 via 10.0.2.1" + back])
        self.s.sysctl("net.ipv4.tcp_ecn", 1)
        self.s.sysctl("net.ipv4.tcp_no_metrics_save", 1)
        self.s.sysctl("net.ipv4.tcp_wmem", "4096 4000000 16000000")
        if not shipped:
            for space in (self.s, self.d):
                as_papers(space)
        self.d.sysctl("net.ipv4.tcp_ecn", sink_ecn)
        self.d.sysctl("net.ipv4.tcp_rmem", "4096 4000000 16000000")
        if rate_bps:
            self.r1.batch("tc", [
                "qdisc add dev right root handle 1: htb default 1",
                f"class add dev right parent 1: classid 1:1 htb "
                f"rate {rate_bps}bit burst {mtu + 14} cburst {mtu + 14} "
                f"quantum {mtu + 14}"] if shape is None else shape)
            with self.r1:
                self.rtnl = Rtnl()
            if isinstance(aqm, str):
                self.r1.run(f"tc qdisc add dev right parent {leaf} handle 10: " +
                            aqm)
            else:
                if aqm is None:
                    aqm = options(**({"law": None} if shipped else {}))
                with self.r1:
                    self.rtnl.sbrm("right", aqm, parent=class_of(leaf))
        # Here from the start: adding it resets the root qdisc of the device.
        self.r2.run("tc qdisc add dev left clsact")
        if rtt_ms:
            self.r2.batch("tc", [f"qdisc add dev left root netem "
                                 f"delay {rtt_ms}ms limit 1000000"])
        self.sink(sink)
        for left, right in zip(self.spaces, self.spaces[1:]):
            wait_for_links((left, "right"), (right, "left"))

    def sink(self, cc, port=PORT):
        """Start a receiver."""
        with self.d:
            start([TRAFFIC, "sink", "--port", str(port), "--cc", cc,
                   "--json", "/dev/null"])
            while not run(f"ss -Htln sport = :{port}").strip():
                time.sleep(0.01)

    def ahead(self, netem):
        """netem at r2 for what goes to d."""
        self.r2.run(f"tc qdisc replace dev right root netem {netem}")

    def black_hole(self, on):
        """Drop everything that comes to r2 from r1."""
        self.r2.run("tc filter add dev left ingress prio 9 matchall "
                    "action drop" if on else
                    "tc filter del dev left ingress prio 9")

    def meddled(self, how):
        """Let a program forward what goes to d, see meddle()."""
        self.black_hole(True)
        with self.r2:
            start([sys.executable, __file__, how, "left", "right"])
        time.sleep(1)

    def stats(self):
        """Of the sbrm at r1."""
        with self.r1:
            return self.rtnl.stats("right")

    def connect(self, cc="sbrm", priority=None, port=PORT, family=socket.AF_INET,
                address=None):
        """A connection from s to the sink."""
        with self.s:
            made = reset_later(socket.socket(family))
        made.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, cc.encode())
        if priority is not None:
            made.setsockopt(socket.SOL_SOCKET, SO_PRIORITY, priority)
        made.connect((address or self.to, port))
        return made

    def sniffer(self):
        """A socket that keeps all frames that reach d."""
        with self.d:
            raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            raw.setsockopt(socket.SOL_SOCKET, 33, 1 << 28)
            raw.setsockopt(263, 23, 1)
            raw.bind(("left", 0x0800))
        raw.setblocking(False)
        return raw


class Sniffed(namedtuple("Sniffed", "ecn flags payload")):
    """IP's ECN, TCP's flags and the payload's length of a frame."""


def sniffed(raw):
    """What a sniffer has kept."""
    found = []
    while True:
        try:
            frame = raw.recv(100)
        except BlockingIOError:
            return found
        if frame[23] == 6:
            found.append(Sniffed(
                frame[15] & 3, frame[47],
                struct.unpack_from(">H", frame, 16)[0] - 20 -
                (frame[46] >> 4) * 4))


DATA = memoryview(bytes(1 << 18))


def pump(connections, seconds):
    """Keep connections busy for some time."""
    until = time.monotonic() + seconds
    for one in connections:
        one.setblocking(False)
    while time.monotonic() < until:
        for one in connections:
            try:
                while True:
                    one.send(DATA)
            except BlockingIOError:
                pass
        # The send buffers hold seconds: no need to look often.
        time.sleep(min(0.1, max(until - time.monotonic(), 0)))


def watch(connection, seconds, step_s):
    """Keep one connection busy, and its TCP_INFO at each step."""
    until = time.monotonic() + seconds
    found = []
    while time.monotonic() < until:
        pump([connection], step_s)
        found.append((time.monotonic(), info(connection)))
    return found


def settle(connection, limit_s=1000):
    """Wait until all that was written is acknowledged; the last TCP_INFO."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        last = info(connection)
        if not last.unacked and not last.notsent_bytes:
            return last
        time.sleep(0.05)
    note(str(last))
    raise AssertionError("the connection does not come to an end")


def tap(name):
    """A socket on which all IP of a device can be read, and frames sent."""
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    raw.setsockopt(263, 23, 1)
    # With a virtio header: checksums may still have to be computed.
    raw.setsockopt(263, 15, 1)
    raw.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)
    # All protocols: only those taps come before the ingress filter.
    raw.bind((name, 3))
    return raw


def join(left, right, to=mac(6), by=mac(5)):
    """Both ends of a program in the middle, which alone forwards IP from left
    to right: (receive() -> (before IP, IP packet), send(before, packet)). to,
    by: hardware addresses of what it sends."""
    ends = [tap(left), tap(right)]
    addresses = bytes.fromhex((to + by).replace(":", ""))

    def receive():
        while True:
            frame = bytearray(ends[0].recv(1 << 17))
            if frame[22:24] == b"\x08\x00":
                return frame[:10], frame[24:]

    def send(before, packet):
        # What the first header says of the checksum lies at the same offsets.
        ends[1].send(before + addresses + b"\x08\x00" + packet)

    return receive, send


def patch_word(packet, offset, value):
    """Write 16 bits of an IPv4 header, and correct its checksum."""
    old, = struct.unpack_from(">H", packet, offset)
    struct.pack_into(">H", packet, offset, value)
    total = (struct.unpack_from(">H", packet, 10)[0] ^ 0xFFFF) + \
        (old ^ 0xFFFF) + value
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    struct.pack_into(">H", packet, 10, total ^ 0xFFFF)


def meddle(how, left, right):
    """What some boxes do to what they forward.

    bleach: CE becomes ECT(0). clear: all becomes Not-ECT. count, scramble: the
    identification becomes a counter, or a random number; count=N, scramble=N: only in
    the first N packets. each=N: that of one packet in N becomes 1.
    """
    receive, send = join(left, right)
    random_numbers, number = random.Random(1), 0
    how, _, every = how.partition("=")
    while True:
        before, packet = receive()
        number += 1
        early = not every or number <= int(every)
        if how == "bleach" and packet[1] & 3 == 3:
            first, = struct.unpack_from(">H", packet, 0)
            patch_word(packet, 0, first ^ 1)
        if how == "clear" and packet[1] & 3:
            first, = struct.unpack_from(">H", packet, 0)
            patch_word(packet, 0, first & ~3)
        if how == "count" and early:
            patch_word(packet, 4, number % 65536)
        if how == "each" and number % int(every) == 0:
            patch_word(packet, 4, 1)
        if how == "scramble" and early:
            patch_word(packet, 4, random_numbers.randrange(65536))
        send(before, packet)


if __name__ == "__main__":
    meddle(*sys.argv[1:])
