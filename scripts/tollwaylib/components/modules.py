# SPDX-License-Identifier: GPL-2.0
"""The kernel modules of this project, and the kernel's own that experiments name.

A module is declared once, in a file of this folder that has MODULES. What builds,
loads, checks or diagnoses modules reads it from here; the build itself takes every
folder tcp_* and sch_* that has a Kbuild.
"""

import importlib
import pkgutil
from dataclasses import asdict
from pathlib import Path

MODULES = tuple(
    module for found in sorted(pkgutil.iter_modules([Path(__file__).parent]),
                               key=lambda found: found.name)
    if f"{__package__}.{found.name}" != __name__
    for module in getattr(importlib.import_module(f".{found.name}", __package__),
                          "MODULES", ()))
# The kernel's own: dctcp's receivers echo each mark, and it is restricted.
_ECHOED, _RESTRICTED = ("dctcp",), ("dctcp",)


def _all(name):
    """What modules have under a name, in one tuple."""
    return sum((getattr(module, name) for module in MODULES), ())


OURS = tuple(module.name for module in MODULES)
CONTROLS = {module.name: module.controls for module in MODULES
            if module.controls}
# Those that count marks, those whose receivers echo each mark, and those whose
# receivers echo marks or prices.
COUNTING = _all("counting")
ECHOING = _ECHOED + COUNTING
ECHOED = _ECHOED + _all("echoed")
RESTRICTED = _RESTRICTED + _all("restricted")
# Congestion controls and qdiscs of modules that are not named after them. All
# others are in tcp_NAME and sch_NAME.
CC_MODULES = {name: module.name for module in MODULES
              for name in module.controls if module.name != f"tcp_{name}"}
QDISC_MODULES = {"pfifo": "sch_fifo", "bfifo": "sch_fifo",
                 "ingress": "sch_ingress", "clsact": "sch_ingress",
                 **{module.queue: module.name for module in MODULES
                    if module.queue and module.name != f"sch_{module.queue}"}}


def judged_by(how):
    """Congestion controls that the doctor judges in this way."""
    return sum((module.controls for module in MODULES if module.judged == how),
               ())


def of_smoke():
    """What the smoke set has to know of the modules, see guest/smoke.py (dict)."""
    return {
        "controls": CONTROLS, "modules": OURS, "restricted": RESTRICTED,
        "queues": {module.queue: asdict(module.trial) for module in MODULES
                   if module.trial},
        "paths": [(module.controls[0], module.info, module.over)
                  for module in MODULES if module.over],
        "counting": COUNTING,
        "carriers": {cc: (module.name, *counters) for module in MODULES
                     for cc, counters in module.carrying.items()}}
