# SPDX-License-Identifier: GPL-2.0
"""`tollway doctor`: what is missing on this machine, and how to get it; with
--peer, whether congestion notification works from end to end (diagnose.py).

Nothing here needs more than Python itself."""

import importlib.util
import shutil
import sys

from .. import files, programs
from ..errors import TollwayError
from ..kernels.usermode import find_source, is_built
from ..paths import TOP
from ..places.machine import Lab
from ..words import Parser, check_file, file_name, number, plain
from . import diagnose, finding, observe

LONGEST_LOOK_S = 3600
# What the tests need is all that there is here.
INSTALL_ALL = f"{TOP}/scripts/install-dependencies check"


def findings():
    """[(what, is there?, how to get it)]."""
    found = [(f"{name} ({', '.join(purposes)})", bool(shutil.which(name)),
              f"package {package}")
             for name, purposes, package in programs.PROGRAMS]
    found += [(f"Python module {name}",
               importlib.util.find_spec(name) is not None,
               f"package {package}, for /usr/bin/python3")
              for name, _, package in programs.MODULES]
    try:
        source = find_source()
        found.append((f"kernel source ({source})", True, ""))
    except TollwayError as error:
        found.append(("kernel source", False, str(error)))
    return found


def boots():
    """finding.Finding: does the lab boot, if it is built?"""
    try:
        if not is_built():
            return finding.Finding("lab", "note",
                                   "the lab is not built yet, so "
                                   "its boot was not tested", "make lab")
        seconds = Lab().try_boot()
    except TollwayError as error:
        return finding.Finding("lab", "wrong", str(error))
    return finding.Finding("lab", "ok", f"the lab boots ({seconds:.1f} s)")


def machine():
    """[finding.Finding] of findings(), and of the lab if it has what it needs."""
    found = [finding.Finding("machine", "ok" if there else "missing", what,
                             "" if there else remedy)
             for what, there, remedy in findings()]
    lacks = programs.missing(programs.BUILD, programs.KERNEL, programs.LAB)
    return found if lacks or not found[-1].verdict == "ok" else \
        [*found, boots()]


def add_options(parser):
    """The options of the command."""
    parser.add_argument(
        "--peer", type=plain, metavar="HOST[:PORT]", help="check the connections to "
        "this host and the path to it instead: is ECN negotiated, are marks "
        "made, kept and echoed, are the modules loaded?")
    parser.add_argument("--seconds", type=number(float, LONGEST_LOOK_S),
                        default=5, metavar="S",
                        help="seconds between the two readings of the "
                        "counters, while data flows (default: 5)")
    parser.add_argument("--json", type=file_name, metavar="FILE", dest="as_json",
                        help="write the findings to this file as JSON; - prints "
                        "them instead of the text")


def main(arguments):
    """Print what is found; 0 if all is well, else 1."""
    if arguments.as_json not in (None, "-"):
        check_file(arguments.as_json)
    if arguments.peer is not None:
        seen = observe.observe(arguments.peer, arguments.seconds)
        found = diagnose.judge(seen)
        text = finding.text_of(found)
    else:
        seen, found = {"schema": finding.SCHEMA}, machine()
        text = "\n".join(f"{one.verdict:8}{one.text}" +
                         (f": {one.remedy}" if one.remedy else "")
                         for one in found)
        if any(one.verdict == "missing" for one in found):
            text += f"\nTo install all of these on Debian: {INSTALL_ALL}"
    if arguments.as_json != "-":
        print(text)
    if arguments.as_json == "-":
        print(finding.json_of(seen, found))
    elif arguments.as_json:
        files.write_named(arguments.as_json, finding.json_of(seen, found) + "\n")
    return 0 if finding.all_is_ok(found) else 1


def entry():
    """Entry point of the command; returns the exit status."""
    parser = Parser(
        prog="tollway doctor", description="Report what is missing on this "
        "machine, and how to install it. With --peer, check whether ECN works "
        "from end to end.")
    add_options(parser)
    return main(parser.parse_args(sys.argv[2:]))
