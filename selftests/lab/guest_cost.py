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
REPEATS = 2
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
# The host is busy with other things too. In virtual time the clock that codel
# reads for each packet costs nothing, either: elsewhere it takes 20 to 40
# cycles twice.
TOLERANCE = 1.25
# Many flows are about caches, which are shared with that.
MANY, TOLERANCE_OF_MANY = 10000, 2


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


def table(hashed, flow_counts):
    """{name: [cycles for each of flow_counts]}"""
    best = {}
    for _ in range(REPEATS):
        for name, words in {**OTHERS, **OURS}.items():
            row = [cycles(words, flows, hashed) for flows in flow_counts]
            best[name] = list(map(min, row, best.get(name, row)))
    note(f"cycles of enqueue and dequeue, packets "
         f"{'with' if hashed else 'without'} their hash")
    note(f"{'flows':20}" + "".join(f"{flows:8}" for flows in flow_counts))
    for name, row in best.items():
        note(f"{name:20}" + "".join(f"{value:8}" for value in row))
    return best


def no_dearer(best, flow_counts, ours, others):
    """Assert that some of ours cost no more than all of `others`."""
    for index, flows in enumerate(flow_counts):
        least = min(best[name][index] for name in others)
        most = least * (TOLERANCE if flows < MANY else TOLERANCE_OF_MANY)
        for name in ours:
            assert best[name][index] <= most, \
                f"{name} at {flows} flows: {best[name][index]}, not {least}"


def check_cost():
    """The round robins cost what fq_codel does, the others less than sfq."""
    run("ip link add cost type veth peer name tsoc")
    # Without a hash most of the time goes into reading headers.
    for hashed, flow_counts in ((True, FLOWS), (False, FLOWS[:2])):
        best = table(hashed, flow_counts)
        no_dearer(best, flow_counts,
                  [name for name in OURS if "rr, drop" in name],
                  ("fq_codel", "sfq"))
        no_dearer(best, flow_counts, OURS, ("sfq",))
    run("ip link del cost")


if __name__ == "__main__":
    guest_base.main(globals())
