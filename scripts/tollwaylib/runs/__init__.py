# SPDX-License-Identifier: GPL-2.0
"""Runs of experiments: jobs at a place, into a directory of results."""
