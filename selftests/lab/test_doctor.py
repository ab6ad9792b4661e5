# SPDX-License-Identifier: GPL-2.0
"""`tollway doctor --peer`, on the hosts of a path in the lab."""

import pytest
from conftest import checks_of, run_check

GUEST_SCRIPT = "guest_doctor.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_doctor(guest, check):
    run_check(guest, check)
