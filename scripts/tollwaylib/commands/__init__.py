# SPDX-License-Identifier: GPL-2.0
"""The commands of tollway."""
