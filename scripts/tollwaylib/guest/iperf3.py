# SPDX-License-Identifier: GPL-2.0
"""iperf3 as the sender of the traffic of a run."""

import json
import subprocess
import time

from ..errors import TollwayError
from .nodes import address_of

IPERF_PORT = 5201
# Between the samples of iperf3, s: results/ wants them less than one apart.
IPERF_INTERVAL_S = 0.5


class IperfTraffic:
    """iperf3: a client and a server for each flow.

    A start is as exact as the start of a process and about six round trips of the protocol of
    iperf3. A stop is a whole number of seconds later. There is no count of marks. Each packet
    takes two system calls. The client sends its congestion control to the server, so that the
    server echoes marks as the sender expects. iperf3 cannot send flows with words of their own,
    nor the cases of a list: TollwayError.
    """

    def __init__(self, run, case, flows, epoch_ns):
        if len(run.job["cases"]) > 1 or any(flow.get("words")
                                            for flow in flows):
            raise TollwayError(f"--traffic iperf3: {run.job['experiment']} "
                               "needs the generator of this project "
                               "(--traffic tollway)")
        self.run, self.case, self.flows = run, case, flows
        self.epoch_ns = epoch_ns
        self.clients, self.servers, self.network = {}, {}, {}

    def start(self, flow, role, node, words, delay_s=0.0):
        """Start iperf3 in a node after a delay; returns (Popen, report)."""
        path = self.run.out_dir / f"iperf3-{role}-{flow['id']}.json"
        argv = ["iperf3", "-J", "-i", str(IPERF_INTERVAL_S), "-p",
                str(IPERF_PORT + flow["id"]), *words]
        if self.run.job.get("disposable"):
            # In virtual time a busy loop never ends, see tools/slow_poll.c.
            slow_poll = self.run.bin_dir / "slow_poll.so"
            argv = ["env", f"LD_PRELOAD={slow_poll}", *argv]
        with open(path, "wb") as output:
            process = self.run.net[node].popen(
                ["sh", "-c", 'sleep "$1"; shift; exec "$@"', "sh",
                 f"{delay_s:.6f}", *argv] if delay_s > 0 else argv,
                stdout=output, stderr=subprocess.DEVNULL)
        self.run.processes.append(process)
        return process, path

    @staticmethod
    def begin(_run, _epoch_ns):
        """Nothing listens before there are flows."""
        return {}

    def ends(self, flow):
        """The path of a flow."""
        return self.run.topo.paths[flow["path"]]

    def listen(self):
        """Start a server for each flow."""
        for flow in self.flows:
            self.servers[flow["id"]] = self.start(
                flow, "server", self.ends(flow)["sink"], ["-s", "-1"])

    def send(self):
        """Start the clients, each of which waits for its time."""
        for flow in self.flows:
            # Whole seconds only: past the end if it runs to the end.
            seconds = round(flow["stop_s"] - flow["start_s"])
            if flow["stop_s"] >= self.case["duration_s"]:
                seconds += 2
            words = ["-C", flow["cc"], "-t", str(max(seconds, 1)),
                     "-c", address_of(self.run.net[self.ends(flow)["sink"]])]
            if flow.get("priority"):
                words += ["-S",
                          str(self.run.job["tos"][str(flow["priority"])])]
            start_ns = self.epoch_ns + int(flow["start_s"] * 1e9)
            self.clients[flow["id"]] = self.start(
                flow, "client", self.ends(flow)["source"],
                words, (start_ns - time.monotonic_ns()) / 1e9)

    def collect(self):
        """Wait for the clients; returns {id: flow}. Raises TollwayError if a client or a server
        failed, or if a server had another congestion control."""
        timeout_s = self.case["duration_s"] + 60
        sent = {}
        for flow in self.flows:
            sender, receiver = (
                self.report(flow, started, timeout_s) for started in
                (self.clients[flow["id"]], self.servers[flow["id"]]))
            echoing = sender["end"].get("receiver_tcp_congestion")
            # A SYN that was marked costs dctcp its ECN: it is dctcp-reno then.
            if echoing not in (flow["cc"], flow["cc"] + "-reno"):
                raise TollwayError(f"iperf3 of flow {flow['id']} failed: the "
                                   f"server ran {echoing} for {flow['cc']}")
            sent[flow["id"]] = self.flow(flow, sender, receiver)
        return sent

    @staticmethod
    def report(flow, started, timeout_s):
        """What an iperf3 said when it ended. Raises TollwayError if it reports an error, or
        does not end within timeout_s."""
        process, path = started
        try:
            process.wait(timeout_s)
            report = json.loads(path.read_text())
        except (subprocess.TimeoutExpired, ValueError) as error:
            raise TollwayError(f"iperf3 of flow {flow['id']} failed: "
                               f"{error}") from error
        if "error" in report:
            raise TollwayError(f"iperf3 of flow {flow['id']} failed: "
                               f"{report['error']}")
        return report

    @staticmethod
    def flow(flow, sender, receiver):
        """One flow in the format of tollway-traffic, from the two reports of iperf3.

        The bytes are those that the receiver read. The bytes that the sender wrote may still be
        in its send buffer.
        """
        samples = {"t_s": [flow["start_s"]], "bytes_acked": [0], "cwnd": [0],
                   "srtt_us": [0], "retransmits": [0]}
        total = retransmits = 0
        mss = sender["start"].get("tcp_mss_default") or 1
        for interval, received in zip(sender["intervals"],
                                      receiver["intervals"]):
            stream = interval["streams"][0]
            received = received["streams"][0]
            total += received["bytes"]
            retransmits += stream["retransmits"]
            samples["t_s"].append(flow["start_s"] + received["end"])
            samples["bytes_acked"].append(total)
            samples["retransmits"].append(retransmits)
            samples["cwnd"].append(stream["snd_cwnd"] // mss)
            samples["srtt_us"].append(stream["rtt"])
        return {"id": flow["id"], "proto": "tcp", "cc": flow["cc"],
                "bytes_acked": total, "retransmits": retransmits,
                "error": None, "samples": samples}
