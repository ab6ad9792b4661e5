# SPDX-License-Identifier: GPL-2.0
"""The command `tollway`."""

import argparse
import sys

from . import VERSION
from .commands.admit import command_admit
from .commands.lab import command_lab
from .commands.list import command_list
from .commands.new import command_new
from .commands.run import command_run
from .components import AQMS
from .doctor import local
from .ends import HOLDS as EXIT_HOLDS
from .experiments.parameters import CHOICES
from .kernels import compatibility
from .kernels.usermode import FLAVOURS
from .places.qemu import DEBUG
from .results import tidy
from .words import (LARGEST_SEED, LONGEST_S, MOST_RUNS, Parser, file_name,
                    number, path, plain)


def parser():
    """The whole command line."""
    top = Parser(
        prog="tollway", description="Experiments on congestion control, on the "
        "real Linux kernel in virtual time. See tollway(1).")
    top.add_argument("--version", action="version",
                     version=f"tollway {VERSION}")
    commands = top.add_subparsers(dest="command", required=True,
                                  metavar="COMMAND")
    explained = commands.add_parser("help", help="explain the command line, or "
                                    "that of one command")
    explained.add_argument("about", nargs="?", metavar="COMMAND")
    listed = commands.add_parser("list", help="list the experiments, and what each "
                                 "reproduces; or describe one")
    listed.add_argument("experiment", type=plain, nargs="?", metavar="EXPERIMENT",
                        help="describe this one (a name, or a file FILE.py), with "
                        "its parameters")

    run = commands.add_parser(
        "run", help="run an experiment, print its table, write its report")
    run.add_argument("experiment", type=plain, metavar="EXPERIMENT",
                     help="a name of tollway list, or a file FILE.py")
    run.add_argument("--on", choices=("lab", "host", "qemu", "model"),
                     default="lab", help="where: User Mode Linux in virtual time "
                     "(lab, the default), the kernel of this host, a stock "
                     "kernel on emulated processors (qemu), or a fluid model "
                     "without a kernel")
    run.add_argument("--kernel", choices=[
        row[0] for row in compatibility.KERNELS] + [DEBUG],
                     default="6.1", help="kernel of --on qemu (default: 6.1)")
    run.add_argument("--cc", type=plain, metavar="NAME",
                     help="congestion control of the flows (default: sbrm)")
    run.add_argument("--aqm", type=plain, metavar="WORDS",
                     help=f"queue at the bottlenecks: {', '.join(AQMS)} and "
                     "rem (rem-pc3) have the parameters of the papers; or a "
                     "qdisc with its options, such as 'codel target 2ms' "
                     "(default: sbrm)")
    run.add_argument("--scale", choices=CHOICES["scale"],
                     help="short for --set scale=...")
    run.add_argument("--set", action="append", default=[], dest="settings",
                     type=plain, metavar="NAME=VALUE", help="set a parameter of the "
                     "experiment; a wrong name prints all names")
    run.add_argument("--duration", type=number(float, LONGEST_S),
                     metavar="S", help="seconds of traffic (default: that of the "
                     "experiment)")
    run.add_argument("--seed", type=number(int, LARGEST_SEED),
                     default=1, metavar="N", help="seed of the (first) run (default: 1)")
    run.add_argument("--repeat", type=number(int, MOST_RUNS), default=1,
                     metavar="N", help="number of runs, with successive seeds "
                     "(default: 1)")
    run.add_argument("-j", "--jobs", type=number(int, MOST_RUNS), default=1,
                     metavar="N", help="number of jobs at the same time, each on "
                     "a core (default: 1); a job is one case of one seed of one "
                     "variant")
    run.add_argument("--resume", action="store_true",
                     help="keep the runs and cases that are in --out, and make "
                     "those that are missing")
    run.add_argument("--traffic", choices=("tollway", "iperf3"),
                     default="tollway", help="program that sends (default: tollway)")
    run.add_argument("--trace", choices=("none", "hash", "pcap"),
                     default="none", help="include the packets of the "
                     "bottlenecks in the digest (hash), or also keep them as "
                     "files (pcap)")
    run.add_argument("--flavour", choices=FLAVOURS, default="plain",
                     help="kernel of the lab: plain (default), or debug "
                     "with KASAN, lockdep, kmemleak and UBSAN")
    run.add_argument("--out", type=path, metavar="DIR",
                     help="directory for the results (default: tollway-results/"
                     "EXPERIMENT/CC-AQM)")
    run.add_argument("--json", type=file_name, metavar="FILE", dest="as_json",
                     help="write the result to this file as JSON; - prints it "
                     "instead of the tables")
    run.add_argument("-v", "--verbose", action="store_true",
                     help="print the commands that are run in the nodes")

    fresh = commands.add_parser(
        "new", help="write a commented experiment as a template for your own")
    fresh.add_argument("file", type=plain, metavar="FILE.py",
                       help="a file that does not exist")

    again = commands.add_parser(
        "report", help="make tables, figures and report again from results")
    again.add_argument("directory", type=path, metavar="DIR",
                       help="directory with results")

    tidied = commands.add_parser(
        "table", help="print all numbers of the results below a directory as "
        "one table")
    tidied.add_argument("directory", type=path, metavar="DIR",
                        help="directory with results")
    tidied.add_argument("--format", choices=tidy.FORMATS, default="csv",
                        dest="form", help="default: csv")
    tidied.add_argument("--out", type=file_name, metavar="FILE",
                        help="write the table to this file instead of the "
                        "standard output")

    lab = commands.add_parser("lab", help="build, inspect or use the kernel in "
                              "virtual time")
    actions = lab.add_subparsers(dest="action", required=True,
                                 metavar="ACTION")
    for name, text in (("build", "build the kernel, modules and tools, and boot the "
                        "kernel once"),
                       ("info", "print what is built and from what, and boot it"),
                       ("shell", "start a shell in the lab, on this terminal"),
                       ("exec", "run a command in the lab")):
        action = actions.add_parser(name, help=text)
        action.add_argument("--flavour", choices=FLAVOURS, default="plain",
                            help="kernel of the lab (default: plain)")
        if name in ("shell", "exec"):
            action.add_argument("--seed", type=number(int, LARGEST_SEED),
                                default=1, metavar="N",
                                help="seed of all random numbers (default: 1)")
            action.add_argument("--out", type=path, metavar="DIR",
                                help="the only directory that can be written to "
                                "(default: a temporary one)")
        if name == "exec":
            action.add_argument("--wall", type=number(float, LONGEST_S),
                                default=600, metavar="S",
                                help="limit in seconds of real time (default: "
                                "600)")
            action.add_argument("--virtual", type=number(float, LONGEST_S),
                                default=86400, metavar="S",
                                help="limit in seconds of virtual time "
                                "(default: 86400)")
            action.add_argument("argv", nargs=argparse.REMAINDER,
                                metavar="COMMAND")
    # Only for the list: main() passes its words on before they are parsed.
    commands.add_parser("admit", help="run tollway-admit(8), adaptive admission "
                        "(run, status, key)")
    local.add_options(commands.add_parser(
        "doctor", help="report what is missing on this machine; with --peer, "
        "whether ECN works from end to end"))
    return top


def command_help(about):
    """Explain the command line, or that of one command."""
    parser().parse_args([about, "--help"] if about else ["--help"])


def main(words=None):
    """Do what the command line says; returns the exit status.

    See ends.guarded() for what becomes of exceptions.
    """
    words = sys.argv[1:] if words is None else words
    if words[:1] == ["admit"]:
        return command_admit(words[1:])
    arguments = parser().parse_args(words)
    if arguments.command == "help":
        return command_help(arguments.about)
    if arguments.command == "list":
        return command_list(arguments.experiment)
    if arguments.command == "new":
        return command_new(arguments.file)
    if arguments.command == "run":
        return command_run(arguments, words)
    if arguments.command == "report":
        # What draws takes long to import.
        from .report import summary
        from .report.page import write
        page, outcomes = write(arguments.directory)
        print(f"report: {page}\n{summary.text(outcomes)}")
        return EXIT_HOLDS
    if arguments.command == "table":
        tidy.write(arguments.directory, arguments.form, arguments.out)
        return EXIT_HOLDS
    if arguments.command == "lab":
        return command_lab(arguments)
    return local.main(arguments)
