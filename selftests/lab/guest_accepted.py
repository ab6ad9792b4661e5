# SPDX-License-Identifier: GPL-2.0
"""Settings that the harness may write, tried on the modules."""

import guest_base
from guest_base import note, run


def tried(settings):
    """[what was refused, with the message] of the settings of one parameter."""
    refused = []
    for name, value in settings["sysctls"].items():
        was = run(f"sysctl -n {name}").strip()
        refused += complaint(["sysctl", "-q", "-w", f"{name}={value}"])
        run(["sysctl", "-q", "-w", f"{name}={was}"])
    for words in settings["queues"]:
        refused += complaint(f"tc qdisc replace dev ends root handle 1: {words}")
        run("tc qdisc del dev ends root", check=False)
    return refused


def complaint(words):
    """[a command with its message] if it fails, or []."""
    try:
        run(words)
    except AssertionError as error:
        return [str(error)]
    return []


def check_ends():
    """The least, the greatest value and each word of a parameter are accepted."""
    run("ip link add ends type veth peer name other")
    refused = {name: found for name, settings in
               guest_base.SETTINGS["given"].items() for found in [tried(settings)]
               if found}
    run("ip link del ends")
    for name, found in refused.items():
        note(f"{name}: {found}")
    assert not refused, sorted(refused)


if __name__ == "__main__":
    guest_base.main(globals())
