# SPDX-License-Identifier: GPL-2.0
"""The experiments, by the papers that they reproduce.

What the papers published is beside them."""

from ..errors import TollwayError
from ..experiments import own
from . import any_rate, beyond, cp05, mk94, pp94, pp94_transfers

EXPERIMENTS = {experiment.name: experiment for experiment in (
    *cp05.EXPERIMENTS, *pp94.EXPERIMENTS, *pp94_transfers.EXPERIMENTS,
    *mk94.EXPERIMENTS, *beyond.EXPERIMENTS, *any_rate.EXPERIMENTS)}


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
