# SPDX-License-Identifier: GPL-2.0
"""The names of what is measured, with units and meanings: the one place.

OF_RUNS are quantities of an experiment that names no metrics. Bounds and
published values name one by its key, and say of what it is: {"link": "R3",
"interval": 2} (of a schedule, counted from 1) or {"path": "S1"}. OF_CASES are
the kinds of metrics that an experiment names for its cases.

A unit of "%" is of parts: 0.5 is shown as 50 %. None: a number without a unit.
"""

from dataclasses import dataclass

from ..errors import TollwayError


@dataclass(frozen=True)
class Quantity:
    """unit and meaning; of: what a quantity of a run has to name; may: what it
    may name beside that."""
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
        "%", "the same from 2 s after the interval's beginning",
        ["link", "interval"]),
    "queue_mean_pkts": _of("pkts", "mean backlog", ["link"], ["interval"]),
    "queue_mean_ms": _of("ms", "time that the link needs for the mean backlog", ["link"]),
    # of a class: the flows of a path, which has one willingness to pay
    "near_s": _of("s", "from the interval's beginning until the mean rate is "
                       "within 5 % of the share, over 2 s", ["path", "interval"]),
    "path_share": _of("%", "rate of a path over its fair rate", ["path"]),
    # of users of pages: "all", or those of a path
    "median_s": _of("s", "median of the times of pages", ["path"]),
    "p99_s": _of("s", "99th percentile of the times of pages", ["path"]),
    "throughput_kBps": _of("kB/s", "mean size of a page over the mean time of "
                                   "a page", ["path"]),
    # of all hosts
    "fast_retransmits": _of("count", "times that a loss was repaired without a timeout"),
    "timeouts": _of("count", "retransmission timeouts"),
    # of all bottlenecks
    "mean_utilization": _of("%", "mean over the bottlenecks"),
    "min_utilization": _of("%", "smallest of the bottlenecks"),
    "max_utilization": _of("%", "largest of the bottlenecks"),
    "max_queue_mean_pkts": _of("pkts", "largest mean backlog"),
    "max_queue_error": _of("%", "largest difference of a mean backlog from "
                                "b0 + p/gamma"),
    "max_pc3_error": _of("%", "the same from the backlog of the law PC3 at the "
                              "link's utilisation"),
    "total_drops": _of("pkts", "dropped on all links after the warm-up"),
    "total_drops_whole_run": _of("pkts", "the same, warm-up included"),
    # of all classes
    "max_abs_error": _of("%", "largest difference of a class's mean rate from "
                              "its share", may=["interval"]),
    "max_abs_error_over_seeds": _of("%", "the same of means over all seeds, only "
                                         "for several seeds"),
    "max_spread": _of("%", "largest (max - min)/mean within a class"),
    "min_jain": _of(None, "Jain's index of the least equal class",
                    ["interval"]),
    "aimd_max_abs_error": _of(
        "%", "largest difference of a class from w (1 - m)/m; m from its flows' "
             "delivered_ce/delivered, or if those are zero from its links' "
             "marks/packets"),
    # of all intervals of a schedule
    "min_utilization_after_2s": _of("%", "smallest of the bottlenecks, from 2 s "
                                         "after each change"),
    "total_drops_after_2s": _of("pkts", "dropped later than 2 s after a change"),
    "max_interval_error": _of("%", "largest difference of a class from its "
                                   "share, from 2 s after each change"),
    "max_convergence_s": _of("s", "longest time until a class has its share, "
                                  "also at the start of the run"),
    # against the model of CP05 5.5
    "steady_max_rate_error": _of("%", "largest difference of a class"),
    "steady_max_queue_error": _of("%", "largest difference of a mean backlog"),
    "steady_max_mark_error": _of("%", "largest difference of a link's marking "
                                      "probability"),
}

# Judged by aggregate() alone, on the class means over all seeds.
OVER_SEEDS = "max_abs_error_over_seeds"

# Of these there is no number where a role has no flow: others are 0 then.
OF_TRANSFERS = ("completion_ms", "optimal_ms", "slowdown", "completion_units",
                "optimal_units")
# Kinds of metrics of cases, see results/metrics: KIND: its unit.
OF_CASES = {
    # ms from the data's being there to the acknowledgement of its last byte,
    # mean of a role; what theory says is best; how much more it took, of that
    "completion_ms": "ms",
    "optimal_ms": "ms",
    "slowdown": "%",
    # the same in hundredths of the round trip
    "completion_units": "TU",
    "optimal_units": "TU",
    # of repeated cases, see analyse()
    "completion_variance": "ms²",
    # when the last of all transfers was done
    "last_s": "s",
    "last_units": "TU",
    # how many transfers were
    "finished": None,
    # smoothed round trip of a role, ms, mean
    "srtt_ms": "ms",
    # packets sent again, and as a part of those sent, of a role or of all
    "retransmits": "pkts",
    "loss_part": "%",
    # 1 - packets sent again/packets asked for
    "goodput_sent": None,
    # packets dropped at all queues, in the whole case or in a window
    "drops": "pkts",
    # of a role's classes: drops, and drops and packets sent again per 1000
    # hundredths of a round trip of their transfer
    "losses_each": None,
    "loss_rate": "per 1000 TU",
    "retransmission_rate": "per 1000 TU",
    # packets sent again and not lost
    "sent_needlessly": "pkts",
    # of a link's queue in packets, in a window
    "queue_min": "pkts",
    "queue_mean": "pkts",
    "queue_max": "pkts",
    # the largest less the smallest
    "queue_swing": "pkts",
    # in ms of the link's rate
    "delay_mean_ms": "ms",
    "delay_p99_ms": "ms",
    "delay_max_ms": "ms",
    # 0 to 1, on the wire; and the first time it reached a level, round trips
    "utilization": "%",
    "full_at": "RTT",
    # data acknowledged, in packets, over what the link could carry: of all of a
    # role, of one of them, and that over an equal part
    "goodput_share": "%",
    # the same of a role in Mbit/s
    "goodput_mbit": "Mbit/s",
    "goodput_each": "%",
    "advantage": None,
    # of the rates of flows that are there for a whole window: Jain's index,
    # worst |rate/mean - 1|
    "jain": None,
    "share_error": "%",
    # s until all have an equal share of a full link, after the last change
    "settled_s": "s",
    # of the flows' own queues in packets
    "class_mean": "pkts",
    "class_peak": "pkts",
    "class_jain": None,
    # worst difference of what a source takes its queue for, mean, packets
    "estimate_error": "pkts",
    # of rate cycles (ALPHA) in a window, from number `skip` on: how many, their
    # largest queues, drops of one in the mean and of all
    "cycles": None,
    "cycle_first": "pkts",
    "cycle_least": "pkts",
    "cycle_mean": "pkts",
    "cycle_most": "pkts",
    "cycle_drops": "pkts",
    "drops_after": None,
    # what equations (8), (16) and (15) of ALPHA have for one source
    "fluid_largest": "pkts",
    "fluid_drops": "pkts",
    "fluid_loss": "%",
    # of their sources: least and largest sum of gains in a window, and how equal
    # they are at its end
    "gain_least": "pkts/ms²",
    "gain_most": "pkts/ms²",
    "gain_jain": None,
    # packets acknowledged; a transfer's time and what it sent again, in units of a
    # paper
    "received": None,
    "paper_ms": "ms",
    "resent_kbytes": "kB",
    # packets that were timed: those within the limit over what the link could
    # carry, those beyond it of all, mean delay; smallest limit for a loss, and
    # the loss of a case with the largest of a series, in packet times
    "in_time_share": None,
    "late_part": "%",
    "delay_units": "packet times",
    "build_out_units": "packet times",
    "loss_at_build_out": "%",
    # of gates: mean beta, time with beta 1 while less than a level was offered,
    # drops
    "beta_mean": None,
    "free_below": "%",
    "gate_drops": None,
    # Jain's index of the packets of each flow in the network
    "admitted_jain": None,
    # of coders
    "frame_delay_ms": "ms",
    "frame_rate_mbit": "Mbit/s",
}


def unit_of(metric):
    """The unit of a quantity of runs."""
    return _of_run(metric).unit


def check(metric, of):
    """Raise TollwayError unless a quantity of runs of that name is of what `of`
    names."""
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
