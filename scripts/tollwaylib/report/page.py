# SPDX-License-Identifier: GPL-2.0
"""Static pages for a directory of results: verdicts, figures, tables.

A page needs no other file (figures are inside it), and the same results give the same page.
Each experiment has a page. If a directory has several, its index.html has links to them.
"""

import copy
import pathlib

from ..errors import TollwayError
from ..files import write_text_atomic
from ..results import aggregate, analysis, origins, schema
from ..results.directories import complete_results
from ..results.verdicts import compare, verdicts
from . import about, sections, summary
from .limitations import limitations
from .names import run_names
from .plotting import Look
from .rendering import render_page, slug
from .sketch import sketch

class Group:
    """The runs of one experiment, one set of parameters and one origin."""

    def __init__(self, raw):
        self.raw = raw
        self.results = []
        self.places = []
        self.outcome = None

    def add(self, result, place):
        self.results.append(result)
        self.places.append(place)

    def finish(self):
        ordered = sorted(zip(self.results, self.places),
                         key=lambda pair: pair[0]["seed"])
        self.results, self.places = map(list, zip(*ordered))
        self.outcome = (aggregate.aggregate(self.results)
                      if len(ordered) > 1 else self.results[0])


def write_report(directory):
    """Write index.html and figures/ for the results below a directory.

    directory: has result directories at any depth, each with raw.json and result.json. Results
    are computed again from raw.json; result.json must be of the same run. Directories without
    result.json are left out, see complete_results(). Returns the path of index.html. Raises
    TollwayError if there are no results, or if one of them has no raw.json.
    """
    return write(directory)[0]


def write(directory):
    """write_report(), with its TollwayError; also returns the results or aggregates that it shows.
    """
    directory = pathlib.Path(directory)
    groups = _collect(directory)
    try:
        (directory / "figures").mkdir(exist_ok=True)
    except OSError as error:
        raise TollwayError(f"cannot write {directory / 'figures'}: "
                           f"{error.strerror}") from error
    experiments = {}
    for group in groups:
        experiments.setdefault(group.outcome["experiment"], []).append(group)
    index = directory / "index.html"
    if len(experiments) == 1:
        write_text_atomic(index, _page(groups, directory))
    else:
        names = _page_names(experiments)
        for name, members in experiments.items():
            write_text_atomic(directory / names[name],
                              _page(members, directory, above="index.html"))
        write_text_atomic(index, _index(experiments, names))
    return index, [group.outcome for members in experiments.values()
                   for group in _named(members)]


def _collect(directory):
    """The groups of results below directory, in the order of their paths."""
    groups = {}
    for place in complete_results(directory):
        raw, result = _load(place)
        parameters = sorted((key, repr(value)) for key, value in
                            result["parameters"].items() if key != "seed")
        groups.setdefault((result["experiment"], tuple(parameters),
                           origins.key_of(result)),
                          Group(raw)).add(result, place)
    if not groups:
        raise TollwayError(f"{directory} holds no results: "
                           f"no raw.json was found below it")
    for group in groups.values():
        group.finish()
    outcomes = compare([group.outcome for group in groups.values()])
    for group, outcome in zip(groups.values(), outcomes):
        group.outcome = outcome
    return list(groups.values())


def _named(groups):
    """Groups of one experiment as they stand beside one another: where they are
    of several origins, the origin is one more parameter, since headings and
    legends name the parameters that differ."""
    found = [origins.origin_of(group.outcome) for group in groups]
    told = origins.telling(found)
    named = list(map(copy.copy, groups))
    for group, origin in zip(named, found):
        # With a colon: an experiment may have a parameter of that name.
        group.outcome = {**group.outcome, "parameters": {
            **group.outcome["parameters"],
            **{f"{name}:": origin[name] for name in told}}}
    return named


def _load(place):
    """One run's raw content and its result, made again from it."""
    if not (place / "raw.json").is_file():
        raise TollwayError(f"the result in {place} is incomplete: it has no "
                           "raw.json")
    raw = schema.load_raw(place)
    stored = schema.load_result(place)
    try:
        result = analysis.analyse(raw)
    except TollwayError as error:
        raise TollwayError(f"{place}: {error}") from error
    if stored["digest"] != result["digest"]:
        raise TollwayError(f"{place} mixes two runs: raw.json and result.json "
                           f"have different digests")
    return raw, result


def _page_names(experiments):
    """{experiment: the name of its page}, all different."""
    names, taken = {}, {"index"}
    for name in experiments:
        base = stem = slug(name)[:80] or "experiment"
        while base in taken:
            base = f"{stem}-{len(taken)}"
        taken.add(base)
        names[name] = f"{base}.html"
    return names


# --- content -------------------------------------------------------------

def _page(groups, directory, above=None):
    """The page of one experiment."""
    name = groups[0].outcome["experiment"]
    named = _named(groups)
    outcomes = [group.outcome for group in named]
    look = Look()
    queues = {outcome["parameters"].get("aqm", "") for outcome in outcomes}
    queue = "queue: the one of the case" if about.several_queues(groups) else \
        f"queue {queues.pop()}" if len(queues) == 1 else "queue: the one of the run"
    drawing = sketch(_same_queues(groups), look, queue)
    names = dict(zip(map(id, groups), run_names(outcomes)))
    title = about.title(groups[0].raw)
    return render_page(
        title=title if title == name else f"{title} ({name})", above=above,
        lead=about.sentences(groups), headline=summary.headline(outcomes),
        missed=summary.missed(outcomes), entries=(), drawing=drawing,
        comparison=sections.comparison(named, directory, look),
        sections=[sections.section(group, names[id(group)], anchor, directory,
                                   look)
                  for group, anchor in sections.with_file_names(groups)],
        commands=_commands(groups), limitations=limitations(groups))


def _same_queues(groups):
    """The raw result of the first group; a link whose own queue is not the same in all
    groups has that of the run."""
    raw = groups[0].raw
    return {**raw, "links": {
        name: link if all(group.raw["links"].get(name, {}).get("queue")
                          == link.get("queue") for group in groups)
        else {**link, "queue": "of the run"} for name, link in raw["links"].items()}}


def _index(experiments, names):
    """The page that leads to those of several experiments."""
    every = [group for groups in experiments.values() for group in groups]
    outcomes = [group.outcome for groups in experiments.values()
              for group in groups]
    entries = []
    for name, groups in experiments.items():
        mine = [group.outcome for group in groups]
        entries.append({
            "name": name, "title": about.title(groups[0].raw), "page": names[name],
            "runs": sum(len(group.results) for group in groups),
            "judged": sum(len(verdicts(outcome)) for outcome in mine),
            "missed": len(summary.missed(mine))})
    return render_page(
        title=f"Results of {about.counted(len(experiments), 'experiment')}",
        above=None, lead=("Each experiment has a page of its own.",),
        headline=summary.headline(outcomes), missed=[
            f"{name}: {line}" for name, groups in experiments.items()
            for line in summary.missed([group.outcome for group in
                                        _named(groups)])],
        entries=entries, drawing=None, comparison=None, sections=(),
        commands=_commands(every), limitations=limitations(every))


def _commands(groups):
    return [*dict.fromkeys(result["provenance"]["command"] for group in groups
                           for result in group.results),
            "tollway report DIR   # this page, from the same results"]
