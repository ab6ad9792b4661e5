# SPDX-License-Identifier: GPL-2.0
"""What is said while the lab's kernel is compiled: how many files of how many."""

import io
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

from tollwaylib.errors import TollwayError  # noqa: E402
from tollwaylib.kernels import usermode  # noqa: E402
from tollwaylib.progress import Progress  # noqa: E402

# As Kbuild behaves: what prepare makes is needed before anything else can even
# be planned, and under -n the commands are printed, each with its echo.
MAKEFILE = """
.PHONY: allnoconfig prepare modules_prepare linux modules
.SILENT:
cc = set -e; echo '  CC      $1'; touch $1
allnoconfig:
	touch $(O)/.config; cp {tree}/Makefile $(O)/Makefile
prepare: one.o
modules_prepare:
one.o:
	$(call cc,$@)
linux modules: $(shell test -e one.o && seq -f %g.o 30)
%.o:
	$(call cc,$@); sleep 0.05
{more}
"""


@pytest.fixture
def compile_in(tmp_path, monkeypatch):
    """Compile a tree of 31 files; returns what was said of the progress."""
    tree, build = tmp_path / "tree", tmp_path / "build"
    tree.mkdir()
    (tree / "patched").touch()
    monkeypatch.setattr(usermode, "KINDS", {"plain": ((), (), "linux")})

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    def compile_it(more=""):
        (tree / "Makefile").write_text(
            MAKEFILE.replace("{tree}", str(tree)).replace("{more}", more))
        said = Terminal()
        progress = Progress(said)
        usermode.compile_kernel(tree, build, "plain", progress)
        return said.getvalue(), build
    return compile_it


def test_the_total_is_said(compile_in):
    said, build = compile_in()
    counts = re.findall(r"compiling the plain kernel: (\d+) of (\d+) files",
                        said)
    assert counts and {total for _, total in counts} == {"31"}, said
    numbers = [int(number) for number, _ in counts]
    assert numbers == sorted(numbers) and 1 < numbers[-1] <= 31
    assert (build / "build.log").read_text().count("  CC  ") == 31
    assert (build / "built").exists()


def test_a_failure_names_the_log(compile_in):
    with pytest.raises(TollwayError, match="does not compile: see .*build.log"):
        compile_in("modules: nosuch.c")


def test_make_ends_with_an_interrupt(tmp_path):
    (tmp_path / "Makefile").write_text(
        "all:\n\techo '  CC      a.o'; exec sleep 1000\n")

    def interrupt(_count):
        raise KeyboardInterrupt

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt), \
            open(tmp_path / "log", "w", encoding="ascii") as log:
        usermode.compiled(["make", "-s", "-C", str(tmp_path)], None, log,
                          interrupt)
    assert time.monotonic() - started < 30
    left = subprocess.run(["pgrep", "-f", f"make -s -C {tmp_path}"],
                          stdout=subprocess.PIPE, text=True, check=False).stdout
    assert left == ""
