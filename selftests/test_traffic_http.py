# SPDX-License-Identifier: GPL-2.0
"""The HTTP model of tollway-traffic."""

import math
import shutil
import statistics
import subprocess

import pytest
from traffic_bench import TIMEOUT_S, TOOLS, send

pytest_plugins = ["traffic_bench"]

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
