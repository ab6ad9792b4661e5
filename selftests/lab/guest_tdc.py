# SPDX-License-Identifier: GPL-2.0
"""The cases of selftests/tdc, run by the kernel's own tdc.py.

By hand, where the plugins of tc are installed: copy the files to
tools/testing/selftests/tc-testing/tc-tests/qdiscs and run ./tdc.py -c fq_rr
"""

import json
import os
import re
from pathlib import Path

import guest_base
from guest_base import note, run

CASES = Path(__file__).resolve().parents[1] / "tdc"
# tdc.py starts every command with an environment of its own.
LOCAL = f"""
import os
EXTRA_NAMES = {{"TC": {run("which tc").strip()!r}, "IP": {run("which ip").strip()!r}}}
ENVIR = {{"TC_LIB_DIR": {os.environ.get("TC_LIB_DIR", "")!r},
         "PATH": os.environ["PATH"]}}
"""


def prepare():
    """The kernel's tc-testing, as it lies in its tree; its directory."""
    folder = Path("tc-testing").absolute()
    run("tar -xf tc-testing.tar")
    (folder / "tdc_config_local.py").write_text(LOCAL)
    # It wants the plugins that cases ask for in this place.
    (folder / "plugins").mkdir(exist_ok=True)
    (folder / "plugins/__init__.py").touch()
    # The plugin of 6.12 does not wait for the process that makes the devices of a
    # case, which has its turn here: in virtual time no time slice ends.
    plugin = folder / "plugin-lib/nsPlugin.py"
    flush = "        proc.stdin.flush()\n"
    plugin.write_text(plugin.read_text().replace(
        flush, flush + "        time.sleep(0.05)\n"))
    return folder


def cases_pass(kind):
    """Every case of a file: ok."""
    cases = json.loads((CASES / f"{kind}.json").read_text())
    assert len({case["id"] for case in cases}) == len(cases)
    said = run(["/usr/bin/python3", "tdc.py", "-f",
                str(CASES / f"{kind}.json")], check=False, cwd=prepare())
    good = set(re.findall(r"^ok \d+ (\w+)", said, re.M))
    bad = re.findall(r"^not ok .*", said, re.M)
    note(f"{len(good)} of {len(cases)} ok")
    assert not bad and good == {case["id"] for case in cases}, said[-6000:]


def check_fq_rr():
    """tdc for fq_rr."""
    cases_pass("fq_rr")


def check_sbrm():
    """tdc for sbrm."""
    cases_pass("sbrm")


if __name__ == "__main__":
    guest_base.main(globals())
