# SPDX-License-Identifier: GPL-2.0
"""A model as a place to run at: sources and queues as fluids, and no kernel.

The course of the fluids (theory/simulation.py; theory/pairs.py for packet pair,
see pairs.py here) is written as the raw measurements of a run, so that all that is made of them is the same. What a
fluid cannot tell is absent: retransmissions, and whatever follows from packets
and from chance.
"""

import hashlib
import json
import random
import sys
import threading
import time

import numpy as np

from ..errors import RefusedError, TollwayError
from ..experiments import own
from ..experiments.workload import TCP_HEADER_BYTES
from ..theory import pricing, simulation
from . import pairs

# Real time allowed for one run: far above any.
WALL_S = 3600
# Data in a packet of the kernel: without the headers of IP and TCP, and with
# timestamps, which the experiments that can be modelled have.
HEADERS_BYTES = 52
NOTE = "a fluid model, no kernel: no packets, no chance, no retransmissions"


class ModelPlace:
    """Simulates each job."""

    # Threads of one process, of which one computes at a time.
    parallel = False
    has_kernel = False

    def __init__(self):
        self.stopped = threading.Event()

    def prepare(self, progress):
        """Say what the numbers are of."""
        progress.say(NOTE)

    def run(self, job, folder, core, on_line):
        """Run a job; raw.json is in `folder` afterwards. core goes unused."""
        flows = flows_of(job)
        (folder / "job.json").write_text(json.dumps(job))
        deadline = time.monotonic() + WALL_S

        def progress(seconds):
            if self.stopped.is_set():
                raise TollwayError("the simulation was stopped")
            if time.monotonic() > deadline:
                raise TollwayError(f"the simulation did not finish within "
                                   f"{WALL_S:g} s")
            if seconds >= progress.next_s:
                on_line(f"tollway: second {seconds:.0f} of {duration_s:g}")
                progress.next_s += max(duration_s / 20, 1)

        duration_s = job["parameters"]["duration_s"]
        progress.next_s = 0.0
        network = _network(job)
        raw = raw_of(job, network, _pair_cases(
            job, network, self.stopped.is_set) if pairs.modelled(job) else
            [_case(job, network, flows, setting_of(job), progress)])
        (folder / "raw.json").write_text(json.dumps(raw))

    def stop(self):
        """End what is running."""
        self.stopped.set()

    def provenance(self):
        """What the results of this place depend on."""
        return {"place": "model", "kernel": "none: a fluid model",
                "config_sha256": "none", "patches": [], "hz": None,
                "modules": {}, "tools": {"python": sys.version.split()[0],
                                         "numpy": np.__version__}}


def flows_of(job):
    """The flows of a job, as a list; RefusedError if they are not modelled."""
    parameters = job["parameters"]
    if job.get("trace") or job.get("traffic", "tollway") != "tollway":
        raise RefusedError("--on model: there are no packets for --trace and "
                           "--traffic")
    if pairs.modelled(job):
        return [flow for case in pairs.cases_of(job) for flow in case["flows"]]
    if job["topology"][0] == own.TOPOLOGY:
        raise _refused("a network that a file describes, only of some "
                       "experiments of tollway list: see tollway(1), --on")
    if job["metrics"]:
        raise _refused(f"{job['experiment']}, which has a list of cases")
    if parameters.get("model") == "http":
        raise _refused("users of the HTTP model")
    for name, known in (("cc", ("sbrm",)), ("aqm", ("sbrm",)),
                        ("source", ("direct", "aimd")),
                        ("estimator", ("log", "raw"))):
        if parameters[name] not in known:
            raise _refused(f"{name} {parameters[name]}, only of "
                           f"{' and '.join(known)}")
    if parameters["kappa_window"]:
        raise _refused("kappa_window")
    (case,) = job["cases"]
    phases = random.Random(job["seed"])
    return [dict(flow, start_s=flow["start_s"] + phases.uniform(
        0, parameters["start_jitter_s"])) for flow in case["flows"]]


def _refused(what):
    return RefusedError(f"--on model: there is no model of {what}")


def setting_of(job):
    """What sources and queues are set to."""
    values = job["parameters"]
    form = "aimd" if values["source"] == "aimd" else values["estimator"]
    return simulation.Setting(
        form=form, kappa=values["kappa"], target=values["target"],
        gamma=values["gamma"] or pricing.gamma_auto(values["limit"],
                                                    values["target"]),
        limit=values["limit"], history_gain=values["history_gain"],
        kappa_young=values["kappa_young"], young_s=values["young_ms"] / 1000,
        first_window=values["initcwnd"], slow_start=bool(values["slow_start"]))


def _network(job):
    """Links and paths of a job."""
    # Mininet, which describes topologies for the others, too, is slow to import.
    from ..guest.topologies import topology
    name, keywords = job["topology"]
    return topology(name)(aqm=job["aqm"], **keywords)


def _mss_bytes(job, network):
    """Data of a packet; cases of packet pair have no timestamps."""
    return network.mtu - (TCP_HEADER_BYTES if pairs.modelled(job)
                          else HEADERS_BYTES)


def _pair_cases(job, network, stopped):
    phases = random.Random(job["seed"])
    return [pairs.raw_case(job, case, network, _mss_bytes(job, network),
                           phases, stopped) for case in pairs.cases_of(job)]


def _case(job, network, flows, setting, progress):
    """The one case of sources that pay."""
    parameters = job["parameters"]
    duration_s, packet_bytes = (parameters[key] for key in
                                ("duration_s", "packet_bytes"))
    interval_us = parameters["queue_sample_us"]
    links, courses = simulation.simulate(
        {link: network.links_described[link]["capacity_bps"]
         / (8 * packet_bytes) for link in network.priced},
        [(network.paths[flow["path"]]["links"], flow["wtp"], flow["start_s"],
          min(flow["stop_s"], duration_s),
          network.paths[flow["path"]]["rtt_ms"] / 1000) for flow in flows],
        setting, duration_s, parameters["flow_sample_ms"] / 1000 or 0.1,
        interval_us / 1e6, progress)
    mss_bytes = _mss_bytes(job, network)
    (case,) = job["cases"]
    return {**{key: case[key] for key in
               ("name", "point", "x", "series", "rtt_s", "values",
                "duration_s", "wires", "aqm")},
            "flows": [_flow(flow, course, duration_s, mss_bytes)
                      for flow, course in zip(flows, courses)],
            "queues": {link: _queue(course, packet_bytes,
                                    parameters["warmup_s"], interval_us)
                       for link, course in links.items()}}


def raw_of(job, network, cases):
    """The content of raw.json."""
    from ..guest.run import RAW_SCHEMA
    parameters = job["parameters"]
    raw = {
        "schema": RAW_SCHEMA, "experiment": job["experiment"],
        # So that it is never put together with what was measured.
        "parameters": dict(parameters, place="model"),
        "seed": job["seed"], "links": network.links_described,
        "paths": network.paths, "mss_bytes": _mss_bytes(job, network),
        "cases": cases,
        # The links of a model are exact.
        "calibration": {link: {"ok": True, "rate_bps": network.links_described[
            link]["capacity_bps"]} for link in network.priced},
        **{key: job[key] for key in
           ("title", "schedule", "steady_state", "metrics", "x_title",
            "pictures", "bounds")},
        "provenance": {"qdiscs": {}, "sysctls": {}}}
    raw["trace_sha256"] = hashlib.sha256(json.dumps(
        [raw[key] for key in ("seed", "cases")]).encode()).hexdigest()
    return raw


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
            "interval_us": interval_us, "stats_at_warmup": stats(warmup_s),
            "stats_at_end": stats(course["t_s"][-1])}
