"""A home router: a video call and a backup share the uplink."""

title = "A video call beside a backup"

# Two links between the same routers are the two directions of one line. The
# downlink has the queue of the provider, the uplink has the queue under test.
links = {
    "uplink": {"from": "home", "to": "provider", "rate": "10Mbit",
               "delay": "8ms"},
    "downlink": {"from": "provider", "to": "home", "rate": "50Mbit",
                 "delay": "8ms", "queue": "fq_codel"},
}

paths = {
    "up": {"links": ["uplink"], "rtt": "30ms"},
    "call": {"links": ["uplink"], "rtt": "30ms"},
    "down": {"links": ["downlink"], "rtt": "30ms"},
}

flows = [
    # The camera sends 2 Mbit/s in packets of 1000 bytes, at a constant rate.
    {"path": "call", "udp": "2Mbit", "packet": 1000},
    # The backup starts after 5 s and always has data.
    {"path": "up", "name": "backup", "start": "5s"},
    {"path": "down", "name": "download", "bytes": "5MB", "start": "2s"},
]

cc = "cubic"
duration = "25s"
warmup = "10s"

metrics = [
    ("delay_mean_ms", "uplink"),
    ("delay_p99_ms", "uplink"),
    ("drops", "uplink"),
    ("utilization", "uplink"),
    ("goodput_mbit", "backup"),
    ("completion_ms", "download"),
]

variants = {
    "cubic-pfifo": {"queue": "pfifo limit 200"},
    "cubic-fq_codel": {"queue": "fq_codel"},
    "sbrm-delay": {"cc": "sbrm", "queue": "delay"},
}
