# SPDX-License-Identifier: GPL-2.0
"""What `tollway doctor --peer` makes of the words of ss, tc and the kernel, and
of each other; selftests/lab/test_doctor.py has the real ones."""

import copy
import json
import re
import socket
from pathlib import Path

import pytest
from test_house import sh

from tollwaylib.components import modules
from tollwaylib.doctor import diagnose, finding, observe, stability
from tollwaylib.errors import TollwayError

# One connection over two lines, and one in one line, as ss -tinoH prints them.
SS = """\
ESTAB 0      3866160     10.0.0.1:42078     10.0.2.2:5000 timer:(on,220ms,0)
\t ts sack ecn ecnseen sbrm wscale:6,7 rto:240 rtt:40/0 cwnd:27 \
bytes_acked:1099033 dctcp:(ce_state:0,alpha:95,ab_ecn:94,ab_tot:759) \
pacing_rate 5599528bps delivered:760 delivered_ce:1
ESTAB 0 0 [fd00::1]:5000 [fd00::2]:4444 ts sack rm dctcp:fallback_mode rto:2
"""


def test_words_of_ss():
    first, second = observe.parse_ss(SS, ["reno", "sbrm", "rm"])
    assert (first.local, first.remote) == ("10.0.0.1:42078", "10.0.2.2:5000")
    assert first.cc == "sbrm" and "ecn" in first.flags and not first.fallback
    assert first.dctcp == {"ce_state": 0, "alpha": 95, "ab_ecn": 94,
                           "ab_tot": 759}
    assert first.numbers["bytes_acked"] == 1099033 and first.rtt_ms == 40
    assert second.rtt_ms is None
    assert second.remote == "[fd00::2]:4444" and second.cc == "rm"
    assert second.fallback and second.dctcp is None
    assert "ecn" not in second.flags


def test_counters_wrap():
    """ab_ecn and ab_tot count to 2^32."""
    before = observe.parse_ss(SS, ["sbrm"])[:1]
    before[0].dctcp.update(ab_ecn=2**32 - 6, ab_tot=2**32 - 1)
    after = observe.parse_ss(SS, ["sbrm"])[:1]
    empty = {"counters": {}, "module_counters": {}, "queues": {}}
    one, = observe.changes(dict(empty, connections=before),
                           dict(empty, connections=after))["connections"]
    assert one["dctcp"]["marked"] == 100 and one["dctcp"]["acked"] == 760


@pytest.mark.parametrize("peer, address, port", [
    ("127.0.0.1", "127.0.0.1", None), ("127.0.0.1:80", "127.0.0.1", 80),
    ("::1", "::1", None), ("[::1]", "::1", None), ("[::1]:80", "::1", 80)])
def test_names_of_a_peer(peer, address, port):
    assert observe.resolve(peer)[1:] == (address, port)


@pytest.mark.parametrize("peer", ["127.0.0.1:65536", "127.0.0.1:0",
                                  "nosuch.invalid"])
def test_no_such_peer(peer):
    with pytest.raises(TollwayError):
        observe.resolve(peer)


def test_quotes_in_icmp():
    """ECN bits and port of a quoted probe; other ICMP is nobody's answer."""
    icmp = observe.Icmp.__new__(observe.Icmp)
    quoted = bytes([0x45, 0x03]) + bytes(7) + bytes([17]) + bytes(10) + \
        bytes([0x12, 0x34, 0x82, 0x9F])
    outer = bytes([0x45]) + bytes(19)
    icmp.six = False
    for kind, end in ((11, False), (3, True)):
        packet = outer + bytes([kind, 0]) + bytes(6) + quoted + bytes(4)
        assert icmp.quote(packet) == (0x829F, 3, end)
    assert icmp.quote(outer + bytes([8, 0]) + bytes(6) + quoted) is None
    assert icmp.quote(outer + bytes([11, 0])) is None
    # Of anybody: quoted headers of each length, where only 28 bytes are quoted.
    for words in (*range(5), *range(7, 16)):
        forged = bytes([0x40 | words]) + quoted[1:]
        packet = outer + bytes([3, 0]) + bytes(6) + forged + bytes(4)
        assert icmp.quote(packet) is None
    for length in range(60):
        packet = (outer + bytes([3, 0]) + bytes(6) + b"\x4f" + quoted[1:])[:length]
        assert icmp.quote(packet) is None
    icmp.six = True
    quoted = bytes([0x60, 0x20]) + bytes(4) + bytes([17, 1]) + bytes(32) + \
        bytes([0x12, 0x34, 0x82, 0x9F])
    for kind, end in ((3, False), (1, True)):
        packet = bytes([kind, 0]) + bytes(6) + quoted + bytes(4)
        assert icmp.quote(packet) == (0x829F, 2, end)


HEALTHY = {
    "peer": "d", "address": "10.0.2.2", "port": None, "seconds": 5.0,
    "kernel": "6.1", "modules": ["tcp_sbrm"], "default": "sbrm", "tcp_ecn": 2,
    "handshake": None, "queues": {}, "counters": {}, "module_counters": {},
    "rates": {}, "kappa": 0.1,
    "hops": [{"hop": 1, "address": "10.0.2.2", "ce": 3, "ect0": 2,
              "end": True}],
    "connections": [{
        "local": "a:1", "remote": "d:2", "cc": "sbrm", "fallback": False,
        "flags": ["ecn"], "grown": {"bytes_acked": 1000.0}, "rtt_ms": 40.0,
        "dctcp": {"marked": 10, "acked": 100}}]}


def judged(**changed):
    """{about: verdict} of the healthy host with some things changed."""
    seen = copy.deepcopy(HEALTHY)
    seen["connections"][0].update(changed.pop("connection", {}))
    seen.update(changed)
    found = diagnose.judge(seen)
    finding.text_of(found)
    json.loads(finding.json_of(seen, found))
    return {one.about: one.verdict for one in found}


@pytest.mark.parametrize("changed, about, verdict", [
    ({}, "marks", "ok"),
    ({"connection": {"dctcp": {"marked": 90, "acked": 100}}}, "marks",
     "wrong"),
    ({"tcp_ecn": 0}, "tcp_ecn", "wrong"),
    ({"hops": None}, "path", "unknown"),
    # A queue on the way may mark a probe that can be marked.
    ({"hops": [dict(HEALTHY["hops"][0], ect0=3)]}, "path", "ok"),
    ({"hops": [dict(HEALTHY["hops"][0], ect0=0)]}, "path", "wrong"),
    ({"hops": [dict(HEALTHY["hops"][0], ce=None, ect0=None)]}, "path",
     "unknown"),
    ({"module_counters": {"latched": 1, "nothing_known": 1}}, "latched",
     "note"),
    ({"connection": {"cc": "rm", "flags": []}}, "ecn", "wrong"),
    ({"connection": {"cc": "reno", "grown": {"bytes_received": 9.0}},
      "tcp_ecn": 3}, "cc", "note"),
])
def test_verdicts(changed, about, verdict):
    assert judged(**changed)[about] == verdict


# tc -s -j qdisc show, and tc class show, of a router as README has it.
TC = json.dumps([
    {"kind": "htb", "handle": "1:", "dev": "eth0", "root": True,
     "options": {"default": "0x1"}},
    {"kind": "sbrm", "handle": "8001:", "dev": "eth0", "parent": "1:1",
     "options": {"law": "sbrm", "limit": 1000, "target": 10, "unit": "packets",
                 "gamma": 0.015, "gamma_auto": False},
     "bytes": 0, "packets": 0, "marks": 0}])
CLASSES = ("class htb 1:1 root leaf 8001: prio 0 rate {} ceil {} burst 1600b "
           "cburst 1600b \n")


def loop_of(rate, packet=1500, unit="packets", gamma=0.015, kappa=None,
            above=None):
    """A Loop of a router that sent 1000 packets."""
    before = observe.parse_queues(TC)
    if above:
        before["eth0 1:"].update(above)
    after = copy.deepcopy(before)
    after["eth0 8001:"]["numbers"].update(packets=1000, bytes=1000 * packet)
    after["eth0 8001:"]["options"].update(unit=unit, gamma=gamma)
    empty = {"connections": [], "counters": {}, "module_counters": {}}
    queues = observe.changes(dict(empty, queues=before),
                             dict(empty, queues=after))["queues"]
    classes = {"eth0": stability.class_rates(CLASSES.format(rate, rate))} \
        if rate else {}
    rates = {"eth0 8001:": stability.rate_of("eth0 8001:", after, classes, {})}
    return list(stability.loops(queues, rates, kappa))


@pytest.mark.parametrize("rate, pps", [
    ("9500Kbit", 791.7), ("96Mbit", 8000), ("1Gbit", 83333.3),
    ("1500000bit", 125), ("2.5Gbit", 208333)])
def test_rates_of_tc(rate, pps):
    (loop,) = loop_of(rate)
    assert loop.pps == pytest.approx(pps, rel=1e-3)
    assert loop.where == "the queue sbrm on eth0" and loop.kappa == 0.1


def test_rates_without_a_class():
    (loop,) = loop_of(None, above={"kind": "tbf", "options": {"rate": 12e6}})
    assert loop.pps == pytest.approx(8000)
    assert loop_of(None) == []
    # At the root it is the device's.
    root = {"eth0 1:": {"kind": "sbrm", "root": True, "parent": None,
                        "options": {}}}
    assert stability.rate_of("eth0 1:", root, {}, {"eth0": 10**9}) == 10**9
    assert stability.rate_of("eth0 1:", root, {}, {}) is None


@pytest.mark.parametrize("rate, packet, gamma, rtt_ms, gain, verdict", [
    # The defaults of double-bottleneck.
    ("96Mbit", 1000, 0.015, 36, 0.648, "ok"),
    # README's gamma at 96 Mb/s and 120 ms, auto's at 1 Gb/s and 50 ms: seen to
    # swing.
    ("96Mbit", 1000, 0.015, 120, 2.16, "wrong"),
    ("1Gbit", 1500, 0.00465, 50, 1.9375, "wrong"),
    ("96Mbit", 1000, 0.015, 60, 1.08, "note"),
    ("9500Kbit", 1500, 0.015, 120, 0.1425, "ok")])
def test_stability(rate, packet, gamma, rtt_ms, gain, verdict):
    (loop,) = loop_of(rate, packet, gamma=gamma)
    assert loop.gain(rtt_ms / 1000) == pytest.approx(gain, rel=1e-3)
    said, text, remedy = stability.verdict(loop, rtt_ms / 1000)
    assert said == verdict and f"is {gain:.2f} " in text
    assert bool(remedy) == (verdict != "ok")
    # What the remedy says is good, and a router without round trips says how
    # long they may be.
    (mended,) = loop_of(rate, packet, gamma=loop.gamma_for(rtt_ms / 1000))
    assert mended.gain(rtt_ms / 1000) == pytest.approx(stability.GOOD_MOST)
    assert stability.verdict(loop)[0] == "note"
    assert loop.gain(loop.longest_s()) == pytest.approx(stability.GOOD_MOST)
    # Backlogs in bytes have their gamma per byte, and any kappa counts.
    (other,) = loop_of(rate, packet, "bytes", gamma / packet, kappa=0.2)
    assert other.gain(rtt_ms / 1000) == pytest.approx(2 * gain, rel=1e-3)


def test_doctor_looks_at_stability():
    queues = {"eth0 8001:": {
        "kind": "sbrm", "root": False, "marks": 10, "now": {"price": 0.2},
        "options": {"law": "sbrm", "unit": "packets", "gamma": 0.015},
        "grown": {"packets": 1000, "bytes": 10**6}}}
    rates = {"eth0 8001:": 96e6}
    for rtt_ms, verdict in ((36.0, "ok"), (60.0, "note"), (120.0, "wrong")):
        assert judged(queues=queues, rates=rates, connection={
            "rtt_ms": rtt_ms})["stability"] == verdict
    # One that falls back has no price, one that is idle no round trip.
    for changed in ({"cc": "rm"}, {"grown": {"bytes_received": 9.0}}):
        assert judged(queues=queues, rates=rates, connection={
            "rtt_ms": 120.0, **changed})["stability"] == "note"
    assert "stability" not in judged(queues=queues)
    rem = copy.deepcopy(queues)
    rem["eth0 8001:"]["options"]["law"] = "rem-pc3"
    assert "stability" not in judged(queues=rem, rates=rates)
    # Whose gain is not kappa.
    assert "stability" not in judged(queues=queues, rates=rates, source="relative")


@pytest.mark.parametrize("source, law, noted", [
    ("relative", "delay", False), ("relative", "sbrm", True),
    ("relative", "rem-pc3", True), ("direct", "sbrm", False),
    ("aimd", "rem-pc1", False), ("direct", "delay", True),
    ("vegas", "delay", True), ("", "delay", False)])
def test_source_and_law_that_do_not_go_together(source, law, noted):
    queues = {"eth0 8001:": {
        "kind": "sbrm", "root": False, "marks": 10, "now": {"price": 0.2},
        "options": {"law": law, "unit": "packets"},
        "grown": {"packets": 1000, "bytes": 10**6}}}
    assert judged(queues=queues, source=source).get("match") == (
        "note" if noted else None)
    # Nothing is known of those that send from elsewhere, or without a price.
    for changed in ({"cc": "rm"}, {"fallback": True},
                    {"grown": {"bytes_received": 9.0}}):
        assert "match" not in judged(queues=queues, source=source,
                                     connection=changed)
    # Nobody uses it.
    queues["eth0 8001:"]["grown"]["packets"] = 0
    assert "match" not in judged(queues=queues, source=source)


def test_each_counter_of_a_module_has_its_words():
    """The tables of the C code, with those of the declarations."""
    top = Path(__file__).parents[1]
    declared = {one.name: one.counters for one in modules.MODULES}
    for module in observe.CONTROLS:
        files = [(top / module / name).read_text() for name in sorted(
            one.name for one in (top / module).glob("*_net.c"))]
        found = re.findall(r'\[\w+_COUNT_\w+\]\s*= "(\w+)"', "".join(files))
        assert found == list(declared[module]), module
        (counters,) = re.findall(
            r"enum \w+_counter \{(.*?)\}", "".join(
                file.read_text() for file in sorted((top / module).glob("*.h"))),
            re.DOTALL)
        # Each constant but the last one, which is their number.
        assert len(re.findall(r"\w+_COUNT_\w+,", counters)) == len(found)


def test_all_well():
    assert set(judged().values()) == {"ok"}
    assert finding.all_is_ok(diagnose.judge(HEALTHY))


def test_many_connections_take_few_lines():
    seen = copy.deepcopy(HEALTHY)
    seen["connections"] = [dict(HEALTHY["connections"][0], local=f"a:{port}")
                           for port in range(100)]
    text = finding.text_of(diagnose.judge(seen))
    assert len(text.splitlines()) < 8 and "(and 99 more)" in text


def test_wrong_words():
    for words in (["--seconds", "0"], ["--seconds", "x"],
                  ["--peer", "nosuch.invalid"], ["--nosuch"]):
        done = sh("scripts/tollway", "doctor", *words)
        assert done.returncode == 2 and not done.stdout, words
        assert "Traceback" not in done.stderr


def test_machine_as_json():
    done = sh("scripts/tollway", "doctor", "--json", "-")
    found = json.loads(done.stdout)["findings"]
    missing = [one for one in found if one["verdict"] == "missing"]
    assert done.returncode == bool(missing)
    assert any("gcc" in one["text"] for one in found)


def test_address_families():
    assert observe.resolve("127.0.0.1")[0] == socket.AF_INET
    assert observe.resolve("::1")[0] == socket.AF_INET6
