# SPDX-License-Identifier: GPL-2.0
"""Cells of tables."""

from ..results.fields import mean_of

NONE = "-"


def number(value, digits=1):
    """A number, or mean +- half the 95 % interval of an aggregated one."""
    if isinstance(value, dict):
        if value["mean"] is None:
            return NONE
        text = f"{value['mean']:.{digits}f}"
        if value["ci95"] is not None:
            text += f" ± {value['ci95']:.{digits}f}"
        return text
    return NONE if value is None else f"{value:.{digits}f}"


def percent(value, digits=1):
    """The same of a fraction, as per cent."""
    if isinstance(value, dict):
        value = {key: None if value[key] is None else 100 * value[key]
                 for key in ("mean", "ci95")}
        return number(value, digits)
    return NONE if value is None else f"{100 * value:.{digits}f}"


def count(value):
    """A number of things, or the mean of several runs."""
    value = mean_of(value)
    return NONE if value is None else f"{value:.1f}".removesuffix(".0")


def drops_of(links, key="drops"):
    """The drops of all links of a result's case."""
    return count(sum(mean_of(link[key]) for link in links.values()))


def signed_percent(value):
    """A difference, as a fraction, as per cent with its sign."""
    return f"{100 * value:+.2f}"


def error_of(group):
    """The error of a class, with half its 95 % interval over seeds."""
    half = group.get("error_ci95")
    text = signed_percent(group["error"])
    return text if half is None else f"{text} ± {100 * half:.2f}"


def wtp_of(group):
    """The willingness to pay of a class."""
    return NONE if group["wtp"] is None else f"{group['wtp']:g}"


def seeds_note(result):
    """[a sentence about the numbers of an aggregate], or none for one seed."""
    seeds = result.get("seeds", ())
    if len(seeds) < 2:
        return []
    return [f"mean ± half the 95 % confidence interval over "
            f"{len(seeds)} seeds"]
