# SPDX-License-Identifier: GPL-2.0
"""The one exception the harness raises on purpose."""


class TollwayError(Exception):
    """What went wrong and what to do about it, in one sentence."""
