# SPDX-License-Identifier: GPL-2.0
"""The declaration of the modules, and the lists that cannot read it."""

import ast
import json
import pathlib
import re
import shutil
import subprocess
import sys


HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "scripts"))

from tollwaylib.components import modules  # noqa: E402
from tollwaylib.doctor import observe  # noqa: E402
from tollwaylib.kernels import build  # noqa: E402
from tollwaylib.paths import TOP  # noqa: E402

CONTROLS = sum(modules.CONTROLS.values(), ())


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


def test_checks_in_the_lab_know_them():
    """They run where the harness is not: declared.py reads the same file."""
    sys.path.insert(0, str(HERE / "lab"))
    import declared
    assert set(declared.MODULES) == set(modules.OURS)
    assert [name[:3] for name in declared.MODULES] == sorted(
        name[:3] for name in declared.MODULES)
    assert declared.CONTROLS == CONTROLS
    assert set(declared.RESTRICTED) == \
        set(modules.RESTRICTED).intersection(CONTROLS)
    assert {**declared.QUEUES, **declared.DEFAULTS_OF}.keys() == \
        set(modules.OURS)


def test_no_check_in_the_lab_lists_them_again():
    """A list of all modules, or of the controls of several, is a second place."""
    again = []
    for path in sorted((HERE / "lab").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.Tuple, ast.List, ast.Set, ast.Dict)):
                words = {leaf.value for leaf in ast.walk(node)
                         if isinstance(leaf, ast.Constant)}
                if words >= set(modules.OURS) or words >= set(CONTROLS):
                    again.append(f"{path.name}:{node.lineno}")
    assert not again


NEW_FAMILY = '''
from .component import Component, setting

COMPONENT = Component(
    controls=("zz",), parameters={"zz_gain": (0.5, 0.0, 1.0, "gain of zz"),
                                  "zz_mode": ("a", None, None, "a or b")},
    choices={"zz_mode": ("a", "b")},
    queues={"zz": "zz limit {limit} gain {zz_gain:g}{zz_more}"},
    fields=lambda values: {"zz_more": f" mode {values['zz_mode']}"},
    made_of={"zz_more": ["zz_mode"]},
    sysctls=lambda values, wtps: {
        "net.ipv4.tcp_zz.gain": setting(values["zz_gain"])},
    deciding=lambda cc, values: {"zz_gain"})
'''
USE_IT = """
import json, sys
from tollwaylib.experiments import jobs, parameters
from tollwaylib.papers import get
found = get("double-bottleneck")
values = parameters.parse(found, ["zz_gain=0.25", "zz_mode=b"], "zz", "zz")
job = jobs.job(found, "zz", "zz", values, 10.0, 1)
print(json.dumps([job["aqm"], job["sysctls"],
                  sorted(parameters.deciding("zz", "zz", values))]))
parameters.parse(found, ["zz_mode=c"], "zz", "zz")
"""


def test_a_new_family_is_one_file_and_its_module(tmp_path):
    """Parameters, words of tc, sysctls and what decides them are found in it."""
    shutil.copytree(TOP / "scripts/tollwaylib", tmp_path / "tollwaylib")
    (tmp_path / "tollwaylib/components/zz.py").write_text(NEW_FAMILY)
    declared = tmp_path / "tollwaylib/components/modules.py"
    declared.write_text(declared.read_text().replace(
        "MODULES = (", 'MODULES = (\n    Module("tcp_zz", controls=("zz",)),', 1))
    done = subprocess.run([sys.executable, "-c", USE_IT], cwd=tmp_path, text=True,
                          capture_output=True, check=False)
    queue, sysctls, names = json.loads(done.stdout)
    assert queue == "zz limit 1000 gain 0.25 mode b"
    assert sysctls["net.ipv4.tcp_zz.gain"] == "0.250000"
    assert not any("tcp_sbrm" in name for name in sysctls)
    assert {"zz_gain", "zz_mode", "limit"} <= set(names)
    assert "initcwnd" not in names
    assert "--set zz_mode=c: give one of a, b" in done.stderr


def test_the_packages_are_checked_for_all():
    text = (HERE / "clean-system").read_text()
    for name in modules.OURS:
        assert re.search(rf"for name in [^\n]*\b{name}\b", text), name


def test_each_has_a_manual_page():
    for module in modules.MODULES:
        page = f"tc-{module.queue}.8" if module.queue else f"{module.name}.7"
        assert (TOP / "tools/man" / page).is_file(), page


def test_the_doctor_reads_what_is_there():
    """Each module with a congestion control has counters in /proc/net."""
    assert set(observe.MODULES) == set(modules.CONTROLS)
