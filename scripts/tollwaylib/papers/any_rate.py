# SPDX-License-Identifier: GPL-2.0
"""One set of constants at any rate: the source relative over the law delay.

These are the modules' defaults; no paper has them. The bounds say what such a control should
achieve at any rate. They are kept for cases that are known to miss them.
"""

from ..experiments.description import (Case, Experiment, Variant,
                                       case_bound, metric, panel)
from ..experiments.parameters import SHIPPED
from ..experiments.workload import flow_of
from . import networks

LINK = "R1"
RATES_MBIT, RTT_MS, FLOWS = (1, 10, 100, 1000), 20, (1, 4)
# At one rate: round trips, and flows that are many.
MIDDLE_MBIT, RTTS_MS, MANY = 100, (5, 100, 200), 36
# With scale=many there are all combinations of these, with a share of a flow of so
# many Mb/s at least.
ALL_MBIT, ALL_MS, ALL_FLOWS, LEAST_MBIT = (
    (1, 10, 100, 1000, 10000), (5, 20, 100, 200), (1, 4, MANY), 0.25)
# By then a start is over.
START_S = 3.0
DURATION_S, CHANGE_S = 30.0, 8.0
# Queues have room for two round trips, and for at least so many packets.
LEAST_ROOM_PKTS = 1000
# What these settings of the kernel can be at most.
LARGEST = 2 ** 31 - 1
# A sink leaves so much unread, see guest/processes.py.
UNREAD_BYTES = 256 << 10

OURS = ("sbrm+delay",)
# dctcp over dualpi2 is missing: Linux 6.1, the lab's, has no dualpi2.
VARIANTS = tuple(Variant(name, cc, aqm) for name, cc, aqm in (
    ("sbrm-delay", "sbrm", "delay"),
    ("cubic-fq_codel", "cubic", "fq_codel"),
    ("bbr-fq", "bbr", "fq"),
    ("dctcp-codel", "dctcp", "codel ce_threshold 1ms ecn"),
    ("pp-fq_rr", "pp", "fq_rr")))


def _name(mbit, rtt_ms, what):
    return f"{mbit:g} Mb/s, {rtt_ms:g} ms, {what}"


def _count(flows):
    return f"{flows} flow{'' if flows == 1 else 's'}"


JOIN = _name(MIDDLE_MBIT, RTT_MS, "1 joins 9")
LEAVE = _name(MIDDLE_MBIT, RTT_MS, "5 of 10 leave")


def grid(scale="few"):
    """[(Mb/s, round trip in ms, flows)], flows that all start at once."""
    if scale == "many":
        return [(mbit, rtt_ms, flows) for mbit in ALL_MBIT for rtt_ms in ALL_MS
                for flows in ALL_FLOWS if mbit / flows >= LEAST_MBIT]
    cells = [(mbit, RTT_MS, flows) for mbit in RATES_MBIT for flows in FLOWS]
    cells += [(MIDDLE_MBIT, rtt_ms, flows) for rtt_ms in RTTS_MS
              for flows in FLOWS]
    return cells + [(MIDDLE_MBIT, RTT_MS, MANY)]


def _buffers(mbit, rtt_ms, flows):
    """Sysctls for what is in flight and waits of each flow, several times. No
    more than that: the memory of the lab's kernel for TCP is small."""
    room = round(max(200e3, 6 * mbit * 1e3 * (rtt_ms + 10) / 8 / flows))
    first = 2 * (room + UNREAD_BYTES)
    most, most_first = (min(4 * size, LARGEST) for size in (room, first))
    return {"net.ipv4.tcp_wmem": f"4096 {min(room, 400000)} {most}",
            "net.ipv4.tcp_rmem": f"4096 {min(first, LARGEST)} {most_first}"}


def _case(values, mbit, rtt_ms, flows, name=None, **more):
    """A case of flows, each (start s, stop s or None)."""
    room = max(LEAST_ROOM_PKTS, round(
        2 * mbit * 1e3 * rtt_ms / 8 / values["packet_bytes"]))
    return Case(
        name or _name(mbit, rtt_ms, _count(len(flows))),
        tuple(flow_of(1, start_s, name=str(number), early=False,
                      **({} if stop_s is None else {"stop_s": stop_s}))
              for number, (start_s, stop_s) in enumerate(flows, 1)),
        DURATION_S,
        values={"rate_mbit": float(mbit), "rtt_ms": float(rtt_ms),
                "limit": room, "buffer": room},
        sysctls=_buffers(mbit, rtt_ms, len(flows)), **more)


def _line(scale, mbit, rtt_ms, flows):
    """Where a case is in the figure: rates that differ are the line of one round
    trip and one number of flows."""
    if scale == "many":
        return {"x": mbit, "series": f"{rtt_ms} ms, {_count(flows)}"}
    if rtt_ms == RTT_MS and flows in FLOWS:
        return {"x": mbit, "series": _count(flows)}
    return {}


def _cases(values):
    cases = []
    for mbit, rtt_ms, flows in grid(values["scale"]):
        line = _line(values["scale"], mbit, rtt_ms, flows)
        cases.append(_case(values, mbit, rtt_ms, [(0.0, None)] * flows, **line))
    nine = [(0.0, None)] * 9
    cases.append(_case(values, MIDDLE_MBIT, RTT_MS, nine + [(CHANGE_S, None)],
                       name=JOIN))
    cases.append(_case(values, MIDDLE_MBIT, RTT_MS, [
        (0.0, CHANGE_S if number < 5 else None) for number in range(10)],
        name=LEAVE))
    return cases


def _bounds(values):
    bounds = []
    for mbit, rtt_ms, flows in grid(values["scale"]):
        name = _name(mbit, rtt_ms, _count(flows))
        packet_ms = values["packet_bytes"] * 8 / mbit / 1e3
        target_ms = max(values["delay_ms"], 2 * packet_ms)
        wanted = [
            ("utilisation", "utilization", ">=", 0.98),
            ("mean delay, ms", "delay_mean_ms", "<=",
             target_ms + 2 * packet_ms + 1),
            ("99th percentile of the delay, ms", "delay_p99_ms", "<=",
             3 * target_ms),
            (f"drops after the first {START_S:g} s", "drops", "<=", 0)]
        if flows > 1:
            wanted.append(("largest error of a share in the last half",
                           "share_error", "<=", 0.05))
        if flows in (1, MANY):
            # A round trip's worth of packets takes a round trip.
            wanted.append((f"longest delay in the first {START_S:g} s, ms",
                           "start_ms", "<=", max(rtt_ms, 20)))
        bounds += [case_bound(text, name, key, operator, limit)
                   for text, key, operator, limit in wanted]
    return bounds + [
        case_bound("settling time, s", name, "settled_s", "<=",
                   max(1.0, 15 * RTT_MS / 1e3)) for name in (JOIN, LEAVE)]


EXPERIMENTS = (
    Experiment(
        name="any-rate", title="One set of constants at any rate",
        reproduces="no paper: a comparison", topology=networks.one_link,
        duration_s=DURATION_S,
        defaults={"scale": "few", "packet_bytes": 1514, "rate_mbit": float(MIDDLE_MBIT),
                  "rtt_ms": float(RTT_MS),
                  # No host is a bottleneck, nor is its link.
                  "edge_mbit": 0.0, "initcwnd": 10, "warmup_s": 0.0,
                  # No multiple of the time between packets of any link.
                  "queue_sample_us": 5039,
                  "limit": LEAST_ROOM_PKTS, "buffer": LEAST_ROOM_PKTS,
                  **SHIPPED},
        variants=VARIANTS, cc="sbrm", aqm="delay", cases=_cases,
        # Hosts as they are: with timestamps, and segments put together (TSO).
        shape=lambda values: {"rtt_ms": values["rtt_ms"],
                              "gso_max_segs": None},
        sysctls={"net.ipv4.tcp_timestamps": 1},
        metrics=(
            metric("utilization", "utilization", "utilisation", 1,
                   link=LINK, from_s=START_S),
            metric("delay_mean_ms", "delay_mean_ms", "mean delay", 2,
                   link=LINK, from_s=START_S),
            metric("delay_p99_ms", "delay_p99_ms",
                   "99th percentile of the delay", 2, link=LINK, from_s=START_S),
            metric("start_ms", "delay_max_ms",
                   f"longest delay, first {START_S:g} s", 0, link=LINK, to_s=START_S),
            metric("drops", "drops", f"drops after the first {START_S:g} s", 0,
                   from_s=START_S),
            metric("share_error", "share_error",
                   "largest error of a share, last half", 1, from_part=0.5),
            metric("settled_s", "settled_s", "settling time", 1, link=LINK,
                   width_s=0.3, step_s=0.1, part=0.15, level=0.9)),
        bounds=((OURS, _bounds),), x_title="rate of the link [Mbit/s]",
        pictures=(("curves", (panel("utilization"),
                              panel("delay_mean_ms", log=True),
                              panel("delay_p99_ms", log=True),
                              panel("settled_s"))),
                  ("rates", JOIN), ("rates", LEAVE)),
        about="The congestion control sbrm with the source relative over the queue "
              "law delay, with the same settings at rates from 1 Mb/s to 1 Gb/s, "
              "round trips from 5 to 200 ms and with 1 to 36 flows; and one flow "
              "that joins nine, and five of ten flows that leave. Each of these is "
              "a case, with its own rate and delay of the link, with which the "
              "link is calibrated first. "
              "Packets have 1514 bytes on the link, and hosts have the defaults of "
              "Linux: an initial window of ten segments, delayed acknowledgements, "
              "timestamps, TSO.\n\n"
              "Each case has its utilisation, the mean and the 99th percentile of "
              "the delay in the queue, and the packets dropped (all after the first "
              "3 s); the longest delay in the first 3 s; the worst share in its "
              "second half; and the settling time. The settling time begins when "
              "the last flow joins or leaves. It ends when, until the end of the "
              "case, in each 0.3 s (longer if 20 packets of a share take longer) "
              "each flow is within 15 % of its share of the link, and all flows "
              "together have 90 % of the link.\n\n"
              "With --scale many there are all combinations of 1, 10, 100, 1000 and "
              "10000 Mb/s, of 5, 20, 100 and 200 ms, and of 1, 4 and 36 flows, "
              "where the share of a flow is 0.25 Mb/s or more. That is for --on "
              "model, which takes some minutes; in the lab, choose cases with --set "
              "only=.\n\n"
              "Without --cc and --aqm it compares with cubic over fq_codel, bbr "
              "over fq, dctcp over codel with a ce_threshold of 1 ms, and pp over "
              "fq_rr. Bounds apply to sbrm over delay."),
)
