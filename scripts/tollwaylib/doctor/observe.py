# SPDX-License-Identifier: GPL-2.0
"""What a host knows of its connections to a peer, and of the path."""

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

from ..components.modules import CONTROLS, judged_by
from ..errors import TollwayError
from ..words import short
from . import stability
from .finding import SCHEMA

PRICED, PAIRED, SECOND_ORDER, UNJUDGED = (
    judged_by(how) for how in ("marks", "pairs", "second-order", None))

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
    # cwnd_gain of bbr:(...), which alpha takes for what it knows.
    state: int = None
    rtt_ms: float = None


def command(*words):
    """Output of a program of iproute2. Raises TollwayError if the program is missing or fails."""
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
            elif name == "bbr":
                told = re.search(r"cwnd_gain:([\d.]+)", value)
                one.state = int(float(told[1])) if told else None
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
        "module_counters": {name: value for module in CONTROLS for name, value
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
            "rtt_ms": one.rtt_ms, "state": one.state,
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
        packet = packet[(packet[0] & 15) * 4:] if packet else packet
        if len(packet) < 36 or packet[0] not in (3, 11) or packet[17] != 17:
            return None
        # Anybody can send one that quotes a longer header than it has.
        ports = 8 + (packet[8] & 15) * 4
        if not 28 <= ports <= len(packet) - 4:
            return None
        port, = struct.unpack_from(">H", packet, ports + 2)
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
    """(family, address, port or None) of HOST, HOST:PORT, [HOST]:PORT. port: a number from 1 to
    65535. Raises TollwayError if peer has another form, or if its host has no address."""
    found = re.fullmatch(r"\[(.+)\](?::(\d+))?|([^:]+)(?::(\d+))?|(.+)", peer)
    if not found:
        raise TollwayError(f"--peer {short(peer)}: give it as HOST or "
                           "HOST:PORT")
    host = found[1] or found[3] or found[5]
    port = found[2] or found[4]
    if port and not (len(port) <= 5 and 0 < int(port) < 65536):
        raise TollwayError(f"--peer {short(peer)}: a port is a number from 1 "
                           "to 65535")
    try:
        family, _, _, _, place = socket.getaddrinfo(
            host, None, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise TollwayError(f"--peer {short(host)}: {error.strerror}") from error
    except UnicodeError as error:
        raise TollwayError(f"--peer {short(host)}: this is not the name of "
                           "a host") \
            from error
    return family, place[0], int(port) if port else None


def observe(peer, seconds):
    """Everything that judge() looks at."""
    family, address, port = resolve(peer)
    seen = {"schema": SCHEMA, "peer": peer, "address": address, "port": port,
            "seconds": seconds, "kernel": os.uname().release,
            "modules": [name for name in CONTROLS if
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
