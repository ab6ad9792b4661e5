# SPDX-License-Identifier: GPL-2.0
"""A qdisc between two namespaces, with every packet known.

    a: va [parent: HTB, TBF ..  [sbrm]] ---- vb :b

Raw frames with a number go in at va, and each that comes out at vb is read
before the next one is sent. Time is virtual and computing takes none, so the
model knows exactly what was in the queue whenever a packet left it.
"""

import collections
import math
import select
import socket
import struct

from guest_base import Namespace, mac, quiet, wait_for_links
from rtnl import DITHER, ECN, GAMMA_ONE, SPLIT_GSO, Rtnl

ETH_P_IP, ETH_P_IPV6, ETH_P_ALL, ETH_P_EXPERIMENT = 0x800, 0x86DD, 3, 0x88B5
NOT_ECT, ECT1, ECT0, CE = range(4)
SOL_PACKET, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING = 263, 15, 23
# To nobody: b's IP does not answer what the wire shows.
MACS = bytes.fromhex((mac(0x99) + mac(1)).replace(":", ""))
QDISC, CHILD, PARENT = 0x100000, 0x00010001, 0x00010000
# A packet of 1000 bytes each second: no time passes while a test fills.
HOLD_BPS = 8000
FAST_BPS = 40000        # 0.2 s for each 1000 bytes, far more than a fill takes
# Of a measured share from the one that is due.
SIGMA = 4.5
# Flags of a new queue, and those with which each packet has a draw of its own.
DEFAULTS = ECN | SPLIT_GSO | DITHER
INDEPENDENT = ECN | SPLIT_GSO


def ip_sum(header):
    """Internet checksum of bytes: 0 if it holds one that is right."""
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def ipv4(number, size, tos):
    """An Ethernet frame of `size` bytes with a numbered UDP packet."""
    head = struct.pack(">BBHHHBBH4s4s", 0x45, tos, size - 14, number & 0xFFFF,
                       0, 64, 17, 0, bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2)))
    head = head[:10] + struct.pack(">H", ip_sum(head)) + head[12:]
    return (MACS + b"\x08\x00" + head +
            struct.pack(">HHHHI", 5000, 5000, size - 34, 0, number) +
            bytes(size - 46))


def ipv6(number, size, tos):
    """The same over IPv6."""
    head = struct.pack(">IHBB16s16s", 6 << 28 | tos << 20, size - 54, 17, 64,
                       bytes(15) + b"\1", bytes(15) + b"\2")
    return (MACS + b"\x86\xdd" + head +
            struct.pack(">HHHHI", 5000, 5000, size - 54, 0, number) +
            bytes(size - 66))


def other(number, size, _tos):
    """A frame that is not IP."""
    return (MACS + struct.pack(">H", ETH_P_EXPERIMENT) +
            struct.pack(">I", number) + bytes(size - 18))


def super_packet(segments, make=ipv4, tos=ECT0):
    """What a virtual machine hands over: TCP of so many segments of 1000 bytes
    in one frame, after the header of virtio. It does not say how many."""
    payload = 1000 * segments
    tcp = struct.pack(">HHIIBBHHH", 1, 2, 3, 4, 0x50, 0x10, 1000, 0, 0)
    head = bytearray(make(1, 14 + 20 + 20 + payload, tos)[:34])
    head[23] = 6
    head[24:26] = bytes(2)
    head[24:26] = struct.pack(">H", ip_sum(head[14:34]))
    # flags NEEDS_CSUM, gso TCPV4, hdr_len, gso_size, csum_start, csum_offset
    virtio = struct.pack("=BBHHHH", 1, 1, 54, 1000, 34, 16)
    return virtio + bytes(head) + tcp + bytes(payload)


class Arrived:
    """A frame that came out, taken apart."""

    def __init__(self, frame):
        self.frame = frame
        self.size = len(frame)
        self.type = struct.unpack_from(">H", frame, 12)[0]
        if self.type == ETH_P_IP:
            self.tos = frame[15]
            self.number = struct.unpack_from(">I", frame, 42)[0]
            self.checksum_ok = ip_sum(frame[14:34]) == 0
        elif self.type == ETH_P_IPV6:
            self.tos = struct.unpack_from(">H", frame, 14)[0] >> 4 & 0xFF
            self.number = struct.unpack_from(">I", frame, 62)[0]
            self.checksum_ok = True
        else:
            self.tos, self.checksum_ok = 0, True
            self.number = struct.unpack_from(">I", frame, 14)[0]

    @property
    def ce(self):
        """Is it marked?"""
        return self.tos & 3 == CE


class Bench:
    """Two namespaces and the wire; `parent` says what holds the sbrm."""

    def __init__(self):
        self.a, self.b = Namespace("a"), Namespace("b")
        # Quiet before the interfaces are up.
        quiet(self.a)
        quiet(self.b)
        self.a.batch("ip", [
            "link add va type veth peer name vb netns b",
            f"link set va address {mac(1)}", "addr add 10.0.0.1/24 dev va",
            "link set va up",
            f"neigh add 10.0.0.2 lladdr {mac(2)} dev va nud permanent"])
        self.b.batch("ip", [
            f"link set vb address {mac(2)}", "addr add 10.0.0.2/24 dev vb",
            "link set vb up",
            f"neigh add 10.0.0.1 lladdr {mac(1)} dev vb nud permanent"])
        wait_for_links((self.a, "va"), (self.b, "vb"))
        with self.a:
            self.rtnl = Rtnl()
            self.out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            self.out.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 28)
            self.out.setsockopt(socket.SOL_SOCKET, 32, 1 << 28)  # ..FORCE
            self.out.bind(("va", 0))
        with self.b:
            self.into = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                      socket.htons(ETH_P_ALL))
            self.into.setsockopt(socket.SOL_SOCKET, 33, 1 << 28)
            self.into.bind(("vb", ETH_P_ALL))
            self.into.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
            self.into.setblocking(False)
        self.poll = select.poll()
        self.poll.register(self.into, select.POLLIN)
        self.number = 0
        self.parent_handle = None

    def virtio(self):
        """A socket for super-packets at va."""
        with self.a:
            raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            raw.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
            raw.bind(("va", 0x0800))
        return raw

    def htb(self, rate_bps, packet_bytes, data, name=b"sbrm\0", stab=""):
        """A qdisc with options `data` below an HTB class of one packet's burst.
        stab: words of a table of sizes of the HTB."""
        self.parent_handle = PARENT
        self.a.batch("tc", [
            f"qdisc add dev va {stab}root handle 1: htb default 1",
            f"class add dev va parent 1: classid 1:1 htb rate {rate_bps}bit "
            f"burst {packet_bytes} cburst {packet_bytes} "
            f"quantum {packet_bytes}"])
        with self.a:
            self.rtnl.sbrm("va", data, parent=CHILD, name=name)
        self.where = CHILD

    def htb_rate(self, rate_bps, packet_bytes):
        """Another rate for the class."""
        self.a.batch("tc", [
            f"class change dev va parent 1: classid 1:1 htb rate {rate_bps}bit "
            f"burst {packet_bytes} cburst {packet_bytes} "
            f"quantum {packet_bytes}"])

    def tbf(self, rate_bps, packet_bytes, data, name=b"sbrm\0"):
        """The same below a TBF, which peeks."""
        self.parent_handle = PARENT
        self.a.batch("tc", [
            f"qdisc add dev va root handle 1: tbf rate {rate_bps}bit "
            f"burst {packet_bytes} limit 100mb"])
        with self.a:
            self.rtnl.sbrm("va", data, parent=CHILD, name=name)
        self.where = CHILD

    def stats(self):
        """Dump of the sbrm."""
        with self.a:
            return self.rtnl.stats("va", QDISC)

    def parent(self):
        """Dump of its parent."""
        with self.a:
            return self.rtnl.stats("va", self.parent_handle)

    def change(self, **words):
        """Change options of the sbrm."""
        with self.a:
            self.rtnl.change("va", QDISC, self.where, **words)

    def send(self, size=1000, tos=ECT0, make=ipv4):
        """Send one numbered frame; its number."""
        self.number += 1
        try:
            self.out.send(make(self.number, size, tos))
        except OSError as error:
            # A dropped packet is reported to the sender: ENOBUFS.
            if error.errno != 105:
                raise
        return self.number

    def receive(self, timeout_s=0):
        """The next frame that came out, or None when none comes in time."""
        while True:
            try:
                return Arrived(self.into.recv(1 << 17))
            except BlockingIOError:
                if not timeout_s or not self.poll.poll(timeout_s * 1000):
                    return None

    def drain(self, timeout_s=0.001):
        """All frames that come, until none comes for `timeout_s`.

        A first packet may be on its way in a soft interrupt for a moment.
        """
        found = []
        while True:
            frame = self.receive(timeout_s)
            if frame is None:
                return found
            found.append(frame)


class Model:
    """What the queue below an HTB must hold, and the draws it made.

    draws: (backlog, outcome) of each packet that could show its draw. A gap in
    the numbers that come out is a drop for the price.
    """

    def __init__(self, bench, in_bytes=False):
        self.bench = bench
        self.in_bytes = in_bytes
        self.fifo = collections.deque()
        self.backlog = self.most = self.left = self.sum = 0
        self.marks = self.drops = 0
        self.draws = []

    def send(self, size=1000, tos=ECT0, make=ipv4):
        """Send a frame and take in what left at once."""
        number = self.bench.send(size, tos, make)
        self.fifo.append((number, size, tos))
        self.backlog += size if self.in_bytes else 1
        self.most = max(self.most, self.backlog)
        for frame in self.bench.drain(0.001 if number < 4 else 0):
            self.arrived(frame)

    def arrived(self, frame):
        """Take in a frame that left."""
        while True:
            number, size, tos = self.fifo.popleft()
            backlog = self.backlog
            self.backlog -= size if self.in_bytes else 1
            self.left += 1
            self.sum += backlog
            if number == frame.number:
                break
            self.drops += 1
            self.draws.append((backlog, 1))
        assert frame.size == size
        marked = frame.ce and tos & 3 != CE
        self.marks += marked
        self.draws.append((backlog, int(marked)))

    def step(self):
        """Wait for the next departure."""
        frame = self.bench.receive(100)
        assert frame is not None, "nothing comes out"
        self.arrived(frame)

    def run(self, packets, backlog, sizes=(1000,), tos=ECT0, make=ipv4):
        """Draw `packets` times, each time filled up to `backlog` before."""
        index = 0
        until = self.left + packets
        while self.left < until:
            while self.backlog < backlog:
                self.send(sizes[index % len(sizes)], tos, make)
                index += 1
            self.step()

    def agrees(self, after_reset=False):
        """Assert that all statistics of the kernel are those of the model.

        after_reset: those of the queue itself began before those of sbrm.
        """
        stats = self.bench.stats()
        parent = self.bench.parent()
        expected = (self.left, self.sum, self.drops, self.most)
        got = (stats.x.packets, stats.x.backlog_sum, stats.x.price_drops,
               stats.x.backlog_max)
        assert got == expected, f"{got} is not {expected}"
        assert stats.qlen == parent.qlen == len(self.fifo), \
            (stats.qlen, parent.qlen, len(self.fifo))
        size = sum(entry[1] for entry in self.fifo)
        assert stats.backlog == size, (stats.backlog, size)
        if not after_reset:
            assert stats.drops == stats.x.price_drops + stats.x.full_drops
            assert stats.packets == self.left - self.drops
        return stats


def probability(gamma, target, backlog):
    """1 - exp(-gamma [b - target]+), with gamma as the kernel stores it."""
    gamma = round(gamma * GAMMA_ONE) / GAMMA_ONE
    return -math.expm1(-gamma * max(backlog - target, 0))


def deviation(draws, gamma, target):
    """(draws, hits, expected hits, deviation in sigma)."""
    chances = [probability(gamma, target, backlog) for backlog, _ in draws]
    hits = sum(hit for _, hit in draws)
    expected = sum(chances)
    variance = sum(chance * (1 - chance) for chance in chances)
    assert variance or hits == expected
    sigma = (hits - expected) / math.sqrt(variance) if variance else 0.0
    return len(draws), hits, expected, sigma
