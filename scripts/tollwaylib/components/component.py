# SPDX-License-Identifier: GPL-2.0
"""What a file of this folder declares: kernel modules, and what --set takes."""

from collections.abc import Callable
from dataclasses import dataclass, field


def _nothing(*_):
    return {}


@dataclass(frozen=True)
class Module:
    """A kernel module, named as its folder.

    controls: its congestion controls. queue: the kind of its qdisc.
    echoed: controls whose receivers must run them too, since they echo each mark
    or price. restricted: those that the kernel takes as the default of its first
    network namespace only; a socket may have them by CAP_NET_ADMIN. counting:
    those that count each mark.

    judged: how `tollway doctor` judges connections of its controls: "marks",
    "pairs" or "second-order"; it only names those of others.
    counters: {line of /proc/net/NAME: what it says where it grows, or None if it
    grows where all is well}.
    info: the word of ss before the state of its controls, "dctcp" or "bbr".
    carrying: {control that carries fields in IP options: (counter of fields that
    cannot be true, counter of signed connections or None)}.
    over: tc words of a queue through which the smoke set sends with the first of
    its controls.
    trial: what the smoke set does with its queue.

    costs: {name: what `make bench` measures}, see report/costs.py: tc words of
    the queue, or the path of a control, whose name is the first word. beside:
    the kernel's own that may not be cheaper, if it is not bbr or codel. free: names
    in costs without this bound.
    """
    name: str
    controls: tuple = ()
    queue: str = None
    echoed: tuple = ()
    restricted: tuple = ()
    counting: tuple = ()
    judged: str = None
    counters: dict = field(default_factory=dict)
    info: str = None
    carrying: dict = field(default_factory=dict)
    over: str = None
    trial: "Trial" = None
    costs: dict = field(default_factory=dict)
    beside: str = None
    free: tuple = ()


@dataclass(frozen=True)
class Trial:
    """What the smoke set does with a queue.

    add, change: tc words. option, value: what tc shows after the change, and
    what refuses a word. storm: tc words of changes under traffic; {0} and {1}
    are random numbers from 1 to 49 and from 100 to 399.
    """
    add: str
    change: str
    option: str
    value: int
    storm: tuple


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
    equal_rates, classful: kinds of qdiscs that give all flows at a link the same rate, and
    whose flows are classes that a filter can choose.
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
    equal_rates: tuple = ()
    classful: tuple = ()
    priced: bool = False
    cc_info: bool = False


def setting(value):
    """A value as it is written to a sysctl."""
    return f"{value:.6f}" if isinstance(value, float) else value
