# SPDX-License-Identifier: GPL-2.0
"""Sockets in every state: before init(), after release(), and in between.

Most checks switch between all congestion controls, ours and two of the kernel,
while a socket is in one state, and all data must arrive whole in the end. All of
them run again as a user without privilege, in namespaces of the user's own.
"""

import contextlib
import itertools
import os
import random
import socket
import subprocess
import sys
import time
import traceback
from collections import Counter

import guest_base
from declared import RESTRICTED
from guest_base import SETTINGS, note, run
from guest_ecn import PORT as OWN_PORT
from guest_ecn import (ADDRESSES, both_families, choose, connecting, disconnect,
                       listener)
from guest_userns import MAPPED
from states_bench import (CLOSE, CLOSE_WAIT, CLOSING, CONTROLS, ESTABLISHED,
                          FIN_WAIT1, FIN_WAIT2, LAST_ACK, RECEIVER, RECV_QUEUE,
                          SEND_QUEUE, SENDER, SIZE, SYN_DATA, SYN_RECV,
                          SYN_SENT, TCP_FASTOPEN, TCP_REPAIR_QUEUE, Flow,
                          Switches, bed, chosen, connection,
                          fast_open, ready, repair, repaired, rows, sequences,
                          until_state)
from tcp_bench import LOSS, PORT, RECOVERY, Path, info


def late_syn(path, cc):
    """connect() whose SYN leaves the host after the timer for it; TCP_INFO."""
    with path.s:
        flow = socket.socket()
    choose(flow, cc)
    with contextlib.closing(flow):
        flow.connect((RECEIVER, PORT))
        time.sleep(3)
        flow.sendall(bytes(100000))
        time.sleep(5)
        return info(flow)


@contextlib.contextmanager
def connecting_now(path, cc, address):
    """(a listener at d, a socket of IPv6 at s whose SYN is on its way)."""
    with listener(path.d, socket.AF_INET6) as server:
        server.settimeout(60)
        with connecting(path.s, socket.AF_INET6, address, [cc]) as one:
            yield server, one


def check_late_syn():
    """A SYN that waits in the sender's own queue for longer than its timer:
    Loss, and its undo, come before init()."""
    path = Path(aqm="pfifo limit 10000")
    path.s.run("tc qdisc add dev right root netem delay 1100ms limit 100000")
    for cc in CONTROLS:
        last = late_syn(path, cc)
        note(f"{cc}: {last.bytes_acked} bytes, window {last.cwnd}, "
             f"{last.total_retrans} retransmitted")
        assert last.bytes_acked >= 100000, cc


def check_late_neighbour():
    """A SYN that waits for an answer to ARP, which comes after 3 s."""
    path = bed()
    path.r1.run("tc qdisc add dev left clsact")
    path.s.sysctl("net.ipv4.neigh.right.mcast_solicit", 20)
    path.s.sysctl("net.ipv4.neigh.right.retrans_time_ms", 500)
    deaf = "filter {} dev left ingress protocol arp prio 1"
    switches = Switches(SYN_SENT)
    lost = 0
    for switch, row in itertools.product((False, True), rows()):
        path.s.run("ip neigh del 10.0.0.2 dev right")
        path.r1.run("tc " + deaf.format("add") + " matchall action drop")
        with listener(path.d, socket.AF_INET) as server, \
                connecting(path.s, socket.AF_INET, RECEIVER, [row[0]]) as one:
            until = time.monotonic() + 3
            # All of a row, or none of it.
            if switch:
                switches.through(path.s, one, row, lambda: time.sleep(0.4))
            time.sleep(max(until - time.monotonic(), 0))
            last = info(one)
            assert last.state == SYN_SENT, last
            lost += last.ca_state == LOSS
            path.r1.run("tc " + deaf.format("del"))
            server.settimeout(60)
            other, _ = server.accept()
            with other:
                Flow(one, other).finish()
    note(f"{lost} SYNs in Loss after 3 s")
    assert lost == 2 * len(CONTROLS)
    switches.report()


def check_closed():
    """Switches before connect()."""
    path, switches = bed(), Switches(CLOSE)
    for row in rows():
        with listener(path.d, socket.AF_INET) as server:
            with path.s:
                one = socket.socket()
            with one:
                choose(one, row[0])
                switches.through(path.s, one, row)
                one.connect((RECEIVER, OWN_PORT))
                other, _ = server.accept()
                with other:
                    Flow(one, other).finish()
    switches.report()


def check_listening():
    """A listener switches between a SYN and the ACK that makes the child."""
    path, children = bed(), 0
    for row in rows():
        with listener(path.s, socket.AF_INET) as server:
            server.settimeout(60)
            for cc in row:
                with connecting(path.d, socket.AF_INET, SENDER,
                                ["reno"]) as other:
                    # The SYN takes 40 ms, its answer the next moment.
                    time.sleep(0.0402)
                    choose(server, cc)
                    if cc == row[-1]:
                        path.s.run("ss -tlino")
                    one, _ = server.accept()
                    with one:
                        assert chosen(one) == cc
                        children += 1
                        Flow(one, other, SIZE // 3).finish()
    note(f"{children} children")


def check_syn_sent():
    """Switches while the SYN waits in the sender's own queue, before its timer
    and after it."""
    path = bed()
    early, late = Switches(SYN_SENT), Switches(SYN_SENT, ca_state=LOSS)
    for switches in (early, late):
        for row in rows():
            path.s.run("tc qdisc add dev right root netem delay 2500ms "
                       "limit 10000")
            with listener(path.d, socket.AF_INET) as server, \
                    connecting(path.s, socket.AF_INET, RECEIVER,
                               [row[0]]) as one:
                if switches is late:
                    until_state(one, ca_state=LOSS, limit_s=2)
                switches.through(path.s, one, row, lambda: time.sleep(0.1))
                server.settimeout(60)
                other, _ = server.accept()
                path.s.run("tc qdisc del dev right root")
                with other:
                    Flow(one, other).finish()
    early.report()
    late.report()


def check_established():
    """Switches with data in flight."""
    path, switches = bed(), Switches(ESTABLISHED)
    for row in rows():
        with connection(path, row[0]) as (one, other):
            flow = Flow(one, other, 4 * SIZE)
            flow.run(0.06)
            switches.through(path.s, one, row, lambda: flow.run(0.03))
            flow.finish()
    switches.report()


def check_ipv6():
    """Switches with data in flight over IPv6, and of an IPv6 socket over IPv4,
    which has other operations below it."""
    path = both_families()
    for address in (ADDRESSES[socket.AF_INET6][1],
                    f"::ffff:{ADDRESSES[socket.AF_INET][1]}"):
        early, switches = Switches(SYN_SENT), Switches(ESTABLISHED)
        # The neighbours are known before their answers come late. A router asks
        # from its link-local address, which is tentative for up to two seconds.
        time.sleep(3)
        path.s.run(f"ping -c 1 {ADDRESSES[socket.AF_INET6][1]}")
        # The timer of the SYN fires after the last switch: Loss, and its undo.
        path.r2.run("tc qdisc change dev left root netem delay 1200ms limit 10000")
        for row in rows():
            with connecting_now(path, row[0], address) as (server, one):
                early.through(path.s, one, row)
                until_state(one, state=ESTABLISHED)
                other, _ = server.accept()
                with other:
                    Flow(one, other).finish()
        path.r2.run("tc qdisc change dev left root netem delay 40ms limit 10000")
        for row in rows():
            with connection(path, row[0], socket.AF_INET6, address) as ends:
                flow = Flow(*ends, 4 * SIZE)
                flow.run(0.06)
                switches.through(path.s, ends[0], row, lambda: flow.run(0.03))
                flow.finish()
        note(address)
        early.report()
        switches.report()


def check_recovery():
    """Switches while lost segments are sent again."""
    path = bed(rtt_ms=100)
    switches = Switches(ESTABLISHED, ca_state=RECOVERY)
    for row in rows():
        with connection(path, row[0]) as (one, other):
            flow = Flow(one, other, 10 * SIZE)
            flow.run(0.35)
            # How far apart packets are is the control's choice: a hole may miss all.
            while info(one).ca_state != RECOVERY:
                assert flow.got < flow.size, f"nothing was lost: {info(one)}"
                path.black_hole(True)
                flow.run(0.006)
                path.black_hole(False)
                for _ in range(12):
                    flow.run(0.01)
                    if info(one).ca_state == RECOVERY:
                        break
            # It takes a round trip at the least: all switches come before one is over.
            switches.through(path.s, one, row, lambda: flow.run(0.005))
            flow.finish()
    switches.report()


def check_loss():
    """Switches after a timeout, while the path is dead and when it is back."""
    path, switches = bed(), Switches(ESTABLISHED, ca_state=LOSS)
    for row in rows():
        with connection(path, row[0]) as (one, other):
            flow = Flow(one, other, 4 * SIZE)
            flow.run(0.1)
            path.black_hole(True)
            until_state(one, flow, ca_state=LOSS)
            half = len(row) // 2
            switches.through(path.s, one, row[:half + 1],
                             lambda: flow.run(0.3))
            path.black_hole(False)
            switches.through(path.s, one, row[half:], lambda: flow.run(0.005))
            flow.finish()
    switches.report(0.8)


def check_fin_wait():
    """Switches after shutdown(), before and after the peer has all of it."""
    path = bed()
    first, second = Switches(FIN_WAIT1), Switches(FIN_WAIT2)
    for row in rows():
        with connection(path, row[0]) as (one, other):
            flow = Flow(one, other)
            while flow.sent < flow.size:
                flow.run(0.01)
            path.black_hole(True)
            one.shutdown(socket.SHUT_WR)
            first.through(path.s, one, row, lambda: flow.run(0.1))
            path.black_hole(False)
            flow.finish()
            until_state(one, state=FIN_WAIT2)
            choose(one, row[0])
            second.through(path.s, one, row)
            # The way back is still open.
            Flow(other, one).finish()
    first.report()
    second.report()


def check_close_wait():
    """Switches after the peer's FIN, and after ours that follows it."""
    path = bed()
    first, second = Switches(CLOSE_WAIT), Switches(LAST_ACK)
    for row in rows():
        with connection(path, row[0]) as (one, other):
            other.shutdown(socket.SHUT_WR)
            until_state(one, state=CLOSE_WAIT)
            flow = Flow(one, other)
            flow.move()
            first.through(path.s, one, row, lambda: flow.run(0.02))
            while flow.sent < flow.size:
                flow.run(0.01)
            path.black_hole(True)
            one.shutdown(socket.SHUT_WR)
            choose(one, row[0])
            second.through(path.s, one, row, lambda: flow.run(0.1))
            path.black_hole(False)
            flow.finish()
    first.report()
    second.report()


def check_closing():
    """Switches when both ends have sent FIN, and ours was lost with data."""
    path, switches = bed(), Switches(CLOSING)
    for row in rows():
        with connection(path, row[0]) as (one, other):
            flow = Flow(one, other)
            while flow.sent < flow.size:
                flow.run(0.01)
            path.black_hole(True)
            one.shutdown(socket.SHUT_WR)
            other.shutdown(socket.SHUT_WR)
            until_state(one, state=CLOSING)
            switches.through(path.s, one, row, lambda: flow.run(0.1))
            path.black_hole(False)
            flow.finish()
    switches.report()


def check_disconnect():
    """connect() to AF_UNSPEC in SYN_SENT and with data in flight, a switch in
    between, and the same socket again."""
    path, done = bed(), 0
    for row in rows():
        with path.s:
            one = socket.socket()
        with one, listener(path.d, socket.AF_INET) as server:
            server.settimeout(60)
            for index, cc in enumerate(row):
                choose(one, cc)
                one.setblocking(False)
                path.black_hole(True)
                with contextlib.suppress(BlockingIOError):
                    one.connect((RECEIVER, OWN_PORT))
                time.sleep(1.2 if index % 2 else 0.02)
                disconnect(one)
                path.black_hole(False)
                if index % 3 == 0:
                    choose(one, row[index - 1])
                one.setblocking(True)
                one.connect((RECEIVER, OWN_PORT))
                other, _ = server.accept()
                with other:
                    Flow(one, other, SIZE // 3).finish()
                    flow = Flow(one, other)
                    flow.run(0.01)
                    assert info(one).unacked
                    disconnect(one)
                assert info(one).state == CLOSE
                done += 1
    note(f"{done} connections of {len(rows())} sockets")


def opened(path, server, row, switches):
    """A connection by Fast Open: yields its socket when the SYN is sent, and
    TCP_INFO when all data has arrived."""
    data = random.Random(SETTINGS["seed"]).randbytes(1000)
    one, sent = fast_open(path, row[0], data)
    with one:
        yield one
        other, _ = server.accept()
        with other:
            if info(other).state == SYN_RECV:
                switches.through(path.d, other, row)
            other.settimeout(60)
            ready(one)
            one.setblocking(True)
            one.sendall(data[sent:])
            got = b""
            while len(got) < len(data):
                got += other.recv(len(data))
            assert got == data, (row[0], len(got))
            Flow(other, one).finish()
            Flow(one, other).finish()
            yield info(one)


def check_fast_open():
    """Data in the SYN: it arrives, is lost, or waits past its timer; the child
    switches in SYN_RECV."""
    path, switches, in_syn = bed(), Switches(SYN_RECV), 0
    for space in (path.s, path.d):
        space.sysctl("net.ipv4.tcp_fastopen", 3)
        space.sysctl("net.ipv4.tcp_fastopen_blackhole_timeout_sec", 0)
    for row in rows():
        with listener(path.d, socket.AF_INET) as server:
            server.settimeout(60)
            server.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN, 16)
            choose(server, row[0])
            # The first brings the cookie, unless an earlier one has.
            for trouble in ("", "", "lost", "late"):
                if trouble == "lost":
                    path.black_hole(True)
                if trouble == "late":
                    path.s.run("tc qdisc add dev right root netem "
                               "delay 1100ms limit 10000")
                steps = opened(path, server, row, switches)
                one = next(steps)
                if trouble == "lost":
                    time.sleep(0.5)
                    path.black_hole(False)
                if trouble == "late":
                    ready(one)
                    path.s.run("tc qdisc del dev right root")
                last = next(steps)
                steps.close()
                in_syn += bool(last.options & SYN_DATA)
    note(f"{in_syn} times data of the SYN was acknowledged with it")
    switches.report()
    assert in_syn >= 2 * len(CONTROLS) - 1


def check_syn_cookies():
    """Children that are made of a cookie alone."""
    path = bed()
    path.s.sysctl("net.ipv4.tcp_syncookies", 2)
    for row in rows():
        with listener(path.s, socket.AF_INET) as server:
            choose(server, row[0])
            with connecting(path.d, socket.AF_INET, SENDER, ["reno"]) as other:
                server.settimeout(60)
                one, _ = server.accept()
                with one:
                    assert chosen(one) == row[0]
                    flow = Flow(one, other)
                    flow.run(0.05)
                    Switches(ESTABLISHED).through(path.s, one, row)
                    flow.finish()
    sent = path.s.tcp_ext()["SyncookiesRecv"]
    note(f"{sent} cookies came back")
    assert sent == len(CONTROLS)


def check_repair():
    """Connections made in repair mode, with data that counts as sent."""
    path, switches = bed(), Switches(ESTABLISHED)
    for number, row in enumerate(rows()):
        ends = ((SENDER, 6000 + number), (RECEIVER, 6000))
        ours, theirs = 10**9, 2 * 10**9
        with repaired(path.d, "reno", ends[::-1],
                      {SEND_QUEUE: theirs, RECV_QUEUE: ours}) as other, \
                repaired(path.s, row[0], ends,
                         {SEND_QUEUE: ours, RECV_QUEUE: theirs}) as one:
            one.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR_QUEUE, SEND_QUEUE)
            flow = Flow(one, other)
            flow.sent = one.send(flow.data[:5000])
            switches.through(path.s, one, row)
            repair(other, False)
            repair(one, False)
            flow.finish()
    switches.report()


def check_reneging():
    """The receiver forgets what it has acknowledged by SACK: it is replaced by a
    repaired socket, which never saw what came after the hole."""
    path = bed()
    for space in (path.s, path.d):
        space.sysctl("net.ipv4.tcp_timestamps", 0)
        space.sysctl("net.ipv4.tcp_window_scaling", 0)
    for row in rows():
        seen = path.s.tcp_ext()["TCPSACKReneging"]
        with connection(path, row[0]) as (one, other):
            Flow(one, other).finish()
            time.sleep(0.2)
            flow = Flow(one, other, 12 * 1460)
            path.black_hole(True)
            flow.sent += one.send(flow.data[:1460])
            time.sleep(0.005)
            path.black_hole(False)
            flow.move()
            time.sleep(0.02)
            repair(other, True)
            ends = other.getsockname(), other.getpeername()
            queues = sequences(other)
            other.close()
            with repaired(path.d, "reno", ends, queues) as again:
                repair(again, False)
                flow.other = again
                again.setblocking(False)
                until_state(one, ca_state=LOSS, limit_s=5)
                Switches(ESTABLISHED).through(path.s, one, row,
                                              lambda: flow.run(0.005))
                flow.finish()
        seen = path.s.tcp_ext()["TCPSACKReneging"] - seen
        assert seen, row[0]
        note(f"{row[0]}: reneging seen {seen} times")


def check_mtu_probes():
    """Probes for larger packets, on a path that swallows the largest ones."""
    path = bed()
    path.s.sysctl("net.ipv4.tcp_mtu_probing", 2)
    path.s.sysctl("net.ipv4.tcp_probe_interval", 1)
    path.r2.run("ip link set right mtu 1300")
    path.s.run("tc qdisc add dev right clsact")
    path.s.run("tc filter add dev right ingress protocol ip prio 1 u32 "
               "match ip protocol 1 0xff action drop")
    total = Counter()
    for row in rows():
        before = path.s.tcp_ext()
        with connection(path, row[0]) as (one, other):
            flow = Flow(one, other, 10 * SIZE)
            flow.run(0.5)
            Switches(ESTABLISHED).through(path.s, one, row,
                                          lambda: flow.run(0.05))
            choose(one, row[0])
            flow.finish()
            size = info(one).snd_mss
        now = path.s.tcp_ext()
        probes = {name: now[name] - before[name]
                  for name in ("TCPMTUPSuccess", "TCPMTUPFail")}
        note(f"{row[0]} first: {probes}, segments of {size} bytes")
        total.update(probes)
    assert total["TCPMTUPSuccess"] and total["TCPMTUPFail"], total


AS_USER = ("late_syn", "late_neighbour", "closed", "listening", "syn_sent",
           "established", "ipv6", "recovery", "loss", "fin_wait", "close_wait",
           "closing", "disconnect", "fast_open", "syn_cookies", "repair",
           "reneging", "mtu_probes")


def as_user():
    """In the user's namespaces: all checks with what everyone may select."""
    CONTROLS[:] = [cc for cc in CONTROLS if cc not in RESTRICTED]
    # rows() takes an even number.
    del CONTROLS[len(CONTROLS) // 2 * 2:]
    # For ip netns: what it mounts is seen here alone.
    run("mount -t tmpfs tmpfs /run/netns")
    failed = []
    for name in AS_USER:
        try:
            globals()[f"check_{name}"]()
        except Exception:
            failed.append(name)
            traceback.print_exc()
        finally:
            guest_base.cleanup()
    sys.exit(f"failed: {failed}" if failed else 0)


def check_user():
    """The same by an unprivileged user in namespaces of its own."""
    os.makedirs("/run/netns", exist_ok=True)
    done = subprocess.run([*MAPPED, "--net", "--mount", sys.executable,
                           __file__, "user"], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert not done.returncode, done.stdout[-8000:]
    note(f"{len(AS_USER)} checks as uid 65534")


if __name__ == "__main__":
    if sys.argv[1:2] == ["user"]:
        as_user()
    else:
        guest_base.main(globals())
