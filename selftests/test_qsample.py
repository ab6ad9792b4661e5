# SPDX-License-Identifier: GPL-2.0
"""tollway-qsample, on the loopback of a namespace and on a slow link."""

import json
import shutil
import signal
import time

import pytest
from traffic_bench import TIMEOUT_S, send, wait_for_timer

pytest_plugins = ["traffic_bench"]


@pytest.fixture
def slow_link(namespace):
    """A veth whose end v0 sends 1 Mb/s, with a queue of 50 packets."""
    if not shutil.which("tc"):
        pytest.skip("tc is missing")
    for command in ("ip link add v0 type veth peer name v1",
                    "ip link set v1 up", "ip link set v0 up",
                    "ip address add 10.9.0.1/24 dev v0",
                    "ip neighbour add 10.9.0.2 lladdr 02:00:00:00:00:02 "
                    "dev v0",
                    "tc qdisc add dev v0 root handle 1: tbf rate 1mbit "
                    "burst 2000 limit 1000000",
                    "tc qdisc add dev v0 parent 1:1 handle 10: pfifo "
                    "limit 50"):
        done = namespace.run(*command.split())
        if done.returncode:
            pytest.skip(f"{command}: {done.stderr.strip()}")
    return "v0"


def test_qsample_follows_a_queue(namespace, tools, slow_link):
    # Both programs have begun by then.
    epoch_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC) + 500_000_000
    sampler = namespace.start(tools / "tollway-qsample", "--dev", slow_link,
                              "--kind", "pfifo", "--interval-us", "10000",
                              "--start", "0.1", "--stop", "0.6",
                              "--epoch-ns", epoch_ns)
    # 4 Mb/s into 1 Mb/s: the queue is full after some 0.14 s.
    send(namespace, tools,
         "id=1 dst=10.9.0.2 port=9 proto=udp rate=4m\n", "--duration", "0.4",
         "--epoch-ns", epoch_ns)
    out, error = sampler.communicate(timeout=TIMEOUT_S)
    assert sampler.returncode == 0, error
    report = json.loads(out)
    assert report["schema"] == 1 and report["interval_us"] == 10000
    device = report["devices"][slow_link]
    assert (device["kind"], device["handle"]) == ("pfifo", "10:")
    ticks = [round(100 * at) for at in device["t_s"]]
    assert [f"{at:.9f}" for at in device["t_s"]] == \
        [f"{tick / 100:.9f}" for tick in ticks]
    # A busy machine misses ticks, the last one too, but counts them all.
    assert sorted(set(ticks)) == ticks and ticks[0] >= 10 and ticks[-1] <= 60
    assert len(ticks) + report["missed"] == 51 and len(ticks) > 25
    columns = ("backlog_pkts", "backlog_bytes", "drops", "packets", "bytes",
               "overlimits")
    assert {len(device[name]) for name in columns} == {len(ticks)}
    assert "price_q32" not in device
    assert 45 <= max(device["backlog_pkts"]) <= 51
    assert device["drops"][-1] > 50
    for name in ("drops", "packets", "bytes"):
        assert device[name] == sorted(device[name])
    # 972 + 28 + 14 bytes of Ethernet a packet; IPv6 puts in a few small ones.
    full = device["backlog_pkts"].index(max(device["backlog_pkts"]))
    assert 0.9 < device["backlog_bytes"][full] / (
        1014 * device["backlog_pkts"][full]) <= 1


def test_qsample_defaults_to_the_root(namespace, tools, slow_link):
    done = namespace.run(tools / "tollway-qsample", "--dev", slow_link,
                         "--dev", "lo", "--interval-us", "5000",
                         "--stop", "0.05")
    assert done.returncode == 0, done.stderr
    devices = json.loads(done.stdout)["devices"]
    assert devices[slow_link]["kind"] == "tbf"
    assert devices["lo"]["kind"] == "noqueue"
    assert len(devices["lo"]["t_s"]) == len(devices[slow_link]["t_s"])


def test_qsample_interrupted(namespace, tools, tmp_path):
    report = tmp_path / "report.json"
    sampler = namespace.start(tools / "tollway-qsample", "--dev", "lo",
                              "--interval-us", "10000", "--start", "100",
                              "--stop", "200", "--json", report)
    wait_for_timer(sampler)
    time.sleep(0.2)
    sampler.send_signal(signal.SIGTERM)
    sampler.communicate(timeout=TIMEOUT_S)
    assert sampler.returncode == 128 + signal.SIGTERM
    written = json.loads(report.read_text())
    assert written["interrupted"] is True
    assert written["devices"]["lo"]["t_s"] == []


def test_qsample_notices_a_qdisc_that_goes(namespace, tools, slow_link):
    sampler = namespace.start(tools / "tollway-qsample", "--dev", slow_link,
                              "--interval-us", "10000", "--stop", "10")
    wait_for_timer(sampler)
    time.sleep(0.2)
    namespace.run("tc", "qdisc", "del", "dev", slow_link, "root")
    out, complaint = sampler.communicate(timeout=TIMEOUT_S)
    assert sampler.returncode == 1
    assert complaint.count("\n") == 1 and slow_link in complaint
    report = json.loads(out)
    assert slow_link in report["error"]
    assert len(report["devices"][slow_link]["t_s"]) > 1


@pytest.mark.parametrize("arguments, named", [
    ("", "Usage"),
    ("--interval-us 1 --stop 1", "--dev"),
    ("--dev none --interval-us 1 --stop 1", "'none'"),
    ("--dev lo --dev lo --interval-us 1 --stop 1", "--dev lo"),
    ("--dev lo --stop 1", "--interval-us"),
    ("--dev lo --interval-us 0 --stop 1", "--interval-us: '0'"),
    ("--dev lo --interval-us 1", "--stop"),
    ("--dev lo --interval-us 1 --start 2 --stop 1", "--stop is before"),
    ("--dev lo --interval-us 1 --stop 1 --handle x", "--handle: 'x'"),
    ("--dev lo --interval-us 1 --stop 1 --kind sbrm", "lo: no sbrm qdisc"),
    ("--dev lo --interval-us 1 --stop 1 --handle 10:", "lo: no qdisc 10:"),
    ("--dev lo --interval-us 1 --stop 1 --json /nowhere/r", "/nowhere/r"),
])
def test_qsample_bad_arguments(namespace, tools, arguments, named):
    done = namespace.run(tools / "tollway-qsample", *arguments.split())
    assert done.returncode == 2
    assert named in done.stderr
    assert done.stderr.count("\n") == 1 or not arguments
