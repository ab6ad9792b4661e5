# SPDX-License-Identifier: GPL-2.0
"""What a file of this folder declares of the modules that it is about."""

from collections.abc import Callable
from dataclasses import dataclass, field


def _nothing(*_):
    return {}


@dataclass(frozen=True)
class Component:
    """Congestion controls and queues of one family.

    controls: names of its congestion controls.
    parameters: {name: (default, least, greatest, meaning)} that --set takes in
    all experiments; least and greatest are None for words.
    special: the same, of those that only some experiments have.
    choices: {parameter: its words}.
    shipped: {parameter: the module's own default}, where the parameter has
    another one, that of a paper.
    queues: {name: words of tc}; {x} is a parameter or one of the fields.
    fields: the function (values) -> {x: text} for what is not a parameter.
    made_of: {x: names of the parameters that decide it}, of the same.
    sysctls: the function (values, wtps) -> {name: value}, to set on each host
    of its congestion controls; wtps: what the classes of flows pay, ascending.
    deciding: the function (cc, values) -> names of the parameters on which a
    congestion control depends, for published values have to state them.
    priced: has it a willingness to pay?
    cc_info: do cases of packets keep what ss shows of it?
    """
    controls: tuple = ()
    parameters: dict = field(default_factory=dict)
    special: dict = field(default_factory=dict)
    choices: dict = field(default_factory=dict)
    shipped: dict = field(default_factory=dict)
    queues: dict = field(default_factory=dict)
    fields: Callable = _nothing
    made_of: dict = field(default_factory=dict)
    sysctls: Callable = _nothing
    deciding: Callable = lambda cc, values: {"initcwnd"}
    priced: bool = False
    cc_info: bool = False


def setting(value):
    """A value as it is written to a sysctl."""
    return f"{value:.6f}" if isinstance(value, float) else value
