# SPDX-License-Identifier: GPL-2.0
"""What Linux has itself: congestion controls and qdiscs; parameters and words of tc of
the queues that experiments name."""

from .component import Component

CONTROLS = ("bbr", "bic", "cdg", "cubic", "dctcp", "highspeed", "htcp", "hybla",
            "illinois", "lp", "nv", "reno", "scalable", "vegas", "veno", "westwood",
            "yeah")
QDISCS = ("bfifo", "cake", "cbs", "choke", "codel", "drr", "dualpi2", "etf", "ets", "fq",
          "fq_codel", "fq_pie", "gred", "hfsc", "hhf", "htb", "mq", "mqprio", "multiq",
          "netem", "pfifo", "pfifo_fast", "pfifo_head_drop", "pie", "plug", "prio", "qfq",
          "red", "sfb", "sfq", "skbprio", "taprio", "tbf")

_QUEUES = {
    # The thresholds of RED are 5 and 15 packets, and the probability of a mark is
    # at most 10 %. These are the defaults of ns-2, with which the simulations of
    # CP05 4.3.1 were run. The table with the values, 4.3.1, is damaged in the copy
    # of CP05 that was available.
    "fifo_limit": (300, 1, 1000000, "limit of pfifo, packets"),
    "red_limit": (300, 1, 1000000, "limit of red, packets"),
    "red_min": (5, 1, 1000000, "lower threshold of red, packets"),
    "red_max": (15, 1, 1000000, "upper threshold of red, packets"),
    "red_probability": (0.1, 1e-6, 1.0, "probability of a mark of red at the upper threshold"),
    "red_burst": (9, 1, 1000000, "option burst of tc-red(8), packets; it sets the weight of the "
                  "average"),
}


def _fields(values):
    packet = values["packet_bytes"]
    return {"red_limit_bytes": values["red_limit"] * packet,
            "red_min_bytes": values["red_min"] * packet,
            "red_max_bytes": values["red_max"] * packet,
            "spare": " nodrop" if values["nodrop"] else ""}


COMPONENT = Component(
    parameters=_QUEUES,
    queues={
        "pfifo": "pfifo limit {fifo_limit}",
        "red": "red limit {red_limit_bytes} min {red_min_bytes} "
               "max {red_max_bytes} avpkt {packet_bytes} burst {red_burst} "
               "probability {red_probability:g} bandwidth {rate_mbit}mbit "
               "ecn{spare}"},
    fields=_fields,
    equal_rates=("cake", "drr", "fq", "fq_codel", "fq_pie", "sfq"),
    classful=("fq_codel",),
    # The rate is the link's, and no setting.
    made_of={"spare": ["nodrop"], "rate_mbit": [],
             "red_limit_bytes": ["red_limit"], "red_min_bytes": ["red_min"],
             "red_max_bytes": ["red_max"]})
