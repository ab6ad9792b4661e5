# SPDX-License-Identifier: GPL-2.0
"""What a congestion control gives back; each check says what it wants."""

import pytest
from conftest import checks_of, run_check

GUEST_SCRIPT = "guest_release.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_release(guest, check):
    run_check(guest, check)
