# SPDX-License-Identifier: GPL-2.0
"""tollway-traffic and tollway-qsample on the loopback of a namespace: what their
tests share.

Nothing here measures how fast this machine is: schedules are checked by what
they send, which is the same on every machine, and times only roughly. Before
a signal, or anything else that comes from outside, we wait for what it needs.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parent.parent / "tools"
TIMEOUT_S = 20


@pytest.fixture(scope="session")
def tools(tmp_path_factory):
    """The directory of the two programs, built here."""
    if not shutil.which("make") or not shutil.which("cc"):
        pytest.skip("make or a C compiler is missing")
    directory = tmp_path_factory.mktemp("tools")
    subprocess.run(["make", "-s", "-C", str(TOOLS), f"O={directory}",
                    f"{directory}/tollway-traffic",
                    f"{directory}/tollway-qsample"],
                   check=True, timeout=120)
    return directory


class Namespace:
    """A network namespace that lives as long as a sleeping process in it."""

    def __init__(self):
        as_root = os.geteuid() == 0
        self.holder = subprocess.Popen(
            ["unshare", "-n" if as_root else "-rn", "sh", "-c",
             "ip link set lo up && echo ready && exec sleep 600"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if self.holder.stdout.readline().strip() != "ready":
            self.close()
            pytest.skip("network namespaces are not possible here")
        self.enter = ["nsenter", f"--target={self.holder.pid}", "--net"]
        if not as_root:
            self.enter += ["--user", "--preserve-credentials"]

    def start(self, *command, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                   "text": True, **options}
        return subprocess.Popen([*self.enter, *map(str, command)], **options)

    def run(self, *command, **options):
        options = {"capture_output": True, "text": True,
                   "timeout": TIMEOUT_S, **options}
        return subprocess.run([*self.enter, *map(str, command)],
                              check=False, **options)

    def close(self):
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()


@pytest.fixture
def namespace():
    made = Namespace()
    yield made
    made.close()


def wait_until(condition, process, what):
    """Return when condition() holds; the process must live until then."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def wait_for_timer(process):
    """Return when the program has made its timer, that is, is about to run."""
    def has_timer():
        links = []
        # Files may be closed meanwhile, or the process may end.
        with contextlib.suppress(OSError):
            for link in Path(f"/proc/{process.pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    links.append(os.readlink(link))
        return "anon_inode:[timerfd]" in links

    wait_until(has_timer, process, "the program does not begin")
    time.sleep(0.05)  # the handlers of its signals are set just after it


LISTEN = "0A"
# The peer is not done with these, or our process is not.
UNFINISHED = {"01", "03", "08"}  # ESTABLISHED, SYN_RECV, CLOSE_WAIT


def tcp_sockets(pid, port):
    """State and unread bytes (a listener's: connections not yet accepted) of
    the TCP sockets with this local port in the process's namespace."""
    for table in (Path(f"/proc/{pid}/net/{name}") for name in ("tcp", "tcp6")):
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            # The kernel has no IPv6, or the process has ended.
            continue
        for line in lines:
            words = line.split()
            if words[1].endswith(f":{port:04X}"):
                yield words[3], int(words[4].split(":")[1], 16)


class Sink:
    """A running sink; stop() ends it with a signal and gives its report."""

    def __init__(self, namespace, tools, *arguments, port=5001):
        self.process = namespace.start(tools / "tollway-traffic", "sink",
                                       "--port", port, *arguments)
        self.port = int(str(port).split(",")[0])
        wait_until(lambda: LISTEN in dict(self.sockets()), self.process,
                   "the sink does not listen")

    def sockets(self):
        return tcp_sockets(self.process.pid, self.port)

    def is_idle(self):
        """Whether all connections are accepted, and closed on both sides."""
        return not any(state in UNFINISHED or state == LISTEN and waiting
                       for state, waiting in self.sockets())

    def wait_for_connection(self):
        wait_until(lambda: "01" in dict(self.sockets()), self.process,
                   "no connection to the sink")

    def stop(self, when_idle=True):
        if when_idle:
            wait_until(self.is_idle, self.process, "connections stay open")
        # The last packets and resets are on their way through loopback.
        time.sleep(0.1)
        self.process.send_signal(signal.SIGTERM)
        out, error = self.process.communicate(timeout=TIMEOUT_S)
        assert self.process.returncode == 0, error
        return json.loads(out)


@pytest.fixture
def sink(namespace, tools):
    running = Sink(namespace, tools)
    yield running
    if running.process.poll() is None:
        running.process.kill()
    running.process.wait()


def send(namespace, tools, flows, *arguments, status=0):
    """Run flows (text) to their end; the report, and what was complained."""
    done = namespace.run(tools / "tollway-traffic", "send", "--flows", "-",
                         *arguments, input=flows)
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout), done.stderr
