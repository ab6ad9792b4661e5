# SPDX-License-Identifier: GPL-2.0
"""A window beside the rate, reservations at the queue; see the docstrings of the checks."""

import pytest
from conftest import checks_of, run_check

GUEST_SCRIPT = "guest_reserve.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_reserve(guest, check):
    run_check(guest, check)
