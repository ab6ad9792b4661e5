# SPDX-License-Identifier: GPL-2.0
"""`tollway run smoke --on qemu`: stock kernels of the distribution."""

import json
import lzma
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Guest, checks_of, run_check

from tollwaylib import progress
from tollwaylib.errors import TollwayError
from tollwaylib.guest import smoke
from tollwaylib.kernels import compatibility
from tollwaylib.kernels.suites import run_in
from tollwaylib.places import qemu

TOP = Path(__file__).resolve().parents[1]
TOLLWAY = TOP / "scripts/tollway"
STOCK_SCRIPT = "guest_stock.py"
STATES_SCRIPT = "guest_stock_states.py"
# What needs exact times, and the repetition as a user, are left to the lab.
STATES = ["late_subflow", *(
    name for name in checks_of("guest_states.py") if name not in
    ("recovery", "loss", "fast_open", "reneging", "mtu_probes", "ipv6", "user"))]
# The kernels of check-kernels other than 6.1. The kernel with lockdep, which the
# harness builds, has a test of its own.
LONG_KERNELS = ("5.10", "6.12", "newest")


def smoke_on(kernel, folder):
    """{check: result} of the smoke set on a kernel."""
    try:
        if kernel != qemu.DEBUG:
            qemu.stock_kernel(kernel, progress.Progress())
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


@pytest.fixture(scope="module", params=LONG_KERNELS)
def on_another(request, tmp_path_factory):
    return smoke_on(request.param, tmp_path_factory.mktemp("smoke"))


@pytest.fixture(scope="module")
def with_lockdep(tmp_path_factory):
    return smoke_on(qemu.DEBUG, tmp_path_factory.mktemp("smoke"))


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
def test_smoke_on_others(on_another, check):
    verify(on_another, check)


@pytest.mark.full
@pytest.mark.parametrize("check", smoke.CHECKS)
def test_smoke_with_lockdep(with_lockdep, check):
    """Under mq on two processors, with a kernel that watches its locks."""
    verify(with_lockdep, check)
    if check == "kernel_log":
        assert "lockdep is on" in with_lockdep[check]["notes"]
    if check == "signed_connections":
        assert "this kernel has no TCP_MD5SIG" not in with_lockdep[check]["notes"]


def installed(kernel, out_dir):
    """Let make install, of modules and tools, fill out_dir/installed.

    kernel: a word such as 6.1 or newest."""
    stock = qemu.stock_kernel(kernel)
    target = out_dir / "installed"
    modules = target / "usr/lib/modules" / stock.version
    modules.mkdir(parents=True)
    kdir = f"/usr/src/linux-headers-{stock.version}"
    with compatibility.headers(kernel, progress.Progress()) as (_, root, _, releases):
        assert stock.version in releases
        done = run_in(root, {TOP: compatibility.SRC, out_dir: compatibility.OUT}, [
            "make", "-C", compatibility.SRC, "install-modules", f"KDIR={kdir}",
            f"CC={compatibility.kernel_gcc(root, kdir)}", f"O={compatibility.OUT}/build",
            f"DESTDIR={compatibility.OUT}/installed",
            f"MODDIR=/usr/lib/modules/{stock.version}/updates"],
            text=True, capture_output=True)
    assert not done.returncode, done.stdout + done.stderr
    subprocess.run(["make", "-C", TOP, "install-tools", f"O={out_dir}/build",
                    f"DESTDIR={target}"], check=True, capture_output=True,
                   env={key: value for key, value in os.environ.items()
                        if key != "MAKEFLAGS"})
    # depmod sees the kernel's own modules beside ours, as it would there.
    original = stock.folder / "lib/modules" / stock.version
    for path in original.glob("modules.*"):
        (modules / path.name).write_bytes(path.read_bytes())
    (modules / "kernel").symlink_to(original / "kernel")
    (target / "lib").symlink_to("usr/lib")
    subprocess.run(["depmod", "-b", str(target), stock.version], check=True)
    (modules / "kernel").unlink()
    # As the first run there would build them.
    subprocess.run(
        [sys.executable, "-c", "from tollwaylib.kernels import build; "
         "build.tools()"],
        check=True, env=dict(
            os.environ, TOLLWAY_CACHE=str(target / "cache"),
            PYTHONPATH=str(target / "usr/local/lib/tollway/scripts")))


@pytest.fixture(scope="module")
def stock_host(request, tmp_path_factory):
    """The checks of `tollway run --on host` on the stock 6.1."""
    names = [item.callspec.params["check"] for item in request.session.items
             if item.module is request.module and
             item.originalname == "test_host_on_a_stock_kernel"]
    out_dir = tmp_path_factory.mktemp("host")
    try:
        machine = qemu.Qemu("6.1", progress.Progress())
    except TollwayError as error:
        pytest.skip(f"not run on 6.1: {error}")
    installed("6.1", out_dir)
    return Guest(machine, STOCK_SCRIPT, names, out_dir, limits={
        "wall_s": 7200, "virtual_s": 7200, "modules": ()})


@pytest.mark.full
@pytest.mark.parametrize("check", checks_of(STOCK_SCRIPT))
def test_host_on_a_stock_kernel(stock_host, check):
    """`tollway run --on host` with modprobe, Mininet and real time."""
    run_check(stock_host, check)


@pytest.fixture(scope="module")
def stock_states(request, tmp_path_factory):
    """The checks of sockets in every state on a kernel."""
    kernel = request.param
    names = [item.callspec.params["check"] for item in request.session.items
             if item.module is request.module and
             item.originalname == "test_states_on_a_stock_kernel" and
             item.callspec.params["stock_states"] == kernel]
    try:
        machine = qemu.Qemu(kernel, progress.Progress())
    except TollwayError as error:
        pytest.skip(f"not run on {kernel}: {error}")
    return Guest(machine, STATES_SCRIPT, names,
                 tmp_path_factory.mktemp("states"),
                 limits={"wall_s": 3600, "virtual_s": 3600})


@pytest.mark.full
@pytest.mark.parametrize("check", STATES)
@pytest.mark.parametrize("stock_states", ("6.1", *LONG_KERNELS), indirect=True)
def test_states_on_a_stock_kernel(stock_states, check):
    """Switches of congestion controls in every state of a socket."""
    run_check(stock_states, check)


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
    names = [path.name for path in qemu.in_order(
        tmp_path, ("b_c", "a", "built_in"))]
    assert names == ["d.ko.xz", "b-c.ko.xz", "a.ko.xz"]
    (tmp_path / "x.ko.xz").write_bytes(lzma.compress(b"module"))
    assert qemu.module_bytes(tmp_path / "x.ko.xz") == b"module"


def test_cpio():
    data = qemu.cpio({"dev": None, "init": b"12345"})
    assert data.startswith(b"070701") and len(data) % 4 == 0
    at = data.index(b"init\0") - 110
    assert at % 4 == 0 and int(data[at + 54:at + 62], 16) == 5
    assert data[at + 116:at + 121] == b"12345"
    assert b"TRAILER!!!" in data
