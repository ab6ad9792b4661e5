# SPDX-License-Identifier: GPL-2.0
"""What is built from this checkout: modules for a kernel, tools, tc plugins."""

import subprocess
from pathlib import Path

from ..errors import TollwayError
from ..paths import (TOP, cache_dir, cache_folder, digest_of, files_below,
                     locked)
from ..programs import BUILD, need, with_us

# The modules are the folders with a Kbuild, queues first.
FOLDERS = tuple(path.parent.name for kind in ("sch", "tcp") for path in
                sorted(TOP.glob(f"{kind}_*/Kbuild"), reverse=True))
MODULES = tuple(f"{name}/{name}.ko" for name in FOLDERS)


def _built(folder, sources, command, name):
    """Run `command` (with the folder) unless the sources are as last time."""
    digest = digest_of(*(part for path in sources for part in
                         (str(path.relative_to(TOP)), path)))
    stamp = folder / "sources.sha256"

    def is_built():
        return stamp.exists() and stamp.read_text() == digest

    # A cache that is complete may belong to someone else.
    if is_built():
        return folder
    need(BUILD)
    with locked(folder):
        if is_built():
            return folder
        folder.mkdir(parents=True, exist_ok=True)
        log = folder / "build.log"
        with open(log, "w", encoding="utf-8") as output:
            with with_us(command, stdout=output,
                         stderr=subprocess.STDOUT) as process:
                process.wait()
        if process.returncode:
            raise TollwayError(f"{name} cannot be built: see {log}")
        stamp.write_text(digest)
    return folder


def tools_sources():
    """What the tools are built from: the traffic generator has tcp_pp's law."""
    return files_below("tools", "include", "tcp_pp")


def tools_folder():
    """Where the tools of this checkout are when they are built."""
    # Two checkouts may share a cache: each content has its own folder.
    key = digest_of(*(part for path in tools_sources()
                      for part in (str(path.relative_to(TOP)), path)))[:12]
    return cache_dir() / f"build-tools-{key}" / "tools"


def tools():
    """Folder with the programs and tc plugins."""
    sources = tools_sources()
    folder = tools_folder()
    cache_folder(folder.parent)
    return _built(folder, sources,
                  ["make", "-s", "-C", str(TOP / "tools"), f"O={folder}"],
                  "tools")


def modules(kernel):
    """Folder with the modules for a LabKernel."""
    sources = files_below("include", *FOLDERS, "selftests/kunit") + [
        TOP / "scripts/build-modules.sh"]
    key = digest_of(*(part for path in sources for part in
                      (str(path.relative_to(TOP)), path)))[:12]
    folder = cache_dir() / f"modules-{kernel.build.name}-{key}"
    return _built(folder, sources,
                  [str(TOP / "scripts/build-modules.sh"), str(kernel.build),
                   str(folder), *kernel.make_words,
                   # Only heard where the kernel has UBSAN.
                   "UBSAN_SANITIZE=y"],
                  f"the modules for {kernel.version}")


def module_files(folder, names=MODULES):
    """Paths of modules in a folder of modules()."""
    return [Path(folder) / name for name in names]
