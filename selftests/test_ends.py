# SPDX-License-Identifier: GPL-2.0
"""How `tollway` ends: 0, 1, 2 or 130 and one sentence, whatever it is given,
wherever it runs, whenever it is interrupted. Nothing here boots the lab."""

import importlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
TOP = HERE.parent
sys.path[:0] = [str(TOP / "scripts"), str(HERE / "golden")]

import synthetic  # noqa: E402
from tollwaylib import cli, ends, files  # noqa: E402
from tollwaylib.doctor import finding  # noqa: E402
from tollwaylib.errors import TollwayError  # noqa: E402

importlib.import_module("tollwaylib.report.page")  # not in each copy of this
TOLLWAY = TOP / "scripts/tollway"
NOBODY = 65534
# A run gets as far as to the kernel of the lab, and no further.
NO_LAB = {"KERNEL_SRC": "/nonexistent/linux"}


class Ended:
    """What a command left: its status and what it wrote."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def verify(self, *statuses):
        """It ended as it should, with one sentence if it failed."""
        where = f"{self.status}\n{self.out[-2000:]}\n{self.err[-4000:]}"
        assert self.status in (statuses or (0, 1, 2, 130)), where
        assert "Traceback" not in self.out + self.err, where
        assert "Exception ignored" not in self.err, where
        # It is the net below all others, for what nobody has thought of.
        assert "unexpected error" not in self.err, where
        said = [line for line in self.err.splitlines()
                if line.startswith("tollway: ")]
        # Nothing comes after the sentence.
        assert len(said) == (self.status in (2, 130)), where
        assert not said or self.err.endswith(f"{said[0]}\n"), where
        return self


@pytest.fixture(autouse=True)
def hangups_count():
    """SIGHUP ends what it comes to, also where the tests run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def forked(body, cwd, environment=None, user=None):
    """Run body() under ends.guarded() in a copy of this process: that takes a
    hundredth of the time of a new one. Returns what is Ended."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        pid = os.fork()
        if not pid:
            status = 99
            try:
                os.chdir(cwd)
                os.environ.update(environment or {}, TMPDIR=str(cwd))
                tempfile.tempdir = None
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                sys.stdout, sys.stderr = (
                    open(number, "w", encoding="utf-8", closefd=False)
                    for number in (1, 2))
                sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr
                if user and os.geteuid() == 0:
                    os.setgid(user)
                    os.setuid(user)
                status = ends.guarded("tollway", body)
            except BaseException:
                os.write(2, traceback.format_exc().encode(errors="replace"))
            finally:
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="surrogateescape"))
    return Ended(status, *texts)


def command(words, cwd, environment=NO_LAB, user=None):
    """Run the command line in a copy of this process."""
    def body():
        sys.argv = ["tollway", *words]
        return cli.main(words)

    return forked(body, cwd, environment, user)


@pytest.fixture
def folder():
    """A directory that any user can reach and write to."""
    path = Path(tempfile.mkdtemp(prefix="tollway-ends-", dir="/var/tmp"))
    path.chmod(0o777)
    yield path
    # Only root may read, and empty, a directory whatever its mode.
    for below in path.iterdir():
        if below.is_dir() and not below.is_symlink():
            below.chmod(0o755)
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def report_dir(tmp_path_factory):
    """A directory with the results of a run."""
    place = tmp_path_factory.mktemp("results")
    raw = synthetic.steady(lambda number, path, wtp: 1.0)
    (place / "seed-1").mkdir()
    files.write_json_atomic(place / "seed-1/raw.json", raw)
    files.write_json_atomic(place / "seed-1/result.json",
                            synthetic.analyse(raw))
    return place


# --- arguments ---------------------------------------------------------------

BAD = "BAD"
RUN = ["run", "double-bottleneck"]
# Command lines with a hole.
COMMANDS = (
    [BAD], ["help", BAD], ["list", BAD], ["run", BAD], [*RUN, BAD],
    *([*RUN, option, BAD] for option in (
        "--on", "--kernel", "--cc", "--aqm", "--scale", "--set", "--duration",
        "--seed", "--repeat", "-j", "--traffic", "--trace", "--flavour",
        "--out", "--json")),
    *([*RUN, "--set", f"{name}={BAD}"] for name in (
        BAD, "warmup_s", "limit", "gamma", "source")),
    ["run", "price-laws", "--set", f"simulations={BAD}"],
    ["run", "pp-bench-3", "--set", f"only={BAD}"],
    ["run", "single-bottleneck", "--set", f"model={BAD}"],
    ["run", "smoke", "--out", BAD], ["report", BAD],
    ["lab", BAD], ["lab", "info", "--flavour", BAD],
    *(["lab", "exec", option, BAD, "true"] for option in (
        "--seed", "--wall", "--virtual", "--out")),
    ["lab", "exec", BAD], ["lab", "shell", BAD],
    ["doctor", BAD], ["doctor", "--seconds", BAD],
    ["doctor", "--peer", BAD, "--seconds", "0.01"], ["doctor", "--json", BAD])
VALUES = {
    "empty": "", "not UTF-8": os.fsdecode(b"l\xfct"), "escape": "\x1b[31mred",
    "line": "a\nb", "zero": "0", "negative": "-1", "nan": "nan", "inf": "inf",
    "huge": "1e400", "long number": "9" * 5000, "digit": "\u00b2",
    "arabic": "\u0661", "long": "a" * 5000, "deep": "d/" * 3000, "dash": "-",
    "dashes": "--", "format": "%s%(x)s{}{0}", "shell": "$(exit 3)`x`'\"",
    "null": "/dev/null", "above": "/dev/null/x", "proc": "/proc/nosuch/x",
    "file": "file", "below a file": "file/x", "closed": "closed/x",
    "equals": "=", "spaces": "  ", "comma": ","}


@pytest.mark.parametrize("value", VALUES)
def test_any_argument(value, folder):
    (folder / "file").write_text("{}\n")
    (folder / "closed").mkdir(mode=0)
    before = {path.name for path in folder.iterdir()}
    for words in COMMANDS:
        given = [word.replace(BAD, VALUES[value]) for word in words]
        try:
            command(given, folder, user=NOBODY).verify()
        except AssertionError as error:
            raise AssertionError(f"tollway {ascii(given)[:200]}: {error}") from None
    # What could not be done has left nothing; doctor --json writes.
    left = {path.name for path in folder.iterdir()} - before
    assert left <= {VALUES[value]}, left


@pytest.mark.parametrize("words, says", [
    ([], "the following arguments are required: COMMAND"),
    (["run"], "the following arguments are required: EXPERIMENT"),
    (["report"], "the following arguments are required: DIR"),
    (["lab"], "the following arguments are required: ACTION"),
    ([*RUN, "--repeat", "10001"], "above 0 and up to 10000 "),
    ([*RUN, "--seed", "1000000000001"], "above 0 and up to 1000000000000 "),
    (["lab", "exec", "--wall", "1e300", "true"],
     "argument --wall: '1e300' is not a number above 0 and up to 15000000 "),
    ([*RUN, "--json", "closed/x"], "closed/x cannot be written"),
    ([*RUN, "--json", "."], ". cannot be written: it is a directory"),
    ([*RUN, "--json", "nosuch/x"],
     "nosuch/x cannot be written: there is no directory /"),
    ([*RUN, "--out", ""], "argument --out: the name of a file must"),
    ([*RUN, "--cc", os.fsdecode(b"l\xfct")],
     r"argument --cc: 'l\udcfct' has characters that cannot be printed"),
    ([*RUN], "KERNEL_SRC=/nonexistent/linux does not exist"),
    (["run", "pp-base", "--set", "only=nothing"],
     "--set only=nothing: pp-base has no such case"),
    (["lab", "info"], "KERNEL_SRC=/nonexistent/linux does not exist"),
    (["report", os.fsdecode(b"l\xfct")], "l\udcfct is not a directory"),
    (["doctor", "--seconds", "3601"], "'3601' is not a number above 0 and up "
     "to 3600 (tollway doctor --help"),
])
def test_what_the_sentence_says(words, says, folder):
    (folder / "closed").mkdir(mode=0)
    ended = command(words, folder, user=NOBODY).verify(2)
    assert says in ended.err and ended.out == ""


def test_help_and_version(folder):
    said = command(["--version"], folder).verify(0).out
    found = re.search(r'^PACKAGE_VERSION="(.*)"',
                      (TOP / "dkms.conf").read_text(), re.M)
    assert said == f"tollway {found[1]}\n"
    for words, as_well in ((["help"], ["--help"]),
                           (["help", "run"], ["run", "--help"])):
        said = command(words, folder).verify(0).out
        assert said == command(as_well, folder).verify(0).out
        assert said.startswith("usage: tollway")
    assert "--traffic" in said


# --- surroundings ------------------------------------------------------------

def sh(script, folder, words, program=TOLLWAY, **environment):
    """A shell that runs the command as "$@"; None takes a variable away."""
    surroundings = {**NO_LAB, "TMPDIR": str(folder),
                    "MPLCONFIGDIR": str(folder), **environment}
    # By env, so that the shell itself is not concerned.
    words = ["env", *(word for name, value in surroundings.items()
                      for word in (["-u", name] if value is None else [])),
             *(f"{name}={value}" for name, value in surroundings.items()
               if value is not None), program, *words]
    done = subprocess.run(["bash", "-c", script, "sh", *map(str, words)],
                          cwd=folder, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=120, check=False)
    return Ended(done.returncode, *(text.decode(errors="surrogateescape")
                                    for text in (done.stdout, done.stderr)))


# What the shell does, and the status of a command that succeeds. Where the
# standard error cannot be written to, no sentence can be seen.
SHELL = {
    "stdin closed": ('"$@" <&-', 0), "stdout closed": ('"$@" >&-', 0),
    "stderr closed": ('"$@" 2>&-', 0),
    "all closed": ('"$@" <&- >&- 2>&-', 0),
    "stdout full": ('"$@" > /dev/full', 2),
    "stderr full": ('"$@" 2> /dev/full', 0),
    "both full": ('"$@" > /dev/full 2>&1', 2),
    "nobody reads": ('"$@" | true; exit "${PIPESTATUS[0]}"', 2),
    "nobody reads either": ('"$@" 2>&1 | true; exit "${PIPESTATUS[0]}"', 2),
}


@pytest.mark.parametrize("words, status", [
    (["run", "--help"], 0), (["report", "RESULTS"], 0),
    (["run", "nosuch"], 2)])
@pytest.mark.parametrize("name", SHELL)
def test_streams(name, words, status, folder, report_dir):
    script, expected = SHELL[name]
    given = [report_dir if word == "RESULTS" else word for word in words]
    ended = sh(script, folder, given)
    # One that fails writes nothing to the standard output.
    if status == 0:
        status = expected
    # true may end before or after something is written.
    may = (0, status) if "reads" in name else (status,)
    assert ended.status in may, ended.err
    for unwanted in ("Traceback", "Exception ignored", "unexpected error"):
        assert unwanted not in ended.out + ended.err
    if name == "stdout full" and status == 2:
        ended.verify(2)
    assert not list(folder.glob("tollway-error-*"))


def test_a_full_standard_output_is_said(folder):
    ended = sh('"$@" > /dev/full', folder, ["list"]).verify(2)
    assert "No space left on device" in ended.err


@pytest.mark.parametrize("environment", [
    {"LC_ALL": "C"}, {"LC_ALL": "POSIX"}, {"LC_ALL": "nosuch.ISO-8859-1"},
    {"PYTHONIOENCODING": "ascii"}, {"PYTHONUTF8": "0", "LC_ALL": "C",
                                    "PYTHONCOERCECLOCALE": "0"},
    {"COLUMNS": "0"}, {"COLUMNS": "1"}, {"COLUMNS": "-5"}, {"COLUMNS": "x"},
    {"COLUMNS": "9" * 30}, {"PATH": ""},
    {"HOME": None}, {"HOME": "/nonexistent"}, {"HOME": "/proc"}, {"HOME": ""},
    {"HOME": "x"}, {"XDG_CACHE_HOME": "/proc", "XDG_CONFIG_HOME": "/proc"}],
    ids=str)
def test_environment(environment, folder, report_dir):
    """Help, an error and a report, in surroundings that are odd."""
    environment = dict({"MPLCONFIGDIR": None}, **environment)
    script = '"$@"'
    ended = sh(script, folder, ["run", "--help"], **environment).verify(0)
    assert ended.err == "" and "--traffic" in ended.out
    if "COLUMNS" in environment:
        return
    sh(script, folder, ["run", "nosuch"], **environment).verify(2)
    named = folder / os.fsdecode(b"l\xfct")
    shutil.copytree(report_dir, named)
    ended = sh(script, folder, ["report", named], **environment).verify(0)
    # Not a word about it either.
    assert ended.err == ""
    assert f"report: {named}/index.html\n" in ended.out
    assert (named / "index.html").is_file()
    # What was made for the time being has gone.
    assert {path.name for path in folder.iterdir()} <= {named.name, "x"}


@pytest.mark.parametrize("environment, says", [
    ({"HOME": None}, "there is no home directory for the cache: set "
     "TOLLWAY_CACHE"),
    ({"HOME": "/proc"}, "/proc/.cache/tollway: "),
    ({"TOLLWAY_CACHE": "/proc/x"}, "/proc/x: "),
    ({"TOLLWAY_CACHE": "FOLDER/file"}, "FOLDER/file: "),
    ({"TOLLWAY_CACHE": "FOLDER/closed"}, "Permission denied; set TOLLWAY_CACHE")])
def test_cache(environment, says, folder):
    """A user without an entry in the password file, too."""
    (folder / "file").touch()
    (folder / "closed").mkdir(mode=0o555)
    (folder / "source/arch/um").mkdir(parents=True)
    for name in ("Makefile", "arch/um/Makefile"):
        (folder / "source" / name).touch()
    environment = {name: value and value.replace("FOLDER", str(folder))
                   for name, value in environment.items()}

    def body():
        for name in ("HOME", "XDG_CACHE_HOME", "TOLLWAY_CACHE"):
            os.environ.pop(name, None)
        os.environ.update((name, value) for name, value in environment.items() if value)
        return cli.main(["lab", "info"])

    if os.geteuid() != 0 and environment.get("HOME", 0) is None:
        pytest.skip("not root: the password file has a home for this user")
    if os.geteuid() == 0 and any(not one.stat().st_mode & 1 for one in HERE.parents):
        pytest.skip("the sources lie in a directory that only root may enter")
    ended = forked(body, folder, {"KERNEL_SRC": str(folder / "source")},
                   user=12345).verify(2)
    assert says.replace("FOLDER", str(folder)) in ended.err


def test_a_full_disk(folder, report_dir):
    if os.geteuid() != 0:
        pytest.skip("not root: no small file system can be mounted")
    script = (f"mkdir small; mount -t tmpfs -o size=4m tmpfs small; "
              f"mkdir small/seed-1; cp {report_dir}/seed-1/* small/seed-1 || "
              f"exit 77; cat /dev/zero > small/rest 2> /dev/null; "
              '"$@"; status=$?; ls small; exit $status')
    done = subprocess.run(
        ["unshare", "-m", "bash", "-c", script, "sh", str(TOLLWAY), "report",
         "small"], cwd=folder, text=True, capture_output=True, timeout=60,
        check=False, stdin=subprocess.DEVNULL)
    Ended(done.returncode, done.stdout, done.stderr).verify(2)
    assert "No space left on device" in done.stderr
    assert "index.html" not in done.stdout


def test_json_is_written_to_what_is_there(folder):
    """A pipe or a device is written to, not replaced by a file."""
    os.mkfifo(folder / "pipe")
    reader = subprocess.Popen(["cat", str(folder / "pipe")], text=True,
                              stdout=subprocess.PIPE)
    files.write_named(folder / "pipe", "[1]\n")
    assert reader.communicate(timeout=10)[0] == "[1]\n"
    assert (folder / "pipe").is_fifo()
    (folder / "real").write_text("old")
    (folder / "link").symlink_to("real")
    files.write_named(folder / "link", "[2]\n")
    assert (folder / "link").is_symlink()
    assert (folder / "real").read_text() == "[2]\n"
    # As the command sees it before the run.
    command([*RUN, "--json", "/dev/null"], folder).verify(2)
    assert Path("/dev/null").is_char_device()


# --- faults ------------------------------------------------------------------

def fails_with(error):
    """A body that raises an error from some depth."""
    def deeper():
        raise error

    def body():
        deeper()
    return body


FAULTS = {
    "KeyError: 'x'": KeyError("x"), "StopIteration": StopIteration(),
    "RecursionError": RecursionError(), "MemoryError": MemoryError(),
    "AssertionError: a b": AssertionError("a\nb"),
    "UnicodeEncodeError": UnicodeEncodeError("utf-8", "\udcfc", 0, 1, "no"),
    "GeneratorExit": GeneratorExit(),
    "OverflowError": OverflowError("too large")}


@pytest.mark.parametrize("says", FAULTS)
def test_an_unexpected_error_is_one_sentence(says, folder):
    ended = forked(fails_with(FAULTS[says]), folder)
    assert ended.status == 2 and "Traceback" not in ended.err
    found = re.fullmatch(rf"tollway: unexpected error: {says}.*"
                         r" the file (\S+)\n", ended.err)
    assert found, ended.err
    kept = Path(found[1]).read_text()
    assert kept.startswith("Traceback") and "in deeper" in kept


def test_an_unexpected_error_shows_where_if_asked(folder):
    def body():
        sys.argv = ["tollway", "run", "-v"]
        return fails_with(KeyError("x"))()

    ended = forked(body, folder)
    assert ended.status == 2 and "in deeper" in ended.err
    assert ended.err.endswith("tollway: unexpected error: KeyError: 'x'\n")
    assert not list(folder.iterdir())


def test_an_unexpected_error_without_room_for_a_file(folder):
    def body():
        # No file may be longer than that.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
        return fails_with(KeyError("x"))()

    ended = forked(body, folder)
    assert ended.status == 2
    assert ended.err == ("tollway: unexpected error: KeyError: 'x' "
                         "(tollway run -v shows where)\n")


@pytest.mark.parametrize("error, status, says", [
    (TollwayError("one\ntwo\n"), 2, "one; two"),
    (SystemExit("words"), 2, "words"), (SystemExit(3), 3, None),
    (SystemExit(None), 0, None), (BrokenPipeError(32, "gone"), 2, None),
    (OSError("only words"), 2, "only words"),
    (OSError(5, "Input/output error"), 2, "Input/output error"),
    (OSError(5, "Input/output error", b"/l\xfct"), 2,
     "/l\udcfct: Input/output error"),
    (FileNotFoundError(2, "No such file or directory", "data"), 2,
     "data: No such file or directory"),
    (KeyboardInterrupt(), 130, "interrupted")], ids=repr)
def test_other_ends(error, status, says, folder):
    ended = forked(fails_with(error), folder)
    assert ended.status == status
    assert ended.err == (f"tollway: {says}\n" if says else "")


def test_a_program_that_is_not_there_is_named(folder):
    ended = forked(lambda: subprocess.call(["nosuch-program"]), folder)
    assert ended.verify(2).err == (
        "tollway: the program nosuch-program is not installed, or in no "
        "directory of PATH: tollway doctor says how to get it\n")


def test_a_python_module_that_is_not_there(folder):
    (folder / "numpy.py").write_text("import nosuch_module\n")
    ended = sh('PYTHONPATH=. "$@"', folder, ["list"]).verify(2)
    assert "there is no Python module nosuch_module for" in ended.err


# --- interrupts --------------------------------------------------------------

def interrupted_at(number, kind, words):
    """A body that gets a signal at its call number `number` of any function."""
    def body():
        calls = 0

        def count(_frame, event, _argument):
            nonlocal calls
            if event == "call":
                calls += 1
                if calls == number:
                    sys.setprofile(None)
                    signal.raise_signal(kind)

        sys.argv = ["tollway", *words]
        sys.setprofile(count)
        try:
            return cli.main(words)
        finally:
            sys.setprofile(None)
    return body


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM,
                                  signal.SIGHUP])
@pytest.mark.parametrize("words", [["list"], ["run", "nosuch"],
                                   ["report", "RESULTS"]], ids=str)
def test_interrupted_at_any_time(words, kind, folder, report_dir):
    shutil.copytree(report_dir, folder / "results")
    words = [word.replace("RESULTS", "results") for word in words]
    number, ends_seen = 1, []
    while not ends_seen or ends_seen[-1] == 130:
        ended = forked(interrupted_at(number, kind, words), folder).verify()
        ends_seen.append(ended.status)
        if ended.status == 130:
            assert ended.err == "tollway: interrupted\n"
        number = number * 2 if kind == signal.SIGINT else number * 8
    # More than one moment was tried, and the last one came after the end.
    assert len(ends_seen) > 2 and ends_seen[-1] in (0, 2)


def test_an_interrupt_that_python_drops_comes_again(folder):
    def body():
        class Dropped:
            def __del__(self):
                signal.raise_signal(signal.SIGINT)

        value = Dropped()
        del value
        for _ in range(100):
            subprocess.run(["sleep", "0.1"], check=False)
        return 0

    ended = forked(body, folder)
    assert (ended.status, ended.err) == (130, "tollway: interrupted\n")


def test_nohup_is_heeded(folder):
    def body():
        signal.raise_signal(signal.SIGHUP)
        return 0

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert forked(body, folder).verify(0).err == ""
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("delay_s", [0.02, 0.1, 0.2, 0.4])
def test_the_command_itself_is_interrupted(delay_s, folder, report_dir):
    """From the first line of the script on; before it is Python's own time."""
    whole = ("import sys; sys.argv[:1] = []; path = sys.argv[0]; "
             "code = compile(open(path).read(), path, 'exec'); "
             "space = {'__name__': '__main__', '__file__': path}; "
             "print(flush=True); exec(code, space)")
    done = subprocess.Popen(
        [sys.executable, "-c", whole, str(TOLLWAY), "report", str(report_dir)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
        env=dict(os.environ, MPLCONFIGDIR=str(folder)))
    done.stdout.readline()
    try:
        done.wait(delay_s)
    except subprocess.TimeoutExpired:
        pass
    done.send_signal(signal.SIGINT)
    out, err = done.communicate(timeout=60)
    assert done.returncode in (0, 130), err
    assert "Traceback" not in err and "Traceback" not in out


# --- the doctor --------------------------------------------------------------

def test_doctor_ends_by_what_it_finds(folder, monkeypatch):
    found = finding.Finding("machine", "missing", "a thing", "package p")
    monkeypatch.setattr("tollwaylib.doctor.local.machine", lambda: [found])
    ended = command(["doctor"], folder).verify(1)
    assert "missing a thing: package p" in ended.out


# --- other commands ----------------------------------------------------------

@pytest.mark.parametrize("name", ["bench", "check-kernels"])
def test_other_commands_end_the_same_way(name, folder):
    """1 says that a bound is missed, or that there is a finding, here too."""
    program = TOP / "scripts" / name
    wrong = sh('"$@"', folder, ["--nosuch"], program)
    assert (wrong.status, wrong.out) == (2, "")
    assert re.fullmatch(rf"{name}: unrecognized arguments: --nosuch .*\n",
                        wrong.err)
    (folder / "sitecustomize.py").write_text(
        "import fcntl, os\n"
        "def fails(*_): raise ZeroDivisionError('on purpose')\n"
        "fcntl.flock = os.sched_getaffinity = fails\n")
    word = {"check-kernels": "--no-checkpatch", "bench": "--only=costs"}[name]
    broken = sh('"$@"', folder, [word], program, PYTHONPATH=folder,
                TOLLWAY_CACHE=folder / "cache")
    assert broken.status == 2, broken.err
    assert broken.err.splitlines()[-1].startswith(
        f"{name}: unexpected error: ZeroDivisionError: on purpose; ")


@pytest.mark.parametrize("raised", ["        raise ImportError('numpy') from error\n",
                                    "        pass\n    raise ImportError('numpy')\n"])
def test_an_interrupt_that_a_library_made_an_error_of(raised):
    """numpy raises ImportError if it comes while it is imported, with or without it."""
    script = ("import signal, sys; sys.path.insert(0, sys.argv[1])\n"
              "from tollwaylib import ends\n"
              "def body():\n"
              "    try:\n"
              "        signal.raise_signal(signal.SIGINT)\n"
              "    except KeyboardInterrupt as error:\n" + raised +
              "sys.exit(ends.guarded('tollway', body))\n")
    done = subprocess.run([sys.executable, "-c", script, str(TOLLWAY.parent)], text=True,
                          capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (130, "tollway: interrupted\n")
