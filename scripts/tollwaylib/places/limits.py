# SPDX-License-Identifier: GPL-2.0
"""What a job may take, at every place: far more than it should, to end one that
hangs."""

# More flows than that want more memory, most of it only for tcp_mem, which is a
# sixteenth of it, to be above what is in flight: the host sees 0.5 GB of it.
FLOWS_IN_MEMORY = 1000
MEMORY_MB, MANY_FLOWS_MB = 768, 8192
# Beyond the traffic, s: in virtual time, and in real time, where building the
# network, the calibration and the collection take time, too.
VIRTUAL_GRACE_S, REAL_GRACE_S = 300, 600
# How long a run that is told to end may take to remove its namespaces, s.
END_S = 60


def virtual_s(job):
    """Seconds of virtual time that a job may take, all its cases together."""
    return job["virtual_s"] + VIRTUAL_GRACE_S


def real_s(job):
    """Seconds that a job may take where traffic takes real time."""
    return job["virtual_s"] + REAL_GRACE_S


def memory_mb(job):
    """MiB for the kernel of a job."""
    most = max(len(case["flows"]) for case in job["cases"])
    return MEMORY_MB if most <= FLOWS_IN_MEMORY else MANY_FLOWS_MB
