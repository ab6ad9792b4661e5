# SPDX-License-Identifier: GPL-2.0
"""What the price field believes, and which packets it leaves alone."""

import contextlib
import random
import socket
import struct
import threading
import time

import guest_base
from bench import ip_sum
from guest_base import SETTINGS, near, note
from guest_price import SYSCTL, counters, explicit, mean_price, tap
from tcp_bench import PORT, TCP_CONGESTION, cc_info, info, pump

ADDRESS = ("10.0.2.2", PORT + 1)
IP_MINTTL, TTL_LEAST = 21, 30
FORGERIES = 400
DF = 0x4000


def listen(path):
    """A receiver that takes nothing from far away; its counterpart."""
    with path.d:
        server = socket.create_server(ADDRESS)
    server.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"cp")
    server.setsockopt(socket.IPPROTO_IP, IP_MINTTL, TTL_LEAST)

    def drain(connection):
        buffer = bytearray(1 << 18)
        # Until the sender resets it.
        with connection, contextlib.suppress(ConnectionResetError):
            while connection.recv_into(buffer, 0, socket.MSG_TRUNC):
                pass

    flow = path.connect("cp", port=ADDRESS[1])
    made, _ = server.accept()
    server.close()
    threading.Thread(target=drain, args=(made,), daemon=True).start()
    return flow


def latest(raw):
    """Of the last packet with data on a tap: (ports, number of what comes next,
    acknowledgment, time stamp)."""
    found = None
    while True:
        try:
            frame = raw.recv(120)
        except BlockingIOError:
            return found
        if frame[12:14] != b"\x08\x00" or frame[23] != 6:
            continue
        total, = struct.unpack_from(">H", frame, 16)
        ports, seq, ack, offset = struct.unpack_from(">4sIIB", frame, 34)
        payload = total - 20 - (offset >> 4) * 4
        if payload and struct.unpack(">HH", ports)[1] == ADDRESS[1]:
            # After two NOPs.
            stamp, = struct.unpack_from(">I", frame, 58)
            found = (ports, (seq + payload) % 2**32, ack, stamp)


def forged(last, ident, spoil):
    """A segment that would come next, with any price; not one that TCP takes."""
    ports, seq, ack, stamp = last
    age = 1000 if spoil == "old" else 0
    tcp = bytearray(struct.pack(
        ">4sIIBBHHHBBBBII", ports, seq, ack, 8 << 4, 0x10, 100, 0, 65535, 1, 1,
        8, 10, (stamp - age) % 2**32, 0) + bytes(100))
    ends = socket.inet_aton("10.0.0.1") + socket.inet_aton(ADDRESS[0])
    total = ip_sum(ends + struct.pack(">HH", 6, len(tcp)) + bytes(tcp))
    struct.pack_into(">H", tcp, 16, total ^ 0x1111 if spoil == "sum" else total)
    return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), ident, DF,
                       5 if spoil == "ttl" else 64, 6, 0) + ends + tcp


def check_forged_segments():
    """Segments with numbers that fit, and prices, that TCP discards: of a wrong
    checksum, an old time stamp, from too far away. They change nothing."""
    numbers = random.Random(SETTINGS["seed"])
    for spoil in ("sum", "old", "ttl"):
        path = explicit()
        path.s.sysctl(SYSCTL + "wtp", "200")
        flow = listen(path)
        raw = tap(path.d, "left")
        with path.r2:
            forger = socket.socket(socket.AF_INET, socket.SOCK_RAW,
                                   socket.IPPROTO_RAW)
        pump([flow], 10)
        rates = []
        for _ in range(FORGERIES // 20):
            last = latest(raw)
            for _ in range(20):
                # 0 would be replaced by the kernel.
                forger.sendto(forged(last, numbers.randrange(1, 65536), spoil),
                              (ADDRESS[0], 0))
            (rate,), price = mean_price(path, [flow], 0.5)
            rates.append(rate * price)
        there = counters(path.d)
        pays = sum(rates) / len(rates)
        note(f"{spoil}: {there}, pays {pays:.1f} of 200")
        assert there["price_rewritten"] == 0, "what TCP discards was believed"
        assert there["price_invalid"] == FORGERIES
        assert cc_info(flow).enabled and near(pays, 200, 0.03)
        assert not any(counters(path.s).values())
        flow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                        struct.pack("=ii", 1, 0))
        flow.close()
        time.sleep(1)
        guest_base.cleanup()


def check_first_packets_have_no_price():
    """What a sender sends before its hooks are there costs it nothing: the start of a
    connection is the same."""
    acked = []
    for how in ("nothing", "scramble=12"):
        path = explicit()
        path.meddled(how)
        flow = path.connect("cp")
        pump([flow], 2)
        acked.append(info(flow).bytes_acked)
        guest_base.cleanup()
    note(f"{acked} bytes in 2 s")
    assert near(acked[1], acked[0], 0.05)


def check_headers_that_are_signed():
    """A queue leaves the identification of packets alone that AH has signed."""
    path = explicit()
    path.s.sysctl(SYSCTL + "wtp", "400")
    flow = path.connect("cp")
    pump([flow], 5)
    raw = tap(path.d, "left")
    with path.s:
        sender = socket.socket(socket.AF_INET, socket.SOCK_RAW,
                               socket.IPPROTO_RAW)
    for _ in range(50):
        for protocol in (socket.IPPROTO_AH, 253):
            sender.sendto(struct.pack(
                ">BBHHHBBH4s4s", 0x45, 0, 60, 4000, DF, 64, protocol, 0,
                socket.inet_aton("10.0.0.1"), socket.inet_aton("10.0.2.2")) +
                bytes(40), ("10.0.2.2", 0))
        pump([flow], 0.02)
    found = {socket.IPPROTO_AH: [], 253: []}
    pump([flow], 1)
    while True:
        try:
            frame = raw.recv(100)
        except BlockingIOError:
            break
        if frame[12:14] == b"\x08\x00" and frame[23] in found:
            found[frame[23]].append(struct.unpack_from(">H", frame, 18)[0])
    note(f"{len(found[51])} packets of AH, {set(found[51])}; {len(found[253])} "
         f"others, mean {sum(found[253]) / len(found[253]):.0f}")
    assert len(found[51]) == len(found[253]) == 50
    assert set(found[51]) == {4000}
    assert sum(number > 4000 for number in found[253]) > 25, "no price was due"


def check_without_sack():
    """The price comes back, and a peer that returns none is found out."""
    path = explicit()
    path.s.sysctl("net.ipv4.tcp_sack", 0)
    path.s.sysctl(SYSCTL + "wtp", "200")
    flow = path.connect("cp")
    pump([flow], 10)
    (rate,), price = mean_price(path, [flow], 20)
    note(f"{rate:.1f} packets/s at price {price:.4f}: pays {rate * price:.1f} of 200")
    assert near(rate * price, 200, 0.02)
    assert not any(counters(path.s).values()), counters(path.s)
    guest_base.cleanup()

    path = explicit(sink="reno")
    path.s.sysctl("net.ipv4.tcp_sack", 0)
    flow = path.connect("cp")
    pump([flow], 5)
    assert counters(path.s)["price_absent"] == 1, counters(path.s)


if __name__ == "__main__":
    guest_base.main(globals())
