# SPDX-License-Identifier: GPL-2.0
"""Packets that may be marked, where marks are not understood."""

import pytest
from conftest import checks_of, run_check, run_full

GUEST_SCRIPT = "guest_ecn.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_ecn(guest, check):
    run_check(guest, check)


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_ecn_shipped(shipped_guest, check):
    """With law, source and w as the modules come."""
    run_check(shipped_guest, check)


@pytest.mark.full
@pytest.mark.parametrize("full_guest", ["peer_without_ecn"], indirect=True)
def test_each_estimator(full_guest):
    run_full(full_guest)
