# SPDX-License-Identifier: GPL-2.0
"""Checks of guest_pp.py: where the queue of pp comes to rest, and how soon."""

import re
import time

import guest_base
from guest_base import near, note, run
from pp_bench import (FULL_BPS, PIPE, SYSCTL, counters, fair_path, look,
                      pp_info, set_rate, trace)
from tcp_bench import PACKET, PORT, info, pump, settle


def check_setpoint():
    """The queue is at the setpoint after 10 round trips, and stays there."""
    for law, estimator in (("continuous", "fuzzy"), ("continuous", "fixed"),
                           ("continuous", "kalman")):
        path = fair_path(20)
        path.s.sysctl(SYSCTL + "law", law)
        path.s.sysctl(SYSCTL + "estimator", estimator)
        flow = path.connect("pp")
        seen = look(path, flow, 3)
        # Ten round trips of a path with 20 packets in its queue.
        late = [(queue, pp.queue) for when, queue, pp, _ in seen if when > 0.64]
        real = [queue for queue, _ in late]
        note(f"{law} {estimator}: queue {min(real)} to {max(real)}")
        trace(seen, 40)
        assert 18 <= min(real) and max(real) <= 22
        assert all(abs(queue - hat) <= 2.1 for queue, hat in late)
        assert near(seen[-1][2].bw, FULL_BPS, 0.002)
        assert not seen[-1][3].total_retrans
        flow.close()
        guest_base.cleanup()


def check_discrete():
    """PP94 (9): n at B - mu RTT / 9 where that is a queue at all."""
    path = fair_path(20)
    path.s.sysctl(SYSCTL + "law", "discrete")
    flow = path.connect("pp")
    seen = look(path, flow, 6)
    trace(seen, 60)
    late = [queue for when, queue, *_ in seen if when > 2]
    # lambda = mu at 0.9 (B - n + mu RTT) = mu RTT, with RTT = R + n / mu.
    due = (0.9 * 20 - 0.1 * PIPE) / (0.9 + 0.1)
    note(f"queue {sum(late) / len(late):.2f}, {due:.2f} due")
    assert abs(sum(late) / len(late) - due) < 2
    assert min(late) > 0


def check_poles():
    """PP94 4.2.1: the queue comes to rest at pole B - (1 - pole) R/s, with any pole;
    where that is less than nothing, a part of the link is not used."""
    pipe = 0.1 * 10**7 / 8 / PACKET
    for pole in (1, 0.9, 0.5):
        path = fair_path(20, rtt_ms=100)
        path.s.sysctl(SYSCTL + "law", "discrete")
        path.s.sysctl(SYSCTL + "pole", pole)
        flow = path.connect("pp")
        pump([flow], 3)
        # Whatever may swing is set swinging.
        for rate_bps, seconds in ((5 * 10**6, 0.2), (10**7, 3)):
            set_rate(path, rate_bps)
            pump([flow], seconds)
        before = info(flow).data_segs_out
        seen = look(path, flow, 2)
        queues = [queue for _, queue, *_ in seen]
        used = (info(flow).data_segs_out - before) * PACKET * 8 / 2 / 10**7
        mean = sum(queues) / len(queues)
        note(f"pole {pole}: mean queue {mean:.1f}, {min(queues)} to "
             f"{max(queues)}, used {used:.3f}, {counters(path.s)}")
        # What it does not send is not taken for what others do.
        assert counters(path.s)["shared_queue"] == 0
        due = pole * 20 - (1 - pole) * pipe
        assert abs(mean - max(due, 0)) < 2
        assert max(queues) - min(queues) <= 6
        # x = pole (B / pipe - x + 2), if nothing waits.
        assert abs(used - (1 if due > 0 else
                           pole * (20 / pipe + 2) / (1 + pole))) < 0.05
        guest_base.cleanup()


def check_bucket():
    """A full token bucket lets pairs pass as one: no great harm."""
    path = fair_path(20, bucket=True)
    flow = path.connect("pp")
    first = look(path, flow, 2)
    settle(flow)
    time.sleep(5)
    again = look(path, flow, 1)
    for seen in (first, again):
        real = [queue for _, queue, *_ in seen]
        note(f"queue at most {max(real)}, {real[-1]} then")
        trace(seen[:40], 4)
        assert max(real) <= 20 + 4 * PIPE
        assert 18 <= real[-1] <= 22


def check_rise():
    """99 % of the link within 4.5 round trips of the first packet."""
    path = fair_path(20, rate_bps=10**7, rtt_ms=100)
    path.stats()
    began = time.monotonic()
    flow = path.connect("pp")
    samples = []
    while time.monotonic() < began + 1.5:
        samples.append((time.monotonic() - began, path.stats().bytes))
        pump([flow], 0.005)
    span = 5
    # Packets are counted whole: of the 21 of a window one may fall behind it.
    full = [when for (start_s, was), (when, now) in
            zip(samples, samples[span:])
            if now - was + PACKET >= 0.99 * 10**7 / 8 * (when - start_s)]
    note(f"full from {full[0] * 10:.2f} round trips after the SYN")
    assert full[0] <= 0.45
    after = [one for one in samples if one[0] > full[0]]
    share = (after[-1][1] - after[0][1]) * 8 / (after[-1][0] - after[0][0])
    note(f"{share / 1e5:.2f} % since then")
    assert share > 0.995 * 10**7


def check_two_dozen():
    """24 flows, round trips of 34 and 36 ms, each one 24th of 96 Mb/s."""
    path = fair_path(10, rate_bps=96 * 10**6, rtt_ms=0)
    path.r2.batch("tc", [
        "qdisc add dev left root handle 1: prio bands 2 priomap "
        "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
        "qdisc add dev left parent 1:1 netem delay 34ms limit 1000000",
        "qdisc add dev left parent 1:2 netem delay 36ms limit 1000000",
        "filter add dev left parent 1: protocol ip prio 1 u32 match ip sport "
        f"{PORT + 1} 0xffff flowid 1:2"])
    path.sink("reno", PORT + 1)
    flows = [path.connect("pp", port=PORT + number % 2)
             for number in range(24)]
    # Each starts when it likes, or pairs meet in step.
    pump(flows, 4)
    before = [info(one).bytes_acked for one in flows]
    began, was = time.monotonic(), path.stats()
    gaps = []
    for _ in range(20):
        pump(flows, 0.2)
        hats = sorted(pp_info(one).queue for one in flows)
        with path.r1:
            text = run("tc -s class show dev right")
        queues = sorted(int(one) for one in
                        re.findall(r"class fq_codel 10:\S+ .*?backlog \d+b "
                                   r"(\d+)p", text, re.S))
        gaps.append((hats, queues))
    took = time.monotonic() - began
    share = 96 * 10**6 / 24 * 1448 / PACKET
    errors = [(info(one).bytes_acked - old) * 8 / took / share - 1
              for one, old in zip(flows, before)]
    now = path.stats()
    used = (now.bytes - was.bytes) * 8 / took / 96e6
    note(f"shares off by {100 * min(errors):.3f} to {100 * max(errors):.3f} %, "
         f"{100 * used:.2f} % used, {now.drops} dropped")
    note(f"n_hat {gaps[-1][0]}")
    note(f"queue {gaps[-1][1]}")
    mean_hat = sum(sum(hats) for hats, _ in gaps) / 24 / len(gaps)
    mean_real = sum(sum(queues) for _, queues in gaps) / 24 / len(gaps)
    note(f"mean n_hat {mean_hat:.2f}, mean queue {mean_real:.2f}")
    assert max(abs(one) for one in errors) < 0.005
    assert used > 0.999 and not now.drops
    assert not any(info(one).total_retrans for one in flows)
    assert abs(mean_hat - mean_real) < 1
