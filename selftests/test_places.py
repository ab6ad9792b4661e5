# SPDX-License-Identifier: GPL-2.0
"""Limits of the places: a job that hangs ends everywhere."""

import concurrent.futures
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tollwaylib import papers
from tollwaylib.errors import TollwayError
from tollwaylib.experiments import jobs, plan
from tollwaylib.papers import networks
from tollwaylib.places import child, limits, model
from tollwaylib.places.host import HostPlace
from tollwaylib.places.usermode_lab import LabPlace
from tollwaylib.places.qemu import QemuPlace

# A run that hangs; `deaf` ones do not end when they are told to, and have a
# child.
HANGS = """import signal, subprocess, sys, time
folder = sys.argv[1].rpartition("/")[0]
def told(number, frame):
    open(folder + "/told", "w").close()
    if not deaf:
        raise SystemExit(130)
signal.signal(signal.SIGTERM, told)
child = subprocess.Popen(["sleep", "1000"])
print(f"tollway: {child.pid}", flush=True)
while True:
    time.sleep(1000)
"""


def job_of(name):
    """The job of an experiment with its defaults."""
    experiment = papers.get(name)
    return jobs.job(experiment, "pp", "fq_rr", plan.parse_settings(
        experiment, [], "pp", "fq_rr"), experiment.duration_s, 1)


def gone(pid):
    """Has a process ended within some seconds?"""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            if ") Z " in Path(f"/proc/{pid}/stat").read_text():
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.05)
    return False


def place_with(program, kind, monkeypatch, top):
    """A place whose jobs run a program in top/scripts instead, in a process of its own."""
    monkeypatch.setattr(child, "TOP", top)
    monkeypatch.setattr(model, "flows_of", lambda job: [])
    place = HostPlace([("reno", "pfifo")]) if kind == "host" else model.ModelPlace()
    place.children.program = program
    return place


@pytest.mark.parametrize("kind", ["host", "model"])
@pytest.mark.parametrize("deaf", [False, True])
def test_a_process_that_hangs(deaf, kind, tmp_path, monkeypatch):
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/hangs.py").write_text(f"deaf = {deaf}\n{HANGS}")
    monkeypatch.setattr(limits, "REAL_GRACE_S", 1.5)
    monkeypatch.setattr(model, "WALL_S", 2.5)
    monkeypatch.setattr(limits, "END_S", 1)
    place = place_with("hangs", kind, monkeypatch, tmp_path)
    said = []
    started = time.monotonic()
    with pytest.raises(TollwayError) as raised:
        place.run({"virtual_s": 1, "cases": []}, tmp_path, 0,
                  said.append)
    assert 2.5 <= time.monotonic() - started < 30
    assert "did not finish within 2.5 s and was stopped" in str(raised.value)
    assert str(tmp_path / "console.log") in str(raised.value)
    # It was asked first, so that it could remove its namespaces.
    assert (tmp_path / "told").exists()
    assert gone(said[0].split()[1])

def test_a_stop_reaches_all_at_once(tmp_path, monkeypatch):
    """Jobs that do not end when they are told to do not delay one another."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/hangs.py").write_text(f"deaf = True\n{HANGS}")
    monkeypatch.setattr(limits, "END_S", 3)
    place = place_with("hangs", "model", monkeypatch, tmp_path)
    said, stops = [], threading.Barrier(4)

    def run(number):
        folder = tmp_path / str(number)
        folder.mkdir()

        def on_line(line):
            said.append(line)
            stops.wait()

        with pytest.raises(TollwayError, match="was stopped"):
            place.run({"virtual_s": 1, "cases": []}, folder, None, on_line)

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        done = [pool.submit(run, number) for number in range(3)]
        stops.wait()
        started = time.monotonic()
        place.stop()
        for one in done:
            one.result()
    assert 3 <= time.monotonic() - started < 6
    assert all(gone(line.split()[1]) for line in said)


# A run whose child needs memory; what it does where it gets none.
HUNGRY = """import subprocess, sys
sys.exit(subprocess.call([sys.executable, "-c", f"bytearray({mb} << 20)"]))
"""


@pytest.mark.parametrize("kind", ["host", "model"])
@pytest.mark.parametrize("mb, enough", [(64, True), (512, False)])
def test_the_memory_of_a_process(mb, enough, kind, tmp_path, monkeypatch):
    """It is that of each process, also of one that a run starts."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/hungry.py").write_text(f"mb = {mb}\n{HUNGRY}")
    monkeypatch.setattr(limits, "PROCESS_MB", 256)
    place = place_with("hungry", kind, monkeypatch, tmp_path)
    if enough:
        place.run({"virtual_s": 1, "cases": []}, tmp_path, 0, print)
        return
    with pytest.raises(TollwayError, match="There was no memory left, of the host "
                       "or of a process, which may have 256 MiB") as raised:
        place.run({"virtual_s": 1, "cases": []}, tmp_path, 0, print)
    assert str(tmp_path / "console.log") in str(raised.value)


@pytest.mark.parametrize("make", [LabPlace, QemuPlace])
def test_a_long_list_of_cases_may_take_its_time(make, tmp_path):
    """The limit is that of all cases, not that of one."""
    job = job_of("pp-burst")
    given = {}

    def run(_argv, folder, **words):
        given.update(words)
        (folder / "raw.json").touch()
        return 0

    place = make()
    place.lab = place.machine = SimpleNamespace(run=run)
    place.run(job, tmp_path, 0, print)
    assert len(job["cases"]) > 1
    assert job["virtual_s"] > 2 * job["parameters"]["duration_s"]
    assert job["virtual_s"] < given["virtual_s"] <= job["virtual_s"] + 1000
    # The one in the guest, which says what hangs, comes first.
    if make is QemuPlace:
        assert given["wall_s"] > given["virtual_s"]
    assert given["memory_mb"] == limits.MEMORY_MB


@pytest.mark.parametrize("cases, memory_mb", [
    ([1000], 768), ([1001], 8192), ([1000, 3], 768), ([3, 1001], 8192)])
def test_memory_for_many_flows(cases, memory_mb):
    assert limits.memory_mb({
        "parameters": {"rate_mbit": 10.0}, "topology": networks.one_link(10**7).data(),
        "cases": [{"flows": [{}] * count, "values": {}} for count in cases]}
    ) == memory_mb


@pytest.mark.parametrize("mbit, rtt_ms, memory_mb", [
    (1000.0, 20.0, 768), (10000.0, 20.0, 8192)])
def test_memory_for_much_in_flight(mbit, rtt_ms, memory_mb):
    case = {"flows": [{}], "values": {"rate_mbit": mbit, "rtt_ms": rtt_ms}}
    assert limits.memory_mb({
        "parameters": {"rate_mbit": 10.0}, "topology": networks.one_link(10**7).data(),
        "cases": [case]}) == memory_mb
    # What a network has by itself, and that of a case.
    large, small = (networks.one_link(rate, rtt_ms).data()
                    for rate in (mbit * 1e6, 10**7))
    for built, changed in ((large, None), (small, large)):
        assert limits.memory_mb({
            "parameters": {"rate_mbit": 10.0}, "topology": built,
            "cases": [dict(case, values={}, network=changed)]}) == memory_mb
    # A rate that comes during the case, of the only link or of one by name.
    link = next(words["name"] for kind, words in small["parts"] if kind == "link")
    for name, wanted in ([], memory_mb), ([link], memory_mb), (["other"], 768):
        assert limits.memory_mb({
            "parameters": {"rate_mbit": 10.0}, "topology": small,
            "cases": [dict(case, values={}, rates=[[1.0, mbit * 1e6, *name]])]}
        ) == wanted
