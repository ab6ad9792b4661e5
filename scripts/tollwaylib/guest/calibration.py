# SPDX-License-Identifier: GPL-2.0
"""The calibration of a network before anything is measured over it."""

import json
import time

from ..errors import TollwayError
from .nodes import SINK_PORT, address_of, shell
from .processes import GRACE_S, Programs

# Calibration: from here on the queue is full and the link busy, s; and so many
# packets are counted at least.
BUSY_S = 0.1
CALIBRATION_PACKETS = 100


class Calibration(Programs):
    """The calibration of the network of a run."""

    def calibrate(self):
        """Check the rate, the round trip and the place of losses of the network.

        Each priced link is overloaded by UDP through a short FIFO instead of the AQM. Then the
        AQM is put back. Raises TollwayError if a link does not do what the topology says:
        measurements over it would have no meaning.
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
        """The two hosts between which the overload of a link is sent.

        The source is that of a path that crosses only this link. If there is none, other links
        of a path could limit the overload, and the router before the link sends it.

        Raises TollwayError if no path crosses the link.
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
        """Overload one link for a short time; returns the measurements. Raises TollwayError if
        the link has another rate, if the overload was not dropped at its queue, or if this
        machine is too slow for it."""
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
        intf.change_aqm(self.topo.queues.get(link, self.job["aqm"]))
        return found

    def drops_elsewhere(self):
        """Packets lost at queues of the network that are not an AQM.

        The shaper and a netem above an AQM also count the drops of this AQM.
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
        """Smallest of three round trips over a path, in ms. Raises TollwayError if there is no
        answer."""
        sink = address_of(self.net[path["sink"]])
        text = shell(self.net[path["source"]],
                     f"ping -n -q -c 3 -i 0.1 -w 5 {sink}")
        for line in text.splitlines():
            if line.startswith("rtt "):
                return float(line.split("=")[1].split("/")[0])
        raise TollwayError(f"calibration failed: no answer from {sink}: {text}")
