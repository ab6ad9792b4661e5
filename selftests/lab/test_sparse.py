# SPDX-License-Identifier: GPL-2.0
"""In what order packets leave the qdisc sbrm; each check says what it wants."""

import pytest
from conftest import checks_of, run_check

GUEST_SCRIPT = "guest_sparse.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_sparse(guest, check):
    run_check(guest, check)
