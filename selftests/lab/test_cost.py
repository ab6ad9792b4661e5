# SPDX-License-Identifier: GPL-2.0
"""Costs of packets and ACKs beside the kernel's own, in cycles of this machine."""

import json
import os

import pytest
from conftest import LOG_CHECKS, checks_of, run_check

from tollwaylib import cost
from tollwaylib.tables import render_text

GUEST_SCRIPT = "guest_cost.py"
# A measurement: on a busy machine it says more of the machine.
pytestmark = [pytest.mark.lab, pytest.mark.full, pytest.mark.skipif(
    os.environ.get("TOLLWAY_LAB_FLAVOUR") == "debug",
    reason="the debug kernel's cycles are its own")]

given = cost.given
# fq_rr is asked for its cycles alone, though in virtual time the clock that
# codel reads twice for each packet costs next to nothing. And the host is busy
# with other things too.
TOLERANCE = 1.25
FAIR_BOUNDS = (*((name, "fq_codel") for name in (
    "fq_rr", "fq_rr drop-last", "fq_rr drop-tail", "fq_rr drr")),
    *((name, "sfq") for name in cost.FAIR if "fq_rr" in name))
# Many flows are about caches, which are shared with those.
MANY, TOLERANCE_OF_MANY = 10000, 2


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_cost(guest, check):
    run_check(guest, check)
    if check not in LOG_CHECKS:
        costs = json.loads((guest.out_dir / "costs.json").read_text())
        {"packets": judge_packets, "acks": judge_acks}[check](costs)


def judge_packets(costs):
    """Queues of ours cost no more than others, see cost.QDISC_BOUNDS."""
    print(render_text(cost.packet_table(costs, min)))
    found = costs["packets"]
    for ours, other in (*FAIR_BOUNDS, *cost.QDISC_BOUNDS):
        for index, (flows, hashed) in enumerate(cost.COLUMNS):
            apart = (ours, other) in FAIR_BOUNDS
            ratio = cost.packet_cost(found[ours], index, min, not apart) / \
                cost.packet_cost(found[other], index, min, not apart)
            limit = TOLERANCE if flows < MANY else TOLERANCE_OF_MANY
            assert ratio <= limit, (ours, other, flows, hashed, ratio)


def judge_acks(costs):
    """No congestion control of ours costs more than its bound."""
    print(render_text(cost.ack_table(costs, min)))
    found = costs["acks"]
    for ours, other in cost.ACK_BOUNDS:
        ratio = cost.ack_cost(found[ours], min) / \
            cost.ack_cost(found[other], min)
        assert ratio <= TOLERANCE, (ours, other, ratio)
