# SPDX-License-Identifier: GPL-2.0
"""A reference scheduler: fq_rr as its manual says, written apart from it.

Everything is the plain form of the rule: the longest queue is found by looking
at all, the next packet of wfq too. Flows are numbers, packets (number, size).
"""

import collections

from rtnl import DROP_LAST, DROP_LONGEST, DRR, RR, WFQ


class Flow:
    """One queue and what the rules remember of it."""

    def __init__(self):
        self.packets = collections.deque()
        self.credit = 0
        self.finish = 0
        self.turn = 0       # number of the turn that the credit is for
        self.changed = 0    # when its length in packets changed last
        self.most = 0

    def size(self):
        """Bytes."""
        return sum(size for _, size in self.packets)


class Reference:
    """The queues of one fq_rr; weights by flow, quantum in bytes."""

    def __init__(self, service, overflow, in_bytes, limit, quantum,
                 weights=None, reserve=0):
        self.service, self.overflow, self.in_bytes = service, overflow, in_bytes
        self.limit, self.quantum, self.reserve = limit, quantum, reserve
        self.weights = weights or {}
        self.flows = collections.defaultdict(Flow)
        self.round = []
        self.clock = self.virtual = self.turn = 0
        self.emptied = set()    # by drops for the last packet
        self.events = self.own = 0
        self.last_drops = self.longest_drops = self.new = self.most = 0
        self.owners, self.refused = set(), 0

    def __len__(self):
        return sum(len(flow.packets) for flow in self.flows.values())

    def backlog(self):
        """Bytes in all queues."""
        return sum(flow.size() for flow in self.flows.values())

    def tied(self):
        """Are several queues the longest?"""
        lengths = sorted(self.length(name) for name in self.busy())
        return lengths[-2:-1] == lengths[-1:] != []

    def busy(self):
        """Flows with packets."""
        return [name for name, flow in self.flows.items() if flow.packets]

    def weight(self, name):
        """Weight of a flow."""
        return self.weights.get(name, 1)

    def fits(self):
        """Is there room for one more reservation?"""
        return (len(self.owners) + 1) * self.reserve <= self.limit

    def beyond(self, name):
        """Packets beyond those that the flow owns."""
        own = self.reserve if name in self.owners else 0
        return max(len(self.flows[name].packets) - own, 0)

    def is_entitled(self, name):
        """Would one packet more be within what the flow owns?"""
        packets = len(self.flows[name].packets)
        return packets < self.reserve and (name in self.owners if packets
                                           else self.fits())

    def length(self, name):
        """Length in the unit of the rule."""
        return self.flows[name].size() if self.in_bytes else self.beyond(name)

    def longest(self):
        """The longest queue of those that have more than they own; of equals
        the last that came to its length. Or None."""
        return max(filter(self.beyond, self.busy()), default=None,
                   key=lambda name: (self.length(name),
                                     self.flows[name].changed))

    def _changed(self, name):
        self.clock += 1
        self.flows[name].changed = self.clock

    def _cost(self, size):
        return 1 if self.service == RR else size

    def _allotment(self, name):
        return self.weight(name) * (self.quantum if self.service == DRR else 1)

    def _due(self, name):
        """Its first packet can start now."""
        flow = self.flows[name]
        size = flow.packets[0][1]
        flow.finish = self.virtual + (size << 16) // self.weight(name)

    def _gone(self, name):
        self.owners.discard(name)
        if name in self.round:
            self.round.remove(name)
        if not self.busy():
            # Nobody is left to whom anything could be owed, or who has a turn.
            self.turn += 1
            for flow in self.flows.values():
                flow.credit = 0

    def _join(self, name):
        """Its next turn comes after those of all others; what it owes has been
        paid by each turn that it would have had since its last one."""
        flow, turn = self.flows[name], self.turn + 1
        if flow.turn < turn:
            flow.credit = min(flow.credit, 0)
            while flow.turn < turn:
                flow.turn += 1
                flow.credit = min(flow.credit + self._allotment(name),
                                  self._allotment(name))
        self.round.append(name)

    def _pass(self):
        """The turn goes to the next one."""
        name = self.round.pop(0)
        flow = self.flows[name]
        flow.credit += self._allotment(name)
        flow.turn += 1
        self.round.append(name)

    def enqueue(self, name, number, size):
        """Numbers that are dropped for it, maybe its own."""
        dropped = []
        self.emptied.clear()
        while len(self) >= self.limit:
            victim = self.longest()
            if self.overflow == DROP_LAST or victim is None or (
                    self.overflow != DROP_LONGEST and
                    not self.is_entitled(name) and
                    self.length(name) + (size if self.in_bytes else 1) >
                    self.length(victim)):
                self.last_drops += 1
                return dropped + [number]
            flow = self.flows[victim]
            self.events += 1
            before = len(dropped)
            if self.overflow == DROP_LONGEST:
                dropped += [packet[0] for packet in flow.packets]
                flow.packets.clear()
            else:
                dropped.append(flow.packets.pop()[0])
            self.longest_drops += len(dropped) - before
            if victim == name:
                self.own += len(dropped) - before
            self._changed(victim)
            if not flow.packets:
                self._gone(victim)
                self.emptied.add(victim)
        flow = self.flows[name]
        flow.packets.append((number, size))
        flow.most = max(flow.most, len(flow.packets))
        self._changed(name)
        self.most = max(self.most, len(self))
        if len(flow.packets) == 1:
            self.new += 1
            if self.reserve and self.fits():
                self.owners.add(name)
            else:
                self.refused += bool(self.reserve)
            if self.service == WFQ:
                self._due(name)
            else:
                self._join(name)
        return dropped

    def dequeue(self, hint):
        """(flow, number, size) that leaves; of equals (wfq) rather `hint`."""
        if self.service == WFQ:
            least = min(self.flows[name].finish for name in self.busy())
            best = [name for name in self.busy()
                    if self.flows[name].finish == least]
            name = next((name for name in best
                         if self.flows[name].packets[0][0] == hint), best[0])
        else:
            while self.flows[self.round[0]].credit <= 0:
                self._pass()
            name = self.round[0]
            self.turn = self.flows[name].turn
        flow = self.flows[name]
        number, size = flow.packets.popleft()
        self._changed(name)
        if self.service == WFQ:
            self.virtual = flow.finish
            if flow.packets:
                self._due(name)
            else:
                self._gone(name)
        else:
            flow.credit -= self._cost(size)
            if not flow.packets:
                self._gone(name)
            elif flow.credit <= 0:
                self._pass()
        return name, number, size


class Fairness:
    """How far apart the service of two flows may come while both wait."""

    def __init__(self, reference, largest):
        self.reference, self.largest = reference, largest
        self.ahead = {}
        self.worst = 0.0

    def idle(self, name):
        """A flow has no packets: nothing is due to it."""
        for pair in list(self.ahead):
            if name in pair:
                del self.ahead[pair]

    def served(self, name, size, busy):
        """A packet of `name` left while the flows `busy` had packets."""
        reference = self.reference
        amount = reference._cost(size) / reference.weight(name)
        for other in busy:
            if other == name:
                continue
            pair = (name, other) if name < other else (other, name)
            sign = 1 if name < other else -1
            low, high, value = self.ahead.get(pair, (0, 0, 0))
            value += sign * amount
            low, high = min(low, value), max(high, value)
            self.ahead[pair] = low, high, value
            # Over any stretch, from its lowest to its highest point.
            bound = self.bound(name, other)
            self.worst = max(self.worst, (high - low) / bound)
            assert high - low <= bound + 1e-9, (pair, low, high, bound)

    def bound(self, one, two):
        """In packets or bytes by weight."""
        reference = self.reference
        if reference.service == RR:
            return 1
        if reference.service == DRR:
            # A turn, and what each may be overdrawn by.
            return reference.quantum + self.largest / reference.weight(one) + \
                self.largest / reference.weight(two)
        return self.largest / reference.weight(one) + \
            self.largest / reference.weight(two)
