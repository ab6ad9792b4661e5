# SPDX-License-Identifier: GPL-2.0
"""Modules that the kernel loads by itself."""

import pytest
from conftest import checks_of, run_check

GUEST_SCRIPT = "guest_autoload.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_autoload(guest, check):
    run_check(guest, check)
