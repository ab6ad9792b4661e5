# SPDX-License-Identifier: GPL-2.0
"""The words of a command line: a parser and the types of its arguments.

Nothing here needs more than Python itself."""

import argparse
import math
import os
import stat
import tempfile
from pathlib import Path

from .errors import TollwayError

# Largest numbers that make sense: half a year of traffic, which the lab's clock
# and all counters of ns can hold; seeds that stay within 63 bits where sources
# have seeds of their own (case_jobs.SEEDS_APART).
LONGEST_S = 1.5e7
LARGEST_SEED = 10**12
MOST_RUNS = 10**4


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence."""

    def error(self, message):
        """Raises TollwayError with the message, in place of printing the usage and ending the
        program."""
        raise TollwayError(f"{message} ({self.prog} --help explains the "
                           "command line)")


def number(kind, greatest):
    """An argparse type: a number of a kind, above 0 and up to `greatest`."""
    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not 0 < value <= greatest:
            what = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(
                f"{short(text)} is not {what} above 0 and up to "
                f"{greatest:.15g}")
        return value
    return parse


def file_name(text):
    """An argparse type: the name of a file or directory, of any bytes."""
    if not text:
        raise argparse.ArgumentTypeError("the name of a file must not be empty")
    return text


def path(text):
    """An argparse type: the same as a Path."""
    return Path(file_name(text))


def plain(text):
    """An argparse type: text that can be shown and stored as it is."""
    if not text.isprintable():
        raise argparse.ArgumentTypeError(
            f"{short(text)} has characters that cannot be printed")
    return text


def short(text, longest=60):
    """A word for a message: quoted, in characters that can be printed."""
    return ascii(text if len(text) <= longest else text[:longest] + "...")


def visible(text):
    """Words of a command line as text: bytes that are not UTF-8 as \\xNN."""
    return os.fsencode(text).decode("utf-8", "backslashreplace")


def check_file(file):
    """Raise TollwayError if a file cannot be written, before there is anything
    to write: a run may take hours. See files.write_named()."""
    path = os.path.realpath(file)
    folder = os.path.dirname(path)
    if os.path.isdir(path):
        reason = "it is a directory"
    elif not os.path.isdir(folder):
        reason = f"there is no directory {folder}"
    elif os.path.exists(path) and not os.access(path, os.W_OK):
        reason = "permission denied"
    elif os.path.exists(path) and not os.path.isfile(path):
        reason = None
    else:
        reason = _replaced(path, folder)
    if reason:
        raise TollwayError(f"{file} cannot be written: {reason}")


def _replaced(path, folder):
    """The reason why a file cannot replace `path`, None if it can. No test of permissions knows
    all reasons, so a file is created beside it."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, suffix=".tmp"):
            pass
        # In a directory as /tmp only the owner may replace a file.
        found, around = os.lstat(path), os.stat(folder)
        if around.st_mode & stat.S_ISVTX and os.geteuid() not in (
                0, found.st_uid, around.st_uid):
            return f"in {folder} only its owner may replace it"
    except FileNotFoundError:
        pass
    except OSError as error:
        return f"{folder}: {error.strerror}" if error.filename and \
            os.fsdecode(error.filename) != path else error.strerror
    return None
