# SPDX-License-Identifier: GPL-2.0
"""Many flows of pp over a short queue: hardly anything is lost."""

import pytest
from conftest import run_check, with_measurements

GUEST_SCRIPT = "guest_limit.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", with_measurements(GUEST_SCRIPT))
def test_limit(guest, check):
    run_check(guest, check)
