# SPDX-License-Identifier: GPL-2.0
"""Experiments on packet pair that no paper has."""

from ..experiments.description import Case, Experiment, case_bound, metric
from ..experiments.workload import MIRRORED, OURS, BASELINES, flow_of
from . import networks
from .pp94_transfers import BENCH_DEFAULTS, BENCH_SAMPLES, bench_shape

SHARERS = 24
SHARE_RTTS_MS = (34.0, 36.0)


def _share_shape(_values):
    return {"rtts_ms": [rtt for rtt in SHARE_RTTS_MS
                        for _ in range(SHARERS // 2)],
            "delay_ms": 15.0, "sink_ms": 1.0}


def _share_cases(values):
    rtt_s = SHARE_RTTS_MS[1] / 1000
    flows = tuple(flow_of(number, 0.0) for number in range(1, SHARERS + 1))
    return [Case(f"{SHARERS} flows", flows, 10.0,
                 values={} if values["setpoint"] else {"setpoint": 10},
                 classes=True, rtt_s=rtt_s, sample_ms=10, queue_us=10000)]


PATH_SOURCES = 4
PATHS = ("clean", "two-way", "loss 1 %", "reordering by 3")


def _path_cases(values):
    packet_ms = values["packet_bytes"] * 8 / values["rate_mbit"] / 1000
    # One packet in 16 waits until three have overtaken it: tools/late.dist.
    wires = {"loss 1 %": "loss 1%",
             "reordering by 3": f"{3.5 * packet_ms:.6f}ms distribution late"}
    cases = []
    for name in PATHS:
        flows = [flow_of(number, 0.0, role="forth")
                 for number in range(1, PATH_SOURCES + 1)]
        if name == "two-way":
            flows += [flow_of(f"{MIRRORED}{number}", 0.0, role="back")
                      for number in range(1, PATH_SOURCES + 1)]
        cases.append(Case(
            name, tuple(flows), 12.0, classes=True,
            wires={"R1": wires[name]} if name in wires else {},
            **{**BENCH_SAMPLES, "sample_ms": 50, "queue_us": 10000}))
    return cases


EXPERIMENTS = (
    Experiment(
        name="pp-share", title="24 equal flows over 96 Mb/s",
        reproduces="no paper",
        topology=networks.confluence, duration_s=10.0,
        defaults={"packet_bytes": 1000, "rate_mbit": 96.0,
                  "edge_mbit": 960.0, "warmup_s": 3.0, "start_jitter_s": 0.1,
                  "initcwnd": 10, "buffer": 1000},
        variants=BASELINES, cc="pp", aqm="fq_rr", cases=_share_cases,
        shape=_share_shape,
        metrics=(
            metric("share_error", "share_error", "largest error of a share", 2,
                   from_s=3.0),
            metric("utilization", "utilization", "utilisation", 2,
                   link="R1", from_s=3.0),
            metric("queue_each", "class_mean", "mean queue of a flow",
                   1, from_s=3.0),
            metric("estimate_error", "estimate_error",
                   "largest error of an estimated queue", 2, from_s=3.0),
            metric("retransmits", "retransmits", "retransmissions", 0),
            metric("drops", "drops", "drops", 0)),
        bounds=((OURS, lambda values: [
            case_bound("largest error of a share", f"{SHARERS} flows",
                       "share_error", "<=", 0.005),
            case_bound("utilisation", f"{SHARERS} flows", "utilization",
                       ">=", 0.999),
            case_bound("largest error of an estimated queue, packets",
                       f"{SHARERS} flows", "estimate_error", "<=", 1.0),
            case_bound("drops", f"{SHARERS} flows", "drops", "<=", 0)]),),
        pictures=(("class_queues", f"{SHARERS} flows"),),
        about="24 flows of 34 and 36 ms over 96 Mb/s: their shares, and the queue "
              "lengths that the sources estimate beside the real ones."),
    Experiment(
        name="pp-paths", title="Two-way traffic, loss and reordering",
        reproduces="no paper", topology=networks.confluence,
        duration_s=12.0,
        # Packets of 1500 bytes: of 500, the acknowledgements of the other way
        # would take 7.4 % of a link on their own.
        defaults={**BENCH_DEFAULTS, "packet_bytes": 1500, "warmup_s": 2.0,
                  "edge_mbit": 400.0, "buffer": 147},
        variants=BASELINES, cc="pp", aqm="fq_rr", cases=_path_cases,
        shape=bench_shape(PATH_SOURCES, mirror=MIRRORED),
        metrics=(
            metric("goodput", "goodput_share", "goodput", 2,
                   role="forth"),
            metric("utilization", "utilization", "utilisation", 2,
                   link="R1", from_s=2.0),
            metric("queue_mean", "queue_mean", "mean queue", 1,
                   link="R1", from_s=2.0),
            metric("retransmits", "retransmits", "retransmissions", 0),
            metric("drops", "drops", "drops", 0)),
        bounds=((OURS, lambda values: [
            case_bound("goodput, part of that without disturbance", name,
                       "goodput", ">=", 0.95, of_case="clean") for name in PATHS[1:]]),),
        pictures=(("queue", "loss 1 %"), ("sequence", "reordering by 3")),
        about="Four flows over an undisturbed path, with four other flows in the "
              "opposite direction, with 1 % of all packets lost at random, and with "
              "one packet in 16 overtaken by three. Packets have 1500 bytes."),
)
