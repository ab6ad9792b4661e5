# SPDX-License-Identifier: GPL-2.0
"""The limits of a job, at every place. They are far above what a job needs, and end a job
that hangs."""

import re
import resource
from collections import defaultdict

from ..experiments import network_parts

# More flows or more bytes in flight than that want more memory, most of it only for
# tcp_mem, which is a sixteenth of it, to be above what is in flight, in the buffers
# of both hosts and with the headers of the kernel: the host sees 0.5 GB of it.
FLOWS_IN_MEMORY, BYTES_IN_MEMORY = 1000, 5 * 10**6
MEMORY_MB, MORE_MB = 768, 8192
# MiB of address space that each process of a run on the host may have. Its kernel
# has no memory of its own that could be limited. tcpdump, Mininet and numpy, the
# largest, map some 100 MiB each, numpy for each of its threads: host.py gives it one.
PROCESS_MB = 4096
# What Python, the C library and the programs of tools/ say where there is none left.
NO_MEMORY = re.compile(r"\bMemoryError\b|Cannot allocate memory|out of memory")
# Beyond the traffic, s: in virtual time, and in real time, where building the
# network, the calibration and the collection take time, too.
VIRTUAL_GRACE_S, REAL_GRACE_S = 300, 600
# How long a run that is told to end may take to remove its namespaces, s.
END_S = 60


def virtual_s(job):
    """Largest virtual time of a job with all its cases, s."""
    return job["virtual_s"] + VIRTUAL_GRACE_S


def real_s(job):
    """Largest real time of a job at a place where traffic takes real time, s."""
    return job["virtual_s"] + REAL_GRACE_S


def process_bytes():
    """Largest address space of a process of a run on the host, bytes: not more than that of this
    process, which may not be permitted to raise its own limit."""
    return min([PROCESS_MB << 20, *(
        most for most in resource.getrlimit(resource.RLIMIT_AS)
        if most != resource.RLIM_INFINITY)])


def memory_mb(job):
    """MiB for the kernel of a job."""
    flows = max(len(case["flows"]) for case in job["cases"])
    in_flight = max(_in_flight({**job["parameters"], **case["values"]})
                    for case in job["cases"])
    for case in job["cases"]:
        built, rates = case.get("network") or job["topology"], defaultdict(list)
        for _, rate_bps, *name in case.get("rates", ()):
            rates[name[0] if name else None].append(rate_bps)
        in_flight = max([in_flight, *(
            _in_flight({"rate_mbit": max([link["rate_bps"], *rates[link["name"]],
                                          *rates[None]]) / 1e6,
                        "rtt_ms": path["rtt_ms"]})
            for link in network_parts.of(built, "link")
            for path in network_parts.of(built, "path")
            if link["name"] in path["links"])])
    return MEMORY_MB if flows <= FLOWS_IN_MEMORY and \
        in_flight <= BYTES_IN_MEMORY else MORE_MB


def _in_flight(values):
    """Bytes that a link of one round trip has in flight."""
    return values["rate_mbit"] * 1e6 / 8 * values.get("rtt_ms", 0) / 1e3
