# SPDX-License-Identifier: GPL-2.0
"""Packet-pair sources with exact estimates, as fluids over one fair queue (PP94 4.2, 4.3 and
7).

Each source has a queue of its own. With n sources its share is mu = capacity/n. Packets
arrive at the queue at once, and acknowledgements arrive R after packets have left it. S is
the number of packets that were sent and are not acknowledged. A source knows mu and its
queue n = max(0, S - R mu), and sends at the rate

    continuous  (B - n)/J + mu, where J is 1.5 round trips below the setpoint B, and 0.8
                above it; computed all the time
    discrete    pole/RTT (B - n(before) - S + 2 mu RTT), computed once in an epoch, which
                lasts until what was sent at its beginning is acknowledged: RTT

or not at all if this is negative. In its first round trip it sends at the rate mu: the path
is full, and the queue is empty. A setpoint that is probed increases by `step` after `every`
round trips if the queue has come within `slack` of it. A loss, known R after it, multiplies
the setpoint by `cut`, at most once in a round trip. Packets for which the common buffer of
all queues has no room are lost from the longest queue.

PP94 4.2.1 has z^2 - z + pole = 0 for the discrete law, so that the queue oscillates without
end with a pole of 1. This regards S as a given signal. But S = n(before) + packets sent -
packets served, so n + S is known, and the law gives n = pole B - (1 - pole) R mu after one
epoch, with any pole. The queue does oscillate if RTT is not that of the epoch that ends, but
the present R + n/mu (`present`): then n(before) does not cancel.
"""

import cmath
import math
from dataclasses import dataclass

import numpy as np

from ..errors import TollwayError

# A round trip without queues has so many steps.
STEPS_PER_RTT = 200
ATTACK_UP, ATTACK_DOWN = 1.5, 0.8
# PP94 Table 2: of a setpoint that is probed, and what is left of it at least.
FIRST_SETPOINT = LEAST_SETPOINT = 5.0
# Packets that a queue may be below a setpoint which it has reached.
SLACK = 2.0


@dataclass(frozen=True)
class PairSetting:
    """law: continuous or discrete, with its pole. setpoint: B, packets, or 0: probed in steps
    of `step` after `every` round trips, and multiplied by `cut` after a loss. room: packets
    of all queues together. present: the discrete law uses the present RTT."""
    law: str = "continuous"
    pole: float = 0.9
    setpoint: float = 20.0
    step: float = 2.0
    every: int = 2
    cut: float = 0.75
    room: float = math.inf
    present: bool = False

    def __post_init__(self):
        if self.law not in ("continuous", "discrete"):
            raise TollwayError(f"there is no law {self.law}")


def eigenvalues(pole):
    """Of PP94's loop (4.2.1): z^2 - z + pole = 0."""
    root = cmath.sqrt(1 - 4 * pole)
    return (1 + root) / 2, (1 - root) / 2


def equilibrium(pole, setpoint, pipe):
    """Packets that wait in the discrete law's equilibrium, and the part of the share
    that is used: n = pole B - (1 - pole) R mu, or none, and less than all.

    pipe: R mu, packets.
    """
    queue = pole * setpoint - (1 - pole) * pipe
    if queue >= 0:
        return queue, 1.0
    # Nothing waits, S = x pipe: x = pole (B/pipe - x + 2).
    return 0.0, pole * (setpoint / pipe + 2) / (1 + pole)


class _Source:
    """The state of a source between two steps."""

    def __init__(self, setting, share, start_s):
        self.start_s = start_s
        self.setpoint = setting.setpoint or FIRST_SETPOINT
        self.rate = share
        self.queue = self.sent = self.served = 0.0
        self.before = 0.0       # n when the epoch began
        self.epoch_s, self.epoch_end_s = None, start_s
        self.rounds, self.round_end_s = 0, start_s
        self.losses, self.told = [], -math.inf


def simulate(capacity_pps, starts_s, rtt_s, setting, duration_s, sample_s,
             rates=()):
    """The course of the sources, and of their queues.

    starts_s: when each of them begins. rates: [(s, packets/s)] of the link, where
    it changes; a source knows its share at once. Returns a dict of arrays: t_s; backlog, sent and
    served (packets), setpoint, and drops so far, with a row for each source.

    Raises TollwayError if stopped() returns True.
    """
    share = capacity_pps / len(starts_s)
    step_s = rtt_s / STEPS_PER_RTT
    sources = [_Source(setting, share, start_s) for start_s in starts_s]
    # What was served R ago is acknowledged now.
    past = np.zeros((STEPS_PER_RTT, len(sources)))
    drops = np.zeros(len(sources))
    seen, next_s, rates = [], 0.0, list(rates)
    for number in range(math.ceil(duration_s / step_s) + 1):
        now = number * step_s
        while rates and now >= rates[0][0]:
            capacity_pps = rates.pop(0)[1]
            share = capacity_pps / len(starts_s)
        if now >= next_s - step_s / 2:
            seen.append((now, [(one.queue, one.sent, one.served, one.setpoint,
                                lost) for one, lost in zip(sources, drops)]))
            next_s += sample_s
        acked = past[number % STEPS_PER_RTT].copy()
        past[number % STEPS_PER_RTT] = [one.served for one in sources]
        for one, known in zip(sources, acked):
            if now >= one.start_s + rtt_s:
                _control(one, setting, share, rtt_s, one.sent - known, now)
            if now >= one.start_s:
                one.queue += one.rate * step_s
                one.sent += one.rate * step_s
        _serve(sources, capacity_pps * step_s)
        _lose(sources, drops, setting.room, now)
    times, rows = zip(*seen)
    columns = np.array(rows).transpose(2, 1, 0)
    return {"t_s": np.array(times), **dict(zip(
        ("backlog", "sent", "served", "setpoint", "drops"), columns))}


def _control(one, setting, share, rtt_s, outstanding, now):
    """The rate from now on."""
    queue = max(outstanding - rtt_s * share, 0.0)
    rtt = rtt_s + queue / share
    if not setting.setpoint:
        _probe(one, setting, queue, rtt_s, rtt, now)
    if setting.law == "continuous":
        room = one.setpoint - queue
        one.rate = max(room / (rtt * (ATTACK_UP if room >= 0 else
                                      ATTACK_DOWN)) + share, 0.0)
    elif now >= one.epoch_end_s:
        took_s = rtt if setting.present else one.epoch_s or rtt_s
        one.rate = max(setting.pole / took_s * (
            one.setpoint - one.before - outstanding + 2 * share * took_s), 0.0)
        one.before, one.epoch_s, one.epoch_end_s = queue, rtt, now + rtt


def _probe(one, setting, queue, rtt_s, rtt, now):
    """PP94 section 7."""
    if one.losses and now >= one.losses[0] + rtt_s:
        one.losses.clear()
        if now >= one.told + rtt:
            one.told, one.rounds = now, 0
            one.setpoint = max(setting.cut * one.setpoint, LEAST_SETPOINT
                               if one.setpoint > LEAST_SETPOINT else 0.0)
    if now < one.round_end_s:
        return
    one.round_end_s = now + rtt
    one.rounds += 1
    if one.rounds >= setting.every:
        one.rounds = 0
        if queue + SLACK >= one.setpoint:
            one.setpoint += setting.step


def _serve(sources, packets):
    """Equal parts of the link, and of what some do not need."""
    waiting = [one for one in sources if one.queue > 0]
    while waiting and packets > 1e-12:
        part = packets / len(waiting)
        for one in waiting:
            served = min(part, one.queue)
            one.queue -= served
            one.served += served
            packets -= served
        waiting = [one for one in waiting if one.queue > 1e-12]


def _lose(sources, drops, room, now):
    """The longest queue loses the packets for which there is no room."""
    excess = sum(one.queue for one in sources) - room
    if excess <= 0:
        return
    index = max(range(len(sources)), key=lambda one: sources[one].queue)
    longest = sources[index]
    longest.queue -= excess
    # It is not outstanding any more, PP94 section 6.
    longest.sent -= excess
    drops[index] += excess
    longest.losses.append(now)
