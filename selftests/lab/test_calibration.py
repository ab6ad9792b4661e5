# SPDX-License-Identifier: GPL-2.0
"""The calibration of a run, over links that are right and wrong."""

import pytest
from conftest import checks_of, run_check

from tollwaylib import papers
from tollwaylib.experiments import jobs, plan

GUEST_SCRIPT = "guest_calibration.py"
# Settings of the double bottleneck, for each of which the guest gets a job.
SETTINGS = ("", "rate_tolerance=0.003", "rate_mbit=8 rtt_tolerance_ms=0.5",
            "rate_mbit=0.3", "rate_mbit=1.3", "rate_mbit=2")

pytestmark = pytest.mark.lab


def given():
    """{settings: job}."""
    experiment = papers.get("double-bottleneck")
    return {words: jobs.job(
        experiment, "sbrm", "sbrm",
        plan.parse_settings(experiment, words.split()), 3, 1)
        for words in SETTINGS}


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_calibration(guest, check):
    run_check(guest, check)
