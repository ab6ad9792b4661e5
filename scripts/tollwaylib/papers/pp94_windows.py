# SPDX-License-Identifier: GPL-2.0
"""Windows beside the rate, and room for them at the queue: PP94 10.3."""

from ..experiments.description import Case, Experiment, Variant, case_bound, metric
from ..experiments.workload import OURS, PIPE_PKTS, SOURCES, flow_of, one_link
from . import networks, pp94
from .pp94 import (BURST_FIRST_PKTS, PUBLIC_METRICS, ROW_DEFAULTS, UNLIMITED_PKTS,
                   arrival_case, burst_case, often, per_role, public_cases, row_presets,
                   table_3, units)

PAPER = pp94.PAPER

# What each source may have outstanding, and what the queue has for it: the pipe
# and the setpoint of 10. Half of the pipe shows that it is a limit.
WINDOW_PKTS, WINDOW_SMALL_PKTS = PIPE_PKTS + 10, PIPE_PKTS // 2
SMALL_WINDOW = f"window {WINDOW_SMALL_PKTS}"


def _window_cases(values):
    """The bursts of 9.2, with a window's worth of room for each source and no more;
    and a source whose window is half of what the path holds."""
    _, rtt_s = units(values)
    each = values["reserve"] or WINDOW_PKTS
    # It would take 4000 TU, and is busy to the end of its case.
    small = one_link([flow_of(1, 0.0, BURST_FIRST_PKTS, "first")], values)
    return [Case(SMALL_WINDOW, small, 38 * rtt_s, classes=True,
                 values={"window": WINDOW_SMALL_PKTS}, **often(values))] + [
        burst_case(values, count, "reserved", count * each)
        for count in range(2, SOURCES + 1)]


def _lossless(cases):
    """PP94 10.3: no packet is lost, whatever the rates are."""
    def bounds(values):
        if not values["reserve"] or values["window"] != values["reserve"]:
            return []
        return [case_bound(title, case.name, key, "<=", 0)
                for case in cases(values) for key, title in
                (("drops", "drops"), ("retransmits", "retransmissions, packets"))]
    return bounds


def _cut_off(_values):
    # The round trip is longer than that of the pipe by the time that a packet
    # takes on its links.
    half = WINDOW_SMALL_PKTS / PIPE_PKTS
    return [case_bound("utilisation with a window of half of the path, "
                       f"{word}", SMALL_WINDOW, "utilization", operator, value)
            for word, operator, value in (("at least", ">=", half - 0.02),
                                          ("at most", "<=", half))]


_WINDOW_DEFAULTS = {**ROW_DEFAULTS, "setpoint": 10, "window": WINDOW_PKTS,
                    "reserve": WINDOW_PKTS, "buffer": SOURCES * WINDOW_PKTS}
# The same room, shared.
_WINDOW_VARIANTS = (
    Variant("pp-fq_rr", "pp", "fq_rr"),
    Variant("pp-fq_rr-shared", "pp", "fq_rr", {"window": 0, "reserve": 0},
            title="the same room, shared and without a window"))


# A setpoint of 10 and two pairs: the least that the window takes for the reserved room.
ROOM_PKTS = 14
FREE, FOLLOWS = "no window", f"room for {ROOM_PKTS}"


def _path_cases(values):
    """Sources that come in quick succession, with windows that follow the path, and free."""
    return [arrival_case(values, 0.5, name, values=settings) for name, settings in (
        (FREE, {"reserved": 0, "reserve": 0, "buffer": UNLIMITED_PKTS}),
        (FOLLOWS, {"reserved": ROOM_PKTS, "reserve": ROOM_PKTS,
                   "buffer": SOURCES * ROOM_PKTS}))]


_LOSSES = (metric("drops", "drops", "drops", 0),
           metric("retransmits", "retransmits", "retransmissions", 0))

EXPERIMENTS = (
    Experiment(
        name="pp-window", title="A window beside the rate, and room for it",
        reproduces="PP94 10.3, with the sources of 9.2",
        topology=networks.confluence, duration_s=10.0, defaults=_WINDOW_DEFAULTS,
        presets=row_presets(), variants=_WINDOW_VARIANTS,
        cc="pp", aqm="fq_rr", cases=_window_cases,
        x_title="sources", shape=table_3(SOURCES),
        metrics=(
            *_LOSSES,
            *per_role("first"),
            metric("peak", "class_peak", "largest queue of source 1", 0,
                   role="first"),
            metric("utilization", "utilization", "utilisation from 10 RTT",
                   2, link="R1", from_rtt=10)),
        bounds=((OURS, _lossless(_window_cases)), (OURS, _cut_off)),
        pictures=(("curve", "peak"), ("curve", "completion_tu"),
                  ("class_queues", "N = 10, reserved")),
        about="The sources of pp-burst with a window of 110 packets and as much "
              "room (reserve) for each of them at the queue, and one source with a "
              "window of 50. No packet may be lost. The variant pp-fq_rr-shared has "
              "the same room, but shared, and no window."),
    Experiment(
        name="pp-window-public",
        title="On-off sources with a window, and room for it",
        reproduces="PP94 10.3, with the sources of 9.3",
        topology=networks.confluence, duration_s=120.0, defaults=_WINDOW_DEFAULTS,
        presets=row_presets(), variants=_WINDOW_VARIANTS,
        cc="pp", aqm="fq_rr", cases=public_cases,
        x_title="nominal load", shape=table_3(SOURCES),
        metrics=(
            *_LOSSES,
            *PUBLIC_METRICS),
        bounds=((OURS, _lossless(public_cases)),),
        pictures=(("curve", "queue_mean"),),
        about="The window and reservation of pp-window, with the sources of pp-public."),
    Experiment(
        name="pp-window-path", title="A window that follows the path",
        reproduces="PP94 10.3, with the sources of 9.2",
        topology=networks.confluence, duration_s=10.0,
        defaults={**ROW_DEFAULTS, "setpoint": 10, "reserved": ROOM_PKTS,
                  "reserve": ROOM_PKTS, "window": 0, "buffer": SOURCES * ROOM_PKTS},
        presets=row_presets(), variants=(Variant("pp-fq_rr", "pp", "fq_rr"),),
        cc="pp", aqm="fq_rr", cases=_path_cases, shape=table_3(SOURCES),
        metrics=(
            *_LOSSES,
            metric("utilization", "utilization", "utilisation, 5-45 RTT", 4, link="R1",
                   from_rtt=5, to_rtt=45),
            metric("peak", "class_peak", "largest queue of source 1", 0, role="first"),
            metric("last_tu", "last_units", "end of the last source", 0)),
        bounds=((OURS, lambda values: [
            case_bound("drops", FOLLOWS, "drops", "<=", 0),
            case_bound("retransmissions, packets", FOLLOWS, "retransmits", "<=", 0),
            case_bound("utilisation, part of that without a window", FOLLOWS, "utilization",
                       ">=", 0.99, of_case=FREE)]),),
        pictures=(("class_queues", FREE), ("class_queues", FOLLOWS)),
        about="The sources of pp-arrivals that come every half round trip. The window of each "
              "is what the path holds and 14 packets, and the queue has room for 14 of each."),
)
