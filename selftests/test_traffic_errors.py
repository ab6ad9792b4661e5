# SPDX-License-Identifier: GPL-2.0
"""tollway-traffic where something goes wrong: bad words, peers that are not there,
signals, full disks."""

import json
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest
from traffic_bench import TIMEOUT_S, send, wait_for_timer

pytest_plugins = ["traffic_bench"]


# One more than a flow may be told.
RATES = "told=8" + "".join(f",8@{second}" for second in range(1, 33))


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
     "object-mean=50: no Pareto distribution"),
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
    ("id=1 dst=127.0.0.1 port=5001 told=", "told=: expected BITS"),
    ("id=1 dst=127.0.0.1 port=5001 told=1m@1", "told=1m@1: expected BITS"),
    ("id=1 dst=127.0.0.1 port=5001 told=1m,2m", "told=1m,2m: expected BITS"),
    ("id=1 dst=127.0.0.1 port=5001 told=1m,2m@2,3m@2",
     "told=1m,2m@2,3m@2: expected BITS"),
    ("id=1 dst=127.0.0.1 port=5001 told=1m,", "told=1m,: expected BITS"),
    ("id=1 dst=127.0.0.1 port=5001 told=1m,0@1", "told=1m,0@1: expected BITS"),
    (f"id=1 dst=127.0.0.1 port=5001 {RATES}", f"{RATES}: expected BITS"),
    ("id=1 dst=127.0.0.1 port=5001 proto=udp rate=1m told=1m",
     "told= is not for proto=udp"),
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
