# SPDX-License-Identifier: GPL-2.0
"""A stock kernel of the distribution under qemu as a place to run at.

The kernel is the distribution's package, signed and unmodified. It is unpacked, and not
installed. Its processors are emulated, in real time, without KVM and without root. Its
file system is the root of the host, read-only. The runs are those of the lab, but
programs take time, and there are several processors. They show that the modules work;
measured rates have no meaning.
"""

import gzip
import json
import lzma
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .. import errors, programs
from ..errors import TollwayError
from ..kernels import build, compatibility
from ..kernels.usermode import QEMU_FILES, kernel as own_kernel
from ..paths import TOP, cache_dir, digest_of, locked
from . import limits
from .machine import BUILD, OUT, Lab
from .provenance import module_versions, tool_versions

# The word for the kernel of our own that watches locks.
DEBUG = "debug"
PROCESSORS = 2
# They take turns. Each in a thread of its own, one can meet memory that qemu is
# mapping anew for another (qemu 10 ends: "iotlb_to_section: Assertion"), or an
# instruction that the guest's kernel is patching ("Oops: int3").
THREADS = "tcg,thread=single"
MEMORY_MB = 1024
# Modules the initramfs needs to find the root, with those they need.
ROOT_MODULES = ("virtio_pci", "9pnet_virtio", "9p")


@dataclass(frozen=True)
class StockKernel:
    """An unpacked kernel package. flavour: what tests ask a lab kernel for."""
    version: str
    package: str
    folder: Path
    flavour: str = "stock"

    def _file(self, name):
        """A file of the kernel, which have been with its modules since 7.3."""
        path = self.folder / "boot" / f"{name}-{self.version}"
        return path if path.exists() else \
            self.folder / "lib/modules" / self.version / name

    @property
    def image(self):
        """The kernel itself."""
        return self._file("vmlinuz")

    @property
    def config(self):
        """Its configuration."""
        return self._file("config")


def stock_kernel(word, progress=None):
    """The StockKernel of a word for a kernel, such as 6.1 or newest. Raises TollwayError if the
    suite has no such kernel."""
    suite, series, count = compatibility.suite_of(word)
    names = suite.newest("image", series, count)
    if not names:
        raise TollwayError(f"{suite.name} has no kernel {word}" +
                           "".join(f"; {text}" for text in suite.problems[:1]))
    folder = suite.image(names[0], progress)
    version = next((folder / "lib/modules").iterdir()).name
    return StockKernel(version, names[0], folder)


def debug_kernel(progress=None):
    """The kernel of qemu/config.smp as a StockKernel, and the modules for it.

    All that it needs is built in, but it looks for modules like any other kernel.
    """
    built = own_kernel("smp", progress)
    folder = built.build / "image"
    with locked(folder):
        if not folder.exists():
            new = Path(f"{folder}.new")
            modules = new / "lib/modules" / built.version
            modules.mkdir(parents=True, exist_ok=True)
            for name in ("modules.order", "modules.builtin",
                         "modules.builtin.modinfo"):
                shutil.copy(built.build / name, modules)
            subprocess.run(["depmod", "-b", str(new), built.version],
                           check=True)
            shutil.copy(built.image, modules / "vmlinuz")
            shutil.copy(built.build / ".config", modules / "config")
            new.rename(folder)
    return StockKernel(built.version, "our own, with lockdep", folder,
                       DEBUG), build.modules(built)


def in_order(folder, wanted):
    """Files of modules with all modules that they need, in the order of loading.

    folder: lib/modules/VERSION. Modules that are built into the kernel are left out.
    """
    needs = {}
    for line in (folder / "modules.dep").read_text().splitlines():
        path, _, rest = line.partition(":")
        needs[path] = rest.split()
    by_name = {re.sub(r"\.ko(\.\w+)?$", "", path.rpartition("/")[2])
               .replace("-", "_"): path for path in needs}
    ordered = []
    for name in wanted:
        path = by_name.get(name)
        if path:
            # The last that is named is needed by the ones before it.
            ordered += [*reversed(needs[path]), path]
    return [folder / path for path in dict.fromkeys(ordered)]


def module_bytes(path):
    """A module without its compression."""
    data = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(data)
    if path.suffix == ".gz":
        return gzip.decompress(data)
    if path.suffix == ".zst":
        return subprocess.run(["zstd", "-dc", str(path)], check=True,
                              stdout=subprocess.PIPE).stdout
    return data


def cpio(entries):
    """A cpio archive (newc) of {name: bytes of a program, or None: folder}."""
    out = bytearray()

    def add(name, mode, data):
        path = name.encode() + b"\0"
        fields = (add.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path),
                  0)
        out.extend(b"070701" + b"".join(b"%08X" % field for field in fields))
        out.extend(path + b"\0" * (-(110 + len(path)) % 4))
        out.extend(data + b"\0" * (-len(data) % 4))
        add.inode += 1

    add.inode = 1
    for name, data in entries.items():
        add(name, 0o040755 if data is None else 0o100755, data or b"")
    add("TRAILER!!!", 0, b"")
    return bytes(out)


def initramfs(kernel):
    """The initramfs for a StockKernel, a file in the cache. Raises TollwayError if its program
    cannot be compiled."""
    source = QEMU_FILES / "first.c"
    key = digest_of(kernel.version, str(kernel.folder), source,
                    Path(__file__))[:12]
    path = cache_dir() / f"initramfs-{key}"
    with locked(path):
        if path.exists():
            return path
        program = Path(f"{path}.first")
        done = subprocess.run(
            ["gcc", "-static", "-Os", "-s", "-Wall", "-Wextra", "-Werror", "-o",
             str(program), str(source)], text=True, stderr=subprocess.PIPE,
            check=False)
        if done.returncode:
            raise TollwayError(f"{source.name} does not compile: {done.stderr}")
        files = in_order(kernel.folder / "lib/modules" / kernel.version,
                         ROOT_MODULES)
        entries = {"dev": None, "root": None, "init": program.read_bytes()}
        entries.update((f"{number:02d}.ko", module_bytes(file))
                       for number, file in enumerate(files))
        program.unlink()
        new = Path(f"{path}.new")
        new.write_bytes(cpio(entries))
        new.rename(path)
    return path


class Qemu(Lab):
    """A stock kernel, ready to boot any number of times; see Lab for run().

    word: for a kernel, such as 6.1, or DEBUG. What Lab calls virtual time is real
    here.
    """

    name = "the kernel in qemu"

    def __init__(self, word="6.1", progress=None):
        programs.need(programs.QEMU)
        self.temporary = tempfile.gettempdir()
        if word == DEBUG:
            self.kernel, self.modules = debug_kernel(progress)
        else:
            self.kernel = stock_kernel(word, progress)
            self.modules = compatibility.modules(
                word, self.kernel.version, progress)
        self.tools = build.tools()
        self.initramfs = initramfs(self.kernel)
        self.sessions = set()

    @staticmethod
    def is_of_kernel(line):
        """Is a line of the console of the kernel, and not of a program?"""
        return re.search(r"\[ *\d+\.\d{6}\]", line)

    def command(self, out_dir, uml_dir, seed, core, interactive,
                memory_mb=MEMORY_MB):
        """The command line that boots the kernel; seed and core go unused."""
        shared = {"root": ("/", True), "src": (TOP, True),
                  "out": (out_dir, False), "tools": (self.tools, True),
                  "modules": (self.modules, True),
                  "image": (self.kernel.folder, True)}
        nine_p = "trans=virtio,version=9p2000.L,msize=524288,cache=loose"
        src = "/run/tollway/src"
        first = (f"mount -t tmpfs tmpfs /run; mkdir -p {src}; "
                 f"mount -t 9p -o ro,{nine_p} src {src}; "
                 f"exec {src}/scripts/qemu/start")
        words = [
            "setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64",
            "-accel", THREADS, "-cpu", "max", "-smp", str(PROCESSORS),
            "-m", str(max(memory_mb, MEMORY_MB)), "-nodefaults", "-no-reboot",
            "-display", "none", "-serial", "stdio",
            "-kernel", str(self.kernel.image), "-initrd", str(self.initramfs),
            # The time before a line is the mark of the kernel, see is_of_kernel().
            "-append", "console=ttyS0 quiet panic=-1 oops=panic printk.time=1 "
            # A busy host is no broken timer, and what mitigations cost is lost.
            "no_timer_check mitigations=off random.trust_cpu=on "
            f'rdinit=/init -- -c "{first}"']
        for tag, (path, read_only) in shared.items():
            words += ["-virtfs", f"local,path={str(path).replace(',', ',,')},"
                      f"mount_tag={tag},security_model=none,multidevs=remap"
                      + (",readonly=on" if read_only else "")]
        return words


class QemuPlace:
    """Boots a stock kernel for each job, which takes about a minute. word: for a kernel, or DEBUG."""

    # It runs in real time, and each kernel takes several cores.
    parallel = False
    has_kernel = True

    def __init__(self, word="6.1"):
        self.word = word
        self.machine = None

    def prepare(self, progress):
        """Fetch and build what is missing."""
        self.machine = Qemu(self.word, progress)

    def run(self, job, folder, core, on_line):
        """Run a job; raw.json is in `folder` afterwards."""
        inside = dict(job, out_dir=OUT, bin_dir=f"{BUILD}/tools",
                      disposable=True, real_time=True)
        (folder / "job.json").write_text(json.dumps(inside))
        limit_s = limits.real_s(job)
        status = self.machine.run(
            ["/usr/bin/python3", "-m", "tollwaylib.guest.job",
             f"{OUT}/job.json"], folder, seed=job["seed"], core=core,
            wall_s=limit_s + limits.END_S, virtual_s=limit_s, on_line=on_line,
            memory_mb=limits.memory_mb(job))
        if status:
            raise errors.of_run(folder, status)

    def stop(self):
        """End what is running."""
        self.machine.stop()

    def provenance(self):
        """What the results of this place depend on."""
        kernel = self.machine.kernel
        text = kernel.config.read_text()
        return {"place": "qemu", "kernel": kernel.version,
                "package": kernel.package,
                "config_sha256": digest_of(kernel.config), "patches": [],
                "hz": int(re.search(r"^CONFIG_HZ=(\d+)$", text,
                                    re.MULTILINE)[1]),
                "modules": module_versions(self.machine.modules),
                "tools": tool_versions()}
