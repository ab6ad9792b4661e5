# SPDX-License-Identifier: GPL-2.0
"""The calibration of a run: which networks it takes, and which it does not."""

import contextlib
import copy
import shutil
from pathlib import Path

import guest_base
from guest_base import near, note

from tollwaylib.errors import TollwayError
from tollwaylib.guest.nodes import shell
from tollwaylib.guest.job import Run

TOOLS = "/run/tollway/build/tools"
OUT = Path("/tmp/calibration")
MBIT = 10**6


def job_of(words):
    """A job of its own for these settings."""
    return copy.deepcopy(guest_base.SETTINGS["given"][words])


@contextlib.contextmanager
def network(words=""):
    """The Run of a double bottleneck, with its network and these settings, one
    of those of test_calibration.py."""
    made = Run(dict(job_of(words), out_dir=str(OUT), bin_dir=TOOLS))
    OUT.mkdir()
    try:
        made.build()
        yield made
    finally:
        made.close()
        shutil.rmtree(OUT)


def shape(made, link, rate_bps):
    """Let the shaper of a link have another rate than it should."""
    node, device = made.topo.priced[link]
    made.net[node].nameToIntf[device].change(rate_bps, None)


def delay(made, more_ms):
    """Let the way to the first source be longer than it should."""
    edge = made.net["s1"].nameToIntf["s1-r1"]
    edge.change(edge.rate_bps, edge.delay_ms + more_ms)


def passed(made):
    """The calibration of a network that is as it should be."""
    found = made.calibrate()
    note(", ".join(f"{name} {link['rate_bps'] / MBIT:.4f} of "
                   f"{link['capacity_bps'] / MBIT:g} Mb/s, "
                   f"{link['rtt_ms']:.3f} ms" for name, link in found.items()))
    assert set(found) == {"core1", "core2"}
    # What was put in the place of the queue has gone again.
    for node, device in made.topo.priced.values():
        assert "sbrm 10:" in shell(made.net[node],
                                   f"tc qdisc show dev {device}")
    return found


def refused(made):
    """What ends the run with a network that is not as it should be."""
    try:
        made.calibrate()
    except TollwayError as error:
        note(str(error))
        return str(error)
    raise AssertionError("the calibration passed")


def check_rate():
    """A link off by more than rate_tolerance is an error; it may be more."""
    with network("rate_tolerance=0.003") as made:
        shape(made, "core1", int(96 * MBIT * 0.9975))
        assert 95.7 <= passed(made)["core1"]["rate_bps"] / MBIT < 95.8
        made.parameters.update(job_of("")["parameters"])
        for part, carried in ((0.9975, 95.7), (1.0025, 96.2)):
            shape(made, "core1", int(96 * MBIT * part))
            said = refused(made)
            assert said.startswith(
                f"calibration failed: core1 carries {carried}"), said
            assert said.endswith(" Mb/s instead of 96.00")
        # Faster than the load: there is nothing to drop.
        made.parameters["rate_tolerance"] = 1.0
        shape(made, "core1", 192 * MBIT)
        assert refused(made) == ("calibration failed: overload of core1 was not "
                                 "dropped at its queue")


def check_round_trip():
    """A way longer by more than rtt_tolerance_ms is an error; it may be more."""
    with network("rate_mbit=8 rtt_tolerance_ms=0.5") as made:
        delay(made, 0.3)
        assert 6.3 <= passed(made)["core1"]["rtt_ms"] <= 6.5
        made.parameters["rtt_tolerance_ms"] = \
            job_of("")["parameters"]["rtt_tolerance_ms"]
        said = refused(made)
        assert said.startswith("calibration failed: the round trip of path I is "
                               "6.3"), said
        assert said.endswith(" ms instead of 6 ms")
        # Nor may it be shorter, with any tolerance.
        delay(made, -0.6)
        made.parameters["rtt_tolerance_ms"] = 10000.0
        assert "is 5.7" in refused(made)


def check_low_rates():
    """Where a packet is more than the tolerance, or time, links are right."""
    for rate_mbit in (0.3, 1.3, 2):
        with network(f"rate_mbit={rate_mbit}") as made:
            for link in passed(made).values():
                assert near(link["rate_bps"], rate_mbit * MBIT, 0.01)
            # One packet of the hundred may be missing, and not three.
            shape(made, "core1", int(rate_mbit * MBIT * 0.97))
            said = refused(made)
            assert said.startswith("calibration failed: core1 carries "), said


def row(rate_bps=96 * MBIT):
    """Three links in a row and one path over all: none is alone in a path. As
    experiments/network_parts.py, which is not there in the lab, describes it."""
    # The first lets less through than the others take.
    links = [("link", {"name": f"L{number}", "first": f"r{number}",
                       "second": f"r{number + 1}", "rate_bps": rate_bps * part,
                       "delay_ms": 1}) for number, part in ((1, 1), (2, 2), (3, 2))]
    ends = [("endpoint", {"name": name, "router": router, "delay_ms": 1,
                          "sends": name == "s1"})
            for name, router in (("s1", "r1"), ("d1", "r4"))]
    return {"parts": [
        *(("router", {"name": f"r{number}"}) for number in range(1, 5)), *links,
        *ends, ("path", {"name": "all", "source": "s1", "sink": "d1",
                         "links": ["L1", "L2", "L3"], "rtt_ms": 10})]}


def check_no_path_of_its_own():
    """A link that is in no path alone is calibrated as any other; one that is
    in no path at all is an error that says so."""
    with network() as made:
        pass
    (case,) = made.job["cases"]
    job = dict(made.job, topology={"packet_bytes": 1000, **row()},
               cases=[dict(case, flows=[dict(case["flows"][0], path="all")])])
    made = Run(job)
    OUT.mkdir()
    try:
        made.build()
        found = made.calibrate()
        note(", ".join(f"{name} {link['rate_bps'] / MBIT:.4f} Mb/s"
                       for name, link in found.items()))
        for link, rate_mbit in (("L1", 96), ("L2", 192), ("L3", 192)):
            assert near(found[link]["rate_bps"], rate_mbit * MBIT, 0.002), link
            assert found[link]["drops"], link
        shape(made, "L3", int(192 * MBIT * 0.99))
        assert refused(made).startswith("calibration failed: L3 carries 190.0")
        made.topo.paths["all"]["links"].remove("L2")
        assert refused(made) == "calibration failed: no path crosses L2"
    finally:
        made.close()
        shutil.rmtree(OUT)


if __name__ == "__main__":
    guest_base.main(globals())
