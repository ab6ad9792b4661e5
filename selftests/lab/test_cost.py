# SPDX-License-Identifier: GPL-2.0
"""Costs of packets and ACKs beside the kernel's own, in cycles of this machine."""

import os

import pytest
from conftest import checks_of, run_check

GUEST_SCRIPT = "guest_cost.py"
# A measurement: on a busy machine it says more of the machine.
pytestmark = [pytest.mark.lab, pytest.mark.full, pytest.mark.skipif(
    os.environ.get("TOLLWAY_LAB_FLAVOUR") == "debug",
    reason="the debug kernel's cycles are its own")]


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_cost(guest, check):
    run_check(guest, check)
