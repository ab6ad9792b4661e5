# SPDX-License-Identifier: GPL-2.0
"""`tollway run --on host`, with the lab's kernel as the host."""

import pytest
from conftest import checks_of, run_check

GUEST_SCRIPT = "guest_host.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_host(guest, check):
    run_check(guest, check)
