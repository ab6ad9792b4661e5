# SPDX-License-Identifier: GPL-2.0
"""The lab's kernel: User Mode Linux, from the source package of the distribution.

It is built once for each source, configuration, set of patches and flavour, and kept in
the cache.
"""

import os
import re
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from ..errors import TollwayError
from ..paths import LAB_FILES, TOP, cache_dir, digest_of, locked
from ..programs import BUILD, KERNEL, need, with_us

HZ = 1000
QEMU_FILES = TOP / "scripts" / "qemu"
FLAVOURS = ("plain", "debug")
# Of each kernel: fragments of its configuration, words for make, what is made.
# smp is not the lab's but for qemu, see places/qemu.py.
USER_MODE = ("ARCH=um", "SUBARCH=x86_64")
_BASE, _DEBUG = LAB_FILES / "config.base", LAB_FILES / "config.debug"
# Debugging code that need not be watched by KASAN itself: a tenth of the time.
UNWATCHED = tuple(f"KASAN_SANITIZE_{name}.o=n"
                  for name in ("lockdep", "kmemleak", "debugobjects"))
KINDS = {
    "plain": ((_BASE,), USER_MODE, "linux"),
    "debug": ((_BASE, _DEBUG), (*USER_MODE, *UNWATCHED), "linux"),
    "smp": ((_BASE, _DEBUG, QEMU_FILES / "config.smp"), ("ARCH=x86_64",),
            "bzImage"),
}


@dataclass(frozen=True)
class LabKernel:
    """A built kernel. `build` is the directory to build modules against."""
    version: str
    flavour: str
    build: Path
    config_sha256: str
    patches: tuple

    @property
    def make_words(self):
        """The arguments of make for modules of this kernel."""
        return KINDS[self.flavour][1]

    @property
    def image(self):
        """The program to run, or the kernel to boot."""
        linux = self.build / "linux"
        return linux if linux.exists() else \
            self.build / "arch/x86/boot/bzImage"

    @property
    def has_seccomp(self):
        """Can guest processes run without ptrace (about 6.16 and later)?"""
        return b"seccomp=" in self.image.read_bytes()


def find_source():
    """Kernel source: a directory or a tar file.

    KERNEL_SRC names one; else the newest linux-source package of the
    distribution that is installed.

    Raises TollwayError if there is none, or if KERNEL_SRC names no Linux source.
    """
    named = os.environ.get("KERNEL_SRC")
    if named:
        path = Path(named).absolute()
        if not path.exists():
            raise TollwayError(f"KERNEL_SRC={named} does not exist")
        if path.is_dir() and not (path / "arch/um/Makefile").is_file():
            raise TollwayError(f"KERNEL_SRC={named} is not a Linux source tree")
        return path
    found = sorted(Path("/usr/src").glob("linux-source-*.tar.*"),
                   key=lambda path: [int(number) for number in
                                     re.findall(r"\d+", path.name)])
    if not found:
        raise TollwayError("there is no kernel source: install the package "
                           "linux-source, or set KERNEL_SRC to a source tree")
    return found[-1]


def patches():
    """The lab's patches, in order."""
    return tuple(sorted((LAB_FILES / "patches").glob("*.patch")))


def is_needed(patch, tree):
    """True if this source needs a patch.

    A patch with a line "Needed-with: FILE: TEXT" in its header is needed only if FILE
    contains TEXT: newer kernels have solved the problem in another way.
    """
    found = re.search(r"^Needed-with: (\S+): (.+)$", patch.read_text(),
                      re.MULTILINE)
    if not found:
        return True
    path = tree / found[1]
    return path.exists() and found[2] in path.read_text()


def folders(flavour):
    """(source, tree, build): what a flavour is built from, the patched copy of it, and where it
    is built, in the cache. Raises TollwayError if there is no such flavour, or no kernel
    source."""
    source = find_source()
    stamp = source.stat()
    makefile = (source / "Makefile").read_bytes() if source.is_dir() else b""
    if flavour not in KINDS:
        raise TollwayError(f"there is no flavour {flavour}: take one of "
                           f"{', '.join(FLAVOURS)}")
    configs, make_words, _ = KINDS[flavour]
    key = digest_of(str(source), stamp.st_mtime_ns, stamp.st_size, makefile,
                    *patches())[:12]
    return (source, cache_dir() / f"linux-{key}",
            cache_dir() / f"lab-{flavour}-{digest_of(key, *configs, *make_words)[:12]}")


def is_built(flavour="plain"):
    """Is the kernel of a flavour in the cache?"""
    return (folders(flavour)[2] / "built").exists()


def kernel(flavour="plain", progress=None):
    """The LabKernel of a flavour, built if it is not in the cache."""
    source, tree, build = folders(flavour)
    # A cache that is complete may belong to someone else.
    if not (build / "built").exists():
        need(BUILD, KERNEL)
        with locked(build):
            if not (build / "built").exists():
                with locked(tree):
                    if not (tree / "patched").exists():
                        unpack(source, tree, progress)
                compile_kernel(tree, build, flavour, progress)
    return LabKernel((build / "include/config/kernel.release")
                     .read_text().strip(), flavour, build,
                     digest_of(build / ".config"),
                     tuple((build / "built").read_text().split()))


def unpack(source, tree, progress):
    """Copy the source into the cache and patch it. Raises TollwayError if the source is not
    that of a Linux kernel, or cannot be unpacked."""
    if progress:
        progress.step(f"unpacking {source.name}")
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir()
    if source.is_dir():
        command = ["cp", "-a", "--no-preserve=ownership", f"{source}/.",
                   str(tree)]
    elif tarfile_like(source):
        command = ["tar", "-xf", str(source), "--strip-components=1",
                   "--no-same-owner", "-C", str(tree)]
    else:
        raise TollwayError(f"{source} is neither a directory nor a tar file")
    run(command, f"{source.name} cannot be unpacked")
    if not (tree / "arch/um").is_dir():
        raise TollwayError(f"{source} is not a Linux source tree")
    applied = [patch for patch in patches() if is_needed(patch, tree)]
    for patch in applied:
        with open(patch, "rb") as text:
            run(["patch", "-p1", "-s", "-d", str(tree)],
                f"{patch.name} does not apply to {source.name}", stdin=text)
    if source.is_dir():
        run(["make", "-s", "-C", str(tree), *USER_MODE, "mrproper"],
            f"{source} cannot be cleaned")
    (tree / "patched").write_text(
        "".join(f"{patch.name}\n" for patch in applied))


def tarfile_like(path):
    """Is it something tar unpacks?"""
    return ".tar" in path.name or tarfile.is_tarfile(path)


def run(command, failure, **keywords):
    """Run a command silently; TollwayError with its last line if it fails."""
    # Names of files in what is said need not be UTF-8.
    with with_us(command, text=True, errors="replace", stdout=subprocess.PIPE,
                 stderr=subprocess.STDOUT, **keywords) as process:
        said = process.communicate()[0]
    if process.returncode:
        last = (said.strip().splitlines() or ["no output"])[-1]
        raise TollwayError(f"{failure}: {last}")


def compile_kernel(tree, build, flavour, progress):
    """Configure and compile into `build`; about two minutes on two cores."""
    configs, make_words, target = KINDS[flavour]
    build.mkdir(exist_ok=True)
    fragment = build / "fragment"
    fragment.write_text("".join(path.read_text() for path in configs))
    run(["make", "-s", "-C", str(tree), *make_words, f"O={build}",
         f"KCONFIG_ALLCONFIG={fragment}", "allnoconfig"],
        "the kernel cannot be configured")
    log_path = build / "build.log"
    # The same sources give the same kernel, whoever builds it where.
    environment = dict(os.environ, KBUILD_BUILD_TIMESTAMP="1970-01-01",
                       KBUILD_BUILD_USER="tollway", KBUILD_BUILD_HOST="lab")
    make = ["make", "-C", str(build), *make_words]
    jobs = f"-j{os.cpu_count() or 1}"
    what = f"compiling the {flavour} kernel"
    with open(log_path, "w", encoding="utf-8") as log:
        # Only then can make say what else there is to do.
        done = compiled(make + [jobs, "prepare", "modules_prepare"],
                        environment, log, lambda count: progress and
                        progress.count(what, f"{count} files"))
        total = done + planned(make + [target, "modules"], environment)
        compiled(make + [jobs, target, "modules"], environment, log,
                 lambda count: progress and progress.count(
                     what, f"{done + count} of "
                     f"{max(total, done + count)} files"))
    shutil.copyfile(tree / "patched", build / "built")


def compiled(command, environment, log, on_file):
    """Run make; returns how many files it compiled, and calls on_file() with that number after
    each. log: open file for what make says. Raises TollwayError if make fails."""
    count = 0
    with with_us(command, text=True, errors="replace", stdout=subprocess.PIPE,
                 stderr=subprocess.STDOUT, env=environment) as make:
        for line in make.stdout:
            log.write(line)
            if line.startswith("  CC"):
                count += 1
                on_file(count)
    if make.returncode:
        raise TollwayError(f"the kernel does not compile: see {log.name}")
    return count


def planned(command, environment):
    """The number of files that make would compile now, as make -n prints them.

    Files that are generated from missing files are not counted; with -k make continues after
    them.
    """
    with with_us([*command, "-n", "-k"], text=True, errors="replace", env=environment,
                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as make:
        text = make.communicate()[0]
    return len(re.findall(r"\becho\s+'  CC", text))
