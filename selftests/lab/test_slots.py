# SPDX-License-Identifier: GPL-2.0
"""pp where ACKs come in slots, merged, delayed or thinned."""

import pytest
from conftest import run_check, with_measurements

GUEST_SCRIPT = "guest_slots.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", with_measurements(GUEST_SCRIPT))
def test_slots(guest, check):
    run_check(guest, check)
