# SPDX-License-Identifier: GPL-2.0
"""Which runs a command makes: settings, and the variants of an experiment."""

from ..components import known_aqm
from ..errors import TollwayError
from . import published
from .parameters import parse


def parse_settings(experiment, words, cc="sbrm", aqm="sbrm", with_setup=True):
    """{name: value} from a list of "name=value", see parameters.parse()."""
    return parse(experiment, words, cc, aqm, with_setup)


def variants(experiment, values):
    """The variants of a model or setup, or those whose numbers `simulations` has; none if the
    experiment has only runs without a variant. Raises TollwayError if `simulations` has a
    number that no variant has."""
    if not experiment.only_compares:
        found = tuple(variant for variant in experiment.variants
                      if variant.model in (values.get("model"),
                                           values["setup"]))
        if values["setup"] == "ours":
            return found
        # Of baselines that no paper had there is nothing to run.
        return tuple(variant for variant in found
                     if "setup" not in variant.settings
                     and _is_of_paper(experiment, variant, values))
    text = values["simulations"]
    if text == "all":
        return experiment.variants
    numbers = {variant.name.lstrip("0"): variant
               for variant in experiment.variants}
    unknown = [word for word in text.split(",") if word not in numbers]
    if unknown:
        raise TollwayError(f"--set simulations={text}: {unknown[0]!r} is not "
                           f"a number from 1 to {len(numbers)}")
    return tuple(numbers[word] for word in dict.fromkeys(text.split(",")))


def _is_of_paper(experiment, variant, values):
    """True if a paper has a row for this variant: its congestion control over its queue, in
    the same network, with the same setup."""
    rows = published.rows(experiment.name, variant.cc, known_aqm(variant.aqm),
                          {**values, **variant.settings})
    return any(all(row["setup"].get(name, value) == value
                   for name, value in variant.settings.items())
               for row in rows)
