# SPDX-License-Identifier: GPL-2.0
"""The house: make help, install and uninstall, dependencies, versions, and
manual pages that name everything there is."""

import os
import re
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tollwaylib import VERSION as OUR_VERSION, papers, programs, progress
from tollwaylib.commands.list import command_list
from tollwaylib.components import COMPONENTS, modules
from tollwaylib.doctor import local
from tollwaylib.experiments import parameters
from tollwaylib.kernels import usermode

TOP = Path(__file__).resolve().parents[1]
MAKEFILE = (TOP / "Makefile").read_text()
VERSION = re.search(r'^PACKAGE_VERSION="(.*)"', (TOP / "dkms.conf").read_text(),
                    re.M).group(1)


def sh(*command, **keywords):
    """Run a command in the checkout; the done process with its text."""
    # Words of a make above, such as -j or O=, are not for these.
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    environment.update(keywords.pop("env", {}))
    return subprocess.run(list(map(str, command)), text=True, cwd=TOP,
                          env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, check=False, **keywords)


def page(name):
    """Text of a manual page without its markup."""
    text = (TOP / "tools/man" / name).read_text()
    return re.sub(r"\\f[BIRP]", "", text.replace("\\-", "-")).replace("\\&", "")


def test_help_is_the_default_and_names_every_target():
    targets = re.search(r"^\.PHONY: ((?:.*\\\n)*.*)", MAKEFILE,
                        re.M).group(1).replace("\\\n", " ").split()
    done = sh("make")
    assert done.returncode == 0 and done.stdout == sh("make", "help").stdout
    assert VERSION in done.stdout
    for target in targets:
        assert re.search(rf"^  {target} +\S", done.stdout, re.M), target


def test_one_version():
    assert OUR_VERSION == VERSION
    for source in TOP.glob("*_*/*.c"):
        found = re.search(r'MODULE_VERSION\("(.*)"\)', source.read_text())
        assert not found or found.group(1) == VERSION, source
    assert re.search(rf"^version: {re.escape(VERSION)}$",
                     (TOP / "CITATION.cff").read_text(), re.M)
    assert re.search(rf"^## {re.escape(VERSION)}\b",
                     (TOP / "CHANGELOG.md").read_text(), re.M)


@pytest.mark.parametrize("words, sentence", [
    (["modules", "KDIR=/nonexistent"], "install the package linux-headers-"),
    (["modules", "CC=/nonexistent/cc"], "install the package gcc"),
    (["tools", "CC=/nonexistent/cc"], "install the packages gcc and libc6-dev"),
])
def test_what_is_missing_is_said(words, sentence, tmp_path):
    kernel = tmp_path / "kernel"
    kernel.mkdir()
    (kernel / "Makefile").touch()
    done = sh("make", f"KDIR={kernel}", f"O={tmp_path / 'out'}", *words)
    assert done.returncode
    # make adds a line of its own.
    first, *rest = done.stderr.splitlines()
    assert sentence in first and len(rest) == 1


def test_install_tools_and_uninstall(tmp_path):
    words = [f"O={tmp_path / 'out'}", f"DESTDIR={tmp_path / 'root'}",
             "KDIR=/nonexistent", "PREFIX=/opt/t", "TC_LIB_DIR=/opt/tc"]
    done = sh("make", "install-tools", *words)
    assert done.returncode == 0, done.stderr
    root = tmp_path / "root/opt"
    assert {path.name for path in (root / "t/bin").iterdir()} == {
        "tollway", "tollway-admit", "tollway-traffic", "tollway-qsample"}
    unit = root / "t/lib/systemd/system/tollway-admit@.service"
    assert "\nExecStart=/opt/t/bin/tollway-admit run " in unit.read_text()
    assert (root / "tc/q_sbrm.so").exists()
    assert (root / "tc/q_fq_rr.so").exists()
    for source in (TOP / "tools/man").glob("*.[1-8]"):
        assert (root / f"t/share/man/man{source.suffix[1:]}" /
                source.name).exists()
    # The command runs from there and finds what is beside it.
    done = sh(root / "t/bin/tollway", "list")
    assert done.returncode == 0, done.stderr
    assert "double-bottleneck" in done.stdout
    done = sh(root / "t/bin/tollway-admit", "--help")
    assert done.returncode == 0, done.stderr
    for cache in list(root.rglob("__pycache__")):
        shutil.rmtree(cache)
    assert sh("make", "uninstall", *words).returncode == 0
    assert [path for path in root.rglob("*") if not path.is_dir()] == []
    assert not (root / "t/lib/tollway").exists()


@pytest.mark.parametrize("target", ["install-tools", "uninstall"])
def test_files_of_packages_are_left_alone(target, tmp_path):
    """make install and uninstall give up where dpkg knows one of the files."""
    plugin = tmp_path / "tc/q_sbrm.so"
    plugin.parent.mkdir()
    plugin.write_text("of a package")
    (tmp_path / "bin").mkdir()
    dpkg = tmp_path / "bin/dpkg"
    dpkg.write_text('#!/bin/sh\nfor file; do case $file in\n'
                    f"{plugin}) echo \"tollway-tools: $file\" ;;\n"
                    '*) echo "dpkg-query: no path found: $file" >&2 ;;\n'
                    "esac; done\nexit 1\n")
    dpkg.chmod(0o755)
    words = [f"PREFIX={tmp_path}/usr", "TC_LIB_DIR=" + str(plugin.parent),
             f"O={tmp_path}/out", "KDIR=/nonexistent", "DKMS="]
    path = {"PATH": f"{dpkg.parent}:{os.environ['PATH']}"}
    done = sh("make", target, *words, env=path)
    assert done.returncode == 2
    assert "apt purge tollway-tools" in done.stderr.splitlines()[0]
    assert plugin.read_text() == "of a package"
    assert not (tmp_path / "usr").exists()
    # Below DESTDIR nothing is dpkg's.
    done = sh("make", target, *words, f"DESTDIR={tmp_path}/root", env=path)
    assert done.returncode == 0, done.stderr


def test_install_modules_and_uninstall(tmp_path):
    kernel = usermode.kernel("plain", progress.Progress())
    words = [f"O={tmp_path / 'out'}", f"DESTDIR={tmp_path / 'root'}",
             f"KDIR={kernel.build}",
             f"KBUILD_ARGS={' '.join(usermode.USER_MODE)}"]
    done = sh("make", "install-modules", *words)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "root/lib/modules" / kernel.version / "updates"
    assert {path.name for path in folder.iterdir()} == {
        f"{name}.ko" for name in modules.OURS}
    assert sh("make", "uninstall", *words).returncode == 0
    assert not folder.exists()


def test_plugin_goes_where_the_installed_tc_looks():
    files = sh("dpkg", "-L", "iproute2")
    if files.returncode:
        pytest.skip("iproute2 is not from a Debian package")
    done = sh("make", "-s", "--eval", "print: ; @echo $(TC_LIB_DIR)", "print")
    assert done.stdout.strip() in files.stdout.splitlines()


def test_dependencies_that_are_there_cost_nothing():
    if sh("scripts/install-dependencies", "--missing", "check").stdout:
        pytest.skip("something is missing here")
    start = time.monotonic()
    done = sh("scripts/install-dependencies", "check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert time.monotonic() - start < 2


def test_programs_are_in_the_packages_that_are_named():
    """What doctor says how to get, and that install-dependencies gets it."""
    lists = re.findall(r'^\w+="([^"]*)"',
                       (TOP / "scripts/install-dependencies").read_text(), re.M)
    installed = set(" ".join(lists).split())
    for name, _, package in programs.PROGRAMS:
        path = shutil.which(name)
        if path:
            owners = sh("dpkg", "-S", f"*bin/{name}").stdout
            assert re.search(rf"^{re.escape(package)}: \S*bin/{name}$", owners,
                             re.M), name
        known = sh("dpkg-query", "-W", "-f", "${Priority}", package)
        assert package in installed | {"net-tools"} or \
            known.stdout in ("required", "important"), package
    assert "net-tools" in sh("dpkg-query", "-W", "-f", "${Depends}",
                             "mininet").stdout


@pytest.fixture
def bare(tmp_path):
    """PATH of a machine on which nothing is installed: dpkg-query knows no
    package, apt-get fails, id says that we are not root."""
    for name in ("sh", "sed", "sort", "uniq", "paste", "head", "mktemp", "rm",
                 "env", "true", "cat"):
        (tmp_path / name).symlink_to(shutil.which(name))

    def program(name, text):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)

    program("dpkg-query", "exit 1")
    program("apt-get", 'echo "E: no network" >&2; exit 100')
    program("id", "echo 1000")
    return tmp_path, program


def one_sentence(path, sentence):
    done = sh("scripts/install-dependencies", env={"PATH": str(path)})
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("install-dependencies: ") and sentence in last


def test_no_sudo(bare):
    one_sentence(bare[0], "there is no sudo")


def test_sudo_that_would_ask(bare):
    bare[1]("sudo", "exit 1")
    one_sentence(bare[0], "sudo needs a password")


def test_no_network(bare):
    bare[1]("id", "echo 0")
    one_sentence(bare[0], "packages could not be installed")


def test_sudo_is_never_asked_to_wait(bare):
    bare[1]("sudo", f'echo "$*" >> {bare[0]}/log; [ "$1" = -n ] || exit 1; '
            'shift; exec "$@"')
    one_sentence(bare[0], "packages could not be installed")
    calls = (bare[0] / "log").read_text().splitlines()
    assert calls[0] == "-n true"
    assert all("DEBIAN_FRONTEND=noninteractive" in call for call in calls[1:])
    assert "--no-install-recommends" in calls[-1] and "mininet" in calls[-1]


def test_not_debian(bare):
    (bare[0] / "dpkg-query").unlink()
    one_sentence(bare[0], "not Debian")


def test_what_the_doctor_says_installs_what_it_misses(bare, monkeypatch):
    """On a machine where nothing is installed: each package that the doctor
    names is one that its last line installs."""
    monkeypatch.setattr(local.shutil, "which", lambda *_, **__: None)
    monkeypatch.setattr(local.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(usermode.Path, "glob", lambda *_: iter(()))
    named = {word for one in local.machine()
             for word in re.findall(r"package (\S+?)(?:,|$)", one.remedy)}
    assert {"gcc", "mininet", "python3-pytest", "linux-source"} <= named
    # What every Debian has, and what comes with another package.
    essential = {"tar", "mount", "dpkg", "apt", "coreutils"}
    program, *words = local.INSTALL_ALL.split()
    assert Path(program).samefile(TOP / "scripts/install-dependencies")
    installed = sh(program, "--missing", *words,
                   env={"PATH": str(bare[0])}).stdout.split()
    # It is installed where no source is found, by any file in /usr/src.
    assert "linux-source" in Path(program).read_text()
    installed.append("linux-source")
    missing = named - essential - set(installed)
    depended = sh("apt-cache", "depends", "mininet").stdout.split()
    assert not missing - set(depended), missing


@pytest.mark.parametrize("module", modules.CONTROLS)
def test_every_sysctl_is_in_the_manual(module):
    source = "".join(path.read_text() for path in (TOP / module).glob("*_net.c"))
    names = re.findall(r'(?:\.procname\s*= |TOLLWAY_SETTING\w*\()"(\w+)"',
                       source)
    assert names
    text = page(f"{module}.7")
    for name in names:
        assert re.search(rf"^\.TP\n\.BR? {name}\b", text, re.M), name


def test_every_option_and_parameter_is_in_the_manual():
    text = page("tollway.1")
    for program, manual, commands in (
            ("scripts/tollway", text, ("run", "report", "table", "lab",
                                       "doctor")),
            ("tools/tollway-admit", page("tollway-admit.8"),
             ("run", "status", "key"))):
        for command in commands:
            done = sh(program, command, "--help")
            assert done.returncode == 0
            options = re.findall(r"(?<!\w)--[a-z][a-z-]+", done.stdout)
            for option in set(options) - {"--help"}:
                assert option in manual, f"{command} {option}"
    # The others are declared with components and experiments, see below.
    for name in parameters.COMMON.keys() - {
            name for one in COMPONENTS for name in one.parameters}:
        assert re.search(rf"^\.BR? {name}\b", text, re.M), name


@pytest.mark.parametrize("name", papers.EXPERIMENTS)
def test_every_experiment_describes_itself(name, capsys):
    """What it is, what it compares, and each of its parameters."""
    experiment = papers.get(name)
    assert len(experiment.about) > 20 and experiment.about.endswith(".")
    assert command_list(name) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{name}: {experiment.title}.\n")
    assert experiment.about.partition(".")[0] in " ".join(said.split())
    assert f"Duration: {experiment.duration_s:g} s" in said
    for parameter, (default, *_, meaning) in experiment.parameters().items():
        assert re.search(rf"^    {parameter}={re.escape(str(default))} +"
                         rf"{re.escape(meaning)}$", said, re.M), parameter
        assert meaning


NEW_EXPERIMENT = """
from ..experiments.description import Experiment
from . import networks

EXPERIMENTS = (Experiment(
    name="zz-share", title="Shares", reproduces="no paper",
    topology=networks.confluence, duration_s=7.0, cc="reno", aqm="pfifo",
    special={"zz_pause": (2.5, 0.0, 9.0, "s between bursts of zz")},
    about="Two flows that pause."),)
"""


def test_a_new_experiment_is_one_file(tmp_path):
    """It is listed and described, and --set takes the parameter of its own."""
    shutil.copytree(TOP / "scripts", tmp_path / "scripts")
    (tmp_path / "scripts/tollwaylib/papers/zz.py").write_text(NEW_EXPERIMENT)
    command = tmp_path / "scripts/tollway"
    assert "\nzz-share\n" in sh(command, "list").stdout
    said = sh(command, "list", "zz-share").stdout
    assert "\nTwo flows that pause.\n" in said
    assert re.search(r"zz_pause=2.5 +s between bursts of zz\n", said)
    assert "Default: --cc reno --aqm pfifo." in " ".join(said.split())
    done = sh(command, "run", "zz-share", "--set", "zz_pause=10")
    assert "--set zz_pause=10: give a number from 0 to 9" in done.stderr


def test_list_of_an_own_experiment(tmp_path):
    sh("scripts/tollway", "new", tmp_path / "mine.py")
    said = sh("scripts/tollway", "list", tmp_path / "mine.py").stdout
    assert said.startswith("mine: ")
    assert f"Your own experiment: {tmp_path}" in " ".join(said.split())


def test_list_of_what_there_is_not():
    done = sh("scripts/tollway", "list", "nosuch")
    assert done.returncode == 2 and "no experiment nosuch" in done.stderr
    assert sh("scripts/tollway", "list", "smoke").stdout.startswith("smoke: ")


def test_readme_names_both_commands():
    text = (TOP / "README.md").read_text()
    for word in ("make demo", "make check", "make help", "GPL-2.0"):
        assert word in text
    for target in re.findall(r"`(?:sudo )?make ([a-z-]+)", text):
        assert re.search(rf"^{target}:", MAKEFILE, re.M), target


def test_the_picture_of_the_readme():
    """It is there, well-formed and small, and says by which commands it was made:
    those of make picture, which the README names below it."""
    text = (TOP / "README.md").read_text()
    names = re.findall(r"!\[[^]]+\]\(([^)]+)\)", text)
    assert names
    planned = [shlex.split(line)[1:] for line in re.findall(
        r"scripts/(tollway run .*)",
        sh("make", "-n", "picture").stdout.replace("\\\n", " "))]
    assert len(planned) == 4
    for name in names:
        place = TOP / name
        assert place.stat().st_size < 150_000
        root = ElementTree.parse(place).getroot()
        assert root.tag.endswith("}svg")
        made = next(part.text for part in root.iter()
                    if part.tag.endswith("}description"))
        done = [shlex.split(line)[1:] for line in made.splitlines()
                if line.startswith("tollway run ")]
        assert sorted(done) == sorted(planned)
        # On a dark page, too: it has a background of its own.
        assert "fill: #ffffff" in place.read_text()
        below = text.split(f"({name})", 1)[1].split("\n\n")[1]
        assert "`make picture`" in below
