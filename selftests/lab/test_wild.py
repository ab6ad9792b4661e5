# SPDX-License-Identifier: GPL-2.0
"""pp over paths that lose, delay and reorder, beside bbr."""

import pytest
from conftest import run_check, with_measurements

GUEST_SCRIPT = "guest_wild.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", with_measurements(GUEST_SCRIPT))
def test_wild(guest, check):
    run_check(guest, check)
