# SPDX-License-Identifier: GPL-2.0
"""The congestion control pp in the lab; each check says what it wants."""

import pytest
from conftest import extended, run_check

GUEST_SCRIPT = "guest_pp.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", extended(GUEST_SCRIPT, {"fifo"}))
def test_pp(guest, check):
    run_check(guest, check)
