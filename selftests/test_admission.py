# SPDX-License-Identifier: GPL-2.0
"""tollway-admit without sockets: its law, its samples, its command line.

The law is run in a model of AACC section 4, Figure 4: two sources, their gates, and
one network queue. The unit of time is the transmission time of a packet there.
"""

import ipaddress
import os
import pathlib
import random
import socket
import struct
import subprocess
import sys
import types

import pytest

HERE = pathlib.Path(__file__).parent
TOLLWAY = HERE.parent / "scripts/tollway"
ADMIT = HERE.parent / "tools/tollway-admit"
sys.path[:0] = [str(HERE.parent / "scripts"), str(HERE.parent / "tools")]

from admit import daemon, htb, law, passing, wire  # noqa: E402
from tollwaylib.errors import TollwayError  # noqa: E402

# A unit of time in ns; any would do.
UNIT = 1_000_000


# --- the law -------------------------------------------------------------------

def made(**words):
    return law.Law(**{"low_ns": 2, "high_ns": 4, "up": 0.125, "down": 0.25,
                      "beta": 0.5, **words})


@pytest.mark.parametrize("change, delays, excess", [
    # Mean of an interval less the smallest delay of all.
    ("excess", [[10, 10], [11, 13]], 2),
    ("interval", [[10, 20], [20, 30]], 10),
    # Disjoint pairs: 3 - 1 and 12 - 8, not 8 - 3.
    ("pair", [[1, 3, 8, 12]], 3),
    ("pair", [[5, 1, 7, 7]], -2),
])
def test_what_is_compared(change, delays, excess):
    one = made(change=change)
    for interval in delays:
        for delay in interval:
            one.sample(delay, 0)
        one.step()
    assert one.changed_ns == excess


@pytest.mark.parametrize("delay, beta", [
    (1.9, 0.625), (2, 0.5), (3, 0.5), (4, 0.5), (4.1, 0.25)])
def test_beta_moves_outside_of_the_thresholds(delay, beta):
    one = made()
    one.sample(0, 0)
    one.step()
    one.beta = 0.5
    one.sample(delay, 0)
    assert one.step() == beta


def test_beta_stays_within_0_and_1_and_without_samples():
    one = made(beta=0.95)
    one.sample(0, 0)
    assert one.step() == 1.0
    assert one.step() == 1.0
    one.beta = 0.1
    one.sample(100, 0)
    assert one.step() == 0.0


def test_a_window_forgets_what_is_old():
    smallest = law.WindowMinimum(100)
    assert smallest.add(5, 0) == 5
    assert smallest.add(9, 49) == 5
    # Another half: the first one is still known.
    assert smallest.add(9, 60) == 5
    # 5 is older than a window.
    assert smallest.add(9, 110) == 9
    # Nothing for several windows.
    assert smallest.add(20, 1000) == 20


def test_a_drift_of_clocks_moves_nothing():
    """50 ppm, and a clock that is an hour ahead: beta rises all the same."""
    one = made(low_ns=2 * UNIT, high_ns=2 * UNIT, up=0.005, beta=0.0)
    hour_ns = 3600 * 10**9
    for now_ns in range(0, 120 * 10**9, 10**8):
        one.sample(hour_ns + now_ns * 50 // 10**6, now_ns)
        one.step()
    assert one.beta == 1.0 and one.delay_ns < UNIT


def test_admission_never_stops():
    assert law.spaced_share(0.0, 100) == 0.01
    assert law.spaced_share(0.5, 100) == 0.5
    bucket = law.Bucket(100)
    assert bucket.share(0.5, 0) == 0.01
    # The paper's example: from 0.5 to 0.55, a tenth more than was sent.
    assert bucket.share(0.55, 50) == pytest.approx(0.55)
    assert bucket.share(0.6, 1000) == 1.0
    # A free network: who sent little may begin at once.
    assert bucket.share(1.0, 3) == 1.0


# --- the law in the paper's model ----------------------------------------------

def simulate(offered, seed, change="excess", controlled=True, units=60_000,
             quota=100, every=10, low=2, high=2, limit=10, warmup=20_000):
    """(goodput, loss) of Figure 4 with Poisson sources of `offered` / 2 each.

    In steps of a quota interval: what enters the queue of the network within one
    is known at its beginning, since the gates move only at its end.
    """
    source = random.Random(seed)
    laws = [law.Law(low * UNIT, high * UNIT, 0.005, 0.05, change,
                    window_ns=10_000 * UNIT,
                    beta=0.0 if controlled else 1.0) for _ in range(2)]
    comes, waiting, gate_free = [0.0, 0.0], [[], []], [0.0, 0.0]
    network_free, good, all_of_them = 0.0, 0, 0
    for begin in range(0, units, quota):
        entering = []
        for index, one in enumerate(laws):
            while comes[index] < begin + quota:
                waiting[index].append(comes[index])
                comes[index] += source.expovariate(offered / 2)
            gap = min(1 / one.beta, quota) if one.beta else quota
            taken = 0
            for arrival in waiting[index]:
                at = max(arrival, gate_free[index])
                if at >= begin + quota:
                    break
                gate_free[index] = at + (gap if controlled else 0)
                entering.append((at, index, False))
                taken += 1
            del waiting[index][:taken]
            if controlled:
                # The two borders do not sample in step.
                entering += [(begin + every * step + 3.7 * index, index, True)
                             for step in range(quota // every)]
        for at, index, is_sample in sorted(entering):
            network_free = max(network_free, at) + 1
            delay = network_free - at
            if is_sample:
                laws[index].sample(round(delay * UNIT), round(at * UNIT))
            elif at >= warmup:
                all_of_them += 1
                good += delay <= limit
        for one in laws if controlled else ():
            one.step()
    return good / (units - warmup), 1 - good / max(1, all_of_them)


def mean_goodput(offered, **words):
    found = [simulate(offered, seed, **words)[0] for seed in range(1, 11)]
    return sum(found) / len(found)


def test_goodput_is_level_above_the_rate_of_the_link():
    """AACC Figure 12: about 0.75 where uncontrolled traffic breaks down."""
    plateau = [mean_goodput(offered) for offered in (1.0, 1.2, 1.6, 2.0)]
    assert all(0.70 <= good <= 0.80 for good in plateau), plateau
    assert max(plateau) - min(plateau) <= 0.05, plateau
    assert mean_goodput(1.0, controlled=False) <= 0.25
    assert mean_goodput(1.2, controlled=False) <= 0.05
    assert mean_goodput(0.6) == pytest.approx(0.6, abs=0.02)


def test_the_literal_reading_of_the_change_collapses():
    """Pairs of samples, as section 3 has them, accept a queue that grows."""
    assert mean_goodput(1.2, change="pair") <= 0.4
    assert mean_goodput(1.2, change="interval") >= 0.6


# --- samples -------------------------------------------------------------------

KEY = b"0123456789abcdef"


def pair():
    return wire.Association(KEY), wire.Association(KEY)


def exchange(one, other, rounds=3):
    """Both send to each other; the last sample that other believed."""
    last = None
    for _ in range(rounds):
        last = other.take(one.make(1)) or last
        one.take(other.make(1))
    return last


def test_both_believe_each_other_after_three_samples():
    one, other = pair()
    assert exchange(one, other)
    assert (one.peer, other.peer) == (other.session, one.session)
    sample = other.take(one.make(77, [(1, -5), (2, 9)]))
    assert (sample.stamp_ns, sample.reports) == (77, [(1, -5), (2, 9)])
    assert not sample.is_new


def test_no_more_than_eight_reports_and_a_length():
    one, other = pair()
    exchange(one, other)
    data = one.make(1, [(number, number) for number in range(1, 12)], 986)
    assert len(data) == 986
    assert other.take(data).reports == [(number, number)
                                        for number in range(4, 12)]


def test_data_packets_have_the_numbers_before_that_of_the_sample():
    one, other = pair()
    exchange(one, other)
    last = one.sequence
    made = one.make(5, [(1, 1)], data=[(7, 100), (1 << 63 | 8, 200)])
    assert len(made) == wire.SIZE + 32
    sample = other.take(made)
    assert sample.data == [(last + 1, 7, 100), (last + 2, 1 << 63 | 8, 200)]
    assert (sample.sequence, sample.reports) == (last + 3, [(1, 1)])
    assert other.take(made) is None and other.refused["replay"] == 1
    # With fewer of them, as with another digest, the key is not right.
    changed = bytearray(one.make(5, data=[(7, 100)]))
    for index in (5, 184):
        changed[index] ^= 1
        assert other.take(bytes(changed)) is None
        changed[index] ^= 1
    assert other.take(bytes(changed))
    # More than there may be, and more than the datagram has room for.
    for count in (3, 9, 65535):
        changed = bytearray(one.make(5))
        changed[4:6] = count.to_bytes(2, "big")
        assert other.take(bytes(changed)) is None
    # With the right key, too.
    assert other.take(one.make(5, data=[(7, 1 << 63)])) is None
    assert other.refused["size"] == 4
    assert other.take(one.make(5, data=[(0, 0)] * 8, length=wire.LARGEST))


def test_replay_reflection_and_forgery_are_refused():
    one, other = pair()
    exchange(one, other)
    data = one.make(1)
    assert other.take(data)
    for _ in range(3):
        assert other.take(data) is None
    assert other.refused["replay"] == 3
    assert one.take(one.make(1)) is None and one.refused["own"] == 1
    data = bytearray(one.make(1))
    for index in range(wire.SIZE):
        data[index] ^= 0x80
        assert other.take(bytes(data)) is None
        data[index] ^= 0x80
    assert other.take(bytes(data))
    stranger = wire.Association(b"another key of 16")
    assert other.take(stranger.make(1)) is None
    for length in (0, 3, wire.SIZE - 1):
        assert other.take(bytes(data)[:length]) is None


def test_a_peer_that_begins_again_is_believed_and_its_old_samples_are_not():
    one, other = pair()
    recorded = []
    for _ in range(6):
        recorded.append(one.make(1))
        other.take(recorded[-1])
        one.take(other.make(1))
    again = wire.Association(KEY)
    exchange(again, other)
    assert other.peer == again.session
    for data in recorded:
        assert other.take(data) is None
    assert other.peer == again.session
    # While somebody replays, a third start is believed as well.
    third = wire.Association(KEY)
    for data in recorded[:4]:
        other.take(data)
        exchange(third, other, 1)
    assert other.peer == third.session


def test_random_bytes_are_no_sample():
    one, _ = pair()
    source = random.Random(1)
    for _ in range(2000):
        assert one.take(source.randbytes(source.randrange(300))) is None


def test_a_key_has_a_length():
    with pytest.raises(ValueError):
        wire.Association(b"short")


# --- data as samples -----------------------------------------------------------

A, B = bytes([10, 0, 1, 1]), bytes([10, 0, 9, 1])


def ipv4(payload, protocol=17, to=B, ttl=64, tos=0, number=1, more=0):
    return bytes([0x45, tos]) + (20 + len(payload)).to_bytes(2, "big") + \
        number.to_bytes(2, "big") + more.to_bytes(2, "big") + \
        bytes([ttl, protocol, ttl, tos]) + A + to + payload


def udp(payload=b"payload", port=5001, checksum=0):
    return b"\x30\x39" + port.to_bytes(2, "big") + \
        (8 + len(payload)).to_bytes(2, "big") + checksum.to_bytes(2, "big") + \
        payload


def tcp(checksum=0, sequence=5, payload=b"", flags=0x10):
    return b"\x30\x39\x00\x50" + sequence.to_bytes(4, "big") + bytes(4) + \
        bytes([0x50, flags, 0x10, 0]) + checksum.to_bytes(2, "big") + bytes(2) + payload


def digest(packet):
    return passing.parse(packet).digest


def ipv6(rest, protocol, hops=64):
    return b"\x60" + bytes(5) + bytes([protocol, hops]) + bytes(15) + b"\x01" + \
        bytes(15) + b"\x02" + rest


def test_a_digest_is_of_what_no_router_changes():
    assert digest(ipv4(udp())) == digest(ipv4(udp(checksum=9), ttl=63, tos=3))
    assert digest(ipv4(tcp(), 6)) == digest(ipv4(tcp(checksum=9), 6, ttl=3))
    # PSH, of the last segment of several.
    assert digest(ipv4(tcp(), 6)) == digest(ipv4(tcp(flags=0x18), 6))
    assert digest(ipv6(tcp(), 6)) == digest(ipv6(tcp(checksum=9), 6, hops=1))
    several = [ipv4(udp()), ipv4(udp(b"another")), ipv4(udp(port=1)),
               ipv4(udp(), number=2), ipv4(udp(), to=A), ipv4(tcp(), 6),
               ipv4(tcp(sequence=6), 6), ipv4(b"icmp", 1), ipv6(udp(), 17),
               ipv6(tcp(), 6), ipv6(tcp(sequence=6), 6)]
    assert len({digest(packet) for packet in several}) == len(several)


def test_what_has_no_digest():
    for packet in (b"", ipv4(udp())[:19], ipv4(udp(), more=1), b"\x60" * 39,
                   b"\x50" * 60):
        assert passing.parse(packet) is None
    # A first fragment, and one that is short.
    assert digest(ipv4(udp(), more=0x2000)) and digest(ipv4(b"")) and \
        passing.parse(ipv4(b"\x01")).port == 0


def test_a_packet_that_came_twice_tells_no_time():
    seen = passing.Seen(most=3)
    seen.add(1, 100)
    seen.add(2, 200)
    assert (seen.when_ns(1), seen.when_ns(2), seen.when_ns(9)) == (
        100, 200, None)
    seen.add(1, 300)
    assert seen.when_ns(1) is None
    for number in (3, 4):
        seen.add(number, 1)
    assert seen.when_ns(1) is None and seen.when_ns(2) == 200


def test_one_data_packet_of_each_interval_is_a_sample():
    both = passing.Passing(ipaddress.ip_network("10.0.9.0/24"), 5660, 10)
    out, come = socket.PACKET_OUTGOING, socket.PACKET_HOST
    first, second, third = (ipv4(udp(), number=number)
                            for number in (1, 2, 3))
    for packet, kind, when_ns in (
            (first, out, 5), (second, out, 14), (third, out, 15),
            # To others, a sample, and what came.
            (ipv4(udp(), to=bytes([10, 0, 8, 1])), out, 99),
            (ipv6(udp(), 17), out, 99), (ipv4(udp(port=5660)), out, 99),
            (ipv4(udp(port=5660)), come, 99), (second, come, 77),
            (third, socket.PACKET_OTHERHOST, 77)):
        both.take(packet, kind, when_ns)
    assert list(both.pending) == [(digest(first), 5), (digest(third), 15)]
    assert both.seen.when_ns(digest(second)) == 77
    assert both.seen.when_ns(digest(third)) is None
    assert both.seen.when_ns(digest(ipv4(udp(port=5660)))) is None


# --- the class -----------------------------------------------------------------

def test_class_ids_are_those_of_tc():
    assert htb.class_id("1:10") == 0x10010
    for word in ("1", "1:", ":1", "0:1", "1:0", "g:1", "1:10000", "1:2:3"):
        with pytest.raises(TollwayError, match="as tc does"):
            htb.class_id(word)


@pytest.mark.parametrize("packets", [7, (1 << 32) - 1, 1 << 32, (5 << 32) + 3])
def test_packets_are_counted_beyond_32_bits(packets, monkeypatch):
    """As gnet_stats_copy_basic() of the kernel writes them."""
    stats = htb.attribute(1, struct.pack("=QI", 1000 * packets,
                                         packets & 0xffffffff) + bytes(4))
    if packets >> 32:
        stats += htb.attribute(8, struct.pack("=Q", packets))
    answer = bytes(20) + htb.attribute(htb.TCA_KIND, b"htb\0") + \
        htb.attribute(htb.TCA_OPTIONS,
                      htb.attribute(htb.TCA_HTB_PARMS, bytes(44))) + \
        htb.attribute(htb.TCA_STATS2, stats)
    gate = htb.HtbClass("lo", 0x10010, 1000)
    monkeypatch.setattr(gate, "_ask", lambda *_: answer)
    seen = gate.read()
    gate.close()
    assert (seen["packets"], seen["bytes"]) == (packets, 1000 * packets)


# --- the turns of the daemon ---------------------------------------------------

def test_each_sample_is_at_a_random_time_of_its_interval(monkeypatch):
    now, turns, steps = [0], [], []

    def wait(*words):
        now[0] += max(1, round(words[-1] * 1e9))
        return [], [], []

    def end():
        raise KeyboardInterrupt

    monkeypatch.setattr(daemon.select, "select", wait)
    path = types.SimpleNamespace(
        options=types.SimpleNamespace(interval_ns=10**6, quota_ns=10**7),
        clock_ns=lambda: now[0], udp=None, turn=lambda: turns.append(now[0]),
        step=lambda: steps.append(now[0]), check=end)
    with pytest.raises(KeyboardInterrupt):
        daemon.serve(path, None)
    assert [when // 10**6 for when in turns] == list(range(len(turns)))
    assert len(turns) >= 999
    # Tenths of the interval, with 100 samples each: sigma is 9.5.
    tenths = [when % 10**6 // 10**5 for when in turns]
    assert all(50 < tenths.count(tenth) < 150 for tenth in range(10))
    assert all(when % 10**7 < 100 for when in steps) and len(steps) >= 99


# --- the command line ----------------------------------------------------------

def said(*words):
    """(status, standard error) of tollway-admit."""
    done = subprocess.run([str(ADMIT), *map(str, words)], text=True,
                          capture_output=True, check=False)
    return done.returncode, done.stderr


def test_a_key_is_made_once_and_for_nobody_else(tmp_path):
    key = tmp_path / "key"
    assert said("key", key) == (0, "")
    assert key.stat().st_mode & 0o777 == 0o600
    assert len(key.read_text().strip()) == 64
    status, text = said("key", key)
    assert status == 2 and "File exists" in text


RUN = ["run", "--peer", "127.0.0.1", "--device", "lo", "--class", "1:10",
       "--rate", "8mbit"]


@pytest.mark.parametrize("words, sentence", [
    (["--class", "10"], "not a class"),
    (["--rate", "8"], "not a rate"),
    (["--rate", "0mbit"], "8bit to 1000gbit"),
    (["--interval", "1s", "--quota", "100ms"], "--interval must not"),
    (["--quota", "0ms"], "more than 0"),
    (["--low", "3ms", "--high", "2ms"], "--low must not be above --high"),
    (["--high", "1us"], "without --low it is"),
    (["--lost", "50ms"], "--lost must not"),
    (["--lost", "150ms", "--interval", "80ms"], "two of --interval"),
    (["--up", "0"], "from 1e-06 to 1"),
    (["--down", "nan"], "from 1e-06 to 1"),
    (["--safe", "0"], "from 0.001 to 1"),
    (["--sample-class", "1:10"], "must not wait"),
    (["--data", "10.0.0.1/8"], "host bits"),
    (["--data", "there"], "'there' does not appear"),
    (["--key", "no/such/file"], "No such file"),
    (["--peer", "no.such.host.invalid"], "no.such.host.invalid"),
    (["--socket", "no/such/socket"], "No such file"),
])
def test_what_is_wrong_is_one_sentence(words, sentence, tmp_path):
    key = tmp_path / "key"
    said("key", key)
    status, text = said(*RUN, "--key", key, "--socket", tmp_path / "socket",
                        *words)
    assert status == 2 and sentence in text.splitlines()[-1], text
    assert "Traceback" not in text
    assert not (tmp_path / "socket").exists()


def test_a_key_that_others_can_read_is_refused(tmp_path):
    key = tmp_path / "key"
    key.write_text("0" * 64)
    os.chmod(key, 0o644)
    status, text = said(*RUN, "--key", key, "--socket", tmp_path / "socket")
    assert status == 2 and "chmod 600" in text


def test_it_is_a_command_of_tollway():
    """The same words, output and status, whatever they are."""
    for words in (["status", "--socket", "no/such"], ["--help"], [],
                  ["run", "--help"], ["nothing"]):
        found = [subprocess.run([*program, *words], capture_output=True,
                                text=True, check=False)
                 for program in ([ADMIT], [TOLLWAY, "admit"])]
        first, second = ((one.returncode, one.stdout, one.stderr)
                         for one in found)
        assert first == second


def test_a_state_that_nobody_tells(tmp_path):
    status, text = said("status", "--socket", tmp_path / "none")
    assert status == 2 and "no tollway-admit answers" in text


def test_the_name_of_a_socket_appears_when_it_answers(tmp_path, monkeypatch):
    """Who waits for the file and asks at once was refused."""
    path = tmp_path / "a.socket"

    class Checked(socket.socket):
        def listen(self, *words):
            assert not path.exists()
            super().listen(*words)

    monkeypatch.setattr(daemon.socket, "socket", Checked)
    status = daemon.Status(str(path))
    assert [one.name for one in tmp_path.iterdir()] == ["a.socket"]
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
        asked.connect(str(path))
        status.answer({"state": "free"})
        assert b"free" in asked.recv(1000)
    status.close()
    assert not list(tmp_path.iterdir())
