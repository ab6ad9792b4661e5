# SPDX-License-Identifier: GPL-2.0
"""From raw measurements to results: pure functions of raw.json."""
