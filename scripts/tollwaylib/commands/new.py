# SPDX-License-Identifier: GPL-2.0
"""`tollway new`: a file to begin an experiment of one's own with."""

from pathlib import Path

from ..ends import HOLDS as EXIT_HOLDS
from ..errors import TollwayError
from ..experiments.own import NAME

SKELETON = '''\
"""What this experiment is about."""

# Run it with: tollway run ./{name}.py
# The name of the file is the name of the experiment. tollway(1) explains each
# field; a name of your own begins with _.

title = "Two flows and a transfer over one link"

# The links with a queue, each one way: from a router to a router.
#   rate   "100kbit" to "10Gbit", of packets with their Ethernet headers
#   delay  of this way: "500us", "10ms"; the way back takes as long. "0s" if
#          there is none
#   queue  words of tc, if it is not the queue under test (the field queue)
# A link there and one back between the same routers are the two ways of a line.
links = {{
    "core": {{"from": "left", "to": "right", "rate": "20Mbit", "delay": "10ms"}},
}}

# The ways of flows, each with a host of its own at either end.
#   links  names of links, one after another
#   rtt    round trip without queues; if it is not what the links add up to, the
#          rest is in the links to the hosts, which have no limit of rate
paths = {{
    "near": {{"links": ["core"], "rtt": "30ms"}},
    "far": {{"links": ["core"], "rtt": "80ms"}},
}}

# What is sent.
#   path         a name of paths
#   name         of these flows, for metrics; without it, the path's
#   count        of such flows, 1 without it
#   start, stop  "0s" and the duration without them
#   cc           congestion control, if it is not the one under test (the field cc)
#   bytes        of a transfer: "3MB"; without it the flow always has data
#   udp          rate of UDP packets: "2Mbit", with packet (bytes of IP) and
#                arrival ("cbr" or "poisson")
flows = [
    {{"path": "near"}},
    {{"path": "far"}},
    {{"path": "near", "name": "transfer", "bytes": "2MB", "start": "12s"}},
]

# Under test: what --cc and --aqm replace.
cc = "cubic"
queue = "fq_codel"

duration = "20s"
# So much at the beginning is left out of metrics.
warmup = "5s"

# (name, link) or (name, name of flows). Of links: utilization, delay_mean_ms,
# delay_p99_ms, delay_max_ms, queue_mean, queue_max, drops. Of TCP flows of one
# name: goodput_mbit, jain, share_error, retransmits, completion_ms.
metrics = [
    ("utilization", "core"),
    ("delay_p99_ms", "core"),
    ("goodput_mbit", "near"),
    ("goodput_mbit", "far"),
    ("completion_ms", "transfer"),
]

# What must hold: where one does not, the exit status is 1.
bounds = [
    ("utilization", "core", ">=", 0.9),
]

# Without --cc and --aqm each of these is run, and they are compared. The fields
# of each: cc, queue and settings. Without variants there is one run.
variants = {{
    "cubic": {{"cc": "cubic", "queue": "fq_codel"}},
    "sbrm": {{"cc": "sbrm", "queue": "delay"}},
}}

# Parameters of --set, where others than the usual ones are wanted.
settings = {{}}
'''


def command_new(file):
    """Write a commented experiment to begin with; an existing file stays."""
    path = Path(file)
    if path.suffix != ".py" or not NAME.fullmatch(path.stem):
        raise TollwayError(f"tollway new {file}: give the name of a file as "
                           "my-experiment.py, of at most 40 letters, digits "
                           "and ._-")
    try:
        with open(path, "x", encoding="utf-8") as out:
            out.write(SKELETON.format(name=path.stem))
    except FileExistsError:
        raise TollwayError(f"{file} exists already: give another name") \
            from None
    except OSError as error:
        raise TollwayError(f"{file} cannot be written: {error.strerror}") \
            from error
    shown = path if path.parent != Path(".") else f"./{path}"
    print(f"Edit {path}, then: tollway run {shown}")
    return EXIT_HOLDS
