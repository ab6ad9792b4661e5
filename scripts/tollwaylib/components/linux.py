# SPDX-License-Identifier: GPL-2.0
"""The kernel's own queues: parameters, words of tc."""

from .component import Component

_QUEUES = {
    # RED: thresholds of 5 and 15 packets and at most 10 %, the
    # defaults of ns-2 with which CP05 4.3.1 ran (its Table 4.3.1 is damaged
    # in our text).
    "fifo_limit": (300, 1, 1000000, "limit of pfifo, packets"),
    "red_limit": (300, 1, 1000000, "limit of red, packets"),
    "red_min": (5, 1, 1000000, "packets, lower threshold of red"),
    "red_max": (15, 1, 1000000, "packets, upper threshold of red"),
    "red_probability": (0.1, 1e-6, 1.0, "probability of a mark of red at the upper threshold"),
    "red_burst": (9, 1, 1000000, "burst of red, packets, which sets its weight"),
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
    # The rate is the link's, and no setting.
    made_of={"spare": ["nodrop"], "rate_mbit": [],
             "red_limit_bytes": ["red_limit"], "red_min_bytes": ["red_min"],
             "red_max_bytes": ["red_max"]})
