# SPDX-License-Identifier: GPL-2.0
"""A run of cases: flows from an idle network, again and again, in one boot."""

import random
import re
import time

from .errors import TollwayError
from .network import GRACE_S, Run, topology
from .topo import address_of, shell
from .traffic import SINK_PORT, flow_line

# Between two cases: what the last one left in the network is gone by then.
IDLE_S = 0.5
# Columns of the samples that are kept, those that there are.
COLUMNS = ("t_s", "bytes_acked", "cwnd", "srtt_us", "retransmits", "unacked",
           "pacing_bps", "cc_rate_bps", "cc_min_rtt_us", "cc_pacing_gain",
           "cc_cwnd_gain")


# The kernel's own values of what flows may have sysctls for.
USUAL = {"net.ipv4.tcp_recovery": 1, "net.ipv4.tcp_early_retrans": 3}


class CaseRun(Run):
    """Build the network, calibrate it, run the cases, collect the raw data."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.known_sysctls = {}

    def all_flows(self):
        return [flow for case in self.job["cases"] for flow in case["flows"]]

    def most_flows(self):
        return max(len(case["flows"]) for case in self.job["cases"])

    def calibrate(self):
        """Calibrate the network as it is built, of which the result is
        returned, and as each case that changes it wants it."""
        found = super().calibrate()
        changed = {str(case["network"]): case["network"]
                   for case in self.job["cases"] if case["network"]}
        for keywords in changed.values():
            self.adapt(keywords)
            super().calibrate()
        self.adapt(None)
        return found

    def adapt(self, keywords):
        """Make the network what its topology is with these keywords (None:
        those that it was built with). Rates and delays of links may differ."""
        name, built = self.job["topology"]
        wanted = topology(name)(aqm=self.job["aqm"], **(keywords or built))
        ends = self.topo.ends()
        for device, (node, parameters) in wanted.ends().items():
            known = ends[device][1]
            other = {key for key in known | parameters
                     if known.get(key) != parameters.get(key)}
            if other - {"rate_bps", "delay_ms"}:
                raise TollwayError(f"{device} was built with another "
                                   f"{', '.join(sorted(other))}")
            if other:
                self.net[node].nameToIntf[device].change(
                    parameters.get("rate_bps"), parameters.get("delay_ms"))
        self.topo = wanted

    def measure(self, calibration):
        """Run the cases one after another."""
        if self.job["traffic"] != "tollway":
            raise TollwayError(f"--traffic {self.job['traffic']}: "
                               f"{self.job['experiment']} needs tollway")
        tracers = [self.tracer(link) for link in self.topo.priced] \
            if self.job["trace"] else []
        sinks = {name: self.sink(name, time.monotonic_ns(),
                                 self.job["sink_cc"]) for name in
                 sorted({path["sink"] for path in self.topo.paths.values()})}
        phases = random.Random(self.job["seed"])
        cases = []
        for number, case in enumerate(self.job["cases"], 1):
            self.progress(f"case {number} of {len(self.job['cases'])}: "
                          f"{case['name']}")
            cases.append(self.measure_case(case, phases))
        self.stop_sinks(sinks)
        self.adapt(None)
        raw = {
            "schema": 1, "experiment": self.job["experiment"],
            "parameters": dict(self.parameters), "seed": self.job["seed"],
            "links": self.topo.links_described, "paths": self.topo.paths,
            "mss_bytes": self.mss_bytes(), "cases": cases,
            "metrics": self.job["metrics"], "x_title": self.job["x_title"],
            "pictures": self.job["pictures"],
            "bounds": self.job["bounds"], "calibration": calibration,
            "provenance": {
                "qdiscs": {node.name: shell(
                    node, "tc -d qdisc show").splitlines()
                    for node in self.net.values()},
                "sysctls": self.job["sysctls"]},
        }
        raw["trace_sha256"] = self.digest(raw, tracers, ("cases", "seed"))
        return raw

    def measure_case(self, case, phases):
        """Run one case; returns what is raw of it."""
        self.prepare_case(case)
        epoch_ns = time.monotonic_ns() + self.lead_ns(
            IDLE_S, len(self.topo.paths) + len(self.topo.priced))
        # On a whole millisecond, as the kernel's ticks are.
        epoch_ns -= epoch_ns % 10**6
        jitter_s = self.parameters["start_jitter_s"]
        flows = [dict(flow, start_s=flow["start_s"] +
                      phases.uniform(0, jitter_s)) for flow in case["flows"]]
        queues = {link: self.sampler(link, epoch_ns, case["duration_s"],
                                     case["queue_us"], case["classes"])
                  for link in self.topo.priced}
        senders = {}
        for flow in flows:
            senders.setdefault(flow["path"], []).append(flow)
        running = [self.sender(path, [self.line(flow) for flow in mine],
                               epoch_ns, case["duration_s"],
                               case["sample_ms"], case["cc_info"])
                   for path, mine in senders.items()]
        sent = {}
        for sender in running:
            report = self.finish(sender, case["duration_s"] + 60)
            sent.update((flow["id"], flow) for flow in report["flows"])
        sampled = {link: self.finish(queue, case["duration_s"] + GRACE_S)
                   ["devices"][self.topo.priced[link][1]]
                   for link, queue in queues.items()}
        at_end = {link: self.qdisc_stats(link) for link in self.topo.priced}
        peaks = {link: self.class_peaks(link) for link in self.topo.priced} \
            if case["classes"] else {}
        for flow in flows:
            final = dict(sent[flow["id"]])
            samples = final.pop("samples", None)
            if samples:
                flow["samples"] = {key: samples[key] for key in COLUMNS
                                   if key in samples}
            flow["final"] = {key: value for key, value in final.items()
                             if key in ("transfers", "frames", "bytes_acked",
                                        "bytes_sent", "retransmits", "packets",
                                        "bytes", "connected_s", "error")}
        keep = ("name", "point", "x", "series", "rtt_s", "values",
                "duration_s", "wires", "aqm")
        # What links are is said where they are not as they were built.
        links = {"links": self.topo.links_described} if case["network"] else {}
        return {**{key: case[key] for key in keep}, **links, "flows": flows,
                "queues": {link: dict(sampled[link],
                                      stats_at_end=at_end[link],
                                      class_peaks=peaks.get(link, {}))
                           for link in sampled}}

    def class_peaks(self, link):
        """{class: the most packets that it held} by the queue's own count;
        nothing of a queue without classes or without such a count."""
        node, device = self.topo.priced[link]
        # Not every tc has JSON of classes: that of Debian 12 prints text.
        text = shell(self.net[node], f"tc -s class show dev {device}")
        return {name: int(most) for name, most in re.findall(
            r"^class fq_rr (\S+) (?:(?!^class).)*? packets max (\d+)", text,
            re.MULTILINE | re.DOTALL)}

    def prepare_case(self, case):
        """The links, a new AQM, the impairments and sysctls of the case."""
        self.adapt(case["network"])
        for link, (node, device) in self.topo.priced.items():
            interface = self.net[node].nameToIntf[device]
            interface.change_aqm(case["aqm"])
            interface.impair(case["wires"].get(link, ""))
        own = {self.topo.paths[flow["path"]]["source"]: flow["sysctls"]
               for flow in case["flows"]}
        for host in self.hosts():
            wanted = {**self.job["sysctls"], **case["sysctls"],
                      **own.get(host.name, {})}
            known = self.known_sysctls.setdefault(host.name,
                                                  self.job["sysctls"])
            words = [f"{name}='{value}'" for name, value in wanted.items()
                     if known.get(name) != value]
            # What a flow of an earlier case had set is as it was.
            words += [f"{name}='{USUAL[name]}'" for name in known
                      if name not in wanted]
            if words:
                shell(host, f"sysctl -qw {' '.join(words)}")
            self.known_sysctls[host.name] = wanted

    def line(self, flow):
        """The line of a flow file."""
        sink = self.topo.paths[flow["path"]]["sink"]
        return flow_line(flow, address_of(self.net[sink]), SINK_PORT)
