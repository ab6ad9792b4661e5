# SPDX-License-Identifier: GPL-2.0
"""Tables of verdicts: of published values, and of an experiment's own bounds."""

from ..results.comparison import SEEDS_FOR_INTERVAL, reasons
from .cells import NONE, percent
from .names import combination
from .rendering import Table


def published_table(result):
    """Published numbers beside ours; None if the paper has none for this."""
    if not result["published"]:
        return None
    units = list(dict.fromkeys(entry["unit"] for entry in
                               result["published"]))
    rows = [[entry["name"], entry["verdict"], entry["paper"]]
            + published_cells(entry)
            + ([entry["unit"] or ""] if len(units) > 1 else [])
            for entry in result["published"]]
    unit = f" [{units[0]}]" if len(units) == 1 and units[0] else ""
    return Table(f"Published and measured values: {combination(result)}",
                 ["quantity", "verdict", "published in", f"published{unit}",
                  f"measured{unit}", *(["unit"] if len(units) > 1 else [])],
                 rows, left=3,
                 notes=_seeds_of_published(result) + other_setups(result)
                 + reasons(result, "published"))


def _seeds_of_published(result):
    """How an aggregate of several seeds is judged, in words."""
    seeds = len(result.get("seeds", ()))
    if seeds < 2:
        return []
    measured = f"measured: mean of {seeds} seeds ± half its 95 % confidence interval. "
    if seeds < SEEDS_FOR_INTERVAL:
        return [measured + "The mean is judged, because the interval is wide with fewer than "
                f"{SEEDS_FOR_INTERVAL} seeds"]
    return [measured + "agrees: a part of the interval is within the tolerance of the "
            "published value. better, differs: all of it is beyond the tolerance"]


def published_cells(entry):
    """The published value of an entry, and the measured one, with half its 95 % interval if
    it is a mean over seeds. Those that are no percentages have four digits, as bounds and
    the figure have: one decimal shows Jain's indices of 0.96 and 1 as the same number."""
    def shown(value):
        return percent(value) if entry["unit"] == "%" else \
            NONE if value is None else f"{value:.4g}"

    measured, half = shown(entry["measured"]), entry.get("ci95")
    if half is not None:
        measured += f" ± {100 * half:.1f}" if entry["unit"] == "%" else \
            f" ± {half:.0f}" if half >= 10 else f" ± {half:.2g}"
    return [shown(entry["value"]), measured]


def other_setups(result):
    """Sentences about published values that are not judged, one for each row of a paper."""
    rows = {(entry["name"].partition(": ")[0], entry["paper"]):
            entry["differences"] for entry in result["published"]
            if entry["differences"]}
    if not rows:
        return []
    return [f"{name}: no verdict, because {paper} is for another setup. This "
            f"run had {', '.join(differences)}"
            for (name, paper), differences in rows.items()] + \
        ([] if result["parameters"].get("setup") != "ours" else
         ["with --set setup=paper the run has the setup of the paper"])


def bounds_table(result):
    """The experiment's own bounds; None if it has none."""
    if not result["bounds"]:
        return None
    return Table("Bounds", ["quantity", "verdict", "measured", "bound"],
                 [bound_cells(bound) for bound in result["bounds"]], left=2,
                 notes=_seeds_of_bounds(result) + reasons(result, "bounds"))


def _seeds_of_bounds(result):
    seeds = len(result.get("seeds", ()))
    return [f"each of the {seeds} seeds must hold a bound; measured: that of the worst seed, "
            "or the mean for a bound on means"] if seeds > 1 else []


def bound_cells(bound):
    """Name, verdict, measured value and limit of a bound."""
    def shown(value):
        return f"{100 * value:.4g} %" if bound["unit"] == "%" else f"{value:.4g}"

    if bound["bound"] is not None:
        limit = shown(bound["bound"])
    else:
        limit = "that" if bound["verdict"] == "needs runs" else "never"
    baseline = f" of {bound['baseline']}" if "baseline" in bound else ""
    return [bound["name"], bound["verdict"],
            "-" if bound["verdict"] == "needs seeds"
            else "never" if bound["measured"] is None
            else shown(bound["measured"]), f"{bound['op']} {limit}{baseline}"]
