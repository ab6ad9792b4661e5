# SPDX-License-Identifier: GPL-2.0
"""What happens to a queue in use, with the defaults."""

import pytest
from conftest import checks_of, run_check

GUEST_SCRIPT = "guest_upsets.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_upsets(guest, check):
    run_check(guest, check)
