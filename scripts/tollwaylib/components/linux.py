# SPDX-License-Identifier: GPL-2.0
"""The kernel's own queues: parameters."""

OTHER_QUEUES = {
    # other queues; RED: thresholds of 5 and 15 packets and at most 10 %, the
    # defaults of ns-2 with which CP05 4.3.1 ran (its Table 4.3.1 is damaged
    # in our text).
    "fifo_limit": (300, 1, 1000000, "packets of room in pfifo"),
    "red_limit": (300, 1, 1000000, "packets of room in red"),
    "red_min": (5, 1, 1000000, "packets, lower threshold of red"),
    "red_max": (15, 1, 1000000, "packets, upper threshold of red"),
    "red_probability": (0.1, 1e-6, 1.0, "of red's marks at the threshold"),
    "red_burst": (9, 1, 1000000, "packets, from which tc makes red's weight"),
}
