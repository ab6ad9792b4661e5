# SPDX-License-Identifier: GPL-2.0
"""Price laws of sbrm in the lab; what each check wants stands in its docstring."""

import pytest
from conftest import checks_of, run_check

GUEST_SCRIPT = "guest_laws.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_laws(guest, check):
    run_check(guest, check)
