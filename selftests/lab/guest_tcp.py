# SPDX-License-Identifier: GPL-2.0
"""Behaviour of the congestion control sbrm between network namespaces."""

import math
import resource
import socket
import struct
import time

import guest_base
import tcp_bench
from guest_base import Namespace, Skip, near, note, run
from rtnl import options
from tcp_bench import (LOSS, OPEN, PACKET, PORT, RECOVERY, Path, cc_info, info,
                       pump, settle, watch)
from tcp_echo import (SYSCTL, check_bleaching_path, check_echo_is_exact,
                      check_echo_with_dctcp_receiver, check_echo_with_loss,
                      check_echo_with_reordering, check_no_ecn,
                      check_old_receiver, check_old_receiver_from_the_start)

# The checks of tcp_echo.py, which come first in this boot, in this order.
FIRST = (check_echo_is_exact, check_echo_with_dctcp_receiver,
         check_echo_with_reordering, check_echo_with_loss, check_old_receiver,
         check_old_receiver_from_the_start, check_no_ecn, check_bleaching_path)
INFINITE = 0x7FFFFFFF
FULL_PPS = 10**7 / 8 / PACKET


def check_slow_start():
    """Doubles each round trip, and ends at the first mark."""
    path = Path(rate_bps=2 * 10**7, rtt_ms=100,
                aqm=options(limit=1000, target=50, gamma=0.05))
    flow = path.connect()
    samples = watch(flow, 4, 0.005)
    first = next(index for index, (_, one) in enumerate(samples)
                 if one.delivered_ce)
    at_mark = samples[first][1].cwnd
    for _, one in samples[:first]:
        # One segment for each delivered one; the SYN, the spare one and what
        # ACKs bring at once apart. 6.1 calls the first flight app-limited.
        assert one.delivered - 2 <= one.cwnd <= 13 + one.delivered, one
    after = [one.cwnd for _, one in samples[first:]]
    note(f"window {at_mark} at the first mark, then {after[20]}, {after[-1]}, "
         f"at most {max(after)}")
    assert at_mark > 40, "did not double"
    assert max(after[:60]) <= at_mark + 3
    assert samples[first - 1][1].snd_ssthresh >= INFINITE


def without_marks(**words):
    """A path whose queue is long and never marks."""
    return Path(aqm="pfifo limit 10000", **words)


def check_loss_halves_once():
    """Losses in one window cost one half; transmission goes on."""
    path = without_marks(rtt_ms=100)
    # A window that stands still, once slow start is over.
    path.s.sysctl(SYSCTL + "wtp", " ".join(["1"] * 16))
    flow = path.connect()
    while info(flow).cwnd < 60:
        pump([flow], 0.01)

    def lose():
        path.black_hole(True)
        time.sleep(0.008)       # a few packets of the window
        path.black_hole(False)

    # So few losses do not end slow start by themselves.
    spared = path.s.sysctl(SYSCTL + "loss_cut")
    path.s.sysctl(SYSCTL + "loss_cut", 1)
    lose()
    pump([flow], 2)
    path.s.sysctl(SYSCTL + "loss_cut", spared)
    before = info(flow)
    assert before.ca_state == OPEN and before.total_retrans
    lose()
    samples = watch(flow, 1.5, 0.005)
    states = [one.ca_state for _, one in samples]
    assert RECOVERY in states and LOSS not in states
    entered = samples[states.index(RECOVERY)][1]
    grown = samples[states.index(RECOVERY) - 1][1].cwnd
    inside = [one.cwnd for _, one in samples if one.ca_state == RECOVERY]
    note(f"window {before.cwnd}, {grown} at the loss, {inside[0]} then, "
         f"{min(inside)} to {max(inside)} in recovery, "
         f"{samples[-1][1].total_retrans} retransmitted")
    # ss shows the window rounded up, and one more.
    assert abs(entered.cwnd - (grown - 1) / 2 - 1) <= 1
    assert max(inside) == min(inside), "cut more than once"
    assert entered.snd_ssthresh <= entered.cwnd
    assert samples[-1][1].ca_state == OPEN
    assert min(inside) <= samples[-1][1].cwnd <= max(inside) + 1
    again = samples[-1][1].total_retrans - before.total_retrans
    assert 1 <= again <= 20


def check_timeout_restarts():
    """After a timeout the window is one segment, then slow start to a half."""
    path = without_marks(rtt_ms=100)
    flow = path.connect()
    while info(flow).cwnd < 60:
        pump([flow], 0.01)
    path.black_hole(True)
    samples = watch(flow, 2.5, 0.01)
    grown = max(one.cwnd for _, one in samples)
    last = samples[-1][1]
    assert last.ca_state == LOSS
    # One, and the spare one.
    assert last.cwnd <= 2, last.cwnd
    note(f"window {grown}, {last.cwnd} after the timeout, threshold "
         f"{last.snd_ssthresh}")
    assert near(last.snd_ssthresh, grown / 2, 0.1)
    path.black_hole(False)
    after = watch(flow, 6, 0.02)
    assert after[-1][1].ca_state == OPEN
    assert after[-1][1].cwnd >= 0.9 * last.snd_ssthresh
    grew = [one.cwnd for _, one in after]
    assert max(grew[:20]) < grown


def check_undo():
    """A timeout that was spurious is taken back."""
    path = without_marks(rtt_ms=60)
    flow = path.connect()
    while info(flow).cwnd < 40:
        pump([flow], 0.01)
    with path.r2:
        # Hold everything for longer than the timer, then let it go.
        path.r2.run("tc qdisc add dev right root handle 5: plug limit 10000000",
                    check=False)
        if "plug" not in run("tc qdisc show dev right"):
            raise Skip("this tc does not know the qdisc plug")
        run("tc qdisc change dev right root handle 5: plug block")
        before = info(flow)
        held = watch(flow, 0.8, 0.01)
        assert any(one.ca_state == LOSS for _, one in held)
        low = held[-1][1].cwnd
        run("tc qdisc change dev right root handle 5: plug release_indefinite")
    after = watch(flow, 1, 0.01)
    undone = [one for _, one in after if one.ca_state == OPEN][0]
    note(f"window {before.cwnd} before, {low} while held, {undone.cwnd} after")
    assert low <= 2
    assert undone.cwnd >= before.cwnd
    assert after[-1][1].ca_state == OPEN


def check_app_limited():
    """A flow that has little to send does not grow its window."""
    path = without_marks(rtt_ms=50)
    flow = path.connect()
    start_cwnd = info(flow).cwnd
    for _ in range(100):
        flow.send(bytes(1000))
        time.sleep(0.06)
    last = info(flow)
    note(f"window {start_cwnd} at first, {last.cwnd} after 100 round trips")
    assert last.cwnd <= start_cwnd
    # Nor does it once it follows the price.
    guest_base.cleanup()
    path = Path(aqm=options(limit=1000, target=2, gamma=0.02))
    flow = path.connect()
    pump([flow], 5)
    settle(flow)
    before = info(flow).cwnd
    for _ in range(200):
        flow.send(bytes(1000))
        time.sleep(0.06)
    note(f"window {before}, {info(flow).cwnd} after 200 lonely packets")
    assert info(flow).cwnd <= before + 2


def rates(path, flows, warm_s, seconds):
    """Packets/s of each flow over `seconds`, after `warm_s`."""
    pump(flows, warm_s)
    before = [info(one).delivered for one in flows]
    started = time.monotonic()
    marks = path.stats().x
    pump(flows, seconds)
    took = time.monotonic() - started
    after = path.stats().x
    share = (after.marks - marks.marks) / (after.packets - marks.packets)
    return [(info(one).delivered - was) / took
            for one, was in zip(flows, before)], share


def check_willingness_to_pay():
    """SO_PRIORITY chooses w: flows with 100 and 400 share one to four."""
    path = Path(rtt_ms=30, aqm=options(limit=1000, target=10, gamma=0.015))
    path.s.sysctl(SYSCTL + "wtp", "100 " * 4 + "400 " + "77 " * 11)
    flows = [path.connect(priority=0), path.connect(priority=4)]
    (low, high), m = rates(path, flows, 40, 60)
    note(f"{low:.1f} and {high:.1f} packets/s, ratio {high / low:.3f}, m {m:.3f}")
    assert near(high / low, 4, 0.06)
    assert near(low + high, 10**7 / 8 / PACKET, 0.03), "the link is not full"


def equilibrium(expected, tolerance, **settings):
    """One flow with w = 200: x against expected(w, m)."""
    path = Path(rtt_ms=30, aqm=options(limit=2000, target=10, gamma=0.01))
    path.s.sysctl(SYSCTL + "wtp", "200")
    for name, value in settings.items():
        path.s.sysctl(SYSCTL + name, value)
    flow = path.connect()
    (rate,), m = rates(path, [flow], 30, 60)
    due = expected(200, m)
    note(f"{settings}: {rate:.1f} packets/s, m {m:.4f}, {due:.1f} due "
         f"({100 * (rate / due - 1):+.2f} %)")
    assert near(rate, due, tolerance)
    assert near(rate, 10**7 / 8 / PACKET, 0.03), "the link is not full"


def check_equilibrium_direct():
    """x = w / p with p = -ln(1 - m)."""
    equilibrium(lambda w, m: w / -math.log(1 - m), 0.03)


def check_equilibrium_aimd():
    """x = w (1 - m) / m."""
    equilibrium(lambda w, m: w * (1 - m) / m, 0.05, source="aimd")


def check_equilibrium_raw():
    """x = w / m when the price is the bit itself."""
    equilibrium(lambda w, m: w / m, 0.05, estimator="raw")


def check_young():
    """A larger gain for young connections decays and does no harm."""
    path = Path(rtt_ms=30, aqm=options(limit=1000, target=10, gamma=0.015))
    path.s.sysctl(SYSCTL + "kappa_young", "0.9")
    path.s.sysctl(SYSCTL + "young_ms", "1000")
    flows = [path.connect(), path.connect()]
    (one, two), _ = rates(path, flows, 10, 30)
    note(f"{one:.1f} and {two:.1f} packets/s")
    assert near(one, two, 0.1)


def check_young_again():
    """When others leave, a flow is young again: it takes the room sooner."""
    took = {}
    for young in (0, 0.9):
        path = Path(rtt_ms=60, aqm=options(limit=1000, target=10, gamma=0.015))
        path.s.sysctl(SYSCTL + "kappa_young", young)
        path.s.sysctl(SYSCTL + "young_ms", "500")
        flows = [path.connect() for _ in range(4)]
        pump(flows, 20)
        for leaver in flows[1:]:
            leaver.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                              struct.pack("ii", 1, 0))
            leaver.close()
        started, before = time.monotonic(), info(flows[0])
        for now, last in watch(flows[0], 20, 0.1):
            if last.delivered - before.delivered >= 0.95 * 0.1 * FULL_PPS:
                break
            before = last
        took[young] = now - started
        guest_base.cleanup()
    note(f"s until the link is full again, by kappa_young: {took}")
    assert took[0.9] < 0.6 * took[0]


def check_bursts_are_not_priced():
    """One flow fills 1 Gb/s: what it sends at a time is less than the target, and
    is not marked where nothing else waits."""
    path = Path(rate_bps=10**9, rtt_ms=20, aqm="sbrm limit 1000 target 10")
    path.s.sysctl("net.ipv4.tcp_wmem", "4096 16000000 64000000")
    path.d.sysctl("net.ipv4.tcp_rmem", "4096 16000000 64000000")
    path.s.sysctl(SYSCTL + "wtp", 1000)
    flow = path.connect()
    pump([flow], 8)
    before = path.stats().x
    pump([flow], 2)
    after = path.stats().x
    packets = after.packets - before.packets
    queue = (after.backlog_sum - before.backlog_sum) / packets
    used = packets / 2 / (10**9 / 8 / PACKET)
    note(f"{used:.3f} of the link, {queue:.2f} packets in the queue")
    assert used > 0.95 and 5 < queue < 15


def check_sysctls():
    """Each setting: what is written is read back; what is bad is refused."""
    space, second = Namespace("one"), Namespace("two")
    defaults = {name: second.sysctl(SYSCTL + name) for name in (
        "wtp", "kappa", "kappa_young", "young_ms", "history_gain", "source",
        "estimator", "kappa_window", "history", "phi", "rtt", "slow_start",
        "loss_cut")}
    note(str(defaults))
    assert set(defaults["wtp"].split()) == {"25"}
    assert (defaults["source"], defaults["estimator"]) == ("relative", "log")
    good = {
        "wtp": [("7 " * 15 + "10000000", None), ("1", None)],
        "kappa": [("0.000001", None), ("10", "10.000000"),
                  ("0.123456", None), ("0.1", "0.100000"), ("3.", "3.000000"),
                  (".5", "0.500000"), ("2 ", "2.000000"),
                  ("9.999999\n", "9.999999")],
        "kappa_young": [("0", "0.000000"), ("10.0", "10.000000")],
        "young_ms": [("1", None), ("3600000", None)],
        "history_gain": [("0.000001", None), ("1", "1.000000"),
                         ("0.015625", None), ("0.999999", None)],
        "source": [("aimd", None), ("direct", None), ("aimd\n", "aimd"),
                   ("vegas", None), ("relative", None)],
        "estimator": [("raw", None), ("log", None), ("history", None),
                      ("four-bit", None), ("explicit", None)],
        "kappa_window": [("0", None), ("16777216", None)],
        "history": [("1", None), ("64", None)],
        "phi": [("1.0001", "1.000100"), ("16", "16.000000"),
                ("1.06", "1.060000")],
        "rtt": [("min", None), ("last", None)],
        "slow_start": [("0", None), ("1", None)],
        "loss_cut": [("0", None), ("1", None), ("2", None)],
    }
    bad = {
        "wtp": ["0", "10000001", "-1", "4294967296", "x", "5 x", "5 0", "1.5",
                "99999999999999999999"],
        "kappa": ["0", "0.0000001", "10.000001", "-1", "x", "1e3", "0x1",
                  "1 2", ".", "1..2", "99999", "4295", "4294.967296", "nan",
                  "1,5"],
        "kappa_young": ["-0.1", "10.1", "", "abc"],
        "young_ms": ["0", "3600001", "-1", "4294967296", "x"],
        "history_gain": ["0", "1.000001", "2", "-1", "half"],
        "source": ["Direct", "aim", "aimdx", "0", "1", "direct aimd", "rm",
                   "relatively", "rel"],
        "estimator": ["", "Log", "logs", "2", "four bit"],
        "kappa_window": ["16777217", "-1", "x", "1.5"],
        "history": ["0", "65", "-1", ""],
        "phi": ["1", "1.000099", "16.000001", "e", "-2", "0"],
        "rtt": ["mean", "", "0"],
        "slow_start": ["2", "-1", "on"],
        "loss_cut": ["3", "-1", "off"],
    }
    for name, pairs in good.items():
        for value, shown in pairs:
            space.sysctl(SYSCTL + name, value)
            read = space.sysctl(SYSCTL + name)
            if name == "wtp":
                read = " ".join(read.split()[:len(value.split())])
            assert read == (shown or value).strip(), (name, value, read)
    for name, values in bad.items():
        for value in values:
            if not value:
                continue
            before = space.sysctl(SYSCTL + name)
            try:
                space.sysctl(SYSCTL + name, value)
            except OSError as error:
                assert error.errno in (22, 34), (name, value, error)
            else:
                raise AssertionError(f"{name} took {value!r}")
            assert space.sysctl(SYSCTL + name) == before, (name, value)
    for name, value in defaults.items():
        assert second.sysctl(SYSCTL + name) == value, "another namespace's"
    assert Namespace("three").sysctl(SYSCTL + "kappa") == defaults["kappa"]


def check_sysctl_long_words():
    """What follows a value must not be cut off and overlooked."""
    space = Namespace("one")
    for name, value in (("kappa", "5" + " " * 14 + "junk"),
                        ("source", "direct" + " " * 9 + "junk"),
                        ("wtp", " ".join(["5"] * 17))):
        before = space.sysctl(SYSCTL + name)
        try:
            space.sysctl(SYSCTL + name, value)
        except OSError:
            pass
        else:
            raise AssertionError(f"{name} took {value!r}")
        assert space.sysctl(SYSCTL + name) == before


def sane(connection, top_bps=10**13):
    """No overflow shows in window and pacing rate."""
    last = info(connection)
    assert 1 <= last.cwnd <= 1 << 24, last.cwnd
    assert 0 < last.pacing_rate * 8 < top_bps, last.pacing_rate
    return last


def check_long_round_trip():
    """A round trip of 10 s, w of 10^7: everything stays finite."""
    path = Path(rate_bps=10**8, rtt_ms=10000, initcwnd=10000,
                aqm=options(limit=100000, target=10, gamma=0.001))
    for wtp in ("1", "10000000"):
        path.s.sysctl(SYSCTL + "wtp", " ".join([wtp] * 16))
        flow = path.connect()
        assert sane(flow).cwnd >= 10000
        for _ in range(6):
            pump([flow], 10)
            sane(flow)
        last = info(flow)
        note(f"w {wtp}: window {last.cwnd}, pacing {last.pacing_rate} B/s, "
             f"{last.delivered} delivered, {last.delivered_ce} marked")
        assert last.rtt >= 9900000 and last.delivered > 1000
        flow.close()
        time.sleep(60)


def check_window_of_one():
    """A window of one segment, and prices that would press it lower."""
    path = Path(rate_bps=10**6, rtt_ms=5, initcwnd=1,
                aqm=options(limit=1000, target=0, gamma=1))
    path.s.sysctl(SYSCTL + "wtp", "1")
    path.s.sysctl(SYSCTL + "kappa", "10")
    flow = path.connect()
    pump([flow], 20)
    last = sane(flow)
    note(f"window {last.cwnd}, {last.delivered} delivered, "
         f"{last.delivered_ce} marked, pacing {last.pacing_rate} B/s")
    # One segment, and the one whose ACK is held back.
    assert last.cwnd <= 3
    assert last.delivered > 40, "it must go on"
    # Extreme settings under way.
    for name, value in (("history_gain", "1"), ("history_gain", "0.000001"),
                        ("kappa", "0.000001"), ("wtp", "10000000"),
                        ("kappa", "10"), ("source", "aimd"), ("wtp", "1"),
                        ("kappa_young", "10"), ("young_ms", "1"),
                        ("estimator", "raw"), ("source", "direct")):
        path.s.sysctl(SYSCTL + name, value)
        pump([flow], 3)
        sane(flow)


def check_loopback():
    """No rate limit, MTU 65535, a huge first window."""
    space = Namespace("one")
    guest_base.quiet(space)
    space.sysctl("net.ipv4.tcp_ecn", 1)
    space.sysctl("net.ipv4.tcp_congestion_control", "sbrm")
    space.sysctl("net.ipv4.tcp_wmem", "4096 4000000 16000000")
    space.batch("ip", ["link set lo mtu 65535",
                       "route replace local 127.0.0.1 dev lo table local "
                       "initcwnd 100000 initrwnd 1000"])
    with space:
        server = socket.create_server(("127.0.0.1", PORT))
        flow = socket.create_connection(("127.0.0.1", PORT))
    there, _ = server.accept()
    there.setblocking(False)
    flow.setblocking(False)
    received = 0
    while received < 3 << 27:
        try:
            while True:
                flow.send(tcp_bench.DATA)
        except BlockingIOError:
            pass
        try:
            while True:
                received += len(there.recv(1 << 22))
        except BlockingIOError:
            time.sleep(0.00002)
        last = sane(flow, top_bps=10**18)
    note(f"window {last.cwnd}, round trip {last.rtt} us, pacing "
         f"{last.pacing_rate * 8 / 1e9:.1f} Gb/s, mss {last.snd_mss}")
    assert last.snd_mss > 30000
    assert not last.total_retrans


def check_cc_changes_under_way():
    """Switching the congestion control of a live connection to and fro."""
    path = Path(aqm=options(limit=300, target=5, gamma=0.01))
    flow = path.connect()
    for turn in range(40):
        flow.setsockopt(socket.IPPROTO_TCP, tcp_bench.TCP_CONGESTION,
                        (b"sbrm", b"reno", b"dctcp", b"bbr")[turn % 4])
        pump([flow], 0.3)
        sane(flow)
    flow.setsockopt(socket.IPPROTO_TCP, tcp_bench.TCP_CONGESTION, b"sbrm")
    pump([flow], 2)
    assert cc_info(flow).enabled
    settle(flow)
    # Disconnected and used again.
    flow.setblocking(True)
    again = path.connect()
    pump([again], 1)
    settle(again)


def check_many_short():
    """Connections that come and go leave nothing behind."""
    path = Path(aqm=options(limit=300, target=5, gamma=0.01), rtt_ms=4)
    for turn in range(60):
        flow = path.connect()
        flow.setblocking(True)
        flow.sendall(bytes(1 + turn * 997))
        if turn % 3 == 0:
            flow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                            b"\1\0\0\0\0\0\0\0")
        flow.close()
    time.sleep(5)
    assert path.stats().qlen == 0


def check_buffers_do_not_outlive_checks():
    """What full send buffers hold is given back when a check is over: flows that
    begin when TCP is short of memory measure that, and not their price."""
    before, most = guest_base.tcp_memory()
    # The kernel counts by steps of 1 MiB a processor (SK_MEMORY_PCPU_RESERVE).
    step = (1 << 20) // resource.getpagesize()
    for _ in range(2):
        path = Path(aqm=options(limit=300, target=5, gamma=0.01))
        pump([path.connect() for _ in range(3)], 1)
        full = guest_base.tcp_memory()[0]
        guest_base.cleanup()
        time.sleep(1)
        left = guest_base.tcp_memory()[0]
        note(f"of {most} pages {before} before, {full} with three flows, {left} "
             "without them")
        assert full > before + 8 * step, "the buffers were not full"
        assert left <= before + step


if __name__ == "__main__":
    guest_base.main(globals())
