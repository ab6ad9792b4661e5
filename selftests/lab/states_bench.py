# SPDX-License-Identifier: GPL-2.0
"""Sockets that are switched between congestion controls while they are in some
state, and data that must arrive whole."""

import contextlib
import hashlib
import os
import random
import select
import socket
import struct
import time
from collections import Counter

import declared
from guest_base import SETTINGS, note
from guest_ecn import PORT, choose, connecting, listener
from rtnl import ECN
from tcp_bench import TCP_CC_INFO, TCP_CONGESTION, Path, info, paper_queue

# The kernel's own: what a socket has before, and may have again; three, as rows()
# takes an even number.
CONTROLS = [*declared.CONTROLS, "reno", "cubic", "vegas"]
SENDER, RECEIVER = "10.0.0.1", "10.0.2.2"
(ESTABLISHED, SYN_SENT, SYN_RECV, FIN_WAIT1, FIN_WAIT2, _, CLOSE, CLOSE_WAIT,
 LAST_ACK, LISTEN, CLOSING) = range(1, 12)
SIZE = 100000
MSG_FASTOPEN, TCP_FASTOPEN, SYN_DATA = 0x20000000, 23, 32
TCP_REPAIR, TCP_REPAIR_QUEUE, TCP_QUEUE_SEQ, TCP_REPAIR_OPTIONS = range(19, 23)
RECV_QUEUE, SEND_QUEUE = 1, 2
OPTION_MSS, OPTION_SACK = 2, 4


def rows():
    """Orders of the controls: each begins one, and each follows each other one
    directly in exactly one of them (the rows of a Williams design)."""
    count = len(CONTROLS)
    assert count % 2 == 0
    zigzag = [(step + 1) // 2 if step % 2 else -step // 2
              for step in range(count)]
    made = [[CONTROLS[(first + step) % count] for step in zigzag]
            for first in range(count)]
    assert len({pair for row in made for pair in zip(row, row[1:])}) == \
        count * (count - 1)
    return made


def bed(rtt_ms=40):
    """The path of a check."""
    return Path(aqm=paper_queue(limit=1000, target=5, gamma=0.001, flags=ECN),
                rtt_ms=rtt_ms)


def chosen(one):
    """The congestion control of a socket."""
    return one.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION,
                          16).rstrip(b"\0").decode()


class Flow:
    """Data from one socket to another; all of it arrives, or it is an error."""

    def __init__(self, one, other, size=SIZE):
        self.one, self.other = one, other
        data = random.Random(SETTINGS["seed"]).randbytes(size)
        self.size, self.sent, self.got = size, 0, 0
        self.data, self.expected = data, hashlib.sha256(data).digest()
        self.digest = hashlib.sha256()
        for end in (one, other):
            end.setblocking(False)

    def move(self):
        """Write what can be written, read what has come."""
        with contextlib.suppress(BlockingIOError):
            while self.sent < self.size:
                self.sent += self.one.send(self.data[self.sent:])
        with contextlib.suppress(BlockingIOError):
            while True:
                part = self.other.recv(1 << 16)
                if not part:
                    return
                self.got += len(part)
                self.digest.update(part)

    def run(self, seconds):
        """Go on for some time."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.move()
            time.sleep(min(0.01, max(until - time.monotonic(), 0)))

    def finish(self, limit_s=600):
        """Go on until all has arrived, and look whether it is the same."""
        until = time.monotonic() + limit_s
        while self.got < self.size and time.monotonic() < until:
            self.run(0.05)
        # More than there is would be wrong, too.
        self.move()
        assert self.got == self.size, \
            f"{chosen(self.one)}: {self.got} of {self.size} bytes; " \
            f"{info(self.one)}"
        assert self.digest.digest() == self.expected, "other data than was sent"


class Switches:
    """Switches of sockets that must be in a state; what was seen.

    exact: False where time does not wait for this program: a socket may then have
    left the state before the switch, which does not count, and `least` of all pairs
    are enough.
    """

    exact, least = True, 0.25

    def __init__(self, *states, ca_state=None):
        self.states, self.ca_state = states, ca_state
        self.seen, self.pairs = Counter(), set()

    def through(self, space, one, row, wait=lambda: None):
        """All of a row, wait() after each, one dump by ss in between."""
        assert chosen(one) == row[0]
        for index, (old, new) in enumerate(zip(row, row[1:])):
            last = info(one)
            there = last.state in self.states
            assert there or not self.exact, f"state {last.state}: {last}"
            self.seen[last.state, last.ca_state] += 1
            if there and self.ca_state in (None, last.ca_state):
                self.pairs.add((old, new))
            choose(one, new)
            assert chosen(one) == new
            # Asks get_info() of the control, whatever it makes of the state.
            one.getsockopt(socket.IPPROTO_TCP, TCP_CC_INFO, 64)
            if index == len(row) // 2:
                space.run("ss -tino")
            wait()

    def report(self, share=1.0):
        """Note what was seen; so much of all pairs must have been."""
        every = len(CONTROLS) * (len(CONTROLS) - 1)
        note(f"{sum(self.seen.values())} switches, {len(self.pairs)} of {every} "
             f"pairs; (state, congestion state): {dict(self.seen)}")
        share = share if self.exact else min(share, self.least)
        assert len(self.pairs) >= share * every, self.seen


@contextlib.contextmanager
def connection(path, cc, family=socket.AF_INET, address=RECEIVER):
    """An accepted connection from s to d: (socket at s, at d)."""
    with listener(path.d, family) as server:
        server.settimeout(60)
        with connecting(path.s, family, address, [cc]) as one:
            other, _ = server.accept()
            with other:
                ready(one)
                yield one, other


def ready(one, limit_s=60):
    """Until the handshake is over; connect() may fail, and this then says so."""
    poll = select.poll()
    poll.register(one, select.POLLOUT)
    assert poll.poll(limit_s * 1000), f"no connection: {info(one)}"
    error = one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    assert not error, os.strerror(error)


def until_state(one, flow=None, state=None, ca_state=None, limit_s=60):
    """Wait for a state of a socket."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        last = info(one)
        if (state is None or last.state == state) and \
                (ca_state is None or last.ca_state == ca_state):
            return
        if flow:
            flow.move()
        time.sleep(0.002)
    raise AssertionError(f"state {state}, {ca_state} does not come: {last}")


def fast_open(path, cc, data):
    """(a socket that connects with data in the SYN, how much of it)."""
    with path.s:
        one = socket.socket()
    choose(one, cc)
    one.setblocking(False)
    try:
        return one, one.sendto(data, MSG_FASTOPEN, (RECEIVER, PORT))
    except BlockingIOError:
        # Without a cookie: data follows the handshake.
        return one, 0


def repair(one, on):
    """Enter repair mode, or leave it."""
    one.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, int(on))
    # Repair mode shares any port; leaving it forbids that even with others.
    if not on:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)


def sequences(one):
    """{queue: next sequence number} of a socket in repair mode."""
    found = {}
    for queue in (RECV_QUEUE, SEND_QUEUE):
        one.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR_QUEUE, queue)
        found[queue] = struct.unpack("=I", one.getsockopt(
            socket.IPPROTO_TCP, TCP_QUEUE_SEQ, 4))[0]
    return found


def repaired(space, cc, ends, queues):
    """A connection that was never opened, in repair mode still."""
    with space:
        one = socket.socket()
    choose(one, cc)
    repair(one, True)
    one.bind(ends[0])
    for queue, number in queues.items():
        one.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR_QUEUE, queue)
        one.setsockopt(socket.IPPROTO_TCP, TCP_QUEUE_SEQ,
                       struct.pack("=I", number))
    one.connect(ends[1])
    one.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR_OPTIONS,
                   struct.pack("=4I", OPTION_MSS, 1460, OPTION_SACK, 0))
    return one
