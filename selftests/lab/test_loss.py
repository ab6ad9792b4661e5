# SPDX-License-Identifier: GPL-2.0
"""What sbrm takes a loss for, in the lab; each check says what it wants."""

import pytest
from conftest import extended, run_check

GUEST_SCRIPT = "guest_loss.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", extended(GUEST_SCRIPT, {"fifo_after_price"}))
def test_loss(guest, check):
    run_check(guest, check)
