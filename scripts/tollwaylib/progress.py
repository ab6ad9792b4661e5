# SPDX-License-Identifier: GPL-2.0
"""Lines and bars that show the progress of long work."""

import atexit
import contextlib
import re
import sys
import threading
import time

# Seconds between lines of work that counts, or that many jobs do at a time: on
# a terminal, and elsewhere.
MOVING_S, PLAIN_S = 0.2, 10
# "second 5 of 62", "case 3 of 20: name".
_SO_FAR = re.compile(r"(\d+(?:\.\d+)?) of (\d+(?:\.\d+)?)")


def duration(seconds):
    """A time as a person reads it: 40 s, 12 min, 3 h 20 min."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    if minutes < 90:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


def part_of(text):
    """The completed fraction of a job, 0 to 1, from its line of progress, or None."""
    found = _SO_FAR.search(text)
    if not found or not float(found[2]):
        return None
    return min(float(found[1]) / float(found[2]), 1.0)


def left_s(passed_s, part):
    """Remaining seconds at the present pace; None at both ends."""
    return passed_s * (1 - part) / part if 0 < part < 1 else None


def _times(passed_s, seconds_left):
    return duration(passed_s) + ("" if seconds_left is None else
                                 f", about {duration(seconds_left)} left")


class Bars:
    """Bars on a terminal, drawn by rich. ImportError where it is missing."""

    def __init__(self, stream):
        # Slow to import, and only for a terminal.
        from rich.console import Console
        from rich.progress import (BarColumn, Progress as Drawn,
                                   ProgressColumn, TextColumn)
        from rich.text import Text

        class Times(ProgressColumn):
            """How long it has been, and what is left, at each moment."""

            def render(self, task):
                now, until = time.monotonic(), task.fields["until"]
                return Text(_times(now - task.fields["since"], None if
                                   until is None else max(until - now, 0)))

        self.console = Console(file=stream)
        self.drawn = Drawn(TextColumn("{task.description}", markup=False),
                           BarColumn(bar_width=20), Times(),
                           console=self.console, transient=True,
                           redirect_stdout=False, redirect_stderr=False)
        self.tasks = {}

    def show(self, key, text, since, part=None, left=None):
        """Show a bar, or change it. since: when it began. part: 0 to 1, None if
        it is not known. left: seconds."""
        self.drawn.start()
        numbers = {"description": text, "since": since,
                   "until": None if left is None else time.monotonic() + left,
                   "total": None if part is None else 1.0,
                   "completed": part or 0.0}
        if key in self.tasks:
            self.drawn.update(self.tasks[key], **numbers)
        else:
            self.tasks[key] = self.drawn.add_task(**numbers)

    def remove(self, key):
        """Take a bar away."""
        if key in self.tasks:
            self.drawn.remove_task(self.tasks.pop(key))

    def say(self, text):
        """Print a line that stays, above the bars."""
        self.console.print(text, markup=False, highlight=False,
                           soft_wrap=True)

    def stop(self):
        """Take all bars away, and give the terminal back."""
        for key in list(self.tasks):
            self.remove(key)
        self.drawn.stop()


class Job:
    """One of several jobs that run at a time."""

    def __init__(self, progress, name):
        self.progress, self.name = progress, name
        self.part, self.started = 0.0, time.monotonic()

    def step(self, text):
        """Print what the job does now."""
        part = part_of(text)
        if part is not None:
            self.part = part
        self.progress.job_step(self, text)

    def say(self, text):
        """Print a line that stays."""
        self.progress.say(text)


# What still draws on the terminal, see stop().
_drawing = set()


def stop():
    """End all bars and moving lines: something else is printed from now on."""
    for progress in list(_drawing):
        progress.done()


# A terminal has its cursor again, whatever ends the process.
atexit.register(stop)


class Progress:
    """Bars on a terminal, or one line that moves if rich is missing; plain
    lines elsewhere (stderr)."""

    def __init__(self, stream=None):
        # sys.stderr is not the default of the argument, which is read on import:
        # it may be closed then, and be open when a run begins.
        self.stream = stream = stream or sys.stderr
        self.moving = stream.isatty()
        self.bars = None
        if self.moving:
            with contextlib.suppress(ImportError):
                self.bars = Bars(stream)
        self.started = time.monotonic()
        self.last = 0.0
        self.width = 0
        self.lock = threading.RLock()
        self.total = self.ended = 0
        self.called = "runs"
        self.running = []

    def step(self, text):
        """Say what is being done now."""
        with self.lock:
            # The next count is of something else.
            self.started = self.started if self.total else time.monotonic()
            if self.bars:
                self._draw("now", text, time.monotonic())
            else:
                self._print(text)
            self.last = time.monotonic()

    def count(self, text, so_far):
        """Say how far it is, at most every 0.2 s (10 s without a terminal)."""
        with self.lock:
            if self._is_early():
                return
            part = part_of(so_far)
            left = None if part is None else left_s(self._passed(), part)
            if self.bars:
                self._draw("now", f"{text}: {so_far}", self.started, part,
                           left)
            else:
                self._print(f"{text}: {so_far}, "
                            f"{_times(self._passed(), left)}")

    def jobs(self, total, called="runs"):
        """From now on `total` jobs are run, some at a time. called: what they
        are."""
        with self.lock:
            self.called = called
            self.started = time.monotonic()
            self.total, self.ended = total, 0
            if self.bars:
                self.bars.remove("now")

    @contextlib.contextmanager
    def job(self, name):
        """A job that runs; gives its Job."""
        one = Job(self, name)
        with self.lock:
            self.running.append(one)
        try:
            yield one
            with self.lock:
                self.ended += 1
        finally:
            with self.lock:
                self.running.remove(one)
                if self.bars:
                    self.bars.remove(one)
        with self.lock:
            if self.total > 1 and self.bars:
                self._show_all()
            elif self.total > 1:
                self._print(f"{name}: done; {self.so_far()}")
                self.last = time.monotonic()

    def job_step(self, job, text):
        """A job says what it does: each time if it is the only one, else as
        often as a count."""
        with self.lock:
            said = f"{job.name}: {text}"
            if self.bars:
                self._draw(job, said, job.started, job.part, left_s(
                    time.monotonic() - job.started, job.part))
                self._show_all()
            elif self.total <= 1:
                self._print(said)
            elif not self._is_early():
                self._print(f"{said}; {self.so_far()}")

    def so_far(self):
        """How many jobs are done, and when all will be."""
        return f"{self.ended} of {self.total} {self.called} done in " \
            f"{_times(self._passed(), self.left_s())}"

    def left_s(self):
        """Seconds until all jobs are done at the pace up to now, or None."""
        return left_s(self._passed(), self._part()) if self.total else None

    def say(self, text):
        """Print a line that stays."""
        with self.lock:
            if self.bars:
                self.bars.say(text)
                return
            self._end_line()
            print(text, file=self.stream, flush=True)

    def done(self):
        """End the bars or the moving line."""
        with self.lock:
            _drawing.discard(self)
            self.total = 0
            if self.bars:
                self.bars.stop()
            self._end_line()

    def _end_line(self):
        if self.width:
            print(file=self.stream)
        self.width = 0

    def _part(self):
        done = self.ended + sum(job.part for job in self.running)
        return done / self.total

    def _passed(self):
        return time.monotonic() - self.started

    def _is_early(self):
        """Is it too early for one more line? If not, the time is noted."""
        now = time.monotonic()
        if now - self.last < (MOVING_S if self.moving else PLAIN_S):
            return True
        self.last = now
        return False

    def _show_all(self):
        """The bar of all jobs."""
        if self.total > 1:
            self._draw("all", f"{self.ended} of {self.total} {self.called} done",
                       self.started, self._part(), self.left_s())

    def _draw(self, *arguments):
        _drawing.add(self)
        self.bars.show(*arguments)

    def _print(self, text):
        if self.moving:
            _drawing.add(self)
            print(f"\r{text:<{self.width}}", end="", file=self.stream,
                  flush=True)
            self.width = len(text)
        else:
            print(text, file=self.stream, flush=True)
