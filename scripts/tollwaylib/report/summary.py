# SPDX-License-Identifier: GPL-2.0
"""How many verdicts of some results hold, and which do not."""

from ..results.verdicts import MISS, verdicts
from .names import run_names
from .tables import bound_cells, published_cells

# What there is without a verdict, in words: one of it, or several.
_UNJUDGED = {
    "needs seeds": ("1 more bound needs several seeds (--repeat).",
                    "{} more bounds need several seeds (--repeat)."),
    "needs runs": ("1 more bound compares with a variant that was not run.",
                   "{} more bounds compare with variants that were not run."),
    "other setup": ("1 published value is for another setup and is not judged.",
                    "{} published values are for another setup and are not "
                    "judged."),
}


def headline(outcomes):
    """A sentence or more for results or aggregates: N of M verdicts hold."""
    judged = sum(len(verdicts(outcome)) for outcome in outcomes)
    said = [f"{judged - len(missed(outcomes))} of {judged} verdicts hold."] \
        if judged else ["There is nothing to judge: no bound and no published value is for "
              "this setup."]
    words = [entry["verdict"] for outcome in outcomes
             for entry in outcome["published"] + outcome["bounds"]]
    for word, (one, several) in _UNJUDGED.items():
        count = words.count(word)
        if count:
            said.append(one if count == 1 else several.format(count))
    return " ".join(said)


def missed(outcomes):
    """A line for each verdict that does not hold; where there are several
    results, each line begins with what tells them apart."""
    return [(f"{run}: " if len(outcomes) > 1 else "")
            + f"{entry['name']}: {entry['verdict']} ({_numbers(entry)})"
            for run, outcome in zip(run_names(outcomes), outcomes)
            for entry in verdicts(outcome)
            if entry["verdict"] in MISS]


def _numbers(entry):
    """What was measured, and what it is held against."""
    if "op" in entry:
        _, _, measured, limit = bound_cells(entry)
        return f"measured {measured}, wanted {limit}"
    value, measured = published_cells(entry)
    return f"measured {measured}, published {value} {entry['unit']}"


def text(outcomes):
    """headline() and missed() for a terminal."""
    lines = missed(outcomes)
    return "\n".join([headline(outcomes)]
                     + ["These do not hold:"] * bool(lines)
                     + [f"  {line}" for line in lines])
