# SPDX-License-Identifier: GPL-2.0
"""pp with unusual hosts, applications and paths."""

import pytest
from conftest import checks_of, run_check

GUEST_SCRIPT = "guest_unusual.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_unusual(guest, check):
    run_check(guest, check)
