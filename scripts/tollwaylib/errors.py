# SPDX-License-Identifier: GPL-2.0
"""The exceptions the harness raises on purpose."""


class TollwayError(Exception):
    """What went wrong and what to do about it, in one sentence."""


class RefusedError(TollwayError):
    """Nothing was run, as the kernel does not know what was asked for."""


# Exit statuses of tollwaylib.network, to the place that started it.
RUN_FAILED, RUN_REFUSED, RUN_INTERRUPTED = 2, 3, 130


def of_run(folder, status):
    """The exception for a run of tollwaylib.network that ended with `status`.

    folder: its directory, where it left the reason in error.txt.
    """
    try:
        reason = (folder / "error.txt").read_text(encoding="utf-8").strip()
    except OSError:
        reason = f"the run failed: see {folder / 'console.log'}"
    return (RefusedError if status == RUN_REFUSED else TollwayError)(reason)
