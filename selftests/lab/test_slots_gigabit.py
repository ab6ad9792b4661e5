# SPDX-License-Identifier: GPL-2.0
"""pp at 1 Gb/s where ACKs come in slots, merged, delayed or thinned: all cells."""

import pytest
from conftest import MEASUREMENT, run_full

GUEST_SCRIPT = "guest_slots.py"
FULL_LIMITS = {"wall_s": 4 * 3600}

pytestmark = [pytest.mark.lab, *MEASUREMENT]


@pytest.mark.parametrize("full_guest", ["many_gigabit"], indirect=True)
def test_slots_gigabit(full_guest):
    run_full(full_guest)
