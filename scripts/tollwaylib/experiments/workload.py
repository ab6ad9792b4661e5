# SPDX-License-Identifier: GPL-2.0
"""What the experiments of PP94 and MK94 have in common, and their jobs.

A packet has 500 bytes with the headers of IP and TCP, of which 460 are data. An
acknowledgement has 40 bytes, because there are no timestamps. A file of 2 MB is 4000
packets, whatever their headers. Connections are established before they have data, like
the circuits of the papers. A completion time starts when the data is available; a
handshake would add a round trip to it. The optimum of a transfer is
theory.fluid_completions().
"""

from ..theory import fluid
from .description import Variant

TCP_HEADER_BYTES = 40
UDP_HEADER_BYTES = 28
# Of what tollway-traffic(1) sends with law=pp.
PAIRED_HEADER_BYTES = 24
# PP94 Table 3, rows of 500-byte packets: Mb/s and the round trip, ms. They are
# 100 packets in 100 time units each, so that a unit is the time of a packet.
# WAN is the default: Linux's smallest timeout of 200 ms is 3.3 round trips
# there (PP94's own is 1.5), and 20 or 200 in the others.
TABLE_3 = {"lan": (400.0, 1.0), "man": (40.0, 10.0), "wan": (20.0 / 3, 60.0)}
PIPE_PKTS = 100
# Round trip that the optima of PP94 9.4 have.
BENCH_RTT_MS = 44.0
# Of on-off sources, PP94 Table 6; MK94 has as many.
LOADS = (0.5, 0.75, 0.9, 1.0, 1.5, 2.0, 5.0)
SOURCES = 10
# Before the names of paths that go the other way.
MIRRORED = "r"
# What else is run beside packet pair, over the same queue and over fq_codel.
BASELINES = tuple(
    Variant(f"{cc}-{aqm}", cc, aqm)
    for cc, aqm in (("pp", "fq_rr"), ("cubic", "fq_rr"), ("bbr", "fq_rr"),
                    ("reno", "fq_rr"), ("cubic", "fq_codel"),
                    ("bbr", "fq_codel"), ("reno", "fq_codel")))
OURS = ("pp+fq_rr",)
# Packet pair set as in the paper, where an experiment sets it in another way.
AS_PUBLISHED = Variant("pp-fq_rr-paper", "pp", "fq_rr", {"setup": "paper"})


def rtt_ms_of(values):
    """Round-trip propagation time of an experiment, ms."""
    return TABLE_3[values["row"]][1] if "row" in values else BENCH_RTT_MS


# --- flows -----------------------------------------------------------------

def payload(values):
    """Data bytes of a packet."""
    return values["packet_bytes"] - TCP_HEADER_BYTES


def paired_payload(values):
    """The same of a stream that its receiver controls."""
    return values["packet_bytes"] - UDP_HEADER_BYTES - PAIRED_HEADER_BYTES


def flow_of(path, start_s, packets=None, role="source", **more):
    """A flow of a Case."""
    return {"name": str(path), "path": str(path), "role": role,
            "start_s": start_s, "packets": packets, **more}


def capacity_pps(values):
    """Packets/s of the bottleneck."""
    return values["rate_mbit"] * 1e6 / 8 / values["packet_bytes"]


def with_optima(flows, values, links, rtts_s, demands=()):
    """Flows with the shortest possible completion time of each transfer.

    links: {path: links}; rtts_s: {path: s}; demands: [(start s, link, pps)] of traffic
    without congestion control.
    """
    names = {link for path in links.values() for link in path}
    rate = capacity_pps(values)
    ends = fluid.fluid_completions(
        dict.fromkeys(names, rate),
        [(flow["name"], flow["start_s"], flow["packets"],
          links[flow["path"]], None)
         for flow in flows if flow["packets"] is not None] +
        [(("demand", index), start_s, None, [link], pps)
         for index, (start_s, link, pps) in enumerate(demands)])
    return tuple(
        dict(flow, optimal_s=round(ends[flow["name"]] - flow["start_s"]
                                   + rtts_s[flow["path"]], 6))
        if flow["packets"] is not None else flow for flow in flows)


def one_link(flows, values, rtts_ms=None, **keywords):
    """with_optima() of flows over R1 alone."""
    paths = {flow["path"] for flow in flows}
    rtts = {path: (rtts_ms or {}).get(path, rtt_ms_of(values)) / 1000
            for path in paths}
    return with_optima(flows, values, {path: ["R1"] for path in paths}, rtts,
                        **keywords)


def produced(values, rate_bps, seed, on_s=None, off_s=None, closed=False):
    """Words of an application that writes two packets at a time.

    Linux sends a single packet at once, but the sources of PP94 wait up to 100 ms for the
    second packet (section 8).
    """
    words = (f"rate={int(rate_bps)} size={2 * payload(values)} "
             f"overhead={2 * TCP_HEADER_BYTES} seed={seed}")
    if on_s is not None:
        words += f" on=exp:{on_s:.6f} off=exp:{off_s:.6f}"
    return words + (" source=closed" if closed else "")


# --- jobs ------------------------------------------------------------------


# Seeds of one source or user are this far apart from run to run.
SEEDS_APART = 10**6


def paired_words(flow, values):
    """Words of a stream whose rate the receiver controls (PP94 10.4).

    flow["law"]: more words, such as {"setpoint": 20, "report-rtt": 0.25}. The largest rate
    is that of the flow's own link, unless "rate" is smaller.
    """
    most = {"rate": round(values["edge_mbit"] * 1e6), **flow["law"]}
    words = [f"proto=udp law=pp "
             f"size={values['packet_bytes'] - UDP_HEADER_BYTES} "
             f"overhead={UDP_HEADER_BYTES}"]
    if flow.get("packets") is not None:
        words.append(f"bytes={flow['packets'] * paired_payload(values)}")
    return " ".join(words + [f"{key}={value}" for key, value in
                             most.items()])


def flow_words(flow, values, seed):
    """The words of a flow (str) for a line of the flow file of tollway-traffic(1), without its
    path, start and stop. flow: a dict of flow_of(). values: the parameters of the case.
    seed: that of the run, from which a flow with random times has a seed of its own."""
    if "law" in flow:
        return paired_words(flow, values)
    if "udp" in flow:
        packet_bytes = flow.get("udp_bytes", values["packet_bytes"])
        words = (f"proto=udp rate={int(flow['udp'])} "
                 f"size={packet_bytes - UDP_HEADER_BYTES} "
                 f"overhead={UDP_HEADER_BYTES} "
                 f"arrival={flow.get('arrival', 'poisson')} "
                 f"seed={seed * SEEDS_APART + flow['seed']}")
        if "on_off" in flow:
            words += " on={} off={}".format(*flow["on_off"])
        return words
    words = ["connect=early"] if flow.get("early", True) else []
    if flow.get("packets") is not None:
        words.append(f"bytes={flow['packets'] * payload(values)}")
    made = flow.get("words")
    if isinstance(made, tuple):
        number, rate_bps, on_s, off_s, closed = made
        made = produced(values, rate_bps, seed * SEEDS_APART + number, on_s,
                         off_s, closed)
    return " ".join(words + ([made] if made else []))


def user_words(values, seed):
    """The words of a flow file for a user of the HTTP model."""
    return f"pages=http off=exp:{values['off_s']:g} seed={seed}"


def periods(schedule, duration_s):
    """[(start s, stop s)] in which one copy of the flows runs, by copies."""
    edges = [edge for edge in schedule if edge[0] < duration_s]
    edges.append((duration_s, 0))
    found = []
    for copy in range(max(factor for _, factor in edges)):
        start_s = None
        for t, factor in edges:
            if start_s is None and factor > copy:
                start_s = t
            elif start_s is not None and factor <= copy:
                found.append((start_s, t))
                start_s = None
    return found
