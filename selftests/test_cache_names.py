# SPDX-License-Identifier: GPL-2.0
"""What is known of the checkout, and names of files that are unusual."""

import os
import subprocess

import pytest

from tollwaylib import paths
from tollwaylib.errors import TollwayError
from tollwaylib.kernels import usermode


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


def test_a_digest_of_a_name_that_is_not_utf_8():
    assert paths.digest_of(os.fsdecode(b"l\xfct")) == paths.digest_of(b"l\xfct")
    assert paths.digest_of("l\u00fct") == paths.digest_of("l\u00fct".encode())


def test_a_source_whose_name_is_not_utf_8(tmp_path, monkeypatch):
    source = tmp_path / os.fsdecode(b"l\xfct")
    (source / "arch/um").mkdir(parents=True)
    for name in ("Makefile", "arch/um/Makefile"):
        (source / name).touch()
    monkeypatch.setenv("KERNEL_SRC", str(source))
    monkeypatch.setenv("TOLLWAY_CACHE", str(tmp_path / "cache"))
    found, tree, _ = usermode.folders("plain")
    assert found == source and not tree.exists()
    monkeypatch.setattr(usermode, "patches", lambda: ())
    monkeypatch.setattr(usermode, "USER_MODE", ("no-such-target",))
    with pytest.raises(TollwayError, match="l.t cannot be cleaned: "):
        usermode.unpack(source, tree, None)


@pytest.mark.parametrize("sign", [" ", "\t", "$", ":", "%", ";", "'", "\\", "["])
def test_a_cache_in_which_make_cannot_build(sign, tmp_path, monkeypatch):
    folder = tmp_path / f"a{sign}b"
    monkeypatch.setenv("TOLLWAY_CACHE", str(folder))
    with pytest.raises(TollwayError, match="set TOLLWAY_CACHE to another") as raised:
        paths.cache_dir()
    assert repr(sign) in str(raised.value) and not folder.exists()


@pytest.mark.parametrize("name", ["a-b_c.d", "a=b", "a,b", "a~b", "l\u00fct", "a+b@c"])
def test_a_cache_in_which_make_can_build(name, tmp_path, monkeypatch):
    monkeypatch.setenv("TOLLWAY_CACHE", str(tmp_path / name))
    assert paths.cache_dir() == tmp_path / name
