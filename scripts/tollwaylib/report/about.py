# SPDX-License-Identifier: GPL-2.0
"""Sentences of a report: what was run and why, which parameters matter, and when a measure
favours one of the runs."""

from .. import papers
from ..components import EQUAL_RATES
from ..errors import TollwayError
from ..experiments import published
from ..experiments.parameters import COMMON, PRICED, SHIPPED, SPECIAL, deciding

# These stand in the first sentence, or say nothing about the network.
_SAID = ("cc", "aqm", "duration_s", "variant")
_TOLERANCES = ("rate_tolerance", "rtt_tolerance_ms")


def experiment_of(name):
    """The Experiment with this name; None if it is a user's own."""
    try:
        return papers.get(name)
    except TollwayError:
        return None


def counted(count, word):
    """"1 flow" or "2 flows", of a number and a word."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def listed(words):
    """"a, b and c"."""
    words = list(words)
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def numbers(values):
    """"1", or "1 to 3", of numbers."""
    least, most = min(values), max(values)
    return f"{least:g}" if least == most else f"{least:g} to {most:g}"


# --- what was run and why ----------------------------------------------------

def title(raw):
    """The title of a raw result's experiment; its name where it has none."""
    experiment = experiment_of(raw["experiment"])
    found = raw.get("title") or (experiment.title if experiment else "")
    return found.rstrip(".") or raw["experiment"]


def sentences(groups):
    """What was run, why and where, for the groups of one experiment."""
    raw = groups[0].raw
    return [*filter(None, (_what(groups), *_changes(groups),
                           *_reasons(raw["experiment"], groups), _places(groups)))]


def _what(groups):
    # Those of each case, which may change them.
    networks = [{**group.raw["links"], **case.get("links", {})}
                for group in groups for case in group.raw["cases"]]
    bottlenecks = [[link for link in links.values() if link.get("bottleneck")]
                   or [*links.values()] for links in networks]
    rates = numbers([link["capacity_bps"] / 1e6 for links in bottlenecks
                     for link in links])
    network = f"{counted(max(map(len, bottlenecks)), 'link')} of {rates} Mbit/s"
    pairs = list(dict.fromkeys(
        (group.outcome["parameters"].get("cc"),
         group.outcome["parameters"].get("aqm")) for group in groups))
    if len(pairs) == 1:
        control, queue = pairs[0]
        said = "; cases have queues of their own" if several_queues(groups) else \
            _queues(bottlenecks, queue)
        end = f", with the congestion control {control}{said}."
    else:
        compared = listed(f"{control} over {queue}" for control, queue in pairs)
        end = f". They compare {compared}."
    counts = [len(case["flows"]) for group in groups
              for case in group.raw["cases"]]
    cases = len({case["name"] for group in groups
                 for case in group.raw["cases"]})
    flows = f"{numbers(counts)} flow{'' if max(counts) == 1 else 's'}"
    runs = "" if len(pairs) == 1 else f"{len(groups)} runs, each with "
    if cases > 1:
        return f"{runs}{cases} cases{', each' * (not runs)} of {flows}, over {network}{end}"
    if groups[0].outcome["columns"]:
        return f"{runs}{flows} over {network}{end}"
    seconds = numbers([group.outcome["parameters"]["duration_s"]
                       for group in groups])
    return (f"{runs}{counted(max(counts), 'flow')} over {network} for {seconds} seconds"
            f"{end}")


def several_queues(groups):
    """True if cases have queues of several kinds."""
    return len({case["aqm"].split()[0] for group in groups for case in group.raw["cases"]
                if case.get("aqm")}) > len({group.outcome["parameters"].get("aqm")
                                            for group in groups})


def _queues(networks, queue):
    """Which of the links in these lists have the queue of the run, as the end of a sentence."""
    own = {link.get("queue") for links in networks for link in links}
    if None not in own:
        return f" and the queue {own.pop()}" if len(own) == 1 else \
            "; each link has a queue of its own"
    if len(own) > 1:
        return f", and links without a queue of their own have the queue {queue}"
    return f" and the queue {queue}"


def _changes(groups):
    """[a sentence], if links change their rates in a case."""
    changes = list(dict.fromkeys(
        (link, when_s, rate_bps) for group in groups for case in group.raw["cases"]
        for when_s, rate_bps, link in case.get("rates", ())))
    if not changes:
        return []
    links = listed(dict.fromkeys(link for link, *_ in changes))
    rates = [rate_bps / 1e6 for *_, rate_bps in changes]
    if len(changes) <= 3 and len({link for link, *_ in changes}) == 1:
        then = listed(f"{rate:g} Mbit/s from {when_s:g} s on"
                      for rate, (_, when_s, _) in zip(rates, changes))
    else:
        then = f"{min(rates):g} to {max(rates):g} Mbit/s"
    return [f"During a case the rate of {links} changes: {then}."]


def _reasons(name, groups):
    experiment = experiment_of(name)
    if experiment is None:
        return groups[0].raw.get("about", "").split("\n\n")
    paper = experiment.paper
    if paper and experiment.reproduces.startswith(paper.name):
        said = (f"The experiment repeats a published one: "
                f"{experiment.reproduces} ({paper.name}: {paper.citation}).")
        if published.parts(name) and all(
                group.outcome["parameters"].get("setup") == "ours"
                for group in groups):
            said += (" The parameters are our own. --set setup=paper selects those "
                     "that the paper states.")
        return [said]
    return [experiment.about, "No paper has published this experiment."]


def _places(groups):
    runs = [result["provenance"] for group in groups
            for result in group.results]
    places = list(dict.fromkeys(map(_place, runs)))
    verb = "was" if len(runs) == 1 else "were"
    return f"{counted(len(runs), 'run')} {verb} made {listed(places)}."


def _place(provenance):
    """The place of a run, in words."""
    if provenance.get("place") == "model":
        return "with a fluid model, which has no kernel and no packets"
    kernel = f"Linux {provenance['kernel']}"
    flavour = provenance.get("flavour", "plain")
    return {"lab": f"in the lab on {kernel}, in virtual time",
            "host": f"on this host's own {kernel}",
            "qemu": f"in qemu on {kernel}"}.get(
                provenance.get("place"), f"on {kernel}") + \
        ("" if flavour == "plain" else f" ({flavour} kernel)")


# --- parameters --------------------------------------------------------------

def parameters(outcome):
    """(parameters that matter to the run, all others), as rows of name, value and meaning.

    A parameter matters if the congestion control or the queue of the run depends on it, or if
    its value differs from the default. For a parameter that only some experiments have, this is
    the default of the experiment.
    """
    values = outcome["parameters"]
    experiment = experiment_of(outcome["experiment"])
    meanings = experiment.parameters() if experiment else {**COMMON, **SPECIAL}
    usual = {name: entry[0] for name, entry in COMMON.items()}
    try:
        needed = deciding(values["cc"], values["aqm"], {
            **usual, **values, "initial": values.get("initial", 0)})
        needed |= experiment.deciding(values) if experiment else set()
    except (KeyError, TypeError):
        # An old result.
        needed = {"packet_bytes", "warmup_s"}
    shown, others = [], []
    for name, value in values.items():
        # What is None or empty does not apply.
        if name in _SAID or value in (None, ""):
            continue
        meaning = meanings[name][3] if name in meanings else ""
        # What the experiment has, and what most have. The modules' own defaults are
        # usual, too.
        expected = [[entry[name][0], SHIPPED.get(name, entry[name][0])]
                    for entry in (meanings, COMMON) if name in entry]
        differs = not all(value in each for each in expected) and not (
            name == "wtp" and value == [usual["wtp"]])
        matters = name in needed or differs and name not in _TOLERANCES
        (shown if matters else others).append(
            [name, _plain(value), meaning])
    return shown, others


def _plain(value):
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_plain, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


# --- measures ----------------------------------------------------------------

def measure_notes(groups):
    """The reasons why a comparison by fair shares does not treat all runs alike."""
    if any("classes" not in case or "pages" in case
           for group in groups for case in group.outcome["cases"]):
        return []
    said = []
    equal = {group.outcome["parameters"].get("aqm") for group in groups
             if str(group.outcome["parameters"].get("aqm")).split()[:1] in
             [[name] for name in EQUAL_RATES]}
    several = any(len(path["links"]) > 1 for group in groups
                  for path in group.raw["paths"].values())
    if equal and several:
        said.append(
            f"The measure here is weighted proportional fairness: a path over "
            f"two links has a smaller fair share than a path over one of them. "
            f"The queue{'' if len(equal) == 1 else 's'} "
            f"{listed(sorted(equal))} "
            f"{'has' if len(equal) == 1 else 'have'} another aim: the same "
            f"rate for all flows at a link (max-min fairness). Therefore the "
            f"longest paths get more than 100 % of the fair share there. This "
            f"is neither an advantage nor a fault of the queue.")
    without = {group.outcome["parameters"].get("cc") for group in groups} \
        - set(PRICED)
    if without and len(without) < len(groups):
        said.append(
            f"{listed(sorted(map(str, without)))} "
            f"{'has' if len(without) == 1 else 'have'} no willingness to pay. "
            f"The fair shares of these runs have equal weights for all flows.")
    return said
