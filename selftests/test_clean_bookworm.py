# SPDX-License-Identifier: GPL-2.0
"""What a newcomer meets on a clean Debian 12, see selftests/clean-system: long
forms, as each makes a system and builds the lab in it. A file for each suite, so
that `make check-full` runs them side by side and resumes them one by one."""

import pytest
from test_clean_system import in_clean_system

pytestmark = pytest.mark.full


def test_make_demo(tmp_path):
    """By root and by a user whose login shell has no sbin."""
    in_clean_system(tmp_path, "demo", "bookworm")


def test_service(tmp_path):
    """tollway-admit@ under a systemd that boots there."""
    in_clean_system(tmp_path, "service", "bookworm")


def test_make_check(tmp_path):
    """By a user."""
    in_clean_system(tmp_path, "check", "bookworm")
