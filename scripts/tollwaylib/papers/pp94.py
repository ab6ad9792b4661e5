# SPDX-License-Identifier: GPL-2.0
"""The experiments of PP94 section 9, except for the transfers of 9.4.

The figures of PP94 were not available. Where a value was derived from the text, the comment
at its use says so.
"""

from ..experiments.description import (Case, Experiment, Paper, case_bound,
                                       metric)
from ..experiments.workload import (LOADS, OURS, PIPE_PKTS, BASELINES, SOURCES,
                                    TABLE_3, flow_of, one_link, rtt_ms_of)
from ..theory import fluid
from ..theory.pairs import equilibrium
from . import networks

PAPER = Paper(
    "PP94", "S. Keshav, Packet-Pair Flow Control, 1994", simulator="REAL",
    parameters={"row": ("wan", None, None, "row of PP94 Table 3: lan, man or wan"),
                "repeats": (1, 1, 1000, "runs of each case with random traffic")},
    choices={"row": tuple(TABLE_3)})

# --- PP94 9.1 and 9.2 ------------------------------------------------------

def table_3(sources):
    """Shape of PP94 Figure 10: access ten times as fast as the bottleneck."""
    def shape(values):
        rtt_ms = rtt_ms_of(values)
        return {"rtts_ms": [rtt_ms] * sources,
                "delay_ms": round(rtt_ms * 0.4, 6),
                "sink_ms": round(rtt_ms / 20, 6)}
    return shape


def units(values):
    """Seconds of a time unit, and of a round trip of 100."""
    rtt_s = rtt_ms_of(values) / 1000
    return rtt_s / PIPE_PKTS, rtt_s


def row_presets():
    """The presets of Experiment for the rows of PP94 Table 3: [((row,), {rate_mbit,
    edge_mbit})], in Mbit/s; a host's link has ten times the rate of the bottleneck."""
    return tuple(((row,), {"rate_mbit": mbit, "edge_mbit": 10 * mbit})
                 for row, (mbit, _) in TABLE_3.items())


ROW_DEFAULTS = {"row": "wan", "packet_bytes": 500, "warmup_s": 0.0,
                 "start_jitter_s": 0.0002, "initcwnd": 10, "buffer": PIPE_PKTS,
                 # PP94 5: a pair, and then what it told. With the ten of Linux
                 # nine sources that start at once fill the buffer alone.
                 "initial": 2}


def often(values, each=0.5):
    """Sampling: us between samples of a queue, ms of a flow, for a resolution
    of a part of a time unit."""
    unit_s, rtt_s = units(values)
    return {"queue_us": max(round(unit_s * each * 1e6), 1), "rtt_s": rtt_s,
            "sample_ms": round(unit_s * 1e3 * 10, 6)}


def _base_cases(values):
    _, rtt_s = units(values)
    return [Case("setpoint 20", (flow_of(1, 0.0),), 40 * rtt_s,
                 values={} if values["setpoint"] else {"setpoint": 20},
                 classes=True, **often(values))]


def _setpoint_cases(values):
    _, rtt_s = units(values)
    return [Case("4 sources", tuple(flow_of(number, 0.0) for number in
                                    range(1, 5)), 80 * rtt_s,
                 classes=True, **often(values, 5))]


def arrival_flows(settings, apart):
    """Source 1 sends 1500 packets, nine others 500, the first of them 500 time
    units later and then one every R round trips."""
    unit_s, _ = units(settings)
    flows = [flow_of(1, 0.0, 1500, "first")] + [
        flow_of(number, (500 + (number - 2) * apart * PIPE_PKTS) * unit_s,
                500, "later") for number in range(2, SOURCES + 1)]
    return one_link(flows, settings)


def arrival_case(settings, apart, name, **words):
    """The Case of arrival_flows(). words: of Case."""
    unit_s, _ = units(settings)
    return Case(name, arrival_flows(settings, apart), 12000 * unit_s, x=apart,
                classes=True, **often(settings, 5), **words)


def _arrival_cases(values):
    return [arrival_case(values, apart, f"every {apart:g} RTT")
            for apart in (0.5, 2)]


def _estimator_cases(values):
    """PP94 4.4 and 4.5 side by side: fuzzy, of fixed weight, and Kalman's."""
    return [arrival_case(values, apart, f"{estimator}, every {apart:g} RTT",
                          values={"pp_estimator": estimator}, series=estimator)
            for estimator in ("fuzzy", "fixed", "kalman") for apart in (0.5, 2)]


# Table 4's times fit 2000 packets of source 1 and 500 of each other, all of
# which start at 1000: 2000 + 500 (N - 1) are 2500 and 6500 of 2761 and 7172.
BURST_FIRST_PKTS, BURST_OTHER_PKTS, BURST_UNITS = 2000, 500, 1000
UNLIMITED_PKTS = 10000


def burst_case(values, count, series, room):
    """A source that is there, and all others at once."""
    unit_s, _ = units(values)
    flows = [flow_of(1, 0.0, BURST_FIRST_PKTS, "first")] + [
        flow_of(number, BURST_UNITS * unit_s, BURST_OTHER_PKTS, "other")
        for number in range(2, count + 1)]
    return Case(f"N = {count}, {series}", one_link(flows, values),
                15000 * unit_s, values={"buffer": room}, x=count,
                series=series, classes=True, **often(values, 2))


def _burst_cases(values):
    return [burst_case(values, count, series, room)
            for series, room in (("limited", PIPE_PKTS),
                                 ("unlimited", UNLIMITED_PKTS))
            for count in range(2, SOURCES + 1)]


def per_role(role):
    """Metrics of the completion of the sources of a role, in time units."""
    return (metric("completion_tu", "completion_units", "completion time", 0,
                   role=role),
            metric("optimal_tu", "optimal_units", "optimal completion time", 0,
                   role=role))


# --- PP94 4.2.1 and 7 ------------------------------------------------------

POLES = (1.0, 0.9, 0.5)
LAW_SETPOINT = 20
# A disturbance shows whether the queue oscillates: for two round trips the link has half of
# its rate. What a pair and the samples of the queue may differ by, packets.
UPSET_RTTS, UPSET_PART, LAW_SWING_PKTS = (20, 22), 0.5, 6


def _law_cases(values):
    _, rtt_s = units(values)
    laws = [(f"pole {pole:g}", {"law": "discrete", "pole": pole})
            for pole in POLES] + [("continuous", {"law": "continuous"})]
    link_bps = values["rate_mbit"] * 1e6
    rates = tuple((when * rtt_s, part * link_bps) for when, part in
                  zip(UPSET_RTTS, (UPSET_PART, 1)))
    # The rise after the upset takes some twenty epochs.
    return [Case(name, (flow_of(1, 0.0),), 80 * rtt_s, classes=True,
                 values={"pole": values["pole"], **law}, rates=rates,
                 **often(values)) for name, law in laws]


def _law_bounds(_values):
    """The queue at which each law comes to rest. theory/pairs.py explains why the queue
    does not oscillate with a pole of 1, as PP94 4.2.1 says."""
    queue = {pole: equilibrium(pole, LAW_SETPOINT, PIPE_PKTS) for pole in POLES}
    near = [("pole 1", "queue_mean", queue[1.0][0], 2),
            ("pole 0.9", "queue_mean", queue[0.9][0], 2),
            ("pole 0.5", "utilization", queue[0.5][1], 0.05),
            ("continuous", "queue_mean", LAW_SETPOINT, 2)]
    called = {"queue_mean": "mean queue, packets", "utilization": "utilisation"}
    return [
        *(case_bound("range of the queue from 60 RTT on, packets", case, "swing",
                     "<=", LAW_SWING_PKTS)
          for case in (*(f"pole {pole:g}" for pole in POLES), "continuous")),
        *(case_bound(f"{called[key]}, {word}", case, key, operator,
                     round(value + sign * slack, 3))
          for case, key, value, slack in near
          for word, operator, sign in (("at least", ">=", -1),
                                       ("at most", "<=", 1)))]


# PP94 9.1 (Table 2 and what it is compared with), and the text of section 7.
PROBING = {"2 every 2 RTT": (2.0, 2, 0.75), "1 every 2 RTT": (1.0, 2, 0.75),
           "0.1 every 4 RTT": (0.1, 4, 0.6)}


def _probing_cases(values):
    _, rtt_s = units(values)
    flows = tuple(flow_of(number, 0.0) for number in range(1, 5))
    return [Case(name, flows, 80 * rtt_s, classes=True,
                 values=dict(zip(("setpoint_step", "setpoint_every",
                                  "setpoint_cut"), steps)),
                 **often(values, 5)) for name, steps in PROBING.items()]


def _probing_bounds(_values):
    fast, slow, slowest = PROBING
    return [case_bound("losses, part of those with 2 every 2 RTT", case,
                       "losses_each", "<=", 1.0, of_case=fast)
            for case in (slow, slowest)] + [
        case_bound("utilisation from 10 RTT on", case, "utilization", ">=",
                   0.99) for case in PROBING]


# --- PP94 9.3 --------------------------------------------------------------

PUBLIC_PKTS = 2000
PUBLIC_METRICS = (
    metric("finished", "finished", "sources that have finished", 0),
    metric("last_s", "last_s", "end of the last source", 1),
    metric("queue_mean", "queue_mean", "mean queue", 1, link="R1"))


def public_cases(values):
    """On for two round trips on average at the bottleneck's rate (MK94 (2) and
    (4): PP94 does not say), silent for as long as the load wants it."""
    _, rtt_s = units(values)
    on_s = 2 * rtt_s
    rate_bps = values["rate_mbit"] * 1e6
    cases = []
    for kind in ("open", "closed"):
        for load in LOADS:
            off_s = fluid.off_for_load(load / SOURCES, on_s,
                                       rtt_s if kind == "closed" else 0.0)
            flows = tuple(
                flow_of(number, 0.0, PUBLIC_PKTS, words=(
                    number * 1000, rate_bps, on_s, off_s, kind == "closed"))
                for number in range(1, SOURCES + 1))
            cases.append(Case(
                f"{kind} {load:g}", flows, 1500 * rtt_s, x=load, series=kind,
                rtt_s=rtt_s, sample_ms=500, queue_us=20000, classes=True))
    return cases


# How much longer than in the mean the last of ten sources may take: each makes
# its packets in about ten periods of exponential length, and a sum of ten is
# beyond 2.5 times its mean with probability 2e-4.
PUBLIC_SLACK = 2.5


def _public_bounds(values):
    """PP94 9.3: "in all cases, the goodput is above 95 %"; and that all packets
    come, in the time that sources need to make them or the link to carry them.
    """
    _, rtt_s = units(values)
    whole_s = SOURCES * PUBLIC_PKTS / PIPE_PKTS * rtt_s
    return [bound for kind in ("open", "closed") for load in LOADS
            for bound in (
                case_bound("goodput", f"{kind} {load:g}", "goodput", ">=",
                           0.95),
                case_bound("end of the last source, s", f"{kind} {load:g}", "last_s",
                           "<=", PUBLIC_SLACK * whole_s / min(load, 1)))]


# --- the list --------------------------------------------------------------

EXPERIMENTS = (
    Experiment(
        name="pp-base", title="One source: queue at the setpoint",
        reproduces="PP94 9.1: Figures 11-14",
        topology=networks.confluence, duration_s=10.0,
        defaults=ROW_DEFAULTS, presets=row_presets(), variants=BASELINES,
        cc="pp", aqm="fq_rr", cases=_base_cases, shape=table_3(1),
        metrics=(
            metric("full_rtt", "full_at", "time to 99 % utilisation", 2,
                   link="R1", units=25, level=0.99),
            metric("utilization", "utilization", "utilisation from 10 RTT",
                   2, link="R1", from_rtt=10),
            metric("queue_min", "queue_min", "smallest queue from 10 RTT",
                   0, link="R1", from_rtt=10),
            metric("queue_mean", "queue_mean", "mean queue", 1,
                   link="R1", from_rtt=10),
            metric("queue_max", "queue_max", "largest queue", 0,
                   link="R1", from_rtt=10),
            metric("queue_peak", "queue_max",
                   "largest queue of the run", 0,
                   link="R1"),
            metric("outstanding", "outstanding", "mean of outstanding packets", 1,
                   from_rtt=10),
            metric("estimate_error", "estimate_error",
                   "largest error of an estimated queue", 2, from_rtt=10),
            metric("drops", "drops", "drops", 0)),
        bounds=((OURS, lambda values: [
            case_bound("time to 99 % utilisation, RTT", "setpoint 20",
                       "full_rtt", "<=", 4.5),
            case_bound("utilisation from 10 RTT on", "setpoint 20",
                       "utilization", ">=", 0.999),
            case_bound("smallest queue from 10 RTT on", "setpoint 20",
                       "queue_min", ">=", 18),
            case_bound("largest queue from 10 RTT on", "setpoint 20",
                       "queue_max", "<=", 22),
            # Figure 11: what the path holds, and the setpoint.
            *(case_bound(f"mean of outstanding packets, {word}", "setpoint 20",
                         "outstanding", operator, PIPE_PKTS + 20 + slack)
              for word, operator, slack in (("at least", ">=", -2),
                                            ("at most", "<=", 2)))]),),
        pictures=(("queue", "setpoint 20"), ("utilization", "setpoint 20"),
                  ("sequence", "setpoint 20")),
        about="One source with a setpoint of 20 packets. A time unit (TU) is a "
              "hundredth of the round trip."),
    Experiment(
        name="pp-setpoint", title="Four sources probe 100 buffers",
        reproduces="PP94 9.1: Figures 15 and 16",
        topology=networks.confluence, duration_s=10.0,
        defaults=ROW_DEFAULTS, presets=row_presets(), variants=BASELINES,
        cc="pp", aqm="fq_rr", cases=_setpoint_cases, shape=table_3(4),
        metrics=(
            metric("utilization", "utilization", "utilisation from 10 RTT",
                   2, link="R1", from_rtt=10),
            metric("jain", "jain", "Jain's index of rates", 4, from_rtt=10),
            metric("queue_each", "class_mean", "mean queue of a source",
                   1, from_rtt=30),
            metric("queue_jain", "class_jain", "Jain's index of queues", 3,
                   from_rtt=30),
            metric("losses_each", "losses_each", "losses of a source", 1),
            metric("retransmits", "retransmits", "retransmissions", 0),
            metric("drops", "drops", "drops", 0)),
        bounds=((OURS, lambda values: [
            case_bound("utilisation from 10 RTT on", "4 sources",
                       "utilization", ">=", 0.99),
            case_bound("Jain's index of the rates", "4 sources", "jain", ">=",
                       0.999),
            # Four setpoints rise until their sum is the buffer, 25 each, and
            # fall by a quarter: a mean of (25 + 18.75)/2 = 21.9 if all fall at
            # once, more where some do not; never more than a quarter of the
            # buffer, nor less than what is left right after a loss.
            case_bound("mean queue of a source, at least", "4 sources",
                       "queue_each", ">=", 0.75 * PIPE_PKTS / 4),
            case_bound("mean queue of a source, at most", "4 sources",
                       "queue_each", "<=", PIPE_PKTS / 4),
            case_bound("losses of a source, mean", "4 sources", "losses_each",
                       "<=", 6)]),),
        pictures=(("setpoints", "4 sources"), ("class_queues", "4 sources"),
                  ("sequence", "4 sources")),
        about="Four sources probe 100 buffers."),
    Experiment(
        name="pp-law", title="The poles of the discrete law",
        reproduces="PP94 4.2.1",
        topology=networks.confluence, duration_s=10.0,
        defaults={**ROW_DEFAULTS, "setpoint": LAW_SETPOINT, "pole": 0.9},
        presets=row_presets(), cc="pp", aqm="fq_rr", cases=_law_cases,
        shape=table_3(1),
        metrics=(
            metric("upset", "queue_swing", "range of the queue, 20-30 RTT", 0,
                   link="R1", from_rtt=20, to_rtt=30),
            metric("swing", "queue_swing", "range of the queue from 60 RTT", 0,
                   link="R1", from_rtt=60),
            metric("queue_mean", "queue_mean", "mean queue from 60 RTT",
                   1, link="R1", from_rtt=60),
            metric("utilization", "utilization", "utilisation from 60 RTT",
                   2, link="R1", from_rtt=60),
            metric("drops", "drops", "drops", 0)),
        bounds=((OURS, _law_bounds),),
        pictures=(("queue", "pole 1"), ("queue", "pole 0.9"),
                  ("queue", "pole 0.5"), ("queue", "continuous")),
        about="One source with the discrete law and a pole of 1, 0.9 and 0.5, and "
              "with the continuous law, over a link that has half of its rate for "
              "two round trips. By PP94's analysis the queue oscillates without end "
              "with a pole of 1; in this experiment it does not."),
    Experiment(
        name="pp-probing", title="Steps of a setpoint that is probed",
        reproduces="PP94 7 and 9.1",
        topology=networks.confluence, duration_s=10.0,
        defaults={**ROW_DEFAULTS, "setpoint_step": 2.0, "setpoint_every": 2,
                  "setpoint_cut": 0.75},
        presets=row_presets(), cc="pp", aqm="fq_rr", cases=_probing_cases,
        shape=table_3(4),
        metrics=(
            metric("losses_each", "losses_each", "losses of a source", 2),
            metric("utilization", "utilization", "utilisation from 10 RTT",
                   2, link="R1", from_rtt=10),
            metric("queue_each", "class_mean", "mean queue of a source",
                   1, from_rtt=30),
            metric("queue_jain", "class_jain", "Jain's index of queues", 3,
                   from_rtt=30),
            metric("jain", "jain", "Jain's index of rates", 4, from_rtt=10),
            metric("retransmits", "retransmits", "retransmissions", 0)),
        bounds=((OURS, _probing_bounds),),
        pictures=(("class_queues", "2 every 2 RTT"),
                  ("class_queues", "1 every 2 RTT"),
                  ("class_queues", "0.1 every 4 RTT")),
        about="Four sources that probe in steps of 2 and of 1 packet after 2 round "
              "trips, and of 0.1 after 4."),
    Experiment(
        name="pp-arrivals", title="Sources that come one after another",
        reproduces="PP94 9.2: Figures 17 and 18",
        topology=networks.confluence, duration_s=10.0,
        defaults=ROW_DEFAULTS, presets=row_presets(), variants=BASELINES,
        cc="pp", aqm="fq_rr", cases=_arrival_cases,
        x_title="round trips between arrivals", shape=table_3(SOURCES),
        metrics=(
            metric("jain", "jain", "Jain's index of rates from 2200 to 4200 TU", 4,
                   from_rtt=22, to_rtt=42),
            metric("utilization", "utilization", "utilisation, 5-45 RTT",
                   2, link="R1", from_rtt=5, to_rtt=45),
            *per_role("first"),
            metric("last_tu", "last_units", "end of the last source", 0),
            metric("retransmits", "retransmits", "retransmissions", 0),
            metric("drops", "drops", "drops", 0)),
        bounds=((OURS, lambda values: [
            case_bound("Jain's index after the last source has started",
                       f"every {apart} RTT", "jain", ">=", 0.99) for apart in ("0.5", "2")]),),
        pictures=(("rates", "every 0.5 RTT"), ("rates", "every 2 RTT"),
                  ("class_queues", "every 0.5 RTT")),
        about="Nine sources join the first, one in every half or every second round "
              "trip. By the text of PP94 the last one starts at 950 TU if it is every "
              "half round trip; but the first of nine starts at 500 TU there and each "
              "other 50 TU later, so that the last one starts at 900 TU."),
    Experiment(
        name="pp-estimators", title="Three estimators of the service time",
        reproduces="PP94 4.4 and 4.5, with the sources of 9.2",
        topology=networks.confluence, duration_s=10.0,
        defaults=ROW_DEFAULTS, presets=row_presets(), cc="pp", aqm="fq_rr",
        cases=_estimator_cases, x_title="round trips between arrivals",
        shape=table_3(SOURCES),
        metrics=(
            *per_role("first"),
            metric("peak", "class_peak", "largest queue of source 1", 0,
                   role="first"),
            metric("jain", "jain", "Jain's index of rates from 2200 to 4200 TU", 4,
                   from_rtt=22, to_rtt=42),
            metric("utilization", "utilization", "utilisation, 5-45 RTT",
                   2, link="R1", from_rtt=5, to_rtt=45),
            metric("retransmits", "retransmits", "retransmissions", 0)),
        bounds=((OURS, lambda values: [
            case_bound("Jain's index after the last source has started",
                       f"fuzzy, every {apart} RTT", "jain", ">=", 0.99)
            for apart in ("0.5", "2")] + [
            # PP94 4.5: it follows a step, where the others are slow.
            case_bound(f"largest queue of source 1, part of that with {other}",
                       f"fuzzy, every {apart} RTT", "peak", "<=", 1.0,
                       of_case=f"{other}, every {apart} RTT")
            for other in ("fixed", "kalman") for apart in ("0.5", "2")]),),
        pictures=(("curve", "peak"), ("curve", "completion_tu")),
        about="The sources of pp-arrivals with each estimator."),
    Experiment(
        name="pp-burst", title="N - 1 sources start at once",
        reproduces="PP94 9.2: Tables 4 and 5, Figures 19-21",
        topology=networks.confluence, duration_s=10.0,
        defaults=ROW_DEFAULTS, presets=row_presets(), variants=BASELINES,
        cc="pp", aqm="fq_rr", cases=_burst_cases,
        x_title="sources", shape=table_3(SOURCES),
        metrics=(
            *per_role("first"),
            metric("loss_rate", "loss_rate", "losses of source 1", 1,
                   role="first"),
            metric("retransmission_rate", "retransmission_rate",
                   "retransmissions of source 1", 1, role="first"),
            metric("needless", "sent_needlessly",
                   "retransmissions of source 1 that were not lost", 0,
                   role="first"),
            metric("peak", "class_peak", "largest queue of source 1", 0,
                   role="first"),
            metric("drops", "drops", "drops of all sources", 0)),
        # "The loss rate and retransmission rate match exactly, which shows
        # that the retransmission strategy is optimal" (PP94 9.2, of Table 4).
        bounds=((OURS, lambda values: [
            case_bound("retransmissions of source 1 that were not lost, packets",
                       f"N = {count}, {room}", "needless", "<=", 0)
            for room in ("limited", "unlimited")
            for count in range(2, SOURCES + 1)]),),
        pictures=(("curve", "loss_rate"), ("curve", "peak"),
                  ("curve", "completion_tu"),
                  ("class_queues", "N = 10, limited"),
                  ("rates", "N = 10, limited"),
                  ("spacing", "N = 10, limited"),
                  ("sequence", "N = 10, limited")),
        about="N - 1 sources start at once beside an existing one, for N from 2 to "
              "10, with 100 buffers and with 10000. Peaks are those that the queue "
              "counted, see packets max in tc-fq_rr(8). PP94 has two peaks: in its phase "
              "2 source 1 does not yet know the new share, in its phase 4 it is told a "
              "wrong one, because the others still start. For N = 10 they are of 41 "
              "and, with 10000 buffers, of 86 packets; its tables have the larger one."),
    Experiment(
        name="pp-public", title="On-off sources, open and closed",
        reproduces="PP94 9.3: Table 6",
        topology=networks.confluence, duration_s=120.0,
        defaults=ROW_DEFAULTS, presets=row_presets(), variants=BASELINES,
        cc="pp", aqm="fq_rr", cases=public_cases,
        x_title="nominal load", shape=table_3(SOURCES),
        metrics=(
            metric("retransmits", "retransmits", "retransmissions", 0),
            metric("goodput", "goodput_sent", "goodput", 3),
            *PUBLIC_METRICS,
            # No source can have finished by then.
            metric("queue_each", "class_mean", "mean queue of a source, 10-100 RTT", 1,
                   from_rtt=10, to_rtt=100),
            metric("drops", "drops", "drops", 0)),
        bounds=((OURS, _public_bounds),),
        pictures=(("curve", "goodput"),),
        about="Ten on-off sources of 2000 packets, open and closed, at nominal "
              "loads from 0.5 to 5. They are on for two round trips on average, at "
              "the rate of the bottleneck."),
)
