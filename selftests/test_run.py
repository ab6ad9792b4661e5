# SPDX-License-Identifier: GPL-2.0
"""`tollway run` and the lab from outside: same bytes, bad input, bad ends."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest

TOP = Path(__file__).resolve().parent.parent
TOLLWAY = TOP / "scripts/tollway"
SHORT = ["run", "double-bottleneck", "--duration", "3", "--set", "warmup_s=1",
         "--trace", "hash"]
NOBODY = 65534
NO_SOURCES = (".git", "build", "tollway-results", "__pycache__", ".pytest_cache")
# What the login shell of a normal user has in Debian: tc, modinfo, insmod and
# sysctl are in none of these.
LOGIN_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games"


def tollway(*words, top=TOP, prefix=(), **keywords):
    """Run the command; returns the finished process."""
    # In case it hangs. A machine that others use takes ten times as long as one
    # that is idle: 150 s for runs of a quarter of a minute were seen.
    keywords.setdefault("timeout", 1800)
    return subprocess.run(
        [*prefix, str(top / "scripts/tollway"), *map(str, words)], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL, check=False, **keywords)


def last_line(done):
    """What the command said last on standard error."""
    return done.stderr.strip().splitlines()[-1]


def kernels(below):
    """Process ids of the lab's kernels whose run writes below a directory, and
    of kernels and guests that have lost their parent."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            exe = os.readlink(entry / "exe")
            if "/lab-" not in exe or not exe.endswith("/linux"):
                continue
            fields = (entry / "stat").read_text().rpartition(") ")[2].split()
            if int(fields[1]) == 1 or os.readlink(
                    entry / "fd/4").startswith(f"{below}/"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def gone(below, seconds=10):
    """Wait until no kernel of a directory is left; False if one stays."""
    deadline = time.monotonic() + seconds
    while kernels(below):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


@pytest.fixture
def no_traces(tmp_path):
    """Fail if a test leaves a kernel or what it keeps its sockets in."""
    yield
    assert gone(tmp_path)


# --- same seed, same bytes -------------------------------------------------

def digest(out_dir, *words, **keywords):
    """Digest of a short run, packets and samples included."""
    done = tollway(*SHORT, *words, "--json", "-", "--out", out_dir, **keywords)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)["digest"]


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """Digest of seed 1."""
    return digest(tmp_path_factory.mktemp("reference"))


def test_two_runs_have_equal_digests(reference, tmp_path):
    assert digest(tmp_path) == reference


def test_another_seed_has_another_digest(reference, tmp_path):
    assert digest(tmp_path, "--seed", 2) != reference


def test_load_of_the_host_does_not_show(reference, tmp_path):
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
               for _ in range(2 * (os.cpu_count() or 1))]
    try:
        assert digest(tmp_path) == reference
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def test_programs_take_no_code_of_a_newer_processor():
    """Nor does the processor show, of which there is one here: what glibc found
    in it must not be used."""
    loader = "/lib64/ld-linux-x86-64.so.2"
    if not Path(loader).exists():
        pytest.skip("not x86-64: other processors are not made equal")
    said = tollway("lab", "exec", loader, "--list-diagnostics").stdout
    found = dict(re.findall(r"^(\S+)=(\S+)", said, re.MULTILINE))
    features = "x86.cpu_features.features[0x1].active"
    # Leaf 7, EBX: BMI1, AVX2, BMI2, ERMS, RTM and those of AVX512.
    assert int(found[features + "[0x1]"], 16) & 0xD0030B28 == 0
    assert int(found["x86.cpu_features.xsave_state_size"], 16) == 0
    assert int(found["dl_hwcaps_subdirs_active"], 16) == 0


@pytest.fixture(scope="module")
def elsewhere():
    """A copy of checkout and cache that anybody can read, in another place."""
    from tollwaylib.kernels import build
    from tollwaylib.kernels.usermode import kernel
    from tollwaylib.paths import cache_dir

    built = kernel()
    parts = {built.build, build.modules(built), build.tools().parent}
    with tempfile.TemporaryDirectory(prefix="other-place-", dir=cache_dir()) \
            as name:
        # Not below the cache: its parents may be closed to others.
        root = Path(tempfile.mkdtemp(prefix="other-place-", dir="/var/tmp"))
        try:
            root.chmod(0o755)
            cache, top = root / "a-cache-of-another-name", root / "checkout-2"
            cache.mkdir()
            for part in parts:
                shutil.copytree(part, cache / part.name, symlinks=True,
                                copy_function=_link_or_copy)
            # What .gitignore names, and git's own: a checkout may have no git.
            shutil.copytree(TOP, top, symlinks=True,
                            ignore=lambda folder, names: {
                                name for name in names if name in NO_SOURCES or
                                name.startswith(".checkpatch-camelcase.")})
            subprocess.run(["chmod", "-R", "a+rX", str(root)], check=True)
            yield top, cache
        finally:
            shutil.rmtree(root, ignore_errors=True)
            del name


def _link_or_copy(source, target):
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


def test_another_checkout_has_the_same_digest(reference, elsewhere, tmp_path):
    top, cache = elsewhere
    assert digest(tmp_path, top=top, env=dict(
        os.environ, TOLLWAY_CACHE=str(cache))) == reference


@pytest.fixture
def nobody():
    """(directory of an unprivileged user, command that makes one of root, its
    environment); it needs no more in PATH than a login shell puts there."""
    if os.geteuid() != 0:
        pytest.skip("not root: every other run here is an unprivileged "
                    "user's already")
    home = Path(tempfile.mkdtemp(prefix="nobody-", dir="/var/tmp"))
    try:
        os.chown(home, NOBODY, NOBODY)
        yield home, ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}",
                     "--clear-groups"), \
            dict(os.environ, HOME=str(home), MPLCONFIGDIR=str(home),
                 PATH=LOGIN_PATH)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def test_an_unprivileged_user_has_the_same_digest(reference, elsewhere, nobody):
    top, cache = elsewhere
    home, prefix, env = nobody
    assert digest(home, top=top, cwd="/", prefix=prefix,
                  env=dict(env, TOLLWAY_CACHE=str(cache))) == reference
    modules = json.loads((home / "seed-1/result.json").read_text()
                         )["provenance"]["modules"]
    assert all(fields["srcversion"] for fields in modules.values())


def test_an_unprivileged_user_runs_programs_and_captures(elsewhere, nobody):
    """The lab's root is that user for the host, who may not give files away."""
    top, cache = elsewhere
    home, prefix, env = nobody
    done = subprocess.run(
        [*prefix, top / "scripts/tollway", "run", "aacc-rate", "--duration", "1",
         "--set", "warmup_s=0.5", "--set", "only=r = 0.2", "--json", "-", "--out",
         home / "results"], cwd="/", env=dict(env, TOLLWAY_CACHE=str(cache)),
        text=True, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    # 1: a bound that a moment is too short for.
    assert done.returncode in (0, 1), done.stderr
    assert len(json.loads(done.stdout)["digest"]) == 64


# --- the family of CP05 ------------------------------------------------------

@pytest.mark.parametrize("words, bounds", [
    (("double-bottleneck", "--cc", "cp", "--aqm", "price", "--duration", "20"),
     4),
    # Over 10 s the mean queue is 2 to 11 % off the law, by the seed.
    (("double-bottleneck", "--cc", "rem", "--aqm", "rem", "--duration", "20"),
     4),
    (("double-bottleneck", "--aqm", "vqm", "--duration", "10"), 2),
    (("parking-lot", "--duration", "20"), 5),
    (("steady-state", "--duration", "30"), 2),
    (("single-bottleneck", "--cc", "rm", "--aqm", "red", "--duration", "10"),
     0)])
def test_experiments_reach_their_bounds(words, bounds, tmp_path, no_traces):
    done = tollway("run", *words, "--json", "-", "--out", tmp_path)
    assert done.returncode in (0, 1), done.stderr
    result = json.loads(done.stdout)
    assert len(result["bounds"]) == bounds
    failed = [bound for bound in result["bounds"]
              if bound["verdict"] == "fails"]
    assert not failed, failed
    (case,) = result["cases"]
    assert all(link["utilization"] > 0.8 for link in case["links"].values())
    assert (tmp_path / "index.html").is_file()


# --- cases -------------------------------------------------------------------

@pytest.mark.parametrize("words, cases, bounds", [
    (("pp-base",), 1, 4),
    (("pp-bench-3", "--set", "only=20 packets"), 1, 0),
    (("pp-burst", "--set", "only=N = 3, ", "--duration", "4"), 2, 2)])
def test_cases_reach_their_bounds(words, cases, bounds, tmp_path, no_traces):
    done = tollway("run", *words, "--cc", "pp", "--json", "-", "--out",
                   tmp_path)
    assert done.returncode in (0, 1), done.stderr
    result = json.loads(done.stdout)
    assert len(result["cases"]) == cases
    assert len(result["bounds"]) == bounds
    assert not [bound for bound in result["bounds"]
                if bound["verdict"] == "fails"]
    for point in result["cases"]:
        # Everything was done, and each source has a queue of its own.
        assert point["metrics"].get("completion_tu", 1) is not None
        assert point["metrics"].get("completion_ms", 1) is not None
        assert point["metrics"].get("peak", 1) > 0
    assert (tmp_path / "index.html").is_file()


def test_cases_of_another_source_have_no_classes_to_look_at(tmp_path):
    done = tollway("run", "pp-bench-3", "--cc", "reno", "--aqm",
                   "pfifo limit 100", "--set", "only=20 packets", "--json",
                   "-", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["cases"][0]["metrics"]["completion_ms"] > 44
    assert result["published"] == result["bounds"] == []


def test_cases_have_equal_digests(tmp_path):
    digests = []
    for place in ("one", "two"):
        done = tollway("run", "pp-bench-3", "--cc", "pp", "--set",
                       "only=4 packets", "--trace", "hash", "--json", "-",
                       "--out", tmp_path / place)
        assert done.returncode in (0, 1), done.stderr
        digests.append(json.loads(done.stdout)["digest"])
    assert digests[0] == digests[1]


def test_cases_need_our_traffic(tmp_path):
    done = tollway("run", "pp-base", "--cc", "reno", "--traffic", "iperf3",
                   "--out", tmp_path)
    assert done.returncode == 2
    assert "pp-base needs tollway" in last_line(done)


# --- other traffic ---------------------------------------------------------

# A flow that starts six round trips later is behind for some seconds. Who loses
# at a drop-tail queue is chance: there the sum alone can agree.
@pytest.mark.parametrize("cc, aqm, tolerance", [
    ("sbrm", "sbrm", 0.2), ("reno", "pfifo", None)])
def test_iperf3_agrees_with_our_traffic(cc, aqm, tolerance, tmp_path,
                                        no_traces):
    if not shutil.which("iperf3"):
        pytest.skip("iperf3 is missing")
    results = {}
    for traffic in ("tollway", "iperf3"):
        done = tollway(
            "run", "double-bottleneck", "--duration", "4", "--set",
            "warmup_s=2", "--set", "flows_per_class=1", "--set",
            "rate_mbit=24", "--cc", cc, "--aqm", aqm, "--traffic", traffic,
            "--json", "-", "--out", tmp_path / traffic)
        assert done.returncode in (0, 1), done.stderr
        results[traffic] = json.loads(done.stdout)
    ours, theirs = (results[traffic]["cases"][0] for traffic in
                    ("tollway", "iperf3"))
    for link, measured in theirs["links"].items():
        assert measured["utilization"] == pytest.approx(
            ours["links"][link]["utilization"], abs=0.05)
        # The receiver echoes, or the queue would drop.
        if tolerance:
            assert measured["marks"] > 0 and measured["drops"] == 0
    if not tolerance:
        return
    for measured, expected in zip(theirs["classes"], ours["classes"]):
        assert (measured["path"], measured["wtp"]) == \
            (expected["path"], expected["wtp"])
        assert measured["rate_pps"] == pytest.approx(
            expected["rate_pps"], rel=tolerance)


# --- bad input -------------------------------------------------------------

@pytest.mark.parametrize("words, says", [
    (["run", "nosuch"], "there is no experiment nosuch"),
    (["run", "double-bottleneck", "--duration", "0"], "argument --duration"),
    (["run", "double-bottleneck", "--duration", "nan"], "argument --duration"),
    (["run", "double-bottleneck", "--duration", "4"], "--duration 4"),
    (["run", "double-bottleneck", "--seed", "x"], "argument --seed"),
    (["run", "double-bottleneck", "--repeat", "0"], "argument --repeat"),
    (["run", "double-bottleneck", "--set", "gamma"], "--set gamma"),
    (["run", "double-bottleneck", "--set", "gamma=zero"], "--set gamma=zero"),
    (["run", "double-bottleneck", "--set", "gamma=2"], "--set gamma=2"),
    (["run", "double-bottleneck", "--set", "kappa=nan"], "--set kappa=nan"),
    (["run", "double-bottleneck", "--set", "limit=1.5"], "--set limit=1.5"),
    (["run", "double-bottleneck", "--set", "source=x"], "--set source=x"),
    (["run", "double-bottleneck", "--set", "nope=1"], "no such parameter"),
    (["run", "double-bottleneck", "--set", "target=1000"],
     "must be below limit"),
    (["run", "double-bottleneck", "--aqm", ""], "--aqm needs"),
    (["run", "double-bottleneck", "--aqm", "red '"], "--aqm"),
    (["run", "double-bottleneck", "--frobnicate"], "--frobnicate"),
    (["run", "double-bottleneck", "--on", "moon"], "argument --on"),
    (["report", "/nonexistent"], "/nonexistent"),
    (["lab", "exec"], "needs a command"),
    (["frobnicate"], "frobnicate"),
])
def test_bad_words_end_in_one_sentence(words, says, tmp_path):
    done = tollway(*words, cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == ""
    assert says in last_line(done)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words, says", [
    (["--cc", "nosuch"], "--cc nosuch: this kernel has no such"),
    (["--aqm", "nosuch"], "Specified qdisc kind is unknown"),
    (["--aqm", "sbrm gamma 2"], "gamma"),
    (["--aqm", "codel target never"], "target"),
])
def test_what_the_kernel_does_not_know(words, says, tmp_path, no_traces):
    done = tollway("run", "double-bottleneck", "--duration", "7", *words,
                   "--out", tmp_path / "out")
    assert done.returncode == 2
    assert says in last_line(done)
    # Once, and with nothing left behind.
    assert done.stderr.count(last_line(done).removeprefix("tollway: ")) == 1
    assert not list(tmp_path.iterdir())


def test_words_that_are_refused_leave_what_was_there(tmp_path, no_traces):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/kept").touch()
    done = tollway("run", "double-bottleneck", "--duration", "7", "--cc",
                   "nosuch", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert (tmp_path / "out/kept").exists()
    assert not (tmp_path / "out/seed-1").exists()


def test_host_says_what_is_missing(tmp_path):
    done = tollway("run", "double-bottleneck", "--on", "host", "--cc",
                   "nosuch", "--out", tmp_path / "out")
    assert done.returncode == 2
    if os.geteuid() == 0:
        assert "there is no congestion control nosuch" in last_line(done) or \
            "namespaces cannot be made" in last_line(done)
    else:
        assert "needs root" in last_line(done)


@pytest.mark.parametrize("options, program", [
    ({}, "tc (package iproute2)"), ({}, "mnexec (package mininet)"),
    ({"trace": "hash"}, "tcpdump (package tcpdump)"),
    ({"traffic": "iperf3"}, "iperf3 (package iperf3)")])
def test_missing_programs_are_named_before_the_run(options, program, tmp_path,
                                                   monkeypatch):
    from tollwaylib import SBIN, add_sbin
    from tollwaylib import papers
    from tollwaylib.errors import TollwayError
    from tollwaylib.runs import runner

    # None of the place is called: it has no methods.
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TollwayError) as raised:
        runner.run(SimpleNamespace(has_kernel=True), [runner.Combination(
            papers.get("double-bottleneck"), "sbrm", "sbrm", {}, 3,
            tmp_path / "out", options=options)], [1], tmp_path / "out")
    assert program in str(raised.value)
    assert "scripts/install-dependencies" in str(raised.value)
    assert ("tcpdump" in str(raised.value)) == ("trace" in options)
    assert not (tmp_path / "out").exists()
    add_sbin()
    assert os.environ["PATH"].split(":") == [str(tmp_path), *SBIN]


@pytest.mark.parametrize("name", ["missing", "/etc/passwd", "/proc"])
def test_tmpdir_that_cannot_be_used(name, tmp_path):
    # A name that is relative would be below the working directory.
    name = str(tmp_path / name)
    done = tollway("lab", "exec", "true", env=dict(os.environ, TMPDIR=name),
                   cwd=tmp_path)
    assert done.returncode == 2
    assert f"TMPDIR={name}: " in last_line(done)


def test_removed_working_directory(tmp_path, no_traces):
    """The lab does without; a result that would be below it cannot be."""
    script = ('mkdir "$1"; cd "$1"; rmdir "$1"; shift; exec "$@"', "sh",
              tmp_path / "gone")
    done = tollway("lab", "exec", "--out", tmp_path / "out", "pwd",
                   prefix=("sh", "-c", *map(str, script)))
    assert (done.returncode, done.stdout) == (0, "/run/tollway/out\n")
    done = tollway(*SHORT, prefix=("sh", "-c", *map(str, script)))
    assert done.returncode == 2
    assert "the working directory has been removed" in last_line(done)


# --- verdicts --------------------------------------------------------------

def test_a_run_ends_with_its_verdicts(tmp_path, no_traces):
    done = tollway(*SHORT, "--out", tmp_path / "out", "--json",
                   tmp_path / "json")
    result = json.loads((tmp_path / "json").read_text())
    # By the published schema, and without our code.
    jsonschema.validate(result, json.loads(
        (TOP / "scripts/tollwaylib/results/result.schema.json").read_text()))
    entries = result["published"] + result["bounds"]
    held, failed = ([entry for entry in entries if entry["verdict"] in words]
                    for words in (("holds", "agrees", "better"),
                                  ("fails", "differs")))
    # So short a run is far from the shares.
    assert failed and done.returncode == 1, done.stderr
    said = done.stdout[done.stdout.index("report: "):].splitlines()
    assert said[0] == f"report: {tmp_path / 'out/index.html'}"
    assert said[1].startswith(f"{len(held)} of {len(held) + len(failed)} "
                              "verdicts hold.")
    assert said[2] == "These do not hold:" and len(said) == 3 + len(failed)
    for line, entry in zip(said[3:], failed):
        assert line.startswith(f"  {entry['name']}: {entry['verdict']} (")
    # The same of the report that is made again.
    again = tollway("report", tmp_path / "out")
    assert again.stdout.splitlines() == said and again.returncode == 0


# --- bad ends --------------------------------------------------------------

def test_command_that_is_not_there(no_traces):
    done = tollway("lab", "exec", "nosuch")
    assert done.returncode == 2
    assert done.stdout == ("tollway: the command nosuch cannot be run in the "
                           "lab: No such file or directory\n")


def test_command_that_a_signal_ends(no_traces):
    assert tollway("lab", "exec", "sh", "-c",
                   "kill -9 $$").returncode == 128 + 9


def test_a_name_that_is_not_utf_8(tmp_path, no_traces):
    out = tmp_path / os.fsdecode(b"l\xfct")
    done = tollway(*SHORT, "--out", out, errors="surrogateescape")
    assert done.returncode in (0, 1), done.stderr
    assert f"report: {out}/index.html" in done.stdout
    page = (out / "index.html").read_text()
    assert "--out" in page and r"l\xfct" in page


def test_panic_keeps_the_log(tmp_path, no_traces):
    done = tollway(
        "lab", "exec", "--out", tmp_path, "--", "sh", "-c",
        "sysctl -qw vm.panic_on_oom=1 vm.overcommit_memory=1; "
        "/usr/bin/python3 -c \"x = b'1' * (2 << 30)\"")
    assert done.returncode == 2
    assert "Kernel panic" in last_line(done)
    log = tmp_path / "kernel.log"
    assert str(log) in last_line(done)
    assert "panic_on_oom" in log.read_text()


def test_mount_is_told_to_use_the_old_interface(tmp_path, no_traces):
    """With the new one mount of util-linux 2.39 and later cannot mount hostfs."""
    done = tollway("lab", "exec", "printenv", "LIBMOUNT_FORCE_MOUNT2",
                   cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "always\n")


def test_doctor_sees_a_lab_that_does_not_boot(monkeypatch, no_traces):
    from tollwaylib.doctor import local
    from tollwaylib.places import machine

    assert (local.boots().about, local.boots().verdict) == ("lab", "ok")
    monkeypatch.setattr(machine, "MOUNT_2",
                        "A=1; echo mount: fsconfig failed >&2; exit 32")
    found = local.boots()
    log = Path(re.search(r"see (\S+)", found.text)[1])
    try:
        assert found.verdict == "wrong" and "Kernel panic" in found.text
        assert "mount: fsconfig failed" in found.text
        assert "mount: fsconfig failed" in log.read_text()
    finally:
        shutil.rmtree(log.parent)


def test_doctor_and_info_see_a_lab_that_cannot_be_used(monkeypatch, capsys,
                                                       no_traces):
    from tollwaylib import cli
    from tollwaylib.commands.lab import command_lab
    from tollwaylib.doctor import local
    from tollwaylib.errors import TollwayError
    from tollwaylib.places import machine

    monkeypatch.setattr(machine, "TRIAL", "tc qdisc add dev lo root nosuch")
    found = local.boots()
    assert found.verdict == "wrong" and "nosuch" in found.text
    shutil.rmtree(Path(re.search(r"see (\S+)", found.text)[1]).parent)
    with pytest.raises(TollwayError, match="command fails there: .*nosuch"):
        command_lab(cli.parser().parse_args(["lab", "info"]))
    said = capsys.readouterr().out
    assert "boots" not in said and "image" in said


def test_doctor_says_that_the_lab_is_not_built(tmp_path, monkeypatch):
    from tollwaylib.doctor import local

    monkeypatch.setenv("TOLLWAY_CACHE", str(tmp_path))
    assert local.boots().verdict == "note"


def test_watchdog_of_real_time(tmp_path, no_traces):
    done = tollway("lab", "exec", "--wall", "3", "--out", tmp_path, "--", "sh",
                   "-c", "while :; do :; done")
    assert done.returncode == 2
    assert "within 3 s of real time" in last_line(done)


def test_limit_of_virtual_time(tmp_path, no_traces):
    done = tollway("lab", "exec", "--virtual", "1000", "--out", tmp_path, "--",
                   "sleep", "1001", timeout=60)
    assert done.returncode == 2
    assert "not finished after 1000" in done.stdout
    assert tollway("lab", "exec", "--virtual", "1000", "--", "sleep",
                   "999").returncode == 0


def test_status_and_one_writable_directory(tmp_path, no_traces):
    done = tollway("lab", "exec", "--out", tmp_path, "--", "sh", "-c",
                   "echo inside > mark; touch /etc/mark /run/tollway/src/mark; "
                   "exit 7")
    assert done.returncode == 7
    assert (tmp_path / "mark").read_text() == "inside\n"
    assert done.stdout.count("Read-only file system") == 2


def test_module_that_does_not_load(tmp_path, no_traces):
    from tollwaylib.places.machine import Lab

    lines = []
    status = Lab().run(["true"], tmp_path, modules=("tcp_sbrm/sbrm.o",),
                       on_line=lines.append)
    assert status == 2
    assert any("the module sbrm.o does not load" in line for line in lines)


def start(out_dir, *words):
    """Start a long run and wait until its flows send."""
    process = subprocess.Popen(
        [str(TOLLWAY), "run", "double-bottleneck", *words, "--out",
         str(out_dir)], text=True, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE)
    for line in process.stderr:
        if " of 60" in line:
            return process
    process.wait()
    raise AssertionError("the run ended before it began")


@pytest.mark.parametrize("number, status", [
    (signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)])
def test_interrupted_run_leaves_nothing(number, status, tmp_path):
    process = start(tmp_path / "out")
    assert kernels(tmp_path)
    process.send_signal(number)
    errors = process.stderr.read()
    assert process.wait(timeout=30) == status
    if number != signal.SIGKILL:
        assert errors.strip().splitlines()[-1] == "tollway: interrupted"
    assert gone(tmp_path)
    assert not list(tmp_path.rglob("result.json"))
    assert not list(tmp_path.rglob("raw.json"))


@pytest.mark.parametrize("delay_s", [0.3, 0.6, 0.9, 1.2, 1.5, 2, 3])
def test_interrupted_at_any_moment(delay_s, tmp_path):
    """While modules are imported, while the lab boots, in calibration: there is
    a moment at which the kernel is about to be started."""
    process = subprocess.Popen(
        [str(TOLLWAY), *SHORT, "-j", "2", "--repeat", "2", "--out",
         str(tmp_path / "out")], text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE)
    time.sleep(delay_s)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert errors.endswith("tollway: interrupted\n")
    assert "Traceback" not in out + errors
    assert gone(tmp_path)
    assert not list(tmp_path.rglob("raw.json"))


def test_a_lab_that_was_stopped_starts_nothing(tmp_path):
    from tollwaylib.errors import TollwayError
    from tollwaylib.places.machine import Lab

    lab = Lab()
    lab.stop()
    started = time.monotonic()
    with pytest.raises(TollwayError):
        lab.run(["sh", "-c", "while :; do :; done"], tmp_path, wall_s=60)
    assert time.monotonic() - started < 30 and gone(tmp_path)


def test_two_runs_at_once(tmp_path):
    first = start(tmp_path / "out")
    try:
        second = tollway(*SHORT, "--out", tmp_path / "out")
        assert second.returncode == 2
        assert "another run writes to" in last_line(second)
        assert tollway(*SHORT, "--out", tmp_path / "other").returncode in (0, 1)
    finally:
        first.send_signal(signal.SIGINT)
        first.stderr.read()
        first.wait()


def test_full_disk(tmp_path, no_traces):
    if os.geteuid() != 0:
        pytest.skip("not root: no small file system can be mounted")
    done = tollway(
        *SHORT, "--out", tmp_path / "small", prefix=(
            "unshare", "-m", "sh", "-c",
            f"mkdir {tmp_path}/small && mount -t tmpfs -o size=200k tmpfs "
            f"{tmp_path}/small && \"$@\"; status=$?; "
            f"ls {tmp_path}/small/seed-1 >&2; exit $status", "sh"))
    listing, said = done.stderr.splitlines(), done.stderr
    assert done.returncode == 2, said
    assert "No space left on device" in said
    assert "result.json" not in listing and "raw.json" not in listing
