# SPDX-License-Identifier: GPL-2.0
"""Packet pair at the receiver, PP94 10.4, beside packet pair at the sender.

PP94 leaves it as future work: nothing of it is published.
"""

from ..experiments.description import Case, Experiment, case_bound, metric
from ..experiments.workload import (MIRRORED, OURS, PIPE_PKTS, flow_of,
                                    paired_payload)
from . import networks, pp94
from .pp94 import ROW_DEFAULTS, arrival_flows, often, row_presets, table_3, units
from .pp94_transfers import (BENCH_DEFAULTS, BENCH_SAMPLES, CROSSES, FRAME_BYTES,
                             FRAME_S, VIDEO_CROSSES, VIDEO_LEAST_BPS,
                             VIDEO_METRICS, VIDEO_MOST_BPS, VIDEOS,
                             adaptive_coder, bench_shape, two_way_flows,
                             video_case)

PAPER = pp94.PAPER
SETPOINT = 20
# Sources of the sweep, of which each has this setpoint: half of the buffer.
SWEEP_SOURCES, SWEEP_SETPOINT = 10, 5
INTERVALS = (0.25, 1.0, 4.0, 16.0)
SENDER, RECEIVER = "sender", "receiver"
# Of 9.4.6: eleven sources have a buffer of 440 packets, and PP94's are about 10 in
# the mean (9.3). The first transfers take 1.556 s at least.
TWO_WAY_SETPOINT, TWO_WAY_S = 10, 1.5
# Of 9.5: sixteen sources have a buffer of 100 packets.
VIDEO_SETPOINT = 5


def _receiver(interval):
    return f"receiver, {interval:g} RTT"


def _stream(flow, **law):
    """The same flow as a stream of which the receiver controls the rate."""
    return {**flow, "law": law}


def _cases(values):
    unit_s, rtt_s = units(values)
    setpoint = values["setpoint"] or SETPOINT
    cases = [Case("one source", (_stream(flow_of(1, 0.0), setpoint=setpoint),),
                  40 * rtt_s, classes=True, values={"setpoint": setpoint},
                  **often(values))]
    flows = arrival_flows(values, 2)
    for name, series, interval in [(SENDER, SENDER, None)] + [
            (_receiver(interval), "receiver", interval)
            for interval in INTERVALS]:
        mine = flows if interval is None else [
            _stream(flow, **{"setpoint": SWEEP_SETPOINT, "report-rtt": interval})
            for flow in flows]
        cases.append(Case(name, tuple(mine), 12000 * unit_s, x=interval,
                          series=series, classes=True,
                          values={"setpoint": SWEEP_SETPOINT},
                          **often(values, 5)))
    return cases


# --- 9.4.6 and 9.5 ---------------------------------------------------------

def _two_way_cases(_values):
    flows = two_way_flows()
    return [Case(name, tuple(flows if name == SENDER else [
        _stream(flow, setpoint=TWO_WAY_SETPOINT) for flow in flows]), 4.0,
        classes=True, **BENCH_SAMPLES) for name in (SENDER, RECEIVER)]


def _video_cases(values):
    def coder(_number):
        # With its headers: a stream whose frames leave as fast as the share of the
        # moment lets them has silences, in which others find a larger share.
        most_bps = VIDEO_MOST_BPS * values["packet_bytes"] \
            / paired_payload(values)
        return {"law": {"rate": round(most_bps), "setpoint": VIDEO_SETPOINT,
                        "frame": FRAME_BYTES, "every": FRAME_S,
                        "floor": int(VIDEO_LEAST_BPS)}}
    return [video_case(SENDER, adaptive_coder), video_case(RECEIVER, coder)]


EXPERIMENTS = (
    Experiment(
        name="pp-receiver", title="The receiver controls the rate",
        reproduces="PP94 10.4, with the sources of 9.1 and 9.2",
        topology=networks.confluence, duration_s=10.0, defaults=ROW_DEFAULTS,
        presets=row_presets(), cc="pp", aqm="fq_rr", cases=_cases,
        x_title="round trips between reports", shape=table_3(SWEEP_SOURCES),
        metrics=(
            metric("utilization", "utilization", "utilisation from 10 RTT",
                   2, link="R1", from_rtt=10),
            metric("queue_min", "queue_min", "smallest queue from 10 RTT", 0,
                   link="R1", from_rtt=10),
            metric("queue_mean", "queue_mean", "mean queue", 1, link="R1",
                   from_rtt=10),
            metric("queue_max", "queue_max", "largest queue", 0, link="R1",
                   from_rtt=10),
            metric("peak", "class_peak", "largest queue of source 1", 0,
                   role="first"),
            metric("jain", "jain", "Jain's index of rates from 2200 to 4200 TU", 4,
                   from_rtt=22, to_rtt=42),
            metric("drops", "drops", "drops", 0)),
        bounds=((OURS, lambda values: [
            case_bound("smallest queue from 10 RTT on", "one source", "queue_min",
                       ">=", SETPOINT - 2),
            case_bound("largest queue from 10 RTT on", "one source",
                       "queue_max", "<=", SETPOINT + 2),
            case_bound("largest queue of source 1, part of that with control at "
                       "the sender", _receiver(1), "peak", "<=", 1.2, of_case=SENDER)] + [
            case_bound("largest queue of source 1, part of that with reports "
                       f"four times as often as {each:g} RTT",
                       _receiver(each), "peak", ">=", 1.0,
                       of_case=_receiver(each / 4))
            for each in INTERVALS[1:]]),),
        pictures=(("curve", "peak"), ("queue", "one source"),
                  ("class_queues", _receiver(1))),
        about="A receiver controls the rate of a stream over UDP, see law in "
              "tollway-traffic(1). There is one source with a setpoint of 20 "
              "packets, and the sources of pp-arrivals, one in every second round "
              "trip, with packet pair at the sender and with reports every 0.25, 1, "
              "4 and 16 round trips, all with a setpoint of 5. The paper has no "
              "results for it."),
    Experiment(
        name="pp-receiver-two-way", title="Reports instead of acknowledgements",
        reproduces="PP94 10.4, with the sources of 9.4.6",
        topology=networks.confluence, duration_s=10.0, defaults=BENCH_DEFAULTS,
        cc="pp", aqm="fq_rr", cases=_two_way_cases,
        shape=bench_shape(CROSSES + 1, mirror=MIRRORED),
        metrics=(
            *(metric(f"goodput_mbit, {role}", "goodput_mbit",
                     f"goodput in the first {TWO_WAY_S:g} s, {role}", 2, role=role,
                     to_s=TWO_WAY_S) for role in ("forth", "back")),
            metric("goodput_mbit", "goodput_mbit",
                   f"goodput of all in the first {TWO_WAY_S:g} s", 2, to_s=TWO_WAY_S),
            *(metric(f"losses, {role}", "loss_part", f"retransmissions or losses, {role}", 2,
                     role=role) for role in ("forth", "back")),
            metric("queue_max", "queue_max", "largest queue", 0),
            metric("drops", "drops", "drops", 0)),
        bounds=((OURS, lambda values: [
            case_bound(f"goodput {role}, part of that with control at the sender",
                       RECEIVER, f"goodput_mbit, {role}", ">=", 1.0, of_case=SENDER)
            for role in ("forth", "back")]),),
        pictures=(("queue", RECEIVER),),
        about="The sources of pp-bench-6 with packet pair at the sender, and as "
              "streams with packet pair at the receiver and a setpoint of 10. The "
              "goodput is that of the first 1.5 s, without headers."),
    Experiment(
        name="pp-receiver-video", title="Coders whose receivers tell the rate",
        reproduces="PP94 10.4, with the sources of 9.5",
        topology=networks.confluence, duration_s=20.0,
        defaults={**BENCH_DEFAULTS, "buffer": PIPE_PKTS},
        cc="pp", aqm="fq_rr", cases=_video_cases,
        shape=bench_shape(VIDEOS + VIDEO_CROSSES),
        metrics=VIDEO_METRICS,
        bounds=((OURS, lambda values: [
            case_bound("99th percentile of the delay of a frame, part of that "
                       "with control at the sender", RECEIVER, "delay_p99_ms",
                       "<=", 1.0, of_case=SENDER),
            case_bound("retransmissions or losses of a coder", RECEIVER, "losses", "<=", 0.01),
            case_bound("utilisation", RECEIVER, "utilization", ">=", 0.9)]),),
        pictures=(("frames", SENDER), ("frames", RECEIVER),
                  ("queue", RECEIVER)),
        about="The adaptive coders of pp-video with packet pair at the sender, and "
              "as streams with packet pair at the receiver and a setpoint of 5. A "
              "frame has arrived when its acknowledgement reaches the sender; for a "
              "stream this is the time at which it would."),
)
