# SPDX-License-Identifier: GPL-2.0
"""Law delay and source relative at any rate; each check says what it wants."""

import pytest
from conftest import run_check, with_measurements

GUEST_SCRIPT = "guest_any_rate.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", with_measurements(
    GUEST_SCRIPT, {"marks_at_random", "unequal_round_trips"}))
def test_any_rate(guest, check):
    run_check(guest, check)
