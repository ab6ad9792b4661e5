# SPDX-License-Identifier: GPL-2.0
"""Packet-pair sources as fluids (theory/pairs.py), written as the raw cases of a run.

Greedy sources over one fair queue: those of PP94 9.1. What a fluid loses counts as sent
again.
"""

import numpy as np

from ..components.pp import ESTIMATE_SCALE
from ..errors import RefusedError
from ..theory import pairs


def modelled(job):
    """Is it a job of packet-pair sources over the queue that they need?"""
    parameters = job["parameters"]
    return (parameters["cc"], parameters["aqm"]) == ("pp", "fq_rr")


def cases_of(job):
    """Its cases; RefusedError if one has something that the fluid model does not."""
    for case in job["cases"]:
        if case["rtt_s"] is None or case["network"] or not case["flows"]:
            raise _refused("paths with several round trips or links, or cases "
                           "without flows")
        for flow in case["flows"]:
            if flow["cc"] != "pp" or flow.get("packets") is not None or \
                    "rate=" in (flow.get("words") or ""):
                raise _refused("sources but greedy ones of pp")
        if case["programs"] or case["wires"]:
            raise _refused("programs, or links with losses or reordering")
        values = {**job["parameters"], **case["values"]}
        if values.get("window") or values.get("reserve") or values.get("reserved"):
            raise _refused("window and reserve")
        if values["overflow"] != "drop-tail-of-longest":
            raise _refused(f"overflow {values['overflow']}")
    return job["cases"]


def _refused(what):
    return RefusedError(f"--on model: there is no model of packet pair with {what}")


def setting_of(values):
    """The settings of the sources of a case."""
    return pairs.PairSetting(
        law=values["law"], setpoint=values["setpoint"], room=values["buffer"],
        **{key: values[name] for key, name in
           (("pole", "pole"), ("step", "setpoint_step"),
            ("every", "setpoint_every"), ("cut", "setpoint_cut"))
           if name in values})


def raw_case(job, case, network, mss_bytes, rng):
    """A case as it is in raw.json."""
    values = {**job["parameters"], **case["values"]}
    (link,) = network.priced
    packet_bits = 8 * values["packet_bytes"]
    capacity = network.links_described[link]["capacity_bps"] / packet_bits
    flows = [dict(flow, start_s=flow["start_s"] + rng.uniform(
        0, values["start_jitter_s"])) for flow in case["flows"]]
    course = pairs.simulate(
        capacity, [flow["start_s"] for flow in flows], case["rtt_s"],
        setting_of(values), case["duration_s"], case["queue_us"] / 1e6,
        [(when_s, bps / packet_bits) for when_s, bps, *_ in case["rates"]])
    times = course["t_s"].tolist()
    acked = [np.interp(course["t_s"] - case["rtt_s"], course["t_s"], served)
             for served in course["served"]]
    classes = {path: f"10:{number:x}"
               for number, path in enumerate(network.paths, 1)}
    packets = course["served"].sum(axis=0)
    backlog = course["backlog"].sum(axis=0)
    drops = course["drops"].sum(axis=0)
    share = capacity / len(flows)
    return {
        **{key: case[key] for key in ("name", "point", "x", "series", "rtt_s",
                                      "values", "duration_s", "wires", "aqm")},
        "flows": [{
            **flow, "final": {
                "connected_s": flow["start_s"], "transfers": [], "error": None,
                "bytes_acked": round(acked[number][-1] * mss_bytes),
                "bytes_sent": round(course["sent"][number][-1] * mss_bytes),
                "retransmits": round(course["drops"][number][-1])},
            "samples": {
                "t_s": times,
                "bytes_acked": (acked[number] * mss_bytes).tolist(),
                "unacked": (course["sent"][number] - acked[number]).tolist(),
                "srtt_us": ((case["rtt_s"] + course["backlog"][number] / share)
                            * 1e6).tolist(),
                "cc_rate_bps": [share * mss_bytes * 8] * len(times),
                "cc_pacing_gain": (course["backlog"][number] *
                                   ESTIMATE_SCALE).tolist(),
                "cc_cwnd_gain": (course["setpoint"][number] *
                                 ESTIMATE_SCALE).tolist()}}
            for number, flow in enumerate(flows)],
        **({"rates": [(when_s, bps, link) for when_s, bps, *_ in case["rates"]]}
           if case["rates"] else {}),
        "queues": {link: {
            "t_s": times, "backlog_pkts": backlog.tolist(),
            "backlog_bytes": (backlog * values["packet_bytes"]).tolist(),
            "bytes": (packets * values["packet_bytes"]).tolist(),
            "packets": packets.tolist(), "drops": drops.tolist(),
            "interval_us": case["queue_us"],
            "classes": {classes[flow["path"]]: {
                "backlog_pkts": course["backlog"][number].tolist(),
                "drops": course["drops"][number].tolist()}
                for number, flow in enumerate(flows)},
            "class_peaks": {classes[flow["path"]]: float(
                course["backlog"][number].max())
                for number, flow in enumerate(flows)},
            "stats_at_end": {"bytes": float(packets[-1] * values["packet_bytes"]),
                             "packets": round(packets[-1]), "marks": 0,
                             "drops": round(drops[-1])}}}}
