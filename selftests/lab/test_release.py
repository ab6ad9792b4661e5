# SPDX-License-Identifier: GPL-2.0
"""What a congestion control gives back; each check says what it wants."""

import pytest
from conftest import extended, run_check

GUEST_SCRIPT = "guest_release.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", extended(GUEST_SCRIPT, {"large_packets_come_back"}))
def test_release(guest, check):
    run_check(guest, check)
