# SPDX-License-Identifier: GPL-2.0
"""The programs of tools/ that a run starts in its nodes."""

import hashlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

from ..errors import TollwayError
from .nodes import SINK_PORT, shell
from .tracer import Tracer

# Programs get this long after the end of the traffic, s.
GRACE_S = 5.0
# What all flows together may hold in buffers, bytes: several processes share
# the kernel's tcp_mem, beyond whose pressure mark receive windows close.
UNSENT_BYTES = 12 << 20
UNREAD_BYTES = 8 << 20
# From so many flows on a wake-up for each costs more than its work: the
# programs look after all at once, this often. Half of 16 KiB are 8 packets.
MANY_FLOWS = 1000
MANY_REST_MS = 2
MANY_READ_MS = 50


def kill_group(process):
    """Kill a process, and its children where it leads a group."""
    if os.getpgid(process.pid) == process.pid:
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


class Programs:
    """The programs of a run: started in its nodes, ended, and what they wrote.

    job: dict with `cases`, `out_dir`, `bin_dir` and more, see Run.
    """

    def __init__(self, job, progress=lambda text: None):
        self.job = job
        self.parameters = job["parameters"]
        self.progress = progress
        self.out_dir = Path(job["out_dir"])
        self.bin_dir = Path(job["bin_dir"])
        self.processes = []
        self.net = None
        self.topo = None
        self.commands = []

    def most_flows(self):
        """How many flows a case has, at most."""
        return max(len(case["flows"]) for case in self.job["cases"])

    @staticmethod
    def realtime_offset_ns():
        """What the realtime clock is ahead of the monotonic one, ns."""
        return time.time_ns() - time.monotonic_ns()

    def lead_ns(self, least_s, programs):
        """From now until so many programs are started and wait, ns."""
        if self.job.get("real_time"):
            started = time.monotonic()
            subprocess.run(["unshare", "-n", "true"], check=True)
            took_s = time.monotonic() - started
            least_s = max(least_s, 2 * programs * took_s)
        return int(least_s * 1e9)

    def start(self, node, name, *words, stdin=None):
        """Start a program of tools/ in a node; its JSON goes to a file.

        Returns (Popen, Path of the JSON).
        """
        path = self.out_dir / f"{name}.json"
        argv = [str(self.bin_dir / words[0]), *map(str, words[1:]),
                "--json", str(path)]
        process = node.popen(argv, stdin=stdin or subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE)
        self.processes.append(process)
        return process, path

    @staticmethod
    def finish(started, timeout_s):
        """Wait for a program and read what it wrote. timeout_s: the longest wait, s. Returns
        the JSON that it wrote. Raises TollwayError if the program does not end in time,
        fails, or has written no JSON."""
        process, path = started
        try:
            _, errors = process.communicate(timeout=max(timeout_s, 1))
        except subprocess.TimeoutExpired:
            raise TollwayError(f"{process.args[-3:]} did not end in time") \
                from None
        text = errors.decode(errors="replace").strip()
        if process.returncode != 0:
            raise TollwayError(f"{Path(path).stem} failed: {text}")
        try:
            return json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise TollwayError(f"{path.name} cannot be read: {error}") from error

    def stop_sinks(self, sinks):
        """End the sinks in good order; returns what they counted."""
        for process, _ in sinks.values():
            process.send_signal(signal.SIGTERM)
        return {name: self.finish(sink, GRACE_S)
                for name, sink in sinks.items()}

    def sender(self, path_name, *arguments, **keywords):
        """Start the flows of a path; arguments as for send_from()."""
        return self.send_from(self.topo.paths[path_name]["source"],
                              *arguments, **keywords)

    def send_from(self, source, lines, epoch_ns, duration_s, sample_ms,
                  cc_info=False):
        """Start flows at a node, given as lines of a flow file."""
        flow_file = self.out_dir / f"flows-{source}.txt"
        flow_file.write_text("".join(line + "\n" for line in lines))
        return self.start(self.net[source], f"send-{source}",
                          "tollway-traffic", "send", "--flows", flow_file,
                          "--epoch-ns", epoch_ns, "--duration", duration_s,
                          "--sample-ms", sample_ms,
                          "--unsent", self.share(UNSENT_BYTES),
                          *(["--cc-info"] if cc_info else []),
                          *(["--rest-ms", MANY_REST_MS] if self.many else []))

    @property
    def many(self):
        """Are there too many flows to look after each when it asks for it?"""
        return self.most_flows() > MANY_FLOWS

    def share(self, total_bytes):
        """One flow's part of a budget, 16 to 256 KiB."""
        return max(16 << 10, min(256 << 10,
                                 total_bytes // self.most_flows()))

    def udp_sample_ms(self):
        """How often to sample what comes over UDP; None without UDP."""
        return min((case["sample_ms"] for case in self.job["cases"]
                    if not all(flow["cc"] for flow in case["flows"])),
                   default=None)

    def sink(self, host, epoch_ns, cc=None, sample_ms=None):
        """Start a sink with the congestion control of the flows: it is the
        receiver that echoes the marks. sample_ms: of UDP; None for none."""
        words = ["tollway-traffic", "sink", "--port", SINK_PORT,
                 "--epoch-ns", epoch_ns]
        words += ["--read-ms", MANY_READ_MS] if self.many else \
            ["--lowat", self.share(UNREAD_BYTES)]
        if cc:
            words += ["--cc", cc]
        if sample_ms:
            words += ["--sample-ms", sample_ms]
        return self.start(self.net[host], f"sink-{host}", *words)

    def sampler(self, link, epoch_ns, stop_s, interval_us, classes=False):
        """Start to sample the AQM of a priced link."""
        node, device = self.topo.priced[link]
        return self.start(self.net[node], f"queue-{link}", "tollway-qsample",
                          "--dev", device, "--handle", "10:", "--interval-us",
                          interval_us, "--epoch-ns", epoch_ns, "--stop", stop_s,
                          *(["--classes"] if classes else []))

    def qdisc_stats(self, link):
        """Counters of a priced link's AQM: bytes, packets, drops, marks. Raises TollwayError if
        the link has no such queue any more."""
        node, device = self.topo.priced[link]
        text = shell(self.net[node], f"tc -s -j qdisc show dev {device}")
        for qdisc in json.loads(text):
            if qdisc.get("handle") == "10:":
                marks = [qdisc[key] for key in
                         ("marks", "marked", "ecn_mark", "new_marks")
                         if key in qdisc]
                return {"bytes": qdisc["bytes"], "packets": qdisc["packets"],
                        "drops": qdisc["drops"],
                        "marks": marks[0] if marks else 0,
                        "qdisc": qdisc}
        raise TollwayError(f"the queue of {device} was removed or replaced "
                           "during the run")

    def tracer(self, link):
        """Start to hash every packet of a priced link, both ways; returns its
        Tracer."""
        node, device = self.topo.priced[link]
        capture = self.net[node].popen(
            ["tcpdump", "-i", device, "-s", "96", "-B", "65536",
             "--immediate-mode", "--time-stamp-precision=nano", "-w", "-"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        self.processes.append(capture)
        tracer = Tracer(link, capture, self.out_dir,
                        self.job["trace"] == "pcap")
        self.processes += tracer.readers
        tracer.wait_until_ready()
        return tracer

    @staticmethod
    def digest(raw, tracers):
        """sha256 over all that was recorded: samples, counters, packets."""
        body = hashlib.sha256()
        body.update(json.dumps({key: raw[key] for key in
                                 ("cases", "sinks", "seed")},
                               sort_keys=True).encode())
        for tracer in tracers:
            body.update(tracer.stop().encode())
        return body.hexdigest()
