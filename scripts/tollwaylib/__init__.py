# SPDX-License-Identifier: GPL-2.0
"""Tollway's harness: experiments on congestion pricing and packet pair."""

import os

# Of the whole project, as in dkms.conf.
VERSION = "0.1.0"
# Debian keeps tc, insmod, modinfo, sysctl and others there, and the login shell
# of a normal user does not look there.
SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def add_sbin():
    """Let all that this process starts look for programs in SBIN as well."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    folders += [folder for folder in SBIN if folder not in folders]
    os.environ["PATH"] = os.pathsep.join(folders)


# Here, since whatever of the harness is run imports this first.
add_sbin()
