# SPDX-License-Identifier: GPL-2.0
"""The experiments of AACC section 4 (Figures 6 to 16), with tollway-admit(8).

A unit of time is a packet time of the network's queue: 1000 bytes at 8 Mb/s, 1 ms. The
figures were not available: measured values are compared with the text about them, and with
the same queue without admission and other queues in its place.

"A packet's delay" is that in the network, from the border to the exit of the queue. Packets
that wait at the border are not admitted yet (AACC 4.2).
"""

from ..experiments.description import (SAME_QUEUE, Case, Experiment, Paper, Variant,
                                       case_bound, cases_bound, metric, panel,
                                       program)
from ..experiments.parameters import SHIPPED
from . import networks

PAPER = Paper(
    "AACC", "Z. Haas, Adaptive Admission Congestion Control",
    parameters={
        "time_limit": (10.0, 0.1, 1000.0, "largest delay of a packet that counts as "
                       "goodput, packet times"),
        "change": ("excess", None, None, "option change of tollway-admit: excess, "
                   "interval or pair"),
        "gate": ("gap", None, None, "option gate of tollway-admit: gap or bucket")},
    choices={"change": ("excess", "interval", "pair"), "gate": ("gap", "bucket")},
    deciding=("time_limit", "change", "gate"))

LINK, SOURCES = "R1", 2
ETHERNET_HEADER_BYTES = 14
# Between the ports of the samples of two paths.
PORT = 5660
# Both ends of a path in the experiments have it; it guards nothing.
KEY = "a key that everyone may read\n"
QUOTA = 100
# The parameter sets of AACC, times in packet times.
SET_4_1 = {"low": 2, "high": 2, "up": 0.005, "down": 0.05, "samples": 0.1}
SET_4_5 = {"low": 4, "high": 8, "up": 0.005, "down": 0.05, "samples": 0.02}
# 4.3 prints the steps of beta in the reverse order of all other sets.
PRINTED = {**SET_4_5, "up": 0.05, "down": 0.005}
SWAPPED = SET_4_5
AACC, FREE = "AACC", "no control"
# In the place of the network's queue, without admission.
BASELINES = {"CoDel": "codel", "fq_codel": "fq_codel", "sbrm": "sbrm"}
LOADS = (0.4, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.4, 1.6, 2.0)
BASELINE_LOADS = (0.8, 1.0, 1.2, 2.0)
FULL = tuple(load for load in LOADS if load >= 1)
OURS = ("cubic+pfifo",)


def unit_ms(values):
    """A packet time, ms."""
    return values["packet_bytes"] * 8 / values["rate_mbit"] / 1e3


def gates(values, control, sources=SOURCES, start=0.5, more=()):
    """The programs at both ends of each path. control: a parameter set."""
    packet, unit = values["packet_bytes"], unit_ms(values)
    words = ["run", "--key", "key", "--socket", "socket", "--rate",
             f"{round(values['rate_mbit'] * 1e6)}bit", "--packet", packet,
             "--sample-bytes", packet - ETHERNET_HEADER_BYTES,
             "--interval", f"{unit / control['samples']:.6f}ms",
             "--quota", f"{QUOTA * unit:.6f}ms",
             "--low", f"{control['low'] * unit:.6f}ms",
             "--high", f"{control['high'] * unit:.6f}ms",
             "--up", control["up"], "--down", control["down"],
             "--change", control.get("change", values["change"]),
             "--gate", values["gate"], "--start", start, *more]
    found = []
    for number in range(1, sources + 1):
        port = ["--port", PORT + number]
        found.append(program(
            f"g{number}", f"g{number}", "tollway-admit", *words, *port,
            "--peer", "{address:d}", "--device", f"g{number}-r1", "--class",
            "1:10", "--trace", "trace", files={"key": KEY}, keep=("trace",)))
        found.append(program(
            f"d{number}", "d", "tollway-admit", *words, *port, "--peer",
            f"{{address:g{number}-r1}}", "--device", "d-r2", "--class",
            f"1:{0xf + number:x}", files={"key": KEY}))
    return tuple(found)


def _wire(values):
    """UDP's rate leaves the Ethernet header out."""
    return 1 - ETHERNET_HEADER_BYTES / values["packet_bytes"]


def sources(values, load, count=SOURCES, arrival="poisson", **more):
    """Flows of one rate each, with a sum of a part of the link's."""
    rate_bps = load / count * values["rate_mbit"] * 1e6 * _wire(values)
    return tuple({
        "name": str(number), "path": str(number), "role": "source",
        "start_s": 0.0, "udp": rate_bps, "arrival": arrival, "seed": number,
        "udp_bytes": values["packet_bytes"] - ETHERNET_HEADER_BYTES, **more}
        for number in range(1, count + 1))


def _case(given, series, load, duration_s, control=None, name=None, **more):
    """A case of Poisson sources; control: a parameter set, or no admission."""
    return Case(
        name or f"{series} {load:g}", sources(given, load), duration_s,
        series=series, x=more.pop("x", load), passages=True, sample_ms=1000,
        programs=gates(given, control) if control else (), **more)


def _load_cases(values):
    cases = [_case(values, series, load, DURATION_S, aqm=aqm)
             for series, aqm in BASELINES.items() for load in BASELINE_LOADS]
    cases += [_case(values, FREE, load, DURATION_S) for load in LOADS]
    return cases + [_case(values, AACC, load, DURATION_S, SET_4_1)
                    for load in LOADS]


def _named(series, loads):
    return [f"{series} {load:g}" for load in loads]


def _static_bounds(_values):
    level = _named(AACC, [load for load in LOADS if load >= 0.9])
    return [
        *(case_bound("goodput, at least", name, "goodput", ">=", 0.70,
                     over_seeds=True) for name in _named(AACC, FULL)),
        *(case_bound("goodput, at most", name, "goodput", "<=", 0.80,
                     over_seeds=True) for name in _named(AACC, FULL)),
        # Their samples may not keep one path's before the other's.
        *(case_bound("Jain's index of the packets admitted", name, "jain_admitted",
                     ">=", 0.9, over_seeds=True) for name in _named(AACC, FULL)),
        cases_bound("largest minus smallest goodput from 0.9 to 2.0", level,
                    "goodput", "range", "<=", 0.05),
        case_bound("goodput", f"{FREE} 1", "goodput", "<=", 0.2,
                   over_seeds=True),
        cases_bound("decrease of the goodput at 0.8 by admission",
                    [f"{FREE} 0.8", f"{AACC} 0.8"], "goodput", "fall", "<=",
                    0.05)]


LOSS_PART, LOSS_LOADS = 0.05, (0.6, 0.8, 0.9, 1.0, 1.4, 2.0)


def _loss_cases(values):
    return [_case(values, series, load, DURATION_S, control)
            for series, control in ((FREE, None), (AACC, SET_4_1))
            for load in LOSS_LOADS]


def _loss_bounds(_values):
    return [*(case_bound("loss", name, "loss", "<=", LOSS_PART,
                         over_seeds=True) for name in _named(AACC, LOSS_LOADS)),
            case_bound("loss", f"{FREE} 1", "loss", ">=", 0.8,
                       over_seeds=True)]


# --- 4.1: MMPP ---------------------------------------------------------------

MMPP_S, HOLD_UNITS = 200.0, 3
# What is compared with the thresholds, see tollway-admit(8).
CHANGES = ("excess", "interval", "pair")
# With the set of 4.1 beta is below 1 most of the time, although less than 0.8 is
# offered: samples are a fifth of the link; a mean delay of 2, which is theta_2, is
# that of Poisson traffic at a load of 0.8, with the samples; what waits at the gates
# after an overload enters with what is offered then; and from 0.4 to 1 beta takes
# 12 s, in which the offered rate has changed. So here: few samples; thresholds apart
# (4.4 asks for it where traffic is bursty); larger steps up; and a gate with room for
# what can be in time, as what is not admitted is lost at the interface (4.2).
SET_BURSTY = {**SET_4_5, "up": 0.02}
BURSTY = f"{AACC}, for bursty traffic"


def _dynamic_cases(values):
    flows = sources(values, SOURCES, arrival="mmpp hold="
                    f"{HOLD_UNITS * unit_ms(values) / 1e3:.6f}")
    common = {"passages": True, "sample_ms": 100}
    return [
        Case(FREE, flows, MMPP_S, series=FREE, **common),
        *(Case(title, flows, MMPP_S, series=title, aqm=aqm, **common)
          for title, aqm in BASELINES.items()),
        *(Case(f"{AACC}, {change}", flows, MMPP_S, series=AACC,
               programs=gates(values, {**SET_4_1, "change": change}, start=0),
               **common) for change in CHANGES),
        Case(BURSTY, flows, MMPP_S, series=AACC,
             gate=f"pfifo limit {round(values['time_limit'])}",
             programs=gates(values, SET_BURSTY, start=0), **common)]


def _dynamic_bounds(_values):
    # beta 1 for 90 % of the time in which less than 0.8 is offered. The times of all seeds
    # are added up: with seed 4 there is 0.1 s of 200 s.
    return [case_bound("time with beta below 1 while less than 0.8 is offered, s", BURSTY,
                       "held_s", "<=", 0.1, of_case=BURSTY, of_metric="low_s",
                       over_seeds=True),
            *(case_bound("largest queue, part of that without control", name,
                         "queue_max", "<=", 0.2, of_case=FREE, over_seeds=True)
              for name in (f"{AACC}, {CHANGES[0]}", BURSTY))]


# --- 4.3: propagation --------------------------------------------------------

TRIPS = (0, 50, 100, 200, 500)
TRIP_LOADS = (0.6, 0.8, 1.0, 1.2, 1.4)
STEPS = {"printed": PRINTED, "swapped": SWAPPED}


def _trip(steps, trip, load):
    return f"{steps}, {trip} units, {load:g}"


def _delay_cases(values):
    return [_case(values, f"{steps}, {trip} units", load, DURATION_S,
                  STEPS[steps], name=_trip(steps, trip, load),
                  values={"rtt_ms": trip * unit_ms(values)})
            for steps in STEPS for trip in TRIPS for load in TRIP_LOADS]


def _delay_bounds(_values):
    return [bound for steps in STEPS for bound in (
        cases_bound(f"{steps}: largest minus smallest goodput at 0.6 over all delays",
                    [_trip(steps, trip, 0.6) for trip in TRIPS], "goodput",
                    "range", "<=", 0.05),
        cases_bound(f"{steps}: largest rise of the goodput at 1.2 to the next larger "
                    "delay", [_trip(steps, trip, 1.2) for trip in TRIPS],
                    "goodput", "rise", "<=", 0.02),
        *(cases_bound(f"{steps}, {trip} units: decrease of the goodput from 1.0 to "
                      "1.4", [_trip(steps, trip, load) for load in (1.0, 1.4)],
                      "goodput", "fall", "<=", 0.05) for trip in TRIPS))]


# --- 4.4 and 4.5 -------------------------------------------------------------

THETAS = (0.25, 0.5, 1, 1.5, 2, 3, 4, 5)
RATES = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2)
RATE_LOAD = 1.2


def _theta_cases(values):
    # A threshold above the other would make their bands overlap.
    return [_case(values, AACC, 1.0, DURATION_S,
                  {**SET_4_1, "low": theta, "high": max(theta, 2)},
                  name=f"theta_1 = {theta:g}", x=theta) for theta in THETAS]


def _theta_bounds(_values):
    return [case_bound("goodput, part of that with theta_1 = 2",
                       "theta_1 = 0.25", "goodput", "<=", 0.8,
                       of_case="theta_1 = 2", over_seeds=True)]


def _rate_cases(values):
    return [_case(values, AACC, RATE_LOAD, DURATION_S,
                  {**SET_4_5, "samples": rate}, name=f"r = {rate:g}", x=rate)
            for rate in RATES]


def _rate_bounds(_values):
    return [cases_bound("goodput over the rate of samples: R^2 of a straight line",
                        [f"r = {rate:g}" for rate in RATES], "goodput",
                        "linearity", ">=", 0.9)]


# --- beyond the paper --------------------------------------------------------

PEERS, PEER_LOAD = (1, 2, 4), 1.2
# Samples of 236 bytes, the least: of many peers they would fill the link else.
SMALL = ("--sample-bytes", 236)


def _peer_cases(values):
    return [Case(f"{count} peer{'s' * (count > 1)}, {title}",
                 sources(values, PEER_LOAD, count), DURATION_S, x=count,
                 series=title, passages=True, sample_ms=1000,
                 programs=gates(values, SET_4_5, count, more=SMALL)
                 if title == AACC else ())
            # The cheapest with programs is the last: a moment of it is a test.
            for title in (FREE, AACC) for count in reversed(PEERS)]


def _peer_bounds(_values):
    return [bound for count in PEERS[1:] for bound in (
        case_bound("goodput", f"{count} peers, {AACC}", "goodput", ">=", 0.75,
                   over_seeds=True),
        case_bound("Jain's index of the packets admitted", f"{count} peers, {AACC}",
                   "jain_admitted", ">=", 0.9, over_seeds=True))]


# Flows of TCP behind each of two gates. A gate has the same queue as the network:
# what waits there, waits as it would there.
TCP_FLOWS, TCP_ROOM_PKTS, TCP_RTT_MS = 2, 100, 20.0
TCP = (Variant("cubic-pfifo", "cubic", "pfifo"),
       Variant("sbrm-delay", "sbrm", "delay"))


def _tcp_cases(values):
    flows = tuple({
        "name": f"{path}.{number}", "path": str(path), "role": "tcp",
        "start_s": 0.0, "early": False}
        for path in range(1, SOURCES + 1) for number in range(TCP_FLOWS))
    return [Case(title, flows, DURATION_S, series=title, gate=SAME_QUEUE,
                 sample_ms=100, programs=gates(values, SET_4_5, more=SMALL)
                 if title == AACC else ()) for title in (FREE, AACC)]


def _tcp_bounds(part):
    """part: of the delay without admission. A pfifo is filled by TCP, so half of
    it is little to ask; of what sbrm leaves there is nothing to gain."""
    return lambda _values: [
        case_bound("delay in the network, part of that without admission", AACC,
                   "network_ms", "<=", part, of_case=FREE, over_seeds=True),
        case_bound("goodput, part of that without admission", AACC, "goodput",
                   ">=", 0.7, of_case=FREE, over_seeds=True)]


# The link has a tenth of its rate for the middle third.
SLOW_S, SLOWER = (40.0, 80.0), 10
CHANGE_S = 120.0
# Thresholds above the time of a packet of the slow link, and few samples: two
# paths of 236 bytes each 50 ms are 9 % of it.
SET_CHANGE = {"low": 20, "high": 40, "up": 0.02, "down": 0.1, "samples": 0.02}


def _change_cases(values):
    full_bps = round(values["rate_mbit"] * 1e6)
    return [Case(title, sources(values, 0.8), CHANGE_S, series=title,
                 passages=True, sample_ms=1000,
                 rates=((SLOW_S[0], full_bps // SLOWER),
                        (SLOW_S[1], full_bps)),
                 gate="pfifo limit 1000", programs=gates(
                     values, SET_CHANGE, more=SMALL, start=0.8)
                 if title == AACC else ())
            for title in (FREE, AACC)]


def _change_bounds(_values):
    return [
        case_bound("mean queue while the link is slow, part of that without "
                   "admission", AACC, "queue_slow", "<=", 0.1, of_case=FREE,
                   over_seeds=True),
        case_bound("utilisation of the slow rate while the link is slow", AACC,
                   "used_slow", ">=", 0.8, over_seeds=True),
        case_bound("utilisation from 20 s after the slow link on", AACC,
                   "used_after", ">=", 0.7, over_seeds=True)]


# --- the list ----------------------------------------------------------------

DURATION_S = 60.0
_DEFAULTS = {
    "packet_bytes": 1000, "rate_mbit": 8.0, "edge_mbit": 0.0,
    "warmup_s": 20.0, "start_jitter_s": 0.0, "queue_sample_us": 10000,
    # As AACC's queue, which has room for all.
    "fifo_limit": 1000000, "limit": 1000, "buffer": 1000,
    "time_limit": 10.0, "change": "excess", "gate": "gap"}
_JAIN = metric("jain_admitted", "admitted_jain", "Jain's index of the packets admitted", 3)
_COLUMNS = (
    metric("goodput", "in_time_share", "goodput", 3),
    metric("loss", "late_part", "packets late or lost", 1),
    metric("delay", "delay_units", "mean delay", 1),
    metric("utilization", "utilization", "utilisation", 1, link=LINK),
    metric("beta", "beta_mean", "mean beta", 2),
    metric("queue_max", "queue_max", "largest queue", 0, link=LINK))


def _experiment(name, title, reproduces, cases, judged, x_title, **more):
    return Experiment(**{
        "name": name, "title": title, "reproduces": reproduces,
        "topology": networks.borders, "duration_s": DURATION_S,
        "defaults": _DEFAULTS, "cc": "cubic", "aqm": "pfifo", "cases": cases,
        "shape": lambda values: {"sources": SOURCES}, "metrics": _COLUMNS,
        "bounds": ((OURS, judged),), "x_title": x_title,
        "pictures": (("curves", (panel("goodput"), panel("delay", log=True),
                                 panel("beta"))),), **more})


def _delay_shape(values):
    return {"sources": SOURCES, "rtt_ms": values["rtt_ms"]}


EXPERIMENTS = (
    _experiment(
        "aacc-static", "Goodput with adaptive admission, and without",
        "AACC 4.1: Figure 12", _load_cases, _static_bounds,
        "offered traffic, of the link's rate", metrics=(*_COLUMNS, _JAIN),
        pictures=(("curves", (panel("goodput"), panel("delay", log=True),
                              panel("beta"))),
                  ("admission", f"{AACC} 1.2"), ("admission", f"{FREE} 1.2")),
        about="Poisson sources with a load of 0.4 to 2.0 of the rate; with "
              "admission, without it, and without it over codel, fq_codel and sbrm."),
    _experiment(
        "aacc-loss", "Loss at the build-out delay that admission needs",
        "AACC 4.2: Figure 13", _loss_cases, _loss_bounds,
        "offered traffic, of the link's rate",
        metrics=(
            metric("loss", "loss_at_build_out",
                   "loss with the largest build-out delay", 2, part=LOSS_PART,
                   series=AACC),
            metric("build_out", "build_out_units",
                   "build-out delay for a loss of 5 %", 1, part=LOSS_PART),
            *_COLUMNS[2:]),
        pictures=(("curves", (panel("loss"), panel("build_out", log=True))),),
        about="The smallest build-out delay (packets that take longer count as "
              "lost) with which admission loses at most 5 % at any load, and the "
              "losses with this delay, with admission and without it."),
    _experiment(
        "aacc-dynamic", "Two modulated sources",
        "AACC 4.1: Figures 6 to 11", _dynamic_cases, _dynamic_bounds, None,
        duration_s=MMPP_S, defaults={**_DEFAULTS, "warmup_s": 0.0},
        metrics=(*_COLUMNS,
                 metric("low_s", "low_s", "time with less than 0.8 offered", 1, below=0.8),
                 metric("held_s", "held_s", "beta below 1 in this time", 1, below=0.8)),
        pictures=(("admission", f"{AACC}, {CHANGES[0]}"),
                  ("admission", f"{AACC}, {CHANGES[2]}"),
                  ("admission", FREE)),
        about="Two Markov-modulated sources, see tollway-traffic(1), with each "
              "value of the option --change of tollway-admit(8), beside the same "
              "input without admission and over the other queues."),
    _experiment(
        "aacc-delay", "Admission over long paths", "AACC 4.3: Figure 14",
        _delay_cases, _delay_bounds, "offered traffic, of the link's rate",
        # It is built with a delay, so that cases can change it.
        defaults={**_DEFAULTS, "rtt_ms": 50.0}, shape=_delay_shape,
        about="Propagation of 0 to 500 packet times, with the two steps of beta as "
              "the text of 4.3 prints them, and exchanged, as in all other settings "
              "of the paper."),
    _experiment(
        "aacc-theta", "The lower threshold", "AACC 4.4: Figure 15",
        _theta_cases, _theta_bounds, "theta_1 [packet times]",
        about="The lower threshold from 0.25 to 5 packet times."),
    _experiment(
        "aacc-rate", "The rate of samples", "AACC 4.5: Figure 16",
        _rate_cases, _rate_bounds, "samples of a path, of the link's packets",
        about="One sample of each path in every 100 packet times, up to one in "
              "every 5."),
    _experiment(
        "aacc-peers", "Several peers at once", "no paper", _peer_cases,
        _peer_bounds, "peers", shape=lambda values: {"sources": max(PEERS)},
        metrics=(*_COLUMNS, _JAIN),
        pictures=(("curves", (panel("goodput"), panel("delay", log=True))),
                  ("admission", f"{PEERS[-1]} peers, {AACC}")),
        about="One, two and four peers at once, with a load of 1.2 of the rate "
              "together."),
    _experiment(
        "aacc-tcp", "TCP behind a gate", "no paper", _tcp_cases, _tcp_bounds,
        None, shape=_delay_shape, variants=TCP,
        bounds=((OURS, _tcp_bounds(0.5)), (("sbrm+delay",), _tcp_bounds(1.0))),
        # sbrm and the law delay as the modules are shipped.
        defaults={**_DEFAULTS, "rtt_ms": TCP_RTT_MS, "initcwnd": 10,
                  "fifo_limit": TCP_ROOM_PKTS, "limit": TCP_ROOM_PKTS, **SHIPPED},
        metrics=(
            metric("goodput", "goodput_share", "goodput", 1, role="tcp",
                   from_s=20.0),
            metric("network_ms", "delay_mean_ms", "delay in the network",
                   1, link=LINK),
            metric("srtt_ms", "srtt_ms", "round-trip time, with the gate", 1),
            metric("jain", "jain", "Jain's index of rates", 3),
            metric("retransmits", "retransmits", "retransmissions", 0),
            metric("gate_drops", "gate_drops", "dropped at gates", 0),
            metric("beta", "beta_mean", "mean beta", 2)),
        pictures=(("rates", FREE), ("rates", AACC)),
        about="Two TCP flows behind each of two gates, cubic over pfifo or sbrm "
              "over the law delay; the gates have the same queue as the link."),
    _experiment(
        "aacc-change", "A link that has a tenth of its rate for a time",
        "no paper", _change_cases, _change_bounds, None, duration_s=CHANGE_S,
        metrics=(
            metric("queue_before", "queue_mean", "mean queue before the link is slow", 1,
                   link=LINK, to_s=SLOW_S[0]),
            metric("queue_slow", "queue_mean", "mean queue while the link is slow", 1,
                   link=LINK, from_s=SLOW_S[0], to_s=SLOW_S[1]),
            metric("queue_after", "queue_mean", "mean queue after the slow link", 1,
                   link=LINK, from_s=SLOW_S[1]),
            metric("used_slow", "utilization",
                   "utilisation while the link is slow", 1, link=LINK,
                   from_s=SLOW_S[0], to_s=SLOW_S[1]),
            metric("used_after", "utilization",
                   "utilisation from 20 s after the slow link on", 1, link=LINK,
                   from_s=SLOW_S[1] + 20),
            metric("gate_drops", "gate_drops", "dropped at gates", 0)),
        pictures=(("admission", AACC), ("admission", FREE)),
        about="From 40 s to 80 s the link has a tenth of its rate."),
)
