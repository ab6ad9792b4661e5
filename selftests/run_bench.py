# SPDX-License-Identifier: GPL-2.0
"""`tollway` as a command, and the kernels that it must not leave."""

import os
import subprocess
import time
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent
SHORT = ["run", "double-bottleneck", "--duration", "3", "--set", "warmup_s=1",
         "--trace", "hash"]


def tollway(*words, top=TOP, prefix=(), **keywords):
    """Run the command; returns the finished process."""
    # In case it hangs. A machine that others use takes ten times as long as one
    # that is idle: 150 s for runs of a quarter of a minute were seen.
    keywords.setdefault("timeout", 1800)
    return subprocess.run(
        [*prefix, str(top / "scripts/tollway"), *map(str, words)], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL, check=False, **keywords)


def last_line(done):
    """What the command said last on standard error."""
    return done.stderr.strip().splitlines()[-1]


def kernels(below):
    """Process ids of the lab's kernels whose run writes below a directory, and
    of kernels and guests that have lost their parent."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            exe = os.readlink(entry / "exe")
            if "/lab-" not in exe or not exe.endswith("/linux"):
                continue
            fields = (entry / "stat").read_text().rpartition(") ")[2].split()
            if int(fields[1]) == 1 or os.readlink(
                    entry / "fd/4").startswith(f"{below}/"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def gone(below, seconds=10):
    """Wait until no kernel of a directory is left; False if one stays."""
    deadline = time.monotonic() + seconds
    while kernels(below):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


@pytest.fixture
def no_traces(tmp_path):
    """Fail if a test leaves a kernel or what it keeps its sockets in."""
    yield
    assert gone(tmp_path)
