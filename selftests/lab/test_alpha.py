# SPDX-License-Identifier: GPL-2.0
"""Second-order rate control in the lab; each check says what it wants."""

import pytest
from conftest import extended, run_check

GUEST_SCRIPT = "guest_alpha.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", extended(GUEST_SCRIPT, {"goal_of_3", "goal_of_8"}))
def test_alpha(guest, check):
    run_check(guest, check)
