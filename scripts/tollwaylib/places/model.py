# SPDX-License-Identifier: GPL-2.0
"""A model as a place to run at: sources and queues as fluids, without a kernel.

The results of the fluid models (model_prices.py, and model_pairs.py for packet pair)
are written as raw measurements of a run, so that the same code analyses them. Values
that a fluid model cannot give are absent: retransmissions, and everything that depends
on single packets and on random numbers.
"""

import hashlib
import json
import random
import sys
from pathlib import Path

import numpy as np

from ..errors import RefusedError
from ..experiments.workload import TCP_HEADER_BYTES
from . import model_pairs, model_prices
from .child import Children

# Real time allowed for one run: far above any.
WALL_S = 3600
# Data in a packet of the kernel: without the headers of IP and TCP, and with
# timestamps, which the experiments that can be modelled have.
HEADERS_BYTES = 52
NOTE = "a fluid model without a kernel, packets, retransmissions and random numbers"


class ModelPlace:
    """Simulates each job in a process of its own."""

    parallel = True
    has_kernel = False

    def __init__(self):
        self.children = Children("tollwaylib.places.model", "the simulation")

    def prepare(self, progress):
        """Print that the numbers are those of a model."""
        progress.say(NOTE)

    def run(self, job, folder, core, on_line):
        """Run a job; raw.json is in `folder` afterwards."""
        flows_of(job)
        folder = folder.absolute()
        (folder / "job.json").write_text(json.dumps(dict(job, out_dir=str(folder))))
        self.children.run(folder, on_line, WALL_S, core)

    def stop(self):
        """End what is running."""
        self.children.stop()

    def provenance(self):
        """What the results of this place depend on."""
        return {"place": "model", "kernel": "none: a fluid model",
                "config_sha256": "none", "patches": [], "hz": None,
                "modules": {}, "tools": {"python": sys.version.split()[0],
                                         "numpy": np.__version__}}


def simulate(job, step):
    """The raw measurements of a job (dict). step: called with lines of progress."""
    duration_s = sum(case["duration_s"] for case in job["cases"])
    next_s = 0.0

    def progress(seconds):
        nonlocal next_s
        if seconds >= next_s:
            step(f"second {seconds:.0f} of {duration_s:g}")
            next_s += max(duration_s / 20, 1)

    network = _network(job)
    return raw_of(job, network, _pair_cases(job, network) if model_pairs.modelled(job) else
                  model_prices.raw_cases(job, _networks(job), _mss_bytes(job, network),
                                         progress))


def flows_of(job):
    """The flows of a job, as a list; RefusedError if they are not modelled."""
    if job.get("trace") or job.get("traffic", "tollway") != "tollway":
        raise RefusedError("--on model: there are no packets for --trace and "
                           "--traffic")
    cases = model_pairs.cases_of(job) if model_pairs.modelled(job) else \
        model_prices.cases_of(job, _networks(job))
    return [flow for case in cases for flow in case["flows"]]


def _network(job, case=None):
    """Links and paths of a job as they are built, or those of one case."""
    # Mininet, which describes topologies for the others, too, is slow to import.
    from ..guest.topologies import Built
    return Built(aqm=(case or job)["aqm"],
                 **(case and case["network"] or job["topology"]))


def _networks(job):
    return [_network(job, case) for case in job["cases"]]


def _mss_bytes(job, network):
    """Data of a packet; cases of packet pair have no timestamps."""
    return network.mtu - (TCP_HEADER_BYTES if model_pairs.modelled(job)
                          else HEADERS_BYTES)


def _pair_cases(job, network):
    phases = random.Random(job["seed"])
    return [model_pairs.raw_case(job, case, network, _mss_bytes(job, network),
                                 phases)
            for case in model_pairs.cases_of(job)]


def raw_of(job, network, cases):
    """The content of raw.json."""
    from ..guest.job import RAW_SCHEMA
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
        **{key: job[key] for key in ("published", "about") if key in job},
        "provenance": {"qdiscs": {}, "sysctls": {}}}
    raw["trace_sha256"] = hashlib.sha256(json.dumps(
        [raw[key] for key in ("seed", "cases")]).encode()).hexdigest()
    return raw


def main(path):
    """Run the job in a file, see guest/job.py."""
    from ..guest.job import leave
    job = json.loads(Path(path).read_text())
    return leave(Path(job["out_dir"]), lambda step: simulate(job, step))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
