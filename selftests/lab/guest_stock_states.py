# SPDX-License-Identifier: GPL-2.0
"""The checks of guest_states.py on a kernel of a distribution, in real time, and
what the kernel of the lab does not have."""

import re
import socket
import time
from pathlib import Path

import guest_base
import guest_states
from declared import DEFAULTS_OF
from guest_base import Skip, note
from states_bench import RECEIVER, Switches
from tcp_bench import PORT
from tcp_bench import Path as Network

MPTCP = 262
BYTES = 100000
# A minute's rest before each look is for a clock that does not wait, and so is a
# state that does not pass.
guest_base.REST_S = 3
Switches.exact = False


def check_late_subflow():
    """MPTCP: the SYN of a second subflow waits in the sender's own queue for longer
    than its timer: Loss, and its undo, come before init() there, too."""
    if not Path("/proc/sys/net/mptcp").exists():
        raise Skip("this kernel has no MPTCP")
    # Those that a namespace of its own can have by default.
    for cc in sum(DEFAULTS_OF.values(), ()):
        path = Network(aqm="pfifo limit 10000", sink="reno")
        for space in (path.s, path.d):
            space.sysctl("net.mptcp.enabled", 1)
            space.run("ip mptcp limits set subflow 2 add_addr_accepted 2")
        path.s.sysctl("net.ipv4.tcp_congestion_control", cc)
        path.s.run("ip addr add 10.0.0.3/24 dev right")
        with path.d:
            server = socket.socket(proto=MPTCP)
        with path.s:
            near = socket.socket(proto=MPTCP)
        with server, near:
            server.settimeout(60)
            near.settimeout(60)
            server.bind(("", PORT + 1))
            server.listen()
            near.connect((RECEIVER, PORT + 1))
            far, _ = server.accept()
            with far:
                far.settimeout(60)
                carry(near, far)
                path.s.run("tc qdisc add dev right root netem delay 1100ms "
                           "limit 100000")
                path.s.run("ip mptcp endpoint add 10.0.0.3 dev right subflow")
                time.sleep(5)
                carry(near, far)
                shown = path.s.run(f"ss -Htin dport = :{PORT + 1}")
        count = len(re.findall(rf"\s{cc}\s", shown))
        timeouts = path.s.tcp_ext()["TCPTimeouts"]
        note(f"{cc}: {count} subflows, {timeouts} timeouts")
        guest_base.cleanup()
        if count == 1:
            raise Skip("this kernel adds no subflow to a connection that is there")
        assert count == 2 and timeouts, shown


def carry(near, far):
    """Bytes from one end to the other, all of them."""
    near.sendall(bytes(BYTES))
    total = 0
    while total < BYTES:
        got = len(far.recv(1 << 20))
        assert got, f"the end after {total} bytes"
        total += got


if __name__ == "__main__":
    guest_base.main({**vars(guest_states), **globals()})
