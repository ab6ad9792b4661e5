# SPDX-License-Identifier: GPL-2.0
"""Adaptive admission: tollway-admit between border hosts."""

import pytest
from conftest import extended, run_check, run_full

GUEST_SCRIPT = "guest_admit.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", extended(
    GUEST_SCRIPT, {"static_below", "static_with_data_as_samples"}))
def test_admit(guest, check):
    run_check(guest, check)


@pytest.mark.full
@pytest.mark.parametrize("full_guest", ["static_above"], indirect=True)
def test_admit_over_all_loads(full_guest):
    run_full(full_guest)
