# SPDX-License-Identifier: GPL-2.0
"""tollway-traffic over TCP: what flows send, when, and what the sink reads."""

import json
import subprocess
import time
from pathlib import Path

import pytest
from traffic_bench import TIMEOUT_S, Sink, send, wait_until

pytest_plugins = ["traffic_bench"]

# Within this, something that was due has been done, however busy the machine.
LATE_S = 5
# More than a connection of the sink lets come before it is read.
WINDOW_BYTES = 16 << 20


def by_peer(report, flow):
    """The sink's connections that came from this flow's local port."""
    return [connection for connection in report["connections"]
            if connection["peer"].endswith(f":{flow['local_port']}")]


def test_finite_transfers_arrive_whole(namespace, tools, sink):
    sizes = {identity: 1 + 123457 * identity for identity in range(1, 13)}
    sent, _ = send(namespace, tools, "".join(
        f"id={identity} dst=127.0.0.1 port=5001 bytes={size} start=0.05\n"
        for identity, size in sizes.items()))
    received = sink.stop()
    assert sent["schema"] == received["schema"] == 1
    assert len(received["connections"]) == len(sizes)
    for flow in sent["flows"]:
        size = sizes[flow["id"]]
        (connection,) = by_peer(received, flow)
        (transfer,) = flow["transfers"]
        assert connection["bytes"] == size
        assert flow["bytes_acked"] == transfer["bytes"] == size
        assert flow["samples"]["bytes_acked"][-1] == size
        assert not connection["reset"] and connection["closed_s"] is not None
        assert 0.05 <= transfer["start_s"] < transfer["end_s"] < LATE_S
        assert flow["error"] is None


def test_greedy_flows_stop_with_a_reset(namespace, tools, sink):
    sent, _ = send(namespace, tools,
                   "id=1 dst=127.0.0.1 port=5001 cc=reno prio=3\n"
                   "id=2 dst=127.0.0.1 port=5001 start=0.1 stop=0.4\n",
                   "--duration", "0.5", "--sample-ms", "20")
    received = sink.stop()
    first, second = sent["flows"]
    assert first["cc"] == "reno" and first["prio"] == 3
    assert 0.5 <= first["stop_s"] < LATE_S
    assert 0.4 <= second["stop_s"] < LATE_S
    assert 0.1 <= second["connected_s"] < second["stop_s"]
    for flow in sent["flows"]:
        (connection,) = by_peer(received, flow)
        assert connection["reset"]
        assert 0 < flow["bytes_acked"] <= connection["bytes"]
        assert connection["bytes"] <= flow["bytes_sent"]
        samples = flow["samples"]
        assert len({len(column) for column in samples.values()}) == 1
        assert samples["t_s"] == sorted(samples["t_s"])
        assert samples["bytes_acked"] == sorted(samples["bytes_acked"])
        assert samples["bytes_acked"][-1] == flow["bytes_acked"]
        assert min(samples["cwnd"]) > 0


def test_no_samples_when_none_are_wanted(namespace, tools, sink):
    sent, _ = send(namespace, tools,
                   "id=1 dst=127.0.0.1 port=5001 bytes=100k\n",
                   "--sample-ms", "0")
    sink.stop()
    assert sent["flows"][0]["samples"]["t_s"] == []
    assert sent["flows"][0]["bytes_acked"] == 100000


def test_ipv6(namespace, tools, sink):
    if not Path(f"/proc/{sink.process.pid}/net/if_inet6").exists():
        pytest.skip("the kernel has no IPv6")
    sent, _ = send(namespace, tools, "id=1 dst=::1 port=5001 bytes=5000\n")
    received = sink.stop()
    (connection,) = received["connections"]
    assert connection["bytes"] == sent["flows"][0]["bytes_acked"] == 5000
    assert connection["peer"].startswith("[::1]:")


def test_repeated_transfers(namespace, tools, sink):
    sent, _ = send(namespace, tools,
                   "id=1 dst=127.0.0.1 port=5001 bytes=3000 repeat=5 off=0.03\n"
                   "id=2 dst=127.0.0.1 port=5001 bytes=1 repeat=7 off=0\n"
                   "id=3 dst=127.0.0.1 port=5001 bytes=10 repeat=0 "
                   "off=exp:0.02 stop=0.8\n")
    received = sink.stop()
    fixed, at_once, until_stop = (flow["transfers"] for flow in sent["flows"])
    assert len(fixed) == 5 and len(at_once) == 7 and len(until_stop) > 5
    assert all(transfer["end_s"] > transfer["start_s"]
               for transfer in fixed + at_once)
    for before, after in zip(fixed, fixed[1:]):
        assert after["start_s"] - before["end_s"] >= 0.03
    assert [flow["bytes_acked"] for flow in sent["flows"][:2]] == [15000, 7]
    assert len(received["connections"]) == sum(
        len(flow["transfers"]) for flow in sent["flows"])
    assert sum(connection["bytes"] for connection in received["connections"]
               ) == sum(flow["bytes_acked"] for flow in sent["flows"])


def test_on_off_is_silent_during_off(namespace, tools, sink):
    on_s, off_s = 0.05, 0.6
    sent, _ = send(namespace, tools,
                   f"id=1 dst=127.0.0.1 port=5001 on={on_s} off={off_s}\n",
                   "--duration", "1.5", "--sample-ms", "10")
    received = sink.stop()
    assert len(received["connections"]) == 1
    samples = sent["flows"][0]["samples"]
    acked = list(zip(samples["t_s"], samples["bytes_acked"]))
    levels = []
    for period in range(2):
        off = period * (on_s + off_s) + on_s
        # The unsent bytes of the socket may still leave, and the last
        # segment's acknowledgement is delayed: by 40 ms, at most by 200 ms.
        during = [count for at, count in acked
                  if off + 0.35 < at < off + off_s]
        assert len(during) > 1 and len(set(during)) == 1
        levels.append(during[0])
    # And each on sends again.
    levels.append(samples["bytes_acked"][-1])
    assert 0 < levels[0] < levels[1] < levels[2]


def test_applications_have_their_own_pace(namespace, tools, sink):
    # 20 times 1000 bytes, 10 ms apart, and in fives with 50 ms between them.
    base = "dst=127.0.0.1 port=5001 rate=800k size=1000 bytes=20000"
    sent, _ = send(namespace, tools, f"id=1 {base}\n"
                   f"id=2 {base} on=0.05 off=0.05\n"
                   f"id=3 {base} on=0.05 off=0.05 source=closed\n"
                   f"id=4 {base} overhead=1000\n")
    sink.stop()
    for flow, least_s in zip(sent["flows"], (0.19, 0.34, 0.31, 0.38)):
        (transfer,) = flow["transfers"]
        assert flow["bytes_acked"] == transfer["bytes"] == 20000
        # The pace counts from when the flow was to begin, not from when it did.
        assert least_s <= transfer["end_s"] < LATE_S
        assert flow["error"] is None


def test_random_ons_are_whole_and_the_same_everywhere(namespace, tools, sink):
    line = ("id={} dst=127.0.0.1 port=5001 rate=8m size=1000 bytes=30000 "
            "on=exp:0.004 off=exp:0.001 seed=7 unsent=1m\n")
    sent, _ = send(namespace, tools, line.format(1) + line.format(2),
                   "--sample-ms", "0")
    received = sink.stop()
    for flow in sent["flows"]:
        (connection,) = by_peer(received, flow)
        assert connection["bytes"] == 30000


def test_connections_that_are_there_early(namespace, tools, sink):
    epoch_ns = time.monotonic_ns() + 300_000_000
    sent, _ = send(namespace, tools,
                   "id=1 dst=127.0.0.1 port=5001 bytes=5000 start=0.2 "
                   "connect=early\n"
                   "id=2 dst=127.0.0.1 port=5001 start=0.2 stop=0.4 "
                   "connect=early\n", "--epoch-ns", str(epoch_ns))
    sink.stop()
    first, second = sent["flows"]
    assert first["connected_s"] < 0 and second["connected_s"] < 0
    (transfer,) = first["transfers"]
    assert 0.2 <= transfer["start_s"] < transfer["end_s"] < LATE_S
    assert transfer["bytes"] == 5000
    assert second["bytes_acked"] > 0 and second["stop_s"] >= 0.4


def test_adaptive_sources_tell_what_they_found(namespace, tools, sink):
    sent, _ = send(namespace, tools,
                   "id=1 dst=127.0.0.1 port=5001 cc=reno rate=8m size=10000 "
                   "floor=800k\n", "--duration", "0.5", "--cc-info")
    sink.stop()
    (flow,) = sent["flows"]
    frames = flow["frames"]
    assert len(frames["t_s"]) == len(frames["bytes"]) > 10
    for size, allowed in zip(frames["bytes"], frames["allowed_bps"]):
        assert 1000 <= size <= 10000
        assert size == 1000 or size <= 10000 * allowed / 8e6 + 1
    # Nothing holds loopback back: it sends what it can.
    assert max(frames["bytes"]) == 10000
    # Reno has no such report.
    assert set(flow["samples"]["cc_rate_bps"]) == {0}


def test_sources_are_told_their_rates(namespace, tools, sink):
    """A greedy flow and an adaptive one; rates change on time, also of a socket
    that is not connected yet."""
    sent, _ = send(namespace, tools,
                   "id=1 dst=127.0.0.1 port=5001 cc=reno told=8m,800k@0.5\n"
                   "id=2 dst=127.0.0.1 port=5001 cc=reno rate=8m size=10000 "
                   "floor=80k told=4m,800k@0.5\n"
                   "id=3 dst=127.0.0.1 port=5001 cc=reno told=800m,800k@0.2 "
                   "start=0.5\n", "--duration", "1", "--sample-ms", "50")
    sink.stop()
    greedy, adaptive, late = sent["flows"]
    # Packets of loopback have 64 kB, and ten of them are not paced at first.
    for flow, told_bps in ((greedy, 8_000_000), (late, 800_000)):
        samples = flow["samples"]
        assert 0 < flow["bytes_acked"] < told_bps / 8 * 0.5 + 50_000 + \
            12 * 65_536
        assert {bps for at_s, bps in zip(samples["t_s"], samples["pacing_bps"])
                if at_s > 0.6} == {800_000}
    assert max(greedy["samples"]["pacing_bps"]) == 8_000_000
    frames = adaptive["frames"]
    assert set(frames["allowed_bps"]) == {4_000_000, 800_000}
    for at_s, size, allowed in zip(*(frames[key] for key in (
            "t_s", "bytes", "allowed_bps"))):
        assert allowed == (4_000_000 if at_s < 0.5 else 800_000)
        assert size <= 10000 * allowed / 8e6


def test_many_flows_at_once(namespace, tools, sink):
    count = 400
    sent, _ = send(namespace, tools, "".join(
        f"id={identity} dst=127.0.0.1 port=5001 bytes=20k\n"
        for identity in range(1, count + 1)))
    received = sink.stop()
    assert len(received["connections"]) == count
    assert all(connection["bytes"] == 20000
               for connection in received["connections"])
    assert all(flow["error"] is None for flow in sent["flows"])


def test_rests_and_reads_at_fixed_times(namespace, tools):
    """Looks are seldom; starts, stops, samples and ends are on time."""
    sink = Sink(namespace, tools, "--read-ms", "100")
    sent, _ = send(namespace, tools, "".join(
        f"id={identity} dst=127.0.0.1 port=5001 stop=0.95\n"
        for identity in range(1, 51)) +
        "id=51 dst=127.0.0.1 port=5001 bytes=300k start=0.05\n",
        "--unsent", "16k", "--rest-ms", "100", "--sample-ms", "20")
    received = sink.stop()
    *greedy, short = sent["flows"]
    assert len(received["connections"]) == 51
    for flow in sent["flows"]:
        (connection,) = by_peer(received, flow)
        assert 0 < flow["bytes_acked"] <= connection["bytes"]
        assert flow["error"] is None
    for flow in greedy:
        assert 0.95 <= flow["stop_s"] < LATE_S
        # More than the looks, also on a busy machine.
        assert len(flow["samples"]["t_s"]) > 10
    assert short["bytes_acked"] == 300000
    (transfer,) = short["transfers"]
    assert 0.05 <= transfer["start_s"] < transfer["end_s"] < LATE_S


def test_a_look_fills_the_socket_and_no_more(namespace, tools, sink):
    sent, _ = send(namespace, tools, "id=1 dst=127.0.0.1 port=5001\n",
                   "--unsent", "16k", "--rest-ms", "250", "--duration", "0.95")
    sink.stop()
    # Four looks; at any time loopback takes hundreds of megabytes instead.
    assert 0 < sent["flows"][0]["bytes_acked"] < 4 * WINDOW_BYTES


def test_reads_what_is_below_the_mark(namespace, tools):
    """At its times, and the end of a connection at once."""
    sink = Sink(namespace, tools, "--read-ms", "400")
    sender = namespace.start(tools / "tollway-traffic", "send", "--flows", "-",
                             "--duration", "3", stdin=subprocess.PIPE)
    sender.stdin.write("id=1 dst=127.0.0.1 port=5001 on=0.01 off=60\n"
                       "id=2 dst=127.0.0.1 port=5001 bytes=20k\n")
    sender.stdin.close()
    sink.wait_for_connection()
    wait_until(lambda: ("01", 0) in sink.sockets(), sink.process,
               "unread data stays")
    assert sender.wait(TIMEOUT_S) == 0
    sent = json.loads(sender.stdout.read())
    received = sink.stop()
    pause, short = (by_peer(received, flow)[0] for flow in sent["flows"])
    assert short["bytes"] == 20000
    assert short["closed_s"] - short["accepted_s"] < 0.4
    assert 0 < pause["bytes"] and pause["reset"]


def test_mark_and_times_exclude_each_other(namespace, tools):
    done = namespace.run(tools / "tollway-traffic", "sink", "--port", "5001",
                         "--lowat", "64k", "--read-ms", "50")
    assert done.returncode == 2 and "--read-ms" in done.stderr


def test_shared_epoch(namespace, tools, sink):
    epoch_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC) + 300_000_000
    sent, _ = send(namespace, tools,
                   "id=1 dst=127.0.0.1 port=5001 bytes=1 start=0.1\n",
                   "--epoch-ns", epoch_ns)
    sink.stop()
    now_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    assert sent["epoch_ns"] == epoch_ns
    assert now_ns >= epoch_ns + 100_000_000
    assert 0.1 <= sent["flows"][0]["transfers"][0]["start_s"] < LATE_S
