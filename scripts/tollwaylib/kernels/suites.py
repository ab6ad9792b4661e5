# SPDX-License-Identifier: GPL-2.0
"""Packages of the distribution's other suites, fetched without installing them.

apt works on lists and a state of its own in the cache, so that the machine's
are never touched. The mirror is the one that the machine's apt is set to. A
package, with all that it depends on, is unpacked into a tree of its own suite,
in which programs run by chroot: each kernel meets the compiler and the C
library that its users have. Needs no root where users may make namespaces.
"""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

from ..errors import TollwayError
from ..paths import cache_dir, digest_of, locked

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# Lists are asked for again after this time, s.
LISTS_AGE_S = 24 * 3600
# What a tree has at its top, also where its suite has no merged /usr.
MERGED = ("bin", "sbin", "lib", "lib64")
NOT_UNPACKED = ("./usr/share/doc", "./usr/share/man", "./usr/share/locale")


def architecture():
    """The distribution's word for this machine, such as amd64. Raises TollwayError if this is
    no Debian system."""
    try:
        return subprocess.run(["dpkg", "--print-architecture"], text=True,
                              stdout=subprocess.PIPE, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        raise TollwayError("kernel packages are available on Debian only") from None


def mirrors():
    """{"Debian": URI, "Debian-Security": URI}, as this machine's apt has it. Raises
    TollwayError if apt has no mirror of Debian."""
    done = subprocess.run(
        ["apt-get", "indextargets", "--format",
         "$(ORIGIN) $(LABEL) $(REPO_URI)", "Created-By: Packages"], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    found = {}
    for line in done.stdout.splitlines():
        origin, _, rest = line.partition(" ")
        label, _, uri = rest.rpartition(" ")
        if origin == "Debian" and uri:
            found.setdefault(label, uri)
    if "Debian" not in found:
        raise TollwayError("apt on this machine has no Debian mirror, from which "
                           "kernel packages could be downloaded")
    return found


def version_key(name):
    """Sort key of names with version numbers in them; 7.3~rc7 before 7.3."""
    return [int(word) if word.isdigit() else (-1 if word == "~" else 0)
            for word in re.findall(r"\d+|~|[^\d~]+", name)]


class Suite:
    """A release of the distribution, with those that go with it.

    name: such as "sid". releases: those to take packages from. problems:
    sentences about packages that could not be fetched.
    """

    def __init__(self, name, releases):
        self.name, self.releases = name, releases
        self.folder = cache_dir() / "suites" / name
        self.root = self.folder / "root"
        self.problems = []
        self.updated = False

    def _apt(self, program, *words, **keywords):
        """Run apt-get or apt-cache on our own lists; the done process."""
        options = {
            "Dir::Etc::SourceList": self.folder / "sources.list",
            "Dir::Etc::SourceParts": self.folder / "empty",
            "Dir::Etc::Preferences": "/dev/null",
            "Dir::Etc::PreferencesParts": self.folder / "empty",
            "Dir::State": self.folder / "state",
            "Dir::State::Status": self.folder / "status",
            "Dir::Cache": self.folder / "cache",
            "Acquire::Languages": "none",
            "Acquire::Retries": 2,
            "APT::Sandbox::User": "root",
            "APT::Install-Recommends": "false"}
        if os.geteuid():
            del options["APT::Sandbox::User"]
        argv = [program, "-q", *(word for name, value in options.items()
                                 for word in ("-o", f"{name}={value}"))]
        return subprocess.run([*argv, *words], text=True, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE,
                              env=dict(os.environ, LC_ALL="C"), **keywords)

    def update(self):
        """Get the lists of packages, once a day; problems go to `problems`."""
        if self.updated:
            return
        self.updated = True
        for name in ("empty/partial", "state/lists/partial", "cache/archives/partial"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "status").touch()
        with locked(self.folder / "apt"):
            self._update()

    def _update(self):
        known, lines = mirrors(), []
        signed = f"[signed-by={KEYRING}] " if KEYRING.exists() else ""
        for release in self.releases:
            label = "Debian-Security" if release.endswith("-security") \
                else "Debian"
            if label in known:
                lines.append(f"deb {signed}{known[label]} {release} main\n")
        sources, stamp = self.folder / "sources.list", self.folder / "updated"
        wanted = "".join(lines)
        if sources.exists() and sources.read_text() == wanted and \
                stamp.exists() and \
                time.time() - stamp.stat().st_mtime < LISTS_AGE_S:
            return
        sources.write_text(wanted)
        done = self._apt("apt-get", "update")
        # apt is content with old lists: that is said, and no failure.
        said = [line.partition(" ")[2] for line in done.stderr.splitlines()
                if re.match(r"[EW]: ", line)]
        self.problems += said[:2]
        if not said:
            stamp.touch()

    def newest(self, kind, series, count=1):
        """Newest kernel packages of a kind (headers, image), newest first.

        series: what their version begins with, such as "6.1.". At most one
        package of each series x.y and `count` in all; [] if there is none. A count of
        -1 is the oldest package: a release before its security updates.
        """
        self.update()
        arch = architecture()
        done = self._apt("apt-cache", "search", "--names-only",
                         f"^linux-{kind}-[0-9].*-{arch}$")
        # Not those for clouds, and not the real-time ones.
        names = [line.split()[0] for line in done.stdout.splitlines()]
        names = [name for name in names
                 if re.fullmatch(rf"linux-{kind}-{re.escape(series)}[^-]*"
                                 rf"(-\d+)?-{arch}", name)]
        if count < 0:
            return sorted(names, key=version_key)[:1]
        chosen = {}
        for name in sorted(names, key=version_key, reverse=True):
            chosen.setdefault(re.search(r"\d+\.\d+", name)[0], name)
        return list(chosen.values())[:count]

    def _needs(self, words):
        """{file name: URI} of packages and all that they depend on."""
        # With another cache, as apt names no file that it has fetched already.
        done = self._apt("apt-get", "-o",
                         f"Dir::Cache::Archives={self.folder / 'empty'}",
                         "--print-uris", "--yes", "install", *words)
        found = re.findall(r"^'([^']+)' (\S+)", done.stdout, re.MULTILINE)
        if done.returncode or not found:
            said = re.findall(r"^E: (.*)", done.stderr, re.MULTILINE)
            raise TollwayError(f"{self.name}: " +
                               (said[0] if said else "no such packages"))
        return {name: uri for uri, name in found}

    def tree(self, packages, progress=None):
        """A tree with packages and all that they depend on; (Path, versions).

        versions: names of the package files in it. It is kept until one of them
        has a new version. If the new packages cannot be fetched, the old tree is used.

        Raises TollwayError if a package cannot be fetched and there is no old tree.
        """
        self.update()
        stamp = self.folder / "packages"
        with locked(self.folder / "apt"):
            versions = sorted(self._needs(packages))
            have = stamp.read_text().split() if stamp.exists() else []
            if have != versions:
                if progress:
                    progress.step(f"fetching {len(versions)} packages of "
                                  f"{self.name}")
                done = self._apt("apt-get", "--yes", "--download-only",
                                 "install", *packages)
                if done.returncode:
                    said = re.findall(r"^E: (.*)", done.stderr, re.MULTILINE)
                    raise TollwayError(f"{self.name}: {(said or ['?'])[0]}")
                self._unpack_root(versions, progress)
                stamp.write_text("\n".join(versions))
        return self.root, versions

    def _unpack_root(self, versions, progress):
        if progress:
            progress.step(f"unpacking {self.name}")
        (self.folder / "packages").unlink(missing_ok=True)
        shutil.rmtree(self.root, ignore_errors=True)
        for name in MERGED:
            (self.root / "usr" / name).mkdir(parents=True)
            (self.root / name).symlink_to(f"usr/{name}")
        for name in ("proc", "dev", "tmp", "etc", "run"):
            (self.root / name).mkdir()
        archives = self.folder / "cache/archives"
        for name in versions:
            unpack(archives / name, self.root)
            (archives / name).unlink()
        # What the maintainers' scripts would have done that is needed here.
        if not (self.root / "usr/bin/awk").exists():
            (self.root / "usr/bin/awk").symlink_to("mawk")

    def image(self, name, progress=None):
        """A kernel package and those it consists of, unpacked; a Path.

        In it is lib/modules/VERSION; kernel and config are there as well in
        newer suites, else boot/vmlinuz-VERSION and boot/config-VERSION.

        Raises TollwayError if the package cannot be fetched.
        """
        self.update()
        with locked(self.folder / "apt"):
            files = {file: uri for file, uri in self._needs([name]).items()
                     if re.match(r"linux-(image|modules|binary|base)-\d", file)}
            folder = self.folder / f"{name}-{digest_of(*sorted(files))[:12]}"
            if (folder / "complete").exists():
                return folder
            if progress:
                progress.step(f"fetching {name}")
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            (folder / "usr/lib").mkdir(parents=True)
            (folder / "lib").symlink_to("usr/lib")
            done = self._apt("apt-get", "download",
                             *(file.split("_")[0] for file in files),
                             cwd=folder)
            archives = sorted(folder.glob("*.deb"))
            if done.returncode or not archives:
                said = re.findall(r"^E: (.*)", done.stderr, re.MULTILINE)
                raise TollwayError(f"{name}: {(said or ['?'])[0]}")
            for archive in archives:
                unpack(archive, folder)
                archive.unlink()
            version = next((folder / "lib/modules").iterdir()).name
            subprocess.run(["depmod", "-b", str(folder), version], check=True)
            (folder / "complete").touch()
        return folder


def unpack(archive, root):
    """Unpack a package's files below a directory, through its links. Raises TollwayError if the
    package cannot be unpacked."""
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(archive)],
                          stdout=subprocess.PIPE) as source:
        done = subprocess.run(
            ["tar", "-x", "-C", str(root), "--keep-directory-symlink",
             "--no-same-owner", *(f"--exclude={name}" for name in NOT_UNPACKED)],
            stdin=source.stdout, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode or source.returncode:
        raise TollwayError(f"{archive.name} cannot be unpacked: "
                           f"{done.stderr.strip()}")


# Mount /proc, /dev and pairs of directories below a tree, then run there.
ENTER = r"""
set -e
root=$1
shift
for dir in proc dev; do mount --rbind "/$dir" "$root/$dir"; done
while [ "$1" != -- ]; do
	mkdir -p "$root$2"
	mount --bind "$1" "$root$2"
	shift 2
done
shift
exec chroot "$root" /usr/bin/env -i HOME=/tmp LC_ALL=C.UTF-8 \
	PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
"""


def run_in(root, binds, argv, **keywords):
    """Run a command in a tree; the done process. It ends with this process, even if that is
    killed.

    binds: {directory of the host: absolute path in the tree}.
    """
    words = [str(word) for pair in binds.items() for word in pair]
    unshare = ["setpriv", "--pdeathsig", "KILL",
               "unshare", "--mount", "--pid", "--fork", "--kill-child"] + \
        (["--user", "--map-root-user"] if os.geteuid() else [])
    return subprocess.run(
        [*unshare, "sh", "-c", ENTER, "enter", str(root), *words, "--",
         *map(str, argv)], stdin=subprocess.DEVNULL, check=False, **keywords)
