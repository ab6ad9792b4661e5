# SPDX-License-Identifier: GPL-2.0
"""The command `tollway`."""

import argparse
import shlex
import shutil
import sys
from pathlib import Path

from . import VERSION, doctor, experiments
from .ends import HOLDS as EXIT_HOLDS, MISSED as EXIT_MISSED
from .errors import TollwayError
from .kernels import compatibility
from .kernels.usermode import FLAVOURS
from .places.host import HostPlace
from .places.lab import LabPlace
from .places.machine import Lab, print_line, scratch_dir, shell
from .places.qemu import DEBUG, Qemu, QemuPlace
from .progress import Progress
from .report import summary, terminal
from .report.page import write
from .results.verdicts import all_hold
from .runs import runner
from .settings import AQMS, CHOICES, aqm_words
from .words import (LARGEST_SEED, LONGEST_S, MOST_RUNS, Parser, check_file,
                    file_name, number, path, plain, visible)

# Real time that the smoke set may take on a busy machine, s.
SMOKE_S = 1800


def parser():
    """The whole command line."""
    top = Parser(
        prog="tollway", description="Congestion pricing and packet-pair rate "
        "control on the real Linux kernel, in virtual time.")
    top.add_argument("--version", action="version",
                     version=f"tollway {VERSION}")
    commands = top.add_subparsers(dest="command", required=True,
                                  metavar="COMMAND")
    explained = commands.add_parser("help", help="explain the command line, or "
                                    "that of one command")
    explained.add_argument("about", nargs="?", metavar="COMMAND")
    commands.add_parser("list", help="experiments, and what each reproduces")

    run = commands.add_parser(
        "run", help="run an experiment, print its table, write its report")
    run.add_argument("experiment", type=plain, metavar="EXPERIMENT")
    run.add_argument("--on", choices=("lab", "host", "qemu"), default="lab",
                     help="virtual time (lab, the default), this kernel, or a "
                     "stock kernel of the distribution on emulated processors")
    run.add_argument("--kernel", choices=[
        row[0] for row in compatibility.KERNELS] + [DEBUG],
                     default="6.1", help="for --on qemu (default: 6.1)")
    run.add_argument("--cc", type=plain, metavar="NAME",
                     help="congestion control of the flows (default: sbrm)")
    run.add_argument("--aqm", type=plain, metavar="WORDS",
                     help=f"queue at the bottlenecks: {', '.join(AQMS)} and "
                     "rem (rem-pc3) have the papers' parameters; else any "
                     "words tc takes, such as 'codel target 2ms' (default: "
                     "sbrm)")
    run.add_argument("--scale", choices=CHOICES["scale"],
                     help="short for --set scale=...")
    run.add_argument("--set", action="append", default=[], dest="settings",
                     type=plain, metavar="NAME=VALUE", help="set a parameter of the "
                     "experiment; a wrong name prints those there are")
    run.add_argument("--duration", type=number(float, LONGEST_S),
                     metavar="S", help="seconds of traffic")
    run.add_argument("--seed", type=number(int, LARGEST_SEED),
                     default=1, metavar="N", help="seed of the (first) run (default: 1)")
    run.add_argument("--repeat", type=number(int, MOST_RUNS), default=1,
                     metavar="N", help="runs, with successive seeds")
    run.add_argument("-j", "--jobs", type=number(int, MOST_RUNS), default=1,
                     metavar="N", help="runs at a time, each on a core")
    run.add_argument("--traffic", choices=("tollway", "iperf3"),
                     default="tollway", help="who sends (default: tollway)")
    run.add_argument("--trace", choices=("none", "hash", "pcap"),
                     default="none", help="hash every packet of the "
                     "bottlenecks into the digest, or keep them as well")
    run.add_argument("--flavour", choices=FLAVOURS, default="plain",
                     help="of the lab's kernel")
    run.add_argument("--out", type=path, metavar="DIR",
                     help="where the results go (default: tollway-results/"
                     "EXPERIMENT/CC-AQM)")
    run.add_argument("--json", type=file_name, metavar="FILE", dest="as_json",
                     help="write the result there; - prints it instead of the "
                     "tables")
    run.add_argument("-v", "--verbose", action="store_true",
                     help="print the commands that are run in the nodes")

    again = commands.add_parser(
        "report", help="make tables, figures and report again from results")
    again.add_argument("directory", type=path, metavar="DIR")

    lab = commands.add_parser("lab", help="the virtual-time kernel by hand")
    actions = lab.add_subparsers(dest="action", required=True,
                                 metavar="ACTION")
    for name, text in (("build", "build the kernel, modules and tools"),
                       ("info", "say what is built, and from what"),
                       ("shell", "a shell in it, on this terminal"),
                       ("exec", "a command in it")):
        action = actions.add_parser(name, help=text)
        action.add_argument("--flavour", choices=FLAVOURS, default="plain")
        if name in ("shell", "exec"):
            action.add_argument("--seed", type=number(int, LARGEST_SEED),
                                default=1, metavar="N")
            action.add_argument("--out", type=path, metavar="DIR",
                                help="the one directory it can write to")
        if name == "exec":
            action.add_argument("--wall", type=number(float, LONGEST_S),
                                default=600, metavar="S",
                                help="limit in seconds of real time")
            action.add_argument("--virtual", type=number(float, LONGEST_S),
                                default=86400, metavar="S",
                                help="limit in seconds of virtual time")
            action.add_argument("argv", nargs=argparse.REMAINDER,
                                metavar="COMMAND")
    doctor.add_options(commands.add_parser(
        "doctor", help="what is missing on this machine; with --peer, does ECN "
        "work from end to end?"))
    return top


def command_smoke(arguments):
    """Run the smoke set at a place; its lines of KTAP go to the terminal."""
    if arguments.on == "host":
        raise TollwayError("smoke unloads the modules: it runs --on lab or "
                           "--on qemu")
    progress = Progress()
    machine = Qemu(arguments.kernel, progress) if arguments.on == "qemu" else \
        Lab(arguments.flavour, progress)
    progress.step(f"booting {machine.kernel.version}")
    progress.done()
    out_dir = (arguments.out or Path("tollway-results") / "smoke" /
               machine.kernel.version).absolute()
    status = machine.run(["/usr/bin/python3", "-m", "tollwaylib.guest.smoke"],
                         out_dir, on_line=print_line, wall_s=SMOKE_S,
                         virtual_s=SMOKE_S)
    return EXIT_MISSED if status else EXIT_HOLDS


def command_list():
    """List the experiments."""
    for experiment in experiments.EXPERIMENTS.values():
        print(f"{experiment.name}\n    {experiment.title}.\n"
              f"    Reproduces {experiment.reproduces}.")
    print("smoke\n    Do the modules work on a kernel? With --on qemu: on a "
          "stock one.")
    return EXIT_HOLDS


def command_run(arguments, words):
    """Run an experiment, or all variants of one that compares."""
    if arguments.experiment == "smoke":
        return command_smoke(arguments)
    experiment = experiments.get(arguments.experiment)
    given = [f"scale={arguments.scale}"] if arguments.scale else []
    given += arguments.settings
    out_dir = (arguments.out or
               Path("tollway-results") / experiment.name).absolute()
    chosen = arguments.cc is not None or arguments.aqm is not None
    if experiment.only_compares and chosen:
        raise TollwayError(f"{experiment.name} compares its own sources "
                           "and queues: it takes no --cc and no --aqm")
    values = experiments.parse_settings(experiment, given, with_setup=False)
    if not arguments.out and values["setup"] == "paper":
        out_dir /= "paper"
    variants = () if chosen else experiments.variants(experiment, values)
    if variants:
        if not arguments.out and "model" in values:
            out_dir /= f"compared-{values['model']}"
        runs = [(variant.cc, variant.aqm,
                 [f"{name}={value}" for name, value in
                  variant.settings.items()] + given +
                 experiment.naming(variant), out_dir / variant.name, variant)
                for variant in variants]
    else:
        cc, aqm = (default if word is None else word for word, default in
                   ((arguments.cc, experiment.cc),
                    (arguments.aqm, experiment.aqm)))
        if not arguments.out:
            out_dir /= "-".join(word.replace("/", "_")
                                for word in (cc, *aqm.split()))
        runs = [(cc, aqm, given, out_dir, None)]
    checked = [(cc, aqm, experiments.parse_settings(experiment, settings, cc,
                                                    aqm), place, variant)
               for cc, aqm, settings, place, variant in runs]
    for cc, aqm, values, _, variant in checked:
        check_run(arguments, experiment, cc, aqm, values, variant)
    if arguments.as_json not in (None, "-"):
        check_file(arguments.as_json)
    done = [result for cc, aqm, values, place, variant in checked
            for result in run_once(arguments, words, experiment, cc, aqm,
                                   values, place, variant)]
    if variants:
        whole = terminal.show_variants(done, out_dir, arguments.as_json)
    else:
        whole = [terminal.show(done, out_dir, arguments.as_json)]
    return EXIT_HOLDS if all(map(all_hold, whole)) \
        else EXIT_MISSED


def check_run(arguments, experiment, cc, aqm, values, variant):
    """Raise TollwayError if a run cannot be what was asked for."""
    duration_s = arguments.duration or experiment.duration_s
    if duration_s <= values["warmup_s"]:
        raise TollwayError(
            f"--duration {duration_s:g}: it must be longer than the warm-up of "
            f"{values['warmup_s']:g} s (--set warmup_s=...)")
    experiments.job(experiment, cc, aqm, values, duration_s, arguments.seed,
                    variant)


def run_once(arguments, words, experiment, cc, aqm, values, out_dir,
             variant=None):
    """Run all seeds of one combination; returns their results."""
    place = {
        "lab": lambda: LabPlace(arguments.flavour),
        "qemu": lambda: QemuPlace(arguments.kernel),
        "host": lambda: HostPlace(cc, aqm_words(aqm, values)),
    }[arguments.on]()
    seeds = range(arguments.seed, arguments.seed + arguments.repeat)
    return runner.run(
        place, experiment, cc, aqm, values,
        arguments.duration or experiment.duration_s,
        seeds, out_dir, jobs=arguments.jobs if arguments.on == "lab" else 1,
        command=visible(shlex.join(["tollway", *words])),
        variant=variant, options={"trace": None if arguments.trace == "none"
                 else arguments.trace, "traffic": arguments.traffic,
                 "verbose": arguments.verbose})


def command_lab(arguments):
    """Build, describe or enter the lab."""
    progress = Progress()
    lab = Lab(arguments.flavour, progress)
    progress.done()
    if arguments.action in ("build", "info"):
        kernel = lab.kernel
        print(f"kernel   {kernel.version} ({kernel.flavour}), "
              f"config sha256 {kernel.config_sha256[:16]}\n"
              f"patches  {', '.join(kernel.patches)}\n"
              f"image    {kernel.image}\n"
              f"guest    {'seccomp' if kernel.has_seccomp else 'ptrace'}\n"
              f"modules  {lab.modules}\ntools    {lab.tools}", flush=True)
        print(f"boots    in {lab.try_boot():.1f} s")
        return EXIT_HOLDS
    out_dir = arguments.out or scratch_dir()
    try:
        if arguments.action == "shell":
            return shell(lab, out_dir, arguments.seed)
        if not arguments.argv:
            raise TollwayError("tollway lab exec needs a command")
        argv = arguments.argv[1:] if arguments.argv[0] == "--" \
            else arguments.argv
        return lab.run(argv, out_dir, seed=arguments.seed,
                       wall_s=arguments.wall, virtual_s=arguments.virtual,
                       on_line=print_line)
    finally:
        if not arguments.out and not (out_dir / "kernel.log").exists():
            shutil.rmtree(out_dir, ignore_errors=True)


def command_help(about):
    """Explain the command line, or that of one command."""
    parser().parse_args([about, "--help"] if about else ["--help"])


def main(words=None):
    """Do what the command line says; returns the exit status.

    See ends.guarded() for what becomes of exceptions.
    """
    words = sys.argv[1:] if words is None else words
    arguments = parser().parse_args(words)
    if arguments.command == "help":
        return command_help(arguments.about)
    if arguments.command == "list":
        return command_list()
    if arguments.command == "run":
        return command_run(arguments, words)
    if arguments.command == "report":
        page, wholes = write(arguments.directory)
        print(f"report: {page}\n{summary.text(wholes)}")
        return EXIT_HOLDS
    if arguments.command == "lab":
        return command_lab(arguments)
    return doctor.main(arguments)
