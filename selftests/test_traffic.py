# SPDX-License-Identifier: GPL-2.0
"""tollway-traffic and tollway-qsample, on the loopback of a namespace.

Nothing here measures how fast this machine is: schedules are checked by what
they send, which is the same on every machine, and times only roughly. Before
a signal, or anything else that comes from outside, we wait for what it needs.
"""

import json
import math
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parent.parent / "tools"
TIMEOUT_S = 20
# Within this, something that was due has been done, however busy the machine.
LATE_S = 5
# More than a connection of the sink lets come before it is read.
WINDOW_BYTES = 16 << 20


@pytest.fixture(scope="session")
def tools(tmp_path_factory):
    """The directory of the two programs, built here."""
    if not shutil.which("make") or not shutil.which("cc"):
        pytest.skip("make or a C compiler is missing")
    directory = tmp_path_factory.mktemp("tools")
    subprocess.run(["make", "-s", "-C", str(TOOLS), f"O={directory}",
                    f"{directory}/tollway-traffic",
                    f"{directory}/tollway-qsample"],
                   check=True, timeout=120)
    return directory


class Namespace:
    """A network namespace that lives as long as a sleeping process in it."""

    def __init__(self):
        as_root = os.geteuid() == 0
        self.holder = subprocess.Popen(
            ["unshare", "-n" if as_root else "-rn", "sh", "-c",
             "ip link set lo up && echo ready && exec sleep 600"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if self.holder.stdout.readline().strip() != "ready":
            self.close()
            pytest.skip("network namespaces are not possible here")
        self.enter = ["nsenter", f"--target={self.holder.pid}", "--net"]
        if not as_root:
            self.enter += ["--user", "--preserve-credentials"]

    def start(self, *command, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                   "text": True, **options}
        return subprocess.Popen([*self.enter, *map(str, command)], **options)

    def run(self, *command, **options):
        options = {"capture_output": True, "text": True,
                   "timeout": TIMEOUT_S, **options}
        return subprocess.run([*self.enter, *map(str, command)],
                              check=False, **options)

    def close(self):
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()


@pytest.fixture
def namespace():
    made = Namespace()
    yield made
    made.close()


def wait_until(condition, process, what):
    """Return when condition() holds; the process must live until then."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def wait_for_timer(process):
    """Return when the program has made its timer, that is, is about to run."""
    def has_timer():
        links = []
        for link in Path(f"/proc/{process.pid}/fd").iterdir():
            try:
                links.append(os.readlink(link))
            except FileNotFoundError:
                pass
        return "anon_inode:[timerfd]" in links

    wait_until(has_timer, process, "the program does not begin")
    time.sleep(0.05)  # the handlers of its signals are set just after it


LISTEN = "0A"
# The peer is not done with these, or our process is not.
UNFINISHED = {"01", "03", "08"}  # ESTABLISHED, SYN_RECV, CLOSE_WAIT


def tcp_sockets(pid, port):
    """State and unread bytes (a listener's: connections not yet accepted) of
    the TCP sockets with this local port in the process's namespace."""
    for table in (Path(f"/proc/{pid}/net/{name}") for name in ("tcp", "tcp6")):
        if not table.exists():
            continue
        for line in table.read_text().splitlines()[1:]:
            words = line.split()
            if words[1].endswith(f":{port:04X}"):
                yield words[3], int(words[4].split(":")[1], 16)


class Sink:
    """A running sink; stop() ends it with a signal and gives its report."""

    def __init__(self, namespace, tools, *arguments, port=5001):
        self.process = namespace.start(tools / "tollway-traffic", "sink",
                                       "--port", port, *arguments)
        self.port = int(str(port).split(",")[0])
        wait_until(lambda: LISTEN in dict(self.sockets()), self.process,
                   "the sink does not listen")

    def sockets(self):
        return tcp_sockets(self.process.pid, self.port)

    def is_idle(self):
        """Whether all connections are accepted, and closed on both sides."""
        return not any(state in UNFINISHED or state == LISTEN and waiting
                       for state, waiting in self.sockets())

    def wait_for_connection(self):
        wait_until(lambda: "01" in dict(self.sockets()), self.process,
                   "no connection to the sink")

    def stop(self, when_idle=True):
        if when_idle:
            wait_until(self.is_idle, self.process, "connections stay open")
        # The last packets and resets are on their way through loopback.
        time.sleep(0.1)
        self.process.send_signal(signal.SIGTERM)
        out, error = self.process.communicate(timeout=TIMEOUT_S)
        assert self.process.returncode == 0, error
        return json.loads(out)


@pytest.fixture
def sink(namespace, tools):
    running = Sink(namespace, tools)
    yield running
    if running.process.poll() is None:
        running.process.kill()
    running.process.wait()


def send(namespace, tools, flows, *arguments, status=0):
    """Run flows (text) to their end; the report, and what was complained."""
    done = namespace.run(tools / "tollway-traffic", "send", "--flows", "-",
                         *arguments, input=flows)
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout), done.stderr


def by_peer(report, flow):
    """The sink's connections that came from this flow's local port."""
    return [connection for connection in report["connections"]
            if connection["peer"].endswith(f":{flow['local_port']}")]


# TCP


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
        assert least_s <= transfer["end_s"] - transfer["start_s"] < LATE_S
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


# The HTTP model

PAGES_ONE = 1 << 40
# (objects, bytes) of seed 1 and the default values.
PAGES = [[4, 157], [1, 346], [5, 151], [1, 270]]


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """The program that prints what the model makes: shape, decay, and a list
    of (objects, bytes)."""
    if not shutil.which("cc"):
        pytest.skip("a C compiler is missing")
    program = tmp_path_factory.mktemp("model") / "traffic_pages"
    subprocess.run(["cc", "-O2", "-std=gnu11", "-D_GNU_SOURCE", "-o", program,
                    TOOLS.parent / "selftests/traffic_pages.c"],
                   check=True, timeout=60)

    def run(objects, mean, least, greatest, seed=1, count=0):
        done = subprocess.run(
            [program, *map(str, (objects, mean, least, greatest, seed, count))],
            capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
        if done.returncode:
            return None, None, []
        first, *rest = ([int(word) for word in line.split()]
                        for line in done.stdout.splitlines())
        return first[0] / PAGES_ONE, first[1] / PAGES_ONE, rest
    return run


def pareto_mean(shape, least, greatest):
    """Mean of a bounded Pareto distribution."""
    def falling(z):
        return -math.expm1(-z) / z if abs(z) > 1e-12 else 1.0

    span = math.log(greatest / least)
    return least * falling((shape - 1) * span) / falling(shape * span)


@pytest.mark.parametrize("mean, least, greatest", [
    (10000, 100, 10**7), (1151, 100, 10**7), (1152, 100, 10**7),
    (800000, 100, 10**7), (102, 100, 200), (144, 100, 200),
    (10**6, 1, 10**12), (39 * 10**10, 10**11, 10**12)])
def test_shape_gives_the_mean(model, mean, least, greatest):
    shape, _, _ = model(6550000, mean, least, greatest)
    assert pareto_mean(shape, least, greatest) / mean == \
        pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("mean, least, greatest", [
    (148, 100, 200), (101, 100, 200), (100, 100, 100), (50, 100, 200),
    (10**6, 100, 10**7)])
def test_mean_without_a_shape(model, mean, least, greatest):
    assert model(6550000, mean, least, greatest)[0] is None


def test_pages_have_their_distributions(model):
    shape, decay, pages = model(6550000, 10000, 100, 10**7, seed=3,
                                count=400000)
    assert shape == pytest.approx(0.65355068, abs=1e-8)
    assert decay == pytest.approx(-math.log1p(-1 / 6.55), rel=1e-9)
    objects, sizes = zip(*pages)
    assert 100 <= min(sizes) and max(sizes) <= 10**7
    # Within four standard deviations of what 400000 draws have.
    assert statistics.fmean(objects) == pytest.approx(6.55, abs=0.04)
    for number in range(1, 13):
        share = (1 - 1 / 6.55) ** (number - 1)
        assert sum(n >= number for n in objects) / len(objects) == \
            pytest.approx(share, abs=4 * math.sqrt(share / len(objects)))
    end = 1e-5 ** shape
    for size in (300, 1000, 10**4, 10**5, 10**6, 5 * 10**6):
        # Half a byte is rounding.
        share = ((100 / (size + 0.5)) ** shape - end) / (1 - end)
        assert sum(bytes_ > size for bytes_ in sizes) / len(sizes) == \
            pytest.approx(share, abs=4 * math.sqrt(share / len(sizes)))


def test_pages_are_the_same_everywhere(model):
    assert model(6550000, 10000, 100, 10**7, seed=1, count=4)[2] == PAGES
    assert model(6550000, 10000, 100, 10**7, seed=2, count=4)[2] != PAGES
    # Always one object: no random number is spent on it.
    assert {n for n, _ in model(1000000, 10000, 100, 10**7,
                                count=100)[2]} == {1}


def test_page_takes_what_the_model_says(namespace, tools, sink):
    line = "dst=127.0.0.1 port=5001 pages=http object-max=1m object-mean=5k"
    sent, _ = send(namespace, tools,
                   f"id=1 {line} repeat=5 off=0.01\n"
                   f"id=2 {line} repeat=5 off=0 seed=1 connections=object\n"
                   f"id=3 {line} objects=1 object-min=4900\n",
                   "--duration", "1", "--sample-ms", "50")
    received = sink.stop()
    pages, objects, many = (flow["pages"] for flow in sent["flows"])
    assert pages["objects"] == objects["objects"] and len(objects["bytes"]) == 5
    assert all(flow["error"] is None for flow in sent["flows"])
    for flow in sent["flows"]:
        columns = flow["pages"]
        assert len({len(column) for column in columns.values()}) == 1
        assert "transfers" not in flow
        assert sum(columns["bytes"]) == flow["bytes_acked"]
        assert all(last + lasted <= begun for last, lasted, begun in zip(
            columns["start_s"], columns["duration_s"], columns["start_s"][1:]))
    for begun, lasted, after in zip(pages["start_s"], pages["duration_s"],
                                    pages["start_s"][1:]):
        assert after - begun - lasted >= 0.01
    # The sizes are drawn in the same order, but for the page of many objects.
    assert pages["bytes"] == objects["bytes"]
    assert set(many["objects"]) == {1} and len(many["bytes"]) > 0
    assert len(received["connections"]) == 5 + sum(objects["objects"]) + len(
        many["bytes"])
    assert set(sent["network"]) == {
        "timeouts", "fast_retransmits", "slow_start_retransmits",
        "lost_retransmits", "retransmits"}
    assert sent["network"]["timeouts"] == 0


def test_page_that_is_not_finished(namespace, tools, sink):
    sent, _ = send(namespace, tools,
                   "id=1 dst=127.0.0.1 port=5001 pages=http object-mean=300g "
                   "object-min=200g object-max=1000g\n", "--duration", "0.3")
    sink.stop()
    flow = sent["flows"][0]
    assert flow["pages"]["duration_s"] == [None]
    assert flow["pages"]["bytes"] == [flow["bytes_acked"]]
    assert flow["error"] is None and flow["bytes_acked"] > 0


def test_timeouts_are_counted(namespace, tools, sink):
    # Nobody answers there: a SYN is sent again after 1 s.
    for command in ("ip link add v0 type veth peer name v1",
                    "ip link set v1 up", "ip link set v0 up",
                    "ip address add 10.9.1.1/24 dev v0",
                    "ip neighbour add 10.9.1.2 lladdr 02:00:00:00:00:02 "
                    "dev v0"):
        done = namespace.run(*command.split())
        if done.returncode:
            pytest.skip(f"{command}: {done.stderr.strip()}")
    sent, _ = send(namespace, tools,
                   "id=1 dst=10.9.1.2 port=5001 pages=http stop=1.5\n"
                   "id=2 dst=10.9.1.2 port=5001 pages=http stop=1.5\n")
    assert sent["network"]["timeouts"] == sent["network"]["retransmits"] == 2
    assert [flow["error"] for flow in sent["flows"]] == [None, None]
    assert [flow["pages"]["duration_s"] for flow in sent["flows"]] == [[None]] * 2


# UDP


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


# What goes wrong


@pytest.mark.parametrize("line, named", [
    ("id=1 dst=127.0.0.1 port=5001 colour=red", "unknown key 'colour'"),
    ("id=1 dst=127.0.0.1 port=5001 nonsense", "'nonsense' is not key=value"),
    ("dst=127.0.0.1 port=5001", "id= is missing"),
    ("id=1 port=5001", "dst= is missing"),
    ("id=1 dst=127.0.0.1", "port= is missing"),
    ("id=0 dst=127.0.0.1 port=5001", "id=0:"),
    ("id=2147483648 dst=127.0.0.1 port=5001", "id=2147483648:"),
    ("id=1 id=2 dst=127.0.0.1 port=5001", "id= is given twice"),
    ("id=1 dst=localhost port=5001", "dst=localhost:"),
    ("id=1 dst=127.0.0.1 port=70000", "port=70000:"),
    ("id=1 dst=127.0.0.1 port=5001 start=1x", "start=1x:"),
    ("id=1 dst=127.0.0.1 port=5001 start=-1", "start=-1:"),
    ("id=1 dst=127.0.0.1 port=5001 start=1.2.3", "start=1.2.3:"),
    ("id=1 dst=127.0.0.1 port=5001 start=", "start=:"),
    ("id=1 dst=127.0.0.1 port=5001 start=2 stop=1", "stop= is not after"),
    ("id=1 dst=127.0.0.1 port=5001 prio=16", "prio=16:"),
    ("id=1 dst=127.0.0.1 port=5001 bytes=0", "bytes=0:"),
    ("id=1 dst=127.0.0.1 port=5001 bytes=1.0005k", "bytes=1.0005k:"),
    ("id=1 dst=127.0.0.1 port=5001 bytes=99999999999999999999",
     "bytes=99999999999999999999:"),
    ("id=1 dst=127.0.0.1 port=5001 on=1", "on= needs off="),
    ("id=1 dst=127.0.0.1 port=5001 off=1", "off= needs"),
    ("id=1 dst=127.0.0.1 port=5001 repeat=2", "repeat= needs bytes="),
    ("id=1 dst=127.0.0.1 port=5001 objects=2", "objects= needs pages="),
    ("id=1 dst=127.0.0.1 port=5001 pages=ftp", "pages=ftp: expected http"),
    ("id=1 dst=127.0.0.1 port=5001 pages=http bytes=1", "bytes= and pages="),
    ("id=1 dst=127.0.0.1 port=5001 pages=http on=1 off=1", "on= and pages="),
    ("id=1 dst=127.0.0.1 port=5001 pages=http objects=0.9", "objects=0.9:"),
    ("id=1 dst=127.0.0.1 port=5001 pages=http object-min=0", "object-min=0:"),
    ("id=1 dst=127.0.0.1 port=5001 pages=http object-max=2000g",
     "object-max=2000g:"),
    ("id=1 dst=127.0.0.1 port=5001 pages=http object-mean=50",
     "object-mean=50: no power tail"),
    ("id=1 dst=127.0.0.1 port=5001 pages=http connections=2", "connections=2:"),
    ("id=1 dst=127.0.0.1 port=5001 pages=http proto=udp rate=1",
     "pages= is not for proto=udp"),
    ("id=1 dst=127.0.0.1 port=5001 on=1 off=1 bytes=1", "on= and bytes= exclude"),
    ("id=1 dst=127.0.0.1 port=5001 on=exp: off=1", "on=exp::"),
    ("id=1 dst=127.0.0.1 port=5001 rate=1m", "size= is missing"),
    ("id=1 dst=127.0.0.1 port=5001 size=100", "size= needs rate="),
    ("id=1 dst=127.0.0.1 port=5001 rate=1m size=100 source=closed",
     "source=closed needs on="),
    ("id=1 dst=127.0.0.1 port=5001 rate=1m size=100 floor=2m",
     "floor= is above rate="),
    ("id=1 dst=127.0.0.1 port=5001 rate=1m size=100 pages=http",
     "rate= and pages= exclude"),
    ("id=1 dst=127.0.0.1 port=5001 bytes=9 repeat=2 connect=early",
     "repeat= and connect=early exclude"),
    ("id=1 dst=127.0.0.1 port=5001 bytes=9 connect=late", "connect=late:"),
    ("id=1 dst=127.0.0.1 port=5001 proto=udp rate=1m connect=early",
     "connect= is not for proto=udp"),
    ("id=1 dst=127.0.0.1 port=5001 proto=udp", "rate= is missing"),
    ("id=1 dst=127.0.0.1 port=5001 proto=udp rate=1m cc=reno",
     "cc= is not for proto=udp"),
    ("id=1 dst=127.0.0.1 port=5001 ecn=1", "ecn= is not for proto=tcp"),
    ("id=1 dst=127.0.0.1 port=5001 proto=udp rate=1m ecn=2", "ecn=2:"),
    ("id=1 dst=127.0.0.1 port=5001 proto=udp rate=1q", "rate=1q:"),
    ("id=1 dst=127.0.0.1 port=5001 proto=udp rate=1m hold=1",
     "hold= needs arrival=mmpp"),
    ("id=1 dst=127.0.0.1 port=5001 proto=udp rate=1m arrival=mmpp",
     "hold= is missing"),
    ("id=1 dst=127.0.0.1 port=5001 proto=udp rate=1m arrival=mmpp hold=0",
     "hold=0:"),
    ("id=1 dst=127.0.0.1 port=5001 proto=udp rate=1m arrival=mmpp hold=1 "
     "states=1", "states=1:"),
    ("id=1 dst=127.0.0.1 port=5001 proto=udp rate=1m arrival=mmpp hold=1 "
     "low=2m", "low= is above rate="),
    ("id=1 dst=127.0.0.1 port=5001 proto=udp rate=1m arrival=mmpp hold=1 "
     "on=1 off=1", "on= and arrival=mmpp exclude"),
    ("id=1 dst=127.0.0.1 port=5001 rate=1m size=99 states=3",
     "states= is not for proto=tcp"),
    ("id=1 dst=127.0.0.1 port=5001 proto=udp rate=1m size=9", "size=9:"),
    ("id=1 dst=127.0.0.1 port=5001 proto=sctp", "proto=sctp:"),
    ("id=1 dst=127.0.0.1 port=5001 cc=no_such_cc",
     "cc=no_such_cc: unknown congestion control"),
    ("id=9 dst=127.0.0.1 port=5001", "id=9 is already used in line 1"),
])
def test_bad_flow_lines(tools, tmp_path, line, named):
    flows = tmp_path / "flows"
    report = tmp_path / "report.json"
    flows.write_text(f"id=9 dst=127.0.0.1 port=5001 # fine\n\n{line}\n")
    done = subprocess.run(
        [tools / "tollway-traffic", "send", "--flows", flows,
         "--json", report, "--duration", "1"],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"flows:3: {named}" in done.stderr
    assert list(tmp_path.iterdir()) == [flows]


@pytest.mark.parametrize("arguments, named", [
    ([], "Usage"),
    (["wait"], "'wait'"),
    (["send"], "--flows"),
    (["send", "--flows", "/nowhere/flows"], "/nowhere/flows"),
    (["send", "--flows", "/dev/null"], "no flow"),
    (["send", "--flows", "-", "--duration", "soon"], "--duration: 'soon'"),
    (["send", "--flows", "-", "--sample-ms", "x"], "--sample-ms: 'x'"),
    (["send", "--colour"], "--colour"),
    (["sink"], "--port"),
    (["sink", "--port", "0"], "'0'"),
    (["sink", "--port", "5001,x"], "'x'"),
    (["sink", "--port", "5001", "--bind", "host"], "--bind: 'host'"),
    (["sink", "--port", "5001", "--cc", "no_such_cc"], "no_such_cc"),
    (["sink", "--port", "5001", "--json", "/nowhere/r"], "/nowhere/r"),
    (["sink", "--port", "5001", "extra"], "'extra'"),
])
def test_bad_arguments(namespace, tools, arguments, named):
    done = namespace.run(tools / "tollway-traffic", *arguments, input="")
    assert done.returncode == 2
    assert named in done.stderr
    assert done.stderr.count("\n") == 1 or not arguments


def test_refused_connection(namespace, tools, sink):
    sent, complaint = send(namespace, tools,
                           "id=1 dst=127.0.0.1 port=5001 bytes=10\n"
                           "id=2 dst=127.0.0.1 port=5999 bytes=10\n",
                           status=1)
    sink.stop()
    good, bad = sent["flows"]
    assert good["error"] is None and good["bytes_acked"] == 10
    assert "127.0.0.1:5999: Connection refused" in bad["error"]
    assert bad["connected_s"] is None and bad["local_port"] is None
    assert complaint.count("\n") == 1
    assert "standard input:2: flow 2:" in complaint


def test_sink_that_goes_away(namespace, tools, sink):
    sender = namespace.start(tools / "tollway-traffic", "send", "--flows", "-",
                             "--duration", "10", stdin=subprocess.PIPE)
    sender.stdin.write("id=1 dst=127.0.0.1 port=5001 on=0.01 off=0.05\n")
    sender.stdin.close()
    sender.stdin = None
    sink.wait_for_connection()
    time.sleep(0.2)
    sink.stop(when_idle=False)
    out, complaint = sender.communicate(timeout=TIMEOUT_S)
    assert sender.returncode == 1
    assert complaint.count("\n") == 1 and "127.0.0.1:5001" in complaint
    flow = json.loads(out)["flows"][0]
    assert flow["error"] and flow["bytes_acked"] > 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_interrupted_sender_reports(namespace, tools, sink, tmp_path, number):
    flows = tmp_path / "flows"
    report = tmp_path / "report.json"
    flows.write_text("id=1 dst=127.0.0.1 port=5001 on=0.01 off=0.1\n"
                     "id=2 dst=127.0.0.1 port=5001 bytes=1 start=100\n")
    sender = namespace.start(tools / "tollway-traffic", "send",
                             "--flows", flows, "--json", report)
    sink.wait_for_connection()
    time.sleep(0.3)
    assert not report.exists()
    sender.send_signal(number)
    out, error = sender.communicate(timeout=TIMEOUT_S)
    sink.stop()
    assert (sender.returncode, out, error) == (128 + number, "", "")
    written = json.loads(report.read_text())
    assert written["interrupted"] is True
    assert written["flows"][0]["bytes_acked"] > 0
    assert written["flows"][1]["connected_s"] is None
    assert sorted(tmp_path.iterdir()) == [flows, report]


def test_interrupted_udp_sender_reports(namespace, tools, sink):
    sender = namespace.start(tools / "tollway-traffic", "send", "--flows", "-",
                             stdin=subprocess.PIPE)
    sender.stdin.write("id=1 dst=127.0.0.1 port=5001 proto=udp rate=80k\n")
    sender.stdin.close()
    sender.stdin = None
    wait_for_timer(sender)
    time.sleep(0.3)
    sender.send_signal(signal.SIGTERM)
    out, _ = sender.communicate(timeout=TIMEOUT_S)
    sink.stop()
    assert sender.returncode == 128 + signal.SIGTERM
    assert json.loads(out)["flows"][0]["packets"] > 0


def test_sink_stops_by_itself(namespace, tools):
    done = namespace.run(tools / "tollway-traffic", "sink",
                         "--port", "5001,5002", "--stop-at", "0.1")
    assert done.returncode == 0
    report = json.loads(done.stdout)
    assert report["connections"] == report["udp"] == []
    assert report["interrupted"] is False


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


@pytest.mark.parametrize("program", ["traffic", "qsample"])
def test_full_disk_leaves_no_report(namespace, tools, tmp_path, program):
    report = tmp_path / "report.json"
    if program == "traffic":
        command = ["tollway-traffic", "sink", "--port", "5001",
                   "--stop-at", "0.05"]
    else:
        command = ["tollway-qsample", "--dev", "lo", "--interval-us", "1000",
                   "--stop", "0.01"]
    command = [tools / command[0], *command[1:]]
    # Python ignores SIGXFSZ, and so do its children when we ask: the write
    # fails as on a full disk.
    done = namespace.run(
        *command, "--json", report, restore_signals=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64)))
    assert done.returncode == 1
    assert "cannot write" in done.stderr and done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
    done = namespace.run(*command, "--json", "/dev/full")
    assert done.returncode == 1 and "/dev/full" in done.stderr
    assert Path("/dev/full").is_char_device()


# tollway-qsample


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
