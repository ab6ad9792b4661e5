# SPDX-License-Identifier: GPL-2.0
"""The exceptions that the harness raises, and texts of other exceptions."""

import os
import traceback


class TollwayError(Exception):
    """An error with one sentence that says what is wrong and how to correct it."""


class RefusedError(TollwayError):
    """Nothing was run, because the kernel does not have what the run needs."""


# Exit statuses of tollwaylib.guest.job, to the place that started it.
RUN_FAILED, RUN_REFUSED, RUN_INTERRUPTED = 2, 3, 130


def of_run(folder, status):
    """The exception for a run of tollwaylib.guest.job that ended with `status`.

    folder: its directory, where it left the reason in error.txt.
    """
    try:
        reason = (folder / "error.txt").read_text(encoding="utf-8").strip()
    except OSError:
        reason = f"the run failed: see {folder / 'console.log'}"
    return (RefusedError if status == RUN_REFUSED else TollwayError)(reason)


def sentence(error):
    """The text of an OSError, with the name of its file or program."""
    reason = error.strerror or str(error) or type(error).__name__
    if error.filename is None:
        if isinstance(error, FileNotFoundError) and not _is_somewhere():
            return ("the working directory has been removed: change to one "
                    "that exists")
        return reason
    if isinstance(error, FileNotFoundError) and _from_popen(error):
        return (f"the program {_text(error.filename)} is not installed, or in "
                "no directory of PATH: tollway doctor says how to get it")
    return f"{_text(error.filename)}: {reason}"


def _is_somewhere():
    """True if the working directory exists."""
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def _from_popen(error):
    """True if a program could not be started. The file of the error may also be another file; a
    program that is searched for in PATH has no slash."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and frames[-1].filename.endswith("subprocess.py") and \
        "/" not in _text(error.filename)


def _text(name):
    return os.fsdecode(name) if isinstance(name, (str, bytes)) else str(name)
