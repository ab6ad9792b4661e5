# SPDX-License-Identifier: GPL-2.0
"""selftests/clean-system: its words, its end at a signal, and what is reported of
a part that failed. Its parts are run by test_clean_bookworm.py,
test_clean_trixie.py and test_deb.py."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_house import TOP, sh

# Where the log of a part that failed is kept: pytest removes its directories.
KEPT = TOP / "build/clean-system"
# What pytest puts above each failure, but not between the frames of one.
HEADING = re.compile(r"^_+ (?!_ )(.*) _+$", re.M)


def why(text):
    """What pytest said of each test that failed, and the end of a log."""
    words = []
    parts = HEADING.split(text)[1:]
    for name, body in zip(parts[::2], parts[1::2]):
        # What comes after it is of another part, or what the test printed.
        lines = re.split(r"^(?:=+|-+) .* (?:=+|-+)$", body,
                         flags=re.M)[0].splitlines()
        said = [line for line in lines if line.startswith("E  ")]
        # pytest.fail(pytrace=False) has no such lines, nor has a timeout.
        words += [f"{name}:", *(line[:300] for line in (said or lines)[:25])]
    return "\n".join([*words[:1000], text[-6000:]])


def in_clean_system(tmp_path, what, suite, *words):
    """Run a part of clean-system; each of its lines must be ok."""
    if os.geteuid():
        pytest.skip("only root can make a system")
    if not shutil.which("debootstrap"):
        pytest.skip("there is no debootstrap")
    folder = tmp_path / "system"
    done = sh(TOP / "selftests/clean-system", what, folder, suite, *words)
    print(done.stdout)
    if done.returncode == 4:
        pytest.skip(done.stdout.strip().rpartition("# SKIP ")[2])
    if done.returncode:
        KEPT.mkdir(parents=True, exist_ok=True)
        kept = shutil.copy(folder / "log", KEPT / f"{what}-{suite}.log")
        text = kept.read_text(encoding="utf-8", errors="replace")
        pytest.fail(f"{done.stdout}{done.stderr}{why(text)}\nall of it: {kept}",
                    pytrace=False)
    assert "fail:0" in done.stdout
    plan = done.stdout.splitlines()[1]
    assert f"pass:{plan.partition('..')[2]} " in done.stdout
    # However it ends, it leaves nothing mounted and no system.
    assert str(folder) not in open("/proc/mounts", encoding="utf-8").read()
    assert not (folder / "root").exists()


def test_why(tmp_path):
    """Whatever way a test fails, its name and what it said are there."""
    (tmp_path / "test_it.py").write_text("""
import pytest

@pytest.fixture
def torn():
    yield
    raise OSError("torn down")

def deeper():
    raise ValueError("two frames")

def test_assert():
    assert 1 == 2, "one is not two"

def test_fail():
    print("much more")
    pytest.fail("no traceback\\nof this", pytrace=False)

def test_frames():
    deeper()

def test_torn(torn):
    pass

def test_fine():
    print("fine")
""")
    done = sh(sys.executable, "-m", "pytest", "-c", "/dev/null", "-q", "-p",
              "no:cacheprovider", tmp_path)
    said = why(done.stdout + "x" * 6000)
    for words in ("test_assert:", "one is not two", "test_fail:", "no traceback",
                  "of this", "test_frames:", "two frames",
                  "ERROR at teardown of test_torn:", "torn down"):
        assert words in said, words
    for words in ("much more", "test_fine", "_ _ _"):
        assert words not in said, words


@pytest.mark.parametrize("words", [
    [], ["demo"], ["nosuch", "there"], ["packages", "there", "bookworm"]])
def test_wrong_words(words):
    done = sh(TOP / "selftests/clean-system", *words)
    assert done.returncode == 2 and "usage: " in done.stderr


@pytest.mark.skipif(os.geteuid(), reason="makes namespaces: needs root")
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGKILL,
                                    signal.SIGTERM])
def test_interrupted(tmp_path, number):
    """It ends at once, and none of its processes stays."""
    stub = tmp_path / "debootstrap"
    # A name that no other process has.
    name = f"sleeper-{os.getpid()}-{number}"
    stub.write_text(f"#!/bin/bash\ntouch {tmp_path}/started\n"
                    f"exec -a {name} sleep 600\n")
    stub.chmod(0o755)
    with subprocess.Popen(
            [TOP / "selftests/clean-system", "demo", tmp_path / "there"],
            env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
            # A shell cannot catch what was ignored when it began.
            preexec_fn=lambda: number == signal.SIGKILL or
            signal.signal(number, signal.SIG_DFL),
            stdout=subprocess.PIPE, text=True) as process:
        while not (tmp_path / "started").exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        said = process.communicate(timeout=60)[0]
    if number == signal.SIGKILL:
        assert process.returncode == -number
    else:
        assert process.returncode == 128 + number, said
        assert "# interrupted" in said
    # The kernel ends what is left of a process namespace in its own time.
    until = time.monotonic() + 30
    while processes(name) and time.monotonic() < until:
        time.sleep(0.05)
    assert not processes(name)


def processes(name):
    """Those of this name."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        # It may end meanwhile.
        with contextlib.suppress(OSError):
            if name.encode() in path.read_bytes():
                found.append(path.parent.name)
    return found
