# SPDX-License-Identifier: GPL-2.0
"""`tollway doctor`: what is missing on a machine, and what ails a connection."""
