# SPDX-License-Identifier: GPL-2.0
"""scripts/check-style finds nothing: checkpatch --strict, sparse with W=1,
kernel-doc, shellcheck, man --warnings and pyflakes."""

import subprocess
from pathlib import Path

import pytest

from tollwaylib import progress
from tollwaylib.kernels import usermode

TOP = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def kernel():
    """Directory of the lab's kernel, built if need be."""
    return usermode.kernel("plain", progress.Progress()).build


def findings(*words):
    """What check-style says; it must be silent."""
    done = subprocess.run([TOP / "scripts/check-style", *words], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    assert done.returncode in (0, 1), done.stdout
    assert bool(done.stdout) == bool(done.returncode), done.stdout
    return done.stdout.splitlines()


@pytest.mark.parametrize("check", ["checkpatch", "sparse", "kernel-doc"])
def test_kernel_style(check, kernel):
    assert findings(check, kernel) == []


@pytest.mark.parametrize("check", ["shell", "man", "python"])
def test_style(check):
    assert findings(check) == []


def test_unknown_check():
    done = subprocess.run([TOP / "scripts/check-style", "spelling"], text=True,
                          capture_output=True, check=False)
    assert done.returncode == 2 and "usage" in done.stderr
