# SPDX-License-Identifier: GPL-2.0
"""`tollway run --on host`, with the lab's kernel as the host."""

import pytest
from conftest import extended, run_check

GUEST_SCRIPT = "guest_host.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", extended(GUEST_SCRIPT, {"cases_are_kept", "nothing_to_judge"}))
def test_host(guest, check):
    run_check(guest, check)
