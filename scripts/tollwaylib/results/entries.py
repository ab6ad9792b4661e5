# SPDX-License-Identifier: GPL-2.0
"""Flows and links of the cases of an experiment that names metrics.

The result of such an experiment has only the metrics. This file computes the numbers of
each flow and each link from the raw measurements, over the whole time of a flow or case.
"""

import numpy as np

from .measurements import EPSILON, cases_of, number_of
from .metrics.shares import rtt_mean_ms


def entries_of(raw):
    """[{"name", "links": {name: numbers}, "flows": [numbers with id, path, cc,
    wtp]}] of each case of raw.json.

    The numbers are those of a result, see analysis.py, and completion_s: s from
    a transfer's data to its last acknowledgement. None was not measured.
    """
    return [{"name": data.case["name"],
             "links": {name: _link(data, queue)
                       for name, queue in data.queues.items()},
             "flows": [_flow(data, flow, raw_flow) for flow, raw_flow in
                       zip(data.flows, data.case["flows"])]}
            for data in cases_of(raw)]


def _link(data, queue):
    first, last = queue.times[0], queue.times[-1]
    seconds = last - first
    mean = float(np.mean(queue.backlog))
    waits = np.mean(queue.backlog / queue.rate.at(queue.times))
    end = queue.raw["stats_at_end"]
    return {
        "capacity_bps": queue.capacity,
        "utilization": queue.counter("bytes").between(first, last) * 8 /
        (queue.rate.mean(first, last) * seconds),
        "queue_mean_pkts": mean,
        "queue_p99_pkts": float(np.percentile(queue.backlog, 99)),
        "queue_mean_ms": float(waits) * data.packet_bytes * 8e3,
        "marks": number_of(end, "marks", queue.where),
        "drops": number_of(end, "drops", queue.where)}


def _flow(data, flow, raw_flow):
    found = {"id": flow.id, "path": flow.path, "cc": flow.cc, "wtp": flow.wtp,
             "rate_pps": None, "goodput_bps": None,
             "retransmits": raw_flow["final"].get("retransmits"),
             "rtt_mean_ms": None, "completion_s": data.completion_s(raw_flow)}
    arrivals = raw_flow.get("arrivals")
    if arrivals and arrivals["t_s"]:
        stop = min(flow.stop, arrivals["t_s"][-1])
        if stop - flow.start > EPSILON:
            found["goodput_bps"] = 8 * arrivals["bytes"][-1] / (stop - flow.start)
    if flow.acked is None:
        # Over UDP, or without samples.
        return found
    start = flow.start
    stop = min(flow.stop, float(flow.acked.times[-1])) \
        if found["completion_s"] is None else start + found["completion_s"]
    if stop - start > EPSILON:
        found["rate_pps"] = flow.rate_pps(start, stop)
        found["goodput_bps"] = found["rate_pps"] * flow.mss * 8
        found["rtt_mean_ms"] = rtt_mean_ms(flow, start, stop)
    return found
