# SPDX-License-Identifier: GPL-2.0
"""sbrm, rm and pp over paths that lose, reorder, corrupt, change and break."""

import pytest
from conftest import checks_of, run_check

GUEST_SCRIPT = "guest_paths.py"

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", [
    pytest.param(name, marks=pytest.mark.full if name.startswith("many_")
                 else ()) for name in checks_of(GUEST_SCRIPT)])
def test_paths(guest, check):
    run_check(guest, check)
