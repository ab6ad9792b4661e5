# SPDX-License-Identifier: GPL-2.0
"""The kernel modules of this project, and the kernel's own that experiments name.

A module is declared here once. What builds, loads, checks or diagnoses modules
reads it from here; the build itself takes every folder tcp_* and sch_* that has
a Kbuild.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Module:
    """A module, named as its folder.

    controls: its congestion controls. echoed: those whose receivers must run
    them too, since they echo each mark or price. restricted: those that the
    kernel takes as the default of its first network namespace only; a socket
    may have them by CAP_NET_ADMIN. counting: those that count each mark.
    observed: does `tollway doctor` read /proc/net/NAME of it? queue: the kind of
    its qdisc.
    """
    name: str
    controls: tuple = ()
    echoed: tuple = ()
    restricted: tuple = ()
    counting: tuple = ()
    observed: bool = False
    queue: str = None


MODULES = (
    Module("tcp_sbrm", controls=("sbrm", "rem", "cp", "rm"),
           echoed=("sbrm", "rem", "cp"), restricted=("cp",),
           counting=("sbrm", "rem"), observed=True),
    Module("tcp_pp", controls=("pp", "ppx"), restricted=("ppx",),
           observed=True),
    Module("tcp_alpha", controls=("alpha",), echoed=("alpha",),
           restricted=("alpha",), observed=True),
    Module("sch_sbrm", queue="sbrm"),
    Module("sch_fq_rr", queue="fq_rr"),
)
# The kernel's own: dctcp's receivers echo each mark, and it is restricted.
_ECHOED, _RESTRICTED = ("dctcp",), ("dctcp",)

OURS = tuple(module.name for module in MODULES)
CONTROLS = {module.name: module.controls for module in MODULES
            if module.controls}
ECHOED = _ECHOED + sum((module.echoed for module in MODULES), ())
RESTRICTED = _RESTRICTED + sum((module.restricted for module in MODULES), ())
# Congestion controls and qdiscs of modules that are not named after them. All
# others are in tcp_NAME and sch_NAME.
CC_MODULES = {name: module.name for module in MODULES
              for name in module.controls if module.name != f"tcp_{name}"}
QDISC_MODULES = {"pfifo": "sch_fifo", "bfifo": "sch_fifo",
                 "ingress": "sch_ingress", "clsact": "sch_ingress",
                 **{module.queue: module.name for module in MODULES
                    if module.queue and module.name != f"sch_{module.queue}"}}
