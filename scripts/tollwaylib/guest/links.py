# SPDX-License-Identifier: GPL-2.0
"""Links of the experiments: their shapers, queues and delays."""

from mininet.link import Intf, Link

from ..errors import TollwayError
from .nodes import SINK_PORT, shell

# Room of the queues that only delay: more than any experiment has in flight.
DELAY_LIMIT_PKTS = 1000000
# Far below any round trip; a packet of 1000 bytes at 400 Mb/s.
BURST_S = 20e-6
# Where pairs are sent, a burst is this part of a packet: by so much the second
# of a pair may be early, and so late may the timer be without loss of rate.
PAIRED_BURST = 32
ETHERNET_HEADER_BYTES = 14
# Of classes that only hold what a program may want to shape: more than any link.
FREE_RATE = "100gbit"



def burst_bytes(rate_bps, packet_bytes):
    """The burst of a shaper in bytes: a packet, or what its rate sends in 20 us.

    Each burst costs the lab a timer, and several Gb/s have hundreds of thousands of packets
    per second.
    """
    return max(packet_bytes, int(rate_bps * BURST_S / 8))


class TollwayIntf(Intf):
    """An interface with the rate, the queue and the delay of its link."""

    def config(self, mtu=1500, rate_bps=None, delay_ms=None, aqm=None,
               gso_max_segs=None, packet_bytes=None, ip_only=False,
               segments=False, gates=(), delays=False, **params):
        """Collect the commands that configure the interface.

        mtu: bytes of IP. rate_bps: bit/s on the wire, with the Ethernet header. delay_ms:
        propagation delay. delays: a case will delay packets here, even if delay_ms is 0. aqm:
        tc words of the leaf qdisc, such as "sbrm target 10"; needs rate_bps. gso_max_segs:
        largest number of segments of a super-packet of the host; 1 switches segmentation off.
        packet_bytes: bytes of a full packet on the wire, which is the burst of the shaper at
        rates for which burst_bytes() says so. ip_only: the Ethernet header takes no time.
        segments: the interface segments the super-packets of the host, so that the packets of
        one write of TCP leave back to back. gates: tc words of the queues of the classes 1:10,
        1:11 and so on, which do not shape. Traffic to a sink of ours is in the first of them,
        all other traffic in 1:1.
        """
        commands = [f"ip link set dev {self.name} mtu {mtu} up"]
        self.stab = f" stab overhead -{ETHERNET_HEADER_BYTES}" if ip_only \
            else ""
        self.packet, self.ip_only = \
            packet_bytes or mtu + ETHERNET_HEADER_BYTES, ip_only
        self.rate_bps, self.delay_ms = rate_bps, delay_ms or 0
        self.is_shaped, self.impairment = aqm is not None, ""
        if segments:
            commands.append(f"ethtool -K {self.name} tso off "
                            "tx-udp-segmentation off gso on")
        if gso_max_segs is not None:
            commands.append(f"ip link set dev {self.name} "
                            f"gso_max_segs {gso_max_segs}")
        self.has_netem = bool(delays or delay_ms or
                              rate_bps and not self.is_shaped)
        if self.has_netem:
            commands.append(self.netem_command())
        if self.is_shaped:
            # Only a root may have the table; what is below goes by it.
            place = "parent 1:1 handle 2:" if self.has_netem else \
                f"root handle 2:{self.stab}"
            commands += [
                f"tc qdisc replace dev {self.name} {place} htb default 1",
                self.shaper_command(), self.aqm_command(aqm)]
        self.gates = self.built_gates = dict(enumerate(gates, 0x10))
        commands += self.gate_commands()
        self.commands = commands
        # Of tc, to be given again with each new AQM that is one of these kinds.
        self.filters, self.classful = [], ()
        return super().config(up=None, **params)

    def gate_commands(self):
        """The tc commands of the classes of an interface that has gates."""
        if not self.gates:
            return []
        free = f"htb rate {FREE_RATE} quantum 60000"
        commands = [
            f"tc qdisc replace dev {self.name} root handle 1: htb default 1",
            f"tc class replace dev {self.name} parent 1: classid 1:1 {free}"]
        for number, queue in self.gates.items():
            commands += [
                f"tc class replace dev {self.name} parent 1: "
                f"classid 1:{number:x} {free}",
                f"tc qdisc add dev {self.name} parent 1:{number:x} {queue}"]
        return commands + [
            f"tc filter add dev {self.name} parent 1: protocol ip u32 "
            f"match ip dport {SINK_PORT} 0xffff flowid 1:10"]

    def change_gates(self, queue):
        """Give all gates another queue (words of tc); None restores their first queues."""
        wanted = {number: queue or built
                  for number, built in self.built_gates.items()}
        if wanted != self.gates:
            self.gates = wanted
            self.empty_gates()

    def empty_gates(self):
        """Drop all packets at the gates before the next case."""
        shell(self.node, *(
            f"tc qdisc {what}" for number, queue in self.gates.items()
            for what in (f"del dev {self.name} parent 1:{number:x}",
                         f"add dev {self.name} parent 1:{number:x} {queue}")))

    def netem_command(self):
        """The tc command of the netem that delays packets; it also has the rate if there is no
        shaper."""
        rate = f" rate {self.rate_bps}bit" \
            if self.rate_bps and not self.is_shaped else ""
        # What follows the delay in an impairment may begin with a time.
        delay = f" delay {self.delay_ms:g}ms" if self.delay_ms else ""
        return (f"tc qdisc replace dev {self.name} root handle 1:{self.stab} "
                f"netem limit {DELAY_LIMIT_PKTS}{rate}{delay} "
                f"{self.impairment}").rstrip()

    def shaper_command(self):
        """The tc command of the class with the rate."""
        # HTB sends as soon as it has no debt: with a burst of a packet an
        # idle link lets a pair go at once, which is no measure of anything.
        quantum = burst_bytes(self.rate_bps, self.packet)
        burst = self.packet // PAIRED_BURST if self.ip_only else quantum
        return (f"tc class replace dev {self.name} parent 2: classid 2:1 htb "
                f"rate {self.rate_bps}bit burst {burst} cburst {burst} "
                f"quantum {quantum}")

    def change(self, rate_bps, delay_ms):
        """Give the link another rate (bit/s) and delay (ms, or None).

        Raises TollwayError if it has no shaper or no netem for them.
        """
        before = self.rate_bps, self.delay_ms
        self.rate_bps, self.delay_ms = rate_bps, delay_ms or 0
        if bool(before[0]) != bool(rate_bps) or \
                self.delay_ms and not self.has_netem:
            raise TollwayError(f"the link {self.name} was built without a "
                               "shaper or delay, so its rate or delay cannot "
                               "be changed")
        if self.is_shaped and rate_bps != before[0]:
            shell(self.node, self.shaper_command())
        if self.has_netem:
            shell(self.node, self.netem_command())

    def impair(self, impairment):
        """Set another impairment of the netem, in words of tc such as "loss 1%", or none ("").

        Raises TollwayError if there is no netem.
        """
        if impairment == self.impairment:
            return
        if not self.has_netem:
            raise TollwayError(f"the link {self.name} has no delay to which "
                               f"{impairment!r} could be added")
        self.impairment = impairment
        shell(self.node, self.netem_command())

    def aqm_command(self, aqm):
        """The tc command that adds `aqm` as the leaf of the shaper."""
        return f"tc qdisc add dev {self.name} parent 2:1 handle 10: {aqm}"

    def change_aqm(self, aqm):
        """Replace the leaf by another qdisc."""
        filters = self.filters if aqm.split()[0] in self.classful else []
        shell(self.node, f"tc qdisc del dev {self.name} parent 2:1",
              self.aqm_command(aqm), *filters)


class TollwayLink(Link):
    """A veth pair whose two ends are TollwayIntf."""

    def __init__(self, node1, node2, port1=None, port2=None, intfName1=None,
                 intfName2=None, addr1=None, addr2=None, params1=None,
                 params2=None, **params):
        ends = [dict(params, **(end or {})) for end in (params1, params2)]
        super().__init__(node1, node2, port1=port1, port2=port2,
                         intfName1=intfName1, intfName2=intfName2,
                         addr1=addr1, addr2=addr2, intf=TollwayIntf,
                         params1=ends[0], params2=ends[1])
