# SPDX-License-Identifier: GPL-2.0
"""pp on hosts as people set them up: queues, offloads, bridges, tunnels, trains."""

import pytest
from conftest import run_check, with_measurements

GUEST_SCRIPT = "guest_setups.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", with_measurements(GUEST_SCRIPT))
def test_setups(guest, check):
    run_check(guest, check)
