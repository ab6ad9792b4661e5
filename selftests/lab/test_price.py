# SPDX-License-Identifier: GPL-2.0
"""cp, rem, rm and the pairs in the lab; what each check wants stands in its
docstring."""

import pytest
from conftest import extended, run_check

GUEST_SCRIPT = "guest_price.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", extended(GUEST_SCRIPT, {"pairs"}))
def test_price(guest, check):
    run_check(guest, check)
