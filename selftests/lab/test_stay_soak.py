# SPDX-License-Identifier: GPL-2.0
"""Staying up: days of virtual time, across all that wraps."""

import pytest
from conftest import checks_of, full_checks_of, run_check, run_full

GUEST_SCRIPT = "guest_stay_soak.py"
# Without a limit of virtual time nobody looks at the clock while all wait.
GUEST_LIMITS = {"virtual_s": None}
FULL_LIMITS = {"virtual_s": None, "wall_s": 4 * 3600}

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_stay_soak(guest, check):
    run_check(guest, check)


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_stay_soak_shipped(shipped_guest, check):
    """With law, source and w as the modules come."""
    run_check(shipped_guest, check)


@pytest.mark.full
@pytest.mark.parametrize("full_guest", full_checks_of(GUEST_SCRIPT),
                         indirect=True)
def test_stay_soak_full(full_guest):
    run_full(full_guest)
