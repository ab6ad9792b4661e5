# SPDX-License-Identifier: GPL-2.0
"""Law delay and source relative below any parent; each check says what it wants."""

import pytest
from conftest import checks_of, run_check

GUEST_SCRIPT = "guest_leaf.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_leaf(guest, check):
    run_check(guest, check)
