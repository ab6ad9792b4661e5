# SPDX-License-Identifier: GPL-2.0
"""What is between TCP and the wire on hosts: queues, offloads, bridges, tunnels."""

import socket
import struct
from collections import namedtuple

from guest_base import Namespace, mac, quiet, wait_for_links
from guest_slots import SETPOINT
from pp_bench import SYSCTL
from rtnl import NLM_F_ACK, NLM_F_DUMP, Rtnl, attr, parse

# genetlink.h, wireguard.h
NETLINK_GENERIC, GENL_ID_CTRL = 16, 16
CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 3, 1, 2
WG_CMD_GET_DEVICE, WG_CMD_SET_DEVICE = 0, 1
(WGDEVICE_A_IFNAME, WGDEVICE_A_PRIVATE_KEY, WGDEVICE_A_PUBLIC_KEY,
 WGDEVICE_A_LISTEN_PORT, WGDEVICE_A_PEERS) = 2, 3, 4, 6, 8
WGPEER_A_PUBLIC_KEY, WGPEER_A_ENDPOINT, WGPEER_A_ALLOWEDIPS = 1, 4, 9
WGALLOWEDIP_A_FAMILY, WGALLOWEDIP_A_IPADDR, WGALLOWEDIP_A_CIDR_MASK = 1, 2, 3
WG_PORT = 51820
# {kind: (bytes of a full packet on the wire, of them data)}: 66 of the inner packet, and 50
# of VXLAN with both headers of Ethernet, or 74 of WireGuard without the inner one.
TUNNELS = {"vxlan": (1514, 1398), "wireguard": (1494, 1368)}
# Queues that tell flows apart by what the outer headers say. In the lab a packet still has the
# hash that TCP gave it, and queues would use that; on a wire there are headers only.
BY_HEADERS = ("filter add dev right parent 10: protocol ip prio 1 handle 1 flow hash keys "
              "src,dst,proto,proto-src,proto-dst divisor 1024")


class Setup(namedtuple("Setup", "queue card gro bridge tunnel train setpoint",
                       defaults=("noqueue", "nic", False, None, None, 2, SETPOINT))):
    """How hosts are set up; a call changes a path of pp_bench.fair_path() to that.

    queue: root qdisc of the sender's device. card: what splits super-packets: "stack", before
    the qdisc (gso_max_segs 1); "nic", the device, after it, as cards with TSO do; or "veth",
    nobody, as in containers: the next device has it. gro: of the receiver's device. bridge: the
    sender's link leads through one ("host"), or the bottleneck is the port of one ("bottleneck").
    tunnel: a kind of TUNNELS from end to end. train, setpoint: the sysctls.
    """

    def __call__(self, path):
        cards(path, self.card, self.gro)
        if self.bridge:
            bridge(path, self.bridge)
        if self.tunnel:
            tunnel(path, self.tunnel)
        if self.queue != "noqueue":
            path.s.run(f"tc qdisc replace dev right root {self.queue}")
        path.s.sysctl(SYSCTL + "train", self.train)
        path.s.sysctl(SYSCTL + "setpoint", self.setpoint)

    def __str__(self):
        return (f"[{self.queue}, {self.card}{', gro' if self.gro else ''}"
                f"{', bridge ' + self.bridge if self.bridge else ''}"
                f"{', ' + self.tunnel if self.tunnel else ''}"
                f"{f', train {self.train} of {self.setpoint}' if self.train != 2 else ''}]")


def cards(path, card, gro):
    """Who splits super-packets, and whether the receiver merges packets."""
    ends = ((path.s, "right"), (path.d, "left"))
    for space, device in ends:
        if card != "stack":
            space.run(f"ip link set dev {device} gso_max_segs 65535")
        if card == "nic":
            space.run(f"ethtool -K {device} tso off tx-udp_tnl-segmentation off "
                      "tx-udp_tnl-csum-segmentation off")
        if gro:
            space.run(f"ethtool -K {device} gro on")


def bridge(path, at):
    """A bridge at r1, one of whose ports is the bottleneck, or one between s and r1."""
    if at == "bottleneck":
        path.r1.batch("ip", ["link add name hub type bridge stp_state 0",
                             "link set left master hub", "link set right master hub",
                             "link set hub up"])
        path.s.run(f"ip neigh replace 10.0.0.2 lladdr {mac(4)} dev right nud permanent")
        path.r2.batch("ip", [
            "route del 10.0.0.0/24", "addr add 10.0.0.2/24 dev left",
            f"neigh replace 10.0.0.1 lladdr {mac(1)} dev left nud permanent"])
        return
    hub = Namespace("n")
    quiet(hub)
    path.r1.run("ip link set dev left netns n")
    hub.batch("ip", [
        f"link set left address {mac(21)} up",
        "link add name hub type bridge stp_state 0", "link set left master hub",
        "link add right type veth peer name left netns r1",
        f"link set right address {mac(22)} master hub up", "link set hub up"])
    path.r1.batch("ip", [
        f"link set left address {mac(2)} up", "addr add 10.0.0.2/24 dev left",
        f"neigh add 10.0.0.1 lladdr {mac(1)} dev left nud permanent"])
    wait_for_links((path.s, "right"), (hub, "left"), (hub, "right"), (path.r1, "left"))


def tunnel(path, kind):
    """From s to d, through all that is between."""
    path.size, path.payload = TUNNELS[kind]
    path.to = "10.9.0.2"
    ends = ((path.s, "right", "10.0.0.1", "10.0.2.2"), (path.d, "left", "10.0.2.2", "10.0.0.1"))
    for number, (space, device, here, there) in enumerate(ends, 1):
        space.batch("ip", [
            f"link add tun type vxlan id 1 local {here} remote {there} dstport 4789 "
            f"dev {device}" if kind == "vxlan" else "link add tun type wireguard",
            f"addr add 10.9.0.{number}/24 dev tun"])
    if kind == "wireguard":
        keys = [Genl.begin(space, bytes([number] * 32)) for number, (space, *_) in
                enumerate(ends, 1)]
        for (space, *_, there), key in zip(ends, reversed(keys)):
            Genl.peer(space, key, there)
    back = path.d.run("ip route show 10.0.0.0/8")
    for space, *_ in ends:
        space.run("ip link set tun up")
    if "quickack" in back:
        path.d.run("ip route change 10.9.0.0/24 dev tun proto kernel scope link "
                   "src 10.9.0.2 quickack 1")
    # A FIFO has no classes.
    if path.stats().kind != "pfifo":
        path.r1.run("tc " + BY_HEADERS)


class Genl(Rtnl):
    """Generic netlink to WireGuard, in the namespace where it is made."""

    def __init__(self):
        super().__init__(NETLINK_GENERIC)
        (_, body), = self.send(GENL_ID_CTRL, NLM_F_ACK, self.head(CTRL_CMD_GETFAMILY) + attr(
            CTRL_ATTR_FAMILY_NAME, b"wireguard\0"))
        self.family, = struct.unpack("=H", parse(body[4:])[CTRL_ATTR_FAMILY_ID])

    @staticmethod
    def head(command):
        """struct genlmsghdr, version 1."""
        return struct.pack("=BBH", command, 1, 0)

    def device(self, command, flags, *attributes):
        """One message about the device tun; {type: payload} of the last answer."""
        found = {}
        for _, body in self.send(self.family, flags, self.head(command) + attr(
                WGDEVICE_A_IFNAME, b"tun\0") + b"".join(attributes)):
            found = parse(body[4:])
        return found

    @classmethod
    def begin(cls, space, private):
        """Give tun a port and a key; the public one."""
        with space:
            link = cls()
            link.device(WG_CMD_SET_DEVICE, NLM_F_ACK, attr(WGDEVICE_A_PRIVATE_KEY, private),
                        attr(WGDEVICE_A_LISTEN_PORT, struct.pack("=H", WG_PORT)))
            return link.device(WG_CMD_GET_DEVICE, NLM_F_DUMP)[WGDEVICE_A_PUBLIC_KEY]

    @classmethod
    def peer(cls, space, public, address):
        """Who is at the other end, and what is sent to it: all."""
        endpoint = struct.pack("=H", socket.AF_INET) + struct.pack(
            ">H4s8x", WG_PORT, socket.inet_aton(address))
        allowed = (attr(WGALLOWEDIP_A_FAMILY, struct.pack("=H", socket.AF_INET)) +
                   attr(WGALLOWEDIP_A_IPADDR, bytes(4)) +
                   attr(WGALLOWEDIP_A_CIDR_MASK, b"\0"))
        with space:
            cls().device(WG_CMD_SET_DEVICE, NLM_F_ACK, nest(WGDEVICE_A_PEERS, nest(0, (
                attr(WGPEER_A_PUBLIC_KEY, public) + attr(WGPEER_A_ENDPOINT, endpoint) +
                nest(WGPEER_A_ALLOWEDIPS, nest(0, allowed))))))


def nest(kind, data):
    """An attribute that holds others."""
    return attr(kind | 0x8000, data)
