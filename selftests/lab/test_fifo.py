# SPDX-License-Identifier: GPL-2.0
"""pp in one FIFO with cubic, bbr and itself."""

import pytest
from conftest import run_check, with_measurements

GUEST_SCRIPT = "guest_fifo.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", with_measurements(GUEST_SCRIPT))
def test_fifo(guest, check):
    run_check(guest, check)
