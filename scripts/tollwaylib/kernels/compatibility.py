# SPDX-License-Identifier: GPL-2.0
"""Build the modules against the header packages of many kernels.

Each kernel is built with gcc and clang of its own suite, with W=1, and checked with the
sparse of this suite. A finding is a message of a compiler, sparse or modpost about our
files. Messages about the kernel's own headers are only in the logs.
"""

import contextlib
import json
import os
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from ..errors import TollwayError
from ..paths import TOP, cache_dir, digest_of, files_below, locked
from . import build
from .suites import Suite, architecture, run_in, version_key

# Each suite, where it takes packages from, its kernels, and how many of them:
# of the newest both the last release and the candidate of the next one. -1 is the oldest:
# its headers are stricter here and there, and users have it who do not update.
KERNELS = (
    ("5.10", "bullseye", ("bullseye", "bullseye-security"), "5.10.", 1),
    ("6.1", "bookworm", ("bookworm", "bookworm-security"), "6.1.", 1),
    ("6.12", "trixie", ("trixie", "trixie-security"), "6.12.", 1),
    ("newest", "sid", ("sid", "experimental"), "", 2),
    ("5.10-oldest", "bullseye", ("bullseye", "bullseye-security"), "5.10.", -1),
    ("6.1-oldest", "bookworm", ("bookworm", "bookworm-security"), "6.1.", -1),
    ("6.12-oldest", "trixie", ("trixie", "trixie-security"), "6.12.", -1),
)
COMPILERS = ("gcc", "clang")
# What build-modules.sh and kbuild call besides the compiler of the headers.
TOOLS = ("make", "sparse", "clang", "coreutils", "dash", "sed", "grep",
         "diffutils", "findutils", "mawk", "python3")
SOURCES = ("include", *build.FOLDERS, "selftests/kunit")
# Kbuild has asked this since 7.1 whether the checker knows today's C; Debian's
# packages leave it out, and without it nothing is checked.
CHECKER_VALID = """#!/bin/sh
echo 'typedef __typeof_unqual__(const int) t;' > /tmp/checker.c
"$@" /tmp/checker.c 2>&1 | grep -q error || echo 1
"""
SRC, OUT = "/run/tollway/src", "/run/tollway/out"


@dataclass
class Row:
    """A line of the table. state: ok, failed or missing."""
    kernel: str
    compiler: str
    checker: str
    state: str
    result: str
    seconds: float = 0.0


def suite_of(kernel):
    """(Suite, series, count) of a word of KERNELS. Raises TollwayError if there is no such
    word."""
    for word, name, releases, series, count in KERNELS:
        if word == kernel:
            return Suite(name, releases), series, count
    raise TollwayError(f"there is no kernel {kernel}: take one of "
                       + ", ".join(row[0] for row in KERNELS))


def repair_headers(root, release):
    """Add files that a header package lacks and that a checker needs."""
    common = root / "usr/src" / ("linux-headers-" + re.sub(
        "-[a-z0-9]+$", "-common", release))
    script = common / "scripts/checker-valid.sh"
    if not script.exists() and "checker-valid.sh" in \
            (common / "Makefile").read_text():
        script.write_text(CHECKER_VALID)
        script.chmod(0o755)


def as_clang(root, kdir):
    """A copy of a directory of headers, as if the kernel had been configured with clang.

    Header packages have no Kconfig files, so they cannot be configured. In the copy, the
    settings for gcc are those for clang, and flags that only gcc has are removed. Returns
    the paths of the copy and of the compiler in the tree.
    """
    copy, compiler = f"{kdir}-clang", f"{kdir}-clang/clang"
    if (root / compiler[1:]).exists():
        return copy, compiler
    shutil.rmtree(root / copy[1:], ignore_errors=True)
    shutil.copytree(root / kdir[1:], root / copy[1:], symlinks=True)
    major = version_in(root, "clang").partition(".")[0]
    words = {"CC_IS_CLANG": "y", "GCC_VERSION": "0",
             "CLANG_VERSION": f"{major}0000"}
    for name in ("Makefile", ".config", "include/config/auto.conf",
                 "include/generated/autoconf.h"):
        path = root / copy[1:] / name
        text = re.sub(r"^.*\bCONFIG_(CC_IS_GCC|GCC_VERSION|CLANG_VERSION)\b.*\n",
                      "", path.read_text().replace(kdir, copy),
                      flags=re.MULTILINE)
        if name.endswith(".h"):
            text += "".join(f"#define CONFIG_{word} {value.replace('y', '1')}\n"
                            for word, value in words.items())
        elif name != "Makefile":
            text += "".join(f"CONFIG_{word}={value}\n"
                            for word, value in words.items())
        path.write_text(text)
    unknown = "|".join(unknown_flags(root, copy))
    path = root / compiler[1:]
    path.write_text("#!/bin/sh\n# clang without flags that it does not know.\n"
                    "for word; do\n\tshift\n\tcase $word in\n"
                    f"\t{unknown or '-'}) ;;\n"
                    "\t*) set -- \"$@\" \"$word\" ;;\n\tesac\ndone\n"
                    "exec clang \"$@\"\n")
    path.chmod(0o755)
    return copy, compiler


def unknown_flags(root, kdir):
    """Flags that the build of a kernel gives to clang and that clang refuses. Raises
    TollwayError if the build does not call clang."""
    folder = root / "tmp/flags"
    folder.mkdir(exist_ok=True)
    (folder / "Kbuild").write_text("obj-m += empty.o\n")
    (folder / "empty.c").touch()
    # That it fails is likely; the command is all that is wanted.
    said = run_in(root, {}, ["make", "-C", kdir, "M=/tmp/flags", "V=1", "W=1",
                             "CC=clang", "empty.o"], text=True,
                  capture_output=True).stdout
    command = re.search(r"^ *clang .*-Wp,-MM.*$", said, re.MULTILINE)
    if not command:
        raise TollwayError(f"{kdir}: clang is not called: {said[-300:]}")
    flags = sorted(set(re.findall(r" (-[fmW][a-z][\w=.,+-]*)", command[0])))
    tried = run_in(root, {}, [
        "sh", "-c", 'for flag; do clang -Werror "$flag" -c -x c /dev/null '
        '-o /dev/null 2> /dev/null || echo "$flag"; done', "sh",
        *(flag for flag in flags if not flag.startswith("-Wp,"))],
        text=True, capture_output=True)
    return tried.stdout.split()


def findings(log, compiler):
    """Messages in the log of a build about our own files and modules.

    Messages of objtool about features that clang lacks are left out, because as_clang()
    removes their flags.
    """
    pattern = r"(?!/|\./|arch/|include/(?!compat/|tollway_|uapi/pkt_))" \
        r"[^: ]+(:\d+)*: (fatal )?(warning|error):|(WARNING|ERROR): modpost"
    lines = [line.replace(f"{OUT}/", "") for line in log.splitlines()]
    return [line for line in dict.fromkeys(lines) if re.match(pattern, line)
            and not (compiler == "clang" and "objtool: " in line)]


def version_in(root, program):
    """The version that a program of a tree prints."""
    done = run_in(root, {}, [program, "--version"], text=True,
                  capture_output=True)
    found = re.search(r"\d+\.\d+(\.\d+)?", done.stdout)
    return found[0] if found else "?"


def sources_digest():
    """Digest over all files from which the modules are built, and this file."""
    paths = files_below(*SOURCES) + [TOP / "scripts/build-modules.sh",
                                     Path(__file__)]
    return digest_of(*(part for path in paths for part in
                       (str(path.relative_to(TOP)), path)))


def build(suite, root, versions, release, compiler):
    """Build for one kernel with one compiler; a Row.

    The modules are in out_dir(release, compiler) afterwards.
    """
    kdir = f"/usr/src/linux-headers-{release}"
    program, words = kernel_gcc(root, kdir), ["C=2", "CHECK=sparse"]
    if compiler == "clang":
        kdir, program = as_clang(root, kdir)
        words = [f"CC={program}"]
    out = out_dir(release, compiler)
    key = digest_of(sources_digest(), compiler, *versions)
    out.parent.mkdir(exist_ok=True)
    with locked(out):
        kept = out / "result.json"
        if kept.exists():
            entry = json.loads(kept.read_text())
            if entry.pop("key") == key:
                return Row(**entry)
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        started = time.monotonic()
        log = out / "build.log"
        repair_headers(root, release)
        with open(log, "w", encoding="utf-8") as output:
            done = run_in(root, {TOP: SRC, out: OUT},
                          [f"{SRC}/scripts/build-modules.sh", kdir, OUT, "W=1",
                           f"-j{os.cpu_count() or 1}", *words], stdout=output,
                          stderr=output)
        row = judge(release, compiler, log, done.returncode)
        row.compiler = f"{compiler} {version_in(root, program)}"
        if compiler == "gcc":
            row.checker = f"sparse {version_in(root, 'sparse')}"
        row.seconds = round(time.monotonic() - started, 1)
        kept.write_text(json.dumps(dict(vars(row), key=key)))
    return row


def judge(release, compiler, log, status):
    """The Row of a build from its log and exit status."""
    text = log.read_text(errors="replace")
    found = findings(text, compiler)
    (log.parent / "findings").write_text("".join(f"{line}\n" for line in found))
    modules = len(list(log.parent.glob("*_*/*_*.ko")))
    checked = "  CHECK " in text
    if status:
        last = ([line for line in found if "error:" in line] or
                text.strip().splitlines() or ["no output"])[-1]
        return Row(release, compiler, "", "failed", f"failed: {last}; see {log}")
    if compiler == "gcc" and not checked:
        return Row(release, compiler, "", "failed", f"sparse did not run; see {log}")
    if modules < len(SOURCES) - 2:
        return Row(release, compiler, "", "failed",
                   f"only {modules} modules; see {log}")
    if found:
        return Row(release, compiler, "", "failed",
                   f"{len(found)} findings; see {log.parent / 'findings'}")
    return Row(release, compiler, "", "ok", f"ok, {modules} modules")


def kernel_gcc(root, kdir):
    """The compiler that a header package names, such as gcc-12."""
    path = root / kdir[1:] / ".kernelvariables"
    found = re.search(r"\S*(gcc-\d+)", path.read_text()) \
        if path.exists() else None
    return f"{os.uname().machine}-linux-gnu-{found[1]}" if found else "gcc"


def out_dir(release, compiler):
    """Where the modules of one build are."""
    return cache_dir() / "check-kernels" / f"{release}-{compiler}"


@contextlib.contextmanager
def headers(kernel, progress):
    """(Suite, tree, versions, releases) for a word of KERNELS: those of the newest headers,
    and of the newest kernels if these are older.

    Until the context ends no other process changes the tree, or adds to it:
    each build does, see repair_headers(), as_clang() and unknown_flags(). Raises
    TollwayError if the packages cannot be fetched.
    """
    suite, series, count = suite_of(kernel)
    names = suite.newest("headers", series, count)
    # The signed kernel of an update can come some hours after its headers. Until then
    # the newest kernel is that of older ones.
    for image in suite.newest("image", series, count):
        release = image.removeprefix("linux-image-").removesuffix(f"-{architecture()}")
        names += [name for name in suite.newest("headers", release) if name not in names]
    if not names:
        raise TollwayError(
            f"{suite.name} has no headers of {kernel}" +
            "".join(f"; {problem}" for problem in suite.problems[:1]))
    with locked(suite.folder / "tree", lambda: progress.step(
            f"waiting for another run that uses {suite.name}")):
        root, versions = suite.tree([*names, *TOOLS], progress)
        yield suite, root, versions, [
            name[len("linux-headers-"):]
            for name in sorted(names, key=version_key)]


def rows(kernels, progress, compilers=COMPILERS):
    """All Rows of some words of KERNELS, each with some of the compilers."""
    for kernel in kernels:
        with contextlib.ExitStack() as stack:
            try:
                suite, root, versions, releases = stack.enter_context(
                    headers(kernel, progress))
            except TollwayError as error:
                yield Row(kernel, "-", "", "missing",
                          f"not available: {error}")
                continue
            for problem in suite.problems:
                yield Row(suite.name, "-", "", "old",
                          f"from an earlier run, as it cannot be updated: {problem}")
            for release in releases:
                for compiler in compilers:
                    progress.step(f"building for {release} with {compiler}")
                    yield build(suite, root, versions, release, compiler)


def modules(kernel, release, progress):
    """Folder with the modules for a release of a word of KERNELS. Raises TollwayError if the
    suite has no headers of this release, or if the modules cannot be built."""
    with headers(kernel, progress) as (suite, root, versions, releases):
        if release not in releases:
            raise TollwayError(f"{suite.name} has no headers of {release}")
        progress.step(f"building the modules for {release}")
        row = build(suite, root, versions, release, "gcc")
    if row.state != "ok":
        raise TollwayError(f"the modules for {release}: {row.result}")
    return out_dir(release, "gcc")
