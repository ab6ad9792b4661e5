# SPDX-License-Identifier: GPL-2.0
"""`tollway run --on host`, where the lab's kernel is the host."""

import functools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import declared
import guest_base
from guest_base import note, run

SRC = Path("/run/tollway/src")
CACHE = Path("/tmp/cache")
MODULES = Path("/run/tollway/build/modules")
# Virtual time: more than enough for any run below.
LIMIT_S = 300
COMMAND = [f"{SRC}/scripts/tollway"]
WORDS = ["--duration", "3", "--set", "warmup_s=1", "--set", "flows_per_class=1"]


@functools.cache
def environment():
    """A user's environment, with the tools as if they had been built."""
    settings = {key: value for key, value in os.environ.items()
                if key not in ("PYTHONPATH", "TC_LIB_DIR")}
    settings.update(TOLLWAY_CACHE=str(CACHE), MPLCONFIGDIR="/tmp")
    # The guest's own tollwaylib does not lie in a checkout.
    folder = run([sys.executable, "-c",
                  "from tollwaylib.kernels import build; "
                  "print(build.tools_folder())"],
                 env=dict(settings, PYTHONPATH=str(SRC / "scripts"))).strip()
    if not Path(folder).exists():
        Path(folder).parent.mkdir()
        run(["cp", "-r", "/run/tollway/build/tools", folder])
    return settings


def command(out_dir, *words):
    """The words of a short run."""
    return [*COMMAND, "run", "double-bottleneck", "--on", "host", *WORDS,
            "--out", str(out_dir), *words]


def namespaces():
    """{process: network namespace} of all processes in one of their own."""
    own = os.readlink("/proc/self/ns/net")
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        # It may end meanwhile, also between two of these.
        try:
            space = os.readlink(entry / "ns/net")
            name = (entry / "comm").read_text(errors="replace").strip()
        except OSError:
            continue
        if space not in (own, ""):
            found[name, entry.name] = space
    return found


def gone():
    """Nothing of a run may be left: processes, namespaces, interfaces."""
    for _ in range(100):
        if not namespaces():
            break
        time.sleep(0.1)
    assert not namespaces(), f"left over: {namespaces()}"
    links = run("ip -o link show type veth")
    assert not links, links


def finished(name, *words):
    """A run to its end, which leaves its results and nothing else, and a status
    that says whether all verdicts hold; (status, result)."""
    out_dir = Path("/tmp") / name
    done = subprocess.run(command(out_dir, *words), text=True,
                          env=environment(), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, timeout=LIMIT_S)
    assert done.returncode in (0, 1), (done.returncode, done.stderr)
    assert "Rates by class" in done.stdout
    for line in done.stdout.splitlines():
        if line.startswith("core"):
            note(line)
    result = json.loads((out_dir / "seed-1/result.json").read_text())
    failed = [entry["name"] for entry in result["published"] + result["bounds"]
              if entry["verdict"] in ("fails", "differs")]
    note(f"status {done.returncode}; verdicts that do not hold: {failed}")
    assert done.returncode == int(bool(failed))
    assert (out_dir / "index.html").exists()
    gone()
    return done.returncode, result


def check_run():
    """A run leaves its results and nothing else; both queues mark."""
    _, result = finished("run")
    (case,) = result["cases"]
    for name, link in case["links"].items():
        assert link["marks"] > 0, (name, link)


def check_nothing_to_judge():
    """The status of a run without any verdict is 0; other modules serve it."""
    status, _ = finished("pairs", "--cc", "pp", "--aqm", "fq_rr")
    assert status == 0


def interrupted(name, number, group, at="second"):
    """A signal to a run (or to its whole process group, as a terminal's
    Ctrl-C) leaves nothing behind; `at` is what it says when it comes."""
    out_dir = Path("/tmp") / name
    process = guest_base.start(
        command(out_dir, "--duration", "60", "--trace", "pcap"), text=True,
        env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        start_new_session=True)
    said = []
    for line in process.stderr:
        said.append(line)
        if at in line:
            break
    assert at in said[-1] and process.poll() is None, said
    # Some of what it starts after it has said so.
    time.sleep(0.01)
    (os.killpg if group else os.kill)(process.pid, number)
    rest = process.stderr.read()
    status = process.wait(LIMIT_S)
    if number == signal.SIGKILL:
        assert status == -signal.SIGKILL, (status, said, rest)
    else:
        assert status == 130, (status, said, rest)
        assert rest.strip().splitlines()[-1] == "tollway: interrupted", rest
    gone()
    assert not list(out_dir.rglob("result.json"))


def check_sigint():
    """SIGINT while the flows send."""
    interrupted("sigint", signal.SIGINT, False)


def check_ctrl_c():
    """SIGINT to all processes of a terminal."""
    interrupted("ctrl-c", signal.SIGINT, True)


def check_sigint_while_building():
    """SIGINT while there is half of a network."""
    interrupted("building", signal.SIGINT, False, at="building the network")


def check_sigkill():
    """A run that is killed cannot clean up; its child does."""
    interrupted("sigkill", signal.SIGKILL, False)


CASES = """
links = {"core": {"from": "a", "to": "b", "rate": "8Mbit"}}
paths = {"p": {"links": ["core"], "rtt": "20ms"}}
flows = [{"path": "p"}]
cases = {"slow": {"links": {"core": {"rate": "4Mbit"}}}, "fast": {}}
cc, queue, duration = "sbrm", "delay", "3s"
metrics = [("utilization", "core")]
"""


def check_cases_are_kept():
    """An interrupt loses the case that runs, and no other."""
    folder = Path("/tmp/cases")
    folder.mkdir()
    (folder / "two.py").write_text(CASES)
    words = [*COMMAND, "run", "two.py", "--on", "host", "--out", "out"]
    process = guest_base.start(
        words, text=True, env=environment(), cwd=folder,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = ""
    for line in process.stderr:
        said += line
        if "1 of 2 cases done" in line:
            break
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    said += process.stderr.read()
    assert process.wait(LIMIT_S) == 130, said
    assert "1 of 2 cases are kept" in said, said
    gone()
    kept = folder / "out/seed-1/cases/001/part.json"
    made = kept.read_bytes()
    done = subprocess.run([*words, "--resume"], text=True, env=environment(),
                          cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert "1 of 2 cases exist already" in done.stderr, done.stderr
    assert kept.read_bytes() == made
    result = json.loads((folder / "out/seed-1/result.json").read_text())
    assert [case["name"] for case in result["cases"]] == ["slow", "fast"]
    gone()


def check_iperf3_leaves_nothing():
    """A client that waits for its start goes with the run."""
    process = guest_base.start(
        command("/tmp/iperf3", "--traffic", "iperf3", "--set",
                "start_jitter_s=10", "--duration", "30"), text=True,
        env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    for line in process.stderr:
        if "second" in line:
            break
    process.send_signal(signal.SIGTERM)
    assert process.wait(LIMIT_S) == 130, process.stderr.read()
    gone()


def sentence(*words):
    """The last line of what a run that is not possible says."""
    done = subprocess.run(command("/tmp/missing", *words), text=True,
                          env=environment(), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, timeout=LIMIT_S)
    assert done.returncode == 2 and not done.stdout, done.stdout
    assert not list(Path("/tmp").glob("missing/*/result.json"))
    return done.stderr.strip().splitlines()[-1]


def check_missing_modules():
    """Each missing module is named in one sentence, with what to do."""
    guest_base.modules_unload()
    try:
        said = sentence()
        assert said == (
            "tollway: --on host is not possible here: there is no sbrm qdisc "
            "(make install, or insmod sch_sbrm.ko); there is no congestion "
            "control sbrm (make install, or insmod tcp_sbrm.ko)"), said
        said = sentence("--cc", "pp", "--aqm", "fq_rr")
        assert said.endswith(
            "here: there is no fq_rr qdisc (make install, or insmod "
            "sch_fq_rr.ko); there is no congestion control pp (make install, "
            "or insmod tcp_pp.ko)"), said
        for name in ("rm", "rem", "cp"):
            said = sentence("--cc", name, "--aqm", "pfifo")
            assert said.endswith(
                f"there is no congestion control {name} (make install, or "
                "insmod tcp_sbrm.ko)"), said
        said = sentence("--cc", "nosuch", "--aqm", "pfifo limit 10")
        assert said.endswith("here: there is no congestion control nosuch "
                             "(modprobe tcp_nosuch)"), said
        said = sentence("--cc", "reno", "--aqm", "nosuch")
        assert said.endswith("here: there is no nosuch qdisc "
                             "(modprobe sch_nosuch)"), said
    finally:
        for module in declared.MODULES:
            run(f"insmod {MODULES}/{module}/{module}.ko")


def check_bad_words_for_a_qdisc():
    """Words that a qdisc refuses are no missing module."""
    said = sentence("--aqm", "codel target x")
    note(said)
    assert "target" in said and "not possible here" not in said, said
    gone()


if __name__ == "__main__":
    guest_base.main(globals())
