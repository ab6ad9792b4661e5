# SPDX-License-Identifier: GPL-2.0
"""From the raw measurements of cases to their result, and from seeds to means.

Everything here is a pure function of raw.json. A case's metrics are those that
its experiment asks for; KINDS has what each kind is. A metric is a number, or
null for what never happened (a transfer that was not finished) or does not
exist for this source or queue. Roles are the experiment's names for flows that
do the same.
"""

import statistics

import numpy as np

from ...errors import TollwayError
from ..fields import mean_or_none
from .admission import (admitted_jain, beta_mean, build_out_units,
                        delay_units, free_below, gate_drops, in_time_share,
                        late_part, loss_at_build_out)
from .applications import frame_delay_ms, frame_rate_mbit
from .cycles import (cycle_count, cycle_drops, drops_after, first_cycle,
                     fluid, gain_jain, gain_sum, of_cycles, paper_ms, received,
                     resent_kbytes)
from .queues import (class_jain, class_mean, class_peak, drops, estimate_error,
                     full_at, loss_rate, losses_each, of_backlog, of_delay,
                     sent_needlessly, utilization)
from .shares import (advantage, goodput_each, goodput_mbit, goodput_share,
                     jain, settled_s, share_error)
from .transfers import (completion_ms, completion_units, finished,
                        goodput_sent, last_s, last_units, loss_part,
                        optimal_ms, optimal_units, retransmission_rate,
                        retransmits, slowdown, srtt_ms)


# --- kinds of metrics ------------------------------------------------------


KINDS = {
    # ms from the data's being there to the acknowledgement of its last byte,
    # mean of a role; what theory says is best; how much more it took, of that
    "completion_ms": completion_ms,
    "optimal_ms": optimal_ms,
    "slowdown": slowdown,
    # the same in hundredths of the round trip
    "completion_units": completion_units,
    "optimal_units": optimal_units,
    # of repeated cases, see analyse()
    "completion_variance": lambda data, words: None,
    # when the last of all transfers was done
    "last_s": last_s,
    "last_units": last_units,
    # how many transfers were
    "finished": finished,
    # smoothed round trip of a role, ms, mean
    "srtt_ms": srtt_ms,
    # packets sent again, and as a part of those sent, of a role or of all
    "retransmits": retransmits,
    "loss_part": loss_part,
    # 1 - packets sent again/packets asked for
    "goodput_sent": goodput_sent,
    # packets dropped at all queues, in the whole case or in a window
    "drops": drops,
    # of a role's classes: drops, and drops and packets sent again per 1000
    # hundredths of a round trip of their transfer
    "losses_each": losses_each,
    "loss_rate": loss_rate,
    "retransmission_rate": retransmission_rate,
    # packets sent again and not lost
    "sent_needlessly": sent_needlessly,
    # of a link's queue in packets, in a window
    "queue_min": of_backlog(np.min),
    "queue_mean": of_backlog(np.mean),
    "queue_max": of_backlog(np.max),
    "queue_swing": of_backlog(np.ptp),
    # the same in ms of the link's rate
    "delay_mean_ms": of_delay(np.mean),
    "delay_p99_ms": of_delay(lambda values: np.percentile(values, 99)),
    "delay_max_ms": of_delay(np.max),
    # 0 to 1, on the wire; and the first time it reached a level, round trips
    "utilization": utilization,
    "full_at": full_at,
    # data acknowledged, in packets, over what the link could carry: of all of a
    # role, of one of them, and that over an equal part
    "goodput_share": goodput_share,
    # the same of a role in Mbit/s
    "goodput_mbit": goodput_mbit,
    "goodput_each": goodput_each,
    "advantage": advantage,
    # of the rates of flows that are there for a whole window: Jain's index,
    # worst |rate/mean - 1|
    "jain": jain,
    "share_error": share_error,
    # s until all have an equal share of a full link, after the last change
    "settled_s": settled_s,
    # of the flows' own queues in packets
    "class_mean": class_mean,
    "class_peak": class_peak,
    "class_jain": class_jain,
    # worst difference of what a source takes its queue for, mean, packets
    "estimate_error": estimate_error,
    # of rate cycles (ALPHA) in a window, from number `skip` on: how many, their
    # largest queues, drops of one in the mean and of all
    "cycles": cycle_count,
    "cycle_first": first_cycle,
    "cycle_least": of_cycles(np.min),
    "cycle_mean": of_cycles(np.mean),
    "cycle_most": of_cycles(np.max),
    "cycle_drops": cycle_drops,
    "drops_after": drops_after,
    # what equations (8), (16) and (15) of ALPHA have for one source
    "fluid_largest": fluid("largest_queue"),
    "fluid_drops": fluid("lost"),
    "fluid_loss": fluid("loss"),
    # of their sources: least and largest sum of gains in a window, and how equal
    # they are at its end
    "gain_least": gain_sum(np.min),
    "gain_most": gain_sum(np.max),
    "gain_jain": gain_jain,
    # packets acknowledged; a transfer's time and what it sent again, in units of a
    # paper
    "received": received,
    "paper_ms": paper_ms,
    "resent_kbytes": resent_kbytes,
    # packets that were timed: those within the limit over what the link could
    # carry, those beyond it of all, mean delay; smallest limit for a loss, and
    # the loss of a case with the largest of a series, in packet times
    "in_time_share": in_time_share,
    "late_part": late_part,
    "delay_units": delay_units,
    "build_out_units": build_out_units,
    "loss_at_build_out": loss_at_build_out,
    # of gates: mean beta, time with beta 1 while less than a level was offered,
    # drops
    "beta_mean": beta_mean,
    "free_below": free_below,
    "gate_drops": gate_drops,
    # Jain's index of the packets of each flow in the network
    "admitted_jain": admitted_jain,
    # of coders
    "frame_delay_ms": frame_delay_ms,
    "frame_rate_mbit": frame_rate_mbit,
}


# --- results ---------------------------------------------------------------

def measure(raw, cases):
    """[{"name", "x", "series", "runs", "metrics"}] of the cases (CaseData) of a
    raw result, repeated ones as one with the means."""
    points = {}
    for data in cases:
        case, found = data.case, {}
        for wanted in raw["metrics"]:
            if wanted["kind"] not in KINDS:
                raise TollwayError(f"there is no metric {wanted['kind']!r}")
            start, stop = data.window(wanted["words"])
            # A run may end before the window that a metric is about.
            value = KINDS[wanted["kind"]](data, wanted["words"]) \
                if stop > start else None
            found[wanted["key"]] = None if value is None else float(value)
        points.setdefault(case["point"], []).append((case, found))
    return [_point(name, runs, raw["metrics"])
            for name, runs in points.items()]


def _point(name, runs, wanted):
    metrics = {}
    for spec in wanted:
        key = spec["key"]
        values = [found[key] for _, found in runs]
        if spec["kind"] == "completion_variance":
            times = [found["completion_ms"] for _, found in runs]
            metrics[key] = statistics.variance(times) \
                if len(times) > 1 and None not in times else None
        else:
            metrics[key] = mean_or_none(values)
    first = runs[0][0]
    return {"name": name, "x": first["x"], "series": first["series"],
            "runs": len(runs), "metrics": metrics}
