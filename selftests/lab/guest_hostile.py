# SPDX-License-Identifier: GPL-2.0
"""Receivers that cheat: two flows of equal worth share a link, and what one of
them sends back is forged on its way. The gain is its rate over half the link.

A program in the router next to the receiver rewrites the ACKs of one port (the
optimistic one sits before the bottleneck and so knows what a receiver could at
best guess: its gain is an upper bound). What cannot be prevented is stated.
"""

import random
import select
import socket
import struct
import sys
import time

import guest_base
from guest_base import SETTINGS, note, start
from tcp_bench import PORT, Path, join, mac, pump, tap

RATE_BPS = 2 * 10**6
SECONDS, WARMUP = 8, 3
CHEATER = PORT + 1
ECE, CWR, SYN = 0x40, 0x80, 0x02
PRICED = "sbrm limit 100 target 5 gamma 0.02"
PARTS = 8


def tcp_sum(packet):
    """Compute the checksum of TCP anew, without options of IP."""
    struct.pack_into(">H", packet, 36, 0)
    size = struct.unpack_from(">H", packet, 2)[0] - 20
    data = bytes(packet[12:20]) + struct.pack(">HH", 6, size) + \
        bytes(packet[20:20 + size]) + bytes(size & 1)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    struct.pack_into(">H", packet, 36, total ^ 0xFFFF)


def stamps(packet):
    """Offset of TSecr in an IPv4 packet, or None."""
    at, end = 40, 20 + (packet[32] >> 4) * 4
    while at < end and packet[at]:
        if packet[at] == 8:
            return at + 6
        at += 1 if packet[at] == 1 else max(packet[at + 1], 1)
    return None


def forge(how):
    """In the router next to the receiver: forward ACKs, those of the cheater
    forged. conceal: no ECE; shout: ECE and CWR in all; divide: eight ACKs for
    one; stamps: time stamps of 200 ms ago, as if every loss were none; price:
    the price is 0."""
    receive, send = join("right", "left", to=mac(3), by=mac(4))
    last = None

    def out(before, packet):
        # Else the device computes it.
        if not before[0] & 1:
            tcp_sum(packet)
        send(before, packet)

    while True:
        before, packet = receive()
        source, = struct.unpack_from(">H", packet, 20)
        if packet[9] != 6 or source != CHEATER or packet[33] & SYN:
            send(before, packet)
            continue
        ack, = struct.unpack_from(">I", packet, 28)
        if how == "conceal":
            packet[33] &= ~ECE
        elif how == "shout":
            packet[33] |= ECE | CWR
        elif how == "price" and packet[38:40] != b"\0\0":
            packet[38:40] = b"\0\1"
        elif how == "stamps" and stamps(packet):
            value, = struct.unpack_from(">I", packet, stamps(packet))
            struct.pack_into(">I", packet, stamps(packet),
                             (value - 200) % 2**32)
        elif how == "divide" and last is not None:
            step = (ack - last) % 2**32
            if 0 < step < 2**31:
                for part in range(1, PARTS):
                    struct.pack_into(">I", packet, 28,
                                     (last + step * part // PARTS) % 2**32)
                    out(before, packet)
                struct.pack_into(">I", packet, 28, ack)
        last = ack
        out(before, packet)


def foresee():
    """In the router before the bottleneck: each segment of the cheater's is
    acknowledged as it comes, in the form of its last true ACK."""
    data, back = tap("left"), tap("right")
    template, highest = None, None
    addresses = bytes.fromhex((mac(1) + mac(2)).replace(":", ""))
    while True:
        for end in select.select([data, back], [], [])[0]:
            frame = bytearray(end.recv(1 << 17))
            if frame[22:24] != b"\x08\x00" or frame[33] != 6:
                continue
            packet = frame[24:]
            ports = struct.unpack_from(">HH", packet, 20)
            if end is back:
                if ports[0] == CHEATER and not packet[33] & SYN:
                    template = frame[:10], packet
                continue
            size = struct.unpack_from(">H", packet, 2)[0] - 20 - \
                (packet[32] >> 4) * 4
            if ports[1] != CHEATER or size <= 0 or not template:
                continue
            until = (struct.unpack_from(">I", packet, 24)[0] + size) % 2**32
            if highest is None or (until - highest) % 2**32 < 2**31:
                highest = until
            before, forged = template
            struct.pack_into(">I", forged, 28, highest)
            if not before[0] & 1:
                tcp_sum(forged)
            data.send(before + addresses + b"\x08\x00" + forged)


def gains(cc, attack, aqm, **keywords):
    """(rate of the cheater, rate of the other), each over half the link."""
    if SETTINGS["shipped"]:
        aqm = aqm.replace(PRICED, "sbrm limit 100")
    path = Path(rate_bps=RATE_BPS, aqm=aqm, rtt_ms=30, sink=keywords.get(
        "sink", cc))
    path.sink(keywords.get("sink", cc), port=CHEATER)
    path.s.sysctl("net.ipv4.tcp_sbrm.wtp", "27")
    if attack == "optimistic":
        with path.r1:
            start([sys.executable, __file__, attack])
    elif attack != "honest":
        path.r2.run("tc qdisc add dev right clsact")
        path.r2.run("tc filter add dev right ingress prio 9 matchall "
                    "action drop")
        with path.r2:
            start([sys.executable, __file__, attack])
    time.sleep(1)
    raw = path.sniffer()
    flows = [path.connect(cc), path.connect(cc, port=CHEATER)]
    pump(flows, WARMUP)
    counted(raw)
    pump(flows, SECONDS)
    arrived = counted(raw)
    for flow in flows:
        flow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                        struct.pack("=ii", 1, 0))
        flow.close()
    guest_base.cleanup()
    half = RATE_BPS / 8 * SECONDS / 2
    found = arrived[CHEATER] / half, arrived[PORT] / half
    note(f"{cc} {attack} over {aqm.split()[0]}: "
         f"the cheater has {found[0]:.2f} of half the link, the other "
         f"{found[1]:.2f}")
    return found


def counted(raw):
    """{port: bytes with headers} of what arrived since."""
    found = {PORT: 0, CHEATER: 0}
    while True:
        try:
            frame = raw.recv(100)
        except BlockingIOError:
            return found
        port, = struct.unpack_from(">H", frame, 36)
        if frame[23] == 6 and port in found:
            found[port] += 14 + struct.unpack_from(">H", frame, 16)[0]


def bounded(cc, aqm, bounds, **keywords):
    """Each attack with the largest gain that it may have; None: stated."""
    random.seed(guest_base.SETTINGS["seed"])
    wrong = []
    for attack, most in bounds.items():
        cheater, other = gains(cc, attack, aqm, **keywords)
        if attack == "honest" and most and cheater < 2 - most:
            wrong.append(f"{attack}: {cheater:.2f}")
        if most and cheater > most:
            wrong.append(f"{attack}: {cheater:.2f} > {most}")
        # Whoever is served by turns keeps his share whatever others do.
        if keywords.get("apart") and other < 0.9:
            wrong.append(f"{attack}: the other has {other:.2f}")
    assert not wrong, wrong


def check_sbrm():
    """Marks are for the receiver to return: concealed, or acknowledged before
    they can be, they cannot be priced. All else gains nothing."""
    bounded("sbrm", PRICED, {
        "honest": 1.15, "shout": 1.0, "divide": 1.15, "stamps": 1.15,
        "conceal": None, "optimistic": None})


def check_rm():
    """The same for TCP/RM."""
    bounded("rm", PRICED, {
        "honest": None, "shout": 1.0, "divide": 1.3, "conceal": None,
        "optimistic": None}, sink="reno")


def check_rm_losses():
    """Without marks, time stamps of the past make each loss look like a
    retransmission in vain, and Linux takes its cut back: for reno as for rm."""
    for name in ("reno", "rm"):
        bounded(name, "pfifo limit 30", {"honest": None, "stamps": None},
                sink="reno")


def check_cp():
    """The price is what the receiver says that it is."""
    bounded("cp", f"{PRICED} feedback price",
            {"honest": 1.15, "divide": 1.2, "price": None,
             "optimistic": None})


def check_pp():
    """The queue keeps flows apart: whatever a receiver says, the other flow
    has its half."""
    bounded("pp", "fq_rr limit 100", {
        "honest": 1.15, "divide": 1.1, "stamps": 1.1, "optimistic": 1.1},
        sink="reno", apart=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["optimistic"]:
        foresee()
    elif sys.argv[1:]:
        forge(sys.argv[1])
    else:
        guest_base.main(globals())
