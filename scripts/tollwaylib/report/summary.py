# SPDX-License-Identifier: GPL-2.0
"""The number of verdicts that hold, and those that do not."""

from ..results.verdicts import MISS, verdicts
from .names import run_names
from .verdict_tables import bound_cells, published_cells

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
    return " ".join([*said, *_never_run(outcomes)])


def _never_run(outcomes):
    """A sentence if an experiment brought published values of its own for congestion
    controls and queues that none of its results has: nothing else shows them."""
    ran, brought = {}, {}
    for outcome in outcomes:
        ran.setdefault(outcome["experiment"], []).append(
            [outcome["parameters"].get(name) for name in ("cc", "aqm")])
        brought[outcome["experiment"]] = outcome.get("references", ())
    missing = [(pair, len(row["numbers"])) for name, parts in brought.items()
               for part in parts for row in part["rows"] for pair in row["pairs"]
               if pair not in ran[name]]
    if not missing:
        return []
    count = sum(numbers for _, numbers in missing)
    pairs = " and ".join(dict.fromkeys(f"{cc} over {aqm}" for (cc, aqm), _ in missing))
    return [f"{count} published value{'s are' if count > 1 else ' is'} not compared, "
            f"as there was no run of {pairs}."]


def missed(outcomes):
    """A line for each verdict that does not hold; where there are several
    results, each line begins with what tells them apart."""
    return [(f"{run}: " if len(outcomes) > 1 else "")
            + f"{entry['name']}: {entry['verdict']} ({_numbers(entry)})"
            for run, outcome in zip(run_names(outcomes), outcomes)
            for entry in verdicts(outcome)
            if entry["verdict"] in MISS]


def _numbers(entry):
    """The measured value, and the value with which it is compared."""
    if "op" in entry:
        _, _, measured, limit = bound_cells(entry)
        return f"measured {measured}, wanted {limit}"
    value, measured = published_cells(entry)
    unit = f" {entry['unit']}" if entry["unit"] else ""
    return f"measured {measured}, published {value}{unit}"


def text(outcomes):
    """headline() and missed() for a terminal."""
    lines = missed(outcomes)
    return "\n".join([headline(outcomes)]
                     + ["These do not hold:"] * bool(lines)
                     + [f"  {line}" for line in lines])
