# SPDX-License-Identifier: GPL-2.0
"""This machine's own kernel as a place to run at: real time, needs root."""

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from . import build
from .errors import TollwayError
from .paths import TOP
from .runner import tool_versions

QDISCS = ("htb", "netem", "clsact")


class HostPlace:
    """Runs in network namespaces of this host."""

    def __init__(self, cc, aqm):
        self.cc, self.aqm = cc, aqm
        self.tools = None
        self.process = None

    def prepare(self, progress):
        """Check what the kernel has; TollwayError names all that is missing."""
        if os.geteuid() != 0:
            raise TollwayError("--on host needs root, for namespaces and "
                               "qdiscs: use sudo, or --on lab")
        progress.step("building the tools")
        self.tools = build.tools()
        missing = self.missing()
        if missing:
            raise TollwayError("--on host is not possible here: "
                               + "; ".join(missing))

    def missing(self):
        """What this kernel lacks for the run, each with what to do."""
        lacks = []
        if not shutil.which("unshare") or self._try("true"):
            return ["network namespaces cannot be made (CONFIG_NET_NS)"]
        if self._try("ip link add type veth"):
            lacks.append("veth pairs cannot be made (modprobe veth)")
        for kind in QDISCS:
            words = "clsact" if kind == "clsact" else f"root {kind}"
            delay = " delay 1ms" if kind == "netem" else ""
            if self._try(f"tc qdisc add dev lo {words}{delay}"):
                lacks.append(f"there is no {kind} qdisc "
                             f"(modprobe sch_{kind.replace('clsact', 'ingress')})")
        kind = self.aqm.split()[0] if self.aqm.split() else self.aqm
        if kind == "sbrm" and self._try("tc qdisc add dev lo root sbrm"):
            lacks.append("there is no sbrm qdisc (make install, or insmod "
                         "sch_sbrm.ko)")
        subprocess.run(["modprobe", f"tcp_{self.cc}"], check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        known = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
        if self.cc not in known.read_text().split():
            lacks.append(f"there is no congestion control {self.cc} "
                         f"(modprobe tcp_{self.cc})")
        return lacks

    def _try(self, command):
        """Exit status of a command in a namespace of its own."""
        return subprocess.run(
            ["unshare", "-n", "sh", "-c", command], check=False,
            env=dict(os.environ, TC_LIB_DIR=str(self.tools)),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode

    def run(self, job, folder, core, on_line):
        """Run a job; raw.json is in `folder` afterwards."""
        inside = dict(job, out_dir=str(folder), bin_dir=str(self.tools))
        (folder / "job.json").write_text(json.dumps(inside))
        environment = dict(os.environ, PYTHONPATH=str(TOP / "scripts"),
                           TC_LIB_DIR=str(self.tools))
        with open(folder / "console.log", "w", encoding="utf-8") as log, \
                subprocess.Popen(
                    [sys.executable, "-m", "tollwaylib.network",
                     str(folder / "job.json")],
                    text=True, env=environment, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT) as self.process:
            try:
                for line in self.process.stdout:
                    log.write(line)
                    on_line(line.rstrip("\n"))
            except BaseException:
                self.stop()
                raise
        if self.process.returncode:
            error = folder / "error.txt"
            raise TollwayError(
                error.read_text().strip() if error.exists() else
                f"the run failed: see {folder / 'console.log'}")

    def stop(self):
        """End the run; it removes its own namespaces."""
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait()

    def provenance(self):
        """What the results of this place depend on."""
        config = Path(f"/boot/config-{platform.release()}")
        text = config.read_bytes() if config.exists() else b""
        hz = re.search(rb"^CONFIG_HZ=(\d+)$", text, re.MULTILINE)
        return {"place": "host", "kernel": platform.release(),
                "config_sha256": hashlib.sha256(text).hexdigest(),
                "patches": [], "hz": int(hz.group(1)) if hz else None,
                "modules": {}, "tools": tool_versions()}
