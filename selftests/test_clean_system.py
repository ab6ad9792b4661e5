# SPDX-License-Identifier: GPL-2.0
"""What a newcomer meets on a clean Debian 12 and 13, see selftests/clean-system:
long forms, as each makes a system and builds the lab in it."""

import os
import shutil

import pytest
from test_house import TOP, sh

SUITES = ("bookworm", "trixie")


def why(log):
    """The end of a log, and before it what pytest said was wrong: the log itself
    goes with the system."""
    if not log.exists():
        return ""
    text = log.read_text(errors="replace")
    wrong = [line for line in text.splitlines() if line.startswith("E  ")]
    return "\n".join([*wrong[:200], text[-6000:]])


def in_clean_system(tmp_path, what, suite, *words):
    """Run a part of clean-system; each of its lines must be ok."""
    if os.geteuid():
        pytest.skip("only root can make a system")
    if not shutil.which("debootstrap"):
        pytest.skip("there is no debootstrap")
    folder = tmp_path / "system"
    done = sh(TOP / "selftests/clean-system", what, folder, suite, *words)
    print(done.stdout)
    if done.returncode == 4:
        pytest.skip(done.stdout.strip().rpartition("# SKIP ")[2])
    log = folder / "log"
    assert done.returncode == 0, done.stdout + done.stderr + why(log)
    assert "fail:0" in done.stdout
    plan = done.stdout.splitlines()[1]
    assert f"pass:{plan.partition('..')[2]} " in done.stdout
    # However it ends, it leaves nothing mounted and no system.
    assert str(folder) not in open("/proc/mounts", encoding="utf-8").read()
    assert not (folder / "root").exists()


@pytest.mark.full
@pytest.mark.parametrize("suite", SUITES)
def test_make_demo(suite, tmp_path):
    """By root and by a user whose login shell has no sbin."""
    in_clean_system(tmp_path, "demo", suite)


@pytest.mark.full
@pytest.mark.parametrize("suite", SUITES)
def test_make_check(suite, tmp_path):
    """By a user."""
    in_clean_system(tmp_path, "check", suite)


@pytest.mark.parametrize("words", [
    [], ["demo"], ["nosuch", "there"], ["packages", "there", "bookworm"]])
def test_wrong_words(words):
    done = sh(TOP / "selftests/clean-system", *words)
    assert done.returncode == 2 and "usage: " in done.stderr
