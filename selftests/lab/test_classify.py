# SPDX-License-Identifier: GPL-2.0
"""Which packets are one flow of fq_rr; each check says what it wants."""

import pytest
from conftest import checks_of, run_check

GUEST_SCRIPT = "guest_classify.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_classify(guest, check):
    run_check(guest, check)
