# SPDX-License-Identifier: GPL-2.0
"""Who sends the traffic of a run: our own generator, or iperf3.

Both are given the same flows and return the same data: {id: flow object with
`samples`}, as tollway-traffic(1) writes it.
"""

from .iperf3 import IperfTraffic
from .nodes import address_of

SINK_PORT = 5001


def flow_line(flow, address, port):
    """The line of a flow file. flow: a dict with id, cc (None: no TCP),
    start_s, stop_s, and maybe priority and words."""
    words = [f"id={flow['id']} dst={address} port={port}"]
    if flow["cc"]:
        words.append(f"cc={flow['cc']}")
    if "priority" in flow:
        words.append(f"prio={flow['priority']}")
    words.append(f"start={flow['start_s']:.6f} stop={flow['stop_s']:.6f}")
    return " ".join(words + ([flow["words"]] if flow.get("words") else []))


class TollwayTraffic:
    """tollway-traffic: one process for all flows of a host."""

    def __init__(self, run, flows, epoch_ns):
        self.run, self.flows, self.epoch_ns = run, flows, epoch_ns
        self.sinks, self.senders, self.network = {}, {}, {}

    def listen(self):
        """Start the receiving side."""
        for flow in self.flows:
            if flow["sink"] not in self.sinks:
                self.sinks[flow["sink"]] = self.run.sink(
                    flow["sink"], self.epoch_ns, self.run.job["sink_cc"])

    def send(self):
        """Start the sending side."""
        parameters = self.run.parameters
        lines = {}
        for flow in self.flows:
            sink = address_of(self.run.net[flow["sink"]])
            lines.setdefault(flow["path"], []).append(
                flow_line(flow, sink, SINK_PORT))
        self.senders = {
            path: self.run.sender(path, words, self.epoch_ns,
                                  parameters["duration_s"],
                                  parameters["flow_sample_ms"])
            for path, words in lines.items()}

    def collect(self):
        """Wait for the senders; returns {id: flow}."""
        sent = {}
        for path, sender in self.senders.items():
            report = self.run.finish(
                sender, self.run.parameters["duration_s"] + 60)
            if report.get("network"):
                self.network[path] = report["network"]
            for flow in report["flows"]:
                sent[flow["id"]] = flow
        return sent

    def received(self):
        """End the sinks; returns what they counted."""
        return self.run.stop_sinks(self.sinks)


TRAFFIC = {"tollway": TollwayTraffic, "iperf3": IperfTraffic}
