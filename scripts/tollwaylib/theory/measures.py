# SPDX-License-Identifier: GPL-2.0
"""Statistics: fairness index, quantiles."""

import numpy as np

from ..errors import TollwayError
from .fairness import KKT_TOLERANCE


def jain_index(values):
    """Jain's fairness index, (sum x)^2 / (n sum x^2): 1 if all are equal.

    values: numbers of 0 and up in one unit, at least one of them above 0.

    Raises TollwayError if they are not.
    """
    values = np.asarray(values, dtype=float)
    if not len(values) or np.any(values < 0) or not np.any(values > 0):
        raise TollwayError("Jain's index needs shares of 0 and up, "
                           "and one above 0")
    return float(values.sum() ** 2 / (len(values) * np.square(values).sum()))


def survival_quantile(times, part):
    """The time within which a part of all is done, by Kaplan and Meier.

    times: list of (s, done, ...): how long something took or, if it was not
    done when the watch ended, had taken by then. part: 0 to 1. Returns s, or
    None where too few were watched for so long. Without any that were not done
    it is the sample's quantile (the smallest time that so many do not exceed).
    """
    left, waiting = 1.0, len(times)
    # What was done at a moment was done before the watch ended there.
    for time, done, *_ in sorted(times, key=lambda one: (one[0], not one[1])):
        if done:
            left *= 1 - 1 / waiting
            if left <= 1 - part + KKT_TOLERANCE:
                return time
        waiting -= 1
    return None
