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
from guest_base import (
    Namespace, near, note, quiet, run, start, sysctl, wait_for_links)
from tcp_bench import PORT, TRAFFIC, pump

README = Path("/run/tollway/src/README.md")
PROGRAMS = Path("/run/tollway/bin")
SENDER, RECEIVER = "192.0.2.1", "198.51.100.1"
DEFAULT = "net.ipv4.tcp_congestion_control"


def commands(role, count=5):
    """The commands of a role: as many as the README promises."""
    found = re.search(rf"^```{role}\n(.*?)^```", README.read_text(),
                      re.M | re.S)
    lines = found.group(1).splitlines()
    assert len(lines) == count, lines
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
        wait_for_links((space, "eth0"))
    wait_for_links((router, "eth0"), (router, "eth1"))
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
    """Router, sender, receiver: each command does what is said, the link is full
    and the queue has its delay, also at another rate; and all three doctors find
    all well."""
    sender, router, receiver = network()
    for space, role in ((router, "router"), (sender, "sender"),
                        (receiver, "receiver")):
        given(space, commands(role)[:3])
    assert sender.sysctl("net.ipv4.tcp_sbrm.wtp").split()[:5] == [
        "25", "50", "100", "1", "25"]
    # A path of some length, and a send buffer that outlasts a pause of pump().
    receiver.run("tc qdisc add dev eth0 root netem delay 20ms limit 10000")
    sender.sysctl("net.ipv4.tcp_wmem", "4096 4000000 16000000")
    flow = connected(sender, receiver)
    for rate_mbit in (9.5, 30):
        router.run(f"tc class change dev eth0 parent 1: classid 1:1 htb rate "
                   f"{rate_mbit}mbit burst 1600 cburst 1600 quantum 1600")
        pump([flow], 10)
        router.run("tc qdisc change dev eth0 parent 1:1 sbrm reset-stats")
        before = router.run("tc -s qdisc show dev eth0 parent 1:1")
        pump([flow], 10)
        said = router.run("tc -s qdisc show dev eth0 parent 1:1")
        note(said)
        sent = [int(re.search(r"Sent (\d+) bytes", text)[1])
                for text in (before, said)]
        used = (sent[1] - sent[0]) * 8 / 10 / (rate_mbit * 1e6)
        served = float(re.search(r"service rate ([\d.]+)Mbit", said)[1])
        mean = float(re.search(r"backlog mean ([\d.]+)", said)[1])
        delay_ms = mean * 1514 * 8 / rate_mbit / 1e3
        note(f"{rate_mbit} Mb/s: used {used:.3f}, measured {served:g} Mb/s, "
             f"{delay_ms:.1f} ms")
        assert "mark delay feedback mark limit 10240p target 3ms" in said
        assert near(served, rate_mbit, 0.03)
        assert used > 0.97 and delay_ms < 6
    doctors(flow, sender, router, receiver)


def doctors(flow, sender, router, receiver):
    """Give the last commands of all three roles, which look."""
    found = looked_at(flow, *((space, commands(role)[3:]) for space, role in
                              ((router, "router"), (sender, "sender"),
                               (receiver, "receiver"))))
    said = found["ss -tino dst 198.51.100.1"]
    assert re.search(r" ecn .*ab_ecn:[1-9]", said), said
    said = found[commands("receiver")[3]]
    assert re.search(r"IpExtInCEPkts +[1-9]", said), said
    assert re.search(r"marks [1-9]", found[commands("router")[3]])


def check_papers():
    """The law and the source of CP05: a command on the router, and one on the
    sender, in the place of the third one there."""
    sender, router, receiver = network()
    given(router, [*commands("router")[:2], *commands("router-cp05", 1)])
    given(sender, [*commands("sender")[:2], *commands("sender-cp05", 1)])
    given(receiver, commands("receiver")[:3])
    assert sender.sysctl("net.ipv4.tcp_sbrm.wtp").split()[:4] == [
        "100", "200", "400", "25"]
    assert "mark sbrm feedback mark limit 1000p target 10p gamma 0.015" in \
        router.run("tc qdisc show dev eth0")
    flow = connected(sender, receiver)
    doctors(flow, sender, router, receiver)


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
