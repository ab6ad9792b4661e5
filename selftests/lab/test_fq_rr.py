# SPDX-License-Identifier: GPL-2.0
"""The qdisc fq_rr in the lab; what each check wants stands in its docstring."""

import pytest
from conftest import checks_of, run_check

GUEST_SCRIPT = "guest_fq_rr.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_fq_rr(guest, check):
    run_check(guest, check)
