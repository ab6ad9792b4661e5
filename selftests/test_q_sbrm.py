# SPDX-License-Identifier: GPL-2.0
"""The tc plugin of the qdisc sbrm, inside the installed tc.

No kernel module, no privileges: q_sbrm_stub.c keeps the request that tc would
send, and answers tc's request for a dump.

    /usr/bin/python3 -m pytest selftests/test_q_sbrm.py
"""
import math
import re
import shlex
import shutil
import struct
from fractions import Fraction

import pytest
from tc_stub import TC, Tc, dump, flags, u32, u64

pytestmark = pytest.mark.skipif(not TC or not shutil.which("cc"),
                                reason="needs tc (iproute2) and cc")

# pkt_sbrm.h
(LAW, LIMIT, TARGET, GAMMA, FLAGS, RESET_STATS, FEEDBACK, PHI, ALPHA, RATE, AVPKT, INTERVAL,
 DELTA, SCALE, COUPLING, SMALL, DELAY, HIGH, LOW, GOAL) = range(2, 22)
BYTES, ECN, NODROP, SPLIT_GSO, DITHER, PRICE_DROP, L4S_ECT, SPARSE = (
    1 << bit for bit in range(8))
GAMMA_AUTO, SETTABLE = 1 << 31, 255
# Whatever is said of packets that are not ECN-capable settles both.
CHOICE = NODROP | PRICE_DROP
ONE = 1 << 48


@pytest.fixture(scope="module")
def tc(tmp_path_factory):
    return Tc(tmp_path_factory.mktemp("tc"))


def test_help_names_every_word(tc):
    done = tc.add("help")
    assert done.returncode != 0 and not tc.request.exists()
    for word in ("mark LAW", "delay | sbrm | rem-pc1 | rem-pc2 | rem-pc3 |\n          vqm | alpha (delay; sbrm if a target",
                 "feedback mark | price | four-bit | two-bit", "high N", "low N", "goal N", "phi NUMBER", "alpha NUMBER", "rate RATE",
                 "avpkt BYTES", "interval TIME", "delta NUMBER", "scale NUMBER",
                 "limit N", "target N|TIME", "gamma auto|NUMBER", "packets | bytes",
                 "ecn | drop", "coupled | price-drop | nodrop", "any-ect | l4s-ect",
                 "coupling NUMBER", "small BYTES", "split-gso | no-split-gso",
                 "dither | no-dither", "sparse | no-sparse", "reset-stats"):
        assert word in done.stderr


@pytest.mark.parametrize("line, sent", [
    ("", {}),
    ("mark sbrm", {LAW: u32(0)}),
    ("limit 1", {LIMIT: u32(1)}),
    ("limit 4294967295 target 4294967294", {LIMIT: u32(2**32 - 1), TARGET: u32(2**32 - 2)}),
    ("limit 010", {LIMIT: u32(10)}),
    ("target 0", {TARGET: u32(0)}),
    ("limit 300kb target 15k bytes",
     {LIMIT: u32(307200), TARGET: u32(15360), FLAGS: flags(BYTES, BYTES)}),
    ("bytes limit 1500", {LIMIT: u32(1500), FLAGS: flags(BYTES, BYTES)}),
    ("limit 100 packets target 5", {LIMIT: u32(100), TARGET: u32(5), FLAGS: flags(0, BYTES)}),
    ("limit 100p", {LIMIT: u32(100), FLAGS: flags(0, BYTES)}),
    ("gamma auto", {GAMMA: u64(0)}),
    ("gamma 1", {GAMMA: u64(ONE)}),
    ("gamma 0.5 (auto)", {GAMMA: u64(0)}),
    # "ecn" and "drop" each settle what becomes of the others as well
    ("ecn", {FLAGS: flags(ECN, ECN | CHOICE)}),
    ("drop", {FLAGS: flags(0, ECN | CHOICE | L4S_ECT)}),
    ("noecn", {FLAGS: flags(0, ECN | CHOICE | L4S_ECT)}),
    ("drop noecn", {FLAGS: flags(0, ECN | CHOICE | L4S_ECT)}),
    ("drop price-drop", {FLAGS: flags(PRICE_DROP, ECN | CHOICE | L4S_ECT)}),
    ("nodrop", {FLAGS: flags(NODROP, CHOICE)}),
    ("price-drop", {FLAGS: flags(PRICE_DROP, CHOICE)}),
    ("coupled", {FLAGS: flags(0, CHOICE)}),
    ("nodrop ecn", {FLAGS: flags(ECN | NODROP, ECN | CHOICE)}),
    ("ecn price-drop", {FLAGS: flags(ECN | PRICE_DROP, ECN | CHOICE)}),
    ("l4s-ect", {FLAGS: flags(L4S_ECT, L4S_ECT)}),
    ("any-ect", {FLAGS: flags(0, L4S_ECT)}),
    ("coupling 2", {COUPLING: u32(2 << 20)}),
    ("coupling 0.01", {COUPLING: u32(10486)}),
    ("coupling 1000 small 63kb ecn l4s-ect coupled",
     {COUPLING: u32(1000 << 20), SMALL: u32(63 << 10),
      FLAGS: flags(ECN | L4S_ECT, ECN | CHOICE | L4S_ECT)}),
    ("small 0", {SMALL: u32(0)}),
    ("small 65535", {SMALL: u32(65535)}),
    ("split-gso", {FLAGS: flags(SPLIT_GSO, SPLIT_GSO)}),
    ("no-split-gso", {FLAGS: flags(0, SPLIT_GSO)}),
    ("dither", {FLAGS: flags(DITHER, DITHER)}),
    ("no-dither", {FLAGS: flags(0, DITHER)}),
    ("sparse", {FLAGS: flags(SPARSE, SPARSE)}),
    ("no-sparse", {FLAGS: flags(0, SPARSE)}),
    ("reset-stats", {RESET_STATS: b""}),
    ("mark rem-pc1", {LAW: u32(1)}),
    ("mark rem-pc2 phi 1.06", {LAW: u32(2), PHI: u64(round(1.06 * 2**32))}),
    ("mark rem-pc3 alpha 0.1", {LAW: u32(3), ALPHA: u32(round(0.1 * 2**24))}),
    ("mark alpha feedback two-bit high 40 low 20 goal 200",
     {LAW: u32(6), FEEDBACK: u32(3), HIGH: u32(40), LOW: u32(20), GOAL: u32(200)}),
    ("mark alpha high 60kb goal 300kb low 0 bytes",
     {LAW: u32(6), HIGH: u32(61440), GOAL: u32(307200), LOW: u32(0), FLAGS: flags(BYTES, BYTES)}),
    ("goal 300p", {GOAL: u32(300), FLAGS: flags(0, BYTES)}),
    ("mark vqm scale 0.9 rate 96mbit", {LAW: u32(4), SCALE: u32(round(0.9 * 2**32)),
                                        RATE: u64(12000000)}),
    ("mark delay", {LAW: u32(5)}),
    ("mark delay target 3ms", {LAW: u32(5), DELAY: u32(3000)}),
    ("target 10us mark delay limit 1", {LAW: u32(5), LIMIT: u32(1), DELAY: u32(10)}),
    ("bytes limit 1500 mark delay target 1s",
     {LAW: u32(5), LIMIT: u32(1500), DELAY: u32(10**6), FLAGS: flags(BYTES, BYTES)}),
    *((f"mark delay target {word}", {LAW: u32(5), DELAY: u32(us)})
      for word, us in (("0.5s", 500000), ("1000ms", 10**6), ("2.5ms", 2500), ("3MS", 3000),
                       ("3msec", 3000), ("250usecs", 250), ("1000000us", 10**6))),
    # A time is one without "mark" as well: the qdisc may have the law already.
    # Whether it does is for the kernel to say, whatever law the line names.
    ("target 5ms", {DELAY: u32(5000)}),
    ("bytes target 5ms", {DELAY: u32(5000), FLAGS: flags(BYTES, BYTES)}),
    ("limit 10 target 5ms", {LIMIT: u32(10), DELAY: u32(5000)}),
    ("mark sbrm target 3ms", {LAW: u32(0), DELAY: u32(3000)}),
    ("target 10", {TARGET: u32(10)}),
    ("feedback mark", {FEEDBACK: u32(0)}),
    ("feedback price", {FEEDBACK: u32(1)}),
    ("feedback four-bit", {FEEDBACK: u32(2)}),
    ("phi 16", {PHI: u64(16 << 32)}),
    ("phi 1.0000000003", {PHI: u64(2**32 + 1)}),
    ("alpha 16", {ALPHA: u32(16 << 24)}),
    ("alpha 6e-8", {ALPHA: u32(1)}),
    ("delta 1", {DELTA: u32(2**32 - 1)}),
    ("delta 0.001", {DELTA: u32(4294967)}),
    ("scale 1 delta 0.5", {SCALE: u32(2**32 - 1), DELTA: u32(2**31)}),
    ("rate 8bit", {RATE: u64(1)}),
    ("rate 1gbit", {RATE: u64(125000000)}),
    ("rate 12000kbps", {RATE: u64(12000000)}),
    ("rate 1099511627776bit", {RATE: u64(2**37)}),
    ("avpkt 1500", {AVPKT: u32(1500)}),
    ("avpkt 1kb", {AVPKT: u32(1024)}),
    ("interval 1ms", {INTERVAL: u32(1000)}),
    ("interval 1s", {INTERVAL: u32(1000000)}),
    ("interval 250", {INTERVAL: u32(250)}),
    ("reset-stats no-split-gso drop gamma auto target 2 limit 9 packets mark sbrm",
     {LAW: u32(0), LIMIT: u32(9), TARGET: u32(2), GAMMA: u64(0), RESET_STATS: b"",
      FLAGS: flags(0, BYTES | ECN | CHOICE | L4S_ECT | SPLIT_GSO)}),
])
def test_request(tc, line, sent):
    assert tc.options(line) == sent
    assert tc.options(line, "change") == sent


@pytest.mark.parametrize("word", ["0.015", "8e-5", "8E-05", "0.00465168705655", ".1", "1e-14",
                                  "2e-15", "0.999999999999999", "0.3333333333333333333",
                                  "1.0", "+0.25", "1e+0"])
def test_gamma_is_rounded_to_the_nearest_unit(tc, word):
    assert tc.options(f"gamma {word}") == {GAMMA: u64(round(Fraction(word) * ONE))}


@pytest.mark.parametrize("line, says", [
    ("mark", "mark takes the name of a price law"),
    ("mark rem", 'mark takes the name of a price law: sbrm, rem-pc1, rem-pc2, rem-pc3, vqm, '
                 'delay or alpha, not "rem"'),
    ("mark 1", "mark takes the name of a price law"),
    ("feedback", "feedback takes mark, price, four-bit or two-bit, and the line ends "
     "there"),
    ("feedback ecn", 'feedback takes mark, price, four-bit or two-bit, not "ecn"'),
    *((f"phi '{bad}'", f'phi takes a decimal number above 1 and at most 16, not "{bad}"')
      for bad in ("1", "1.0000000001", "16.0000001", "0", "-2", "e", "nan", "", "1e400", "auto")),
    *((f"alpha '{bad}'", f'alpha takes a decimal number from 6e-8 to 16, not "{bad}"')
      for bad in ("0", "1e-8", "16.1", "-0.1", "inf")),
    *((f"delta '{bad}'", f'delta takes a decimal number from 0.001 to 1, not "{bad}"')
      for bad in ("0", "0.00099", "1.001", "x")),
    *((f"scale '{bad}'", f'scale takes a decimal number from 0.01 to 1, not "{bad}"')
      for bad in ("0", "0.0099", "1.001", "90%")),
    *((f"rate '{bad}'", "rate takes a rate from 8bit to 1.09tbit, such as 96mbit")
      for bad in ("0", "7bit", "-1mbit", "1.2tbit", "96mb/s", "nan", "inf", "", "1e40",
                  "50%")),
    *((f"avpkt '{bad}'", "avpkt takes a size from 1b to 65535b")
      for bad in ("0", "65536", "64kb", "-1", "1p", "", "nan")),
    *((f"interval '{bad}'", "interval takes a time from 1us to 1s, such as 1ms")
      for bad in ("0", "1.1s", "2s", "1000001", "-1ms", "5000000000", "1e40s", "1e-9", "nan",
                  "", "1 ms",
                  # in us, 2^32 and a little
                  "4295s", "4294968ms", "4294967297us", "4294967297")),
    *((f"mark delay target '{bad}'",
       f'target takes a time from 10us to 1s, such as 3ms, not "{bad}"')
      for bad in ("10", "0", "0ms", "0s", "9us", "9.9us", "0.009ms", "1.1s", "1001ms",
                  "1000001us", "1000000.5us", "2s", "-3ms", "3msx", "3 ms", "ms", "", "nan", "10p",
                  "15kb", "1e40s", "4295s", "5000000000us", "99999999999999999999ms")),
    *((f"{law}target {bad}", f'target takes a time from 10us to 1s, such as 3ms, not "{bad}"')
      for law in ("", "mark sbrm ") for bad in ("0us", "9us", "1001ms", "4295s", "3msx")),
    ("target ms", 'target takes a whole number of packets from 0 up, not "ms"'),
    ("mark alpha high 0", "high takes a whole number of packets from 1 up"),
    ("mark alpha low -1", "low takes a whole number of packets from 0 up"),
    ("mark alpha goal 300kb", 'goal "300kb" is a size, and sizes need the word bytes'),
    ("mark delay target", "target takes a number of packets, a size or a time, and the line ends"),
    ("mark delay target 3ms target 5ms", "target is given twice"),
    ("rate 1mbit rate 2mbit", "rate is given twice"),
    ("frobnicate", 'unknown word "frobnicate"'),
    ("limit 5 5", 'unknown word "5"'),
    ("lim 5", 'unknown word "lim"'),
    ("limit 5 limit 6", "limit is given twice"),
    ("limit", "limit takes a number of packets or a size, and the line ends"),
    ("limit ''", 'limit takes a whole number of packets from 1 up, not ""'),
    ("limit p", "limit takes a whole number of packets"),
    *((f"limit '{bad}'", f'limit takes a whole number of packets from 1 up, not "{bad}"')
      for bad in ("0", "0p", "-1", "-18446744073709551615", "4294967296", "1.5", "1e3", " 5",
                  "five", "10pp", "99999999999999999999999", "0x10", "5.")),
    ("target", "target takes a number of packets, a size or a time, and the line ends"),
    ("target -1", "target takes a whole number of packets from 0 up"),
    ("limit 300kb", 'limit "300kb" is a size, and sizes need the word bytes'),
    ("packets target 15k", 'target "15k" is a size, and sizes need the word bytes'),
    ("limit 1000b", 'limit "1000b" is a size, and sizes need the word bytes'),
    ("bytes limit 0", "limit takes a size from 1b up, such as 300kb"),
    *((f"bytes limit {bad}", f'limit takes a size from 1b up, such as 300kb, not "{bad}"')
      for bad in ("1000p", "-1k", "nan", "inf", "5gb", "3q")),
    ("limit 10 target 10", "target must be below the limit, not 10 with limit 10"),
    ("target 2k limit 1k bytes", "target must be below the limit, not 2k with limit 1k"),
    ("gamma", "gamma takes auto or a number"),
    *((f"gamma '{bad}'", f'gamma takes auto or a decimal number from 2e-15 to 1, not "{bad}"')
      for bad in ("0", "-0.1", "1.0000001", "2", "1e-15", "1e400", "nan", "inf", "0x1p-3", "",
                  "0.1x", "1e", "automatic", "0,015", "(auto)")),
    ("gamma auto gamma 1", "gamma is given twice"),
    ("packets bytes", "bytes conflicts with packets"),
    ("limit 5p bytes", 'limit takes a size from 1b up, such as 300kb, not "5p"'),
    ("ecn noecn", "noecn conflicts with ecn"),
    ("drop ecn", "ecn conflicts with drop"),
    ("no-split-gso split-gso", "split-gso conflicts with no-split-gso"),
    ("sparse no-sparse", "no-sparse conflicts with sparse"),
    ("drop nodrop", "nodrop needs ecn, and cannot be used with drop"),
    ("nodrop noecn", "nodrop needs ecn, and cannot be used with drop"),
    ("drop l4s-ect", "l4s-ect needs ecn, and cannot be used with drop"),
    ("nodrop price-drop", "nodrop conflicts with price-drop"),
    ("nodrop coupled", "nodrop conflicts with coupled"),
    ("price-drop coupled", "coupled conflicts with price-drop"),
    ("any-ect l4s-ect", "l4s-ect conflicts with any-ect"),
    *((f"coupling '{bad}'", f'coupling takes a decimal number from 0.01 to 1000, not "{bad}"')
      for bad in ("0", "0.0099", "1000.1", "-2", "nan", "", "two")),
    *((f"small '{bad}'", f'small takes a size from 0b to 65535b, not "{bad}"')
      for bad in ("-1", "65536", "64kb", "1p", "")),
    ("small 1 small 2", "small is given twice"),
])
def test_bad_line_is_one_sentence_and_sends_nothing(tc, line, says):
    done = tc.add(line)
    assert done.returncode != 0 and done.stdout == "" and not tc.request.exists()
    assert re.fullmatch(r"sbrm: [^\n]*\n", done.stderr) and says in done.stderr


def options(limit=1000, target=10, gamma=0.015, value=ECN | SPLIT_GSO | DITHER, law=0):
    units = gamma if isinstance(gamma, int) else round(gamma * ONE)
    return {LAW: u32(law), LIMIT: u32(limit), TARGET: u32(target), GAMMA: u64(units),
            FLAGS: flags(value, GAMMA_AUTO | SETTABLE)}


def selected(value):
    """The flags that the text of a dump sets: any-ect is not part of it."""
    return flags(value & SETTABLE, SETTABLE if value & L4S_ECT or not value & ECN else
                 SETTABLE & ~L4S_ECT)


AUTO = round(math.log(100) / 990 * ONE)


@pytest.mark.parametrize("given, text", [
    (options(gamma=AUTO, value=ECN | SPLIT_GSO | GAMMA_AUTO),
     "mark sbrm limit 1000p target 10p gamma 0.00465 (auto) ecn split-gso no-dither no-sparse"),
    (options(), "mark sbrm limit 1000p target 10p gamma 0.015 ecn split-gso dither no-sparse"),
    (options(value=ECN | NODROP),
     "mark sbrm limit 1000p target 10p gamma 0.015 ecn nodrop no-split-gso no-dither no-sparse"),
    (options(value=ECN | PRICE_DROP),
     "mark sbrm limit 1000p target 10p gamma 0.015 ecn price-drop no-split-gso no-dither no-sparse"),
    (options(value=PRICE_DROP),
     "mark sbrm limit 1000p target 10p gamma 0.015 drop price-drop no-split-gso no-dither no-sparse"),
    (options(value=ECN | L4S_ECT | DITHER) | {COUPLING: u32(2 << 20), SMALL: u32(256)},
     "mark sbrm limit 1000p target 10p gamma 0.015 ecn coupling 2 small 256b l4s-ect "
     "no-split-gso dither no-sparse"),
    (options(value=0) | {COUPLING: u32(10486), SMALL: u32(0)},
     "mark sbrm limit 1000p target 10p gamma 0.015 drop coupling 0.01 small 0b no-split-gso "
     "no-dither no-sparse"),
    (options(value=0), "mark sbrm limit 1000p target 10p gamma 0.015 drop no-split-gso no-dither no-sparse"),
    (options(307200, 15360, 8e-5, BYTES | ECN),
     "mark sbrm limit 300Kb target 15Kb bytes gamma 8e-05 ecn no-split-gso no-dither no-sparse"),
    # tc would show 300Kb and 2Mb for these two
    (options(2 * 2**20 + 1023, 307201, ONE, BYTES | SPLIT_GSO),
     "mark sbrm limit 2098175b target 307201b bytes gamma 1 drop split-gso no-dither no-sparse"),
    (options(2**32 - 1024, 0, 1, BYTES | SPLIT_GSO),
     "mark sbrm limit 4294966272b target 0b bytes gamma 3.55e-15 drop split-gso no-dither no-sparse"),
])
def test_text_can_be_given_back(tc, given, text):
    assert tc.text(dump(given)) == text

    value, = struct.unpack_from("=I", given[FLAGS])
    expect = dict(given)
    if value & GAMMA_AUTO:
        expect[GAMMA] = u64(0)
    expect[FLAGS] = selected(value)
    assert tc.options(shlex.join(text.split())) == expect


PC1 = {RATE: u64(12345678), AVPKT: u32(1000), INTERVAL: u32(1000),
       DELTA: u32(round(0.9 * 2**32)), PHI: u64(round(1.06 * 2**32))}


@pytest.mark.parametrize("given, unused, text", [
    (options(law=1, gamma=0.001) | {FEEDBACK: u32(1)} | PC1, {TARGET},
     "mark rem-pc1 feedback price limit 1000p gamma 0.001 phi 1.06 rate 98765424bit "
     "avpkt 1000b interval 1ms delta 0.9 ecn split-gso dither no-sparse"),
    (options(law=2) | {FEEDBACK: u32(2), PHI: u64(2**32 + 1)}, set(),
     "mark rem-pc2 feedback four-bit limit 1000p target 10p gamma 0.015 phi 1.0000000002 "
     "ecn split-gso dither no-sparse"),
    (options(2000, 2, 0.1, law=3) | {FEEDBACK: u32(0)} | PC1 |
     {PHI: u64(round(1.007 * 2**32)), ALPHA: u32(round(0.002 * 2**24)), RATE: u64(6000000),
      INTERVAL: u32(999), DELTA: u32(2**32 - 1)}, set(),
     "mark rem-pc3 feedback mark limit 2000p target 2p gamma 0.1 phi 1.007 alpha 0.002 "
     "rate 48Mbit avpkt 1000b interval 999us delta 1 ecn split-gso dither no-sparse"),
    (options(300, law=4) | {FEEDBACK: u32(0), SCALE: u32(round(0.9 * 2**32)),
                            RATE: u64(125000000), AVPKT: u32(1514)}, {TARGET, GAMMA},
     "mark vqm feedback mark limit 300p scale 0.9 rate 1Gbit avpkt 1514b "
     "ecn split-gso dither no-sparse"),
    (options(law=5) | {FEEDBACK: u32(0), DELAY: u32(3000)}, {TARGET, GAMMA},
     "mark delay feedback mark limit 1000p target 3ms ecn split-gso dither no-sparse"),
    (options(law=5, value=ECN | SPARSE) | {DELAY: u32(3000)}, {TARGET, GAMMA},
     "mark delay limit 1000p target 3ms ecn no-split-gso no-dither sparse"),
    (options(307200, law=5, value=ECN | BYTES) | {DELAY: u32(2500)}, {TARGET, GAMMA},
     "mark delay limit 300Kb bytes target 2500us ecn no-split-gso no-dither no-sparse"),
    (options(law=6) | {FEEDBACK: u32(3), HIGH: u32(50), LOW: u32(25), GOAL: u32(300)},
     {TARGET, GAMMA},
     "mark alpha feedback two-bit limit 1000p high 50p low 25p goal 300p ecn split-gso dither no-sparse"),
    (options(1024000, law=6, value=ECN | BYTES) |
     {HIGH: u32(51200), LOW: u32(0), GOAL: u32(307200)}, {TARGET, GAMMA},
     "mark alpha limit 1000Kb bytes high 50Kb low 0b goal 300Kb ecn no-split-gso no-dither no-sparse"),
    # A limit in packets is no bound of a target in us.
    (options(1, 0, law=5) | {DELAY: u32(10**6)}, {TARGET, GAMMA},
     "mark delay limit 1p target 1000ms ecn split-gso dither no-sparse"),
])
def test_text_of_a_law_can_be_given_back(tc, given, unused, text):
    assert tc.text(dump(given)) == text
    expect = {key: value for key, value in given.items() if key not in unused}
    value, = struct.unpack_from("=I", given[FLAGS])
    expect[FLAGS] = selected(value)
    assert tc.options(shlex.join(text.split())) == expect


@pytest.mark.parametrize("option, attribute, values", [
    ("phi", PHI, (2**32 + 1, 2**32 + 12345, 2**33 + 1, 2**36 - 1, 2**36)),
    ("alpha", ALPHA, (1, 2, 12345, 2**24 // 3, 2**28)),
    ("delta", DELTA, (4294967, 2**31 + 1, 2**32 - 2, 2**32 - 1)),
    ("scale", SCALE, (42949673, 2**31 + 1, 2**32 - 2, 2**32 - 1)),
    ("rate", RATE, (1, 125, 1000, 12000001, 2**37)),
    ("interval", INTERVAL, (1, 999, 1000, 1001, 999999, 1000000)),
    ("avpkt", AVPKT, (1, 1000, 1024, 65535)),
    ("coupling", COUPLING, (10486, 2**20 + 1, 2 << 20, 2**20 * 1000 - 1, 2**20 * 1000)),
    ("small", SMALL, (0, 1, 256, 1024, 65535))])
def test_every_value_can_be_given_back(tc, option, attribute, values):
    pack = u64 if attribute in (PHI, RATE) else u32
    for value in values:
        words = tc.text(dump(options(law=3) | {attribute: pack(value)})).split()
        word = words[words.index(option) + 1]
        assert tc.options(f"{option} {word}") == {attribute: pack(value)}


@pytest.mark.parametrize("us", (10, 11, 999, 1000, 1001, 3000, 999999, 10**6))
def test_every_target_of_delay_can_be_given_back(tc, us):
    given = dump(options(law=5) | {DELAY: u32(us)})
    words = tc.text(given).split()
    assert words.count("target") == 1
    word = words[words.index("target") + 1]
    assert tc.options(f"target {word}", "change") == {DELAY: u32(us)}
    assert tc.options(f"mark delay target {word}") == {LAW: u32(5), DELAY: u32(us)}
    assert tc.json(given)["options"]["target_us"] == us


def test_json_options_of_laws(tc):
    shown = tc.json(dump(options(law=3) | {FEEDBACK: u32(1), ALPHA: u32(2**23)} | PC1))["options"]
    assert {key: shown[key] for key in ("law", "feedback", "phi", "alpha", "rate", "avpkt",
                                        "interval", "delta")} == {
        "law": "rem-pc3", "feedback": "price", "phi": 1.06, "alpha": 0.5, "rate": 12345678,
        "avpkt": 1000, "interval": 1000, "delta": 0.9}
    assert tc.json(dump(options(law=4) | {SCALE: u32(2**32 - 1)}))["options"]["scale"] == 1
    assert tc.json(dump(options(law=5) | {FEEDBACK: u32(0), DELAY: u32(3000)}))["options"] == {
        "law": "delay", "feedback": "mark", "limit": 1000, "unit": "packets", "target_us": 3000,
        "ecn": True, "nodrop": False, "price_drop": False, "l4s_ect": False, "split_gso": True,
        "dither": True, "sparse": False}


@pytest.mark.parametrize("units", [1, 2, 12345678901234, ONE // 3, ONE - 1, AUTO])
def test_every_gamma_can_be_given_back(tc, units):
    words = tc.text(dump(options(gamma=units))).split()
    word = words[words.index("gamma") + 1]
    assert tc.options(f"gamma {word}") == {GAMMA: u64(units)}


def test_json_options(tc):
    assert tc.json(dump(options(gamma=AUTO, value=ECN | SPLIT_GSO | GAMMA_AUTO)))["options"] == {
        "law": "sbrm", "limit": 1000, "target": 10, "unit": "packets",
        "gamma": pytest.approx(AUTO / ONE, rel=1e-6), "gamma_auto": True,
        "ecn": True, "nodrop": False, "price_drop": False, "l4s_ect": False, "split_gso": True,
        "dither": False, "sparse": False}
    assert tc.json(dump(options(4194304, 307201, 8e-5, BYTES | ECN | NODROP)))["options"] == {
        "law": "sbrm", "limit": 4194304, "target": 307201, "unit": "bytes", "gamma": 8e-5,
        "gamma_auto": False, "ecn": True, "nodrop": True, "price_drop": False, "l4s_ect": False,
        "split_gso": False, "dither": False, "sparse": False}
    shown = tc.json(dump(options(value=ECN | L4S_ECT) | {COUPLING: u32(3 << 19),
                                                         SMALL: u32(100)}))["options"]
    assert {key: shown[key] for key in ("coupling", "small", "l4s_ect")} == {
        "coupling": 1.5, "small": 100, "l4s_ect": True}


def test_incomplete_or_newer_options(tc):
    assert tc.text(dump(None)) == "" and tc.text(dump({})) == ""
    assert tc.json(dump({}))["options"] == {}
    assert tc.text(dump({LIMIT: u32(7)})) == "limit 7p"
    short = {LAW: b"\0", LIMIT: b"\0\0", GAMMA: u32(1), FLAGS: u32(ECN), TARGET: u32(3)}
    assert tc.text(dump(short)) == "target 3p"
    newer = options() | {LAW: u32(9), 40: u32(1)}
    assert tc.text(dump(newer)).startswith("mark 9 limit 1000p")
    assert tc.json(dump(newer))["options"]["law"] == "9"


def xstats(packets=4, backlog_sum=50, marks=3, price_drops=2, full_drops=1, price=2**31,
           backlog_max=40, prob=2**30, carried=0, uncarried=0, saturated=0, rate=0, virtual=0,
           coupled=(0, 0, 0, 0, 0, 0), service=0, idle=0, cycles=(0, 0, 0),
           collisions=0, sparse=0):
    return struct.pack("=6Q2I9Q2IQ2I2Q2IQ", packets, backlog_sum, marks, price_drops, full_drops, price,
                       backlog_max, prob, carried, uncarried, saturated, rate, virtual,
                       *coupled, service, idle, 0, *cycles, collisions, sparse)


def statistics(tc, stats):
    """The lines that -s prints after tc's own."""
    return tc.show(dump(options(), stats), "-s").splitlines()[2:]


def test_statistics_text(tc):
    assert statistics(tc, xstats()) == [
        " marks 3 price_drops 2 full_drops 1",
        " backlog mean 12.5 max 40  price 0.5 prob 0.25"]


def test_statistics_of_laws(tc):
    assert statistics(tc, xstats(carried=7, uncarried=2, saturated=1, rate=11999000))[2:] == [
        " carried 7 uncarried 2 saturated 1", " input 95.992Mbit"]
    assert statistics(tc, xstats(cycles=(12, 4, 293)))[2:] == [
        " cycles 12 beyond 4 cycle_max 293"]
    assert statistics(tc, xstats(virtual=1234))[2:] == [" virtual backlog 1234b"]
    shown = tc.json(dump(options(), xstats(carried=2**63 + 1, saturated=1, rate=7)), "-s")
    assert {key: shown[key] for key in ("carried", "uncarried", "saturated", "input",
                                        "virtual_backlog", "service_rate", "idle")} == {
        "carried": 2**63 + 1, "uncarried": 0, "saturated": 1, "input": 7, "virtual_backlog": 0,
        "service_rate": 0, "idle": 0}


def test_statistics_of_delay(tc):
    assert statistics(tc, xstats(service=1187500, idle=2**30))[2:] == [
        " service rate 9.5Mbit idle 0.25"]
    assert statistics(tc, xstats(service=125000000))[2:] == [" service rate 1000Mbit idle 0"]
    # All ones stand for 1, as in prob; and a rate that is not known yet is not shown.
    assert statistics(tc, xstats(service=1, idle=2**32 - 1))[2:] == [
        " service rate 8e-06Mbit idle 1"]
    assert statistics(tc, xstats(idle=2**32 - 1))[2:] == []
    shown = tc.json(dump(options(law=5) | {DELAY: u32(3000)},
                         xstats(service=1187500, idle=2**30)), "-s")
    assert (shown["service_rate"], shown["idle"]) == (1187500, 0.25)
    shown = tc.json(dump(options(), xstats(idle=2**32 - 1)), "-s")
    assert (shown["service_rate"], shown["idle"]) == (0, 1.0)


def test_statistics_of_packets_without_ecn(tc):
    assert statistics(tc, xstats(coupled=(7, 6, 5, 0, 2**30, 0)))[2:] == [
        " coupled_drops 7 coupled_marks 6 spared 5 overload_drops 0 coupled_prob 0.25"]
    assert statistics(tc, xstats(coupled=(0, 0, 0, 4, 0, 1)))[2:] == [
        " coupled_drops 0 coupled_marks 0 spared 0 overload_drops 4 coupled_prob 0 "
        "overload paying"]
    shown = tc.json(dump(options(), xstats(coupled=(0, 0, 0, 0, 2**31, 0))), "-s")
    assert {key: shown[key] for key in ("coupled_drops", "coupled_marks", "spared",
                                        "overload_drops", "coupled_prob", "overload")} == {
        "coupled_drops": 0, "coupled_marks": 0, "spared": 0, "overload_drops": 0,
        "coupled_prob": 0.5, "overload": "none"}
    shown = tc.json(dump(options(), xstats(coupled=(1, 2, 3, 2**63 + 1, 2**32 - 1, 3))), "-s")
    assert (shown["overload_drops"], shown["coupled_prob"], shown["overload"]) == (
        2**63 + 1, 1.0, "all")


def test_statistics_of_accounts(tc):
    assert statistics(tc, xstats(collisions=2**31 + 1))[2:] == [" collisions 2147483649"]
    assert tc.json(dump(options(), xstats(collisions=7)), "-s")["collisions"] == 7
    assert tc.json(dump(options(), xstats()), "-s")["collisions"] == 0


def test_statistics_of_sparse_flows(tc):
    assert statistics(tc, xstats(sparse=2**63 + 1))[2:] == [f" sparse {2**63 + 1}"]
    assert tc.json(dump(options(), xstats(sparse=7)), "-s")["sparse"] == 7
    assert tc.json(dump(options(), xstats()), "-s")["sparse"] == 0


def test_statistics_json(tc):
    big = 2**63 + 1
    shown = tc.json(dump(options(), xstats(marks=big, price=3 << 32, prob=2**32 - 1)), "-s")
    assert shown["packets"] == 6, "tc's own"
    assert {k: shown[k] for k in ("dequeued", "marks", "price_drops", "full_drops",
                                  "backlog_mean", "backlog_max", "backlog_sum", "price",
                                  "prob")} == {
        "dequeued": 4, "marks": big, "price_drops": 2, "full_drops": 1, "backlog_mean": 12.5,
        "backlog_max": 40, "backlog_sum": 50, "price": 3.0, "prob": 1.0}


def test_statistics_of_other_kernels(tc):
    whole = xstats()
    assert statistics(tc, whole + b"\xff" * 12) == statistics(tc, whole)
    # One from before the law delay, and one that ends within its statistics.
    older = xstats(coupled=(7, 6, 5, 0, 2**30, 0), service=10**6, idle=2**31)
    for length, more in ((136, []), (144, [" service rate 8Mbit idle 0"])):
        assert statistics(tc, older[:length])[2:] == [
            " coupled_drops 7 coupled_marks 6 spared 5 overload_drops 0 coupled_prob 0.25", *more]
        shown = tc.json(dump(options(), older[:length]), "-s")
        assert (shown["service_rate"], shown["idle"]) == (10**6 if more else 0, 0)
    assert statistics(tc, whole[:24]) == [" marks 3 price_drops 0 full_drops 0",
                                          " backlog mean 12.5 max 0  price 0 prob 0"]
    assert statistics(tc, b"") == [" marks 0 price_drops 0 full_drops 0",
                                   " backlog mean 0.0 max 0  price 0 prob 0"]
