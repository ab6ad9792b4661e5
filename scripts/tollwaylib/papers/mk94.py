# SPDX-License-Identifier: GPL-2.0
"""The overload of MK94: sources of which some are not under control."""

from dataclasses import replace

from ..experiments.description import Case, Experiment, Paper, case_bound, metric
from ..experiments.workload import LOADS, OURS, BASELINES, SOURCES, flow_of
from ..theory import fluid
from . import networks

PAPER = Paper(
    "MK94", "S. Morgan and S. Keshav, Packet-Pair Rate Control, 1994", simulator="REAL",
    parameters={"recovery": ("pp94", None, None, "repair of losses: pp94 or linux"),
                "round_trips": (200.0, 1.0, 1e6, "length of a case in round trips")},
    choices={"recovery": ("pp94", "linux")}, deciding=("recovery",),
    # Its goodputs are asymptotic: so are those of shorter and of longer runs.
    free=("warmup_s",))

# MK94 section 2. The round trip is that of (3): propagation, and the transmission of a packet
# of 4000 bits and its acknowledgement of 320 bits on the links of 8 and 80 Mb/s (and on one of
# 2 Gb/s between host and switch, 0.002 ms, which is not here).
OVERLOAD_MBIT, OVERLOAD_ACCESS_MBIT = 8.0952, 80.952
OVERLOAD_RTT_MS, OVERLOAD_WINDOW_PKTS = 50.001, 101.19
PROPAGATION_MS = 24.706
# Of the propagation, each way, on each of the links of the hosts.
EDGE_MS = 0.1
# Its runs are of 420 s; it printed results each 20 s, and discarded the first.
PRINT_S = 20.0
MIXES = ((10, 0), (9, 1), (1, 9), (0, 10))
ROOMS = (1.0, 0.5, 0.25)
# Two packets for each source, of sources that are all under control.
LEAST_ROOM = 0.2
OVERFLOWS = ("drop-last", "drop-longest")


def _overload_shape(_values):
    # MK94 has all of the delay in the backbone.
    return {"rtts_ms": [2 * PROPAGATION_MS] * SOURCES,
            "delay_ms": round(PROPAGATION_MS - 2 * EDGE_MS, 6), "sink_ms": EDGE_MS}


# The same for all sources, those under control and those that are not (MK94
# section 2). pp94: PP94 section 6 sends a packet again once; what is lost then
# waits for the timer (or the soft timeout, one packet in two round trips).
# linux: RACK and TLP. RACK sends a lost packet again and again in every round
# trip, so that sources without control keep the buffer full for ever.
_RECOVERY = {"pp94": {"net.ipv4.tcp_recovery": 0,
                      "net.ipv4.tcp_early_retrans": 0}, "linux": {}}


def _rooms(mix):
    return (*ROOMS, LEAST_ROOM) if mix == MIXES[0] else ROOMS


def _overload_name(mix, overflow, room, load):
    return f"{mix[0]}+{mix[1]} {overflow} B={room:g} {load:g}"


def _overload_cases(values):
    """182 runs; MK94's are of 420 s, these of `round_trips` after as many as
    an average cycle of a source has at the smallest load. With warmup_s=20 and
    round_trips=8000 they have its length, and its 20 prints of 20 s."""
    rtt_s = OVERLOAD_RTT_MS / 1000
    on_s = 2 * rtt_s
    rate_bps = values["rate_mbit"] * 1e6
    cases = []
    for mix in MIXES:
        for overflow in OVERFLOWS:
            for room in _rooms(mix):
                for load in LOADS:
                    off_s = fluid.off_for_load(load / SOURCES, on_s, rtt_s)
                    flows = tuple(
                        flow_of(number, 0.0, **(
                              {"role": "pp"} if number <= mix[0] else
                              {"role": "other", "cc": "ppx"}),
                              sysctls=_RECOVERY[values["recovery"]],
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


# What MK94 says in words, as numbers. "Essentially driven out": a quarter of an
# equal share. "Substantially more than its share": 1.3 of it.
DRIVEN_OUT, SUBSTANTIALLY = 0.25, 1.3
# Its abstract and conclusions: the goodput of packet pair under overload, which
# was 80 to 95 % there.
GOODPUT_LEAST = 0.80


def _overload_bounds(_values):
    """The conclusions of MK94 section 4. A name ends with the number of its
    conclusion."""
    def at(mix, overflow, room, load=5.0):
        return _overload_name(mix, overflow, room, load)

    bounds = []
    for mix in MIXES:
        for overflow in OVERFLOWS:
            for room in _rooms(mix):
                # 1: with more load it does not go to nothing.
                bounds.append(case_bound(
                    "goodput, part of that at a load of 1 (1)",
                    at(mix, overflow, room), "goodput", ">=", 0.8,
                    of_case=at(mix, overflow, room, 1.0)))
                if 0 not in mix:
                    # 5: more per source, in the majority and in the minority.
                    bounds += [case_bound(
                        "goodput of a packet-pair source, part of an equal share (5)",
                        at(mix, overflow, room, load), "advantage", ">=", 1.0)
                        for load in LOADS if load > 1]
    pure, last, longest = (10, 0), *OVERFLOWS
    bounds += [case_bound("goodput under overload", at(pure, overflow, room),
                          "goodput", ">=", GOODPUT_LEAST)
               for room in _rooms(pure) for overflow in OVERFLOWS]
    for room in ROOMS:
        for overflow in OVERFLOWS:
            bounds.append(case_bound(
                "goodput of the only packet-pair source, part of an equal share "
                "(5)", at((1, 9), overflow, room), "advantage", ">=",
                SUBSTANTIALLY))
        # 3: it drops and sends again more.
        bounds.append(case_bound(
            "goodput with drop-longest, part of that with drop-last (3)",
            at(pure, longest, room), "goodput", "<=", 1.0, of_case=at(pure, last, room)))
        # 5: the queue of one that does not listen is lost again and again.
        bounds.append(case_bound(
            "goodput of the only source without control, part of an equal "
            "share (5)",
            at((9, 1), longest, room), "other_share", "<=", DRIVEN_OUT))
    for overflow in OVERFLOWS:
        # 2: goodput falls with the buffer.
        bounds += [case_bound(
            f"goodput, part of that with B={more:g} (2)", at(pure, overflow, less),
            "goodput", "<=", 1.0, of_case=at(pure, overflow, more))
            for more, less in zip(_rooms(pure), _rooms(pure)[1:])]
        # 5: who knows how to behave gains by a smaller buffer.
        bounds.append(case_bound(
            "share of the only packet-pair source, part of that with "
            f"B={ROOMS[0]:g} (5)",
            at((1, 9), overflow, ROOMS[-1]), "advantage", ">=", 1.0,
            of_case=at((1, 9), overflow, ROOMS[0])))
    return bounds


def _as_baseline(variant):
    """A baseline in the place of packet pair, with MK94's middle buffer only; the
    overflow rule of fq_codel is its own."""
    if variant.cc == "pp":
        return variant
    only = "B=0.5" if variant.aqm == "fq_rr" else "drop-last B=0.5"
    return replace(variant, settings={"only": only})


EXPERIMENTS = (
    Experiment(
        name="pp-overload", title="Overload, with and without control",
        reproduces="MK94: Figures 2-5", topology=networks.confluence,
        # The longest case: it holds MK94's 420 s.
        duration_s=430.0,
        defaults={"packet_bytes": 500, "rate_mbit": OVERLOAD_MBIT,
                  "edge_mbit": OVERLOAD_ACCESS_MBIT, "warmup_s": 2.0,
                  "start_jitter_s": 2.0, "initcwnd": 10, "initial": 2,
                  "service": "wfq", "recovery": "pp94",
                  "round_trips": 200.0},
        variants=tuple(map(_as_baseline, BASELINES)), cc="pp", aqm="fq_rr",
        cases=_overload_cases, x_title="nominal load",
        shape=_overload_shape,
        metrics=(
            metric("goodput", "goodput_share", "goodput", 1, batch_s=PRINT_S),
            metric("pp_each", "goodput_each", "goodput of a controlled source", 2,
                   role="pp", batch_s=PRINT_S),
            metric("other_each", "goodput_each", "goodput of another source", 2,
                   role="other", batch_s=PRINT_S),
            metric("advantage", "advantage",
                   "goodput of a controlled source, part of an equal share", 2,
                   role="pp", batch_s=PRINT_S),
            metric("other_share", "advantage",
                   "goodput of another source, part of an equal share", 2,
                   role="other", batch_s=PRINT_S),
            metric("retransmits", "retransmits", "retransmissions", 0),
            metric("drops", "drops", "drops", 0)),
        bounds=((OURS, _overload_bounds),),
        pictures=(("curve", "goodput"), ("curve", "pp_each"),
                  ("curve", "other_each")),
        about="Ten closed on-off sources, of which 10, 9, 1 or none are packet "
              "pair, and the others the uncontrolled ppx. There are three sizes of "
              "the buffer, and a fourth, two packets for each source (B = 0.2), "
              "where all sources are packet pair. With two rules of overflow and "
              "seven loads these are 182 cases of round_trips each. "
              "The propagation is that of MK94, 49.412 ms; its round trip of 50.001 ms "
              "contains the transmission of a packet and its acknowledgement. MK94's runs "
              "are of 420 s: with --set warmup_s=20 --set round_trips=8000 those here are "
              "as long, and each goodput has the interval over prints of 20 s of MK94 (9), "
              "in tables and as bars in the curves. If a network told explicit rates by RM "
              "cells, a packet-pair source would use them instead of its pairs, and the "
              "repair of losses would stay, says MK94; there are no such cells here. "
              "A number in parentheses after a bound is that of a conclusion of "
              "MK94 section 4."),
)
