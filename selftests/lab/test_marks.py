# SPDX-License-Identifier: GPL-2.0
"""What the qdisc sbrm marks and drops for its price; each check says what it wants."""

import pytest
from conftest import checks_of, run_check

GUEST_SCRIPT = "guest_marks.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_marks(guest, check):
    run_check(guest, check)
