#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Reference values for fixp_kunit.c, as a C header on standard output.

Everything is computed with 60 digits and rounded once, to 2^-56: 24 bits finer
than the Q32 numbers under test, so that the asserted bounds are the stated
ones. The points are the edges of each domain, powers of two and their
neighbours, log-spaced points over the whole domain, and seeded random ones.
"""

import random
from decimal import Decimal, getcontext

getcontext().prec = 60

ONE = 1 << 32
U32_MAX = 2**32 - 1
U64_MAX = 2**64 - 1
REFERENCE_BITS = 56
LOG_POINTS = 2000


def rounded(value):
    """A Decimal in units of 2^-56, to nearest."""
    return int((value * 2**REFERENCE_BITS).to_integral_value())


def log_spaced(low, high, count=LOG_POINTS):
    """Integers from `low` to `high` in a geometric sequence."""
    ratio = Decimal(high) / low
    return [int(low * ratio ** (Decimal(i) / (count - 1))) for i in range(count)]


def edges(bits):
    """0, the powers of two and their neighbours, and the top."""
    points = {0, 2**bits - 1}
    for bit in range(bits):
        points |= {2**bit - 1, 2**bit, 2**bit + 1}
    return {point for point in points if 0 <= point < 2**bits}


def exp_points():
    """Exponents: up to 23, where the result becomes 0, and far beyond."""
    points = edges(64) | set(log_spaced(1, U64_MAX))
    points |= set(log_spaced(ONE // 2**16, 24 * ONE))
    points |= {23 * ONE + step for step in (-2, -1, 0, 1)}
    # Around the multiples of ln 2, where the integer part steps.
    for multiple in range(1, 35):
        at = int(multiple * Decimal(2).ln() * ONE)
        points |= {at - 1, at, at + 1}
    return sorted(points)


def ln_points():
    """Arguments: everything, densest around 1 and around sqrt 2."""
    points = edges(64) | set(log_spaced(1, U64_MAX))
    for centre in (Decimal(1), Decimal(2).sqrt(), 1 / Decimal(2).sqrt()):
        middle = int(centre * ONE)
        for offset in log_spaced(1, middle // 4, 200):
            points |= {middle - offset, middle + offset}
    return sorted(points)


def pow_points(rng):
    """Pairs of base and exponent."""
    points = {(base, n) for base in edges(32)
              for n in (0, 1, 2, 3, 31, 63, 64, 65, 1000, 2**20, U32_MAX)}
    # Bases such that the power is neither 0 nor 1, for exponents of any size.
    for n in log_spaced(1, U32_MAX):
        share = Decimal(rng.randrange(1, 2**30)) / 2**30
        base = int((share.ln() / n).exp() * ONE)
        points.add((min(base, U32_MAX), n))
        points.add((rng.randrange(ONE), n))
    points |= {(rng.randrange(ONE), n) for n in range(65) for _ in range(10)}
    return sorted(points)


def mul_div_points(rng):
    """Triples: products of up to 128 bits."""
    some = sorted(edges(64))
    few = (0, 1, 2, 3, 10**6, U32_MAX, ONE, ONE + 1, 2**63, U64_MAX - 1,
           U64_MAX)
    points = {(a, b, c) for a in few for b in few for c in few}
    points |= {(a, rng.choice(some), rng.choice(some)) for a in some
               for _ in range(5)}
    for a in log_spaced(1, U64_MAX):
        b = rng.randrange(2**rng.randrange(1, 65))
        c = rng.randrange(2**rng.randrange(1, 65))
        points.add((a, b, c))
        # Quotients just around 2^64, where it saturates.
        product = a * b
        near = product >> 64
        points |= {(a, b, c) for c in (near, near + 1)}
        # Exact divisions.
        points.add((a, 10**6, a))
    return sorted(points)


def table(name, members, rows):
    """A C array of structs with `members`."""
    print(f"static const struct {{\n\t{members}\n}} {name}[] = {{")
    for row in rows:
        print("\t{ " + ", ".join(row) + " },")
    print("};\n")


def main():
    """Print the header."""
    rng = random.Random(2005)
    print("/* Made by gen_reference.py: do not edit. */")
    print(f"#define REFERENCE_SHIFT {REFERENCE_BITS}\n")
    table("exp_reference", "u64 x, exp_neg;", (
        (f"{x}ULL", f"{rounded((-Decimal(x) / ONE).exp())}ULL")
        for x in exp_points()))
    table("ln_reference", "u64 x; s64 ln;", (
        (f"{x}ULL", f"{rounded((Decimal(max(x, 1)) / ONE).ln())}LL")
        for x in ln_points()))
    table("pow_reference", "u32 base, n; u64 power;", (
        (f"{base}U", f"{n}U",
         f"{rounded((Decimal(base) / ONE) ** n if n else Decimal(1))}ULL")
        for base, n in pow_points(rng)))
    # "over": the quotient does not fit 64 bits.
    rows = []
    for a, b, c in mul_div_points(rng):
        quotient = a * b // c if c else (U64_MAX + 1 if a and b else 0)
        rows.append((f"{a}ULL", f"{b}ULL", f"{c}ULL",
                     f"{min(quotient, U64_MAX)}ULL",
                     str(int(quotient > U64_MAX))))
    table("mul_div_reference", "u64 a, b, c, quotient; bool over;", rows)


if __name__ == "__main__":
    main()
