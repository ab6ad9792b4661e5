# SPDX-License-Identifier: GPL-2.0
"""Directories: the checkout, and the cache of built files."""

import contextlib
import fcntl
import hashlib
import os
import re
import subprocess
from pathlib import Path

from .errors import TollwayError

TOP = Path(__file__).resolve().parents[2]
LAB_FILES = TOP / "scripts" / "lab"
# In the name of a directory, what make and the shell that it starts take for words,
# rules and variables: nothing can be built there.
_NOT_FOR_MAKE = re.compile(r"""[\s$:%;&|<>()*?{}'"`\\#\[\]]""")


def cache_dir():
    """Directory for built kernels, modules and tools; TOLLWAY_CACHE moves it. Raises
    TollwayError if there is no home directory, or if make cannot work in the directory
    because of its name."""
    base = os.environ.get("TOLLWAY_CACHE")
    if not base:
        home = os.environ.get("XDG_CACHE_HOME") or \
            os.path.join(os.path.expanduser("~"), ".cache")
        if not os.path.isabs(home):
            raise TollwayError("there is no home directory for the cache: set "
                               "TOLLWAY_CACHE to a directory for it")
        base = os.path.join(home, "tollway")
    path = Path(base).absolute()
    found = _NOT_FOR_MAKE.search(str(path))
    if found:
        raise TollwayError(f"make cannot build in the cache {path}, as its name "
                           f"has {found[0]!r}: set TOLLWAY_CACHE to another "
                           "directory")
    return cache_folder(path)


def cache_folder(path):
    """A directory in the cache, made if it is not there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _no_cache(path, error) from error
    return path


def _no_cache(path, error):
    return TollwayError(
        f"what is missing in the cache cannot be built there: {path}: "
        f"{error.strerror}; set TOLLWAY_CACHE to a directory that you can "
        "write to")


@contextlib.contextmanager
def locked(path, waiting=None):
    """Hold an exclusive lock beside `path`, so that two builds never mix.

    waiting: called if another process has it, before this one waits for it.
    """
    name = f"{path}.lock"
    try:
        lock = open(name, "w", encoding="ascii")
    except OSError as error:
        raise _no_cache(name, error) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting:
                waiting()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def digest_of(*parts):
    """sha256 over strings, bytes and the contents of files (Path), as hex. The
    name of a file may be a string of any bytes, see os.fsdecode()."""
    total = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, Path) else \
            part if isinstance(part, bytes) else \
            str(part).encode("utf-8", "surrogateescape")
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.hexdigest()


def files_below(*folders):
    """Sorted regular files below folders of the checkout, without caches."""
    return sorted(path for folder in folders
                  for path in (TOP / folder).rglob("*")
                  if path.is_file() and "__pycache__" not in path.parts)


def checkout():
    """The commit of the checkout, and whether the tree differs from it. Both are None if this
    is not known: without git, or if TOP is no checkout."""
    def git(*words):
        with contextlib.suppress(OSError):
            done = subprocess.run(["git", "-C", str(TOP), *words], check=False,
                                  stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL)
            if not done.returncode:
                return os.fsdecode(done.stdout).strip()
        return None

    # A copy without a history may lie in the checkout of something else.
    top = git("rev-parse", "--show-toplevel")
    commit = git("rev-parse", "HEAD") \
        if top and os.path.realpath(top) == str(TOP) else None
    # The user's git may have been told not to show new files.
    status = git("status", "--porcelain", "--untracked-files=normal") \
        if commit else None
    return {"commit": commit, "changed": None if status is None else bool(status)}
