#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The two fuzzy controllers of PP94 4.5.2 as tables, a C header on stdout.

A controller maps one input in [0, 1] to one output in [0, 1]. Each of its rules
says "if the input is in set X, the output is in set Y"; sets are triangles, of
height 1. What a rule says is its output set cut off at the height to which the
input belongs to X; all of it together is the highest of those at each point,
and the output is the abscissa of the centroid of that area, stretched so that
the whole range [0, 1] can be reached.

    alpha, the weight of history, by the smoothed proportional error:
        error low: alpha high; medium: medium; high: low
    beta, the weight of the error's history, by the change in error:
        change low: beta low; high: high

Figure 3 of PP94, with the sets, is missing; its middle points are 0.7 for the
error and 0.5 for alpha, as the paper's simulations had them.

Everything is computed exactly, in fractions, and rounded once.
"""

from fractions import Fraction

ERROR_MIDDLE = Fraction(7, 10)
ALPHA_MIDDLE = Fraction(1, 2)
STEPS = 256         # intervals of a table
ONE = 1 << 16       # 1.0 in a table


class Triangle:
    """A fuzzy set: (abscissa, height) of its corners, in order."""

    def __init__(self, *corners):
        self.corners = [(Fraction(x), Fraction(y)) for x, y in corners]

    def __call__(self, x):
        """Membership of x; outside of the corners 0."""
        for (left, low), (right, high) in zip(self.corners, self.corners[1:]):
            if left <= x <= right:
                return low + (high - low) * (x - left) / (right - left)
        return Fraction(0)


def three_sets(middle):
    """low, medium and high on [0, 1]."""
    return (Triangle((0, 1), (middle, 0)),
            Triangle((0, 0), (middle, 1), (1, 0)),
            Triangle((middle, 0), (1, 1)))


def two_sets():
    """low and high on [0, 1]."""
    return Triangle((0, 1), (1, 0)), Triangle((0, 0), (1, 1))


def crossings(sets, cuts):
    """Where the outline of the cut sets may bend, in order."""
    points = {Fraction(0), Fraction(1)}
    segments = []
    for one in sets:
        for (left, low), (right, high) in zip(one.corners, one.corners[1:]):
            points |= {left, right}
            slope = (high - low) / (right - left)
            segments.append((slope, low - slope * left))
    lines = segments + [(Fraction(0), cut) for cut in cuts]
    for index, (slope, offset) in enumerate(lines):
        for other_slope, other_offset in lines[index + 1:]:
            if slope != other_slope:
                points.add((other_offset - offset) / (slope - other_slope))
    return sorted(point for point in points if 0 <= point <= 1)


def centroid(sets, cuts):
    """Abscissa of the centroid of the union of `sets`, each cut at its height."""
    def outline(x):
        return max(min(one(x), cut) for one, cut in zip(sets, cuts))

    area = moment = Fraction(0)
    points = crossings(sets, cuts)
    for left, right in zip(points, points[1:]):
        low, high, width = outline(left), outline(right), right - left
        area += width * (low + high) / 2
        moment += width * (left * (2 * low + high) +
                           right * (low + 2 * high)) / 6
    return moment / area


def controller(inputs, outputs):
    """Function of x: rule i is from inputs[i] to outputs[i]."""
    alone = [centroid(outputs, [Fraction(one is other) for other in outputs])
             for one in outputs]
    low, high = min(alone), max(alone)

    def control(x):
        value = centroid(outputs, [one(x) for one in inputs])
        return (value - low) / (high - low)
    return control


def alpha():
    """The controller of alpha: the higher the error, the lower."""
    low, medium, high = three_sets(ALPHA_MIDDLE)
    return controller(three_sets(ERROR_MIDDLE), (high, medium, low))


def beta():
    """The controller of beta: the higher the change, the higher."""
    return controller(two_sets(), two_sets())


def table(name, control):
    """A C array of STEPS + 1 values."""
    values = [round(control(Fraction(i, STEPS)) * ONE)
              for i in range(STEPS + 1)]
    print(f"static const u32 {name}[] = {{")
    for first in range(0, len(values), 8):
        print("\t" + " ".join(f"{value}," for value in values[first:first + 8]))
    print("};\n")


def main():
    """Print the header."""
    print("/* Made by gen_fuzzy.py: do not edit. */")
    print(f"#define PP_FUZZY_STEPS\t{STEPS}\n")
    table("pp_fuzzy_alpha", alpha())
    table("pp_fuzzy_beta", beta())


if __name__ == "__main__":
    main()
