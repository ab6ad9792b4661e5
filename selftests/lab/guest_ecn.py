# SPDX-License-Identifier: GPL-2.0
"""Nothing is ECT towards a peer without ECN, whatever selects the congestion
control, whenever it does, over IPv4 and IPv6."""

import contextlib
import ctypes
import os
import socket
import struct
import time
from collections import Counter, namedtuple

import guest_base
from guest_base import amount, note
from rtnl import ECN
from tcp_bench import TCP_CONGESTION, Path, paper_queue, settle

SYSCTL = "net.ipv4.tcp_sbrm.estimator"
DEFAULT = "net.ipv4.tcp_congestion_control"
PORT = 5100
BYTES = 40000
# Name of a congestion control and the estimator that the sysctl asks for.
Case = namedtuple("Case", "cc estimator")
ESTIMATORS = ("log", "raw", "history", "four-bit", "explicit")
ALL_CASES = ([Case(cc, estimator) for cc in ("sbrm", "rem", "cp")
              for estimator in ESTIMATORS] +
             [Case(cc, "log") for cc in ("rm", "pp", "ppx")])
# One of each path through init().
FEW_CASES = [Case("sbrm", "log"), Case("sbrm", "explicit"),
             Case("rem", "history"), Case("rem", "four-bit"),
             Case("cp", "explicit"), Case("rm", "log"), Case("pp", "log")]
ADDRESSES = {socket.AF_INET: ("10.0.0.1", "10.0.2.2"),
             socket.AF_INET6: ("fd00::1", "fd02::2")}
# Only the first namespace may have these by default; elsewhere the refusal
# costs the kernel (6.1) a reference to the module.
RESTRICTED = ("cp", "ppx")
SYN = 2


def both_families():
    """A path for IPv4 and IPv6 whose queue marks what is ECT."""
    path = Path(aqm=paper_queue(limit=1000, target=5, gamma=0.001, flags=ECN))
    nets = ("fd00::", "fd01::", "fd02::")
    for space in path.spaces:
        for what in ("all", "default"):
            space.sysctl(f"net.ipv6.conf.{what}.disable_ipv6", 0)
        space.sysctl("net.ipv6.conf.all.forwarding", 1)
    for net, left, right in zip(nets, path.spaces, path.spaces[1:]):
        for space, number, device in ((left, 1, "right"), (right, 2, "left")):
            space.sysctl(f"net.ipv6.conf.{device}.disable_ipv6", 0)
            space.run(f"ip -6 addr add {net}{number}/64 dev {device} nodad")
    path.s.run("ip -6 route add fd00::/8 via fd00::2")
    path.r1.run("ip -6 route add fd02::/64 via fd01::2")
    path.r2.run("ip -6 route add fd00::/64 via fd01::1")
    path.d.run("ip -6 route add fd00::/8 via fd02::1")
    return path


def choose(one, cc):
    """Select a congestion control for a socket."""
    one.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, cc.encode())


def listener(space, family):
    """A listening socket in a namespace."""
    with space:
        one = socket.socket(family)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("", PORT))
    one.listen()
    return one


def connecting(space, family, address, before=()):
    """A socket in SYN_SENT."""
    with space:
        one = socket.socket(family)
    for cc in before:
        choose(one, cc)
    one.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        one.connect((address, PORT))
    return one


class Watcher:
    """Counts what arrives at d from s: data and other packets by ECN field."""

    def __init__(self, path):
        with path.d:
            self.raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            self.raw.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)
            self.raw.setsockopt(263, 23, 1)
            self.raw.bind(("left", 3))
        self.raw.setblocking(False)

    def count(self):
        """Counters of (kind, ECN field): kind is "syn", "data" or "other"."""
        found = Counter()
        while True:
            try:
                frame, address = self.raw.recvfrom(120)
            except BlockingIOError:
                return found
            if address[2] == socket.PACKET_OUTGOING:
                continue
            parsed = parse(frame)
            if parsed:
                found[parsed] += 1


def parse(frame):
    """(kind, ECN field) of a frame of TCP, or None."""
    kind, = struct.unpack_from(">H", frame, 12)
    if kind == 0x0800 and frame[23] == socket.IPPROTO_TCP:
        ecn, tcp = frame[15] & 3, 14 + (frame[14] & 15) * 4
        length = struct.unpack_from(">H", frame, 16)[0] + 14 - tcp
    elif kind == 0x86dd and frame[20] == socket.IPPROTO_TCP:
        ecn, tcp = frame[15] >> 4 & 3, 54
        length = struct.unpack_from(">H", frame, 18)[0]
    else:
        return None
    if frame[tcp + 13] & SYN:
        return "syn", ecn
    return ("data" if length > (frame[tcp + 12] >> 4) * 4 else "other"), ecn


def before_connect(path, family, cc):
    """setsockopt() and then connect()."""
    with listener(path.d, family) as server:
        one = connecting(path.s, family, ADDRESSES[family][1], [cc])
        server.settimeout(30)
        other, _ = server.accept()
    return one, other


def by_default(path, family, cc):
    """The sysctl selects it."""
    path.s.sysctl(DEFAULT, cc)
    with listener(path.d, family) as server:
        one = connecting(path.s, family, ADDRESSES[family][1])
        path.s.sysctl(DEFAULT, "reno")
        server.settimeout(30)
        other, _ = server.accept()
    return one, other


def in_syn_sent(path, family, cc):
    """setsockopt() while the answer to the SYN is on its way."""
    with listener(path.d, family) as server:
        one = connecting(path.s, family, ADDRESSES[family][1], ["reno"])
        choose(one, cc)
        server.settimeout(30)
        other, _ = server.accept()
    return one, other


def in_syn_sent_twice(path, family, cc):
    """The same, and the SYN was sent by something that needs ECN."""
    with listener(path.d, family) as server:
        one = connecting(path.s, family, ADDRESSES[family][1], ["dctcp"])
        choose(one, "cubic")
        choose(one, cc)
        server.settimeout(30)
        other, _ = server.accept()
    return one, other


def in_silence(path, family, cc):
    """setsockopt() in SYN_SENT after a SYN that did not ask for ECN."""
    path.s.sysctl("net.ipv4.tcp_ecn", 2)
    made = in_syn_sent(path, family, cc)
    path.s.sysctl("net.ipv4.tcp_ecn", 1)
    return made


def established(path, family, cc):
    """setsockopt() once data has been sent."""
    one, other = before_connect(path, family, "reno")
    wait_writable(one)
    one.send(bytes(10000))
    time.sleep(0.01)
    choose(one, cc)
    return one, other


def accepted(path, family, cc):
    """The peer connects, to a listener for which it was selected."""
    with listener(path.s, family) as server:
        choose(server, cc)
        # Its SYN is not ECT: a SYN that is would be refused ECN.
        other = connecting(path.d, family, ADDRESSES[family][0], ["reno"])
        server.settimeout(30)
        one, _ = server.accept()
    return one, other


WAYS = (before_connect, by_default, in_syn_sent, in_syn_sent_twice, in_silence,
        established, accepted)


def wait_writable(one):
    """Until the handshake is over."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            one.getpeername()
            return
        except OSError:
            time.sleep(0.01)
    raise AssertionError("no connection")


def transfer(path, way, family, case, watcher):
    """What arrived of one connection, as Watcher.count() says."""
    path.s.sysctl(SYSCTL, case.estimator)
    watcher.count()
    one, other = way(path, family, case.cc)
    with one, other:
        wait_writable(one)
        one.setblocking(True)
        assert one.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION,
                              16).rstrip(b"\0").decode() == case.cc
        one.sendall(bytes(BYTES))
        settle(one)
        # An ACK of ours, too.
        other.setblocking(True)
        other.sendall(b"x")
        time.sleep(0.2)
    time.sleep(0.2)
    return watcher.count()


def each(path, ways=WAYS):
    """(words, counters) of each way, family and case."""
    watcher = Watcher(path)
    for way in ways:
        for family in ADDRESSES:
            for case in amount(FEW_CASES, ALL_CASES):
                if way is by_default and case.cc in RESTRICTED:
                    continue
                words = (f"{way.__name__} {family.name} {case.cc} "
                         f"{case.estimator}")
                found = transfer(path, way, family, case, watcher)
                packets = sum(count for (kind, _), count in found.items()
                              if kind == "data")
                assert packets > 10, f"{words}: {found}"
                yield words, found


def check_peer_without_ecn():
    """Zero packets after the SYN may be ECT or CE."""
    path = both_families()
    path.d.sysctl("net.ipv4.tcp_ecn", 0)
    wrong, cases, total = [], 0, Counter()
    for words, found in each(path):
        cases += 1
        total.update(found)
        if any(ecn for (kind, ecn) in found if kind != "syn"):
            wrong.append(f"{words}: {dict(found)}")
    note(f"{cases} connections: {dict(total)}")
    note(f"{len(wrong)} with ECT")
    assert not wrong, "\n".join(wrong)


def check_peer_with_ecn():
    """Where ECN is negotiated, data is ECT: the check above can fail."""
    path = both_families()
    path.d.sysctl("net.ipv4.tcp_ecn", 1)
    # A SYN that is ECT itself is refused by stock receivers.
    path.d.sysctl(DEFAULT, "sbrm")
    wrong = []
    for words, found in each(path, (before_connect, in_syn_sent, accepted)):
        bare = found["data", 0]
        ect = sum(count for (kind, ecn), count in found.items()
                  if kind == "data" and ecn)
        # Retransmissions are not ECT where ECN is not needed.
        if ect < 9 * bare:
            wrong.append(f"{words}: {dict(found)}")
    assert not wrong, "\n".join(wrong)


def disconnect(one):
    """connect() to AF_UNSPEC: the socket is new again."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.connect(one.fileno(), bytes(16), 16):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def check_next_peer_has_ecn():
    """A socket whose first peer had no ECN connects to one that has."""
    path = both_families()
    watcher = Watcher(path)
    for cc in ("sbrm", "rem"):
        path.d.sysctl("net.ipv4.tcp_ecn", 0)
        path.d.sysctl(DEFAULT, "reno")
        with path.s:
            one = socket.socket()
        choose(one, cc)
        for ecn in (0, 1):
            path.d.sysctl("net.ipv4.tcp_ecn", ecn)
            path.d.sysctl(DEFAULT, ("reno", "sbrm")[ecn])
            watcher.count()
            with listener(path.d, socket.AF_INET) as server:
                one.connect((ADDRESSES[socket.AF_INET][1], PORT))
                other, _ = server.accept()
            with other:
                one.sendall(bytes(BYTES))
                settle(one)
            found = watcher.count()
            note(f"{cc}, tcp_ecn {ecn}: {dict(found)}")
            bare = found["data", 0]
            assert bare > 10 if not ecn else \
                found["data", 1] + found["data", 2] + found["data", 3] > \
                9 * bare, found
            disconnect(one)
        one.close()


if __name__ == "__main__":
    guest_base.main(globals())
