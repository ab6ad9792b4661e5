# SPDX-License-Identifier: GPL-2.0
"""A source that leaves, PP94 5."""

from ..experiments.description import Case, Experiment, case_bound, metric
from ..experiments.workload import OURS, flow_of
from . import networks, pp94
from .pp94 import ROW_DEFAULTS, often, row_presets, table_3, units

PAPER = pp94.PAPER
# Three sources, of which one leaves. The others learn of it a round trip later.
SOURCES, LEAVE_RTT, END_RTT = 3, 30, 60
TOLD_RTT = LEAVE_RTT + 1
# The round trips in which the rate is looked at.
SEEN_RTTS = (LEAVE_RTT, TOLD_RTT + 5)
# Before the others learn of it, the queue gets a third of the packets of a round trip less
# than the link sends, 33. The others' setpoints of 2 or of 20 add up to less or to more.
SETPOINTS = (2, 20)
# Half of the link and a fifth of this half.
MOST = 0.5 * 1.2


def _name(setpoint):
    return f"setpoint {setpoint}"


def _cases(values):
    _, rtt_s = units(values)
    flows = tuple(flow_of(number, 0.0, role="stays") for number in range(1, SOURCES)) + (
        flow_of(SOURCES, 0.0, role="leaves", stop_s=LEAVE_RTT * rtt_s),)
    return [Case(_name(setpoint), flows, END_RTT * rtt_s, classes=True,
                 values={"setpoint": setpoint}, **often(values)) for setpoint in SETPOINTS]


_SEEN, _AFTER = "{}-{} RTT".format(*SEEN_RTTS), dict(zip(("from_rtt", "to_rtt"), SEEN_RTTS))
EXPERIMENTS = (
    Experiment(
        name="pp-leave", title="One of three sources leaves",
        reproduces="PP94 5: Figure 6", topology=networks.confluence, duration_s=10.0,
        defaults=ROW_DEFAULTS, presets=row_presets(), cc="pp", aqm="fq_rr", cases=_cases,
        shape=table_3(SOURCES),
        metrics=(
            metric("before", "sent_most", "largest rate over 1 RTT, 20-30 RTT", 1,
                   role="stays", from_rtt=20, to_rtt=LEAVE_RTT),
            metric("next", "sent_most", f"largest rate, {TOLD_RTT}-{TOLD_RTT + 1} RTT", 1,
                   role="stays", from_rtt=TOLD_RTT, to_rtt=TOLD_RTT + 1),
            metric("most", "sent_most", f"largest rate over 1 RTT, {_SEEN}", 1, role="stays",
                   **_AFTER),
            metric("told", "told_most", f"largest service rate told, {_SEEN}", 1,
                   role="stays", **_AFTER),
            metric("jain", "jain", "Jain's index of rates, 45-60 RTT", 4, role="stays",
                   from_rtt=45, to_rtt=END_RTT),
            metric("utilization", "utilization", "utilisation, 45-60 RTT", 2, link="R1",
                   from_rtt=45, to_rtt=END_RTT),
            metric("queue_max", "queue_max", "largest queue after it has left", 0, link="R1",
                   from_rtt=TOLD_RTT),
            metric("drops", "drops", "drops", 0)),
        bounds=((OURS, lambda values: [bound for setpoint in SETPOINTS for bound in (
            case_bound("largest rate of a source that stays, in the round trip after the "
                       "first one without the other", _name(setpoint), "next", "<=", MOST),
            case_bound("largest rate of a source that stays, over any round trip",
                       _name(setpoint), "most", "<=", MOST),
            case_bound("utilisation from 15 RTT after on", _name(setpoint), "utilization",
                       ">=", 0.95))]),),
        pictures=tuple((picture, _name(setpoint)) for setpoint in SETPOINTS
                       for picture in ("rates", "spacing", "class_queues")),
        about="Three sources share the link, and one leaves after 30 round trips. Until the "
              "others learn of it, a round trip later, their queues become shorter. If they "
              "become empty, as with a setpoint of 2, the two packets of a pair are served "
              "one after the other, and both sources take the whole link for their share. "
              "PP94 therefore raises the rate slowly while fewer than two packets wait. A "
              "source that stays may send at most a fifth more than its half of the link. "
              "With a setpoint of 20 the queues do not become empty."),
)
