# SPDX-License-Identifier: GPL-2.0
"""One run of an experiment on the kernel this process runs on.

The same code runs inside the lab and, as root, on a host; it needs Mininet,
tc with the plugins (TC_LIB_DIR) and the programs of tools/ in `bin_dir`.
Everything it does is a command a user could type.
"""

import json
import random
import re
import resource
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

from mininet.log import setLogLevel
from mininet.net import Mininet

from ..errors import (RUN_FAILED, RUN_INTERRUPTED, RUN_REFUSED, RefusedError,
                      TollwayError, sentence)
from .calibration import Calibration
from .daemons import READY_S, Daemons
from .network import configure_network, separate_sources
from .nodes import address_of, shell
from .passages import Passages
from .processes import GRACE_S, kill_group
from .topologies import Built
from .traffic import TRAFFIC, acknowledged, arrivals

# Before the flows of a case: what the last one left in the network is gone by
# then.
IDLE_S = 0.5
TICK_NS = 10**6
# Open files at a time of this process, and of programs that ask for no more.
FILES = 1024
# Of what raw.json holds; results/schema.py reads the older ones.
RAW_SCHEMA = 4
# The kernel's own values of what flows may have sysctls for.
USUAL = {"net.ipv4.tcp_recovery": 1, "net.ipv4.tcp_early_retrans": 3}


def interrupt(_number, _frame):
    """A signal ends the run; later signals do not interrupt the cleaning."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


class Run(Calibration):
    """Build the network, calibrate it, run the cases, collect the raw data.

    job: dict with `experiment`, `topology` (keywords of topologies.Built), `parameters`,
    `cases` (list of dicts, see experiments/jobs.py), `seed`, `sysctls` ({name: value}, set on
    every host), `out_dir`, `bin_dir`. `real_time`: the start of a program takes time.
    `disposable`: the kernel ends with the run, so nothing has to be removed.
    """

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.known_sysctls = {}
        self.sinks = None
        # Flows over UDP: [(raw flow, sink, peer there, arguments of
        # arrivals())].
        self.datagrams = []

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
        self.topo = Built(aqm=self.job["aqm"], **self.job["topology"])
        self.net = Mininet(topo=self.topo, controller=None, build=False,
                           autoSetMacs=False)
        # Mininet has raised it to 16384, and its mnexec closes each number below
        # it, for every program. Who needs more files asks for them.
        resource.setrlimit(resource.RLIMIT_NOFILE, (
            FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        self.net.build()
        configure_network(self.net, self.parameters["initcwnd"],
                          quickack=self.topo.pairs)
        if self.topo.pairs:
            separate_sources(self.net, self.topo, self.job["classful"])
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
        """Raise RefusedError if the kernel lacks the congestion control or the queue."""
        known = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
        names = known.read_text().split()
        for name in sorted({flow["cc"] for case in self.job["cases"]
                            for flow in case["flows"] if flow["cc"]}):
            if name not in names:
                raise RefusedError(f"--cc {name}: this kernel has no such "
                                   f"congestion control, only "
                                   f"{', '.join(sorted(names))}")
        for words in (self.job["aqm"], *self.job["queues"]):
            tried = subprocess.run(
                ["unshare", "-n", "sh", "-c",
                 f"tc qdisc add dev lo root {words}"],
                text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                check=False)
            if tried.returncode:
                reason = tried.stdout.strip().partition("\n")[0]
                raise RefusedError(f"--aqm '{words}': {reason}")

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

    def calibrate(self):
        """Calibrate the network as it is built, and as each case changes it; returns the result
        of the former."""
        found = super().calibrate()
        changed = {str(case["network"]): case["network"]
                   for case in self.job["cases"] if case["network"]}
        for keywords in changed.values():
            self.adapt(keywords)
            super().calibrate()
        self.adapt(None)
        return found

    def adapt(self, keywords):
        """Change the network to its topology with these keywords (None: those with which it was
        built). Only rates and delays of links may differ. Raises TollwayError if something
        else differs."""
        wanted = Built(aqm=self.job["aqm"], **(keywords or self.job["topology"]))
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

    # Measurement

    def measure(self, calibration):
        """Run the cases one after another; returns the raw result."""
        tracers = [self.tracer(link) for link in self.topo.priced] \
            if self.job["trace"] else []
        if self.job["metrics"]:
            # A list of cases: they are there before the first of them.
            self.begin(time.monotonic_ns())
        phases = random.Random(self.job["seed"])
        cases = []
        for number, case in enumerate(self.job["cases"], 1):
            if self.job["metrics"]:
                self.progress(f"case {number} of {len(self.job['cases'])}: "
                              f"{case['name']}")
            cases.append(self.measure_case(case, phases))
        received = self.stop_sinks(self.sinks)
        for flow, sink, *arguments in self.datagrams:
            if "sample_s" in received.get(sink, {}):
                flow["arrivals"] = arrivals(received[sink], *arguments)
                if flow.get("law") and flow["arrivals"]:
                    flow["samples"] = acknowledged(flow, received[sink],
                                                   arguments[0])
        for counted in received.values():
            for peer in counted.get("udp", []):
                for key in ("received_bytes", "next_sequence"):
                    peer.pop(key, None)
        self.adapt(None)
        raw = {
            "schema": RAW_SCHEMA, "experiment": self.job["experiment"],
            "parameters": dict(self.parameters), "seed": self.job["seed"],
            "links": self.topo.links_described, "paths": self.topo.paths,
            "mss_bytes": self.mss_bytes(), "cases": cases,
            "sinks": received, "calibration": calibration,
            **{key: self.job[key] for key in
               ("title", "schedule", "steady_state", "metrics", "x_title",
                "pictures", "bounds")},
            **{key: self.job[key] for key in ("published", "about")
               if key in self.job},
            "provenance": {
                "qdiscs": {node.name: shell(
                    node, "tc -d qdisc show").splitlines()
                    for node in self.net.values()},
                "sysctls": self.job["sysctls"]},
        }
        raw["trace_sha256"] = self.digest(raw, tracers)
        return raw

    def measure_case(self, case, phases):
        """Run one case; returns its raw result."""
        self.prepare_case(case)
        passages = Passages(self, case["name"]) if case["passages"] else None
        daemons = Daemons(self, case)
        if daemons.all:
            time.sleep(READY_S)
            daemons.check()
        programs = 2 * len(self.topo.paths) + len(self.topo.priced)
        # So that the phase of the kernel's ticks, which are on whole
        # milliseconds, does not depend on how long the building took.
        epoch_ns = time.monotonic_ns() + self.lead_ns(IDLE_S, programs)
        epoch_ns -= epoch_ns % TICK_NS
        epoch_ns += -epoch_ns % case["align_ns"]
        jitter_s = self.parameters["start_jitter_s"]
        flows = [dict(flow, start_s=flow["start_s"] +
                      phases.uniform(0, jitter_s)) for flow in case["flows"]]
        traffic = TRAFFIC[self.job["traffic"]](self, case, flows, epoch_ns)
        if self.sinks is None:
            self.begin(epoch_ns)
        traffic.listen()
        queues = {link: self.sampler(link, epoch_ns, case["duration_s"],
                                     case["queue_us"], case["classes"])
                  for link in self.topo.priced}
        traffic.send()
        counters = self.wait_until(epoch_ns, case["warmup_s"],
                                   case["duration_s"]) \
            if case["warmup_s"] is not None else {}
        changed = self.change_rates(epoch_ns, self.rates_of(case))
        sent = traffic.collect()
        sampled = {link: self.finish(queue, case["duration_s"] + GRACE_S)
                   ["devices"][self.topo.priced[link][1]]
                   for link, queue in queues.items()}
        if not counters:
            counters = {"stats_at_end": self.counters()}
        if case["classes"]:
            counters["class_peaks"] = {
                link: self.class_peaks(link) for link in self.topo.priced}
        raw = {key: case[key] for key in
               ("name", "point", "x", "series", "rtt_s", "values",
                "duration_s", "wires", "aqm")}
        raw.update(self.end_programs(case, passages, daemons, epoch_ns))
        # What links are is said where they are not as they were built.
        if case["network"]:
            raw["links"] = self.topo.links_described
        if changed:
            raw["rates"] = changed
        if traffic.network:
            raw["network"] = traffic.network
        seen = []
        for flow in flows:
            final = dict(sent[flow["id"]])
            port = final.get("local_port")
            seen.append(self.seen(flow, final, case["keep"]))
            if not flow["cc"]:
                path = self.topo.paths[flow["path"]]
                self.datagrams.append((
                    seen[-1], path["sink"],
                    f"{address_of(self.net[path['source']])}:{port}",
                    epoch_ns, case["duration_s"]))
        return {
            **raw, "flows": seen,
            "queues": {link: dict(
                samples, interval_us=case["queue_us"],
                **{key: of_links[link] for key, of_links in counters.items()})
                for link, samples in sampled.items()}}

    def end_programs(self, case, passages, daemons, epoch_ns):
        """End the programs that run beside the flows of a case, and restore the network;
        returns their output for the raw result."""
        found = {}
        if passages:
            found["passages"] = passages.stop(
                epoch_ns, self.parameters["warmup_s"], case["duration_s"])
        self.change_rates(epoch_ns, [
            (0, self.topo.links_described[link]["capacity_bps"], link)
            for link in dict.fromkeys(link for *_, link in self.rates_of(case))])
        # As long as the programs hold what waits there.
        for interface in self.gated():
            interface.empty_gates()
        if daemons.all:
            found["programs"] = daemons.stop(epoch_ns)
        return found

    def gated(self):
        """The interfaces that have gates."""
        return [interface for node in self.net.values()
                for interface in node.nameToIntf.values()
                if getattr(interface, "gates", None)]

    def rates_of(self, case):
        """[(s, bit/s, link)] of a case; without a link in the case, it is the only priced link."""
        return [(when_s, rate_bps, *(link or self.topo.priced))
                for when_s, rate_bps, *link in case["rates"]]

    def change_rates(self, epoch_ns, rates):
        """Wait for the time of each change of a link's rate, and make it; returns [(s, bit/s,
        link)] with the times at which they were made."""
        made = []
        for when_s, rate_bps, link in rates:
            node, device = self.topo.priced[link]
            self.sleep_until(epoch_ns + int(when_s * 1e9))
            interface = self.net[node].nameToIntf[device]
            interface.change(rate_bps, interface.delay_ms)
            made.append((round((time.monotonic_ns() - epoch_ns) / 1e9, 6), rate_bps,
                         link))
        return made

    def begin(self, epoch_ns):
        """Start the receiving side of all cases."""
        self.sinks = TRAFFIC[self.job["traffic"]].begin(self, epoch_ns)

    @staticmethod
    def seen(flow, final, keep):
        """A flow with the measurements of its sender: its samples, the pages of a web user, and
        its counters at the end. keep: see experiments/jobs.py; None keeps all."""
        found = dict(flow)
        for key, kept in (("samples", True), ("pages", keep is None)):
            if final.get(key) and kept:
                found[key] = final[key]
            final.pop(key, None)
        if keep:
            if "samples" in found:
                found["samples"] = {key: found["samples"][key]
                                    for key in keep["samples"]
                                    if key in found["samples"]}
            final = {key: value for key, value in final.items()
                     if key in keep["final"]}
        return {**found, "final": final}

    def counters(self):
        """{link: counters of its AQM}."""
        return {link: self.qdisc_stats(link) for link in self.topo.priced}

    def wait_until(self, epoch_ns, warmup_s, duration_s):
        """Sleep to the end of the traffic; returns {when: {link: counters}} of
        the end of the warm-up and of the end."""
        self.sleep_until(epoch_ns + int(warmup_s * 1e9))
        at_warmup = self.counters()
        step_s = max(duration_s / 20, 1)
        now_s = warmup_s
        while now_s < duration_s:
            self.progress(f"second {now_s:.0f} of {duration_s:g}")
            now_s = min(now_s + step_s, duration_s)
            self.sleep_until(epoch_ns + int(now_s * 1e9))
        return {"stats_at_warmup": at_warmup, "stats_at_end": self.counters()}

    @staticmethod
    def sleep_until(when_ns):
        """Sleep up to a time of the monotonic clock, ns."""
        left_ns = when_ns - time.monotonic_ns()
        if left_ns > 0:
            time.sleep(left_ns / 1e9)

    def class_peaks(self, link):
        """{class: largest number of packets that it held}, as the queue counted; empty for a
        queue without classes or without such a counter."""
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
            if case["renew"]:
                interface.change_aqm(self.topo.queues.get(link, case["aqm"]))
            interface.impair(case["wires"].get(link, ""))
        for interface in self.gated():
            interface.change_gates(case["gate"])
        own = {self.topo.paths[flow["path"]]["source"]:
               flow.get("sysctls", {}) for flow in case["flows"]}
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


def main(job_path):
    """Run the job in a file; its raw result and status go beside it."""
    job = json.loads(Path(job_path).read_text())
    return leave(Path(job["out_dir"]), lambda step: Run(job, step).run())


def leave(out_dir, measure):
    """Write what measure(step) returns to out_dir/raw.json, or the reason why it failed to
    error.txt; returns the exit status. step: prints a line of progress. SIGINT and SIGTERM
    interrupt it."""

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)

    def progress(text):
        print(f"tollway: {text}", flush=True)

    def failed(reason, status=RUN_FAILED):
        """Write the reason for the place that started this process. The console, which is read,
        too, gets it without the name of the command."""
        (out_dir / "error.txt").write_text(f"{reason}\n", encoding="utf-8",
                                           errors="backslashreplace")
        print(f"error: {reason}", file=sys.stderr, flush=True)
        return status

    try:
        raw = measure(progress)
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
