# SPDX-License-Identifier: GPL-2.0
"""tollway-admit: two border hosts admit traffic to a third one.

    a1 --\\
          r ==[8 Mb/s: pfifo]== b
    a2 --/

A packet has 1000 bytes with its Ethernet header and takes 1 ms on the link to b, the unit of time of AACC
section 4. Samples have 1000 bytes too, and enter the queue of r past the gates.
"""

import json
import os
import re
import signal
import socket
import struct
import time
from pathlib import Path

from guest_base import (Namespace, amount, cleanup, mac, main, near, note,
                        quiet, run, start, wait_for_links)

TOOLS = Path("/run/tollway/src/tools")
ADMIT = str(TOOLS / "tollway-admit")
TRAFFIC = "/run/tollway/build/tools/tollway-traffic"
RATE_BPS, PACKET = 8_000_000, 1000
UNIT_S = PACKET * 8 / RATE_BPS
DATA, MAGIC = 5001, 0x544f4c4c
# Ethernet, IPv4 and UDP headers, before the header of tollway-traffic.
ETHERNET = 14
PAYLOAD_AT = ETHERNET + 20 + 8
KEY = Path("key")
SO_RCVBUFFORCE, SO_TIMESTAMPNS = 33, 35


class Borders:
    """The namespaces; the sources a1 and a2 have classes 1:10 for data to b."""

    def __init__(self):
        self.sources = [Namespace("a1"), Namespace("a2")]
        self.r, self.b = Namespace("r"), Namespace("b")
        for space in (*self.sources, self.r, self.b):
            quiet(space)
        ends = [(source, f"10.0.{number}", "out0") for number, source in
                enumerate(self.sources, start=1)] + [(self.b, "10.0.9", "out0")]
        for number, (space, net, device) in enumerate(ends):
            first, second = mac(2 * number + 1), mac(2 * number + 2)
            space.batch("ip", [
                f"link add {device} type veth peer name to{space.name} "
                f"netns {self.r.name}",
                f"link set {device} address {first} mtu {PACKET}",
                f"addr add {net}.1/24 dev {device}", f"link set {device} up",
                f"neigh add {net}.2 lladdr {second} dev {device} nud permanent",
                f"route add default via {net}.2"])
            self.r.batch("ip", [
                f"link set to{space.name} address {second} mtu {PACKET}",
                f"addr add {net}.2/24 dev to{space.name}",
                f"link set to{space.name} up",
                f"neigh add {net}.1 lladdr {first} dev to{space.name} "
                "nud permanent"])
            wait_for_links((space, device), (self.r, f"to{space.name}"))
        self.r.sysctl("net.ipv4.ip_forward", 1)
        self.r.batch("tc", [
            "qdisc add dev tob root handle 1: htb default 1",
            f"class add dev tob parent 1: classid 1:1 htb rate {RATE_BPS}bit "
            f"burst {PACKET} cburst {PACKET}",
            "qdisc add dev tob parent 1:1 pfifo limit 1000000"])
        for space, count in (*((source, 1) for source in self.sources),
                             (self.b, 2)):
            lines = ["qdisc add dev out0 root handle 1: htb default 20",
                     "class add dev out0 parent 1: classid 1:20 htb rate 1gbit"]
            for index in range(count):
                lines += [f"class add dev out0 parent 1: classid 1:{10 + index} "
                          "htb rate 100mbit",
                          f"qdisc add dev out0 parent 1:{10 + index} pfifo "
                          "limit 100000"]
            space.batch("tc", lines)
        for source in self.sources:
            source.run("tc filter add dev out0 parent 1: protocol ip u32 match ip "
                       f"dport {DATA} 0xffff flowid 1:10")
        self.daemons = []
        if not KEY.exists():
            run([ADMIT, "key", str(KEY)])

    def class_line(self, space):
        """The class 1:10 of a border as tc shows it, without its counters."""
        return next(line for line in
                    space.run("tc class show dev out0").splitlines()
                    if line.startswith("class htb 1:10 "))

    def rate_of(self, space):
        """The rate of that class in bit/s."""
        found = re.search(r" rate (\d+)([KMG]?)bit", self.class_line(space))
        return int(found[1]) * {"": 1, "K": 10**3, "M": 10**6,
                                "G": 10**9}[found[2]]

    def admit(self, space, peer, classid="1:10", port=5660, words=()):
        """Start a daemon on a border; its name for status()."""
        name = f"{space.name}-{classid.replace(':', '.')}.socket"
        with space:
            child = start([ADMIT, "run", "--peer", peer, "--key", str(KEY),
                           "--device", "out0", "--class", classid, "--rate",
                           f"{RATE_BPS}bit", "--packet", str(PACKET), "--port",
                           str(port), "--sample-bytes", str(PACKET - ETHERNET),
                           "--socket",
                           name, *words],
                          stderr=open(f"{name}.log", "a", encoding="utf-8"))
        self.daemons.append(child)
        return name, child

    def pair(self, number, words=(), data=False):
        """Daemons at a source (1 or 2) and at b; (name, child) of each. data:
        packets of data are samples."""
        port = 5660 + number
        source = self.sources[number - 1]
        near_end, far_end = f"10.0.{number}.1", "10.0.9.1"
        return (self.admit(source, far_end, port=port,
                           words=(*words, *(("--data", far_end) * data))),
                self.admit(self.b, near_end, f"1:{9 + number}", port,
                           (*words, *(("--data", near_end) * data))))

    def status(self, name):
        """The state of a daemon."""
        return json.loads(run([ADMIT, "status", "--socket", name]))

    def wait_for_state(self, name, state, seconds=10):
        """Wait for a state of a daemon; its status."""
        said = ""
        for _ in range(10 * seconds):
            # One of an earlier check may have left its socket, as it was killed.
            if Path(name).exists():
                said = run([ADMIT, "status", "--socket", name], check=False)
                if said.startswith("{"):
                    seen = json.loads(said)
                    if seen["state"] == state:
                        return seen
            time.sleep(0.1)
        raise AssertionError(f"{name} is not {state}: {said}" +
                             Path(f"{name}.log").read_text())

    def offer(self, load, seconds):
        """Poisson traffic of both sources, with a sum of `load` of the link."""
        for number, source in enumerate(self.sources, start=1):
            flows = Path(f"flows{number}")
            flows.write_text(
                f"id={number} dst=10.0.9.1 port={DATA} proto=udp "
                f"size={PACKET - PAYLOAD_AT} overhead={PAYLOAD_AT} "
                f"arrival=poisson "
                f"rate={round(load * RATE_BPS / 2)}\n")
            with source:
                start([TRAFFIC, "send", "--flows", str(flows), "--duration",
                       str(seconds), "--json", f"sent{number}.json"])


def capture(space, device):
    """A socket that sees what comes to, or leaves by, a device of a router."""
    with space:
        made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                             socket.htons(3))
        made.bind((device, 0))
        made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 26)
        made.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        made.setblocking(False)
    return made


def drain(capture_of, seen):
    """Note the time of each data packet that was captured, in s."""
    while True:
        try:
            frame, ancillary, _, _ = capture_of.recvmsg(
                PAYLOAD_AT + 16, socket.CMSG_SPACE(16))
        except BlockingIOError:
            return
        if len(frame) < PAYLOAD_AT + 16:
            continue
        magic, flow, sequence = struct.unpack_from("!IIQ", frame, PAYLOAD_AT)
        if magic == MAGIC:
            seconds, nanoseconds = struct.unpack("@ll", ancillary[0][2][:16])
            seen[flow, sequence] = seconds + nanoseconds / 1e9


def delays(borders, seconds):
    """Delays in the network of all data packets of some time, as
    {(flow, sequence): s or None if it is still there}."""
    arrived, left = {}, {}
    ins = [capture(borders.r, f"toa{number}") for number in (1, 2)]
    out = capture(borders.r, "tob")
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        time.sleep(0.5)
        for each in ins:
            drain(each, arrived)
        drain(out, left)
    for each in (*ins, out):
        each.close()
    # Those of the last half second may not have had the time.
    last = max(left.values(), default=0)
    return {key: left[key] - when if key in left else None
            for key, when in arrived.items() if when < last - 0.5}


def goodput(load, controlled, warmup_s=40, seconds=60, limit=10, words=(),
            data=False):
    """Share of the link that data has which stays in the network for at most
    `limit` packet times; (goodput, loss, mean delay in packet times)."""
    borders = Borders()
    names = []
    if controlled:
        for number in (1, 2):
            (name, _), _ = borders.pair(number, words, data)
            names.append(name)
        for name in names:
            borders.wait_for_state(name, "controlled")
    borders.offer(load, warmup_s + seconds + 10)
    time.sleep(warmup_s)
    seen = delays(borders, seconds)
    good = [value for value in seen.values()
            if value is not None and value <= limit * UNIT_S + 1e-6]
    known = [value for value in seen.values() if value is not None]
    betas = [borders.status(name)["beta"] for name in names]
    result = (len(good) * UNIT_S / seconds, 1 - len(good) / len(seen),
              sum(known) / len(known) / UNIT_S)
    note(f"offered {load:.2f}{'' if controlled else ', uncontrolled'}: goodput "
         f"{result[0]:.3f}, loss {100 * result[1]:.1f} %, mean delay "
         f"{result[2]:.1f} packets, beta {betas}")
    # A check that measures several loads builds the network for each.
    cleanup()
    return result


def check_static_below():
    """Below the link's rate everything passes, in time."""
    good, loss, _ = goodput(0.6, True, warmup_s=20, seconds=30)
    assert near(good, 0.6, 0.05) and loss < 0.06


def check_static_above():
    """At 1.0 and above goodput is level at 0.75 (AACC Figure 12)."""
    found = [goodput(load, True, seconds=amount(30, 60))[0]
             for load in amount([1.5], [1.0, 1.25, 1.5, 1.75, 2.0])]
    assert all(0.70 <= good <= 0.80 for good in found), found


def check_uncontrolled():
    """Without admission hardly anything is in time at 1.0 (Figure 12)."""
    good, loss, _ = goodput(1.0, False, warmup_s=100, seconds=30)
    assert good <= 0.2 and loss >= 0.8


def check_static_with_data_as_samples():
    """What samples took of the link is goodput: beyond Figure 12's level."""
    good, loss, _ = goodput(1.5, True, warmup_s=20, seconds=20, data=True,
                            words=("--start", "0.4"))
    assert good >= 0.82 and loss < 0.06, (good, loss)


def _one_path(data=False):
    borders = Borders()
    (name, child), (far, other) = borders.pair(1, ("--start", "1"), data)
    borders.wait_for_state(name, "controlled")
    borders.wait_for_state(far, "controlled")
    return borders, name, child, far, other


def check_the_class_is_put_back():
    """After SIGTERM and after SIGKILL the class is as it was."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        borders = Borders()
        before = borders.class_line(borders.sources[0])
        name, child = borders.admit(borders.sources[0], "10.0.9.1")
        time.sleep(1)
        assert near(borders.rate_of(borders.sources[0]), RATE_BPS / 4,
                    0.01), "not at its safe rate"
        child.send_signal(number)
        child.wait()
        time.sleep(0.5)
        assert borders.class_line(borders.sources[0]) == before
        assert Path(name).exists() == (number == signal.SIGKILL)
        cleanup()


def check_a_lost_peer():
    """Traffic goes on at the safe rate, and is controlled again later."""
    borders, name, _, far, other = _one_path()
    other.send_signal(signal.SIGSTOP)
    seen = borders.wait_for_state(name, "lost")
    assert seen["lost"] == 1 and seen["rate_bps"] == RATE_BPS / 4
    other.send_signal(signal.SIGCONT)
    borders.wait_for_state(name, "controlled")
    other.send_signal(signal.SIGTERM)
    other.wait()
    borders.wait_for_state(name, "lost")
    borders.admit(borders.b, "10.0.1.1", "1:10", 5661)
    seen = borders.wait_for_state(name, "controlled")
    assert seen["sessions"] == 2 and seen["refused"]["replay"] == 0


def check_a_class_that_goes():
    """Deleted, made anew, and changed by somebody else."""
    borders, name, child, _, _ = _one_path()
    a1 = borders.sources[0]
    a1.run("tc filter del dev out0 parent 1:")
    a1.run("tc class del dev out0 classid 1:10")
    borders.wait_for_state(name, "no-class")
    a1.run("tc class add dev out0 parent 1: classid 1:10 htb rate 5mbit")
    borders.wait_for_state(name, "controlled")
    # The end of a quota interval sets the rate.
    time.sleep(0.2)
    seen = borders.status(name)
    assert seen["class_changes"] == 1
    assert near(borders.rate_of(a1), seen["rate_bps"], 0.1)
    a1.run("tc class change dev out0 parent 1: classid 1:10 htb rate 6mbit")
    time.sleep(1.5)
    seen = borders.status(name)
    assert seen["class_changes"] == 2
    assert near(borders.rate_of(a1), seen["rate_bps"], 0.1)
    child.send_signal(signal.SIGTERM)
    child.wait()
    assert borders.rate_of(a1) == 6_000_000


def check_a_link_that_goes_down():
    """It is lost while the link is down, and nothing ends."""
    borders, name, child, _, _ = _one_path()
    borders.sources[0].run("ip link set out0 down")
    borders.wait_for_state(name, "lost")
    borders.sources[0].run("ip link set out0 up")
    borders.sources[0].run("ip route replace default via 10.0.1.2")
    borders.wait_for_state(name, "controlled")
    assert child.poll() is None


def _recorded_to_b(borders):
    """Samples from a1 to b of half a second, as frames that r may send to b."""
    tap = capture(borders.r, "toa1")
    time.sleep(0.5)
    addresses = bytes.fromhex(mac(5).replace(":", "") + mac(6).replace(":", ""))
    found = []
    while True:
        try:
            frame = tap.recv(2048)
        except BlockingIOError:
            break
        if frame[23:24] == b"\x11" and frame[42:46] == b"TAS1" and \
                frame[30:34] == bytes((10, 0, 9, 1)):
            # No checksum of UDP, which is incomplete where it was recorded.
            found.append(bytearray(addresses + frame[12:40] + bytes(2) +
                                   frame[42:]))
    tap.close()
    assert len(found) > 20
    return found


def _injector(borders):
    """A socket for frames from r to b."""
    with borders.r:
        out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        out.bind(("tob", 0))
    return out


def check_replays_while_borders_restart():
    """One recorded sample, a thousand times a second, delays no start by more than
    some samples. Either border starts again, and then both do.

    With 10 samples a second nearly every answer of b is behind a replay.
    """
    borders, _, near_child, _, far_child = _one_path()
    old = _recorded_to_b(borders)[0]
    out = _injector(borders)
    children = [near_child, far_child]
    for again in ([0], [1], [0, 1]):
        for index in again:
            children[index].send_signal(signal.SIGTERM)
            children[index].wait()
        for index in again:
            space, peer = ((borders.sources[0], "10.0.9.1"),
                           (borders.b, "10.0.1.1"))[index]
            _, children[index] = borders.admit(space, peer, port=5661, words=(
                "--interval", "100ms"))
        names = [f"{space}-1.10.socket" for space in ("a1", "b")]
        while not all(Path(name).exists() for name in names):
            time.sleep(0.01)
        ends = time.monotonic() + 2
        while time.monotonic() < ends:
            out.send(old)
            time.sleep(0.001)
        seen = [borders.status(name) for name in names]
        assert all(one["state"] == "controlled" and one["heard_ms_ago"] < 500
                   for one in seen), seen
    out.close()


def check_forged_and_replayed():
    """What was recorded, reflected or made without the key moves nothing."""
    borders, name, _, far, _ = _one_path()
    to_b = _recorded_to_b(borders)
    before = borders.status(far)
    out = _injector(borders)
    for again in to_b[:20]:
        out.send(again)
        # Its stamp.
        again[PAYLOAD_AT + 48 + 7] ^= 1
        out.send(again)
    out.close()
    time.sleep(0.5)
    after = borders.status(far)
    assert after["refused"]["replay"] - before["refused"]["replay"] == 20
    assert after["refused"]["key"] - before["refused"]["key"] == 20
    assert after["sessions"] == 1 and after["state"] == "controlled"
    assert borders.status(name)["state"] == "controlled"


def _more(borders, name, seconds):
    """What the counters of a daemon gain in some time; its status after it."""
    before = borders.status(name)
    time.sleep(seconds)
    after = borders.status(name)
    return {key: after[key] - before[key] for key in
            ("sent", "reports", "data_sent", "data_reports")}, after


def check_data_are_samples():
    """Samples are sent only where data are none, or where the peer does not
    look at them."""
    borders, name, _, far, other = _one_path(data=True)
    seconds, turns = 5, 500
    gained, seen = _more(borders, name, seconds)
    assert near(gained["sent"], turns, 0.02) and not gained["data_sent"]
    assert seen["samples"] == "own"
    # Nothing is to come back from a port without a socket: that would be data.
    with borders.b:
        sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sink.bind(("", DATA))
    # 250 packets a second of each source, until the end of this check.
    borders.offer(0.5, 60)
    time.sleep(2)
    gained, seen = _more(borders, name, seconds)
    note(f"with data: {gained}, delay {seen['delay_ms']} ms")
    assert seen["samples"] == "data"
    # Two in each quota of ten turns, and one of its own at a turn to which no data
    # came since the last: with Poisson arrivals these are a tenth of the turns.
    assert gained["sent"] <= turns / 3
    assert gained["data_reports"] >= 0.95 * gained["data_sent"] > turns / 2
    assert gained["reports"] - gained["data_reports"] <= gained["sent"] / 2
    # That direction has none.
    gained, _ = _more(borders, far, seconds)
    assert near(gained["sent"], turns, 0.02) and not gained["data_sent"]
    # A peer that does not look.
    other.send_signal(signal.SIGTERM)
    other.wait()
    borders.wait_for_state(name, "lost")
    borders.admit(borders.b, "10.0.1.1", "1:10", 5661)
    borders.wait_for_state(name, "controlled")
    gained, seen = _more(borders, name, seconds)
    assert near(gained["sent"], turns, 0.02), gained
    assert gained["data_sent"] and not gained["data_reports"]
    assert seen["samples"] == "own" and seen["state"] == "controlled"
    sink.close()


def check_two_daemons_on_one_class():
    """The second one gives up, and the class stays with the first."""
    borders, name, _, _, _ = _one_path()
    second, child = borders.admit(borders.sources[0], "10.0.9.1", port=5999)
    # The name of the status socket is that of the first one.
    assert second == name and child.wait() == 2
    with borders.sources[0]:
        child = start([ADMIT, "run", "--peer", "10.0.9.1", "--key", str(KEY),
                       "--device", "out0", "--class", "1:10", "--rate", "8mbit",
                       "--port", "5999", "--socket", "other"],
                      stderr=open("other.log", "w", encoding="utf-8"))
    assert child.wait() == 2
    said = Path("other.log").read_text()
    assert "another tollway-admit holds this class" in said, said
    assert not Path("other").exists()
    assert borders.status(name)["state"] == "controlled"


def check_a_clock_that_steps():
    """A step of the realtime clock of both borders moves no delay."""
    borders, name, _, _, _ = _one_path()
    for seconds in (3600, -7200, 3600):
        time.clock_settime(time.CLOCK_REALTIME,
                           time.clock_gettime(time.CLOCK_REALTIME) + seconds)
        time.sleep(1)
    seen = borders.status(name)
    assert seen["clock_steps"] >= 3 and seen["beta"] == 1.0, seen
    assert abs(seen["delay_ms"]) < 1, seen


if __name__ == "__main__":
    # The state of a daemon is written where this script runs.
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    main(globals())
