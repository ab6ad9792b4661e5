# SPDX-License-Identifier: GPL-2.0
"""Who sends the traffic of a run: our own generator, or iperf3.

Both are given the same flows and return the same data: {id: flow object with
`samples`}, as tollway-traffic(1) writes it.
"""

import json
import signal
import subprocess

from .errors import TollwayError
from .topo import address_of

SINK_PORT = 5001
IPERF_PORT = 5201
# Willingness to pay goes by socket priority. These three are also what the
# kernel makes of the types of service below (rt_tos2priority), which is all
# that iperf3 can set.
PRIORITIES = {2: 0x08, 4: 0x18, 6: 0x10}


class TollwayTraffic:
    """tollway-traffic: one process for all flows of a host."""

    def __init__(self, run, flows, epoch_ns):
        self.run, self.flows, self.epoch_ns = run, flows, epoch_ns
        self.sinks, self.senders = {}, []

    def listen(self):
        """Start the receiving side."""
        for flow in self.flows:
            if flow["sink"] not in self.sinks:
                self.sinks[flow["sink"]] = self.run.sink(
                    flow["sink"], self.epoch_ns, flow["cc"])

    def send(self):
        """Start the sending side."""
        parameters = self.run.parameters
        lines = {}
        for flow in self.flows:
            sink = address_of(self.run.net[flow["sink"]])
            lines.setdefault(flow["path"], []).append(
                f"id={flow['id']} dst={sink} port={SINK_PORT} "
                f"cc={flow['cc']} prio={flow['priority']} "
                f"start={flow['start_s']:.6f} stop={flow['stop_s']:.6f}")
        self.senders = [
            self.run.sender(path, words, self.epoch_ns,
                            parameters["duration_s"],
                            parameters["flow_sample_ms"])
            for path, words in lines.items()]

    def collect(self):
        """Wait for the senders; returns {id: flow}."""
        return {flow["id"]: flow for sender in self.senders
                for flow in self.run.finish(
                    sender, self.run.parameters["duration_s"] + 60)["flows"]}

    def received(self):
        """End the sinks; returns what they counted."""
        return self.run.stop_sinks(self.sinks)


class IperfTraffic:
    """iperf3: a client and a server for each flow.

    Starts are as exact as the start of a process; samples come once a second;
    there is no count of marks. Two system calls a packet.
    """

    def __init__(self, run, flows, epoch_ns):
        self.run, self.flows, self.epoch_ns = run, flows, epoch_ns
        self.clients, self.servers = {}, []

    def listen(self):
        """Start a server for each flow."""
        for flow in self.flows:
            # The server has no -C: its namespace's default makes it echo.
            node = self.run.net[flow["sink"]]
            self.servers.append(node.popen(
                ["iperf3", "-s", "-1", "-p", str(IPERF_PORT + flow["id"])],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        self.run.processes += self.servers

    def send(self):
        """Start each client at its time."""
        for flow in sorted(self.flows, key=lambda flow: flow["start_s"]):
            source = self.run.topo.paths[flow["path"]]["source"]
            # Whole seconds only: past the end if it runs to the end.
            seconds = round(flow["stop_s"] - flow["start_s"])
            if flow["stop_s"] >= self.run.parameters["duration_s"]:
                seconds += 2
            argv = ["iperf3", "-J", "-i", "1", "-C", flow["cc"],
                    "-c", address_of(self.run.net[flow["sink"]]),
                    "-p", str(IPERF_PORT + flow["id"]), "-t", str(max(seconds, 1))]
            if flow["priority"]:
                argv += ["-S", str(PRIORITIES[flow["priority"]])]
            self.run.sleep_until(self.epoch_ns + int(flow["start_s"] * 1e9))
            path = self.run.out_dir / f"iperf3-{flow['id']}.json"
            with open(path, "wb") as output:
                process = self.run.net[source].popen(
                    argv, stdout=output, stderr=subprocess.DEVNULL)
            self.run.processes.append(process)
            self.clients[flow["id"]] = (process, path)

    def collect(self):
        """Wait for the clients; returns {id: flow}."""
        sent = {}
        for flow in self.flows:
            process, path = self.clients[flow["id"]]
            try:
                process.wait(self.run.parameters["duration_s"] + 60)
                report = json.loads(path.read_text())
            except (subprocess.TimeoutExpired, ValueError) as error:
                raise TollwayError(f"iperf3 of flow {flow['id']} failed: "
                                   f"{error}") from error
            if "error" in report:
                raise TollwayError(f"iperf3 of flow {flow['id']} failed: "
                                   f"{report['error']}")
            sent[flow["id"]] = self._flow(flow, report)
        return sent

    @staticmethod
    def _flow(flow, report):
        """One flow of tollway-traffic's format from an iperf3 report."""
        samples = {name: [] for name in ("t_s", "bytes_acked", "cwnd",
                                         "srtt_us", "retransmits")}
        total = retransmits = 0
        mss = report["start"].get("tcp_mss_default") or 1
        samples["t_s"].append(flow["start_s"])
        for name in ("bytes_acked", "retransmits", "cwnd", "srtt_us"):
            samples[name].append(0)
        for interval in report["intervals"]:
            stream = interval["streams"][0]
            total += stream["bytes"]
            retransmits += stream["retransmits"]
            samples["t_s"].append(flow["start_s"] + stream["end"])
            samples["bytes_acked"].append(total)
            samples["retransmits"].append(retransmits)
            samples["cwnd"].append(stream["snd_cwnd"] // mss)
            samples["srtt_us"].append(stream["rtt"])
        return {"id": flow["id"], "proto": "tcp", "cc": flow["cc"],
                "bytes_acked": total, "retransmits": retransmits,
                "error": None, "samples": samples}

    def received(self):
        """End the servers, which have ended with their test."""
        for server in self.servers:
            if server.poll() is None:
                server.send_signal(signal.SIGTERM)
                server.wait()
        return {}


TRAFFIC = {"tollway": TollwayTraffic, "iperf3": IperfTraffic}
