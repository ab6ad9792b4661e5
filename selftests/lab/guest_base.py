# SPDX-License-Identifier: GPL-2.0
"""What the scripts inside of the lab share: namespaces, frames, the runner.

A script defines functions check_NAME(); main() runs those that checks.json asks
for, each with fresh namespaces and a limit of virtual time, and writes
results.json as it goes. A check raises if it fails, and says what it measured
by note().
"""

import contextlib
import ctypes
import fcntl
import json
import math
import os
import re
import shlex
import signal
import socket
import struct
import subprocess
import sys
import time
import traceback
from pathlib import Path

from declared import MODULES

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
TCP_MEM = "/proc/sys/net/ipv4/tcp_mem"
SIOCGIFFLAGS, IFF_RUNNING = 0x8913, 0x40
CHECK_LIMIT_S = 20000
# Orphans (FIN-WAIT with a dead peer) live on for many timeouts, s between looks.
REST_S = 100

_notes = []
_namespaces = []
_children = []
_connections = []
_pressures = []
SETTINGS = {"checks": [], "flavour": "plain", "full": False, "seed": 1,
            "given": None, "shipped": False}


class Skip(Exception):
    """This check cannot be made here; the reason."""


def amount(short, full, full_debug=None):
    """How much of something: in the short form, in the full one, and in the
    full one of the debug flavour where that is not as much."""
    if not SETTINGS["full"]:
        return short
    if SETTINGS["flavour"] == "debug" and full_debug is not None:
        return full_debug
    return full


def note(text):
    """Keep a measured value for the report."""
    _notes.append(text)


def run(command, check=True, **keywords):
    """Run a command line (a string is split like a shell's); its output."""
    words = shlex.split(command) if isinstance(command, str) else command
    done = subprocess.run(words, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, **keywords)
    if check and done.returncode:
        raise AssertionError(f"{' '.join(map(str, words))}: {done.stdout}")
    return done.stdout


def refused(command):
    """Run a command that must fail; what it said."""
    done = subprocess.run(shlex.split(command), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    assert done.returncode, f"{command} was accepted"
    return done.stdout


def start(words, **keywords):
    """A child that is killed after the check at the latest."""
    child = subprocess.Popen(words, **keywords)
    _children.append(child)
    return child


def reset_later(connection):
    """A connection that is reset after the check; returns it.

    Closed in order, with its peer gone, it would hold what it has not sent until
    TCP gives up, after some 15 minutes. A dozen of those with 4 MB each are all
    the memory that TCP takes for granted: the flows of later checks then get
    small buffers and windows, and measure these.
    """
    _connections.append(connection)
    return connection


def tcp_memory():
    """(pages that TCP uses, pages below which it never saves memory)."""
    used = re.search(r"^TCP:.* mem (\d+)$", Path("/proc/net/sockstat")
                     .read_text(), re.MULTILINE)
    return int(used[1]), int(sysctl(TCP_MEM).split()[0])


def more_tcp_memory():
    """Let TCP have half of the memory, and save it from 3/8 on.

    By default that begins at a sixteenth, which here is 46 MB. Two flows on a way of 1 Gb/s
    and 150 ms have more in their buffers; then TCP made these smaller, and a flow had
    0.003 of its share. The first number stays: tollway-traffic divides it among its flows.
    """
    total = os.sysconf("SC_PHYS_PAGES")
    least = sysctl(TCP_MEM).split()[0]
    sysctl(TCP_MEM, f"{least} {total * 3 // 8} {total // 2}")


def enough_tcp_memory():
    """Wait until TCP has given back most of what earlier checks took."""
    for _ in range(40):
        used, least = tcp_memory()
        if used < least * 2 / 3:
            return
        time.sleep(REST_S)
    raise AssertionError(f"earlier checks hold {used} pages of TCP's {least}")


class Namespace:
    """A network namespace, gone after the check."""

    def __init__(self, name):
        self.name = name
        run(f"ip netns add {name}")
        _namespaces.append(self)
        self.file = os.open(f"/run/netns/{name}", os.O_RDONLY)
        self.outer = []
        with self:
            run("ip link set lo up")

    def __enter__(self):
        self.outer.append(os.open("/proc/self/ns/net", os.O_RDONLY))
        self.move(self.file)
        return self

    def __exit__(self, *_):
        outer = self.outer.pop()
        self.move(outer)
        os.close(outer)

    @staticmethod
    def move(file):
        """Let this process be in another namespace."""
        if LIBC.setns(file, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")

    def run(self, command, **keywords):
        """Run a command inside."""
        with self:
            return run(command, **keywords)

    def batch(self, tool, lines):
        """Run many commands of ip or tc with one process."""
        with self:
            return run([tool, "-batch", "-"], input="\n".join(lines) + "\n")

    def sysctl(self, name, value=None):
        """Read or write a setting, such as net.ipv4.tcp_ecn."""
        path = "/proc/sys/" + name.replace(".", "/")
        with self:
            return sysctl(path, value)

    def is_up(self, device):
        """Does the kernel send what leaves by the device? After "link set up" that can
        last for up to a second; until then it drops all packets, such as SYNs. Starts
        no program, so that random numbers stay the same.
        """
        with self, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            found = fcntl.ioctl(probe, SIOCGIFFLAGS,
                                struct.pack("16sh14x", device.encode(), 0))
        return bool(struct.unpack_from("h", found, 16)[0] & IFF_RUNNING)

    def tcp_ext(self):
        """{name: number}: the counters of TcpExt. Starts no program."""
        with self, open("/proc/self/net/netstat", encoding="ascii") as file:
            names, values = (line.split() for line in file if line.startswith("TcpExt:"))
        return dict(zip(names[1:], map(int, values[1:])))

    def delete(self):
        """Remove it, with all that is inside."""
        try:
            _pressures.append(self.tcp_ext()["TCPMemoryPressures"])
        finally:
            os.close(self.file)
            run(f"ip netns del {self.name}", check=False)


def wait_for_links(*ends):
    """Wait until both ends of each link are up, see is_up(): (namespace, device)."""
    for space, device in ends:
        while not space.is_up(device):
            time.sleep(0.01)


def sysctl(path, value=None):
    """Read a file below /proc/sys, or write it in one call."""
    if value is None:
        return Path(path).read_text().strip()
    file = os.open(path, os.O_WRONLY)
    try:
        os.write(file, value if isinstance(value, bytes) else
                 str(value).encode())
    finally:
        os.close(file)
    return None


def mac(number):
    """A fixed hardware address, as text."""
    return f"02:00:00:00:00:{number:02x}"


def quiet(space):
    """No IPv6 chatter of its own: packets are ours alone."""
    space.sysctl("net.ipv6.conf.all.disable_ipv6", 1)
    space.sysctl("net.ipv6.conf.default.disable_ipv6", 1)


def near(measured, expected, relative):
    """Is it within a relative tolerance?"""
    return abs(measured - expected) <= relative * abs(expected)


def chi_square_limit(freedom, z=4.75):
    """Quantile of chi-square at z sigma (4.75: 1e-6), Wilson-Hilferty."""
    part = 2 / (9 * freedom)
    return freedom * (1 - part + z * math.sqrt(part)) ** 3


def cleanup():
    """End the connections, children and namespaces of a check."""
    while _connections:
        # Some are closed already.
        with contextlib.suppress(OSError), _connections.pop() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                           struct.pack("=ii", 1, 0))
    while _children:
        child = _children.pop()
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        child.wait()
    while _namespaces:
        _namespaces.pop().delete()


def _expired(_signal, _frame):
    raise TimeoutError(f"more than {CHECK_LIMIT_S} s of virtual time")


def guarded(function):
    """Run one check; its entry in results.json."""
    _notes.clear()
    _pressures.clear()
    result = {"ok": False, "skipped": "", "error": ""}
    signal.signal(signal.SIGALRM, _expired)
    signal.alarm(CHECK_LIMIT_S)
    try:
        enough_tcp_memory()
        function()
        result["ok"] = True
    except Skip as reason:
        result["skipped"] = str(reason)
    except BaseException:  # whatever it was belongs into the report
        result["error"] = traceback.format_exc() + "\n".join(_notes)
    finally:
        signal.alarm(0)
        try:
            cleanup()
            assert not sum(_pressures), "TCP was short of memory, which is what was measured"
        except Exception:
            result["ok"] = False
            result["error"] += traceback.format_exc()
    result["notes"] = list(_notes)
    return result


def modules_unload():
    """With all sockets and qdiscs gone nothing may hold the modules."""
    for module in MODULES:
        for _ in range(40):
            time.sleep(REST_S)
            said = run(f"rmmod {module}", check=False)
            if not said:
                break
        assert not said, said + run("lsmod")


def no_memory_leaks():
    """Nothing that the modules allocated may be unreachable."""
    kmemleak = Path("/sys/kernel/debug/kmemleak")
    if not kmemleak.exists():
        raise Skip("only the debug flavour looks for leaks")
    for _ in range(3):
        time.sleep(10)
        sysctl(kmemleak, "scan")
    report = kmemleak.read_text(errors="replace")
    Path("kmemleak").write_text(report)
    sysctl(kmemleak, "clear")
    guilty = [part for part in report.split("unreferenced object")
              if any(module in part for module in MODULES) or
              "comm \"python3" in part]
    assert not guilty, "unreferenced object".join(["", *guilty])[:8000]


def main(checks):
    """Run the checks; `checks` is the globals() of the script."""
    SETTINGS.update(json.loads(Path("checks.json").read_text()))
    more_tcp_memory()
    todo = [(name, checks[f"check_{name}"]) for name in SETTINGS["checks"]]
    todo += [("no_memory_leaks", no_memory_leaks),
             ("modules_unload", modules_unload)]
    results = {}
    Path("dmesg").unlink(missing_ok=True)
    for name, function in todo:
        results[name] = guarded(function)
        Path("results.json").write_text(json.dumps(results, indent=1))
        # Kept up to date: a later check may panic. Cleared, as it is a ring.
        with open("dmesg", "a", encoding="utf-8") as log:
            log.write(run("dmesg --read-clear"))
        print(f"done: {name}", flush=True)
    sys.exit(0)
