# SPDX-License-Identifier: GPL-2.0
"""What queues cost per packet and congestion controls per ACK, in cycles.

qdisc_cost.ko takes a packet out of a qdisc and puts it back, with packets of
many flows in the queue; cc_cost.ko counts the cycles of a congestion control's
callbacks while real connections use it. Computing takes no virtual time, but
the time stamp counter is that of the host.

What they measure is in costs.json: test_cost.py judges it, and `make bench` runs
them several times, for medians. What is measured is in tollwaylib/report/costs.py.
"""

import json
import re
import socket
import struct
import time
from pathlib import Path

import guest_base
import tcp_bench
from guest_base import run
from tcp_bench import info, pump

KUNIT = "/run/tollway/build/modules/selftests/kunit"
# What else runs on the host only ever adds: each is measured so many times.
REPEATS = 5
# By which the clock of the lab goes on when it is read.
CLOCK_NS = 256
RATE_BPS, FLOWS, SECONDS = 10**8, 4, 3


def rounds():
    """How often everything is measured, all the others in between."""
    return guest_base.SETTINGS.get("rounds", REPEATS)


def keep(kind, found):
    """Have {name: [value of each round]} or the like in costs.json."""
    path = Path("costs.json")
    costs = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**costs, kind: found}, indent=1))


def packet_cycles(column):
    """(cycles of one dequeue and one enqueue, readings of the clock in them,
    cycles of one such reading in real time)."""
    flows = column["flows"]
    run(f"tc qdisc replace dev cost root handle 1: {column['words']}")
    run(f"insmod {KUNIT}/qdisc_cost.ko device=cost flows={flows} "
        f"each={column['each']} "
        f"hashed={int(column['hashed'])} fresh={int(column['fresh'])}")
    found = re.findall(r"qdisc_cost: \S+ flows (\d+) .* cycles (\d+) "
                       r"passed (\d+) clock (\d+)", run("dmesg"))
    run("rmmod qdisc_cost")
    run("tc qdisc del dev cost root")
    counted, cycles, passed_ns, clock = map(int, found[-1])
    assert counted == flows
    return cycles, round(passed_ns / CLOCK_NS), clock


def check_packets():
    """What a packet costs in each queue."""
    queues = guest_base.SETTINGS["given"]["queues"]
    found = {name: {"cycles": [[] for _ in columns], "clock": []}
             for name, columns in queues.items()}
    run("ip link add cost type veth peer name tsoc")
    for _ in range(rounds()):
        for name, row in found.items():
            for index, column in enumerate(queues[name]):
                cycles, row["reads"], clock = packet_cycles(column)
                row["cycles"][index].append(cycles)
                row["clock"].append(clock)
        keep("packets", found)
    run("ip link del cost")


def callbacks(name):
    """{callback: (calls, cycles, interrupted)} and the number of ACKs."""
    text = run("dmesg")
    text = text[text.rindex("cc_cost: timing"):]
    found = {match[1]: tuple(map(int, match.groups()[1:])) for match in
             re.finditer(rf"cc_cost: {name} (\w+) calls (\d+) cycles (\d+) "
                         r"late (\d+)", text)}
    acks, = re.findall(rf"cc_cost: {name} acks (\d+)", text)
    return found, int(acks)


def ack_cycles(name):
    """What `name` costs for an ACK, on a path as it wants it."""
    words, name = guest_base.SETTINGS["given"]["controls"][name], name.split()[0]
    path = tcp_bench.Path(rate_bps=RATE_BPS, rtt_ms=20, quickack=True, **words)
    # An ACK for each segment, as each leaves by itself.
    path.s.run("ip link set dev right gso_max_segs 1")
    run(f"insmod {KUNIT}/cc_cost.ko cc={name}")
    flows = [path.connect("timed") for _ in range(FLOWS)]
    pump(flows, SECONDS)
    last = [info(flow) for flow in flows]
    for flow in flows:
        flow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                        struct.pack("=ii", 1, 0))
        flow.close()
    guest_base.cleanup()
    for _ in range(100):
        if not run("rmmod cc_cost", check=False):
            break
        time.sleep(1)
    calls, acks = callbacks(name)
    assert acks > 5000, (name, acks)
    assert acks >= 0.9 * sum(one.segs_in for one in last), (name, acks)
    return {"cycles": sum(cycles for _, cycles, _ in calls.values()) / acks,
            "acks": acks, "callbacks": calls}


def check_acks():
    """What an ACK costs with each congestion control."""
    found = {name: {"cycles": [], "acks": [], "callbacks": []}
             for name in guest_base.SETTINGS["given"]["controls"]}
    for _ in range(rounds()):
        for name in found:
            for key, value in ack_cycles(name).items():
                found[name][key].append(value)
        keep("acks", found)


if __name__ == "__main__":
    guest_base.main(globals())
