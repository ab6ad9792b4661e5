# SPDX-License-Identifier: GPL-2.0
"""The commands of the README, as they stand there, on a sender, a router and a
receiver, each with modprobe and tollway as installed.

    sender 192.0.2.1 ---- .254 router eth0 .254 ---- 198.51.100.1 receiver
"""

import os
import re
import socket
import subprocess
from pathlib import Path

import guest_autoload
import guest_base
from guest_base import Namespace, note, quiet, run, start, sysctl
from tcp_bench import PORT, TRAFFIC, pump

README = Path("/run/tollway/src/README.md")
PROGRAMS = Path("/run/tollway/bin")
SENDER, RECEIVER = "192.0.2.1", "198.51.100.1"
DEFAULT = "net.ipv4.tcp_congestion_control"


def commands(role):
    """The five commands of a role."""
    found = re.search(rf"^```{role}\n(.*?)^```", README.read_text(),
                      re.M | re.S)
    lines = found.group(1).splitlines()
    assert len(lines) == 5, lines
    return lines


def shell(space, line):
    """Give a command in a namespace, as root would; a child."""
    with space:
        return start(["sh", "-c", line], text=True, stdout=subprocess.PIPE,
                     stderr=subprocess.STDOUT,
                     env=dict(os.environ, PATH=f"{PROGRAMS}:{os.environ['PATH']}"))


def given(space, lines):
    """Give commands one after another; all must succeed."""
    for line in lines:
        child = shell(space, line)
        said, _ = child.communicate(timeout=300)
        assert child.returncode == 0, f"{line}: {said}"


def looked_at(flow, *pairs):
    """{command: what it said} of commands given while a flow sends."""
    pump([flow], 3)
    children = [(line, shell(space, line)) for space, lines in pairs
                for line in lines]
    pump([flow], 8)
    found = {}
    for line, child in children:
        said, _ = child.communicate(timeout=300)
        note(f"# {line}\n{said}")
        assert child.returncode == 0, f"{line}: {said}"
        found[line] = said
    return found


def network():
    """(sender, router, receiver), with nothing but addresses and routes."""
    guest_autoload.install()
    PROGRAMS.mkdir(exist_ok=True)
    for name, target in (("modprobe", guest_autoload.MODPROBE),
                         ("tollway", "/run/tollway/src/scripts/tollway")):
        if not (PROGRAMS / name).exists():
            (PROGRAMS / name).symlink_to(target)
    sender, router, receiver = spaces = [
        Namespace(name) for name in ("sender", "router", "receiver")]
    for space in spaces:
        quiet(space)
    router.batch("ip", [
        "link add eth1 type veth peer name eth0 netns sender",
        "link add eth0 type veth peer name eth0 netns receiver",
        "addr add 192.0.2.254/24 dev eth1", "link set eth1 up",
        "addr add 198.51.100.254/24 dev eth0", "link set eth0 up"])
    for space, address, gate in ((sender, SENDER, "192.0.2.254"),
                                 (receiver, RECEIVER, "198.51.100.254")):
        space.batch("ip", [f"addr add {address}/24 dev eth0",
                           "link set eth0 up", f"route add default via {gate}"])
    router.sysctl("net.ipv4.ip_forward", 1)
    return spaces


def connected(sender, receiver):
    """A flow of the default congestion control of both."""
    with receiver:
        start([TRAFFIC, "sink", "--port", str(PORT), "--cc",
               receiver.sysctl(DEFAULT), "--json", "/dev/null"])
        while not run(f"ss -Htln sport = :{PORT}").strip():
            pass
    with sender:
        flow = socket.create_connection((RECEIVER, PORT))
    return flow


def check_prices():
    """Router, sender, receiver: each command does what is said, and all three
    doctors find all well."""
    sender, router, receiver = network()
    for space, role in ((router, "router"), (sender, "sender"),
                        (receiver, "receiver")):
        given(space, commands(role)[:3])
    assert sender.sysctl("net.ipv4.tcp_sbrm.wtp").split()[:3] == [
        "100", "200", "400"]
    flow = connected(sender, receiver)
    found = looked_at(flow, *((space, commands(role)[3:]) for space, role in
                              ((router, "router"), (sender, "sender"),
                               (receiver, "receiver"))))
    said = found["ss -tino dst 198.51.100.1"]
    assert re.search(r" ecn .*ab_ecn:[1-9]", said), said
    said = found[commands("receiver")[3]]
    assert re.search(r"IpExtInCEPkts +[1-9]", said), said
    assert re.search(r"marks [1-9]", found[commands("router")[3]])


def check_pairs():
    """The same for packet pairs."""
    sender, router, receiver = network()
    given(router, commands("router-pp")[:3])
    given(sender, commands("sender-pp")[:2])
    flow = connected(sender, receiver)
    found = looked_at(flow, (router, commands("router-pp")[3:]),
                      (sender, commands("sender-pp")[2:]))
    assert "bbr:(" in found["ss -tino dst 198.51.100.1"]
    assert "class fq_rr" in found["tc -s class show dev eth0"]


def check_one_destination():
    """The route of the text, on both ends."""
    sender, router, receiver = network()
    given(router, commands("router")[:3])
    for space, line in (
            (sender, "ip route add 198.51.100.0/24 via 192.0.2.254 congctl sbrm"),
            (receiver,
             "ip route add 192.0.2.0/24 via 198.51.100.254 congctl sbrm")):
        given(space, [line])
    flow = connected(sender, receiver)
    pump([flow], 3)
    assert " sbrm " in sender.run("ss -tinoH")
    assert " ecn " in sender.run("ss -tinoH")
    assert sysctl("/proc/sys/net/ipv4/tcp_congestion_control") != "sbrm"


if __name__ == "__main__":
    guest_base.main(globals())
