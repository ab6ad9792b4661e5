# SPDX-License-Identifier: GPL-2.0
"""What an experiment is made of."""

from dataclasses import dataclass, field
from typing import Callable

from . import quantities
from .parameters import COMMON, SPECIAL

# Parameters of the HTTP model's users.
_USERS = {"off_s": (0.5, 0.0, 3600.0, "s between the pages of a user, mean")}


@dataclass(frozen=True)
class Variant:
    """One run of an experiment that compares: its name, source and queue,
    and what else is set. bounds: against other variants, see against(). model:
    the one that it belongs to, if the experiment has several, or "paper" where
    it is one of what a paper ran (the parameter setup)."""
    name: str
    cc: str
    aqm: str
    settings: dict = field(default_factory=dict)
    title: str = ""
    bounds: tuple = ()
    model: str = None


@dataclass(frozen=True)
class Experiment:
    """An experiment.

    about: what is run and compared, for `tollway list NAME`. special: {name:
    (default, least, greatest, meaning)} of parameters that only it has; least
    and greatest are None for words.
    topology: function of rate_bps and what shape gives, which returns a
    networks.Network. classes: [(path, weight)] in the order of the
    flow numbers, each with `flows_per_class` flows, whose willingness to pay
    is the parameter wtp times the weight. schedule: [(start s, factor)], by
    which the number of flows is multiplied. defaults: parameters that differ
    from parameters.COMMON. presets: [(names, parameters)], published parameter
    sets: one holds where all its names are the congestion control, the queue
    or the scale or model of a run; the last that holds wins. bounds: [(names,
    bounds)], what must hold where all the names are given, see traits(); see
    quantities.py for the metrics. steady_state: compare with CP05 5.5.
    variants: what is run where neither source nor queue is given, if it is a
    comparison.

    What a run does is a list of cases, each in an idle network. cases:
    of the parameters, the list of Case; without it the run is one case, of the
    flows of the classes. shape: of the parameters, the keywords of the topology.
    metrics: what is measured of each case, see results/metrics; without them the
    result has links, flows and classes. A group of bounds may be a function of
    the parameters. pictures: what the report shows, see report/figures.py.
    x_title: of the x of its cases. sysctls: {name: value} of all hosts, beside
    those of source and queue. others: congestion controls of flows that name
    their own. queues: of the parameters, tc words of links that have their own.
    published: what it brings to be compared with, beside papers/*.json, as parts of
    published.py.
    """
    name: str
    title: str
    reproduces: str
    topology: Callable
    duration_s: float
    classes: tuple = ()
    schedule: tuple = ((0.0, 1),)
    flows_per_class: int = 4
    defaults: dict = field(default_factory=dict)
    presets: tuple = ()
    bounds: tuple = ()
    steady_state: bool = False
    variants: tuple = ()
    # What is run where only one of them, or neither, is given.
    cc: str = "sbrm"
    aqm: str = "sbrm"
    cases: Callable = None
    shape: Callable = lambda values: {}
    metrics: tuple = ()
    pictures: tuple = ()
    x_title: str = None
    sysctls: dict = field(default_factory=dict)
    others: tuple = ()
    queues: Callable = lambda values: ()
    published: tuple = ()
    about: str = ""
    special: dict = field(default_factory=dict)

    def parameters(self):
        """{name: (default, least, greatest, meaning)} of all that --set takes."""
        known = {**COMMON, **self.special}
        known["flows_per_class"] = (self.flows_per_class, 1, 1000,
                                    "flows of each class and path")
        for name, value in self.defaults.items():
            known[name] = (value,) + {**known, **SPECIAL, **_USERS}[name][1:]
        if self.cases:
            known["only"] = SPECIAL["only"]
        return known

    @property
    def only_compares(self):
        """Is there no run of it that is not one of its variants?"""
        return "simulations" in self.defaults

    def naming(self, variant):
        """Settings that tell a variant of it from the others."""
        return [f"simulations={variant.name.lstrip('0')}"] \
            if self.only_compares else []


# A case's gate: the queue of the bottleneck.
SAME_QUEUE = "same"


@dataclass(frozen=True)
class Case:
    """One run of its flows from an idle network.

    name: unique in the experiment. flows: dicts with name, path, role and
    start_s, and stop_s, packets (of a transfer), optimal_s, words (of the flow
    file), cc and early (is it connected before its start?) where they differ
    from the case's end, none, none, none, the run's and True. values: parameters
    that differ from the run's; where the shape of the experiment or the rate
    of its links follow from them, the links are changed. sysctls: {name: value}
    of all hosts that differ from the run's; each case has to have them, since
    nobody sets them back. point: what repeated cases have in common; x, series:
    where it stands in a figure. duration_s: when everything stops. wires:
    {link: impairment of its delay, words of netem}. aqm: the queue, as --aqm,
    where it is not the run's. programs: what runs in nodes meanwhile, see
    program(). passages: is each packet of UDP timed from its entry into the
    network to its exit from the bottleneck? gate: tc words of the queues of
    gates, where they are not the topology's, or SAME_QUEUE. rates: [(s from its
    start, bit/s)] of the only priced link, which changes during the case, or
    [(s, bit/s, link)], in the order of time.
    expected: numbers that theory gives. shape: keywords of the topology that
    differ from the experiment's.
    """
    name: str
    flows: tuple
    duration_s: float
    values: dict = field(default_factory=dict)
    sysctls: dict = field(default_factory=dict)
    point: str = None
    x: float = None
    series: str = None
    rtt_s: float = None
    sample_ms: float = None
    queue_us: int = None
    classes: bool = False
    wires: dict = field(default_factory=dict)
    aqm: str = None
    programs: tuple = ()
    passages: bool = False
    gate: str = None
    rates: tuple = ()
    expected: dict = field(default_factory=dict)
    shape: dict = field(default_factory=dict)


def program(name, node, *words, files=None, keep=()):
    """A program that runs in a node during a case.

    name: unique in the case. node: as the network calls it, or as the experiment
    does. words: its name in tools/ or of a program of the system, and its
    arguments, in which {address:X} is the address of interface X, or of the only
    one of host X. files: {name: content} of its working directory before it
    starts. keep: names of files that it writes there, one JSON object on each
    line, which the raw result keeps as columns; `t_ns` in them, of the monotonic
    clock, becomes `t_s` from the start of the case.
    """
    return {"name": name, "node": node, "words": [str(word) for word in words],
            "files": files or {}, "keep": list(keep)}


def bound(name, metric, operator, value, **of):
    """A bound on a quantity of a run, see quantities.OF_RUNS; of: the link,
    path or interval that it is of."""
    return {**_quantity(name, metric, operator, of), "value": value}


def against(name, metric, operator, variant, **of):
    """A bound that is what another variant measured."""
    return {**_quantity(name, metric, operator, of), "baseline": variant}


def _quantity(name, metric, operator, of):
    quantities.check(metric, of)
    return {"name": name, "metric": metric, "of": of, "op": operator}


def metric(key, kind, title, digits=1, **words):
    """A metric of cases: its key in results, its kind of quantities.OF_CASES,
    which has a unit, with the words that it takes, and its head in tables."""
    return {"key": key, "kind": kind, "title": title,
            "unit": quantities.OF_CASES[kind], "digits": digits,
            "words": words}


def panel(key, log=False):
    """A panel of the picture "curves" of an experiment: a metric's key, and
    whether its axis is logarithmic."""
    return {"key": key, "log": log}


def case_bound(name, case, key, operator, value, of_case=None,
               over_seeds=False):
    """A bound on a metric of a case; of_case: value is a part of what the case
    of that name measured. over_seeds: it is on means, and not on each seed."""
    return {"name": name, "case": case, "metric": key, "op": operator,
            "value": value, **({"of_case": of_case} if of_case else {}),
            **({"over_seeds": True} if over_seeds else {})}


def cases_bound(name, cases, key, reduce, operator, value):
    """A bound on the means over seeds of what several cases measured.

    reduce: what is made of them, see results/verdicts.py."""
    return {"name": name, "cases": list(cases), "metric": key,
            "reduce": reduce, "op": operator, "value": value,
            "over_seeds": True}
