# SPDX-License-Identifier: GPL-2.0
"""How the sources of the kernel modules are laid out."""

import re
from collections import Counter
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[1]
MODULES = sorted(path.parent.name for path in TOP.glob("*_*/Kbuild"))

# A definition at the beginning of a line that other files can see.
DEFINED = re.compile(r"^(?!static|typedef|extern|struct \w+ \{|enum|union)"
                     r"[a-z][\w \t*]*?\b(\w+)(?:\[[^\n]*\])?(?:\(| =|;)",
                     re.MULTILINE)


def code(path):
    """Text of a file without comments and strings."""
    return re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\])*"', " ", path.read_text(),
                  flags=re.DOTALL)


def calls(module):
    """{file: files of the same module that define what it names}"""
    sources = {path.name: code(path) for path in (TOP / module).glob("*.c")}
    homes = {name: file for file, text in sources.items()
             for name in DEFINED.findall(text)}
    return {file: {homes[name] for name in set(re.findall(r"\w+", text))
                   if name in homes} - {file}
            for file, text in sources.items()}


def circle(arrows):
    """Files that each lead to the next, the last to the first; or nothing."""
    done = set()

    def visit(file, path):
        if file in path:
            return path[path.index(file):]
        if file not in done:
            for other in sorted(arrows[file]):
                found = visit(other, path + [file])
                if found:
                    return found
            done.add(file)
        return []

    for file in sorted(arrows):
        found = visit(file, [])
        if found:
            return found
    return []


@pytest.mark.parametrize("module", MODULES)
def test_no_file_calls_back(module):
    arrows = calls(module)
    assert any(arrows.values()), "no file calls another one"
    assert circle(arrows) == []


def test_circles_are_found():
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c"]
    assert circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_no_two_files_of_c_have_one_name():
    names = Counter(path.name for part in (*MODULES, "include", "tools",
                                           "selftests", "scripts")
                    for path in (TOP / part).rglob("*.[ch]"))
    assert [name for name, count in names.items() if count > 1] == []
