# SPDX-License-Identifier: GPL-2.0
"""Modules that are loaded, used and taken away while packets flow."""

import ctypes
import errno
import os
import random
import socket
import struct
import time
from pathlib import Path as File

import guest_base
from declared import CONTROLS_OF, DEFAULTS_OF, MODULES, QUEUES
from fuzz_models import FQ_RR_DEFAULTS, fq_rr_options_of, sbrm_options_of
from guest_base import LIBC, amount, run
from memory import memory, no_leak
from rtnl import NLM_F_CREATE, NLM_F_REPLACE, Refused
from tcp_bench import DATA, TCP_CONGESTION, Path, info, pump

CYCLES = {"short": 12, "full": 1000, "full_debug": 200}
SYS_DELETE_MODULE, SYS_FINIT_MODULE = 176, 313
FILES = File("/run/tollway/build/modules")
ADDRESS, LEAF = ("10.0.2.2", 6000), 0x10001
OURS, OTHER = 0x100000, 0x200000
DEFAULT = "net.ipv4.tcp_congestion_control"
# Cycles until the caches of the kernel have what they keep.
WARMUP = 5


def load(name):
    """Load a module of ours."""
    file = os.open(FILES / name / f"{name}.ko", os.O_RDONLY)
    try:
        if LIBC.syscall(SYS_FINIT_MODULE, file, b"", 0):
            raise OSError(ctypes.get_errno(), name)
    finally:
        os.close(file)


def unload(name):
    """Take a module away; the errno if the kernel refuses."""
    return LIBC.syscall(SYS_DELETE_MODULE, name.encode(), os.O_NONBLOCK) and \
        ctypes.get_errno()


class Traffic:
    """Flows of reno that never end, and those of one cycle."""

    def __init__(self):
        self.path = Path(rate_bps=2 * 10**7, rtt_ms=5, aqm="pfifo limit 100",
                         sink="reno")
        # Its handle is that of ours, which no other kind can take over.
        self.queue(b"pfifo\0", OTHER)
        self.always = []
        self.ends = []

    def start(self):
        """Let the flows begin that never end."""
        self.always = [self.path.connect("reno") for _ in range(2)]

    def stop(self):
        """End them, so that memory() finds none of their packets.

        What waits in the buffers of both ends differs from one moment to the
        next by several hundred KiB, the receiver's SO_RCVLOWAT alone by 256 KiB
        of data for each flow.
        """
        for one in self.always:
            reset(one)
        self.always = []

    def queue(self, kind, handle, data=None):
        """Let the link have another queue."""
        with self.path.r1:
            self.path.rtnl.sbrm("right", data, handle, LEAF,
                                NLM_F_CREATE | NLM_F_REPLACE, kind)

    def connect(self, cc):
        """A flow of which both ends are ours."""
        with self.path.d:
            server = socket.create_server(ADDRESS)
        server.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, cc.encode())
        near = self.path.connect(cc, port=ADDRESS[1])
        far, _ = server.accept()
        server.close()
        far.setblocking(False)
        self.ends.append((near, far))

    def run(self, seconds):
        """Let everything flow."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            pump([*self.always, *(near for near, _ in self.ends)], 0.005)
            for _, far in self.ends:
                try:
                    # To nowhere: how much it was does not matter.
                    while far.recv(len(DATA), socket.MSG_TRUNC):
                        pass
                except OSError:
                    pass

    def leave(self, rng):
        """End the flows of this cycle: in order, at once, or by a change to
        reno, with which they go on. The latter ones."""
        stay = []
        for near, far in self.ends:
            how = rng.randrange(3)
            if how == 2:
                for end in near, far:
                    end.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"reno")
                stay.append((near, far))
                continue
            reset(near if how else far)
            reset(far if how else near)
        self.ends = stay


def reset(connection):
    """Close a connection at once, whatever it has to send."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                          b"\1\0\0\0\0\0\0\0")
    connection.close()


def refused(name):
    """Assert that a module in use stays."""
    answer = unload(name)
    assert answer == errno.EAGAIN, f"{name}: {os.strerror(answer)}"


def gone(name):
    """Assert that a module that nobody uses goes."""
    for _ in range(20):
        answer = unload(name)
        if not answer:
            return
        time.sleep(0.01)
    raise AssertionError(f"{name}: {os.strerror(answer)}: {run('lsmod')}")


def random_options(rng, module):
    """Options for a new queue, right or wrong."""
    if rng.random() < 0.3:
        return None
    return sbrm_options_of(rng) if module == "sch_sbrm" else \
        fq_rr_options_of(rng, FQ_RR_DEFAULTS)[0]


def cycle(traffic, rng):
    """Load, use, refuse to unload, stop to use, unload; all with traffic."""
    for name in rng.sample(MODULES, len(MODULES)):
        load(name)
    for name in rng.sample(sorted(CONTROLS_OF), len(CONTROLS_OF)):
        for cc in rng.sample(CONTROLS_OF[name], min(2, len(CONTROLS_OF[name]))):
            traffic.connect(cc)
    queues = rng.sample(sorted(QUEUES), 2)
    for name in queues:
        try:
            traffic.queue(QUEUES[name].encode() + b"\0", OURS, random_options(rng, name))
        except Refused:
            traffic.queue(QUEUES[name].encode() + b"\0", OURS)
        traffic.run(rng.random() / 20)
        for used in (name, *CONTROLS_OF):
            refused(used)
        traffic.queue(b"pfifo\0", OTHER)
    space = rng.choice((traffic.path.s, traffic.path.d))
    name = rng.choice([name for name in sorted(DEFAULTS_OF) if DEFAULTS_OF[name]])
    space.sysctl(DEFAULT, rng.choice(DEFAULTS_OF[name]))
    traffic.leave(rng)
    refused(name)
    space.sysctl(DEFAULT, "reno")
    for name in rng.sample(MODULES, len(MODULES)):
        gone(name)
    traffic.run(0.005)
    # A module that is away leaves traffic as it was.
    for near, far in traffic.ends:
        before = info(near).bytes_acked
        # After losses in a long queue a timeout may be seconds away.
        for _ in range(600):
            traffic.run(0.1)
            if info(near).bytes_acked > before:
                break
        else:
            raise AssertionError(f"a flow stands still: {info(near)}")
    # What one still had to send after losses would be there for seconds more.
    for near, far in traffic.ends:
        reset(near)
        reset(far)
    traffic.ends = []


def check_cycles():
    """A thousand times: nothing in use goes, all else does, nothing leaks."""
    rng = random.Random(guest_base.SETTINGS["seed"])
    cycles = amount(**CYCLES)
    for name in MODULES:
        gone(name)
    traffic = Traffic()
    traffic.start()
    for _ in range(WARMUP):
        cycle(traffic, rng)
    traffic.stop()
    before = memory()
    traffic.start()
    for number in range(cycles):
        cycle(traffic, rng)
        if number % 100 == 99:
            print(f"cycle {number + 1}", flush=True)
    traffic.stop()
    no_leak(f"{cycles} cycles", cycles, before)
    if guest_base.SETTINGS["flavour"] != "debug":
        would_find(f"{cycles} cycles and a leak", cycles, before)
    for name in MODULES:
        load(name)


def would_find(what, times, before):
    """A leak of 64 bytes each time must fail the check. A System V message of 16
    bytes takes as much."""
    queue = LIBC.msgget(0, 0o600)
    try:
        # no_leak() allows 100 objects, however short the test is.
        for _ in range(max(times, 200)):
            assert not LIBC.msgsnd(queue, struct.pack("=q16s", 1, b""), 16, 0)
        try:
            no_leak(what, times, before)
        except AssertionError:
            return
        raise LookupError("a leak of 64 bytes each time was not found")
    finally:
        LIBC.msgctl(queue, 0, None)


if __name__ == "__main__":
    guest_base.main(globals())
