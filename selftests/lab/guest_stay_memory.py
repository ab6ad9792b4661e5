# SPDX-License-Identifier: GPL-2.0
"""Ten thousand flows of each congestion control, and all queues of fq_rr: what
memory they take, and that they give it back."""

import gc
import resource
import socket
import time

import guest_base
from bench import HOLD_BPS, QDISC, Bench, ipv4
from guest_base import amount, note
from memory import SLACK, memory, no_leak
from rtnl import BY_PRIORITY, WFQ, fq_rr_options
from tcp_bench import TCP_CONGESTION, Path, info

FLOWS = {"short": 250, "full": 10000, "full_debug": 1000}
QUEUES = 65536
# struct fq_rr_flow takes 128 bytes, and its tag 4 more. The order of the queues by packets takes 8
# for each, and 4 for each packet of the limit; a heap 16 and 4. The latter
# tables are below 4 MiB and one larger than a power of two: kmalloc doubles.
# {name: (options, bytes of each queue)}
ORDERS = {"packets": ({}, 132 + 2 * 12),
          "bytes": ({"longest": 1}, 132 + 2 * 20),
          "wfq": ({"service": WFQ}, 132 + 2 * 12 + 2 * 20)}
CONTROLS = "reno", "sbrm", "rm", "rem", "cp", "pp", "ppx"
PRICED = "sbrm mark sbrm limit 200000"
# {congestion control: what it goes through}
QUEUE_OF = {"cp": PRICED + " feedback price",
            "pp": "fq_rr flows 65536 limit 200000 memory_limit 1gb",
            "ppx": "fq_rr flows 65536 limit 200000 memory_limit 1gb"}
# What each flow sends while all others do, bytes.
SENT = 6000
# A socket's private area is part of it: a flow takes what one of reno does.
TOLERANCE = 64


def padded():
    """Does KASAN put something around each object?"""
    return guest_base.SETTINGS["flavour"] == "debug"


def connect(path, cc, flows):
    """[(near, far)] of so many connections."""
    with path.d:
        server = socket.create_server(("10.0.2.2", 6000), backlog=4096)
    server.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, cc.encode())
    ends = []
    for _ in range(flows):
        near = path.connect(cc, port=6000)
        far, _ = server.accept()
        near.setblocking(False)
        far.setblocking(False)
        ends.append((near, far))
    server.close()
    return ends


def exchange(ends):
    """Let all of them send at the same time, until all of it has come."""
    left = {}
    for near, far in ends:
        assert near.send(bytes(SENT)) == SENT
        left[far] = SENT
    for _ in range(600):
        time.sleep(0.5)
        for far in list(left):
            try:
                left[far] -= far.recv_into(BUFFER)
            except BlockingIOError:
                continue
            if not left[far]:
                del left[far]
        if not left:
            return
    raise AssertionError(f"{len(left)} flows did not deliver all")


BUFFER = bytearray(SENT)


def used(path, cc, flows):
    """Bytes for each of so many flows of a congestion control, and what was
    in use before they came."""
    for words in "handle 20: pfifo", "handle 30: " + QUEUE_OF.get(cc, PRICED):
        path.r1.run("tc qdisc replace dev right parent 1:1 " + words)
    before = memory()
    ends = connect(path, cc, flows)
    exchange(ends)
    # Idle, with nothing on its way: what is left is the flow itself.
    time.sleep(2)
    assert info(ends[-1][0]).bytes_acked >= SENT
    each = (memory().bytes - before.bytes) / flows
    for pair in ends:
        for end in pair:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                           b"\1\0\0\0\0\0\0\0")
            end.close()
    time.sleep(2)
    return each, before


def check_flows():
    """A flow of ours takes what one of reno does, and gives it back."""
    flows = amount(**FLOWS)
    resource.setrlimit(resource.RLIMIT_NOFILE, (2 * flows + 1000,) * 2)
    path = Path(rate_bps=10**9, rtt_ms=20, sink="reno")
    # No flow shall wait for the memory of others, pages.
    guest_base.sysctl("/proc/sys/net/ipv4/tcp_mem", "120000 120000 120000")
    # The first ones leave tables that are kept, of this process's files too.
    used(path, "reno", flows)
    each = {}
    for cc in CONTROLS:
        each[cc], before = used(path, cc, flows)
        no_leak(f"{flows} flows of {cc}", flows, before)
    note(f"{flows} flows, bytes each (both ends): " + ", ".join(
        f"{cc} {size:.0f}" for cc, size in each.items()))
    if padded():
        return
    for cc, size in each.items():
        assert abs(size - each["reno"]) <= TOLERANCE + SLACK / flows, cc


def fill(bench, queues):
    """One packet into each queue; what is sent first HTB lets pass."""
    for number in (0, 0, *range(queues)):
        bench.out.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, number)
        bench.out.send(ipv4(number, 1514, 0))


def check_queues():
    """65 536 queues: their tables, all of them in use, and all given back."""
    queues = QUEUES
    for name in list(ORDERS)[:amount(1, 3)]:
        words, due = ORDERS[name]
        bench = Bench()
        bench.htb(HOLD_BPS, 1514, None)
        before = memory()
        with bench.a:
            bench.rtnl.delete("va", QDISC, bench.where)
            bench.rtnl.sbrm("va", fq_rr_options(
                flows=queues, classify=BY_PRIORITY, limit=queues,
                memory_limit=1 << 31, **words), QDISC, bench.where,
                name=b"fq_rr\0")
        each = (memory().bytes - before.bytes) / queues
        fill(bench, queues)
        stats = bench.stats()
        note(f"{name}: {stats.x.flows} of {queues} queues in use, "
             f"{stats.x.collisions} collisions, {each:.1f} bytes each, packets' "
             f"memory {stats.x.memory} bytes")
        assert abs(each - due) < 1 or padded()
        assert stats.x.flows == stats.x.flows_max == queues
        assert not stats.drops and not stats.x.collisions
        with bench.a:
            bench.rtnl.delete("va", QDISC, bench.where)
        bench.into.close()
        no_leak(f"{queues} queues, {name}", queues, before)
        del bench
        gc.collect()
        guest_base.cleanup()


if __name__ == "__main__":
    guest_base.main(globals())
