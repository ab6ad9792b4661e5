# SPDX-License-Identifier: GPL-2.0
"""pp in queues that no flow has for itself: AQM, prices, bbr, delayed ACKs; and counters."""

import pytest
from conftest import run_check, with_measurements

GUEST_SCRIPT = "guest_shared_queues.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", with_measurements(GUEST_SCRIPT))
def test_shared_queues(guest, check):
    run_check(guest, check)
