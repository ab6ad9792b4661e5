# SPDX-License-Identifier: GPL-2.0
"""Modules where modprobe finds them, as make install puts them there: the kernel
loads each when its qdisc or congestion control is first asked for, and only for
who may ask."""

import os
import shutil
import socket
import subprocess
from pathlib import Path

import guest_base
from declared import CONTROLS_OF, MODULES
from guest_base import Namespace, note, refused, run, sysctl

# The host's root is read-only and may have no /lib/modules: modprobe is told to
# look below another one, by the kernel, too.
ROOT = Path("/run/tollway/root")
FOLDER = ROOT / "lib/modules" / os.uname().release
MODPROBE = "/run/tollway/modprobe"
BUILT = Path("/run/tollway/build/modules")
CONGESTION_CONTROL = "/proc/sys/net/ipv4/tcp_congestion_control"
TCP_CONGESTION = 13


def install():
    """What make install does, on a disk of this guest."""
    if FOLDER.exists():
        return
    (FOLDER / "updates").mkdir(parents=True)
    for name in ("modules.order", "modules.builtin"):
        (FOLDER / name).touch()
    for module in MODULES:
        shutil.copy(BUILT / module / f"{module}.ko", FOLDER / "updates")
    run(f"depmod -b {ROOT}")
    Path(MODPROBE).write_text(f'#!/bin/sh\nexec /sbin/modprobe -d {ROOT} "$@"\n')
    os.chmod(MODPROBE, 0o755)
    sysctl("/proc/sys/kernel/modprobe", MODPROBE)


def install_unloaded(module):
    """The module is installed, and not loaded."""
    install()
    if loaded(module):
        run(f"rmmod {module}")
    assert not loaded(module)


def loaded(module):
    """Is it?"""
    return module in {line.split()[0] for line in
                      Path("/proc/modules").read_text().splitlines()}


def check_qdisc():
    """tc qdisc add ... sbrm, and fq_rr, load their modules."""
    for kind in ("sbrm", "fq_rr"):
        install_unloaded(f"sch_{kind}")
        with Namespace("a"):
            run(f"tc qdisc add dev lo root {kind} limit 100")
            assert loaded(f"sch_{kind}")
            said = run("tc qdisc show dev lo")
            note(said)
            assert f"qdisc {kind}" in said
            # While it is used it stays.
            assert "in use" in refused(f"rmmod sch_{kind}")
            run("tc qdisc del dev lo root")
        run(f"rmmod sch_{kind}")
        run(f"{MODPROBE} sch_{kind}")
        guest_base.cleanup()


def check_sysctl():
    """Each name, written to the sysctl, loads the module that has it."""
    before = sysctl(CONGESTION_CONTROL)
    for module, names in CONTROLS_OF.items():
        for name in names:
            install_unloaded(module)
            run(f"sysctl net.ipv4.tcp_congestion_control={name}")
            assert loaded(module) and sysctl(CONGESTION_CONTROL) == name
            assert Path(f"/proc/sys/net/ipv4/{module}").is_dir()
            sysctl(CONGESTION_CONTROL, before)
            # With the last user gone it can go.
            run(f"rmmod {module}")
        run(f"{MODPROBE} {module}")


def check_route():
    """A route's congctl does so, too."""
    install_unloaded("tcp_sbrm")
    with Namespace("a"):
        run("ip route add 192.0.2.0/24 dev lo congctl rm")
        assert loaded("tcp_sbrm")
        run("ip route del 192.0.2.0/24 dev lo")
    run(f"{MODPROBE} tcp_sbrm")


def check_socket():
    """A socket of root's loads it; one of a user's does not, but may use it
    once it is there."""
    install_unloaded("tcp_sbrm")
    program = ("import socket\ns = socket.socket()\n"
               "s.setsockopt(6, 13, b'rem')\nprint('rem taken')")
    user = ["setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all",
            "--bounding-set=-all"]

    def as_user():
        return subprocess.run([*user, "python3", "-c", program], text=True,
                              check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT).stdout

    assert "rem taken" not in as_user() and not loaded("tcp_sbrm")
    with socket.socket() as made:
        made.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"rem")
        assert loaded("tcp_sbrm")
    assert "rem taken" in as_user()


def check_user_namespace():
    """Root of a user namespace cannot have a module loaded."""
    install_unloaded("sch_sbrm")
    install_unloaded("tcp_sbrm")
    inside = ("ip link set lo up; tc qdisc add dev lo root sbrm; "
              "sysctl net.ipv4.tcp_congestion_control=sbrm; "
              "ip route add 192.0.2.0/24 dev lo congctl sbrm")
    said = run(["unshare", "--user", "--map-root-user", "--net", "sh", "-c",
                inside], check=False)
    note(said)
    for module in ("sch_sbrm", "tcp_sbrm"):
        if loaded(module):
            note(f"{module} was loaded")
    # The kernel lets it ask for qdiscs (by their alias), as for any of its own;
    # never for a congestion control.
    assert not loaded("tcp_sbrm"), said
    for module in MODULES:
        run(f"{MODPROBE} {module}")


if __name__ == "__main__":
    guest_base.main(globals())
