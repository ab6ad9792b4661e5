# SPDX-License-Identifier: GPL-2.0
"""Congestion controls and queues: what --set takes for them, their words of tc
and their sysctls, and the kernel modules that have them. Each file here that has
MODULES or a COMPONENT declares a family; modules.py has the modules of all."""

import importlib
import pkgutil
import shlex

from ..errors import TollwayError
from .modules import CONTROLS

# In the order of the names of the files; the kernel's own are last.
_ORDER = [cc for controls in CONTROLS.values() for cc in controls]
COMPONENTS = tuple(sorted(
    (found for found in (
        getattr(importlib.import_module(f".{one.name}", __name__), "COMPONENT",
                None) for one in pkgutil.iter_modules(__path__)) if found),
    key=lambda found: min(map(_ORDER.index, found.controls),
                          default=len(_ORDER))))
# {congestion control: its Component}; the kernel's own have none.
OF_CONTROL = {cc: one for one in COMPONENTS for cc in one.controls}
# tc words of the queues that are known by a name; {key} is a parameter, or one
# of a component's fields.
AQMS = {name: words for one in COMPONENTS for name, words in one.queues.items()}
EQUAL_RATES, CLASSFUL = (
    tuple(kind for one in COMPONENTS for kind in getattr(one, which))
    for which in ("equal_rates", "classful"))
ALIASES = {"rem": "rem-pc3"}
PRICED = tuple(cc for cc, one in OF_CONTROL.items() if one.priced)
# The modules' own defaults, where the parameters have the papers' values.
SHIPPED = {name: value for one in COMPONENTS
           for name, value in one.shipped.items()}


def known_aqm(aqm):
    """The name in AQMS that `aqm` stands for; other words as they are."""
    return ALIASES.get(aqm, aqm)


def aqm_words(aqm, values):
    """tc words of the queue under test, from a name of AQMS or any words. Raises TollwayError
    if aqm is empty, or if its quotes are not closed."""
    if known_aqm(aqm) in AQMS:
        fields = {name: text for one in COMPONENTS
                  for name, text in one.fields(values).items()}
        return AQMS[known_aqm(aqm)].format(**{**values, **fields})
    try:
        words = shlex.split(aqm)
    except ValueError as error:
        raise TollwayError(f"--aqm {aqm!r}: {error}") from None
    if not words:
        raise TollwayError("--aqm needs the name of a qdisc")
    return " ".join(shlex.quote(word) for word in words)
