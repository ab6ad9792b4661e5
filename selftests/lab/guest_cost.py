# SPDX-License-Identifier: GPL-2.0
"""What fq_rr costs beside the kernel's fair queues, in cycles.

qdisc_cost.ko takes a packet out and puts it back, with packets of many flows
in the queue. Computing takes no virtual time, but the time stamp counter is
that of the host.
"""

import re

import guest_base
from guest_base import note, run

ROOM = "limit 65535 flows 65536"
# What else runs on the host only ever adds: each is measured so many times.
REPEATS = 3
# {name: words}; codel must not come to drop, and time passes at each reading.
OTHERS = {
    "fq_codel": f"fq_codel {ROOM} memory_limit 1gb target 100s interval 200s",
    "sfq": "sfq limit 65535 flows 65407 divisor 65536 depth 127",
}
OURS = {
    "rr, drop-longest": f"fq_rr {ROOM} memory_limit 1gb overflow drop-longest",
    "rr, drop-last": f"fq_rr {ROOM} memory_limit 1gb overflow drop-last",
    "drr, drop-longest": f"fq_rr {ROOM} memory_limit 1gb service drr overflow drop-longest",
    "rr, longest bytes": f"fq_rr {ROOM} memory_limit 1gb longest bytes",
    "wfq, drop-longest": f"fq_rr {ROOM} memory_limit 1gb service wfq overflow drop-longest",
}
FLOWS = (1, 100, 10000)
# Beside the dearer one of the others, as noise of a busy host remains.
TOLERANCE = 1.1


def cycles(words, flows, hashed):
    """Cycles of one dequeue and one enqueue."""
    run(f"tc qdisc replace dev cost root handle 1: {words}")
    run(f"insmod qdisc_cost.ko device=cost flows={flows} hashed={int(hashed)}")
    found = re.findall(r"qdisc_cost: \S+ flows (\d+) .* cycles (\d+)",
                       run("dmesg"))
    run("rmmod qdisc_cost")
    run("tc qdisc del dev cost root")
    assert int(found[-1][0]) == flows
    return int(found[-1][1])


def table(hashed):
    """{name: [cycles for each of FLOWS]}"""
    best = {}
    for _ in range(REPEATS):
        for name, words in {**OTHERS, **OURS}.items():
            row = [cycles(words, flows, hashed) for flows in FLOWS]
            best[name] = list(map(min, row, best.get(name, row)))
    note(f"cycles of enqueue and dequeue, packets "
         f"{'with' if hashed else 'without'} their hash")
    note(f"{'flows':20}" + "".join(f"{flows:8}" for flows in FLOWS))
    for name, row in best.items():
        note(f"{name:20}" + "".join(f"{value:8}" for value in row))
    return best


def no_dearer(best, ours):
    """Assert that some of ours cost no more than both others."""
    for index, flows in enumerate(FLOWS):
        least = min(best[name][index] for name in OTHERS)
        for name in ours:
            assert best[name][index] <= TOLERANCE * least, \
                f"{name} at {flows} flows: {best[name][index]}, not {least}"


def check_cost():
    """The round robins are no dearer than fq_codel and sfq."""
    run("ip link add cost type veth peer name tsoc")
    for hashed in (True, False):
        best = table(hashed)
        no_dearer(best, [name for name in OURS if "rr, drop" in name])
    run("ip link del cost")


if __name__ == "__main__":
    guest_base.main(globals())
