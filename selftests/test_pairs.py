# SPDX-License-Identifier: GPL-2.0
"""Packet-pair sources as fluids: the poles that PP94 4.2.1 gives, the rest of its law, and
`tollway run --on model` of them."""

import cmath
import json
import math
import pathlib
import subprocess

import numpy as np
import pytest
from tollwaylib import papers
from tollwaylib.errors import RefusedError, TollwayError
from tollwaylib.experiments import jobs, plan
from tollwaylib.places.model import flows_of
from tollwaylib.theory import pairs

TOLLWAY = pathlib.Path(__file__).parents[1] / "scripts/tollway"
# PP94 Table 3, row wan: a time unit is 0.6 ms.
RTT_S, CAPACITY_PPS = 0.06, 100 / 0.06


def course(sources=1, round_trips=60, **words):
    return pairs.simulate(CAPACITY_PPS,
                          [number * 0.01 for number in range(sources)], RTT_S,
                          pairs.PairSetting(**words), round_trips * RTT_S,
                          RTT_S / 50)


def peaks(backlog):
    """[(index, value)] of the local maxima of a smooth course."""
    return [(index, backlog[index]) for index in range(1, len(backlog) - 1)
            if backlog[index - 1] < backlog[index] >= backlog[index + 1]]


@pytest.mark.parametrize("pole", [1.0, 0.9, 0.5])
def test_eigenvalues(pole):
    """PP94: of the modulus sqrt(pole); with 1 at 60 degrees, a sixth of a circle."""
    first, second = pairs.eigenvalues(pole)
    assert abs(first) == pytest.approx(math.sqrt(pole))
    assert first == second.conjugate()
    assert first ** 2 - first + pole == pytest.approx(0)
    if pole == 1:
        assert cmath.phase(first) == pytest.approx(math.pi / 3)


@pytest.mark.parametrize("pole, setpoint", [(1.0, 20), (0.9, 20), (0.8, 60)])
def test_the_discrete_law_needs_one_epoch(pole, setpoint):
    """Whatever its pole is: PP94's analysis leaves out that S has n in it."""
    found = course(law="discrete", pole=pole, setpoint=setpoint)
    late = found["t_s"] > 8 * RTT_S
    queue, _ = pairs.equilibrium(pole, setpoint, 100)
    assert found["backlog"][0][late] == pytest.approx(queue, abs=0.03 * setpoint)


def test_a_pole_of_one_swings_for_ever():
    """As PP94 has it, once in six epochs, where RTT is that of now."""
    backlog = course(law="discrete", pole=1.0, setpoint=20,
                     present=True)["backlog"][0]
    later = backlog[50 * 20:]
    assert np.ptp(later) == pytest.approx(40, abs=0.5)
    assert np.ptp(backlog[-50 * 10:]) == pytest.approx(40, abs=0.5)


@pytest.mark.parametrize("pole", [0.95, 0.9])
def test_the_swing_dies_away_as_the_eigenvalues_say(pole):
    """From one peak to the next by the modulus, to the power of the epochs between;
    nearly: the round trip swings, too."""
    found = course(law="discrete", pole=pole, setpoint=20, present=True)
    backlog, times = found["backlog"][0], found["t_s"]
    rest, used = pairs.equilibrium(pole, 20, 100)
    assert used == 1.0
    heights = [(times[index], value - rest) for index, value in peaks(backlog)
               if value > rest + 1.5]
    assert len(heights) >= 4
    epoch_s = RTT_S * (1 + rest / 100)
    for (was_s, before), (now_s, after) in zip(heights[1:], heights[2:]):
        due = math.sqrt(pole) ** ((now_s - was_s) / epoch_s)
        assert after / before == pytest.approx(due, abs=0.05)


@pytest.mark.parametrize("pole, setpoint", [(0.9, 20), (0.9, 50), (0.95, 10),
                                            (0.5, 20), (0.5, 150), (0.9, 5)])
def test_the_rest(pole, setpoint):
    found = course(law="discrete", pole=pole, setpoint=setpoint,
                   round_trips=200)
    queue, used = pairs.equilibrium(pole, setpoint, 100)
    late = found["t_s"] > 150 * RTT_S
    assert found["backlog"][0][late].mean() == pytest.approx(queue, abs=0.5)
    served = found["served"][0][late]
    span = found["t_s"][late][-1] - found["t_s"][late][0]
    assert (served[-1] - served[0]) / span / CAPACITY_PPS == \
        pytest.approx(used, abs=0.005)


def test_the_continuous_law_ends_at_the_setpoint():
    """By exp(-t/J), with J of 1.5 round trips below it (PP94 (19))."""
    found = course(setpoint=20)
    backlog, times = found["backlog"][0], found["t_s"]
    assert backlog[-1] == pytest.approx(20, abs=0.01)
    missing = 20 - backlog
    start, end = np.searchsorted(times, (6 * RTT_S, 8 * RTT_S))
    rtt_s = RTT_S * (1 + backlog[end] / 100)
    assert missing[end] / missing[start] == pytest.approx(
        math.exp(-2 * RTT_S / (1.5 * rtt_s)), rel=0.05)


def test_probing_loses_less_by_smaller_steps():
    """PP94 9.1: about 25 packets each of 100, and fewer losses with steps of 1."""
    lost = {}
    for step, every, cut in ((2, 2, 0.75), (1, 2, 0.75), (0.1, 4, 0.6)):
        found = course(4, 160, setpoint=0, step=step, every=every, cut=cut,
                       room=100)
        lost[step] = found["drops"][:, -1].sum()
        assert found["backlog"].sum(axis=0).max() <= 100 + 1e-9
        if step >= 1:
            late = found["setpoint"][:, 50 * 80:]
            assert 18 < late.mean() < 27
        # Nothing is made or forgotten.
        assert found["sent"][:, -1] == pytest.approx(
            found["served"][:, -1] + found["backlog"][:, -1])
    assert lost[2] > 2 * lost[1] > 0 and lost[0.1] == 0


def test_there_is_no_other_law():
    with pytest.raises(TollwayError, match="no law"):
        pairs.PairSetting(law="fuzzy")


def job_of(name, *words):
    experiment = papers.get(name)
    return jobs.job(experiment, "pp", "fq_rr", plan.parse_settings(
        experiment, list(words), "pp", "fq_rr"), 20.0, 1)


@pytest.mark.parametrize("name, words, says", [
    ("pp-burst", (), "greedy ones"), ("pp-public", (), "greedy ones"),
    ("pp-overload", (), "greedy ones"),
    ("pp-base", ("overflow=drop-last",), "overflow drop-last"),
    ("pp-window", ("only=window",), "greedy ones")])
def test_what_is_not_modelled_is_refused(name, words, says):
    with pytest.raises(RefusedError, match=says):
        flows_of(job_of(name, *words))


def test_a_link_that_changes():
    """Half of the rate for two round trips: what is sent meanwhile waits, and half
    is sent of what the new share lets."""
    found = pairs.simulate(CAPACITY_PPS, [0.0], RTT_S, pairs.PairSetting(),
                           30 * RTT_S, RTT_S / 50, [
                               (10 * RTT_S, CAPACITY_PPS / 2),
                               (12 * RTT_S, CAPACITY_PPS)])
    served = np.interp([10 * RTT_S, 12 * RTT_S], found["t_s"],
                       found["served"][0])
    assert served[1] - served[0] == pytest.approx(100, abs=1)
    assert found["backlog"][0][-1] == pytest.approx(20, abs=0.1)


@pytest.mark.parametrize("name, flows", [("pp-base", 1), ("pp-setpoint", 4),
                                         ("pp-law", 4), ("pp-probing", 12)])
def test_what_is_modelled(name, flows):
    assert len(flows_of(job_of(name))) == flows


def test_the_command(tmp_path):
    done = subprocess.run(
        [str(TOLLWAY), "run", "pp-law", "--on", "model", "--out",
         str(tmp_path)], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "12 of 12 verdicts hold" in done.stdout
    page = (tmp_path / "index.html").read_text()
    assert "pole 1" in page
    result = json.loads((tmp_path / "seed-1/result.json").read_text())
    assert result["parameters"]["place"] == "model"
