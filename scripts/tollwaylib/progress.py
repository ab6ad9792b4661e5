# SPDX-License-Identifier: GPL-2.0
"""Lines that say what long work is doing."""

import sys
import time


class Progress:
    """One line that moves on a terminal, plain lines elsewhere (stderr)."""

    def __init__(self, stream=sys.stderr):
        self.stream = stream
        self.moving = stream.isatty()
        self.started = time.monotonic()
        self.last = 0.0
        self.width = 0

    def step(self, text):
        """Say what is being done now."""
        self._show(text)
        self.last = time.monotonic()

    def count(self, text, so_far):
        """Say how far it is, at most every 0.2 s (10 s without a terminal)."""
        now = time.monotonic()
        if now - self.last < (0.2 if self.moving else 10):
            return
        self.last = now
        self._show(f"{text}: {so_far}, {now - self.started:.0f} s")

    def done(self):
        """End the moving line."""
        if self.moving and self.width:
            print(file=self.stream)
            self.width = 0

    def _show(self, text):
        if self.moving:
            print(f"\r{text:<{self.width}}", end="", file=self.stream,
                  flush=True)
            self.width = len(text)
        else:
            print(text, file=self.stream, flush=True)
