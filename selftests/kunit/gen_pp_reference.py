#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Reference values for pp_kunit.c, as a C header on standard output.

The fuzzy controllers are integrated numerically in floating point, from the
membership functions of PP94 4.5 alone and without a line of gen_fuzzy.py. The
estimators and laws are PP94's equations in floating point over recorded
inputs: steps, noise, bunched ACKs, drifts.
"""

import random

ERROR_MIDDLE, ALPHA_MIDDLE = 0.7, 0.5
SLICES = 1000
NS = 1 << 10            # service times: ns in Q10
RATE = 1 << 16          # packets/s in Q16
PACKET = 1 << 8         # packets in Q8


def falling(x, right):
    """Membership of "low" that ends at `right`."""
    return max(0.0, 1 - x / right)


def rising(x, left):
    """Membership of "high" that begins at `left`."""
    return max(0.0, (x - left) / (1 - left))


def middle(x, top):
    """Membership of "medium" with its top at `top`."""
    return min(x / top, (1 - x) / (1 - top))


def centroid(height):
    """Of the area below height(x) on [0, 1], by the midpoint rule."""
    area = moment = 0.0
    for i in range(SLICES):
        x = (i + 0.5) / SLICES
        y = height(x)
        area += y
        moment += x * y
    return moment / area


def alpha_exact(error):
    """Weight of history, for an error in [0, 1]."""
    low, medium, high = (falling(error, ERROR_MIDDLE),
                         middle(error, ERROR_MIDDLE),
                         rising(error, ERROR_MIDDLE))

    def outcome(x):
        # error low: alpha high, and so on.
        return max(min(rising(x, ALPHA_MIDDLE), low),
                   min(middle(x, ALPHA_MIDDLE), medium),
                   min(falling(x, ALPHA_MIDDLE), high))
    bottom = centroid(lambda x: falling(x, ALPHA_MIDDLE))
    top = centroid(lambda x: rising(x, ALPHA_MIDDLE))
    return (centroid(outcome) - bottom) / (top - bottom)


def beta_exact(change):
    """Weight of the history of errors, for a change in [0, 1]."""
    bottom = centroid(lambda x: 1 - x)
    top = centroid(lambda x: x)
    value = centroid(lambda x: max(min(1 - x, 1 - change), min(x, change)))
    return (value - bottom) / (top - bottom)


class Curve:
    """A function on [0, 1] from points of it, which are expensive."""

    def __init__(self, function, steps=400):
        self.steps = steps
        self.values = [function(i / steps) for i in range(steps + 1)]

    def __call__(self, x):
        place = min(max(x, 0.0), 1.0) * self.steps
        left = min(int(place), self.steps - 1)
        part = place - left
        return self.values[left] * (1 - part) + self.values[left + 1] * part


def samples(rng):
    """Service times in ns as a connection might see them."""
    found = []
    for level, count in ((1.2e6, 60), (6e6, 40), (0.6e6, 60), (29e6, 40)):
        found += [level * (1 + rng.gauss(0, 0.02)) for _ in range(count)]
    # ACKs that were bunched, and what then came late.
    for _ in range(20):
        found += [2e3, 2.4e6, 1.2e6, 1.2e6]
    found += [1.2e6 * 1.02**i for i in range(100)]
    found += [1.2e6] * 200
    return [round(max(one, 1) * NS) for one in found]


def fuzzy(recorded):
    """PP94 4.5: estimate after each sample."""
    alpha, beta = Curve(alpha_exact), Curve(beta_exact)
    estimate, error, last = None, 0.5, 0.0
    for sample in recorded:
        if estimate is None:
            estimate = sample
        else:
            now = min(abs(sample - estimate) / estimate, 1.0)
            weight = beta(abs(now - last))
            error = weight * error + (1 - weight) * now
            last = now
            weight = alpha(error)
            estimate = weight * estimate + (1 - weight) * sample
        yield estimate


def fixed(recorded, gain):
    """An exponential average."""
    estimate = None
    for sample in recorded:
        estimate = sample if estimate is None else \
            (1 - gain) * estimate + gain * sample
        yield estimate


def kalman(recorded, q, r=1.0):
    """PP94 4.4.2 with its matrices, n left out: it is not observed.

    x = (mu, mu before), y = mu before + v2; Sigma by the Riccati equation.
    """
    x, sigma = None, None
    for sample in recorded:
        y = 1 / sample
        if x is None:
            x, sigma = [y, y], [[r + q, r], [r, r]]
        else:
            # G = (1 0; 1 0), C = (0 1), Q = (q 0; 0 0).
            scale = sigma[1][1] + r
            gain = [sigma[0][1] / scale, sigma[0][1] / scale]
            away = y - x[1]
            x = [x[0] + gain[0] * away, x[0] + gain[1] * away]
            new = [[sigma[0][0] - gain[i] * scale * gain[j]
                    for j in range(2)] for i in range(2)]
            new[0][0] += q
            sigma = new
        yield 1 / x[0]


def law_points(rng):
    """Setpoint, queue, outstanding (packets), R (us), s_hat (ns)."""
    points = [(20, 0, 10, 40000, 1.2112e6), (20, 20, 53, 40000, 1.2112e6),
              (20, 21, 53, 40000, 1.2112e6), (2, 500, 501, 100, 1.2e3),
              (9999, 0, 1, 1, 1.0), (10, 10**6, 10**6, 16 * 10**6, 4e9)]
    for _ in range(500):
        points.append((rng.randrange(2, 200), rng.randrange(300),
                       rng.randrange(1, 4000),
                       round(10 ** rng.uniform(1, 6.5)),
                       10 ** rng.uniform(2, 8)))
    return points


def continuous(b, n, delay_us, service):
    """PP94 (14), packets/s."""
    rtt = delay_us / 1e6 + n * service / 1e9
    j = (1.5 if n <= b else 0.8) * rtt
    return max(0.0, (b - n) / j + 1e9 / service)


def discrete(b, n, s, before, now, rtt):
    """PP94 (9) with its pole, packets/s."""
    return max(0.0, 0.9 / rtt * (b - n - s + (before + now) * rtt))


def table(name, members, rows):
    """A C array of structs with `members`."""
    print(f"static const struct {{\n\t{members}\n}} {name}[] = {{")
    for row in rows:
        print("\t{ " + ", ".join(str(one) for one in row) + " },")
    print("};\n")


def main():
    """Print the header."""
    rng = random.Random(1994)
    print("/* Made by gen_pp_reference.py: do not edit. */")
    points = sorted({0, 1, 65535, 65536, *range(0, 65537, 311)})
    table("fuzzy_reference", "u32 x, alpha, beta;", (
        (x, round(alpha_exact(x / 65536) * 65536),
         round(beta_exact(x / 65536) * 65536)) for x in points))
    recorded = samples(rng)
    table("estimate_reference", "u64 sample, fuzzy, fixed, kalman;", (
        (f"{row[0]}ULL",) + tuple(f"{round(one)}ULL" for one in row[1:])
        for row in zip(recorded, fuzzy(recorded), fixed(recorded, 1 / 8),
                       kalman(recorded, 1 / 64))))
    rows = []
    for b, n, s, delay_us, service in law_points(rng):
        q10 = round(service * NS)
        service = q10 / NS
        now, before = 1e9 / service, 0.9e9 / service
        rtt = delay_us / 1e6 + n * service / 1e9
        rows.append((
            b * PACKET, n * PACKET, s * PACKET, delay_us, f"{q10}ULL",
            round(max(0.0, s - delay_us * 1e3 / service) * PACKET),
            f"{round(rtt * 1e9)}ULL",
            f"{round(min(continuous(b, n, delay_us, service), 2**30) * RATE)}ULL",
            f"{round(min(discrete(b, n, s, before, now, rtt), 2**30) * RATE)}ULL",
            f"{round(now * RATE)}ULL"))
    table("law_reference", "u32 setpoint, queue, outstanding, delay_us; "
          "u64 service; u32 n_hat; u64 rtt_ns, continuous, discrete, rate;",
          rows)


if __name__ == "__main__":
    main()
