# SPDX-License-Identifier: GPL-2.0
"""The tc plugin of the qdisc fq_rr, inside the installed tc."""

import re
import shutil
import struct

import pytest
from tc_stub import TC, Tc, dump, flags, u32

pytestmark = pytest.mark.skipif(not TC or not shutil.which("cc"),
                                reason="needs tc (iproute2) and cc")

# pkt_fq_rr.h
(LIMIT, MEMORY_LIMIT, FLOWS, SERVICE, OVERFLOW, LONGEST, QUANTUM, CLASSIFY, WEIGH, WEIGHTS,
 PERTURB, FLAGS, CLASS_WEIGHT, RESERVE) = range(1, 15)


def weights(*values):
    return struct.pack(f"={len(values)}I", *values)


@pytest.fixture(scope="module")
def tc(tmp_path_factory):
    return Tc(tmp_path_factory.mktemp("tc"), "fq_rr")


@pytest.mark.parametrize("line, sent", [
    ("", {}),
    ("limit 100", {LIMIT: u32(100)}),
    ("limit 100p", {LIMIT: u32(100)}),
    ("limit 1048576", {LIMIT: u32(1 << 20)}),
    ("memory_limit 4mb", {MEMORY_LIMIT: u32(4 << 20)}),
    ("memory_limit 1", {MEMORY_LIMIT: u32(1)}),
    ("memory_limit 2gb", {MEMORY_LIMIT: u32(1 << 31)}),
    ("flows 65536", {FLOWS: u32(65536)}),
    ("service rr", {SERVICE: u32(0)}),
    ("service drr quantum 3000", {SERVICE: u32(1), QUANTUM: u32(3000)}),
    ("service wfq", {SERVICE: u32(2)}),
    ("overflow drop-last", {OVERFLOW: u32(0)}),
    ("overflow drop-tail-of-longest", {OVERFLOW: u32(1)}),
    ("overflow drop-longest longest bytes", {OVERFLOW: u32(2), LONGEST: u32(1)}),
    ("classify flow weigh priority", {CLASSIFY: u32(0), WEIGH: u32(0)}),
    ("classify mark weigh mark weights 1,2,1024",
     {CLASSIFY: u32(2), WEIGH: u32(1), WEIGHTS: weights(1, 2, 1024)}),
    ("weights 1", {WEIGHTS: weights(1)}),
    ("weights 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,7", {WEIGHTS: weights(*[1] * 15, 7)}),
    ("perturb 0", {PERTURB: u32(0)}),
    ("perturb 10s", {PERTURB: u32(10)}),
    ("reserve 110", {RESERVE: u32(110)}),
    ("reserve 0p", {RESERVE: u32(0)}),
    ("split-gso", {FLAGS: flags(1, 1)}),
    ("no-split-gso", {FLAGS: flags(0, 1)}),
])
def test_request(tc, line, sent):
    assert tc.options(line) == sent
    assert tc.options(line, "change") == sent


@pytest.mark.parametrize("line, says", [
    ("limit", "the line ends there"),
    ("limit 0", '"0"'),
    ("limit 1048577", '"1048577"'),
    ("limit 10kb", "packets"),
    ("limit -1", '"-1"'),
    ("limit 5 limit 5", "given twice"),
    ("memory_limit 0", '"0"'),
    ("memory_limit 3gb", '"3gb"'),
    ("flows 65537", '"65537"'),
    ("flows x", '"x"'),
    ("service", "rr, drr or wfq"),
    ("service fifo", '"fifo"'),
    ("overflow longest", "drop-longest"),
    ("longest queue", "packets or bytes"),
    ("quantum 0", '"0"'),
    ("quantum 2mb", '"2mb"'),
    ("classify dscp", '"dscp"'),
    ("weigh flow", '"flow"'),
    ("weights ,", '","'),
    ("weights 1,", '"1,"'),
    ("weights 1,,2", '"1,,2"'),
    ("weights 0", '"0"'),
    ("weights 1025", '"1025"'),
    ("weights 1,2x", '"1,2x"'),
    ("weights 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", "1 to 16"),
    ("perturb 1.5", '"1.5"'),
    ("perturb 86401", '"86401"'),
    ("reserve 1048577", '"1048577"'),
    ("reserve 10kb", "packets"),
    ("split-gso no-split-gso", "conflicts with"),
    ("fast", 'unknown word "fast"'),
])
def test_bad_line_is_one_sentence_and_sends_nothing(tc, line, says):
    done = tc.add(line)
    assert done.returncode != 0 and done.stdout == "" and not tc.request.exists()
    assert re.fullmatch(r"fq_rr: [^\n]*\n", done.stderr) and says in done.stderr


def options(**changed):
    given = {LIMIT: 10240, MEMORY_LIMIT: 32 << 20, FLOWS: 4096, SERVICE: 0, OVERFLOW: 1,
             LONGEST: 0, QUANTUM: 1514, CLASSIFY: 0, WEIGH: 0, PERTURB: 0, RESERVE: 0}
    given.update({globals()[name]: value for name, value in changed.items()})
    found = {name: value if isinstance(value, bytes) else u32(value)
             for name, value in given.items()}
    return {**found, FLAGS: found.get(FLAGS, flags(1, 1))}


@pytest.mark.parametrize("given, text", [
    (options(), "limit 10240p memory_limit 32Mb flows 4096 quantum 1514b perturb 0s service rr "
     "overflow drop-tail-of-longest longest packets classify flow weigh priority split-gso"),
    (options(LIMIT=1, MEMORY_LIMIT=1000001, FLOWS=1, SERVICE=2, OVERFLOW=2, LONGEST=1, QUANTUM=1,
             CLASSIFY=2, WEIGH=1, WEIGHTS=weights(3, 1), PERTURB=9, FLAGS=flags(0, 1)),
     "limit 1p memory_limit 1000001b flows 1 quantum 1b perturb 9s service wfq "
     "overflow drop-longest longest bytes classify mark weigh mark weights 3,1 no-split-gso"),
    (options(MEMORY_LIMIT=1 << 31, SERVICE=1, OVERFLOW=0, CLASSIFY=1),
     "limit 10240p memory_limit 2147483648b flows 4096 quantum 1514b perturb 0s service drr "
     "overflow drop-last longest packets classify priority weigh priority split-gso"),
    (options(RESERVE=110),
     "limit 10240p memory_limit 32Mb flows 4096 quantum 1514b perturb 0s reserve 110p service rr "
     "overflow drop-tail-of-longest longest packets classify flow weigh priority split-gso"),
])
def test_text_can_be_given_back(tc, given, text):
    assert tc.text(dump(given, kind="fq_rr")) == text
    # A reservation of none is not shown.
    assert {RESERVE: u32(0), **tc.options(text)} == given


def test_json(tc):
    given = options(WEIGHTS=weights(1, 2))
    assert tc.json(dump(given, kind="fq_rr"))["options"] == {
        "limit": 10240, "memory_limit": 32 << 20, "flows": 4096, "quantum": 1514, "perturb": 0,
        "service": "rr", "overflow": "drop-tail-of-longest", "longest": "packets",
        "classify": "flow", "weigh": "priority", "weights": [1, 2], "split_gso": True}


def test_incomplete_or_newer_options(tc):
    assert tc.text(dump({}, kind="fq_rr")) == ""
    assert tc.text(dump(None, kind="fq_rr")) == ""
    assert tc.text(dump({SERVICE: u32(9)}, kind="fq_rr")) == "service 9"
    assert tc.text(dump({LIMIT: b"\1", 30: u32(1)}, kind="fq_rr")) == ""
    assert tc.text(dump({WEIGHTS: weights(*range(1, 30))}, kind="fq_rr")) == ""


def xstats(kind=0):
    return struct.pack("=10I11Q", kind, 0, *range(1, 20))


def statistics(tc, payload):
    return tc.show(dump(options(), payload, kind="fq_rr"), "-s").splitlines()[2:]


def test_statistics(tc):
    assert statistics(tc, xstats()) == [
        " flows 1 max 2 new 9 collisions 10 moved 18 rehashes 17",
        " last_drops 11 longest_drops 12 in 13 own_drops 15 memory_drops 14 trim_drops 16",
        " longest 3 packets max 4 memory 5b max 6b quantum 7b owners 8 refused 19"]
    found = tc.json(dump(options(), xstats(), kind="fq_rr"), "-s")
    assert {"flows_used": 1, "flows_max": 2, "longest_now": 3, "packets_max": 4,
            "memory_used": 5, "memory_max": 6, "quantum_used": 7, "new_flows": 9,
            "collisions": 10, "last_drops": 11, "longest_drops": 12, "longest_events": 13,
            "memory_drops": 14, "own_drops": 15, "trim_drops": 16,
            "rehashes": 17, "moved_flows": 18, "owners": 8, "refused": 19}.items() <= found.items()


def test_statistics_of_other_kernels(tc):
    assert statistics(tc, xstats() + b"\xff" * 12) == statistics(tc, xstats())
    assert statistics(tc, xstats()[:12])[0] == " flows 1 max 0 new 0 collisions 0 moved 0 rehashes 0"
    assert statistics(tc, xstats(7)) in ([], [""])
    assert statistics(tc, struct.pack("=IIIiIIQII", 1, 0, 5, -3, 40, 9, 6, 7, 0)) == [
        " weight 5 credit -3 memory 40b packets max 9 collisions 6 reserve 7p"]
