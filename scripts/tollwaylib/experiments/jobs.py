# SPDX-License-Identifier: GPL-2.0
"""From an experiment to the job of one run, which has all that the guest needs.

A run is a list of cases. An experiment without a list of its own has one case, the
whole run. Its flows are those of the classes, and start and stop as the schedule says.
"""

from ..components import CLASSFUL, OF_CONTROL, PRICED, aqm_words, known_aqm
from ..components.modules import ECHOED, RESTRICTED
from ..components.sbrm import PRIORITIES
from ..errors import TollwayError
from . import network_parts, workload
from .description import SAME_QUEUE, WHOLE_RUN
from .workload import flow_words, periods, user_words

# What is kept of the flows of a list of cases, of which there may be hundreds:
# columns of the samples, and what a flow counted at its end.
KEPT = {"samples": ("t_s", "bytes_acked", "cwnd", "srtt_us", "retransmits",
                    "unacked", "pacing_bps", "cc_rate_bps", "cc_min_rtt_us",
                    "cc_pacing_gain", "cc_cwnd_gain"),
        "final": ("transfers", "frames", "bytes_acked", "bytes_sent",
                  "retransmits", "packets", "bytes", "connected_s", "mmpp",
                  "law", "error")}


def job(experiment, cc, aqm, values, duration_s, seed, variant=None):
    """The job of a run: a dict with everything that guest.job.Run needs, except for the
    directories.

    duration_s: the longest duration of a case. variant: the Variant that is run, or None.

    Raises TollwayError if the parameter `only` selects no case.
    """
    wtps = sorted(_wtp_of(experiment, values).values())
    network = _network(experiment, values)
    cases = [_case_job(experiment, case, cc, aqm, values, duration_s, seed, network)
             for case in experiment.cases(values)
             if values["only"] in case.name] if experiment.cases else \
        [_whole_run(experiment, cc, aqm, values, duration_s, seed)]
    if not cases:
        raise TollwayError(f"--set only={values['only']}: {experiment.name} "
                           f"has no such case")
    schedule = [{"t_s": t, "factor": factor}
                for t, factor in experiment.schedule if t < duration_s]
    # The sockets of the sinks get the congestion control of the senders if it needs
    # a receiver that echoes marks or prices (ECHOED). In an experiment without a
    # list of cases they also get a control that has no willingness to pay.
    echoed = cc in ECHOED or not experiment.cases and cc not in PRICED
    return {
        "experiment": experiment.name, "title": experiment.title,
        "topology": network,
        "aqm": _words(experiment, aqm, values),
        "parameters": dict(values, cc=cc, aqm=known_aqm(aqm),
                           duration_s=duration_s,
                           wtp=wtps if cc in PRICED else None,
                           **({"variant": variant.name} if variant else {})),
        "schedule": schedule if len(experiment.schedule) > 1 else None,
        "steady_state": experiment.steady_state and
        traits(cc, aqm, values).issuperset({"sbrm+sbrm"}),
        "cases": cases,
        "virtual_s": sum(case["duration_s"] + 5 for case in cases),
        "metrics": list(experiment.metrics), "x_title": experiment.x_title,
        "pictures": [list(picture) for picture in experiment.pictures],
        "bounds": [bound for bound in bounds(experiment, cc, aqm, values)
                   if _is_measured(bound, len(schedule))]
        + list(variant.bounds if variant else ()),
        "seed": seed, "sink_cc": cc if echoed else None,
        # Sinks of flows whose own congestion control must run at the receiver, too.
        "echo": {flow["path"]: flow["cc"] for case in cases
                 for flow in case["flows"]
                 if flow["cc"] in ECHOED and flow["cc"] != cc},
        "queues": sorted({*experiment.queues(values),
                          *(case["aqm"] for case in cases)}
                         - {_words(experiment, aqm, values)}),
        "sysctls": _sysctls(experiment, cc, values), "classful": list(CLASSFUL),
        # Of a user's own: results are read without the file.
        **({"published": list(experiment.published)}
           if experiment.published else {}),
        **({"about": experiment.about}
           if experiment.about and experiment.is_own else {}),
        # JSON has no numbers as keys.
        "tos": {str(priority): tos for priority, tos in PRIORITIES.items()},
    }


def check_starts(job):
    """Raise TollwayError if the random delay of its start may leave a flow no time.

    The traffic generator refuses a flow whose stop is not after its start. A connection
    that is not established at its stop is an error of the run. So a TCP flow needs one
    round trip more, unless it connects before its start.
    """
    jitter_s = job["parameters"]["start_jitter_s"]
    for case in job["cases"]:
        rtts_s = {path["name"]: path["rtt_ms"] / 1e3 for path in
                  network_parts.of(case["network"] or job["topology"], "path")}
        for flow in case["flows"]:
            early = "connect=early" in (flow.get("words") or "")
            rtt_s = rtts_s[flow["path"]] if flow["cc"] and not early else 0
            if flow["start_s"] + jitter_s + rtt_s >= flow["stop_s"]:
                raise TollwayError(_no_time(case, flow, jitter_s, rtt_s))


def _no_time(case, flow, jitter_s, rtt_s):
    """The error message about a flow that may have no time."""
    name = flow.get("name") or f"{flow['id']} on {flow['path']}"
    if case["name"] != WHOLE_RUN:
        name += f" of case {case['name']}"
    ends, remedy = ("the end of the run", "give a longer duration") \
        if flow["stop_s"] >= case["duration_s"] else \
        ("its stop", "give it a later stop")
    needs = [f"its start may be delayed by {jitter_s:g} s"] * bool(jitter_s) + \
        [f"a round trip takes {rtt_s:g} s"] * bool(rtt_s)
    return (f"flow {name} starts at {flow['start_s']:g} s, {ends} is at "
            f"{flow['stop_s']:g} s, and {' and '.join(needs)}: {remedy}"
            + (", or a smaller --set start_jitter_s" if jitter_s else ""))


def _wtp_of(experiment, values):
    """{weight: willingness to pay} of the classes of an experiment."""
    weights = [weight for _, weight in experiment.classes] or [1]
    return {weight: round(values["wtp"] * weight / min(weights))
            for weight in weights}


def _network(experiment, values, changed=()):
    """Keywords of the network, see guest/topologies.py. changed: keywords of the topology
    that differ from the shape of the experiment."""
    shape = {**experiment.shape(values), **dict(changed)}
    of_hosts = {key: shape.pop(key) for key in ("gso_max_segs",) if key in shape}
    network = experiment.topology(
        **{"rate_bps": round(values["rate_mbit"] * 1e6), **shape})
    return {"packet_bytes": values["packet_bytes"],
            "edge_bps": round(values["edge_mbit"] * 1e6), **of_hosts,
            **network.data()}


def _words(experiment, aqm, values):
    """tc words; in cases, codel and fq_codel have the same limit as fq_rr."""
    words = aqm_words(aqm, values).split()
    if experiment.cases and words[0] in ("codel", "fq_codel") \
            and "limit" not in words:
        words[1:1] = ["limit", str(values["buffer"])]
    return " ".join(words)


def _sysctls(experiment, cc, values):
    """{name: value} of all hosts. Experiments with cases count packets, and have no
    timestamps, which would take 12 bytes of each packet."""
    wtps = sorted(_wtp_of(experiment, values).values())
    # ECN is asked for by everyone: CP05 4.3.1 compares with an ECN NewReno.
    # The rest keeps one connection from learning of another.
    found = {"net.ipv4.tcp_ecn": 1, "net.ipv4.tcp_no_metrics_save": 1}
    if cc in ECHOED and cc not in RESTRICTED and not experiment.others:
        # For receivers that cannot be told (iperf3): they echo the marks. With
        # others each is told which control it runs.
        found["net.ipv4.tcp_congestion_control"] = cc
    if experiment.cases:
        found["net.ipv4.tcp_timestamps"] = 0
    for one in (cc, *experiment.others):
        if one in OF_CONTROL:
            found.update(OF_CONTROL[one].sysctls(values, wtps))
    found.update(experiment.sysctls)
    return found


def _case_job(experiment, case, cc, aqm, values, duration_s, seed, built):
    """built: the network, without the changes of the case."""
    mine = {**values, **case.values}
    network = _network(experiment, mine, case.shape)
    whole_s = round(min(case.duration_s, duration_s), 6)
    flows = []
    for number, flow in enumerate(case.flows, 1):
        if flow["start_s"] >= whole_s:
            continue
        flows.append({
            **{key: flow.get(key) for key in ("name", "path", "role",
                                              "packets", "optimal_s")},
            "id": number, "start_s": round(flow["start_s"], 6),
            "stop_s": min(flow.get("stop_s") or whole_s, whole_s),
            "cc": None if {"udp", "law"} & set(flow)
            else flow.get("cc") or cc,
            **({"law": "pp"} if "law" in flow else {}),
            "sysctls": flow.get("sysctls", {}),
            "words": flow_words(flow, mine, seed)})
    queue = _words(experiment, case.aqm or aqm, mine)
    known = _sysctls(experiment, cc, values)
    changed = {key: value for key, value in
               {**_sysctls(experiment, cc, mine), **case.sysctls}.items()
               if known.get(key) != value}
    return {"name": case.name, "point": case.point or case.name, "x": case.x,
            "series": case.series, "rtt_s": case.rtt_s,
            "aqm": queue, "sysctls": changed,
            "values": case.values, "duration_s": whole_s,
            "sample_ms": case.sample_ms or values["flow_sample_ms"],
            "queue_us": case.queue_us or values["queue_sample_us"],
            "classes": case.classes, "wires": case.wires,
            "programs": list(case.programs), "passages": case.passages,
            "gate": queue if case.gate == SAME_QUEUE else case.gate,
            "rates": [list(rate) for rate in case.rates if rate[0] < whole_s],
            "network": None if network == built else network,
            "cc_info": cc in OF_CONTROL and OF_CONTROL[cc].cc_info,
            "flows": flows,
            # It begins with new queues on a whole millisecond, and nobody
            # reads their counters before its end.
            "renew": True, "align_ns": 10**6, "warmup_s": None, "keep": KEPT}


def _whole_run(experiment, cc, aqm, values, duration_s, seed):
    """The only case of an experiment without a list of cases. Its queues are those of the
    calibration, which were new then. It begins at a whole second."""
    return {"name": WHOLE_RUN, "point": WHOLE_RUN, "x": None, "series": None,
            "rtt_s": None, "aqm": _words(experiment, aqm, values),
            "sysctls": {}, "values": {}, "duration_s": duration_s,
            "sample_ms": values["flow_sample_ms"],
            "queue_us": values["queue_sample_us"], "classes": False,
            "wires": {}, "programs": [], "passages": False, "gate": None,
            "rates": [], "network": None, "cc_info": False,
            "flows": _flows_of_classes(experiment, cc, values, duration_s,
                                       seed),
            "renew": False, "align_ns": 10**9,
            "warmup_s": values["warmup_s"], "keep": None}


def _flows_of_classes(experiment, cc, values, duration_s, seed):
    wtp_of = _wtp_of(experiment, values)
    wtps, priorities = sorted(wtp_of.values()), sorted(PRIORITIES)
    flows, priced = [], cc in PRICED
    for start_s, stop_s in periods(experiment.schedule, duration_s):
        for path, weight in experiment.classes:
            wtp = wtp_of[weight]
            for _ in range(values["flows_per_class"]):
                flows.append({
                    "id": len(flows) + 1, "path": path, "cc": cc,
                    "wtp": wtp if priced else None,
                    "priority": priorities[wtps.index(wtp)] if priced else 0,
                    "start_s": start_s, "stop_s": stop_s})
                if values.get("model") == "http":
                    flows[-1]["words"] = user_words(
                        values, seed * workload.SEEDS_APART + len(flows))
    return flows


def traits(cc, aqm, values):
    """The names on which groups of bounds depend, see Experiment.bounds."""
    return {f"{cc}+{known_aqm(aqm)}", values["source"], values["estimator"],
            values.get("scale"), values.get("model"), values["setup"],
            "young" if values["kappa_young"] > 0 else None}


def bounds(experiment, cc, aqm, values):
    """The bounds that apply to a congestion control, a queue and parameters."""
    there = traits(cc, aqm, values)
    return [bound for names, group in experiment.bounds
            if there.issuperset(names)
            for bound in (group(values) if callable(group) else group)]


def _is_measured(bound, intervals):
    """True if a run with this number of intervals measures the metric of a bound."""
    return bound.get("of", {}).get("interval", 1) <= intervals
