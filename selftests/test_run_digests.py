# SPDX-License-Identifier: GPL-2.0
"""The same seed gives the same bytes, whatever the host, the place and the user."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from run_bench import SHORT, TOP, tollway

NOBODY = 65534
NO_SOURCES = (".git", "build", "tollway-results", "__pycache__", ".pytest_cache")
# What the login shell of a normal user has in Debian: tc, modinfo, insmod and
# sysctl are in none of these.
LOGIN_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games"


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
    # Twice as many as the cores that they and the lab may have.
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
               for _ in range(2 * len(os.sched_getaffinity(0)))]
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


def test_cases_have_equal_digests(tmp_path):
    digests = []
    for place in ("one", "two"):
        done = tollway("run", "pp-bench-3", "--cc", "pp", "--set",
                       "only=4 packets", "--trace", "hash", "--json", "-",
                       "--out", tmp_path / place)
        assert done.returncode in (0, 1), done.stderr
        digests.append(json.loads(done.stdout)["digest"])
    assert digests[0] == digests[1]
