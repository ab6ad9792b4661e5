# SPDX-License-Identifier: GPL-2.0
"""tollway-admit with input that nobody should give it."""

import os
import pathlib
import socket
import subprocess
import sys
import threading

import pytest

HERE = pathlib.Path(__file__).parent
ADMIT = HERE.parent / "tools/tollway-admit"
PATHS = [str(HERE.parent / "scripts"), str(HERE.parent / "tools")]
sys.path[:0] = PATHS

KEY = b"0123456789abcdef"
LONG = "a" * 300
DIGITS = "9" * 400
NO_TEXT = os.fsdecode(b"\xff")
RUN = ["run", "--peer", "127.0.0.1", "--device", "lo", "--class", "1:10",
       "--rate", "8mbit", "--key", "key", "--socket", "socket"]


def said(words, where, seconds=20):
    """(status, standard error) of tollway-admit."""
    done = subprocess.run([str(ADMIT), *words], cwd=where, timeout=seconds,
                          capture_output=True, check=False)
    return done.returncode, done.stderr.decode(errors="replace")


@pytest.fixture(name="place")
def _place(tmp_path, monkeypatch):
    """A directory with a key; reports of unexpected errors come here, too."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (tmp_path / "key").write_bytes(KEY)
    (tmp_path / "key").chmod(0o600)
    return tmp_path


# --- the command line ----------------------------------------------------------

@pytest.mark.parametrize("words, sentence", [
    (["--interval", f"{DIGITS}ms"], "is not a time"),
    (["--rate", f"{DIGITS}mbit"], "is not a rate"),
    (["--peer", LONG], "not the name of a host"),
    (["--peer", "a..b"], "not the name of a host"),
    (["--peer", NO_TEXT], "not the name of a host"),
    (["--peer", ""], "--peer"),
    (["--local", NO_TEXT], "not the name of a host"),
    (["--local", "::1"], "--local ::1"),
    (["--local", "192.0.2.77"], "--local"),
    (["--device", LONG], "there is no device"),
    (["--device", NO_TEXT], "there is no device"),
    (["--class", " 1:1_0"], "not a class"),
    (["--class", "0x1:+10"], "not a class"),
    (["--socket", LONG], "too long"),
    (["--socket", ""], "Invalid argument"),
    (["--trace", "trace", "--device", "none0"], "there is no device"),
])
def test_odd_words_end_with_a_sentence(words, sentence, place):
    status, text = said([*RUN, *words], place)
    assert status == 2 and sentence in text.splitlines()[-1], text
    assert [one.name for one in place.iterdir()] == ["key"]


@pytest.mark.parametrize("content, sentence", [
    (b"@words\n", "names itself"),
    (b"run\n--peer\n\xff\xfe\n", "is not text"),
    (b"run\n--peer\na\0b\n", "zero byte"),
    (b"", "required"),
], ids=["loop", "bytes", "zero", "empty"])
def test_odd_files_of_words_end_with_a_sentence(content, sentence, place):
    (place / "words").write_bytes(content)
    status, text = said(["@words"], place)
    assert status == 2 and sentence in text.splitlines()[-1], text
    assert "unexpected" not in text


def test_empty_lines_of_a_file_are_no_words(place):
    (place / "words").write_text("key\n\nnew\n\n")
    assert said(["@words"], place) == (0, "")


# --- the command status --------------------------------------------------------

@pytest.mark.parametrize("answer", [
    b"", b"\xff\xfe", b"[1]", b"{", b"[" * 100_000, b"x" * (2 << 20)],
    ids=["empty", "bytes", "list", "cut", "deep", "long"])
def test_an_answer_that_is_no_state(answer, place):
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.settimeout(20)
    listening.bind(str(place / "socket"))
    listening.listen(1)

    def serve():
        connection, _ = listening.accept()
        with connection:
            connection.settimeout(20)
            try:
                connection.sendall(answer)
            except OSError:
                # It has had enough.
                pass

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    status, text = said(["status", "--socket", "socket"], place)
    thread.join(20)
    listening.close()
    assert status == 2 and "is not the socket of a tollway-admit" in text, text


# --- signals -------------------------------------------------------------------

SIGNALLED = """
import os, signal, sys
sys.path[:0] = {paths!r}
from admit import __main__ as command, daemon
from tollwaylib import ends

def hit():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
        os.kill(os.getpid(), number)

class Path:
    def __init__(self, options):
        open("class", "w").close()
        if {when!r} == "path":
            hit()
    def close(self):
        for _ in range(3):
            hit()
        os.unlink("class")

def serve(path, status):
    if {when!r} == "serve":
        hit()
    signal.pause()

rename = os.rename
def renamed(*names):
    if {when!r} == "status":
        hit()
    rename(*names)

unlink = os.unlink
def unlinked(name):
    hit()
    unlink(name)

daemon.Path, daemon.serve = Path, serve
os.rename, os.unlink = renamed, unlinked
sys.exit(ends.guarded("x", lambda: command.main(sys.argv[1:])))
"""


@pytest.mark.parametrize("when", ["status", "path", "serve"])
def test_signals_leave_nothing_behind(when, place):
    """At the start, while it runs, and again in each part of the clean-up."""
    program = SIGNALLED.format(paths=PATHS, when=when)
    done = subprocess.run([sys.executable, "-c", program, *RUN], cwd=place,
                          timeout=20, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 130, done.stderr
    assert [one.name for one in place.iterdir()] == ["key"], done.stderr
    assert done.stderr == "x: interrupted\n"


def test_a_bind_that_fails_leaves_no_name(place):
    """The name of the socket may be taken by a directory between two looks."""
    (place / "run").mkdir()
    program = f"""
import os, sys
sys.path[:0] = {PATHS!r}
from admit import daemon
def rename(*_):
    raise OSError(21, "Is a directory")
os.rename = rename
try:
    daemon.Status("run/socket")
except daemon.TollwayError as error:
    sys.exit(str(error))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=place,
                          timeout=20, capture_output=True, text=True,
                          check=False)
    assert "run/socket: Is a directory" in done.stderr
    assert not list((place / "run").iterdir())


@pytest.mark.parametrize("where", ["/dev/full", "pipe"])
def test_a_journal_that_takes_no_line_does_not_end_the_daemon(where):
    program = f"""
import sys
sys.path[:0] = {PATHS!r}
from admit import daemon
for _ in range(3):
    daemon.log("a line " + chr(0xdcff))
print("alive")
sys.stdout.flush()
"""
    if where == "pipe":
        reader, writer = os.pipe()
        os.close(reader)
    else:
        writer = os.open(where, os.O_WRONLY)
    done = subprocess.run([sys.executable, "-c", program], timeout=20,
                          stdout=subprocess.PIPE, stderr=writer, check=False)
    os.close(writer)
    assert done.stdout == b"alive\n"
