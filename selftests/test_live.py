# SPDX-License-Identifier: GPL-2.0
"""What `tollway doctor --peer` makes of the words of ss, tc and the kernel, and
of each other; selftests/lab/test_doctor.py has the real ones."""

import copy
import json
import socket

import pytest
from test_house import sh

from tollwaylib import live
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
    first, second = live.parse_ss(SS, ["reno", "sbrm", "rm"])
    assert (first.local, first.remote) == ("10.0.0.1:42078", "10.0.2.2:5000")
    assert first.cc == "sbrm" and "ecn" in first.flags and not first.fallback
    assert first.dctcp == {"ce_state": 0, "alpha": 95, "ab_ecn": 94,
                           "ab_tot": 759}
    assert first.numbers["bytes_acked"] == 1099033
    assert second.remote == "[fd00::2]:4444" and second.cc == "rm"
    assert second.fallback and second.dctcp is None
    assert "ecn" not in second.flags


def test_counters_wrap():
    """ab_ecn and ab_tot count to 2^32."""
    before = live.parse_ss(SS, ["sbrm"])[:1]
    before[0].dctcp.update(ab_ecn=2**32 - 6, ab_tot=2**32 - 1)
    after = live.parse_ss(SS, ["sbrm"])[:1]
    empty = {"counters": {}, "module_counters": {}, "queues": {}}
    one, = live.changes(dict(empty, connections=before),
                        dict(empty, connections=after))["connections"]
    assert one["dctcp"]["marked"] == 100 and one["dctcp"]["acked"] == 760


@pytest.mark.parametrize("peer, address, port", [
    ("127.0.0.1", "127.0.0.1", None), ("127.0.0.1:80", "127.0.0.1", 80),
    ("::1", "::1", None), ("[::1]", "::1", None), ("[::1]:80", "::1", 80)])
def test_names_of_a_peer(peer, address, port):
    assert live.resolve(peer)[1:] == (address, port)


@pytest.mark.parametrize("peer", ["127.0.0.1:65536", "127.0.0.1:0",
                                  "nosuch.invalid"])
def test_no_such_peer(peer):
    with pytest.raises(TollwayError):
        live.resolve(peer)


def test_quotes_in_icmp():
    """ECN bits and port of a quoted probe; other ICMP is nobody's answer."""
    icmp = live.Icmp.__new__(live.Icmp)
    quoted = bytes([0x45, 0x03]) + bytes(7) + bytes([17]) + bytes(10) + \
        bytes([0x12, 0x34, 0x82, 0x9F])
    outer = bytes([0x45]) + bytes(19)
    icmp.six = False
    for kind, end in ((11, False), (3, True)):
        packet = outer + bytes([kind, 0]) + bytes(6) + quoted + bytes(4)
        assert icmp.quote(packet) == (0x829F, 3, end)
    assert icmp.quote(outer + bytes([8, 0]) + bytes(6) + quoted) is None
    assert icmp.quote(outer + bytes([11, 0])) is None
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
    "hops": [{"hop": 1, "address": "10.0.2.2", "ce": 3, "ect0": 2,
              "end": True}],
    "connections": [{
        "local": "a:1", "remote": "d:2", "cc": "sbrm", "fallback": False,
        "flags": ["ecn"], "grown": {"bytes_acked": 1000.0},
        "dctcp": {"marked": 10, "acked": 100}}]}


def judged(**changed):
    """{about: verdict} of the healthy host with some things changed."""
    seen = copy.deepcopy(HEALTHY)
    seen["connections"][0].update(changed.pop("connection", {}))
    seen.update(changed)
    found = live.judge(seen)
    live.text_of(found)
    json.loads(live.json_of(seen, found))
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


def test_all_well():
    assert set(judged().values()) == {"ok"}
    assert live.well(live.judge(HEALTHY))


def test_many_connections_take_few_lines():
    seen = copy.deepcopy(HEALTHY)
    seen["connections"] = [dict(HEALTHY["connections"][0], local=f"a:{port}")
                           for port in range(100)]
    text = live.text_of(live.judge(seen))
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
    assert live.resolve("127.0.0.1")[0] == socket.AF_INET
    assert live.resolve("::1")[0] == socket.AF_INET6
