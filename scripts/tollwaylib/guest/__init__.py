# SPDX-License-Identifier: GPL-2.0
"""The code that runs on the kernel under test: in the lab, in qemu, on a host.

It imports only its own files and errors.py; everything else that a run needs is in its
job.
"""
