# SPDX-License-Identifier: GPL-2.0
"""The commands of the README."""

import pytest
from conftest import checks_of, run_check

GUEST_SCRIPT = "guest_readme.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_readme(guest, check):
    run_check(guest, check)
