# SPDX-License-Identifier: GPL-2.0
"""`tollway doctor`: what is missing on this machine, and how to get it; with
--peer, whether congestion notification works from end to end (live.py).

Nothing here needs more than Python itself."""

import importlib.util
import os
import shutil
import sys
from pathlib import Path

from . import live
from .errors import TollwayError
from .labkernel import find_source
from .paths import TOP
from .words import Parser, check_file, file_name, number, plain

LONGEST_LOOK_S = 3600
# What the tests need is all that there is here.
INSTALL_ALL = f"{TOP}/scripts/install-dependencies check"

PROGRAMS = (
    # program, needed for, how to get it (a package of the distribution)
    ("gcc", "building", "gcc"),
    ("make", "building", "make"),
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
    ("qemu-system-x86_64", "--on qemu", "qemu-system-x86"),
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


def machine():
    """[live.Finding] of findings()."""
    return [live.Finding("machine", "ok" if there else "missing", what,
                         "" if there else remedy)
            for what, there, remedy in findings()]


def add_options(parser):
    """The options of the command."""
    parser.add_argument(
        "--peer", type=plain, metavar="HOST[:PORT]", help="look at the connections to "
        "this host instead, and at the path: is ECN negotiated, are marks "
        "made, kept and echoed, are the modules there?")
    parser.add_argument("--seconds", type=number(float, LONGEST_LOOK_S),
                        default=5, metavar="S",
                        help="how long to look at the traffic (default: 5)")
    parser.add_argument("--json", type=file_name, metavar="FILE", dest="as_json",
                        help="write what was found there; - prints it instead "
                        "of the text")


def main(arguments):
    """Print what is found; 0 if all is well, else 1."""
    if arguments.as_json not in (None, "-"):
        check_file(arguments.as_json)
    if arguments.peer is not None:
        seen = live.observe(arguments.peer, arguments.seconds)
        found = live.judge(seen)
        text = live.text_of(found)
    else:
        seen, found = {"schema": live.SCHEMA}, machine()
        text = "\n".join(f"{one.verdict:8}{one.text}" +
                         (f": {one.remedy}" if one.remedy else "")
                         for one in found)
        if not live.well(found):
            text += f"\nTo install all of these on Debian: {INSTALL_ALL}"
    if arguments.as_json != "-":
        print(text)
    if arguments.as_json == "-":
        print(live.json_of(seen, found))
    elif arguments.as_json:
        Path(arguments.as_json).write_text(live.json_of(seen, found) + "\n")
    return 0 if live.well(found) else 1


def entry():
    """Entry point of the command; returns the exit status."""
    parser = Parser(
        prog="tollway doctor", description="What is missing on this machine, "
        "and how to get it; with --peer, whether ECN works from end to end.")
    add_options(parser)
    return main(parser.parse_args(sys.argv[2:]))
