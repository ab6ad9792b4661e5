# SPDX-License-Identifier: GPL-2.0
"""`make check-kernels`: what is a finding, which packages, and whose lists.

The builds themselves need packages of other suites, and say so if these cannot
be had.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tollwaylib.errors import TollwayError
from tollwaylib.kernels import compatibility, suites
from tollwaylib.kernels.suites import architecture
from tollwaylib.progress import Progress

OUT = compatibility.OUT
TOP = Path(__file__).resolve().parents[1]
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


def until(condition, wanted):
    """Wait until a condition has this value, 20 s at most."""
    end = time.monotonic() + 20
    while condition() != wanted:
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.parametrize("compiler, line, ours", [
    ("gcc", f"{OUT}/tcp_pp/pp.c:3:1: warning: unused variable", True),
    ("gcc", f"{OUT}/tcp_pp/pp.c:3:1: error: no", True),
    ("gcc", f"{OUT}/tcp_pp/pp.c:3:1: fatal error: pp_fuzzy.h: no", True),
    ("gcc", "sch_sbrm/sbrm_qdisc.c:3:1: warning: symbol 'x' was not declared", True),
    ("gcc", f"{OUT}/include/compat/compat.h:9: warning: x", True),
    ("gcc", f"{OUT}/sch_sbrm/sbrm_qdisc.o: warning: objtool: f+0x1: x", True),
    ("clang", f"{OUT}/sch_sbrm/sbrm_qdisc.o: warning: objtool: f+0x1: x", False),
    ("gcc", "WARNING: modpost: missing MODULE_DESCRIPTION() in x.o", True),
    ("gcc", 'ERROR: modpost: "f" [x.ko] undefined!', True),
    ("gcc", "/usr/src/linux-headers-6.1/include/net/tcp.h:1:2: warning: x",
     False),
    ("gcc", "./include/net/tcp.h:1:2: warning: x", False),
    ("gcc", "include/linux/skbuff.h:1:2: warning: x", False),
    ("gcc", "arch/x86/include/asm/bug.h:1:2: warning: x", False),
    ("gcc", "warning: the compiler differs from the one used to build", False),
    ("gcc", "Skipping BTF generation for x.ko due to unavailability", False),
    ("gcc", f"  CHECK   {OUT}/tcp_pp/pp.c", False),
])
def test_findings(compiler, line, ours):
    assert bool(compatibility.findings(f"make: x\n{line}\n{line}\n", compiler)) == ours
    assert len(compatibility.findings(f"{line}\n{line}\n", compiler)) == ours


def judged(tmp_path, text, status=0, modules=5, compiler="gcc"):
    for number in range(modules):
        folder = tmp_path / f"sch_{number}"
        folder.mkdir(exist_ok=True)
        (folder / f"sch_{number}.ko").touch()
    (tmp_path / "build.log").write_text(text)
    return compatibility.judge("6.1", compiler, tmp_path / "build.log", status)


CHECKED = "  CHECK   x.c\n"


def test_a_clean_build_is_ok(tmp_path):
    assert judged(tmp_path, CHECKED).state == "ok"
    assert judged(tmp_path, "", compiler="clang").state == "ok"


@pytest.mark.parametrize("text, status, modules, said", [
    (f"{CHECKED}{OUT}/a.c:1: warning: x", 0, 5, "1 findings"),
    (CHECKED + "probe.sh: no module can be compiled", 1, 0, "probe.sh: no"),
    (f"{CHECKED}{OUT}/a.c:1: error: x\nmake: leaving", 2, 0, "a.c:1: error: x"),
    ("", 0, 5, "sparse did not run"),
    (CHECKED, 0, 4, "only 4 modules"),
])
def test_what_is_a_failure(tmp_path, text, status, modules, said):
    row = judged(tmp_path, text, status, modules)
    assert row.state == "failed" and said in row.result


class FakeSuite(suites.Suite):
    """A suite that fetches nothing. newest: {kind of package: number of the last 6.1.0}."""

    def __init__(self, folder, newest):
        super().__init__("none", ("none",))
        self.folder, self.numbers = folder, newest

    def newest(self, kind, series, count=1):
        release = f"6.1.0-{self.numbers[kind]}" if series == "6.1." else series
        return [f"linux-{kind}-{release}-{architecture()}"]

    def tree(self, packages, progress=None):
        return self.folder, sorted(packages)


def use_headers(name, folder):
    """A process that uses the headers of a suite, and says when in `said`."""
    suite = FakeSuite(folder, {"headers": 1, "image": 1})
    compatibility.suite_of = lambda kernel: (suite, "6.1.", 1)
    with compatibility.headers("6.1", Progress()):
        for _ in range(5):
            with open(folder / "said", "a", encoding="ascii") as said:
                said.write(f"{name}\n")
            time.sleep(0.1)


def test_headers_come_before_the_kernel(monkeypatch, tmp_path):
    """An update has headers of -2-, and its signed kernel is not there yet."""
    suite = FakeSuite(tmp_path, {"headers": 2, "image": 1})
    monkeypatch.setattr(compatibility, "suite_of", lambda kernel: (suite, "6.1.", 1))
    with compatibility.headers("6.1", Progress()) as (_, _, packages, releases):
        assert releases == [f"6.1.0-{number}-{architecture()}" for number in (1, 2)]
        assert {f"linux-headers-{release}" for release in releases} < set(packages)


def test_two_runs_do_not_use_a_tree_at_once(tmp_path):
    context = multiprocessing.get_context("fork")
    runs = [context.Process(target=use_headers, args=(name, tmp_path))
            for name in "ab"]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
        assert run.exitcode == 0
    said = "".join((tmp_path / "said").read_text().split())
    assert said in ("aaaaabbbbb", "bbbbbaaaaa")


def test_the_newest_package_is_taken(monkeypatch):
    names = [f"linux-headers-{version}-amd64" for version in (
        "6.1.0-9", "6.1.0-56", "6.1.0-56-cloud", "6.1.0-56-rt", "6.12.94+deb13",
        "6.12.107+deb13", "7.2.13+deb14", "7.3~rc7", "7.3")]
    suite = suites.Suite("none", ("none",))
    monkeypatch.setattr(suite, "update", lambda: None)
    monkeypatch.setattr(suites, "architecture", lambda: "amd64")
    monkeypatch.setattr(
        suite, "_apt", lambda *words: subprocess.CompletedProcess(
            words, 0, "".join(f"{name} - text\n" for name in names), ""))

    def newest(*words):
        return [name[len("linux-headers-"):-len("-amd64")]
                for name in suite.newest("headers", *words)]

    assert newest("6.1.") == ["6.1.0-56"]
    assert newest("6.12.") == ["6.12.107+deb13"]
    assert newest("", 3) == ["7.3", "7.2.13+deb14", "6.12.107+deb13"]
    assert newest("5.10.") == []
    assert newest("6.12.", -1) == ["6.12.94+deb13"]
    assert newest("6.1.", -1) == ["6.1.0-9"]
    assert newest("5.10.", -1) == []


def test_apt_has_lists_of_its_own(monkeypatch, tmp_path):
    """No call of apt may write where the machine's own apt does."""
    calls = []

    def recorded(argv, **_):
        calls.append(argv)
        return subprocess.CompletedProcess(argv, 0, "Debian Debian http://m/\n",
                                           "")

    monkeypatch.setenv("TOLLWAY_CACHE", str(tmp_path))
    monkeypatch.setattr(suites.subprocess, "run", recorded)
    suite = suites.Suite("sid", ("sid", "experimental", "sid-security"))
    suite.update()
    assert calls[0][:2] == ["apt-get", "indextargets"]
    text = (suite.folder / "sources.list").read_text()
    # Without a mirror of the security archive that goes without it.
    assert text.count("http://m/") == 2 and "experimental" in text
    for argv in calls[1:]:
        given = dict(word.split("=", 1) for word in argv if "=" in word)
        for name in ("Dir::State", "Dir::State::Status", "Dir::Cache",
                     "Dir::Etc::SourceList", "Dir::Etc::SourceParts"):
            assert Path(given[name]).is_relative_to(tmp_path), argv


def test_no_mirror_is_one_sentence(monkeypatch):
    monkeypatch.setattr(
        suites.subprocess, "run", lambda argv, **_:
        subprocess.CompletedProcess(argv, 0, "Ubuntu Ubuntu http://m/\n", ""))
    with pytest.raises(TollwayError, match="no Debian mirror"):
        suites.mirrors()


def test_what_cannot_be_had_is_a_row(monkeypatch):
    def none(*_):
        raise TollwayError("no network")
    monkeypatch.setattr(compatibility, "headers", none)
    rows = list(compatibility.rows(["5.10"], Progress()))
    assert [row.state for row in rows] == ["missing"]
    assert "no network" in rows[0].result


@pytest.mark.parametrize("user", [(), NOBODY], ids=["us", "nobody"])
def test_a_killed_run_leaves_no_process(user):
    """A compiler went on for minutes."""
    if user and os.geteuid():
        pytest.skip("not root: the other one is a user's already")
    if user and any(not one.stat().st_mode & 1 for one in Path(__file__).parents):
        pytest.skip("the sources lie in a directory that only root may enter")
    if (user or os.geteuid()) and subprocess.run(
            [*user, "unshare", "--user", "--mount", "--map-root-user", "true"], check=False,
            stderr=subprocess.DEVNULL).returncode:
        pytest.skip("users may not make namespaces here")
    ends_with_us([*user, sys.executable, "-c", "import sys; from tollwaylib.kernels import "
                  "suites; suites.run_in('/', {}, sys.argv[1:])"])


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("call", [
    "usermode.run(words, 'no')", "usermode.planned(words, None)",
    "usermode.compiled(words, None, open('/dev/null', 'w'), print)",
    "build._built(Path(sys.argv[1]), (), words, 'it')"])
def test_a_killed_build_leaves_no_process(call, number, tmp_path):
    """make's compilers ran on, while the lock of the folder was free."""
    # As kbuild does, and also where make only plans to.
    (tmp_path / "file").write_text("all:\n\t+sh -c '$(words); true'\n")
    # SIGTERM interrupts as in tollway, also where SIGINT is ignored, as in the background.
    ends_with_us([sys.executable, "-c", "import signal, sys; from pathlib import Path; from "
                  "tollwaylib.kernels import build, usermode; signal.signal(signal.SIGTERM, "
                  "signal.default_int_handler); words = ['make', "
                  "'-s', '-f', sys.argv[1] + '/file', 'words=' + ' '.join(sys.argv[2:])]; "
                  + call, str(tmp_path)], number)


def ends_with_us(command, number=signal.SIGKILL):
    """A program that runs what follows its words gets a signal, and both end."""
    # No other one sleeps so long.
    seconds = f"{10**6 + os.getpid()}.{time.monotonic_ns() % 10**9:09}"
    process = subprocess.Popen(
        [*command, "sleep", seconds], stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(TOP / "scripts")})

    def runs():
        return not subprocess.run(["pgrep", "-fx", f"sleep {seconds}"], check=False,
                                  stdout=subprocess.DEVNULL).returncode
    try:
        until(runs, True)
        process.send_signal(number)
        process.wait(20)
        until(runs, False)
    finally:
        process.kill()
        process.wait()
        subprocess.run(["pkill", "-fx", f"sleep {seconds}"], check=False)


def with_compilers():
    """(kernel, compiler) of test_build(). Each build takes more than a minute. The short form
    has gcc with sparse on the oldest kernel, and clang on the newest one; test_qemu.py builds for
    6.1."""
    short = {("5.10", "gcc"), ("newest", "clang")}
    for name, *_ in compatibility.KERNELS:
        for compiler in compatibility.COMPILERS:
            yield pytest.param(
                name, compiler,
                marks=() if (name, compiler) in short else pytest.mark.full)


@pytest.mark.parametrize("kernel, compiler", with_compilers())
def test_build(kernel, compiler):
    """As make check-kernels does, with each suite's own gcc, sparse and clang."""
    rows = list(compatibility.rows([kernel], Progress(), (compiler,)))
    assert not [row for row in rows if row.state == "failed"]
    for row in rows:
        if row.state == "missing":
            pytest.skip(f"not built for {kernel}: {row.result}")
