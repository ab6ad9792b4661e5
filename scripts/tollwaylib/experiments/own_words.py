# SPDX-License-Identifier: GPL-2.0
"""Words in a user's file that name something of a kernel or of this machine:
congestion controls, queues and programs.

Whether a kernel has a congestion control, and all words of tc of a queue, is known
when it runs. What no kernel has is an error before that.
"""

import difflib
import os
import shutil
from pathlib import Path

from ..components import ALIASES, AQMS, OF_CONTROL, aqm_words, known_aqm
from ..components.linux import CONTROLS, QDISCS
from ..components.modules import MODULES
from ..errors import TollwayError
from .own_file import as_text, listed, shown, spoken

_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
# What a kernel was built with beside it: modules of others have a file there.
_MODULES = Path("/lib/modules", os.uname().release)
# Programs of tools/, which are built before a run.
_TOOLS = ("tollway-admit", "tollway-qsample", "tollway-traffic")


def _of_this_machine():
    """Congestion controls of the running kernel, which may be of other projects."""
    try:
        return _AVAILABLE.read_text(encoding="ascii").split()
    except OSError:
        return []


def as_control(value):
    """A reader of the name of a congestion control, see own_file.py."""
    name = as_text(value)
    known = sorted({*OF_CONTROL, *CONTROLS, *_of_this_machine()})
    if name not in known:
        raise ValueError(f"{_guess(name, known)}give the name of a congestion "
                         f"control, {listed(known)}")
    return name


def as_queue(value):
    """A reader of a queue: a name of --aqm, or words of tc."""
    words = as_text(value)
    try:
        kind = aqm_words(words, {}).split()[0] if known_aqm(words) not in AQMS \
            else None
    except TollwayError as error:
        raise ValueError(str(error).rpartition(": ")[2]) from None
    kinds = {*QDISCS, *(module.queue for module in MODULES if module.queue)}
    if kind is None or kind in kinds or _has_module(f"sch_{kind}.ko"):
        return words
    names = [*AQMS, *ALIASES]
    raise ValueError(f"{_guess(kind, [*names, *kinds])}give {listed(names)}, or words "
                     "of tc that begin with the kind of a qdisc of Linux, such as "
                     "'pfifo limit 100'")


def as_program(value):
    """A reader of the first word of a command: a program of this machine or of
    tools/."""
    if "/" in value and not value.startswith("/"):
        raise ValueError("give the name of a program, or a path that begins with /, as "
                         "each program has a working directory of its own")
    found = shutil.which(value, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if not found and value not in _TOOLS:
        raise ValueError(f"give a program that is installed: there is no {value!r}")
    return value


def refusals(file, words):
    """{begin of the sentence with which a kernel refuses a word: what takes its place}.
    The latter has the file, the line and the field.

    words: [(place, word)] of all congestion controls and queues of a file; the first
    place of a word counts. See guest/job.py for the sentences.
    """
    found = {}
    for place, word in words:
        where = f"{file.path}:{file.line(place)}: {spoken(place)} is {shown(word)}: "
        if place[-1] == "cc":
            found.setdefault(f"--cc {word}: ", where)
        elif known_aqm(word) not in AQMS:
            found.setdefault(f"--aqm '{aqm_words(word, {})}': ", where)
    return found


def _guess(word, known):
    near = difflib.get_close_matches(word, known, 1)
    return f"did you mean {near[0]!r}? Otherwise " if near else ""


def _has_module(name):
    """True if the running kernel has a module file of this name."""
    for index in ("modules.dep", "modules.builtin"):
        try:
            if f"/{name}" in (_MODULES / index).read_text(encoding="utf-8"):
                return True
        except OSError:
            pass
    return False
