# SPDX-License-Identifier: GPL-2.0
"""Is a queue of the law sbrm stable with the sources that use it?

The window of sources moves by kappa times the price for each acknowledged
packet, c packets/s come, and the price is gamma times the backlog b, so that

    b'(t) = - kappa c gamma (b(t - RTT) - its mean).

The product kappa c gamma RTT decides. A loop like this one without any other
delay is unstable from pi/2 on, and its oscillation already lasts below that;
sources average the marks as well. In the lab the queue was steady up to 0.8
and swung between empty and full from 1.4 on.
"""

import re
from dataclasses import dataclass

GOOD_MOST = 0.8
SWINGS_FROM = 1.4
# Of the module tcp_sbrm, where it is not loaded.
KAPPA = 0.1
_UNITS = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


@dataclass
class Loop:
    """A queue, and what the product is made of."""

    where: str
    kappa: float
    pps: float
    gamma: float    # for each packet, also where the queue counts bytes

    def gain(self, rtt_s):
        """The product for a round-trip time."""
        return self.kappa * self.pps * self.gamma * rtt_s

    def longest_s(self):
        """The longest round-trip time for which it is good."""
        return GOOD_MOST / self.gain(1.0)

    def gamma_for(self, rtt_s):
        """The gamma for which a round-trip time is just good."""
        return self.gamma * GOOD_MOST / self.gain(rtt_s)


def class_rates(text):
    """{class: bit/s} of the classes with a rate that `tc class show` named."""
    return {name: float(number) * _UNITS[unit] for name, number, unit in
            re.findall(r"^class \S+ (\S+) .*?\brate ([\d.]+)([KMGT]?)bit",
                       text, re.MULTILINE)}


def rate_of(name, queues, classes, speeds):
    """bit/s that a queue is served with, or None if that is not known.

    name: "device handle" of it in queues, {name: {kind, root, parent,
    options}}; classes: {device: class_rates()}; speeds: {device: bit/s}.
    """
    device = name.split()[0]
    one = queues[name]
    if one["root"]:
        return speeds.get(device)
    rate = classes.get(device, {}).get(one["parent"])
    if rate:
        return rate
    above = queues.get(f"{device} {(one['parent'] or '').partition(':')[0]}:")
    rate = (above or {}).get("options", {}).get("rate")
    # tc gives the rate of tbf in bytes/s.
    return 8 * rate if isinstance(rate, (int, float)) else None


def loops(queues, rates, kappa):
    """A Loop for each busy queue of the law sbrm whose rate is known.

    queues: of observe.changes(); rates: {name: bit/s or None}; kappa: of the
    sources, or None if that is not known.
    """
    for name, one in queues.items():
        options, packets = one.get("options", {}), one["grown"].get("packets")
        if one["kind"] != "sbrm" or options.get("law") != "sbrm" or \
                not packets or not rates.get(name) or "gamma" not in options:
            continue
        size = one["grown"]["bytes"] / packets
        yield Loop(f"the queue sbrm on {name.split()[0]}", kappa or KAPPA,
                   rates[name] / 8 / size, options["gamma"] *
                   (size if options.get("unit") == "bytes" else 1))


def verdict(loop, rtt_s=None):
    """(verdict, text, remedy) of a loop; rtt_s: the longest round-trip time of
    the connections that are known, if there is one."""
    parts = (f"kappa {loop.kappa:g}, c {loop.pps:.0f} packets/s, gamma "
             f"{loop.gamma:.3g} per packet")
    if rtt_s is None:
        return ("note", f"{loop.where} is stable for round trips of up to "
                f"{1000 * loop.longest_s():.0f} ms where senders have the source "
                f"direct ({parts})", "")
    gain = loop.gain(rtt_s)
    text = (f"{loop.where}: kappa c gamma RTT is {gain:.2f} ({parts}, RTT "
            f"{1000 * rtt_s:.0f} ms); ")
    remedy = (f"a gamma of at most {loop.gamma_for(rtt_s):.2g} per packet; see "
              "CHOOSING TARGET AND GAMMA in tc-sbrm(8)")
    if gain <= GOOD_MOST:
        return "ok", text + f"up to {GOOD_MOST:g} the queue is stable", ""
    if gain < SWINGS_FROM:
        return ("note", text + f"above {GOOD_MOST:g} it begins to oscillate",
                remedy)
    return ("wrong", text + f"from {SWINGS_FROM:g} on it oscillates between "
            "empty and full", remedy)
