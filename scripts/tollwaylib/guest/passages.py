# SPDX-License-Identifier: GPL-2.0
"""The time of each UDP packet in the network: from its entry into the router before a
bottleneck until it leaves that router.

The times are timestamps of the kernel, of packets that tcpdump captured at both places. A
packet is identified by its flow and by the number that tollway-traffic(1) wrote into it.
"""

import signal
import subprocess

from ..errors import TollwayError
from .nodes import SINK_PORT
from .processes import GRACE_S
from .tracer import dropped

# Ethernet, IPv4 and UDP headers, and then the header of tollway-traffic.
PAYLOAD_AT, HEADER_BYTES = 42, 16
MAGIC = 0x544f4c4c
PCAP_NANO = 0xa1b23c4d
# Packets that entered so shortly before the end may still be on their way, s.
TAIL_S = 1.0
# Bins of delays: 0.1 packet times up to 50, and then 5 % each.
ROUNDING = 1e-3
FINE, FINE_UNITS, COARSE, COARSE_BINS = 0.1, 50, 1.05, 250


def bin_edges():
    """Upper ends of the bins of delays, in packet times."""
    fine = [round(FINE * number, 6)
            for number in range(1, round(FINE_UNITS / FINE) + 1)]
    return fine + [FINE_UNITS * COARSE ** number
                   for number in range(1, COARSE_BINS + 1)]


class Passages:
    """The captures of a case, over the only bottleneck of its paths."""

    def __init__(self, run, case_name):
        self.run, self.case_name = run, case_name
        topo = run.topo
        (self.link, (router, device)), = topo.priced.items()
        self.into = [(router, name) for name in topo.ways_in(router)]
        self.started = [self._start(node, name, "in")
                        for node, name in self.into]
        self.started.append(self._start(router, device, "out"))

    def _start(self, node, device, way):
        path = self.run.out_dir / f"passage-{device}.pcap"
        # tcpdump gives a file that it opens itself to a user of its own, which
        # the host refuses where the lab's user is not root.
        with path.open("wb") as capture:
            process = self.run.net[node].popen(
                ["tcpdump", "-i", device, "-Q", way, "-s",
                 str(PAYLOAD_AT + HEADER_BYTES), "-B", "16384", "-n",
                 "--time-stamp-precision=nano", "-w", "-",
                 f"udp dst port {SINK_PORT}"], stdin=subprocess.DEVNULL,
                stdout=capture, stderr=subprocess.PIPE)
        self.run.processes.append(process)
        return process, path

    def stop(self, epoch_ns, from_s, to_s):
        """End the captures; returns the results for the packets that entered in a window (s
        from the epoch, monotonic clock). Raises TollwayError if a capture has failed or
        missed packets."""
        import numpy

        for process, _ in self.started:
            process.send_signal(signal.SIGTERM)
        captures = []
        for process, path in self.started:
            _, said = process.communicate(timeout=GRACE_S)
            if process.returncode or dropped(said) != 0:
                raise TollwayError(
                    f"{self.case_name}: tcpdump did not see all packets: "
                    f"{said.decode(errors='replace').strip()}")
            captures.append(self._read(path))
            path.unlink()
        entered = numpy.concatenate(captures[:-1])
        return self._summary(entered, captures[-1], epoch_ns, from_s, to_s)

    def _read(self, path):
        """Array of (ns of the realtime clock, flow, number) of a capture."""
        import numpy

        data = path.read_bytes()
        if int.from_bytes(data[:4], "little") != PCAP_NANO:
            raise TollwayError(f"{path.name} is not a capture file with time "
                               "stamps in nanoseconds")
        records = numpy.frombuffer(data, offset=24, dtype=[
            ("s", "<u4"), ("ns", "<u4"), ("kept", "<u4"), ("length", "<u4"),
            ("headers", f"V{PAYLOAD_AT}"), ("magic", ">u4"), ("flow", ">u4"),
            ("number", ">u8")])
        if (records["magic"] != MAGIC).any():
            raise TollwayError(f"{path.name} has packets that tollway-traffic "
                               "did not send")
        found = numpy.empty(len(records), dtype=[
            ("ns", "i8"), ("flow", "i8"), ("key", "i8")])
        found["ns"] = records["s"].astype("i8") * 10**9 + records["ns"]
        found["flow"] = records["flow"]
        found["key"] = found["flow"] * 2**32 + records["number"].astype("i8")
        return found

    def _summary(self, entered, left, epoch_ns, from_s, to_s):
        import numpy

        link = self.run.topo.links_described[self.link]
        unit_s = 8 * self.run.topo.packet_bytes / link["capacity_bps"]
        # The kernel stamps by the realtime clock.
        epoch_ns += self.run.realtime_offset_ns()
        left = left[numpy.argsort(left["key"])]
        place = numpy.searchsorted(left["key"], entered["key"])
        place[place == len(left)] = 0
        known = left["key"][place] == entered["key"] if len(left) else \
            numpy.zeros(len(entered), dtype=bool)
        delay = numpy.full(len(entered), numpy.inf)
        if len(left):
            delay[known] = (left["ns"][place] - entered["ns"])[known] \
                / 1e9 / unit_s
        if (delay < 0).any():
            raise TollwayError(f"{self.case_name}: a packet left the network "
                               "before it entered: the two captures do not "
                               "belong to one run")
        at_s = (entered["ns"] - epoch_ns) / 1e9
        # A delay that is a bin's end to the us is within it.
        edges = [0.0] + [end + ROUNDING for end in bin_edges()]
        limit = self.run.parameters["time_limit"] + ROUNDING
        seconds = numpy.arange(0, to_s)
        found = {"unit_s": unit_s, "from_s": from_s, "to_s": to_s - TAIL_S,
                 "edges": bin_edges(), "t_s": seconds.tolist(),
                 "flows": {}}
        for flow in sorted(set(entered["flow"].tolist())):
            mine = entered["flow"] == flow
            chosen = mine & (at_s >= from_s) & (at_s < to_s - TAIL_S)
            counts, _ = numpy.histogram(delay[chosen & known],
                                        edges)
            in_time = mine & (delay <= limit)

            def each_second(which, weights=None):
                return numpy.histogram(at_s[which], [*seconds, to_s],
                                       weights=None if weights is None
                                       else weights[which])[0].tolist()
            found["flows"][str(flow)] = {
                "entered": int(chosen.sum()),
                "left": int((chosen & known).sum()),
                "delay_sum": float(delay[chosen & known].sum()),
                "counts": numpy.trim_zeros(counts, "b").tolist(),
                "entered_each_s": each_second(mine),
                "left_each_s": each_second(mine & known),
                "in_time_each_s": each_second(in_time),
                "delay_sum_each_s": each_second(mine & known, delay)}
        return found
