# SPDX-License-Identifier: GPL-2.0
"""Formulas and fluid models of the papers and of the modules' defaults."""
