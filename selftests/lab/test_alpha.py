# SPDX-License-Identifier: GPL-2.0
"""Second-order rate control in the lab; each check says what it wants."""

import pytest
from conftest import run_check, with_measurements

GUEST_SCRIPT = "guest_alpha.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", with_measurements(GUEST_SCRIPT))
def test_alpha(guest, check):
    run_check(guest, check)
