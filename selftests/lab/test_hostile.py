# SPDX-License-Identifier: GPL-2.0
"""What receivers that cheat gain."""

import pytest
from conftest import extended, run_check

GUEST_SCRIPT = "guest_hostile.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", extended(GUEST_SCRIPT, {"cp", "rm"}))
def test_hostile(guest, check):
    run_check(guest, check)


# The defaults that the lab changes else are those of sbrm and of its queue.
@pytest.mark.parametrize("check", extended(GUEST_SCRIPT, {"cp", "pp", "rm"}))
def test_hostile_shipped(shipped_guest, check):
    """With law, source and w as the modules come."""
    run_check(shipped_guest, check)
