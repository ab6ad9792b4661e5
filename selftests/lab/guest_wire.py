# SPDX-License-Identifier: GPL-2.0
"""What stands on the wire, packet by packet: how a receiver echoes marks, when
TCP/RM cuts, how pairs leave, how a queue follows its setpoint.

This is what packetdrill scripts would say. packetdrill is in no release of
Debian, and it knows one end only: every ACK would have to be written down, with
the times of a pacer that draws its gaps. Here both ends are the kernel's, and
virtual time gives each packet a time that is the same in every run of a seed,
so that it is asserted as strictly, with nothing else to install or to maintain.
"""

import socket
import struct
from collections import namedtuple

import guest_base
import tcp_bench
from guest_base import near, note
from pp_bench import SYSCTL as PP_SYSCTL
from pp_bench import fair_path, look
from rtnl import ECN, SPLIT_GSO, options
from tcp_bench import PACKET, info, pump, settle, tap, watch

SO_TIMESTAMPNS = 35
CE, ECE, SYN = 3, 0x40, 0x02
SBRM_SYSCTL = "net.ipv4.tcp_sbrm."
Seen = namedtuple("Seen", "when there ecn flags first last ack")


def watched(space, name):
    """A tap with a clock, of what comes and goes on a device."""
    with space:
        raw = tap(name)
    raw.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    # What the host itself sends, too.
    raw.setsockopt(263, 23, 0)
    raw.setblocking(False)
    return raw


def seen(raw):
    """What TCP a tap has kept: times in s, sequence numbers [first, last)."""
    found = []
    while True:
        try:
            frame, (stamp, *_), *_ = raw.recvmsg(200, 64)
        except BlockingIOError:
            return found
        # A virtio header and Ethernet's come first.
        if frame[22:24] != b"\x08\x00" or frame[33] != 6:
            continue
        size, = struct.unpack_from(">H", frame, 26)
        _, to, first, ack = struct.unpack_from(">HHII", frame, 44)
        flags = frame[57]
        size -= 20 + (frame[56] >> 4) * 4
        when, part = struct.unpack("=qq", stamp[2])
        found.append(Seen(when + part / 1e9, to == tcp_bench.PORT,
                          frame[25] & 3, flags, first, first + size, ack))


def check_mark_echo():
    """Each ACK is about packets that were all marked or all not, and says
    which; when that changes while an ACK is held back it leaves before the
    next packet comes (RFC 8257 3.2)."""
    for quickack in (True, False):
        path = tcp_bench.Path(quickack=quickack, aqm=options(
            limit=1000, target=5, gamma=0.01, flags=ECN | SPLIT_GSO))
        raw = watched(path.d, "left")
        flow = path.connect()
        pump([flow], 4)
        settle(flow)
        waiting, acked, changes, several, state = {}, None, 0, 0, False
        for one in seen(raw):
            if one.flags & SYN:
                continue
            if one.there and one.last > one.first:
                ce = one.ecn == CE
                changes += ce != state
                state = ce
                assert len({ce for _, ce in waiting.values()}) <= 1, one
                waiting[one.first] = (one.last, ce)
                acked = one.first if acked is None else acked
            elif not one.there and acked is not None:
                count = 0
                while acked in waiting and acked < one.ack:
                    acked, ce = waiting.pop(acked)
                    count += 1
                    assert ce == bool(one.flags & ECE), (one, ce)
                assert acked == one.ack, "an ACK in the middle of a packet"
                several += count > 1
        assert not waiting, "never acknowledged"
        note(f"quickack {quickack}: {changes} changes, {several} ACKs of several")
        assert changes > 100
        assert several == 0 if quickack else several > 100
        flow.close()
        guest_base.cleanup()


def flights(raw, mss):
    """What a sender's tap saw: [(ACKed bytes, segments sent until the next ACK
    comes)], the first before any ACK."""
    found, base = [[0, 0]], None
    for one in seen(raw):
        if one.flags & SYN:
            continue
        if one.there and one.last > one.first:
            base = one.first if base is None else base
            found[-1][1] += -(-(one.last - one.first) // mss)
        elif not one.there and base is not None:
            found.append([one.ack - base, 0])
    return found


def marking(target, shipped):
    """A queue that does not mark what these checks send at first: with the law of
    CP05, or as it comes."""
    return options(law=None) if shipped else options(limit=1000, target=target)


def as_named(shipped):
    """For notes."""
    return "the modules' defaults" if shipped else "source of CP05"


def check_first_window():
    """Ten segments leave before the first ACK, or what the route says, and with
    each ACK after it no more than two for each segment that it acknowledges. With
    the source of CP05, and with the modules' defaults."""
    for cc, shipped in ((cc, shipped) for cc in ("sbrm", "rem", "rm", "cp", "cubic")
                        for shipped in (False, True)):
        for slow_start, initcwnd in ((1, None), (0, None), (1, 4), (1, 20)):
            path = tcp_bench.Path(rate_bps=10**8, rtt_ms=50, initcwnd=initcwnd,
                                  aqm=marking(50, shipped), sink=cc,
                                  shipped=shipped)
            path.s.sysctl(SBRM_SYSCTL + "slow_start", slow_start)
            raw = watched(path.s, "right")
            flow = path.connect(cc)
            mss = info(flow).snd_mss
            pump([flow], 0.09)
            (_, first), (acked, then), *_ = flights(raw, mss)
            note(f"{cc}, {as_named(shipped)}, slow_start {slow_start}, initcwnd "
                 f"{initcwnd}: {first} segments, then {then} for {acked / mss:.0f}")
            assert first == (initcwnd or 10)
            assert then <= 2 * acked / mss
            guest_base.cleanup()


def check_after_a_timeout():
    """After a timeout one segment leaves, and two for its acknowledgment. With the
    source of CP05, and with the modules' defaults."""
    for cc, shipped in ((cc, shipped) for cc in ("sbrm", "rm")
                        for shipped in (False, True)):
        path = tcp_bench.Path(rate_bps=10**7, rtt_ms=40, sink=cc,
                              aqm=marking(50, shipped), shipped=shipped)
        flow = path.connect(cc)
        mss = info(flow).snd_mss
        pump([flow], 3)
        path.black_hole(True)
        while not info(flow).retransmits:
            pump([flow], 0.005)
        path.black_hole(False)
        raw = watched(path.s, "right")
        pump([flow], 3)
        (_, first), (acked, then), *_ = flights(raw, mss)
        note(f"{cc}, {as_named(shipped)}: {first} segments sent again, then {then} "
             f"for the first ACK, of {acked / mss:.0f}")
        assert first <= 1
        assert then <= 2
        guest_base.cleanup()


def check_rm_cuts():
    """TCP/RM with every packet marked: a cut by kappa in each round trip, not
    one more, not one less; without marks none."""
    rtt_s, kappa, rounds = 0.04, 0.2, 8
    path = tcp_bench.Path(rate_bps=10**9, rtt_ms=40, aqm="pfifo limit 10000",
                          sink="reno", quickack=True)
    path.s.sysctl(SBRM_SYSCTL + "kappa", kappa)
    # Too little to grow by.
    path.s.sysctl(SBRM_SYSCTL + "wtp", " ".join(["1"] * 16))
    path.s.run("ip link set dev right gso_max_segs 1")
    flow = path.connect("rm")
    while info(flow).cwnd < 200:
        pump([flow], 0.01)
    # The first mark ends slow start, by a half: not what this is about.
    path.ahead("loss 100% ecn limit 100000")
    pump([flow], rtt_s)
    path.ahead("delay 0ms limit 100000")
    pump([flow], 10 * rtt_s)
    calm = {one.cwnd for _, one in watch(flow, 5 * rtt_s, 0.001)}
    assert max(calm) - min(calm) <= 1, calm
    raw = watched(path.s, "right")
    path.ahead("loss 100% ecn limit 100000")
    found = watch(flow, rounds * rtt_s, 0.0005)
    echoes = [bool(one.flags & ECE) for one in seen(raw) if not one.there]
    cuts = [(old.cwnd, new.cwnd, when) for (_, old), (when, new) in
            zip(found, found[1:]) if new.cwnd < old.cwnd]
    gaps = [late[2] - early[2] for early, late in zip(cuts, cuts[1:])]
    note(f"window {max(calm)}, cuts to {[new for _, new, _ in cuts]}, "
         f"{1000 * min(gaps):.1f} to {1000 * max(gaps):.1f} ms apart, "
         f"{sum(echoes)} of {len(echoes)} ACKs with ECE")
    # Each of these would cut, were it not for the round trip.
    assert sum(echoes) > 20 * len(cuts)
    # The first echo is back after a round trip.
    assert rounds - 2 <= len(cuts) <= rounds
    # A round trip of packets ends with the last that was sent before the cut:
    # up to one and a half mean gaps before it. And we look every 0.5 ms.
    for (old, *_), gap in zip(cuts, gaps):
        assert abs(gap - rtt_s) <= 1.5 * rtt_s / (old * (1 - kappa)) + 0.0006
    window = cuts[0][0] - 1
    for old, new, _ in cuts:
        window *= 1 - kappa
        # Rounded up, and one for an ACK that is held back.
        assert abs(new - (window + 1.5)) <= 1.5, (old, new, window)


def check_pairs_leave():
    """pp: all data leaves in pairs, back to back; the bottleneck parts them by
    the time that it takes for one, and ACKs come back as far apart."""
    rate_bps = 10**7
    path = fair_path(20, rate_bps=rate_bps)
    out, back = watched(path.s, "right"), watched(path.s, "right")
    flow = path.connect("pp")
    pump([flow], 2)
    seen(out)
    seen(back)
    pump([flow], 2)
    service_s = PACKET * 8 / rate_bps
    data = [one for one in seen(out) if one.there and one.last > one.first]
    acks = [one for one in seen(back) if not one.there]
    gaps = [late.when - early.when for early, late in zip(data, data[1:])]
    inside = [gap for gap in gaps if gap < service_s / 10]
    between = [gap for gap in gaps if gap >= service_s / 10]
    parted = [late.when - early.when for early, late in zip(acks, acks[1:])]
    note(f"{len(data)} packets, {len(inside)} gaps of at most "
         f"{1e6 * max(inside):.1f} us inside of pairs, {len(between)} of "
         f"{1e6 * min(between):.0f} to {1e6 * max(between):.0f} us between")
    note(f"ACKs {1e6 * min(parted):.1f} to {1e6 * max(parted):.1f} us apart, "
         f"{1e6 * service_s:.1f} due")
    # Never three in a row, never one alone.
    kinds = [gap < service_s / 10 for gap in gaps]
    assert all(one != other for one, other in zip(kinds, kinds[1:]))
    mean = sum(between) / len(between) + sum(inside) / len(inside)
    assert near(mean, 2 * service_s, 0.01)
    assert all(near(gap, service_s, 0.01) for gap in parted)
    assert all(one.last == other.first for one, other in zip(data, data[1:]))


def check_setpoint_steps():
    """pp: the queue follows a setpoint that goes up and down, in ten round
    trips of what it had to move."""
    path = fair_path(10)
    flow = path.connect("pp")
    look(path, flow, 2)
    for setpoint in (30, 5, 20, 10):
        path.s.sysctl(PP_SYSCTL + "setpoint", setpoint)
        began = look(path, flow, 0.8, 0.02)
        late = [queue for _, queue, *_ in look(path, flow, 0.5)]
        note(f"setpoint {setpoint}: queue {min(late)} to {max(late)}, from "
             f"{began[0][1]}")
        assert setpoint - 2 <= min(late) and max(late) <= setpoint + 2
    assert not info(flow).total_retrans


if __name__ == "__main__":
    guest_base.main(globals())
