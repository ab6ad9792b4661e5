# SPDX-License-Identifier: GPL-2.0
"""How the sources of the kernel modules are laid out."""

from collections import Counter
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
MODULES = sorted(path.parent.name for path in TOP.glob("*_*/Kbuild"))


def test_no_two_files_of_c_have_one_name():
    names = Counter(path.name for part in (*MODULES, "include", "tools",
                                           "selftests", "scripts")
                    for path in (TOP / part).rglob("*.[ch]"))
    assert [name for name, count in names.items() if count > 1] == []
