# SPDX-License-Identifier: GPL-2.0
"""`tollway doctor`: what is missing on this machine, and how to get it."""

import importlib.util
import os
import shutil
import sys

from .errors import TollwayError
from .labkernel import find_source

PROGRAMS = (
    # program, needed for, how to get it (a package of the distribution)
    ("gcc", "building", "build-essential"),
    ("make", "building", "build-essential"),
    ("flex", "the lab kernel", "flex"),
    ("bison", "the lab kernel", "bison"),
    ("bc", "the lab kernel", "bc"),
    ("patch", "the lab kernel", "patch"),
    ("xz", "the lab kernel", "xz-utils"),
    ("setarch", "the lab", "util-linux"),
    ("insmod", "the lab", "kmod"),
    ("tc", "the experiments", "iproute2"),
    ("ethtool", "experiments with pairs", "ethtool"),
    ("mnexec", "the experiments", "mininet"),
    ("ifconfig", "Mininet", "net-tools"),
    ("ping", "calibration", "iputils-ping"),
    ("tcpdump", "--trace", "tcpdump"),
    ("iperf3", "--traffic iperf3", "iperf3"),
    ("sparse", "make check", "sparse"),
)
MODULES = (("mininet", "mininet"), ("numpy", "python3-numpy"),
           ("scipy", "python3-scipy"), ("matplotlib", "python3-matplotlib"),
           ("pytest", "python3-pytest"))


def findings():
    """[(what, is there?, how to get it)]."""
    found = [(f"{name} ({purpose})", bool(shutil.which(
        name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")),
        f"package {package}") for name, purpose, package in PROGRAMS]
    found += [(f"Python module {name}",
               importlib.util.find_spec(name) is not None,
               f"package {package}, for /usr/bin/python3")
              for name, package in MODULES]
    try:
        source = find_source()
        found.append((f"kernel source ({source})", True, ""))
    except TollwayError as error:
        found.append(("kernel source", False, str(error)))
    return found


def main():
    """Print the findings; 0 if nothing is missing, else 1."""
    missing = 0
    for what, there, remedy in findings():
        print(f"{'ok     ' if there else 'missing'} {what}"
              + ("" if there else f": {remedy}"))
        missing += not there
    if missing:
        print("scripts/install-dependencies installs all of these on Debian.")
    return 1 if missing else 0


def alone(name):
    """Entry point where a Python module is missing that the rest needs."""
    if sys.argv[1:2] == ["doctor"]:
        return main()
    print(f"tollway: there is no Python module {name} for {sys.executable}: "
          "tollway doctor says how to get it", file=sys.stderr)
    return 2
