# SPDX-License-Identifier: GPL-2.0
"""What runs on the kernel under test: in the lab, in qemu, on a host.

Nothing here imports anything of the harness but what is here, and errors.py:
what else a run needs is in its job."""
