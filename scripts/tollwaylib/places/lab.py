# SPDX-License-Identifier: GPL-2.0
"""The lab as a place to run at."""

import json

from .. import errors
from ..kernels.usermode import HZ
from .machine import BUILD, MEMORY_MB, OUT, Lab
from .provenance import module_versions, tool_versions

# Real time allowed for one run: far above any, to catch a hang.
WALL_S = 4 * 3600
# More flows than that want more memory, most of it only for tcp_mem, which is a
# sixteenth of it, to be above what is in flight: the host sees 0.5 GB of it.
FLOWS_IN_MEMORY = 1000
MANY_FLOWS_MB = 8192
# Virtual time beyond the traffic.
VIRTUAL_GRACE_S = 300


class LabPlace:
    """Boots the lab for each seed. flavour: plain or debug."""

    def __init__(self, flavour="plain"):
        self.flavour = flavour
        self.lab = None

    def prepare(self, progress):
        """Build what is missing."""
        self.lab = Lab(self.flavour, progress)

    def run(self, job, folder, core, on_line):
        """Run a job; raw.json is in `folder` afterwards."""
        inside = dict(job, out_dir=OUT, bin_dir=f"{BUILD}/tools",
                      disposable=True)
        (folder / "job.json").write_text(json.dumps(inside))
        status = self.lab.run(
            ["/usr/bin/python3", "-m", "tollwaylib.guest.run",
             f"{OUT}/job.json"],
            folder, seed=job["seed"], core=core, wall_s=WALL_S,
            virtual_s=job["virtual_s"] + VIRTUAL_GRACE_S,
            on_line=on_line, memory_mb=MANY_FLOWS_MB if any(
                len(case["flows"]) > FLOWS_IN_MEMORY
                for case in job["cases"]) else MEMORY_MB)
        if status:
            raise errors.of_run(folder, status)

    def stop(self):
        """End what is running."""
        self.lab.stop()

    def provenance(self):
        """What the results of this place depend on."""
        kernel = self.lab.kernel
        return {"place": "lab", "kernel": kernel.version,
                "flavour": kernel.flavour,
                "config_sha256": kernel.config_sha256,
                "patches": list(kernel.patches), "hz": HZ,
                "modules": module_versions(self.lab.modules),
                "tools": tool_versions()}
