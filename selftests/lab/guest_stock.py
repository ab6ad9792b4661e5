# SPDX-License-Identifier: GPL-2.0
"""`tollway run --on host` where a stock kernel of the distribution is the host:
in real time, with what make install has put into /usr, and nothing else loaded.

Beside this script's results lies `installed`, what make install DESTDIR= made of
it, with the modules.* of depmod over all of that kernel's modules.
"""

import os
from pathlib import Path

import guest_base
import guest_host
from declared import MODULES
from guest_base import note, run

INSTALLED = Path("/run/tollway/out/installed")
IMAGE = Path("/run/tollway/image")
FOLDER = Path("/usr/lib/modules") / os.uname().release
# Real time, on emulated processors that may have to share one.
guest_host.LIMIT_S = 1800
guest_host.COMMAND = ["/usr/local/bin/tollway"]
# Links and round trips that half of a busy processor can keep up with.
guest_host.WORDS = [
    "--duration", "10", "--set", "warmup_s=2", "--set", "flows_per_class=1",
    "--set", "rate_mbit=0.3", "--set", "rate_tolerance=0.1",
    "--set", "rtt_tolerance_ms=50"]
# A minute's rest before each look is for a clock that does not wait.
guest_base.REST_S = 1


def environment():
    """A user's environment, but for a cache with the tools in it: to compile
    them takes minutes here."""
    return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin",
            "HOME": "/tmp", "MPLCONFIGDIR": "/tmp", "LC_ALL": "C.UTF-8",
            "TOLLWAY_CACHE": str(INSTALLED / "cache")}


guest_host.environment = environment


def loaded():
    """Our modules that are loaded."""
    names = {line.split()[0] for line in
             Path("/proc/modules").read_text().splitlines()}
    return sorted(names & set(MODULES))


def check_install():
    """modprobe finds the modules of the kernel and ours; none is loaded."""
    run(f"modprobe -d {IMAGE} overlay")
    run(f"mount -t overlay overlay -o lowerdir={INSTALLED}/usr:/usr /usr")
    run("mount -t overlay overlay -o "
        f"lowerdir={INSTALLED}/usr/lib/modules:{IMAGE}/lib/modules "
        "/usr/lib/modules")
    # The wrapper of the smoke set looks for modules elsewhere.
    guest_base.sysctl("/proc/sys/kernel/modprobe", "/sbin/modprobe")
    os.environ.clear()
    os.environ.update(environment())
    for name, module in (("net-sch-sbrm", "sch_sbrm"), ("tcp_rem", "tcp_sbrm")):
        said = run(f"modprobe -D {name}")
        assert f"{FOLDER}/updates/{module}.ko" in said.replace(
            "/lib/modules", "/usr/lib/modules").replace("/usr/usr", "/usr"), said
    assert not loaded(), loaded()
    note(os.uname().release)


def check_run():
    """A run ends well, in real time, with what it needs loaded for it."""
    guest_host.check_run()
    assert loaded() == ["sch_sbrm", "tcp_sbrm"], loaded()


def check_nothing_to_judge():
    """So does one of two other modules, whose status is 0."""
    guest_host.check_nothing_to_judge()
    assert loaded() == ["sch_fq_rr", "sch_sbrm", "tcp_pp", "tcp_sbrm"], loaded()


def check_all_are_found():
    """modprobe finds those that no run has needed, too."""
    for module in MODULES:
        run(f"modprobe {module}")
    assert loaded() == sorted(MODULES), loaded()


def check_sigint():
    """SIGINT while the flows send leaves nothing behind, and status 130."""
    guest_host.check_sigint()


def check_sigkill():
    """Nor does a run that is killed."""
    guest_host.check_sigkill()


if __name__ == "__main__":
    guest_base.main(globals())
