# SPDX-License-Identifier: GPL-2.0
"""Namespaces, commands, traffic and signatures for the checks of the smoke set."""

import contextlib
import ctypes
import errno
import json
import os
import re
import shlex
import socket
import struct
import subprocess
import time
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
LIMIT_S = 300
SECONDS = 4
FLOW_MBIT = 10
TCP_MD5SIG, TCP_AO_ADD_KEY = 14, 38


class Inside:
    """What is started in this context is in a network namespace."""

    def __init__(self, space):
        self.space = space
        self.outer = None

    def __enter__(self):
        self.outer = os.open("/proc/self/ns/net", os.O_RDONLY)
        inner = os.open(f"/run/netns/{self.space}", os.O_RDONLY)
        self.move(inner)
        os.close(inner)

    def __exit__(self, *_):
        self.move(self.outer)
        os.close(self.outer)

    @staticmethod
    def move(file):
        """Let this process be in another namespace."""
        if LIBC.setns(file, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")


def execute(command, space=None):
    """Run a command line, in a namespace; (exit status, output)."""
    with Inside(space) if space else contextlib.nullcontext():
        done = subprocess.run(shlex.split(command), text=True, check=False,
                              stdout=subprocess.PIPE, timeout=LIMIT_S,
                              stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def run(command, check=True, space=None):
    """Run a command that must not fail; its output."""
    status, said = execute(command, space)
    if check and status:
        raise AssertionError(f"{command}: {said.strip()}")
    return said


def refused(command, space=None):
    """Run a command that must fail; what it said."""
    status, said = execute(command, space)
    assert status, f"{command} was accepted"
    return said.strip()


def qdiscs(space, device="left"):
    """{handle: JSON object} of the qdiscs of a device."""
    return {entry["handle"]: entry for entry in
            json.loads(run(f"tc -s -j qdisc show dev {device}", space=space))}


@contextlib.contextmanager
def two_hosts(queues=1):
    """Namespaces "a" and "b" with a link of `queues` queues between them."""
    both = f"numtxqueues {queues} numrxqueues {queues}"
    try:
        run("ip netns add a")
        run("ip netns add b")
        run(f"ip link add left netns a {both} type veth peer right netns b "
            f"{both}")
        for space, device, number in (("a", "left", 1), ("b", "right", 2)):
            with Inside(space):
                run(f"ip addr add 10.0.0.{number}/24 dev {device}")
                run("ip link set lo up")
                run(f"ip link set {device} up")
                run("sysctl -qw net.ipv4.tcp_ecn=1 "
                    "net.ipv6.conf.all.disable_ipv6=1")
        yield
    finally:
        run("ip netns del a", check=False)
        run("ip netns del b", check=False)


@contextlib.contextmanager
def traffic(cc, seconds=SECONDS, flows=1, port=5201, core=None):
    """iperf3 from a to b; yields a function that waits for its report.

    Where computation takes no time nothing else than -b would end a second.
    """
    with Inside("b"):
        server = subprocess.Popen(["iperf3", "-s", "-1", "-p", str(port)],
                                  stdout=subprocess.DEVNULL)
    wait_for(lambda: f":{port} " in run("ss -Hltn", space="b"))
    with Inside("a"):
        client = subprocess.Popen(
            [*(["taskset", "-c", str(core)] if core is not None else []),
             "iperf3", "-J", "-c", "10.0.0.2", "-C", cc, "-t", str(seconds),
             "-P", str(flows), "-p", str(port), "-b", f"{FLOW_MBIT}M"],
            text=True,
            stdout=subprocess.PIPE)
    try:
        yield lambda: json.loads(client.communicate(timeout=LIMIT_S)[0])
    finally:
        for process in (client, server):
            process.kill()
            process.wait()


def wait_for(condition, seconds=20):
    """Call until it returns something true; that, or the last it returned."""
    for _ in range(10 * seconds):
        found = condition()
        if found:
            break
        time.sleep(0.1)
    return found


def users(module):
    """Number of users of a module, None without the module."""
    found = re.search(rf"^{module} \d+ (\d+)", Path("/proc/modules").read_text(),
                      re.MULTILINE)
    return int(found[1]) if found else None


def received_bps(report):
    """Goodput of a report of iperf3; AssertionError if it has none."""
    assert "error" not in report, report["error"]
    return report["end"]["sum_received"]["bits_per_second"]


def sign(connection, peer):
    """Let TCP sign what it sends to an address, and take nothing else."""
    key = b"tollway"
    connection.setsockopt(socket.IPPROTO_TCP, TCP_MD5SIG, struct.pack(
        "=HH4s120xBBHi80s", socket.AF_INET, 0, socket.inet_aton(peer), 0, 0,
        len(key), 0, key))


def sign_ao(connection, peer):
    """The same by the TCP Authentication Option, before there is a connection."""
    key, address = b"tollway", struct.pack(
        "=HH4s120x", socket.AF_INET, 0, socket.inet_aton(peer))
    connection.setsockopt(socket.IPPROTO_TCP, TCP_AO_ADD_KEY, struct.pack(
        "=128s64siIH6B80s", address, b"hmac(sha1)", 0, 0, 0, 32, 100, 100, 12, 0,
        len(key), key))


def is_known(how):
    """Does the kernel know the socket option of a function that signs?"""
    with socket.socket() as probe:
        try:
            how(probe, "10.0.0.2")
        except OSError as error:
            assert error.errno == errno.ENOPROTOOPT, error
            return False
    return True
