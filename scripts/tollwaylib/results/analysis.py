# SPDX-License-Identifier: GPL-2.0
"""From one run's raw measurements to its result.

A run is a list of cases, and so is its result. Each case has the metrics that
the experiment names; where it names none, links, flows and classes.

Everything here is a pure function of raw.json (and of the published numbers
in papers/), so results can be made again without running anything. Input that
cannot be trusted (failed calibration, a flow that sent nothing, a counter
that runs backwards, NaN) raises TollwayError; no number is made up.

What is measured:

- the window: from warmup_s to duration_s, cut to the life of the flow;
- rate_pps: packets/s, bytes_acked in the window over mss over its seconds,
  samples interpolated linearly; goodput_bps: the same bytes in bit/s;
- expected_pps: the weighted proportionally fair rate of the flows active at
  each moment, averaged over the same window; without wtp, every weight is 1;
- utilization: bytes sent from warm-up to end, divided by what the link can carry;
- queue_mean_pkts, queue_p99_pkts: of the backlog samples in the window;
- queue_mean_ms: the time in which the link sends the mean backlog, if all packets
  have the full size;
- marks, drops: between warm-up and end;
- class: the flows with one path and one wtp; its rate is the mean of theirs, its
  spread is (max - min)/mean of rate/expected, its error is rate/expected - 1;
- in an interval of a schedule, the first SETTLE_S seconds (or the warm-up,
  if that is later) are left out of rates and of every *_after_2s;
- jain: Jain's index of rate/expected over the flows of a class in an
  interval, 1 if all get the same part of their share;
- near_s: the first time after a change from which the class's mean rate over
  the following 2 s is within 5 % of its new share; null if never;
- pages: of the HTTP model, see metrics/applications.py;
- convergence_s: the first time after a change from which the class's mean
  rate over the following second is within 10 % of its new share; null if
  that never happens.
"""

from ..errors import TollwayError
from . import metrics
from .measurements import cases_of, entry_of
from .metrics.applications import pages_of
from .metrics.queues import measure_link
from .metrics.shares import (classes_of, intervals_of, measure_flows,
                             steady_state_of)
from .metrics.transfers import recovery_of
from .comparison import compare_published
from .schema import SCHEMA, validate
from .verdicts import judged


def analyse(raw):
    """The result of one run, the object that `tollway run --json` writes.

    raw: of RAW_SCHEMA, as schema.load_raw() returns it. Returns a dict that
    passes validate(). Raises TollwayError if any of it cannot be trusted.
    """
    cases = cases_of(raw)
    result = {
        "schema": SCHEMA,
        "experiment": entry_of(raw, "experiment", "raw"),
        "parameters": entry_of(raw, "parameters", "raw"),
        "seed": entry_of(raw, "seed", "raw"),
        "capacity_bps": {name: link["capacity_bps"]
                         for name, link in raw["links"].items()},
        "columns": [{key: spec[key] for key in
                     ("key", "title", "unit", "digits")}
                    for spec in raw["metrics"]],
        "x_title": raw.get("x_title"),
        "cases": metrics.measure(raw, cases),
        "published": [],
        "bounds": [],
        "provenance": entry_of(raw, "provenance", "raw"),
        **({"references": raw["published"]} if "published" in raw else {}),
        "digest": entry_of(raw, "trace_sha256", "raw"),
    }
    if not raw["metrics"]:
        if len(result["cases"]) < len(cases):
            raise TollwayError("repeated cases have means of metrics, and the "
                               "experiment names no metric")
        for case, data in zip(result["cases"], cases):
            case.update(_parts(data))
    result["published"] = compare_published(result)
    result["bounds"] = judged(raw.get("bounds") or [], cases, result)
    validate(result)
    return result


def _parts(run):
    """What a result has of a case (CaseData) besides metrics."""
    run.need_window()
    raw, (flows, rates) = run.raw, measure_flows(run)
    found = {
        "links": {name: measure_link(run, queue)
                  for name, queue in run.queues.items()},
        "flows": flows,
        "classes": classes_of(run.flows, rates, run.expected_pps()),
    }
    if raw.get("schedule"):
        found["intervals"] = intervals_of(run)
    if raw.get("steady_state"):
        found["steady_state"] = steady_state_of(run, found)
    if run.case.get("network"):
        found["recovery"] = recovery_of(run.case["network"])
    if any(flow.pages for flow in run.flows):
        found["pages"] = pages_of(run)
    return found
