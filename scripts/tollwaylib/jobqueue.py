# SPDX-License-Identifier: GPL-2.0
"""Jobs from one queue, some at a time, each on a core of its own."""

import concurrent.futures
import os
import queue
import threading


# The main thread runs the handlers of signals. When it waited for the others without a limit, four
# of 56 interrupts had no effect until all jobs had ended: it had not left its wait for them.
AWAKE_S = 0.1


def cores():
    """The cores that this process may use, as a list."""
    return sorted(os.sched_getaffinity(0))


def run(jobs, on_cores, run_one, stop):
    """Call run_one(job, core) for all jobs, in their order, each in a thread.

    on_cores: the core of each of the jobs that run at the same time. The first error, or an
    interrupt of the caller, ends all: later jobs are not started, stop() must end the running
    ones, and the error is raised.
    """
    idle = queue.SimpleQueue()
    for core in on_cores:
        idle.put(core)
    # Set in the thread of what failed, before it could take the next job.
    failed = threading.Event()

    def one(job):
        if failed.is_set():
            return
        core = idle.get()
        try:
            run_one(job, core)
        except BaseException:
            failed.set()
            raise
        finally:
            idle.put(core)

    with concurrent.futures.ThreadPoolExecutor(len(on_cores)) as pool:
        futures = []
        try:
            # One by one: an interrupt may come between two of them.
            for job in jobs:
                futures.append(pool.submit(one, job))
            left = futures
            while left:
                ended, left = concurrent.futures.wait(
                    left, AWAKE_S, concurrent.futures.FIRST_EXCEPTION)
                for future in ended:
                    future.result()
        except BaseException:
            # Also for a job that the pool has and this list does not yet.
            failed.set()
            for future in futures:
                future.cancel()
            stop()
            raise
