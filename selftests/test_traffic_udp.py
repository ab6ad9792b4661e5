# SPDX-License-Identifier: GPL-2.0
"""tollway-traffic over UDP: rates, random arrivals, ECN."""

import math
import shutil
import statistics
import subprocess
import sys

import pytest
from traffic_bench import TIMEOUT_S, TOOLS, Sink, send

pytest_plugins = ["traffic_bench"]


def test_constant_rate_sends_its_packets(namespace, tools, sink):
    # 972 byte payloads at 3.888 Mb/s: one every 2 ms; 1 kB at 0.8 Mb/s with
    # the headers counted: one every 10.28 ms.
    sent, _ = send(namespace, tools,
                   "id=1 dst=127.0.0.1 port=5001 proto=udp rate=3.888m\n"
                   "id=2 dst=127.0.0.1 port=5001 proto=udp rate=800k "
                   "size=1000 overhead=28 start=0.1 stop=0.4\n",
                   "--duration", "0.5")
    received = sink.stop()
    assert [flow["packets"] for flow in sent["flows"]] == [250, 30]
    assert sent["flows"][1]["bytes"] == 30000
    for flow in sent["flows"]:
        (peer,) = (peer for peer in received["udp"]
                   if peer["peer"].endswith(f":{flow['local_port']}"))
        assert peer["packets"] == flow["packets"]
        assert peer["bytes"] == flow["bytes"]
        assert peer["lost"] == peer["reordered"] == 0
    assert received["udp_socket_drops"] == 0


def test_what_comes_over_udp_is_sampled(namespace, tools):
    sink = Sink(namespace, tools, "--sample-ms", "20")
    send(namespace, tools,
         "id=1 dst=127.0.0.1 port=5001 proto=udp rate=800k size=100 stop=0.1\n"
         "id=2 dst=127.0.0.1 port=5001 proto=udp rate=80k size=50 start=0.2\n",
         "--duration", "0.4")
    received = sink.stop()
    assert received["sample_s"] == 0.02
    first, second = received["udp"]
    for peer in first, second:
        assert sum(peer["received_bytes"]) == peer["bytes"]
        assert peer["received_bytes"][-1]
    # Nothing comes before it is sent; the sender's epoch is later than ours.
    assert not any(second["received_bytes"][:10])


def test_poisson_arrivals(namespace, tools, sink):
    # 60 flows of 100 packets expected: mean and variance both 100.
    flows = "".join(
        f"id={identity} dst=127.0.0.1 port=5001 proto=udp arrival=poisson "
        f"rate=256k size=32 stop=0.1 seed={identity + 7}\n"
        for identity in range(1, 61))
    first, _ = send(namespace, tools, flows)
    second, _ = send(namespace, tools, flows)
    received = sink.stop()
    counts = [flow["packets"] for flow in first["flows"]]
    assert counts == [flow["packets"] for flow in second["flows"]]
    assert abs(statistics.mean(counts) - 100) < 4
    assert 0.6 < statistics.variance(counts) / 100 < 1.6
    assert sum(peer["packets"] for peer in received["udp"]) == 2 * sum(counts)


@pytest.fixture(scope="session")
def modulated(tmp_path_factory):
    """The program that prints what the modulated process makes: a list of
    (state, its rate in bit/s, ns in it, packets)."""
    if not shutil.which("cc"):
        pytest.skip("a C compiler is missing")
    program = tmp_path_factory.mktemp("mmpp") / "traffic_mmpp"
    subprocess.run(["cc", "-O2", "-std=gnu11", "-D_GNU_SOURCE", "-o", program,
                    TOOLS.parent / "selftests/traffic_mmpp.c"],
                   check=True, timeout=60)

    def run(*words):
        done = subprocess.run([program, *map(str, words)], capture_output=True,
                              text=True, check=True, timeout=TIMEOUT_S)
        return [tuple(map(int, line.split()))
                for line in done.stdout.splitlines()]
    return run


def test_states_of_the_modulated_process(modulated):
    # AACC Figure 8, with a packet of 8000 bits in 1 ms; 333 in all.
    hold_ns, changes = 3_000_000, 200_000
    found = modulated(333, 24024, 8_000_000, hold_ns, 8000, 5, changes)
    assert found != modulated(333, 24024, 8_000_000, hold_ns, 8000, 6, changes)
    assert found == modulated(333, 24024, 8_000_000, hold_ns, 8000, 5, changes)
    states, rates, lasted, packets = zip(*found)
    # Exponential times, within four standard deviations of their means.
    assert statistics.fmean(lasted) == pytest.approx(
        hold_ns, rel=4 / math.sqrt(changes))
    for times in (0.1, 0.5, 1, 2, 4):
        share = math.exp(-times)
        assert sum(ns > times * hold_ns for ns in lasted) / changes == \
            pytest.approx(share, abs=4 * math.sqrt(share / changes))
    # Neighbours follow, either as often; the ends have one.
    steps = [after - state for state, after in zip(states, states[1:])]
    assert set(steps) == {-1, 1}
    inner = [step for step, state in zip(steps, states) if 1 < state < 333]
    assert abs(sum(inner)) < 4 * math.sqrt(len(inner))
    assert 1 <= min(states) and max(states) <= 333
    # Rates are linear, and packets come by them.
    for state, rate in set(zip(states, rates)):
        assert rate == 24024 + (8_000_000 - 24024) * (state - 1) // 332
    expected = sum(rate * ns for rate, ns in zip(rates, lasted)) / 8000 / 1e9
    assert sum(packets) == pytest.approx(expected,
                                         abs=4 * math.sqrt(expected))


def test_ends_of_the_modulated_process(modulated):
    states, *_ = zip(*modulated(2, 1, 1000, 1000, 8000, 1, 1000))
    assert set(zip(states, states[1:])) == {(1, 2), (2, 1)}
    first = [modulated(4, 1, 1000, 1000, 8000, seed, 1)[0][0]
             for seed in range(200)]
    # 50 of each expected, with a standard deviation of 6.
    assert all(abs(first.count(state) - 50) < 25 for state in (1, 2, 3, 4))


def test_modulated_arrivals(namespace, tools, sink):
    line = "dst=127.0.0.1 port=5001 proto=udp size=32 arrival=mmpp"
    flows = (f"id=1 {line} rate=2m states=5 hold=0.01 seed=3\n"
             f"id=2 {line} rate=512k low=512k states=2 hold=0.5\n"
             f"id=3 {line} rate=1m hold=0.003\n")
    words = ("--duration", "0.5", "--sample-ms", "10")
    first, _ = send(namespace, tools, flows, *words)
    second, _ = send(namespace, tools, flows, *words)
    received = sink.stop()
    assert [(flow["packets"], flow["mmpp"]) for flow in first["flows"]] == \
        [(flow["packets"], flow["mmpp"]) for flow in second["flows"]]
    for flow, (least, most) in zip(first["flows"], (
            (400_000, 2_000_000), (512_000, 512_000), (3003, 1_000_000))):
        rates = flow["mmpp"]["rate_bps"]
        assert flow["mmpp"]["t_s"] == pytest.approx(
            [0.01 * index for index in range(50)])
        assert least - 1 <= min(rates) and max(rates) <= most
        expected = sum(rates) / len(rates) * 0.5 / 256
        assert flow["packets"] == pytest.approx(
            expected, abs=4 * math.sqrt(expected))
    # 50 expected, of 10 ms each, with a standard deviation of 7.
    assert 20 <= first["flows"][0]["mmpp"]["changes"] <= 90
    assert sum(peer["packets"] for peer in received["udp"]) == 2 * sum(
        flow["packets"] for flow in first["flows"])


def test_udp_on_off(namespace, tools, sink):
    # On for 0.1 of every 0.2 s: packets at 0, 10 ... 90 ms of each.
    sent, _ = send(namespace, tools,
                   "id=1 dst=127.0.0.1 port=5001 proto=udp rate=80k size=100 "
                   "on=0.1 off=0.1\n", "--duration", "0.5")
    sink.stop()
    assert sent["flows"][0]["packets"] == 30


# For each of three datagrams to port 5001: its port, and the two bits of ECN.
READ_ECN = """
import socket
one = socket.socket(socket.FAMILY, socket.SOCK_DGRAM)
one.setsockopt(LEVEL, 1)
one.bind(("", 5001))
print("ready", flush=True)
for _ in range(3):
    _, fields, _, peer = one.recvmsg(2000, 100)
    print(peer[1], fields[0][2][0] & 3, flush=True)
"""


@pytest.mark.parametrize("family, level, address", [
    ("AF_INET", "socket.IPPROTO_IP, 13", "127.0.0.1"),
    ("AF_INET6", "socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS", "::1")])
def test_udp_with_ecn(namespace, tools, family, level, address):
    reader = namespace.start(sys.executable, "-c", READ_ECN.replace(
        "FAMILY", family).replace("LEVEL", level))
    assert reader.stdout.readline() == "ready\n", reader.stderr.read()
    # Each of them sends one packet.
    sent, _ = send(namespace, tools, "".join(
        f"id={number} dst={address} port=5001 proto=udp rate=8k {word}\n"
        for number, word in ((1, ""), (2, "ecn=0"), (3, "ecn=1"))),
                   "--duration", "0.1")
    said, _ = reader.communicate(timeout=TIMEOUT_S)
    found = dict(map(int, line.split()) for line in said.splitlines())
    # ECT(0) is 2, and ECT(1) is 1.
    assert [found[flow["local_port"]] for flow in sent["flows"]] == [0, 2, 1]
