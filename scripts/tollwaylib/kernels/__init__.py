# SPDX-License-Identifier: GPL-2.0
"""Kernels: the lab's own, those of the distributions, and modules for them."""
