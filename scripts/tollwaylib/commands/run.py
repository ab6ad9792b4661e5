# SPDX-License-Identifier: GPL-2.0
"""`tollway run`."""

import json
import shlex
from pathlib import Path

from .. import papers, programs
from ..components import aqm_words, modules
from ..ends import HOLDS as EXIT_HOLDS, MISSED as EXIT_MISSED
from ..errors import RefusedError, TollwayError
from ..experiments import jobs, plan
from ..experiments.quantities import OF_TRANSFERS
from ..places import model
from ..places.host import HostPlace
from ..places.usermode_lab import LabPlace
from ..places.machine import Lab, print_line
from ..places.qemu import Qemu, QemuPlace
from ..progress import Progress
from ..results import reading
from ..results.verdicts import all_hold
from ..runs import runner
from ..words import check_file, visible

# Real time that the smoke set may take on a busy machine, s.
SMOKE_S = 1800
# {an option that smoke has no use for: its value where it is not given}
NOT_OF_SMOKE = {"cc": None, "aqm": None, "scale": None, "settings": [],
                "duration": None, "seed": 1, "repeat": 1, "jobs": 1,
                "resume": False, "traffic": "tollway",
                "trace": "none", "as_json": None}
_CALLED = {"settings": "set", "as_json": "json"}


def command_smoke(arguments):
    """Run the smoke set at a place; its lines of KTAP go to the terminal. Raises TollwayError for
    options that it does not have."""
    if arguments.on == "model":
        raise TollwayError("smoke tests kernel modules, and --on model has no kernel")
    if arguments.on == "host":
        raise TollwayError("smoke unloads the modules: it runs --on lab or "
                           "--on qemu")
    usual = {**NOT_OF_SMOKE, **({"flavour": "plain"} if arguments.on == "qemu"
                                else {"kernel": "6.1"})}
    for name, value in usual.items():
        if getattr(arguments, name) != value:
            raise TollwayError(
                f"--{_CALLED.get(name, name)}: smoke --on {arguments.on} has no "
                "such option, as it measures nothing" if name in NOT_OF_SMOKE else
                f"--{name}: smoke --on {arguments.on} does not have this option")
    progress = Progress()
    machine = Qemu(arguments.kernel, progress) if arguments.on == "qemu" else \
        Lab(arguments.flavour, progress)
    progress.step(f"booting {machine.kernel.version}")
    progress.done()
    out_dir = (arguments.out or Path("tollway-results") / "smoke" /
               machine.kernel.version).absolute()
    status = machine.run(["/usr/bin/python3", "-m", "tollwaylib.guest.smoke",
                          json.dumps(modules.of_smoke())], out_dir, on_line=print_line, wall_s=SMOKE_S,
                         virtual_s=SMOKE_S)
    return EXIT_MISSED if status else EXIT_HOLDS


def command_run(arguments, words):
    """Run an experiment, or all variants of one that compares; returns the exit status. Raises
    TollwayError for wrong options and if a run fails, RefusedError if the kernel cannot run it.
    """
    if arguments.experiment == "smoke":
        return command_smoke(arguments)
    experiment = papers.get(arguments.experiment)
    given = [f"scale={arguments.scale}"] if arguments.scale else []
    given += arguments.settings
    results = Path("tollway-results")
    if arguments.on == "model":
        # Seeds of the same name would take the place of what was measured.
        results /= "model"
    out_dir = (arguments.out or results / experiment.name).absolute()
    chosen = arguments.cc is not None or arguments.aqm is not None
    if experiment.only_compares and chosen:
        raise TollwayError(f"{experiment.name} compares its own sources "
                           "and queues: it takes no --cc and no --aqm")
    values = plan.parse_settings(experiment, given, with_setup=False)
    if not arguments.out and values["setup"] == "paper" \
            and not experiment.only_compares:
        out_dir /= "paper"
    variants = () if chosen else plan.variants(experiment, values)
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
    checked = [(cc, aqm, plan.parse_settings(experiment, settings, cc,
                                             aqm), place, variant)
               for cc, aqm, settings, place, variant in runs]
    for cc, aqm, values, _, variant in checked:
        check_run(arguments, experiment, cc, aqm, values, variant)
    if arguments.as_json not in (None, "-"):
        check_file(arguments.as_json)
    programs.require_modules()
    try:
        done = run_all(arguments, words, experiment, checked, out_dir)
    except RefusedError as error:
        raise RefusedError(refused(arguments, experiment, str(error))) from error
    # It takes long to import, and a run that is refused does without.
    from ..report import terminal
    if variants:
        outcome = terminal.show_variants(done, out_dir, arguments.as_json)
    else:
        outcome = [terminal.show(done, out_dir, arguments.as_json)]
    return EXIT_HOLDS if all(map(all_hold, outcome)) \
        else EXIT_MISSED


def refused(arguments, experiment, sentence):
    """The sentence with which a kernel refuses a run: with the place in the user's file
    that has the word, if it is not from the command line."""
    given = (f"--cc {arguments.cc}: ", f"--aqm '{arguments.aqm}': ")
    for begin, place in experiment.refusals.items():
        if sentence.startswith(begin) and begin not in given:
            return place + sentence.removeprefix(begin)
    return sentence


def check_run(arguments, experiment, cc, aqm, values, variant):
    """Raise TollwayError if a run cannot be what was asked for."""
    duration_s = arguments.duration or experiment.duration_s
    if duration_s <= values["warmup_s"]:
        raise TollwayError(
            f"--duration {duration_s:g}: it must be longer than the warm-up of "
            f"{values['warmup_s']:g} s (--set warmup_s=...)")
    job, complete = (jobs.job(experiment, cc, aqm, values, length_s,
                              arguments.seed, variant)
                     for length_s in (duration_s, experiment.duration_s))
    for spec in job["metrics"]:
        role = spec["words"].get("role")
        if spec["kind"] in OF_TRANSFERS and \
                role in _roles(complete) - _roles(job):
            raise TollwayError(
                f"--duration {duration_s:g}: no flow named {role} starts before "
                f"that, so there is no {spec['key']}")
    jobs.check_starts(job)
    if arguments.on == "model":
        model.flows_of({**job, "trace": arguments.trace != "none",
                        "traffic": arguments.traffic})


def _roles(job):
    """The names of the flows of a job that metrics use (set)."""
    return {flow.get("role") for case in job["cases"] for flow in case["flows"]}


def run_all(arguments, words, experiment, checked, out_dir):
    """Run all seeds of all combinations; returns their results."""
    options = {"trace": None if arguments.trace == "none" else arguments.trace,
               "traffic": arguments.traffic, "verbose": arguments.verbose}
    combinations = [
        runner.Combination(experiment, cc, aqm, values,
                           arguments.duration or experiment.duration_s, folder,
                           variant, options)
        for cc, aqm, values, folder, variant in checked]
    return runner.run(
        place_of(arguments, combinations), combinations,
        range(arguments.seed, arguments.seed + arguments.repeat), out_dir,
        reading, jobs=arguments.jobs, command=visible(shlex.join(["tollway", *words])),
        resume=arguments.resume)


def place_of(arguments, combinations):
    """The place that --on names."""
    if arguments.on == "lab":
        return LabPlace(arguments.flavour)
    if arguments.on == "qemu":
        return QemuPlace(arguments.kernel)
    if arguments.on == "model":
        return model.ModelPlace()
    return HostPlace(dict.fromkeys(
        (combination.cc, aqm_words(combination.aqm, combination.values))
        for combination in combinations))
