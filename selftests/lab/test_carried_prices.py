# SPDX-License-Identifier: GPL-2.0
"""How packets carry prices of sbrm in the lab; each check says what it wants."""

import pytest
from conftest import checks_of, run_check

GUEST_SCRIPT = "guest_carried_prices.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_carried_prices(guest, check):
    run_check(guest, check)
