# SPDX-License-Identifier: GPL-2.0
"""The programs that the harness calls: their purposes and the packages that have them."""

import contextlib
import importlib.util
import shutil
import subprocess

from .errors import TollwayError

BUILD, KERNEL, LAB = "building", "the lab kernel", "the lab"
EXPERIMENTS, HOST, QEMU = "the experiments", "--on host", "--on qemu"
TRACE, IPERF3 = "--trace", "--traffic iperf3"
PASSAGES = "experiments that time each packet"
KERNELS, CHECK = "make check-kernels", "make check"
# Before a command that has to end when this process does, even if that is killed: it gets
# SIGTERM then.
WITH_US = ("setpriv", "--pdeathsig", "TERM")
# The same for all that it runs: sh and make -j do not always hand the signal on. The group of
# processes is that of a session of its own.
ALL_WITH_US = (*WITH_US, "sh", "-c",
               'trap "trap : TERM; kill 0; wait" TERM; "$@" & wait "$!"', "sh")

# Modules of Python, what needs them, and their packages.
MODULES = (
    ("mininet", (LAB, HOST), "mininet"),
    ("numpy", (EXPERIMENTS,), "python3-numpy"),
    ("scipy", (EXPERIMENTS,), "python3-scipy"),
    ("matplotlib", (EXPERIMENTS,), "python3-matplotlib"),
    ("jinja2", (EXPERIMENTS,), "python3-jinja2"),
    ("jsonschema", (EXPERIMENTS,), "python3-jsonschema"),
    ("rich", (EXPERIMENTS,), "python3-rich"),
    ("pytest", (CHECK,), "python3-pytest"))

PROGRAMS = (
    # program, what needs it, the package that has it
    ("gcc", (BUILD,), "gcc"),
    ("make", (BUILD,), "make"),
    ("flex", (KERNEL,), "flex"),
    ("bison", (KERNEL,), "bison"),
    ("bc", (KERNEL,), "bc"),
    ("patch", (KERNEL,), "patch"),
    ("tar", (KERNEL, KERNELS), "tar"),
    ("xz", (KERNEL,), "xz-utils"),
    ("mount", (LAB,), "mount"),
    ("setarch", (LAB,), "util-linux"),
    ("setpriv", (BUILD, LAB, HOST, QEMU), "util-linux"),
    ("prlimit", (HOST,), "util-linux"),
    ("taskset", (LAB,), "util-linux"),
    ("unshare", (HOST, KERNELS), "util-linux"),
    ("insmod", (LAB,), "kmod"),
    ("modinfo", (LAB, QEMU), "kmod"),
    ("modprobe", (HOST, QEMU), "kmod"),
    ("depmod", (QEMU,), "kmod"),
    ("ip", (LAB, EXPERIMENTS), "iproute2"),
    ("tc", (EXPERIMENTS,), "iproute2"),
    ("sysctl", (EXPERIMENTS,), "procps"),
    ("ethtool", (EXPERIMENTS,), "ethtool"),
    ("mnexec", (EXPERIMENTS,), "mininet"),
    ("ifconfig", (EXPERIMENTS,), "net-tools"),
    ("ping", (EXPERIMENTS,), "iputils-ping"),
    ("tcpdump", (TRACE, PASSAGES), "tcpdump"),
    ("iperf3", (IPERF3,), "iperf3"),
    ("qemu-system-x86_64", (QEMU,), "qemu-system-x86"),
    ("apt-get", (KERNELS,), "apt"),
    ("dpkg-deb", (KERNELS,), "dpkg"),
    ("chroot", (KERNELS,), "coreutils"),
    ("sparse", (CHECK,), "sparse"),
    ("chromium", (CHECK,), "chromium"),
)


def missing(*purposes):
    """[(program, package)] of programs that these purposes need and that are missing."""
    return [(name, package) for name, needed, package in PROGRAMS
            if set(needed) & set(purposes) and not shutil.which(name)]


def need(*purposes):
    """Raise TollwayError if a program is missing that a purpose needs."""
    lacks = missing(*purposes)
    if lacks:
        raise TollwayError(
            ", ".join(f"{name} (package {package})" for name, package in lacks)
            + f" {'is' if len(lacks) == 1 else 'are'} not installed: run "
            "scripts/install-dependencies")


@contextlib.contextmanager
def with_us(command, **keywords):
    """A subprocess.Popen of a command that ends with this process, and where this context
    ends by an error or an interrupt; and so does all that it runs."""
    with subprocess.Popen([*ALL_WITH_US, *command], start_new_session=True,
                          **keywords) as process:
        try:
            yield process
        except BaseException:
            # Nobody else may begin while it goes on.
            process.terminate()
            process.wait()
            raise


def require_modules(purpose=EXPERIMENTS):
    """Raise ModuleNotFoundError if a Python module is missing, so that the error comes before a
    long run, and not where the module is imported after it."""
    for name, purposes, _ in MODULES:
        if purpose in purposes and importlib.util.find_spec(name) is None:
            raise ModuleNotFoundError(name=name)
