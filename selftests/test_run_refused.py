# SPDX-License-Identifier: GPL-2.0
"""`tollway run` with bad input: one sentence, and nothing left behind."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from run_bench import SHORT, last_line, tollway

pytest_plugins = ["run_bench"]
HOME = str(Path(__file__).resolve().parent.parent / "examples/home.py")


@pytest.mark.parametrize("words, says", [
    (["run", "nosuch"], "there is no experiment nosuch"),
    (["run", "double-bottleneck", "--duration", "0"], "argument --duration"),
    (["run", "double-bottleneck", "--duration", "nan"], "argument --duration"),
    (["run", "double-bottleneck", "--duration", "4"], "--duration 4"),
    (["run", HOME, "--duration", "1.5", "--set", "warmup_s=1"],
     "--duration 1.5: no flow named download starts before that"),
    (["run", "pp-overload", "--duration", "2", "--set", "warmup_s=1"],
     "its start may be delayed by 2 s: give a longer duration"),
    (["run", "single-bottleneck", "--set", "model=http", "--duration", "5",
      "--set", "warmup_s=1"],
     "by 5 s and a round trip takes 0.02 s: give a longer duration"),
    (["run", "double-bottleneck-dynamics", "--duration", "20.05"],
     "starts at 20 s, the end of the run is at 20.05 s, and its start may be"),
    (["run", "double-bottleneck-dynamics", "--duration", "20.005", "--set",
      "start_jitter_s=0"], "and a round trip takes 0.006 s: give a longer duration"),
    (["run", "double-bottleneck", "--seed", "x"], "argument --seed"),
    (["run", "double-bottleneck", "--repeat", "0"], "argument --repeat"),
    (["run", "double-bottleneck", "--set", "gamma"], "--set gamma"),
    (["run", "double-bottleneck", "--set", "gamma=zero"], "--set gamma=zero"),
    (["run", "double-bottleneck", "--set", "gamma=2"], "--set gamma=2"),
    (["run", "double-bottleneck", "--set", "kappa=nan"], "--set kappa=nan"),
    (["run", "double-bottleneck", "--set", "limit=1.5"], "--set limit=1.5"),
    (["run", "double-bottleneck", "--set", "source=x"], "--set source=x"),
    (["run", "double-bottleneck", "--set", "nope=1"], "no such parameter"),
    (["run", "double-bottleneck", "--set", "target=1000"],
     "must be below limit"),
    (["run", "double-bottleneck", "--aqm", ""], "--aqm needs"),
    (["run", "double-bottleneck", "--aqm", "red '"], "--aqm"),
    (["run", "double-bottleneck", "--frobnicate"], "--frobnicate"),
    (["run", "double-bottleneck", "--on", "moon"], "argument --on"),
    (["run", "smoke", "--json", "-"], "--json: smoke --on lab has no such option"),
    (["run", "smoke", "--on", "qemu", "--repeat", "3"],
     "--repeat: smoke --on qemu has no such option"),
    (["run", "smoke", "--set", "wtp=3"], "--set: smoke --on lab has no such"),
    (["run", "smoke", "--kernel", "6.12"], "--kernel: smoke --on lab does not have this option"),
    (["run", "smoke", "--on", "qemu", "--flavour", "debug"],
     "--flavour: smoke --on qemu does not have this option"),
    (["report", "/nonexistent"], "/nonexistent"),
    (["lab", "exec"], "needs a command"),
    (["lab", "exec", "--"], "needs a command"),
    (["frobnicate"], "frobnicate"),
])
def test_bad_words_end_in_one_sentence(words, says, tmp_path):
    done = tollway(*words, cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == ""
    assert says in last_line(done)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words, says", [
    (["--cc", "nosuch"], "--cc nosuch: this kernel has no such"),
    (["--aqm", "nosuch"], "Specified qdisc kind is unknown"),
    (["--aqm", "sbrm gamma 2"], "gamma"),
    (["--aqm", "codel target never"], "target"),
])
def test_what_the_kernel_does_not_know(words, says, tmp_path, no_traces):
    done = tollway("run", "double-bottleneck", "--duration", "7", *words,
                   "--out", tmp_path / "out")
    assert done.returncode == 2
    assert says in last_line(done)
    # Once, and with nothing left behind.
    assert done.stderr.count(last_line(done).removeprefix("tollway: ")) == 1
    assert not list(tmp_path.iterdir())


def test_what_smoke_has_no_use_for_is_known():
    """Each option of run is honoured by smoke, or refused."""
    from tollwaylib import cli
    from tollwaylib.commands.run import NOT_OF_SMOKE

    given = vars(cli.parser().parse_args(["run", "smoke"]))
    for name, value in NOT_OF_SMOKE.items():
        assert given.pop(name) == value
    assert set(given) == {"command", "experiment", "on", "kernel", "flavour", "out",
                          "verbose"}


def test_words_that_are_refused_leave_what_was_there(tmp_path, no_traces):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/kept").touch()
    done = tollway("run", "double-bottleneck", "--duration", "7", "--cc",
                   "nosuch", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert (tmp_path / "out/kept").exists()
    assert not (tmp_path / "out/seed-1").exists()


def test_host_says_what_is_missing(tmp_path):
    done = tollway("run", "double-bottleneck", "--on", "host", "--cc",
                   "nosuch", "--out", tmp_path / "out")
    assert done.returncode == 2
    if os.geteuid() == 0:
        assert "there is no congestion control nosuch" in last_line(done) or \
            "namespaces cannot be made" in last_line(done)
    else:
        assert "needs root" in last_line(done)


@pytest.mark.parametrize("options, program", [
    ({}, "tc (package iproute2)"), ({}, "mnexec (package mininet)"),
    ({"trace": "hash"}, "tcpdump (package tcpdump)"),
    ({"traffic": "iperf3"}, "iperf3 (package iperf3)")])
def test_missing_programs_are_named_before_the_run(options, program, tmp_path,
                                                   monkeypatch):
    from tollwaylib import SBIN, add_sbin
    from tollwaylib import papers
    from tollwaylib.errors import TollwayError
    from tollwaylib.runs import runner

    # None of the place is called: it has no methods.
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TollwayError) as raised:
        runner.run(SimpleNamespace(has_kernel=True), [runner.Combination(
            papers.get("double-bottleneck"), "sbrm", "sbrm", {}, 3,
            tmp_path / "out", options=options)], [1], tmp_path / "out", None)
    assert program in str(raised.value)
    assert "scripts/install-dependencies" in str(raised.value)
    assert ("tcpdump" in str(raised.value)) == ("trace" in options)
    assert not (tmp_path / "out").exists()
    add_sbin()
    assert os.environ["PATH"].split(":") == [str(tmp_path), *SBIN]


@pytest.mark.parametrize("name", ["missing", "/etc/passwd", "/proc"])
def test_tmpdir_that_cannot_be_used(name, tmp_path):
    # A name that is relative would be below the working directory.
    name = str(tmp_path / name)
    done = tollway("lab", "exec", "true", env=dict(os.environ, TMPDIR=name),
                   cwd=tmp_path)
    assert done.returncode == 2
    assert f"TMPDIR={name}: " in last_line(done)


def test_removed_working_directory(tmp_path, no_traces):
    """The lab does without; a result that would be below it cannot be."""
    script = ('mkdir "$1"; cd "$1"; rmdir "$1"; shift; exec "$@"', "sh",
              tmp_path / "gone")
    done = tollway("lab", "exec", "--out", tmp_path / "out", "pwd",
                   prefix=("sh", "-c", *map(str, script)))
    assert (done.returncode, done.stdout) == (0, "/run/tollway/out\n")
    done = tollway(*SHORT, prefix=("sh", "-c", *map(str, script)))
    assert done.returncode == 2
    assert "the working directory has been removed" in last_line(done)
