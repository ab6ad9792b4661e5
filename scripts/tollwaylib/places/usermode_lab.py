# SPDX-License-Identifier: GPL-2.0
"""The lab as a place to run at."""

import json

from .. import errors
from ..kernels.usermode import HZ
from . import limits
from .machine import BUILD, OUT, Lab
from .provenance import module_versions, tool_versions

# Real time allowed for one run: far above any, to catch a hang.
WALL_S = 4 * 3600


class LabPlace:
    """Boots the lab for each job. flavour: plain or debug."""

    # What the others on this machine do has no effect in virtual time.
    parallel = True
    has_kernel = True

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
            ["/usr/bin/python3", "-m", "tollwaylib.guest.job",
             f"{OUT}/job.json"],
            folder, seed=job["seed"], core=core, wall_s=WALL_S,
            virtual_s=limits.virtual_s(job), on_line=on_line,
            memory_mb=limits.memory_mb(job))
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
