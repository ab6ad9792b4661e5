# SPDX-License-Identifier: GPL-2.0
"""All metrics, with their units and meanings.

OF_RUNS are the quantities of an experiment that names no metrics. A bound or a
published value names a quantity by its key, and says to which link, path or interval
it belongs: {"link": "R3", "interval": 2} (intervals of a schedule are counted from 1)
or {"path": "S1"}. OF_CASES are the kinds of metrics that an experiment can name for
its cases.

A value with the unit "%" is a fraction: 0.5 is shown as 50 %. A unit of None is a
number without a unit.
"""

from dataclasses import dataclass

from ..errors import TollwayError


@dataclass(frozen=True)
class Quantity:
    """A quantity of a run: its unit and meaning. of: what a bound has to name ("link",
    "path", "interval"); may: what it can name in addition."""
    unit: str
    meaning: str
    of: frozenset = frozenset()
    may: frozenset = frozenset()


def _of(unit, meaning, of=(), may=()):
    return Quantity(unit, meaning, frozenset(of), frozenset(may))


OF_RUNS = {
    # of a link
    "utilization": _of("%", "fraction of the link's rate, on the wire", ["link"],
                       ["interval"]),
    "utilization_after_2s": _of(
        "%", "fraction of the link's rate, from 2 s after the interval's "
             "beginning",
        ["link", "interval"]),
    "queue_mean_pkts": _of("pkts", "mean backlog", ["link"], ["interval"]),
    "queue_mean_ms": _of("ms", "time that the link needs for the mean backlog, "
                               "if all packets have the full size", ["link"]),
    # of a path whose flows all have the same willingness to pay
    "near_s": _of("s", "from the interval's beginning until the mean rate is "
                       "within 5 % of the share, over 2 s", ["path", "interval"]),
    "path_share": _of("%", "rate of a path, divided by its fair rate", ["path"]),
    # of web users: of all (path "all"), or of those of a path
    "median_s": _of("s", "median of the transfer times of pages", ["path"]),
    "p99_s": _of("s", "99th percentile of the transfer times of pages", ["path"]),
    "throughput_kBps": _of("kB/s", "mean size of a page, divided by the mean "
                                   "transfer time", ["path"]),
    # of all hosts
    "fast_retransmits": _of("count", "number of losses that were repaired without a "
                                   "timeout"),
    "timeouts": _of("count", "retransmission timeouts"),
    # of all bottlenecks
    "mean_utilization": _of("%", "mean utilisation of the bottlenecks"),
    "min_utilization": _of("%", "smallest utilisation of a bottleneck"),
    "max_utilization": _of("%", "largest utilisation of a bottleneck"),
    "max_queue_mean_pkts": _of("pkts", "largest mean backlog"),
    "max_queue_error": _of("%", "largest difference of a mean backlog from "
                                "b0 + p/gamma"),
    "max_pc3_error": _of("%", "largest difference of a mean backlog from that "
                              "of the law PC3 at the utilisation of the link"),
    "total_drops": _of("pkts", "packets dropped on all links after the warm-up"),
    "total_drops_whole_run": _of("pkts", "packets dropped on all links, also in the "
                                    "warm-up"),
    # of all classes
    "max_abs_error": _of("%", "largest difference of a class's mean rate from "
                              "its share", may=["interval"]),
    "max_abs_error_over_seeds": _of("%", "largest difference of a class's rate, as a "
                                         "mean over several seeds, from its share"),
    "max_spread": _of("%", "largest (max - min)/mean within a class"),
    "min_jain": _of(None, "smallest Jain's index of the flows of a class",
                    ["interval"]),
    "aimd_max_abs_error": _of(
        "%", "largest difference of a class from w (1 - m)/m; m from its flows' "
             "delivered_ce/delivered, or if those are zero from its links' "
             "marks/packets"),
    # of all intervals of a schedule
    "min_utilization_after_2s": _of("%", "smallest utilisation of a bottleneck, "
                                         "from 2 s after each change on"),
    "total_drops_after_2s": _of("pkts", "packets dropped later than 2 s after a "
                                      "change"),
    "max_interval_error": _of("%", "largest difference of a class's rate from "
                                   "its share, from 2 s after each change on"),
    "max_convergence_s": _of("s", "longest time until a class has its share, "
                                  "also at the start of the run"),
    # differences from the model of CP05 5.5
    "steady_max_rate_error": _of("%", "largest difference of a class's rate from the "
                                      "model"),
    "steady_max_queue_error": _of("%", "largest difference of a mean backlog from the "
                                       "model"),
    "steady_max_mark_error": _of("%", "largest difference of a link's marking "
                                      "probability from the model"),
}

# Only aggregate() judges this, by the means over all seeds.
OVER_SEEDS = "max_abs_error_over_seeds"

# These metrics have no value if a role has no flow. The others are 0 then.
OF_TRANSFERS = ("completion_ms", "optimal_ms", "slowdown", "completion_units",
                "optimal_units")
# {kind of metric of a case: its unit}; results/metrics computes them.
OF_CASES = {
    # mean of a role: time from when the application has the data until its last byte
    # is acknowledged; the shortest possible time by theory; their difference, divided
    # by the latter
    "completion_ms": "ms",
    "optimal_ms": "ms",
    "slowdown": "%",
    # the same in time units (TU), hundredths of the round trip
    "completion_units": "TU",
    "optimal_units": "TU",
    # variance over the repetitions of a case, see analyse()
    "completion_variance": "ms²",
    # end of the last transfer
    "last_s": "s",
    "last_units": "TU",
    # number of transfers that ended
    "finished": None,
    # mean smoothed round-trip time of a role
    "srtt_ms": "ms",
    # mean number of outstanding packets of the flows of a role
    "outstanding": "pkts",
    # retransmitted packets, and their fraction of the sent packets, of a role or of all
    "retransmits": "pkts",
    "loss_part": "%",
    # 1 - retransmitted packets / packets of data
    "goodput_sent": None,
    # packets dropped by all queues, during the case or during a window
    "drops": "pkts",
    # of the queues of a role's flows: drops; drops and retransmitted packets per 1000
    # TU of their transfer
    "losses_each": None,
    "loss_rate": "per 1000 TU",
    "retransmission_rate": "per 1000 TU",
    # retransmitted packets that were not lost
    "sent_needlessly": "pkts",
    # backlog of a link's queue in a window
    "queue_min": "pkts",
    "queue_mean": "pkts",
    "queue_max": "pkts",
    # largest minus smallest backlog
    "queue_swing": "pkts",
    # queueing delay: the backlog in bytes, divided by the rate of the link
    "delay_mean_ms": "ms",
    "delay_p99_ms": "ms",
    "delay_max_ms": "ms",
    # utilisation on the wire; the first time when it reached a level
    "utilization": "%",
    "full_at": "RTT",
    # acknowledged packets of data, divided by the number that the link can carry: of
    # all flows of a role; see goodput_each and advantage
    "goodput_share": "%",
    # goodput of a role; of one flow as a fraction of what the link can carry; and this
    # divided by an equal share
    "goodput_mbit": "Mbit/s",
    "goodput_each": "%",
    "advantage": None,
    # of the flows of a role, as fractions of what the link can carry: the largest rate
    # over a round trip, and the largest service rate that pairs told
    "sent_most": "%",
    "told_most": "%",
    # of the rates of the flows that run during all of a window: Jain's index, and the
    # largest |rate/mean - 1|
    "jain": None,
    "share_error": "%",
    # time from the last change until all flows have an equal share of a full link
    "settled_s": "s",
    # backlogs of the queues of single flows
    "class_mean": "pkts",
    "class_peak": "pkts",
    "class_jain": None,
    # largest mean difference of a source's estimate of its queue from this queue
    "estimate_error": "pkts",
    # of the rate cycles (ALPHA) in a window, from number `skip` on: their number, their
    # largest backlogs, mean drops of a cycle, drops of all
    "cycles": None,
    "cycle_first": "pkts",
    "cycle_least": "pkts",
    "cycle_mean": "pkts",
    "cycle_most": "pkts",
    "cycle_drops": "pkts",
    "drops_after": None,
    # the values of equations (8), (16) and (15) of ALPHA for one source
    "fluid_largest": "pkts",
    "fluid_drops": "pkts",
    "fluid_loss": "%",
    # of the gains of their sources: smallest and largest sum in a window, and Jain's
    # index at its end
    "gain_least": "pkts/ms²",
    "gain_most": "pkts/ms²",
    "gain_jain": None,
    # acknowledged packets; the time of a transfer and its retransmitted data, in the
    # units of a paper
    "received": None,
    "paper_ms": "ms",
    "resent_kbytes": "kB",
    # of the packets whose delay was measured: those within the time limit, divided by
    # the number that the link can carry; the fraction of later ones; the mean delay; the
    # smallest limit with a given loss, and the loss with the largest of these limits in
    # a series
    "in_time_share": None,
    "late_part": "%",
    "delay_units": "packet times",
    "build_out_units": "packet times",
    "loss_at_build_out": "%",
    # the time in which less than a level was offered; of gates: mean beta, the time of
    # these in which beta is below 1, drops
    "low_s": "s",
    "beta_mean": None,
    "held_s": "s",
    "gate_drops": None,
    # Jain's index of the numbers of packets of each flow that entered the network
    "admitted_jain": None,
    # of video coders
    "frame_delay_ms": "ms",
    "frame_rate_mbit": "Mbit/s",
}


def unit_of(metric):
    """The unit of a quantity of runs."""
    return _of_run(metric).unit


def check(metric, of):
    """Raise TollwayError unless the quantity of runs with this name belongs to what
    `of` names ("link", "path", "interval")."""
    found = _of_run(metric)
    if not found.of <= set(of) <= found.of | found.may:
        needs = ", ".join(sorted(found.of)) or "nothing"
        more = f", and may have {', '.join(sorted(found.may))}" \
            if found.may else ""
        raise TollwayError(f"the metric {metric} is of {needs}{more}; not of "
                           f"{', '.join(sorted(of)) or 'nothing'}")


def _of_run(metric):
    if metric not in OF_RUNS:
        raise TollwayError(f"there is no metric {metric!r}; there are "
                           f"{', '.join(OF_RUNS)}")
    return OF_RUNS[metric]
