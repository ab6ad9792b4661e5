# SPDX-License-Identifier: GPL-2.0
"""Costs of packets and ACKs beside the kernel's own, in cycles of this machine."""

import json
import os

import pytest
from conftest import LOG_CHECKS, checks_of, run_check

from tollwaylib.report import costs
from tollwaylib.report.costs import (ACK_BOUNDS, COLUMNS, FAIR, QDISC_BOUNDS,
                                     ack_cost, ack_table, packet_cost,
                                     packet_table)
from tollwaylib.report.rendering import render_text

GUEST_SCRIPT = "guest_cost.py"
# A measurement: on a busy machine it says more of the machine.
pytestmark = [pytest.mark.lab, pytest.mark.full, pytest.mark.skipif(
    os.environ.get("TOLLWAY_LAB_FLAVOUR") == "debug",
    reason="the debug kernel's cycles are its own")]

given = costs.given
# fq_rr is asked for its cycles alone, though in virtual time the clock that
# codel reads twice for each packet costs next to nothing. And the host is busy
# with other things too.
TOLERANCE = 1.25
FAIR_BOUNDS = (*((name, "fq_codel") for name in (
    "fq_rr", "fq_rr drop-last", "fq_rr drop-tail", "fq_rr drr")),
    *((name, "sfq") for name in FAIR if "fq_rr" in name))
# Many flows are about caches, which are shared with those.
MANY, TOLERANCE_OF_MANY = 10000, 2


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_cost(guest, check):
    run_check(guest, check)
    if check not in LOG_CHECKS:
        measured = json.loads((guest.out_dir / "costs.json").read_text())
        {"packets": judge_packets, "acks": judge_acks}[check](measured)


def judge_packets(measured):
    """Queues of ours cost no more than others, see costs.QDISC_BOUNDS."""
    print(render_text(packet_table(measured, min)))
    found = measured["packets"]
    for ours, other in (*FAIR_BOUNDS, *QDISC_BOUNDS):
        for index, (flows, hashed) in enumerate(COLUMNS):
            apart = (ours, other) in FAIR_BOUNDS
            ratio = packet_cost(found[ours], index, min, not apart) / \
                packet_cost(found[other], index, min, not apart)
            limit = TOLERANCE if flows < MANY else TOLERANCE_OF_MANY
            assert ratio <= limit, (ours, other, flows, hashed, ratio)


def judge_acks(measured):
    """No congestion control of ours costs more than its bound."""
    print(render_text(ack_table(measured, min)))
    found = measured["acks"]
    for ours, other in ACK_BOUNDS:
        ratio = ack_cost(found[ours], min) / \
            ack_cost(found[other], min)
        assert ratio <= TOLERANCE, (ours, other, ratio)
