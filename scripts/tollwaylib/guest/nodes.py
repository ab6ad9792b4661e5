# SPDX-License-Identifier: GPL-2.0
"""Nodes of the experiments, and commands in them."""

import itertools
import re
import shlex

from mininet.log import debug
from mininet.node import Node

from ..errors import TollwayError

# Of the sinks of all hosts.
SINK_PORT = 5001
# Characters that the shells of Mininet, which have a terminal, take at once: it
# is 4095, of which quotes take some.
LONGEST_LINE = 3400
COLOURS = re.compile("\x1b\\[[0-9;]*[A-Za-z]")


def shell(node, *commands):
    """Run commands in a node, all in one go.

    node: mininet Node; commands: str, each must succeed. Successive commands
    of ip, or of tc, become one batch: starting a process is slow in the lab. Returns
    what they printed; raises TollwayError with the command that failed.
    """
    if len(commands) > 1 and sum(map(len, commands)) > LONGEST_LINE:
        half = len(commands) // 2
        return shell(node, *commands[:half]) + shell(node, *commands[half:])
    for command in commands:
        debug(f"{node.name}# {command}\n")
    groups = []
    for program, group in itertools.groupby(
            commands, key=lambda command: command.split()[0]):
        group = list(group)
        if program in ("ip", "tc") and len(group) > 1:
            groups.append(group)
        else:
            groups += [[command] for command in group]
    script = " && ".join(f"piece={index}; {{ {_one_process(group)}; }}"
                         for index, group in enumerate(groups))
    output = node.cmd(f"{script}; echo \"exit:$?:$piece\"").strip()
    text, _, end = output.rpartition("exit:")
    status, _, piece = end.strip().partition(":")
    # The shells of Mininet have a terminal, on which tc may print in colours.
    text = COLOURS.sub("", text)
    if status == "0":
        return text
    group = groups[int(piece)] if piece.isdigit() else commands
    line = re.search(r"Command failed -:(\d+)", text)
    failed = group[int(line.group(1)) - 1] if line else "; ".join(group)
    reason = (text or output).strip().partition("\n")[0]
    raise TollwayError(f"in node {node.name}: {reason} (from: {failed})")


def _one_process(group):
    """Shell words that run commands of one program by one process."""
    if len(group) == 1:
        return group[0]
    words = " ".join(shlex.quote(line.split(None, 1)[1]) for line in group)
    return (f"printf '%s\\n' {words} | "
            f"{group[0].split()[0]} -batch -")


class PlainNode(Node):
    """A namespace in which only configure_network() changes settings."""

    preparation = ("ip link set lo up",)

    def config(self, **_params):
        return {}


class Router(PlainNode):
    """A node that forwards IPv4."""

    preparation = PlainNode.preparation + (
        "sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 "
        "net.ipv4.conf.default.rp_filter=0 net.ipv4.conf.all.send_redirects=0 "
        # No packet is for a socket of a router: save the lookup.
        "net.ipv4.ip_early_demux=0",)


def address_of(node):
    """IPv4 address of a host's only interface."""
    return node.intfList()[0].tollway_ip
