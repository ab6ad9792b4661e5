# SPDX-License-Identifier: GPL-2.0
"""Files and directories that options name: what is wrong with them is said
before anything is run. Nothing here boots the lab."""

import os
import subprocess

import pytest

import test_ends
from test_ends import NOBODY, RUN, command

from tollwaylib import files, words

folder = test_ends.folder


def test_a_directory_that_takes_no_new_file(folder):
    """The file itself could be written, but it is replaced by a new one."""
    (folder / "shut").mkdir()
    (folder / "shut/old").touch()
    (folder / "shut/old").chmod(0o666)
    (folder / "shut").chmod(0o555)
    ended = command([*RUN, "--json", "shut/old"], folder, user=NOBODY).verify(2)
    assert f"shut/old cannot be written: {folder}/shut: Permission" in ended.err
    assert os.listdir(folder / "shut") == ["old"]


def test_a_file_of_another_user_in_a_shared_directory(folder):
    if os.geteuid():
        pytest.skip("not root: there is no other user")
    (folder / "old").touch()
    (folder / "old").chmod(0o666)
    folder.chmod(0o1777)
    ended = command([*RUN, "--json", "old"], folder, user=NOBODY).verify(2)
    assert "old cannot be written: in " in ended.err


@pytest.mark.parametrize("length, says", [
    (255, "KERNEL_SRC="), (256, "cannot be written: File name too long")])
def test_a_long_name(length, says, folder):
    name = "a" * length
    assert says in command([*RUN, "--json", name], folder).verify(2).err
    if length < 256:
        files.write_named(folder / name, "text")
        assert (folder / name).read_text() == "text"


def test_a_file_system_that_is_read_only(folder):
    if os.geteuid():
        pytest.skip("not root: nothing can be mounted")
    script = ("mkdir m; mount -t tmpfs -o ro tmpfs m && exec /usr/bin/python3 -c "
              "'from tollwaylib import words; words.check_file(\"m/x\")'")
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], cwd=folder, text=True,
        env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(
            words.__file__))}, capture_output=True, check=False)
    if "mount" in done.stderr:
        pytest.skip(done.stderr)
    assert "m/x cannot be written: " in done.stderr
    assert "Read-only file system" in done.stderr
