# SPDX-License-Identifier: GPL-2.0
"""`tollway doctor --peer`: does congestion notification work from end to end?

What a live host can know is looked at twice, some seconds of its traffic
apart: the connections to the peer (ss), the kernel's counters of ECN, those of
our modules, the queues (tc). Then probes, UDP packets with CE and with ECT(0)
whose time to live ends at each hop in turn: the routers and the peer quote
them in ICMP as they came there.

observe() gathers, judge() is a pure function of what was gathered.
"""

import contextlib
import json
import os
import re
import select
import socket
import struct
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import stability
from .errors import TollwayError
from .words import short

SCHEMA = 1
PRICED = ("sbrm", "rem", "cp", "rm")
PAIRED = ("pp", "ppx")
# Of these each mark must come back by itself.
COUNTING = ("sbrm", "rem")
# Linux' own dctcp echoes each mark, too.
ECHOING = ("sbrm", "rem", "dctcp")
# Counters of a queue sbrm: packets that the price dropped, in one way or another.
UNMARKED = ("price_drops", "coupled_drops", "overload_drops")
MODULES = {"tcp_sbrm": PRICED, "tcp_pp": PAIRED}

HOPS_MAX = 30
SILENT_MAX = 4
# How long a hop is waited for, and answers that a long queue delays.
ANSWER_S = 1.0
LATE_S = 5.0
PROBE_PORT = 33434
NOT_ECT, ECT1, ECT0, CE = range(4)
CODEPOINTS = ("Not-ECT", "ECT(1)", "ECT(0)", "CE")
TCPI_OPT_ECN = 8
TCP_INFO, TCP_CONGESTION = 11, 13
# Above this share too few packets without a mark are left to tell the price;
# with the source relative, that of a price of 5.
MARKED_MOST = {False: 0.8, True: 0.993}

# A queue that never held more was never one.
FULL_PACKETS = 1.5

# What growing lines of /proc/net/tcp_sbrm and tcp_pp say.
COUNTERS = {
    "no_ecn": "connections whose peer refused ECN",
    "latched": "connections whose peer repeats ECE instead of echoing marks",
    "no_ipv4": "connections that wanted an explicit price over IPv6",
    "price_absent": "times that a peer stopped returning the price",
    "price_rewritten": "connections on whose path a box rewrites the price",
    "price_outside": "segments whose price was not believed",
    "price_no_df": "packets without DF, which carry no price",
    "delayed_acks": "times that a receiver began to delay its ACKs",
    "shared_queue": "times that a bottleneck seemed not to keep flows apart",
    "longer_path": "times that a path became longer",
}


@dataclass
class Finding:
    """One thing that was looked at.

    about: a stable name. verdict: "ok", "wrong", "unknown" (it could not be
    told) or "note". text: what was found. remedy: what to do, or nothing.
    """

    about: str
    verdict: str
    text: str
    remedy: str = ""


@dataclass
class Connection:
    """A TCP connection in the words of ss."""

    local: str
    remote: str
    cc: str = ""
    flags: list = field(default_factory=list)
    numbers: dict = field(default_factory=dict)
    # The fields of dctcp:(...), or None without; fallback: fallback_mode.
    dctcp: dict = None
    fallback: bool = False
    rtt_ms: float = None


def command(*words):
    """Output of a program of iproute2."""
    try:
        done = subprocess.run(
            words, text=True, check=False, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=dict(os.environ, LC_ALL="C"))
    except FileNotFoundError:
        raise TollwayError(f"there is no {words[0]}: install the package "
                           "iproute2") from None
    if done.returncode:
        raise TollwayError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def read(path):
    """Text of a file, or nothing where there is none."""
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def parse_ss(text, names):
    """[Connection] of what `ss -tino` said; names: of congestion controls."""
    # One entry may take two lines, of which the second is indented.
    entries = re.sub(r"\n[ \t]+", " ", text).splitlines()
    found = []
    for words in map(str.split, entries):
        if len(words) < 5:
            continue
        one = Connection(words[3], words[4])
        for word in words[5:]:
            name, colon, value = word.partition(":")
            if name == "dctcp":
                one.fallback = value == "fallback_mode"
                if not one.fallback:
                    one.dctcp = {key: int(number) for key, number in
                                 re.findall(r"(\w+):(\d+)", value)}
            elif name == "rtt" and colon:
                one.rtt_ms = float(value.partition("/")[0])
            elif colon and re.fullmatch(r"\d+(\.\d+)?", value):
                one.numbers[name] = float(value)
            elif not colon and word in names:
                one.cc = word
            elif not colon:
                one.flags.append(word)
        found.append(one)
    return found


def parse_counters(text):
    """{name: number} of the paired lines of /proc/net/netstat."""
    lines = text.splitlines()
    return {f"{head.split(':')[0]}{name}": int(value)
            for head, values in zip(lines[::2], lines[1::2])
            for name, value in zip(head.split()[1:], values.split()[1:])}


def parse_columns(text):
    """{name: number} of a file with one on each line."""
    return {name: int(value) for name, value in
            (line.split()[:2] for line in text.splitlines())}


def parse_queues(text):
    """{(device, handle): {kind, parent, numbers}} of what `tc -s -j` said."""
    found = {}
    for one in json.loads(text or "[]"):
        numbers = {key: value for key, value in one.items()
                   if isinstance(value, (int, float))
                   and not isinstance(value, bool)}
        found[f"{one.get('dev')} {one.get('handle')}"] = {
            "kind": one.get("kind"), "root": bool(one.get("root")),
            "parent": one.get("parent"), "options": one.get("options", {}),
            "numbers": numbers}
    return found


def marks_of(queue):
    """Packets that a queue has marked, whatever it calls them."""
    return sum(queue["numbers"].get(name, 0)
               for name in ("marks", "marked", "ecn_mark", "ce_mark"))


def snapshot(address, port):
    """What this host's network namespace knows now."""
    names = read("/proc/sys/net/ipv4/tcp_available_congestion_control").split()
    peer = f"[{address}]" if ":" in address else address
    counters = parse_counters(read("/proc/net/netstat"))
    for line in read("/proc/net/snmp6").splitlines():
        name, value = line.split()
        counters[name] = int(value)
    return {
        "connections": parse_ss(command(
            "ss", "-tinoH", "dst", f"{peer}:{port}" if port else peer), names),
        "counters": counters,
        "module_counters": {name: value for module in MODULES for name, value
                            in parse_columns(read(f"/proc/net/{module}")).items()},
        "queues": parse_queues(command("tc", "-s", "-j", "qdisc", "show")),
    }


def rates(queues):
    """{name: bit/s, or None where nothing tells} of the queues sbrm; as their
    class, the shaper above or the device has it."""
    ours = [name for name, one in queues.items() if one["kind"] == "sbrm"]
    devices = {name.split()[0] for name in ours}
    classes, speeds = {}, {}
    for device in devices:
        classes[device] = stability.class_rates(
            command("tc", "class", "show", "dev", device))
        speed = read(f"/sys/class/net/{device}/speed")
        if speed.isdigit():
            speeds[device] = int(speed) * 10**6
    return {name: stability.rate_of(name, queues, classes, speeds)
            for name in ours}


def grown(before, after):
    """Differences of the numbers of two dicts."""
    return {name: value - before.get(name, 0) for name, value in after.items()}


def changes(before, after):
    """What happened between two snapshots; connections must be in both."""
    old = {(one.local, one.remote): one for one in before["connections"]}
    both = []
    for one in after["connections"]:
        was = old.get((one.local, one.remote))
        if not was:
            continue
        both.append({
            "local": one.local, "remote": one.remote, "cc": one.cc,
            "flags": one.flags, "fallback": one.fallback,
            "rtt_ms": one.rtt_ms,
            "dctcp": None if one.dctcp is None else dict(
                one.dctcp,
                # These wrap at 2^32.
                marked=(one.dctcp["ab_ecn"] -
                        (was.dctcp or one.dctcp)["ab_ecn"]) % 2**32,
                acked=(one.dctcp["ab_tot"] -
                       (was.dctcp or one.dctcp)["ab_tot"]) % 2**32),
            "grown": grown(was.numbers, one.numbers)})
    queues = {}
    for name, queue in after["queues"].items():
        was = before["queues"].get(name)
        if was and was["kind"] == queue["kind"]:
            queues[name] = {
                "kind": queue["kind"], "root": queue["root"],
                "options": queue["options"],
                "marks": marks_of(queue) - marks_of(was),
                "now": queue["numbers"],
                "grown": grown(was["numbers"], queue["numbers"])}
    return {"connections": both, "queues": queues,
            "counters": grown(before["counters"], after["counters"]),
            "module_counters": grown(before["module_counters"],
                                     after["module_counters"])}


class Icmp:
    """A raw socket that hears quotes of our probes. Needs CAP_NET_RAW."""

    def __init__(self, family):
        self.six = family == socket.AF_INET6
        self.socket = socket.socket(family, socket.SOCK_RAW,
                                    socket.IPPROTO_ICMPV6 if self.six
                                    else socket.IPPROTO_ICMP)

    def quote(self, packet):
        """(port the probe went to, its ECN bits there, is it from the end?)
        of an ICMP packet, or None if it quotes no UDP."""
        if self.six:
            if len(packet) < 56 or packet[0] not in (1, 3) or packet[14] != 17:
                return None
            ecn = packet[9] >> 4 & 3
            return struct.unpack_from(">H", packet, 50)[0], ecn, packet[0] == 1
        packet = packet[(packet[0] & 15) * 4:]
        if len(packet) < 36 or packet[0] not in (3, 11) or packet[17] != 17:
            return None
        port, = struct.unpack_from(">H", packet, 8 + (packet[8] & 15) * 4 + 2)
        return port, packet[9] & 3, packet[0] == 3

    def answers(self, wanted, ports, seconds):
        """{port: (address, ECN, from the end?)} of those in `ports`, once all
        `wanted` have come or the time is over."""
        found, until = {}, time.monotonic() + seconds
        while set(wanted) - set(found):
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.socket], [], [], left)[0]:
                break
            packet, sender = self.socket.recvfrom(1 << 16)
            quoted = self.quote(packet)
            if quoted and quoted[0] in ports:
                found[quoted[0]] = (sender[0], *quoted[1:])
        return found


def probe(family, address):
    """[{hop, address, ce, ect0, end}]: the codepoints in which probes with CE
    and with ECT(0) came to each hop; None where nothing was heard."""
    six = family == socket.AF_INET6
    level = socket.IPPROTO_IPV6 if six else socket.IPPROTO_IP
    ttl = socket.IPV6_UNICAST_HOPS if six else socket.IP_TTL
    tos = socket.IPV6_TCLASS if six else socket.IP_TOS
    icmp = Icmp(family)
    hops, ports, silent = [], {}, 0

    def listen(wanted, seconds):
        for port, (sender, ecn, end) in icmp.answers(wanted, ports,
                                                     seconds).items():
            one, name = ports[port]
            one.update({"address": sender, name: ecn})
            one["end"] |= end and sender == address

    def send(hop, left):
        for port in left:
            with socket.socket(family, socket.SOCK_DGRAM) as sender:
                sender.setsockopt(level, ttl, hop)
                sender.setsockopt(level, tos, port - PROBE_PORT & 3)
                # A peer that cannot be reached says so by itself.
                with contextlib.suppress(OSError):
                    sender.sendto(b"tollway doctor", (address, port))

    while len(hops) < HOPS_MAX and silent < SILENT_MAX and \
            not any(one["end"] for one in hops):
        hop = {"hop": len(hops) + 1, "address": None, "ce": None,
               "ect0": None, "end": False}
        hops.append(hop)
        wanted = {PROBE_PORT + 4 * hop["hop"] + codepoint: (hop, name)
                  for codepoint, name in ((CE, "ce"), (ECT0, "ect0"))}
        ports.update(wanted)
        # Hosts limit the rate of their ICMP: one answer calls for the other.
        for _ in range(3):
            left = [port for port, (_, name) in wanted.items()
                    if hop[name] is None]
            if left:
                send(hop["hop"], left)
                listen(left, ANSWER_S)
            if not hop["address"]:
                break
        silent = 0 if hop["address"] else silent + 1
    if not any(one["end"] for one in hops):
        listen([port for port, (hop, name) in ports.items()
                if hop[name] is None], LATE_S)
    last = next((index for index, one in enumerate(hops, 1) if one["end"]),
                len(hops))
    return hops[:last]


def handshake(family, address, port, cc, seconds=5):
    """Does the peer accept ECN for a connection of `cc`? None if it does not
    answer; the reason is then the second."""
    with socket.socket(family, socket.SOCK_STREAM) as made:
        made.settimeout(seconds)
        try:
            made.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, cc.encode())
            made.connect((address, port))
        except OSError as error:
            return None, error.strerror or str(error)
        options = made.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 8)[5]
        return bool(options & TCPI_OPT_ECN), ""


def resolve(peer):
    """(family, address, port or None) of HOST, HOST:PORT, [HOST]:PORT."""
    found = re.fullmatch(r"\[(.+)\](?::(\d+))?|([^:]+)(?::(\d+))?|(.+)", peer)
    if not found:
        raise TollwayError(f"--peer {short(peer)}: give it as HOST or "
                           "HOST:PORT")
    host = found[1] or found[3] or found[5]
    port = found[2] or found[4]
    if port and not (len(port) <= 5 and 0 < int(port) < 65536):
        raise TollwayError(f"--peer {short(peer)}: there is no such port")
    try:
        family, _, _, _, place = socket.getaddrinfo(
            host, None, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise TollwayError(f"--peer {short(host)}: {error.strerror}") from error
    except UnicodeError as error:
        raise TollwayError(f"--peer {short(host)}: that is no name of a host") \
            from error
    return family, place[0], int(port) if port else None


def observe(peer, seconds):
    """Everything that judge() looks at."""
    family, address, port = resolve(peer)
    seen = {"schema": SCHEMA, "peer": peer, "address": address, "port": port,
            "seconds": seconds, "kernel": os.uname().release,
            "modules": [name for name in MODULES if
                        Path(f"/proc/net/{name}").exists()],
            "default": read("/proc/sys/net/ipv4/tcp_congestion_control"),
            "tcp_ecn": int(read("/proc/sys/net/ipv4/tcp_ecn") or 0),
            "hops": None, "handshake": None}
    before = snapshot(address, port)
    time.sleep(seconds)
    after = snapshot(address, port)
    seen.update(changes(before, after), rates=rates(after["queues"]),
                kappa=float(read("/proc/sys/net/ipv4/tcp_sbrm/kappa") or 0)
                or None,
                source=read("/proc/sys/net/ipv4/tcp_sbrm/source"))
    if port and not seen["connections"] and "tcp_sbrm" in seen["modules"]:
        accepted, reason = handshake(family, address, port, "sbrm")
        seen["handshake"] = {"ecn": accepted, "error": reason}
    try:
        seen["hops"] = probe(family, address)
    except PermissionError:
        pass
    return seen


def judge_host(seen):
    """Modules and settings of this end."""
    if seen["modules"]:
        yield Finding("modules", "ok",
                      f"{' and '.join(seen['modules'])} loaded here, Linux "
                      f"{seen['kernel']}")
    else:
        yield Finding("modules", "wrong",
                      "neither tcp_sbrm nor tcp_pp is loaded here",
                      "make install (or the package tollway-dkms), then "
                      "modprobe tcp_sbrm")
    if seen["tcp_ecn"] == 0:
        yield Finding("tcp_ecn", "wrong",
                      "net.ipv4.tcp_ecn is 0: this host refuses ECN to others",
                      "sysctl net.ipv4.tcp_ecn=2")


def judge_path(seen):
    """What the probes met."""
    hops = seen["hops"]
    if hops is None:
        yield Finding("path", "unknown", "the path was not probed",
                      "run tollway doctor as root")
        return
    before = "this host"
    for one in hops:
        for name, sent in (("ce", CE), ("ect0", ECT0)):
            # A queue on the way may mark what is ECT(0).
            if one[name] in (None, sent) or (sent, one[name]) == (ECT0, CE):
                continue
            yield Finding(
                "path", "wrong",
                f"{CODEPOINTS[sent]} is bleached: it becomes "
                f"{CODEPOINTS[one[name]]} between {before} and "
                f"{one['address']} (hop {one['hop']})",
                "mend what rewrites the ECN bits there (often an old rule for "
                "the TOS byte); until then use pp, which needs no marks")
            return
        before = one["address"] or before
    heard = [one for one in hops if one["ce"] is not None]
    if heard and heard[-1]["end"]:
        yield Finding("path", "ok",
                      "probes with CE and ECT(0) come to "
                      f"{seen['address']} as they were sent (hops: "
                      f"{heard[-1]['hop']})")
    elif heard:
        yield Finding("path", "unknown",
                      f"CE is kept up to {heard[-1]['address']} (hop "
                      f"{heard[-1]['hop']}); no probe was answered beyond",
                      "run tollway doctor on the receiver while data comes")
    else:
        yield Finding("path", "unknown", "no probe was answered",
                      "run tollway doctor on the receiver while data comes")


def judge_queues(seen):
    """The queues of this host: on a router, those that matter."""
    for name, one in seen["queues"].items():
        if one["kind"] != "sbrm" or not one["grown"].get("packets"):
            continue
        where = f"the queue sbrm on {name.split()[0]}"
        unmarked = sum(one["grown"].get(name, 0) for name in UNMARKED)
        if unmarked > one["marks"]:
            yield Finding(
                "queue", "wrong",
                f"{where} dropped {unmarked} packets for "
                f"the price and marked {one['marks']}: what comes is not "
                "ECN-capable", "look at the senders, and at what lies before "
                "this router, with tollway doctor")
        elif one["marks"] or one["grown"].get("carried"):
            yield Finding("queue", "ok",
                          f"{where} marked {one['marks']} of "
                          f"{one['grown']['packets']} packets; its price is "
                          f"{one['now'].get('price', 0):.3g}")
        elif one["root"] and waits(one) < FULL_PACKETS:
            yield Finding(
                "queue", "unknown", f"{where} never holds more than the packet "
                "that it sends: the link is not busy, or packets wait behind "
                "it", "shape to just below the link's rate with htb, and put "
                "sbrm under it: see tc-sbrm(8)")
        else:
            yield Finding("queue", "note",
                          f"{where} marked nothing of "
                          f"{one['grown']['packets']} packets: the link is not "
                          "busy, or its queue is short")


def senders(seen):
    """The connections that send from here and see a price."""
    return [one for one in seen["connections"] if one["cc"] == "sbrm"
            and not one["fallback"] and one["grown"].get("bytes_acked")]


def judge_match(seen):
    """Laws of the queues of this host, with the source of what sends from here."""
    source = seen.get("source")
    if not source or not senders(seen):
        return
    for name, one in seen["queues"].items():
        law = one.get("options", {}).get("law")
        if one["kind"] != "sbrm" or not one["grown"].get("packets") or \
                not law or (source == "relative") == (law == "delay"):
            continue
        yield Finding(
            "match", "note", f"the queue sbrm on {name.split()[0]} has the law "
            f"{law}, and connections from here may have the source {source}: "
            "they are not made for each other, and the queue may be long or "
            "the link not full",
            "tc qdisc change ... sbrm mark delay; or, for the papers' laws, "
            "sysctl net.ipv4.tcp_sbrm.source=direct, and connect again"
            if source == "relative" else
            "sysctl net.ipv4.tcp_sbrm.source=relative, and connect again; or "
            "tc qdisc change ... sbrm mark sbrm")


def judge_stability(seen):
    """Queues of this host with the round trips of the connections from here; on
    a router neither the round trips nor the sources are known. The gain of the
    source relative is not kappa, and another loop."""
    rtts_s = [one["rtt_ms"] / 1000 for one in senders(seen) if one["rtt_ms"]]
    if rtts_s and seen.get("source") == "relative":
        return
    for loop in stability.loops(seen["queues"], seen["rates"], seen["kappa"]):
        yield Finding("stability", *stability.verdict(
            loop, max(rtts_s, default=None)))


def waits(queue):
    """Mean backlog of a queue sbrm in the time looked at, packets."""
    grown_by = queue["grown"]
    mean = grown_by.get("backlog_sum", 0) / max(grown_by.get("dequeued", 0), 1)
    # Counted in bytes it is above what a packet has.
    size = grown_by.get("bytes", 0) / max(grown_by["packets"], 1)
    return mean / size if mean > size > 0 else mean


def judge_negotiation(seen, one, name):
    """Was ECN negotiated, and by a peer that echoes marks?"""
    if "ecn" not in one["flags"]:
        here = "sysctl net.ipv4.tcp_ecn=1 here"
        there = ("there: modprobe tcp_sbrm, sysctl net.ipv4."
                 "tcp_congestion_control=sbrm, net.ipv4.tcp_ecn not 0; then "
                 "connect again")
        if one["cc"] in COUNTING:
            yield Finding("ecn", "wrong", f"{name}: ECN was refused; the peer "
                          "has not loaded the module, or has "
                          "net.ipv4.tcp_ecn=0, or a box on the path clears "
                          "the flags of the SYN", there)
        elif one["cc"] == "rm":
            yield Finding("ecn", "wrong", f"{name}: no ECN, losses alone are "
                          "left", here if seen["tcp_ecn"] not in (1, 3) else
                          "there: sysctl net.ipv4.tcp_ecn=2")
        return
    yield Finding("ecn", "ok", f"{name}: ECN was negotiated")
    if one["cc"] in COUNTING and one["fallback"]:
        yield Finding("echo", "wrong", f"{name}: the peer repeats ECE, so that "
                      "marks cannot be counted; it does not use sbrm for this "
                      "connection (dctcp:fallback_mode)",
                      "there: modprobe tcp_sbrm, sysctl net.ipv4."
                      "tcp_congestion_control=sbrm; then connect again")


def judge_sender(seen, one, name):
    """A connection that sends from here."""
    yield from judge_negotiation(seen, one, name)
    if one["cc"] == "cp":
        if one["fallback"]:
            yield Finding("echo", "wrong", f"{name}: the price does not come "
                          "back (dctcp:fallback_mode)", "there: modprobe "
                          "tcp_sbrm, and cp for this connection; and see "
                          "price_rewritten in its /proc/net/tcp_sbrm")
        else:
            yield Finding("echo", "ok", f"{name}: the peer returns the price")
        return
    if one["cc"] not in COUNTING or "ecn" not in one["flags"] or \
            one["fallback"] or not one["dctcp"]:
        return
    marked, acked = one["dctcp"]["marked"], one["dctcp"]["acked"]
    made = sum(queue["marks"] for queue in seen["queues"].values())
    if marked > MARKED_MOST[seen.get("source") == "relative"] * acked:
        yield Finding("marks", "wrong", f"{name}: {marked} of {acked} segments "
                      "were marked, too many to tell the price",
                      "lower net.ipv4.tcp_sbrm.wtp, see tcp_sbrm(7)")
    elif marked:
        yield Finding("marks", "ok", f"{name}: marks come back one by one, "
                      f"{marked} of {acked} segments in {seen['seconds']:g} "
                      "s; the peer echoes them")
    elif made:
        yield Finding("marks", "wrong", f"{name}: queues of this host marked "
                      f"{made} packets, and none came back: CE is bleached, "
                      "or they were of others", "see the path; run tollway "
                      "doctor on the receiver")
    else:
        yield Finding("marks", "unknown", f"{name}: no mark came back of "
                      f"{acked} segments: no queue on the path made one, or "
                      "CE is bleached", "on the router, tc -s qdisc show: "
                      "does it mark? On the receiver, tollway doctor")


def judge_receiver(seen, one, name):
    """A connection whose data comes to here."""
    if one["cc"] in ECHOING and "ecn" not in one["flags"]:
        yield Finding("ecn", "wrong", f"{name}: ECN was not negotiated, as "
                      "the connection is older than the setting of this end, "
                      "the peer does not ask for it, or the path clears the "
                      "flags of the SYN", "connect again; on the peer, "
                      "tollway doctor")
        return
    if "ecn" not in one["flags"]:
        return
    if "ecnseen" not in one["flags"]:
        yield Finding("ect", "wrong", f"{name}: ECN was negotiated, but no "
                      "packet came as ECN-capable: the path clears the ECN "
                      "bits", "on the peer, as root, tollway doctor says "
                      "where")
        return
    counters = seen["counters"]
    marked = counters.get("IpExtInCEPkts", 0) + counters.get("Ip6InCEPkts", 0)
    capable = marked + sum(counters.get(f"{kind}{which}Pkts", 0)
                           for kind in ("IpExtIn", "Ip6In")
                           for which in ("ECT0", "ECT1"))
    if marked:
        yield Finding("marks", "ok", f"{name}: marks arrive; {marked} of "
                      f"{capable} ECN-capable packets of this host in "
                      f"{seen['seconds']:g} s, and this end echoes them")
    else:
        yield Finding("marks", "unknown", f"{name}: {capable} ECN-capable "
                      "packets and no mark came: no queue on the path made "
                      "one, or CE is bleached", "on the router, tc -s qdisc "
                      "show: does it mark? On the peer, as root, tollway "
                      "doctor probes the path")


def judge_connection(seen, one):
    """One connection, from whichever end this is."""
    name = f"{one['local']} > {one['remote']}"
    sent = one["grown"].get("bytes_acked", 0)
    received = one["grown"].get("bytes_received", 0)
    if not sent and not received:
        yield Finding("idle", "unknown", f"{name}: idle for "
                      f"{seen['seconds']:g} s", "send something meanwhile")
        return
    if one["cc"] in PAIRED:
        yield Finding("cc", "ok", f"{name}: uses {one['cc']}, which needs "
                      "neither marks nor a module at the peer")
        return
    if sent >= received:
        if one["cc"] not in PRICED:
            yield Finding("cc", "wrong", f"{name}: sends with {one['cc']}",
                          "sysctl net.ipv4.tcp_congestion_control=sbrm (now "
                          f"{seen['default']}), or ip route ... congctl sbrm; "
                          "then connect again")
            return
        yield Finding("cc", "ok", f"{name}: sends with {one['cc']}")
        yield from judge_sender(seen, one, name)
        return
    if one["cc"] in ECHOING:
        yield Finding("cc", "ok", f"{name}: receives with {one['cc']}, which "
                      "echoes each mark")
    elif one["cc"] == "cp":
        yield Finding("cc", "ok", f"{name}: receives with cp, which returns "
                      "the price")
    elif seen["tcp_ecn"] == 3:
        yield Finding("cc", "note", f"{name}: receives with {one['cc']}; "
                      "AccECN (net.ipv4.tcp_ecn=3) counts the marks")
    else:
        yield Finding("cc", "wrong", f"{name}: receives with {one['cc']}, "
                      "which echoes no single marks: a sender of sbrm is "
                      "TCP/RM", "modprobe tcp_sbrm; sysctl net.ipv4."
                      "tcp_congestion_control=sbrm here; then connect again")
    yield from judge_receiver(seen, one, name)


def judge_absence(seen):
    """There is no connection to look at."""
    trial = seen["handshake"]
    if trial and trial["ecn"]:
        yield Finding("ecn", "ok", f"a new connection of sbrm to "
                      f"{seen['peer']}: ECN is accepted; that the peer "
                      "has the module follows where it has no AccECN")
    elif trial and trial["ecn"] is False:
        yield from judge_negotiation(
            seen, {"cc": "sbrm", "flags": []},
            f"a new connection of sbrm to {seen['peer']}")
    elif trial:
        yield Finding("ecn", "unknown", f"no connection to {seen['peer']}: "
                      f"{trial['error']}", "start what listens there")
    router = any(one["kind"] == "sbrm" and one["grown"].get("packets")
                 for one in seen["queues"].values())
    known = router or trial and trial["ecn"] is not None
    yield Finding("connections", "note" if known else "unknown", f"there is no connection to {seen['peer']} "
                  "from here: marks and echoes were not seen", "" if router
                  else "send something meanwhile (iperf3, tollway-traffic)")


def judge(seen):
    """[Finding] of what observe() has seen."""
    found = list(judge_host(seen))
    for one in seen["connections"]:
        found += judge_connection(seen, one)
    if not seen["connections"]:
        found += judge_absence(seen)
    found += judge_queues(seen)
    found += judge_match(seen)
    found += judge_stability(seen)
    # With pairs of packets alone nobody asks for marks.
    if not seen["connections"] or any(one["cc"] not in PAIRED for one in
                                      seen["connections"]):
        found += judge_path(seen)
    found += [Finding(name, "note", f"in these {seen['seconds']:g} s: {number} "
                      f"{COUNTERS[name]} ({name})")
              for name, number in seen["module_counters"].items()
              if number > 0 and name in COUNTERS]
    return settled(found)


def settled(found):
    """Doubts about marks go where the path is known to bleach them."""
    bleached = [one for one in found if one.about == "path"
                and one.verdict == "wrong"]
    for one in found:
        if bleached and one.about == "marks" and one.verdict == "unknown":
            one.verdict = "wrong"
            one.text = one.text.partition(": no queue")[0] + \
                ": CE is bleached, see the path"
            one.remedy = ""
    return found


def merged(found):
    """[(finding, how many more like it)]: many connections, one line."""
    groups = {}
    for one in found:
        key = (one.about, one.verdict, one.remedy) if " > " in one.text \
            else id(one)
        groups.setdefault(key, []).append(one)
    return [(group[0], len(group) - 1) for group in groups.values()]


def text_of(found):
    """The findings for a person."""
    lines = []
    for one, more in merged(found):
        lines.append(f"{one.verdict:8}{one.text}" +
                     (f" (and {more} more)" if more else ""))
        if one.remedy and one.verdict != "ok":
            lines.append(f"        -> {one.remedy}")
    return "\n".join(lines)


def json_of(seen, found):
    """The findings, and what they follow from, for a program."""
    return json.dumps(dict(seen, findings=[vars(one) for one in found]),
                      indent=1)


def well(found):
    """Is all well, and known to be?"""
    return not any(one.verdict in ("wrong", "unknown", "missing")
                   for one in found)
