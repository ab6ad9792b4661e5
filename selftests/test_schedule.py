# SPDX-License-Identifier: GPL-2.0
"""Links whose rates change during a case."""

import json
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "scripts"))

from tollwaylib.errors import TollwayError  # noqa: E402
from tollwaylib.paths import TOP  # noqa: E402
from tollwaylib.results.measurements import LinkRate  # noqa: E402


def test_the_rate_of_a_link_at_a_time():
    links = {"l": {"capacity_bps": 8e6}, "m": {"capacity_bps": 1e6}}
    rate = LinkRate({"rates": [[1.0, 2e6, "l"], [2.0, 5e6, "m"], [3.0, 4e6, "l"]]},
                    links, "l")
    assert list(rate.at([0.0, 0.9, 1.0, 2.9, 3.0, 9.0])) == [8e6, 8e6, 2e6, 2e6, 4e6,
                                                             4e6]
    assert rate.mean(0.0, 4.0) == pytest.approx((8 + 2 * 2 + 4) / 4 * 1e6)
    assert rate.mean(0.5, 1.5) == pytest.approx(5e6)
    assert rate.mean(1.5, 2.5) == pytest.approx(2e6)
    assert LinkRate({}, links, "m").mean(1.0, 2.0) == 1e6
    for wrong in ([[1, "x", "l"]], [[1, 2]], None, [[1, 0, "l"]], [[1, 2, "n"]],
                  [[2, 1e6, "l"], [1, 1e6, "l"]], [[-1, 1e6, "l"]],
                  [[float("nan"), 1e6, "l"]]):
        with pytest.raises(TollwayError, match="rates of a case are not"):
            LinkRate({"rates": wrong}, links, "l")


def test_rates_change_as_scheduled(tmp_path):
    """A link that has a quarter of its rate from 4 s on, in one of two cases, and
    what is measured of it."""
    path = tmp_path / "mine.py"
    path.write_text("""
links = {"core": {"from": "a", "to": "b", "rate": "8Mbit"},
         "edge": {"from": "b", "to": "c", "rate": "10Mbit"}}
paths = {"p": {"links": ["core", "edge"], "rtt": "20ms"}}
flows = [{"path": "p"}]
cases = {"slower": {"links": {"core": {"schedule": [("4s", "2Mbit")]}}},
         "back": {"links": {"core": {"schedule": [("2s", "2Mbit"), ("4s", "8Mbit")]},
                            "edge": {"schedule": [("7s", "9Mbit")]}}},
         "always": {}}
queue = "fq_codel"
duration = "8s"
warmup = "1s"
metrics = [("utilization", "core"), ("utilization", "edge"),
           ("delay_mean_ms", "core"), ("goodput_mbit", "p")]
""")
    out = tmp_path / "out"
    done = subprocess.run(
        [str(TOP / "scripts/tollway"), "run", str(path), "--json", "-", "--out",
         str(out)], text=True, stdin=subprocess.DEVNULL, capture_output=True,
        check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {case["name"]: case["metrics"] for case in
             json.loads(done.stdout)["cases"]}
    # In 7 s: 3 at 8 and 4 at 2 Mb/s, and so on; the edge waits for the core.
    for name, core, edge in (("slower", 32 / 7, 10), ("back", 44 / 7, 69 / 7),
                             ("always", 8, 10)):
        seen = found[name]
        assert 0.9 < seen["utilization core"] <= 1.01, (name, seen)
        assert seen["utilization edge"] == pytest.approx(
            seen["utilization core"] * core / edge, rel=0.05), (name, seen)
        assert seen["goodput_mbit p"] == pytest.approx(
            seen["utilization core"] * core * 1448 / 1514, rel=0.05), (name, seen)
    # CoDel keeps some ms of packets that take four times as long.
    assert 2 < found["slower"]["delay_mean_ms core"] < 60
    assert list(out.glob("figures/*.svg"))
