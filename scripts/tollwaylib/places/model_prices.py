# SPDX-License-Identifier: GPL-2.0
"""Sources that pay prices as fluids, written as the raw cases of a run.

theory/simulation.py has those of CP05, theory/relative.py the modules' defaults.
"""

import random

import numpy as np

from ..components import aqm_words
from ..errors import RefusedError
from ..theory import pricing, relative, simulation

# The law that each source has a model with, and what its estimators are.
LAWS = {"direct": "sbrm", "aimd": "sbrm", "relative": "delay"}
ESTIMATORS = {"direct": ("log", "raw"), "aimd": ("log", "raw"),
              "relative": ("log",)}
# Metrics that a fluid has: those that follow from rates and queues.
KINDS = ("utilization", "full_at", "delay_mean_ms", "delay_p99_ms",
         "delay_max_ms", "queue_min", "queue_mean", "queue_max", "queue_swing",
         "drops", "goodput_mbit", "goodput_each", "jain", "share_error", "settled_s")
# A step is a part of the round trip: below this a run takes hours.
LEAST_RTT_MS = 0.1
# What a setting of one host or connection may be: no model depends on memory.
NO_MATTER = ("net.ipv4.tcp_wmem", "net.ipv4.tcp_rmem")


def cases_of(job, networks):
    """The cases of a job; RefusedError if one has something that the fluid models do not.

    networks: the topology of each case.
    """
    parameters = job["parameters"]
    if parameters.get("model") == "http":
        raise _refused("users of the HTTP model")
    for case, network in zip(job["cases"], networks):
        values = _values(job, case)
        _check_setting(values)
        _check_network(values, network, {flow["path"] for flow in case["flows"]})
        if case["aqm"] != aqm_words(values["aqm"], values) or any(
                words != case["aqm"] for words in network.queues.values()):
            raise _refused("links with different queues")
        if case["wires"] or case["programs"] or case["gate"] or case["rates"]:
            raise _refused("programs, links with losses or reordering, or rates that change")
        if not set(case["sysctls"]) <= set(NO_MATTER):
            raise _refused("sysctls of a case: "
                           + " ".join(sorted(case["sysctls"])))
        if not case["flows"]:
            raise _refused(f"a case without flows ({case['name']})")
        for flow in case["flows"]:
            if flow["cc"] != "sbrm" or flow.get("packets") is not None or \
                    flow.get("words") or flow.get("sysctls"):
                raise _refused("flows other than those of sbrm that always "
                               "have data")
    for spec in job["metrics"] or ():
        if spec["kind"] not in KINDS:
            raise RefusedError(f"--on model: a fluid has no {spec['title']}")
    return job["cases"]


def _check_setting(values):
    for name, known in (("cc", ("sbrm",)), ("source", tuple(LAWS)),
                        ("aqm", _names_of(LAWS.get(values["source"]), values)),
                        ("estimator", ESTIMATORS.get(values["source"]))):
        if values[name] not in known:
            more = f" with source {values['source']}" \
                if name in ("aqm", "estimator") else ""
            raise _refused(f"{name} {values[name]}{more}, only of "
                           f"{' and '.join(known)}")
    if values["kappa_window"]:
        raise _refused("kappa_window")
    if values["phi"] != 1:
        raise _refused("a base of prices, phi")


def _names_of(law, values):
    """The names of a queue: its own, and the words of tc with the same meaning."""
    same = law and aqm_words(values["aqm"], values) == aqm_words(law, values)
    return (law, values["aqm"]) if same else (law,)


def _check_network(values, network, paths):
    """Refuse what happens beside the queues of the ways there."""
    used = {link for path in paths for link in network.paths[path]["links"]}
    ways = {tuple(network.links_described[link]["routers"]) for link in used}
    if any(way[::-1] in ways for way in ways):
        raise _refused("data in both directions of a link: acknowledgements "
                       "do not wait here")
    if any(network.paths[path]["rtt_ms"] < LEAST_RTT_MS for path in paths):
        raise _refused(f"a round trip below {LEAST_RTT_MS:g} ms")
    for link in used:
        bps = network.links_described[link]["capacity_bps"]
        if 0 < values["edge_mbit"] * 1e6 < bps:
            raise _refused("hosts whose links are slower than the others")
        if values["source"] == "relative" and values["limit"] * 8e3 * \
                values["packet_bytes"] / bps < values["delay_ms"]:
            raise _refused(f"a limit of {values['limit']} packets, which take "
                           f"less than the target of the delay at {link}: a "
                           "fluid does not respond to losses")


def _refused(what):
    return RefusedError(f"--on model: there is no model of {what}")


def _values(job, case):
    return {**job["parameters"], **case["values"]}


def setting_of(values):
    """The settings of sources and queues."""
    alike = {"limit": values["limit"], "first_window": values["initcwnd"],
             "slow_start": bool(values["slow_start"])}
    if values["source"] == "relative":
        return relative.RelativeSetting(delay_s=values["delay_ms"] / 1000,
                                        **alike)
    form = "aimd" if values["source"] == "aimd" else values["estimator"]
    return simulation.Setting(
        form=form, kappa=values["kappa"], target=values["target"],
        gamma=values["gamma"] or pricing.gamma_auto(values["limit"],
                                                    values["target"]),
        history_gain=values["history_gain"],
        kappa_young=values["kappa_young"], young_s=values["young_ms"] / 1000,
        **alike)


def raw_cases(job, networks, mss_bytes, on_second):
    """The cases as in raw.json. on_second: called at times with the number of seconds, over
    all cases, that are complete."""
    phases, done_s, found = random.Random(job["seed"]), 0.0, []
    for case, network in zip(cases_of(job, networks), networks):
        found.append(_raw_case(
            job, case, network, mss_bytes, phases,
            lambda seconds, before=done_s: on_second(before + seconds)))
        done_s += case["duration_s"]
    return found


def _raw_case(job, case, network, mss_bytes, phases, progress):
    values, duration_s = _values(job, case), case["duration_s"]
    packet_bytes, paths = values["packet_bytes"], network.paths
    # Those of a case without a willingness to pay have the one of the run.
    usual = min(np.atleast_1d(values["wtp"]))
    flows = [dict(flow, start_s=flow["start_s"] + phases.uniform(
        0, values["start_jitter_s"])) for flow in case["flows"]]
    links, courses = simulation.simulate(
        {link: network.links_described[link]["capacity_bps"]
         / (8 * packet_bytes) for link in network.priced},
        [(paths[flow["path"]]["links"], flow.get("wtp") or usual,
          flow["start_s"], min(flow["stop_s"], duration_s),
          paths[flow["path"]]["rtt_ms"] / 1000) for flow in flows],
        setting_of(values), duration_s, case["sample_ms"] / 1000 or 0.1,
        case["queue_us"] / 1e6, progress)
    return {**{key: case[key] for key in
               ("name", "point", "x", "series", "rtt_s", "values",
                "duration_s", "wires", "aqm")},
            **({"links": network.links_described} if case["network"] else {}),
            "flows": [_flow(flow, course, duration_s, mss_bytes)
                      for flow, course in zip(flows, courses)],
            "queues": {link: _queue(course, packet_bytes, case["warmup_s"],
                                    case["queue_us"])
                       for link, course in links.items()}}


def _flow(flow, course, duration_s, mss_bytes):
    return {**flow, "stop_s": min(flow["stop_s"], duration_s),
            "final": {},
            "samples": {
                "t_s": course["t_s"], "cwnd": course["cwnd"],
                "bytes_acked": [packets * mss_bytes for packets in
                                course["acked_pkts"]],
                "srtt_us": [rtt_s * 1e6 for rtt_s in course["rtt_s"]]}}


def _queue(course, packet_bytes, warmup_s, interval_us):
    def stats(time_s):
        found = {key: float(np.interp(time_s, course["t_s"], course[key]))
                 for key in ("packets", "marks", "drops")}
        return {"bytes": found["packets"] * packet_bytes,
                **{key: round(value) for key, value in found.items()}}

    return {"t_s": course["t_s"], "backlog_pkts": course["backlog_pkts"],
            "backlog_bytes": [packets * packet_bytes
                              for packets in course["backlog_pkts"]],
            "bytes": [packets * packet_bytes for packets in course["packets"]],
            "packets": course["packets"], "drops": course["drops"],
            "interval_us": interval_us,
            **({} if warmup_s is None else
               {"stats_at_warmup": stats(warmup_s)}),
            "stats_at_end": stats(course["t_s"][-1])}
