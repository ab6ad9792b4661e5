# SPDX-License-Identifier: GPL-2.0
"""Versions of the programs and modules of a run."""

import contextlib
import subprocess
import sys
from pathlib import Path

from ..kernels import build


def tool_versions():
    """{program: version} of the programs of a run."""
    def first_line(*argv):
        with contextlib.suppress(OSError):
            done = subprocess.run(argv, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, check=False)
            return done.stdout.strip().partition("\n")[0]
        return "missing"
    return {"tc": first_line("tc", "-V"), "ip": first_line("ip", "-V"),
            "python": sys.version.split()[0],
            "mininet": first_line("mn", "--version"),
            "gcc": first_line("gcc", "--version")}


def module_versions(folder):
    """{module: {version, srcversion}} of built modules."""
    versions = {}
    for path in build.module_files(folder):
        fields = subprocess.run(
            ["modinfo", str(path)], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, check=False).stdout
        entries = dict(line.split(":", 1) for line in fields.splitlines()
                       if ":" in line)
        versions[Path(path).stem] = {
            key: entries.get(key, "").strip()
            for key in ("version", "srcversion")}
    return versions
