# SPDX-License-Identifier: GPL-2.0
"""What the smoke set does on a machine that is slow: here nothing is run but by
words; test_qemu.py has the real one."""

import contextlib
import types

import pytest

from tollwaylib.guest import smoke, smoke_bench

RATE_BPS = 1e6
SHOWN = "ESTAB 0 0 10.0.0.1:1 10.0.0.2:5201 pp wscale:6,7 bbr:(bw:1Mbps)"


class Machine:
    """Virtual time, in which ss takes `slow` seconds to be started."""

    def __init__(self, monkeypatch, slow):
        self.now, self.end, self.bytes = 0.0, 0.0, 0
        self.slow = slow
        monkeypatch.setattr(smoke, "PATHS", [("pp", "bbr", "fq_rr limit 100")])
        for name in ("run", "qdiscs", "two_hosts", "traffic", "time"):
            monkeypatch.setattr(smoke, name, getattr(self, name))
        monkeypatch.setattr(smoke_bench, "time", self.time)

    @property
    def time(self):
        """The module time."""
        return types.SimpleNamespace(sleep=self.sleep)

    def sleep(self, seconds):
        self.now += seconds

    def run(self, command, **_):
        if not command.startswith("ss "):
            return ""
        self.now += self.slow
        return SHOWN if self.now < self.end else ""

    def qdiscs(self, _space):
        return {"10:": {"kind": "fq_rr", "bytes": self.bytes, "flows_max": 1}}

    @contextlib.contextmanager
    def two_hosts(self):
        yield

    @contextlib.contextmanager
    def traffic(self, cc, seconds=smoke.SECONDS):
        self.end = self.now + seconds
        self.bytes += RATE_BPS * seconds / 8
        yield lambda: {"end": {"sum_received": {"bits_per_second": RATE_BPS}}}


@pytest.mark.parametrize("slow, attempts", [(0.1, 1), (3, 2), (15, 3)])
def test_a_flow_is_seen_on_a_slow_machine(slow, attempts, monkeypatch):
    Machine(monkeypatch, slow)
    notes = []
    smoke.check_iperf3_through_queues(notes.append)
    assert len(notes) == attempts and "bbr:(bw:1Mbps)" in notes[-1]


def test_what_is_never_seen_is_a_failure(monkeypatch):
    Machine(monkeypatch, 1000)
    with pytest.raises(AssertionError, match="does not show pp"):
        smoke.check_iperf3_through_queues(lambda text: None)


def test_the_state_in_ss_is_the_declared_one(monkeypatch):
    Machine(monkeypatch, 0.1)
    monkeypatch.setattr(smoke, "PATHS", [("pp", "dctcp", "fq_rr limit 100")])
    with pytest.raises(AssertionError, match="does not show pp"):
        smoke.check_iperf3_through_queues(lambda text: None)


def test_a_kernel_that_does_not_sign(monkeypatch):
    for name in ("TCP_MD5SIG", "TCP_AO_ADD_KEY"):
        # No socket option of any kernel.
        monkeypatch.setattr(smoke_bench, name, 0x7fff)
    notes = []
    smoke.check_signed_connections(notes.append)
    assert notes == ["this kernel has no TCP_MD5SIG", "this kernel has no TCP-AO"]
