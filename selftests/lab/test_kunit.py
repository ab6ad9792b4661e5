# SPDX-License-Identifier: GPL-2.0
"""KUnit modules in the lab: every line of their KTAP must say ok."""

import pytest
from conftest import checks_of, run_check

GUEST_SCRIPT = "guest_kunit.py"


def GUEST_FILES(lab):
    """Modules that the guest loads from its own directory."""
    return [lab.kernel.build / "lib/kunit/kunit.ko",
            *sorted((lab.modules / "selftests/kunit").glob("*.ko"))]


pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_kunit(guest, check):
    run_check(guest, check)
