# SPDX-License-Identifier: GPL-2.0
"""The qdisc sbrm and packets that cannot be marked for the price."""

import pytest
from conftest import checks_of, run_check

GUEST_SCRIPT = "guest_classic.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_classic(guest, check):
    run_check(guest, check)
