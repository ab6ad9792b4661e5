# SPDX-License-Identifier: GPL-2.0
"""The rooms of the harness and of the modules: which package imports which, which
file calls which, how long files are, and that each check of the lab is one of a
boot."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest
from conftest import full_checks_of

TOP = Path(__file__).resolve().parents[1]
LIBRARY = TOP / "scripts/tollwaylib"
# Files of Python and of C are shorter than that, in lines.
LONGEST = {".py": 600, ".c": 1000, ".h": 1000}
# What each room imports of the others, and what it may import: a package, or a
# file beside them.
MAY = {
    "errors": set(), "jobqueue": set(), "progress": set(),
    "files": {"errors"}, "paths": {"errors"}, "programs": {"errors"},
    "words": {"errors"}, "ends": {"errors", "progress"},
    "guest": {"errors"},
    "theory": {"errors"},
    "components": {"errors"},
    "experiments": {"errors", "files", "theory", "components"},
    "papers": {"errors", "theory", "experiments"},
    "kernels": {"errors", "paths", "programs"},
    "places": {"errors", "paths", "programs", "theory", "components",
               "experiments", "kernels", "guest"},
    "runs": {"errors", "files", "jobqueue", "paths", "programs", "progress",
             "experiments"},
    "results": {"errors", "files", "theory", "components", "experiments"},
    "report": {"errors", "files", "components", "experiments", "papers",
               "results"},
    "doctor": {"errors", "files", "paths", "programs", "words", "components",
               "kernels", "places"},
    "commands": {"errors", "ends", "paths", "programs", "progress", "words",
                 "components", "experiments", "papers", "places", "runs",
                 "results", "report"},
    "cli": {"ends", "words", "commands", "components", "doctor", "experiments",
            "kernels", "places", "report", "results"},
}


def module_of(path):
    """The dotted name of a file of the library, "" for its __init__.py."""
    words = path.relative_to(LIBRARY).with_suffix("").parts
    return ".".join(words[:-1] if words[-1] == "__init__" else words)


FILES = {module_of(path): path for path in LIBRARY.rglob("*.py")}


def imports_of(module):
    """Modules of the library that a module imports, wherever in its text."""
    path, found = FILES[module], set()
    here = module.split(".") if module else []
    if path.name != "__init__.py":
        here = here[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            assert not any(alias.name.startswith("tollwaylib")
                           for alias in node.names), f"{path}: be relative"
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = here[:len(here) - node.level + 1]
        base = ".".join(base + (node.module.split(".") if node.module else []))
        for alias in node.names:
            inner = f"{base}.{alias.name}" if base else alias.name
            found.add(inner if inner in FILES else base)
    assert found <= set(FILES), found - set(FILES)
    # The package itself has the version and a path, and imports nothing.
    return found - {module, ""}


def room_of(module):
    return module.partition(".")[0]


def test_each_room_is_in_the_list():
    assert {room_of(module) for module in FILES} - {""} == set(MAY)


@pytest.mark.parametrize("room", MAY)
def test_a_room_imports_only_what_it_may(room):
    found = {(module, other) for module in FILES if room_of(module) == room
             for other in imports_of(module) if room_of(other) != room}
    assert not [f"{module} imports {other}" for module, other in sorted(found)
                if room_of(other) not in MAY[room]]
    assert {room_of(other) for _, other in found} == MAY[room]


def test_data_flows_one_way():
    """As CONTRIBUTING.md draws it: from descriptions to what runs them, and from
    raw.json to reports. What is in raw.json is all that goes from one to the
    other. Runs are given the functions that make results of it."""
    made, read = [
        re.findall(r"[a-z]+", line.replace("raw.json", ""))
        for line in (TOP / "CONTRIBUTING.md").read_text().splitlines()
        if line.startswith("    ") and "->" in line]
    assert made == ["papers", "components", "experiments", "runs", "places",
                    "guest"]
    assert read == ["results", "report"]
    described, run = set(made[:3]), set(made[3:])
    for room in [*described, *read]:
        assert not MAY[room] & run
    for room in made:
        assert not MAY[room] & set(read)
    # What a place is, a queue of jobs is told.
    assert not MAY["runs"] & {"places", "guest"}
    assert not MAY["guest"] & {*made, *read}
    assert not MAY["results"] & {"report", "papers"}


def test_the_package_itself_imports_nothing():
    """Not even lab and qemu have more than the guest's room beside it."""
    assert not imports_of("")


def circle(arrows):
    """Some circle of a graph {node: its successors}, as a list, or None."""
    done, way = set(), []

    def visit(node):
        if node in way:
            return way[way.index(node):] + [node]
        if node not in done:
            way.append(node)
            for after in sorted(arrows[node]):
                found = visit(after)
                if found:
                    return found
            way.pop()
            done.add(node)
        return None

    return next(filter(None, map(visit, sorted(arrows))), None)


def test_no_circle_of_modules():
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert not circle({module: imports_of(module) for module in FILES})


def test_no_circle_of_rooms():
    arrows = {}
    for module in FILES:
        arrows.setdefault(room_of(module), set()).update(
            room_of(other) for other in imports_of(module)
            if room_of(other) != room_of(module))
    assert not circle(arrows)


def sources():
    """All files of Python and of C, but for those that a build leaves."""
    folders = [*TOP.glob("tcp_*"), *TOP.glob("sch_*"), TOP / "examples",
               TOP / "include", TOP / "scripts", TOP / "selftests", TOP / "tools"]
    return [path for folder in folders for path in folder.rglob("*")
            if path.suffix in LONGEST and not path.name.endswith(".mod.c")]


def test_files_are_short():
    long = [str(path.relative_to(TOP)) for path in sources()
            if len(path.read_text().splitlines()) > LONGEST[path.suffix]]
    assert not long


# Names that Python or pytest gives a meaning.
FIXED_NAMES = {"__init__.py", "__main__.py", "conftest.py"}


def test_each_file_has_a_name_of_its_own():
    """So that a comment, or a message of the compiler, says which one it is."""
    names = Counter(path.name for path in sources() if path.name not in FIXED_NAMES)
    assert names["sbrm.c"] == names["own.py"] == 1
    assert not [name for name, count in names.items() if count > 1]


# What is no code of a file, and what a function begins with that others may call.
NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)
FUNCTION = re.compile(r"^(?!static\b)\w[^;={}#\n]*?\b(\w+)\([^;{}]*\)\n\{", re.M)


def calls_of(module):
    """{file: files of the module with functions that it names}."""
    texts = {path.name: NO_CODE.sub("", path.read_text())
             for path in module.glob("*.c") if not path.name.endswith(".mod.c")}
    homes = {function: name for name, text in texts.items()
             for function in FUNCTION.findall(text)}
    return {name: {homes[word] for word in re.findall(r"\w+", text)
                   if word in homes} - {name} for name, text in texts.items()}


@pytest.mark.parametrize("module", sorted(
    path.parent.name for path in TOP.glob("*/Kbuild")))
def test_no_circle_of_files_of_a_module(module):
    arrows = calls_of(TOP / module)
    # Each module has files that are called, so functions were found.
    assert any(arrows.values())
    assert not circle(arrows)


def test_every_check_is_run():
    """Once: those that are not in a guest script stand in the FIRST of one."""
    lab = TOP / "selftests/lab"
    run = [f"check_{name}" for path in lab.glob("guest_*.py")
           for name in full_checks_of(path.name)]
    there = [node.name for path in lab.glob("*.py")
             for node in ast.parse(path.read_text()).body
             if isinstance(node, ast.FunctionDef) and
             node.name.startswith("check_")]
    assert sorted(run) == sorted(there)
