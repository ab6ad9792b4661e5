# SPDX-License-Identifier: GPL-2.0
"""full.py, the queue of make check-full, with tests that take no time."""

import json
import os
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import conftest  # noqa: E402
import full  # noqa: E402
from tollwaylib.errors import TollwayError  # noqa: E402

# In two words, or this would be taken for a file of the lab.
LAB = "import os, pytest\npytestmark = pytest.mark" + ".lab\n"
FILES = {
    "test_good.py": "def test_a(): pass\ndef test_b(): pass\n",
    "test_bad.py": LAB + "def test_a(): pass\n"
    "def test_b(): assert os.environ.get('TOLLWAY_LAB_FLAVOUR') != 'debug'\n"
    "@pytest.mark.skip(reason='not here')\ndef test_c(): pass\n",
    "test_dies.py": "import os\ndef test_a(): os.kill(os.getpid(), 9)\n",
    "test_broken.py": "import nosuch\n",
}


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run full.py for some of FILES; gives (status, the lines of its summary).

    The state of the tree is what run.state says."""
    monkeypatch.setattr(full, "RECORDS", tmp_path / "records")
    monkeypatch.setattr(full, "build", lambda kernels: (True, []))
    monkeypatch.setattr(full, "state", lambda: run_it.state)
    monkeypatch.setattr(full, "tree", lambda commit: {"file": commit})
    folder = tmp_path / "tests"
    folder.mkdir()

    def run_it(names, *words):
        for path in folder.iterdir():
            if path.is_file():
                path.unlink()
        for name in names:
            (folder / name).write_text(FILES[name])
        monkeypatch.setattr(sys, "argv", ["full.py", *words, str(folder)])
        status = full.main()
        said = capsys.readouterr().out.replace(f"{folder}/", "")
        run_it.started = [line.split(": ")[1] for line in said.splitlines()
                          if line.startswith(("ok: ", "FAILED: "))]
        return status, said.partition("== summary\n")[2].splitlines()

    run_it.state, run_it.started = "c0ffee", []
    return run_it


def test_every_file_on_every_kernel(run):
    status, said = run(FILES, "--jobs", "2")
    assert status
    said = [line for line in said if "see " not in line]
    assert [line.rpartition(", ")[0] or line for line in said] == [
        "FAILED: debug test_bad.py: 1 passed, 1 failed, 1 skipped",
        said[1], said[2],
        "ok: plain test_bad.py: 2 passed, 1 skipped",
        said[4],
        "FAILED: plain test_broken.py: 1 failed", said[6],
        "FAILED: plain test_dies.py: 1 failed",
        "    FAILED plain test_dies.py: ended by SIGKILL",
        "ok: plain test_good.py: 2 passed",
        "plain kernel: 4 passed, 2 failed, 1 skipped in 4 files",
        "debug kernel: 1 passed, 1 failed, 1 skipped in 1 files",
        said[-1]]
    assert "SKIPPED [1]" in said[1] and "not here" in said[1]
    assert "FAILED " in said[2] and "test_bad.py::test_b" in said[2]
    assert "ERROR " in said[6] and "test_broken.py" in said[6]
    status, said = run(["test_good.py"])
    assert not status and len(said) == 3


def test_the_longest_comes_first(run):
    run(["test_good.py", "test_bad.py"])
    for path, seconds in (("plain-*good.py", 5), ("plain-*bad.py", 7),
                          ("debug-*bad.py", 6)):
        (record,) = full.RECORDS.glob(f"{path}.json")
        whole = json.loads(record.read_text())
        record.write_text(json.dumps({**whole, "seconds": seconds}))
    # What was never run comes before those that were.
    run(["test_good.py", "test_bad.py", "test_broken.py"])
    assert run.started[:4] == ["plain test_broken.py", "plain test_bad.py",
                               "debug test_bad.py", "plain test_good.py"]


def test_resume_runs_what_is_missing(run, monkeypatch):
    everything = run(["test_good.py", "test_bad.py"])
    (record,) = full.RECORDS.glob("plain-*good.py.json")
    record.unlink()

    def ran():
        """The files that the last call ran, before it summed up."""
        return run.started[:-3]

    again = run(["test_good.py", "test_bad.py"], "--resume")
    assert ran() == ["plain test_good.py"]
    assert again[0] == everything[0] and len(again[1]) == len(everything[1])
    run(["test_good.py", "test_bad.py"], "--resume")
    assert not ran()
    assert not any("several commits" in line for line in again[1])
    # Other inputs, another seed or other words have outcomes of their own.
    run.state = "beef"
    run(["test_good.py", "test_bad.py"], "--resume")
    assert len(ran()) == 3
    monkeypatch.setenv("TOLLWAY_SEED", "7")
    run(["test_good.py", "test_bad.py"], "--resume")
    assert len(ran()) == 3
    run(["test_good.py", "test_bad.py"], "--resume", "-k", "test_a")
    assert len(ran()) == 3
    run.state = None
    with pytest.raises(TollwayError, match="a tree without changes"):
        run(["test_good.py"], "--resume")


def test_files_of_the_debug_kernel():
    found = {Path(job.test).name for job in full.jobs_of([])
             if job.kernel == "debug"}
    assert "test_share.py" in found and not found & set(full.ON_PLAIN)
    for name in full.ON_PLAIN:
        assert (full.HERE / "lab" / name).exists()


LAB_FILE = full.Job("plain", str(full.HERE / "lab/test_share.py"))
OTHER_FILE = full.Job("plain", str(full.HERE / "test_report_tables.py"))


of_repository = pytest.mark.skipif(
    not (full.TOP / ".git").exists(), reason="sources without their history")


@of_repository
@pytest.mark.parametrize("path, of_lab", [
    ("sch_sbrm/sbrm_accounts.c", True),
    ("scripts/tollwaylib/places/machine.py", True),
    ("scripts/tollwaylib/guest/__main__.py", True),
    ("scripts/tollwaylib/guest/job.py", False),
    ("scripts/lab/init", True), ("selftests/conftest.py", True),
    ("selftests/lab/test_share.py", True), ("selftests/lab/rtnl.py", True),
    ("selftests/lab/guest_share.py", True),
    # guest_share.py imports it by way of tcp_bench.py.
    ("selftests/lab/guest_base.py", True),
    ("selftests/lab/guest_fuzz.py", False), ("selftests/lab/states_bench.py", False),
    ("selftests/lab/test_fuzz.py", False), ("selftests/test_report_tables.py", False),
    ("selftests/full.py", False), ("selftests/clean-system", False),
    ("scripts/lab/config.debug", False),
    ("scripts/tollwaylib/report/page.py", False),
    ("scripts/tollwaylib/papers/cp05.py", False),
    ("CHANGELOG.md", False), ("tools/man/tollway.1", False)])
def test_inputs_of_a_file(path, of_lab, monkeypatch):
    """What changes the outcome of a file of tests, and what does not."""
    was = full.tree("HEAD")
    assert path in was

    def inputs(job, content):
        monkeypatch.setattr(full, "tree", lambda _: {**was, path: content})
        return full.inputs_of(job, "HEAD")

    assert (inputs(LAB_FILE, "a") != inputs(LAB_FILE, "b")) is of_lab
    assert inputs(OTHER_FILE, "a") != inputs(OTHER_FILE, "b")


@of_repository
@pytest.mark.parametrize("name", full.OF_SYSTEMS)
def test_what_is_said_of_results_is_no_input_of_systems(name, monkeypatch):
    was, job = full.tree("HEAD"), full.Job("plain", str(full.HERE / name))
    assert f"selftests/{name}" in was
    before = full.inputs_of(job, "HEAD")
    for path, counts in ((full.RECORDED[0], False), ("README.md", True)):
        monkeypatch.setattr(full, "tree", lambda _, path=path: {**was, path: "other"})
        assert (full.inputs_of(job, "HEAD") != before) is counts


@of_repository
def test_only_some_lines_of_a_file_count(monkeypatch):
    """For tests of the lab without experiments."""
    (path,) = full.LINES
    was = full.tree("HEAD")
    assert full.counting_lines(path, was[path]).startswith("MEMORY_MB, ")
    monkeypatch.setattr(full, "counting_lines", lambda _, content: content[0])

    def inputs(job, content):
        monkeypatch.setattr(full, "tree", lambda _: {**was, path: content})
        return full.inputs_of(job, "HEAD")

    assert inputs(LAB_FILE, "a1") == inputs(LAB_FILE, "a2") != inputs(LAB_FILE, "b")
    assert inputs(OTHER_FILE, "a1") != inputs(OTHER_FILE, "a2")


@of_repository
def test_the_debug_kernel_depends_on_its_configuration(monkeypatch):
    job = full.Job("debug", LAB_FILE.test)
    before, was = full.inputs_of(job, "HEAD"), full.tree("HEAD")
    monkeypatch.setattr(full, "tree", lambda _: {
        **was, "scripts/lab/config.debug": "other"})
    assert full.inputs_of(job, "HEAD") != before


@of_repository
def test_what_uses_experiments_depends_on_them(monkeypatch):
    """Of the others only those that say so."""
    was = full.tree("HEAD")
    jobs = [job for job in full.jobs_of([str(full.HERE / "lab")])
            if job.kernel == "plain"]
    before = {job: full.inputs_of(job, "HEAD") for job in jobs}
    monkeypatch.setattr(full, "tree", lambda _: {
        **was, "scripts/tollwaylib/results/analysis.py": "other"})
    changed = {Path(job.test).name for job in jobs
               if full.inputs_of(job, "HEAD") != before[job]}
    assert changed == {"test_accepted.py", "test_calibration.py", "test_cost.py",
                       "test_doctor.py", "test_host.py", "test_readme.py"}


@of_repository
def test_what_reads_the_readme_depends_on_it():
    job = full.Job("plain", str(full.HERE / "lab/test_readme.py"))
    was = full.tree("HEAD")
    before = full.inputs_of(job, "HEAD")
    full.tree.cache_clear()
    assert full.inputs_of(job, "HEAD") == before
    assert "guest_readme.py" in full.scripts_of(full.HERE / "lab/test_readme.py")
    assert "README.md" in was


def test_the_summary_names_the_commits():
    def outcome(commit):
        return {"good": True, "seconds": 1.0, "lines": [], "commit": commit,
                **dict.fromkeys(full.COUNTS, 1)}

    jobs = [full.Job("plain", name) for name in ("/a", "/b", "/c")]
    said = full.summary(dict(zip(jobs, map(outcome, "aab"))), [], 1.0)
    assert "run with the same inputs at several commits: 2 files at a, " \
        "1 files at b" in said
    said = full.summary(dict(zip(jobs, map(outcome, "aaa"))), [], 1.0)
    assert not any("commits" in line for line in said)


def test_outcomes_of_a_tree_that_changes_are_not_kept(run, monkeypatch):
    states = iter(["c0ffee", None, "c0ffee", "c0ffee"])
    monkeypatch.setattr(full, "state", lambda: next(states))
    run(["test_good.py"])
    run(["test_good.py"], "--resume")
    assert run.started == ["plain test_good.py"] * 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupt_ends_what_runs(number, tmp_path):
    """Nothing of an interrupted file is kept, and the others' outcomes are."""
    (tmp_path / "test_a.py").write_text("def test_a(): pass\n")
    (tmp_path / "test_b.py").write_text(
        "import os, time\ndef test_b():\n"
        f"    open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        "    time.sleep(300)\n")
    script = ("import sys; from pathlib import Path; import full\n"
              f"full.RECORDS = Path({str(tmp_path / 'records')!r})\n"
              "full.build = lambda kernels: (True, [])\n"
              "sys.exit(full.ends.guarded('full.py', full.main))\n")
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], text=True, cwd=HERE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    pid = tmp_path / "pid"
    while not (pid.exists() and pid.read_text()):
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(number)
    out, errors = process.communicate(timeout=120)
    deadline = time.monotonic() + 30
    while Path(f"/proc/{pid.read_text()}/cmdline").exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    kept = [path.name for path in (tmp_path / "records").glob("*.json")]
    assert len(kept) == 1 and "test_a.py" in kept[0]
    if number == signal.SIGINT:
        assert process.returncode == 130 and "interrupted" in errors
        assert "1 passed, 0 failed" in out


def test_the_whole_has_all_files():
    jobs = full.jobs_of([])
    names = {job.name for job in jobs}
    assert {"plain selftests/test_full.py", "plain selftests/lab/test_pp.py",
            "debug selftests/lab/test_pp.py"} <= names
    assert "debug selftests/test_full.py" not in names
    assert not any("guest_" in name for name in names)
    files = {os.path.basename(job.test) for job in jobs}
    assert files == {path.name for path in HERE.rglob("test_*.py")}
    (job,) = full.jobs_of([f"{HERE}/test_ends.py::test_x", "-k", "y"])
    assert job.words == ("-k", "y") and job.test.endswith("ends.py::test_x")


@pytest.mark.parametrize("word", ["test_nosuch.py", "test_nosuch.py::test_x"])
def test_a_file_that_is_not_there_loses_nothing(word, run):
    """It is no option of pytest, for which all the others would fail."""
    run(["test_good.py"])
    kept = sorted((one.name, one.read_text()) for one in full.RECORDS.iterdir())
    with pytest.raises(TollwayError, match="no such file of tests"):
        run(["test_good.py"], word)
    assert kept == sorted((one.name, one.read_text())
                          for one in full.RECORDS.iterdir())


@pytest.mark.parametrize("words, there", [((), False), (("RESUME=1",), True)])
def test_make_hands_resume_on(words, there, monkeypatch):
    # make has it in the environment of what it runs.
    monkeypatch.delenv("RESUME", raising=False)
    done = subprocess.run(["make", "-n", "check-full", "JOBS=3", *words],
                          cwd=HERE.parent, text=True, capture_output=True,
                          check=True)
    assert "selftests/full.py --jobs 3" in done.stdout
    assert ("--resume" in done.stdout) == there


def test_a_check_that_is_skipped_is_not_run():
    """A boot runs all checks at once, those of the tests that pytest runs."""
    def item(name, *marks):
        return types.SimpleNamespace(
            module="m", fixturenames=["guest"],
            callspec=types.SimpleNamespace(params={"check": name}),
            iter_markers=lambda kind: [mark for mark in marks
                                       if mark.name == kind])

    items = [item("a"), item("b", pytest.mark.skipif(True, reason="x").mark),
             item("c", pytest.mark.skipif(False, reason="x").mark),
             item("d", pytest.mark.full.mark)]
    request = types.SimpleNamespace(
        session=types.SimpleNamespace(items=items), module="m",
        fixturename="guest")
    assert conftest.selected(request) == ["a", "c", "d"]
