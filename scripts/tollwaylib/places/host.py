# SPDX-License-Identifier: GPL-2.0
"""This machine's own kernel as a place to run at, in real time, as root."""

import hashlib
import json
import os
import platform
import re
import subprocess
from pathlib import Path

from .. import programs
from ..components.modules import CC_MODULES, OURS, QDISC_MODULES
from ..errors import TollwayError
from ..kernels import build
from . import limits
from .child import Children
from .provenance import tool_versions

KNOWN_CCS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
# What the network is made of: a command, and what there is not if it fails.
PARTS = (
    ("ip link add type veth", "veth pairs cannot be made (modprobe veth)"),
    ("tc qdisc add dev lo root htb",
     "there is no htb qdisc (modprobe sch_htb)"),
    ("tc qdisc add dev lo root netem delay 1ms",
     "there is no netem qdisc (modprobe sch_netem)"),
    ("tc qdisc add dev lo clsact",
     "there is no clsact qdisc (modprobe sch_ingress)"),
    ("tc qdisc add dev lo clsact && tc filter add dev lo ingress matchall "
     "action mirred egress redirect dev lo",
     "packets cannot be redirected (modprobe cls_matchall act_mirred)"),
)


def remedy(module):
    """How to install a module, in brackets."""
    return f"(make install, or insmod {module}.ko)" if module in OURS else \
        f"(modprobe {module})"


class HostPlace:
    """Runs in network namespaces of this host.

    pairs: the congestion controls of the flows, each with the tc words of the
    queue.
    """

    # Runs would disturb one another in real time.
    parallel = False
    has_kernel = True

    def __init__(self, pairs):
        self.pairs = list(pairs)
        self.tools = None
        self.children = Children("tollwaylib.guest.job", "the run")

    def prepare(self, progress):
        """Check the kernel; TollwayError names all that is missing."""
        if os.geteuid() != 0:
            raise TollwayError("--on host needs root, for namespaces and "
                               "qdiscs: use sudo, or --on lab")
        programs.need(programs.HOST)
        progress.step("building the tools")
        self.tools = build.tools()
        missing = self.missing()
        if missing:
            raise TollwayError("--on host is not possible here: "
                               + "; ".join(missing))

    def missing(self):
        """What this kernel lacks for the run, each with its remedy."""
        lacks = []
        if self._try("true")[0]:
            return ["network namespaces cannot be made (CONFIG_NET_NS)"]
        for command, sentence in PARTS:
            if self._try(command)[0]:
                lacks.append(sentence)
        for aqm in dict.fromkeys(aqm for _, aqm in self.pairs):
            # Wrong words for a qdisc that exists are the run's to refuse.
            kind = aqm.split()[0]
            _, said = self._try(f"tc qdisc add dev lo root {aqm}")
            if "qdisc kind is unknown" in said or "Unknown qdisc" in said:
                module = QDISC_MODULES.get(kind, f"sch_{kind}")
                lacks.append(f"there is no {kind} qdisc {remedy(module)}")
        for cc in dict.fromkeys(cc for cc, _ in self.pairs):
            module = CC_MODULES.get(cc, f"tcp_{cc}")
            subprocess.run(["modprobe", module], check=False,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if cc not in KNOWN_CCS.read_text().split():
                lacks.append(f"there is no congestion control {cc} "
                             f"{remedy(module)}")
        return list(dict.fromkeys(lacks))

    def _try(self, command):
        """Exit status and output of a command in a namespace of its own."""
        done = subprocess.run(
            ["unshare", "-n", "sh", "-c", command], check=False, text=True,
            env=dict(os.environ, TC_LIB_DIR=str(self.tools), LC_ALL="C"),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def run(self, job, folder, core, on_line):
        """Run a job; raw.json is in `folder` afterwards. Raises TollwayError if the run fails
        or does not finish in time."""
        folder = folder.absolute()
        inside = dict(job, out_dir=str(folder), bin_dir=str(self.tools),
                      real_time=True)
        (folder / "job.json").write_text(json.dumps(inside))
        self.children.run(folder, on_line, limits.real_s(job),
                          environment={"TC_LIB_DIR": str(self.tools)})

    def stop(self):
        """End the run; it removes its own namespaces."""
        self.children.stop()

    def provenance(self):
        """What the results of this place depend on."""
        config = Path(f"/boot/config-{platform.release()}")
        text = config.read_bytes() if config.exists() else b""
        hz = re.search(rb"^CONFIG_HZ=(\d+)$", text, re.MULTILINE)
        return {"place": "host", "kernel": platform.release(),
                "config_sha256": hashlib.sha256(text).hexdigest(),
                "patches": [], "hz": int(hz.group(1)) if hz else None,
                "modules": {}, "tools": tool_versions()}
