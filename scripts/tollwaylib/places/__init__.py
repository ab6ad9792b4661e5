# SPDX-License-Identifier: GPL-2.0
"""Places to run at: the lab, this machine, a stock kernel in qemu."""
