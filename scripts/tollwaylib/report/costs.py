# SPDX-License-Identifier: GPL-2.0
"""The costs that make bench measures, and their bounds.

selftests/lab/guest_cost.py measures them in the lab: cycles of a dequeue and an enqueue, and
cycles of the callbacks of a congestion control for an ACK. This file lists the queues and
congestion controls of the kernel with which the modules are compared, and makes tables and
figures of the results.
"""

import statistics

from ..components.modules import MODULES
from .rendering import Table

# (flows with packets in the queue, packets come with their hash), see
# selftests/kunit/qdisc_cost.c.
COLUMNS = ((1, True), (100, True), (10000, True), (100, False))
PACKET = 1514


def _compared_with(module):
    """The queue or congestion control of the kernel that a module is compared with."""
    return module.beside or ("codel" if module.queue else "bbr")


def _ours(beside):
    """{name: words or path} of the modules that are compared with this one."""
    return {name: words for module in MODULES if _compared_with(module) == beside
            for name, words in module.costs.items()}


# {name: words of tc}. backlog: in packets. The AQMs that mark do so for about
# every tenth packet, but for vqm, which marks all of them; codel and pie, which
# have no reason to, none.
FIFOS = {
    "pfifo": "pfifo limit 65535",
    "red": "red limit 400mb min 3028 max {double} avpkt 1514 burst 8 "
           "probability 0.2 bandwidth 10gbit ecn",
    "codel": "codel limit 65535 target 100s interval 200s ecn",
    "pie": "pie limit 65535 ecn",
    **_ours("codel"),
}
_ROOM = "limit 65535 flows 65536"
FAIR = {
    # codel must not come to drop, and time passes at each reading.
    "fq_codel": f"fq_codel {_ROOM} memory_limit 1gb target 100s interval 200s",
    "sfq": "sfq limit 65535 flows 65407 divisor 65536 depth 127",
    "cake": "cake unlimited besteffort flows rtt 1000s memlimit 1gb",
    **_ours("fq_codel"),
}
QDISCS = {**FIFOS, **FAIR}
# {name: how the path is made for it}, a name being that of the congestion control
# and what else tells it apart; see Path of selftests/lab/tcp_bench.py.
_DROPPED = {"aqm": "pfifo limit 300", "sink": "reno"}
CONGESTION_CONTROLS = {
    "reno": _DROPPED,
    "cubic": _DROPPED,
    "bbr": {"aqm": "fq_codel limit 10000 flows 1024 quantum 1514 target 10s "
                   "interval 100s", "sink": "reno"},
    "dctcp": {"aqm": "sbrm limit 1000 target 10 gamma 0.01", "sink": "dctcp"},
    **_ours("bbr"),
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
    """The input of guest_cost.py: for each queue and column the words of tc and the kind of its
    packets, and a path for each congestion control."""
    return {"queues": {name: [
        {"words": qdisc_words(name, flows), "flows": flows, "hashed": hashed,
         "each": packets_each(name, flows), "fresh": name in FIFOS}
        for flows, hashed in COLUMNS] for name in QDISCS},
        "controls": CONGESTION_CONTROLS}


# (ours, what they may cost at most). With the clock that both would read on a
# kernel in real time: qdiscs. An ACK: the callbacks.
QDISC_BOUNDS = tuple((name, beside) for beside in ("codel", "fq_codel")
                     for name in _ours(beside))
ACK_BOUNDS = tuple((name, _compared_with(module)) for module in MODULES if module.controls
                   for name in module.costs if name not in module.free)
OURS = {name for module in MODULES for name in module.costs}


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
