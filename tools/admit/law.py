# SPDX-License-Identifier: GPL-2.0
"""The control law of AACC: from delays of samples to the admission rate.

Z. Haas, Adaptive Admission Congestion Control ("AACC"), section 3. A border host
sends time-stamped samples to the other end of a path. The virtual delay of a
sample is the clock of the receiver at its arrival minus the stamp of the sender.
The two clocks need the same rate, not the same time. Once in each quota interval
the law compares a change of that delay with two thresholds, and moves the factor
beta, which spaces the packets that may enter the network.

Nothing here knows of sockets, of clocks or of queues. All times are integers in ns.

Differences from the paper, and why:

- What is compared with the thresholds. The paper has the mean change between
  disjoint pairs of samples ("pair"). With that reading the delay may grow by
  theta in each sampling interval for ever, and the published figures do not come
  out. "excess" compares the mean delay with the smallest delay of the recent past,
  "interval" with the mean delay of the last quota interval.
- Samples are at a random time of each interval (daemon.py), not at a fixed period.
- "excess" takes the smallest delay of a window. Clocks that differ in rate by
  50 ppm change the virtual delay by 1 ms in 20 s, so that a smallest delay of all
  time would not do.
"""

CHANGES = ("excess", "interval", "pair")


class WindowMinimum:
    """The smallest value of the last window, known to half a window.

    Two halves are kept: a value is forgotten after one window at the latest, and
    after half of one at the earliest.
    """

    def __init__(self, window_ns):
        self.half_ns = max(1, window_ns // 2)
        self.value = None
        self._old = self._new = self._since = None

    def reset(self):
        """Forget all values."""
        self.value = self._old = self._new = self._since = None

    def add(self, value, now_ns):
        """Take a value; returns the smallest one of the window."""
        if self._since is None:
            self._since = now_ns
        passed = (now_ns - self._since) // self.half_ns
        if passed:
            # Nothing came for longer than a half: that half has no value.
            self._old = self._new if passed == 1 else None
            self._new = None
            self._since += passed * self.half_ns
        self._new = value if self._new is None else min(self._new, value)
        self.value = self._new if self._old is None else min(self._old,
                                                             self._new)
        return self.value


class Law:
    """beta of one path, moved once in each quota interval.

    low_ns, high_ns: theta_1 and theta_2. A change below the first one raises beta
    by up, a change above the second one lowers it by down; between them beta
    stays. Where both hold (low above high), beta falls. change: one of CHANGES.
    window_ns: of the smallest delay, for "excess".
    """

    def __init__(self, low_ns, high_ns, up, down, change="excess",
                 window_ns=10_000_000_000, beta=0.0):
        if change not in CHANGES:
            raise ValueError(f"no change is called {change}")
        self.low_ns, self.high_ns = low_ns, high_ns
        self.up, self.down = up, down
        self.change = change
        self.beta = beta
        # What was compared last, ns; None before there was anything.
        self.changed_ns = None
        self.delay_ns = None
        self._minimum = WindowMinimum(window_ns)
        self._last_mean = None
        self._begin()

    def _begin(self):
        self._sum = self._count = 0
        self._pair = None
        self._pairs_sum = self._pairs_count = 0

    def restart(self, beta):
        """Begin again, with another peer or another clock, from this beta."""
        self._minimum.reset()
        self._last_mean = self.changed_ns = self.delay_ns = None
        self.beta = beta
        self._begin()

    def sample(self, delay_ns, now_ns):
        """Take the virtual delay of one sample."""
        self._minimum.add(delay_ns, now_ns)
        self._sum += delay_ns
        self._count += 1
        # Footnote 12 of the paper: pairs are disjoint.
        if self._pair is None:
            self._pair = delay_ns
        else:
            self._pairs_sum += delay_ns - self._pair
            self._pairs_count += 1
            self._pair = None

    def _compared_ns(self):
        if self.change == "pair":
            if not self._pairs_count:
                return None
            return self._pairs_sum / self._pairs_count
        if not self._count:
            return None
        mean = self._sum / self._count
        last, self._last_mean = self._last_mean, mean
        if self.change == "interval":
            return None if last is None else mean - last
        return mean - self._minimum.value

    def step(self):
        """End a quota interval; returns beta. Without a sample it stays."""
        if self._count:
            self.delay_ns = self._sum / self._count - self._minimum.value
        compared = self._compared_ns()
        self._begin()
        if compared is None:
            return self.beta
        self.changed_ns = compared
        if compared > self.high_ns:
            self.beta = max(0.0, self.beta - self.down)
        elif compared < self.low_ns:
            self.beta = min(1.0, self.beta + self.up)
        return self.beta


def spaced_share(beta, quota_packets):
    """Share of the full rate that beta admits.

    The paper's gap between packets is min(1/beta, quota) - 1 packet times
    (equation 2), so that one packet enters in min(1/beta, quota) of them.
    """
    return max(beta, 1 / quota_packets)


class Bucket:
    """The leaky bucket of section 3: admission follows what was sent.

    The tokens of an interval are min(x (1 + e), quota): x packets were sent in
    the last interval, e is the relative growth of beta. They are spaced evenly.
    """

    def __init__(self, quota_packets):
        self.quota_packets = quota_packets
        self._beta = None

    def share(self, beta, sent_packets):
        """Share of the full rate in the next interval."""
        last, self._beta = self._beta, beta
        growth = beta / last - 1 if last else 0.0
        tokens = min(sent_packets * (1 + growth), self.quota_packets)
        # A source that rests could never begin again; and an unused rate is no
        # reason to take it away while the network is free.
        if beta >= 1:
            tokens = self.quota_packets
        return max(tokens, 1) / self.quota_packets
