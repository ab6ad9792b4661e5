# SPDX-License-Identifier: GPL-2.0
"""Data packets as samples (AACC section 3, footnote 13).

The paper writes the stamp into the data packet. A border that does so changes
packets of others and needs room in them. Here a data packet crosses the network as
it is: the sender notes when it left and a digest of what no router changes, and sends
both to the peer in its next sample. The peer noted when a packet of that digest came.
A packet that the peer did not see is like a sample that was lost.

Both borders read packets at the device, where the sender's have passed the gate.
"""

import collections
import contextlib
import hashlib
import socket
import struct

from tollwaylib.errors import TollwayError

from . import wire

ETH_P_ALL, ETH_P_IP, ETH_P_IPV6 = 3, 0x0800, 0x86dd
SO_RCVBUFFORCE, SO_TIMESTAMPNS = 33, 35
ROOM_BYTES = 4 << 20
TCP, UDP = 6, 17
# IPv6 header, and as much of the rest as a digest has.
SNAP_BYTES = 40 + 40
# Of packets that came and may be asked for: 4 s of 8000 packets a second.
MEMORY = 1 << 15
# In the receive buffer of the socket: no more is taken at once.
BATCH = 1024
# The peer has room for a report of each, and of one sample besides.
MOST = wire.REPORTS - 1


class Headers:
    """What is read of a packet: destination, digest, UDP's destination port."""

    def __init__(self, destination, port, digest):
        self.destination, self.port, self.digest = destination, port, digest


def parse(packet):
    """The Headers of a packet of IPv4 or IPv6; None if it has no digest.

    The digest leaves out what changes on the way (TOS, TTL, checksums) and what
    differs between the two ends because of offloads: lengths, the checksum that a
    device would fill in, and flags that only one segment of several has.
    """
    version = packet[0] >> 4 if packet else 0
    if version == 4 and len(packet) >= 20:
        rest = packet[4 * (packet[0] & 15):]
        protocol, destination = packet[9], packet[16:20]
        # Of a fragment only the first one has ports.
        if struct.unpack_from("!H", packet, 6)[0] & 0x1fff:
            return None
        fixed = packet[4:6] + packet[9:10] + packet[12:20]
    elif version == 6 and len(packet) >= 40:
        rest, protocol, destination = packet[40:], packet[6], packet[24:40]
        fixed = packet[6:7] + packet[8:40]
    else:
        return None
    port = None
    if protocol == UDP:
        port = int.from_bytes(rest[2:4], "big")
        fixed += rest[:4] + rest[8:40]
    elif protocol == TCP:
        fixed += rest[:12] + rest[18:40]
    else:
        fixed += rest[:40]
    digest = hashlib.blake2b(fixed, digest_size=8).digest()
    return Headers(destination, port, int.from_bytes(digest, "big"))


class Seen:
    """When packets came, by digest. One that came twice tells no time."""

    def __init__(self, most=MEMORY):
        self._most = most
        self._when = collections.OrderedDict()

    def add(self, digest, when_ns):
        """A packet came."""
        self._when[digest] = None if digest in self._when else when_ns
        if len(self._when) > self._most:
            self._when.popitem(last=False)

    def when_ns(self, digest):
        """When the only packet of this digest came, or None."""
        return self._when.get(digest)


class Passing:
    """The data of one path that passes a border, in both directions.

    network: of module ipaddress, that of the data to the peer. port: of samples,
    which are no data. interval_ns: at most one packet to the network in this time
    is a sample.
    """

    def __init__(self, network, port, interval_ns):
        self.port, self.interval_ns = port, interval_ns
        self._mask = int(network.netmask)
        self._network = int(network.network_address)
        self._bytes = network.max_prefixlen // 8
        self.seen = Seen()
        # (digest, ns) of packets that left, and of which the peer was not told.
        self.pending = collections.deque(maxlen=MOST)
        self._next_ns = 0

    def _is_to_peer(self, destination):
        return len(destination) == self._bytes and \
            int.from_bytes(destination, "big") & self._mask == self._network

    def take(self, packet, kind, when_ns):
        """One packet that passed; kind: as of a packet socket's address."""
        headers = parse(packet)
        if not headers or headers.port == self.port:
            return
        if kind == socket.PACKET_HOST:
            self.seen.add(headers.digest, when_ns)
        elif kind == socket.PACKET_OUTGOING and when_ns >= self._next_ns and \
                self._is_to_peer(headers.destination):
            self._next_ns = when_ns + self.interval_ns
            self.pending.append((headers.digest, when_ns))


class Taps(Passing):
    """The same at a device of this network namespace."""

    def __init__(self, device, *words):
        super().__init__(*words)
        self.device = device
        self._index = None
        try:
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM |
                                        socket.SOCK_CLOEXEC, 0)
        except PermissionError as error:
            raise TollwayError("--data reads packets, which is for the "
                               "administrator (CAP_NET_RAW) to do") from error
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        # More than net.core.rmem_max, where that is allowed.
        with contextlib.suppress(OSError):
            self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE,
                                   ROOM_BYTES)
        self.follow()

    def follow(self):
        """Read at the device; again if it was deleted and made anew."""
        with contextlib.suppress(OSError):
            index = socket.if_nametoindex(self.device)
            if index != self._index:
                self.socket.bind((self.device, ETH_P_ALL))
                self._index = index

    def read(self, clock_ns, when_ns):
        """Take what passed. when_ns: of ancillary data and the time that
        clock_ns() tells, when a packet passed."""
        for _ in range(BATCH):
            try:
                packet, ancillary, _, where = self.socket.recvmsg(
                    SNAP_BYTES, socket.CMSG_SPACE(16))
            except BlockingIOError:
                return
            except OSError:
                # The device went down, or is gone.
                continue
            _, protocol, kind, *_ = where
            if protocol in (ETH_P_IP, ETH_P_IPV6):
                self.take(packet, kind, when_ns(ancillary, clock_ns()))

    def close(self):
        """Read no more."""
        self.socket.close()
