# SPDX-License-Identifier: GPL-2.0
"""From the raw measurements of cases to their result, and from seeds to means.

Everything here is a pure function of raw.json. The metrics of a case are those that its
experiment names. A metric is a number, or null for an event that never happened (a
transfer that did not end) or for a quantity that this congestion control or queue does
not have. A role is the experiment's name for flows that do the same.
"""

import math
import statistics

import numpy as np

from ...errors import TollwayError
from ..fields import mean_or_none
from ..measurements import EPSILON
from .admission import (admitted_jain, beta_mean, build_out_units,
                        delay_units, gate_drops, held_s, in_time_share,
                        late_part, loss_at_build_out, low_s)
from .applications import frame_delay_ms, frame_rate_mbit
from .cycles import (cycle_count, cycle_drops, drops_after, first_cycle,
                     fluid, gain_jain, gain_sum, of_cycles, paper_ms, received,
                     resent_kbytes)
from .queues import (class_jain, class_mean, class_peak, drops, estimate_error,
                     full_at, loss_rate, losses_each, of_backlog, of_delay,
                     sent_needlessly, utilization)
from .shares import (advantage, goodput_each, goodput_mbit, goodput_share,
                     jain, sent_most, settled_s, share_error, told_most)
from .transfers import (completion_ms, completion_units, finished,
                        goodput_sent, last_s, last_units, loss_part,
                        optimal_ms, optimal_units, outstanding,
                        retransmission_rate, retransmits, slowdown, srtt_ms)


# --- kinds of metrics ------------------------------------------------------


# Their units and meanings are in experiments/quantities.py.
KINDS = {
    "completion_ms": completion_ms,
    "optimal_ms": optimal_ms,
    "slowdown": slowdown,
    "completion_units": completion_units,
    "optimal_units": optimal_units,
    "completion_variance": lambda data, words: None,
    "last_s": last_s,
    "last_units": last_units,
    "finished": finished,
    "srtt_ms": srtt_ms,
    "outstanding": outstanding,
    "retransmits": retransmits,
    "loss_part": loss_part,
    "goodput_sent": goodput_sent,
    "drops": drops,
    "losses_each": losses_each,
    "loss_rate": loss_rate,
    "retransmission_rate": retransmission_rate,
    "sent_needlessly": sent_needlessly,
    "queue_min": of_backlog(np.min),
    "queue_mean": of_backlog(np.mean),
    "queue_max": of_backlog(np.max),
    "queue_swing": of_backlog(np.ptp),
    "delay_mean_ms": of_delay(np.mean),
    "delay_p99_ms": of_delay(lambda values: np.percentile(values, 99)),
    "delay_max_ms": of_delay(np.max),
    "utilization": utilization,
    "full_at": full_at,
    "goodput_share": goodput_share,
    "goodput_mbit": goodput_mbit,
    "goodput_each": goodput_each,
    "advantage": advantage,
    "sent_most": sent_most,
    "told_most": told_most,
    "jain": jain,
    "share_error": share_error,
    "settled_s": settled_s,
    "class_mean": class_mean,
    "class_peak": class_peak,
    "class_jain": class_jain,
    "estimate_error": estimate_error,
    "cycles": cycle_count,
    "cycle_first": first_cycle,
    "cycle_least": of_cycles(np.min),
    "cycle_mean": of_cycles(np.mean),
    "cycle_most": of_cycles(np.max),
    "cycle_drops": cycle_drops,
    "drops_after": drops_after,
    "fluid_largest": fluid("largest_queue"),
    "fluid_drops": fluid("lost"),
    "fluid_loss": fluid("loss"),
    "gain_least": gain_sum(np.min),
    "gain_most": gain_sum(np.max),
    "gain_jain": gain_jain,
    "received": received,
    "paper_ms": paper_ms,
    "resent_kbytes": resent_kbytes,
    "in_time_share": in_time_share,
    "late_part": late_part,
    "delay_units": delay_units,
    "build_out_units": build_out_units,
    "loss_at_build_out": loss_at_build_out,
    "beta_mean": beta_mean,
    "low_s": low_s,
    "held_s": held_s,
    "gate_drops": gate_drops,
    "admitted_jain": admitted_jain,
    "frame_delay_ms": frame_delay_ms,
    "frame_rate_mbit": frame_rate_mbit,
}


# --- results ---------------------------------------------------------------

def measure(raw, cases):
    """[{"name", "x", "series", "runs", "metrics"}] of the cases (CaseData) of a raw result.
    Repetitions of a case are one entry, with their means. Raises TollwayError if the raw
    result names an unknown kind of metric."""
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
        points.setdefault(case["point"], []).append((case, found, _batches(data, raw["metrics"])))
    return [_point(name, runs, raw["metrics"])
            for name, runs in points.items()]


# Fewer batches say too little of how much a metric varies; MK94 has 20.
BATCHES_LEAST = 10


def _batches(data, wanted):
    """{key: {"n", "half"}} of those metrics that have a batch_s: the window is cut into batches
    of so many seconds from the end of the warm-up on, and half is 1.96 times the standard
    error of the mean over them (MK94 (8), (9)). Empty if there are fewer than BATCHES_LEAST."""
    found = {}
    for spec in wanted:
        words = dict(spec["words"])
        each_s = words.pop("batch_s", None)
        if each_s is None:
            continue
        start, stop = data.window(words)
        count = int((stop - start) / each_s + EPSILON)
        values = [KINDS[spec["kind"]](data, {
            **words, "from_s": start + index * each_s, "to_s": start + (index + 1) * each_s})
            for index in range(count)]
        if count >= BATCHES_LEAST and None not in values:
            found[spec["key"]] = {"n": count, "half": 1.96 * statistics.stdev(values)
                                  / math.sqrt(count)}
    return found


def _point(name, runs, wanted):
    metrics = {}
    for spec in wanted:
        key = spec["key"]
        values = [found[key] for _, found, _ in runs]
        if spec["kind"] == "completion_variance":
            times = [found["completion_ms"] for _, found, _ in runs]
            metrics[key] = statistics.variance(times) \
                if len(times) > 1 and None not in times else None
        else:
            metrics[key] = mean_or_none(values)
    first, _, batches = runs[0]
    return {"name": name, "x": first["x"], "series": first["series"],
            "runs": len(runs), "metrics": metrics,
            **({"batches": batches} if batches and len(runs) == 1 else {})}
