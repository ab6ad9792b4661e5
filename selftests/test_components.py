# SPDX-License-Identifier: GPL-2.0
"""The declaration of the modules, and that nothing lists them again."""

import ast
import importlib
import json
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "scripts"))

from cases_bench import job  # noqa: E402
from tollwaylib.components import modules  # noqa: E402
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


def test_kunit_calls_every_control():
    done = subprocess.run([sys.executable, HERE / "kunit/gen_cc_names.py"],
                          check=True, text=True, capture_output=True)
    names = re.findall(r'"(\w+)"', done.stdout)
    assert sorted(names) == sorted(CONTROLS)


# What DKMS makes of a dkms.conf, in the words of its safe_source().
SOURCE_IT = """. "$1"; . "$1"
for name in BUILT_MODULE_NAME BUILT_MODULE_LOCATION DEST_MODULE_LOCATION; do
	eval 'echo "${'$name'[@]}"'
done"""


def test_dkms_builds_every_folder(tmp_path):
    shutil.copy(TOP / "dkms.conf", tmp_path)
    names = [*modules.OURS, "tcp_zz"]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "Kbuild").touch()
    (tmp_path / "sch_without_kbuild").mkdir()
    done = subprocess.run(["bash", "-euc", SOURCE_IT, "dkms",
                           tmp_path / "dkms.conf"], text=True, check=True,
                          cwd="/", env={"kernel_source_dir": "/nonexistent"},
                          capture_output=True)
    found, places, targets = map(str.split, done.stdout.splitlines())
    assert sorted(found) == sorted(names) and not done.stderr
    assert places == [f"build/{name}" for name in found]
    assert targets == ["/updates/dkms"] * len(found)


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


# {a name of a module, control or queue: the file that declares it}
HOMES = {name: file for file in sorted(
    path.stem for path in (TOP / "scripts/tollwaylib/components").glob("[a-z]*.py")
    if path.stem != "modules")
         for module in getattr(importlib.import_module(
             f"tollwaylib.components.{file}"), "MODULES", ())
         for name in (module.name, module.queue, *module.controls) if name}
# Queues, too, have laws with such names.
NO_QUEUES = {name: file for name, file in HOMES.items()
             if name in CONTROLS or name in modules.OURS}


def listed(path, homes, pattern):
    """[(line, files whose names a literal of a Python file has)]; pattern: what a
    name is in a string."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.Tuple, ast.List, ast.Set, ast.Dict)):
            words = {word for leaf in ast.walk(node)
                     if isinstance(leaf, ast.Constant)
                     and isinstance(leaf.value, str)
                     for word in re.findall(pattern, leaf.value)}
            found.append((node.lineno, {homes[word] for word in words
                                        if word in homes}))
    return found


def test_nothing_lists_them_again(tmp_path):
    """A list with names of two families is a second place in the harness; in
    tests, one with names of all. Experiments of a paper choose what they compare."""
    again, families = [], set(HOMES.values())
    assert {*modules.OURS, *CONTROLS} <= set(HOMES)
    apart = {TOP / "scripts/tollwaylib" / name for name in ("components", "papers")}
    for path in [TOP / "scripts/bench", *sorted((TOP / "scripts").rglob("*.py"))]:
        if not apart & set(path.parents):
            again += [f"{path.name}:{line}" for line, files in
                      listed(path, HOMES, r"[\w.-]+") if len(files) > 1]
    for path in sorted(HERE.rglob("*.py")):
        again += [f"{path.name}:{line}" for line, files in
                  listed(path, NO_QUEUES, "^.+$") if files == families]
    assert not again
    example = tmp_path / "example.py"
    example.write_text('KINDS = {"a": ("sbrm limit 9",), "b": ["fq_rr"]}\n')
    assert (1, {"sbrm", "pp"}) in listed(example, HOMES, r"[\w.-]+")


def test_no_script_lists_the_modules():
    files = [TOP / "Makefile", TOP / "dkms.conf", HERE / "clean-system",
             HERE / "kunit/cc_states_kunit.c",
             *(path for folder in ("scripts", "tools/debian")
               for path in (TOP / folder).rglob("*")
               if path.is_file() and path.suffix not in (".py", ".pyc", ".svg"))]
    again = [path.name for path in files
             if len({HOMES[name] for name in re.findall(
                 r"\b(?:tcp|sch)_\w+", path.read_text()) if name in HOMES}) > 1]
    assert not again


NEW_FAMILY = '''
from .component import Component, Module, Trial, setting

MODULES = (
    Module("tcp_zz", controls=("zz",), restricted=("zz",), info="bbr",
           counters={"zz_lost": "losses of zz", "zz_usual": None},
           over="zz limit 9", carrying={"zz": ("zz_lost", None)},
           costs={"zz": {"aqm": "zz limit 9"}}),
    Module("sch_zz", queue="zz", trial=Trial("limit 9", "limit 8", "limit", 8,
                                             ("limit {0}",)),
           costs={"zz": "zz limit 65535"}, beside="fq_codel"),
)

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
from tollwaylib.components import modules
from tollwaylib.doctor import diagnose, observe
from tollwaylib.experiments import jobs, parameters
from tollwaylib.guest import smoke
from tollwaylib.papers import get
from tollwaylib.report import costs
found = get("double-bottleneck")
values = parameters.parse(found, ["zz_gain=0.25", "zz_mode=b"], "zz", "zz")
job = jobs.job(found, "zz", "zz", values, 10.0, 1)
one = {"cc": "zz", "local": "a:1", "remote": "d:2", "flags": [],
       "grown": {"bytes_acked": 9.0}}
smoke.know(json.loads(json.dumps(modules.of_smoke())))
print(json.dumps({
    "job": [job["aqm"], job["sysctls"],
            sorted(parameters.deciding("zz", "zz", values))],
    "doctor": [[(found.verdict, found.text) for found in
                diagnose.judge_connection({"seconds": 5}, one)],
               diagnose.COUNTERS.get("zz_lost"), "zz_usual" in diagnose.COUNTERS,
               "tcp_zz" in observe.CONTROLS],
    "smoke": [smoke.CONTROLS["tcp_zz"], smoke.TRIALS["zz"]["storm"],
              smoke.CARRIERS["zz"], ["zz", "bbr", "zz limit 9"] in smoke.PATHS,
              "sch_zz" in smoke.MODULES, "zz" in smoke.RESTRICTED],
    "costs": [costs.FAIR["zz"], costs.CONGESTION_CONTROLS["zz"],
              ("zz", "fq_codel") in costs.QDISC_BOUNDS,
              ("zz", "bbr") in costs.ACK_BOUNDS]}))
parameters.parse(found, ["zz_mode=c"], "zz", "zz")
"""


def test_a_new_family_is_one_file(tmp_path):
    """All that the harness, the doctor, the smoke set and the bench have to know of
    it is found there."""
    shutil.copytree(TOP / "scripts/tollwaylib", tmp_path / "tollwaylib")
    (tmp_path / "tollwaylib/components/zz.py").write_text(NEW_FAMILY)
    done = subprocess.run([sys.executable, "-c", USE_IT], cwd=tmp_path, text=True,
                          capture_output=True, check=False)
    assert "--set zz_mode=c: give one of a, b" in done.stderr
    found = json.loads(done.stdout)
    queue, sysctls, names = found["job"]
    assert queue == "zz limit 1000 gain 0.25 mode b"
    assert sysctls["net.ipv4.tcp_zz.gain"] == "0.250000"
    assert not any("tcp_sbrm" in name for name in sysctls)
    assert {"zz_gain", "zz_mode", "limit"} <= set(names)
    assert "initcwnd" not in names
    assert found["doctor"] == [
        [["note", "a:1 > d:2: uses zz, whose signals this command does not know"]],
        "losses of zz", False, True]
    assert found["smoke"] == [["zz"], ["limit {0}"], ["tcp_zz", "zz_lost", None],
                              True, True, True]
    assert found["costs"] == ["zz limit 65535", {"aqm": "zz limit 9"}, True, True]


NEW_PAPER = '''
"""The experiments of ZZ."""
from ..experiments.description import Case, Experiment, Paper, case_bound, metric
from . import networks

PAPER = Paper("ZZ", "Z. Zed, The Last Word, 2027", simulator="zsim",
              parameters={"zz_kind": ("a", None, None, "a or b of ZZ"),
                          "zz_size": (3, 1, 9, "size of ZZ")},
              choices={"zz_kind": ("a", "b")}, deciding=("zz_kind",))
EXPERIMENTS = (Experiment(
    name="zz-one", title="One", reproduces="ZZ Table 1", topology=networks.confluence,
    duration_s=9.0, defaults={"zz_kind": "b", "zz_size": 4}, presets=(
        (("a",), {"zz_size": 7}),), cc="cubic", aqm="pfifo",
    shape=lambda values: {"rtts_ms": [20.0], "delay_ms": 9.0, "sink_ms": 0.1},
    cases=lambda values: [Case("z", ({"name": "1", "path": "1", "role": "z",
                                      "start_s": 0.0},), 9.0)],
    metrics=(metric("drops", "drops", "drops", 0),),
    bounds=((("cubic+pfifo",), (case_bound("drops", "z", "drops", "<=", 1),)),),
    about="One flow of ZZ."),)
'''
USE_THE_PAPER = """
import json
from tollwaylib.commands.list import command_list, describe
from tollwaylib.experiments import jobs, parameters, published
from tollwaylib.papers import get
from tollwaylib.report import about
found = get("zz-one")
values = parameters.parse(found, ["zz_kind=a"], "cubic", "pfifo")
job = jobs.job(found, "cubic", "pfifo", values, 9.0, 1)
raw = {"experiment": "zz-one", "parameters": job["parameters"]}
class Group:
    outcome = {"parameters": {**job["parameters"], "variant": None},
               "experiment": "zz-one"}
print(json.dumps({
    "usual": [parameters.parse(found, [], "cubic", "pfifo")[name]
              for name in ("zz_kind", "zz_size")],
    "set": [job["parameters"][name] for name in ("zz_kind", "zz_size")],
    "decide": sorted(found.deciding(values)),
    "list": describe(found),
    "said": about._reasons("zz-one", [Group]),
    "matter": [row for row in about.parameters(Group.outcome)[0] if "zz" in row[0]],
    "published": published.rows("zz-one", "cubic", "pfifo", values)[0]["paper"]}))
parameters.parse(found, ["zz_kind=c"], "cubic", "pfifo")
"""
PUBLISHED = {"schema": 2, "experiments": {"zz-one": [{
    "setup": {"capacity_bps": {}}, "rows": [{
        "name": "z", "paper": "ZZ Table 1", "pairs": [["cubic", "pfifo"]], "setup": {},
        "numbers": []}]}]}}


def test_a_new_paper_is_one_folder(tmp_path):
    """Its parameters, their words and its citation are in its own file."""
    shutil.copytree(TOP / "scripts/tollwaylib", tmp_path / "tollwaylib")
    (tmp_path / "tollwaylib/papers/zz.py").write_text(NEW_PAPER)
    (tmp_path / "tollwaylib/papers/zz.json").write_text(json.dumps(PUBLISHED))
    done = subprocess.run([sys.executable, "-c", USE_THE_PAPER], cwd=tmp_path, text=True,
                          capture_output=True, check=False)
    assert "--set zz_kind=c: give one of a, b" in done.stderr
    found = json.loads(done.stdout)
    assert (found["usual"], found["set"]) == (["b", 4], ["a", 7])
    assert found["decide"] == ["zz_kind"]
    assert "Reproduces ZZ Table 1." in found["list"]
    assert "zz_size=4" in found["list"] and "size of ZZ" in found["list"]
    assert found["said"] == ["The experiment repeats a published one: ZZ Table 1 (ZZ: "
                             "Z. Zed, The Last Word, 2027). The parameters are our own. "
                             "--set setup=paper selects those that the paper states."]
    assert found["matter"] == [["zz_kind", "a", "a or b of ZZ"],
                               ["zz_size", "7", "size of ZZ"]]
    assert found["published"] == "ZZ Table 1"


def test_each_has_a_manual_page():
    for module in modules.MODULES:
        page = f"tc-{module.queue}.8" if module.queue else f"{module.name}.7"
        assert (TOP / "tools/man" / page).is_file(), page


@pytest.mark.parametrize("cc, aqm", [("sbrm", "delay"), ("pp", "fq_rr")])
def test_where_nothing_is_set_settings_are_the_modules_own(cc, aqm):
    """In any-rate and in a user's own file, unlike in the experiments of papers: with
    the setpoint of PP94, which is probed, eight flows of pp had 500 ms in a queue of
    10 Mb/s, and not 96."""
    page = (TOP / f"tools/man/tcp_{cc}.7").read_text()
    known = dict(re.findall(r'^\.BR (\w+) " \(default ([^;"]+)[;"]', page, re.M))
    for name in ("any-rate", str(TOP / "examples/both-ways.py")):
        found = {key.rpartition(".")[2]: str(value) for key, value in
                 job(name, cc, aqm)["sysctls"].items()
                 if key.startswith(f"net.ipv4.tcp_{cc}.")}
        assert found
        for setting, value in found.items():
            for one in value.split():
                assert one == known[setting] or \
                    float(one) == float(known[setting]), (name, setting, value)
