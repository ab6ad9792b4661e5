# SPDX-License-Identifier: GPL-2.0
"""Run a command in the lab: the real kernel, in virtual time, without root."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from .. import programs
from ..errors import TollwayError
from ..kernels import build
from ..kernels.usermode import kernel as lab_kernel
from ..paths import TOP
from .limits import MEMORY_MB
from .session import end_session

OUT, SRC, BUILD = "/run/tollway/out", "/run/tollway/src", "/run/tollway/build"
# Boot date: a fixed one, 2005-01-01, the year of CP05.
START_NS = 1104537600 * 10**9
DEFAULT_WALL_S = 3600
# For libmount: make mounts by mount(2), not by fsopen(2) and fsconfig(2).
MOUNT_2 = "LIBMOUNT_FORCE_MOUNT2=always"
# What try_boot() does: a namespace, and a queue of ours that tc knows.
TRIAL = """unshare --net true
tc qdisc add dev lo root sbrm
tc qdisc show dev lo"""
TRIAL_S = 120
# Where temporary files go that TMPDIR does not send elsewhere.
TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")
# How often the console is looked at, s.
POLL_S = 0.1
DEFAULT_VIRTUAL_S = 24 * 3600
# What a kernel in trouble says; "sleep forever" is of one that waits for nothing.
TROUBLE = re.compile(r"Kernel panic.*|BUG: .*|sleep forever.*")
# Of OUT: what the host and the guest tell each other, which is no file of the user.
OWN = ".lab"


class Lab:
    """A kernel and what was built for it, ready to boot any number of times."""

    name = "the lab"
    stopped = False

    def __init__(self, flavour="plain", progress=None):
        programs.need(programs.LAB)
        self.temporary = temporary_dir()
        self.kernel = lab_kernel(flavour, progress)
        if progress:
            progress.step("building the modules and tools")
        self.modules = build.modules(self.kernel)
        self.tools = build.tools()
        self.sessions = set()

    def stop(self):
        """End every kernel that this Lab runs or starts, from another thread."""
        self.stopped = True
        for leader in list(self.sessions):
            end_session(leader)

    def try_boot(self):
        """Boot, use what experiments need most, power off; returns the real time, s. TollwayError
        says what failed, and where the log is."""
        out_dir = scratch_dir()
        lines = []
        started = time.monotonic()
        status = self.run(["sh", "-ex", "-c", TRIAL], out_dir, wall_s=TRIAL_S,
                          virtual_s=TRIAL_S, on_line=lines.append)
        if status:
            raise TollwayError(f"{self.name} boots, but a command fails there: "
                               f"{last_words(lines, 2)}: see "
                               f"{out_dir / 'console.log'}")
        shutil.rmtree(out_dir, ignore_errors=True)
        return time.monotonic() - started

    def run(self, argv, out_dir, seed=1, wall_s=DEFAULT_WALL_S,
            virtual_s=DEFAULT_VIRTUAL_S, core=None, modules=build.MODULES,
            environment=None, interactive=False, on_line=None,
            memory_mb=MEMORY_MB):
        """Boot, run `argv` as root of the guest, power off.

        argv: command; in the guest, OUT is `out_dir`, SRC this checkout, BUILD the folder of
        built files, and the working directory is OUT. seed: seed of all random numbers of the
        guest. wall_s, virtual_s: limits in seconds. core: core of the host, by default the
        first allowed one. memory_mb: MiB of the guest; the host provides only what is used.
        modules: modules to load first. on_line: called with each line of the console. Returns
        the exit status; out_dir/console.log has the text of the console.

        Raises TollwayError if the kernel panics, hangs or ends early; then out_dir/kernel.log
        has its messages.
        """
        out_dir = Path(out_dir).absolute()
        own = out_dir / OWN
        # What a killed run has left, and nothing of the user.
        if (own / "run.json").is_file() or \
                (own.is_dir() and not os.listdir(own)):
            shutil.rmtree(own)
        elif os.path.lexists(own):
            raise TollwayError(f"{own} exists and was not made by tollway: "
                               "move it, or choose another --out")
        own.mkdir(parents=True)
        (own / "run.json").write_text(json.dumps({
            "argv": list(map(str, argv)), "cwd": OUT,
            "virtual_s": virtual_s,
            "environment": environment or {},
            "modules": [f"{BUILD}/modules/{name}" for name in modules]}))
        # UML keeps its pid and a control socket there.
        uml_dir = out_dir / ".uml"
        uml_dir.mkdir(exist_ok=True)
        try:
            lines = self._boot(
                self.command(out_dir, uml_dir, seed, core, interactive,
                             memory_mb),
                out_dir, wall_s, interactive, on_line)
            return self._status(out_dir, lines)
        finally:
            for folder in (uml_dir, own):
                shutil.rmtree(folder, ignore_errors=True)

    def command(self, out_dir, uml_dir, seed, core, interactive,
                memory_mb=MEMORY_MB):
        """The command line that boots the lab.

        The kernel mixes its command line into its random numbers, so it must be the same for
        each run and checkout. The directories are open file descriptors; hostfs finds their
        names in /proc/self/fd.
        """
        if core is None:
            core = min(os.sched_getaffinity(0))
        fds = dict(zip("45678", (out_dir, TOP, self.tools, self.modules,
                                   uml_dir)))
        opened = " ".join(f'{fd}<"${index}"' for index, fd in
                          enumerate(fds, start=1))
        # However this process ends, the kernel ends with it, and its guests
        # with the kernel: without the one that traces them they would go on.
        guard = "" if interactive else (
            "setpriv --pdeathsig TERM sh -c 'trap \"kill -KILL 0\" TERM; "
            "while :; do sleep 86400 & wait \"$!\"; done' "
            "< /dev/null > /dev/null 2>&1 & ")
        words = [
            "sh", "-c", f'{guard}exec {opened}; shift {len(fds)}; exec "$@"',
            "lab", *map(str, fds.values()),
            "setpriv", "--pdeathsig", "KILL",
            "taskset", "-c", str(core), "setarch", "-R",
            str(self.kernel.image), f"mem={memory_mb}M", "umid=lab",
            "uml_dir=/proc/self/fd/8/", "time-travel=inf-cpu",
            f"time-travel-start={START_NS}", f"seed={seed}",
            "rootfstype=hostfs", "rootflags=/", "ro",
            "loglevel=4" if interactive else "quiet", "oops=panic",
            "con=null", "con0=fd:0,fd:1"]
        if self.kernel.has_seccomp:
            words.append("seccomp=on")
        if self.kernel.flavour == "debug":
            words += ["panic_on_warn=1", "kmemleak=on"]
        # The checkout lies where it lies: mount it, then run its init. From
        # util-linux 2.39 on, mount hands options over one by one (fsconfig(2)),
        # where kernels want a name before hostfs' directory, if they take it at
        # all; with mount(2) all kernels take it as it is.
        first = (f"export {MOUNT_2}; mount -t tmpfs tmpfs /run; mkdir -p {SRC}; "
                 f"mount -t hostfs -o /proc/self/fd/5 hostfs {SRC}; "
                 f"mount -o remount,bind,ro {SRC}; exec {SRC}/scripts/lab/init")
        return words + ["init=/bin/sh", "--", "-c", f'"{first}"']

    def _boot(self, command, out_dir, wall_s, interactive, on_line):
        # What the shell that starts it stands in may have been removed.
        surroundings = {"cwd": "/", "env": {"PATH": os.environ["PATH"],
                                            "TMPDIR": self.temporary}}
        if interactive:
            subprocess.run(command, check=False, **surroundings)
            return []
        # The console is a file, and read from there: on a pipe the kernel gets
        # SIGIO when the reader reads, which is real time inside of the lab.
        console = out_dir / "console.log"
        with open(console, "wb") as output:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True,
                **surroundings)
        expired = threading.Event()

        def expire():
            expired.set()
            end_session(process.pid)

        self.sessions.add(process.pid)
        if self.stopped:
            end_session(process.pid)
        watchdog = threading.Timer(wall_s, expire)
        watchdog.start()
        lines = []
        try:
            # The ends of lines as they are, see is_of_kernel().
            with open(console, encoding="utf-8", errors="replace",
                      newline="\n") as log:
                running = True
                while running:
                    try:
                        process.wait(POLL_S)
                        running = False
                    except subprocess.TimeoutExpired:
                        pass
                    self._read_lines(log, lines, on_line, not running)
        finally:
            watchdog.cancel()
            end_session(process.pid)
            process.wait()
            self.sessions.discard(process.pid)
        if expired.is_set():
            self._keep_log(out_dir, lines)
            raise TollwayError(
                f"{self.name} did not finish within {wall_s:g} s of real time and "
                f"was stopped: see {out_dir / 'kernel.log'}")
        return lines

    @staticmethod
    def _read_lines(log, lines, on_line, at_end):
        """Process the complete lines that were added to the console log."""
        while True:
            start = log.tell()
            line = log.readline()
            if not line.endswith("\n") and not (at_end and line):
                log.seek(start)
                return
            lines.append(line.rstrip("\n"))
            if on_line:
                on_line(lines[-1].rstrip("\r"))

    @staticmethod
    def _keep_log(out_dir, lines):
        (out_dir / "kernel.log").write_text(
            "".join(line.rstrip("\r") + "\n" for line in lines))

    @staticmethod
    def is_of_kernel(line):
        """True for a line of the kernel, false for one of a program. Programs write to a terminal,
        which ends their lines with a carriage return."""
        return not line.endswith("\r")

    def _status(self, out_dir, lines):
        """The exit status of the command, from the lines of the console."""
        path = out_dir / OWN / "status"
        status = path.read_text().strip() if path.exists() else ""
        space = os.statvfs(out_dir)
        if any("No space left on device" in line for line in lines
               if status != "0") or space.f_bavail * space.f_frsize < 1 << 16:
            raise TollwayError(f"{out_dir}: No space left on device")
        # A program may say what it likes, unless the kernel ended before it did.
        trouble = [(number, found) for number, line in enumerate(lines)
                   if not status or self.is_of_kernel(line)
                   for found in [TROUBLE.search(line)] if found]
        if status and not trouble:
            return int(status)
        self._keep_log(out_dir, lines)
        number, found = trouble[0] if trouble else (None, None)
        reason = found[0].strip() if found else "it ended early"
        # Why it panicked has often been said by the program that it ran last.
        before = last_words(lines[:number])
        raise TollwayError(f"{self.name} failed ({reason}" +
                           (f", after: {before}" if before else "") +
                           f"): see {out_dir / 'kernel.log'}")


def of_kernel(line):
    """True for a line that the kernel prints at every boot."""
    return re.match(r"Warning: tempdir|reboot: |Checking |Core dump limits",
                    line)


def print_line(line):
    """Print a line of the console, unless the kernel prints it at every boot."""
    if not of_kernel(line):
        print(line, flush=True)


def last_words(lines, count=1):
    """The last lines of the console that a program has printed, or ""."""
    said = [line.strip() for line in lines if line.strip() and
            not of_kernel(line)]
    return "; ".join(said[-count:])


def temporary_dir():
    """Directory for the file that is the memory of the lab's kernel.

    The kernel also maps this file as code, which the file system must permit.

    Raises TollwayError if there is no such directory.
    """
    named = os.environ.get("TMPDIR")
    for folder in [named] if named else TEMPORARY:
        with contextlib.suppress(OSError), \
                tempfile.TemporaryFile(dir=folder):
            if not os.statvfs(folder).f_flag & os.ST_NOEXEC:
                return os.path.abspath(folder)
    raise TollwayError(
        f"{f'TMPDIR={named}' if named else ', '.join(TEMPORARY)}: the lab needs "
        "a directory for its memory that exists, that you can write to and that "
        "is not mounted noexec: set TMPDIR to one")


def scratch_dir(prefix="tollway-lab-"):
    """A directory for a run without a named output directory."""
    return Path(tempfile.mkdtemp(prefix=prefix))


def shell(lab, out_dir, seed):
    """A shell in the lab on this terminal. Raises TollwayError if the standard input is not a
    terminal."""
    if not sys.stdin.isatty():
        raise TollwayError("tollway lab shell needs a terminal: "
                           "use tollway lab exec COMMAND")
    return lab.run(["/bin/bash", "-i"], out_dir, seed=seed, interactive=True)
