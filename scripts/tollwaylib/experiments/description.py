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
    """One run of an experiment that compares: its name, congestion control, queue and
    other settings.

    bounds: bounds against other variants, see against(). model: the value of the
    parameter `model` to which the variant belongs, if the experiment has several values;
    "paper" if it is one of the variants that a paper ran (parameter `setup`).
    """
    name: str
    cc: str
    aqm: str
    settings: dict = field(default_factory=dict)
    title: str = ""
    bounds: tuple = ()
    model: str = None


@dataclass(frozen=True)
class Paper:
    """A paper whose experiments a file of papers/ has.

    name: the short name with which `reproduces` of its experiments begins. citation:
    author, title and year. simulator: where its published values are from; None if it
    does not name one. parameters: {name: (default, least, greatest, meaning)} that --set
    takes in those of its experiments that have them in `defaults`; least and greatest
    are None for words. choices: {parameter: its words}; a preset may have one of these
    words. deciding: parameters that a published value has to state. free: parameters that
    it must not state, although others have to, because the paper's value is for any of them.
    """
    name: str
    citation: str
    simulator: str = None
    parameters: dict = field(default_factory=dict)
    choices: dict = field(default_factory=dict)
    deciding: tuple = ()
    free: tuple = ()


@dataclass(frozen=True)
class Experiment:
    """An experiment.

    reproduces: the tables and figures of a paper. about: what is run and compared, for
    `tollway list NAME`. special: {name: (default, least, greatest, meaning)} of parameters
    that only this experiment has; least and greatest are None for words. paper: the Paper
    whose file has it, which papers/__init__.py sets.

    topology: function of rate_bps and of the keywords that shape gives; it returns a
    networks.Network. shape: function of the parameters that returns these keywords.
    queues: function of the parameters that returns tc words of links with a queue of
    their own. sysctls: {name: value} of all hosts, in addition to those of the congestion
    control and the queue.

    classes: [(path, weight)] in the order of the flow numbers. Each class has
    `flows_per_class` flows, whose willingness to pay is the parameter wtp times the
    weight. schedule: [(start s, factor)]; the number of flows is multiplied by the factor
    from then on. others: congestion controls of flows that name their own.

    cases: function of the parameters that returns the list of Case; each begins with an
    idle network. Without it the run is one case, with the flows of the classes.
    metrics: the metrics of each case, see results/metrics; without them the result has
    links, flows and classes. pictures: the figures of the report, see report/figures.py.
    x_title: the title of the x axis of the cases.

    defaults: parameters that differ from parameters.COMMON. presets: [(names,
    parameters)], published sets of parameters. A set applies if each of its names is the
    congestion control, the queue, the scale or the model of a run; if several apply, the
    last one wins. variants: the variants of a comparison, which are run if neither --cc
    nor --aqm is given.

    bounds: [(names, bounds)]; the bounds apply if all the names are given, see traits().
    A group of bounds may be a function of the parameters. quantities.py has the metrics.
    steady_state: compare with CP05 5.5. published: values to be compared with, in addition
    to papers/*.json, as the parts of published.py. refusals: {begin of an error of a
    kernel: what takes its place}, see own_words.py.
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
    # Used if only one of --cc and --aqm is given, or none.
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
    paper: Paper = None
    refusals: dict = field(default_factory=dict)

    def parameters(self):
        """{name: (default, least, greatest, meaning)} of all that --set takes."""
        known = {**COMMON, **self.special}
        of_paper = self.paper.parameters if self.paper else {}
        known["flows_per_class"] = (self.flows_per_class, 1, 1000,
                                    "flows of each class and path")
        for name, value in self.defaults.items():
            known[name] = (value,) + {
                **known, **SPECIAL, **_USERS, **of_paper}[name][1:]
        if self.cases:
            known["only"] = SPECIAL["only"]
        return known

    @property
    def is_own(self):
        """True if it is in a user's file."""
        return self.reproduces.startswith(OF_FILE)

    @property
    def choices(self):
        """{parameter of its paper: the words that --set takes}."""
        return self.paper.choices if self.paper else {}

    def deciding(self, values):
        """Names of the parameters of its paper that a published value has to state (set).
        values: the parameters of a run."""
        return set(self.paper.deciding) & set(values) if self.paper else set()

    @property
    def only_compares(self):
        """True if each run of the experiment is one of its variants."""
        return "simulations" in self.defaults

    def naming(self, variant):
        """The settings that distinguish a variant from the others."""
        return [f"simulations={variant.name.lstrip('0')}"] \
            if self.only_compares else []


# Before the name of the file in Experiment.reproduces, where it is a user's.
OF_FILE = "nothing: it is "
# The name of the only case of an experiment without a list of cases.
WHOLE_RUN = "run"
# Case.gate: gates have the same queue as the bottleneck.
SAME_QUEUE = "same"


@dataclass(frozen=True)
class Case:
    """One run of its flows, which begins with an idle network.

    name: unique in the experiment. flows: dicts with name, path, role and start_s. These
    fields may be added: stop_s (default: the end of the case), packets (of a transfer;
    default: no end), optimal_s, words (of the flow file), cc (default: that of the run) and
    early (default True: the flow connects before its start).
    values: parameters that differ from those of the run. If the shape of the experiment or
    the rate of its links depends on them, the links are changed. sysctls: {name: value} of
    all hosts that differ from those of the run. All cases must have the same names,
    because nothing restores the values.
    point: the same for repetitions of one case. x, series: the place of the case in a
    figure. duration_s: when everything stops. wires: {link: netem words that impair its
    delay}. aqm: the queue, as for --aqm, if it is not that of the run. programs: programs
    that run in nodes during the case, see program(). passages: measure the time of each UDP
    packet from its entry into the network to its exit from the bottleneck. gate: tc words
    of the queues of gates, if they are not those of the topology, or SAME_QUEUE. rates:
    [(s from the start, bit/s)] of the only priced link, whose rate changes during the case,
    or [(s, bit/s, link)], ordered by time. expected: numbers that theory gives. shape:
    keywords of the topology that differ from those of the experiment.
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

    name: unique in the case. node: its name in the network, or in the experiment. words:
    the program, as its name in tools/ or as a program of the system, and its arguments;
    {address:X} in them is the address of interface X, or of the only interface of host X.
    files: {name: content} of its working directory when it starts. keep: names of files
    that it writes there, with one JSON object on each line. The raw result has them as
    columns; a field `t_ns` (monotonic clock) becomes `t_s`, from the start of the case.
    """
    return {"name": name, "node": node, "words": [str(word) for word in words],
            "files": files or {}, "keep": list(keep)}


def bound(name, metric, operator, value, **of):
    """A bound on a quantity of a run, see quantities.OF_RUNS. of: the link, path or interval
    to which the quantity belongs."""
    return {**_quantity(name, metric, operator, of), "value": value}


def against(name, metric, operator, variant, **of):
    """A bound whose value is what another variant measured."""
    return {**_quantity(name, metric, operator, of), "baseline": variant}


def _quantity(name, metric, operator, of):
    quantities.check(metric, of)
    return {"name": name, "metric": metric, "of": of, "op": operator}


def metric(key, kind, title, digits=1, **words):
    """A metric of cases: its key in results, its kind of quantities.OF_CASES (which has a
    unit) with the words of this kind, and its title in tables."""
    return {"key": key, "kind": kind, "title": title,
            "unit": quantities.OF_CASES[kind], "digits": digits,
            "words": words}


def panel(key, log=False):
    """A panel of the picture "curves" of an experiment: the key of a metric, and whether its
    axis is logarithmic."""
    return {"key": key, "log": log}


def case_bound(name, case, key, operator, value, of_case=None, of_metric=None,
               over_seeds=False):
    """A bound on a metric of a case. of_case: value is a fraction of what the case with this
    name measured, of the metric of_metric if that is another one. over_seeds: the bound
    applies to means over seeds, not to each seed."""
    return {"name": name, "case": case, "metric": key, "op": operator,
            "value": value, **({"of_case": of_case} if of_case else {}),
            **({"of_metric": of_metric} if of_metric else {}),
            **({"over_seeds": True} if over_seeds else {})}


def cases_bound(name, cases, key, reduce, operator, value):
    """A bound on the means over seeds that several cases measured.

    reduce: how one number is computed from them, see results/verdicts.py.
    """
    return {"name": name, "cases": list(cases), "metric": key,
            "reduce": reduce, "op": operator, "value": value,
            "over_seeds": True}
