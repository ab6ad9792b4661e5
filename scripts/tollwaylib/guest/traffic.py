# SPDX-License-Identifier: GPL-2.0
"""The sender of the traffic of a run: tollway-traffic or iperf3.

Both get the same flows and return the same data: {id: flow object with `samples`}, as
tollway-traffic(1) writes it.
"""

from .iperf3 import IperfTraffic
from .nodes import SINK_PORT, address_of


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


def arrivals(counted, peer, epoch_ns, duration_s):
    """Bytes of a UDP flow that arrived over time, or None if none did.

    counted: the report of the sink, with samples. peer: "ADDRESS:PORT" of the sender. epoch_ns:
    start of its traffic. Returns {"t_s": ends of sampling periods, "bytes": received bytes
    until then, without headers}.
    """
    begin_s = (counted["epoch_ns"] - epoch_ns) / 1e9
    # The port may have been another flow's before.
    for known in reversed(counted["udp"]):
        if known["peer"] == peer:
            periods = known["received_bytes"]
            break
    else:
        return None
    found, total, highest = {"t_s": [], "bytes": []}, 0, 0
    sequences = known.get("next_sequence")
    if sequences:
        found["packets"] = []
    for number, received in enumerate(periods, 1):
        end_s = round(begin_s + number * counted["sample_s"], 6)
        if 0 < end_s <= duration_s:
            total += received
            found["t_s"].append(end_s)
            found["bytes"].append(total)
            if sequences:
                # 0 where nothing came.
                highest = max(highest, sequences[number - 1])
                found["packets"].append(highest)
    return found


def acknowledged(flow, counted, peer):
    """Samples of a stream with law=pp, which has no acknowledgements, as if it had them: the
    bytes that had arrived when an acknowledgement would be back at the sender.

    flow: raw, with arrivals; counted, peer: as for arrivals(). The clock of the sink must be
    that of the sender.
    """
    seen = flow["arrivals"]
    way_us = next(known["law"]["way_us"] for known in reversed(counted["udp"])
                  if known["peer"] == peer)
    back_s = (flow["final"]["law"]["min_rtt_us"] - way_us) / 1e6
    return {"t_s": [t + back_s for t in seen["t_s"]],
            "bytes_acked": seen["bytes"], "packets": seen["packets"]}


class TollwayTraffic:
    """tollway-traffic: one process for all flows of a host."""

    def __init__(self, run, case, flows, epoch_ns):
        self.run, self.case, self.flows = run, case, flows
        self.epoch_ns = epoch_ns
        self.senders, self.network = {}, {}

    @staticmethod
    def begin(run, epoch_ns):
        """Start the receiving side of all cases; returns {host: sink}."""
        paths = run.topo.paths
        own = {paths[name]["sink"]: cc for name, cc in run.job["echo"].items()}
        return {host: run.sink(host, epoch_ns,
                               own.get(host, run.job["sink_cc"]),
                               run.udp_sample_ms())
                for host in sorted({path["sink"] for path in paths.values()})}

    def listen(self):
        """It listens already."""

    def send(self):
        """Start the sending side."""
        case, lines = self.case, {}
        for flow in self.flows:
            sink = self.run.topo.paths[flow["path"]]["sink"]
            lines.setdefault(flow["path"], []).append(
                flow_line(flow, address_of(self.run.net[sink]), SINK_PORT))
        self.senders = {
            path: self.run.sender(path, words, self.epoch_ns,
                                  case["duration_s"], case["sample_ms"],
                                  case["cc_info"])
            for path, words in lines.items()}

    def collect(self):
        """Wait for the senders; returns {id: flow}."""
        sent = {}
        for path, sender in self.senders.items():
            report = self.run.finish(sender, self.case["duration_s"] + 60)
            if report.get("network"):
                self.network[path] = report["network"]
            for flow in report["flows"]:
                sent[flow["id"]] = flow
        return sent


TRAFFIC = {"tollway": TollwayTraffic, "iperf3": IperfTraffic}
