# SPDX-License-Identifier: GPL-2.0
"""Echoes, cuts, pairs and setpoints on the wire, in place of packetdrill."""

import pytest
from conftest import checks_of, run_check

GUEST_SCRIPT = "guest_wire.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_wire(guest, check):
    run_check(guest, check)
