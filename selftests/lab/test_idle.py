# SPDX-License-Identifier: GPL-2.0
"""The windows that were not used, in the lab; each check says what it wants."""

import pytest
from conftest import checks_of, run_check

GUEST_SCRIPT = "guest_idle.py"

pytestmark = pytest.mark.lab


@pytest.mark.full
@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_idle(guest, check):
    run_check(guest, check)


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_idle_shipped(shipped_guest, check):
    """With law, source and w as the modules come."""
    run_check(shipped_guest, check)
