"""Six links in a row, as in the configuration GFC-2 of the ATM Forum.

GFC-2 (Generic Fairness Configuration 2) tests the shares of flows that cross one
link or several links, with different rates and round trips. The rates and delays
here are smaller than in GFC-2.
"""

title = "A chain of six links, as GFC-2"

_RATES = ("10Mbit", "30Mbit", "10Mbit", "20Mbit", "10Mbit", "10Mbit")
links = {
    f"L{number}": {"from": f"n{number}", "to": f"n{number + 1}",
                   "rate": rate, "delay": "2ms"}
    for number, rate in enumerate(_RATES, 1)
}

# Path: its first and last link.
_PATHS = {"long": (1, 6), "a": (1, 1), "b": (2, 4), "c": (2, 2),
          "d": (3, 5), "e": (4, 4), "f": (5, 5), "g": (6, 6)}
paths = {name: {"links": [f"L{number}" for number in range(first, last + 1)]}
         for name, (first, last) in _PATHS.items()}

flows = [{"path": name, "count": 2} for name in paths]

cc = "sbrm"
queue = "delay"
duration = "20s"
warmup = "8s"

metrics = [("utilization", name) for name in links]
metrics += [("goodput_mbit", name) for name in paths]
metrics += [("share_error", name) for name in paths]

variants = {
    "sbrm": {},
    "cubic": {"cc": "cubic", "queue": "fq_codel"},
}
