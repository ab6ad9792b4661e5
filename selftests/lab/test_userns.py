# SPDX-License-Identifier: GPL-2.0
"""What users without privilege can change."""

import pytest
from conftest import checks_of, run_check

GUEST_SCRIPT = "guest_userns.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_userns(guest, check):
    run_check(guest, check)
