# SPDX-License-Identifier: GPL-2.0
"""Tollway's harness: experiments on congestion pricing and packet pair."""

# Of the whole project, as in dkms.conf.
VERSION = "0.1.0"
