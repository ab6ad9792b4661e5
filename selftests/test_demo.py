# SPDX-License-Identifier: GPL-2.0
"""The README shows what the command prints."""

import json
import re
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent
COMMAND = ("run", "double-bottleneck", "--cc", "sbrm", "--aqm", "sbrm")


def test_the_demo_prints_what_the_readme_shows(lab, tmp_path):
    """`make demo`, without the path of the report and repeated empty lines."""
    text = (TOP / "README.md").read_text()
    kernel, shown = re.search(
        r"This is the output on Linux ([\d.]+)\..*?```\n(.*?)```", text,
        re.S).groups()
    makefile = re.sub(r"\\\n\s*", "", (TOP / "Makefile").read_text())
    assert re.search(rf"^demo:.*\n.*tollway {' '.join(COMMAND)} ", makefile, re.M)
    done = subprocess.run(
        [str(TOP / "scripts/tollway"), *COMMAND, "--out", str(tmp_path)],
        text=True, stdin=subprocess.DEVNULL, capture_output=True, check=False,
        timeout=1800)
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "seed-1/result.json").read_text())
    here = result["provenance"]["kernel"].partition("-")[0]
    if here != kernel:
        pytest.skip(f"the README has the output on Linux {kernel}, and the "
                    f"lab has {here}")
    printed = re.sub(r"^report: .*\n", "", done.stdout, flags=re.M)
    assert re.sub(r"\n{3,}", "\n\n", printed).strip() == shown.strip()
