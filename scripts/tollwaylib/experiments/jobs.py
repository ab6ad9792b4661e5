# SPDX-License-Identifier: GPL-2.0
"""From an experiment to the job of one run: everything that the guest needs."""

from ..components import aqm_words, known_aqm
from ..components.pp import PACKET_PAIR, packet_pair_sysctls
from ..components.sbrm import ECHOED, PRICED, PRIORITIES, sysctls
from ..errors import TollwayError
from . import workload
from .workload import flow_words, periods, user_words


def job_of_cases(experiment, cc, aqm, values, duration_s, seed, variant=None):
    """Everything guest.run.CaseRun needs, but the directories (dict).

    Arguments as for experiments.job(); duration_s: no case is longer.
    """
    cases = [_case_job(experiment, case, cc, aqm, values, duration_s, seed)
             for case in experiment.cases(values)
             if values["only"] in case.name]
    if not cases:
        raise TollwayError(f"--set only={values['only']}: {experiment.name} "
                           f"has no such case")
    return {
        "experiment": experiment.name,
        "topology": [experiment.topology, _network(experiment, values)],
        "aqm": _words(aqm, values),
        "parameters": dict(values, cc=cc, aqm=known_aqm(aqm),
                           duration_s=duration_s,
                           wtp=[values["wtp"]] if cc in PRICED else None,
                           **({"variant": variant.name} if variant else {})),
        "cases": cases, "flows": [],
        "virtual_s": sum(case["duration_s"] + 5 for case in cases),
        "metrics": list(experiment.metrics),
        "x_title": experiment.x_title,
        "pictures": [list(picture) for picture in experiment.pictures],
        "bounds": [bound for names, make in experiment.bounds
                   if {f"{cc}+{known_aqm(aqm)}"}.issuperset(names)
                   for bound in make(values)],
        "seed": seed, "sink_cc": cc if cc in ECHOED else None,
        "sysctls": _sysctls(experiment, cc, values),
    }


def _network(experiment, values):
    """Keywords of the topology."""
    return {"packet_bytes": values["packet_bytes"],
            "rate_bps": round(values["rate_mbit"] * 1e6),
            "edge_bps": round(values["edge_mbit"] * 1e6),
            **experiment.shape(values)}


def _words(aqm, values):
    """tc words; codel and fq_codel have the room of the experiment."""
    words = aqm_words(aqm, values).split()
    if words[0] in ("codel", "fq_codel") and "limit" not in words:
        words[1:1] = ["limit", str(values["buffer"])]
    return " ".join(words)


def _sysctls(experiment, cc, values):
    """Timestamps would take 12 bytes of each packet."""
    found = {**sysctls(cc, values, [values["wtp"]]),
             "net.ipv4.tcp_timestamps": 0, **experiment.sysctls}
    if cc in PACKET_PAIR:
        found.update(packet_pair_sysctls(values))
    return found


def _case_job(experiment, case, cc, aqm, values, duration_s, seed):
    mine = {**values, **case.values}
    built, network = (_network(experiment, given) for given in (values, mine))
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
            "cc": None if "udp" in flow else flow.get("cc") or cc,
            "sysctls": flow.get("sysctls", {}),
            "words": flow_words(flow, mine, seed)})
    known = _sysctls(experiment, cc, values)
    changed = {key: value for key, value in
               {**_sysctls(experiment, cc, mine), **case.sysctls}.items()
               if known.get(key) != value}
    return {"name": case.name, "point": case.point or case.name, "x": case.x,
            "series": case.series, "rtt_s": case.rtt_s,
            "aqm": _words(aqm, mine), "sysctls": changed,
            "values": case.values, "duration_s": whole_s,
            "sample_ms": case.sample_ms or values["flow_sample_ms"],
            "queue_us": case.queue_us or values["queue_sample_us"],
            "classes": case.classes, "wires": case.wires,
            "network": None if network == built else network,
            "cc_info": cc in PACKET_PAIR, "flows": flows}


def job(experiment, cc, aqm, values, duration_s, seed, variant=None):
    """Everything guest.run.Run needs, but the directories (dict).

    variant: the Variant that is run, if it is one.
    """
    if experiment.cases:
        return job_of_cases(experiment, cc, aqm, values, duration_s,
                            seed, variant)
    priced = cc in PRICED
    least = min(weight for _, weight in experiment.classes)
    wtp_of = {weight: round(values["wtp"] * weight / least)
              for _, weight in experiment.classes}
    wtps = sorted(wtp_of.values())
    priorities = sorted(PRIORITIES)
    flows, per_class = [], values["flows_per_class"]
    for start_s, stop_s in periods(experiment.schedule, duration_s):
        for path, weight in experiment.classes:
            wtp = wtp_of[weight]
            for _ in range(per_class):
                flows.append({
                    "id": len(flows) + 1, "path": path, "cc": cc,
                    "wtp": wtp if priced else None,
                    "priority": priorities[wtps.index(wtp)] if priced else 0,
                    "start_s": start_s, "stop_s": stop_s})
                if values.get("model") == "http":
                    flows[-1]["words"] = user_words(
                        values, seed * workload.SEEDS_APART + len(flows))
    schedule = [{"t_s": t, "factor": factor}
                for t, factor in experiment.schedule if t < duration_s]
    return {
        "experiment": experiment.name,
        "topology": [experiment.topology, {
            "packet_bytes": values["packet_bytes"],
            "rate_bps": int(values["rate_mbit"] * 1e6),
            "edge_bps": int(values["edge_mbit"] * 1e6)}],
        "aqm": aqm_words(aqm, values),
        "parameters": dict(values, cc=cc, aqm=known_aqm(aqm),
                           duration_s=duration_s,
                           wtp=wtps if priced else None,
                           **({"variant": variant.name} if variant else {})),
        "schedule": schedule if len(experiment.schedule) > 1 else None,
        "steady_state": experiment.steady_state and
        traits(cc, aqm, values).issuperset({"sbrm+sbrm"}),
        "bounds": [bound for bound in bounds(experiment, cc, aqm, values)
                   if _is_measured(bound, len(schedule))]
        + list(variant.bounds if variant else ()),
        "flows": flows, "seed": seed,
        "sink_cc": cc if cc in ECHOED or cc not in PRICED else None,
        "sysctls": sysctls(cc, values, wtps),
        # JSON has no numbers as keys.
        "tos": {str(priority): tos for priority, tos in PRIORITIES.items()},
    }


def traits(cc, aqm, values):
    """The names by which bounds say where they hold."""
    return {f"{cc}+{known_aqm(aqm)}", values["source"], values["estimator"],
            values.get("scale"), values.get("model"), values["setup"],
            "young" if values["kappa_young"] > 0 else None}


def bounds(experiment, cc, aqm, values):
    """The bounds that hold for a combination."""
    there = traits(cc, aqm, values)
    return [bound for names, group in experiment.bounds
            if there.issuperset(names) for bound in group]


def _is_measured(bound, intervals):
    """Does a run of so many intervals have what a bound is on?"""
    kind, _, rest = bound["metric"].partition(".")
    index = rest.partition(".")[0]
    return not (kind == "intervals" and index.isdigit()
                and int(index) >= intervals)
