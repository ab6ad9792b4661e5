# SPDX-License-Identifier: GPL-2.0
"""Random input from one seed (TOLLWAY_SEED) in the lab."""

import pytest
from conftest import checks_of, run_check

GUEST_SCRIPT = "guest_fuzz.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_fuzz(guest, check):
    run_check(guest, check)
