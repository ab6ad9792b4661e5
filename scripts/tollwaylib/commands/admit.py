# SPDX-License-Identifier: GPL-2.0
"""`tollway admit`: the program tollway-admit by the name of this one."""

import os

from ..paths import TOP

PROGRAM = TOP / "tools/tollway-admit"


def command_admit(words):
    """Become tollway-admit with these words; does not return."""
    os.execv(PROGRAM, [str(PROGRAM), *words])
