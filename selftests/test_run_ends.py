# SPDX-License-Identifier: GPL-2.0
"""Runs and the lab at a bad end: signals, panics, limits, a lab that does not boot,
a full disk."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from run_bench import SHORT, TOP, gone, kernels, last_line, tollway

pytest_plugins = ["run_bench"]

TOLLWAY = TOP / "scripts/tollway"


def test_command_that_is_not_there(no_traces):
    done = tollway("lab", "exec", "nosuch")
    assert done.returncode == 2
    assert done.stdout == ("tollway: the command nosuch cannot be run in the "
                           "lab: No such file or directory\n")


def test_command_that_a_signal_ends(no_traces):
    assert tollway("lab", "exec", "sh", "-c",
                   "kill -9 $$").returncode == 128 + 9


def test_a_name_that_is_not_utf_8(tmp_path, no_traces):
    out = tmp_path / os.fsdecode(b"l\xfct")
    done = tollway(*SHORT, "--out", out, errors="surrogateescape")
    assert done.returncode in (0, 1), done.stderr
    assert f"report: {out}/index.html" in done.stdout
    page = (out / "index.html").read_text()
    assert "--out" in page and r"l\xfct" in page


def test_panic_keeps_the_log(tmp_path, no_traces):
    done = tollway(
        "lab", "exec", "--out", tmp_path, "--", "sh", "-c",
        "sysctl -qw vm.panic_on_oom=1 vm.overcommit_memory=1; "
        "/usr/bin/python3 -c \"x = b'1' * (2 << 30)\"")
    assert done.returncode == 2
    assert "Kernel panic" in last_line(done)
    log = tmp_path / "kernel.log"
    assert str(log) in last_line(done)
    assert "panic_on_oom" in log.read_text()


@pytest.mark.parametrize("words, status", [
    ("echo BUG: of a program; echo No space left on device", 0),
    ("echo sleep forever; exit 3", 3),
    ("echo '<3>BUG: of the kernel' > /dev/kmsg", 2)])
def test_who_says_bug(words, status, tmp_path, no_traces):
    done = tollway("lab", "exec", "--out", tmp_path, "--", "sh", "-c", words)
    assert done.returncode == status, done.stderr
    assert (tmp_path / "kernel.log").exists() == (status == 2)
    if status == 2:
        assert "failed (BUG: of the kernel)" in last_line(done)


def test_a_folder_of_the_user_stays(tmp_path, no_traces):
    """What the lab would use for itself is not deleted, if it is not its own."""
    (tmp_path / ".lab").mkdir()
    (tmp_path / ".lab/mine").write_text("x")
    done = tollway("lab", "exec", "--out", tmp_path, "--", "true")
    assert done.returncode == 2 and "was not made by tollway" in done.stderr
    assert (tmp_path / ".lab/mine").read_text() == "x"


def test_who_says_bug_in_qemu():
    from tollwaylib.places.qemu import Qemu

    assert Qemu.is_of_kernel("[   12.345678] BUG: x\r")
    assert Qemu.is_of_kernel("half [    0.345678][    T1] BUG: x\r")
    assert not Qemu.is_of_kernel("BUG: x\r")


def test_files_of_the_user_stay(tmp_path, no_traces):
    for name in ("status", "run.json"):
        (tmp_path / name).write_text("mine")
    done = tollway("lab", "exec", "--out", tmp_path, "sh", "-c",
                   "cat status > copy; exit 4")
    assert done.returncode == 4
    assert {path.name for path in tmp_path.iterdir()} == {
        "status", "run.json", "copy", "console.log"}
    for name in ("status", "run.json", "copy"):
        assert (tmp_path / name).read_text() == "mine"


def test_mount_is_told_to_use_the_old_interface(tmp_path, no_traces):
    """With the new one mount of util-linux 2.39 and later cannot mount hostfs."""
    done = tollway("lab", "exec", "printenv", "LIBMOUNT_FORCE_MOUNT2",
                   cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "always\n")


def test_doctor_sees_a_lab_that_does_not_boot(monkeypatch, no_traces):
    from tollwaylib.doctor import local
    from tollwaylib.places import machine

    assert (local.boots().about, local.boots().verdict) == ("lab", "ok")
    monkeypatch.setattr(machine, "MOUNT_2",
                        "A=1; echo mount: fsconfig failed >&2; exit 32")
    found = local.boots()
    log = Path(re.search(r"see (\S+)", found.text)[1])
    try:
        assert found.verdict == "wrong" and "Kernel panic" in found.text
        assert "mount: fsconfig failed" in found.text
        assert "mount: fsconfig failed" in log.read_text()
    finally:
        shutil.rmtree(log.parent)


def test_doctor_and_info_see_a_lab_that_cannot_be_used(monkeypatch, capsys,
                                                       no_traces):
    from tollwaylib import cli
    from tollwaylib.commands.lab import command_lab
    from tollwaylib.doctor import local
    from tollwaylib.errors import TollwayError
    from tollwaylib.places import machine

    monkeypatch.setattr(machine, "TRIAL", "tc qdisc add dev lo root nosuch")
    found = local.boots()
    assert found.verdict == "wrong" and "nosuch" in found.text
    shutil.rmtree(Path(re.search(r"see (\S+)", found.text)[1]).parent)
    with pytest.raises(TollwayError, match="command fails there: .*nosuch"):
        command_lab(cli.parser().parse_args(["lab", "info"]))
    said = capsys.readouterr().out
    assert "boots" not in said and "image" in said


def test_doctor_says_that_the_lab_is_not_built(tmp_path, monkeypatch):
    from tollwaylib.doctor import local

    monkeypatch.setenv("TOLLWAY_CACHE", str(tmp_path))
    assert local.boots().verdict == "note"


def test_watchdog_of_real_time(tmp_path, no_traces):
    done = tollway("lab", "exec", "--wall", "3", "--out", tmp_path, "--", "sh",
                   "-c", "while :; do :; done")
    assert done.returncode == 2
    assert "within 3 s of real time" in last_line(done)


def test_limit_of_virtual_time(tmp_path, no_traces):
    done = tollway("lab", "exec", "--virtual", "1000", "--out", tmp_path, "--",
                   "sleep", "1001", timeout=60)
    assert done.returncode == 2
    assert "not finished after 1000" in done.stdout
    assert tollway("lab", "exec", "--virtual", "1000", "--", "sleep",
                   "999").returncode == 0


def test_status_and_one_writable_directory(tmp_path, no_traces):
    done = tollway("lab", "exec", "--out", tmp_path, "--", "sh", "-c",
                   "echo inside > mark; touch /etc/mark /run/tollway/src/mark; "
                   "exit 7")
    assert done.returncode == 7
    assert (tmp_path / "mark").read_text() == "inside\n"
    assert done.stdout.count("Read-only file system") == 2


def test_module_that_does_not_load(tmp_path, no_traces):
    from tollwaylib.places.machine import Lab

    lines = []
    status = Lab().run(["true"], tmp_path, modules=("tcp_sbrm/sbrm.o",),
                       on_line=lines.append)
    assert status == 2
    assert any("the module sbrm.o does not load" in line for line in lines)


def start(out_dir, *words):
    """Start a long run and wait until its flows send."""
    process = subprocess.Popen(
        [str(TOLLWAY), "run", "double-bottleneck", *words, "--out",
         str(out_dir)], text=True, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE)
    for line in process.stderr:
        if " of 60" in line:
            return process
    process.wait()
    raise AssertionError("the run ended before it began")


@pytest.mark.parametrize("number, status", [
    (signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)])
def test_interrupted_run_leaves_nothing(number, status, tmp_path):
    process = start(tmp_path / "out")
    assert kernels(tmp_path)
    process.send_signal(number)
    errors = process.stderr.read()
    assert process.wait(timeout=30) == status
    if number != signal.SIGKILL:
        assert errors.strip().splitlines()[-1] == "tollway: interrupted"
    assert gone(tmp_path)
    assert not list(tmp_path.rglob("result.json"))
    assert not list(tmp_path.rglob("raw.json"))


@pytest.mark.parametrize("delay_s", [0.3, 0.6, 0.9, 1.2, 1.5, 2, 3])
def test_interrupted_at_any_moment(delay_s, tmp_path):
    """While modules are imported, while the lab boots, in calibration: there is
    a moment at which the kernel is about to be started."""
    process = subprocess.Popen(
        [str(TOLLWAY), *SHORT, "-j", "2", "--repeat", "2", "--out",
         str(tmp_path / "out")], text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE)
    time.sleep(delay_s)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert errors.endswith("tollway: interrupted\n")
    assert "Traceback" not in out + errors
    assert gone(tmp_path)
    assert not list(tmp_path.rglob("raw.json"))


def test_a_lab_that_was_stopped_starts_nothing(tmp_path):
    from tollwaylib.errors import TollwayError
    from tollwaylib.places.machine import Lab

    lab = Lab()
    lab.stop()
    started = time.monotonic()
    with pytest.raises(TollwayError):
        lab.run(["sh", "-c", "while :; do :; done"], tmp_path, wall_s=60)
    assert time.monotonic() - started < 30 and gone(tmp_path)


def test_two_runs_at_once(tmp_path):
    first = start(tmp_path / "out")
    try:
        second = tollway(*SHORT, "--out", tmp_path / "out")
        assert second.returncode == 2
        assert "another run writes to" in last_line(second)
        assert tollway(*SHORT, "--out", tmp_path / "other").returncode in (0, 1)
    finally:
        first.send_signal(signal.SIGINT)
        first.stderr.read()
        first.wait()


def test_full_disk(tmp_path, no_traces):
    if os.geteuid() != 0:
        pytest.skip("not root: no small file system can be mounted")
    done = tollway(
        *SHORT, "--out", tmp_path / "small", prefix=(
            "unshare", "-m", "sh", "-c",
            f"mkdir {tmp_path}/small && mount -t tmpfs -o size=200k tmpfs "
            f"{tmp_path}/small && \"$@\"; status=$?; "
            f"ls {tmp_path}/small/seed-1 >&2; exit $status", "sh"))
    listing, said = done.stderr.splitlines(), done.stderr
    assert done.returncode == 2, said
    assert "No space left on device" in said
    assert "result.json" not in listing and "raw.json" not in listing


def test_an_interrupt_does_not_wait_for_threads(tmp_path):
    """Python waits for them at its end. What is registered with atexit is done."""
    ended = subprocess.run(
        [sys.executable, "-c", "import atexit, signal, sys, threading, time\n"
         "sys.path.insert(0, sys.argv[1])\n"
         "from tollwaylib import ends\n"
         "def body():\n"
         "    atexit.register(print, 'last')\n"
         "    threading.Thread(target=time.sleep, args=(3600,)).start()\n"
         "    signal.raise_signal(signal.SIGINT)\n"
         "ends.leave(ends.guarded('name', body))", str(TOP / "scripts")],
        cwd=tmp_path, timeout=60, text=True, capture_output=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == \
        (130, "last\n", "name: interrupted\n")
