# SPDX-License-Identifier: GPL-2.0
"""Sockets in every state: before init(), after release(), and in between."""

import contextlib
import socket
import time

import guest_base
from guest_base import note
from tcp_bench import PORT, TCP_CONGESTION, Path, info

CONTROLS = ("sbrm", "rem", "cp", "rm", "pp", "ppx")


def late_syn(path, cc):
    """connect() whose SYN leaves the host after the timer for it; TCP_INFO."""
    with path.s:
        flow = socket.socket()
    flow.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, cc.encode())
    with contextlib.closing(flow):
        flow.connect(("10.0.2.2", PORT))
        time.sleep(3)
        flow.sendall(bytes(100000))
        time.sleep(5)
        return info(flow)


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


if __name__ == "__main__":
    guest_base.main(globals())
