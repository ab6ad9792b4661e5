"""Uploads and downloads fill both directions of a line."""

title = "Both directions of a line are full"

# Acknowledgements of one direction wait in the queue of the other.
links = {
    "up": {"from": "left", "to": "right", "rate": "100Mbit", "delay": "10ms"},
    "down": {"from": "right", "to": "left", "rate": "100Mbit", "delay": "10ms"},
}

paths = {name: {"links": [name], "rtt": "40ms"} for name in links}

flows = [{"path": name, "count": 4} for name in paths]

# Each case has its own rate of both directions, and so many flows in each.
cases = {f"{_rate}Mbit-{_flows}": {
    "links": {name: {"rate": f"{_rate}Mbit"} for name in ("up", "down")},
    "flows": {"up": _flows, "down": _flows},
    "x": _rate, "series": f"{_flows} + {_flows} flows"}
    for _rate in (10, 100) for _flows in (1, 8)}
x_title = "rate of each direction, Mb/s"

cc = "sbrm"
queue = "delay"
duration = "30s"
warmup = "10s"

metrics = [(metric, link) for metric in
           ("utilization", "delay_mean_ms", "delay_p99_ms", "drops")
           for link in links]

# Where one does not hold, the exit status of tollway run is 1: cubic and bbr over
# fq_codel have 0.96 to 0.98 in some cases.
bounds = [("utilization", link, ">=", 0.98) for link in links]

variants = {
    "sbrm-delay": {"cc": "sbrm", "queue": "delay"},
    "pp-fq_rr": {"cc": "pp", "queue": "fq_rr"},
    "cubic-fq_codel": {"cc": "cubic", "queue": "fq_codel"},
    "bbr-fq_codel": {"cc": "bbr", "queue": "fq_codel"},
}
