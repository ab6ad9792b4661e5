# SPDX-License-Identifier: GPL-2.0
"""`tollway doctor --peer` on the hosts of a path: each finding where it is due,
and none where all is well."""

import json
import socket
import subprocess
import time
from pathlib import Path as File

import guest_base
import tcp_bench
from declared import MODULES
from guest_base import note, start
from rtnl import ALPHA_LAW, MARK, TWO_BIT, options
from tcp_bench import PORT, Path, cc_info, pump

DOCTOR = "/run/tollway/src/scripts/tollway"
SECONDS = 3
# Kernels with AccECN accept ECN from a SYN of sbrm, others refuse.
ACCEPTS = File("/proc/sys/net/ipv4/tcp_ecn_option").exists()
WITHOUT = "repeats ECE" if ACCEPTS else "ECN was refused"
# Slow links, for few packets: programs that forward them take real time.
RATE_BPS = 2 * 10**6
PEER, SENDER = "10.0.2.2", "10.0.0.1"
MARKING = dict(limit=100, target=5, gamma=0.01)


class Doctor:
    """A doctor at work in a namespace, beside the traffic of this process."""

    def __init__(self, space, peer, *words):
        with space:
            self.process = start(
                [DOCTOR, "doctor", "--peer", peer, "--seconds", str(SECONDS),
                 "--json", "-", *words], text=True, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE)

    def findings(self):
        """{about: (verdict, text, remedy)}; the exit status must agree."""
        said, complaint = self.process.communicate(timeout=300)
        assert self.process.returncode in (0, 1), complaint
        found = {}
        for one in json.loads(said)["findings"]:
            found[one["about"]] = (one["verdict"], one["text"], one["remedy"])
            if one["verdict"] != "ok":
                note(f"{one['verdict']}: {one['text']}")
        well = not {verdict for verdict, *_ in found.values()} & {
            "wrong", "unknown"}
        assert self.process.returncode == (not well), found
        return found


def examined(flows, *doctors):
    """What doctors say while flows send."""
    pump(flows, SECONDS + 2)
    return [doctor.findings() for doctor in doctors]


def marking_path(**keywords):
    """A path whose queue marks enough of one flow."""
    path = Path(rate_bps=RATE_BPS, aqm=keywords.pop("aqm", options(**MARKING)),
                **keywords)
    path.s.sysctl("net.ipv4.tcp_sbrm.wtp", "60")
    return path


def expect(found, **verdicts):
    """The verdicts about some things; others must be well."""
    for about, (verdict, text, _) in found.items():
        assert verdict == verdicts.get(about, verdict if verdict == "note"
                                       else "ok"), (about, verdict, text)
    assert set(verdicts) <= set(found), (verdicts, sorted(found))


def check_healthy_path():
    """Sender, receiver and router, all at once: nothing to complain of."""
    path = marking_path()
    flow = path.connect()
    pump([flow], 3)
    sender, receiver, router = examined(
        [flow], Doctor(path.s, PEER), Doctor(path.d, SENDER),
        Doctor(path.r1, PEER))
    expect(sender, modules="ok", cc="ok", ecn="ok", marks="ok", path="ok")
    assert "marks come back one by one" in sender["marks"][1]
    assert "(hops: 3)" in sender["path"][1]
    expect(receiver, cc="ok", marks="ok")
    assert "marks arrive" in receiver["marks"][1]
    expect(router, queue="ok", connections="note", stability="note")
    # tc told the rate: 165 packets of 1514 bytes at 2 Mb/s.
    assert f"c {RATE_BPS / 8 / 1514:.0f} packets/s" in router["stability"][1]


def check_text():
    """The same for a person, with the commands that help."""
    path = marking_path(sink="reno")
    flow = path.connect()
    pump([flow], 1)
    with path.s:
        child = start([DOCTOR, "doctor", "--peer", f"{PEER}:{PORT}",
                       "--seconds", str(SECONDS)], text=True,
                      stdout=subprocess.PIPE)
    pump([flow], SECONDS + 2)
    said, _ = child.communicate(timeout=300)
    note(said)
    assert child.returncode == 1
    assert "\nwrong   " in said and WITHOUT in said
    assert "        -> there: modprobe tcp_sbrm" in said


def check_bleached():
    """CE becomes ECT(0) behind the router: found, and where."""
    path = marking_path()
    path.meddled("bleach")
    flow = path.connect()
    pump([flow], 3)
    sender, receiver, router = examined(
        [flow], Doctor(path.s, PEER), Doctor(path.d, SENDER),
        Doctor(path.r1, PEER))
    expect(sender, ecn="ok", marks="wrong", path="wrong")
    assert "CE is removed: it becomes ECT(0) between 10.0.0.2 and 10.0.2.2" \
        in sender["path"][1]
    expect(receiver, marks="unknown")
    expect(router, path="wrong", queue="ok", connections="note")


def check_cleared():
    """All ECN bits are cleared on the way: no packet comes ECN-capable."""
    path = marking_path()
    flow = path.connect()
    pump([flow], 1)
    path.meddled("clear")
    # What was seen before would count.
    flow.close()
    flow = path.connect()
    pump([flow], 3)
    sender, receiver = examined([flow], Doctor(path.s, PEER),
                                Doctor(path.d, SENDER))
    assert sender["path"][0] == "wrong"
    assert "becomes Not-ECT" in sender["path"][1]
    # Linux takes an ECN-setup SYN that is not ECT for ECN: negotiated.
    assert sender["marks"][0] == "wrong"
    assert receiver["ect"][0] == "wrong"


def check_before_the_router():
    """ECN bits cleared before they come to the queue: it can only drop."""
    path = marking_path(aqm=options(limit=1000, target=5, gamma=0.002))
    path.s.sysctl("net.ipv4.tcp_ecn", 0)
    flow = path.connect("reno")
    pump([flow], 2)
    sender, router = examined([flow], Doctor(path.s, PEER),
                              Doctor(path.r1, PEER))
    assert router["queue"][0] == "wrong"
    assert "not ECN-capable" in router["queue"][1]
    expect(sender, cc="wrong", tcp_ecn="wrong")
    assert "sends with reno" in sender["cc"][1]


def check_module_missing_at_the_peer():
    """A receiver with Linux' own reno refuses ECN to a SYN that is ECT, or
    cannot echo single marks."""
    path = marking_path(sink="reno")
    flow = path.connect()
    pump([flow], 1)
    sender, receiver = examined([flow], Doctor(path.s, PEER),
                                Doctor(path.d, SENDER))
    about = "echo" if ACCEPTS else "ecn"
    expect(sender, cc="ok", **{about: "wrong"})
    assert WITHOUT in sender[about][1]
    assert "modprobe tcp_sbrm" in sender[about][2]
    assert receiver["cc"][0] == "wrong"
    assert "receives with reno" in receiver["cc"][1]


def check_peer_that_repeats_ece():
    """ECN, but of RFC 3168: found by the fallback."""
    path = marking_path(sink="reno", aqm=options(limit=1000, target=5,
                                                 gamma=0.005))
    flow = path.connect("reno")
    flow.setsockopt(socket.IPPROTO_TCP, tcp_bench.TCP_CONGESTION, b"sbrm")
    for _ in range(60):
        pump([flow], 1)
        if not cc_info(flow).enabled:
            break
    sender, = examined([flow], Doctor(path.s, PEER))
    expect(sender, ecn="ok", echo="wrong")
    assert "repeats ECE" in sender["echo"][1]


def check_module_missing_here():
    """Without the module: said first, with what to do."""
    guest_base.modules_unload()
    try:
        path = Path(rate_bps=RATE_BPS, aqm="pfifo limit 100", sink="reno")
        flow = path.connect("reno")
        sender, = examined([flow], Doctor(path.s, PEER))
        assert sender["modules"][0] == "wrong"
        assert "modprobe tcp_sbrm" in sender["modules"][2]
        assert sender["cc"][0] == "wrong"
        flow.close()
        guest_base.cleanup()
    finally:
        for module in MODULES:
            guest_base.run("insmod /run/tollway/build/modules/"
                           f"{module}/{module}.ko")


def check_no_queue_marks():
    """No queue marks: that is all that can be known, and is said."""
    path = marking_path(aqm="pfifo limit 100")
    flow = path.connect()
    pump([flow], 1)
    sender, receiver = examined([flow], Doctor(path.s, PEER),
                                Doctor(path.d, SENDER))
    expect(sender, marks="unknown")
    expect(receiver, marks="unknown")


def check_queue_elsewhere():
    """A queue that is never used, since the packets wait behind it."""
    path = marking_path(aqm="pfifo limit 100")
    path.r1.run("tc qdisc add dev left root sbrm")
    flow = path.connect()
    router, = examined([flow], Doctor(path.r1, SENDER))
    assert router["queue"][0] == "unknown"
    assert "packets wait behind it" in router["queue"][1]


def check_source_and_law():
    """The source of the papers over the law delay, both on this host."""
    path = Path(rate_bps=None)
    path.s.batch("tc", [
        "qdisc add dev right root handle 1: htb default 1",
        f"class add dev right parent 1: classid 1:1 htb rate {RATE_BPS}bit",
        "qdisc add dev right parent 1:1 sbrm mark delay"])
    for source, law, noted in (("direct", "delay", True),
                               ("relative", "delay", False),
                               ("relative", "sbrm", True)):
        path.s.sysctl("net.ipv4.tcp_sbrm.source", source)
        path.s.run(f"tc qdisc change dev right parent 1:1 sbrm mark {law}")
        flow = path.connect()
        pump([flow], 3)
        sender, = examined([flow], Doctor(path.s, PEER))
        if noted:
            assert sender["match"][0] == "note", sender
            for word in (source, law):
                assert word in sender["match"][1], sender
        else:
            assert "match" not in sender, sender


def check_price():
    """The explicit price: returned, and by a peer that does not know it."""
    for sink, verdict in (("cp", "ok"), ("reno", "wrong")):
        path = marking_path(
            sink=sink, aqm="sbrm mark rem-pc3 phi 1.06 gamma 0.001 alpha 0.1 "
            "limit 300 target 2 rate 2mbit avpkt 1514b feedback price")
        flow = path.connect("cp")
        pump([flow], 3)
        sender, = examined([flow], Doctor(path.s, PEER))
        assert sender["echo"][0] == verdict, (sink, sender)
        guest_base.cleanup()


def check_pairs():
    """pp needs nothing of the peer, and nobody asks for marks."""
    path = Path(rate_bps=RATE_BPS, aqm="fq_codel", sink="reno")
    flow = path.connect("pp")
    pump([flow], 1)
    sender, = examined([flow], Doctor(path.s, PEER))
    expect(sender, cc="ok")
    assert "path" not in sender and "marks" not in sender


def check_second_order():
    """alpha: both bits, marks alone, and neither."""
    bits = options(law=ALPHA_LAW, high=5, goal=20, limit=60, feedback=TWO_BIT)
    marks = options(law=ALPHA_LAW, high=5, goal=20, limit=60, feedback=MARK)
    for aqm, sink, ecn, echo, heard in (
            (bits, "alpha", 1, "ok", "ok"), (bits, "reno", 1, "note", "unknown"),
            (marks, "reno", 1, "note", "ok"), ("pfifo", "reno", 0, "wrong", None)):
        path = Path(rate_bps=RATE_BPS, aqm=aqm, sink=sink)
        path.s.sysctl("net.ipv4.tcp_ecn", ecn)
        flow = path.connect("alpha")
        pump([flow], 5)
        sender, receiver = examined([flow], Doctor(path.s, PEER),
                                    Doctor(path.d, SENDER))
        assert sender["cc"][0] == "ok" and sender["echo"][0] == echo
        assert ("marks" in sender) == (heard is not None)
        assert heard is None or sender["marks"][0] == heard
        if sink == "alpha":
            expect(sender, echo="ok", marks="ok")
            assert "returns CN and BCN" in receiver["cc"][1]
        guest_base.cleanup()


def check_nothing_sent():
    """No connection, with and without a listener; and an idle one."""
    path = marking_path()
    found, = examined([], Doctor(path.s, f"{PEER}:{PORT}"))
    expect(found, ecn="ok", connections="note")
    found, = examined([], Doctor(path.s, f"{PEER}:1"))
    expect(found, ecn="unknown", connections="unknown")
    path.sink("reno", port=5001)
    found, = examined([], Doctor(path.s, f"{PEER}:5001"))
    expect(found, ecn="ok" if ACCEPTS else "wrong", connections="note")
    flow = path.connect()
    flow.send(b"x")
    time.sleep(1)
    found, = examined([], Doctor(path.s, PEER))
    expect(found, idle="unknown")
    flow.close()


def check_ipv6():
    """Probes and connections over IPv6."""
    path = marking_path()
    for number, space in enumerate(path.spaces):
        space.sysctl("net.ipv6.conf.all.disable_ipv6", 0)
        space.sysctl("net.ipv6.conf.all.forwarding", 1)
        for device, address in (("left", f"fd00:{number - 1}::2/64"),
                                ("right", f"fd00:{number}::1/64")):
            if (number, device) not in ((0, "left"), (3, "right")):
                space.sysctl(f"net.ipv6.conf.{device}.disable_ipv6", 0)
                space.run(f"ip addr add {address} dev {device} nodad")
    path.s.run("ip -6 route add fd00::/16 via fd00:0::2")
    path.r1.run("ip -6 route add fd00:2::/64 via fd00:1::2")
    path.r2.run("ip -6 route add fd00:0::/64 via fd00:1::1")
    path.d.run("ip -6 route add fd00::/16 via fd00:2::1")
    # A router asks for the neighbours of others from its link-local address, which
    # is tentative for up to two seconds.
    time.sleep(3)
    flow = path.connect(family=socket.AF_INET6, address="fd00:2::2")
    pump([flow], 3)
    sender, receiver = examined([flow], Doctor(path.s, "fd00:2::2"),
                                Doctor(path.d, "fd00:0::1"))
    expect(sender, ecn="ok", marks="ok", path="ok")
    assert "(hops: 3)" in sender["path"][1]
    expect(receiver, marks="ok")


def check_without_root():
    """Nothing but the probes needs root."""
    path = marking_path()
    flow = path.connect()
    pump([flow], 3)
    with path.s:
        child = start(["setpriv", "--reuid=65534", "--clear-groups",
                       "--inh-caps=-all", "--bounding-set=-all", DOCTOR,
                       "doctor", "--peer", PEER, "--seconds", str(SECONDS)],
                      text=True, stdout=subprocess.PIPE,
                      stderr=subprocess.STDOUT)
    pump([flow], SECONDS + 2)
    said, _ = child.communicate(timeout=300)
    assert "marks come back one by one" in said, said
    assert "run tollway doctor --peer as root" in said, said
    assert child.returncode == 1


if __name__ == "__main__":
    guest_base.main(globals())
