# SPDX-License-Identifier: GPL-2.0
"""Every callback of every congestion control in every state of a socket."""

import pytest
from conftest import checks_of, run_check

GUEST_SCRIPT = "guest_states.py"

pytestmark = pytest.mark.lab


@pytest.mark.full
@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_states(guest, check):
    run_check(guest, check)


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_states_shipped(shipped_guest, check):
    """With law, source and w as the modules come."""
    run_check(shipped_guest, check)
