# SPDX-License-Identifier: GPL-2.0
"""The experiments of PP94 section 9 and of MK94.

A packet is what the links carry of it: 500 bytes with the headers of IP and
TCP, of which 460 are data; without timestamps an acknowledgement has 40. A file
of 2 MB is 4000 packets, whatever their headers. Connections are made before
their data is there, as the circuits of the papers are: a completion time counts
from then, and a handshake would add a round trip to it.

PP94's figures are lost: what was worked back is said where it is used
(ALGORITHMS.md 5). The optimum of a transfer is theory.fluid_completions().
"""

from . import theory
from .errors import TollwayError
from .experiment import Case, CaseExperiment, Variant, case_bound, metric
from .settings import (PACKET_PAIR, aqm_words, known_aqm, packet_pair_sysctls,
                       sysctls)
from .topo_pp import MIRRORED

TCP_HEADER_BYTES = 40
UDP_HEADER_BYTES = 28
# PP94 Table 3, rows of 500-byte packets: Mb/s and the round trip, ms. They are
# 100 packets in 100 time units each, so that a unit is the time of a packet.
# WAN is the default: Linux's smallest timeout of 200 ms is 3.3 round trips
# there (PP94's own is 1.5), and 20 or 200 in the others.
TABLE_3 = {"lan": (400.0, 1.0), "man": (40.0, 10.0), "wan": (20.0 / 3, 60.0)}
PIPE_PKTS = 100
# PP94 9.4, Figure 23, and the round trip that its optima have.
BENCH_MBIT, BENCH_ACCESS_MBIT, BENCH_RTT_MS = 40.0, 200.0, 44.0
BENCH_DELAY_MS, BENCH_EDGE_MS = 20.0, 1.0
PRIMARY_PKTS, CROSS_PKTS, CROSSES = 4000, 1000, 10
# MK94 section 2.
OVERLOAD_MBIT, OVERLOAD_ACCESS_MBIT = 8.0952, 80.952
OVERLOAD_RTT_MS, OVERLOAD_WINDOW_PKTS = 50.0, 101.19
LOADS = (0.5, 0.75, 0.9, 1.0, 1.5, 2.0, 5.0)
SOURCES = 10

# What else is run beside packet pair, over the same queue and over fq_codel.
_RIVALS = tuple(
    Variant(f"{cc}-{aqm}", cc, aqm)
    for cc, aqm in (("pp", "fq_rr"), ("cubic", "fq_rr"), ("bbr", "fq_rr"),
                    ("reno", "fq_rr"), ("cubic", "fq_codel"),
                    ("bbr", "fq_codel"), ("reno", "fq_codel")))
_OURS = ("pp+fq_rr",)


# --- flows -----------------------------------------------------------------

def _payload(values):
    return values["packet_bytes"] - TCP_HEADER_BYTES


def _flow(path, start_s, packets=None, role="source", **more):
    return {"name": str(path), "path": str(path), "role": role,
            "start_s": start_s, "packets": packets, **more}


def _capacity_pps(values):
    return values["rate_mbit"] * 1e6 / 8 / values["packet_bytes"]


def _with_optima(flows, values, links, rtts_s, demands=()):
    """Flows with the completion time that would be best for each transfer.

    links: {path: links}; rtts_s: {path: s}; demands: [(start s, link, pps)] of
    what is not under control.
    """
    names = {link for path in links.values() for link in path}
    rate = _capacity_pps(values)
    ends = theory.fluid_completions(
        dict.fromkeys(names, rate),
        [(flow["name"], flow["start_s"], flow["packets"],
          links[flow["path"]], None)
         for flow in flows if flow["packets"] is not None] +
        [(("demand", index), start_s, None, [link], pps)
         for index, (start_s, link, pps) in enumerate(demands)])
    return tuple(
        dict(flow, optimal_s=round(ends[flow["name"]] - flow["start_s"]
                                   + rtts_s[flow["path"]], 6))
        if flow["packets"] is not None else flow for flow in flows)


def _one_link(flows, values, rtts_ms=None, **keywords):
    """_with_optima() of flows over R1 alone."""
    paths = {flow["path"] for flow in flows}
    rtts = {path: (rtts_ms or {}).get(path, values_rtt_ms(values)) / 1000
            for path in paths}
    return _with_optima(flows, values, {path: ["R1"] for path in paths}, rtts,
                        **keywords)


def _produced(values, rate_bps, seed, on_s=None, off_s=None, closed=False):
    """Words of an application that hands over a pair of packets at a time.

    A single packet that Linux is given it sends at once; PP94's sources wait up
    to 100 ms for the second (section 8).
    """
    words = (f"rate={int(rate_bps)} size={2 * _payload(values)} "
             f"overhead={2 * TCP_HEADER_BYTES} seed={seed}")
    if on_s is not None:
        words += f" on=exp:{on_s:.6f} off=exp:{off_s:.6f}"
    return words + (" source=closed" if closed else "")


# --- PP94 9.1 and 9.2 ------------------------------------------------------

def values_rtt_ms(values):
    """Round trip of propagation that an experiment is about, ms."""
    return TABLE_3[values["row"]][1] if "row" in values else BENCH_RTT_MS


def _table_3(sources):
    """Shape of PP94 Figure 10: access ten times as fast as the bottleneck."""
    def shape(values):
        rtt_ms = values_rtt_ms(values)
        return {"rtts_ms": [rtt_ms] * sources,
                "delay_ms": round(rtt_ms * 0.4, 6),
                "sink_ms": round(rtt_ms / 20, 6)}
    return shape


def _units(values):
    """Seconds of a time unit, and of a round trip of 100."""
    rtt_s = values_rtt_ms(values) / 1000
    return rtt_s / PIPE_PKTS, rtt_s


def _row_presets():
    return tuple(((row,), {"rate_mbit": mbit, "edge_mbit": 10 * mbit})
                 for row, (mbit, _) in TABLE_3.items())


_ROW_DEFAULTS = {"row": "wan", "packet_bytes": 500, "warmup_s": 0.0,
                 "start_jitter_s": 0.0002, "initcwnd": 10, "buffer": PIPE_PKTS,
                 # PP94 5: a pair, and then what it told. With the ten of Linux
                 # nine sources that start at once fill the buffer alone.
                 "initial": 2}


def _often(values, each=0.5):
    """Sampling: us between samples of a queue, ms of a flow, for a resolution
    of a part of a time unit."""
    unit_s, rtt_s = _units(values)
    return {"queue_us": max(round(unit_s * each * 1e6), 1), "rtt_s": rtt_s,
            "sample_ms": round(unit_s * 1e3 * 10, 6)}


def _base_cases(values):
    _, rtt_s = _units(values)
    return [Case("setpoint 20", (_flow(1, 0.0),), 40 * rtt_s,
                 values={} if values["setpoint"] else {"setpoint": 20},
                 classes=True, **_often(values))]


def _setpoint_cases(values):
    _, rtt_s = _units(values)
    return [Case("4 sources", tuple(_flow(number, 0.0) for number in
                                    range(1, 5)), 80 * rtt_s,
                 classes=True, **_often(values, 5))]


def _arrival_cases(values):
    """Source 1 sends 1500 packets, nine others 500, the first of them 500 time
    units later and then one every R round trips."""
    unit_s, _ = _units(values)
    cases = []
    for apart in (0.5, 2):
        flows = [_flow(1, 0.0, 1500, "first")] + [
            _flow(number, (500 + (number - 2) * apart * PIPE_PKTS) * unit_s,
                  500, "later") for number in range(2, SOURCES + 1)]
        cases.append(Case(
            f"every {apart:g} RTT", _one_link(flows, values),
            12000 * unit_s, x=apart, classes=True, **_often(values, 5)))
    return cases


# Table 4's times fit 2000 packets of source 1 and 500 of each other, all of
# which start at 1000: 2000 + 500 (N - 1) are 2500 and 6500 of 2761 and 7172.
BURST_FIRST_PKTS, BURST_OTHER_PKTS, BURST_UNITS = 2000, 500, 1000
UNLIMITED_PKTS = 10000


def _burst_cases(values):
    unit_s, _ = _units(values)
    cases = []
    for series, room in (("limited", PIPE_PKTS), ("unlimited",
                                                  UNLIMITED_PKTS)):
        for count in range(2, SOURCES + 1):
            flows = [_flow(1, 0.0, BURST_FIRST_PKTS, "first")] + [
                _flow(number, BURST_UNITS * unit_s, BURST_OTHER_PKTS, "other")
                for number in range(2, count + 1)]
            cases.append(Case(
                f"N = {count}, {series}", _one_link(flows, values),
                15000 * unit_s, values={"buffer": room}, x=count,
                series=series, classes=True, **_often(values, 2)))
    return cases


def _per_role(role):
    return (metric("completion_tu", "completion_units", "completion [TU]", 0,
                   role=role),
            metric("optimal_tu", "optimal_units", "optimum [TU]", 0,
                   role=role))


# --- PP94 9.3 --------------------------------------------------------------

PUBLIC_PKTS = 2000


def _public_cases(values):
    """On for two round trips on average at the bottleneck's rate (MK94 (2) and
    (4): PP94 does not say), silent for as long as the load wants it."""
    _, rtt_s = _units(values)
    on_s = 2 * rtt_s
    rate_bps = values["rate_mbit"] * 1e6
    cases = []
    for kind in ("open", "closed"):
        for load in LOADS:
            off_s = theory.off_for_load(load / SOURCES, on_s,
                                        rtt_s if kind == "closed" else 0.0)
            flows = tuple(
                _flow(number, 0.0, PUBLIC_PKTS, words=(
                    number * 1000, rate_bps, on_s, off_s, kind == "closed"))
                for number in range(1, SOURCES + 1))
            cases.append(Case(
                f"{kind} {load:g}", flows, 1500 * rtt_s, x=load, series=kind,
                rtt_s=rtt_s, sample_ms=500, queue_us=20000))
    return cases


# --- PP94 9.4 --------------------------------------------------------------

_BENCH_DEFAULTS = {"packet_bytes": 500, "rate_mbit": BENCH_MBIT,
                   "edge_mbit": BENCH_ACCESS_MBIT, "warmup_s": 0.0,
                   "start_jitter_s": 0.0002, "initcwnd": 10,
                   # One round trip's worth.
                   "buffer": int(BENCH_RTT_MS * 10)}
_BENCH_SAMPLES = {"sample_ms": 5, "queue_us": 1000,
                  "rtt_s": BENCH_RTT_MS / 1000}


def _bench_shape(sources, **more):
    def shape(_values):
        return {"rtts_ms": [BENCH_RTT_MS] * sources,
                "delay_ms": BENCH_DELAY_MS, "sink_ms": BENCH_EDGE_MS, **more}
    return shape


def _crosses(apart_s, first=2, prefix="", start_s=0.1):
    return [_flow(f"{prefix}{first + index}", start_s + index * apart_s,
                  CROSS_PKTS, "cross") for index in range(CROSSES)]


def _bench_cases(apart_s):
    """Benchmarks 1, 2 and 8: 2 MB, and ten cross streams of 500 KB."""
    def cases(values):
        flows = [_flow(1, 0.0, PRIMARY_PKTS, "primary"), *_crosses(apart_s)]
        return [Case("transfer", _one_link(flows, values), 10.0, classes=True,
                     **_BENCH_SAMPLES)]
    return cases


def _bench_3_cases(values):
    return [Case(f"{count} packets", _one_link(
        [_flow(1, 0.0, count, "primary")], values), 3.0, x=count,
        series="file", classes=True, **{**_BENCH_SAMPLES, "sample_ms": 1})
        for count in (4, 20, 50, 100, 200, 500, 2000)]


# Figure 25's second round trip, from its optimum.
LONG_RTT_MS = 82.0


def _bench_4_shape(_values):
    return {"rtts_ms": [BENCH_RTT_MS, LONG_RTT_MS] +
            [BENCH_RTT_MS] * CROSSES,
            "delay_ms": BENCH_DELAY_MS, "sink_ms": BENCH_EDGE_MS}


def _bench_4_cases(values):
    flows = [_flow(1, 0.0, PRIMARY_PKTS, "short"),
             _flow(2, 0.0, PRIMARY_PKTS, "long"),
             *_crosses(BENCH_RTT_MS / 1000, first=3)]
    return [Case("transfer", _one_link(flows, values, {"2": LONG_RTT_MS}),
                 10.0, classes=True, **_BENCH_SAMPLES)]


def _bench_5_cases(values):
    flows = [_flow(1, 0.0, PRIMARY_PKTS, "primary"),
             _flow(2, 0.1, 2000, "cross"), _flow(3, 0.25, 500, "cross"),
             _flow(4, 0.25, 500, "cross")]
    links = {"1": ["L1", "L2"], "2": ["L1"], "3": ["L2"], "4": ["L2"]}
    rtts = dict.fromkeys(links, BENCH_RTT_MS / 1000)
    return [Case("transfer", _with_optima(flows, values, links, rtts), 6.0,
                 classes=True, **_BENCH_SAMPLES)]


def _bench_6_cases(values):
    """Acknowledgements take their part of both links: 8 % of the data's."""
    flows, optima = [], {}
    part = 1 + TCP_HEADER_BYTES / values["packet_bytes"]
    for prefix in ("", MIRRORED):
        flows += [_flow(f"{prefix}1", 0.0, PRIMARY_PKTS,
                        "back" if prefix else "forth"),
                  *_crosses(BENCH_RTT_MS / 1000, prefix=prefix)]
    for prefix, link in (("", "R1"), (MIRRORED, "R2")):
        mine = [dict(flow, packets=flow["packets"] * part) for flow in flows
                if flow["path"].startswith(MIRRORED) == bool(prefix)]
        paths = {flow["path"]: [link] for flow in mine}
        for flow in _with_optima(mine, values, paths, dict.fromkeys(
                paths, BENCH_RTT_MS / 1000)):
            optima[flow["name"]] = flow["optimal_s"]
    return [Case("transfer", tuple(dict(flow, optimal_s=optima[flow["name"]])
                                   for flow in flows), 10.0, classes=True,
                 **_BENCH_SAMPLES)]


INTENSITIES = (0.2, 0.4, 0.6, 0.8, 0.9)


def _bench_7_cases(values):
    """Poisson cross streams, which the optimum takes to be there all the time
    (PP94 Table 13: 44 + 400/(1 - load) ms)."""
    cases = []
    for load in INTENSITIES:
        each = load * values["rate_mbit"] * 1e6 / CROSSES
        primary = _one_link(
            [_flow(1, 0.0, PRIMARY_PKTS, "primary")], values,
            demands=[(0.0, "R1", load * _capacity_pps(values) / CROSSES)
                     for _ in range(CROSSES)])
        # Nobody looks at what comes after the transfer.
        whole_s = round(2 * primary[0]["optimal_s"] + 0.5, 1)
        for repeat in range(values["repeats"]):
            crosses = tuple(
                _flow(number, 0.1 + (number - 2) * BENCH_RTT_MS / 1000,
                      role="cross", udp=each, seed=repeat * 1000 + number)
                for number in range(2, CROSSES + 2))
            cases.append(Case(
                f"load {load:g} #{repeat + 1}", primary + crosses, whole_s,
                point=f"load {load:g}", x=load, series="load", classes=True,
                **{**_BENCH_SAMPLES, "queue_us": 5000, "sample_ms": 20}))
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
    transfers = _one_link(
        [_flow(number, 0.0, PRIMARY_PKTS, role) for number, role in
         ((1, "near"), (2, "far"))], values,
        dict(zip("12", BENCH_9_RTTS_MS)),
        demands=[(0.0, "R1", 0.25 * part * _capacity_pps(values))] * 2)
    crosses = tuple(
        _flow(number, start_s, role="cross", arrival="cbr", seed=number,
              udp=BENCH_9_BYTES * 8 / BENCH_9_ON_S * 10,
              udp_bytes=BENCH_9_BYTES, on_off=(BENCH_9_ON_S, BENCH_9_OFF_S))
        for number, start_s in ((3, 0.0015), (4, 0.003)))
    return [Case("transfer", transfers + crosses, 6.0, classes=True,
                 **{**_BENCH_SAMPLES, "rtt_s": 0.0202})]


def _completions(*roles):
    """Metrics of the transfers of roles."""
    found = []
    for role in roles:
        suffix = "" if len(roles) == 1 else f", {role}"
        found += [
            metric(f"optimal_ms{suffix}", "optimal_ms",
                   f"optimum{suffix} [ms]", 1, role=role),
            metric(f"completion_ms{suffix}", "completion_ms",
                   f"completion{suffix} [ms]", 1, role=role),
            metric(f"slowdown{suffix}", "slowdown",
                   f"slowdown{suffix} [%]", 1, role=role)]
    return tuple(found)


_BENCH_METRICS = (
    metric("retransmits", "retransmits", "sent again [pkts]", 0),
    metric("drops", "drops", "drops", 0),
    metric("queue_max", "queue_max", "longest queue [pkts]", 0))


def _bench(number, title, table, cases, shape, roles=("primary",),
           topology="Confluence", defaults=(), metrics=(), pictures=(),
           duration_s=10.0):
    return CaseExperiment(
        name=f"pp-bench-{number}", title=title,
        reproduces=f"PP94 9.4.{number}: Table {table}",
        topology=topology, classes=(), duration_s=duration_s,
        defaults={**_BENCH_DEFAULTS, **dict(defaults)}, variants=_RIVALS,
        cc="pp", aqm="fq_rr", cases=cases, shape=shape,
        metrics=_completions(*roles) + tuple(metrics) + _BENCH_METRICS,
        pictures=pictures or (("sequence", "transfer"), ("queue", "transfer")))


# --- PP94 9.5 --------------------------------------------------------------

VIDEOS, VIDEO_CROSSES = 8, 8
FRAME_S = 0.04
# A whole share of the link for each, and what a coder cannot go below.
VIDEO_MOST_BPS, VIDEO_LEAST_BPS = 5e6, 4e5


def _video_cases(values):
    """Eight coders over the bottleneck of the benchmarks, and eight transfers
    that come for 4 s each: the share of a coder falls to a half and rises."""
    cases = []
    for name in ("adaptive", "constant"):
        flows = []
        for number in range(1, VIDEOS + 1):
            words = (f"rate={int(VIDEO_MOST_BPS)} "
                     f"size={int(VIDEO_MOST_BPS * FRAME_S / 8)} "
                     f"overhead=0 seed={number}")
            if name == "adaptive":
                words += f" floor={int(VIDEO_LEAST_BPS)}"
            # Coders do not all begin a frame at the same moment.
            flows.append(_flow(number, FRAME_S * number / VIDEOS, role="video",
                               words=words))
        flows += [_flow(number, start_s, role="cross", stop_s=start_s + 4.0,
                        name=f"{number}.{start_s:g}")
                  for start_s in (4.0, 12.0)
                  for number in range(VIDEOS + 1,
                                      VIDEOS + VIDEO_CROSSES + 1)]
        cases.append(Case(name, tuple(flows), 20.0, classes=True,
                          **{**_BENCH_SAMPLES, "sample_ms": 10,
                             "queue_us": 10000}))
    del values
    return cases


# --- MK94 ------------------------------------------------------------------

MIXES = ((10, 0), (9, 1), (1, 9), (0, 10))
ROOMS = (1.0, 0.5, 0.25)
OVERFLOWS = ("drop-last", "drop-longest")


def _overload_shape(_values):
    # MK94 has all of the delay in the backbone.
    return {"rtts_ms": [OVERLOAD_RTT_MS] * SOURCES,
            "delay_ms": OVERLOAD_RTT_MS / 2 - 0.2, "sink_ms": 0.1}


# PP94 section 6 sends a packet again once; what is lost then waits for the timer
# (or the soft timeout, one packet in two round trips). Linux's RACK would send
# it again and again in every round trip, and keep the buffer full for ever.
_PP94_RECOVERY = {"net.ipv4.tcp_recovery": 0, "net.ipv4.tcp_early_retrans": 0}


def _overload_name(mix, overflow, room, load):
    return f"{mix[0]}+{mix[1]} {overflow} B={room:g} {load:g}"


def _overload_cases(values):
    """168 runs; MK94's are of 420 s, these of `round_trips` after as many as
    an average cycle of a source has at the smallest load."""
    rtt_s = OVERLOAD_RTT_MS / 1000
    on_s = 2 * rtt_s
    rate_bps = values["rate_mbit"] * 1e6
    cases = []
    for mix in MIXES:
        for overflow in OVERFLOWS:
            for room in ROOMS:
                for load in LOADS:
                    off_s = theory.off_for_load(load / SOURCES, on_s, rtt_s)
                    flows = tuple(
                        _flow(number, 0.0, **(
                              {"role": "pp"} if number <= mix[0] else
                              {"role": "other", "cc": "ppx",
                               "sysctls": _PP94_RECOVERY}),
                              words=(number * 1000, rate_bps, on_s, off_s,
                                     True))
                        for number in range(1, SOURCES + 1))
                    cases.append(Case(
                        _overload_name(mix, overflow, room, load), flows,
                        values["warmup_s"] + values["round_trips"] * rtt_s,
                        values={"overflow": overflow, "buffer": round(
                            room * OVERLOAD_WINDOW_PKTS)},
                        x=load, series=f"{mix[0]}+{mix[1]}, {overflow}, "
                                       f"B = {room:g}", rtt_s=rtt_s,
                        sample_ms=500, queue_us=50000))
    return cases


def _overload_bounds(values):
    bounds = []
    for mix in MIXES:
        for overflow in OVERFLOWS:
            for room in ROOMS:
                last = _overload_name(mix, overflow, room, 5.0)
                # MK94 4.4: even all uncontrolled keep roughly one half.
                bounds.append(case_bound(
                    "no collapse", last, "goodput", ">=", 0.45))
                if 0 in mix:
                    continue
                bounds += [case_bound(
                    "a packet-pair source, of an equal share",
                    _overload_name(mix, overflow, room, load), "advantage",
                    ">=", 1.0) for load in LOADS if load > 1]
    del values
    return bounds


# --- beyond the papers -----------------------------------------------------

SHARERS = 24
SHARE_RTTS_MS = (34.0, 36.0)


def _share_shape(_values):
    return {"rtts_ms": [rtt for rtt in SHARE_RTTS_MS
                        for _ in range(SHARERS // 2)],
            "delay_ms": 15.0, "sink_ms": 1.0}


def _share_cases(values):
    rtt_s = SHARE_RTTS_MS[1] / 1000
    return [Case(f"{SHARERS} flows",
                 tuple(_flow(number, 0.0) for number in range(1, SHARERS + 1)),
                 10.0, values={} if values["setpoint"] else {"setpoint": 10},
                 classes=True, rtt_s=rtt_s, sample_ms=10, queue_us=10000)]


# One packet in sixteen waits until three have overtaken it, see tools/late.dist.
REORDERED_PART = 1 / 16
PATH_SOURCES = 4
PATHS = ("clean", "two-way", "loss 1 %", "reordering by 3")


def _path_cases(values):
    packet_ms = values["packet_bytes"] * 8 / values["rate_mbit"] / 1000
    wires = {"loss 1 %": "loss 1%",
             "reordering by 3": f"{3.5 * packet_ms:.6f}ms distribution late"}
    cases = []
    for name in PATHS:
        flows = [_flow(number, 0.0, role="forth")
                 for number in range(1, PATH_SOURCES + 1)]
        if name == "two-way":
            flows += [_flow(f"{MIRRORED}{number}", 0.0, role="back")
                      for number in range(1, PATH_SOURCES + 1)]
        cases.append(Case(
            name, tuple(flows), 12.0, classes=True,
            wires={"R1": wires[name]} if name in wires else {},
            **{**_BENCH_SAMPLES, "sample_ms": 50, "queue_us": 10000}))
    return cases


# --- the list --------------------------------------------------------------

EXPERIMENTS = (
    CaseExperiment(
        name="pp-base", title="One source: queue at the setpoint",
        reproduces="PP94 9.1: Figures 11-14",
        topology="Confluence", classes=(), duration_s=10.0,
        defaults=_ROW_DEFAULTS, presets=_row_presets(), variants=_RIVALS,
        cc="pp", aqm="fq_rr", cases=_base_cases, shape=_table_3(1),
        metrics=(
            metric("full_rtt", "full_at", "99 % utilisation after [RTT]", 2,
                   link="R1", units=25, level=0.99),
            metric("utilization", "utilization", "utilisation from 10 RTT [%]",
                   2, link="R1", from_rtt=10),
            metric("queue_min", "queue_min", "least queue from 10 RTT [pkts]",
                   0, link="R1", from_rtt=10),
            metric("queue_mean", "queue_mean", "mean queue [pkts]", 1,
                   link="R1", from_rtt=10),
            metric("queue_max", "queue_max", "greatest queue [pkts]", 0,
                   link="R1", from_rtt=10),
            metric("queue_peak", "queue_max", "of the whole run [pkts]", 0,
                   link="R1"),
            metric("estimate_error", "estimate_error",
                   "estimate of it off by [pkts]", 2, from_rtt=10),
            metric("drops", "drops", "drops", 0)),
        bounds=((_OURS, lambda values: [
            case_bound("99 % utilisation after, RTT", "setpoint 20",
                       "full_rtt", "<=", 4.5),
            case_bound("utilisation from 10 RTT on", "setpoint 20",
                       "utilization", ">=", 0.999),
            case_bound("least queue from 10 RTT on", "setpoint 20",
                       "queue_min", ">=", 18),
            case_bound("greatest queue from 10 RTT on", "setpoint 20",
                       "queue_max", "<=", 22)]),),
        pictures=(("queue", "setpoint 20"), ("utilization", "setpoint 20"),
                  ("sequence", "setpoint 20"))),
    CaseExperiment(
        name="pp-setpoint", title="Four sources probe 100 buffers",
        reproduces="PP94 9.1: Figures 15 and 16",
        topology="Confluence", classes=(), duration_s=10.0,
        defaults=_ROW_DEFAULTS, presets=_row_presets(), variants=_RIVALS,
        cc="pp", aqm="fq_rr", cases=_setpoint_cases, shape=_table_3(4),
        metrics=(
            metric("utilization", "utilization", "utilisation from 10 RTT [%]",
                   2, link="R1", from_rtt=10),
            metric("jain", "jain", "Jain of rates", 4, from_rtt=10),
            metric("queue_each", "class_mean", "mean queue of a source [pkts]",
                   1, from_rtt=30),
            metric("queue_jain", "class_jain", "Jain of queues", 3,
                   from_rtt=30),
            metric("losses_each", "losses_each", "losses of a source", 1),
            metric("retransmits", "retransmits", "sent again [pkts]", 0),
            metric("drops", "drops", "drops", 0)),
        bounds=((_OURS, lambda values: [
            case_bound("utilisation from 10 RTT on", "4 sources",
                       "utilization", ">=", 0.99),
            case_bound("Jain's index of the rates", "4 sources", "jain", ">=",
                       0.999),
            # "The setpoints oscillate around 25": the mean of a sawtooth from
            # 25 down by a quarter.
            case_bound("mean queue of a source", "4 sources", "queue_each",
                       ">=", 18),
            case_bound("losses of a source, mean", "4 sources", "losses_each",
                       "<=", 6)]),),
        pictures=(("class_queues", "4 sources"), ("sequence", "4 sources"))),
    CaseExperiment(
        name="pp-arrivals", title="Sources that come one after another",
        reproduces="PP94 9.2: Figures 17 and 18",
        topology="Confluence", classes=(), duration_s=10.0,
        defaults=_ROW_DEFAULTS, presets=_row_presets(), variants=_RIVALS,
        cc="pp", aqm="fq_rr", cases=_arrival_cases, shape=_table_3(SOURCES),
        metrics=(
            metric("jain", "jain", "Jain of rates from 2200 to 4200 TU", 4,
                   from_rtt=22, to_rtt=42),
            metric("utilization", "utilization", "utilisation, 5-45 RTT [%]",
                   2, link="R1", from_rtt=5, to_rtt=45),
            *_per_role("first"),
            metric("last_tu", "last_units", "last ends [TU]", 0),
            metric("retransmits", "retransmits", "sent again [pkts]", 0),
            metric("drops", "drops", "drops", 0)),
        bounds=((_OURS, lambda values: [
            case_bound("Jain's index once all are there", f"every {apart} RTT",
                       "jain", ">=", 0.99) for apart in ("0.5", "2")]),),
        pictures=(("rates", "every 0.5 RTT"), ("rates", "every 2 RTT"),
                  ("class_queues", "every 0.5 RTT"))),
    CaseExperiment(
        name="pp-burst", title="N - 1 sources start at once",
        reproduces="PP94 9.2: Tables 4 and 5, Figures 19-21",
        topology="Confluence", classes=(), duration_s=10.0,
        defaults=_ROW_DEFAULTS, presets=_row_presets(), variants=_RIVALS,
        cc="pp", aqm="fq_rr", cases=_burst_cases, shape=_table_3(SOURCES),
        metrics=(
            *_per_role("first"),
            metric("loss_rate", "loss_rate", "lost of 1 [per 1000 TU]", 1,
                   role="first"),
            metric("retransmission_rate", "retransmission_rate",
                   "sent again by 1 [per 1000 TU]", 1, role="first"),
            metric("peak", "class_peak", "peak queue of 1 [pkts]", 0,
                   role="first"),
            metric("drops", "drops", "all drops", 0)),
        pictures=(("curve", "loss_rate"), ("curve", "peak"),
                  ("curve", "completion_tu"),
                  ("class_queues", "N = 10, limited"),
                  ("rates", "N = 10, limited"),
                  ("sequence", "N = 10, limited"))),
    CaseExperiment(
        name="pp-public", title="On-off sources, open and closed",
        reproduces="PP94 9.3: Table 6",
        topology="Confluence", classes=(), duration_s=120.0,
        defaults=_ROW_DEFAULTS, presets=_row_presets(), variants=_RIVALS,
        cc="pp", aqm="fq_rr", cases=_public_cases, shape=_table_3(SOURCES),
        metrics=(
            metric("retransmits", "retransmits", "sent again [pkts]", 0),
            metric("goodput", "goodput_sent", "goodput", 3),
            metric("finished", "finished", "sources done", 0),
            metric("last_s", "last_s", "last ends [s]", 1),
            metric("queue_mean", "queue_mean", "mean queue [pkts]", 1,
                   link="R1"),
            metric("drops", "drops", "drops", 0)),
        bounds=((_OURS, lambda values: [
            case_bound("sources done", f"{kind} {load:g}", "finished", ">=",
                       SOURCES) for kind in ("open", "closed")
            for load in LOADS]),),
        pictures=(("curve", "goodput"),)),
    _bench(1, "Slow changes of the cross traffic", 7,
           _bench_cases(BENCH_RTT_MS / 1000), _bench_shape(CROSSES + 1)),
    _bench(2, "Sudden jumps of the cross traffic", 8, _bench_cases(0.004),
           _bench_shape(CROSSES + 1)),
    _bench(3, "Short files", 9, _bench_3_cases, _bench_shape(1),
           pictures=(("curve", "slowdown"), ("sequence", "2000 packets"))),
    _bench(4, "Two round trips", 10, _bench_4_cases, _bench_4_shape,
           roles=("short", "long")),
    _bench(5, "A bottleneck that migrates", 11, _bench_5_cases,
           lambda values: {}, topology="Migration"),
    _bench(6, "Two-way traffic", 12, _bench_6_cases,
           _bench_shape(CROSSES + 1, mirror=True), roles=("forth", "back")),
    _bench(7, "Cross traffic that nobody controls", 13, _bench_7_cases,
           _bench_shape(CROSSES + 1), defaults={"repeats": 5},
           metrics=(metric("variance", "completion_variance",
                           "variance [ms²]", 1, role="primary"),),
           pictures=(("curve", "slowdown"), ("queue", "load 0.6 #1"))),
    _bench(8, "A tenth of the buffers", 14, _bench_cases(BENCH_RTT_MS / 1000),
           _bench_shape(CROSSES + 1),
           defaults={"buffer": int(BENCH_RTT_MS)}),
    _bench(9, "A torture test for rates", 15, _bench_9_cases, _bench_9_shape,
           roles=("near", "far"),
           # One round trip's worth of the longer one.
           defaults={"buffer": 202}),
    CaseExperiment(
        name="pp-video", title="Coders that read the rate they may send",
        reproduces="PP94 9.5", topology="Confluence", classes=(),
        duration_s=20.0, defaults={**_BENCH_DEFAULTS, "buffer": PIPE_PKTS},
        variants=_RIVALS, cc="pp", aqm="fq_rr", cases=_video_cases,
        shape=_bench_shape(VIDEOS + VIDEO_CROSSES),
        metrics=(
            metric("rate_mbit", "frame_rate_mbit", "rate of a coder [Mbit/s]",
                   2, role="video"),
            metric("delay_p50_ms", "frame_delay_ms", "frame there after [ms]",
                   1, role="video", part=0.5),
            metric("delay_p99_ms", "frame_delay_ms",
                   "99th percentile [ms]", 1, role="video", part=0.99),
            metric("losses", "loss_part", "packets sent again [%]", 2,
                   role="video"),
            metric("jain", "jain", "Jain of rates", 3, role="video",
                   from_rtt=20),
            metric("utilization", "utilization", "utilisation [%]", 1,
                   link="R1", from_rtt=20),
            metric("drops", "drops", "drops", 0)),
        bounds=((_OURS, lambda values: [
            # The paper shows pictures alone: what keeps quality is that nothing
            # is lost or late (a frame is coded for at most a quarter second).
            case_bound("packets of a coder sent again", "adaptive", "losses",
                       "<=", 0.01),
            case_bound("99th percentile of a frame, ms", "adaptive",
                       "delay_p99_ms", "<=", 250),
            case_bound("the same beside constant coders", "adaptive",
                       "delay_p99_ms", "<=", 1.0, of_case="constant"),
            case_bound("utilisation", "adaptive", "utilization", ">=",
                       0.9)]),),
        pictures=(("frames", "adaptive"), ("frames", "constant"),
                  ("queue", "adaptive"))),
    CaseExperiment(
        name="pp-overload", title="Overload, with and without control",
        reproduces="MK94: Figures 2-5", topology="Confluence", classes=(),
        duration_s=60.0,
        defaults={"packet_bytes": 500, "rate_mbit": OVERLOAD_MBIT,
                  "edge_mbit": OVERLOAD_ACCESS_MBIT, "warmup_s": 2.0,
                  "start_jitter_s": 2.0, "initcwnd": 10, "initial": 2,
                  "service": "wfq",
                  "round_trips": 200.0},
        variants=(), cc="pp", aqm="fq_rr", cases=_overload_cases,
        shape=_overload_shape,
        metrics=(
            metric("goodput", "goodput_share", "goodput [%]", 1),
            metric("pp_each", "goodput_each", "each pp [%]", 2, role="pp"),
            metric("other_each", "goodput_each", "each other [%]", 2,
                   role="other"),
            metric("advantage", "advantage", "pp of equal share", 2,
                   role="pp"),
            metric("retransmits", "retransmits", "sent again [pkts]", 0),
            metric("drops", "drops", "drops", 0)),
        bounds=((_OURS, _overload_bounds),),
        pictures=(("curve", "goodput"), ("curve", "pp_each"),
                  ("curve", "other_each"))),
    CaseExperiment(
        name="pp-share", title="24 equal flows over 96 Mb/s",
        reproduces="ALGORITHMS 3: the prototype's check",
        topology="Confluence", classes=(), duration_s=10.0,
        defaults={"packet_bytes": 1000, "rate_mbit": 96.0,
                  "edge_mbit": 960.0, "warmup_s": 3.0, "start_jitter_s": 0.1,
                  "initcwnd": 10, "buffer": 1000},
        variants=_RIVALS, cc="pp", aqm="fq_rr", cases=_share_cases,
        shape=_share_shape,
        metrics=(
            metric("share_error", "share_error", "worst share off by [%]", 2,
                   from_s=3.0),
            metric("utilization", "utilization", "utilisation [%]", 2,
                   link="R1", from_s=3.0),
            metric("queue_each", "class_mean", "mean queue of a flow [pkts]",
                   1, from_s=3.0),
            metric("estimate_error", "estimate_error",
                   "worst estimate off by [pkts]", 2, from_s=3.0),
            metric("retransmits", "retransmits", "sent again [pkts]", 0),
            metric("drops", "drops", "drops", 0)),
        bounds=((_OURS, lambda values: [
            case_bound("worst share against 1/24", f"{SHARERS} flows",
                       "share_error", "<=", 0.005),
            case_bound("utilisation", f"{SHARERS} flows", "utilization",
                       ">=", 0.999),
            case_bound("queue estimates against the queues, packets",
                       f"{SHARERS} flows", "estimate_error", "<=", 1.0),
            case_bound("drops", f"{SHARERS} flows", "drops", "<=", 0)]),),
        pictures=(("class_queues", f"{SHARERS} flows"),)),
    CaseExperiment(
        name="pp-paths", title="Two-way traffic, loss and reordering",
        reproduces="no paper", topology="Confluence",
        classes=(), duration_s=12.0,
        # Packets of 1500 bytes: of 500, the acknowledgements of the other way
        # would take 7.4 % of a link on their own.
        defaults={**_BENCH_DEFAULTS, "packet_bytes": 1500, "warmup_s": 2.0,
                  "edge_mbit": 400.0, "buffer": 147},
        variants=_RIVALS, cc="pp", aqm="fq_rr", cases=_path_cases,
        shape=_bench_shape(PATH_SOURCES, mirror=True),
        metrics=(
            metric("goodput", "goodput_share", "goodput [%]", 2,
                   role="forth"),
            metric("utilization", "utilization", "utilisation [%]", 2,
                   link="R1", from_s=2.0),
            metric("queue_mean", "queue_mean", "mean queue [pkts]", 1,
                   link="R1", from_s=2.0),
            metric("retransmits", "retransmits", "sent again [pkts]", 0),
            metric("drops", "drops", "drops", 0)),
        bounds=((_OURS, lambda values: [
            case_bound("goodput of the clean run's", name, "goodput", ">=",
                       0.95, of_case="clean") for name in PATHS[1:]]),),
        pictures=(("queue", "loss 1 %"), ("sequence", "reordering by 3"))),
)


# --- jobs ------------------------------------------------------------------

def job(experiment, cc, aqm, values, duration_s, seed, variant=None):
    """Everything network_cases.CaseRun needs, but the directories (dict).

    Arguments as for experiments.job(); duration_s: no case is longer.
    """
    cases = [_case_job(case, cc, aqm, values, duration_s, seed)
             for case in experiment.cases(values)
             if values["only"] in case.name]
    if not cases:
        raise TollwayError(f"--set only={values['only']}: {experiment.name} "
                           f"has no such case")
    shape = experiment.shape(values)
    return {
        "experiment": experiment.name,
        "topology": [experiment.topology, {
            "packet_bytes": values["packet_bytes"],
            "rate_bps": round(values["rate_mbit"] * 1e6),
            "edge_bps": round(values["edge_mbit"] * 1e6), **shape}],
        "aqm": _words(aqm, values),
        "parameters": dict(values, cc=cc, aqm=known_aqm(aqm),
                           duration_s=duration_s, wtp=None,
                           **({"variant": variant.name} if variant else {})),
        "cases": cases, "flows": [],
        "virtual_s": sum(case["duration_s"] + 5 for case in cases),
        "metrics": list(experiment.metrics),
        "pictures": [list(picture) for picture in experiment.pictures],
        "bounds": [bound for names, make in experiment.bounds
                   if {f"{cc}+{known_aqm(aqm)}"}.issuperset(names)
                   for bound in make(values)],
        "seed": seed, "sink_cc": None,
        "sysctls": _sysctls(cc, values),
    }


def _words(aqm, values):
    """tc words; fq_codel has the room of the experiment."""
    if aqm == "fq_codel":
        return f"fq_codel limit {values['buffer']}"
    return aqm_words(aqm, values)


def _sysctls(cc, values):
    """Timestamps would take 12 bytes of each packet."""
    found = {**sysctls(cc, values, [1]), "net.ipv4.tcp_timestamps": 0}
    if cc in PACKET_PAIR:
        found.update(packet_pair_sysctls(values))
    return found


def _case_job(case, cc, aqm, values, duration_s, seed):
    mine = {**values, **case.values}
    whole_s = round(min(case.duration_s, duration_s), 6)
    flows = []
    for number, flow in enumerate(case.flows, 1):
        flows.append({
            **{key: flow.get(key) for key in ("name", "path", "role",
                                              "packets", "optimal_s")},
            "id": number, "start_s": round(flow["start_s"], 6),
            "stop_s": min(flow.get("stop_s") or whole_s, whole_s),
            "cc": None if "udp" in flow else flow.get("cc") or cc,
            "sysctls": flow.get("sysctls", {}),
            "words": _flow_words(flow, mine, seed)})
    changed = {key: value for key, value in _sysctls(cc, mine).items()
               if _sysctls(cc, values).get(key) != value}
    return {"name": case.name, "point": case.point or case.name, "x": case.x,
            "series": case.series, "rtt_s": case.rtt_s,
            "aqm": _words(aqm, mine), "sysctls": changed,
            "values": case.values, "duration_s": whole_s,
            "sample_ms": case.sample_ms or values["flow_sample_ms"],
            "queue_us": case.queue_us or values["queue_sample_us"],
            "classes": case.classes, "wires": case.wires,
            "cc_info": cc in PACKET_PAIR, "flows": flows}


# Seeds of one source are this far apart from run to run.
_SEEDS_APART = 10**6


def _flow_words(flow, values, seed):
    if "udp" in flow:
        packet_bytes = flow.get("udp_bytes", values["packet_bytes"])
        words = (f"proto=udp rate={int(flow['udp'])} "
                 f"size={packet_bytes - UDP_HEADER_BYTES} "
                 f"overhead={UDP_HEADER_BYTES} "
                 f"arrival={flow.get('arrival', 'poisson')} "
                 f"seed={seed * _SEEDS_APART + flow['seed']}")
        if "on_off" in flow:
            words += " on={} off={}".format(*flow["on_off"])
        return words
    words = ["connect=early"]
    if flow.get("packets") is not None:
        words.append(f"bytes={flow['packets'] * _payload(values)}")
    made = flow.get("words")
    if isinstance(made, tuple):
        number, rate_bps, on_s, off_s, closed = made
        made = _produced(values, rate_bps, seed * _SEEDS_APART + number, on_s,
                         off_s, closed)
    return " ".join(words + ([made] if made else []))
