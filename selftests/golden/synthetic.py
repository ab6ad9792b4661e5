# SPDX-License-Identifier: GPL-2.0
"""Small raw results with known answers, made without randomness or a run.

Not measurements: the flows move at exactly the rates asked for, so that every
number of the analysis can be worked out by hand. Run by itself, this file
writes the golden result anew; look at what git says has changed in it.
"""

import hashlib
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent / "scripts"))

from tollwaylib.experiments import published  # noqa: E402
from tollwaylib.results import analysis, schema  # noqa: E402

CAPACITY_BPS = 96_000_000
PACKET_BYTES = 1000
MSS_BYTES = 934
CAPACITY_PPS = CAPACITY_BPS / (8 * PACKET_BYTES)
PATHS = {"I": {"links": ["core1"], "rtt_ms": 6},
         "II": {"links": ["core2"], "rtt_ms": 34},
         "III": {"links": ["core1", "core2"], "rtt_ms": 36}}
WTPS = (100, 200, 400)


def fair_pps(path, wtp, per_class=4):
    """CP05 4.3.1: two thirds of a link to its own path, one to path III."""
    part = 1 / 3 if path == "III" else 2 / 3
    return part * CAPACITY_PPS * wtp / (per_class * sum(WTPS))


def flow(number, path, wtp, pieces, cc="sbrm", mark=0.2, step=0.1):
    """A flow at piecewise constant rates.

    pieces: list of (start_s, stop_s, packets/s), each beginning where the
    last one ended.
    """
    start, stop = pieces[0][0], pieces[-1][1]
    times = [round(start + step * k, 6)
             for k in range(1, int((stop - start) / step + 1e-6) + 1)]
    if times[-1] < stop:
        times.append(stop)

    def sent(time):
        return sum(max(0.0, min(time, end) - begin) * rate
                   for begin, end, rate in pieces)

    def rate(time):
        return next(rate for begin, end, rate in pieces if time <= end)

    rtt_us = PATHS[path]["rtt_ms"] * 1000 + 2500
    return {
        "id": number, "path": path, "cc": cc, "wtp": wtp, "start_s": start,
        "stop_s": stop, "mss_bytes": MSS_BYTES, "final": {},
        "samples": {
            "t_s": times,
            "bytes_acked": [round(sent(t) * MSS_BYTES, 3) for t in times],
            "cwnd": [round(rate(t) * rtt_us / 1e6 + 1 + (k % 3), 2)
                     for k, t in enumerate(times)],
            "srtt_us": [rtt_us] * len(times),
            "min_rtt_us": [rtt_us - 2500] * len(times),
            "retransmits": [int(t + 0.5) for t in times],
            "delivered": [round(sent(t), 3) for t in times],
            "delivered_ce": [round(mark * sent(t), 3) for t in times],
        }}


def queue(duration_s, warmup_s, utilization=0.99, base=20, interval=0.05):
    """A queue whose backlog goes round base, base + 1, ... base + 9 packets."""
    times = [round(interval * k, 6)
             for k in range(int(duration_s / interval + 1e-6) + 1)]
    rate = utilization * CAPACITY_BPS / 8

    def stats(time):
        return {"bytes": rate * time, "packets": round(rate * time / 1000),
                "drops": 3 if time < duration_s else 5,
                "marks": round(0.1 * rate * time / 1000)}

    return {
        "interval_us": int(interval * 1e6), "t_s": times,
        "backlog_pkts": [base + k % 10 for k in range(len(times))],
        "backlog_bytes": [1000 * (base + k % 10) for k in range(len(times))],
        "drops": [3 if t < duration_s / 2 else 5 for t in times],
        "packets": [round(rate * t / 1000) for t in times],
        "bytes": [rate * t for t in times],
        "overlimits": [0] * len(times),
        "stats_at_warmup": stats(warmup_s), "stats_at_end": stats(duration_s)}


def raw(flows, duration_s=20.0, warmup_s=5.0, seed=1, cc="sbrm", aqm="sbrm",
        utilization=(0.99, 0.97), setup=None, **more):
    """A whole raw result around a list of flows. setup: more parameters."""
    whole = {
        "schema": 1, "experiment": "double-bottleneck",
        "parameters": {"cc": cc, "aqm": aqm, "duration_s": duration_s,
                       "warmup_s": warmup_s, "packet_bytes": PACKET_BYTES,
                       "place": "lab", "wtp": list(WTPS), "target": 10,
                       "gamma": 0.015, "kappa": 0.1, **(setup or {})},
        "seed": seed,
        "links": {"core1": {"capacity_bps": CAPACITY_BPS, "delay_ms": 1,
                            "bottleneck": True},
                  "core2": {"capacity_bps": CAPACITY_BPS, "delay_ms": 15,
                            "bottleneck": True},
                  "edge": {"capacity_bps": 1_000_000_000, "delay_ms": 1,
                           "bottleneck": False}},
        "paths": PATHS, "flows": flows,
        "queues": {name: queue(duration_s, warmup_s, used)
                   for name, used in zip(("core1", "core2"), utilization)},
        "calibration": {name: {"rate_bps": 95_990_000, "rtt_ms": 2.01,
                               "ok": True} for name in ("core1", "core2")},
        "provenance": {
            "kernel": "6.1.0-test", "config_sha256": "ab" * 32,
            "patches": ["0001-um-run-at-HZ-1000.patch"], "hz": 1000,
            "modules": {"tcp_sbrm": "1.0"}, "sysctls": {"net.ipv4.tcp_ecn": 1},
            "qdiscs": ["qdisc sbrm 8001: dev core1 <limit 1000>"],
            "tools": {"iproute2": "6.1.0"},
            "command": "tollway run double-bottleneck --seed 1"},
        "trace_sha256": hashlib.sha256(
            f"{seed} {cc} {aqm}".encode()).hexdigest()}
    whole.update(more)
    return whole


def steady(scale=lambda number, path, wtp: 1.0, wtps=WTPS, **more):
    """The 36 flows of CP05 Table 4.3.2, each at scale times its fair rate."""
    duration = more.get("duration_s", 20.0)
    flows = []
    for path in PATHS:
        for wtp in WTPS:
            for _ in range(4):
                number = len(flows) + 1
                rate = fair_pps(path, wtp) * scale(number, path, wtp)
                flows.append(flow(
                    number, path, wtp if wtps else None,
                    [(0.01 * number, duration, rate)],
                    cc=more.get("cc", "sbrm")))
    return raw(flows, **more)


def as_published(*arguments, cc="sbrm", aqm="sbrm", **more):
    """steady(), set as CP05 had it for this source over this queue."""
    (row,) = published.rows("double-bottleneck", cc, aqm, {})
    return steady(*arguments, cc=cc, aqm=aqm, setup=row["setup"],
                  **{key: row["setup"][key] for key in
                     ("duration_s", "warmup_s")}, **more)


def dynamics(lag_s=1.5, **more):
    """One flow per path and wtp, two from 10 to 20 s, one again to 30 s.

    After each change the old flows keep their old rate for lag_s seconds.
    """
    flows = []
    for path in PATHS:
        for wtp in WTPS:
            one, two = fair_pps(path, wtp, 1), fair_pps(path, wtp, 2)
            flows.append(flow(len(flows) + 1, path, wtp, [
                (0.0, 10.0 + lag_s, one), (10.0 + lag_s, 20.0 + lag_s, two),
                (20.0 + lag_s, 30.0, one)]))
            flows.append(flow(len(flows) + 1, path, wtp,
                              [(10.0, 10.0 + lag_s, one),
                               (10.0 + lag_s, 20.0, two)]))
    schedule = [{"t_s": 0, "factor": 1}, {"t_s": 10, "factor": 2},
                {"t_s": 20, "factor": 1}]
    return raw(flows, duration_s=30.0, warmup_s=3.0, schedule=schedule,
               **{"experiment": "double-bottleneck-dynamics", **more})


def analyse(content):
    """The result of the content of a raw.json of any schema, as after it was
    loaded."""
    return analysis.analyse(schema.upgraded(content))


if __name__ == "__main__":
    (HERE / "double-bottleneck.json").write_text(json.dumps(
        analyse(steady()), indent=1, ensure_ascii=False) + "\n")
