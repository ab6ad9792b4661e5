# SPDX-License-Identifier: GPL-2.0
"""How a command ends: with a status, and with one sentence if it failed.

guarded() runs the body of a command. Python ends with a traceback and status 1 after an
exception that is not caught, but status 1 of tollway means that a verdict does not hold.
So every failure becomes one sentence on standard error and status 2.

This file needs only Python itself.
"""

import atexit
import codecs
import os
import signal
import sys
import tempfile
import traceback

from . import progress
from .errors import TollwayError, sentence

HOLDS, MISSED, FAILED, INTERRUPTED = 0, 1, 2, 130
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Signals that have come, and ended what the command does.
_interrupts = []


def guarded(name, body):
    """Run body() as the command `name`; returns the exit status.

    body: returns a status, or raises. -v among the words of the command line
    prints the traceback of an unexpected error; without it the traceback goes
    to a file, which the sentence names.
    """
    _open_streams()
    _take_signals()
    try:
        status = _status_of(name, body)
        _ignore_signals()
    except KeyboardInterrupt:
        # It came while another end was being reported.
        status = INTERRUPTED
    return _flushed(name, status)


def leave(status):
    """End the program with a status of guarded().

    After an interrupt, only what was registered with atexit is done. A library that was
    interrupted while it was imported, or while it began a thread, can make the rest of
    Python's own end crash or wait for ever, also if it has hidden the interrupt.
    """
    if not _interrupts:
        sys.exit(status)
    _ignore_signals()
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    try:
        atexit._run_exitfuncs()
        status = _flushed(os.path.basename(sys.argv[0]), status)
    finally:
        os._exit(status or HOLDS)


def _status_of(name, body):
    try:
        try:
            return body()
        finally:
            # What is said now comes after bars and moving lines.
            progress.stop()
    except KeyboardInterrupt:
        return _interrupted(name)
    except BrokenPipeError:
        # The reader has left, as head does: there is nobody to tell.
        return FAILED
    except SystemExit as error:
        # argparse ends with a number after --help, and so do programs.
        if error.code is None or isinstance(error.code, int):
            return error.code or HOLDS
        _say(name, error.code)
    except TollwayError as error:
        _say(name, error)
    except OSError as error:
        _say(name, sentence(error))
        _show_traceback()
    except BaseException as error:  # whatever it is, it is not a verdict
        # A library may turn an interrupt into an error of its own, as numpy does
        # while it is imported, and not always say that it is the reason.
        if _interrupts:
            return _interrupted(name)
        _say(name, _unexpected(error))
    return FAILED


def _interrupted(name):
    _ignore_signals()
    _say(name, "interrupted")
    return INTERRUPTED


def _unexpected(error):
    """A sentence about an unexpected exception."""
    what = " ".join(str(error).split())
    said = f"unexpected error: {type(error).__name__}" + \
        (f": {what}" if what else "")
    if _show_traceback():
        return said
    try:
        with tempfile.NamedTemporaryFile(
                "w", encoding="utf-8", errors="backslashreplace",
                prefix="tollway-error-", suffix=".txt", delete=False) as file:
            file.write(traceback.format_exc())
    except OSError:
        return f"{said} (tollway run -v shows where)"
    return f"{said}; this is a fault of tollway, please report it with the " \
        f"file {file.name}"


def _show_traceback():
    """Print the traceback if -v was given; returns whether it was given."""
    words = sys.argv[1:]
    if "-v" not in words and "--verbose" not in words:
        return False
    try:
        traceback.print_exc()
    except (OSError, ValueError):
        pass
    return True


def _say(name, text):
    """Print one line on standard error, if it is open."""
    lines = [line.strip() for line in str(text).splitlines()]
    try:
        print(f"{name}: {'; '.join(filter(None, lines))}", file=sys.stderr,
              flush=True)
    except (OSError, ValueError):
        pass


def _flushed(name, status):
    """Write buffered output; it is a failure if that is not possible.

    Python does this again at its end, where a failure is status 120.
    """
    for stream, number in ((sys.stdout, 1), (sys.stderr, 2)):
        try:
            stream.flush()
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and \
                    not isinstance(error, BrokenPipeError):
                _say(name, "the output cannot be written: "
                     f"{error.strerror}")
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
            status = status if status == INTERRUPTED else FAILED
    return status


def _open_streams():
    """Make the three standard streams usable.

    If one of them is closed, the next opened file would get its number, and messages would be
    written into this file.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free, which is this one.
            os.open(os.devnull, os.O_RDWR)
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w", encoding="utf-8",
                                    closefd=False))
    codecs.register_error("tollway", _as_bytes)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="tollway")


def _as_bytes(error):
    """Bytes that a locale cannot write: those of a file name, or '?'."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return b"".join(bytes([ord(one) - 0xDC00])
                    if 0xDC80 <= ord(one) <= 0xDCFF else b"?"
                    for one in error.object[error.start:error.end]), error.end


def _take_signals():
    """A killed run cleans up like an interrupted one. A run in the background, for which shells
    ignore SIGINT, can be interrupted like any other."""
    for number in _SIGNALS:
        # nohup ignores SIGHUP, and means it.
        if number != signal.SIGHUP or \
                signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _interrupt)
    signal.signal(signal.SIGALRM, _interrupt)
    sys.unraisablehook = _unraisable


def _interrupt(number, _frame):
    _interrupts.append(number)
    raise KeyboardInterrupt


def _unraisable(lost):
    """What Python drops, as it was raised in a callback of the collector.

    An interrupt that comes there would be lost: it comes again a little later.
    """
    if isinstance(lost.exc_value, KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, 0.01)
    else:
        sys.__unraisablehook__(lost)


def _ignore_signals():
    """The end is reported from here on: ignore signals."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
