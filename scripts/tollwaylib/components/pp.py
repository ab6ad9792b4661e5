# SPDX-License-Identifier: GPL-2.0
"""tcp_pp and sch_fq_rr: names, parameters, sysctls."""

from .component import Component, Module, Trial

_ROOM = "limit 65535 flows 65536"
_RR = f"fq_rr {_ROOM} memory_limit 1gb"
MODULES = (
    Module(
        "tcp_pp", controls=("pp", "ppx"), restricted=("ppx",),
        judged="pairs", info="bbr",
        counters={
            "delayed_acks": "times that a receiver began to delay its ACKs",
            "shared_queue": "times that a queue was found to be shared with other flows",
            "window": "times that a window replaced the law, because the queue is shared",
            "longer_path": "times that a path became longer",
            "bunched_acks": "times that ACKs began to come in bursts",
            "gro_timeouts": "times that a receiver's GRO was found to hold packets back",
            "untimed_acks": "ACKs without a valid timestamp, because the socket was busy",
        },
        over="fq_rr limit 100",
        costs={"pp": {"aqm": "fq_codel limit 10000 flows 1024 quantum 1514 "
                             "target 10s interval 100s", "sink": "reno"}}),
    Module(
        "sch_fq_rr", queue="fq_rr",
        trial=Trial(
            "limit 300 flows 64 overflow drop-longest", "limit 400", "limit", 400,
            ("limit {1}", "memory_limit {1}kb", "quantum {1}b", "service rr",
             "service drr", "service wfq", "overflow drop-last",
             "overflow drop-longest", "overflow drop-tail-of-longest",
             "longest bytes", "longest packets", "classify priority",
             "classify flow", "perturb {0}")),
        costs={"fq_rr": f"{_RR} overflow drop-longest",
               "fq_rr drop-last": f"{_RR} overflow drop-last",
               "fq_rr drop-tail": f"{_RR} overflow drop-tail-of-longest",
               "fq_rr drr": f"{_RR} service drr overflow drop-longest",
               "fq_rr longest bytes": f"{_RR} longest bytes",
               "fq_rr wfq": f"{_RR} service wfq overflow drop-longest"},
        beside="fq_codel"),
)

# The unit in which pp reports its estimates and its setpoint, see tcp_pp(7).
ESTIMATE_SCALE = 256
# The state of the connection is added to the setpoint, in multiples of it.
STATE_UNIT = 10000
_PARAMETERS = {
    # sch_fq_rr. For codel and fq_codel see _words() of experiments/jobs.py.
    "buffer": (100, 2, 1000000, "limit of fq_rr, packets; in experiments with a list of "
               "cases also that of codel and fq_codel"),
    "service": ("rr", None, None, "service of fq_rr: rr, drr or wfq"),
    "overflow": ("drop-tail-of-longest", None, None,
                 "rule of fq_rr: drop-last, drop-tail-of-longest, drop-longest"),
    # tcp_pp
    "setpoint": (0, 0, 9999, "setpoint of pp, packets; 0: it is probed"),
    "pp_estimator": ("fuzzy", None, None, "estimator of pp: fuzzy, fixed or kalman"),
    "law": ("continuous", None, None, "law of pp: continuous or discrete"),
    "initial": (0, 0, 1000, "segments that pp sends first; 0: the initial window of TCP"),
}
# Parameters of experiments that reserve a part of the buffer (PP94 10.3).
_RESERVED = {
    "window": (0, 0, 1048576, "largest number of outstanding packets of pp; 0: no limit"),
    "reserve": (0, 0, 1000000, "packets that fq_rr reserves for a flow"),
}
# Of those whose window follows the path.
_FOLLOWS = {
    "reserved": (0, 0, 1048576, "room for a flow at its bottleneck, packets, of which pp "
                 "knows; 0: none"),
}
# Parameters of experiments with the pole of the discrete law (PP94 4.2.1), and of
# those with the steps of a setpoint that is probed (PP94 7).
_POLE = {
    "pole": (0.9, 0.01, 1.0, "pole of the discrete law of pp"),
}
_PROBING = {
    "setpoint_step": (2.0, 0.003907, 64.0, "packets that an attempt adds to the setpoint"),
    "setpoint_every": (2, 1, 4, "round trips between two attempts"),
    "setpoint_cut": (0.75, 0.01, 0.99, "factor by which a loss reduces the setpoint"),
}
# Parameters that are settings of the same name, where an experiment has them.
_SETTINGS = ("window", *_FOLLOWS, *_POLE, *_PROBING)


def _sysctls(values, _wtps):
    base = "net.ipv4.tcp_pp"
    found = {f"{base}.setpoint": values["setpoint"],
             f"{base}.estimator": values["pp_estimator"],
             f"{base}.law": values["law"],
             f"{base}.initial": values["initial"]}
    return {**found, **{f"{base}.{name}": values[name]
                        for name in _SETTINGS if name in values}}


def _fields(values):
    """Words of tc for the part of the buffer of fq_rr that each flow owns."""
    reserve = values.get("reserve")
    return {"reservation": f" reserve {reserve}" if reserve else ""}


def _deciding(_cc, values):
    special = {*_RESERVED, *_FOLLOWS, *_POLE, *_PROBING} & set(values)
    first = () if values["initial"] else ("initcwnd",)
    return {"setpoint", "pp_estimator", "law", "initial", *special, *first}


COMPONENT = Component(
    controls=("pp", "ppx"), parameters=_PARAMETERS,
    special={**_RESERVED, **_FOLLOWS, **_POLE, **_PROBING},
    choices={"service": ("rr", "drr", "wfq"),
             "overflow": ("drop-last", "drop-tail-of-longest", "drop-longest"),
             "pp_estimator": ("fuzzy", "fixed", "kalman"),
             "law": ("continuous", "discrete")},
    # PP94 probes the setpoint; up to 100 packets of each flow then wait in the queue.
    shipped={"setpoint": 10},
    queues={"fq_rr": "fq_rr limit {buffer} service {service} "
                     "overflow {overflow}{reservation}"},
    fields=_fields,
    # Only some experiments have the parameter `reserve`, see _deciding().
    made_of={"reservation": []},
    sysctls=_sysctls, deciding=_deciding, equal_rates=("fq_rr",), classful=("fq_rr",),
    cc_info=True)
