# SPDX-License-Identifier: GPL-2.0
"""The calibration of a run, over links that are right and wrong."""

import pytest
from conftest import checks_of, run_check

GUEST_SCRIPT = "guest_calibration.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_calibration(guest, check):
    run_check(guest, check)
