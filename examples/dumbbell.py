"""Three congestion controls share one link of 50 Mbit/s."""

title = "Three congestion controls over one link"

# A link has a rate, a delay in its direction, and a queue. Without "queue" it has
# the queue under test: that of the field queue, or of --aqm.
links = {
    "core": {"from": "left", "to": "right", "rate": "50Mbit", "delay": "10ms"},
}

# Each path has a host at either end; rtt is the round trip without queues.
paths = {name: {"links": ["core"], "rtt": "40ms"}
         for name in ("cubic", "bbr", "sbrm")}

# Two flows on each path. Metrics name them by their path.
flows = [{"path": name, "cc": name, "count": 2} for name in paths]

queue = "fq_codel"
duration = "20s"
warmup = "5s"

metrics = [
    ("utilization", "core"),
    ("delay_mean_ms", "core"),
    ("delay_p99_ms", "core"),
    ("drops", "core"),
    ("goodput_mbit", "cubic"),
    ("goodput_mbit", "bbr"),
    ("goodput_mbit", "sbrm"),
]

# Conditions: if one does not hold, the exit status of tollway run is 1.
bounds = [
    ("utilization", "core", ">=", 0.9),
]

# Without --cc and --aqm each variant is run, and they are compared.
variants = {
    "fq_codel": {"queue": "fq_codel"},
    "pfifo": {"queue": "pfifo limit 300"},
    "delay": {"queue": "delay"},
}
