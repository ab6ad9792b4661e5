# SPDX-License-Identifier: GPL-2.0
"""One run of an experiment on the kernel this process runs on.

The same code runs inside the lab and, as root, on a host; it needs Mininet,
tc with the plugins (TC_LIB_DIR) and the programs of tools/ in `bin_dir`.
Everything it does is a command a user could type.
"""

import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

from mininet.log import setLogLevel
from mininet.net import Mininet

from . import topo as topologies
from . import topo_pp as topologies_pp
from .errors import (RUN_FAILED, RUN_INTERRUPTED, RUN_REFUSED, RefusedError,
                     TollwayError, sentence)
from .topo import address_of, configure_network, separate_sources, shell
from .traffic import SINK_PORT, TRAFFIC, flow_line

# Between the building of the network and the first flow.
SETTLE_S = 0.5
# Between two cases: what the last one left in the network is gone by then.
IDLE_S = 0.5
# Columns of the samples that are kept, those that there are.
COLUMNS = ("t_s", "bytes_acked", "cwnd", "srtt_us", "retransmits", "unacked",
           "pacing_bps", "cc_rate_bps", "cc_min_rtt_us", "cc_pacing_gain",
           "cc_cwnd_gain")
# The kernel's own values of what flows may have sysctls for.
USUAL = {"net.ipv4.tcp_recovery": 1, "net.ipv4.tcp_early_retrans": 3}
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
# Calibration: from here on the queue is full and the link busy, s; and so many
# packets are counted at least.
BUSY_S = 0.1
CALIBRATION_PACKETS = 100


def kill_group(process):
    """Kill a process, and its children where it leads a group."""
    if os.getpgid(process.pid) == process.pid:
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def interrupt(_number, _frame):
    """A signal that ends the run, once: nothing may interrupt the cleaning."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


class Programs:
    """The programs of a run: started in its nodes, ended, and what they wrote.

    job: dict with `flows`, `out_dir`, `bin_dir` and more, see Run.
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

    def all_flows(self):
        """Every flow of the run."""
        return self.job["flows"]

    def most_flows(self):
        """How many flows there are at a time, at most."""
        return len(self.job["flows"])

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
        """Wait for a program and read what it wrote."""
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
        return len(self.job["flows"]) > MANY_FLOWS

    def share(self, total_bytes):
        """One flow's part of a budget, 16 to 256 KiB."""
        return max(16 << 10, min(256 << 10,
                                 total_bytes // self.most_flows()))

    def sink(self, host, epoch_ns, cc=None):
        """Start a sink with the congestion control of the flows: it is the
        receiver that echoes the marks."""
        words = ["tollway-traffic", "sink", "--port", SINK_PORT,
                 "--epoch-ns", epoch_ns]
        words += ["--read-ms", MANY_READ_MS] if self.many else \
            ["--lowat", self.share(UNREAD_BYTES)]
        if cc:
            words += ["--cc", cc]
        return self.start(self.net[host], f"sink-{host}", *words)

    def sampler(self, link, epoch_ns, stop_s, interval_us, classes=False):
        """Start to sample the AQM of a priced link."""
        node, device = self.topo.priced[link]
        return self.start(self.net[node], f"queue-{link}", "tollway-qsample",
                          "--dev", device, "--handle", "10:", "--interval-us",
                          interval_us, "--epoch-ns", epoch_ns, "--stop", stop_s,
                          *(["--classes"] if classes else []))

    def qdisc_stats(self, link):
        """Counters of a priced link's AQM: bytes, packets, drops, marks."""
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
        raise TollwayError(f"{device} has lost its AQM")

    def tracer(self, link):
        """Start to hash every packet of a priced link, both ways."""
        node, device = self.topo.priced[link]
        path = self.out_dir / f"trace-{link}.sha256"
        keep = self.out_dir / f"{link}.pcap"
        save = f"tee {keep} |" if self.job["trace"] == "pcap" else ""
        process = self.net[node].popen(
            ["sh", "-c", f"tcpdump -i {device} -s 96 -B 65536 --immediate-mode "
             f"--time-stamp-precision=nano -w - 2>/dev/null | {save} "
             f"sha256sum > {path}"], stdout=subprocess.DEVNULL)
        self.processes.append(process)
        return process, path

    @staticmethod
    def digest(raw, tracers, parts=("flows", "queues", "sinks", "seed")):
        """sha256 over all that was recorded: samples, counters, packets."""
        body = hashlib.sha256()
        body.update(json.dumps({key: raw[key] for key in parts},
                               sort_keys=True).encode())
        for process, path in tracers:
            os.kill(process.pid, 0)
            process.send_signal(signal.SIGTERM)
            process.wait()
            body.update(path.read_bytes())
        return body.hexdigest()


class Calibration(Programs):
    """The calibration of the network of a run."""

    def calibrate(self):
        """Check rate, round trip and place of loss of what was built.

        Each priced link is overloaded by UDP through a short FIFO in the place
        of the AQM; then the AQM is put back. Raises TollwayError if the link
        does not do what the topology says: nothing measured over it would mean
        anything.
        """
        self.progress("calibrating the links")
        result, paths = {}, self.topo.paths
        for link, described in self.topo.links_described.items():
            result[link] = self.calibrate_link(link, described)
        elsewhere = self.drops_elsewhere()
        if elsewhere:
            raise TollwayError(f"calibration failed: {elsewhere} packets were "
                               "lost where no link is a bottleneck")
        for name, path in paths.items():
            rtt_ms = self.ping_ms(path)
            # A 98-byte echo is sent twice over each link, at its rate.
            floor = path["rtt_ms"]
            if not floor <= rtt_ms <= \
                    floor + self.parameters["rtt_tolerance_ms"]:
                raise TollwayError(
                    f"calibration failed: the round trip of path {name} is "
                    f"{rtt_ms} ms instead of {floor} ms")
            if len(path["links"]) == 1:
                result[path["links"][0]].setdefault("rtt_ms", rtt_ms)
        return result

    def load_of(self, link):
        """Where the overload of a link comes from and goes to: two hosts.

        It comes from the source of a path that crosses this link alone. Where
        there is none, other links of a path could hold it back: then the router
        before the link sends it.
        """
        crossing = [path for _, path in sorted(self.topo.paths.items())
                    if link in path["links"]]
        if not crossing:
            raise TollwayError(f"calibration failed: no path crosses {link}")
        for path in crossing:
            if path["links"] == [link]:
                return path["source"], path["sink"]
        return self.topo.priced[link][0], crossing[0]["sink"]

    def calibrate_link(self, link, described):
        """Overload one link for a moment; returns what was found."""
        node, device = self.topo.priced[link]
        source, sink_name = self.load_of(link)
        intf = self.net[node].nameToIntf[device]
        intf.change_aqm("pfifo limit 20")
        size = self.topo.packet_bytes
        payload = self.topo.mtu - 28
        offered = described["capacity_bps"] * 5 // 4 * payload // size
        # The three programs below.
        lead_ns = self.lead_ns(0.1, 3)
        epoch_ns = time.monotonic_ns() + lead_ns
        busy_s = max(0.4 if described["capacity_bps"] <= 10**9 else 0.05,
                     CALIBRATION_PACKETS * size * 8 / described["capacity_bps"])
        overload_s = round(BUSY_S + busy_s, 6)
        sink = self.sink(sink_name, epoch_ns)
        queue = self.sampler(link, epoch_ns, overload_s, 10000)
        send = self.send_from(
            source, [f"id=1 dst={address_of(self.net[sink_name])} "
                     f"port={SINK_PORT} proto=udp size={payload} "
                     f"rate={offered} arrival=cbr"], epoch_ns, overload_s, 0)
        self.finish(send, lead_ns / 1e9 + overload_s + GRACE_S)
        samples = self.finish(queue, GRACE_S)["devices"][device]
        self.stop_sinks({sink_name: sink})
        times = samples["t_s"]
        first = next((i for i, t in enumerate(times) if t >= BUSY_S), None)
        if first is None or times[-1] - times[first] < busy_s / 2:
            raise TollwayError("calibration failed: this machine is too slow, "
                               f"or too busy, to look at {link} in time")
        seconds = times[-1] - times[first]
        rate = (samples["bytes"][-1] - samples["bytes"][first]) * 8 / seconds
        found = {"rate_bps": rate, "capacity_bps": described["capacity_bps"],
                 "drops": samples["drops"][-1], "ok": True}
        # Packets are counted whole: one may be more than the tolerance.
        tolerance = max(self.parameters["rate_tolerance"],
                        size * 8 / (seconds * described["capacity_bps"]))
        if abs(rate / described["capacity_bps"] - 1) > tolerance:
            raise TollwayError(
                f"calibration failed: {link} carries {rate / 1e6:.2f} Mb/s "
                f"instead of {described['capacity_bps'] / 1e6:.2f}")
        if not samples["drops"][-1]:
            raise TollwayError(f"calibration failed: overload of {link} was "
                               "not dropped at its queue")
        intf.change_aqm(self.job["aqm"])
        return found

    def drops_elsewhere(self):
        """Packets lost at any queue of the network that is not an AQM.

        What an AQM drops, the shaper and a netem above it count as well.
        """
        total = 0
        for node in self.net.values():
            text = shell(node, "tc -s -j qdisc show")
            devices = {}
            for qdisc in json.loads(text):
                devices.setdefault(qdisc["dev"], {})[qdisc.get("handle")] = \
                    qdisc.get("drops", 0)
            for drops in devices.values():
                drops.pop("10:", None)
                of_aqm = drops.pop("2:", 0)
                total += max(sum(drops.values()) - of_aqm, 0)
        return total

    def ping_ms(self, path):
        """Smallest of three round trips over a path, in ms."""
        sink = address_of(self.net[path["sink"]])
        text = shell(self.net[path["source"]],
                     f"ping -n -q -c 3 -i 0.1 -w 5 {sink}")
        for line in text.splitlines():
            if line.startswith("rtt "):
                return float(line.split("=")[1].split("/")[0])
        raise TollwayError(f"calibration failed: no answer from {sink}: {text}")


class Run(Calibration):
    """Build the network, calibrate it, run the traffic, collect the raw data.

    job: dict with `experiment`, `topology` (class name in topo.py and its
    parameters), `parameters`, `flows` (list of dicts, see experiments.py),
    `seed`, `sysctls` ({name: value}, set in every host), `out_dir`, `bin_dir`.
    `real_time`: to start a program takes time. `disposable`: nothing outlives
    the run anyway.
    """

    def run(self):
        """Run the job; returns the raw result (dict)."""
        self.check_kernel()
        try:
            self.build()
            calibration = self.calibrate()
            return self.measure(calibration)
        finally:
            self.close()

    # Network

    def build(self):
        """Start the Mininet network and set what every node needs."""
        self.progress("building the network")
        setLogLevel("debug" if self.job.get("verbose") else "warning")
        name, keywords = self.job["topology"]
        self.topo = topology(name)(aqm=self.job["aqm"], **keywords)
        self.net = Mininet(topo=self.topo, controller=None, build=False,
                           autoSetMacs=False)
        self.net.build()
        configure_network(self.net, self.parameters["initcwnd"],
                          quickack=self.topo.pairs)
        if self.topo.pairs:
            separate_sources(self.net, self.topo)
        self.set_sysctls(self.job["sysctls"])

    def set_sysctls(self, sysctls):
        """Set {name: value} in every host."""
        words = " ".join(f"{name}='{value}'" for name, value in
                         sysctls.items())
        for node in self.hosts():
            if words:
                shell(node, f"sysctl -qw {words}")

    def mss_bytes(self):
        """Data in a full packet."""
        timestamps = self.job["sysctls"].get("net.ipv4.tcp_timestamps", 1)
        return self.topo.mtu - (52 if timestamps else 40)

    def check_kernel(self):
        """Does this kernel know the congestion control and the queue?"""
        known = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
        names = known.read_text().split()
        for name in sorted({flow["cc"] for flow in self.all_flows()
                            if flow["cc"]}):
            if name not in names:
                raise RefusedError(f"--cc {name}: this kernel has no such "
                                   f"congestion control, only "
                                   f"{', '.join(sorted(names))}")
        tried = subprocess.run(
            ["unshare", "-n", "sh", "-c",
             f"tc qdisc add dev lo root {self.job['aqm']}"],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            check=False)
        if tried.returncode:
            reason = tried.stdout.strip().partition("\n")[0]
            raise RefusedError(f"--aqm '{self.job['aqm']}': {reason}")

    def hosts(self):
        """Nodes that send or receive."""
        names = {path[end] for path in self.topo.paths.values()
                 for end in ("source", "sink")}
        return [self.net[name] for name in sorted(names)]

    def close(self):
        """End every process and remove the network; safe at any point."""
        for process in self.processes:
            if process.poll() is None:
                kill_group(process)
                process.wait()
        self.processes = []
        # The lab's kernel ends with the run, and its namespaces with it.
        if self.net is not None and not self.job.get("disposable"):
            # A namespace goes with its shell, and its links go with it.
            for node in self.net.values():
                node.terminate()
        self.net = None

    # Measurement

    def measure(self, calibration):
        """Run the flows and put together what everyone saw."""
        parameters, seed = self.parameters, self.job["seed"]
        duration_s, warmup_s = parameters["duration_s"], parameters["warmup_s"]
        phases = random.Random(seed)
        # On a whole second, so that the phase of the kernel's ticks does not
        # depend on how long the building took.
        second_ns = 10**9
        programs = 2 * len(self.topo.paths) + len(self.topo.priced)
        epoch_ns = (time.monotonic_ns() + self.lead_ns(SETTLE_S, programs)) \
            // second_ns * second_ns + second_ns

        flows = [dict(flow,
                      start_s=flow["start_s"] + phases.uniform(
                          0, parameters["start_jitter_s"]),
                      stop_s=min(flow["stop_s"], duration_s),
                      sink=self.topo.paths[flow["path"]]["sink"])
                 for flow in self.job["flows"]]
        traffic = TRAFFIC[self.job["traffic"]](self, flows, epoch_ns)
        traffic.listen()
        queues = {link: self.sampler(link, epoch_ns, duration_s,
                                     parameters["queue_sample_us"])
                  for link in self.topo.priced}
        tracers = [self.tracer(link) for link in self.topo.priced] \
            if self.job["trace"] else []
        traffic.send()

        at_warmup, at_end = self.wait_until(epoch_ns, warmup_s, duration_s)
        sent = traffic.collect()
        sampled = {link: self.finish(queue, GRACE_S)["devices"]
                   [self.topo.priced[link][1]]
                   for link, queue in queues.items()}
        received = traffic.received()
        qdiscs = {node.name: shell(node, "tc -d qdisc show").splitlines()
                  for node in self.net.values()}

        for flow in flows:
            final = dict(sent[flow["id"]])
            flow["samples"] = final.pop("samples", {})
            if "pages" in final:
                flow["pages"] = final.pop("pages")
            flow["final"] = final
            flow["mss_bytes"] = self.mss_bytes()
        raw = {
            "schema": 1,
            "experiment": self.job["experiment"],
            "parameters": dict(parameters),
            "seed": seed,
            "links": self.topo.links_described,
            "paths": self.topo.paths,
            "flows": flows,
            "sinks": received,
            "queues": {link: dict(
                sampled[link], interval_us=parameters["queue_sample_us"],
                stats_at_warmup=at_warmup[link], stats_at_end=at_end[link])
                for link in sampled},
            "calibration": calibration,
            "provenance": {"qdiscs": qdiscs, "sysctls": self.job["sysctls"]},
        }
        for key in ("schedule", "bounds"):
            if self.job.get(key):
                raw[key] = self.job[key]
        if self.job.get("steady_state"):
            raw["steady_state"] = True
        if traffic.network:
            raw["network"] = traffic.network
        raw["trace_sha256"] = self.digest(raw, tracers)
        return raw

    def wait_until(self, epoch_ns, warmup_s, duration_s):
        """Sleep to the end of the traffic; returns each AQM's counters at the
        end of the warm-up and at the end."""
        self.sleep_until(epoch_ns + int(warmup_s * 1e9))
        stats = {link: self.qdisc_stats(link) for link in self.topo.priced}
        step_s = max(duration_s / 20, 1)
        now_s = warmup_s
        while now_s < duration_s:
            self.progress(f"second {now_s:.0f} of {duration_s:g}")
            now_s = min(now_s + step_s, duration_s)
            self.sleep_until(epoch_ns + int(now_s * 1e9))
        return stats, {link: self.qdisc_stats(link)
                       for link in self.topo.priced}

    @staticmethod
    def sleep_until(when_ns):
        """Sleep up to a time of the monotonic clock, ns."""
        left_ns = when_ns - time.monotonic_ns()
        if left_ns > 0:
            time.sleep(left_ns / 1e9)


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


def topology(name):
    """The class of a topology."""
    for module in (topologies, topologies_pp):
        if hasattr(module, name):
            return getattr(module, name)
    raise TollwayError(f"there is no topology {name}")


def kind_of_run(job):
    """The class that runs a job."""
    return CaseRun if "cases" in job else Run


def main(job_path):
    """Run the job in a file; its raw result and status go beside it."""
    job = json.loads(Path(job_path).read_text())
    out_dir = Path(job["out_dir"])

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)

    def progress(text):
        print(f"tollway: {text}", flush=True)

    def failed(reason, status=RUN_FAILED):
        """Leave the reason for the place that started this; the console, which
        is also read, gets it without the name of the command in front."""
        (out_dir / "error.txt").write_text(f"{reason}\n", encoding="utf-8",
                                           errors="backslashreplace")
        print(f"error: {reason}", file=sys.stderr, flush=True)
        return status

    try:
        raw = kind_of_run(job)(job, progress).run()
        temporary = out_dir / "raw.json.new"
        temporary.write_text(json.dumps(raw))
        temporary.rename(out_dir / "raw.json")
    except RefusedError as error:
        return failed(error, RUN_REFUSED)
    except TollwayError as error:
        return failed(error)
    except OSError as error:
        return failed(sentence(error))
    except KeyboardInterrupt:
        return RUN_INTERRUPTED
    except Exception as error:  # the traceback goes to the console's log
        traceback.print_exc()
        return failed(f"unexpected error: {type(error).__name__}: {error}; "
                      "the traceback is in console.log of this seed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
