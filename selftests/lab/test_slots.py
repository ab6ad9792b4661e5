# SPDX-License-Identifier: GPL-2.0
"""pp where ACKs come in slots, merged, delayed or thinned.

All cells at 1 Gb/s take longer than a boot may: test_slots_gigabit.py has them.
"""

import pytest
from conftest import run_check, with_measurements

GUEST_SCRIPT = "guest_slots.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", [
    check for check in with_measurements(GUEST_SCRIPT, {"far_starts"})
    if check.values != ("many_gigabit",)])
def test_slots(guest, check):
    run_check(guest, check)
