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

from tollwaylib import progress  # noqa: E402
from tollwaylib.errors import TollwayError  # noqa: E402
from tollwaylib.kernels import usermode  # noqa: E402
from tollwaylib.places import session  # noqa: E402
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


class Terminal(io.StringIO):
    """What a terminal would get."""

    def isatty(self):
        return True


@pytest.fixture(params=["rich", "no rich"])
def terminal(request, monkeypatch):
    """A terminal, with and without the package that draws bars."""
    if request.param == "rich":
        pytest.importorskip("rich")
    else:
        monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setattr(progress, "MOVING_S", 0)
    yield Terminal()
    progress.stop()


@pytest.fixture
def compile_in(tmp_path, monkeypatch, terminal):
    """Compile a tree of 31 files; returns what was said of the progress."""
    tree, build = tmp_path / "tree", tmp_path / "build"
    tree.mkdir()
    (tree / "patched").touch()
    monkeypatch.setattr(usermode, "KINDS", {"plain": ((), (), "linux")})

    def compile_it(more=""):
        (tree / "Makefile").write_text(
            MAKEFILE.replace("{tree}", str(tree)).replace("{more}", more))
        drawn = Progress(terminal)
        usermode.compile_kernel(tree, build, "plain", drawn)
        drawn.done()
        return terminal.getvalue(), build
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


def run_jobs(drawn, pause_s=0.0):
    """Three jobs of two steps each, the last of which fails."""
    drawn.jobs(3)
    for number in range(3):
        with drawn.job(f"seed {number}") as job:
            job.step("building the network")
            job.step("second 30 of 60")
            time.sleep(pause_s)
            job.say(f"$ command {number}")
            if number == 2:
                raise TollwayError("no such thing")


def test_jobs_on_a_terminal(terminal):
    drawn = Progress(terminal)
    with pytest.raises(TollwayError):
        # Longer than bars stay as they are.
        run_jobs(drawn, 0.3)
    drawn.done()
    said = terminal.getvalue()
    assert "seed 1: second 30 of 60" in said
    assert "1 of 3 runs done" in said
    assert re.search(r"\d s, about \d+ s left", said)
    for number in range(3):
        assert re.search(rf"^[^\n]*\$ command {number}\s*$", said, re.M)
    assert "3 of 3" not in said
    # What is printed now stands in a line of its own, and there is a cursor.
    assert re.sub("\x1b\\[[^A-Za-z]*[A-Za-z]|\r", "", said)[-1] == "\n"
    assert said.count("\x1b[?25l") == said.count("\x1b[?25h")


def test_jobs_without_a_terminal(monkeypatch):
    said = io.StringIO()
    with pytest.raises(TollwayError):
        run_jobs(Progress(said))
    assert re.sub(r" in 0 s, about 0 s", "", said.getvalue()).splitlines() == [
        "seed 0: building the network; 0 of 3 runs done in 0 s",
        "$ command 0", "seed 0: done; 1 of 3 runs done left",
        "$ command 1", "seed 1: done; 2 of 3 runs done left",
        "$ command 2"]
    # One job alone says all.
    said = io.StringIO()
    drawn = Progress(said)
    drawn.jobs(1)
    with drawn.job("seed 1") as job:
        job.step("second 1 of 2")
        job.step("second 2 of 2")
    assert said.getvalue() == "seed 1: second 1 of 2\nseed 1: second 2 of 2\n"


def test_the_estimate(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    drawn = Progress(io.StringIO())
    drawn.jobs(4)
    assert drawn.left_s() is None
    with drawn.job("a"), drawn.job("b") as other:
        other.step("case 1 of 2: name")
        now[0] += 60
        # Half of a job of four in a minute.
        assert drawn.left_s() == 7 * 60
    assert drawn.so_far() == "2 of 4 runs done in 60 s, about 60 s left"


@pytest.mark.parametrize("text, part", [
    ("second 30 of 60", 0.5), ("case 20 of 20: x", 1), ("second 2 of 0.5", 1),
    ("building", None), ("3 of 0", None)])
def test_how_much_a_job_has_done(text, part):
    assert progress.part_of(text) == part


@pytest.mark.parametrize("seconds, words", [
    (3, "3 s"), (89, "89 s"), (90, "2 min"), (5000, "83 min"),
    (3 * 3600 + 20 * 60, "3 h 20 min")])
def test_durations(seconds, words):
    assert progress.duration(seconds) == words


def test_an_error_is_said_after_the_bars(tmp_path):
    """On a real terminal, by the command."""
    script = ("import sys; sys.path.insert(0, sys.argv[1])\n"
              "from tollwaylib import ends, progress\n"
              "def body():\n"
              "    progress.Progress().step('compiling')\n"
              "    raise ends.TollwayError('no compiler')\n"
              "sys.exit(ends.guarded('tollway', body))\n")
    (tmp_path / "s.py").write_text(script)
    done = subprocess.run(
        ["script", "-qec", f"{sys.executable} {tmp_path}/s.py "
         f"{Path(__file__).resolve().parent.parent}/scripts", "/dev/null"],
        text=True, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    lines = re.sub("\x1b\\[[^A-Za-z]*[A-Za-z]", "", done.stdout).split("\n")
    assert "compiling" in done.stdout
    assert lines[-2].strip() == "tollway: no compiler"


def test_the_time_goes_on_without_news():
    pytest.importorskip("rich")
    said = Terminal()
    drawn = Progress(said)
    drawn.step("booting")
    time.sleep(1.4)
    drawn.done()
    lines = re.sub("\x1b\\[[^A-Za-z]*[A-Za-z]", "", said.getvalue())
    assert re.search(r"booting\W* 0 s", lines) and \
        re.search(r"booting\W* 1 s", lines)


def test_standard_error_that_is_closed(tmp_path):
    """It is opened again before anything is shown; nothing may keep what it was."""
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" "$@" 2>&-', "scripts/tollway", "run", "any-rate",
         "--on", "model", "--cc", "sbrm", "--aqm", "delay", "--set",
         "only=1 Mb/s, 20 ms", "--duration", "5", "--out", str(tmp_path / "out")],
        cwd=Path(__file__).resolve().parents[1], text=True, check=False,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    # 2 would be a fault.
    assert done.returncode in (0, 1), done.stdout


def test_a_session_ends_beside_names_that_are_not_utf8():
    """Those of other people's processes in /proc."""
    prctl = "import ctypes, time; ctypes.CDLL(None).prctl(15, b'f\\xfcr'); " \
        "print(1, flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", prctl],
                          stdout=subprocess.PIPE) as named:
        try:
            assert named.stdout.readline() == b"1\n"
            session.end_session(0x7fffffff)
        finally:
            named.kill()
