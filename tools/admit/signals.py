# SPDX-License-Identifier: GPL-2.0
"""When signals may end the daemon, so that each thing it makes is taken away."""

import contextlib
import signal

_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interrupt_once():
    """The first signal raises KeyboardInterrupt, and later ones nothing.

    A second one would interrupt the clean-up that the first one began. Signals that
    are ignored stay so.
    """
    raised = False

    def interrupt(_number, _frame):
        nonlocal raised
        if not raised:
            raised = True
            raise KeyboardInterrupt

    for number in _ENDS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupt)


@contextlib.contextmanager
def deferred():
    """Signals wait until the end of this block, or for an allowed() within it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def allowed():
    """Signals that wait are delivered now, and others when they come."""
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
