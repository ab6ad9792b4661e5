# SPDX-License-Identifier: GPL-2.0
"""Connections over paths that do what paths do: every byte is delivered, and
the rate recovers.

One connection meets one trouble after another. What arrives is compared with
what was sent, by checksum, and after each trouble the goodput must be back at
nine tenths of what the path allows, within the seconds that are stated. These
begin when TCP sends again: after bursts of loss it may wait for its timer.
"""

import hashlib
import random
import socket
import subprocess
import sys
import time
from pathlib import Path

import guest_base
import tcp_bench
from guest_base import mac, note, run, start
from pp_bench import fair_path, pp_info
from rtnl import options
from tcp_bench import TCP_CONGESTION, info, pump, settle

RATE_BPS = 3 * 10**6
RTT_MS = 40
PORT = tcp_bench.PORT + 2
# netem keeps what it was told of corruption until it is told otherwise.
CALM = "delay 0ms corrupt 0% limit 100000"
SECONDS, WINDOW_S = 2, 1.5
# Of what the link carries.
RECOVERED = 0.9
# {congestion control: (name of the receiver's, seconds after which it must have
# recovered)}
FLAVOURS = {"sbrm": ("sbrm", 10), "rm": ("reno", 10), "pp": ("reno", 10)}


class Stream:
    """A connection that sends numbered bytes, and a receiver that sums them."""

    BLOCK, SHIFTS = 1 << 16, 251

    def __init__(self, path, cc, sink):
        self.file = Path(f"received-{cc}")
        self.file.unlink(missing_ok=True)
        with path.d:
            start([sys.executable, __file__, "receive", str(PORT), sink,
                   str(self.file)])
            while not run(f"ss -Htln sport = :{PORT}").strip():
                time.sleep(0.01)
        self.socket = path.connect(cc, port=PORT)
        self.socket.setblocking(False)
        # Without it what is written now leaves seconds later.
        self.socket.setsockopt(socket.IPPROTO_TCP, 25, 1 << 16)
        self.bytes = memoryview(random.Random(
            guest_base.SETTINGS["seed"]).randbytes(self.BLOCK + self.SHIFTS))
        self.sum = hashlib.sha256()
        self.sent = 0

    def next_data(self):
        """What comes next: no two blocks in a row are alike."""
        block, done = divmod(self.sent, self.BLOCK)
        first = block % self.SHIFTS
        return self.bytes[first + done:first + self.BLOCK]

    def pump(self, seconds):
        """Keep it busy."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            try:
                while True:
                    data = self.next_data()
                    count = self.socket.send(data)
                    self.sum.update(data[:count])
                    self.sent += count
            except BlockingIOError:
                time.sleep(min(left, 0.05))

    def goodput(self, seconds):
        """bit/s acknowledged."""
        before, began = info(self.socket).bytes_acked, time.monotonic()
        self.pump(seconds)
        return (info(self.socket).bytes_acked - before) * 8 / \
            (time.monotonic() - began)

    def finish(self):
        """All that was sent must have arrived as it was."""
        settle(self.socket)
        self.socket.close()
        for _ in range(1000):
            if self.file.exists():
                break
            time.sleep(0.1)
        count, digest = self.file.read_text().split()
        assert int(count) == self.sent, (count, self.sent)
        assert digest == self.sum.hexdigest(), "other bytes arrived"


def receive(port, cc, name):
    """Sum up what one connection brings."""
    server = socket.create_server(("", int(port)))
    server.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, cc.encode())
    there, _ = server.accept()
    there.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1 << 15)
    found, count = hashlib.sha256(), 0
    while data := there.recv(1 << 20):
        found.update(data)
        count += len(data)
    part = Path(name + ".part")
    part.write_text(f"{count} {found.hexdigest()}\n")
    part.rename(name)


def a_path(cc):
    """A path with the queue that the congestion control is made for."""
    if cc == "pp":
        return fair_path(20, rate_bps=RATE_BPS, rtt_ms=RTT_MS)
    path = tcp_bench.Path(rate_bps=RATE_BPS, rtt_ms=RTT_MS,
                          sink=FLAVOURS[cc][0],
                          aqm=options(limit=1000, target=10, gamma=0.015))
    # What meets the trouble are packets.
    path.s.run("ip link set dev right gso_max_segs 1")
    return path


class Trouble:
    """What happens to a path, and how it ends. `share`: what of the goodput of
    the calm path is left for good. `least`: what of that there must be
    meanwhile. `recovers_s`: so many seconds later the rate has recovered while
    it lasts; 0: it does not."""

    share = 1
    least = 0
    recovers_s = 0

    def begin(self, path):
        """Make it."""

    def end(self, path):
        """Take it back."""


class Netem(Trouble):
    """What netem does to the packets that go to the receiver."""

    def __init__(self, words, least=0):
        self.words, self.least = words, least

    def begin(self, path):
        path.ahead(f"{self.words} limit 100000")

    def end(self, path):
        path.ahead(CALM)

    def __str__(self):
        return self.words


class Delay(Trouble):
    """Another route: the way back takes so many ms, for a while. A longer one
    holds more than the window that was."""

    def __init__(self, ms, recovers_s=10):
        self.ms, self.least = ms, 0.95 if ms < RTT_MS else 0
        self.recovers_s = recovers_s

    def change(self, path, ms):
        """A packet that left before may come after those that leave now."""
        path.r2.run(f"tc qdisc change dev left root netem delay {ms}ms "
                    "limit 1000000")

    def begin(self, path):
        self.change(path, self.ms)

    def end(self, path):
        self.change(path, RTT_MS)

    def __str__(self):
        return f"round trip of {self.ms} ms"


class Mtu(Trouble):
    """Another route, whose packets are smaller: ICMP says so. What is lost for
    that has to be sent again, but costs no window."""

    least = 0.75

    def __init__(self, size):
        self.size = size

    def begin(self, path):
        path.r2.run(f"ip link set dev right mtu {self.size}")

    def end(self, path):
        path.r2.run("ip link set dev right mtu 1500")

    @property
    def share(self):
        """Headers are more of each packet, until the route is forgotten."""
        return (self.size - 52) / (self.size + 14) * tcp_bench.PACKET / 1448

    def __str__(self):
        return f"MTU {self.size}"


class Down(Trouble):
    """A link is down, with the routes over it."""

    def begin(self, path):
        path.r1.run("ip link set dev right down")

    def end(self, path):
        path.r1.batch("ip", [
            "link set dev right up",
            f"neigh replace 10.0.1.2 lladdr {mac(4)} dev right nud permanent",
            "route replace 10.0.2.0/24 via 10.0.1.2"])

    def __str__(self):
        return "link down"


class Bleached(Trouble):
    """A box that takes CE (bleach), or all of ECN (clear), off."""

    least = 0.9

    def __init__(self, how):
        self.how, self.child = how, None

    def begin(self, path):
        path.black_hole(True)
        with path.r2:
            self.child = subprocess.Popen([sys.executable, tcp_bench.__file__,
                                           self.how, "left", "right"])
        time.sleep(0.2)

    def end(self, path):
        self.child.kill()
        self.child.wait()
        path.black_hole(False)

    def __str__(self):
        return f"ECN: {self.how}"


def back_after(stream, due_bps, limit_s):
    """Seconds until the goodput is recovered, or None."""
    began = time.monotonic()
    while time.monotonic() - began < limit_s:
        ending = time.monotonic() + WINDOW_S
        if stream.goodput(WINDOW_S) >= RECOVERED * due_bps:
            return round(ending - WINDOW_S - began, 1)
    return None


def silent_s(stream):
    """Seconds until the retransmission timer lets TCP send again.

    Each retransmission that is lost doubles that timer, whatever the congestion
    control: after ten seconds of losses TCP sends nothing for up to 8 s more.
    """
    now = info(stream.socket)
    if not now.backoff:
        return 0
    return max(now.rto / 1e6 - now.last_data_sent / 1e3, 0)


def through(cc, troubles, seconds=SECONDS):
    """One connection through all of them; the last must leave no trace."""
    sink, limit_s = FLAVOURS[cc]
    path = a_path(cc)
    path.ahead(CALM)
    stream = Stream(path, cc, sink)
    full = RATE_BPS * 1448 / tcp_bench.PACKET
    assert back_after(stream, full, 20) is not None, \
        f"{cc} never had the link: {info(stream.socket)}"
    slow = []
    share = 1
    for trouble in troubles:
        share = min(share, trouble.share)
        trouble.begin(path)
        meanwhile, during = stream.goodput(seconds), None
        if trouble.recovers_s:
            during = back_after(stream, share * full, trouble.recovers_s)
        trouble.end(path)
        waits_s = silent_s(stream)
        took = back_after(stream, share * full, limit_s + waits_s)
        last = info(stream.socket)
        note(f"{cc}, {trouble}: {meanwhile / full:.3f} of the link at first, "
             f"recovered {during} s later, or {took} s after it (silent for "
             f"{waits_s:.1f} s); cwnd {last.cwnd}, {last.total_retrans} "
             f"retransmitted, {last.rto / 1000:.0f} ms RTO, state "
             f"{last.ca_state}")
        if meanwhile < trouble.least * share * full or \
           (trouble.recovers_s and during is None):
            slow.append(f"{trouble} (meanwhile)")
        if took is None:
            slow.append(str(trouble))
            back_after(stream, share * full, 60)
    stream.finish()
    assert not slow, f"{cc} was too slow, or had not recovered " \
        f"after {limit_s} s: {slow}"


def one_of_each():
    """One of each kind."""
    return [Netem("loss 2%"), Netem("loss 30%"),
            Netem("delay 20ms reorder 75% 50%"), Netem("duplicate 10%", 0.98),
            Netem("corrupt 3%"), Delay(120), Delay(10), Bleached("bleach"),
            Down(), Mtu(1000)]


def check_sbrm():
    """sbrm through one trouble of each kind."""
    through("sbrm", one_of_each())


def check_rm():
    """rm through one trouble of each kind."""
    through("rm", one_of_each())


def check_pp():
    """pp through one trouble of each kind."""
    through("pp", one_of_each())


def check_pp_longer():
    """The way grows after the queue seemed to be shared, and R was raised lately."""
    through("pp", [Mtu(576), Netem("delay 20ms reorder 50% 25%"),
                   Netem("corrupt 10%"), Delay(400, 40)], 10)


def check_pp_longer_short():
    """The way grows where few packets fit into it: the link is used again."""
    for rate_mbit, ms, later_ms in ((3, 10, 25), (3, 20, 40), (10, 40, 160)):
        path = fair_path(2, rate_bps=rate_mbit * 10**6, rtt_ms=ms)
        flow = path.connect("pp")
        pump([flow], 3)
        path.r2.run(f"tc qdisc change dev left root netem delay {later_ms}ms "
                    "limit 1000000")
        pump([flow], 4)
        before, began = info(flow).bytes_acked, time.monotonic()
        pump([flow], 8)
        used = (info(flow).bytes_acked - before) * 8 / \
            (time.monotonic() - began) / (rate_mbit * 10**6 * 1448 /
                                          tcp_bench.PACKET)
        note(f"{rate_mbit} Mb/s, {ms} to {later_ms} ms: {used:.3f} of the link "
             f"after 4 s, {pp_info(flow)}")
        assert used >= 0.95
        guest_base.cleanup()


def all_kinds():
    """The ranges, combinations, and twice the same."""
    kinds = [*(Netem(f"loss {percent}%") for percent in (
        0.1, 1, 5, 10, 15, 20, 25, 30)),
        Netem("loss gemodel 1% 20%"),
        *(Netem(f"delay {ms}ms {ms // 2}ms") for ms in (4, 20, 60)),
        *(Netem(f"delay {ms}ms reorder {percent}% 25%")
          for ms, percent in ((5, 99), (20, 50), (50, 90))),
        *(Netem(f"duplicate {percent}%", 0.98) for percent in (1, 50)),
        *(Netem(f"corrupt {percent}%") for percent in (0.1, 1, 10, 20)),
        Netem("delay 10ms 5ms loss 5% duplicate 5% corrupt 2%"),
        Delay(400, 40), Delay(5), Delay(80), Bleached("bleach"), Bleached("clear"),
        Down(), Mtu(1300), Mtu(576)]
    random.Random(guest_base.SETTINGS["seed"]).shuffle(kinds)
    # Sizes only ever shrink: what the route learnt lasts for ten minutes.
    return kinds


def check_many_sbrm():
    """sbrm through many, in an order by the seed."""
    through("sbrm", all_kinds(), 10)


def check_many_rm():
    """rm through many, in an order by the seed."""
    through("rm", all_kinds(), 10)


def check_many_pp():
    """pp through many, in an order by the seed."""
    through("pp", all_kinds(), 10)


if __name__ == "__main__":
    if sys.argv[1:2] == ["receive"]:
        receive(*sys.argv[2:])
    else:
        guest_base.main(globals())
