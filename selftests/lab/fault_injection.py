# SPDX-License-Identifier: GPL-2.0
"""Allocations that fail, by the kernel's fault injection."""

import itertools
import os
import threading
import time
from pathlib import Path as File

import guest_base
from rtnl import Refused


class Injected:
    """Allocations of this thread that fail, by the kernel's fault injection."""

    def __init__(self):
        if not File("/sys/kernel/debug/failslab").exists():
            raise guest_base.Skip("only the debug flavour can make them fail")
        # Pages of programs, which are highmem, are none of ours.
        for knob in "failslab", "fail_page_alloc":
            for name, value in (("task-filter", "Y"), ("verbose", "0"),
                                ("times", "-1"), ("ignore-gfp-wait", "N")):
                File(f"/sys/kernel/debug/{knob}/{name}").write_text(value)
        File("/sys/kernel/debug/fail_page_alloc/min-order").write_text("0")
        # Opened before: opening could fail.
        task = f"/proc/self/task/{threading.get_native_id()}"
        self.some = os.open(f"{task}/make-it-fail", os.O_RDWR)
        self.nth = os.open(f"{task}/fail-nth", os.O_RDWR)

    def close(self):
        """No failures any more."""
        self.probability(0)
        os.close(self.some)
        os.close(self.nth)

    @staticmethod
    def probability(percent):
        """How many of the allocations in at_random() shall fail."""
        File("/sys/kernel/debug/failslab/probability").write_text(str(percent))

    def at_random(self, function):
        """1 if it failed for want of memory, or was refused."""
        os.pwrite(self.some, b"1", 0)
        try:
            function()
        except (OSError, Refused):
            return 1
        finally:
            os.pwrite(self.some, b"0", 0)
        return 0

    def each(self, function, after=lambda failed: None):
        """Do something again and again, and let another allocation fail each
        time until none is left: how many there are. after() follows each."""
        for number in itertools.count(1):
            failed = False
            os.pwrite(self.nth, b"%d" % number, 0)
            try:
                function()
            except (OSError, Refused):
                failed = True
            left = int(os.pread(self.nth, 20, 0))
            os.pwrite(self.nth, b"0", 0)
            after(failed)
            # No time passes while this runs, and no other task does: let the
            # kernel's worker unmap what vfree() has left. Each such page is a
            # mapping of the host's, which has no more than 65 530 for a process.
            time.sleep(0.001)
            if left:
                assert not failed, "refused, and not for want of memory"
                return number - 1
