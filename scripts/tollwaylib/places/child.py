# SPDX-License-Identifier: GPL-2.0
"""Jobs in processes of their own on this machine, with limits of time and memory."""

import contextlib
import os
import subprocess
import sys
import threading
import time

from .. import errors
from ..errors import TollwayError
from ..paths import TOP
from ..programs import WITH_US
from . import limits
from .session import end_session


class Children:
    """The processes of a place, each of which runs a job.

    program: the module of Python that runs the job in a file, see guest/job.py for what
    it leaves. name: what it is in sentences, "the run".
    """

    def __init__(self, program, name):
        self.program, self.name = program, name
        self._lock, self._running, self._stopped = threading.Lock(), set(), False

    def run(self, folder, on_line, limit_s, core=None, environment=None):
        """Run the job in folder/job.json; returns when it has ended.

        on_line: called with each line of its console, which folder/console.log keeps.
        limit_s: seconds of real time. core: the only core that it may use. environment:
        variables that are added. Raises TollwayError if it fails, takes too long or is
        stopped.
        """
        memory, expired = limits.process_bytes(), threading.Event()
        # However this process ends, the job ends too, and cleans up. A Ctrl-C
        # reaches it once, through stop(), as it has a session of its own.
        with open(folder / "console.log", "w", encoding="utf-8") as log, \
                subprocess.Popen(
                    [*(["taskset", "-c", str(core)] if core is not None else ()),
                     "prlimit", f"--as={memory}", *WITH_US,
                     sys.executable, "-m", self.program, str(folder / "job.json")],
                    # Python looks for modules in the working directory first, which
                    # may be one that others can write to.
                    cwd="/", text=True, errors="replace",
                    env=dict(os.environ, PYTHONPATH=str(TOP / "scripts"),
                             OPENBLAS_NUM_THREADS="1", **(environment or {})),
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    start_new_session=True) as process:
            def expire():
                expired.set()
                _end(process)

            watchdog = threading.Timer(limit_s, expire)
            try:
                watchdog.start()
                self._begin(process)
                for line in process.stdout:
                    log.write(line)
                    on_line(line.rstrip("\n"))
            except BaseException:
                _end(process)
                raise
            finally:
                watchdog.cancel()
                with self._lock:
                    self._running.discard(process)
        if expired.is_set():
            raise TollwayError(
                f"{self.name} did not finish within {limit_s:g} s and was stopped: "
                f"see {folder / 'console.log'}")
        if self._stopped:
            raise TollwayError(f"{self.name} was stopped")
        if process.returncode:
            error = errors.of_run(folder, process.returncode)
            said = (folder / "console.log").read_text(errors="replace")
            if limits.NO_MEMORY.search(f"{error}\n{said}"):
                raise TollwayError(f"{error}. There was no memory left, of the host or "
                                   f"of a process, which may have {memory >> 20} MiB")
            raise error

    def _begin(self, process):
        """A job runs; it ends at once if all were stopped before."""
        with self._lock:
            self._running.add(process)
            stopped = self._stopped
        if stopped:
            _end(process)

    def stop(self):
        """End all jobs, which remove what they have made, and those that begin later."""
        with self._lock:
            self._stopped = True
            running = [process for process in self._running if process.poll() is None]
        # All at the same time: one that takes long does not delay the others.
        for process in running:
            process.terminate()
        deadline = time.monotonic() + limits.END_S
        for process in running:
            _wait(process, deadline - time.monotonic())


def _end(process):
    if process.poll() is None:
        process.terminate()
        _wait(process, limits.END_S)


def _wait(process, seconds):
    """Wait for the end of a process that was told to end; then kill what is left."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(max(0, seconds))
    # What is left of it would keep the console open, and a namespace goes
    # with its last process.
    end_session(process.pid)
    process.wait()
