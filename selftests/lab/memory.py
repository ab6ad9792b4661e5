# SPDX-License-Identifier: GPL-2.0
"""What the kernel's memory is used for, in the lab."""

import time
from collections import namedtuple
from pathlib import Path

from guest_base import SETTINGS, note

# What modules, sockets and qdiscs can hold; the page cache and what programs
# have are others'.
KERNELS = ("SUnreclaim", "VmallocUsed", "Percpu")

# Pages that caches of the kernel fill anew, bytes.
SLACK = 1 << 16

# bytes: what the kernel has for itself; slabs: {cache: (objects, bytes of one)}.
Memory = namedtuple("Memory", "bytes slabs")


def memory():
    """The Memory in use, once what is free has been given back."""
    # Freed after a grace period, or only kept for the next one who asks.
    time.sleep(1)
    Path("/proc/sys/vm/drop_caches").write_text("3")
    time.sleep(1)
    for cache in Path("/sys/kernel/slab").glob("*/shrink"):
        cache.write_text("1")
    words = dict(line.split(":") for line in
                 Path("/proc/meminfo").read_text().splitlines())
    slabs = {}
    for line in Path("/proc/slabinfo").read_text().splitlines()[2:]:
        name, active, _, size = line.split()[:4]
        slabs[name] = int(active), int(size)
    return Memory(sum(int(words[name].split()[0]) << 10 for name in KERNELS),
                  slabs)


def grown(before, after):
    """{cache: how many more objects}, of those that have more."""
    return {name: active - before.slabs.get(name, (0, 0))[0]
            for name, (active, _) in after.slabs.items()
            if active > before.slabs.get(name, (0, 0))[0]}


def no_leak(what, times, before):
    """Assert that something done so many times since has left nothing.

    One object for every second time would show in its cache, and one of 128
    bytes for each of a thousand times in the sum. KASAN keeps what is freed
    for a while: there kmemleak looks.
    """
    after = memory()
    more = after.bytes - before.bytes
    note(f"{what}: kernel memory {more:+} bytes of {before.bytes}, objects "
         f"{grown(before, after)}")
    if SETTINGS["flavour"] == "debug":
        return
    assert more <= SLACK, f"{more} bytes more"
    for name, objects in grown(before, after).items():
        assert objects < max(times // 2, 100), f"{name}: {objects} more"
