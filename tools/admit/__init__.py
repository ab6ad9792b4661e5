# SPDX-License-Identifier: GPL-2.0
"""Adaptive admission congestion control (AACC) for one path between two borders."""
