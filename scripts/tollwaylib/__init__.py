# SPDX-License-Identifier: GPL-2.0
"""Tollway's harness: experiments on congestion pricing and packet pair."""

from .programs import add_sbin

# Of the whole project, as in dkms.conf.
VERSION = "0.1.0"

# Here, since whatever of the harness is run imports this first.
add_sbin()
