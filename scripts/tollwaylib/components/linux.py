# SPDX-License-Identifier: GPL-2.0
"""The kernel's own queues: parameters."""

OTHER_QUEUES = {
    # other queues; RED: thresholds of 5 and 15 packets and at most 10 %, the
    # defaults of ns-2 with which CP05 4.3.1 ran (its Table 4.3.1 is damaged
    # in our text).
    "fifo_limit": (300, 1, 1000000, "limit of pfifo, packets"),
    "red_limit": (300, 1, 1000000, "limit of red, packets"),
    "red_min": (5, 1, 1000000, "packets, lower threshold of red"),
    "red_max": (15, 1, 1000000, "packets, upper threshold of red"),
    "red_probability": (0.1, 1e-6, 1.0, "probability of a mark of red at the upper threshold"),
    "red_burst": (9, 1, 1000000, "burst of red, packets, which sets its weight"),
}
