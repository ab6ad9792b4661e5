# SPDX-License-Identifier: GPL-2.0
"""Flows of sbrm and flows without ECN in one queue: who gets what."""

import pytest
from conftest import run_check, with_measurements

GUEST_SCRIPT = "guest_share.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", with_measurements(GUEST_SCRIPT))
def test_share(guest, check):
    run_check(guest, check)
