# SPDX-License-Identifier: GPL-2.0
"""Law delay and source relative at any rate; each check says what it wants."""

import pytest
from conftest import MEASUREMENT, checks_of, run_check

GUEST_SCRIPT = "guest_any_rate.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", [
    pytest.param(name, marks=MEASUREMENT if name.startswith("many_")
                 else ()) for name in checks_of(GUEST_SCRIPT)])
def test_any_rate(guest, check):
    run_check(guest, check)
