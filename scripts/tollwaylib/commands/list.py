# SPDX-License-Identifier: GPL-2.0
"""`tollway list`: the experiments, and what one of them is."""

import textwrap

from .. import papers
from ..ends import HOLDS as EXIT_HOLDS
from ..experiments import plan
from ..experiments.description import OF_FILE

WIDTH = 80
SMOKE = ("Do the modules work on a kernel? With --on qemu: on a stock one.",
         "A set of checks with KTAP output, for --on qemu and --on lab. Each module "
         "is loaded, used by tc(8), sysctl(8) and iperf3(1), seen by ss(8), changed "
         "under traffic on all processors, and removed; tollway-admit(8) controls "
         "a class and restores it; the kernel reports no error.")


def _origin(experiment):
    """Where an experiment is from, as a sentence."""
    what = experiment.reproduces
    if what.startswith("no paper"):
        return f"Not from a paper{what.removeprefix('no paper')}."
    if experiment.is_own:
        return f"Your own experiment: {what.removeprefix(OF_FILE)}."
    return f"Reproduces {what}."


def _paragraphs(text):
    """A text with its paragraphs wrapped."""
    return "\n\n".join(textwrap.fill(one, WIDTH, break_on_hyphens=False,
                                     break_long_words=False)
                       for one in text.split("\n\n"))


def _what_is_run(experiment):
    """Duration, warm-up, and congestion controls with their queues."""
    values = plan.parse_settings(experiment, [], with_setup=False)
    pairs = dict.fromkeys(f"{one.cc} over {one.aqm}" for one in
                          plan.variants(experiment, values))
    if experiment.only_compares:
        default = "It takes no --cc and no --aqm."
    elif pairs:
        default = f"Without --cc and --aqm it compares {', '.join(pairs)}."
    else:
        default = f"Default: --cc {experiment.cc} --aqm {experiment.aqm}."
    return (f"Duration: {experiment.duration_s:g} s (--duration), of which "
            f"{values['warmup_s']:g} s are the warm-up. {default}")


def describe(experiment):
    """All that an experiment says of itself, and its parameters (text)."""
    known = experiment.parameters()
    words = {name: f"{name}={entry[0]}" for name, entry in known.items()}
    column = max(map(len, words.values())) + 2
    return "\n\n".join(filter(None, [
        f"{experiment.name}: {experiment.title}.",
        _paragraphs(_origin(experiment)), _paragraphs(experiment.about),
        _paragraphs(_what_is_run(experiment)),
        "Parameters (--set NAME=VALUE) and their defaults:\n" + "\n".join(
            f"    {words[name]:{column}}{entry[3]}"
            for name, entry in known.items())]))


def command_list(name=None):
    """List the experiments, or describe one."""
    if name == "smoke":
        print(f"smoke: {SMOKE[0]}\n\n{_paragraphs(SMOKE[1])}")
    elif name:
        print(describe(papers.get(name)))
    else:
        for experiment in papers.EXPERIMENTS.values():
            print(f"{experiment.name}\n    {experiment.title}.\n"
                  f"    {_origin(experiment)}")
        print(f"smoke\n    {SMOKE[0]}")
    return EXIT_HOLDS
