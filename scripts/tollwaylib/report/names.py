# SPDX-License-Identifier: GPL-2.0
"""Names of runs in headings and legends."""

from ..experiments.description import WHOLE_RUN

_NONE = "-"


def case_name(name):
    """The name of a case in a table."""
    return "the whole run" if name == WHOLE_RUN else name


def combination(result):
    """The congestion control and the AQM of a result, for a heading."""
    parameters = result["parameters"]
    return (f"{parameters.get('cc', _NONE)} + {parameters.get('aqm', _NONE)}"
            + (" (paper)" if parameters.get("setup") == "paper" else ""))


def of_case(result, name):
    """combination() of a result or raw result after the name of one of its cases."""
    return combination(result) if name == WHOLE_RUN else f"{name}: {combination(result)}"


def heading(result, case):
    """combination() of a result or raw result, with the name of the case where
    there are several."""
    return combination(result) + (
        f", {case['name']}" if len(result["cases"]) > 1 else "")


def run_names(outcomes):
    """Names of runs that are compared: congestion control and queue. If these are the same for
    several runs, the name has the parameters that differ."""
    names = list(map(combination, outcomes))
    if len(set(names)) == len(names):
        return names
    parameters = [outcome["parameters"] for outcome in outcomes]
    variants = [values.get("variant") for values in parameters]
    if None not in variants and len(set(variants)) == len(names):
        return [f"{variant} ({name})" for variant, name in zip(variants, names)]
    differing = [key for key in dict.fromkeys(key for values in parameters
                                              for key in values)
                 if key not in ("cc", "aqm", "wtp") and len({
                     repr(values.get(key)) for values in parameters}) > 1]
    return [", ".join([name, *(f"{key} {values[key]}" for key in differing
                               if values.get(key) is not None)])
            for name, values in zip(names, parameters)]
