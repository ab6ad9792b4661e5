# SPDX-License-Identifier: GPL-2.0
"""What runs need of results: to read what is there, and to make a result of raw
measurements. Runs import no results, they are given this module."""

from .analysis import analyse
from .schema import load_raw, load_result

__all__ = ["analyse", "load_raw", "load_result"]
