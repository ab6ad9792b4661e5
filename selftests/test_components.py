# SPDX-License-Identifier: GPL-2.0
"""The declaration of the modules, and the lists that cannot read it."""

import ast
import pathlib
import re
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "scripts"))

from tollwaylib.components import modules  # noqa: E402
from tollwaylib.doctor import observe  # noqa: E402
from tollwaylib.kernels import build  # noqa: E402
from tollwaylib.paths import TOP  # noqa: E402

CONTROLS = sum(modules.CONTROLS.values(), ())


def constant(file, name):
    """What a file of selftests/lab assigns to a name."""
    tree = ast.parse((HERE / "lab" / file).read_text())
    return next(ast.literal_eval(node.value) for node in tree.body
                if isinstance(node, ast.Assign)
                and getattr(node.targets[0], "id", None) == name)


def test_every_folder_is_declared_and_built():
    folders = {path.parent.name for path in TOP.glob("*/Kbuild")}
    assert folders == set(modules.OURS) == set(build.FOLDERS)
    # Queues first: a run loads them in this order.
    kinds = [name[:4] for name in build.FOLDERS]
    assert kinds == sorted(kinds)
    said = subprocess.run(["make", "-s", "-f", "-", "show"], cwd=TOP, text=True,
                          input="include Makefile\nshow:\n\t@echo $(MODULES)\n",
                          check=True, capture_output=True).stdout
    assert set(said.split()) == folders


def test_controls_are_those_that_the_sources_register():
    """Names in struct tcp_congestion_ops and struct Qdisc_ops."""
    for module in modules.MODULES:
        text = "".join(path.read_text() for path in sorted(
            (TOP / module.name).glob("*.[ch]")))
        kind = "Qdisc_ops" if module.queue else "tcp_congestion_ops"
        bodies = re.findall(rf"struct {kind} \w+[^;{{]*= {{(.*?)\n}};", text,
                            re.S)
        names = set(re.findall(r'\.(?:name|id)\s*=\s*"(\w+)"',
                               "".join(bodies)))
        assert names == set(module.controls or (module.queue,)), module.name
        for group in (module.echoed, module.restricted, module.counting):
            assert set(group) <= set(module.controls)


def test_dkms_builds_them():
    text = (TOP / "dkms.conf").read_text()
    names = re.findall(r'^BUILT_MODULE_NAME\[(\d+)\]="(.*)"', text, re.M)
    places = re.findall(r'^BUILT_MODULE_LOCATION\[(\d+)\]="build/(.*)"', text,
                        re.M)
    assert names == places
    assert {name for _, name in names} == set(modules.OURS)
    assert [int(number) for number, _ in names] == list(range(len(names)))


@pytest.mark.parametrize("file, name, wanted", [
    ("guest_base.py", "MODULES", set(modules.OURS)),
    ("guest_autoload.py", "NAMES", modules.CONTROLS),
    ("guest_stay_cycles.py", "CONTROLS", modules.CONTROLS),
    ("guest_userns.py", "OURS", set(modules.CONTROLS)),
    ("guest_userns.py", "CONTROLS", set(CONTROLS)),
    ("guest_userns.py", "RESTRICTED",
     set(modules.RESTRICTED).intersection(CONTROLS)),
    ("states_bench.py", "OURS", set(CONTROLS))])
def test_checks_in_the_lab_know_them(file, name, wanted):
    """They run where the harness is not: their lists are compared here."""
    found = constant(file, name)
    assert (found if isinstance(wanted, dict) else set(found)) == wanted


def test_the_packages_are_checked_for_all():
    text = (HERE / "clean-system").read_text()
    for name in modules.OURS:
        assert re.search(rf"for name in [^\n]*\b{name}\b", text), name


def test_each_has_a_manual_page():
    for module in modules.MODULES:
        page = f"tc-{module.queue}.8" if module.queue else f"{module.name}.7"
        assert (TOP / "tools/man" / page).is_file(), page


def test_the_doctor_reads_what_is_there():
    assert set(observe.MODULES) == {"tcp_sbrm", "tcp_pp", "tcp_alpha"}
