# SPDX-License-Identifier: GPL-2.0
"""What a newcomer meets on a clean Debian 13, see selftests/clean-system: long
forms, as each makes a system and builds the lab in it. A file for each suite, so
that `make check-full` runs them side by side and resumes them one by one."""

import pytest
from test_clean_system import in_clean_system

pytestmark = pytest.mark.full


def test_make_demo_and_check(tmp_path):
    """make demo by root and by a user whose login shell has no sbin; then make
    check by that user."""
    in_clean_system(tmp_path, "check", "trixie")
