# SPDX-License-Identifier: GPL-2.0
"""`tollway new`: a file to begin an experiment of one's own with."""

from pathlib import Path

from ..ends import HOLDS as EXIT_HOLDS
from ..errors import TollwayError
from ..experiments.own import NAME

SKELETON = '''\
"""What this experiment is about: tollway list and the report show this text."""

# Run it with: tollway run ./{name}.py
# The name of the file is the name of the experiment. tollway(1) explains each
# field. Names for your own use begin with _.

title = "Two flows and a transfer over one link"

# The links that have a queue, each in one direction, from router to router.
#   rate   "100kbit" to "10Gbit", of packets with their Ethernet headers
#   delay  in this direction: "500us", "10ms" (default "0s"); the opposite
#          direction has the same
#   queue  words of tc (default: the queue under test, see the field queue)
#   schedule  [("10s", "5Mbit"), ...]: later rates, each with the time it begins
# Two links between the same routers are the two directions of one line.
links = {{
    "core": {{"from": "left", "to": "right", "rate": "20Mbit", "delay": "10ms"}},
}}

# The paths of flows, each with a host of its own at either end.
#   links  names of links, in their order
#   rtt    round trip without queues; if it is longer than the delays of the
#          links, the links to the hosts have the rest (they have no rate limit)
paths = {{
    "near": {{"links": ["core"], "rtt": "30ms"}},
    "far": {{"links": ["core"], "rtt": "80ms"}},
}}

# What is sent.
#   path         one of paths
#   name         name of these flows in metrics (default: that of the path)
#   count        number of such flows (default 1)
#   start, stop  times of the flows (default: "0s" and the duration)
#   cc           congestion control (default: the one under test, see cc)
#   bytes        size of a transfer: "3MB" (default: the flow always has data)
#   udp          rate of UDP packets: "2Mbit", with packet (bytes of IP) and
#                arrival ("cbr" or "poisson")
flows = [
    {{"path": "near"}},
    {{"path": "far"}},
    {{"path": "near", "name": "transfer", "bytes": "2MB", "start": "12s"}},
]

# Variations of the experiment, each in an idle network. Each names only what
# differs in it. A loop makes a grid of them:
#   cases = {{f"{{_rate}}Mbit": {{"links": {{"core": {{"rate": f"{{_rate}}Mbit"}}}}, "x": _rate}}
#            for _rate in (5, 20, 80)}}
#   links   {{name of a link: {{"rate": ..., "delay": ..., "schedule": ...}}}}
#   flows   {{name of flows: their number}}
#   x       where the case stands in a figure; series: on which line
# Without cases there is one run.
cases = {{}}
x_title = "rate of the link, Mbit/s"

# Programs that run during each case, until SIGTERM ends them: {{"node": "left",
# "command": "ping -i 0.2 {{address:sink of far}}"}}. Nodes are routers, "source of far"
# and "sink of far". Optional: name, files ({{name: text}}, written to the directory of
# the program) and keep (names of files of JSON lines that it writes, for the results).
programs = []

# Congestion control and queue under test, which --cc and --aqm replace.
cc = "cubic"
queue = "fq_codel"

duration = "20s"
# Metrics leave out this time at the beginning.
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

# Conditions: if one does not hold, the exit status is 1. A fifth entry names a case.
bounds = [
    ("utilization", "core", ">=", 0.9),
]

# Values that others published, to compare with: {{"metric": (name, link or flows),
# "value": ..., "source": "paper, table"}}, and if they are known tolerance, case, cc,
# queue and which values are better ("higher" or "lower"). Utilisation and share_error
# are parts of 1: 0.9 is 90 %. A text is the path of a JSON file in their place, see
# tollway(1).
published = []

# Figures of a case over time (rates, queue, sequence, utilization), and ("curve",
# name of a metric, link or flows) against the x of the cases.
figures = [("rates",), ("queue",)]

# Without --cc and --aqm each variant is run, and they are compared. A variant has
# the fields cc, queue and settings. Without variants there is one run.
variants = {{
    "cubic": {{"cc": "cubic", "queue": "fq_codel"}},
    "sbrm": {{"cc": "sbrm", "queue": "delay"}},
}}

# Values for parameters of --set that differ from the defaults.
settings = {{}}
'''


def command_new(file):
    """Write a commented experiment to begin with; an existing file stays. Raises TollwayError if
    it cannot have this name or cannot be written."""
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
