# SPDX-License-Identifier: GPL-2.0
"""What is known of the checkout, and names of files that are unusual."""

import os
import subprocess

import pytest

from tollwaylib import paths


def git(folder, *words):
    subprocess.run(["git", "-C", str(folder), "-c", "user.name=x", "-c",
                    "user.email=x@x", *words], check=True, stdout=subprocess.PIPE,
                   stderr=subprocess.PIPE)


@pytest.fixture
def top(tmp_path, monkeypatch):
    """A checkout with one commit in the place of this one."""
    folder = tmp_path / "top"
    folder.mkdir()
    git(folder, "init")
    (folder / "file").write_text("a")
    git(folder, "add", "file")
    git(folder, "commit", "-m", "first")
    monkeypatch.setattr(paths, "TOP", folder.resolve())
    return folder


def test_a_tree_that_is_as_its_commit(top):
    found = paths.checkout()
    assert len(found["commit"]) == 40 and found["changed"] is False


@pytest.mark.parametrize("name", ["file", "new"])
def test_a_tree_that_differs(top, name):
    git(top, "config", "status.showUntrackedFiles", "no")
    (top / name).write_text("b")
    assert paths.checkout()["changed"] is True


def test_a_copy_within_another_checkout(top, monkeypatch):
    (top / "copy").mkdir()
    monkeypatch.setattr(paths, "TOP", top.resolve() / "copy")
    assert paths.checkout() == {"commit": None, "changed": None}


def test_a_tree_of_which_git_does_not_say(top, monkeypatch, tmp_path):
    (top / ".git/index").write_bytes(b"damaged")
    found = paths.checkout()
    assert len(found["commit"]) == 40 and found["changed"] is None
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert paths.checkout() == {"commit": None, "changed": None}
