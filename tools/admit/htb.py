# SPDX-License-Identifier: GPL-2.0
"""A class of HTB as the gate of a path: read it, set its rate, put it back.

Only three messages of rtnetlink are needed. The class is put back with the very
attributes that the kernel reported, so that nothing of it is lost on the way.
"""

import errno
import os
import re
import socket
import struct

from tollwaylib.errors import TollwayError

RTM_NEWTCLASS, RTM_GETTCLASS = 40, 42
NLM_F_REQUEST, NLM_F_ACK, NLM_F_ECHO = 1, 4, 8
NLMSG_ERROR = 2
TCA_KIND, TCA_OPTIONS, TCA_STATS2 = 1, 2, 7
TCA_STATS_BASIC, TCA_STATS_QUEUE, TCA_STATS_PKT64 = 1, 3, 8
TCA_HTB_PARMS, TCA_HTB_RATE64, TCA_HTB_CEIL64 = 1, 6, 7
_HEADER = struct.Struct("=IHHII")
_TCMSG = struct.Struct("=BBHiIII")
# struct tc_htb_opt: two of tc_ratespec, buffer, cbuffer, quantum, level, prio.
_RATESPEC = struct.Struct("=BBHhHI")
_PARMS_REST = struct.Struct("=5I")
LINKLAYER_ETHERNET = 1
TICK_NS = 64
_U32 = (1 << 32) - 1
ANSWER_S = 2.0


class NoClass(Exception):
    """The device has no such class of HTB (any more)."""


def attributes(data):
    """{type: content} of a series of netlink attributes."""
    found, offset = {}, 0
    while offset + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, offset)
        if length < 4 or offset + length > len(data):
            break
        found[kind & 0x3fff] = data[offset + 4:offset + length]
        offset += (length + 3) & ~3
    return found


def attribute(kind, content):
    """One netlink attribute, padded."""
    data = struct.pack("=HH", 4 + len(content), kind) + content
    return data + bytes(-len(data) % 4)


def class_id(text):
    """The number of a class as tc writes it, such as 1:10 (hexadecimal)."""
    found = re.fullmatch("([0-9a-fA-F]{1,4}):([0-9a-fA-F]{1,4})", text)
    numbers = [int(word, 16) for word in found.groups()] if found else [0]
    if not all(numbers):
        raise TollwayError(f"{text!r} is not a class: write it as tc does, such "
                           "as 1:10")
    return numbers[0] << 16 | numbers[1]


class HtbClass:
    """One class of HTB on a device of this network namespace.

    packet_bytes: the burst of the class while it is a gate.
    """

    def __init__(self, device, handle, packet_bytes):
        self.device, self.handle = device, handle
        self.packet_bytes = packet_bytes
        self._sequence = 0
        self._socket = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC,
            socket.NETLINK_ROUTE)
        self._socket.bind((0, 0))
        self._socket.settimeout(ANSWER_S)
        # As the administrator made it, and as this object set it last.
        self.original = None
        self.rate_Bps = None

    def close(self):
        """Leave the class as it is, and the kernel alone."""
        self._socket.close()

    def _index(self):
        try:
            return socket.if_nametoindex(self.device)
        except OSError as error:
            raise NoClass(f"there is no device {self.device}") from error

    def _ask(self, kind, flags, body):
        """Send one message; returns the payload of the answer, or None for an
        acknowledgement."""
        self._sequence += 1
        self._socket.send(_HEADER.pack(_HEADER.size + len(body), kind,
                                       NLM_F_REQUEST | flags, self._sequence,
                                       0) + body)
        while True:
            data = self._socket.recv(65536)
            _, answer, _, sequence, _ = _HEADER.unpack_from(data)
            if sequence != self._sequence:
                continue
            if answer != NLMSG_ERROR:
                return data[_HEADER.size:]
            code = -struct.unpack_from("=i", data, _HEADER.size)[0]
            if not code:
                return None
            # A class of a qdisc that has none; of a change it is a bad value.
            if code in (errno.ENOENT, errno.ENODEV) or \
                    (code == errno.EINVAL and kind == RTM_GETTCLASS):
                raise NoClass(f"{self.device} has no class of htb "
                              f"{self.name}")
            raise OSError(code, os.strerror(code))

    @property
    def name(self):
        """The number of the class as tc writes it."""
        return f"{self.handle >> 16:x}:{self.handle & 0xffff:x}"

    def _message(self):
        return _TCMSG.pack(socket.AF_UNSPEC, 0, 0, self._index(), self.handle,
                           0, 0)

    def read(self):
        """{bytes, packets, drops, backlog_bytes, options} of the class.

        Raises NoClass where the device has no such class of HTB.
        """
        # Without the echo the kernel tells only the listeners of its group.
        answer = self._ask(RTM_GETTCLASS, NLM_F_ECHO, self._message())
        found = attributes((answer or b"")[_TCMSG.size:])
        if not found.get(TCA_KIND, b"").startswith(b"htb\0") or \
                TCA_HTB_PARMS not in attributes(found.get(TCA_OPTIONS, b"")):
            raise NoClass(f"{self.device} has no class of htb {self.name}")
        stats = attributes(found.get(TCA_STATS2, b""))
        sent, packets = struct.unpack_from(
            "=QI", stats.get(TCA_STATS_BASIC, bytes(12)))
        if TCA_STATS_PKT64 in stats:
            # Of a count that needs more than the 32 bits above.
            packets, = struct.unpack_from("=Q", stats[TCA_STATS_PKT64])
        _, backlog, drops = struct.unpack_from(
            "=III", stats.get(TCA_STATS_QUEUE, bytes(20)))
        return {"bytes": sent, "packets": packets, "drops": drops,
                "backlog_bytes": backlog, "options": found[TCA_OPTIONS]}

    def claim(self):
        """Learn the class as it is, to put it back; returns read()."""
        seen = self.read()
        self.original = seen["options"]
        return seen

    def is_ours(self, options):
        """Are the options of a read() those that set_rate() set last?"""
        return self.rate_Bps is not None and \
            rates(options) == (self.rate_Bps, self.rate_Bps)

    def set_rate(self, rate_Bps):
        """Shape the class to a rate, in bytes per second, at least 1, with a
        burst of one packet."""
        rate_Bps = max(1, int(rate_Bps))
        parms = bytearray(attributes(self.original)[TCA_HTB_PARMS])
        spec = _RATESPEC.size
        for offset in (0, spec):
            cell, _, overhead, align, mpu, _ = _RATESPEC.unpack_from(
                parms, offset)
            _RATESPEC.pack_into(parms, offset, cell, LINKLAYER_ETHERNET,
                                overhead, align, mpu, min(rate_Bps, _U32))
        ticks = min(_U32, self.packet_bytes * 10**9 // rate_Bps // TICK_NS)
        _, _, quantum, level, prio = _PARMS_REST.unpack_from(parms, 2 * spec)
        _PARMS_REST.pack_into(parms, 2 * spec, ticks, ticks, quantum, level,
                              prio)
        options = attribute(TCA_HTB_PARMS, bytes(parms))
        if rate_Bps > _U32:
            wide = struct.pack("=Q", rate_Bps)
            options += attribute(TCA_HTB_RATE64, wide) + \
                attribute(TCA_HTB_CEIL64, wide)
        self._change(options)
        self.rate_Bps = rate_Bps

    def restore(self):
        """Put the class back as it was claimed."""
        self._change(self.original)
        self.rate_Bps = None

    def _change(self, options):
        self._ask(RTM_NEWTCLASS, NLM_F_ACK,
                  self._message() + attribute(TCA_KIND, b"htb\0") +
                  attribute(TCA_OPTIONS, options))


def rates(options):
    """(rate, ceil) of a class's options, in bytes per second."""
    found = attributes(options)
    narrow = [_RATESPEC.unpack_from(found[TCA_HTB_PARMS], offset)[5]
              for offset in (0, _RATESPEC.size)]
    wide = [struct.unpack("=Q", found[kind])[0] if kind in found else 0
            for kind in (TCA_HTB_RATE64, TCA_HTB_CEIL64)]
    return tuple(map(max, narrow, wide))
