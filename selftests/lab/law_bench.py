# SPDX-License-Identifier: GPL-2.0
"""Packets that carry the price of a queue in the identification of IPv4."""

import math
import struct

from bench import SIGMA, ip_sum, ipv4
from guest_base import note
from rtnl import PRICE_MAX, PRICE_ONE


def carrier(number, size, tos, identification=0, fragment=0x4000):
    """An IPv4 frame with "don't fragment" and a free identification."""
    frame = bytearray(ipv4(number, size, tos))
    frame[18:22] = struct.pack(">HH", identification, fragment)
    frame[24:26] = bytes(2)
    frame[24:26] = struct.pack(">H", ip_sum(frame[14:34]))
    return bytes(frame)


def price_of(frame):
    """What the identification of a frame holds."""
    return struct.unpack_from(">H", frame.frame, 18)[0]


def carried_prices(draws):
    """Each carries its price, rounded down or up; the mean is exact."""
    total = due = variance = 0
    for _, price, tolerance, frame in draws:
        units = price * PRICE_ONE
        slack = tolerance * PRICE_ONE + 1e-9
        got = price_of(frame)
        assert frame.checksum_ok
        if units >= PRICE_MAX:
            assert got == PRICE_MAX, (got, units)
            continue
        assert math.floor(units - slack) <= got <= math.ceil(units + slack), \
            (got, units, slack)
        fraction = units % 1
        total += got
        due += units
        variance += fraction * (1 - fraction)
    if variance:
        sigma = (total - due) / math.sqrt(variance)
        note(f"{len(draws)} prices, their sum {total} where {due:.2f} is due, "
             f"{sigma:+.2f} sigma")
        # Fixed point may shift a few across a step.
        slack = sum(one[2] for one in draws) * PRICE_ONE
        assert abs(total - due) <= SIGMA * math.sqrt(variance) + slack
