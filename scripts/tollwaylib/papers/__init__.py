# SPDX-License-Identifier: GPL-2.0
"""The experiments, by the papers that they reproduce.

What the papers published is beside them."""

import importlib
import pkgutil

from ..errors import TollwayError
from ..experiments import own

# Every file here that has EXPERIMENTS; each paper has its own.
EXPERIMENTS = {
    experiment.name: experiment
    for found in sorted(pkgutil.iter_modules(__path__),
                        key=lambda found: found.name)
    for experiment in getattr(
        importlib.import_module(f".{found.name}", __name__), "EXPERIMENTS", ())}


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
