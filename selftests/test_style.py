# SPDX-License-Identifier: GPL-2.0
"""scripts/check-style finds nothing: checkpatch --strict, sparse with W=1,
kernel-doc, shellcheck, man --warnings and pyflakes. And public functions have
docstrings, which say when they raise an error."""

import ast
import subprocess
from pathlib import Path

import pytest

from tollwaylib import progress
from tollwaylib.kernels import usermode

TOP = Path(__file__).resolve().parents[1]
LIBRARY = TOP / "scripts/tollwaylib"
# What a caller has to know of.
ERRORS = ("TollwayError", "RefusedError")


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


# test_check_kernels.py has sparse on more kernels.
@pytest.mark.parametrize("check", [
    "checkpatch", pytest.param("sparse", marks=pytest.mark.full), "kernel-doc"])
def test_kernel_style(check, kernel):
    assert findings(check, kernel) == []


@pytest.mark.parametrize("check", ["shell", "man", "python"])
def test_style(check):
    assert findings(check) == []


def test_unknown_check():
    done = subprocess.run([TOP / "scripts/check-style", "spelling"], text=True,
                          capture_output=True, check=False)
    assert done.returncode == 2 and "usage" in done.stderr


def public_functions():
    """{"file: name": function} of the functions of modules, and of the methods of
    classes (Class.name), whose names do not begin with an underscore."""
    found = {}
    for path in sorted(LIBRARY.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        owners = [("", tree)] + [(f"{node.name}.", node) for node in tree.body
                                 if isinstance(node, ast.ClassDef)]
        for owner, node in owners:
            for function in node.body:
                if isinstance(function, ast.FunctionDef) \
                        and not f"{owner}{function.name}".startswith("_") \
                        and not function.name.startswith("_"):
                    found[f"{path.relative_to(LIBRARY)}: {owner}{function.name}"] = \
                        function
    return found


def raised(node):
    """The names in ERRORS that a function raises itself, and not in a function
    within it."""
    found = set()
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.Lambda)):
            continue
        if isinstance(child, ast.Raise) and isinstance(child.exc, ast.Call):
            found.add(ast.unparse(child.exc.func))
        found |= raised(child)
    return found.intersection(ERRORS)


def test_public_functions_have_docstrings():
    """Methods may be described by their class."""
    assert {name for name, function in public_functions().items()
            if "." not in name.partition(": ")[2]
            and not ast.get_docstring(function)} == set()


def test_docstrings_name_errors():
    assert {name for name, function in public_functions().items()
            if any(error not in (ast.get_docstring(function) or "")
                   for error in raised(function))} == set()
