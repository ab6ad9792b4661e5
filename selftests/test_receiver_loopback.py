# SPDX-License-Identifier: GPL-2.0
"""Streams of which the receiver controls the rate (law=pp of tollway-traffic) on loopback:
both programs, packets that no sender and reports that no receiver should have sent."""

import json
import random
import shutil
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent
TIMEOUT_S = 20
MAGIC = 0x50414952
WRAP = 1 << 32
PAIR = struct.Struct(">IIIIHHI")
REPORT = struct.Struct(">IIIII")


@pytest.fixture(scope="session")
def traffic(tmp_path_factory):
    """tollway-traffic, built here."""
    if not shutil.which("make") or not shutil.which("cc"):
        pytest.skip("make or a C compiler is missing")
    folder = tmp_path_factory.mktemp("tools")
    subprocess.run(["make", "-s", "-C", TOP / "tools", f"O={folder}",
                    folder / "tollway-traffic"], check=True, timeout=120)
    return folder / "tollway-traffic"


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Sink:
    """A running sink on loopback."""

    def __init__(self, traffic, *words):
        self.port = free_port()
        self.process = subprocess.Popen(
            [traffic, "sink", "--port", str(self.port), "--bind", "127.0.0.1",
             *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            with socket.socket() as tried:
                if not tried.connect_ex(("127.0.0.1", self.port)):
                    return
            assert self.process.poll() is None, self.process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def stop(self):
        time.sleep(0.1)
        self.process.send_signal(signal.SIGTERM)
        out, error = self.process.communicate(timeout=TIMEOUT_S)
        assert self.process.returncode == 0, error
        return json.loads(out)


@pytest.fixture
def sink(traffic):
    running = Sink(traffic, "--sample-ms", "50")
    yield running
    if running.process.poll() is None:
        running.process.kill()
        running.process.communicate()


def send(traffic, words, *arguments, status=0):
    done = subprocess.run(
        [traffic, "send", "--flows", "-", *arguments], input=words, text=True,
        capture_output=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)["flows"] if done.stdout else done.stderr


def test_a_stream_over_loopback(traffic, sink):
    flow, = send(traffic, f"id=1 dst=127.0.0.1 port={sink.port} proto=udp law=pp "
                          "rate=4m size=500 bytes=95200\n", "--duration", "5")
    # 476 bytes of each packet are data.
    assert flow["packets"] == 200 and not flow["refused"] and not flow["error"]
    law = flow["law"]
    assert law["reports"] and law["min_rtt_us"] and not law["foreign"]
    assert not law["truncated"] + law["absurd"] + law["repeated"]
    peer, = sink.stop()["udp"]
    assert peer["packets"] == 200 and peer["bytes"] == 100_000
    assert peer["law"]["pairs"] == 100 and peer["law"]["lost"] == 0
    assert law["reports"] <= peer["law"]["reports"] <= 200
    assert sum(peer["received_bytes"]) == 95_200
    assert peer["next_sequence"][-1] == 200
    # 200 packets of 4000 bits at 4 Mb/s take 0.2 s, whatever is reported.
    assert flow["stop_s"] >= 0.19


def test_frames_of_a_stream(traffic, sink):
    flow, = send(traffic, f"id=1 dst=127.0.0.1 port={sink.port} proto=udp law=pp "
                          "rate=8m size=524 frame=4900 every=0.02 floor=100k\n",
                 "--duration", "0.5")
    frames = flow["frames"]
    assert 20 <= len(frames["t_s"]) <= 25
    assert frames["packets"] == sorted(frames["packets"])
    # The least is 250 bytes, and a whole frame is ten packets of 500.
    assert min(frames["bytes"]) >= 250 and max(frames["bytes"]) <= 4900
    assert frames["bytes"][0] == 250 and 4900 in frames["bytes"]
    assert flow["packets"] <= frames["packets"][-1]


def test_a_sink_that_is_lied_to(traffic, sink):
    """More than 4096 senders, half packets, noise; then it still serves one."""
    rng = random.Random(7)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as liar:
        liar.bind(("127.0.0.1", 0))
        port = liar.getsockname()[1]
        for number in range(3000):
            noise = rng.randbytes(rng.randrange(0, 60))
            liar.sendto(struct.pack(">I", MAGIC) + noise,
                        ("127.0.0.1", sink.port))
            if number % 100 == 0:
                time.sleep(0.005)
    flow, = send(traffic, f"id=1 dst=127.0.0.1 port={sink.port} proto=udp law=pp "
                          "rate=4m size=500 bytes=47600\n", "--duration", "5")
    assert flow["law"]["reports"]
    found = {peer["peer"]: peer for peer in sink.stop()["udp"]}
    lies = found[f"127.0.0.1:{port}"]["law"]
    assert lies["truncated"] and lies["far"]
    assert found[f"127.0.0.1:{flow['local_port']}"]["packets"] == 100


def test_law_after_other_packets(traffic, sink):
    """A socket that is polled finds out, and then waits for the stream."""
    first, second = send(
        traffic, f"id=1 dst=127.0.0.1 port={sink.port} proto=udp rate=800k\n"
                 f"id=2 dst=127.0.0.1 port={sink.port} proto=udp law=pp "
                 "rate=4m size=500 start=0.2\n", "--duration", "0.5")
    assert second["law"]["reports"] > 10
    peers = {peer["peer"].split(":")[1]: peer for peer in sink.stop()["udp"]}
    assert peers[str(second["local_port"])]["law"]["pairs"] > 10
    assert "law" not in peers[str(first["local_port"])]
    assert first["packets"] == 52


class Liar:
    """What answers a sender: as a sink would, and then whatever it likes."""

    def __init__(self, traffic, words, duration_s):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(0.05)
        self.port = self.socket.getsockname()[1]
        self.process = subprocess.Popen(
            [traffic, "send", "--flows", "-", "--duration", str(duration_s)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.process.stdin.write(f"id=1 dst=127.0.0.1 port={self.port} "
                                 f"proto=udp law=pp {words}\n")
        self.process.stdin.close()
        self.process.stdin = None
        self.seen = []              # (sequence, stamp in us, pair, wish, srtt)

    def packet(self):
        """The next one, or None."""
        try:
            payload, self.sender = self.socket.recvfrom(65536)
        except TimeoutError:
            return None
        magic, _, *rest = PAIR.unpack(payload[:PAIR.size])
        assert magic == MAGIC
        self.seen.append(rest)
        return rest

    def tell(self, rate_kbps, received=None, highest=None, lost=0, echo=None):
        last = self.seen[-1]
        self.socket.sendto(REPORT.pack(
            last[0] if highest is None else highest,
            len(self.seen) if received is None else received, lost, rate_kbps,
            last[1] if echo is None else echo), self.sender)

    def end(self):
        while self.process.poll() is None:
            self.packet()
        out, error = self.process.communicate(timeout=TIMEOUT_S)
        assert self.process.returncode == 0, error
        self.socket.close()
        return json.loads(out)["flows"][0]


def test_reports_that_are_refused(traffic):
    liar = Liar(traffic, "rate=1m size=500 setpoint=33 report-rtt=0.5", 0.6)
    first, second = liar.packet(), liar.packet()
    assert first[0] == 0 and second[0] == 1
    assert first[1] == second[1]                        # they left as one
    assert (first[2], second[2]) == (0, 1)                  # halves of pair 0
    assert first[3] == 2 << 9 | 33 and first[4] == 0
    # Nothing more until a report comes.
    assert liar.packet() is None
    for length in (0, 1, 19, 21, 1000):
        liar.socket.sendto(bytes(length), liar.sender)
    liar.tell(0)                                        # a rate of 0
    liar.tell(500, highest=2)                           # never sent
    liar.tell(500, highest=WRAP - 1)
    liar.tell(500, received=3)
    liar.tell(500, lost=1000)
    liar.tell(500, echo=(first[1] + 10_000_000) % WRAP)     # of the future
    liar.tell(500, echo=(first[1] - 60_000_000) % WRAP)     # a minute ago
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        other.sendto(REPORT.pack(1, 2, 0, 500, first[1]), liar.sender)
    assert liar.packet() is None
    liar.tell(500)
    assert liar.packet()[4] > 0                         # a round trip is known
    liar.tell(500, received=2, highest=1)               # the same again
    flow = liar.end()
    law = flow["law"]
    assert law["reports"] == 1 and law["repeated"] == 1
    assert (law["truncated"], law["absurd"], law["foreign"]) == (5, 7, 1)
    assert flow["error"] is None and not law["cut"]


def test_no_report_leads_to_more_than_the_greatest_rate(traffic):
    # 1 Mb/s of 528 bytes, headers included: 237 packets a second.
    liar = Liar(traffic, "rate=1m size=500 overhead=28", 1.0)
    began = None
    while liar.process.poll() is None:
        if liar.packet() and liar.seen[-1][2] % 2:
            began = began or time.monotonic()
            liar.tell(WRAP - 1)
    flow = liar.end()
    assert flow["law"]["cut"] == flow["law"]["reports"] > 20
    assert flow["law"]["rate_kbps"] == 1000
    assert 50 < flow["packets"] <= 237 + 4


def test_a_rate_is_halved_where_reports_are_missing(traffic):
    """After the round trip and four intervals, and again after each four."""
    liar = Liar(traffic, "rate=10m size=500", 1.5)
    liar.packet(), liar.packet()
    time.sleep(0.02)
    liar.tell(2000)
    flow = liar.end()
    srtt_s = flow["law"]["srtt_us"] / 1e6
    assert srtt_s >= 0.02
    law = flow["law"]
    assert 2 <= law["halved"] <= 1.5 / (4 * srtt_s)
    assert law["rate_kbps"] == max(2000 >> law["halved"], 1)
    # The sum of the halves is less than twice the first.
    assert flow["packets"] < 4 + 2 * 5 * srtt_s * 2e6 / 4000 * 1.5 + 8
    # It goes on to ask, though slowly.
    gaps = [after[1] - before[1] for before, after in
            zip(liar.seen[2::2], liar.seen[4::2])]
    assert gaps[-1] > 4 * gaps[0] > 0


def test_a_sender_without_a_receiver_asks_once_a_second(traffic):
    liar = Liar(traffic, "rate=10m size=500", 2.5)
    flow = liar.end()
    assert flow["packets"] == 6 and not flow["law"]["reports"]


@pytest.mark.parametrize("words, sentence", [
    ("proto=udp rate=1m setpoint=2", "setpoint= needs law="),
    ("proto=udp rate=1m report-rtt=1", "report-rtt= needs law="),
    ("law=pp rate=1m", "law= is not for proto=tcp"),
    ("proto=udp law=pq rate=1m", "expected pp"),
    ("proto=udp law=pp", "rate= is missing"),
    ("proto=udp law=pp rate=1m setpoint=0", "from 1 to 511"),
    ("proto=udp law=pp rate=1m setpoint=512", "from 1 to 511"),
    ("proto=udp law=pp rate=1m report-rtt=0", "a multiple of 0.25"),
    ("proto=udp law=pp rate=1m report-rtt=0.3", "a multiple of 0.25"),
    ("proto=udp law=pp rate=1m report-rtt=32", "a multiple of 0.25"),
    ("proto=udp law=pp rate=1m size=24", "from 25 to 32753"),
    ("proto=udp law=pp rate=1m size=32754", "from 25 to 32753"),
    ("proto=udp law=pp rate=1m arrival=poisson", "arrival= and law="),
    ("proto=udp law=pp rate=1m frame=10", "frame= needs every="),
    ("proto=udp law=pp rate=1m every=1", "every= needs frame="),
    ("proto=udp law=pp rate=1m floor=1k", "floor= needs frame="),
    ("proto=udp law=pp rate=1m frame=10 every=0", "every=0: expected"),
    ("proto=udp law=pp rate=1m frame=10 every=1 bytes=9", "bytes= and frame="),
    ("proto=udp law=pp rate=1m frame=10 every=1 on=1 off=1", "on= and frame="),
    ("proto=udp law=pp rate=1m repeat=2 bytes=9", "repeat= is not for"),
])
def test_words_that_do_not_fit(traffic, words, sentence):
    complaint = send(traffic, f"id=1 dst=127.0.0.1 port=9 {words}\n", status=2)
    assert sentence in complaint
