# SPDX-License-Identifier: GPL-2.0
"""The file transfers of PP94 9.4.

The figures were not available. Where a value was derived from the text, the comment at its
use says so.
"""

from dataclasses import replace

from ..experiments.description import Case, Experiment, case_bound, metric
from ..experiments.workload import (AS_PUBLISHED, BENCH_RTT_MS, MIRRORED, OURS,
                                    PIPE_PKTS, BASELINES, TCP_HEADER_BYTES,
                                    capacity_pps, flow_of, one_link,
                                    payload, with_optima)
from . import networks, pp94

PAPER = pp94.PAPER
# PP94 9.4, Figure 23, and the round trip that its optima have.
BENCH_MBIT, BENCH_ACCESS_MBIT = 40.0, 200.0
BENCH_DELAY_MS, BENCH_EDGE_MS = 20.0, 1.0
PRIMARY_PKTS, CROSS_PKTS, CROSSES = 4000, 1000, 10
BENCH_DEFAULTS = {"packet_bytes": 500, "rate_mbit": BENCH_MBIT,
                   "edge_mbit": BENCH_ACCESS_MBIT, "warmup_s": 0.0,
                   "start_jitter_s": 0.0002, "initcwnd": 10,
                   # One round trip's worth.
                   "buffer": int(BENCH_RTT_MS * 10)}
BENCH_SAMPLES = {"sample_ms": 5, "queue_us": 1000,
                  "rtt_s": BENCH_RTT_MS / 1000}


def bench_shape(sources, **more):
    """The function (parameters) -> keywords of the topology, in ms, for a number of sources
    with the round-trip time of the benchmarks (PP94 Figure 23). more: further keywords."""
    def shape(_values):
        return {"rtts_ms": [BENCH_RTT_MS] * sources,
                "delay_ms": BENCH_DELAY_MS, "sink_ms": BENCH_EDGE_MS, **more}
    return shape


def _crosses(apart_s, first=2, prefix="", start_s=0.1):
    return [flow_of(f"{prefix}{first + index}", start_s + index * apart_s,
                  CROSS_PKTS, "cross") for index in range(CROSSES)]


def _bench_cases(apart_s):
    """Benchmarks 1, 2 and 8: 2 MB, and ten cross streams of 500 KB."""
    def cases(values):
        flows = [flow_of(1, 0.0, PRIMARY_PKTS, "primary"), *_crosses(apart_s)]
        return [Case("transfer", one_link(flows, values), 10.0, classes=True,
                     **BENCH_SAMPLES)]
    return cases


def _bench_3_cases(values):
    return [Case(f"{count} packets", one_link(
        [flow_of(1, 0.0, count, "primary")], values), 3.0, x=count,
        series="file", classes=True, **{**BENCH_SAMPLES, "sample_ms": 1})
        for count in (4, 20, 50, 100, 200, 500, 2000)]


# Figure 25's second round trip, from its optimum.
LONG_RTT_MS = 82.0


def _bench_4_shape(_values):
    return {"rtts_ms": [BENCH_RTT_MS, LONG_RTT_MS] +
            [BENCH_RTT_MS] * CROSSES,
            "delay_ms": BENCH_DELAY_MS, "sink_ms": BENCH_EDGE_MS}


def _bench_4_cases(values):
    flows = [flow_of(1, 0.0, PRIMARY_PKTS, "short"),
             flow_of(2, 0.0, PRIMARY_PKTS, "long"),
             *_crosses(BENCH_RTT_MS / 1000, first=3)]
    return [Case("transfer", one_link(flows, values, {"2": LONG_RTT_MS}),
                 10.0, classes=True, **BENCH_SAMPLES)]


def _bench_5_cases(values):
    flows = [flow_of(1, 0.0, PRIMARY_PKTS, "primary"),
             flow_of(2, 0.1, 2000, "cross"), flow_of(3, 0.25, 500, "cross"),
             flow_of(4, 0.25, 500, "cross")]
    links = {"1": ["L1", "L2"], "2": ["L1"], "3": ["L2"], "4": ["L2"]}
    rtts = dict.fromkeys(links, BENCH_RTT_MS / 1000)
    return [Case("transfer", with_optima(flows, values, links, rtts), 6.0,
                 classes=True, **BENCH_SAMPLES)]


def two_way_flows():
    """Those of benchmark 1, in both directions."""
    return [flow for prefix in ("", MIRRORED) for flow in (
        flow_of(f"{prefix}1", 0.0, PRIMARY_PKTS, "back" if prefix else "forth"),
        *_crosses(BENCH_RTT_MS / 1000, prefix=prefix))]


def _bench_6_cases(values):
    """Acknowledgements take their part of both links: 8 % of the data's."""
    flows, optima = two_way_flows(), {}
    part = 1 + TCP_HEADER_BYTES / values["packet_bytes"]
    for prefix, link in (("", "R1"), (MIRRORED, "R2")):
        mine = [dict(flow, packets=flow["packets"] * part) for flow in flows
                if flow["path"].startswith(MIRRORED) == bool(prefix)]
        paths = {flow["path"]: [link] for flow in mine}
        for flow in with_optima(mine, values, paths, dict.fromkeys(
                paths, BENCH_RTT_MS / 1000)):
            optima[flow["name"]] = flow["optimal_s"]
    return [Case("transfer", tuple(dict(flow, optimal_s=optima[flow["name"]])
                                   for flow in flows), 10.0, classes=True,
                 **BENCH_SAMPLES)]


# PP94 4.4 and 4.5.
ESTIMATORS = ("fuzzy", "fixed", "kalman")


def _estimator_cases(values):
    (case,) = _bench_6_cases(values)
    return [replace(case, name=name, values={"pp_estimator": name}) for name in ESTIMATORS]


INTENSITIES = (0.2, 0.4, 0.6, 0.8, 0.9)


def _bench_7_cases(values):
    """Poisson cross streams from the beginning, as the optima of PP94 Table 13
    have it, 44 + 400/(1 - load) ms. If they came one every 44 ms from 100 ms on,
    as its text has it, 2 MB would be through after 1.2 s at a load of 0.9, and
    not after the 4.1 s of the table."""
    cases = []
    for load in INTENSITIES:
        each = load * values["rate_mbit"] * 1e6 / CROSSES
        primary = one_link(
            [flow_of(1, 0.0, PRIMARY_PKTS, "primary")], values,
            demands=[(0.0, "R1", load * capacity_pps(values) / CROSSES)
                     for _ in range(CROSSES)])
        # Nobody looks at what comes after the transfer.
        whole_s = round(2 * primary[0]["optimal_s"] + 0.5, 1)
        for repeat in range(values["repeats"]):
            crosses = tuple(
                flow_of(number, 0.0, role="cross", udp=each,
                        seed=repeat * 1000 + number)
                for number in range(2, CROSSES + 2))
            cases.append(Case(
                f"load {load:g} #{repeat + 1}", primary + crosses, whole_s,
                point=f"load {load:g}", x=load, series="load", classes=True,
                **{**BENCH_SAMPLES, "queue_us": 5000, "sample_ms": 20}))
    return cases


# Figure 28: round trips of 0.2 and 20.2 ms, two on-off sources. In 2.5 ms at a
# quarter of 40 Mb/s fit 6.25 packets of 500 bytes, but 10 of 312.5: whole ones
# of 500 would offer 24 or 28 %, of which the latter makes Table 15 impossible.
BENCH_9_RTTS_MS = (0.2, 20.2)
BENCH_9_ON_S, BENCH_9_OFF_S, BENCH_9_BYTES = 0.0025, 0.0015, 312


def _bench_9_shape(_values):
    return {"rtts_ms": [*BENCH_9_RTTS_MS, BENCH_9_RTTS_MS[0],
                        BENCH_9_RTTS_MS[0]],
            "delay_ms": 0.04, "sink_ms": 0.02}


def _bench_9_cases(values):
    part = BENCH_9_ON_S / (BENCH_9_ON_S + BENCH_9_OFF_S)
    transfers = one_link(
        [flow_of(number, 0.0, PRIMARY_PKTS, role) for number, role in
         ((1, "near"), (2, "far"))], values,
        dict(zip("12", BENCH_9_RTTS_MS)),
        demands=[(0.0, "R1", 0.25 * part * capacity_pps(values))] * 2)
    crosses = tuple(
        flow_of(number, start_s, role="cross", arrival="cbr", seed=number,
              udp=BENCH_9_BYTES * 8 / BENCH_9_ON_S * 10,
              udp_bytes=BENCH_9_BYTES, on_off=(BENCH_9_ON_S, BENCH_9_OFF_S))
        for number, start_s in ((3, 0.0015), (4, 0.003)))
    return [Case("transfer", transfers + crosses, 6.0, classes=True,
                 **{**BENCH_SAMPLES, "rtt_s": 0.0202})]


def _completions(*roles):
    """Metrics of the transfers of roles."""
    found = []
    for role in roles:
        suffix = "" if len(roles) == 1 else f", {role}"
        found += [
            metric(f"optimal_ms{suffix}", "optimal_ms",
                   f"optimal completion time{suffix}", 1, role=role),
            metric(f"completion_ms{suffix}", "completion_ms",
                   f"completion time{suffix}", 1, role=role),
            metric(f"slowdown{suffix}", "slowdown",
                   f"slowdown{suffix}", 1, role=role)]
    return tuple(found)


_BENCH_METRICS = (
    metric("retransmits", "retransmits", "retransmissions", 0),
    metric("drops", "drops", "drops", 0),
    metric("queue_max", "queue_max", "largest queue", 0))


def _bench(number, title, table, cases, shape, roles=("primary",),
           topology=networks.confluence, defaults=(), metrics=(), pictures=(),
           duration_s=10.0, x_title=None, about=""):
    return Experiment(
        name=f"pp-bench-{number}", title=title, about=about,
        reproduces=f"PP94 9.4.{number}: Table {table}",
        topology=topology, duration_s=duration_s,
        # Linux begins with ten segments, as the baselines do; PP94 with a pair.
        defaults={**BENCH_DEFAULTS, **dict(defaults)},
        variants=(BASELINES[0], AS_PUBLISHED, *BASELINES[1:]),
        cc="pp", aqm="fq_rr", cases=cases, shape=shape,
        metrics=_completions(*roles) + tuple(metrics) + _BENCH_METRICS,
        x_title=x_title, pictures=pictures or (("sequence", "transfer"),
                                               ("queue", "transfer")))


VIDEOS, VIDEO_CROSSES = 8, 8
CROSS_STARTS_S, CROSS_S = (4.0, 12.0), 4.0
FRAME_S = 0.04
# A whole share of the link for each, and what a coder cannot go below.
VIDEO_MOST_BPS, VIDEO_LEAST_BPS = 5e6, 4e5
FRAME_BYTES = int(VIDEO_MOST_BPS * FRAME_S / 8)


def video_case(name, coder, cross=(), **words):
    """Eight coders over the bottleneck of the benchmarks, and eight transfers
    that come for 4 s each: the share of a coder falls to a half and rises.

    coder: of its number, what its flow has beside its path and its start; cross:
    a dict with the same of each transfer.
    """
    # Coders do not all begin a frame at the same moment.
    flows = [flow_of(number, FRAME_S * number / VIDEOS, role="video",
                     **coder(number)) for number in range(1, VIDEOS + 1)]
    flows += [flow_of(number, start_s, role="cross", stop_s=start_s + CROSS_S,
                      name=f"{number}.{start_s:g}", **dict(cross))
              for start_s in CROSS_STARTS_S
              for number in range(VIDEOS + 1, VIDEOS + VIDEO_CROSSES + 1)]
    return Case(name, tuple(flows), 20.0, classes=True,
                **{**BENCH_SAMPLES, "sample_ms": 10, "queue_us": 10000},
                **words)


def constant_coder(number):
    """A coder that hands over whole frames."""
    return {"words": f"rate={int(VIDEO_MOST_BPS)} size={FRAME_BYTES} "
                     f"overhead=0 seed={number}"}


def adaptive_coder(number):
    """One that reads the rate that it may send."""
    return {"words": f"{constant_coder(number)['words']} "
                     f"floor={int(VIDEO_LEAST_BPS)}"}


def _video_cases(_values):
    return [video_case("adaptive", adaptive_coder),
            video_case("constant", constant_coder)]


PAIRED, TOLD = "packet pair", "told its share"


def _told_rates(values):
    """Words of a flow that is told at each moment what its share of the link is,
    as data: by the scenario, and so at once."""
    def share(sources):
        return int(BENCH_MBIT * 1e6 * payload(values) / values["packet_bytes"]
                   / sources)

    changes = [f"{share(sources)}@{when_s:g}" for start_s in CROSS_STARTS_S
               for sources, when_s in ((VIDEOS + VIDEO_CROSSES, start_s),
                                       (VIDEOS, start_s + CROSS_S))]
    return f"told={','.join([str(share(VIDEOS)), *changes])}"


def _told_cases(values):
    """Packet pair beside sources with explicit rates. Those have a control that
    does not matter: nothing is lost at the rates that they are told."""
    def coder(number):
        return {"cc": "reno", "words": f"{adaptive_coder(number)['words']} "
                                       f"{_told_rates(values)}"}
    return [video_case(PAIRED, adaptive_coder),
            video_case(TOLD, coder, {"cc": "reno", "words": _told_rates(values)})]


VIDEO_METRICS = (
    metric("rate_mbit", "frame_rate_mbit", "rate of a coder", 2, role="video"),
    metric("delay_p50_ms", "frame_delay_ms",
           "median delay of a frame", 1, role="video", part=0.5),
    metric("delay_p99_ms", "frame_delay_ms",
           "99th percentile of the delay of a frame", 1, role="video", part=0.99),
    metric("losses", "loss_part", "retransmissions or losses", 2,
           role="video"),
    metric("jain", "jain", "Jain's index of rates", 3, role="video", from_rtt=20),
    metric("utilization", "utilization", "utilisation", 1, link="R1",
           from_rtt=20),
    metric("drops", "drops", "drops", 0))


EXPERIMENTS = (
    _bench(1, "Slow changes of the cross traffic", 7,
           _bench_cases(BENCH_RTT_MS / 1000), bench_shape(CROSSES + 1),
           about="File transfers under cross traffic that arrives slowly."),
    _bench(2, "Sudden jumps of the cross traffic", 8, _bench_cases(0.004),
           bench_shape(CROSSES + 1),
           about="File transfers under cross traffic that arrives at once."),
    _bench(3, "Short files", 9, _bench_3_cases, bench_shape(1),
           x_title="packets of the file",
           pictures=(("curve", "slowdown"), ("sequence", "2000 packets")),
           about="Transfers of short files."),
    _bench(4, "Two round trips", 10, _bench_4_cases, _bench_4_shape,
           roles=("short", "long"),
           about="File transfers over two round trips."),
    _bench(5, "A bottleneck that migrates", 11, _bench_5_cases,
           lambda values: {}, topology=networks.migration,
           about="A file transfer over a bottleneck that migrates."),
    _bench(6, "Two-way traffic", 12, _bench_6_cases,
           bench_shape(CROSSES + 1, mirror=MIRRORED), roles=("forth", "back"),
           about="File transfers in both directions."),
    Experiment(
        name="pp-estimators-two-way",
        title="Three estimators of the service time, two-way traffic",
        reproduces="PP94 4.4 and 4.5, with the sources of 9.4.6",
        topology=networks.confluence, duration_s=10.0,
        defaults={**BENCH_DEFAULTS, "initial": 2}, cc="pp", aqm="fq_rr",
        cases=_estimator_cases, shape=bench_shape(CROSSES + 1, mirror=MIRRORED),
        metrics=_completions("forth", "back") + _BENCH_METRICS,
        # PP94 4.5: it ignores spikes, which acknowledgements make that queue behind data.
        bounds=((OURS, lambda values: [
            case_bound(f"completion time {role}, part of that with {other}", "fuzzy",
                       f"completion_ms, {role}", "<=", 1.0, of_case=other)
            for other in ESTIMATORS[1:] for role in ("forth", "back")]),),
        pictures=(("queue", "fuzzy"), ("queue", "kalman")),
        about="The sources of pp-bench-6 with each estimator, set as in the paper."),
    _bench(7, "Uncontrolled cross traffic", 13, _bench_7_cases,
           bench_shape(CROSSES + 1), defaults={"repeats": 5},
           x_title="cross traffic, of the link's rate",
           metrics=(metric("variance", "completion_variance",
                           "variance of the completion time", 1, role="primary"),),
           pictures=(("curve", "slowdown"), ("queue", "load 0.6 #1")),
           about="File transfers beside uncontrolled Poisson traffic, with each "
                 "load as often as repeats says."),
    _bench(8, "A tenth of the buffers", 14, _bench_cases(BENCH_RTT_MS / 1000),
           bench_shape(CROSSES + 1),
           defaults={"buffer": int(BENCH_RTT_MS)},
           about="File transfers under cross traffic that arrives slowly, with a "
                 "tenth of the buffers."),
    _bench(9, "A torture test for rates", 15, _bench_9_cases, _bench_9_shape,
           roles=("near", "far"),
           # One round trip's worth of the longer one.
           defaults={"buffer": 202},
           about="File transfers with round trips of 0.2 and 20.2 ms, under traffic "
                 "that switches on and off every 4 ms."),
    Experiment(
        name="pp-video", title="Coders that read the rate they may send",
        reproduces="PP94 9.5", topology=networks.confluence,
        duration_s=20.0, defaults={**BENCH_DEFAULTS, "buffer": PIPE_PKTS},
        variants=BASELINES, cc="pp", aqm="fq_rr", cases=_video_cases,
        shape=bench_shape(VIDEOS + VIDEO_CROSSES),
        metrics=VIDEO_METRICS,
        bounds=((OURS, lambda values: [
            # The paper shows pictures alone: what keeps quality is that nothing
            # is lost or late (a frame is coded for at most a quarter second).
            case_bound("retransmissions of a coder", "adaptive", "losses",
                       "<=", 0.01),
            case_bound("99th percentile of the delay of a frame, ms",
                       "adaptive", "delay_p99_ms", "<=", 250),
            case_bound("99th percentile of the delay of a frame, part of that "
                       "of constant coders", "adaptive", "delay_p99_ms",
                       "<=", 1.0, of_case="constant"),
            case_bound("utilisation", "adaptive", "utilization", ">=",
                       0.9)]),),
        pictures=(("frames", "adaptive"), ("frames", "constant"),
                  ("queue", "adaptive")),
        about="Eight video coders, 25 frames a second of at most 5 Mb/s each, over "
              "40 Mb/s. Eight greedy flows join them twice for 4 s. Adaptive coders "
              "read the rate that they may send before each frame, see floor in "
              "tollway-traffic(1); constant coders do not."),
    Experiment(
        name="pp-video-told", title="Coders that find their share or are told it",
        reproduces="PP94 9.5", topology=networks.confluence,
        duration_s=20.0, defaults={**BENCH_DEFAULTS, "buffer": PIPE_PKTS},
        cc="pp", aqm="fq_rr", cases=_told_cases, others=("reno",),
        shape=bench_shape(VIDEOS + VIDEO_CROSSES), metrics=VIDEO_METRICS,
        # As good as explicit rates from hop to hop, says the paper.
        bounds=((OURS, lambda values: [
            case_bound("rate of a coder, part of that of a coder that is told",
                       PAIRED, "rate_mbit", ">=", 0.9, of_case=TOLD),
            case_bound("median delay of a frame, part of that of a coder that is "
                       "told", PAIRED, "delay_p50_ms", "<=", 1.1, of_case=TOLD),
            case_bound("99th percentile of the delay of a frame, part of that of "
                       "a coder that is told", PAIRED, "delay_p99_ms", "<=", 1.1, of_case=TOLD)]),),
        pictures=(("frames", PAIRED), ("frames", TOLD), ("queue", PAIRED),
                  ("queue", TOLD)),
        about="The adaptive coders of pp-video beside the same coders and flows "
              "that are told their share at once when it changes, see told in "
              "tollway-traffic(1). They stand for the explicit rates with which the "
              "paper compares."),
)
