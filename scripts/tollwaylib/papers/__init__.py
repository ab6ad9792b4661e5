# SPDX-License-Identifier: GPL-2.0
"""The experiments, by the papers that they reproduce.

What the papers published is beside them."""

import importlib
import pkgutil
from dataclasses import replace

from ..errors import TollwayError
from ..experiments import own

_FILES = [importlib.import_module(f".{name}", __name__) for name in
          sorted(found.name for found in pkgutil.iter_modules(__path__))]
# {short name: Paper}; a paper may have several files.
PAPERS = {file.PAPER.name: file.PAPER for file in _FILES if hasattr(file, "PAPER")}
# Every file here that has EXPERIMENTS; each paper has its own.
EXPERIMENTS = {
    experiment.name: replace(experiment, paper=getattr(file, "PAPER", None))
    for file in _FILES for experiment in getattr(file, "EXPERIMENTS", ())}


def get(name):
    """The Experiment of that name, or in that file (FILE.py); TollwayError with
    the names there are."""
    if name.endswith(".py"):
        experiment = own.load(name)
        if experiment.name in EXPERIMENTS:
            raise TollwayError(f"{name}: there is an experiment "
                               f"{experiment.name} already: rename the file")
        return experiment
    if name not in EXPERIMENTS:
        raise TollwayError(f"there is no experiment {name}: tollway list names "
                           f"{', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]
