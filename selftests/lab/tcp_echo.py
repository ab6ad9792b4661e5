# SPDX-License-Identifier: GPL-2.0
"""Checks of guest_tcp.py: the marks that come back, from each kind of receiver and
path."""

import socket

import guest_base
import tcp_bench
from guest_base import near, note, run
from rtnl import ECN, SPLIT_GSO, options
from tcp_bench import Path, cc_info, info, pump, settle, sniffed, watch

SYSCTL = "net.ipv4.tcp_sbrm."
INDEPENDENT = ECN | SPLIT_GSO


def echo_run(quickack, ahead=None, sink="sbrm", seconds=6):
    """A flow through a marking queue: (path, TCP_INFO, CE packets at d, sent)."""
    path = Path(aqm=options(limit=1000, target=5, gamma=0.01,
                            flags=INDEPENDENT), quickack=quickack, sink=sink)
    if ahead:
        path.ahead(ahead)
    raw = path.sniffer()
    flow = path.connect()
    pump([flow], seconds)
    last = settle(flow)
    arrived = [one for one in sniffed(raw) if one.payload > 0]
    note(f"quickack {quickack}, {ahead}: {last.delivered_ce} CE counted of "
         f"{last.delivered}, {sum(one.ecn == 3 for one in arrived)} arrived "
         f"marked, {path.stats().x.marks} were marked, "
         f"{last.total_retrans} retransmitted, {last.segs_in} ACKs")
    return path, flow, last, arrived


def check_echo_is_exact():
    """delivered_ce is the number of marked packets, delayed ACKs or not."""
    for quickack in (True, False):
        path, flow, last, arrived = echo_run(quickack)
        marked = sum(one.ecn == 3 for one in arrived)
        assert marked == path.stats().x.marks > 100
        assert last.delivered_ce == marked
        cc = cc_info(flow)
        assert cc.enabled and cc.ab_ecn == marked
        # SYN-ACK counted by TCP, but before our init().
        assert abs(cc.ab_tot - last.delivered) <= 1
        # Delayed ACKs are still delayed where marks do not change.
        data = len(arrived)
        if quickack:
            assert last.segs_in >= data
        else:
            assert last.segs_in < 0.9 * data
        flow.close()
        guest_base.cleanup()


def check_echo_with_dctcp_receiver():
    """The kernel's own dctcp at the other end echoes each mark as well."""
    path, flow, last, _ = echo_run(False, sink="dctcp")
    assert last.delivered_ce == path.stats().x.marks > 100
    assert cc_info(flow).enabled


def check_echo_with_reordering():
    """Packets out of order: still every mark, within 2 %."""
    _, flow, last, arrived = echo_run(False, "delay 10ms 4ms limit 10000")
    marked = sum(one.ecn == 3 for one in arrived)
    assert near(last.delivered_ce, marked, 0.02), (last.delivered_ce, marked)
    assert cc_info(flow).enabled


def check_echo_with_loss():
    """1 % loss: the marks that arrive are counted, within 2 %."""
    _, flow, last, arrived = echo_run(False, "loss 1% limit 10000", seconds=15)
    # A segment that arrives twice counts once: few at this loss.
    marked = sum(one.ecn == 3 for one in arrived)
    assert last.total_retrans > 10
    assert near(last.delivered_ce, marked, 0.02), (last.delivered_ce, marked)
    assert cc_info(flow).enabled


def check_old_receiver():
    """An RFC 3168 receiver is found out: TCP/RM, one cut per round trip."""
    for sink in ("reno", "cubic"):
        path = Path(aqm=options(limit=1000, target=5, gamma=0.005),
                    sink=sink, rtt_ms=60)
        path.s.sysctl(SYSCTL + "kappa", "0.3")
        # Linux takes no ECN from a SYN that is ECT, as those of sbrm are
        # (TCP_CONG_NEEDS_ECN): see check_old_receiver_from_the_start().
        flow = path.connect("reno")
        flow.setsockopt(socket.IPPROTO_TCP, tcp_bench.TCP_CONGESTION, b"sbrm")
        assert cc_info(flow).enabled, "taken for a pricing receiver at first"
        found = 0
        while cc_info(flow).enabled and found < 60:
            pump([flow], 1)
            found += 1
        note(f"{sink}: found out after {found} s")
        assert found < 60
        with path.s:
            assert "dctcp:fallback_mode" in run("ss -Htin dport = :5000")
        samples = watch(flow, 20, 0.002)
        cuts = [when for (_, before), (when, after) in
                zip(samples, samples[1:])
                if after.cwnd < 0.9 * before.cwnd]
        rtt_s = info(flow).min_rtt / 1e6
        gaps = [after - before for before, after in zip(cuts, cuts[1:])]
        note(f"{sink}: {len(cuts)} cuts in 20 s, smallest distance "
             f"{min(gaps, default=0):.4f} s, round trip {rtt_s:.4f} s")
        assert len(cuts) > 3
        assert min(gaps) >= rtt_s - 0.004
        assert not cc_info(flow).enabled
        guest_base.cleanup()


def check_old_receiver_from_the_start():
    """A stock Linux receiver refuses ECN to an ECT SYN: TCP/RM on losses.

    Asked for AccECN it agrees to RFC 3168, and is found out as such.
    """
    path = Path(aqm=options(limit=200, target=5, gamma=0.01), sink="reno")
    raw = path.sniffer()
    flow = path.connect()
    if info(flow).options & 8:
        pump([flow], 20)
        last = info(flow)
        note(f"{last.delivered_ce} of {last.delivered} with ECE")
        assert not cc_info(flow).enabled
        with path.s:
            assert "dctcp:fallback_mode" in run("ss -Htin dport = :5000")
        return
    assert not cc_info(flow).enabled
    pump([flow], 2)
    with path.s:
        assert "dctcp:fallback_mode" in run("ss -Htin dport = :5000")
    data = [one for one in sniffed(raw) if one.payload]
    assert data and all(one.ecn == 0 for one in data)


def check_no_ecn():
    """A peer without ECN: TCP/RM at once, and packets are not ECT."""
    path = Path(aqm=options(limit=200, target=5, gamma=0.001), sink="reno",
                sink_ecn=0)
    for cc in ("rem", "sbrm"):
        with path.connect(cc) as one:
            assert one.getsockopt(socket.IPPROTO_TCP, 13, 16).rstrip(b"\0") \
                == cc.encode()
    raw = path.sniffer()
    flow = path.connect()
    assert not cc_info(flow).enabled
    pump([flow], 5)
    last = settle(flow)
    frames = sniffed(raw)
    # The SYN was ECT: sent before the answer was known.
    data = [one for one in frames if one.payload]
    assert data and all(one.ecn == 0 for one in data)
    stats = path.stats()
    assert stats.x.marks == last.delivered_ce == 0
    assert stats.x.coupled_drops > 0 and last.total_retrans > 0
    note(f"{stats.x.coupled_drops} coupled drops, {last.bytes_acked} bytes")
    assert last.bytes_acked > 0.7 * 5e6 / 8


def check_bleaching_path():
    """A path that clears CE: no marks come back, TCP's loss reaction holds."""
    path = Path(aqm=options(limit=100, target=5, gamma=0.002))
    path.meddled("bleach")
    raw = path.sniffer()
    flow = path.connect()
    pump([flow], 4)
    last = settle(flow)
    frames = sniffed(raw)
    stats = path.stats()
    note(f"{stats.x.marks} marked, {last.delivered_ce} counted, "
         f"{stats.x.full_drops} dropped, {last.bytes_acked} bytes")
    assert stats.x.marks > 100 and last.delivered_ce == 0
    assert not any(one.ecn == 3 for one in frames)
    assert stats.x.full_drops > 0, "without marks only a full queue stops it"
    assert last.bytes_acked > 0.9 * 10e6 / 8 * 4
