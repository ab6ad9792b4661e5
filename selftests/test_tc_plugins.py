# SPDX-License-Identifier: GPL-2.0
"""What holds of every plugin of tc that is here."""

import os
import re
import shutil
import subprocess

import pytest
from tc_stub import TC, TOOLS, Tc

from tollwaylib.kernels import build

pytestmark = pytest.mark.skipif(not TC or not shutil.which("cc"),
                                reason="needs tc (iproute2) and cc")

# {kind: words that its manual explains}
WORDS = {
    "sbrm": ("mark", "rem-pc1", "rem-pc2", "rem-pc3", "vqm", "delay", "feedback", "price", "four-bit",
             "two-bit", "high", "low", "goal", "cycles", "beyond", "cycle_max",
             "phi", "alpha", "rate", "avpkt", "interval", "delta", "scale", "carried",
             "uncarried", "saturated", "input", "virtual", "service", "service_rate", "idle",
             "limit", "target", "gamma", "packets", "bytes", "ecn", "drop", "noecn",
             "nodrop", "price-drop", "coupled", "coupling", "small", "any-ect", "l4s-ect",
             "coupled_drops", "coupled_marks", "coupled_prob", "spared", "overload",
             "overload_drops", "split-gso", "no-split-gso", "dither", "no-dither", "sparse",
             "no-sparse", "reset-stats",
             "TC_LIB_DIR"),
    "fq_rr": ("limit", "memory_limit", "flows", "service", "rr", "drr", "wfq", "quantum",
              "overflow", "drop-last", "drop-tail-of-longest", "drop-longest", "longest",
              "packets", "bytes", "classify", "flow", "priority", "mark", "weigh", "weights",
              "weight", "perturb", "split-gso", "no-split-gso", "collisions", "rehashes",
              "last_drops", "longest_drops", "longest_events", "own_drops", "memory_drops",
              "trim_drops", "flows_used", "new_flows", "longest_now", "memory_used",
              "quantum_used", "weight_used", "credit"),
}


@pytest.fixture(scope="module", params=sorted(WORDS))
def tc(request, tmp_path_factory):
    return Tc(tmp_path_factory.mktemp("tc"), request.param)


def symbols(binary, which):
    out = subprocess.run(["nm", "-D", which, binary], check=True, text=True,
                         capture_output=True).stdout
    return {line.split()[-1] for line in out.splitlines()}


def test_undefined_symbols_are_exported_by_tc(tc):
    exported = {s.split("@")[0] for s in symbols(TC, "--defined-only")}
    wanted = {line for line in symbols(tc.plugin, "--undefined-only") if "@" not in line
              and line not in ("__gmon_start__", "_ITM_deregisterTMCloneTable",
                               "_ITM_registerTMCloneTable")}
    assert wanted and wanted <= exported
    helper = re.compile("addattr|parse_rtattr|get_|print_|(open|close)_json_")
    assert all(helper.match(name) for name in wanted)


def test_exports_one_writable_object(tc):
    out = subprocess.run(["nm", "-D", "--defined-only", tc.plugin], check=True, text=True,
                         capture_output=True).stdout
    assert [line.split()[1:] for line in out.splitlines()] == [["D", f"{tc.kind}_qdisc_util"]]


@pytest.mark.parametrize("words, says", [
    ("netem delay 10ms 1ms distribution normal", "Cannot find device"),
    ("netem delay 10ms 1ms distribution late", "Cannot find device"),
    ("netem delay 10ms 1ms distribution nosuch", "nosuch.dist")])
def test_tc_finds_its_own_files_beside_the_plugins(words, says):
    """TC_LIB_DIR is the only place where tc looks; it reads the distribution
    before it looks for the device."""
    done = subprocess.run(
        [TC, "qdisc", "add", "dev", "nosuch", "root", *words.split()],
        env=dict(os.environ, TC_LIB_DIR=str(build.tools())), text=True,
        capture_output=True, check=False)
    assert done.returncode and says in done.stderr


def test_every_plugin_is_here():
    assert {path.stem[2:] for path in TOOLS.glob("q_*.c")} == set(WORDS)


def test_every_option_is_in_the_help(tc):
    done = tc.add("help")
    assert done.returncode != 0 and not tc.request.exists()
    options = re.findall(r'^\t\{ "([a-z_-]+)",', (TOOLS / f"q_{tc.kind}.c").read_text(), re.M)
    assert options or tc.kind == "sbrm"
    for option in options:
        assert re.search(rf"(?<![\w-]){option}(?![\w-])", done.stderr), option


def test_man_page(tc):
    page = TOOLS / f"man/tc-{tc.kind}.8"
    if not shutil.which("man"):
        pytest.skip("needs man")
    # groff 1.23 takes words with underscores apart at the end of a line.
    done = subprocess.run(["man", "--warnings", "--no-hyphenation", "-l", page],
                          text=True, capture_output=True,
                          env=dict(os.environ, MANWIDTH="80", LC_ALL="C.UTF-8",
                                   MANPAGER="cat"))
    assert (done.returncode, done.stderr) == (0, "")
    for word in WORDS[tc.kind]:
        assert re.search(rf"\b{word}\b", done.stdout), word
