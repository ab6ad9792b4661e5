# SPDX-License-Identifier: GPL-2.0
"""--trace: the hash is that of all packets, and a file of packets is complete."""

import hashlib
import json
import struct
import subprocess
import sys

import pytest
from run_bench import SHORT, tollway

from tollwaylib.errors import TollwayError
from tollwaylib.guest.tracer import Tracer

# Holds back what it captured until it is told to end, as tcpdump does.
# The signal may come while something is printed, so the handler uses no buffers.
CAPTURE = """import os, signal, sys
def told(number, frame):
    os.write(1, b"packets")
    os.write(2, b"7 packets captured\\n{} packets dropped by kernel\\n")
    raise SystemExit({})
signal.signal(signal.SIGTERM, told)
print("tcpdump: listening on x", file=sys.stderr, flush=True)
while True:
    signal.pause()
"""


def tracer(folder, dropped=0, status=0, keep=True, text=CAPTURE):
    """A Tracer of a program that stands for tcpdump."""
    made = Tracer("R1", subprocess.Popen(
        [sys.executable, "-c", text.format(dropped, status)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE), folder, keep)
    made.wait_until_ready()
    return made


@pytest.mark.parametrize("keep", [False, True])
def test_what_is_written_at_the_end_is_hashed(keep, tmp_path):
    folder = tmp_path / "my results; touch other"
    folder.mkdir()
    made = tracer(folder, keep=keep)
    assert made.stop() == f"{hashlib.sha256(b'packets').hexdigest()}  -\n"
    assert all(reader.poll() == 0 for reader in made.readers)
    assert (folder / "R1.pcap").exists() == keep
    if keep:
        assert (folder / "R1.pcap").read_bytes() == b"packets"
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize("words", [{"dropped": 3}, {"status": 1}])
def test_packets_that_are_missing_fail_the_run(words, tmp_path):
    with pytest.raises(TollwayError, match="did not record all packets of R1"):
        tracer(tmp_path, **words).stop()


def test_a_capture_that_does_not_begin(tmp_path):
    with pytest.raises(TollwayError, match="R1: no such device"):
        tracer(tmp_path, text="import sys; sys.exit('no such device')")


def test_a_run_records_every_packet(tmp_path):
    """The queue's own counters say how many there are at least."""
    done = tollway(*SHORT[:-1], "pcap", "--out", tmp_path)
    assert done.returncode in (0, 1), done.stderr
    folder = tmp_path / "seed-1"
    raw = json.loads((folder / "raw.json").read_text())
    for link, queue in raw["cases"][0]["queues"].items():
        data = (folder / f"{link}.pcap").read_bytes()
        assert (folder / f"trace-{link}.sha256").read_text() == \
            f"{hashlib.sha256(data).hexdigest()}  -\n"
        place, packets = 24, 0
        while place < len(data):
            place += 16 + struct.unpack_from("<I", data, place + 8)[0]
            packets += 1
        assert place == len(data)
        assert packets >= queue["stats_at_end"]["packets"] > 100
