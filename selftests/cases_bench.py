# SPDX-License-Identifier: GPL-2.0
"""Experiments of cases: what their tests share."""

import copy

from tollwaylib import papers
from tollwaylib.experiments import jobs, plan


def job(name, cc="pp", aqm="fq_rr", words=(), duration_s=None, seed=1):
    experiment = papers.get(name)
    values = plan.parse_settings(experiment, words, cc, aqm)
    return jobs.job(experiment, cc, aqm, values,
                    duration_s or experiment.duration_s, seed)


def raw(**changes):
    """Two transfers of 100 packets over a link of 100 packets/s, by hand: the
    first takes 2 s instead of 1.5, the other is never done."""
    times = [index / 10 for index in range(41)]

    def flow(number, end_s, acked):
        return {"id": number, "name": str(number), "path": str(number),
                "role": "one" if number == 1 else "two", "packets": 100,
                "optimal_s": 1.5, "cc": "pp", "words": "", "start_s": 0.0,
                "stop_s": 4.0,
                "final": {"transfers": [{"start_s": 0.0, "end_s": end_s,
                                         "bytes": 46000}],
                          "retransmits": number, "bytes_sent": 46000 + 460,
                          "error": None},
                "samples": {"t_s": times, "bytes_acked": acked,
                            "unacked": [3] * 41,
                            "cc_rate_bps": [1] * 41,
                            "cc_pacing_gain": [256 * number] * 41,
                            "cc_cwnd_gain": [256 * (20 + 10000 * number)] * 41,
                            "srtt_us": [0] * 41}}

    done = [min(46000, 2300 * index) for index in range(41)]
    half = [1000 * index for index in range(41)]
    classes = {"10:1": {"backlog_pkts": [2] * 41, "drops": [0] * 40 + [4]},
               "10:2": {"backlog_pkts": [1] * 20 + [9] * 21,
                        "drops": [0] * 41}}
    made = {
        "schema": 1, "experiment": "pp-bench-1", "seed": 1,
        "parameters": {"packet_bytes": 500, "warmup_s": 0.0, "cc": "pp",
                       "aqm": "fq_rr", "duration_s": 4.0, "buffer": 440},
        "links": {"R1": {"capacity_bps": 400000, "bottleneck": True}},
        "paths": {"1": {"links": ["R1"]}, "2": {"links": ["R1"]}},
        "mss_bytes": 460,
        "cases": [{
            "name": "a", "point": "a", "x": 1.0, "series": "s", "rtt_s": 0.5,
            "duration_s": 4.0, "values": {}, "wires": {}, "aqm": "fq_rr",
            "flows": [flow(1, 2.0, done), flow(2, None, half)],
            "queues": {"R1": {
                "t_s": times, "backlog_pkts": [3] * 20 + [11] * 21,
                # The queue holds super-packets of 1000 bytes.
                "backlog_bytes": [3000] * 20 + [11000] * 20 + [25000],
                "bytes": [min(5000 * index, 100000) for index in range(41)],
                "drops": [1] * 10 + [3] * 21 + [4] * 10, "classes": classes,
                # Between the samples there was more.
                "class_peaks": {"10:1": 2, "10:2": 14},
                "stats_at_end": {"drops": 4, "bytes": 1, "packets": 1}}}}],
        "metrics": [], "pictures": [], "bounds": [],
        "calibration": {"R1": {"ok": True}},
        "provenance": {"kernel": "k", "config_sha256": "c", "patches": [],
                       "hz": 1000, "modules": {}, "sysctls": {},
                       "qdiscs": {}, "tools": {}, "command": "x"},
        "trace_sha256": "0" * 64}
    made.update(changes)
    return made


_MS = {"key": "completion_ms", "kind": "completion_ms", "title": "ms",
       "digits": 1, "words": {"role": "one"}}
_VAR = {"key": "v", "kind": "completion_variance", "title": "v", "digits": 1,
        "words": {}}


def repeated():
    """Case a twice, of 2 and 2.1 s, and a case b of 1 s."""
    made = raw(metrics=[_MS, _VAR])
    again, other = copy.deepcopy(made["cases"] * 2)
    again.update(name="a #2")
    again["flows"][0]["final"]["transfers"][0]["end_s"] = 2.1
    other = copy.deepcopy(other)
    other.update(name="b", point="b", x=2.0)
    other["flows"][0]["final"]["transfers"][0]["end_s"] = 1.0
    made["cases"] += [again, other]
    return made
