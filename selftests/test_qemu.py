# SPDX-License-Identifier: GPL-2.0
"""`tollway run smoke --on qemu`: stock kernels of the distribution."""

import json
import lzma
import subprocess
from pathlib import Path

import pytest

from tollwaylib import labkernel, place_qemu, smoke
from tollwaylib.errors import TollwayError

TOLLWAY = Path(__file__).resolve().parents[1] / "scripts/tollway"


def smoke_on(kernel, folder):
    """{check: result} of the smoke set on a kernel."""
    try:
        if kernel != place_qemu.DEBUG:
            place_qemu.stock_kernel(kernel, labkernel.Progress())
    except TollwayError as error:
        pytest.skip(f"not run on {kernel}: {error}")
    done = subprocess.run(
        [str(TOLLWAY), "run", "smoke", "--on", "qemu", "--kernel", kernel,
         "--out", str(folder)], text=True, stdin=subprocess.DEVNULL,
        capture_output=True, check=False)
    path = folder / "smoke.json"
    assert path.exists(), done.stdout[-2000:] + done.stderr
    results = json.loads(path.read_text())
    assert (done.returncode == 0) == all(
        result["ok"] for result in results.values()), done.stderr
    return results


@pytest.fixture(scope="module")
def on_6_1(tmp_path_factory):
    return smoke_on("6.1", tmp_path_factory.mktemp("smoke"))


@pytest.fixture(scope="module")
def on_newest(tmp_path_factory):
    return smoke_on("newest", tmp_path_factory.mktemp("smoke"))


@pytest.fixture(scope="module")
def with_lockdep(tmp_path_factory):
    return smoke_on(place_qemu.DEBUG, tmp_path_factory.mktemp("smoke"))


def verify(results, check):
    assert check in results, "not run"
    for line in results[check]["notes"]:
        print(line)
    assert results[check]["ok"], results[check]["error"]


@pytest.mark.parametrize("check", smoke.CHECKS)
def test_smoke(on_6_1, check):
    verify(on_6_1, check)


@pytest.mark.full
@pytest.mark.parametrize("check", smoke.CHECKS)
def test_smoke_newest(on_newest, check):
    verify(on_newest, check)


@pytest.mark.full
@pytest.mark.parametrize("check", smoke.CHECKS)
def test_smoke_with_lockdep(with_lockdep, check):
    """Under mq on two processors, with a kernel that watches its locks."""
    verify(with_lockdep, check)
    if check == "kernel_log":
        assert "lockdep is on" in with_lockdep[check]["notes"]


def test_a_failed_check_is_seen(monkeypatch, tmp_path, capsys):
    def check_bad(note):
        note("measured")
        raise AssertionError("no")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(smoke, "CHECKS", {"good": lambda note: None,
                                          "bad": check_bad})
    assert smoke.main() == 1
    lines = capsys.readouterr().out.splitlines()
    assert "ok 1 good" in lines and "not ok 2 bad" in lines
    results = json.loads((tmp_path / "smoke.json").read_text())
    assert results["good"]["ok"] and not results["bad"]["ok"]
    assert results["bad"]["notes"] == ["measured"]


def test_modules_of_the_initramfs(tmp_path):
    (tmp_path / "modules.dep").write_text(
        "kernel/a.ko.xz: kernel/b-c.ko.xz kernel/d.ko.xz\n"
        "kernel/b-c.ko.xz: kernel/d.ko.xz\nkernel/d.ko.xz:\nkernel/e.ko:\n")
    names = [path.name for path in place_qemu.in_order(
        tmp_path, ("b_c", "a", "built_in"))]
    assert names == ["d.ko.xz", "b-c.ko.xz", "a.ko.xz"]
    (tmp_path / "x.ko.xz").write_bytes(lzma.compress(b"module"))
    assert place_qemu.module_bytes(tmp_path / "x.ko.xz") == b"module"


def test_cpio():
    data = place_qemu.cpio({"dev": None, "init": b"12345"})
    assert data.startswith(b"070701") and len(data) % 4 == 0
    at = data.index(b"init\0") - 110
    assert at % 4 == 0 and int(data[at + 54:at + 62], 16) == 5
    assert data[at + 116:at + 121] == b"12345"
    assert b"TRAILER!!!" in data
