# SPDX-License-Identifier: GPL-2.0
"""Flows of sbrm and flows without ECN in one queue: who gets what."""

import pytest
from conftest import MEASUREMENT, checks_of, run_check

GUEST_SCRIPT = "guest_share.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", [
    pytest.param(name, marks=MEASUREMENT if name.startswith("many_")
                 else ()) for name in checks_of(GUEST_SCRIPT)])
def test_share(guest, check):
    run_check(guest, check)
