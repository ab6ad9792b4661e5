# SPDX-License-Identifier: GPL-2.0
"""What --set, --cc and --aqm take, and the tc words and sysctls they become."""

import string

from .. import components
from ..components import AQMS, COMPONENTS, OF_CONTROL, known_aqm
from ..errors import TollwayError
from . import published


COMMON = {
    # name: (default, least, greatest, meaning)
    "setup": ("ours", None, None, "ours, or paper: the settings of the paper"),
    "warmup_s": (5.0, 0.0, 1e6, "length of the warm-up, s: no rate or mean includes it"),
    "start_jitter_s": (0.1, 0.0, 10.0, "time over which the starts of flows are distributed, s"),
    # How far a link may differ from its description.
    "rate_tolerance": (0.002, 0.0, 1.0, "largest relative error of a rate that "
                       "the calibration accepts; it always accepts one packet"),
    "rtt_tolerance_ms": (0.2, 0.0, 10000.0, "largest excess of a round trip that "
                         "the calibration accepts, ms"),
    "packet_bytes": (1000, 114, 9014, "size of a full packet on the wire, bytes"),
    "rate_mbit": (96.0, 0.1, 10000.0, "rate of each bottleneck, Mb/s"),
    "edge_mbit": (1000.0, 0.0, 1000000.0,
                  "rate of the links to the hosts, Mb/s; 0: no limit"),
    "flow_sample_ms": (100, 10, 10000, "time between samples of the flows, ms"),
    "queue_sample_us": (10000, 100, 1000000, "time between samples of a queue, us"),
    "initcwnd": (1, 1, 1000, "initial window, segments"),
    **{name: entry for one in COMPONENTS
       for name, entry in one.parameters.items()},
}
# Of one experiment or another, whatever its paper. A paper has more of its own, see
# description.Paper.
SPECIAL = {
    "scale": ("few", None, None, "few or many flows or cases"),
    "model": ("greedy", None, None, "greedy flows, or http users"),
    "simulations": ("all", None, None, "numbers of the runs, such as 1,6,27; or all"),
    "only": ("", None, None, "run only cases whose names contain this"),
    "rtt_ms": (20.0, 0.1, 10000.0, "round trip of the network before a case "
               "changes it, ms"),
    **{name: entry for one in COMPONENTS
       for name, entry in one.special.items()},
}
CHOICES = {"scale": ("few", "many"), "model": ("greedy", "http"),
           "setup": ("ours", "paper"),
           **{name: words for one in COMPONENTS
              for name, words in one.choices.items()}}

# Papers and reports know the components by this file.
SHIPPED, PRICED = components.SHIPPED, components.PRICED


def parse(experiment, words, cc="sbrm", aqm="sbrm", with_setup=True):
    """{name: value} from a list of "name=value". Raises TollwayError if one is unknown or wrong, or
    if they do not fit together.

    A parameter that is not set has the value of the experiment's presets for this
    congestion control over this queue, or with setup=paper the value of the paper.
    Without with_setup the values of the paper are not used: the list of variants does
    not depend on them.
    """
    known = experiment.parameters()
    given = parse_words(experiment, words)
    values = {name: entry[0] for name, entry in known.items()}
    setting = {cc, known_aqm(aqm)} | {
        given.get(name, values[name])
        for name in ("scale", "model", "setup", *experiment.choices) if name in known}
    for names, preset in experiment.presets:
        if setting.issuperset(names):
            values.update(preset)
    if experiment.is_own and "rate_mbit" in given:
        raise TollwayError("--set rate_mbit: the links of an experiment of your own have "
                           "their rates in its file")
    if experiment.only_compares and given.get("setup") == "ours":
        raise TollwayError(f"--set setup=ours: {experiment.name} has only the "
                           "setup of the paper")
    if with_setup and "paper" in setting and not experiment.only_compares:
        # The duration of a run is not set here.
        values.update((name, value) for name, value in published.setup(
            experiment.name, cc, known_aqm(aqm),
            {**values, **given}).items() if name in known)
    values.update(given)
    if values["target"] >= values["limit"]:
        raise TollwayError(f"target ({values['target']}) must be below limit "
                           f"({values['limit']})")
    return values


def parse_words(experiment, words):
    """{name: value} of a list of "name=value"; the values are not compared with each
    other. Raises TollwayError if one is unknown or wrong."""
    known = experiment.parameters()
    given = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise TollwayError(f"--set {word}: give it as name=value")
        if name not in known:
            raise TollwayError(f"--set {name}: {experiment.name} has no such "
                               f"parameter, only {', '.join(known)}")
        given[name] = _parse_value(name, text, {**CHOICES, **experiment.choices}.get(name),
                                   *known[name][:3])
    return given


def _parse_value(name, text, choices, default, least, greatest):
    if choices:
        if text not in choices:
            raise TollwayError(f"--set {name}={text}: give one of {', '.join(choices)}")
        return text
    if least is None:
        return text
    try:
        value = type(default)(text)
    except ValueError:
        kind = "a whole number" if isinstance(default, int) else "a number"
        raise TollwayError(f"--set {name}={text}: {text!r} is not {kind}") \
            from None
    # The comparison also refuses nan.
    if not least <= value <= greatest:
        raise TollwayError(f"--set {name}={text}: give a number from {least:g} to "
                           f"{greatest:g}")
    return value


# {field of AQMS: the parameters from which it is computed}, for fields that have
# not the name of a parameter.
_FIELDS = {name: made_of for one in COMPONENTS
           for name, made_of in one.made_of.items()}


def deciding(cc, aqm, values):
    """Names of the parameters on which a congestion control and a queue depend: a
    published value has to state them, and those of its paper that say so. A queue that
    is given as words of tc depends on none. values: the parameters of a run; some of
    them decide whether others matter.
    """
    fields = {field for _, field, _, _ in string.Formatter().parse(
        AQMS.get(known_aqm(aqm), "")) if field}
    names = {name for field in fields for name in _FIELDS.get(field, [field])}
    names |= {"packet_bytes", "warmup_s"}
    family = OF_CONTROL.get(cc)
    return names | (family.deciding(cc, values) if family else {"initcwnd"})
