# SPDX-License-Identifier: GPL-2.0
"""Packet pair at the receiver (law=pp of tollway-traffic, PP94 10.4): its arithmetic, a
simulated path, and packets that nobody should have sent.

The receiver is built with the sanitizers of the compiler. Its sockets and the sender are
looked at in test_receiver_loopback.py.
"""

import random
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent
TIMEOUT_S = 20
MAGIC = 0x50414952
WRAP = 1 << 32
PAIR = struct.Struct(">IIIIHHI")
COUNTS = ("packets", "pairs", "reports", "truncated", "repeated", "late", "far",
          "restarts", "absurd", "unordered")
STATE = ("service_ns", "wait_us", "delay_us", "queue_256", "rate_kbps", "lost")
# PP94 Table 3, row wan: 500 bytes at 20/3 Mb/s, a pipe of 100 packets.
SERVICE_S, RTT_S, PAYLOAD = 0.0006, 0.06, 472


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """The receiver without its sockets."""
    if not shutil.which("cc"):
        pytest.skip("a C compiler is missing")
    folder = tmp_path_factory.mktemp("receiver")
    for header, maker in (("pp_fuzzy.h", "tcp_pp/gen_fuzzy.py"),
                          ("pp_reference.h",
                           "selftests/kunit/gen_pp_reference.py")):
        with open(folder / header, "w", encoding="utf-8") as out:
            subprocess.run([sys.executable, TOP / maker], stdout=out,
                           check=True, timeout=TIMEOUT_S)
    made = folder / "receiver_shell"
    subprocess.run(
        ["cc", "-O1", "-g", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra",
         "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
         *(f"-I{TOP / part}" for part in ("tools/kernel", "tcp_pp", "include",
                                          "tools")), f"-I{folder}",
         "-o", made, *(TOP / part for part in (
             "selftests/receiver_shell.c", "tools/traffic_receiver.c",
             "tcp_pp/pp_law.c", "tcp_pp/pp_estimator.c"))],
        check=True, timeout=120)
    return made


class Receiver:
    """A running receiver. It has to end without a complaint of a sanitizer."""

    def __init__(self, made):
        self.process = subprocess.Popen(
            [made], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words):
        print(*words, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        assert answer, f"it died of: {words}"
        return answer.split()

    def packet(self, sequence, arrival_ns, stamp_us=0, pair=None, half=None,
               setpoint=20, quarters=0, srtt_us=60000):
        """Is it taken?"""
        pair = sequence // 2 if pair is None else pair
        half = sequence % 2 if half is None else half
        return self.ask("packet", sequence % WRAP, int(stamp_us) % WRAP,
                        pair % 16384, half, setpoint, quarters, srtt_us,
                        PAYLOAD, int(arrival_ns)) == ["1"]

    def pair(self, number, arrival_ns, distance_ns=600_000, **words):
        return [self.packet(2 * number + half, arrival_ns + half * distance_ns,
                            stamp_us=(arrival_ns - 6_000_000) / 1000, **words)
                for half in (0, 1)]

    def report(self, now_ns):
        found = self.ask("report", int(now_ns))
        return None if found == ["none"] else dict(zip(
            ("highest", "received", "lost", "rate_kbps", "echo_us"),
            map(int, found)))

    def counts(self):
        return dict(zip(COUNTS, map(int, self.ask("counts"))))

    def state(self):
        return dict(zip(STATE, map(int, self.ask("state"))))

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=TIMEOUT_S) == 0
        self.process.stdout.close()


@pytest.fixture
def receiver(program):
    running = Receiver(program)
    yield running
    running.end()


# Arithmetic


def test_the_arithmetic_is_that_of_tcp_pp(receiver):
    """The bounds of selftests/kunit/pp_kunit.c, in 2^-20, and 2^-8 of a packet."""
    fuzzy, law, queue = map(int, receiver.ask("reference"))
    assert fuzzy <= 512 and law <= 16 and queue <= 1


# A simulated path


class Path60:
    """Forward 6 ms and a link, back 54 ms: what pp-receiver has in the lab."""

    FORWARD_S, BACK_S = 0.006, 0.054

    def __init__(self, receiver, interval=None, offset_us=0, drift=0.0):
        self.receiver, self.offset_us, self.drift = receiver, offset_us, drift
        self.quarters = 0 if interval is None else round(4 * interval)
        self.free_s = 0.0           # when the link has served all
        self.queue = []             # (s, packets that a pair found)
        self.reports = []           # (s of its arrival, kbit/s)

    def run(self, duration_s, service_s=lambda t: SERVICE_S, setpoint=20,
            lose=lambda number: False):
        """A sender that does as it is told."""
        t, number, rate_kbps, srtt_us, coming = 0.0, 0, None, 0, []
        while t < duration_s:
            while coming and coming[0][0] <= t:
                at_s, report, echo_s = coming.pop(0)
                rtt_us = (at_s - echo_s) * 1e6
                srtt_us = srtt_us + (rtt_us - srtt_us) / 8 if srtt_us else rtt_us
                rate_kbps = report["rate_kbps"]
            if rate_kbps is None and number:
                t = coming[0][0]
                continue
            each = service_s(t)
            arrives = t + self.FORWARD_S
            waits = max(self.free_s - arrives, 0.0)
            self.queue.append((t, waits / each))
            first = arrives + waits + each
            self.free_s = first + each
            stamp_us = t * 1e6 * (1 + self.drift) + self.offset_us
            if not lose(number):
                for half in (0, 1):
                    self.receiver.packet(
                        2 * number + half, (first + half * each + 1) * 1e9,
                        stamp_us=stamp_us, setpoint=setpoint,
                        quarters=self.quarters, srtt_us=int(srtt_us))
                report = self.receiver.report((first + each + 1) * 1e9)
                if report:
                    # The sender's clock gives both ends of its round trip.
                    coming.append((first + each + self.BACK_S, report,
                                   t + each))
                    self.reports.append((coming[-1][0], report["rate_kbps"]))
            number += 1
            gap_s = 2 * PAYLOAD * 8 / (rate_kbps * 1000) if rate_kbps else 0
            t += gap_s
        return self

    def queues(self, start_s, stop_s=1e9):
        return [held for t, held in self.queue if start_s <= t < stop_s]


@pytest.mark.parametrize("interval", [None, 0.25, 1, 2, 4])
def test_the_queue_comes_to_the_setpoint(receiver, interval):
    found = Path60(receiver, interval).run(6.0).queues(
        max(10, 8 * (interval or 1)) * RTT_S)
    assert 17 < min(found) and max(found) < 22
    state = receiver.state()
    assert state["service_ns"] == pytest.approx(600_000, rel=0.001)
    assert state["delay_us"] == pytest.approx(60_600, abs=700)
    assert not state["lost"]


def test_reports_come_at_their_interval(receiver):
    for interval in (0.25, 1, 4):
        path = Path60(receiver, interval).run(4.0)
        times = [t for t, _ in path.reports if t > 2.0]
        # A round trip is longer by what waits, and they wait for a pair.
        expected_s = interval * (RTT_S + 20 * SERVICE_S)
        for before, after in zip(times, times[1:]):
            assert expected_s * 0.9 < after - before < expected_s * 1.15


def test_it_rises_and_does_not_jump(receiver):
    """PP94 5: the first rates are parts of the way to the law's."""
    path = Path60(receiver).run(1.0)
    whole = PAYLOAD * 8 / SERVICE_S / 1000
    rates = [rate / whole for _, rate in path.reports]
    assert rates[0] == pytest.approx(0.2, abs=0.02)
    assert rates[1] < 0.75 and max(rates) < 1.3
    assert max(path.queues(0)) < 30


def test_a_share_that_halves(receiver):
    """The queue has a peak and is back at the setpoint in some round trips."""
    path = Path60(receiver).run(
        6.0, service_s=lambda t: SERVICE_S * (1 if t < 3 else 2))
    assert max(path.queues(3.0)) < 100
    settled = path.queues(4.5)
    assert 17 < min(settled) and max(settled) < 23


@pytest.mark.parametrize("interval", [1, 4])
def test_an_urgent_report_comes_early(receiver, interval):
    """When the rate is off by an eighth, but 16 times as often at most."""
    path = Path60(receiver, interval).run(
        6.0, service_s=lambda t: SERVICE_S * (1 if t < 4 else 2))
    times = [t for t, _ in path.reports]
    gaps = [after - before for before, after in zip(times, times[1:])
            if 4.0 < before < 4.0 + 4 * RTT_S]
    # The round trip is longer by what waits.
    assert interval * RTT_S / 16 <= min(gaps) < interval * RTT_S / 4


@pytest.mark.parametrize("idle", [False, True])
def test_a_sender_with_less_to_send(receiver, idle):
    """Half of what the link serves: nothing waits, whatever was told to be sent. That it
    is no more, only the sender knows."""
    last = None
    for number in range(400):
        first_ns = 10**9 + number * 2_400_000
        for half in (0, 1):
            receiver.packet(2 * number + half, first_ns + half * 600_000,
                            stamp_us=first_ns / 1000, half=half + 2 * idle,
                            pair=number)
        report = receiver.report(first_ns + 600_000)
        last = report or last
    whole = PAYLOAD * 8 / SERVICE_S / 1000
    state = receiver.state()
    assert (state["queue_256"] <= 2 * 256) == idle
    # The link's rate, and 20 packets in one and a half round trips, or less.
    assert 1 < last["rate_kbps"] / whole < 1.34
    assert (last["rate_kbps"] / whole > 1.1) == idle


@pytest.mark.parametrize("drift", [-2e-4, 2e-4])
def test_clocks_that_differ_and_drift(receiver, drift):
    """A minute at 200 ppm is 12 ms, as much as the queue; stamps wrap meanwhile."""
    path = Path60(receiver, offset_us=WRAP - 20_000_000, drift=drift).run(60.0)
    for start_s in range(12, 60, 6):
        found = path.queues(start_s, start_s + 6)
        # In the four seconds after which it is noticed, 0.8 ms.
        assert 17 < min(found) and max(found) < 23, start_s
    assert not receiver.counts()["absurd"]


def test_lost_pairs_are_counted_and_do_no_harm(receiver):
    path = Path60(receiver).run(4.0, lose=lambda number: number % 50 == 7)
    found = path.queues(1.0)
    # What is lost does not wait; what was told and lost counts for a round trip.
    assert 15 < min(found) and max(found) < 22
    lost = len([number for number in range(len(path.queue))
                if number % 50 == 7])
    assert receiver.state()["lost"] == 2 * lost


# Packets that nobody should have sent


def test_the_first_pair_is_reported_at_once(receiver):
    receiver.packet(0, 10**9, srtt_us=0)
    assert receiver.report(10**9 + 1000) is None
    receiver.packet(1, 10**9 + 600_000, srtt_us=0)
    report = receiver.report(10**9 + 700_000)
    assert report["highest"] == 1 and report["received"] == 2
    # It was held for 700 us; a fifth of what the link serves.
    assert report["echo_us"] == 700
    assert report["rate_kbps"] == pytest.approx(PAYLOAD * 8 / 0.6 / 5, rel=0.01)
    # Nothing came since.
    assert receiver.report(10**10) is None


def test_packets_that_are_refused(receiver):
    second = 10**9
    whole = PAIR.pack(MAGIC, 1, 0, 0, 0, 20, 0)
    for length in range(1, PAIR.size):
        assert receiver.ask("bytes", whole[:length].hex(), second) == ["0"]
    assert receiver.ask("bytes", (b"\0" + whole[1:]).hex(), second) == ["0"]
    assert receiver.counts()["truncated"] == PAIR.size
    assert not receiver.packet(0, second, setpoint=0)
    assert receiver.counts()["absurd"] == 1
    assert not receiver.packet(70000, second)
    assert not receiver.packet(3_000_000_000, second)
    assert receiver.counts()["far"] == 2
    assert receiver.report(2 * second) is None
    for number in range(50):
        assert receiver.pair(number, second + number * 1_200_000) == \
            [True, True]
    before = receiver.state()
    assert not receiver.packet(99, 2 * second)
    assert not receiver.packet(50, 2 * second)
    assert not receiver.packet(10, 2 * second)
    assert not receiver.packet(99 + 65536, 2 * second)
    assert not receiver.packet(-5, 2 * second)
    counts = receiver.counts()
    assert (counts["repeated"], counts["late"], counts["far"]) == (2, 2, 3)
    assert counts["packets"] == 100 and counts["pairs"] == 50
    assert receiver.state() == before


def test_an_impossible_stamp_and_time(receiver):
    second = 10**9
    for number in range(20):
        receiver.pair(number, second + number * 1_200_000)
    before = receiver.state()
    # 20 s before or after all others.
    for number, away_us in ((20, 20_000_000), (21, -20_000_000)):
        arrival_ns = second + number * 1_200_000
        for half in (0, 1):
            assert receiver.packet(2 * number + half,
                                   arrival_ns + half * 600_000,
                                   stamp_us=arrival_ns / 1000 + away_us)
    assert receiver.counts()["absurd"] == 2
    assert receiver.state()["service_ns"] == before["service_ns"]
    assert receiver.state()["wait_us"] == before["wait_us"]
    receiver.pair(22, 2 * second, distance_ns=-600_000)
    assert receiver.counts()["unordered"] == 1
    # In no time at all: a clock in us tells no more than that.
    receiver.pair(23, 2 * second + 1_000_000, distance_ns=0)
    assert receiver.counts()["pairs"] == 21
    assert receiver.state()["service_ns"] >= 1000
    # Halves of different pairs, and second halves alone.
    for sequence, pair, half in ((48, 24, 0), (49, 25, 1), (50, 26, 1),
                                 (51, 27, 0), (53, 27, 1)):
        receiver.packet(sequence, 2 * second, pair=pair, half=half)
    assert receiver.counts()["pairs"] == 21
    report = receiver.report(3 * second)
    assert 1 <= report["rate_kbps"] < WRAP


def test_a_sender_that_begins_anew(receiver):
    second = 10**9
    for number in range(100):
        receiver.pair(number, second + number * 1_200_000)
    report = receiver.report(2 * second)
    assert report["received"] == 200 and report["highest"] == 199
    # Another one, from the same port, whose clock differs.
    assert receiver.packet(0, 3 * second, stamp_us=123)
    assert receiver.packet(1, 3 * second + 900_000, stamp_us=123)
    assert receiver.counts()["restarts"] == 1
    assert receiver.state()["service_ns"] == 900_000
    report = receiver.report(4 * second)
    # What has come is more for whoever has seen the reports before.
    assert (report["highest"], report["received"], report["lost"]) == (1, 202, 0)
    # After an outage of more than 65536 packets two in a row are believed.
    assert not receiver.packet(10**6, 5 * second)
    assert receiver.packet(10**6 + 1, 5 * second)
    assert receiver.counts()["restarts"] == 2
    assert receiver.packet(10**6 + 2, 5 * second)


def test_any_bytes_whatsoever(receiver):
    """The rate that is told is never 0, and every packet is counted once."""
    rng = random.Random(104)
    now_ns, asked, told = 10**9, 0, 0
    for _ in range(20000):
        now_ns += rng.choice((0, 1000, 10**6, rng.randrange(10**11)))
        asked += 1
        if rng.random() < 0.1:
            receiver.ask("bytes", rng.randbytes(rng.randrange(1, 40)).hex(),
                         now_ns)
        else:
            near = rng.randrange(200) + asked // 4
            receiver.ask(
                "packet", near if rng.random() < 0.9 else rng.getrandbits(32),
                rng.getrandbits(32) if rng.random() < 0.1 else near * 600,
                rng.getrandbits(14) if rng.random() < 0.1 else near // 2,
                near % 2, rng.choice((0, 1, 20, 511)), rng.randrange(128),
                rng.choice((0, 1, 60000, rng.getrandbits(32))),
                rng.choice((24, 472, 65507)),
                now_ns - rng.choice((0, 0, 10**7, now_ns)))
        report = receiver.report(now_ns)
        if report:
            told += 1
            assert 1 <= report["rate_kbps"] < WRAP
    counts = receiver.counts()
    assert told == counts["reports"] <= counts["packets"]
    refused = sum(counts[key] for key in ("truncated", "repeated", "late",
                                          "far"))
    assert counts["packets"] + refused <= asked
    assert all(counts[key] for key in ("truncated", "repeated", "late", "far",
                                       "restarts", "absurd", "unordered"))
