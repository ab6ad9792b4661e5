# SPDX-License-Identifier: GPL-2.0
"""Just enough of NETLINK_ROUTE to send any qdisc message, right or wrong."""

import os
import socket
import struct
from collections import namedtuple

NLM_F_REQUEST, NLM_F_ACK = 1, 4
NLM_F_DUMP, NLM_F_REPLACE, NLM_F_EXCL, NLM_F_CREATE = 0x300, 0x100, 0x200, 0x400
NLMSG_ERROR, NLMSG_DONE = 2, 3
RTM_NEWQDISC, RTM_DELQDISC, RTM_GETQDISC = 36, 37, 38
RTM_NEWTCLASS, RTM_GETTCLASS = 40, 42
TCA_KIND, TCA_OPTIONS, TCA_STATS2 = 1, 2, 7
TCA_STATS_BASIC, TCA_STATS_QUEUE, TCA_STATS_APP = 1, 3, 4
NLMSGERR_ATTR_MSG, NLMSGERR_ATTR_OFFS = 1, 2
SOL_NETLINK, NETLINK_CAP_ACK, NETLINK_EXT_ACK = 270, 10, 11
TC_H_ROOT = 0xFFFFFFFF

# pkt_sbrm.h
(LAW, LIMIT, TARGET, GAMMA, FLAGS, RESET_STATS, FEEDBACK, PHI, ALPHA, RATE,
 AVPKT, INTERVAL, DELTA, SCALE, COUPLING, SMALL, DELAY_TARGET, HIGH, LOW,
 GOAL) = range(2, 22)
SBRM, REM_PC1, REM_PC2, REM_PC3, VQM, DELAY, ALPHA_LAW = range(7)
MARK, PRICE, FOUR_BIT, TWO_BIT = range(4)
CN, BCN = 1, 2
PHI_ONE, ALPHA_ONE, PRICE_ONE, PRICE_MAX = 1 << 32, 1 << 24, 1 << 12, 65534
BYTES, ECN, NODROP, SPLIT_GSO, DITHER, PRICE_DROP, L4S_ECT, SPARSE = (
    1 << bit for bit in range(8))
GAMMA_AUTO, SETTABLE = 1 << 31, 255
COUPLING_ONE = 1 << 20
OVERLOAD_PAYING, OVERLOAD_EXEMPT = 1, 2
GAMMA_ONE = 1 << 48

Xstats = namedtuple("Xstats", "packets backlog_sum marks price_drops "
                    "full_drops price backlog_max prob carried uncarried "
                    "saturated input virtual_backlog coupled_drops "
                    "coupled_marks spared overload_drops coupled_prob overload "
                    "service_rate idle bits cycles beyond cycle_max collisions sparse")
XSTATS = struct.Struct("=6Q2I9Q2IQ2I2Q2IQ")
# {attribute: (format, units of 1)} of the options that some laws have.
OF_LAWS = {"phi": (PHI, "=Q", PHI_ONE), "alpha": (ALPHA, "=I", ALPHA_ONE),
           "rate": (RATE, "=Q", 1), "avpkt": (AVPKT, "=I", 1),
           "interval": (INTERVAL, "=I", 1), "delta": (DELTA, "=I", PHI_ONE),
           "scale": (SCALE, "=I", PHI_ONE), "delay": (DELAY_TARGET, "=I", 1),
           "high": (HIGH, "=I", 1), "low": (LOW, "=I", 1),
           "goal": (GOAL, "=I", 1)}
# Those of packets that are not marked for the price.
CLASSIC = {"coupling": (COUPLING, "=I", COUPLING_ONE), "small": (SMALL, "=I", 1)}

# pkt_fq_rr.h: options of 32 bits in their order, then the other ones.
FQ_RR_WORDS = ("limit", "memory_limit", "flows", "service", "overflow",
               "longest", "quantum", "classify", "weigh")
(FQ_RR_WEIGHTS, FQ_RR_PERTURB, FQ_RR_FLAGS, FQ_RR_CLASS_WEIGHT,
 FQ_RR_RESERVE) = range(10, 15)
RR, DRR, WFQ = range(3)
DROP_LAST, DROP_TAIL_OF_LONGEST, DROP_LONGEST = range(3)
BY_FLOW, BY_PRIORITY, BY_MARK = range(3)

FqRrXstats = namedtuple("FqRrXstats", "type pad flows flows_max longest "
                        "packets_max memory memory_max quantum owners "
                        "new_flows collisions last_drops longest_drops "
                        "longest_events memory_drops own_drops trim_drops "
                        "rehashes moved_flows refused")
FQ_RR_XSTATS = struct.Struct("=10I11Q")
FqRrClass = namedtuple("FqRrClass", "bytes packets qlen backlog drops weight "
                       "credit memory packets_max collisions reserve")


class Refused(Exception):
    """The kernel said no: errno and extack message."""

    def __init__(self, number, message):
        super().__init__(f"{os.strerror(number)}: {message!r}")
        self.errno = number
        self.message = message


def attr(kind, payload=b"", length=None):
    """One attribute; `length` lies about its length."""
    return struct.pack("=HH", 4 + len(payload) if length is None else length,
                       kind) + payload + bytes(-len(payload) % 4)


def u32(kind, value):
    """An attribute of type u32."""
    return attr(kind, struct.pack("=I", value))


def u64(kind, value):
    """An attribute of type u64."""
    return attr(kind, struct.pack("=Q", value))


def bitfield(kind, value, selector):
    """An attribute of type struct nla_bitfield32."""
    return attr(kind, struct.pack("=II", value, selector))


def parse(data):
    """{type: payload} of a row of attributes."""
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if length < 4:
            break
        found[kind & 0x3FFF] = data[4:length]
        data = data[(length + 3) & ~3:]
    return found


def options(law=SBRM, limit=None, target=None, gamma=None, flags=None,
            selector=None, reset=False, feedback=None, **of_laws):
    """The attributes of sbrm; gamma as a number per packet or byte.

    law: that of the papers unless another is named; None leaves it to the queue.
    of_laws: phi, alpha, delta, scale and coupling as numbers, rate in bytes/s,
    avpkt and small in bytes, interval and delay, the target of that law, in us.
    """
    data = b""
    if law is not None:
        data += u32(LAW, law)
    if limit is not None:
        data += u32(LIMIT, limit)
    if target is not None:
        data += u32(TARGET, target)
    if gamma is not None:
        data += u64(GAMMA, round(gamma * GAMMA_ONE))
    if flags is not None:
        data += bitfield(FLAGS, flags,
                         SETTABLE if selector is None else selector)
    if reset:
        data += attr(RESET_STATS)
    if feedback is not None:
        data += u32(FEEDBACK, feedback)
    for name, value in of_laws.items():
        kind, form, one = {**OF_LAWS, **CLASSIC}[name]
        value = round(value * one)
        if name in ("delta", "scale"):
            value = min(value, 2**32 - 1)
        data += attr(kind, struct.pack(form, value))
    return data


def fq_rr_options(weights=None, perturb=None, split_gso=None, reserve=None,
                  **words):
    """The attributes of fq_rr; enumerations as their numbers."""
    data = b"".join(u32(FQ_RR_WORDS.index(name) + 1, value)
                    for name, value in words.items())
    if weights is not None:
        data += attr(FQ_RR_WEIGHTS, struct.pack(f"={len(weights)}I", *weights))
    if perturb is not None:
        data += u32(FQ_RR_PERTURB, perturb)
    if split_gso is not None:
        data += bitfield(FQ_RR_FLAGS, int(split_gso), 1)
    if reserve is not None:
        data += u32(FQ_RR_RESERVE, reserve)
    return data


class Rtnl:
    """A netlink socket in the namespace where it is made."""

    def __init__(self, protocol=0):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
        self.socket.setsockopt(SOL_NETLINK, NETLINK_EXT_ACK, 1)
        self.socket.setsockopt(SOL_NETLINK, NETLINK_CAP_ACK, 1)
        self.socket.bind((0, 0))
        self.sequence = 0

    def send(self, kind, flags, payload):
        """Send a message; the answers to it, as (type, payload)."""
        self.sequence += 1
        self.socket.send(struct.pack("=IHHII", 16 + len(payload), kind,
                                     NLM_F_REQUEST | flags, self.sequence, 0) +
                         payload)
        while True:
            data = self.socket.recv(1 << 16)
            while len(data) >= 16:
                length, answer, about, sequence, _ = struct.unpack_from(
                    "=IHHII", data)
                body = data[16:length]
                data = data[(length + 3) & ~3:]
                if sequence != self.sequence:
                    continue
                if answer == NLMSG_ERROR:
                    self._error(body, about)
                    return
                if answer == NLMSG_DONE:
                    return
                yield answer, body

    @staticmethod
    def _error(body, about):
        number = -struct.unpack_from("=i", body)[0]
        if number:
            # NLM_F_CAPPED: the request's header alone, then the attributes.
            words = parse(body[20:]) if about & 0x200 else {}
            text = words.get(NLMSGERR_ATTR_MSG, b"").rstrip(b"\0").decode()
            raise Refused(number, text)

    def qdisc(self, kind, flags, index, handle, parent, attributes):
        """One qdisc message; raises Refused."""
        tcm = struct.pack("=BxxxiIII", 0, index, handle, parent, 0)
        for _ in self.send(kind, flags | NLM_F_ACK, tcm + attributes):
            pass

    def sbrm(self, device, data=None, handle=0x100000, parent=TC_H_ROOT,
             flags=NLM_F_CREATE | NLM_F_EXCL, name=b"sbrm\0"):
        """Create (default), replace or change a qdisc of kind sbrm."""
        attributes = attr(TCA_KIND, name)
        if data is not None:
            attributes += attr(TCA_OPTIONS | 0x8000, data)
        self.qdisc(RTM_NEWQDISC, flags, socket.if_nametoindex(device), handle,
                   parent, attributes)

    def change(self, device, handle=0x100000, parent=TC_H_ROOT, **words):
        """Change what is there."""
        self.sbrm(device, options(**{"law": None, **words}), handle, parent,
                  flags=0)

    def delete(self, device, handle=0x100000, parent=TC_H_ROOT):
        """Delete a qdisc."""
        self.qdisc(RTM_DELQDISC, 0, socket.if_nametoindex(device), handle,
                   parent, b"")

    def dump(self, device):
        """{handle: Qdisc} of a device."""
        index = socket.if_nametoindex(device)
        found = {}
        for _, body in self.send(RTM_GETQDISC, NLM_F_DUMP,
                                 struct.pack("=BxxxiIII", 0, index, 0, 0, 0)):
            _, ifindex, handle, parent, _ = struct.unpack_from("=BxxxiIII",
                                                               body)
            if ifindex == index:
                found[handle] = Qdisc(handle, parent, parse(body[20:]))
        return found

    def classes(self, device, handle=0x100000):
        """{number: FqRrClass} of a qdisc fq_rr."""
        found = {}
        index = socket.if_nametoindex(device)
        for _, body in self.send(RTM_GETTCLASS, NLM_F_DUMP,
                                 struct.pack("=BxxxiIII", 0, index, 0, handle,
                                             0)):
            number = struct.unpack_from("=BxxxiIII", body)[2] & 0xFFFF
            # Number 65536 does not fit the 16 bits and shows as 0.
            stats = parse(parse(body[20:])[TCA_STATS2])
            basic = struct.unpack_from("=QI", stats[TCA_STATS_BASIC])
            queue = struct.unpack_from("=3I", stats[TCA_STATS_QUEUE])
            own = struct.unpack("=2IIiIIQI", stats[TCA_STATS_APP][:36])
            found[number] = FqRrClass(*basic, *queue, *own[2:])
        return found

    def stats(self, device, handle=0x100000):
        """The Qdisc with a handle."""
        return self.dump(device)[handle]


class Qdisc:
    """A dumped qdisc: options of ours, queue statistics, xstats."""

    def __init__(self, handle, parent, attributes):
        self.handle, self.parent = handle, parent
        self.kind = attributes[TCA_KIND].rstrip(b"\0").decode()
        stats = parse(attributes.get(TCA_STATS2, b""))
        self.bytes, self.packets = struct.unpack_from(
            "=QI", stats[TCA_STATS_BASIC])
        (self.qlen, self.backlog, self.drops, self.requeues,
         self.overlimits) = struct.unpack_from("=5I", stats[TCA_STATS_QUEUE])
        self.x = None
        if self.kind == "sbrm":
            words = parse(attributes[TCA_OPTIONS])
            self.law, self.limit, self.target = (
                struct.unpack("=I", words[kind])[0]
                for kind in (LAW, LIMIT, TARGET))
            self.gamma = struct.unpack("=Q", words[GAMMA])[0]
            self.flags, self.selector = struct.unpack("=II", words[FLAGS])
            self.x = Xstats(*XSTATS.unpack(stats[TCA_STATS_APP]))
            self.settings = (self.law, self.limit, self.target, self.gamma,
                             self.flags)
            self.feedback = struct.unpack("=I", words[FEEDBACK])[0]
            # As the kernel stores them; those of the law in force.
            self.of_law = {
                name: struct.unpack(form, words[kind])[0]
                for name, (kind, form, _) in OF_LAWS.items() if kind in words}
            self.classic = {
                name: struct.unpack(form, words[kind])[0]
                for name, (kind, form, _) in CLASSIC.items()}
        elif self.kind == "fq_rr":
            self.words = parse(attributes[TCA_OPTIONS])
            self.x = FqRrXstats(*FQ_RR_XSTATS.unpack(stats[TCA_STATS_APP]))
