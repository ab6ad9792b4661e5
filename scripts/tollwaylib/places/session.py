# SPDX-License-Identifier: GPL-2.0
"""The end of a session of processes."""

import os
import signal
import time
from pathlib import Path


def end_session(leader):
    """Kill every process of a session, also those of a dead kernel."""
    for _ in range(20):
        members = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                # The name of a process need not be UTF-8.
                fields = (entry / "stat").read_bytes().rpartition(b") ")[2].split()
            except OSError:
                continue
            if int(fields[3]) == leader and fields[0] != b"Z":
                members.append(int(entry.name))
        if not members:
            return
        for pid in members:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)
