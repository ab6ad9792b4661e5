# SPDX-License-Identifier: GPL-2.0
"""Flows of sbrm and flows without ECN in one queue: who gets what."""

import os

import pytest
from conftest import checks_of, run_check

GUEST_SCRIPT = "guest_share.py"

pytestmark = pytest.mark.lab

# Two minutes, and about 13 times as long on the debug kernel: with the short
# forms as long as a boot may take.
LONG = [pytest.mark.full, pytest.mark.skipif(
    os.environ.get("TOLLWAY_LAB_FLAVOUR") == "debug",
    reason="measures shares, by what the short forms run on the debug kernel")]


@pytest.mark.parametrize("check", [
    pytest.param(name, marks=LONG if name.startswith("many_")
                 else ()) for name in checks_of(GUEST_SCRIPT)])
def test_share(guest, check):
    run_check(guest, check)
