# SPDX-License-Identifier: GPL-2.0
"""What is measured by make bench, and the bounds that must hold.

The measuring is that of selftests/lab/guest_cost.py, in the lab: cycles of a
dequeue and an enqueue, and cycles of a congestion control's callbacks for an
ACK. Here are the names, and tables and figures of what was found.
"""

import statistics

from .rendering import Table

# (flows with packets in the queue, packets come with their hash), see
# selftests/kunit/qdisc_cost.c.
COLUMNS = ((1, True), (100, True), (10000, True), (100, False))
PACKET = 1514
# Rates that have something to do: a packet every 0.6 us or so, and prices that
# rise from 0 to some 0.2 meanwhile.
CLOCKED = "rate 10gbit avpkt 1514 gamma 1e-6"
# {name: words of tc}. backlog: in packets. The AQMs that mark do so for about
# every tenth packet, but for vqm, which marks all of them; codel and pie, which
# have no reason to, none.
FIFOS = {
    "pfifo": "pfifo limit 65535",
    "red": "red limit 400mb min 3028 max {double} avpkt 1514 burst 8 "
           "probability 0.2 bandwidth 10gbit ecn",
    "codel": "codel limit 65535 target 100s interval 200s ecn",
    "pie": "pie limit 65535 ecn",
    # What tc makes without a word; its price is next to nothing, but drawn for.
    "sbrm delay": "sbrm mark delay limit 65535",
    "sbrm": "sbrm limit 65535 target 0 gamma {gamma}",
    "sbrm no-dither": "sbrm limit 65535 target 0 gamma {gamma} no-dither",
    "sbrm rem-pc1": f"sbrm mark rem-pc1 limit 65535 {CLOCKED}",
    "sbrm rem-pc2": "sbrm mark rem-pc2 limit 65535 target 0 phi 2.718281828 "
                    "gamma {gamma}",
    "sbrm rem-pc3": "sbrm mark rem-pc3 limit 65535 target {backlog} "
                    f"{CLOCKED}",
    "sbrm vqm": "sbrm mark vqm limit 65535 rate 10gbit avpkt 1514",
    "sbrm price": "sbrm limit 65535 target 0 gamma {gamma} feedback price",
    "sbrm alpha": "sbrm mark alpha limit 65535 high 1 low 0 goal 60000",
    "sbrm four-bit": "sbrm limit 65535 target 0 gamma {gamma} "
                     "feedback four-bit",
}
_ROOM = "limit 65535 flows 65536"
_RR = f"fq_rr {_ROOM} memory_limit 1gb"
FAIR = {
    # codel must not come to drop, and time passes at each reading.
    "fq_codel": f"fq_codel {_ROOM} memory_limit 1gb target 100s interval 200s",
    "sfq": "sfq limit 65535 flows 65407 divisor 65536 depth 127",
    "cake": "cake unlimited besteffort flows rtt 1000s memlimit 1gb",
    "fq_rr": f"{_RR} overflow drop-longest",
    "fq_rr drop-last": f"{_RR} overflow drop-last",
    "fq_rr drop-tail": f"{_RR} overflow drop-tail-of-longest",
    "fq_rr drr": f"{_RR} service drr overflow drop-longest",
    "fq_rr longest bytes": f"{_RR} longest bytes",
    "fq_rr wfq": f"{_RR} service wfq overflow drop-longest",
}
QDISCS = {**FIFOS, **FAIR}
# {name: how the path is made for it}, a name being that of the congestion control
# and what else tells it apart; see Path of selftests/lab/tcp_bench.py.
_MARKED = {"aqm": "sbrm limit 1000 target 10 gamma 0.01"}
_DROPPED = {"aqm": "pfifo limit 300", "sink": "reno"}
_TURNS = {"aqm": "fq_codel limit 10000 flows 1024 quantum 1514 target 10s "
                 "interval 100s", "sink": "reno"}
CONGESTION_CONTROLS = {
    "reno": _DROPPED,
    "cubic": _DROPPED,
    "bbr": _TURNS,
    "dctcp": {**_MARKED, "sink": "dctcp"},
    "sbrm relative": {"aqm": "sbrm limit 1000", "shipped": True},
    "sbrm": _MARKED,
    "rm": {**_MARKED, "sink": "reno"},
    "rem": _MARKED,
    "cp": {"aqm": "sbrm limit 1000 target 10 gamma 0.01 feedback price"},
    "pp": _TURNS,
    "alpha": {"aqm": "sbrm mark alpha limit 1000 high 50 goal 300 "
                     "feedback two-bit", "sink": "alpha"},
}


def packets_each(name, flows):
    """How many packets each of the flows has in the queue."""
    # red counts the bytes in 31 bits, with some for the fraction.
    return 1 if name in FIFOS and flows > 1000 else 4


def qdisc_words(name, flows):
    """Words of tc for a queue in which `flows` have their packets."""
    backlog = flows * packets_each(name, flows)
    return QDISCS[name].format(
        backlog=backlog, gamma=f"{0.105 / backlog:.9f}",
        double=2 * backlog * PACKET)


def given():
    """What guest_cost.py has to know: for each queue and column the words of tc
    and how its packets come, and a path for each congestion control."""
    return {"queues": {name: [
        {"words": qdisc_words(name, flows), "flows": flows, "hashed": hashed,
         "each": packets_each(name, flows), "fresh": name in FIFOS}
        for flows, hashed in COLUMNS] for name in QDISCS},
        "controls": CONGESTION_CONTROLS}


# (ours, what they may cost at most). With the clock that both would read on a
# kernel in real time: qdiscs. An ACK: the callbacks.
QDISC_BOUNDS = (*((name, "codel") for name in FIFOS if "sbrm" in name),
                *((name, "fq_codel") for name in FAIR if "fq_rr" in name))
ACK_BOUNDS = (("sbrm relative", "bbr"), ("sbrm", "bbr"), ("pp", "bbr"),
              ("alpha", "bbr"))
OURS = {ours for ours, _ in (*QDISC_BOUNDS, *ACK_BOUNDS)} | {"rm", "rem", "cp"}


def column_name(column):
    """Head of a column."""
    flows, hashed = COLUMNS[column]
    return f"{flows}" if hashed else f"{flows}, no hash"


def packet_cost(row, column, of=statistics.median, clock=True):
    """Cycles of a qdisc in one column: `of` over runs, with its clock."""
    cycles = of(row["cycles"][column])
    return cycles + (of(row["clock"]) * row["reads"] if clock else 0)


def ack_cost(row, of=statistics.median):
    """Cycles of a congestion control for an ACK: `of` over runs."""
    return of(row["cycles"])


def bounds(costs, of=statistics.median):
    """[{ours, other, what, ratio, verdict}] of costs.json."""
    found = []
    for ours, other in QDISC_BOUNDS:
        for column, (flows, _) in enumerate(COLUMNS):
            rows = [costs["packets"][name] for name in (ours, other)]
            ratio = packet_cost(rows[0], column, of) / \
                packet_cost(rows[1], column, of)
            found.append({"ours": ours, "other": other, "flows": flows,
                          "what": f"packet, {column_name(column)}",
                          "ratio": ratio})
    for ours, other in ACK_BOUNDS:
        ratio = ack_cost(costs["acks"][ours], of) / \
            ack_cost(costs["acks"][other], of)
        found.append({"ours": ours, "other": other, "flows": 1, "what": "ACK",
                      "ratio": ratio})
    return [{**one, "verdict": "holds" if one["ratio"] <= 1 else "fails"}
            for one in found]


def packet_table(costs, of=statistics.median):
    """Cycles of each qdisc: a dequeue and an enqueue."""
    packets = costs["packets"]
    rows = []
    for name, row in packets.items():
        other = "codel" if name in FIFOS else "fq_codel"
        rows.append([name, *(f"{packet_cost(row, column, of, False):.0f}"
                             for column in range(len(COLUMNS))),
                     f"{row['reads']}", f"{packet_cost(row, 1, of):.0f}",
                     f"{packet_cost(row, 1, of) / packet_cost(packets[other], 1, of):.2f}"])
    clock = of([value for row in packets.values() for value in row["clock"]])
    return Table(
        "Cycles per packet (dequeue and enqueue), by flows in the queue",
        ["qdisc", *map(column_name, range(len(COLUMNS))), "clock",
         "100, with clock", "ratio"], rows,
        notes=[f"clock: readings of the clock for a packet. A reading takes almost "
               f"no time in virtual time, and {clock:.0f} cycles (rdtsc) in "
               "real time on this machine",
               "ratio: cycles relative to codel (qdiscs with one queue) or to "
               "fq_codel (qdiscs with a queue for each flow)"])


def ack_table(costs, of=statistics.median):
    """Cycles of each congestion control's callbacks for an ACK."""
    bbr = ack_cost(costs["acks"]["bbr"], of)
    rows = [[name, f"{ack_cost(row, of):.0f}",
             f"{min(row['cycles']):.0f} .. {max(row['cycles']):.0f}",
             f"{ack_cost(row, of) / bbr:.2f}"]
            for name, row in costs["acks"].items()]
    return Table("Cycles per ACK in all callbacks of the congestion control",
                 ["congestion control", "cycles", "runs", "of bbr"], rows,
                 notes=["the work of the stack itself is not counted: for reno and "
                        "cubic, which have no cong_control, it computes the "
                        "pacing rate"])


def bounds_table(costs, of=statistics.median):
    """The bounds, and whether they hold."""
    return Table("Bounds of the cost, with readings of the clock",
                 ["", "compared with", "for", "ratio", "verdict"],
                 [[one["ours"], one["other"], one["what"],
                   f"{one['ratio']:.2f}", one["verdict"]]
                  for one in bounds(costs, of)], left=3)


def figure(costs, out):
    """Bars of both tables; out: path without suffix. [SVG path, PNG path]."""
    from .plotting import STYLE, plt, save
    with plt.rc_context({**STYLE, "axes.grid.axis": "x"}):
        drawn, panels = plt.subplots(
            2, 1, figsize=(9, 9), height_ratios=[len(costs["packets"]),
                                                 len(costs["acks"])])
        _bars(panels[0], {name: packet_cost(row, 1, clock=False) for name, row
                          in costs["packets"].items()},
              {name: packet_cost(row, 1) for name, row in
               costs["packets"].items()})
        panels[0].set_title("Cycles per packet, 100 flows in the queue "
                            "(light: reading the clock)")
        _bars(panels[1], {name: ack_cost(row) for name, row in
                          costs["acks"].items()})
        panels[1].set_title("Cycles per ACK")
        panels[1].set_xlabel("cycles of the time stamp counter")
        return save(drawn, out)


def _bars(axes, values, behind=None):
    """Horizontal bars, ours in colour; `behind`: longer ones, lighter."""
    from .plotting import PALETTE, THEORY
    names = list(values)
    colours = [PALETTE[0] if name in OURS else THEORY for name in names]
    if behind:
        axes.barh(range(len(names)), [behind[name] for name in names],
                  color=colours, alpha=0.35)
    axes.barh(range(len(names)), list(values.values()), color=colours)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
